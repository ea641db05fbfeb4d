/* Records of every kind at the aggregate handler: without what it needs, out of order, with long names and
 * odd numbers; and how they become rows. */
#include "base/buffer.h"
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
#define TOTALS(status, n, sum)         "{" PK(status) ",'n':" N(n) ",'sum':" N(sum) "}\n"

static void expect_totals(struct stage *s, const char *wanted)
{
    char *got = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%' ORDER BY key");
    assert_string_equal(got, json(wanted));
    free(got);
}

static void expect_parked(struct stage *s, const char *code, const char *text)
{
    char *failed = stage_file(s, "failed.jsonl");
    assert_int_equal(s->answer.parked, 1);
    if (!failed || !strstr(failed, code) || !strstr(failed, text))
        fail_msg("%s does not say \"%s\", \"%s\"", failed, code, text);
    free(failed);
}

/* ---- what is not there ---- */

/* Of a stream that has no such image, all records are like that: the route stops. Where the view type is not
 * said, it may be this record alone, which is parked. */
static void a_record_without_an_image_that_is_needed(void **state)
{
    (void)state;
#define ONCE ",'mode':'at-least-once'"
    static const struct {
        const char *config, *event, *images, *text;
    } cases[] = {
        {ROUTE(BY_STATUS), "INSERT", "", "the record has no NewImage"},
        {ROUTE(BY_STATUS), "MODIFY", OLD(ITEM("a", "OPEN", "1")), "the record has no NewImage"},
        {ROUTE(BY_STATUS ONCE), "MODIFY", NEW(ITEM("a", "OPEN", "1")), "the record has no OldImage"},
        {ROUTE(BY_STATUS ONCE), "REMOVE", "", "the record has no OldImage"},
        {ROUTE(BY_STATUS ",'expired':'keep'"), "EXPIRED", "", "the record has no OldImage"},
    };
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_known = i % 2, is_expired = strcmp(cases[i / 2].event, "EXPIRED") == 0;
        struct stage *s = stage_new(cases[i / 2].config, NULL);
        stage_deliver(
            s,
            sl_span_str(json_printf(
                "{'Records':[{'eventID':'e','eventName':'%s'%s,'dynamodb':{'Keys':{" PK(
                    "a") "}%s,'SequenceNumber':'5'%s}}]}",
                is_expired ? "REMOVE" : cases[i / 2].event,
                is_expired ? ",'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'}" : "",
                cases[i / 2].images, is_known ? ",'StreamViewType':'NEW_AND_OLD_IMAGES'" : "")));
        if (is_known) {
            assert_int_equal(s->answer.error.status, SL_FATAL);
            assert_string_equal(s->answer.error.code, "ViewType");
            assert_non_null(strstr(s->answer.error.text, cases[i / 2].text));
        } else {
            assert_false(s->answer.is_error);
            expect_parked(s, "ViewType", cases[i / 2].text);
        }
        expect_totals(s, "");
        stage_destroy(s);
    }
}

/* A line of an export does not say which attributes are the key. */
static void an_item_without_keys_is_rejected_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(s, "{'Item':{" ITEM("a", "OPEN", "1") "}}");
    expect_parked(s, "NoKeys", "the record has no Keys");
    expect_totals(s, "");
    stage_destroy(s);
}

/* Without a ledger a removal that is kept needs nothing: what was added stays. */
static void without_a_ledger_a_kept_removal_does_nothing(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS ONCE ",'expired':'keep'"), NULL);
    stage_deliver_all(
        s, EVENT(INSERT("1", "a", "OPEN", "3"), EXPIRED("2", KEYS(PK("a")) OLD(ITEM("a", "OPEN", "3")))));
    expect_totals(s, TOTALS("OPEN", "1", "3"));
    stage_deliver_all(s, EVENT(RECORD("REMOVE", "3", KEYS(PK("a")) OLD(ITEM("a", "OPEN", "3")))));
    expect_totals(s, TOTALS("OPEN", "0", "0"));
    stage_destroy(s);
}

static void a_sequence_number_beyond_40_digits_is_rejected_alone(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1"),
                               INSERT("12345678901234567890123456789012345678901", "b", "OPEN", "2"),
                               INSERT("1234567890123456789012345678901234567890", "c", "OPEN", "4")));
    expect_parked(s, "BadOrder", "the record's sequence number has 41 digits, 40 at most");
    expect_totals(s, TOTALS("OPEN", "2", "5"));
    stage_destroy(s);
}

/* ---- order ---- */

/* Kinesis mixes up the changes of an item; their time orders them. In one slice, in every order. */
static void changes_of_a_slice_count_in_the_order_of_their_times(void **state)
{
    (void)state;
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2},
                                    {2, 0, 3, 1}, {0, 3, 1, 2}, {3, 0, 2, 1}};
    static const char *const changes[] = {
        "'INSERT'|1|" NEW(ITEM("a", "OPEN", "1")),
        "'MODIFY'|2|" NEW(ITEM("a", "PAID", "2")) OLD(ITEM("a", "OPEN", "1")),
        "'REMOVE'|3|" OLD(ITEM("a", "PAID", "2")), "'INSERT'|4|" NEW(ITEM("a", "SENT", "8"))};
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct sl_buffer text;
        struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
        sl_buffer_init(&text, 1 << 16);
        for (int k = 0; k < 4; k++) {
            const char *change = changes[orders[i][k]], *time = strchr(change, '|') + 1,
                       *images = strchr(time, '|') + 1;
            sl_buffer_printf(&text,
                             "%s{'awsRegion':'eu-west-1','eventID':'e%c','eventName':%.*s,'tableName':'"
                             "orders','recordFormat':'application/json',"
                             "'dynamodb':{'ApproximateCreationDateTime':176726519900000%c,"
                             "'ApproximateCreationDateTimePrecision':'MICROSECOND','Keys':{" PK("a") "}%s}}",
                             k ? "," : "{'Records':[", *time, (int)(time - change - 1), change, *time,
                             images);
        }
        sl_buffer_add_str(&text, "]}");
        sl_buffer_add_char(&text, '\0');
        for (int times = 0; times < 2; times++) {
            stage_deliver_all(s, text.ptr);
            expect_totals(s, TOTALS("SENT", "1", "8"));
        }
        sl_buffer_clean_up(&text);
        stage_destroy(s);
    }
}

/* Which of two changes of one time was last, nobody knows: it is said. A change that comes twice is no tie,
 * and neither are two that add the same, or two of which the item has changed since. */
static void changes_of_one_time_are_counted_as_ties(void **state)
{
    (void)state;
#define AT(event, time, images)                                                                              \
    "{'awsRegion':'eu-west-1','eventID':'e','eventName':'" event "','tableName':'orders','recordFormat':"    \
    "'application/json','dynamodb':{'ApproximateCreationDateTime':176726519900000" time                      \
    ",'ApproximateCreationDateTimePrecision':'MICROSECOND','Keys':{" PK("a") "}" images "}}"
    static const char made[] = AT("INSERT", "1", NEW(ITEM("a", "OPEN", "1"))),
                      paid[] = AT("MODIFY", "1", NEW(ITEM("a", "PAID", "1")) OLD(ITEM("a", "OPEN", "1"))),
                      same[] = AT("MODIFY", "1", NEW(ITEM("a", "OPEN", "1")) OLD(ITEM("a", "OPEN", "1"))),
                      gone[] = AT("REMOVE", "1", OLD(ITEM("a", "OPEN", "1"))),
                      later[] = AT("MODIFY", "2", NEW(ITEM("a", "SENT", "1")) OLD(ITEM("a", "PAID", "1")));
    static const struct {
        const char *changes[3];
        bool ties;
    } cases[] = {{{made, paid}, true},  {{paid, made}, true},  {{made, gone}, true},
                 {{made, made}, false}, {{made, same}, false}, {{later, made}, false},
                 {{gone, gone}, false}, {{paid, paid}, false}, {{gone, made}, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int at_once = 0; at_once < 2; at_once++) {
            struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
            if (at_once)
                stage_deliver_all(
                    s, json_printf("{'Records':[%s,%s]}", cases[i].changes[0], cases[i].changes[1]));
            for (int k = 0; k < 2 && !at_once; k++)
                stage_deliver_all(s, json_printf("{'Records':[%s]}", cases[i].changes[k]));
            char *log = stage_log(s);
            if ((strstr(log, "\"TiedOrder\":1") != NULL) != cases[i].ties)
                fail_msg("case %zu, at once %d", i, at_once);
            free(log);
            stage_destroy(s);
        }
    /* One of three: what the item becomes after both does not depend on which was last. */
    struct stage *s = stage_new(ROUTE(BY_STATUS), NULL);
    stage_deliver_all(s, json_printf("{'Records':[%s,%s,%s]}", paid, made, later));
    char *log = stage_log(s);
    assert_null(strstr(log, "TiedOrder"));
    expect_totals(s, TOTALS("SENT", "1", "1"));
    free(log);
    stage_destroy(s);
}

/* ---- own rows ---- */

static void rows_of_our_own_are_left_out_whatever_becomes_of_them(void **state)
{
    (void)state;
#define OWN PK("OPEN") ",'status':" S("x") ",'total':" N("1") ",'sluice_row':" S("t")
#define NOT PK("OPEN") ",'status':" S("x") ",'total':" N("1")
    static const char *const events[] = {RECORD("INSERT", "2", KEYS(PK("OPEN")) NEW(OWN)),
                                         RECORD("MODIFY", "3", KEYS(PK("OPEN")) NEW(OWN) OLD(OWN)),
                                         RECORD("MODIFY", "3", KEYS(PK("OPEN")) NEW(NOT) OLD(OWN)),
                                         RECORD("MODIFY", "3", KEYS(PK("OPEN")) NEW(OWN) OLD(NOT)),
                                         RECORD("REMOVE", "4", KEYS(PK("OPEN")) OLD(OWN))};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        struct stage *s = stage_new(ROUTE(BY_STATUS ",'own_rows':'mark'"), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
        stage_deliver_all(s, json_printf("{'Records':[%s]}", events[i]));
        expect_totals(s, "{" PK("OPEN") ",'n':{'N':'1'},'sum':{'N':'1'},'sluice_row':{'S':'t'}}\n");
        stage_destroy(s);
    }
}

/* Running values, rows of values, of members and of the ledger: each says that it is the route's. */
static void every_row_that_is_written_is_marked(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        ROUTE("'own_rows':'mark','counters':[{'key':{'PK':'{status}','SK':'-'},'add':{'n':1},'distinct':{'d':"
              "'{total}'},'members':{'by':'{total}'}},{'key':{'PK':'ALL','SK':'-'},'running_max':{'m':'{"
              "total}'}}]"),
        NULL);
    stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1"), INSERT("2", "b", "OPEN", "2")));
    char *n =
        stage_query(s, "db", "SELECT count(*), sum(json_extract(item,'$.sluice_row.S') = 't') FROM totals");
    assert_string_equal(n, "9|9\n"); /* two totals, two values, two members, two items, the source's */
    free(n);
    stage_destroy(s);
}

/* Totals in the table that the records come from: which rows are the route's own is seen only in images. */
static void totals_in_the_source_itself_need_both_images(void **state)
{
    (void)state;
    static const char *const variables[] = {"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=a",
                                            "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL=http://127.0.0.1:9",
                                            NULL};
    static const char config[] = "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':"
                                 "'t','handler':'aggregate',"
                                 "'to':'dynamodb://orders','own_rows':'mark'," BY_STATUS "}]}";
    for (int both = 0; both < 2; both++) {
        struct stage *s = stage_new(config, variables);
        stage_deliver(s, json_span(both ? EVENT(INSERT("1", "a", "OPEN", "1"))
                                        : EVENT(RECORD_OF("NEW_IMAGE", "INSERT", "1",
                                                          KEYS(PK("a")) NEW(ITEM("a", "OPEN", "1"))))));
        assert_int_equal(stage_checkpoint(s), 0);
        assert_int_equal(s->answer.error.status == SL_FATAL, !both);
        char *log = stage_log(s);
        assert_int_equal(strstr(log, "127.0.0.1") != NULL, both); /* (where nobody listens) */
        free(log);
        if (!both) {
            assert_string_equal(s->answer.error.code, "ViewType");
            assert_non_null(strstr(s->answer.error.text, "own_rows: only a stream with NEW_AND_OLD_IMAGES"));
        }
        stage_destroy(s);
    }
}

/* ---- events ---- */

/* Each of these is another event, and is counted once. */
static void events_are_known_by_their_names(void **state)
{
    (void)state;
    static const char *const names[] = {"'eventID':'a'",
                                        "'eventID':'a b'",
                                        "'eventID':'a%20b'",
                                        "'eventID':'a\\u0001'",
                                        "'eventID':'a%01'",
                                        "'eventID':'a\\u001f'",
                                        "'eventID':'\\u0022'",
                                        "'eventID':'\\u005c'",
                                        "'eventID':'%'",
                                        "'eventID':'%25'",
                                        "'eventID':'a\\u0020'",
                                        "'x':1",
                                        "'eventSourceARN':'arn:aws:dynamodb:x:1:table/o/stream/l'"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    struct stage *s = stage_new(ROUTE("'per':'event','counters':[{'key':{'PK':'ALL'},'add':{'n':1}}]"), NULL);
    for (int times = 0; times < 2; times++)
        for (size_t i = 0; i < NAMES; i++)
            stage_deliver_all(s, json_printf("{'Records':[{%s,'eventName':'INSERT','dynamodb':{'Keys':{" PK(
                                                 "a") "},'SequenceNumber':'7'}}]}",
                                             names[i]));
    expect_totals(s, json_printf("{" PK("ALL") ",'n':{'N':'%d'}}\n", NAMES));
    char *marks = stage_query(s, "db", "SELECT json_extract(key,'$.PK.S') FROM totals");
    assert_non_null(strstr(marks, "sluice:event:t:a b\n")); /* as every release wrote it */
    assert_non_null(strstr(marks, "sluice:event:t:a%2520b\n"));
    free(marks);
    stage_destroy(s);
}

/* What an event has: the new image, or the old one of a removal. */
static void conditions_of_events_look_at_the_image_that_is_there(void **state)
{
    (void)state;
    static const struct {
        const char *condition, *wanted;
    } cases[] = {
        {"'where':{'total':[2]}", "3"},
        {"'when':{'total':{'N':['2']}}", "3"},
        {"'where':{'total':[2]},'when':{'status':{'S':['OPEN']}}", "2"},
        {"'where':{'total':[1]},'when':{'status':{'S':['OPEN']}}", "1"},
        {"'where':{'total':[7]},'when':{'status':{'S':['OPEN']}}", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s =
            stage_new(json_printf(ROUTE("'per':'event','counters':[{'key':{'PK':'ALL'},'add':{'n':1},%s}]"),
                                  cases[i].condition),
                      NULL);
        stage_deliver_all(
            s,
            EVENT(
                INSERT("1", "a", "OPEN", "1"),
                RECORD("MODIFY", "2", KEYS(PK("a")) NEW(ITEM("a", "OPEN", "2")) OLD(ITEM("a", "OPEN", "1"))),
                RECORD("MODIFY", "3", KEYS(PK("a")) NEW(ITEM("a", "PAID", "2")) OLD(ITEM("a", "OPEN", "2"))),
                RECORD("REMOVE", "4", KEYS(PK("a")) OLD(ITEM("a", "OPEN", "2")))));
        stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "REMOVE", "5", KEYS(PK("a")))));
        expect_totals(s, cases[i].wanted ? json_printf("{" PK("ALL") ",'n':{'N':'%s'}}\n", cases[i].wanted)
                                         : "");
        stage_destroy(s);
    }
}

/* ---- long keys and odd numbers ---- */

/* A text of `len` bytes that ends as it says. */
static const char *long_text(size_t len, const char *end)
{
    static char text[3000];
    memset(text, 'k', len);
    snprintf(text + len - strlen(end), sizeof(text) - len, "%s", end);
    return text;
}

/* Keys of any length name their items and groups, and one missing part rejects. */
static void long_keys_are_told_apart(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 200, 250, 251, 252, 253, 254, 255, 300, 650, 680, 700, 1000};
    struct stage *s = stage_new(ROUTE("'counters':[{'key':{'PK':'{g}','SK':'{h}'},'add':{'n':1}}]"), NULL);
    size_t n = 0;
    for (int times = 0; times < 2; times++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
            for (char end = 'x'; end <= 'y'; end++) {
                const char *text = long_text(lengths[i], end == 'x' ? "x" : "y");
                stage_deliver_all(
                    s,
                    json_printf(EVENT(RECORD("INSERT", "5",
                                             KEYS(PK("%s")) NEW(PK("%s") ",'g':" S("%s") ",'h':" S("%s")))),
                                text, text, text, text));
                assert_int_equal(s->answer.parked, 0);
                n += times == 0;
            }
    char *rows =
        stage_query(s, "db",
                    "SELECT count(*) FROM totals WHERE json_extract(item,'$.n.N') = '1' AND key NOT LIKE "
                    "'%sluice:%'");
    assert_int_equal(strtoul(rows, NULL, 10), n);
    free(rows);
    stage_deliver_all(s, json_printf(EVENT(RECORD("INSERT", "5", KEYS(PK("z")) NEW(PK("z") ",'g':" S("%s")))),
                                     long_text(300, "x")));
    expect_parked(s, "MissingAttribute", "h");
    stage_destroy(s);
}

static void amounts_that_are_no_numbers_are_rejected_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *total, *members; /* of the item */
        bool counts;
    } cases[] = {{"{v}", "'v':" N("1E125"), true},
                 {"{v}", "'v':" N("1E-130"), true},
                 {"{v}", "'v':" S("1"), false},
                 {"{v}", "'v':{'NULL':true}", false},
                 {"{v}", "'v':{'NS':['1']}", false},
                 {"{v|number}", "'v':" S("1"), true},
                 {"{v}{w}", "'v':" S("1") ",'w':" S("2"), true},
                 {"{v}{w}", "'v':" S("-") ",'w':" N("2"), true},
                 {"{v}{w}", "'v':" S("-") ",'w':" S(""), false},
                 {"{v}{w}", "'v':" S("1.2") ",'w':" S(".3"), false},
                 {"{v}{w}", "'v':" S("x") ",'w':" N("2"), false},
                 {"{v}{w}", "'v':" N("1E125") ",'w':" S("0"), false},
                 {"{v}e{w}", "'v':" N("1") ",'w':" N("126"), false},
                 {"{v}e{w}", "'v':" N("1") ",'w':" N("125"), true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(
            json_printf(ROUTE("'counters':[{'key':{'PK':'ALL'},'add':{'sum':'%s'}}]"), cases[i].total), NULL);
        stage_deliver_all(
            s, json_printf(EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",%s"))), cases[i].members));
        if (s->answer.parked != !cases[i].counts)
            fail_msg("%s of %s: %zu are parked", cases[i].total, cases[i].members, s->answer.parked);
        if (!cases[i].counts)
            expect_parked(s, "", "the amount for sum is not a DynamoDB number");
        stage_destroy(s);
    }
}

/* ---- running values that are missing ---- */

static void what_a_running_value_lacks_has_a_stated_result(void **state)
{
    (void)state;
    static const struct {
        const char *missing, *totals;
        size_t parked;
    } cases[] = {{"reject", "", 1}, {"skip", "", 0}, {"empty", "{" PK("ALL") ",'m':{'N':'0'}}\n", 0}};
    for (size_t i = 0; i < 3; i++) {
        struct stage *s = stage_new(
            json_printf(
                ROUTE("'missing':'%s','counters':[{'key':{'PK':'ALL'},'running_max':{'m':'{nope}'}}]"),
                cases[i].missing),
            NULL);
        stage_deliver_all(s, EVENT(INSERT("1", "a", "OPEN", "1")));
        assert_int_equal(s->answer.parked, cases[i].parked);
        expect_totals(s, cases[i].totals);
        stage_destroy(s);
    }
}

/* Where the keys of so many groups are known by what they are made of; the others are made each time. */
#define KNOWN_GROUPS 4096

static void groups_beyond_those_that_are_known_are_counted(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(BY_STATUS ONCE), NULL);
    struct sl_buffer text;
    sl_buffer_init(&text, 8 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < 2 * (KNOWN_GROUPS + 2); i++)
        sl_buffer_printf(
            &text,
            "%s{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'%zu'}},'NewImage':{'PK':{'S':"
            "'%zu'},'status':{'S':'%zu'},'total':{'N':'3'}},'SequenceNumber':'%zu'}}",
            i ? "," : "", i, i, i % (KNOWN_GROUPS + 2), i + 1);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    stage_deliver_all(s, text.ptr);
    char *got = stage_query(s, "db",
                            "SELECT count(*), min(json_extract(item,'$.n.N')), max(json_extract(item,"
                            "'$.n.N')), max(json_extract(item,'$.sum.N')) FROM totals");
    assert_string_equal(got, "4098|2|2|6\n");
    free(got);
    sl_buffer_clean_up(&text);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_without_an_image_that_is_needed),
        cmocka_unit_test(an_item_without_keys_is_rejected_alone),
        cmocka_unit_test(without_a_ledger_a_kept_removal_does_nothing),
        cmocka_unit_test(a_sequence_number_beyond_40_digits_is_rejected_alone),
        cmocka_unit_test(changes_of_a_slice_count_in_the_order_of_their_times),
        cmocka_unit_test(changes_of_one_time_are_counted_as_ties),
        cmocka_unit_test(rows_of_our_own_are_left_out_whatever_becomes_of_them),
        cmocka_unit_test(every_row_that_is_written_is_marked),
        cmocka_unit_test(totals_in_the_source_itself_need_both_images),
        cmocka_unit_test(events_are_known_by_their_names),
        cmocka_unit_test(conditions_of_events_look_at_the_image_that_is_there),
        cmocka_unit_test(long_keys_are_told_apart),
        cmocka_unit_test(amounts_that_are_no_numbers_are_rejected_by_name),
        cmocka_unit_test(what_a_running_value_lacks_has_a_stated_result),
        cmocka_unit_test(groups_beyond_those_that_are_known_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
