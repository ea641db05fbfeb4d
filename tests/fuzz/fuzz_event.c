/* Any text as input of records. What is accepted can be looked into everywhere; a record decodes to the same
 * alone, when nothing was learned from records before it, as within its batch. */
#include "base/buffer.h"
#include "base/json.h"
#include "streams/decode/batch.h"
#include "streams/record.h"
#include "tests/fuzz/fuzz.h"

static void look_into(const struct sl_record *r, enum sl_image image, struct sl_arena *arena)
{
    struct sl_iter iter = sl_value_iter(sl_record_image(r, image));
    struct sl_span name;
    struct sl_value value;
    while (sl_value_next(&iter, &name, &value)) {
        struct sl_value found = sl_record_attribute(r, image, sl_json_unescape(name, arena));
        FUZZ_CHECK(found.type != SL_NONE);
        FUZZ_CHECK(sl_value_equal(value, value));
        (void)sl_value_text(value, arena);
        (void)sl_value_bytes(value, arena);
        (void)sl_record_changed(r, sl_json_unescape(name, arena));
    }
}

static bool same_span(struct sl_span a, struct sl_span b)
{
    return (a.ptr != NULL) == (b.ptr != NULL) && sl_span_eq(a, b);
}

static void must_be_same(const struct sl_record *a, const struct sl_record *b)
{
    for (int field = SL_FIELD_RAW; field <= SL_FIELD_TABLE; field++)
        FUZZ_CHECK(
            same_span(sl_record_text(a, (enum sl_field)field), sl_record_text(b, (enum sl_field)field)));
    FUZZ_CHECK(sl_record_event(a) == sl_record_event(b) && sl_record_view(a) == sl_record_view(b));
    FUZZ_CHECK(sl_record_ttl(a) == sl_record_ttl(b) && sl_record_created_ns(a) == sl_record_created_ns(b));
    FUZZ_CHECK(sl_record_stated_bytes(a) == sl_record_stated_bytes(b));
    FUZZ_CHECK(sl_record_computed_bytes(a) == sl_record_computed_bytes(b));
    for (int i = SL_KEYS; i <= SL_OLD_IMAGE; i++)
        FUZZ_CHECK(
            sl_value_equal(sl_record_image(a, (enum sl_image)i), sl_record_image(b, (enum sl_image)i)));
}

static void must_find_the_same(const struct sl_record *a, const struct sl_record *b, struct sl_arena *arena)
{
    for (enum sl_image image = SL_KEYS; image <= SL_OLD_IMAGE; image++) {
        struct sl_iter iter = sl_value_iter(sl_record_image(a, image));
        struct sl_span name;
        struct sl_value value;
        while (sl_value_next(&iter, &name, &value)) {
            struct sl_span text = sl_json_unescape(name, arena);
            struct sl_value x = sl_record_attribute(a, image, text), y = sl_record_attribute(b, image, text);
            FUZZ_CHECK(x.type == y.type && x.escaped == y.escaped && same_span(x.raw, y.raw));
        }
    }
}

/* The same with the attributes noted while they are read. */
static void check_noted(struct sl_span text, const struct sl_batch *plain, struct sl_decode_options options)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_batch noted;
    options.notes_attributes = true;
    (void)!sl_batch_decode(text, arena, &options, &noted, NULL);
    FUZZ_CHECK(noted.n == plain->n);
    for (size_t i = 0; i < noted.n; i++)
        must_find_the_same(sl_batch_record(&noted, i), sl_batch_record(plain, i), arena);
    sl_arena_destroy(arena);
}

/* The record by itself, as one of an array or as a line, like those it came with. */
static void check_alone(const struct sl_batch *batch, const struct sl_record *r,
                        const struct sl_decode_options *options)
{
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_buffer text;
    struct sl_batch alone;
    bool is_line = batch->shape == SL_SHAPE_LINES;
    sl_buffer_init(&text, SIZE_MAX / 2);
    sl_buffer_add_str(&text, is_line ? "" : "[");
    sl_buffer_add_span(&text, sl_record_text(r, SL_FIELD_RAW));
    sl_buffer_add_str(&text, is_line ? "" : "]");
    FUZZ_CHECK(sl_batch_decode(sl_buffer_span(&text), arena, options, &alone, NULL) == SL_OK);
    FUZZ_CHECK(alone.n == 1);
    must_be_same(r, sl_batch_record(&alone, 0));
    sl_buffer_clean_up(&text);
    sl_arena_destroy(arena);
}

static void check_record(const struct sl_batch *batch, size_t i, const struct sl_decode_options *options)
{
    const struct sl_record *r = sl_batch_record(batch, i);
    struct sl_arena *arena = sl_arena_new(4096);
    for (int image = SL_KEYS; image <= SL_OLD_IMAGE; image++)
        look_into(r, (enum sl_image)image, arena);
    (void)sl_record_order(r, arena);
    (void)sl_record_item_key(r, arena);
    FUZZ_CHECK(sl_json_check(sl_record_text(r, SL_FIELD_RAW), NULL) == SL_OK);
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW);
    bool is_wrapped =
        !sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER).ptr && sl_record_text(r, SL_FIELD_IDENTIFIER).ptr;
    /* What Kinesis says of a record is not in the record; one that has "Records" is an event when alone. */
    if (!is_wrapped && !sl_json_find(raw, "Records").ptr)
        check_alone(batch, r, options);
    sl_arena_destroy(arena);
}

static void check(struct sl_span text, bool any_shape)
{
    const struct sl_decode_options options = {.ttl_attribute = SL_LIT("ttl"), .any_shape = any_shape};
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_error error = SL_NO_ERROR;
    struct sl_batch batch;
    if (sl_batch_decode(text, arena, &options, &batch, &error) != SL_OK)
        FUZZ_CHECK(error.offset <= text.len && error.text[0]);
    for (size_t i = 0; i < batch.n; i++)
        check_record(&batch, i, &options);
    check_noted(text, &batch, options);
    sl_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(sl_span((const char *)data, size), false);
    check(sl_span((const char *)data, size), true);
    return 0;
}
