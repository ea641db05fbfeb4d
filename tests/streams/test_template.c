#include "base/clock.h"
#include "streams/decode/batch.h"
#include "streams/template/template.h"
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char modify[] =
    "{'eventID':'e\\u002D1','eventName':'MODIFY','awsRegion':'eu-central-1','dynamodb':{"
    "'ApproximateCreationDateTime':1700003045,'Keys':{'PK':{'S':'C/1'},'SK':{'N':'7.50'}},"
    "'NewImage':{'PK':{'S':'C/1'},'SK':{'N':'7.50'},'status':{'S':'SHIPPED'},"
    "'say':{'S':'\\\"a\\\"\\n\\u00e9'},'empty':{'S':''},'paid':{'BOOL':true},'blob':{'B':'+/8='},"
    "'none':{'NULL':true},'tags':{'SS':['a']},'a.b':{'S':'dotted'},'}':{'S':'brace'},"
    "'address':{'M':{'city':{'S':'K\xC3\xB6ln'},'at':{'L':[{'N':'50.9'},{'N':'6.9'}]}}}},"
    "'OldImage':{'PK':{'S':'C/1'},'SK':{'N':'7.50'},'status':{'S':'PLACED'},'gone':{'S':'was'}},"
    "'SequenceNumber':'42','SizeBytes':1},"
    "'eventSourceARN':'arn:aws:dynamodb:eu-central-1:111122223333:table/orders/stream/"
    "2026-11-20T00:00:00.000'}";
static const char expired[] = "{'eventID':'e2','eventName':'REMOVE',"
                              "'userIdentity':{'type':'Service','principalId':'dynamodb.amazonaws.com'},"
                              "'dynamodb':{'Keys':{'PK':{'S':'x'}}}}";

static struct sl_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = sl_arena_new(4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_arena_destroy(arena);
    return 0;
}

static const struct sl_record *decode_raw(const char *record)
{
    struct sl_decode_options options = {.any_shape = true, .ttl_attribute = SL_LIT("due")};
    struct sl_batch batch;
    assert_int_equal(sl_batch_decode(sl_span_str(record), arena, &options, &batch, NULL), SL_OK);
    assert_int_equal(batch.n, 1);
    return sl_batch_record(&batch, 0);
}

/* `record` has ' for ". */
static const struct sl_record *decode(const char *record)
{
    return decode_raw(json(record));
}

static struct sl_rendering how_to(const struct sl_record *r, enum sl_image image, enum sl_escape escape)
{
    return (struct sl_rendering){.record = r, .image = image, .escape = escape, .scratch = arena};
}

static const char *const variables[] = {"KEY=k3y", "EMPTY=", NULL};
static const struct sl_vars vars = {.list = variables};

static struct sl_template *compile(const char *text)
{
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    char *copy = strdup(text); /* nothing of it may be borrowed */
    if (sl_template_compile(sl_span_str(copy), &vars, arena, &t, &error) != SL_OK)
        fail_msg("%s: %s", text, error.text);
    free(copy);
    return t;
}

static void renders_as(const char *record, enum sl_image image, enum sl_escape escape, const char *template,
                       const char *want)
{
    struct sl_buffer out;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&out, 4096);
    sl_buffer_add_str(&out, ">");
    const struct sl_rendering how = how_to(decode(record), image, escape);
    if (sl_template_render(compile(template), &how, &out, &error) != SL_OK)
        fail_msg("%s: %s", template, error.text);
    assert_span_is(sl_span_from(sl_buffer_span(&out), 1), want);
    sl_buffer_clean_up(&out);
}

static void renders(const char *record, const char *template, const char *want)
{
    renders_as(record, SL_ANY_IMAGE, SL_ESCAPE_NONE, template, want);
}

static void misses(const char *record, enum sl_image image, const char *template, const char *text)
{
    struct sl_buffer out;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&out, 4096);
    sl_buffer_add_str(&out, "kept");
    const struct sl_rendering how = how_to(decode(record), image, SL_ESCAPE_NONE);
    assert_int_equal(sl_template_render(compile(template), &how, &out, &error), SL_REJECT);
    assert_string_equal(error.code, "MissingAttribute");
    assert_string_equal(error.text, text);
    assert_span_is(sl_buffer_span(&out), "kept");
    sl_buffer_clean_up(&out);
}

static void places_are_filled_from_the_record(void **state)
{
    (void)state;
    renders(modify, "", "");
    renders(modify, "plain", "plain");
    renders(modify, "order {SK} of {PK} is {NewImage.status}, was {OldImage.status}",
            "order 7.50 of C/1 is SHIPPED, was PLACED");
    renders(modify, "{table} {region} {event} {eventID} {sequence} {ttl}",
            "orders eu-central-1 MODIFY e-1 42 user");
    renders(modify, "{yyyy}-{mm}-{dd}T{hh}:{mi}:{ss}", "2023-11-14T23:04:05");
    renders(expired, "{event} {ttl}", "REMOVE expired");
    renders(modify, "{status}{gone}{empty}.", "SHIPPEDwas.");
    renders(modify, "{paid} {blob} {say}", "true +/8= \"a\"\n\xC3\xA9");
    renders(modify, "{Keys.PK}{NewImage.address.city}{address.at[1]}", "C/1K\xC3\xB6ln6.9");
    renders(modify, "{`a.b`}{NewImage.`a.b`}{`}`}", "dotteddottedbrace");
    renders(modify, "{{{PK}}}{{}}}}{{", "{C/1}{}}{");
#define REMOVED(rest)                                                                                        \
    "{'eventName':'REMOVE','dynamodb':{'ApproximateCreationDateTime':1700003045,"                            \
    "'Keys':{'PK':{'S':'x'}}" rest "}}"
    renders(REMOVED(""), "{ttl}", "unknown");
    renders(REMOVED(",'OldImage':{'PK':{'S':'x'},'due':{'N':'1700003000'}}"), "{ttl}", "inferred");
    renders("{'Item':{'PK':{'S':'x'}}}", "{event}:{PK}", "INSERT:x");
}

static void a_place_reads_the_image_it_is_given(void **state)
{
    (void)state;
    renders_as(modify, SL_NEW_IMAGE, SL_ESCAPE_NONE, "{PK} {status}", "C/1 SHIPPED");
    renders_as(modify, SL_OLD_IMAGE, SL_ESCAPE_NONE, "{PK} {status} {NewImage.status}", "C/1 PLACED SHIPPED");
    renders_as(modify, SL_KEYS, SL_ESCAPE_NONE, "{PK}", "C/1");
    misses(modify, SL_KEYS, "{PK} {status}", "the record has no value for {status}");
    misses(modify, SL_NEW_IMAGE, "{gone}", "the record has no value for {gone}");
}

static void a_missing_value_is_named(void **state)
{
    (void)state;
    misses(modify, SL_ANY_IMAGE, "a {nothing} b", "the record has no value for {nothing}");
    misses(modify, SL_ANY_IMAGE, "{NewImage.address.zip}",
           "the record has no value for {NewImage.address.zip}");
    misses(modify, SL_ANY_IMAGE, "{none}",
           "{none} is a map, a list, a set or NULL, which a template cannot write; |json makes text of it");
    misses(
        modify, SL_ANY_IMAGE, "{address}",
        "{address} is a map, a list, a set or NULL, which a template cannot write; |json makes text of it");
    misses(modify, SL_ANY_IMAGE, "{tags}",
           "{tags} is a map, a list, a set or NULL, which a template cannot write; |json makes text of it");
    misses(expired, SL_ANY_IMAGE, "{yyyy}", "the record has no value for {yyyy}");
    misses(expired, SL_ANY_IMAGE, "{table}", "the record has no value for {table}");
    misses(expired, SL_ANY_IMAGE, "{sequence}", "the record has no value for {sequence}");
    misses(expired, SL_ANY_IMAGE, "{region}", "the record has no value for {region}");
}

static void a_default_stands_in_for_a_missing_value(void **state)
{
    (void)state;
    struct sl_buffer out;
    sl_buffer_init(&out, 4096);
    struct sl_rendering how = how_to(decode(modify), SL_ANY_IMAGE, SL_ESCAPE_PATH);
    sl_template_render_or(compile("{PK}/{nothing}"), &how, SL_LIT("-/-"), &out);
    assert_span_is(sl_buffer_span(&out), "C%2F1/-%2F-");
    sl_buffer_reset(&out);
    how.escape = SL_ESCAPE_NONE;
    sl_template_render_or(compile("{nothing}."), &how, sl_span(NULL, 0), &out);
    assert_span_is(sl_buffer_span(&out), ".");
    sl_buffer_clean_up(&out);
}

static void output_over_the_maximum_is_rejected(void **state)
{
    (void)state;
    struct sl_buffer out;
    struct sl_error error = SL_NO_ERROR;
    sl_buffer_init(&out, 5);
    sl_buffer_add_str(&out, "ab");
    const struct sl_rendering how = how_to(decode(modify), SL_ANY_IMAGE, SL_ESCAPE_NONE);
    assert_int_equal(sl_template_render(compile("{PK}."), &how, &out, &error), SL_REJECT);
    assert_string_equal(error.code, "TooLarge");
    assert_true(out.failed);
    assert_span_is(sl_buffer_span(&out), "ab");
    sl_buffer_clean_up(&out);
}

static void a_template_of_one_place_returns_its_value(void **state)
{
    (void)state;
    const struct sl_record *r = decode(modify);
    assert_span_is(sl_template_value(compile("{status}"), r, SL_NEW_IMAGE).raw, "SHIPPED");
    assert_span_is(sl_template_value(compile("{status}"), r, SL_OLD_IMAGE).raw, "PLACED");
    assert_span_is(sl_template_value(compile("{status}"), r, SL_ANY_IMAGE).raw, "SHIPPED");
    assert_span_is(sl_template_value(compile("{address.at[0]}"), r, SL_NEW_IMAGE).raw, "50.9");
    assert_int_equal(sl_template_value(compile("{tags}"), r, SL_NEW_IMAGE).type, SL_SS);
    assert_int_equal(sl_template_value(compile("{status}"), r, SL_KEYS).type, SL_NONE);
    assert_int_equal(sl_template_value(compile("{status}."), r, SL_NEW_IMAGE).type, SL_NONE);
    assert_int_equal(sl_template_value(compile("{table}"), r, SL_NEW_IMAGE).type, SL_NONE);
    assert_int_equal(sl_template_value(compile("x"), r, SL_NEW_IMAGE).type, SL_NONE);
    assert_int_equal(sl_template_value(compile(""), r, SL_NEW_IMAGE).type, SL_NONE);
}

static void bad_templates_are_refused_at_their_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
        const char *why;
    } cases[] = {
        {"ab{c", 2, "'{' is not closed; write \"{{\" for a brace"},
        {"ab{c{d}", 2, "'{' is not closed"},
        {"{", 0, "'{' is not closed"},
        {"{`a}", 0, "'{' is not closed"},
        {"ab}", 2, "a lone '}'; write \"}}\" for a brace"},
        {"{{}", 2, "a lone '}'"},
        {"x{}", 2, "a path such as"},
        {"{NewImage}", 1, "an attribute is expected"},
        {"{NewImage.}", 10, "a path such as"},
        {"{a..b}", 2, "a path such as"},
        {"{a.}", 2, "a path such as"},
        {"{a[]}", 2, "a path such as"},
        {"{a[x]}", 2, "a path such as"},
        {"{a[1}", 2, "a path such as"},
        {"{a[123456789]}", 2, "a path such as"},
        {"{a]}", 0, NULL}, /* a name like any other */
        {"{``}", 1, "a path such as"},
        {"{`a`b}", 4, "a path such as"},
        {"{a`b`}", 2, "a path such as"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_template *t;
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_template_compile(sl_span_str(cases[i].text), &vars, arena, &t, &error);
        assert_int_equal(status, cases[i].why ? SL_REJECT : SL_OK);
        if (!cases[i].why)
            continue;
        if (error.offset != cases[i].offset || !strstr(error.text, cases[i].why))
            fail_msg("%s: byte %zu: %s", cases[i].text, error.offset, error.text);
        assert_string_equal(error.code, "InvalidTemplate");
    }
}

/* ---- escaping ---- */

static void escapes(enum sl_escape escape, struct sl_span text, const char *want)
{
    struct sl_buffer out;
    sl_buffer_init(&out, 4096);
    sl_escape_text(text, escape, &out);
    assert_span_is(sl_buffer_span(&out), want);
    sl_buffer_clean_up(&out);
}

static void values_are_escaped_for_their_use(void **state)
{
    (void)state;
    escapes(SL_ESCAPE_NONE, SL_LIT("a\"/\n"), "a\"/\n");
    escapes(SL_ESCAPE_JSON, SL_LIT("a\"/\n\\\x01\xFF"), "a\\\"/\\n\\\\\\u0001\xEF\xBF\xBD");
    escapes(SL_ESCAPE_PATH, SL_LIT("azAZ09-_."), "azAZ09-_.");
    escapes(SL_ESCAPE_PATH, SL_LIT(""), "%");
    escapes(SL_ESCAPE_PATH, SL_LIT("%"), "%25");
    escapes(SL_ESCAPE_PATH, SL_LIT("."), "%2E");
    escapes(SL_ESCAPE_PATH, SL_LIT(".."), "%2E.");
    escapes(SL_ESCAPE_PATH, SL_LIT("../a b"), "%2E.%2Fa%20b");
    escapes(SL_ESCAPE_PATH, SL_LIT("a\0\xC3\xA9~"), "a%00%C3%A9%7E");
    renders_as(modify, SL_ANY_IMAGE, SL_ESCAPE_JSON, "{{\"say\":\"{say}\"}}",
               "{\"say\":\"\\\"a\\\"\\n\xC3\xA9\"}");
    renders_as(modify, SL_ANY_IMAGE, SL_ESCAPE_PATH, "{table}/{PK}/{empty}/dt={yyyy}-{mm}",
               "orders/C%2F1/%/dt=2023-11");
}

/* The one text that escapes to the segment: were there two, one of them would not come back. */
static struct sl_span unescape_path(struct sl_span segment, char *out)
{
    size_t n = 0;
    if (sl_span_is(segment, "%"))
        return sl_span(out, 0);
    for (size_t i = 0; i < segment.len; i++) {
        unsigned byte = (unsigned char)segment.ptr[i];
        if (byte == '%') {
            assert_int_equal(sscanf(segment.ptr + i + 1, "%2X", &byte), 1);
            i += 2;
        }
        out[n++] = (char)byte;
    }
    return sl_span(out, n);
}

static void assert_safe(struct sl_span text, struct sl_buffer *out, char *room)
{
    sl_buffer_reset(out);
    sl_escape_text(text, SL_ESCAPE_PATH, out);
    struct sl_span segment = sl_buffer_span(out);
    assert_true(segment.len > 0 && segment.ptr[0] != '.');
    sl_buffer_add_char(out, '\0');
    assert_int_equal(strspn(out->ptr, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.%"),
                     segment.len);
    if (!sl_span_eq(unescape_path(sl_span(out->ptr, segment.len), room), text))
        fail_msg("does not come back: %s", out->ptr);
}

static void escaping_a_path_is_one_to_one(void **state)
{
    (void)state;
    static const char crafted[] =
        "./%\\2E5F0:\0 aA-_\x7F\xC3\xA9"; /* what separators and escapes are made of */
    struct sl_buffer out;
    char text[64], room[64];
    uint64_t seed = 26;
    sl_buffer_init(&out, 4096);
    for (int i = 0; i < 1000000; i++) {
        uint64_t r = sl_random_step(&seed);
        size_t n = r % 9;
        for (size_t k = 0; k < n; k++) {
            uint64_t c = sl_random_step(&seed);
            text[k] = r >> 60 ? crafted[c % (sizeof(crafted) - 1)] : (char)c;
        }
        assert_safe(sl_span(text, n), &out, room);
    }
    sl_buffer_clean_up(&out);
}

/* Two places with '/' between them: the key tells both texts. */
static void two_items_never_share_a_key(void **state)
{
    (void)state;
    static const char *const texts[] = {"",  "/",  "a",  "a/b", "b",  "%", "%2F", "a%2Fb",
                                        ".", "..", "./", "a/",  "/a", "-", "_"};
    char keys[15 * 15][64];
    size_t n = 0;
    struct sl_template *t = compile("{PK}/{SK}");
    for (size_t i = 0; i < 15; i++)
        for (size_t k = 0; k < 15; k++, n++) {
            struct sl_buffer out;
            char *record = sl_arena_printf(
                arena, "{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'%s'},'SK':{'S':'%s'}}}}",
                texts[i], texts[k]);
            sl_buffer_init(&out, sizeof(keys[0]) - 1);
            const struct sl_rendering how = how_to(decode(record), SL_ANY_IMAGE, SL_ESCAPE_PATH);
            assert_int_equal(sl_template_render(t, &how, &out, NULL), SL_OK);
            memcpy(keys[n], out.ptr, out.len);
            keys[n][out.len] = '\0';
            for (size_t other = 0; other < n; other++)
                assert_string_not_equal(keys[other], keys[n]);
            sl_buffer_clean_up(&out);
        }
}

/* Strings that break naive software, where the folder of data by others is there. */
static void hostile_strings_come_back_whole(void **state)
{
    (void)state;
    const char *corpus = getenv("CORPUS");
    char *path = sl_arena_printf(arena, "%s/hostile-strings/blns.json", corpus ? corpus : "");
    json_t *list = json_load_file(path, 0, NULL), *item;
    struct sl_buffer out;
    size_t i;
    if (!list)
        skip();
    sl_buffer_init(&out, SIZE_MAX / 2);
    assert_true(json_array_size(list) > 500);
    json_array_foreach(list, i, item)
    {
        struct sl_span text = sl_span(json_string_value(item), json_string_length(item));
        char *room = malloc(text.len + 1);
        assert_safe(text, &out, room);
        sl_buffer_reset(&out);
        sl_buffer_add_char(&out, '"');
        sl_escape_text(text, SL_ESCAPE_JSON, &out);
        sl_buffer_add_char(&out, '"');
        json_t *back = json_loadb(out.ptr, out.len, JSON_DECODE_ANY, NULL);
        assert_true(json_equal(back, item));
        assert_null(memchr(out.ptr, '\n', out.len));
        json_decref(back);
        free(room);
    }
    sl_buffer_clean_up(&out);
    json_decref(list);
}

/* With an argument: what check_docs.py and check_template.py talk to. A line is a use, a tab, a template, a
 * tab, a record. */
static int answer_lines(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin)) {
        char *save = NULL, *use = strtok_r(line, "\t", &save), *text = strtok_r(NULL, "\t", &save);
        struct sl_buffer out;
        arena = sl_arena_new(4096);
        sl_buffer_init(&out, 4096);
        enum sl_escape escape = *use == 't' ? SL_ESCAPE_NONE : *use == 'j' ? SL_ESCAPE_JSON : SL_ESCAPE_PATH;
        const struct sl_rendering how = how_to(decode_raw(strtok_r(NULL, "\n", &save)), SL_ANY_IMAGE, escape);
        struct sl_template *t;
        if (sl_template_compile(sl_span_str(text), &vars, arena, &t, NULL) != SL_OK)
            puts("refused");
        else if (sl_template_render(t, &how, &out, NULL) != SL_OK)
            puts("rejected");
        else
            printf("%.*s\n", SL_ARG(sl_buffer_span(&out)));
        sl_buffer_clean_up(&out);
        sl_arena_destroy(arena);
    }
    return 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return answer_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_filled_from_the_record),
        cmocka_unit_test(a_place_reads_the_image_it_is_given),
        cmocka_unit_test(a_missing_value_is_named),
        cmocka_unit_test(a_default_stands_in_for_a_missing_value),
        cmocka_unit_test(output_over_the_maximum_is_rejected),
        cmocka_unit_test(a_template_of_one_place_returns_its_value),
        cmocka_unit_test(bad_templates_are_refused_at_their_byte),
        cmocka_unit_test(values_are_escaped_for_their_use),
        cmocka_unit_test(escaping_a_path_is_one_to_one),
        cmocka_unit_test(two_items_never_share_a_key),
        cmocka_unit_test(hostile_strings_come_back_whole),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
