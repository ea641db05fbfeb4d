/* Letters of a queue (handlers/dispatch/letter.h) as Lambda's mapping delivers them: an SQS event, and what
 * its answer says. For whoever drains a queue without Lambda. */
#ifndef SL_LIVE_SOURCE_LETTERS_H
#define SL_LIVE_SOURCE_LETTERS_H

#include "base/arena.h"
#include "live/sandbox/runner.h"

struct sl_letters_message {
    const char *id;
    struct sl_span body;
};

/* The event, in `arena`. It names no queue: who delivers it hides and removes messages. */
struct sl_span sl_letters_event(const struct sl_letters_message *messages, size_t n, struct sl_arena *arena);

/* Has a sandbox of the runner apply them, and returns its answer, in `arena`; absent when it failed.
 * `number`: of its request id. */
struct sl_span sl_letters_run(struct sl_runner *runner, uint64_t number,
                              const struct sl_letters_message *messages, size_t n, struct sl_arena *arena);

/* Is the message done, by this answer of the function? An answer that is not a list of failures, or that
 * names a message that was not sent, is no proof of anything. */
bool sl_letters_is_done(struct sl_span answer, const struct sl_letters_message *messages, size_t n, size_t i);

#endif
