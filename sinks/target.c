/* Schemes, and the sinks that they open. */
#include "sinks/target.h"

#include "base/arn.h"
#include "base/array.h"
#include "base/url.h"

#include "aws/secrets.h"
#include "aws/sources.h"
#include "sinks/services.h"
#include "sinks/file.h"
#include "sinks/lines.h"
#include "sinks/postgres.h"
#ifndef SL_WITHOUT_SQLITE
#include "sinks/sqlite.h"
#endif

typedef enum sl_status (*open_objects_fn)(struct sl_sinks *, struct sl_span, struct sl_object_port **,
                                          struct sl_error *);
typedef enum sl_status (*open_table_fn)(struct sl_sinks *, struct sl_span, struct sl_table_port **,
                                        struct sl_error *);
typedef enum sl_status (*open_queue_fn)(struct sl_sinks *, struct sl_span, struct sl_queue_port **,
                                        struct sl_error *);

/* One row per scheme; exactly one of the first three is set, or `spans` alone. */
static const struct scheme {
    const char *name;
    open_objects_fn objects;
    open_table_fn table;
    open_queue_fn queue;
    open_queue_fn spans;                                        /* of those that take trace spans */
    open_table_fn to_read;                                      /* of a table that opening would create */
    enum sl_status (*check)(struct sl_span, struct sl_error *); /* of those that are local */
} schemes[] = {
    {.name = "s3", .objects = sl_s3_open},
    {.name = "file", .objects = sl_file_open, .check = sl_file_check},
    {.name = "dynamodb", .table = sl_dynamodb_open},
#ifndef SL_WITHOUT_SQLITE /* the zip for Lambda: its tables are DynamoDB's */
    {.name = "sqlite", .table = sl_sqlite_open, .to_read = sl_sqlite_open_to_read, .check = sl_sqlite_check},
#endif
    {.name = "opensearch", .table = sl_opensearch_open},
    {.name = "postgres", .table = sl_postgres_open},
    {.name = "sqs", .queue = sl_sqs_open},
    {.name = "sns", .queue = sl_sns_open},
    {.name = "events", .queue = sl_events_open},
    {.name = "kinesis", .queue = sl_kinesis_open},
    {.name = "firehose", .queue = sl_firehose_open},
    {.name = "https", .queue = sl_webhook_open, .spans = sl_webhook_open},
    {.name = "http", .queue = sl_webhook_open, .spans = sl_webhook_open},
    {.name = "jsonl", .queue = sl_jsonl_open, .spans = sl_jsonl_open, .check = sl_jsonl_check},
    {.name = "stdout", .queue = sl_stdout_open, .spans = sl_stdout_open, .check = sl_stdout_check},
    {.name = "xray", .spans = sl_xray_open},
};

#define N_SCHEMES SL_COUNT(schemes)

void sl_sinks_init(struct sl_sinks *sinks, struct sl_clock *clock, struct sl_log *log,
                   const struct sl_vars *vars)
{
    *sinks = (struct sl_sinks){.clock = clock, .log = log, .vars = vars, .named = vars};
}

void sl_sinks_clean_up(struct sl_sinks *sinks)
{
    sl_aws_destroy(sinks->aws);
    *sinks = (struct sl_sinks){0};
}

void sl_sinks_prepare(struct sl_sinks *sinks)
{
    if (sinks->aws)
        sl_aws_prepare(sinks->aws);
}

void sl_sinks_trace(struct sl_sinks *sinks, const char *trace_id)
{
    if (sinks->aws)
        sl_aws_trace(sinks->aws, trace_id);
}

struct sl_aws *sl_sinks_aws(struct sl_sinks *sinks)
{
    if (!sinks->aws)
        sinks->aws = sl_aws_new(sinks->clock, sinks->log, sinks->vars, sl_sources_find);
    return sinks->aws;
}

static enum sl_status read_secret(void *arg, struct sl_span reference, const char **out,
                                  struct sl_error *error)
{
    return sl_secret_read(sl_sinks_aws(arg), reference, out, error);
}

struct sl_vars sl_sinks_vars(struct sl_sinks *sinks, const struct sl_vars *vars)
{
    struct sl_vars with = *vars;
    if (!sinks->is_dry) {
        with.secret = read_secret;
        with.arg = sinks;
    }
    return with;
}

bool sl_sinks_secrets_changed(struct sl_sinks *sinks)
{
    return sinks->aws && sl_secrets_changed(sinks->aws);
}

void sl_sinks_hide_secrets(const struct sl_sinks *sinks, char *text)
{
    if (sinks->aws)
        sl_secrets_hide(sinks->aws, text);
}

static const struct scheme *find(struct sl_span url)
{
    const char *colon = url.len ? memchr(url.ptr, ':', url.len) : NULL;
    struct sl_span name = sl_span(url.ptr, colon ? (size_t)(colon - url.ptr) : 0);
    for (size_t i = 0; colon && i < N_SCHEMES; i++)
        if (sl_span_is(name, schemes[i].name))
            return &schemes[i];
    return NULL;
}

static enum sl_port_kind kind_of(const struct scheme *scheme)
{
    if (!scheme)
        return SL_PORT_NONE;
    return scheme->objects ? SL_PORT_OBJECTS
           : scheme->table ? SL_PORT_TABLE
           : scheme->queue ? SL_PORT_QUEUE
                           : SL_PORT_NONE;
}

enum sl_port_kind sl_target_kind(struct sl_span url)
{
    return kind_of(find(url));
}

bool sl_target_is_local(struct sl_span url)
{
    const struct scheme *scheme = find(url);
    return scheme && scheme->check;
}

enum sl_status sl_target_check(struct sl_span url, struct sl_error *error)
{
    return sl_target_is_local(url) ? find(url)->check(url, error) : SL_OK;
}

static size_t until_path(struct sl_span url, size_t from)
{
    while (from < url.len && !strchr("/?#\\", url.ptr[from]))
        from++;
    return from;
}

/* Parameters whose values are nobody's secret; a misspelt one may be anything. */
static bool is_open_query(struct sl_span url)
{
    static const char *const open[] = {"region",        "role",          "in_flight", "reject",   "table",
                                       "style",         "storage_class", "sse",       "kms_key",  "tags",
                                       "if_none_match", "account",       "source",    "newline",  "auth",
                                       "tls",           "numbers",       "order",     "endpoint", "user",
                                       "columns",       "socket",        "ca",        "cert"};
    const char *at = url.len ? memchr(url.ptr, '?', url.len) : NULL, *end = url.ptr + url.len;
    while (at && at < end) {
        size_t i = 0, n = 0;
        for (at++; at + n < end && at[n] != '=' && at[n] != '&';)
            n++;
        while (i < SL_COUNT(open) && !sl_span_is(sl_span(at, n), open[i]))
            i++;
        if (i == SL_COUNT(open))
            return false;
        const char *value = at + n;
        at = memchr(value, '&', (size_t)(end - value));
        if (memchr(value, '@', (size_t)((at ? at : end) - value)))
            return false;
    }
    return true;
}

/* A webhook's address up to its host; of others what is no secret. Without a known scheme it may be one that
 * was written wrongly. */
struct sl_span sl_target_shown(struct sl_span url)
{
    const struct scheme *scheme = find(url);
    if (scheme && scheme->queue != sl_webhook_open) {
        struct sl_span shown = sl_url_shown(url);
        return shown.ptr != url.ptr ? sl_span_str(scheme->name) : is_open_query(url) ? url : shown;
    }
    size_t begin = until_path(url, 0);
    begin = begin && url.ptr[begin - 1] == ':' && sl_span_starts(sl_span_from(url, begin), SL_LIT("//"))
                ? begin + 2
                : 0;
    size_t n = until_path(url, begin);
    bool is_whole = n > begin && !memchr(url.ptr, '@', n) &&
                    (!scheme || sl_span_starts(sl_span_from(url, strlen(scheme->name)), SL_LIT("://")));
    return is_whole ? sl_span(url.ptr, n) : sl_span_str(scheme ? scheme->name : "");
}

static void list_schemes(enum sl_port_kind kind, struct sl_buffer *out)
{
    for (size_t i = 0; i < N_SCHEMES; i++)
        if (kind_of(&schemes[i]) == kind)
            sl_buffer_printf(out, "%s%s:", out->len ? ", " : "", schemes[i].name);
}

/* "; write sqs://name" of an ARN whose service has a scheme; else empty. */
static void add_url_of_arn(struct sl_span url, struct sl_buffer *out)
{
    struct sl_span service = sl_arn_part(url, 2), resource = sl_arn_part(url, 5);
    const char *slash = resource.len ? memchr(resource.ptr, '/', resource.len) : NULL;
    if (slash && !sl_span_is(service, "s3")) /* table/orders/stream/..., stream/name */
        resource = sl_span_from(resource, (size_t)(slash + 1 - resource.ptr));
    const char *end = resource.len ? memchr(resource.ptr, '/', resource.len) : NULL;
    if (end)
        resource.len = (size_t)(end - resource.ptr);
    for (size_t i = 0; i < N_SCHEMES; i++)
        if (sl_span_is(service, schemes[i].name))
            sl_buffer_printf(out, "; it is an ARN: write %s://%.*s", schemes[i].name, SL_ARG(resource));
}

static enum sl_status wrong(struct sl_span url, enum sl_port_kind wanted, struct sl_error *error)
{
    static const char *const names[] = {"for spans alone", "an object store", "a table", "a queue"};
    struct sl_buffer known, advice;
    sl_buffer_init(&known, 256);
    sl_buffer_init(&advice, 256);
    list_schemes(wanted, &known);
    const struct scheme *scheme = find(url);
    struct sl_span whole = url;
    url = sl_target_shown(url);
    if (scheme)
        sl_fail(error, SL_FATAL, "InvalidTarget", "target \"%.*s\": %s: is %s, but %s is needed here (%.*s)",
                SL_ARG(url), scheme->name, names[kind_of(scheme)], names[wanted],
                SL_ARG(sl_buffer_span(&known)));
    else {
        add_url_of_arn(whole, &advice);
        sl_fail(error, SL_FATAL, "InvalidTarget",
                "target \"%.*s\": unknown scheme; %s is needed here (%.*s)%.*s", SL_ARG(url), names[wanted],
                SL_ARG(sl_buffer_span(&known)), SL_ARG(sl_buffer_span(&advice)));
    }
    sl_buffer_clean_up(&known);
    sl_buffer_clean_up(&advice);
    return SL_FATAL;
}

enum sl_status sl_target_objects(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                                 struct sl_error *error)
{
    const struct scheme *scheme = find(url);
    return scheme && scheme->objects ? scheme->objects(sinks, url, out, error)
                                     : wrong(url, SL_PORT_OBJECTS, error);
}

enum sl_status sl_target_table(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                               struct sl_error *error)
{
    const struct scheme *scheme = find(url);
    return scheme && scheme->table ? scheme->table(sinks, url, out, error) : wrong(url, SL_PORT_TABLE, error);
}

enum sl_status sl_target_table_to_read(struct sl_sinks *sinks, struct sl_span url, struct sl_table_port **out,
                                       struct sl_error *error)
{
    const struct scheme *scheme = find(url);
    return scheme && scheme->to_read ? scheme->to_read(sinks, url, out, error)
                                     : sl_target_table(sinks, url, out, error);
}

enum sl_status sl_target_queue(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error)
{
    const struct scheme *scheme = find(url);
    return scheme && scheme->queue ? scheme->queue(sinks, url, out, error) : wrong(url, SL_PORT_QUEUE, error);
}

enum sl_status sl_target_spans(struct sl_sinks *sinks, struct sl_span url, struct sl_queue_port **out,
                               struct sl_error *error)
{
    const struct scheme *scheme = find(url);
    if (sl_span_starts(url, SL_LIT("https://xray.")) && memmem(url.ptr, url.len, ".amazonaws.", 11))
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target \"%.*s\": is CloudWatch's endpoint, where requests are signed; write xray: or "
                       "xray:?region=REGION",
                       SL_ARG(sl_target_shown(url)));
    if (scheme && scheme->spans)
        return scheme->spans(sinks, url, out, error);
    return sl_fail(error, SL_FATAL, "InvalidTarget",
                   "target \"%.*s\": spans go to xray:, a collector's https: (http: on this machine), jsonl: "
                   "or stdout:",
                   SL_ARG(sl_target_shown(url)));
}
