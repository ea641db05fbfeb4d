#include "replay/mapping.h"

#include "base/span.h"

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
        return sl_fail(error, SL_REJECT, "InvalidMapping",
                       "is no event source mapping (what `aws lambda get-event-source-mapping` prints): %s",
                       root ? "not an object" : why.text);
    }
    const json_t *failure = json_object_get(json_object_get(root, "DestinationConfig"), "OnFailure");
    *out = (struct sl_mapping){
        .batch_size = integer(root, "BatchSize", 100),
        .max_retries = integer(root, "MaximumRetryAttempts", -1),
        .max_age_s = integer(root, "MaximumRecordAgeInSeconds", -1),
        .parallelization = integer(root, "ParallelizationFactor", 1),
        .tumbling_s = integer(root, "TumblingWindowInSeconds", 0),
        .bisect = json_is_true(json_object_get(root, "BisectBatchOnFunctionError")),
        .reports_failures =
            has_word(json_object_get(root, "FunctionResponseTypes"), "ReportBatchItemFailures"),
        .has_destination = json_object_get(failure, "Destination") != NULL,
        .starting_position = text(root, "StartingPosition", arena),
        .function = text(root, json_object_get(root, "FunctionArn") ? "FunctionArn" : "FunctionName", arena),
    };
    read_filters(root, arena, out);
    json_decref(root);
    return SL_OK;
}

/* ---- judging ---- */

static void check_answers(const struct sl_mapping *m, const struct sl_mapping_facts *facts,
                          sl_finding_fn found, void *arg)
{
    if (facts->config_reports_failures && !m->reports_failures)
        found(arg, true,
              "report_batch_item_failures is true, but the mapping has no ReportBatchItemFailures: it takes "
              "every "
              "partial answer for a success, and what failed is lost");
    if (!facts->config_reports_failures && m->reports_failures)
        found(arg, false,
              "the mapping has ReportBatchItemFailures, but report_batch_item_failures is not true: every "
              "failure "
              "fails the whole batch");
}

static void check_limits(const struct sl_mapping *m, const struct sl_mapping_facts *facts,
                         sl_finding_fn found, void *arg)
{
    char line[320];
    bool has_limit = m->max_retries >= 0 || m->max_age_s >= 0;
    if (has_limit && !m->has_destination)
        found(arg, true,
              "MaximumRetryAttempts or MaximumRecordAgeInSeconds give records up, and there is no OnFailure "
              "destination: nobody is told which");
    if (m->max_age_s >= 0 && m->max_age_s < STREAM_HOURS * 3600) {
        snprintf(
            line, sizeof(line),
            "MaximumRecordAgeInSeconds is %lld: an outage longer than that gives up records that the stream "
            "would have kept for %d hours; -1 leaves them in it",
            (long long)m->max_age_s, STREAM_HOURS);
        found(arg, true, line);
    }
    if (m->max_retries >= 0 && m->max_retries < 1000) {
        snprintf(
            line, sizeof(line),
            "MaximumRetryAttempts is %lld: an outage uses them up within minutes, and then gives up good "
            "records; 10000 outlasts the stream's %d hours",
            (long long)m->max_retries, STREAM_HOURS);
        found(arg, true, line);
    }
    if (!has_limit && !facts->all_routes_park)
        found(arg, true,
              "a route has on_failure \"report\", and the mapping retries without limit: one record that can "
              "never "
              "succeed blocks its shard until the stream drops it, and what is behind it");
}

void sl_mapping_check(const struct sl_mapping *m, const struct sl_mapping_facts *facts, sl_finding_fn found,
                      void *arg)
{
    check_answers(m, facts, found, arg);
    check_limits(m, facts, found, arg);
    if (!m->bisect && !facts->all_routes_park)
        found(arg, true,
              "BisectBatchOnFunctionError is off, and a route has on_failure \"report\": a record that can "
              "never "
              "succeed takes its whole batch with it");
    if (strcmp(m->starting_position, "LATEST") == 0)
        found(arg, true,
              "StartingPosition is LATEST: changes made while the mapping is made or updated can be missed; "
              "TRIM_HORIZON has them all");
    if (m->tumbling_s > 0 && m->parallelization > 1)
        found(arg, false, "TumblingWindowInSeconds asks for a ParallelizationFactor of 1");
    for (size_t i = 0; i < m->n_filters; i++) {
        char where[64];
        snprintf(where, sizeof(where), "FilterCriteria.Filters[%zu]", i);
        sl_pattern_lint(sl_span_str(m->filters[i]), where, found, arg);
    }
}

/* ---- patterns ---- */

struct lint {
    const char *where;
    sl_finding_fn found;
    void *arg;
};

static bool is_type(const char *name)
{
    static const char *const types[] = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(name, types[i]) == 0)
            return true;
    return false;
}

static bool has_operator(const json_t *list, const char *name)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (json_object_get(one, name))
            return true;
    }
    return false;
}

static void say(const struct lint *l, const char *attribute, const char *what)
{
    char line[512];
    snprintf(line, sizeof(line), "%s: %.80s: %s", l->where, attribute, what);
    l->found(l->arg, true, line);
}

/* What stands below an attribute's name: {"N": [...]}. */
static void lint_attribute(const struct lint *l, const char *name, const json_t *value)
{
    const char *type;
    json_t *rule;
    if (json_is_array(value)) {
        say(l, name,
            has_operator(value, "exists")
                ? "\"exists\" looks at leaves: beside the attribute's name it sees none, so false matches "
                  "every "
                  "record and true none; write {\"S\": [{\"exists\": ...}]} with the attribute's type"
                : "an attribute's value has its type in between, so this matches nothing; write {\"S\": "
                  "[...]}");
        return;
    }
    json_object_foreach((json_t *)value, type, rule)
    {
        if (strcmp(type, "N") == 0 && has_operator(rule, "numeric"))
            say(l, name,
                "\"numeric\" never matches an N, whose value is a text in the event; name the values (\"N\": "
                "[\"1\", \"2\"]), or filter in the function");
        if (strcmp(type, "M") == 0 && json_is_object(rule)) {
            const char *inner;
            json_t *below;
            json_object_foreach(rule, inner, below)
            {
                lint_attribute(l, inner, below);
            }
        }
        if (!is_type(type) && strcmp(type, "$or") != 0)
            say(l, name, "a type (S, N, BOOL, ...) stands between an attribute's name and its value");
    }
}

static void lint_change(const struct lint *l, const json_t *change)
{
    static const char *const images[] = {"Keys", "NewImage", "OldImage"};
    for (size_t i = 0; i < 3; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(change, images[i]), name, value)
        {
            if (strcmp(name, "$or") != 0)
                lint_attribute(l, name, value);
        }
    }
}

void sl_pattern_lint(struct sl_span json, const char *where, sl_finding_fn found, void *arg)
{
    const struct lint l = {where, found, arg};
    json_t *root = json_loadb(json.ptr ? json.ptr : "", json.len, 0, NULL);
    lint_change(&l, json_object_get(root, "dynamodb"));
    json_decref(root);
}
