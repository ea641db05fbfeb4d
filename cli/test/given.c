/* The records of a case: see cli/test/given.h. */
#include "cli/test/given.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/nearest.h"
#include "streams/shorthand.h"
#include "live/source/inputs.h"
#include "live/source/lambda_batch.h"
#include "streams/names.h"
#include "streams/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MOST ((size_t)256 * 1024 * 1024)
#define FIRST_S    1767225600 /* 2026-01-01: changes without a time are a second apart from then on */
#define ARN_OF     "arn:aws:dynamodb:us-east-1:123456789012:table/%s/stream/2026-01-01T00:00:00.000"

struct reading {
    const struct sl_given *given;
    struct sl_arena *arena;
    struct sl_buffer *lines;
    const char *arn;
    enum sl_view view;
    size_t n;
    struct sl_error *error;
};

#define BAD(r, ...) sl_fail((r)->error, SL_REJECT, "BadCase", __VA_ARGS__)

/* ---- an entry of items ---- */

enum { BEFORE, AFTER, EXPIRED, AT, N_MEMBERS };
static const char *const members[N_MEMBERS] = {"before", "after", "expired", "at"};

static size_t member_named(struct sl_span name)
{
    size_t i = 0;
    while (i < N_MEMBERS && !sl_json_text_is(name, sl_span_str(members[i])))
        i++;
    return i;
}

/* False: it is a record, or nothing that is known. */
static bool is_of_items(struct sl_span entry)
{
    struct sl_json_walk walk = sl_json_walk(entry);
    struct sl_span name, value;
    while (*entry.ptr == '{' && sl_json_walk_next(&walk, &name, &value))
        if (member_named(name) == BEFORE || member_named(name) == AFTER)
            return true;
    return false;
}

static enum sl_status read_members(const struct reading *r, struct sl_span entry,
                                   struct sl_span values[N_MEMBERS])
{
    struct sl_json_walk walk = sl_json_walk(entry);
    struct sl_span name, value;
    while (sl_json_walk_next(&walk, &name, &value)) {
        size_t i = member_named(name);
        if (i == N_MEMBERS)
            return BAD(r, "given[%zu]: \"%.*s\" is not known here: before, after, expired and at are", r->n,
                       SL_ARG(name));
        if (i <= AFTER && *value.ptr != '{')
            return BAD(r, "given[%zu].%s: an item is expected, {\"PK\": \"a\"}", r->n, members[i]);
        if (i == EXPIRED && *value.ptr != 't' && *value.ptr != 'f')
            return BAD(r, "given[%zu].expired: true or false is expected", r->n);
        values[i] = value;
    }
    if (values[EXPIRED].ptr && *values[EXPIRED].ptr == 't' && values[AFTER].ptr)
        return BAD(r, "given[%zu].expired: an item that has expired has no \"after\"", r->n);
    return SL_OK;
}

static enum sl_status read_time(const struct reading *r, struct sl_span at, int64_t *out)
{
    int64_t ns, step_ns;
    *out = FIRST_S + (int64_t)r->n;
    if (!at.ptr)
        return SL_OK;
    struct sl_number number;
    bool is_exact = true, is_text = *at.ptr == '"';
    if (is_text && sl_time_parse(sl_span(at.ptr + 1, at.len - 2), &ns, &step_ns))
        *out = ns / 1000000000;
    else if (is_text || sl_number_parse(at, &number) || !sl_number_int64(&number, 0, out, &is_exact) ||
             !is_exact)
        return BAD(r, "given[%zu].at: a time is expected: \"2026-11-20T10:00:00Z\", or seconds since 1970",
                   r->n);
    return SL_OK;
}

static const char *keys_of(const struct reading *r, struct sl_span item)
{
    static const char *const usual[][2] = {{"PK", "SK"}, {"pk", "sk"}, {"id", NULL}};
    if (r->given->keys)
        return r->given->keys;
    for (size_t i = 0; i < SL_COUNT(usual); i++) {
        if (!sl_json_walk_member(item, sl_span_str(usual[i][0])).ptr)
            continue;
        bool has_sort = usual[i][1] && sl_json_walk_member(item, sl_span_str(usual[i][1])).ptr;
        return has_sort ? sl_arena_printf(r->arena, "%s,%s", usual[i][0], usual[i][1]) : usual[i][0];
    }
    return NULL;
}

/* Writes the key of the item; an item that lacks a part of it is told. */
static enum sl_status add_keys(const struct reading *r, const char *which, struct sl_span item,
                               struct sl_buffer *out)
{
    struct sl_source_keys keys;
    const char *names = keys_of(r, item);
    if (!names)
        return BAD(
            r,
            "given[%zu].%s: which attributes are the item's key? Add \"keys\": [\"PK\", \"SK\"] to the case",
            r->n, which);
    if (sl_source_keys_read(names, &keys, r->error) != SL_OK)
        return SL_REJECT;
    sl_buffer_add_char(out, '{');
    for (size_t i = 0; i < keys.n; i++) {
        struct sl_span value = sl_json_walk_member(item, keys.names[i]);
        if (!value.ptr)
            return BAD(r, "given[%zu].%s: the item has no attribute %.*s, which is of its key", r->n, which,
                       SL_ARG(keys.names[i]));
        sl_buffer_add_str(out, i ? "," : "");
        sl_json_add_string(out, keys.names[i]);
        sl_buffer_add_char(out, ':');
        sl_shorthand_add_value(out, value);
    }
    sl_buffer_add_char(out, '}');
    return SL_OK;
}

static void add_image(const struct reading *r, const char *name, struct sl_span item, bool is_seen)
{
    if (!item.ptr || !is_seen)
        return;
    sl_buffer_printf(r->lines, ",\"%s\":", name);
    sl_shorthand_add_item(r->lines, item);
}

static enum sl_status check_same_key(const struct reading *r, const struct sl_span values[N_MEMBERS],
                                     struct sl_span key)
{
    struct sl_buffer before;
    sl_buffer_init_in(&before, r->arena, LINES_MOST);
    if (!values[BEFORE].ptr || !values[AFTER].ptr)
        return SL_OK;
    enum sl_status status = add_keys(r, "before", values[BEFORE], &before);
    if (status == SL_OK && !sl_span_eq(key, sl_buffer_span(&before)))
        return BAD(r,
                   "given[%zu]: the key changes from %.*s to %.*s: DynamoDB removes one item and inserts "
                   "another; write two entries",
                   r->n, SL_ARG(sl_buffer_span(&before)), SL_ARG(key));
    return status;
}

static enum sl_status add_items(const struct reading *r, struct sl_span entry)
{
    struct sl_span values[N_MEMBERS] = {{0}};
    struct sl_buffer key;
    int64_t at_s = 0;
    sl_buffer_init_in(&key, r->arena, LINES_MOST);
    enum sl_status status = read_members(r, entry, values);
    if (status == SL_OK)
        status = read_time(r, values[AT], &at_s);
    int which = values[AFTER].ptr ? AFTER : BEFORE;
    if (status == SL_OK)
        status = add_keys(r, members[which], values[which], &key);
    if (status == SL_OK)
        status = check_same_key(r, values, sl_buffer_span(&key));
    if (status != SL_OK)
        return status;
    enum sl_event event = !values[BEFORE].ptr ? SL_INSERT : !values[AFTER].ptr ? SL_REMOVE : SL_MODIFY;
    enum sl_view view = r->view;
    bool is_expired = values[EXPIRED].ptr && *values[EXPIRED].ptr == 't';
    sl_buffer_printf(r->lines,
                     "{\"eventID\":\"%032zu\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\",\"eventSource\":"
                     "\"aws:dynamodb\",\"awsRegion\":\"us-east-1\",\"dynamodb\":{"
                     "\"ApproximateCreationDateTime\":%" PRId64 ",\"Keys\":%.*s",
                     r->n + 1, sl_event_name(event), at_s, SL_ARG(sl_buffer_span(&key)));
    add_image(r, "NewImage", values[AFTER], view == SL_VIEW_NEW_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES);
    add_image(r, "OldImage", values[BEFORE], view == SL_VIEW_OLD_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES);
    sl_buffer_printf(
        r->lines, ",\"SequenceNumber\":\"1%020zu\",\"StreamViewType\":\"%s\"}%s,\"eventSourceARN\":\"%s\"}",
        r->n + 1, sl_view_name(view),
        is_expired ? ",\"userIdentity\":{\"type\":\"Service\",\"principalId\":\"dynamodb.amazonaws.com\"}"
                   : "",
        r->arn);
    return SL_OK;
}

/* ---- all entries ---- */

static enum sl_status add_entries(struct reading *r)
{
    struct sl_json_walk walk = sl_json_walk(r->given->entries);
    struct sl_span entry;
    enum sl_status status = SL_OK;
    for (; status == SL_OK && sl_json_walk_next(&walk, NULL, &entry); r->n++) {
        if (*entry.ptr != '{')
            return BAD(r, "given[%zu]: {\"before\": ITEM, \"after\": ITEM} or a stream record is expected",
                       r->n);
        if (is_of_items(entry))
            status = add_items(r, entry);
        else
            sl_json_add_compact(r->lines, entry);
        sl_buffer_add_char(r->lines, '\n');
    }
    return status;
}

static enum sl_status read_view(struct reading *r)
{
    struct sl_span view = r->given->view;
    r->view = view.ptr ? sl_view_named(view) : SL_VIEW_NEW_AND_OLD_IMAGES;
    if (r->view != SL_VIEW_UNKNOWN)
        return SL_OK;
    return BAD(r,
               "view: \"%.*s\" is not a view type; use KEYS_ONLY, NEW_IMAGE, OLD_IMAGE or NEW_AND_OLD_IMAGES",
               SL_ARG(view));
}

/* ---- the event ---- */

struct event {
    struct sl_lambda_form form;
    struct sl_buffer *text;
    size_t n;
};

static enum sl_status add_batch(void *arg, const struct sl_batch *batch, bool *is_enough,
                                struct sl_error *error)
{
    struct event *event = arg;
    struct sl_lambda_batch delivered;
    enum sl_status status =
        sl_lambda_batch_make(batch, &event->form, event->n, batch->arena, &delivered, error);
    for (size_t i = 0; status == SL_OK && i < batch->n; i++) {
        sl_buffer_add_str(event->text, event->n++ ? "," : "");
        sl_buffer_add_span(event->text, sl_lambda_batch_text(&delivered, i));
    }
    *is_enough = event->n > SL_GIVEN_RECORDS;
    return status;
}

static enum sl_status add_all(const struct reading *r, const struct sl_inputs *inputs, struct sl_buffer *out)
{
    struct event event = {.form = {.stream_arn = r->arn, .keys = r->given->keys, .created_s = FIRST_S},
                          .text = out};
    enum sl_status status = sl_inputs_each(inputs, NULL, add_batch, &event, r->error);
    if (status == SL_OK && event.n > SL_GIVEN_RECORDS)
        return BAD(r, "%s: has more than %d records, the most that are one batch: keep those that matter",
                   r->given->file, SL_GIVEN_RECORDS);
    return status;
}

enum sl_status sl_given_event(const struct sl_given *given, struct sl_arena *arena, struct sl_buffer *out,
                              struct sl_error *error)
{
    struct sl_buffer lines;
    sl_buffer_init_in(&lines, arena, LINES_MOST);
    struct reading r = {.given = given,
                        .arena = arena,
                        .lines = &lines,
                        .arn = sl_arena_printf(arena, ARN_OF, given->table ? given->table : "source-table"),
                        .error = error};
    enum sl_status status = read_view(&r);
    if (status == SL_OK)
        status = add_entries(&r);
    if (status != SL_OK)
        return status;
    const char *names[2];
    struct sl_span texts[2];
    struct sl_inputs inputs = {.names = names, .texts = texts};
    if (lines.len) {
        names[inputs.n] = "given";
        texts[inputs.n++] = sl_buffer_span(&lines);
    }
    if (given->file) {
        names[inputs.n] = given->file;
        texts[inputs.n++] = sl_span(NULL, 0);
    }
    if (!inputs.n)
        return sl_fail(
            error, SL_REJECT, "BadCase",
            "it gives no record: write \"given\": [{\"after\": {\"PK\": \"a\"}}], or \"records\": FILE");
    sl_buffer_add_str(out, "{\"Records\":[");
    status = add_all(&r, &inputs, out);
    sl_buffer_add_str(out, "]}");
    return status;
}
