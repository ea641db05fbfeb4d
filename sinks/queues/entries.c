/* What the sinks whose answers list outcomes by place share. */
#include "sinks/queues/entries.h"

#include "aws/answer.h"
#include "base/base64.h"
#include "sinks/name.h"

#include <stdio.h>

const struct sl_queue_code sl_entries_stream_codes[] = {
    {"ProvisionedThroughputExceededException", false, SL_CODE_THROTTLE, SL_RETRY},
    {"InternalFailure", false, SL_CODE_TRANSIENT, SL_RETRY},
    {"ServiceUnavailable", true, SL_CODE_THROTTLE, SL_RETRY},
    {.code = NULL},
};

static bool read_entry(struct sl_queue_batch *batch, size_t i, struct sl_span entry, const char *id,
                       size_t *failed)
{
    const struct sl_queue_refusal refusal = {.code = sl_queue_text(batch, entry, "ErrorCode"),
                                             .message = sl_queue_text(batch, entry, "ErrorMessage"),
                                             .is_by_place = true};
    bool has_id = sl_answer_text(entry, id).len > 0;
    if (has_id == (refusal.code.len > 0))
        return false;
    if (has_id) {
        sl_queue_taken(batch, i);
    } else {
        sl_queue_refused(batch, i, &refusal);
        ++*failed;
    }
    return true;
}

/* Whether the answer's count of failed entries, if it has one, is `failed`. */
static bool agrees(struct sl_span answer, const char *name, size_t failed)
{
    char text[24];
    snprintf(text, sizeof(text), "%zu", failed);
    struct sl_span said = sl_json_walk_member(answer, sl_span_str(name));
    return !said.ptr || sl_span_is(said, text);
}

bool sl_entries_read(struct sl_queue_batch *batch, const struct sl_job *job,
                     const struct sl_entries_answer *is)
{
    struct sl_span answer, entry;
    size_t n = 0, failed = 0;
    if (!sl_answer_object(job, &answer))
        return false;
    struct sl_json_walk walk = sl_json_walk(sl_answer_container(answer, is->list, '['));
    while (sl_json_walk_next(&walk, NULL, &entry))
        if (!read_entry(batch, n++, entry, is->id, &failed))
            return false;
    return n == sl_queue_entries(batch) && agrees(answer, is->count, failed);
}

void sl_entries_add_data(struct sl_buffer *out, struct sl_span bytes, bool newline)
{
    size_t whole = newline ? bytes.len / 3 * 3 : bytes.len; /* the newline shares the last group */
    size_t n = bytes.len - whole;
    char tail[3];
    sl_buffer_add_char(out, '"');
    char *end = sl_buffer_reserve(out, (bytes.len + 3) / 3 * 4);
    if (!end)
        return;
    size_t written = sl_base64_encode_to(sl_span(bytes.ptr, whole), end);
    if (newline) {
        if (n)
            memcpy(tail, bytes.ptr + whole, n);
        tail[n++] = '\n';
        written += sl_base64_encode_to(sl_span(tail, n), end + written);
    }
    out->len += written;
    sl_buffer_add_char(out, '"');
}

enum sl_status sl_entries_fill_stream(struct sl_queue *queue, const struct sl_url *url, const char *word,
                                      size_t max_name, struct sl_error *error)
{
    struct sl_span name = url->rest, prefix = sl_span_str(word);
    if (sl_span_starts(name, SL_LIT("arn:"))) {
        name = sl_arn_part(name, 5);
        name = sl_span_starts(name, prefix) ? sl_span_from(name, prefix.len) : sl_span(NULL, 0);
        queue->address = sl_arena_copy(queue->arena, url->rest);
    }
    if (!sl_name_is_valid(name, "_.-", max_name))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: write a stream's name (1 to %zu letters, digits, '_', '.', '-') or its ARN",
            SL_ARG(url->shown), max_name);
    queue->name = sl_arena_copy(queue->arena, name);
    return SL_OK;
}
