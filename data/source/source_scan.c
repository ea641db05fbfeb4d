/* A table, read by Scan: one page of several segments at a time. */
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "data/source/budget.h"
#include "data/source/segment.h"
#include "data/source/source_private.h"

#include <stdlib.h>
#include <string.h>

/* A page is 1 MB at most, by DynamoDB's count; as JSON it is mostly half as long again. */
#define PAGE_BYTES ((size_t)1024 * 1024)
#define PAGES      8
/* What a full page costs when it is read consistently: a unit for each 4 KB. */
#define PAGE_UNITS 256.0
/* What a consistent read of so many bytes costs a unit of. */
#define UNIT_BYTES 4096.0
/* The longest wait for the budget: then the caller is asked, who may have been told to stop. */
#define NAP_MS 1000

struct scan {
    struct sl_source source;
    struct sl_source_scan what;
    struct sl_table_port *port;
    struct sl_segment *segments;
    size_t turn; /* the segment that is next */
    size_t n_open;
    double item_bytes; /* of an item's text, as of late */
    struct sl_budget budget;
};

/* ---- the budget ---- */

static int64_t now_ms(const struct scan *s)
{
    struct sl_clock *clock = s->source.options.sinks->clock;
    return clock->now_ms(clock);
}

/* False: the budget allows no page yet. */
static bool wait_for_budget(struct scan *s, const struct sl_call *call)
{
    struct sl_clock *clock = s->source.options.sinks->clock;
    int64_t now = now_ms(s), most = call->deadline_ms - now < NAP_MS ? call->deadline_ms - now : NAP_MS;
    int64_t wait = sl_budget_wait_ms(&s->budget, now);
    if (wait > 0 && most > 0)
        clock->sleep_ms(clock, wait < most ? wait : most);
    return wait <= most && now_ms(s) < call->deadline_ms;
}

/* ---- pages ---- */

static size_t pages_at_once(const struct scan *s, size_t max_bytes)
{
    size_t n = max_bytes / PAGE_BYTES;
    if (s->what.read_units > 0 && (double)n * PAGE_UNITS > s->what.read_units)
        n = (size_t)(s->what.read_units / PAGE_UNITS);
    n = n < 1 ? 1 : n > PAGES ? PAGES : n;
    return n < s->n_open ? n : s->n_open;
}

/* Items of a page. Whoever asks for less than a page wants to spend less at once. */
static size_t items_at_once(const struct scan *s, size_t n, size_t max_bytes)
{
    size_t most = SL_TEXT_PIECE_RECORDS / n, wanted = (size_t)((double)max_bytes / (double)n / s->item_bytes);
    if (max_bytes >= PAGE_BYTES || wanted > most)
        return most;
    return wanted ? wanted : 1;
}

/* The next open segments in turn. */
static size_t choose(struct scan *s, size_t max_bytes, size_t which[PAGES], struct sl_table_scan scans[PAGES])
{
    size_t n = pages_at_once(s, max_bytes);
    for (size_t k = 0; k < n; s->turn = (s->turn + 1) % s->what.n) {
        const struct sl_segment *segment = &s->segments[s->turn];
        if (segment->is_done)
            continue;
        which[k] = s->turn;
        scans[k++] = (struct sl_table_scan){.segment = segment->number,
                                            .of = s->what.of,
                                            .after = sl_span_str(segment->after),
                                            .is_consistent = true,
                                            .limit = items_at_once(s, n, max_bytes)};
    }
    return n;
}

/* What the page costs, also when the service does not say. */
static double units_of(const struct sl_table_page *page)
{
    double bytes = 0;
    for (size_t i = 0; i < page->n && !(page->units > 0); i++)
        bytes += (double)page->items[i].len;
    return page->units > 0 ? page->units : bytes / UNIT_BYTES;
}

static enum sl_status take_page(struct scan *s, struct sl_segment *segment, const struct sl_table_page *page,
                                struct sl_buffer *text, struct sl_error *error)
{
    for (size_t i = 0; i < page->n; i++) {
        sl_buffer_add_str(text, "{\"Item\":");
        sl_buffer_add_span(text, page->items[i]);
        sl_buffer_add_str(text, "}\n");
    }
    enum sl_status status = sl_segment_move(segment, page, s->source.facts.name, error);
    s->n_open -= segment->is_done;
    return status;
}

static enum sl_status make_batch(struct scan *s, const struct sl_buffer *text, struct sl_source_piece *out,
                                 struct sl_error *error)
{
    const struct sl_source_options *options = &s->source.options;
    const struct sl_decode_options decoding = {.ttl_attribute = options->ttl_attribute, .any_shape = true};
    struct sl_error why = SL_NO_ERROR;
    if (text->len == 0)
        return SL_OK;
    if (sl_batch_decode(sl_buffer_span(text), out->batch.arena, &decoding, &out->batch, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, why.code, "%s: a page of the scan: %s", s->source.facts.name,
                       why.text);
    const struct sl_item_options items = {.name = s->source.facts.name,
                                          .keys = options->keys,
                                          .arn = options->arn.ptr ? options->arn : s->source.facts.table_arn,
                                          .ttl_attribute = options->ttl_attribute};
    return options->as_received ? SL_OK : sl_item_convert(&items, &out->batch, error);
}

static void learn_bytes(struct scan *s, const struct sl_table_page *pages, size_t n, size_t bytes)
{
    size_t items = 0;
    for (size_t i = 0; i < n; i++)
        items += pages[i].result.status == SL_OK ? pages[i].n : 0;
    if (items)
        s->item_bytes = (s->item_bytes + (double)bytes / (double)items) / 2;
}

/* Pages that came are taken, even when others failed: those are asked for again. */
static enum sl_status read_pages(struct scan *s, size_t max_bytes, const struct sl_call *call,
                                 struct sl_source_piece *out, struct sl_error *error)
{
    struct sl_table_scan scans[PAGES] = {{.of = 0}};
    struct sl_table_page pages[PAGES];
    size_t which[PAGES], n = choose(s, max_bytes, which, scans), n_taken = 0, bytes = 0;
    const struct sl_result *failed = NULL;
    enum sl_status status = SL_OK;
    double spent = 0;
    struct sl_buffer text;
    s->port->scan(s->port, scans, n, pages, call);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; pages[i].result.status == SL_OK && k < pages[i].n; k++)
            bytes += pages[i].items[k].len + 16;
    sl_buffer_init_in(&text, call->arena, UINT32_MAX);
    sl_buffer_reserve(&text, bytes + 1);
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        out->units += pages[i].units;
        bool is_worse = !failed || pages[i].result.status > failed->status;
        if (pages[i].result.status != SL_OK) {
            failed = is_worse ? &pages[i].result : failed;
            continue;
        }
        spent += units_of(&pages[i]);
        status = take_page(s, &s->segments[which[i]], &pages[i], &text, error);
        n_taken++;
    }
    sl_budget_use(&s->budget, spent);
    if (status != SL_OK)
        return status;
    /* What did not come in time is asked for again. */
    if (n_taken == 0 && failed && failed->status == SL_RETRY && now_ms(s) >= call->deadline_ms)
        return SL_OK;
    if (n_taken == 0 && failed)
        return sl_fail(error, failed->status, failed->code, "%s", failed->text);
    out->stored_bytes = text.len;
    learn_bytes(s, pages, n, text.len);
    return make_batch(s, &text, out, error);
}

/* ---- the place ---- */

/* {"scan":"dynamodb://orders","of":4,"first":0,"time":1795168800250,"segments":[0,{"PK":{"S":"a"}},1,0]}: not
 * begun, where it goes on, done. */
static void add_place(const struct scan *s, const struct sl_call *call, struct sl_source_piece *out)
{
    struct sl_buffer place;
    sl_source_place_begin(&place, call, "scan", sl_span_str(s->what.target));
    sl_json_add_integer(&place, "of", s->what.of);
    sl_json_add_integer(&place, "first", s->what.first);
    sl_json_add_integer(&place, "time", s->source.facts.time_ms);
    sl_buffer_add_str(&place, ",\"segments\":[");
    for (size_t i = 0; i < s->what.n; i++) {
        const struct sl_segment *segment = &s->segments[i];
        sl_buffer_add_str(&place, i ? "," : "");
        sl_buffer_add_str(&place, segment->is_done ? "1" : segment->after ? segment->after : "0");
    }
    sl_buffer_add_char(&place, ']');
    out->place = sl_source_place_end(&place);
}

/* {"PK":{"S":"a"},"SK":{"N":"1"}} */
static bool is_key(struct sl_span text)
{
    struct sl_json_walk walk = sl_json_walk(text);
    struct sl_span name, value, tag, content;
    size_t n = 0;
    if (!text.len || text.ptr[0] != '{')
        return false;
    for (; sl_json_walk_next(&walk, &name, &value); n++) {
        struct sl_json_walk inner = sl_json_walk(value);
        if (value.ptr[0] != '{' || !sl_json_walk_next(&inner, &tag, &content) || tag.len != 1 ||
            !strchr("SNB", tag.ptr[0]) || content.ptr[0] != '"')
            return false;
    }
    return n == 1 || n == 2;
}

static bool read_segment(struct sl_segment *segment, struct sl_span text)
{
    segment->is_done = sl_span_is(text, "1");
    if (is_key(text))
        sl_segment_go_on(segment, text);
    return segment->is_done || segment->after || sl_span_is(text, "0");
}

static enum sl_status go_on(struct scan *s, struct sl_error *error)
{
    bool is_there;
    uint64_t of = 0, first = 0, time_ms = 0;
    struct sl_source *source = &s->source;
    enum sl_status status =
        sl_source_place_check(source, "scan", sl_span_str(s->what.target), &is_there, error);
    if (status != SL_OK || !is_there)
        return status;
    bool is_whole = sl_source_place_number(source, "of", &of) &&
                    sl_source_place_number(source, "first", &first) &&
                    sl_source_place_number(source, "time", &time_ms);
    struct sl_json_walk walk = sl_json_walk(sl_json_find(source->options.place, "segments"));
    struct sl_span text;
    size_t n = 0;
    while (is_whole && sl_json_walk_next(&walk, NULL, &text))
        is_whole = n < s->what.n && read_segment(&s->segments[n++], text);
    if (!is_whole || n != s->what.n || of != s->what.of || first != s->what.first)
        return sl_source_place_bad(source, error);
    for (size_t i = 0; i < n; i++)
        s->n_open -= s->segments[i].is_done;
    source->facts.time_ms = (int64_t)time_ms;
    return SL_OK;
}

/* ---- the source ---- */

static enum sl_status pull(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                           struct sl_source_piece *out, struct sl_error *error)
{
    struct scan *s = (struct scan *)source;
    enum sl_status status = SL_OK;
    if (s->n_open && wait_for_budget(s, call))
        status = read_pages(s, max_bytes, call, out, error);
    if (status != SL_OK)
        return status;
    out->is_last = s->n_open == 0;
    add_place(s, call, out);
    return SL_OK;
}

static void close_scan(struct sl_source *source)
{
    struct scan *s = (struct scan *)source;
    for (size_t i = 0; s->segments && i < s->what.n; i++)
        sl_segment_clean_up(&s->segments[i]);
    free(s->segments);
    if (s->port)
        s->port->close(s->port);
}

static enum sl_status check_segments(const struct sl_source_scan *what, struct sl_error *error)
{
    if (what->of >= 1 && what->of <= SL_TABLE_SEGMENTS_MAX && what->n >= 1 && what->first < what->of &&
        what->n <= what->of - what->first)
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "InvalidSegment",
        "%s: segments %u to %llu of %u: segments are counted from 0, and there are 1 to %d of them",
        what->target, what->first, (unsigned long long)what->first + what->n - 1, what->of,
        SL_TABLE_SEGMENTS_MAX);
}

/* The keys that the caller names have to be the table's; their order is the table's. */
static enum sl_status settle_keys(struct scan *s, const struct sl_table_facts *facts, struct sl_error *error)
{
    struct sl_source_keys *keys = &s->source.options.keys;
    struct sl_source_keys of_table = {.n = facts->n_keys};
    for (size_t i = 0; i < facts->n_keys; i++)
        of_table.names[i] =
            sl_span(sl_arena_copy(s->source.arena, facts->keys[i].name), facts->keys[i].name.len);
    bool is_same = keys->n == of_table.n;
    for (size_t i = 0; i < keys->n && is_same; i++)
        is_same = sl_span_eq(keys->names[i], of_table.names[0]) ||
                  (of_table.n > 1 && sl_span_eq(keys->names[i], of_table.names[1]));
    if (facts->n_keys == 0)
        return SL_OK;
    if (keys->n && !is_same)
        return sl_fail(error, SL_REJECT, "InvalidKeys",
                       "%s: its key attributes are %.*s%s%.*s, not %.*s%s%.*s", s->what.target,
                       SL_ARG(of_table.names[0]), of_table.n > 1 ? "," : "", SL_ARG(of_table.names[1]),
                       SL_ARG(keys->names[0]), keys->n > 1 ? "," : "", SL_ARG(keys->names[1]));
    if (keys->n == 0)
        *keys = of_table;
    return SL_OK;
}

static enum sl_status describe(struct scan *s, const struct sl_call *call, struct sl_error *error)
{
    struct sl_table_facts facts;
    struct sl_source_facts *known = &s->source.facts;
    s->port->describe(s->port, sl_span(NULL, 0), &facts, call);
    if (facts.result.status != SL_OK)
        return sl_fail(error, facts.result.status, facts.result.code, "%s", facts.result.text);
    known->items = facts.items;
    known->bytes = facts.bytes;
    if (facts.arn.ptr)
        known->table_arn = sl_span(sl_arena_copy(s->source.arena, facts.arn), facts.arn.len);
    return settle_keys(s, &facts, error);
}

static enum sl_status open_table(struct scan *s, const struct sl_call *call, struct sl_error *error)
{
    enum sl_status status = check_segments(&s->what, error);
    if (status == SL_OK)
        status =
            sl_target_table_to_read(s->source.options.sinks, sl_span_str(s->what.target), &s->port, error);
    if (status != SL_OK)
        return status;
    if (!s->port->scan || !s->port->describe)
        return sl_fail(error, SL_FATAL, "InvalidTarget", "%s: this kind of target cannot be scanned",
                       s->what.target);
    s->segments = calloc(s->what.n, sizeof(*s->segments));
    if (!s->segments)
        sl_die("out of memory: %u segments", s->what.n);
    for (uint32_t i = 0; i < s->what.n; i++)
        s->segments[i].number = s->what.first + i;
    s->n_open = s->what.n;
    return describe(s, call, error);
}

enum sl_status sl_source_open_scan(const struct sl_source_options *options, const struct sl_source_scan *what,
                                   const struct sl_call *call, struct sl_source **out, struct sl_error *error)
{
    struct scan *s = sl_source_new(options, sizeof(*s));
    struct sl_clock *clock = options->sinks->clock;
    s->source.pull = pull;
    s->source.close = close_scan;
    s->what = *what;
    s->item_bytes = 1024;
    sl_budget_init(&s->budget, what->read_units, now_ms(s));
    s->source.facts = (struct sl_source_facts){
        .name = what->target, .time_ms = clock->wall_ns(clock) / 1000000, .is_items = true};
    enum sl_status status = open_table(s, call, error);
    if (status == SL_OK)
        status = go_on(s, error);
    if (status != SL_OK)
        sl_source_close(&s->source);
    else
        *out = &s->source;
    return status;
}
