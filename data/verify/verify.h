/* Verifying: is what the routes made what they should have made? On live tables, while the stream runs.
 *
 * Forward, the source is scanned, each route's handler tells what should be there (handlers/expect.h), and
 * the rows are read and compared. Backward, the routes' tables are scanned for rows whose item the source
 * does not have. Both first looks are eventually consistent; what is not right is a suspect and is looked at
 * again by the rule of data/verify/look.h, with consistent reads. Nothing is written.
 *
 * Memory is bounded whatever the tables' sizes: SL_VERIFY_PAGES pages with what is read for them, and
 * SL_VERIFY_SUSPECTS suspects. While there is no room for more of these, no page is read.
 *
 * The work is a row of steps. After each one it can be saved as a place, and gone on with in another process.
 * One thread uses it. */
#ifndef SL_DATA_VERIFY_VERIFY_H
#define SL_DATA_VERIFY_VERIFY_H

#include "handlers/pipeline/pipeline.h"
#include "data/verify/finding.h"
#include "data/verify/items.h"

#define SL_VERIFY_PAGES    4 /* in flight together, of 1 MB each */
#define SL_VERIFY_SUSPECTS 50000

/* An item of the source whose TTL attribute is not later than this may be gone at any moment, on both sides.
 */
#define SL_VERIFY_TTL_MARGIN_S 60

/* `wait_ms`, unless the user says another time. */
#define SL_VERIFY_WAIT_S 300

struct sl_when;

struct sl_verify_options {
    struct sl_pipeline *pipeline;
    struct sl_sinks *sinks;
    struct sl_table_port *source;
    struct sl_items_keys keys; /* of the source */
    struct sl_span arn;        /* eventSourceARN for records; without characters that JSON escapes */
    const bool *is_chosen;     /* by route; NULL: every route */
    const struct sl_span *ttl_attributes; /* of the source and the targets: items past them may be gone */
    size_t n_ttl_attributes;
    const struct sl_span *ignored; /* attributes that do not count */
    size_t n_ignored;
    const struct sl_when *match; /* a pattern on items; NULL: all. Backward it sees the key alone */
    uint32_t segments;           /* of each table */
    uint32_t first, n;           /* those that are verified; after the last comes the first */
    bool only_items;             /* no table is scanned: sl_verify_item names what is verified */
    bool shows_values;
    int64_t wait_ms; /* how long a suspect waits for the consumer before it is pending */

    /* Every change made before this wall time has been handled by all consumers; 0: not known. */
    int64_t (*through_ms)(void *arg);
    /* Every change of the route's that was set aside before this wall time has been applied; INT64_MAX: none
     * ever is; 1: some wait. NULL: none ever is, of any route. */
    int64_t (*settled_ms)(void *arg, const char *route);
    /* A finding, and the same as a JSON line with its newline; both are borrowed. */
    void (*found)(void *arg, const struct sl_finding *finding, struct sl_span line);
    void *arg;
};

struct sl_verify_route {
    const char *name, *handler, *target;
    const char *reason; /* why it cannot be compared; NULL: it can */
    uint64_t equal, different, pending, unsettled, not_comparable;
    uint64_t left_out;                         /* items that are not the route's, or not in --match */
    uint64_t kinds[SL_VERDICT_NOT_JUDGED + 1]; /* of `different`, by verdict */
};

struct sl_verify_progress {
    bool is_done;
    const char *what;                 /* "source", "target of ROUTE", "suspects" */
    uint64_t items;                   /* of the source, read so far */
    uint64_t rows;                    /* of the targets, read backward */
    size_t suspects;                  /* now */
    bool is_scan;                     /* a table is scanned now, and not only suspects looked at */
    uint32_t segments_done, segments; /* of what is scanned now */
};

struct sl_verify;

/* The options' pointers are borrowed until sl_verify_close. `place`: go on there (absent: begin); SL_REJECT
 * when it belongs to another verification. */
enum sl_status sl_verify_open(const struct sl_verify_options *options, struct sl_span place,
                              struct sl_verify **out, struct sl_error *error) SL_MUST_USE;
void sl_verify_close(struct sl_verify *v); /* NULL is fine */

/* Adds an item by its key's JSON, for a route or (NULL) for all; routes whose `when` does not take it are
 * left out. An item that is added twice counts once. SL_REJECT: it is no key, the route cannot be compared,
 * or there are SL_VERIFY_SUSPECTS items already. */
enum sl_status sl_verify_item(struct sl_verify *v, const char *route, struct sl_span key,
                              struct sl_error *error) SL_MUST_USE;

/* One step. SL_RETRY: what could not be read now may be read later, and the same step can be tried again.
 * SL_FATAL, SL_REJECT: it cannot be read. */
enum sl_status sl_verify_step(struct sl_verify *v, int64_t deadline_ms, struct sl_error *error) SL_MUST_USE;

struct sl_verify_progress sl_verify_progress(const struct sl_verify *v);
size_t sl_verify_routes(const struct sl_verify *v);
const struct sl_verify_route *sl_verify_route(const struct sl_verify *v, size_t i);

/* Where to go on, as JSON, in `out`. */
void sl_verify_place(const struct sl_verify *v, struct sl_buffer *out);

#endif
