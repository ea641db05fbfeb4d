/* Rows that the aggregate handler keeps: what it makes of those that others changed, when it deletes them,
 * and rows of members and of values at the limits of their keys. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"
/* Everything that a ledger's row may hold. */
#define ALL                                                                                                  \
    "'counters':[{'key':{'PK':'{g}','SK':'-'},'add':{'n':1,'sum':'{v}'},'distinct':{'d':'{w}'},'members':{"  \
    "'by':'{v}'}}]"

#define ITEM(id, g, v, w)        PK(id) ",'g':" S(g) ",'v':" N(v) ",'w':" S(w)
#define INSERT(seq, id, g, v, w) RECORD("INSERT", seq, KEYS(PK(id)) NEW(ITEM(id, g, v, w)))
#define REMOVE(seq, id, g, v, w) RECORD("REMOVE", seq, KEYS(PK(id)) OLD(ITEM(id, g, v, w)))
/* As a stream shows it that has no old images: the ledger is read. */
#define CHANGE(seq, id, g, v, w) RECORD_OF("NEW_IMAGE", "MODIFY", seq, KEYS(PK(id)) NEW(ITEM(id, g, v, w)))

#define NOT_OURS "key NOT LIKE '%sluice:%'"
#define LEDGER   "key LIKE '%sluice:ledger:t:%'"
#define VALUES   "key LIKE '%sluice:distinct:t:%'"

static void expect_query(struct stage *s, const char *sql, const char *wanted)
{
    char *got = stage_query(s, "db", sql);
    got[strcspn(got, "\n")] = '\0';
    if (strcmp(got, wanted) != 0)
        fail_msg("%s: %s and not %s", sql, got, wanted);
    free(got);
}

static void expect_fatal(struct stage *s, const char *code, const char *text, const char *what)
{
    if (s->answer.error.status != SL_FATAL || strcmp(s->answer.error.code, code) != 0 ||
        !strstr(s->answer.error.text, text))
        fail_msg("%s: %d %s %s", what, s->answer.error.status, s->answer.error.code, s->answer.error.text);
}

/* Changes the rows as another program would: `item` is an SQL expression. */
static void change_rows(struct stage *s, const char *where, const char *item)
{
    char sql[400];
    snprintf(sql, sizeof(sql), "UPDATE totals SET item = %s WHERE %s", item, where);
    stage_change(s, "db", sql);
}

/* ---- rows that others changed ---- */

/* Whatever is not as aggregate writes it stops the route: nothing is counted by a guess. */
static void a_damaged_row_of_the_ledger_stops_the_route(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "json_remove(item,'$.sums')",
        "json_set(item,'$.sums',json('{\"S\":\"x\"}'))",
        "json_set(item,'$.order',json('{\"N\":\"1\"}'))",
        "json_remove(item,'$.order')",
        "json_set(item,'$.sums.L[0]',json('{\"S\":\"x\"}'))",
        "json_set(item,'$.sums.L[0]',json('{\"M\":{}}'))",
        "json_remove(item,'$.sums.L[0].M.key')",
        "json_remove(item,'$.sums.L[0].M.key.M.SK')",
        "json_set(item,'$.sums.L[0].M.key.M.PK',json('{\"BOOL\":true}'))",
        "json_remove(item,'$.sums.L[0].M.add')",
        "json_set(item,'$.sums.L[0].M.add',json('{\"L\":[]}'))",
        "json_set(item,'$.sums.L[0].M.add.M.n',json('{\"S\":\"1\"}'))",
        "json_set(item,'$.sums.L[1].M.distinct',json('{\"N\":\"1\"}'))",
        "json_set(item,'$.sums.L[1].M.distinct.M.d',json('{\"BOOL\":true}'))",
        "json_set(item,'$.sums.L[1].M.distinct.M.d',json('{\"M\":{\"sha256\":{\"N\":\"1\"}}}'))",
        "json_set(item,'$.sums.L[2].M.member',json('{\"S\":\"1\"}'))",
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct stage *s = stage_new(ROUTE(ALL), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u")));
        change_rows(s, LEDGER, changes[i]);
        stage_deliver(s, json_span(EVENT(CHANGE("2", "a", "y", "2", "z"))));
        expect_fatal(s, "LedgerRow",
                     "a row of the ledger was not written by aggregate, or by a later release", changes[i]);
        expect_query(s, "SELECT count(*) FROM totals WHERE " NOT_OURS " AND key LIKE '%\"y\"%'", "0");
        stage_destroy(s);
    }
}

static void a_time_of_another_form_counts_as_none(void **state)
{
    (void)state;
    static const char *const changes[] = {"json_set(item,'$.at',json('{\"S\":\"x\"}'))",
                                          "json_set(item,'$.at',json('{\"N\":\"1.5\"}'))",
                                          "json_set(item,'$.at',json('{\"N\":\"1E30\"}'))"};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct stage *s = stage_new(ROUTE(ALL), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u")));
        change_rows(s, LEDGER, changes[i]);
        stage_deliver_all(s, EVENT(CHANGE("2", "a", "y", "2", "z")));
        expect_query(s, "SELECT json_extract(item,'$.sum.N') FROM totals WHERE key LIKE '%\"y\"%\"-\"}}'",
                     "2");
        stage_destroy(s);
    }
}

/* A value's row that holds 0 is not as we write it, and is replaced when its first item comes. */
static void a_value_row_that_counts_nothing_is_made_anew(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ALL), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u")));
    change_rows(s, VALUES, "json_set(item,'$.n.N','0')");
    change_rows(s, NOT_OURS, "json_set(item,'$.d.N','0')");
    stage_deliver_all(s, EVENT(INSERT("2", "b", "x", "2", "u")));
    expect_query(s, "SELECT json_extract(item,'$.n.N') FROM totals WHERE " VALUES, "1");
    expect_query(s, "SELECT json_extract(item,'$.d.N') FROM totals WHERE key LIKE '%\"x\"%\"-\"}}'", "1");
    stage_destroy(s);
}

/* ---- empty groups ---- */

#define COUNTED "'empty':'delete','counters':[{'key':{'PK':'{g}'},'add':{'n':1,'sum':'{v}'}}]"

/* A row goes with its last item, but not what somebody else keeps in it, nor a count that is not 0. */
static void an_empty_row_is_deleted_unless_it_is_somebody_s(void **state)
{
    (void)state;
    static const struct {
        const char *change; /* of the row, before its last item goes */
        bool goes;
    } cases[] = {
        {"item", true},
        {"json_set(item,'$.sluice_row',json('{\"S\":\"t\"}'))", true},
        {"json_set(item,'$.sluice_added_n',json('{\"N\":\"1\"}'))", false}, /* a repair's count */
        {"json_set(item,'$.sum.N','1.0')", true},
        {"json_remove(item,'$.sum')", false}, /* -1 then: somebody has to give it back */
        {"json_set(item,'$.sum.N','3')", false},
        {"json_set(item,'$.owner',json('{\"S\":\"me\"}'))", false},
        {"json_set(item,'$.sluice_added_',json('{\"N\":\"1\"}'))", false},
        {"json_set(item,'$.sluice_rows',json('{\"S\":\"t\"}'))", false},
        {"json_set(item,'$.PKs',json('{\"S\":\"t\"}'))", false},
        {"json_set(item,'$.n.N','2')", false},
        {"json_set(item,'$.n.N','0')", false}, /* -1 then */
        {"json_set(item,'$.n.N','1.5')", false},
    };
#define ROW(g) "key LIKE '%{\"S\":\"" g "\"}%'"
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(COUNTED), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u"), INSERT("2", "b", "y", "1", "u")));
        change_rows(s, ROW("x"), cases[i].change);
        stage_deliver_all(s, EVENT(REMOVE("3", "a", "x", "1", "u")));
        expect_query(s, "SELECT count(*) FROM totals WHERE " ROW("x"), cases[i].goes ? "0" : "1");
        expect_query(s, "SELECT json_extract(item,'$.n.N') FROM totals WHERE " ROW("y"), "1");
        stage_destroy(s);
    }
}

#define MOVE(seq, id, from, to)                                                                              \
    RECORD("MODIFY", seq, KEYS(PK(id)) NEW(ITEM(id, to, "1", "u")) OLD(ITEM(id, from, "1", "u")))

/* A process that was killed before it deleted the row leaves it; the records are redelivered, in whatever
 * slices: also in one in which the item was in that group only for a moment. */
static void a_row_that_was_left_behind_goes_with_a_repeat(void **state)
{
    (void)state;
    static const char *const repeats[] = {
        EVENT(MOVE("3", "a", "y", "x")),
        EVENT(MOVE("2", "a", "x", "y"), MOVE("3", "a", "y", "x")),
        EVENT(INSERT("1", "a", "x", "1", "u"), MOVE("2", "a", "x", "y"), MOVE("3", "a", "y", "x")),
        EVENT(MOVE("2", "a", "x", "y"), MOVE("3", "a", "y", "x"), MOVE("4", "a", "x", "z")),
    };
    for (size_t i = 0; i < sizeof(repeats) / sizeof(repeats[0]); i++) {
        struct stage *s = stage_new(ROUTE(COUNTED), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u"), INSERT("9", "b", "x", "1", "u")));
        stage_deliver_all(s, EVENT(MOVE("2", "a", "x", "y")));
        stage_deliver_all(s, EVENT(MOVE("3", "a", "y", "x")));
        expect_query(s, "SELECT count(*) FROM totals WHERE " ROW("y"), "0");
        stage_change(
            s, "db",
            "INSERT INTO totals SELECT replace(key, '\"x\"', '\"y\"'), replace(json_set(item, '$.n.N', '0', "
            "'$.sum.N', '0'), '\"x\"', '\"y\"') FROM totals WHERE " ROW("x"));
        expect_query(s, "SELECT count(*) FROM totals WHERE " ROW("y"), "1");
        stage_deliver_all(s, repeats[i]);
        expect_query(s, "SELECT count(*) FROM totals WHERE " ROW("y"), "0");
        stage_destroy(s);
    }
}

/* A count that came to the configuration later is in no row: nobody knows how many items are in those. */
static void a_row_that_says_no_count_stays(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'counters':[{'key':{'PK':'{g}'},'add':{'sum':'{v}'}}]"), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u"), INSERT("2", "b", "x", "1", "u")));
    stage_reopen(s, ROUTE(COUNTED));
    stage_deliver_all(s, EVENT(REMOVE("3", "a", "x", "1", "u")));
    expect_query(
        s, "SELECT json_extract(item,'$.n.N'), json_extract(item,'$.sum.N') FROM totals WHERE " NOT_OURS,
        "(null)|1");
    stage_destroy(s);
}

/* Counters that share rows: each one's counts have to be 0, and distinct and a second amount are known. */
static void a_row_of_two_counters_goes_when_both_count_nothing(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'missing':'skip','empty':'delete','counters':[{'key':{'PK':'{g}'},'"
                                      "add':{'n':1},'distinct':{'d':'{w}'}},"
                                      "{'key':{'PK':'{h}'},'add':{'m':1,'sum':'{v}'}}]"),
                                NULL);
    stage_deliver_all(s,
                      EVENT(INSERT("1", "a", "x", "1", "u"),
                            RECORD("INSERT", "2", KEYS(PK("b")) NEW(PK("b") ",'h':" S("x") ",'v':" N("4")))));
    stage_deliver_all(s, EVENT(REMOVE("3", "a", "x", "1", "u")));
    expect_query(s,
                 "SELECT json_extract(item,'$.n.N'), json_extract(item,'$.m.N') FROM totals WHERE " NOT_OURS,
                 "0|1");
    stage_deliver_all(s,
                      EVENT(RECORD("REMOVE", "4", KEYS(PK("b")) OLD(PK("b") ",'h':" S("x") ",'v':" N("4")))));
    expect_query(s, "SELECT count(*) FROM totals WHERE " NOT_OURS, "0");
    stage_destroy(s);
}

/* ---- members ---- */

#define MEMBERS(key, sort) "'counters':[{'key':{'PK':'" key "','SK':'" sort "'},'members':{'by':'{v}'}}]"

/* A sort key has 1,024 bytes: the group's own, '#', the number, '#' and 32 digits. */
static void a_group_has_room_for_its_members_numbers(void **state)
{
    (void)state;
    for (size_t len = 985; len <= 987; len++) {
        char sort[1000];
        struct stage *s = stage_new(ROUTE(MEMBERS("G", "{g}")), NULL);
        memset(sort, 's', len);
        sort[len] = '\0';
        stage_deliver_all(s, json_printf(EVENT(INSERT("1", "a", "%s", "1", "u")), sort)); /* "p1301" */
        bool fits = len + 1 + 5 + 1 + 32 <= 1024;
        assert_int_equal(s->answer.parked, fits ? 0 : 1);
        expect_query(s, "SELECT count(*) FROM totals WHERE " NOT_OURS, fits ? "1" : "0");
        expect_query(s, "SELECT coalesce(max(length(json_extract(key,'$.SK.S'))), 0) <= 1024 FROM totals",
                     "1");
        stage_destroy(s);
    }
}

static void what_cannot_be_a_member_is_rejected_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *config, *members, *code, *text;
    } cases[] = {
        {ROUTE(MEMBERS("G", "{v}")), "'v':" N("1"), "MemberKey", "members: the group's SK is not a string"},
        {ROUTE(MEMBERS("G", "-")), "'w':" N("1"), "MissingAttribute", "v"},
        {ROUTE(MEMBERS("G", "-")), "'v':" S("1"), "NotANumber", "members.by"},
        {ROUTE("'counters':[{'key':{'PK':'G','SK':'-'},'members':{'by':'{v}e{v}'}}]"), "'v':" N("126"),
         "NotANumber", "members.by is not a DynamoDB number"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        stage_deliver_all(
            s, json_printf(EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",%s"))), cases[i].members));
        assert_int_equal(s->answer.parked, 1);
        char *failed = stage_file(s, "failed.jsonl");
        if (!strstr(failed, cases[i].code) || !strstr(failed, cases[i].text))
            fail_msg("case %zu: %s", i, failed);
        free(failed);
        stage_destroy(s);
    }
}

/* An item has one row under a group with a number, whichever counters put it there; a total that would have
 * the key of a member's row is rejected. */
static void two_counters_of_one_group_share_a_member(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        ROUTE(
            "'counters':[{'key':{'PK':'{g}','SK':'-'},'members':{'by':'{v}'}},{'key':{'PK':'{g}',"
            "'SK':'-'},'add':{'n':1},'members':{'by':'{v}'}},{'key':{'PK':'{g}','SK':'{w}'},'add':{'m':1}}]"),
        NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u"), INSERT("2", "b", "x", "1", "u")));
    expect_query(s, "SELECT count(*) FROM totals WHERE item LIKE '%\"item\"%'", "2");
    char *sort = stage_query(s, "db",
                             "SELECT json_extract(key,'$.SK.S') FROM totals WHERE item LIKE "
                             "'%\"item\":{\"M\":{\"PK\":{\"S\":\"a\"%'");
    sort[strcspn(sort, "\n")] = '\0';
    stage_deliver_all(s, json_printf(EVENT(RECORD("MODIFY", "3",
                                                  KEYS(PK("a")) NEW(ITEM("a", "x", "1", "%s"))
                                                      OLD(ITEM("a", "x", "1", "u")))),
                                     sort));
    assert_int_equal(s->answer.parked, 1);
    char *failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "ReservedKey"));
    free(failed);
    free(sort);
    stage_deliver_all(s, EVENT(REMOVE("4", "b", "x", "1", "u")));
    expect_query(s, "SELECT count(*) FROM totals WHERE item LIKE '%\"item\"%'", "1");
    stage_destroy(s);
}

/* ---- values ---- */

/* A value of more than 512 bytes is kept as a digest, in the ledger's row, too: read from there it is the
 * same value. */
static void a_long_value_that_the_ledger_holds_is_the_same_value(void **state)
{
    (void)state;
    for (size_t len = 504; len <= 505; len++) { /* {"S":"..."} has 8 bytes more */
        char w[600];
        struct stage *s = stage_new(ROUTE(ALL), NULL);
        memset(w, 'w', len);
        w[len] = '\0';
        stage_deliver_all(s, json_printf(EVENT(INSERT("1", "a", "x", "1", "%s")), w));
        stage_deliver_all(s, json_printf(EVENT(CHANGE("2", "a", "x", "2", "%s")), w));
        expect_query(s, "SELECT count(*), sum(json_extract(item,'$.n.N')) FROM totals WHERE " VALUES, "1|1");
        expect_query(s, "SELECT length(json_extract(item,'$.value.S')) FROM totals WHERE " VALUES,
                     len == 504 ? "504" : "(null)");
        stage_deliver_all(s, EVENT(CHANGE("3", "a", "x", "3", "u")));
        expect_query(s, "SELECT count(*), max(json_extract(item,'$.value.S')) FROM totals WHERE " VALUES,
                     "1|u");
        expect_query(s,
                     "SELECT json_extract(item,'$.d.N'), json_extract(item,'$.sum.N') FROM totals WHERE key "
                     "LIKE '%\"-\"}}'",
                     "1|3");
        stage_destroy(s);
    }
}

/* ---- keys of sub-counters ---- */

static void a_number_cannot_be_spread(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE("'shards':2,'counters':[{'key':{'PK':'{v}'},'add':{'n':1}}]"), NULL);
    stage_deliver(s, json_span(EVENT(INSERT("1", "a", "x", "1", "u"))));
    expect_fatal(s, "ShardKey", "shards: PK is not a string, and a number can only be appended to a string",
                 "");
    expect_query(s, "SELECT count(*) FROM totals WHERE " NOT_OURS " OR " LEDGER, "0");
    stage_destroy(s);
}

/* ---- epochs ---- */

static bool logs(struct stage *s, const char *text)
{
    char *log = stage_log(s);
    bool found = strstr(log, text) != NULL;
    free(log);
    return found;
}

static void a_new_epoch_of_the_same_table_is_told(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(ALL), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "x", "1", "u")));
    stage_reopen(s, ROUTE(ALL ",'epoch':4"));
    stage_deliver_all(s, EVENT(INSERT("2", "b", "x", "1", "u")));
    assert_true(logs(s, "the ledger t begins epoch 4: items are counted anew"));
    assert_false(logs(s, "belonged to"));
    stage_destroy(s);
}

/* In a later epoch an item that contributes nothing gets no row; nor does its row of that epoch change. */
static void what_contributes_nothing_has_no_row_in_any_epoch(void **state)
{
    (void)state;
#define NOBODY(id) PK(id) ",'x':" N("1")
    struct stage *s = stage_new(ROUTE(COUNTED ",'missing':'skip','epoch':2"), NULL);
    for (int times = 0; times < 2; times++)
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(NOBODY("a"))),
                                   RECORD("MODIFY", "2", KEYS(PK("b")) NEW(NOBODY("b")) OLD(NOBODY("b"))),
                                   RECORD("REMOVE", "3", KEYS(PK("c")) OLD(NOBODY("c")))));
    expect_query(s, "SELECT count(*) FROM totals WHERE key NOT LIKE '%sluice:source:%'", "0");
    stage_deliver_all(s, EVENT(INSERT("4", "a", "x", "1", "u")));
    stage_deliver_all(s, EVENT(RECORD("MODIFY", "5", KEYS(PK("a")) NEW(NOBODY("a")) OLD(NOBODY("a")))));
    expect_query(s, "SELECT count(*) FROM totals WHERE " LEDGER " AND item LIKE '%0000004\"%'", "1");
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_row_of_the_ledger_stops_the_route),
        cmocka_unit_test(a_time_of_another_form_counts_as_none),
        cmocka_unit_test(a_value_row_that_counts_nothing_is_made_anew),
        cmocka_unit_test(an_empty_row_is_deleted_unless_it_is_somebody_s),
        cmocka_unit_test(a_row_that_says_no_count_stays),
        cmocka_unit_test(a_row_that_was_left_behind_goes_with_a_repeat),
        cmocka_unit_test(a_row_of_two_counters_goes_when_both_count_nothing),
        cmocka_unit_test(a_group_has_room_for_its_members_numbers),
        cmocka_unit_test(what_cannot_be_a_member_is_rejected_with_the_reason),
        cmocka_unit_test(two_counters_of_one_group_share_a_member),
        cmocka_unit_test(a_long_value_that_the_ledger_holds_is_the_same_value),
        cmocka_unit_test(a_number_cannot_be_spread),
        cmocka_unit_test(a_new_epoch_of_the_same_table_is_told),
        cmocka_unit_test(what_contributes_nothing_has_no_row_in_any_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
