/* botocore's endpoint rules as cases: what a target, a variable or a profile can say of each leads to the
 * same URL, or is refused with a line that says why.
 *
 *   endpoints CORPUS     reads CORPUS/endpoints/NAME.jsonl
 *
 * A switch is tried as a variable and as a setting of the profile. The one difference that is no refusal:
 * where a host by account is preferred, DynamoDB's plain host serves as well. */
#include "tests/support/test.h"

#include "base/arn.h"
#include "aws/client.h"
#include "base/clock.h"
#include "base/log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const struct file {
    const char *name;
    const struct sl_service *service;
} files[] = {{"dynamodb", &sl_service_dynamodb},
             {"kinesis", &sl_service_kinesis},
             {"sqs", &sl_service_sqs},
             {"sns", &sl_service_sns}};

struct tally {
    int equal, refused, plain, wrong, left_out;
};

static const char *text_in(const json_t *params, const char *name)
{
    return json_string_value(json_object_get(params, name));
}

/* The ARN that a target would name. */
static const char *arn_in(const json_t *params)
{
    static const char *const names[] = {"ResourceArn", "ResourceARN", "StreamARN", "ConsumerARN"};
    for (size_t i = 0; i < 4; i++)
        if (text_in(params, names[i]))
            return text_in(params, names[i]);
    return NULL;
}

/* What is set, as variables or as lines of a profile. */
struct setup {
    char lines[8][300];
    const char *list[10];
    char profile[2000];
    size_t n;
    bool is_profile;
};

static void set(struct setup *s, const char *variable, const char *key, const char *value)
{
    if (!value)
        return;
    if (s->is_profile && key) {
        size_t n = strlen(s->profile);
        snprintf(s->profile + n, sizeof(s->profile) - n, "%s = %s\n", key, value);
    } else {
        snprintf(s->lines[s->n], sizeof(s->lines[0]), "%s=%s", variable, value);
        s->list[s->n] = s->lines[s->n];
        s->n++;
    }
}

/* The endpoint of the case's target; NULL: it is refused. */
static const char *resolve(const struct file *file, const json_t *params, bool is_profile,
                           struct sl_arena *arena, struct sl_error *error)
{
    struct setup s = {.is_profile = is_profile, .profile = "[default]\n"};
    set(&s, "AWS_REGION", "region", text_in(params, "Region"));
    set(&s, "AWS_ENDPOINT_URL", "endpoint_url", text_in(params, "Endpoint"));
    set(&s, "AWS_ACCOUNT_ID_ENDPOINT_MODE", "account_id_endpoint_mode",
        text_in(params, "AccountIdEndpointMode"));
    if (json_is_true(json_object_get(params, "UseFIPS")))
        set(&s, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", "true");
    if (json_is_true(json_object_get(params, "UseDualStack")))
        set(&s, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint", "true");
    set(&s, "HOME", NULL, "/nowhere");
    const struct sl_vars vars = {.list = s.list};
    struct sl_log log;
    sl_log_init(&log, -1, SL_OFF, SL_LOG_TEXT, sl_clock_system());
    struct sl_aws *aws = sl_aws_new(sl_clock_system(), &log, &vars, NULL);
    aws->profile = (struct sl_profile){.config = sl_span_str(s.profile), .name = "default"};
    aws->has_profile = true;
    const char *arn = file->service == &sl_service_kinesis ? arn_in(params) : NULL, *made = NULL;
    struct sl_url url;
    struct sl_client client;
    const char *text = sl_arena_printf(arena, "x:%s", arn ? arn : "//name");
    if (sl_url_parse(sl_span_str(text), arena, &url, error) == SL_OK) {
        struct sl_span region = arn ? sl_arn_part(sl_span_str(arn), 3) : sl_span(NULL, 0);
        if (arn && !sl_span_starts(sl_arn_part(sl_span_str(arn), 5), SL_LIT("stream/")))
            sl_fail(error, SL_FATAL, "InvalidTarget", "kinesis.c asks for stream/NAME");
        else if (sl_client_init(
                     &client, aws,
                     &(struct sl_client_options){.service = file->service, .url = &url, .region = region},
                     error) == SL_OK) {
            client.account = arn ? sl_arn_part(sl_span_str(arn), 4) : sl_span(NULL, 0);
            if (sl_client_ready(&client, error) == SL_OK)
                made = sl_arena_copy(arena, sl_span_str(client.endpoint.base));
            sl_client_clean_up(&client);
        }
    }
    sl_aws_destroy(aws);
    sl_log_clean_up(&log);
    return made;
}

/* Of DynamoDB: "https://111111111111.ddb.us-east-1.amazonaws.com" and the plain host of the same Region. */
static bool is_by_account(const char *wanted)
{
    return strstr(wanted, ".ddb.") != NULL;
}

/* What no target, variable or profile can say: operations that are not PutRecords; an account id of the keys
 * that is "". And a stream's ARN of another Region than the process's, which means the ARN's here. */
static bool is_ours(const json_t *params)
{
    const char *operation = text_in(params, "OperationType"), *account = text_in(params, "AccountId");
    const char *arn = arn_in(params), *region = text_in(params, "Region");
    bool is_stream = arn && strstr(arn, ":kinesis:");
    bool is_elsewhere = is_stream && region && !sl_span_is(sl_arn_part(sl_span_str(arn), 3), region);
    return !(account && !*account) && !is_elsewhere &&
           !(is_stream && (!operation || strcmp(operation, "data") != 0 || strstr(arn, "/consumer/")));
}

static void judge(const struct file *file, const json_t *one, bool is_profile, struct tally *tally)
{
    const json_t *params = json_object_get(one, "params"), *expect = json_object_get(one, "expect");
    const char *wanted = text_in(json_object_get(expect, "endpoint"), "url");
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_error error = SL_NO_ERROR;
    const char *made = resolve(file, params, is_profile, arena, &error);
    bool is_equal = made && wanted && strcmp(made, wanted) == 0;
    if (!is_ours(params) && !is_equal && made)
        tally->left_out++;
    else if (is_equal)
        tally->equal++;
    else if (!made && error.text[0])
        tally->refused++;
    else if (made && wanted && is_by_account(wanted))
        tally->plain++;
    else {
        tally->wrong++;
        printf("  %s: %s: made %s, wanted %s\n", file->name,
               json_string_value(json_object_get(one, "documentation")), made ? made : "nothing",
               wanted ? wanted : text_in(expect, "error"));
    }
    if (getenv("SHOW_REFUSED") && !made && wanted)
        printf("  refused %s: %s: %s\n", file->name, json_string_value(json_object_get(one, "documentation")),
               error.text);
    sl_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    int wrong = 0, total = 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[4096], line[16384];
        struct tally tally = {0};
        snprintf(path, sizeof(path), "%s/endpoints/%s.jsonl", argc > 1 ? argv[1] : "../shared/conformance",
                 files[i].name);
        FILE *in = fopen(path, "re");
        while (in && fgets(line, sizeof(line), in)) {
            json_t *one = json_loads(line, 0, NULL);
            for (int is_profile = 0; is_profile < 2; is_profile++)
                judge(&files[i], one, is_profile, &tally);
            json_decref(one);
            total += 2;
        }
        if (in)
            fclose(in);
        printf("endpoints/%s: %d equal, %d refused, %d plain for preferred, %d that nobody can say here, %d "
               "wrong\n",
               files[i].name, tally.equal, tally.refused, tally.plain, tally.left_out, tally.wrong);
        wrong += tally.wrong;
    }
    return wrong || total < 1000;
}
