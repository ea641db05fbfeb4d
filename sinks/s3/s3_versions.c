/* ListObjectVersions: one page of what a bucket keeps of its objects. */
#include "aws/xml.h"
#include "base/array.h"
#include "net/uri.h"
#include "sinks/object.h"
#include "sinks/result.h"
#include "sinks/s3/s3_private.h"

#define PAGE_VERSIONS 1000
#define ENTRY_BYTES   (3 * SL_OBJECT_KEY_BYTES + 2048) /* a version's id has up to 1,024 bytes */

struct listing {
    struct sl_s3 *s3;
    struct sl_version_page *page;
    struct sl_span prefix;
    size_t skip; /* bytes of the target's prefix in front of each key */
    bool moved;  /* to the region that S3 named */
};

const char *sl_s3_version_query(struct sl_span version, struct sl_arena *arena)
{
    struct sl_buffer query;
    sl_buffer_init_in(&query, arena, ENTRY_BYTES);
    sl_buffer_add_str(&query, "versionId=");
    sl_uri_encode(&query, version, '\0');
    sl_buffer_add_char(&query, '\0');
    return query.ptr;
}

static bool take_entry(struct listing *l, struct sl_span xml, bool is_encoded, bool is_marker,
                       struct sl_arena *arena)
{
    struct sl_span key = sl_s3_key_of(sl_xml_tag(xml, "Key"), is_encoded, arena);
    struct sl_span latest = sl_xml_tag(xml, "IsLatest");
    struct sl_object_version version = {.is_latest = sl_span_is(latest, "true"), .is_marker = is_marker};
    version.version = sl_s3_key_of(sl_xml_tag(xml, "VersionId"), false, arena);
    if (l->page->n == PAGE_VERSIONS || !key.len || !version.version.len || !sl_span_starts(key, l->prefix) ||
        !(version.is_latest || sl_span_is(latest, "false")) ||
        (!is_marker && !sl_s3_read_number(sl_xml_tag(xml, "Size"), &version.bytes)))
        return false;
    version.key = sl_span_from(key, l->skip);
    l->page->versions[l->page->n++] = version;
    return true;
}

static bool take_entries(struct listing *l, struct sl_span xml, const char *tag, bool is_encoded,
                         struct sl_arena *arena)
{
    struct sl_span entry;
    while ((entry = sl_xml_next_tag(&xml, tag)).ptr)
        if (!take_entry(l, entry, is_encoded, strcmp(tag, "DeleteMarker") == 0, arena))
            return false;
    return true;
}

static enum sl_job_next answered(struct sl_job *job)
{
    static const char *const once[] = {"IsTruncated", "EncodingType", "Name", "NextKeyMarker",
                                       "NextVersionIdMarker"};
    struct listing *l = job->context;
    struct sl_arena *arena = job->call->arena;
    struct sl_span xml = sl_buffer_span(&job->answer->body), more = sl_xml_tag(xml, "IsTruncated");
    if (!sl_xml_is_document(xml, "ListVersionsResult") || !sl_xml_is_once(xml, once, SL_COUNT(once)) ||
        !(sl_span_is(more, "true") || sl_span_is(more, "false")))
        return SL_JOB_BROKEN;
    bool has_more = *more.ptr == 't';
    xml = sl_span(sl_arena_copy(arena, xml), xml.len);
    bool is_encoded = sl_span_is(sl_xml_tag(xml, "EncodingType"), "url");
    struct sl_span name = sl_xml_tag(xml, "Name"), next = sl_xml_tag(xml, "NextKeyMarker");
    l->page->n = 0;
    l->page->versions = sl_arena_alloc(arena, PAGE_VERSIONS * sizeof(*l->page->versions));
    if ((name.ptr && !sl_span_eq(sl_s3_key_of(name, false, arena), l->s3->bucket)) ||
        !take_entries(l, xml, "Version", is_encoded, arena) ||
        !take_entries(l, xml, "DeleteMarker", is_encoded, arena) || (has_more && !next.len))
        return SL_JOB_BROKEN;
    l->page->next_key = l->page->next_version = sl_span(NULL, 0);
    if (has_more) {
        struct sl_span key = sl_s3_key_of(next, is_encoded, arena);
        if (!sl_span_starts(key, l->prefix))
            return SL_JOB_BROKEN;
        l->page->next_key = sl_span_from(key, l->skip);
        l->page->next_version = sl_s3_key_of(sl_xml_tag(xml, "NextVersionIdMarker"), false, arena);
    }
    return SL_JOB_DONE;
}

static enum sl_job_next refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct listing *l = job->context;
    return sl_s3_follow(job, refusal, &l->moved);
}

static const struct sl_job_kind versions_kind = {answered, refused};

static const char *query_of(const struct listing *l, struct sl_span after_key, struct sl_span after_version,
                            struct sl_arena *arena)
{
    struct sl_buffer query;
    sl_buffer_init_in(&query, arena, 4 * ENTRY_BYTES);
    sl_buffer_printf(&query, "encoding-type=url&max-keys=%d&prefix=", PAGE_VERSIONS);
    sl_uri_encode(&query, l->prefix, '\0');
    sl_buffer_add_str(&query, "&versions=");
    if (after_key.ptr) {
        sl_buffer_add_str(&query, "&key-marker=");
        sl_uri_encode(&query, sl_s3_below(l->s3, after_key, arena), '\0');
    }
    if (after_key.ptr && after_version.len) {
        sl_buffer_add_str(&query, "&version-id-marker=");
        sl_uri_encode(&query, after_version, '\0');
    }
    sl_buffer_add_char(&query, '\0');
    return query.ptr;
}

void sl_s3_list_versions(struct sl_object_port *port, struct sl_span after_key, struct sl_span after_version,
                         struct sl_version_page *page, const struct sl_call *call)
{
    struct sl_s3 *s3 = (struct sl_s3 *)port;
    struct sl_arena *scratch = s3->client.aws->scratch;
    struct listing l = {.s3 = s3,
                        .page = page,
                        .prefix = sl_s3_below(s3, SL_LIT(""), scratch),
                        .skip = s3->prefix.len + (s3->prefix.len ? 1 : 0)};
    *page = (struct sl_version_page){.result = {.status = SL_OK}};
    sl_s3_begin(s3);
    struct sl_job job = {.kind = &versions_kind,
                         .context = &l,
                         .operation = "ListObjectVersions",
                         .method = "GET",
                         .path = sl_s3_bucket_path(s3, scratch),
                         .query = query_of(&l, after_key, after_version, scratch),
                         .answer_bytes = (size_t)PAGE_VERSIONS * ENTRY_BYTES,
                         .of_no_record = true};
    sl_job_run(&s3->client, &job, 1, call);
    sl_result_job(&page->result, &job);
    if (page->result.status != SL_OK)
        *page = (struct sl_version_page){.result = page->result};
    sl_arena_reset(scratch);
}
