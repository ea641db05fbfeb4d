/* Batches as Lambda would deliver them: what lambda_form.h does to a record, done to all of them. */
#include "live/source/lambda_batch.h"

#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "streams/record.h"

#define BATCH_BYTES ((size_t)UINT32_MAX) /* what sl_batch_decode takes */

/* ---- batches of DynamoDB Streams ---- */

static bool is_in_form(const struct sl_batch *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (!sl_lambda_form_is(sl_batch_record(in, i)))
            return false;
    return true;
}

static void free_buffer(void *arg)
{
    sl_buffer_clean_up(arg);
}

static enum sl_status rewrite(const struct sl_batch *in, const struct sl_lambda_form *form, size_t first,
                              struct sl_arena *arena, struct sl_batch *out, struct sl_error *error)
{
    struct sl_buffer *text = sl_arena_alloc(arena, sizeof(*text));
    sl_buffer_init(text, BATCH_BYTES);
    sl_arena_defer(arena, free_buffer, text);
    struct sl_arena *scratch = sl_arena_new(16 * 1024);
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < in->n && status == SL_OK; i++) {
        if (!sl_lambda_form_write(form, sl_batch_record(in, i), first + i, scratch, text))
            status = sl_fail(error, SL_REJECT, "NoKeys",
                             "record %zu is an item without keys: name the key attributes with --keys PK,SK",
                             form->before + i);
        sl_buffer_add_char(text, '\n');
        sl_arena_reset(scratch);
    }
    sl_arena_destroy(scratch);
    if (status == SL_OK && text->failed)
        return sl_fail(error, SL_REJECT, "TooLarge",
                       "has 4 GiB or more as Lambda would deliver it; split it");
    const struct sl_decode_options decoding = {.any_shape = true};
    return status == SL_OK ? sl_batch_decode(sl_buffer_span(text), arena, &decoding, out, error) : status;
}

/* ---- Kinesis ---- */

/* A record that is a view of decoded data, and not of the payload. */
static bool is_wrapped(const struct sl_batch *in, size_t i)
{
    const char *raw = sl_record_text(sl_batch_record(in, i), SL_FIELD_RAW).ptr;
    return raw < in->payload.ptr || raw >= sl_span_end(in->payload);
}

static struct sl_span compacted(struct sl_span json, struct sl_arena *arena)
{
    struct sl_buffer text;
    if (sl_lambda_form_is_compact(json))
        return json;
    sl_buffer_init_in(&text, arena, json.len);
    sl_json_add_compact(&text, json);
    return sl_buffer_span(&text);
}

/* The outer records, in their order: of an event, an array, or lines. */
static void take_outer(const struct sl_batch *in, struct sl_arena *arena, struct sl_span *texts)
{
    struct sl_span whole = in->payload, value;
    if (sl_span_starts(whole, SL_LIT("\xEF\xBB\xBF")))
        whole = sl_span_from(whole, 3);
    if (in->shape == SL_SHAPE_LINES) {
        const char *end = sl_span_end(whole), *p = sl_json_space(whole.ptr, end);
        for (size_t i = 0; i < in->n; i++) {
            const char *next = sl_json_value_end(p, end);
            texts[i] = compacted(sl_span(p, (size_t)(next - p)), arena);
            p = sl_json_space(next, end);
        }
        return;
    }
    struct sl_json_walk walk =
        sl_json_walk(in->shape == SL_SHAPE_ARRAY ? whole : sl_json_find(whole, "Records"));
    for (size_t i = 0; i < in->n && sl_json_walk_next(&walk, NULL, &value); i++)
        texts[i] = compacted(value, arena);
}

/* ---- batches ---- */

bool sl_lambda_batch_take(const struct sl_batch *in, struct sl_lambda_batch *out)
{
    *out = (struct sl_lambda_batch){.batch = *in};
    for (size_t i = 0; i < in->n; i++)
        if (is_wrapped(in, i))
            return false;
    return is_in_form(in);
}

enum sl_status sl_lambda_batch_make(const struct sl_batch *in, const struct sl_lambda_form *form,
                                    size_t first, struct sl_arena *arena, struct sl_lambda_batch *out,
                                    struct sl_error *error)
{
    *out = (struct sl_lambda_batch){.batch = *in, .is_kinesis = in->n && is_wrapped(in, 0)};
    for (size_t i = 1; i < in->n; i++)
        if (is_wrapped(in, i) != out->is_kinesis)
            return sl_fail(error, SL_REJECT, "TwoSources",
                           "one stream cannot hold records of both DynamoDB Streams and Kinesis (record %zu)",
                           form->before + i);
    if (out->is_kinesis) {
        out->texts = sl_arena_zalloc(arena, in->n * sizeof(*out->texts));
        take_outer(in, arena, out->texts);
        return SL_OK;
    }
    return is_in_form(in) ? SL_OK : rewrite(in, form, first, arena, &out->batch, error);
}

struct sl_span sl_lambda_batch_text(const struct sl_lambda_batch *batch, size_t i)
{
    return batch->texts ? batch->texts[i] : sl_record_text(sl_batch_record(&batch->batch, i), SL_FIELD_RAW);
}
