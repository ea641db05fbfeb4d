/* `sluice check`, variables: what is not set gets a value that fits its place, and a note says which. */
#include "tests/cli/check_world.h"

#include "base/buffer.h"

#define REPLICA_TO(to) "'handler':'replicate','to':'" to "'"
#define ARCHIVE_TO(to) "'handler':'archive','to':'" to "'"
#define NOTIFY_TO(to)  NOTIFY ",'to':'" to "'"
#define COUNTERS(key, more)                                                                                  \
    "'handler':'aggregate','to':'dynamodb://totals','counters':[{'key':{'PK':'" key "'}," more "}]"

/* X_NAME is the variable. */
static const struct {
    const char *route, *value;
} places[] = {
    /* a target, whole or its beginning */
    {NOTIFY_TO("${X_NAME}"), "sqs://x-name"},
    {ARCHIVE_TO("${X_NAME}"), "s3://x-name"},
    {REPLICA_TO("${X_NAME}"), "dynamodb://x-name"},
    {NOTIFY_TO("${X_NAME}://q"), "sqs"},
    {ARCHIVE_TO("${X_NAME}://bucket/x"), "s3"},
    {REPLICA_TO("${X_NAME}://table"), "dynamodb"},
    {NOTIFY_TO("${X_NAME}#id=x"), "https://host.example.com/hook"},
    {NOTIFY_TO("${X_NAME}?team=7#id=x"), "https://host.example.com/hook"},
    {ARCHIVE ",'on_failure':'${X_NAME}'", "sqs://x-name"},
    {ARCHIVE ",'on_failure':['s3://bucket/failed','${X_NAME}']", "sqs://x-name"},
    /* ARNs, whole and in parts */
    {NOTIFY_TO("sns:${X_NAME}"), "arn:aws:sns:us-east-1:123456789012:x-name"},
    {NOTIFY_TO("sqs:${X_NAME}"), "arn:aws:sqs:us-east-1:123456789012:x-name"},
    {NOTIFY_TO("events:${X_NAME}"), "arn:aws:events:us-east-1:123456789012:event-bus/x-name"},
    {NOTIFY_TO("kinesis:${X_NAME}"), "arn:aws:kinesis:us-east-1:123456789012:stream/x-name"},
    {NOTIFY_TO("firehose:${X_NAME}"), "arn:aws:firehose:us-east-1:123456789012:deliverystream/x-name"},
    {REPLICA_TO("dynamodb:${X_NAME}"), "arn:aws:dynamodb:us-east-1:123456789012:table/x-name"},
    {NOTIFY_TO("sns:arn:${X_NAME}:sns:eu-west-1:123456789012:t"), "aws"},
    {NOTIFY_TO("sns:arn:aws:sns:${X_NAME}:123456789012:t"), "us-east-1"},
    {NOTIFY_TO("sns:arn:aws:sns:eu-west-1:${X_NAME}:t"), "123456789012"},
    {NOTIFY_TO("sns:arn:aws:sns:eu-west-1:123456789012:${X_NAME}"), "x-name"},
    {REPLICA_TO("dynamodb://arn:aws:dynamodb:${X_NAME}:123456789012:table/tab"), "us-east-1"},
    /* names, hosts and accounts */
    {NOTIFY_TO("sqs://${X_NAME}"), "x-name"},
    {NOTIFY_TO("sqs://${X_NAME}/q"), "123456789012"},
    {NOTIFY_TO("sqs://https://sqs.eu-west-1.amazonaws.com/${X_NAME}/q"), "123456789012"},
    {NOTIFY_TO("sqs://https://sqs.${X_NAME}.amazonaws.com/123456789012/q"), "us-east-1"},
    {REPLICA_TO("opensearch://search-x.${X_NAME}.es.amazonaws.com/i"), "us-east-1"},
    {REPLICA_TO("opensearch://localhost:${X_NAME}/i"), "443"},
    {NOTIFY_TO("https://host.${X_NAME}.example.com/hook"), "x-name"},
    {NOTIFY_TO("sqs://https://sqs-${X_NAME}.amazonaws.com/123456789012/q"), "x-name"},
    {NOTIFY_TO("sqs://http://localhost:4566/${X_NAME}/q"), "123456789012"},
    {NOTIFY_TO("sqs://https://${X_NAME}/123456789012/q"), "x-name"},
    {NOTIFY_TO("jsonl:region=${X_NAME}"), "x-name"},
    {ARCHIVE_TO("s3://my-${X_NAME}/x"), "x-name"},
    {REPLICA_TO("sqlite:${X_NAME}?table=t"), "x-name"},
    /* parameters of a target */
    {REPLICA_TO("dynamodb://tab?region=${X_NAME}"), "us-east-1"},
    {REPLICA_TO("dynamodb://tab?region=eu-west-1&role=${X_NAME}"), "arn:aws:iam::123456789012:role/role"},
    {REPLICA_TO("opensearch://h/i?auth=${X_NAME}"), "aws"},
    {ARCHIVE_TO("s3://bucket/x?kms_key=${X_NAME}"), "x-name"},
    {ARCHIVE_TO("s3://bucket/x?sse=${X_NAME}"), "aws:kms"},
    {NOTIFY_TO("https://h/#timeout_ms=${X_NAME}"), "1000"},
    {NOTIFY_TO("https://h/#id=${X_NAME}"), "x-name"},
    /* options */
    {ARCHIVE ",'compression':'${X_NAME}'", "gzip"},
    {ARCHIVE ",'key':'${X_NAME}'", "{x-name}"},
    {ARCHIVE ",'key':'{yyyy}/${X_NAME}'", "x-name"},
    {ARCHIVE ",'when':{'events':['${X_NAME}']}", "INSERT"},
    {ARCHIVE ",'when':{'expired':'${X_NAME}'}", "any"},
    {ARCHIVE ",'when':{'item':{'a':[{'cidr':'${X_NAME}'}]}}", "10.0.0.0/8"},
    {ARCHIVE ",'when':{'item':{'a':[{'type':'${X_NAME}'}]}}", "S"},
    {ARCHIVE ",'when':{'item':{'a':[{'base64':'${X_NAME}'}]}}", "eA=="},
    {ARCHIVE ",'when':{'item':{'a':['${X_NAME}']}}", "x-name"},
    {ARCHIVE ",'when':{'item':{'a':['p${X_NAME}']}}", "x-name"},
    {REPLICATE ",'guard':'${X_NAME}'", "inline"},
    {REPLICATE ",'tombstones':'${X_NAME}'", "inline"},
    {REPLICATE ",'key':{'PK':'${X_NAME}'}", "{PK}"},
    {AGGREGATE ",'mode':'${X_NAME}'", "exact"},
    {COUNTERS("${X_NAME}", "'add':{'n':1}"), "{PK}"},
    {COUNTERS("{a}", "'add':{'n':'${X_NAME}'}"), "1"},
    {COUNTERS("{a}", "'running_max':{'n':'${X_NAME}'}"), "1"},
    {COUNTERS("{a}", "'running_min':{'n':'${X_NAME}'}"), "1"},
    {COUNTERS("{a}", "'distinct':{'n':'${X_NAME}'}"), "{PK}"},
    {NOTIFY_TO("sqs://q") ",'message':'${X_NAME} {a}'", "x-name"},
    {NOTIFY_TO("sqs://q") ",'message':'a:${X_NAME}'", "x-name"},
    {ARCHIVE ",'when':{'item':{'a:${X_NAME}':['x']}}", "x-name"},
    {NOTIFY_TO("sqs://q") ",'attributes':{'${X_NAME}':'{a}'}", "x-name"},
};

static void each_place_gets_a_value_that_fits(void **state)
{
    struct verbs *v = *state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = places[i].route}));
        int status = verb(v, "check");
        verb_assert(v, status, status,
                    json_printf("note: X_NAME is not set here; '%s' stands for it (--set X_NAME=VALUE) "
                                "[variable-not-set]\n",
                                places[i].value));
        if (status == 2 || strstr(verb_out(v), "${"))
            fail_msg("%s:\n%s%s", places[i].route, verb_out(v), verb_err(v));
        verb_assert(v, verb(v, "check --set 'X_NAME=%s'", places[i].value), status, "sluice.json: ");
        assert_false(is_said(v, "note", "X_NAME", "variable-not-set"));
    }
}

static void a_name_has_the_letters_of_a_bucket(void **state)
{
    struct verbs *v = *state;
    static const char *const names[][2] = {
        {"A", "a-value"},
        {"AB1", "ab1"},
        {"__", "a-value"},
        {"_MY_BUCKET_", "my-bucket"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabb", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa___bb", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *route =
            json_printf("'handler':'archive','to':'s3://${%s}/${%s}'", names[i][0], names[i][0]);
        verb_write(v, "sluice.json", config_text(&(struct config){.a = route}));
        verb_assert(v, verb(v, "check"), 0,
                    json_printf("note: %s is not set here; '%s' stands for it", names[i][0], names[i][1]));
        assert_int_equal(count(v, "note: "), 1); /* said once */
    }
}

/* Whatever a variable is called: its stand-in is a bucket's and a table's name. */
static void each_name_makes_a_name(void **state)
{
    static const char letters[] = "abcXYZ019_";
    struct verbs *v = *state;
    unsigned long long random = 42;
    for (int round = 0; round < 6; round++) {
        const char *routes = "";
        for (int i = 0; i < 30; i++) {
            char name[64] = "";
            size_t n = (size_t)(1 + (random >> 33) % 60);
            for (size_t k = 0; k < n; k++) {
                random = random * 6364136223846793005ull + 1442695040888963407ull;
                name[k] = (random >> 33) % 3 ? letters[(random >> 40) % (sizeof(letters) - 1)] : '_';
            }
            name[0] = name[0] >= '0' && name[0] <= '9' ? 'A' : name[0];
            routes = json_printf("%s%s{'name':'r%d','handler':'archive','to':'s3://${%s}/%d'}", routes,
                                 i ? "," : "", i, name, i);
        }
        verb_write(
            v, "sluice.json",
            json_printf("{'report_batch_item_failures':true,'on_failure':'report','routes':[%s]}", routes));
        verb_assert(v, verb(v, "check"), 0, "sluice.json: 0 warnings");
    }
}

/* ---- what --set gives ---- */

static void what_is_given_counts(void **state)
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
    verb_set(v, "QUEUE=outer");
    verb_assert(v, verb(v, "check"), 0, "sqs://outer");
    assert_null(strstr(verb_out(v), "QUEUE is not set"));
    verb_assert(v, verb(v, "check --set QUEUE=mine"), 0, "sqs://mine"); /* before the environment's */
    verb_assert(
        v, verb(v, "check --set AWS_PROFILE=a --set SLUICE_SUMMARY=on --set HTTPS_PROXY=p --set no_proxy=q"),
        0, "1 note\n"); /* BUCKET alone: Sluice reads these itself */
}

/* The escaped "$${NAME}" and what only looks like a variable need none. */
static void only_variables_are_asked_for(void **state)
{
    struct verbs *v = *state;
    static const char *const wrong[] = {"${}", "${A-B}", "${A", "${"};
    static const char *const texts[] = {"a $${NAME}", "$NAME", "{NAME}", "$ {NAME}", "$"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(
                       &(struct config){.a = json_printf(NOTIFY_TO("sqs://q") ",'message':'%s'", texts[i])}));
        verb_assert(v, verb(v, "check"), 0, "0 warnings, 0 notes");
        verb_assert(v, verb(v, "check --set NAME=x"), 0,
                    "note: --set NAME: the configuration has no ${NAME}");
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(
                       &(struct config){.a = json_printf(NOTIFY_TO("sqs://q") ",'message':'%s'", wrong[i])}));
        verb_assert(v, verb(v, "check"), 2, "$.routes[0].message: \"${\" does not begin a ${NAME}");
    }
}

/* ---- secrets ---- */

/* They are named, never written; the note says which route needs them. */
static void secrets_may_be_missing(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *route, *names[3];
    } cases[] = {
        {NOTIFY_TO("https://h/#secret=ONE"), {"ONE"}},
        {NOTIFY_TO("https://h/#id=x&secret=ONE,TWO"), {"ONE", "TWO"}},
        {NOTIFY_TO("https://h/#secret=ONE,TWO&header_env.X=THREE"), {"ONE", "TWO", "THREE"}},
        {NOTIFY_TO("https://h/#header_env.Authorization=ONE&header_env.X-Y=TWO&id=z"), {"ONE", "TWO"}},
        {NOTIFY_TO("sqs://q") ",'message':'{a|hmac:ONE}{b|hmac:TWO|upper}'", {"ONE", "TWO"}},
        {REPLICA_TO("opensearch://h/i?auth=basic"), {"OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        verb_write(v, "sluice.json", config_text(&(struct config){.a = cases[i].route}));
        verb_assert(v, verb(v, "check"), 0, "0 warnings");
        size_t n = 0;
        for (; n < 3 && cases[i].names[n]; n++)
            if (!is_said(
                    v, "note",
                    json_printf("%s is not set here; the route a needs it where it runs", cases[i].names[n]),
                    "variable-not-set"))
                fail_msg("%s: %s\n%s", cases[i].route, cases[i].names[n], verb_out(v));
        assert_int_equal(count(v, "note: "), n);
        assert_null(strstr(verb_out(v), "whsec_"));
    }
    verb_write(
        v, "sluice.json",
        config_text(&(struct config){.a = ARCHIVE, .more = "'on_failure':'https://h/#secret=ROOT&id=x',"}));
    verb_assert(v, verb(v, "check"), 0, "note: ROOT is not set here; the function needs it where it runs [");
    static const char *const wrong[] = {"secret=A-B", "header_env.X"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        verb_write(v, "sluice.json",
                   config_text(&(struct config){.a = json_printf(NOTIFY_TO("https://h/#%s"), wrong[i])}));
        verb_assert(v, verb(v, "check"), 2, "$.routes[0].to: target https://h: ");
    }
}

/* So many that the rest are not looked for: the configuration's own error then names one. */
static void there_is_an_end_to_stand_ins(void **state)
{
    struct verbs *v = *state;
    struct sl_buffer text;
    sl_buffer_init(&text, 1024 * 1024);
    for (int i = 0; i <= 1000; i++)
        sl_buffer_printf(&text, "${V%d}", i);
    sl_buffer_add_char(&text, '\0');
    verb_write(
        v, "sluice.json",
        config_text(&(struct config){.a = json_printf(NOTIFY_TO("sqs://q") ",'message':'%s'", text.ptr)}));
    sl_buffer_clean_up(&text);
    verb_assert(v, verb(v, "check"), 2, "V1000");
    assert_int_equal(count(v, "note: "), 1000);
    verb_assert(v, verb(v, "check --set V7=x"), 0, "V1000 is not set here; \"v1000\" stands for it");
}

static void without_a_region_there_is_one(void **state)
{
    struct verbs *v = *state;
    verb_set(v, "AWS_REGION"); /* not set */
    verb_write(v, "sluice.json", config_text(&(struct config){.a = REPLICATE}));
    verb_assert(v, verb(v, "check"), 0, "0 warnings, 0 notes");
    verb_write(v, "sluice.json", config_text(&(struct config){.a = NOTIFY_TO("sqs://q-${AWS_REGION}")}));
    verb_assert(v, verb(v, "check"), 0, "sqs://q-us-east-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_place_gets_a_value_that_fits),
        TEST(a_name_has_the_letters_of_a_bucket),
        TEST(each_name_makes_a_name),
        TEST(there_is_an_end_to_stand_ins),
        TEST(without_a_region_there_is_one),
        TEST(what_is_given_counts),
        TEST(only_variables_are_asked_for),
        TEST(secrets_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
