/* Hot rows of the aggregate handler: when delta rows are written, what becomes of them when the process is
 * killed at any call, and what cannot be folded. And counts of different values while others write. */
#include "base/clock.h"
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/"                                                                           \
    "failed.jsonl','report_batch_item_failures':true,'max_parked':null,'routes':["                           \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"
#define ONE_ROW "'counters':[{'key':{'PK':'ALL'},'add':{'n':1,'sum':'{total}'}}]"

/* Transactions have a hundred rows: 99 of the ledger and the total, or a delta row in its place. */
#define PER_TX 99

/* ---- slices ---- */

/* Inserts of items `from` to `to` - 1, each with the total 1; `more` is of every item. */
static char *inserts(size_t from, size_t to, const char *more)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fputs("{'Records':[", out);
    for (size_t i = from; i < to; i++)
        fprintf(out,
                "%s{'eventID':'e%zu','eventName':'INSERT','eventVersion':'1.1','eventSource':'aws:dynamodb',"
                "'awsRegion':'eu-west-1','dynamodb':{'ApproximateCreationDateTime':1767265199,"
                "'Keys':{'PK':{'S':'i%zu'}},'NewImage':{'PK':{'S':'i%zu'},'total':{'N':'1'}%s},"
                "'SequenceNumber':'%zu','SizeBytes':10,'StreamViewType':'NEW_AND_OLD_IMAGES'}}",
                i == from ? "" : ",", i, i, i, more, i + 1000);
    fputs("]}", out);
    fclose(out);
    return text;
}

static void insert(struct stage *s, size_t from, size_t to, const char *more)
{
    char *event = inserts(from, to, more);
    stage_deliver_all(s, event);
    free(event);
}

static void expect_row(struct stage *s, const char *key, const char *wanted)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SELECT item FROM totals WHERE key LIKE '%%%s%%' AND key NOT LIKE '%%sluice:%%'", key);
    char *got = stage_query(s, "db", sql);
    assert_string_equal(got, json(wanted));
    free(got);
}

static void expect_all(struct stage *s, size_t n)
{
    expect_row(s, "ALL", json_printf("{'PK':{'S':'ALL'},'n':{'N':'%zu'},'sum':{'N':'%zu'}}\n", n, n));
}

/* Counts the delta rows that are put from now on. */
static void watch(struct stage *s)
{
    insert(s, 900000, 900001, ""); /* the table is there from the first row on */
    stage_change(
        s, "db",
        "CREATE TABLE puts (key TEXT); CREATE TRIGGER watch AFTER INSERT ON totals WHEN NEW.key LIKE "
        "'%sluice:delta:t:%' BEGIN INSERT INTO puts VALUES (NEW.key); END");
}

static size_t number(struct stage *s, const char *sql)
{
    char *text = stage_query(s, "db", sql);
    size_t n = strtoul(text, NULL, 10);
    free(text);
    return n;
}

static size_t deltas_put(struct stage *s)
{
    return number(s, "SELECT count(*) FROM puts");
}

static size_t deltas_left(struct stage *s)
{
    return number(s, "SELECT count(*) FROM totals WHERE key LIKE '%sluice:delta:t:%'");
}

/* ---- when ---- */

static void the_third_transaction_makes_a_row_hot(void **state)
{
    (void)state;
    static const struct {
        size_t items, deltas;
    } cases[] = {{1, 0},          {PER_TX, 0},        {PER_TX + 1, 0}, {2 * PER_TX, 0}, {2 * PER_TX + 1, 3},
                 {3 * PER_TX, 3}, {3 * PER_TX + 1, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
        watch(s);
        insert(s, 0, cases[i].items, "");
        assert_int_equal(deltas_put(s), cases[i].deltas);
        assert_int_equal(deltas_left(s), 0);
        expect_all(s, cases[i].items + 1);
        stage_destroy(s);
    }
}

/* Each group has few items, and all together have one row: their transactions meet on that one alone. */
static void only_the_hot_row_goes_through_delta_rows(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        ROUTE("'counters':[{'key':{'PK':'ITEM#{PK}'},'add':{'one':1}},{'key':{'PK':'ALL'},'add':{'n':1,"
              "'sum':'{total}'}}]"),
        NULL);
    watch(s);
    insert(s, 0, 200, ""); /* 2 rows an item: 49 to a transaction and its delta row */
    assert_int_equal(deltas_put(s), 5);
    expect_all(s, 201);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE key LIKE '{\"PK\":{\"S\":\"ITEM#%'"), 201);
    stage_destroy(s);
}

/* Sub-counters are taken in turn: that many transactions do not meet. */
static void sub_counters_are_taken_in_turn(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ONE_ROW ",'shards':4"), NULL);
    watch(s);
    insert(s, 0, 4 * PER_TX, "");
    assert_int_equal(deltas_put(s), 0);
    assert_int_equal(number(s, "SELECT count(*) FROM totals WHERE key LIKE '%ALL#%'"), 4);
    insert(s, 1000, 1000 + 9 * PER_TX, "");
    assert_int_equal(deltas_put(s), 9);
    assert_int_equal(deltas_left(s), 0);
    assert_int_equal(number(s, "SELECT sum(json_extract(item,'$.n.N')) FROM totals WHERE key LIKE '%ALL#%'"),
                     13 * PER_TX + 1);
    stage_destroy(s);
}

/* A transaction adds to as many hot rows as a fold can write beside the delta row that it removes. */
static void a_delta_row_has_as_many_rows_as_a_fold_takes(void **state)
{
    (void)state;
    for (size_t groups = 97; groups <= 98; groups++) { /* and the one of all */
        struct stage *s = stage_new(
            ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'n':1,'sum':'{total}'}},{'key':{'PK':'G#{g}'},"
                  "'add':{'n':1}}],'missing':'skip'"),
            NULL);
        char *event = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&event, &size);
        watch(s);
        fputs("{'Records':[", out);
        for (size_t i = 0; i < 3 * PER_TX; i++)
            fprintf(out,
                    "%s{'eventID':'e%zu','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'i%zu'}},"
                    "'NewImage':{'PK':{'S':'i%zu'},'total':{'N':'1'},'g':{'S':'%zu'}},'SequenceNumber':"
                    "'%zu','StreamViewType':'NEW_AND_OLD_IMAGES'}}",
                    i ? "," : "", i, i, i, i % groups, i + 1000);
        fputs("]}", out);
        fclose(out);
        s->groups = s->largest_group = 0;
        stage_deliver_all(s, event);
        /* (Of 98 groups each 98th item begins a transaction.) */
        assert_int_equal(deltas_put(s), groups == 97 ? 3 : 4);
        /* Two delta rows and 98 rows are a full fold. */
        assert_true(groups != 97 || (s->largest_group == 100 && s->groups == 3 + 2));
        assert_int_equal(deltas_left(s), 0);
        expect_all(s, 3 * PER_TX + 1);
        assert_int_equal(
            number(s, "SELECT sum(json_extract(item,'$.n.N')) FROM totals WHERE key LIKE '%G#%'"),
            3 * PER_TX);
        free(event);
        stage_destroy(s);
    }
}

/* More delta rows than there are slots: they are folded twice, and none is put where one is. */
static void slots_that_run_out_are_folded_and_used_again(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
    watch(s);
    insert(s, 0, 70 * PER_TX, "");
    assert_true(deltas_put(s) == 70 && s->groups == 1 + 70 + 2); /* (and the one of watch) */
    assert_int_equal(deltas_left(s), 0);
    expect_all(s, 70 * PER_TX + 1);
    stage_destroy(s);
}

/* ---- waves ---- */

static enum stage_fate count_calls(struct stage *s)
{
    ++*(size_t *)s->context;
    return STAGE_WELL;
}

/* Two transactions on one row follow each other, and others are in flight together. */
static void transactions_that_share_a_row_follow_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *route;
        size_t items, waves;
    } cases[] = {
        {ROUTE(ONE_ROW), PER_TX, 1},
        {ROUTE(ONE_ROW), 2 * PER_TX, 2},
        {ROUTE(ONE_ROW ",'shards':2"), 2 * PER_TX, 1},
        {ROUTE("'counters':[{'key':{'PK':'I#{PK}'},'add':{'n':1}}]"), 200, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].route, NULL);
        size_t calls[3] = {0};
        s->at_table = count_calls;
        s->context = &calls[2];
        insert(s, 900000, 900001, ""); /* (the ledger is asked for its source once) */
        s->context = &calls[0];
        insert(s, 910000, 910001, "");
        s->context = &calls[1];
        insert(s, 1, 1 + cases[i].items, "");
        if (calls[1] - calls[0] != cases[i].waves - 1)
            fail_msg("case %zu: %zu calls, and %zu for one item", i, calls[1], calls[0]);
        s->at_table = NULL;
        stage_destroy(s);
    }
}

/* ---- kills ---- */

/* The process dies in its call number `dies_at`, before it takes effect or after. */
struct life {
    size_t calls, dies_at;
    bool after;
};

static enum stage_fate live(struct stage *s)
{
    struct life *life = s->context;
    size_t call = ++life->calls;
    if (call < life->dies_at)
        return STAGE_WELL;
    return call == life->dies_at && life->after ? STAGE_FAILS_AFTER : STAGE_FAILS_BEFORE;
}

static struct life live_until(struct stage *s, const char *event, size_t dies_at, bool after)
{
    struct life life = {.dies_at = dies_at, .after = after};
    s->at_table = live;
    s->context = &life;
    stage_deliver(s, sl_span_str(json(event)));
    s->at_table = NULL;
    return life;
}

static void a_process_may_be_killed_at_every_call(void **state)
{
    (void)state;
    char *event = inserts(0, 3 * PER_TX, "");
    bool any_left = false;
    size_t dies_at = 1;
    for (bool ended = false; !ended; dies_at++) {
        for (int after = 0; after < 2; after++) {
            struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
            watch(s);
            struct life life = live_until(s, event, dies_at, after);
            ended = life.calls < dies_at;
            any_left = any_left || deltas_left(s) > 0;
            stage_reopen(s, NULL);
            stage_deliver_all(s, event);
            assert_int_equal(deltas_left(s), 0);
            expect_all(s, 3 * PER_TX + 1);
            stage_deliver_all(s, event);
            expect_all(s, 3 * PER_TX + 1);
            stage_destroy(s);
        }
    }
    assert_true(any_left);
    assert_in_range(dies_at, 4, 20);
    free(event);
}

/* Only one of the killed process's records is redelivered, with a later change of its item. */
static void a_later_change_of_an_item_folds_what_is_left(void **state)
{
    (void)state;
    char *event = inserts(0, 3 * PER_TX, "");
    struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
    watch(s);
    for (size_t dies_at = 2; deltas_left(s) == 0 && dies_at < 10; dies_at++)
        live_until(s, event, dies_at, true);
    assert_int_equal(deltas_left(s), 3);
    stage_reopen(s, NULL);
    stage_deliver_all(
        s, EVENT(RECORD("INSERT", "1005", KEYS(PK("i5")) NEW(PK("i5") ",'total':" N("1"))),
                 RECORD("MODIFY", "5000",
                        KEYS(PK("i5")) NEW(PK("i5") ",'total':" N("2")) OLD(PK("i5") ",'total':" N("1")))));
    assert_int_equal(deltas_left(s), 0);
    expect_row(s, "ALL", "{'PK':{'S':'ALL'},'n':{'N':'298'},'sum':{'N':'299'}}\n");
    stage_destroy(s);
    free(event);
}

/* A killed process left a row in every slot, and its records are never redelivered. */
static void rows_of_others_in_every_slot_are_folded(void **state)
{
    (void)state;
    char *event = inserts(0, 64 * PER_TX, "");
    struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
    watch(s);
    for (size_t dies_at = 2; deltas_left(s) == 0 && dies_at < 10; dies_at++)
        live_until(s, event, dies_at, true);
    assert_int_equal(deltas_left(s), 64);
    stage_reopen(s, NULL);
    insert(s, 100000, 100000 + 5 * PER_TX, "");
    expect_all(s, number(s, "SELECT json_extract(item,'$.n.N') FROM totals WHERE key LIKE '%ALL%'"));
    stage_deliver_all(s, event);
    assert_int_equal(deltas_left(s), 0);
    expect_all(s, 69 * PER_TX + 1);
    stage_destroy(s);
    free(event);
}

/* ---- answers of two kinds ---- */

/* What the answers of one transaction become: 'c' it was canceled for another one's sake, 'f' the condition
 * failed, 'r' it was rejected, 't' it was throttled. */
struct answers {
    enum sl_table_verb first; /* of the transaction's operations */
    const char *kinds;
    size_t times;
};

static void answer_so(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    struct answers *a = s->context;
    if (a->times == 0 || n != strlen(a->kinds) || !ops[0].group || ops[0].verb != a->first)
        return;
    a->times--;
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){.status = a->kinds[i] == 't' ? SL_RETRY : SL_REJECT,
                                        .code = a->kinds[i] == 'c'   ? "TransactionCanceled"
                                                : a->kinds[i] == 'r' ? "ValidationException"
                                                                     : "Other",
                                        .text = "the test says so",
                                        .condition_failed = a->kinds[i] == 'f'};
}

/* A fold that is refused is made again, whatever the service says of its other rows, and whichever row it
 * is; what is rejected alone stops the route. */
static void a_fold_that_was_refused_is_made_again(void **state)
{
    (void)state;
    static const struct {
        const char *kinds;
        enum sl_status status;
    } cases[] = {{"fccr", SL_OK}, {"cfcr", SL_OK},    {"ccfr", SL_OK},    {"fffc", SL_OK},
                 {"cfcc", SL_OK}, {"cccr", SL_FATAL}, {"ccct", SL_RETRY}, {"fcct", SL_RETRY}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
        struct answers answers = {SL_TABLE_DELETE, cases[i].kinds, 1};
        char *event = inserts(0, 3 * PER_TX, "");
        watch(s);
        s->after_table = answer_so;
        s->context = &answers;
        int64_t began_ms = s->clock.ms;
        stage_deliver(s, sl_span_str(json(event)));
        assert_int_equal(answers.times, 0);
        assert_int_equal(stage_checkpoint(s), cases[i].status == SL_FATAL ? 0 : 3 * PER_TX);
        assert_true((s->answer.error.status == SL_FATAL) == (cases[i].status == SL_FATAL));
        assert_true((s->clock.ms > began_ms) == (cases[i].status == SL_RETRY)); /* after a pause */
        s->after_table = NULL;
        stage_deliver_all(s, event);
        assert_int_equal(deltas_left(s), 0);
        expect_all(s, 3 * PER_TX + 1);
        free(event);
        stage_destroy(s);
    }
}

/* A transaction that is throttled is made again after a pause, and one that is refused at once. */
static void a_transaction_that_was_throttled_is_made_after_a_pause(void **state)
{
    (void)state;
    static const struct {
        const char *kinds;
        bool pauses;
    } cases[] = {{"fc", false}, {"fr", false}, {"cf", false}, {"ft", true}, {"ct", true}, {"tc", true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
        struct answers answers = {SL_TABLE_PUT, cases[i].kinds, 1};
        char *event = inserts(0, 1, "");
        watch(s);
        s->after_table = answer_so;
        s->context = &answers;
        int64_t began_ms = s->clock.ms;
        stage_deliver_all(s, event);
        assert_int_equal(answers.times, 0);
        assert_true((s->clock.ms > began_ms) == cases[i].pauses);
        s->after_table = NULL;
        stage_deliver_all(s, event);
        expect_all(s, 2);
        free(event);
        stage_destroy(s);
    }
}

/* ---- what is not folded ---- */

#define POISON(id, seq) RECORD("INSERT", seq, KEYS(PK(id)) NEW(PK(id) ",'total':" N("1E100")))

/* A number that no sum can hold goes to the row itself, so that its record alone is rejected. */
static void numbers_that_may_not_add_up_are_written_directly(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
    watch(s);
    char *event = inserts(0, 3 * PER_TX, ""), *whole = NULL;
    event[strlen(event) - 2] = '\0';
    assert_true(asprintf(&whole, "%s,%s]}", event, POISON("p", "9999")) > 0);
    stage_deliver_all(s, whole);
    assert_int_equal(deltas_put(s), 0);
    expect_all(s, 3 * PER_TX + 1);
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "\"S\":\"p\""));
    free(failed);
    free(whole);
    free(event);
    stage_destroy(s);
}

static void a_row_that_holds_something_else_is_written_directly(void **state)
{
    (void)state;
    static const char *const held[] = {"{\"N\":\"1E100\"}", "{\"S\":\"x\"}", "{\"N\":\"1E-20\"}"};
    for (size_t i = 0; i < 3; i++) {
        char sql[256];
        struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
        watch(s);
        snprintf(sql, sizeof(sql),
                 "UPDATE totals SET item = json_set(item, '$.sum', json('%s')) WHERE key LIKE '%%ALL%%'",
                 held[i]);
        stage_change(s, "db", sql);
        insert(s, 0, 3 * PER_TX, ""); /* done: parked, or counted */
        assert_int_equal(deltas_put(s), 0);
        stage_destroy(s);
    }
}

static void a_delta_row_that_nobody_understands_stops_the_route(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ONE_ROW), NULL);
    watch(s);
    char *event = inserts(0, 64 * PER_TX, "");
    for (size_t dies_at = 2; deltas_left(s) == 0 && dies_at < 10; dies_at++)
        live_until(s, event, dies_at, true);
    stage_change(
        s, "db",
        "UPDATE totals SET item = json_remove(item, '$.sluice_sums') WHERE key LIKE '%sluice:delta:%'");
    stage_deliver(s, sl_span_str(json(event)));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_string_equal(s->answer.error.code, "LedgerRow");
    assert_non_null(strstr(s->answer.error.text, "sluice:delta:t:"));
    free(event);
    stage_destroy(s);
}

/* ---- values, while others write ---- */

#define VALUES       "'counters':[{'key':{'PK':'ALL'},'add':{'all':1},'distinct':{'people':'{who}'}}]"
#define WHO(id, who) PK(id) ",'who':" S(who)

/* What another process does between the read of a value's row and the write. */
struct rival {
    const char *sql;
    size_t calls, at;
};

static enum stage_fate act(struct stage *s)
{
    struct rival *rival = s->context;
    if (++rival->calls == rival->at)
        stage_change(s, "db", rival->sql);
    return STAGE_WELL;
}

#define VALUE_ROW "key LIKE '%sluice:distinct:%ann%'"
#define SET_N(n)  "UPDATE totals SET item = json_set(item, '$.n.N', '" n "') WHERE " VALUE_ROW ";"
#define PEOPLE(n)                                                                                            \
    "UPDATE totals SET item = json_set(item, '$.people.N', '" n "') WHERE key = '{\"PK\":{\"S\":\"ALL\"}}';"

static void expect_values(struct stage *s, const char *people, const char *n)
{
    char *got = stage_query(s, "db",
                            "SELECT json_extract(item,'$.people.N') FROM totals WHERE key LIKE '%ALL%' "
                            "AND key NOT LIKE '%sluice:%'");
    assert_string_equal(got, people);
    free(got);
    got = stage_query(s, "db", "SELECT json_extract(item,'$.n.N') FROM totals WHERE " VALUE_ROW);
    assert_string_equal(got, n);
    free(got);
}

static void a_crossing_that_another_process_makes_first_is_computed_again(void **state)
{
    (void)state;
    static const struct {
        const char *event, *sql, *people, *n;
    } cases[] = {
        /* ann comes, and another ann comes first */
        {RECORD("INSERT", "3", KEYS(PK("c")) NEW(WHO("c", "ann"))), SET_N("2"), "2\n", "3\n"},
        /* the last ann goes, and another ann comes first */
        {RECORD("REMOVE", "3", KEYS(PK("a")) OLD(WHO("a", "ann"))), SET_N("2"), "2\n", "1\n"},
        /* one of two goes, and the other went first */
        {RECORD("INSERT", "3", KEYS(PK("c")) NEW(WHO("c", "ann"))),
         "DELETE FROM totals WHERE " VALUE_ROW ";" PEOPLE("1"), "2\n", "1\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t at = 1; at < 6; at++) {
            struct rival rival = {.sql = cases[i].sql, .at = at};
            struct stage *s = stage_new(ROUTE(VALUES), NULL);
            stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(WHO("a", "ann"))),
                                       RECORD("INSERT", "2", KEYS(PK("b")) NEW(WHO("b", "bob")))));
            expect_values(s, "2\n", "1\n");
            s->at_table = act;
            s->context = &rival;
            stage_deliver_all(s, json_printf("{'Records':[%s]}", cases[i].event));
            s->at_table = NULL;
            if (rival.calls >= at && at <= 2)
                expect_values(s, cases[i].people, cases[i].n);
            stage_destroy(s);
        }
}

/* Both ann and what she is replaced by cross zero, there and back, in slices of one. */
static void values_come_and_go(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(VALUES ",'empty':'keep'"), NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(WHO("a", "ann")))));
    stage_deliver_all(s,
                      EVENT(RECORD("MODIFY", "2", KEYS(PK("a")) NEW(WHO("a", "bob")) OLD(WHO("a", "ann")))));
    expect_values(s, "1\n", "");
    stage_deliver_all(s,
                      EVENT(RECORD("MODIFY", "3", KEYS(PK("a")) NEW(WHO("a", "ann")) OLD(WHO("a", "bob")))));
    expect_values(s, "1\n", "1\n");
    stage_deliver_all(s, EVENT(RECORD("REMOVE", "4", KEYS(PK("a")) OLD(WHO("a", "ann")))));
    expect_values(s, "0\n", "");
    stage_destroy(s);
}

/* Of one slice, a transaction takes a value's last item away and the next one brings it again: neither is
 * refused, so nothing is asked twice. */
static void a_value_that_goes_and_comes_in_one_slice_is_known(void **state)
{
    (void)state;
    for (int was_there = 0; was_there < 2; was_there++) {
        struct stage *s = stage_new(ROUTE(VALUES ",'empty':'keep'"), NULL);
        char *bobs = inserts(0, 110, ",'who':{'S':'bob'}"), *event = NULL;
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(WHO("a", "ann"))),
                                   RECORD("INSERT", "2", KEYS(PK("b")) NEW(WHO("b", "bob")))));
        if (!was_there)
            stage_deliver_all(s, EVENT(RECORD("REMOVE", "3", KEYS(PK("a")) OLD(WHO("a", "ann")))));
        bobs[strlen(bobs) - 2] = '\0';
        assert_true(asprintf(&event, "{'Records':[%s,%s,%s]}",
                             was_there ? RECORD("REMOVE", "4", KEYS(PK("a")) OLD(WHO("a", "ann")))
                                       : RECORD("INSERT", "4", KEYS(PK("d")) NEW(WHO("d", "ann"))),
                             bobs + strlen("{'Records':["),
                             RECORD("INSERT", "5000", KEYS(PK("c")) NEW(WHO("c", "ann")))) > 0);
        s->groups = 0;
        stage_deliver_all(s, event);
        assert_int_equal(s->groups, 2);
        expect_values(s, "2\n", was_there ? "1\n" : "2\n");
        free(bobs);
        free(event);
        stage_destroy(s);
    }
}

/* A row that says less than the ledger takes away is told of, and not passed over. */
static void a_damaged_row_of_a_value_stops_the_route(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(VALUES), NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(WHO("a", "ann")))));
    stage_change(s, "db", "DELETE FROM totals WHERE " VALUE_ROW);
    stage_deliver(s, json_span(EVENT(RECORD("REMOVE", "2", KEYS(PK("a")) OLD(WHO("a", "ann"))))));
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_string_equal(s->answer.error.code, "ValueRow");
    stage_destroy(s);
}

/* A long value has a digest in its row's key and in the row; two of them are two. */
static void long_values_are_told_apart(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(VALUES), NULL);
    static const size_t lengths[] = {1, 480, 512, 513, 700, 5000};
    size_t n = 0;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (char last = 'x'; last <= 'y'; last++) {
            char *who = malloc(lengths[i] + 1), *event = NULL;
            memset(who, 'w', lengths[i]);
            who[lengths[i] - 1] = last;
            who[lengths[i]] = '\0';
            assert_true(
                asprintf(&event,
                         "{'Records':[{'eventName':'INSERT','eventID':'e%zu','dynamodb':{'Keys':{'PK':"
                         "{'S':'i%zu'}},'NewImage':{'PK':{'S':'i%zu'},'who':{'S':'%s'}},"
                         "'SequenceNumber':'%zu','StreamViewType':'NEW_AND_OLD_IMAGES'}}]}",
                         n, n, n, who, n + 1) > 0);
            stage_deliver_all(s, event);
            n++;
            free(event);
            free(who);
        }
    assert_int_equal(number(s,
                            "SELECT json_extract(item,'$.people.N') FROM totals WHERE key LIKE '%ALL%' AND "
                            "key NOT LIKE '%sluice:%'"),
                     n);
    assert_int_equal(number(s, "SELECT max(length(json_extract(key,'$.PK.S'))) < 1025 FROM totals"), 1);
    stage_destroy(s);
}

/* ---- a counter that comes later ---- */

#define LATER                                                                                                \
    "'counters':[{'key':{'PK':'ALL'},'add':{'n':1}},{'key':{'PK':'NEW'},'add':{'m':1},'distinct':{'people':" \
    "'{who}'}}]"
/* An item that exists, as a backfill hands it on. */
#define ITEM_OF(id)                                                                                          \
    "{'eventID':'b" id "','eventName':'INSERT','dynamodb':{" KEYS(PK(id)) NEW(WHO(id, "ann")) "}}"

static void export_items(struct stage *s)
{
    stage_deliver_all(s, EVENT(ITEM_OF("a"), ITEM_OF("b")));
}

static void expect_new(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db", "SELECT item FROM totals WHERE key = '{\"PK\":{\"S\":\"NEW\"}}'");
    assert_string_equal(got, json(wanted));
    free(got);
}

/* It counts what changes; after a backfill in a new epoch, what is there. */
static void a_counter_that_comes_later_counts_all_after_an_epoch_and_a_backfill(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]"), NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(WHO("a", "ann"))),
                               RECORD("INSERT", "2", KEYS(PK("b")) NEW(WHO("b", "ann")))));
    stage_reopen(s, ROUTE(LATER));
    stage_deliver_all(s,
                      EVENT(RECORD("MODIFY", "3", KEYS(PK("a")) NEW(WHO("a", "ann")) OLD(WHO("a", "ann")))));
    expect_new(s, "{'PK':{'S':'NEW'},'m':{'N':'1'},'people':{'N':'1'}}\n");
    export_items(s);
    expect_new(s, "{'PK':{'S':'NEW'},'m':{'N':'1'},'people':{'N':'1'}}\n");
    stage_reopen(s, ROUTE(LATER ",'epoch':1"));
    export_items(s);
    export_items(s);
    expect_new(s, "{'PK':{'S':'NEW'},'m':{'N':'2'},'people':{'N':'1'}}\n");
    expect_row(s, "ALL", "{'PK':{'S':'ALL'},'n':{'N':'2'}}\n");
    stage_deliver_all(s, EVENT(RECORD("REMOVE", "4", KEYS(PK("b")) OLD(WHO("b", "ann")))));
    expect_new(s, "{'PK':{'S':'NEW'},'m':{'N':'1'},'people':{'N':'1'}}\n");
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_third_transaction_makes_a_row_hot),
        cmocka_unit_test(only_the_hot_row_goes_through_delta_rows),
        cmocka_unit_test(sub_counters_are_taken_in_turn),
        cmocka_unit_test(a_delta_row_has_as_many_rows_as_a_fold_takes),
        cmocka_unit_test(slots_that_run_out_are_folded_and_used_again),
        cmocka_unit_test(transactions_that_share_a_row_follow_each_other),
        cmocka_unit_test(a_process_may_be_killed_at_every_call),
        cmocka_unit_test(a_later_change_of_an_item_folds_what_is_left),
        cmocka_unit_test(rows_of_others_in_every_slot_are_folded),
        cmocka_unit_test(a_fold_that_was_refused_is_made_again),
        cmocka_unit_test(a_transaction_that_was_throttled_is_made_after_a_pause),
        cmocka_unit_test(numbers_that_may_not_add_up_are_written_directly),
        cmocka_unit_test(a_row_that_holds_something_else_is_written_directly),
        cmocka_unit_test(a_delta_row_that_nobody_understands_stops_the_route),
        cmocka_unit_test(a_crossing_that_another_process_makes_first_is_computed_again),
        cmocka_unit_test(values_come_and_go),
        cmocka_unit_test(a_value_that_goes_and_comes_in_one_slice_is_known),
        cmocka_unit_test(a_damaged_row_of_a_value_stops_the_route),
        cmocka_unit_test(long_values_are_told_apart),
        cmocka_unit_test(a_counter_that_comes_later_counts_all_after_an_epoch_and_a_backfill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
