/* One text of records, gzip or plain, decoded piece by piece.
 *
 * Records of lines (any whitespace parts them) come as they are read. A document (an event, a GetRecords
 * dump, an array) is one piece and is held whole. Pieces mean what the whole text would: the same records,
 * the same refusals. */
#ifndef SL_DATA_SOURCE_TEXT_H
#define SL_DATA_SOURCE_TEXT_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "streams/decode/batch.h"
#include "data/source/explain.h"
#include "data/source/reader.h"

#include <openssl/evp.h>

#define SL_MD5_BYTES 16

/* More records than one invocation's batch can have make a piece no faster, and cost memory. */
#define SL_TEXT_PIECE_RECORDS 10000

struct sl_text_options {
    const char *name; /* for messages; borrowed */
    struct sl_clock *clock;
    struct sl_span ttl_attribute;
    size_t document_bytes;    /* a document's text at most; 0: documents are refused */
    bool wants_md5;           /* of what is stored */
    struct sl_text_from skip; /* the text goes on there: `from` at the time */
};

/* Private, except for what is said. */
struct sl_text {
    struct sl_text_options options;
    struct sl_reader *reader;
    struct sl_inflater *inflater; /* NULL: plain */
    EVP_MD_CTX *md5;
    struct sl_span raw;                 /* read, not yet unpacked */
    bool is_begun, is_read, is_drained; /* all was read; and is in the window */
    struct sl_buffer window;            /* unpacked, not yet handed out */
    uint64_t n_skipped;                 /* bytes dropped so far, up to options.skip.byte */
    struct sl_buffer kept;              /* comes before `raw`, unpacked, from the byte `kept_from` on */
    size_t kept_from;
    struct sl_error broken; /* it cannot be read on; SL_OK: it can */
    bool may_skip;          /* what failed is at the window's beginning, after `n_before` good records */
    size_t n_before;
    char last;   /* byte that was scanned; a newline before the first */
    size_t hint; /* so much text had SL_TEXT_PIECE_RECORDS; 0: no piece had so many */

    /* To be read. */
    bool is_at_end; /* everything was handed out */
    struct sl_text_from
        from;              /* what was handed out, unpacked: where the next piece begins. From the opening on
                              that is options.skip, also while the text before it is still being dropped */
    uint64_t stored_bytes; /* read */
};

/* Takes ownership of the reader. */
void sl_text_open(struct sl_text *t, const struct sl_text_options *options, struct sl_reader *reader);
void sl_text_close(struct sl_text *t); /* zeroed memory is fine */

/* The next piece: about `max_bytes` of text, one record at least. The batch and its text live in call->arena.
 * An empty batch: the end, or the deadline came. On failure: a line that begins with the name. Good records
 * before a bad one have come before; those of a document are in `out`, and usable until the text is closed.
 */
enum sl_status sl_text_pull(struct sl_text *t, size_t max_bytes, const struct sl_call *call,
                            struct sl_batch *out, struct sl_error *error) SL_MUST_USE;

/* After sl_text_pull has refused a text: see sl_source_skip_bad (text_skip.c). */
enum sl_status sl_text_skip_bad(struct sl_text *t, const struct sl_call *call, bool *goes_on,
                                struct sl_error *error) SL_MUST_USE;

/* Reads on, some `max_bytes` of text or to the deadline, without decoding: gzip is checked, and lines are
 * counted as records. */
enum sl_status sl_text_scan(struct sl_text *t, size_t max_bytes, const struct sl_call *call,
                            struct sl_error *error) SL_MUST_USE;

/* Reads what is stored to the end, whatever is in it, for the md5 of a text that was refused. False: the
 * deadline came, or it cannot be read. */
bool sl_text_drain(struct sl_text *t, const struct sl_call *call);

/* At the end, with wants_md5: of all that is stored. Once. */
void sl_text_md5(struct sl_text *t, unsigned char out[SL_MD5_BYTES]);

#endif
