/* Any text as an attribute's value, in both images of a record, so that the second is read by what was
 * learned from the first; and by itself, unchecked. */
#include "base/buffer.h"
#include "base/json.h"
#include "streams/decode/batch.h"
#include "streams/record_layout.h"
#include "tests/fuzz/fuzz.h"

static void walk(struct sl_value v, struct sl_arena *arena)
{
    struct sl_iter iter = sl_value_iter(v);
    struct sl_value element;
    struct sl_number number;
    int64_t n;
    struct sl_span text = sl_value_text(v, arena), bytes = sl_value_bytes(v, arena);
    FUZZ_CHECK((text.ptr != NULL) == (v.type == SL_S || v.type == SL_N || v.type == SL_B));
    FUZZ_CHECK((bytes.ptr != NULL) == (v.type == SL_B));
    FUZZ_CHECK(sl_value_number(v, &number) == (v.type == SL_N));
    FUZZ_CHECK(v.type != SL_B || sl_value_counted_bytes(v) == bytes.len);
    FUZZ_CHECK(v.type != SL_S || sl_value_counted_bytes(v) == text.len);
    (void)sl_value_int64(v, &n);
    while (sl_value_next(&iter, NULL, &element))
        walk(element, arena);
}

static struct sl_span canonical(struct sl_value v, struct sl_arena *arena)
{
    struct sl_buffer b;
    sl_buffer_init(&b, SL_CANONICAL_BYTES);
    sl_value_canonical(v, &b);
    struct sl_span text = sl_span(sl_arena_copy(arena, sl_buffer_span(&b)), b.len);
    sl_buffer_clean_up(&b);
    return text;
}

/* What is stored of a value that a table takes is the same value. */
static void check_stored(struct sl_value v)
{
    struct sl_buffer b;
    sl_buffer_init(&b, SL_CANONICAL_BYTES);
    sl_value_stored(v, &b);
    FUZZ_CHECK(sl_value_equal(v, sl_value_read(sl_buffer_span(&b))));
    sl_buffer_clean_up(&b);
}

static void check(const struct sl_record *r, struct sl_arena *arena)
{
    struct sl_value a = sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("v"));
    struct sl_value b = sl_record_attribute(r, SL_OLD_IMAGE, SL_LIT("v"));
    FUZZ_CHECK(a.type != SL_NONE && sl_value_equal(a, b) && !sl_record_changed(r, SL_LIT("v")));
    FUZZ_CHECK(sl_span_eq(canonical(a, arena), canonical(b, arena)));
    FUZZ_CHECK(sl_value_counted_bytes(a) == sl_value_counted_bytes(b));
    walk(a, arena);
    walk(b, arena);
    (void)sl_record_path(r, SL_NEW_IMAGE, SL_LIT("v.a[0].b"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buffer text;
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_batch batch;
    struct sl_span value = sl_span((const char *)data, size);
    struct sl_value unchecked = sl_value_read(value);
    walk(unchecked, arena);
    if (unchecked.type != SL_NONE)
        check_stored(unchecked);
    sl_buffer_init(&text, SIZE_MAX / 2);
    sl_buffer_add_str(&text, "[{\"eventName\":\"MODIFY\",\"dynamodb\":{\"Keys\":{},\"NewImage\":{\"v\":");
    sl_buffer_add_span(&text, value);
    sl_buffer_add_str(&text, "},\"OldImage\":{\"v\":");
    sl_buffer_add_span(&text, value);
    sl_buffer_add_str(&text,
                      "},\"SequenceNumber\":\"00000000000000000000000000000000000000000000000000000001\"}}]");
    if (sl_batch_decode(sl_buffer_span(&text), arena, &(struct sl_decode_options){.any_shape = false}, &batch,
                        NULL) == SL_OK &&
        sl_json_check(value, NULL) == SL_OK) {
        const struct sl_record *r = sl_batch_record(&batch, 0);
        check(r, arena);
        /* (An empty set is read, and not written.) */
        FUZZ_CHECK(unchecked.type == SL_NONE ||
                   sl_value_equal(unchecked, sl_record_attribute(r, SL_NEW_IMAGE, SL_LIT("v"))));
    }
    sl_buffer_clean_up(&text);
    sl_arena_destroy(arena);
    return 0;
}
