#include "tests/support/stage.h"

#include "base/gzip.h"
#include "streams/decode/batch.h"
#include "tests/support/counts.h"
#include "tests/support/history.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sinks that fail ---- */

struct faulty {
    union {
        struct sl_object_port objects;
        struct sl_table_port table;
        struct sl_queue_port queue;
    } port; /* first: what the pipeline sees */
    union {
        struct sl_object_port *objects;
        struct sl_table_port *table;
        struct sl_queue_port *queue;
    } real;
    struct stage *stage;
};

static enum stage_fate fate_of(struct stage *s)
{
    if (s->one_in == 0 || sl_random_step(&s->chance) % s->one_in != 0)
        return STAGE_WELL;
    s->failures++;
    return sl_random_step(&s->chance) % 2 ? STAGE_FAILS_BEFORE : STAGE_FAILS_AFTER;
}

static struct sl_result failed(bool not_sent)
{
    return (struct sl_result){
        .status = SL_RETRY, .not_sent = not_sent, .code = "Planned", .text = "the test lets it fail"};
}

/* One call on its way: which operations reach the sink, in an array of their own. */
struct passing {
    char *ops;
    struct sl_result *results;
    size_t n;
};

static struct passing pass(const enum stage_fate *fates, const void *ops, size_t size, size_t n,
                           struct sl_arena *arena)
{
    struct passing p = {.ops = sl_arena_alloc(arena, n * size),
                        .results = sl_arena_zalloc(arena, n * sizeof(*p.results))};
    for (size_t i = 0; i < n; i++)
        if (fates[i] != STAGE_FAILS_BEFORE)
            memcpy(p.ops + size * p.n++, (const char *)ops + size * i, size);
    return p;
}

static void merge(const struct passing *p, const enum stage_fate *fates, size_t n, struct sl_result *results)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        results[i] = fates[i] == STAGE_FAILS_BEFORE ? failed(true) : p->results[at++];
        if (fates[i] == STAGE_FAILS_AFTER && results[i].status == SL_OK)
            results[i] = failed(false);
    }
}

static enum stage_fate *draw(struct stage *s, size_t n, struct sl_arena *arena)
{
    enum stage_fate *fates = sl_arena_alloc(arena, n * sizeof(*fates));
    for (size_t i = 0; i < n; i++)
        fates[i] = fate_of(s);
    return fates;
}

static void apply_objects(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    struct faulty *f = (struct faulty *)port;
    enum stage_fate *fates = draw(f->stage, n, call->arena);
    struct passing p = pass(fates, objects, sizeof(*objects), n, call->arena);
    f->real.objects->apply(f->real.objects, (struct sl_object *)p.ops, p.n, p.results, call);
    merge(&p, fates, n, results);
}

/* A transaction has one fate. */
static void apply_table(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct faulty *f = (struct faulty *)port;
    enum stage_fate *fates = draw(f->stage, n, call->arena);
    enum stage_fate asked = f->stage->at_table ? f->stage->at_table(f->stage) : STAGE_WELL;
    for (size_t i = 0; i < n && f->stage->at_table; i++)
        fates[i] = asked;
    for (size_t i = 1; i < n; i++)
        if (ops[i].group && ops[i].group == ops[i - 1].group)
            fates[i] = fates[i - 1];
    struct passing p = pass(fates, ops, sizeof(*ops), n, call->arena);
    f->real.table->apply(f->real.table, (struct sl_table_op *)p.ops, p.n, p.results, call);
    merge(&p, fates, n, results);
    if (f->stage->after_table)
        f->stage->after_table(f->stage, ops, n, results);
}

#define GROUP_BYTES ((size_t)4 << 20)

static bool same_row(const struct sl_table_op *a, const struct sl_table_op *b)
{
    return sl_span_eq(a->key, b->key) && a->table.len == b->table.len && sl_span_eq(a->table, b->table);
}

/* What an operation puts into a request, at least. */
static size_t bytes_of(const struct sl_table_op *op)
{
    size_t bytes = op->key.len + op->item.len;
    for (size_t i = 0; i < op->n_sets; i++)
        bytes += op->sets[i].value.len;
    for (size_t i = 0; i < op->n_tests; i++)
        bytes += op->tests[i].value.len;
    return bytes;
}

/* The service's rules: a transaction has 100 operations and 4 MB at most, and no row twice; an item 400 KB.
 */
static void look_at_groups(struct stage *s, const struct sl_table_op *ops, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        size_t bytes = bytes_of(&ops[i]);
        for (end = i + 1; end < n && ops[i].group && ops[end].group == ops[i].group; end++) {
            bytes += bytes_of(&ops[end]);
            for (size_t k = i; k < end; k++)
                if (same_row(&ops[k], &ops[end]))
                    fail_msg("a transaction names the row %.*s twice", SL_ARG(ops[end].key));
        }
        if (end - i > SL_TABLE_GROUP_MAX || bytes > GROUP_BYTES)
            fail_msg("a transaction has %zu operations of %zu bytes", end - i, bytes);
        if (ops[i].group && end - i > s->largest_group)
            s->largest_group = end - i;
        s->groups += ops[i].group != 0;
    }
}

static void count_spent(struct stage *s, const struct sl_table_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool reads = ops[i].verb == SL_TABLE_GET || ops[i].verb == SL_TABLE_PEEK;
        s->spent.reads += reads;
        s->spent.writes += !reads;
        s->spent.read_units += !reads ? 0 : ops[i].verb == SL_TABLE_PEEK ? 0.5 : 1;
        s->spent.write_units += reads ? 0 : ops[i].group ? 2 : 1;
    }
}

static void apply_or_refuse(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                            struct sl_result *results, const struct sl_call *call)
{
    struct stage *s = ((struct faulty *)port)->stage;
    bool is_refused = s->refuses_groups && n > 0 && ops[0].group;
    if (n == 0)
        fail_msg("a table is asked for nothing");
    look_at_groups(s, ops, n);
    count_spent(s, ops, n);
    for (size_t i = 0; i < n && is_refused; i++)
        results[i] = (struct sl_result){
            .status = SL_REJECT, .code = "ValidationException", .text = "the test lets it be refused"};
    if (!is_refused && !(s->for_table && s->for_table(s, ops, n, results)))
        apply_table(port, ops, n, results, call);
}

static void apply_queue(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct faulty *f = (struct faulty *)port;
    enum stage_fate *fates = draw(f->stage, n, call->arena);
    struct passing p = pass(fates, messages, sizeof(*messages), n, call->arena);
    f->real.queue->apply(f->real.queue, (struct sl_message *)p.ops, p.n, p.results, call);
    merge(&p, fates, n, results);
}

static void close_objects(struct sl_object_port *port)
{
    struct faulty *f = (struct faulty *)port;
    f->real.objects->close(f->real.objects);
    free(f);
}

/* Fails as a whole, or not. */
static void scan_table(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                       struct sl_table_page *pages, const struct sl_call *call)
{
    struct faulty *f = (struct faulty *)port;
    bool fails = f->stage->at_table && f->stage->at_table(f->stage) != STAGE_WELL;
    for (size_t i = 0; i < n && fails; i++)
        pages[i] = (struct sl_table_page){
            .result = {.status = SL_RETRY, .code = "Planned", .text = "the test lets it fail"}};
    if (!fails)
        f->real.table->scan(f->real.table, scans, n, pages, call);
}

static void describe_table(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                           const struct sl_call *call)
{
    struct faulty *f = (struct faulty *)port;
    f->real.table->describe(f->real.table, table, facts, call);
}

static void close_table(struct sl_table_port *port)
{
    struct faulty *f = (struct faulty *)port;
    f->real.table->close(f->real.table);
    free(f);
}

static void close_queue(struct sl_queue_port *port)
{
    struct faulty *f = (struct faulty *)port;
    f->real.queue->close(f->real.queue);
    free(f);
}

static enum sl_status open_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                   struct sl_error *error)
{
    struct faulty *f = calloc(1, sizeof(*f));
    f->stage = (struct stage *)sinks;
    enum sl_status status = sl_target_objects(sinks, url, &f->real.objects, error);
    if (status != SL_OK) {
        free(f);
        return status;
    }
    f->port.objects = *f->real.objects;
    f->port.objects.apply = apply_objects;
    f->port.objects.close = close_objects;
    *out = &f->port.objects;
    return SL_OK;
}

static enum sl_status open_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                 struct sl_error *error)
{
    struct faulty *f = calloc(1, sizeof(*f));
    f->stage = (struct stage *)sinks;
    enum sl_status status = sl_target_table(sinks, url, &f->real.table, error);
    if (status != SL_OK) {
        free(f);
        return status;
    }
    f->port.table = *f->real.table;
    f->port.table.apply = apply_or_refuse;
    f->port.table.close = close_table;
    f->port.table.scan = scan_table;
    f->port.table.describe = describe_table;
    *out = &f->port.table;
    return SL_OK;
}

static enum sl_status open_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                                 struct sl_error *error)
{
    struct faulty *f = calloc(1, sizeof(*f));
    f->stage = (struct stage *)sinks;
    enum sl_status status = sl_target_queue(sinks, url, &f->real.queue, error);
    if (status != SL_OK) {
        free(f);
        return status;
    }
    f->port.queue = *f->real.queue;
    f->port.queue.apply = apply_queue;
    f->port.queue.close = close_queue;
    *out = &f->port.queue;
    return SL_OK;
}

static const struct sl_openers openers = {
    .kind = sl_target_kind, .objects = open_objects, .table = open_table, .queue = open_queue};

/* ---- the stage ---- */

static char *path_of(const struct stage *s, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", s->folder, name) < 0)
        abort();
    return path;
}

static struct stage *set_up(const char *config, const char *const *variables)
{
    struct stage *s = calloc(1, sizeof(*s));
    s->folder = test_folder_in_memory();
    s->config_path = path_of(s, "sluice.json");
    s->log_path = path_of(s, "log");
    test_write(s->config_path, json(config));
    char *dir = NULL;
    if (asprintf(&dir, "DIR=%s", s->folder) < 0)
        abort();
    s->list[0] = dir;
    for (size_t i = 0; variables && variables[i]; i++)
        s->list[i + 1] = variables[i];
    s->vars.list = s->list;
    sl_clock_virtual_init(&s->clock, (int64_t)STAGE_TIME_S * 1000000000, 1);
    int fd = open(s->log_path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    sl_log_init(&s->log, fd, SL_INFO, SL_LOG_TEXT, &s->clock.clock);
    sl_sinks_init(&s->sinks, &s->clock.clock, &s->log, &s->vars);
    s->arena = sl_arena_new(64 * 1024);
    s->time_ms = 60000;
    sl_buffer_init(&s->answer.body, SL_ANSWER_BYTES);
    return s;
}

static enum sl_status open_pipeline(struct stage *s, struct sl_error *error)
{
    static const char *const nowhere[] = {NULL};
    struct sl_pipeline_options options = {.config_path = s->config_path,
                                          .vars = &s->vars,
                                          .clock = &s->clock.clock,
                                          .log = &s->log,
                                          .sinks = &s->sinks,
                                          .handler_path = nowhere,
                                          .function_name = "test",
                                          .openers = &openers};
    return sl_pipeline_open(&options, &s->p, error);
}

struct stage *stage_new(const char *config, const char *const *variables)
{
    struct stage *s = set_up(config, variables);
    struct sl_error error = {0};
    if (open_pipeline(s, &error) != SL_OK)
        fail_msg("%s", error.text);
    return s;
}

void stage_reopen(struct stage *s, const char *config)
{
    struct sl_error error = SL_NO_ERROR;
    sl_pipeline_close(s->p);
    s->p = NULL;
    if (config)
        test_write(s->config_path, json(config));
    if (open_pipeline(s, &error) != SL_OK)
        fail_msg("%s", error.text);
}

void stage_refused(const char *config, const char *text)
{
    struct stage *s = set_up(config, NULL);
    struct sl_error error = SL_NO_ERROR;
    if (open_pipeline(s, &error) != SL_FATAL || error.status != SL_FATAL)
        fail_msg("not refused: %s", config);
    if (!strstr(error.text, text))
        fail_msg("%s\nsays \"%s\",\nwithout \"%s\"", config, error.text, text);
    stage_destroy(s);
}

void stage_destroy(struct stage *s)
{
    sl_pipeline_close(s->p);
    sl_sinks_clean_up(&s->sinks);
    close(s->log.fd);
    sl_log_clean_up(&s->log);
    sl_buffer_clean_up(&s->answer.body);
    sl_arena_destroy(s->arena);
    test_folder_remove(s->folder);
    free((char *)s->list[0]);
    free(s->config_path);
    free(s->log_path);
    free(s);
}

/* ---- deliveries ---- */

void stage_deliver(struct stage *s, struct sl_span payload)
{
    struct sl_decode_options options = {.ttl_attribute = sl_pipeline_ttl_attribute(s->p), .any_shape = true};
    struct sl_batch batch;
    struct sl_error error = {0};
    sl_arena_reset(s->arena);
    if (sl_batch_decode(payload, s->arena, &options, &batch, &error) != SL_OK)
        fail_msg("byte %zu: %s", error.offset, error.text);
    struct sl_invocation invocation = {.request_id = "request",
                                       .function_arn = "",
                                       .deadline_ms = s->clock.ms + s->time_ms,
                                       .arena = s->arena};
    sl_buffer_reset(&s->answer.body);
    s->answer.is_error = false;
    sl_error_clear(&s->answer.error);
    s->n = batch.n;
    const struct counts before = counts_of(s->p);
    sl_dispatch(s->p, &batch, &invocation, &s->answer);
    assert_null(s->log.route); /* lines that follow are of no route */
    const char *wrong = counts_wrong(s->p, &before, &s->answer, &batch, true);
    if (wrong)
        fail_msg("%s", wrong);
}

void stage_deliver_all(struct stage *s, const char *event)
{
    stage_deliver(s, json_span(event));
    if (s->answer.is_error || s->answer.checkpoint != s->n)
        fail_msg("checkpoint %zu of %zu: %s", s->answer.checkpoint, s->n, s->answer.error.text);
}

size_t stage_checkpoint(const struct stage *s)
{
    return s->answer.is_error ? 0 : s->answer.checkpoint;
}

/* The payload without its first k records. */
static char *remainder_of(const char *event, size_t k)
{
    char *plain = strdup(event);
    history_take_nul(plain); /* jansson holds no names with NUL in them */
    json_t *root = json_loads(plain, 0, NULL), *records = json_object_get(root, "Records");
    for (size_t i = 0; i < k; i++)
        json_array_remove(records, 0);
    char *text = json_dumps(root, JSON_COMPACT);
    history_put_nul(text);
    json_decref(root);
    free(plain);
    return text;
}

bool stage_drive(struct stage *s, const char *event, unsigned times)
{
    char *left = strdup(event);
    bool done = false;
    while (times-- > 0 && !done) {
        stage_deliver(s, sl_span_str(left));
        size_t k = stage_checkpoint(s);
        done = !s->answer.is_error && k == s->n;
        if (k > 0 && !done) {
            char *rest = remainder_of(left, k);
            free(left);
            left = rest;
        }
    }
    sl_arena_reset(s->arena);
    free(left);
    return done;
}

/* ---- what was written ---- */

char *stage_query(const struct stage *s, const char *file, const char *sql)
{
    char *path = path_of(s, file);
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    struct sl_buffer out;
    sl_buffer_init(&out, SIZE_MAX / 4);
    sl_buffer_add_str(&out, "");
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        while (sqlite3_step(statement) == SQLITE_ROW)
            for (int i = 0, n = sqlite3_column_count(statement); i < n; i++)
                sl_buffer_printf(&out, "%s%s", (const char *)sqlite3_column_text(statement, i),
                                 i + 1 < n ? "|" : "\n");
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    free(path);
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

void stage_change(const struct stage *s, const char *file, const char *sql)
{
    char *path = path_of(s, file);
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
    free(path);
}

static void read_object(const char *path, struct sl_buffer *out)
{
    size_t len;
    char *bytes = test_read(path, &len);
    struct sl_error error = {0};
    if (bytes && sl_gzip_is(sl_span(bytes, len))) {
        if (sl_gzip_expand(sl_span(bytes, len), out, &error) != SL_OK)
            fail_msg("%s: %s", path, error.text);
    } else if (bytes) {
        sl_buffer_add(out, bytes, len);
    }
    free(bytes);
}

static void read_folder(const char *path, const char *name, struct sl_buffer *out, struct sl_buffer *names)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *below = NULL, *longer = NULL;
        if (entries[i]->d_name[0] == '.') {
            free(entries[i]);
            continue;
        }
        if (asprintf(&below, "%s/%s", path, entries[i]->d_name) < 0 ||
            asprintf(&longer, "%s%s%s", name, *name ? "/" : "", entries[i]->d_name) < 0)
            abort();
        struct stat st;
        if (stat(below, &st) == 0 && S_ISDIR(st.st_mode)) {
            read_folder(below, longer, out, names);
        } else {
            read_object(below, out);
            sl_buffer_printf(names, "%s\n", longer);
        }
        free(below);
        free(longer);
        free(entries[i]);
    }
    free(entries);
}

char *stage_objects(const struct stage *s, const char *folder, char **names)
{
    struct sl_buffer out, list;
    sl_buffer_init(&out, SIZE_MAX / 4);
    sl_buffer_init(&list, SIZE_MAX / 4);
    char *path = path_of(s, folder);
    read_folder(path, "", &out, &list);
    free(path);
    sl_buffer_add_char(&out, '\0');
    sl_buffer_add_char(&list, '\0');
    if (names)
        *names = list.ptr;
    else
        sl_buffer_clean_up(&list);
    return out.ptr;
}

char *stage_file(const struct stage *s, const char *name)
{
    char *path = path_of(s, name), *text = test_read(path, NULL);
    free(path);
    return text;
}

char *stage_log(struct stage *s)
{
    return test_read(s->log_path, NULL);
}
