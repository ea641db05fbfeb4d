/* Pages of an index: its documents in the order of their keys' digests (the field sluice_hash), of which a
 * segment has an even range. The place after a page is the digest of its last document, so nothing is kept on
 * the server between two pages. What others put into the index has no digest: it comes after the first
 * segment. */
#include "sinks/opensearch/opensearch_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "sinks/result.h"

#include <stdio.h>

/* Of items, as DynamoDB's pages. */
#define PAGE_BYTES ((size_t)1024 * 1024)
/* Documents of a page: OpenSearch's limit is index.max_result_window, by default 10,000. */
#define PAGE_DOCS 1000
/* Expected at first. */
#define ITEM_BYTES 8192
/* Whatever is in the index: a longer answer is not read. */
#define ANSWER_BYTES ((size_t)256 * 1024 * 1024)

/* The place after the last document that has a digest, and after 25 of those that have none: "~25". */
#define STRANGERS '~'
/* So many of them are told: index.max_result_window. */
#define STRANGERS_MAX 10000

struct page {
    struct sl_opensearch *index;
    const struct sl_table_scan *asked;
    struct sl_table_page *out;
    const struct sl_call *call;
    size_t size;                          /* documents that are asked for */
    bool is_of_strangers;                 /* documents without a digest, */
    size_t from;                          /* from this one on */
    char after[SL_OPENSEARCH_HASH_BYTES]; /* "": from the beginning */
    char last[SL_OPENSEARCH_HASH_BYTES];  /* of the documents that were taken */
    struct sl_span body;
    size_t bytes, n_hits, n_strangers;
    bool is_cut; /* there were more documents than the page holds */
};

/* ---- places ---- */

static bool is_hash(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!((text.ptr[i] >= '0' && text.ptr[i] <= '9') || (text.ptr[i] >= 'a' && text.ptr[i] <= 'f')))
            return false;
    return text.len == SL_OPENSEARCH_HASH_BYTES - 1;
}

/* 0 when it is not a number. */
static size_t number_of(struct sl_span digits)
{
    size_t n = 0;
    for (size_t i = 0; i < digits.len && n < SIZE_MAX / 16; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return 0;
        n = n * 10 + (size_t)(digits.ptr[i] - '0');
    }
    return n;
}

/* {"sluice_hash":{"S":"..."}}: a place that a page named; any other key has a digest. */
static enum sl_status read_after(struct page *p, struct sl_error *error)
{
    struct sl_span after = p->asked->after;
    struct sl_buffer key;
    sl_buffer_init(&key, SIZE_MAX);
    enum sl_status status = sl_table_key_text(after, &key, error);
    struct sl_span place =
        status == SL_OK
            ? sl_json_walk_member(sl_json_walk_member(after, SL_LIT(SL_OPENSEARCH_HASH)), SL_LIT("S"))
            : sl_span(NULL, 0);
    place = place.len >= 2 ? sl_span(place.ptr + 1, place.len - 2) : sl_span(NULL, 0);
    p->is_of_strangers = place.len && place.len < 8 && *place.ptr == STRANGERS;
    if (p->is_of_strangers)
        p->from = number_of(sl_span_from(place, 1));
    if (status == SL_OK && !p->is_of_strangers) {
        if (is_hash(place))
            memcpy(p->after, place.ptr, place.len);
        else
            sl_opensearch_hash(p->index, sl_buffer_span(&key), p->after);
    }
    sl_buffer_clean_up(&key);
    return status;
}

static void set_next(struct page *p, const char *place)
{
    const char *next = sl_arena_printf(p->call->arena, "{\"" SL_OPENSEARCH_HASH "\":{\"S\":\"%s\"}}", place);
    p->out->next = sl_span_str(next);
}

/* ---- asking ---- */

/* Where a segment begins, as 16 digits; the segment after the last begins nowhere. */
static void bound(const struct sl_table_scan *asked, uint32_t segment, char out[17])
{
    uint64_t of = asked->of ? asked->of : 1, whole = UINT64_MAX / of, rest = UINT64_MAX % of + 1;
    uint64_t at = whole * segment + rest * segment / of;
    snprintf(out, 17, "%016llx", (unsigned long long)at);
}

static bool is_plain_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (strchr(".*,\\\"", name.ptr[i]) || (unsigned char)name.ptr[i] < 0x20)
            return false;
    return name.len > 0;
}

static void add_names(struct sl_buffer *body, const struct sl_table_scan *asked)
{
    bool are_plain = asked->n_names > 0;
    for (size_t i = 0; i < asked->n_names && are_plain; i++)
        are_plain = is_plain_name(asked->names[i]);
    if (!are_plain)
        return;
    sl_buffer_add_str(body, ",\"_source\":[\"" SL_OPENSEARCH_TYPES "\"");
    for (size_t i = 0; i < asked->n_names; i++) {
        sl_buffer_add_char(body, ',');
        sl_json_add_string(body, asked->names[i]);
    }
    sl_buffer_add_char(body, ']');
}

static void add_range(struct sl_buffer *body, const struct page *p)
{
    char from[17], to[17];
    uint32_t of = p->asked->of ? p->asked->of : 1;
    bound(p->asked, p->asked->segment, from);
    sl_buffer_printf(body, "\"query\":{\"range\":{\"" SL_OPENSEARCH_HASH "\":{\"gte\":\"%s\"", from);
    if (p->asked->segment + 1 < of) {
        bound(p->asked, p->asked->segment + 1, to);
        sl_buffer_printf(body, ",\"lt\":\"%s\"", to);
    }
    sl_buffer_add_str(body, "}}},\"sort\":[{\"" SL_OPENSEARCH_HASH "\":\"asc\"}],\"track_total_hits\":false");
    if (p->after[0])
        sl_buffer_printf(body, ",\"search_after\":[\"%s\"]", p->after);
}

static void write_body(struct page *p)
{
    struct sl_buffer body;
    sl_buffer_init_in(&body, p->index->client.aws->scratch, SIZE_MAX);
    sl_buffer_printf(&body, "{\"size\":%zu,", p->size);
    if (p->is_of_strangers)
        sl_buffer_printf(
            &body,
            "\"from\":%zu,\"query\":{\"bool\":{\"must_not\":[{\"exists\":{\"field\":\"" SL_OPENSEARCH_HASH
            "\"}}]}},\"sort\":[\"_seq_no\"],\"track_total_hits\":true",
            p->from);
    else
        add_range(&body, p);
    add_names(&body, p->asked);
    sl_buffer_add_char(&body, '}');
    p->body = sl_buffer_span(&body);
}

/* ---- the answer ---- */

static bool is_of_segment(const struct page *p, struct sl_span hash)
{
    char from[17], to[17];
    bound(p->asked, p->asked->segment, from);
    bound(p->asked, p->asked->segment + 1, to);
    bool is_last = p->asked->of < 2 || p->asked->segment + 1 == p->asked->of;
    return memcmp(hash.ptr, from, 16) >= 0 && (is_last || memcmp(hash.ptr, to, 16) < 0);
}

/* {"sort":["<hash>"]}, after the one before. */
static bool take_place(struct page *p, struct sl_span hit)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_walk_member(hit, SL_LIT("sort")));
    struct sl_span value, more;
    if (p->is_of_strangers)
        return true;
    if (!sl_json_walk_next(&walk, NULL, &value) || sl_json_walk_next(&walk, NULL, &more) || value.len < 2)
        return false;
    value = sl_span(value.ptr + 1, value.len - 2);
    const char *before = p->last[0] ? p->last : p->after;
    if (!is_hash(value) || !is_of_segment(p, value) || (*before && memcmp(value.ptr, before, value.len) < 0))
        return false;
    memcpy(p->last, value.ptr, value.len);
    return true;
}

static struct sl_span id_of(struct sl_span hit)
{
    struct sl_span id = sl_json_walk_member(hit, SL_LIT("_id"));
    return id.len >= 2 ? sl_span(id.ptr + 1, id.len - 2) : sl_span("", 0);
}

static bool is_in_place(const struct page *p, struct sl_span hit, struct sl_span item)
{
    return sl_opensearch_is_in_place(p->index, item, id_of(hit));
}

/* A document under an id that is not its key's cannot be read by its key. All that is said of it is its id:
 * so nobody takes it for the item. */
static struct sl_span astray(const struct page *p, struct sl_span hit)
{
    return sl_span_str(sl_arena_printf(p->call->arena, "{\"_id\":{\"S\":\"%.*s\"}}", SL_ARG(id_of(hit))));
}

static bool take_hit(struct page *p, struct sl_span hit)
{
    struct sl_span source = sl_json_walk_member(hit, SL_LIT("_source"));
    p->n_hits++;
    if (!source.len || *source.ptr != '{')
        return false;
    if (p->is_cut)
        return true;
    if (p->bytes >= PAGE_BYTES) {
        p->is_cut = true;
        return true;
    }
    if (!take_place(p, hit))
        return false;
    struct sl_span item = sl_opensearch_item(source, p->call->arena);
    p->bytes += sl_item_bytes(item);
    if (!p->asked->n_names && !is_in_place(p, hit, item))
        item = astray(p, hit);
    p->out->items[p->out->n++] = sl_table_project(p->asked, item, p->call->arena);
    return true;
}

/* All shards have answered, in time. (A shard that was skipped, as nothing of it can match, is successful.)
 */
static bool is_whole(struct sl_span body)
{
    struct sl_span shards = sl_json_walk_member(body, SL_LIT("_shards"));
    struct sl_span total = sl_opensearch_digits(shards, "total");
    return sl_span_is(sl_opensearch_digits(shards, "failed"), "0") && total.len &&
           sl_span_eq(total, sl_opensearch_digits(shards, "successful")) &&
           sl_span_is(sl_json_walk_member(body, SL_LIT("timed_out")), "false");
}

static enum sl_job_next refuse_strangers(struct sl_job *job, size_t total)
{
    job->code = "Strangers";
    job->text = sl_arena_printf(job->call->arena,
                                "%s: Search: %zu documents of the index have no " SL_OPENSEARCH_HASH
                                ": Sluice did not write them, and tells at most %d; remove them",
                                job->client->name, total, STRANGERS_MAX);
    return SL_JOB_FATAL;
}

static enum sl_job_next answered(struct sl_job *job)
{
    struct page *p = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body), hit;
    p->out->n = p->bytes = p->n_hits = 0;
    p->is_cut = false;
    p->last[0] = '\0';
    if (!sl_answer_is_json(body) || !sl_json_walk(body).is_object || !is_whole(body))
        return SL_JOB_BROKEN;
    struct sl_span hits = sl_json_walk_member(body, SL_LIT("hits")),
                   list = sl_json_walk_member(hits, SL_LIT("hits"));
    if (!list.len || *list.ptr != '[')
        return SL_JOB_BROKEN;
    struct sl_span total = sl_opensearch_digits(sl_json_walk_member(hits, SL_LIT("total")), "value");
    if (p->is_of_strangers && !total.len)
        return SL_JOB_BROKEN;
    if (p->is_of_strangers && number_of(total) > STRANGERS_MAX)
        return refuse_strangers(job, number_of(total));
    struct sl_json_walk walk = sl_json_walk(list);
    while (sl_json_walk_next(&walk, NULL, &hit)) {
        if (sl_opensearch_is_elsewhere(p->index, hit))
            return sl_opensearch_moved(p->index, job);
        if (p->n_hits == p->size || !take_hit(p, hit))
            return SL_JOB_BROKEN;
    }
    p->n_strangers = number_of(total);
    size_t left = p->n_strangers > p->from ? p->n_strangers - p->from : 0;
    bool is_short = p->is_of_strangers && p->n_hits != (left < p->size ? left : p->size);
    return is_short ? SL_JOB_BROKEN : SL_JOB_DONE;
}

static const struct sl_job_kind page_kind = {answered, sl_opensearch_refused};

/* ---- pages ---- */

static enum sl_status check(struct page *p, struct sl_error *error)
{
    const struct sl_table_scan *asked = p->asked;
    if (asked->table.ptr)
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "%.*s: an OpenSearch target is one index, without tables beside it",
                       SL_ARG(asked->table));
    if (sl_table_check_scan(asked, error) != SL_OK)
        return SL_REJECT;
    return asked->after.ptr ? read_after(p, error) : SL_OK;
}

static size_t page_size(const struct sl_opensearch *index, const struct sl_table_scan *asked)
{
    size_t each = index->item_bytes ? index->item_bytes : ITEM_BYTES, n = PAGE_BYTES / each + 2;
    n = n < PAGE_DOCS ? n : PAGE_DOCS;
    return asked->limit && asked->limit < n ? asked->limit : n;
}

static struct sl_job begin(struct page *p)
{
    struct sl_job job = sl_opensearch_job(p->index, &page_kind, "Search", "/_search");
    p->size = page_size(p->index, p->asked);
    if (p->is_of_strangers && p->from + p->size > STRANGERS_MAX)
        p->size = p->from < STRANGERS_MAX ? STRANGERS_MAX - p->from : 1;
    p->out->items = sl_arena_alloc(p->call->arena, (p->size + 1) * sizeof(struct sl_span));
    write_body(p);
    job.query = "allow_partial_search_results=false&preference=_primary";
    job.context = p;
    job.parts = &p->body;
    job.n_parts = 1;
    job.of_no_record = true;
    job.answer_bytes = ANSWER_BYTES;
    return job;
}

static void finish(struct page *p, const struct sl_job *job)
{
    sl_result_job(&p->out->result, job);
    if (job->status != SL_OK) {
        p->out->items = NULL;
        p->out->n = 0;
        return;
    }
    if (p->out->n)
        p->index->item_bytes =
            (p->index->item_bytes * 3 + p->bytes / p->out->n) / (p->index->item_bytes ? 4 : 1) + 1;
    bool is_full = p->is_cut || p->n_hits == p->size;
    size_t from = p->is_of_strangers ? p->from + p->out->n : 0;
    if (p->is_of_strangers ? from < p->n_strangers : !is_full && p->asked->segment == 0)
        set_next(p, sl_arena_printf(p->call->arena, "%c%zu", STRANGERS, from));
    else if (is_full && !p->is_of_strangers)
        set_next(p, p->last);
}

/* {"_shards":{"total":2,"successful":1,"failed":0}}, and nothing else. */
static enum sl_job_next refreshed(struct sl_job *job)
{
    struct sl_span body = sl_buffer_span(&job->answer->body), name, shards, more;
    struct sl_json_walk walk = sl_json_walk(body);
    bool is_good = sl_answer_is_json(body) && walk.is_object && sl_json_walk_next(&walk, &name, &shards) &&
                   sl_span_is(name, "_shards") && sl_span_is(sl_opensearch_digits(shards, "failed"), "0") &&
                   !sl_json_walk_next(&walk, &name, &more);
    return is_good ? SL_JOB_DONE : SL_JOB_BROKEN;
}

/* A search sees what was there at the last refresh. */
static bool refresh(struct sl_opensearch *index, const struct sl_call *call, struct sl_result *result)
{
    static const struct sl_job_kind kind = {refreshed, sl_opensearch_refused};
    struct sl_job job = sl_opensearch_job(index, &kind, "Refresh", "/_refresh");
    job.of_no_record = true;
    sl_job_run(&index->client, &job, 1, call);
    sl_result_job(result, &job);
    return job.status == SL_OK;
}

static bool any_consistent(const struct sl_table_scan *scans, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (scans[i].is_consistent)
            return true;
    return false;
}

void sl_opensearch_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                        struct sl_table_page *pages, const struct sl_call *call)
{
    struct sl_opensearch *index = (struct sl_opensearch *)port;
    struct sl_arena *scratch = index->client.aws->scratch;
    struct page *list = sl_arena_zalloc(scratch, (n + 1) * sizeof(*list)),
                **begun = sl_arena_alloc(scratch, (n + 1) * sizeof(*begun));
    struct sl_job *jobs = sl_arena_zalloc(scratch, (n + 1) * sizeof(*jobs));
    struct sl_result why = {.status = SL_OK};
    size_t n_jobs = 0;
    bool is_known = false;
    sl_contrast_begin(&index->client.contrast);
    for (size_t i = 0; i < n; i++) {
        struct sl_error error = SL_NO_ERROR;
        struct page *p = &list[i];
        pages[i] = (struct sl_table_page){.n = 0};
        *p = (struct page){.index = index, .asked = &scans[i], .out = &pages[i], .call = call};
        if (check(p, &error) != SL_OK) {
            sl_result_refuse(&pages[i].result, call->arena, &error);
            continue;
        }
        if (!is_known && why.status == SL_OK)
            is_known = sl_opensearch_resolve(index, call, &why) == SL_OK &&
                       (!any_consistent(scans, n) || refresh(index, call, &why));
        if (!is_known) {
            pages[i].result = why;
            continue;
        }
        begun[n_jobs] = p;
        jobs[n_jobs++] = begin(p);
    }
    sl_job_run(&index->client, jobs, n_jobs, call);
    for (size_t i = 0; i < n_jobs; i++)
        finish(begun[i], &jobs[i]);
    sl_arena_reset(scratch);
}
