/* Webhooks: a queue that is somebody's HTTPS server, https://host/path?query#options.
 *
 * What is before the '#' is requested as it is; the options after it never leave this process (a URL's
 * fragment is the client's own). docs/WEBHOOKS.md is for users.
 *
 * - POST of one message, or of a JSON array of up to `batch` messages and `max_bytes` bytes.
 * - Signed as Standard Webhooks 1.0 say: HMAC-SHA256 over `id.timestamp.body`, with one secret or, while they
 *   rotate, two. The id follows from the messages' `dedupe` (without one, from the body), so it is the same
 *   after redelivery; timestamp and signature are made anew for each attempt.
 * - A complete answer with a 2xx is success; its body is read and means nothing, here and in errors.
 * - Messages of one `order` go one after the other, others in parallel. An array holds those of one order in
 *   their order, and is taken or refused as a whole.
 * - The address that the host's name leads to is checked when the socket is opened (net/address.h).
 *   Redirects are not followed. */
#ifndef SL_SINKS_QUEUES_WEBHOOK_H
#define SL_SINKS_QUEUES_WEBHOOK_H

#include "sinks/target.h"

/* For https: and http:. Nothing is sent. SL_FATAL when the target is wrong; then nothing is left open. */
enum sl_status sl_webhook_open(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error) SL_MUST_USE;

#endif
