/* A table in PostgreSQL: what its files share. */
#ifndef SL_SINKS_POSTGRES_POSTGRES_PRIVATE_H
#define SL_SINKS_POSTGRES_POSTGRES_PRIVATE_H

#include "aws/aws.h"
#include "sinks/table.h"
#include "sinks/target.h"
#include "streams/types.h"

#include <postgresql/libpq-fe.h>

/* ---- the target ---- */

/* What a declared column holds; docs/POSTGRES.md has the table. */
enum sl_postgres_type {
    SL_POSTGRES_TEXT,
    SL_POSTGRES_NUMERIC,
    SL_POSTGRES_BIGINT,
    SL_POSTGRES_BOOLEAN,
    SL_POSTGRES_BYTEA,
    SL_POSTGRES_TIMESTAMPTZ,   /* of a text in RFC 3339, or of seconds since 1970 */
    SL_POSTGRES_TIMESTAMPTZ_MS /* of milliseconds since 1970 */
};

/* A column that the target's URL declares: the attribute of this name, when an item has it. */
struct sl_postgres_column {
    struct sl_span name;
    const char *quoted; /* as SQL has it */
    enum sl_postgres_type type;
};

#define SL_POSTGRES_COLUMNS    64
#define SL_POSTGRES_NAME_BYTES 63 /* of an identifier: PostgreSQL cuts what is longer */

/* How a connection is made. The strings live as long as the port. */
struct sl_postgres_target {
    const char *shown; /* for messages: scheme, host, database */
    const char *host, *port, *database, *user;
    const char *password; /* NULL: none */
    const char *ca, *certificate, *key;
    const char *own; /* the target's own table: "name" or "schema.name" */
    struct sl_postgres_column *columns;
    size_t n_columns;
    bool is_local; /* this machine: TLS is not asked for */
    bool is_plain; /* tls=off */
    bool is_iam;   /* the password is a token that the process's keys sign */
    const char *region, *role;
};

enum sl_status sl_postgres_read_target(struct sl_sinks *sinks, struct sl_span url, struct sl_arena *arena,
                                       struct sl_postgres_target *out, struct sl_error *error) SL_MUST_USE;

/* "name" with its quotes doubled, in quotes. */
const char *sl_postgres_quote(struct sl_span name, struct sl_arena *arena);

/* ---- tables, as the database has them ---- */

struct sl_postgres_key {
    struct sl_span name;
    const char *quoted;
    char type; /* 'S', 'N' or 'B' */
};

struct sl_postgres_table {
    struct sl_postgres_table *next;
    struct sl_span name;
    const char *quoted;
    struct sl_postgres_key keys[2]; /* in the primary key's order */
    size_t n_keys;
    struct sl_postgres_column *columns; /* those of the target's own table, without its keys */
    size_t n_columns;
    const char *wanted; /* the columns that a read asks for: the keys, item, and those declared */
};

/* ---- the port ---- */

struct sl_postgres {
    struct sl_table_port port;
    struct sl_sinks *sinks;
    struct sl_clock *clock;
    struct sl_arena *lasting; /* as long as the port */
    struct sl_arena *known;   /* the tables, as long as they are believed */
    struct sl_arena *scratch; /* of one call */
    struct sl_postgres_target target;
    struct sl_postgres_table *tables;
    PGconn *connection;  /* NULL: none. Between two calls it is idle, or closed */
    int64_t used_ms;     /* when it was used last */
    bool is_stale;       /* what is believed of the tables may be wrong: the next call reads them again */
    bool has_warned;     /* that commits are not durable */
    int64_t deadline_ms; /* of this call */
    struct sl_buffer key;
};

/* ---- statements ---- */

struct sl_postgres_param {
    const char *text; /* NUL-terminated; NULL: NULL */
    int bytes;        /* of a binary one (bytea); else 0 */
};

enum sl_postgres_end {
    SL_POSTGRES_NOT_RUN, /* nothing is known of it, or one before it failed */
    SL_POSTGRES_DONE,
    SL_POSTGRES_FAILED
};

/* One statement on its way, and what came of it. */
struct sl_postgres_statement {
    const char *sql; /* equal texts that follow one another are parsed once */
    struct sl_postgres_param *params;
    int n_params;
    bool is_last; /* of its transaction */

    enum sl_postgres_end end;
    PGresult *result; /* DONE, or FAILED; until sl_postgres_drop */
};

/* Carries the statements out in one pipeline; each transaction is one of the pipeline's. DONE only when its
 * transaction is committed. Not SL_OK: the connection is lost, and closed; what was DONE until then counts,
 * and of the others nothing is known. */
enum sl_status sl_postgres_run(struct sl_postgres *p, struct sl_postgres_statement *statements, size_t n,
                               struct sl_error *error) SL_MUST_USE;
/* Frees their results. */
void sl_postgres_drop(struct sl_postgres_statement *statements, size_t n);

/* Makes sure of a connection. */
enum sl_status sl_postgres_connect(struct sl_postgres *p, struct sl_error *error) SL_MUST_USE;
void sl_postgres_disconnect(struct sl_postgres *p);

/* The password of IAM: a signed address, good for 15 minutes. */
enum sl_status sl_postgres_token(struct sl_postgres *p, struct sl_buffer *out,
                                 struct sl_error *error) SL_MUST_USE;

/* ---- failures ---- */

enum sl_postgres_fault {
    SL_POSTGRES_PASSES,  /* the connection or the server: try again, on a new connection */
    SL_POSTGRES_REPEATS, /* a deadlock, a serialization failure, a lock that took too long: the same again */
    SL_POSTGRES_REFUSES, /* this row */
    SL_POSTGRES_RAISES,  /* a condition of a group did not hold */
    SL_POSTGRES_MOVED, /* a server that only reads: the writer may be elsewhere by now; FATAL when it stays so
                        */
    SL_POSTGRES_STANDS /* somebody has to repair something */
};

/* Whose fault the result is; its line, without what rows hold, in `error`. */
enum sl_postgres_fault sl_postgres_judge(const struct sl_postgres *p, const PGresult *result,
                                         const struct sl_postgres_table *table, struct sl_error *error);

/* ---- tables and rows ---- */

/* The table with this name; reads the catalog when it is not known yet. `key`: of the operation that needs
 * it, for the advice when there is no such table; absent: none. */
enum sl_status sl_postgres_table(struct sl_postgres *p, struct sl_span name, struct sl_span key,
                                 struct sl_postgres_table **out, struct sl_error *error) SL_MUST_USE;
/* Whether the attribute is one of the table's key. */
bool sl_postgres_is_key(const struct sl_postgres_table *table, struct sl_span name);

/* The key's values as parameters, in the table's order. SL_FATAL: it is no key of this table. */
enum sl_status sl_postgres_key_params(const struct sl_postgres *p, const struct sl_postgres_table *table,
                                      struct sl_span key, struct sl_postgres_param *out,
                                      struct sl_error *error) SL_MUST_USE;

/* The bytes as a parameter: bytea. */
static inline struct sl_postgres_param sl_postgres_bytes(struct sl_span bytes)
{
    return (struct sl_postgres_param){bytes.len ? bytes.ptr : "", (int)bytes.len};
}

/* Whether PostgreSQL's text, and its jsonb, can hold it: no U+0000, and no half of a surrogate pair. */
bool sl_postgres_is_text(struct sl_span text);
bool sl_postgres_is_json(struct sl_span json);

/* The CREATE TABLE for items with this key, one line. */
const char *sl_postgres_create(const char *name, const struct sl_table_key *keys, size_t n_keys,
                               const struct sl_postgres_column *columns, size_t n_columns,
                               struct sl_arena *arena);

/* The item of a row that was read with `wanted`: its keys are as their columns have them, and an attribute
 * whose declared column says otherwise is a map of both. SL_REJECT: what is in `item` is no item. */
enum sl_status sl_postgres_take_item(struct sl_postgres *p, const struct sl_postgres_table *table,
                                     const PGresult *rows, int row, struct sl_arena *arena,
                                     struct sl_span *out, struct sl_error *error) SL_MUST_USE;
/* The same of its key alone. */
struct sl_span sl_postgres_take_key(const struct sl_postgres_table *table, const PGresult *rows, int row,
                                    struct sl_arena *arena);

/* The value as the column's text, NULL for none. SL_REJECT: the column cannot hold it. */
enum sl_status sl_postgres_column_text(const struct sl_postgres_column *column, struct sl_value value,
                                       struct sl_arena *arena, const char **out,
                                       struct sl_error *error) SL_MUST_USE;
/* An SQL expression of the column whose text is the same. */
void sl_postgres_column_read(const struct sl_postgres_column *column, struct sl_buffer *out);
/* Its type as CREATE TABLE has it. */
const char *sl_postgres_type_name(enum sl_postgres_type type);

/* ---- operations as statements ---- */

/* One operation on its way. */
struct sl_postgres_step {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct sl_span key; /* its text */
    struct sl_postgres_table *table;
    struct sl_postgres_param key_params[2];
    struct sl_postgres_param *row; /* PUT, UPDATE: item, and the declared columns */
    bool holds_on_absent;          /* its tests, when there is no item */
    struct sl_span have;           /* as it was read, absent when there is none */
    bool is_by_item;               /* see `before` */
    const char *before; /* UPDATE, and is_by_item: the row's item as it was read, as the database wrote it;
                           NULL: there was none. Only a row that has it is written */
};

/* Makes `row` of an item, in canonical form. SL_REJECT: the table cannot hold it. */
enum sl_status sl_postgres_make_row(struct sl_postgres *p, struct sl_postgres_step *step, struct sl_span item,
                                    struct sl_error *error) SL_MUST_USE;

/* The read of the step's row. */
struct sl_postgres_statement sl_postgres_read_of(struct sl_postgres *p, const struct sl_postgres_step *step);
/* Its write: no row comes back when a test did not hold. */
struct sl_postgres_statement sl_postgres_write_of(struct sl_postgres *p, const struct sl_postgres_step *step);

/* In a group: statements that fail when a test does not hold (SL_POSTGRES_RAISES). Returns how many, at most
 * SL_POSTGRES_GROUPED. */
#define SL_POSTGRES_GROUPED 2
size_t sl_postgres_group_of(struct sl_postgres *p, const struct sl_postgres_step *step,
                            struct sl_postgres_statement *out);

/* ---- reading ---- */

void sl_postgres_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                      struct sl_table_page *pages, const struct sl_call *call);
void sl_postgres_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                          const struct sl_call *call);

/* Carries out reads, again where that may help, until the deadline. */
enum sl_status sl_postgres_ask(struct sl_postgres *p, struct sl_postgres_statement *statement,
                               const struct sl_postgres_table *table, struct sl_error *error) SL_MUST_USE;
/* Waits before another try; false when no time is left for one. */
bool sl_postgres_wait(struct sl_postgres *p, unsigned tries);
/* A call begins. */
void sl_postgres_begin(struct sl_postgres *p, const struct sl_call *call);

#endif
