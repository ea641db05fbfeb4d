/* The engine between a scripted stream, a keeper and workers that do what a test says.
 *
 * A test's step is called under the mutex before each answer of the stream ("GetRecords"), and at each turn
 * of the engine ("turn"): there it looks at what has happened, gives and takes shards, and ends the run. The
 * process's time runs faster (haste.h). */
#ifndef SL_TESTS_LIVE_TAIL_ENGINE_WORLD_H
#define SL_TESTS_LIVE_TAIL_ENGINE_WORLD_H

#include "tests/live/tail/engine_parts.h"
#include "tests/support/haste.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/eventfd.h>

/* ---- the workers ---- */

static inline enum sl_status worker_open(struct sl_worker *worker, struct sl_error *error)
{
    pthread_mutex_lock(&e.mutex);
    size_t left = e.open_fails;
    bool fails = worker->number > 0 && left > 0;
    e.open_fails -= fails;
    pthread_mutex_unlock(&e.mutex);
    return fails ? sl_fail(error, SL_REJECT, "NoSandbox", "there is none left (%zu)", left) : SL_OK;
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
    const struct sl_vars vars = {.list = (const char *const *)environment};
    const struct sl_live_options live = {&vars, NULL, scripted_server_url(e.server)};
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
    int before = test_stderr_into(path);
    e.options.pool = sl_pool_new(workers, n_workers, e.bell);
    e.began_ms = clock->now_ms(clock);
    e.stop = 0;
    sl_engine_run(&e.options, &e.result);
    e.took_ms = clock->now_ms(clock) - e.began_ms;
    if (e.is_deaf) { /* the process is about to end */
        haste_forget();
        e.was_closed = sl_pool_close(e.options.pool, 0);
        test_folder_remove(folder);
        return;
    }
    pthread_mutex_lock(&e.mutex);
    release();
    pthread_mutex_unlock(&e.mutex);
    assert_true(sl_pool_close(e.options.pool, 600000));
    test_stderr_back(before);
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

static inline const struct sl_vitals_shard *vitals_of(const struct sl_vitals *now, const char *shard)
{
    for (size_t i = 0; now && i < now->n_shards; i++)
        if (strcmp(now->shards[i].id, shard) == 0)
            return &now->shards[i];
    return NULL;
}

#endif
