/* Any text as JSON: what is accepted stays the same value however it is taken apart. */
#include "base/json.h"
#include "base/json_write.h"
#include "tests/fuzz/fuzz.h"

/* Every string of the text, unescaped, escaped anew, is the same text. */
static void check_strings(struct sl_span text, struct sl_arena *arena)
{
    struct sl_buffer again;
    sl_buffer_init(&again, SIZE_MAX / 2);
    const char *end = text.ptr + text.len;
    for (const char *p = text.ptr; p < end; p++) {
        bool escaped;
        if (*p != '"')
            continue;
        const char *close = sl_json_string_end(p + 1, end, &escaped);
        struct sl_span inner = sl_span(p + 1, (size_t)(close - p - 1));
        struct sl_span plain = sl_json_unescape(inner, arena);
        FUZZ_CHECK(plain.len == sl_json_unescaped_bytes(inner) && sl_json_text_is(inner, plain));
        sl_buffer_reset(&again);
        sl_json_add_escaped(&again, plain);
        FUZZ_CHECK(sl_json_same(inner, sl_buffer_span(&again)));
        p = close;
    }
    sl_buffer_clean_up(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_span text = sl_span((const char *)data, size);
    struct sl_error error = SL_NO_ERROR;
    /* Callers pass checked JSON only; other text does no harm. */
    (void)sl_json_find(text, "a[0].b");
    (void)sl_json_find(text, "[1].a");
    if (sl_json_check(text, &error) != SL_OK) {
        FUZZ_CHECK(error.offset <= size && error.text[0]);
        return 0;
    }
    struct sl_arena *arena = sl_arena_new(4096);
    struct sl_buffer compact;
    struct sl_span value = sl_json_find(text, "");
    char path[64];
    FUZZ_CHECK(value.len > 0);
    sl_buffer_init(&compact, SIZE_MAX / 2);
    sl_json_add_compact(&compact, value);
    FUZZ_CHECK(sl_json_check(sl_buffer_span(&compact), NULL) == SL_OK);
    FUZZ_CHECK(sl_json_find(sl_buffer_span(&compact), "").len == compact.len);
    check_strings(value, arena);
    (void)sl_json_find(text, "a[0].b");
    for (size_t i = 0; i < value.len; i += 7)
        sl_json_path_of(value, value.ptr + i, path, sizeof(path));
    sl_buffer_clean_up(&compact);
    sl_arena_destroy(arena);
    return 0;
}
