/* GetSecretValue and GetParameter: see aws/secrets.h. */
#include "aws/secrets.h"

#include "aws/answer.h"
#include "aws/client.h"
#include "base/arn.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/span.h"

#include <jansson.h>
#include <string.h>

/* A secret has 64 KB at most, a parameter 8 KB; escaped, and with what else an answer says. */
#define ANSWER_BYTES ((size_t)512 * 1024)
#define NAME_BYTES   2048
/* All within a function's start, which has 10 seconds. */
#define WAIT_MS      4000
#define SECRETS_MOST 100
/* A shorter value is found in any text. */
#define HIDDEN_BYTES 4

#define BAD "InvalidSecret"

struct sl_secret {
    struct sl_secret *next;
    struct sl_span reference;
    const char *value;
};

/* ---- names ---- */

static bool is_name(struct sl_span name, bool is_parameter)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr(is_parameter ? "_.-/:" : "_.-/+=@", c))))
            return false;
    }
    return name.len > 0 && name.len <= NAME_BYTES;
}

/* Bytes of the ARN at the text's begin: six parts, of a secret seven ("secret:NAME"). */
static size_t arn_bytes(struct sl_span text, bool is_parameter)
{
    unsigned colons = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == ':' && ++colons == 7 && !is_parameter)
            return i;
    return text.len;
}

static enum sl_status parse_arn(struct sl_span reference, size_t n, struct sl_secret_name *out,
                                struct sl_error *error)
{
    struct sl_span arn = sl_span(out->name.ptr, n);
    const char *problem =
        sl_endpoint_arn_problem(arn, out->is_parameter ? "ssm" : "secretsmanager", sl_span(NULL, 0));
    out->region = sl_arn_part(arn, 3);
    if (!problem &&
        !sl_span_starts(sl_arn_part(arn, 5), out->is_parameter ? SL_LIT("parameter/") : SL_LIT("secret")))
        problem = out->is_parameter ? "it is not a parameter's" : "it is not a secret's";
    if (problem)
        return sl_fail(error, SL_FATAL, BAD, "%.*s: %s", SL_ARG(reference), problem);
    return SL_OK;
}

enum sl_status sl_secret_parse(struct sl_span reference, struct sl_secret_name *out, struct sl_error *error)
{
    static const struct sl_span secrets = {"secretsmanager:", 15}, parameters = {"ssm:", 4};
    *out = (struct sl_secret_name){.is_parameter = sl_span_starts(reference, parameters)};
    if (!out->is_parameter && !sl_span_starts(reference, secrets))
        return sl_fail(
            error, SL_FATAL, BAD,
            "%.*s: is no secret; write ${secretsmanager:NAME}, ${secretsmanager:NAME:KEY} or ${ssm:NAME}",
            SL_ARG(reference));
    out->name = sl_span_from(reference, out->is_parameter ? parameters.len : secrets.len);
    bool is_arn = sl_span_starts(out->name, SL_LIT("arn:"));
    struct sl_span all = out->name;
    size_t n = all.len;
    if (is_arn)
        n = arn_bytes(all, out->is_parameter);
    else if (!out->is_parameter && memchr(all.ptr, ':', all.len))
        n = (size_t)((const char *)memchr(all.ptr, ':', all.len) - all.ptr);
    if (is_arn && parse_arn(reference, n, out, error) != SL_OK)
        return SL_FATAL;
    out->name = sl_span(all.ptr, n);
    if (n < all.len)
        out->key = sl_span_from(all, n + 1);
    if (!is_arn && !is_name(out->name, out->is_parameter))
        return sl_fail(error, SL_FATAL, BAD, "%.*s: \"%.*s\" is not the name of a %s", SL_ARG(reference),
                       SL_ARG(out->name), out->is_parameter ? "parameter" : "secret");
    if (out->key.ptr && !out->key.len)
        return sl_fail(error, SL_FATAL, BAD, "%.*s: the key after the last ':' is missing",
                       SL_ARG(reference));
    return SL_OK;
}

/* ---- reading ---- */

struct reading {
    struct sl_aws *aws;
    struct sl_span reference;
    struct sl_secret_name name;
    struct sl_arena *arena;
    struct sl_span text; /* what the answer holds; absent: no text */
};

/* Whether the answer is about what was asked for: of an ARN the last seven characters may be missing. */
static bool is_asked(const struct reading *r, struct sl_span name, struct sl_span arn)
{
    return sl_json_text_is(name, r->name.name) || (r->name.region.ptr && sl_span_starts(arn, r->name.name));
}

static enum sl_job_next take_secret(struct sl_job *job)
{
    struct reading *r = job->context;
    struct sl_span object;
    if (!sl_answer_object(job, &object) ||
        !is_asked(r, sl_answer_text(object, "Name"), sl_answer_text(object, "ARN")))
        return SL_JOB_BROKEN;
    r->text = sl_json_text(object, "SecretString", r->arena);
    return r->text.ptr || sl_answer_text(object, "SecretBinary").ptr ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static enum sl_job_next take_parameter(struct sl_job *job)
{
    struct reading *r = job->context;
    struct sl_span object, parameter;
    if (!sl_answer_object(job, &object))
        return SL_JOB_BROKEN;
    parameter = sl_answer_container(object, "Parameter", '{');
    if (!parameter.ptr || !is_asked(r, sl_answer_text(parameter, "Name"), sl_answer_text(parameter, "ARN")))
        return SL_JOB_BROKEN;
    r->text = sl_json_text(parameter, "Value", r->arena);
    return r->text.ptr ? SL_JOB_DONE : SL_JOB_BROKEN;
}

static enum sl_status take_key(struct reading *r, struct sl_error *error)
{
    json_t *root = json_loadb(r->text.ptr, r->text.len, 0, NULL);
    const char *key = sl_arena_copy(r->arena, r->name.key);
    json_t *value = json_object_get(root, key);
    bool is_object = json_is_object(root), is_text = json_is_string(value) || json_is_integer(value);
    if (json_is_string(value))
        r->text =
            sl_span(sl_arena_copy(r->arena, sl_span(json_string_value(value), json_string_length(value))),
                    json_string_length(value));
    else if (json_is_integer(value))
        r->text = sl_span_str(sl_arena_printf(r->arena, "%lld", (long long)json_integer_value(value)));
    json_decref(root);
    if (is_text)
        return SL_OK;
    return sl_fail(error, SL_FATAL, BAD, "%.*s: %s \"%s\"", SL_ARG(r->reference),
                   !is_object ? "the secret is not a JSON object, so it has no"
                   : value    ? "the secret's value is neither a text nor a whole number:"
                              : "the secret has no member",
                   key);
}

static enum sl_status take_text(struct reading *r, const char **out, struct sl_error *error)
{
    if (!r->text.ptr)
        return sl_fail(error, SL_FATAL, BAD, "%.*s: the secret is binary; a text is needed",
                       SL_ARG(r->reference));
    if (r->name.key.ptr && take_key(r, error) != SL_OK)
        return SL_FATAL;
    if (!r->text.len || memchr(r->text.ptr, '\0', r->text.len))
        return sl_fail(error, SL_FATAL, BAD, "%.*s: the secret %s", SL_ARG(r->reference),
                       r->text.len ? "holds a NUL character" : "is empty");
    *out = sl_arena_copy(r->aws->lasting, r->text);
    return SL_OK;
}

static struct sl_span body_of(const struct reading *r)
{
    struct sl_buffer b;
    sl_buffer_init_in(&b, r->arena, UINT32_MAX);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, r->name.is_parameter ? "Name" : "SecretId", r->name.name);
    if (r->name.is_parameter)
        sl_buffer_add_str(&b, ",\"WithDecryption\":true");
    sl_buffer_add_char(&b, '}');
    return sl_buffer_span(&b);
}

static enum sl_status ask(struct reading *r, struct sl_client *client, struct sl_error *error)
{
    static const struct sl_job_kind secret = {.answered = take_secret},
                                    parameter = {.answered = take_parameter};
    const struct sl_span body = body_of(r);
    struct sl_clock *clock = r->aws->clock;
    const struct sl_call call = {.arena = r->arena, .deadline_ms = clock->now_ms(clock) + WAIT_MS};
    struct sl_job job = {.kind = r->name.is_parameter ? &parameter : &secret,
                         .context = r,
                         .operation = r->name.is_parameter ? "GetParameter" : "GetSecretValue",
                         .parts = &body,
                         .n_parts = 1,
                         .of_no_record = true,
                         .answer_bytes = ANSWER_BYTES};
    sl_job_run(client, &job, 1, &call);
    return job.status == SL_OK ? SL_OK
                               : sl_fail(error, job.status, job.code, "%.*s: %s: %s", SL_ARG(r->reference),
                                         job.code, job.text);
}

static enum sl_status fetch(struct sl_aws *aws, struct sl_span reference, const char **out,
                            struct sl_error *error)
{
    struct reading r = {.aws = aws, .reference = reference};
    struct sl_client client = {0};
    struct sl_url url;
    enum sl_status status = sl_secret_parse(reference, &r.name, error);
    if (status != SL_OK)
        return status;
    const struct sl_client_options options = {.service = r.name.is_parameter ? &sl_service_ssm
                                                                             : &sl_service_secretsmanager,
                                              .url = &url,
                                              .region = r.name.region};
    r.arena = sl_arena_new(8 * 1024);
    sl_arena_keep_secret(r.arena);
    status = sl_url_parse(r.name.is_parameter ? SL_LIT("ssm:parameter") : SL_LIT("secretsmanager:secret"),
                          aws->lasting, &url, error);
    if (status == SL_OK)
        status = sl_client_init(&client, aws, &options, error);
    if (status == SL_OK) {
        status = ask(&r, &client, error);
        sl_client_clean_up(&client);
    }
    if (status == SL_OK)
        status = take_text(&r, out, error);
    sl_error_seal(error);
    sl_arena_destroy(r.arena);
    return status;
}

enum sl_status sl_secret_read(struct sl_aws *aws, struct sl_span reference, const char **out,
                              struct sl_error *error)
{
    size_t n = 0;
    for (struct sl_secret *s = aws->secrets; s; s = s->next, n++)
        if (sl_span_eq(s->reference, reference)) {
            *out = s->value;
            return SL_OK;
        }
    if (n == SECRETS_MOST)
        return sl_fail(error, SL_FATAL, BAD, "%.*s: more than %d secrets", SL_ARG(reference), SECRETS_MOST);
    const char *value;
    enum sl_status status = fetch(aws, reference, &value, error);
    if (status != SL_OK)
        return status;
    struct sl_secret *s = sl_arena_zalloc(aws->lasting, sizeof(*s));
    *s = (struct sl_secret){.next = aws->secrets,
                            .reference = sl_span(sl_arena_copy(aws->lasting, reference), reference.len),
                            .value = value};
    aws->secrets = s;
    aws->secrets_ms = aws->clock->now_ms(aws->clock);
    *out = value;
    return SL_OK;
}

/* ---- later ---- */

static bool renew(struct sl_aws *aws, struct sl_secret *s)
{
    struct sl_error error = SL_NO_ERROR;
    const char *value = NULL;
    if (fetch(aws, s->reference, &value, &error) != SL_OK) {
        if (aws->log)
            sl_log(aws->log, SL_WARN, "a secret could not be read again: %s", error.text);
        return false;
    }
    bool is_other = strcmp(value, s->value) != 0;
    if (is_other)
        s->value = value;
    return is_other;
}

bool sl_secrets_changed(struct sl_aws *aws)
{
    bool has_changed = false;
    int64_t now = aws->clock->now_ms(aws->clock);
    if (!aws->is_login_refused || !aws->secrets || now - aws->secrets_ms < SL_SECRETS_MS)
        return false;
    for (struct sl_secret *s = aws->secrets; s; s = s->next)
        has_changed = renew(aws, s) || has_changed;
    aws->secrets_ms = now;
    aws->is_login_refused = false;
    if (has_changed && aws->log)
        sl_log(aws->log, SL_INFO,
               "a target refused our login, and a secret has changed: opening the targets again");
    return has_changed;
}

void sl_secrets_hide(const struct sl_aws *aws, char *text)
{
    for (const struct sl_secret *s = aws->secrets; s; s = s->next) {
        size_t n = strlen(s->value);
        if (n < HIDDEN_BYTES)
            continue;
        for (char *at = strstr(text, s->value); at; at = strstr(at + 3, s->value)) {
            memcpy(at, "...", 3);
            memmove(at + 3, at + n, strlen(at + n) + 1);
        }
    }
}
