/* Tells whoever waits for a replay what it waits for. An invocation whose target is dead takes as long as its
 * timeout, in real time, and on a virtual clock nothing else would be printed meanwhile. */
#ifndef SL_CLI_PATIENCE_H
#define SL_CLI_PATIENCE_H

#include "base/types.h"

struct sl_patience;

/* NULL when there is no thread to be had: then nothing is told. */
struct sl_patience *sl_patience_new(const char *verb, int64_t timeout_s);
void sl_patience_destroy(struct sl_patience *p);

/* Around what may take long. After five seconds one line goes to standard error, and one more each minute of
 * the run. */
void sl_patience_begin(struct sl_patience *p);
void sl_patience_end(struct sl_patience *p);

#endif
