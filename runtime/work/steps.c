/* Objects that steps of an execution leave for later ones. */
#include "runtime/work/steps.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/span.h"
#include "runtime/work/results.h"
#include "runtime/work/verify_piece.h"

#include <inttypes.h>
#include <stdlib.h>

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

static enum sl_status read_all(const struct sl_work_steps *s, struct sl_object_read *reads,
                               struct sl_work_range *ranges, size_t n, struct sl_arena *arena,
                               struct sl_error *error)
{
    const struct sl_call call = {.arena = arena, .deadline_ms = s->item->call.deadline_ms};
    struct sl_object_piece *pieces = sl_arena_zalloc(arena, n * sizeof(*pieces));
    struct sl_object_port *place;
    enum sl_status status = sl_work_place(s->item->work, &place, error);
    for (size_t i = 0; i < n; i++)
        pieces[i].result = (struct sl_result){.status = SL_RETRY, .code = "NotRead", .text = "not read"};
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
    struct sl_object_read *reads = sl_arena_zalloc(arena, n * sizeof(*reads));
    for (size_t i = 0; i < n; i++) {
        ranges[i].bytes = sl_span(NULL, 0);
        reads[i] = (struct sl_object_read){.key = sl_work_steps_key(s, ranges[i].name),
                                           .from = SL_PART_HEAD_BYTES + ranges[i].from,
                                           .max_bytes = ranges[i].most};
    }
    return read_all(s, reads, ranges, n, arena, error);
}

enum sl_status sl_work_steps_shares(const struct sl_work_steps *s, struct sl_span name,
                                    const struct sl_part_head *head, uint64_t from, uint64_t until,
                                    struct sl_arena *arena, struct sl_span *out, struct sl_error *error)
{
    uint64_t begin = from ? head->ends[from - 1] : 0, bytes = head->ends[until - 1] - begin;
    struct sl_work_range range = {.name = name, .from = begin, .most = (size_t)bytes};
    *out = sl_span("", 0);
    if (bytes == 0)
        return SL_OK;
    enum sl_status status = sl_work_steps_ranges(s, &range, 1, arena, error);
    *out = range.bytes;
    return status != SL_OK || out->len == bytes
               ? status
               : sl_fail(error, SL_REJECT, "BadPart", "%.*s: the object is shorter than its head says",
                         SL_ARG(name));
}

static enum sl_status read_head(const struct sl_work_steps *s, struct sl_span name, struct sl_arena *arena,
                                struct sl_part_head *out, struct sl_error *error)
{
    struct sl_object_read read = {.key = sl_work_steps_key(s, name), .max_bytes = SL_PART_HEAD_BYTES};
    struct sl_work_range head = {.name = name};
    enum sl_status status = read_all(s, &read, &head, 1, arena, error);
    return status == SL_OK ? sl_part_head_read(head.bytes, arena, out, error) : status;
}

static enum sl_status each_of_piece(const struct sl_work_steps *s, struct sl_span name, struct sl_span own,
                                    sl_work_steps_fn *each, void *arg, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(2 * SL_PART_HEAD_BYTES), *before = s->item->call.arena;
    enum sl_status status = SL_OK;
    while (status == SL_OK && name.ptr && sl_span_starts(name, own)) {
        struct sl_part_head head;
        status = read_head(s, name, arena, &head, error);
        if (status == SL_OK)
            status = each(arg, name, &head, error);
        sl_error_context(error, "%.*s", SL_ARG(name));
        name = status == SL_OK && head.before.ptr
                   ? sl_span(sl_arena_copy(before, head.before), head.before.len)
                   : sl_span(NULL, 0);
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_work_steps_each(const struct sl_work_steps *s, struct sl_span index, struct sl_span own,
                                  sl_work_steps_fn *each, void *arg, struct sl_error *error)
{
    struct sl_span text, value;
    enum sl_status status = sl_work_steps_get(s, index, &text, error);
    if (status == SL_OK)
        status = sl_json_check(text, error);
    struct sl_json_walk walk = sl_json_walk(text);
    while (status == SL_OK && sl_json_walk_next(&walk, NULL, &value))
        if (value.len > 2)
            status = each_of_piece(s, sl_span(value.ptr + 1, value.len - 2), own, each, arg, error);
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
