/* The aggregate handler's options: what is refused, with the place and the reason, and what options mean for
 * the rows and for those who ask about the route. */
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}]}"
#define BY_STATUS "'counters':[{'key':{'PK':'{status}'},'add':{'n':1,'sum':'{total}'}}]"

#define ITEM(id, status, total)        PK(id) ",'status':" S(status) ",'total':" N(total)
#define INSERT(seq, id, status, total) RECORD("INSERT", seq, KEYS(PK(id)) NEW(ITEM(id, status, total)))
#define REMOVE(seq, id, old, was)      RECORD("REMOVE", seq, KEYS(PK(id)) OLD(ITEM(id, old, was)))

static void expect_totals(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
    assert_string_equal(got, json(wanted));
    free(got);
}

/* ---- what is refused ---- */

/* An attribute's name has 1 to 255 bytes, and none that JSON would escape. */
static void names_of_amounts_have_limits(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a b", " ", "a.b", "#", "\xC3\xA9", "~"};
    static const char *const bad[] = {"", "a\\u001fb", "\\n", "\\\\", "a\\\"b"};
    char name[257];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct stage *s =
            stage_new(json_printf(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'%s':1}}]"), good[i]), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
        expect_totals(s, json_printf("{'PK':{'S':'ALL'},'%s':{'N':'1'}}\n", good[i]));
        stage_destroy(s);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        stage_refused(json_printf(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'%s':1}}]"), bad[i]),
                      "counters[0].add");
    memset(name, 'x', sizeof(name));
    for (size_t len = 255; len <= 256; len++) {
        name[len] = '\0';
        char *config = strdup(json_printf(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'%s':1}}]"), name));
        if (len == 256)
            stage_refused(config, "counters[0].add");
        else
            stage_destroy(stage_new(config, NULL));
        name[len] = 'x';
        free(config);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
#define COUNTER(members) ROUTE("'counters':[{" members "}]")
#define ONE              "'key':{'PK':'a'},'add':{'n':1}"
#define TWO              "'key':{'PK':'a','SK':'b'},'add':{'n':1}"
#define FIVE             "{" ONE "},{" ONE "},{" ONE "},{" ONE "},{" ONE "},"
#define FORTY            FIVE FIVE FIVE FIVE FIVE FIVE FIVE FIVE
#define TEN(a)                                                                                               \
    "'" a "0':'{a}','" a "1':'{a}','" a "2':'{a}','" a "3':'{a}','" a "4':'{a}','" a "5':'{a}','" a          \
    "6':'{a}','" a "7':'{a}','" a "8':'{a}','" a "9':'{a}',"
    static const struct {
        const char *config, *message;
    } cases[] = {
        {ROUTE("'counters':[]"), "counters: expected a list of 1 to 40"},
        {COUNTER("'key':{'order':'a'},'add':{'n':1}"), "ledger: its rows have an attribute order"},
        {COUNTER("'key':{'PK':'a','sums':'b'},'add':{'n':1}"), "ledger: its rows have an attribute sums"},
        {COUNTER("'key':{'sums':'b','zz':'a'},'add':{'n':1}"), "ledger: its rows have an attribute sums"},
        {ROUTE("'counters':{}"), "counters: expected a list"},
        {ROUTE("'counters':[" FORTY "{" ONE "}]"), "counters: expected a list of 1 to 40"},
        {COUNTER("'key':1,'add':{'n':1}"), "counters[0].key: expected an object of one or two"},
        {COUNTER("'key':{},'add':{'n':1}"), "counters[0].key: expected an object of one or two"},
        {COUNTER("'key':{'a':'a','b':'b','c':'c'},'add':{'n':1}"),
         "counters[0].key: expected an object of one or"},
        {COUNTER("'key':{'':'a'},'add':{'n':1}"),
         "counters[0].key: a key attribute's name is empty, too long"},
        {COUNTER("'key':{'a\\u0022':'a'},'add':{'n':1}"), "counters[0].key: a key attribute's name is empty"},
        {COUNTER("'key':{'PK':''},'add':{'n':1}"), "counters[0].key.PK: expected a template"},
        {COUNTER("'key':{'PK':'a','SK':'{b'},'add':{'n':1}"), "counters[0].key.SK: '{' is not closed"},
        {COUNTER("'key':{'PK':'{a','SK':'b'},'add':{'n':1}"), "counters[0].key.PK: '{' is not closed"},
        {ROUTE("'counters':[{" ONE "},{" TWO "}]"),
         "counters[1].key: all counters have the same key attributes"},
        {ROUTE("'counters':[{" TWO "},{" ONE "}]"),
         "counters[1].key: all counters have the same key attributes"},
        {ROUTE("'counters':[{" ONE "},{" ONE ",'adds':1},{" ONE "}]"), "counters[1].adds: unknown member"},
        {ROUTE("'counters':[{" ONE "},{'key':{'PK':'a'},'add':{'n':true}},{}]"),
         "counters[1].add.n: expected an integer"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':'3{a}x'}"),
         "counters[0].add.n: what is outside of the {place} is not part of a number"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':'x{a}'}"), "counters[0].add.n: what is outside of the {place}"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':'{a}}'}"), "counters[0].add.n: "},
        {COUNTER("'key':{'PK':'a'},'add':{'n':'{a}{b}x'}"),
         "counters[0].add.n: what is outside of the {place}"},
        {COUNTER("'key':{'PK':'a'},'running_max':1"), "counters[0].running_max: expected an object"},
        {COUNTER("'key':{'PK':'a'},'running_min':{'':1}"),
         "counters[0].running_min: an attribute's name is empty"},
        {COUNTER("'key':{'PK':'a'},'running_max':{'m':'{OldImage.a}'}"),
         "counters[0].running_max.m: write {name}"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':1},'where':{'a':1}"), "$.routes[0].counters[0].where.a: "},
        {COUNTER("'key':{'PK':'a'},'add':{'n':1},'where':[]"), "$.routes[0].counters[0].where: "},
        {ROUTE("'counters':[1]"), "counters[0]: expected an object"},
        {COUNTER("'kee':1"), "counters[0].kee: unknown member"},
        {COUNTER("'add':{'n':1}"), "counters[0].key: expected an object"},
        {COUNTER("'key':{'PK':1},'add':{'n':1}"), "counters[0].key.PK: expected a template"},
        {COUNTER("'key':{'PK':'{a'},'add':{'n':1}"), "$.routes[0].counters[0].key.PK: '{' is not closed"},
        {COUNTER("'key':{'PK':'{OldImage.a}'},'add':{'n':1}"),
         "counters[0].key.PK: write {name} without its image"},
        {COUNTER("'key':{'PK':'a'}"), "counters[0].add: missing"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':1.5}"),
         "counters[0].add.n: expected an integer, or a decimal or template as text"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':'{NewImage.a}'}"),
         "counters[0].add.n: write {name} without its image"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':'total'}"),
         "counters[0].add.n: \"total\" is not a number; for an attribute's value write \"{total}\""},
        {COUNTER("'key':{'PK':'a'},'add':1"), "counters[0].add: expected an object"},
        {COUNTER("'key':{'PK':'a'},'add':{'n':1},'when':{'a':1}"), "$.routes[0].counters[0].when.a: a list"},
        {ROUTE("'counters':[{'key':{'PK':'a'},'add':{'n':1}},{'key':{'SK':'a'},'add':{'n':1}}]"),
         "counters[1].key: all counters have the same key attributes"},
        {ROUTE(BY_STATUS ",'ledger':{'tabel':'x'}"), "ledger.tabel: unknown member"},
        {ROUTE(BY_STATUS ",'ledger':{'key':'x'}"), "ledger.key: only for a ledger with its own table"},
        {ROUTE(BY_STATUS ",'ledger':'x'"), "ledger: expected an object with table, key or name"},
        {ROUTE(BY_STATUS ",'ledger':['x']"), "ledger: expected an object with table, key or name"},
        {ROUTE(BY_STATUS ",'ledger':{'name':''}"), "ledger.name: expected a text without quotes"},
        {ROUTE(BY_STATUS ",'ledger':{'name':1}"), "ledger.name: expected a text without quotes"},
        {ROUTE(BY_STATUS ",'ledger':{'table':'a\\u0022'}"), "ledger.table: expected a text without quotes"},
        {ROUTE(BY_STATUS ",'ledger':{'table':'l','key':'sums'}"), "ledger: its rows have an attribute sums"},
        {ROUTE(BY_STATUS ",'ledger':{'table':'l','key':'order'}"),
         "ledger: its rows have an attribute order"},
        {ROUTE(BY_STATUS ",'epoch':1000000"), "epoch"},
        {ROUTE(BY_STATUS ",'expires_attribute':''"), "expires_attribute: expected"},
        {ROUTE(BY_STATUS ",'shard':1"), "did you mean \"shards\"?"},
        {COUNTER(ONE ",'distinct':1"), "counters[0].distinct: expected an object"},
        {COUNTER(ONE ",'distinct':{}"), "counters[0].distinct: expected an object"},
        {COUNTER(ONE ",'distinct':{'d':1}"), "counters[0].distinct.d: expected a template"},
        {COUNTER(ONE ",'distinct':{'d':'{a'}"), "counters[0].distinct.d: '{' is not closed"},
        {COUNTER(ONE ",'distinct':{'d':'{OldImage.a}'}"), "counters[0].distinct.d: write {name} without"},
        {COUNTER(ONE ",'distinct':{'n':'{a}'}"),
         "counters[0].distinct.n: an amount of the route has this name"},
        {COUNTER(ONE ",'distinct':{'d':'{a}','n':'{a}','e':'{a}'}"),
         "counters[0].distinct.n: an amount of the route has this name"},
        {ROUTE("'counters':[{" ONE "},{'key':{'PK':'a'},'distinct':{'d':'{a}','n':'{a}'}}]"),
         "counters[1].distinct.n: an amount of the route has this name"},
        {COUNTER(ONE ",'distinct':{'':'{a}'}"),
         "counters[0].distinct: an attribute's name is empty, too long"},
        {COUNTER(ONE ",'distinct':{'d':'a'}"), "counters[0].distinct.d: has no {place}, so every item has "
                                               "the same value; for an attribute's value write "
                                               "\"{a}\""},
        {COUNTER(ONE ",'distinct':{'d':'{a}','e':'b'}"), "counters[0].distinct.e: has no {place}"},
        {COUNTER(ONE ",'running_max':{'d':'{a}'},'distinct':{'d':'{a}'}"),
         "counters[0].distinct.d: an amount of the route has this name"},
        {ROUTE("'counters':[{'key':{'PK':'a'},'distinct':{'n':'{a}'}},{" ONE "}]"),
         "counters[0].distinct.n: an amount of the route has this name"},
        {ROUTE("'mode':'at-least-once','counters':[{" TWO ",'members':{'by':'{a}'}}]"),
         "counters.members: only with \"mode\": \"exact\""},
        {ROUTE("'mode':'at-least-once','counters':[{" ONE ",'distinct':{'d':'{a}'}}]"),
         "counters.distinct: only with \"mode\": \"exact\""},
        {ROUTE("'ledger':{'table':'l','key':'group'},'counters':[{" ONE ",'distinct':{'d':'{a}'}}]"),
         "counters.distinct: its rows have an attribute group of their own"},
        {COUNTER(ONE ",'members':{'by':'{n}'}"),
         "counters[0].members: its rows are sorted by the table's sort key"},
        {COUNTER(TWO ",'members':'{n}'"), "counters[0].members: expected {\"by\""},
        {COUNTER(TWO ",'members':{}"), "counters[0].members: expected {\"by\""},
        {COUNTER(TWO ",'members':{'by':'{n}','of':1}"), "counters[0].members: expected {\"by\""},
        {COUNTER(TWO ",'members':{'by':1.5}"), "counters[0].members.by: expected an integer"},
        {ROUTE("'per':'event','counters':[{" TWO ",'members':{'by':'{n}'}}]"),
         "counters.members: only with \"per\": \"item\""},
        {ROUTE("'expired':'keep','counters':[{" TWO ",'members':{'by':'{n}'}}]"),
         "counters.members: not with \"expired\": \"keep\""},
        {ROUTE("'counters':[{'key':{'PK':'a','by':'b'},'add':{'n':1},'members':{'by':'{n}'}}]"),
         "counters.members: its rows have an attribute by of their own"},
        {ROUTE("'counters':[{'key':{'PK':'a','item':'b'},'add':{'n':1},'members':{'by':'{n}'}}]"),
         "counters.members: its rows have an attribute item of their own"},
        {ROUTE("'expired':'keep-any','counters':[{" TWO ",'members':{'by':'{n}'}}]"),
         "counters.members: not with \"expired\": \"keep\""},
        {ROUTE("'empty':'delete','shards':2,'counters':[{" ONE "}]"), "empty: not with \"shards\""},
        {ROUTE("'empty':'delete','mode':'at-least-once','counters':[{" ONE "}]"),
         "empty: only with \"mode\""},
        {ROUTE("'empty':'delete','per':'event','counters':[{" ONE "}]"), "empty: only with \"per\""},
        {ROUTE("'empty':'delete','expired':'keep','counters':[{" ONE "}]"), "empty: only with \"per\""},
        {ROUTE("'empty':'delete','counters':[{" ONE "},{'key':{'PK':'b'},'add':{'s':'{t}'}}]"),
         "empty: counters[1].add has no amount that is 1"},
        {ROUTE("'empty':'delete','counters':[{" ONE "},{'key':{'PK':'b'},'add':{'n':'{t}'}}]"),
         "empty: counters[0].add has no amount that is 1 in every counter"},
        {ROUTE("'empty':'delete','counters':[{" ONE ",'running_max':{'m':'{t}'}}]"),
         "empty: not with counters[0].running_max"},
        {ROUTE("'empty':'delete','counters':[{" ONE "},{'key':{'PK':'b'},'running_min':{'n':1}}]"),
         "empty: "},
        {ROUTE("'empty':'delete','counters':[{'key':{'PK':'b'},'add':{'n':'2'}}]"),
         "empty: counters[0].add has no amount that is 1"},
        {ROUTE("'empty':'remove','counters':[{" ONE "}]"), "empty"},
        {ROUTE("'counters':[{" ONE ",'distinct':{" TEN("a") TEN("b") TEN("c") TEN("d")
                   TEN("e") "'z':'{a}'}}]"),
         "counters: with their values and members a change may write 105 rows, and a transaction has 100"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        stage_refused(cases[i].config, cases[i].message);
}

/* A change may leave all rows of an item and enter as many others: twice the rows of all counters, and the
 * ledger's, in one transaction of 100. */
static void all_rows_of_a_change_fit_a_transaction(void **state)
{
    (void)state;
    static const struct {
        size_t counters, distinct; /* of each counter */
        const char *text;
    } cases[] = {{1, 48, NULL}, {1, 49, "101 rows"}, {7, 6, NULL}, {5, 9, "101 rows"}, {5, 10, "111 rows"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *config = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&config, &size);
        fputs("{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/"
              "db?table=totals',"
              "'counters':[",
              out);
        for (size_t c = 0; c < cases[i].counters; c++) {
            fprintf(out, "%s{'key':{'PK':'%zu'},'add':{'n':1},'distinct':{", c ? "," : "", c);
            for (size_t d = 0; d < cases[i].distinct; d++)
                fprintf(out, "%s'd%zu':'{a}'", d ? "," : "", d);
            fputs("}}", out);
        }
        fputs("]}]}", out);
        fclose(out);
        if (cases[i].text)
            stage_refused(config, cases[i].text);
        else
            stage_destroy(stage_new(config, NULL));
        free(config);
    }
}

static void a_target_without_transactions_is_refused(void **state)
{
    (void)state;
    stage_refused("{'on_failure':'report','routes':[{'name':'t','handler':'aggregate','to':"
                  "'opensearch://127.0.0.1:9/index'," BY_STATUS "}]}",
                  "to: this target has no transactions, and counters need them");
}

/* ---- what is taken ---- */

static void amounts_are_numbers_in_many_forms(void **state)
{
    (void)state;
    static const struct {
        const char *amount, *sum;
    } cases[] = {{"7", "7"},
                 {"-7", "-7"},
                 {"'1.50'", "1.5"},
                 {"'{total}'", "12"},
                 {"'-{total}'", "-12"},
                 {"'{total}e-2'", "0.12"},
                 {"'{total}0'", "120"},
                 {"'{total}{total}'", "1212"},
                 {"'{nope|default:`3`}'", "3"},
                 {"'{nope|default:`}`|default:`}`}4'", NULL},
                 {"'{text|number}'", "5"},
                 {"'+{total}'", "12"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(
            json_printf(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'n':%s}}]"), cases[i].amount), NULL);
        stage_deliver_all(
            s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(ITEM("a", "OPEN", "12") ",'text':" S("5")))));
        expect_totals(s,
                      cases[i].sum ? json_printf("{'PK':{'S':'ALL'},'n':{'N':'%s'}}\n", cases[i].sum) : "");
        assert_int_equal(s->answer.parked, cases[i].sum ? 0 : 1);
        stage_destroy(s);
    }
}

/* How long the ledger keeps rows of removed items and of events: docs/AGGREGATE.md. */
static void rows_are_forgotten_after_the_days_that_options_say(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        int days; /* 0: never */
    } cases[] = {{"", 0},
                 {",'forget_after_days':0", 0},
                 {",'forget_after_days':1", 1},
                 {",'forget_after_days':30", 30},
                 {",'per':'event'", 15},
                 {",'per':'event','forget_after_days':0", 0},
                 {",'per':'event','forget_after_days':3", 3},
                 /* Without its row, a removal that is delivered again would be kept twice. */
                 {",'expired':'keep'", 0},
                 {",'expired':'keep','forget_after_days':0", 0},
                 {",'expired':'keep','forget_after_days':1", 15},
                 {",'expired':'keep','forget_after_days':14", 15},
                 {",'expired':'keep','forget_after_days':15", 15},
                 {",'expired':'keep-any','forget_after_days':16", 16},
                 {",'expired':'keep','per':'event','forget_after_days':1", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char wanted[80] = "(null)\n";
        struct stage *s =
            stage_new(json_printf(ROUTE(BY_STATUS ",'expires_attribute':'end'%s"), cases[i].members), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1"), REMOVE("2", "a", "OPEN", "1")));
        char *end = stage_query(
            s, "db", "SELECT max(json_extract(item,'$.end.N')) FROM totals WHERE key LIKE '%sluice:%'");
        if (cases[i].days)
            snprintf(wanted, sizeof(wanted), "%d\n", STAGE_TIME_S + 86400 * cases[i].days);
        if (strcmp(end, wanted) != 0)
            fail_msg("%s: %s and not %s", cases[i].members, end, wanted);
        free(end);
        stage_destroy(s);
    }
}

static void a_ledger_has_the_table_the_key_and_the_name_that_it_is_given(void **state)
{
    (void)state;
    static const struct {
        const char *ledger, *table, *key;
    } cases[] = {{"{}", "totals", "{'PK':{'S':'sluice:ledger:t:%"},
                 {"{'name':'n'}", "totals", "{'PK':{'S':'sluice:ledger:n:%"},
                 {"{'table':'l'}", "l", "{'PK':{'S':'sluice:ledger:t:%"},
                 {"{'table':'l','key':'id','name':'n'}", "l", "{'id':{'S':'sluice:ledger:n:%"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE(BY_STATUS ",'ledger':%s"), cases[i].ledger), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
        char sql[200];
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE key LIKE '%s'", cases[i].table,
                 json(cases[i].key));
        char *n = stage_query(s, "db", sql);
        assert_string_equal(n, "1\n");
        free(n);
        stage_destroy(s);
    }
    /* Names that the ledger's rows of items have may be those of events, and of totals without a ledger. */
    stage_destroy(stage_new(ROUTE("'per':'event','counters':[{'key':{'order':'x'},'add':{'n':1}}]"), NULL));
    stage_destroy(
        stage_new(ROUTE("'mode':'at-least-once','counters':[{'key':{'sums':'x'},'add':{'n':1}}]"), NULL));
}

/* ---- what a backfill asks ---- */

/* A route over items can be given items that exist, if what it counts follows from the item alone. */
static void a_template_of_the_change_is_not_of_its_item(void **state)
{
    (void)state;
#define SORTED(key, sort, add, distinct, by)                                                                 \
    ROUTE("'counters':[{'key':{'PK':'A','SK':'-'},'add':{'n':1}},{'key':{'PK':'" key "','SK':'" sort         \
          "'},'add':{'n':'" add "'},'distinct':{'d':'" distinct "'},'members':{'by':'" by "'}}]")
    static const struct {
        const char *config;
        bool is_of_item;
    } cases[] = {
        {SORTED("{a}", "-", "{n}", "{a}", "{n}"), true},
        {SORTED("{yyyy}", "-", "{n}", "{a}", "{n}"), false},
        {SORTED("{a}", "{event}", "{n}", "{a}", "{n}"), false},
        {SORTED("{a}", "-", "{ss}", "{a}", "{n}"), false},
        {SORTED("{a}", "-", "{n}", "{eventID}", "{n}"), false},
        {SORTED("{a}", "-", "{n}", "{a}", "{mm}"), false},
        {SORTED("{table}", "-", "{n}", "{a}", "{n}"), true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        struct sl_per_item facts = {.units_more = 0};
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_route_per_item(&s->p->routes[0], &facts, &error);
        if (status != (cases[i].is_of_item ? SL_OK : SL_REJECT))
            fail_msg("case %zu: %s", i, error.text);
        if (status != SL_OK)
            assert_non_null(strstr(error.text, "names the time or the event of a change, or the old image"));
        else
            assert_int_equal(facts.needs_table, i + 1 == sizeof(cases) / sizeof(cases[0]));
        assert_true(status != SL_OK || facts.units_more == 3 + 2 * 2); /* a value's row, and a member's */
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_amounts_have_limits),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(all_rows_of_a_change_fit_a_transaction),
        cmocka_unit_test(a_target_without_transactions_is_refused),
        cmocka_unit_test(amounts_are_numbers_in_many_forms),
        cmocka_unit_test(rows_are_forgotten_after_the_days_that_options_say),
        cmocka_unit_test(a_ledger_has_the_table_the_key_and_the_name_that_it_is_given),
        cmocka_unit_test(a_template_of_the_change_is_not_of_its_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
