/* Sandboxes of routes, and the records that go through them, by the rules of the simulated mapping: batches,
 * partial answers, and halves until a record that fails is alone. */
#include "cli/redrive/crew.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/span.h"
#include "cli/config/restrict.h"
#include "cli/redrive/letter.h"
#include "live/sandbox/paths.h"
#include "cli/session.h"
#include "live/source/letters.h"
#include "streams/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 100
#define TEAMS 16 /* sandboxes at a time; the one that was used longest ago makes room */
/* So many deliveries in a row without progress and without a record at fault. Seven halve a batch down to one
 * record, which may be in the way alone (a hot key). */
#define DOWN 10

struct team {
    struct sl_session session;
    struct sl_restricted config;
    char *route; /* NULL: all */
    int64_t epoch;
    struct sl_span place; /* in the session's arena */
    bool is_kinesis;
    uint64_t used;
};

/* What is known of a record while it runs; its tag. */
struct mark {
    struct sl_letter *letter;
    bool has_failed;
};

struct sl_crew {
    const struct sl_crew_options *options;
    struct team *teams[TEAMS];
    size_t n;
    uint64_t runs;
    unsigned n_traces;
    /* Of one run. */
    struct team *team;
    struct sl_arena *arena;
    unsigned stuck; /* deliveries without progress */
};

struct sl_crew *sl_crew_new(const struct sl_crew_options *options)
{
    struct sl_crew *crew = calloc(1, sizeof(*crew));
    if (!crew)
        sl_die("out of memory: sandboxes");
    crew->options = options;
    return crew;
}

/* ---- teams ---- */

static void dismiss(struct team *team)
{
    sl_session_clean_up(&team->session);
    if (team->config.fd >= 0)
        close(team->config.fd);
    free(team->route);
    free(team);
}

void sl_crew_destroy(struct sl_crew *crew)
{
    if (!crew)
        return;
    for (size_t i = 0; i < crew->n; i++)
        dismiss(crew->teams[i]);
    free(crew);
}

struct sl_span sl_crew_place(const char *arn)
{
    const char *at = arn;
    for (int i = 0; i < 5; i++) {
        at += strcspn(at, ":");
        at += *at == ':';
    }
    return sl_span(arn, (size_t)(at - arn));
}

static const char *trace_of(struct sl_crew *crew, struct sl_arena *arena)
{
    const char *trace = crew->options->trace;
    unsigned n = ++crew->n_traces;
    return !trace || n == 1 ? trace : sl_arena_printf(arena, "%s.%u", trace, n);
}

/* Reads the configuration for the route. */
static enum sl_status brief(struct sl_crew *crew, struct team *team, const char *route, int64_t epoch,
                            struct sl_error *error)
{
    const struct sl_crew_options *o = crew->options;
    struct sl_session *s = &team->session;
    team->config.fd = -1;
    *s = (struct sl_session){.verb = "redrive",
                             .timeout_s = o->timeout_s,
                             .is_quiet = true,
                             .has_no_summary = true,
                             .handles_signals = true,
                             .sets_report_failures = true,
                             .arena = sl_arena_new(64 * 1024),
                             .vars = sl_command_environment()};
    s->handler_path =
        sl_paths_handlers(s->arena, o->handler_path, o->config, sl_vars_get(&s->vars, "SLUICE_HANDLER_PATH"));
    sl_esm_settings_init(&s->settings);
    s->settings.max_retries = 0;
    s->settings.batch_size = BATCH;
    s->settings.bisect = s->settings.report_failures = true;
    enum sl_status status = sl_restrict_config(o->config, route, epoch, s->arena, &team->config, error);
    s->config = team->config.path;
    if (status == SL_OK)
        status = sl_session_read_config(s, error);
    return status == SL_OK ? sl_session_prepare(s, error) : status;
}

/* What reads the copy of the configuration names it; the operator knows the original. */
static enum sl_status blame(const struct sl_crew *crew, const struct team *team, const char *route,
                            const struct sl_error *why, struct sl_error *error)
{
    const char *copy = team->config.path, *at = copy ? strstr(why->text, copy) : NULL;
    if (!at)
        return sl_fail(error, why->status, why->code, "%s", why->text);
    return sl_fail(error, why->status, why->code, "%.*s%s%s%s%s%s", (int)(at - why->text), why->text,
                   crew->options->config, route ? " (its route \"" : "", route ? route : "",
                   route ? "\" alone)" : "", at + strlen(copy));
}

enum sl_status sl_crew_check(struct sl_crew *crew, const char *route, struct sl_error *error)
{
    struct team *team = calloc(1, sizeof(*team));
    if (!team)
        sl_die("out of memory: a sandbox");
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = brief(crew, team, route, -1, &why);
    if (status != SL_OK)
        (void)blame(crew, team, route, &why, error);
    dismiss(team);
    return status;
}

static enum sl_status gather(struct sl_crew *crew, struct team *team, const struct sl_crew_load *load,
                             struct sl_error *error)
{
    struct sl_session *s = &team->session;
    enum sl_status status = brief(crew, team, load->route, load->epoch, error);
    if (status != SL_OK)
        return status;
    s->trace = trace_of(crew, s->arena);
    s->settings.is_kinesis = load->is_kinesis;
    s->settings.stream_arn =
        sl_arena_printf(s->arena, "%s", load->stream_arn[0] ? load->stream_arn : SL_REPLAYED_ARN);
    team->is_kinesis = load->is_kinesis;
    team->route = load->route ? strdup(load->route) : NULL;
    team->epoch = load->epoch;
    team->place = sl_span_str(sl_arena_copy(s->arena, sl_crew_place(load->stream_arn)));
    /* Whatever is wrong here is wrong for every message. */
    return sl_session_open(s, error) == SL_OK ? SL_OK : SL_FATAL;
}

static bool is_for(const struct team *team, const struct sl_crew_load *load)
{
    bool is_route = load->route ? team->route && strcmp(team->route, load->route) == 0 : !team->route;
    return is_route && team->epoch == load->epoch && team->is_kinesis == load->is_kinesis &&
           sl_span_eq(team->place, sl_crew_place(load->stream_arn));
}

static void make_room(struct sl_crew *crew)
{
    size_t oldest = 0;
    for (size_t i = 1; i < crew->n; i++)
        if (crew->teams[i]->used < crew->teams[oldest]->used)
            oldest = i;
    dismiss(crew->teams[oldest]);
    crew->teams[oldest] = crew->teams[--crew->n];
}

static enum sl_status find_team(struct sl_crew *crew, const struct sl_crew_load *load, struct sl_error *error)
{
    for (size_t i = 0; i < crew->n; i++)
        if (is_for(crew->teams[i], load)) {
            crew->team = crew->teams[i];
            crew->team->used = ++crew->runs;
            return SL_OK;
        }
    struct team *team = calloc(1, sizeof(*team));
    if (!team)
        sl_die("out of memory: a sandbox");
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = gather(crew, team, load, &why);
    if (status != SL_OK) {
        (void)blame(crew, team, load->route, &why, error);
        dismiss(team);
        return status;
    }
    if (crew->n == TEAMS)
        make_room(crew);
    team->used = ++crew->runs;
    crew->team = crew->teams[crew->n++] = team;
    return SL_OK;
}

/* ---- the mapping's driver ---- */

/* Why a record failed, from what our bootstrap reported of the invocation. */
static void take_notes(struct sl_crew *crew, const struct sl_esm_invocation *inv)
{
    const struct sl_notes *notes = sl_runner_notes(crew->team->session.runner);
    for (size_t i = 0; i < notes->n; i++) {
        const struct sl_note *note = &notes->list[i];
        if (strcmp(note->request_id, inv->request_id) != 0)
            continue;
        for (size_t k = 0; k < inv->n; k++)
            if (sl_span_is(inv->records[k]->id, note->id)) {
                struct sl_letter *letter = ((struct mark *)inv->records[k]->tag)->letter;
                letter->code = sl_arena_printf(crew->arena, "%s", note->code);
            }
    }
}

/* A crash or a time-out has no note: Lambda's own error names it. */
static void take_error(struct sl_crew *crew, const struct sl_esm_invocation *inv,
                       const struct sl_esm_result *result)
{
    struct sl_letter *letter = ((struct mark *)inv->records[0]->tag)->letter;
    struct sl_span type = {NULL, 0};
    if (result->outcome == SL_ESM_ANSWERED || inv->n != 1 || letter->code[0] ||
        sl_json_check(result->body, NULL) != SL_OK)
        return;
    type = sl_json_find(result->body, "errorType");
    if (type.len > 2)
        letter->code = sl_arena_copy(crew->arena, sl_span(type.ptr + 1, type.len - 2));
}

/* An answer that names the first of several records says that the world is down; an error, that a record is
 * bad.
 */
static void count_stuck(struct sl_crew *crew, const struct sl_esm_result *result,
                        const struct sl_esm_decision *decision)
{
    bool moves = decision->verb == SL_ESM_ADVANCE || decision->verb == SL_ESM_CHECKPOINT;
    crew->stuck = moves || result->outcome != SL_ESM_ANSWERED ? 0 : crew->stuck + 1;
}

static void on_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision)
{
    struct sl_crew *crew = self;
    take_notes(crew, inv);
    take_error(crew, inv, result);
    count_stuck(crew, result, decision);
    sl_session_decided(&crew->team->session, inv, result, decision);
}

static void on_discarded(void *self, const struct sl_esm_discard *discard)
{
    (void)self;
    for (size_t i = 0; i < discard->n; i++) {
        struct mark *mark = discard->records[i]->tag;
        mark->letter->n_failed += !mark->has_failed;
        mark->has_failed = true;
    }
}

static void on_begin(void *self, struct sl_esm_invocation *inv)
{
    sl_session_begin(&((struct sl_crew *)self)->team->session, inv);
}

static void on_invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    sl_session_invoke(&((struct sl_crew *)self)->team->session, inv, out);
}

/* ---- records ---- */

/* By sequence number. Equal ones keep their order. */
static int compare(const void *x, const void *y)
{
    const struct sl_esm_record *a = x, *b = y;
    int order = sl_span_compare_digits(a->id, b->id);
    return order ? order : a->tag < b->tag ? -1 : 1;
}

struct flat {
    struct sl_esm_record *records;
    size_t n;
    struct sl_esm_shard *shards;
    size_t n_shards;
};

static void flatten(struct sl_crew *crew, const struct sl_crew_load *load, int64_t now_ms, struct flat *out)
{
    for (size_t i = 0; i < load->n; i++)
        out->n += load->letters[i]->n;
    out->records = sl_arena_alloc(crew->arena, (out->n + 1) * sizeof(*out->records));
    struct mark *marks = sl_arena_zalloc(crew->arena, (out->n + 1) * sizeof(*marks));
    size_t at = 0;
    for (size_t i = 0; i < load->n; i++)
        for (size_t k = 0; k < load->letters[i]->n; k++, at++) {
            marks[at].letter = load->letters[i];
            out->records[at] = load->letters[i]->records[k];
            out->records[at].tag = &marks[at];
            out->records[at].available_ms = now_ms;
        }
    if (!load->keeps_order)
        qsort(out->records, out->n, sizeof(*out->records), compare);
}

/* The records of an item stay together, so they keep their order. */
static void cut(struct sl_crew *crew, struct flat *flat)
{
    size_t n = (size_t)crew->options->parallel, at = 0;
    struct sl_esm_record *sorted = sl_arena_alloc(crew->arena, (flat->n + 1) * sizeof(*sorted));
    flat->shards = sl_arena_zalloc(crew->arena, n * sizeof(*flat->shards));
    flat->n_shards = n;
    for (size_t s = 0; s < n; s++) {
        flat->shards[s] = (struct sl_esm_shard){.id = sl_arena_printf(crew->arena, "shardId-redrive-%zu", s),
                                                .parent = -1,
                                                .records = sorted + at};
        for (size_t i = 0; i < flat->n; i++)
            if (sl_hash(flat->records[i].item_key) % n == s)
                sorted[at++] = flat->records[i];
        flat->shards[s].n = (size_t)(sorted + at - flat->shards[s].records);
    }
}

static void count_handled(const struct sl_esm *esm, const struct flat *flat)
{
    for (size_t s = 0; s < flat->n_shards; s++)
        for (size_t i = 0; i < sl_esm_checkpoint(esm, s); i++) {
            const struct mark *mark = flat->shards[s].records[i].tag;
            mark->letter->n_handled += !mark->has_failed;
        }
}

static void set_outcomes(const struct sl_crew_load *load)
{
    for (size_t i = 0; i < load->n; i++) {
        struct sl_letter *letter = load->letters[i];
        if (letter->n_failed)
            sl_letter_end(letter, SL_MAIL_FAILED, letter->code, letter->text);
        else if (letter->n_handled == letter->n)
            letter->outcome = SL_MAIL_DONE;
    }
}

static void run(struct sl_crew *crew, const struct flat *flat, struct sl_clock_virtual *clock)
{
    const struct sl_esm_driver driver = {.self = crew,
                                         .begin = on_begin,
                                         .invoke = on_invoke,
                                         .decided = on_decided,
                                         .discarded = on_discarded};
    struct sl_esm_settings *settings = &crew->team->session.settings;
    settings->seed = sl_clock_system()->random(sl_clock_system());
    struct sl_esm *esm = sl_esm_new(settings, flat->shards, flat->n_shards, clock, &driver);
    while (!*crew->options->stop && crew->stuck < DOWN && sl_esm_step(esm))
        crew->options->keep(crew->options->keep_arg);
    count_handled(esm, flat);
    sl_esm_destroy(esm);
}

enum sl_status sl_crew_run(struct sl_crew *crew, const struct sl_crew_load *load, struct sl_arena *arena,
                           struct sl_error *error)
{
    struct sl_clock *real = sl_clock_system();
    struct flat flat = {0};
    enum sl_status status = find_team(crew, load, error);
    if (status != SL_OK)
        return status;
    struct sl_clock_virtual *clock = &crew->team->session.clock;
    crew->arena = arena;
    crew->stuck = 0;
    sl_clock_virtual_init(clock, real->wall_ns(real), 0);
    flatten(crew, load, real->wall_ns(real) / 1000000, &flat);
    cut(crew, &flat);
    run(crew, &flat, clock);
    set_outcomes(load);
    if (crew->stuck < DOWN)
        return SL_OK;
    return sl_fail(error, SL_RETRY, "TargetDown",
                   "%d deliveries in a row failed, and no record is at fault: the route's target is down or "
                   "refuses all. The lines above say why. What is not done stays where it is; run it again "
                   "when the target works",
                   DOWN);
}

/* ---- letters that were set aside ---- */

/* Where the function is: by what the letter says. */
static const char *arn_of(struct sl_span letter, struct sl_arena *arena)
{
    struct sl_span region = sl_json_find(letter, "region"), account = sl_json_find(letter, "account"),
                   table = sl_json_find(letter, "table");
    if (region.len <= 2 || account.len <= 2 || table.len <= 2)
        return "";
    const char *arn = sl_arena_printf(arena, "arn:aws:dynamodb:%.*s:%.*s:table/%.*s/stream/letters",
                                      (int)region.len - 2, region.ptr + 1, (int)account.len - 2,
                                      account.ptr + 1, (int)table.len - 2, table.ptr + 1);
    return sl_dead_letter_is_arn(arn) ? arn : "";
}

enum sl_status sl_crew_apply(struct sl_crew *crew, struct sl_letter *letter, struct sl_arena *arena,
                             struct sl_error *error)
{
    const struct sl_crew_load load = {
        .route = letter->dead.route, .epoch = -1, .stream_arn = arn_of(letter->dead.text, arena)};
    const struct sl_letters_message message = {.id = "1", .body = letter->dead.text};
    enum sl_status status = find_team(crew, &load, error);
    if (status != SL_OK)
        return status;
    struct sl_span answer = sl_letters_run(crew->team->session.runner, crew->runs, &message, 1, arena);
    crew->options->keep(crew->options->keep_arg);
    if (sl_letters_is_done(answer, &message, 1, 0))
        letter->outcome = SL_MAIL_DONE;
    else
        sl_letter_end(letter, SL_MAIL_FAILED, "NotApplied", "");
    return SL_OK;
}
