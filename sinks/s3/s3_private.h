/* s3://bucket/prefix: what its files share. An object is one request: PutObject, or GetObject with a range; a
 * listing is one page of ListObjectsV2; a removal is one DeleteObject. */
#ifndef SL_SINKS_S3_S3_PRIVATE_H
#define SL_SINKS_S3_S3_PRIVATE_H

#include "aws/job.h"
#include "sinks/rewrite.h"

/* A single PUT takes 5 GiB. */
#define SL_S3_OBJECT_BYTES ((size_t)5 * 1024 * 1024 * 1024)

struct sl_s3 {
    struct sl_object_port port;
    struct sl_client client;
    struct sl_arena *arena; /* as long as the port */
    struct sl_span bucket, prefix;
    bool by_path;                                     /* the bucket is in the path, not in the host's name */
    bool never_replace;                               /* If-None-Match for every object */
    const char *storage_class, *sse, *kms_key, *tags; /* NULL: not sent */
};

void sl_s3_put(struct sl_object_port *port, const struct sl_object *objects, size_t n,
               struct sl_result *results, const struct sl_call *call);
void sl_s3_read(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                struct sl_object_piece *pieces, const struct sl_call *call);
void sl_s3_list(struct sl_object_port *port, const struct sl_object_list *list, struct sl_object_page *page,
                const struct sl_call *call);
void sl_s3_remove(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                  struct sl_result *results, const struct sl_call *call);

/* sinks/rewrite.h */
void sl_s3_replace(struct sl_object_port *port, const struct sl_object_rewrite *rewrite,
                   struct sl_result *result, const struct sl_call *call);
void sl_s3_list_versions(struct sl_object_port *port, struct sl_span after_key, struct sl_span after_version,
                         struct sl_version_page *page, const struct sl_call *call);
void sl_s3_read_version(struct sl_object_port *port, const struct sl_object_version *version,
                        struct sl_object_piece *piece, const struct sl_call *call);
void sl_s3_remove_versions(struct sl_object_port *port, const struct sl_object_version *versions, size_t n,
                           struct sl_result *results, const struct sl_call *call);

/* ---- what requests have in common ---- */

/* Each request begins with it: the endpoint decides whether the bucket is in the path. */
void sl_s3_begin(struct sl_s3 *s3);

/* "/bucket/prefix/key", each byte encoded once. */
const char *sl_s3_path(const struct sl_s3 *s3, struct sl_span key, struct sl_arena *arena);
/* "/bucket", or "/" when the bucket is in the host's name. */
const char *sl_s3_bucket_path(const struct sl_s3 *s3, struct sl_arena *arena);

/* Whether S3 can have an object of this key below the prefix. If not, `result` says why. */
bool sl_s3_key_is_good(const struct sl_s3 *s3, struct sl_span key, struct sl_result *result,
                       struct sl_arena *arena);

/* What a header field may hold: printable ASCII and blanks between. NULL is fine. */
bool sl_s3_is_field(const char *text);

/* A refusal that says that the bucket is in another region: the client moves there, once a request (`moved`),
 * and the request is sent again. SL_JOB_JUDGE for any other refusal. */
enum sl_job_next sl_s3_follow(struct sl_job *job, const struct sl_refusal *refusal, bool *moved);

/* The CRC-32 as S3 writes it: base64 of its 4 bytes, big-endian, and a NUL. */
#define SL_S3_CRC_BYTES 9
void sl_s3_crc(struct sl_span body, char out[SL_S3_CRC_BYTES]);

/* Of listings: the key as it is, of the XML's text and of the URL encoding, whose blank is a '+'; a number
 * that fits; and a text below the target's prefix. */
struct sl_span sl_s3_key_of(struct sl_span text, bool is_encoded, struct sl_arena *arena);
bool sl_s3_read_number(struct sl_span text, uint64_t *out);
struct sl_span sl_s3_below(const struct sl_s3 *s3, struct sl_span text, struct sl_arena *arena);

/* "versionId=..." */
const char *sl_s3_version_query(struct sl_span version, struct sl_arena *arena);

/* An entity tag without its quotes. */
struct sl_span sl_s3_etag(struct sl_span quoted);

#endif
