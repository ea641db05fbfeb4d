/* The simulated mapping against a naive model of it, over random worlds: shards and lanes, batches and
 * windows, filters, retries, ages, bisection, partial answers, tumbling windows, records that come in pages.
 * The model follows AWS's rules and the choices of esm_choices.h, one lane after the other, record by record
 * and part by part. Both write down each call, what was decided and what was given up: the two texts must be
 * equal. */
#include "tests/esm/esm_model.h"

#include "base/arena.h"
#include "tests/support/records.h"

/* ---- the model ---- */

struct model {
    struct log log;
    const struct sl_esm_shard *shard;
    const struct sl_esm_record *mine[RECORDS];
    size_t n, next;
    bool is_done[RECORDS], was_delivered[RECORDS], is_blamed[RECORDS];
    int64_t now_ms, free_ms, throttles;
    int64_t wait_ms; /* before the batch's next call */
    bool has_window;
    int64_t window;
    char state[STATE];
    size_t state_len;
    struct sl_esm_stats stats;
};
static struct model m;

static int64_t pause_of(int64_t failures)
{
    static const int64_t pauses[] = {500, 1000, 2000, 4000, 8000, 16000, 32000, 60000};
    return pauses[failures < 8 ? failures - 1 : 7];
}

static int64_t wall(void)
{
    return w.wall_ms + m.now_ms;
}

static int64_t window_end_ms(void)
{
    return (m.window + 1) * w.settings.tumbling_s * 1000 - w.wall_ms;
}

static bool is_trimmed(const struct sl_esm_record *r)
{
    int64_t since = r->available_ms < w.wall_ms ? w.wall_ms : r->available_ms;
    return wall() - since > w.settings.retention_s * 1000;
}

static bool is_old(const struct sl_esm_record *r)
{
    return is_trimmed(r) ||
           (w.settings.max_age_s >= 0 && wall() - r->created_ms > w.settings.max_age_s * 1000);
}

static void give_up(const size_t *at, size_t n, enum sl_esm_condition condition, int64_t attempts,
                    bool was_error)
{
    const struct sl_esm_record *records[RECORDS];
    for (size_t i = 0; i < n; i++) {
        records[i] = m.mine[at[i]];
        m.is_done[at[i]] = true;
        m.stats.beside += m.was_delivered[at[i]] && !m.is_blamed[at[i]];
    }
    *(condition == SL_ESM_TRIMMED ? &m.stats.trimmed : &m.stats.discarded) += n;
    say_discard(&m.log, &(struct sl_esm_discard){.condition = condition,
                                                 .records = records,
                                                 .n = n,
                                                 .invoke_count = attempts ? attempts : 1,
                                                 .was_function_error = was_error,
                                                 .wall_ms = wall()});
}

/* Gives up those at the beginning that are too old, neighbours with the same reason together; returns their
 * number. */
static size_t give_up_old(const size_t *at, size_t n, int64_t attempts, bool was_error)
{
    size_t from = 0;
    while (from < n && is_old(m.mine[at[from]])) {
        bool trimmed = is_trimmed(m.mine[at[from]]);
        size_t to = from;
        while (to < n && is_old(m.mine[at[to]]) && is_trimmed(m.mine[at[to]]) == trimmed)
            to++;
        give_up(at + from, to - from, trimmed ? SL_ESM_TRIMMED : SL_ESM_AGE_EXCEEDED, attempts, was_error);
        from = to;
    }
    return from;
}

static void model_event(const size_t *at, size_t n, bool is_final, bool is_early, struct sl_buffer *b)
{
    sl_buffer_printf(b, "{\"Records\":[");
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(b, "%s%.*s", i ? "," : "", SL_ARG(m.mine[at[i]]->text));
    sl_buffer_printf(b, "]");
    if (w.settings.tumbling_s) {
        char start[SL_TIME_BYTES], end[SL_TIME_BYTES];
        sl_time_text(m.window * w.settings.tumbling_s * 1000000000, start);
        sl_time_text((m.window + 1) * w.settings.tumbling_s * 1000000000, end);
        sl_buffer_printf(b, ",\"window\":{\"start\":\"%.19sZ\",\"end\":\"%.19sZ\"},\"state\":", start, end);
        sl_buffer_add_span(b, m.state_len ? sl_span(m.state, m.state_len) : SL_LIT("{}"));
        sl_buffer_printf(b,
                         ",\"shardId\":\"%s\",\"eventSourceARN\":\"%s\",\"isFinalInvokeForWindow\":%s,"
                         "\"isWindowTerminatedEarly\":%s",
                         m.shard->id, w.settings.stream_arn, is_final ? "true" : "false",
                         is_early ? "true" : "false");
    }
    sl_buffer_printf(b, "}");
}

/* Waits, and calls the function; the clock then stands at the end of the call. */
static struct answer call(const size_t *at, size_t n, int64_t attempt, bool is_final, bool is_early)
{
    const struct sl_esm_record *records[RECORDS];
    for (size_t i = 0; i < n; i++)
        records[i] = m.mine[at[i]];
    struct sl_buffer event;
    sl_buffer_init(&event, 4 * 1024 * 1024);
    m.now_ms += m.wait_ms;
    m.wait_ms = 0;
    model_event(at, n, is_final, is_early, &event);
    say_call(&m.log, &(struct sl_esm_invocation){.records = records,
                                                 .n = n,
                                                 .payload = sl_buffer_span(&event),
                                                 .time_ms = m.now_ms,
                                                 .attempt = attempt,
                                                 .is_window = w.settings.tumbling_s > 0,
                                                 .is_final = is_final});
    sl_buffer_clean_up(&event);
    struct answer a = ask(records, n, attempt, m.now_ms);
    m.now_ms += (w.uses_begin ? 0 : a.ms) + w.settings.invocation_ms;
    m.stats.invocations += a.outcome != SL_ESM_THROTTLED;
    m.stats.throttles += a.outcome == SL_ESM_THROTTLED;
    m.stats.function_errors += a.outcome == SL_ESM_FAILED;
    m.throttles = a.outcome == SL_ESM_THROTTLED ? m.throttles + 1 : 0;
    return a;
}

static void decide(enum sl_esm_verb verb, size_t failed, bool is_malformed)
{
    struct sl_esm_decision d = {.verb = verb, .failed = failed, .is_malformed = is_malformed};
    for (size_t i = 0; i < m.n && m.is_done[i]; i++)
        d.checkpoint = m.mine[i]->id;
    say_decision(&m.log, &d);
}

/* The last call of a window, until it succeeds or the stream would have dropped the records. */
static void end_window(bool is_early)
{
    for (int64_t attempts = 0;;) {
        struct answer a = call(NULL, 0, attempts + 1, true, is_early);
        bool is_bad =
            a.outcome == SL_ESM_ANSWERED && (a.no_state || (w.settings.report_failures && a.is_bad));
        bool is_good = a.outcome == SL_ESM_ANSWERED && !is_bad;
        bool is_over = m.now_ms - window_end_ms() > w.settings.retention_s * 1000;
        m.stats.ignored_answers +=
            a.outcome == SL_ESM_ANSWERED && !a.no_state && !w.settings.report_failures && a.is_bad;
        if (is_good || is_over) {
            m.has_window = is_early;
            m.state_len = 0;
            decide(is_good ? SL_ESM_ADVANCE : SL_ESM_DISCARD, 0, is_bad);
            return;
        }
        decide(SL_ESM_RETRY, 0, is_bad);
        if (a.outcome != SL_ESM_THROTTLED) {
            m.stats.retries++;
            m.wait_ms = pause_of(++attempts);
        } else {
            m.wait_ms = pause_of(m.throttles);
        }
    }
}

static void deliver(const size_t *at, size_t n);

/* All of a part failed after `attempts`. Returns how many of its first records are given up; n: it is over.
 */
static size_t after_failure(const size_t *at, size_t n, int64_t attempts, bool was_error, bool is_malformed)
{
    m.stats.failed_batches++;
    for (size_t i = 0; i < n; i++) {
        m.stats.failed += !m.was_delivered[at[i]];
        m.was_delivered[at[i]] = true;
        m.is_blamed[at[i]] |= n == 1;
    }
    size_t old = give_up_old(at, n, attempts, was_error);
    if (old == n) {
        decide(SL_ESM_DISCARD, 0, is_malformed);
    } else if (w.settings.bisect && !is_malformed && n - old > 1) {
        size_t half = (n - old) / 2;
        m.stats.splits++;
        decide(SL_ESM_BISECT, 0, false);
        m.wait_ms = 500;
        deliver(at + old, half);
        size_t late = give_up_old(at + old + half, n - old - half, 0, false);
        deliver(at + old + half + late, n - old - half - late);
        return n;
    } else if (w.settings.max_retries >= 0 && attempts == w.settings.max_retries + 1) {
        give_up(at + old, n - old, SL_ESM_RETRIES_EXHAUSTED, attempts, was_error);
        decide(SL_ESM_DISCARD, 0, is_malformed);
        return n;
    } else {
        m.stats.retries++;
        decide(old ? SL_ESM_DISCARD : SL_ESM_RETRY, 0, is_malformed);
        m.wait_ms = pause_of(attempts);
    }
    return old;
}

/* Reads an answer. Returns the number of records that are done; SIZE_MAX: it is malformed. */
static size_t read_answer(const struct answer *a, const size_t *at, size_t n)
{
    size_t done = n;
    if (w.settings.tumbling_s && a->no_state)
        return SIZE_MAX;
    if (!w.settings.report_failures) {
        m.stats.ignored_answers += a->n_names || a->is_bad;
        return n;
    }
    for (size_t k = 0; k < a->n_names; k++)
        for (size_t i = 0; i < n; i++)
            if (m.mine[at[i]] == &w.records[a->names[k]]) {
                m.is_blamed[at[i]] = true;
                done = i < done ? i : done;
            }
    m.stats.partial_answers += !a->is_bad && done < n;
    return a->is_bad ? SIZE_MAX : done;
}

/* The first `done` of a part are done, and its state is the window's. True: it was too large, so the window
 * has ended. */
static void advance(const struct answer *a, const size_t *at, size_t n, size_t done)
{
    for (size_t i = 0; i < done; i++)
        m.is_done[at[i]] = true;
    m.stats.done += done;
    m.state_len = w.settings.tumbling_s ? write_state(a, m.state) : 0;
    decide(done == n ? SL_ESM_ADVANCE : SL_ESM_CHECKPOINT, done, false);
    m.wait_ms = done < n ? 500 : 0;
    if (m.state_len > SL_ESM_STATE_BYTES)
        end_window(true);
}

static void deliver(const size_t *at, size_t n)
{
    for (int64_t attempts = 0; n;) {
        struct answer a = call(at, n, attempts + 1, false, false);
        if (a.outcome == SL_ESM_THROTTLED) {
            size_t old = give_up_old(at, n, attempts, false);
            at += old, n -= old;
            decide(n ? SL_ESM_RETRY : SL_ESM_DISCARD, 0, false);
            m.wait_ms = n ? pause_of(m.throttles) : 0;
            continue;
        }
        size_t done = a.outcome == SL_ESM_ANSWERED ? read_answer(&a, at, n) : 0, old;
        if (done && done <= n) {
            advance(&a, at, n, done);
            at += done, n -= done;
            old = give_up_old(at, n, 0, false);
            attempts = 0;
        } else {
            m.stats.malformed_answers += done > n;
            old = after_failure(at, n, ++attempts, a.outcome == SL_ESM_FAILED, done > n);
        }
        at += old, n -= old;
    }
}

/* ---- reading ---- */

/* Whether the record may not join the open window; opens one when there is none. */
static bool is_later(const struct sl_esm_record *r)
{
    int64_t length_ms = w.settings.tumbling_s * 1000, window = 0;
    if (!length_ms)
        return false;
    while (window * length_ms > r->created_ms)
        window--;
    window = window ? window : r->created_ms / length_ms;
    if (!m.has_window) {
        m.window = window;
        m.state_len = 0;
    }
    m.has_window = true;
    return window > m.window;
}

/* Takes what can be read now; true: the batch cannot become larger. */
static bool take(size_t *at, size_t *n)
{
    for (; m.next < m.n; m.next++) {
        const struct sl_esm_record *r = m.mine[m.next];
        size_t bytes = 14 + (w.settings.tumbling_s ? 512 + m.state_len : 0) + r->text.len + 1, old[RECORDS],
               n_old = 0;
        if (r->available_ms > wall())
            return false;
        if (w.settings.n_filters && w.is_filtered[r - w.records]) {
            m.is_done[m.next] = true;
            m.stats.filtered++;
            continue;
        }
        for (size_t i = m.next; i < m.n && is_old(m.mine[i]) && is_trimmed(m.mine[i]) == is_trimmed(r); i++)
            if (m.mine[i]->available_ms <= wall() && (int64_t)n_old < w.settings.batch_size &&
                !(w.settings.n_filters && w.is_filtered[m.mine[i] - w.records]))
                old[n_old++] = i;
            else
                break;
        if (n_old) {
            give_up(old, n_old, is_trimmed(r) ? SL_ESM_TRIMMED : SL_ESM_AGE_EXCEEDED, 0, false);
            m.next = old[n_old - 1];
            continue;
        }
        for (size_t i = 0; i < *n; i++)
            bytes += m.mine[at[i]]->text.len + 1;
        if ((int64_t)*n == w.settings.batch_size || is_later(r) ||
            (*n && (int64_t)bytes > w.settings.payload_bytes))
            return true;
        at[(*n)++] = m.next;
    }
    return (int64_t)*n == w.settings.batch_size;
}

/* From one batch to the next. False: there are no more records. */
static bool turn(void)
{
    size_t at[RECORDS], n = 0;
    int64_t send_ms = INT64_MAX, length_ms = w.settings.window_s * 1000;
    for (;;) {
        bool is_full = take(at, &n);
        int64_t next_ms = m.next < m.n ? m.mine[m.next]->available_ms - w.wall_ms : INT64_MAX;
        if (n && send_ms == INT64_MAX)
            for (send_ms = length_ms ? m.free_ms + length_ms : m.now_ms; send_ms <= m.now_ms && length_ms;)
                send_ms += length_ms;
        if (n && (is_full || m.now_ms >= send_ms)) {
            deliver(at, n);
            break;
        }
        if (n == 0 && (is_full || (m.has_window && next_ms > window_end_ms()))) {
            m.now_ms = window_end_ms() > m.now_ms ? window_end_ms() : m.now_ms;
            end_window(false);
            break;
        }
        if (n == 0 && m.next == m.n)
            return false;
        m.now_ms = next_ms < send_ms ? next_ms : send_ms;
    }
    m.free_ms = m.now_ms;
    m.wait_ms = 0;
    return true;
}

/* Runs the records of one lane, from the moment at which its shard begins. */
static void run_model(int64_t begin_ms)
{
    m.now_ms = m.free_ms = begin_ms;
    while (turn()) {
    }
}

/* ---- the simulator, in the same world ---- */

static struct {
    struct sl_clock_virtual clock;
    int64_t base_ms, last_ms;
    int lane_of[SHARDS][RECORDS]; /* of an item of a shard; -1: not seen yet */
    bool is_lost;                 /* something was given up of an item whose lane nobody has seen */
    bool moves_clock, in_pages;
    char last_id[37];
    uint64_t random;
    size_t given[SHARDS], forgotten[SHARDS], lots[SHARDS][RECORDS], n_lots[SHARDS], n_dropped[SHARDS];
} s;
static struct log logs[SHARDS][LANES];
static char body[STATE + 512];

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&s.random) % n;
}

static int *lane_of(const struct sl_esm_record *r)
{
    size_t k = (size_t)(r - w.records);
    return &s.lane_of[k / RECORDS][strtoul(w.keys[k], NULL, 10)];
}

static void begin(void *self, struct sl_esm_invocation *inv)
{
    size_t shard = (size_t)(inv->shard - w.shards);
    (void)self;
    assert_true(inv->time_ms >= s.last_ms);
    assert_int_equal(s.clock.ms, s.base_ms + inv->time_ms);
    assert_int_equal(strlen(inv->request_id), 36);
    assert_string_not_equal(inv->request_id, s.last_id);
    snprintf(s.last_id, sizeof(s.last_id), "%s", inv->request_id);
    s.last_ms = inv->time_ms;
    inv->tag = &s;
    for (size_t i = 0; i < inv->n; i++) {
        int *lane = lane_of(inv->records[i]);
        assert_true(*lane < 0 || *lane == (int)inv->lane);
        *lane = (int)inv->lane;
        assert_true((size_t)(inv->records[i] - w.records) % RECORDS >= s.forgotten[shard]);
    }
    say_call(&logs[shard][inv->lane], inv);
}

static void invoke(void *self, struct sl_esm_invocation *inv, struct sl_esm_result *out)
{
    if (!w.uses_begin)
        begin(self, inv);
    assert_ptr_equal(inv->tag, &s);
    struct answer a = ask(inv->records, inv->n, inv->attempt, inv->time_ms);
    *out = (struct sl_esm_result){.outcome = a.outcome};
    *(s.moves_clock ? &s.clock.ms : &out->duration_ms) += a.ms;
    char *at = body;
    *at++ = '{';
    if (w.settings.tumbling_s && !a.no_state) {
        at += snprintf(at, 16, " \"state\" : ");
        at += write_state(&a, at);
        *at++ = ',';
    }
    at += snprintf(at, 64, "\"batchItemFailures\":[");
    for (size_t i = 0; i < a.n_names; i++)
        at += snprintf(at, 64, "%s{\"itemIdentifier\":\"%s\"}", i ? "," : "", w.ids[a.names[i]]);
    at += snprintf(at, 64, "%s]}", !a.is_bad ? "" : a.n_names ? ",{\"itemIdentifier\":\"-\"}" : "[7]");
    out->body = sl_span(body, (size_t)(at - body));
}

static void decided(void *self, const struct sl_esm_invocation *inv, const struct sl_esm_result *result,
                    const struct sl_esm_decision *d)
{
    (void)self;
    (void)result;
    say_decision(&logs[inv->shard - w.shards][inv->lane], d);
}

static void discarded(void *self, const struct sl_esm_discard *d)
{
    (void)self;
    int lane = w.settings.parallelization > 1 ? *lane_of(d->records[0]) : 0;
    for (size_t i = 0; i < d->n && w.settings.parallelization > 1; i++)
        s.is_lost |= *lane_of(d->records[i]) < 0;
    assert_int_equal(strlen(d->request_id), 36);
    if (lane >= 0)
        say_discard(&logs[d->shard - w.shards][lane], d);
}

static size_t more(void *self, size_t shard, const struct sl_esm_record **records)
{
    (void)self;
    size_t left = w.n_of[shard] - s.given[shard], n = left ? 1 + draw(left < 7 ? left : 7) : 0;
    *records = &w.records[shard * RECORDS + s.given[shard]];
    size_t held = s.given[shard] - s.forgotten[shard]; /* of lots of at most 7 */
    assert_true(w.settings.n_filters || held <= 2 * (size_t)w.settings.batch_size + 14);
    s.given[shard] += n;
    s.lots[shard][s.n_lots[shard]++] = n;
    return n;
}

static void forget(void *self, size_t shard, size_t n)
{
    (void)self;
    assert_true(n > 0);
    for (; n; n--)
        s.forgotten[shard] += s.lots[shard][s.n_dropped[shard]++];
    assert_true(s.forgotten[shard] <= s.given[shard]);
}

/* ---- random worlds ---- */

static void new_settings(const struct sl_when *const *filters)
{
    struct sl_esm_settings *t = &w.settings;
    sl_esm_settings_init(t);
    t->batch_size = 1 + (int64_t)draw(12);
    t->window_s = draw(2) ? 0 : (int64_t)draw(8);
    t->max_retries = (int64_t)draw(6) - 1;
    t->max_age_s = draw(2) ? -1 : 60 + (int64_t)draw(3);
    t->retention_s = 61 + (int64_t)draw(200);
    t->tumbling_s = draw(3) ? 0 : 1 + (int64_t)draw(30);
    t->parallelization = t->tumbling_s || draw(3) ? 1 : 1 + (int64_t)draw(LANES);
    t->bisect = draw(2);
    t->report_failures = draw(2);
    t->n_filters = t->parallelization > 1 || draw(2) ? 0 : 1 + draw(2);
    /* The second one of three lets records through: alone, the last or the first of two. */
    t->filters = filters + (t->n_filters == 1 || t->batch_size % 2);
    t->payload_bytes = draw(3) ? t->payload_bytes : 10 + (int64_t)draw(200) + (t->tumbling_s ? 512 : 0);
    t->invocation_ms = (int64_t)draw(3) * 50;
    t->seed = draw(100);
    assert_int_equal(sl_esm_settings_check(t, NULL), SL_OK);
    w.errors = (unsigned)draw(40), w.throttles = draw(3) ? 0 : (unsigned)draw(30);
    w.partials = (unsigned)draw(30), w.malformed = draw(3) ? 0 : (unsigned)draw(30);
    w.uses_begin = draw(2);
    s.moves_clock = !w.uses_begin && draw(2);
    s.in_pages = t->parallelization == 1 && draw(2);
}

/* `kinds`: a record that the filters let through, and one that they do not. */
static void new_records(size_t shard, const struct sl_record *const kinds[2], bool is_late)
{
    int64_t at = w.wall_ms - 2000;
    w.n_of[shard] = draw(8) ? draw(RECORDS) : 0;
    for (size_t i = 0; i < w.n_of[shard]; i++) {
        size_t k = shard * RECORDS + i;
        snprintf(w.ids[k], sizeof(w.ids[k]), "%zu", 1000 + k);
        snprintf(w.keys[k], sizeof(w.keys[k]), "%zu", (size_t)draw(8));
        snprintf(w.texts[k], sizeof(w.texts[k]), "{\"SequenceNumber\":\"%s\",\"x\":%.*s}", w.ids[k],
                 1 + (int)draw(20), "77777777777777777777");
        at += draw(3) ? 0 : (int64_t)draw(is_late ? 9000 : 900);
        w.is_filtered[k] = draw(4) == 0;
        w.is_poison[k] = draw(24) == 0;
        w.records[k] = (struct sl_esm_record){.text = sl_span_str(w.texts[k]),
                                              .id = sl_span_str(w.ids[k]),
                                              .item_key = sl_span_str(w.keys[k]),
                                              .created_ms = at - (draw(6) ? 0 : (int64_t)draw(70000)),
                                              .available_ms = at,
                                              .record = kinds[w.is_filtered[k]]};
    }
}

static void new_world(uint64_t seed, const struct sl_when *const *filters,
                      const struct sl_record *const kinds[2])
{
    memset(&w, 0, sizeof(w));
    memset(&s, 0, sizeof(s));
    memset(s.lane_of, 0xFF, sizeof(s.lane_of));
    for (size_t i = 0; i < SHARDS * LANES; i++)
        logs[i / LANES][i % LANES].len = 0;
    s.random = w.seed = seed;
    w.wall_ms = draw(8) ? 1573689197000 + (int64_t)draw(5000) : 30000;
    new_settings(filters);
    w.n_shards = 1 + draw(SHARDS);
    bool is_late = draw(2);
    for (size_t i = 0; i < w.n_shards; i++) {
        static const char *const names[] = {"shard-a", "shard-b", "shard-c"};
        new_records(i, kinds, is_late);
        w.shards[i] = (struct sl_esm_shard){.id = names[i],
                                            .parent = (int)draw(i + 1) - 1,
                                            .records = &w.records[i * RECORDS],
                                            .n = s.in_pages ? 0 : w.n_of[i]};
    }
    s.base_ms = (int64_t)draw(100000);
    sl_clock_virtual_init(&s.clock, (w.wall_ms - s.base_ms) * 1000000, 1);
    s.clock.ms = s.base_ms;
}

static struct sl_esm_stats simulate(void)
{
    struct sl_esm_driver driver = {
        .begin = w.uses_begin ? begin : NULL, .invoke = invoke, .decided = decided, .discarded = discarded};
    if (s.in_pages)
        driver.more = more, driver.forget = forget;
    struct sl_esm *esm = sl_esm_new(&w.settings, w.shards, w.n_shards, &s.clock, &driver);
    for (int64_t next = sl_esm_next_ms(esm); next >= 0; next = sl_esm_next_ms(esm)) {
        assert_true(sl_esm_step(esm));
        assert_int_equal(sl_esm_stats(esm).elapsed_ms, next);
    }
    assert_false(sl_esm_step(esm));
    for (size_t i = 0; i < w.n_shards; i++)
        assert_int_equal(sl_esm_checkpoint(esm, i), w.n_of[i]);
    struct sl_esm_stats stats = sl_esm_stats(esm);
    sl_esm_destroy(esm);
    return stats;
}

/* The records of a lane: those of items that were seen in it. */
static void model_lane(size_t shard, int lane, int64_t begin_ms)
{
    m.log.len = m.n = m.next = m.state_len = 0;
    m.throttles = 0;
    m.has_window = false;
    m.shard = &w.shards[shard];
    memset(m.is_done, 0, sizeof(m.is_done));
    memset(m.was_delivered, 0, sizeof(m.was_delivered));
    memset(m.is_blamed, 0, sizeof(m.is_blamed));
    for (size_t i = 0; i < w.n_of[shard]; i++) {
        const struct sl_esm_record *r = &w.records[shard * RECORDS + i];
        if (w.settings.parallelization == 1 || *lane_of(r) == lane)
            m.mine[m.n++] = r;
    }
    run_model(begin_ms);
}

/* Shows the first lines that differ. */
static void assert_same(uint64_t seed, const struct log *seen, const struct log *expected)
{
    size_t n = 0, line = 0;
    while (n < seen->len && n < expected->len && seen->text[n] == expected->text[n])
        line = seen->text[n++] == '\n' ? n : line;
    if (n < seen->len || n < expected->len)
        fail_msg("world %" PRIu64 ":\n%.300s\nthe model:\n%.300s", seed, seen->text + line,
                 expected->text + line);
}

static void the_simulator_does_what_the_model_does(void **state)
{
    (void)state;
    struct test_batch taken, other;
    struct sl_arena *arena = sl_arena_new(1 << 16);
    struct sl_when *when, *never;
    const struct sl_record *kinds[] = {test_record(&taken, "INSERT", "'Keys':{'k':{'S':'a'}}", ""),
                                       test_record(&other, "REMOVE", "'Keys':{'k':{'S':'a'}}", "")};
    assert_int_equal(sl_pattern_compile(json_span("{'eventName':['MODIFY']}"), arena, &never, NULL), SL_OK);
    assert_int_equal(sl_pattern_compile(json_span("{'eventName':['INSERT']}"), arena, &when, NULL), SL_OK);
    const struct sl_when *const filters[] = {never, when, never};
    size_t n_compared = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        new_world(seed, filters, kinds);
        struct sl_esm_stats stats = simulate();
        int64_t ends_ms[SHARDS] = {0};
        memset(&m.stats, 0, sizeof(m.stats));
        if (s.is_lost)
            continue;
        n_compared++;
        for (size_t i = 0; i < w.n_shards; i++)
            for (int lane = 0; lane < w.settings.parallelization; lane++) {
                model_lane(i, lane, w.shards[i].parent < 0 ? 0 : ends_ms[w.shards[i].parent]);
                ends_ms[i] = m.now_ms > ends_ms[i] ? m.now_ms : ends_ms[i];
                m.stats.elapsed_ms = m.now_ms > m.stats.elapsed_ms ? m.now_ms : m.stats.elapsed_ms;
                assert_same(seed, &logs[i][lane], &m.log);
            }
        assert_memory_equal(&stats, &m.stats, sizeof(stats));
    }
    assert_true(n_compared > WORLDS * 9 / 10);
    test_batch_clean_up(&taken);
    test_batch_clean_up(&other);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_simulator_does_what_the_model_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
