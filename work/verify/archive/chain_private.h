/* Inside the check of archives: what its files share. */
#ifndef SL_WORK_VERIFY_ARCHIVE_CHAIN_PRIVATE_H
#define SL_WORK_VERIFY_ARCHIVE_CHAIN_PRIVATE_H

#include "base/buffer.h"
#include "streams/record.h"
#include "work/verify/archive/chain.h"

#include <stdio.h>

#define ORDER_BYTES  40
#define DIGEST_BYTES 16

/* One change, in the files that are sorted. */
struct change {
    unsigned char item[DIGEST_BYTES];
    char order[ORDER_BYTES]; /* digits with zeros before them */
    unsigned char event_id[DIGEST_BYTES];
    unsigned char old[DIGEST_BYTES], new[DIGEST_BYTES];
    uint64_t object; /* where its object's name is in the file of names */
    uint8_t event;
    bool has_old, has_new;
    bool is_timed; /* the order is a time, and others may have the same */
};

struct chain {
    const struct sl_chain_options *o;
    struct sl_chain_counts *counts;
    struct sl_arena *arena; /* of an object */
    struct sl_buffer line;
    FILE *names, *parts[SL_CHAIN_PARTS];
};

/* ---- chain_object.c ---- */

/* Reads one object, compares it with its name, and adds its changes. */
enum sl_status chain_object(struct chain *c, const struct sl_object_entry *entry,
                            struct sl_error *error) SL_MUST_USE;

/* ---- chain.c ---- */

enum sl_status chain_add(struct chain *c, const struct change *change, struct sl_error *error) SL_MUST_USE;

/* Reports an object: `kind` is "damaged" or "unreadable". */
void chain_report_object(struct chain *c, struct sl_span key, const char *kind, const char *why);

#endif
