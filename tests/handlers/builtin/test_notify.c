/* The notify handler over real dispatch and the real lines sink. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'n','handler':'notify','to':'jsonl:${DIR}/out.jsonl'" members "}]}"
#define ITEM(status)          PK("a\\n") ",'status':" S(status) ",'n':" N("1.50")
#define CHANGE(seq, now, was) RECORD("MODIFY", seq, KEYS(PK("a\\n")) NEW(ITEM(now)) OLD(ITEM(was)))

static void expect_lines(const char *config, const char *event, const char *wanted)
{
    struct stage *s = stage_new(config, NULL);
    stage_deliver_all(s, event);
    char *got = stage_file(s, "out.jsonl");
    assert_string_equal(got ? got : "", json(wanted));
    free(got);
    stage_destroy(s);
}

static void the_record_or_a_message_is_sent(void **state)
{
    (void)state;
    expect_lines(ROUTE(""), EVENT(CHANGE("1", "B", "A")), CHANGE("1", "B", "A") "\n");
    expect_lines(ROUTE(",'body':'json'"), EVENT(CHANGE("1", "B", "A")),
                 "{'eventName':'MODIFY','ttl':'user','createdMs':1767265199000,'eventID':'e1',"
                 "'table':'orders','region':'eu-west-1','sequenceNumber':'1','Keys':{'PK':'a\\n'},"
                 "'NewImage':{'PK':'a\\n','status':'B','n':1.5},'OldImage':{'PK':'a\\n','status':'A',"
                 "'n':1.5}}\n");
    expect_lines(
        ROUTE(
            ",'message':'{{\\\"id\\\":\\\"{PK}\\\",\\\"was\\\":\\\"{OldImage.status}\\\"}}','escape':'json'"),
        EVENT(CHANGE("1", "B", "A")), "{'id':'a\\n','was':'A'}\n");
}

/* Plain JSON has what the record has, and nothing in the place of what it lacks. */
static void a_plain_record_has_what_is_there(void **state)
{
    (void)state;
    expect_lines(
        ROUTE(",'body':'json'"),
        "{'Records':[{'eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':{'Keys':{" PK(
            "a") "},"
                 "'SequenceNumber':'7'}}]}",
        "{'eventName':'REMOVE','ttl':'unknown','createdMs':0,'sequenceNumber':'7','Keys':{'PK':'a'}}\n");
}

static void a_change_from_a_to_b_is_one_line_of_configuration(void **state)
{
    (void)state;
    expect_lines(ROUTE(",'message':'{sequence}','when':{'changed':['status'],"
                       "'pattern':[{'dynamodb':{'NewImage':{'status':{'S':['SENT']}},"
                       "'OldImage':{'status':{'S':['PAID']}}}}]}"),
                 EVENT(CHANGE("1", "PAID", "OPEN"), CHANGE("2", "SENT", "PAID"), CHANGE("3", "SENT", "SENT")),
                 "'2'\n");
}

#define LACKS EVENT(CHANGE("1", "B", "A"), RECORD("REMOVE", "2", KEYS(PK("a\\n"))))

static void what_a_template_lacks_has_a_stated_result(void **state)
{
    (void)state;
    expect_lines(ROUTE(",'message':'{status}'"), LACKS, "'B'\n");
    expect_lines(ROUTE(",'message':'{status}','missing':'skip'"), LACKS, "'B'\n");
    expect_lines(ROUTE(",'message':'{status}','missing':'empty'"), LACKS, "'B'\n''\n");
    struct stage *s = stage_new(ROUTE(",'message':'{status}'"), NULL);
    stage_deliver_all(s, LACKS);
    assert_int_equal(s->answer.parked, 1);
    stage_destroy(s);
    s = stage_new(ROUTE(",'message':'{status}','missing':'skip'"), NULL);
    stage_deliver_all(s, LACKS);
    assert_int_equal(s->answer.parked, 0);
    stage_destroy(s);
}

/* Whichever template lacks something, and whatever else the message has. */
static void a_message_that_lacks_a_part_is_not_sent(void **state)
{
    (void)state;
    static const char *const members[] = {
        "'message':'{status}','attributes':{'a':'x'}",
        "'message':'m','subject':'{status}','attributes':{'a':'x'}",
        "'message':'m','group':'{status}','subject':'x','attributes':{'a':'x'}",
        "'message':'m','dedupe':'{status}','subject':'x','attributes':{'a':'x'}",
        "'message':'m','attributes':{'a':'{status}','b':'x'}",
        "'message':'m','attributes':{'a':'x','b':'{status}'}",
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        for (int skips = 0; skips < 2; skips++) {
            struct stage *s =
                stage_new(json_printf(ROUTE(",%s%s"), members[i], skips ? ",'missing':'skip'" : ""), NULL);
            stage_deliver_all(s, LACKS);
            assert_int_equal(s->answer.parked, !skips);
            char *sent = stage_file(s, "out.jsonl");
            assert_ptr_equal(strchr(sent, '\n'), sent + strlen(sent) - 1); /* the first record's alone */
            free(sent);
            stage_destroy(s);
        }
}

/* A message that is cut would be worse than none: its record is parked, whatever else the route says of what
 * a template lacks. */
static void a_message_without_an_end_is_not_sent_in_part(void **state)
{
    (void)state;
    static const char *const missing[] = {"reject", "skip", "empty"};
    char value[60001], places[3 * 150 + 1] = "";
    memset(value, 'x', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    for (size_t i = 0; i < 150; i++) /* of 60,000 bytes each: 9 MB */
        memcpy(places + 3 * i, "{v}", sizeof("{v}"));
    for (size_t i = 0; i < 3; i++) {
        struct stage *s =
            stage_new(json_printf(ROUTE(",'message':'%s','missing':'%s'"), places, missing[i]), NULL);
        stage_deliver_all(
            s,
            json_printf("{'Records':[%s,%s]}",
                        json_printf(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",'v':" S("%s"))), value),
                        RECORD("INSERT", "2", KEYS(PK("b")) NEW(PK("b") ",'v':" S("y")))));
        assert_int_equal(s->answer.parked, 1);
        char *failed = stage_file(s, "failed.jsonl"), *sent = stage_file(s, "out.jsonl");
        assert_non_null(strstr(failed, "\"code\":\"TooLarge\""));
        assert_int_equal(strlen(sent), strlen("''") + 150 + 1); /* the other record's, as a line of JSON */
        assert_int_equal(strspn(sent + 1, "y"), 150);
        free(failed);
        free(sent);
        stage_destroy(s);
    }
}

/* The first record that fails is delivered again; what was sent before it is not sent again. */
static void nothing_is_sent_above_the_checkpoint(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct stage *s = stage_new(ROUTE(",'message':'{sequence}','max_records':1"), NULL);
        s->chance = seed;
        s->one_in = 3;
        assert_true(stage_drive(
            s, json(EVENT(CHANGE("1", "B", "A"), CHANGE("2", "C", "B"), CHANGE("3", "D", "C"))), 100));
        char *got = stage_file(s, "out.jsonl"), last = '0';
        for (char *at = got; *at; at++) {
            assert_true(*at < '1' || *at > '3' || *at == last || *at == last + 1);
            last = *at >= '1' && *at <= '3' ? *at : last;
        }
        assert_int_equal(last, '3');
        free(got);
        stage_destroy(s);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        {ROUTE(",'attributes':[]"), "attributes: expected an object"},
        {ROUTE(",'attributes':{'a':1}"), "attributes.a: expected a template"},
        {ROUTE(",'attributes':{'a':'{'}"), "$.routes[0].attributes.a: '{' is not closed"},
        {ROUTE(",'mesage':'x'"), "did you mean \"message\"?"},
        {ROUTE(",'body':'xml'"), "$.routes[0].body"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        stage_refused(cases[i].config, cases[i].message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_or_a_message_is_sent),
        cmocka_unit_test(a_plain_record_has_what_is_there),
        cmocka_unit_test(a_change_from_a_to_b_is_one_line_of_configuration),
        cmocka_unit_test(what_a_template_lacks_has_a_stated_result),
        cmocka_unit_test(a_message_that_lacks_a_part_is_not_sent),
        cmocka_unit_test(a_message_without_an_end_is_not_sent_in_part),
        cmocka_unit_test(nothing_is_sent_above_the_checkpoint),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
