/* A table on this machine, the stream of its changes, and what routes make of it: for `sluice verify` and
 * `sluice repair`.
 *
 * The table "orders" is in ${DIR}/src.db, and its key is PK, a text. Each change of it is delivered through
 * the routes at once (tests/support/stage.h); the verbs run on the same configuration
 * (tests/support/verbs.h). */
#ifndef SL_TESTS_SUPPORT_TABLES_H
#define SL_TESTS_SUPPORT_TABLES_H

#include "tests/support/stage.h"
#include "tests/support/verbs.h"

struct tables {
    struct stage *s;
    struct verbs *v;
    unsigned n_changes;
};

/* `routes`: the list's members, with ' for ". */
struct tables *tables_new(const char *routes);
void tables_destroy(struct tables *t);

/* The item, with these further attributes: "'cost':{'N':'1'}" or "". */
void tables_put(struct tables *t, const char *id, const char *attributes);
void tables_remove(struct tables *t, const char *id);
/* The same, and the routes do not hear of it. */
void tables_put_unseen(struct tables *t, const char *id, const char *attributes);

/* As another program would: runs SQL on a file of ${DIR}. Returns the number of rows that it changed. */
int tables_sql(struct tables *t, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What it selects, a line for a row; until the test ends. */
const char *tables_rows(struct tables *t, const char *file, const char *sql);

/* Runs "verify --routes a": with the configuration, the table and "--max-lag 0", which flags that follow
 * override. Fails the test unless it ends so and says so (verb_assert). */
void tables_verb(struct tables *t, int status, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same without a claim: the exit status. */
int tables_run(struct tables *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
