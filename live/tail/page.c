/* Makes a page of the text of an answer. */
#include "live/tail/page.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "live/source/lambda_form.h"
#include "live/source/sequence.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <stdlib.h>

#define ARENA_BYTES (16 * 1024)
#define TEXT_BYTES  ((size_t)512 * 1024 * 1024) /* an answer of 64 MB (live.c), and what its records lack */

void sl_page_destroy(struct sl_page *page)
{
    if (!page)
        return;
    sl_buffer_clean_up(&page->text);
    sl_arena_destroy(page->arena);
    free(page);
}

/* ---- reading ---- */

/* Keeps the records before the first one that cannot be read, whose number and error are told. */
static struct sl_span cut_before_unreadable(struct sl_span answer, const struct sl_decode_options *options,
                                            struct sl_arena *arena, struct sl_span *number,
                                            struct sl_error *why)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_find(answer, "Records"));
    struct sl_span record;
    struct sl_buffer good;
    struct sl_batch one;
    sl_buffer_init_in(&good, arena, answer.len + 32);
    sl_buffer_add_str(&good, "{\"Records\":[");
    size_t n = 0, len = good.len;
    for (; sl_json_walk_next(&walk, NULL, &record); n++, len = good.len) {
        const char *text = sl_arena_printf(arena, "{\"Records\":[%.*s]}", SL_ARG(record));
        *number = sl_json_find(record, "dynamodb.SequenceNumber");
        if (sl_batch_decode(sl_span_str(text), arena, options, &one, why) != SL_OK)
            break;
        sl_buffer_add_str(&good, n ? "," : "");
        sl_buffer_add_span(&good, record);
    }
    good.len = len;
    sl_buffer_add_str(&good, "]}");
    return n ? sl_buffer_span(&good) : sl_span(NULL, 0);
}

static enum sl_status decode(const struct sl_page_options *o, struct sl_span answer, struct sl_batch *batch,
                             bool *is_cut, struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true, .ttl_attribute = o->ttl_attribute};
    struct sl_error why = SL_NO_ERROR;
    struct sl_span number = {NULL, 0};
    *is_cut = false;
    sl_arena_reset(o->scratch);
    if (sl_batch_decode(answer, o->scratch, &options, batch, &why) == SL_OK)
        return SL_OK;
    struct sl_error reason = SL_NO_ERROR;
    struct sl_span good = cut_before_unreadable(answer, &options, o->scratch, &number, &reason);
    *is_cut = true;
    if (good.ptr)
        return sl_batch_decode(good, o->scratch, &options, batch, error);
    return sl_fail(error, SL_REJECT, reason.code[0] ? reason.code : why.code,
                   "the record %.*s cannot be read: %s. Tail ends here. To continue after this record, write "
                   "its sequence number as \"after\" of this shard into the checkpoint file",
                   SL_ARG(number), reason.text[0] ? reason.text : why.text);
}

/* ---- the records as they are delivered ---- */

static void count(struct sl_page *page, const struct sl_record *r)
{
    enum sl_event event = sl_record_event(r);
    page->by_event[event]++;
    if (event == SL_REMOVE)
        page->removed_by[sl_record_ttl(r)]++;
}

/* DynamoDB rounds the time of a change down to the second, DynamoDB Local to the minute. */
static bool is_before(const struct sl_page_options *o, int64_t created_ms)
{
    return created_ms && created_ms / 60000 < o->since_ms / 60000;
}

/* The spans hold offsets in the text until it no longer moves. */
static enum sl_status add(struct sl_page *page, const struct sl_page_options *o,
                          const struct sl_lambda_form *form, const struct sl_record *r,
                          struct sl_error *error)
{
    int64_t created_ms = sl_record_created_ns(r) / 1000000;
    size_t from = page->text.len;
    page->n_read++;
    page->told_ms = created_ms;
    page->last_ms = created_ms ? created_ms : o->now_ms;
    if (is_before(o, created_ms))
        return SL_OK;
    if (!sl_lambda_form_write(form, r, page->n, o->scratch, &page->text) || page->text.failed)
        return sl_fail(error, SL_REJECT, "BrokenAnswer",
                       "GetRecords: the answer was not understood: record %zu", page->n_read - 1);
    struct sl_span id = sl_record_text(r, SL_FIELD_IDENTIFIER), key = {NULL, 0};
    if (!id.len)
        return sl_fail(error, SL_REJECT, "NoPlace", "record %zu has no sequence number", page->n_read - 1);
    if (o->needs_item_keys)
        key = sl_record_item_key(r, page->arena);
    page->records[page->n++] = (struct sl_esm_record){
        .text = {(const char *)(uintptr_t)from, page->text.len - from},
        .id = sl_span(sl_arena_copy(page->arena, id), id.len),
        .item_key = key.ptr ? sl_span(sl_arena_copy(page->arena, key), key.len) : key,
        .created_ms = page->last_ms,
        .available_ms = o->available_ms,
    };
    sl_buffer_add_char(&page->text, '\n');
    count(page, r);
    return SL_OK;
}

static void give_back_room(struct sl_buffer *text)
{
    char *less = text->len ? realloc(text->ptr, text->len) : NULL;
    if (!less)
        return;
    text->ptr = less;
    text->room = text->len;
}

/* A page that was given already, or an older one, would be handled once more, and after what came since. */
static enum sl_status check_order(const struct sl_page_options *o, const struct sl_batch *batch,
                                  struct sl_error *error)
{
    struct sl_span last = sl_span_str(o->after);
    for (size_t i = 0; i < batch->n; i++) {
        struct sl_span id = sl_record_text(sl_batch_record(batch, i), SL_FIELD_IDENTIFIER);
        if (last.len && id.len && !sl_sequence_is_after(id, last))
            return sl_fail(error, SL_REJECT, "BrokenAnswer",
                           "GetRecords: the answer was not understood: the record %.*s comes after %.*s",
                           SL_ARG(id), SL_ARG(last));
        last = id;
    }
    return SL_OK;
}

static enum sl_status add_all(struct sl_page *page, const struct sl_page_options *o,
                              const struct sl_batch *batch, struct sl_error *error)
{
    const struct sl_lambda_form form = {
        .stream_arn = o->stream_arn, .is_arn_certain = true, .created_s = o->now_ms / 1000};
    enum sl_status status = SL_OK;
    (void)sl_buffer_reserve(&page->text, batch->payload.len + batch->n * (strlen(o->stream_arn) + 64));
    for (size_t i = 0; i < batch->n && status == SL_OK; i++)
        status = add(page, o, &form, sl_batch_record(batch, i), error);
    give_back_room(&page->text);
    for (size_t i = 0; i < page->n; i++)
        page->records[i].text.ptr = page->text.ptr + (uintptr_t)page->records[i].text.ptr;
    return status;
}

/* What filters look at is the record as it is delivered. */
static enum sl_status decode_delivered(struct sl_page *page, const struct sl_page_options *o,
                                       struct sl_error *error)
{
    const struct sl_decode_options options = {
        .any_shape = true, .ttl_attribute = o->ttl_attribute, .lines_before = 1};
    struct sl_batch batch;
    enum sl_status status =
        page->n ? sl_batch_decode(sl_buffer_span(&page->text), page->arena, &options, &batch, error) : SL_OK;
    for (size_t i = 0; i < page->n && status == SL_OK; i++)
        page->records[i].record = sl_batch_record(&batch, i);
    return status;
}

enum sl_status sl_page_make(const struct sl_page_options *o, struct sl_span answer, struct sl_page **out,
                            struct sl_error *error)
{
    struct sl_batch batch;
    bool is_cut;
    enum sl_status status = decode(o, answer, &batch, &is_cut, error);
    *out = NULL;
    if (status == SL_OK)
        status = check_order(o, &batch, error);
    if (status != SL_OK)
        return status;
    struct sl_page *page = calloc(1, sizeof(*page));
    if (!page)
        sl_die("out of memory: a page");
    page->arena = sl_arena_new(ARENA_BYTES);
    page->is_cut = is_cut;
    page->records = sl_arena_alloc(page->arena, (batch.n + 1) * sizeof(*page->records));
    sl_buffer_init(&page->text, TEXT_BYTES);
    status = add_all(page, o, &batch, error);
    if (status == SL_OK && o->needs_records)
        status = decode_delivered(page, o, error);
    if (batch.n)
        page->last_id = sl_arena_copy(
            page->arena, sl_record_text(sl_batch_record(&batch, batch.n - 1), SL_FIELD_IDENTIFIER));
    page->bytes = sizeof(*page) + sl_arena_used(page->arena) + page->text.room;
    if (status == SL_OK)
        *out = page;
    else
        sl_page_destroy(page);
    return status;
}
