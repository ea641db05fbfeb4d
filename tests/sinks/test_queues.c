/* The five queues of AWS in front of a service in this process that keeps their limits: random batches with
 * random answers to each entry end as each message alone would; and every limit at its edge. */
#include "tests/support/fake_queue.h"
#include "tests/support/fault.h"

#include "net/retry.h"
#include "sinks/queues/content.h"

#include <stdio.h>
#include <stdlib.h>

static const struct target {
    const char *url;
    size_t entries, bytes, each; /* of a request; of a message */
    size_t frame;                /* what is counted beside the body */
    bool keeps_order, is_by_place, takes_attributes;
    const char *throttle, *passes; /* codes of entries */
    struct fake_fate bad;          /* code NULL: its entries have no code that is a record's fault */
} targets[] = {
    {"sqs://123456789012/queue",
     10,
     1 << 20,
     1 << 20,
     0,
     false,
     false,
     true,
     "RequestThrottled",
     "InternalError",
     {"InvalidMessageContents", true, FAKE_ONCE}},
    {"sqs://123456789012/queue.fifo",
     10,
     1 << 20,
     1 << 20,
     0,
     true,
     false,
     true,
     "RequestThrottled",
     "Brandnew",
     {"Brandnew", true, FAKE_ONCE}},
    {"sns:arn:aws:sns:us-east-1:123456789012:topic",
     10,
     1 << 18,
     1 << 18,
     0,
     false,
     false,
     true,
     "Throttled",
     "InternalError",
     {"Brandnew", true, FAKE_ONCE}},
    {"sns:arn:aws:sns:us-east-1:123456789012:topic.fifo",
     10,
     1 << 18,
     1 << 18,
     0,
     true,
     false,
     true,
     "Throttled",
     "Brandnew",
     {"InvalidMessageContents", true, FAKE_ONCE}},
    {"events://default",
     10,
     (1 << 18) - 1,
     (1 << 18) - 1,
     14 + 6 + 22,
     false,
     true,
     false,
     "ThrottlingException",
     "InternalFailure",
     {"MalformedDetail", false, FAKE_ONCE}},
    {"kinesis://stream",
     500,
     10 << 20,
     10 << 20,
     1,
     true,
     true,
     false,
     "ProvisionedThroughputExceededException",
     "InternalFailure",
     {NULL, false, FAKE_ONCE}},
    {"firehose://stream",
     500,
     4 << 20,
     1000 << 10,
     1,
     false,
     true,
     false,
     "ServiceUnavailableException",
     "InternalFailure",
     {NULL, false, FAKE_ONCE}},
};
#define N_TARGETS (sizeof(targets) / sizeof(targets[0]))

static struct fault f;
static struct fake_queue fake;
static struct sl_queue_port *queue;

static void open_target(const char *url)
{
    fault_open(&f, fake_queue_answer, &fake);
    fault_set(&f, "AWS_MAX_ATTEMPTS", "40");
    queue = fault_queue(&f, url);
}

static void close_target(void)
{
    queue->close(queue);
    fault_close(&f);
    fake_queue_clean_up(&fake);
    if (fake.fault)
        fail_msg("%s", fake.fault);
}

/* ---- random batches ---- */

enum { MOST = 600, ORDERS = 5, LARGE = 120 * 1024 };
enum fate { TAKEN, THROTTLED, PASSES, UNPROVEN, BAD, SPOILS, N_FATES };

struct world {
    const struct target *target;
    uint64_t random;
    struct sl_message messages[MOST];
    enum fate fates[MOST];
    unsigned later[MOST]; /* so often it is not taken yet */
    size_t times[MOST];   /* it was taken */
    int order_of[MOST];   /* -1: none */
    int last[ORDERS];     /* of each order the message taken last */
    size_t n;
};

static unsigned roll(struct world *w, unsigned below)
{
    return (unsigned)(sl_random_step(&w->random) % below);
}

static size_t number_of(const struct fake_entry *entry)
{
    const char *at = memmem(entry->body.ptr, entry->body.len, "\"n\":", 4);
    assert_non_null(at);
    return strtoul(at + 4, NULL, 10);
}

/* Never two of an order in one request; never one twice, or after a later one. */
static void take(struct world *w, size_t i)
{
    int order = w->order_of[i];
    w->times[i]++;
    if (order < 0 || !w->target->keeps_order)
        return;
    assert_true(w->last[order] < (int)i);
    w->last[order] = (int)i;
}

static struct fake_fate judge(void *arg, const struct fake_entry *entry)
{
    struct world *w = arg;
    size_t i = number_of(entry), given = w->messages[i].n_attributes;
    const struct target *t = w->target;
    assert_true(sl_span_eq(entry->body, w->messages[i].body));
    /* The services refuse one without a value: the second. */
    assert_int_equal(entry->n_attributes, t->takes_attributes ? (given > 0) + (given > 2) : 0);
    if (w->fates[i] == BAD || w->fates[i] == SPOILS)
        return t->bad.code ? t->bad : (struct fake_fate){.code = t->passes};
    if (w->later[i] > 0) {
        w->later[i]--;
        if (w->fates[i] == UNPROVEN && !t->is_by_place)
            return (struct fake_fate){.named = 1 + roll(w, 3)};
        return (struct fake_fate){.code = w->fates[i] == THROTTLED ? t->throttle : t->passes};
    }
    take(w, i);
    return (struct fake_fate){.code = NULL};
}

/* One that spoils its request; the code is one that every service has as a record's fault, or nobody knows.
 */
static const char *refuse_whole(void *arg, const struct fake_entry *entries, size_t n)
{
    struct world *w = arg;
    bool seen[ORDERS] = {false};
    for (size_t k = 0; k < n; k++) {
        int order = w->order_of[number_of(&entries[k])];
        if (order >= 0 && w->target->keeps_order)
            assert_false(seen[order]);
        if (order >= 0)
            seen[order] = true;
    }
    for (size_t k = 0; k < n; k++)
        if (w->fates[number_of(&entries[k])] == SPOILS)
            return "InvalidMessageContents";
    return NULL;
}

static const struct sl_message_attribute attributes[] = {
    {{"kind", 4}, {"a\"<&\xc3\xa4", 6}}, {{"empty", 5}, {"", 0}}, {{"x.y-z_1", 7}, {" ", 1}}};

static struct sl_message invent_message(struct world *w, size_t i)
{
    static const char *const orders[ORDERS] = {"a", "b", "ab", "a b", "\xc3\xa4"};
    size_t filler = roll(w, 12) == 0 ? roll(w, LARGE) : roll(w, 100);
    char *text = sl_arena_alloc(f.call.arena, filler + 1);
    memset(text, 'a' + (int)(i % 26), filler);
    text[filler] = '\0';
    struct sl_message message = {
        .body = sl_span_str(sl_arena_printf(f.call.arena, "{\"n\":%zu,\"v\":\"%s\"}", i, text)),
        .dedupe = sl_span_str(sl_arena_printf(f.call.arena, "dedupe %zu", i)),
        .subject = roll(w, 2) ? SL_LIT("a subject") : sl_span(NULL, 0),
        .attributes = attributes,
        .n_attributes = roll(w, 4)};
    w->order_of[i] = (int)roll(w, ORDERS + 1) - 1;
    if (w->order_of[i] >= 0)
        message.order = sl_span_str(orders[w->order_of[i]]);
    return message;
}

/* All failures together stay within the budget of attempts, in whatever order the answers come. */
static void invent(struct world *w)
{
    const struct target *t = w->target;
    unsigned budget = SL_RETRY_BUCKET / SL_RETRY_COST_TRANSIENT;
    w->n = 1 + roll(w, t->entries > 10 && roll(w, 4) == 0 ? MOST : 40);
    memset(w->last, -1, sizeof(w->last));
    memset(w->times, 0, sizeof(w->times));
    for (size_t i = 0; i < w->n; i++) {
        bool is_good = i == 0 || roll(w, 4) > 0; /* one is taken: it vouches for the others */
        w->fates[i] = is_good ? TAKEN : (enum fate)roll(w, N_FATES);
        if (w->fates[i] == BAD && !t->bad.code)
            w->fates[i] = TAKEN;
        w->later[i] = w->fates[i] == TAKEN ? 0 : 1 + roll(w, 3);
        w->later[i] = w->later[i] < budget ? w->later[i] : budget;
        budget -= w->later[i];
        w->messages[i] = invent_message(w, i);
    }
}

static void run_random(const struct target *target, uint64_t seed)
{
    static struct world w;
    static struct sl_result results[MOST];
    w = (struct world){.target = target, .random = seed};
    fake_queue_init(&fake);
    fake.judge = judge;
    fake.refuse = refuse_whole;
    fake.arg = &w;
    open_target(target->url);
    invent(&w);
    fault_send(&f, queue, w.messages, w.n, results);
    for (size_t i = 0; i < w.n && !fake.fault; i++) {
        bool is_bad = w.fates[i] == BAD || w.fates[i] == SPOILS;
        if (results[i].status != (is_bad ? SL_REJECT : SL_OK) || w.times[i] != !is_bad || results[i].not_sent)
            fail_msg("%s, seed %d: message %zu of %zu, fate %d: status %d, %s: %s; taken %zu times",
                     target->url, (int)seed, i, w.n, (int)w.fates[i], (int)results[i].status,
                     results[i].code ? results[i].code : "-", results[i].text ? results[i].text : "-",
                     w.times[i]);
    }
    close_target();
}

static void batches_end_as_each_message_alone(void **state)
{
    (void)state;
    for (size_t t = 0; t < N_TARGETS; t++)
        for (uint64_t seed = 1; seed <= 8; seed++)
            run_random(&targets[t], seed * 100 + t);
}

/* ---- limits ---- */

static struct fake_fate take_any(void *arg, const struct fake_entry *entry)
{
    (void)arg;
    (void)entry;
    return (struct fake_fate){.code = NULL};
}

static void begin(const char *url)
{
    fake_queue_init(&fake);
    fake.judge = take_any;
    open_target(url);
}

/* A JSON object of so many bytes. */
static struct sl_span body_of(size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'v', bytes);
    memcpy(text, "{\"v\":\"", 6);
    memcpy(text + bytes - 2, "\"}", 2);
    return sl_span(text, bytes);
}

/* Sends messages of these sizes, as the service counts; returns in how many requests. */
static size_t send_sizes(const struct target *t, const size_t *sizes, size_t n, struct sl_result *results)
{
    struct sl_message *messages = calloc(n, sizeof(*messages));
    begin(t->url);
    for (size_t i = 0; i < n; i++)
        messages[i] = (struct sl_message){.body = body_of(sizes[i] - t->frame), .dedupe = SL_LIT("k")};
    fault_send(&f, queue, messages, n, results);
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)messages[i].body.ptr);
    free(messages);
    return fake.requests;
}

static void a_message_has_a_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TARGETS; i++) {
        const struct target *t = &targets[i];
        for (size_t size = t->each - 1; size <= t->each + 1; size++) {
            struct sl_result result;
            bool fits = size <= t->each;
            assert_int_equal(send_sizes(t, &size, 1, &result), fits);
            assert_result(result, fits ? SL_OK : SL_REJECT, fits ? NULL : "MessageTooLong");
            assert_int_equal(result.not_sent, !fits);
            if (!fits)
                assert_non_null(strstr(result.text, sl_arena_printf(f.call.arena, "%zu", size)));
            close_target();
        }
    }
}

static void a_request_has_a_limit_of_entries(void **state)
{
    (void)state;
    static size_t sizes[MOST];
    static struct sl_result results[MOST];
    for (size_t i = 0; i < N_TARGETS; i++)
        for (size_t n = targets[i].entries - 1; n <= targets[i].entries + 1; n++) {
            for (size_t k = 0; k < n; k++)
                sizes[k] = targets[i].frame + 20;
            assert_int_equal(send_sizes(&targets[i], sizes, n, results), n > targets[i].entries ? 2 : 1);
            assert_int_equal(fake.most_entries, n < targets[i].entries ? n : targets[i].entries);
            close_target();
        }
}

static void a_request_has_a_limit_of_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TARGETS; i++)
        for (int more = -1; more <= 1; more++) {
            const struct target *t = &targets[i];
            size_t half = t->bytes / 2 + 1, most = t->each < half ? t->each : half, sizes[10], n = 0,
                   left = t->bytes;
            struct sl_result results[10];
            for (; left > most; left -= most)
                sizes[n++] = most;
            sizes[n++] = (size_t)((int64_t)left + more);
            assert_int_equal(send_sizes(t, sizes, n, results), more > 0 ? 2 : 1);
            for (size_t k = 0; k < n; k++)
                assert_result(results[k], SL_OK, NULL);
            close_target();
        }
}

/* Attributes, subjects and keys count, too; a key of 256 characters is sent as it is, a longer one as a
 * digest. */
static void what_is_around_the_body_counts(void **state)
{
    (void)state;
    char key[258];
    memset(key, 'k', sizeof(key));
    const struct sl_message_attribute attribute = {{"name", 4}, {"value", 5}},
                                      three[] = {
                                          attribute, {{"of", 2}, {"v", 1}}, {{"another", 7}, {"w", 1}}};
    const struct {
        size_t target;
        struct sl_message message;
        size_t more;
    } cases[] = {
        {0, {.attributes = &attribute, .n_attributes = 1}, 4 + 5 + 6},
        {0, {.attributes = three, .n_attributes = 3}, 4 + 5 + 2 + 1 + 7 + 1 + 3 * 6},
        {2, {.attributes = &attribute, .n_attributes = 1, .subject = {"subject", 7}}, 4 + 5 + 6 + 7},
        {4, {.subject = {"subject", 7}}, 14 + 6 + 7},
        {5, {.order = {key, 255}}, 255},
        {5, {.order = {key, 256}}, 256},
        {5, {.order = {key, 257}}, 64},
        {5, {.dedupe = {key, 256}}, 256},
        {5, {.order = {"k", 1}, .dedupe = {key, 257}}, 1},
        {5, {.order = {"\xc3\xa4", 2}}, 64},
        {5, {.subject = {NULL, 0}}, 64},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t over = 0; over < 2; over++) {
            const struct target *t = &targets[cases[i].target];
            struct sl_message message = cases[i].message;
            struct sl_result result;
            begin(t->url);
            message.body = body_of(t->each - cases[i].more + over);
            fault_send(&f, queue, &message, 1, &result);
            assert_result(result, over ? SL_REJECT : SL_OK, over ? "MessageTooLong" : NULL);
            free((char *)(uintptr_t)message.body.ptr);
            close_target();
        }
}

/* The queue's own limit may be lower than the service's: then the messages go alone. */
static const char *too_long_together(void *arg, const struct fake_entry *entries, size_t n)
{
    const char *code = arg;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += entries[i].bytes;
    return bytes > 100 ? code : NULL;
}

static void what_is_too_long_together_goes_alone(void **state)
{
    (void)state;
    static const char *const codes[] = {"BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong"};
    for (size_t i = 0; i < 4; i++)
        for (int is_long = 0; is_long < 2; is_long++) {
            struct sl_message messages[7] = {{.body = {NULL, 0}}};
            struct sl_result results[7];
            begin(targets[i].url);
            fake.refuse = too_long_together;
            fake.arg = (void *)(uintptr_t)codes[i % 2];
            for (size_t k = 0; k < 7; k++)
                messages[k].body = body_of(is_long && k == 3 ? 101 : 90);
            fault_send(&f, queue, messages, 7, results);
            for (size_t k = 0; k < 7; k++) {
                bool is_bad = is_long && k == 3;
                assert_result(results[k], is_bad ? SL_REJECT : SL_OK, is_bad ? "BatchRequestTooLong" : NULL);
                free((char *)(uintptr_t)messages[k].body.ptr);
            }
            close_target();
        }
}

static void no_message_is_no_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TARGETS; i++) {
        begin(targets[i].url);
        queue->apply(queue, NULL, 0, NULL, &f.call);
        assert_int_equal(fake.requests, 0);
        assert_int_equal(queue->max_message_bytes, targets[i].each);
        close_target();
    }
}

/* ---- what a message says ---- */

static struct fake_entry seen[10];
static size_t n_seen;

static struct fake_fate keep(void *arg, const struct fake_entry *entry)
{
    struct sl_arena *arena = arg;
    struct sl_span *const parts[] = {&seen[n_seen].order, &seen[n_seen].dedupe, &seen[n_seen].subject};
    seen[n_seen] = *entry;
    for (size_t i = 0; i < 3; i++)
        if (parts[i]->ptr)
            *parts[i] = sl_span(sl_arena_copy(arena, *parts[i]), parts[i]->len);
    n_seen++;
    return (struct fake_fate){.code = NULL};
}

/* One message; what the service got of it. */
static struct fake_entry send_one(const char *url, struct sl_message message, struct sl_arena *arena)
{
    struct sl_result result;
    begin(url);
    fake.judge = keep;
    fake.arg = arena;
    n_seen = 0;
    message.body = message.body.ptr ? message.body : SL_LIT("{\"v\":1}");
    fault_send(&f, queue, &message, 1, &result);
    assert_result(result, SL_OK, NULL);
    assert_int_equal(n_seen, 1);
    close_target();
    return seen[0];
}

static bool is_digest(struct sl_span text)
{
    bool is = text.len == 64;
    for (size_t i = 0; i < text.len; i++)
        is = is && strchr("0123456789abcdef", text.ptr[i]);
    return is;
}

/* Group, deduplication id and partition key: the text itself where the service takes it, else its digest. */
static void ids_are_the_text_or_its_digest(void **state)
{
    (void)state;
    static const struct {
        size_t target, most;
    } cases[] = {{1, 128}, {3, 128}, {5, 256}};
    struct sl_arena *arena = sl_arena_new(4096);
    char text[300];
    memset(text, '~', sizeof(text));
    for (size_t i = 0; i < 3; i++) {
        const char *url = targets[cases[i].target].url;
        const struct sl_span as_they_are[] = {
            SL_LIT("!"), SL_LIT("a~b"), {text, cases[i].most - 1}, {text, cases[i].most}};
        const struct sl_span digests[] = {
            {text, cases[i].most + 1}, SL_LIT(" "),   SL_LIT("a b"), SL_LIT("\x7f"),
            SL_LIT("\xc3\xa4"),        SL_LIT("a\0b")};
        for (size_t k = 0; k < 4; k++)
            assert_true(sl_span_eq(send_one(url, (struct sl_message){.order = as_they_are[k]}, arena).order,
                                   as_they_are[k]));
        struct sl_span before = {NULL, 0};
        for (size_t k = 0; k < 6; k++) {
            struct sl_span order = send_one(url, (struct sl_message){.order = digests[k]}, arena).order;
            assert_true(is_digest(order) && !sl_span_eq(order, before));
            assert_true(
                sl_span_eq(send_one(url, (struct sl_message){.order = digests[k]}, arena).order, order));
            before = order;
        }
    }
    sl_arena_destroy(arena);
}

static void what_a_message_does_not_say(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 1; i <= 3; i += 2) {
        struct fake_entry one = send_one(targets[i].url, (struct sl_message){.order = {NULL, 0}}, arena);
        assert_span_is(one.order, "-");
        assert_true(is_digest(one.dedupe));
        struct fake_entry other = send_one(targets[i].url, (struct sl_message){.body = SL_LIT("x")}, arena);
        assert_true(is_digest(other.dedupe) && !sl_span_eq(one.dedupe, other.dedupe));
        assert_span_is(send_one(targets[i].url, (struct sl_message){.dedupe = SL_LIT("d")}, arena).dedupe,
                       "d");
    }
    /* Kinesis needs a key: the order, else the id, else the body. */
    const struct sl_message both = {.order = SL_LIT("o"), .dedupe = SL_LIT("d")},
                            id = {.dedupe = SL_LIT("d")}, none = {.body = SL_LIT("body")};
    assert_span_is(send_one("kinesis://stream", both, arena).order, "o");
    assert_span_is(send_one("kinesis://stream", id, arena).order, "d");
    assert_span_is(send_one("kinesis://stream", none, arena).order, "body");
    sl_arena_destroy(arena);
}

/* A subject is a label: SNS takes up to 100 characters of printable ASCII. */
static void subjects_are_cut(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(4096);
    char text[120];
    memset(text, 's', sizeof(text));
    for (size_t n = 0; n <= 101; n += n == 1 ? 97 : 1) {
        struct fake_entry got = send_one(targets[2].url, (struct sl_message){.subject = {text, n}}, arena);
        assert_int_equal(got.subject.len, n < 99 ? n : 99);
    }
    struct sl_message odd = {.subject = SL_LIT("a\nb\x1f~ \x7f\xc3\xa4")};
    assert_span_is(send_one(targets[2].url, odd, arena).subject, "a?b?~ ???");
    assert_span_is(send_one("events://default", (struct sl_message){.subject = SL_LIT("it")}, arena).subject,
                   "it");
    assert_span_is(send_one("events://default", (struct sl_message){.subject = {NULL, 0}}, arena).subject,
                   "DynamoDB Stream Record");
    sl_arena_destroy(arena);
}

/* ---- what a service takes as text ---- */

/* Every byte in every place of a block of eight, by the rules as the services' pages have them. */
static void every_byte_has_its_rule(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 18; at++) {
            char text[18];
            memset(text, 'a', sizeof(text));
            text[at] = (char)c;
            bool is_control = c < 0x20, is_space = c == '\t' || c == '\n' || c == '\r', is_utf8 = c < 0x80;
            struct sl_span span = {text, sizeof(text)};
            assert_null(sl_content_problem(SL_CONTENT_BYTES, span));
            assert_int_equal(sl_content_problem(SL_CONTENT_JSON, span) == NULL, is_utf8);
            assert_int_equal(sl_content_problem(SL_CONTENT_UTF8, span) == NULL, is_utf8 && c);
            assert_int_equal(sl_content_problem(SL_CONTENT_XML, span) == NULL,
                             is_utf8 && (!is_control || is_space));
        }
}

static void characters_have_their_rule(void **state)
{
    (void)state;
    static const struct {
        struct sl_span text;
        bool is_utf8, is_xml;
    } cases[] = {
        {SL_LIT(""), true, true},
        {SL_LIT("\xc3\xa4\xe2\x82\xac"), true, true},
        {SL_LIT("\xef\xbf\xbd"), true, true},
        {SL_LIT("\xef\xbf\xbe"), true, false},
        {SL_LIT("a\xef\xbf\xbf"), true, false},
        {SL_LIT("\xee\xbf\xbf"), true, true},
        {SL_LIT("\xef\xbe\xbf"), true, true},
        {SL_LIT("\xf0\x9f\xbf\xbe"), true, true},
        {SL_LIT("\xf4\x8f\xbf\xbf"), true, true},
        {SL_LIT("\xed\xa0\x80"), false, false},
        {SL_LIT("\xf4\x90\x80\x80"), false, false},
        {SL_LIT("abcdefgh\xc3"), false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sl_content_problem(SL_CONTENT_UTF8, cases[i].text) == NULL, cases[i].is_utf8);
        assert_int_equal(sl_content_problem(SL_CONTENT_JSON, cases[i].text) == NULL, cases[i].is_utf8);
        assert_int_equal(sl_content_problem(SL_CONTENT_XML, cases[i].text) == NULL, cases[i].is_xml);
        assert_null(sl_content_problem(SL_CONTENT_BYTES, cases[i].text));
    }
    assert_string_equal(sl_content_problem(SL_CONTENT_XML, SL_LIT("\0")), "holds a NUL");
    assert_string_equal(sl_content_problem(SL_CONTENT_UTF8, SL_LIT("\0")), "holds a NUL");
    assert_string_equal(sl_content_problem(SL_CONTENT_XML, SL_LIT("\1")), "holds a control character");
}

static void names_of_attributes_have_their_rule(void **state)
{
    (void)state;
    char longest[257];
    memset(longest, 'n', sizeof(longest));
    const struct sl_span good[] = {SL_LIT("a"), SL_LIT("a.b"), SL_LIT("A-Z_0.9"), {longest, 256}};
    const struct sl_span bad[] = {SL_LIT(""),     SL_LIT("."),   SL_LIT(".a"),       SL_LIT("a."),
                                  SL_LIT("a..b"), SL_LIT("a b"), SL_LIT("\xc3\xa4"), {longest, 257}};
    for (size_t i = 0; i < 4; i++)
        assert_null(sl_content_name_problem(good[i]));
    for (size_t i = 0; i < 8; i++)
        assert_non_null(sl_content_name_problem(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_end_as_each_message_alone),
        cmocka_unit_test(a_message_has_a_limit),
        cmocka_unit_test(a_request_has_a_limit_of_entries),
        cmocka_unit_test(a_request_has_a_limit_of_bytes),
        cmocka_unit_test(what_is_around_the_body_counts),
        cmocka_unit_test(what_is_too_long_together_goes_alone),
        cmocka_unit_test(no_message_is_no_request),
        cmocka_unit_test(ids_are_the_text_or_its_digest),
        cmocka_unit_test(what_a_message_does_not_say),
        cmocka_unit_test(subjects_are_cut),
        cmocka_unit_test(every_byte_has_its_rule),
        cmocka_unit_test(characters_have_their_rule),
        cmocka_unit_test(names_of_attributes_have_their_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
