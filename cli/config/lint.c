/* Looks through a filter pattern for rules that AWS accepts and that match something else than they seem to.
 */
#include "cli/config/lint.h"

#include "base/array.h"
#include "streams/when/when.h"

#include <jansson.h>
#include <stdio.h>

const struct sl_lint_row sl_lint_rows[SL_FINDINGS] = {
    [SL_FINDING_VARIABLE_NOT_SET] = {"variable-not-set", false},
    [SL_FINDING_SET_UNUSED] = {"set-unused", false},
    [SL_FINDING_TARGET_LOCAL] = {"target-local", false},
    [SL_FINDING_TRACE_UNUSED] = {"trace-unused", false},
    [SL_FINDING_BATCH_FAILS_WHOLE] = {"batch-fails-whole", false},
    [SL_FINDING_COUNTER_MOVES] = {"counter-moves", true},
    [SL_FINDING_VIEW_LACKS_IMAGE] = {"view-lacks-image", true},
    [SL_FINDING_WEBHOOK_IDS_SHARED] = {"webhook-ids-shared", true},
    [SL_FINDING_OPTION_UNUSED] = {"option-unused", true},
    [SL_FINDING_TEMPLATE_BRACES] = {"template-braces", true},
    [SL_FINDING_TEMPLATE_TYPE] = {"template-type", false},
    [SL_FINDING_TABLE_SHARED] = {"table-shared", true},
    [SL_FINDING_OBJECTS_SHARED] = {"objects-shared", true},
    [SL_FINDING_FAILURES_MIXED] = {"failures-mixed", true},
    [SL_FINDING_SOURCE_IS_TARGET] = {"source-is-target", true},
    [SL_FINDING_SAMPLE_NOT_TAKEN] = {"sample-not-taken", false},
    [SL_FINDING_SAMPLE_NOT_FILLED] = {"sample-not-filled", true},
    [SL_FINDING_NEVER_MATCHES] = {"never-matches", true},
    [SL_FINDING_ALWAYS_MATCHES] = {"always-matches", true},
    [SL_FINDING_ABSENCE_IN_LIST] = {"absence-in-list", true},
    [SL_FINDING_CASE_OF_EMOJI] = {"case-of-emoji", true},
    [SL_FINDING_OPERATOR_UNPUBLISHED] = {"operator-unpublished", false},
    [SL_FINDING_FILTER_REFUSED] = {"filter-refused", true},
    [SL_FINDING_FILTER_TOO_LONG] = {"filter-too-long", false},
    [SL_FINDING_FILTERS_TOO_MANY] = {"filters-too-many", false},
    [SL_FINDING_FAILURES_IGNORED] = {"failures-ignored", true},
    [SL_FINDING_FAILURES_UNUSED] = {"failures-unused", false},
    [SL_FINDING_NO_DESTINATION] = {"no-destination", true},
    [SL_FINDING_AGE_SHORT] = {"age-short", true},
    [SL_FINDING_RETRIES_FEW] = {"retries-few", true},
    [SL_FINDING_SHARD_BLOCKED] = {"shard-blocked", true},
    [SL_FINDING_BISECT_OFF] = {"bisect-off", true},
    [SL_FINDING_STARTS_LATEST] = {"starts-latest", true},
    [SL_FINDING_WINDOW_PARALLEL] = {"window-parallel", false},
    [SL_FINDING_RETRIES_UNLIMITED] = {"retries-unlimited", true},
    [SL_FINDING_MAPPING_REFUSED] = {"mapping-refused", true},
    [SL_FINDING_MAPPING_MISTYPED] = {"mapping-mistyped", true},
    [SL_FINDING_MAPPING_DISABLED] = {"mapping-disabled", true},
    [SL_FINDING_ORDER_TIED] = {"order-tied", true},
    [SL_FINDING_TOTALS_TIED] = {"totals-tied", false},
    [SL_FINDING_TABLE_MISSING] = {"table-missing", true},
    [SL_FINDING_KEY_DIFFERS] = {"key-differs", true},
    [SL_FINDING_SET_ON_KEY] = {"set-on-key", true},
    [SL_FINDING_KEY_NOT_UNIQUE] = {"key-not-unique", true},
    [SL_FINDING_ORDER_NEEDED] = {"order-needed", true},
    [SL_FINDING_LEDGER_SHARED] = {"ledger-shared", true},
    [SL_FINDING_KEY_BARE] = {"key-bare", false},
    [SL_FINDING_SHARDS_READ] = {"shards-read", false},
    [SL_FINDING_SHARDS_CHANGED] = {"shards-changed", true},
    [SL_FINDING_EPOCH_BEHIND] = {"epoch-behind", true},
    [SL_FINDING_ASIDE_KINESIS] = {"aside-kinesis", true},
    [SL_FINDING_QUEUE_MISSING] = {"queue-missing", true},
    [SL_FINDING_LETTERS_EXPIRE] = {"letters-expire", true},
    [SL_FINDING_EPOCH_RAISED] = {"epoch-raised", false},
};

struct lint {
    const char *where;
    sl_lint_fn found;
    void *arg;
};

static void say(const struct lint *l, enum sl_lint_finding finding, const char *attribute, const char *what)
{
    char line[512];
    snprintf(line, sizeof(line), "%s: %.80s: %s", l->where, attribute, what);
    l->found(l->arg, finding, line);
}

/* ---- attributes and their types ---- */

static void lint_attribute(const struct lint *l, const char *name, const json_t *value, bool is_in_list);

/* The names below an M. */
static void lint_map(const struct lint *l, const json_t *map, bool is_in_list)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value)
    {
        if (strcmp(name, "$or") != 0)
            lint_attribute(l, name, value, is_in_list);
    }
}

static bool has_absence(const json_t *list)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (json_is_false(json_object_get(one, "exists")))
            return true;
    }
    return false;
}

/* One type of an attribute and its rules: "N": [...]. */
static void lint_type(const struct lint *l, const char *name, const char *type, const json_t *rule,
                      bool is_in_list)
{
    if (is_in_list && has_absence(rule))
        say(l, SL_FINDING_ABSENCE_IN_LIST, name,
            "below a list, \"exists\": false asks one element only if a name that comes before it in the "
            "alphabet has matched in that element; else it asks all of them");
    if (strcmp(type, "M") == 0)
        lint_map(l, rule, is_in_list);
    if (strcmp(type, "L") == 0 && json_is_object(rule))
        lint_attribute(l, name, rule, true);
}

/* The rules below an attribute's name: {"N": [...]}. */
static void lint_attribute(const struct lint *l, const char *name, const json_t *value, bool is_in_list)
{
    const char *type;
    json_t *rule;
    if (has_absence(value))
        say(l, SL_FINDING_ALWAYS_MATCHES, name,
            "\"exists\" looks at leaves: beside the attribute's name it sees none, so false matches every "
            "record; write {\"S\": [{\"exists\": ...}]} with the attribute's type");
    json_object_foreach((json_t *)value, type, rule)
    {
        lint_type(l, name, type, rule, is_in_list);
    }
}

static void lint_change(const struct lint *l, const json_t *change)
{
    static const char *const images[] = {"Keys", "NewImage", "OldImage"};
    for (size_t i = 0; i < 3; i++)
        lint_map(l, json_object_get(change, images[i]), false);
}

/* ---- operators, wherever they are ---- */

typedef void (*look_fn)(const struct lint *l, const char *field, const char *operator_name,
                        const json_t *operand);

static void each_operator(const struct lint *l, const char *field, const json_t *value, look_fn look)
{
    const char *name;
    json_t *inner;
    size_t i;
    json_object_foreach((json_t *)value, name, inner)
    {
        each_operator(l, name, inner, look);
    }
    if (!json_is_array(value))
        return;
    json_array_foreach((json_t *)value, i, inner)
    {
        if (strcmp(field, "$or") == 0)
            each_operator(l, field, inner, look);
        else if (json_is_object(inner)) /* of one member: else the pattern is refused */
            look(l, field, json_object_iter_key(json_object_iter(inner)),
                 json_object_iter_value(json_object_iter(inner)));
    }
}

/* Characters of four bytes in UTF-8. */
static bool is_beyond_the_plane(const json_t *text)
{
    const char *s = json_string_value(text);
    while (s && *s && (unsigned char)*s < 0xF0)
        s++;
    return s && *s;
}

static bool has_wide_text(const json_t *operand)
{
    size_t i;
    const json_t *one;
    json_array_foreach(operand, i, one)
    {
        if (is_beyond_the_plane(one))
            return true;
    }
    return is_beyond_the_plane(operand);
}

/* The engine takes such a character for two. */
static void look_at_case(const struct lint *l, const char *field, const char *operator_name,
                         const json_t *operand)
{
    const json_t *inner = json_object_get(operand, "equals-ignore-case");
    bool is_fold = strcmp(operator_name, "equals-ignore-case") == 0;
    if (has_wide_text(is_fold ? operand : inner))
        say(l, SL_FINDING_CASE_OF_EMOJI, field,
            "on AWS, \"equals-ignore-case\" never matches a text with a character beyond U+FFFF (an emoji)");
}

static void look_at_publication(const struct lint *l, const char *field, const char *operator_name,
                                const json_t *operand)
{
    static const char *const unpublished[] = {"wildcard", "cidr", "exactly"};
    bool is_one = json_is_object(operand); /* an operator in another one */
    char line[512];
    for (size_t i = 0; i < SL_COUNT(unpublished); i++)
        is_one = is_one || strcmp(operator_name, unpublished[i]) == 0;
    if (!is_one)
        return;
    snprintf(line, sizeof(line), "%s: %.80s: \"%.80s\"%s is not in Lambda's published list of operators",
             l->where, field, operator_name, json_is_object(operand) ? " around another operator" : "");
    l->found(l->arg, SL_FINDING_OPERATOR_UNPUBLISHED, line);
}

void sl_lint_pattern(struct sl_span json, const char *where, sl_lint_fn found, void *arg)
{
    const struct lint l = {where, found, arg};
    json_t *root = json_loadb(json.ptr, json.len, 0, NULL);
    lint_change(&l, json_object_get(root, "dynamodb"));
    each_operator(&l, "", root, look_at_case);
    json_decref(root);
}

static void never_matches(void *arg, const char *text)
{
    const struct lint *l = arg;
    char line[1024];
    snprintf(line, sizeof(line), "%s: %s", l->where, text);
    l->found(l->arg, SL_FINDING_NEVER_MATCHES, line);
}

static bool is_refused(struct lint *l, struct sl_span json)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_error error = SL_NO_ERROR;
    struct sl_when *unused;
    char line[1024];
    bool is_refused = sl_pattern_compile(json, arena, &unused, &error) != SL_OK;
    sl_arena_destroy(arena);
    if (!is_refused)
        return sl_pattern_judge(json, never_matches, l, NULL) != SL_OK;
    snprintf(line, sizeof(line), "%s: AWS refuses this pattern: %s", l->where, error.text);
    l->found(l->arg, SL_FINDING_FILTER_REFUSED, line);
    sl_error_clear(&error);
    return true;
}

void sl_lint_filter(struct sl_span json, const char *where, sl_lint_fn found, void *arg)
{
    struct lint l = {where, found, arg};
    if (is_refused(&l, json))
        return;
    json_t *root = json_loadb(json.ptr, json.len, 0, NULL);
    sl_lint_pattern(json, where, found, arg);
    each_operator(&l, "", root, look_at_publication);
    json_decref(root);
}
