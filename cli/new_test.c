/* `sluice new-test`: a first case from a recording. */
#include "base/array.h"
#include "base/disk.h"
#include "base/json_write.h"
#include "cli/command.h"
#include "cli/dry.h"
#include "cli/test/case.h"
#include "streams/shorthand.h"
#include "cli/verbs.h"
#include "handlers/pipeline/route.h"
#include "live/source/inputs.h"
#include "streams/record.h"
#include "streams/value.h"
#include "streams/when/when.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CASE_MOST  ((size_t)64 * 1024 * 1024)
#define KINDS_MOST 1000

struct making {
    struct sl_command command;
    struct sl_flag_list set;
    struct sl_inputs inputs;
    const char *path;
    int64_t most;
    struct sl_buffer text; /* the entries of "given" */
    const char **kinds;    /* that have a record */
    size_t n_kinds, room;
    size_t n;
    struct sl_source_keys keys;
    struct sl_arena *scratch;
};

/* ---- which records ---- */

/* A key without what tells one item from another: "ORDER#2026-11-20#0001" is "ORDER#". */
static void add_kind_of_key(struct sl_buffer *kind, struct sl_value key, struct sl_arena *scratch)
{
    struct sl_span text = key.type == SL_S ? sl_value_text(key, scratch) : sl_span(NULL, 0);
    size_t n = 0;
    while (n < text.len && !strchr("#|:/", text.ptr[n]) && !(text.ptr[n] >= '0' && text.ptr[n] <= '9'))
        n++;
    bool has_prefix = n > 0 && n < text.len;
    if (has_prefix || (n == text.len && n && text.ptr[0] == '#'))
        sl_buffer_add(kind, text.ptr, n);
    sl_buffer_add_char(kind, '\n');
}

/* What tells records apart here: the routes that take it, the event, who removed it, and what kind of key it
 * has. In scratch. */
static const char *kind_of(struct making *m, const struct sl_record *r)
{
    struct sl_buffer kind;
    struct sl_iter iter = sl_value_iter(sl_record_image(r, SL_KEYS));
    struct sl_span name;
    struct sl_value value;
    sl_buffer_init_in(&kind, m->scratch, CASE_MOST);
    sl_buffer_printf(&kind, "%d %d ", (int)sl_record_event(r), (int)sl_record_ttl(r));
    for (size_t i = 0; i < m->command.pipeline->n; i++)
        sl_buffer_add_char(&kind,
                           sl_when_match(m->command.pipeline->routes[i].when, r, m->scratch) ? '1' : '0');
    while (sl_value_next(&iter, &name, &value))
        add_kind_of_key(&kind, value, m->scratch);
    sl_buffer_add_char(&kind, '\0');
    return kind.ptr;
}

static bool is_new(struct making *m, const struct sl_record *r)
{
    const char *kind = kind_of(m, r);
    for (size_t i = 0; i < m->n_kinds; i++)
        if (strcmp(m->kinds[i], kind) == 0)
            return false;
    if (m->n_kinds == KINDS_MOST)
        return false;
    SL_PUSH_IN(m->command.arena, m->kinds, m->n_kinds, m->room) =
        sl_arena_copy(m->command.arena, sl_span_str(kind));
    return true;
}

/* ---- what is written of one ---- */

/* As shorthand where that says the same; else, with sets or maps that look like a value, as DynamoDB's JSON.
 */
static void add_item(struct making *m, const char *name, struct sl_value item)
{
    struct sl_buffer plain, again;
    if (item.type == SL_NONE)
        return;
    sl_buffer_init_in(&plain, m->scratch, CASE_MOST);
    sl_buffer_init_in(&again, m->scratch, CASE_MOST);
    sl_value_plain(item, &plain);
    sl_shorthand_add_item(&again, sl_buffer_span(&plain));
    bool is_same = sl_value_equal((struct sl_value){.type = SL_M, .raw = sl_buffer_span(&again)}, item);
    sl_buffer_printf(&m->text, "%s\"%s\": ", m->text.ptr[m->text.len - 1] == '{' ? "" : ", ", name);
    sl_buffer_add_span(&m->text, is_same ? sl_buffer_span(&plain) : item.raw);
}

static void add_record(struct making *m, const struct sl_record *r)
{
    struct sl_value before = sl_record_image(r, SL_OLD_IMAGE), after = sl_record_image(r, SL_NEW_IMAGE);
    sl_buffer_add_str(&m->text, m->n++ ? ",\n    " : "\n    ");
    enum sl_event event = sl_record_event(r);
    bool has_images =
        (event == SL_INSERT || before.type != SL_NONE) && (event == SL_REMOVE || after.type != SL_NONE);
    if (!has_images) { /* of a stream with fewer images, or keys alone */
        sl_json_add_compact(&m->text, sl_record_text(r, SL_FIELD_RAW));
        return;
    }
    sl_buffer_add_char(&m->text, '{');
    add_item(m, "before", before);
    add_item(m, "after", after);
    if (sl_record_ttl(r) == SL_TTL_EXPIRED)
        sl_buffer_add_str(&m->text, ", \"expired\": true");
    if (sl_record_created_ns(r))
        sl_buffer_printf(&m->text, ", \"at\": %lld", (long long)(sl_record_created_ns(r) / 1000000000));
    sl_buffer_add_char(&m->text, '}');
}

/* In the order in which people name them, as far as that can be told: Keys have none. */
static void take_keys(struct making *m, const struct sl_record *r)
{
    sl_source_keys_of(r, m->command.arena, &m->keys);
    if (m->keys.n < 2 || sl_span_compare(m->keys.names[0], m->keys.names[1]) < 0)
        return;
    struct sl_span first = m->keys.names[0];
    m->keys.names[0] = m->keys.names[1];
    m->keys.names[1] = first;
}

static enum sl_status choose(void *arg, const struct sl_batch *batch, bool *is_enough, struct sl_error *error)
{
    struct making *m = arg;
    (void)error;
    for (size_t i = 0; i < batch->n && (int64_t)m->n < m->most; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        sl_arena_reset(m->scratch);
        if (!m->keys.n)
            take_keys(m, r);
        if (is_new(m, r))
            add_record(m, r);
    }
    *is_enough = (int64_t)m->n == m->most;
    return SL_OK;
}

static enum sl_status choose_all(struct making *m, struct sl_error *error)
{
    struct sl_span ttl = m->command.pipeline->config.ttl_attribute;
    const char *ttl_text = ttl.ptr ? sl_arena_copy(m->command.arena, ttl) : NULL;
    enum sl_status status = sl_inputs_each(&m->inputs, ttl_text, choose, m, error);
    if (status == SL_OK && !m->n)
        return sl_fail(error, SL_REJECT, "NoRecords", "%s: has no record", m->inputs.names[0]);
    return status;
}

/* ---- the file ---- */

static enum sl_status write_case(struct making *m, struct sl_error *error)
{
    struct sl_buffer whole;
    sl_buffer_init(&whole, CASE_MOST);
    sl_buffer_add_str(&whole, "{\n  \"about\": \"the first record of each kind in ");
    sl_json_add_escaped(&whole, sl_span_str(m->inputs.names[0]));
    sl_buffer_add_str(&whole, "\",\n  \"keys\": [");
    for (size_t i = 0; i < m->keys.n; i++)
        sl_buffer_printf(&whole, "%s\"%.*s\"", i ? ", " : "", SL_ARG(m->keys.names[i]));
    sl_buffer_add_str(&whole, "],\n  \"given\": [");
    sl_buffer_add_span(&whole, sl_buffer_span(&m->text));
    sl_buffer_add_str(&whole, "\n  ]\n}\n");
    enum sl_status status = sl_disk_make_parent(m->path, error);
    int err = status == SL_OK ? sl_disk_replace_path(m->path, sl_buffer_span(&whole)) : 0;
    sl_buffer_clean_up(&whole);
    return err ? sl_fail(error, SL_REJECT, "CannotWrite", "%s: cannot be written: %s", m->path, strerror(err))
               : status;
}

static enum sl_status make(struct making *m, struct sl_error *error)
{
    if (access(m->path, F_OK) == 0)
        return sl_fail(error, SL_REJECT, "Exists", "%s: exists, and is left as it is: name another file",
                       m->path);
    enum sl_status status = sl_inputs_check(&m->inputs, error);
    if (status == SL_OK)
        status = sl_case_variables(&m->command, &m->set, error);
    if (status == SL_OK)
        status = sl_command_open(&m->command, "test", &sl_dry_openers, error);
    if (status == SL_OK)
        status = choose_all(m, error);
    return status == SL_OK ? write_case(m, error) : status;
}

int sl_verb_new_test(int argc, char **argv)
{
    struct making m = {.command = {.verb = "new-test", .config = "sluice.json"}, .most = 20};
    const struct sl_flag flags[] = {
        {"config", SL_FLAG_TEXT, &m.command.config, "FILE", "configuration (default: sluice.json)"},
        {"records", SL_FLAG_INTEGER, &m.most, "N", "records at most, 1 to 1000 (default: 20)"},
        {"set", SL_FLAG_LIST, &m.set, "NAME=VALUE",
         "a variable; those that are not set get a value that fits"},
        {"handler-path", SL_FLAG_TEXT, &m.command.handler_path, "FOLDERS",
         "where plugins are (default: handlers/ beside the configuration)"},
        {0}};
    const struct sl_flag_range ranges[] = {{"records", 1, 1000}, {0}};
    const struct sl_usage usage = {
        .line = "new-test [flags] CASE.json RECORDING...",
        .summary = "Writes a first case for `sluice test`: of the recording the first record of each kind, "
                   "by the routes that take it, the event, and what its keys begin with. What has to leave "
                   "for them is then written by `sluice test --bless CASE.json`.",
        .example = "sluice new-test tests/first.json events.jsonl",
        .flags = flags,
        .ranges = ranges,
        .operand = "CASE.json RECORDING",
        .least = 2};
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    struct sl_error error = SL_NO_ERROR;
    sl_command_begin(&m.command);
    m.scratch = sl_arena_new(64 * 1024);
    sl_buffer_init(&m.text, CASE_MOST);
    m.path = argv[1];
    m.inputs = (struct sl_inputs){.names = (const char *const *)argv + 2, .n = (size_t)n - 1};
    enum sl_status status = make(&m, &error);
    if (status == SL_OK)
        printf("%s: %zu record%s\nnext: sluice test --config %s --bless %s\n", m.path, m.n,
               m.n == 1 ? "" : "s", m.command.config, m.path);
    sl_buffer_clean_up(&m.text);
    sl_arena_destroy(m.scratch);
    sl_command_end(&m.command);
    return status == SL_OK ? sl_flags_end("new-test", SL_EXIT_OK) : sl_flags_complain("new-test", &error);
}
