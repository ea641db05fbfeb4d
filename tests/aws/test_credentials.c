/* Where keys come from, in the order of the SDKs, each place played by the scripted server. */
#include "tests/support/fault.h"

#include "aws/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct fault f;
static char *folder;

/* Answers as STS, as a container's endpoint and as an instance's metadata; anything else learns what key
 * signed. */
struct world {
    bool refuses_sts, has_no_instance;
    const char *lying; /* the step whose answers are `lie`; NULL: none */
    struct scripted_reply lie;
    const char *member, *value; /* of an answer with keys: what it has instead; NULL value: nothing */
    const char *expires;        /* NULL: in seven hours */
    unsigned sts_calls, instance_calls, container_calls;
    char signer[64];     /* the access key of the last request that was none of these */
    char sts_signer[64]; /* of the last one to STS; "" when it was unsigned */
    char form[2000];
    char body[2000];
};

static void note_signer(const struct scripted_request *request, char out[64])
{
    struct sl_span value = scripted_header(request, "authorization");
    const char *key = value.ptr ? strstr(value.ptr, "Credential=") : NULL;
    out[0] = '\0';
    if (key)
        snprintf(out, 64, "%.*s", (int)strcspn(key + 11, "/"), key + 11);
}

/* Writes a member: honest, or as the world says. */
static void add_member(struct world *w, const char *form, const char *name, const char *honest)
{
    size_t n = strlen(w->body);
    bool is_wrong = w->member && strcmp(w->member, name) == 0;
    const char *value = is_wrong ? w->value : honest, *p = form;
    if (strcmp(name, "Expiration") == 0 && w->expires)
        value = w->expires;
    for (; value && *p; p++) { /* $ is the name, % the value */
        const char *text = *p == '$' ? name : *p == '%' ? value : NULL;
        n += (size_t)snprintf(w->body + n, sizeof(w->body) - n, text ? "%s" : "%.1s", text ? text : p);
    }
}

static void answer_sts(struct world *w, const struct scripted_request *request, struct scripted_reply *reply)
{
    static const char form[] = "<$>%</$>";
    char key[80];
    w->sts_calls++;
    note_signer(request, w->sts_signer);
    snprintf(w->form, sizeof(w->form), "%.*s", SL_ARG(request->body));
    const char *role = strstr(w->form, "role%2F"), *action = strstr(w->form, "Action=") + 7;
    int action_bytes = (int)strcspn(action, "&");
    snprintf(key, sizeof(key), "ASIA%.*s", (int)strcspn(role + 7, "&"), role + 7);
    snprintf(w->body, sizeof(w->body), "<%.*sResponse><Credentials>", action_bytes, action);
    add_member(w, form, "AccessKeyId", key);
    add_member(w, form, "SecretAccessKey", FAULT_SECRET);
    add_member(w, form, "SessionToken", FAULT_TOKEN);
    add_member(w, form, "Expiration", "2026-11-20T22:04:00Z");
    size_t n = strlen(w->body);
    snprintf(w->body + n, sizeof(w->body) - n, "</Credentials></%.*sResponse>", action_bytes, action);
    *reply = (struct scripted_reply){.status = 200, .body = sl_span_str(w->body)};
    if (w->refuses_sts)
        *reply = (struct scripted_reply){
            .status = 403,
            .body = SL_LIT(
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>User is not authorized to perform: "
                "sts:AssumeRole</Message></Error></ErrorResponse>")};
}

static void answer_keys(struct world *w, const char *key, struct scripted_reply *reply)
{
    static const char form[] = "\"$\":\"%\",";
    snprintf(w->body, sizeof(w->body), "{");
    add_member(w, form, "Code", "Success");
    add_member(w, form, "AccessKeyId", key);
    add_member(w, form, "SecretAccessKey", FAULT_SECRET);
    add_member(w, form, "Token", FAULT_TOKEN);
    add_member(w, form, "Expiration", "2026-11-21T04:00:00Z");
    size_t n = strlen(w->body);
    snprintf(w->body + n, sizeof(w->body) - n, "\"Type\":\"AWS-HMAC\"}");
    *reply = (struct scripted_reply){.status = 200, .body = sl_span_str(w->body)};
}

static void answer_instance(struct world *w, const struct scripted_request *request,
                            struct scripted_reply *reply)
{
    static const char base[] = "/latest/meta-data/iam/security-credentials/";
    w->instance_calls++;
    *reply = (struct scripted_reply){.status = 404};
    if (w->has_no_instance)
        return;
    if (strcmp(request->path, "/latest/api/token") == 0) {
        assert_string_equal(request->method, "PUT");
        assert_span_is(scripted_header(request, "x-aws-ec2-metadata-token-ttl-seconds"), "21600");
        *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("the-token")};
        return;
    }
    if (!sl_span_is(scripted_header(request, "x-aws-ec2-metadata-token"), "the-token"))
        reply->status = 401;
    else if (strcmp(request->path, base) == 0)
        *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("my-role\n")};
    else if (strcmp(request->path + strlen(base), "my-role") == 0)
        answer_keys(w, "ASIAINSTANCE", reply);
}

static const char *step_of(const struct scripted_request *request)
{
    return memmem(request->body.ptr, request->body.len, "Action=AssumeRole", 17) ? "sts"
           : strcmp(request->path, "/container") == 0                            ? "container"
           : strcmp(request->path, "/latest/api/token") == 0                     ? "token"
           : sl_span_ends(sl_span_str(request->path), SL_LIT("credentials/"))    ? "list"
           : strncmp(request->path, "/latest/", 8) == 0                          ? "keys"
                                                                                 : "other";
}

static void answer_all(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct world *w = arg;
    if (w->lying && strcmp(step_of(request), w->lying) == 0)
        *reply = w->lie;
    else if (memmem(request->body.ptr, request->body.len, "Action=AssumeRole", 17)) {
        answer_sts(w, request, reply);
    } else if (strncmp(request->path, "/latest/", 8) == 0) {
        answer_instance(w, request, reply);
    } else if (strcmp(request->path, "/container") == 0) {
        w->container_calls++;
        answer_keys(w, "ASIACONTAINER", reply);
        struct sl_span token = scripted_header(request, "authorization");
        if (token.ptr && !sl_span_is(token, "Bearer abc"))
            reply->status = 401;
    } else {
        note_signer(request, w->signer);
        *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("{}")};
    }
}

static const char *in_folder(const char *name)
{
    static char paths[4][512];
    static size_t n;
    char *path = paths[n++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

/* No keys anywhere but where the test puts them. */
static void open_world(struct world *w)
{
    memset(w, 0, sizeof(*w));
    fault_open(&f, answer_all, w);
    fault_set(&f, "AWS_ACCESS_KEY_ID", "");
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", "");
    fault_set(&f, "AWS_SESSION_TOKEN", "");
    fault_set(&f, "HOME", in_folder("nobody"));
    fault_set(&f, "AWS_CONFIG_FILE", in_folder("config"));
    fault_set(&f, "AWS_SHARED_CREDENTIALS_FILE", in_folder("credentials"));
    test_write(in_folder("config"), "");
    test_write(in_folder("credentials"), "");
    test_write(in_folder("token"), "header.payload.signature\n");
}

static struct sl_result put(const char *url)
{
    struct sl_table_port *table = fault_table(&f, url);
    struct sl_result result = fault_put_item(&f, table, "a");
    table->close(table);
    return result;
}

static void assert_signed_by(struct world *w, const char *key)
{
    assert_result(put("dynamodb://tbl"), SL_OK, NULL);
    assert_string_equal(w->signer, key);
}

static void the_environment_comes_first(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    test_write(in_folder("credentials"), "[default]\naws_access_key_id=AKIAFILE\naws_secret_access_key=x\n");
    fault_set(&f, "AWS_ACCESS_KEY_ID", "AKIAENV");
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", FAULT_SECRET);
    assert_signed_by(&w, "AKIAENV");
    fault_close(&f);
}

static void half_a_pair_is_refused(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", FAULT_SECRET);
    assert_result(put("dynamodb://tbl"), SL_FATAL, "InvalidCredentials");
    assert_int_equal(scripted_server_requests(f.server), 0);
    fault_close(&f);
}

static void profiles_of_both_files(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    test_write(in_folder("credentials"),
               "# a comment\n[default]\naws_access_key_id = AKIADEFAULT ; not this\n"
               "aws_secret_access_key = " FAULT_SECRET "\n\n[other]\n"
               "aws_access_key_id=AKIAOTHER\naws_secret_access_key=" FAULT_SECRET "\n"
               "aws_session_token=" FAULT_TOKEN "\n");
    test_write(in_folder("config"),
               "[profile third]\naws_access_key_id=AKIATHIRD\naws_secret_access_key=" FAULT_SECRET
               "\n[third]\naws_access_key_id=AKIAWRONG\n");
    assert_signed_by(&w, "AKIADEFAULT");
    fault_close(&f);
    const char *const others[][2] = {{"other", "AKIAOTHER"}, {"third", "AKIATHIRD"}};
    for (size_t i = 0; i < 2; i++) {
        memset(&w, 0, sizeof(w));
        char *config = test_read(in_folder("config"), NULL),
             *keys = test_read(in_folder("credentials"), NULL);
        open_world(&w);
        test_write(in_folder("config"), config);
        test_write(in_folder("credentials"), keys);
        fault_set(&f, "AWS_PROFILE", others[i][0]);
        assert_signed_by(&w, others[i][1]);
        fault_close(&f);
        free(config);
        free(keys);
    }
    open_world(&w);
    fault_set(&f, "AWS_PROFILE", "absent");
    assert_result(put("dynamodb://tbl"), SL_FATAL, "InvalidProfile");
    fault_close(&f);
}

/* A role by another role's keys, which come from a profile's own. */
static void roles_are_chained(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    test_write(in_folder("config"),
               "[default]\nrole_arn = arn:aws:iam::123456789012:role/outer\nsource_profile = middle\n"
               "external_id = ex/ternal\nrole_session_name = named\n"
               "[profile middle]\nrole_arn = arn:aws:iam::123456789012:role/inner\nsource_profile = base\n"
               "[profile base]\naws_access_key_id=AKIABASE\naws_secret_access_key=" FAULT_SECRET "\n");
    assert_signed_by(&w, "ASIAouter");
    assert_int_equal(w.sts_calls, 2);
    assert_string_equal(w.sts_signer, "ASIAinner");
    assert_non_null(strstr(w.form, "&ExternalId=ex%2Fternal"));
    assert_non_null(strstr(w.form, "&RoleSessionName=named"));
    assert_result(put("dynamodb://tbl"), SL_OK, NULL);
    assert_int_equal(w.sts_calls, 2); /* kept */
    fault_close(&f);
}

static void broken_profiles_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "[default]\nrole_arn = arn:aws:iam::1:role/r\n",
        ("[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = loop\n[profile loop]\n"
         "role_arn = arn:aws:iam::1:role/l\nsource_profile = default\n"),
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = empty\n[profile empty]\n",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = Moon\n",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = Environment\n",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\nmfa_serial = m\n",
        "[default]\ncredential_process = /bin/true\n",
        "[default]\nsso_session = x\n",
        "[default]\naws_access_key_id = AKIAALONE\n",
    };
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct world w;
        open_world(&w);
        test_write(in_folder("config"), configs[i]);
        struct sl_result result = put("dynamodb://tbl");
        assert_int_equal(result.status, SL_FATAL);
        assert_true(result.not_sent);
        assert_int_equal(w.signer[0], '\0');
        fault_close(&f);
    }
}

static void a_source_may_be_named(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    test_write(
        in_folder("config"),
        "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Ec2InstanceMetadata\n");
    fault_set(&f, "AWS_EC2_METADATA_DISABLED", "");
    fault_set(&f, "AWS_EC2_METADATA_SERVICE_ENDPOINT", scripted_server_url(f.server));
    assert_signed_by(&w, "ASIAr");
    assert_string_equal(w.sts_signer, "ASIAINSTANCE");
    fault_close(&f);
}

static void web_identity_goes_unsigned(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fault_set(&f, "AWS_WEB_IDENTITY_TOKEN_FILE", in_folder("token"));
    fault_set(&f, "AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    fault_set(&f, "AWS_ROLE_SESSION_NAME", "session");
    assert_signed_by(&w, "ASIApod");
    assert_string_equal(w.sts_signer, "");
    assert_non_null(strstr(w.form, "Action=AssumeRoleWithWebIdentity&"));
    assert_non_null(strstr(w.form, "&WebIdentityToken=header.payload.signature"));
    assert_non_null(strstr(w.form, "&RoleSessionName=session"));
    fault_close(&f);
    open_world(&w);
    fault_set(&f, "AWS_WEB_IDENTITY_TOKEN_FILE", in_folder("no such file"));
    fault_set(&f, "AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    assert_result(put("dynamodb://tbl"), SL_FATAL, "InvalidCredentials");
    fault_close(&f);
}

static void containers_have_an_endpoint(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fault_set(&f, "AWS_CONTAINER_CREDENTIALS_FULL_URI",
              sl_arena_printf(f.call.arena, "%s/container", scripted_server_url(f.server)));
    fault_set(&f, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer abc");
    assert_signed_by(&w, "ASIACONTAINER");
    fault_close(&f);
    open_world(&w);
    fault_set(&f, "AWS_CONTAINER_CREDENTIALS_FULL_URI",
              sl_arena_printf(f.call.arena, "%s/container", scripted_server_url(f.server)));
    fault_set(&f, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer wrong");
    assert_result(put("dynamodb://tbl"), SL_RETRY, "NoCredentials");
    assert_int_equal(w.container_calls, 1);
    fault_close(&f);
}

/* A token is not carried to just any host. */
static void containers_endpoints_are_local_or_https(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://example.com/x",          "http://169.254.170.2.example.com/",
                                       "http://127.0.0.1@example.com/", "ftp://127.0.0.1/",
                                       "http://127.0.0.12.example/",    "http://localhost.example/"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct world w;
        open_world(&w);
        fault_set(&f, "AWS_CONTAINER_CREDENTIALS_FULL_URI", urls[i]);
        assert_result(put("dynamodb://tbl"), SL_FATAL, "InvalidCredentials");
        fault_close(&f);
    }
}

static void instances_have_metadata(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fault_set(&f, "AWS_EC2_METADATA_DISABLED", "");
    fault_set(&f, "AWS_EC2_METADATA_SERVICE_ENDPOINT", scripted_server_url(f.server));
    assert_signed_by(&w, "ASIAINSTANCE");
    assert_int_equal(w.instance_calls, 3);
    fault_close(&f);
}

static void no_keys_anywhere_is_an_error_that_says_so(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.has_no_instance = true;
    fault_set(&f, "AWS_EC2_METADATA_DISABLED", "");
    fault_set(&f, "AWS_EC2_METADATA_SERVICE_ENDPOINT", scripted_server_url(f.server));
    struct sl_result result = put("dynamodb://tbl");
    assert_result(result, SL_FATAL, "NoCredentials");
    assert_true(result.not_sent);
    assert_non_null(strstr(result.text, "AWS_ACCESS_KEY_ID"));
    fault_close(&f);
}

/* ?role=: for another account, assumed with the chain's keys; all targets that name it share it. */
static void targets_may_name_a_role(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fault_set(&f, "AWS_ACCESS_KEY_ID", "AKIAENV");
    fault_set(&f, "AWS_SECRET_ACCESS_KEY", FAULT_SECRET);
    const char *url = "dynamodb://tbl?role=arn:aws:iam::210987654321:role/theirs";
    assert_result(put(url), SL_OK, NULL);
    assert_string_equal(w.signer, "ASIAtheirs");
    assert_string_equal(w.sts_signer, "AKIAENV");
    assert_result(put(url), SL_OK, NULL);
    assert_int_equal(w.sts_calls, 1);
    assert_signed_by(&w, "AKIAENV"); /* other targets go on as before */
    f.clock.ms += 50 * 60 * 1000;
    f.call.deadline_ms += 3600 * 1000;
    assert_result(put(url), SL_OK, NULL);
    assert_int_equal(w.sts_calls, 2); /* it ends at 22:04, and it is 21:54 */
    w.refuses_sts = true;
    f.clock.ms += 60 * 60 * 1000;
    struct sl_result result = put(url);
    assert_result(result, SL_FATAL, "AccessDenied");
    assert_non_null(strstr(result.text, "AssumeRole"));
    fault_close(&f);
}

/* ---- sources that lie ---- */

/* Each source, with its steps. */
static const struct {
    const char *name, *step;
    bool has_keys; /* the step's answer */
    const char *config;
    bool by_web, by_container, by_instance;
} sources[] = {
    {"a profile's role", "sts", true,
     "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n"
     "[profile base]\naws_access_key_id=AKIABASE\naws_secret_access_key=" FAULT_SECRET "\n",
     false, false, false},
    {"a target's role", "sts", true,
     "[default]\naws_access_key_id=AKIABASE\naws_secret_access_key=" FAULT_SECRET "\n", false, false, false},
    {"web identity", "sts", true, "", true, false, false},
    {"a container", "container", true, "", false, true, false},
    {"an instance's token", "token", false, "", false, false, true},
    {"an instance's roles", "list", false, "", false, false, true},
    {"an instance's keys", "keys", true, "", false, false, true},
};

#define N_SOURCES (sizeof(sources) / sizeof(sources[0]))

static const char *open_source(struct world *w, size_t i)
{
    open_world(w);
    const char *url = scripted_server_url(f.server);
    test_write(in_folder("config"), sources[i].config);
    if (sources[i].by_web) {
        fault_set(&f, "AWS_WEB_IDENTITY_TOKEN_FILE", in_folder("token"));
        fault_set(&f, "AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    }
    if (sources[i].by_container)
        fault_set(&f, "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                  sl_arena_printf(f.call.arena, "%s/container", url));
    if (sources[i].by_instance) {
        fault_set(&f, "AWS_EC2_METADATA_DISABLED", "");
        fault_set(&f, "AWS_EC2_METADATA_SERVICE_ENDPOINT", url);
    }
    return i == 1 ? "dynamodb://tbl?role=arn:aws:iam::123456789012:role/theirs" : "dynamodb://tbl";
}

/* No answer of a source is a record's fault, and none is believed that is not whole. */
static void assert_refused(struct world *w, size_t i, const char *url, const char *lie)
{
    struct sl_result result = put(url);
    if ((result.status != SL_RETRY && result.status != SL_FATAL) || !result.not_sent || w->signer[0])
        fail_msg("%s answers %s: status %d, signed by \"%s\": %s", sources[i].name, lie, (int)result.status,
                 w->signer, result.text ? result.text : "-");
    fault_close(&f);
}

static void sources_that_lie_reject_no_record(void **state)
{
    (void)state;
#define STS_ERROR(code)                                                                                      \
    "<ErrorResponse><Error><Code>" code "</Code><Message>m</Message></Error></ErrorResponse>"
    static const struct {
        int status;
        const char *body;
    } lies[] = {
        {400, STS_ERROR("InvalidIdentityToken")},
        {400, STS_ERROR("IDPCommunicationError")},
        {400, STS_ERROR("ExpiredTokenException")},
        {400, STS_ERROR("BrandNewRefusal")},
        {400, STS_ERROR("BatchRequestTooLong")}, /* elsewhere a record's */
        {403, STS_ERROR("RegionDisabledException")},
        {403, "<html>proxy</html>"},
        {400, "<html>proxy</html>"},
        {400, ""},
        {400, "{\"__type\":\"ValidationException\",\"message\":\"m\"}"},
        {404, ""},
        {500, STS_ERROR("InternalFailure")},
        {502, "<html>proxy</html>"},
        {200, STS_ERROR("AccessDenied")},
        {200, "<html><Credentials>no</Credentials></html>"},
        {200, "<AssumeRoleResponse><Credentials></Credentials></AssumeRoleResponse>"},
        {200, "<AssumeRoleResponse><Credentials><AccessKeyId>A</AccessKeyId>"},
        {200, "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"m\"}"},
        {200, "{}"},
        {200, "[]"},
        {200, ""},
        {204, ""},
        {302, ""},
    };
    for (size_t i = 0; i < N_SOURCES; i++)
        for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
            struct world w;
            const char *url = open_source(&w, i);
            w.lying = sources[i].step;
            w.lie = (struct scripted_reply){.status = lies[k].status, .body = sl_span_str(lies[k].body)};
            assert_refused(&w, i, url, lies[k].body);
        }
}

static void keys_without_a_member_are_not_believed(void **state)
{
    (void)state;
    static const char *const members[] = {"Code",  "AccessKeyId", "SecretAccessKey",
                                          "Token", "Expiration",  "SessionToken"};
    static const char *const values[] = {NULL, "", "two words", "caf\xC3\xA9", "soon", "2026-11-20"};
    for (size_t i = 0; i < N_SOURCES; i++)
        for (size_t m = 0; m < 6 && sources[i].has_keys; m++)
            for (size_t v = 0; v < 6; v++) {
                struct world w;
                bool is_sts = strcmp(sources[i].step, "sts") == 0, is_expiration = m == 4;
                if ((is_sts ? m == 0 || m == 3 : m == 5) || (m == 0 && v < 2) || (v > 3 && !is_expiration))
                    continue; /* it has no such member, needs none, or the value is fine there */
                const char *url = open_source(&w, i);
                w.member = members[m];
                w.value = values[v];
                assert_refused(&w, i, url, members[m]);
            }
}

static size_t count_lines(const char *text)
{
    off_t len = lseek(f.fd, 0, SEEK_END);
    char *log = calloc(1, (size_t)len + 1);
    size_t n = 0;
    assert_int_equal(pread(f.fd, log, (size_t)len, 0), len);
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
        n++;
    free(log);
    return n;
}

/* Our clock may be the wrong one, so they are used; but the source is not asked before each request. */
static void keys_that_come_expired_are_said_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SOURCES; i++) {
        struct world w;
        if (!sources[i].has_keys)
            continue;
        const char *url = open_source(&w, i);
        w.expires = "2026-11-20T21:03:00Z"; /* a minute ago */
        for (int k = 0; k < 20; k++)
            assert_result(put(url), SL_OK, NULL);
        unsigned calls = w.sts_calls + w.container_calls + w.instance_calls;
        assert_int_equal(calls, sources[i].by_instance ? 3 : 1);
        assert_int_equal(count_lines("before they came"), 1);
        f.clock.ms += 61000;
        for (int k = 0; k < 20; k++)
            assert_result(put(url), SL_OK, NULL);
        assert_int_equal(w.sts_calls + w.container_calls + w.instance_calls, 2 * calls);
        assert_int_equal(count_lines("before they came"), 1);
        w.expires = "2026-11-21T04:00:00Z"; /* it is well again */
        f.clock.ms += 61000;
        assert_result(put(url), SL_OK, NULL);
        assert_result(put(url), SL_OK, NULL);
        assert_int_equal(w.sts_calls + w.container_calls + w.instance_calls, 3 * calls);
        fault_close(&f);
    }
}

/* A newline at the end of a variable or a file would become a header of its own. */
static void keys_with_control_bytes_are_refused_by_their_source(void **state)
{
    (void)state;
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
    static const char *const ends[] = {"\n", "\r\nX-Evil: 1", " ", "\x7F", "\xC2\x85"};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof(ends) / sizeof(ends[0]); k++) {
            struct world w;
            open_world(&w);
            for (size_t n = 0; n < 3; n++)
                fault_set(&f, names[n],
                          sl_arena_printf(f.call.arena, "%s%s", FAULT_TOKEN, n == i ? ends[k] : ""));
            struct sl_result result = put("dynamodb://tbl");
            assert_result(result, SL_FATAL, "InvalidCredentials");
            assert_non_null(strstr(result.text, "the environment"));
            fault_close(&f);
        }
    struct world w;
    open_world(&w);
    fault_set(&f, "AWS_CONTAINER_CREDENTIALS_FULL_URI",
              sl_arena_printf(f.call.arena, "%s/container", scripted_server_url(f.server)));
    fault_set(&f, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer abc\r\nX-Evil: 1");
    struct sl_result result = put("dynamodb://tbl");
    assert_result(result, SL_FATAL, "InvalidCredentials");
    assert_non_null(strstr(result.text, "AWS_CONTAINER_AUTHORIZATION_TOKEN"));
    assert_int_equal(scripted_server_requests(f.server), 0);
    fault_close(&f);
}

static void times_are_read(void **state)
{
    (void)state;
    assert_int_equal(sl_credentials_time(SL_LIT("2026-11-20T21:04:00Z")), FAULT_EPOCH_S);
    assert_int_equal(sl_credentials_time(SL_LIT("2026-11-20T21:04:00.123Z")), FAULT_EPOCH_S);
    assert_int_equal(sl_credentials_time(SL_LIT("2026-11-20T21:04:00+00:00")), FAULT_EPOCH_S);
    assert_int_equal(sl_credentials_time(SL_LIT("2026-11-20T21:04:00+02:00")), -1);
    assert_int_equal(sl_credentials_time(SL_LIT("2026-11-20")), -1);
    assert_int_equal(sl_credentials_time(SL_LIT("")), -1);
    assert_int_equal(sl_credentials_time(sl_span(NULL, 0)), -1);
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
        cmocka_unit_test(the_environment_comes_first),
        cmocka_unit_test(half_a_pair_is_refused),
        cmocka_unit_test(profiles_of_both_files),
        cmocka_unit_test(roles_are_chained),
        cmocka_unit_test(broken_profiles_are_refused_by_name),
        cmocka_unit_test(a_source_may_be_named),
        cmocka_unit_test(web_identity_goes_unsigned),
        cmocka_unit_test(containers_have_an_endpoint),
        cmocka_unit_test(containers_endpoints_are_local_or_https),
        cmocka_unit_test(instances_have_metadata),
        cmocka_unit_test(no_keys_anywhere_is_an_error_that_says_so),
        cmocka_unit_test(targets_may_name_a_role),
        cmocka_unit_test(sources_that_lie_reject_no_record),
        cmocka_unit_test(keys_without_a_member_are_not_believed),
        cmocka_unit_test(keys_that_come_expired_are_said_once),
        cmocka_unit_test(keys_with_control_bytes_are_refused_by_their_source),
        cmocka_unit_test(times_are_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
