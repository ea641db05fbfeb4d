/* Any bytes as gzip: refused at a byte within them, or what comes out goes in and out again. */
#include "base/gzip.h"
#include "tests/fuzz/fuzz.h"

#define MAX_BYTES ((size_t)1 << 20)

/* Piece by piece, in steps that the input chooses, the outcome is the same. */
static void check_pieces(struct sl_span input, enum sl_status status, struct sl_span text)
{
    struct sl_inflater *x = sl_inflater_new();
    struct sl_buffer out;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status now = SL_OK;
    size_t step = 1 + (input.len ? (unsigned char)input.ptr[input.len - 1] : 0);
    sl_buffer_init(&out, MAX_BYTES);
    for (size_t at = 0; at < input.len && now == SL_OK; at += step) {
        struct sl_span in = sl_span(input.ptr + at, step < input.len - at ? step : input.len - at);
        while (now == SL_OK && in.len && out.len < out.max)
            now = sl_inflater_add(x, &in, 777, &out, &error);
        if (now == SL_OK && !in.len)
            now = sl_inflater_add(x, &in, MAX_BYTES, &out, &error);
    }
    if (now == SL_OK)
        now = sl_inflater_end(x, &error);
    FUZZ_CHECK(now == SL_OK || error.offset <= input.len);
    FUZZ_CHECK(status != SL_OK || (now == SL_OK && sl_span_eq(sl_buffer_span(&out), text)));
    FUZZ_CHECK(now != SL_OK || status == SL_OK || out.len == out.max);
    sl_inflater_destroy(x);
    sl_buffer_clean_up(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_span input = sl_span((const char *)data, size);
    struct sl_buffer plain, packed, again;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&plain, MAX_BYTES);
    sl_buffer_init(&packed, 2 * MAX_BYTES);
    sl_buffer_init(&again, MAX_BYTES);
    enum sl_status status = sl_gzip_expand(input, &plain, &error);
    check_pieces(input, status, sl_buffer_span(&plain));
    if (status != SL_OK) {
        FUZZ_CHECK(error.offset <= size && plain.len == 0);
    } else {
        struct sl_span text = sl_buffer_span(&plain);
        sl_gzip_add(&packed, &text, 1, 1);
        FUZZ_CHECK(!packed.failed && sl_gzip_expand(sl_buffer_span(&packed), &again, NULL) == SL_OK);
        FUZZ_CHECK(sl_span_eq(sl_buffer_span(&again), text));
    }
    sl_buffer_clean_up(&plain);
    sl_buffer_clean_up(&packed);
    sl_buffer_clean_up(&again);
    return 0;
}
