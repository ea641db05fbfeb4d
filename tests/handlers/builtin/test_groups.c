/* Random histories through counts of different values, members in order, and rows that go when they are
 * empty: batches come one to four times, old ones late, with an export at any point, while sinks fail before
 * they write and after and processes end. At the end every row is what the table's items make. */
#include "base/decimal.h"
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define CONFIG(members)                                                                                      \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':["                                    \
    "{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals','missing':'skip','counters':["   \
    "{'key':{'PK':'STATUS#{status}','SK':'-'},'add':{'orders':1,'revenue':'{total}'},"                       \
    "'distinct':{'customers':'{PK}','kinds':'{SK}'},'members':{'by':'{total}'}},"                            \
    "{'key':{'PK':'ALL','SK':'{status}'},'add':{'items':1},'distinct':{'people':'{PK}'},"                    \
    "'when':{'status':{'S':['PAID','SHIPPED']}}}]" members "}]}"

/* ---- the oracle: GROUP BY over the map ---- */

static const char *text_of(const json_t *item, const char *name, const char *type)
{
    return json_string_value(json_object_get(json_object_get(item, name), type));
}

static char *number_of(const char *text)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_decimal *d = sl_decimal_new(arena);
    struct sl_span normal;
    assert_true(sl_decimal_add(d, sl_span_str(text), false) && sl_decimal_text(d, arena, &normal));
    char *copy = strndup(normal.ptr, normal.len);
    sl_arena_destroy(arena);
    return copy;
}

static json_t *row_of(json_t *rows, const char *key)
{
    json_t *row = json_object_get(rows, key);
    if (!row)
        json_object_set_new(rows, key, row = json_object());
    return row;
}

static void add_to(json_t *row, const char *name, const char *number)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_decimal *d = sl_decimal_new(arena);
    struct sl_span text;
    const char *held = json_string_value(json_object_get(row, name));
    assert_true(sl_decimal_add(d, sl_span_str(held ? held : "0"), false));
    assert_true(sl_decimal_add(d, sl_span_str(number), false));
    assert_true(sl_decimal_text(d, arena, &text));
    json_object_set_new(row, name, json_stringn(text.ptr, text.len));
    sl_arena_destroy(arena);
}

/* Counts the value for the group, once, and how many items have it. */
static void add_value(json_t *rows, json_t *values, const char *group, const char *name, const char *value)
{
    char key[256];
    snprintf(key, sizeof(key), "%s %s %s", group, name, value);
    if (!json_object_get(values, key))
        add_to(row_of(rows, group), name, "1");
    add_to(row_of(values, key), "n", "1");
}

static void add_item(const json_t *item, json_t *rows, json_t *values, json_t *members)
{
    char group[64], key[96];
    const char *status = text_of(item, "status", "S"), *total = text_of(item, "total", "N");
    char *kind = number_of(text_of(item, "SK", "N")), *number = total ? number_of(total) : NULL;
    snprintf(group, sizeof(group), "STATUS#%s/-", status);
    if (total) {
        add_to(row_of(rows, group), "orders", "1");
        add_to(row_of(rows, group), "revenue", total);
        add_value(rows, values, group, "customers", text_of(item, "PK", "S"));
        add_value(rows, values, group, "kinds", kind);
        snprintf(key, sizeof(key), "%s %zu", group, history_item(item));
        json_object_set_new(members, key, json_string(number));
    }
    snprintf(group, sizeof(group), "ALL/%s", status);
    if (strcmp(status, "PAID") == 0 || strcmp(status, "SHIPPED") == 0) {
        add_to(row_of(rows, group), "items", "1");
        add_value(rows, values, group, "people", text_of(item, "PK", "S"));
    }
    free(kind);
    free(number);
}

/* ---- what is there ---- */

/* A member's row: "-#NUMBER#DIGEST". */
static void take_member(const json_t *item, const char *sk, json_t *members, json_t *order)
{
    char key[96];
    const json_t *of = json_object_get(json_object_get(item, "item"), "M");
    const char *pk = text_of(item, "PK", "S"), *by = text_of(item, "by", "N");
    assert_int_equal(strncmp(sk, "-#", 2), 0);
    snprintf(key, sizeof(key), "%s/- %zu", pk, history_item(of));
    if (json_object_get(members, key))
        fail_msg("%s has two rows", key);
    json_object_set_new(members, key, json_string(by));
    snprintf(key, sizeof(key), "%s", pk);
    json_t *list = json_object_get(order, key);
    if (!list)
        json_object_set_new(order, key, list = json_array());
    json_array_append_new(list, json_string(by));
}

static void take_value(const json_t *item, json_t *values)
{
    char key[256];
    const json_t *group = json_object_get(json_object_get(item, "group"), "M");
    const json_t *value = json_object_get(item, "value");
    const char *n = json_string_value(json_object_get(value, "N"));
    snprintf(key, sizeof(key), "%s/%s %s %s", text_of(group, "PK", "S"), text_of(group, "SK", "S"),
             text_of(item, "attribute", "S"), n ? n : json_string_value(json_object_get(value, "S")));
    assert_null(json_object_get(values, key));
    add_to(row_of(values, key), "n", text_of(item, "n", "N"));
}

static void take_row(const json_t *item, json_t *rows, bool sub)
{
    char key[96];
    const char *pk = text_of(item, "PK", "S"), *name;
    const char *end = sub ? strrchr(pk, '#') : NULL;
    json_t *value;
    snprintf(key, sizeof(key), "%.*s/%s", end ? (int)(end - pk) : (int)strlen(pk), pk,
             text_of(item, "SK", "S"));
    json_object_foreach((json_t *)item, name, value)
    {
        if (json_object_get(value, "N"))
            add_to(row_of(rows, key), name, json_string_value(json_object_get(value, "N")));
    }
}

struct tables {
    json_t *rows, *values, *members;
    json_t *order; /* of what is there: numbers by group, in the order of the sort keys */
};

static void tables_clean_up(struct tables *t)
{
    json_decref(t->rows);
    json_decref(t->values);
    json_decref(t->members);
    json_decref(t->order);
}

/* SQLite keeps the rows in no order of ours; a Query sorts by the bytes of the sort key. */
static struct tables tables_of(struct stage *s, bool sub)
{
    struct tables t = {json_object(), json_object(), json_object(), json_object()};
    char *rows =
        stage_query(s, "db", "SELECT item FROM totals ORDER BY CAST(json_extract(item,'$.SK.S') AS BLOB)");
    history_take_nul(rows);
    for (char *row = rows, *end; (end = strchr(row, '\n')); row = end + 1) {
        json_t *item = json_loadb(row, (size_t)(end - row), 0, NULL);
        const char *pk = text_of(item, "PK", "S"), *sk = text_of(item, "SK", "S");
        if (strncmp(pk, "sluice:distinct:t:", 18) == 0)
            take_value(item, t.values);
        else if (strncmp(pk, "sluice:delta:", 13) == 0)
            fail_msg("a delta row is left: %s", pk);
        else if (json_object_get(item, "item"))
            take_member(item, sk, t.members, t.order);
        else if (strncmp(pk, "sluice:", 7) != 0)
            take_row(item, t.rows, sub);
        json_decref(item);
    }
    free(rows);
    return t;
}

static void expect_order(const json_t *order)
{
    const char *group;
    json_t *list;
    json_object_foreach((json_t *)order, group, list)
    {
        struct sl_arena *arena = sl_arena_new(1024);
        struct sl_decimal *last = NULL;
        json_t *number;
        size_t i;
        json_array_foreach(list, i, number)
        {
            struct sl_decimal *d = sl_decimal_new(arena);
            assert_true(sl_decimal_add(d, sl_span_str(json_string_value(number)), false));
            if (last && sl_decimal_compare(last, d) > 0)
                fail_msg("%s: %s is out of order", group, json_string_value(number));
            last = d;
        }
        sl_arena_destroy(arena);
    }
}

static void expect_equal(const struct history *h, const char *what, const char *which, const json_t *got,
                         const json_t *wanted)
{
    if (!json_equal(got, wanted))
        fail_msg("seed %llu, %s, %s:\n%s\nand not\n%s", (unsigned long long)h->options.seed, what, which,
                 json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1)),
                 json_dumps(wanted, JSON_SORT_KEYS | JSON_INDENT(1)));
}

/* Rows of zeros stay unless they are deleted. */
static void drop_empty(json_t *rows)
{
    const char *key;
    json_t *row;
    void *next;
    json_object_foreach_safe(rows, next, key, row)
    {
        const char *orders = json_string_value(json_object_get(row, "orders"));
        const char *items = json_string_value(json_object_get(row, "items"));
        if (strcmp(orders ? orders : items, "0") == 0)
            json_object_del(rows, key);
    }
}

static void expect_groups(struct stage *s, const struct history *h, const char *what)
{
    struct tables wanted = {json_object(), json_object(), json_object(), json_object()};
    const char *key;
    json_t *item;
    json_object_foreach(h->table, key, item) add_item(item, wanted.rows, wanted.values, wanted.members);
    struct tables got = tables_of(s, strstr(what, "shards") != NULL);
    if (!strstr(what, "delete"))
        drop_empty(got.rows);
    expect_equal(h, what, "rows", got.rows, wanted.rows);
    expect_equal(h, what, "values", got.values, wanted.values);
    expect_equal(h, what, "members", got.members, wanted.members);
    expect_order(got.order);
    tables_clean_up(&got);
    tables_clean_up(&wanted);
}

/* ---- histories ---- */

static void deliver(struct stage *s, const struct history *h, size_t from, size_t to, uint64_t *chance)
{
    char *event = history_event(h, from, to - from);
    for (size_t times = 1 + history_draw(chance, 3); times > 0; times--)
        if (!stage_drive(s, event, 300))
            fail_msg("seed %llu: batch at %zu is never done: %s", (unsigned long long)h->options.seed, from,
                     s->answer.error.text);
    free(event);
}

/* What the table held after `point` changes, in pieces. */
static void deliver_export(struct stage *s, const struct history *h, size_t point)
{
    for (size_t first = 0; first < h->options.items; first += 9) {
        char *event = history_export_at(h, point, first, 9);
        if (event && !stage_drive(s, event, 300))
            fail_msg("seed %llu: the export is never done: %s", (unsigned long long)h->options.seed,
                     s->answer.error.text);
        free(event);
    }
}

struct shape {
    const char *members, *view;
    size_t changes, items, batch;
    size_t start; /* the stream is followed from there; an export shows what was before */
    unsigned one_in;
};

static void run(uint64_t seed, const struct shape *shape)
{
    char config[2048];
    struct history h;
    uint64_t chance = seed * 31 + 7;
    size_t n = shape->changes, point = shape->start + history_draw(&chance, n - shape->start + 1);
    snprintf(config, sizeof(config), CONFIG("%s"), shape->members);
    history_make(&h, &(struct history_options){
                         .seed = seed, .changes = n, .items = shape->items, .view = shape->view});
    struct stage *s = stage_new(config, NULL);
    s->chance = seed * 77;
    s->one_in = shape->one_in;
    for (size_t first = shape->start, size; first < n; first += size) {
        size = 1 + history_draw(&chance, shape->batch);
        size = first + size > n ? n - first : size;
        if (shape->start > 0 && first <= point && point < first + size)
            deliver_export(s, &h, point);
        deliver(s, &h, first, first + size, &chance);
        if (history_draw(&chance, 3) == 0)
            deliver(s, &h, shape->start + history_draw(&chance, first + 1 - shape->start), first + size,
                    &chance);
        if (history_draw(&chance, 8) == 0)
            stage_reopen(s, NULL);
    }
    if (shape->start > 0)
        deliver_export(s, &h, point);
    expect_groups(s, &h, shape->members);
    stage_destroy(s);
    history_clean_up(&h);
}

static void groups_are_what_their_items_make(void **state)
{
    (void)state;
    static const char *const members[] = {"", ",'empty':'delete'", ",'ledger':{'table':'totals'}",
                                          ",'shards':3"};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        bool both = seed % 3 > 0 || seed % 4 == 2;
        run(seed, &(struct shape){.members = members[seed % 4 == 2 ? 0 : seed % 4],
                                  .view = both ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE",
                                  .changes = 250,
                                  .items = 30,
                                  .batch = 60,
                                  .one_in = seed % 2 ? 8 : 0});
    }
}

static void an_export_may_come_at_any_point(void **state)
{
    (void)state;
    static const char *const members[] = {"", ",'empty':'delete'"};
    for (uint64_t seed = 1; seed <= 12; seed++)
        run(seed, &(struct shape){.members = members[seed % 2],
                                  .view = "NEW_AND_OLD_IMAGES",
                                  .changes = 150,
                                  .items = 25,
                                  .batch = 40,
                                  .start = 10 + seed % 90,
                                  .one_in = seed % 3 ? 8 : 0});
}

/* So many items of few groups that their transactions meet. */
static void hot_groups_are_what_their_items_make(void **state)
{
    (void)state;
    static const char *const members[] = {"", ",'empty':'delete'", ",'shards':2"};
    for (uint64_t seed = 1; seed <= 3; seed++)
        run(seed, &(struct shape){.members = members[seed % 3],
                                  .view = "NEW_AND_OLD_IMAGES",
                                  .changes = 2500,
                                  .items = 1500,
                                  .batch = 1800,
                                  .one_in = seed % 2 ? 300 : 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_what_their_items_make),
        cmocka_unit_test(an_export_may_come_at_any_point),
        cmocka_unit_test(hot_groups_are_what_their_items_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
