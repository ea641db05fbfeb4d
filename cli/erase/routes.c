/* Archives are rewritten (data/erase/erase.h), rows go by the routes' own repair, and of the rest is said
 * what it holds. */
#include "cli/erase/routes.h"

#include "base/array.h"
#include "base/disk.h"
#include "base/json.h"
#include "base/json_write.h"
#include "data/erase/erase.h"
#include "data/recall/recall.h"
#include "handlers/pipeline/route.h"
#include "live/sandbox/paths.h"
#include "live/source/input.h"
#include "streams/record.h"
#include "streams/when/when.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_MS     60000
#define PIECE_BYTES ((size_t)4 * 1024 * 1024)
#define REPAIRS     3

void sl_erase_ask(struct sl_erase_job *job, const char *where, const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    printf("  to do: %s: %s\n", where, text);
    sl_buffer_add_str(&job->person, job->n_person++ ? ",{" : "{");
    sl_json_add_member(&job->person, "where", sl_span_str(where));
    sl_json_add_member(&job->person, "what", sl_span_str(text));
    sl_buffer_add_char(&job->person, '}');
}

/* The plural's letter. */
static const char *s_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void begin_route(struct sl_erase_job *job, const char *name, const char *kind)
{
    sl_buffer_add_str(&job->routes, job->routes.len ? ",{" : "{");
    sl_json_add_member(&job->routes, "route", sl_span_str(name));
    sl_json_add_member(&job->routes, "kind", sl_span_str(kind));
}

/* ---- archives ---- */

static bool is_stopped(void *arg)
{
    (void)arg;
    return sl_command_stop;
}

static enum sl_erase_format format_of(const struct sl_route *route)
{
    struct sl_span format = sl_options_text(&route->options, "format");
    return sl_span_is(format, "export") ? SL_ERASE_EXPORT
           : sl_span_is(format, "item") ? SL_ERASE_ITEM
           : sl_span_is(format, "json") ? SL_ERASE_JSON
                                        : SL_ERASE_RECORD;
}

/* The names of the attributes of the first key: all keys of a table have the same. */
static struct sl_items_keys names_of(const struct sl_erase_job *job)
{
    struct sl_items_keys names = {.n = 0};
    struct sl_iter iter = sl_value_iter((struct sl_value){.type = SL_M, .raw = job->keys->texts[0]});
    struct sl_value value;
    for (; names.n < 2 && sl_value_next(&iter, &names.names[names.n], &value); names.n++)
        names.names[names.n] = sl_json_unescape(names.names[names.n], job->command->arena);
    return names;
}

static void add_counts(struct sl_erase_job *job, const struct sl_erase_counts *n)
{
    struct sl_buffer *b = &job->routes;
    sl_json_add_integer(b, "objects", (int64_t)n->objects);
    sl_json_add_integer(b, "holding", (int64_t)n->holding);
    sl_json_add_integer(b, "records", (int64_t)n->records);
    sl_json_add_integer(b, "versions", (int64_t)n->versions);
    if (!job->is_plan) {
        sl_json_add_integer(b, "rewritten", (int64_t)n->rewritten);
        sl_json_add_integer(b, "removed", (int64_t)n->removed);
        sl_json_add_integer(b, "read_again", (int64_t)n->read_again);
        sl_json_add_integer(b, "left", (int64_t)n->left);
    }
    sl_json_add_integer(b, "unreadable", (int64_t)n->unreadable);
}

static void print_counts(const struct sl_erase_job *job, const char *name, const struct sl_erase_counts *n)
{
    printf("%s: %" PRIu64 " record%s in %" PRIu64 " of %" PRIu64 " object%s", name, n->records,
           s_of(n->records), n->holding, n->objects, s_of(n->objects));
    if (n->versions)
        printf(", and %" PRIu64 " older version%s", n->versions, s_of(n->versions));
    if (job->is_plan)
        printf("%s\n", n->holding + n->versions ? ": would be erased" : "");
    else
        printf(": erased; %" PRIu64 " objects and versions were read again, %" PRIu64
               " still hold something\n",
               n->read_again, n->left);
}

/* An archive, or the place of parked records. */
static enum sl_status erase_objects(struct sl_erase_job *job, const char *name, struct sl_span place,
                                    enum sl_erase_format format, struct sl_error *error)
{
    struct sl_erase_counts n;
    const struct sl_erase_options options = {.sinks = &job->command->sinks,
                                             .place = sl_arena_copy(job->command->arena, place),
                                             .format = format,
                                             .items =
                                                 (const unsigned char(*)[SL_SHA256_BYTES])job->keys->digests,
                                             .n = job->keys->n,
                                             .names = names_of(job),
                                             .run = job->run,
                                             .secret = job->secret,
                                             .is_plan = job->is_plan,
                                             .is_stopped = is_stopped};
    begin_route(job, name, format == SL_ERASE_PARKED ? "parked" : "archive");
    enum sl_status status = sl_erase_archive(&options, &n, error);
    add_counts(job, &n);
    sl_buffer_add_char(&job->routes, '}');
    print_counts(job, name, &n);
    if (status == SL_REJECT &&
        (strcmp(error->code, "Locked") == 0 || strcmp(error->code, "NotRecords") == 0)) {
        sl_erase_ask(job, name, "%s", error->text);
        return SL_OK;
    }
    sl_error_context(error, "%s", name);
    if (status == SL_OK && n.left)
        sl_erase_ask(job, name,
                     "%" PRIu64 " objects or versions hold something that came meanwhile: run it again",
                     n.left);
    if (status == SL_OK && n.unreadable)
        sl_erase_ask(job, name,
                     "%" PRIu64
                     " objects or versions cannot be read, so nobody knows what they hold; the last is %s",
                     n.unreadable, n.why.text);
    return status;
}

static enum sl_status erase_archive(struct sl_erase_job *job, const struct sl_route *route,
                                    struct sl_error *error)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to");
    return erase_objects(job, route->config->name, to->text, format_of(route), error);
}

/* ---- rows ---- */

struct rows {
    uint64_t items, tombstones;
};

/* A tombstone is a row that says that it stands for no item. */
static void count_row(const struct sl_expected *row, struct sl_span item, struct rows *n)
{
    struct sl_value all = {.type = SL_M, .raw = item};
    if (!item.ptr)
        return;
    bool is_tombstone = row->absence.ptr && sl_value_member(all, row->absence).type != SL_NONE;
    n->tombstones += is_tombstone;
    n->items += !is_tombstone;
}

enum sl_status sl_erase_get(struct sl_table_port *port, struct sl_clock *clock, const struct sl_table_op *ops,
                            size_t n, struct sl_arena *arena, struct sl_result **out, struct sl_error *error)
{
    const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + CALL_MS};
    *out = sl_arena_zalloc(arena, (n + 1) * sizeof(**out));
    if (n)
        port->apply(port, ops, n, *out, &call);
    for (size_t i = 0; i < n; i++)
        if ((*out)[i].status != SL_OK)
            return sl_fail(error, (*out)[i].status, (*out)[i].code, "%s", (*out)[i].text);
    return SL_OK;
}

/* Where the handler says that rows of these keys are. */
static enum sl_status expect_rows(struct sl_route *route, const struct sl_span *keys, size_t n,
                                  struct sl_arena *arena, struct sl_expect *out, struct sl_error *error)
{
    const struct sl_items_keys names = {.n = 0};
    struct sl_items_entry *entries = sl_arena_zalloc(arena, n * sizeof(*entries));
    const struct sl_record **records = sl_arena_alloc(arena, n * sizeof(*records));
    struct sl_batch batch;
    for (size_t i = 0; i < n; i++)
        entries[i].key = keys[i];
    enum sl_status status =
        sl_items_decode(entries, n, &names, SL_LIT(SL_REPLAYED_ARN), arena, &batch, error);
    if (status != SL_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        records[i] = sl_batch_record(&batch, i);
    *out = (struct sl_expect){
        .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(*out)}, .records = records, .n = n, .arena = arena};
    sl_route_enter(route);
    status = route->loaded.handler.expect(route->self, out, error);
    sl_route_leave(route);
    return status;
}

/* Rows of one port are read together. */
static enum sl_status count_expected(const struct sl_erase_job *job, const struct sl_expect *expect,
                                     struct rows *n, struct sl_error *error)
{
    struct sl_table_op *ops = sl_arena_zalloc(expect->arena, (expect->n_rows + 1) * sizeof(*ops));
    const struct sl_expected **rows = sl_arena_alloc(expect->arena, (expect->n_rows + 1) * sizeof(*rows));
    enum sl_status status = SL_OK;
    for (size_t i = 0, at = 0; i < expect->n_rows && status == SL_OK; at = 0) {
        struct sl_table_port *port = expect->rows[i].port;
        struct sl_result *results;
        for (; i < expect->n_rows && expect->rows[i].port == port; i++) {
            const struct sl_expected *row = &expect->rows[i];
            if (row->status != SL_OK || !row->key.ptr)
                continue;
            rows[at] = row;
            ops[at++] = (struct sl_table_op){.verb = SL_TABLE_GET, .table = row->table, .key = row->key};
        }
        status = sl_erase_get(port, job->command->clock, ops, at, expect->arena, &results, error);
        for (size_t k = 0; k < at && status == SL_OK; k++)
            count_row(rows[k], results[k].item, n);
    }
    return status;
}

/* How many rows there are of the items, by the handler's own word of where they are. */
static enum sl_status count_rows(struct sl_erase_job *job, struct sl_route *route, struct rows *n,
                                 struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(256 * 1024);
    enum sl_status status = SL_OK;
    *n = (struct rows){.items = 0};
    for (size_t i = 0; i < job->keys->n && status == SL_OK; i += SL_ERASE_ROWS) {
        size_t part = job->keys->n - i < SL_ERASE_ROWS ? job->keys->n - i : SL_ERASE_ROWS;
        struct sl_expect expect;
        sl_arena_reset(arena);
        status = expect_rows(route, &job->keys->texts[i], part, arena, &expect, error);
        if (status == SL_OK)
            status = count_expected(job, &expect, n, error);
    }
    sl_arena_destroy(arena);
    return status;
}

static bool write_findings(const struct sl_erase_job *job, const char *route, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    for (size_t i = 0; i < job->keys->n; i++)
        fprintf(file, "{\"result\":\"different\",\"route\":\"%s\",\"source_key\":%.*s}\n", route,
                SL_ARG(job->keys->texts[i]));
    bool is_good = !ferror(file);
    return fclose(file) == 0 && is_good;
}

/* `sluice repair`, as a process of its own: what it prints of rows and keys is nobody's to keep. */
static int run_repair(const struct sl_erase_job *job, const char *route, const char *findings)
{
    const struct sl_command *c = job->command;
    const char *argv[96] = {"sluice",   "repair",  "--quiet", "--delete", "--max-deletes", "1000000000",
                            "--config", c->config, "--table", c->table,   "--routes",      route};
    size_t n = 12;
    if (c->region) {
        argv[n++] = "--region";
        argv[n++] = c->region;
    }
    if (c->endpoint) {
        argv[n++] = "--endpoint-url";
        argv[n++] = c->endpoint;
    }
    if (c->handler_path) {
        argv[n++] = "--handler-path";
        argv[n++] = c->handler_path;
    }
    for (size_t i = 0; i < job->consumers->n; i++) {
        argv[n++] = "--consumer";
        argv[n++] = job->consumers->values[i];
    }
    if (job->max_lag_s >= 0) {
        argv[n++] = "--max-lag";
        argv[n++] = sl_arena_printf(c->arena, "%" PRId64, job->max_lag_s);
    }
    argv[n++] = findings;
    argv[n] = NULL;
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    fflush(stdout);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char *const *)(uintptr_t)argv,
                    (char *const *)(uintptr_t)sl_command_environment().list) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&actions);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *why_no_repair(const struct sl_erase_job *job)
{
    if (!job->command->table)
        return "give --table, and they go as `sluice repair --delete` removes them";
    if (!job->consumers->n && job->max_lag_s < 0)
        return "say how far the consumer is, --consumer or --max-lag, and they go as `sluice repair "
               "--delete` removes them";
    return NULL;
}

/* NULL: it was done; else why not. `names_items`: false: every row is looked at. */
static const char *repair(struct sl_erase_job *job, const char *route, bool names_items)
{
    const char *folder = sl_vars_or(&job->command->vars, "TMPDIR", "/tmp"), *why = NULL;
    char *temp = sl_paths_make_temp(folder);
    const char *path = temp ? sl_arena_printf(job->command->arena, "%s/findings", temp) : NULL;
    if (!temp || (names_items && !write_findings(job, route, path)))
        why = "its keys cannot be written to a temporary file";
    /* An item that has several rows in a view may need a second look: the first changed what the others saw.
     */
    int result = -1;
    for (int i = 0; i < REPAIRS && !why && result != SL_EXIT_OK; i++)
        result = run_repair(job, route, names_items ? path : NULL);
    if (!why && result != SL_EXIT_OK)
        why = sl_arena_printf(job->command->arena, "`sluice repair` ended with status %d: see its lines",
                              result);
    if (temp)
        sl_paths_remove_temp(temp);
    free(temp);
    return why;
}

static enum sl_status erase_rows(struct sl_erase_job *job, struct sl_route *route, struct sl_error *error)
{
    const char *name = route->config->name, *why = NULL;
    struct rows before = {.items = 0}, left = {.items = 0};
    const char *why_not = why_no_repair(job);
    bool may_write = !why_not && !job->is_plan;
    enum sl_status status = count_rows(job, route, &before, error);
    if (status == SL_OK && before.items && may_write) {
        why = repair(job, name, true);
        status = count_rows(job, route, &left, error);
    } else {
        left = before;
    }
    sl_error_context(error, "%s", name);
    if (status != SL_OK)
        return status;
    begin_route(job, name, "rows");
    sl_json_add_integer(&job->routes, "rows", (int64_t)before.items);
    sl_json_add_integer(&job->routes, "left", (int64_t)left.items);
    sl_json_add_integer(&job->routes, "tombstones", (int64_t)left.tombstones);
    sl_buffer_add_char(&job->routes, '}');
    printf("%s: %" PRIu64 " row%s%s\n", name, before.items, s_of(before.items),
           !before.items  ? ""
           : job->is_plan ? ": would be removed"
           : left.items   ? ""
                          : ": removed; they are gone");
    if (left.tombstones)
        printf("  (%" PRIu64
               " tombstones keep keys, and nothing else of the items, until they are forgotten)\n",
               left.tombstones);
    if (left.items && why_not)
        sl_erase_ask(job, name, "%" PRIu64 " rows: %s", left.items, why_not);
    else if (left.items && may_write)
        sl_erase_ask(
            job, name, "%" PRIu64 " rows are left: %s", left.items,
            why ? why
                : "the route keeps rows of items that were removed, so they have to be deleted by hand");
    return SL_OK;
}

static void erase_view(struct sl_erase_job *job, const struct sl_route *route)
{
    const char *name = route->config->name;
    const char *why_not = why_no_repair(job),
               *why = job->is_plan || why_not ? NULL : repair(job, name, false);
    begin_route(job, name, "view");
    sl_json_add_member(&job->routes, "rows",
                       job->is_plan ? SL_LIT("not counted")
                       : why        ? SL_LIT("not all right")
                                    : SL_LIT("repaired"));
    sl_buffer_add_char(&job->routes, '}');
    if (why_not)
        sl_erase_ask(job, name, "its rows have other keys: %s", why_not);
    else if (why)
        sl_erase_ask(job, name, "%s", why);
    else
        printf("%s: every row %s compared with the table, and those that no item makes %sremoved\n", name,
               job->is_plan ? "would be" : "was", job->is_plan ? "" : "were ");
}

/* ---- what cannot be erased from here ---- */

static void say(struct sl_erase_job *job, const char *name, const char *kind, const char *what)
{
    begin_route(job, name, kind);
    sl_json_add_member(&job->routes, "says", sl_span_str(what));
    sl_buffer_add_char(&job->routes, '}');
    printf("%s: %s\n", name, what);
}

static enum sl_status erase_route(struct sl_erase_job *job, struct sl_route *route, struct sl_error *error)
{
    const char *name = route->config->name;
    if (route->aside.queue)
        sl_erase_ask(job, name,
                     "what is set aside in %.*s is not looked at: let it be drained, then run this again",
                     SL_ARG(route->aside.name));
    switch (sl_route_makes(route)) {
    case SL_MAKES_OBJECTS:
        return erase_archive(job, route, error);
    case SL_MAKES_ROWS:
        return erase_rows(job, route, error);
    case SL_MAKES_VIEW:
        erase_view(job, route);
        break;
    case SL_MAKES_TOTALS:
        say(job, name, "totals",
            "adds up many items; what these counted for went when they were removed. Groups that are named "
            "by a value of the item keep that name");
        break;
    case SL_MAKES_MESSAGES:
        say(job, name, "messages",
            "has sent messages of its items, which cannot be recalled: who received them has to be told");
        break;
    case SL_MAKES_UNKNOWN:
        if (route->loaded.handler.expect)
            return erase_rows(job, route, error);
        sl_erase_ask(job, name, "is a plugin that does not say what it keeps: ask its author");
    }
    return SL_OK;
}

/* A file of lines, on this machine. It is not written: the function may be adding to it. */
static enum sl_status read_parked(struct sl_erase_job *job, const char *name, const char *path,
                                  struct sl_error *error)
{
    const struct sl_erase_options options = {.format = SL_ERASE_PARKED,
                                             .items =
                                                 (const unsigned char(*)[SL_SHA256_BYTES])job->keys->digests,
                                             .n = job->keys->n};
    struct sl_span text = {NULL, 0};
    uint64_t n_lines = 0;
    if (access(path, F_OK) != 0)
        return SL_OK;
    enum sl_status status = sl_input_load(path, job->command->arena, &text, error);
    struct sl_eraser *eraser = sl_eraser_new(&options);
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    while (status == SL_OK && text.len) {
        const struct sl_span line = sl_span_cut(&text, '\n');
        struct sl_error why = SL_NO_ERROR;
        struct sl_buffer rest;
        uint64_t n = 0;
        sl_arena_reset(arena);
        sl_buffer_init_in(&rest, arena, SIZE_MAX / 4);
        if (line.len && sl_eraser_text(eraser, line, arena, &rest, &n, &why) != SL_OK)
            n = 1;
        n_lines += n;
    }
    sl_arena_destroy(arena);
    sl_eraser_destroy(eraser);
    if (status == SL_OK && n_lines)
        sl_erase_ask(
            job, name,
            "%" PRIu64
            " lines hold a record of the items, or cannot be read: redrive them, or delete them by hand",
            n_lines);
    return status;
}

static enum sl_status erase_parked(struct sl_erase_job *job, const struct sl_failure_target *target,
                                   struct sl_error *error)
{
    const char *name = sl_arena_printf(job->command->arena, "parked in %.*s", SL_ARG(target->name));
    if (target->kind == SL_PORT_OBJECTS)
        return erase_objects(job, name, target->url, SL_ERASE_PARKED, error);
    if (sl_span_starts(target->url, SL_LIT("jsonl:")))
        return read_parked(job, name,
                           sl_arena_copy(job->command->arena, sl_span_from(target->url, strlen("jsonl:"))),
                           error);
    sl_erase_ask(job, name,
                 "copies of records that failed are not looked at: `sluice redrive --dry-run --match` finds "
                 "them; the queue drops them when their time is over");
    return SL_OK;
}

enum sl_status sl_erase_routes(struct sl_erase_job *job, struct sl_error *error)
{
    struct sl_pipeline *pipeline = job->command->pipeline;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < pipeline->n && status == SL_OK; i++)
        status = erase_route(job, &pipeline->routes[i], error);
    for (size_t i = 0; i < pipeline->n_targets && status == SL_OK; i++)
        status = erase_parked(job, &pipeline->targets[i], error);
    return status;
}

/* ---- --match ---- */

static bool matches(const struct sl_when *pattern, const struct sl_record *r, struct sl_arena *arena)
{
    for (int image = SL_NEW_IMAGE; image <= SL_OLD_IMAGE; image++) {
        struct sl_value value = sl_record_image(r, (enum sl_image)image);
        if (value.type != SL_NONE && sl_pattern_match(pattern, value.raw, arena))
            return true;
    }
    return false;
}

static enum sl_status match_archive(struct sl_command *command, const struct sl_route *route,
                                    const struct sl_when *pattern, struct sl_buffer *out,
                                    struct sl_error *error)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to");
    const struct sl_recall_options options = {
        .sinks = &command->sinks, .place = sl_arena_copy(command->arena, to->text), .reads_all = true};
    struct sl_recall *recall;
    struct sl_recall_piece piece = {.item = NULL};
    enum sl_status status = sl_recall_open(&options, &recall, error);
    if (status != SL_OK)
        return status;
    struct sl_arena *arena = sl_arena_new(1024 * 1024), *scratch = sl_arena_new(64 * 1024);
    while (status == SL_OK && !piece.piece.is_last && !sl_command_stop) {
        sl_arena_reset(arena);
        const struct sl_call call = {.arena = arena,
                                     .deadline_ms = command->clock->now_ms(command->clock) + CALL_MS};
        status = sl_recall_pull(recall, PIECE_BYTES, &call, &piece, error);
        for (size_t i = 0; status == SL_OK && i < piece.piece.batch.n; i++) {
            const struct sl_record *r = sl_batch_record(&piece.piece.batch, i);
            sl_arena_reset(scratch);
            if (!matches(pattern, r, scratch))
                continue;
            sl_json_add_compact(out, sl_record_image(r, SL_KEYS).raw);
            sl_buffer_add_char(out, '\n');
        }
    }
    sl_arena_destroy(scratch);
    sl_arena_destroy(arena);
    sl_recall_close(recall);
    sl_error_context(error, "%s", route->config->name);
    return status == SL_REJECT && strcmp(error->code, "NoArchive") == 0 ? SL_OK : status;
}

enum sl_status sl_erase_match(struct sl_command *command, const char *text, struct sl_buffer *out,
                              struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_when *pattern = NULL;
    size_t n = 0;
    if (sl_pattern_compile(sl_span_str(text), command->arena, &pattern, &why) != SL_OK)
        return sl_fail(error, SL_REJECT, "Usage", "--match: %s", why.text);
    for (size_t i = 0; i < command->pipeline->n; i++) {
        const struct sl_route *route = &command->pipeline->routes[i];
        if (sl_route_makes(route) != SL_MAKES_OBJECTS || format_of(route) != SL_ERASE_RECORD)
            continue;
        n++;
        enum sl_status status = match_archive(command, route, pattern, out, error);
        if (status != SL_OK)
            return status;
    }
    if (!n)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--match looks for items in an archive of format record, and no route has one: name "
                       "them with --keys");
    if (!out->len)
        return sl_fail(error, SL_REJECT, "NoItem", "--match: no item of the archives matches");
    return SL_OK;
}
