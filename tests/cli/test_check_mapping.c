/* `sluice check --mapping`: which mapping is meant, what AWS would refuse, what loses data, and filters that
 * match something else than they seem to. */
#include "tests/cli/check_world.h"

#define MAPPING(...)                                                                                         \
    "{'FunctionResponseTypes':['ReportBatchItemFailures'],'BisectBatchOnFunctionError':true,"                \
    "'DestinationConfig':{'OnFailure':{'Destination':'arn:aws:sqs:us-east-1:123456789012:q'}},"              \
    "'MaximumRetryAttempts':10000,'MaximumRecordAgeInSeconds':-1,'StartingPosition':'TRIM_"                  \
    "HORIZON'" __VA_ARGS__ "}"
#define ARN     "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026"
#define KINESIS "arn:aws:kinesis:us-east-1:123456789012:stream/s"
#define QUEUE   "arn:aws:sqs:us-east-1:123456789012:q"

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
        {MAPPING(",'Topics':['t']"), 2, "queues or topics"},
        {MAPPING(",'SelfManagedEventSource':{}"), 2, "queues or topics"},
        {"{'EventSourceMappings':[{'EventSourceArn':'" QUEUE "'}]}", 2,
         "a list of 1 mappings, and none of them"},
        {"{'EventSourceMappings':[{'EventSourceArn':'" QUEUE
         "'}," MAPPING(",'EventSourceArn':'" ARN "'") "]}",
         0, "0 warnings"},
        {"{'EventSourceMappings':[" MAPPING() "," MAPPING() "]}", 2, "one without UUID, one without UUID"},
        {"{'EventSourceMappings':5}", 2, "no member of one"},
        {"{'Properties':5}", 2, "no member of one"},
        {"", 2, "is not an event source mapping (what `aws lambda get-event-source-mapping` prints): "},
        {"{'BatchSize':1,'BatchSize':2}", 2, "duplicate"},
        {MAPPING(",'Zqxjk':1"), 0, "0 warnings"},
        {"{}", 2, "no member of one"},
        {"{'a':1}", 2, "no member of one"},
        {"[1]", 2, "mapping"},
        {"{", 2, "mapping"},
        {MAPPING(",'BatchSize':'many'"), 2, "$.BatchSize: is not a whole number"},
        {MAPPING(",'BatchSize':''"), 2, "$.BatchSize: is not a whole number"},
        {MAPPING(",'BatchSize':'5x'"), 2, "$.BatchSize: is not a whole number"},
        {MAPPING(",'BatchSize':5.5"), 2, "$.BatchSize: is not a whole number"},
        {MAPPING(",'Enabled':'on'"), 2, "$.Enabled"},
        {MAPPING(",'ParallelizationFactor':2,'TumblingWindowInSeconds':30"), 0, "[window-parallel]"},
        {MAPPING(",'BatchSiz':100"), 1, "did you mean BatchSize?"},
        {MAPPING(",'State':'Disabled'"), 1, "[mapping-disabled]"},
        {MAPPING(",'State':'Disabling'"), 1, "[mapping-disabled]"},
        {MAPPING(",'State':'Enabled','Enabled':'true'"), 0, "0 warnings"},
        {MAPPING(",'Enabled':null,'BatchSize':null"), 0, "0 warnings"},
        {MAPPING(",'Enabled':false"), 1, "[mapping-disabled]"},
        {MAPPING(",'Enabled':'false'"), 1, "[mapping-disabled]"},
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

/* The error has room for some names of many. */
static void of_many_mappings_some_are_named(void **state)
{
    struct verbs *v = *state;
    const char *all = "";
    for (int i = 0; i < 20; i++)
        all = json_printf("%s%s{'UUID':'00000000-0000-0000-0000-0000000000%02d'}", all, i ? "," : "", i);
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    verb_input(v, json_printf("{'EventSourceMappings':[%s]}", all));
    verb_assert(v, verb(v, "check --mapping -"), 2,
                "and 20 of them are of streams (00000000-0000-0000-0000-000000000000, 0000");
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

/* What Lambda's API takes, its limits included, is never called refused; one beyond is. */
static void each_number_has_awss_range(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *name;
        long least, most;
        bool has_none;
    } numbers[] = {
        {"BatchSize", 1, 10000, false},
        {"ParallelizationFactor", 1, 10, false},
        {"TumblingWindowInSeconds", 0, 900, false},
        {"MaximumBatchingWindowInSeconds", 0, 300, false},
        {"MaximumRetryAttempts", 0, 10000, true},
        {"MaximumRecordAgeInSeconds", 60, 604800, true},
    };
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const long values[] = {numbers[i].least, numbers[i].most, numbers[i].least - 1 - numbers[i].has_none,
                               numbers[i].most + 1, -1};
        for (size_t k = 0; k < 5; k++) {
            bool is_good = k < 2 || (k == 4 && numbers[i].has_none);
            verb_input(v, json_printf("{'%s':%ld}", numbers[i].name, values[k]));
            int status = verb(v, "check --mapping -");
            const char *line = json_printf(
                "warning: %s is %ld: AWS takes %s%ld to %ld [mapping-refused]\n", numbers[i].name, values[k],
                numbers[i].has_none ? "-1 (no limit), or " : "", numbers[i].least, numbers[i].most);
            if ((strstr(verb_out(v), line) != NULL) == is_good || status != 1)
                fail_msg("%s is %ld:\n%s%s", numbers[i].name, values[k], verb_out(v), verb_err(v));
        }
    }
}

/* ---- who tells failures ---- */

static void both_sides_agree_on_partial_answers(void **state)
{
    struct verbs *v = *state;
    for (int i = 0; i < 4; i++) {
        bool function = i & 1, mapping = i & 2;
        verb_write(
            v, "sluice.json",
            config_text(&(struct config){
                .a = ARCHIVE,
                .more = function ? NULL : "'on_failure':'sqs://f','report_batch_item_failures':false,"}));
        verb_input(
            v, sound_but("FunctionResponseTypes", mapping ? "['ReportBatchItemFailures']" : "[7,'Other']"));
        verb_assert(v, verb(v, "check --mapping -"), function && !mapping, "sluice.json: ");
        assert_int_equal(is_said(v, "warning", "report_batch_item_failures is true, but", "failures-ignored"),
                         function && !mapping);
        assert_int_equal(
            is_said(v, "note", "the mapping has ReportBatchItemFailures, but", "failures-unused"),
            mapping && !function);
    }
}

static void what_gives_up_needs_a_destination(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    static const char *const limits[] = {"'MaximumRetryAttempts':10000", "'MaximumRecordAgeInSeconds':86400"};
    for (int i = 0; i < 4; i++) {
        verb_input(
            v, json_printf("{'FunctionResponseTypes':['ReportBatchItemFailures'],%s%s}", limits[i / 2],
                           i % 2 ? ",'DestinationConfig':{'OnFailure':{'Destination':'" QUEUE "'}}" : ""));
        verb_assert(v, verb(v, "check --mapping -"), i % 2 == 0, "sluice.json: ");
        assert_int_equal(is_said(v, "warning", "MaximumRetryAttempts or MaximumRecordAge", "no-destination"),
                         i % 2 == 0);
    }
    verb_input(v, "{\"FunctionResponseTypes\":[\"ReportBatchItemFailures\"]}");
    verb_assert(v, verb(v, "check --mapping -"), 1, "[retries-unlimited]");
    assert_int_equal(count(v, "warning: "), 1);
}

/* ---- filters ---- */

/* A mapping with these filters, one after the other; ' in them stands for \". */
static const char *with_filters(const char *source, size_t n, const char *const *patterns)
{
    const char *all = "";
    for (size_t i = 0; i < n; i++) {
        char *text = calloc(2, strlen(patterns[i]) + 1), *to = text;
        assert_non_null(text);
        for (const char *at = patterns[i]; *at; at++) {
            if (*at == '\'')
                *to++ = '\\';
            *to++ = *at == '\'' ? '"' : *at;
        }
        all = json_printf("%s%s{'Pattern':'%s'}", all, i ? "," : "", text);
        free(text);
    }
    return json_printf(MAPPING(",'EventSourceArn':'%s','FilterCriteria':{'Filters':[%s]}"), source, all);
}

#define IMAGE(rules) "{'dynamodb':{'NewImage':{" rules "}}}"
#define EMOJI        "\xF0\x9F\x98\x80"

static void filters_are_read_for_what_they_seem_to_say(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *pattern, *code; /* "": none */
        bool warns;
    } cases[] = {
        {"{'eventName':['insert']}", "never-matches", true},
        {"{}", "filter-refused", true},
        {"nonsense", "filter-refused", true},
        {IMAGE("'a':[{'exists':false}]"), "always-matches", true},
        {"{'dynamodb':{'OldImage':{'a':[{'exists':false}]}}}", "always-matches", true},
        {"{'dynamodb':{'Keys':{'a':[{'exists':false}]}}}", "always-matches", true},
        {IMAGE("'a':{'M':{'b':[{'exists':false}]}}"), "always-matches", true},
        {IMAGE("'a':{'S':[{'exists':false}]}"), "", false},
        {IMAGE("'a':[{'exists':true}]"), "never-matches", true},
        {IMAGE("'a':{'L':{'S':[{'exists':false}]}}"), "absence-in-list", true},
        {IMAGE("'a':{'L':{'S':['x',{'exists':false}]}}"), "absence-in-list", true},
        {IMAGE("'a':{'L':{'M':{'b':{'S':[{'exists':false}]}}}}"), "absence-in-list", true},
        {IMAGE("'a':{'L':{'S':['x']}}"), "", false},
        {IMAGE("'a':{'L':['x']}"), "never-matches", true},
        {IMAGE("'a':{'M':{'b':{'S':[{'exists':false}]}}}"), "", false},
        {IMAGE("'$or':[{'a':{'S':['x']}},{'b':{'S':['y']}}]"), "", false},
        {IMAGE("'a':{'S':[{'equals-ignore-case':'" EMOJI "'}]}"), "case-of-emoji", true},
        {IMAGE("'a':{'S':[{'equals-ignore-case':'\xC3\xBC" EMOJI "'}]}"), "case-of-emoji", true},
        {IMAGE("'a':{'S':[{'anything-but':{'equals-ignore-case':'" EMOJI "'}}]}"), "case-of-emoji", true},
        {IMAGE("'a':{'S':[{'anything-but':{'equals-ignore-case':['a','" EMOJI "']}}]}"), "case-of-emoji",
         true},
        {"{'$or':[{'eventName':['INSERT']},{'awsRegion':[{'equals-ignore-case':'" EMOJI "'}]}]}",
         "case-of-emoji", true},
        {IMAGE("'a':{'S':[{'equals-ignore-case':'\xE2\x82\xAC'}]}"), "", false},
        {IMAGE("'a':{'S':[{'prefix':'" EMOJI "'}]}"), "", false},
        {IMAGE("'a':{'S':['" EMOJI "']}"), "", false},
        {"{'awsRegion':[{'wildcard':'a*'}]}", "operator-unpublished", false},
        {"{'$or':[{'awsRegion':[{'wildcard':'a*'}]},{'eventName':['INSERT']}]}", "operator-unpublished",
         false},
        {IMAGE("'a':{'S':[{'cidr':'10.0.0.0/8'}]}"), "operator-unpublished", false},
        {IMAGE("'a':{'S':[{'prefix':{'equals-ignore-case':'x'}}]}"), "operator-unpublished", false},
        {IMAGE("'a':{'S':[{'prefix':'x'},null]}"), "", false},
    };
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_input(v, with_filters(ARN, 1, &cases[i].pattern));
        int status = verb(v, "check --mapping -");
        const char *weight = cases[i].warns ? "warning" : "note";
        bool is_said_so = *cases[i].code ? is_said(v, weight, "FilterCriteria.Filters[0]: ", cases[i].code)
                                         : !strstr(verb_out(v), "FilterCriteria");
        if (!is_said_so || status != cases[i].warns)
            fail_msg("%s, wanted \"%s\":\n%s%s", cases[i].pattern, cases[i].code, verb_out(v), verb_err(v));
    }
}

/* A stream of Kinesis carries the change as "data". */
static void filters_of_kinesis_look_into_the_data(void **state)
{
    struct verbs *v = *state;
    static const char *const patterns[] = {"{'data':{'eventName':['insert']}}",
                                           "{'data':{'eventName':['INSERT']}}", "{'partitionKey':['a']}"};
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    for (size_t i = 0; i < 3; i++) {
        verb_input(v, with_filters(KINESIS, 1, &patterns[i]));
        verb_assert(v, verb(v, "check --mapping -"), i == 0, i ? "0 warnings" : "Filters[0]: ");
        assert_int_equal(count(v, "warning: FilterCriteria.Filters[0]"), i == 0);
    }
}

static void filters_have_awss_limits(void **state)
{
    struct verbs *v = *state;
    enum { LIMIT = 4096 };
    char text[LIMIT + 100];
    const char *patterns[6];
    verb_write(v, "sluice.json", config_text(&(struct config){.a = ARCHIVE}));
    for (size_t n = 5; n <= 6; n++) {
        for (size_t i = 0; i < n; i++)
            patterns[i] = "{'eventName':['INSERT']}";
        verb_input(v, with_filters(ARN, n, patterns));
        verb_assert(v, verb(v, "check --mapping -"), 0, "0 warnings");
        assert_int_equal(is_said(v, "note", "FilterCriteria has 6 filters: AWS takes 5", "filters-too-many"),
                         n == 6);
    }
    for (size_t n = LIMIT; n <= LIMIT + 1; n++) { /* characters, not bytes */
        int head = snprintf(text, sizeof(text), "{'awsRegion':['\xC3\xBC");
        memset(text + head, 'x', n + 1 - (size_t)head - 3);
        memcpy(text + n + 1 - 3, "']}", 4);
        patterns[0] = text;
        verb_input(v, with_filters(ARN, 1, patterns));
        int status = verb(v, "check --mapping -");
        verb_assert(v, status, status, "sluice.json: ");
        assert_int_equal(
            is_said(v, "note", "FilterCriteria.Filters[0]: has more than 4096 characters", "filter-too-long"),
            n > LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mappings_are_taken_or_refused),
        TEST(of_many_mappings_some_are_named),
        TEST(each_setting_of_a_mapping_that_loses_data_is_named),
        TEST(each_number_has_awss_range),
        TEST(both_sides_agree_on_partial_answers),
        TEST(what_gives_up_needs_a_destination),
        TEST(filters_are_read_for_what_they_seem_to_say),
        TEST(filters_of_kinesis_look_into_the_data),
        TEST(filters_have_awss_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
