/* The connection: made, driven and closed under the call's deadline, never with a wait of libpq's own. */
#include "sinks/postgres/postgres_private.h"

#include "base/clock.h"

#include <poll.h>
#include <stdio.h>

/* The longest that a server may take for one statement, when a call has no deadline. */
#define STATEMENT_MS 60000
/* To make a connection, when the deadline is later. */
#define CONNECT_MS 10000
/* A connection that was idle for so long is not used again: a frozen sandbox does not see that it is closed,
 * and a network between may have forgotten it. */
#define IDLE_MS 60000
/* Bytes that nobody acknowledges for so long are of a connection that is gone, tcp(7). */
#define UNHEARD_MS "10000"

void sl_postgres_disconnect(struct sl_postgres *p)
{
    PQfinish(p->connection);
    p->connection = NULL;
}

static int64_t left_ms(const struct sl_postgres *p, int64_t deadline_ms)
{
    int64_t now = p->clock->now_ms(p->clock);
    return deadline_ms <= now ? 0 : deadline_ms - now;
}

/* False: the deadline has come. */
static bool wait_for(struct sl_postgres *p, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = left_ms(p, deadline_ms);
        if (left == 0)
            return false;
        struct pollfd fd = {.fd = PQsocket(p->connection), .events = events};
        int ready = poll(&fd, 1, left > STATEMENT_MS ? STATEMENT_MS : (int)left);
        if (ready > 0)
            return true;
    }
}

/* ---- connecting ---- */

/* libpq's text has lines, and may have several; none of them holds the password. */
static enum sl_status cannot_connect(struct sl_postgres *p, bool is_late, struct sl_error *error)
{
    char line[300];
    size_t n = 0;
    for (const char *c = p->connection ? PQerrorMessage(p->connection) : ""; *c && n + 1 < sizeof(line); c++)
        line[n++] = *c == '\n' ? ' ' : *c;
    while (n && line[n - 1] == ' ')
        n--;
    line[n] = '\0';
    /* (libpq gives no SQLSTATE for a connection that was refused.) */
    bool stands = strstr(line, "authentication failed") || strstr(line, "no password supplied") ||
                  strstr(line, "certificate") || (strstr(line, "database \"") && strstr(line, "not exist")) ||
                  strstr(line, "role \"") || strstr(line, "no pg_hba.conf entry");
    sl_postgres_disconnect(p);
    if (stands)
        sl_sinks_aws(p->sinks)->is_login_refused = true; /* a secret may have been rotated */
    return sl_fail(error, stands ? SL_FATAL : SL_RETRY,
                   is_late  ? "DeadlineExceeded"
                   : stands ? "ConnectionRefused"
                            : "ConnectionError",
                   "%s: %s%s", p->target.shown,
                   is_late ? "no connection within the time that was left" : line,
                   strstr(line, "no password supplied")
                       ? "; it is in the variable PGPASSWORD, or in the one that password= names"
                       : "");
}

static enum sl_status start(struct sl_postgres *p, const char *password, struct sl_error *error)
{
    const struct sl_postgres_target *t = &p->target;
    const char *mode = t->is_plain ? "disable" : t->is_local && !t->ca ? "prefer" : "verify-full";
    const char *const names[] = {"host",
                                 "port",
                                 "dbname",
                                 "user",
                                 "password",
                                 "sslmode",
                                 "sslrootcert",
                                 "sslcert",
                                 "sslkey",
                                 "gssencmode",
                                 "client_encoding",
                                 "application_name",
                                 "tcp_user_timeout",
                                 NULL};
    const char *const values[] = {t->host,
                                  t->port,
                                  t->database,
                                  t->user,
                                  password,
                                  mode,
                                  t->ca ? t->ca
                                  : t->is_local || t->is_plain
                                      ? NULL
                                      : sl_http_bundle(sl_aws_http(sl_sinks_aws(p->sinks))),
                                  t->certificate,
                                  t->key,
                                  "disable",
                                  "UTF8",
                                  "sluice",
                                  UNHEARD_MS,
                                  NULL};
    p->connection = PQconnectStartParams(names, values, 0);
    if (!p->connection)
        sl_die("out of memory: a connection");
    return PQstatus(p->connection) == CONNECTION_BAD ? cannot_connect(p, false, error) : SL_OK;
}

enum sl_status sl_postgres_connect(struct sl_postgres *p, struct sl_error *error)
{
    bool is_fresh = p->clock->now_ms(p->clock) - p->used_ms < IDLE_MS;
    if (p->connection && is_fresh && PQstatus(p->connection) == CONNECTION_OK)
        return SL_OK;
    sl_postgres_disconnect(p);
    int64_t deadline = p->clock->now_ms(p->clock) + CONNECT_MS;
    if (deadline > p->deadline_ms)
        deadline = p->deadline_ms;
    struct sl_buffer token;
    sl_buffer_init(&token, 64 * 1024);
    token.is_secret = true;
    enum sl_status status = p->target.is_iam ? sl_postgres_token(p, &token, error) : SL_OK;
    if (status == SL_OK)
        status = start(p, p->target.is_iam ? token.ptr : p->target.password, error);
    sl_buffer_clean_up(&token);
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (status == SL_OK && next != PGRES_POLLING_OK) {
        if (!wait_for(p, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline))
            return cannot_connect(p, true, error);
        next = PQconnectPoll(p->connection);
        if (next == PGRES_POLLING_FAILED)
            return cannot_connect(p, false, error);
    }
    if (status == SL_OK && (PQsetnonblocking(p->connection, 1) != 0 || !PQenterPipelineMode(p->connection)))
        return cannot_connect(p, false, error);
    p->used_ms = p->clock->now_ms(p->clock);
    return status;
}

/* ---- a pipeline ---- */

/* Lost, or what it does cannot be waited for: a connection that is not idle is closed, since a sandbox that
 * is frozen must hold no lock. */
static enum sl_status lost(struct sl_postgres *p, bool is_late, struct sl_error *error)
{
    char line[200];
    const char *text = PQerrorMessage(p->connection);
    size_t n = strcspn(text, "\n");
    (void)snprintf(line, sizeof(line), "%.*s", (int)n, text);
    sl_postgres_disconnect(p);
    if (is_late)
        return sl_fail(error, SL_RETRY, "DeadlineExceeded",
                       "%s: no answer within the time that was left; whether it was done is not known",
                       p->target.shown);
    return sl_fail(error, SL_RETRY, "ConnectionError", "%s: the connection is lost: %s", p->target.shown,
                   line);
}

/* Sends what is buffered, and takes what has come. False: the connection is lost. */
static bool move_bytes(struct sl_postgres *p, bool *is_late)
{
    int unsent = PQflush(p->connection);
    if (unsent < 0)
        return PQconsumeInput(p->connection) && false; /* the server may have said why */
    *is_late = !wait_for(p, (short)(POLLIN | (unsent ? POLLOUT : 0)), p->deadline_ms);
    return !*is_late && PQconsumeInput(p->connection);
}

/* The next result, NULL between two statements. False: the connection is lost. */
static bool next_result(struct sl_postgres *p, PGresult **out, bool *is_late)
{
    while (PQflush(p->connection) > 0 || PQisBusy(p->connection))
        if (!move_bytes(p, is_late))
            return false;
    *out = PQgetResult(p->connection);
    return PQstatus(p->connection) == CONNECTION_OK;
}

/* What is in the pipeline, in order. */
struct slot {
    enum { PARSE, EXECUTE, SYNC } kind;
    struct sl_postgres_statement *statement; /* NULL: the transaction's limits */
};

struct pipeline {
    struct sl_postgres *p;
    struct sl_postgres_statement *statements;
    size_t n;
    struct slot *slots;
    size_t n_slots, at;
    size_t first; /* statement of the transaction that is read */
    const char *parsed;
    struct sl_postgres_statement *failed; /* of the transaction that is read */
};

static void add_slot(struct pipeline *l, int kind, struct sl_postgres_statement *statement)
{
    l->slots[l->n_slots++] = (struct slot){kind, statement};
}

static bool send_text(struct pipeline *l, const char *sql, const struct sl_postgres_param *params, int n,
                      struct sl_postgres_statement *statement)
{
    struct sl_postgres *p = l->p;
    const char **values = sl_arena_alloc(p->scratch, ((size_t)n + 1) * sizeof(*values));
    int *bytes = sl_arena_zalloc(p->scratch, ((size_t)n + 1) * sizeof(*bytes));
    int *formats = sl_arena_zalloc(p->scratch, ((size_t)n + 1) * sizeof(*formats));
    for (int i = 0; i < n; i++) {
        values[i] = params[i].text;
        bytes[i] = params[i].bytes;
        formats[i] = params[i].bytes ? 1 : 0;
    }
    if (!l->parsed || strcmp(l->parsed, sql) != 0) {
        if (!PQsendPrepare(p->connection, "", sql, 0, NULL))
            return false;
        add_slot(l, PARSE, statement);
    }
    l->parsed = sql;
    add_slot(l, EXECUTE, statement);
    return PQsendQueryPrepared(p->connection, "", n, values, bytes, formats, 0);
}

/* The limits of one transaction, so that the server gives up before we do. */
static bool send_limits(struct pipeline *l)
{
    static const char sql[] = "SELECT set_config('statement_timeout', $1, true), "
                              "set_config('lock_timeout', $1, true)";
    int64_t left = left_ms(l->p, l->p->deadline_ms) / 10 * 9 + 1; /* 0 would be none */
    const char *text = sl_arena_printf(l->p->scratch, "%d", left > STATEMENT_MS ? STATEMENT_MS : (int)left);
    const struct sl_postgres_param param = {text, 0};
    l->parsed = NULL; /* what a transaction that failed has parsed is not known */
    return send_text(l, sql, &param, 1, NULL);
}

static bool send_all(struct pipeline *l)
{
    for (size_t i = 0; i < l->n; i++) {
        struct sl_postgres_statement *s = &l->statements[i];
        if ((i == 0 || s[-1].is_last) && !send_limits(l))
            return false;
        if (!send_text(l, s->sql, s->params, s->n_params, s))
            return false;
        if (s->is_last) {
            add_slot(l, SYNC, s);
            if (!PQpipelineSync(l->p->connection))
                return false;
        }
    }
    return true;
}

/* The transaction is over: it is committed, or none of it counts but the failure. */
static void end_transaction(struct pipeline *l, const struct sl_postgres_statement *last)
{
    for (struct sl_postgres_statement *s = &l->statements[l->first]; s <= last; s++)
        if (!l->failed)
            s->end = SL_POSTGRES_DONE;
        else if (s != l->failed) {
            PQclear(s->result);
            s->result = NULL;
        }
    l->first = (size_t)(last - l->statements) + 1;
    l->failed = NULL;
}

/* A failure before the transaction's end is of the statement that is read; that of the limits or of the
 * commit is of the first. */
static void take_result(struct pipeline *l, const struct slot *slot, PGresult *result)
{
    struct sl_postgres_statement *s =
        slot->statement && slot->kind != SYNC ? slot->statement : &l->statements[l->first];
    ExecStatusType status = PQresultStatus(result);
    if (slot->kind == EXECUTE && slot->statement && status == PGRES_TUPLES_OK) {
        s->result = result;
    } else if (status == PGRES_FATAL_ERROR && !l->failed) {
        PQclear(s->result);
        s->result = result;
        s->end = SL_POSTGRES_FAILED;
        l->failed = s;
    } else {
        PQclear(result);
    }
}

/* Each statement returns rows, be it none. A server that says that all is well, and not what a statement did,
 * is not believed. */
static bool is_whole(const struct pipeline *l, const struct sl_postgres_statement *last)
{
    for (const struct sl_postgres_statement *s = &l->statements[l->first]; s <= last && !l->failed; s++)
        if (!s->result)
            return false;
    return true;
}

/* Each slot has results and then NULL; a Sync has its own result, and no NULL. */
static bool read_all(struct pipeline *l, bool *is_late)
{
    bool has_begun = false;
    while (l->at < l->n_slots) {
        const struct slot *slot = &l->slots[l->at];
        PGresult *result = NULL;
        if (!next_result(l->p, &result, is_late)) {
            PQclear(result);
            return false;
        }
        if (!result) {
            l->at += has_begun && slot->kind != SYNC;
            has_begun = false;
        } else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            if (slot->kind != SYNC || !is_whole(l, slot->statement))
                return false;
            end_transaction(l, slot->statement);
            l->at++;
            has_begun = false;
        } else {
            take_result(l, slot, result);
            has_begun = true;
        }
    }
    return true;
}

enum sl_status sl_postgres_run(struct sl_postgres *p, struct sl_postgres_statement *statements, size_t n,
                               struct sl_error *error)
{
    struct pipeline l = {.p = p, .statements = statements, .n = n};
    bool is_late = false;
    l.slots = sl_arena_alloc(p->scratch, (5 * n + 1) * sizeof(*l.slots));
    bool is_done = send_all(&l) && read_all(&l, &is_late);
    p->used_ms = p->clock->now_ms(p->clock);
    return is_done ? SL_OK : lost(p, is_late, error);
}

void sl_postgres_drop(struct sl_postgres_statement *statements, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PQclear(statements[i].result);
        statements[i].result = NULL;
    }
}

bool sl_postgres_wait(struct sl_postgres *p, unsigned tries)
{
    int64_t most = (int64_t)20 << (tries < 6 ? tries : 6);
    int64_t wait = 1 + (int64_t)(p->clock->random(p->clock) % (uint64_t)most);
    if (left_ms(p, p->deadline_ms) <= wait)
        return false;
    p->clock->sleep_ms(p->clock, wait);
    return true;
}
