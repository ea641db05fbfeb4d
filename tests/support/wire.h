/* A server that plays a script: each request is answered with the next step's bytes, whatever it asks.
 *
 * For what no real server does on demand: broken transfers, wrong codes, missing headers. Runs in a
 * thread of its own on a free loopback port. */
#ifndef SL_TESTS_SUPPORT_WIRE_H
#define SL_TESTS_SUPPORT_WIRE_H

#include "base/span.h"

struct wire_step {
    const char *reply;
    size_t len;       /* 0: the whole text */
    bool close;       /* afterwards; else the connection is kept */
    bool close_early; /* before the request's body was read: no reply at all */
};

struct wire;

/* `steps` stays the caller's. After the last one, connections are closed without an answer. */
struct wire *wire_start(const struct wire_step *steps, size_t n);
void wire_stop(struct wire *w); /* joins the thread, frees everything */

const char *wire_address(const struct wire *w); /* "127.0.0.1:port" */
size_t wire_requests(struct wire *w);
size_t wire_connections(struct wire *w);
/* The whole request i: head and body. Borrowed until wire_stop. */
struct sl_span wire_request(struct wire *w, size_t i);

#endif
