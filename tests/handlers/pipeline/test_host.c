/* The host table as a plugin sees it: what it says of every record of a recorded stream, beside other ways to
 * the same answer, and of made values of every type. */
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "handlers/pipeline/host.h"
#include "live/source/input.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sl_host *const host = &sl_host_table;

/* ---- the difference of two images ---- */

struct change {
    struct sl_span name;
    struct sl_value before, after;
};

static size_t changes_of(const struct sl_record *r, struct sl_arena *arena, struct change *out, size_t room)
{
    struct sl_diff diff = host->record_diff(r, arena);
    size_t n = 0;
    for (; host->diff_next(&diff, &out[n].name, &out[n].before, &out[n].after); n++)
        assert_true(n + 1 < room);
    assert_false(host->diff_next(&diff, &out[n].name, &out[n].before, &out[n].after)); /* stays at its end */
    return n;
}

static bool same(struct sl_value a, struct sl_value b)
{
    return a.type == b.type && sl_span_eq(a.raw, b.raw);
}

/* Each reported once, with the values that the images have, and record_changed says so. */
static void check_reported(const struct sl_record *r, const struct change *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(host->record_changed(r, list[i].name));
        bool is_insert = host->record_event(r) == SL_INSERT, is_remove = host->record_event(r) == SL_REMOVE;
        struct sl_value none = {.type = SL_NONE};
        assert_true(
            same(list[i].before, is_insert ? none : host->record_attribute(r, SL_OLD_IMAGE, list[i].name)));
        assert_true(
            same(list[i].after, is_remove ? none : host->record_attribute(r, SL_NEW_IMAGE, list[i].name)));
        for (size_t k = 0; k < i; k++)
            assert_false(sl_span_eq(list[k].name, list[i].name));
    }
}

static size_t count_changed(const struct sl_record *r, enum sl_image image, enum sl_image unless,
                            struct sl_arena *arena)
{
    struct sl_iter iter = host->value_iter(host->record_image(r, image));
    struct sl_span name;
    struct sl_value value;
    size_t n = 0;
    while (host->value_next(&iter, &name, &value)) {
        name = host->json_unquote(arena, name);
        bool counted = unless != SL_ANY_IMAGE && host->record_attribute(r, unless, name).type != SL_NONE;
        n += !counted && host->record_changed(r, name);
    }
    return n;
}

static void read_capture(struct sl_arena *arena, struct sl_input *out)
{
    struct sl_error error = {0};
    const struct sl_decode_options options = {.any_shape = true};
    assert_int_equal(sl_input_read("examples/capture/orders.jsonl.gz", &options, arena, out, &error), SL_OK);
    assert_true(out->batch.n > 1000);
}

static void diff_is_what_changed_says_of_every_attribute(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_input input;
    static struct change list[2000];
    size_t total = 0;
    read_capture(arena, &input);
    for (size_t i = 0; i < input.batch.n; i++) {
        const struct sl_record *r = sl_batch_record(&input.batch, i);
        size_t n = changes_of(r, arena, list, 2000);
        check_reported(r, list, n);
        assert_int_equal(n, count_changed(r, SL_NEW_IMAGE, SL_ANY_IMAGE, arena) +
                                count_changed(r, SL_OLD_IMAGE, SL_NEW_IMAGE, arena));
        total += n;
    }
    assert_true(total > input.batch.n);
    sl_arena_destroy(arena);
}

#define K "'k':" S("a")

static void differing_is(const char *event, const char *images, const char *wanted)
{
    struct test_batch t;
    struct change list[20];
    char text[500] = "", members[500];
    snprintf(members, sizeof(members), KEYS(K) "%s", images);
    const struct sl_record *r = test_record(&t, event, members, "");
    size_t n = changes_of(r, t.arena, list, 20);
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%.*s:%.*s>%.*s;", SL_ARG(list[i].name),
                 SL_ARG(list[i].before.raw), SL_ARG(list[i].after.raw));
    }
    assert_string_equal(text, wanted);
    test_batch_clean_up(&t);
}

static void a_diff_of_made_images_is_right(void **state)
{
    (void)state;
    differing_is("MODIFY",
                 OLD(K ",'gone':" N("1") ",'same':" N("1.0") ",'other':" S("x"))
                     NEW(K ",'same':" N("1") ",'other':" N("2") ",'new':{'BOOL':true}"),
                 "other:x>2;new:>true;gone:1>;");
    differing_is("MODIFY", NEW(K ",'a':" N("1")), ""); /* what was before is not known */
    differing_is("MODIFY", OLD(K ",'a':" N("1")), "");
    differing_is("MODIFY", "", "");
    differing_is("INSERT", "", "");
    differing_is("INSERT", NEW(K ",'a':" N("1")), "k:>a;a:>1;");
    differing_is("REMOVE", OLD(K ",'a':" N("1")), "k:a>;a:1>;");
    differing_is("REMOVE", "", "");
    /* Sets have no order; names may be written in two ways. */
    differing_is("MODIFY",
                 OLD(K ",'s':{'SS':['b','a']},'a\\u0062':" S("x") ",'q\\\"':" S("y"))
                     NEW(K ",'s':{'SS':['a','b']},'ab':" S("x") ",'q\\u0022':" S("z")),
                 "q\":y>z;");
}

/* ---- values ---- */

static struct sl_value value_of(struct test_batch *t, const char *json)
{
    char members[600];
    snprintf(members, sizeof(members), KEYS(K) NEW(K ",'v':%s"), json);
    return host->record_attribute(test_record(t, "INSERT", members, ""), SL_NEW_IMAGE, SL_LIT("v"));
}

static void every_type_has_its_getter(void **state)
{
    (void)state;
    struct test_batch t;
    int64_t n = 0;
    struct sl_value v = value_of(&t, "{'S':'a\\\"\\u00e9'}");
    assert_span_is(host->value_text(v, t.arena), "a\"\xc3\xa9");
    test_batch_clean_up(&t);
    v = value_of(&t, "{'N':'12345678901234567890.123'}");
    assert_span_is(host->value_text(v, t.arena), "12345678901234567890.123");
    assert_false(host->value_int64(v, &n));
    test_batch_clean_up(&t);
    assert_true(host->value_int64(value_of(&t, "{'N':'-1.20e1'}"), &n));
    assert_int_equal(n, -12);
    test_batch_clean_up(&t);
    v = value_of(&t, "{'B':'AAEC/w=='}");
    assert_span_is(host->value_text(v, t.arena), "AAEC/w==");
    struct sl_span bytes = host->value_bytes(v, t.arena);
    assert_int_equal(bytes.len, 4);
    assert_memory_equal(bytes.ptr, "\0\1\2\377", 4);
    test_batch_clean_up(&t);
    v = value_of(&t, "{'BOOL':true}");
    assert_true(host->value_is_true(v));
    assert_null(host->value_text(v, t.arena).ptr);
    assert_null(host->value_bytes(v, t.arena).ptr);
    test_batch_clean_up(&t);
    assert_false(host->value_is_true(value_of(&t, "{'NULL':true}")));
    test_batch_clean_up(&t);
}

static void elements_are(const char *json, const char *wanted)
{
    struct test_batch t;
    struct sl_iter iter = host->value_iter(value_of(&t, json));
    struct sl_span name = {NULL, 0};
    struct sl_value element;
    char text[300] = "";
    while (host->value_next(&iter, &name, &element)) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%.*s/%d/%.*s;", SL_ARG(name), (int)element.type,
                 SL_ARG(element.raw));
        name = (struct sl_span){NULL, 0};
    }
    assert_string_equal(text, wanted);
    test_batch_clean_up(&t);
}

static void sets_lists_and_maps_are_walked(void **state)
{
    (void)state;
    elements_are("{'SS':['a','b']}", "/1/a;/1/b;");
    elements_are("{'NS':['1','2.5']}", "/2/1;/2/2.5;");
    elements_are("{'BS':['AA==']}", "/3/AA==;");
    elements_are("{'L':[{'S':'x'},{'NULL':true},{'L':[]}]}", "/1/x;/5/true;/9/[];");
    elements_are("{'L':[]}", "");
    elements_are("{'M':{'a':{'N':'1'},'b':{'M':{}}}}", "a/2/1;b/10/{};");
    elements_are("{'M':{}}", "");
    elements_are("{'S':'text'}", "");
}

static void members_are_found_by_name(void **state)
{
    (void)state;
    struct test_batch t;
    struct sl_value v = value_of(&t, "{'M':{'a':{'N':'1'},'q\\\"':{'S':'x'}}}");
    assert_span_is(host->value_member(v, SL_LIT("a")).raw, "1");
    assert_span_is(host->value_member(v, SL_LIT("q\"")).raw, "x");
    assert_int_equal(host->value_member(v, SL_LIT("b")).type, SL_NONE);
    assert_int_equal(host->value_member(host->value_member(v, SL_LIT("a")), SL_LIT("a")).type, SL_NONE);
    assert_int_equal(host->value_member((struct sl_value){.type = SL_NONE}, SL_LIT("a")).type, SL_NONE);
    test_batch_clean_up(&t);
}

/* ---- JSON ---- */

static void check_values(struct sl_value image, const json_t *object, struct sl_arena *arena)
{
    struct sl_iter iter = host->value_iter(image);
    struct sl_span name;
    struct sl_value value;
    size_t n = 0;
    for (; host->value_next(&iter, &name, &value); n++) {
        struct sl_span text = host->value_json(value, arena);
        name = host->json_unquote(arena, name);
        json_t *parsed = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);
        assert_true(json_equal(parsed, json_object_getn(object, name.ptr, name.len)));
        json_decref(parsed);
    }
    assert_int_equal(n, json_object_size(object));
}

/* record_to_json is the record as jansson reads it; value_json is the text of each attribute in it. */
static void json_is_the_records_own(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_input input;
    read_capture(arena, &input);
    for (size_t i = 0; i < input.batch.n; i++) {
        const struct sl_record *r = sl_batch_record(&input.batch, i);
        json_t *tree = host->record_to_json(r);
        const json_t *change = json_object_get(tree, "dynamodb");
        assert_non_null(change);
        check_values(host->record_image(r, SL_KEYS), json_object_get(change, "Keys"), arena);
        check_values(host->record_image(r, SL_NEW_IMAGE), json_object_get(change, "NewImage"), arena);
        check_values(host->record_image(r, SL_OLD_IMAGE), json_object_get(change, "OldImage"), arena);
        json_decref(tree);
    }
    assert_null(host->value_json((struct sl_value){.type = SL_NONE}, arena).ptr);
    sl_arena_destroy(arena);
}

/* ---- the table itself ---- */

static void every_slot_is_filled(void **state)
{
    (void)state;
    assert_int_equal(host->abi.major, SL_ABI_MAJOR);
    assert_int_equal(host->abi.minor, SL_ABI_MINOR);
    assert_int_equal(host->abi.size, sizeof(*host));
    void (*slots[(sizeof(*host) - sizeof(host->abi)) / sizeof(void *)])(void);
    memcpy(slots, (const char *)host + sizeof(host->abi), sizeof(slots));
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        assert_true(slots[i] != NULL);
}

/* What a plugin of an older minor calls has to stay where it was: each minor's last function, by its number.
 */
static void functions_are_only_appended(void **state)
{
    (void)state;
    const size_t first = sizeof(struct sl_abi), one = sizeof(void (*)(void));
    assert_int_equal(offsetof(struct sl_host, mark), first);
    assert_int_equal(offsetof(struct sl_host, sha256), first + 67 * one);         /* 1.0 */
    assert_int_equal(offsetof(struct sl_host, json_compact), first + 72 * one);   /* 1.1 */
    assert_int_equal(offsetof(struct sl_host, value_sha256), first + 73 * one);   /* 1.2 */
    assert_int_equal(offsetof(struct sl_host, template_uses), first + 75 * one);  /* 1.3 */
    assert_int_equal(offsetof(struct sl_host, when_lacks), first + 80 * one);     /* 1.4 */
    assert_int_equal(offsetof(struct sl_host, template_place), first + 81 * one); /* 1.6 */
    assert_int_equal(offsetof(struct sl_host, record_trace), first + 82 * one);   /* 1.7 */
    assert_int_equal(sizeof(struct sl_host), first + 83 * one);
}

static void names_are_those_of_dynamodb(void **state)
{
    (void)state;
    assert_string_equal(host->event_name(SL_REMOVE), "REMOVE");
    assert_string_equal(host->view_name(SL_VIEW_NEW_AND_OLD_IMAGES), "NEW_AND_OLD_IMAGES");
    assert_string_equal(host->view_name(SL_VIEW_UNKNOWN), "");
    assert_string_equal(host->ttl_name(SL_TTL_INFERRED), "inferred");
}

static void compact_json_is_one_line_and_keeps_its_strings(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span json = host->json_compact(arena, SL_LIT("{\n \"a b\" : [1,\r\n\t\"x\\\" y\"] }"));
    assert_true(sl_span_is(json, "{\"a b\":[1,\"x\\\" y\"]}"));
    sl_arena_destroy(arena);
}

static void a_value_is_put_as_its_json(void **state)
{
    (void)state;
    static const struct sl_value values[] = {
        {SL_S, false, {"x", 1}},       {SL_N, false, {"1", 1}},        {SL_BOOL, false, {"true", 4}},
        {SL_NULL, false, {"true", 4}}, {SL_SS, false, {"[\"a\"]", 5}}, {SL_M, false, {"{}", 2}},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        char *text =
            malloc(values[i].raw.len + SL_VALUE_JSON_BYTES); /* so that a sanitizer sees one too many */
        char *end = host->value_put(text, values[i]);
        assert_true(sl_span_eq(sl_span(text, (size_t)(end - text)), host->value_json(values[i], arena)));
        free(text);
    }
    sl_arena_destroy(arena);
}

static void failing_fills_an_error_once(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal((host->fail)(&error, SL_REJECT, "First", "%d apples", 3), SL_REJECT);
    assert_int_equal((host->fail)(&error, SL_FATAL, "Second", "pears"), SL_FATAL);
    assert_string_equal(error.code, "First");
    assert_string_equal(error.text, "3 apples");
    assert_int_equal((host->fail)(NULL, SL_RETRY, "x", "y"), SL_RETRY);
}

static void sinks_result_becomes_a_mark(void **state)
{
    (void)state;
    struct sl_mark marks[3] = {{0}};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_slice_call call = {.slice = {.n = 3, .arena = arena}, .marks = marks};
    const struct sl_result good = {.status = SL_OK}, silent = {.status = SL_RETRY},
                           bad = {.status = SL_REJECT, .code = "TooLarge", .text = "a%s is too large"};
    host->mark_result(&call.slice, 0, &good);
    host->mark_result(&call.slice, 1, &silent);
    host->mark_result(&call.slice, 2, &bad);
    assert_true(marks[0].is_set && marks[0].status == SL_OK && !marks[0].why);
    assert_int_equal(marks[1].status, SL_RETRY);
    assert_string_equal(marks[1].why->text, "the sink gave no reason");
    assert_string_equal(marks[2].why->code, "TooLarge");
    assert_string_equal(marks[2].why->text, "a%s is too large");
    assert_false(call.is_misused);
    host->mark_result(&call.slice, 3, &good);
    assert_true(call.is_misused);
    assert_int_equal(call.misused_at, 3);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diff_is_what_changed_says_of_every_attribute),
        cmocka_unit_test(a_diff_of_made_images_is_right),
        cmocka_unit_test(every_type_has_its_getter),
        cmocka_unit_test(sets_lists_and_maps_are_walked),
        cmocka_unit_test(members_are_found_by_name),
        cmocka_unit_test(json_is_the_records_own),
        cmocka_unit_test(every_slot_is_filled),
        cmocka_unit_test(functions_are_only_appended),
        cmocka_unit_test(names_are_those_of_dynamodb),
        cmocka_unit_test(compact_json_is_one_line_and_keeps_its_strings),
        cmocka_unit_test(a_value_is_put_as_its_json),
        cmocka_unit_test(failing_fills_an_error_once),
        cmocka_unit_test(sinks_result_becomes_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
