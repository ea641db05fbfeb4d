/* What should be there: a handler tells what the end state of an item is, so that `sluice verify` can compare
 * it with what is there.
 *
 * Public: part of handler.h, since 1.3. A plugin never includes it alone. C11 and C++11.
 *
 * A handler that offers this writes rows of tables, and after an item's last change its rows are a function
 * of the item alone, whatever was before. It uses the same code for expect() as for handle(). expect() writes
 * nothing; who calls it reads the rows. */
#ifndef SL_HANDLERS_EXPECT_H
#define SL_HANDLERS_EXPECT_H

#include "handlers/host_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row of the end state. All that it points to lives in the call's arena, or as long as the handler. */
struct sl_expected {
    size_t record; /* the item that it belongs to: its place among the call's records */

    /* SL_REJECT: the item cannot be compared, and `code` and `why` (one line) say the reason. The other
     * members do not count then. */
    enum sl_status status;
    const char *code, *why;

    struct sl_table_port *port;
    struct sl_span table; /* as in struct sl_table_op: absent means the port's own */
    struct sl_span key;   /* absent: nobody can say what should be there of this item, and it is left out */
    struct sl_span item;  /* what the row should hold; absent: there should be no row */

    /* Which of its top-level attributes count: `counts`, or, if there are none, all but `own`. */
    const struct sl_span *counts, *own;
    size_t n_counts, n_own;

    bool may_be_absent;     /* no row is as good as this one */
    struct sl_span guard;   /* absent, or an attribute that a good row has in any case */
    struct sl_span absence; /* absent, or an attribute by which a row says that it stands for no item */

    /* Another row of the same port that judge() has to see, for example a guard's; absent key: none. It is
     * read only where the row itself is not certainly right: what it holds or lacks does not make a suspect.
     */
    struct sl_span side_table, side_key;
};

/* The rows of many items. */
struct sl_expect {
    struct sl_abi abi;
    const struct sl_record *const *records; /* INSERT with NewImage: the item as it is, in order 0. REMOVE
                                               with Keys alone: the source has no such item */
    size_t n;                               /* 0: only the tables are asked for */
    struct sl_arena *arena;

    /* Set by the handler, in `arena`. With n = 0: a row without a key for each table that holds rows of it.
     */
    struct sl_expected *rows;
    size_t n_rows;
};

/* What is the matter with a row. */
enum sl_verdict {
    SL_VERDICT_EQUAL = 0,
    SL_VERDICT_MISSING,   /* the item is not there */
    SL_VERDICT_STALE,     /* it is as the handler once wrote it, and the source has changed since */
    SL_VERDICT_DIFFERENT, /* it is not as the handler wrote it, or nobody can know */
    SL_VERDICT_LEFT_OVER, /* the source has no such item */
    SL_VERDICT_REVIVED,   /* the same, and the handler knows that the item was deleted */
    SL_VERDICT_UNGUARDED, /* it holds what it should, and nothing keeps older changes from it */
    SL_VERDICT_COLLISION, /* it is another item of the source, which has the same key there */
    SL_VERDICT_NOT_JUDGED /* nobody can tell from the row whether it is right */
};

/* One row that was read. */
struct sl_judge {
    struct sl_abi abi;
    const struct sl_record *record;
    const struct sl_expected *expected;
    struct sl_span row, side;    /* their JSON; absent: there is none */
    const struct sl_span *names; /* the attributes that count and differ, of both; for a row that is not there
                                    none */
    size_t n_names;
    struct sl_arena *arena;

    /* Set by the handler. */
    enum sl_verdict verdict;
    struct sl_span guard;     /* the order that the row, or its side row, has now; absent: none */
    int64_t written_ms;       /* when the change was made that the row holds, since 1970; 0: not known */
    bool is_owned;            /* the row shows that this handler wrote it */
    struct sl_span other_key; /* SL_VERDICT_COLLISION: the key of the other item, JSON */
};

/* From a row back to its item. */
struct sl_trace {
    struct sl_abi abi;
    struct sl_span row;
    const struct sl_span *key_names; /* of the source's key attributes */
    size_t n_key_names;
    struct sl_arena *arena;

    /* Set by the handler. */
    struct sl_span key; /* of the item that the row was made of, JSON; absent: the row stands for no item */

    /* ---- since 1.6 ---- */

    /* Set by the handler where an item can have several rows: the row's own key. Then a row that its item
     * does not expect is left over, also where the item is there. */
    struct sl_span row_key;
};

enum sl_repair_effect {
    SL_REPAIR_NOTHING = 0, /* the row is right */
    SL_REPAIR_WRITTEN,
    SL_REPAIR_REMOVED /* for readers: a tombstone may stay */
};

/* What `sluice repair` asks for. Each record of the slice is an item as the source has it now, an INSERT
 * without a sequence number; or, if the source does not have the item, a REMOVE with Keys alone. No item is
 * in a slice twice. */
struct sl_repair {
    struct sl_abi abi;
    const struct sl_span *seen;  /* per record: the row as it was just read, an item's JSON; absent: there was
                                    none */
    const struct sl_span *sides; /* likewise its side row, see struct sl_expected. A side row that is read
                                    later may be of a change that `seen` does not show */
    const struct sl_span *wanted; /* NULL: the rows become what the items say. Else, per record, a row that
                                     was there before a repair and is put back; absent: there was none */
    bool may_remove;              /* else a record whose row would have to go is SL_REJECT, code
                                     "WouldRemove" */
    bool is_plan;                 /* nothing is written, and what follows says what would be */

    /* Set by the handler, per record. */
    enum sl_repair_effect *effects;
    struct sl_span *written; /* the row as it is afterwards; absent: there is none, or it is as it was */

    /* ---- since 1.6 ---- */

    const struct sl_span *keys; /* per record: the key of the row that was looked at */

    /* Set by the handler, per record: the side row as it is afterwards; absent: it is as it was. Other rows of
     * the item, which were seen with the same side row, are repaired with this one. */
    struct sl_span *sides_written;
};

#ifdef __cplusplus
}
#endif

#endif
