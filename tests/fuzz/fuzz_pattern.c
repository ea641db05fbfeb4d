/* A line that is a pattern, a `when` or a condition on an item, and below it a record (or none: then one of
 * our own). What compiles matches the same way twice, and what is refused is refused at a byte within it. */
#include "streams/decode/batch.h"
#include "streams/when/when.h"
#include "tests/fuzz/fuzz.h"

static const char own[] =
    "{\"eventID\":\"e1\",\"eventName\":\"MODIFY\",\"awsRegion\":\"eu-central-1\",\"userIdentity\":{\"type\":"
    "\"x\"},"
    "\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"a\"}},\"NewImage\":{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"},"
    "\"t\":{\"SS\":["
    "\"x\",\"y\"]},\"l\":{\"L\":[{\"M\":{\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"2\"}}},{\"BOOL\":true}]},\"a.b\":"
    "{\"S\":"
    "\"\\u00e9\"}},\"OldImage\":{\"PK\":{\"S\":\"a\"}},\"SequenceNumber\":\"1\",\"SizeBytes\":26}}";

static void match(struct sl_span json, const struct sl_batch *batch, struct sl_arena *arena, bool is_pattern)
{
    struct sl_when *when;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = is_pattern ? sl_pattern_compile(json, arena, &when, &error)
                                       : sl_when_compile(json, arena, &when, &error);
    FUZZ_CHECK(status == SL_OK || (error.offset <= json.len && error.text[0]));
    if (status != SL_OK)
        return;
    FUZZ_CHECK(sl_when_images(when) < 8);
    for (size_t i = 0; i < batch->n; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        bool first = sl_when_match(when, r, arena);
        FUZZ_CHECK(first == sl_when_match(when, r, arena));
    }
}

/* A condition on plain values: what holds of no item holds of an empty one. */
static void match_items(struct sl_span json, const struct sl_batch *batch, struct sl_arena *arena)
{
    struct sl_when *where;
    struct sl_error error = SL_NO_ERROR;
    if (sl_where_compile(json, arena, &where, &error) != SL_OK) {
        FUZZ_CHECK(error.offset <= json.len && error.text[0]);
        return;
    }
    const struct sl_value none = {.type = SL_NONE}, empty = {.type = SL_M, .raw = SL_LIT("{}")};
    FUZZ_CHECK(sl_where_match(where, none, arena) == sl_where_match(where, empty, arena));
    for (size_t i = 0; i < batch->n; i++)
        for (unsigned image = SL_KEYS; image <= SL_OLD_IMAGE; image++) {
            struct sl_value item = sl_record_image(sl_batch_record(batch, i), (enum sl_image)image);
            FUZZ_CHECK(sl_where_match(where, item, arena) == sl_where_match(where, item, arena));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_span input = sl_span((const char *)data, size);
    const char *line = size ? memchr(data, '\n', size) : NULL;
    struct sl_span json = line ? sl_span(input.ptr, (size_t)(line - input.ptr)) : input;
    struct sl_decode_options options = {.any_shape = true};
    struct sl_batch batch = {.n = 0};
    if (!line || sl_batch_decode(sl_span_from(input, json.len + 1), arena, &options, &batch, NULL) != SL_OK)
        FUZZ_CHECK(sl_batch_decode(SL_LIT(own), arena, &options, &batch, NULL) == SL_OK);
    match(json, &batch, arena, true);
    match(json, &batch, arena, false);
    match_items(json, &batch, arena);
    sl_arena_destroy(arena);
    return 0;
}
