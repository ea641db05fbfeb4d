/* Each place that may have keys, set up well and badly: whose keys sign, or what the error says. One table:
 * the variables, the shared file, what the places answer, and the end. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

#define FULL_URI "AWS_CONTAINER_CREDENTIALS_FULL_URI=$U/container"
#define INSTANCE "AWS_EC2_METADATA_DISABLED=", "AWS_EC2_METADATA_SERVICE_ENDPOINT=$U"
#define KEYS     "aws_access_key_id = AKIABASE\naws_secret_access_key = " FAULT_SECRET "\n"
#define ROLE     "role_arn = arn:aws:iam::123456789012:role/r\n"
#define LATER    "\"Expiration\":\"2026-11-21T04:00:00Z\"}"
#define JSON_OF(access)                                                                                      \
    "{\"AccessKeyId\":" access ",\"SecretAccessKey\":\"" FAULT_SECRET "\",\"Token\":\"" FAULT_TOKEN          \
    "\"," LATER
#define STS(operation)                                                                                       \
    "<" operation "Response><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>" FAULT_SECRET  \
    "</SecretAccessKey><SessionToken>" FAULT_TOKEN                                                           \
    "</SessionToken><Expiration>2026-11-20T22:04:00Z</Expiration></Credentials></" operation "Response>"
#define STS_WELL                                                                                             \
    {                                                                                                        \
        "sts", 200, STS("AssumeRole")                                                                        \
    }

struct step {
    const char *place; /* the end of the request's path; "sts" */
    int status;
    const char *body;
};

/* $U is the server, $F a folder, $131A so many times the letter. */
struct source {
    const char *vars[5];
    const char *config;
    struct step steps[3];
    const char *signer;          /* whose keys sign; NULL: it fails */
    const char *code, *text;     /* of the failure: its code, and a part of what it says */
    enum sl_status status;       /* of the failure; 0: FATAL */
    const char *target, *header; /* NULL: the plain one; "name: value" of the first request */
    unsigned deadline_ms;        /* 0: an hour */
};

static const struct source table[] = {
    /* the environment */
    {.vars = {"AWS_ACCESS_KEY_ID=$131A", "AWS_SECRET_ACCESS_KEY=x"}, .signer = "$131A"},
    {.vars = {"AWS_ACCESS_KEY_ID=$132A", "AWS_SECRET_ACCESS_KEY=x"},
     .code = "InvalidCredentials",
     .text = "credentials from the environment are too long to be keys"},
    {.vars = {"AWS_ACCESS_KEY_ID=AKIAENV", "AWS_SECRET_ACCESS_KEY=$132s"},
     .code = "InvalidCredentials",
     .text = "too long"},
    {.vars = {"AWS_ACCESS_KEY_ID=AKIAENV", "AWS_SECRET_ACCESS_KEY=x", "AWS_SESSION_TOKEN=$8192t"},
     .code = "InvalidCredentials",
     .text = "too long"},
    {.vars = {"AWS_ACCESS_KEY_ID=AKIAENV"},
     .code = "InvalidCredentials",
     .text = "lack the access key or the secret key"},
    {.vars = {"AWS_ACCESS_KEY_ID=AKIAENV", "AWS_SECRET_ACCESS_KEY=x", "AWS_SECURITY_TOKEN=older"},
     .signer = "AKIAENV",
     .header = "x-amz-security-token: older"},

    /* a container's endpoint */
    {.vars = {FULL_URI}, .steps = {{"/container", 200, JSON_OF("\"ASIA_1\"")}}, .signer = "ASIA_1"},
    {.vars = {FULL_URI},
     .steps = {{"/container", 200, JSON_OF("\"ASIA-1\"")}},
     .status = SL_RETRY,
     .code = "InvalidCredentials",
     .text = "hold an access key that is not one"},
    {.vars = {FULL_URI},
     .steps = {{"/container", 200, JSON_OF("5")}},
     .status = SL_RETRY,
     .code = "InvalidCredentials",
     .text = "lack the access key"},
    {.vars = {FULL_URI},
     .steps = {{"/container", 404, ""}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "the container's endpoint returned no credentials: no keys in its answer (HTTP 404)"},
    {.vars = {"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/"},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "connect"},
    {.vars = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/nobody"},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "the container's endpoint returned no credentials",
     .deadline_ms = 20},
    {.vars = {FULL_URI, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$F/token",
              "AWS_CONTAINER_AUTHORIZATION_TOKEN=not this"},
     .steps = {{"/container", 200, JSON_OF("\"ASIACONTAINER\"")}},
     .signer = "ASIACONTAINER",
     .header = "authorization: Bearer of the file"},
    {.vars = {FULL_URI, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$F/absent"},
     .code = "InvalidCredentials",
     .text = "token file $F/absent cannot be read, or holds bytes that no token has"},
    {.vars = {FULL_URI, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$F/two lines"},
     .code = "InvalidCredentials",
     .text = "$F/two lines"},

    /* an instance's metadata */
    {.vars = {INSTANCE},
     .steps = {{"/token", 429, ""}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "the instance's metadata returned no credentials"},
    {.vars = {INSTANCE}, .steps = {{"/token", 403, ""}}, .code = "NoCredentials", .text = "an instance"},
    {.vars = {INSTANCE},
     .steps = {{"/token", 200, "a token"}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "the instance's metadata"},
    {.vars = {INSTANCE},
     .steps = {{"/token", 200, "$1025t"}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "the instance's metadata"},
    {.vars = {INSTANCE},
     .steps = {{"/token", 200, "$1024t"}, {"credentials/", 503, ""}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "(HTTP 503)"},
    {.vars = {INSTANCE},
     .steps = {{"/token", 200, "t"}, {"credentials/", 200, "<p>"}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "the instance's metadata"},
    {.vars = {INSTANCE},
     .steps = {{"/token", 200, "t"}, {"credentials/", 200, "r\nsecond"}, {"/r", 200, JSON_OF("\"ASIAI\"")}},
     .signer = "ASIAI"},
    {.vars = {"AWS_EC2_METADATA_DISABLED=TRUE", "AWS_EC2_METADATA_SERVICE_ENDPOINT=$U"},
     .steps = {{"/token", 500, ""}},
     .code = "NoCredentials",
     .text = "no AWS credentials found"},

    {.vars = {INSTANCE},
     .steps = {{"/token", 200, "t"}, {"credentials/", 200, "r"}, {"/r", 500, ""}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "(HTTP 500)"},
    {.config = "[default]\nec2_metadata_service_endpoint = $U/\n",
     .vars = {"AWS_EC2_METADATA_DISABLED="},
     .steps = {{"/token", 200, "t"}, {"credentials/", 200, "r"}, {"/r", 200, JSON_OF("\"ASIAI\"")}},
     .signer = "ASIAI"},
    {.config = "[default]\nec2_metadata_service_endpoint_mode = IPv5\n",
     .vars = {"AWS_EC2_METADATA_DISABLED="},
     .code = "InvalidCredentials",
     .text = "neither IPv4 nor IPv6"},

    /* web identity */
    {.vars = {"AWS_WEB_IDENTITY_TOKEN_FILE=$F/absent", INSTANCE},
     .steps = {{"/token", 200, "t"}, {"credentials/", 200, "r"}, {"/r", 200, JSON_OF("\"ASIAI\"")}},
     .code = "InvalidCredentials",
     .text = "AWS_ROLE_ARN is not"},
    {.vars = {INSTANCE},
     .config = "[default]\nweb_identity_token_file = $F/token\n",
     .steps = {{"/token", 200, "t"}, {"credentials/", 200, "r"}, {"/r", 200, JSON_OF("\"ASIAI\"")}},
     .code = "InvalidProfile",
     .text = "profile default has a web_identity_token_file, but no role_arn"},
    {.vars = {"AWS_ROLE_ARN=arn:aws:iam::123456789012:role/r"},
     .code = "NoCredentials",
     .text = "not from web"},
    {.vars = {"AWS_WEB_IDENTITY_TOKEN_FILE=$F/absent", "AWS_ROLE_ARN=arn:aws:iam::123456789012:role/r"},
     .config = "[default]\n" KEYS,
     .code = "InvalidCredentials",
     .text = "web identity token file $F/absent cannot be read"},
    {.config = "[default]\n" ROLE "web_identity_token_file = $F/token\n",
     .steps = {{"sts", 200, STS("AssumeRoleWithWebIdentity")}},
     .signer = "ASIAROLE"},

    /* profiles */
    {.vars = {"AWS_PROFILE=b"}, .config = "[profile b]\n" KEYS, .signer = "AKIABASE"},
    {.vars = {"AWS_DEFAULT_PROFILE=b"}, .config = "[profile b]\n" KEYS, .signer = "AKIABASE"},
    {.vars = {"AWS_DEFAULT_PROFILE=c"},
     .config = "[profile b]\n" KEYS,
     .code = "NoCredentials",
     .text = "not in profile c"},
    {.config = "[default]\naws_secret_access_key = x\n",
     .code = "InvalidCredentials",
     .text = "credentials from a profile's keys lack the access key"},
    {.config = "[default]\n" ROLE KEYS "source_profile = default\n",
     .steps = {STS_WELL},
     .signer = "ASIAROLE"},
    {.config = "[default]\n" ROLE "source_profile = default\n",
     .code = "NoCredentials",
     .text = "profile default: source_profile default has no credentials"},
    {.config = "[default]\n" ROLE "source_profile = b\n[profile b]\nsso_start_url = x\n",
     .code = "InvalidProfile",
     .text = "profile b uses sso_start_url, which is not supported"},
    /* what is before its keys for every SDK */
    {.config = "[default]\n" KEYS "sso_session = s\n", .code = "InvalidProfile", .text = "uses sso_session"},
    {.config = "[default]\n" KEYS "credential_process = p\n",
     .code = "InvalidProfile",
     .text = "uses credential_p"},
    /* of a source's keys and role the keys */
    {.config =
         "[default]\n" ROLE "source_profile = b\n[profile b]\n" KEYS "role_arn = arn:aws:iam::1:role/b\n"
         "source_profile = c\n",
     .steps = {STS_WELL},
     .signer = "ASIAROLE"},
    {.config = "[default]\n" ROLE "source_profile = b\ncredential_source = Environment\n[profile b]\n" KEYS,
     .code = "InvalidProfile",
     .text = "has a source_profile and a credential_source"},
    {.config = "[default]\n" ROLE "source_profile = b\n[profile b]\naws_access_key_id = AKIAHALF\n",
     .code = "InvalidCredentials",
     .text = "lack the access key or the secret key"},
    /* what is there twice: the last one counts */
    {.config = "[default]\naws_access_key_id = OLD\n" KEYS "[default]\naws_access_key_id = AKIANEW\n",
     .signer = "AKIANEW"},
    {.config =
         "[default]\n" KEYS "[profile default]\naws_access_key_id = AKIAOWN\naws_secret_access_key = x\n",
     .signer = "AKIAOWN"},
    /* a file with a mistake is nobody's */
    {.config = "[default\n" KEYS,
     .code = "InvalidProfile",
     .text = "$F/config, line 1: a section's name must end"},
    {.vars = {"AWS_ACCESS_KEY_ID=AKIAENV", "AWS_SECRET_ACCESS_KEY=x"},
     .config = "[default]\nregion us-east-1\n",
     .code = "InvalidProfile",
     .text = "$F/config, line 2: a '=' is missing"},
    {.config = "[default]\nlogin_session = x\n", .code = "InvalidProfile", .text = "uses login_session"},
    {.config = "[default]\n" ROLE "mfa_serial = m\n", .code = "InvalidProfile", .text = "an MFA code"},
    {.config = "[default]\n" ROLE KEYS, .code = "InvalidProfile", .text = "but no source_profile or cred"},
    {.vars = {FULL_URI},
     .config = "[default]\n" ROLE "credential_source = EcsContainer\n",
     .steps = {{"/container", 200, JSON_OF("\"ASIACONTAINER\"")}, STS_WELL},
     .signer = "ASIAROLE"},
    {.vars = {FULL_URI},
     .config = "[default]\n" ROLE "credential_source = EcsContainer\n",
     .steps = {{"/container", 500, ""}},
     .status = SL_RETRY,
     .code = "NoCredentials",
     .text = "(HTTP 500)"},
    {.config = "[default]\n" ROLE "credential_source = EcsContainer\n",
     .code = "NoCredentials",
     .text = "profile default: credential_source EcsContainer has no credentials"},
    {.config = "[default]\n" ROLE "credential_source = Moon\n",
     .code = "InvalidProfile",
     .text = "unknown credential_source \"Moon\""},

    /* a target's role */
    {.config = "[default]\n" KEYS,
     .steps = {STS_WELL},
     .target = "dynamodb://tbl?role=arn:aws:iam::210987654321:role/theirs",
     .signer = "ASIAROLE"},
    {.vars = {"AWS_STS_REGIONAL_ENDPOINTS=global"},
     .config = "[default]\n" KEYS,
     .target = "dynamodb://tbl?role=arn:aws:iam::210987654321:role/theirs",
     .code = "InvalidCredentials",
     .text = "neither regional nor legacy"},
    /* where no region is configured: STS of the target's */
    {.vars = {"AWS_REGION="},
     .config = "[default]\n" KEYS,
     .steps = {STS_WELL},
     .target = "dynamodb://tbl?region=eu-west-1&role=arn:aws:iam::210987654321:role/theirs",
     .signer = "ASIAROLE"},
    {.target = "dynamodb://tbl?role=arn:aws:iam::210987654321:role/theirs",
     .code = "NoCredentials",
     .text = "no AWS credentials found"},
};

/* ---- one of them ---- */

static struct fault f;
static char *folder;

static const char *expand(const char *text)
{
    struct sl_buffer out;
    sl_buffer_init_in(&out, f.call.arena, 20000);
    for (; text && *text; text++) {
        if (*text != '$') {
            sl_buffer_add_char(&out, *text);
        } else if (text[1] == 'U' || text[1] == 'F') {
            sl_buffer_add_str(&out, *++text == 'U' ? scripted_server_url(f.server) : folder);
        } else {
            char *letter;
            for (unsigned long n = strtoul(text + 1, &letter, 10); n; n--)
                sl_buffer_add_char(&out, *letter);
            text = letter;
        }
    }
    sl_buffer_add_char(&out, '\0');
    return out.ptr;
}

static char signer[256];

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    const struct source *s = arg;
    bool is_sts = memmem(request->body.ptr, request->body.len, "Action=AssumeRole", 17);
    struct sl_span by = scripted_header(request, "authorization");
    const char *key = by.ptr ? strstr(by.ptr, "Credential=") : NULL;
    for (size_t i = 0; i < 3 && s->steps[i].place; i++)
        if (is_sts ? strcmp(s->steps[i].place, "sts") == 0
                   : sl_span_ends(sl_span_str(request->path), sl_span_str(s->steps[i].place))) {
            *reply = (struct scripted_reply){.status = s->steps[i].status,
                                             .body = sl_span_str(expand(s->steps[i].body))};
            return;
        }
    if (is_sts || strcmp(request->path, "/") != 0) {
        reply->status = 404;
        return;
    }
    snprintf(signer, sizeof(signer), "%.*s", key ? (int)strcspn(key + 11, "/") : 0, key ? key + 11 : "");
    *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("{}")};
}

static void open_source(const struct source *s)
{
    fault_open(&f, answer, (void *)(uintptr_t)s);
    for (size_t i = 0; i < 3; i++)
        fault_set(&f,
                  (const char *const[]){"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}[i],
                  "");
    const char *config = sl_arena_printf(f.call.arena, "%s/config", folder);
    fault_set(&f, "AWS_CONFIG_FILE", config);
    fault_set(&f, "AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    test_write(config, expand(s->config));
    for (size_t i = 0; i < 5 && s->vars[i]; i++) {
        char name[64];
        const char *value = strchr(s->vars[i], '=') + 1;
        snprintf(name, sizeof(name), "%.*s", (int)(value - s->vars[i] - 1), s->vars[i]);
        fault_set(&f, name, expand(value));
    }
    if (s->deadline_ms)
        f.call.deadline_ms = f.clock.ms + s->deadline_ms;
    signer[0] = '\0';
}

static void every_source_has_its_keys_or_its_error(void **state)
{
    (void)state;
    test_write(json_printf("%s/token", folder), "Bearer of the file \r\n");
    test_write(json_printf("%s/two lines", folder), "Bearer\nX-Evil: 1\n");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct source *s = &table[i];
        open_source(s);
        struct sl_table_port *port = fault_table(&f, s->target ? s->target : "dynamodb://tbl");
        struct sl_result result = fault_put_item(&f, port, "a");
        port->close(port);
        enum sl_status wanted = s->signer ? SL_OK : s->status ? s->status : SL_FATAL;
        if (result.status != wanted || strcmp(signer, s->signer ? expand(s->signer) : "") != 0)
            fail_msg("case %zu: %s, signed by \"%s\": %s", i, sl_status_name(result.status), signer,
                     result.text ? result.text : "-");
        if (!s->signer && (strcmp(result.code, s->code) != 0 || !strstr(result.text, expand(s->text))))
            fail_msg("case %zu: %s, %s", i, result.code, result.text);
        assert_int_equal(result.not_sent, !s->signer);
        if (s->header) {
            const char *colon = strchr(s->header, ':');
            const char *name = sl_arena_printf(f.call.arena, "%.*s", (int)(colon - s->header), s->header);
            assert_span_is(scripted_header(scripted_server_request(f.server, 0), name), colon + 2);
        }
        fault_close(&f);
    }
}

static int make_folder(void **state)
{
    (void)state;
    folder = test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_source_has_its_keys_or_its_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
