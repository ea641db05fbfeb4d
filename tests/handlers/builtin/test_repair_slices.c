/* Repairs of many rows of a replica at once, some of which cannot be made: each row ends as it does when it
 * is repaired alone, and as a plain model says. */
#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE                                                                                                \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:${DIR}/db?table=rows'%s}]}"
#define ITEMS 6

static const char *const modes[] = {"", ",'tombstones':{'table':'side'}", ",'guard':{'table':'side'}"};

/* What has become of an item's row, or does between the look and the repair. */
enum trouble { RIGHT, CHANGED, MISSING, LEFT_OVER, FOREIGN, MOVED, APPEARED, TROUBLES };

static const struct {
    const char *code; /* of the refusal; NULL: the row is repaired */
    const char *v;    /* in the row afterwards; NULL: there is none */
} ends[] = {
    [RIGHT] = {NULL, "1"},       [CHANGED] = {NULL, "1"},      [MISSING] = {NULL, "1"},
    [LEFT_OVER] = {NULL, NULL},  [FOREIGN] = {"NotOurs", "5"}, [MOVED] = {"Moved", "7"},
    [APPEARED] = {"Moved", "5"},
};

struct course {
    struct stage *s;
    enum trouble troubles[ITEMS];
    struct test_batch t;
    char *rows[ITEMS], *sides[ITEMS]; /* as they were seen; NULL: none */
    struct sl_mark marks[ITEMS];
    enum sl_repair_effect effects[ITEMS];
};

/* ---- rows ---- */

static void change(struct course *c, size_t i, const char *sql)
{
    char text[200];
    snprintf(text, sizeof(text), "%s WHERE key LIKE '%%k%zu%%'", sql, i);
    stage_change(c->s, "db", text);
}

/* Somebody else's row: it has no guard. */
static void put_foreign(struct course *c, size_t i)
{
    char text[200];
    snprintf(text, sizeof(text),
             "INSERT INTO rows SELECT replace(key, 'k0', 'k%zu'), '{\"PK\":{\"S\":\"k%zu\"},"
             "\"v\":{\"N\":\"5\"}}' FROM first",
             i, i);
    stage_change(c->s, "db", text);
}

static char *line_of(struct course *c, const char *table, size_t i)
{
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT item FROM %s WHERE key LIKE '%%k%zu%%'", table, i);
    char *text = stage_query(c->s, "db", sql);
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        return text;
    free(text);
    return NULL;
}

/* The replica as the changes left it, but for what somebody did to it. */
static void fill(struct course *c, const char *mode)
{
    c->s = stage_new(json_printf(ROUTE, mode), NULL);
    for (size_t i = 0; i < ITEMS; i++)
        stage_deliver_all(
            c->s, json_printf(EVENT(RECORD("INSERT", "%zu", KEYS(PK("k%zu")) NEW(PK("k%zu") ",'v':" N("1")))),
                              100 + i, i, i, 100 + i));
    stage_change(c->s, "db", "CREATE TABLE first AS SELECT key FROM rows WHERE key LIKE '%k0%'");
    bool has_side = mode[0];
    for (size_t i = 0; i < ITEMS; i++) {
        enum trouble trouble = c->troubles[i];
        if (trouble == CHANGED)
            change(c, i, "UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"9\"')");
        if (trouble == MISSING || trouble == APPEARED || trouble == FOREIGN)
            change(c, i, "DELETE FROM rows");
        if (trouble == FOREIGN && has_side)
            change(c, i, "DELETE FROM side");
        if (trouble == FOREIGN)
            put_foreign(c, i);
    }
}

static void look(struct course *c, bool has_side)
{
    for (size_t i = 0; i < ITEMS; i++) {
        c->rows[i] = line_of(c, "rows", i);
        c->sides[i] = has_side ? line_of(c, "side", i) : NULL;
    }
    for (size_t i = 0; i < ITEMS; i++) {
        if (c->troubles[i] == MOVED)
            change(c, i, "UPDATE rows SET item = replace(item, '\"N\":\"1\"', '\"N\":\"7\"')");
        if (c->troubles[i] == APPEARED)
            put_foreign(c, i);
    }
}

/* ---- the repair ---- */

static void decode(struct course *c)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < ITEMS; i++) {
        bool is_there = c->troubles[i] != LEFT_OVER && c->troubles[i] != FOREIGN;
        sl_buffer_printf(&text, "%s{'eventName':'%s','dynamodb':{'Keys':{'PK':{'S':'k%zu'}}", i ? "," : "",
                         is_there ? "INSERT" : "REMOVE", i);
        if (is_there)
            sl_buffer_printf(&text, ",'NewImage':{'PK':{'S':'k%zu'},'v':{'N':'1'}}", i);
        sl_buffer_add_str(&text, "}}");
    }
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    test_decode(&c->t, json_span(text.ptr), NULL);
    assert_int_equal(c->t.status, SL_OK);
    sl_buffer_clean_up(&text);
}

static void repair_some(struct course *c, size_t from, size_t n, bool is_first_twice)
{
    const struct sl_record *records[ITEMS];
    struct sl_span seen[ITEMS], sides[ITEMS], written[ITEMS];
    for (size_t i = 0; i < n; i++) {
        records[i] = sl_batch_record(&c->t.batch, is_first_twice && i == 1 ? from : from + i);
        seen[i] = sl_span_str(c->rows[from + i]);
        sides[i] = sl_span_str(c->sides[from + i]);
    }
    struct sl_route *route = &c->s->p->routes[0];
    struct sl_slice_call call = {
        .marks = c->marks + from,
        .slice = {.abi = SL_HANDLER_ABI,
                  .records = records,
                  .n = n,
                  .arena = c->t.arena,
                  .deadline_ms = c->s->sinks.clock->now_ms(c->s->sinks.clock) + 10000,
                  .request_id = ""}};
    struct sl_repair ask = {
        .seen = seen, .sides = sides, .written = written, .effects = c->effects + from, .may_remove = true};
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(route->loaded.handler.repair(route->self, &call.slice, &ask, &error), SL_OK);
}

static void expect_ends(struct course *c)
{
    for (size_t i = 0; i < ITEMS; i++) {
        const char *code = ends[c->troubles[i]].code, *v = ends[c->troubles[i]].v;
        const struct sl_mark *mark = &c->marks[i];
        const char *got = mark->is_set && mark->why ? mark->why->code : NULL;
        if ((code == NULL) != (got == NULL) || (code && strcmp(code, got) != 0))
            fail_msg("item %zu of trouble %d: %s", i, (int)c->troubles[i], got ? got : "repaired");
        char *row = line_of(c, "rows", i);
        const char *wanted = json_printf("'v':{'N':'%s'}", v ? v : "");
        bool is_gone = !row || strstr(row, "\"sluice_deleted\"");
        if (v ? !row || !strstr(row, wanted) : !is_gone)
            fail_msg("item %zu of trouble %d ends as %s", i, (int)c->troubles[i], row ? row : "no row");
        free(row);
        enum sl_repair_effect effect = code ? SL_REPAIR_NOTHING : v ? SL_REPAIR_WRITTEN : SL_REPAIR_REMOVED;
        assert_int_equal(c->effects[i], effect);
    }
}

/* All rows afterwards; the caller frees. */
static char *run(struct course *c, const char *mode, size_t at_once)
{
    bool has_side = mode[0];
    fill(c, mode);
    look(c, has_side);
    decode(c);
    for (size_t i = 0; i < ITEMS; i += at_once)
        repair_some(c, i, ITEMS - i < at_once ? ITEMS - i : at_once, false);
    expect_ends(c);
    char *text = stage_query(c->s, "db",
                             has_side ? "SELECT item FROM rows UNION ALL SELECT item FROM side ORDER BY 1"
                                      : "SELECT item FROM rows ORDER BY 1");
    for (size_t i = 0; i < ITEMS; i++) {
        free(c->rows[i]);
        free(c->sides[i]);
    }
    test_batch_clean_up(&c->t);
    stage_destroy(c->s);
    return text;
}

static void rows_are_repaired_as_if_alone(void **state)
{
    (void)state;
    uint64_t chance = 11;
    for (size_t round = 0; round < 15; round++) {
        struct course all = {.s = NULL}, alone = all;
        for (size_t i = 0; i < ITEMS; i++)
            all.troubles[i] = alone.troubles[i] = (enum trouble)(sl_random_step(&chance) % TROUBLES);
        const char *mode = modes[round % 3];
        char *together = run(&all, mode, 1 + ITEMS / (1 + round % 2)), *one_by_one = run(&alone, mode, 1);
        assert_string_equal(together, one_by_one);
        free(together);
        free(one_by_one);
    }
}

/* Two repairs of one item would each be made on what was seen before the other. */
static void an_item_is_repaired_once_in_a_slice(void **state)
{
    (void)state;
    struct course c = {.troubles = {CHANGED, RIGHT, CHANGED, RIGHT, RIGHT, RIGHT}};
    fill(&c, modes[0]);
    look(&c, false);
    decode(&c);
    repair_some(&c, 0, 3, true);
    assert_false(c.marks[0].is_set && c.marks[0].status != SL_OK);
    assert_int_equal(c.marks[1].status, SL_REJECT);
    assert_string_equal(c.marks[1].why->code, "Twice");
    assert_int_equal(c.effects[0], SL_REPAIR_WRITTEN);
    assert_int_equal(c.effects[1], SL_REPAIR_NOTHING);
    assert_int_equal(c.effects[2], SL_REPAIR_WRITTEN);
    for (size_t i = 0; i < ITEMS; i++)
        free(c.rows[i]);
    test_batch_clean_up(&c.t);
    stage_destroy(c.s);
}

/* Without a key nobody knows which row is meant. */
static void a_record_without_a_key_is_not_repaired(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
        struct course c = {.troubles = {CHANGED, CHANGED}};
        fill(&c, modes[mode]);
        look(&c, modes[mode][0]);
        test_decode(&c.t, json_span("{'Item':{" PK("k0") "}}"), NULL); /* a line of an export */
        assert_int_equal(c.t.status, SL_OK);
        repair_some(&c, 0, 1, false);
        assert_int_equal(c.marks[0].status, SL_REJECT);
        assert_string_equal(c.marks[0].why->code, "NoKeys");
        assert_int_equal(c.effects[0], SL_REPAIR_NOTHING);
        for (size_t i = 0; i < ITEMS; i++) {
            free(c.rows[i]);
            free(c.sides[i]);
        }
        test_batch_clean_up(&c.t);
        stage_destroy(c.s);
    }
}

/* A condition compares so many attributes: of a row with more, the guard is among them. */
static void a_row_with_very_many_attributes_is_repaired(void **state)
{
    (void)state;
    for (size_t n = 195; n <= 205; n += 2)
        for (int moved = 0; moved < 2; moved++) {
            struct course c = {.troubles = {moved ? MOVED : CHANGED}};
            fill(&c, modes[0]);
            for (size_t i = 0; i < n; i++) {
                char sql[200];
                snprintf(
                    sql, sizeof(sql),
                    "UPDATE rows SET item = replace(item, '{\"sluice', '{\"x%zu\":{\"BOOL\":true},\"sluice')"
                    " WHERE key LIKE '%%k0%%'",
                    i);
                stage_change(c.s, "db", sql);
            }
            look(&c, false);
            if (moved) /* whatever else was compared, another change has another guard */
                change(&c, 0, "UPDATE rows SET item = replace(item, ':0000', ':1000')");
            decode(&c);
            repair_some(&c, 0, 1, false);
            assert_int_equal(c.effects[0], moved ? SL_REPAIR_NOTHING : SL_REPAIR_WRITTEN);
            for (size_t i = 0; i < ITEMS; i++)
                free(c.rows[i]);
            test_batch_clean_up(&c.t);
            stage_destroy(c.s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_repaired_as_if_alone),
        cmocka_unit_test(an_item_is_repaired_once_in_a_slice),
        cmocka_unit_test(a_record_without_a_key_is_not_repaired),
        cmocka_unit_test(a_row_with_very_many_attributes_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
