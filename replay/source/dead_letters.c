/* Finds the messages in what a failure queue, topic or bucket delivers, whatever envelopes they are in. */
#include "replay/source/dead_letters.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/span.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_ENVELOPES 8 /* an SNS notification in an SQS message in an answer: three */

struct reading {
    struct sl_dead_letters *out;
    const char *name;
    struct sl_arena *arena;
    struct sl_error *error;
};

static enum sl_status unwrap(struct reading *r, struct sl_span json, unsigned depth);

static enum sl_status no_message(struct reading *r, const char *why)
{
    return sl_fail(
        r->error, SL_REJECT, "NoMessage",
        "%s: %s; a parked record (\"sluiceParked\") or a failure record of an event source mapping "
        "(\"DDBStreamBatchInfo\") is expected",
        r->name, why);
}

static struct sl_span member(struct sl_span json, const char *path)
{
    return sl_json_find(json, path);
}

/* The text of a string member; absent when it is not a string. */
static struct sl_span text_of(struct reading *r, struct sl_span json, const char *path)
{
    struct sl_span raw = member(json, path);
    if (raw.len < 2 || raw.ptr[0] != '"')
        return sl_span(NULL, 0);
    return sl_json_unescape(sl_span(raw.ptr + 1, raw.len - 2), r->arena);
}

static const char *string_of(struct reading *r, struct sl_span json, const char *path)
{
    return sl_arena_copy(r->arena, text_of(r, json, path));
}

static void push(struct reading *r, struct sl_dead_letter letter)
{
    struct sl_dead_letters *m = r->out;
    if (m->n == m->room) {
        struct sl_dead_letter *old = m->list;
        m->room = m->room ? m->room * 2 : 16;
        m->list = sl_arena_alloc(r->arena, m->room * sizeof(*m->list));
        if (m->n)
            memcpy(m->list, old, m->n * sizeof(*old));
    }
    m->list[m->n++] = letter;
}

/* ---- the three kinds ---- */

static enum sl_status add_parked(struct reading *r, struct sl_span json)
{
    struct sl_dead_letter letter = {
        .kind = SL_DEAD_LETTER_PARKED, .text = member(json, "record"), .records = 1};
    letter.route = string_of(r, json, "route");
    if (!letter.text.ptr || letter.text.ptr[0] != '{' || !letter.route[0])
        return no_message(r, "a parked record without its record or route");
    if (!sl_span_is(member(json, "sluiceParked"), "1"))
        return sl_fail(r->error, SL_REJECT, "NewerFormat",
                       "%s: a newer Sluice parked this record (format %.*s); use that version", r->name,
                       SL_ARG(member(json, "sluiceParked")));
    push(r, letter);
    return SL_OK;
}

static enum sl_status add_failure(struct reading *r, struct sl_span json)
{
    struct sl_dead_letter letter = {.kind = SL_DEAD_LETTER_POINTER};
    struct sl_span payload = member(json, "payload"), n = member(json, "DDBStreamBatchInfo.batchSize");
    letter.records = n.ptr ? strtoul(sl_arena_copy(r->arena, n), NULL, 10) : 0;
    if (payload.ptr) {
        letter.kind = SL_DEAD_LETTER_EVENT;
        letter.text = payload.ptr[0] == '"' ? text_of(r, json, "payload") : payload;
    } else {
        letter.stream_arn = string_of(r, json, "DDBStreamBatchInfo.streamArn");
        letter.shard = string_of(r, json, "DDBStreamBatchInfo.shardId");
        letter.first = string_of(r, json, "DDBStreamBatchInfo.startSequenceNumber");
        letter.last = string_of(r, json, "DDBStreamBatchInfo.endSequenceNumber");
        if (!letter.stream_arn[0] || !letter.shard[0] || !letter.first[0] || !letter.last[0])
            return no_message(r, "a failure record without a stream, shard or sequence numbers");
    }
    push(r, letter);
    return SL_OK;
}

/* ---- envelopes ---- */

static enum sl_status unwrap_text(struct reading *r, struct sl_span text, unsigned depth)
{
    if (sl_json_check(text, NULL) != SL_OK)
        return no_message(r, "a message whose body is not JSON");
    return unwrap(r, text, depth + 1);
}

/* Each element of an array. */
static enum sl_status unwrap_all(struct reading *r, struct sl_span list, unsigned depth)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span one;
    enum sl_status status = SL_OK;
    while (status == SL_OK && sl_json_walk_next(&walk, NULL, &one))
        status = unwrap(r, one, depth + 1);
    return status;
}

static bool is_event(struct sl_span json)
{
    return member(json, "Records[0].dynamodb").ptr || member(json, "Records[0].kinesis").ptr;
}

static enum sl_status unwrap(struct reading *r, struct sl_span json, unsigned depth)
{
    static const char *const bodies[] = {"Body", "body", "Message", "Sns.Message"};
    static const char *const lists[] = {"Messages", "Records"};
    if (depth > MOST_ENVELOPES)
        return no_message(r, "too many nested messages");
    const char *begin = sl_json_space(json.ptr, json.ptr + json.len);
    json = sl_span(begin, (size_t)(json.ptr + json.len - begin));
    if (json.len && json.ptr[0] == '[')
        return unwrap_all(r, json, depth);
    if (json.len && json.ptr[0] == '"') /* jsonl: writes a body that is not JSON to it as a string */
        return unwrap_text(r, sl_json_unescape(sl_span(json.ptr + 1, json.len - 2), r->arena), depth);
    if (member(json, "sluiceParked").ptr)
        return add_parked(r, json);
    if (member(json, "DDBStreamBatchInfo").ptr)
        return add_failure(r, json);
    if (is_event(json)) {
        push(r, (struct sl_dead_letter){.kind = SL_DEAD_LETTER_EVENT, .text = json});
        return SL_OK;
    }
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (text_of(r, json, bodies[i]).ptr)
            return unwrap_text(r, text_of(r, json, bodies[i]), depth);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (member(json, lists[i]).ptr)
            return unwrap_all(r, member(json, lists[i]), depth);
    return no_message(r, "is not a failure message");
}

/* One JSON value after another, with white space between them. */
enum sl_status sl_dead_letters_add(struct sl_dead_letters *letters, const char *name, struct sl_span text,
                                   struct sl_arena *arena, struct sl_error *error)
{
    struct reading r = {letters, name, arena, error};
    struct sl_json_scan scan = {.end = text.ptr + text.len};
    size_t before = letters->n;
    enum sl_status status = SL_OK;
    const char *p = sl_json_space(text.ptr, scan.end);
    while (status == SL_OK && p < scan.end) {
        const char *end = sl_json_value(&scan, p);
        if (!end)
            return sl_fail(error, SL_REJECT, "InvalidJson", "%s: invalid JSON at byte %zu: %s", name,
                           (size_t)(scan.at - text.ptr), scan.why);
        status = unwrap(&r, sl_span(p, (size_t)(end - p)), 0);
        p = sl_json_space(end, scan.end);
    }
    if (status == SL_OK && letters->n == before)
        return no_message(&r, "is empty");
    return status;
}
