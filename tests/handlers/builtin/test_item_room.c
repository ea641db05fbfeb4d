/* The largest items: the room that a guard and its signature leave. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'" members "}]}"

#define A              PK("a")
#define ITEM(v)        A ",'v':" N(v)
#define INSERT(seq, v) RECORD("INSERT", seq, KEYS(A) NEW(ITEM(v)))

/* Names and texts: the size of an item that has nothing else, by DynamoDB's formula. */
static size_t bytes_of(const char *row)
{
    size_t bytes = 0;
    json_t *item = json_loads(row, 0, NULL), *value;
    const char *name;
    assert_non_null(item);
    json_object_foreach(item, name, value) bytes +=
        strlen(name) + json_string_length(json_object_get(value, "S"));
    json_decref(item);
    return bytes;
}

/* The row of an item with a text of so many bytes; empty: it was rejected. */
static char *row_of(const char *members, size_t len, char **failed)
{
    char *event = malloc(1 << 20), *text = malloc(1 << 19);
    memset(text, 'x', len);
    text[len] = '\0';
    snprintf(event, 1 << 20, EVENT(RECORD("INSERT", "2", KEYS(A) NEW(A ",'t':{'S':'%s'}"))), text);
    struct stage *s = stage_new(json_printf(ROUTE("%s"), members), NULL);
    stage_deliver_all(s, event);
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    *failed = stage_file(s, "failed.jsonl");
    stage_destroy(s);
    free(event);
    free(text);
    return row;
}

/* An item is taken up to the very byte that its guard leaves. */
static void an_item_has_all_the_room_that_its_guard_leaves(void **state)
{
    (void)state;
    char *failed, *row = row_of("", 1, &failed);
    const size_t most = 400 * 1024, guarded = bytes_of(row) - 1, bare = 4; /* PK, a, t */
    free(row);
    free(failed);
    const struct {
        size_t len;
        const char *code; /* NULL: it is taken */
    } cases[] = {{most - guarded - 1, NULL},
                 {most - guarded, NULL},
                 {most - guarded + 1, "ItemTooLargeForGuard"},
                 {most - bare, "ItemTooLargeForGuard"},
                 {most - bare + 1, "ValidationException"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        row = row_of("", cases[i].len, &failed);
        assert_int_equal(*row != '\0', !cases[i].code);
        if (!cases[i].code)
            assert_int_equal(bytes_of(row), guarded + cases[i].len);
        else if (!failed || !strstr(failed, cases[i].code))
            fail_msg("case %zu: no %s: %.300s", i, cases[i].code, failed ? failed : "");
        free(row);
        free(failed);
    }
}

/* Where the guard is not on the item, it has all the room that there is. */
static void a_guard_of_a_table_of_its_own_takes_no_room(void **state)
{
    (void)state;
    static const char *const routes[] = {",'guard':{'table':'side'}",
                                         ",'guard':{'table':'side'},'drop':['x']",
                                         ",'guard':'none','drop':['x']"};
    const size_t most = 400 * 1024 - 4; /* PK, a, t */
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        for (size_t more = 0; more < 2; more++) {
            char *failed, *row = row_of(routes[i], most + more, &failed);
            assert_int_equal(*row == '\0', more);
            assert_int_equal(failed && strstr(failed, "ValidationException"), more);
            free(row);
            free(failed);
        }
}

static void an_item_without_room_for_its_guard_is_rejected_by_name(void **state)
{
    (void)state;
    char *event = malloc(1 << 20), *text = malloc(1 << 19);
    memset(text, 'x', 400 * 1024 - 60);
    text[400 * 1024 - 60] = '\0';
    snprintf(event, 1 << 20, EVENT(INSERT("1", "1"), RECORD("MODIFY", "2", KEYS(A) NEW(A ",'t':{'S':'%s'}"))),
             text);
    struct stage *s = stage_new(ROUTE(""), NULL);
    stage_deliver_all(s, event);
    assert_int_equal(s->answer.parked, 1);
    char *failed = stage_file(s, "failed.jsonl"), *row = stage_query(s, "db", "SELECT item FROM replica");
    assert_non_null(strstr(failed, "ItemTooLargeForGuard"));
    assert_non_null(strstr(row, json("'v':" N("1"))));
    free(failed);
    free(row);
    free(event);
    free(text);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_has_all_the_room_that_its_guard_leaves),
        cmocka_unit_test(a_guard_of_a_table_of_its_own_takes_no_room),
        cmocka_unit_test(an_item_without_room_for_its_guard_is_rejected_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
