/* A work item's members, read by a table, one row a member, and written. What the table does not name is
 * refused by name, so that a misspelt member is noticed and not passed over. */
#ifndef SL_RUNTIME_WORK_FIELDS_H
#define SL_RUNTIME_WORK_FIELDS_H

#include "base/arena.h"
#include "base/buffer.h"

enum sl_work_field_type {
    SL_WORK_TEXT,   /* struct sl_span: unescaped, not empty */
    SL_WORK_COUNT,  /* uint64_t: a whole number from 0 to 2^53 */
    SL_WORK_NUMBER, /* double, from 0 */
    SL_WORK_BOOL,   /* bool */
    SL_WORK_OBJECT  /* struct sl_span: the object's JSON as it is */
};

struct sl_work_field {
    const char *name;
    enum sl_work_field_type type;
    bool is_required;
    void *out; /* left as it is when the member is absent or null */
};

/* Reads the checked JSON `text`, an object that `what` names in errors ("sluice.plan"). Texts point into it
 * or live in `arena`. On failure: SL_REJECT, code "BadWorkItem". */
enum sl_status sl_work_fields_read(struct sl_span text, const char *what, const struct sl_work_field *fields,
                                   size_t n, struct sl_arena *arena, struct sl_error *error) SL_MUST_USE;

/* Which of the three steps of an execution the text names. On failure: SL_REJECT, code "BadWorkItem". */
enum sl_status sl_work_step_read(struct sl_span text, const char *what, const char *const names[3], int *out,
                                 struct sl_error *error) SL_MUST_USE;

/* False: it is not a whole number from 0 to 2^53. */
bool sl_work_count_read(struct sl_span value, uint64_t *out);

/* Likewise written: nothing for an absent text, and for 0 units. */
void sl_work_add_text(struct sl_buffer *out, const char *name, struct sl_span text);
void sl_work_add_units(struct sl_buffer *out, const char *name, double units);

#endif
