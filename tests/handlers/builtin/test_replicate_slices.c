/* Random histories of a few items, in random slices, some of them delivered again: the replica ends as one
 * record at a time makes it, and as a plain model says, in each form of guard. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTE                                                                                                \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:${DIR}/db?table=replica'%s%s}]}"

#define ITEMS 3
#define MOST  24

static const struct guard {
    const char *members;
    bool has_inline, repeats; /* repeats: changes may be redelivered, also after later ones */
} guards[] = {{"", true, true},
              {",'tombstones':{'table':'side'}", true, true},
              {",'guard':{'table':'side'}", false, true},
              {",'guard':'none'", false, false}};

static const struct shape {
    const char *members;
    bool selects, reshapes; /* items whose g is x; see wanted_row() */
} shapes[] = {{"", false, false},
              {",'where':{'g':['x']}", true, false},
              {",'drop':['d'],'rename':{'g':'h'},'set':{'w':'of {v}'}", false, true}};

struct item {
    bool is_there;
    size_t v;
    char g;
};

struct course {
    uint64_t chance;
    size_t n;
    char records[MOST][800];
    struct item items[ITEMS];
};

static size_t draw(struct course *c, size_t n)
{
    return (size_t)(sl_random_step(&c->chance) % n);
}

/* ---- histories ---- */

static void put_image(char *out, size_t room, size_t i, const struct item *item)
{
    snprintf(out, room, "'PK':{'S':'k%zu'},'v':{'N':'%zu'},'g':{'S':'%c'},'d':{'L':[]}", i, item->v, item->g);
}

static void put_record(struct course *c, const char *event, size_t i, const char *images)
{
    char *out = c->records[c->n++];
    snprintf(out, sizeof(c->records[0]),
             "{'eventID':'e%zu','eventName':'%s','eventSource':'aws:dynamodb','dynamodb':{'Keys':{'PK':{'S':"
             "'k%zu'}}%s,'SequenceNumber':'%zu','ApproximateCreationDateTime':1767265199,'StreamViewType':"
             "'NEW_AND_OLD_IMAGES'}}",
             c->n, event, i, images, 95 + c->n);
}

static void change(struct course *c)
{
    size_t i = draw(c, ITEMS);
    struct item *item = &c->items[i];
    bool was_there = item->is_there;
    char old[100], new[100], images[300];
    put_image(old, sizeof(old), i, item);
    item->is_there = !was_there || draw(c, 3) > 0;
    item->v = c->n;
    item->g = "xy"[draw(c, 2)];
    put_image(new, sizeof(new), i, item);
    if (!item->is_there)
        snprintf(images, sizeof(images), ",'OldImage':{%s}", old);
    else if (was_there)
        snprintf(images, sizeof(images), ",'NewImage':{%s},'OldImage':{%s}", new, old);
    else
        snprintf(images, sizeof(images), ",'NewImage':{%s}", new);
    put_record(c, item->is_there ? was_there ? "MODIFY" : "INSERT" : "REMOVE", i, images);
}

/* What another replicate wrote into the table that is followed: nothing of it may be replicated. */
static char *echo_image(void)
{
    struct stage *s = stage_new(json_printf(ROUTE, "", ""), NULL);
    stage_deliver_all(
        s, EVENT(RECORD("INSERT", "7", KEYS(PK("k9")) NEW(PK("k9") ",'g':" S("x") ",'v':" N("1")))));
    char *row = stage_query(s, "db", "SELECT item FROM replica");
    row[strcspn(row, "\n")] = '\0';
    stage_destroy(s);
    return row;
}

static void draw_course(struct course *c, const char *echo)
{
    size_t n = 1 + draw(c, MOST);
    while (c->n < n) {
        if (echo && draw(c, 6) == 0) {
            char images[500];
            snprintf(images, sizeof(images), ",'NewImage':%s", echo);
            put_record(c, "INSERT", 9, images);
        } else {
            change(c);
        }
    }
}

/* ---- deliveries ---- */

static void deliver(struct stage *s, const struct course *c, size_t from, size_t to)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    for (size_t i = from; i < to; i++)
        sl_buffer_printf(&text, "%s%s", i > from ? "," : "", c->records[i]);
    sl_buffer_add_char(&text, '\0');
    const char *event = json_printf("{'Records':[%s]}", text.ptr);
    assert_true(stage_drive(s, event, 100));
    sl_buffer_clean_up(&text);
}

static void deliver_slices(struct stage *s, struct course *c, bool repeats)
{
    for (size_t i = 0; i < c->n;) {
        size_t end = i + 1 + draw(c, c->n - i);
        deliver(s, c, i, end);
        i = end;
        if (repeats && draw(c, 2)) {
            size_t from = draw(c, end);
            deliver(s, c, from, from + 1 + draw(c, end - from));
        }
    }
}

/* ---- what the replica holds ---- */

static json_t *rows_of(const struct stage *s, const char *table)
{
    char sql[200];
    snprintf(sql, sizeof(sql), "SELECT json_group_array(json(item)) FROM (SELECT item FROM %s ORDER BY key)",
             table);
    char *text = stage_query(s, "db", sql);
    json_t *rows = *text ? json_loads(text, 0, NULL) : json_array();
    assert_non_null(rows);
    free(text);
    return rows;
}

/* Takes from the rows what depends on the time of writing: when a tombstone may go, and what signs it. */
static void forget_times(json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (json_object_del(row, "sluice_expires") == 0)
            json_object_set_new(row, "expires", json_true());
        if (json_object_get(row, "sluice_deleted"))
            json_object_del(row, "sluice_write");
    }
}

/* Leaves what a reader sees. Every row of a guarded replica has its order and its signature. */
static void keep_visible(json_t *rows, bool has_inline)
{
    for (size_t i = json_array_size(rows); i-- > 0;) {
        json_t *row = json_array_get(rows, i);
        assert_true(json_object_del(row, "sluice_order") == (has_inline ? 0 : -1));
        (void)json_object_del(row, "sluice_write");
        if (json_object_get(row, "sluice_deleted"))
            json_array_remove(rows, i);
    }
}

static json_t *wanted_row(const struct shape *shape, size_t i, const struct item *item)
{
    char key[8], v[8], made[16], g[2] = {item->g};
    snprintf(key, sizeof(key), "k%zu", i);
    snprintf(v, sizeof(v), "%zu", item->v);
    snprintf(made, sizeof(made), "of %zu", item->v);
    json_t *row = json_pack("{s:{s:s},s:{s:s},s:{s:s}}", "PK", "S", key, "v", "N", v,
                            shape->reshapes ? "h" : "g", "S", g);
    json_object_set_new(row, shape->reshapes ? "w" : "d",
                        shape->reshapes ? json_pack("{s:s}", "S", made) : json_pack("{s:[]}", "L"));
    return row;
}

static json_t *wanted_rows(const struct shape *shape, const struct course *c)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < ITEMS; i++)
        if (c->items[i].is_there && (!shape->selects || c->items[i].g == 'x'))
            json_array_append_new(rows, wanted_row(shape, i, &c->items[i]));
    return rows;
}

static void same(json_t *got, json_t *wanted, const char *what, uint64_t seed)
{
    if (!json_equal(got, wanted)) {
        char *a = json_dumps(got, 0), *b = json_dumps(wanted, 0);
        fail_msg("seed %llu, %s: %s instead of %s", (unsigned long long)seed, what, a, b);
    }
    json_decref(got);
    json_decref(wanted);
}

/* ---- the properties ---- */

static void run(uint64_t seed, const struct guard *guard, const struct shape *shape, const char *echo)
{
    struct course c = {.chance = seed};
    draw_course(&c, guard->has_inline ? echo : NULL);
    const char *config = json_printf(ROUTE, guard->members, shape->members);
    struct stage *sliced = stage_new(config, NULL), *single = stage_new(config, NULL);
    sliced->chance = seed;
    sliced->one_in = seed % 2 ? 5 : 0;
    deliver_slices(sliced, &c, guard->repeats);
    for (size_t i = 0; i < c.n; i++)
        deliver(single, &c, i, i + 1);
    /* An item that is not selected any more has an order of its own choice: its last change or an earlier. */
    for (int side = 0; side < 2 && !shape->selects; side++) {
        if (side && strcmp(guard->members, ",'guard':{'table':'side'}") != 0)
            break;
        json_t *got = rows_of(sliced, side ? "side" : "replica"),
               *wanted = rows_of(single, side ? "side" : "replica");
        forget_times(got);
        forget_times(wanted);
        same(got, wanted, side ? "the side table" : "the replica", seed);
    }
    json_t *got = rows_of(sliced, "replica");
    keep_visible(got, guard->has_inline);
    same(got, wanted_rows(shape, &c), config, seed);
    got = rows_of(single, "replica");
    keep_visible(got, guard->has_inline);
    same(got, wanted_rows(shape, &c), "one at a time", seed);
    stage_destroy(sliced);
    stage_destroy(single);
}

static void slices_end_as_one_record_at_a_time(void **state)
{
    (void)state;
    char *echo = echo_image();
    uint64_t seed = 0;
    for (size_t times = 0; times < 20; times++)
        for (size_t g = 0; g < sizeof(guards) / sizeof(guards[0]); g++)
            for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++)
                run(++seed, &guards[g], &shapes[k], echo);
    free(echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_end_as_one_record_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
