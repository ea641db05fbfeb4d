/* What a replica's item holds, of images that carry our attributes or nothing at all. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTE                                                                                                \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'%s}]}"

#define A       PK("a")
#define ZEROS39 "000000000000000000000000000000000000000"
#define OLDER   "{'S':'000000:" ZEROS39 "5:0000000000000000'}"
#define NEWER   "000000:" ZEROS39 "7:0001767265199000"

/* The one row, in which no name stands twice. */
static json_t *the_row(const struct stage *s)
{
    char *text = stage_query(s, "db", "SELECT item FROM replica");
    json_error_t error;
    json_t *row = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!row)
        fail_msg("%s: %s", error.text, text);
    free(text);
    return row;
}

/* A user's change of an item with a guard leaves the guard as it is; a put may carry anything. On the replica
 * the item has one guard and one signature, those of this change, and everything else as it came. */
static void our_attributes_stand_once(void **state)
{
    (void)state;
    static const char *const modes[] = {"", ",'tombstones':{'table':'side'}"};
    static const char *const images[] = {
        A ",'v':" N("2"),
        A ",'v':" N("2") ",'sluice_order':" OLDER,
        "'sluice_order':" OLDER "," A ",'v':" N("2"),
        A ",'sluice\\u005forder':" OLDER ",'v':" N("2"),
        A ",'v':" N("2") ",'sluice_write':{'S':'mine'}",
        A ",'sluice_write':{'S':'mine'},'v':" N("2") ",'sluice_order':" OLDER,
    };
    for (size_t i = 0; i < 2 * sizeof(images) / sizeof(images[0]); i++) {
        const char *image = images[i / 2];
        struct stage *s = stage_new(json_printf(ROUTE, modes[i % 2]), NULL);
        stage_deliver_all(
            s, json_printf(EVENT(RECORD("MODIFY", "7", KEYS(A) NEW("%s") OLD("%s"))), image, image));
        json_t *row = the_row(s), *wanted = json_loads(json("{'v':" N("2") "," A "}"), 0, NULL);
        assert_string_equal(json_string_value(json_object_get(json_object_get(row, "sluice_order"), "S")),
                            NEWER);
        const char *signature = json_string_value(json_object_get(json_object_get(row, "sluice_write"), "S"));
        assert_int_equal(strncmp(signature, "1:", 2), 0);
        json_object_del(row, "sluice_order");
        json_object_del(row, "sluice_write");
        assert_true(json_equal(row, wanted));
        assert_int_equal(s->answer.parked, 0);
        json_decref(row);
        json_decref(wanted);
        stage_destroy(s);
    }
}

/* No table has an item without its key: the record is at fault, and the others are written. */
static void an_image_without_its_key_is_parked(void **state)
{
    (void)state;
    static const char *const modes[] = {"", ",'guard':{'table':'side'}", ",'guard':'none'",
                                        ",'tombstones':{'table':'side'}", ",'drop':['x']"};
    static const char *const images[] = {"", " ", "'v':" N("2")};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        for (size_t k = 0; k < 3; k++) {
            struct stage *s = stage_new(json_printf(ROUTE, modes[i]), NULL);
            stage_deliver(s, sl_span_str(json_printf(EVENT(RECORD("INSERT", "6", KEYS(PK("b")) NEW("%s")),
                                                           RECORD("INSERT", "7", KEYS(A) NEW(A))),
                                                     images[k])));
            assert_int_equal(stage_checkpoint(s), 2);
            assert_int_equal(s->answer.parked, 1);
            char *failed = stage_file(s, "failed.jsonl");
            assert_non_null(strstr(failed, "attribute PK of the key is missing in the item"));
            json_t *row = the_row(s);
            assert_non_null(json_object_get(row, "PK"));
            json_decref(row);
            free(failed);
            stage_destroy(s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_attributes_stand_once),
        cmocka_unit_test(an_image_without_its_key_is_parked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
