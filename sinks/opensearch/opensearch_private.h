/* opensearch://host/index: what its files share.
 *
 * The index is a table: a document is an item, its id is made of the item's key. A write with a condition
 * reads the document, compares here, and writes only if nobody wrote in between (if_seq_no and
 * if_primary_term; a document that is not there is created). With order=script the server compares a guard
 * itself. Everything else that has a condition is read first in both. */
#ifndef SL_SINKS_OPENSEARCH_OPENSEARCH_PRIVATE_H
#define SL_SINKS_OPENSEARCH_OPENSEARCH_PRIVATE_H

#include "aws/job.h"
#include "sinks/table.h"
#include "sinks/target.h"

/* Fields of a document that are ours and no attributes of the item. A document's place in a scan: the first
 * half of the SHA-256 of its key, as 32 hexadecimal digits. */
#define SL_OPENSEARCH_HASH "sluice_hash"
/* What plain JSON does not say of the item: see opensearch_document.c. */
#define SL_OPENSEARCH_TYPES "sluice_types"

#define SL_OPENSEARCH_HASH_BYTES 33 /* with the NUL */

/* OpenSearch's limit on an id. */
#define SL_OPENSEARCH_ID_BYTES 512

/* One request: the guides ask for 5 to 15 MB a bulk, and the smallest instances of AWS take 10 MB. */
#define SL_OPENSEARCH_BULK_BYTES (5u * 1024 * 1024)
#define SL_OPENSEARCH_BULK_DOCS  1000
/* Documents of a multi get: whole ones, and a few fields of each. */
#define SL_OPENSEARCH_READS  32
#define SL_OPENSEARCH_GUARDS 500

/* An answer: what is not a document; an entry of a bulk's answer, with its error; and a document, of which an
 * escaped character takes six bytes. */
#define SL_OPENSEARCH_ANSWER_BYTES ((size_t)1024 * 1024)
#define SL_OPENSEARCH_ENTRY_BYTES  ((size_t)8 * 1024)
#define SL_OPENSEARCH_ITEM_BYTES   ((size_t)SL_ITEM_BYTES * 7)

struct sl_opensearch {
    struct sl_table_port port;
    struct sl_client client;
    struct sl_arena *arena;  /* as long as the port */
    struct sl_span name;     /* as the target has it: an index, or an alias of one */
    bool is_text;            /* numbers=text */
    bool is_scripted;        /* order=script */
    char *path;              /* "/name"; NULL until it was looked up */
    bool has_moved;          /* it is an alias, and led somewhere else in the last answer */
    struct sl_span concrete; /* the index that it stood for then */
    int64_t checked_ms;      /* when it was seen last */
    struct sl_buffer document, types, unescaped; /* where texts are made */
    struct sl_span key_names[2];                 /* learned from the first apply; absent: not known, or one */
    size_t item_bytes;                           /* of an item of the last pages, for the size of the next */
    bool expects_absent; /* most documents that were to be written lately were not there */
};

/* One operation of an apply. */
struct sl_opensearch_op {
    const struct sl_table_op *op;
    struct sl_result *result;
    struct sl_span key_text; /* equal for equal keys; in scratch, as all that follows */
    struct sl_span id;       /* as it is written in JSON, without the quotes */
    char hash[SL_OPENSEARCH_HASH_BYTES];
    struct sl_span document, action, script; /* what is written: the entry's lines */
    bool is_over;
    bool is_alone;    /* it was refused with others: it is sent in a request of its own */
    bool wants_all;   /* the whole item is to be read */
    bool is_unread;   /* it is not read before it is written: created, or compared by the script */
    bool was_unread;  /* and that did not succeed */
    bool is_scripted; /* unread: the script compares */
    bool is_turned;   /* the answer says that it is to be read, or read again */
    bool was_sent_read, was_sent_unread, was_created;
    bool is_read; /* what follows is known */
    bool is_there;
    struct sl_span seq_no, term; /* of the document: digits */
    struct sl_span item;         /* absent: there is none */
    unsigned conflicts;
    const char *doubt, *doubt_text; /* refused, and only contrast says whose fault it is */
};

struct sl_opensearch_apply {
    struct sl_opensearch *index;
    const struct sl_call *call;
    struct sl_arena *scratch;
    struct sl_opensearch_op *ops;
    size_t n;
    struct sl_opensearch_op **turn; /* of each key the operation that is next */
    size_t n_turn;
    size_t n_found, n_absent; /* documents that writes met */
};

/* ---- opensearch_target.c ---- */

enum sl_status sl_opensearch_read_target(struct sl_opensearch *index, struct sl_sinks *sinks,
                                         struct sl_span url, struct sl_error *error) SL_MUST_USE;

/* ---- opensearch_document.c, opensearch_item.c: items and documents ---- */

/* The item, which is JSON (sl_item_read), as a document in index->document. SL_REJECT when it cannot be one, or has
 * an attribute of our names. */
enum sl_status sl_opensearch_document(struct sl_opensearch *index, struct sl_span item, const char *hash,
                                      struct sl_error *error) SL_MUST_USE;

/* The document's source, an object that was checked, as an item in `arena`. */
struct sl_span sl_opensearch_item(struct sl_span source, struct sl_arena *arena);

/* ---- opensearch_key.c ---- */

/* The key's text (sl_table_key_text) as an id, as it is written in JSON. */
struct sl_span sl_opensearch_id(struct sl_opensearch *index, struct sl_span key_text, struct sl_arena *arena);

/* Remembers what the attributes of the items' keys are called. */
void sl_opensearch_learn_key(struct sl_opensearch *index, struct sl_span key);

/* Whether the item belongs into the document with this id, as it is written in JSON. So it does when the
 * names of the key's attributes are not known, or it has none of these. */
bool sl_opensearch_is_in_place(struct sl_opensearch *index, struct sl_span item, struct sl_span id);

/* A key's place in a scan. */
void sl_opensearch_hash(struct sl_opensearch *index, struct sl_span key_text,
                        char out[SL_OPENSEARCH_HASH_BYTES]);

/* ---- opensearch_refusal.c: whose fault an error is ---- */

enum sl_opensearch_fault {
    SL_OPENSEARCH_CONFLICT, /* somebody wrote the document meanwhile */
    SL_OPENSEARCH_BUSY,     /* again after a longer wait */
    SL_OPENSEARCH_PASSES,   /* again after a short one */
    SL_OPENSEARCH_RECORDS,  /* SL_REJECT */
    SL_OPENSEARCH_TARGETS,  /* SL_FATAL */
    SL_OPENSEARCH_DOUBT     /* contrast decides */
};

/* An error as the answer has it, or an entry of it; its code and text as they may be shown, in the call's
 * arena. */
struct sl_opensearch_refusal {
    enum sl_opensearch_fault fault;
    const char *code, *text;
};

/* `error`: {"type":..,"reason":..}; `status`: the entry's, or the answer's; 0 when it has none. */
struct sl_opensearch_refusal sl_opensearch_refuse(struct sl_job *job, struct sl_span error, int status);

/* For a kind's `refused`: an answer in OpenSearch's shape is judged as above. A job that holds several
 * documents never ends with a doubt. */
enum sl_job_next sl_opensearch_refused(struct sl_job *job, const struct sl_refusal *refusal);

/* ---- requests ---- */

/* A job of the index: POST to its path and `what` ("/_bulk"). */
struct sl_job sl_opensearch_job(struct sl_opensearch *index, const struct sl_job_kind *kind,
                                const char *operation, const char *what);

/* The name is another one's, an alias: so is what it stands for. */
static inline bool sl_opensearch_is_alias(const struct sl_opensearch *index)
{
    return !sl_span_eq(index->concrete, index->name);
}

/* An entry of an answer is about another index than the one that was looked up. An alias was
 * swapped meanwhile, or the answer is not to be believed. */
bool sl_opensearch_is_elsewhere(const struct sl_opensearch *index, struct sl_span entry);

/* Then: what becomes of the job. The name is looked up again before the next request. */
enum sl_job_next sl_opensearch_moved(struct sl_opensearch *index, struct sl_job *job);

/* The digits of a member that is a whole number without a sign; absent when it is anything else. */
struct sl_span sl_opensearch_digits(struct sl_span object, const char *name);

/* Finds the index when it is not known, or was not seen for a while: a write would else create one that is
 * gone. */
enum sl_status sl_opensearch_resolve(struct sl_opensearch *index, const struct sl_call *call,
                                     struct sl_result *result) SL_MUST_USE;

/* Reads the documents of the operations, `whole` or only what their tests name; then each is_read, or is_over
 * because it failed. */
void sl_opensearch_read(struct sl_opensearch_apply *apply, struct sl_opensearch_op **ops, size_t n,
                        bool whole);

/* Whether its tests can be judged by a few fields of the document. */
bool sl_opensearch_reads_some(const struct sl_table_op *op);

/* Writes what the operations say. Then each is_over, or is to be read again, or sent again alone. */
void sl_opensearch_write(struct sl_opensearch_apply *apply, struct sl_opensearch_op **ops, size_t n);

/* Whether the script can compare what the operation tests. */
bool sl_opensearch_is_guarded(const struct sl_table_op *op);

/* ---- opensearch_scan.c: see sinks/port.h ---- */

void sl_opensearch_scan(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                        struct sl_table_page *pages, const struct sl_call *call);
void sl_opensearch_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                            const struct sl_call *call);

#endif
