/* Scan: one page of a segment a request, read in one pass. An item is a view of the answer. */
#include "sinks/dynamodb/dynamodb_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "streams/value.h"
#include "sinks/result.h"

#include <stdio.h>

/* Of a page's request: names and a key, whose escapes make them up to 6 times as long. */
#define REQUEST_BYTES (1024 * 1024)
/* A page is 1 MB of items, and the item that passes it. */
#define PAGE_BYTES ((size_t)2 * 1024 * 1024 * SL_DYNAMODB_ESCAPED)

struct scan {
    struct sl_dynamodb *table;
    const struct sl_table_scan *asked;
    struct sl_table_page *page;
    struct sl_span name;  /* the table's */
    struct sl_span body;  /* of the request */
    struct sl_span after; /* the text of the key that it begins after; absent: none */
    struct sl_arena *arena;
};

/* ---- answers ---- */

/* What a page says, member by member. */
struct reader {
    struct sl_json_scan s;
    const struct scan *scan;
    struct sl_buffer items; /* spans */
    struct sl_span count, scanned, next, consumed;
    bool has_items;
};

static const char *take_items(struct reader *r, const char *p)
{
    struct sl_json_scan *s = &r->s;
    bool more;
    if (r->has_items || !(p = sl_json_byte(s, p, '[', "a list is expected")))
        return NULL;
    r->has_items = true;
    p = sl_json_space(p, s->end);
    more = p < s->end && *p != ']';
    while (more) {
        const char *end = sl_value_check_item(s, p);
        struct sl_span item = sl_span(p, end ? (size_t)(end - p) : 0);
        /* Only an item of which no attribute was wanted is empty. */
        if (!end || (item.len == 2 && !r->scan->asked->n_names))
            return NULL;
        sl_buffer_add(&r->items, &item, sizeof(item));
        p = sl_json_space(end, s->end);
        more = p < s->end && *p == ',';
        p = more ? sl_json_space(p + 1, s->end) : p;
    }
    return sl_json_byte(s, p, ']', "',' or ']' is expected");
}

/* A member that is there once. */
static const char *take_once(struct reader *r, const char *p, struct sl_span *out)
{
    const char *end = out->ptr ? NULL : sl_json_value(&r->s, p);
    *out = sl_span(p, end ? (size_t)(end - p) : 0);
    return end;
}

/* The value of the member with this name, which no service escapes. NULL when it cannot be a page's. */
static const char *take_member(struct reader *r, struct sl_span name, const char *p)
{
    if (sl_span_is(name, "Items"))
        return take_items(r, p);
    if (sl_span_is(name, "Count"))
        return take_once(r, p, &r->count);
    if (sl_span_is(name, "ScannedCount"))
        return take_once(r, p, &r->scanned);
    if (sl_span_is(name, "LastEvaluatedKey"))
        return take_once(r, p, &r->next);
    if (sl_span_is(name, "ConsumedCapacity"))
        return take_once(r, p, &r->consumed);
    return sl_answer_is_error_member(name) ? NULL : sl_json_value(&r->s, p);
}

static bool read_members(struct reader *r, const char *p)
{
    struct sl_json_scan *s = &r->s;
    bool more = true, escaped;
    p = sl_json_byte(s, sl_json_space(p, s->end), '{', "an object is expected");
    while (p && more) {
        const char *name = sl_json_space(p, s->end);
        const char *end = sl_json_string(s, name, &escaped);
        p = end ? sl_json_byte(s, sl_json_space(end, s->end), ':', "':' is expected") : NULL;
        p = p ? take_member(r, sl_span(name + 1, (size_t)(end - name) - 2), sl_json_space(p, s->end)) : NULL;
        p = p ? sl_json_space(p, s->end) : NULL;
        more = p && p < s->end && *p == ',';
        p = more ? p + 1 : p;
    }
    p = p ? sl_json_byte(s, p, '}', "'}' is expected") : NULL;
    return p && sl_json_space(p, s->end) == s->end;
}

static bool is_count(struct sl_span text, size_t n)
{
    char expected[24];
    int len = snprintf(expected, sizeof(expected), "%zu", n);
    return sl_span_eq(text, sl_span(expected, (size_t)len));
}

/* Absent, or a key; and not the one that the page begins after: that would never end. */
static bool is_next(const struct scan *scan, struct sl_span next)
{
    struct sl_span text;
    if (!next.ptr)
        return true;
    return sl_dynamodb_key_text(scan->arena, scan->name, next, &text, NULL) == SL_OK &&
           !(scan->after.ptr && sl_span_eq(text, scan->after));
}

/* Absent, or an object with a number of units. */
static bool is_consumed(struct sl_span consumed)
{
    struct sl_span units = sl_json_walk_member(consumed, SL_LIT("CapacityUnits"));
    return !consumed.ptr || (units.len && *units.ptr >= '0' && *units.ptr <= '9');
}

static enum sl_job_next answered(struct sl_job *job)
{
    const struct scan *scan = job->context;
    struct sl_arena *arena = job->call->arena;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    body.ptr = sl_arena_copy(arena, body); /* its memory is used again */
    struct reader r = {.s = {.end = sl_span_end(body), .is_loose = true}, .scan = scan};
    sl_buffer_init_in(&r.items, arena, SIZE_MAX);
    if (!read_members(&r, body.ptr) || !sl_json_is_unique(body))
        return SL_JOB_BROKEN;
    size_t n = r.items.len / sizeof(struct sl_span);
    if (!r.has_items || !is_count(r.count, n) || !is_count(r.scanned, n) || !is_next(scan, r.next) ||
        !is_consumed(r.consumed) || (scan->asked->limit && n > scan->asked->limit))
        return SL_JOB_BROKEN;
    scan->page->items = (struct sl_span *)(void *)r.items.ptr;
    scan->page->n = n;
    scan->page->next = r.next;
    scan->page->units = sl_dynamodb_units(r.consumed);
    return SL_JOB_DONE;
}

static const struct sl_job_kind scan_kind = {answered, NULL};

/* ---- requests ---- */

static enum sl_status check(struct scan *scan, struct sl_error *error)
{
    const struct sl_table_scan *asked = scan->asked;
    if (asked->table.ptr && sl_dynamodb_check_table(asked->table, error) != SL_OK)
        return SL_FATAL;
    if (sl_table_check_scan(asked, error) != SL_OK)
        return SL_REJECT;
    return asked->after.ptr ? sl_dynamodb_key_text(scan->arena, scan->name, asked->after, &scan->after, error)
                            : SL_OK;
}

static void add_names(struct sl_buffer *out, const struct sl_table_scan *asked)
{
    for (size_t i = 0; i < asked->n_names; i++)
        sl_buffer_printf(out, "%s#n%zu", i ? "," : ",\"ProjectionExpression\":\"", i);
    for (size_t i = 0; i < asked->n_names; i++) {
        sl_buffer_printf(out, "%s\"#n%zu\":", i ? "," : "\",\"ExpressionAttributeNames\":{", i);
        sl_json_add_string(out, asked->names[i]);
    }
    sl_buffer_add_str(out, asked->n_names ? "}" : "");
}

static enum sl_status write_body(struct scan *scan, struct sl_error *error)
{
    const struct sl_table_scan *asked = scan->asked;
    struct sl_buffer out;
    sl_buffer_init_in(&out, scan->arena, REQUEST_BYTES);
    sl_buffer_add_str(&out, "{\"TableName\":");
    sl_json_add_string(&out, scan->name);
    sl_buffer_printf(&out, ",\"ConsistentRead\":%s,\"ReturnConsumedCapacity\":\"TOTAL\"",
                     asked->is_consistent ? "true" : "false");
    if (asked->of > 1)
        sl_buffer_printf(&out, ",\"Segment\":%u,\"TotalSegments\":%u", asked->segment, asked->of);
    if (asked->limit)
        sl_buffer_printf(&out, ",\"Limit\":%zu", asked->limit);
    if (asked->after.ptr) {
        sl_buffer_add_str(&out, ",\"ExclusiveStartKey\":");
        sl_buffer_add_span(&out, asked->after);
    }
    add_names(&out, asked);
    sl_buffer_add_char(&out, '}');
    scan->body = sl_buffer_span(&out);
    return out.failed ? sl_fail(error, SL_REJECT, "ValidationException",
                                "the names of the attributes that are wanted are too long")
                      : SL_OK;
}

void sl_dynamodb_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                      struct sl_table_page *pages, const struct sl_call *call)
{
    struct sl_dynamodb *table = (struct sl_dynamodb *)port;
    struct sl_arena *scratch = table->client.aws->scratch;
    struct scan *list = sl_arena_zalloc(scratch, n * sizeof(*list));
    struct sl_job *jobs = sl_arena_zalloc(scratch, n * sizeof(*jobs));
    size_t n_jobs = 0;
    for (size_t i = 0; i < n; i++) {
        struct sl_error error = SL_NO_ERROR;
        struct scan *scan = &list[n_jobs];
        *scan = (struct scan){.table = table, .asked = &scans[i], .page = &pages[i], .arena = scratch};
        scan->name = scans[i].table.ptr ? scans[i].table : table->name;
        pages[i] = (struct sl_table_page){.result = {.status = SL_OK}};
        if (check(scan, &error) != SL_OK || write_body(scan, &error) != SL_OK) {
            sl_error_context(&error, "%s: Scan", table->client.name);
            sl_result_refuse(&pages[i].result, call->arena, &error);
            continue;
        }
        jobs[n_jobs++] = (struct sl_job){.kind = &scan_kind,
                                         .context = scan,
                                         .operation = "Scan",
                                         .parts = &scan->body,
                                         .n_parts = 1,
                                         .answer_bytes = PAGE_BYTES,
                                         .of_no_record = true};
    }
    sl_job_run(&table->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++) {
        sl_result_job(&list[i].page->result, &jobs[i]);
        if (port->units)
            port->units->read += list[i].page->units;
    }
    sl_arena_reset(scratch);
}
