/* What matching one pattern costs a record, each record met for the first time, as in an invocation. */
#include "bench/support/events.h"
#include "streams/decode/batch.h"
#include "streams/when/when.h"

#include <stdio.h>

#define RECORDS 5000
#define ROUNDS  ((int)bench_size(7, 1))

static double measure(struct sl_span event, const char *name, const char *json)
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
        double began = bench_seconds();
        matched = 0;
        for (size_t k = 0; k < batch.n; k++)
            matched += sl_when_match(when, sl_batch_record(&batch, k), arena);
        double took = bench_seconds() - began;
        best = took < best ? took : best;
        sl_arena_reset(arena);
    }
    char figure[128];
    snprintf(figure, sizeof(figure), "when, %s, %zu of %d match", name, matched, RECORDS);
    bench_figure(figure, best / RECORDS * 1e9, "ns/record");
    sl_arena_destroy(arena);
    sl_arena_destroy(config);
    return best;
}

/* The same question in types and in plain values, in turn. */
static void compare(struct sl_span event, const char *name, const char *pattern, const char *plain)
{
    char text[128];
    snprintf(text, sizeof(text), "%s, typed", name);
    double typed = measure(event, text, pattern);
    snprintf(text, sizeof(text), "%s, plain", name);
    double without = measure(event, text, plain);
    snprintf(text, sizeof(text), "when, %s, plain over typed", name);
    bench_figure(text, without / typed, "");
}

#define PATTERN(p)                     "{\"pattern\":[" p "]}"
#define IMAGE(image, attribute, tests) "\"" image "\":{\"" attribute "\":{\"S\":[" tests "]}}"

int main(void)
{
    struct sl_buffer event;
    sl_buffer_init(&event, SIZE_MAX / 2);
    bench_event(&event, RECORDS, 1);
    struct sl_span text = sl_buffer_span(&event);
    measure(text, "eventName", PATTERN("{\"eventName\":[\"REMOVE\"]}"));
    measure(
        text, "userIdentity of TTL",
        PATTERN("{\"userIdentity\":{\"type\":[\"Service\"],\"principalId\":[\"dynamodb.amazonaws.com\"]}}"));
    compare(text, "one attribute", PATTERN("{\"dynamodb\":{" IMAGE("NewImage", "status", "\"SHIPPED\"") "}}"),
            "{\"item\":{\"status\":[\"SHIPPED\"]}}");
    compare(text, "rare value", PATTERN("{\"dynamodb\":{" IMAGE("NewImage", "status", "\"LOST\"") "}}"),
            "{\"item\":{\"status\":[\"LOST\"]}}");
    compare(text, "two values",
            PATTERN("{\"dynamodb\":{" IMAGE("NewImage", "status", "\"SHIPPED\",\"PAID\"") "}}"),
            "{\"item\":{\"status\":[\"SHIPPED\",\"PAID\"]}}");
    compare(text, "prefix",
            PATTERN("{\"dynamodb\":{" IMAGE("NewImage", "customer", "{\"prefix\":\"J\"}") "}}"),
            "{\"item\":{\"customer\":[{\"prefix\":\"J\"}]}}");
    compare(
        text, "both images",
        PATTERN("{\"dynamodb\":{" IMAGE("NewImage", "status", "\"SHIPPED\"") "," IMAGE(
            "OldImage", "status", "{\"anything-but\":\"SHIPPED\"}") "}}"),
        "{\"item\":{\"status\":[\"SHIPPED\"]},\"old_item\":{\"status\":[{\"anything-but\":\"SHIPPED\"}]}}");
    compare(text, "within a map",
            PATTERN("{\"dynamodb\":{\"NewImage\":{\"address\":{\"M\":{\"city\":{\"S\":[\"Oslo\"]}}}}}}"),
            "{\"item\":{\"address.city\":[\"Oslo\"]}}");
    compare(
        text, "within a map, two values",
        PATTERN(
            "{\"dynamodb\":{\"NewImage\":{\"address\":{\"M\":{\"city\":{\"S\":[\"Oslo\",\"Paris\"]}}}}}}"),
        "{\"item\":{\"address.city\":[\"Oslo\",\"Paris\"]}}");
    compare(text, "two numbers",
            PATTERN("{\"dynamodb\":{\"NewImage\":{\"total\":{\"N\":[\"101\",\"102\"]}}}}"),
            "{\"item\":{\"total\":[101,102]}}");
    measure(text, "rose above 100",
            "{\"item\":{\"total\":[{\"numeric\":[\">\",100]}]},\"old_item\":{\"total\":[{\"numeric\":[\"<=\","
            "100]}]}}");
    measure(text, "eventSource (walks the record)", PATTERN("{\"eventSource\":[\"aws:dynamodb\"]}"));
    measure(text, "changed", "{\"changed\":[\"status\"]}");
    sl_buffer_clean_up(&event);
    return 0;
}
