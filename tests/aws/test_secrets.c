/* Secrets that a configuration names: their forms, one request each, what is wrong with them, and that they
 * are read again when a target refuses the login, not sooner and not more often. (Lies:
 * tests/live/source/test_answers.c. On moto: tests/cli/check_secrets.py.) */
#include "aws/secrets.h"
#include "aws/sources.h"
#include "base/json.h"
#include "tests/support/scripted_server.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static const struct {
    const char *reference, *name, *key, *region; /* NULL: absent */
} good[] = {
    {"secretsmanager:hook", "hook", NULL, NULL},
    {"secretsmanager:azAZ09", "azAZ09", NULL, NULL},
    {"secretsmanager:a/b_c+d=e.f@g-h", "a/b_c+d=e.f@g-h", NULL, NULL},
    {"secretsmanager:hook:key", "hook", "key", NULL},
    {"secretsmanager:hook:a:b", "hook", "a:b", NULL},
    {"ssm:/orders/url", "/orders/url", NULL, NULL},
    {"ssm:name:3", "name:3", NULL, NULL}, /* a version or a label */
    {"secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook-a1B2c3",
     "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook-a1B2c3", NULL, "eu-west-1"},
    {"secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook-a1B2c3:key",
     "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook-a1B2c3", "key", "eu-west-1"},
    {"ssm:arn:aws:ssm:us-east-2:123456789012:parameter/orders/url",
     "arn:aws:ssm:us-east-2:123456789012:parameter/orders/url", NULL, "us-east-2"},
};

static const struct {
    const char *reference, *words;
} bad[] = {
    {"", "is no secret"},
    {"vault:hook", "is no secret"},
    {"secretsmanager:", "not the name of a secret"},
    {"ssm:", "not the name of a parameter"},
    {"secretsmanager:a b", "not the name of a secret"},
    {"ssm:a+b", "not the name of a parameter"},
    {"ssm:a`", "not the name of a parameter"},
    {"ssm:a{", "not the name of a parameter"},
    {"ssm:a@", "not the name of a parameter"},
    {"ssm:a[", "not the name of a parameter"},
    {"secretsmanager:hook:", "the key after the last ':' is missing"},
    {"ssm:arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook", "another service's"},
    {"ssm:arn:aws:ssm:eu-west-1:123456789012:document/x", "not a parameter's"},
    {"secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012", "six parts"},
    {"secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:policy:x", "not a secret's"},
};

static void assert_part(struct sl_span part, const char *wanted)
{
    assert_int_equal(part.ptr == NULL, wanted == NULL);
    if (wanted)
        assert_true(sl_span_is(part, wanted));
}

static void names_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sl_secret_name name;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_secret_parse(sl_span_str(good[i].reference), &name, &error), SL_OK);
        assert_part(name.name, good[i].name);
        assert_part(name.key, good[i].key);
        assert_part(name.region, good[i].region);
        assert_int_equal(name.is_parameter, good[i].reference[1] == 's');
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_secret_name name;
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_secret_parse(sl_span_str(bad[i].reference), &name, &error), SL_FATAL);
        assert_int_equal(error.status, SL_FATAL);
        assert_string_equal(error.code, "InvalidSecret");
        if (!strstr(error.text, bad[i].words))
            fail_msg("%s: %s", bad[i].reference, error.text);
    }
}

/* ---- reading ---- */

static struct service {
    struct scripted_server *server;
    struct sl_aws *aws;
    struct sl_clock clock;
    struct sl_log log;
    int64_t ms;
    const char *value; /* of every secret and parameter, as JSON text; NULL: it is refused */
    const char
        *arn; /* of every secret, which then has another name than was asked for; NULL: the name alone */
    char vars[5][100];
    const char *list[6];
    struct sl_vars env;
} the;

static int64_t now_ms(struct sl_clock *clock)
{
    (void)clock;
    return the.ms;
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    static char body[400];
    (void)arg;
    struct sl_span target = scripted_header(request, "x-amz-target");
    bool is_parameter = sl_span_is(target, "AmazonSSM.GetParameter");
    assert_true(is_parameter || sl_span_is(target, "secretsmanager.GetSecretValue"));
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_json_check(request->body, &error), SL_OK);
    char name[100];
    const char *at = strstr(request->body.ptr, is_parameter ? "\"Name\":\"" : "\"SecretId\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(strchr(at, ':') + 2, "%99[^\"]", name), 1);
    if (is_parameter)
        assert_non_null(strstr(request->body.ptr, "\"WithDecryption\":true"));
    if (!the.value)
        snprintf(body, sizeof(body), "{\"__type\":\"AccessDeniedException\",\"message\":\"no\"}");
    else if (is_parameter)
        snprintf(body, sizeof(body), "{\"Parameter\":{\"Name\":\"%s\",\"Value\":%s}}", name, the.value);
    else if (the.arn)
        snprintf(body, sizeof(body), "{\"Name\":\"hook\",\"ARN\":\"%s\",\"SecretString\":%s}", the.arn,
                 the.value);
    else
        snprintf(body, sizeof(body), "{\"Name\":\"%s\",\"SecretString\":%s}", name, the.value);
    *reply = (struct scripted_reply){.status = the.value ? 200 : 400, .body = sl_span_str(body)};
}

static int set_up(void **state)
{
    (void)state;
    the = (struct service){.clock = *sl_clock_system(), .ms = 1000000, .value = "\"first\""};
    the.clock.now_ms = now_ms;
    the.server = scripted_server_start(answer, NULL);
    snprintf(the.vars[0], sizeof(the.vars[0]), "AWS_ENDPOINT_URL=%s", scripted_server_url(the.server));
    snprintf(the.vars[1], sizeof(the.vars[1]), "AWS_ACCESS_KEY_ID=k");
    snprintf(the.vars[2], sizeof(the.vars[2]), "AWS_SECRET_ACCESS_KEY=s");
    snprintf(the.vars[3], sizeof(the.vars[3]), "AWS_REGION=eu-west-1");
    snprintf(the.vars[4], sizeof(the.vars[4]), "AWS_MAX_ATTEMPTS=1"); /* its clock stands still */
    for (size_t i = 0; i < 5; i++)
        the.list[i] = the.vars[i];
    the.env = (struct sl_vars){.list = the.list};
    the.aws = sl_aws_new(&the.clock, NULL, &the.env, sl_sources_find);
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    sl_aws_destroy(the.aws);
    scripted_server_stop(the.server);
    return 0;
}

static const char *read_ok(const char *reference)
{
    struct sl_error error = SL_NO_ERROR;
    const char *value = NULL;
    if (sl_secret_read(the.aws, sl_span_str(reference), &value, &error) != SL_OK)
        fail_msg("%s: %s", reference, error.text);
    return value;
}

static void read_bad(const char *reference, enum sl_status status, const char *words)
{
    struct sl_error error = SL_NO_ERROR;
    const char *value = NULL;
    assert_int_equal(sl_secret_read(the.aws, sl_span_str(reference), &value, &error), status);
    assert_int_equal(error.status, status);
    if (!strstr(error.text, words) || !strstr(error.text, reference))
        fail_msg("%s: %s", reference, error.text);
}

static void each_is_asked_for_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(read_ok("secretsmanager:a"), "first");
        assert_string_equal(read_ok("ssm:b"), "first");
    }
    assert_int_equal(scripted_server_requests(the.server), 2);
}

#define ARN "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook"

static void an_answer_is_about_what_was_asked(void **state)
{
    (void)state;
    the.arn = ARN "-a1B2c3";
    assert_string_equal(read_ok("secretsmanager:" ARN), "first");
    assert_string_equal(read_ok("secretsmanager:" ARN "-a1B2c3"), "first");
    assert_string_equal(read_ok("secretsmanager:hook"), "first");
    read_bad("secretsmanager:other", SL_RETRY, "not understood");
    read_bad("secretsmanager:" ARN "-zzzzzz", SL_RETRY, "not understood");
}

static void up_to_a_hundred_are_read(void **state)
{
    (void)state;
    char reference[40];
    for (int i = 0; i < 100; i++) {
        snprintf(reference, sizeof(reference), "ssm:s%d", i);
        read_ok(reference);
    }
    read_bad("ssm:s100", SL_FATAL, "more than 100 secrets");
    assert_string_equal(read_ok("ssm:s0"), "first");
    assert_int_equal(scripted_server_requests(the.server), 100);
}

static void only_texts_are_taken(void **state)
{
    (void)state;
    the.value = "\"{\\\"a\\\":\\\"x\\\",\\\"n\\\":-7,\\\"f\\\":1.5,\\\"z\\\":null}\"";
    assert_string_equal(read_ok("secretsmanager:s:a"), "x");
    assert_string_equal(read_ok("secretsmanager:s:n"), "-7");
    assert_string_equal(read_ok("secretsmanager:s"), "{\"a\":\"x\",\"n\":-7,\"f\":1.5,\"z\":null}");
    read_bad("secretsmanager:s:f", SL_FATAL, "neither a text nor a whole number: \"f\"");
    read_bad("secretsmanager:s:z", SL_FATAL, "neither a text");
    read_bad("secretsmanager:s:b", SL_FATAL, "no member \"b\"");
    the.value = "\"[]\"";
    read_bad("secretsmanager:t:b", SL_FATAL, "not a JSON object");
    the.value = "\"\"";
    read_bad("ssm:empty", SL_FATAL, "is empty");
    the.value = "\"a\\u0000b\"";
    read_bad("ssm:nul", SL_FATAL, "NUL");
    the.value = "\"x\",\"SecretBinary\":\"AAE=\"";
    assert_string_equal(read_ok("secretsmanager:both"), "x");
    the.value = NULL;
    read_bad("ssm:denied", SL_FATAL, "AccessDeniedException");
}

static void a_refused_login_reads_them_again(void **state)
{
    (void)state;
    const char *before = read_ok("secretsmanager:a");
    read_ok("ssm:b");
    the.value = "\"second\"";
    the.ms += SL_SECRETS_MS;
    sl_aws_saw_refusal(the.aws, 404);
    sl_aws_saw_refusal(the.aws, 500);
    assert_false(sl_secrets_changed(the.aws)); /* nobody refused */
    sl_aws_saw_refusal(the.aws, 401);
    the.ms--;
    assert_false(sl_secrets_changed(the.aws)); /* too young */
    the.ms++;
    assert_int_equal(scripted_server_requests(the.server), 2);
    assert_true(sl_secrets_changed(the.aws));
    assert_int_equal(scripted_server_requests(the.server), 4);
    assert_string_equal(read_ok("secretsmanager:a"), "second");
    assert_string_equal(read_ok("ssm:b"), "second");
    assert_string_equal(before, "first"); /* what somebody still holds */
    assert_int_equal(scripted_server_requests(the.server), 4);
    the.value = "\"third\"";
    the.ms += SL_SECRETS_MS;
    assert_false(sl_secrets_changed(the.aws)); /* the refusal was of the old ones */
    sl_aws_saw_refusal(the.aws, 403);
    the.value = "\"second\"";
    assert_false(sl_secrets_changed(the.aws)); /* the same as before */
    sl_aws_saw_refusal(the.aws, 403);
    the.ms += SL_SECRETS_MS - 1;
    size_t n = scripted_server_requests(the.server);
    assert_false(sl_secrets_changed(the.aws));
    assert_int_equal(scripted_server_requests(the.server), n);
    the.ms++;
    the.value = NULL;
    assert_false(sl_secrets_changed(the.aws)); /* it keeps what it has */
    assert_string_equal(read_ok("ssm:b"), "second");
    assert_int_equal(scripted_server_requests(the.server), n + 2);
}

static void they_are_hidden(void **state)
{
    (void)state;
    char text[64] = "a first, firs and firstfirst";
    sl_secrets_hide(the.aws, text);
    assert_string_equal(text, "a first, firs and firstfirst");
    read_ok("ssm:b");
    sl_secrets_hide(the.aws, text);
    assert_string_equal(text, "a ..., firs and ......");
    the.value = "\"abc\"";
    read_ok("ssm:short");
    char more[64] = "abc abcd";
    sl_secrets_hide(the.aws, more);
    assert_string_equal(more, "abc abcd");
    the.value = "\"abcd\"";
    read_ok("ssm:long");
    sl_secrets_hide(the.aws, more);
    assert_string_equal(more, "abc ...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read),
        cmocka_unit_test_setup_teardown(each_is_asked_for_once, set_up, clean_up),
        cmocka_unit_test_setup_teardown(an_answer_is_about_what_was_asked, set_up, clean_up),
        cmocka_unit_test_setup_teardown(up_to_a_hundred_are_read, set_up, clean_up),
        cmocka_unit_test_setup_teardown(only_texts_are_taken, set_up, clean_up),
        cmocka_unit_test_setup_teardown(a_refused_login_reads_them_again, set_up, clean_up),
        cmocka_unit_test_setup_teardown(they_are_hidden, set_up, clean_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
