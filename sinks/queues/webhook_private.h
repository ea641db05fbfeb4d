/* Webhooks: a queue that is somebody's HTTPS server, https://host/path?query#options.
 *
 * What is before the '#' is requested as it is; the options after it never leave this process (a URL's
 * fragment is the client's own). docs/SINKS.md is for users.
 *
 * - POST of one message, or of a JSON array of up to `batch` messages and `max_bytes` bytes.
 * - Signed as Standard Webhooks 1.0 say: HMAC-SHA256 over `id.timestamp.body`, with one secret or, while they
 *   rotate, two. The id follows from the messages' `dedupe` (without one, from the body), so it is the same
 *   after redelivery; timestamp and signature are made anew for each attempt.
 * - A complete answer with a 2xx is success; its body is read and means nothing, here and in errors.
 * - Messages of one `order` go one after the other, others in parallel. An array holds those of one order in
 *   their order, and is taken or refused as a whole.
 * - The address that the host's name leads to is checked when the socket is opened (net/address.h).
 *   Redirects are not followed.
 *
 * What its files share here: webhook_target.c reads the target; webhook_run.c chooses what is sent when,
 * writes and signs it, and says what an answer means. */
#ifndef SL_SINKS_QUEUES_WEBHOOK_PRIVATE_H
#define SL_SINKS_QUEUES_WEBHOOK_PRIVATE_H

#include "aws/aws.h"
#include "aws/contrast.h"
#include "base/sha256.h"
#include "net/pace.h"
#include "net/retry.h"
#include "sinks/services.h"

#define SL_WEBHOOK_KEYS       2  /* while they rotate: the new one and the old one */
#define SL_WEBHOOK_LINES      16 /* headers from options */
#define SL_WEBHOOK_TRACE      2
#define SL_WEBHOOK_REJECTS    8
#define SL_WEBHOOK_IN_FLIGHT  SL_PACE_MAX /* at most */
#define SL_WEBHOOK_BYTES      (1024u * 1024)
#define SL_WEBHOOK_MAX_BYTES  (16u * 1024 * 1024)
#define SL_WEBHOOK_TIMEOUT_MS 15000
#define SL_WEBHOOK_ATTEMPTS   3 /* the SDKs' number */
#define SL_WEBHOOK_BASE_MS    50
/* Of the text in webhook-id: a plain `dedupe` or a digest, and the target's own word in front. */
#define SL_WEBHOOK_ID_BYTES 160
/* A receiver that asks for more gets its next request after this time. */
#define SL_WEBHOOK_PAUSE_MS (5 * 60 * 1000)

struct sl_webhook;

enum sl_webhook_state { SL_WEBHOOK_FREE, SL_WEBHOOK_WAITING, SL_WEBHOOK_FLYING };

/* One request with its attempts. Slots live as long as the port: their buffers are used again. */
struct sl_webhook_slot {
    enum sl_webhook_state state;
    size_t *entries; /* numbers of messages, in their order; in the apply's scratch */
    size_t n;
    char id[SL_WEBHOOK_ID_BYTES];
    struct sl_buffer text; /* "id.timestamp.body": what is signed */
    size_t body_at;
    struct sl_span part; /* the body, for the exchange */
    bool is_json;
    struct sl_span trace[SL_WEBHOOK_TRACE]; /* traceparent, tracestate; absent: the request has none */
    unsigned attempts;
    int last_cost;
    int64_t due_ms;
    bool was_sent;
    struct sl_arena *arena; /* of one attempt: header lines */
    uint64_t number;        /* of the request, for net/pace.h */
    struct sl_http_exchange exchange;
};

struct sl_webhook {
    struct sl_queue_port port;
    struct sl_aws *aws;     /* the process's connections, clock and digests: nothing of AWS is asked */
    struct sl_arena *arena; /* as long as the port; holds secrets */
    const char *url;        /* without the options */
    const char *name;       /* "https://host:port": a path may be a secret */
    struct sl_address_rules rules;
    bool through_proxy;
    const char *lines[SL_WEBHOOK_LINES]; /* "name: value" */
    size_t n_lines;
    bool has_type;  /* one of them is content-type */
    bool has_trace; /* one of them is traceparent or tracestate */
    /* Never shown: headers', keys as given and without their prefix, path and query. */
    struct sl_span secrets[SL_WEBHOOK_LINES + 2 * SL_WEBHOOK_KEYS + 1];
    size_t n_secrets;
    struct sl_span keys[SL_WEBHOOK_KEYS]; /* decoded */
    size_t n_keys;
    struct sl_sha256_key hmacs[SL_WEBHOOK_KEYS];
    bool has_hmacs;
    const char *id; /* in front of ids, with its '_'; "" for none */
    size_t batch, max_bytes, in_flight;
    int64_t timeout_ms;
    unsigned attempts;
    struct sl_span rejects[SL_WEBHOOK_REJECTS];
    size_t n_rejects;

    /* What was learned, from one apply to the next. */
    struct sl_retry_bucket bucket;
    struct sl_pace pace; /* its cap is in_flight */
    struct sl_contrast contrast;
    int64_t paused_until_ms; /* the receiver asked for it (Retry-After) */
    struct sl_webhook_slot slots[SL_WEBHOOK_IN_FLIGHT];
};

/* ---- webhook_target.c ---- */

/* Fills in all that the target says. Errors name the host, never path, query or a secret. */
enum sl_status sl_webhook_read(struct sl_webhook *webhook, struct sl_span target,
                               const struct sl_sinks *sinks, struct sl_error *error) SL_MUST_USE;

/* ---- webhook_run.c ---- */

/* Sets a result for each of the messages. */
void sl_webhook_run(struct sl_webhook *webhook, const struct sl_message *messages, size_t n,
                    struct sl_result *results, const struct sl_call *call);

#endif
