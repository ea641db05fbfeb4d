/* SPDX-FileCopyrightText: 2026 The Sluice authors
 * SPDX-License-Identifier: Apache-2.0 */

/* Writing a handler for Sluice: this header is the manual.
 *
 * A handler is one file that exports one symbol, SL_HANDLER. It links nothing of Sluice: everything it needs
 * comes through struct sl_host, the table that open() gets. The built-in handlers use the same table and
 * nothing else. `sluice new-handler NAME` writes a first handler, with numbered places to change.
 *
 * Configuration. A route of sluice.json names the handler by its file: "my_handler" is my_handler.so on the
 * handler path.
 *     {"name": "mine", "handler": "my_handler", "threshold": 10, "on_failure": "sqs://failed"}
 * The handler declares its options in a table (struct sl_option). An option that is unknown, missing or out
 * of bounds is refused before the first event. A handler may write to every sink that its options name.
 *
 * Slices. handle() gets an array of records, in stream order: the records of one batch that match the route's
 * `when`, or some of them. A batch is cut into slices by max_records and max_bytes, and while Sluice looks
 * for a rejected record.
 *
 * Records. A record is one change of one item. It has an event (SL_INSERT, SL_MODIFY, SL_REMOVE), the item's
 * Keys, and the item before the change (SL_OLD_IMAGE) and after it (SL_NEW_IMAGE), if the stream's view type
 * includes them. host->record_... looks into a record, host->value_... into the value of an attribute, and
 * host->record_diff lists what changed. Names are spans:
 *     struct sl_value total = host->record_attribute(record, SL_NEW_IMAGE, SL_LIT("total"));
 *     if (total.type == SL_N && host->value_int64(total, &cents)) ...
 *
 * Outcomes. handle() returns one, and may give a single record another with host->mark():
 *   - SL_OK      The effects are durable.
 *   - SL_RETRY   The outside world failed; the record is not to blame. Sluice tries again while there is
 *                time, then the event source delivers the record again.
 *   - SL_REJECT  This record can never succeed. If handle() returns it, the unmarked records of the slice are
 *                unknown: Sluice tries them again in halves, until it has found the one to blame. That record
 *                goes to `on_failure`.
 *   - SL_FATAL   Nothing can succeed here, for example access is denied or the table does not exist. The
 *                route stops with one error.
 *
 * Marks. An unmarked record has the outcome that handle() returns. A record that is marked SL_OK is not given
 * to the handler again, so that a slice of which half succeeded makes progress.
 *
 * Repeats. Delivery is at least once: a record may be delivered again, also after it succeeded. But a later
 * change of an item is never delivered before an earlier change of it that failed. Make effects repeatable,
 * or set SL_ONCE_ONLY. Such a handler is called after all other routes, and only for records that the answer
 * will not ask for again. It should mark what it has done: everything that is not marked is delivered again.
 *
 * Memory. Records, and all views of them, live until handle() returns. What host->alloc puts on slice->arena
 * lives until the batch is answered. What it puts on the route's arena (route_arena) lives as long as the
 * handler. Nothing needs to be freed. Copy what has to live longer: host->join(arena, &span, 1).
 *
 * Threads and time. A handler is called on one thread. No thread of its own may still run when handle()
 * returns. slice->deadline_ms (on the clock of host->now_ms) leaves Sluice time to report: stop before it,
 * and return SL_RETRY for the rest.
 *
 * Processes. A handler does not end the process. It does not close descriptors that it did not open, and does
 * not change signals that it did not set. A handler that dies of a signal takes the process with it;
 * docs/PLUGINS.md says how Sluice then finds the record.
 *
 * ABI. Fields are only appended to the structs that begin with struct sl_abi, and `size` says which fields
 * are there. A plugin loads in a host of the same major and of the same or a newer minor. Structs that are
 * passed in arrays (sl_option, sl_result, sl_object, sl_table_op, sl_message, and what they point to) keep
 * their layout as long as the major stays. Changelog:
 *   1.0  the first.
 *   1.1  struct sl_host: event_name, view_name, ttl_name, value_put, json_compact.
 *   1.2  struct sl_host: value_sha256.
 *   1.3  struct sl_object_port: read, list. struct sl_table_port: scan, describe, units; the verb
 *        SL_TABLE_PEEK.
 *        struct sl_handler: expect, judge, trace, repair.
 *        struct sl_handler: per_item. struct sl_host: note, template_uses.
 *   1.4  struct sl_table_port: can.
 *        struct sl_object_port: remove.
 *        struct sl_host: template_type, template_item.
 *        struct sl_host: where_compile, where_match, when_lacks.
 *        struct sl_handler: price.
 *   1.5  struct sl_slice: epoch. struct sl_handler: any_order.
 *   1.6  struct sl_host: template_place. struct sl_trace: row_key. struct sl_repair: keys.
 *   1.7  struct sl_host: record_trace.
 */
#ifndef SL_HANDLERS_HANDLER_H
#define SL_HANDLERS_HANDLER_H

#include "handlers/expect.h"
#include "handlers/host_table.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_ABI_MAJOR 1u
#define SL_ABI_MINOR 7u

/* ---- options ---- */

enum sl_option_type {
    SL_OPTION_END = 0,
    SL_OPTION_TEXT,
    SL_OPTION_INTEGER, /* within min..max */
    SL_OPTION_BOOL,
    SL_OPTION_ENUM,     /* one of `values`: "record|item" */
    SL_OPTION_TEMPLATE, /* text with {places}, compiled */
    SL_OPTION_WHEN,     /* a condition like a route's "when", compiled */
    SL_OPTION_JSON,     /* any JSON; the handler reads it */
    SL_OPTION_OBJECTS,  /* a target, opened: an object store */
    SL_OPTION_TABLE,    /* a table */
    SL_OPTION_QUEUE     /* a queue */
};

#define SL_OPTION_REQUIRED 1u
#define SL_OPTION_SECRET   2u /* never printed */

/* One row per option. The parser, `sluice check`, the docs, the JSON Schema and the refusal of unknown keys
 * use it. An option may be a member of the route or of the route's "options" object. */
struct sl_option {
    const char *name;
    enum sl_option_type type;
    unsigned flags;
    int64_t min, max;     /* INTEGER; both 0: any */
    const char *values;   /* ENUM */
    const char *fallback; /* the default, as text; NULL: none */
    const char *help;     /* one line */
};

/* ---- the call ---- */

struct sl_slice {
    struct sl_abi abi;
    const struct sl_record *const *records;
    size_t n;
    int64_t deadline_ms;    /* on host->now_ms() */
    struct sl_arena *arena; /* until the batch is answered */
    const char *request_id; /* "" outside Lambda */
    unsigned attempt;       /* 0 in the first call with these records in this batch */

    /* ---- since 1.5 ---- */

    int64_t epoch; /* of late records: that of the route when they came; -1: the route's own, as mostly */
};

/* An event of a tumbling window. The new state has to depend on `state` and `records` alone: if the answer's
 * checkpoint becomes lower, window() is called once more with the same state and fewer records. */
struct sl_window {
    struct sl_abi abi;
    struct sl_span start, end; /* "2020-07-30T17:00:00Z" */
    struct sl_span state;      /* JSON text, {} at the beginning of the window */
    struct sl_span new_state; /* set by the handler, in `arena`: a JSON object of 1 MB at most, the `state` of
                                 the next event. Absent: `state` stays */
    bool is_final, is_terminated_early;
    struct sl_arena *arena;
    int64_t deadline_ms;
    const struct sl_record *const *records; /* the route's records that the answer reports as done: they are
                                               not delivered again. Parked records are not among them */
    size_t n;
};

/* What a handler says of the items that it is given without a change: in a backfill. */
struct sl_per_item {
    struct sl_abi abi;
    /* Set by the handler. For how long it knows that an item was deleted, and refuses an older state of it;
     * 0: for ever. */
    int64_t remembers_s;
    bool needs_table; /* what it makes names the items' table or Region */
    /* About what an item costs in write units: the first times the item's own units (its KB), and the second.
     */
    uint32_t units_of_item, units_more;
};

/* What a handler says of records that come late: struct sl_handler, any_order. */
struct sl_any_order {
    struct sl_abi abi;
    /* Set by the handler. For how long after its change a record is still known for what it is: that it was
     * applied, or that it is older than a removal; 0: for ever. */
    int64_t remembers_s;
};

/* What the handler's requests cost for one batch, as the route is configured: for `sluice check`. All goes
 * well: nothing is refused, throttled or delivered again. */
struct sl_price {
    struct sl_abi abi;
    enum sl_event event;
    enum sl_view view;   /* of the stream; SL_VIEW_UNKNOWN: with both images */
    size_t records;      /* changes of one batch, each of another item */
    uint32_t item_bytes; /* of each item, before and after, by DynamoDB's formula */
    bool is_spread;      /* rows that several items can share (totals): each has its own. Else one for all */
    struct sl_arena *arena;

    /* Set by the handler. Capacity units of the whole batch, and its operations on tables, a transaction's
     * counted one by one. */
    double write_units, read_units;
    size_t writes, reads;
    const char *formula; /* one line: what a change costs, and what u, ... are */
};

/* In `flags`: the effects cannot be repeated, so the handler is called only for records below the checkpoint
 * that the answer will set. */
#define SL_ONCE_ONLY 1u

struct sl_handler {
    struct sl_abi abi; /* SL_HANDLER_ABI */
    const char *name;
    const char *summary;             /* one line */
    unsigned flags;                  /* SL_ONCE_ONLY */
    size_t max_records;              /* of a slice; 0: the whole batch */
    size_t max_bytes;                /* of a slice's records together; 0: no limit */
    const struct sl_option *options; /* ends with a row of type SL_OPTION_END; NULL: none */

    /* Called once, before the first event, with options read and targets opened. All other functions get what
     * it puts in `*self`. NULL: nothing to do. A failure is an init error: `error` says why. */
    enum sl_status (*open)(const struct sl_host *host, struct sl_route *route, void **self,
                           struct sl_error *error);

    /* See above. Required. `error` may say why it returns what it returns; a mark may have its own error. */
    enum sl_status (*handle)(void *self, struct sl_slice *slice, struct sl_error *error);

    /* Called for each event of a tumbling window, after handle(), also when the event holds no record. At
     * most one route may have it. A failure fails the event. NULL: the state stays. */
    enum sl_status (*window)(void *self, struct sl_window *window, struct sl_error *error);

    /* Called at the end of the process, if the process ends normally. NULL: nothing to do. */
    void (*close)(void *self);

    /* Does a stream of this view type carry what the handler needs? If not, `error` says why. Called at start
     * if the configuration has the view type, otherwise at the first record. NULL: every view type will do.
     */
    enum sl_status (*accepts)(void *self, enum sl_view view, struct sl_error *error);

    /* ---- since 1.3 ---- */

    /* Tells what the rows of these items should be, see handlers/expect.h. SL_REJECT: they cannot be compared
     * with anything, as the route is configured; `error` says why. NULL: the handler cannot tell. */
    enum sl_status (*expect)(void *self, struct sl_expect *expect, struct sl_error *error);

    /* Says what is the matter with a row that is not, or may not be, what was expected. NULL: a row that is
     * absent is missing, one that should be absent is left over, any other one is different. */
    enum sl_status (*judge)(void *self, struct sl_judge *judge, struct sl_error *error);

    /* Finds the item that a row was made of. SL_REJECT: the row does not say. NULL: no row does, so that rows
     * which should not be there are not looked for. */
    enum sl_status (*trace)(void *self, struct sl_trace *trace, struct sl_error *error);

    /* Sets rows right that are not as the items say. Writes only where the row still is as it was seen; else
     * the record is SL_REJECT, code "Moved". Loses to every later change, and can be repeated. NULL: the
     * handler's rows cannot be repaired. */
    enum sl_status (*repair)(void *self, struct sl_slice *slice, struct sl_repair *repair,
                             struct sl_error *error);

    /* Is the end state a function of the items alone? Then `sluice backfill` may give the handler the items
     * that exist: records of SL_INSERT without an order, which are older than every change. SL_OK: it is, and
     * `out` is filled in. SL_REJECT: it is not, and `error` says why. NULL: it is not. */
    enum sl_status (*per_item)(void *self, struct sl_per_item *out, struct sl_error *error);

    /* ---- since 1.4 ---- */

    /* What changes cost. SL_REJECT: nobody can say, and `error` says why. NULL: the handler does not say. */
    enum sl_status (*price)(void *self, struct sl_price *price, struct sl_error *error);

    /* ---- since 1.5 ---- */

    /* Is the end state the same however late, however often and in whatever order the records are applied,
     * each at least once? Then a route of the handler may be set aside ("set_aside"): while its target is
     * down its records wait in a queue, and the other routes go on. SL_OK: it is, and `out` is filled in.
     * SL_REJECT: it is not, and `error` says why. NULL: it is not. */
    enum sl_status (*any_order)(void *self, struct sl_any_order *out, struct sl_error *error);
};

#define SL_HANDLER_ABI                                                                                       \
    {                                                                                                        \
        SL_ABI_MAJOR, SL_ABI_MINOR, (uint32_t)sizeof(struct sl_handler)                                      \
    }

#if defined(_WIN32)
#error "Sluice runs on Linux"
#endif
#define SL_EXPORT __attribute__((visibility("default")))

/* The one symbol: `SL_EXPORT const struct sl_handler SL_HANDLER = {SL_HANDLER_ABI, "mine", ...};` */
#define SL_HANDLER        sluice_handler
#define SL_HANDLER_SYMBOL "sluice_handler"

#ifdef __cplusplus
}
#endif

#endif
