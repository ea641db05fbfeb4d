/* The small modules of base: errors, digests, hashes, spans, near names. */
#include "tests/support/test.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "base/vars.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- errors ---- */

/* A text of any length, of characters of any size, is cut at a whole one, and no more than one character
 * earlier than it had to be. */
static void a_long_text_is_cut_at_a_whole_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"a", "\xC3\xA4", "\xE4\xB8\xAD", "\xF0\x9F\xA6\x8A"};
    for (size_t c = 0; c < 4; c++)
        for (size_t lead = 0; lead < 4; lead++)
            for (size_t bytes = SL_ERROR_TEXT_BYTES - 12; bytes < SL_ERROR_TEXT_BYTES + 8; bytes++) {
                char text[SL_ERROR_TEXT_BYTES + 16] = "bcd";
                size_t n = lead, width = strlen(characters[c]);
                for (; n + width <= bytes; n += width)
                    memcpy(text + n, characters[c], width + 1);
                struct sl_error error = SL_NO_ERROR;
                sl_fail(&error, SL_RETRY, "X", "%s", text);
                size_t len = strlen(error.text);
                assert_memory_equal(error.text, text, len);
                assert_true(sl_utf8_is_valid(sl_span(error.text, len)));
                if (n < SL_ERROR_TEXT_BYTES - 1)
                    assert_int_equal(len, n);
                assert_true(len + 2 * width >= (n < SL_ERROR_TEXT_BYTES ? n : SL_ERROR_TEXT_BYTES));
            }
}

static void context_stands_before_the_text(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    sl_error_context(&error, "nothing failed");
    assert_string_equal(error.text, "");
    sl_error_context(NULL, "nowhere");
    sl_fail(&error, SL_RETRY, "Code", "why");
    sl_error_context(&error, "line %d", 2);
    sl_error_context(&error, "file");
    assert_string_equal(error.text, "file: line 2: why");
    assert_string_equal(error.code, "Code");
    assert_int_equal(error.offset, SL_NO_OFFSET);
    char longest[SL_ERROR_TEXT_BYTES];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    sl_error_context(&error, "%s", longest);
    assert_string_equal(error.text, longest);
    sl_error_clear(&error);
    assert_string_equal(error.text, "");
    assert_int_equal(error.offset, SL_NO_OFFSET);
    sl_error_clear(NULL);
}

/* A plugin may have filled both texts to the last byte. */
static void sealed_texts_end(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    memset(error.code, 'c', sizeof(error.code));
    memset(error.text, 't', sizeof(error.text));
    memcpy(error.text + sizeof(error.text) - 4, "\xF0\x9F\xA6\x8A", 4);
    sl_error_seal(&error);
    assert_int_equal(strlen(error.code), SL_ERROR_CODE_BYTES - 1);
    assert_int_equal(strlen(error.text), SL_ERROR_TEXT_BYTES - 4);
    struct sl_error good = {SL_RETRY, 3, "Code", "text\n"};
    sl_error_seal(&good);
    assert_string_equal(good.code, "Code");
    assert_string_equal(good.text, "text?");
    sl_error_seal(NULL);
}

static void each_status_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(sl_status_name(SL_OK), "OK");
    assert_string_equal(sl_status_name(SL_RETRY), "RETRY");
    assert_string_equal(sl_status_name(SL_REJECT), "REJECT");
    assert_string_equal(sl_status_name(SL_FATAL), "FATAL");
    assert_string_equal(sl_status_name((enum sl_status)4), "?"); /* a plugin's */
    assert_string_equal(sl_status_name((enum sl_status) - 1), "?");
}

static void the_process_ends_with_one_line(void **state)
{
    (void)state;
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        sl_die("out of %s: %d bytes", "memory", 7);
    }
    close(fds[1]);
    char text[256];
    ssize_t n = read(fds[0], text, sizeof(text));
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_span_is(sl_span(text, (size_t)n), "sluice: out of memory: 7 bytes\n");
}

/* ---- digests and hashes ---- */

static void hex_is(const unsigned char digest[SL_SHA256_BYTES], const char *wanted)
{
    char hex[SL_SHA256_HEX];
    sl_sha256_hex(digest, hex);
    assert_string_equal(hex, wanted);
}

/* FIPS 180-4's examples, in any pieces. */
static void sha256_is_that_of_the_standard(void **state)
{
    (void)state;
    struct sl_sha256 sha;
    unsigned char digest[SL_SHA256_BYTES];
    const struct sl_span abc[] = {SL_LIT("a"), {NULL, 0}, SL_LIT("bc"), SL_LIT("")};
    sl_sha256_init(&sha);
    sl_sha256_parts(&sha, abc, 4, digest);
    hex_is(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sl_sha256_parts(&sha, NULL, 0, digest);
    hex_is(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sl_sha256_clean_up(&sha);
    sl_sha256_clean_up(&sha);
}

/* RFC 4231's cases 1, 2 and 6; keys of no byte, a block and one more as Python's hmac signs with them. */
static void hmac_is_that_of_the_rfc(void **state)
{
    (void)state;
    struct sl_sha256 sha;
    struct sl_sha256_key key = {NULL, NULL};
    unsigned char digest[SL_SHA256_BYTES];
    char bytes[131];
    sl_sha256_init(&sha);
    memset(bytes, 0x0b, 20);
    sl_sha256_key_set(&sha, &key, sl_span(bytes, 20));
    sl_sha256_hmac(&sha, &key, SL_LIT("Hi There"), digest);
    hex_is(digest, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    sl_sha256_key_set(&sha, &key, SL_LIT("Jefe"));
    for (int i = 0; i < 2; i++) { /* a key signs more than once */
        sl_sha256_hmac(&sha, &key, SL_LIT("what do ya want for nothing?"), digest);
        hex_is(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
    memset(bytes, 0xaa, sizeof(bytes));
    sl_sha256_key_set(&sha, &key, sl_span(bytes, sizeof(bytes)));
    sl_sha256_hmac(&sha, &key, SL_LIT("Test Using Larger Than Block-Size Key - Hash Key First"), digest);
    hex_is(digest, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    sl_sha256_key_set(&sha, &key, sl_span(bytes, 64));
    sl_sha256_hmac(&sha, &key, SL_LIT("x"), digest);
    hex_is(digest, "ce3c639dcb9d8baae5d44c3b8b5e233faab4d1860e07489af5c84f213998bd79");
    sl_sha256_key_set(&sha, &key, sl_span(bytes, 65));
    sl_sha256_hmac(&sha, &key, SL_LIT("x"), digest);
    hex_is(digest, "c2b9a0a013df029c7d812c5ac18388feef0194ee64fcc5f321d149c06137caa3");
    sl_sha256_key_set(&sha, &key, sl_span(NULL, 0));
    sl_sha256_hmac(&sha, &key, SL_LIT("x"), digest);
    hex_is(digest, "4cbc96099a6467ce002461f10549b4898265ebe6188b45efacc44293516e62c4");
    sl_sha256_key_clean_up(&key);
    sl_sha256_clean_up(&sha);
}

/* The FNV authors' test vectors. */
static void the_hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(sl_hash(SL_LIT("")) == 0xcbf29ce484222325u);
    assert_true(sl_hash(SL_LIT("a")) == 0xaf63dc4c8601ec8cu);
    assert_true(sl_hash(SL_LIT("foobar")) == 0x85944171f73967e8u);
}

/* ---- spans and names ---- */

static void beginnings_and_ends_are_compared(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "a", "b", "ab", "ba", "aba"};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++) {
            struct sl_span text = sl_span_str(texts[i]), part = sl_span_str(texts[k]);
            size_t n = strlen(texts[i]), m = strlen(texts[k]);
            assert_int_equal(sl_span_starts(text, part), strncmp(texts[i], texts[k], m) == 0);
            assert_int_equal(sl_span_ends(text, part), m <= n && strcmp(texts[i] + n - m, texts[k]) == 0);
            assert_int_equal(sl_span_eq(text, part), i == k);
        }
    struct sl_span absent = sl_span(NULL, 0);
    assert_true(sl_span_starts(absent, absent) && sl_span_ends(absent, absent));
    assert_false(sl_span_starts(absent, SL_LIT("a")) || sl_span_ends(absent, SL_LIT("a")));
    assert_true(sl_span_starts(SL_LIT("a"), absent) && sl_span_ends(SL_LIT("a"), absent));
    assert_null(sl_span_from(absent, 0).ptr);
    assert_span_is(sl_span_from(SL_LIT("abc"), 2), "c");
    assert_int_equal(sl_span_from(SL_LIT("abc"), 3).len, 0);
    assert_int_equal(sl_span_from(SL_LIT("abc"), 4).len, 0);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The edits, by their definition. */
static size_t edits(const char *a, size_t n, const char *b, size_t m)
{
    if (n == 0 || m == 0)
        return n + m;
    size_t best = edits(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]);
    best = least(best, edits(a, n - 1, b, m) + 1);
    best = least(best, edits(a, n, b, m - 1) + 1);
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1])
        best = least(best, edits(a, n - 2, b, m - 2) + 1);
    return best;
}

static void a_near_name_is_few_edits_away(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int i = 0; i < 2000; i++) {
        char names[3][6] = {{0}};
        for (size_t k = 0; k < 3; k++)
            for (size_t n = sl_random_step(&seed) % 6; n > 0; n--)
                names[k][strlen(names[k])] = (char)('a' + sl_random_step(&seed) % 3);
        struct sl_nearest near = sl_nearest_begin(sl_span_str(names[0]));
        size_t d[3] = {0};
        for (size_t k = 1; k < 3; k++) {
            d[k] = edits(names[0], strlen(names[0]), names[k], strlen(names[k]));
            sl_nearest_consider(&near, names[k]);
        }
        const char *want = least(d[1], d[2]) > 2 ? NULL : d[1] <= d[2] ? names[1] : names[2];
        assert_ptr_equal(near.best, want);
    }
}

/* A third of it may be wrong; names of more than 64 bytes are near to none. */
static void a_long_name_may_have_more_mistakes(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 66; n++)
        for (size_t wrong = 0; wrong <= n; wrong++) {
            char name[80] = {0}, known[80] = {0};
            memset(name, 'a', n);
            memset(known, 'a', n);
            memset(known, 'b', wrong);
            struct sl_nearest near = sl_nearest_begin(sl_span_str(name));
            sl_nearest_consider(&near, known);
            size_t limit = n / 3 > 2 ? n / 3 : 2;
            assert_int_equal(near.best != NULL, n <= 64 && wrong <= limit);
        }
    char name[66] = {0}; /* one of the two is too long */
    memset(name, 'a', 65);
    struct sl_nearest near = sl_nearest_begin(sl_span(name, 64));
    sl_nearest_consider(&near, name);
    assert_null(near.best);
    near = sl_nearest_begin(sl_span(name, 65));
    sl_nearest_consider(&near, name + 1);
    assert_null(near.best);
}

static void known_names_are_listed_as_far_as_there_is_room(void **state)
{
    (void)state;
    char list[8] = "";
    sl_nearest_list(list, sizeof(list), "a");
    assert_string_equal(list, "a");
    sl_nearest_list(list, sizeof(list), "bc");
    assert_string_equal(list, "a, bc");
    sl_nearest_list(list, sizeof(list), "def");
    assert_string_equal(list, "a, bc, ");
    sl_nearest_list(list, sizeof(list), "g");
    assert_string_equal(list, "a, bc, ");
}

static void an_empty_variable_is_as_one_that_is_not_set(void **state)
{
    (void)state;
    const char *const list[] = {"A=1", "E=", "AA=2", NULL};
    const struct sl_vars vars = {.list = list};
    assert_string_equal(sl_vars_or(&vars, "A", "x"), "1");
    assert_string_equal(sl_vars_or(&vars, "AA", "x"), "2");
    assert_string_equal(sl_vars_or(&vars, "E", "x"), "x");
    assert_string_equal(sl_vars_or(&vars, "B", "x"), "x");
    assert_string_equal(sl_vars_get(&vars, "E"), "");
    assert_null(sl_vars_or(&vars, "", NULL));
}

/* ---- arrays ---- */

/* With one element more each time, and with many at once; the room is never less than what is there. */
static void arrays_grow_and_keep_what_they_have(void **state)
{
    (void)state;
    struct sl_arena *arena = sl_arena_new(1024);
    uint32_t *heap = NULL, *own = NULL;
    size_t n = 0, m = 0, heap_room = 0, own_room = 0, moves = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        const uint32_t *before = own;
        SL_PUSH(heap, n, heap_room, "numbers") = i;
        SL_PUSH_IN(arena, own, m, own_room) = ~i;
        moves += own != before;
        assert_true(n == i + 1 && m == n && heap_room >= n && own_room >= m);
    }
    for (uint32_t i = 0; i < 10000; i++)
        assert_true(heap[i] == i && own[i] == ~i);
    assert_int_equal(moves, 11); /* 16 * 2^10 */
    heap = sl_array_fit(heap, 100000, &heap_room, sizeof(*heap), "numbers");
    own = sl_array_fit_in(arena, own, 100000, &own_room, sizeof(*own));
    assert_true(heap_room == 100000 && own_room == 100000 && heap[9999] == 9999 && own[9999] == ~9999u);
    assert_ptr_equal(sl_array_fit(heap, 7, &heap_room, sizeof(*heap), "numbers"), heap);
    assert_ptr_equal(sl_array_fit_in(arena, own, 100000, &own_room, sizeof(*own)), own);
    assert_int_equal(SL_COUNT(((char[7]){0})), 7);
    free(heap);
    sl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_grow_and_keep_what_they_have),
        cmocka_unit_test(a_long_text_is_cut_at_a_whole_character),
        cmocka_unit_test(context_stands_before_the_text),
        cmocka_unit_test(sealed_texts_end),
        cmocka_unit_test(each_status_has_a_name),
        cmocka_unit_test(the_process_ends_with_one_line),
        cmocka_unit_test(sha256_is_that_of_the_standard),
        cmocka_unit_test(hmac_is_that_of_the_rfc),
        cmocka_unit_test(the_hash_is_fnv_1a),
        cmocka_unit_test(beginnings_and_ends_are_compared),
        cmocka_unit_test(a_near_name_is_few_edits_away),
        cmocka_unit_test(a_long_name_may_have_more_mistakes),
        cmocka_unit_test(known_names_are_listed_as_far_as_there_is_room),
        cmocka_unit_test(an_empty_variable_is_as_one_that_is_not_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
