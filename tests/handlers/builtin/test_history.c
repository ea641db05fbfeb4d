/* Random histories through the handlers, over the embedded sinks: batches come one to four times, old ones
 * are delivered again late, sinks fail before they write and after. At the end everything is as the table
 * says. */
#include "base/decimal.h"
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define CONFIG(routes) "{'on_failure':'report','report_batch_item_failures':true,'routes':[" routes "]}"

enum late { IN_ORDER, OLD_BATCHES_TOO };

/* Delivers the history in batches of random sizes, each one to four times. */
static void deliver(struct stage *s, const struct history *h, uint64_t seed, enum late late)
{
    size_t n = json_array_size(h->records);
    for (size_t first = 0, size; first < n; first += size) {
        size = 1 + history_draw(&seed, 60);
        char *event = history_event(h, first, size);
        for (size_t times = 1 + history_draw(&seed, 4); times > 0; times--)
            if (!stage_drive(s, event, 200))
                fail_msg("seed %llu: batch at %zu is never done: %s", (unsigned long long)h->options.seed,
                         first, s->answer.error.text);
        free(event);
        if (late == OLD_BATCHES_TOO && history_draw(&seed, 3) == 0) {
            event = history_event(h, history_draw(&seed, first + 1), 1 + history_draw(&seed, 60));
            assert_true(stage_drive(s, event, 200));
            free(event);
        }
    }
}

static void fail_sometimes(struct stage *s, uint64_t seed, unsigned one_in)
{
    s->chance = seed * 77;
    s->one_in = one_in;
}

/* The stream from the middle on, and an export of what the table held there: before it, after it, or in
 * between. */
enum seed_time { EXPORT_FIRST, EXPORT_LAST, EXPORT_BETWEEN };

static void deliver_export(struct stage *s, const struct history *h)
{
    char *lines = history_export(h);
    bool done = false;
    for (int times = 0; times < 200 && !done; times++) {
        stage_deliver(s, sl_span_str(lines));
        done = !s->answer.is_error && s->answer.checkpoint == s->n;
    }
    if (!done)
        fail_msg("the export is never done: %s", s->answer.error.text);
    sl_arena_reset(s->arena);
    free(lines);
}

static void deliver_with_export(struct stage *s, const struct history *h, enum seed_time when)
{
    size_t n = json_array_size(h->records), half = n / 2;
    if (when == EXPORT_FIRST)
        deliver_export(s, h);
    for (size_t first = half; first < n; first += 20) {
        char *event = history_event(h, first, 20);
        assert_true(stage_drive(s, event, 200));
        free(event);
        if (when == EXPORT_BETWEEN && first < half + n / 4 && first + 20 >= half + n / 4)
            deliver_export(s, h);
    }
    if (when == EXPORT_LAST)
        deliver_export(s, h);
}

/* ---- replica ---- */

/* The rows of a table of items as the map of the history has them. */
static json_t *replica_of(struct stage *s, const char *name)
{
    char sql[128];
    json_t *table = json_object();
    snprintf(sql, sizeof(sql), "SELECT item FROM \"%s\"", name);
    char *rows = stage_query(s, "db", sql);
    history_take_nul(rows);
    for (char *row = rows, *end; (end = strchr(row, '\n')); row = end + 1) {
        json_t *item = json_loadb(row, (size_t)(end - row), 0, NULL);
        assert_non_null(item);
        if (json_object_get(item, "sluice_deleted")) {
            json_decref(item);
            continue;
        }
        json_object_del(item, "sluice_order");
        json_object_del(item, "sluice_write");
        char key[32];
        snprintf(key, sizeof(key), "%zu", history_item(item));
        json_object_set_new(table, key, item);
    }
    free(rows);
    return table;
}

#define WHERE ",'where':{'status':['OPEN','PAID']}"

/* The items that the replica is to hold: all, or those that WHERE names. */
static json_t *wanted_of(const struct history *h, const char *what)
{
    json_t *wanted = json_object(), *item;
    const char *key;
    json_object_foreach(h->table, key, item)
    {
        const char *status = "";
        json_unpack(item, "{s:{s:s}}", "status", "S", &status);
        if (!strstr(what, WHERE) || strcmp(status, "OPEN") == 0 || strcmp(status, "PAID") == 0)
            json_object_set(wanted, key, item);
    }
    return wanted;
}

static void expect_replica(struct stage *s, const struct history *h, const char *what)
{
    json_t *replica = replica_of(s, "replica"), *wanted = wanted_of(h, what);
    if (!json_equal(replica, wanted))
        fail_msg("seed %llu, %s: the replica is not the table:\n%s", (unsigned long long)h->options.seed,
                 what, json_dumps(replica, JSON_SORT_KEYS | JSON_INDENT(1)));
    json_decref(replica);
    json_decref(wanted);
}

static void replicate(uint64_t seed, const char *guard, const char *view, enum late late, unsigned one_in)
{
    char config[512];
    struct history h;
    snprintf(config, sizeof(config),
             CONFIG("{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica','guard':%s}"),
             guard);
    history_make(&h, &(struct history_options){.seed = seed, .changes = 400, .items = 40, .view = view});
    struct stage *s = stage_new(config, NULL);
    fail_sometimes(s, seed, one_in);
    deliver(s, &h, seed, late);
    expect_replica(s, &h, guard);
    /* The whole history once more, a month later. */
    s->clock.ms += (int64_t)31 * 86400 * 1000;
    char *before = stage_query(s, "db", "SELECT item FROM replica ORDER BY key");
    deliver(s, &h, seed + 1, IN_ORDER);
    char *after = stage_query(s, "db", "SELECT item FROM replica ORDER BY key");
    /* (How new a tombstone is depends on which changes were folded, where not all of them are written.) */
    if (late == OLD_BATCHES_TOO && !strstr(guard, WHERE))
        assert_string_equal(before, after);
    expect_replica(s, &h, guard);
    free(before);
    free(after);
    stage_destroy(s);
    history_clean_up(&h);
}

static void a_guarded_replica_is_the_table(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        replicate(seed, "'inline'", seed % 2 ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE", OLD_BATCHES_TOO, 6);
        replicate(seed, "'inline','tombstones':{'table':'marks'}",
                  seed % 2 ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE", OLD_BATCHES_TOO, 6);
        replicate(seed, "{'table':'guards'}", seed % 2 ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE", OLD_BATCHES_TOO,
                  6);
    }
}

/* An item that stops matching goes, one that begins to match comes, however often and late the changes come.
 */
static void a_replica_of_some_items_holds_those_that_match(void **state)
{
    (void)state;
    static const char *const modes[] = {"'inline'" WHERE,
                                        "'inline','tombstones':{'table':'marks'}" WHERE,
                                        "{'table':'guards'}" WHERE,
                                        "'inline','epoch':3" WHERE,
                                        "{'table':'guards'},'epoch':1" WHERE,
                                        "'inline','epoch':1,'tombstones':{'table':'marks'}" WHERE};
    for (uint64_t seed = 1; seed <= 18; seed++)
        replicate(seed, modes[seed % 6], seed % 4 ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE", OLD_BATCHES_TOO, 6);
}

static void an_unguarded_replica_is_the_table_when_batches_come_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        replicate(seed, "'none'", "NEW_IMAGE", IN_ORDER, 6);
}

static void a_replica_is_seeded_from_an_export(void **state)
{
    (void)state;
    static const char *const guards[] = {"'inline'",
                                         "{'table':'guards'}",
                                         "'inline','tombstones':{'table':'marks'}",
                                         "'inline'" WHERE,
                                         "{'table':'guards'},'epoch':2" WHERE,
                                         "'inline','epoch':1,'tombstones':{'table':'marks'}" WHERE};
    for (int i = 0; i < 18; i++) {
        char config[512];
        struct history h;
        snprintf(
            config, sizeof(config),
            CONFIG("{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica','guard':%s}"),
            guards[i % 6]);
        history_make(&h,
                     &(struct history_options){.seed = 50, .changes = 400, .items = 40, .view = "NEW_IMAGE"});
        struct stage *s = stage_new(config, NULL);
        fail_sometimes(s, 3, 6);
        deliver_with_export(s, &h, (enum seed_time)(i / 6));
        expect_replica(s, &h, guards[i % 6]);
        stage_destroy(s);
        history_clean_up(&h);
    }
}

/* Puts the final state of the table into the table from which items are read back: the stream lags behind its
 * table. */
static void fill_source(struct stage *s, const struct history *h)
{
    char url[256];
    const char *name;
    json_t *item;
    struct sl_table_port *port;
    struct sl_error error = {0};
    snprintf(url, sizeof(url), "sqlite:%s/db?table=source", s->folder);
    if (sl_target_table(&s->sinks, sl_span_str(url), &port, &error) != SL_OK)
        fail_msg("%s", error.text);
    json_object_foreach(h->table, name, item)
    {
        json_t *key =
            json_pack("{s:O,s:O}", "PK", json_object_get(item, "PK"), "SK", json_object_get(item, "SK"));
        char *key_text = json_dumps(key, JSON_COMPACT), *item_text = json_dumps(item, JSON_COMPACT);
        history_put_nul(key_text);
        history_put_nul(item_text);
        struct sl_table_op op = {
            .verb = SL_TABLE_PUT, .key = sl_span_str(key_text), .item = sl_span_str(item_text)};
        struct sl_result result = {0};
        struct sl_call call = {.arena = s->arena, .deadline_ms = s->clock.ms + 60000};
        port->apply(port, &op, 1, &result, &call);
        assert_int_equal(result.status, SL_OK);
        json_decref(key);
        free(key_text);
        free(item_text);
    }
    port->close(port);
}

static void a_replica_that_reads_back_is_the_table(void **state)
{
    (void)state;
    static const char *const guards[] = {"'inline'", "{'table':'guards'}",
                                         "'inline','tombstones':{'table':'marks'}"};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        char config[512];
        struct history h;
        snprintf(config, sizeof(config),
                 CONFIG("{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica',"
                        "'source':'sqlite:${DIR}/db?table=source','guard':%s}"),
                 guards[seed % 3]);
        history_make(
            &h, &(struct history_options){
                    .seed = seed, .changes = 300, .items = 40, .view = seed > 2 ? "KEYS_ONLY" : "OLD_IMAGE"});
        struct stage *s = stage_new(config, NULL);
        fill_source(s, &h);
        fail_sometimes(s, seed, 6);
        deliver(s, &h, seed, OLD_BATCHES_TOO);
        expect_replica(s, &h, "read back");
        stage_destroy(s);
        history_clean_up(&h);
    }
}

/* ---- totals ---- */

#define COUNTERS                                                                                             \
    "[{'key':{'PK':'STATUS#{status}','SK':'-'},'add':{'orders':1,'revenue':'{total}'}},"                     \
    "{'key':{'PK':'ALL','SK':'{status}'},'add':{'orders':1},'when':{'status':{'S':['PAID','SHIPPED']}}}]"

/* GROUP BY over the map: "row attribute" -> exact sum. Rows that went back to zero stay. */
static void add_to(json_t *sums, const char *row, const char *name, const char *number,
                   struct sl_arena *arena)
{
    char key[128];
    struct sl_span text;
    snprintf(key, sizeof(key), "%s %s", row, name);
    const char *have = json_string_value(json_object_get(sums, key));
    struct sl_decimal *sum = sl_decimal_new(arena);
    assert_true(sl_decimal_add(sum, sl_span_str(have ? have : "0"), false));
    assert_true(sl_decimal_add(sum, sl_span_str(number), false));
    assert_true(sl_decimal_text(sum, arena, &text));
    if (sl_span_is(text, "0"))
        json_object_del(sums, key);
    else
        json_object_set_new(sums, key, json_stringn(text.ptr, text.len));
}

static void add_item(json_t *sums, const json_t *item, struct sl_arena *arena)
{
    char row[64];
    const char *status = json_string_value(json_object_get(json_object_get(item, "status"), "S"));
    const char *total = json_string_value(json_object_get(json_object_get(item, "total"), "N"));
    snprintf(row, sizeof(row), "STATUS#%s/-", status);
    if (total) {
        add_to(sums, row, "orders", "1", arena);
        add_to(sums, row, "revenue", total, arena);
    }
    snprintf(row, sizeof(row), "ALL/%s", status);
    if (strcmp(status, "PAID") == 0 || strcmp(status, "SHIPPED") == 0)
        add_to(sums, row, "orders", "1", arena);
}

/* `keeps`: what TTL removed from the change `from` on counts too, as it was. */
static json_t *group_by(const struct history *h, bool keeps, size_t from)
{
    json_t *sums = json_object(), *item, *record;
    const char *key;
    size_t i;
    struct sl_arena *arena = sl_arena_new(4096);
    json_object_foreach(h->table, key, item) add_item(sums, item, arena);
    json_array_foreach(h->records, i,
                       record) if (keeps && i >= from && json_object_get(record, "userIdentity"))
        add_item(sums, json_object_get(json_object_get(record, "dynamodb"), "OldImage"), arena);
    sl_arena_destroy(arena);
    return sums;
}

/* The rows of the totals; sub-counters are added up. */
static json_t *totals_of(struct stage *s)
{
    json_t *sums = json_object();
    struct sl_arena *arena = sl_arena_new(4096);
    char *rows = stage_query(s, "db", "SELECT item FROM totals");
    history_take_nul(rows);
    for (char *row = rows, *end; (end = strchr(row, '\n')); row = end + 1) {
        json_t *item = json_loadb(row, (size_t)(end - row), 0, NULL), *value;
        const char *pk = json_string_value(json_object_get(json_object_get(item, "PK"), "S"));
        const char *sk = json_string_value(json_object_get(json_object_get(item, "SK"), "S")), *name;
        char key[128];
        size_t upto = strlen(pk);
        for (const char *at = strchr(pk, '#'); at; at = strchr(at + 1, '#'))
            if (strspn(at + 1, "0123456789") == strlen(at + 1))
                upto = (size_t)(at - pk);
        snprintf(key, sizeof(key), "%.*s/%s", (int)upto, pk, sk);
        if (strncmp(pk, "sluice:", 7) != 0)
            json_object_foreach(item, name, value) if (json_object_get(value, "N"))
                add_to(sums, key, name, json_string_value(json_object_get(value, "N")), arena);
        json_decref(item);
    }
    free(rows);
    sl_arena_destroy(arena);
    return sums;
}

static void expect_totals_from(struct stage *s, const struct history *h, const char *what, size_t from)
{
    json_t *got = totals_of(s), *wanted = group_by(h, strstr(what, "keep") != NULL, from);
    if (!json_equal(got, wanted))
        fail_msg("seed %llu, %s:\n%s\nand not\n%s", (unsigned long long)h->options.seed, what,
                 json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1)),
                 json_dumps(wanted, JSON_SORT_KEYS | JSON_INDENT(1)));
    json_decref(got);
    json_decref(wanted);
}

static void expect_totals(struct stage *s, const struct history *h, const char *what)
{
    expect_totals_from(s, h, what, 0);
}

static void aggregate(uint64_t seed, const char *members, const char *view, enum late late, unsigned one_in)
{
    char config[1024];
    struct history h;
    snprintf(config, sizeof(config),
             CONFIG("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals',"
                    "'missing':'skip','counters':" COUNTERS "%s}"),
             members);
    history_make(&h, &(struct history_options){.seed = seed, .changes = 400, .items = 40, .view = view});
    struct stage *s = stage_new(config, NULL);
    fail_sometimes(s, seed, one_in);
    deliver(s, &h, seed, late);
    expect_totals(s, &h, members);
    if (late == OLD_BATCHES_TOO) {
        s->clock.ms += (int64_t)31 * 86400 * 1000;
        char *before =
            stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
        deliver(s, &h, seed + 1, IN_ORDER);
        char *after =
            stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
        assert_string_equal(before, after);
        free(before);
        free(after);
    }
    stage_destroy(s);
    history_clean_up(&h);
}

static void totals_are_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const char *view = seed % 2 ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE";
        aggregate(seed, "", view, OLD_BATCHES_TOO, 6);
        aggregate(seed, ",'expired':'keep'", "NEW_AND_OLD_IMAGES", OLD_BATCHES_TOO, 6);
        aggregate(seed, ",'shards':3,'ledger':{'table':'ledger'}", view, OLD_BATCHES_TOO, 6);
    }
}

static void totals_are_backfilled_from_an_export(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct history h;
        history_make(&h, &(struct history_options){.seed = 60,
                                                   .changes = 400,
                                                   .items = 40,
                                                   .view = i % 2 ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE"});
        struct stage *s = stage_new(CONFIG("{'name':'t','handler':'aggregate',"
                                           "'to':'sqlite:${DIR}/db?table=totals','missing':'skip',"
                                           "'counters':" COUNTERS "}"),
                                    NULL);
        fail_sometimes(s, 4, 6);
        deliver_with_export(s, &h, (enum seed_time)(i / 2));
        expect_totals(s, &h, "backfill");
        stage_destroy(s);
        history_clean_up(&h);
    }
}

/* ---- an export and the stream, in any order ---- */

#define PIECE 7

/* The stream from `start` on, and an export of what the table held at `point`. */
struct feed {
    struct stage *s;
    const struct history *h;
    uint64_t chance;
    size_t start, point, next; /* the stream is delivered up to `next` */
    size_t n_items, pieces;    /* of the export, which is delivered in pieces: those that were */
};

static void feed_event(struct feed *f, char *event)
{
    if (event && !stage_drive(f->s, event, 200))
        fail_msg("seed %llu: never done: %s", (unsigned long long)f->h->options.seed,
                 f->s->answer.error.text);
    free(event);
}

static void feed_piece(struct feed *f, size_t piece)
{
    feed_event(f, history_export_at(f->h, f->point, PIECE * piece, PIECE));
}

/* The next batch of the stream, cut anywhere, and often an older one once more. */
static void feed_stream(struct feed *f)
{
    size_t size = 1 + history_draw(&f->chance, 25);
    feed_event(f, history_event(f->h, f->next, size));
    f->next += size;
    while (history_draw(&f->chance, 3) == 0) {
        size_t first = f->start + history_draw(&f->chance, f->next - f->start);
        size_t most = f->next - first;
        feed_event(f, history_event(f->h, first, 1 + history_draw(&f->chance, most < 25 ? most : 25)));
    }
}

static void feed_all(struct feed *f)
{
    size_t n = json_array_size(f->h->records), n_pieces = (f->h->options.items + PIECE - 1) / PIECE;
    f->next = f->start;
    while (f->next < n || f->pieces < n_pieces) {
        bool streams = f->pieces == n_pieces || (f->next < n && history_draw(&f->chance, 3));
        if (streams)
            feed_stream(f);
        else
            feed_piece(f, f->pieces++);
        if (f->pieces && history_draw(&f->chance, 4) == 0)
            feed_piece(f, history_draw(&f->chance, f->pieces));
        if (history_draw(&f->chance, 10) == 0)
            stage_reopen(f->s, NULL);
    }
}

/* What TTL removes is counted as it was, whether an export, the stream or nothing counted it before. */
static void export_and_stream_make_the_same_totals_in_any_order(void **state)
{
    (void)state;
    static const char *const members[] = {"", ",'expired':'keep'",
                                          ",'expired':'keep-any','forget_after_days':1"};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        char config[1024];
        struct history h;
        snprintf(config, sizeof(config),
                 CONFIG("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals',"
                        "'missing':'skip','counters':" COUNTERS "%s}"),
                 members[seed % 3]);
        history_make(&h, &(struct history_options){
                             .seed = seed, .changes = 150, .items = 20, .view = "NEW_AND_OLD_IMAGES"});
        struct feed f = {.s = stage_new(config, NULL), .h = &h, .chance = seed + 1000};
        f.start = history_draw(&f.chance, 120);
        f.point = f.start + history_draw(&f.chance, 150 - f.start + 1);
        if (seed % 2)
            fail_sometimes(f.s, seed, 8);
        feed_all(&f);
        expect_totals_from(f.s, &h, members[seed % 3], f.start);
        stage_destroy(f.s);
        history_clean_up(&h);
    }
}

/* Without a backfill items are counted from their first change: never is more subtracted than was added. */
static void totals_from_the_middle_hold_what_has_changed(void **state)
{
    (void)state;
    struct history h;
    size_t i;
    json_t *record, *touched = json_object(), *item;
    const char *key;
    void *next;
    history_make(
        &h, &(struct history_options){.seed = 70, .changes = 60, .items = 40, .view = "NEW_AND_OLD_IMAGES"});
    struct stage *s =
        stage_new(CONFIG("{'name':'t','handler':'aggregate',"
                         "'to':'sqlite:${DIR}/db?table=totals','missing':'skip','counters':" COUNTERS "}"),
                  NULL);
    char *event = history_event(&h, 30, 30);
    assert_true(stage_drive(s, event, 10) && stage_drive(s, event, 10));
    free(event);
    json_array_foreach(h.records, i, record) if (i >= 30)
    {
        char number[32];
        const json_t *keys = json_object_get(json_object_get(record, "dynamodb"), "Keys");
        snprintf(number, sizeof(number), "%zu", history_item(keys));
        json_object_set_new(touched, number, json_true());
    }
    json_object_foreach_safe(h.table, next, key, item) if (!json_object_get(touched, key))
        json_object_del(h.table, key);
    assert_true(json_object_size(h.table) > 3);
    expect_totals(s, &h, "from the middle");
    json_decref(touched);
    stage_destroy(s);
    history_clean_up(&h);
}

/* Without faults and repeats a plain ADD is exact too; deliver() repeats, so that each batch comes once here.
 */
static void totals_without_a_ledger_are_exact_when_nothing_repeats(void **state)
{
    (void)state;
    struct history h;
    history_make(
        &h, &(struct history_options){.seed = 3, .changes = 400, .items = 40, .view = "NEW_AND_OLD_IMAGES"});
    struct stage *s =
        stage_new(CONFIG("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals',"
                         "'mode':'at-least-once','missing':'skip','counters':" COUNTERS "}"),
                  NULL);
    for (size_t first = 0; first < 400; first += 37) {
        char *event = history_event(&h, first, 37);
        assert_true(stage_drive(s, event, 1));
        free(event);
    }
    expect_totals(s, &h, "at-least-once");
    stage_destroy(s);
    history_clean_up(&h);
}

/* ---- archive and queue ---- */

static json_t *ids_of(char *lines, const char *member)
{
    json_t *ids = json_object();
    history_take_nul(lines);
    for (char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *record = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_non_null(record);
        json_object_set_new(ids, json_string_value(json_object_get(record, member)), json_true());
        json_decref(record);
    }
    free(lines);
    return ids;
}

static bool is_expired(const json_t *record)
{
    return json_object_get(record, "userIdentity") != NULL;
}

static bool is_shipped(const json_t *record)
{
    const json_t *image = json_object_get(json_object_get(record, "dynamodb"), "NewImage");
    const char *status = json_string_value(json_object_get(json_object_get(image, "status"), "S"));
    return status && strcmp(status, "SHIPPED") == 0;
}

static void expect_ids(const struct history *h, json_t *ids, bool (*is_wanted)(const json_t *))
{
    size_t i, n = 0;
    json_t *record;
    json_array_foreach(h->records, i, record)
    {
        const char *id = json_string_value(json_object_get(record, "eventID"));
        if (!is_wanted(record))
            continue;
        n++;
        if (!json_object_get(ids, id))
            fail_msg("seed %llu: %s is missing", (unsigned long long)h->options.seed, id);
    }
    assert_true(n > 0);
    assert_int_equal(json_object_size(ids), n);
    json_decref(ids);
}

static void archive_and_queue_are_complete(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct history h;
        history_make(&h, &(struct history_options){
                             .seed = seed, .changes = 400, .items = 40, .view = "NEW_AND_OLD_IMAGES"});
        struct stage *s = stage_new(
            CONFIG("{'name':'a','handler':'archive','to':'file:${DIR}/out','when':{'expired':true}},"
                   "{'name':'n','handler':'notify','to':'jsonl:${DIR}/queue.jsonl',"
                   "'when':{'pattern':[{'dynamodb':{'NewImage':{'status':{'S':['SHIPPED']}}}}]}}"),
            NULL);
        fail_sometimes(s, seed, 8);
        deliver(s, &h, seed, IN_ORDER);
        expect_ids(&h, ids_of(stage_objects(s, "out", NULL), "eventID"), is_expired);
        expect_ids(&h, ids_of(stage_file(s, "queue.jsonl"), "eventID"), is_shipped);
        stage_destroy(s);
        history_clean_up(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guarded_replica_is_the_table),
        cmocka_unit_test(a_replica_of_some_items_holds_those_that_match),
        cmocka_unit_test(an_unguarded_replica_is_the_table_when_batches_come_in_order),
        cmocka_unit_test(a_replica_is_seeded_from_an_export),
        cmocka_unit_test(a_replica_that_reads_back_is_the_table),
        cmocka_unit_test(totals_are_exact),
        cmocka_unit_test(totals_are_backfilled_from_an_export),
        cmocka_unit_test(export_and_stream_make_the_same_totals_in_any_order),
        cmocka_unit_test(totals_from_the_middle_hold_what_has_changed),
        cmocka_unit_test(totals_without_a_ledger_are_exact_when_nothing_repeats),
        cmocka_unit_test(archive_and_queue_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
