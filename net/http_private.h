/* One exchange on its way through libcurl: what http.c, which drives all of them, and http_request.c, which
 * writes the request, know of it. */
#ifndef SL_NET_HTTP_PRIVATE_H
#define SL_NET_HTTP_PRIVATE_H

#include "net/http.h"
#include "net/idle.h"
#include "net/roots.h"

#include <curl/curl.h>

/* Of a body that libcurl sends together with the head, in one packet where it fits: its
 * MAX_INITIAL_POST_SIZE. One that consists of several pieces is joined for it. */
#define SL_HTTP_JOINED_BYTES (64u * 1024 - 1)
/* Header lines that are handed over as one; longer ones go one by one. */
#define SL_HTTP_LINES_BYTES (32u * 1024)

/* An answer up to here is not counted, and its memory is kept for the next exchange. */
#define SL_HTTP_SMALL_BYTES (64u * 1024)

/* The memory of larger answers. It is counted from their first byte until their owner has used them
 * (sl_http_exchange_forget). When there is no more of it, receiving is paused, and resumed in the same order;
 * but one always goes on, also beyond `most`. */
struct sl_http_hold {
    size_t most, held;
    size_t receiving; /* exchanges that are counted, run and are not paused */
    struct sl_http_transfer *paused;
};

/* A libcurl easy handle and what its callbacks need; reused from one exchange to the next. */
struct sl_http_transfer {
    struct sl_http *http;
    struct sl_http_transfer *next; /* in the list of free ones, or of paused ones */
    struct sl_http_exchange *exchange;
    CURL *easy;
    CURLU *place; /* the URL as libcurl understands it, which is kept: most requests have the last one's */
    struct sl_buffer url; /* its text */
    /* libcurl reads the list, and neither changes nor frees it: nothing is copied into nodes of its own. */
    struct curl_slist lines[SL_HTTP_HEADERS + 2];
    struct sl_buffer line; /* header lines in one node */
    struct sl_buffer body; /* a small one that consists of several pieces */
    size_t part, offset;   /* what of the body was read */
    bool is_receiving;     /* it is one of sl_http_hold's `receiving` */
    size_t wanted_bytes;   /* while it is paused */
    bool head_complete;
    bool is_begun; /* a connection stood, tunnel and TLS included, and the request was to go out on it */
    const struct sl_address_rules *rules; /* NULL: any address will do */
    const char *forbidden; /* what an address was that the rules do not allow; NULL: none was */
    bool is_allowed;       /* another was allowed */
    char problem[CURL_ERROR_SIZE];
    char roots_problem[160]; /* why the roots cannot be read; "": they can */
};

struct sl_http {
    struct sl_http_options options;
    CURLM *multi;
    struct sl_http_transfer *spare;
    CURLSH *share; /* TLS sessions: they outlive the connections */
    struct sl_roots roots;
    const char *ca_bundle; /* NULL: none was found */
    int64_t last_used_ms;
    struct sl_idle idle;
    struct sl_http_hold hold;
    size_t running;
    uint64_t connections;
};

/* Whether `n` more bytes of the body may be taken now; else the transfer is to be paused. */
bool sl_http_hold(struct sl_http_transfer *t, size_t n);

/* Takes one that is paused out of the list, when there is memory for it; NULL: no more. */
struct sl_http_transfer *sl_http_next_to_resume(struct sl_http *http);

/* It receives no more; its answer stays counted. */
void sl_http_hold_end(struct sl_http_transfer *t);

/* The answer's memory is free, or of no concern any more. */
void sl_http_give_back(struct sl_http_exchange *exchange);

/* Sets what of a request only the exchange says: header lines and body. */
void sl_http_write_request(struct sl_http_transfer *t);

/* Whether the exchange's header lines can be written; else it is SL_HTTP_UNSENDABLE, with its problem. */
bool sl_http_is_sendable(struct sl_http_exchange *exchange);

/* libcurl's callbacks for a body in pieces; the argument is the transfer. */
size_t sl_http_on_read(char *out, size_t size, size_t n, void *arg);
int sl_http_on_seek(void *arg, curl_off_t offset, int origin);

#endif
