/* Objects that steps of an execution leave for later ones. */
#include "runtime/work/steps.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/span.h"
#include "runtime/work/results.h"
#include "runtime/work/verify_piece.h"

#include <inttypes.h>
#include <stdlib.h>

/* A store answers in 20 ms and more, and a step may have ten thousand parts. */
#define PARTS_TOGETHER 16
#define BYTES_TOGETHER ((size_t)32 * 1024 * 1024)

struct sl_span sl_work_steps_key(const struct sl_work_steps *s, struct sl_span name)
{
    return sl_span_str(sl_arena_printf(s->item->call.arena, SL_WORK_FINDINGS "%.*s/%s/%.*s", SL_ARG(s->run),
                                       s->folder, SL_ARG(name)));
}

enum sl_status sl_work_steps_put(const struct sl_work_steps *s, struct sl_span name, struct sl_span body,
                                 struct sl_error *error)
{
    return sl_work_put(s->item->work, sl_work_steps_key(s, name), body, &s->item->call, error);
}

enum sl_status sl_work_steps_get(const struct sl_work_steps *s, struct sl_span name, struct sl_span *out,
                                 struct sl_error *error)
{
    struct sl_object_port *place;
    enum sl_status status = sl_work_place(s->item->work, &place, error);
    return status == SL_OK ? sl_work_read_object(place, sl_work_steps_key(s, name), SL_WORK_PART_BYTES,
                                                 &s->item->call, out, error)
                           : status;
}

/* The ranges of the parts, `skipped` bytes further on. */
static enum sl_status read_ranges(const struct sl_work_steps *s, size_t skipped, struct sl_work_range *ranges,
                                  size_t n, struct sl_arena *arena, struct sl_error *error)
{
    const struct sl_call call = {.arena = arena, .deadline_ms = s->item->call.deadline_ms};
    struct sl_object_read *reads = sl_arena_zalloc(arena, n * sizeof(*reads));
    struct sl_object_piece *pieces = sl_arena_zalloc(arena, n * sizeof(*pieces));
    struct sl_object_port *place;
    enum sl_status status = sl_work_place(s->item->work, &place, error);
    for (size_t i = 0; i < n; i++) {
        ranges[i].bytes = sl_span(NULL, 0);
        reads[i] = (struct sl_object_read){.key = sl_work_steps_key(s, ranges[i].name),
                                           .from = skipped + ranges[i].from,
                                           .max_bytes = ranges[i].most};
        pieces[i].result = (struct sl_result){.status = SL_RETRY, .code = "NotRead", .text = "not read"};
    }
    if (status == SL_OK)
        place->read(place, reads, n, pieces, &call);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        if (pieces[i].result.status == SL_OK)
            ranges[i].bytes = pieces[i].bytes.ptr ? pieces[i].bytes : sl_span("", 0);
        else
            (void)sl_fail(error, pieces[i].result.status, pieces[i].result.code, "%.*s: %s",
                          SL_ARG(reads[i].key), pieces[i].result.text);
    return status == SL_OK ? error->status : status;
}

enum sl_status sl_work_steps_ranges(const struct sl_work_steps *s, struct sl_work_range *ranges, size_t n,
                                    struct sl_arena *arena, struct sl_error *error)
{
    return read_ranges(s, SL_PART_HEAD_BYTES, ranges, n, arena, error);
}

/* ---- the parts of a step ---- */

/* Chains that are followed side by side: each has the name of its next part. */
struct chains {
    const struct sl_work_steps *steps;
    const struct sl_work_wanted *wanted;
    struct sl_span own;
    struct sl_json_walk index;
    struct sl_arena *arena; /* of one round */
    struct sl_span names[PARTS_TOGETHER];
    struct sl_part_head *heads;
    size_t n;
};

static void fill(struct chains *c)
{
    struct sl_span value;
    while (c->n < PARTS_TOGETHER && sl_json_walk_next(&c->index, NULL, &value)) {
        struct sl_span name = value.len > 2 ? sl_span(value.ptr + 1, value.len - 2) : sl_span(NULL, 0);
        if (name.len && sl_span_starts(name, c->own))
            c->names[c->n++] = name;
    }
}

static enum sl_status read_heads(struct chains *c, struct sl_error *error)
{
    struct sl_work_range ranges[PARTS_TOGETHER];
    for (size_t i = 0; i < c->n; i++)
        ranges[i] = (struct sl_work_range){.name = c->names[i], .most = SL_PART_HEAD_BYTES};
    enum sl_status status = read_ranges(c->steps, 0, ranges, c->n, c->arena, error);
    c->heads = sl_arena_alloc(c->arena, c->n * sizeof(*c->heads));
    for (size_t i = 0; i < c->n && status == SL_OK; i++) {
        status = sl_part_head_read(ranges[i].bytes, c->arena, &c->heads[i], error);
        sl_error_context(error, "%.*s", SL_ARG(c->names[i]));
    }
    return status;
}

static struct sl_work_range range_of(const struct chains *c, size_t i)
{
    const uint64_t *ends = c->heads[i].ends, from = c->wanted->from, until = c->wanted->until;
    uint64_t begin = from ? ends[from - 1] : 0, end = until ? ends[until - 1] : 0;
    return (struct sl_work_range){
        .name = c->names[i], .from = begin, .most = (size_t)(end - begin) + c->wanted->rest};
}

static enum sl_status hand_over(struct chains *c, size_t i, const struct sl_work_range *range,
                                sl_work_steps_fn *each, void *arg, struct sl_error *error)
{
    const struct sl_work_part part = {.name = c->names[i], .head = &c->heads[i], .bytes = range->bytes};
    enum sl_status status =
        part.bytes.len + c->wanted->rest < range->most
            ? sl_fail(error, SL_REJECT, "BadPart", "the object is shorter than its head says")
            : each(arg, &part, error);
    sl_error_context(error, "%.*s", SL_ARG(part.name));
    return status;
}

/* As many as the memory is for are read together, and one always. Nothing is asked for where nothing is. */
static enum sl_status take_from(struct chains *c, size_t *at, sl_work_steps_fn *each, void *arg,
                                struct sl_error *error)
{
    static const struct sl_work_range nothing = {.bytes = {"", 0}};
    struct sl_work_range reads[PARTS_TOGETHER];
    size_t end = *at, n = 0, k = 0;
    for (size_t bytes = 0; end < c->n; end++) {
        struct sl_work_range range = range_of(c, end);
        bytes += range.most;
        if (end > *at && bytes > BYTES_TOGETHER)
            break;
        if (range.most)
            reads[n++] = range;
    }
    struct sl_arena *arena = sl_arena_new(sizeof(reads));
    enum sl_status status = n ? sl_work_steps_ranges(c->steps, reads, n, arena, error) : SL_OK;
    for (; *at < end && status == SL_OK; ++*at) {
        bool is_read = k < n && reads[k].name.ptr == c->names[*at].ptr;
        status = hand_over(c, *at, is_read ? &reads[k++] : &nothing, each, arg, error);
    }
    sl_arena_destroy(arena);
    return status;
}

/* To the parts before these; chains that end make room. */
static void step_back(struct chains *c)
{
    struct sl_arena *kept = c->steps->item->call.arena;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct sl_span before = c->heads[i].before;
        if (before.ptr && sl_span_starts(before, c->own))
            c->names[n++] = sl_span(sl_arena_copy(kept, before), before.len);
    }
    c->n = n;
}

enum sl_status sl_work_steps_each(const struct sl_work_steps *s, struct sl_span index, struct sl_span own,
                                  const struct sl_work_wanted *wanted, sl_work_steps_fn *each, void *arg,
                                  struct sl_error *error)
{
    struct sl_span text;
    enum sl_status status = sl_work_steps_get(s, index, &text, error);
    if (status == SL_OK)
        status = sl_json_check(text, error);
    if (status != SL_OK)
        return status;
    struct chains c = {.steps = s, .wanted = wanted, .own = own, .index = sl_json_walk(text)};
    c.arena = sl_arena_new(PARTS_TOGETHER * 2 * SL_PART_HEAD_BYTES);
    for (fill(&c); c.n && status == SL_OK; fill(&c)) {
        status = read_heads(&c, error);
        for (size_t at = 0; at < c.n && status == SL_OK;)
            status = take_from(&c, &at, each, arg, error);
        if (status == SL_OK)
            step_back(&c);
        sl_arena_reset(c.arena);
    }
    sl_arena_destroy(c.arena);
    return status;
}

enum sl_status sl_work_steps_keep(const struct sl_work_steps *s, struct sl_span index, json_t *counts,
                                  struct sl_error *error)
{
    char *text = json_dumps(json_object_get(counts, "last"), JSON_COMPACT);
    enum sl_status status = text ? sl_work_steps_put(s, index, sl_span_str(text), error)
                                 : sl_fail(error, SL_REJECT, "BadResults", "the pieces have no objects");
    free(text);
    json_object_del(counts, "last");
    return status;
}

enum sl_status sl_work_steps_are_of(const struct sl_work_item *item, uint64_t digest, struct sl_span *of,
                                    const char *code, const char *what, struct sl_error *error)
{
    const char *now = sl_arena_printf(item->call.arena, "%016" PRIx64, digest);
    if (of->ptr && !sl_span_is(*of, now))
        return sl_fail(error, SL_REJECT, code,
                       "the configuration says other %s than when the execution began: start another one",
                       what);
    *of = sl_span_str(now);
    return SL_OK;
}

enum sl_status sl_work_steps_again(struct sl_span next, json_t *counts, struct sl_error *error)
{
    json_t *value = next.len <= SL_WORK_NEXT_BYTES ? json_loadb(next.ptr, next.len, 0, NULL) : NULL;
    if (!value)
        return sl_fail(error, SL_REJECT, "PlaceTooLong",
                       "the next step needs more than %zu bytes: name fewer routes", SL_WORK_NEXT_BYTES);
    json_object_set_new(counts, "outcome", json_string("again"));
    json_object_set_new(counts, "next", value);
    return SL_OK;
}
