/* Chooses what is sent when: messages of one order one after the other, others side by side, each request
 * with its attempts, until every message has its result. */
#include "sinks/queues/webhook_private.h"

#include "sinks/queues/content.h"
#include "sinks/result.h"

#include <stdlib.h>

#define LINE_ARENA_BYTES 2048
#define NONE             SIZE_MAX
#define OPERATION        "POST" /* for contrast: a webhook has one */

enum step { PENDING, TAKEN, DOUBTED, DONE };

struct run {
    struct sl_webhook *webhook;
    const struct sl_message *messages;
    size_t n;
    struct sl_result *results;
    const struct sl_call *call;
    struct sl_arena *scratch;
    struct sl_span *members;
    enum step *steps;
    const struct sl_webhook_slot **slots; /* of what is TAKEN */
    bool *alone;                          /* was part of an array that was refused */
    size_t *before, *after;               /* of the same order; NONE */
    size_t low;                           /* no message before it is PENDING */
    size_t doubted, active, flying, bytes;
    const struct sl_result *stop; /* what the messages not begun get too */
};

static int64_t now_ms(const struct run *run)
{
    return sl_aws_now_ms(run->webhook->aws);
}

/* ---- orders ---- */

/* Orders indices by the messages' order, then by their place. */
static int compare_orders(const void *x, const void *y, void *arg)
{
    const struct run *run = arg;
    size_t i = *(const size_t *)x, k = *(const size_t *)y;
    struct sl_span s = run->messages[i].order, t = run->messages[k].order;
    int order = memcmp(s.ptr ? s.ptr : "", t.ptr ? t.ptr : "", s.len < t.len ? s.len : t.len);
    if (order == 0 && s.len != t.len)
        order = s.len < t.len ? -1 : 1;
    return order ? order : (i > k) - (i < k);
}

static void find_orders(struct run *run)
{
    size_t *sorted = sl_arena_alloc(run->scratch, run->n * sizeof(size_t));
    run->before = sl_arena_alloc(run->scratch, run->n * sizeof(size_t));
    run->after = sl_arena_alloc(run->scratch, run->n * sizeof(size_t));
    for (size_t i = 0; i < run->n; i++) {
        sorted[i] = i;
        run->before[i] = run->after[i] = NONE;
    }
    qsort_r(sorted, run->n, sizeof(size_t), compare_orders, run);
    for (size_t i = 1; i < run->n; i++) {
        size_t first = sorted[i - 1], second = sorted[i];
        if (!run->messages[second].order.ptr ||
            !sl_span_eq(run->messages[first].order, run->messages[second].order))
            continue;
        run->before[second] = first;
        run->after[first] = second;
    }
}

/* ---- ends ---- */

/* When a message cannot go now, those of its order after it do not go either. */
static void finish(struct run *run, size_t i, struct sl_result result)
{
    for (; i != NONE; i = run->after[i]) {
        run->results[i] = result;
        run->steps[i] = DONE;
        if (result.status == SL_OK || result.status == SL_REJECT)
            return;
        result.not_sent = true;
    }
}

static struct sl_result result_of(const struct sl_webhook_verdict *verdict, bool was_sent)
{
    return (struct sl_result){
        .status = verdict->status, .not_sent = !was_sent, .code = verdict->code, .text = verdict->text};
}

static void finish_slot(struct run *run, struct sl_webhook_slot *slot, struct sl_result result)
{
    for (size_t i = 0; i < slot->n; i++)
        finish(run, slot->entries[i], result);
}

/* Nothing more is begun. */
static void stop_with(struct run *run, const struct sl_webhook_slot *slot)
{
    if (!run->stop)
        run->stop = &run->results[slot->entries[0]];
}

static void free_slot(struct run *run, struct sl_webhook_slot *slot)
{
    slot->state = SL_WEBHOOK_FREE;
    sl_http_exchange_forget(&slot->exchange);
    run->active--;
    run->bytes -= slot->part.len;
}

/* ---- choosing ---- */

static bool is_ready(const struct run *run, const struct sl_webhook_slot *slot, size_t i)
{
    size_t before = run->before[i];
    return run->steps[i] == PENDING && (before == NONE || run->steps[before] == DONE ||
                                        (run->steps[before] == TAKEN && run->slots[before] == slot));
}

/* Picks the next request's messages into the slot. False when none is ready. */
static bool choose(struct run *run, struct sl_webhook_slot *slot)
{
    const struct sl_webhook *webhook = run->webhook;
    size_t bytes = 1; /* of '[' */
    slot->n = 0;
    while (run->low < run->n && run->steps[run->low] != PENDING)
        run->low++;
    for (size_t i = run->low; i < run->n && slot->n < webhook->batch; i++) {
        if (!is_ready(run, slot, i) || (slot->n && run->alone[i]))
            continue;
        bytes += run->members[i].len + 1;
        if (slot->n && bytes > webhook->max_bytes)
            break;
        slot->entries[slot->n++] = i;
        run->steps[i] = TAKEN;
        run->slots[i] = slot;
        if (run->alone[i])
            break;
    }
    return slot->n > 0;
}

static void make_ready(struct run *run, struct sl_webhook_slot *slot)
{
    if (!slot->arena) {
        slot->arena = sl_arena_new(LINE_ARENA_BYTES);
        sl_http_exchange_init(&slot->exchange);
        sl_buffer_init(&slot->text, 1);
    }
    slot->entries = sl_arena_alloc(
        run->scratch, (run->n < run->webhook->batch ? run->n : run->webhook->batch) * sizeof(size_t));
}

static struct sl_webhook_slot *find_slot(struct run *run)
{
    for (size_t i = 0; i < run->webhook->in_flight; i++)
        if (run->webhook->slots[i].state == SL_WEBHOOK_FREE)
            return &run->webhook->slots[i];
    return NULL;
}

static void fill_slots(struct run *run)
{
    struct sl_webhook_slot *slot;
    sl_pace_look(&run->webhook->pace, run->active, now_ms(run));
    while (!run->stop && sl_pace_has_room(&run->webhook->pace, run->active, run->bytes, 0) &&
           (slot = find_slot(run))) {
        if (!slot->entries)
            make_ready(run, slot);
        if (!choose(run, slot))
            return;
        sl_webhook_write(run->webhook, slot, run->messages, run->members);
        slot->state = SL_WEBHOOK_WAITING;
        slot->attempts = 0;
        slot->last_cost = 0;
        slot->was_sent = false;
        slot->due_ms = now_ms(run);
        run->active++;
        run->bytes += slot->part.len;
    }
}

/* ---- attempts ---- */

static int64_t due_of(const struct run *run, const struct sl_webhook_slot *slot)
{
    int64_t paused = run->webhook->paused_until_ms;
    return slot->due_ms > paused ? slot->due_ms : paused;
}

/* Nothing of it was begun in time. */
static void give_up(struct run *run, struct sl_webhook_slot *slot)
{
    struct sl_result result = {.status = SL_RETRY, .not_sent = !slot->was_sent};
    bool is_paused = run->webhook->paused_until_ms > slot->due_ms;
    result.code = is_paused ? "RetryAfter" : "DeadlineExceeded";
    result.text = sl_arena_printf(run->call->arena, "%s: POST: %s", run->webhook->name,
                                  is_paused ? "the receiver asked for a pause that goes beyond the deadline"
                                            : "no time was left to begin it");
    finish_slot(run, slot, result);
    stop_with(run, slot);
    free_slot(run, slot);
}

static void launch(struct run *run, struct sl_webhook_slot *slot)
{
    struct sl_webhook *webhook = run->webhook;
    int64_t left = run->call->deadline_ms - now_ms(run);
    sl_webhook_sign(webhook, slot);
    slot->exchange.timeout_ms = left < webhook->timeout_ms ? left : webhook->timeout_ms;
    slot->state = SL_WEBHOOK_FLYING;
    slot->number = sl_pace_begin(&webhook->pace, now_ms(run));
    run->flying++;
    sl_http_start(sl_aws_http(webhook->aws), &slot->exchange);
}

/* Slots that were filled before the limit was halved wait their turn: those that were refused together come
 * back together. */
static bool may_fly(const struct run *run)
{
    return run->flying == 0 || run->flying < run->webhook->pace.limit;
}

static void launch_due(struct run *run)
{
    for (size_t i = 0; i < run->webhook->in_flight; i++) {
        struct sl_webhook_slot *slot = &run->webhook->slots[i];
        if (slot->state != SL_WEBHOOK_WAITING)
            continue;
        if (now_ms(run) >= run->call->deadline_ms || due_of(run, slot) >= run->call->deadline_ms)
            give_up(run, slot);
        else if (due_of(run, slot) <= now_ms(run) && may_fly(run))
            launch(run, slot);
    }
}

static bool plan_retry(struct run *run, struct sl_webhook_slot *slot, enum sl_webhook_next next)
{
    struct sl_webhook *webhook = run->webhook;
    struct sl_clock *clock = webhook->aws->clock;
    enum sl_retry_kind kind = next == SL_WEBHOOK_THROTTLED ? SL_RETRY_THROTTLE : SL_RETRY_TRANSIENT;
    if (++slot->attempts >= webhook->attempts || !sl_retry_take(&webhook->bucket, kind, &slot->last_cost))
        return false;
    slot->due_ms =
        now_ms(run) + sl_retry_wait_ms(clock, kind, SL_WEBHOOK_BASE_MS, slot->attempts - 1, sl_span(NULL, 0));
    return due_of(run, slot) < run->call->deadline_ms;
}

static void try_again(struct run *run, struct sl_webhook_slot *slot, const struct sl_webhook_verdict *verdict)
{
    int64_t until = now_ms(run) + verdict->after_ms;
    if (verdict->after_ms && until > run->webhook->paused_until_ms)
        run->webhook->paused_until_ms = until;
    if (verdict->next == SL_WEBHOOK_THROTTLED || slot->exchange.outcome == SL_HTTP_NOT_SENT)
        sl_pace_throttled(&run->webhook->pace, slot->number);
    if (plan_retry(run, slot, verdict->next)) {
        slot->state = SL_WEBHOOK_WAITING;
        sl_http_exchange_forget(&slot->exchange);
        return;
    }
    finish_slot(run, slot, result_of(verdict, slot->was_sent));
    if (verdict->is_everybodys)
        stop_with(run, slot);
    free_slot(run, slot);
}

/* ---- verdicts ---- */

static void take(struct run *run, struct sl_webhook_slot *slot)
{
    struct sl_webhook *webhook = run->webhook;
    sl_retry_success(&webhook->bucket, slot->last_cost);
    sl_pace_took(&webhook->pace, slot->exchange.body.len, run->active >= webhook->pace.limit);
    sl_contrast_succeeded(&webhook->contrast, OPERATION, 0, now_ms(run));
    finish_slot(run, slot, (struct sl_result){.status = SL_OK});
    free_slot(run, slot);
}

/* When an array is refused, which message was bad is unknown: each is sent alone then. */
static void take_apart(struct run *run, struct sl_webhook_slot *slot)
{
    for (size_t i = 0; i < slot->n; i++) {
        size_t entry = slot->entries[i];
        run->steps[entry] = PENDING;
        run->alone[entry] = true;
        run->low = entry < run->low ? entry : run->low;
    }
    free_slot(run, slot);
}

/* What contrast decides waits for the end; so do the messages of its order. */
static void doubt(struct run *run, struct sl_webhook_slot *slot, const struct sl_webhook_verdict *verdict)
{
    run->results[slot->entries[0]] = result_of(verdict, true);
    run->steps[slot->entries[0]] = DOUBTED;
    run->doubted++;
    free_slot(run, slot);
}

static void refuse(struct run *run, struct sl_webhook_slot *slot, const struct sl_webhook_verdict *verdict)
{
    finish_slot(run, slot, result_of(verdict, slot->was_sent));
    if (verdict->status == SL_FATAL)
        stop_with(run, slot);
    free_slot(run, slot);
}

static void settle(struct run *run, struct sl_webhook_slot *slot)
{
    enum sl_http_outcome outcome = slot->exchange.outcome;
    run->flying--;
    slot->was_sent = slot->was_sent || outcome == SL_HTTP_ANSWERED || outcome == SL_HTTP_BROKEN;
    struct sl_webhook_verdict verdict = sl_webhook_judge(run->webhook, slot, run->call->arena);
    bool is_record = verdict.next == SL_WEBHOOK_DOUBTED || verdict.status == SL_REJECT;
    if (is_record && slot->n > 1)
        take_apart(run, slot);
    else if (verdict.next == SL_WEBHOOK_TAKEN)
        take(run, slot);
    else if (verdict.next == SL_WEBHOOK_DOUBTED)
        doubt(run, slot, &verdict);
    else if (verdict.next == SL_WEBHOOK_REFUSED)
        refuse(run, slot, &verdict);
    else
        try_again(run, slot, &verdict);
}

/* Nothing is under way any more: what is refused and in doubt is the messages' fault beside a success, else
 * the environment's. */
static void judge_doubted(struct run *run)
{
    struct sl_webhook *webhook = run->webhook;
    bool vouched = sl_contrast_vouches(&webhook->contrast, OPERATION, 0, run->doubted, now_ms(run));
    run->doubted = 0;
    for (size_t i = 0; i < run->n; i++) {
        struct sl_result result = run->results[i];
        if (run->steps[i] != DOUBTED)
            continue;
        result.status = vouched ? SL_REJECT : SL_FATAL;
        if (!vouched)
            result.text = sl_arena_printf(
                run->call->arena,
                "%s; nothing else was taken lately, so it is not counted as the record's fault; if it is, "
                "write #reject=%s into the target",
                result.text, result.code);
        finish(run, i, result);
        if (!vouched && !run->stop)
            run->stop = &run->results[i];
    }
}

/* ---- the loop ---- */

static int64_t next_due_ms(const struct run *run)
{
    int64_t due = run->call->deadline_ms;
    for (size_t i = 0; i < run->webhook->in_flight; i++) {
        const struct sl_webhook_slot *slot = &run->webhook->slots[i];
        if (slot->state == SL_WEBHOOK_WAITING && due_of(run, slot) < due)
            due = due_of(run, slot);
    }
    return due;
}

static void wait(struct run *run)
{
    struct sl_aws *aws = run->webhook->aws;
    int64_t left = next_due_ms(run) - now_ms(run);
    if (!run->flying) {
        aws->clock->sleep_ms(aws->clock, left > 0 ? left : 0);
        return;
    }
    int64_t most = run->webhook->pace.is_alone ? SL_PACE_ALONE_MS : 1000;
    sl_http_wait(sl_aws_http(aws), left < most && left >= 0 ? left : most);
    for (size_t i = 0; i < run->webhook->in_flight; i++) {
        struct sl_webhook_slot *slot = &run->webhook->slots[i];
        if (slot->state == SL_WEBHOOK_FLYING && slot->exchange.outcome != SL_HTTP_RUNNING)
            settle(run, slot);
    }
}

/* False when every message has its result. */
static bool step(struct run *run)
{
    fill_slots(run);
    launch_due(run);
    if (run->active)
        wait(run);
    else if (run->doubted)
        judge_doubted(run);
    else
        return !run->stop && run->low < run->n;
    return true;
}

static void end_pending(struct run *run)
{
    for (size_t i = 0; run->stop && i < run->n; i++)
        if (run->steps[i] == PENDING) {
            run->results[i] = *run->stop;
            run->results[i].not_sent = true;
            run->steps[i] = DONE;
        }
}

static void check_message(struct run *run, size_t i)
{
    const struct sl_webhook *webhook = run->webhook;
    const char *problem = sl_content_problem(SL_CONTENT_UTF8, run->messages[i].body);
    size_t bytes = run->members[i].len + (webhook->batch > 1 ? 2 : 0);
    struct sl_result *result = &run->results[i];
    if (problem)
        sl_result_fail(result, run->call->arena, SL_REJECT, "InvalidMessageContents",
                       "%s: the message's body %s", webhook->name, problem);
    else if (bytes > webhook->max_bytes)
        sl_result_fail(result, run->call->arena, SL_REJECT, "MessageTooLong",
                       "%s: the message has %zu bytes; max_bytes is %zu", webhook->name, bytes,
                       webhook->max_bytes);
    else
        return;
    result->not_sent = true;
    run->steps[i] = DONE;
}

void sl_webhook_run(struct sl_webhook *webhook, const struct sl_message *messages, size_t n,
                    struct sl_result *results, const struct sl_call *call)
{
    struct sl_arena *scratch = webhook->aws->scratch;
    struct run run = {.webhook = webhook,
                      .messages = messages,
                      .n = n,
                      .results = results,
                      .call = call,
                      .scratch = scratch};
    run.members = sl_arena_alloc(scratch, n * sizeof(*run.members));
    run.steps = sl_arena_zalloc(scratch, n * sizeof(*run.steps));
    run.slots = sl_arena_zalloc(scratch, n * sizeof(*run.slots));
    run.alone = sl_arena_zalloc(scratch, n * sizeof(*run.alone));
    find_orders(&run);
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        run.members[i] = sl_webhook_member(webhook, &messages[i]);
        check_message(&run, i);
    }
    while (step(&run)) {
    }
    end_pending(&run);
    for (size_t i = 0; i < webhook->in_flight; i++)
        webhook->slots[i].entries = NULL; /* it was the scratch's */
}
