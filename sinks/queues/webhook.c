/* The port of a webhook: opening, closing, and one apply. */
#include "sinks/queues/webhook_private.h"

#include <stdlib.h>

#define ARENA_BYTES 4096

static void apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                  struct sl_result *results, const struct sl_call *call)
{
    struct sl_webhook *webhook = (struct sl_webhook *)port;
    if (n == 0)
        return;
    sl_contrast_begin(&webhook->contrast);
    sl_webhook_run(webhook, messages, n, results, call);
    sl_arena_reset(webhook->aws->scratch);
}

static void clean_up_slot(struct sl_webhook_slot *slot)
{
    if (!slot->arena)
        return;
    sl_http_exchange_clean_up(&slot->exchange);
    sl_buffer_clean_up(&slot->text);
    sl_arena_destroy(slot->arena);
}

static void close_port(struct sl_queue_port *port)
{
    struct sl_webhook *webhook = (struct sl_webhook *)port;
    for (size_t i = 0; i < SL_WEBHOOK_IN_FLIGHT; i++)
        clean_up_slot(&webhook->slots[i]);
    for (size_t i = 0; i < SL_WEBHOOK_KEYS; i++)
        sl_sha256_key_clean_up(&webhook->hmacs[i]);
    sl_arena_destroy(webhook->arena);
    free(webhook);
}

enum sl_status sl_webhook_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error)
{
    struct sl_webhook *webhook = calloc(1, sizeof(*webhook));
    if (!webhook)
        sl_die("out of memory: a webhook");
    webhook->arena = sl_arena_new(ARENA_BYTES);
    sl_arena_keep_secret(webhook->arena);
    webhook->aws = sl_sinks_aws(sinks);
    sl_retry_bucket_init(&webhook->bucket);
    webhook->port =
        (struct sl_queue_port){.size = sizeof(webhook->port), .apply = apply, .close = close_port};
    if (sl_webhook_read(webhook, url, sinks, error) != SL_OK) {
        close_port(&webhook->port);
        return SL_FATAL;
    }
    webhook->aws->has_tls = webhook->aws->has_tls || webhook->pace.is_alone;
    webhook->port.max_message_bytes = webhook->max_bytes;
    *out = &webhook->port;
    return SL_OK;
}
