/* A letter is read, proven to be this pipeline's, and dispatched as a batch of one route. */
#include "handlers/dispatch/letter.h"

#include "base/arn.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/span.h"
#include "base/time.h"
#include "handlers/pipeline/route.h"
#include "streams/record.h"

/* "" when the ARN does not say. */
static struct sl_span part_of(struct sl_span arn, unsigned number)
{
    struct sl_span part = sl_arn_part(arn, number);
    return part.ptr ? part : SL_LIT("");
}

struct sl_letter_origin sl_letter_origin_of(const struct sl_record *record)
{
    struct sl_span arn = sl_record_text(record, SL_FIELD_SOURCE_ARN),
                   table = sl_record_text(record, SL_FIELD_TABLE);
    return (struct sl_letter_origin){
        .account = part_of(arn, 4),
        .region = part_of(arn, 3),
        .table = table.ptr ? table : SL_LIT(""),
    };
}

bool sl_letter_is(struct sl_span text)
{
    const char *end = sl_span_end(text), *p = sl_json_space(text.ptr, end);
    if (!text.len || p == end || *p != '{')
        return false;
    p = sl_json_space(p + 1, end);
    return sl_span_starts(sl_span(p, (size_t)(end - p)), SL_LIT("\"sluiceSetAside\""));
}

/* ---- whose it is ---- */

static bool matches(struct sl_span one, struct sl_span other)
{
    return !one.len || !other.len || sl_span_eq(one, other);
}

static bool number_member(struct sl_span letter, const char *name, int64_t *out)
{
    struct sl_span raw = sl_json_find(letter, name);
    int64_t n = 0;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.ptr[i] < '0' || raw.ptr[i] > '9' || i == 9)
            return false;
        n = 10 * n + (raw.ptr[i] - '0');
    }
    *out = n;
    return raw.len > 0;
}

static enum sl_status bad(struct sl_error *error, const char *what)
{
    return sl_fail(error, SL_FATAL, "BadLetter", "the message is not a letter that this release knows: %s",
                   what);
}

static enum sl_status find_route(const struct sl_pipeline *p, struct sl_span letter, struct sl_arena *arena,
                                 struct sl_late *late, struct sl_error *error)
{
    struct sl_span name = sl_json_text(letter, "route", arena),
                   target = sl_json_text(letter, "target", arena);
    size_t i = sl_route_named(p, name);
    if (i == p->n)
        return sl_fail(
            error, SL_FATAL, "OtherRoute",
            "the letter is of the route %.*s, which is not configured: drain or discard its letters "
            "before a route is renamed or removed",
            SL_ARG(name));
    const struct sl_route *route = &p->routes[i];
    if (!matches(target, sl_span_str(route->stats.target)))
        return sl_fail(
            error, SL_FATAL, "OtherTarget",
            "the letter was set aside for %.*s, and the route %s writes to %s now: drain or discard its "
            "letters before a target is changed",
            SL_ARG(target), route->config->name, route->stats.target);
    if (route->aside.why_not)
        return sl_fail(error, SL_FATAL, "NotAnyOrder",
                       "the route %s, as it is configured now, does not take records late and in any order",
                       route->config->name);
    if (late->epoch > route->aside.epoch)
        return sl_fail(
            error, SL_FATAL, "LaterEpoch",
            "the letter is of epoch %lld, and the route %s is in epoch %lld: an epoch is never lowered",
            (long long)late->epoch, route->config->name, (long long)route->aside.epoch);
    late->route = i;
    return SL_OK;
}

/* The records are what the letter says that they are, and all of the table. */
static enum sl_status check_records(const struct sl_batch *batch, struct sl_span letter,
                                    struct sl_arena *arena, struct sl_error *error)
{
    const struct sl_letter_origin said = {.account = sl_json_text(letter, "account", arena),
                                          .region = sl_json_text(letter, "region", arena),
                                          .table = sl_json_text(letter, "table", arena)};
    for (size_t i = 0; i < batch->n; i++) {
        struct sl_letter_origin is = sl_letter_origin_of(sl_batch_record(batch, i));
        if (!matches(said.account, is.account) || !matches(said.region, is.region) ||
            !matches(said.table, is.table))
            return sl_fail(error, SL_FATAL, "BadLetter",
                           "record %zu of the letter is of another table than the "
                           "letter",
                           i);
    }
    return batch->n ? SL_OK : bad(error, "it has no records");
}

/* ---- applying ---- */

static enum sl_status decode(const struct sl_pipeline *p, struct sl_span letter, struct sl_arena *arena,
                             struct sl_batch *out, struct sl_error *error)
{
    const struct sl_decode_options options = {.ttl_attribute = p->config.ttl_attribute};
    const struct sl_span records = sl_json_find(letter, "records");
    const struct sl_span parts[] = {SL_LIT("{\"Records\":"), records, SL_LIT("}")};
    struct sl_error why = SL_NO_ERROR;
    if (!records.len || records.ptr[0] != '[')
        return bad(error, "it has no list of records");
    char *text = sl_arena_alloc(arena, records.len + 16), *at = text;
    for (size_t i = 0; i < 3; i++) {
        memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    if (sl_batch_decode(sl_span(text, (size_t)(at - text)), arena, &options, out, &why) != SL_OK)
        return bad(error, why.text);
    return SL_OK;
}

/* Is the route waiting for something that other records would meet, too? */
static bool is_down(const struct sl_error *why)
{
    return why->status == SL_RETRY || (why->status == SL_FATAL && sl_aside_is_environment(why->code));
}

enum sl_letter_outcome sl_letter_apply(struct sl_pipeline *p, struct sl_span text,
                                       const struct sl_invocation *invocation, struct sl_answer *answer,
                                       int64_t *age_ms, struct sl_error *error)
{
    struct sl_arena *arena = invocation->arena;
    struct sl_clock *clock = p->options.clock;
    struct sl_late late = {.route = 0};
    struct sl_invocation own = *invocation;
    struct sl_batch batch;
    int64_t format = 0, ns, step_ns;
    *age_ms = -1;
    if (sl_json_check(text, NULL) != SL_OK || !sl_letter_is(text) ||
        !number_member(text, "sluiceSetAside", &format) || format != SL_LETTER_FORMAT ||
        !number_member(text, "epoch", &late.epoch)) {
        (void)bad(error, "it is not one, or of a later format");
        return SL_LETTER_FAILED;
    }
    if (sl_time_parse(sl_json_text(text, "time", arena), &ns, &step_ns))
        *age_ms = (clock->wall_ns(clock) - ns) / 1000000;
    if (find_route(p, text, arena, &late, error) != SL_OK || decode(p, text, arena, &batch, error) != SL_OK ||
        check_records(&batch, text, arena, error) != SL_OK)
        return SL_LETTER_FAILED;
    if (p->routes[late.route].config->is_paused) {
        (void)sl_fail(error, SL_RETRY, "Paused", "the route %s is paused",
                      p->routes[late.route].config->name);
        return SL_LETTER_LATER;
    }
    own.late = &late;
    sl_dispatch(p, &batch, &own, answer);
    if (!answer->is_ruined && !answer->is_error && answer->checkpoint == batch.n)
        return SL_LETTER_DONE;
    (void)sl_fail(error, answer->error.status, answer->error.code, "%s", answer->error.text);
    return is_down(error) ? SL_LETTER_LATER : SL_LETTER_FAILED;
}
