/* Containment as dispatch's watch: who is suspect, and what each trial proves. */
#include "runtime/contain/contain.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/span.h"
#include "runtime/contain/holds.h"
#include "runtime/contain/trials.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

/* A kill and a time-out may have had a reason that passes: so long they are not looked at again. */
#define PROOF_MS (5 * 60 * 1000)

struct suspect {
    struct sl_hold_bad name;      /* first: they are sorted by it */
    bool is_judged;               /* a trial has settled it */
    bool is_cleared;              /* and it is not suspect any more */
    const struct sl_trial *proof; /* it is at fault; NULL: not proven */
    int64_t proven_ms;
};

struct sl_contain {
    struct sl_call_watch watch; /* first: the pipeline's pointer is this one's */
    struct sl_log *log;
    struct sl_clock *clock;
    struct sl_holds *holds;
    struct sl_trials *trials;
    struct sl_arena *arena;
    struct suspect *suspects;
    size_t n, unjudged, uncleared;
    const struct sl_batch *batch;
    struct sl_owned owned[SL_CONTAIN_OWNED], connection;
    size_t n_owned;
};

static int by_name(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct sl_hold_bad));
}

static struct sl_contain *self_of(struct sl_call_watch *watch)
{
    return (struct sl_contain *)watch;
}

static struct suspect *find(struct sl_contain *c, const char *route, const struct sl_record *record)
{
    struct sl_hold_bad name;
    sl_holds_bad_name(route, record, &name);
    return bsearch(&name, c->suspects, c->n, sizeof(*c->suspects), by_name);
}

/* ---- the watch ---- */

static void contain_enter(struct sl_call_watch *watch, const char *route,
                          const struct sl_record *const *records, size_t n)
{
    sl_holds_enter(self_of(watch)->holds, route, records, n);
}

static void contain_leave(struct sl_call_watch *watch)
{
    sl_holds_leave(self_of(watch)->holds);
}

bool sl_contain_is_whole(const struct sl_contain *c)
{
    bool is_whole = sl_owned_is_whole(&c->connection);
    for (size_t i = 0; i < c->n_owned; i++)
        is_whole = is_whole && sl_owned_is_whole(&c->owned[i]);
    return is_whole;
}

void sl_contain_own_all(struct sl_contain *c)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    c->n_owned = 0;
    while (folder && (entry = readdir(folder)) && c->n_owned < SL_CONTAIN_OWNED) {
        long fd = strtol(entry->d_name, NULL, 10);
        if (fd > STDOUT_FILENO && fd != dirfd(folder))
            c->owned[c->n_owned++] = sl_owned_note((int)fd);
    }
    if (folder)
        closedir(folder);
    else
        c->owned[c->n_owned++] = sl_owned_note(c->log->fd);
}

void sl_contain_own_connection(struct sl_contain *c, int fd)
{
    c->connection = sl_owned_note(fd);
}

static bool contain_is_whole(struct sl_call_watch *watch)
{
    return sl_contain_is_whole(self_of(watch));
}

static void contain_begin(struct sl_call_watch *watch, const struct sl_batch *batch, const char *request_id,
                          const char *trace_id)
{
    struct sl_contain *c = self_of(watch);
    c->batch = batch;
    sl_trials_begin(c->trials, batch, request_id, trace_id);
}

static bool contain_is_suspect(struct sl_call_watch *watch, const char *route, const struct sl_record *record)
{
    const struct suspect *suspect = find(self_of(watch), route, record);
    return suspect && !suspect->is_cleared;
}

/* No suspect is left, or no trial can be made any more. */
static void relax(struct sl_contain *c)
{
    c->watch.has_suspects = false;
    for (size_t i = 0; i < c->n_owned; i++) /* we close this one, not a handler */
        if (c->owned[i].fd == sl_trials_fd(c->trials))
            c->owned[i].fd = -1;
    sl_trials_close(c->trials);
    c->trials = NULL;
}

static void judge(struct sl_contain *c, struct suspect *suspect)
{
    if (suspect->is_judged)
        return;
    suspect->is_judged = true;
    if (--c->unjudged == 0)
        sl_holds_leave(c->holds);
}

/* A record that the handler has dealt with is one like any other from now on. Any other suspect may be
 * delivered again, and must still not be given to the handler in this process. */
static void take(struct sl_contain *c, struct suspect *suspect, const struct sl_trial *trial)
{
    bool is_dealt_with =
        trial->end == SL_TRIAL_RETURNED && (trial->status == SL_OK || trial->status == SL_REJECT);
    if (!is_dealt_with || !suspect)
        return;
    if (!suspect->is_cleared) {
        suspect->is_cleared = true;
        c->uncleared--;
    }
    judge(c, suspect);
    if (c->uncleared == 0)
        relax(c);
}

/* A record that was a control, and failed. */
static struct suspect *suspect_too(struct sl_contain *c, const char *route, const struct sl_record *record)
{
    struct suspect *more = sl_arena_zalloc(c->arena, (c->n + 1) * sizeof(*more));
    memcpy(more, c->suspects, c->n * sizeof(*more));
    sl_holds_bad_name(route, record, &more[c->n].name);
    qsort(more, ++c->n, sizeof(*more), by_name);
    c->suspects = more;
    c->unjudged++;
    c->uncleared++;
    return find(c, route, record);
}

static bool is_proven(const struct sl_contain *c, const struct suspect *suspect)
{
    if (!suspect || !suspect->proof)
        return false;
    bool is_fleeting = suspect->proof->end == SL_TRIAL_KILLED || suspect->proof->end == SL_TRIAL_TIMED_OUT;
    return !is_fleeting || c->clock->now_ms(c->clock) - suspect->proven_ms < PROOF_MS;
}

static void contain_prove(struct sl_call_watch *watch, const struct sl_trial_order *order,
                          const struct sl_trial *trial)
{
    struct sl_contain *c = self_of(watch);
    struct suspect *suspect = find(c, order->route_name, sl_batch_record(c->batch, order->index));
    if (!suspect || is_proven(c, suspect))
        return;
    struct sl_trial *proof = sl_arena_alloc(c->arena, sizeof(*proof));
    *proof = *trial;
    proof->is_proven = true;
    suspect->proof = proof;
    suspect->proven_ms = c->clock->now_ms(c->clock);
    judge(c, suspect);
}

static void contain_try_alone(struct sl_call_watch *watch, const struct sl_trial_order *order,
                              struct sl_trial *out)
{
    struct sl_contain *c = self_of(watch);
    const struct sl_record *record = sl_batch_record(c->batch, order->index);
    struct suspect *suspect = find(c, order->route_name, record);
    if (is_proven(c, suspect)) {
        *out = *suspect->proof;
        return;
    }
    sl_trials_run(c->trials, order, out);
    if (out->end == SL_TRIAL_UNABLE) {
        sl_log(
            c->log, SL_WARN,
            "a record cannot be tried in a process of its own; it is given to the handler in this process");
        relax(c);
        return;
    }
    if (out->end != SL_TRIAL_RETURNED) {
        suspect = suspect ? suspect : suspect_too(c, order->route_name, record);
        sl_holds_add_bad(c->holds, &suspect->name);
    }
    take(c, suspect, out);
}

/* ---- opening ---- */

/* Of the first `n_known`, is one the same? */
static bool is_known(const struct sl_contain *c, size_t n_known, const struct suspect *one)
{
    for (size_t i = 0; i < n_known; i++)
        if (by_name(&c->suspects[i], one) == 0)
            return true;
    return false;
}

/* The suspects are what the previous process held, and what earlier ones did not return from: the next
 * record, or the same one in another route, must not make this process forget them. */
static void suspect(struct sl_contain *c, const struct sl_pipeline_options *pipeline)
{
    const char *route;
    const struct sl_hold_name *names;
    const struct sl_hold_bad *bad;
    size_t held = sl_holds_left(c->holds, &route, &names), n_bad = sl_holds_all_bad(c->holds, &bad);
    if (held + n_bad == 0)
        return;
    c->suspects = sl_arena_zalloc(c->arena, (held + n_bad) * sizeof(*c->suspects));
    for (size_t i = 0; i < n_bad; i++)
        c->suspects[c->n++].name = bad[i];
    for (size_t i = 0; i < held; i++) {
        struct suspect *one = &c->suspects[c->n];
        memcpy(one->name.route, route, strlen(route) + 1);
        one->name.name = names[i];
        c->n += !is_known(c, n_bad, one);
    }
    c->unjudged = c->uncleared = c->n;
    qsort(c->suspects, c->n, sizeof(*c->suspects), by_name);
    c->trials = sl_trials_open(pipeline);
    c->watch.has_suspects = c->trials != NULL;
    if (held)
        sl_log(
            c->log, SL_WARN,
            "the previous process ended inside the handler of route %s, which held %zu records; each of them "
            "is now tried alone, in a process of its own, to find the one to blame",
            route, held);
}

struct sl_contain *sl_contain_open(const char *folder, const struct sl_pipeline_options *pipeline)
{
    struct sl_log *log = pipeline->log;
    struct sl_error error = SL_NO_ERROR;
    struct sl_holds *holds;
    if (sl_holds_open(folder, &holds, &error) != SL_OK)
        sl_log(log, SL_WARN, "records that crash a handler cannot be found out: %s", error.text);
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_contain *c = sl_arena_zalloc(arena, sizeof(*c));
    *c = (struct sl_contain){
        .watch = {.enter = contain_enter,
                  .leave = contain_leave,
                  .is_whole = contain_is_whole,
                  .begin = contain_begin,
                  .is_suspect = contain_is_suspect,
                  .try_alone = contain_try_alone,
                  .prove = contain_prove},
        .log = log,
        .clock = pipeline->clock,
        .holds = holds,
        .arena = arena,
        .connection = {.fd = -1},
    };
    if (c->holds)
        suspect(c, pipeline);
    return c;
}

void sl_contain_close(struct sl_contain *c)
{
    sl_trials_close(c->trials);
    sl_holds_close(c->holds);
    sl_arena_destroy(c->arena);
}

struct sl_call_watch *sl_contain_watch(struct sl_contain *c)
{
    return &c->watch;
}
