/* Input of the sluice command: files, gzip or plain, and standard input, in every shape of stream records.
 *
 * The verbs read and check all input before they do anything with it. */
#ifndef SL_REPLAY_SOURCE_INPUT_H
#define SL_REPLAY_SOURCE_INPUT_H

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

/* Decodes input->text into input->batch; the caller has set `name` and `text`. On failure: a line with the
 * name, the byte and the reason ("orders.json: invalid JSON at byte 812: ..."); the batch then holds the good
 * records before the bad one. */
enum sl_status sl_input_decode(struct sl_input *input, const struct sl_decode_options *options,
                               struct sl_arena *arena, struct sl_error *error) SL_MUST_USE;

/* Loads and decodes. All of `out` lives in `arena`. */
enum sl_status sl_input_read(const char *name, const struct sl_decode_options *options,
                             struct sl_arena *arena, struct sl_input *out,
                             struct sl_error *error) SL_MUST_USE;

#endif
