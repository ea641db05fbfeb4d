/* Random histories through the view handler, over SQLite: batches come one to four times, old ones are
 * delivered again late, records are parked in between and come long after, sinks fail before they write and
 * after. At the end the table is what the items at the end make, row by row, and nothing else is there. */
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define CONFIG(more)                                                                                         \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'v','handler':'view',"       \
    "'to':'sqlite:${DIR}/db?table=view'," more "}]}"

#define BY_STATUS                                                                                            \
    "'key':{'PK':'STATUS#{status}','SK':'{PK|key}#{SK|key}'},'where':{'status':['OPEN','PAID','CANCELED']}"
#define BY_PRODUCT                                                                                           \
    "'each':'lines[*]','key':{'PK':'PRODUCT#{each.sku}','SK':'ORDER#{PK|key}#{SK|key}#{each.id|key}'},"      \
    "'where':{'each':{'qty':[{'numeric':['>',0]}]}},'missing':'skip','item':{'qty':'{each.qty}',"            \
    "'status':'{status}'}"

/* ---- the truth, by code that knows nothing of the handler's ---- */

static const char *text_of(const json_t *map, const char *name)
{
    const json_t *value = json_object_get(map, name);
    const char *text = json_string_value(json_object_get(value, "S"));
    return text ? text : json_string_value(json_object_get(value, "N"));
}

/* The texts with '#' and '%' escaped, and '#' between them. */
static void join_key(char *out, size_t room, const char *before, const char *const *texts, size_t n)
{
    size_t len = (size_t)snprintf(out, room, "%s", before);
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(out + len, room - len, "%s", i ? "#" : "");
        for (const char *c = texts[i]; *c; c++)
            len += (size_t)snprintf(out + len, room - len,
                                    *c == '#'   ? "%%23"
                                    : *c == '%' ? "%%25"
                                                : "%c",
                                    *c);
    }
}

static void put_row(json_t *rows, const char *pk, const char *sk, json_t *row)
{
    char name[256];
    snprintf(name, sizeof(name), "%s|%s", pk, sk);
    json_object_set_new(row, "PK", json_pack("{s:s}", "S", pk));
    json_object_set_new(row, "SK", json_pack("{s:s}", "S", sk));
    assert_null(json_object_get(rows, name));
    json_object_set_new(rows, name, row);
}

/* STATUS#{status} / {PK|key}#{SK|key}, with the total. */
static void add_by_status(json_t *rows, const json_t *item)
{
    const char *status = text_of(item, "status");
    const char *const parts[] = {text_of(item, "PK"), text_of(item, "SK")};
    char pk[64], sk[128];
    if (strcmp(status, "SHIPPED") == 0)
        return;
    snprintf(pk, sizeof(pk), "STATUS#%s", status);
    join_key(sk, sizeof(sk), "", parts, 2);
    json_t *row = json_object(), *total = json_object_get(item, "total");
    if (total)
        json_object_set(row, "total", total);
    put_row(rows, pk, sk, row);
}

static void add_by_product(json_t *rows, const json_t *item)
{
    size_t i;
    json_t *element;
    json_array_foreach(json_object_get(json_object_get(item, "lines"), "L"), i, element)
    {
        const json_t *line = json_object_get(element, "M");
        const char *sku = text_of(line, "sku");
        const char *const parts[] = {text_of(item, "PK"), text_of(item, "SK"), text_of(line, "id")};
        char pk[64], sk[160];
        if (!sku || strcmp(text_of(line, "qty"), "0") == 0)
            continue;
        snprintf(pk, sizeof(pk), "PRODUCT#%s", sku);
        join_key(sk, sizeof(sk), "ORDER#", parts, 3);
        put_row(rows, pk, sk,
                json_pack("{s:O,s:O}", "qty", json_object_get(line, "qty"), "status",
                          json_object_get(item, "status")));
    }
}

static json_t *wanted_of(const struct history *h, bool is_each)
{
    json_t *rows = json_object(), *item;
    const char *key;
    json_object_foreach(h->table, key, item)
    {
        if (is_each)
            add_by_product(rows, item);
        else
            add_by_status(rows, item);
    }
    return rows;
}

/* ---- what is there ---- */

/* The rows, and by item how many its list names; what a row says of its item goes after a look at it. */
static void take_row(json_t *rows, json_t *listed, json_t *row)
{
    const json_t *of = json_object_get(json_object_get(row, "sluice_of"), "M");
    const json_t *list = json_object_get(json_object_get(row, "sluice_rows"), "L");
    const json_t *order = json_object_get(row, "sluice_order");
    char item[32], name[256];
    assert_string_equal(text_of(of, "view"), "v");
    snprintf(item, sizeof(item), "%zu", history_item(json_object_get(json_object_get(of, "key"), "M")));
    json_int_t n = json_integer_value(json_object_get(listed, item));
    if (list) {
        assert_true((json_array_size(list) == 0) == (json_object_get(row, "sluice_expires") != NULL));
        json_object_set_new(listed, item, json_integer(n + (json_int_t)json_array_size(list)));
        return;
    }
    if (order && json_object_get(row, "sluice_deleted"))
        return;
    json_object_set_new(listed, item, json_integer(order ? n : n - 1));
    json_object_del(row, "sluice_order");
    json_object_del(row, "sluice_of");
    snprintf(name, sizeof(name), "%s|%s", text_of(row, "PK"), text_of(row, "SK"));
    json_object_set(rows, name, row);
}

static void take_table(struct stage *s, const char *table, json_t *rows, json_t *listed)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "SELECT item FROM %s", table);
    char *text = stage_query(s, "db", sql);
    history_take_nul(text);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *row = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_non_null(row);
        take_row(rows, listed, row);
        json_decref(row);
    }
    free(text);
}

static void expect_view(struct stage *s, const struct history *h, bool is_each, bool has_lists,
                        const char *what)
{
    json_t *rows = json_object(), *listed = json_object(), *wanted = wanted_of(h, is_each), *n;
    const char *item;
    take_table(s, "view", rows, listed);
    if (has_lists)
        take_table(s, "lists", rows, listed);
    if (!json_equal(rows, wanted))
        fail_msg("seed %llu, %s: the view is\n%s\nand not\n%s", (unsigned long long)h->options.seed, what,
                 json_dumps(rows, JSON_SORT_KEYS | JSON_INDENT(1)),
                 json_dumps(wanted, JSON_SORT_KEYS | JSON_INDENT(1)));
    json_object_foreach(listed, item, n)
    {
        if (json_integer_value(n) != 0)
            fail_msg("seed %llu, %s: the list of item %s has others than its rows",
                     (unsigned long long)h->options.seed, what, item);
    }
    json_decref(rows);
    json_decref(listed);
    json_decref(wanted);
}

/* ---- deliveries ---- */

static void drive(struct stage *s, const struct history *h, size_t first, size_t n)
{
    char *event = history_event(h, first, n);
    if (!stage_drive(s, event, 200))
        fail_msg("seed %llu: the batch at %zu is never done: %s", (unsigned long long)h->options.seed, first,
                 s->answer.error.text);
    free(event);
}

/* In batches; one record of eight is parked and comes when it may, at the latest at the end. */
static void deliver(struct stage *s, const struct history *h, uint64_t seed)
{
    size_t n = json_array_size(h->records), n_parked = 0, *parked = calloc(n, sizeof(*parked));
    for (size_t at = 0, size; at < n; at += size) {
        size = 1 + history_draw(&seed, 40);
        size = size < n - at ? size : n - at;
        size_t without = history_draw(&seed, 3) ? SIZE_MAX : history_draw(&seed, size);
        for (size_t times = 1 + history_draw(&seed, 3); times > 0; times--) {
            if (without == SIZE_MAX) {
                drive(s, h, at, size);
                continue;
            }
            if (without > 0)
                drive(s, h, at, without);
            if (without + 1 < size)
                drive(s, h, at + without + 1, size - without - 1);
        }
        if (without != SIZE_MAX)
            parked[n_parked++] = at + without;
        if (history_draw(&seed, 3) == 0)
            drive(s, h, history_draw(&seed, at + 1), 1 + history_draw(&seed, 60));
        if (n_parked && history_draw(&seed, 3) == 0) {
            size_t k = history_draw(&seed, n_parked);
            drive(s, h, parked[k], 1);
            parked[k] = parked[--n_parked];
        }
    }
    while (n_parked > 0)
        drive(s, h, parked[--n_parked], 1);
    free(parked);
}

struct mode {
    const char *config;
    bool is_each, has_lists;
    const char *view;
};

static const struct mode modes[] = {
    {CONFIG(BY_STATUS ",'project':['total']"), false, false, "NEW_AND_OLD_IMAGES"},
    {CONFIG(BY_STATUS ",'project':['total','status'],'drop':['status'],'list':{'table':'lists'}"), false,
     true, "NEW_IMAGE"},
    {CONFIG(BY_PRODUCT), true, false, "NEW_AND_OLD_IMAGES"},
    {CONFIG(BY_PRODUCT ",'list':{'table':'lists','key':'K','name':'v'},'epoch':3"), true, true,
     "NEW_AND_OLD_IMAGES"},
    {CONFIG(BY_PRODUCT), true, false, "NEW_IMAGE"},
    {CONFIG(BY_STATUS ",'project':['total'],'list':false"), false, false, "NEW_AND_OLD_IMAGES"},
};

static struct history history_of(const struct mode *mode, uint64_t seed)
{
    struct history h;
    history_make(&h, &(struct history_options){.seed = seed,
                                               .changes = 60 + seed % 100,
                                               .items = 3 + seed % 12,
                                               .view = mode->view,
                                               .has_lines = true});
    return h;
}

static uint64_t seeds = 60, first = 1;

static void try_seed(uint64_t seed)
{
    const struct mode *mode = &modes[seed % (sizeof(modes) / sizeof(modes[0]))];
    struct history h = history_of(mode, seed);
    struct stage *s = stage_new(mode->config, NULL);
    s->chance = seed * 77;
    s->one_in = 8;
    deliver(s, &h, seed);
    expect_view(s, &h, mode->is_each, mode->has_lists, mode->config);
    /* Once more in another order, by another process: nothing changes. */
    s->one_in = 0;
    stage_reopen(s, NULL);
    char *before = stage_query(s, "db", "SELECT item FROM view ORDER BY key");
    deliver(s, &h, seed + 99);
    char *after = stage_query(s, "db", "SELECT item FROM view ORDER BY key");
    assert_string_equal(before, after);
    free(before);
    free(after);
    stage_destroy(s);
    history_clean_up(&h);
}

static void a_view_is_what_the_items_make(void **state)
{
    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        try_seed(seed);
}

/* The stream from the middle on, and what the table held there: before it, after it, or in between. */
static void a_view_is_seeded_from_an_export(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 9; seed++) {
        const struct mode *mode = &modes[seed % (sizeof(modes) / sizeof(modes[0]))];
        struct history h = history_of(mode, seed);
        struct stage *s = stage_new(mode->config, NULL);
        size_t n = json_array_size(h.records), half = n / 2, at = half + seed % 3 * (n - half) / 2;
        char *lines = history_export(&h);
        bool is_done = false;
        s->chance = seed;
        s->one_in = 8;
        if (at > half)
            drive(s, &h, half, at - half);
        for (int times = 0; times < 200 && !is_done; times++) {
            stage_deliver(s, sl_span_str(lines));
            is_done = !s->answer.is_error && s->answer.checkpoint == s->n;
        }
        assert_true(is_done);
        sl_arena_reset(s->arena);
        free(lines);
        if (at < n)
            drive(s, &h, at, n - at);
        expect_view(s, &h, mode->is_each, mode->has_lists, mode->config);
        stage_destroy(s);
        history_clean_up(&h);
    }
}

int main(int argc, char **argv)
{
    seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : seeds;
    first = argc > 2 ? strtoull(argv[2], NULL, 10) : first;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_is_what_the_items_make),
        cmocka_unit_test(a_view_is_seeded_from_an_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
