/* A Lambda Runtime API on a free loopback port, for one function process.
 *
 * It has the routes, headers, codes and states of the real one (docs/REPLAY.md): `next` waits without limit,
 * a second `next` before the answer serves the same event again, a wrong id is 400, a second answer 403, a
 * body of more than 6 MiB + 100 bytes 413. Single-threaded: the owner waits on the descriptor and calls
 * sl_server_run. */
#ifndef SL_LIVE_SANDBOX_SERVER_H
#define SL_LIVE_SANDBOX_SERVER_H

#include "base/buffer.h"

struct sl_server;

struct sl_server_event {
    const char *request_id, *function_arn, *trace_id;
    struct sl_span payload; /* borrowed until the answer, or until the server stops */
    int64_t timeout_ms;     /* from the moment at which the event is fetched */
    int64_t until_ms;       /* on the system clock's steady time: the deadline is no later; 0: no limit */
};

/* The state of the invocation. */
enum sl_server_state {
    SL_SERVER_STARTING, /* no `next` yet */
    SL_SERVER_IDLE,     /* waits for an event, or has not asked again since its last answer */
    SL_SERVER_OFFERED,  /* there is an event that was not fetched yet */
    SL_SERVER_RUNNING,  /* fetched */
    SL_SERVER_ANSWERED,
    SL_SERVER_FAILED,     /* a function error was posted, or the answer was too large */
    SL_SERVER_INIT_FAILED /* an init error was posted */
};

/* What a well-behaved runtime never does; counted since the start. */
struct sl_server_faults {
    unsigned second_answers; /* 403, or 400 with the id of the event before */
    unsigned wrong_ids;      /* 400 */
    unsigned refetched;      /* `next` without an answer */
    unsigned too_large;      /* 413 */
    unsigned unknown;        /* routes that do not exist */
};

enum sl_status sl_server_start(struct sl_server **out, struct sl_error *error) SL_MUST_USE;
void sl_server_stop(struct sl_server *server); /* NULL is fine */

unsigned sl_server_port(const struct sl_server *server);
int sl_server_fd(const struct sl_server *server); /* readable: call sl_server_run */
void sl_server_run(struct sl_server *server);

enum sl_server_state sl_server_state(const struct sl_server *server);
bool sl_server_is_waiting(const struct sl_server *server); /* for an event: a `next` is open */

/* Offers an event to the open `next`, or to the following one. */
void sl_server_offer(struct sl_server *server, const struct sl_server_event *event);

/* The deadline of the fetched event, on the system clock's steady time. */
int64_t sl_server_deadline_ms(const struct sl_server *server);

/* The body of the answer or error, in the states with one. Borrowed until the next offer. */
struct sl_span sl_server_body(const struct sl_server *server);

/* Forgets the event: it was answered, or given up. */
void sl_server_settle(struct sl_server *server);

struct sl_server_faults sl_server_faults(const struct sl_server *server);

#endif
