/* Makes the function's name, ARN and Region from the stream's ARN, and the names of its log and traces. */
#include "live/sandbox/function.h"

#include "base/hash.h"
#include "base/span.h"
#include "base/time.h"

#include <stdio.h>
#include <string.h>

#define NAME_CHARACTERS 64 /* of a function, by Lambda's API */

enum { PARTITION = 1, SERVICE, REGION, ACCOUNT, KIND, NAME, QUALIFIER, FIELDS };

/* "arn:PARTITION:SERVICE:REGION:ACCOUNT:KIND:NAME:QUALIFIER"; fields that are not there are empty. */
static void split(struct sl_span arn, struct sl_span fields[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;
        fields[i] = sl_span(arn.ptr, colon ? (size_t)(colon - arn.ptr) : arn.len);
        arn = colon ? sl_span_from(arn, fields[i].len + 1) : sl_span(sl_span_end(arn), 0);
    }
}

static bool is_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
        if (!is_good)
            return false;
    }
    return name.len > 0 && name.len <= NAME_CHARACTERS;
}

static bool is_version(struct sl_span qualifier)
{
    for (size_t i = 0; i < qualifier.len; i++)
        if (qualifier.ptr[i] < '0' || qualifier.ptr[i] > '9')
            return false;
    return qualifier.len > 0;
}

/* A fixture's ARN may be no more than a word. */
static struct sl_span either(struct sl_span field, const char *otherwise)
{
    return field.len ? field : sl_span_str(otherwise);
}

static const char *copy(struct sl_span text, struct sl_arena *arena)
{
    return sl_arena_copy(arena, text);
}

enum sl_status sl_function_make(const char *stream_arn, const struct sl_function_told *told,
                                struct sl_arena *arena, struct sl_function *out, struct sl_error *error)
{
    struct sl_span stream[FIELDS], f[FIELDS];
    struct sl_span function = sl_span_str(told->function ? told->function : "sluice");
    split(sl_span_str(stream_arn), stream);
    bool is_arn = sl_span_starts(function, SL_LIT("arn:")), is_either = is_arn || is_name(function);
    if (!is_arn)
        function = sl_span_str(sl_arena_printf(
            arena, "arn:%.*s:lambda:%.*s:%.*s:function:%.*s", SL_ARG(either(stream[PARTITION], "aws")),
            SL_ARG(either(stream[REGION], "us-east-1")), SL_ARG(either(stream[ACCOUNT], "123456789012")),
            SL_ARG(function)));
    split(function, f);
    bool is_good = is_either && sl_span_is(f[SERVICE], "lambda") && sl_span_is(f[KIND], "function") &&
                   is_name(f[NAME]) && f[REGION].len;
    if (!is_good)
        return sl_fail(
            error, SL_REJECT, "InvalidFunction",
            "\"%s\" is neither the name of a function (64 letters, digits, '-' and '_') nor its ARN",
            told->function ? told->function : "");
    *out = (struct sl_function){
        .name = copy(f[NAME], arena),
        .arn = copy(function, arena),
        .version = is_version(f[QUALIFIER]) ? copy(f[QUALIFIER], arena) : "$LATEST",
        .region = told->region ? told->region : copy(f[REGION], arena),
    };
    out->log_group = sl_arena_printf(arena, "/aws/lambda/%s", out->name);
    return SL_OK;
}

const char *sl_function_log_stream(const struct sl_function *identity, int64_t now_ms, uint64_t number,
                                   struct sl_arena *arena)
{
    char day[SL_TIME_BYTES];
    sl_time_text(now_ms * 1000000, day);
    day[4] = day[7] = '/';
    const uint64_t seed[2] = {(uint64_t)now_ms, number};
    uint64_t high = sl_hash(sl_span((const char *)seed, sizeof(seed)));
    uint64_t low = sl_hash(sl_span((const char *)&high, sizeof(high)));
    return sl_arena_printf(arena, "%.10s/[%s]%016llx%016llx", day, identity->version,
                           (unsigned long long)high, (unsigned long long)low);
}

void sl_function_trace(const char *request_id, int64_t now_ms, char out[SL_FUNCTION_TRACE_BYTES])
{
    char digits[33] = "";
    size_t n = 0;
    for (const char *p = request_id; *p && n < 32; p++)
        if (*p != '-')
            digits[n++] = *p;
    snprintf(out, SL_FUNCTION_TRACE_BYTES, "Root=1-%08llx-%.24s;Parent=%.16s;Sampled=0",
             (unsigned long long)(now_ms / 1000), digits, digits + 16);
}
