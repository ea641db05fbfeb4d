/* What becomes of changes that a replica's table refuses: each of a slice for itself. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE                                                                                                \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica'%s}]}"

#define CHANGE(event, seq, id) RECORD(event, seq, KEYS(PK(id)) NEW(PK(id) ",'v':" N(seq)) OLD(PK(id)))
#define THREE(event, x, y, z)  EVENT(CHANGE(event, x, "a"), CHANGE(event, y, "b"), CHANGE(event, z, "c"))

#define WAVES 12 /* requests for a change in one call of the handler */

/* ---- a row that changes between two requests ---- */

/* What somebody makes of the row. */
enum row { GUARDED, BARE, ABSENT, NEWER };

struct disturbance {
    enum row row;
    size_t at, calls; /* before which request; how many there were */
};

static void put_row(struct stage *s, enum row row)
{
    static const char *const changes[] = {NULL,
                                          "INSERT OR REPLACE INTO replica SELECT * FROM newer; UPDATE "
                                          "replica SET item = '{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"8\"}}'",
                                          "DELETE FROM replica",
                                          "INSERT OR REPLACE INTO replica SELECT * FROM newer"};
    if (changes[row])
        stage_change(s, "db", changes[row]);
}

static enum stage_fate disturb_once(struct stage *s)
{
    struct disturbance *d = s->context;
    if (++d->calls == d->at)
        put_row(s, d->row);
    return STAGE_WELL;
}

/* The row is there as the change 1 left it, or as `first` says, and becomes `d->row` while change 2 is
 * written. */
static char *row_after(const char *event, enum row first, struct disturbance *d)
{
    struct stage *s = stage_new(json_printf(ROUTE, ",'tombstones':{'table':'marks'}"), NULL);
    stage_deliver_all(s, EVENT(CHANGE("INSERT", "9", "a")));
    stage_change(s, "db", "CREATE TABLE newer AS SELECT * FROM replica");
    stage_change(s, "db", "DELETE FROM replica");
    stage_deliver_all(s, EVENT(CHANGE("INSERT", "1", "a")));
    put_row(s, first);
    s->at_table = disturb_once;
    s->context = d;
    stage_deliver_all(s, event);
    assert_int_equal(s->answer.parked, 0);
    s->at_table = NULL;
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    stage_destroy(s);
    return row;
}

/* A removal puts its tombstone with the first request, or with the second where the row had no guard, and
 * clears it with the next: what the application puts in between is a new item. */
static bool is_put_over_tombstone(enum row first, size_t at)
{
    return (first == GUARDED && at == 2) || (first == BARE && at == 3);
}

/* A newer row is never overwritten or removed, whenever it comes; what is absent, or has no guard, is written
 * or stays away as the change says. */
static void a_row_that_changes_meanwhile_is_seen(void **state)
{
    (void)state;
    static const char *const events[] = {EVENT(CHANGE("MODIFY", "2", "a")),
                                         EVENT(CHANGE("REMOVE", "2", "a"))};
    for (int is_removal = 0; is_removal < 2; is_removal++)
        for (enum row first = GUARDED; first <= ABSENT; first++)
            for (enum row then = GUARDED; then <= NEWER; then++)
                for (size_t at = 1; at <= 4; at++) {
                    struct disturbance d = {then, at, 0};
                    char *row = row_after(events[is_removal], first, &d);
                    bool came = d.calls >= at, is_two = strstr(row, json("'v':" N("2"))) != NULL;
                    bool is_tombstone = strstr(row, "sluice_deleted") != NULL;
                    bool is_right = is_removal ? !row[0] : is_two;
                    if (came && then == NEWER)
                        is_right = strstr(row, json("'v':" N("9"))) != NULL;
                    else if (came && then == BARE && is_removal && is_put_over_tombstone(first, at))
                        is_right = strstr(row, json("'v':" N("8"))) != NULL;
                    if (!is_right || is_tombstone)
                        fail_msg("%s, from %d to %d before request %zu of %zu: %s", events[is_removal],
                                 (int)first, (int)then, at, d.calls, row);
                    free(row);
                }
}

/* ---- items that keep changing ---- */

/* Somebody removes the items and puts old ones, before each request. */
static enum stage_fate disturb(struct stage *s)
{
    size_t *calls = s->context;
    stage_change(s, "db", ++*calls % 2 ? "DELETE FROM replica" : "INSERT INTO replica SELECT * FROM kept");
    return STAGE_WELL;
}

static void items_that_keep_changing_are_tried_again(void **state)
{
    (void)state;
    struct stage *s = stage_new(json_printf(ROUTE, ",'tombstones':{'table':'marks'}"), NULL);
    size_t calls = 0;
    stage_deliver_all(s, THREE("INSERT", "1", "2", "3"));
    stage_change(s, "db", "CREATE TABLE kept AS SELECT * FROM replica");
    sl_pipeline_stats_reset(s->p);
    s->at_table = disturb;
    s->context = &calls;
    s->time_ms = 10; /* for one call of the handler */
    stage_deliver(s, json_span(THREE("MODIFY", "4", "5", "6")));
    assert_int_equal(calls, WAVES);
    assert_int_equal(stage_checkpoint(s), 0);
    assert_string_equal(s->answer.error.code, "ItemKeepsChanging");
    assert_int_equal(s->answer.error.status, SL_RETRY);
    assert_non_null(
        strstr(s->answer.error.text, "replica: the item changed between 12 requests; the change is retried"));
    struct sl_route_stats stats = sl_pipeline_stats(s->p, 0);
    assert_int_equal(stats.failed, 3); /* each of them, not the first alone */
    assert_int_equal(stats.applied, 0);
    s->at_table = NULL;
    s->time_ms = 60000;
    stage_deliver_all(s, THREE("MODIFY", "4", "5", "6"));
    char *rows = stage_query(s, "db", "SELECT count(*) FROM replica WHERE item LIKE '%\"v\":{\"N\":\"_\"}%'");
    assert_string_equal(rows, "3\n");
    free(rows);
    stage_destroy(s);
}

/* ---- records that lack something ---- */

/* Of a stream whose view type is known, all records are such: the route stops. Else the record is parked
 * alone. */
static void a_record_without_its_image_is_told(void **state)
{
    (void)state;
    static const char image[] =
        "the record has no NewImage: name the source table in \\\"source\\\" so that items are "
        "read back, or enable the stream with NEW_IMAGE or NEW_AND_OLD_IMAGES";
    static const struct {
        const char *members; /* of the second of three records */
        bool stops;
    } cases[] = {
        {"'Keys':{" PK("b") "}", false},
        {"'Keys':{" PK("b") "},'StreamViewType':'NEW_IMAGE'", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE, ""), NULL);
        const char *event = json_printf(
            EVENT("%s",
                  "{'eventID':'e','eventName':'INSERT','eventSource':'aws:dynamodb','dynamodb':{%s,"
                  "'SequenceNumber':'6'}}",
                  "%s"),
            CHANGE("INSERT", "5", "a"), cases[i].members, CHANGE("INSERT", "7", "c"));
        stage_deliver(s, sl_span_str(event));
        char *failed = stage_file(s, "failed.jsonl");
        assert_int_equal(s->answer.parked, !cases[i].stops);
        if (cases[i].stops) {
            assert_int_equal(s->answer.error.status, SL_FATAL);
            assert_non_null(strstr(s->answer.error.text, "the record has no NewImage"));
        } else {
            assert_int_equal(stage_checkpoint(s), 3);
            assert_non_null(strstr(failed, image));
            assert_int_equal(sl_pipeline_stats(s->p, 0).applied, 2);
        }
        free(failed);
        stage_destroy(s);
    }
}

/* ---- refusals that are warned of ---- */

#define GUARD(order, time) "000000:" ZEROS39 order ":00017672" time
#define ZEROS39            "000000000000000000000000000000000000000"

/* A change is newer than the guard that refused it only if that is a guard, of a greater order and an older
 * time: then the source may be another table. What somebody else wrote there has no time. */
static void only_a_guard_tells_the_time(void **state)
{
    (void)state;
    static const struct {
        const char *guard;
        bool is_warned_of;
    } cases[] = {
        {GUARD("7", "65198000"), true},  /* a greater order, a second before the change */
        {GUARD("7", "65199000"), false}, /* the same time */
        {GUARD("7", "65200000"), false}, /* a later time */
        {GUARD("5", "65199000"), false}, /* the change itself */
        {GUARD("7", "65198000") "0", false}, {"zzz", false}, {"9", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE, ""), NULL);
        char sql[400];
        stage_deliver_all(s, EVENT(CHANGE("INSERT", "1", "a")));
        snprintf(sql, sizeof(sql),
                 "UPDATE replica SET item = '{\"PK\":{\"S\":\"a\"},\"sluice_order\":{\"S\":\"%s\"}}'",
                 cases[i].guard);
        stage_change(s, "db", sql);
        stage_deliver_all(s, EVENT(CHANGE("MODIFY", "5", "a")));
        assert_int_equal(s->answer.parked, 0);
        char *row = stage_query(s, "db", "SELECT item FROM replica"), *log = stage_log(s);
        assert_non_null(strstr(row, cases[i].guard)); /* the change is overtaken */
        assert_int_equal(strstr(log, "newer by time") != NULL, cases[i].is_warned_of);
        assert_int_equal(strstr(log, "RefusedNewer") != NULL, cases[i].is_warned_of);
        free(row);
        free(log);
        stage_destroy(s);
    }
}

static void of_good_changes_nothing_is_said(void **state)
{
    (void)state;
    struct stage *s = stage_new(json_printf(ROUTE, ""), NULL);
    stage_deliver_all(s, THREE("INSERT", "1", "2", "3"));
    stage_deliver_all(s, THREE("MODIFY", "4", "5", "6"));
    stage_deliver_all(s, THREE("MODIFY", "4", "5", "6"));
    char *log = stage_log(s);
    assert_string_equal(log, "");
    free(log);
    stage_destroy(s);
}

/* One line counts all that were refused in a call. */
static void refusals_are_counted(void **state)
{
    (void)state;
    struct stage *s = stage_new(json_printf(ROUTE, ""), NULL);
    stage_deliver_all(s, THREE("INSERT", "91", "92", "93"));
    char *event = strdup(THREE("MODIFY", "4", "5", "6"));
    for (char *at = event; (at = strstr(at, "1767265199")); at += 10)
        memcpy(at, "1767265300", 10);
    stage_deliver_all(s, event);
    char *log = stage_log(s);
    assert_non_null(
        strstr(log, "3 changes were refused by their guards although they are newer by time (one is 6)"));
    assert_non_null(strstr(log, "\"RefusedNewer\":3"));
    free(log);
    free(event);
    stage_destroy(s);
}

/* ---- echoes without a signature ---- */

#define GUARD_OF(seq)                                                                                        \
    ",'sluice_order':" S("000000:000000000000000000000000000000000000000" seq ":0001767265199000")
#define UNSIGNED(seq, id, guard)                                                                             \
    RECORD("MODIFY", seq, KEYS(PK(id)) NEW(PK(id) ",'v':" N("2") GUARD_OF(guard)) OLD(PK(id) ",'v':" N("1")))

static size_t count_of(const char *text, const char *words)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        n++;
    return n;
}

/* Each is counted; what to do about them is said once. */
static void echoes_without_a_signature_are_counted_and_told_of(void **state)
{
    (void)state;
    struct stage *s = stage_new(json_printf(ROUTE, ""), NULL);
    stage_deliver_all(s, EVENT(UNSIGNED("11", "a", "5"), UNSIGNED("12", "b", "6")));
    char *log = stage_log(s);
    assert_int_equal(count_of(log, "\"UnsignedEchoes\":2"), 1);
    assert_int_equal(count_of(log, "2 changes have a new sluice_order and no sluice_write for it"), 1);
    free(log);
    stage_deliver_all(s, EVENT(UNSIGNED("13", "a", "7")));
    log = stage_log(s);
    assert_int_equal(count_of(log, "\"UnsignedEchoes\":1"), 1);
    assert_int_equal(count_of(log, "changes have a new sluice_order"), 1);
    free(log);
    char *rows = stage_query(s, "db", "SELECT count(*) FROM replica");
    assert_string_equal(rows, "0\n"); /* nothing was replicated */
    free(rows);
    stage_destroy(s);
}

/* ---- items that cannot have a guard ---- */

/* The source's key may be called as one of our attributes is: the route stops, and names the option. */
static void a_key_that_is_called_like_a_guard_stops_the_route(void **state)
{
    (void)state;
#define KEYED(name) "'" name "':" S("x") "," PK("a")
#define PUT(name)   EVENT(RECORD("INSERT", "1", KEYS(KEYED(name)) NEW(KEYED(name))))
    static const struct {
        const char *members, *event, *text; /* NULL: it is no key that matters */
    } cases[] = {
        {"", PUT("sluice_order"), "guard_attribute: sluice_order is an attribute of the items' key"},
        {"", PUT("sluice_write"), "write_attribute: sluice_write is an attribute of the items' key"},
        {",'write_attribute':'w'", PUT("w"), "write_attribute: w is an attribute of the items' key"},
        {",'write_attribute':'w'", PUT("sluice_write"), NULL},
        {",'guard':{'table':'side'}", PUT("sluice_order"), NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE, cases[i].members), NULL);
        stage_deliver(s, json_span(cases[i].event));
        assert_int_equal(s->answer.error.status, cases[i].text ? SL_FATAL : SL_OK);
        assert_string_equal(s->answer.error.code, cases[i].text ? "GuardInKey" : "");
        assert_true(!cases[i].text || strstr(s->answer.error.text, cases[i].text));
        assert_int_equal(s->answer.checkpoint, cases[i].text ? 0 : 1);
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_changes_meanwhile_is_seen),
        cmocka_unit_test(items_that_keep_changing_are_tried_again),
        cmocka_unit_test(a_record_without_its_image_is_told),
        cmocka_unit_test(only_a_guard_tells_the_time),
        cmocka_unit_test(of_good_changes_nothing_is_said),
        cmocka_unit_test(refusals_are_counted),
        cmocka_unit_test(echoes_without_a_signature_are_counted_and_told_of),
        cmocka_unit_test(a_key_that_is_called_like_a_guard_stops_the_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
