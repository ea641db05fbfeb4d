/* Asks Lambda for the event source mapping of a table's stream, and judges since when nothing is missed. */
#include "live/source/consumer.h"

#include "aws/answer.h"
#include "aws/sources.h"
#include "base/span.h"
#include "base/url.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT_MS   30000
#define ANSWER_BYTES (8u * 1024 * 1024)
#define PATH         "/2015-03-31/event-source-mappings/"
#define PAGES        1000

#define DAY_S 86400
/* What the stream still has for certain when a mapping begins. */
#define KEPT_MS (INT64_C(23) * 3600 * 1000)
/* So many attempts outlast what the stream keeps. */
#define RETRIES_ENOUGH 1000

struct lambda {
    const struct sl_consumer_options *options;
    struct sl_arena *arena;
    struct sl_aws *aws;
    struct sl_client client;
    json_t *answer; /* of the last request */
};

/* ---- requests ---- */

static enum sl_job_next keep_answer(struct sl_job *job)
{
    struct lambda *l = job->context;
    struct sl_span text;
    if (!sl_answer_object(job, &text))
        return SL_JOB_BROKEN;
    json_decref(l->answer);
    l->answer = json_loadb(text.ptr, text.len, 0, NULL);
    return l->answer ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static enum sl_status ask(struct lambda *l, const char *operation, const char *path, const char *query,
                          struct sl_error *error)
{
    static const struct sl_job_kind kind = {.answered = keep_answer};
    struct sl_clock *clock = l->aws->clock;
    const struct sl_call call = {.arena = l->arena, .deadline_ms = clock->now_ms(clock) + TIMEOUT_MS};
    struct sl_job job = {.kind = &kind,
                         .context = l,
                         .operation = operation,
                         .method = "GET",
                         .path = path,
                         .query = query,
                         .of_no_record = true,
                         .answer_bytes = ANSWER_BYTES};
    sl_job_run(&l->client, &job, 1, &call);
    if (job.status == SL_OK)
        return SL_OK;
    return sl_fail(error, job.status, job.code, "%s", job.text);
}

static enum sl_status open_client(struct lambda *l, struct sl_error *error)
{
    const struct sl_consumer_options *o = l->options;
    struct sl_url url;
    const char *text = sl_endpoint_target(l->aws->lasting, "lambda:", "mappings", o->region, o->endpoint);
    enum sl_status status = sl_url_parse(sl_span_str(text), l->aws->lasting, &url, error);
    if (status != SL_OK)
        return status;
    return sl_client_init(&l->client, l->aws,
                          &(struct sl_client_options){.service = &sl_service_lambda, .url = &url}, error);
}

/* ---- which mapping ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Does the mapping read a stream of the table? */
static bool is_of_table(const struct lambda *l, const json_t *mapping)
{
    struct sl_span source = sl_span_str(text_of(mapping, "EventSourceArn"));
    struct sl_span table = l->options->table_arn;
    return sl_span_starts(source, table) &&
           sl_span_starts(sl_span_from(source, table.len), SL_LIT("/stream/"));
}

/* The percent-encoded text of a query's value: a function's name or ARN, a marker. */
static const char *encoded(struct lambda *l, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = sl_arena_alloc(l->arena, 3 * strlen(text) + 1), *at = out;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                        strchr("-._~", *c);
        if (is_plain) {
            *at++ = (char)*c;
        } else {
            *at++ = '%';
            *at++ = hex[*c >> 4];
            *at++ = hex[*c & 15];
        }
    }
    *at = '\0';
    return out;
}

static bool is_limit(const json_t *mapping, const char *name)
{
    const json_t *value = json_object_get(mapping, name);
    return !value || json_is_null(value) || json_is_integer(value);
}

/* A mapping as Lambda describes one. A limit of another type must not count as none. */
static bool is_mapping(const json_t *mapping)
{
    const json_t *criteria = json_object_get(mapping, "FilterCriteria");
    const json_t *filters = json_object_get(criteria, "Filters");
    const json_t *modified = json_object_get(mapping, "LastModified");
    return text_of(mapping, "UUID")[0] && text_of(mapping, "EventSourceArn")[0] &&
           json_is_string(json_object_get(mapping, "State")) &&
           json_is_string(json_object_get(mapping, "StartingPosition")) &&
           (!modified || json_is_number(modified)) && is_limit(mapping, "MaximumRetryAttempts") &&
           is_limit(mapping, "MaximumRecordAgeInSeconds") &&
           (!criteria || json_is_null(criteria) || json_is_object(criteria)) &&
           (!filters || json_is_null(filters) || json_is_array(filters));
}

static enum sl_status not_understood(const char *operation, struct sl_error *error)
{
    return sl_fail(error, SL_RETRY, "BrokenAnswer",
                   "%s: the answer was not understood: it has something that is not a mapping", operation);
}

static enum sl_status take_page(struct lambda *l, json_t **found, size_t *n, struct sl_error *error)
{
    json_t *list = json_object_get(l->answer, "EventSourceMappings"), *mapping;
    size_t i;
    if (!json_is_array(list))
        return sl_fail(error, SL_RETRY, "BrokenAnswer",
                       "ListEventSourceMappings: the answer was not understood: it has no list of mappings");
    json_array_foreach(list, i, mapping)
    {
        if (is_of_table(l, mapping) && !is_mapping(mapping))
            return not_understood("ListEventSourceMappings", error);
        if (!is_of_table(l, mapping))
            continue;
        json_decref(*found);
        *found = json_incref(mapping);
        ++*n;
    }
    return SL_OK;
}

static enum sl_status list(struct lambda *l, json_t **found, struct sl_error *error)
{
    const char *function = l->options->function, *marker = "";
    size_t n = 0;
    for (size_t page = 0; page < PAGES; page++) {
        const char *query = sl_arena_printf(l->arena, "FunctionName=%s%s%s", encoded(l, function),
                                            marker[0] ? "&Marker=" : "", encoded(l, marker));
        enum sl_status status = ask(l, "ListEventSourceMappings", PATH, query, error);
        if (status == SL_OK)
            status = take_page(l, found, &n, error);
        if (status != SL_OK)
            return status;
        marker = sl_arena_copy(l->arena, sl_span_str(text_of(l->answer, "NextMarker")));
        if (!marker[0])
            break;
    }
    if (marker[0])
        return sl_fail(error, SL_RETRY, "BrokenAnswer", "ListEventSourceMappings: its pages do not end");
    if (n == 1)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "NoMapping",
                   "the function %s has %s event source mapping of a stream of %.*s; %s", function,
                   n ? "more than one" : "no", SL_ARG(l->options->table_arn),
                   n ? "name one with --mapping UUID" : "name another function, or give --consumer-since");
}

static enum sl_status get(struct lambda *l, json_t **found, struct sl_error *error)
{
    const char *path = sl_arena_printf(l->arena, PATH "%s", encoded(l, l->options->mapping));
    enum sl_status status = ask(l, "GetEventSourceMapping", path, NULL, error);
    if (status != SL_OK)
        return status;
    if (!is_of_table(l, l->answer))
        return sl_fail(error, SL_REJECT, "NoMapping",
                       "the mapping %s reads %s, which is not a stream of %.*s", l->options->mapping,
                       text_of(l->answer, "EventSourceArn"), SL_ARG(l->options->table_arn));
    if (!is_mapping(l->answer))
        return not_understood("GetEventSourceMapping", error);
    *found = json_incref(l->answer);
    return SL_OK;
}

/* ---- since when ---- */

static int64_t limit_of(const json_t *mapping, const char *name)
{
    const json_t *value = json_object_get(mapping, name);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static enum sl_status refuse(const json_t *mapping, const char *why, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "MappingUnfit",
                   "the mapping %s %s: nobody can tell whether its function has handled every change. If you "
                   "know since when it has, give --consumer-since",
                   text_of(mapping, "UUID"), why);
}

static enum sl_status check(const json_t *mapping, struct sl_error *error)
{
    int64_t age_s = limit_of(mapping, "MaximumRecordAgeInSeconds");
    int64_t retries = limit_of(mapping, "MaximumRetryAttempts");
    const json_t *filters = json_object_get(json_object_get(mapping, "FilterCriteria"), "Filters");
    if (strcmp(text_of(mapping, "State"), "Enabled") != 0)
        return refuse(mapping, "is not enabled", error);
    if (strcmp(text_of(mapping, "StartingPosition"), "TRIM_HORIZON") != 0)
        return refuse(mapping, "does not begin at TRIM_HORIZON", error);
    if (json_array_size(filters))
        return refuse(mapping, "has FilterCriteria", error);
    if (age_s >= 0 && age_s < DAY_S)
        return refuse(mapping,
                      "gives records up by their age (MaximumRecordAgeInSeconds) while the stream has them",
                      error);
    if (retries >= 0 && retries < RETRIES_ENOUGH)
        return refuse(mapping, "gives records up after a few attempts (MaximumRetryAttempts)", error);
    return SL_OK;
}

/* The stream's label is the time at which it was enabled. */
static bool stream_ms(const char *arn, int64_t *ms)
{
    int64_t ns, step;
    if (!sl_time_parse(sl_span_str(strrchr(arn, '/') + 1), &ns, &step))
        return false;
    *ms = ns / 1000000;
    return true;
}

static enum sl_status judge(struct lambda *l, const json_t *mapping, struct sl_consumer *out,
                            struct sl_error *error)
{
    const json_t *modified = json_object_get(mapping, "LastModified");
    int64_t enabled_ms = 0;
    enum sl_status status = check(mapping, error);
    if (status != SL_OK)
        return status;
    if (!json_is_number(modified) || !stream_ms(text_of(mapping, "EventSourceArn"), &enabled_ms))
        return refuse(mapping, "does not say when it was changed, or its stream when it was enabled", error);
    int64_t horizon_ms = (int64_t)(json_number_value(modified) * 1000) - KEPT_MS;
    out->since_ms = horizon_ms > enabled_ms ? horizon_ms : enabled_ms;
    out->mapping = sl_arena_copy(l->arena, sl_span_str(text_of(mapping, "UUID")));
    return SL_OK;
}

enum sl_status sl_consumer_find(const struct sl_consumer_options *options, struct sl_arena *arena,
                                struct sl_consumer *out, struct sl_error *error)
{
    struct lambda l = {.options = options, .arena = arena};
    json_t *mapping = NULL;
    if (!options->table_arn.ptr)
        return sl_fail(
            error, SL_REJECT, "NoTableArn",
            "the source does not say which table its items are of, so that no mapping can be found; "
            "give --consumer-since");
    l.aws = sl_aws_new(sl_clock_system(), options->log, options->vars, sl_sources_find);
    enum sl_status status = open_client(&l, error);
    if (status == SL_OK)
        status = options->mapping ? get(&l, &mapping, error) : list(&l, &mapping, error);
    if (status == SL_OK)
        status = judge(&l, mapping, out, error);
    json_decref(mapping);
    json_decref(l.answer);
    sl_client_clean_up(&l.client);
    sl_aws_destroy(l.aws);
    return status;
}
