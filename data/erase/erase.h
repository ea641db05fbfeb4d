/* Erasing items from an archive: what it holds of them goes, and what remains still replays, restores and
 * verifies.
 *
 * Of a record in format `record` a line stays, {"sluice_erased":RUN,...}, with the change's identifiers,
 * time, event and place, and a keyed digest instead of its key: so the object's name still says what is in
 * it, and readers pass over it (SL_ERASED_LINE). In the other formats the line goes, and an object without
 * lines, too. An object is replaced as a whole, if it is still the one that was read; so a run that ends
 * anywhere leaves each object as it was or as it is to be, and the next run does what is left.
 *
 * Where the bucket keeps versions, those that hold changes of the items are removed. Last, all of it is read
 * once more, without the index: nothing may be found (`left`). The index is made anew by that. */
#ifndef SL_DATA_ERASE_ERASE_H
#define SL_DATA_ERASE_ERASE_H

#include "base/buffer.h"
#include "base/sha256.h"
#include "data/verify/items.h"
#include "sinks/target.h"

enum sl_erase_format {
    SL_ERASE_RECORD,
    SL_ERASE_EXPORT,
    SL_ERASE_ITEM,
    SL_ERASE_JSON,
    SL_ERASE_PARKED /* no archive: each object is a parked record, which goes as a whole */
};

struct sl_erase_options {
    struct sl_sinks *sinks;
    const char *place; /* the archive's target; borrowed */
    enum sl_erase_format format;
    const unsigned char (*items)[SL_SHA256_BYTES]; /* sl_recall_digest of their keys */
    size_t n;
    struct sl_items_keys names; /* of the key's attributes: formats without Keys need them */
    const char *run;            /* this erasure's name: letters, digits, '-' */
    struct sl_span secret;      /* of the keyed digests */
    bool is_plan;               /* nothing is written */
    bool (*is_stopped)(void *arg);
    void *arg;
};

struct sl_erase_counts {
    uint64_t objects;            /* that the archive has */
    uint64_t holding, records;   /* that held something of the items; their records of them */
    uint64_t rewritten, removed; /* of these objects */
    uint64_t versions;           /* that held something of them (plan), and were removed */
    uint64_t read_again;         /* objects and versions that were read for the proof */
    uint64_t left;               /* of these, those that still hold something: 0, or it was not done */
    uint64_t unreadable;         /* objects and versions of which nobody can say it */
    struct sl_error why;         /* of the last unreadable one */
};

/* SL_REJECT, code "Locked": a version may not be removed (Object Lock, or no right to); SL_RETRY, SL_FATAL:
 * the archive cannot be read or written; the same call again goes on. */
enum sl_status sl_erase_archive(const struct sl_erase_options *options, struct sl_erase_counts *counts,
                                struct sl_error *error) SL_MUST_USE;

/* What stands for an item in stubs and reports: without the secret nobody can say of which item it is. */
void sl_erase_pseudonym(struct sl_sha256 *sha, const struct sl_sha256_key *secret,
                        const unsigned char item[SL_SHA256_BYTES], char out[SL_SHA256_HEX]);

/* For tests and for parked copies: `text` without the items' records, in `out`; how many there were.
 * SL_REJECT: it is not in the format. */
struct sl_eraser;
struct sl_eraser *sl_eraser_new(const struct sl_erase_options *options);
void sl_eraser_destroy(struct sl_eraser *eraser);
enum sl_status sl_eraser_text(struct sl_eraser *eraser, struct sl_span text, struct sl_arena *arena,
                              struct sl_buffer *out, uint64_t *n, struct sl_error *error) SL_MUST_USE;

#endif
