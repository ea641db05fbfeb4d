/* A piece of a plan: one file of an export, or one segment of a table. What the plan writes, what a turn
 * reads, and what it hands to the next turn is this one object:
 *
 *   {"piece":7,"file":"data/x.json.gz","md5":"...","items":123,...}
 *   {"piece":7,"segment":7,"of":256,...}
 *
 * with "time" (T) and "since" (when the stream's consumer began), both in ms since 1970, "any_order", "arn",
 * "routes", "write_units" and "read_units" (this worker's share), and from the second turn on "state", the
 * backfill's own (data/backfill/backfill.h): the place to go on from and the counts until there. */
#ifndef SL_RUNTIME_WORK_PIECE_H
#define SL_RUNTIME_WORK_PIECE_H

#include "base/buffer.h"
#include "runtime/work/config.h"
#include "data/source/source.h"

struct sl_work_piece {
    uint64_t piece;
    struct sl_span file, md5; /* of an export; else absent */
    uint64_t items;
    uint64_t segment, of; /* of a scan */
    uint64_t time_ms;     /* T; 0: as the source says */
    uint64_t since_ms;    /* 0: not known */
    bool any_order;
    struct sl_span arn;             /* of the source's table; absent: not known */
    struct sl_span routes;          /* names with commas; absent: all that can take part */
    double write_units, read_units; /* 0: no limit */
    struct sl_span state;           /* absent: from the beginning */
};

/* Reads the checked JSON and holds it to the configuration: the file lies within the export, the segment is
 * one of its number. On failure: SL_REJECT, code "BadWorkItem" or "OutsideSource". */
enum sl_status sl_work_piece_read(struct sl_span text, const struct sl_work_config *config,
                                  struct sl_arena *arena, struct sl_work_piece *out,
                                  struct sl_error *error) SL_MUST_USE;

void sl_work_piece_write(const struct sl_work_piece *piece, struct sl_buffer *out);

/* The source that the configuration names: the piece's part of it, or with `piece` NULL the whole of an
 * export, or a table's first segment. `options` with its sinks; the rest is filled in. */
enum sl_status sl_work_piece_open(const struct sl_work_config *config, const struct sl_work_piece *piece,
                                  struct sl_source_options *options, const struct sl_call *call,
                                  struct sl_source **out, struct sl_error *error) SL_MUST_USE;

#endif
