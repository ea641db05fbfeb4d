/* What `sluice repair` asks of the handlers: a row that is not as the item says is set right, under the
 * condition that it still is as it was seen; and the changes that come afterwards, or again, find what they
 * expect. */
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/verify/compare.h"

#include <stdio.h>
#include <stdlib.h>

#define REPLICA(members)                                                                                     \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:${DIR}/db?table=rows'" members "}]}"
#define TOTALS                                                                                               \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'t','handler':'aggregate',"  \
    "'to':'sqlite:${DIR}/db?table=totals','ledger':{'table':'rows'},'counters':[{'key':{'PK':'{g}'},"        \
    "'add':{'n':1,'sum':'{v}'}}]}]}"

/* How a replica keeps its guards. */
static const struct mode {
    const char *name, *config;
    bool has_inline, has_side; /* on the row; in another table */
} modes[] = {{"inline", REPLICA(""), true, false},
             {"tombstones", REPLICA(",'tombstones':{'table':'side'}"), true, true},
             {"side", REPLICA(",'guard':{'table':'side'}"), false, true}};
#define MODES (sizeof(modes) / sizeof(modes[0]))

#define A(v)              PK("a") ",'g':" S("x") ",'v':" N(v)
#define INSERT(seq, v)    EVENT(RECORD("INSERT", seq, KEYS(PK("a")) NEW(A(v))))
#define MODIFY(seq, v, o) EVENT(RECORD("MODIFY", seq, KEYS(PK("a")) NEW(A(v)) OLD(A(o))))
#define REMOVE(seq, o)    EVENT(RECORD("REMOVE", seq, KEYS(PK("a")) OLD(A(o))))

/* The source has the item, or does not. */
#define HAS(v) "{'eventName':'INSERT','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" A(v) "}}}"
#define LACKS  "{'eventName':'REMOVE','dynamodb':{'Keys':{" PK("a") "}}}"

/* ---- calling ---- */

struct asked {
    enum sl_status status;
    char code[64];
    bool has_written;
};

#define REMOVES 1u
#define PLANS   2u
#define UNDOES  4u /* `back` is the row that is put back */

/* What was seen of a row: it, and the side table's row. */
struct sight {
    const char *row, *side; /* NULL: there is none */
};

static struct asked repair_seen(struct stage *s, const char *record, struct sight seen, unsigned flags,
                                const char *back)
{
    struct test_batch t;
    test_decode(&t, sl_span_str(json(record)), NULL);
    assert_int_equal(t.status, SL_OK);
    struct sl_route *route = &s->p->routes[0];
    struct sl_mark mark = {.is_set = false};
    const struct sl_record *r = sl_batch_record(&t.batch, 0);
    struct sl_span row = seen.row ? sl_span_str(seen.row) : sl_span(NULL, 0), written;
    struct sl_span side = seen.side ? sl_span_str(seen.side) : sl_span(NULL, 0);
    struct sl_slice_call call = {.marks = &mark,
                                 .slice = {.abi = SL_HANDLER_ABI,
                                           .records = &r,
                                           .n = 1,
                                           .arena = t.arena,
                                           .deadline_ms = s->sinks.clock->now_ms(s->sinks.clock) + 10000,
                                           .request_id = ""}};
    enum sl_repair_effect effect;
    struct sl_span wanted = back ? sl_span_str(back) : sl_span(NULL, 0);
    struct sl_repair ask = {.wanted = flags & UNDOES ? &wanted : NULL,
                            .seen = &row,
                            .sides = &side,
                            .written = &written,
                            .effects = &effect,
                            .may_remove = flags & REMOVES,
                            .is_plan = flags & PLANS};
    struct sl_error error = SL_NO_ERROR;
    struct asked out = {.code = ""};
    out.status = route->loaded.handler.repair(route->self, &call.slice, &ask, &error);
    if (mark.is_set && mark.status != SL_OK) {
        out.status = mark.status;
        snprintf(out.code, sizeof(out.code), "%s", mark.why ? mark.why->code : "");
    }
    out.has_written = written.ptr != NULL;
    test_batch_clean_up(&t);
    return out;
}

/* The rows of a table, one line each; the caller frees. */
static char *rows(const struct stage *s, const char *table)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "SELECT item FROM %s ORDER BY key", table);
    return stage_query(s, "db", sql);
}

/* The one row of the table that the handler keeps, without its newline; NULL when there is none. */
static char *seen_row(const struct stage *s)
{
    char *text = rows(s, "rows");
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        return text;
    free(text);
    return NULL;
}

/* The item's row of the side table; NULL when there is none. */
static char *side_row(const struct stage *s)
{
    char *is_there = stage_query(s, "db", "SELECT count(*) FROM sqlite_master WHERE name = 'side'");
    const char *sql = "SELECT item FROM side WHERE key LIKE '%a\\\"%'";
    char *text = *is_there == '1' ? stage_query(s, "db", sql) : strdup("");
    free(is_there);
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        return text;
    free(text);
    return NULL;
}

/* The side row is seen as it is now. */
static struct asked repair_to(struct stage *s, const char *record, const char *seen, unsigned flags,
                              const char *back)
{
    char *side = side_row(s);
    struct asked out = repair_seen(s, record, (struct sight){seen, side}, flags, back);
    free(side);
    return out;
}

static struct asked repair(struct stage *s, const char *record, const char *seen, unsigned flags)
{
    return repair_to(s, record, seen, flags, NULL);
}

static bool is_dead(const char *row)
{
    return !row || strstr(row, "sluice_deleted") != NULL;
}

/* What a reader of the replica sees. */
static void expect_v(const struct stage *s, const char *wanted)
{
    char *row = seen_row(s), text[64];
    if (!wanted) {
        assert_true(is_dead(row));
    } else {
        assert_false(is_dead(row));
        snprintf(text, sizeof(text), "\"v\":{\"N\":\"%s\"}", wanted);
        if (!strstr(row, text))
            fail_msg("%s does not hold %s", row, text);
    }
    free(row);
}

static void expect(struct asked got, enum sl_status status, const char *code)
{
    if (got.status != status || strcmp(got.code, code) != 0)
        fail_msg("status %d, code \"%s\"; wanted %d, \"%s\"", got.status, got.code, status, code);
}

/* ---- replicas ---- */

#define EACH_MODE(m) for (const struct mode *m = modes; m < modes + MODES; m++)

/* Changes the row as somebody would who goes round the stream. */
static void break_value(struct stage *s)
{
    stage_change(s, "db",
                 "UPDATE rows SET item = replace(item, '\"v\":{\"N\":\"1\"}', '\"v\":{\"N\":\"666\"}')");
}

static struct stage *replica_of_one(const struct mode *m)
{
    struct stage *s = stage_new(m->config, NULL);
    stage_deliver_all(s, INSERT("5", "1"));
    return s;
}

static void a_changed_item_is_set_right(void **state)
{
    (void)state;
    EACH_MODE(m)
    {
        struct stage *s = replica_of_one(m);
        break_value(s);
        char *seen = seen_row(s);
        expect(repair(s, HAS("1"), seen, PLANS), SL_OK, "");
        expect_v(s, "666");
        struct asked got = repair(s, HAS("1"), seen, 0);
        expect(got, SL_OK, "");
        assert_true(got.has_written);
        expect_v(s, "1");
        /* The change that the write stands for, and an older one, come once more; then the next. */
        stage_deliver_all(s, INSERT("4", "400"));
        stage_deliver_all(s, INSERT("5", "500"));
        expect_v(s, "1");
        stage_deliver_all(s, MODIFY("6", "2", "1"));
        expect_v(s, "2");
        free(seen);
        stage_destroy(s);
    }
}

/* A key that templates make: its row is found, set right, and kept by its guard. */
static void a_row_whose_key_is_made_is_set_right(void **state)
{
    (void)state;
    static const char *const keys[] = {",'key':{'P':'x#{PK}'}", ",'key':{'P':'x','Q':'{PK}'},'drop':['PK']"};
    EACH_MODE(m)
    for (size_t i = 0; i < 2; i++) {
        char config[600];
        snprintf(config, sizeof(config), "%.*s%s}]}", (int)strlen(m->config) - 3, m->config, keys[i]);
        struct stage *s = stage_new(config, NULL);
        stage_deliver_all(s, INSERT("5", "1"));
        char *right = rows(s, "rows");
        break_value(s);
        char *seen = seen_row(s);
        expect(repair(s, HAS("1"), seen, 0), SL_OK, "");
        char *now = rows(s, "rows");
        assert_int_equal(strlen(now), strlen(right));
        expect_v(s, "1");
        stage_deliver_all(s, INSERT("5", "500"));
        expect_v(s, "1");
        free(now);
        now = seen_row(s);
        expect(repair(s, LACKS, now, REMOVES), SL_OK, "");
        expect_v(s, NULL);
        free(now);
        free(seen);
        free(right);
        stage_destroy(s);
    }
}

static void what_has_no_key_there_is_rejected(void **state)
{
    (void)state;
    struct stage *s = stage_new(REPLICA(",'key':{'P':'{nope}'}"), NULL);
    expect(repair(s, HAS("1"), NULL, 0), SL_REJECT, "MissingAttribute");
    stage_destroy(s);
}

/* The digits of the time in a guard, and those of the repair after it; NULL: nothing comes after it. */
static const struct {
    const char *stands, *next;
} guards[] = {{":0001767265199000", ":0001767265199001"},
              {":0001767265199008", ":0001767265199009"},
              {":0001767265199009", ":0001767265199010"},
              {":0001767265199999", ":0001767265200000"},
              {":0999999999999999", ":1000000000000000"},
              {":9999999999999998", ":9999999999999999"},
              {":9999999999999999", NULL},
              {":000176726519900:", NULL},
              {":000176726519900/", NULL},
              {":/001767265199000", NULL},
              {";0001767265199000", NULL},
              {":00017672651990000", NULL},
              {":000176726519900", NULL}};

static void a_repair_has_the_next_guard(void **state)
{
    (void)state;
    EACH_MODE(m)
    for (size_t i = 0; i < sizeof(guards) / sizeof(guards[0]); i++) {
        struct stage *s = replica_of_one(m);
        break_value(s);
        char sql[200];
        snprintf(sql, sizeof(sql), "UPDATE %s SET item = replace(item, '%s', '%s')",
                 m->has_inline ? "rows" : "side", guards[0].stands, guards[i].stands);
        stage_change(s, "db", sql);
        char *seen = seen_row(s);
        if (guards[i].next)
            expect(repair(s, HAS("1"), seen, 0), SL_OK, "");
        else
            expect(repair(s, HAS("1"), seen, 0), SL_REJECT, "NoGuard");
        expect_v(s, guards[i].next ? "1" : "666");
        char *now = rows(s, m->has_inline ? "rows" : "side");
        if (!strstr(now, guards[i].next ? guards[i].next : guards[i].stands))
            fail_msg("%s, guard %zu: %s", m->name, i, now);
        free(now);
        free(seen);
        stage_destroy(s);
    }
}

static void a_missing_item_comes_back_below_every_change(void **state)
{
    (void)state;
    EACH_MODE(m)
    {
        struct stage *s = replica_of_one(m);
        stage_change(s, "db", "DELETE FROM rows");
        expect(repair(s, HAS("1"), NULL, 0), SL_OK, "");
        expect_v(s, "1");
        stage_deliver_all(s, MODIFY("6", "2", "1"));
        expect_v(s, "2");
        stage_destroy(s);
    }
}

/* Its delete was carried out, the insert after it was lost. */
static void a_lost_insert_beats_the_tombstone_and_loses_to_the_next_change(void **state)
{
    (void)state;
    EACH_MODE(m)
    {
        struct stage *s = replica_of_one(m);
        stage_deliver_all(s, REMOVE("6", "1"));
        char *seen = seen_row(s);
        expect(repair(s, HAS("7"), seen, 0), SL_OK, "");
        expect_v(s, "7");
        stage_deliver_all(s, MODIFY("5", "500", "1"));
        stage_deliver_all(s, REMOVE("6", "1"));
        expect_v(s, "7");
        stage_deliver_all(s, INSERT("7", "8"));
        expect_v(s, "8");
        free(seen);
        stage_destroy(s);
    }
}

static void what_is_left_over_goes_only_when_asked_for(void **state)
{
    (void)state;
    EACH_MODE(m)
    {
        struct stage *s = replica_of_one(m);
        char *seen = seen_row(s);
        expect(repair(s, LACKS, seen, 0), SL_REJECT, "WouldRemove");
        expect(repair(s, LACKS, seen, REMOVES | PLANS), SL_OK, "");
        expect_v(s, "1");
        expect(repair(s, LACKS, seen, REMOVES), SL_OK, "");
        expect_v(s, NULL);
        /* Again, and what is late. */
        free(seen);
        seen = seen_row(s);
        expect(repair(s, LACKS, seen, REMOVES), SL_OK, "");
        stage_deliver_all(s, INSERT("5", "500"));
        stage_deliver_all(s, MODIFY("4", "400", "1"));
        expect_v(s, NULL);
        stage_deliver_all(s, INSERT("8", "8"));
        expect_v(s, "8");
        free(seen);
        stage_destroy(s);
    }
}

static void an_item_that_somebody_else_wrote_stays(void **state)
{
    (void)state;
    EACH_MODE(m)
    {
        struct stage *s = stage_new(m->config, NULL);
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("b")) NEW(PK("b")))));
        stage_change(s, "db",
                     "UPDATE rows SET key = '{\"PK\":{\"S\":\"a\"}}', item = "
                     "'{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"9\"}}'");
        char *seen = seen_row(s);
        expect(repair(s, LACKS, seen, REMOVES), SL_REJECT, "NotOurs");
        expect_v(s, "9");
        free(seen);
        stage_destroy(s);
    }
}

/* Whatever happens to the row between the look and the write. */
static void a_row_that_moved_is_left_alone(void **state)
{
    (void)state;
    static const char *const moves[] = {
        "UPDATE rows SET item = replace(item, '666', '777')",
        "UPDATE rows SET item = '{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"777\"}}'",
        "DELETE FROM rows",
    };
    EACH_MODE(m)
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
        for (unsigned removes = 0; removes <= REMOVES; removes++) {
            struct stage *s = replica_of_one(m);
            break_value(s);
            char *seen = seen_row(s);
            stage_change(s, "db", moves[i]);
            char *before = rows(s, "rows");
            expect(repair(s, removes ? LACKS : HAS("1"), seen, removes), SL_REJECT, "Moved");
            char *after = rows(s, "rows");
            assert_string_equal(before, after);
            /* Nothing was there when it was seen, and now something is. */
            if (i < 2 && !removes)
                expect(repair(s, HAS("1"), NULL, 0), SL_REJECT, "Moved");
            free(seen);
            free(before);
            free(after);
            stage_destroy(s);
        }
}

/* The item is deleted between the look and the write, and the stream says so first. */
static void a_deletion_after_the_look_is_never_undone(void **state)
{
    (void)state;
    static const char *const breaks[] = {
        "DELETE FROM rows",
        "UPDATE rows SET item = replace(item, '\"v\":{\"N\":\"1\"}', '\"v\":{\"N\":\"666\"}')",
        "UPDATE rows SET item = '{\"PK\":{\"S\":\"a\"}}'"};
    EACH_MODE(m)
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++)
        for (int was_deleted = 0; was_deleted < 2; was_deleted++) {
            struct stage *s = replica_of_one(m);
            if (was_deleted) { /* so there is a mark already */
                stage_deliver_all(s, REMOVE("6", "1"));
                stage_deliver_all(s, INSERT("7", "1"));
            }
            stage_change(s, "db", breaks[i]);
            char *row = seen_row(s), *side = side_row(s);
            stage_deliver_all(s, REMOVE("8", "1"));
            expect(repair_seen(s, HAS("1"), (struct sight){row, side}, 0, NULL), SL_REJECT, "Moved");
            expect_v(s, NULL);
            free(row);
            free(side);
            stage_destroy(s);
        }
}

/* Somebody put the deleted item's row back as it was, with its guard. */
static void a_revived_row_goes_or_becomes_the_new_item(void **state)
{
    (void)state;
    EACH_MODE(m)
    for (unsigned removes = 0; removes <= REMOVES; removes++) {
        struct stage *s = replica_of_one(m);
        stage_change(s, "db", "CREATE TABLE kept AS SELECT * FROM rows");
        stage_deliver_all(s, REMOVE("6", "1"));
        stage_change(s, "db", "DELETE FROM rows; INSERT INTO rows SELECT * FROM kept");
        char *seen = seen_row(s);
        expect(repair(s, removes ? LACKS : HAS("7"), seen, removes), SL_OK, "");
        expect_v(s, removes ? NULL : "7");
        stage_deliver_all(s, INSERT("8", "8"));
        expect_v(s, "8");
        free(seen);
        stage_destroy(s);
    }
}

/* The table that follows the replica takes the write for an echo. */
static void a_repair_is_an_echo_to_a_follower(void **state)
{
    (void)state;
    EACH_MODE(m)
    {
        if (!m->has_inline)
            continue;
        struct stage *s = replica_of_one(m), *other = stage_new(REPLICA(""), NULL);
        break_value(s);
        char *before = seen_row(s), event[4096];
        expect(repair(s, HAS("1"), before, 0), SL_OK, "");
        char *after = seen_row(s);
        snprintf(event, sizeof(event),
                 "{'Records':[{'eventID':'e','eventName':'MODIFY','eventSource':'aws:dynamodb','dynamodb':{"
                 "'Keys':{'PK':{'S':'a'}},'NewImage':%s,'OldImage':%s,'SequenceNumber':'90',"
                 "'StreamViewType':'NEW_AND_OLD_IMAGES'}}]}",
                 after, before);
        stage_deliver_all(other, event);
        char *copied = stage_query(other, "db", "SELECT count(*) FROM sqlite_master WHERE name = 'rows'");
        char *count = *copied == '1' ? rows(other, "rows") : strdup("");
        assert_string_equal(count, "");
        free(before);
        free(after);
        free(copied);
        free(count);
        stage_destroy(s);
        stage_destroy(other);
    }
}

/* What a repair wrote, removed or made is as it was, but for the guard, which only grows. */
static void a_repair_is_undone(void **state)
{
    (void)state;
    static const char *const breaks[] = {
        "UPDATE rows SET item = replace(item, '\"v\":{\"N\":\"1\"}', '\"v\":{\"N\":\"666\"}')",
        "DELETE FROM rows", NULL};
    EACH_MODE(m)
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        const char *wanted = i == 0 ? "666" : i == 1 ? NULL : "1";
        struct stage *s = replica_of_one(m);
        if (breaks[i])
            stage_change(s, "db", breaks[i]);
        char *before = seen_row(s);
        expect(repair(s, breaks[i] ? HAS("1") : LACKS, before, REMOVES), SL_OK, "");
        expect_v(s, breaks[i] ? "1" : NULL);
        char *after = seen_row(s);
        expect(repair_to(s, LACKS, after, REMOVES | UNDOES, before), SL_OK, "");
        expect_v(s, wanted);
        /* Where the guard was gone with the item, both were written below every change. */
        stage_deliver_all(s, INSERT("5", "500"));
        expect_v(s, wanted || !m->has_inline ? wanted : "500");
        stage_deliver_all(s, MODIFY("6", "2", "1"));
        expect_v(s, "2");
        free(before);
        free(after);
        stage_destroy(s);
    }
}

/* An item that does not match is no item of the replica's. */
static void where_decides_what_a_repair_keeps(void **state)
{
    (void)state;
    struct stage *s = stage_new(REPLICA(",'where':{'g':['x']}"), NULL);
    stage_deliver_all(s, INSERT("5", "1"));
    char *seen = seen_row(s);
    const char *other = "{'eventName':'INSERT','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" PK("a") "}}}";
    expect(repair(s, other, seen, 0), SL_REJECT, "WouldRemove");
    expect(repair(s, other, seen, REMOVES), SL_OK, "");
    expect_v(s, NULL);
    free(seen);
    stage_destroy(s);
}

/* ---- totals ---- */

static void expect_totals(const struct stage *s, const char *wanted)
{
    char *got = rows(s, "totals");
    assert_string_equal(got, json(wanted));
    free(got);
}

#define SUM(n, v) "{'PK':{'S':'x'},'n':{'N':'" n "'},'sum':{'N':'" v "'}}\n"

/* The ledger's row of the item. */
static char *ledger_row(const struct stage *s)
{
    char *text = stage_query(s, "db", "SELECT item FROM rows WHERE key LIKE '%sluice:ledger%'");
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        return text;
    free(text);
    return NULL;
}

static struct stage *totals_of_one(void)
{
    struct stage *s = stage_new(TOTALS, NULL);
    stage_deliver_all(s, INSERT("5", "10"));
    expect_totals(s, SUM("1", "10"));
    return s;
}

static void what_was_counted_wrongly_is_counted_anew(void **state)
{
    (void)state;
    struct stage *s = totals_of_one();
    char *seen = ledger_row(s);
    expect(repair(s, HAS("13"), seen, PLANS), SL_OK, "");
    expect_totals(s, SUM("1", "10"));
    expect(repair(s, HAS("13"), seen, 0), SL_OK, "");
    expect_totals(s, SUM("1", "13"));
    expect(repair(s, HAS("13"), seen, 0), SL_REJECT, "Moved");
    free(seen);
    seen = ledger_row(s);
    struct asked again = repair(s, HAS("13"), seen, 0);
    expect(again, SL_OK, "");
    assert_false(again.has_written);
    stage_deliver_all(s, INSERT("5", "10"));
    stage_deliver_all(s, MODIFY("6", "20", "10"));
    expect_totals(s, SUM("1", "20"));
    free(seen);
    stage_destroy(s);
}

/* The ledger's row of its source would be made, or move to another epoch. */
static void a_plan_writes_no_row_at_all(void **state)
{
    (void)state;
    struct stage *s = totals_of_one();
    char *seen = ledger_row(s), *before = rows(s, "rows");
    const char *record =
        "{'eventName':'INSERT','eventSourceARN':'arn:aws:dynamodb:eu-west-1:123456789012:table/"
        "orders/stream/x','dynamodb':{'Keys':{" PK("a") "},'NewImage':{" A("13") "}}}";
    expect(repair(s, record, seen, PLANS), SL_OK, "");
    char *after = rows(s, "rows");
    assert_string_equal(before, after);
    free(after);
    expect(repair(s, record, seen, 0), SL_OK, "");
    after = rows(s, "rows");
    assert_non_null(strstr(after, "sluice:source:"));
    free(after);
    free(before);
    free(seen);
    stage_destroy(s);
}

/* The ledger and the totals stay as far apart as they were. */
static void a_missing_row_of_the_ledger_is_counted_with_its_item(void **state)
{
    (void)state;
    struct stage *s = totals_of_one();
    stage_change(s, "db", "DELETE FROM rows WHERE key LIKE '%sluice:ledger%'");
    expect(repair(s, HAS("10"), NULL, 0), SL_OK, "");
    expect_totals(s, SUM("2", "20"));
    stage_deliver_all(s, MODIFY("6", "11", "10"));
    expect_totals(s, SUM("2", "21"));
    stage_destroy(s);
}

static void what_is_left_over_is_taken_from_the_totals(void **state)
{
    (void)state;
    struct stage *s = totals_of_one();
    char *seen = ledger_row(s);
    expect(repair(s, LACKS, seen, 0), SL_REJECT, "WouldRemove");
    expect(repair(s, LACKS, seen, REMOVES), SL_OK, "");
    expect_totals(s, SUM("0", "0"));
    stage_deliver_all(s, INSERT("5", "10"));
    expect_totals(s, SUM("0", "0"));
    stage_deliver_all(s, INSERT("8", "8"));
    expect_totals(s, SUM("1", "8"));
    free(seen);
    expect(repair(s, LACKS, NULL, REMOVES), SL_OK, "");
    expect(repair_to(s, LACKS, NULL, REMOVES | UNDOES, NULL), SL_REJECT, "");
    stage_destroy(s);
}

static void a_ledger_row_that_moved_is_left_alone(void **state)
{
    (void)state;
    struct stage *s = totals_of_one();
    char *seen = ledger_row(s);
    stage_change(s, "db",
                 "UPDATE rows SET item = replace(item, '\"sum\":{\"N\":\"10\"}', '\"sum\":{\"N\":\"11\"}')");
    expect(repair(s, HAS("13"), seen, 0), SL_REJECT, "Moved");
    stage_deliver_all(s, MODIFY("6", "12", "10"));
    expect(repair(s, HAS("13"), seen, 0), SL_REJECT, "Moved");
    expect(repair(s, HAS("13"), NULL, 0), SL_REJECT, "Moved");
    free(seen);
    stage_destroy(s);
}

/* Right sums alone do not make a row right: the next change would stop at a row without its order. */
static void a_ledger_row_has_to_have_its_order(void **state)
{
    (void)state;
    struct stage *s = totals_of_one();
    struct test_batch t;
    struct sl_error error = SL_NO_ERROR;
    test_decode(&t, sl_span_str(json(HAS("10"))), NULL);
    const struct sl_record *r = sl_batch_record(&t.batch, 0);
    struct sl_expect e = {.abi = SL_HANDLER_ABI, .records = &r, .n = 1, .arena = t.arena};
    struct sl_route *route = &s->p->routes[0];
    assert_int_equal(route->loaded.handler.expect(route->self, &e, &error), SL_OK);
    assert_int_equal(e.n_rows, 1);
    const struct sl_compare compare = {.arena = t.arena};
    char *row = ledger_row(s);
    assert_true(sl_compare_is_right(&compare, &e.rows[0], sl_span_str(row)));
    char *order = strstr(row, "\"order\"");
    assert_non_null(order);
    memcpy(order, "\"xrder\"", 7);
    assert_false(sl_compare_is_right(&compare, &e.rows[0], sl_span_str(row)));
    free(row);
    test_batch_clean_up(&t);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_item_is_set_right),
        cmocka_unit_test(a_row_whose_key_is_made_is_set_right),
        cmocka_unit_test(what_has_no_key_there_is_rejected),
        cmocka_unit_test(a_repair_has_the_next_guard),
        cmocka_unit_test(a_missing_item_comes_back_below_every_change),
        cmocka_unit_test(a_lost_insert_beats_the_tombstone_and_loses_to_the_next_change),
        cmocka_unit_test(what_is_left_over_goes_only_when_asked_for),
        cmocka_unit_test(an_item_that_somebody_else_wrote_stays),
        cmocka_unit_test(a_row_that_moved_is_left_alone),
        cmocka_unit_test(a_deletion_after_the_look_is_never_undone),
        cmocka_unit_test(a_revived_row_goes_or_becomes_the_new_item),
        cmocka_unit_test(a_repair_is_an_echo_to_a_follower),
        cmocka_unit_test(a_repair_is_undone),
        cmocka_unit_test(where_decides_what_a_repair_keeps),
        cmocka_unit_test(what_was_counted_wrongly_is_counted_anew),
        cmocka_unit_test(a_plan_writes_no_row_at_all),
        cmocka_unit_test(a_missing_row_of_the_ledger_is_counted_with_its_item),
        cmocka_unit_test(what_is_left_over_is_taken_from_the_totals),
        cmocka_unit_test(a_ledger_row_that_moved_is_left_alone),
        cmocka_unit_test(a_ledger_row_has_to_have_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
