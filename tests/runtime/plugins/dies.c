/* A handler that dies, in every way there is, on the record whose sequence number "at" names. Writes the
 * others' numbers into the file "told", one by one. */
#include <sluice/handler.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dies {
    const struct sl_host *host;
    struct sl_route *route;
    int told;
    struct sl_span at, after;
    const char *how;
    bool is_spoilt;
};

static const struct sl_option options[] = {
    {.name = "how", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "the way"},
    {.name = "at", .type = SL_OPTION_TEXT, .fallback = "1555", .help = "a sequence number"},
    {.name = "after", .type = SL_OPTION_TEXT, .fallback = "1540", .help = "one before it"},
    {.name = "told", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "a file"},
    {.type = SL_OPTION_END},
};

static enum sl_status dies_open(const struct sl_host *host, struct sl_route *route, void **self,
                                struct sl_error *error)
{
    struct dies *d = host->alloc(host->route_arena(route), sizeof(*d));
    (void)error;
    *d = (struct dies){.host = host, .route = route, .told = -1};
    d->how = host->option_text(route, "how").ptr;
    d->at = host->option_text(route, "at");
    d->after = host->option_text(route, "after");
    d->told = open(host->option_text(route, "told").ptr, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (strcmp(d->how, "in open") == 0)
        abort();
    *self = d;
    return SL_OK;
}

static int overflow(volatile char *from, int depth)
{
    volatile char frame[4096];
    frame[0] = from[0];
    return depth < 0 ? 0 : overflow(frame, depth + 1) + frame[0];
}

static void signal_from_outside(int number)
{
    pid_t victim = getpid();
    if (fork() == 0) {
        kill(victim, number);
        _exit(0);
    }
    for (;;)
        pause();
}

static void die(struct dies *d)
{
    const char *how = d->how;
    if (strcmp(how, "segv") == 0)
        *(volatile int *)8 = 1;
    else if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "overflow") == 0)
        overflow((volatile char *)how, 0);
    else if (strcmp(how, "own handlers") == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile int *)8 = 1;
    } else if (strcmp(how, "loop") == 0)
        for (;;)
            d->is_spoilt = !d->is_spoilt;
    else if (strcmp(how, "exit") == 0)
        exit(0);
    else if (strcmp(how, "close") == 0)
        for (int fd = 0; fd < 256; fd++)
            close(fd);
    else if (strcmp(how, "kill") == 0)
        signal_from_outside(SIGKILL);
    else if (strcmp(how, "segv from outside") == 0)
        signal_from_outside(SIGSEGV);
}

static bool is(struct sl_span a, struct sl_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static void look_at(struct dies *d, struct sl_span number)
{
    bool is_at = is(number, d->at);
    if (is_at)
        die(d);
    /* Two that are harmless each, and not together. */
    if (is(number, d->after))
        d->is_spoilt = true;
    if (is_at && d->is_spoilt && strcmp(d->how, "spoilt") == 0)
        abort();
}

static void tell(struct dies *d, struct sl_span number)
{
    char line[64];
    memcpy(line, number.ptr, number.len);
    line[number.len] = '\n';
    (void)!write(d->told, line, number.len + 1);
}

static enum sl_status dies_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct dies *d = self;
    (void)error;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_span number = d->host->record_text(slice->records[i], SL_FIELD_SEQUENCE_NUMBER);
        look_at(d, number);
        tell(d, number);
        d->host->mark(slice, i, SL_OK, NULL);
    }
    return SL_OK;
}

#ifndef FLAGS
#define FLAGS 0
#endif

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "dies",
    .flags = FLAGS,
    .options = options,
    .open = dies_open,
    .handle = dies_handle,
};
