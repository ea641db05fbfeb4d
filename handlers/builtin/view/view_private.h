/* Inside the view handler: what its files share. docs/VIEWS.md says what it promises. */
#ifndef SL_HANDLERS_BUILTIN_VIEW_VIEW_PRIVATE_H
#define SL_HANDLERS_BUILTIN_VIEW_VIEW_PRIVATE_H

#include "handlers/builtin.h"
#include "handlers/builtin/toolkit/expired.h"
#include "handlers/builtin/toolkit/loop.h"
#include "handlers/builtin/toolkit/order.h"
#include "handlers/builtin/toolkit/outcome.h"
#include "handlers/builtin/toolkit/reshape.h"

/* An attribute of the rows' key. */
struct view_key {
    struct sl_span name;
    struct sl_render_template value;
};

struct view {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_table_port *table;
    struct sl_loop loop;
    struct sl_span name;         /* of the view: its rows and lists say it */
    struct sl_span each;         /* path of what is walked; absent: an item is one row at most */
    const struct sl_when *where; /* NULL: all items, all elements */
    struct view_key keys[SL_TEXT_KEY_ATTRIBUTES];
    size_t n_keys;
    struct sl_reshape shape;
    bool is_made; /* rows hold what the templates of "item" make, and nothing else of the item */
    bool skips_missing;
    struct sl_span *reads; /* the attributes of an item that rows are made of */
    size_t n_reads, room_reads;
    bool reads_more;           /* others, too: nobody can list them */
    bool is_guarded;           /* there are no lists: a row says the order of the change that it is of */
    struct sl_span list_table; /* absent: the lists are beside the rows */
    struct sl_span list_keys[SL_TEXT_KEY_ATTRIBUTES];
    size_t n_list_keys;
    struct sl_span expires_attribute;
    int64_t epoch, tombstone_s;
    int64_t records_epoch; /* of the records that are handled: the route's, but for late ones */
    enum sl_expired expired;
};

/* Attributes of our own. Every row says whose it is: {"view": NAME, "key": {...}}, the source's key. */
#define VIEW_OF           "sluice_of"
#define VIEW_ORDER        "sluice_order" /* of a list, or of a row without one */
#define VIEW_LIST_ROWS    "sluice_rows"
#define VIEW_LIST_REPAIRS "sluice_repairs"
#define VIEW_DELETED      "sluice_deleted" /* a row without a list is a tombstone */

/* ---- view_config.c ---- */

extern const struct sl_option view_options[];
enum sl_status view_open(const struct sl_host *host, struct sl_route *route, void **self,
                         struct sl_error *error) SL_MUST_USE;

/* ---- view_rows.c: the rows of an item ---- */

#define VIEW_DIGEST_BYTES 16

struct view_row {
    struct sl_span key;                      /* JSON; equal keys are equal texts */
    struct sl_span item;                     /* JSON; absent where only a list knows the row */
    unsigned char digest[VIEW_DIGEST_BYTES]; /* of what the item says */
    uint32_t at;                             /* which element it was made of */
};

/* In the order of their keys, each key once. */
struct view_rows {
    struct view_row *list;
    size_t n;
};

/* The rows of one image of the record; none where it has no such image. SL_REJECT: the image does not make
 * them, and `error` says which element and template. SL_FATAL: no item of this source can. */
enum sl_status view_rows_make(const struct view *v, const struct sl_record *r, enum sl_image image,
                              struct sl_arena *arena, struct view_rows *out,
                              struct sl_error *error) SL_MUST_USE;

/* Is it a name by which templates see an element? */
bool view_is_of_element(struct sl_span name);

/* How many elements a list, set or map has. */
size_t view_elements(const struct view *v, struct sl_value value);

/* Into the order of their keys. */
void view_rows_sort(struct view_rows *rows);

bool view_rows_are_equal(const struct view_rows *a, const struct view_rows *b);

/* The row of this key; NULL: there is none. */
const struct view_row *view_rows_find(const struct view_rows *rows, struct sl_span key);

/* The value of VIEW_OF on the rows of the record's item. */
struct sl_span view_of(const struct view *v, const struct sl_record *r, struct sl_arena *arena);

/* Does the row say that it is of this view, and of the record's item? */
bool view_is_of_item(const struct view *v, struct sl_value row, const struct sl_record *r);

/* The source's key that the row says; SL_NONE: the row is not this view's. */
struct sl_value view_owner(const struct view *v, struct sl_value row);

/* The key of a row that was read, as texts are compared; absent: it has not all of the attributes `names`. */
struct sl_span view_key_of_row(const struct view *v, struct sl_value row, const struct sl_span *names,
                               size_t n, struct sl_arena *arena);

/* ---- view_change.c: what a change does to the rows of its item ---- */

struct view_change {
    bool alters;               /* them; if not, nothing else counts */
    struct sl_span digits;     /* sl_order_digits */
    struct view_rows new, old; /* `old` is empty, too, where nobody knows what was there */
};

/* SL_REJECT: the new image makes no rows, or something is missing. SL_FATAL: as in all records of the stream.
 */
enum sl_status view_change_make(const struct view *v, const struct sl_record *r, struct sl_arena *arena,
                                struct view_change *out, struct sl_error *error) SL_MUST_USE;

/* ---- view_list.c: the row that says which rows an item has ---- */

/* It is as it was written with the newest change that altered the item's rows. */
struct view_list {
    bool exists;
    struct sl_span order;
    int64_t repairs;       /* since that change: with the order it says which state of the list this is */
    struct view_rows rows; /* of which `item` is absent */
};

struct sl_span view_list_key(const struct view *v, const struct sl_record *r, struct sl_arena *arena);

/* The value of VIEW_LIST_ROWS. */
struct sl_span view_list_rows_value(const struct view *v, const struct view_rows *rows,
                                    struct sl_arena *arena);

/* The whole row, with its end where there are no rows. */
struct view_list_text {
    struct sl_span key, of, order; /* `of` and `order` are attribute values */
    int64_t repairs;
    const struct view_rows *rows;
};
struct sl_span view_list_item(const struct view *v, const struct view_list_text *t, struct sl_arena *arena);

/* Of the row as it was read; absent: there is none. SL_FATAL, code "ListRow": somebody else wrote it. */
enum sl_status view_list_read(const struct view *v, struct sl_span item, struct sl_arena *arena,
                              struct view_list *out, struct sl_error *error) SL_MUST_USE;

/* ---- view_plan.c: from a list to the rows of an image, in one transaction ---- */

/* Rows that one change may put and delete: a transaction has 100 operations (TransactWriteItems), and one is
 * the list's; another one is kept in reserve. */
#define VIEW_ROWS_MAX 98

struct view_plan {
    /* What is asked for. */
    const struct view_list *list;
    const struct view_rows *rows;
    struct sl_span of, list_key;
    struct sl_order order;   /* the list's from now on */
    int64_t repairs;         /* likewise */
    struct sl_span touched;  /* absent, or the key of a row that is written whatever the list says */
    struct sl_span *foreign; /* keys of listed rows that are somebody else's now: they are let go */
    size_t n_foreign;

    /* What is to be done: the list's operation first. */
    struct sl_table_op *ops;
    size_t n_ops, n_puts, n_deletes;
};

/* SL_REJECT: it does not fit one transaction, or the list one row. */
enum sl_status view_plan_make(const struct view *v, struct view_plan *plan, struct sl_arena *arena,
                              struct sl_error *error) SL_MUST_USE;

/* ---- view_write.c ---- */

enum sl_status view_handle(void *self, struct sl_slice *slice, struct sl_error *error) SL_MUST_USE;

/* SL_REJECT, code "Collision": the row under a key of ours is not ours. */
enum sl_status view_collision(const struct view *v, struct sl_error *error) SL_MUST_USE;

/* What others write again and again is tried so often; then the change is delivered again. */
#define VIEW_WAVES 12

/* SL_RETRY: rows moved between so many requests. */
enum sl_status view_keeps_changing(const struct view *v, struct sl_error *error) SL_MUST_USE;

/* ---- view_guard.c: rows without lists ---- */

/* What the writer takes to be under the row's key. */
enum view_there {
    VIEW_NOTHING,
    VIEW_OLDER,         /* a row or tombstone of the item, of an older change */
    VIEW_WITHOUT_ORDER, /* a row of the item, written with a list */
    VIEW_AS_SEEN        /* a row or tombstone of the item, with this very order */
};

struct view_guarded {
    struct sl_span key, of;
    struct sl_span item; /* absent: a tombstone */
    struct sl_order order;
    enum view_there there;
};

struct sl_table_op view_guard_op(const struct view *v, const struct view_guarded *row,
                                 struct sl_arena *arena);

/* The order that a row says; absent: none that this view wrote. */
struct sl_span view_guard_order(const struct view *v, struct sl_value row);

enum sl_status view_guard_handle(struct view *v, struct sl_slice *slice, struct sl_error *error) SL_MUST_USE;

/* ---- view_audit.c: struct sl_handler's ---- */

enum sl_status view_expect(void *self, struct sl_expect *e, struct sl_error *error) SL_MUST_USE;
enum sl_status view_judge(void *self, struct sl_judge *j, struct sl_error *error) SL_MUST_USE;
enum sl_status view_trace(void *self, struct sl_trace *t, struct sl_error *error) SL_MUST_USE;
enum sl_status view_repair(void *self, struct sl_slice *slice, struct sl_repair *ask,
                           struct sl_error *error) SL_MUST_USE;

#endif
