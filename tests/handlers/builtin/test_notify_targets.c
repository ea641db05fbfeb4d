/* The notify handler and each kind of queue: every record is told once, in requests that keep the service's
 * limits; and what an attribute may be called. */
#include "tests/support/events.h"
#include "tests/support/fake_queue.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include "base/clock.h"
#include "handlers/pipeline/route.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 45

static const struct target {
    const char *url;
    size_t most_entries, most_bytes; /* of a message */
} targets[] = {{"sqs://123456789012/queue", 10, 1 << 20},
               {"sqs://123456789012/queue.fifo", 10, 1 << 20},
               {"sns:arn:aws:sns:us-east-1:123456789012:topic", 10, 1 << 18},
               {"sns:arn:aws:sns:us-east-1:123456789012:topic.fifo", 10, 1 << 18},
               {"events://default", 10, (1 << 18) - 1},
               {"kinesis://stream", 500, 1 << 20},
               {"firehose://stream", 500, 1000 * 1024}};
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

struct inbox {
    uint64_t chance;
    unsigned one_in;          /* entries is refused for now; 0: none */
    size_t n, times[MOST];    /* taken */
    size_t refused, last[3];  /* per item: the latest record that was taken, and one more */
    bool keeps_order, is_out; /* of an item; is_out: a record came after a later one */
};

/* A message is {"n":"12","t":"..."}: record 12 is of item 12 % 3. */
static struct fake_fate judge(void *arg, const struct fake_entry *entry)
{
    struct inbox *box = arg;
    const char *number = memmem(entry->body.ptr, entry->body.len, "\"n\":\"", 5);
    assert_non_null(number);
    size_t i = strtoul(number + 5, NULL, 10);
    assert_true(i < MOST);
    if (box->one_in && sl_random_step(&box->chance) % box->one_in == 0) {
        box->refused++;
        return (struct fake_fate){.code = "InternalError"};
    }
    box->is_out = box->is_out || (box->keeps_order && box->last[i % 3] > i + 1);
    box->last[i % 3] = i + 1;
    box->times[i]++;
    box->n++;
    return (struct fake_fate){.code = NULL};
}

static struct stage *stage_at(const struct scripted_server *server, const char *url)
{
    static char endpoint[128]; /* borrowed by the stage */
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL=%s", scripted_server_url(server));
    const char *const variables[] = {"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
                                     endpoint, NULL};
    return stage_new(
        json_printf("{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,"
                    "'routes':[{'name':'n','handler':'notify','to':'%s','escape':'json',"
                    "'message':'{{\\\"n\\\":\\\"{n}\\\",\\\"t\\\":\\\"{t}\\\"}}'}]}",
                    url),
        variables);
}

/* Records whose texts have so many bytes. */
static char *event_of(const size_t *sizes, size_t n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 24);
    sl_buffer_add_str(&text, "{\"Records\":[");
    for (size_t i = 0; i < n; i++) {
        sl_buffer_printf(
            &text,
            "%s{\"eventID\":\"e%zu\",\"eventName\":\"MODIFY\",\"eventSource\":\"aws:dynamodb\","
            "\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"k%zu\"}},\"SequenceNumber\":\"%zu\","
            "\"StreamViewType\":\"NEW_IMAGE\",\"NewImage\":{\"PK\":{\"S\":\"k%zu\"},\"n\":{\"S\":"
            "\"%zu\"},\"t\":{\"S\":\"",
            i ? "," : "", i, i % 3, 100 + i, i % 3, i);
        for (size_t k = 0; k < sizes[i]; k++)
            sl_buffer_add_char(&text, 'x');
        sl_buffer_add_str(&text, "\"}}}}");
    }
    sl_buffer_add_str(&text, "]}");
    char *event = strndup(text.ptr, text.len);
    sl_buffer_clean_up(&text);
    return event;
}

static void run(const struct target *t, uint64_t seed)
{
    struct inbox box = {.chance = seed, .keeps_order = strstr(t->url, ".fifo") != NULL};
    struct fake_queue fake;
    size_t sizes[MOST], n = 1 + (size_t)(sl_random_step(&box.chance) % MOST);
    for (size_t i = 0; i < n; i++)
        sizes[i] = (size_t)(sl_random_step(&box.chance) % (i % 4 ? 2000 : 70000));
    box.one_in = seed % 2 ? 6 : 0;
    fake_queue_init(&fake);
    fake.judge = judge;
    fake.arg = &box;
    struct scripted_server *server = scripted_server_start(fake_queue_answer, &fake);
    struct stage *s = stage_at(server, t->url);
    char *event = event_of(sizes, n);
    if (!stage_drive(s, event, 50))
        fail_msg("%s: %s", t->url, s->answer.error.text);
    assert_int_equal(s->answer.parked, 0);
    assert_int_equal(box.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(box.times[i], 1);
    if (fake.fault || box.is_out || fake.most_entries > t->most_entries)
        fail_msg("%s, seed %d: %s", t->url, (int)seed, fake.fault ? fake.fault : "out of order, or too many");
    assert_true(box.refused || fake.requests <= n);
    free(event);
    stage_destroy(s);
    scripted_server_stop(server);
    fake_queue_clean_up(&fake);
}

static void every_record_is_told_once(void **state)
{
    (void)state;
    for (size_t t = 0; t < TARGETS; t++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            run(&targets[t], 10 * seed + t);
}

/* ---- attributes ---- */

/* "Amazon SQS message metadata", and SNS alike. */
static void is_name(const char *name, bool is_good)
{
    static const char most[] = "{'on_failure':'report','routes':[{'name':'n','handler':'notify','to':"
                               "'jsonl:${DIR}/out.jsonl','attributes':{'%s':'x'}}]}";
    char escaped[2000];
    size_t n = 0;
    for (const char *c = name; *c; c++)
        n += (size_t)snprintf(escaped + n, sizeof(escaped) - n, isalnum((unsigned char)*c) ? "%c" : "\\u%04x",
                              *c);
    escaped[n] = '\0';
    const char *config = json_printf(most, escaped);
    if (is_good)
        stage_destroy(stage_new(config, NULL));
    else
        stage_refused(config, "is not a name that SQS and SNS take");
}

static void attributes_have_names_that_the_services_take(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_good;
    } names[] = {{"", false},         {"a", true},       {".a", false},     {"a.", false},
                 {"a.b", true},       {"a..b", false},   {"a.b.c", true},   {"aws.x", false},
                 {"AWS.x", false},    {"aws", true},     {"awsx.y", true},  {"amazon.x", false},
                 {"Amazon.x", false}, {"amazonx", true}, {"x.aws.y", true}, {".", false}};
    char text[260];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_name(names[i].name, names[i].is_good);
    for (int c = 1; c < 0x80; c++) {
        snprintf(text, sizeof(text), "a%cb", c);
        is_name(text, isalnum(c) || strchr("_-.", c));
    }
    for (size_t len = 255; len <= 257; len++) {
        memset(text, 'n', len);
        text[len] = '\0';
        is_name(text, len <= 256);
    }
}

/* ---- items ---- */

/* A backfill has no changes to tell of. */
static void an_item_is_not_a_message(void **state)
{
    (void)state;
    struct stage *s = stage_new(
        "{'on_failure':'report','routes':[{'name':'n','handler':'notify','to':'jsonl:${DIR}/o.jsonl'}]}",
        NULL);
    struct sl_per_item out;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_route_per_item(&s->p->routes[0], &out, &error), SL_REJECT);
    assert_int_equal(error.status, SL_REJECT);
    assert_string_equal(error.code, "NotPerItem");
    assert_string_equal(error.text, "a message tells of a change; an item is not a change");
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_is_told_once),
        cmocka_unit_test(attributes_have_names_that_the_services_take),
        cmocka_unit_test(an_item_is_not_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
