/* Outages of targets in a replay (--outage), on its virtual clock: which routes' targets are down when, the
 * queues into which routes with "set_aside" put their letters, as SQS has them, and the drain's event source
 * mappings, with the drain in processes of its own. */
#ifndef SL_CLI_OUTAGES_H
#define SL_CLI_OUTAGES_H

#include "cli/flags.h"
#include "live/sandbox/runner.h"

struct sl_outages;

struct sl_outages_options {
    const char *config;               /* a path */
    const struct sl_flag_list *specs; /* "ROUTE@A-B": from A to B, in seconds since the beginning */
    struct sl_runner_options runner;  /* of the replay: its configuration is replaced by sl_outages_config */
    int64_t invocation_ms;            /* how long an event of letters takes */
    struct sl_arena *arena;           /* outlives it */
};

/* SL_REJECT: the specs are wrong, or name routes that are not there. */
enum sl_status sl_outages_open(const struct sl_outages_options *options, struct sl_outages **out,
                               struct sl_error *error) SL_MUST_USE;
void sl_outages_close(struct sl_outages *o); /* NULL is fine */

/* The configuration for the replay's own processes: in it letters go to this queue. */
const char *sl_outages_config(const struct sl_outages *o);

/* An invocation of the replay begins: its process finds the targets as they are now. */
void sl_outages_begin(struct sl_outages *o, int64_t now_ms, struct sl_runner *runner);
/* It is over: takes the letters that it wrote. */
void sl_outages_collect(struct sl_outages *o, int64_t now_ms);

/* When the drain takes letters next; INT64_MAX: it has none to take. */
int64_t sl_outages_due_ms(const struct sl_outages *o);
/* Does that. */
void sl_outages_drain(struct sl_outages *o, int64_t now_ms);

/* Lines for the summary, in the arena. */
const char *sl_outages_text(const struct sl_outages *o);
/* Letters that wait still, when nothing is due any more. */
size_t sl_outages_left(const struct sl_outages *o);

#endif
