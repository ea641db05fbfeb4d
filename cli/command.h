/* What a verb stands on: the flags that several verbs have, the environment, clock, log and sinks, the
 * configuration's pipeline, and the signals that ask it to stop. A verb adds its own flags, its plan and its
 * report. */
#ifndef SL_CLI_COMMAND_H
#define SL_CLI_COMMAND_H

#include "cli/flags.h"
#include "handlers/pipeline/pipeline.h"
#include "sinks/target.h"

#include <signal.h>

/* Zeroed, except for what the caller sets. */
struct sl_command {
    const char *verb;         /* for messages */
    const char *config;       /* the configuration */
    const char *handler_path; /* NULL: the usual places, see sl_paths_folders */
    const char *table, *region, *endpoint;

    /* From sl_command_begin to sl_command_end. */
    struct sl_arena *arena;
    struct sl_clock *clock;
    struct sl_vars vars; /* the environment's */
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_pipeline *pipeline; /* NULL: not opened */
};

/* The environment of this process. Borrowed. */
struct sl_vars sl_command_environment(void);

/* `*c` must not move until the end: the sinks know its log and vars. */
void sl_command_begin(struct sl_command *c);
/* Closes what is open. Zeroed memory, and a second call, are fine. */
void sl_command_end(struct sl_command *c);

/* Opens the pipeline of the configuration, for a function of this name. `openers`: NULL: the real targets. */
enum sl_status sl_command_open(struct sl_command *c, const char *function_name,
                               const struct sl_openers *openers, struct sl_error *error) SL_MUST_USE;

/* The target of --table, which is a name, an ARN, or a target already; --region and --endpoint-url go with
 * it. In the command's arena. */
const char *sl_command_table(const struct sl_command *c);

/* From now on SIGINT and SIGTERM ask the verb to stop (a second one ends the process at once), as do the
 * signals in `more`, up to a 0; NULL: none. `bell`: an eventfd that is written then, for who sleeps in a
 * poll; -1: none. */
void sl_command_heed_signals(int bell, const int *more);
/* Before the bell is closed. */
void sl_command_drop_bell(void);

/* Waits; ends early when a signal asks this process to stop. */
void sl_command_wait(int64_t ms);

/* Not 0: a signal asked this process to stop. */
extern volatile sig_atomic_t sl_command_stop;

#endif
