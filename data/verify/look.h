/* The rule by which a suspect becomes a difference, or does not.
 *
 * A look reads the source's item, the row (with its side row), and the source's item once more, all with
 * consistent reads. A suspect is a difference when two looks saw exactly the same, source and row with its
 * guard, and the consumer had handled every change made before the end of the first look when the second one
 * began.
 *
 * Why it holds. Say the source did not change from the end of the first look to the second look's read of the
 * row. Then the last change of the item is older than the end of the first look, the consumer has handled it,
 * and the row is its effect: what differs is wrong. Say the source did change and came back to the same item
 * in between. Then whatever the consumer wrote of these changes moved the row's guard, which the second look
 * would have seen; and if it wrote nothing of them yet, the row was the effect of the item as both looks saw
 * it. So a row that is right, or on its way, is never a difference. */
#ifndef SL_DATA_VERIFY_LOOK_H
#define SL_DATA_VERIFY_LOOK_H

#include "base/types.h"

/* After so many looks a suspect that never stood still is unsettled. */
#define SL_LOOKS_MAX 5

/* Waits between two looks: the first, then twice the last. */
#define SL_LOOKS_WAIT_MS 1000

/* What one look saw. */
struct sl_look {
    bool is_right;              /* the row is what it should be, or nobody can judge it */
    bool is_still;              /* the source's item was the same before and after the row was read */
    unsigned char seen[32];     /* digest of the source's item, the row and the side row */
    int64_t began_ms, ended_ms; /* wall time */
    int64_t through_ms; /* when it began, the consumer had handled every change made before; 0: not known */
};

/* What is remembered between the looks. Zeroed: there was none yet. */
struct sl_looks {
    unsigned n;
    bool has_first;
    unsigned char seen[32]; /* of the look that the next one is compared with */
    int64_t first_ms;       /* when that one ended */
    int64_t next_ms;        /* not before: wall time */
    int64_t since_ms;       /* when the first look of all ended: since then it waits for the consumer */
};

enum sl_looks_result {
    SL_LOOKS_AGAIN,
    SL_LOOKS_RIGHT,
    SL_LOOKS_DIFFERENT,
    SL_LOOKS_PENDING,  /* it stands still, and nobody knows whether the consumer is past it */
    SL_LOOKS_UNSETTLED /* it never stood still */
};

enum sl_looks_result sl_looks_take(struct sl_looks *looks, const struct sl_look *look);

/* Is it time for the next look? `through_ms` as in struct sl_look, now. Where it is known, a suspect that
 * waits for the consumer alone is not looked at before that, so that no look is wasted. */
bool sl_looks_is_due(const struct sl_looks *looks, int64_t now_ms, int64_t through_ms);

#endif
