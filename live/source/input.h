/* Input of the sluice command: files, gzip or plain, and standard input, in every shape of stream records.
 *
 * The verbs read and check all input before they do anything with it. */
#ifndef SL_LIVE_SOURCE_INPUT_H
#define SL_LIVE_SOURCE_INPUT_H

#include "base/error.h"
#include "streams/decode/batch.h"

/* What one input may hold after decompression: a batch's offsets have 32 bits. */
#define SL_INPUT_BYTES ((size_t)0xFFFFFFFF)

struct sl_input {
    const char *name;    /* as given; "-" is standard input */
    struct sl_span text; /* decompressed */
    struct sl_batch batch;
};

/* Reads and decompresses a file. On failure: a line that begins with its name. */
enum sl_status sl_input_load(const char *name, struct sl_arena *arena, struct sl_span *out,
                             struct sl_error *error) SL_MUST_USE;

/* Loads and decodes. All of `out` lives in `arena`. */
enum sl_status sl_input_read(const char *name, const struct sl_decode_options *options,
                             struct sl_arena *arena, struct sl_input *out,
                             struct sl_error *error) SL_MUST_USE;

#endif
