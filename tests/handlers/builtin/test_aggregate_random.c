/* Random counters over random changes: items lack what a counter names, hold texts where numbers should be,
 * and meet conditions or not. At the end each row is what a plain sum over the records makes. */
#include "base/decimal.h"
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ITEMS    12
#define COUNTERS 3

/* What a record's image holds; NULL: the item lacks it. `v` is JSON: {"N":"1"}. */
struct image {
    const char *g, *h, *v;
};

enum condition { ALWAYS, WHERE_H, WHEN_G };

struct counter {
    bool g_in_key, h_in_key, counts, sums, max, min;
    bool takes_texts; /* the amount is what a text says; else it is a number's attribute */
    enum condition condition;
};

struct course {
    uint64_t chance, seed;
    struct counter counters[COUNTERS];
    size_t n_counters;
    bool per_event, has_ledger, has_old, faults;
    const char *missing;
    struct image items[ITEMS];
    bool is_there[ITEMS];
    json_t *counted[ITEMS]; /* what each item adds: row -> attribute -> number */
    json_t *sums, *extremes;
    size_t rejected, number;
};

static size_t draw(struct course *c, size_t n)
{
    return history_draw(&c->chance, n);
}

/* ---- numbers ---- */

static bool is_number(const char *text)
{
    struct sl_arena *arena = sl_arena_new(1024);
    bool is = sl_decimal_add(sl_decimal_new(arena), sl_span_str(text), false);
    sl_arena_destroy(arena);
    return is;
}

/* The row's attribute becomes its sum with the number. */
static void add_to(json_t *rows, const char *row, const char *name, const char *number, bool subtract)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_decimal *d = sl_decimal_new(arena);
    struct sl_span text;
    if (!json_object_get(rows, row))
        json_object_set_new(rows, row, json_object());
    json_t *attributes = json_object_get(rows, row);
    const char *held = json_string_value(json_object_get(attributes, name));
    assert_true(sl_decimal_add(d, sl_span_str(held ? held : "0"), false));
    assert_true(sl_decimal_add(d, sl_span_str(number), subtract));
    assert_true(sl_decimal_text(d, arena, &text));
    json_object_set_new(attributes, name, json_stringn(text.ptr, text.len));
    sl_arena_destroy(arena);
}

static void extend(json_t *rows, const char *row, const char *name, const char *number)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_decimal *d = sl_decimal_new(arena);
    struct sl_span text;
    json_t *attributes = json_object_get(rows, row);
    const char *held = json_string_value(json_object_get(attributes, name));
    if (!attributes)
        json_object_set_new(rows, row, attributes = json_object());
    assert_true(sl_decimal_add(d, sl_span_str(number), false));
    if (held)
        assert_true(sl_decimal_add(d, sl_span_str(held), true));
    assert_true(sl_decimal_text(d, arena, &text));
    bool is_less = text.ptr[0] == '-', is_same = sl_span_is(text, "0");
    char less[128]; /* the number, less what is held */
    snprintf(less, sizeof(less), "%.*s", SL_ARG(text));
    if (!held || (!is_same && is_less == (strcmp(name, "low") == 0)))
        add_to(rows, row, name, less, false);
    if (!held && is_same)
        json_object_set_new(attributes, name, json_string("0"));
    sl_arena_destroy(arena);
}

/* ---- the model ---- */

enum outcome { COUNTS, LEFT_OUT, REJECTED };

/* A template's text, "" where the item lacks the attribute. */
static enum outcome text_of(const struct course *c, const char *held, const char **text)
{
    *text = held ? held : "";
    return held || strcmp(c->missing, "empty") == 0 ? COUNTS
           : strcmp(c->missing, "skip") == 0        ? LEFT_OUT
                                                    : REJECTED;
}

static enum outcome amount_of(const struct course *c, const struct counter *k, const struct image *image,
                              char *out)
{
    const char *v;
    enum outcome outcome = text_of(c, image->v, &v);
    snprintf(out, 64, "%.*s", v[0] ? (int)strlen(v) - 8 : 0, v[0] ? v + 6 : ""); /* {"N":"1"} */
    if (outcome != COUNTS)
        return outcome;
    if (v[0] == '{' && v[2] == 'S' && !k->takes_texts)
        return REJECTED;
    if (!out[0] && strcmp(c->missing, "empty") == 0)
        snprintf(out, 64, "0");
    return is_number(out) ? COUNTS : REJECTED;
}

static enum outcome row_of(const struct course *c, size_t i, const struct image *image, char *row)
{
    const char *g = "", *h = "-";
    enum outcome of_g = c->counters[i].g_in_key ? text_of(c, image->g, &g) : COUNTS;
    enum outcome of_h = c->counters[i].h_in_key ? text_of(c, image->h, &h) : COUNTS;
    snprintf(row, 64, "C%zu#%s/h%s", i, g, h);
    return of_g == REJECTED || of_h == REJECTED ? REJECTED : of_g == LEFT_OUT ? LEFT_OUT : of_h;
}

/* (An event's attributes are those of the new image, or else the old one's; the image that has to match is
 * one.) */
static bool matches(const struct counter *k, const struct image *image)
{
    return k->condition == ALWAYS || (k->condition == WHERE_H && image->h && strcmp(image->h, "x") == 0) ||
           (k->condition == WHEN_G && image->g && strcmp(image->g, "a") == 0);
}

/* What the image adds, and the extremes that it may set (`extremes` NULL: it is an old image, which sets
 * none); NULL: it is rejected. */
static json_t *contribution(const struct course *c, const struct image *image, const struct image *matching,
                            json_t *extremes)
{
    json_t *rows = json_object();
    for (size_t i = 0; i < c->n_counters; i++) {
        const struct counter *k = &c->counters[i];
        char row[64], v[64];
        if (!matches(k, matching))
            continue;
        enum outcome outcome = row_of(c, i, image, row);
        if (outcome == COUNTS && (k->sums || k->max || k->min))
            outcome = amount_of(c, k, image, v);
        if (outcome == REJECTED) {
            json_decref(rows);
            return NULL;
        }
        if (outcome == LEFT_OUT)
            continue;
        if (k->counts)
            add_to(rows, row, "n", "1", false);
        if (k->sums)
            add_to(rows, row, "sum", v, false);
        if (k->max && extremes)
            extend(extremes, row, "top", v);
        if (k->min && extremes)
            extend(extremes, row, "low", v);
    }
    return rows;
}

static void add_all(struct course *c, const json_t *rows, bool subtract)
{
    const char *row, *name;
    json_t *attributes, *number;
    json_object_foreach((json_t *)rows, row, attributes) json_object_foreach(attributes, name, number)
        add_to(c->sums, row, name, json_string_value(number), subtract);
}

/* (The extremes of a rejected record do not count: they are tried on a copy.) */
static json_t *contribution_of(struct course *c, const struct image *image, const struct image *matching)
{
    json_t *extremes = json_deep_copy(c->extremes);
    json_t *rows = contribution(c, image, matching, extremes);
    if (rows) {
        json_decref(c->extremes);
        c->extremes = extremes;
    } else {
        json_decref(extremes);
    }
    c->rejected += !rows;
    return rows;
}

/* `before`, `after`: NULL where the record has no such image. */
static void count_event(struct course *c, const struct image *before, const struct image *after)
{
    static const struct image none;
    const struct image *old = before ? before : &none, *new = after ? after : &none;
    const struct image merged = {new->g ? new->g : old->g, new->h ? new->h : old->h,
                                 new->v ? new->v : old->v};
    json_t *rows = contribution_of(c, &merged, after ? after : before);
    add_all(c, rows, false);
    json_decref(rows);
}

static void count_item(struct course *c, size_t item, const struct image *before, const struct image *after)
{
    json_t *was = c->has_ledger ? json_incref(c->counted[item])
                  : before      ? contribution(c, before, before, NULL)
                                : json_object();
    json_t *is = after && (was || c->has_ledger) ? contribution_of(c, after, after)
                 : after                         ? NULL
                                                 : json_object();
    if (!was && !c->has_ledger)
        c->rejected++;
    if (is && (was || c->has_ledger)) {
        add_all(c, was, true);
        add_all(c, is, false);
        json_decref(c->counted[item]);
        c->counted[item] = json_incref(is);
    }
    json_decref(was);
    json_decref(is);
}

/* ---- configurations ---- */

static void draw_course(struct course *c, uint64_t seed)
{
    static const char *const missing[] = {"reject", "skip", "empty"};
    *c = (struct course){.chance = seed * 104729, .seed = seed};
    c->n_counters = 1 + draw(c, COUNTERS);
    for (size_t i = 0; i < c->n_counters; i++) {
        struct counter *k = &c->counters[i];
        *k = (struct counter){.g_in_key = draw(c, 3) > 0, .h_in_key = draw(c, 2), .counts = draw(c, 3) > 0};
        k->sums = draw(c, 2);
        k->takes_texts = draw(c, 2);
        k->max = draw(c, 3) == 0;
        k->min = draw(c, 3) == 0;
        k->counts = k->counts || !(k->sums || k->max || k->min);
        k->condition = (enum condition)draw(c, 3);
    }
    c->missing = missing[draw(c, 3)];
    c->per_event = draw(c, 4) == 0;
    c->has_ledger = draw(c, 4) > 0;
    c->has_old = c->per_event || !c->has_ledger || draw(c, 2);
    c->faults = c->has_ledger && draw(c, 2);
    c->sums = json_object();
    c->extremes = json_object();
    for (size_t i = 0; i < ITEMS; i++)
        c->counted[i] = json_object();
}

static void add_amount(struct sl_buffer *out, const struct counter *k, const char *group, const char *name,
                       bool is)
{
    if (is)
        sl_buffer_printf(out, ",'%s':{'%s':'{v}%s'}", group, name, k->takes_texts ? "{e}" : "");
}

static char *config_of(struct course *c)
{
    static const char *const conditions[] = {"", ",'where':{'h':['x']}", ",'when':{'g':{'S':['a']}}"};
    static const char *const others[] = {"", ",'ledger':{'table':'ledger'}", ",'empty':'keep','epoch':3"};
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 16);
    sl_buffer_add_str(
        &out, "{'on_failure':'jsonl:${DIR}/dlq.jsonl','report_batch_item_failures':true,'max_parked':null,"
              "'routes':[{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals',"
              "'counters':[");
    for (size_t i = 0; i < c->n_counters; i++) {
        const struct counter *k = &c->counters[i];
        sl_buffer_printf(&out, "%s{'key':{'PK':'C%zu#%s','SK':'h%s'}%s,'add':{%s%s%s}", i ? "," : "", i,
                         k->g_in_key ? "{g}" : "", k->h_in_key ? "{h}" : "-", conditions[k->condition],
                         k->counts ? "'n':1" : "", k->counts && k->sums ? "," : "",
                         !k->sums         ? ""
                         : k->takes_texts ? "'sum':'{v}{e}'"
                                          : "'sum':'{v}'");
        add_amount(&out, k, "running_max", "top", k->max);
        add_amount(&out, k, "running_min", "low", k->min);
        sl_buffer_add_str(&out, "}");
    }
    sl_buffer_printf(&out, "],'missing':'%s','per':'%s','mode':'%s'%s}]}", c->missing,
                     c->per_event ? "event" : "item", c->has_ledger ? "exact" : "at-least-once",
                     c->has_ledger ? others[draw(c, 3)] : "");
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

/* ---- changes ---- */

static struct image draw_image(struct course *c)
{
    static const char *const gs[] = {"a", "b", "c", NULL}, *const hs[] = {"x", "y", "x", NULL};
    static const char *const vs[] = {"{\"N\":\"1\"}",
                                     "{\"N\":\"2.5\"}",
                                     "{\"N\":\"-3\"}",
                                     "{\"N\":\"1e2\"}",
                                     "{\"N\":\"0\"}",
                                     "{\"N\":\"-0.25\"}",
                                     "{\"S\":\"7\"}",
                                     "{\"N\":\"100\"}",
                                     "{\"N\":\"12345678901234567890\"}",
                                     NULL,
                                     "{\"S\":\"\"}",
                                     "{\"S\":\"abc\"}",
                                     "{\"S\":\"-\"}",
                                     "{\"S\":\".\"}",
                                     "{\"S\":\"1.2.3\"}",
                                     "{\"S\":\"--1\"}",
                                     "{\"S\":\"1-\"}",
                                     "{\"S\":\"12x\"}",
                                     "{\"S\":\"1/3\"}",
                                     "{\"S\":\"1:\"}",
                                     "{\"S\":\" 1\"}",
                                     "{\"S\":\"-5.\"}",
                                     "{\"S\":\".5\"}",
                                     "{\"S\":\"x1\"}",
                                     "{\"S\":\"-12\"}",
                                     "{\"S\":\"+1\"}",
                                     "{\"S\":\"1234567890123456789012345678901\"}"};
    bool is_good = draw(c, 4) > 0;
    return (struct image){gs[draw(c, is_good ? 3 : 4)], hs[draw(c, is_good ? 3 : 4)],
                          vs[draw(c, is_good ? 9 : sizeof(vs) / sizeof(vs[0]))]};
}

static void add_image(struct sl_buffer *out, const char *name, size_t item, const struct image *image)
{
    sl_buffer_printf(out, ",\"%s\":{\"PK\":{\"S\":\"%zu\"},\"e\":{\"S\":\"\"}", name, item);
    if (image->g)
        sl_buffer_printf(out, ",\"g\":{\"S\":\"%s\"}", image->g);
    if (image->h)
        sl_buffer_printf(out, ",\"h\":{\"S\":\"%s\"}", image->h);
    if (image->v)
        sl_buffer_printf(out, ",\"v\":%s", image->v);
    sl_buffer_add_str(out, "}");
}

/* One change, in the event and in the model. */
static void change(struct course *c, struct sl_buffer *out)
{
    size_t item = draw(c, ITEMS), number = ++c->number;
    bool was = c->is_there[item], is = !was || draw(c, 4) > 0;
    struct image before = c->items[item], after = draw_image(c);
    sl_buffer_printf(
        out,
        "{\"eventID\":\"e%zu\",\"eventName\":\"%s\",\"eventSource\":\"aws:dynamodb\",\"dynamodb\":{"
        "\"Keys\":{\"PK\":{\"S\":\"%zu\"}},\"SequenceNumber\":\"%zu\",\"StreamViewType\":\"%s\"",
        number,
        !was ? "INSERT"
        : is ? "MODIFY"
             : "REMOVE",
        item, number + 1000, c->has_old ? "NEW_AND_OLD_IMAGES" : "NEW_IMAGE");
    if (is)
        add_image(out, "NewImage", item, &after);
    if (was && c->has_old)
        add_image(out, "OldImage", item, &before);
    sl_buffer_add_str(out, "}}");
    c->is_there[item] = is;
    c->items[item] = after;
    if (c->per_event)
        count_event(c, was ? &before : NULL, is ? &after : NULL);
    else
        count_item(c, item, was ? &before : NULL, is ? &after : NULL);
}

static void deliver(struct course *c, struct stage *s)
{
    struct sl_buffer out;
    sl_buffer_init(&out, 1 << 20);
    sl_buffer_add_str(&out, "{\"Records\":[");
    for (size_t n = 1 + draw(c, 25); n > 0; n--) {
        change(c, &out);
        sl_buffer_add_str(&out, n > 1 ? "," : "]}");
    }
    sl_buffer_add_char(&out, '\0');
    for (size_t times = c->has_ledger ? 1 + draw(c, 2) : 1; times > 0; times--)
        if (!stage_drive(s, out.ptr, c->faults ? 200 : 1))
            fail_msg("seed %llu: %s", (unsigned long long)c->seed, s->answer.error.text);
    sl_buffer_clean_up(&out);
}

/* ---- what is there ---- */

static json_t *rows_of(struct stage *s)
{
    json_t *rows = json_object();
    char *text = stage_query(s, "db", "SELECT item FROM totals WHERE item NOT LIKE '%sluice:%'");
    for (char *row = text, *end; (end = strchr(row, '\n')); row = end + 1) {
        json_t *item = json_loadb(row, (size_t)(end - row), 0, NULL), *value;
        const char *pk = json_string_value(json_object_get(json_object_get(item, "PK"), "S")), *name;
        const char *sk = json_string_value(json_object_get(json_object_get(item, "SK"), "S"));
        char key[80];
        snprintf(key, sizeof(key), "%s/%s", pk, sk);
        json_object_foreach(item, name, value) if (json_object_get(value, "N"))
            add_to(rows, key, name, json_string_value(json_object_get(value, "N")), false);
        json_decref(item);
    }
    free(text);
    return rows;
}

/* A sum of 0 is as good as none; a running value is there or is not. */
static void expect_rows(const struct course *c, const json_t *these, const json_t *those, const char *config)
{
    const char *row, *name;
    json_t *attributes, *number;
    json_object_foreach((json_t *)these, row, attributes) json_object_foreach(attributes, name, number)
    {
        bool is_sum = strcmp(name, "n") == 0 || strcmp(name, "sum") == 0;
        const char *one = json_string_value(number);
        const char *other = json_string_value(json_object_get(json_object_get(those, row), name));
        if (strcmp(one, other ? other : is_sum ? "0" : "nothing") != 0)
            fail_msg("seed %llu: %s %s: %s and %s\n%s", (unsigned long long)c->seed, row, name, one,
                     other ? other : "nothing", config);
    }
}

static void run(uint64_t seed)
{
    struct course c;
    draw_course(&c, seed);
    char *config = config_of(&c);
    struct stage *s = stage_new(config, NULL);
    s->chance = seed;
    s->one_in = c.faults ? 12 : 0;
    for (size_t n = 3 + draw(&c, 8); n > 0; n--)
        deliver(&c, s);
    json_t *rows = rows_of(s), *wanted = json_deep_copy(c.sums), *attributes;
    const char *row;
    json_object_foreach(c.extremes, row, attributes)
    {
        if (!json_object_get(wanted, row))
            json_object_set_new(wanted, row, json_object());
        json_object_update(json_object_get(wanted, row), attributes);
    }
    expect_rows(&c, rows, wanted, config);
    expect_rows(&c, wanted, rows, config);
    assert_true(c.rejected == 0 || sl_pipeline_stats(s->p, 0).parked > 0);
    json_decref(rows);
    json_decref(wanted);
    json_decref(c.sums);
    json_decref(c.extremes);
    for (size_t i = 0; i < ITEMS; i++)
        json_decref(c.counted[i]);
    free(config);
    stage_destroy(s);
}

static void totals_are_what_a_plain_sum_makes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_what_a_plain_sum_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
