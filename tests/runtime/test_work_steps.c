/* The parts that pieces of a step left: which of them are read, in which order, and how many together. */
#include "base/array.h"
#include "base/span.h"
#include "runtime/work/steps.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define CHAINS 40u
#define LENGTH 3u /* parts of a chain */
#define PARTS  (CHAINS * LENGTH)
#define LARGE  ((size_t)20 * 1024 * 1024)

/* ---- a place in memory ---- */

struct object {
    char key[80];
    struct sl_span body;
};

struct place {
    struct sl_object_port port;
    struct object *objects;
    size_t n, room;

    size_t calls, most; /* of read: all, and the most in flight in one */
    size_t most_bytes;  /* asked for in one */
    bool asked_for_none;
};

static struct object *find(struct place *place, struct sl_span key)
{
    for (size_t i = 0; i < place->n; i++)
        if (sl_span_is(key, place->objects[i].key))
            return &place->objects[i];
    return NULL;
}

static void place_read(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                       struct sl_object_piece *pieces, const struct sl_call *call)
{
    struct place *place = (struct place *)port;
    size_t bytes = 0;
    (void)call;
    for (size_t i = 0; i < n; i++) {
        const struct object *object = find(place, reads[i].key);
        pieces[i].result = (struct sl_result){.status = SL_REJECT, .code = "NoSuchKey", .text = "no object"};
        if (object) {
            struct sl_span rest = sl_span_from(object->body, reads[i].from);
            pieces[i] =
                (struct sl_object_piece){.result = {.status = SL_OK}, .object_bytes = object->body.len};
            pieces[i].bytes =
                sl_span(rest.ptr, rest.len < reads[i].max_bytes ? rest.len : reads[i].max_bytes);
        }
        bytes += reads[i].max_bytes;
        place->asked_for_none = place->asked_for_none || reads[i].max_bytes == 0;
    }
    if (sl_span_ends(reads[0].key, SL_LIT(".json"))) /* the index, by its own rule */
        return;
    place->calls++;
    place->most = n > place->most ? n : place->most;
    place->most_bytes = bytes > place->most_bytes ? bytes : place->most_bytes;
}

/* ---- a step and its parts ---- */

struct stage {
    struct place place;
    struct sl_work work;
    struct sl_work_item item;
    struct sl_work_steps steps;
    struct sl_buffer index;
};

static void put(struct stage *s, const char *name, struct sl_span body)
{
    struct object *object = &SL_PUSH(s->place.objects, s->place.n, s->place.room, "objects");
    snprintf(object->key, sizeof(object->key), "verify/r/f/%s", name);
    object->body = body;
}

/* Its first share is the part's own name, the second one so many blanks, and "rest" is behind them. */
static void put_part(struct stage *s, const char *name, const char *before, size_t bytes)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_part_head head = {.before = before ? sl_span_str(before) : sl_span(NULL, 0)};
    struct sl_arena *arena = s->work.arena;
    struct sl_buffer body;
    sl_buffer_init(&body, SL_PART_HEAD_BYTES + LARGE + 100);
    sl_part_begin(&body);
    sl_buffer_add_str(&body, name);
    head.ends[0] = sl_part_bytes(&body);
    for (size_t i = 1; i < SL_PART_SHARES; i++)
        head.ends[i] = head.ends[0] + bytes;
    if (bytes)
        sl_buffer_printf(&body, "%*s", (int)bytes, "");
    sl_buffer_add_str(&body, "rest");
    assert_int_equal(sl_part_end(&head, arena, &body, &error), SL_OK);
    put(s, name, sl_span(sl_arena_copy(arena, sl_buffer_span(&body)), body.len));
    sl_buffer_clean_up(&body);
}

static void add_index(struct stage *s, const char *name)
{
    sl_buffer_printf(&s->index, "%s\"%s\"", s->index.len ? "," : "[", name);
}

static struct stage *open_stage(void)
{
    struct stage *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->place.port = (struct sl_object_port){.size = sizeof(s->place.port), .read = place_read};
    s->work.arena = sl_arena_new(64 * 1024);
    s->work.place = &s->place.port;
    s->item = (struct sl_work_item){.work = &s->work, .call = {s->work.arena, INT64_MAX}};
    s->steps = (struct sl_work_steps){.item = &s->item, .folder = "f", .run = SL_LIT("r")};
    sl_buffer_init(&s->index, 64 * 1024);
    return s;
}

static void close_stage(struct stage *s)
{
    free(s->place.objects);
    sl_buffer_clean_up(&s->index);
    sl_arena_destroy(s->work.arena);
    free(s);
}

/* Chains own-00 to own-39 of three parts each, own-00-2 continuing own-00-1, among those of others. */
static struct stage *open_chains(size_t bytes)
{
    struct stage *s = open_stage();
    for (unsigned chain = 0; chain < CHAINS; chain++) {
        char name[40], before[40];
        for (unsigned i = 0; i < LENGTH; i++) {
            snprintf(name, sizeof(name), "own-%02u-%u", chain, i);
            put_part(s, name, i ? before : NULL, bytes);
            snprintf(before, sizeof(before), "%s", name);
        }
        add_index(s, name);
        snprintf(name, sizeof(name), "other-%02u", chain);
        add_index(s, name); /* (there is none: it is not asked for) */
    }
    return s;
}

struct seen {
    size_t n, bytes;
    unsigned left[CHAINS];
    char last[200];
    const char *fails_at;
};

static enum sl_status see(void *arg, const struct sl_work_part *part, struct sl_error *error)
{
    struct seen *seen = arg;
    unsigned chain, i;
    char name[40];
    snprintf(name, sizeof(name), "%.*s", SL_ARG(part->name));
    assert_int_equal(sscanf(name, "own-%u-%u", &chain, &i), 2);
    assert_int_equal(i, LENGTH - 1 - seen->left[chain]); /* the last one first */
    seen->left[chain]++;
    seen->n++;
    seen->bytes += part->bytes.len;
    snprintf(seen->last, sizeof(seen->last), "%.*s", SL_ARG(part->bytes));
    assert_int_equal(part->head->ends[0], strlen("own-00-0"));
    return seen->fails_at && strcmp(seen->fails_at, name) == 0
               ? sl_fail(error, SL_REJECT, "Damaged", "a line is no line")
               : SL_OK;
}

static enum sl_status each(struct stage *s, struct sl_work_wanted wanted, struct seen *seen,
                           struct sl_error *error)
{
    sl_buffer_add_char(&s->index, ']');
    *error = (struct sl_error)SL_NO_ERROR;
    put(s, "step.json", sl_buffer_span(&s->index));
    return sl_work_steps_each(&s->steps, SL_LIT("step.json"), SL_LIT("own-"), &wanted, see, seen, error);
}

/* ---- tests ---- */

static void parts_of_sixteen_pieces_are_read_together(void **state)
{
    struct stage *s = open_chains(3);
    struct seen seen = {0};
    struct sl_error error;
    (void)state;
    assert_int_equal(each(s, (struct sl_work_wanted){.from = 0, .until = 1}, &seen, &error), SL_OK);
    assert_int_equal(seen.n, PARTS);
    assert_int_equal(seen.bytes, PARTS * strlen("own-00-0"));
    assert_int_equal(s->place.most, 16);
    /* 16, 16 and 8 chains of three parts, and for each the heads and the shares */
    assert_int_equal(s->place.calls, 9 * 2);
    close_stage(s);
}

static void a_part_is_read_as_far_as_it_is_wanted(void **state)
{
    static const struct {
        struct sl_work_wanted wanted;
        const char *bytes;
    } cases[] = {
        {{.from = 0, .until = 1}, "own-39-0"},
        {{.from = 0, .until = 2}, "own-39-0   "},
        {{.from = 1, .until = SL_PART_SHARES}, "   "},
        {{.from = 2, .until = SL_PART_SHARES}, ""},
        {{.from = SL_PART_SHARES, .until = SL_PART_SHARES, .rest = 3}, "res"},
        {{.from = SL_PART_SHARES, .until = SL_PART_SHARES, .rest = 100}, "rest"},
        {{.from = 1, .until = 2, .rest = 100}, "   rest"},
    };
    (void)state;
    for (size_t i = 0; i < SL_COUNT(cases); i++) {
        struct stage *s = open_chains(3);
        struct seen seen = {0};
        struct sl_error error;
        assert_int_equal(each(s, cases[i].wanted, &seen, &error), SL_OK);
        assert_int_equal(seen.n, PARTS);
        assert_string_equal(seen.last, cases[i].bytes);
        assert_false(s->place.asked_for_none);
        close_stage(s);
    }
}

static void large_shares_are_read_one_by_one(void **state)
{
    struct stage *s = open_stage();
    struct seen seen = {0};
    struct sl_error error;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof(name), "own-%02u-%u", i, LENGTH - 1);
        put_part(s, name, NULL, i == 1 ? 10 : LARGE);
        add_index(s, name);
    }
    assert_int_equal(each(s, (struct sl_work_wanted){.from = 1, .until = 2}, &seen, &error), SL_OK);
    assert_int_equal(seen.bytes, 2 * LARGE + 10);
    assert_int_equal(s->place.most_bytes, LARGE + 10);
    close_stage(s);
}

static void what_is_damaged_is_named(void **state)
{
    struct sl_work_wanted wanted = {.from = 0, .until = 2};
    struct sl_error error;
    (void)state;

    struct stage *s = open_chains(3);
    struct seen seen = {.fails_at = "own-07-1"};
    assert_int_equal(each(s, wanted, &seen, &error), SL_REJECT);
    assert_string_equal(error.text, "own-07-1: a line is no line");
    close_stage(s);

    s = open_chains(3);
    seen = (struct seen){0};
    find(&s->place, SL_LIT("verify/r/f/own-20-0"))->body.len = SL_PART_HEAD_BYTES + 10;
    assert_int_equal(each(s, wanted, &seen, &error), SL_REJECT);
    assert_string_equal(error.code, "BadPart");
    assert_string_equal(error.text, "own-20-0: the object is shorter than its head says");
    close_stage(s);

    s = open_chains(3);
    seen = (struct seen){0};
    find(&s->place, SL_LIT("verify/r/f/own-20-1"))->body.len = 100;
    assert_int_equal(each(s, wanted, &seen, &error), SL_REJECT);
    assert_string_equal(error.code, "BadPart");
    assert_non_null(strstr(error.text, "own-20-1: "));
    close_stage(s);

    s = open_chains(3);
    seen = (struct seen){0};
    find(&s->place, SL_LIT("verify/r/f/own-39-1"))->key[0] = 'V';
    assert_int_equal(each(s, wanted, &seen, &error), SL_REJECT);
    assert_string_equal(error.code, "NoSuchKey");
    assert_string_equal(error.text, "verify/r/f/own-39-1: no object");
    close_stage(s);
}

static void a_step_without_parts_is_over(void **state)
{
    struct stage *s = open_stage();
    struct seen seen = {0};
    struct sl_error error;
    (void)state;
    sl_buffer_add_str(&s->index, "[\"\"");
    assert_int_equal(each(s, (struct sl_work_wanted){.until = 1}, &seen, &error), SL_OK);
    assert_int_equal(seen.n, 0);
    assert_int_equal(s->place.calls, 0);
    close_stage(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_sixteen_pieces_are_read_together),
        cmocka_unit_test(a_part_is_read_as_far_as_it_is_wanted),
        cmocka_unit_test(large_shares_are_read_one_by_one),
        cmocka_unit_test(what_is_damaged_is_named),
        cmocka_unit_test(a_step_without_parts_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
