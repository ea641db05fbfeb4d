/* Reads, runs and blesses a case: see cli/test/case.h. */
#include "cli/test/case.h"

#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/nearest.h"
#include "cli/check/check_vars.h"
#include "cli/command.h"
#include "cli/test/recorder.h"
#include "handlers/dispatch/dispatch.h"
#include "handlers/pipeline/config.h"
#include "handlers/pipeline/route.h"
#include "streams/record.h"
#include "streams/value.h"

#include <string.h>
#include <unistd.h>

#define CASE_MOST  ((size_t)64 * 1024 * 1024)
#define EVENT_MOST ((size_t)256 * 1024 * 1024)
#define LINES_MOST ((size_t)512 * 1024 * 1024)
#define TIMEOUT_MS 60000

/* ---- reading ---- */

enum { ABOUT, CONFIG, KEYS, TABLE, VIEW, ROUTES, GIVEN, RECORDS, EXPECT, N_MEMBERS };
static const struct {
    const char *name;
    char begins; /* its JSON */
} members[N_MEMBERS] = {{"about", '"'},  {"config", '"'}, {"keys", '['},    {"table", '"'}, {"view", '"'},
                        {"routes", '['}, {"given", '['},  {"records", '"'}, {"expect", '['}};

static enum sl_status unknown(struct sl_span name, struct sl_error *error)
{
    char list[160] = "";
    struct sl_nearest search = sl_nearest_begin(name);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        sl_nearest_consider(&search, members[i].name);
        sl_nearest_list(list, sizeof(list), members[i].name);
    }
    return search.best ? sl_fail(error, SL_REJECT, "BadCase", "\"%.*s\" is not known: did you mean \"%s\"?",
                                 SL_ARG(name), search.best)
                       : sl_fail(error, SL_REJECT, "BadCase", "\"%.*s\" is not known: a case has %s",
                                 SL_ARG(name), list);
}

static enum sl_status read_members(struct sl_span text, struct sl_span values[N_MEMBERS],
                                   struct sl_error *error)
{
    const char *begin = text.ptr ? sl_json_space(text.ptr, sl_span_end(text)) : NULL;
    struct sl_json_walk walk = sl_json_walk(text);
    struct sl_span name, value;
    if (!begin || begin == sl_span_end(text) || *begin != '{')
        return sl_fail(error, SL_REJECT, "BadCase",
                       "a case is an object: {\"given\": [...], \"expect\": [...]}");
    while (sl_json_walk_next(&walk, &name, &value)) {
        size_t i = 0;
        while (i < N_MEMBERS && !sl_json_text_is(name, sl_span_str(members[i].name)))
            i++;
        if (i == N_MEMBERS)
            return unknown(name, error);
        if (*value.ptr != members[i].begins)
            return sl_fail(error, SL_REJECT, "BadCase", "%s: %s is expected", members[i].name,
                           members[i].begins == '[' ? "a list" : "a text");
        values[i] = value;
    }
    return SL_OK;
}

/* The text of a JSON string; NULL: absent. */
static const char *text_of(struct sl_span json, struct sl_arena *arena)
{
    if (!json.ptr)
        return NULL;
    return sl_arena_copy(arena, sl_json_unescape(sl_span(json.ptr + 1, json.len - 2), arena));
}

/* ["PK","SK"] as "PK,SK". */
static const char *joined(struct sl_span list, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span name;
    const char *text = NULL;
    while (list.ptr && sl_json_walk_next(&walk, NULL, &name)) {
        const char *one = *name.ptr == '"' ? text_of(name, arena) : "";
        text = text ? sl_arena_printf(arena, "%s,%s", text, one) : one;
    }
    return text;
}

static const char *beside(const char *path, const char *name, struct sl_arena *arena)
{
    const char *slash = strrchr(path, '/');
    return *name == '/' || !slash ? name : sl_arena_printf(arena, "%.*s/%s", (int)(slash - path), path, name);
}

/* The same in the folder above the file's. */
static const char *above(const char *path, const char *name, struct sl_arena *arena)
{
    const char *folder = beside(path, "", arena), *slash;
    size_t n = strlen(folder);
    while (n && folder[n - 1] == '/')
        n--;
    slash = memrchr(folder, '/', n);
    const char *last = slash ? slash + 1 : folder;
    struct sl_span base = sl_span(last, (size_t)(folder + n - last));
    if (!base.len || sl_span_is(base, ".") || sl_span_is(base, ".."))
        return sl_arena_printf(arena, "%.*s%s../%s", (int)n, folder, n ? "/" : "", name);
    return sl_arena_printf(arena, "%.*s%s", (int)(last - folder), folder, name);
}

static const char *config_of(const char *path, const char *own, const char *given, struct sl_arena *arena)
{
    const char *usual[] = {beside(path, "sluice.json", arena), above(path, "sluice.json", arena),
                           "sluice.json"};
    if (own || given)
        return own ? beside(path, own, arena) : given;
    for (size_t i = 0; i < SL_COUNT(usual); i++)
        if (access(usual[i], R_OK) == 0)
            return usual[i];
    return "sluice.json";
}

enum sl_status sl_case_read(const char *path, const struct sl_case_options *options, struct sl_arena *arena,
                            struct sl_case *out, struct sl_error *error)
{
    struct sl_span values[N_MEMBERS] = {{0}}, text;
    enum sl_status status = sl_config_file(path, CASE_MOST, arena, &text, error);
    if (status == SL_OK && sl_json_check(text, error) != SL_OK)
        status = SL_REJECT;
    if (status == SL_OK && !sl_json_is_unique(text))
        status = sl_fail(error, SL_REJECT, "BadCase", "a name is there twice in one object");
    if (status == SL_OK)
        status = read_members(text, values, error);
    if (status != SL_OK)
        return status;
    const char *about = text_of(values[ABOUT], arena), *file = text_of(values[RECORDS], arena);
    const char *keys = joined(values[KEYS], arena), *view = text_of(values[VIEW], arena);
    *out = (struct sl_case){
        .path = path,
        .text = text,
        .about = about ? about : "",
        .config = config_of(path, text_of(values[CONFIG], arena), options->config, arena),
        .given = {.entries = values[GIVEN],
                  .file = file ? beside(path, file, arena) : NULL,
                  .keys = keys ? keys : options->keys,
                  .table = text_of(values[TABLE], arena),
                  .view = view ? sl_span_str(view) : sl_span(NULL, 0)},
        .routes = values[ROUTES],
        .expect = values[EXPECT],
    };
    return SL_OK;
}

/* ---- running ---- */

static void find_nothing(void *arg, enum sl_lint_finding finding, const char *text)
{
    (void)arg;
    (void)finding;
    (void)text;
}

/* The environment does not count: a case says the same everywhere. Records may be old: it is no live stream.
 */
enum sl_status sl_case_variables(struct sl_command *c, const struct sl_flag_list *set, struct sl_error *error)
{
    const struct sl_flag_list none = {.n = 0};
    struct sl_check_vars vars = {.set = set ? set : &none, .arena = c->arena, .find = find_nothing};
    static const char *const nothing[] = {NULL};
    enum sl_status status = sl_config_text(c->config, c->arena, &vars.text, error);
    c->vars = (struct sl_vars){.list = nothing};
    if (status == SL_OK)
        status = sl_check_vars(&vars, &c->vars, error);
    size_t n = 0;
    while (status == SL_OK && c->vars.list[n])
        n++;
    const char **list = sl_arena_zalloc(c->arena, (n + 2) * sizeof(*list));
    for (size_t i = 0; i < n; i++)
        list[i] = c->vars.list[i];
    list[n] = "SLUICE_REPLAY=1";
    if (status == SL_OK)
        c->vars.list = list;
    return status;
}

static void add_key_of(const struct sl_batch *batch, struct sl_span id, struct sl_buffer *out)
{
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *record = sl_batch_record(batch, i);
        if (!sl_span_eq(sl_record_text(record, SL_FIELD_IDENTIFIER), id))
            continue;
        sl_buffer_add_str(out, ",\"key\":");
        sl_value_plain(sl_record_image(record, SL_KEYS), out);
        return;
    }
}

static void add_route(const struct sl_recorder *recorder, const struct sl_answer *answer,
                      const struct sl_batch *batch, const char *name, struct sl_buffer *out)
{
    sl_recorder_add_route(recorder, sl_span_str(name), out);
    for (size_t i = 0; i < answer->n_notes; i++) {
        const struct sl_answer_note *note = &answer->notes[i];
        if (strcmp(note->route, name) != 0)
            continue;
        sl_buffer_add_char(out, '{');
        sl_json_add_member(out, "route", sl_span_str(name));
        sl_json_add_member(out, note->is_parked ? "parked" : "failed", sl_span_str(note->code));
        add_key_of(batch, note->id, out);
        sl_buffer_add_str(out, "},\n");
    }
}

static bool is_wanted(const struct sl_case *c, const char *route)
{
    struct sl_json_walk walk = sl_json_walk(c->routes);
    struct sl_span name;
    while (c->routes.ptr && sl_json_walk_next(&walk, NULL, &name))
        if (*name.ptr == '"' && sl_json_text_is(sl_span(name.ptr + 1, name.len - 2), sl_span_str(route)))
            return true;
    return !c->routes.ptr;
}

static enum sl_status check_routes(const struct sl_case *c, const struct sl_pipeline *p,
                                   struct sl_error *error)
{
    struct sl_json_walk walk = sl_json_walk(c->routes);
    struct sl_span name;
    while (c->routes.ptr && sl_json_walk_next(&walk, NULL, &name)) {
        const char *text = *name.ptr == '"' ? text_of(name, p->arena) : "";
        if (sl_route_named(p, sl_span_str(text)) == p->n)
            return sl_fail(error, SL_REJECT, "BadCase", "routes: %s has no route %.*s", c->config,
                           SL_ARG(name));
    }
    return SL_OK;
}

static void end_list(struct sl_buffer *out)
{
    if (out->len >= 2 && out->ptr[out->len - 2] == ',')
        out->len -= 2;
    sl_buffer_add_char(out, ']');
}

static void report(const struct sl_case *c, const struct sl_pipeline *p, const struct sl_recorder *recorder,
                   const struct sl_answer *answer, const struct sl_batch *batch, struct sl_buffer *out)
{
    sl_buffer_add_str(out, "{\"routes\":[");
    for (size_t i = 0; i < p->n; i++) {
        sl_buffer_add_char(out, '[');
        sl_json_add_string(out, sl_span_str(p->routes[i].config->name));
        sl_buffer_printf(out, ",%llu],\n", (unsigned long long)sl_pipeline_stats(p, i).matched);
    }
    end_list(out);
    sl_buffer_add_str(out, ",\"lines\":[");
    for (size_t i = 0; i < p->n; i++)
        if (is_wanted(c, p->routes[i].config->name))
            add_route(recorder, answer, batch, p->routes[i].config->name, out);
    if (answer->is_error) {
        sl_buffer_add_char(out, '{');
        sl_json_add_member(out, "error", sl_span_str(answer->error.code));
        sl_buffer_add_str(out, "},\n");
    }
    end_list(out);
    sl_buffer_add_str(out, ",\"notes\":[");
    for (size_t i = 0; i < answer->n_notes; i++) {
        const struct sl_answer_note *note = &answer->notes[i];
        if (!is_wanted(c, note->route))
            continue;
        sl_json_add_string(
            out, sl_span_str(sl_arena_printf(p->arena, "%s: %s: %s: %s", note->route,
                                             note->is_parked ? "parked" : "failed", note->code, note->text)));
        sl_buffer_add_str(out, ",\n");
    }
    if (answer->is_error) {
        sl_json_add_string(out, sl_span_str(answer->error.text));
        sl_buffer_add_str(out, ",\n");
    }
    end_list(out);
    sl_buffer_add_char(out, '}');
}

static enum sl_status run(const struct sl_case *c, struct sl_command *command, struct sl_span event,
                          const struct sl_recorder *recorder, struct sl_buffer *out, struct sl_error *error)
{
    const struct sl_pipeline *p = command->pipeline;
    const struct sl_decode_options options = {.ttl_attribute = sl_pipeline_ttl_attribute(p)};
    const struct sl_invocation invocation = {.request_id = "",
                                             .function_arn = "",
                                             .deadline_ms =
                                                 command->clock->now_ms(command->clock) + TIMEOUT_MS,
                                             .arena = command->arena};
    struct sl_batch batch;
    struct sl_answer answer = {0};
    enum sl_status status = check_routes(c, p, error);
    if (status == SL_OK)
        status = sl_batch_decode(event, command->arena, &options, &batch, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init(&answer.body, SL_ANSWER_BYTES);
    sl_dispatch(command->pipeline, &batch, &invocation, &answer);
    report(c, p, recorder, &answer, &batch, out);
    sl_buffer_clean_up(&answer.body);
    return SL_OK;
}

enum sl_status sl_case_run(const struct sl_case *c, const struct sl_case_options *options, const char *folder,
                           struct sl_buffer *out, struct sl_error *error)
{
    struct sl_command command = {.verb = "test", .config = c->config, .handler_path = options->handler_path};
    struct sl_buffer event;
    struct sl_recorder *recorder = NULL;
    sl_command_begin(&command);
    command.log.fd = -1; /* what happens is in what is written */
    sl_buffer_init_in(&event, command.arena, EVENT_MOST);
    enum sl_status status = sl_given_event(&c->given, command.arena, &event, error);
    if (status == SL_OK)
        status = sl_case_variables(&command, options->set, error);
    if (status == SL_OK) {
        recorder = sl_recorder_new(folder, &command.log, command.arena);
        status = sl_command_open(&command, "test", &sl_recorder_openers, error);
    }
    for (size_t i = 0; status == SL_OK && i < command.pipeline->config.n_routes; i++)
        command.pipeline->config.routes[i].is_paused = false; /* what it does when it runs is of interest */
    if (status == SL_OK)
        status = run(c, &command, sl_buffer_span(&event), recorder, out, error);
    sl_command_end(&command);
    return status;
}

/* ---- blessing ---- */

static void add_expected(struct sl_span lines, struct sl_buffer *out)
{
    struct sl_json_walk walk = sl_json_walk(lines);
    struct sl_span line;
    bool is_first = true;
    sl_buffer_add_char(out, '[');
    for (; sl_json_walk_next(&walk, NULL, &line); is_first = false) {
        sl_buffer_add_str(out, is_first ? "\n    " : ",\n    ");
        sl_buffer_add_span(out, line);
    }
    sl_buffer_add_str(out, is_first ? "]" : "\n  ]");
}

void sl_case_bless(const struct sl_case *c, struct sl_span lines, struct sl_buffer *out)
{
    const char *end = sl_span_end(c->text), *from = c->expect.ptr, *to = from ? sl_span_end(c->expect) : NULL;
    if (!from) { /* behind the last member */
        while (end[-1] != '}')
            end--;
        for (from = end - 1; (unsigned char)from[-1] <= ' ';)
            from--;
        to = end - 1;
    }
    sl_buffer_add(out, c->text.ptr, (size_t)(from - c->text.ptr));
    if (!c->expect.ptr)
        sl_buffer_add_str(out, from[-1] == '{' ? "\n  \"expect\": " : ",\n  \"expect\": ");
    add_expected(lines, out);
    sl_buffer_add_str(out, c->expect.ptr ? "" : "\n");
    sl_buffer_add(out, to, (size_t)(sl_span_end(c->text) - to));
}
