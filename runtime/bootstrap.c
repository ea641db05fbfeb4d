/* bootstrap: a custom runtime for AWS Lambda that runs the pipeline of sluice.json. */
#include "base/disk.h"
#include "runtime/serve.h"
#include "runtime/workers.h"

#include <signal.h>
#include <unistd.h>

extern char **environ;

/* Where this executable is; argv[0] if /proc is not mounted. */
static const char *program_path(const char *argv0, char out[SL_PATH_BYTES])
{
    ssize_t n = readlink("/proc/self/exe", out, SL_PATH_BYTES - 1);
    if (n <= 0)
        return argv0;
    out[n] = '\0';
    return out;
}

int main(int argc, char **argv)
{
    char path[SL_PATH_BYTES];
    struct sl_settings settings;
    /* A peer that closes a connection, and a file that reaches the process's limit, are errors of that write,
     * here and in the trials' processes. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sl_disk_fill_standard();
    sl_settings_init(&settings, environ, program_path(argc ? argv[0] : "bootstrap", path));
    int result = settings.workers > 1 ? sl_workers_run(&settings) : sl_serve(&settings, true, -1);
    sl_settings_clean_up(&settings);
    return result;
}
