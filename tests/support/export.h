/* Table exports for tests, in DynamoDB's layout: manifests, checksums, data files. */
#ifndef SL_TESTS_SUPPORT_EXPORT_H
#define SL_TESTS_SUPPORT_EXPORT_H

#include "base/span.h"

#define TEST_EXPORT_ARN "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"

struct test_export_file {
    const char *name; /* "a.json.gz": gzip if it ends so */
    struct sl_span lines;
};

/* What is NULL or 0 is as DynamoDB would have it. */
struct test_export {
    const struct test_export_file *files;
    size_t n;
    const char *table_arn, *format, *type, *time, *prefix; /* of keys in the manifest: "backups/2026/" */
    int more_items;                                        /* than there are, in the summary */
};

/* Writes folder/AWSDynamoDB/01795212250003-c22a2da7, whose path is returned; the caller frees it. */
char *test_export_write(const struct test_export *what, const char *folder);

/* Writes a manifest's text and its checksum beside it: `name` is "summary" or "files". */
void test_export_manifest(const char *path, const char *name, struct sl_span text);

/* `n` items, each of some `bytes` bytes, with the keys PK ("p-000001") and SK (its number, from `first` on),
 * as lines. The caller frees them. */
char *test_export_lines(size_t first, size_t n, size_t bytes);

#endif
