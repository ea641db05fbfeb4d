/* `sluice check`: each finding has its code, its place and its weight; what is right has none. */
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARCHIVE   "'handler':'archive','to':'s3://bucket/x'"
#define REPLICATE "'handler':'replicate','to':'dynamodb://replica'"
#define TO_OTHER  "'handler':'replicate','to':'dynamodb://other'"
#define COUNTER   "'counters':[{'key':{'PK':'{status}'},'add':{'n':1}}]"
#define AGGREGATE "'handler':'aggregate','to':'dynamodb://totals'," COUNTER
#define LOCAL     "'handler':'aggregate','to':'sqlite:db?table=totals'," COUNTER
#define NOTIFY    "'handler':'notify'"
#define URL       "https://hooks.example.com/SECRET"

/* Members of up to two routes, and of the configuration besides. */
struct config {
    const char *a, *b, *more;
};

static const char *config_text(const struct config *c)
{
    return json_printf("{%s%s'routes':[{'name':'a',%s}%s%s%s]}",
                       c->more && strstr(c->more, "report_batch") ? "" : "'report_batch_item_failures':true,",
                       c->more ? c->more : "'on_failure':'sqs://failures',", c->a,
                       c->b ? ",{'name':'b'," : "", c->b ? c->b : "", c->b ? "}" : "");
}

/* The lines that begin with "warning: ", or with "note: ". */
static size_t count(const struct verbs *v, const char *begin)
{
    size_t n = 0;
    for (const char *at = verb_out(v); *at; at += strcspn(at, "\n") + 1)
        n += strncmp(at, begin, strlen(begin)) == 0;
    return n;
}

/* A line that begins with the weight and the place, and ends with the code. */
static bool is_said(const struct verbs *v, const char *weight, const char *place, const char *code)
{
    const char *begin = json_printf("%s: %s", weight, place), *end = json_printf("[%s]", code);
    for (const char *at = verb_out(v); *at; at += strcspn(at, "\n") + 1)
        if (strncmp(at, begin, strlen(begin)) == 0 &&
            sl_span_ends(sl_span(at, strcspn(at, "\n")), sl_span_str(end)))
            return true;
    return false;
}

/* ---- one configuration ---- */

static const struct {
    const char *code, *weight, *place;
    struct config config;
} found[] = {
    {"option-unused", "warning", "$.routes[0].subject", {.a = NOTIFY ",'to':'sqs://q','subject':'{a}'"}},
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
        {.a = AGGREGATE, .b = AGGREGATE},
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

static void variables_have_stand_ins_or_values(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json",
               config_text(&(struct config){.a = NOTIFY ",'to':'sqs://${QUEUE}'",
                                            .b = "'handler':'archive','to':'s3://${BUCKET}/x'"}));
    verb_assert(v, verb(v, "check"), 0, "note: BUCKET is not set");
    verb_assert(v, verb(v, "check --set QUEUE=mine --set BUCKET=archive"), 0, "s3://archive/x");
    assert_non_null(strstr(verb_out(v), "sqs://mine"));
    assert_null(strstr(verb_out(v), "not set"));
    verb_assert(v, verb(v, "check --set QUEU=a"), 0, "note: --set QUEU: the configuration has no ${QUEU}");
    verb_assert(v, verb(v, "check --set QUEUE=a --set QUEUE=b"), 2, "--set QUEUE is given twice");
    verb_assert(v, verb(v, "check --set FOO"), 2, "--set FOO: write NAME=VALUE");
    verb_assert(v, verb(v, "check --set =x"), 2, "--set =x: write NAME=VALUE");
    verb_assert(v, verb(v, "check --set '1 A=x'"), 2, "--set 1 A=x: write NAME=VALUE");
    static const char *const targets[] = {
        "'to':'sns:${TOPIC_ARN}'",
        "'to':'sqs:${QUEUE_ARN}'",
        "'to':'sqs://${ACCOUNT}/${QUEUE}'",
        "'to':'sqs://https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/q'",
        "'to':'events:${BUS}'",
        "'to':'kinesis://${STREAM}?region=${REGION}'",
        "'to':'${URL}'",
        "'to':'https://h/#secret=HOOK_NEW,HOOK_OLD&header_env.X=HOOK_X'",
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = json_printf(NOTIFY ",%s", targets[i])}));
        verb_assert(v, verb(v, "check --set HOOK_OLD=whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), 0,
                    "[variable-not-set]");
    }
    assert_true(is_said(v, "note", "HOOK_NEW is not set here", "variable-not-set"));
    assert_false(is_said(v, "note", "HOOK_OLD is not set here", "variable-not-set"));
    static const char *const tables[] = {
        "dynamodb://${T}?region=${REGION}", "dynamodb://arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${TABLE}",
        "${TABLE_URL}", "opensearch://${HOST}/${INDEX}", "sqlite:${FILE}?table=${T}"};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){
                       .a = json_printf("'handler':'replicate','to':'%s'", tables[i]),
                       .b = "'handler':'archive','to':'s3://${B}?region=${REGION}&kms_key=${KEY}'"}));
        verb_assert(v, verb(v, "check"), 0, "[variable-not-set]");
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
    verb_assert(v, verb(v, "check nowhere.json"), 2, "nowhere.json: cannot be opened: No such file");
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

/* ---- with a mapping ---- */

#define MAPPING(...)                                                                                         \
    "{'FunctionResponseTypes':['ReportBatchItemFailures'],'BisectBatchOnFunctionError':true,"                \
    "'DestinationConfig':{'OnFailure':{'Destination':'arn:aws:sqs:us-east-1:123456789012:q'}},"              \
    "'MaximumRetryAttempts':10000,'MaximumRecordAgeInSeconds':-1,'StartingPosition':'TRIM_"                  \
    "HORIZON'" __VA_ARGS__ "}"
#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026"

static void mappings_are_taken_or_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *mapping;
        int status;
        const char *text;
    } cases[] = {
        {MAPPING(), 0, "0 warnings"},
        {MAPPING(",'BatchSize':'100'"), 0, "0 warnings"},
        {MAPPING(",'EventSourceArn':'arn:aws:kinesis:us-east-1:123456789012:stream/s'"), 0, "0 warnings"},
        {"{'EventSourceMappings':[" MAPPING(",'EventSourceArn':'" ARN "'") "]}", 0, "0 warnings"},
        {"{'Type':'AWS::Lambda::EventSourceMapping','Properties':" MAPPING() "}", 0, "0 warnings"},
        {"{'EventSourceMappings':[]}", 2, "none of them"},
        {"{'EventSourceMappings':[" MAPPING(",'UUID':'u1','EventSourceArn':'" ARN
                                            "'") "," MAPPING(",'UUID':'u2','EventSourceArn':'" ARN "'") "]}",
         2, "u1, u2"},
        {MAPPING(",'EventSourceArn':'arn:aws:sqs:us-east-1:123456789012:q'"), 2,
         "is the mapping of arn:aws:sqs"},
        {MAPPING(",'Queues':['q']"), 2, "queues or topics"},
        {"{}", 2, "no member of one"},
        {"{'a':1}", 2, "no member of one"},
        {"[1]", 2, "mapping"},
        {"{", 2, "mapping"},
        {MAPPING(",'BatchSize':'many'"), 2, "$.BatchSize: is not a whole number"},
        {MAPPING(",'Enabled':'on'"), 2, "$.Enabled"},
        {MAPPING(",'BatchSize':10001"), 1, "[mapping-refused]"},
        {MAPPING(",'ParallelizationFactor':0"), 1, "[mapping-refused]"},
        {MAPPING(",'ParallelizationFactor':2,'TumblingWindowInSeconds':30"), 0, "[window-parallel]"},
        {MAPPING(",'BatchSiz':100"), 1, "did you mean BatchSize?"},
        {MAPPING(",'State':'Disabled'"), 1, "[mapping-disabled]"},
        {MAPPING(",'Enabled':false"), 1, "[mapping-disabled]"},
        {MAPPING(",'FilterCriteria':{'Filters':[{'Pattern':'{\\\"eventName\\\":[\\\"insert\\\"]}'}]}"), 1,
         "[never-matches]"},
        {MAPPING(",'FilterCriteria':{'Filters':[{'Pattern':'{}'}]}"), 1, "[filter-refused]"},
        {MAPPING(",'FilterCriteria':{'Filters':[{'Pattern':'{\\\"awsRegion\\\":[{\\\"wildcard\\\":\\\"a*\\\"}"
                 "]}'}]}"),
         0, "[operator-unpublished]"},
    };
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = strdup(json(cases[i].mapping));
        verb_input(v, text);
        free(text);
        verb_assert(v, verb(v, "check --mapping -"), cases[i].status, cases[i].text);
    }
    verb_assert(v, verb(v, "check --mapping nowhere.json"), 2, "nowhere.json");
}

/* The mapping above, but for one member. */
static const char *sound_but(const char *name, const char *value)
{
    static const char *const members[][2] = {
        {"FunctionResponseTypes", "['ReportBatchItemFailures']"},
        {"BisectBatchOnFunctionError", "true"},
        {"DestinationConfig", "{'OnFailure':{'Destination':'arn:aws:sqs:us-east-1:123456789012:q'}}"},
        {"MaximumRetryAttempts", "10000"},
        {"MaximumRecordAgeInSeconds", "-1"},
        {"StartingPosition", "'TRIM_HORIZON'"},
    };
    const char *text = "{'BatchSize':100";
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        text = json_printf("%s,'%s':%s", text, members[i][0],
                           strcmp(members[i][0], name) == 0 ? value : members[i][1]);
    return json_printf("%s}", text);
}

static void each_setting_of_a_mapping_that_loses_data_is_named(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *name, *value, *text;
        bool reports;
    } cases[] = {
        {"FunctionResponseTypes", "[]", "no ReportBatchItemFailures", false},
        {"MaximumRetryAttempts", "3", "MaximumRetryAttempts is 3", false},
        {"MaximumRecordAgeInSeconds", "3600", "MaximumRecordAgeInSeconds is 3600", false},
        {"DestinationConfig", "{}", "no OnFailure", false},
        {"StartingPosition", "'LATEST'", "LATEST", false},
        {"BisectBatchOnFunctionError", "false", "BisectBatchOnFunctionError is off", true},
        {"MaximumRetryAttempts", "-1", "blocks its shard", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = ARCHIVE,
                                                .more = cases[i].reports ? "'on_failure':'report'," : NULL}));
        verb_input(v, sound_but(cases[i].name, cases[i].value));
        verb_assert(v, verb(v, "check --mapping -"), 1, cases[i].text);
        assert_int_equal(count(v, "warning: "), 1);
    }
}

/* ---- with the tables ---- */

#define EVENT                                                                                                \
    "{'Records':[{'eventID':'1','eventName':'INSERT','eventSourceARN':'" ARN "','dynamodb':{'Keys':{'PK':"   \
    "{'S':'a'}},'NewImage':{'PK':{'S':'a'},'status':{'S':'OPEN'}},'SequenceNumber':'100'}}]}"

static void tables_are_asked_for_their_keys_and_ledgers(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *a;
        int status;
        const char *text;
    } cases[] = {
        {"'handler':'replicate','to':'sqlite:db?table=replica'", 0, "0 warnings"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','key':{'PK':'{PK}'}", 0, "0 warnings"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','key':{'id':'{PK}'}", 1,
         "$.routes[0].key: names the key id, and the table's key is PK"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','key':{'PK':'{PK}','SK':'x'}", 1,
         "$.routes[0].key: names the key PK and SK"},
        {"'handler':'replicate','to':'sqlite:db?table=replica','set':{'PK':'{status}'}", 1, "[set-on-key]"},
        {LOCAL ",'epoch':2", 0, "0 warnings"},
        {LOCAL ",'epoch':2,'shards':3", 1, "$.routes[0].shards: changes from 0 to 3"},
        {LOCAL ",'epoch':1", 1, "$.routes[0].epoch: the ledger a is in epoch 2"},
        {LOCAL ",'epoch':3", 0, "$.routes[0].epoch: changes from 2 to 3: backfill"},
    };
    verb_write(v, "event.json", EVENT);
    verb_write(v, "fill.json",
               config_text(&(struct config){.a = LOCAL ",'epoch':2",
                                            .b = "'handler':'replicate','to':'sqlite:db?table=replica'",
                                            .more = "'on_failure':'report',"}));
    verb_write(v, "sluice.json",
               config_text(&(struct config){.a = cases[0].a, .more = "'on_failure':'report',"}));
    verb_assert(v, verb(v, "check --tables"), 0, "0 warnings"); /* the table is not there: nothing to say */
    assert_string_equal(verb_read(v, "db"), "");
    verb_assert(v, verb(v, "backfill --config fill.json --unsafe-order --keys PK event.json"), 0, "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = cases[i].a, .more = "'on_failure':'report',"}));
        verb_assert(v, verb(v, "check --tables"), cases[i].status, cases[i].text);
        verb_assert(v, verb(v, "check"), 0, "0 warnings");
    }
}

static int set_up(void **state)
{
    *state = verbs_new();
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_finding_has_its_code_and_place),
        TEST(what_is_right_has_no_finding),
        TEST(variables_have_stand_ins_or_values),
        TEST(what_cannot_be_read_is_refused),
        TEST(a_condition_has_its_nearest_filter),
        TEST(mappings_are_taken_or_refused),
        TEST(each_setting_of_a_mapping_that_loses_data_is_named),
        TEST(tables_are_asked_for_their_keys_and_ledgers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
