/* Inside the verification: what its files share. */
#ifndef SL_DATA_VERIFY_VERIFY_PRIVATE_H
#define SL_DATA_VERIFY_VERIFY_PRIVATE_H

#include "handlers/pipeline/route.h"
#include "data/source/segment.h"
#include "data/verify/compare.h"
#include "data/verify/look.h"
#include "data/verify/verify.h"

/* Suspects that one round looks at. */
#define LOOK_ITEMS 100

/* A page of fewer items is not worth a request. */
#define LEAST_ITEMS 500

/* Items without a row that could be compared: so many lines for each route. */
#define NOT_COMPARABLE_LINES 100

struct suspect {
    uint32_t route;
    bool is_forward;
    struct sl_looks looks;
    uint64_t hash;  /* of the key */
    char *key;      /* JSON; malloc */
    char *row;      /* likewise: the key of the one row that is looked at; NULL: all rows of the item */
    uint32_t table; /* where that row is: its place among the tables that are scanned */
};

/* A table that is scanned: the source, or one of a route's. */
struct scanned {
    struct sl_table_port *port;
    struct sl_span table;
    uint32_t route; /* backward; NO_ROUTE: the source */
};

#define NO_ROUTE UINT32_MAX

/* A segment that is being read. */
struct segment {
    bool is_open;
    struct sl_segment at;
};

struct verified {
    struct sl_verify_route report; /* first */
    struct sl_route *route;
    bool is_pair; /* items of the source carry guards: the target is followed, too */
    uint64_t lines_left;
};

struct sl_verify {
    struct sl_verify_options o;
    struct sl_clock *clock;
    struct sl_arena *lasting, *arena; /* `arena`: of one step */
    struct verified *routes;
    size_t n_routes;
    struct scanned *tables; /* the source first */
    size_t n_tables, table; /* the one that is scanned; n_tables: all are done */
    struct segment active[SL_VERIFY_PAGES];
    uint32_t begun, ended; /* segments of this table */
    struct suspect *suspects;
    size_t n_suspects, room_suspects;
    uint64_t items, rows;
    struct sl_buffer line;
};

/* ---- verify_read.c: calls of ports and handlers ---- */

int64_t sl_verify_wall_ms(const struct sl_verify *v);
struct sl_call sl_verify_call(const struct sl_verify *v, int64_t deadline_ms);

/* What is expected of the records, by one route. */
enum sl_status sl_verify_expect(struct sl_verify *v, struct verified *r,
                                const struct sl_record *const *records, size_t n, struct sl_expect *out,
                                struct sl_error *error) SL_MUST_USE;

/* Reads keys of one table; results are in the step's arena. A key that the service refuses is SL_REJECT in
 * its result; everything else that fails is this function's status. */
enum sl_status sl_verify_read(struct sl_verify *v, struct sl_table_port *port, enum sl_table_verb verb,
                              const struct sl_table_op *ops, size_t n, int64_t deadline_ms,
                              const struct sl_result **out, struct sl_error *error) SL_MUST_USE;

/* Reads the rows (results by row), and, with `sides`, their side rows. */
enum sl_status sl_verify_read_rows(struct sl_verify *v, const struct sl_expected *rows, size_t n,
                                   enum sl_table_verb verb, bool sides, int64_t deadline_ms,
                                   const struct sl_result **out, struct sl_error *error) SL_MUST_USE;

/* Is one of the TTL attributes in the item, and its time come? */
bool sl_verify_is_past(const struct sl_verify *v, struct sl_span item);

/* ---- verify_pages.c ---- */

/* Reads the next pages of the table that is scanned, and adds suspects. */
enum sl_status sl_verify_pages(struct sl_verify *v, int64_t deadline_ms, struct sl_error *error) SL_MUST_USE;

/* ---- verify_suspects.c ---- */

/* How many items a page may have, so that all of them may become suspects; 0: the suspects come first. */
size_t sl_verify_room(const struct sl_verify *v);
void sl_verify_suspect(struct sl_verify *v, size_t route, struct sl_span key, bool is_forward);
/* The one row of the item. */
void sl_verify_suspect_row(struct sl_verify *v, size_t route, struct sl_span key, struct sl_span row,
                           size_t table);
void sl_verify_forget(struct sl_verify *v, size_t suspect);

/* Has the row this key? */
bool sl_verify_is_row(const struct sl_expected *row, struct sl_span key);

/* Looks at suspects that are due. `*n`: how many; 0: none is due. */
enum sl_status sl_verify_look(struct sl_verify *v, int64_t deadline_ms, size_t *n,
                              struct sl_error *error) SL_MUST_USE;

/* Writes the finding, and counts it. */
void sl_verify_report(struct sl_verify *v, struct verified *r, struct sl_finding *f);

/* ---- verify_place.c ---- */

enum sl_status sl_verify_place_read(struct sl_verify *v, struct sl_span place,
                                    struct sl_error *error) SL_MUST_USE;

#endif
