/* Random results of handlers, against a plain model of what dispatch does with them: who is given what, what
 * is applied, parked and failed, and where the checkpoint is. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST   100
#define ROUTES 4

/* How a handler says what is wrong: nothing of a slice is applied and the first trouble is told; each record
 * is marked; the poison is marked, and nothing is applied beside it. */
enum manner { WHOLE, MARKS, BLAMES };

struct course {
    uint64_t chance;
    size_t n, items, cap; /* cap: of a slice; 0: none */
    bool parks;           /* else it reports */
    size_t lanes;         /* once-only routes: 1 or 2 */
    enum manner manner[ROUTES];
    unsigned char plan[ROUTES][MOST];
};

static const size_t handler_of[ROUTES] = {RIG_ONE, RIG_TWO, RIG_ONCE, RIG_TWICE};
static size_t items; /* of the event that is made */

static size_t key_of(size_t i)
{
    return i * 7 % items;
}

static size_t draw(struct course *c, size_t n)
{
    return (size_t)(sl_random_step(&c->chance) % n);
}

/* ---- the model ---- */

enum fate { PENDING, APPLIED, REJECTED, FAILED, HELD };

struct run {
    const struct course *c;
    size_t route;
    bool is_once, is_stopped;
    size_t failed;       /* the first record */
    bool is_the_records; /* that failure: a rejection */
    enum fate fates[MOST];
    size_t holds[MOST]; /* per item: the record that failed, and one more */
};

/* `stops`: the run, and not for this record's sake. */
static void fail_one(struct run *r, size_t i, bool stops)
{
    r->fates[i] = FAILED;
    if (i < r->failed) {
        r->failed = i;
        r->is_the_records = !stops;
    }
    if (!r->is_stopped && !stops && !r->holds[key_of(i)])
        r->holds[key_of(i)] = i + 1;
    r->is_stopped = r->is_stopped || stops || r->is_once;
}

static void reject(struct run *r, size_t i)
{
    if (r->c->parks)
        r->fates[i] = REJECTED;
    else
        fail_one(r, i, false);
}

/* What the handler is given of [from, to); later records of a failed item are not. */
static size_t given(struct run *r, size_t from, size_t to, size_t *list)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (r->fates[i] == PENDING && r->holds[key_of(i)] && i >= r->holds[key_of(i)])
            r->fates[i] = HELD;
        else if (r->fates[i] == PENDING)
            list[n++] = i;
    }
    return n;
}

static unsigned plan_of(const struct run *r, size_t i)
{
    return r->c->plan[r->route][i];
}

static unsigned first_trouble(const struct run *r, const size_t *list, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (plan_of(r, list[k]) != RIG_GOOD)
            return plan_of(r, list[k]);
    return RIG_GOOD;
}

static void whole(struct run *r, size_t from, size_t to)
{
    size_t list[MOST], n = r->is_stopped ? 0 : given(r, from, to, list);
    unsigned trouble = first_trouble(r, list, n);
    if (trouble == RIG_POISON && n > 1) {
        whole(r, from, list[n / 2]);
        whole(r, list[n / 2], to);
        return;
    }
    r->is_stopped = r->is_stopped || trouble == RIG_OUTAGE;
    for (size_t k = 0; k < n && trouble != RIG_OUTAGE; k++) {
        if (trouble == RIG_GOOD)
            r->fates[list[k]] = APPLIED;
        else if (trouble == RIG_POISON)
            reject(r, list[k]);
        else
            fail_one(r, list[k], true);
    }
}

/* Returns whether some have to be given once more. */
static bool marked_once(struct run *r, const size_t *list, size_t n)
{
    bool again = false;
    for (size_t k = 0; k < n; k++) {
        unsigned plan = plan_of(r, list[k]);
        if (plan == RIG_GOOD)
            r->fates[list[k]] = APPLIED;
        else if (plan == RIG_POISON)
            reject(r, list[k]);
        else if (plan == RIG_BROKEN)
            fail_one(r, list[k], true);
        again = again || plan == RIG_OUTAGE;
    }
    return again;
}

static void marked(struct run *r, size_t from, size_t to)
{
    size_t list[MOST], n = given(r, from, to, list);
    bool again = marked_once(r, list, n);
    while (again && !r->is_stopped) {
        n = given(r, from, to, list);
        again = n > 0;
        r->is_stopped = again; /* an outage without an end */
    }
}

static void blamed(struct run *r, size_t from, size_t to)
{
    size_t list[MOST], n;
    while (!r->is_stopped && (n = given(r, from, to, list)) > 0) {
        unsigned trouble = first_trouble(r, list, n);
        for (size_t k = 0; k < n; k++) {
            if (plan_of(r, list[k]) == RIG_POISON)
                reject(r, list[k]);
            else if (trouble == RIG_GOOD)
                r->fates[list[k]] = APPLIED;
            else if (trouble == RIG_BROKEN)
                fail_one(r, list[k], true);
        }
        r->is_stopped = r->is_stopped || (trouble == RIG_OUTAGE && given(r, from, to, list) > 0);
    }
}

/* What is left when the run stops has failed. */
static void run_some(struct run *r, size_t from, size_t to)
{
    for (size_t end; from < to && !r->is_stopped; from = end) {
        end = r->c->cap && from + r->c->cap < to ? from + r->c->cap : to;
        if (r->c->manner[r->route] == WHOLE)
            whole(r, from, end);
        else if (r->c->manner[r->route] == MARKS)
            marked(r, from, end);
        else
            blamed(r, from, end);
        if (r->is_stopped)
            break;
    }
    for (; from < to && r->is_stopped; from++)
        if (r->fates[from] == PENDING)
            fail_one(r, from, true);
}

struct model {
    struct run runs[ROUTES];
    size_t checkpoint, n_parked;
    struct {
        size_t index, route;
    } parked[ROUTES * MOST];
};

static bool is_rejected(const struct model *m, size_t i)
{
    return m->runs[0].fates[i] == REJECTED || m->runs[1].fates[i] == REJECTED;
}

static void park(struct model *m, size_t i, size_t route)
{
    m->parked[m->n_parked].index = i;
    m->parked[m->n_parked++].route = route;
}

/* One once-only route over [from, end), or to where another one failed. */
static void run_lane(struct model *m, size_t route, size_t from, size_t end)
{
    struct run *r = &m->runs[route];
    size_t to = end < m->checkpoint ? end : m->checkpoint;
    run_some(r, from, to);
    for (size_t i = from; i < to; i++)
        if (r->fates[i] == REJECTED)
            park(m, i, route);
    m->checkpoint = r->failed < m->checkpoint ? r->failed : m->checkpoint;
}

/* Parked records and effects that cannot be repeated, in the order of the stream; two routes take turns, in
 * steps that grow. */
static void once_only(struct model *m, size_t lanes)
{
    for (size_t at = 0, end, step = 1; at < m->checkpoint; at = end, step *= 2) {
        for (size_t route = 0; route < 2; route++)
            if (m->runs[route].fates[at] == REJECTED)
                park(m, at, route);
        for (end = at + 1; end < m->checkpoint && !is_rejected(m, end) && !(lanes > 1 && end == at + step);)
            end++;
        for (size_t route = 2; route < 2 + lanes; route++)
            run_lane(m, route, at, end);
    }
}

static void expect(struct model *m, const struct course *c)
{
    bool is_the_records = false;
    memset(m, 0, sizeof(*m));
    m->checkpoint = c->n;
    for (size_t route = 0; route < ROUTES; route++) {
        m->runs[route] = (struct run){.c = c, .route = route, .is_once = route >= 2, .failed = c->n};
        if (route >= 2)
            continue;
        run_some(&m->runs[route], 0, m->checkpoint + (is_the_records && m->checkpoint < c->n));
        if (m->runs[route].failed < m->checkpoint) {
            m->checkpoint = m->runs[route].failed;
            is_the_records = m->runs[route].is_the_records;
        }
    }
    once_only(m, c->lanes);
}

/* ---- what happened ---- */

#define WRONG(...)                                                                                           \
    do {                                                                                                     \
        describe();                                                                                          \
        fail_msg(__VA_ARGS__);                                                                               \
    } while (0)

static const struct course *tried; /* the one that is tried, and its seed */
static uint64_t seed;

static void describe(void)
{
    print_error("seed %llu: %zu records of %zu items, cap %zu, %s\n", (unsigned long long)seed, tried->n,
                tried->items, tried->cap, tried->parks ? "parks" : "reports");
    for (size_t route = 0; route < ROUTES; route++) {
        char text[MOST + 1] = "";
        for (size_t i = 0; i < tried->n; i++)
            text[i] = ".rPF"[tried->plan[route][i]];
        print_error("route %zu, manner %d: %s\n", route, (int)tried->manner[route], text);
    }
}

static void expect_route(struct rig *rig, const struct model *m, size_t route)
{
    const struct rig_handler *h = &rig->handlers[handler_of[route]];
    const struct sl_route_stats s = sl_pipeline_stats(rig->p, route);
    size_t applied = 0;
    for (size_t i = 0; i < m->runs[route].c->n; i++) {
        applied += m->runs[route].fates[i] == APPLIED;
        if (h->times[i] != (m->runs[route].fates[i] == APPLIED))
            WRONG("route %zu: record %zu was applied %u times", route, i, h->times[i]);
    }
    for (size_t k = 1; k < h->n_applied; k++)
        assert_true(h->applied[k - 1] < h->applied[k] || m->runs[route].c->manner[route] == MARKS);
    assert_int_equal(s.applied, applied);
    assert_int_equal(s.matched, s.applied + s.parked + s.failed + s.skipped);
}

static void expect_parked(struct rig *rig, const struct model *m)
{
    const struct rig_port *dlq = rig_port(rig, "dlq");
    assert_int_equal(rig->answer.parked, m->n_parked);
    assert_int_equal(dlq ? dlq->n : 0, m->n_parked);
    for (size_t k = 0; k < m->n_parked; k++) {
        char number[64], route[32];
        snprintf(number, sizeof(number), "\"SequenceNumber\":\"%zu\"", 1000 + m->parked[k].index);
        snprintf(route, sizeof(route), "\"r%zu\"", m->parked[k].route);
        if (!strstr(dlq->bodies[k], number) || !strstr(dlq->bodies[k], route))
            WRONG("parked as number %zu is not record %zu of %s: %s", k, m->parked[k].index, route,
                  dlq->bodies[k]);
    }
}

/* ---- courses ---- */

static void draw_plan(struct course *c, size_t route)
{
    static const unsigned char troubles[] = {RIG_POISON, RIG_POISON, RIG_POISON, RIG_OUTAGE, RIG_BROKEN};
    size_t kinds = draw(c, 3) ? 3 : 5, one_in = 1 + draw(c, 30);
    bool is_good = draw(c, 3) == 0;
    c->manner[route] = (enum manner)draw(c, 3);
    for (size_t i = 0; i < c->n; i++)
        c->plan[route][i] = is_good || draw(c, one_in + 1) ? RIG_GOOD : troubles[draw(c, kinds)];
}

static void draw_course(struct course *c)
{
    *c = (struct course){.chance = seed * 7919};
    c->n = 1 + draw(c, MOST);
    c->items = draw(c, 2) ? MOST : 1 + draw(c, 9);
    c->cap = draw(c, 2) ? 0 : 1 + draw(c, 20);
    c->parks = draw(c, 3) > 0;
    c->lanes = 1 + draw(c, 2);
    for (size_t route = 0; route < ROUTES; route++)
        draw_plan(c, route);
    items = c->items;
}

static void run_course(struct course *c)
{
    static struct model m;
    char config[700], cap[40] = "", fourth[100] = "";
    size_t routes = 2 + c->lanes;
    if (c->cap)
        snprintf(cap, sizeof(cap), ",'max_records':%zu", c->cap);
    if (c->lanes > 1)
        snprintf(fourth, sizeof(fourth), ",{'name':'r3','handler':'twice'%s}", cap);
    snprintf(config, sizeof(config),
             "{'on_failure':'%s','report_batch_item_failures':true,'max_parked':null,'routes':["
             "{'name':'r0','handler':'one'%s},{'name':'r1','handler':'two'%s},{'name':'r2','handler':'once'%"
             "s}%s]}",
             c->parks ? "mem:dlq" : "report", cap, cap, cap, fourth);
    struct rig *rig = rig_new(config);
    for (size_t route = 0; route < routes; route++) {
        struct rig_handler *h = &rig->handlers[handler_of[route]];
        memcpy(h->plan, c->plan[route], c->n);
        h->marks = c->manner[route] == MARKS;
        h->blames = c->manner[route] == BLAMES;
        h->outages = (unsigned)draw(c, 3);
    }
    rig_event(rig, c->n, key_of);
    rig_run(rig, 60000);
    expect(&m, c);
    if (rig->answer.checkpoint != m.checkpoint) {
        WRONG("the checkpoint is %zu, not %zu", rig->answer.checkpoint, m.checkpoint);
    }
    for (size_t route = 0; route < routes; route++)
        expect_route(rig, &m, route);
    expect_parked(rig, &m);
    rig_destroy(rig);
}

static void dispatch_is_its_model(void **state)
{
    (void)state;
    for (seed = 1; seed <= 3000; seed++) {
        struct course course;
        draw_course(&course);
        tried = &course;
        run_course(&course);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dispatch_is_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
