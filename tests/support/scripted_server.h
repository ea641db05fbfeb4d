/* An HTTP server that misbehaves on demand, as no real service does.
 *
 * It listens on a free loopback port, keeps connections alive, and calls a function of the test for the
 * answer to each request. It keeps every request for the test. The function is called by one thread at a
 * time. */
#ifndef SL_TESTS_SUPPORT_SCRIPTED_SERVER_H
#define SL_TESTS_SUPPORT_SCRIPTED_SERVER_H

#include "base/span.h"

struct scripted_request {
    size_t number;                    /* from 0, in the order of arrival */
    const char *method, *path, *head; /* `head`: all header lines */
    struct sl_span body;
};

struct scripted_reply {
    int status;
    const char *headers; /* more lines, each with its "\r\n"; NULL: none */
    struct sl_span body;
    bool is_honest;   /* status, headers and body are what an honest service answers (honest.h) */
    bool with_crc;    /* adds x-amz-crc32 of the body */
    bool flip;        /* one bit of the body is wrong */
    bool chunked;     /* sent in chunks of 7 bytes */
    bool is_bare;     /* neither length nor chunks: the end of the connection is the end of the body */
    int64_t more;     /* added to the content-length */
    size_t cut;       /* after so many bytes of the answer the connection ends; 0: never */
    bool resets;      /* it ends with a reset, not with an orderly close */
    bool closes;      /* the connection ends after the answer, and no header announces it */
    unsigned byte_ms; /* the wait between any two bytes */
    size_t together;  /* it waits, and those that waited before go with it, until so many wait; 0: it goes */
};

typedef void (*scripted_fn)(void *arg, const struct scripted_request *request, struct scripted_reply *reply);

struct scripted_server;
struct scripted_server *scripted_server_start(scripted_fn answer, void *arg);
void scripted_server_stop(struct scripted_server *server);

/* "http://127.0.0.1:40123" */
const char *scripted_server_url(const struct scripted_server *server);

/* The next `times` requests end after `bytes` of theirs were read, by a reset. */
void scripted_server_reset_requests(struct scripted_server *server, size_t bytes, unsigned times);

/* Closes every connection that waits for its next request, and waits until that is done. */
void scripted_server_close_idle(struct scripted_server *server);

size_t scripted_server_requests(struct scripted_server *server);
size_t scripted_server_connections(struct scripted_server *server);
/* Borrowed until the server stops. */
const struct scripted_request *scripted_server_request(struct scripted_server *server, size_t i);

/* A header's value in a request's head, in any case; absent when it is not there. */
struct sl_span scripted_header(const struct scripted_request *request, const char *name);

#endif
