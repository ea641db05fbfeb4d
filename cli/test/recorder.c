/* Targets that keep what is done to them: see cli/test/recorder.h. */
#include "cli/test/recorder.h"

#include "base/array.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/json_write.h"
#include "cli/dry.h"
#include "streams/value.h"

#include <stdlib.h>
#include <string.h>

#define OWN_PREFIX    "sluice_"
#define OWN_KEY       "sluice:"
#define DELETED       "sluice_deleted"
#define EXPANDED_MOST ((size_t)256 * 1024 * 1024) /* of one object */
#define LINE_MOST     ((size_t)512 * 1024 * 1024)

/* In the order in which they are shown. */
enum kind { MESSAGE, OBJECT, ROW };

/* What one route did. */
struct event {
    enum kind kind;
    const char *route;
    struct sl_span table; /* of a row: its target */
    struct sl_span key;   /* the object's, or the row's; absent for a message */
    struct sl_span json;  /* the members that follow the route's */
    size_t number;
};

struct sl_recorder {
    struct sl_arena *arena;
    const struct sl_log *log;
    const char *folder;
    struct event *events;
    size_t n, room;
    const char **tables; /* targets: each is a table of the file */
    size_t n_tables, room_tables;
};

static struct sl_recorder *current;

struct sl_recorder *sl_recorder_new(const char *folder, const struct sl_log *log, struct sl_arena *arena)
{
    struct sl_recorder *r = sl_arena_zalloc(arena, sizeof(*r));
    *r = (struct sl_recorder){.arena = arena, .log = log, .folder = folder};
    current = r;
    return r;
}

static struct sl_span kept(struct sl_recorder *r, struct sl_span text)
{
    return sl_span(sl_arena_copy(r->arena, text), text.len);
}

/* A row that is touched again is one row. */
static void add_event(struct sl_recorder *r, enum kind kind, struct sl_span table, struct sl_span key,
                      const struct sl_buffer *json)
{
    struct event *event = NULL;
    const char *route = r->log->route;
    if (!route)
        return;
    for (size_t i = 0; i < r->n && kind != MESSAGE; i++) {
        struct event *e = &r->events[i];
        if (e->kind == kind && strcmp(e->route, route) == 0 && sl_span_eq(e->table, table) &&
            sl_span_eq(e->key, key))
            event = e;
    }
    if (!event) {
        event = &SL_PUSH_IN(r->arena, r->events, r->n, r->room);
        *event = (struct event){.kind = kind,
                                .route = sl_arena_copy(r->arena, sl_span_str(route)),
                                .table = table,
                                .key = kept(r, key),
                                .number = r->n};
    }
    event->json = kept(r, sl_buffer_span(json));
}

static void succeed(struct sl_result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){.status = SL_OK};
}

/* Text that is JSON stays JSON. */
static void add_text(struct sl_buffer *out, struct sl_span text)
{
    struct sl_error ignored = SL_NO_ERROR;
    if (text.len && sl_json_check(text, &ignored) == SL_OK)
        sl_json_add_compact(out, text);
    else
        sl_json_add_string(out, text);
}

static void add_member(struct sl_buffer *out, const char *name, struct sl_span text)
{
    sl_buffer_printf(out, ",\"%s\":", name);
    add_text(out, text);
}

/* ---- queues ---- */

static void add_attributes(struct sl_buffer *out, const struct sl_message *m)
{
    sl_buffer_add_str(out, ",\"attributes\":{");
    for (size_t i = 0; i < m->n_attributes; i++) {
        sl_buffer_add_str(out, i ? "," : "");
        sl_json_add_string(out, m->attributes[i].name);
        sl_buffer_add_char(out, ':');
        sl_json_add_string(out, m->attributes[i].value);
    }
    sl_buffer_add_char(out, '}');
}

/* A parked record, in a queue or an object: the answer's notes say more of it. */
static bool is_parked(struct sl_span body)
{
    return sl_span_starts(body, SL_LIT("{\"sluiceParked\":"));
}

static void take_messages(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)call;
    for (size_t i = 0; i < n; i++) {
        const struct sl_message *m = &messages[i];
        struct sl_buffer text;
        if (is_parked(m->body))
            continue;
        sl_buffer_init(&text, LINE_MOST);
        add_member(&text, "message", m->body);
        if (m->subject.len)
            add_member(&text, "subject", m->subject);
        if (m->n_attributes)
            add_attributes(&text, m);
        add_event(current, MESSAGE, sl_span(NULL, 0), sl_span(NULL, 0), &text);
        sl_buffer_clean_up(&text);
    }
    succeed(results, n);
}

static void close_queue(struct sl_queue_port *port)
{
    (void)port;
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    struct sl_queue_port *dry;
    enum sl_status status = sl_dry_openers.queue(sinks, url, &dry, error);
    if (status != SL_OK)
        return status;
    *out = sl_arena_zalloc(current->arena, sizeof(**out));
    **out = (struct sl_queue_port){.size = sizeof(**out),
                                   .max_message_bytes = dry->max_message_bytes,
                                   .apply = take_messages,
                                   .close = close_queue};
    return SL_OK;
}

/* ---- objects ---- */

static void add_lines(struct sl_buffer *out, struct sl_span body)
{
    struct sl_buffer plain;
    struct sl_error ignored = SL_NO_ERROR;
    sl_buffer_init(&plain, EXPANDED_MOST);
    if (sl_gzip_is(body) && sl_gzip_expand(body, &plain, &ignored) == SL_OK)
        body = sl_buffer_span(&plain);
    sl_buffer_add_str(out, ",\"lines\":[");
    for (bool is_first = true; body.len; is_first = false) {
        sl_buffer_add_str(out, is_first ? "" : ",");
        add_text(out, sl_span_cut(&body, '\n'));
    }
    sl_buffer_add_char(out, ']');
    sl_buffer_clean_up(&plain);
}

static void take_objects(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                         struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    (void)call;
    for (size_t i = 0; i < n; i++) {
        struct sl_buffer text;
        if (is_parked(objects[i].body))
            continue;
        sl_buffer_init(&text, LINE_MOST);
        sl_buffer_add_str(&text, ",\"object\":");
        sl_json_add_string(&text, objects[i].key);
        add_lines(&text, objects[i].body);
        add_event(current, OBJECT, sl_span(NULL, 0), objects[i].key, &text);
        sl_buffer_clean_up(&text);
    }
    succeed(results, n);
}

static void close_objects(struct sl_object_port *port)
{
    (void)port;
}

static enum sl_status open_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    struct sl_object_port *dry;
    enum sl_status status = sl_dry_openers.objects(sinks, url, &dry, error);
    if (status != SL_OK)
        return status;
    *out = sl_arena_zalloc(current->arena, sizeof(**out));
    **out = (struct sl_object_port){.size = sizeof(**out),
                                    .max_body_bytes = dry->max_body_bytes,
                                    .apply = take_objects,
                                    .close = close_objects};
    return SL_OK;
}

/* ---- tables ---- */

struct table {
    struct sl_table_port base;
    struct sl_table_port *inner;
    struct sl_span url;
};

static bool is_own(struct sl_span name)
{
    return sl_span_starts(name, SL_LIT(OWN_PREFIX));
}

/* The item without what is Sluice's own. False: it is the mark of a deletion. */
static bool without_own(struct sl_span item, struct sl_buffer *out)
{
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_M, .raw = item});
    struct sl_span name;
    struct sl_value value;
    bool is_first = true;
    sl_buffer_add_char(out, '{');
    while (sl_value_next(&iter, &name, &value)) {
        if (sl_span_is(name, DELETED))
            return false;
        if (is_own(name))
            continue;
        sl_buffer_printf(out, "%s\"%.*s\":", is_first ? "" : ",", SL_ARG(name));
        if (sl_buffer_reserve(out, value.raw.len + SL_VALUE_JSON_BYTES))
            out->len = (size_t)(sl_value_put(out->ptr + out->len, value) - out->ptr);
        is_first = false;
    }
    sl_buffer_add_char(out, '}');
    return true;
}

static void note_row(const struct table *t, struct sl_span key, struct sl_span item)
{
    struct sl_buffer shown, text;
    sl_buffer_init(&shown, LINE_MOST);
    sl_buffer_init(&text, LINE_MOST);
    bool is_there = item.ptr && without_own(item, &shown);
    sl_buffer_add_str(&text, is_there ? ",\"row\":" : ",\"gone\":");
    sl_value_plain((struct sl_value){.type = SL_M, .raw = is_there ? sl_buffer_span(&shown) : key}, &text);
    add_event(current, ROW, t->url, key, &text);
    sl_buffer_clean_up(&shown);
    sl_buffer_clean_up(&text);
}

/* Rows of Sluice's own stand beside the user's where a handler has no table for them. */
static bool is_own_row(struct sl_span key)
{
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_M, .raw = key});
    struct sl_span name;
    struct sl_value value;
    while (sl_value_next(&iter, &name, &value))
        if (value.type == SL_S && sl_span_starts(value.raw, SL_LIT(OWN_KEY)))
            return true;
    return false;
}

static bool is_shown(const struct sl_table_op *op, const struct sl_result *result)
{
    bool writes = op->verb == SL_TABLE_PUT || op->verb == SL_TABLE_DELETE || op->verb == SL_TABLE_UPDATE;
    return writes && !op->table.ptr && result->status == SL_OK && !is_own_row(op->key);
}

/* Reads the rows that were written, as they are now. */
static void note_rows(struct table *t, const struct sl_table_op *ops, size_t n,
                      const struct sl_result *results, const struct sl_call *call)
{
    for (size_t i = 0; i < n; i++) {
        const struct sl_table_op get = {.verb = SL_TABLE_GET, .key = ops[i].key};
        struct sl_result row = {0};
        if (!is_shown(&ops[i], &results[i]))
            continue;
        t->inner->apply(t->inner, &get, 1, &row, call);
        note_row(t, ops[i].key, row.item);
    }
}

static void apply_to_table(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                           struct sl_result *results, const struct sl_call *call)
{
    struct table *t = (struct table *)port;
    t->inner->apply(t->inner, ops, n, results, call);
    note_rows(t, ops, n, results, call);
}

static void scan_table(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                       struct sl_table_page *pages, const struct sl_call *call)
{
    struct table *t = (struct table *)port;
    t->inner->scan(t->inner, scans, n, pages, call);
}

static void describe_table(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                           const struct sl_call *call)
{
    struct table *t = (struct table *)port;
    t->inner->describe(t->inner, table, facts, call);
}

static void close_table(struct sl_table_port *port)
{
    struct table *t = (struct table *)port;
    t->inner->close(t->inner);
}

/* Routes that name the same target write into one table. */
static size_t number_of(struct sl_recorder *r, struct sl_span url)
{
    size_t i = 0;
    while (i < r->n_tables && !sl_span_is(url, r->tables[i]))
        i++;
    if (i == r->n_tables)
        SL_PUSH_IN(r->arena, r->tables, r->n_tables, r->room_tables) = sl_arena_copy(r->arena, url);
    return i;
}

static enum sl_status open_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    struct sl_recorder *r = current;
    struct sl_table_port *dry, *inner;
    enum sl_status status = sl_dry_openers.table(sinks, url, &dry, error);
    const char *own =
        sl_arena_printf(r->arena, "sqlite:%s/tables.db?table=target%zu", r->folder, number_of(r, url));
    if (status == SL_OK)
        status = sl_target_table(sinks, sl_span_str(own), &inner, error);
    if (status != SL_OK)
        return status;
    struct table *t = sl_arena_zalloc(r->arena, sizeof(*t));
    *t = (struct table){.inner = inner, .url = kept(r, url)};
    t->base = (struct sl_table_port){.size = sizeof(t->base),
                                     .max_item_bytes = dry->max_item_bytes,
                                     .apply = apply_to_table,
                                     .close = close_table,
                                     .scan = scan_table,
                                     .describe = describe_table,
                                     .can = dry->can};
    *out = &t->base;
    return SL_OK;
}

const struct sl_openers sl_recorder_openers = {
    .kind = sl_target_kind, .objects = open_objects, .table = open_table, .queue = open_queue};

/* ---- what was recorded ---- */

static int by_place(const void *a, const void *b)
{
    const struct event *of_a = a, *of_b = b;
    int order = (of_a->kind > of_b->kind) - (of_a->kind < of_b->kind);
    if (!order && of_a->kind != MESSAGE)
        order = sl_span_compare(of_a->key, of_b->key);
    return order ? order : (of_a->number > of_b->number) - (of_a->number < of_b->number);
}

void sl_recorder_add_route(const struct sl_recorder *r, struct sl_span route, struct sl_buffer *out)
{
    if (r->n)
        qsort(r->events, r->n, sizeof(*r->events), by_place);
    for (size_t i = 0; i < r->n; i++) {
        if (!sl_span_is(route, r->events[i].route))
            continue;
        sl_buffer_add_str(out, "{\"route\":");
        sl_json_add_string(out, route);
        sl_buffer_add_span(out, r->events[i].json);
        sl_buffer_add_str(out, "},\n");
    }
}
