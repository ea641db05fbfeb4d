/* `sluice check`: each finding has its code, its place and its weight; what is right has none. */
#include "tests/cli/check_world.h"

/* ---- one configuration ---- */

static const struct {
    const char *code, *weight, *place;
    struct config config;
} found[] = {
    {"option-unused", "warning", "$.routes[0].subject", {.a = NOTIFY ",'to':'sqs://q','subject':'{a}'"}},
    {"template-braces",
     "warning",
     "$.routes[0].message",
     {.a = NOTIFY ",'to':'sqs://q','message':'{{a}} shipped'"}},
    {"template-braces",
     "warning",
     "$.routes[0].message",
     {.a = NOTIFY ",'to':'sqs://q','message':'{b}{{NewImage.a.b}}'"}},
    {"template-type",
     "note",
     "$.routes[0].message",
     {.a = NOTIFY ",'to':'sqs://q','message':'x{NewImage.a.S}'"}},
    {"template-type",
     "note",
     "$.routes[0].message",
     {.a = NOTIFY ",'to':'sqs://q','message':'{b.BOOL|upper}'"}},
    {"option-unused",
     "warning",
     "$.routes[0].attributes",
     {.a = NOTIFY ",'to':'kinesis://s','attributes':{'a':'{a}'}"}},
    {"option-unused", "warning", "$.routes[0].group", {.a = NOTIFY ",'to':'events://bus','group':'{a}'"}},
    {"option-unused", "warning", "$.routes[0].dedupe", {.a = NOTIFY ",'to':'firehose://s','dedupe':'{a}'"}},
    {"option-unused", "warning", "$.routes[0].escape", {.a = NOTIFY ",'to':'sqs://q','escape':'json'"}},
    {"option-unused",
     "warning",
     "$.routes[0].options.body",
     {.a = NOTIFY ",'to':'sqs://q','message':'{a}','options':{'body':'json'}"}},
    {"option-unused", "warning", "$.routes[0].level", {.a = ARCHIVE ",'level':3,'compression':'none'"}},
    {"option-unused",
     "warning",
     "$.routes[0].guard_attribute",
     {.a = REPLICATE ",'guard':'none','guard_attribute':'o'"}},
    {"option-unused",
     "warning",
     "$.routes[0].write_attribute",
     {.a = REPLICATE ",'guard':{'table':'g'},'write_attribute':'o'"}},
    {"option-unused",
     "warning",
     "$.routes[0].tombstone_days",
     {.a = REPLICATE ",'guard':'none','tombstone_days':3"}},
    {"option-unused", "warning", "$.routes[0].epoch", {.a = REPLICATE ",'guard':'none','epoch':3"}},
    {"option-unused",
     "warning",
     "$.routes[0].ledger",
     {.a = AGGREGATE ",'mode':'at-least-once','ledger':{'name':'x'}"}},
    {"option-unused",
     "warning",
     "$.routes[0].forget_after_days",
     {.a = AGGREGATE ",'mode':'at-least-once','forget_after_days':20"}},
    {"table-shared", "warning", "$.routes[1].to", {.a = REPLICATE, .b = REPLICATE}},
    {"table-shared",
     "warning",
     "$.routes[1].to",
     {.a = REPLICATE, .b = "'handler':'replicate','to':'dynamodb://replica?region=us-east-1'"}},
    {"table-shared",
     "warning",
     "$.routes[1].to",
     {.a = REPLICATE, .b = "'handler':'aggregate','to':'dynamodb://replica'," COUNTER}},
    {"table-shared",
     "warning",
     "$.routes[1].to",
     {.a = REPLICATE ",'guard':{'table':'totals'}", .b = AGGREGATE}},
    {"table-shared",
     "warning",
     "$.routes[1].ledger.table",
     {.a = REPLICATE, .b = AGGREGATE ",'ledger':{'table':'replica'}"}},
    {"table-shared",
     "warning",
     "$.routes[1].tombstones.table",
     {.a = AGGREGATE, .b = REPLICATE ",'tombstones':{'table':'totals'}"}},
    {"table-shared",
     "warning",
     "$.routes[1].guard.table",
     {.a = REPLICATE ",'guard':{'table':'g'}", .b = TO_OTHER ",'guard':{'table':'g','key':'id'}"}},
    {"objects-shared", "warning", "$.routes[1].to", {.a = ARCHIVE, .b = ARCHIVE}},
    {"failures-mixed", "warning", "$.routes[0].to", {.a = NOTIFY ",'to':'sqs://failures'"}},
    {"failures-mixed",
     "warning",
     "$.routes[0].to",
     {.a = ARCHIVE ",'on_failure':['sqs://q','s3://bucket/x']"}},
    {"source-is-target",
     "warning",
     "$.routes[0].source",
     {.a = REPLICATE ",'source':'dynamodb://replica?region=us-east-1'"}},
    {"ledger-shared",
     "warning",
     "$.routes[1].ledger",
     {.a = AGGREGATE ",'ledger':{'name':'l'}", .b = AGGREGATE ",'ledger':{'name':'l'}"}},
    {"target-local", "note", "$.routes[0].to", {.a = NOTIFY ",'to':'jsonl:x.fifo','group':'{a}'"}},
    {"counter-moves",
     "warning",
     "$.routes[0].counters[0].key.PK",
     {.a = "'handler':'aggregate','to':'dynamodb://"
           "totals','counters':[{'key':{'PK':'{yyyy}'},'add':{'n':1}}]"}},
    {"target-local", "note", "$.routes[0].to", {.a = "'handler':'archive','to':'file:x'"}},
    {"target-local", "note", "$.on_failure", {.a = ARCHIVE, .more = "'on_failure':'jsonl:x',"}},
    {"view-lacks-image",
     "warning",
     "$.routes[0].when.pattern",
     {.a = ARCHIVE ",'when':{'pattern':[{'dynamodb':{'OldImage':{'a':{'S':['x']}}}}]}",
      .more = "'on_failure':'report','view_type':'NEW_IMAGE',"}},
    {"batch-fails-whole",
     "note",
     "report_batch_item_failures",
     {.a = ARCHIVE, .more = "'on_failure':'sqs://f','report_batch_item_failures':false,"}},
    {"shards-read", "note", "$.routes[0].shards", {.a = AGGREGATE ",'shards':3"}},
    {"webhook-ids-shared",
     "warning",
     "the routes a and b",
     {.a = NOTIFY ",'to':'" URL "'", .b = NOTIFY ",'to':'" URL "'"}},
    {"webhook-ids-shared",
     "warning",
     "the routes a and b",
     {.a = NOTIFY ",'to':'" URL "#batch=5&id=x'", .b = NOTIFY ",'to':'" URL "#id=x'"}},
    {"webhook-ids-shared",
     "warning",
     "the routes a and b",
     {.a = NOTIFY ",'to':'" URL "','dedupe':'{PK}'", .b = NOTIFY ",'to':'" URL "#','dedupe':'{PK}'"}},
    {"variable-not-set", "note", "QUEUE is not set", {.a = NOTIFY ",'to':'sqs://${QUEUE}'"}},
};

static void each_finding_has_its_code_and_place(void **state)
{
    struct verbs *v = *state;
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        verb_write(v, "sluice.json", config_text(&found[i].config));
        bool warns = strcmp(found[i].weight, "warning") == 0;
        verb_assert(v, verb(v, "check"), warns, json_printf("[%s]", found[i].code));
        if (!is_said(v, found[i].weight, found[i].place, found[i].code))
            fail_msg("%s at %s:\n%s", found[i].code, found[i].place, verb_out(v));
        assert_int_equal(count(v, "warning: ") > 0, warns);
        assert_null(strstr(verb_out(v), "SECRET"));
    }
}

static void what_is_right_has_no_finding(void **state)
{
    struct verbs *v = *state;
    static const struct config right[] = {
        {.a = ARCHIVE},
        {.a = REPLICATE},
        {.a = AGGREGATE},
        {.a = NOTIFY ",'to':'sqs://q'"},
        {.a = NOTIFY ",'to':'sqs://q.fifo','group':'{a}','dedupe':'{b}'"},
        {.a = NOTIFY ",'to':'sqs://q.fifo?region=us-east-1','group':'{a}','dedupe':'{b}'"},
        {.a = NOTIFY ",'to':'http://127.0.0.1/x','group':'{a}'"},
        {.a = AGGREGATE, .b = AGGREGATE},
        {.a = ARCHIVE, .b = ARCHIVE ",'key':'{yyyy}/b'"},
        {.a = ARCHIVE, .b = "'handler':'archive','to':'s3://bucket/y'"},
        {.a = REPLICATE, .b = "'handler':'replicate','to':'dynamodb://replica?region=eu-west-1'"},
        {.a = REPLICATE ",'guard':{'table':'g'}", .b = TO_OTHER ",'guard':{'table':'g'}"},
        {.a = REPLICATE ",'key':{'a':'{a}','b':'x'}", .b = REPLICATE ",'key':{'a':'y{a}','b':'x'}"},
        {.a = REPLICATE
         ",'source':'dynamodb://"
         "orders','drop':['a.b[*].c'],'rename':{'x':'y'},'set':{'d':'{c|date:yyyy}'},'tombstones':{"
         "'table':'t'}"},
        {.a = ARCHIVE ",'on_failure':['sqs://q','s3://bucket/failed'],'when':{'expired':true}"},
        {.a = AGGREGATE ",'ledger':{'name':'l','table':'x'}", .b = AGGREGATE ",'ledger':{'name':'l'}"},
        {.a = NOTIFY ",'to':'" URL "#id=x'", .b = NOTIFY ",'to':'" URL "#id=y'"},
        {.a = NOTIFY ",'to':'" URL "'", .b = NOTIFY ",'to':'" URL "','dedupe':'{PK}'"},
        {.a = NOTIFY ",'to':'" URL "'", .b = NOTIFY ",'to':'" URL "2'"},
    };
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        verb_write(v, "sluice.json", config_text(&right[i]));
        verb_assert(v, verb(v, "check"), 0, "0 warnings");
        assert_int_equal(count(v, "warning: "), 0);
        assert_null(strstr(verb_out(v), "SECRET"));
    }
}

static void what_cannot_be_read_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{'routes': [", "sluice.json"},
        {"[]", "$"},
        {"", "sluice.json"},
        {"{'on_failure':'report','frobnicate':1,'routes':[{'name':'a'," ARCHIVE "}]}", "frobnicate"},
        {"{'on_failure':'report','routes':[{'name':'r','handler':'nowhere'}]}", "$.routes[0].handler"},
        {"{'on_failure':'report','routes':[{'name':'r','handler':'archive','to':'s3://Not A Bucket/x'}]}",
         "$.routes[0].to"},
        {"{'on_failure':'report','view_type':'KEYS_ONLY','routes':[{'name':'r','format':'item'," ARCHIVE
         "}]}",
         "$.routes[0]"},
        {"{'on_failure':'report','routes':[{'name':'r','handler':'archive','to':'file:'}]}",
         "write it as file:folder"},
        {"{'on_failure':'report','routes':[{'name':'r','handler':'replicate','to':'sqlite:x.db'}]}",
         "write it as sqlite:file.db?table=name"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        verb_write(v, "sluice.json", wrong[i].text);
        verb_assert(v, verb(v, "check"), 2, wrong[i].says);
        assert_ptr_equal(strchr(verb_err(v), '\n') + 1, verb_err(v) + strlen(verb_err(v))); /* one line */
    }
    verb_assert(v, verb(v, "check nowhere.json"), 2, "nowhere.json: cannot be read: No such file");
}

/* ---- what a condition is as a filter of the mapping ---- */

static void a_condition_has_its_nearest_filter(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *when, *filter;
    } cases[] = {
        {"{'keys':{'PK':[{'prefix':'USER#'}]}}",
         "for the same records: {'dynamodb':{'Keys':{'PK':{'S':[{'prefix':'USER#'}]}}}}\n"},
        {"{'expired':true}", "for the same records: "
                             "{'eventName':['REMOVE'],'userIdentity':{'type':['Service'],'principalId':['"
                             "dynamodb.amazonaws.com']}}\n"},
        {"{'events':['MODIFY'],'changed':['a']}", "lets through more): {'eventName':['MODIFY']}\n"},
        {"{'item':{'a':[{'exists':true}]}}", "filter    none: a mapping cannot say any of this\n"},
        {"{'pattern':[{'eventName':['INSERT']}]}", "one for each pattern: [{'eventName':['INSERT']}]\n"},
        {"{'old_item':{'a':[1]}}", "works with OLD_IMAGE, NEW_AND_OLD_IMAGES\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = json_printf(ARCHIVE ",'when':%s", cases[i].when)}));
        verb_assert(v, verb(v, "check"), 0, json(cases[i].filter));
    }
    static const char *const views[] = {
        "'NEW_IMAGE','on_failure':'report','routes':[{'when':{'old_item':{'a':[1]}}",
        "'KEYS_ONLY','on_failure':'report','routes':[{'when':{'item':{'a':[1]}}",
        "'OLD_IMAGE','on_failure':'report','routes':[{'when':{'changed':['a']}"};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        verb_write(v, "sluice.json", json_printf("{'view_type':%s,'name':'a'," ARCHIVE "}]}", views[i]));
        verb_assert(v, verb(v, "check"), 2, "$.routes[0].when");
    }
}

/* A template that one record fills is good, however many do not. */
static void a_sample_names_what_it_does_not_fill(void **state)
{
    struct verbs *v = *state;
    verb_write(
        v, "sluice.json",
        "{'report_batch_item_failures':true,'on_failure':'sqs://f','routes':["
        "{'name':'a','handler':'notify','to':'sqs://q','message':'{status} {totl}'},"
        "{'name':'b','handler':'notify','to':'sqs://q','message':'{status}','attributes':{'n':'{note}'}},"
        "{'name':'c','handler':'notify','to':'sqs://q','when':{'events':['REMOVE']}}]}");
    verb_write(
        v, "in.jsonl",
        "{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'1'}},'NewImage':{'PK':{'S':'1'},'status':{"
        "'S':'x'},'note':{'S':'y'}},'SequenceNumber':'1'}}\n"
        "{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'2'}},'NewImage':{'PK':{'S':'2'},'status':{"
        "'S':'x'},'total':{'N':'1'}},'SequenceNumber':'2'}}\n");
    verb_assert(
        v, verb(v, "check --sample in.jsonl"), 1,
        "warning: $.routes[0].message: none of 2 records fills it: the record has no value for {totl}; did "
        "you mean {total}? [sample-not-filled]\n");
    verb_assert(v, 1, 1, "note: $.routes[2]: takes none of the 2 records of the sample [sample-not-taken]\n");
    assert_null(strstr(verb_out(v), "$.routes[1].message"));
    assert_null(strstr(verb_out(v), "$.routes[1].attributes"));
    verb_assert(v, verb(v, "check --sample nosuch"), 2, "nosuch: cannot be opened");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_finding_has_its_code_and_place),  TEST(what_is_right_has_no_finding),
        TEST(what_cannot_be_read_is_refused),       TEST(a_condition_has_its_nearest_filter),
        TEST(a_sample_names_what_it_does_not_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
