/* The canonical texts of values. Each case is one random value in two spellings: other order, other escapes,
 * other forms of its numbers, other spaces. */
#include "tests/support/records.h"
#include "tests/support/test.h"

#include "base/buffer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES 1000

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* What is said, by its seed, and how, by the state. */
struct speller {
    struct sl_buffer *out;
    uint64_t how;
};

static unsigned how(struct speller *s, unsigned below)
{
    s->how = mix(s->how, 1);
    return (unsigned)(s->how % below);
}

static void space(struct speller *s)
{
    if (how(s, 4) == 0)
        sl_buffer_add_str(s->out, how(s, 2) ? " " : "\n\t");
}

static void character(struct speller *s, char c)
{
    if (c == '"' || c == '\\' || c < ' ' || how(s, 6) == 0)
        sl_buffer_printf(s->out, how(s, 2) ? "\\u%04x" : "\\u%04X", c);
    else
        sl_buffer_add_char(s->out, c);
}

/* The number `i` makes texts different, the seed makes them random. */
static void string(struct speller *s, uint64_t seed, unsigned i)
{
    static const char letters[] = "abcxyz019 /\"\\\n\x7f";
    sl_buffer_add_char(s->out, '"');
    character(s, (char)('A' + i % 26));
    character(s, (char)('A' + i / 26));
    for (unsigned n = (unsigned)(seed % 40); n > 0; n--)
        character(s, letters[mix(seed, n) % (sizeof(letters) - 1)]);
    sl_buffer_add_char(s->out, '"');
}

static void number(struct speller *s, uint64_t seed, unsigned i)
{
    unsigned whole = (unsigned)(seed % 1000) * 1000 + i;
    const char *sign = seed & 4096 ? "-" : "";
    static const char *const ends[] = {"", ".00", "0e-1", "e0", ".0E+0"};
    sl_buffer_printf(s->out, "\"%s%u%s\"", sign, whole, ends[how(s, 5)]);
}

static void value(struct speller *s, uint64_t seed, unsigned i, unsigned depth);

enum kind { MAP, LIST, STRINGS, NUMBERS, BYTES };

static void bytes(struct speller *s, uint64_t seed, unsigned i)
{
    sl_buffer_printf(s->out, "\"%c%c%c%c\"", 'A' + (int)(i % 26), 'A' + (int)(i / 26), 'a' + (int)(seed % 26),
                     '0');
}

static void part(struct speller *s, enum kind kind, uint64_t seed, unsigned i, unsigned depth)
{
    space(s);
    switch (kind) {
    case MAP:
        string(s, mix(seed, 3), i);
        space(s);
        sl_buffer_add_char(s->out, ':');
        value(s, mix(seed, i), i, depth);
        break;
    case LIST:
        value(s, mix(seed, i), i, depth);
        break;
    case STRINGS:
        string(s, mix(seed, i), i);
        break;
    case NUMBERS:
        number(s, seed, i);
        break;
    default:
        bytes(s, mix(seed, i), i);
    }
    space(s);
}

/* Up to 200 parts; all but a list's come in any order. */
static void parts(struct speller *s, enum kind kind, uint64_t seed, unsigned depth)
{
    static const unsigned sizes[] = {1, 2, 3, 8, 23, 24, 25, 48, 49, 200};
    unsigned order[200], n = sizes[seed % (depth == 0 ? 10 : 4)];
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n - 1; i > 0 && kind != LIST; i--) {
        unsigned other = how(s, i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    sl_buffer_add_char(s->out, kind == MAP ? '{' : '[');
    for (unsigned i = 0; i < n; i++) {
        if (i)
            sl_buffer_add_char(s->out, ',');
        part(s, kind, seed, order[i], depth + 1);
    }
    sl_buffer_add_char(s->out, kind == MAP ? '}' : ']');
}

static void value(struct speller *s, uint64_t seed, unsigned i, unsigned depth)
{
    static const char *const tags[] = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"};
    unsigned type = (unsigned)(seed >> 8) % (depth < 3 ? 10 : 5);
    if (depth == 0)
        type = 5 + type % 5;
    sl_buffer_add_char(s->out, '{');
    space(s);
    sl_buffer_printf(s->out, "\"%s\"", tags[type]);
    space(s);
    sl_buffer_add_char(s->out, ':');
    space(s);
    uint64_t inner = mix(seed, 7);
    switch (type) {
    case 0:
        string(s, inner, i);
        break;
    case 1:
        number(s, inner, i);
        break;
    case 2:
        bytes(s, inner, i);
        break;
    case 3:
        sl_buffer_add_str(s->out, inner & 1 ? "true" : "false");
        break;
    case 4:
        sl_buffer_add_str(s->out, "true");
        break;
    default:
        parts(s, (enum kind[]){STRINGS, NUMBERS, BYTES, LIST, MAP}[type - 5], inner, depth);
    }
    space(s);
    sl_buffer_add_char(s->out, '}');
}

/* A record whose attribute "v" is what `text` says. */
static bool try_decode(struct test_batch *t, struct sl_span text)
{
    char *whole = NULL;
    assert_true(asprintf(&whole,
                         "[{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"pk\":{\"S\":\"a\"}},"
                         "\"SequenceNumber\":\"1\",\"NewImage\":{\"pk\":{\"S\":\"a\"},\"v\":%.*s}}}]",
                         SL_ARG(text)) > 0);
    test_decode(t, sl_span_str(whole), NULL);
    free(whole);
    return t->status == SL_OK;
}

static struct sl_value decoded_value(struct test_batch *t)
{
    return sl_record_attribute(sl_batch_record(&t->batch, 0), SL_NEW_IMAGE, SL_LIT("v"));
}

static struct sl_value decoded(struct test_batch *t, struct sl_span text)
{
    if (!try_decode(t, text))
        fail_msg("%s: %.*s", t->error.text, SL_ARG(text));
    return decoded_value(t);
}

struct texts {
    struct sl_buffer spelled, canonical, plain, stored;
};

static void texts_init(struct texts *x)
{
    sl_buffer_init(&x->spelled, 1 << 24);
    sl_buffer_init(&x->canonical, 1 << 24);
    sl_buffer_init(&x->plain, 1 << 24);
    sl_buffer_init(&x->stored, 1 << 24);
}

static void texts_clean_up(struct texts *x)
{
    sl_buffer_clean_up(&x->spelled);
    sl_buffer_clean_up(&x->canonical);
    sl_buffer_clean_up(&x->plain);
    sl_buffer_clean_up(&x->stored);
}

static struct sl_value say(struct texts *x, struct test_batch *t, uint64_t seed, uint64_t way)
{
    struct speller s = {&x->spelled, way};
    x->spelled.len = x->canonical.len = x->plain.len = x->stored.len = 0;
    value(&s, seed, 0, 0);
    struct sl_value v = decoded(t, sl_buffer_span(&x->spelled));
    sl_value_canonical(v, &x->canonical);
    sl_value_plain(v, &x->plain);
    sl_value_stored(v, &x->stored);
    return v;
}

/* And count for the same bytes. */
static void equal_values_have_equal_texts(void **state)
{
    (void)state;
    struct texts a, b;
    struct test_batch s, t;
    texts_init(&a);
    texts_init(&b);
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct sl_value v = say(&a, &s, mix(seed, 0), seed), w = say(&b, &t, mix(seed, 0), ~seed);
        assert_true(sl_value_equal(v, w));
        assert_int_equal(sl_value_counted_bytes(v), sl_value_counted_bytes(w));
        assert_true(sl_span_eq(sl_buffer_span(&a.canonical), sl_buffer_span(&b.canonical)));
        assert_true(sl_span_eq(sl_buffer_span(&a.plain), sl_buffer_span(&b.plain)));
        assert_true(sl_span_eq(sl_buffer_span(&a.stored), sl_buffer_span(&b.stored)));
        assert_true(sl_value_equal(v, sl_value_read(sl_buffer_span(&a.stored))));
        test_batch_clean_up(&s);
        test_batch_clean_up(&t);
    }
    texts_clean_up(&a);
    texts_clean_up(&b);
}

/* One byte of the spelling is another: mostly another value, sometimes the same one in one more spelling. */
static void the_texts_differ_when_the_values_do(void **state)
{
    (void)state;
    struct texts x, y;
    struct test_batch s, t;
    size_t same = 0, different = 0;
    texts_init(&x);
    texts_init(&y);
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct sl_value v = say(&x, &s, mix(seed, 0), seed);
        sl_buffer_add_span(&y.spelled, sl_buffer_span(&x.spelled));
        char *at = &y.spelled.ptr[mix(seed, 5) % y.spelled.len];
        *at = (*at >= '0' && *at < '9') || (*at >= 'A' && *at < 'Z') || (*at >= 'a' && *at < 'z') ? *at + 1
                                                                                                  : *at;
        if (try_decode(&t, sl_buffer_span(&y.spelled))) {
            struct sl_value w = decoded_value(&t);
            sl_value_canonical(w, &y.canonical);
            sl_value_plain(w, &y.plain);
            bool equal = sl_value_equal(v, w);
            assert_int_equal(sl_span_eq(sl_buffer_span(&x.canonical), sl_buffer_span(&y.canonical)), equal);
            assert_int_equal(sl_span_eq(sl_buffer_span(&x.plain), sl_buffer_span(&y.plain)), equal);
            same += equal, different += !equal;
        }
        y.spelled.len = y.canonical.len = y.plain.len = 0;
        test_batch_clean_up(&s);
        test_batch_clean_up(&t);
    }
    assert_true(same > CASES / 20 && different > CASES / 20);
    texts_clean_up(&x);
    texts_clean_up(&y);
}

/* jansson keeps the order of names as they stand. */
static bool names_rise(const json_t *v)
{
    const char *name, *before = NULL;
    json_t *child;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)v, name, child)
    {
        if ((before && strcmp(before, name) >= 0) || !names_rise(child))
            return false;
        before = name;
    }
    json_array_foreach(v, i, child) if (!names_rise(child)) return false;
    return true;
}

static size_t leaves(const json_t *v)
{
    const char *name;
    json_t *child;
    size_t i, n = 0;
    if (!json_is_object(v) && !json_is_array(v))
        return 1;
    json_object_foreach((json_t *)(uintptr_t)v, name, child) n += leaves(child);
    json_array_foreach(v, i, child) n += leaves(child);
    return n;
}

static void both_texts_are_json_with_every_part_in_order(void **state)
{
    (void)state;
    struct texts x;
    struct test_batch t;
    texts_init(&x);
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        (void)say(&x, &t, mix(seed, 0), seed);
        json_t *said = json_loadb(x.spelled.ptr, x.spelled.len, 0, NULL);
        json_t *canonical = json_loadb(x.canonical.ptr, x.canonical.len, JSON_REJECT_DUPLICATES, NULL);
        json_t *plain = json_loadb(x.plain.ptr, x.plain.len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(canonical);
        assert_non_null(plain);
        assert_int_equal(leaves(canonical), leaves(said));
        assert_int_equal(leaves(plain), leaves(said));
        assert_true(names_rise(canonical) && names_rise(plain));
        json_decref(said);
        json_decref(canonical);
        json_decref(plain);
        test_batch_clean_up(&t);
    }
    texts_clean_up(&x);
}

static void a_name_that_comes_twice_counts_once(void **state)
{
    (void)state;
    struct sl_buffer text, got;
    sl_buffer_init(&text, 1 << 20);
    sl_buffer_init(&got, 1 << 20);
    static const char wanted[] = "{\"a\":3,\"b\":2,\"c\":5}";
    struct test_batch t;
    sl_buffer_add_str(
        &text, json("{'M':{'b':{'N':'1'},'a':{'N':'1'},'b':{'N':'2'},'\\u0061':{'N':'3'},'c':{'N':'5'}}}"));
    sl_value_plain(decoded(&t, sl_buffer_span(&text)), &got);
    assert_span_is(sl_buffer_span(&got), wanted);
    test_batch_clean_up(&t);
    sl_buffer_clean_up(&text);
    sl_buffer_clean_up(&got);
}

/* What is absent has no type; where plain JSON needs a word for it, that is null. */
static void nothing_is_null_and_bytes_are_no_string(void **state)
{
    (void)state;
    struct sl_buffer got;
    struct test_batch t;
    sl_buffer_init(&got, 1 << 20);
    sl_value_plain((struct sl_value){0}, &got);
    assert_span_is(sl_buffer_span(&got), "null");
    got.len = 0;
    sl_value_plain(decoded(&t, json_span("{'L':[{'NULL':true},{'B':'AAEq'},{'S':'AAEq'},{'BOOL':true}]}")),
                   &got);
    assert_span_is(sl_buffer_span(&got), json("[null,{'base64':'AAEq'},'AAEq',true]"));
    test_batch_clean_up(&t);
    sl_buffer_clean_up(&got);
}

/* A buffer that is too small fails; one that has exactly the room does not. */
static void the_text_fits_or_the_buffer_fails(void **state)
{
    (void)state;
    struct texts x;
    struct test_batch t;
    texts_init(&x);
    for (uint64_t seed = 1; seed <= CASES / 4; seed++) {
        struct sl_value v = say(&x, &t, mix(seed, 0), seed);
        size_t len = x.canonical.len, limits[] = {0, 1, len / 3, len - 1, len};
        for (size_t i = 0; i < 5; i++) {
            struct sl_buffer small;
            sl_buffer_init(&small, limits[i]);
            sl_value_canonical(v, &small);
            assert_int_equal(small.failed, i < 4);
            sl_buffer_clean_up(&small);
        }
        test_batch_clean_up(&t);
    }
    texts_clean_up(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_values_have_equal_texts),
        cmocka_unit_test(the_texts_differ_when_the_values_do),
        cmocka_unit_test(both_texts_are_json_with_every_part_in_order),
        cmocka_unit_test(a_name_that_comes_twice_counts_once),
        cmocka_unit_test(the_text_fits_or_the_buffer_fails),
        cmocka_unit_test(nothing_is_null_and_bytes_are_no_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
