/* Whose fault an error is: by its type, and where one type has many meanings, by its reason. */
#include "base/array.h"
#include "sinks/opensearch/opensearch_private.h"

#include "aws/shown.h"
#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"

#include <stdio.h>

#define TEMPLATE_HINT "create the index from the template in docs/SINKS.md, OpenSearch"

/* `type` NULL: any. `says`: the reason or its cause must hold this; NULL: any. The first row that fits
 * counts. Types and reasons: OpenSearch 2.19's OpenSearchException and its index/mapper package. */
static const struct row {
    const char *type, *says;
    enum sl_opensearch_fault fault;
    const char *hint;
} rows[] = {
    {"version_conflict_engine_exception", NULL, SL_OPENSEARCH_CONFLICT, NULL},
    /* Our own fields: the index was not made from the template. */
    {NULL, "[" SL_OPENSEARCH_HASH "]", SL_OPENSEARCH_TARGETS, TEMPLATE_HINT},
    {NULL, "[" SL_OPENSEARCH_TYPES "]", SL_OPENSEARCH_TARGETS, TEMPLATE_HINT},
    /* Busy. */
    {"circuit_breaking_exception", NULL, SL_OPENSEARCH_BUSY, NULL},
    {"rejected_execution_exception", NULL, SL_OPENSEARCH_BUSY, NULL},
    {"es_rejected_execution_exception", NULL, SL_OPENSEARCH_BUSY, NULL},
    {"open_search_rejected_execution_exception", NULL, SL_OPENSEARCH_BUSY, NULL},
    /* The index, whatever the document: said per document, too. */
    {"cluster_block_exception", "SERVICE_UNAVAILABLE", SL_OPENSEARCH_PASSES, NULL},
    {"cluster_block_exception", "disk usage exceeded", SL_OPENSEARCH_TARGETS,
     "give the cluster more disk; the block goes away by itself"},
    {"cluster_block_exception", NULL, SL_OPENSEARCH_TARGETS, "remove the block from the index's settings"},
    {"index_not_found_exception", NULL, SL_OPENSEARCH_TARGETS, TEMPLATE_HINT " (a data stream is no index)"},
    {"index_closed_exception", NULL, SL_OPENSEARCH_TARGETS, "open the index"},
    {"security_exception", NULL, SL_OPENSEARCH_TARGETS, "check the target's auth= and the user's rights"},
    {"routing_missing_exception", NULL, SL_OPENSEARCH_TARGETS, TEMPLATE_HINT},
    {NULL, "Limit of total fields", SL_OPENSEARCH_TARGETS,
     "raise index.mapping.total_fields.limit, or map less: \"dynamic\": false"},
    {NULL, "pipeline with id", SL_OPENSEARCH_TARGETS, "the index's default_pipeline does not exist"},
    {NULL, "number of documents in the index cannot exceed", SL_OPENSEARCH_TARGETS,
     "the shard is full: split the index"},
    {NULL, "cannot execute [inline] scripts", SL_OPENSEARCH_TARGETS,
     "scripts are forbidden here: remove order=script from the target"},
    {"script_exception", NULL, SL_OPENSEARCH_TARGETS, "remove order=script from the target"},
    /* The document. */
    {"mapper_parsing_exception", NULL, SL_OPENSEARCH_RECORDS, NULL},
    {"document_parsing_exception", NULL, SL_OPENSEARCH_RECORDS, NULL},
    {"strict_dynamic_mapping_exception", NULL, SL_OPENSEARCH_RECORDS, NULL},
    {"parsing_exception", NULL, SL_OPENSEARCH_RECORDS, NULL},
    {"max_bytes_length_exceeded_exception", NULL, SL_OPENSEARCH_RECORDS, NULL},
    {"illegal_argument_exception", "cannot be changed from type", SL_OPENSEARCH_RECORDS, NULL},
    {"illegal_argument_exception", "immense term", SL_OPENSEARCH_RECORDS, NULL},
    {"illegal_argument_exception", "Limit of mapping depth", SL_OPENSEARCH_RECORDS, NULL},
    {"illegal_argument_exception", "number of nested documents", SL_OPENSEARCH_RECORDS, NULL},
    {"illegal_argument_exception", "merge a non object mapping", SL_OPENSEARCH_RECORDS, NULL},
    {"illegal_argument_exception", "object mapping", SL_OPENSEARCH_RECORDS, NULL},
};

#define REASON_BYTES SL_MASK_TEXT_BYTES

/* What is known of an error. */
struct told {
    struct sl_span type;            /* as it is written: types have no escapes */
    char reason[REASON_BYTES + 64]; /* and its cause's, decoded */
    int status;
};

static struct sl_span text_member(struct sl_span object, const char *name)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name));
    return value.len >= 2 && *value.ptr == '"' ? sl_span(value.ptr + 1, value.len - 2) : sl_span(NULL, 0);
}

/* Appends the reason's beginning, decoded; a NUL in it becomes another control byte. */
static void add_reason(struct told *t, struct sl_span inner, struct sl_buffer *buffer)
{
    struct sl_span text = sl_json_unescape_in(inner, buffer);
    size_t have = strlen(t->reason), room = REASON_BYTES / 2;
    size_t n = text.len < room ? text.len : room;
    if (n == 0)
        return;
    if (have)
        memcpy(t->reason + have, ": ", 3), have += 2;
    for (size_t i = 0; i < n; i++)
        t->reason[have + i] = text.ptr[i] ? text.ptr[i] : '\1';
    t->reason[have + n] = '\0';
}

static void read_error(struct told *t, struct sl_span error, struct sl_buffer *buffer)
{
    t->reason[0] = '\0';
    t->type = text_member(error, "type");
    add_reason(t, text_member(error, "reason"), buffer);
    add_reason(t, text_member(sl_json_walk_member(error, SL_LIT("caused_by")), "reason"), buffer);
}

static const struct row *find(const struct told *t)
{
    for (size_t i = 0; i < SL_COUNT(rows); i++)
        if ((!rows[i].type || sl_span_is(t->type, rows[i].type)) &&
            (!rows[i].says || strstr(t->reason, rows[i].says)))
            return &rows[i];
    return NULL;
}

static enum sl_opensearch_fault by_status(int status)
{
    if (status == 401 || status == 403)
        return SL_OPENSEARCH_TARGETS;
    if (status == 429)
        return SL_OPENSEARCH_BUSY;
    if (status == 409)
        return SL_OPENSEARCH_CONFLICT;
    return status >= 500 || status == 408 || status == 0 ? SL_OPENSEARCH_PASSES : SL_OPENSEARCH_DOUBT;
}

/* The target's reject= names the code. */
static bool is_named(const struct sl_client *client, const char *code)
{
    for (size_t i = 0; i < client->n_rejects; i++)
        if (sl_span_is(client->rejects[i], code))
            return true;
    return false;
}

/* A type as a code (aws/refusal.h), in which its words are divided by dots, and back. */
static void swap_chars(char *text, char from, char to)
{
    for (; *text; text++)
        if (*text == from)
            *text = to;
}

/* The type when it is one that we know, or may be shown; else the status. */
static const char *code_of(struct sl_job *job, const struct told *t, const struct row *row,
                           struct sl_shown *shown)
{
    if (row && row->type)
        return row->type;
    if (strcmp(shown->code, "Refused") == 0 && t->status)
        return sl_arena_printf(job->call->arena, "Http%d", t->status);
    swap_chars(shown->code, '.', '_');
    return sl_arena_copy(job->call->arena, sl_span_str(shown->code));
}

/* What may be shown of type and reason. */
static void show(struct sl_job *job, const struct told *t, struct sl_shown *out)
{
    char type[SL_REFUSAL_CODE_BYTES];
    snprintf(type, sizeof(type), "%.*s", SL_ARG(t->type));
    swap_chars(type, '_', '.');
    sl_shown_part(job, sl_span_str(type), sl_span_str(t->reason), out);
}

struct sl_opensearch_refusal sl_opensearch_refuse(struct sl_job *job, struct sl_span error, int status)
{
    struct told t = {.status = status};
    struct sl_buffer buffer;
    struct sl_shown shown;
    sl_buffer_init(&buffer, SIZE_MAX);
    read_error(&t, error, &buffer);
    const struct row *row = find(&t);
    show(job, &t, &shown);
    struct sl_opensearch_refusal out = {.fault = row ? row->fault : by_status(status)};
    if (status == 401 || (status == 403 && out.fault != SL_OPENSEARCH_CONFLICT))
        out.fault = SL_OPENSEARCH_TARGETS;
    sl_aws_saw_refusal(job->client->aws, status);
    out.code = code_of(job, &t, row, &shown);
    if ((out.fault == SL_OPENSEARCH_DOUBT || out.fault == SL_OPENSEARCH_TARGETS) &&
        is_named(job->client, out.code))
        out.fault = SL_OPENSEARCH_RECORDS;
    out.text = sl_arena_printf(job->call->arena, "%s: %s: %s%s%s%s%s", job->client->name, job->operation,
                               out.code, shown.text[0] ? ": " : "", shown.text, row && row->hint ? "; " : "",
                               row && row->hint ? row->hint : "");
    sl_buffer_clean_up(&buffer);
    return out;
}

static enum sl_job_next next_of(struct sl_job *job, enum sl_opensearch_fault fault)
{
    switch (fault) {
    case SL_OPENSEARCH_BUSY:
        return SL_JOB_THROTTLED;
    case SL_OPENSEARCH_PASSES:
    case SL_OPENSEARCH_CONFLICT:
        return SL_JOB_AGAIN;
    case SL_OPENSEARCH_TARGETS:
        return SL_JOB_FATAL;
    default:
        return job->of_no_record ? SL_JOB_FATAL : SL_JOB_DOUBT;
    }
}

enum sl_job_next sl_opensearch_refused(struct sl_job *job, const struct sl_refusal *refusal)
{
    struct sl_span body = sl_buffer_span(&job->answer->body), error = {NULL, 0};
    int status = job->answer->status;
    (void)refusal;
    if (sl_answer_is_json(body))
        error = sl_json_walk_member(body, SL_LIT("error"));
    bool is_ours = error.len && *error.ptr == '{' && text_member(error, "type").len > 0;
    if (!is_ours && status != 401 && status != 403)
        return SL_JOB_JUDGE; /* a proxy's, or AWS's own */
    struct sl_opensearch_refusal out = sl_opensearch_refuse(job, is_ours ? error : SL_LIT("{}"), status);
    job->code = out.code;
    job->text = out.text;
    return next_of(job, out.fault);
}
