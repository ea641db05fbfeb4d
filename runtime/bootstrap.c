/* bootstrap: a custom runtime for AWS Lambda that runs the pipeline of sluice.json. */
#include "runtime/start.h"

extern char **environ;

int main(int argc, char **argv)
{
    return sl_start(argc ? argv[0] : "bootstrap", environ);
}
