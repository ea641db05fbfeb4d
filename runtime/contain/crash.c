/* One last line in the log, from a signal handler. */
#include "runtime/contain/crash.h"

#include "base/array.h"

#include <signal.h>
#include <unistd.h>

static const struct sl_log *crash_log;

/* Only what is safe in a signal handler: bytes into an array, and one write. */
static void add(char *line, size_t *n, const char *text)
{
    for (; *text && *n < 480; text++)
        if ((unsigned char)*text >= 0x20 && *text != '"' && *text != '\\')
            line[(*n)++] = *text;
}

static const char *name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    default:
        return "SIGABRT";
    }
}

/* "FATAL the process died of SIGSEGV in the handler of route r, request 123; the batch will be delivered
 * again" */
static void say_death(const struct sl_log *log, int number)
{
    char line[512];
    size_t n = 0;
    bool json = log->format == SL_LOG_JSON;
    if (json) {
        for (const char *c = "{\"level\":\"FATAL\",\"message\":\""; *c; c++)
            line[n++] = *c;
    } else {
        add(line, &n, "FATAL ");
    }
    add(line, &n, "the process died of ");
    add(line, &n, name_of(number));
    if (log->route) {
        add(line, &n, log->is_in_port ? " in a port of route " : " in the handler of route ");
        add(line, &n, log->route);
    }
    if (log->request_id[0]) {
        add(line, &n, ", request ");
        add(line, &n, log->request_id);
        add(line, &n, "; the batch will be delivered again");
    }
    for (const char *c = json ? "\"}\n" : "\n"; *c; c++)
        line[n++] = *c;
    (void)!write(log->fd, line, n);
}

static void on_signal(int number)
{
    if (crash_log)
        say_death(crash_log, number);
    raise(number); /* SA_RESETHAND: the default action follows */
}

void sl_crash_report(const struct sl_log *log)
{
    crash_log = log;
#if !defined(SL_SANITIZED)
    static char stack[16 * 1024]; /* the handler may have used up the usual one */
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
    for (size_t i = 0; i < SL_COUNT(numbers); i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
        sigaction(numbers[i], &action, NULL);
    }
#else
    (void)on_signal;
#endif
}
