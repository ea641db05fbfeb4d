/* Lambda's form of a record, recognized without taking the record apart. */
#include "base/scan.h"
#include "live/source/lambda_form_private.h"
#include "streams/record.h"

#include <string.h>

/* What is left of the record's text. */
struct quick {
    const char *p, *end;
};

static bool take(struct quick *q, struct sl_span text)
{
    bool is_there = (size_t)(q->end - q->p) >= text.len && memcmp(q->p, text.ptr, text.len) == 0;
    q->p += is_there ? text.len : 0;
    return is_there;
}

/* The name with its colon, then a string. */
static bool take_string(struct quick *q, struct sl_span name)
{
    bool escaped;
    if (!take(q, name) || q->p == q->end || *q->p != '"')
        return false;
    const char *after = sl_scan_string(q->p, q->end);
    q->p = after ? after : sl_json_string_end(q->p + 1, q->end, &escaped) + 1;
    return q->p < q->end;
}

/* The name with its colon, then a whole number of few digits. */
static bool take_number(struct quick *q, struct sl_span name, int64_t *out)
{
    if (!take(q, name))
        return false;
    const char *from = q->p;
    for (*out = 0; q->p < q->end && *q->p >= '0' && *q->p <= '9' && q->p - from < 16; q->p++)
        *out = 10 * *out + (*q->p - '0');
    return q->p > from && (*from != '0' || q->p == from + 1);
}

/* The name with its colon, then that image of the record, if it has one. */
static bool take_image(struct quick *q, const struct sl_record *r, enum sl_image image, struct sl_span name)
{
    struct sl_span raw = sl_record_image(r, image).raw;
    if (!raw.ptr)
        return true;
    if (!take(q, name) || q->p != raw.ptr)
        return false;
    q->p += raw.len;
    return true;
}

static bool take_change(struct quick *q, const struct sl_record *r)
{
    int64_t seconds, bytes;
    return take_number(q, SL_LIT(",\"dynamodb\":{\"ApproximateCreationDateTime\":"), &seconds) &&
           seconds == sl_record_created_ns(r) / 1000000000 && take(q, SL_LIT(",")) &&
           sl_record_image(r, SL_KEYS).raw.ptr && take_image(q, r, SL_KEYS, SL_LIT("\"Keys\":")) &&
           take_image(q, r, SL_NEW_IMAGE, SL_LIT(",\"NewImage\":")) &&
           take_image(q, r, SL_OLD_IMAGE, SL_LIT(",\"OldImage\":")) &&
           take_string(q, SL_LIT(",\"SequenceNumber\":")) &&
           take_number(q, SL_LIT(",\"SizeBytes\":"), &bytes) &&
           take_string(q, SL_LIT(",\"StreamViewType\":")) && take(q, SL_LIT("}"));
}

bool sl_lambda_form_quick(const struct sl_record *r)
{
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    struct quick q = {raw.ptr, sl_span_end(raw)};
    return take_string(&q, SL_LIT("{\"eventID\":")) && take_string(&q, SL_LIT(",\"eventName\":")) &&
           take_string(&q, SL_LIT(",\"eventVersion\":")) && take_string(&q, SL_LIT(",\"eventSource\":")) &&
           take_string(&q, SL_LIT(",\"awsRegion\":")) && take_change(&q, r) &&
           take_string(&q, SL_LIT(",\"eventSourceARN\":")) && take(&q, SL_LIT("}")) && q.p == q.end;
}
