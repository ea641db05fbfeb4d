/* Writing a handler for Sluice: this header is the manual.
 *
 * A handler is one file that exports one symbol, SL_HANDLER, and links nothing of ours: everything it needs
 * comes through struct sl_host, the table that open() gets. The built-in handlers see nothing more than this.
 * `sluice new-handler NAME` writes a first one, with numbered places to change.
 *
 * Configuration. A route of sluice.json names the handler by its file, my_handler.so on the handler path:
 *     {"name": "mine", "handler": "my_handler", "threshold": 10, "on_failure": "sqs://failed"}
 * Its options are the rows of its own table (struct sl_option); what is misspelt, missing or out of bounds is
 * refused before the first event. A handler may write to any sink that its options name.
 *
 * Slices. handle() gets an array of records of one batch, in stream order: those that match the route's
 * `when`. Slices may be cut, by max_records, max_bytes and when a rejection has to be found.
 *
 * Records. A record is one change of one item: an event (SL_INSERT, SL_MODIFY, SL_REMOVE), Keys, and, as the
 * stream's view type has them, the item before (SL_OLD_IMAGE) and after (SL_NEW_IMAGE). host->record_... look
 * into it, host->value_... into an attribute's value, host->record_diff walks over what changed. Names are
 * spans: struct sl_value total = host->record_attribute(record, SL_NEW_IMAGE, SL_LIT("total")); if
 * (total.type == SL_N && host->value_int64(total, &cents)) ...
 *
 * Outcomes, of the call and of single records:
 *   - SL_OK      durable: every record that is not marked otherwise.
 *   - SL_RETRY   the outside world failed, nobody's fault. Tried again while time allows, then by the event
 *                source.
 *   - SL_REJECT  this record can never succeed. Unmarked records of a call that returned it are unknown,
 *                and are tried again in halves. A single one that is rejected goes to `on_failure`.
 *   - SL_FATAL   nothing can succeed here: access denied, no such table. Stops the route with one error.
 *
 * Marks. host->mark() says of one record what became of it; unmarked records take what handle() returns. A
 * record marked SL_OK is not given again, so that a slice that half succeeded moves forward.
 *
 * Repeats. Every record may come more than once, also after success (delivery is at least once), but never a
 * later change of an item before an earlier one that failed. Make effects repeatable, or set SL_ONCE_ONLY:
 * such a handler is called only for records that the answer will not ask for again, after all other routes,
 * and should mark what it has done, since whatever is not marked comes again.
 *
 * Memory. Records, and all views of them, live until handle() returns; what host->alloc puts on
 * slice->arena, until the batch is answered; on the route's arena (route_arena), as long as the handler.
 * Nothing needs freeing. What has to outlive its arena is copied: host->join(arena, &span, 1).
 *
 * Threads and time. One thread, of which none may be left running when handle() returns. slice->deadline_ms
 * (on host->now_ms) already leaves time to report: stop before it, and return SL_RETRY for what is left.
 *
 * Processes. A handler does not end the process, nor close descriptors or change signals that it did not open
 * or set. One that dies of a signal takes the process with it: docs/PLUGINS.md says how the record is found.
 *
 * ABI. Fields of the structs that begin with struct sl_abi are only appended, and `size` tells which are
 * there. The structs that stand in arrays (sl_option, sl_result, sl_object, sl_table_op, sl_message and what
 * they point to) keep their layout as long as the major number. Changelog:
 *   1.0  the first.
 */
#ifndef SL_HANDLERS_HANDLER_H
#define SL_HANDLERS_HANDLER_H

#include "handlers/host_table.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_ABI_MAJOR 1u
#define SL_ABI_MINOR 0u

/* ---- options ---- */

enum sl_option_type {
    SL_OPTION_END = 0,
    SL_OPTION_TEXT,
    SL_OPTION_INTEGER, /* within min..max */
    SL_OPTION_BOOL,
    SL_OPTION_ENUM,     /* one of `values`: "record|item" */
    SL_OPTION_TEMPLATE, /* text with {places}, compiled */
    SL_OPTION_WHEN,     /* a condition object as in a route's "when", compiled */
    SL_OPTION_JSON,     /* any JSON; the handler reads it */
    SL_OPTION_OBJECTS,  /* a target, opened: object store */
    SL_OPTION_TABLE,    /* table */
    SL_OPTION_QUEUE     /* queue */
};

#define SL_OPTION_REQUIRED 1u
#define SL_OPTION_SECRET   2u /* never printed */

/* One row per option: the parser, `sluice check`, the docs, the JSON Schema and the refusal of unknown keys
 * come from it. A route's members and those in its "options" object are the same thing. */
struct sl_option {
    const char *name;
    enum sl_option_type type;
    unsigned flags;
    int64_t min, max;     /* INTEGER; both 0: any */
    const char *values;   /* ENUM */
    const char *fallback; /* the default, as text; NULL: absent */
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
    unsigned attempt;       /* 0 at the first call with these records in this batch */
};

/* A tumbling window's event. What goes back is a function of `state` and `records` alone: when the answer's
 * checkpoint turns out lower, window() is called once more with the same state and fewer records. */
struct sl_window {
    struct sl_abi abi;
    struct sl_span start, end; /* "2020-07-30T17:00:00Z" */
    struct sl_span state;      /* JSON text, {} at the window's beginning */
    struct sl_span new_state;  /* set by the handler, in `arena`: an object of 1 MB at most, which comes back
                                  as the next event's `state`. Absent: `state` is echoed */
    bool is_final, is_terminated_early;
    struct sl_arena *arena;
    int64_t deadline_ms;
    const struct sl_record *const *records; /* those the route was given and the answer takes as done: they
                                               will not come again. Parked ones are not among them */
    size_t n;
};

/* In `flags`: effects that cannot be repeated, called only below the checkpoint that the answer will set. */
#define SL_ONCE_ONLY 1u

struct sl_handler {
    struct sl_abi abi; /* SL_HANDLER_ABI */
    const char *name;
    const char *summary;             /* one line */
    unsigned flags;                  /* SL_ONCE_ONLY */
    size_t max_records;              /* of a slice; 0: the whole batch */
    size_t max_bytes;                /* of a slice's records together; 0: no limit */
    const struct sl_option *options; /* ends with a row of type SL_OPTION_END; NULL: none */

    /* Once, before the first event; options are there, targets opened. What it puts in `*self` comes back in
     * all others. NULL: nothing to do. A failure is an init error: `error` says why. */
    enum sl_status (*open)(const struct sl_host *host, struct sl_route *route, void **self,
                           struct sl_error *error);

    /* See above. `error` is optional detail for what it returns; a mark may carry its own. Required. */
    enum sl_status (*handle)(void *self, struct sl_slice *slice, struct sl_error *error);

    /* Each event of a tumbling window, after handle(); also when the event holds no record. One route at most
     * has it. A failure fails the event. NULL: the state is echoed. */
    enum sl_status (*window)(void *self, struct sl_window *window, struct sl_error *error);

    /* At the end of the process, if that comes in order. NULL: nothing to do. */
    void (*close)(void *self);

    /* Does a record of this view type give the handler what it needs? Says why not in `error`. Asked at start
     * where the configuration tells the view type, else at the first record. NULL: every view type will do.
     */
    enum sl_status (*accepts)(void *self, enum sl_view view, struct sl_error *error);
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
