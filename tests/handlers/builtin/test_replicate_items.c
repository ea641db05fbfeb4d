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

/* ---- signatures ---- */

/* The row that a replicate makes of an item; the caller frees it. */
static char *signed_row(void)
{
    struct stage *s = stage_new(json_printf(ROUTE, ""), NULL);
    stage_deliver_all(s, EVENT(RECORD("INSERT", "7", KEYS(A) NEW(A ",'v':" N("1")))));
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    row[strcspn(row, "\n")] = '\0';
    stage_destroy(s);
    return row;
}

/* Is an item that looks so taken for what another replicate wrote? */
static bool is_echo(const char *image)
{
    struct stage *s = stage_new(json_printf(ROUTE, ",'unsigned':'copy'"), NULL);
    stage_deliver_all(
        s, json_printf("{'Records':[{'eventID':'e','eventName':'INSERT','eventSource':'aws:dynamodb',"
                       "'dynamodb':{" KEYS(A) ",'NewImage':%s,'SequenceNumber':'9','StreamViewType':"
                                              "'NEW_AND_OLD_IMAGES'}}]}",
                       image));
    assert_int_equal(s->answer.parked, 0);
    bool is_left_out = sl_pipeline_stats(s->p, 0).effects[SL_EFFECT_LEFT_OUT] == 1;
    stage_destroy(s);
    return is_left_out;
}

/* Taken for an echo, a user's change would be lost: with any other byte, length or type it is none. */
static void every_byte_of_a_signature_counts(void **state)
{
    (void)state;
    char *row = signed_row(), other[1024];
    const char *name = "\"sluice_write\":{\"";
    char *type = strstr(row, name) + strlen(name), *text = strchr(type, ':') + 2;
    size_t n = strcspn(text, "\""), rest = strlen(text + n) + 1;
    assert_true(is_echo(row));
    for (size_t i = 0; i < n; i++) {
        char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        assert_false(is_echo(row));
        text[i] = was;
        size_t at = (size_t)(text - row) + i; /* cut here */
        memcpy(other, row, at);
        memcpy(other + at, text + n, rest);
        assert_false(is_echo(other));
    }
    snprintf(other, sizeof(other), "%.*sS\":[\"%.*s\"]%s", (int)(type + 1 - row), row, (int)n, text,
             text + n + 1);
    assert_false(is_echo(other)); /* a set of strings */
    assert_true(is_echo(row));
    char *v = strstr(row, "\"N\":\"1\"") + 5;
    *v = '2'; /* the item was edited */
    assert_false(is_echo(row));
    free(row);
}

/* ---- names ---- */

static void names_may_be_exchanged(void **state)
{
    (void)state;
    static const struct {
        const char *members, *row;
    } cases[] = {
        {"'rename':{'a':'b','b':'a'}", "{'b':{'S':'x'},'a':{'S':'y'},'c':{'S':'z'}"},
        {"'rename':{'a':'b','b':'c'}", "{'b':{'S':'x'},'c':{'S':'y'}"},
        {"'rename':{'b':'c','a':'b'}", "{'b':{'S':'x'},'c':{'S':'y'}"},
        {"'rename':{'a':'b'}", "{'b':{'S':'x'},'c':{'S':'z'}"},
        {"'rename':{'a':'b'},'drop':['b']", "{'b':{'S':'x'},'c':{'S':'z'}"},
        {"'rename':{'a':'b'},'set':{'a':'made'}", "{'b':{'S':'x'},'c':{'S':'z'},'a':{'S':'made'}"},
        {"'rename':{'c':'d'},'project':['a','c']", "{'a':{'S':'x'},'d':{'S':'z'}"},
        {"'set':{'a':'{b}','b':'{a}'}", "{'c':{'S':'z'},'a':{'S':'y'},'b':{'S':'x'}"},
        {"'rename':{'a':'a1','b':'b1','c':'c1','d':'d1','e':'e1','f':'f1'}",
         "{'a1':{'S':'x'},'b1':{'S':'y'},'c1':{'S':'z'}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s =
            stage_new(json_printf(ROUTE, json_printf(",'guard':'none',%s", cases[i].members)), NULL);
        stage_deliver_all(
            s, EVENT(RECORD("INSERT", "7", KEYS(A) NEW("'a':" S("x") ",'b':" S("y") ",'c':" S("z") "," A))));
        json_t *row = the_row(s), *wanted = json_loads(json_printf("%s," A "}", cases[i].row), 0, NULL);
        if (!json_equal(row, wanted))
            fail_msg("%s: %s", cases[i].members, json_dumps(row, 0));
        json_decref(row);
        json_decref(wanted);
        stage_destroy(s);
    }
}

/* ---- what a stream has to carry ---- */

static void a_view_type_that_cannot_serve_is_refused(void **state)
{
    (void)state;
    static const char *const views[] = {"KEYS_ONLY", "OLD_IMAGE", "NEW_IMAGE", "NEW_AND_OLD_IMAGES"};
    static const struct {
        const char *members;
        bool needs_images;
    } cases[] = {
        {"", true},
        {",'source':'sqlite:${DIR}/db?table=source'", false},
        {",'when':{'events':['REMOVE']}", false},
        {",'when':{'events':['REMOVE','INSERT']}", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t v = 0; v < 4; v++) {
            const char *config =
                json_printf("{'view_type':'%s',%s", views[v], json_printf(ROUTE, cases[i].members) + 1);
            if (cases[i].needs_images && v < 2)
                stage_refused(config,
                              json_printf("a stream of view type %s does not carry the items", views[v]));
            else
                stage_destroy(stage_new(config, NULL));
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
        cmocka_unit_test(every_byte_of_a_signature_counts),
        cmocka_unit_test(names_may_be_exchanged),
        cmocka_unit_test(a_view_type_that_cannot_serve_is_refused),
        cmocka_unit_test(an_image_without_its_key_is_parked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
