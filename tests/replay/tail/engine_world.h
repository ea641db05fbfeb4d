/* The engine between a scripted stream, a keeper and workers that do what a test says.
 *
 * A test's step is called under the mutex before each answer of the stream ("GetRecords"), and at each turn
 * of the engine ("turn"): there it looks at what has happened, gives and takes shards, and ends the run. The
 * process's time runs faster (haste.h). */
#ifndef SL_TESTS_REPLAY_TAIL_ENGINE_WORLD_H
#define SL_TESTS_REPLAY_TAIL_ENGINE_WORLD_H

#include "tests/replay/tail/stream_world.h"
#include "tests/support/haste.h"

#include "base/clock.h"
#include "replay/tail/engine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WORKERS    4
#define TEXT_BYTES 16384
#define STEPS_MOST 100000 /* then a run that has not ended is told to */

struct kept {
    char shard[32], after[48];
    int64_t since_ms;
    bool is_done, is_known;
};

static struct engine_world {
    struct scripted_server *server;
    struct sl_live *live;
    struct sl_worker_kind kind;
    struct own_worker {
        struct sl_worker base;
        bool is_cancelled;
    } workers[WORKERS];
    struct sl_keeper_ops ops;
    struct sl_vitals_board *board;
    struct sl_esm_settings settings;
    struct sl_engine_options options;
    struct sl_engine_result result;
    int bell;
    volatile sig_atomic_t stop;
    int64_t began_ms, took_ms;
    char *said; /* what it wrote to standard error */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    size_t steps;
    bool is_stuck;
    void (*step)(const char *operation);

    /* The keeper. */
    struct kept places[SHARDS];
    size_t n_places;
    struct {
        enum sl_keeper_event_kind kind;
        size_t place;
    } events[4 * SHARDS];
    size_t n_events;
    const char *others; /* shards that are not given: " a b " */
    int64_t until_ms;
    char saved[TEXT_BYTES]; /* "a@3 a@3. ": with a dot it is done */
    size_t n_listings, n_listed, least_listed;
    int64_t through_ms;
    bool has_gone_back;   /* it, or a place */
    const char *followed; /* NULL: it cannot */

    /* The workers. */
    char handled[TEXT_BYTES]; /* " 1 2 3 " */
    char given[TEXT_BYTES];   /* "2:4 ": the worker, and the first record of its batch */
    int64_t task_until_ms;    /* of the last one */
    unsigned holds;           /* batches that begin below this number wait until they are broken off */
    bool is_deaf;             /* they are not */
    size_t held, cancelled;
    int64_t takes_ms;           /* of each batch */
    unsigned fails, fail_times; /* the batch that begins with this one fails so often */
    size_t open_fails;          /* so many openings of workers but the first fail */
} e;

static inline bool has_word(const char *text, const char *word)
{
    char spaced[64];
    snprintf(spaced, sizeof(spaced), " %s ", word);
    return text && strstr(text, spaced);
}

/* ---- the keeper ---- */

static inline struct kept *place_of(const char *shard)
{
    for (size_t i = 0; i < e.n_places; i++)
        if (strcmp(e.places[i].shard, shard) == 0)
            return &e.places[i];
    struct kept *made = &e.places[e.n_places++];
    *made = (struct kept){.is_known = false};
    snprintf(made->shard, sizeof(made->shard), "%s", shard);
    return made;
}

static inline void ring(void)
{
    (void)!write(e.bell, &(uint64_t){1}, sizeof(uint64_t));
}

static inline void release(void)
{
    e.holds = 0;
    pthread_cond_broadcast(&e.changed);
}

static inline void stop(void)
{
    e.stop = 1;
    ring();
}

static inline void tell(enum sl_keeper_event_kind kind, const char *shard)
{
    e.events[e.n_events].kind = kind;
    e.events[e.n_events++].place = (size_t)(place_of(shard) - e.places);
    ring();
}

static inline void keeper_listed(void *self, const struct sl_keeper_listing *listing)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    e.n_listings++;
    e.n_listed = listing->n;
    e.least_listed = e.n_listings == 1 || listing->n < e.least_listed ? listing->n : e.least_listed;
    for (size_t i = 0; i < listing->n; i++) {
        struct kept *place = place_of(listing->shards[i].id);
        if (place->is_known)
            continue;
        place->is_known = true;
        if (!place->after[0] && listing->is_from_latest)
            place->since_ms = listing->now_ms;
        if (!has_word(e.others, place->shard))
            tell(SL_KEEPER_GAINED, place->shard);
        if (place->is_done)
            tell(SL_KEEPER_ENDED, place->shard);
    }
    pthread_mutex_unlock(&e.mutex);
}

static inline void keeper_save(void *self, const struct sl_keeper_place *places, size_t n)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    for (size_t i = 0; i < n; i++) {
        struct kept *place = place_of(places[i].shard);
        bool was_done = place->is_done;
        e.has_gone_back |=
            places[i].after && strtoul(places[i].after, NULL, 10) < strtoul(place->after, NULL, 10);
        snprintf(place->after, sizeof(place->after), "%s", places[i].after ? places[i].after : "");
        place->is_done = places[i].is_done;
        if (place->is_done && !was_done)
            tell(SL_KEEPER_ENDED, place->shard);
        snprintf(e.saved + strlen(e.saved), sizeof(e.saved) - strlen(e.saved), "%s@%s%s ", place->shard,
                 place->after, place->is_done ? "." : "");
    }
    pthread_mutex_unlock(&e.mutex);
}

static inline void keeper_save_through(void *self, int64_t through_ms)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    e.has_gone_back |= through_ms < e.through_ms;
    e.through_ms = through_ms;
    pthread_mutex_unlock(&e.mutex);
}

/* Each turn of the engine, and each request. */
static inline void step(const char *operation)
{
    if (e.steps++ == STEPS_MOST) {
        e.is_stuck = true;
        release();
        stop();
    }
    if (e.step && !e.is_stuck)
        e.step(operation);
}

static inline bool keeper_take(void *self, struct sl_keeper_event *out)
{
    static struct kept told;
    (void)self;
    pthread_mutex_lock(&e.mutex);
    step("turn");
    bool has_one = e.n_events > 0;
    if (has_one) {
        told = e.places[e.events[0].place];
        *out = (struct sl_keeper_event){
            .kind = e.events[0].kind,
            .shard = told.shard,
            .place = {.shard = told.shard,
                      .after = told.after[0] ? told.after : NULL,
                      .since_ms = told.since_ms,
                      .is_done = told.is_done},
            .text = "the keeper's own text",
        };
        memmove(e.events, e.events + 1, --e.n_events * sizeof(e.events[0]));
    }
    pthread_mutex_unlock(&e.mutex);
    return has_one;
}

static inline int64_t keeper_until_ms(void *self, const char *shard)
{
    (void)self;
    (void)shard;
    pthread_mutex_lock(&e.mutex);
    int64_t until_ms = e.until_ms;
    pthread_mutex_unlock(&e.mutex);
    return until_ms;
}

static inline bool keeper_follow(void *self, const char *stream_arn, struct sl_error *error)
{
    (void)self;
    pthread_mutex_lock(&e.mutex);
    bool can = e.followed && strcmp(e.followed, stream_arn) == 0;
    e.n_places = e.n_events = 0;
    pthread_mutex_unlock(&e.mutex);
    if (!can)
        (void)sl_fail(error, SL_REJECT, "Other", "it is another's");
    return can;
}

/* ---- the workers ---- */

static inline enum sl_status worker_open(struct sl_worker *worker, struct sl_error *error)
{
    pthread_mutex_lock(&e.mutex);
    bool fails = worker->number > 0 && e.open_fails > 0;
    e.open_fails -= fails;
    pthread_mutex_unlock(&e.mutex);
    return fails ? sl_fail(error, SL_REJECT, "NoSandbox", "there is none left") : SL_OK;
}

static inline bool is_held(const struct own_worker *own, unsigned first)
{
    return first < e.holds && (e.is_deaf || !own->is_cancelled);
}

static inline void note_handled(struct sl_span payload)
{
    static const char name[] = "\"SequenceNumber\":\"";
    const char *at = payload.ptr, *end = payload.ptr + payload.len;
    while ((at = memmem(at, (size_t)(end - at), name, strlen(name)))) {
        at += strlen(name);
        snprintf(e.handled + strlen(e.handled), sizeof(e.handled) - strlen(e.handled), "%lu ",
                 strtoul(at, NULL, 10));
    }
}

static inline void worker_run(struct sl_worker *worker, struct sl_pool_task *task)
{
    struct own_worker *own = (struct own_worker *)worker;
    unsigned first = (unsigned)strtoul(task->inv->records[0]->id.ptr, NULL, 10);
    pthread_mutex_lock(&e.mutex);
    e.task_until_ms = task->until_ms;
    snprintf(e.given + strlen(e.given), sizeof(e.given) - strlen(e.given), "%zu:%u ", worker->number, first);
    e.held++;
    while (is_held(own, first))
        pthread_cond_wait(&e.changed, &e.mutex);
    e.held--;
    struct timespec takes = {.tv_sec = e.takes_ms / 1000, .tv_nsec = e.takes_ms % 1000 * 1000000};
    pthread_mutex_unlock(&e.mutex);
    nanosleep(&takes, NULL);
    pthread_mutex_lock(&e.mutex);
    bool fails = own->is_cancelled || (e.fail_times && first == e.fails);
    e.fail_times -= !own->is_cancelled && fails;
    own->is_cancelled = false;
    task->outcome = fails ? SL_ESM_FAILED : SL_ESM_ANSWERED;
    sl_buffer_reset(&task->body);
    sl_buffer_add_str(&task->body, "{}");
    if (!fails)
        note_handled(task->inv->payload);
    pthread_mutex_unlock(&e.mutex);
}

static inline void worker_cancel(struct sl_worker *worker)
{
    pthread_mutex_lock(&e.mutex);
    ((struct own_worker *)worker)->is_cancelled = true;
    e.cancelled++;
    pthread_cond_broadcast(&e.changed);
    pthread_mutex_unlock(&e.mutex);
}

static inline void worker_close(struct sl_worker *worker)
{
    (void)worker;
}

static inline size_t worker_routes(const struct sl_worker *worker)
{
    return 1 + (worker->number == 0);
}

static inline void worker_route(const struct sl_worker *worker, size_t i, struct sl_runner_route *out)
{
    static char names[2][8] = {"both", "first"};
    (void)worker;
    *out = (struct sl_runner_route){.name = names[i], .handler = names[i], .target = names[i], .calls = 1};
}

/* ---- the run ---- */

static inline void step_and_answer(void *arg, const struct scripted_request *request,
                                   struct scripted_reply *reply)
{
    struct sl_span target = scripted_header(request, "x-amz-target");
    const char *dot = target.ptr ? memchr(target.ptr, '.', target.len) : NULL;
    pthread_mutex_lock(&e.mutex);
    char operation[64] = "";
    if (dot)
        snprintf(operation, sizeof(operation), "%.*s", (int)(target.ptr + target.len - dot - 1), dot + 1);
    step(operation);
    answer(arg, request, reply);
    pthread_mutex_unlock(&e.mutex);
}

static inline int engine_set_up(void **state)
{
    static char *environment[] = {"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=us-east-1",
                                  "AWS_MAX_ATTEMPTS=1", NULL};
    struct sl_error error = SL_NO_ERROR;
    (void)state;
    w = (struct world){.status = "ENABLED", .latest = ARN, .times = 1};
    e = (struct engine_world){.until_ms = INT64_MAX, .bell = eventfd(0, EFD_NONBLOCK), .handled = " "};
    pthread_mutex_init(&e.mutex, NULL);
    pthread_cond_init(&e.changed, NULL);
    e.server = scripted_server_start(step_and_answer, NULL);
    const struct sl_live_options live = {environment, NULL, scripted_server_url(e.server)};
    if (sl_live_open(&live, &e.live, &error) != SL_OK)
        fail_msg("%s", error.text);
    e.board = sl_vitals_board_new();
    e.kind = (struct sl_worker_kind){.open = worker_open,
                                     .run = worker_run,
                                     .close = worker_close,
                                     .cancel = worker_cancel,
                                     .routes = worker_routes,
                                     .route = worker_route};
    e.ops = (struct sl_keeper_ops){.name = "the keeper",
                                   .listed = keeper_listed,
                                   .save = keeper_save,
                                   .save_through = keeper_save_through,
                                   .take = keeper_take,
                                   .until_ms = keeper_until_ms,
                                   .follow = keeper_follow};
    sl_esm_settings_init(&e.settings);
    e.settings.invocation_ms = 0;
    e.settings.report_failures = true;
    e.options = (struct sl_engine_options){.live = e.live,
                                           .stream_arn = ARN,
                                           .keeper = {.ops = &e.ops},
                                           .bell = e.bell,
                                           .stop = &e.stop,
                                           .settings = &e.settings,
                                           .memory_bytes = (size_t)64 * 1024 * 1024,
                                           .board = e.board};
    return 0;
}

static inline int engine_tear_down(void **state)
{
    (void)state;
    scripted_server_stop(e.server);
    sl_live_close(e.live);
    sl_vitals_board_destroy(e.board);
    close(e.bell);
    free(e.said);
    pthread_mutex_destroy(&e.mutex);
    pthread_cond_destroy(&e.changed);
    return 0;
}

/* Runs it with so many workers, until it ends by itself or the step has stopped it. */
static inline void run_engine(size_t n_workers)
{
    struct sl_worker *workers[WORKERS];
    struct sl_clock *clock = sl_clock_system();
    char *folder = test_folder_in_memory();
    const char *path = json_printf("%s/err", folder);
    for (size_t i = 0; i < n_workers; i++) {
        e.workers[i] = (struct own_worker){.base = {.kind = &e.kind, .number = i}};
        workers[i] = &e.workers[i].base;
    }
    fflush(stderr);
    int before = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(before >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    e.options.pool = sl_pool_new(workers, n_workers, e.bell);
    e.began_ms = clock->now_ms(clock);
    e.stop = 0;
    sl_engine_run(&e.options, &e.result);
    e.took_ms = clock->now_ms(clock) - e.began_ms;
    pthread_mutex_lock(&e.mutex);
    release();
    e.is_deaf = false;
    pthread_mutex_unlock(&e.mutex);
    assert_true(sl_pool_close(e.options.pool, 600000));
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    free(e.said);
    e.said = test_read(path, NULL);
    test_folder_remove(folder);
    if (e.is_stuck)
        fail_msg("it does not end; handled:%s\nsaved: %s\n%s", e.handled, e.saved, e.said);
}

/* ---- what has happened ---- */

static inline size_t times(const char *text, const char *words)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, words)); at += strlen(words))
        n++;
    return n;
}

static inline bool has_handled(unsigned number)
{
    char word[16];
    snprintf(word, sizeof(word), "%u", number);
    return has_word(e.handled, word);
}

static inline bool has_saved(const char *shard, const char *place)
{
    char word[1024];
    snprintf(word, sizeof(word), "%s@%s ", shard, place);
    return strstr(e.saved, word);
}

static inline int numbers_in_order(const void *a, const void *b)
{
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
    return (x > y) - (x < y);
}

/* The records that were handled, sorted. */
static inline const char *all_handled(void)
{
    static char text[TEXT_BYTES];
    unsigned long numbers[2048];
    size_t count = 0, n = (size_t)snprintf(text, sizeof(text), " ");
    for (const char *at = e.handled + 1; *at && count < 2048; at += strcspn(at, " ") + 1)
        numbers[count++] = strtoul(at, NULL, 10);
    qsort(numbers, count, sizeof(numbers[0]), numbers_in_order);
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lu ", numbers[i]);
    return text;
}

static inline void assert_said(const char *words, size_t wanted)
{
    if (times(e.said, words) != wanted)
        fail_msg("\"%s\" is not there %zu times:\n%s", words, wanted, e.said);
}

/* The newest snapshot; lives until the next one. */
static inline const struct sl_vitals *vitals(void)
{
    static struct sl_arena *arena;
    static struct sl_vitals now;
    if (!arena)
        arena = sl_arena_new(16 * 1024);
    sl_arena_reset(arena);
    return sl_vitals_take(e.board, arena, &now) ? &now : NULL;
}

static inline const struct sl_vitals_shard *vitals_of(const char *shard)
{
    const struct sl_vitals *now = vitals();
    for (size_t i = 0; now && i < now->n_shards; i++)
        if (strcmp(now->shards[i].id, shard) == 0)
            return &now->shards[i];
    return NULL;
}

#endif
