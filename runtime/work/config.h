/* What the environment of a function says that takes work items.
 *
 *   SLUICE_WORK_ITEMS         1: work items are taken, and stream events are refused. Absent or 0: the other
 *                             way round. A function with an event source must not have it
 *   SLUICE_WORK_SOURCE        where the items come from: s3://bucket/.../AWSDynamoDB/ID/ (or a folder) is a
 *                             full export, dynamodb://table?region= a table that is scanned
 *   SLUICE_WORK_PLACE         s3://bucket/prefix: plans and results are written below it
 *   SLUICE_WORK_KEYS          "PK,SK": the names of the source table's key attributes. An export does not say
 *                             them; a table does
 *   SLUICE_WORK_CONCURRENCY   workers at a time, at most 10,000; 40 by default
 *   SLUICE_WORK_WRITE_UNITS   write units a second of all workers together; 0, the default: no limit
 *   SLUICE_WORK_READ_UNITS    the same for the reads of a scan
 *   SLUICE_WORK_SEGMENTS      pieces of a scan; 256 by default */
#ifndef SL_RUNTIME_WORK_CONFIG_H
#define SL_RUNTIME_WORK_CONFIG_H

#include "base/arena.h"
#include "base/vars.h"

/* Concurrent children of a Distributed Map. */
#define SL_WORK_CONCURRENCY_MAX 10000

/* Pieces of one plan: each is an object of some 300 bytes in one file. */
#define SL_WORK_PIECES_MAX 100000

struct sl_work_config {
    struct sl_span source; /* as configured */
    bool is_scan;          /* of a table; else an export */
    struct sl_span place;
    struct sl_span bucket, prefix; /* of `place`: "" outside S3; the prefix ends in '/' unless it is empty */
    const char *keys;              /* NULL: not given */
    uint32_t concurrency, segments;
    double write_units, read_units; /* of all workers; 0: no limit */
};

/* Whether the environment asks for work items. On failure: SL_FATAL, the value is neither 0 nor 1. */
enum sl_status sl_work_is_on(const struct sl_vars *vars, bool *out, struct sl_error *error) SL_MUST_USE;

/* Texts are borrowed from `vars` or live in `arena`. On failure: SL_FATAL, and a line that names the
 * variable. */
enum sl_status sl_work_config_read(const struct sl_vars *vars, struct sl_arena *arena,
                                   struct sl_work_config *out, struct sl_error *error) SL_MUST_USE;

/* Whether an export's file, named below the export's folder ("data/x.json.gz"), lies within it. */
bool sl_work_has_file(const struct sl_work_config *config, struct sl_span file);

/* A worker's share of `all` units a second: what its item asks for, or an equal one when it asks for none or
 * for more than all have. 0: no limit. */
double sl_work_share(double asked, double all, uint32_t workers);

/* Whether names between slashes lead nowhere else, and mean one thing to every reader. */
bool sl_work_is_plain(struct sl_span path);

/* The key below `place` of an object that Step Functions names by its whole key; absent when it lies
 * elsewhere. */
struct sl_span sl_work_key_below(const struct sl_work_config *config, struct sl_span key);

#endif
