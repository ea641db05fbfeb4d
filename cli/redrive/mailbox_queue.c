/* Mail of an SQS queue. */
#include "cli/redrive/hold.h"
#include "cli/redrive/mailbox.h"
#include "cli/redrive/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS    60000
#define MOST_REQUESTS 8 /* receives in flight together, as long as they come back full */
#define EMPTY_POLLS   2 /* so many in a row: there is nothing more */
#define FAILED_POLLS  3 /* so many in a row, each tried several times: the queue cannot be reached */
#define PAUSE_MS      1000
/* A queue gives so many messages at a time ("Amazon SQS message quotas": in flight). */
#define SEEN_MAX 120000

struct queue {
    struct sl_mailbox box;
    const struct sl_mailbox_options *options;
    struct sl_inbox *inbox;
    struct sl_hold *hold;
    struct sl_inbox_facts facts;
    struct sl_arena *arena; /* of the next two */
    /* Messages that were worked through and not removed, because SQS may give one out twice; of these, those
     * that were done and are to be removed. */
    struct sl_names seen, done;
    size_t requests; /* of the next receive */
    unsigned empty;  /* receives in a row that brought nothing new */
    unsigned failed; /* receives in a row that failed for now */
    bool is_full;    /* SQS gives no more while ours are in flight */
};

static struct sl_call call_of(const struct queue *q, struct sl_arena *arena)
{
    struct sl_clock *clock = q->options->sinks->clock;
    return (struct sl_call){arena, clock->now_ms(clock) + TIMEOUT_MS};
}

/* Of more than that, SQS gives none. */
static void remember(struct queue *q, struct sl_names *names, const char *id)
{
    if (names->n < SEEN_MAX)
        sl_names_add(names, sl_span_str(id), q->arena);
}

/* ---- receiving ---- */

static enum sl_status near_limit(const struct queue *q, struct sl_error *error)
{
    return sl_fail(
        error, SL_REJECT, "NearLimit",
        "%s: its RedrivePolicy moves a message to %s after %lld receives, and each run of redrive, "
        "also with --dry-run, is one: the next would be too near. Nothing was removed that was not "
        "done. Raise maxReceiveCount, or remove the policy (aws sqs set-queue-attributes)",
        q->box.name, q->facts.moves_to, (long long)q->facts.max_receives);
}

/* A message that the next receive but one would move. */
static bool is_near_limit(const struct queue *q, const struct sl_inbox_message *m)
{
    return q->facts.max_receives && m->receives >= q->facts.max_receives - 1;
}

/* A message that was done before, and could not be removed then. */
static void remove_again(struct queue *q, const struct sl_inbox_message *m, uint64_t place,
                         struct sl_arena *arena)
{
    struct sl_result result;
    const struct sl_call call = call_of(q, arena);
    sl_inbox_remove(q->inbox, &m->receipt, 1, &result, &call);
    if (result.status == SL_OK)
        sl_hold_drop(q->hold, place);
}

static enum sl_status take(struct queue *q, const struct sl_inbox_message *m, struct sl_arena *arena,
                           struct sl_mail_page *out, struct sl_error *error)
{
    uint64_t place;
    enum sl_status status = sl_hold_add(q->hold, m->receipt, &place, error);
    if (sl_names_has(&q->done, sl_span_str(m->id)))
        remove_again(q, m, place, arena);
    if (status != SL_OK || sl_names_has(&q->seen, sl_span_str(m->id)))
        return status;
    q->empty = 0;
    struct sl_mail *mail = sl_mailbox_add(out, arena);
    *mail = (struct sl_mail){.id = m->id,
                             .group = m->group,
                             .body = m->body,
                             .sent_ms = m->sent_ms,
                             .place = place,
                             .tag = sl_span_str(m->receipt)};
    return is_near_limit(q, m) ? near_limit(q, error) : SL_OK;
}

static void plan_requests(struct queue *q, size_t got)
{
    bool is_full = got == q->requests * SL_INBOX_MESSAGES && !q->box.is_fifo;
    q->requests = !is_full ? 1 : 2 * q->requests < MOST_REQUESTS ? 2 * q->requests : MOST_REQUESTS;
}

static enum sl_status receive(struct queue *q, struct sl_arena *arena, struct sl_mail_page *out,
                              struct sl_error *error)
{
    /* Still a long poll, which asks all of SQS's servers; but those that are here do not wait for others. */
    const struct sl_inbox_receive how = {
        .requests = q->requests, .wait_s = out->n ? 1 : q->options->wait_s, .hidden_s = q->options->hidden_s};
    const struct sl_call call = call_of(q, arena);
    struct sl_inbox_message *list = NULL;
    struct sl_error why = SL_NO_ERROR, taking = SL_NO_ERROR;
    size_t n = 0;
    enum sl_status status = sl_inbox_receive(q->inbox, &how, &call, &list, &n, &why), taken = SL_OK;
    q->is_full = status == SL_REJECT && strcmp(why.code, "OverLimit") == 0;
    q->failed = status == SL_RETRY ? q->failed + 1 : 0;
    q->empty += status != SL_RETRY;
    /* All that came is ours, whatever else went wrong. */
    for (size_t i = 0; i < n; i++) {
        enum sl_status one = take(q, &list[i], arena, out, &taking);
        taken = taken == SL_OK ? one : taken;
    }
    plan_requests(q, n);
    if (taken != SL_OK)
        return sl_fail(error, taken, taking.code, "%s", taking.text);
    if (status == SL_OK || q->is_full)
        return SL_OK;
    if (status != SL_RETRY || q->failed >= FAILED_POLLS)
        return sl_fail(error, status, why.code, "%s", why.text);
    q->options->sinks->clock->sleep_ms(q->options->sinks->clock, PAUSE_MS);
    return SL_OK;
}

static size_t bytes_of(const struct sl_mail_page *page)
{
    size_t bytes = 0;
    for (size_t i = 0; i < page->n; i++)
        bytes += page->list[i].body.len;
    return bytes;
}

static enum sl_status next(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *out,
                           struct sl_error *error)
{
    struct queue *q = (struct queue *)box;
    enum sl_status status = SL_OK;
    while (status == SL_OK && !*q->options->stop && out->n < SL_MAIL_PAGE && (int64_t)out->n < box->wants &&
           bytes_of(out) < SL_MAIL_PAGE_BYTES) {
        bool has_ended = q->empty >= EMPTY_POLLS || q->is_full || sl_hold_is_old(q->hold);
        out->is_last = has_ended && !(q->is_full && out->n);
        /* What there is comes first: a wait for more would only make it late. */
        if (has_ended || (out->n && q->empty))
            break;
        status = receive(q, arena, out, error);
        box->keep(box);
    }
    return status;
}

/* ---- afterwards ---- */

static void settle(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *page, bool removes)
{
    struct queue *q = (struct queue *)box;
    const char **receipts = sl_arena_alloc(arena, (page->n + 1) * sizeof(*receipts));
    struct sl_result *results = sl_arena_zalloc(arena, (page->n + 1) * sizeof(*results));
    struct sl_mail **of = sl_arena_alloc(arena, (page->n + 1) * sizeof(*of));
    const struct sl_call call = call_of(q, arena);
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++) {
        struct sl_mail *mail = &page->list[i];
        if (removes && sl_mail_is_done(mail)) {
            receipts[n] = mail->tag.ptr;
            of[n++] = mail;
        } else {
            remember(q, &q->seen, mail->id);
        }
    }
    if (n)
        sl_inbox_remove(q->inbox, receipts, n, results, &call);
    for (size_t i = 0; i < n; i++) {
        bool is_removed = results[i].status == SL_OK;
        of[i]->removal = is_removed ? SL_MAIL_REMOVED : SL_MAIL_NOT_REMOVED;
        of[i]->removal_code = results[i].code;
        if (is_removed) {
            sl_hold_drop(q->hold, of[i]->place);
            q->is_full = false;
        } else {
            remember(q, &q->seen, of[i]->id);
            remember(q, &q->done, of[i]->id);
        }
    }
}

static void keep(struct sl_mailbox *box)
{
    sl_hold_keep(((struct queue *)box)->hold);
}

static enum sl_status finish(struct sl_mailbox *box, struct sl_error *error)
{
    struct queue *q = (struct queue *)box;
    bool is_old = sl_hold_is_old(q->hold);
    size_t n = sl_hold_release(q->hold);
    if (n)
        return sl_fail(error, SL_RETRY, "NotReleased",
                       "%s: %zu messages could not be released; they come back within %lld s", box->name, n,
                       (long long)q->options->hidden_s);
    if (q->is_full)
        return sl_fail(error, SL_RETRY, "OverLimit",
                       "%s: so many messages are in flight that SQS gives no more for now; run it again "
                       "(with --delete-done more come)",
                       box->name);
    return is_old ? sl_fail(error, SL_RETRY, "TooLong",
                            "%s: SQS hides a message for 12 hours at most: the run ends here; run it again",
                            box->name)
                  : SL_OK;
}

static void close_box(struct sl_mailbox *box)
{
    struct queue *q = (struct queue *)box;
    sl_hold_destroy(q->hold);
    sl_inbox_close(q->inbox);
    sl_arena_destroy(q->arena);
    free((char *)(uintptr_t)q->facts.moves_to);
    free(q);
}

/* ---- opening ---- */

/* Two receives more than the policy spares: one for this run, and one for whoever looks after it. */
static enum sl_status describe(struct queue *q, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_call call = call_of(q, arena);
    struct sl_inbox_facts facts;
    enum sl_status status = sl_inbox_describe(q->inbox, &call, &facts, error);
    if (status == SL_OK) {
        q->facts = facts;
        q->facts.moves_to = facts.moves_to ? strdup(facts.moves_to) : NULL;
        if (facts.max_receives && facts.max_receives <= 2)
            status = near_limit(q, error);
    }
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_mailbox_queue(const struct sl_mailbox_options *options, const char *url,
                                struct sl_mailbox **out, struct sl_error *error)
{
    struct queue *q = calloc(1, sizeof(*q));
    if (!q)
        sl_die("out of memory: a queue of messages");
    *q = (struct queue){.options = options,
                        .requests = 1,
                        .arena = sl_arena_new(4096),
                        .box = {.name = url,
                                .is_queue = true,
                                .can_remove = true,
                                .next = next,
                                .settle = settle,
                                .keep = keep,
                                .finish = finish,
                                .close = close_box}};
    enum sl_status status = sl_inbox_open(options->sinks, sl_span_str(url), &q->inbox, error);
    if (status == SL_OK) {
        q->box.is_fifo = sl_inbox_is_fifo(q->inbox);
        q->hold = sl_hold_new(q->inbox, options->sinks->clock, options->hidden_s);
        status = describe(q, error);
    }
    if (status != SL_OK) {
        close_box(&q->box);
        return status;
    }
    *out = &q->box;
    return SL_OK;
}
