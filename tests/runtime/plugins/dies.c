/* A handler that dies or misbehaves, in every way there is, on the records whose sequence numbers "at" names
 * ("1555", "1520,1521", "all"). Writes the others' numbers into the file "told", one by one. Where the file
 * "spare" is, it does not die, and writes into that file what it would have died of. */
#include <sluice/handler.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dies {
    const struct sl_host *host;
    struct sl_route *route;
    int told;
    struct sl_span at, after;
    struct sl_queue_port *port;
    const char *how, *spare;
    bool is_spoilt;
};

static const struct sl_option options[] = {
    {.name = "how", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "the way"},
    {.name = "at", .type = SL_OPTION_TEXT, .fallback = "1555", .help = "a sequence number"},
    {.name = "after", .type = SL_OPTION_TEXT, .fallback = "1540", .help = "one before it"},
    {.name = "spare", .type = SL_OPTION_TEXT, .fallback = "/nowhere/spare", .help = "a file"},
    {.name = "port", .type = SL_OPTION_QUEUE, .help = "what a bad pointer is given to"},
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
    d->spare = host->option_text(route, "spare").ptr;
    d->at = host->option_text(route, "at");
    d->after = host->option_text(route, "after");
    d->port = host->option_queue(route, "port");
    d->told = open(host->option_text(route, "told").ptr, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (strcmp(d->how, "in open") == 0)
        abort();
    if (strcmp(d->how, "exit in open") == 0)
        exit(0);
    if (strcmp(d->how, "sleep in open") == 0 && access(d->spare, F_OK) == 0)
        sleep(600);
    *self = d;
    return SL_OK;
}

static int overflow(volatile char *from, int depth)
{
    volatile char frame[4096];
    frame[0] = from[0];
    return depth < 0 ? 0 : overflow(frame, depth + 1) + frame[0];
}

static void touch_nothing(void)
{
    volatile int *volatile nowhere = (volatile int *)8;
    *nowhere = 1;
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

/* Its peer is gone: SIGPIPE, or an error where it is ignored. */
static void write_to_nobody(void)
{
    int ends[2];
    if (pipe(ends) == 0) {
        close(ends[0]);
        (void)!write(ends[1], "x", 1);
        close(ends[1]);
    }
}

static void crash_a_port(const struct dies *d, const struct sl_slice *slice)
{
    struct sl_message message = {.body = {(const char *)8, 1000}};
    struct sl_result result = {.status = SL_OK};
    struct sl_call call = {.arena = slice->arena, .deadline_ms = slice->deadline_ms};
    d->port->apply(d->port, &message, 1, &result, &call);
}

static bool is_spared(const struct dies *d, const struct sl_slice *slice)
{
    const char *trace = getenv("_X_AMZN_TRACE_ID");
    int file = open(d->spare, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return false;
    dprintf(file, "%ld: %zu records, id %s, trace %s\n", (long)getpid(), slice->n, slice->request_id,
            trace ? trace : "-");
    close(file);
    return true;
}

static int signal_named(const char *how)
{
    static const struct {
        const char *how;
        int number;
    } names[] = {{"bus", SIGBUS}, {"fpe", SIGFPE}, {"ill", SIGILL}, {"trap", SIGTRAP}, {"sys", SIGSYS}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(how, names[i].how) == 0)
            return names[i].number;
    return 0;
}

static void die(struct dies *d, struct sl_slice *slice)
{
    const char *how = d->how;
    if (is_spared(d, slice))
        return;
    d->host->log(d->route, SL_INFO, "dies");
    if (strcmp(how, "segv") == 0)
        touch_nothing();
    else if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "overflow") == 0)
        overflow((volatile char *)how, 0);
    else if (strcmp(how, "own handlers") == 0) {
        signal(SIGSEGV, SIG_DFL);
        touch_nothing();
    } else if (strcmp(how, "loop") == 0)
        for (;;)
            d->is_spoilt = !d->is_spoilt;
    else if (strcmp(how, "sleep") == 0)
        for (;;)
            pause();
    else if (signal_named(how))
        raise(signal_named(how));
    else if (strcmp(how, "exit") == 0)
        exit(0);
    else if (strcmp(how, "exit 1") == 0)
        exit(1);
    else if (strcmp(how, "exit 2") == 0)
        exit(2);
    else if (strcmp(how, "leave") == 0)
        _exit(0);
    else if (strcmp(how, "leave 2") == 0)
        _exit(2);
    else if (strcmp(how, "mark") == 0)
        d->host->mark(slice, slice->n, SL_OK, NULL);
    else if (strcmp(how, "status") == 0)
        d->host->mark(slice, 0, (enum sl_status)77, NULL);
    else if (strcmp(how, "pipe") == 0)
        write_to_nobody();
    else if (strcmp(how, "deadly pipe") == 0) {
        signal(SIGPIPE, SIG_DFL);
        write_to_nobody();
    } else if (strcmp(how, "in a port") == 0)
        crash_a_port(d, slice);
    else if (strcmp(how, "close") == 0)
        for (int fd = 0; fd < 256; fd++)
            close(fd);
    else if (strcmp(how, "close 2") == 0)
        close(2), close(d->told);
    else if (strcmp(how, "kill") == 0)
        signal_from_outside(SIGKILL);
    else if (strcmp(how, "segv from outside") == 0)
        signal_from_outside(SIGSEGV);
    else if (strncmp(how, "from outside ", 13) == 0)
        signal_from_outside(signal_named(how + 13));
}

static bool is(struct sl_span a, struct sl_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static bool is_listed(const struct dies *d, struct sl_span number)
{
    return strcmp(d->at.ptr, "all") == 0 || memmem(d->at.ptr, d->at.len, number.ptr, number.len);
}

static void look_at(struct dies *d, struct sl_slice *slice, struct sl_span number)
{
    bool is_at = is_listed(d, number);
    if (is_at)
        die(d, slice);
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
        look_at(d, slice, number);
        tell(d, number);
        d->host->mark(slice, i, SL_OK, NULL);
    }
    return SL_OK;
}

static void dies_close(void *self)
{
    const struct dies *d = self;
    if (strcmp(d->how, "in close") == 0)
        abort();
}

#ifndef FLAGS
#define FLAGS 0
#endif

/* What it does with an item depends on the item alone: dying, too. */
static enum sl_status dies_per_item(void *self, struct sl_per_item *out, struct sl_error *error)
{
    (void)self;
    (void)out;
    (void)error;
    return SL_OK;
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "dies",
    .flags = FLAGS,
    .options = options,
    .open = dies_open,
    .handle = dies_handle,
    .close = dies_close,
    .per_item = dies_per_item,
};
