/* HTTP exchanges, many at once, on one libcurl multi handle with kept-alive connections.
 *
 * An exchange is started, and its `outcome` says when it is over; sl_http_wait drives all that run. Bodies
 * are sent from the pieces that they consist of; small ones are joined, so that they go out with the head.
 * The first exchange initializes libcurl. HTTP/1.1, without redirects, decompression or cookies. When the
 * peer has closed an idle connection, libcurl opens another without an error. One thread.
 *
 * The memory of answers is bounded, however many come at once and however long they are. Where it is used up,
 * exchanges stop to receive (their servers wait) until their owner has used another answer. One always goes
 * on: a single answer may be longer than the bound. The time that an exchange is stopped so is part of its
 * timeout, and is not taken for a server that does not answer. */
#ifndef SL_NET_HTTP_H
#define SL_NET_HTTP_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/vars.h"
#include "net/address.h"

#define SL_HTTP_HEADERS 32 /* header lines of one request */

/* An answer that has no items in it: a longer one is not the service's. */
#define SL_HTTP_ANSWER_BYTES (1024u * 1024)
#define SL_HTTP_HEAD_BYTES   (64u * 1024)
/* Of answers together, in a function of 128 MB. */
#define SL_HTTP_HELD_BYTES (32u * 1024 * 1024)

enum sl_http_outcome {
    SL_HTTP_IDLE,
    SL_HTTP_RUNNING,
    SL_HTTP_ANSWERED,   /* a whole answer with its status */
    SL_HTTP_NOT_SENT,   /* no byte of the request left this process */
    SL_HTTP_BROKEN,     /* it may have arrived, or not */
    SL_HTTP_UNSENDABLE, /* a header holds a control byte, so nothing was sent, and never will be */
    SL_HTTP_UNTRUSTED,  /* TLS: the peer's certificate is not trusted, or the roots cannot be read */
    SL_HTTP_FORBIDDEN,  /* every address of the host is one that `rules` do not allow; nothing was sent */
};

struct sl_http_exchange {
    /* The request. The caller changes nothing of it until the exchange is over. */
    const char *method;
    const char *url;
    const char *headers[SL_HTTP_HEADERS]; /* "name: value" */
    size_t n_headers;
    const struct sl_span *parts; /* the body, one piece after another */
    size_t n_parts;
    size_t body_bytes;          /* of all pieces */
    int64_t timeout_ms;         /* for all of it; at least 1 */
    int64_t connect_timeout_ms; /* 0: the default */
    bool is_private;            /* never through a proxy: it asks this machine or its host for credentials, or
                                   its address is checked */
    const struct sl_address_rules *rules; /* of the address that is connected to, unless it is a proxy's;
                                             NULL: any */
    bool is_secret;                       /* its answer holds secrets: all memory of it is wiped */
    size_t expected_bytes;                /* of the answer's body, as others were; 0: few */
    size_t answer_bytes;                  /* a longer answer is SL_HTTP_BROKEN; 0: SL_HTTP_ANSWER_BYTES */

    /* The answer. */
    enum sl_http_outcome outcome;
    bool timed_out;
    bool is_private_place; /* SL_HTTP_FORBIDDEN: the address was one of a private network */
    int status;
    struct sl_buffer head; /* the answer's header lines */
    struct sl_buffer body;
    char problem[160]; /* when it is not ANSWERED, why: one clause, no secrets; FORBIDDEN: what the address is
                        */

    /* Private. */
    struct sl_http_transfer *transfer; /* NULL unless running */
    struct sl_http_hold *hold;         /* where the answer's memory is counted; NULL: it is not */
    size_t held_bytes;
};

struct sl_http_options {
    struct sl_clock *clock;
    const struct sl_vars *vars; /* AWS_CA_BUNDLE, HTTPS_PROXY, http_proxy, NO_PROXY */
    const char *ca_bundle;      /* NULL: AWS_CA_BUNDLE, then the known places */
    size_t held_bytes;          /* of all answers at once; 0: SL_HTTP_HELD_BYTES */
};

struct sl_http *sl_http_new(const struct sl_http_options *options);
/* NULL is fine; nothing may be running, and each answer was forgotten or cleaned up. */
void sl_http_destroy(struct sl_http *http);

/* Does now what the first exchange over TLS would do at its beginning: initializes libcurl and reads the
 * roots. Roots that cannot be read are the exchange's failure, not this one's. */
void sl_http_prepare(struct sl_http *http);

/* The file of roots that its exchanges trust; NULL: none was found. For who speaks TLS without it. */
const char *sl_http_bundle(const struct sl_http *http);

void sl_http_exchange_init(struct sl_http_exchange *exchange);
void sl_http_exchange_clean_up(struct sl_http_exchange *exchange);

/* The answer was used: wipes one that holds secrets, and frees a large one's memory, which counts until
 * then. */
void sl_http_exchange_forget(struct sl_http_exchange *exchange);

/* Drops the earlier answer. The exchange runs afterwards, even when it is certain to fail; but one that is
 * SL_HTTP_UNSENDABLE is over at once. */
void sl_http_start(struct sl_http *http, struct sl_http_exchange *exchange);

/* Drives everything that runs until an exchange is over, for `timeout_ms` at most. Returns how many still
 * run. */
size_t sl_http_wait(struct sl_http *http, int64_t timeout_ms);

/* The same, and ends also when `bell` (-1: none) can be read. It waits for the bell even when nothing runs.
 */
size_t sl_http_wait_or(struct sl_http *http, int64_t timeout_ms, int bell);

/* Breaks the exchange off: nobody waits for it any more. It is SL_HTTP_BROKEN. */
void sl_http_abandon(struct sl_http *http, struct sl_http_exchange *exchange);

/* The answer's header, absent when the answer has none of this name; borrowed from `head`. */
struct sl_span sl_http_header(const struct sl_http_exchange *exchange, const char *name);

/* Seconds since 1970 of a date as headers have it ("Fri, 20 Nov 2026 21:04:00 GMT"); -1 when it is not one.
 */
int64_t sl_http_date(struct sl_span text);

/* Connections opened so far: for the tests and the bench. */
uint64_t sl_http_connections(const struct sl_http *http);

#endif
