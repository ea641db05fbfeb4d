/* A deterministic simulation: one seed is one history of items, one configuration, one mapping, one plan of
 * faults, and one run of the real dispatch and handlers between the event source mapping's simulator and
 * sinks in memory. What must be true is known from the history alone: the oracle looks at changes, sinks and
 * decisions, and never asks the code under test.
 *
 * Everything is drawn from the seed; the clock is virtual; nothing is shared between seeds. */
#ifndef SL_TESTS_SIMULATION_SIM_H
#define SL_TESTS_SIMULATION_SIM_H

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/dispatch.h"
#include "replay/esm.h"

/* ---- the history ---- */

enum sim_route {
    SIM_ARCHIVE,
    SIM_REPLICA,
    SIM_TOTALS,
    SIM_PROBE,
    SIM_NOTIFY,
    SIM_ECHO,
    SIM_WINDOW,
    SIM_ROUTES
};

#define SIM_CHANGES 96
#define SIM_ITEMS   8
#define SIM_SHARDS  9
#define SIM_GROUPS  3

/* One change of one item, and what became of it. */
struct sim_change {
    unsigned item, shard;
    enum sl_event event;
    bool is_expiry;
    char id[48]; /* its sequence number */
    struct sl_span text;
    unsigned poison;    /* bits 1 << enum sim_route: never succeeds there */
    int64_t created_ms; /* since 1970 */
    int64_t available_ms;
    struct sl_span image; /* the item's after it; absent when removed */

    unsigned archived, applied, sent[2], parked[SIM_ROUTES]; /* sent: by NOTIFY, by ECHO */
    bool is_discarded;
};

struct sim_item {
    char key[32];
    unsigned root; /* shard it began in */
    bool lacks_total, exists;
    unsigned group, version;
    int64_t cents;
    struct sl_span image;
};

/* ---- faults ---- */

enum sim_port {
    SIM_PORT_ARCHIVE,
    SIM_PORT_REPLICA,
    SIM_PORT_TOTALS,
    SIM_PORT_PROBE,
    SIM_PORT_QUEUE,
    SIM_PORT_ECHO,
    SIM_PORT_DLQ,
    SIM_PORT_BOX, /* takes what is too large for the queue */
    SIM_PORTS
};

enum sim_fault {
    SIM_WELL,
    SIM_THROTTLE,     /* refused, not done */
    SIM_PARTIAL,      /* some of it refused */
    SIM_LOST,         /* done, the answer is lost */
    SIM_SLOW,         /* takes its time */
    SIM_HANG,         /* till the deadline, not done */
    SIM_HANG_DONE,    /* till the deadline, done */
    SIM_CRASH_BEFORE, /* the process dies, not done */
    SIM_CRASH_AFTER,  /* the process dies, done */
    SIM_FAULTS
};

/* Faults by chance end after this: a batch that needs ten calls to go well in one invocation is to get there
 * before the stream forgets it. */
#define SIM_FAULTY_MS (2 * 3600 * 1000)

struct sim_plan {
    unsigned faults;                                            /* bits 1 << enum sim_fault of this seed */
    unsigned one_in[SIM_PORTS];                                 /* a call fails; 0: never */
    int64_t outage_from_ms[SIM_PORTS], outage_to_ms[SIM_PORTS]; /* every call is throttled */
    int broken;                  /* enum sim_port that denies everything for ever; -1: none */
    bool refuses_view;           /* a route cannot be served by the stream's view type */
    unsigned lost_answer_one_in; /* the runtime's answer never arrives */
    unsigned throttle_one_in;    /* the function is throttled */
    unsigned poison_one_in;
    bool is_uncertain; /* some effect may have been done that nobody knows of */
    int probe_mode;    /* 0 all or nothing; 1 marks; 2 one after another, unmarked */
};

/* ---- sinks ---- */

struct sim_row {
    struct sl_span table, key, item; /* table: absent is the target's own */
    bool is_gone;
};

#define SIM_ROWS 96

struct sim_table {
    struct sim_row rows[SIM_ROWS];
    size_t n;
};

struct sim_object {
    struct sl_span key, body;
};

#define SIM_OBJECTS 1024
#define SIM_WINDOWS 256

/* What a window's last call said. */
struct sim_window {
    char name[64]; /* the first record that it counted */
    int64_t n;
};

struct sim {
    uint64_t seed, chance;
    struct sl_clock_virtual clock;
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_arena *arena; /* the seed's */
    struct sl_arena *call;  /* the invocation's */
    int config_fd;          /* a file in memory that holds sluice.json */
    struct sl_span config;

    enum sl_view view;
    size_t n_items, n_changes, n_shards;
    struct sim_item items[SIM_ITEMS];
    struct sim_change changes[SIM_CHANGES];
    struct sl_esm_shard shards[SIM_SHARDS];
    struct sl_esm_record *records[SIM_SHARDS];

    struct sim_plan plan;
    unsigned routes;   /* bits 1 << enum sim_route */
    size_t dlq_bytes;  /* of a parked message; 0: no box behind the queue is needed */
    bool guards_aside; /* the replica's guards stand in a table of their own */
    unsigned sub_counters;
    bool parks, reports; /* on_failure names a queue; ReportBatchItemFailures on both sides */
    struct sl_esm_settings settings;
    int64_t timeout_ms;

    struct sl_pipeline *p;
    bool has_crashed; /* in this invocation: nothing has an effect any more */
    struct sl_answer answer;
    struct sim_table replica, totals;
    struct sim_object objects[SIM_OBJECTS];
    size_t n_objects;
    struct sim_window windows[SIM_WINDOWS];
    size_t n_windows;
    uint64_t invocations;

    char violation[400]; /* the first; empty: none */
};

/* 0 to below - 1. */
static inline uint64_t sim_draw(struct sim *s, uint64_t below)
{
    return sl_random_step(&s->chance) % below;
}

void sim_violation(struct sim *s, const char *format, ...) SL_PRINTF(2, 3);

/* history.c: items, changes, shards with their records. */
void sim_history(struct sim *s);
struct sim_change *sim_change_of(struct sim *s, struct sl_span id);

/* plan.c: faults, mapping, sluice.json. */
void sim_choose(struct sim *s);
void sim_write_config(struct sim *s);

/* sinks.c, table.c */
extern const struct sl_openers sim_openers;
/* What a call of the port meets, and how long it takes. With PARTIAL each part asks sim_part_fails. */
enum sim_fault sim_meets(struct sim *s, enum sim_port port, int64_t deadline_ms);
bool sim_fault_is_done(enum sim_fault fault);
void sim_table_apply(struct sim *s, enum sim_port port, const struct sl_table_op *ops, size_t n,
                     struct sl_result *results, const struct sl_call *call);
struct sl_value sim_attribute(struct sl_span item, const char *name);
/* The next row of that table behind `after` (NULL: from the first) whose key holds the text. */
const struct sim_row *sim_find_row(const struct sim_table *table, const char *name, const char *part_of_key,
                                   const struct sim_row *after);

/* probe.c: the test's own handlers. */
extern const struct sl_handler *const sim_handlers[];
extern struct sim *sim_now; /* the seed that runs */

/* oracle.c */
void sim_check_done(struct sim *s, const struct sl_esm_record *const *records, size_t n);
void sim_check_discard(struct sim *s, const struct sl_esm_discard *discard);
void sim_check_applied(struct sim *s, const struct sim_change *change, enum sim_route route);
void sim_check_end(struct sim *s);

/* run.c: the whole of one seed; `violation` says the first of them, or nothing. */
void sim_run(struct sim *s, uint64_t seed, int config_fd);
void sim_clean_up(struct sim *s);

#endif
