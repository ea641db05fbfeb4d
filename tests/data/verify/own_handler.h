/* A verification with a handler of the test's own, and a source that answers what the test wants. Both tables
 * are of SQLite. */
#ifndef SL_TESTS_DATA_VERIFY_OWN_HANDLER_H
#define SL_TESTS_DATA_VERIFY_OWN_HANDLER_H

#include "handlers/pipeline/route.h"
#include "sinks/target.h"
#include "streams/record.h"
#include "streams/value.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/verify/verify.h"
#include "data/verify/verify_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG                                                                                               \
    "{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'sqlite:${DIR}/"                \
    "db?table=rows'%s}]}"

static struct stage *the;
static struct sl_table_port *source, seen_source; /* the verification reads through the latter */
static struct sl_table_port *target;

/* ---- the source, and what it answers instead ---- */

static struct sl_result instead; /* of each read of one item; status OK: nothing */
static void (*before_read)(void);
static bool page_by_page, goes_round;
static struct sl_result scan_fails;

static void apply(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    if (before_read)
        before_read();
    source->apply(source, ops, n, results, call);
    for (size_t i = 0; i < n; i++)
        if (instead.status != SL_OK)
            results[i] = instead;
}

static void scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                 struct sl_table_page *pages, const struct sl_call *call)
{
    (void)port;
    for (size_t i = 0; i < n; i++) {
        struct sl_table_scan own = scans[i];
        own.limit = page_by_page ? 1 : own.limit;
        source->scan(source, &own, 1, &pages[i], call);
        if (goes_round)
            pages[i].next = SL_LIT("{\"PK\":{\"S\":\"again\"}}");
        if (scan_fails.status != SL_OK)
            pages[i] = (struct sl_table_page){.result = scan_fails};
    }
}

static void put(const char *file, const char *table, const char *id, const char *attributes)
{
    stage_change(
        the, file,
        json_printf("INSERT OR REPLACE INTO %s VALUES (\\'{'PK':{'S':'%s'}}\\', \\'{'PK':{'S':'%s'}%s}\\')",
                    table, id, id, attributes));
}

static void put_source(const char *id, const char *attributes)
{
    put("source.db", "s", id, attributes);
}

static void put_row(const char *id, const char *attributes)
{
    put("db", "rows", id, attributes);
}

/* ---- the handler ---- */

static struct {
    enum sl_status expect, judge, trace; /* not OK: what it returns, with the code "Mine" */
    enum sl_verdict verdict;             /* of judge; EQUAL: it leaves what it was given */
    bool is_owned, has_guard;
    bool hides_tables; /* expect fails when the tables alone are asked for */
} handler;

static enum sl_status mine(enum sl_status status, struct sl_error *error)
{
    return status == SL_OK ? SL_OK : sl_fail(error, status, "Mine", "the test's handler will not");
}

static struct sl_span key_of(const struct sl_record *record, struct sl_arena *arena)
{
    struct sl_value pk = sl_value_member(sl_record_image(record, SL_KEYS), SL_LIT("PK"));
    return sl_span_str(sl_arena_printf(arena, "{\"PK\":{\"S\":\"%.*s\"}}", SL_ARG(pk.raw)));
}

/* By the letter that the item's name begins with: 'r' is rejected, in two rows; 'o' is left out; 'm' may be
 * absent; 'k' has a key that no table takes; 't' has two rows. All others have one. */
static size_t expect_item(struct sl_expected *rows, size_t i, const struct sl_record *record,
                          struct sl_arena *arena)
{
    struct sl_value image = sl_record_image(record, SL_NEW_IMAGE);
    struct sl_span key = key_of(record, arena);
    char letter = key.ptr[strlen("{\"PK\":{\"S\":\"")];
    rows[0] = (struct sl_expected){.record = i,
                                   .port = target,
                                   .key = key,
                                   .item = image.type == SL_NONE ? sl_span(NULL, 0) : image.raw,
                                   .may_be_absent = letter == 'm'};
    if (handler.has_guard) {
        rows[0].guard = SL_LIT("my_guard");
        rows[0].absence = SL_LIT("my_absence");
    }
    if (letter == 'r') {
        rows[0] = (struct sl_expected){
            .record = i, .status = SL_REJECT, .code = "Unfit", .why = "the item does not fit"};
        rows[1] = rows[0];
        return 2;
    }
    if (letter == 'o')
        rows[0].key = sl_span(NULL, 0);
    if (letter == 'k')
        rows[0].key = SL_LIT("{\"PK\":{\"S\":\"\"}}");
    if (letter != 't')
        return 1;
    rows[1] = rows[0];
    rows[1].key = sl_span_str(sl_arena_printf(arena, "{\"PK\":{\"S\":\"second\"}}"));
    rows[1].item = rows[1].key;
    return 2;
}

static enum sl_status expect(void *self, struct sl_expect *e, struct sl_error *error)
{
    (void)self;
    e->rows = sl_arena_zalloc(e->arena, (2 * e->n + 1) * sizeof(*e->rows));
    e->n_rows = 0;
    for (size_t i = 0; i < e->n; i++)
        e->n_rows += expect_item(e->rows + e->n_rows, i, e->records[i], e->arena);
    if (e->n == 0)
        e->rows[e->n_rows++] = (struct sl_expected){.port = target};
    if (e->n == 0)
        return mine(handler.hides_tables ? SL_FATAL : SL_OK, error);
    return mine(handler.expect, error);
}

static enum sl_status judge(void *self, struct sl_judge *j, struct sl_error *error)
{
    (void)self;
    j->is_owned = handler.is_owned;
    if (handler.verdict != SL_VERDICT_EQUAL && j->verdict != SL_VERDICT_EQUAL)
        j->verdict = handler.verdict;
    if (handler.verdict == SL_VERDICT_COLLISION)
        j->other_key = SL_LIT("{\"PK\":{\"S\":\"other\"}}");
    return mine(handler.judge, error);
}

/* A row "none" stands for no item, and "k..." for one whose key no stream carries. */
static enum sl_status trace(void *self, struct sl_trace *t, struct sl_error *error)
{
    (void)self;
    struct sl_value pk = sl_value_member((struct sl_value){.type = SL_M, .raw = t->row}, SL_LIT("PK"));
    assert_int_equal(t->n_key_names, 1);
    if (!sl_span_is(pk.raw, "none"))
        t->key = sl_span_str(sl_arena_printf(t->arena, "{\"PK\":{\"S\":\"%.*s\"}}", SL_ARG(pk.raw)));
    return mine(handler.trace, error);
}

/* ---- the world ---- */

static struct sl_verify_options options;
static size_t n_lines;
static char lines[40000];

static void found(void *arg, const struct sl_finding *f, struct sl_span line)
{
    (void)arg;
    (void)f;
    size_t n = strlen(lines);
    n_lines++;
    snprintf(lines + n, sizeof(lines) - n, "%.*s", SL_ARG(line));
}

static int64_t through(void *arg)
{
    (void)arg;
    return the->clock.clock.wall_ns(&the->clock.clock) / 1000000 + 1;
}

static void open_world(const char *members)
{
    struct sl_error error = SL_NO_ERROR;
    memset(&handler, 0, sizeof(handler));
    the = stage_new(json_printf(CONFIG, members), NULL);
    assert_int_equal(sl_target_table(&the->sinks,
                                     sl_span_str(json_printf("sqlite:%s/source.db?table=s", the->folder)),
                                     &source, &error),
                     SL_OK);
    stage_change(the, "source.db",
                 "CREATE TABLE IF NOT EXISTS s (key TEXT PRIMARY KEY, item TEXT NOT NULL) "
                 "WITHOUT ROWID");
    stage_change(the, "db",
                 "CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT "
                 "ROWID");
    seen_source = (struct sl_table_port){.size = sizeof(seen_source), .apply = apply, .scan = scan};
    struct sl_handler *h = &the->p->routes[0].loaded.handler;
    target = sl_options_get(&the->p->routes[0].options, "to")->table;
    h->expect = expect;
    h->judge = judge;
    h->trace = trace;
    h->per_item = NULL;
    instead = scan_fails = (struct sl_result){.status = SL_OK};
    before_read = NULL;
    page_by_page = goes_round = false;
    options = (struct sl_verify_options){.pipeline = the->p,
                                         .sinks = &the->sinks,
                                         .source = &seen_source,
                                         .keys = {{SL_LIT("PK")}, 1},
                                         .arn = SL_LIT("arn"),
                                         .segments = 4,
                                         .n = 4,
                                         .wait_ms = 1000000,
                                         .through_ms = through,
                                         .found = found};
}

static void close_world(void)
{
    source->close(source);
    stage_destroy(the);
}

static struct sl_verify *verify_open(void)
{
    struct sl_verify *v = NULL;
    struct sl_error error = SL_NO_ERROR;
    n_lines = 0;
    lines[0] = '\0';
    if (sl_verify_open(&options, sl_span(NULL, 0), &v, &error) != SL_OK)
        fail_msg("%s", error.text);
    return v;
}

static enum sl_status steps(struct sl_verify *v, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (size_t n = 0; status == SL_OK && !sl_verify_progress(v).is_done; n++) {
        status = sl_verify_step(v, INT64_MAX / 2, error);
        assert_true(n < 20000);
    }
    return status;
}

/* The counts of a whole run. */
static struct sl_verify_route verify_all(void)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_verify *v = verify_open();
    if (steps(v, &error) != SL_OK)
        fail_msg("%s", error.text);
    struct sl_verify_route counts = *sl_verify_route(v, 0);
    sl_verify_close(v);
    return counts;
}

#define assert_counts(r, e, d, p, u, x, l)                                                                   \
    assert_counts_are(r, (const uint64_t[]){e, d, p, u, x, l}, __LINE__)

static void assert_counts_are(struct sl_verify_route r, const uint64_t *wanted, int line)
{
    const uint64_t is[] = {r.equal, r.different, r.pending, r.unsettled, r.not_comparable, r.left_out};
    for (size_t i = 0; i < 6; i++)
        if (is[i] != wanted[i])
            fail_msg("line %d: %llu equal, %llu different, %llu pending, %llu unsettled, %llu not "
                     "comparable, %llu "
                     "left out:\n%s",
                     line, (unsigned long long)is[0], (unsigned long long)is[1], (unsigned long long)is[2],
                     (unsigned long long)is[3], (unsigned long long)is[4], (unsigned long long)is[5], lines);
}

static void assert_line(const char *text)
{
    if (!strstr(lines, json(text)))
        fail_msg("no %s in\n%s", json(text), lines);
}

#endif
