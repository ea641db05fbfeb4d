/* The handlers on a stage: real configuration, host, dispatch, handlers and sinks, in a folder of its own and
 * on a virtual clock; sinks may fail by chance, from a seed, before they write or after.
 *
 * In the configuration ${DIR} is the folder. What STAGE_TIME_S says is the time at the beginning. */
#ifndef SL_TESTS_SUPPORT_STAGE_H
#define SL_TESTS_SUPPORT_STAGE_H

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/dispatch/dispatch.h"

#define STAGE_TIME_S 1700000000

/* What becomes of a call of a sink. */
enum stage_fate { STAGE_WELL, STAGE_FAILS_BEFORE, STAGE_FAILS_AFTER };

struct stage {
    struct sl_sinks sinks; /* first: openers find the stage by it */
    struct sl_clock_virtual clock;
    struct sl_log log;
    struct sl_vars vars;
    const char *list[16];
    char *folder, *config_path, *log_path;
    struct sl_pipeline *p;
    struct sl_arena *arena;
    struct sl_answer answer; /* of the last delivery */
    size_t n;                /* records of it */
    uint64_t chance;         /* the seed of what fails */
    unsigned one_in;         /* operations fails, half of them after they took effect; 0: none does */
    size_t failures;         /* so far */
    bool refuses_groups; /* tables refuse every transaction as a whole, and do not say which test failed */
    size_t groups,
        largest_group; /* transactions that tables were asked for, and the most operations of one */
    struct {
        size_t writes, reads; /* operations, a transaction's one by one */
        double write_units, read_units;
    } spent;         /* on tables, if all rows are small */
    int64_t time_ms; /* of an invocation */
    enum stage_fate (*at_table)(
        struct stage *s); /* asked before each call of a table; NULL: goes by chance */
    /* What a call of a table answered may be changed; NULL: it stays. */
    void (*after_table)(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results);
    /* Answers a call in place of the table, which is not asked then; false: it is. NULL: it always is. */
    bool (*for_table)(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results);
    void *context; /* of these three */
};

/* `config` is sluice.json, with ' for " as json() takes it. `variables`: "NAME=value" strings for targets and
 * configuration, NULL-terminated; NULL: none. */
struct stage *stage_new(const char *config, const char *const *variables);
/* Another process: everything that the handlers hold in memory is new. NULL: with the same configuration. */
void stage_reopen(struct stage *s, const char *config);
/* The opening must fail, with an error that contains `text`. */
void stage_refused(const char *config, const char *text);
void stage_destroy(struct stage *s);

/* Delivers the payload, which stays alive until the next delivery: the answer is in `answer`. */
void stage_deliver(struct stage *s, struct sl_span payload);
/* Delivers an event, with ' for "; every record must be done with after it. */
void stage_deliver_all(struct stage *s, const char *event);

/* The lowest record that is delivered again, `n` when all are done; 0 after a function error. */
size_t stage_checkpoint(const struct stage *s);

/* Delivers as an event source mapping would, until all is done, at most `times` times; returns whether it is.
 */
bool stage_drive(struct stage *s, const char *event, unsigned times);

/* What `sql` selects from ${DIR}/`file`, one line a row, columns with '|' between; the caller frees it. */
char *stage_query(const struct stage *s, const char *file, const char *sql);

/* Runs `sql` on the same, as another program would. */
void stage_change(const struct stage *s, const char *file, const char *sql);

/* All objects below ${DIR}/`folder`, expanded when gzip, in the order of their names, one after the other;
 * `names` (may be NULL) receives their names, one a line. The caller frees both. */
char *stage_objects(const struct stage *s, const char *folder, char **names);

/* The text of a file (NULL if it does not exist), and of the log. The caller frees them. */
char *stage_file(const struct stage *s, const char *name);
char *stage_log(struct stage *s);

#endif
