/* Batches to DynamoDB, of which the service leaves out a random part each time, or throttles: what no real
 * one does on demand. The server keeps the service's rules of a request, and the model of the port suite
 * knows what the tables must hold. */
#include "tests/support/fault.h"
#include "tests/support/honest.h"
#include "tests/support/port_suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRITES = 25, READS = 100, REQUEST_BYTES = 16 * 1024 * 1024 }; /* BatchWriteItem's and BatchGetItem's */

struct tables {
    json_t *items; /* table -> key's text -> item */
    uint64_t random;
    unsigned since;    /* requests since one was throttled: its next attempt passes */
    unsigned spare;    /* one in so many requests or entries is not spared; 0: all are */
    const char *fault; /* what broke the service's rules */
    size_t writes;     /* that took effect */
    size_t left;       /* entries that were left out */
    struct sl_buffer body;
};

static bool spares(struct tables *t)
{
    return t->spare == 0 || sl_random_step(&t->random) % t->spare != 0;
}

static char *key_text(const char *table, json_t *item)
{
    json_t *key = json_pack("{s:O?}", "PK", json_object_get(item, "PK"));
    if (strcmp(table, "side") != 0)
        json_object_set(key, "SK", json_object_get(item, "SK"));
    char *text = json_dumps(key, JSON_SORT_KEYS);
    json_decref(key);
    return text;
}

static json_t *table_of(struct tables *t, const char *table)
{
    if (!json_object_get(t->items, table))
        json_object_set_new(t->items, table, json_object());
    return json_object_get(t->items, table);
}

static void write_one(struct tables *t, const char *table, json_t *item, json_t *key)
{
    char *text = key_text(table, item ? item : key);
    t->writes++;
    if (item)
        json_object_set(table_of(t, table), text, item);
    else
        json_object_del(table_of(t, table), text);
    free(text);
}

static json_t *read_one(struct tables *t, const char *table, json_t *key)
{
    char *text = key_text(table, key);
    json_t *item = json_object_get(table_of(t, table), text);
    free(text);
    return item;
}

/* A key may be in a request once. */
static void note_key(struct tables *t, json_t *seen, const char *table, json_t *item)
{
    char *key = key_text(table, item);
    json_t *names = json_object_get(seen, table);
    if (!names)
        json_object_set_new(seen, table, names = json_object());
    if (json_object_get(names, key))
        t->fault = "a request names a key twice";
    json_object_set_new(names, key, json_true());
    free(key);
}

static void append(json_t *object, const char *name, json_t *value)
{
    if (!json_object_get(object, name))
        json_object_set_new(object, name, json_array());
    json_array_append(json_object_get(object, name), value);
}

/* The first entry of a request is always taken: attempts without any progress have an end. */
static json_t *batch_write(struct tables *t, json_t *asked)
{
    json_t *left = json_object(), *seen = json_object(), *list, *entry;
    const char *table;
    size_t i, n = 0;
    json_object_foreach(json_object_get(asked, "RequestItems"), table, list)
        json_array_foreach(list, i, entry)
    {
        json_t *item = json_object_get(json_object_get(entry, "PutRequest"), "Item");
        json_t *key = json_object_get(json_object_get(entry, "DeleteRequest"), "Key");
        n++;
        note_key(t, seen, table, item ? item : key);
        if (spares(t) || n == 1)
            write_one(t, table, item, key);
        else
            append(left, table, entry), t->left++;
    }
    if (n < 1 || n > WRITES)
        t->fault = "a BatchWriteItem has none or too many";
    json_decref(seen);
    return json_pack("{s:o}", "UnprocessedItems", left);
}

static json_t *batch_get(struct tables *t, json_t *asked)
{
    json_t *left = json_object(), *seen = json_object(), *found = json_object(), *request, *key;
    const char *table;
    size_t i, n = 0;
    json_object_foreach(json_object_get(asked, "RequestItems"), table, request)
    {
        json_object_set_new(found, table, json_array());
        json_array_foreach(json_object_get(request, "Keys"), i, key)
        {
            n++;
            note_key(t, seen, table, key);
            json_t *item = read_one(t, table, key);
            if (!spares(t) && n > 1)
                append(left, table, key), t->left++;
            else if (item) /* in any order */
                json_array_insert(json_object_get(found, table), 0, item);
        }
        if (json_object_get(left, table))
            json_object_set_new(left, table, json_pack("{s:O}", "Keys", json_object_get(left, table)));
    }
    if (n < 1 || n > READS)
        t->fault = "a BatchGetItem has none or too many";
    json_decref(seen);
    return json_pack("{s:o,s:o}", "Responses", found, "UnprocessedKeys", left);
}

static json_t *one(struct tables *t, const char *operation, json_t *asked)
{
    const char *table = json_string_value(json_object_get(asked, "TableName"));
    json_t *item = json_object_get(asked, "Item"), *key = json_object_get(asked, "Key");
    if (strcmp(operation, "GetItem") != 0) {
        write_one(t, table, item, key);
        return json_object();
    }
    json_t *have = read_one(t, table, key);
    return have ? json_pack("{s:O}", "Item", have) : json_object();
}

/* Of items with the attribute "bad": the whole request is. */
static bool is_refused(const json_t *asked)
{
    char *text = json_dumps(asked, JSON_COMPACT);
    bool is = strstr(text, "\"bad\"") != NULL;
    free(text);
    return is;
}

static json_t *answer_to(struct tables *t, const char *operation, json_t *asked)
{
    return strcmp(operation, "BatchWriteItem") == 0 ? batch_write(t, asked)
           : strcmp(operation, "BatchGetItem") == 0 ? batch_get(t, asked)
                                                    : one(t, operation, asked);
}

static void serve(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct tables *t = arg;
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    json_t *asked = json_loadb(request->body.ptr, request->body.len, JSON_REJECT_DUPLICATES, NULL);
    if (!asked)
        t->fault = "a request names a table twice, or is not JSON";
    if (request->body.len > REQUEST_BYTES)
        t->fault = "a request has more than 16 MB";
    bool is_throttled = t->since++ > 12 && !spares(t);
    if (is_throttled)
        t->since = 0;
    bool refuses = !is_throttled && is_refused(asked);
    json_t *answer = is_throttled ? json_pack("{s:s,s:s}", "__type", "ProvisionedThroughputExceededException",
                                              "message", "later")
                     : refuses    ? json_pack("{s:s,s:s}", "__type", "ValidationException", "message",
                                              "Item size has exceeded the maximum allowed size")
                                  : answer_to(t, operation, asked);
    char *text = json_dumps(answer, JSON_COMPACT);
    sl_buffer_reset(&t->body);
    sl_buffer_add_str(&t->body, text);
    *reply = (struct scripted_reply){
        .status = is_throttled || refuses ? 400 : 200, .body = sl_buffer_span(&t->body), .with_crc = true};
    free(text);
    json_decref(answer);
    json_decref(asked);
}

static void run(unsigned spare, bool wants_left)
{
    static struct fault f;
    struct tables t = {.items = json_object(), .random = 1 + spare, .spare = spare};
    sl_buffer_init(&t.body, 1 << 26);
    fault_open(&f, serve, &t);
    struct port_suite suite = {.name = "scripted", .call = f.call, .side_table = "side", .has_keys = true};
    suite.table = fault_table(&f, "dynamodb://main");
    suite.table->can = 0; /* plain writes and reads are all that the server knows */
    port_batch_cases[0].run(&suite);
    if (t.fault)
        fail_msg("%s", t.fault);
    assert_int_equal(t.left > 0, wants_left);
    suite.table->close(suite.table);
    fault_close(&f);
    sl_buffer_clean_up(&t.body);
    json_decref(t.items);
}

static void batches_are_written_and_read(void **state)
{
    (void)state;
    run(0, false);
}

static void what_is_left_out_comes_again(void **state)
{
    (void)state;
    for (unsigned spare = 3; spare < 8; spare++)
        run(spare, true);
}

/* ---- several writes of one key ---- */

#define WRITES_OF_KEYS 60
#define FEW_KEYS       6

/* Some of the writes are of items that the service refuses; the last good one of each key is what stays, and
 * a write that another one follows is not sent in vain. */
static void write_few_keys(uint64_t seed, unsigned bad_one_in)
{
    static struct fault f;
    struct tables t = {.items = json_object()};
    struct sl_table_op ops[WRITES_OF_KEYS];
    struct sl_result results[WRITES_OF_KEYS];
    int key_of[WRITES_OF_KEYS], last_good[FEW_KEYS], n_keys = 0;
    bool bad[WRITES_OF_KEYS];
    memset(last_good, -1, sizeof(last_good));
    sl_buffer_init(&t.body, 1 << 26);
    fault_open(&f, serve, &t);
    struct sl_table_port *table = fault_table(&f, "dynamodb://main");
    for (int i = 0; i < WRITES_OF_KEYS; i++) {
        int key = key_of[i] = (int)(sl_random_step(&seed) % FEW_KEYS);
        bool is_put = sl_random_step(&seed) % 4 != 0;
        bad[i] = is_put && bad_one_in && sl_random_step(&seed) % bad_one_in == 0;
        const char *text = sl_arena_printf(f.call.arena, "{\"PK\":{\"S\":\"%d\"},\"SK\":{\"S\":\"s\"}", key);
        ops[i] = (struct sl_table_op){.verb = is_put ? SL_TABLE_PUT : SL_TABLE_DELETE,
                                      .key = sl_span_str(sl_arena_printf(f.call.arena, "%s}", text))};
        if (is_put)
            ops[i].item = sl_span_str(sl_arena_printf(f.call.arena, "%s,\"v\":{\"N\":\"%d\"}%s}", text, i,
                                                      bad[i] ? ",\"bad\":{\"BOOL\":true}" : ""));
        n_keys += last_good[key] < 0 && !bad[i];
        last_good[key] = bad[i] ? last_good[key] : i;
    }
    table->apply(table, ops, WRITES_OF_KEYS, results, &f.call);
    for (int i = 0; i < WRITES_OF_KEYS; i++) {
        bool is_overwritten = i < last_good[key_of[i]];
        assert_int_equal(results[i].status, bad[i] && !is_overwritten ? SL_REJECT : SL_OK);
    }
    for (int key = 0; key < FEW_KEYS; key++) {
        json_t *asked = json_pack("{s:{s:s},s:{s:s}}", "PK", "S", "", "SK", "S", "s");
        char digit[2] = {(char)('0' + key), '\0'};
        json_object_set_new(json_object_get(asked, "PK"), "S", json_string(digit));
        json_t *item = read_one(&t, "main", asked);
        int last = last_good[key];
        assert_int_equal(item != NULL, last >= 0 && ops[last].verb == SL_TABLE_PUT);
        if (item)
            assert_int_equal(
                strtol(json_string_value(json_object_get(json_object_get(item, "v"), "N")), NULL, 10), last);
        json_decref(asked);
    }
    if (!bad_one_in)
        assert_int_equal(t.writes, n_keys);
    table->close(table);
    fault_close(&f);
    sl_buffer_clean_up(&t.body);
    json_decref(t.items);
}

static void the_last_write_of_a_key_is_sent_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        write_few_keys(seed, 0);
}

static void a_refused_write_leaves_the_one_before_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++)
        write_few_keys(seed, 2 + (unsigned)seed % 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_written_and_read),
        cmocka_unit_test(what_is_left_out_comes_again),
        cmocka_unit_test(the_last_write_of_a_key_is_sent_once),
        cmocka_unit_test(a_refused_write_leaves_the_one_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
