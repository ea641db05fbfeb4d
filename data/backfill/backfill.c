/* Backfill: a step pulls a piece from the source and dispatches it, as often as it takes. */
#include "data/backfill/backfill_private.h"

#include "base/error.h"
#include "base/span.h"
#include "streams/record.h"

#include <stdlib.h>

#define ARENA_BYTES (256 * 1024)

/* ---- the pace: pieces that fit the budget of write units, and fewer and smaller ones while a target refuses
 * them ---- */

#define LEAST_BYTES ((size_t)16 * 1024)

/* After failures: 0.2 s, 0.4 s, ... 30 s, half of each by chance. */
#define FIRST_MS 200
#define LAST_MS  30000

static int64_t now_ms(const struct sl_backfill *b)
{
    return b->options.clock->now_ms(b->options.clock);
}

/* A piece is what a second's budget pays for. */
static size_t most_bytes(const struct sl_backfill *b)
{
    double bytes = b->options.write_units / b->units_per_byte;
    bool is_bound = b->options.write_units > 0 && bytes < (double)b->options.piece_bytes;
    return is_bound ? (size_t)bytes + 1 : b->options.piece_bytes;
}

static void pace_init(struct sl_backfill *b)
{
    if (!b->options.piece_bytes)
        b->options.piece_bytes = SL_BACKFILL_PIECE_BYTES;
    sl_budget_init(&b->budget, b->options.write_units, now_ms(b));
    b->units_per_byte = 0.02; /* not known yet: an item of 100 bytes may be two units */
    b->piece_bytes = most_bytes(b);
}

/* The piece is durable; `used` is what it took of the budget. */
static void pace_done(struct sl_backfill *b, double used)
{
    size_t bytes = b->piece.batch.payload.len;
    b->failures = 0;
    sl_budget_use(&b->budget, used);
    if (used > 0 && bytes > 0)
        b->units_per_byte = (b->units_per_byte + used / (double)bytes) / 2;
    size_t most = most_bytes(b);
    b->piece_bytes = 2 * b->piece_bytes < most ? 2 * b->piece_bytes : most;
}

/* The piece failed for now: how long to wait. */
static int64_t pace_failed(struct sl_backfill *b)
{
    int64_t most_ms = FIRST_MS << (b->failures < 8 ? b->failures : 8);
    most_ms = most_ms > LAST_MS ? LAST_MS : most_ms;
    b->failures++;
    if (b->piece_bytes > 2 * LEAST_BYTES)
        b->piece_bytes /= 2;
    return most_ms / 2 + (int64_t)(b->options.clock->random(b->options.clock) % (uint64_t)(most_ms / 2 + 1));
}

/* ---- opening ---- */

enum sl_status sl_backfill_check(const struct sl_backfill *b, struct sl_error *error)
{
    enum sl_status status = sl_backfill_check_order(b, error);
    return status == SL_OK ? sl_backfill_check_due(b, error) : status;
}

enum sl_status sl_backfill_open(const struct sl_backfill_options *options, struct sl_backfill **out,
                                struct sl_error *error)
{
    struct sl_backfill *b = calloc(1, sizeof(*b));
    if (!b)
        sl_die("out of memory: a backfill");
    b->options = *options;
    b->lasting = sl_arena_new(16 * 1024);
    b->arena = sl_arena_new(ARENA_BYTES);
    b->try_arena = sl_arena_new(ARENA_BYTES);
    sl_buffer_init(&b->place, SL_BACKFILL_PLACE_BYTES);
    sl_buffer_init(&b->answer.body, SL_ANSWER_BYTES);
    int64_t own_ms = sl_source_facts(options->source)->time_ms;
    bool is_given = options->as_of_ms && (!own_ms || options->as_of_ms < own_ms);
    b->report.as_of_ms = is_given ? options->as_of_ms : own_ms;
    pace_init(b);
    *out = NULL;
    enum sl_status status = sl_backfill_choose(b, error);
    if (status == SL_OK && !options->is_plan)
        status = sl_backfill_check(b, error);
    if (status == SL_OK)
        *out = b;
    else
        sl_backfill_close(b);
    return status;
}

void sl_backfill_close(struct sl_backfill *b)
{
    if (!b)
        return;
    sl_backfill_forget_units(b);
    sl_buffer_clean_up(&b->answer.body);
    sl_buffer_clean_up(&b->place);
    sl_arena_destroy(b->try_arena);
    sl_arena_destroy(b->arena);
    sl_arena_destroy(b->lasting);
    free(b);
}

enum sl_status sl_backfill_check_routes(const struct sl_backfill_options *options, struct sl_error *error)
{
    struct sl_backfill b = {.options = *options, .lasting = sl_arena_new(16 * 1024)};
    enum sl_status status = sl_backfill_choose(&b, error);
    sl_backfill_forget_units(&b);
    sl_arena_destroy(b.lasting);
    return status;
}

const struct sl_backfill_report *sl_backfill_report(const struct sl_backfill *b)
{
    return &b->report;
}

/* ---- what became of a piece ---- */

static void count_route(struct sl_backfill_route *out, const struct sl_route_stats *stats, size_t n)
{
    out->applied += stats->effects[SL_EFFECT_APPLIED];
    out->repeated += stats->effects[SL_EFFECT_REPEATED];
    out->overtaken += stats->effects[SL_EFFECT_OVERTAKEN];
    out->outside += stats->effects[SL_EFFECT_LEFT_OUT] + (n - stats->matched);
    out->parked += stats->parked;
}

/* What the piece took of the budget: as the service says, or about so much. */
static double units_used(const struct sl_backfill *b, double before)
{
    double used = b->units.write - before;
    if (used > 0 || b->options.write_units <= 0)
        return used;
    for (size_t i = 0; i < b->piece.batch.n; i++) {
        const struct sl_record *r = sl_batch_record(&b->piece.batch, i);
        used += sl_backfill_item_units(b, sl_record_computed_bytes(r));
    }
    return used;
}

/* Whether it is another place. The first one that is known may be where the source began. */
static bool take_place(struct sl_backfill *b)
{
    bool is_other = b->place.len && !sl_span_eq(sl_buffer_span(&b->place), b->piece.place);
    sl_buffer_reset(&b->place);
    sl_buffer_add_span(&b->place, b->piece.place);
    b->report.place = sl_buffer_span(&b->place);
    return is_other;
}

/* The piece is durable. Returns whether anything is otherwise than before. */
static bool piece_done(struct sl_backfill *b)
{
    size_t n = b->piece.batch.n;
    for (size_t i = 0; i < b->report.n_routes && n; i++) {
        struct sl_route_stats stats = sl_pipeline_stats(b->options.pipeline, i);
        if (!b->routes[i].left_out)
            count_route(&b->routes[i], &stats, n);
    }
    b->report.records += n;
    b->report.stored_bytes += b->piece.stored_bytes;
    b->report.read_units += b->piece.units;
    b->report.write_units = b->units.write;
    b->is_done = b->piece.is_last;
    b->has_piece = false;
    return take_place(b) || n || b->is_done;
}

/* ---- a step ---- */

static enum sl_status pull(struct sl_backfill *b, int64_t deadline_ms, struct sl_error *error)
{
    sl_arena_reset(b->arena);
    const struct sl_call call = {.arena = b->arena, .deadline_ms = deadline_ms};
    enum sl_status status = sl_source_pull(b->options.source, b->piece_bytes, &call, &b->piece, error);
    b->has_piece = status == SL_OK;
    if (status == SL_OK && b->piece.place.len > SL_BACKFILL_PLACE_BYTES)
        return sl_fail(error, SL_REJECT, "PlaceTooLong",
                       "the place to go on from has %zu bytes: use fewer segments", b->piece.place.len);
    return status;
}

/* Items that an earlier try of the piece has written are found there: each is counted once, in the try that
 * makes the piece durable. */
static enum sl_status dispatch(struct sl_backfill *b, int64_t deadline_ms, struct sl_error *error)
{
    const struct sl_invocation invocation = {.request_id = b->options.request_id ? b->options.request_id : "",
                                             .function_arn =
                                                 b->options.function_arn ? b->options.function_arn : "",
                                             .deadline_ms = deadline_ms,
                                             .arena = b->try_arena};
    sl_arena_reset(b->try_arena);
    sl_pipeline_stats_reset(b->options.pipeline);
    sl_error_clear(&b->answer.error);
    sl_dispatch(b->options.pipeline, &b->piece.batch, &invocation, &b->answer);
    if (!b->answer.is_error && b->answer.checkpoint == b->piece.batch.n)
        return SL_OK;
    enum sl_status status = b->answer.error.status;
    return sl_fail(error, b->answer.is_ruined || status == SL_OK ? SL_FATAL : status, b->answer.error.code,
                   "%s", b->answer.error.text);
}

static enum sl_status run_piece(struct sl_backfill *b, int64_t deadline_ms, bool *has_moved,
                                struct sl_error *error)
{
    enum sl_status status = b->has_piece ? SL_OK : pull(b, deadline_ms, error);
    double before = b->units.write;
    if (status == SL_OK && b->piece.batch.n)
        status = dispatch(b, deadline_ms, error);
    double used = units_used(b, before);
    if (status != SL_OK) {
        sl_budget_use(&b->budget, used);
        return status;
    }
    *has_moved = piece_done(b);
    pace_done(b, used);
    return SL_OK;
}

enum sl_status sl_backfill_step(struct sl_backfill *b, int64_t deadline_ms, struct sl_backfill_step *step,
                                struct sl_error *error)
{
    *step = (struct sl_backfill_step){.is_done = b->is_done};
    if (b->is_done)
        return SL_OK;
    step->wait_ms = sl_budget_wait_ms(&b->budget, now_ms(b));
    if (step->wait_ms)
        return SL_OK;
    enum sl_status status = sl_backfill_check_due(b, error);
    if (status == SL_OK)
        status = run_piece(b, deadline_ms, &step->has_moved, error);
    if (status == SL_RETRY)
        step->wait_ms = pace_failed(b);
    step->is_done = b->is_done;
    return status;
}
