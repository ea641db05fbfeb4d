/* What the kinds of work items share. */
#ifndef SL_RUNTIME_WORK_ITEM_H
#define SL_RUNTIME_WORK_ITEM_H

#include "runtime/work/config.h"
#include "runtime/work/work.h"

#define SL_WORK_BAD_ITEM "BadWorkItem"

/* What a plan is given, in errors. */
#define SL_WORK_INPUT "the execution's input"

/* What a turn hands to the next one: a state's payload holds 256 KB, a child's history 1,000 of these. */
#define SL_WORK_NEXT_BYTES ((size_t)8 * 1024)

struct sl_work {
    struct sl_work_options options;
    struct sl_work_config config;
    struct sl_arena *arena;       /* as long as the work */
    struct sl_object_port *place; /* config.place, opened when it is first used */
};

/* One item on its way: `what` is the checked JSON of its only member's value. */
struct sl_work_item {
    struct sl_work *work;
    struct sl_span what;
    const struct sl_invocation *invocation;
    struct sl_call call; /* the invocation's arena, and a deadline that leaves time to answer */
    struct sl_answer *answer;
};

/* When a turn has to end: a tenth of it is kept to write what was found, and the place. */
int64_t sl_work_until_ms(const struct sl_work_item *item);

/* Waits so long, or until a turn has to end. False: it has to. */
bool sl_work_wait(const struct sl_work_item *item, int64_t ms, int64_t until_ms);

/* Opens the place; SL_FATAL when it is not an object store. */
enum sl_status sl_work_place(struct sl_work *work, struct sl_object_port **out,
                             struct sl_error *error) SL_MUST_USE;

/* Writes an object below the place. */
enum sl_status sl_work_put(struct sl_work *work, struct sl_span key, struct sl_span body,
                           const struct sl_call *call, struct sl_error *error) SL_MUST_USE;

enum sl_status sl_work_plan(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_backfill(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_verify(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_verify_totals(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_verify_archives(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_ask(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;
enum sl_status sl_work_sum(struct sl_work_item *item, struct sl_error *error) SL_MUST_USE;

#endif
