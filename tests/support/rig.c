#include "tests/support/rig.h"

#include "handlers/pipeline/route.h"
#include "tests/support/counts.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void refuse(const char *text)
{
    fail_msg("%s", text);
}

/* cmocka's macro would stand in the way of host->fail. */
#undef fail

static struct rig *the_rig;
static const struct sl_host *host;

/* ---- handlers ---- */

struct self {
    struct rig_handler *script;
    struct sl_route *route;
};

static size_t index_of(const struct sl_record *r)
{
    struct sl_span text = host->record_text(r, SL_FIELD_SEQUENCE_NUMBER);
    size_t number = 0;
    for (size_t i = 0; i < text.len; i++)
        number = number * 10 + (size_t)(text.ptr[i] - '0');
    return number < 1000 ? 0 : number - 1000; /* of Kinesis: none */
}

static void note_call(struct self *self, struct sl_slice *slice)
{
    struct rig_handler *s = self->script;
    size_t bytes = 0;
    assert_false(the_rig->log.is_in_port);
    for (size_t i = 0; i < slice->n; i++)
        bytes += host->record_text(slice->records[i], SL_FIELD_RAW).len;
    s->calls++;
    s->n_given += slice->n;
    s->largest = slice->n > s->largest ? slice->n : s->largest;
    s->largest_bytes = bytes > s->largest_bytes ? bytes : s->largest_bytes;
    s->last_attempt = slice->attempt;
    s->last_begin_ms = host->now_ms(self->route);
    s->deadline_ms = slice->deadline_ms;
    s->epoch = slice->epoch;
}

static void apply_one(struct rig_handler *s, size_t index)
{
    s->applied[s->n_applied++] = index;
    s->times[index]++;
}

static enum sl_status fail(const struct rig_handler *s, struct sl_error *error, enum sl_status status,
                           size_t index)
{
    if (s->filler) {
        memset(error->code, s->filler, sizeof(error->code));
        memset(error->text, s->filler, sizeof(error->text));
        error->status = status;
        return status;
    }
    char code[32] = "Planned";
    if (s->codes)
        snprintf(code, sizeof(code), "Code%zu", index % s->codes);
    return host->fail(error, status, s->code ? s->code : code, "record %zu is planned to fail", index);
}

/* What is below the first record in trouble is not durable either: a handler that does not mark writes all or
 * nothing. */
static enum sl_status handle_whole(struct rig_handler *s, struct sl_slice *slice, struct sl_error *error)
{
    for (size_t i = 0; i < slice->n; i++) {
        size_t index = index_of(slice->records[i]);
        if (s->plan[index] != RIG_GOOD)
            return fail(s, error, (enum sl_status)s->plan[index], index);
    }
    for (size_t i = 0; i < slice->n; i++)
        apply_one(s, index_of(slice->records[i]));
    return SL_OK;
}

static enum sl_status handle_marked(struct rig_handler *s, struct sl_slice *slice)
{
    for (size_t i = 0; i < slice->n; i++) {
        size_t index = index_of(slice->records[i]);
        struct sl_error why = {0};
        if (s->plan[index] == RIG_GOOD)
            apply_one(s, index);
        else
            fail(s, &why, (enum sl_status)s->plan[index], index);
        host->mark(slice, i, (enum sl_status)s->plan[index], &why);
    }
    return SL_OK;
}

static enum sl_status handle_blaming(struct rig_handler *s, struct sl_slice *slice, struct sl_error *error)
{
    enum sl_status status = handle_whole(s, slice, error);
    for (size_t i = 0; status != SL_OK && i < slice->n; i++)
        if (s->plan[index_of(slice->records[i])] == RIG_POISON)
            host->mark(slice, i, SL_REJECT, error);
    return status;
}

static void send_one(struct self *self, struct sl_arena *arena, int64_t deadline_ms)
{
    struct sl_queue_port *queue = host->option_queue(self->route, "to");
    const struct sl_message message = {.body = SL_LIT("a message")};
    struct sl_result result;
    queue->apply(queue, &message, 1, &result, &(struct sl_call){arena, deadline_ms});
}

static enum sl_status rig_handle(void *arg, struct sl_slice *slice, struct sl_error *error)
{
    struct self *self = arg;
    struct rig_handler *s = self->script;
    note_call(self, slice);
    if (s->sends)
        send_one(self, slice->arena, slice->deadline_ms);
    if (s->exits)
        exit(s->exits < 0 ? 0 : s->exits);
    if (s->takes_ms && !host->sleep(self->route, slice, s->takes_ms)) {
        int64_t left = slice->deadline_ms - host->now_ms(self->route);
        host->sleep(self->route, slice, left - 1);
        return host->fail(error, SL_RETRY, "TimeIsUp", "no time left");
    }
    if (s->outages) {
        s->outages--;
        return host->fail(error, SL_RETRY, "Throttled", "slow down");
    }
    if (s->always != SL_OK && s->silent)
        return s->always;
    if (s->always != SL_OK)
        return host->fail(error, s->always, "Always", "as planned");
    if (s->misuses_together && slice->n > 1)
        host->mark(slice, slice->n, SL_OK, NULL);
    if (s->blames)
        return handle_blaming(s, slice, error);
    return s->marks ? handle_marked(s, slice) : handle_whole(s, slice, error);
}

static enum sl_status rig_window(void *arg, struct sl_window *window, struct sl_error *error)
{
    struct self *self = arg;
    struct rig_handler *s = self->script;
    s->windows++;
    the_rig->clock.ms += s->window_takes_ms;
    if (s->sends)
        send_one(self, window->arena, window->deadline_ms);
    s->window_records = window->n;
    s->window_was_final = window->is_final;
    if (s->window_outages) {
        s->window_outages--;
        return host->fail(error, SL_RETRY, "WindowOutage", "the window has an outage");
    }
    snprintf(s->window_start, sizeof(s->window_start), "%.*s", SL_ARG(window->start));
    snprintf(s->window_end, sizeof(s->window_end), "%.*s", SL_ARG(window->end));
    snprintf(s->window_state, sizeof(s->window_state), "%.*s", SL_ARG(window->state));
    if (s->window_status != SL_OK && s->silent)
        return s->window_status;
    if (s->window_status != SL_OK)
        return host->fail(error, s->window_status, "WindowPlanned", "the window is planned to fail");
    if (s->new_state)
        window->new_state = sl_span_str(s->new_state);
    return SL_OK;
}

static enum sl_status rig_accepts(void *arg, enum sl_view view, struct sl_error *error)
{
    struct rig_handler *s = ((struct self *)arg)->script;
    return s->refused_views & (1u << view) ? host->fail(error, SL_FATAL, "ViewTypeRefused", "no images")
                                           : SL_OK;
}

static enum sl_status rig_any_order(void *arg, struct sl_any_order *out, struct sl_error *error)
{
    struct rig_handler *s = ((struct self *)arg)->script;
    if (s->remembers_s < 0)
        return host->fail(error, SL_REJECT, "Ordered", "it minds");
    out->remembers_s = s->remembers_s;
    return SL_OK;
}

/* The option "first" may say how the handler refuses to open: "refuse", and what it says then. */
static enum sl_status open_at(size_t which, const struct sl_host *table, struct sl_route *route, void **out,
                              struct sl_error *error)
{
    host = table;
    struct sl_span first = host->option_text(route, "first"), refuse = SL_LIT("refuse ");
    if (sl_span_is(first, "refuse"))
        return SL_RETRY;
    if (sl_span_starts(first, refuse))
        return host->fail(error, SL_FATAL, "Refused", "%.*s", SL_ARG(sl_span_from(first, refuse.len)));
    struct self *self = host->alloc(host->route_arena(route), sizeof(*self));
    *self = (struct self){&the_rig->handlers[which], route};
    self->script->remembers_s = host->option_integer(route, "remembers");
    *out = self;
    return SL_OK;
}

#define OPEN(which)                                                                                          \
    static enum sl_status open_##which(const struct sl_host *table, struct sl_route *route, void **self,     \
                                       struct sl_error *error)                                               \
    {                                                                                                        \
        return open_at(which, table, route, self, error);                                                    \
    }
OPEN(RIG_ONE)
OPEN(RIG_TWO)
OPEN(RIG_THREE)
OPEN(RIG_ONCE)
OPEN(RIG_TWICE)
OPEN(RIG_WINDOW)

static const struct sl_option rows[] = {
    {.name = "first", .type = SL_OPTION_TEXT, .help = "what is not a target"},
    {.name = "to", .type = SL_OPTION_QUEUE, .help = "a queue"},
    {.name = "text", .type = SL_OPTION_TEMPLATE, .help = "a text"},
    {.name = "only", .type = SL_OPTION_WHEN, .help = "a condition"},
    {.name = "other", .type = SL_OPTION_QUEUE, .help = "another queue"},
    {.name = "epoch", .type = SL_OPTION_INTEGER, .help = "a number"},
    {.name = "remembers",
     .type = SL_OPTION_INTEGER,
     .min = -1,
     .max = 1 << 30,
     .help = "seconds; -1: it minds"},
    {.type = SL_OPTION_END},
};

#define HANDLER(which, title, bits, order)                                                                   \
    {                                                                                                        \
        .abi = SL_HANDLER_ABI, .name = title, .flags = bits, .options = rows, .open = open_##which,          \
        .handle = rig_handle, .accepts = rig_accepts, .any_order = order                                     \
    }

static const struct sl_handler one = HANDLER(RIG_ONE, "one", 0, rig_any_order),
                               two = HANDLER(RIG_TWO, "two", 0, rig_any_order),
                               three = HANDLER(RIG_THREE, "three", 0, NULL),
                               once = HANDLER(RIG_ONCE, "once", SL_ONCE_ONLY, rig_any_order),
                               twice = HANDLER(RIG_TWICE, "twice", SL_ONCE_ONLY, rig_any_order);
static const struct sl_handler window = {.abi = SL_HANDLER_ABI,
                                         .name = "window",
                                         .options = rows,
                                         .open = open_RIG_WINDOW,
                                         .handle = rig_handle,
                                         .window = rig_window};
static const struct sl_handler keeper = {.abi = SL_HANDLER_ABI,
                                         .name = "keeper",
                                         .flags = SL_ONCE_ONLY,
                                         .options = rows,
                                         .open = open_RIG_WINDOW,
                                         .handle = rig_handle,
                                         .window = rig_window};
static const struct sl_handler *const builtins[] = {&one,   &two,    &three,  &once,
                                                    &twice, &window, &keeper, NULL};

/* ---- ports ---- */

struct queue {
    struct sl_queue_port port;
    struct rig_port *kept;
};

struct store {
    struct sl_object_port port;
    struct rig_port *kept;
};

static struct sl_result take(struct rig_port *kept, struct sl_span body, struct sl_span key)
{
    if (kept->failures) {
        kept->failures--;
        return (struct sl_result){.status = kept->status,
                                  .code = kept->code ? kept->code : "PortPlanned",
                                  .text = "the port is planned to fail"};
    }
    kept->bodies[kept->n] = strndup(body.ptr, body.len);
    kept->keys[kept->n++] = strndup(key.ptr ? key.ptr : "", key.len);
    return (struct sl_result){.status = SL_OK};
}

/* A crash is a port's, and of its route, only if the log says so while the port is at work. */
static void work(struct rig_port *kept, size_t n)
{
    assert_true(the_rig->log.is_in_port);
    assert_non_null(the_rig->log.route);
    kept->calls++;
    the_rig->clock.ms += kept->takes_ms;
    kept->largest = n > kept->largest ? n : kept->largest;
}

static void queue_apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct rig_port *kept = ((struct queue *)port)->kept;
    (void)call;
    work(kept, n);
    for (size_t i = 0; i < n; i++)
        results[i] = take(kept, messages[i].body, messages[i].dedupe);
}

static void store_apply(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct rig_port *kept = ((struct store *)port)->kept;
    (void)call;
    work(kept, n);
    for (size_t i = 0; i < n; i++)
        results[i] = take(kept, objects[i].body, objects[i].key);
}

static void queue_close(struct sl_queue_port *port)
{
    free(port);
}

static void store_close(struct sl_object_port *port)
{
    free(port);
}

static enum sl_port_kind rig_kind(struct sl_span url)
{
    if (sl_span_starts(url, SL_LIT("mem:")) || sl_span_starts(url, SL_LIT("sqs:")))
        return SL_PORT_QUEUE;
    if (sl_span_starts(url, SL_LIT("memo:")))
        return SL_PORT_OBJECTS;
    return sl_span_starts(url, SL_LIT("memt:")) ? SL_PORT_TABLE : SL_PORT_NONE;
}

struct rig_port *rig_port(struct rig *rig, const char *name)
{
    for (size_t i = 0; i < rig->n_ports; i++)
        if (strcmp(rig->ports[i].name, name) == 0)
            return &rig->ports[i];
    struct rig_port *port = &rig->ports[rig->n_ports++];
    snprintf(port->name, sizeof(port->name), "%s", name);
    return port;
}

static struct rig_port *port_of(struct sl_span url)
{
    char name[32];
    snprintf(name, sizeof(name), "%.*s", SL_ARG(url));
    return rig_port(the_rig, strchr(name, ':') + 1);
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    (void)sinks;
    if (rig_kind(url) != SL_PORT_QUEUE)
        return sl_fail(error, SL_FATAL, "UnknownTarget", "\"%.*s\" is not a target", SL_ARG(url));
    struct queue *queue = calloc(1, sizeof(*queue));
    queue->kept = port_of(url);
    queue->port = (struct sl_queue_port){sizeof(queue->port), 0, queue_apply, queue_close};
    queue->kept->max_bytes = &queue->port.max_message_bytes;
    *out = &queue->port;
    return SL_OK;
}

static enum sl_status open_store(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                 struct sl_error *error)
{
    (void)sinks;
    (void)error;
    struct store *store = calloc(1, sizeof(*store));
    store->kept = port_of(url);
    store->port =
        (struct sl_object_port){.size = sizeof(store->port), .apply = store_apply, .close = store_close};
    store->kept->max_bytes = &store->port.max_body_bytes;
    *out = &store->port;
    return SL_OK;
}

static enum sl_status open_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    (void)sinks;
    (void)out;
    return sl_fail(error, SL_FATAL, "UnknownTarget", "\"%.*s\" is not a table", SL_ARG(url));
}

static const struct sl_openers openers = {
    .kind = rig_kind, .objects = open_store, .table = open_table, .queue = open_queue};

/* ---- the rig ---- */

static enum sl_status open_pipeline(struct rig *rig, const char *config, struct sl_error *error)
{
    char path[300];
    static const struct sl_vars vars = {.list = NULL};
    static const char *const nowhere[] = {NULL};
    snprintf(path, sizeof(path), "%s/sluice.json", rig->folder);
    test_write(path, json(config));
    struct sl_pipeline_options options = {.config_path = path,
                                          .vars = &vars,
                                          .clock = &rig->clock.clock,
                                          .log = &rig->log,
                                          .sinks = &rig->sinks,
                                          .handler_path = nowhere,
                                          .function_name = "",
                                          .builtins = builtins,
                                          .openers = &openers};
    return sl_pipeline_open(&options, &rig->p, error);
}

static struct rig *make(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    the_rig = rig;
    sl_clock_virtual_init(&rig->clock, 1790000000000000000, 7);
    sl_log_init(&rig->log, -1, SL_OFF, SL_LOG_TEXT, &rig->clock.clock);
    rig->folder = test_folder();
    rig->arena = sl_arena_new(64 * 1024);
    sl_buffer_init(&rig->answer.body, SL_ANSWER_BYTES);
    rig->invocation = (struct sl_invocation){
        .request_id = "request-1", .function_arn = "arn:function", .arena = rig->arena};
    return rig;
}

struct rig *rig_new(const char *config)
{
    struct rig *rig = make();
    struct sl_error error = {0};
    if (open_pipeline(rig, config, &error) != SL_OK)
        refuse(error.text);
    return rig;
}

size_t rig_refused(const char *config, struct sl_error *error)
{
    struct rig *rig = make();
    assert_int_equal(open_pipeline(rig, config, error), SL_FATAL);
    assert_int_equal(error->status, SL_FATAL);
    assert_null(rig->p);
    size_t n = rig->n_ports;
    rig_destroy(rig);
    return n;
}

void rig_forget(struct rig *rig)
{
    for (size_t i = 0; i < rig->n_ports; i++) {
        struct rig_port *port = &rig->ports[i];
        for (size_t k = 0; k < port->n; k++) {
            free(port->bodies[k]);
            free(port->keys[k]);
        }
        port->n = port->calls = port->largest = 0;
    }
    for (size_t i = 0; i < RIG_HANDLERS; i++) {
        struct rig_handler *s = &rig->handlers[i];
        s->calls = s->n_applied = s->n_given = s->largest = s->largest_bytes = s->windows = 0;
        memset(s->times, 0, sizeof(s->times));
    }
}

void rig_destroy(struct rig *rig)
{
    rig_forget(rig);
    sl_pipeline_close(rig->p);
    sl_buffer_clean_up(&rig->answer.body);
    if (rig->log.fd >= 0)
        close(rig->log.fd);
    sl_log_clean_up(&rig->log);
    sl_arena_destroy(rig->arena);
    test_folder_remove(rig->folder);
    free(rig->event);
    free(rig);
    the_rig = NULL;
}

void rig_event(struct rig *rig, size_t n, size_t (*key)(size_t))
{
    rig_event_with(rig, n, key, "");
}

void rig_event_with(struct rig *rig, size_t n, size_t (*key)(size_t), const char *members)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 16 << 20);
    sl_buffer_printf(&text, "{%s%s'Records':[", members, members[0] ? "," : "");
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(
            &text,
            "%s{'eventID':'e%zu','eventName':'MODIFY','eventSource':'aws:dynamodb',\n"
            "'dynamodb':{'ApproximateCreationDateTime':1790000000,'Keys':{'PK':{'S':'k%zu'}},"
            "'NewImage':{'PK':{'S':'k%zu'},'v':{'N':'%zu'}},'SequenceNumber':'%zu','SizeBytes':20,"
            "'StreamViewType':'NEW_IMAGE'},"
            "'eventSourceARN':'arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-01T00:00:00.000'}",
            i ? "," : "", i, key ? key(i) : i, key ? key(i) : i, i, 1000 + i);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    rig_event_text(rig, text.ptr, n);
    sl_buffer_clean_up(&text);
}

void rig_event_text(struct rig *rig, const char *text, size_t n)
{
    sl_arena_reset(rig->arena);
    free(rig->event);
    rig->event = strdup(text);
    json_quote(rig->event);
    struct sl_error error = {0};
    const struct sl_decode_options options = {.any_shape = false};
    if (sl_batch_decode(sl_span_str(rig->event), rig->arena, &options, &rig->batch, &error) != SL_OK)
        refuse(error.text);
    assert_int_equal(rig->batch.n, n);
}

static bool remembers(const struct sl_pipeline *p)
{
    bool any = p->memory.n;
    for (size_t i = 0; i < p->n; i++)
        any = any || p->routes[i].aside.n_seen;
    return any;
}

void rig_run(struct rig *rig, int64_t time_ms)
{
    rig->invocation.deadline_ms = rig->clock.ms + time_ms;
    const struct counts before = counts_of(rig->p);
    const bool has_memory = remembers(rig->p);
    sl_dispatch(rig->p, &rig->batch, &rig->invocation, &rig->answer);
    assert_null(rig->log.route); /* lines that follow are of no route */
    assert_false(rig->log.is_in_port);
    const char *wrong = counts_wrong(rig->p, &before, &rig->answer, &rig->batch, has_memory);
    if (wrong)
        print_error("%s\n", wrong);
    assert_null(wrong);
}

void rig_keep_log(struct rig *rig)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/log", rig->folder);
    rig->log.fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    rig->log.level = SL_INFO;
    assert_true(rig->log.fd >= 0);
}

char *rig_log(struct rig *rig)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/log", rig->folder);
    return test_read(path, NULL);
}

const char *rig_body(struct rig *rig)
{
    struct sl_buffer *body = &rig->answer.body;
    sl_buffer_add_char(body, '\0');
    body->len--;
    return body->ptr;
}

void rig_answers(struct rig *rig, const char *body)
{
    assert_string_equal(rig_body(rig), json(body));
}
