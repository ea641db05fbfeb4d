/* A deterministic simulation: the real dispatch and handlers run between the simulated event source mapping
 * and sinks in memory. Everything is drawn from one seed, the clock is virtual, and nothing is shared between
 * seeds. Read the files as a story:
 *
 *   plan.c      chooses the faults, the mapping and the configuration of this seed
 *   history.c   writes what happened to the items: changes, as stream records in shards
 *   run.c       runs the mapping over the shards, one invocation after the other
 *   probe.c     the test's own handlers, which run beside the built-in ones
 *   aside.c     the queues of routes that are set aside, and the drain beside the mapping
 *   sinks.c     where the handlers write: a bucket, queues and tables, with the planned faults
 *   table.c     a table in memory
 *   oracle.c    says what must be true: after each checkpoint, for each effect, and at the end
 *
 * The oracle knows what must be true from the history alone. It looks at changes, sinks and decisions, and
 * never asks the code under test. */
#ifndef SL_TESTS_SIMULATION_SIM_H
#define SL_TESTS_SIMULATION_SIM_H

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/dispatch/dispatch.h"
#include "esm/esm.h"

/* ---- the history ---- */

enum sim_route {
    SIM_ARCHIVE,
    SIM_REPLICA,
    SIM_TOTALS,
    SIM_VIEW,
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

/* One change of one item, and what happened to it. */
struct sim_change {
    unsigned item, shard;
    enum sl_event event;
    bool is_expiry;
    char id[48]; /* its sequence number */
    struct sl_span text;
    unsigned poison;    /* bits 1 << enum sim_route: the routes in which it can never succeed */
    int64_t created_ms; /* since 1970 */
    int64_t available_ms;
    struct sl_span image; /* the item after it; absent when it was removed */
    unsigned group;       /* of that image */
    int64_t cents;

    /* How often. `sent`: by NOTIFY, by ECHO. */
    unsigned archived, applied, sent[2], parked[SIM_ROUTES], aside[SIM_ROUTES];
    bool is_discarded;
};

/* What the ledger of the totals holds before the first change. */
enum sim_ledger {
    SIM_LEDGER_EMPTY,
    SIM_LEDGER_FOREIGN, /* it belongs to another table */
    SIM_LEDGER_OLDER    /* rows of an earlier epoch: the table was restored */
};

struct sim_item {
    char key[32];
    unsigned root;            /* the shard in which it began */
    bool lacks_total, exists; /* the totals refuse an item that lacks one, or that is hostile */
    const char *hostile;      /* a row of the totals' own, which the item names; NULL: none */
    bool has_nul;             /* before its key, and in a name */
    unsigned group, version;
    int64_t cents;
    struct sl_span image;
};

/* ---- faults ---- */

enum sim_port {
    SIM_PORT_ARCHIVE,
    SIM_PORT_REPLICA,
    SIM_PORT_TOTALS,
    SIM_PORT_VIEW,
    SIM_PORT_PROBE,
    SIM_PORT_QUEUE,
    SIM_PORT_ECHO,
    SIM_PORT_DLQ,
    SIM_PORT_BOX,   /* takes parked messages that are too large for the queue */
    SIM_PORT_ASIDE, /* takes letters */
    SIM_PORTS
};

enum sim_fault {
    SIM_WELL,         /* no fault */
    SIM_THROTTLE,     /* refused, not done */
    SIM_PARTIAL,      /* some of it refused */
    SIM_LOST,         /* done, the answer is lost */
    SIM_SLOW,         /* takes long */
    SIM_HANG,         /* until the deadline, not done */
    SIM_HANG_DONE,    /* until the deadline, done */
    SIM_CRASH_BEFORE, /* the process dies, not done */
    SIM_CRASH_AFTER,  /* the process dies, done */
    SIM_FAULTS
};

/* Random faults end after this time, so that a batch that needs ten calls without a fault in one invocation
 * succeeds before the stream drops its records. */
#define SIM_FAULTY_MS (2 * 3600 * 1000)

struct sim_plan {
    unsigned faults;                                            /* bits 1 << enum sim_fault of this seed */
    unsigned one_in[SIM_PORTS];                                 /* how many calls fail; 0: none */
    int64_t outage_from_ms[SIM_PORTS], outage_to_ms[SIM_PORTS]; /* every call is throttled */
    int broken;                  /* the enum sim_port that denies every call; -1: none */
    bool refuses_view;           /* a route cannot work with the stream's view type */
    unsigned lost_answer_one_in; /* the runtime's answer is lost */
    unsigned throttle_one_in;    /* the function is throttled */
    unsigned poison_one_in;
    bool is_uncertain;        /* an effect may have happened without its handler knowing */
    bool delivers_twice;      /* queues of letters do, now and then */
    uint64_t letter_delay_ms; /* at most, before a letter can be received */
    int probe_mode;           /* 0: all or nothing; 1: marks records; 2: one after another, without marks */
};

/* ---- sinks ---- */

struct sim_row {
    struct sl_span table, key, item; /* `table` is absent for the target's own table */
    bool is_gone;
};

#define SIM_ROWS 256

struct sim_table {
    struct sim_row rows[SIM_ROWS];
    size_t n;
};

struct sim_object {
    struct sl_span key, body;
};

#define SIM_OBJECTS 1024
#define SIM_WINDOWS 256

/* What a window's last call reported. */
struct sim_window {
    char name[64]; /* of the first record that it counted */
    int64_t n;
};

/* A message in a queue of letters. Its place in `letters` is its ID. */
struct sim_letter {
    struct sl_span body;
    enum sim_route route;
    int64_t visible_ms;
    bool is_gone;
};

#define SIM_LETTERS 4096

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
    unsigned routes;        /* bits 1 << enum sim_route */
    unsigned aside, paused; /* of them, those with set_aside, and with paused */
    size_t dlq_bytes;       /* the queue's limit for a parked message; 0: larger ones have no box */
    bool guards_aside;      /* the replica's guards are in their own table */
    unsigned sub_counters;
    enum sim_ledger ledger;
    bool has_lists;                  /* the view */
    bool keeps_expired;              /* the totals keep what TTL removes */
    bool has_members;                /* different values and members are counted too, and empty rows go */
    bool has_delta;                  /* an earlier process was killed before its fold */
    int64_t group_cents[SIM_GROUPS]; /* what the earlier epoch counted of items that have no change */
    int64_t group_items[SIM_GROUPS];
    size_t enabled_again; /* the change from which on the stream has another label */
    bool parks,
        reports; /* on_failure names a queue; ReportBatchItemFailures is on, in mapping and function */
    struct sl_esm_settings settings;
    int64_t timeout_ms;

    struct sl_pipeline *p;
    bool has_crashed; /* in this invocation: nothing has an effect from then on */
    bool is_draining; /* what runs is the drain's process */
    struct sim_drain *drain;
    struct sl_answer answer;
    struct sim_table replica, totals, rows;
    struct sim_object objects[SIM_OBJECTS];
    size_t n_objects;
    struct sim_window windows[SIM_WINDOWS];
    size_t n_windows;
    struct sim_letter letters[SIM_LETTERS];
    size_t n_letters;
    uint64_t invocations;

    char violation[400]; /* the first one; empty: none */
};

/* 0 to below - 1. */
static inline uint64_t sim_draw(struct sim *s, uint64_t below)
{
    return sl_random_step(&s->chance) % below;
}

/* Notes that something is not true that must be true. */
void sim_violation(struct sim *s, const char *format, ...) SL_PRINTF(2, 3);

/* history.c */
void sim_write_history(struct sim *s);
/* The text in the buffer with ' turned into ", in the seed's arena. Cleans the buffer up. */
struct sl_span sim_json(struct sim *s, struct sl_buffer *b);
struct sim_change *sim_change_of(struct sim *s, struct sl_span id);

/* plan.c */
void sim_choose_plan(struct sim *s);
void sim_write_config(struct sim *s);

/* sinks.c, table.c */
extern const struct sl_openers sim_openers;
/* The fault that a call of the port meets; the clock moves by the call's duration. */
enum sim_fault sim_meets(struct sim *s, enum sim_port port, int64_t deadline_ms);
bool sim_fault_is_done(enum sim_fault fault);
/* A call of a table: `results` has one entry for each operation. */
struct sim_table_call {
    enum sim_port port;
    const struct sl_table_op *ops;
    size_t n;
    struct sl_result *results;
    const struct sl_call *call;
};
void sim_table_apply(struct sim *s, const struct sim_table_call *c);
struct sl_value sim_attribute(struct sl_span item, const char *name);
/* The next row after `after` (NULL: the first row) in that table whose key contains the text. */
const struct sim_row *sim_find_row(const struct sim_table *table, const char *name, const char *part_of_key,
                                   const struct sim_row *after);

/* ledger.c: the ledger before the first change. What a group is called: it holds a newline, a NUL, quotes. */
extern const char *const sim_groups[SIM_GROUPS];
void sim_write_ledger(struct sim *s);
/* A ledger of another table is as it was. */
void sim_check_ledger(struct sim *s);

/* aside.c */
extern const char *const sim_route_names[SIM_ROUTES];
/* The route that a parked message or letter names; SIM_ROUTES: none. */
enum sim_route sim_route_in(struct sl_span message);
/* The change of the next record in the text, from *at on; NULL: none. */
struct sim_change *sim_next_change(struct sim *s, struct sl_span text, size_t *at);
void sim_keep_letter(struct sim *s, struct sl_span body);
/* Now and then an event of the drain, at the time of a call of a sink. */
void sim_drain_beside(struct sim *s);
void sim_drain_all(struct sim *s);
void sim_drain_clean_up(struct sim *s);

/* probe.c */
extern const struct sl_handler *const sim_handlers[];
extern struct sim *sim_now; /* the seed that is running */

/* oracle.c */
/* Records may be given up: the fault of this seed never ends, and holds their route. */
bool sim_gives_up(const struct sim *s);
bool sim_is_durable(const struct sim *s, const struct sim_change *c, enum sim_route route);
void sim_check_done(struct sim *s, const struct sl_esm_record *const *records, size_t n);
void sim_check_discard(struct sim *s, const struct sl_esm_discard *discard);
void sim_check_applied(struct sim *s, const struct sim_change *change, enum sim_route route);
void sim_check_end(struct sim *s);

/* run.c */
struct sl_pipeline *sim_open_pipeline(struct sim *s, struct sl_log *log);
/* Runs one seed; `violation` is the first one, or empty. */
void sim_run(struct sim *s, uint64_t seed, int config_fd);
void sim_clean_up(struct sim *s);

#endif
