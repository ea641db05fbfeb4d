/* A pipeline for tests of dispatch: real configuration, host and dispatch, on a virtual clock; handlers that
 * do what a script says, and ports that keep in memory what they are given.
 *
 * Handlers "one", "two", "three" (repeatable), "once", "twice" (once-only), "window", and
 * "keeper", the same once-only; all but "three", "window" and "keeper" take records in any order. One with
 * the option "first": "refuse TEXT" does not open, and says TEXT. Record i of an event has sequence number
 * 1000 + i. */
#ifndef SL_TESTS_SUPPORT_RIG_H
#define SL_TESTS_SUPPORT_RIG_H

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/dispatch/dispatch.h"

#define RIG_RECORDS 10000

/* What a handler does with a record. */
enum rig_plan {
    RIG_GOOD = SL_OK,
    RIG_OUTAGE = SL_RETRY,
    RIG_POISON = SL_REJECT,
    RIG_BROKEN = SL_FATAL,
    RIG_MISUSE /* no status */
};

struct rig_handler {
    unsigned char plan[RIG_RECORDS];
    bool marks;       /* marks each record, and returns OK; else the worst of the slice is what it returns */
    unsigned outages; /* so many calls fail with RETRY first */
    int64_t takes_ms; /* of each call; it stops at the slice's deadline and returns RETRY */
    int filler;       /* a byte: its errors are filled with it, without an end; 0: they are not */
    size_t codes;     /* errors of record i have the code "Code", i % codes; 0: one code */
    int exits;        /* not 0: the first call of handle() calls exit() with this, -1: with 0 */
    bool misuses_together;  /* every call of more than one record marks one that does not exist */
    bool blames;            /* marks the poison alone, applies nothing beside it, and returns REJECT */
    bool silent;            /* its errors have neither code nor text */
    enum sl_status always;  /* not OK: what every call returns, whatever its records are */
    const char *code;       /* of its errors; NULL: "Planned" */
    unsigned refused_views; /* bits 1 << enum sl_view */

    /* What happened. */
    size_t calls, n_applied, n_given;
    size_t applied[4 * RIG_RECORDS]; /* in order */
    unsigned times[RIG_RECORDS];     /* applied */
    size_t largest;                  /* slice */
    size_t largest_bytes;
    unsigned last_attempt;
    int64_t last_begin_ms, deadline_ms;
    /* window */
    size_t windows, window_records;
    bool window_was_final;
    const char *new_state;                                   /* NULL: echoed */
    char window_start[40], window_end[40], window_state[40]; /* that it was given */
    enum sl_status window_status;
    unsigned window_outages; /* so many calls of window() fail with RETRY first */
    int64_t window_takes_ms; /* of each call of window() */
    int64_t remembers_s;     /* any_order(); -1: it is refused */
    int64_t epoch;           /* of the last slice */
    bool sends;              /* each call of handle() and window() sends a message to its option "to" */
};

enum { RIG_ONE, RIG_TWO, RIG_THREE, RIG_ONCE, RIG_TWICE, RIG_WINDOW, RIG_HANDLERS };

/* Ports of "mem:NAME" and "sqs:NAME" (queue) and "memo:NAME" (objects): what they took, and how they fail. */
struct rig_port {
    char name[32];
    enum sl_status status; /* of every operation while `failures` is above 0 */
    size_t failures;
    const char *code;  /* of these; NULL: "PortPlanned" */
    size_t *max_bytes; /* the open port's limit; 0: none */
    int64_t takes_ms;  /* of each call */
    size_t calls, n;
    char *bodies[RIG_RECORDS + 1];
    char *keys[RIG_RECORDS + 1]; /* objects; of messages: `dedupe` */
    size_t largest;              /* operations of one call */
};

#define RIG_PORTS 8

struct rig {
    struct sl_clock_virtual clock;
    struct sl_log log;
    struct sl_sinks sinks; /* first thing that openers get */
    struct sl_arena *arena;
    struct sl_pipeline *p;
    struct sl_batch batch;
    char *event;
    struct sl_answer answer;
    struct sl_invocation invocation;
    struct rig_handler handlers[RIG_HANDLERS];
    struct rig_port ports[RIG_PORTS];
    size_t n_ports;
    char *folder;
};

/* One at a time. `config` is sluice.json, with ' for " as json() takes it; the opening must succeed. */
struct rig *rig_new(const char *config);
/* The opening must fail, with `error`. Returns the number of ports that were opened before that. */
size_t rig_refused(const char *config, struct sl_error *error);
void rig_destroy(struct rig *rig);

/* An event of n records; record i is of item `key(i)` (NULL: each its own). */
void rig_event(struct rig *rig, size_t n, size_t (*key)(size_t));
/* The same with other members of the event: "'window':{...},'state':{...}". */
void rig_event_with(struct rig *rig, size_t n, size_t (*key)(size_t), const char *members);

/* Any event that has n records, with ' for ". */
void rig_event_text(struct rig *rig, const char *text, size_t n);

/* Dispatches the event, with so much time; what handlers and ports saw is kept and added to. */
void rig_run(struct rig *rig, int64_t time_ms);
/* Forgets what handlers and ports saw. */
void rig_forget(struct rig *rig);

struct rig_port *rig_port(struct rig *rig, const char *name);
/* What was logged since rig_keep_log; the caller frees it. */
void rig_keep_log(struct rig *rig);
char *rig_log(struct rig *rig);
/* The answer's body, followed by a NUL. */
const char *rig_body(struct rig *rig);
/* The answer's body must be this one, with ' for ". */
void rig_answers(struct rig *rig, const char *body);

#endif
