#include "base/gzip.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

/* Largest output that a test here wants. */
#define MAX_BYTES ((size_t)16 << 20)

/* `printf 'sluice\n' | gzip -N`, made by gzip(1) from a file named "a": a member with a name and a time. */
static const unsigned char by_gzip[] = {0x1F, 0x8B, 0x08, 0x08, 0x00, 0x00, 0x00, 0x60, 0x00, 0x03, 0x61,
                                        0x00, 0x2B, 0xCE, 0x29, 0xCD, 0x4C, 0x4E, 0xE5, 0x02, 0x00};

static struct sl_span noise(uint64_t seed, size_t n, unsigned symbols)
{
    char *bytes = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(sl_random_step(&seed) % symbols);
    return sl_span(bytes, n);
}

static void assert_span(struct sl_span got, struct sl_span want)
{
    assert_int_equal(got.len, want.len);
    assert_true(sl_span_eq(got, want));
}

/* The bytes that zlib's own whole-buffer decoder finds in one member. */
static void assert_zlib_reads(struct sl_span member, struct sl_span want)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)member.ptr, .avail_in = (uInt)member.len};
    char *out = malloc(want.len + 1);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)want.len + 1;
    assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_span(sl_span(out, z.total_out), want);
    inflateEnd(&z);
    free(out);
}

static void round_trip(struct sl_span whole, int level)
{
    struct sl_buffer packed, back;
    sl_buffer_init(&packed, MAX_BYTES);
    sl_buffer_init(&back, MAX_BYTES);
    size_t cut = whole.len / 3;
    struct sl_span parts[] = {sl_span(whole.ptr, cut), {0}, sl_span_from(whole, cut)};
    sl_gzip_add(&packed, parts, 3, level);
    assert_false(packed.failed);
    assert_true(sl_gzip_is(sl_buffer_span(&packed)));
    assert_zlib_reads(sl_buffer_span(&packed), whole);
    assert_int_equal(sl_gzip_expand(sl_buffer_span(&packed), &back, NULL), SL_OK);
    assert_span(sl_buffer_span(&back), whole);
    size_t first = packed.len;
    sl_gzip_add(&packed, &whole, 1, level);
    assert_span(sl_span(packed.ptr, first), sl_span_from(sl_buffer_span(&packed), first));
    sl_buffer_clean_up(&packed);
    sl_buffer_clean_up(&back);
}

static void compressed_bytes_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 100, 65535, 65536, 65537, 300000};
    static const unsigned symbols[] = {1, 4, 256};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t k = 0; k < 3; k++) {
            struct sl_span bytes = noise(i * 3 + k, sizes[i], symbols[k]);
            for (int level = 1; level <= 9; level += 4)
                round_trip(bytes, level);
            free((char *)(uintptr_t)bytes.ptr);
        }
}

static void no_parts_make_an_empty_member(void **state)
{
    (void)state;
    struct sl_buffer packed;
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, NULL, 0, 6);
    assert_zlib_reads(sl_buffer_span(&packed), SL_LIT(""));
    sl_buffer_clean_up(&packed);
}

static void the_header_holds_no_time_and_no_name(void **state)
{
    (void)state;
    static const unsigned char want[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255};
    struct sl_buffer packed;
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, &SL_LIT("x"), 1, 6);
    assert_memory_equal(packed.ptr, want, sizeof(want));
    sl_buffer_clean_up(&packed);
}

static void output_keeps_to_its_maximum(void **state)
{
    (void)state;
    struct sl_span bytes = noise(7, 5000, 256);
    struct sl_buffer packed;
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, &bytes, 1, 6);
    size_t need = packed.len;
    sl_buffer_clean_up(&packed);
    for (size_t max = 0; max < need + 2; max += max < need - 20 ? 97 : 1) {
        sl_buffer_init(&packed, max);
        sl_gzip_add(&packed, &bytes, 1, 6);
        assert_int_equal(packed.failed, max < need);
        assert_int_equal(packed.len, max < need ? 0 : need);
        sl_buffer_clean_up(&packed);
    }
    free((char *)(uintptr_t)bytes.ptr);
}

static void expect_expand(const void *bytes, size_t n, size_t max, const char *code, size_t offset,
                          const char *text)
{
    struct sl_buffer out;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&out, max);
    sl_buffer_add_str(&out, "..");
    enum sl_status status = sl_gzip_expand(sl_span(bytes, n), &out, &error);
    if (code) {
        assert_int_equal(status, SL_REJECT);
        assert_string_equal(error.code, code);
        assert_int_equal(error.offset, offset);
        assert_non_null(strstr(error.text, text));
        assert_int_equal(out.len, 2);
    } else {
        assert_int_equal(status, SL_OK);
        assert_span(sl_buffer_span(&out), sl_span(text, strlen(text)));
    }
    sl_buffer_clean_up(&out);
}

static struct sl_span foreign(struct sl_buffer *b)
{
    sl_buffer_init(b, MAX_BYTES);
    sl_buffer_add(b, by_gzip, sizeof(by_gzip));
    uint32_t crc = sl_crc32(0, SL_LIT("sluice\n"));
    const unsigned char trailer[] = {crc & 0xFF, crc >> 8 & 0xFF, crc >> 16 & 0xFF, crc >> 24, 7, 0, 0, 0};
    sl_buffer_add(b, trailer, sizeof(trailer));
    return sl_buffer_span(b);
}

static void members_of_other_writers_are_read(void **state)
{
    (void)state;
    struct sl_buffer b;
    struct sl_span one = foreign(&b);
    expect_expand(one.ptr, one.len, MAX_BYTES, NULL, 0, "..sluice\n");
    sl_gzip_add(&b, &SL_LIT("again"), 1, 6);
    expect_expand(b.ptr, b.len, MAX_BYTES, NULL, 0, "..sluice\nagain");
    sl_buffer_add(&b, "\0\0\0", 3);
    expect_expand(b.ptr, b.len, MAX_BYTES, NULL, 0, "..sluice\nagain");
    sl_buffer_clean_up(&b);
}

static void a_member_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    struct sl_buffer b;
    size_t first = foreign(&b).len;
    sl_gzip_add(&b, &SL_LIT("again and again and again"), 1, 6);
    for (size_t cut = 0; cut < b.len; cut++) {
        char *copy = malloc(cut + 1);
        memcpy(copy, b.ptr, cut);
        if (cut == first)
            expect_expand(copy, cut, MAX_BYTES, NULL, 0, "..sluice\n");
        else
            expect_expand(copy, cut, MAX_BYTES, "TruncatedGzip", cut,
                          cut < first ? "begins at byte 0;" : "begins at byte 29;");
        free(copy);
    }
    sl_buffer_clean_up(&b);
}

static void a_flipped_bit_never_passes_for_data(void **state)
{
    (void)state;
    struct sl_buffer b, out;
    struct sl_span one = foreign(&b);
    sl_buffer_init(&out, MAX_BYTES);
    /* From the compressed data on, all is covered by the check sums, but for the bits that fill its last
     * byte; the header's name and time are not. */
    size_t harmless = 0;
    for (size_t bit = 12 * 8; bit < one.len * 8; bit++) {
        struct sl_error error = SL_NO_ERROR;
        b.ptr[bit / 8] ^= (char)(1 << bit % 8);
        if (sl_gzip_expand(one, &out, &error) == SL_OK) {
            assert_span(sl_buffer_span(&out), SL_LIT("sluice\n"));
            sl_buffer_reset(&out);
            harmless++;
        } else {
            assert_int_equal(error.status, SL_REJECT);
            assert_true(error.offset <= one.len);
        }
        b.ptr[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_in_range(harmless, 1, 7);
    sl_buffer_clean_up(&b);
    sl_buffer_clean_up(&out);
}

static void bad_input_is_refused_at_its_byte(void **state)
{
    (void)state;
    struct sl_buffer b;
    size_t first = foreign(&b).len;
    sl_buffer_add_str(&b, "junk");
    expect_expand(b.ptr, b.len, MAX_BYTES, "InvalidGzip", first, "no gzip member begins at byte 29");
    b.ptr[first - 8] ^= 1;
    expect_expand(b.ptr, first, MAX_BYTES, "InvalidGzip", first - 4,
                  "member at byte 0: incorrect data check");
    expect_expand("{}", 2, MAX_BYTES, "InvalidGzip", 0, "no gzip member begins at byte 0");
    expect_expand("{", 1, MAX_BYTES, "InvalidGzip", 0, "no gzip member begins at byte 0");
    expect_expand("\x1F\x8B\x07", 3, MAX_BYTES, "TruncatedGzip", 3, "begins at byte 0");
    expect_expand("\x1F\x8B\x07\0\0\0\0\0\0\0\0", 11, MAX_BYTES, "InvalidGzip", 4,
                  "unknown compression method");
    sl_buffer_clean_up(&b);
}

static void a_bomb_stops_at_the_maximum(void **state)
{
    (void)state;
    struct sl_span zeros = noise(1, 4 << 20, 1);
    struct sl_buffer packed, out;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, &zeros, 1, 9);
    for (size_t max = zeros.len - 1; max <= zeros.len; max++) {
        sl_buffer_init(&out, max);
        assert_int_equal(sl_gzip_expand(sl_buffer_span(&packed), &out, &error),
                         max < zeros.len ? SL_REJECT : SL_OK);
        assert_int_equal(out.failed, max < zeros.len);
        sl_buffer_clean_up(&out);
    }
    assert_string_equal(error.code, "TooLarge");
    assert_non_null(strstr(error.text, "4194303 bytes"));
    sl_buffer_clean_up(&packed);
    free((char *)(uintptr_t)zeros.ptr);
}

static void failed_output_stays_failed(void **state)
{
    (void)state;
    struct sl_buffer b, out;
    struct sl_error error = SL_NO_ERROR;
    struct sl_span one = foreign(&b);
    sl_buffer_init(&out, MAX_BYTES);
    out.failed = true;
    assert_int_equal(sl_gzip_expand(one, &out, &error), SL_REJECT);
    assert_string_equal(error.code, "TooLarge");
    sl_gzip_add(&out, &one, 1, 6);
    assert_true(out.failed && out.len == 0);
    sl_buffer_clean_up(&b);
}

/* ---- piece by piece ---- */

/* What whole and cut input lead to: the same status, code and bytes. */
struct outcome {
    enum sl_status status;
    struct sl_error error;
    struct sl_buffer out;
};

static struct outcome expand_whole(struct sl_span bytes)
{
    struct outcome o = {.error = SL_NO_ERROR};
    sl_buffer_init(&o.out, MAX_BYTES);
    o.status = sl_gzip_expand(bytes, &o.out, &o.error);
    return o;
}

/* In pieces of at most `step` bytes after a first one of `first`, `room` bytes of output at a time. */
static struct outcome expand_cut(struct sl_span bytes, size_t first, size_t step, size_t room)
{
    struct outcome o = {.error = SL_NO_ERROR};
    struct sl_inflater *x = sl_inflater_new();
    sl_buffer_init(&o.out, MAX_BYTES);
    for (size_t at = 0, n = first; at < bytes.len && o.status == SL_OK; at += n, n = step) {
        n = n < bytes.len - at ? n : bytes.len - at;
        struct sl_span in = sl_span(bytes.ptr + at, n);
        size_t before;
        do {
            before = o.out.len;
            o.status = sl_inflater_add(x, &in, room, &o.out, &o.error);
            assert_true(o.out.len - before <= room);
        } while (o.status == SL_OK && (in.len || o.out.len > before));
    }
    if (o.status == SL_OK)
        o.status = sl_inflater_end(x, &o.error);
    sl_inflater_destroy(x);
    return o;
}

static void assert_same_outcome(struct outcome want, struct outcome got, size_t len)
{
    assert_int_equal(got.status, want.status);
    assert_string_equal(got.error.code, want.error.code);
    if (want.status == SL_OK)
        assert_span(sl_buffer_span(&got.out), sl_buffer_span(&want.out));
    else
        assert_true(got.error.offset <= len);
    sl_buffer_clean_up(&got.out);
}

static void cut_anywhere_it_is_the_same(struct sl_span bytes)
{
    struct outcome whole = expand_whole(bytes);
    for (size_t cut = 0; cut <= bytes.len; cut++)
        assert_same_outcome(whole, expand_cut(bytes, cut, bytes.len, MAX_BYTES), bytes.len);
    for (size_t step = 1; step < 9; step++)
        for (size_t room = 1; room < 70000; room *= 40)
            assert_same_outcome(whole, expand_cut(bytes, step, step, room), bytes.len);
    sl_buffer_clean_up(&whole.out);
}

/* Two members with padding; then the same with each byte changed, and ending at each byte. */
static void pieces_mean_what_the_whole_means(void **state)
{
    (void)state;
    struct sl_buffer packed;
    struct sl_span first = SL_LIT("one member, "), second = noise(3, 90, 4);
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, &first, 1, 6);
    sl_gzip_add(&packed, &second, 1, 6);
    sl_buffer_add(&packed, "\0\0", 2);
    cut_anywhere_it_is_the_same(sl_buffer_span(&packed));
    for (size_t i = 0; i < packed.len; i++) {
        packed.ptr[i] ^= 0x41;
        cut_anywhere_it_is_the_same(sl_buffer_span(&packed));
        packed.ptr[i] ^= 0x41;
        cut_anywhere_it_is_the_same(sl_span(packed.ptr, i));
    }
    sl_buffer_add(&packed, "x", 1);
    cut_anywhere_it_is_the_same(sl_buffer_span(&packed));
    sl_buffer_clean_up(&packed);
    free((char *)(uintptr_t)second.ptr);
}

/* More output than input waits in the decoder, and comes without more input. */
static void a_bomb_comes_in_rooms(void **state)
{
    (void)state;
    struct sl_span zeros = noise(1, 4 << 20, 1);
    struct sl_buffer packed;
    sl_buffer_init(&packed, MAX_BYTES);
    sl_gzip_add(&packed, &zeros, 1, 9);
    struct outcome whole = expand_whole(sl_buffer_span(&packed));
    assert_same_outcome(whole, expand_cut(sl_buffer_span(&packed), 1000, 1000, 5000), packed.len);
    /* Of input without its trailer, all output comes, although all input was taken before. */
    struct sl_inflater *x = sl_inflater_new();
    struct sl_span in = sl_span(packed.ptr, packed.len - 8);
    sl_buffer_reset(&whole.out);
    assert_int_equal(sl_inflater_add(x, &in, zeros.len - 1, &whole.out, NULL), SL_OK);
    assert_int_equal(whole.out.len, zeros.len - 1);
    assert_int_equal(sl_inflater_add(x, &in, 10, &whole.out, NULL), SL_OK);
    assert_int_equal(whole.out.len, zeros.len);
    assert_int_equal(in.len, 0);
    sl_inflater_destroy(x);
    sl_inflater_destroy(NULL);
    sl_buffer_clean_up(&whole.out);
    sl_buffer_clean_up(&packed);
    free((char *)(uintptr_t)zeros.ptr);
}

static void a_reset_inflater_is_a_new_one(void **state)
{
    (void)state;
    struct sl_buffer packed, out;
    struct sl_inflater *x = sl_inflater_new();
    sl_buffer_init(&packed, MAX_BYTES);
    sl_buffer_init(&out, MAX_BYTES);
    sl_gzip_add(&packed, &SL_LIT("x"), 1, 6);
    struct sl_span in = sl_span(packed.ptr, packed.len / 2);
    assert_int_equal(sl_inflater_add(x, &in, MAX_BYTES, &out, NULL), SL_OK);
    assert_int_equal(sl_inflater_end(x, NULL), SL_REJECT);
    sl_inflater_reset(x);
    sl_buffer_reset(&out);
    in = sl_buffer_span(&packed);
    assert_int_equal(sl_inflater_add(x, &in, MAX_BYTES, &out, NULL), SL_OK);
    assert_int_equal(sl_inflater_end(x, NULL), SL_OK);
    assert_span(sl_buffer_span(&out), SL_LIT("x"));
    sl_inflater_destroy(x);
    sl_buffer_clean_up(&packed);
    sl_buffer_clean_up(&out);
}

static void two_bytes_tell_gzip(void **state)
{
    (void)state;
    assert_true(sl_gzip_is(SL_LIT("\x1F\x8B")));
    assert_false(sl_gzip_is(SL_LIT("\x1F")));
    assert_false(sl_gzip_is(SL_LIT("{\"")));
    assert_false(sl_gzip_is(SL_LIT("\x1F\x8C\x08")));
    assert_false(sl_gzip_is(sl_span(NULL, 0)));
}

static void crc32_has_its_check_value(void **state)
{
    (void)state;
    assert_int_equal(sl_crc32(0, SL_LIT("")), 0);
    assert_int_equal(sl_crc32(0, sl_span(NULL, 0)), 0);
    assert_int_equal(sl_crc32(0, SL_LIT("123456789")), 0xCBF43926); /* the check value of CRC-32/ISO-HDLC */
    assert_int_equal(sl_crc32(sl_crc32(0, SL_LIT("1234")), SL_LIT("56789")), 0xCBF43926);
    assert_int_equal(sl_crc32(0xCBF43926, sl_span(NULL, 0)), 0xCBF43926);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_bytes_come_back),
        cmocka_unit_test(no_parts_make_an_empty_member),
        cmocka_unit_test(output_keeps_to_its_maximum),
        cmocka_unit_test(the_header_holds_no_time_and_no_name),
        cmocka_unit_test(members_of_other_writers_are_read),
        cmocka_unit_test(a_member_cut_at_any_byte_is_refused),
        cmocka_unit_test(bad_input_is_refused_at_its_byte),
        cmocka_unit_test(a_flipped_bit_never_passes_for_data),
        cmocka_unit_test(a_bomb_stops_at_the_maximum),
        cmocka_unit_test(failed_output_stays_failed),
        cmocka_unit_test(pieces_mean_what_the_whole_means),
        cmocka_unit_test(a_bomb_comes_in_rooms),
        cmocka_unit_test(a_reset_inflater_is_a_new_one),
        cmocka_unit_test(two_bytes_tell_gzip),
        cmocka_unit_test(crc32_has_its_check_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
