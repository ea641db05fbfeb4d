/* A view without lists, over real dispatch and SQLite: what its rows and tombstones hold, what is refused and
 * parked, whose rows are left alone, what another process may do meanwhile, and how a row is set right. */
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'v','handler':'view','to':'sqlite:${DIR}/db?table=view'" members "}]}"
#define BY_MAIL ROUTE(",'list':false,'key':{'PK':'{mail}','SK':'{PK}'},'item':{'n':'{n}'},'missing':'skip'")
#define ROWS    "SELECT item FROM view ORDER BY key"

#define USER(mail, n)     PK("a") ",'mail':" S(mail) ",'n':{'N':'" n "'}"
#define AT(seq)           "00000000000000000000000000000000000000" seq
#define ORDER(seq)        "'sluice_order':" S(AT(seq))
#define OF                "'sluice_of':{'M':{'view':{'S':'v'},'key':{'M':{'PK':{'S':'a'}}}}}"
#define ROW(mail, n, seq) "{'PK':" S(mail) ",'SK':{'S':'a'}," OF ",'n':{'N':'" n "'}," ORDER(seq) "}\n"
/* (STAGE_TIME_S and 15 days.) */
#define TOMBSTONE(mail, seq)                                                                                 \
    "{'PK':" S(mail) ",'SK':{'S':'a'}," OF                                                                   \
                     ",'sluice_deleted':{'BOOL':true},'sluice_expires':{'N':'1701296000'}," ORDER(seq) "}\n"

#define INSERTED(seq, new)     RECORD("INSERT", seq, KEYS(PK("a")) NEW(new))
#define CHANGED(seq, old, new) RECORD("MODIFY", seq, KEYS(PK("a")) OLD(old) NEW(new))
#define REMOVED(seq, old)      RECORD("REMOVE", seq, KEYS(PK("a")) OLD(old))

static void expect_rows(struct stage *s, const char *wanted, const char *when)
{
    char *got = stage_query(s, "db", ROWS);
    if (strcmp(got, json(wanted)) != 0)
        fail_msg("%s: %s, not %s", when, got, json(wanted));
    free(got);
}

/* Each event, and the rows after it. */
static void a_row_says_the_order_of_its_change(void **state)
{
    (void)state;
    static const char *const steps[][2] = {
        {EVENT(INSERTED("11", USER("x", "1"))), ROW("x", "1", "11")},
        {EVENT(CHANGED("12", USER("x", "1"), USER("x", "2"))), ROW("x", "2", "12")},
        /* Not of the view's. */
        {EVENT(CHANGED("13", USER("x", "2"), USER("x", "2") ",'o':{'N':'1'}")), ROW("x", "2", "12")},
        {EVENT(CHANGED("14", USER("x", "2"), USER("y", "2"))), TOMBSTONE("x", "14") ROW("y", "2", "14")},
        /* It is delivered again, and so are older ones. */
        {EVENT(CHANGED("14", USER("x", "2"), USER("y", "2"))), TOMBSTONE("x", "14") ROW("y", "2", "14")},
        {EVENT(INSERTED("11", USER("x", "1")), CHANGED("12", USER("x", "1"), USER("x", "2"))),
         TOMBSTONE("x", "14") ROW("y", "2", "14")},
        /* There and back again in one slice: the newest of each row counts, never their sum. */
        {EVENT(CHANGED("15", USER("y", "2"), USER("x", "3")), CHANGED("16", USER("x", "3"), USER("y", "2"))),
         TOMBSTONE("x", "16") ROW("y", "2", "16")},
        {EVENT(CHANGED("15", USER("y", "2"), USER("x", "3"))), TOMBSTONE("x", "16") ROW("y", "2", "16")},
        /* An image that makes no row. */
        {EVENT(CHANGED("17", USER("y", "2"), PK("a"))), TOMBSTONE("x", "16") TOMBSTONE("y", "17")},
        {EVENT(CHANGED("18", PK("a"), USER("y", "2"))), TOMBSTONE("x", "16") ROW("y", "2", "18")},
        {EVENT(REMOVED("19", USER("y", "2"))), TOMBSTONE("x", "16") TOMBSTONE("y", "19")},
        /* A removal of what never came: it may yet. */
        {EVENT(REMOVED("20", USER("z", "2"))),
         TOMBSTONE("x", "16") TOMBSTONE("y", "19") TOMBSTONE("z", "20")},
        {EVENT(INSERTED("18", USER("z", "2"))),
         TOMBSTONE("x", "16") TOMBSTONE("y", "19") TOMBSTONE("z", "20")},
        /* Of a slice in another order the newest counts, and not the last. */
        {EVENT(INSERTED("22", USER("z", "9")), CHANGED("21", USER("z", "7"), USER("z", "8"))),
         TOMBSTONE("x", "16") TOMBSTONE("y", "19") ROW("z", "9", "22")},
    };
    struct stage *s = stage_new(BY_MAIL, NULL);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        stage_deliver_all(s, steps[i][0]);
        expect_rows(s, steps[i][1], steps[i][0]);
    }
    char *failed = stage_file(s, "failed.jsonl");
    assert_true(!failed || !*failed);
    free(failed);
    stage_destroy(s);
}

static void what_cannot_be_is_refused_at_start(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {ROUTE(",'key':{'PK':'{PK}'},'list':true"),
         "list: expected an object with table, key or name, or false"},
        {ROUTE(",'key':{'PK':'{PK}'},'list':false,'each':'a[*]','item':{'a':'{each}'}"),
         "list: false is for views without \"each\""},
        {ROUTE(",'key':{'PK':'{PK}'},'list':false,'expired':'keep'"), "expired: without lists"},
        {ROUTE(",'key':{'PK':'{PK}'},'list':false,'expires_attribute':'sluice_deleted'"),
         "expires_attribute: expected the name"},
        {ROUTE(",'key':{'PK':'{PK}'},'list':false,'set':{'sluice_deleted':'x'}"),
         "set: sluice_deleted is an"},
        {ROUTE(",'key':{'PK':'{PK}'},'list':false,'item':{'e':'x'},'expires_attribute':'e'"),
         "item: e is an"},
        {"{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'v','handler':'view','"
         "to':'opensearch://h.x/"
         "i?auth=none','each':'l[*]','key':{'PK':'{PK}'"
         "},'item':{'a':'{each}'}}]}",
         "with \"each\" a view needs them"},
        {"{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'v','handler':'view','"
         "to':'opensearch://h.x/"
         "i?auth=none','key':{'PK':'{PK}'},'list':{"
         "'table':'l'}}]}",
         "list.table: this target has no tables beside it"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        stage_refused(cases[i][0], cases[i][1]);
}

/* An attribute of the item that is called as ours is not copied; without lists alone. */
static void names_of_a_tombstone_are_ours(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'list':false,'key':{'PK':'{PK}'}"), NULL);
    stage_deliver_all(
        s, EVENT(INSERTED("11",
                          PK("a") ",'sluice_deleted':{'N':'1'},'sluice_expires':{'N':'1'},'b':{'N':'1'}")));
    expect_rows(s, "{'PK':{'S':'a'}," OF ",'b':{'N':'1'}," ORDER("11") "}\n", "without a list");
    stage_destroy(s);
    s = stage_new(ROUTE(",'key':{'PK':'{PK}'},'set':{'sluice_deleted':'x'}"), NULL);
    stage_deliver_all(s, EVENT(INSERTED("11", PK("a") ",'sluice_deleted':{'N':'1'}")));
    char *got = stage_query(s, "db", "SELECT item FROM view WHERE item NOT LIKE '%sluice_rows%'");
    assert_non_null(strstr(got, "sluice_deleted"));
    free(got);
    stage_destroy(s);
}

static void a_change_without_its_old_image_is_refused(void **state)
{
    (void)state;
    struct stage *s = stage_new(BY_MAIL, NULL);
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_route_accepts(&s->p->routes[0], SL_VIEW_NEW_IMAGE, &error), SL_FATAL);
    assert_non_null(strstr(error.text, "leave \"list\": false out"));
    assert_int_equal(sl_route_accepts(&s->p->routes[0], SL_VIEW_NEW_AND_OLD_IMAGES, &error), SL_OK);
    char *event = strdup(EVENT(RECORD("MODIFY", "11", KEYS(PK("a")) NEW(USER("x", "1")))));
    json_quote(event);
    stage_deliver(s, sl_span_str(event));
    char *log = stage_log(s);
    assert_non_null(strstr(log, "the record has no OldImage"));
    free(log);
    free(event);
    stage_destroy(s);
}

/* ---- other writers ---- */

#define THEIRS "{'PK':{'S':'x'},'SK':{'S':'a'},'t':{'N':'1'}}"

static void put(struct stage *s, const char *mail, const char *item)
{
    char sql[1024];
    snprintf(sql, sizeof(sql),
             "INSERT OR REPLACE INTO view (key, item) VALUES "
             "('{\"PK\":{\"S\":\"%s\"},\"SK\":{\"S\":\"a\"}}', '%.*s')",
             mail, (int)strcspn(item, "\n"), json(item));
    stage_change(s, "db", sql);
}

static void a_row_of_somebody_else_is_not_touched(void **state)
{
    (void)state;
    struct stage *s = stage_new(BY_MAIL, NULL);
    stage_deliver_all(s, EVENT(INSERTED("11", USER("x", "1"))));
    put(s, "x", THEIRS);
    /* It is let go when our row leaves, and stands in the way of it. */
    stage_deliver_all(s, EVENT(CHANGED("12", USER("x", "1"), USER("y", "1"))));
    assert_int_equal(s->answer.parked, 0);
    expect_rows(s, THEIRS "\n" ROW("y", "1", "12"), "let go");
    stage_deliver_all(s, EVENT(CHANGED("13", USER("y", "1"), USER("x", "1"))));
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(failed);
    assert_non_null(strstr(failed, "Collision"));
    free(failed);
    expect_rows(s, THEIRS "\n" TOMBSTONE("y", "13"), "in the way");
    stage_destroy(s);
}

/* One record of the slice cannot be written: the others of its rows are, whichever came first. */
static void a_refused_row_takes_no_other_record_along(void **state)
{
    (void)state;
    struct stage *s = stage_new(BY_MAIL, NULL);
    stage_deliver_all(s, EVENT(INSERTED("11", USER("w", "1"))));
    put(s, "x", THEIRS);
    stage_deliver_all(s, EVENT(CHANGED("12", USER("w", "1"), USER("y", "1")),
                               CHANGED("13", USER("y", "1"), USER("x", "2")),
                               CHANGED("14", USER("x", "2"), USER("z", "3"))));
    expect_rows(s, TOMBSTONE("w", "12") THEIRS "\n" TOMBSTONE("y", "13") ROW("z", "3", "14"),
                "with a refused one");
    assert_int_equal(s->answer.parked, 0);
    stage_deliver_all(s, EVENT(CHANGED("15", USER("z", "3"), USER("x", "4")),
                               CHANGED("16", USER("x", "4"), USER("x", "5")),
                               CHANGED("17", USER("x", "5"), USER("x", "6"))));
    assert_int_equal(s->answer.parked, 3);
    expect_rows(s, TOMBSTONE("w", "12") THEIRS "\n" TOMBSTONE("y", "13") TOMBSTONE("z", "15"), "all refused");
    stage_destroy(s);
}

static void a_row_that_was_written_with_a_list_is_taken_over(void **state)
{
    (void)state;
    struct stage *s =
        stage_new(ROUTE(",'key':{'PK':'{mail}','SK':'{PK}'},'item':{'n':'{n}'},'list':{'table':'l'}"), NULL);
    stage_deliver_all(s, EVENT(INSERTED("11", USER("x", "1"))));
    stage_reopen(s, BY_MAIL);
    stage_deliver_all(s, EVENT(CHANGED("12", USER("x", "1"), USER("x", "2"))));
    expect_rows(s, ROW("x", "2", "12"), "it has an order now");
    stage_destroy(s);
}

/* Before the first calls of the table, `times` of them, the row says another order; where there are several,
 * it is gone and there in turn, never as the handler takes it to be. */
static struct rival {
    unsigned calls, times;
    const char *order;
    bool is_insert; /* it takes nothing to be there, others that there is a row */
} rival;

static enum stage_fate meanwhile(struct stage *s)
{
    unsigned n = rival.calls++;
    char item[512];
    if (n >= rival.times)
        return STAGE_WELL;
    snprintf(item, sizeof(item), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF "%s%s%s}",
             rival.order ? ",'sluice_order':{'S':'" AT("") : "", rival.order ? rival.order : "",
             rival.order ? "'}" : "");
    if (rival.times > 1 && n % 2 == rival.is_insert)
        stage_change(s, "db", "DELETE FROM view");
    else
        put(s, "x", item);
    return STAGE_WELL;
}

static void a_row_that_moves_is_taken_as_it_is(void **state)
{
    (void)state;
    static const struct {
        struct rival rival;
        bool is_written, is_retried;
    } cases[] = {
        {{.order = "04", .times = 1}, true, false},  /* an older change came in between */
        {{.order = NULL, .times = 1}, true, false},  /* a row without an order */
        {{.order = "05", .times = 1}, false, false}, /* the same one */
        {{.order = "99", .times = 1}, false, false}, /* a newer one */
        {{.order = "04", .times = 11}, true, false}, {{.order = "04", .times = 100000}, false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned is_insert = 0; is_insert < 2; is_insert++) {
            struct stage *s = stage_new(BY_MAIL, NULL);
            stage_deliver_all(s, EVENT(INSERTED("03", USER("x", "1"))));
            rival = cases[i].rival;
            rival.is_insert = is_insert;
            s->at_table = meanwhile;
            char *event = strdup(is_insert ? EVENT(INSERTED("05", USER("x", "5")))
                                           : EVENT(CHANGED("05", USER("x", "1"), USER("x", "5"))));
            json_quote(event);
            stage_deliver(s, sl_span_str(event));
            s->at_table = NULL;
            char *got = stage_query(s, "db", ROWS), *log = stage_log(s);
            bool is_retried = stage_checkpoint(s) == 0;
            if ((strstr(got, "{\"N\":\"5\"}") != NULL) != cases[i].is_written ||
                is_retried != cases[i].is_retried ||
                (strstr(log, "the item's rows changed between 12 requests") != NULL) != cases[i].is_retried)
                fail_msg("case %zu, %u: %s\n%s", i, is_insert, got, log);
            free(event);
            free(got);
            free(log);
            stage_destroy(s);
        }
    }
}

/* ---- what it costs, and what it remembers ---- */

static void a_change_is_one_write(void **state)
{
    (void)state;
    static const struct {
        const char *event;
        size_t writes;
    } steps[] = {
        {EVENT(INSERTED("11", USER("x", "1"))), 1},
        {EVENT(CHANGED("12", USER("x", "1"), USER("x", "2"))), 1},
        {EVENT(CHANGED("13", USER("x", "2"), USER("x", "2") ",'o':{'N':'1'}")), 0},
        {EVENT(CHANGED("14", USER("x", "2"), USER("y", "2"))), 2},
        {EVENT(REMOVED("15", USER("y", "2"))), 1},
    };
    struct stage *s = stage_new(BY_MAIL, NULL);
    struct sl_per_item facts;
    assert_int_equal(sl_route_per_item(&s->p->routes[0], &facts, NULL), SL_OK);
    assert_int_equal(facts.remembers_s, 15 * 86400);
    assert_int_equal(facts.units_of_item, 1);
    assert_int_equal(facts.units_more, 0);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        memset(&s->spent, 0, sizeof(s->spent));
        stage_deliver_all(s, steps[i].event);
        assert_int_equal(s->spent.writes, steps[i].writes);
        assert_int_equal(s->spent.reads, 0);
        assert_int_equal(s->groups, 0);
    }
    stage_destroy(s);
}

/* ---- what is the matter with a row, and how it is set right ---- */

/* `item`: of the source, NULL when it is gone; `row`: what is under x/a. */
static const struct trouble {
    const char *item, *row;
    enum sl_verdict verdict;
    const char *mended; /* the row afterwards; NULL: it stays */
    const char *refusal;
    bool may_remove;
} troubles[] = {
    {USER("x", "1"), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'1'}," ORDER("11") "}", SL_VERDICT_EQUAL,
     ROW("x", "1", "11"), NULL, false},
    {USER("x", "1"), NULL, SL_VERDICT_MISSING, ROW("x", "1", "00"), NULL, false},
    {USER("x", "1"), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'2'}," ORDER("11") "}",
     SL_VERDICT_DIFFERENT, ROW("x", "1", "11"), NULL, false},
    {USER("x", "1"), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'1'}}", SL_VERDICT_UNGUARDED,
     ROW("x", "1", "00"), NULL, false},
    {USER("x", "1"), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'2'}}", SL_VERDICT_DIFFERENT,
     ROW("x", "1", "00"), NULL, false},
    {USER("x", "1"), TOMBSTONE("x", "11"), SL_VERDICT_MISSING, ROW("x", "1", "11"), NULL, false},
    {USER("x", "1"), THEIRS, SL_VERDICT_COLLISION, NULL, "Collision", true},
    {USER("y", "1"), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'1'}," ORDER("11") "}",
     SL_VERDICT_LEFT_OVER, NULL, "WouldRemove", false},
    {USER("y", "1"), "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'1'}," ORDER("11") "}",
     SL_VERDICT_LEFT_OVER, TOMBSTONE("x", "11"), NULL, true},
    {NULL, "{'PK':{'S':'x'},'SK':{'S':'a'}," OF ",'n':{'N':'1'}," ORDER("11") "}", SL_VERDICT_LEFT_OVER,
     TOMBSTONE("x", "11"), NULL, true},
    {NULL, TOMBSTONE("x", "11"), SL_VERDICT_EQUAL, NULL, NULL, true},
    {NULL, THEIRS, SL_VERDICT_EQUAL, NULL, "Collision", true},
    {NULL, NULL, SL_VERDICT_EQUAL, NULL, NULL, true},
};

static struct sl_span copied(struct stage *s, const char *text)
{
    struct sl_span none = {NULL, 0};
    if (!text)
        return none;
    char *copy = sl_arena_copy(s->arena, sl_span_str(json(text)));
    size_t n = strlen(text);
    return (struct sl_span){copy, n && copy[n - 1] == '\n' ? n - 1 : n};
}

static const struct sl_record *record_of(struct test_batch *batch, const char *item)
{
    static char members[1024];
    if (item)
        snprintf(members, sizeof(members), KEYS(PK("a")) NEW("%s"), item);
    else
        snprintf(members, sizeof(members), KEYS(PK("a")));
    return test_record(batch, item ? "INSERT" : "REMOVE", members, "");
}

static void try_trouble(const struct trouble *t, size_t i, bool is_plan)
{
    struct stage *s = stage_new(BY_MAIL, NULL);
    struct test_batch batch;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_route *route = &s->p->routes[0];
    const struct sl_handler *handler = &route->loaded.handler;
    const struct sl_record *r = record_of(&batch, t->item);
    stage_deliver_all(s, EVENT(INSERTED("01", USER("none", "1"))));
    stage_change(s, "db", "DELETE FROM view");
    if (t->row)
        put(s, "x", t->row);

    struct sl_span row = copied(s, t->row), none = {NULL, 0},
                   key = copied(s, "{'PK':{'S':'x'},'SK':{'S':'a'}}");
    struct sl_expect e = {
        .abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(e)}, .records = &r, .n = 1, .arena = s->arena};
    assert_int_equal(handler->expect(route->self, &e, &error), SL_OK);
    assert_int_equal(e.n_rows, t->item != NULL);
    for (size_t k = 0; k < e.n_rows; k++)
        assert_int_equal(e.rows[k].status, SL_OK);
    static const struct sl_expected nothing = {.record = 0};
    const struct sl_expected *expected = &nothing;
    for (size_t k = 0; k < e.n_rows; k++)
        if (sl_span_eq(e.rows[k].key, key))
            expected = &e.rows[k];
    static const struct sl_span differ[] = {{"n", 1}};
    bool is_other = t->row && expected->item.ptr && !strstr(t->row, "'n':{'N':'1'}");
    struct sl_judge j = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(j)},
                         .record = r,
                         .expected = expected,
                         .row = row,
                         .names = differ,
                         .n_names = is_other,
                         .arena = s->arena};
    assert_int_equal(handler->judge(route->self, &j, &error), SL_OK);
    if (j.verdict != t->verdict)
        fail_msg("case %zu: verdict %d", i, (int)j.verdict);
    assert_int_equal(j.guard.ptr != NULL, t->row && strstr(t->row, "sluice_order") != NULL);

    enum sl_repair_effect effect;
    struct sl_span written, side;
    struct sl_mark mark = {.is_set = false};
    struct sl_repair ask = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(ask)},
                            .seen = &row,
                            .sides = &none,
                            .may_remove = t->may_remove,
                            .is_plan = is_plan,
                            .effects = &effect,
                            .written = &written,
                            .keys = &key,
                            .sides_written = &side};
    struct sl_slice_call call = {.marks = &mark,
                                 .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                                           .records = &r,
                                           .n = 1,
                                           .deadline_ms = s->clock.ms + 60000,
                                           .arena = s->arena,
                                           .request_id = "",
                                           .epoch = -1}};
    (void)handler->repair(route->self, &call.slice, &ask, &error);
    if (mark.is_set != (t->refusal != NULL) || (t->refusal && strcmp(mark.why->code, t->refusal) != 0))
        fail_msg("case %zu: %s", i, mark.is_set ? mark.why->code : "not refused");
    if (t->mended && !t->refusal)
        assert_true(sl_span_eq(written, copied(s, t->mended)));
    else
        assert_int_equal(effect, SL_REPAIR_NOTHING);
    char as_was[1024];
    snprintf(as_was, sizeof(as_was), "%s%s", t->row ? t->row : "",
             t->row && !strchr(t->row, '\n') ? "\n" : "");
    expect_rows(s, is_plan || !t->mended ? as_was : t->mended, "afterwards");
    test_batch_clean_up(&batch);
    stage_destroy(s);
}

static void a_row_is_judged_and_set_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
        for (int is_plan = 0; is_plan < 2; is_plan++)
            try_trouble(&troubles[i], i, is_plan);
}

/* From a row to its item: tombstones and rows of others stand for none. */
static void a_row_leads_to_its_item(void **state)
{
    (void)state;
    static const struct sl_span names[] = {{"PK", 2}};
    static const struct {
        const char *row;
        bool is_ours;
    } cases[] = {
        {"{'PK':{'S':'x'},'SK':{'S':'a'}," OF "," ORDER("11") "}", true},
        {"{'PK':{'S':'x'},'SK':{'S':'a'}," OF "}", true},
        {TOMBSTONE("x", "11"), false},
        {THEIRS, false},
        {"{'PK':{'S':'x'},'SK':{'S':'a'},'sluice_of':{'M':{'view':{'S':'w'},'key':{'M':{'PK':{'S':'a'}}}}}}",
         false},
        {"{'PK':{'S':'x'},'SK':{'S':'a'},'sluice_of':{'M':{'view':{'S':'v'},'key':{'S':'a'}}}}", false},
        {"{'PK':{'S':'x'},'SK':{'S':'a'},'sluice_of':{'M':{'view':{'S':'v'},'key':{'M':{'PK':{'BOOL':true}}}}"
         "}}",
         false},
        {"{'PK':{'S':'x'},'SK':{'S':'a'},'sluice_of':{'M':{'view':{'S':'v'},'key':{'M':{'K':{'S':'a'}}}}}}",
         false},
    };
    struct stage *s = stage_new(BY_MAIL, NULL);
    const struct sl_route *route = &s->p->routes[0];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_trace t = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(t)},
                             .row = copied(s, cases[i].row),
                             .key_names = names,
                             .n_key_names = 1,
                             .arena = s->arena};
        assert_int_equal(route->loaded.handler.trace(route->self, &t, NULL), SL_OK);
        if ((t.key.ptr != NULL) != cases[i].is_ours)
            fail_msg("case %zu", i);
        if (cases[i].is_ours) {
            assert_true(sl_span_is(t.key, json("{'PK':{'S':'a'}}")));
            assert_true(sl_span_is(t.row_key, json("{'PK':{'S':'x'},'SK':{'S':'a'}}")));
        }
    }
    stage_destroy(s);
}

/* Reports say which changes were done before, and which came too late. */
static void what_became_of_a_change_is_noted(void **state)
{
    (void)state;
    static const struct {
        const char *seq;
        enum sl_effect note;
    } cases[] = {{"13", SL_EFFECT_APPLIED},
                 {"13", SL_EFFECT_REPEATED},
                 {"12", SL_EFFECT_OVERTAKEN},
                 {"14", SL_EFFECT_APPLIED}};
    struct stage *s = stage_new(BY_MAIL, NULL);
    const struct sl_route *route = &s->p->routes[0];
    stage_deliver_all(s, EVENT(INSERTED("11", USER("x", "1"))));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_batch batch;
        struct sl_mark mark = {.is_set = false};
        char members[1024];
        snprintf(members, sizeof(members),
                 KEYS(PK("a")) OLD(USER("x", "1")) NEW(USER("x", "2")) ",'SequenceNumber':'%s'",
                 cases[i].seq);
        const struct sl_record *r = test_record(&batch, "MODIFY", members, "");
        struct sl_slice_call call = {.marks = &mark,
                                     .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                                               .records = &r,
                                               .n = 1,
                                               .deadline_ms = s->clock.ms + 60000,
                                               .arena = s->arena,
                                               .request_id = "",
                                               .epoch = -1}};
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(route->loaded.handler.handle(route->self, &call.slice, &error), SL_OK);
        assert_int_equal(mark.note, cases[i].note);
        test_batch_clean_up(&batch);
    }
    stage_destroy(s);
}

/* Both rows of a change keep moving: it is retried, and with it the one that shares a row. */
static bool never(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    (void)s;
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){
            .status = SL_OK,
            .condition_failed = true,
            .item = ops[i].tests[0].verb == SL_ABSENT
                        ? sl_span_str(json("{'PK':{'S':'x'},'SK':{'S':'a'}," OF "," ORDER("01") "}"))
                        : (struct sl_span){NULL, 0}};
    return true;
}

static void all_rows_that_keep_moving_are_retried(void **state)
{
    (void)state;
    struct stage *s = stage_new(BY_MAIL, NULL);
    s->for_table = never;
    char *event = strdup(
        EVENT(CHANGED("12", USER("x", "1"), USER("y", "1")), CHANGED("13", USER("z", "1"), USER("w", "1"))));
    json_quote(event);
    stage_deliver(s, sl_span_str(event));
    assert_int_equal(stage_checkpoint(s), 0);
    s->for_table = NULL;
    stage_deliver(s, sl_span_str(event));
    assert_int_equal(stage_checkpoint(s), 2);
    free(event);
    stage_destroy(s);
}

static size_t n_refused;

static bool refuse(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    (void)s, (void)ops;
    n_refused++;
    for (size_t i = 0; i < n; i++)
        results[i] = (struct sl_result){.status = SL_REJECT, .code = "TooOdd", .text = "this row cannot be"};
    return true;
}

/* With the table's own words, and at once. */
static void what_the_table_refuses_is_parked(void **state)
{
    (void)state;
    struct stage *s = stage_new(BY_MAIL, NULL);
    stage_deliver_all(s, EVENT(INSERTED("11", USER("x", "1"))));
    s->for_table = refuse;
    n_refused = 0;
    stage_deliver_all(s, EVENT(CHANGED("12", USER("x", "1"), USER("y", "1"))));
    assert_int_equal(s->answer.parked, 1);
    assert_int_equal(n_refused, 1);
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "TooOdd"));
    free(failed);
    stage_destroy(s);
}

/* A stream without old images stops the route; a record alone, of which nobody knows the view type, is
 * parked. */
static void what_a_record_lacks_is_its_own_fault_or_the_streams(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        bool is_known, is_fatal;
        const char *code;
    } cases[] = {
        {KEYS(PK("a")) NEW(USER("x", "1")), true, true, "ViewType"},
        {KEYS(PK("a")) NEW(USER("x", "1")), false, false, "ViewType"},
        {KEYS(PK("a")) OLD(USER("x", "1")), true, true, "ViewType"},
        {KEYS(PK("a")) OLD(USER("x", "1")), false, false, "ViewType"},
    };
    struct stage *s = stage_new(BY_MAIL, NULL);
    const struct sl_route *route = &s->p->routes[0];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_batch batch;
        struct sl_mark mark = {.is_set = false};
        struct sl_error error = SL_NO_ERROR;
        const char *members = json_printf("%s,'SequenceNumber':'12'%s", cases[i].members,
                                          cases[i].is_known ? ",'StreamViewType':'NEW_AND_OLD_IMAGES'" : "");
        const struct sl_record *r = test_record(&batch, "MODIFY", members, "");
        struct sl_slice_call call = {.marks = &mark,
                                     .slice = {.abi = {SL_ABI_MAJOR, SL_ABI_MINOR, sizeof(struct sl_slice)},
                                               .records = &r,
                                               .n = 1,
                                               .deadline_ms = s->clock.ms + 60000,
                                               .arena = s->arena,
                                               .request_id = "",
                                               .epoch = -1}};
        enum sl_status status = route->loaded.handler.handle(route->self, &call.slice, &error);
        bool is_fatal = status == SL_FATAL, is_marked = mark.is_set && mark.status == SL_REJECT;
        const char *code = is_fatal ? error.code : is_marked ? mark.why->code : "none";
        if (is_fatal != cases[i].is_fatal || is_marked == is_fatal || strcmp(code, cases[i].code) != 0)
            fail_msg("case %zu: %d, %s", i, (int)status, code);
        test_batch_clean_up(&batch);
    }
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_says_the_order_of_its_change),
        cmocka_unit_test(what_cannot_be_is_refused_at_start),
        cmocka_unit_test(names_of_a_tombstone_are_ours),
        cmocka_unit_test(a_change_without_its_old_image_is_refused),
        cmocka_unit_test(a_row_of_somebody_else_is_not_touched),
        cmocka_unit_test(a_refused_row_takes_no_other_record_along),
        cmocka_unit_test(a_row_that_was_written_with_a_list_is_taken_over),
        cmocka_unit_test(a_row_that_moves_is_taken_as_it_is),
        cmocka_unit_test(a_change_is_one_write),
        cmocka_unit_test(what_the_table_refuses_is_parked),
        cmocka_unit_test(what_a_record_lacks_is_its_own_fault_or_the_streams),
        cmocka_unit_test(a_row_is_judged_and_set_right),
        cmocka_unit_test(a_row_leads_to_its_item),
        cmocka_unit_test(what_became_of_a_change_is_noted),
        cmocka_unit_test(all_rows_that_keep_moving_are_retried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
