/* Sinks in front of a scripted server, on a virtual clock, with recognizable secrets in their environment.
 *
 * Log lines and the codes and texts of results are written to one file, and fault_close looks for the secrets
 * in it: every test that uses this also shows that no secret is logged. */
#ifndef SL_TESTS_SUPPORT_FAULT_H
#define SL_TESTS_SUPPORT_FAULT_H

#include "tests/support/test.h"

#include "base/clock.h"
#include "sinks/target.h"
#include "tests/support/scripted_server.h"

#define FAULT_KEY      "AKIACANARYCANARY0001"
#define FAULT_SECRET   "canary/secret+key/0123456789abcdefghijkl"
#define FAULT_TOKEN    "canary+session/token=="
#define FAULT_VALUE    "canary-item-value"
#define FAULT_PASSWORD "canary-pa55word"

/* 2026-11-20T21:04:00Z */
#define FAULT_EPOCH_S 1795208640

struct fault {
    struct scripted_server *server;
    struct sl_clock_virtual clock;
    struct sl_vars vars;
    const char *list[40];
    size_t n_vars;
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_call call;
    int fd; /* of that file */
};

/* Credentials, region and AWS_ENDPOINT_URL are set. `answer` is called for each request. */
void fault_open(struct fault *fault, scripted_fn answer, void *arg);
void fault_close(struct fault *fault);

/* "NAME=value"; an empty value removes the variable. The text is copied. */
void fault_set(struct fault *fault, const char *name, const char *value);

/* The target; "http://server/" in a webhook's becomes the scripted server. The next four do it themselves.
 */
struct sl_span fault_target(struct fault *fault, const char *url);

struct sl_table_port *fault_table(struct fault *fault, const char *url);
struct sl_object_port *fault_objects(struct fault *fault, const char *url);
struct sl_queue_port *fault_queue(struct fault *fault, const char *url);
struct sl_queue_port *fault_spans(struct fault *fault, const char *url);

/* One operation, message or object. */
struct sl_result fault_put_item(struct fault *fault, struct sl_table_port *table, const char *key);
struct sl_result fault_put_object(struct fault *fault, struct sl_object_port *objects, const char *key,
                                  const char *body, bool named);
void fault_send(struct fault *fault, struct sl_queue_port *queue, const struct sl_message *messages, size_t n,
                struct sl_result *results);

/* Writes the results' codes and texts to the file. */
void fault_note(struct fault *fault, const struct sl_result *results, size_t n);

void assert_result(struct sl_result result, enum sl_status status, const char *code);

#endif
