/* Records without an image that a route's `when` needs: none is passed over in silence. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define FOREVER 3600000
#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,'max_parked':null,"
#define WHEN(when)                                                                                           \
    "{" PARKING "'routes':[{'name':'r1','handler':'one'},{'name':'r2','handler':'two','when':" when "}]}"

/* The events are MODIFYs of a stream of NEW_IMAGE. */
static void a_condition_without_its_image_stops_the_route(void **state)
{
    (void)state;
    static const char *const conditions[] = {WHEN("{'old_item':{'v':[1]}}"), WHEN("{'changed':['v']}"),
                                             WHEN("{'old_item':{'v':[{'exists':false}]}}")};
    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new(conditions[i]);
        rig_event(rig, 10, NULL);
        rig_run(rig, FOREVER);
        assert_int_equal(rig->handlers[RIG_ONE].n_applied, 10);
        assert_int_equal(rig->handlers[RIG_TWO].calls, 0);
        assert_string_equal(rig->answer.error.code, "ViewType");
        assert_non_null(strstr(rig->answer.error.text, "the record has no OldImage"));
        rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        rig_destroy(rig);
    }
    struct rig *rig = rig_new(WHEN("{'events':['REMOVE'],'old_item':{'v':[1]}}"));
    rig_event(rig, 10, NULL);
    rig_run(rig, FOREVER);
    rig_answers(rig, "{'batchItemFailures':[]}"); /* nothing is asked of these */
    rig_destroy(rig);
}

/* Nobody says that all records are so. */
static void a_record_that_does_not_say_its_view_type_is_rejected(void **state)
{
    (void)state;
    struct rig *rig = rig_new(WHEN("{'item':{'v':[1]}}"));
    rig_event_text(
        rig,
        "{'Records':[{'eventID':'a','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}},"
        "'SequenceNumber':'1000'}},{'eventID':'b','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'b'}},"
        "'NewImage':{'v':{'N':'1.0'}},'SequenceNumber':'1001'}}]}",
        2);
    rig_run(rig, FOREVER);
    rig_answers(rig, "{'batchItemFailures':[]}");
    assert_int_equal(rig->handlers[RIG_TWO].calls, 1);
    assert_int_equal(rig->handlers[RIG_TWO].n_applied, 1);
    assert_int_equal(rig_port(rig, "dlq")->n, 1);
    assert_non_null(strstr(rig_port(rig, "dlq")->bodies[0], "ViewType"));
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_without_its_image_stops_the_route),
        cmocka_unit_test(a_record_that_does_not_say_its_view_type_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
