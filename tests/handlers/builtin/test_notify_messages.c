/* What the notify handler puts into the messages of a FIFO queue: the requests that reach the service, read
 * by jansson. */
#include "tests/support/honest.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define ITEMS      5
#define RECORDS    25 /* more than two requests of ten */
#define ATTRIBUTES 10

struct queue {
    struct scripted_server *server;
    struct sl_buffer body;
    json_t *entries; /* of all requests, in the order of arrival */
};

static void take(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct queue *q = arg;
    json_t *root = json_loadb(request->body.ptr, request->body.len, 0, NULL);
    json_array_extend(q->entries, json_object_get(root, "Entries"));
    json_decref(root);
    honest_answer(request, reply, &q->body);
}

static void queue_open(struct queue *q)
{
    sl_buffer_init(&q->body, 1 << 24);
    q->entries = json_array();
    q->server = scripted_server_start(take, q);
}

static void queue_close(struct queue *q)
{
    scripted_server_stop(q->server);
    sl_buffer_clean_up(&q->body);
    json_decref(q->entries);
}

/* `key(i)` is the item of record i, `attributes` the option's JSON. */
static void deliver(struct queue *q, const char *members, const char *event)
{
    char endpoint[128];
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL=%s", scripted_server_url(q->server));
    const char *const variables[] = {"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
                                     endpoint, NULL};
    struct stage *s = stage_new(
        json_printf("{'on_failure':'jsonl:${DIR}/failed.jsonl','routes':[{'name':'n','handler':'notify',"
                    "'to':'sqs://123456789012/queue.fifo'%s}]}",
                    members),
        variables);
    stage_deliver_all(s, event);
    stage_destroy(s);
}

/* Records of items "k0", "k1" ... in turn, whose attribute `v` is the record's number; every third has none.
 */
static const char *event_of(size_t n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < n; i++) {
        char v[64] = "";
        if (i % 3)
            snprintf(v, sizeof(v), ",'v':{'N':'%zu'}", i);
        sl_buffer_printf(&text,
                         "%s{'eventID':'e%zu','eventName':'MODIFY','eventSource':'aws:dynamodb','dynamodb':{"
                         "'Keys':{'PK':{'S':'k%zu'}},'NewImage':{'PK':{'S':'k%zu'}%s},'SequenceNumber':'%zu',"
                         "'StreamViewType':'NEW_AND_OLD_IMAGES'}}",
                         i ? "," : "", i, i % ITEMS, i % ITEMS, v, 100 + i);
    }
    sl_buffer_add_str(&text, "]}");
    const char *event = json_printf("%.*s", (int)text.len, text.ptr);
    sl_buffer_clean_up(&text);
    return event;
}

static const char *text_in(const json_t *entry, const char *name)
{
    return json_string_value(json_object_get(entry, name));
}

/* The n-th of the attributes of every message. */
static const char *const templates[ATTRIBUTES] = {"{PK}",      "{v}",  "fixed", "{sequence}", "{event}",
                                                  "{eventID}", "{PK}", "-{v}-", "{v}",        "last"};

static const char *attribute_options(size_t n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 16);
    sl_buffer_add_str(&text, ",'missing':'empty','message':'{sequence}','attributes':{");
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(&text, "%s'a%zu':'%s'", i ? "," : "", i, templates[i]);
    sl_buffer_add_str(&text, "}");
    const char *options = json_printf("%.*s", (int)text.len, text.ptr);
    sl_buffer_clean_up(&text);
    return options;
}

static void attribute_text(size_t attribute, size_t record, char out[64])
{
    char v[24] = "";
    if (record % 3)
        snprintf(v, sizeof(v), "%zu", record);
    switch (attribute) {
    case 0:
    case 6:
        snprintf(out, 64, "k%zu", record % ITEMS);
        break;
    case 1:
    case 8:
        snprintf(out, 64, "%s", v);
        break;
    case 3:
        snprintf(out, 64, "%zu", 100 + record);
        break;
    case 4:
        snprintf(out, 64, "MODIFY");
        break;
    case 5:
        snprintf(out, 64, "e%zu", record);
        break;
    case 7:
        snprintf(out, 64, "-%s-", v);
        break;
    default:
        snprintf(out, 64, "%s", templates[attribute]);
    }
}

/* An attribute without a text is left out: the service takes none. */
static void attributes_are(const json_t *entry, size_t n, size_t record)
{
    const json_t *list = json_object_get(entry, "MessageAttributes");
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++) {
        char name[24], text[64];
        snprintf(name, sizeof(name), "a%zu", i);
        attribute_text(i, record, text);
        const json_t *value = json_object_get(list, name);
        assert_int_equal(value != NULL, *text != '\0');
        if (!value)
            continue;
        wanted++;
        assert_string_equal(text_in(value, "StringValue"), text);
        assert_string_equal(text_in(value, "DataType"), "String");
    }
    assert_int_equal(json_object_size(list), wanted);
}

static void every_attribute_of_every_message_is_sent(void **state)
{
    (void)state;
    for (size_t n = 0; n <= ATTRIBUTES; n++) {
        struct queue q;
        bool seen[RECORDS] = {false};
        queue_open(&q);
        deliver(&q, attribute_options(n), event_of(RECORDS));
        assert_int_equal(json_array_size(q.entries), RECORDS);
        for (size_t i = 0; i < RECORDS; i++) {
            const json_t *entry = json_array_get(q.entries, i);
            size_t record = strtoul(text_in(entry, "MessageBody"), NULL, 10) - 100;
            assert_true(record < RECORDS && !seen[record]);
            seen[record] = true;
            attributes_are(entry, n, record);
        }
        queue_close(&q);
    }
}

/* By default, an item's messages are one group, in stream order, and the event's id says which message is a
 * repeat. */
static void messages_of_an_item_keep_their_order(void **state)
{
    (void)state;
    struct queue q;
    size_t last[ITEMS] = {0};
    const char *groups[ITEMS] = {NULL};
    queue_open(&q);
    deliver(&q, ",'message':'{sequence}'", event_of(RECORDS));
    for (size_t i = 0; i < RECORDS; i++) {
        const json_t *entry = json_array_get(q.entries, i);
        size_t sequence = strtoul(text_in(entry, "MessageBody"), NULL, 10), item = (sequence - 100) % ITEMS;
        char id[32];
        snprintf(id, sizeof(id), "n/e%zu", sequence - 100);
        assert_string_equal(text_in(entry, "MessageDeduplicationId"), id);
        assert_true(last[item] < sequence);
        last[item] = sequence;
        if (groups[item])
            assert_string_equal(text_in(entry, "MessageGroupId"), groups[item]);
        groups[item] = text_in(entry, "MessageGroupId");
        for (size_t other = 0; other < ITEMS; other++)
            if (other != item && groups[other])
                assert_string_not_equal(groups[other], groups[item]);
    }
    queue_close(&q);
}

/* "Amazon SQS message quotas": a group's id has 1 to 128 of the printable ASCII characters, without the
 * blank. */
static bool is_a_group(const char *text)
{
    size_t n = strlen(text);
    bool is = n >= 1 && n <= 128;
    for (size_t i = 0; i < n && is; i++)
        is = text[i] > ' ' && text[i] < 0x7F;
    return is;
}

static void a_group_is_sent_as_it_is_where_the_service_takes_it(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 260; len += len >= 120 && len < 135 ? 1 : 30) {
        static const char *const odd[] = {"", " ", "!", "~", "\x7f", "\xc3\xa4", " g"};
        for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
            char group[300], members[400];
            memset(group, 'g', len);
            snprintf(group + len, sizeof(group) - len, "%s", odd[k]);
            snprintf(members, sizeof(members), ",'message':'m','group':'%s%s'", group, *group ? "" : "{PK}");
            struct queue q;
            queue_open(&q);
            deliver(&q, members, event_of(2));
            for (size_t i = 0; i < 2; i++) {
                const char *sent = text_in(json_array_get(q.entries, i), "MessageGroupId");
                assert_true(is_a_group(sent));
                if (is_a_group(group))
                    assert_string_equal(sent, group);
            }
            queue_close(&q);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attribute_of_every_message_is_sent),
        cmocka_unit_test(messages_of_an_item_keep_their_order),
        cmocka_unit_test(a_group_is_sent_as_it_is_where_the_service_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
