/* Asks Lambda for the event source mapping of a table's stream, and judges since when nothing is missed. */
#include "live/source/consumer.h"

#include "aws/mappings.h"
#include "aws/sources.h"
#include "base/span.h"
#include "live/source/places.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 30000

#define DAY_S 86400
/* What the stream still has for certain when a mapping begins. */
#define KEPT_MS (INT64_C(23) * 3600 * 1000)
/* So many attempts outlast what the stream keeps. */
#define RETRIES_ENOUGH 1000

struct lambda {
    const struct sl_consumer_options *options;
    struct sl_arena *arena;
    json_t *mapping; /* of the table: the last one */
    size_t n;        /* how many there are */
};

static const char *text_of(const json_t *object, const char *name)
{
    return sl_mapping_text(object, name);
}

static bool is_stream_of(const char *stream_arn, struct sl_span table)
{
    struct sl_span stream = sl_span_str(stream_arn);
    return sl_span_starts(stream, table) &&
           sl_span_starts(sl_span_from(stream, table.len), SL_LIT("/stream/"));
}

/* ---- which mapping ---- */

/* Does the mapping read a stream of the table? */
static bool is_of_table(const struct lambda *l, const json_t *mapping)
{
    return is_stream_of(text_of(mapping, "EventSourceArn"), l->options->table_arn);
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

static enum sl_status keep(struct lambda *l, const json_t *mapping, const char *operation,
                           struct sl_error *error)
{
    if (!is_mapping(mapping))
        return sl_fail(error, SL_RETRY, "BrokenAnswer",
                       "%s: the answer was not understood: it has something that is not a mapping",
                       operation);
    json_decref(l->mapping);
    l->mapping = json_incref((json_t *)(uintptr_t)mapping);
    l->n++;
    return SL_OK;
}

static enum sl_status take_listed(void *arg, const json_t *mapping, struct sl_error *error)
{
    return is_of_table(arg, mapping) ? keep(arg, mapping, "ListEventSourceMappings", error) : SL_OK;
}

static enum sl_status list(struct lambda *l, struct sl_mappings *mappings, const struct sl_call *call,
                           struct sl_error *error)
{
    const char *function = l->options->function;
    enum sl_status status = sl_mappings_list(mappings, function, NULL, call, take_listed, l, error);
    if (status != SL_OK || l->n == 1)
        return status;
    return sl_fail(error, SL_REJECT, "NoMapping",
                   "the function %s has %s event source mapping of a stream of %.*s; %s", function,
                   l->n ? "more than one" : "no", SL_ARG(l->options->table_arn),
                   l->n ? "name one with --mapping UUID" : "name another function, or give --consumer-since");
}

static enum sl_status take_named(void *arg, const json_t *mapping, struct sl_error *error)
{
    struct lambda *l = arg;
    if (!is_of_table(l, mapping))
        return sl_fail(error, SL_REJECT, "NoMapping",
                       "the mapping %s reads %s, which is not a stream of %.*s", l->options->mapping,
                       text_of(mapping, "EventSourceArn"), SL_ARG(l->options->table_arn));
    return keep(l, mapping, "GetEventSourceMapping", error);
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
    if (!options->table_arn.ptr)
        return sl_fail(
            error, SL_REJECT, "NoTableArn",
            "the source does not say which table its items are of, so that no mapping can be found; "
            "give --consumer-since");
    struct sl_clock *clock = sl_clock_system();
    struct sl_aws *aws = sl_aws_new(clock, options->log, options->vars, sl_sources_find);
    struct sl_mappings *mappings = NULL;
    const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + TIMEOUT_MS};
    enum sl_status status = sl_mappings_open(aws, options->region, options->endpoint, &mappings, error);
    if (status == SL_OK)
        status = options->mapping ? sl_mappings_get(mappings, options->mapping, &call, take_named, &l, error)
                                  : list(&l, mappings, &call, error);
    if (status == SL_OK)
        status = judge(&l, l.mapping, out, error);
    json_decref(l.mapping);
    sl_mappings_close(mappings);
    sl_aws_destroy(aws);
    return status;
}

/* ---- a tail ---- */

enum sl_status sl_consumer_read(const char *path, struct sl_span table_arn, struct sl_consumer *out,
                                struct sl_error *error)
{
    struct sl_places places;
    *out = (struct sl_consumer){.mapping = NULL};
    if (access(path, F_OK) != 0)
        return sl_fail(error, SL_REJECT, "BadCheckpoint", "--consumer %s: %s", path, strerror(errno));
    enum sl_status status = sl_places_read(&places, path, NULL, error);
    if (status != SL_OK)
        sl_error_context(error, "--consumer");
    else if (table_arn.len && !is_stream_of(places.stream_arn, table_arn))
        status =
            sl_fail(error, SL_REJECT, "OtherStream",
                    "--consumer %s: it is of %s, and the items are of %.*s: give the checkpoint file of the "
                    "sluice tail that consumes the stream of this table",
                    path, places.stream_arn, SL_ARG(table_arn));
    else if (!places.complete_since_ms)
        status = sl_fail(
            error, SL_REJECT, "BadCheckpoint",
            "--consumer %s: it does not say since when its consumer has missed nothing: run sluice tail "
            "with it first",
            path);
    out->since_ms = places.complete_since_ms + SL_CONSUMER_SKEW_MS;
    sl_places_clean_up(&places);
    return status;
}
