#include "runtime/contain.h"

#include "base/arena.h"
#include "base/span.h"
#include "runtime/holds.h"
#include "runtime/trials.h"

#include <stdlib.h>

struct suspect {
    struct sl_hold_name name;
    bool is_judged;  /* it has been tried, to some end */
    bool is_cleared; /* and is none any more */
};

struct sl_contain {
    struct sl_watch watch; /* first: the pipeline's pointer is this one's */
    struct sl_log *log;
    struct sl_holds *holds;
    struct sl_trials *trials;
    struct sl_arena *arena;
    const char *route; /* whose handler held the suspects */
    struct suspect *suspects;
    size_t n, unjudged, uncleared;
    const struct sl_batch *batch;
};

static int by_name(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct sl_hold_name));
}

static struct sl_contain *self_of(struct sl_watch *watch)
{
    return (struct sl_contain *)watch;
}

static struct suspect *find(struct sl_contain *c, const struct sl_record *record)
{
    struct sl_hold_name name;
    sl_hold_name(record, &name);
    return bsearch(&name, c->suspects, c->n, sizeof(*c->suspects), by_name);
}

/* ---- the watch ---- */

static void contain_enter(struct sl_watch *watch, const char *route, const struct sl_record *const *records,
                          size_t n)
{
    sl_holds_enter(self_of(watch)->holds, route, records, n);
}

static void contain_leave(struct sl_watch *watch)
{
    sl_holds_leave(self_of(watch)->holds);
}

static void contain_begin(struct sl_watch *watch, const struct sl_batch *batch, const char *request_id)
{
    struct sl_contain *c = self_of(watch);
    c->batch = batch;
    sl_trials_begin(c->trials, batch, request_id);
}

static bool contain_is_suspect(struct sl_watch *watch, const char *route, const struct sl_record *record)
{
    struct sl_contain *c = self_of(watch);
    if (strcmp(route, c->route) != 0)
        return false;
    const struct suspect *suspect = find(c, record);
    return suspect && !suspect->is_cleared;
}

/* Nobody is left to suspect, or nothing left to try with. */
static void relax(struct sl_contain *c)
{
    c->watch.has_suspects = false;
    sl_trials_close(c->trials);
    c->trials = NULL;
}

/* A record that the handler has dealt with is one like any other from then on. Another may come again, and
 * must not be given to the handler here. */
static void take(struct sl_contain *c, struct suspect *suspect, const struct sl_trial *trial)
{
    bool is_dealt_with =
        trial->end == SL_TRIAL_RETURNED && (trial->status == SL_OK || trial->status == SL_REJECT);
    if (is_dealt_with && !suspect->is_cleared) {
        suspect->is_cleared = true;
        c->uncleared--;
    }
    if ((is_dealt_with || trial->end == SL_TRIAL_CRASHED) && !suspect->is_judged) {
        suspect->is_judged = true;
        if (--c->unjudged == 0)
            sl_holds_leave(c->holds);
    }
    if (c->uncleared == 0)
        relax(c);
}

static void contain_try_alone(struct sl_watch *watch, const struct sl_trial_order *order,
                              struct sl_trial *out)
{
    struct sl_contain *c = self_of(watch);
    struct suspect *suspect = find(c, sl_batch_record(c->batch, order->index));
    sl_trials_run(c->trials, order, out);
    if (out->end != SL_TRIAL_UNABLE) {
        take(c, suspect, out);
    } else {
        sl_log(c->log, SL_WARN,
               "a record cannot be tried in a process of its own: it is given to the handler here");
        relax(c);
    }
}

/* ---- opening ---- */

/* What the process before this one held. */
static void suspect(struct sl_contain *c, const struct sl_settings *settings)
{
    const char *route;
    const struct sl_hold_name *names;
    c->n = sl_holds_left(c->holds, &route, &names);
    if (!c->n)
        return;
    c->unjudged = c->uncleared = c->n;
    c->route = sl_arena_copy(c->arena, sl_span_str(route));
    c->suspects = sl_arena_zalloc(c->arena, c->n * sizeof(*c->suspects));
    for (size_t i = 0; i < c->n; i++)
        c->suspects[i].name = names[i];
    qsort(c->suspects, c->n, sizeof(*c->suspects), by_name);
    c->trials = sl_trials_open(settings, c->log);
    c->watch.has_suspects = c->trials != NULL;
    sl_log(c->log, SL_WARN,
           "the process before this one ended in the handler of route %s, which held %zu records; they are "
           "given to it one by one in a process of its own, to find the one to blame",
           c->route, c->n);
}

struct sl_contain *sl_contain_open(const struct sl_settings *settings, struct sl_log *log)
{
    struct sl_error error = {.offset = SL_NO_OFFSET};
    struct sl_holds *holds;
    if (sl_holds_open(settings->temp_folder, &holds, &error) != SL_OK) {
        sl_log(log, SL_WARN, "a record that a handler dies of will not be found: %s", error.text);
        return NULL;
    }
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_contain *c = sl_arena_zalloc(arena, sizeof(*c));
    *c = (struct sl_contain){
        .watch = {.enter = contain_enter,
                  .leave = contain_leave,
                  .begin = contain_begin,
                  .is_suspect = contain_is_suspect,
                  .try_alone = contain_try_alone},
        .log = log,
        .holds = holds,
        .arena = arena,
    };
    suspect(c, settings);
    return c;
}

void sl_contain_close(struct sl_contain *c)
{
    if (!c)
        return;
    sl_trials_close(c->trials);
    sl_holds_close(c->holds);
    sl_arena_destroy(c->arena);
}

struct sl_watch *sl_contain_watch(struct sl_contain *c)
{
    return c ? &c->watch : NULL;
}
