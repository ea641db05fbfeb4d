/* HTTP exchanges, many at once, on one libcurl multi handle with kept-alive connections.
 *
 * An exchange is started, and is over when its `outcome` says so; sl_http_wait drives all that run. Bodies
 * are sent from the pieces they lie in: none is copied or joined here. libcurl is set up with the first
 * exchange. HTTP/1.1, no redirects, no decompression, no cookies. An idle connection that the peer had closed
 * is replaced by libcurl without an error. One thread. */
#ifndef SL_SINKS_AWS_HTTP_H
#define SL_SINKS_AWS_HTTP_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/vars.h"

#define SL_HTTP_HEADERS 32 /* header lines of one request */

/* BatchGetItem answers with 16 MB of items at most; escaped control characters make JSON of them up to 6
 * times that, but then in answers of one item of 400 KB. */
#define SL_HTTP_ANSWER_BYTES (64u * 1024 * 1024)
#define SL_HTTP_HEAD_BYTES   (64u * 1024)

enum sl_http_outcome {
    SL_HTTP_IDLE,
    SL_HTTP_RUNNING,
    SL_HTTP_ANSWERED,  /* a whole answer with its status */
    SL_HTTP_NOT_SENT,  /* no byte of the request left this process */
    SL_HTTP_BROKEN,    /* it may have arrived, or not */
    SL_HTTP_UNTRUSTED, /* TLS: the peer's certificate is not to be trusted, or the roots cannot be read */
};

struct sl_http_exchange {
    /* What is asked. All of it stays as it is until the exchange is over. */
    const char *method;
    const char *url;
    const char *headers[SL_HTTP_HEADERS]; /* "name: value" */
    size_t n_headers;
    const struct sl_span *parts; /* the body, one piece after another */
    size_t n_parts;
    size_t body_bytes;          /* of all pieces */
    int64_t timeout_ms;         /* for all of it; at least 1 */
    int64_t connect_timeout_ms; /* 0: the default */

    /* What came of it. */
    enum sl_http_outcome outcome;
    bool timed_out;
    int status;
    struct sl_buffer head; /* the answer's header lines */
    struct sl_buffer body;
    char problem[160]; /* of what was not ANSWERED: one clause, no secrets */

    struct sl_http_transfer *transfer; /* private; NULL unless running */
};

struct sl_http_options {
    struct sl_clock *clock;
    const struct sl_vars *vars; /* AWS_CA_BUNDLE, HTTPS_PROXY, http_proxy, NO_PROXY */
    const char *ca_bundle;      /* NULL: AWS_CA_BUNDLE, then the known places */
};

struct sl_http *sl_http_new(const struct sl_http_options *options);
void sl_http_destroy(struct sl_http *http); /* NULL is fine; nothing may be running */

void sl_http_exchange_init(struct sl_http_exchange *exchange);
void sl_http_exchange_clean_up(struct sl_http_exchange *exchange);

/* The earlier answer is forgotten. Not over yet, even when it can be seen to fail. */
void sl_http_start(struct sl_http *http, struct sl_http_exchange *exchange);

/* Drives everything that runs until something is over, at most `timeout_ms`. Returns how many still run. */
size_t sl_http_wait(struct sl_http *http, int64_t timeout_ms);

/* The answer's header, absent when it is not there; borrowed from `head`. */
struct sl_span sl_http_header(const struct sl_http_exchange *exchange, const char *name);

/* Connections opened so far: for the tests and the bench. */
uint64_t sl_http_connections(const struct sl_http *http);

#endif
