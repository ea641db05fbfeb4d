/* A page of a shard: the records of one GetRecords answer, as Lambda would deliver them.
 *
 * A page is one piece of memory that its lane holds until all of its records are handled. It borrows nothing
 * from the answer. */
#ifndef SL_LIVE_TAIL_PAGE_H
#define SL_LIVE_TAIL_PAGE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "esm/esm.h"

struct sl_page {
    struct sl_esm_record *records; /* those that are to be handled */
    size_t n;
    size_t n_read; /* records of the answer that could be read; those before `since_ms` are no part of n */
    size_t bytes;  /* that it takes */
    size_t by_event[4];   /* of the `n`, by enum sl_event */
    size_t removed_by[4]; /* REMOVEs by enum sl_ttl */
    const char *last_id;  /* sequence number of the last of those; NULL: there was none */
    int64_t last_ms;      /* when the change of its last record was made; 0: there was none */
    int64_t told_ms;      /* the same, as the record says it; 0: it does not */
    bool is_cut;          /* the answer had more records, the first of which cannot be read */

    struct sl_arena *arena; /* its own */
    struct sl_buffer text;
};

struct sl_page_options {
    const char *stream_arn;       /* eventSourceARN of the records */
    struct sl_span ttl_attribute; /* absent: none */
    bool needs_item_keys;         /* for lanes */
    bool needs_records;           /* sl_esm_record.record is set: for filters */
    const char *after;            /* sequence number that all records have to be behind; NULL: none */
    int64_t now_ms;               /* wall time: of records that say no time */
    int64_t available_ms;         /* of all records */
    int64_t since_ms;             /* records that were made in an earlier minute are left out; 0: none */
    struct sl_arena *scratch;     /* reset here */
};

/* `answer` is the text of a GetRecords answer. When a record of it cannot be read, the page has those before
 * it, and is cut; SL_REJECT when it is the first: the text names it by its sequence number. Also SL_REJECT:
 * the records do not go on in the shard's order, from `after` on. */
enum sl_status sl_page_make(const struct sl_page_options *options, struct sl_span answer,
                            struct sl_page **out, struct sl_error *error) SL_MUST_USE;
void sl_page_destroy(struct sl_page *page); /* NULL is fine */

#endif
