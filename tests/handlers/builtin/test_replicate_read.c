/* Streams without images: the items are read from the source table, as they are now. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTE                                                                                                \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:${DIR}/db?table=replica','source':'sqlite:${DIR}/db?table=source'%s}]}"

#define A       PK("a")
#define CHANGED EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "1", KEYS(A)))
#define GUARD   ",'sluice_order':" S("000000:0000000000000000000000000000000000000005:0001767265199000")

static struct stage *stage_of(const char *members, const char *item)
{
    struct stage *s = stage_new(json_printf(ROUTE, members), NULL);
    stage_change(s, "db", "CREATE TABLE IF NOT EXISTS source(key TEXT PRIMARY KEY, item TEXT NOT NULL)");
    char sql[1000];
    snprintf(sql, sizeof(sql), "INSERT INTO source VALUES('{\"PK\":{\"S\":\"a\"}}', '%s')",
             json_printf("{%s}", item));
    stage_change(s, "db", sql);
    return s;
}

static char *replica(const struct stage *s)
{
    return stage_query(s, "db", "SELECT item FROM replica");
}

/* A guard on the source's item: only both images would say whether a replicate made the change. */
static void an_item_that_carries_a_guard_stops_an_inline_route_alone(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        bool stops;
    } cases[] = {{"", true},
                 {",'tombstones':{'table':'marks'}", true},
                 {",'replicated':'copy'", false},
                 {",'guard':{'table':'guards'}", false},
                 {",'guard':'none'", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int carries = 0; carries < 2; carries++) {
            struct stage *s = stage_of(cases[i].members, carries ? A ",'v':" N("7") GUARD : A ",'v':" N("7"));
            bool stops = carries && cases[i].stops;
            stage_deliver(s, json_span(CHANGED));
            assert_int_equal(s->answer.error.status, stops ? SL_FATAL : SL_OK);
            if (stops)
                assert_string_equal(s->answer.error.code, "ViewType");
            char *row = replica(s);
            assert_int_equal(strstr(row, json("'v':" N("7"))) != NULL, !stops);
            free(row);
            stage_destroy(s);
        }
}

/* In a database another program may have written the item, over several lines: each mode reads it as it is.
 */
static void a_source_may_be_laid_out_as_it_likes(void **state)
{
    (void)state;
    static const char *const modes[] = {"", ",'tombstones':{'table':'marks'}", ",'guard':{'table':'guards'}",
                                        ",'guard':'none','key':{'id':'{PK}'}", ",'rename':{'v':'w'}"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct stage *s = stage_of(modes[i], A);
        stage_change(
            s, "db",
            "UPDATE source SET item = '\n { \"PK\" : {\"S\" : \"a\"},\r\n\t\"v\":\n{ \"N\":\"7\" } }\n '");
        stage_deliver_all(s, CHANGED);
        assert_int_equal(s->answer.parked, 0);
        char *row = replica(s);
        json_t *item = json_loads(row, 0, NULL);
        const json_t *v = json_object_get(item, strstr(modes[i], "rename") ? "w" : "v");
        assert_string_equal(json_string_value(json_object_get(v, "N")), "7");
        json_decref(item);
        free(row);
        stage_destroy(s);
    }
}

/* The item has gone since: by whom, its own removal will say. */
static void an_item_that_has_gone_is_removed_unless_expired_ones_are_kept(void **state)
{
    (void)state;
    static const char *const members[] = {"", ",'guard':{'table':'guards'}"};
    for (size_t i = 0; i < 2; i++)
        for (int keeps = 0; keeps < 2; keeps++) {
            char more[100];
            snprintf(more, sizeof(more), "%s%s", members[i], keeps ? ",'expired':'keep'" : "");
            struct stage *s = stage_of(more, A ",'v':" N("7"));
            stage_deliver_all(s, CHANGED);
            stage_change(s, "db", "DELETE FROM source");
            stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "2", KEYS(A))));
            char *row = replica(s);
            assert_int_equal(strstr(row, json("'v':" N("7"))) != NULL, keeps);
            free(row);
            stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "REMOVE", "3", KEYS(A))));
            row = replica(s);
            assert_null(strstr(row, json("'v':" N("7"))));
            free(row);
            stage_destroy(s);
        }
}

/* What the record carries is not read, and what is not there is read once for all records of an item. */
static void only_what_the_stream_lacks_is_read(void **state)
{
    (void)state;
    struct stage *s = stage_of(",'guard':'none'", A ",'v':" N("7"));
    stage_deliver_all(s, EVENT(RECORD_OF("NEW_IMAGE", "MODIFY", "1", KEYS(A) NEW(A ",'v':" N("1")))));
    assert_int_equal(s->spent.reads, 0);
    stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "REMOVE", "2", KEYS(A))));
    assert_int_equal(s->spent.reads, 0);
    stage_deliver_all(s, EVENT(RECORD_OF("KEYS_ONLY", "MODIFY", "3", KEYS(A)),
                               RECORD_OF("KEYS_ONLY", "MODIFY", "4", KEYS(A)),
                               RECORD_OF("KEYS_ONLY", "REMOVE", "5", KEYS(PK("b")))));
    assert_int_equal(s->spent.reads, 1);
    char *row = replica(s);
    assert_string_equal(row, json("{" A ",'v':" N("7") "}\n"));
    free(row);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_may_be_laid_out_as_it_likes),
        cmocka_unit_test(an_item_that_carries_a_guard_stops_an_inline_route_alone),
        cmocka_unit_test(an_item_that_has_gone_is_removed_unless_expired_ones_are_kept),
        cmocka_unit_test(only_what_the_stream_lacks_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
