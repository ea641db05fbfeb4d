/* A Runtime API for tests, and the process that asks it: what a test calls runs in a fork of the test, so
 * that crashes, signals, closed descriptors, workers and trials are real.
 *
 * The test answers each request itself, one after the other, with whatever bytes it likes; a request that it
 * does not answer waits. No thread: the server runs while the test waits for something. What does not happen
 * within a quarter of a minute fails the test.
 *
 * The process runs in a folder of its own, with an environment of its own: AWS_LAMBDA_RUNTIME_API is this
 * server; SLUICE_CONFIG, TMPDIR and DIR lie in that folder; SLUICE_HANDLER_PATH has the tests' plugins. */
#ifndef SL_TESTS_SUPPORT_RUNTIME_API_H
#define SL_TESTS_SUPPORT_RUNTIME_API_H

#include "base/span.h"

#include <sys/types.h>

#define API_NEXT       "GET /2018-06-01/runtime/invocation/next "
#define API_INVOCATION "POST /2018-06-01/runtime/invocation/"
#define API_INIT_ERROR "POST /2018-06-01/runtime/init/error "
#define API_REGISTER   "POST /2020-01-01/extension/register "
#define API_ASK        "GET /2020-01-01/extension/event/next "

#define API_ACCEPTED             "HTTP/1.1 202 Accepted\r\nContent-Length: 16\r\n\r\n{\"status\":\"OK\"}\n"
#define API_REGISTERED           "HTTP/1.1 200 OK\r\nlambda-extension-identifier: id-1\r\nContent-Length: 2\r\n\r\n{}"
#define API_STATUS(code, reason) "HTTP/1.1 " #code " " reason "\r\nContent-Length: 0\r\n\r\n"

struct api;

struct api *api_new(void);
/* Kills what still runs, and removes the folder. */
void api_destroy(struct api *api);
const char *api_folder(const struct api *api);
const char *api_address(const struct api *api); /* "127.0.0.1:port" */

/* "NAME=value" for every process that is started from now on; the text is copied. "NAME=" removes it. */
void api_set(struct api *api, const char *variable);

/* Starts sl_start with this sluice.json (' for "; NULL: the one that is there), as bootstrap's main does. */
void api_start(struct api *api, const char *config);
/* Starts `run` instead, with this as `environ`; its result is the exit status. */
void api_start_this(struct api *api, int (*run)(void *), void *arg);
pid_t api_process(const struct api *api);

/* ---- requests, one by one ---- */

struct api_request;

/* The oldest request that was not taken and whose first line begins so; waits for it. */
struct api_request *api_take(struct api *api, const char *begin);
/* How many of these wait to be taken now, after `wait_ms`. */
size_t api_count(struct api *api, const char *begin, int wait_ms);
/* Waits for so many. */
void api_await(struct api *api, const char *begin, size_t n);

const char *api_line(const struct api_request *request); /* "GET /path HTTP/1.1" */
const char *api_head(const struct api_request *request); /* the lines after it */
const char *api_body(const struct api_request *request); /* a NUL stands behind it */
bool api_is_open(const struct api_request *request);     /* the other side has not hung up */

/* Both end the request. What hangs up after the bytes (all of them, or `cut`) breaks the connection. */
void api_reply(struct api *api, struct api_request *request, const char *text);
void api_hang_up(struct api *api, struct api_request *request, const char *text, size_t cut);

/* ---- an event and its answer ---- */

struct api_post {
    bool is_error;
    char id[64];
    char type[128];   /* of an error, from its header */
    const char *body; /* until the next one */
};

/* Answers a `next`, with a deadline 30 s from now; `id` is the request's. `headers`: more lines, or others
 * than the usual deadline and ARN when they begin with "!". */
void api_offer(struct api *api, struct sl_span payload, const char *id, const char *headers);
/* Takes the next answer or error, and accepts it. */
struct api_post api_posted(struct api *api);
/* Both, with ids "1", "2" and so on. */
struct api_post api_deliver(struct api *api, struct sl_span payload);
/* The answer must be that all records are done with. */
void api_deliver_all(struct api *api, struct sl_span payload);
struct api_post api_init_error(struct api *api);

/* n records with the sequence numbers `first` and so on, created now; each of its own item "k1000", with the
 * attribute `even` if its number is. Lives until the process ends. */
struct sl_span api_event(size_t first, size_t n);

/* ---- the end ---- */

/* Waits for the process: its exit status, or minus the signal that it died of. */
int api_wait(struct api *api);
/* After SIGTERM. */
int api_stop(struct api *api);

/* The text of a file in the folder ("" when it is not there); "err" and "out" are what the processes wrote.
 * Lives until the next call with the same name. */
const char *api_file(struct api *api, const char *name);
/* How often the words occur in it. */
size_t api_times(struct api *api, const char *name, const char *words);
/* Waits for them. */
void api_await_words(struct api *api, const char *name, const char *words, size_t times);

#endif
