/* Items as the sinks see them, against the records' values (streams/value.h), which were written apart: on
 * random values, both say the same of size, equality and keys. */
#include "tests/support/test.h"

#include "base/json.h"
#include "base/json_write.h"
#include "sinks/item.h"
#include "streams/value.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252u;

static unsigned draw(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

#define PICK(list) list[draw(sizeof(list) / sizeof(list[0]))]

/* Values, each in two spellings. */
static const char *const texts[][2] = {{"", ""},
                                       {"a", "\\u0061"},
                                       {"a\\u0000b", "\\u0061\\u0000b"},
                                       {"\\u0000", "\\u0000"},
                                       {"\\n", "\\u000a"},
                                       {"ab", "a\\u0062"},
                                       {"\xC3\xA4", "\\u00e4"},
                                       {"\\ud83d\\ude00", "\xF0\x9F\x98\x80"},
                                       {"x/y", "x\\/y"},
                                       {"/", "\\u002F"},
                                       {"\\\"\\\\b", "\\u0022\\\\b"},
                                       {"\\ufffe", "\xEF\xBF\xBE"},
                                       {"{}[]", "{}[]"},
                                       {"\\udbff\\udfff", "\xF4\x8F\xBF\xBF"}};
static const char *const numbers[][2] = {
    {"0", "-0"},
    {"1", "1.0"},
    {"0.10", "1e-1"},
    {"100", "1E+2"},
    {"-7", "-7.00"},
    {"1.5", "15e-1"},
    {"4E+30", "4000000000000000000000000000000"},
    {"1e-130", "0.1e-129"},
    {"9.99e125", "99.9E124"},
    {"101", "\\u003101"},
    {"-1E-5", "-.00001"},
    {"12345678901234567890123456789012345678", "1.2345678901234567890123456789012345678E37"}};
static const char *const binaries[][2] = {{"", ""},         {"AA==", "\\u0041A=="}, {"AAA=", "AAA="},
                                          {"AAAA", "AAAA"}, {"+/8=", "+\\/8="},     {"Pz8/", "Pz8\\u002f"}};
static const char *const names[][2] = {{"a", "\\u0061"},
                                       {"b", "b"},
                                       {"a\\u0000", "\\u0061\\u0000"},
                                       {"", ""},
                                       {"\xC3\xA4", "\\u00e4"},
                                       {"long name", "long\\u0020name"}};

/* Which spelling is drawn apart, so that one value is made again in others. */
static uint64_t spelling_seed = 1;

static unsigned spelling(void)
{
    spelling_seed = spelling_seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(spelling_seed >> 63);
}

#define SPELL(list) PICK(list)[spelling()]

static void add_value(struct sl_buffer *out, unsigned depth);

static void add_set(struct sl_buffer *out, const char *tag)
{
    unsigned n = 1 + draw(3), begin = draw(100);
    sl_buffer_printf(out, "{\"%s\":[", tag);
    /* No number twice, so that it is a set to the decoder. */
    for (unsigned i = 0; i < n; i++) {
        sl_buffer_add_str(out, i ? ",\"" : "\"");
        if (tag[0] == 'N')
            sl_buffer_printf(out, "%u%s", begin + i, spelling() ? ".0" : "");
        else
            sl_buffer_add_str(out, tag[0] == 'S' ? SPELL(texts) : SPELL(binaries));
        sl_buffer_add_char(out, '"');
    }
    sl_buffer_add_str(out, "]}");
}

static void add_map(struct sl_buffer *out, unsigned depth)
{
    unsigned n = draw(4);
    sl_buffer_add_char(out, '{');
    for (unsigned i = 0; i < n; i++) {
        sl_buffer_printf(out, "%s\"%s\" : ", i ? " ,\n" : "", SPELL(names));
        add_value(out, depth + 1);
    }
    sl_buffer_add_char(out, '}');
}

static void add_value(struct sl_buffer *out, unsigned depth)
{
    switch (draw(depth < 4 ? 11 : 8)) {
    case 0:
    case 1:
        sl_buffer_printf(out, "{\"S\":\"%s\"}", SPELL(texts));
        break;
    case 2:
    case 3:
        sl_buffer_printf(out, "{\"N\": \"%s\"}", SPELL(numbers));
        break;
    case 4:
        sl_buffer_printf(out, "{\"\\u0042\":\"%s\"}", SPELL(binaries));
        break;
    case 5:
        sl_buffer_add_str(out, draw(2) ? "{\"BOOL\":true}" : "{ \"BOOL\" : false }");
        break;
    case 6:
        sl_buffer_add_str(out, "{\"NULL\":true}");
        break;
    case 7:
        add_set(out, draw(3) == 0 ? "SS" : draw(2) ? "NS" : "BS");
        break;
    case 8:
    case 9:
        sl_buffer_add_str(out, "{\"M\":");
        add_map(out, depth);
        sl_buffer_add_char(out, '}');
        break;
    default:
        sl_buffer_add_str(out, "{\"L\":[");
        for (unsigned i = 0, n = draw(3); i < n; i++) {
            sl_buffer_add_str(out, i ? "," : "");
            add_value(out, depth + 1);
        }
        sl_buffer_add_str(out, "]}");
    }
}

/* The value as records hold it. */
static struct sl_value value_of(struct sl_span json)
{
    const char *next;
    return sl_value_at(json.ptr, json.ptr + json.len, &next);
}

/* Whether the table would say that they are equal. */
static bool table_finds_equal(struct sl_span a, struct sl_span b)
{
    char *item = NULL;
    if (asprintf(&item, "{\"v\":%.*s}", SL_ARG(a)) < 0)
        abort();
    const struct sl_test test = {SL_EQ, SL_LIT("v"), b};
    const struct sl_table_op op = {.tests = &test, .n_tests = 1};
    bool holds = false;
    struct sl_error error = SL_NO_ERROR;
    if (sl_item_test(&op, sl_span_str(item), &holds, &error) != SL_OK)
        fail_msg("%.*s: %s", SL_ARG(b), error.text);
    free(item);
    return holds;
}

#define ROUNDS 20000

static void random_values_are_the_same_to_both(void **state)
{
    (void)state;
    struct sl_buffer a, b;
    unsigned equal = 0;
    sl_buffer_init(&a, 1 << 20);
    sl_buffer_init(&b, 1 << 20);
    for (unsigned i = 0; i < ROUNDS; i++) {
        sl_buffer_reset(&a);
        sl_buffer_reset(&b);
        uint64_t before = seed;
        add_value(&a, 0);
        bool is_again = i % 2;
        if (is_again)
            seed = before;
        add_value(&b, 0);
        struct sl_span x = sl_buffer_span(&a), y = sl_buffer_span(&b);
        assert_int_equal(sl_json_check(x, NULL), SL_OK);
        bool wanted = sl_value_equal(value_of(x), value_of(y));
        if (is_again && !wanted)
            fail_msg("%.*s and %.*s are spellings of one value", SL_ARG(x), SL_ARG(y));
        equal += wanted;
        if (table_finds_equal(x, y) != wanted)
            fail_msg("%.*s and %.*s are %s", SL_ARG(x), SL_ARG(y), wanted ? "equal" : "not equal");
        char *item = NULL;
        if (asprintf(&item, "{\"v\":%.*s,\"\\u00e4\":%.*s}", SL_ARG(x), SL_ARG(y)) < 0)
            abort();
        struct sl_value image = {.type = SL_M, .raw = sl_span_str(item)};
        if (sl_item_bytes(sl_span_str(item)) != sl_value_item_bytes(image))
            fail_msg("%s: %zu bytes and %zu", item, sl_item_bytes(sl_span_str(item)),
                     (size_t)sl_value_item_bytes(image));
        free(item);
    }
    assert_true(equal > ROUNDS / 4 && equal < ROUNDS);
    sl_buffer_clean_up(&a);
    sl_buffer_clean_up(&b);
}

static bool key_text(const char *tag, const char *text, struct sl_buffer *out)
{
    char *key = NULL;
    if (asprintf(&key, "{\"k\":{\"%s\":\"%s\"}}", tag, text) < 0)
        abort();
    sl_buffer_reset(out);
    bool is_key = sl_item_key_text(sl_span_str(key), out, NULL) == SL_OK;
    free(key);
    return is_key;
}

static void keys_have_one_text_for_equal_values(void **state)
{
    (void)state;
    struct sl_buffer a, b;
    sl_buffer_init(&a, 32 * 1024);
    sl_buffer_init(&b, 32 * 1024);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const char *tag = draw(3) == 0 ? "S" : draw(2) ? "N" : "B";
        const char *x = tag[0] == 'S' ? SPELL(texts) : tag[0] == 'N' ? SPELL(numbers) : SPELL(binaries);
        const char *y = tag[0] == 'S' ? SPELL(texts) : tag[0] == 'N' ? SPELL(numbers) : SPELL(binaries);
        char *v = NULL, *w = NULL;
        if (asprintf(&v, "{\"%s\":\"%s\"}", tag, x) < 0 || asprintf(&w, "{\"%s\":\"%s\"}", tag, y) < 0)
            abort();
        assert_int_equal(key_text(tag, x, &a), *x != '\0');
        assert_int_equal(key_text(tag, y, &b), *y != '\0');
        if (*x && *y) {
            assert_int_equal(sl_span_eq(sl_buffer_span(&a), sl_buffer_span(&b)),
                             sl_value_equal(value_of(sl_span_str(v)), value_of(sl_span_str(w))));
            assert_int_equal(sl_json_check(sl_buffer_span(&a), NULL), SL_OK);
        }
        free(v);
        free(w);
    }
    sl_buffer_clean_up(&a);
    sl_buffer_clean_up(&b);
}

/* What is not a value of DynamoDB's, by what is wrong with it. */
static void what_is_not_a_value_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"{'a':{}}",
                                      "{'a':1}",
                                      "{'a':{'S':1}}",
                                      "{'a':{'S':'x','N':'1'}}",
                                      "{'a':{'X':'x'}}",
                                      "{'a':{'N':''}}",
                                      "{'a':{'N':'1x'}}",
                                      "{'a':{'N':'1e126'}}",
                                      "{'a':{'B':'AB'}}",
                                      "{'a':{'B':'AB=='}}",
                                      "{'a':{'SS':[]}}",
                                      "{'a':{'SS':[1]}}",
                                      "{'a':{'NS':['x']}}",
                                      "{'a':{'BOOL':'true'}}",
                                      "{'a':{'NULL':false}}",
                                      "{'a':{'L':{}}}",
                                      "{'a':{'M':[]}}",
                                      "{'a':{'L':[1]}}",
                                      "{'a':{'M':{'x':{}}}}",
                                      "{'a':{'s':'x'}}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_item_read(json_span(bad[i]), &error), SL_OK);
        if (sl_item_check(json_span(bad[i]), &error) != SL_REJECT || !strstr(error.text, "attribute a "))
            fail_msg("%s is taken, or: %s", bad[i], error.text);
    }
    for (unsigned depth = 31; depth <= 33; depth++) {
        struct sl_buffer deep;
        sl_buffer_init(&deep, 4096);
        sl_buffer_add_str(&deep, "{\"a\":");
        for (unsigned i = 0; i < depth; i++)
            sl_buffer_add_str(&deep, "{\"L\":[");
        sl_buffer_add_str(&deep, "{\"S\":\"x\"}");
        for (unsigned i = 0; i < depth; i++)
            sl_buffer_add_str(&deep, "]}");
        sl_buffer_add_char(&deep, '}');
        enum sl_status wanted = depth <= SL_ITEM_DEPTH ? SL_OK : SL_REJECT;
        assert_int_equal(sl_item_check(sl_buffer_span(&deep), NULL), wanted);
        sl_buffer_clean_up(&deep);
    }
    static const char *const not_items[] = {"", "[]", "1", "{", "{'a'", "{} x", "\xEF\xBB\xBF{}", "null"};
    for (size_t i = 0; i < sizeof(not_items) / sizeof(not_items[0]); i++)
        assert_int_equal(sl_item_read(json_span(not_items[i]), NULL), SL_REJECT);
}

/* What unescaping made is written so that unescaping makes it again; different texts stay different. */
static void exact_strings_come_back(void **state)
{
    (void)state;
    static const char pieces[][5] = {
        "a",    "\"",           "\\",           "\x01",         "\x7f",         "\xC3\xA4",         "\xFF",
        "\xED", "\xED\xA0\x80", "\xED\xB0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x9F\x98\x80", ""};
    for (unsigned i = 0; i < 20000; i++) {
        struct sl_buffer text, json_text;
        char back[256];
        sl_buffer_init(&text, 64);
        sl_buffer_init(&json_text, 1024);
        for (unsigned n = draw(6); n > 0; n--) {
            const char *piece = PICK(pieces);
            sl_buffer_add(&text, piece, *piece ? strlen(piece) : 1);
        }
        sl_json_add_exact(&json_text, sl_buffer_span(&text));
        size_t n = sl_json_unescape_to(sl_buffer_span(&json_text), back);
        if (!sl_span_eq(sl_span(back, n), sl_buffer_span(&text)))
            fail_msg("%.*s", SL_ARG(sl_buffer_span(&json_text)));
        sl_buffer_clean_up(&text);
        sl_buffer_clean_up(&json_text);
    }
}

/* ---- keys, conditions and updates at their edges ---- */

static enum sl_status text_of_key(const char *key, size_t room, char *out)
{
    struct sl_buffer text;
    sl_buffer_init(&text, room);
    enum sl_status status = sl_item_key_text(json_span(key), &text, NULL);
    if (status == SL_OK)
        snprintf(out, 200, "%.*s", SL_ARG(sl_buffer_span(&text)));
    sl_buffer_clean_up(&text);
    return status;
}

static void a_key_has_one_or_two_attributes(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text; /* NULL: refused */
    } cases[] = {
        {"{'a':{'S':'1'}}", "{'a':{'S':'1'}}"},
        {"{'b':{'S':'1'},'a':{'N':'2.0'}}", "{'a':{'N':'2'},'b':{'S':'1'}}"},
        {"{'a':{'N':'2.0'},'b':{'S':'1'}}", "{'a':{'N':'2'},'b':{'S':'1'}}"},
        {"{'ab':{'S':'1'},'a':{'S':'2'}}", "{'a':{'S':'2'},'ab':{'S':'1'}}"},
        {"{'a':{'S':'2'},'ab':{'S':'1'}}", "{'a':{'S':'2'},'ab':{'S':'1'}}"},
        {"{'':{'S':'2'},'a':{'S':'1'}}", "{'':{'S':'2'},'a':{'S':'1'}}"},
        {"{'a':{'S':'1'},'a':{'S':'2'}}", "{'a':{'S':'2'}}"},
        {"{'a':{'S':'1'},'\\u0061':{'S':'2'}}", "{'a':{'S':'2'}}"},
        {"{'a':{'N':'007'}}", "{'a':{'N':'7'}}"},
        {"{'a':{'N':'-0'}}", "{'a':{'N':'0'}}"},
        {"{}", NULL},
        {"{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'1'}}", NULL},
        {"{'a':{'S':''}}", NULL},
        {"{'a':{'B':''}}", NULL},
        {"{'a':{'N':''}}", NULL},
        {"{'a':{'N':'x'}}", NULL},
        {"{'a':{'B':'A'}}", NULL},
        {"{'a':{'BOOL':true}}", NULL},
        {"{'a':{'SS':['1']}}", NULL},
        {"{'a':{'S':'1'},'b':{'NULL':true}}", NULL},
    };
    char text[200];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(text_of_key(cases[i].key, 1000, text), cases[i].text ? SL_OK : SL_REJECT);
        if (cases[i].text)
            assert_string_equal(text, json(cases[i].text));
    }
    assert_int_equal(text_of_key(cases[0].key, strlen(cases[0].key), text), SL_OK);
    assert_int_equal(text_of_key(cases[0].key, strlen(cases[0].key) - 1, text), SL_REJECT);
}

static void an_item_has_its_key(void **state)
{
    (void)state;
    static const struct {
        const char *item, *key;
        bool has;
    } cases[] = {
        {"{'a':{'N':'1.0'},'b':{'S':'x'},'c':{'S':'y'}}", "{'a':{'N':'1'},'b':{'S':'x'}}", true},
        {"{'a':{'N':'1.0'},'b':{'S':'z'}}", "{'a':{'N':'1'},'b':{'S':'x'}}", false},
        {"{'a':{'N':'1.0'}}", "{'a':{'N':'1'},'b':{'S':'x'}}", false},
        {"{'a':{'S':'1'}}", "{'a':{'N':'1'}}", false},
        {"{'a':{'S':'0'},'a':{'S':'1'}}", "{'a':{'S':'1'}}", true},
        {"{'a':{'S':'1'},'a':{'S':'0'}}", "{'a':{'S':'1'}}", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_item_has_key(json_span(cases[i].item), json_span(cases[i].key), &error);
        assert_int_equal(status, cases[i].has ? SL_OK : SL_REJECT);
        assert_int_equal(error.text[0] != '\0', !cases[i].has);
    }
}

/* Whether a LT b, a EQ b, a GT b hold, as digits; -1: b is not a value. */
static int order_of(const char *a, const char *b)
{
    const char *item = json_printf("{'v':%s}", a);
    const enum sl_test_verb verbs[] = {SL_LT, SL_EQ, SL_GT, SL_LE, SL_NE};
    int digits = 0;
    for (size_t i = 0; i < 5; i++) {
        struct sl_test test = {.verb = verbs[i], .name = SL_LIT("v"), .value = json_span(b)};
        struct sl_table_op op = {.tests = &test, .n_tests = 1};
        bool holds = false;
        enum sl_status status = sl_item_test(&op, sl_span_str(item), &holds, NULL);
        if (status == SL_REJECT)
            return -1;
        assert_int_equal(status, SL_OK);
        digits = digits * 10 + holds;
    }
    return digits;
}

static void values_have_their_order(void **state)
{
    (void)state;
    /* LT EQ GT LE NE; what has no order may still be equal */
    enum { LESS = 10011, SAME = 1010, MORE = 101, OTHER = 1, EQUAL = 1000 };
    static const struct {
        const char *a, *b;
        int order;
    } cases[] = {
        {"{'N':'1'}", "{'N':'2'}", LESS},
        {"{'N':'2'}", "{'N':'2.0'}", SAME},
        {"{'N':'3'}", "{'N':'2'}", MORE},
        {"{'N':'-3'}", "{'N':'2'}", LESS},
        {"{'S':'a'}", "{'S':'ab'}", LESS},
        {"{'S':'ab'}", "{'S':'a'}", MORE},
        {"{'S':''}", "{'S':''}", SAME},
        {"{'S':''}", "{'S':'a'}", LESS},
        {"{'B':'AA=='}", "{'B':'AQ=='}", LESS},
        {"{'B':'/w=='}", "{'B':'AQ=='}", MORE},
        {"{'S':'1'}", "{'N':'2'}", OTHER},
        {"{'N':'1'}", "{'S':'2'}", OTHER},
        {"{'BOOL':true}", "{'BOOL':true}", EQUAL},
        {"{'BOOL':true}", "{'BOOL':false}", OTHER},
        {"{'SS':['a']}", "{'SS':['b']}", OTHER},
        {"{'NULL':true}", "{'NULL':true}", EQUAL},
        {"{'N':'x'}", "{'N':'2'}", OTHER},
        {"{'N':'2'}", "{'N':'x'}", -1},
        {"{}", "{'N':'2'}", OTHER},
        {"{'N':'2'}", "{}", -1},
        {"{'N':'2'}", "5", -1},
        {"{'NS':['x']}", "{'NS':['2']}", OTHER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int have = order_of(cases[i].a, cases[i].b);
        if (have != cases[i].order)
            fail_msg("%s and %s: %d", cases[i].a, cases[i].b, have);
    }
}

static const char *updated(const char *item, struct sl_set set, struct sl_arena *arena)
{
    const struct sl_table_op op = {
        .verb = SL_TABLE_UPDATE, .key = json_span("{'PK':{'S':'a'}}"), .sets = &set, .n_sets = 1};
    struct sl_span out;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_item_update(&op, json_span(item), arena, &out, &error);
    assert_true(status == SL_OK || (status == SL_REJECT && error.text[0]));
    if (status != SL_OK)
        return NULL;
    assert_int_equal(sl_json_check(out, NULL), SL_OK);
    return sl_arena_copy(arena, out);
}

static void updates_at_their_edges(void **state)
{
    (void)state;
#define NINES_37 "9999999999999999999999999999999999999"
    static const struct {
        const char *item;
        enum sl_set_verb verb;
        const char *name, *value, *out; /* NULL: refused */
    } cases[] = {
        {"{'n':{'N':'" NINES_37 "8'}}", SL_ADD, "n", "{'N':'1'}", "{'n':{'N':'" NINES_37 "9'}}"},
        {"{'n':{'N':'" NINES_37 "9'}}", SL_ADD, "n", "{'N':'1'}",
         "{'n':{'N':'100000000000000000000000000000000000000'}}"},
        {"{'n':{'N':'" NINES_37 "9'}}", SL_ADD, "n", "{'N':'0.1'}", NULL},
        {"{'n':{'N':'" NINES_37 "'}}", SL_ADD, "n", "{'N':'0.1'}", "{'n':{'N':'" NINES_37 ".1'}}"},
        {"{'n':{'N':'9e125'}}", SL_ADD, "n", "{'N':'1e125'}", NULL},
        {"{'n':{'N':'007'}}", SL_ADD, "n", "{'N':'-007'}", "{'n':{'N':'0'}}"},
        {"{}", SL_ADD, "n", "{'N':'01.50'}", "{'n':{'N':'1.5'}}"},
        {"{'n':{'S':'1'}}", SL_ADD, "n", "{'N':'1'}", NULL},
        {"{'n':{'N':'x'}}", SL_ADD, "n", "{'N':'1'}", NULL},
        {"{}", SL_ADD, "n", "{'S':'1'}", NULL},
        {"{}", SL_ADD, "n", "{'N':'x'}", NULL},
        {"{'n':{'N':'1'}}", SL_UNSET, "n", NULL, "{}"},
        {"{'n':{'N':'1'},'n':{'N':'2'},'m':{'N':'3'}}", SL_UNSET, "n", NULL, "{'m':{'N':'3'}}"},
        {"{'m':{'N':'3'}}", SL_UNSET, "n", NULL, "{'m':{'N':'3'}}"},
        {"{'n':{'N':'1'},'n':{'N':'2'}}", SL_SET, "n", "{'N':'3'}", "{'n':{'N':'1'},'n':{'N':'3'}}"},
        {"{}", SL_SET, "a\"\n", "{'N':'3'}", "{'a\\\"\\n':{'N':'3'}}"},
        {"{}", SL_SET, "n", "{}", NULL},
        {"{}", SL_SET, "n", "5", NULL},
        {"{'PK':{'S':'a'}}", SL_SET, "PK", "{'S':'b'}", NULL},
        {"{'PK':{'S':'a'}}", SL_UNSET, "PK", NULL, NULL},
        {"{}", SL_SET_MAX, "n", "{'N':'3'}", "{'n':{'N':'3'}}"},
        {"{'n':{'N':'3'}}", SL_SET_MAX, "n", "{'N':'3.0'}", "{'n':{'N':'3'}}"},
        {"{'n':{'N':'3'}}", SL_SET_MAX, "n", "{'N':'4'}", "{'n':{'N':'4'}}"},
        {"{'n':{'N':'3'}}", SL_SET_MAX, "n", "{'N':'2'}", "{'n':{'N':'3'}}"},
        {"{'n':{'N':'3'}}", SL_SET_MIN, "n", "{'N':'3.0'}", "{'n':{'N':'3'}}"},
        {"{'n':{'N':'3'}}", SL_SET_MIN, "n", "{'N':'2'}", "{'n':{'N':'2'}}"},
        {"{'n':{'S':'3'}}", SL_SET_MIN, "n", "{'N':'2'}", NULL},
        {"{'n':{'BOOL':true}}", SL_SET_MAX, "n", "{'BOOL':false}", NULL},
    };
    struct sl_arena *arena = sl_arena_new(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_set set = {cases[i].verb, sl_span_str(cases[i].name),
                                   cases[i].value ? json_span(cases[i].value) : sl_span(NULL, 0)};
        const char *have = updated(cases[i].item, set, arena);
        if (!have != !cases[i].out || (have && strcmp(have, json(cases[i].out)) != 0))
            fail_msg("case %zu: %s", i, have ? have : "refused");
    }
    sl_arena_destroy(arena);
}

/* A page's items are checked as they are found, by the same rule as sl_item_check. */
static bool scans(const char *text)
{
    struct sl_span span = json_span(text);
    struct sl_json_scan scan = {.end = sl_span_end(span), .is_loose = true};
    return sl_value_check_item(&scan, span.ptr) == sl_span_end(span);
}

static void a_page_holds_items_alone(void **state)
{
    (void)state;
    static const char *const good[] = {"{}",
                                       "{ }",
                                       "{'a':{'S':'x'}}",
                                       "{'a':{'N':'1'} , 'b':{'BOOL':true}}",
                                       "{'a':{'BOOL':false}}",
                                       "{'a':{'NULL':true}}",
                                       "{'a':{'L':[]}}",
                                       "{'a':{'M':{}}}",
                                       "{'a':{'SS':['x','y']}}",
                                       "{'a':{'BS':['AA==']}}",
                                       "{'a':{'N':'\\u0031'}}",
                                       "{'a':{'B':'AA\\u003d='}}",
                                       "{'a':{'NS':['1','2']}}",
                                       "{'a':{'L':[{'M':{'b':{'N':'1'}}}]}}"};
    static const char *const bad[] = {"{'a':{}}",
                                      "{'a':5}",
                                      "{'a':{'BOOL':1}}",
                                      "{'a':{'BOOL':t}}",
                                      "{'a':{'BOOL':}}",
                                      "{'a':{'NULL':false}}",
                                      "{'a':{'N':'x'}}",
                                      "{'a':{'N':1}}",
                                      "{'a':{'B':'A'}}",
                                      "{'a':{'SS':[]}}",
                                      "{'a':{'SS':[1]}}",
                                      "{'a':{'S':'x','S':'y'}}",
                                      "{'a':{'X':'y'}}",
                                      "{'a':{'S':'x'}",
                                      "{'a':{'L':[1]}}",
                                      "{'a':{'M':{'b':1}}}",
                                      "{'a'}",
                                      "{a}",
                                      "[]",
                                      "{'a':{'L':[{'S':'x'}]}"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!scans(good[i]))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (scans(bad[i]))
            fail_msg("%s is taken", bad[i]);
    for (unsigned depth = 31; depth <= 33; depth++) {
        struct sl_buffer deep;
        sl_buffer_init(&deep, 4096);
        sl_buffer_add_str(&deep, "{'a':");
        for (unsigned i = 0; i < depth; i++)
            sl_buffer_add_str(&deep, i % 2 ? "{'L':[" : "{'M':{'m':");
        sl_buffer_add_str(&deep, "{'S':'x'}");
        for (unsigned i = depth; i > 0; i--)
            sl_buffer_add_str(&deep, (i - 1) % 2 ? "]}" : "}}");
        sl_buffer_add(&deep, "}", 2);
        assert_int_equal(scans(deep.ptr), depth <= SL_ITEM_DEPTH);
        sl_buffer_clean_up(&deep);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_values_are_the_same_to_both),
        cmocka_unit_test(keys_have_one_text_for_equal_values),
        cmocka_unit_test(what_is_not_a_value_is_refused),
        cmocka_unit_test(exact_strings_come_back),
        cmocka_unit_test(a_key_has_one_or_two_attributes),
        cmocka_unit_test(an_item_has_its_key),
        cmocka_unit_test(values_have_their_order),
        cmocka_unit_test(updates_at_their_edges),
        cmocka_unit_test(a_page_holds_items_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
