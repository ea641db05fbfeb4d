/* An object of an archive: read whole, compared with its name, its changes digested. */
#include "data/verify/archive/changes.h"

#include "base/json_write.h"
#include "base/span.h"
#include "data/source/source.h"
#include "data/source/whole.h"
#include "handlers/pipeline/host.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <stdlib.h>
#include <string.h>

#define DIGEST_BYTES 16 /* of an object's name */
#define EVENT_BYTES  (SL_SORTER_ORDER_BYTES - SL_CHANGE_NUMBER_BYTES)

/* ---- counts ---- */

const char *const sl_chain_count_names[SL_CHAIN_COUNTS] = {
    "objects", "records",    "items",   "erased",         "gaps",
    "damaged", "unreadable", "doubles", "unknown_before", "without_images",
};

uint64_t *sl_chain_count(struct sl_chain_counts *counts, size_t i)
{
    return (uint64_t *)counts + i; /* (it has nothing else) */
}

void sl_chain_add_counts(const struct sl_chain_counts *counts, struct sl_buffer *out)
{
    struct sl_chain_counts copy = *counts;
    for (size_t i = 0; i < SL_CHAIN_COUNTS; i++)
        sl_json_add_integer(out, sl_chain_count_names[i], (int64_t)*sl_chain_count(&copy, i));
}

/* ---- lines ---- */

void sl_archive_begin_line(struct sl_buffer *line, const char *kind, const char *route)
{
    sl_buffer_reset(line);
    sl_buffer_add_char(line, '{');
    sl_json_add_member(line, "result", SL_LIT("different"));
    sl_json_add_member(line, "kind", sl_span_str(kind));
    sl_json_add_member(line, "route", sl_span_str(route));
    sl_json_add_member(line, "handler", SL_LIT("archive"));
}

/* Reports an object: `kind` is "damaged" or "unreadable". */
static void report_object(const struct sl_changes *c, struct sl_span key, const char *kind, const char *why)
{
    c->counts->damaged += strcmp(kind, "damaged") == 0;
    sl_archive_begin_line(c->line, kind, c->route);
    sl_json_add_member(c->line, "object", key);
    sl_json_add_member(c->line, "why", sl_span_str(why));
    sl_buffer_add_str(c->line, "}\n");
    c->found(c->arg, sl_buffer_span(c->line));
}

static enum sl_status read_records(const struct sl_changes *c, struct sl_span key, struct sl_batch *batch,
                                   struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true, .keeps_erased = true};
    struct sl_whole whole;
    enum sl_status status = sl_whole_read(c->port, c->clock, key, c->arena, &whole, error);
    *batch = (struct sl_batch){.n = 0};
    return status == SL_OK && whole.text.len ? sl_batch_decode(whole.text, c->arena, &options, batch, error)
                                             : status;
}

/* ---- names: FIRST-COUNT-DIGEST.jsonl.gz, as docs/HANDLERS.md has it ---- */

static void digest_text(struct sl_span text, char out[2 * DIGEST_BYTES + 1])
{
    unsigned char bytes[32];
    sl_host_table.sha256(text, bytes);
    for (size_t i = 0; i < 2 * (size_t)DIGEST_BYTES; i++)
        out[i] = "0123456789abcdef"[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
    out[2 * DIGEST_BYTES] = '\0';
}

/* The format's number, then of each record where it comes from (if that is another place than before), its
 * identifier and its event id, each closed with a newline. */
static void content_digest(const struct sl_changes *c, const struct sl_batch *batch,
                           char out[2 * DIGEST_BYTES + 1])
{
    struct sl_buffer text;
    struct sl_span last = {NULL, 0};
    sl_buffer_init_in(&text, c->arena, SL_WHOLE_BYTES);
    sl_buffer_add_char(&text, '0');
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN);
        struct sl_span id = sl_record_text(r, SL_FIELD_IDENTIFIER),
                       event = sl_record_text(r, SL_FIELD_EVENT_ID);
        if (i == 0 || !sl_span_eq(arn, last)) {
            sl_buffer_add_span(&text, arn);
            sl_buffer_add_char(&text, '\n');
        }
        last = arn;
        sl_buffer_add_span(&text, id);
        sl_buffer_add_char(&text, '\n');
        sl_buffer_add_span(&text, event.len || id.len ? event : sl_record_text(r, SL_FIELD_RAW));
        sl_buffer_add_char(&text, '\n');
    }
    digest_text(sl_buffer_span(&text), out);
}

/* The part of the name after its first '-': "COUNT-DIGEST.jsonl"; NULL: another program wrote it. */
static const char *count_in_name(const struct sl_changes *c, struct sl_span key)
{
    const char *text = sl_arena_copy(c->arena, key), *slash = strrchr(text, '/');
    const char *dash = strchr(slash ? slash + 1 : text, '-');
    return dash ? dash + 1 : NULL;
}

static void compare_name(const struct sl_changes *c, struct sl_span key, const struct sl_batch *batch)
{
    char digest[2 * DIGEST_BYTES + 1], *end = NULL;
    const char *at = count_in_name(c, key);
    unsigned long long n = at ? strtoull(at, &end, 10) : 0;
    if (!at || *end != '-' || strlen(end) < 1 + 2 * DIGEST_BYTES) {
        report_object(c, key, "damaged", "its name is not one that archive gives");
        return;
    }
    content_digest(c, batch, digest);
    if (n != batch->n)
        report_object(c, key, "damaged",
                      sl_arena_printf(c->arena, "its name says %llu records, and it has %zu", n, batch->n));
    else if (memcmp(end + 1, digest, 2 * DIGEST_BYTES) != 0)
        report_object(c, key, "damaged", "it has other records than its name says");
}

/* ---- changes ---- */

static uint64_t state_of(struct sl_value image)
{
    unsigned char bytes[32];
    uint64_t state;
    sl_host_table.value_sha256(image, bytes);
    memcpy(&state, bytes, sizeof(state));
    return state;
}

/* An archive may hold several tables' changes: the items of two of them are two, whatever their keys. A table
 * has a new stream when its stream was off for a while. */
static void item_digest(const struct sl_changes *c, const struct sl_record *r,
                        unsigned char out[SL_SORTER_KEY_BYTES])
{
    static const char stream[] = "/stream/";
    unsigned char bytes[SL_SORTER_KEY_BYTES];
    struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN), table = sl_record_text(r, SL_FIELD_TABLE);
    const char *label = arn.len ? memmem(arn.ptr, arn.len, stream, strlen(stream)) : NULL;
    arn.len = label ? (size_t)(label - arn.ptr) : arn.len;
    sl_host_table.value_sha256(sl_record_image(r, SL_KEYS), bytes);
    struct sl_buffer text;
    sl_buffer_init_in(&text, c->arena, SL_WHOLE_BYTES);
    sl_buffer_add_span(&text, arn);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, table);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, sl_span((const char *)bytes, sizeof(bytes)));
    sl_host_table.sha256(sl_buffer_span(&text), out);
}

/* False: it lacks what the proof needs. */
static bool make_change(const struct sl_changes *c, const struct sl_record *r, uint64_t flags,
                        struct sl_sorter_entry *out)
{
    unsigned char bytes[32];
    struct sl_span order = sl_record_order(r, c->arena), id = sl_record_text(r, SL_FIELD_EVENT_ID);
    struct sl_value old = sl_record_image(r, SL_OLD_IMAGE), new = sl_record_image(r, SL_NEW_IMAGE);
    enum sl_event event = sl_record_event(r);
    bool is_whole = (event == SL_INSERT || old.type) && (event == SL_REMOVE || new.type);
    if (!is_whole || order.len == 0 || order.len > SL_CHANGE_NUMBER_BYTES)
        return false;
    *out = (struct sl_sorter_entry){.order_bytes = SL_SORTER_ORDER_BYTES};
    out->flags =
        flags | (uint64_t)event | (sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER).ptr ? 0 : SL_CHANGE_TIMED);
    memset(out->order, '0', SL_CHANGE_NUMBER_BYTES - order.len);
    memcpy(out->order + SL_CHANGE_NUMBER_BYTES - order.len, order.ptr, order.len);
    sl_host_table.sha256(id.len ? id : order, bytes);
    memcpy(out->order + SL_CHANGE_NUMBER_BYTES, bytes, EVENT_BYTES);
    item_digest(c, r, out->key);
    out->before = old.type ? state_of(old) : 0;
    out->after = new.type ? state_of(new) : 0;
    return true;
}

/* Its images are gone; its identifiers are what the object's name says. */
static bool is_erased(const struct sl_record *r)
{
    return sl_span_starts(sl_record_text(r, SL_FIELD_RAW), SL_LIT(SL_ERASED_LINE));
}

enum sl_status sl_changes_read(const struct sl_changes *c, struct sl_span key, uint64_t flags,
                               struct sl_error *error)
{
    struct sl_batch batch;
    struct sl_error why = SL_NO_ERROR;
    sl_arena_reset(c->arena);
    enum sl_status status = read_records(c, key, &batch, &why);
    if (status == SL_RETRY || status == SL_FATAL)
        return sl_fail(error, status, why.code, "%s", why.text);
    c->counts->objects++;
    if (status != SL_OK) {
        c->counts->unreadable++;
        report_object(c, key, "unreadable", why.text);
        return SL_OK;
    }
    compare_name(c, key, &batch);
    for (size_t i = 0; i < batch.n && status == SL_OK; i++) {
        struct sl_sorter_entry change;
        c->counts->records++;
        if (is_erased(sl_batch_record(&batch, i)))
            c->counts->erased++;
        else if (make_change(c, sl_batch_record(&batch, i), flags, &change))
            status = c->take(c->take_arg, &change, error);
        else
            c->counts->without_images++;
    }
    return status;
}

bool sl_changes_are_in(struct sl_span key)
{
    return sl_source_is_archived(key) && !memchr(key.ptr, '\n', key.len);
}
