/* What matching one pattern costs a record, each record met for the first time, as in an invocation: the look
 * into an image that makes its index is in the figure. 5,000 records with both images, seeded. One JSON line
 * a figure. */
#include "base/buffer.h"
#include "base/clock.h"
#include "streams/batch.h"
#include "streams/when.h"

#include <stdio.h>
#include <time.h>

#define RECORDS 5000
#define ROUNDS  7

static void add_image(struct sl_buffer *b, const char *name, uint64_t r, const char *status)
{
    sl_buffer_printf(
        b,
        "\"%s\":{\"PK\":{\"S\":\"CUSTOMER#%llu\"},\"SK\":{\"S\":\"ORDER#%08llu\"},\"email\":{\"S\":"
        "\"user%llu@example.com\"},\"total\":{\"N\":\"%llu.50\"},\"items\":{\"L\":[{\"M\":{\"sku\":{\"S\":"
        "\"A-%llu\"},\"qty\":{\"N\":\"%llu\"}}}]},\"paid\":{\"BOOL\":true},\"tags\":{\"SS\":[\"new\",\"web\"]"
        "},"
        "\"status\":{\"S\":\"%s\"},\"expires\":{\"N\":\"%llu\"}}",
        name, (unsigned long long)(r % 5000), (unsigned long long)(r % 100000000),
        (unsigned long long)(r % 7777), (unsigned long long)(r % 900), (unsigned long long)(r % 99),
        (unsigned long long)(r % 9), status, (unsigned long long)(1700000000 + r % 100000));
}

static void make_event(struct sl_buffer *b)
{
    uint64_t seed = 20261120;
    sl_buffer_add_str(b, "{\"Records\":[");
    for (int i = 0; i < RECORDS; i++) {
        uint64_t r = sl_random_step(&seed);
        sl_buffer_printf(b,
                         "%s{\"eventID\":\"%016llx%016llx\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\",",
                         i ? "," : "", (unsigned long long)r, (unsigned long long)sl_random_step(&seed),
                         r & 1 ? "MODIFY" : "REMOVE");
        sl_buffer_printf(
            b,
            "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"eu-central-1\",\"dynamodb\":{"
            "\"ApproximateCreationDateTime\":1700000000,\"Keys\":{\"PK\":{\"S\":\"CUSTOMER#%llu\"},"
            "\"SK\":{\"S\":\"ORDER#%08llu\"}},",
            (unsigned long long)(r % 5000), (unsigned long long)(r % 100000000));
        add_image(b, "NewImage", r, r % 3 ? "PLACED" : "SHIPPED");
        sl_buffer_add_char(b, ',');
        add_image(b, "OldImage", r, "PLACED");
        sl_buffer_printf(
            b,
            ",\"SequenceNumber\":\"%022d\",\"SizeBytes\":400,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},"
            "\"eventSourceARN\":\"arn:aws:dynamodb:eu-central-1:111122223333:table/orders/stream/"
            "2026-11-20T00:00:00.000\"}",
            i + 1);
    }
    sl_buffer_add_str(b, "]}");
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure(struct sl_span event, const char *name, const char *json)
{
    struct sl_arena *config = sl_arena_new(65536), *arena = sl_arena_new(1 << 20);
    struct sl_when *when;
    struct sl_batch batch;
    double best = 1e9;
    size_t matched = 0;
    if (sl_when_compile(sl_span_str(json), config, &when, NULL) != SL_OK)
        sl_die("bench_when: %s is refused", json);
    for (int i = 0; i < ROUNDS; i++) {
        struct sl_decode_options options = {.any_shape = false};
        if (sl_batch_decode(event, arena, &options, &batch, NULL) != SL_OK)
            sl_die("bench_when: the event is refused");
        double began = seconds();
        matched = 0;
        for (size_t k = 0; k < batch.n; k++)
            matched += sl_when_match(when, sl_batch_record(&batch, k), arena);
        double took = seconds() - began;
        best = took < best ? took : best;
        sl_arena_reset(arena);
    }
    printf("{\"figure\":\"when, %s\",\"value\":%.1f,\"unit\":\"ns/record\",\"matched\":%zu}\n", name,
           best / RECORDS * 1e9, matched);
    sl_arena_destroy(arena);
    sl_arena_destroy(config);
}

int main(void)
{
    struct sl_buffer event;
    sl_buffer_init(&event, SIZE_MAX / 2);
    make_event(&event);
    struct sl_span text = sl_buffer_span(&event);
#define PATTERN(p) "{\"pattern\":[" p "]}"
    measure(text, "eventName", PATTERN("{\"eventName\":[\"REMOVE\"]}"));
    measure(
        text, "userIdentity of TTL",
        PATTERN("{\"userIdentity\":{\"type\":[\"Service\"],\"principalId\":[\"dynamodb.amazonaws.com\"]}}"));
    measure(text, "one attribute",
            PATTERN("{\"dynamodb\":{\"NewImage\":{\"status\":{\"S\":[\"SHIPPED\"]}}}}"));
    measure(text, "one attribute, rare value",
            PATTERN("{\"dynamodb\":{\"NewImage\":{\"status\":{\"S\":[\"LOST\"]}}}}"));
    measure(text, "one attribute by prefix",
            PATTERN("{\"dynamodb\":{\"NewImage\":{\"PK\":{\"S\":[{\"prefix\":\"CUSTOMER#12\"}]}}}}"));
    measure(
        text, "both images",
        PATTERN(
            "{\"dynamodb\":{\"NewImage\":{\"status\":{\"S\":[\"SHIPPED\"]}},\"OldImage\":{\"status\":{\"S\":["
            "{\"anything-but\":\"SHIPPED\"}]}}}}"));
    measure(text, "within a list (walks the image)",
            PATTERN("{\"dynamodb\":{\"NewImage\":{\"items\":{\"L\":{\"M\":{\"qty\":{\"N\":[\"3\"]}}}}}}}"));
    measure(text, "eventSource (walks the record)", PATTERN("{\"eventSource\":[\"aws:dynamodb\"]}"));
    measure(text, "changed", "{\"changed\":[\"status\"]}");
    sl_buffer_clean_up(&event);
    return 0;
}
