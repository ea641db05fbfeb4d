/* What a handler says that changes cost is what it spends: for each form of its rows, each kind of change,
 * and batches of many sizes. All rows are small, so that each costs one unit. */
#include "handlers/pipeline/route.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(route) "{'on_failure':'report','report_batch_item_failures':true,'routes':[" route "]}"
#define REPLICA(members)                                                                                     \
    ROUTE("{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=rows'" members "}")
#define TOTALS(members)                                                                                      \
    ROUTE("{'name':'t','handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," members "}")
#define VIEW(members) ROUTE("{'name':'v','handler':'view','to':'sqlite:${DIR}/db?table=rows'," members "}")
#define KEY           "'key':{'PK':'{g}','SK':'-'},"
#define COUNTER       "'counters':[{" KEY "'add':{'n':1,'sum':'{v}'}}]"

static const char *const configs[] = {
    REPLICA(""),
    REPLICA(",'guard':'none'"),
    REPLICA(",'guard':{'table':'side'}"),
    REPLICA(",'tombstones':{'table':'side'}"),
    VIEW("'key':{'PK':'{PK}'}"),
    VIEW("'key':{'PK':'{g}','SK':'{PK}'},'list':{'table':'lists'},'item':{'v':'{v}'}"),
    VIEW("'key':{'PK':'{PK}'},'list':false"),
    TOTALS(COUNTER),
    TOTALS(COUNTER ",'shards':2"),
    TOTALS(COUNTER ",'shards':7"),
    TOTALS(COUNTER ",'empty':'delete'"),
    TOTALS(COUNTER ",'mode':'at-least-once'"),
    TOTALS(COUNTER ",'per':'event'"),
    TOTALS("'counters':[{" KEY "'add':{'n':1}}]"),
    TOTALS("'counters':[{" KEY "'add':{'n':1}},{'key':{'PK':'2#{g}','SK':'-'},'add':{'sum':'{v}'}}]"),
    TOTALS("'counters':[{" KEY "'add':{'n':1},'running_max':{'top':'{v}'}}]"),
    TOTALS("'counters':[{" KEY "'running_max':{'top':'{v}'},'running_min':{'low':'{v}'}}]"),
    TOTALS("'mode':'at-least-once','counters':[{" KEY "'running_max':{'top':'{v}'},'add':{'sum':'{v}'}}]"),
    TOTALS("'counters':[{" KEY "'members':{'by':'1'}}]"),
    TOTALS("'counters':[{" KEY "'add':{'n':1},'distinct':{'d':'{g}'}}]"),
    TOTALS("'empty':'delete','counters':[{" KEY
           "'add':{'n':1}},{'key':{'PK':'2#{g}','SK':'-'},'add':{'n':1}}]"),
    TOTALS("'counters':[{" KEY "'add':{'n':1},'members':{'by':'1'}}]"),
};

static const char *const views[] = {"NEW_AND_OLD_IMAGES", "NEW_IMAGE"};
static const enum sl_view view_of[] = {SL_VIEW_NEW_AND_OLD_IMAGES, SL_VIEW_NEW_IMAGE};
static const char *const event_names[] = {"INSERT", "MODIFY", "REMOVE"};
static const enum sl_event event_of[] = {SL_INSERT, SL_MODIFY, SL_REMOVE};

struct trial {
    size_t event, view, n;
    bool is_spread;
    const char *other; /* how the items' keys begin */
};

static void add_image(struct sl_buffer *out, const char *name, const struct trial *t, size_t i, size_t v)
{
    sl_buffer_printf(out, ",\"%s\":{\"PK\":{\"S\":\"%s%zu\"},\"g\":{\"S\":\"%s%zu\"},\"v\":{\"N\":\"%zu\"}}",
                     name, t->other, i, t->is_spread ? t->other : "", t->is_spread ? i : 0, v);
}

/* `event`: of that kind, with sequence numbers from `first` on. */
static char *event_text(const struct trial *t, size_t event, size_t first)
{
    struct sl_buffer out;
    sl_buffer_init(&out, 8 << 20);
    sl_buffer_add_str(&out, "{\"Records\":[");
    for (size_t i = 0; i < t->n; i++) {
        sl_buffer_printf(
            &out,
            "%s{\"eventID\":\"%zu\",\"eventName\":\"%s\",\"eventSource\":\"aws:dynamodb\",\"dynamodb\":{"
            "\"Keys\":{\"PK\":{\"S\":\"%s%zu\"}},\"SequenceNumber\":\"%zu\",\"StreamViewType\":\"%s\"",
            i ? "," : "", first + i, event_names[event], t->other, i, first + i, views[t->view]);
        if (event != 2)
            add_image(&out, "NewImage", t, i, first + i);
        if (event != 0 && t->view == 0)
            add_image(&out, "OldImage", t, i, i + 1);
        sl_buffer_add_str(&out, "}}");
    }
    sl_buffer_add_str(&out, "]}");
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

static void deliver(struct stage *s, const struct trial *t, size_t event, size_t first)
{
    char *text = event_text(t, event, first);
    if (!stage_drive(s, text, 1))
        fail_msg("%s", s->answer.error.text);
    free(text);
}

/* Does the route work with the view type? (What a removal without its image was, no event can count.) */
static bool is_served(struct stage *s, const struct trial *t)
{
    if (sl_options_get(&s->p->routes[0].options, "per") && t->event == 2 && t->view == 1 &&
        sl_span_is(sl_options_get(&s->p->routes[0].options, "per")->text, "event"))
        return false;
    return sl_route_accepts(&s->p->routes[0], view_of[t->view], NULL) == SL_OK;
}

static void try_price(const char *config, const struct trial *t)
{
    struct stage *s = stage_new(config, NULL);
    struct sl_price price = {.event = event_of[t->event],
                             .view = view_of[t->view],
                             .records = t->n,
                             .item_bytes = 30,
                             .is_spread = t->is_spread,
                             .arena = s->arena};
    const struct sl_route *route = &s->p->routes[0];
    struct sl_error error = SL_NO_ERROR;
    if (is_served(s, t)) {
        if (t->event != 0)
            deliver(s, t, 0, 1);
        /* (One that stays, so that the one group is not emptied.) */
        deliver(s, &(struct trial){0, t->view, 1, t->is_spread, "stays"}, 0, 5000);
        memset(&s->spent, 0, sizeof(s->spent));
        deliver(s, t, t->event, 10001);
        assert_int_equal(route->loaded.handler.price(route->self, &price, &error), SL_OK);
        assert_true(price.formula && price.formula[0]);
        assert_true((strstr(price.formula, "if the group stays") != NULL) ==
                    (t->event == 1 && strstr(config, "aggregate") && !strstr(config, "'event'")));
        if (price.writes != s->spent.writes || price.reads != s->spent.reads ||
            price.write_units != s->spent.write_units || price.read_units != s->spent.read_units)
            fail_msg(
                "%s, %zu of %s, %s, %s: %zu writes (%.1f units) and %zu reads (%.1f), and it says %zu (%.1f) "
                "and %zu (%.1f)",
                config, t->n, event_names[t->event], views[t->view], t->is_spread ? "spread" : "one group",
                s->spent.writes, s->spent.write_units, s->spent.reads, s->spent.read_units, price.writes,
                price.write_units, price.reads, price.read_units);
    }
    stage_destroy(s);
}

static void a_price_is_what_is_spent(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 99, 100, 300};
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++)
        for (size_t event = 0; event < 3; event++)
            for (size_t view = 0; view < 2; view++)
                for (size_t i = 0; i < (strstr(configs[c], "replicate") ? 2 : 4); i++)
                    for (int spread = 0; spread < 2; spread++)
                        try_price(configs[c], &(struct trial){event, view, sizes[i], spread, ""});
}

/* Items of any size, by the units that begin: 1 KB written, 4 KB read. */
static void units_begin_where_the_last_ones_end(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        enum sl_event event;
        enum sl_view view;
        uint32_t bytes;
        double write, read;
    } cases[] = {
        {REPLICA(",'guard':'none'"), SL_INSERT, SL_VIEW_NEW_IMAGE, 0, 1, 0},
        {REPLICA(",'guard':'none'"), SL_INSERT, SL_VIEW_NEW_IMAGE, 1, 1, 0},
        {REPLICA(",'guard':'none'"), SL_MODIFY, SL_VIEW_NEW_IMAGE, 1024, 1, 0},
        {REPLICA(",'guard':'none'"), SL_REMOVE, SL_VIEW_NEW_IMAGE, 1025, 2, 0},
        {REPLICA(",'guard':'none'"), SL_INSERT, SL_VIEW_NEW_IMAGE, 2048, 2, 0},
        {REPLICA(",'guard':'none'"), SL_INSERT, SL_VIEW_NEW_IMAGE, 2049, 3, 0},
        {REPLICA(",'guard':{'table':'g'}"), SL_INSERT, SL_VIEW_NEW_IMAGE, 1025, 6, 0},
        {REPLICA(",'tombstones':{'table':'g'}"), SL_INSERT, SL_VIEW_NEW_IMAGE, 1025, 6, 0},
        {REPLICA(",'tombstones':{'table':'g'}"), SL_MODIFY, SL_VIEW_NEW_IMAGE, 1025, 2, 0},
        {REPLICA(",'tombstones':{'table':'g'}"), SL_REMOVE, SL_VIEW_NEW_IMAGE, 1025, 7, 0},
        {VIEW("'key':{'PK':'{PK}'}"), SL_INSERT, SL_VIEW_NEW_IMAGE, 0, 4, 1},
        {VIEW("'key':{'PK':'{PK}'}"), SL_MODIFY, SL_VIEW_NEW_IMAGE, 1024, 4, 1},
        {VIEW("'key':{'PK':'{PK}'}"), SL_REMOVE, SL_VIEW_NEW_IMAGE, 1025, 6, 1},
        {VIEW("'key':{'PK':'{PK}'},'list':false"), SL_INSERT, SL_VIEW_NEW_AND_OLD_IMAGES, 0, 1, 0},
        {VIEW("'key':{'PK':'{PK}'},'list':false"), SL_REMOVE, SL_VIEW_NEW_AND_OLD_IMAGES, 1025, 2, 0},
        {REPLICA(""), SL_INSERT, SL_VIEW_NEW_IMAGE, 1024, 2, 0},
        {REPLICA(""), SL_INSERT, SL_VIEW_NEW_IMAGE, 700, 1, 0},
        {REPLICA(",'guard':'none','source':'sqlite:${DIR}/db?table=s'"), SL_INSERT, SL_VIEW_KEYS_ONLY, 4096,
         4, 1},
        {REPLICA(",'guard':'none','source':'sqlite:${DIR}/db?table=s'"), SL_MODIFY, SL_VIEW_OLD_IMAGE, 4097,
         5, 2},
        {REPLICA(",'guard':'none','source':'sqlite:${DIR}/db?table=s'"), SL_MODIFY, SL_VIEW_NEW_IMAGE, 4097,
         5, 0},
        {REPLICA(",'guard':'none','source':'sqlite:${DIR}/db?table=s'"), SL_REMOVE, SL_VIEW_KEYS_ONLY, 4096,
         4, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        struct sl_error error = SL_NO_ERROR;
        struct sl_price price = {.event = cases[i].event,
                                 .view = cases[i].view,
                                 .records = 3,
                                 .item_bytes = cases[i].bytes,
                                 .arena = s->arena};
        const struct sl_route *route = &s->p->routes[0];
        assert_int_equal(route->loaded.handler.price(route->self, &price, &error), SL_OK);
        if (price.write_units != 3 * cases[i].write || price.read_units != 3 * cases[i].read)
            fail_msg("case %zu: %.1f written, %.1f read", i, price.write_units, price.read_units);
        assert_int_equal(price.reads, cases[i].read > 0 ? 3 : 0);
        assert_true((strstr(price.formula, "read of the ") != NULL) == (cases[i].read > 0));
        stage_destroy(s);
    }
}

/* What has no table costs no units, and is told in words. */
static void messages_and_objects_are_counted_in_words(void **state)
{
    (void)state;
    static const struct {
        const char *config, *formula;
    } cases[] = {
        {ROUTE("{'name':'n','handler':'notify','to':'jsonl:${DIR}/o.jsonl'}"), "one message"},
        {ROUTE("{'name':'a','handler':'archive','to':'file:${DIR}/a'}"), "one object for each"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t event = 0; event < 3; event++) {
            struct stage *s = stage_new(cases[i].config, NULL);
            struct sl_error error = SL_NO_ERROR;
            struct sl_price price = {
                .event = event_of[event], .records = 3, .item_bytes = 5000, .arena = s->arena};
            const struct sl_route *route = &s->p->routes[0];
            assert_int_equal(route->loaded.handler.price(route->self, &price, &error), SL_OK);
            assert_int_equal(price.writes + price.reads, 0);
            assert_true(price.write_units == 0 && price.read_units == 0);
            assert_non_null(strstr(price.formula, cases[i].formula));
            stage_destroy(s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_price_is_what_is_spent),
        cmocka_unit_test(units_begin_where_the_last_ones_end),
        cmocka_unit_test(messages_and_objects_are_counted_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
