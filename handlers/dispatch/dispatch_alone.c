/* Records that are given to the handler alone: those that an earlier process died of, in processes of their
 * own, and those with which it broke the rules of marking, in this one. A record is at fault only by
 * contrast: another record of the route has passed the same trial. */
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "handlers/dispatch/watch.h"

#define CONTROLS 3 /* other records that are tried when none has passed yet */

/* Parts of the time. A first trial has an eighth of what is left, so that others can be tried too. A record
 * did not return only if it has had half of what is left, and a quarter of all. */
#define PROBE 8
#define PROOF 4

struct alone {
    struct sl_run *run;
    bool is_here; /* in this process */
};

static int64_t left_ms(const struct sl_run *run)
{
    return run->deadline_ms - sl_dispatch_now(run->d);
}

static int64_t probe_end(const struct sl_run *run)
{
    return run->deadline_ms - left_ms(run) + left_ms(run) / PROBE;
}

/* False: no trial can be made. */
static bool try_one(const struct alone *a, size_t i, unsigned attempt, int64_t end_ms, struct sl_trial *out)
{
    struct sl_run *run = a->run;
    struct sl_trial_order order = {.index = run->entries[i].index, .attempt = attempt, .deadline_ms = end_ms};
    if (!a->is_here)
        return sl_dispatch_try_alone(run->d, run->route, &order, out);
    sl_dispatch_try_here(run->d, run->route, &order, out);
    if (out->end == SL_TRIAL_CLOSED) {
        const struct sl_why *why = sl_dispatch_why_of(run->d, SL_FATAL, &out->error);
        sl_dispatch_ruin(run->d, run->route, why);
        sl_run_stop(run, why);
    }
    return true;
}

static bool has_passed(const struct sl_trial *trial)
{
    return trial->end == SL_TRIAL_RETURNED && trial->status == SL_OK;
}

/* Settles entry i by what the handler returned. False: it has to be tried again. */
static bool settle(struct sl_run *run, size_t i, const struct sl_trial *trial)
{
    struct sl_rest rest = {0};
    struct sl_mark mark = {.is_set = true, .status = trial->status};
    const struct sl_why *why =
        mark.status == SL_OK ? NULL : sl_dispatch_why_of(run->d, mark.status, &trial->error);
    run->has_passed |= has_passed(trial);
    sl_run_settle(run, &run->entries[i], &mark, why, &rest);
    return !rest.retry;
}

/* ---- the control ---- */

static bool is_same_item(const struct sl_run *run, size_t i, size_t j)
{
    return sl_span_eq(sl_dispatch_key(run->d, run->entries[i].index),
                      sl_dispatch_key(run->d, run->entries[j].index));
}

/* May entry j be given to the handler before entry r? Not if an earlier change of its item is still to come.
 */
static bool may_overtake(const struct sl_run *run, size_t j, size_t r)
{
    if (run->entries[j].state != SL_ENTRY_PENDING || run->entries[j].index >= run->d->k ||
        sl_held_has(&run->held, run->d, run->entries[j].index) || is_same_item(run, j, r))
        return false;
    for (size_t i = r + 1; i < j; i++)
        if (run->entries[i].state == SL_ENTRY_PENDING && is_same_item(run, i, j))
            return false;
    return true;
}

/* May the applied entry j be given to the handler once more? Its item must not have changed since. */
static bool may_repeat(const struct sl_run *run, size_t j)
{
    for (size_t i = j + 1; i < run->n; i++)
        if (run->entries[i].state == SL_ENTRY_APPLIED && is_same_item(run, i, j))
            return false;
    return run->entries[j].state == SL_ENTRY_APPLIED;
}

/* A later record: what it did counts. One that fails is tried again in its turn. */
static enum sl_control try_later(const struct alone *a, size_t r)
{
    struct sl_run *run = a->run;
    enum sl_control result = SL_CONTROL_NONE;
    struct sl_trial trial;
    unsigned tried = 0;
    for (size_t j = r + 1; j < run->n && tried < CONTROLS && !run->is_stopped; j++) {
        if (!may_overtake(run, j, r))
            continue;
        if (left_ms(run) <= 0 || !try_one(a, j, 0, probe_end(run), &trial))
            return SL_CONTROL_FAILED;
        tried++;
        result = SL_CONTROL_FAILED;
        if (!has_passed(&trial))
            continue;
        settle(run, j, &trial);
        return SL_CONTROL_PASSED;
    }
    return result;
}

/* Else the last record before it, once more: where that does no harm. */
static enum sl_control try_earlier(const struct alone *a, size_t r)
{
    struct sl_run *run = a->run;
    struct sl_trial trial;
    if (sl_route_is_once_only(run->route))
        return SL_CONTROL_NONE;
    for (size_t j = r; j-- > 0;) {
        if (!may_repeat(run, j))
            continue;
        bool passes = left_ms(run) > 0 && try_one(a, j, 1, probe_end(run), &trial) && has_passed(&trial);
        return passes ? SL_CONTROL_PASSED : SL_CONTROL_FAILED;
    }
    return SL_CONTROL_NONE;
}

/* What the handler does to itself, it does at any time. A kill and a time-out may come from an outage, so
 * that only a record that passes after them says anything. */
static enum sl_control control_of(const struct alone *a, size_t r, const struct sl_trial *trial)
{
    bool is_own_doing = trial->end != SL_TRIAL_KILLED && trial->end != SL_TRIAL_TIMED_OUT;
    if (trial->is_proven || (is_own_doing && a->run->has_passed))
        return SL_CONTROL_PASSED;
    if (trial->place != SL_TRIAL_IN_HANDLER)
        return SL_CONTROL_FAILED;
    enum sl_control later = try_later(a, r);
    if (later == SL_CONTROL_PASSED || a->run->is_stopped)
        return later;
    enum sl_control earlier = try_earlier(a, r);
    return earlier == SL_CONTROL_NONE ? later : earlier;
}

/* ---- who is to blame ---- */

static void blame(const struct alone *a, size_t i, const struct sl_trial *trial, enum sl_control control)
{
    struct sl_run *run = a->run;
    struct sl_call_watch *watch = run->d->p->options.watch;
    struct sl_entry *entry = &run->entries[i];
    const struct sl_why *why = sl_dispatch_trial_why(run->d, trial, control);
    if (why->status == SL_REJECT) {
        const struct sl_trial_order order = {.route_name = run->route->config->name, .index = entry->index};
        if (!a->is_here)
            watch->prove(watch, &order, trial);
        sl_run_reject(run, entry, why);
        return;
    }
    sl_run_stop(run, why);
    sl_run_block(run, entry, why);
}

/* Judges a trial from which the handler did not return in order. True: the record is settled, or the run has
 * stopped; false: the record has returned after all. */
static bool judge(const struct alone *a, size_t i, struct sl_trial *trial)
{
    struct sl_run *run = a->run;
    enum sl_control control = control_of(a, i, trial);
    if (run->is_stopped)
        return true;
    if (trial->end == SL_TRIAL_TIMED_OUT && !trial->is_proven) {
        int64_t proof = left_ms(run) / 2 > run->share_ms / PROOF ? left_ms(run) / 2 : run->share_ms / PROOF;
        bool has_time = left_ms(run) > proof;
        if (control != SL_CONTROL_PASSED || !has_time)
            proof = left_ms(run);
        if (!has_time)
            control = SL_CONTROL_FAILED; /* for now: the next invocation has more time */
        struct sl_trial again;
        if (proof > 0 && try_one(a, i, 1, run->deadline_ms - left_ms(run) + proof, &again))
            *trial = again;
        if (trial->end == SL_TRIAL_RETURNED)
            return false;
    }
    blame(a, i, trial, control);
    return true;
}

bool sl_run_alone(struct sl_run *run, size_t i, bool is_here)
{
    const struct alone a = {run, is_here};
    struct sl_trial trial;
    if (!run->share_ms)
        run->share_ms = left_ms(run);
    for (unsigned tries = 0; !run->is_stopped && sl_run_gather(run, i, i + 1); tries++) {
        if (left_ms(run) <= 0) {
            sl_run_stop_for_time(run);
            return true;
        }
        if (!try_one(&a, i, tries, tries || is_here ? run->deadline_ms : probe_end(run), &trial))
            return false;
        if (run->is_stopped || (trial.end != SL_TRIAL_RETURNED && judge(&a, i, &trial)) ||
            settle(run, i, &trial))
            return true;
        if (!sl_dispatch_back_off(run->d, tries, run->deadline_ms))
            sl_run_stop_for_time(run);
    }
    return true;
}
