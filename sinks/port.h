/* The three ports to the outside world: object store, table, queue. One vtable each, one folder or file per
 * sink. Everything leaves through them; objects and tables can be read through them too.
 *
 * Public: installed beside handler.h. C11 and C++11.
 *
 * The contract of all three. `apply` takes operations in bulk and sets a result for each, so that the
 * requests of one slice are in flight together and a partial success is visible. An operation whose result is
 * SL_OK is durable. The results are all that `apply` returns. It does not begin what cannot end before
 * `deadline_ms` (the host clock's steady time), and within that retries as its service's rules say.
 * Operations, results and all that they point to belong to the caller, who changes nothing of them until it
 * returns. One thread uses a port.
 *
 * The functions that read (`read`, `list`, `scan`, `describe`) keep the same contract. What they find is in
 * the call's arena. A port that cannot do one of them has NULL there. A result of SL_OK means that the answer
 * was whole, well formed and about what was asked. */
#ifndef SL_SINKS_PORT_H
#define SL_SINKS_PORT_H

#include "base/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of one operation. `code` and `text` are in the call's arena (or static); NULL when SL_OK. */
struct sl_result {
    enum sl_status status;
    bool condition_failed; /* table: the condition did not hold; status is SL_REJECT, nothing was written */
    bool not_sent;         /* nothing of it reached the service: it was certainly not applied */
    const char *code;      /* the service's error code: "ProvisionedThroughputExceededException" */
    const char *text;      /* one line: what failed, on what, what to do */
    struct sl_span item; /* table: GET: the item's JSON, absent when there is none. Condition failed: the item
                            as it is, absent when there is none. In the call's arena */
};

/* ---- object store ---- */

struct sl_object {
    struct sl_span
        key; /* below the target's prefix; UTF-8, segments separated by '/', none empty, "." or ".." */
    struct sl_span body;
    const char *content_type;     /* NULL: application/octet-stream */
    const char *content_encoding; /* NULL, or "gzip" */
    bool content_named; /* the key is made from the body's records: the same key means the same content, so
                           an object that exists is success and need not be written again */
};

/* One ranged read. */
struct sl_object_read {
    struct sl_span key; /* below the target's prefix, as in struct sl_object */
    uint64_t from;
    size_t max_bytes;    /* at least 1 */
    struct sl_span etag; /* absent: any object; else the object must still be the one that was begun: another
                            is SL_REJECT, code "PreconditionFailed" */
};

struct sl_object_piece {
    struct sl_result result; /* an absent object: SL_REJECT, code "NoSuchKey" */
    struct sl_span bytes;  /* shorter than max_bytes only at the object's end; empty when `from` is at or past
                              the end */
    uint64_t object_bytes; /* of the whole object */
    struct sl_span etag;   /* without quotes; "" where it is not known (S3: a read at or past the end) */
};

/* The objects whose keys begin with `prefix`, in the bytewise order of their keys. */
struct sl_object_list {
    struct sl_span prefix; /* below the target's own prefix; UTF-8 text, so it may end within a name */
    struct sl_span after;  /* absent: from the first; else only keys that are greater */
    size_t limit;          /* entries wanted; 0, and more than a page holds (1,000): what a page holds */
};

struct sl_object_entry {
    struct sl_span key; /* below the target's prefix, as `read` takes it */
    uint64_t bytes;
    struct sl_span etag; /* without quotes */
    int64_t modified_s;  /* when it came, by the store's clock, since the epoch; 0: not known */
};

struct sl_object_page {
    struct sl_result result;
    struct sl_object_entry *entries; /* may be none although the page is not the last */
    size_t n;
    struct sl_span next; /* `after` of the next page; absent: this is the last one */
};

/* An object that is to be removed. One that is not there any more is success. */
struct sl_object_removal {
    struct sl_span key;  /* below the target's prefix */
    struct sl_span etag; /* absent: whatever is there; else another object is left alone: SL_REJECT, code
                            "PreconditionFailed" */
};

struct sl_object_port {
    uint32_t size; /* of this struct: fields are only appended */
    size_t max_body_bytes;
    void (*apply)(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                  struct sl_result *results, const struct sl_call *call);
    void (*close)(struct sl_object_port *port);

    /* ---- since 1.3 ---- */

    /* The `n` reads are in flight together. */
    void (*read)(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                 struct sl_object_piece *pieces, const struct sl_call *call);
    void (*list)(struct sl_object_port *port, const struct sl_object_list *list, struct sl_object_page *page,
                 const struct sl_call *call);

    /* ---- since 1.4 ---- */

    /* The `n` removals are in flight together. In a bucket with versions the object gets a delete marker. */
    void (*remove)(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                   struct sl_result *results, const struct sl_call *call);
};

/* ---- table ---- */

enum sl_table_verb {
    SL_TABLE_GET, /* consistent read */
    SL_TABLE_PUT,
    SL_TABLE_DELETE, /* of an absent item: success */
    SL_TABLE_UPDATE, /* `sets` on the item, which is created when absent */
    SL_TABLE_CHECK,  /* only the condition; in a group */
    SL_TABLE_PEEK    /* since 1.3: a GET that may miss the last second's writes, for half the price */
};

enum sl_set_verb {
    SL_SET,     /* the attribute becomes the value */
    SL_ADD,     /* the number is added, exactly, in 38 digits; an absent one counts as 0 */
    SL_UNSET,   /* the attribute is removed */
    SL_SET_MAX, /* the number becomes the greater of the two; an absent one becomes the value. Not in a
                   group */
    SL_SET_MIN
};

struct sl_set {
    enum sl_set_verb verb;
    struct sl_span name;  /* top-level attribute, unescaped */
    struct sl_span value; /* attribute value JSON: {"N":"1"} */
};

/* One test on the item as it is before the operation. Comparisons with an absent attribute are false. LT, LE,
 * GT compare values of one type: S bytewise, N by value. */
enum sl_test_verb { SL_ABSENT, SL_PRESENT, SL_EQ, SL_NE, SL_LT, SL_LE, SL_GT };

struct sl_test {
    enum sl_test_verb verb;
    struct sl_span name;
    struct sl_span value; /* attribute value JSON */
};

#define SL_TABLE_GROUP_MAX 100 /* operations of one group: TransactWriteItems' limit */

struct sl_table_op {
    enum sl_table_verb verb;
    uint32_t group;       /* operations with the same number, not 0, are carried out all or none */
    struct sl_span table; /* absent: the target's own; else another table of the same place (a side table) */
    struct sl_span key;   /* {"PK":{"S":"a"},"SK":{"N":"1"}}: only the primary key's attributes */
    struct sl_span item;  /* PUT: the whole item's JSON, key attributes included */
    const struct sl_set *sets;
    size_t n_sets;
    const struct sl_test *tests; /* none: unconditional */
    size_t n_tests;
    bool any_test;  /* one test that holds is enough; else all must hold */
    bool want_item; /* on a failed condition: the item as it is, in the result */
};

#define SL_TABLE_SEGMENTS_MAX 1000000 /* Scan's TotalSegments */

/* One page of a segment of a table. A table in `of` segments has each of its items in exactly one of them;
 * which one depends on the item's key alone. */
struct sl_table_scan {
    struct sl_span table;        /* absent: the target's own */
    uint32_t segment, of;        /* `of` 0 or 1: the whole table */
    struct sl_span after;        /* a key's JSON, as `next` was; absent: the beginning */
    bool is_consistent;          /* sees every write that succeeded before it; twice the price */
    size_t limit;                /* items of the page at most; 0: what 1 MB holds */
    const struct sl_span *names; /* top-level attributes wanted; an item without any of them is {} */
    size_t n_names;              /* none: all attributes */
};

struct sl_table_page {
    struct sl_result result;
    struct sl_span *items; /* each an item's JSON; may be none although the segment goes on */
    size_t n;
    struct sl_span next; /* a key's JSON to go on after; absent: the segment is at its end */
    double units;        /* read capacity that it consumed; 0: not said */
};

struct sl_table_key {
    struct sl_span name;
    char type; /* 'S', 'N' or 'B' */
};

/* What is known of a table. */
struct sl_table_facts {
    struct sl_result result;
    struct sl_span arn;             /* absent: it has none */
    struct sl_table_key keys[2];    /* partition key, sort key. SQLite: in the order of their names */
    size_t n_keys;                  /* 0: not known (SQLite: no item was ever there) */
    uint64_t items, bytes;          /* DynamoDB: six hours old at most; OpenSearch: bytes 10 s. SQLite: now */
    bool is_on_demand;              /* billing */
    double read_units, write_units; /* provisioned, each second; 0 on demand */
    struct sl_span stream_arn;      /* the latest stream's; absent: it has none */
};

struct sl_table_units {
    double read, write; /* capacity units as the service bills them */
};

/* What a table can do beyond GET, PEEK, PUT and DELETE, unconditional or on these tests alone: an attribute
 * is absent or compares with a text, and any of the tests is enough. A handler that needs more refuses the
 * table when it is opened. */
enum sl_table_can {
    SL_TABLE_GROUPS = 1,  /* operations with a `group` */
    SL_TABLE_UPDATES = 2, /* SL_TABLE_UPDATE, with every verb of struct sl_set */
    SL_TABLE_TESTS = 4,   /* all tests, on values of all types, in any number */
    SL_TABLE_ALL = 7
};

struct sl_table_port {
    uint32_t size;
    size_t max_item_bytes; /* 400 KB in DynamoDB, by its own formula */
    /* Two unconditional writes of one key in one call happen in their order. No other order is promised. In a
     * group that was refused, the operations that were not the cause have status SL_REJECT and code
     * "TransactionCanceled". */
    void (*apply)(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                  struct sl_result *results, const struct sl_call *call);
    void (*close)(struct sl_table_port *port);

    /* ---- since 1.3 ---- */

    /* The `n` pages are in flight together. */
    void (*scan)(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                 struct sl_table_page *pages, const struct sl_call *call);
    /* `table` absent: the target's own. */
    void (*describe)(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                     const struct sl_call *call);
    /* Borrowed, mostly NULL. Whoever holds to a budget sets it: `apply` then asks the service what it
     * consumed, and all functions add it here. */
    struct sl_table_units *units;

    /* ---- since 1.4 ---- */

    uint32_t can; /* enum sl_table_can, joined */
};

/* ---- queue ---- */

struct sl_message_attribute {
    struct sl_span name, value; /* text */
};

struct sl_message {
    struct sl_span body;    /* UTF-8 */
    struct sl_span order;   /* messages with the same text keep their order where the destination can; at most
                               one of them is in flight */
    struct sl_span dedupe;  /* the same text is the same message, where the destination knows that */
    struct sl_span subject; /* SNS; EventBridge: detail-type */
    const struct sl_message_attribute *attributes;
    size_t n_attributes;
};

struct sl_queue_port {
    uint32_t size;
    size_t max_message_bytes;
    void (*apply)(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                  struct sl_result *results, const struct sl_call *call);
    void (*close)(struct sl_queue_port *port);
};

#ifdef __cplusplus
}
#endif

#endif
