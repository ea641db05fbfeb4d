/* Random operations in random batches against a model that does them one by one. */
#include "tests/support/port_suite.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS   40
#define BATCH    130 /* above every limit of a request */
#define MAIN     36
#define SIDE     12
#define KEYS     (MAIN + SIDE)
#define LARGE    (150 * 1024) /* bytes of an item now and then */
#define GROUP_OF 5

struct world {
    struct port_suite *suite;
    uint64_t random;
    const char *name;    /* the case's, in every key */
    json_t *items[KEYS]; /* the model's; NULL: absent */
    bool taken[KEYS];    /* by an operation of this batch that must be the only one of its key */
    bool written[KEYS];  /* by unconditional writes of this batch, which keep their order */
    struct sl_table_op ops[BATCH];
    size_t key_of[BATCH];
    struct sl_result wanted[BATCH]; /* status, condition_failed, item */
    size_t n;
    uint32_t group;
};

static unsigned roll(struct world *w, unsigned below)
{
    return (unsigned)(sl_random_step(&w->random) % below);
}

static struct sl_span text_of(struct world *w, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    struct sl_span span = sl_span_str(sl_arena_printf(w->suite->call.arena, "%s", text));
    free(text);
    return span;
}

static json_t *typed(const char *type, const char *text)
{
    return json_pack("{s:s}", type, text);
}

static json_t *number(long n)
{
    char text[32];
    snprintf(text, sizeof(text), "%ld", n);
    return typed("N", text);
}

static json_t *key_json(const struct world *w, size_t key)
{
    char text[64];
    snprintf(text, sizeof(text), "%s %zu", w->name, key);
    json_t *json = json_pack("{s:o}", "PK", typed("S", text));
    if (key < MAIN)
        json_object_set_new(json, "SK", typed("S", key % 2 ? "odd" : "even"));
    return json;
}

static struct sl_span key_text(struct world *w, size_t key)
{
    json_t *json = key_json(w, key);
    struct sl_span text = text_of(w, json);
    json_decref(json);
    return text;
}

/* ---- the model ---- */

static long number_of(const json_t *item, const char *name)
{
    return strtol(json_string_value(json_object_get(json_object_get(item, name), "N")), NULL, 10);
}

static bool holds(const struct world *w, size_t key, const struct sl_test *test)
{
    const json_t *item = w->items[key], *value = item ? json_object_get(item, test->name.ptr) : NULL;
    if (test->verb == SL_ABSENT || test->verb == SL_PRESENT)
        return (value != NULL) == (test->verb == SL_PRESENT);
    if (!value)
        return false;
    long have = number_of(item, "n"), with = strtol(test->value.ptr + strlen("{\"N\":\""), NULL, 10);
    return test->verb == SL_EQ   ? have == with
           : test->verb == SL_NE ? have != with
           : test->verb == SL_LT ? have < with
           : test->verb == SL_LE ? have <= with
                                 : have > with;
}

static bool all_hold(const struct world *w, size_t i)
{
    const struct sl_table_op *op = &w->ops[i];
    size_t n = 0;
    for (size_t k = 0; k < op->n_tests; k++)
        n += holds(w, w->key_of[i], &op->tests[k]);
    return op->n_tests == 0 || (op->any_test ? n > 0 : n == op->n_tests);
}

static void set_one(json_t *item, const struct sl_set *set)
{
    const char *name = set->name.ptr;
    bool has = json_object_get(item, name) != NULL;
    json_t *value = set->value.ptr ? json_loadb(set->value.ptr, set->value.len, 0, NULL) : NULL;
    if (set->verb == SL_UNSET) {
        json_object_del(item, name);
    } else if (set->verb == SL_SET || !has) {
        json_object_set(item, name, value);
    } else {
        long have = number_of(item, name),
             with = strtol(json_string_value(json_object_get(value, "N")), NULL, 10);
        json_object_set_new(item, name,
                            number(set->verb == SL_ADD                          ? have + with
                                   : (set->verb == SL_SET_MAX) == (with > have) ? with
                                                                                : have));
    }
    json_decref(value);
}

static void model_write(struct world *w, size_t i)
{
    const struct sl_table_op *op = &w->ops[i];
    json_t **item = &w->items[w->key_of[i]];
    if (op->verb == SL_TABLE_PUT || op->verb == SL_TABLE_DELETE) {
        json_decref(*item);
        *item = op->verb == SL_TABLE_PUT ? json_loadb(op->item.ptr, op->item.len, 0, NULL) : NULL;
    } else if (op->verb == SL_TABLE_UPDATE) {
        if (!*item)
            *item = key_json(w, w->key_of[i]);
        for (size_t k = 0; k < op->n_sets; k++)
            set_one(*item, &op->sets[k]);
    }
}

static void model_one(struct world *w, size_t i)
{
    struct sl_result *wanted = &w->wanted[i];
    const struct sl_table_op *op = &w->ops[i];
    const json_t *item = w->items[w->key_of[i]];
    *wanted = (struct sl_result){.status = SL_OK};
    if (op->verb == SL_TABLE_GET || op->verb == SL_TABLE_PEEK) {
        wanted->item = item ? text_of(w, item) : sl_span(NULL, 0);
        return;
    }
    if (all_hold(w, i)) {
        model_write(w, i);
        return;
    }
    wanted->status = SL_REJECT;
    wanted->condition_failed = true;
    if (op->want_item && item)
        wanted->item = text_of(w, item);
}

/* Those of a group that follow each other from `first` on: all or none. */
static size_t model_group(struct world *w, size_t first)
{
    size_t end = first;
    bool good = true;
    for (; end < w->n && w->ops[end].group == w->ops[first].group; end++)
        good = all_hold(w, end) && good;
    for (size_t i = first; i < end; i++) {
        if (good || !all_hold(w, i))
            model_one(w, i);
        else
            w->wanted[i] = (struct sl_result){.status = SL_REJECT, .code = "TransactionCanceled"};
    }
    return end;
}

/* ---- making operations ---- */

static struct sl_span invented_item(struct world *w, size_t key)
{
    json_t *item = key_json(w, key);
    if (roll(w, 4))
        json_object_set_new(item, "n", number((long)roll(w, 20) - 10));
    if (roll(w, 2))
        json_object_set_new(item, "s", typed("S", roll(w, 2) ? "a \"text\"\n" : ""));
    if (roll(w, 60) == 0) {
        char *large = calloc(1, LARGE + 1);
        memset(large, 'a' + (int)roll(w, 26), LARGE);
        json_object_set_new(item, "large", typed("S", large));
        free(large);
    }
    struct sl_span text = text_of(w, item);
    json_decref(item);
    return text;
}

static struct sl_span number_text(struct world *w)
{
    return sl_span_str(sl_arena_printf(w->suite->call.arena, "{\"N\":\"%d\"}", (int)roll(w, 20) - 10));
}

static void invent_sets(struct world *w, struct sl_table_op *op)
{
    static const char *const names[] = {"n", "m", "o"};
    struct sl_set *sets = sl_arena_zalloc(w->suite->call.arena, 3 * sizeof(*sets));
    op->sets = sets;
    op->n_sets = 1 + roll(w, 3);
    for (size_t i = 0; i < op->n_sets; i++) {
        static const enum sl_set_verb verbs[] = {SL_SET, SL_ADD, SL_UNSET, SL_SET_MAX, SL_SET_MIN};
        sets[i] = (struct sl_set){verbs[roll(w, op->group ? 3 : 5)], sl_span_str(names[i]), {NULL, 0}};
        if (sets[i].verb != SL_UNSET)
            sets[i].value = number_text(w);
    }
}

static void invent_tests(struct world *w, struct sl_table_op *op)
{
    struct sl_test *tests = sl_arena_zalloc(w->suite->call.arena, 3 * sizeof(*tests));
    op->tests = tests;
    op->n_tests = 1 + roll(w, 3);
    op->any_test = roll(w, 2);
    op->want_item = roll(w, 2);
    for (size_t i = 0; i < op->n_tests; i++) {
        tests[i].verb = (enum sl_test_verb)roll(w, 7);
        bool compares = tests[i].verb != SL_ABSENT && tests[i].verb != SL_PRESENT;
        tests[i].name = compares || roll(w, 2) ? SL_LIT("n") : SL_LIT("s");
        if (compares)
            tests[i].value = number_text(w);
    }
}

/* A key for an operation that must be alone (NO_KEY: none is left), or for one more write. */
#define NO_KEY SIZE_MAX
static size_t choose_key(struct world *w, bool alone)
{
    for (int tries = 0; tries < 50; tries++) {
        size_t key = roll(w, w->suite->side_table ? KEYS : MAIN);
        if (w->taken[key] || (alone && w->written[key]))
            continue;
        *(alone ? &w->taken[key] : &w->written[key]) = true;
        return key;
    }
    return NO_KEY;
}

static bool add_op(struct world *w, enum sl_table_verb verb, bool is_tested, uint32_t group)
{
    bool writes = verb == SL_TABLE_PUT || verb == SL_TABLE_DELETE || verb == SL_TABLE_UPDATE;
    size_t key = choose_key(w, !writes || is_tested || group);
    if (key == NO_KEY || w->n == BATCH)
        return false;
    struct sl_table_op *op = &w->ops[w->n];
    w->key_of[w->n++] = key;
    *op = (struct sl_table_op){.verb = verb, .group = group, .key = key_text(w, key)};
    if (key >= MAIN)
        op->table = sl_span_str(w->suite->side_table);
    if (verb == SL_TABLE_PUT)
        op->item = invented_item(w, key);
    if (verb == SL_TABLE_UPDATE)
        invent_sets(w, op);
    if (is_tested || verb == SL_TABLE_CHECK)
        invent_tests(w, op);
    return true;
}

static void add_group(struct world *w)
{
    static const enum sl_table_verb verbs[] = {SL_TABLE_PUT, SL_TABLE_DELETE, SL_TABLE_UPDATE,
                                               SL_TABLE_CHECK};
    w->group++;
    for (unsigned n = 1 + roll(w, GROUP_OF); n > 0; n--)
        if (!add_op(w, verbs[roll(w, 4)], roll(w, 5) == 0, w->group))
            break;
}

static void invent_batch(struct world *w)
{
    uint32_t can = w->suite->table->can;
    memset(w->taken, 0, sizeof(w->taken));
    memset(w->written, 0, sizeof(w->written));
    size_t size = roll(w, 3) ? 1 + roll(w, 12) : 1 + roll(w, BATCH);
    bool goes_on = true;
    for (w->n = 0; w->n < size && goes_on;) {
        unsigned what = roll(w, 10);
        if (what == 0 && can & SL_TABLE_GROUPS)
            add_group(w);
        else if (what == 1 && can & SL_TABLE_TESTS)
            goes_on = add_op(w, roll(w, 2) ? SL_TABLE_PUT : SL_TABLE_DELETE, true, 0);
        else if (what == 2 && can & SL_TABLE_UPDATES)
            goes_on = add_op(w, SL_TABLE_UPDATE, can & SL_TABLE_TESTS && roll(w, 2), 0);
        else if (what < 5)
            goes_on = add_op(w, roll(w, 2) ? SL_TABLE_GET : SL_TABLE_PEEK, false, 0) || true;
        else
            goes_on = add_op(w, what < 9 ? SL_TABLE_PUT : SL_TABLE_DELETE, false, 0);
        size -= what < 5 && size > 1 && w->n == 0;
    }
}

/* ---- comparing ---- */

static bool same_item(struct sl_span have, struct sl_span wanted)
{
    if (!have.ptr || !wanted.ptr)
        return have.ptr == wanted.ptr;
    json_t *a = json_loadb(have.ptr, have.len, 0, NULL), *b = json_loadb(wanted.ptr, wanted.len, 0, NULL);
    bool same = a && b && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

static void compare(struct world *w, const struct sl_result *results)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct sl_result *have = &results[i], *wanted = &w->wanted[i];
        bool same = have->status == wanted->status && have->condition_failed == wanted->condition_failed &&
                    same_item(have->item, wanted->item) &&
                    (!wanted->code || (have->code && strcmp(have->code, wanted->code) == 0));
        if (!same)
            fail_msg("operation %zu of %zu, verb %d on key %zu (group %u): status %d (%s: %s), "
                     "condition_failed %d, "
                     "item %.*s; by the model %d, %d, %.*s",
                     i, w->n, (int)w->ops[i].verb, w->key_of[i], w->ops[i].group, (int)have->status,
                     have->code ? have->code : "", have->text ? have->text : "", have->condition_failed,
                     (int)(have->item.len < 300 ? have->item.len : 300), have->item.ptr, (int)wanted->status,
                     wanted->condition_failed, (int)(wanted->item.len < 300 ? wanted->item.len : 300),
                     wanted->item.ptr);
    }
}

static void apply(struct world *w)
{
    struct sl_result results[BATCH];
    for (size_t i = 0; i < w->n;)
        if (w->ops[i].group) {
            i = model_group(w, i);
        } else {
            model_one(w, i);
            i++;
        }
    w->suite->table->apply(w->suite->table, w->ops, w->n, results, &w->suite->call);
    compare(w, results);
}

/* Every key is read, in one batch. */
static void look_at_all(struct world *w)
{
    memset(w->taken, 0, sizeof(w->taken));
    memset(w->written, 0, sizeof(w->written));
    w->n = 0;
    for (size_t key = 0; key < (w->suite->side_table ? KEYS : MAIN); key++) {
        w->key_of[w->n] = key;
        w->ops[w->n++] = (struct sl_table_op){.verb = SL_TABLE_GET,
                                              .table = sl_span_str(key < MAIN ? NULL : w->suite->side_table),
                                              .key = key_text(w, key)};
    }
    apply(w);
}

static void batches_do_what_one_by_one_does(struct port_suite *suite)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        char name[32];
        snprintf(name, sizeof(name), "batches %d", (int)seed);
        struct world w = {.suite = suite, .random = seed, .name = name};
        for (int round = 0; round < ROUNDS / 5; round++) {
            invent_batch(&w);
            apply(&w);
        }
        look_at_all(&w);
        for (size_t key = 0; key < KEYS; key++)
            json_decref(w.items[key]);
    }
}

const struct port_case port_batch_cases[] = {
    {"batches_do_what_one_by_one_does", batches_do_what_one_by_one_does},
    {NULL, NULL},
};
