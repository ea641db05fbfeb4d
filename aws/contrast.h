/* Contrast: what succeeded lately, and so whose fault a refusal is that nobody knows.
 *
 * An unknown code may be about the record or about the environment. It counts as the record's only beside a
 * success: another request of the same operation, target and table that succeeded in this apply, however many
 * were refused; or in an earlier apply of this process, at most SL_CONTRAST_MS ago. An earlier success
 * vouches for SL_CONTRAST_REFUSALS refusals and no more: an environment that breaks would else give up every
 * record of a minute. Without contrast the refusal is the environment's. */
#ifndef SL_AWS_CONTRAST_H
#define SL_AWS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_CONTRAST_MS       60000
#define SL_CONTRAST_REFUSALS 3
#define SL_CONTRAST_ROWS     32 /* of one target: DynamoDB's 6 operations on a few tables */

/* The last success of an operation in a place. */
struct sl_contrast_row {
    const char *operation; /* static */
    uint64_t place;
    uint64_t apply; /* in which it succeeded */
    int64_t at_ms;
    size_t left; /* refusals that it still vouches for in later applies */
};

/* Of one target. Zeroed at first. */
struct sl_contrast {
    struct sl_contrast_row rows[SL_CONTRAST_ROWS];
    size_t n;
    uint64_t apply; /* the present one */
};

/* An apply begins. */
void sl_contrast_begin(struct sl_contrast *contrast);

/* A request of the operation, or an entry of one, was carried out. `place` says what of the target it was
 * about: a success on one table says nothing of another. 0 for a target that is one thing. Beyond
 * SL_CONTRAST_ROWS the oldest success is forgotten. */
void sl_contrast_succeeded(struct sl_contrast *contrast, const char *operation, uint64_t place,
                           int64_t now_ms);

/* Whether the `n` refusals of this operation there, which no code explains, are the records' faults. */
bool sl_contrast_vouches(struct sl_contrast *contrast, const char *operation, uint64_t place, size_t n,
                         int64_t now_ms);

#endif
