/* `sluice try`: what a template or a condition makes of records. */
#include "base/json.h"
#include "base/json_walk.h"
#include "cli/command.h"
#include "cli/test/given.h"
#include "cli/verbs.h"
#include "live/source/inputs.h"
#include "streams/names.h"
#include "streams/record.h"
#include "streams/template/template.h"
#include "streams/value.h"
#include "streams/when/when.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MOST ((size_t)64 * 1024 * 1024)

struct trying {
    const char *ttl_attribute, *keys, *escape;
    enum sl_escape how;
    struct sl_arena *arena, *scratch;
    struct sl_template *template; /* or */
    struct sl_when *when, *where; /* one of them */
    struct sl_buffer text;
    size_t n, missed;
};

/* ---- what is tried ---- */

static bool is_one_of(struct sl_span name, const char *const *list)
{
    while (*list && !sl_json_text_is(name, sl_span_str(*list)))
        list++;
    return *list;
}

/* Every member of the object is one of the list. */
static bool has_only(struct sl_span object, const char *const *list)
{
    struct sl_json_walk walk = sl_json_walk(object);
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value))
        if (!is_one_of(name, list))
            return false;
    return true;
}

/* A JSON object is a `when`, a filter of an event source mapping, or a condition on the item; any other text
 * is a template. */
static enum sl_status compile(struct trying *t, const char *text, struct sl_error *error)
{
    static const char *const of_when[] = {"expired", "events",   "changed", "keys",
                                          "item",    "old_item", "pattern", NULL};
    static const char *const of_filter[] = {"eventName",   "dynamodb",  "eventID",        "eventVersion",
                                            "eventSource", "awsRegion", "eventSourceARN", "userIdentity",
                                            "$or",         NULL};
    struct sl_span json = sl_span_str(text);
    const char *second = *text == '{' ? sl_json_space(text + 1, sl_span_end(json)) : "";
    struct sl_vars vars = sl_command_environment();
    if (*second != '"' && *second != '}')
        return sl_template_compile(json, &vars, t->arena, &t->template, error);
    if (sl_json_check(json, error) != SL_OK)
        return SL_REJECT;
    if (has_only(json, of_when))
        return sl_when_compile(json, t->arena, &t->when, error);
    if (has_only(json, of_filter))
        return sl_pattern_compile(json, t->arena, &t->when, error);
    return sl_where_compile(json, t->arena, &t->where, error);
}

static enum sl_status read_escape(struct trying *t, struct sl_error *error)
{
    t->how = SL_ESCAPE_NONE;
    if (!t->escape || strcmp(t->escape, "none") == 0)
        return SL_OK;
    t->how = strcmp(t->escape, "json") == 0 ? SL_ESCAPE_JSON : SL_ESCAPE_PATH;
    if (t->how == SL_ESCAPE_PATH && strcmp(t->escape, "path") != 0)
        return sl_fail(error, SL_REJECT, "BadFlag", "--escape %s: none, json or path is expected", t->escape);
    return SL_OK;
}

/* ---- a record ---- */

static void print_key(struct trying *t, const struct sl_record *r)
{
    sl_buffer_reset(&t->text);
    sl_value_plain(sl_record_image(r, SL_KEYS), &t->text);
    printf("%s %.*s\n", sl_event_name(sl_record_event(r)), SL_ARG(sl_buffer_span(&t->text)));
}

static void try_condition(struct trying *t, const struct sl_record *r)
{
    struct sl_value item = sl_record_image(r, SL_NEW_IMAGE);
    if (item.type == SL_NONE)
        item = sl_record_image(r, SL_OLD_IMAGE);
    bool is_true =
        t->where ? sl_where_match(t->where, item, t->scratch) : sl_when_match(t->when, r, t->scratch);
    bool lacks = t->where ? item.type == SL_NONE : !is_true && sl_when_lacks(t->when, r, t->scratch);
    t->missed += !is_true;
    printf("%-7s ", is_true ? "true" : lacks ? "unknown" : "false");
    print_key(t, r);
}

static void try_template(struct trying *t, const struct sl_record *r)
{
    struct sl_error why = SL_NO_ERROR;
    const struct sl_rendering how = {
        .record = r, .image = SL_ANY_IMAGE, .escape = t->how, .scratch = t->scratch};
    sl_buffer_reset(&t->text);
    if (sl_template_render(t->template, &how, &t->text, &why) == SL_OK) {
        printf("%.*s\n", SL_ARG(sl_buffer_span(&t->text)));
        return;
    }
    t->missed++;
    fflush(stdout);
    fprintf(stderr, "record %zu: %s: %s\n", t->n, why.code, why.text);
}

static void try_record(struct trying *t, const struct sl_record *r)
{
    sl_arena_reset(t->scratch);
    if (t->template)
        try_template(t, r);
    else
        try_condition(t, r);
    t->n++;
}

/* ---- the inputs ---- */

static enum sl_status try_batch(void *arg, const struct sl_batch *batch, bool *is_enough,
                                struct sl_error *error)
{
    (void)is_enough;
    (void)error;
    for (size_t i = 0; i < batch->n; i++)
        try_record(arg, sl_batch_record(batch, i));
    return SL_OK;
}

/* JSON on the command line: an item, {"before":..., "after":...}, a record, or a list of these. */
static enum sl_status read_inline(struct trying *t, const char *text, struct sl_span *out,
                                  struct sl_error *error)
{
    static const char *const of_others[] = {"before", "after", "expired", "at", NULL};
    struct sl_span json = sl_span_str(text), entry;
    struct sl_buffer entries, event;
    if (sl_json_check(json, error) != SL_OK) {
        sl_error_context(error, "the record %.60s", text);
        return SL_REJECT;
    }
    if (*text == '{' && sl_json_walk_member(json, SL_LIT("Records")).ptr) {
        *out = json;
        return SL_OK;
    }
    sl_buffer_init_in(&entries, t->arena, TEXT_MOST);
    sl_buffer_init_in(&event, t->arena, TEXT_MOST);
    struct sl_span list = *text == '[' ? json : sl_span_str(sl_arena_printf(t->arena, "[%s]", text));
    struct sl_json_walk walk = sl_json_walk(list);
    for (bool is_first = true; sl_json_walk_next(&walk, NULL, &entry); is_first = false) {
        bool is_record = sl_json_walk_member(entry, SL_LIT("dynamodb")).ptr ||
                         sl_json_walk_member(entry, SL_LIT("Item")).ptr;
        bool is_item = *entry.ptr == '{' && !is_record && !has_only(entry, of_others);
        sl_buffer_printf(&entries, is_item ? "%s{\"after\":%.*s}" : "%s%.*s", is_first ? "[" : ",",
                         SL_ARG(entry));
    }
    sl_buffer_add_char(&entries, ']');
    const struct sl_given given = {.entries = sl_buffer_span(&entries), .keys = t->keys};
    enum sl_status status = sl_given_event(&given, t->arena, &event, error);
    *out = sl_buffer_span(&event);
    return status;
}

static enum sl_status try_operands(struct trying *t, char *const *operands, int n, struct sl_error *error)
{
    const char **names = sl_arena_zalloc(t->arena, ((size_t)n + 1) * sizeof(*names));
    struct sl_span *texts = sl_arena_zalloc(t->arena, ((size_t)n + 1) * sizeof(*texts));
    struct sl_inputs inputs = {.names = names, .texts = texts, .n = n ? (size_t)n : 1};
    enum sl_status status = SL_OK;
    names[0] = "-";
    for (int i = 0; i < n && status == SL_OK; i++) {
        bool is_inline = operands[i][0] == '{' || operands[i][0] == '[';
        names[i] = is_inline ? "the command line" : operands[i];
        if (is_inline)
            status = read_inline(t, operands[i], &texts[i], error);
    }
    return status == SL_OK ? sl_inputs_each(&inputs, t->ttl_attribute, try_batch, t, error) : status;
}

int sl_verb_try(int argc, char **argv)
{
    struct trying t = {.n = 0};
    const struct sl_flag flags[] = {
        {"escape", SL_FLAG_TEXT, &t.escape, "HOW", "of a template's values: none (default), json, path"},
        {"keys", SL_FLAG_TEXT, &t.keys, "PK,SK", "key attributes of items on the command line"},
        {"ttl-attribute", SL_FLAG_TEXT, &t.ttl_attribute, "NAME",
         "finds removals by TTL that carry no mark of it"},
        {0}};
    const struct sl_usage usage = {
        .line = "try [flags] TEMPLATE|CONDITION [INPUT...]",
        .summary = "Prints what a template makes of each record, or for which records a condition is true. A "
                   "condition is a \"when\", a \"where\" or a filter, as JSON. INPUT is a file in any shape "
                   "that `replay` reads, standard input, or an item as JSON: sluice try '{status|lower}' "
                   "'{\"PK\": \"a\", \"status\": \"NEW\"}'. Exit status: 0 of every record something was "
                   "made, 1 of some not, 2 bad usage or input.",
        .example = "sluice try '{status|lower} of {PK}' '{\"PK\": \"a\", \"status\": \"NEW\"}'",
        .flags = flags,
        .operand = "TEMPLATE",
        .least = 1};
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    struct sl_error error = SL_NO_ERROR;
    t.arena = sl_arena_new(64 * 1024);
    t.scratch = sl_arena_new(64 * 1024);
    sl_buffer_init(&t.text, TEXT_MOST);
    enum sl_status status = read_escape(&t, &error);
    if (status == SL_OK)
        status = compile(&t, argv[1], &error);
    if (status == SL_OK)
        status = try_operands(&t, argv + 2, n - 1, &error);
    sl_buffer_clean_up(&t.text);
    sl_arena_destroy(t.scratch);
    sl_arena_destroy(t.arena);
    if (status != SL_OK)
        return sl_flags_complain("try", &error);
    return sl_flags_end("try", t.missed ? SL_EXIT_FAILED : SL_EXIT_OK);
}
