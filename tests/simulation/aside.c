/* The queues in which letters wait, and the drain: a second process, whose events come while batches are
 * applied, out of order, more than once, and again after it was killed. */
#include "tests/simulation/sim.h"

#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch/drain.h"

#include <stdio.h>
#include <stdlib.h>

#define VISIBILITY_MS   (15 * 60 * 1000) /* of a message whose event failed as a whole */
#define BATCH           10
#define MOST_EVENTS     20000
#define QUEUE_ARN       "arn:aws:sqs:us-east-1:1:aside"
#define SEQUENCE_NUMBER "\"SequenceNumber\":\""

const char *const sim_route_names[SIM_ROUTES] = {"archive", "replica", "totals", "view",
                                                 "probe",   "notify",  "echo",   "window"};

enum sim_route sim_route_in(struct sl_span message)
{
    unsigned route = 0;
    char part[32];
    for (; route < SIM_ROUTES; route++) {
        int n = snprintf(part, sizeof(part), "\"route\":\"%s\"", sim_route_names[route]);
        if (memmem(message.ptr, message.len, part, (size_t)n))
            break;
    }
    return (enum sim_route)route;
}

struct sim_change *sim_next_change(struct sim *s, struct sl_span text, size_t *at)
{
    const char *found = memmem(text.ptr + *at, text.len - *at, SEQUENCE_NUMBER, sizeof(SEQUENCE_NUMBER) - 1);
    if (!found)
        return NULL;
    found += sizeof(SEQUENCE_NUMBER) - 1;
    struct sl_span rest = sl_span_from(text, (size_t)(found - text.ptr));
    const char *end = memchr(rest.ptr, '"', rest.len);
    *at = (size_t)(end - text.ptr);
    struct sim_change *change = sim_change_of(s, sl_span(rest.ptr, (size_t)(end - rest.ptr)));
    if (!change)
        sim_violation(s, "%.*s is not in the history", (int)(end - rest.ptr), rest.ptr);
    return change;
}

void sim_keep_letter(struct sim *s, struct sl_span body)
{
    enum sim_route route = sim_route_in(body);
    struct sim_change *change;
    size_t at = 0, n = 0;
    if (s->n_letters == SIM_LETTERS || route == SIM_ROUTES || !(s->aside & 1u << route)) {
        sim_violation(s, "a letter of route %u, and %zu are there", route, s->n_letters);
        return;
    }
    for (; (change = sim_next_change(s, body, &at)); n++)
        change->aside[route]++;
    if (!n)
        sim_violation(s, "a letter has no record");
    s->letters[s->n_letters++] =
        (struct sim_letter){.body = sl_span(sl_arena_copy(s->arena, body), body.len),
                            .route = route,
                            .visible_ms = s->clock.ms + (int64_t)sim_draw(s, s->plan.letter_delay_ms + 1)};
}

/* ---- the drain's process ---- */

struct sim_drain {
    struct sl_pipeline *p;
    struct sl_drain *drain;
    struct sl_arena *call;
    struct sl_log log;
    struct sl_answer answer;
    uint64_t events;
};

static struct sim_letter *letter_of(struct sim *s, struct sl_span id)
{
    size_t number = 0;
    for (size_t i = 0; i < id.len; i++)
        number = 10 * number + (size_t)(id.ptr[i] - '0');
    return &s->letters[number];
}

static void hide(void *arg, struct sl_span queue_arn, struct sl_span receipt, int64_t seconds,
                 const struct sl_invocation *invocation)
{
    struct sim *s = arg;
    (void)invocation;
    if (!sl_span_is(queue_arn, QUEUE_ARN) || seconds < SL_DRAIN_HIDDEN_S || seconds > 43200)
        sim_violation(s, "a letter of %.*s is hidden for %lld s", SL_ARG(queue_arn), (long long)seconds);
    else if (!s->has_crashed)
        letter_of(s, receipt)->visible_ms = s->clock.ms + seconds * 1000;
}

static void start(struct sim *s)
{
    struct sim_drain *d = s->drain;
    if (!d->call) {
        d->call = sl_arena_new(256 * 1024);
        sl_log_init(&d->log, -1, SL_OFF, SL_LOG_TEXT, &s->clock.clock);
        sl_buffer_init(&d->answer.body, SL_ANSWER_BYTES);
    }
    if (d->p)
        return;
    d->p = sim_open_pipeline(s, &d->log);
    if (d->p)
        d->drain = sl_drain_new(&(struct sl_drain_options){.pipeline = d->p, .hide = hide, .arg = s});
}

static void stop(struct sim_drain *d)
{
    sl_drain_destroy(d->drain);
    sl_pipeline_close(d->p);
    d->drain = NULL;
    d->p = NULL;
}

void sim_drain_clean_up(struct sim *s)
{
    struct sim_drain *d = s->drain;
    if (!d)
        return;
    stop(d);
    if (d->call) {
        sl_buffer_clean_up(&d->answer.body);
        sl_log_clean_up(&d->log);
        sl_arena_destroy(d->call);
    }
    free(d);
    s->drain = NULL;
}

/* ---- one event ---- */

static size_t choose(struct sim *s, struct sim_letter *chosen[BATCH])
{
    size_t n = 0, most = 1 + sim_draw(s, BATCH), from = s->n_letters ? sim_draw(s, s->n_letters) : 0;
    for (size_t i = 0; i < s->n_letters && n < most; i++) {
        struct sim_letter *letter = &s->letters[(from + i) % s->n_letters];
        if (!letter->is_gone && letter->visible_ms <= s->clock.ms)
            chosen[n++] = letter;
    }
    return n;
}

static struct sl_span event_of(struct sim *s, struct sim_letter *const *chosen, size_t n)
{
    struct sl_buffer b;
    sl_buffer_init(&b, 16 << 20);
    sl_buffer_add_str(&b, "{\"Records\":[");
    for (size_t i = 0; i < n; i++) {
        size_t id = (size_t)(chosen[i] - s->letters);
        sl_buffer_printf(&b, "%s{\"messageId\":\"%zu\",\"receiptHandle\":\"%zu\",\"eventSource\":\"aws:sqs\"",
                         i ? "," : "", id, id);
        sl_json_add_member(&b, "eventSourceARN", SL_LIT(QUEUE_ARN));
        sl_json_add_member(&b, "body", chosen[i]->body);
        sl_buffer_add_char(&b, '}');
    }
    sl_buffer_add_str(&b, "]}");
    struct sl_span text = sl_span(sl_arena_copy(s->drain->call, sl_buffer_span(&b)), b.len);
    sl_buffer_clean_up(&b);
    return text;
}

static bool is_named(struct sl_span answer, size_t id)
{
    char part[48];
    int n = snprintf(part, sizeof(part), "{\"itemIdentifier\":\"%zu\"}", id);
    return memmem(answer.ptr, answer.len, part, (size_t)n) != NULL;
}

static void delete (struct sim *s, struct sim_letter *letter)
{
    struct sim_change *change;
    letter->is_gone = !s->plan.delivers_twice || sim_draw(s, 4);
    for (size_t at = 0; (change = sim_next_change(s, letter->body, &at));)
        if (!change->parked[letter->route] && !sim_is_durable(s, change, letter->route))
            sim_violation(s, "route %u: the letter of %s is gone, and it is neither durable nor parked",
                          letter->route, change->id);
}

static void deliver(struct sim *s, struct sim_letter *const *chosen, size_t n)
{
    struct sim_drain *d = s->drain;
    struct sl_error error = SL_NO_ERROR;
    struct sl_drained drained;
    sl_arena_reset(d->call);
    struct sl_invocation invocation = {.request_id = "drain",
                                       .function_arn = "arn:aws:lambda:us-east-1:1:function:drain",
                                       .deadline_ms = s->clock.ms + s->timeout_ms,
                                       .arena = d->call};
    for (size_t i = 0; i < n; i++)
        chosen[i]->visible_ms = s->clock.ms + VISIBILITY_MS;
    enum sl_status status =
        sl_drain_event(d->drain, event_of(s, chosen, n), &invocation, &d->answer, &drained, &error);
    if (status == SL_REJECT)
        sim_violation(s, "the drain refuses its event: %s", error.text);
    if (s->clock.ms >= invocation.deadline_ms && !s->has_crashed)
        sim_violation(s, "the drain would have been killed at its deadline");
    /* With its answer lost or its process dead, all of them are redelivered. */
    bool is_lost = s->clock.ms <= SIM_FAULTY_MS && s->plan.lost_answer_one_in &&
                   sim_draw(s, s->plan.lost_answer_one_in) == 0;
    if (status != SL_OK || s->has_crashed || is_lost)
        return;
    size_t done = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_named(sl_buffer_span(&d->answer.body), (size_t)(chosen[i] - s->letters))) {
            delete (s, chosen[i]);
            done++;
        }
    if (done != drained.done)
        sim_violation(s, "the answer leaves out %zu letters, and %zu are done", done, drained.done);
}

static bool drain_event(struct sim *s)
{
    struct sim_letter *chosen[BATCH];
    size_t n = choose(s, chosen);
    if (!n || s->violation[0])
        return false;
    if (!s->drain)
        s->drain = calloc(1, sizeof(*s->drain));
    if (!s->drain)
        sl_die("out of memory");
    start(s);
    s->drain->events++;
    if (s->drain->p)
        deliver(s, chosen, n);
    if (s->has_crashed)
        stop(s->drain);
    return true;
}

/* It runs beside: for the batch, no time passes. */
void sim_drain_beside(struct sim *s)
{
    bool has_crashed = s->has_crashed;
    const int64_t now_ms = s->clock.ms;
    if (!s->aside || s->is_draining || has_crashed || sim_draw(s, 8))
        return;
    s->is_draining = true;
    s->has_crashed = false;
    drain_event(s);
    s->has_crashed = has_crashed;
    s->is_draining = false;
    s->clock.ms = now_ms;
}

static bool is_letter_left(const struct sim *s, int64_t *next_ms)
{
    *next_ms = INT64_MAX;
    for (size_t i = 0; i < s->n_letters; i++)
        if (!s->letters[i].is_gone && s->letters[i].visible_ms < *next_ms)
            *next_ms = s->letters[i].visible_ms;
    return *next_ms != INT64_MAX;
}

/* The targets are mended, and paused routes go on. */
void sim_drain_all(struct sim *s)
{
    int64_t next_ms;
    if (!s->aside || s->violation[0])
        return;
    s->plan.broken = s->plan.broken >= 0 && s->aside & 1u << s->plan.broken ? -1 : s->plan.broken;
    if (s->paused) {
        s->paused = 0;
        sim_write_config(s);
        if (s->drain)
            stop(s->drain);
    }
    s->is_draining = true;
    while (!s->violation[0] && is_letter_left(s, &next_ms)) {
        s->has_crashed = false;
        s->clock.ms = s->clock.ms < next_ms ? next_ms : s->clock.ms;
        if (s->drain && s->drain->events > MOST_EVENTS)
            sim_violation(s, "letters are left after %d events: %s", MOST_EVENTS,
                          s->drain->answer.error.text);
        drain_event(s);
    }
    s->is_draining = false;
}
