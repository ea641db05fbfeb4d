/* One message: from a template, or the record itself. */
#include "handlers/notify.h"

#include <inttypes.h>
#include <stdio.h>

/* A message group of SQS and SNS: so many characters, letters, digits and punctuation. */
#define GROUP_BYTES 128

static enum sl_status render(const struct notify *p, const struct sl_template *t, const struct sl_record *r,
                             enum sl_escape escape, struct sl_arena *arena, struct sl_span *out,
                             struct sl_error *error)
{
    if (p->missing != SL_MISSING_EMPTY)
        return p->host->template_render(t, r, escape, arena, out, error);
    *out = p->host->template_render_or(t, r, SL_ANY_IMAGE, escape, arena, SL_TEXT(""));
    return SL_OK;
}

/* ---- the record as plain JSON ---- */

static const char *const events[] = {[SL_INSERT] = "INSERT", [SL_MODIFY] = "MODIFY", [SL_REMOVE] = "REMOVE"};
static const char *const verdicts[] = {[SL_TTL_UNKNOWN] = "unknown",
                                       [SL_TTL_USER] = "user",
                                       [SL_TTL_INFERRED] = "inferred",
                                       [SL_TTL_EXPIRED] = "expired"};

static size_t add_field(const struct notify *p, const struct sl_record *r, enum sl_field field,
                        struct sl_span name, struct sl_arena *arena, struct sl_span *parts)
{
    struct sl_span text = p->host->record_text(r, field);
    if (!text.ptr)
        return 0;
    parts[0] = name;
    parts[1] = p->host->json_quote(arena, text);
    return 2;
}

static size_t add_image(const struct notify *p, const struct sl_record *r, enum sl_image image,
                        struct sl_span name, struct sl_arena *arena, struct sl_span *parts)
{
    struct sl_value value = p->host->record_image(r, image);
    if (value.type == SL_NONE)
        return 0;
    parts[0] = name;
    parts[1] = p->host->value_plain(value, arena);
    return 2;
}

static struct sl_span plain_record(const struct notify *p, const struct sl_record *r, struct sl_arena *arena)
{
    const struct sl_host *host = p->host;
    struct sl_span parts[18];
    char begin[128];
    int64_t created_ms = host->record_created_ns(r) / 1000000;
    int len = snprintf(begin, sizeof(begin), "{\"eventName\":\"%s\",\"ttl\":\"%s\",\"createdMs\":%" PRId64,
                       events[host->record_event(r)], verdicts[host->record_ttl(r)], created_ms);
    size_t n = 0;
    parts[n++] = (struct sl_span){begin, (size_t)len};
    n += add_field(p, r, SL_FIELD_EVENT_ID, SL_TEXT(",\"eventID\":"), arena, parts + n);
    n += add_field(p, r, SL_FIELD_TABLE, SL_TEXT(",\"table\":"), arena, parts + n);
    n += add_field(p, r, SL_FIELD_REGION, SL_TEXT(",\"region\":"), arena, parts + n);
    n += add_field(p, r, SL_FIELD_SEQUENCE_NUMBER, SL_TEXT(",\"sequenceNumber\":"), arena, parts + n);
    n += add_image(p, r, SL_KEYS, SL_TEXT(",\"Keys\":"), arena, parts + n);
    n += add_image(p, r, SL_NEW_IMAGE, SL_TEXT(",\"NewImage\":"), arena, parts + n);
    n += add_image(p, r, SL_OLD_IMAGE, SL_TEXT(",\"OldImage\":"), arena, parts + n);
    parts[n++] = SL_TEXT("}");
    return host->join(arena, parts, n);
}

static enum sl_status body_of(const struct notify *p, const struct sl_record *r, struct sl_arena *arena,
                              struct sl_span *out, struct sl_error *error)
{
    if (p->message)
        return render(p, p->message, r, p->escape, arena, out, error);
    *out = p->body == NOTIFY_JSON ? plain_record(p, r, arena) : p->host->record_text(r, SL_FIELD_RAW);
    return SL_OK;
}

/* ---- what goes with it ---- */

static bool is_group(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '!' || text.ptr[i] > '~')
            return false;
    return text.len > 0 && text.len <= GROUP_BYTES;
}

/* Messages of one item belong together, unless a template says otherwise. A text that no queue takes as a
 * group is replaced by its digest. */
static enum sl_status order_of(const struct notify *p, const struct sl_record *r, struct sl_arena *arena,
                               struct sl_span *out, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (p->group)
        status = render(p, p->group, r, SL_ESCAPE_NONE, arena, out, error);
    else
        *out = p->host->record_item_key(r, arena);
    if (status != SL_OK || is_group(*out))
        return status;
    char *digest = p->host->alloc(arena, SL_TEXT_DIGEST_BYTES + 1);
    sl_text_digest(p->host, *out, digest);
    *out = (struct sl_span){digest, SL_TEXT_DIGEST_BYTES};
    return SL_OK;
}

static enum sl_status attributes_of(const struct notify *p, const struct sl_record *r, struct sl_arena *arena,
                                    struct sl_message *out, struct sl_error *error)
{
    struct sl_message_attribute *list = p->host->alloc(arena, (p->n_attributes + 1) * sizeof(*list));
    for (size_t i = 0; i < p->n_attributes; i++) {
        list[i].name = p->attributes[i].name;
        enum sl_status status = sl_text_render(p->host, &p->attributes[i].value, r, SL_ANY_IMAGE, p->missing,
                                               arena, &list[i].value, error);
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
    *out = (struct sl_message){0};
    enum sl_status status = body_of(p, r, arena, &out->body, error);
    if (status == SL_OK)
        status = order_of(p, r, arena, &out->order, error);
    if (status == SL_OK && p->dedupe)
        status = render(p, p->dedupe, r, SL_ESCAPE_NONE, arena, &out->dedupe, error);
    else if (status == SL_OK)
        out->dedupe = p->host->record_text(r, SL_FIELD_EVENT_ID);
    if (status == SL_OK && p->subject)
        status = render(p, p->subject, r, SL_ESCAPE_NONE, arena, &out->subject, error);
    return status == SL_OK && p->n_attributes > 0 ? attributes_of(p, r, arena, out, error) : status;
}
