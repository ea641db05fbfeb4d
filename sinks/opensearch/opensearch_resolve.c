/* Which index the target means, and that it is one: a name that stands for several, or for another one
 * tomorrow, is refused, and so is an index without our fields. */
#include "sinks/opensearch/opensearch_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "net/uri.h"
#include "sinks/result.h"

/* A write to an index that is gone would make it anew, without its mapping: it is looked for again when it
 * was not seen for so long. */
#define SEEN_MS 60000

#define NAME_BYTES 255 /* of an index (OpenSearch: CreateIndexService's limit) */

struct look {
    struct sl_opensearch *index;
    char *concrete;
};

struct sl_job sl_opensearch_job(struct sl_opensearch *index, const struct sl_job_kind *kind,
                                const char *operation, const char *what)
{
    return (struct sl_job){.kind = kind,
                           .operation = operation,
                           .path = sl_arena_printf(index->client.aws->scratch, "%s%s", index->path, what)};
}

bool sl_opensearch_is_elsewhere(const struct sl_opensearch *index, struct sl_span entry)
{
    struct sl_span named = sl_json_walk_member(entry, SL_LIT("_index"));
    return named.ptr && !(named.len == index->concrete.len + 2 &&
                          memcmp(named.ptr + 1, index->concrete.ptr, index->concrete.len) == 0);
}

enum sl_job_next sl_opensearch_moved(struct sl_opensearch *index, struct sl_job *job)
{
    if (!sl_opensearch_is_alias(index))
        return SL_JOB_BROKEN;
    index->has_moved = true;
    job->code = "AliasMoved";
    job->text = sl_arena_printf(job->call->arena,
                                "%s: %s: the alias leads to another index than a moment ago; it is looked up "
                                "again",
                                job->client->name, job->operation);
    return SL_JOB_AGAIN;
}

struct sl_span sl_opensearch_digits(struct sl_span object, const char *name)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name));
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return sl_span(NULL, 0);
    return value.len && value.len <= 19 ? value : sl_span(NULL, 0);
}

static enum sl_job_next refuse(struct sl_job *job, const char *code, const char *why)
{
    job->code = code;
    job->text = sl_arena_printf(job->call->arena, "%s: %s", job->client->name, why);
    return SL_JOB_FATAL;
}

/* Whether the alias is one that cannot be written through: it leads somewhere else tomorrow, or shows a part.
 */
static const char *why_not(struct sl_span alias)
{
    struct sl_span writes = sl_json_walk_member(alias, SL_LIT("is_write_index"));
    if (writes.ptr && !sl_span_is(writes, "false"))
        return "it is the write alias of indexes that roll over: a changed item's document may be in an "
               "older one; "
               "name one index";
    if (sl_json_walk_member(alias, SL_LIT("filter")).ptr)
        return "it is a filtered alias, for readers; name the index";
    return NULL;
}

/* {"index":{"aliases":{"alias":{}}}} */
static enum sl_job_next took_aliases(struct sl_job *job, struct look *look, struct sl_span body)
{
    struct sl_json_walk walk = sl_json_walk(body);
    struct sl_span name, value, more, other;
    if (!sl_json_walk_next(&walk, &name, &value))
        return SL_JOB_BROKEN; /* an index that is missing is a 404 */
    if (sl_json_walk_next(&walk, &more, &other))
        return refuse(job, "SeveralIndexes", "the name stands for several indexes; name one");
    struct sl_span aliases = sl_json_walk_member(value, SL_LIT("aliases"));
    if (!aliases.len || *aliases.ptr != '{' || !name.len || name.len > NAME_BYTES ||
        memchr(name.ptr, '\\', name.len))
        return SL_JOB_BROKEN;
    if (sl_span_starts(name, SL_LIT(".ds-")))
        return refuse(job, "DataStream", "it is a data stream, whose documents cannot change; name an index");
    struct sl_span alias = sl_json_walk_member(aliases, look->index->name);
    bool is_itself = sl_span_eq(name, look->index->name);
    const char *why = is_itself ? NULL : why_not(alias);
    if (why)
        return refuse(job, "UnfitAlias", why);
    if (!is_itself && !alias.ptr)
        return SL_JOB_BROKEN; /* an answer about something else */
    look->concrete = sl_arena_copy(look->index->client.aws->scratch, name);
    return SL_JOB_DONE;
}

static enum sl_job_next aliases_answered(struct sl_job *job)
{
    struct sl_span body = sl_buffer_span(&job->answer->body);
    if (!sl_answer_is_json(body) || !sl_json_walk(body).is_object ||
        sl_json_walk_member(body, SL_LIT("error")).ptr)
        return SL_JOB_BROKEN;
    return took_aliases(job, job->context, body);
}

/* {"index":{"mappings":{"sluice_hash":{"full_name":..,"mapping":{"sluice_hash":{"type":"keyword"}}}}}} */
static enum sl_job_next mapping_answered(struct sl_job *job)
{
    struct sl_span body = sl_buffer_span(&job->answer->body), name, of;
    struct sl_json_walk walk = sl_json_walk(body);
    if (!sl_answer_is_json(body) || !walk.is_object || !sl_json_walk_next(&walk, &name, &of))
        return SL_JOB_BROKEN;
    struct sl_span mappings = sl_json_walk_member(of, SL_LIT("mappings"));
    if (!mappings.len || *mappings.ptr != '{')
        return SL_JOB_BROKEN;
    struct sl_span field = sl_json_walk_member(
        sl_json_walk_member(sl_json_walk_member(mappings, SL_LIT(SL_OPENSEARCH_HASH)), SL_LIT("mapping")),
        SL_LIT(SL_OPENSEARCH_HASH));
    struct sl_span type = sl_json_walk_member(field, SL_LIT("type")),
                   is_indexed = sl_json_walk_member(field, SL_LIT("index")),
                   has_values = sl_json_walk_member(field, SL_LIT("doc_values"));
    if (!sl_span_is(type, "\"keyword\"") || sl_span_is(is_indexed, "false") ||
        sl_span_is(has_values, "false"))
        return refuse(job, "NoTemplate",
                      "the index does not map " SL_OPENSEARCH_HASH
                      " as a keyword; create it from the template in "
                      "docs/SINKS.md");
    return SL_JOB_DONE;
}

/* Of a closed index nothing is told. */
static enum sl_job_next mapping_refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    if (job->answer->status == 404 && sl_span_is(sl_buffer_span(&job->answer->body), "{}"))
        return refuse(job, "ClosedIndex", "the index is closed; open it");
    return sl_opensearch_refused(job, refusal);
}

static const struct sl_job_kind aliases_kind = {aliases_answered, sl_opensearch_refused},
                                mapping_kind = {mapping_answered, mapping_refused};

static bool ask(struct look *look, const struct sl_job_kind *kind, const char *path,
                const struct sl_call *call, struct sl_result *result)
{
    const char *operation = kind == &aliases_kind ? "GetAlias" : "GetMapping";
    struct sl_job job = {.kind = kind,
                         .operation = operation,
                         .method = "GET",
                         .path = path,
                         .context = look,
                         .of_no_record = true};
    sl_job_run(&look->index->client, &job, 1, call);
    sl_result_job(result, &job);
    return job.status == SL_OK;
}

static const char *path_of(struct sl_opensearch *index, struct sl_span name, const char *what)
{
    struct sl_buffer path;
    sl_buffer_init_in(&path, index->client.aws->scratch, 3 * name.len + 64);
    sl_buffer_add_char(&path, '/');
    sl_uri_encode(&path, name, '\0');
    sl_buffer_add_str(&path, what);
    sl_buffer_add_char(&path, '\0');
    return path.ptr;
}

enum sl_status sl_opensearch_resolve(struct sl_opensearch *index, const struct sl_call *call,
                                     struct sl_result *result)
{
    struct look look = {.index = index};
    int64_t now = sl_aws_now_ms(index->client.aws);
    if (index->path && !index->has_moved && now - index->checked_ms < SEEN_MS)
        return SL_OK;
    if (!ask(&look, &aliases_kind, path_of(index, index->name, "/_alias"), call, result) ||
        !ask(&look, &mapping_kind,
             path_of(index, sl_span_str(look.concrete), "/_mapping/field/" SL_OPENSEARCH_HASH), call,
             result)) {
        result->not_sent = true; /* of what was to be done */
        return result->status;
    }
    /* Through the alias, so that it counts at the moment of the write where it leads. */
    if (!index->path)
        index->path = sl_arena_copy(index->arena, sl_span_str(path_of(index, index->name, "")));
    if (!sl_span_is(index->concrete, look.concrete))
        index->concrete = sl_span_str(sl_arena_copy(index->arena, sl_span_str(look.concrete)));
    index->checked_ms = now;
    index->has_moved = false;
    return SL_OK;
}
