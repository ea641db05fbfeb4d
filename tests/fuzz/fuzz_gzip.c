/* Any bytes as gzip: refused at a byte within them, or what comes out goes in and out again. */
#include "base/gzip.h"
#include "tests/fuzz/fuzz.h"

#define MAX_BYTES ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_span input = sl_span((const char *)data, size);
    struct sl_buffer plain, packed, again;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&plain, MAX_BYTES);
    sl_buffer_init(&packed, 2 * MAX_BYTES);
    sl_buffer_init(&again, MAX_BYTES);
    if (sl_gzip_expand(input, &plain, &error) != SL_OK) {
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
