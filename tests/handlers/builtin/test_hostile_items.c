/* Whatever an item holds, in any attribute that a template or a condition reads: it is handled or rejected,
 * and never stops a route, loses a neighbour or changes what was counted for others. Other programs write the
 * items; the configuration is ours. */
#include "base/buffer.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD                                                                                                 \
    "{'on_failure':'jsonl:${DIR}/"                                                                           \
    "failed.jsonl','report_batch_item_failures':true,'max_parked':null,'routes':[{'name':'t',"
#define TOTALS(more) HEAD "'handler':'aggregate','to':'sqlite:${DIR}/db?table=totals'," more "}]}"

/* Every option that reads the attribute `h`. */
static const char *const routes[] = {
    TOTALS("'counters':[{'key':{'PK':'{h}'},'add':{'n':1}}]"),
    TOTALS("'counters':[{'key':{'PK':'{h}','SK':'{h}'},'add':{'n':1}}]"),
    TOTALS("'counters':[{'key':{'PK':'{h}'},'add':{'n':1}}],'per':'event'"),
    TOTALS("'counters':[{'key':{'PK':'{h}'},'add':{'n':1}}],'mode':'at-least-once'"),
    TOTALS("'counters':[{'key':{'PK':'{h}'},'add':{'n':1}}],'empty':'delete','ledger':{'table':'totals'}"),
    TOTALS("'counters':[{'key':{'PK':'{h}'},'add':{'n':1}}],'shards':3"),
    TOTALS("'counters':[{'key':{'PK':'g'},'add':{'n':1,'sum':'{h}'}}]"),
    TOTALS("'counters':[{'key':{'PK':'g'},'add':{'n':1},'distinct':{'d':'{h}'}}]"),
    TOTALS("'counters':[{'key':{'PK':'{h}','SK':'{h}'},'add':{'n':1},'distinct':{'d':'{h}'},'members':{'by':'"
           "{v}'}}]"),
    TOTALS("'counters':[{'key':{'PK':'g','SK':'-'},'add':{'n':1},'members':{'by':'{h}'}}]"),
    TOTALS("'counters':[{'key':{'PK':'g'},'add':{'n':1},'running_max':{'m':'{h}'}}],'mode':'at-least-once'"),
    HEAD "'handler':'replicate','to':'sqlite:${DIR}/db?table=r','key':{'PK':'{h}'}}]}",
    HEAD "'handler':'replicate','to':'sqlite:${DIR}/db?table=r','set':{'s':'{h}','n':'{h|number}'}}]}",
    HEAD "'handler':'replicate','to':'sqlite:${DIR}/db?table=r','key':{'PK':'{h}'},'guard':{'table':'g'}}]}",
    HEAD
    "'handler':'replicate','to':'sqlite:${DIR}/db?table=r','key':{'PK':'{h}'},'tombstones':{'table':'g'}}]}",
    HEAD "'handler':'view','to':'sqlite:${DIR}/db?table=r','key':{'PK':'{h}','SK':'{PK}'}}]}",
    HEAD
    "'handler':'view','to':'sqlite:${DIR}/db?table=r','key':{'PK':'{h|key}#{PK|key}'},'set':{'s':'{h}'}}]}",
    HEAD "'handler':'view','to':'sqlite:${DIR}/"
         "db?table=r','each':'h[*]','key':{'PK':'{each}','SK':'{PK}'},'item':{'e':"
         "'{each|json}'}}]}",
    HEAD
    "'handler':'view','to':'sqlite:${DIR}/db?table=r','each':'h[*]','key':{'PK':'{each_index|key}#{PK|key}'},"
    "'project':['h'],'list':{'table':'l'}}]}",
    HEAD "'handler':'archive','to':'file:${DIR}/a','key':'{h}/x','compression':'none'}]}",
    HEAD "'handler':'archive','to':'file:${DIR}/a','format':'item','when':{'item':{'h':[{'prefix':'s'}]}}}]}",
    HEAD "'handler':'notify','to':'jsonl:${DIR}/q','message':'{h} {h|json} {h|number} {h|date:yyyy}'}]}",
    HEAD "'handler':'notify','to':'jsonl:${DIR}/"
         "q','message':'{{\\'h\\':{h|json}}}','escape':'json','group':'{h}'}]}",
};

/* Attribute values of every type, at their limits, and the names of our own rows. */
static const char *const values[] = {
    "{'S':''}",
    "{'S':'x'}",
    "{'S':'sluice:delta:t:0'}",
    "{'S':'sluice:source:t'}",
    "{'S':'sluice:ledger:t:{\\\"PK\\\":{\\\"S\\\":\\\"good\\\"}}'}",
    "{'S':'sluice:distinct:t:{\\\"PK\\\":{\\\"S\\\":\\\"g\\\"}}d{\\\"S\\\":\\\"x\\\"}'}",
    "{'S':'sluice:event:t:e1'}",
    "{'S':'sluice:delta:t:0#1'}",
    "{'S':'sluice:view:t:{\\\"M\\\":{\\\"PK\\\":{\\\"S\\\":\\\"bad0\\\"}}}'}",
    "{'SS':['','sluice:view:t:x','y']}",
    "{'M':{'':{'S':'1'},'\\u0000\\\"':{'N':'1'},'each':{'BOOL':false}}}",
    "{'L':[{'NULL':true},{'L':[]},{'M':{}},{'S':'a'},{'S':'a'}]}",
    "{'S':'\\u0000\\u001f\\\\\\\"\\ud83d\\ude00'}",
    "{'S':'../../{h}${DIR}%s'}",
    "{'S':'LONG'}",
    "{'N':'0'}",
    "{'N':'99999999999999999999999999999999999999'}",
    "{'N':'-9.9999999999999999999999999999999999999E+125'}",
    "{'N':'1E-130'}",
    "{'B':''}",
    "{'B':'AAECAw=='}",
    "{'BOOL':true}",
    "{'NULL':true}",
    "{'L':[]}",
    "{'M':{}}",
    "{'M':{'sha256':{'S':'x'}}}",
    "{'SS':['sluice:delta:t:0']}",
    "{'NS':['1','2']}",
    "{'L':[{'M':{'h':{'L':[{'S':'deep'}]}}}]}",
};

/* Two good items around the hostile one, which is made, changed and removed. */
static char *event_of(const char *value, unsigned round)
{
    static const char *const steps[3][2] = {{"INSERT", NULL}, {"MODIFY", NULL}, {"REMOVE", NULL}};
    struct sl_buffer b;
    sl_buffer_init(&b, 4 << 20);
    sl_buffer_add_str(&b, "{'Records':[");
    for (unsigned i = 0; i < 5; i++) {
        const bool is_hostile = i % 4 != 0;
        const char *step = is_hostile ? steps[i - 1][0] : "INSERT";
        char item[64];
        snprintf(item, sizeof(item), "'PK':{'S':'%s%u'}", is_hostile ? "bad" : "good",
                 is_hostile ? round : 10 * round + i);
        sl_buffer_printf(
            &b,
            "%s{'eventID':'e%u-%u','eventName':'%s','dynamodb':{'Keys':{%s},'SequenceNumber':'%u',"
            "'StreamViewType':'NEW_AND_OLD_IMAGES'",
            i ? "," : "", round, i, step, item, 1000 + 10 * round + i);
        for (int old = 0; old < 2; old++)
            if (old ? strcmp(step, "INSERT") != 0 : strcmp(step, "REMOVE") != 0)
                sl_buffer_printf(&b, ",'%s':{%s,'v':{'N':'%d'},'h':%s}", old ? "OldImage" : "NewImage", item,
                                 old + 1, is_hostile ? value : "{'S':'12'}");
        sl_buffer_add_str(&b, "}}");
    }
    sl_buffer_add_str(&b, "]}");
    sl_buffer_add_char(&b, '\0');
    char *text = strdup(b.ptr);
    sl_buffer_clean_up(&b);
    return text;
}

static void no_item_stops_a_route(void **state)
{
    (void)state;
    char *digits = malloc(70001);
    memset(digits, 'a', 70000);
    digits[70000] = '\0';
    char *very_long = strdup(json_printf("{'S':'%s'}", digits));
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        struct stage *s = stage_new(routes[i], NULL);
        for (unsigned k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            char *event = event_of(strstr(values[k], "LONG") ? very_long : values[k], k);
            for (int delivery = 0; delivery < 2; delivery++) { /* and once more, by another process */
                stage_deliver(s, sl_span_str(json(event)));
                if (s->answer.error.status != SL_OK || stage_checkpoint(s) != s->n)
                    fail_msg("%s\nwith %s, delivery %d: %d %s: %s", routes[i], values[k], delivery,
                             s->answer.error.status, s->answer.error.code, s->answer.error.text);
                stage_reopen(s, NULL);
            }
            free(event);
        }
        stage_destroy(s);
    }
    free(very_long);
    free(digits);
}

/* What names a row of ours is rejected by its record alone, and changes nothing that was counted. */
static void an_item_that_names_our_rows_is_poison(void **state)
{
    (void)state;
    static const char *const kinds[] = {"delta:t:0", "source:t",
                                        "ledger:t:{\\\"PK\\\":{\\\"S\\\":\\\"good00\\\"}}", "distinct:t:x",
                                        "anything"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct stage *s = stage_new(routes[0], NULL);
        char *event = event_of(json_printf("{'S':'sluice:%s'}", kinds[i]), 0);
        stage_deliver_all(s, event);
        free(event);
        char *failed = stage_file(s, "failed.jsonl");
        size_t parked = 0;
        for (const char *at = failed; (at = strstr(at, "\"code\":\"ReservedKey\"")); at++)
            parked++;
        assert_int_equal(parked, 2); /* of the removal nothing is to be counted */
        char *rows = stage_query(s, "db",
                                 "SELECT key, json_extract(item,'$.n.N') FROM totals WHERE key NOT LIKE "
                                 "'%sluice:ledger:t:{%M%PK%' AND key NOT LIKE '%sluice:source:%'");
        assert_string_equal(rows, "{\"PK\":{\"S\":\"12\"}}|2\n");
        free(rows);
        free(failed);
        stage_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_item_stops_a_route),
        cmocka_unit_test(an_item_that_names_our_rows_is_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
