/* Where parked records lie. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

/* Parked again a day later, the record has the same object. */
static void an_object_lies_below_the_day_of_its_change(void **state)
{
    (void)state;
    static const struct {
        const char *seconds, *day;
    } cases[] = {{"0", "1970/01/01"}, {"1709164799", "2024/02/28"}, {"1709164800", "2024/02/29"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new("{'on_failure':'memo:box','report_batch_item_failures':true,"
                                  "'routes':[{'name':'r1','handler':'one'}]}");
        rig->handlers[RIG_ONE].plan[0] = RIG_POISON;
        const char *event = json_printf(
            "{'Records':[{'eventID':'e','eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':{'Keys':"
            "{'PK':{'S':'a'}},'SequenceNumber':'1000','ApproximateCreationDateTime':%s,'StreamViewType':"
            "'KEYS_ONLY'}}]}",
            cases[i].seconds);
        rig_event_text(rig, event, 1);
        rig_run(rig, 5000);
        char wanted[64];
        snprintf(wanted, sizeof(wanted), "r1/%s/1000-e.json", cases[i].day);
        assert_int_equal(rig_port(rig, "box")->n, 1);
        assert_string_equal(rig_port(rig, "box")->keys[0], wanted);
        rig_destroy(rig);
    }
}

/* Without an event's id the sequence number alone names the object. */
static void a_record_without_an_id_has_an_object(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{'on_failure':'memo:box','report_batch_item_failures':true,"
                              "'routes':[{'name':'r1','handler':'one'}]}");
    rig->handlers[RIG_ONE].plan[0] = RIG_POISON;
    rig_event_text(
        rig,
        json("{'Records':[{'eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':{'Keys':{'PK':{'S':"
             "'a'}},'SequenceNumber':'1000','ApproximateCreationDateTime':0}}]}"),
        1);
    rig_run(rig, 5000);
    assert_int_equal(rig_port(rig, "box")->n, 1);
    assert_string_equal(rig_port(rig, "box")->keys[0], "r1/1970/01/01/1000.json");
    rig_destroy(rig);
}

/* A message that holds less than its record would be worse than none: what is too large is said, and how
 * large it is. */
static void a_message_that_is_too_large_is_told(void **state)
{
    (void)state;
    static const struct {
        size_t bytes, most;
        const char *text;
    } cases[] = {
        {100, 200, " bytes, more than mem:dlq takes (200)"},
        {9 << 20, 0, "cannot be parked: the message has more than 8388608 bytes; it was rejected: "}};
    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_new("{'on_failure':'mem:dlq','report_batch_item_failures':true,"
                                  "'routes':[{'name':'r1','handler':'one'}]}");
        *rig_port(rig, "dlq")->max_bytes = cases[i].most;
        rig->handlers[RIG_ONE].plan[0] = RIG_POISON;
        char *value = calloc(1, cases[i].bytes + 1);
        memset(value, 'x', cases[i].bytes);
        rig_event_text(
            rig,
            json_printf("{'Records':[{'eventID':'e','eventName':'REMOVE','eventSource':'aws:dynamodb',"
                        "'dynamodb':{'Keys':{'PK':{'S':'%s'}},'SequenceNumber':'1000'}}]}",
                        value),
            1);
        rig_run(rig, 5000);
        assert_string_equal(rig->answer.error.code, "TooLarge");
        assert_int_equal(rig->answer.error.status, SL_REJECT);
        if (!strstr(rig->answer.error.text, cases[i].text))
            fail_msg("%s", rig->answer.error.text);
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        free(value);
        rig_destroy(rig);
    }
}

/* One step parks for two targets; one of them is down until the time ends. What the other took before it is
 * parked, all else fails, and nothing is parked twice. */
static void a_target_that_is_down_fails_its_own(void **state)
{
    (void)state;
    for (size_t down = 0; down < 2; down++) {
        struct rig *rig = rig_new("{'report_batch_item_failures':true,'routes':["
                                  "{'name':'r1','handler':'one','on_failure':'mem:a'},"
                                  "{'name':'r2','handler':'two','on_failure':'mem:b'}]}");
        struct rig_port *broken = rig_port(rig, down ? "b" : "a"), *other = rig_port(rig, down ? "a" : "b");
        rig->handlers[RIG_ONE].marks = rig->handlers[RIG_TWO].marks = true;
        memset(rig->handlers[RIG_ONE].plan + 1, RIG_POISON, 2);
        memset(rig->handlers[RIG_TWO].plan + 1, RIG_POISON, 2);
        broken->status = SL_RETRY;
        broken->failures = SIZE_MAX;
        rig_event(rig, 5, NULL);
        rig_run(rig, 5000);
        assert_int_equal(rig->answer.checkpoint, 1);
        assert_string_equal(rig->answer.error.code, "PortPlanned");
        assert_int_equal(rig->answer.error.status, SL_RETRY);
        assert_non_null(strstr(rig->answer.error.text, down ? "route r2, " : "route r1, "));
        size_t parked = down ? 2 : 0;
        assert_int_equal(other->n, parked);
        assert_int_equal(sl_pipeline_stats(rig->p, !down).parked, parked);
        assert_int_equal(sl_pipeline_stats(rig->p, !down).failed, 2 - parked);
        assert_int_equal(sl_pipeline_stats(rig->p, down).failed, 2);
        broken->failures = 0;
        rig_run(rig, 5000);
        rig_answers(rig, "{'batchItemFailures':[]}");
        assert_true(other->n == 2 && broken->n == 2);
        rig_destroy(rig);
    }
}

/* Records are parked many at a time, unless another route has to act between them: one that takes none of
 * the batch does not. */
static void a_route_without_records_slows_no_parking(void **state)
{
    (void)state;
    static const struct {
        const char *route;
        size_t calls, largest;
    } cases[] = {
        {"", 3, 30}, /* 10, 20, and what is left of 40 */
        {",{'name':'r2','handler':'once','when':{'events':['REMOVE']}}", 3, 30},
        {",{'name':'r2','handler':'once'}", 60, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig =
            rig_new(json_printf("{'on_failure':'mem:dlq','report_batch_item_failures':true,'max_parked':null,"
                                "'routes':[{'name':'r1','handler':'one'}%s]}",
                                cases[i].route));
        rig->handlers[RIG_ONE].marks = true;
        memset(rig->handlers[RIG_ONE].plan, RIG_POISON, 60);
        rig_event(rig, 60, NULL);
        rig_run(rig, 60000);
        struct rig_port *dlq = rig_port(rig, "dlq");
        assert_int_equal(dlq->n, 60);
        assert_int_equal(dlq->calls, cases[i].calls);
        assert_int_equal(dlq->largest, cases[i].largest);
        assert_int_equal(rig->answer.parked, 60);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_lies_below_the_day_of_its_change),
        cmocka_unit_test(a_record_without_an_id_has_an_object),
        cmocka_unit_test(a_message_that_is_too_large_is_told),
        cmocka_unit_test(a_target_that_is_down_fails_its_own),
        cmocka_unit_test(a_route_without_records_slows_no_parking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
