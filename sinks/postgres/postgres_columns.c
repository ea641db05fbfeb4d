/* Declared columns: what a value becomes. */
#include "sinks/postgres/postgres_private.h"

#include "base/base64.h"
#include "base/number.h"
#include "base/time.h"
#include "streams/value.h"

#include <stdio.h>
#include <time.h>

const char *sl_postgres_type_name(enum sl_postgres_type type)
{
    static const char *const names[] = {"text",  "numeric",     "bigint",     "boolean",
                                        "bytea", "timestamptz", "timestamptz"};
    return names[type];
}

static enum sl_status wrong_type(const struct sl_postgres_column *column, const char *wants,
                                 struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "WrongColumnType",
                   "attribute %.*s is of another type than its column takes: %s wants %s",
                   SL_ARG(column->name), sl_postgres_type_name(column->type), wants);
}

static enum sl_status out_of_range(const struct sl_postgres_column *column, const char *range,
                                   struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "ColumnOutOfRange", "attribute %.*s is not what its column holds: %s",
                   SL_ARG(column->name), range);
}

static enum sl_status number_text(const struct sl_postgres_column *column, struct sl_value value,
                                  struct sl_arena *arena, const char **out, struct sl_error *error)
{
    struct sl_number number;
    if (!sl_value_number(value, &number))
        return wrong_type(column, "a number", error);
    int64_t integer = 0;
    bool is_exact = false;
    if (column->type == SL_POSTGRES_BIGINT &&
        (!sl_number_int64(&number, 0, &integer, &is_exact) || !is_exact))
        return out_of_range(column, "an integer of 64 bits", error);
    char *text = sl_arena_alloc(arena, SL_NUMBER_TEXT + 1);
    text[sl_number_text(&number, text)] = '\0';
    *out = text;
    return SL_OK;
}

/* Microseconds since 1970 as "2026-11-20T21:04:00.000000Z". What is finer is cut off. */
static enum sl_status instant_text(const struct sl_postgres_column *column, int64_t us,
                                   struct sl_arena *arena, const char **out, struct sl_error *error)
{
    int64_t fraction = us % 1000000;
    time_t seconds = us / 1000000 - (fraction < 0);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || tm.tm_year + 1900 < 1 || tm.tm_year + 1900 > 9999)
        return out_of_range(column, "a time of the years 1 to 9999", error);
    *out = sl_arena_printf(arena, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                           tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                           (int)(fraction < 0 ? fraction + 1000000 : fraction));
    return SL_OK;
}

static enum sl_status time_text(const struct sl_postgres_column *column, struct sl_value value,
                                struct sl_arena *arena, const char **out, struct sl_error *error)
{
    struct sl_number number;
    int64_t ns = 0, step = 0, us = 0;
    bool is_exact = false;
    if (value.type == SL_S && column->type == SL_POSTGRES_TIMESTAMPTZ) {
        if (!sl_time_parse(sl_value_text(value, arena), &ns, &step))
            return out_of_range(column, "a time such as 2026-11-20T21:04:00Z, of the years 1970 to 2261",
                                error);
        return instant_text(column, ns / 1000, arena, out, error);
    }
    bool is_ms = column->type == SL_POSTGRES_TIMESTAMPTZ_MS;
    if (!sl_value_number(value, &number))
        return wrong_type(
            column, is_ms ? "a number of milliseconds" : "a text in RFC 3339 or a number of seconds", error);
    if (!sl_number_int64(&number, is_ms ? 3 : 6, &us, &is_exact))
        return out_of_range(column, "a time of the years 1 to 9999", error);
    return instant_text(column, us, arena, out, error);
}

static const char *hex_text(struct sl_span bytes, struct sl_arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    char *text = sl_arena_alloc(arena, 2 * bytes.len + 3), *at = text;
    *at++ = '\\';
    *at++ = 'x';
    for (size_t i = 0; i < bytes.len; i++) {
        *at++ = digits[(unsigned char)bytes.ptr[i] >> 4];
        *at++ = digits[(unsigned char)bytes.ptr[i] & 15];
    }
    *at = '\0';
    return text;
}

enum sl_status sl_postgres_column_text(const struct sl_postgres_column *column, struct sl_value value,
                                       struct sl_arena *arena, const char **out, struct sl_error *error)
{
    *out = NULL;
    if (value.type == SL_NONE || value.type == SL_NULL)
        return SL_OK;
    switch (column->type) {
    case SL_POSTGRES_TEXT: {
        if (value.type != SL_S)
            return wrong_type(column, "a text", error);
        struct sl_span text = sl_value_text(value, arena);
        *out = sl_arena_copy(arena, text);
        return SL_OK;
    }
    case SL_POSTGRES_NUMERIC:
    case SL_POSTGRES_BIGINT:
        return number_text(column, value, arena, out, error);
    case SL_POSTGRES_BOOLEAN:
        if (value.type != SL_BOOL)
            return wrong_type(column, "a boolean", error);
        *out = sl_value_is_true(value) ? "true" : "false";
        return SL_OK;
    case SL_POSTGRES_BYTEA:
        if (value.type != SL_B)
            return wrong_type(column, "a binary", error);
        *out = hex_text(sl_value_bytes(value, arena), arena);
        return SL_OK;
    default:
        return time_text(column, value, arena, out, error);
    }
}

void sl_postgres_column_read(const struct sl_postgres_column *column, struct sl_buffer *out)
{
    static const char *const forms[] = {
        [SL_POSTGRES_TEXT] = "%s",
        [SL_POSTGRES_NUMERIC] = "trim_scale(%s)::text",
        [SL_POSTGRES_BIGINT] = "%s::text",
        [SL_POSTGRES_BOOLEAN] = "%s::text",
        [SL_POSTGRES_BYTEA] = "'\\x' || encode(%s, 'hex')",
        [SL_POSTGRES_TIMESTAMPTZ] = "to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
        [SL_POSTGRES_TIMESTAMPTZ_MS] = "to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    };
    const char *form = forms[column->type], *at = strstr(form, "%s");
    sl_buffer_add(out, form, (size_t)(at - form));
    sl_buffer_add_str(out, column->quoted);
    sl_buffer_add_str(out, at + 2);
}
