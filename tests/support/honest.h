/* What an honest service answers to a request of ours, whichever it is: the positive answer, whole.
 *
 * tests/sinks/test_lies.c takes its answers from here and makes them wrong. */
#ifndef SL_TESTS_SUPPORT_HONEST_H
#define SL_TESTS_SUPPORT_HONEST_H

#include "base/buffer.h"
#include "tests/support/scripted_server.h"

/* The operation that the request asks for ("PutItem", "PublishBatch", "PutObject"), in `out`. */
void honest_operation(const struct scripted_request *request, char *out, size_t room);

/* Sets the reply's status and headers, and its body, which is written to `body` and borrowed from it. Fails
 * the test when the operation is not known here: a new one needs its honest answer. */
void honest_answer(const struct scripted_request *request, struct scripted_reply *reply,
                   struct sl_buffer *body);

#endif
