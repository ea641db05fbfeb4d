/* Where stored texts are: a folder of this machine, or a bucket's prefix. Only read: a folder may be
 * read-only, and nothing is created in it. */
#ifndef SL_DATA_SOURCE_STORE_H
#define SL_DATA_SOURCE_STORE_H

#include "sinks/target.h"
#include "data/source/reader.h"

struct sl_store;

/* `place`: a folder, file:folder, or s3://bucket/prefix?options as a target has them; a '/' at the end of the
 * path is fine. A folder that is not there: SL_REJECT. */
enum sl_status sl_store_open(struct sl_sinks *sinks, const char *place, struct sl_store **out,
                             struct sl_error *error) SL_MUST_USE;
void sl_store_close(struct sl_store *store); /* NULL is fine */

/* As given, without the '/' at the end: for messages. */
const char *sl_store_name(const struct sl_store *store);

/* SL_REJECT, code "NoArchive": the place `name` has no object of an archive. */
enum sl_status sl_store_has_no_archive(const char *name, struct sl_error *error);

/* Whether the key stays below the place: segments separated by '/', none empty, "." or "..", no NUL. */
bool sl_store_is_key(struct sl_span key);

/* What we ourselves keep beside what is stored: an index (data/recall/item_index.h). It has no part in what
 * an archive or an export is. */
#define SL_STORE_OWN "_sluice/"
bool sl_store_is_ours(struct sl_span key);

/* The text at a key, read in several ranges at a time; one that is replaced meanwhile is refused. A
 * missing key is found by the reader's first `next`: SL_REJECT, code "NoSuchKey". */
enum sl_status sl_store_read(struct sl_store *store, struct sl_span key, struct sl_reader **out,
                             struct sl_error *error) SL_MUST_USE;

/* The port, for listing and for reading many small objects at once; borrowed. */
struct sl_object_port *sl_store_port(struct sl_store *store);

/* A small text, whole, in call->arena, up to `most` bytes. */
enum sl_status sl_store_read_all(struct sl_store *store, struct sl_span key, size_t most,
                                 const struct sl_call *call, struct sl_span *out,
                                 struct sl_error *error) SL_MUST_USE;

#define SL_STORE_ABSENT UINT64_MAX

struct sl_store_entry {
    struct sl_span key;
    uint64_t bytes; /* as stored; SL_STORE_ABSENT: there is none */
};

/* Finds the sizes of the entries, which are in the bytewise order of their keys and all begin with
 * `prefix`. */
enum sl_status sl_store_measure(struct sl_store *store, struct sl_span prefix, struct sl_store_entry *entries,
                                size_t n, const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

#endif
