/* The inputs of a verb, read piece by piece and as often as needed: files, gzip or plain, and standard input,
 * in every shape of stream records.
 *
 * A text of lines may have any length. A text that is one document (an event, an array) is held whole. */
#ifndef SL_LIVE_SOURCE_INPUTS_H
#define SL_LIVE_SOURCE_INPUTS_H

#include "base/arena.h"
#include "data/source/source.h"

/* A document of more bytes is refused: it takes about twice as much memory. */
#define SL_INPUTS_DOCUMENT_BYTES ((size_t)256 * 1024 * 1024)

struct sl_inputs {
    const char *const *names;    /* "-" is standard input */
    const struct sl_span *texts; /* NULL, or for each name its text, absent where the name is a file's */
    const int *kept;             /* NULL, or for each name the file that sl_inputs_keep made, or -1 */
    size_t n;
};

/* Whether each name is a file that may be read: a name that is mistyped is told before anything is opened or
 * printed. */
enum sl_status sl_inputs_check(const struct sl_inputs *inputs, struct sl_error *error) SL_MUST_USE;

/* Makes inputs that can be read only once (pipes) into ones that can be read again: they are written to a
 * file without a name in $TMPDIR, else /var/tmp. `inputs` is changed; all lives in `arena`. */
enum sl_status sl_inputs_keep(struct sl_inputs *inputs, struct sl_arena *arena,
                              struct sl_error *error) SL_MUST_USE;

/* Opens them as one source, which gives the records as they were received. `ttl_attribute` may be NULL. The
 * inputs are borrowed until the source is closed. */
enum sl_status sl_inputs_open(const struct sl_inputs *inputs, const char *ttl_attribute,
                              struct sl_source **out, struct sl_error *error) SL_MUST_USE;

/* What is done with a piece's records, which live until it returns, in their batch's arena. `*is_enough`: no
 * more are wanted. */
typedef enum sl_status (*sl_inputs_fn)(void *arg, const struct sl_batch *batch, bool *is_enough,
                                       struct sl_error *error);

/* Opens them, calls `each` piece by piece, and closes them. */
enum sl_status sl_inputs_each(const struct sl_inputs *inputs, const char *ttl_attribute, sl_inputs_fn each,
                              void *arg, struct sl_error *error) SL_MUST_USE;

#endif
