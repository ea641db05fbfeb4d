/* The target's URL: which server, database and table, who asks, and the columns that it declares. */
#include "aws/endpoint.h"
#include "base/array.h"
#include "base/url.h"
#include "net/uri.h"
#include "sinks/postgres/postgres_private.h"

#include <stdio.h>
#include <stdlib.h>

#define FORM   "write it as postgres://HOST[:PORT]/DATABASE?table=NAME&user=NAME"
#define PARAMS "table, user, password, auth, tls, ca, cert, key, socket, columns, region, role"

struct reading {
    struct sl_sinks *sinks;
    struct sl_arena *arena;
    struct sl_url url;
    struct sl_postgres_target *out;
};

static enum sl_status bad(const struct reading *r, const char *why, struct sl_error *error)
{
    return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s", SL_ARG(r->url.shown), why);
}

static const char *copy(const struct reading *r, struct sl_span text)
{
    return text.ptr ? sl_arena_copy(r->arena, text) : NULL;
}

static bool has_control(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return true;
    return false;
}

static const char *param(struct reading *r, const char *name)
{
    return copy(r, sl_url_param(&r->url, name));
}

/* ---- where ---- */

/* "host", "host:port" and "[::1]:port". */
static enum sl_status read_host(struct reading *r, struct sl_error *error)
{
    const char *slash = r->url.rest.len ? memchr(r->url.rest.ptr, '/', r->url.rest.len) : NULL;
    const char *socket = param(r, "socket");
    if (!r->url.has_slashes || !slash)
        return bad(r, FORM, error);
    struct sl_span host = sl_span(r->url.rest.ptr, (size_t)(slash - r->url.rest.ptr));
    struct sl_span database = sl_span_from(r->url.rest, host.len + 1);
    if (database.len == 0 || database.len > SL_POSTGRES_NAME_BYTES ||
        memchr(database.ptr, '/', database.len) || has_control(database))
        return bad(r, "DATABASE is not the name of a database; " FORM, error);
    r->out->database = copy(r, database);
    r->out->port = "5432";
    if (socket) {
        if (host.len || *socket != '/')
            return bad(r, "socket=FOLDER is an absolute path, and then there is no HOST", error);
        r->out->host = socket;
        r->out->is_local = true;
        return SL_OK;
    }
    struct sl_uri uri;
    const char *address = sl_arena_printf(r->arena, "http://%.*s", SL_ARG(host));
    if (memchr(host.ptr, '@', host.len))
        return bad(r, "HOST names no user and no password: they are user=NAME, and a variable", error);
    if (!host.len || !sl_uri_parse(address, &uri))
        return bad(r, "HOST is not a host name or an address, with or without a port", error);
    r->out->is_local = sl_uri_is_local(&uri);
    size_t n = strlen(uri.host);
    r->out->host = *uri.host == '[' ? copy(r, sl_span(uri.host + 1, n - 2)) : copy(r, sl_span_str(uri.host));
    const char *colon = memrchr(host.ptr, ':', host.len);
    if (colon && !memchr(colon, ']', (size_t)(host.ptr + host.len - colon)))
        r->out->port = copy(r, sl_span(colon + 1, (size_t)(host.ptr + host.len - colon - 1)));
    return SL_OK;
}

static enum sl_status read_table(struct reading *r, struct sl_error *error)
{
    struct sl_span table = sl_url_param(&r->url, "table");
    const char *dot = table.ptr ? memchr(table.ptr, '.', table.len) : NULL;
    size_t schema = dot ? (size_t)(dot - table.ptr) : 0, name = table.len - (dot ? schema + 1 : 0);
    if (!sl_table_is_name(table, 1) || (dot && (!schema || memchr(dot + 1, '.', name))) || !name ||
        name > SL_POSTGRES_NAME_BYTES || schema > SL_POSTGRES_NAME_BYTES)
        return bad(r,
                   "table=NAME or table=SCHEMA.NAME is missing, or not the name of a table (A-Z a-z 0-9 _ "
                   "-, 63 bytes at most)",
                   error);
    r->out->own = copy(r, table);
    r->out->shown = sl_arena_printf(r->arena, "postgres://%s/%s", r->out->host, r->out->database);
    return SL_OK;
}

/* ---- who asks ---- */

static enum sl_status read_word(struct reading *r, const char *name, const char *first, const char *second,
                                bool *is_second, struct sl_error *error)
{
    struct sl_span text = sl_url_param(&r->url, name);
    *is_second = sl_span_is(text, second);
    if (!text.ptr || *is_second || sl_span_is(text, first))
        return SL_OK;
    return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: %s=%.*s is neither %s nor %s",
                   SL_ARG(r->url.shown), name, SL_ARG(text), first, second);
}

/* "name.id.us-east-1.rds.amazonaws.com" */
static const char *host_region(struct reading *r)
{
    const char *tail = strstr(r->out->host, ".rds.amazonaws.com"), *at = tail;
    while (at && at > r->out->host && at[-1] != '.')
        at--;
    struct sl_span region = at ? sl_span(at, (size_t)(tail - at)) : sl_span("", 0);
    return sl_endpoint_is_region(region) ? copy(r, region) : NULL;
}

static enum sl_status read_iam(struct reading *r, struct sl_error *error)
{
    const char *region = param(r, "region");
    if (!region)
        region = host_region(r);
    if (!region) {
        struct sl_span from = sl_endpoint_region(r->sinks->vars, NULL);
        region = from.len ? copy(r, from) : NULL;
    }
    if (!region || !sl_endpoint_is_region(sl_span_str(region)))
        return bad(r, "auth=iam needs region=, an AWS region such as us-west-2", error);
    if (r->out->is_plain)
        return bad(r, "auth=iam with tls=off: RDS takes its tokens over TLS alone", error);
    r->out->region = region;
    const char *role = param(r, "role");
    r->out->role = role ? role : "";
    return SL_OK;
}

/* The password is in the variable that the URL names, or in PGPASSWORD. */
static enum sl_status read_password(struct reading *r, struct sl_error *error)
{
    struct sl_span name = sl_url_param(&r->url, "password");
    const char *variable = name.ptr ? copy(r, name) : "PGPASSWORD";
    const char *value = sl_vars_or(r->sinks->named, variable, NULL);
    if (!value && name.ptr && !r->sinks->is_dry)
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: password=%.*s names a variable that is not set", SL_ARG(r->url.shown),
                       SL_ARG(name));
    r->out->password = value ? copy(r, sl_span_str(value)) : NULL;
    if (r->out->password && r->out->is_plain && !r->out->is_local)
        return bad(r, "tls=off would send the password in the clear: only this machine may be asked so",
                   error);
    return SL_OK;
}

static enum sl_status read_login(struct reading *r, struct sl_error *error)
{
    r->out->user = param(r, "user");
    if (!r->out->user || !*r->out->user || has_control(sl_span_str(r->out->user)))
        return bad(r, "user=NAME is missing: the role that logs in", error);
    r->out->ca = param(r, "ca");
    r->out->certificate = param(r, "cert");
    r->out->key = param(r, "key");
    if (!r->out->certificate != !r->out->key)
        return bad(r, "cert=FILE and key=FILE belong together", error);
    if (r->out->is_plain && (r->out->ca || r->out->certificate))
        return bad(r, "tls=off leaves nothing to do for ca=, cert= and key=", error);
    return r->out->is_iam ? read_iam(r, error) : read_password(r, error);
}

/* ---- columns ---- */

static bool read_type(struct sl_span text, enum sl_postgres_type *out)
{
    static const char *const names[] = {"text",  "numeric",     "bigint",         "boolean",
                                        "bytea", "timestamptz", "timestamptz(ms)"};
    for (size_t i = 0; i < SL_COUNT(names); i++)
        if (sl_span_is(text, names[i])) {
            *out = (enum sl_postgres_type)i;
            return true;
        }
    return false;
}

static enum sl_status read_column(struct reading *r, struct sl_span text, struct sl_error *error)
{
    struct sl_postgres_target *out = r->out;
    const char *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    struct sl_postgres_column column = {.type = SL_POSTGRES_TEXT};
    struct sl_span name = sl_span(text.ptr, colon ? (size_t)(colon - text.ptr) : 0);
    if (!colon || !name.len || name.len > SL_POSTGRES_NAME_BYTES || has_control(name) ||
        !read_type(sl_span_from(text, name.len + 1), &column.type))
        return sl_fail(
            error, SL_FATAL, "InvalidTarget",
            "target %.*s: columns=%.*s: write NAME:TYPE, divided by commas; NAME is an attribute's, "
            "of 63 bytes at most; a TYPE is text, numeric, bigint, boolean, bytea, timestamptz or "
            "timestamptz(ms)",
            SL_ARG(r->url.shown), SL_ARG(text));
    column.name = sl_span(sl_arena_copy(r->arena, name), name.len);
    column.quoted = sl_postgres_quote(name, r->arena);
    if (out->n_columns == SL_POSTGRES_COLUMNS)
        return bad(r, "columns= declares more than 64", error);
    bool is_taken = sl_span_is(name, "item");
    for (size_t i = 0; i < out->n_columns; i++)
        is_taken = is_taken || sl_span_eq(out->columns[i].name, name);
    if (is_taken)
        return sl_fail(error, SL_FATAL, "InvalidTarget", "target %.*s: columns=: the name %.*s is taken",
                       SL_ARG(r->url.shown), SL_ARG(name));
    out->columns[out->n_columns++] = column;
    return SL_OK;
}

static enum sl_status read_columns(struct reading *r, struct sl_error *error)
{
    struct sl_span text = sl_url_param(&r->url, "columns");
    r->out->columns = sl_arena_zalloc(r->arena, SL_POSTGRES_COLUMNS * sizeof(*r->out->columns));
    while (text.ptr) {
        const char *comma = text.len ? memchr(text.ptr, ',', text.len) : NULL;
        struct sl_span one = sl_span(text.ptr, comma ? (size_t)(comma - text.ptr) : text.len);
        if (read_column(r, one, error) != SL_OK)
            return SL_FATAL;
        text = comma ? sl_span_from(text, one.len + 1) : (struct sl_span){NULL, 0};
    }
    return SL_OK;
}

enum sl_status sl_postgres_read_target(struct sl_sinks *sinks, struct sl_span url, struct sl_arena *arena,
                                       struct sl_postgres_target *out, struct sl_error *error)
{
    struct reading r = {.sinks = sinks, .arena = arena, .out = out};
    struct sl_span text = sl_span(sl_arena_copy(arena, url), url.len);
    if (sl_url_parse(text, arena, &r.url, error) != SL_OK || read_host(&r, error) != SL_OK ||
        read_table(&r, error) != SL_OK || read_word(&r, "tls", "on", "off", &out->is_plain, error) != SL_OK ||
        read_word(&r, "auth", "password", "iam", &out->is_iam, error) != SL_OK ||
        read_login(&r, error) != SL_OK || read_columns(&r, error) != SL_OK)
        return SL_FATAL;
    return sl_url_done(&r.url, PARAMS, error);
}
