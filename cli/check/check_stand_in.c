/* Values for variables that are not set: see cli/check/check_stand_in.h. */
#include "cli/check/check_stand_in.h"

#include "base/array.h"
#include "base/span.h"

#include <string.h>

#define REGION  "us-east-1"
#define ACCOUNT "123456789012"
/* The shortest name that a bucket or a table may have. */
#define NAME_LEAST 3
#define NAME_MOST  40

/* ARCHIVE_BUCKET becomes archive-bucket. */
static const char *plain_name(struct sl_span name, struct sl_arena *arena)
{
    char *text = sl_arena_copy(arena, name), *end = text + strlen(text);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    while (*text == '-')
        text++;
    end = end - text > NAME_MOST ? text + NAME_MOST : end;
    while (end > text && end[-1] == '-')
        end--;
    *end = '\0';
    return end - text < NAME_LEAST ? sl_arena_printf(arena, "%s-value", *text ? text : "a") : text;
}

static bool ends(struct sl_span text, const char *with)
{
    return sl_span_ends(text, sl_span_str(with));
}

static bool begins(struct sl_span text, const char *with)
{
    return sl_span_starts(text, sl_span_str(with));
}

/* ---- targets ---- */

/* Of a target's parameters, "?name=${X}" or "#name=${X}", those that do not take any word. */
static const char *of_parameter(struct sl_span before)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"region=", REGION},
        {"role=", "arn:aws:iam::" ACCOUNT ":role/role"},
        {"endpoint=", "https://host.example.com"},
        {"account=", ACCOUNT},
        {"in_flight=", "1"},
        {"batch=", "1"},
        {"max_bytes=", "65536"},
        {"timeout_ms=", "1000"},
        {"attempts=", "1"},
        {"private=", "0"},
        {"proxy=", "0"},
        {"if_none_match=", "0"},
        {"style=", "path"},
        {"sse=", "aws:kms"},
        {"auth=", "aws"},
        {"tls=", "on"},
        {"newline=", "0"},
        {"numbers=", "number"},
        {"order=", "read"},
    };
    for (size_t i = 0; i < SL_COUNT(rows); i++) {
        size_t n = strlen(rows[i].name);
        if (ends(before, rows[i].name) && strchr("?&#", before.ptr[before.len - n - 1]))
            return rows[i].value;
    }
    return NULL;
}

/* The part of an ARN that comes next; NULL: it may be a name. */
static const char *of_arn(struct sl_span arn, const char *service)
{
    const char *const parts[] = {"arn", "aws", service, REGION, ACCOUNT};
    size_t n = 0;
    for (size_t i = 0; i < arn.len; i++)
        n += arn.ptr[i] == ':';
    return n < SL_COUNT(parts) ? parts[n] : NULL;
}

/* What of a service's ARN follows its account. */
static const char *resource_of(struct sl_span service)
{
    static const struct {
        const char *service, *prefix;
    } rows[] = {{"sns", ""},
                {"sqs", ""},
                {"events", "event-bus/"},
                {"kinesis", "stream/"},
                {"firehose", "deliverystream/"},
                {"dynamodb", "table/"}};
    for (size_t i = 0; i < SL_COUNT(rows); i++)
        if (sl_span_is(service, rows[i].service))
            return rows[i].prefix;
    return NULL;
}

/* Within a host: "sqs.${X}.amazonaws.com", "host:${X}". */
static const char *of_host(struct sl_span rest, struct sl_span after)
{
    bool is_region = begins(after, ".amazonaws.") || begins(after, ".es.amazonaws.");
    if (is_region && ends(rest, "."))
        return REGION;
    return ends(rest, ":") ? "443" : NULL;
}

/* `before` has a scheme. */
static const char *of_target(const struct sl_stand_in_place *place, struct sl_span scheme,
                             struct sl_arena *arena)
{
    struct sl_span rest = sl_span_from(place->before, scheme.len + 1), after = place->after;
    const char *service = sl_arena_copy(arena, scheme), *prefix = resource_of(scheme);
    const char *value = of_parameter(place->before);
    bool has_slashes = begins(rest, "//");
    if (value || memchr(place->before.ptr, '?', place->before.len) ||
        memchr(place->before.ptr, '#', place->before.len))
        return value;
    rest = has_slashes ? sl_span_from(rest, 2) : rest;
    if (!rest.len && !has_slashes && prefix)
        return sl_arena_printf(arena, "arn:aws:%s:" REGION ":" ACCOUNT ":%s%s", service, prefix,
                               plain_name(place->name, arena));
    if (begins(rest, "arn:"))
        return of_arn(rest, service);
    bool ends_host = !rest.len || (ends(rest, "/") && !ends(rest, "//"));
    if (sl_span_is(scheme, "sqs") && begins(after, "/") && ends_host)
        return ACCOUNT;
    return of_host(rest, after);
}

/* A variable that begins a target, or is all of it. */
static const char *of_whole(const struct sl_stand_in_place *place, struct sl_arena *arena)
{
    const char *scheme = place->is_failure || place->row->type == SL_OPTION_QUEUE ? "sqs"
                         : place->row->type == SL_OPTION_OBJECTS                  ? "s3"
                                                                                  : "dynamodb";
    if (place->is_spans)
        return begins(place->after, "://") ? "https"
               : begins(place->after, ":") ? "xray"
                                           : "https://host.example.com/v1/traces";
    if (begins(place->after, ":"))
        return scheme;
    if (place->after.len &&
        memchr(place->after.ptr, '#', place->after.len)) /* only webhooks have options there */
        return "https://host.example.com/hook";
    return sl_arena_printf(arena, "%s://%s", scheme, plain_name(place->name, arena));
}

/* ---- other texts ---- */

/* Members of an option, or of `when`, that do not take any text. */
static const char *of_member(const char *member)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"events", "INSERT"},   {"expired", "any"},    {"guard", "inline"},   {"tombstones", "inline"},
        {"cidr", "10.0.0.0/8"}, {"type", "S"},         {"base64", "eA=="},    {"by", "1"},
        {"add/", "1"},          {"running_max/", "1"}, {"running_min/", "1"}, {"key/", "{PK}"},
        {"distinct/", "{PK}"}};
    for (size_t i = 0; member && i < SL_COUNT(rows); i++)
        if (strcmp(rows[i].name, member) == 0)
            return rows[i].value;
    return NULL;
}

static bool is_target(const struct sl_stand_in_place *place)
{
    enum sl_option_type type = place->row ? place->row->type : SL_OPTION_END;
    return place->is_failure || place->is_spans ||
           (!place->is_nested &&
            (type == SL_OPTION_OBJECTS || type == SL_OPTION_TABLE || type == SL_OPTION_QUEUE));
}

static const char *special(const struct sl_stand_in_place *place, struct sl_arena *arena)
{
    const char *colon = place->before.len ? memchr(place->before.ptr, ':', place->before.len) : NULL;
    bool is_all = !place->before.len && !place->after.len;
    if (is_target(place) && !place->before.len)
        return of_whole(place, arena);
    if (colon && (is_target(place) || !place->row))
        return of_target(place, sl_span(place->before.ptr, (size_t)(colon - place->before.ptr)), arena);
    if (is_all && place->row && place->row->type == SL_OPTION_TEMPLATE)
        return sl_arena_printf(arena, "{%s}", plain_name(place->name, arena));
    if (is_all && place->row && place->row->type == SL_OPTION_ENUM)
        return sl_arena_copy(arena, sl_span(place->row->values, strcspn(place->row->values, "|")));
    return is_all ? of_member(place->member) : NULL;
}

const char *sl_check_stand_in(const struct sl_stand_in_place *place, struct sl_arena *arena, bool *is_special)
{
    const char *value = special(place, arena);
    *is_special = value != NULL;
    return value ? value : plain_name(place->name, arena);
}
