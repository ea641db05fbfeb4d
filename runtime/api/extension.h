/* An internal extension: what makes Lambda send SIGTERM before it ends an environment, 500 ms before SIGKILL.
 *
 * A runtime alone is killed without a warning. So the process registers as an extension that wants no events,
 * before the runtime's first `next`, and asks for the extension's next event, for which no answer ever comes.
 * Lambda waits for an extension that does not ask, until the invocation times out; so a question that ends is
 * asked again, for as long as the process lives.
 *
 * It needs neither a thread nor a process: one connection waits, and its owner looks at it when it waits
 * itself. Sources: the Lambda Developer Guide, "Using the Lambda Extensions API"; rapid/shutdown.go and
 * rapi/handler/agentregister.go in aws-lambda-runtime-interface-emulator. */
#ifndef SL_RUNTIME_API_EXTENSION_H
#define SL_RUNTIME_API_EXTENSION_H

#include "base/clock.h"
#include "base/error.h"

struct sl_extension;

/* Registers. `endpoint` as in runtime/api/client.h. Takes three seconds at most. SL_FATAL: Lambda refused, or
 * is not there; nothing is open then. */
enum sl_status sl_extension_open(const char *endpoint, struct sl_clock *clock, struct sl_extension **out,
                                 struct sl_error *error) SL_MUST_USE;

/* Asks, or asks again if the question ended. Returns at once. SL_RETRY: it ended or could not be asked;
 * `error` says why, once for each time that this begins. It is asked again after a pause of 5 s at most. */
enum sl_status sl_extension_turn(struct sl_extension *extension, struct sl_error *error);

/* The connection: turn it when it is readable. -1: there is none. */
int sl_extension_fd(const struct sl_extension *extension);

/* Turn it after so many milliseconds, although nothing can be read. */
int sl_extension_wait_ms(const struct sl_extension *extension);

/* Closes the connection; a forked child's copy of it, too. NULL is fine. */
void sl_extension_close(struct sl_extension *extension);

#endif
