/* Reads an event source mapping, and finds what in it would lose data. */
#include "cli/config/mapping.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/span.h"
#include "cli/config/filters.h"

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define STREAM_HOURS 24

/* ---- reading ---- */

/* A number that AWS takes; a template's may be a text. */
struct number {
    const char *name;
    size_t at; /* in struct sl_mapping */
    int64_t otherwise, least, most;
    bool has_none; /* -1: no limit */
};

/* The ranges of Lambda's API, CreateEventSourceMapping. */
static const struct number numbers[] = {
    {"MaximumRetryAttempts", offsetof(struct sl_mapping, max_retries), -1, 0, 10000, true},
    {"MaximumRecordAgeInSeconds", offsetof(struct sl_mapping, max_age_s), -1, 60, 604800, true},
    {"ParallelizationFactor", offsetof(struct sl_mapping, parallelization), 1, 1, 10, false},
    {"TumblingWindowInSeconds", offsetof(struct sl_mapping, tumbling_s), 0, 0, 900, false},
    {"BatchSize", offsetof(struct sl_mapping, batch_size), SL_MAPPING_BATCH_SIZE, 1, 10000, false},
    {"MaximumBatchingWindowInSeconds", offsetof(struct sl_mapping, batching_s), 0, 0, 300, false},
};
#define N_NUMBERS SL_COUNT(numbers)

static bool read_integer(const json_t *value, int64_t *out)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    *out = text ? strtoll(text, &end, 10) : (int64_t)json_integer_value(value);
    return json_is_integer(value) || (text && *text && !*end);
}

static enum sl_status read_numbers(const json_t *root, struct sl_mapping *out, struct sl_error *error)
{
    for (size_t i = 0; i < N_NUMBERS; i++) {
        const json_t *value = json_object_get(root, numbers[i].name);
        int64_t *number = (int64_t *)((char *)out + numbers[i].at);
        *number = numbers[i].otherwise;
        if (value && !json_is_null(value) && !read_integer(value, number))
            return sl_fail(error, SL_REJECT, "InvalidMapping", "$.%s: is not a whole number",
                           numbers[i].name);
    }
    return SL_OK;
}

static enum sl_status read_bool(const json_t *root, const char *name, bool otherwise, bool *out,
                                struct sl_error *error)
{
    const json_t *value = json_object_get(root, name);
    const char *text = json_string_value(value);
    bool is_no = json_is_false(value) || (text && strcmp(text, "false") == 0);
    *out = !value || json_is_null(value) ? otherwise
                                         : json_is_true(value) || (text && strcmp(text, "true") == 0);
    if (!value || json_is_null(value) || *out || is_no)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "InvalidMapping", "$.%s: is neither true nor false", name);
}

static const char *text(const json_t *root, const char *name, struct sl_arena *arena)
{
    const char *value = json_string_value(json_object_get(root, name));
    return value ? sl_arena_copy(arena, sl_span_str(value)) : "";
}

static bool has_word(const json_t *list, const char *word)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), word) == 0)
            return true;
    }
    return false;
}

static void read_filters(const json_t *root, struct sl_arena *arena, struct sl_mapping *out)
{
    const json_t *list = json_object_get(json_object_get(root, "FilterCriteria"), "Filters");
    size_t i;
    const json_t *one;
    out->filters = sl_arena_alloc(arena, (json_array_size(list) + 1) * sizeof(*out->filters));
    json_array_foreach(list, i, one)
    {
        out->filters[out->n_filters++] = text(one, "Pattern", arena);
    }
}

/* ---- which mapping ---- */

/* What the API's answer and CloudFormation's type have, in AWS SAM's words, too. */
static const char *const members[] = {
    "AmazonManagedKafkaEventSourceConfig",
    "BatchSize",
    "BisectBatchOnFunctionError",
    "DestinationConfig",
    "DocumentDBEventSourceConfig",
    "Enabled",
    "EventSourceArn",
    "EventSourceMappingArn",
    "FilterCriteria",
    "FilterCriteriaError",
    "FunctionArn",
    "FunctionName",
    "FunctionResponseTypes",
    "Id",
    "KMSKeyArn",
    "KmsKeyArn",
    "LastModified",
    "LastProcessingResult",
    "LoggingConfig",
    "MaximumBatchingWindowInSeconds",
    "MaximumRecordAgeInSeconds",
    "MaximumRetryAttempts",
    "MetricsConfig",
    "ParallelizationFactor",
    "ProvisionedPollerConfig",
    "Queues",
    "ScalingConfig",
    "SelfManagedEventSource",
    "SelfManagedKafkaEventSourceConfig",
    "SourceAccessConfigurations",
    "StartingPosition",
    "StartingPositionTimestamp",
    "State",
    "StateTransitionReason",
    "Stream",
    "Tags",
    "Topics",
    "TumblingWindowInSeconds",
    "UUID",
};
#define N_MEMBERS SL_COUNT(members)

static bool is_member(const char *name)
{
    for (size_t i = 0; i < N_MEMBERS; i++)
        if (strcmp(name, members[i]) == 0)
            return true;
    return false;
}

/* A stream of DynamoDB, or of Kinesis with the changes of a table. An ARN that a template makes does not count. */
static bool is_of_stream(const json_t *mapping)
{
    const char *arn = json_string_value(json_object_get(mapping, "EventSourceArn"));
    bool is_other = json_object_get(mapping, "Queues") || json_object_get(mapping, "Topics") ||
                    json_object_get(mapping, "SelfManagedEventSource");
    return arn ? strstr(arn, ":dynamodb:") || strstr(arn, ":kinesis:") : !is_other;
}

/* Of a list, as `aws lambda list-event-source-mappings` prints it, the one that can be meant. */
static enum sl_status choose(const json_t *list, const json_t **out, struct sl_error *error)
{
    size_t i, n = 0;
    const json_t *one;
    char names[256] = "";
    json_array_foreach(list, i, one)
    {
        const char *uuid = json_string_value(json_object_get(one, "UUID"));
        if (!is_of_stream(one))
            continue;
        *out = one;
        sl_nearest_list(names, sizeof(names), uuid ? uuid : "one without UUID");
        n++;
    }
    if (n == 1)
        return SL_OK;
    if (n == 0)
        return sl_fail(error, SL_REJECT, "InvalidMapping",
                       "is a list of %zu mappings, and none of them is of a stream", json_array_size(list));
    return sl_fail(
        error, SL_REJECT, "InvalidMapping",
        "is a list of mappings, and %zu of them are of streams (%s): give one of them, as `aws lambda "
        "get-event-source-mapping --uuid UUID` prints it",
        n, names);
}

static bool has_any_member(const json_t *mapping)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)mapping, name, value)
    {
        if (is_member(name))
            return true;
    }
    return false;
}

/* The mapping itself: of a list its one, of a template's resource its properties. */
static enum sl_status find_mapping(const json_t *root, const json_t **out, struct sl_error *error)
{
    const json_t *list = json_object_get(root, "EventSourceMappings"),
                 *properties = json_object_get(root, "Properties");
    *out = properties ? properties : root;
    if (json_is_array(list) && choose(list, out, error) != SL_OK)
        return SL_REJECT;
    const char *arn = json_string_value(json_object_get(*out, "EventSourceArn"));
    if (!is_of_stream(*out))
        return sl_fail(
            error, SL_REJECT, "InvalidMapping",
            "is the mapping of %s, and Sluice takes events of a stream of DynamoDB, or of one of Kinesis "
            "with a table's changes",
            arn ? arn : "queues or topics");
    if (json_is_object(*out) && has_any_member(*out))
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "InvalidMapping",
        "is not an event source mapping (what `aws lambda get-event-source-mapping` prints): it has no "
        "member of one, such as BatchSize");
}

/* ---- all of it ---- */

static void read_strangers(const json_t *mapping, struct sl_arena *arena, struct sl_mapping *out)
{
    const char *name;
    json_t *value;
    out->strangers = sl_arena_alloc(arena, (json_object_size(mapping) + 1) * sizeof(*out->strangers));
    json_object_foreach((json_t *)mapping, name, value)
    {
        struct sl_nearest search = sl_nearest_begin(sl_span_str(name));
        for (size_t i = 0; i < N_MEMBERS; i++)
            sl_nearest_consider(&search, members[i]);
        if (!is_member(name) && search.best)
            out->strangers[out->n_strangers++] = sl_arena_printf(
                arena, "%s: is not a member of a mapping; did you mean %s?", name, search.best);
    }
}

static enum sl_status read_mapping(const json_t *mapping, struct sl_arena *arena, struct sl_mapping *out,
                                   struct sl_error *error)
{
    const json_t *failure = json_object_get(json_object_get(mapping, "DestinationConfig"), "OnFailure");
    bool is_enabled = true;
    *out = (struct sl_mapping){
        .reports_failures =
            has_word(json_object_get(mapping, "FunctionResponseTypes"), "ReportBatchItemFailures"),
        .has_destination = json_object_get(failure, "Destination") != NULL,
        .starting_position = text(mapping, "StartingPosition", arena),
        .source_arn = text(mapping, "EventSourceArn", arena),
    };
    enum sl_status status = read_numbers(mapping, out, error);
    if (status == SL_OK)
        status = read_bool(mapping, "BisectBatchOnFunctionError", false, &out->bisect, error);
    if (status == SL_OK)
        status = read_bool(mapping, "Enabled", true, &is_enabled, error);
    out->is_disabled = !is_enabled || strncmp(text(mapping, "State", arena), "Disabl", 6) == 0;
    read_filters(mapping, arena, out);
    read_strangers(mapping, arena, out);
    return status;
}

enum sl_status sl_mapping_read(struct sl_span json, struct sl_arena *arena, struct sl_mapping *out,
                               struct sl_error *error)
{
    json_error_t why;
    const json_t *mapping;
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &why);
    enum sl_status status = SL_OK;
    if (!json_is_object(root))
        status =
            sl_fail(error, SL_REJECT, "InvalidMapping",
                    "is not an event source mapping (what `aws lambda get-event-source-mapping` prints): %s",
                    root ? "not an object" : why.text);
    if (status == SL_OK)
        status = find_mapping(root, &mapping, error);
    if (status == SL_OK)
        status = read_mapping(mapping, arena, out, error);
    json_decref(root);
    return status;
}

/* ---- judging ---- */

struct judge {
    const struct sl_mapping *mapping;
    const struct sl_mapping_facts *facts;
    sl_lint_fn found;
    void *arg;
};

static void say(const struct judge *j, enum sl_lint_finding finding, const char *text)
{
    j->found(j->arg, finding, text);
}

static void check_answers(const struct judge *j)
{
    if (j->facts->config_reports_failures && !j->mapping->reports_failures)
        say(j, SL_FINDING_FAILURES_IGNORED,
            "report_batch_item_failures is true, but the mapping has no ReportBatchItemFailures: it takes "
            "every partial answer for a success, and the failed records are lost");
    if (!j->facts->config_reports_failures && j->mapping->reports_failures)
        say(j, SL_FINDING_FAILURES_UNUSED,
            "the mapping has ReportBatchItemFailures, but report_batch_item_failures is not true: every "
            "failure fails the whole batch");
}

static void check_limits(const struct judge *j)
{
    const struct sl_mapping *m = j->mapping;
    char line[320];
    bool has_limit = m->max_retries >= 0 || m->max_age_s >= 0;
    if (has_limit && !m->has_destination)
        say(j, SL_FINDING_NO_DESTINATION,
            "MaximumRetryAttempts or MaximumRecordAgeInSeconds makes the mapping give records up, and "
            "there is no OnFailure destination that would receive them");
    if (m->max_age_s >= 0 && m->max_age_s < STREAM_HOURS * 3600) {
        snprintf(line, sizeof(line),
                 "MaximumRecordAgeInSeconds is %lld: a longer outage gives up records that the stream still "
                 "keeps (%d hours); -1 has no limit",
                 (long long)m->max_age_s, STREAM_HOURS);
        say(j, SL_FINDING_AGE_SHORT, line);
    }
    if (m->max_retries >= 0 && m->max_retries < 1000) {
        snprintf(line, sizeof(line),
                 "MaximumRetryAttempts is %lld: an outage uses them up within minutes, and then good records "
                 "are given up; 10000 outlasts the stream's %d hours",
                 (long long)m->max_retries, STREAM_HOURS);
        say(j, SL_FINDING_RETRIES_FEW, line);
    }
    if (!has_limit && j->facts->all_routes_park)
        say(j, SL_FINDING_RETRIES_UNLIMITED,
            "MaximumRetryAttempts and MaximumRecordAgeInSeconds have no limit: what makes the function "
            "itself "
            "fail (a permission, a table that is gone) blocks a shard until the stream drops its records, "
            "and "
            "no destination receives them; set MaximumRetryAttempts to 10000, with an OnFailure destination");
    if (!has_limit && !j->facts->all_routes_park)
        say(j, SL_FINDING_SHARD_BLOCKED,
            "a route has on_failure \"report\", and the mapping retries without limit: one record that "
            "can never succeed blocks its shard until the stream drops it and the records after it");
}

/* AWS refuses it, so it is not the mapping of anything. */
static void check_ranges(const struct judge *j)
{
    char line[200];
    for (size_t i = 0; i < N_NUMBERS; i++) {
        const struct number *n = &numbers[i];
        int64_t is = *(const int64_t *)((const char *)j->mapping + n->at);
        if ((is >= n->least && is <= n->most) || (n->has_none && is == -1))
            continue;
        snprintf(line, sizeof(line), "%s is %" PRId64 ": AWS takes %s%" PRId64 " to %" PRId64, n->name, is,
                 n->has_none ? "-1 (no limit), or " : "", n->least, n->most);
        say(j, SL_FINDING_MAPPING_REFUSED, line);
    }
}

static void check_members(const struct judge *j)
{
    for (size_t i = 0; i < j->mapping->n_strangers; i++)
        say(j, SL_FINDING_MAPPING_MISTYPED, j->mapping->strangers[i]);
    if (j->mapping->is_disabled)
        say(j, SL_FINDING_MAPPING_DISABLED,
            "the mapping is disabled: no record is read, and the stream drops each one after 24 hours");
}

static void check_filters(const struct judge *j)
{
    bool is_kinesis = strstr(j->mapping->source_arn, ":kinesis:");
    char line[160];
    if (j->mapping->n_filters > SL_FILTERS_BY_DEFAULT) {
        snprintf(line, sizeof(line),
                 "FilterCriteria has %zu filters: AWS takes %d, and up to %d when the quota was raised",
                 j->mapping->n_filters, SL_FILTERS_BY_DEFAULT, SL_FILTERS_AT_MOST);
        say(j, SL_FINDING_FILTERS_TOO_MANY, line);
    }
    for (size_t i = 0; i < j->mapping->n_filters; i++) {
        char where[64];
        snprintf(where, sizeof(where), "FilterCriteria.Filters[%zu]", i);
        if (sl_filters_is_too_long(sl_span_str(j->mapping->filters[i]))) {
            snprintf(line, sizeof(line), "%s: has more than %d characters: AWS refuses it", where,
                     SL_FILTERS_CHARACTERS);
            say(j, SL_FINDING_FILTER_TOO_LONG, line);
        }
        struct sl_span pattern = sl_span_str(j->mapping->filters[i]);
        if (!is_kinesis || sl_filters_data(&pattern, NULL) == SL_OK)
            sl_lint_filter(pattern, where, j->found, j->arg);
    }
}

void sl_mapping_check(const struct sl_mapping *m, const struct sl_mapping_facts *facts, sl_lint_fn found,
                      void *arg)
{
    const struct judge j = {m, facts, found, arg};
    check_ranges(&j);
    check_members(&j);
    check_answers(&j);
    check_limits(&j);
    if (!m->bisect && !facts->all_routes_park)
        say(&j, SL_FINDING_BISECT_OFF,
            "BisectBatchOnFunctionError is off, and a route has on_failure \"report\": a record that can "
            "never succeed takes its whole batch with it");
    if (strcmp(m->starting_position, "LATEST") == 0)
        say(&j, SL_FINDING_STARTS_LATEST,
            "StartingPosition is LATEST: changes that are made while the mapping is created or updated "
            "can be missed; TRIM_HORIZON reads them all");
    if (m->tumbling_s > 0 && m->parallelization > 1)
        say(&j, SL_FINDING_WINDOW_PARALLEL, "TumblingWindowInSeconds needs a ParallelizationFactor of 1");
    check_filters(&j);
}
