/* Backfill: the items that exist, from a source, through the routes that can take them, piece by piece.
 *
 * A route takes part when its end state follows from the items alone (sl_route_per_item). Items are older
 * than every change ("order 0"): they lose to each guard and each ledger row that is there. So the end state
 * is right if every change since the time T, at which the source shows the table, comes through the stream
 * too: an item that was deleted after T has to be deleted again, or known as deleted. That is what
 * sl_backfill_open and every step check:
 *   - the stream's consumer has begun at T or before it;
 *   - no route has forgotten yet what was deleted since T.
 *
 * Safe to repeat: a piece that is run again changes nothing. `place` moves when the piece before it is
 * durable (written, or parked); whoever goes on from a place, in this process or another, loses nothing.
 *
 * Nothing here waits: a step says when the next one is to be made. One thread uses a backfill. It knows no
 * command line and no Runtime API: `sluice backfill` and bootstrap's work items call the same steps. */
#ifndef SL_DATA_BACKFILL_BACKFILL_H
#define SL_DATA_BACKFILL_BACKFILL_H

#include "handlers/pipeline/pipeline.h"
#include "data/source/source.h"

struct sl_backfill;

struct sl_backfill_options {
    /* Borrowed until the close. Routes that do not take part are given nothing; the pipeline is of no other
     * use afterwards. */
    struct sl_pipeline *pipeline;
    struct sl_source *source;
    struct sl_clock *clock;
    const bool *is_chosen;     /* by route: those that are to take part; borrowed. NULL: all that can */
    int64_t as_of_ms;          /* T, since 1970; 0: the source's own time. Of two the earlier one counts */
    int64_t consumer_since_ms; /* every change since then has come or will come through the stream; 0: not
                                  known */
    bool any_order;            /* run also where that is not known, or is later than T */
    bool is_restore;        /* the items are all that there will be: the targets are empty, no stream goes on
                               beside it, and only routes without guards take part */
    bool is_plan;           /* no step will be made: order and time are not checked by the opening */
    double write_units;     /* a second, of all targets together; 0: no limit */
    size_t piece_bytes;     /* of text; 0: SL_BACKFILL_PIECE_BYTES */
    const char *request_id; /* "" outside Lambda */
    const char *function_arn;
};

/* A piece's text. Larger pieces make hardly anything faster, and each byte is held some eight times: decoded,
 * reshaped, and as requests. */
#define SL_BACKFILL_PIECE_BYTES ((size_t)1024 * 1024)

/* SL_REJECT: a named route does not exist or cannot take part, none can, the source does not say its time, or
 * the order would not be right; `error` says what to do. Nothing has been read or written. */
enum sl_status sl_backfill_open(const struct sl_backfill_options *options, struct sl_backfill **out,
                                struct sl_error *error) SL_MUST_USE;
void sl_backfill_close(struct sl_backfill *b); /* NULL is fine */

/* Of sl_backfill_open what it says of routes alone, before there is a source (options->source may be NULL).
 * Routes that cannot take part are left out in the pipeline. */
enum sl_status sl_backfill_check_routes(const struct sl_backfill_options *options,
                                        struct sl_error *error) SL_MUST_USE;

/* The rules of order and time, as sl_backfill_open checks them. */
enum sl_status sl_backfill_check(const struct sl_backfill *b, struct sl_error *error) SL_MUST_USE;

/* ---- steps ---- */

struct sl_backfill_step {
    bool is_done;    /* the source is at its end, and everything is durable */
    bool has_moved;  /* records became durable, or the place moved. A step may end well without it: a wait, a
                        deadline that came before anything was read */
    int64_t wait_ms; /* before the next step: 0, or what the limit of units or a target's trouble asks for */
};

/* One piece. `deadline_ms` (on the clock's steady time) is when this process may be killed; nothing is begun
 * that cannot end before it.
 *   SL_OK      the piece is durable, or there was nothing to do yet
 *   SL_RETRY   the outside world failed; the next step tries the same again
 *   SL_REJECT  the source is wrong, a record was rejected that cannot be parked, or it takes too long: a
 * route would forget what was deleted SL_FATAL   nothing can succeed here After the last two no further step
 * is to be made. */
enum sl_status sl_backfill_step(struct sl_backfill *b, int64_t deadline_ms, struct sl_backfill_step *step,
                                struct sl_error *error) SL_MUST_USE;

/* ---- what was done ---- */

/* Of the records that the source had, what became of each in this route: the numbers add up to
 * sl_backfill_report.records. */
struct sl_backfill_route {
    const char *name;
    const char *left_out; /* why it takes no part; NULL: it does, and the numbers are its own */
    uint64_t applied;     /* written by the step that made it durable */
    uint64_t repeated;    /* there already, from an earlier attempt or run */
    uint64_t overtaken;   /* a later change was there: refused by the guard or the ledger */
    uint64_t outside;     /* not the route's: its `when` or `where`, or no item (a tombstone, an item with a
                             guard in a pair of tables, a row of ours) */
    uint64_t parked;
    int64_t remembers_s; /* see struct sl_per_item; 0: for ever */
    struct sl_per_item facts;
};

struct sl_backfill_report {
    uint64_t records;
    uint64_t stored_bytes; /* as the source has them */
    double read_units, write_units;
    int64_t as_of_ms;
    struct sl_span place; /* absent: nothing is done yet. Borrowed until the next step */
    const struct sl_backfill_route *routes;
    size_t n_routes; /* of the pipeline, in its order */
};

const struct sl_backfill_report *sl_backfill_report(const struct sl_backfill *b);

/* When the backfill has to be done, since 1970; INT64_MAX: any time. */
int64_t sl_backfill_due_ms(const struct sl_backfill *b);

/* Write units that an item of so many bytes (by DynamoDB's formula) will cost, in all routes. */
double sl_backfill_item_units(const struct sl_backfill *b, uint64_t item_bytes);

/* A place of a scan has a key for each segment: 1,024 of them at 3 KB, each byte escaped to six at worst. The
 * rest of the state is counts of routes. */
#define SL_BACKFILL_PLACE_BYTES ((size_t)24 * 1024 * 1024)
#define SL_BACKFILL_STATE_BYTES (SL_BACKFILL_PLACE_BYTES + (size_t)1024 * 1024)

/* Appends the report as JSON: {"asOf":ms,"records":n,...,"place":{...},"routes":{"name":{...}},"config":
 * {"name":"digest"}}. */
void sl_backfill_write_state(const struct sl_backfill *b, struct sl_buffer *out);

/* Goes on from such a text, whose `place` the source was opened with: the numbers are counted on. SL_REJECT
 * when it is not such a text, when other routes took part in it, or routes that were configured otherwise
 * (another target, another epoch): those have not what was done; or when its time T breaks the rules of order
 * and time. Before the first step. */
enum sl_status sl_backfill_read_state(struct sl_backfill *b, struct sl_span state,
                                      struct sl_error *error) SL_MUST_USE;

#endif
