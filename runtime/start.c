/* What comes before an event can be served: signals, descriptors, settings. */
#include "runtime/start.h"

#include "base/disk.h"
#include "runtime/serve.h"
#include "runtime/workers.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Where this executable is; `otherwise` if /proc is not mounted. */
static const char *program_path(const char *otherwise, char out[SL_PATH_BYTES])
{
    ssize_t n = readlink("/proc/self/exe", out, SL_PATH_BYTES - 1);
    if (n <= 0)
        return otherwise;
    out[n] = '\0';
    return out;
}

int sl_start(const char *program, char *const *environment)
{
    char path[SL_PATH_BYTES];
    struct sl_settings settings;
    /* A peer that closes a connection, and a file that reaches the process's limit, are errors of that write,
     * here and in the trials' processes. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sl_disk_fill_standard();
    /* A dump would hold keys and items, and fill the function's disk. */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    sl_settings_init(&settings, environment, program_path(program, path));
    int result = settings.workers > 1 ? sl_workers_run(&settings) : sl_serve(&settings, true, -1);
    sl_settings_clean_up(&settings);
    return result == 0 ? 0 : 1;
}
