/* The process of a function that takes work items, beside an export of two files, its place and its keys:
 * what the tests of items share. */
#ifndef SL_TESTS_RUNTIME_WORK_FUNCTION_H
#define SL_TESTS_RUNTIME_WORK_FUNCTION_H

#include "tests/support/export.h"
#include "tests/support/runtime_api.h"
#include "tests/support/test.h"

#include "base/disk.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPLICA                                                                                              \
    "{'report_batch_item_failures':true,'routes':[{'name':'replica','handler':'replicate',"                  \
    "'to':'sqlite:${DIR}/r.db?table=orders','on_failure':'report'}]}"

#define ANY_ORDER "'given':{'unsafe_order':true}"

#define FIRST_FILE  25
#define SECOND_FILE 15

/* Writes it below the folder, where it is the source from now on. */
static inline void use_export(struct api *a, const struct test_export *export, const char *folder)
{
    char text[600];
    char *path = test_export_write(export, folder);
    snprintf(text, sizeof(text), "SLUICE_WORK_SOURCE=file:%s", path);
    api_set(a, text);
    free(path);
}

static inline int set_up(void **state)
{
    struct api *a = api_new();
    char *lines[2] = {test_export_lines(0, FIRST_FILE, 200), test_export_lines(100, SECOND_FILE, 200)};
    const struct test_export_file files[] = {{"a.json.gz", sl_span_str(lines[0])},
                                             {"b.json.gz", sl_span_str(lines[1])}};
    char text[600];
    use_export(a, &(struct test_export){.files = files, .n = 2}, api_folder(a));
    snprintf(text, sizeof(text), "%s/place/results", api_folder(a));
    assert_int_equal(sl_disk_make_folder(text, NULL), SL_OK);
    snprintf(text, sizeof(text), "SLUICE_WORK_PLACE=file:%s/place", api_folder(a));
    api_set(a, text);
    api_set(a, "SLUICE_WORK_ITEMS=1");
    api_set(a, "SLUICE_WORK_KEYS=PK,SK");
    for (int i = 0; i < 2; i++)
        free(lines[i]);
    *state = a;
    return 0;
}

static inline int tear_down(void **state)
{
    api_destroy(*state);
    return 0;
}

/* ---- asking ---- */

static inline json_t *answer_of(const struct api_post *post, const char *what)
{
    if (post->is_error)
        fail_msg("%s: %s", what, post->body);
    json_t *answer = json_loads(post->body, 0, NULL);
    assert_non_null(answer);
    return answer;
}

static inline void offer_until(struct api *a, struct sl_span payload, int64_t ahead_ms)
{
    char header[96];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(header, sizeof(header), "!Lambda-Runtime-Deadline-Ms: %lld\r\n",
             (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000 + (long long)ahead_ms);
    api_offer(a, payload, "turn", header);
}

static inline json_t *ask_until(struct api *a, const char *kind, const char *what, int64_t ahead_ms)
{
    offer_until(a, json_span(json_printf("{'sluice':{'%s':%s}}", kind, what)), ahead_ms);
    struct api_post post = api_posted(a);
    return answer_of(&post, what);
}

/* The answer to {"sluice":{KIND:WHAT}}: it has all of Lambda's time, so that on a slow machine, too, one turn
   does what a test expects of one. */
static inline json_t *ask(struct api *a, const char *kind, const char *what)
{
    return ask_until(a, kind, what, 900000);
}

static inline json_int_t number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value))
        fail_msg("%s is not a number", name);
    return json_integer_value(value);
}

/* It must be refused, with this type and these words. */
static inline void refused(struct api *a, const char *event, const char *type, const char *words)
{
    struct api_post post = api_deliver(a, json_span(event));
    if (!post.is_error || strcmp(post.type, type) != 0 || !strstr(post.body, json(words)))
        fail_msg("%s: %s %s", event, post.type, post.body);
}

static inline void write_place(struct api *a, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/place/%s", api_folder(a), name);
    test_write(path, text);
}

/* What Step Functions writes of a Map whose children answered so: a manifest, and a file with each answer. */
static inline void write_results(struct api *a, const char *const *outputs, size_t n)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(entries, json_pack("{s:s}", "Output", outputs[i]));
    char *text = json_dumps(entries, JSON_COMPACT);
    write_place(a, "results/S.json", text);
    write_place(a, "results/manifest.json",
                json("{'DestinationBucket':'','ResultFiles':{'FAILED':[],'PENDING':[],'SUCCEEDED':"
                     "[{'Key':'results/S.json'}]}}"));
    free(text);
    json_decref(entries);
}

static inline json_t *plan_of(struct api *a, const char *run)
{
    char name[100];
    snprintf(name, sizeof(name), "place/plans/%s.json", run);
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", api_folder(a), name);
    char *text = test_read(path, NULL);
    assert_non_null(text);
    json_t *list = json_loads(text, 0, NULL);
    assert_true(json_is_array(list));
    free(text);
    return list;
}

/* A piece of the plan, with these members instead of its own, as an item. */
static inline const char *changed_piece(struct api *a, const char *run, const char *members)
{
    json_t *plan = plan_of(a, run), *piece = json_array_get(plan, 0), *more = json_loads(members, 0, NULL);
    assert_int_equal(json_object_update(piece, more), 0);
    char *text = json_dumps(piece, JSON_COMPACT);
    const char *item = json_printf("{'sluice':{'backfill':%s}}", text);
    free(text);
    json_decref(more);
    json_decref(plan);
    return item;
}

/* The answer of a turn whose time is up when it begins. */
static inline json_t *ask_late(struct api *a, const char *kind, const char *what)
{
    return ask_until(a, kind, what, 500);
}

static inline json_t *do_piece(struct api *a, const json_t *piece)
{
    char *text = json_dumps(piece, JSON_COMPACT);
    json_t *answer = ask(a, "piece", text);
    free(text);
    return answer;
}

/* ---- an execution, as the state machine runs it ---- */

static void (*before_step)(struct api *a, unsigned step); /* the steps of a run, counted from 0 */
static unsigned steps;
static bool plans_are_late;

/* The planned pieces' answers. */
static inline void do_pieces(struct api *a, const json_t *plan)
{
    size_t n = (size_t)number(plan, "pieces");
    char **answers = calloc(n + 1, sizeof(*answers));
    const char *key = json_string_value(json_object_get(plan, "key")), *name = key + strlen("plans/");
    json_t *list = plan_of(a, json_printf("%.*s", (int)(strlen(name) - strlen(".json")), name));
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        json_t *answer = do_piece(a, json_array_get(list, i));
        assert_true(json_is_true(json_object_get(answer, "done")));
        answers[i] = json_dumps(answer, JSON_COMPACT);
        json_decref(answer);
    }
    write_results(a, (const char *const *)answers, n);
    for (size_t i = 0; i < n; i++)
        free(answers[i]);
    free(answers);
    json_decref(list);
}

/* What the last sum says. */
static inline json_t *execute(struct api *a, const char *run, const char *given)
{
    json_t *next = json_loads(json(given), 0, NULL);
    assert_non_null(next);
    for (steps = 0;; steps++) {
        if (before_step)
            before_step(a, steps);
        char *text = json_dumps(next, JSON_COMPACT);
        json_t *plan =
            (plans_are_late ? ask_late : ask)(a, "plan", json_printf("{'run':'%s','given':%s}", run, text));
        free(text);
        json_decref(next);
        do_pieces(a, plan);
        text = json_dumps(json_object_get(plan, "what"), JSON_COMPACT);
        json_t *sum = ask(a, "sum",
                          json_printf("{'results':'results/manifest.json','pieces':%d,'what':%s}",
                                      (int)number(plan, "pieces"), text));
        free(text);
        json_decref(plan);
        assert_null(json_object_get(sum, "last"));
        if (strcmp(json_string_value(json_object_get(sum, "outcome")), "again") != 0)
            return sum;
        next = json_incref(json_object_get(sum, "next"));
        json_decref(sum);
    }
}

#endif
