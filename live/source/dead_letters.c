/* Finds the messages in what a failure queue, topic or bucket delivers, whatever envelopes they are in. */
#include "live/source/dead_letters.h"

#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/span.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_ENVELOPES 8 /* an SNS notification in an SQS message in an answer: three */

struct reading {
    struct sl_dead_letters *out;
    const char *id; /* of the outermost envelope that has one; "" */
    struct sl_arena *arena;
};

static void unwrap(struct reading *r, struct sl_span json, unsigned depth);

/* ---- letters ---- */

static void push(struct reading *r, struct sl_dead_letter letter)
{
    struct sl_dead_letters *m = r->out;
    const char **const texts[] = {&letter.route, &letter.handler, &letter.code,
                                  &letter.why,   &letter.shard,   &letter.stream_arn,
                                  &letter.first, &letter.last,    &letter.table};
    for (size_t i = 0; i < SL_COUNT(texts); i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    letter.id = r->id;
    SL_PUSH_IN(r->arena, m->list, m->n, m->room) = letter;
}

static void push_unreadable(struct reading *r, const char *code, const char *why)
{
    push(r, (struct sl_dead_letter){.kind = SL_DEAD_LETTER_UNREADABLE, .code = code, .why = why});
}

static void push_foreign(struct reading *r, const char *why)
{
    push_unreadable(r, "NoMessage",
                    sl_arena_printf(r->arena,
                                    "%s; a parked record (\"sluiceParked\"), a letter (\"sluiceSetAside\") "
                                    "or a failure record of an event "
                                    "source mapping (\"DDBStreamBatchInfo\") is expected",
                                    why));
}

/* ---- members ---- */

static struct sl_span member(struct sl_span json, const char *path)
{
    return sl_json_find(json, path);
}

/* The text of a string member; absent when it is not a string. */
static struct sl_span text_of(struct reading *r, struct sl_span json, const char *path)
{
    return sl_json_text(json, path, r->arena);
}

/* "" also for a text with a NUL, which no name or number has: what is before it would pass for the whole. */
static const char *string_of(struct reading *r, struct sl_span json, const char *path)
{
    struct sl_span text = text_of(r, json, path);
    bool has_nul = text.len && memchr(text.ptr, '\0', text.len);
    return sl_arena_copy(r->arena, has_nul ? sl_span(NULL, 0) : text);
}

static int64_t time_of(struct reading *r, struct sl_span json, const char *path)
{
    int64_t ns, step_ns;
    return sl_time_parse(text_of(r, json, path), &ns, &step_ns) ? ns / 1000000 : 0;
}

/* "arn:aws:dynamodb:us-east-1:123456789012:table/..." */
bool sl_dead_letter_is_arn(const char *arn)
{
    static const char *const sets[] = {"arn", "abcdefghijklmnopqrstuvwxyz-", "abcdefghijklmnopqrstuvwxyz",
                                       "abcdefghijklmnopqrstuvwxyz0123456789-", "0123456789"};
    const char *at = arn;
    for (size_t i = 0; i < SL_COUNT(sets); i++) {
        size_t n = strspn(at, sets[i]);
        if (n == 0 || n > 39 || at[n] != ':')
            return false;
        at += n + 1;
    }
    return *at != '\0' && strlen(arn) < 1024;
}

static const char *arn_of(struct reading *r, struct sl_span json, const char *path)
{
    const char *arn = string_of(r, json, path);
    return sl_dead_letter_is_arn(arn) ? arn : "";
}

/* ---- the three kinds ---- */

static void add_parked(struct reading *r, struct sl_span json)
{
    struct sl_dead_letter letter = {
        .kind = SL_DEAD_LETTER_PARKED, .text = member(json, "record"), .records = 1};
    struct sl_span epoch = member(json, "epoch");
    letter.epoch = epoch.len && epoch.len < 10 && sl_span_is_digits(epoch)
                       ? strtol(sl_arena_copy(r->arena, epoch), NULL, 10)
                       : -1;
    letter.route = string_of(r, json, "route");
    letter.handler = string_of(r, json, "handler");
    letter.code = string_of(r, json, "code");
    letter.stream_arn = arn_of(r, json, "streamArn");
    letter.time_ms = time_of(r, json, "time");
    if (!letter.text.ptr || letter.text.ptr[0] != '{' || !letter.route[0])
        push_foreign(r, "a parked record without its record or route");
    else if (!sl_span_is(member(json, "sluiceParked"), "1"))
        push_unreadable(r, "NewerFormat", "a newer Sluice parked this record; use that version");
    else
        push(r, letter);
}

static void add_aside(struct reading *r, struct sl_span json)
{
    struct sl_dead_letter letter = {.kind = SL_DEAD_LETTER_ASIDE, .text = json};
    letter.records = sl_json_walk_count(member(json, "records"));
    letter.route = string_of(r, json, "route");
    letter.handler = string_of(r, json, "handler");
    letter.table = string_of(r, json, "table");
    letter.code = string_of(r, json, "code");
    letter.time_ms = time_of(r, json, "time");
    if (!letter.records || !letter.route[0])
        push_foreign(r, "a letter without its records or route");
    else
        push(r, letter);
}

/* The event that S3's failure record has as a text, or as JSON. False: it is no JSON. */
static bool take_payload(struct reading *r, struct sl_span json, struct sl_dead_letter *letter)
{
    struct sl_span payload = member(json, "payload");
    letter->kind = SL_DEAD_LETTER_EVENT;
    letter->text = payload.ptr[0] == '"' ? text_of(r, json, "payload") : payload;
    return sl_json_check(letter->text, NULL) == SL_OK;
}

static void add_failure(struct reading *r, struct sl_span json, struct sl_span info)
{
    struct sl_dead_letter letter = {.kind = SL_DEAD_LETTER_POINTER};
    struct sl_span n = member(info, "batchSize");
    letter.records = n.ptr ? strtoul(sl_arena_copy(r->arena, n), NULL, 10) : 0;
    letter.code = string_of(r, json, "requestContext.condition");
    letter.time_ms = time_of(r, json, "timestamp");
    letter.stream_arn = arn_of(r, info, "streamArn");
    letter.shard = string_of(r, info, "shardId");
    letter.first = string_of(r, info, "startSequenceNumber");
    letter.last = string_of(r, info, "endSequenceNumber");
    bool is_whole = letter.stream_arn[0] && letter.shard[0] && letter.first[0] && letter.last[0];
    if (member(json, "payload").ptr && !take_payload(r, json, &letter))
        push_foreign(r, "a failure record whose payload is not JSON");
    else if (letter.kind == SL_DEAD_LETTER_POINTER && !is_whole)
        push_foreign(r, "a failure record without a stream, shard or sequence numbers");
    else if (letter.kind == SL_DEAD_LETTER_POINTER && member(json, "KinesisBatchInfo").ptr)
        push_unreadable(r, "KinesisPointer",
                        "its records are in a Kinesis stream, which redrive does not read; only a failure "
                        "record in S3 has them with it");
    else
        push(r, letter);
}

/* ---- envelopes ---- */

static void unwrap_text(struct reading *r, struct sl_span text, unsigned depth)
{
    if (sl_json_check(text, NULL) != SL_OK)
        push_foreign(r, "a message whose body is not JSON");
    else
        unwrap(r, text, depth + 1);
}

/* Each element of an array. */
static void unwrap_all(struct reading *r, struct sl_span list, unsigned depth)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span one;
    size_t before = r->out->n;
    while (sl_json_walk_next(&walk, NULL, &one))
        unwrap(r, one, depth + 1);
    if (r->out->n == before)
        push_foreign(r, "is empty");
}

static bool is_event(struct sl_span json)
{
    return member(json, "Records[0].dynamodb").ptr || member(json, "Records[0].kinesis").ptr;
}

/* The text in an envelope; absent when it is none. */
static struct sl_span body_of(struct reading *r, struct sl_span json)
{
    static const char *const bodies[] = {"Body", "body", "Message", "Sns.Message"};
    struct sl_span body = {NULL, 0};
    for (size_t i = 0; i < SL_COUNT(bodies) && !body.ptr; i++)
        body = text_of(r, json, bodies[i]);
    return body;
}

static void unwrap_body(struct reading *r, struct sl_span json, struct sl_span body, unsigned depth)
{
    const char *outer = r->id;
    const char *own = string_of(r, json, member(json, "MessageId").ptr ? "MessageId" : "messageId");
    r->id = outer[0] ? outer : own;
    unwrap_text(r, body, depth);
    r->id = outer;
}

static void unwrap(struct reading *r, struct sl_span json, unsigned depth)
{
    const char *begin = sl_json_space(json.ptr, sl_span_end(json));
    json = sl_span(begin, (size_t)(json.ptr + json.len - begin));
    struct sl_span body, ddb = member(json, "DDBStreamBatchInfo"), kinesis = member(json, "KinesisBatchInfo");
    if (depth > MOST_ENVELOPES)
        push_foreign(r, "too many nested messages");
    else if (json.len && json.ptr[0] == '[')
        unwrap_all(r, json, depth);
    else if (json.len && json.ptr[0] == '"') /* jsonl: writes a body that is not JSON to it as a string */
        unwrap_text(r, sl_json_unescape(sl_span(json.ptr + 1, json.len - 2), r->arena), depth);
    else if (member(json, "sluiceParked").ptr)
        add_parked(r, json);
    else if (member(json, "sluiceSetAside").ptr)
        add_aside(r, json);
    else if (ddb.ptr || kinesis.ptr)
        add_failure(r, json, ddb.ptr ? ddb : kinesis);
    else if (is_event(json))
        push(r, (struct sl_dead_letter){.kind = SL_DEAD_LETTER_EVENT, .text = json});
    else if ((body = body_of(r, json)).ptr)
        unwrap_body(r, json, body, depth);
    else if (member(json, "Messages").ptr)
        unwrap_all(r, member(json, "Messages"), depth);
    else if (member(json, "Records").ptr)
        unwrap_all(r, member(json, "Records"), depth);
    else
        push_foreign(r, "is not a failure message");
}

/* One JSON value after another, with white space between them. */
void sl_dead_letters_add(struct sl_dead_letters *letters, struct sl_span text, struct sl_arena *arena)
{
    struct reading r = {.out = letters, .id = "", .arena = arena};
    struct sl_json_scan scan = {.end = sl_span_end(text)};
    size_t before = letters->n;
    const char *p = text.len ? sl_json_space(text.ptr, scan.end) : scan.end;
    while (p < scan.end) {
        const char *end = sl_json_value(&scan, p);
        if (!end) {
            push_unreadable(&r, "InvalidJson",
                            sl_arena_printf(arena, "invalid JSON at byte %zu: %s",
                                            (size_t)(scan.at - text.ptr), scan.why));
            return;
        }
        unwrap(&r, sl_span(p, (size_t)(end - p)), 0);
        p = sl_json_space(end, scan.end);
    }
    if (letters->n == before)
        push_foreign(&r, "is empty");
}
