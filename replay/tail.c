/* `sluice tail`: runs the handlers on a live stream, shard by shard, with a checkpoint file. */
#include "base/json.h"
#include "base/json_walk.h"
#include "replay/session.h"
#include "replay/source/input.h"
#include "replay/source/live.h"
#include "replay/source/places.h"
#include "replay/verbs.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS           250   /* four times a second, as Lambda's pollers do */
#define REFRESH_MS        60000 /* how often the shards are listed again when no shard has ended */
#define IDLE_POLLS        4     /* with --once: so many empty reads of all shards in a row end it */
#define RETRY_MS          1000
#define SAVE_MS           1000 /* how often the checkpoint says that nothing came */
#define MISUNDERSTOOD_MAX 5    /* cycles in a row whose answers were not understood; then tail ends */

static const char MORE[] = "";

extern char **environ;

struct tail {
    const char *table, *stream, *region, *endpoint, *checkpoint, *from;
    bool is_once;
    struct sl_session session;
    struct sl_live *live;
    struct sl_places places;
    struct sl_esm_stats total;
    unsigned gaps;
    uint64_t cycles;
    int64_t refreshed_ms, saved_through_ms;

    /* Of one cycle: what was read, and the place of each shard of the simulation. */
    struct sl_arena *arena;
    struct sl_input *inputs;
    size_t *place_of;
    size_t n_read;
    const char **next_iterators; /* by input; NULL: the shard has ended; MORE: after the last handled one */
    struct sl_recording page;
};

static volatile sig_atomic_t stop_asked;

static void on_stop(int number)
{
    (void)number;
    stop_asked = 1;
}

static void wait_ms(int64_t ms)
{
    if (ms > 0 && !stop_asked)
        (void)poll(NULL, 0, ms > 600000 ? 600000 : (int)ms);
}

static int64_t now_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->now_ms(clock);
}

static int64_t wall_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->wall_ns(clock) / 1000000;
}

/* ---- reading ---- */

/* The records after the last handled one are gone. Reports that once, with the place. */
static void note_gap(struct tail *t, struct sl_place *place)
{
    fprintf(stderr,
            "sluice tail: %s: the records after %s are gone from the stream, which keeps them 24 hours; tail "
            "continues with the oldest one. Take what is missing from the table\n",
            place->id, place->after ? place->after : "its beginning");
    t->gaps++;
    sl_places_set(&place->after, NULL);
    sl_places_set(&place->iterator, NULL);
    place->is_skipped_to_latest = false;
}

/* True: a stream may answer so, and the place has been corrected. */
static bool mend(struct tail *t, struct sl_place *place, const struct sl_error *error)
{
    if (strcmp(error->code, "ExpiredIteratorException") == 0) {
        sl_places_set(&place->iterator, NULL);
        return true;
    }
    if (strcmp(error->code, "TrimmedDataAccessException") == 0) {
        note_gap(t, place);
        return true;
    }
    if (strcmp(error->code, "ResourceNotFoundException") == 0 && place->is_closed) {
        note_gap(t, place);
        place->is_done = true;
        place->ended_ms = wall_ms();
        return true;
    }
    return false;
}

static enum sl_status find_iterator(struct tail *t, struct sl_place *place, struct sl_error *error)
{
    const char *iterator;
    const char *type = place->after                  ? "AFTER_SEQUENCE_NUMBER"
                       : place->is_skipped_to_latest ? "LATEST"
                                                     : "TRIM_HORIZON";
    if (place->iterator)
        return SL_OK;
    const struct sl_live_position position = {t->places.stream_arn, place->id, type, place->after};
    enum sl_status status = sl_live_get_iterator(t->live, &position, t->arena, &iterator, error);
    if (status == SL_OK)
        sl_places_set(&place->iterator, iterator);
    return status;
}

/* A page holds a record that cannot be decoded: keeps the records before it. When it is the first, the run
 * ends, and says which it is. */
static enum sl_status keep_decodable(struct tail *t, struct sl_input *input,
                                     const struct sl_decode_options *options, struct sl_error *error)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_find(input->text, "Records"));
    struct sl_span record, number = {NULL, 0};
    struct sl_error why = SL_NO_ERROR;
    struct sl_buffer good;
    sl_buffer_init(&good, input->text.len + 32);
    sl_buffer_add_str(&good, "{\"Records\":[");
    size_t n = 0, len = good.len;
    for (; sl_json_walk_next(&walk, NULL, &record); n++, len = good.len) {
        const char *text = sl_arena_printf(t->arena, "{\"Records\":[%.*s]}", SL_ARG(record));
        struct sl_input one = {.name = input->name, .text = sl_span_str(text)};
        number = sl_json_find(record, "dynamodb.SequenceNumber");
        if (sl_input_decode(&one, options, t->arena, &why) != SL_OK)
            break;
        sl_buffer_add_str(&good, n ? "," : "");
        sl_buffer_add_span(&good, record);
    }
    good.len = len;
    sl_buffer_add_str(&good, "]}");
    input->text = sl_span(sl_arena_copy(t->arena, sl_buffer_span(&good)), good.len);
    sl_buffer_clean_up(&good);
    if (n)
        return sl_input_decode(input, options, t->arena, error);
    return sl_fail(
        error, SL_REJECT, why.code,
        "the record %.*s cannot be read: %s. Tail ends here. To continue after this record, write its "
        "sequence number as \"after\" of this shard into the checkpoint file",
        SL_ARG(number), why.text);
}

/* Reads one page of one shard. */
static enum sl_status read_shard(struct tail *t, size_t i, struct sl_error *error)
{
    struct sl_place *place = &t->places.list[i];
    struct sl_live_page page;
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = find_iterator(t, place, &why);
    if (status == SL_OK)
        status = sl_live_get_records(t->live, place->iterator, t->arena, &page, &why);
    if (status != SL_OK)
        return mend(t, place, &why) ? SL_OK : sl_fail(error, status, why.code, "%s", why.text);
    const struct sl_decode_options options = {.any_shape = true, .ttl_attribute = t->session.ttl_attribute};
    struct sl_input *input = &t->inputs[t->n_read];
    *input = (struct sl_input){.name = place->id, .text = page.text};
    t->place_of[t->n_read] = i;
    t->next_iterators[t->n_read] = page.next_iterator;
    if (sl_input_decode(input, &options, t->arena, &why) != SL_OK) {
        status = keep_decodable(t, input, &options, error);
        t->next_iterators[t->n_read] = MORE;
    }
    t->n_read += status == SL_OK;
    return status;
}

static enum sl_status refresh(struct tail *t, struct sl_error *error)
{
    struct sl_live_shards shards;
    bool from_latest = strcmp(t->from, "latest") == 0 && t->refreshed_ms == 0;
    enum sl_status status = sl_live_list_shards(t->live, t->places.stream_arn, t->arena, &shards, error);
    if (status != SL_OK)
        return status;
    size_t lost = sl_places_update(&t->places, &shards, from_latest);
    if (lost)
        fprintf(
            stderr,
            "sluice tail: %zu shard(s) of the checkpoint are gone from the stream before they were read to "
            "their end. Take what is missing from the table\n",
            lost);
    t->gaps += (unsigned)lost;
    t->refreshed_ms = now_ms();
    return SL_OK;
}

static enum sl_status read_all(struct tail *t, struct sl_error *error)
{
    size_t room = t->places.n + 1;
    t->inputs = sl_arena_alloc(t->arena, room * sizeof(*t->inputs));
    t->place_of = sl_arena_alloc(t->arena, room * sizeof(*t->place_of));
    t->next_iterators = sl_arena_alloc(t->arena, room * sizeof(*t->next_iterators));
    t->n_read = 0;
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < t->places.n && status == SL_OK && !stop_asked; i++)
        if (sl_places_is_ready(&t->places, &t->places.list[i]))
            status = read_shard(t, i, error);
    return status;
}

/* ---- handling ---- */

static void save(struct tail *t)
{
    t->saved_through_ms = t->places.through_ms;
    struct sl_error error = SL_NO_ERROR;
    if (sl_places_save(&t->places, &error) != SL_OK) {
        fprintf(stderr, "sluice tail: %s\n", error.text);
        stop_asked = 1;
    }
}

/* The checkpoint moves as the mapping's does: a kill in the middle causes repeats, and loses no record. */
static void on_decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                       const struct sl_esm_decision *decision)
{
    struct tail *t = self;
    struct sl_place *place = &t->places.list[t->place_of[inv->shard - t->page.shards]];
    sl_session_decided(&t->session, inv, result, decision);
    if (decision->checkpoint.ptr) {
        sl_places_set(&place->after, sl_arena_copy(t->arena, decision->checkpoint));
        save(t);
    }
}

static void on_discarded(void *self, const struct sl_esm_discard *discard)
{
    sl_session_discarded(&((struct tail *)self)->session, discard);
}

static void on_begin(void *self, struct sl_esm_invocation *inv)
{
    sl_session_begin(&((struct tail *)self)->session, inv);
}

static void on_invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    sl_session_invoke(&((struct tail *)self)->session, inv, out);
}

static void add_counts(struct sl_recording *sum, const struct sl_recording *s)
{
    sum->n += s->n;
    for (int i = 0; i < 4; i++) {
        sum->by_event[i] += s->by_event[i];
        sum->removed_by[i] += s->removed_by[i];
    }
}

/* Runs the mapping over one page of each shard, in real time. True: all records are handled. */
static bool run_mapping(struct tail *t)
{
    const struct sl_esm_driver driver = {
        .self = t, .begin = on_begin, .invoke = on_invoke, .decided = on_decided, .discarded = on_discarded};
    struct sl_clock_virtual *clock = &t->session.clock;
    struct sl_clock *real = sl_clock_system();
    t->session.settings.seed = real->random(real) + t->cycles;
    sl_clock_virtual_init(clock, real->wall_ns(real), 0);
    struct sl_esm *esm = sl_esm_new(&t->session.settings, t->page.shards, t->page.n_shards, clock, &driver);
    int64_t at = 0, next;
    while ((next = sl_esm_next_ms(esm)) >= 0 && !stop_asked) {
        wait_ms(next - at);
        at = next;
        if (!stop_asked)
            (void)sl_esm_step(esm);
    }
    struct sl_esm_stats stats = sl_esm_stats(esm);
    sl_esm_stats_add(&t->total, &stats);
    sl_esm_destroy(esm);
    return next < 0;
}

static enum sl_status build_page(struct tail *t, struct sl_error *error)
{
    struct sl_clock *real = sl_clock_system();
    const char **names = sl_arena_alloc(t->arena, (t->n_read + 1) * sizeof(*names));
    struct sl_span *texts = sl_arena_alloc(t->arena, (t->n_read + 1) * sizeof(*texts));
    for (size_t i = 0; i < t->n_read; i++) {
        names[i] = t->inputs[i].name;
        texts[i] = t->inputs[i].text;
    }
    const struct sl_inputs inputs = {.names = names, .texts = texts, .n = t->n_read};
    const struct sl_recording_options options = {.inputs = &inputs,
                                                 .default_arn = t->places.stream_arn,
                                                 .is_shard_per_file = true,
                                                 .needs_item_keys = t->session.settings.parallelization > 1,
                                                 .start_epoch_s = real->wall_ns(real) / 1000000000};
    enum sl_status status = sl_recording_build(&options, t->arena, &t->page, error);
    for (size_t i = 0; i < t->n_read && status == SL_OK; i++)
        t->page.shards[i].id = t->places.list[t->place_of[i]].id;
    return status;
}

/* All that was read, from `read_ms` on, is handled: every shard moves to the end of its page. */
static void move_on(struct tail *t, int64_t read_ms)
{
    for (size_t i = 0; i < t->n_read; i++) {
        struct sl_place *place = &t->places.list[t->place_of[i]];
        const struct sl_esm_shard *shard = &t->page.shards[i];
        if (shard->n)
            sl_places_set(&place->after, sl_arena_copy(t->arena, shard->records[shard->n - 1].id));
        sl_places_set(&place->iterator, t->next_iterators[i] == MORE ? NULL : t->next_iterators[i]);
        sl_places_handled(place, read_ms, shard->n ? shard->records[shard->n - 1].created_ms : 0);
        if (!t->next_iterators[i]) {
            place->is_done = true;
            place->ended_ms = read_ms;
            t->refreshed_ms = now_ms() - REFRESH_MS; /* its children may exist now */
        }
    }
}

/* Reads one page of all shards, and handles it. `*is_idle`: there was nothing. */
static enum sl_status cycle(struct tail *t, bool *is_idle, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    int64_t read_ms = wall_ms();
    *is_idle = false;
    if (t->refreshed_ms == 0 || now_ms() - t->refreshed_ms >= REFRESH_MS)
        status = refresh(t, error);
    if (status == SL_OK)
        status = read_all(t, error);
    if (status == SL_OK)
        status = build_page(t, error);
    if (status != SL_OK)
        return status;
    t->cycles++;
    add_counts(&t->session.recording, &t->page);
    bool is_through = t->page.n == 0 || run_mapping(t);
    if (!is_through)
        return SL_OK;
    bool has_ended = false;
    for (size_t i = 0; i < t->n_read; i++)
        has_ended |= !t->next_iterators[i];
    move_on(t, read_ms);
    bool has_moved =
        sl_places_through(&t->places, read_ms) && t->places.through_ms - t->saved_through_ms >= SAVE_MS;
    if (t->page.n || has_ended || has_moved)
        save(t);
    *is_idle = t->page.n == 0 && !has_ended;
    return SL_OK;
}

/* An answer that is not understood is asked for again, but not for ever: it may be about what is in the
 * stream. */
static bool is_lasting(const struct sl_error *error, unsigned *misunderstood)
{
    *misunderstood = strcmp(error->code, "BrokenAnswer") == 0 ? *misunderstood + 1 : 0;
    return *misunderstood == MISUNDERSTOOD_MAX;
}

static int loop(struct tail *t)
{
    unsigned idle = 0, misunderstood = 0;
    while (!stop_asked && !(t->is_once && idle >= IDLE_POLLS)) {
        struct sl_error error = SL_NO_ERROR;
        bool is_idle;
        t->arena = sl_arena_new(1024 * 1024);
        enum sl_status status = cycle(t, &is_idle, &error);
        sl_arena_destroy(t->arena);
        if (status != SL_OK)
            fprintf(stderr, "sluice tail: %s\n", error.text);
        if ((status != SL_OK && status != SL_RETRY) || is_lasting(&error, &misunderstood))
            return t->cycles ? SL_EXIT_FAILED : SL_EXIT_BAD;
        idle = status == SL_OK && is_idle ? idle + 1 : 0;
        if (status == SL_RETRY)
            wait_ms(RETRY_MS);
        else if (is_idle)
            wait_ms(POLL_MS);
    }
    return SL_EXIT_OK;
}

/* ---- the verb ---- */

static enum sl_status find_stream(struct tail *t, struct sl_error *error)
{
    const char *arn = t->stream;
    enum sl_status status = SL_OK;
    if (!arn)
        status = sl_live_find_stream(t->live, t->table, t->session.arena, &arn, error);
    if (status == SL_OK)
        status = sl_places_open(&t->places, t->checkpoint, arn, error);
    t->session.settings.stream_arn = t->places.stream_arn;
    return status;
}

static enum sl_status check_usage(const struct tail *t, struct sl_error *error)
{
    if (!t->table && !t->stream)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--table NAME or --stream ARN is missing (see sluice tail --help)");
    if (strcmp(t->from, "oldest") != 0 && strcmp(t->from, "latest") != 0)
        return sl_fail(error, SL_REJECT, "Usage", "--from must be oldest or latest, not \"%s\"", t->from);
    return SL_OK;
}

static enum sl_status start(struct tail *t, struct sl_error *error)
{
    /* A second signal ends it at once. */
    const struct sigaction action = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    const struct sl_live_options live = {environ, t->region, t->endpoint};
    if (check_usage(t, error) != SL_OK || sl_session_read_config(&t->session, error) != SL_OK ||
        sl_session_prepare(&t->session, error) != SL_OK || sl_live_open(&live, &t->live, error) != SL_OK ||
        find_stream(t, error) != SL_OK)
        return SL_REJECT;
    return sl_session_open(&t->session, error);
}

static int finish(struct tail *t, int result)
{
    struct sl_summary summary = {
        .recording = &t->session.recording, .mapping = t->total, .runner = t->session.runner};
    summary.processes = sl_runner_stats(t->session.runner);
    sl_summary_print(&summary, stdout);
    if (t->gaps)
        printf("gaps            %8u   records were gone before they could be read\n", t->gaps);
    bool has_lost = t->total.discarded || t->total.trimmed || t->gaps;
    return result == SL_EXIT_OK && has_lost ? SL_EXIT_FAILED : result;
}

static void clean_up(struct tail *t)
{
    sl_session_clean_up(&t->session);
    sl_live_close(t->live);
    sl_places_clean_up(&t->places);
}

static struct tail the = {
    .from = "oldest",
    .session = {
        .verb = "tail", .config = "sluice.json", .timeout_s = 60, .is_quiet = true, .handles_signals = true}};

static const struct sl_flag flags[] = {
    {"table", SL_FLAG_TEXT, &the.table, "NAME", "read the stream of this table"},
    {"stream", SL_FLAG_TEXT, &the.stream, "ARN", "read this stream"},
    {"config", SL_FLAG_TEXT, &the.session.config, "FILE", "the configuration (./sluice.json)"},
    {"checkpoint", SL_FLAG_TEXT, &the.checkpoint, "FILE",
     "where to continue, and where the progress is saved"},
    {"from", SL_FLAG_TEXT, &the.from, "WHERE",
     "oldest or latest: where to begin without a checkpoint (oldest)"},
    {"once", SL_FLAG_BOOL, &the.is_once, NULL, "end when all records in the stream are handled"},
    {"region", SL_FLAG_TEXT, &the.region, "REGION", "region of the table (AWS_REGION)"},
    {"endpoint-url", SL_FLAG_TEXT, &the.endpoint, "URL", "endpoint of DynamoDB Local, for example (AWS's)"},
    {"batch-size", SL_FLAG_INTEGER, &the.session.settings.batch_size, "N", "BatchSize, 1 to 10000 (100)"},
    {"parallelization", SL_FLAG_INTEGER, &the.session.settings.parallelization, "N",
     "ParallelizationFactor, 1 to 10 (1)"},
    {"max-retries", SL_FLAG_INTEGER, &the.session.settings.max_retries, "N",
     "MaximumRetryAttempts (-1: no limit)"},
    {"max-age", SL_FLAG_INTEGER, &the.session.settings.max_age_s, "S",
     "MaximumRecordAgeInSeconds (-1: no limit)"},
    {"bisect", SL_FLAG_BOOL, &the.session.settings.bisect, NULL, "BisectBatchOnFunctionError"},
    {"report-failures", SL_FLAG_BOOL, &the.session.settings.report_failures, NULL,
     "ReportBatchItemFailures (on)"},
    {"filter", SL_FLAG_LIST, &the.session.filters, "PATTERN",
     "FilterCriteria: one pattern, as JSON; may be repeated"},
    {"on-failure", SL_FLAG_TEXT, &the.session.on_failure, "FILE",
     "OnFailure destination, as in sluice replay"},
    {"trace", SL_FLAG_TEXT, &the.session.trace, "FILE", "write one JSON line per invocation"},
    {"timeout", SL_FLAG_INTEGER, &the.session.timeout_s, "S", "timeout of an invocation, 1 to 900 (60)"},
    {"handler-path", SL_FLAG_TEXT, &the.session.handler_path, "FOLDERS",
     "folders of plugins, separated by ':'"},
    {0},
};

static const struct sl_usage usage = {
    .line = "tail [flags] --table NAME",
    .summary =
        "Reads a table's stream, in AWS or in DynamoDB Local, and runs the handlers on it as Lambda would:\n"
        "shard by shard, parents before children. Ctrl-C ends it; it then prints a summary. Exit status: 0 "
        "all\n"
        "handled, 1 something was discarded or was gone before it could be read, 2 bad usage.",
    .flags = flags,
};

int sl_verb_tail(int argc, char **argv)
{
    int n, result;
    struct sl_error error = SL_NO_ERROR;
    sl_esm_settings_init(&the.session.settings);
    the.session.settings.invocation_ms = 0;
    the.session.on_failure_mode = SL_FAILURES_APPEND; /* of the runs before this one */
    the.session.settings.report_failures = the.session.sets_report_failures = true;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    the.session.arena = sl_arena_new(256 * 1024);
    result = start(&the, &error) == SL_OK ? finish(&the, loop(&the)) : sl_flags_complain("tail", &error);
    clean_up(&the);
    return result;
}
