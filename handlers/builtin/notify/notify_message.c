/* One message: from a template, or the record itself. */
#include "handlers/builtin/notify/notify_private.h"

#include "handlers/builtin/toolkit/text.h"

#include <inttypes.h>
#include <stdio.h>

/* A message group of SQS and SNS has at most so many letters, digits and punctuation characters. */
#define GROUP_BYTES 128

/* ---- the record as plain JSON ---- */

/* The members' parts, as they are collected. */
struct parts {
    const struct sl_host *host;
    struct sl_arena *arena;
    struct sl_span list[18];
    size_t n;
};

static void add(struct parts *parts, const char *before, struct sl_span json)
{
    parts->list[parts->n++] = sl_span_str(before);
    parts->list[parts->n++] = json;
}

static void add_field(struct parts *parts, const char *before, const struct sl_record *r, enum sl_field field)
{
    struct sl_span text = parts->host->record_text(r, field);
    if (text.ptr)
        add(parts, before, parts->host->json_quote(parts->arena, text));
}

static void add_image(struct parts *parts, const char *before, const struct sl_record *r, enum sl_image image)
{
    struct sl_value value = parts->host->record_image(r, image);
    if (value.type != SL_NONE)
        add(parts, before, parts->host->value_plain(value, parts->arena));
}

static struct sl_span plain_record(const struct sl_render *in)
{
    const struct sl_host *host = in->host;
    const struct sl_record *r = in->record;
    struct parts parts = {.host = host, .arena = in->arena};
    char begin[128];
    snprintf(begin, sizeof(begin), "{\"eventName\":\"%s\",\"ttl\":\"%s\",\"createdMs\":%" PRId64,
             host->event_name(host->record_event(r)), host->ttl_name(host->record_ttl(r)),
             host->record_created_ns(r) / 1000000);
    parts.list[parts.n++] = sl_span_str(begin);
    add_field(&parts, ",\"eventID\":", r, SL_FIELD_EVENT_ID);
    add_field(&parts, ",\"table\":", r, SL_FIELD_TABLE);
    add_field(&parts, ",\"region\":", r, SL_FIELD_REGION);
    add_field(&parts, ",\"sequenceNumber\":", r, SL_FIELD_SEQUENCE_NUMBER);
    add_image(&parts, ",\"Keys\":", r, SL_KEYS);
    add_image(&parts, ",\"NewImage\":", r, SL_NEW_IMAGE);
    add_image(&parts, ",\"OldImage\":", r, SL_OLD_IMAGE);
    parts.list[parts.n++] = SL_LIT("}");
    return host->join(in->arena, parts.list, parts.n);
}

/* ---- the message ---- */

static enum sl_status body_of(const struct notify *p, const struct sl_render *in, struct sl_span *out,
                              struct sl_error *error)
{
    struct sl_render escaped = *in;
    escaped.escape = p->escape;
    if (p->message)
        return sl_render_text(&escaped, p->message, out, error);
    *out = p->body == NOTIFY_JSON ? plain_record(in) : in->host->record_text(in->record, SL_FIELD_RAW);
    return SL_OK;
}

static bool is_group(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '!' || text.ptr[i] > '~')
            return false;
    return text.len > 0 && text.len <= GROUP_BYTES;
}

/* Messages of one item belong together, unless a template says otherwise. A text that no queue takes as a
 * group is replaced by its digest. */
static enum sl_status order_of(const struct notify *p, const struct sl_render *in, struct sl_span *out,
                               struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (p->group)
        status = sl_render_text(in, p->group, out, error);
    else
        *out = in->host->record_item_key(in->record, in->arena);
    if (status != SL_OK || is_group(*out))
        return status;
    char *digest = in->host->alloc(in->arena, SL_TEXT_DIGEST_BYTES + 1);
    sl_text_digest(in->host, *out, digest);
    *out = sl_span_str(digest);
    return SL_OK;
}

static enum sl_status dedupe_of(const struct notify *p, const struct sl_render *in, struct sl_span *out,
                                struct sl_error *error)
{
    if (p->dedupe)
        return sl_render_text(in, p->dedupe, out, error);
    *out = in->host->record_text(in->record, SL_FIELD_EVENT_ID);
    struct sl_span parts[] = {sl_span_str(in->host->route_name(p->route)), SL_LIT("/"), *out};
    if (p->is_shared && out->len)
        *out = in->host->join(in->arena, parts, 3);
    return SL_OK;
}

static enum sl_status attributes_of(const struct notify *p, const struct sl_render *in,
                                    struct sl_message *out, struct sl_error *error)
{
    struct sl_message_attribute *list = in->host->alloc(in->arena, (p->n_attributes + 1) * sizeof(*list));
    for (size_t i = 0; i < p->n_attributes; i++) {
        list[i].name = p->attributes[i].name;
        enum sl_status status = sl_render_text(in, p->attributes[i].value.compiled, &list[i].value, error);
        if (status != SL_OK)
            return status;
    }
    out->attributes = list;
    out->n_attributes = p->n_attributes;
    return SL_OK;
}

enum sl_status notify_message(const struct notify *p, const struct sl_record *r, struct sl_arena *arena,
                              struct sl_message *out, struct sl_error *error)
{
    struct sl_render in = {
        .host = p->host, .arena = arena, .record = r, .image = SL_ANY_IMAGE, .missing = p->missing};
    *out = (struct sl_message){0};
    enum sl_status status = body_of(p, &in, &out->body, error);
    if (status == SL_OK)
        status = order_of(p, &in, &out->order, error);
    if (status == SL_OK)
        status = dedupe_of(p, &in, &out->dedupe, error);
    if (status == SL_OK && p->subject)
        status = sl_render_text(&in, p->subject, &out->subject, error);
    return status == SL_OK && p->n_attributes > 0 ? attributes_of(p, &in, out, error) : status;
}
