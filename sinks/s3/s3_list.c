/* ListObjectsV2: one page of keys, in their order, proven to be whole. */
#include "aws/xml.h"
#include "base/array.h"
#include "base/time.h"
#include "base/url.h"
#include "base/utf8.h"
#include "net/uri.h"
#include "sinks/object.h"
#include "sinks/result.h"
#include "sinks/s3/s3_private.h"

/* ListObjectsV2's most (API reference). */
#define PAGE_KEYS 1000
/* A key's bytes as %XX, and what else an entry has. */
#define ENTRY_BYTES (3 * SL_OBJECT_KEY_BYTES + 1024)

struct listing {
    struct sl_s3 *s3;
    struct sl_object_page *page;
    struct sl_span prefix, after; /* with the target's prefix; `after` is absent at the beginning */
    size_t skip;                  /* bytes of the target's prefix in front of each key */
    bool moved;                   /* to the region that S3 named */
    struct sl_span last;          /* the last key of the page so far */
};

/* ---- answers ---- */

/* In the order of their bytes. Any text is after an absent one. */
static bool is_after(struct sl_span a, struct sl_span b)
{
    return !b.ptr || sl_span_compare(a, b) > 0;
}

struct sl_span sl_s3_key_of(struct sl_span text, bool is_encoded, struct sl_arena *arena)
{
    struct sl_buffer raw, key;
    sl_buffer_init_in(&raw, arena, text.len + 1);
    sl_xml_add_text(&raw, text);
    if (!is_encoded)
        return sl_buffer_span(&raw);
    for (size_t i = 0; i < raw.len; i++)
        if (raw.ptr[i] == '+')
            raw.ptr[i] = ' ';
    sl_buffer_init_in(&key, arena, raw.len + 1);
    sl_url_decode(&key, sl_buffer_span(&raw));
    return sl_buffer_span(&key);
}

bool sl_s3_read_number(struct sl_span text, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return text.len > 0 && text.len < 19;
}

/* An entry, unless it is a folder's marker: an empty object whose name ends with '/' holds nothing. False
 * when the answer cannot be one to this request. */
static bool take_entry(struct listing *l, struct sl_span contents, bool is_encoded, struct sl_arena *arena)
{
    struct sl_span key = sl_s3_key_of(sl_xml_tag(contents, "Key"), is_encoded, arena);
    uint64_t bytes;
    if (!key.len || !sl_span_starts(key, l->prefix) || !is_after(key, l->after) || !is_after(key, l->last) ||
        !sl_s3_read_number(sl_xml_tag(contents, "Size"), &bytes))
        return false;
    l->last = key;
    if (bytes == 0 && key.ptr[key.len - 1] == '/')
        return true;
    struct sl_span etag = sl_s3_key_of(sl_xml_tag(contents, "ETag"), false, arena);
    int64_t modified_ns = 0, step_ns;
    (void)sl_time_parse(sl_xml_tag(contents, "LastModified"), &modified_ns, &step_ns);
    l->page->entries[l->page->n++] = (struct sl_object_entry){sl_span_from(key, l->skip), bytes,
                                                              sl_s3_etag(etag), modified_ns / 1000000000};
    return true;
}

static bool take_entries(struct listing *l, struct sl_span xml, uint64_t n, struct sl_arena *arena)
{
    bool is_encoded = sl_span_is(sl_xml_tag(xml, "EncodingType"), "url");
    struct sl_span contents;
    uint64_t found = 0;
    l->page->n = 0;
    l->last = sl_span(NULL, 0);
    l->page->entries = sl_arena_alloc(arena, (size_t)(n + 1) * sizeof(*l->page->entries));
    while ((contents = sl_xml_next_tag(&xml, "Contents")).ptr)
        if (found++ == n || !take_entry(l, contents, is_encoded, arena))
            return false;
    return found == n;
}

/* Members that are there once; and the listing is the one that was asked for, where it says which it is. */
static bool is_ours(const struct listing *l, struct sl_span xml, struct sl_arena *arena)
{
    static const char *const once[] = {"IsTruncated", "KeyCount", "EncodingType", "Name", "Prefix"};
    bool is_encoded = sl_span_is(sl_xml_tag(xml, "EncodingType"), "url");
    if (!sl_xml_is_once(xml, once, SL_COUNT(once)))
        return false;
    struct sl_span name = sl_xml_tag(xml, "Name"), prefix = sl_xml_tag(xml, "Prefix");
    return (!name.ptr || sl_span_eq(sl_s3_key_of(name, false, arena), l->s3->bucket)) &&
           (!prefix.ptr || sl_span_eq(sl_s3_key_of(prefix, is_encoded, arena), l->prefix));
}

static enum sl_job_next answered(struct sl_job *job)
{
    struct listing *l = job->context;
    struct sl_arena *arena = job->call->arena;
    struct sl_span xml = sl_buffer_span(&job->answer->body), more = sl_xml_tag(xml, "IsTruncated");
    uint64_t n;
    if (!sl_xml_is_document(xml, "ListBucketResult") || !sl_s3_read_number(sl_xml_tag(xml, "KeyCount"), &n) ||
        n > PAGE_KEYS || !(sl_span_is(more, "true") ? n > 0 : sl_span_is(more, "false")))
        return SL_JOB_BROKEN;
    /* What is kept of the answer is copied: the answer's memory is used again. */
    xml = sl_span(sl_arena_copy(arena, xml), xml.len);
    if (!is_ours(l, xml, arena) || !take_entries(l, xml, n, arena))
        return SL_JOB_BROKEN;
    l->page->next = *more.ptr == 't' ? sl_span_from(l->last, l->skip) : sl_span(NULL, 0);
    return SL_JOB_DONE;
}

static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct listing *l = job->context;
    return sl_s3_follow(job, refusal, &l->moved);
}

static const struct sl_job_kind list_kind = {answered, refused};

/* ---- requests ---- */

struct sl_span sl_s3_below(const struct sl_s3 *s3, struct sl_span text, struct sl_arena *arena)
{
    struct sl_buffer whole;
    sl_buffer_init_in(&whole, arena, SIZE_MAX);
    sl_buffer_add_span(&whole, s3->prefix);
    sl_buffer_add_str(&whole, s3->prefix.len ? "/" : "");
    sl_buffer_add_span(&whole, text);
    return sl_span(whole.ptr ? whole.ptr : "", whole.len);
}

static const char *query_of(const struct listing *l, size_t limit, struct sl_arena *arena)
{
    struct sl_buffer query;
    sl_buffer_init_in(&query, arena, 2 * ENTRY_BYTES);
    sl_buffer_printf(&query, "list-type=2&encoding-type=url&max-keys=%zu&prefix=",
                     limit && limit < PAGE_KEYS ? limit : (size_t)PAGE_KEYS);
    sl_uri_encode(&query, l->prefix, '\0');
    if (l->after.ptr) {
        sl_buffer_add_str(&query, "&start-after=");
        sl_uri_encode(&query, l->after, '\0');
    }
    sl_buffer_add_char(&query, '\0');
    return query.ptr;
}

/* What cannot be the beginning of a key is refused before it is sent. */
static bool check(struct listing *l, const struct sl_call *call)
{
    struct sl_span texts[] = {l->prefix, l->after};
    bool is_good = true;
    for (size_t i = 0; i < 2 && is_good; i++)
        is_good = texts[i].len <= SL_OBJECT_KEY_BYTES && sl_utf8_is_valid(texts[i]);
    if (!is_good)
        sl_result_fail(&l->page->result, call->arena, SL_REJECT, "InvalidKey",
                       "%s: ListObjectsV2: the prefix or key is not UTF-8, or is longer than %d bytes with "
                       "the target's prefix",
                       l->s3->client.name, SL_OBJECT_KEY_BYTES);
    l->page->result.not_sent = !is_good;
    return is_good;
}

void sl_s3_list(struct sl_object_port *port, const struct sl_object_list *list, struct sl_object_page *page,
                const struct sl_call *call)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    struct listing l = {.s3 = s3,
                        .page = page,
                        .prefix = sl_s3_below(s3, list->prefix, scratch),
                        .skip = s3->prefix.len + (s3->prefix.len ? 1 : 0)};
    *page = (struct sl_object_page){.result = {.status = SL_OK}};
    if (list->after.ptr)
        l.after = sl_s3_below(s3, list->after, scratch);
    sl_s3_begin(s3);
    if (check(&l, call)) {
        struct sl_job job = {.kind = &list_kind,
                             .context = &l,
                             .operation = "ListObjectsV2",
                             .method = "GET",
                             .path = sl_s3_bucket_path(s3, scratch),
                             .query = query_of(&l, list->limit, scratch),
                             .answer_bytes = (size_t)PAGE_KEYS * ENTRY_BYTES,
                             .of_no_record = true};
        sl_job_run(&s3->client, &job, 1, call);
        sl_result_job(&page->result, &job);
    }
    if (page->result.status != SL_OK)
        *page = (struct sl_object_page){.result = page->result};
    sl_arena_reset(scratch);
}
