/* What a repair keeps of its writes: an audit line for each, without values; and, where asked for, the rows
 * of before, so that it can be taken back. */
#ifndef SL_DATA_REPAIR_AUDIT_H
#define SL_DATA_REPAIR_AUDIT_H

#include "base/buffer.h"
#include "base/error.h"
#include "data/repair/repair.h"
#include "data/verify/finding.h"

/* {"time":...,"route":...,"key_sha256":...,"kind":"missing","outcome":"written","before_sha256":...,
 * "after_sha256":...}, with "code" and "why" where nothing was written. Digests are of values: equal values
 * have equal digests. `with_key`: the key itself in the digest's place, as for standard output. */
void sl_audit_line(const struct sl_finding *finding, const struct sl_repair_outcome *outcome, int64_t now_ms,
                   bool with_key, struct sl_buffer *out);

/* The same for a total: "kind":"sum" (or "values" or "members", which no repair sets right), with "target",
 * "attribute" and "added". */
struct sl_audit_sum {
    struct sl_span kind, target, key, attribute, difference, mark; /* of a line of sluice verify, unescaped */
};

/* Reads such a line; false: it tells of no difference. */
bool sl_audit_sum_read(struct sl_span line, struct sl_arena *arena, struct sl_audit_sum *out);

void sl_audit_sum_line(const struct sl_audit_sum *sum, struct sl_span added,
                       const struct sl_repair_outcome *outcome, int64_t now_ms, bool with_key,
                       struct sl_buffer *out);

/* {"route":...,"target":...,"source_key":{...},"before":{...},"after":{...}}; a row that is not there is left
 * out. */
void sl_audit_saved(const struct sl_finding *finding, struct sl_span after, struct sl_buffer *out);

/* A line of the second kind: views of `line`, and texts in `arena`. SL_REJECT: it is something else. */
struct sl_audit_undo {
    struct sl_span route, target, source_key, before, after;
};

enum sl_status sl_audit_read(struct sl_span line, struct sl_arena *arena, struct sl_audit_undo *out,
                             struct sl_error *error) SL_MUST_USE;

#endif
