/* The aggregate handler when a call of its table fails: any of them, in every way that a service has, before
 * it took effect or after. Whatever is reported as done is counted, what is parked is not, and what is
 * delivered again sets everything right. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'max_parked':null,"         \
    "'routes':[{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"
#define ALL(more) "'counters':[{'key':{'PK':'ALL'},'add':{'n':1,'sum':'{total}'}" more "}]"

#define ITEM(id, who, total)        PK(id) ",'who':" S(who) ",'total':" N(total)
#define INSERT(seq, id, who, total) RECORD("INSERT", seq, KEYS(PK(id)) NEW(ITEM(id, who, total)))
#define MODIFY(seq, id, who, total, was, had)                                                                \
    RECORD("MODIFY", seq, KEYS(PK(id)) NEW(ITEM(id, who, total)) OLD(ITEM(id, was, had)))
#define REMOVE(seq, id, who, total) RECORD("REMOVE", seq, KEYS(PK(id)) OLD(ITEM(id, who, total)))

/* ---- what fails ---- */

struct plan {
    size_t calls, fails_at; /* 0: none */
    enum sl_status status;
    bool after;  /* it took effect */
    bool late;   /* it takes until after the deadline, and does not fail */
    bool dies;   /* the process ends: the later ones fail, too */
    bool is_odd; /* a read was refused, see check_done */
};

static enum stage_fate planned(struct stage *s)
{
    struct plan *plan = s->context;
    if (++plan->calls > plan->fails_at && plan->dies)
        return STAGE_FAILS_BEFORE;
    if (plan->calls != plan->fails_at)
        return STAGE_WELL;
    if (plan->late) {
        s->clock.ms += s->time_ms;
        return STAGE_WELL;
    }
    return plan->after ? STAGE_FAILS_AFTER : STAGE_FAILS_BEFORE;
}

/* A stage fails with SL_RETRY; the plan may want another status. */
static void restate(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    struct plan *plan = s->context;
    for (size_t i = 0; i < n && plan->calls == plan->fails_at; i++) {
        if (results[i].code && strcmp(results[i].code, "Planned") == 0)
            results[i].status = plan->status;
        plan->is_odd = plan->is_odd || (plan->status == SL_REJECT && ops[i].verb == SL_TABLE_GET);
    }
}

static void plan_begin(struct stage *s, struct plan *plan)
{
    s->context = plan;
    s->at_table = planned;
    s->after_table = restate;
}

static void plan_end(struct stage *s)
{
    s->at_table = NULL;
    s->after_table = NULL;
}

/* ---- a sweep over the calls of one delivery ---- */

struct sweep {
    const char *route, *before, *event;
    const char *wanted; /* see summary_sql */
    size_t inserts;     /* the event is so many; 0: it is others */
    size_t most;        /* calls: more than that is a loop */
    bool is_long;       /* without SL_RETRY, which test_hot.c has */
};

/* Rows of totals, and the sums of their n, sum, people and most | rows of values, and the sum of their n |
 * delta rows, which are folded before a record is done. */
static const char summary_sql[] =
    "WITH rows AS (SELECT key LIKE '%sluice:distinct:%' AS is_value, key LIKE '%sluice:delta:%' AS is_delta, "
    "key LIKE '%sluice:%' AS is_own, json_extract(item,'$.n.N') AS n, json_extract(item,'$.sum.N') AS sum, "
    "json_extract(item,'$.people.N') AS people, json_extract(item,'$.most.N') AS most FROM totals) "
    "SELECT count(*) FILTER (WHERE NOT is_own) || ' ' || coalesce(sum(n) FILTER (WHERE NOT is_own), 0) || ' "
    "' "
    "|| coalesce(sum(sum), 0) || ' ' || coalesce(sum(people), 0) || ' ' || coalesce(max(most), 0), "
    "sum(is_value) || ' ' || coalesce(sum(n) FILTER (WHERE is_value), 0), sum(is_delta) FROM rows";

static void expect_summary(struct stage *s, const char *wanted, const char *what)
{
    char *got = stage_query(s, "db", summary_sql);
    got[strcspn(got, "\n")] = '\0';
    if (strcmp(got, wanted) != 0)
        fail_msg("%s: %s and not %s", what, got, wanted);
    free(got);
}

/* What is done is counted, and what is parked is not. (A row whose read is refused has a key that the table
 * cannot have, so it is not there: for an empty row there is nothing to delete.) */
static void check_done(struct stage *s, const struct sweep *sweep, const char *what)
{
    if (stage_checkpoint(s) < s->n)
        return;
    if (s->answer.parked == 0) {
        expect_summary(s, sweep->wanted, what);
    } else if (sweep->inserts) {
        char *n = stage_query(s, "db",
                              "SELECT coalesce(sum(json_extract(item,'$.n.N')),0) FROM totals WHERE key NOT "
                              "LIKE '%sluice:%'");
        if (strtoul(n, NULL, 10) + s->answer.parked != sweep->inserts)
            fail_msg("%s: %zu are parked, and %s are counted", what, s->answer.parked, n);
        free(n);
    }
}

/* One delivery with the plan, and another one without. Returns whether the plan came to pass. */
static bool run_planned(const struct sweep *sweep, struct plan plan)
{
    char what[160];
    struct stage *s = stage_new(sweep->route, NULL);
    snprintf(what, sizeof(what), "call %zu, status %d, %s, of %s", plan.fails_at, plan.status,
             plan.late    ? "late"
             : plan.after ? "after"
                          : "before",
             strstr(sweep->route, "=totals"));
    if (sweep->before)
        stage_deliver_all(s, sweep->before);
    plan_begin(s, &plan);
    stage_deliver(s, json_span(sweep->event));
    plan_end(s);
    if (plan.calls > sweep->most)
        fail_msg("%s: %zu calls", what, plan.calls);
    if (!plan.is_odd)
        check_done(s, sweep, what);
    if (plan.status != SL_REJECT)
        assert_int_equal(s->answer.parked, 0); /* only what is refused is */
    stage_reopen(s, NULL);
    stage_deliver_all(s, sweep->event);
    assert_int_equal(s->answer.parked, 0);
    expect_summary(s, sweep->wanted, what);
    stage_destroy(s);
    return plan.calls >= plan.fails_at;
}

/* Each call in each way: with each status before and after, or so slowly that time runs out. */
static void run_sweep(const struct sweep *sweep)
{
    static const struct plan plans[] = {{.late = true},
                                        {.status = SL_REJECT},
                                        {.status = SL_REJECT, .after = true},
                                        {.status = SL_FATAL},
                                        {.status = SL_FATAL, .after = true},
                                        {.status = SL_RETRY},
                                        {.status = SL_RETRY, .after = true}};
    for (size_t k = 0; k < (sweep->is_long ? 5 : 7); k++) {
        struct plan plan = plans[k];
        do
            plan.fails_at++;
        while (run_planned(sweep, plan));
        assert_in_range(plan.fails_at, 2, sweep->most);
    }
}

#define PEOPLE ",'distinct':{'people':'{who}'}"
#define MOST   ",'running_max':{'most':'{total}'}"
#define THREE  EVENT(INSERT("1", "a", "ann", "1"), INSERT("2", "b", "bob", "2"), INSERT("3", "c", "ann", "4"))

static void items_that_come_are_counted_whichever_call_fails(void **state)
{
    (void)state;
    static const struct {
        const char *route, *wanted;
    } cases[] = {
        {ROUTE(ALL(PEOPLE)), "1 3 7 2 0|2 3|0"},
        {ROUTE(ALL(PEOPLE) ",'empty':'delete'"), "1 3 7 2 0|2 3|0"},
        {ROUTE(ALL(PEOPLE) ",'per':'event'"), "1 3 7 2 0|2 3|0"},
        {ROUTE(ALL("") ",'ledger':{'table':'l'},'epoch':3"), "1 3 7 0 0|0 0|0"},
        {ROUTE(ALL(PEOPLE) ",'shards':1"), "1 3 7 2 0|2 3|0"},
        {ROUTE(ALL(MOST)), "1 3 7 0 4|0 0|0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_sweep(&(struct sweep){
            .route = cases[i].route, .event = THREE, .wanted = cases[i].wanted, .inserts = 3, .most = 30});
}

static void items_that_change_and_go_are_counted_whichever_call_fails(void **state)
{
    (void)state;
    static const struct {
        const char *event, *wanted;
    } cases[] = {
        {EVENT(MODIFY("4", "a", "bob", "8", "ann", "1"), REMOVE("5", "b", "bob", "2"),
               INSERT("6", "d", "dan", "16")),
         "1 3 28 3 0|3 3|0"},
        /* As the stream would not show them: the ledger is read. */
        {EVENT(RECORD("MODIFY", "4", KEYS(PK("a")) NEW(ITEM("a", "bob", "8"))),
               RECORD("REMOVE", "5", KEYS(PK("b")))),
         "1 2 12 2 0|2 2|0"},
        {EVENT(REMOVE("4", "a", "ann", "1"), REMOVE("5", "b", "bob", "2"), REMOVE("6", "c", "ann", "4")),
         "0 0 0 0 0|0 0|0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_sweep(&(struct sweep){.route = ROUTE(ALL(PEOPLE) ",'empty':'delete'"),
                                  .before = THREE,
                                  .event = cases[i].event,
                                  .wanted = cases[i].wanted,
                                  .most = 30});
}

/* So many of one group that they go through delta rows. */
#define MANY 270
/* And so few that two transactions meet on a row, one after the other. */
#define FEW 150

/* Inserts of items of ann and bob; or, with `who`, that all become hers, as a stream without old images shows
 * it. */
static char *many(size_t n, const char *who)
{
    char *event = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&event, &size);
    fputs("{'Records':[", out);
    for (size_t i = 1; i <= n; i++) {
        const char *comma = i > 1 ? "," : "", *group = i % 3 ? "ann" : "bob";
        if (who)
            fprintf(
                out,
                "%s" RECORD_OF("NEW_IMAGE", "MODIFY", "%zu", KEYS(PK("i%zu")) NEW(ITEM("i%zu", "%s", "2"))),
                comma, i + MANY, i, i, who, i + MANY);
        else
            fprintf(out, "%s" INSERT("%zu", "i%zu", "%s", "1"), comma, i, i, i, group, i);
    }
    fputs("]}", out);
    fclose(out);
    return event;
}

/* All leave their groups at once, and the process is killed before the fold. Who folds then does not see what
 * the items were; still the groups that are empty go. */
static void groups_that_another_process_empties_go(void **state)
{
    (void)state;
    char *before = many(MANY, NULL), *event = many(MANY, "dan");
    bool is_left = false;
    for (struct plan plan = {.fails_at = 1, .dies = true, .status = SL_RETRY}; !is_left; plan.fails_at++) {
        struct stage *s = stage_new(ROUTE("'empty':'delete','counters':[{'key':{'PK':'ALL'},'add':{'n':1,'"
                                          "sum':'{total}'}},{'key':{'PK':'{who}'},"
                                          "'add':{'n':1}}]"),
                                    NULL);
        stage_deliver_all(s, before);
        plan.calls = 0;
        plan_begin(s, &plan);
        stage_deliver(s, json_span(event));
        plan_end(s);
        assert_true(plan.calls >= plan.fails_at); /* or no process was killed there */
        char *deltas = stage_query(s, "db", "SELECT count(*) FROM totals WHERE key LIKE '%sluice:delta:%'");
        is_left = strcmp(deltas, "0\n") != 0;
        free(deltas);
        stage_reopen(s, NULL);
        stage_deliver_all(s, event);
        expect_summary(s, "2 540 540 0 0|0 0|0", "killed");
        stage_destroy(s);
    }
    free(before);
    free(event);
}

static void hot_rows_are_counted_whichever_call_fails(void **state)
{
    (void)state;
    char *event = many(MANY, NULL), *few = many(FEW, NULL);
    run_sweep(&(struct sweep){.route = ROUTE(ALL("")),
                              .event = few,
                              .wanted = "1 150 150 0 0|0 0|0",
                              .inserts = FEW,
                              .most = 100,
                              .is_long = true});
    free(few);
    run_sweep(&(struct sweep){.route = ROUTE(ALL(PEOPLE)),
                              .event = event,
                              .wanted = "1 270 270 2 0|2 270|0",
                              .inserts = MANY,
                              .most = 100,
                              .is_long = true});
    free(event);
}

/* ---- answers of the service, and of other processes ---- */

static bool logs(struct stage *s, const char *text)
{
    char *log = stage_log(s);
    bool found = strstr(log, text) != NULL;
    free(log);
    return found;
}

/* What the service answers, in place of doing it, to calls whose first operation has this verb and row: a
 * letter for each operation, the last one for the others, too. 'c' canceled for another one's sake, 'f' a
 * condition did not hold, 'r' refused, 't' throttled, 'd' denied, 'n' no reason. */
struct answers {
    enum sl_table_verb verb;
    const char *row, *kinds;
    struct sl_span item; /* where a condition did not hold */
    size_t times, given;
    size_t asked; /* so often, answered or not */
};

static struct sl_result answer_of(const struct answers *a, char kind)
{
    static const struct {
        char kind;
        enum sl_status status;
        const char *code;
    } answers[] = {{'c', SL_REJECT, "TransactionCanceled"},  {'f', SL_REJECT, "ConditionalCheckFailed"},
                   {'r', SL_REJECT, "ValidationException"},  {'t', SL_RETRY, "ThrottlingException"},
                   {'d', SL_FATAL, "AccessDeniedException"}, {'n', SL_RETRY, NULL}};
    size_t i = 0;
    while (answers[i].kind != kind)
        i++;
    return (struct sl_result){.status = answers[i].status,
                              .code = answers[i].code,
                              .text = answers[i].code ? "the test says so" : NULL,
                              .condition_failed = kind == 'f',
                              .item = kind == 'f' ? a->item : (struct sl_span){NULL, 0}};
}

static bool answer_so(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    struct answers *a = s->context;
    size_t last = strlen(a->kinds) - 1;
    if (ops[0].verb != a->verb || !memmem(ops[0].key.ptr, ops[0].key.len, a->row, strlen(a->row)) ||
        a->asked++ >= a->times)
        return false;
    a->given++;
    for (size_t i = 0; i < n; i++)
        results[i] = answer_of(a, a->kinds[i < last ? i : last]);
    return true;
}

static void answer(struct stage *s, struct answers *answers)
{
    s->for_table = answers ? answer_so : NULL;
    s->context = answers;
}

/* Nobody was refused, and it failed: it may succeed when it is made again. */
static void a_transaction_that_was_canceled_for_no_reason_is_made_again(void **state)
{
    (void)state;
    static const char *const kinds[] = {"c", "t", "n", "cn", "ct"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct stage *s = stage_new(ROUTE(ALL("")), NULL);
        struct answers answers = {SL_TABLE_PUT, "sluice:ledger:", kinds[i], .times = 1};
        int64_t began_ms = s->clock.ms;
        answer(s, &answers);
        stage_deliver_all(s, THREE);
        assert_int_equal(answers.given, 1);
        assert_int_equal(s->answer.parked, 0);
        assert_true(s->clock.ms > began_ms); /* after a pause */
        expect_summary(s, "1 3 7 0 0|0 0|0", kinds[i]);
        stage_destroy(s);
    }
}

/* The ledger's row that says whose items it counts. No record is to blame for it. */
static void a_source_row_that_cannot_be_written_stops_the_route(void **state)
{
    (void)state;
    static const struct {
        const char *kinds, *item, *code, *text;
        bool waits; /* it may go well later */
    } cases[] = {
        {"r", NULL, "ValidationException", "the ledger's row sluice:source:t: the test says so", false},
        {"d", NULL, "AccessDeniedException", "the ledger's row sluice:source:t: the test says so", false},
        {"t", NULL, "ThrottlingException", "the ledger's row sluice:source:t: the test says so", true},
        {"n", NULL, "Unknown", "the ledger's row sluice:source:t: the sink gave no reason", true},
        {"f", "{'PK':{'S':'x'}}", "LedgerRow",
         "the row sluice:source:t of the ledger was not written by aggregate", false},
        {"f", "{'PK':{'S':'x'},'sluice_source':{'S':'x'}}", "LedgerRow", "give the ledger its own table",
         false},
        /* Others keep changing it: it is not as it was read. */
        {"f", "{'PK':{'S':'x'},'sluice_source':{'M':{}}}", "LedgerBusy",
         "other processes kept changing the ledger's row sluice:source:t", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(ALL("")), NULL);
        struct answers answers = {SL_TABLE_PUT, "sluice:source:t", cases[i].kinds, .times = SIZE_MAX};
        answers.item = cases[i].item ? json_span(cases[i].item) : answers.item;
        answer(s, &answers);
        stage_deliver(s, json_span(THREE));
        assert_int_equal(stage_checkpoint(s), 0);
        assert_int_equal(s->answer.parked, 0);
        assert_true(cases[i].waits ? s->answer.error.status != SL_FATAL : s->answer.error.status == SL_FATAL);
        if (!logs(s, cases[i].code) || !logs(s, cases[i].text))
            fail_msg("case %zu: the log does not say \"%s\"", i, cases[i].text);
        assert_in_range(answers.given, 1, 200);
        answer(s, NULL);
        stage_deliver_all(s, THREE);
        expect_summary(s, "1 3 7 0 0|0 0|0", cases[i].code);
        stage_destroy(s);
    }
}

/* It is read and written by one call for each process, and changes only when it says something new. */
static void the_source_row_is_asked_for_once(void **state)
{
    (void)state;
    static const struct {
        const char *config; /* of a new process; NULL: it is the same process */
        size_t calls;
    } steps[] = {{ROUTE(ALL("")), 1},
                 {NULL, 0},
                 {ROUTE(ALL("")), 1},
                 {NULL, 0},
                 {ROUTE(ALL("") ",'shards':2"), 2},
                 {NULL, 0},
                 {ROUTE(ALL("") ",'shards':2"), 1},
                 {ROUTE(ALL("") ",'shards':2,'epoch':1"), 2},
                 {NULL, 0}};
    struct stage *s = stage_new(ROUTE(ALL("")), NULL);
    struct answers none = {SL_TABLE_PUT, "sluice:source:t", "x", .times = 0};
    answer(s, &none);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i].config)
            stage_reopen(s, steps[i].config);
        none.asked = 0;
        stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "1")));
        if (none.asked != steps[i].calls)
            fail_msg("step %zu: %zu calls", i, none.asked);
    }
    stage_destroy(s);
}

/* Delta rows hold what was counted, so no record is parked for them. */
static void a_fold_that_cannot_be_made_is_not_a_record_s_fault(void **state)
{
    (void)state;
    static const struct {
        const char *kinds, *text;
        bool is_fatal;
    } cases[] = {{"cccf", "other invocations keep folding the same rows; a retry may succeed", false},
                 {"cccr", "the ledger's rows sluice:delta:t: the test says so", true},
                 {"cccd", "the ledger's rows sluice:delta:t: the test says so", true},
                 {"ccct", "the ledger's rows sluice:delta:t: the test says so", false}};
    char *event = many(MANY, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(ALL(PEOPLE)), NULL);
        struct answers answers = {SL_TABLE_DELETE, "sluice:delta:t", cases[i].kinds, .times = SIZE_MAX};
        answer(s, &answers);
        stage_deliver(s, json_span(event));
        assert_int_equal(stage_checkpoint(s), 0);
        assert_int_equal(s->answer.parked, 0);
        assert_int_equal(s->answer.error.status == SL_FATAL, cases[i].is_fatal);
        if (!logs(s, cases[i].text))
            fail_msg("case %zu: the log does not say \"%s\"", i, cases[i].text);
        answer(s, NULL);
        stage_deliver_all(s, event);
        expect_summary(s, "1 270 270 2 0|2 270|0", cases[i].text);
        stage_destroy(s);
    }
    free(event);
}

/* Rows that are empty are deleted before a record is done, each of them. */
static void empty_rows_that_cannot_be_deleted_yet_are_deleted_later(void **state)
{
    (void)state;
    static const char *const kinds[] = {"ft", "tf", "tt", "nn"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct stage *s =
            stage_new(ROUTE("'empty':'delete','counters':[{'key':{'PK':'{who}'},'add':{'n':1}}]"), NULL);
        struct answers answers = {SL_TABLE_DELETE, "", kinds[i], .times = 1};
        stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "1"), INSERT("2", "b", "bob", "2")));
        answer(s, &answers);
        stage_deliver_all(s, EVENT(REMOVE("3", "a", "ann", "1"), REMOVE("4", "b", "bob", "2")));
        assert_int_equal(answers.given, 1);
        expect_summary(s, "0 0 0 0 0|0 0|0", kinds[i]);
        stage_destroy(s);
    }
}

/* A denied transaction is not made again in the same call: the next one would be denied, too. */
static void a_transaction_that_is_denied_is_made_once(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ALL("")), NULL);
    struct answers answers = {SL_TABLE_PUT, "sluice:ledger:", "d", .times = SIZE_MAX};
    answer(s, &answers);
    stage_deliver(s, json_span(THREE));
    assert_int_equal(answers.given, 1);
    assert_int_equal(s->answer.error.status, SL_FATAL);
    assert_string_equal(s->answer.error.code, "AccessDeniedException");
    assert_int_equal(s->answer.parked, 0);
    answer(s, NULL);
    stage_deliver_all(s, THREE);
    expect_summary(s, "1 3 7 0 0|0 0|0", "then");
    stage_destroy(s);
}

/* ---- without a ledger ---- */

#define ONCE ",'mode':'at-least-once'"
#define BOTH                                                                                                 \
    "'counters':[{'key':{'PK':'{who}'},'add':{'n':1,'sum':'{total}'}},{'key':{'PK':'ALL'},'add':{'m':1}}]"

/* A call that did not take effect is made again, and nothing is counted twice. */
static void without_a_ledger_a_failed_call_is_made_again(void **state)
{
    (void)state;
    for (size_t n = 1; n < 5; n++) {
        struct stage *s = stage_new(ROUTE(ALL("") ONCE), NULL);
        struct plan plan = {.fails_at = n, .status = SL_RETRY};
        plan_begin(s, &plan);
        stage_deliver_all(s, THREE);
        plan_end(s);
        expect_summary(s, "1 3 7 0 0|0 0|0", "again");
        stage_destroy(s);
    }
}

/* Rows succeed or fail on their own, and with one those records that add to it. */
static void without_a_ledger_a_row_that_cannot_be_added_to_fails_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BOTH ONCE), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "1"), INSERT("2", "b", "bob", "2")));
    stage_change(
        s, "db",
        "UPDATE totals SET item = json_set(item,'$.sum',json('{\"S\":\"x\"}')) WHERE key LIKE '%bob%'");
    stage_deliver_all(
        s, EVENT(INSERT("3", "c", "ann", "4"), INSERT("4", "d", "bob", "8"), INSERT("5", "e", "ann", "16")));
    assert_int_equal(s->answer.parked, 1);
    char *got =
        stage_query(s, "db",
                    "SELECT json_extract(item,'$.n.N'), json_extract(item,'$.sum.N') FROM totals WHERE "
                    "key LIKE '%ann%'");
    assert_string_equal(got, "3|21\n");
    free(got);
    stage_destroy(s);
}

/* Of a record's rows one is refused and one throttled: it may go well later, so it is not rejected. */
static void without_a_ledger_a_pause_comes_before_a_refusal(void **state)
{
    (void)state;
    static const char *const kinds[] = {"rt", "tr"};
    for (size_t i = 0; i < 2; i++) {
        struct stage *s = stage_new(ROUTE(BOTH ONCE), NULL);
        struct answers answers = {SL_TABLE_UPDATE, "", kinds[i], .times = 1};
        answer(s, &answers);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "1")));
        assert_int_equal(answers.given, 1);
        assert_int_equal(s->answer.parked, 0);
        expect_summary(s, "2 1 1 0 0|0 0|0", kinds[i]);
        stage_destroy(s);
    }
}

/* A sum of a slice that no number can hold: the records are taken one by one, and what still does not fit is
 * rejected alone. */
static void without_a_ledger_a_sum_that_is_too_long_is_rejected_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ALL("") ONCE), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "99999999999999999999999999999999999999"),
                               INSERT("2", "b", "bob", "0.1")));
    assert_int_equal(s->answer.parked, 1);
    char *got = stage_query(s, "db", "SELECT json_extract(item,'$.n.N') FROM totals");
    assert_string_equal(got, "1\n");
    free(got);
    stage_destroy(s);
}

/* ---- others ---- */

/* Another process changes the item's row of the ledger before each call. */
static enum stage_fate change_the_order(struct stage *s)
{
    char sql[200];
    snprintf(
        sql, sizeof(sql),
        "UPDATE totals SET item = json_set(item,'$.order.S','%040zu') WHERE key LIKE '%%sluice:ledger:t:%%'",
        ++*(size_t *)s->context);
    stage_change(s, "db", sql);
    return STAGE_WELL;
}

static void an_item_that_others_keep_changing_waits(void **state)
{
    (void)state;
    size_t calls = 0;
    struct stage *s = stage_new(ROUTE(ALL("")), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "1")));
    s->at_table = change_the_order;
    s->context = &calls;
    stage_deliver(s, json_span(EVENT(MODIFY("9999", "a", "ann", "5", "ann", "3"))));
    s->at_table = NULL;
    assert_int_equal(stage_checkpoint(s), 0);
    assert_int_equal(s->answer.parked, 0);
    assert_true(logs(s, "LedgerBusy"));
    assert_true(logs(s, "another invocation keeps changing the same rows; a retry may succeed"));
    expect_summary(s, "1 1 1 0 0|0 0|0", "busy");
    stage_deliver_all(s, EVENT(MODIFY("9999", "a", "ann", "5", "ann", "3")));
    expect_summary(s, "1 1 5 0 0|0 0|0", "then");
    stage_destroy(s);
}

/* The slice's first item is done at once, and the second one's row is not what its old image shows. */
static void a_later_item_is_looked_at_again_when_the_first_is_done(void **state)
{
    (void)state;
    static const char *const firsts[] = {
        MODIFY("3", "x", "ann", "1", "ann", "1"),                       /* counted anew */
        RECORD("MODIFY", "3", KEYS(PK("x")) NEW(PK("x")) OLD(PK("x"))), /* it contributes nothing */
        INSERT("1", "a", "ann", "1"),                                   /* delivered again */
    };
    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        struct stage *s = stage_new(ROUTE("'missing':'skip'," ALL("")), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "ann", "1"), INSERT("2", "b", "bob", "2")));
        stage_deliver_all(
            s, json_printf("{'Records':[%s,%s]}", firsts[i], MODIFY("4", "b", "bob", "8", "bob", "7")));
        assert_int_equal(s->answer.parked, 0);
        expect_summary(s, i ? "1 2 9 0 0|0 0|0" : "1 3 10 0 0|0 0|0", "both");
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_that_come_are_counted_whichever_call_fails),
        cmocka_unit_test(items_that_change_and_go_are_counted_whichever_call_fails),
        cmocka_unit_test(hot_rows_are_counted_whichever_call_fails),
        cmocka_unit_test(groups_that_another_process_empties_go),
        cmocka_unit_test(a_transaction_that_was_canceled_for_no_reason_is_made_again),
        cmocka_unit_test(a_source_row_that_cannot_be_written_stops_the_route),
        cmocka_unit_test(a_fold_that_cannot_be_made_is_not_a_record_s_fault),
        cmocka_unit_test(an_item_that_others_keep_changing_waits),
        cmocka_unit_test(a_later_item_is_looked_at_again_when_the_first_is_done),
        cmocka_unit_test(empty_rows_that_cannot_be_deleted_yet_are_deleted_later),
        cmocka_unit_test(a_transaction_that_is_denied_is_made_once),
        cmocka_unit_test(without_a_ledger_a_failed_call_is_made_again),
        cmocka_unit_test(without_a_ledger_a_row_that_cannot_be_added_to_fails_alone),
        cmocka_unit_test(without_a_ledger_a_sum_that_is_too_long_is_rejected_alone),
        cmocka_unit_test(without_a_ledger_a_pause_comes_before_a_refusal),
        cmocka_unit_test(the_source_row_is_asked_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
