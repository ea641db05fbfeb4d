/* One object of an archive: read whole, compared with its name, its changes digested. */
#include "base/gzip.h"
#include "base/span.h"
#include "handlers/pipeline/host.h"
#include "streams/decode/batch.h"
#include "work/verify/archive/chain_private.h"

#include <stdlib.h>
#include <string.h>

#define READ_BYTES ((size_t)8 * 1024 * 1024)
#define READ_MS    60000

/* ---- reading ---- */

static enum sl_status read_whole(struct chain *c, const struct sl_object_entry *entry, struct sl_buffer *out,
                                 struct sl_error *error)
{
    struct sl_clock *clock = c->o->clock;
    struct sl_span etag = {NULL, 0};
    for (uint64_t from = 0; from < entry->bytes || from == 0;) {
        const struct sl_call call = {.arena = c->arena, .deadline_ms = clock->now_ms(clock) + READ_MS};
        const struct sl_object_read read = {
            .key = entry->key, .from = from, .max_bytes = READ_BYTES, .etag = etag};
        struct sl_object_piece piece = {.bytes = {NULL, 0}};
        c->o->port->read(c->o->port, &read, 1, &piece, &call);
        if (piece.result.status != SL_OK)
            return sl_fail(error, piece.result.status, piece.result.code, "%s", piece.result.text);
        sl_buffer_add_span(out, piece.bytes);
        etag = piece.etag.len ? piece.etag : etag;
        from += piece.bytes.len;
        if (piece.bytes.len < READ_BYTES)
            break;
    }
    return out->failed ? sl_fail(error, SL_REJECT, "TooLarge", "it is larger than an archive's objects are")
                       : SL_OK;
}

static enum sl_status read_records(struct chain *c, const struct sl_object_entry *entry,
                                   struct sl_batch *batch, struct sl_error *error)
{
    struct sl_buffer raw, text;
    const struct sl_decode_options options = {.any_shape = true};
    sl_buffer_init_in(&raw, c->arena, SL_CHAIN_OBJECT_BYTES);
    sl_buffer_init_in(&text, c->arena, SL_CHAIN_OBJECT_BYTES);
    enum sl_status status = read_whole(c, entry, &raw, error);
    if (status != SL_OK)
        return status;
    struct sl_span lines = sl_buffer_span(&raw);
    if (sl_gzip_is(lines)) {
        status = sl_gzip_expand(lines, &text, error);
        lines = sl_buffer_span(&text);
    }
    *batch = (struct sl_batch){.n = 0};
    return status == SL_OK && lines.len ? sl_batch_decode(lines, c->arena, &options, batch, error) : status;
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
static void content_digest(struct chain *c, const struct sl_batch *batch, char out[2 * DIGEST_BYTES + 1])
{
    struct sl_buffer text;
    struct sl_span last = {NULL, 0};
    sl_buffer_init_in(&text, c->arena, SL_CHAIN_OBJECT_BYTES);
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
static const char *count_in_name(struct chain *c, struct sl_span key)
{
    const char *text = sl_arena_copy(c->arena, key), *slash = strrchr(text, '/');
    const char *dash = strchr(slash ? slash + 1 : text, '-');
    return dash ? dash + 1 : NULL;
}

static void compare_name(struct chain *c, const struct sl_object_entry *entry, const struct sl_batch *batch)
{
    char digest[2 * DIGEST_BYTES + 1], *end = NULL;
    const char *at = count_in_name(c, entry->key);
    unsigned long long n = at ? strtoull(at, &end, 10) : 0;
    if (!at || *end != '-' || strlen(end) < 1 + 2 * DIGEST_BYTES) {
        chain_report_object(c, entry->key, "damaged", "its name is not one that archive gives");
        return;
    }
    content_digest(c, batch, digest);
    if (n != batch->n)
        chain_report_object(
            c, entry->key, "damaged",
            sl_arena_printf(c->arena, "its name says %llu records, and it has %zu", n, batch->n));
    else if (memcmp(end + 1, digest, 2 * DIGEST_BYTES) != 0)
        chain_report_object(c, entry->key, "damaged", "it has other records than its name says");
}

/* ---- changes ---- */

static void digest_of(struct sl_value value, unsigned char out[DIGEST_BYTES])
{
    unsigned char bytes[32];
    sl_host_table.value_sha256(value, bytes);
    memcpy(out, bytes, DIGEST_BYTES);
}

/* An archive may hold several tables' changes: the items of two of them are two, whatever their keys. A table
 * has a new stream when its stream was off for a while. */
static void item_digest(struct chain *c, const struct sl_record *r, unsigned char out[DIGEST_BYTES])
{
    static const char stream[] = "/stream/";
    unsigned char bytes[32];
    struct sl_span arn = sl_record_text(r, SL_FIELD_SOURCE_ARN), table = sl_record_text(r, SL_FIELD_TABLE);
    const char *label = arn.len ? memmem(arn.ptr, arn.len, stream, strlen(stream)) : NULL;
    arn.len = label ? (size_t)(label - arn.ptr) : arn.len;
    sl_host_table.value_sha256(sl_record_image(r, SL_KEYS), bytes);
    struct sl_buffer text;
    sl_buffer_init_in(&text, c->arena, SL_CHAIN_OBJECT_BYTES);
    sl_buffer_add_span(&text, arn);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, table);
    sl_buffer_add_char(&text, '\n');
    sl_buffer_add_span(&text, sl_span((const char *)bytes, sizeof(bytes)));
    sl_host_table.sha256(sl_buffer_span(&text), bytes);
    memcpy(out, bytes, DIGEST_BYTES);
}

static bool make_change(struct chain *c, const struct sl_record *r, struct change *out)
{
    unsigned char bytes[32];
    struct sl_span order = sl_record_order(r, c->arena), id = sl_record_text(r, SL_FIELD_EVENT_ID);
    struct sl_value old = sl_record_image(r, SL_OLD_IMAGE), new = sl_record_image(r, SL_NEW_IMAGE);
    *out = (struct change){.event = (uint8_t)sl_record_event(r)};
    out->has_old = old.type != SL_NONE;
    out->has_new = new.type != SL_NONE;
    out->is_timed = !sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER).ptr;
    bool is_whole = (out->event == SL_INSERT || out->has_old) && (out->event == SL_REMOVE || out->has_new);
    if (!is_whole || order.len == 0 || order.len > ORDER_BYTES)
        return false;
    memset(out->order, '0', ORDER_BYTES - order.len);
    memcpy(out->order + ORDER_BYTES - order.len, order.ptr, order.len);
    item_digest(c, r, out->item);
    if (out->has_old)
        digest_of(old, out->old);
    if (out->has_new)
        digest_of(new, out->new);
    sl_host_table.sha256(id.len ? id : order, bytes);
    memcpy(out->event_id, bytes, DIGEST_BYTES);
    return true;
}

enum sl_status chain_object(struct chain *c, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct sl_batch batch;
    struct sl_error why = SL_NO_ERROR;
    c->counts->objects++;
    enum sl_status status = read_records(c, entry, &batch, &why);
    if (status == SL_RETRY || status == SL_FATAL)
        return sl_fail(error, status, why.code, "%s", why.text);
    if (status != SL_OK) {
        c->counts->unreadable++;
        chain_report_object(c, entry->key, "unreadable", why.text);
        return SL_OK;
    }
    compare_name(c, entry, &batch);
    long at = ftell(c->names);
    if (at < 0 || fwrite(entry->key.ptr, 1, entry->key.len, c->names) != entry->key.len ||
        fputc('\n', c->names) == EOF)
        return sl_fail(error, SL_FATAL, "CannotWrite", "a temporary file cannot be written");
    for (size_t i = 0; i < batch.n && status == SL_OK; i++) {
        struct change change;
        c->counts->records++;
        if (!make_change(c, sl_batch_record(&batch, i), &change)) {
            c->counts->without_images++;
            continue;
        }
        change.object = (uint64_t)at;
        status = chain_add(c, &change, error);
    }
    return status;
}
