#include "runtime/crash.h"

#include <signal.h>
#include <unistd.h>

static const struct sl_log *crash_log;

/* Only what is safe in a signal handler: bytes into an array, one write. */
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

static void on_signal(int number)
{
    char line[512];
    size_t n = 0;
    if (!crash_log) {
        raise(number);
        return;
    }
    bool json = crash_log->format == SL_LOG_JSON;
    if (json) {
        for (const char *c = "{\"level\":\"FATAL\",\"message\":\""; *c; c++)
            line[n++] = *c;
    } else {
        add(line, &n, "FATAL ");
    }
    add(line, &n, "the process dies of ");
    add(line, &n, name_of(number));
    if (crash_log->route) {
        add(line, &n, " in the handler of route ");
        add(line, &n, crash_log->route);
    }
    if (crash_log->request_id[0]) {
        add(line, &n, ", request ");
        add(line, &n, crash_log->request_id);
    }
    add(line, &n, "; the batch comes again");
    for (const char *c = json ? "\"}\n" : "\n"; *c; c++)
        line[n++] = *c;
    (void)!write(crash_log->fd, line, n);
    raise(number); /* SA_RESETHAND: the default action follows */
}

void sl_crash_report(const struct sl_log *log)
{
#if !defined(__SANITIZE_ADDRESS__)
    static char stack[16 * 1024]; /* its own: the handler may have used up the other */
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    crash_log = log;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
        sigaction(numbers[i], &action, NULL);
    }
#else
    (void)on_signal;
    crash_log = log;
#endif
}
