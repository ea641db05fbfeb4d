#include "base/fold.h"
#include "tests/support/test.h"

#include <stdlib.h>

static void characters_fold_as_unicode_says(void **state)
{
    (void)state;
    static const uint32_t pairs[][2] = {
        {'A', 'a'},       {'Z', 'z'},         {'@', '@'},         {'[', '['},         {'a', 'a'},
        {0xC4, 0xE4},     {0xD7, 0xD7},       {0xDF, 0xDF},       {0x100, 0x101},     {0x101, 0x101},
        {0x178, 0xFF},    {0x391, 0x3B1},     {0x3A3, 0x3C3},     {0x3C2, 0x3C3},     {0x410, 0x430},
        {0x42F, 0x44F},   {0x531, 0x561},     {0x1E9E, 0xDF},     {0x212A, 'k'},      {0xFF21, 0xFF41},
        {0x4E2D, 0x4E2D}, {0x10400, 0x10428}, {0x1E921, 0x1E943}, {0x1E922, 0x1E922}, {0x10FFFF, 0x10FFFF}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_int_equal(sl_fold(pairs[i][0]), pairs[i][1]);
}

static void folding_twice_changes_nothing(void **state)
{
    (void)state;
    size_t folded = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t f = sl_fold(c);
        assert_int_equal(sl_fold(f), f);
        folded += f != c;
    }
    assert_in_range(folded, 1300, 1600);
}

static size_t put(uint32_t c, char *out)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n == 1)
        out[0] = (char)c;
    for (size_t i = n; n > 1 && i > 0; i--, c >>= 6)
        out[i - 1] = (char)(i > 1 ? 0x80 | (c & 0x3F) : leads[n] | c);
    return n;
}

/* Each character alone, before and after another one. */
static void each_characters_text_folds_to_its_folded_characters(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[8], wanted[8], room[SL_FOLD_ROOM(8)];
        if (c >= 0xD800 && c < 0xE000)
            continue;
        size_t n = put(c, text), m = put(sl_fold(c), wanted);
        text[n++] = 'X';
        wanted[m++] = 'x';
        struct sl_span whole = sl_span(text, n), folded = sl_span(wanted, m);
        if (!sl_span_eq(sl_span(room, sl_fold_text(whole, room)), folded) || !sl_fold_eq(whole, folded) ||
            !sl_fold_starts(whole, sl_span(wanted, m - 1)) || !sl_fold_ends(whole, folded) ||
            sl_fold_eq(whole, sl_span(wanted, m - 1)) ||
            sl_fold_ends(whole, sl_span(wanted, m - 1)) != (sl_fold(c) == 'x') ||
            sl_fold_starts(sl_span(text, n - 1), folded))
            fail_msg("U+%04X", c);
    }
}

/* A byte that is not UTF-8 is no character, also not the one of its number. */
static void a_lone_byte_equals_itself_alone(void **state)
{
    (void)state;
    for (unsigned byte = 0x80; byte < 0x100; byte++)
        for (unsigned other = 0x80; other < 0x100; other++) {
            char lone[1] = {(char)byte}, second[1] = {(char)other}, character[2], room[4];
            struct sl_span text = sl_span(lone, 1);
            size_t n = put(other, character);
            assert_true(sl_span_eq(sl_span(room, sl_fold_text(text, room)), text));
            assert_int_equal(sl_fold_eq(text, sl_span(second, 1)), byte == other);
            assert_false(sl_fold_eq(text, sl_span(character, n)));
            assert_false(sl_fold_eq(sl_span(character, n), text));
        }
}

static struct sl_span fold(const char *text, char *room)
{
    return sl_span(room, sl_fold_text(sl_span_str(text), room));
}

static void texts_compare_without_case(void **state)
{
    (void)state;
    char room[64];
    struct sl_span f = fold("M\xC3\x9CNCHEN \xF0\x90\x90\x80", room);
    assert_span_is(f, "m\xC3\xBCnchen \xF0\x90\x90\xA8");
    assert_true(sl_fold_eq(sl_span_str("m\xC3\x9CnChEn \xF0\x90\x90\x80"), f));
    assert_false(sl_fold_eq(sl_span_str("m\xC3\x9CnChEn"), f));
    assert_false(sl_fold_eq(sl_span_str("m\xC3\x9CnChEn \xF0\x90\x90\x80."), f));
    assert_true(sl_fold_starts(sl_span_str("m\xC3\x9CnChEn \xF0\x90\x90\x80."), f));
    assert_true(sl_fold_ends(sl_span_str("In M\xC3\xBCnchen \xF0\x90\x90\x80"), f));
    assert_false(sl_fold_ends(sl_span_str("nchen \xF0\x90\x90\x80"), f));
    f = fold("\xC3\xBC", room);
    assert_true(sl_fold_ends(sl_span_str("xx\xC3\x9C"), f));
    assert_false(sl_fold_ends(sl_span_str("\x9C"), f));
    /* The Kelvin sign is three bytes and folds to one. */
    f = fold("k", room);
    assert_true(sl_fold_ends(sl_span_str("0 \xE2\x84\xAA"), f));
    assert_true(sl_fold_starts(sl_span_str("\xE2\x84\xAA 0"), f));
    f = fold("", room);
    assert_true(sl_fold_eq(sl_span(NULL, 0), f) && sl_fold_starts(SL_LIT("a"), f) &&
                sl_fold_ends(SL_LIT("a"), f));
}

static void bytes_that_are_not_utf8_stay_as_they_are(void **state)
{
    (void)state;
    char room[64];
    struct sl_span f = fold("\xE9\xFF", room);
    assert_span_is(f, "\xE9\xFF");
    assert_true(sl_fold_eq(SL_LIT("\xE9\xFF"), f));
    assert_false(sl_fold_eq(SL_LIT("\xC3\xA9\xFF"), f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_fold_as_unicode_says),
        cmocka_unit_test(folding_twice_changes_nothing),
        cmocka_unit_test(each_characters_text_folds_to_its_folded_characters),
        cmocka_unit_test(a_lone_byte_equals_itself_alone),
        cmocka_unit_test(texts_compare_without_case),
        cmocka_unit_test(bytes_that_are_not_utf8_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
