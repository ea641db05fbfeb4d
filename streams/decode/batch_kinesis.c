/* Kinesis records: the change is in their data, as base64. */
#include "base/base64.h"
#include "streams/decode/batch_private.h"

#include <stdio.h>

/* The bytes of `data` at the end of the batch's decoded data, followed by the record's identifier with a
 * quote. The payload's size is room enough for all: four letters make three bytes. */
static bool unwrap(struct sl_decoder *d, const struct sl_draft *outer, struct sl_span *data,
                   const char **identifier)
{
    struct sl_span text = sl_decode_resolved(d, outer->data), sequence = outer->outer_sequence.inner;
    if (!d->data)
        d->data = sl_arena_alloc(d->batch->arena, d->batch->payload.len);
    char *to = d->data + d->data_len;
    if (!sl_base64_decode(text, (unsigned char *)to))
        return false;
    *data = sl_span(to, sl_base64_decoded_bytes(text));
    char *after = to + data->len;
    memcpy(after, sequence.ptr, sequence.len);
    after[sequence.len] = '"';
    *identifier = after;
    d->data_len += data->len + sequence.len + 1;
    return true;
}

/* The change was read with a scan of its own; its fault becomes one of the outer record. */
static const char *inner_fault(struct sl_decoder *d, const struct sl_draft *outer, struct sl_span data,
                               const struct sl_json_scan *inner)
{
    char why[100];
    bool is_json = inner->kind != SL_FAULT_JSON;
    enum sl_fault kind = is_json                 ? (enum sl_fault)inner->kind
                         : sl_decode_is_first(d) ? SL_FAULT_EVENT
                                                 : SL_FAULT_RECORD;
    snprintf(why, sizeof(why), "%s", inner->why); /* it may be d->why itself */
    snprintf(d->why, sizeof(d->why), "%s byte %zu: %s",
             is_json ? "in its data," : "its data is not JSON:", (size_t)(inner->at - data.ptr), why);
    return sl_decode_fault(&d->scan, outer->data.inner.ptr, kind, d->why);
}

static const char *read_change(struct sl_decoder *d, const char *p, struct sl_draft *draft)
{
    draft->raw.ptr = p;
    if (p < d->scan.end && *p != '{')
        return sl_decode_foreign(d, draft);
    p = sl_decode_draft(d, p, false, draft);
    if (!p)
        return NULL;
    if (sl_json_space(p, d->scan.end) != d->scan.end)
        return sl_json_fault(&d->scan, p, "more text after the value");
    return draft->has_change ? sl_decode_add(d, draft, p) : sl_decode_foreign(d, draft);
}

static bool is_sequence(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len > 0;
}

const char *sl_decode_kinesis(struct sl_decoder *d, const struct sl_draft *outer, const char *next)
{
    struct sl_draft draft = {.region = outer->region, .arn = outer->arn, .has_record_format = true};
    struct sl_span data;
    if (!is_sequence(outer->outer_sequence.inner))
        return sl_decode_fault(&d->scan, outer->raw.ptr, SL_FAULT_RECORD,
                               "kinesis.sequenceNumber is not a decimal number");
    if (!outer->data.inner.ptr || !unwrap(d, outer, &data, &draft.identifier))
        return sl_decode_fault(&d->scan, outer->raw.ptr, SL_FAULT_RECORD, "kinesis.data is not base64");
    const struct sl_json_scan outer_scan = d->scan;
    const char *outer_base = d->base;
    d->scan = (struct sl_json_scan){.end = sl_span_end(data)};
    d->base = d->data;
    const char *begin = sl_json_space(data.ptr, d->scan.end);
    bool good = read_change(d, begin, &draft);
    if (!good && d->scan.kind != SL_FAULT_JSON)
        sl_decode_prefer_json(&d->scan, begin);
    const struct sl_json_scan inner_scan = d->scan;
    d->scan = outer_scan;
    d->base = outer_base;
    return good ? next : inner_fault(d, outer, data, &inner_scan);
}
