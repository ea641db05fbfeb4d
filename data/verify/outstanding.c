/* Looks at queues of letters, until it is certain that they are empty. */
#include "data/verify/outstanding.h"

#include "base/clock.h"
#include "base/span.h"
#include "sinks/queues/inbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define LOOK_MS    (SL_OUTSTANDING_MS / (SL_OUTSTANDING_LOOKS - 1))
#define REQUEST_MS 15000

struct queue {
    const struct sl_route *route;
    struct sl_inbox *inbox, *dead; /* NULL: a local file; none */
    char *dead_arn;
    bool has_looked;
    unsigned empty_looks;                /* in a row */
    int64_t looked_ms;                   /* steady time */
    int64_t empty_since_ms, empty_at_ms; /* wall time of the first and the last of these looks */
    int64_t letters;                     /* at the last look; -1: nobody knows */
    char why[SL_ERROR_TEXT_BYTES];
};

struct sl_outstanding {
    struct sl_sinks *sinks;
    struct sl_clock *clock;
    struct sl_arena *arena;
    struct queue *queues;
    size_t n;
};

enum sl_status sl_outstanding_open(struct sl_pipeline *p, const bool *is_chosen, struct sl_outstanding **out,
                                   struct sl_error *error)
{
    struct sl_outstanding *o = calloc(1, sizeof(*o));
    if (!o || !(o->queues = calloc(p->n + 1, sizeof(*o->queues))))
        sl_die("out of memory: queues of letters");
    o->sinks = p->options.sinks;
    o->clock = sl_clock_system();
    o->arena = sl_arena_new(16 * 1024);
    *out = o;
    for (size_t i = 0; i < p->n; i++) {
        struct sl_span url = p->routes[i].config->set_aside;
        if (!url.ptr || (is_chosen && !is_chosen[i]))
            continue;
        struct queue *q = &o->queues[o->n++];
        *q = (struct queue){.route = &p->routes[i], .letters = -1};
        if (sl_span_starts(url, SL_LIT("sqs:")) && sl_inbox_open(o->sinks, url, &q->inbox, error) != SL_OK) {
            sl_error_context(error, "%s", p->routes[i].config->set_aside_path);
            error->status = SL_REJECT;
            return SL_REJECT;
        }
    }
    return SL_OK;
}

void sl_outstanding_close(struct sl_outstanding *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++) {
        sl_inbox_close(o->queues[i].inbox);
        sl_inbox_close(o->queues[i].dead);
        free(o->queues[i].dead_arn);
    }
    sl_arena_destroy(o->arena);
    free(o->queues);
    free(o);
}

/* ---- one look ---- */

static enum sl_status count(struct sl_outstanding *o, struct sl_inbox *inbox, struct sl_inbox_facts *facts,
                            struct sl_error *error)
{
    const struct sl_call call = {.arena = o->arena, .deadline_ms = o->clock->now_ms(o->clock) + REQUEST_MS};
    enum sl_status status = sl_inbox_describe(inbox, &call, facts, error);
    if (status == SL_OK && (facts->waiting < 0 || facts->in_flight < 0 || facts->delayed < 0))
        status = sl_fail(error, SL_RETRY, "BrokenAnswer", "the queue does not say how many messages it has");
    return status;
}

/* A dead-letter queue is found by the queue's own policy, which may change. */
static enum sl_status open_dead(struct sl_outstanding *o, struct queue *q, const char *arn,
                                struct sl_error *error)
{
    if (q->dead && q->dead_arn && arn && strcmp(q->dead_arn, arn) == 0)
        return SL_OK;
    sl_inbox_close(q->dead);
    free(q->dead_arn);
    q->dead = NULL;
    q->dead_arn = arn ? strdup(arn) : NULL;
    return arn ? sl_inbox_open(o->sinks, sl_span_str(sl_arena_printf(o->arena, "sqs:%s", arn)), &q->dead,
                               error)
               : SL_OK;
}

static enum sl_status look_at(struct sl_outstanding *o, struct queue *q, int64_t *letters,
                              struct sl_error *error)
{
    struct sl_inbox_facts facts, dead = {.waiting = 0};
    struct stat file;
    if (!q->inbox) { /* jsonl:FILE, on a laptop: lines are removed by people */
        const char *path =
            sl_arena_copy(o->arena, sl_span_from(q->route->config->set_aside, strlen("jsonl:")));
        *letters = stat(path, &file) == 0 && file.st_size > 0;
        return SL_OK;
    }
    enum sl_status status = count(o, q->inbox, &facts, error);
    if (status == SL_OK)
        status = open_dead(o, q, facts.moves_to, error);
    if (status == SL_OK && q->dead)
        status = count(o, q->dead, &dead, error);
    if (status == SL_OK)
        *letters =
            facts.waiting + facts.in_flight + facts.delayed + dead.waiting + dead.in_flight + dead.delayed;
    return status;
}

static bool is_settled(const struct queue *q)
{
    return q->letters == 0 && q->empty_looks >= SL_OUTSTANDING_LOOKS &&
           q->empty_at_ms - q->empty_since_ms >= SL_OUTSTANDING_MS;
}

static void look(struct sl_outstanding *o, struct queue *q)
{
    struct sl_error why = SL_NO_ERROR;
    const int64_t now_ms = o->clock->now_ms(o->clock), wall_ms = o->clock->wall_ns(o->clock) / 1000000;
    if (q->has_looked && now_ms - q->looked_ms < LOOK_MS)
        return;
    q->has_looked = true;
    q->looked_ms = now_ms;
    q->letters = -1;
    enum sl_status status = look_at(o, q, &q->letters, &why);
    snprintf(q->why, sizeof(q->why), "%s", status == SL_OK ? "" : why.text);
    sl_arena_reset(o->arena);
    if (q->letters != 0) {
        q->empty_looks = 0;
        return;
    }
    if (!q->empty_looks++)
        q->empty_since_ms = wall_ms;
    q->empty_at_ms = wall_ms;
}

/* ---- what it says ---- */

int64_t sl_outstanding_settled_ms(struct sl_outstanding *o, const char *route)
{
    for (size_t i = 0; i < o->n; i++) {
        struct queue *q = &o->queues[i];
        if (strcmp(q->route->config->name, route) != 0)
            continue;
        look(o, q);
        /* The later looks prove the earlier ones: so the window moves on. */
        return is_settled(q) ? q->empty_at_ms - SL_OUTSTANDING_MS : 1;
    }
    return INT64_MAX;
}

bool sl_outstanding_settle(struct sl_outstanding *o, const volatile int *stop,
                           struct sl_outstanding_route *out)
{
    for (size_t i = 0; i < o->n; i++) {
        struct queue *q = &o->queues[i];
        look(o, q);
        while (q->letters == 0 && !is_settled(q) && !(stop && *stop)) {
            o->clock->sleep_ms(o->clock, 200);
            look(o, q);
        }
        if (is_settled(q))
            continue;
        *out = (struct sl_outstanding_route){
            .route = q->route->config->name, .letters = q->letters > 0 ? q->letters : -1, .why = q->why};
        return false;
    }
    return true;
}

enum sl_status sl_outstanding_refuse(struct sl_outstanding *o, const volatile int *stop,
                                     const char *leave_out, struct sl_error *error)
{
    struct sl_outstanding_route left;
    if (sl_outstanding_settle(o, stop, &left) || (stop && *stop))
        return SL_OK;
    if (left.letters > 0)
        return sl_fail(error, SL_REJECT, "SetAside",
                       "%s: %" PRId64
                       " letters wait in its queue, or are dead: drain or discard them first, or leave "
                       "the route out with %s",
                       left.route, left.letters, leave_out);
    return sl_fail(error, SL_REJECT, "SetAside", "%s: nobody can say whether letters wait in its queue%s%s",
                   left.route, left.why[0] ? ": " : "", left.why);
}
