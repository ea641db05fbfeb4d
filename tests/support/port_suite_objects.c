/* Random puts, reads, lists and removals in random batches against a model that does them one by one. */
#include "tests/support/port_suite.h"

#include "base/clock.h"

#include <stdio.h>

enum { ROUNDS = 60, KEYS = 30, MOST = 40, BODY = 300 };

struct world {
    struct port_suite *suite;
    uint64_t random;
    const char *keys[KEYS];      /* in their order */
    struct sl_span bodies[KEYS]; /* the model's; absent: no object */
    struct sl_span etags[KEYS];  /* as the last list said; absent: not known */
    bool taken[KEYS];            /* by an operation of this batch */
};

static unsigned roll(struct world *w, unsigned below)
{
    return (unsigned)(sl_random_step(&w->random) % below);
}

/* Up to `most` different keys; returns how many. */
static size_t choose_keys(struct world *w, size_t *out, size_t most)
{
    size_t n = 0;
    memset(w->taken, 0, sizeof(w->taken));
    for (size_t tries = 0; tries < most; tries++) {
        size_t key = roll(w, KEYS);
        if (!w->taken[key])
            out[n++] = key;
        w->taken[key] = true;
    }
    return n;
}

static struct sl_span invent_body(struct world *w)
{
    size_t len = roll(w, 4) ? roll(w, BODY) : 0;
    char *bytes = sl_arena_alloc(w->suite->call.arena, len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)roll(w, 256);
    return sl_span(bytes, len);
}

static void assert_status(struct world *w, size_t key, const struct sl_result *have, enum sl_status wanted,
                          const char *code)
{
    if (have->status != wanted || (code && strcmp(have->code, code) != 0))
        fail_msg("%s: %s: status %d, %s: %s; by the model %d", w->suite->name, w->keys[key],
                 (int)have->status, have->code ? have->code : "-", have->text ? have->text : "-",
                 (int)wanted);
}

static void put_some(struct world *w)
{
    struct sl_object objects[MOST];
    struct sl_result results[MOST];
    size_t keys[MOST], n = choose_keys(w, keys, 1 + roll(w, MOST));
    for (size_t i = 0; i < n; i++)
        objects[i] = (struct sl_object){
            .key = sl_span_str(w->keys[keys[i]]), .body = invent_body(w), .content_named = roll(w, 3) == 0};
    w->suite->objects->apply(w->suite->objects, objects, n, results, &w->suite->call);
    for (size_t i = 0; i < n; i++) {
        size_t key = keys[i];
        assert_status(w, key, &results[i], SL_OK, NULL);
        if (objects[i].content_named && w->bodies[key].ptr)
            continue;
        w->bodies[key] = objects[i].body;
        w->etags[key] = sl_span(NULL, 0);
    }
}

/* With the entity tag that the object has, with another one, or without. */
static struct sl_span invent_etag(struct world *w, size_t key, bool *is_stale)
{
    unsigned what = roll(w, 3);
    *is_stale = what == 0;
    return what == 0 ? SL_LIT("another") : what == 1 ? w->etags[key] : sl_span(NULL, 0);
}

static void read_some(struct world *w)
{
    struct sl_object_read reads[MOST];
    struct sl_object_piece pieces[MOST];
    bool is_stale[MOST];
    size_t keys[MOST], n = choose_keys(w, keys, 1 + roll(w, MOST));
    for (size_t i = 0; i < n; i++)
        reads[i] = (struct sl_object_read){.key = sl_span_str(w->keys[keys[i]]),
                                           .from = roll(w, 3) ? 0 : roll(w, BODY),
                                           .max_bytes = 1 + roll(w, BODY),
                                           .etag = invent_etag(w, keys[i], &is_stale[i])};
    w->suite->objects->read(w->suite->objects, reads, n, pieces, &w->suite->call);
    for (size_t i = 0; i < n; i++) {
        struct sl_span body = w->bodies[keys[i]];
        if (!body.ptr || is_stale[i]) {
            assert_status(w, keys[i], &pieces[i].result, SL_REJECT,
                          !body.ptr ? "NoSuchKey" : "PreconditionFailed");
            continue;
        }
        assert_status(w, keys[i], &pieces[i].result, SL_OK, NULL);
        struct sl_span rest = sl_span_from(body, reads[i].from < body.len ? (size_t)reads[i].from : body.len);
        rest.len = rest.len < reads[i].max_bytes ? rest.len : reads[i].max_bytes;
        assert_true(sl_span_eq(pieces[i].bytes, rest));
        assert_int_equal(pieces[i].object_bytes, body.len);
    }
}

static void remove_some(struct world *w)
{
    struct sl_object_removal removals[MOST];
    struct sl_result results[MOST];
    bool is_stale[MOST];
    size_t keys[MOST], n = choose_keys(w, keys, 1 + roll(w, MOST / 4));
    for (size_t i = 0; i < n; i++)
        removals[i] = (struct sl_object_removal){.key = sl_span_str(w->keys[keys[i]]),
                                                 .etag = invent_etag(w, keys[i], &is_stale[i])};
    w->suite->objects->remove(w->suite->objects, removals, n, results, &w->suite->call);
    for (size_t i = 0; i < n; i++) {
        bool stays = w->bodies[keys[i]].ptr && is_stale[i];
        assert_status(w, keys[i], &results[i], stays ? SL_REJECT : SL_OK,
                      stays ? "PreconditionFailed" : NULL);
        if (!stays)
            w->bodies[keys[i]] = sl_span(NULL, 0);
    }
}

/* All pages of a random size, from a random key on. */
static void list_all(struct world *w)
{
    size_t key = roll(w, 2) ? roll(w, KEYS) : KEYS;
    struct sl_object_list list = {.prefix = SL_LIT("model/"), .limit = roll(w, 4) ? 1 + roll(w, KEYS) : 0};
    if (key < KEYS)
        list.after = sl_span_str(w->keys[key]);
    size_t next = key < KEYS ? key + 1 : 0;
    do {
        struct sl_object_page page;
        w->suite->objects->list(w->suite->objects, &list, &page, &w->suite->call);
        assert_int_equal(page.result.status, SL_OK);
        assert_true(!list.limit || page.n <= list.limit);
        for (size_t i = 0; i < page.n; i++, next++) {
            while (next < KEYS && !w->bodies[next].ptr)
                next++;
            assert_true(next < KEYS);
            assert_span_is(page.entries[i].key, w->keys[next]);
            assert_int_equal(page.entries[i].bytes, w->bodies[next].len);
            w->etags[next] = page.entries[i].etag;
        }
        list.after = page.next;
    } while (list.after.ptr);
    for (; next < KEYS; next++)
        assert_null(w->bodies[next].ptr);
}

static void batches_do_what_one_by_one_does(struct port_suite *suite)
{
    static void (*const steps[])(struct world *) = {put_some,  put_some,    read_some,
                                                    read_some, remove_some, list_all};
    struct world w = {.suite = suite, .random = 3};
    for (size_t i = 0; i < KEYS; i++)
        w.keys[i] =
            sl_arena_printf(suite->call.arena, i % 3 ? "model/%02zu" : "model/%02zu/a b+%%20\xc3\xa4", i);
    for (int round = 0; round < ROUNDS; round++)
        steps[roll(&w, sizeof(steps) / sizeof(steps[0]))](&w);
    list_all(&w);
}

/* What has no place is refused one by one, and nothing else is. */
static void a_removal_of_no_key_is_refused(struct port_suite *suite)
{
    const struct sl_object object = {.key = SL_LIT("removed/good"), .body = SL_LIT("x")};
    const struct sl_object_removal removals[] = {
        {.key = SL_LIT("removed/../x")}, {.key = SL_LIT("removed/good")}, {.key = SL_LIT("")}};
    struct sl_result results[3];
    suite->objects->apply(suite->objects, &object, 1, results, &suite->call);
    suite->objects->remove(suite->objects, removals, 3, results, &suite->call);
    assert_int_equal(results[0].status, SL_REJECT);
    assert_true(results[0].not_sent && results[2].not_sent);
    assert_int_equal(results[1].status, SL_OK);
    assert_int_equal(results[2].status, SL_REJECT);
    struct sl_object_page page;
    suite->objects->list(suite->objects, &(struct sl_object_list){.prefix = SL_LIT("removed/")}, &page,
                         &suite->call);
    assert_int_equal(page.n, 0);
}

static void a_range_that_is_none_is_refused(struct port_suite *suite)
{
    const struct sl_object object = {.key = SL_LIT("no-range"), .body = SL_LIT("x")};
    const struct sl_object_read reads[] = {{.key = object.key, .from = 0, .max_bytes = 0},
                                           {.key = object.key, .from = UINT64_MAX, .max_bytes = 2},
                                           {.key = SL_LIT("a//b"), .from = 0, .max_bytes = 1},
                                           {.key = object.key, .from = UINT64_MAX - 1, .max_bytes = 2},
                                           {.key = object.key, .from = 0, .max_bytes = 1}};
    struct sl_object_piece pieces[5];
    suite->objects->apply(suite->objects, &object, 1, &pieces[0].result, &suite->call);
    suite->objects->read(suite->objects, reads, 5, pieces, &suite->call);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pieces[i].result.status, SL_REJECT);
        assert_true(pieces[i].result.not_sent && pieces[i].result.code && pieces[i].result.text);
    }
    for (size_t i = 3; i < 5; i++) {
        assert_int_equal(pieces[i].result.status, SL_OK);
        assert_int_equal(pieces[i].bytes.len, i == 4);
    }
}

const struct port_case port_object_batch_cases[] = {
    {"batches_do_what_one_by_one_does", batches_do_what_one_by_one_does},
    {"a_removal_of_no_key_is_refused", a_removal_of_no_key_is_refused},
    {"a_range_that_is_none_is_refused", a_range_that_is_none_is_refused},
    {NULL, NULL},
};
