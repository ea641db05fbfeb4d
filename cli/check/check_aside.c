/* A target that is down: see cli/check/check_aside.h. */
#include "cli/check/check_aside.h"

#include "base/arn.h"
#include "base/clock.h"
#include "base/span.h"
#include "handlers/dispatch/drain.h"
#include "handlers/dispatch/letter.h"
#include "sinks/queues/inbox.h"

#include <stdio.h>
#include <string.h>

#define READ_MS 10000
#define DAY_S   86400

/* ---- an hour of it ---- */

/* An hour of a hundred changes a second. */
#define CHANGES 360000
/* Both images, and what a record has around them. */
#define RECORD_BYTES(item) (2 * (size_t)(item) + 700)
/* "Amazon SQS pricing": a request is for 64 KB of payload; standard queues, $0.40 a million. */
#define REQUEST_BYTES     (64 * 1024)
#define DOLLARS_A_MILLION 0.40

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Each letter is sent, received and deleted; the receives while the target is down are left out: ten letters
 * share one. */
static void say_price(const struct sl_route *route, const struct sl_check_batch *batch)
{
    size_t record = RECORD_BYTES(batch->item_bytes),
           fit = record < SL_LETTER_BYTES ? SL_LETTER_BYTES / record : 1;
    size_t most = sl_route_is_once_only(route) ? 1 : fit < batch->records ? fit : batch->records;
    size_t letters = divide_up(CHANGES, most), bytes = most * record;
    double requests = (double)letters * (double)(2 * divide_up(bytes, REQUEST_BYTES) + 1);
    printf("              an hour of 100 changes of %u bytes a second: %zu letters, %.1f GB, $%.2f of SQS\n",
           batch->item_bytes, letters, (double)CHANGES * (double)record / 1e9,
           requests * DOLLARS_A_MILLION / 1e6);
}

/* ---- what stands still ---- */

void sl_check_aside_say(const struct sl_route *route, const struct sl_check_batch *batch)
{
    const size_t others = route->pipeline->n - 1;
    char held[64];
    snprintf(held, sizeof(held), "stops %zu other route%s", others, others == 1 ? "" : "s");
    if (route->config->set_aside.ptr) {
        printf("    if down   its records wait in %.*s, and the %s on\n",
               SL_ARG(sl_target_shown(route->config->set_aside)),
               others == 1 ? "other route goes" : "other routes go");
        say_price(route, batch);
    } else if (others && route->aside.why_not) {
        printf("    if down   %s; it cannot be set aside: %s\n", held, route->aside.why_not);
    } else if (others) {
        printf("    if down   %s; \"set_aside\": \"sqs://NAME\" lets %s go on%s\n", held,
               others == 1 ? "it" : "them",
               route->aside.remembers_s && route->aside.remembers_s < SL_ASIDE_LEAST_S
                   ? ", once it remembers for 15 days (tombstone_days, forget_after_days)"
                   : "");
    }
}

/* ---- how long letters are kept ---- */

#define FIND(c, finding, ...) (c)->find((c)->arg, finding, sl_arena_printf((c)->arena, __VA_ARGS__))

/* An outage may take nine days; a letter is kept for ten. */
#define OUTAGE_S (9 * DAY_S)

static double days(int64_t seconds)
{
    return (double)seconds / DAY_S;
}

static void judge(const struct sl_check_aside *c, const struct sl_route *route,
                  const struct sl_inbox_facts *f)
{
    const char *path = route->config->set_aside_path;
    const int64_t tries_s = f->max_receives * f->hidden_s;
    if (f->kept_s >= 0 && f->kept_s <= OUTAGE_S)
        FIND(c, SL_FINDING_LETTERS_EXPIRE,
             "%s: the queue keeps a letter for %.1f days, and an outage may take nine: set its "
             "MessageRetentionPeriod to 864000",
             path, days(f->kept_s));
    if (!f->moves_to)
        FIND(c, SL_FINDING_LETTERS_EXPIRE,
             "%s: the queue has no dead-letter queue: a letter that cannot be applied is received until it "
             "expires, and is lost then",
             path);
    else if (f->hidden_s >= 0 && tries_s <= OUTAGE_S)
        FIND(
            c, SL_FINDING_LETTERS_EXPIRE,
            "%s: the queue moves a letter to its dead-letter queue after %lld receives, each of %lld s: that "
            "may be after %.1f days of an outage; set maxReceiveCount to 1000, and VisibilityTimeout to %d",
            path, (long long)f->max_receives, (long long)f->hidden_s, days(tries_s), SL_DRAIN_HIDDEN_S);
}

static enum sl_status ask(const struct sl_check_aside *c, const struct sl_route *route,
                          struct sl_error *error)
{
    struct sl_inbox *inbox;
    struct sl_inbox_facts facts;
    struct sl_clock *clock = c->sinks->clock;
    const struct sl_call call = {c->arena, clock->now_ms(clock) + READ_MS};
    if (!sl_span_starts(route->config->set_aside, SL_LIT("sqs:")))
        return SL_OK;
    enum sl_status status = sl_inbox_open(c->sinks, route->config->set_aside, &inbox, error);
    if (status != SL_OK)
        return status;
    status = sl_inbox_describe(inbox, &call, &facts, error);
    sl_inbox_close(inbox);
    if (status == SL_OK) {
        judge(c, route, &facts);
    } else if (strstr(error->code, "NonExistentQueue") || strstr(error->code, "QueueDoesNotExist")) {
        FIND(c, SL_FINDING_QUEUE_MISSING,
             "%s: there is no such queue: nothing could be set aside, and every failure would hold the batch",
             route->config->set_aside_path);
        sl_error_clear(error);
        status = SL_OK;
    } else {
        sl_error_context(error, "%s", route->config->set_aside_path);
        status = SL_FATAL;
    }
    return status;
}

enum sl_status sl_check_aside(const struct sl_check_aside *c, struct sl_error *error)
{
    const bool is_kinesis = sl_span_is(sl_arn_part(sl_span_str(c->stream_arn), 2), "kinesis");
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < c->pipeline->n && status == SL_OK; i++) {
        const struct sl_route *route = &c->pipeline->routes[i];
        if (!route->config->set_aside.ptr)
            continue;
        if (is_kinesis)
            FIND(
                c, SL_FINDING_ASIDE_KINESIS,
                "%s: the mapping's source is a Kinesis stream, whose changes have no number: late ones could "
                "not be told from those of the same time, and nothing is set aside",
                route->config->set_aside_path);
        if (c->asks_queues)
            status = ask(c, route, error);
    }
    return status;
}
