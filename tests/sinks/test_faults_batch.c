/* Batches of which a part is refused: what is resent, in what order, and what a transaction's reasons become.
 */
#include "tests/support/fault.h"

#include "aws/aws.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct fault f;

/* ---- a queue that takes a random part of each batch ---- */

enum { MESSAGES = 60, GROUPS = 7 };

struct picky {
    bool is_kinesis;
    uint64_t seed;
    unsigned times[MESSAGES];
    int last[GROUPS]; /* of each group, the message taken last */
    int stuck;        /* never taken; -1: none */
    int bad;          /* refused for good; -1: none */
    bool whole;       /* `bad` spoils its whole request */
    bool unordered;   /* no groups are sent */
    size_t largest;
    struct sl_buffer body;
};

static int number_in(const char *text)
{
    return (int)strtol(strstr(text, "\"n\":") + 4, NULL, 10);
}

static void decode(const char *base64, char out[256])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, held = 0;
    size_t n = 0;
    for (; *base64 && *base64 != '='; base64++) {
        bits = bits << 6 | (unsigned)(strchr(digits, *base64) - digits);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[n++] = (char)(bits >> held);
        }
    }
    out[n] = '\0';
}

static int message_of(const struct picky *p, json_t *entry)
{
    char text[256];
    if (!p->is_kinesis)
        return number_in(json_string_value(json_object_get(entry, "MessageBody")));
    decode(json_string_value(json_object_get(entry, "Data")), text);
    return number_in(text);
}

static void note_order(struct picky *p, int n, bool *in_request)
{
    if (p->unordered)
        return;
    assert_false(in_request[n % GROUPS]); /* never two of one group in flight */
    in_request[n % GROUPS] = true;
}

static json_t *take(struct picky *p, json_t *entry, int n)
{
    const char *code = NULL;
    if (n == p->bad)
        code = "InvalidMessageContents";
    else if (n == p->stuck || sl_random_step(&p->seed) % 3 == 0)
        code = p->is_kinesis ? "ProvisionedThroughputExceededException" : "InternalError";
    if (code && p->is_kinesis)
        return json_pack("{s:s,s:s}", "ErrorCode", code, "ErrorMessage", "later");
    json_t *id = json_object_get(entry, "Id");
    if (code)
        return json_pack("{s:O,s:s,s:s,s:b}", "Id", id, "Code", code, "Message", "x", "SenderFault",
                         n == p->bad);
    if (p->times[n]++ == 0 && !p->unordered) {
        assert_true(p->last[n % GROUPS] < n);
        p->last[n % GROUPS] = n;
    }
    return p->is_kinesis ? json_pack("{s:s,s:s}", "SequenceNumber", "1", "ShardId", "s")
                         : json_pack("{s:O,s:s}", "Id", id, "MessageId", "m");
}

static void take_some(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct picky *p = arg;
    json_t *root = json_loadb(request->body.ptr, request->body.len, 0, NULL), *entry;
    json_t *list = json_object_get(root, p->is_kinesis ? "Records" : "Entries");
    json_t *taken = json_array(), *failed = json_array();
    bool in_request[GROUPS] = {false}, spoilt = false;
    size_t i;
    p->largest = json_array_size(list) > p->largest ? json_array_size(list) : p->largest;
    json_array_foreach(list, i, entry) spoilt = spoilt || (p->whole && message_of(p, entry) == p->bad);
    json_array_foreach(list, i, entry)
    {
        int n = message_of(p, entry);
        note_order(p, n, in_request);
        if (spoilt)
            continue;
        json_t *answer = take(p, entry, n);
        json_array_append_new(!p->is_kinesis && json_object_get(answer, "Code") ? failed : taken, answer);
    }
    json_t *answer = p->is_kinesis ? json_pack("{s:O}", "Records", taken)
                                   : json_pack("{s:O,s:O}", "Successful", taken, "Failed", failed);
    char *text = spoilt
                     ? strdup(json("{'__type':'com.amazonaws.sqs#InvalidMessageContents','message':'bad'}"))
                     : json_dumps(answer, JSON_COMPACT);
    sl_buffer_reset(&p->body);
    sl_buffer_add_str(&p->body, text);
    *reply = (struct scripted_reply){.status = spoilt ? 400 : 200, .body = sl_buffer_span(&p->body)};
    free(text);
    json_decref(answer);
    json_decref(taken);
    json_decref(failed);
    json_decref(root);
}

static void send_sixty(struct picky *p, const char *url, const char *attempts, struct sl_result *results)
{
    struct sl_message messages[MESSAGES];
    for (size_t i = 0; i < GROUPS; i++)
        p->last[i] = -1;
    sl_buffer_init(&p->body, 1024 * 1024);
    fault_open(&f, take_some, p);
    fault_set(&f, "AWS_MAX_ATTEMPTS", attempts);
    for (int i = 0; i < MESSAGES; i++)
        messages[i] = (struct sl_message){
            .body = sl_span_str(json_printf("{'n':%d,'v':'" FAULT_VALUE "'}", i)),
            .order = p->unordered ? sl_span(NULL, 0)
                                  : sl_span_str(sl_arena_printf(f.call.arena, "g%d", i % GROUPS)),
            .dedupe = sl_span_str(sl_arena_printf(f.call.arena, "%d", i))};
    struct sl_queue_port *queue = fault_queue(&f, url);
    fault_send(&f, queue, messages, MESSAGES, results);
    queue->close(queue);
}

/* The results' texts live until here. */
static void end_sixty(struct picky *p)
{
    fault_close(&f);
    sl_buffer_clean_up(&p->body);
}

static void refused_entries_are_resent_alone_and_in_order(void **state)
{
    (void)state;
    static const char *const urls[] = {"sqs://123456789012/queue.fifo", "kinesis://stream",
                                       "sqs://123456789012/queue"};
    for (uint64_t seed = 1; seed <= 15; seed++)
        for (size_t u = 0; u < 3; u++) {
            struct picky p = {
                .is_kinesis = u == 1, .seed = seed, .stuck = -1, .bad = -1, .unordered = u == 2};
            struct sl_result results[MESSAGES];
            send_sixty(&p, urls[u], "30", results);
            for (int i = 0; i < MESSAGES; i++) {
                assert_result(results[i], SL_OK, NULL);
                assert_int_equal(p.times[i], 1);
            }
            assert_int_equal(p.largest, u == 2 ? 10 : GROUPS);
            end_sixty(&p);
        }
}

/* What cannot be sent holds back what follows it in its group, and nothing else. */
static void a_stuck_message_holds_its_group_back(void **state)
{
    (void)state;
    for (int kinesis = 0; kinesis < 2; kinesis++) {
        struct picky p = {.is_kinesis = kinesis, .seed = 5, .stuck = 17, .bad = -1};
        struct sl_result results[MESSAGES];
        send_sixty(&p, kinesis ? "kinesis://stream" : "sqs://123456789012/queue.fifo", "12", results);
        for (int i = 0; i < MESSAGES; i++) {
            bool held = i % GROUPS == 17 % GROUPS && i >= 17;
            assert_result(results[i], held ? SL_RETRY : SL_OK, NULL);
            assert_int_equal(p.times[i], !held);
            assert_int_equal(results[i].not_sent, held && i > 17);
        }
        end_sixty(&p);
    }
}

/* Refused for good: that one alone, whether the service says so of the entry or of the whole request. */
static void a_bad_message_is_alone(void **state)
{
    (void)state;
    static const char *const urls[] = {"sqs://123456789012/queue", "sqs://123456789012/queue.fifo"};
    for (int whole = 0; whole < 2; whole++)
        for (size_t u = 0; u < 2; u++) {
            struct picky p = {.seed = 9, .stuck = -1, .bad = 23, .whole = whole, .unordered = u == 0};
            struct sl_result results[MESSAGES];
            send_sixty(&p, urls[u], "30", results);
            for (int i = 0; i < MESSAGES; i++) {
                assert_result(results[i], i == 23 ? SL_REJECT : SL_OK,
                              i == 23 ? "InvalidMessageContents" : NULL);
                assert_int_equal(p.times[i], i != 23);
            }
            end_sixty(&p);
        }
}

/* ---- one bad item in a BatchWriteItem ---- */

static void refuse_batch_with_bad(void *arg, const struct scripted_request *request,
                                  struct scripted_reply *reply)
{
    size_t *good = arg;
    *reply = (struct scripted_reply){.is_honest = true};
    if (memmem(request->body.ptr, request->body.len, "\"poison\"", 8))
        *reply = (struct scripted_reply){
            .status = 400, .body = json_span("{'__type':'ValidationException','message':'One is wrong'}")};
    else
        ++*good;
}

static void a_refused_batch_is_sent_item_by_item(void **state)
{
    (void)state;
    enum { COUNT = 40, BAD = 30 };
    struct sl_table_op ops[COUNT];
    struct sl_result results[COUNT];
    size_t good = 0;
    fault_open(&f, refuse_batch_with_bad, &good);
    for (int i = 0; i < COUNT; i++) {
        const char *key = json_printf("{'PK':{'S':'%02d'}}", i);
        ops[i] =
            (struct sl_table_op){.verb = SL_TABLE_PUT, .key = sl_span_str(key), .item = sl_span_str(key)};
    }
    ops[BAD].item = json_span("{'PK':{'S':'30'},'v':{'S':'poison'}}");
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, COUNT, results, &f.call);
    for (int i = 0; i < COUNT; i++)
        assert_result(results[i], i == BAD ? SL_REJECT : SL_OK, NULL);
    assert_int_equal(good, 1 + 14); /* a batch of 25, and of the other 15 all but one */
    table->close(table);
    fault_close(&f);
}

/* ---- refusals of one among others ---- */

/* A write that is taken, one that is refused as the record's fault, and one that is refused with a code that
 * nobody knows. */
enum fate { GOOD, BAD, UNKNOWN, FATES };
enum { CHAINED = 12, CHAINS = 4 };

static void refuse_by_fate(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    static const char *const answers[] = {
        [BAD] = "{'__type':'x#ItemCollectionSizeLimitExceededException','message':'no'}",
        [UNKNOWN] = "{'__type':'x#NewException','message':'no'}"};
    static const char *const words[] = {[BAD] = "is bad", [UNKNOWN] = "is unknown"};
    (void)arg;
    *reply = (struct scripted_reply){.is_honest = true};
    for (enum fate fate = BAD; fate < FATES; fate++)
        if (memmem(request->body.ptr, request->body.len, words[fate], strlen(words[fate])))
            *reply = (struct scripted_reply){.status = 400, .body = json_span(answers[fate])};
}

/* ---- the last one of a batch ---- */

/* The first of two is taken, the second is left out; sent again alone, it is refused with a code that nobody
 * knows. */
static void leave_then_refuse(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    bool reads = memmem(request->body.ptr, request->body.len, "\"Keys\"", 6);
    *reply = (struct scripted_reply){.status = request->number ? 400 : 200};
    reply->body = json_span(
        request->number ? "{'__type':'x#NewException','message':'no'}"
        : reads         ? "{'Responses':{'tbl':[{'PK':{'S':'0'}}]},'UnprocessedKeys':{'tbl':{'Keys':[{'PK':{"
                          "'S':'1'}}]}}}"
                        : "{'UnprocessedItems':{'tbl':[{'PutRequest':{'Item':{'PK':{'S':'1'}}}}]}}");
}

static void the_last_one_of_a_batch_is_judged_as_one_alone(void **state)
{
    (void)state;
    static const enum sl_table_verb verbs[] = {SL_TABLE_PUT, SL_TABLE_GET, SL_TABLE_PEEK};
    for (size_t v = 0; v < 3; v++) {
        struct sl_table_op ops[2];
        struct sl_result results[2];
        fault_open(&f, leave_then_refuse, NULL);
        for (int i = 0; i < 2; i++) {
            ops[i] = (struct sl_table_op){.verb = verbs[v],
                                          .key = sl_span_str(json_printf("{'PK':{'S':'%d'}}", i))};
            ops[i].item = ops[i].key;
        }
        struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
        table->apply(table, ops, 2, results, &f.call);
        assert_result(results[0], SL_OK, NULL);
        assert_result(results[1], SL_FATAL, "NewException");
        assert_int_equal(results[0].item.ptr != NULL, verbs[v] != SL_TABLE_PUT);
        assert_true(!results[1].item.ptr && !results[1].not_sent);
        table->close(table);
        fault_close(&f);
    }
}

/* Two reads are refused together, and a third one, which goes out in a request of its own. When one of the
 * two then succeeds alone, it vouches for all. */
static void a_read_that_was_alone_is_judged_beside_the_others(void **state)
{
    (void)state;
    static const char *const keys[] = {"is unknown", "good", "is unknown, too"};
    struct sl_table_op ops[3];
    struct sl_result results[3];
    fault_open(&f, refuse_by_fate, NULL);
    for (int i = 0; i < 3; i++)
        ops[i] = (struct sl_table_op){.verb = i < 2 ? SL_TABLE_GET : SL_TABLE_PEEK,
                                      .key = sl_span_str(json_printf("{'PK':{'S':'%s'}}", keys[i]))};
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, 3, results, &f.call);
    for (int i = 0; i < 3; i++)
        assert_result(results[i], i == 1 ? SL_OK : SL_REJECT, i == 1 ? NULL : "NewException");
    table->close(table);
    fault_close(&f);
}

/* A success on one table says nothing of another one: alone with a condition, or as a transaction. */
static void no_table_vouches_for_another(void **state)
{
    (void)state;
    static const struct sl_test absent = {.verb = SL_ABSENT, .name = {"PK", 2}};
    for (unsigned way = 0; way < 4; way++) {
        bool is_same = way % 2, is_group = way / 2;
        struct sl_table_op ops[2];
        struct sl_result results[2];
        fault_open(&f, refuse_by_fate, NULL);
        for (unsigned i = 0; i < 2; i++) {
            ops[i] = (struct sl_table_op){
                .verb = SL_TABLE_PUT,
                .group = is_group ? i + 1 : 0,
                .tests = &absent,
                .n_tests = !is_group,
                .key = json_span(i ? "{'PK':{'S':'is unknown'}}" : "{'PK':{'S':'is good'}}")};
            ops[i].item = ops[i].key;
        }
        if (!is_same)
            ops[1].table = SL_LIT("another");
        struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
        table->apply(table, ops, 2, results, &f.call);
        assert_result(results[0], SL_OK, NULL);
        assert_result(results[1], is_same ? SL_REJECT : SL_FATAL, "NewException");
        table->close(table);
        fault_close(&f);
    }
}

/* ---- doubts while other writes go on ---- */

/* Of a key the last write stays, unless it is refused: then the one before it. What nobody knows is the
 * record's fault beside any success, and else ends its key's writes for now. */
static void expect_statuses(const enum fate fates[CHAINED], const size_t keys[CHAINED],
                            enum sl_status expected[CHAINED], bool unsent[CHAINED])
{
    enum { OPEN, TAKEN, STOPPED };
    int ends[2][CHAINS] = {{OPEN}};
    bool any_taken = false;
    for (int round = 0; round < 2; round++) /* the first one finds out whether anything is taken */
        for (size_t i = CHAINED; i-- > 0;) {
            int *end = &ends[round][keys[i]];
            if (*end == OPEN && fates[i] == GOOD)
                *end = TAKEN;
            unsent[i] = *end == STOPPED; /* what was refused stands before those that wait for it */
            if (*end == OPEN && fates[i] == UNKNOWN && !any_taken)
                *end = STOPPED;
            expected[i] = *end == TAKEN ? SL_OK : *end == STOPPED ? SL_FATAL : SL_REJECT;
            any_taken = any_taken || (round == 0 && *end == TAKEN);
        }
}

static void write_chains(uint64_t seed)
{
    static const char *const texts[] = {"is good", "is bad", "is unknown"};
    struct sl_table_op ops[CHAINED];
    struct sl_result results[CHAINED];
    enum fate fates[CHAINED];
    size_t keys[CHAINED];
    enum sl_status expected[CHAINED];
    bool unsent[CHAINED];
    uint64_t random = seed;
    fault_open(&f, refuse_by_fate, NULL);
    for (size_t i = 0; i < CHAINED; i++) {
        keys[i] = sl_random_step(&random) % CHAINS;
        fates[i] = sl_random_step(&random) % (seed % 3 ? 8 : 40) ? BAD + sl_random_step(&random) % 2 : GOOD;
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT};
        ops[i].key = sl_span_str(json_printf("{'PK':{'S':'%zu'}}", keys[i]));
        ops[i].item = sl_span_str(json_printf("{'PK':{'S':'%zu'},'v':{'S':'%s'}}", keys[i], texts[fates[i]]));
    }
    expect_statuses(fates, keys, expected, unsent);
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, CHAINED, results, &f.call);
    for (size_t i = 0; i < CHAINED; i++)
        if (results[i].status != expected[i] || results[i].not_sent != unsent[i])
            fail_msg("seed %d: write %zu (%s, of key %zu) is %d instead of %d, or its not_sent is wrong: %s",
                     (int)seed, i, texts[fates[i]], keys[i], (int)results[i].status, (int)expected[i],
                     results[i].text ? results[i].text : "-");
    table->close(table);
    fault_close(&f);
}

static void a_doubt_waits_for_what_goes_on(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 90; seed++)
        write_chains(seed);
}

/* ---- transactions ---- */

struct cancelling {
    size_t times;
    const char *reasons;
    char body[600];
    struct sl_span tokens[16];
};

static void cancel_first(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct cancelling *c = arg;
    const char *token = memmem(request->body.ptr, request->body.len, "ClientRequestToken\":\"", 21);
    c->tokens[request->number] = sl_span(token + 21, 36);
    *reply = (struct scripted_reply){.is_honest = true};
    if (request->number >= c->times)
        return;
    snprintf(c->body, sizeof(c->body),
             "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException','message':'x',"
             "'CancellationReasons':[%s]}",
             c->reasons);
    json_quote(c->body);
    *reply = (struct scripted_reply){.status = 400, .body = sl_span_str(c->body)};
}

static void run_group(struct cancelling *c, struct sl_result results[3])
{
    static const struct sl_test absent = {.verb = SL_ABSENT, .name = {"PK", 2}};
    struct sl_table_op ops[3];
    for (int i = 0; i < 3; i++) {
        const char *key = json_printf("{'PK':{'S':'%d'}}", i);
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .tests = &absent,
                                      .n_tests = 1,
                                      .group = 1,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(key),
                                      .want_item = true};
    }
    (void)c;
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    table->apply(table, ops, 3, results, &f.call);
    fault_note(&f, results, 3);
    table->close(table);
}

#define NONE     "{'Code':'None'}"
#define CONFLICT "{'Code':'TransactionConflict','Message':'busy'}"
#define FAILED                                                                                               \
    "{'Code':'ConditionalCheckFailed','Message':'no','Item':{'PK':{'S':'1'},'v':{'N':"                       \
    "'7'}}}"

static void a_conflict_is_retried_with_the_same_token(void **state)
{
    (void)state;
    static const char *const reasons[] = {NONE "," CONFLICT "," NONE, CONFLICT "," CONFLICT "," CONFLICT,
                                          NONE "," NONE ",{'Code':'ThrottlingError'}",
                                          "{'Code':'ProvisionedThroughputExceeded'}," NONE "," NONE};
    for (size_t i = 0; i < 4; i++) {
        struct cancelling c = {.times = 2, .reasons = reasons[i]};
        struct sl_result results[3];
        fault_open(&f, cancel_first, &c);
        run_group(&c, results);
        for (int k = 0; k < 3; k++)
            assert_result(results[k], SL_OK, NULL);
        assert_true(sl_span_eq(c.tokens[0], c.tokens[2]));
        run_group(&c, results); /* another transaction: another token */
        assert_false(sl_span_eq(c.tokens[0], c.tokens[3]));
        fault_close(&f);
        c.times = 16;
        fault_open(&f, cancel_first, &c);
        run_group(&c, results);
        for (int k = 0; k < 3; k++) {
            assert_result(results[k], SL_RETRY, i < 2 ? "TransactionConflict" : "ThrottlingError");
            assert_non_null(strstr(results[k].text, i < 2 ? "was in progress" : "throttled"));
        }
        assert_int_equal(scripted_server_requests(f.server), 4);
        fault_close(&f);
    }
}

static void reasons_are_read_one_by_one(void **state)
{
    (void)state;
    struct cancelling c = {.times = 16, .reasons = NONE "," FAILED "," CONFLICT};
    struct sl_result results[3];
    fault_open(&f, cancel_first, &c);
    run_group(&c, results);
    assert_result(results[0], SL_REJECT, "TransactionCanceled");
    assert_result(results[1], SL_REJECT, "ConditionalCheckFailed");
    assert_result(results[2], SL_REJECT, "TransactionCanceled");
    assert_true(results[1].condition_failed);
    assert_span_is(results[1].item, json("{'PK':{'S':'1'},'v':{'N':'7'}}"));
    assert_int_equal(scripted_server_requests(f.server), 1);
    fault_close(&f);
}

/* What the service cannot have said is not understood, and a reason that nobody knows is no record's. */
static void reasons_that_do_not_fit_are_not_trusted(void **state)
{
    (void)state;
    static const char *const reasons[] = {
        NONE "," FAILED,         "", NONE "," NONE "," NONE, "3", NONE "," FAILED "," NONE "," NONE,
        FAILED "," NONE "," NONE};
    for (size_t i = 0; i < 7; i++) {
        struct cancelling c = {.times = 16,
                               .reasons = i < 6 ? reasons[i] : NONE "," NONE ",{'Code':'AccessDenied'}"};
        struct sl_result results[3];
        fault_open(&f, cancel_first, &c);
        run_group(&c, results);
        for (int k = 0; k < 3; k++) {
            assert_result(results[k], i < 6 ? SL_RETRY : SL_FATAL, i < 6 ? "BrokenAnswer" : NULL);
            assert_false(results[k].condition_failed);
        }
        fault_close(&f);
    }
}

/* ---- memory ---- */

static int64_t (*wall_ns)(struct sl_clock *clock);
static size_t most_used;

/* Asked for each request's date. */
static int64_t note_used(struct sl_clock *clock)
{
    size_t used = sl_arena_used(f.sinks.aws->scratch);
    most_used = used > most_used ? used : most_used;
    return wall_ns(clock);
}

static void answer_honestly(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    *reply = (struct scripted_reply){.is_honest = true};
}

/* Each message of an order is a request: what it leaves in memory counts thousands of times. */
static void a_long_order_needs_little_memory(void **state)
{
    (void)state;
    enum { LONG = 300 };
    static struct sl_message messages[LONG];
    static struct sl_result results[LONG];
    for (size_t i = 0; i < LONG; i++)
        messages[i] = (struct sl_message){.body = SL_LIT("{}"), .order = SL_LIT("hot")};
    fault_open(&f, answer_honestly, NULL);
    wall_ns = f.clock.clock.wall_ns;
    f.clock.clock.wall_ns = note_used;
    struct sl_queue_port *queue = fault_queue(&f, "kinesis://stream");
    fault_send(&f, queue, messages, LONG, results);
    queue->close(queue);
    for (size_t i = 0; i < LONG; i++)
        assert_result(results[i], SL_OK, NULL);
    assert_in_range(most_used, LONG, LONG * 2048);
    fault_close(&f);
}

/* ---- items that only DynamoDB takes ---- */

#define ODD                                                                                                  \
    "{'PK':{'S':'a'},'n':{'N':'5'},'na\\u0000me':{'S':'\\u0000'},'\\u0000':{'NULL':true},"                   \
    "'x\\ud800':{'S':'1'}}"

static void refuse_with_odd(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    static char single[600], group[800];
    bool is_group = memmem(request->body.ptr, request->body.len, "TransactItems", 13) != NULL;
    (void)arg;
    snprintf(single, sizeof(single),
             "{'__type':'x#ConditionalCheckFailedException','message':'no','Item':%s}", ODD);
    snprintf(group, sizeof(group),
             "{'__type':'x#TransactionCanceledException','message':'no','CancellationReasons':[{'Code':"
             "'ConditionalCheckFailed','Message':'no','Item':%s}]}",
             ODD);
    json_quote(single);
    json_quote(group);
    *reply = (struct scripted_reply){.status = 400, .body = sl_span_str(is_group ? group : single)};
}

/* NUL and half a surrogate pair in names and values: the refusal is read, and says what it says. */
static void a_refusal_with_an_odd_item_is_understood(void **state)
{
    (void)state;
    static const struct sl_test absent = {.verb = SL_ABSENT, .name = {"PK", 2}};
    static const struct sl_set top = {.verb = SL_SET_MAX, .name = {"n", 1}, .value = {"{\"N\":\"1\"}", 9}};
    struct sl_table_op op = {.verb = SL_TABLE_PUT,
                             .key = json_span("{'PK':{'S':'a'}}"),
                             .item = json_span("{'PK':{'S':'a'}}"),
                             .tests = &absent,
                             .n_tests = 1,
                             .want_item = true};
    const struct sl_table_op running = {.verb = SL_TABLE_UPDATE, .key = op.key, .sets = &top, .n_sets = 1};
    struct sl_result result;
    fault_open(&f, refuse_with_odd, NULL);
    struct sl_table_port *table = fault_table(&f, "dynamodb://tbl");
    for (op.group = 0; op.group < 2; op.group++) {
        table->apply(table, &op, 1, &result, &f.call);
        assert_result(result, SL_REJECT,
                      op.group ? "ConditionalCheckFailed" : "ConditionalCheckFailedException");
        assert_true(result.condition_failed);
        assert_span_is(result.item, json(ODD));
    }
    table->apply(table, &running, 1, &result, &f.call);
    assert_result(result, SL_OK, NULL); /* 5 is greater */
    table->close(table);
    fault_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_entries_are_resent_alone_and_in_order),
        cmocka_unit_test(a_stuck_message_holds_its_group_back),
        cmocka_unit_test(a_bad_message_is_alone),
        cmocka_unit_test(a_refused_batch_is_sent_item_by_item),
        cmocka_unit_test(the_last_one_of_a_batch_is_judged_as_one_alone),
        cmocka_unit_test(a_read_that_was_alone_is_judged_beside_the_others),
        cmocka_unit_test(no_table_vouches_for_another),
        cmocka_unit_test(a_doubt_waits_for_what_goes_on),
        cmocka_unit_test(a_conflict_is_retried_with_the_same_token),
        cmocka_unit_test(reasons_are_read_one_by_one),
        cmocka_unit_test(reasons_that_do_not_fit_are_not_trusted),
        cmocka_unit_test(a_long_order_needs_little_memory),
        cmocka_unit_test(a_refusal_with_an_odd_item_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
