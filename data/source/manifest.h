/* The manifests of a table export, as DynamoDB writes them: manifest-summary.json, and manifest-files.json
 * with one line for each data file. Source: "DynamoDB table export output format" in AWS's developer guide.
 * What they say is checked, but nothing is read: texts in, facts out. */
#ifndef SL_DATA_SOURCE_MANIFEST_H
#define SL_DATA_SOURCE_MANIFEST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

#define SL_MANIFEST_MD5_BYTES 16

struct sl_manifest_summary {
    struct sl_span table_arn, id; /* id: the name of the export's folder below AWSDynamoDB/ */
    int64_t time_ms;              /* exportTime: the table is as it was then */
    uint64_t items;
};

/* Everything lives in `arena`. SL_REJECT, with a text that names no file: it is no summary ("NoSummary"), or
 * the summary of something that cannot be read: of an incremental export, or one in ION ("NotReadable"). */
enum sl_status sl_manifest_read_summary(struct sl_span text, struct sl_arena *arena,
                                        struct sl_manifest_summary *out, struct sl_error *error) SL_MUST_USE;

struct sl_manifest_file {
    struct sl_span key; /* below the export's folder: "data/x.json.gz"; stays below it */
    unsigned char md5[SL_MANIFEST_MD5_BYTES];
    uint64_t items;
};

/* One line of manifest-files.json of the export `id`. The key lives in `arena`. */
enum sl_status sl_manifest_read_file(struct sl_span line, struct sl_span id, struct sl_arena *arena,
                                     struct sl_manifest_file *out, struct sl_error *error) SL_MUST_USE;

/* An MD5 as checksum files and manifests write it: base64, or hexadecimal, with whitespace around it. */
bool sl_manifest_read_md5(struct sl_span text, unsigned char out[SL_MANIFEST_MD5_BYTES]) SL_MUST_USE;

/* Whether the ARN is of this table: its name, its ARN, or the ARN of one of its streams. */
bool sl_manifest_is_of(struct sl_span table_arn, struct sl_span table);

#endif
