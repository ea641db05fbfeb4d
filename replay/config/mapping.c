/* Reads an event source mapping, and finds what in it would lose data. */
#include "replay/config/mapping.h"

#include "base/span.h"
#include "replay/config/filters.h"

#include <jansson.h>
#include <stdio.h>

#define STREAM_HOURS 24

/* ---- reading ---- */

static int64_t integer(const json_t *root, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(root, name);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
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

enum sl_status sl_mapping_read(struct sl_span json, struct sl_arena *arena, struct sl_mapping *out,
                               struct sl_error *error)
{
    json_error_t why;
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(root)) {
        json_decref(root);
        return sl_fail(
            error, SL_REJECT, "InvalidMapping",
            "is not an event source mapping (what `aws lambda get-event-source-mapping` prints): %s",
            root ? "not an object" : why.text);
    }
    const json_t *failure = json_object_get(json_object_get(root, "DestinationConfig"), "OnFailure");
    *out = (struct sl_mapping){
        .max_retries = integer(root, "MaximumRetryAttempts", -1),
        .max_age_s = integer(root, "MaximumRecordAgeInSeconds", -1),
        .parallelization = integer(root, "ParallelizationFactor", 1),
        .tumbling_s = integer(root, "TumblingWindowInSeconds", 0),
        .batch_size = integer(root, "BatchSize", SL_MAPPING_BATCH_SIZE),
        .bisect = json_is_true(json_object_get(root, "BisectBatchOnFunctionError")),
        .reports_failures =
            has_word(json_object_get(root, "FunctionResponseTypes"), "ReportBatchItemFailures"),
        .has_destination = json_object_get(failure, "Destination") != NULL,
        .starting_position = text(root, "StartingPosition", arena),
    };
    read_filters(root, arena, out);
    json_decref(root);
    return SL_OK;
}

/* ---- judging ---- */

struct judge {
    const struct sl_mapping *mapping;
    const struct sl_mapping_facts *facts;
    sl_lint_fn found;
    void *arg;
};

static void say(const struct judge *j, enum sl_finding finding, const char *text)
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
    if (!has_limit && !j->facts->all_routes_park)
        say(j, SL_FINDING_SHARD_BLOCKED,
            "a route has on_failure \"report\", and the mapping retries without limit: one record that "
            "can never succeed blocks its shard until the stream drops it and the records after it");
}

static void check_filters(const struct judge *j)
{
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
        sl_lint_filter(sl_span_str(j->mapping->filters[i]), where, j->found, j->arg);
    }
}

void sl_mapping_check(const struct sl_mapping *m, const struct sl_mapping_facts *facts, sl_lint_fn found,
                      void *arg)
{
    const struct judge j = {m, facts, found, arg};
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
