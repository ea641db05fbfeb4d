/* Input of the sluice command: files, gzip, standard input, in all the shapes that stream records come in.
 *
 * Everything is read and checked before anything is done with it. */
#ifndef SL_REPLAY_INPUT_H
#define SL_REPLAY_INPUT_H

#include "streams/batch.h"

/* What one input may hold after decompression: a batch's offsets are 32 bits wide. */
#define SL_INPUT_BYTES ((size_t)0xFFFFFFFF)

struct sl_input {
    const char *name;    /* as given; "-" is standard input */
    struct sl_span text; /* expanded */
    struct sl_batch batch;
};

/* Reads, expands and decodes one input; all of `out` lives in `arena`. On failure a line that names the file,
 * the byte and the reason: "orders.json: invalid JSON at byte 812: ..."; the good records before a bad one
 * stand in `out` then. */
enum sl_status sl_input_read(const char *name, const struct sl_decode_options *options,
                             struct sl_arena *arena, struct sl_input *out, struct sl_error *error)
    __attribute__((warn_unused_result));

/* The same of a text that is there already. */
enum sl_status sl_input_decode(const char *name, struct sl_span text, const struct sl_decode_options *options,
                               struct sl_arena *arena, struct sl_input *out, struct sl_error *error)
    __attribute__((warn_unused_result));

/* The bytes alone. */
enum sl_status sl_input_load(const char *name, struct sl_arena *arena, struct sl_span *out,
                             struct sl_error *error) __attribute__((warn_unused_result));

#endif
