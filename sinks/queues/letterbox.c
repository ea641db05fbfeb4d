/* What a drain asks SQS and Lambda for. */
#include "sinks/queues/letterbox.h"

#include "aws/mappings.h"
#include "base/span.h"
#include "sinks/queues/inbox.h"

#include <stdio.h>
#include <stdlib.h>

struct sl_letterbox {
    struct sl_sinks *sinks;
    char *queue;
    struct sl_inbox *inbox;
    struct sl_mappings *mappings; /* NULL: not asked yet */
};

enum sl_status sl_letterbox_open(struct sl_sinks *sinks, struct sl_span queue, struct sl_letterbox **out,
                                 struct sl_error *error)
{
    struct sl_letterbox *box = calloc(1, sizeof(*box));
    char *url = NULL;
    if (!box || !(box->queue = strndup(queue.ptr, queue.len)) || asprintf(&url, "sqs:%s", box->queue) < 0)
        sl_die("out of memory: a queue of letters");
    box->sinks = sinks;
    *out = box;
    enum sl_status status = sl_inbox_open(sinks, sl_span_str(url), &box->inbox, error);
    free(url);
    if (status == SL_OK)
        return SL_OK;
    sl_letterbox_close(box);
    *out = NULL;
    return status;
}

void sl_letterbox_close(struct sl_letterbox *box)
{
    if (!box)
        return;
    sl_mappings_close(box->mappings);
    sl_inbox_close(box->inbox);
    free(box->queue);
    free(box);
}

bool sl_letterbox_is_of(const struct sl_letterbox *box, struct sl_span queue)
{
    return sl_span_is(queue, box->queue);
}

void sl_letterbox_hide(struct sl_letterbox *box, struct sl_span receipt, int64_t seconds,
                       const struct sl_call *call)
{
    const char *text = sl_arena_copy(call->arena, receipt);
    struct sl_result result;
    sl_inbox_hide(box->inbox, &text, &seconds, 1, &result, call);
    if (result.status != SL_OK && box->sinks->log)
        sl_log(box->sinks->log, SL_WARN, "a letter could not be hidden, and will be received sooner: %s: %s",
               result.code, result.text);
}

struct found {
    size_t n, without;
    char uuid[64];
};

static enum sl_status look(void *arg, const json_t *mapping, struct sl_error *error)
{
    struct found *found = arg;
    const json_t *types = json_object_get(mapping, "FunctionResponseTypes"), *type;
    bool reports = false;
    size_t i;
    (void)error;
    json_array_foreach((json_t *)(uintptr_t)types, i, type)
    {
        reports = reports ||
                  (json_is_string(type) && strcmp(json_string_value(type), "ReportBatchItemFailures") == 0);
    }
    found->n++;
    found->without += !reports;
    if (!reports)
        snprintf(found->uuid, sizeof(found->uuid), "%s", sl_mapping_text(mapping, "UUID"));
    return SL_OK;
}

enum sl_status sl_letterbox_check_mapping(struct sl_letterbox *box, const char *function,
                                          const struct sl_call *call, struct sl_error *error)
{
    struct found found = {.n = 0};
    enum sl_status status = SL_OK;
    if (!box->mappings)
        status = sl_mappings_open(sl_sinks_aws(box->sinks), NULL, NULL, &box->mappings, error);
    if (status == SL_OK)
        status = sl_mappings_list(box->mappings, function, box->queue, call, look, &found, error);
    if (status != SL_OK || !found.without)
        return status;
    return sl_fail(
        error, SL_REJECT, "NoItemFailures",
        "the event source mapping %s of %s has no ReportBatchItemFailures, so that any answer would delete "
        "letters that are not applied: set FunctionResponseTypes to it",
        found.uuid, box->queue);
}
