/* Items that are named by their keys: on the command line, or in a file, one a line. A key is written as
 * DynamoDB's JSON, {"PK":{"S":"a"}}, or as streams/shorthand.h has it, {"PK":"a"}. */
#ifndef SL_CLI_KEYS_H
#define SL_CLI_KEYS_H

#include "base/sha256.h"
#include "cli/flags.h"
#include "streams/decode/batch.h"

/* Different ones, in the order in which they were named. In the arena. */
struct sl_named_keys {
    unsigned char (*digests)[SL_SHA256_BYTES]; /* sl_recall_digest */
    struct sl_span *texts;                     /* DynamoDB's JSON */
    size_t n;
};

/* `file`: NULL: none; "-": standard input. `more`: further lines, of our own. SL_REJECT: one is no key (its
 * flag, or file and line), the file cannot be read, or there is none at all. */
enum sl_status sl_keys_read(const struct sl_flag_list *list, const char *file, struct sl_span more,
                            struct sl_arena *arena, struct sl_named_keys *out,
                            struct sl_error *error) SL_MUST_USE;

#endif
