/* Chooses what is special in this seed: faults, routes, mapping, and the sluice.json that follows. */
#include "tests/simulation/sim.h"

#include "base/span.h"

#include <unistd.h>

static bool has_images(const struct sim *s)
{
    return s->view == SL_VIEW_NEW_AND_OLD_IMAGES;
}

/* Each seed has a subset of the faults: all at once would hide each other. */
static void choose_faults(struct sim *s)
{
    struct sim_plan *p = &s->plan;
    p->broken = -1;
    p->poison_one_in = sim_draw(s, 3) ? (unsigned[]){0, 4, 12, 40}[sim_draw(s, 4)] : 0;
    p->probe_mode = (int)sim_draw(s, 3);
    for (unsigned fault = SIM_THROTTLE; fault < SIM_FAULTS; fault++)
        p->faults |= sim_draw(s, 4) == 0 ? 1u << fault : 0;
    for (size_t i = 0; i < SIM_PORTS; i++) {
        p->one_in[i] = p->faults && sim_draw(s, 2) ? 2 + (unsigned)sim_draw(s, 12) : 0;
        if (sim_draw(s, 6) == 0) {
            p->outage_from_ms[i] = (int64_t)sim_draw(s, 30000);
            p->outage_to_ms[i] = p->outage_from_ms[i] + (int64_t)sim_draw(s, 300000);
        }
    }
    p->lost_answer_one_in = sim_draw(s, 6) ? 0 : 3 + (unsigned)sim_draw(s, 10);
    p->throttle_one_in = sim_draw(s, 6) ? 0 : 2 + (unsigned)sim_draw(s, 10);
    if (sim_draw(s, 16) == 0)
        p->broken = (int)sim_draw(s, SIM_PORT_QUEUE);
    p->refuses_view = p->broken < 0 && sim_draw(s, 40) == 0;
    unsigned crashes = 1u << SIM_CRASH_BEFORE | 1u << SIM_CRASH_AFTER,
             blind = 1u << SIM_LOST | 1u << SIM_HANG_DONE;
    bool queues = p->one_in[SIM_PORT_QUEUE] || p->one_in[SIM_PORT_ECHO] || p->one_in[SIM_PORT_DLQ] ||
                  p->one_in[SIM_PORT_BOX] || p->one_in[SIM_PORT_ASIDE];
    bool any = false;
    for (size_t i = 0; i < SIM_PORTS; i++)
        any = any || p->one_in[i];
    p->is_uncertain =
        p->lost_answer_one_in || (any && (p->faults & crashes)) || (queues && (p->faults & blind));
}

static void choose_routes(struct sim *s)
{
    s->routes = 1u << SIM_PROBE;
    for (unsigned route = 0; route < SIM_ROUTES; route++)
        s->routes |= sim_draw(s, 2) ? 1u << route : 0;
    if (!has_images(s))
        s->routes &= ~(1u << SIM_TOTALS);
    if (!has_images(s) && s->view != SL_VIEW_NEW_IMAGE)
        s->routes &= ~(1u << SIM_REPLICA);
    s->has_lists = !has_images(s) || sim_draw(s, 2);
    if (!has_images(s) && s->view != SL_VIEW_NEW_IMAGE)
        s->routes &= ~(1u << SIM_VIEW);
    if (s->plan.broken >= 0 && s->plan.broken < SIM_PORT_QUEUE) /* the broken port must be in use */
        s->plan.broken = s->routes & 1u << s->plan.broken ? s->plan.broken : SIM_PORT_PROBE;
    s->guards_aside = sim_draw(s, 3) == 0;
    s->sub_counters = sim_draw(s, 3) ? 0 : 1 + (unsigned)sim_draw(s, 3);
    s->keeps_expired = sim_draw(s, 3) == 0;
    if (s->routes & 1u << SIM_TOTALS && s->plan.broken < 0 && !s->plan.refuses_view && sim_draw(s, 4) == 0)
        s->ledger = sim_draw(s, 5) ? SIM_LEDGER_OLDER : SIM_LEDGER_FOREIGN;
    if (s->ledger == SIM_LEDGER_FOREIGN)
        s->plan.broken = SIM_PORT_TOTALS;
    s->has_members = s->ledger == SIM_LEDGER_EMPTY && !s->keeps_expired && sim_draw(s, 2);
    s->has_delta = s->ledger == SIM_LEDGER_EMPTY && !s->has_members && sim_draw(s, 3) == 0;
    s->parks = sim_draw(s, 3) > 0;
    s->dlq_bytes = sim_draw(s, 3) ? 0 : 700 + sim_draw(s, 600);
    s->reports = sim_draw(s, 4) > 0;
}

/* What cannot be parked would stay in its letter. */
static void choose_aside(struct sim *s)
{
    static const enum sim_port port_of[SIM_ROUTES] = {[SIM_REPLICA] = SIM_PORT_REPLICA,
                                                      [SIM_TOTALS] = SIM_PORT_TOTALS,
                                                      [SIM_VIEW] = SIM_PORT_VIEW,
                                                      [SIM_NOTIFY] = SIM_PORT_QUEUE,
                                                      [SIM_ECHO] = SIM_PORT_ECHO};
    unsigned may = 1u << SIM_REPLICA | 1u << SIM_VIEW | 1u << SIM_NOTIFY | 1u << SIM_ECHO;
    struct sim_plan *p = &s->plan;
    if (!s->keeps_expired && s->ledger != SIM_LEDGER_FOREIGN)
        may |= 1u << SIM_TOTALS;
    if (!s->parks || p->refuses_view || sim_draw(s, 4) == 0)
        return;
    for (unsigned route = 0; route < SIM_ROUTES; route++)
        s->aside |= s->routes & may & 1u << route && sim_draw(s, 3) ? 1u << route : 0;
    for (unsigned route = 0; route < SIM_ROUTES; route++) {
        enum sim_port port = port_of[route];
        if (s->aside & 1u << route && !p->outage_to_ms[port] && sim_draw(s, 2)) {
            p->outage_from_ms[port] = (int64_t)sim_draw(s, 30000);
            p->outage_to_ms[port] = p->outage_from_ms[port] + (int64_t)sim_draw(s, 3600000);
        }
    }
    s->paused = sim_draw(s, 8) ? 0 : s->aside & (unsigned)sim_draw(s, 1u << SIM_ROUTES);
    p->letter_delay_ms = sim_draw(s, 2) ? 0 : sim_draw(s, 60000);
    p->delivers_twice = s->aside && sim_draw(s, 4) == 0;
    /* A failed event is retried as a whole, and a process that is started anew remembers nothing. */
    p->is_uncertain = p->is_uncertain || p->delivers_twice || s->paused || (s->aside && !s->reports);
}

static void choose_mapping(struct sim *s)
{
    struct sl_esm_settings *m = &s->settings;
    bool ends = sim_gives_up(s);
    sl_esm_settings_init(m);
    m->batch_size = 1 + (int64_t)(sim_draw(s, 3) ? sim_draw(s, 20) : sim_draw(s, 100));
    m->window_s = sim_draw(s, 3) ? 0 : (int64_t)sim_draw(s, 10);
    m->report_failures = s->reports;
    /* The mapping must outlast outages, and must give up poison that cannot be parked. */
    m->max_retries = s->parks ? -1 : 30;
    m->bisect = !s->parks || sim_draw(s, 2);
    m->max_age_s = ends ? 60 + (int64_t)sim_draw(s, 120) : -1;
    m->invocation_ms = 1 + (int64_t)sim_draw(s, 50);
    m->seed = s->seed;
    m->stream_arn = "arn:aws:dynamodb:us-east-1:1:table/orders/stream/2026-01-01T00:00:00.000";
    m->function_arn = "arn:aws:lambda:us-east-1:1:function:f";
    m->mapping_id = "00000000-0000-0000-0000-000000000000";
    if (s->routes & 1u << SIM_WINDOW)
        m->tumbling_s = 1 + (int64_t)sim_draw(s, 60);
    else
        m->parallelization = 1 + (int64_t)sim_draw(s, 3);
    s->timeout_ms = (int64_t[]){1000, 10000, 60000}[sim_draw(s, 3)];
}

void sim_choose_plan(struct sim *s)
{
    s->view = (enum sl_view)(SL_VIEW_KEYS_ONLY + sim_draw(s, 4));
    if (sim_draw(s, 2))
        s->view = SL_VIEW_NEW_AND_OLD_IMAGES;
    choose_faults(s);
    choose_routes(s);
    choose_aside(s);
    choose_mapping(s);
}

/* ---- sluice.json ---- */

/* Members of a route: ' stands for ". */
#define MESSAGE ",'message':'{PK} {sequence}'"
#define COUNTERS                                                                                             \
    ",'counters':[{'key':{'PK':'G#{group}'},'add':{'orders':1,'revenue':'{total}'}},"                        \
    "{'key':{'PK':'{h}'},'where':{'h':[{'exists':true}]},'add':{'orders':1}}]"
#define MEMBERS                                                                                              \
    ",'counters':[{'key':{'PK':'G#{group}','SK':'-'},'add':{'orders':1,'revenue':'{total}'},"                \
    "'distinct':{'people':'{PK}','amounts':'{total}'},'members':{'by':'{total}'}},"                          \
    "{'key':{'PK':'{h}','SK':'{h}'},'where':{'h':[{'exists':true}]},'add':{'orders':1}}]"

static void add_route(struct sim *s, enum sim_route route, struct sl_buffer *b)
{
    static const char *const routes[SIM_ROUTES] = {
        [SIM_ARCHIVE] = "'name':'archive','handler':'archive','to':'sim:archive','compression':'none'",
        [SIM_REPLICA] = "'name':'replica','handler':'replicate','to':'sim:replica'",
        [SIM_TOTALS] = "'name':'totals','handler':'aggregate','to':'sim:totals'",
        [SIM_VIEW] =
            "'name':'view','handler':'view','to':'sim:view','key':{'PK':'{group|key}#{PK|key}','SK':'{SK}'},"
            "'project':['version','total']",
        [SIM_PROBE] = "'name':'probe','handler':'probe'",
        [SIM_NOTIFY] = "'name':'notify','handler':'notify','to':'sim:queue'" MESSAGE,
        [SIM_ECHO] = "'name':'echo','handler':'notify','to':'sim:echo'" MESSAGE,
        [SIM_WINDOW] = "'name':'window','handler':'window'",
    };
    sl_buffer_printf(b, "{%s", routes[route]);
    if (route == SIM_REPLICA && s->guards_aside)
        sl_buffer_add_str(b, ",'guard':{'table':'guards','key':'PK'}");
    if (route == SIM_VIEW)
        sl_buffer_add_str(b, s->has_lists ? ",'list':{'table':'lists'}" : ",'list':false");
    if (route == SIM_TOTALS)
        sl_buffer_add_str(b, s->has_members ? MEMBERS : COUNTERS);
    if (route == SIM_TOTALS && s->has_members && !s->sub_counters)
        sl_buffer_add_str(b, ",'empty':'delete'");
    if (route == SIM_TOTALS && s->sub_counters)
        sl_buffer_printf(b, ",'shards':%u", s->sub_counters);
    if (route == SIM_TOTALS && s->keeps_expired)
        sl_buffer_add_str(b, ",'expired':'keep'");
    if (route == SIM_TOTALS && s->ledger == SIM_LEDGER_OLDER)
        sl_buffer_add_str(b, ",'epoch':1");
    if (s->aside & 1u << route)
        sl_buffer_printf(b, ",'set_aside':'sqs://aside-%s'%s", sim_route_names[route],
                         s->paused & 1u << route ? ",'paused':true" : "");
    sl_buffer_add_str(b, sim_draw(s, 4) ? "}," : ",'max_records':3},");
}

static void shuffle(struct sim *s, unsigned order[SIM_ROUTES])
{
    for (unsigned i = 0; i < SIM_ROUTES; i++)
        order[i] = i;
    for (unsigned i = SIM_ROUTES; i > 1; i--) {
        unsigned k = (unsigned)sim_draw(s, i), swap = order[k];
        order[k] = order[i - 1];
        order[i - 1] = swap;
    }
}

void sim_write_config(struct sim *s)
{
    unsigned order[SIM_ROUTES];
    struct sl_buffer b;
    shuffle(s, order);
    sl_buffer_init(&b, 1 << 16);
    sl_buffer_printf(&b, "{'on_failure':%s,'report_batch_item_failures':%s,%s'routes':[",
                     !s->parks      ? "'report'"
                     : s->dlq_bytes ? "['sim:dlq','sim:box']"
                                    : "'sim:dlq'",
                     s->reports ? "true" : "false", sim_gives_up(s) ? "" : "'max_parked':null,");
    for (unsigned i = 0; i < SIM_ROUTES; i++)
        if (s->routes & 1u << order[i])
            add_route(s, (enum sim_route)order[i], &b);
    b.len -= b.ptr[b.len - 1] == ',';
    sl_buffer_add_str(&b, "]}");
    s->config = sim_json(s, &b);
    if (ftruncate(s->config_fd, 0) != 0 ||
        pwrite(s->config_fd, s->config.ptr, s->config.len, 0) != (ssize_t)s->config.len)
        sl_die("the configuration cannot be written");
}
