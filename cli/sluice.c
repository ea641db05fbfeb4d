/* sluice: the command line tool. */
#include "cli/verbs.h"

int main(int argc, char **argv)
{
    return sl_sluice(argc, argv);
}
