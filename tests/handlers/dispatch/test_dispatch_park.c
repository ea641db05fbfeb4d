/* Where parked records lie. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_lies_below_the_day_of_its_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
