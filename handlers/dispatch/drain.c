/* Takes letters out of an SQS event, one by one. */
#include "handlers/dispatch/drain.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch/letter.h"
#include "handlers/pipeline/route.h"

#include <stdlib.h>

/* A letter gets its share of the time, and this at least. */
#define LEAST_MS 5000
/* Time kept to answer in. */
#define RESERVE_MS 300

struct sl_drain {
    struct sl_drain_options options;
    int64_t *closed_until_ms; /* of each route, steady time; 0: its target is not known to be down */
};

struct message {
    struct sl_span id, receipt, queue, body;
};

struct sl_drain *sl_drain_new(const struct sl_drain_options *options)
{
    struct sl_drain *drain = calloc(1, sizeof(*drain));
    if (!drain || !(drain->closed_until_ms = calloc(options->pipeline->n + 1, sizeof(int64_t))))
        sl_die("out of memory: the drain");
    drain->options = *options;
    return drain;
}

void sl_drain_destroy(struct sl_drain *drain)
{
    if (drain)
        free(drain->closed_until_ms);
    free(drain);
}

/* ---- the event ---- */

/* The first record's text, before anything of the event is checked. */
static struct sl_span first_record(struct sl_span event)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_find(event, "Records"));
    struct sl_span record = {NULL, 0};
    return sl_json_walk_next(&walk, NULL, &record) ? record : sl_span(NULL, 0);
}

/* An SQS event's records begin with "messageId", as Lambda writes them; those of streams are found without a
 * look at their items. */
bool sl_drain_is_event(struct sl_span event)
{
    static const char mark[] = "\"messageId\"";
    struct sl_span begin = sl_span(event.ptr, event.len < 200 ? event.len : 200);
    return begin.len && memmem(begin.ptr, begin.len, mark, sizeof(mark) - 1) &&
           sl_json_check(event, NULL) == SL_OK && sl_json_find(first_record(event), "messageId").ptr;
}

struct sl_span sl_drain_queue(struct sl_span event)
{
    struct sl_span raw = sl_json_find(first_record(event), "eventSourceARN");
    return raw.len > 2 && raw.ptr[0] == '"' ? sl_span(raw.ptr + 1, raw.len - 2) : sl_span(NULL, 0);
}

/* ---- one letter ---- */

static int64_t now_ms(const struct sl_drain *drain)
{
    struct sl_clock *clock = drain->options.pipeline->options.clock;
    return clock->now_ms(clock);
}

/* The place in the breakers: of a route that is not known, the last, which is never closed. */
static size_t route_of(const struct sl_drain *drain, struct sl_span letter, struct sl_arena *arena)
{
    const struct sl_pipeline *p = drain->options.pipeline;
    struct sl_span name =
        sl_json_check(letter, NULL) == SL_OK ? sl_json_text(letter, "route", arena) : sl_span(NULL, 0);
    return sl_route_named(p, name);
}

static void hide(const struct sl_drain *drain, const struct message *m, int64_t seconds,
                 const struct sl_invocation *invocation)
{
    struct sl_clock *clock = drain->options.pipeline->options.clock;
    seconds += (int64_t)(clock->random(clock) % (uint64_t)(seconds / 5)); /* not all come back together */
    if (drain->options.hide && m->queue.len && m->receipt.len)
        drain->options.hide(drain->options.arg, m->queue, m->receipt, seconds, invocation);
}

/* Each letter's deadline: others are waiting too. */
static int64_t deadline_of(const struct sl_drain *drain, const struct sl_invocation *invocation, size_t left)
{
    int64_t now = now_ms(drain), all = invocation->deadline_ms - RESERVE_MS - now;
    int64_t share = all / (int64_t)left > LEAST_MS ? all / (int64_t)left : LEAST_MS;
    return now + (share < all ? share : all);
}

static bool apply(struct sl_drain *drain, const struct message *m, size_t left,
                  const struct sl_invocation *invocation, struct sl_answer *answer, struct sl_drained *out)
{
    struct sl_pipeline *p = drain->options.pipeline;
    struct sl_invocation own = *invocation;
    struct sl_error why = SL_NO_ERROR;
    int64_t age_ms, *closed = &drain->closed_until_ms[route_of(drain, m->body, invocation->arena)];
    struct sl_log *log = p->options.log;
    own.deadline_ms = deadline_of(drain, invocation, left);
    if (own.deadline_ms <= now_ms(drain))
        return false;
    if (now_ms(drain) < *closed) {
        hide(drain, m, SL_DRAIN_HIDDEN_S, invocation);
        return false;
    }
    enum sl_letter_outcome outcome = sl_letter_apply(p, m->body, &own, answer, &age_ms, &why);
    *closed = 0;
    if (outcome == SL_LETTER_DONE) {
        out->records += answer->checkpoint;
        out->oldest_ms = age_ms > out->oldest_ms ? age_ms : out->oldest_ms;
        return true;
    }
    bool is_paused = strcmp(why.code, "Paused") == 0;
    if (outcome == SL_LETTER_LATER && !answer->is_ruined) {
        *closed = is_paused ? 0 : now_ms(drain) + SL_DRAIN_PROBE_MS;
        hide(drain, m, is_paused ? SL_DRAIN_PAUSED_S : SL_DRAIN_HIDDEN_S, invocation);
    }
    if (!is_paused)
        sl_log(log, outcome == SL_LETTER_LATER ? SL_WARN : SL_ERROR, "the letter %.*s is not applied: %s: %s",
               SL_ARG(m->id), why.code, why.text);
    return false;
}

/* ---- all of them ---- */

static enum sl_status bad(struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "NotLetters",
                   "the event is of SQS, and is not a list of messages with messageId and body");
}

enum sl_status sl_drain_event(struct sl_drain *drain, struct sl_span event,
                              const struct sl_invocation *invocation, struct sl_answer *answer,
                              struct sl_drained *out, struct sl_error *error)
{
    struct sl_arena *arena = invocation->arena;
    struct sl_span list = sl_json_find(event, "Records"), record;
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_buffer failures;
    *out = (struct sl_drained){.letters = sl_json_walk_count(list), .oldest_ms = -1};
    sl_buffer_init_in(&failures, arena, SL_ANSWER_BYTES);
    sl_buffer_add_str(&failures, "{\"batchItemFailures\":[");
    for (size_t i = 0; sl_json_walk_next(&walk, NULL, &record); i++) {
        const struct message m = {.id = sl_json_text(record, "messageId", arena),
                                  .receipt = sl_json_text(record, "receiptHandle", arena),
                                  .queue = sl_json_text(record, "eventSourceARN", arena),
                                  .body = sl_json_text(record, "body", arena)};
        if (!m.id.len || !m.body.ptr)
            return bad(error);
        bool is_done = !answer->is_ruined && apply(drain, &m, out->letters - i, invocation, answer, out);
        out->done += is_done;
        if (is_done)
            continue;
        sl_buffer_add_str(&failures, out->done < i ? ",{" : "{");
        sl_json_add_member(&failures, "itemIdentifier", m.id);
        sl_buffer_add_char(&failures, '}');
    }
    sl_buffer_add_str(&failures, "]}");
    sl_buffer_reset(&answer->body);
    sl_buffer_add_span(&answer->body, sl_buffer_span(&failures));
    if (!out->letters)
        return bad(error);
    if (answer->is_ruined || out->done == out->letters || drain->options.pipeline->config.reports_failures)
        return SL_OK;
    return sl_fail(
        error, SL_RETRY, "LettersLeft",
        "%zu of %zu letters are not applied, and report_batch_item_failures is not true: the whole event "
        "fails, and is delivered again",
        out->letters - out->done, out->letters);
}
