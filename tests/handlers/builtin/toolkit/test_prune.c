/* Values without what paths name: against a model that removes members of a tree one path at a time. */
#include "tests/support/test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/builtin/toolkit/prune.h"
#include "handlers/pipeline/host.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sl_host *const host = &sl_host_table;

/* The item's JSON without the paths, which end with NULL. */
static struct sl_span pruned(struct sl_arena *arena, const char *item, const char *const *paths)
{
    struct sl_prune root = {.below = NULL};
    struct sl_value value = {.type = SL_M, .raw = sl_span_str(item)};
    for (size_t i = 0; paths[i]; i++) {
        const char *why = sl_prune_add(host, arena, &root, sl_span_str(paths[i]));
        if (why)
            fail_msg("%s: %s", paths[i], why);
    }
    char *text = host->alloc(arena, value.raw.len + SL_VALUE_JSON_BYTES);
    return (struct sl_span){text, (size_t)(sl_prune_put(host, arena, &root, value, text) - text)};
}

static void what_paths_name_is_left_out(void **state)
{
    (void)state;
    static const char item[] = "{'a':{'M':{'b':{'S':'x'},'c':{'N':'1'}}},'l':{'L':[{'M':{'b':{'S':'y'},'c':"
                               "{'N':'2'}}},{'S':'z'},{'L':[{'M':{'b':{'BOOL':true}}}]}]},'s':{'S':'t'}}";
    static const struct {
        const char *paths[4], *wanted;
    } cases[] = {
        {{"a"},
         "'l':{'L':[{'M':{'b':{'S':'y'},'c':{'N':'2'}}},{'S':'z'},{'L':[{'M':{'b':{'BOOL':true}}}]}]},"
         "'s':{'S':'t'}"},
        {{"l", "a.b", "s"}, "'a':{'M':{'c':{'N':'1'}}}"},
        {{"a.b", "a.c", "l", "s"}, "'a':{'M':{}}"},
        {{"a.c", "a", "l"}, "'s':{'S':'t'}"},
        {{"a", "a.c", "l"}, "'s':{'S':'t'}"},
        {{"a", "s", "l[*].b"},
         "'l':{'L':[{'M':{'c':{'N':'2'}}},{'S':'z'},{'L':[{'M':{'b':{'BOOL':true}}}]}]}"},
        {{"a", "s", "l[*][*].b"},
         "'l':{'L':[{'M':{'b':{'S':'y'},'c':{'N':'2'}}},{'S':'z'},{'L':[{'M':{}}]}]}"},
        /* What a path does not find. */
        {{"l", "s.t", "a.b.c", "a[*].c"}, "'a':{'M':{'b':{'S':'x'},'c':{'N':'1'}}},'s':{'S':'t'}"},
        {{"l.b", "a", "s", "x"},
         "'l':{'L':[{'M':{'b':{'S':'y'},'c':{'N':'2'}}},{'S':'z'},{'L':[{'M':{'b':{'BOOL':true}}}]}]}"},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *paths[5] = {cases[i].paths[0], cases[i].paths[1], cases[i].paths[2], cases[i].paths[3]};
        assert_span_is(pruned(arena, json(item), paths), json_printf("{'M':{%s}}", cases[i].wanted));
    }
    sl_arena_destroy(arena);
}

static void what_is_no_path_is_refused_with_a_reason(void **state)
{
    (void)state;
#define EXPECTED "expected a path such as a"
#define BEGINS   "a path begins with an attribute's name"
#define ENDS     "a path ends with a name"
    static const struct {
        const char *path, *why;
    } cases[] = {
        {"", EXPECTED},      {".", EXPECTED},         {"a.", EXPECTED},    {".a", EXPECTED},
        {"a..b", EXPECTED},  {"``", EXPECTED},        {"`", EXPECTED},     {"`a", EXPECTED},
        {"a.``", EXPECTED},  {"a`b`", EXPECTED},      {"`a`b", EXPECTED},  {"a[*]b", EXPECTED},
        {"a[*].", EXPECTED}, {"[*].a", BEGINS},       {"$", BEGINS},       {"$.a", BEGINS},
        {"$[*].a", BEGINS},  {"a[0].b", "write [*]"}, {"a[", "write [*]"}, {"a[*", "write [*]"},
        {"a[*]", ENDS},      {"a.b[*]", ENDS},        {"a[*][*]", ENDS},
    };
    static const char *const good[] = {"$a",    "$$",      "a[*].b", "`a.b`", "`a[`.b",
                                       "`$`.c", "`a`.`b`", "a b",    "a]"};
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_prune root = {.below = NULL};
        const char *longer = json_printf("%s[*].a", cases[i].path); /* what follows is not read */
        const char *why = sl_prune_add(host, arena, &root, sl_span(longer, strlen(cases[i].path)));
        if (!why || !strstr(why, cases[i].why))
            fail_msg("\"%s\": %s", cases[i].path, why ? why : "it passes");
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sl_prune root = {.below = NULL};
        const char *why = sl_prune_add(host, arena, &root, sl_span_str(good[i]));
        if (why)
            fail_msg("\"%s\": %s", good[i], why);
    }
    sl_arena_destroy(arena);
}

/* ---- against the model ---- */

/* Names as they are, as paths write them, and as JSON may. No path names the empty one. */
static const struct {
    const char *name, *path, *json;
} names[] = {{"a", "a", "a"},         {"b", "`b`", "\\u0062"},
             {"c.d", "`c.d`", "c.d"}, {"e[*]", "`e[*]`", "e[\\u002a]"},
             {"g\"", "g\"", "g\\\""}, {"", NULL, ""}};
enum { NAMES = sizeof(names) / sizeof(names[0]), STEPS = 4 };

static size_t draw(uint64_t *chance, size_t n)
{
    return sl_random_step(chance) % n;
}

static void put_value(uint64_t *chance, int depth, FILE *out);

/* A map's members or a list's elements, each name once. */
static void put_many(uint64_t *chance, int depth, bool is_map, FILE *out)
{
    const char *comma = "";
    for (size_t i = 0; i < NAMES; i++) {
        if (draw(chance, 2))
            continue;
        fputs(comma, out);
        if (is_map)
            fprintf(out, "\"%s\":", names[i].json);
        put_value(chance, depth, out);
        comma = ",";
    }
}

static void put_value(uint64_t *chance, int depth, FILE *out)
{
    size_t kind = draw(chance, depth > 0 ? 3 : 1);
    if (kind == 0) {
        fprintf(out, "{\"N\":\"%zu\"}", draw(chance, 10));
        return;
    }
    fputs(kind == 1 ? "{\"M\":{" : "{\"L\":[", out);
    put_many(chance, depth - 1, kind == 1, out);
    fputs(kind == 1 ? "}}" : "]}", out);
}

/* A path as text, and its steps: a name's number, NAMES for [*]. Returns how many; the last is a name. */
static size_t draw_path(uint64_t *chance, char *text, size_t room, size_t steps[STEPS])
{
    size_t n = 1 + draw(chance, STEPS), len = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_any = i > 0 && i + 1 < n && draw(chance, 2);
        steps[i] = is_any ? NAMES : draw(chance, NAMES - 1);
        len += (size_t)snprintf(text + len, room - len, "%s%s", is_any || i == 0 ? "" : ".",
                                is_any ? "[*]" : names[steps[i]].path);
    }
    return n;
}

/* Removes what the steps name from the attributes of a map. */
static void model_remove(json_t *members, const size_t *steps, size_t n)
{
    json_t *value = json_object_get(members, names[steps[0]].name), *element;
    size_t i, at = 1;
    if (n == 1) {
        json_object_del(members, names[steps[0]].name);
        return;
    }
    if (steps[1] < NAMES) {
        if (json_object_get(value, "M"))
            model_remove(json_object_get(value, "M"), steps + 1, n - 1);
        return;
    }
    /* Lists in lists: each element is as if it were the attribute. */
    json_t *list = json_object_get(value, "L");
    json_array_foreach(list, i, element)
    {
        json_t *as_attribute = json_object();
        json_object_set(as_attribute, "a", element);
        size_t below[STEPS] = {0};
        memcpy(below + 1, steps + at + 1, (n - at - 1) * sizeof(*steps));
        model_remove(as_attribute, below, n - at);
        json_decref(as_attribute);
    }
}

static void random_paths_leave_out_what_a_model_removes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t chance = seed * 0x9E3779B97F4A7C15u;
        struct sl_arena *arena = sl_arena_new(4096);
        char *item = NULL, texts[3][80];
        const char *paths[4] = {NULL};
        size_t size = 0, n_paths = 1 + draw(&chance, 3);
        FILE *out = open_memstream(&item, &size);
        fputc('{', out);
        put_many(&chance, 3, true, out);
        fputc('}', out);
        fclose(out);
        json_t *wanted = json_loads(item, 0, NULL);
        for (size_t i = 0; i < n_paths; i++) {
            size_t steps[STEPS], n = draw_path(&chance, texts[i], sizeof(texts[i]), steps);
            paths[i] = texts[i];
            model_remove(wanted, steps, n);
        }
        struct sl_span text = pruned(arena, item, paths);
        json_t *got = json_loadb(text.ptr, text.len, 0, NULL);
        if (!got || !json_equal(json_object_get(got, "M"), wanted))
            fail_msg("seed %llu: %s without %s: %.*s", (unsigned long long)seed, item, paths[0],
                     SL_ARG(text));
        json_decref(got);
        json_decref(wanted);
        free(item);
        sl_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_paths_name_is_left_out),
        cmocka_unit_test(what_is_no_path_is_refused_with_a_reason),
        cmocka_unit_test(random_paths_leave_out_what_a_model_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
