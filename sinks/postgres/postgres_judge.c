/* Whose fault an error of PostgreSQL's is, by its SQLSTATE ("PostgreSQL Error Codes"). Its detail, and the
 * message of a data error, hold what rows hold: they are not shown. */
#include "sinks/postgres/postgres_private.h"

#include "base/array.h"

/* A row per class or code; the first that matches. */
static const struct {
    const char *begins;
    enum sl_postgres_fault fault;
    bool may_hold_values; /* its message does */
    const char *advice;
} codes[] = {
    {"22012", SL_POSTGRES_RAISES, true, ""},
    {"40", SL_POSTGRES_REPEATS, false, ""},
    {"55P03", SL_POSTGRES_REPEATS, false, "; somebody holds a lock on it"},
    {"57", SL_POSTGRES_PASSES, false, ""},
    {"08", SL_POSTGRES_PASSES, false, ""},
    {"53300", SL_POSTGRES_PASSES, false, "; docs/POSTGRES.md, \"Many connections\""},
    {"53", SL_POSTGRES_PASSES, false, ""},
    {"58", SL_POSTGRES_PASSES, false, ""},
    {"XX", SL_POSTGRES_PASSES, false, ""},
    {"25006", SL_POSTGRES_MOVED, false, "; the address is a reader's, or the database has moved"},
    {"22", SL_POSTGRES_REFUSES, true, ""},
    {"23", SL_POSTGRES_REFUSES, false, ""},
    {"54", SL_POSTGRES_REFUSES, true, ""},
    {"P0", SL_POSTGRES_REFUSES, true, "; a trigger refuses it"},
    {"42501", SL_POSTGRES_STANDS, false, "; grant it to the user of the target"},
    {"42", SL_POSTGRES_STANDS, false, "; compare the table with what sluice check --tables prints"},
    {"28", SL_POSTGRES_STANDS, false, ""},
    {"3D", SL_POSTGRES_STANDS, false, ""},
    {"0A", SL_POSTGRES_PASSES, true, ""},
};

static const char *field(const PGresult *result, int which)
{
    const char *text = PQresultErrorField(result, which);
    return text ? text : "";
}

enum sl_postgres_fault sl_postgres_judge(const struct sl_postgres *p, const PGresult *result,
                                         const struct sl_postgres_table *table, struct sl_error *error)
{
    const char *state = field(result, PG_DIAG_SQLSTATE);
    size_t i = 0;
    while (i < SL_COUNT(codes) && strncmp(state, codes[i].begins, strlen(codes[i].begins)) != 0)
        i++;
    bool is_known = i < SL_COUNT(codes);
    enum sl_postgres_fault fault = is_known ? codes[i].fault : SL_POSTGRES_PASSES;
    static const enum sl_status statuses[] = {SL_RETRY, SL_RETRY, SL_REJECT, SL_REJECT, SL_FATAL, SL_FATAL};
    struct sl_span target = table ? table->name : sl_span_str(p->target.own);
    /* What is hidden is told by what of the table it is about. */
    bool is_hidden = !is_known || codes[i].may_hold_values;
    const char *constraint = is_hidden ? field(result, PG_DIAG_CONSTRAINT_NAME) : "",
               *column = is_hidden && !*constraint ? field(result, PG_DIAG_COLUMN_NAME) : "";
    (void)sl_fail(error, statuses[fault], *state ? sl_arena_printf(p->scratch, "Sql%s", state) : "SqlError",
                  "%s: table %.*s: %s%s%s%s%s%s", p->target.shown, SL_ARG(target),
                  is_hidden ? "PostgreSQL refuses it with this code" : field(result, PG_DIAG_MESSAGE_PRIMARY),
                  *constraint ? ", constraint " : "", constraint, *column ? ", column " : "", column,
                  is_known ? codes[i].advice : "");
    return fault;
}
