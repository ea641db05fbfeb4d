/* Text that others wrote, read exactly: XML documents, the shared files of the AWS tools, refusals. */
#include "tests/support/test.h"

#include "aws/profile.h"
#include "aws/refusal.h"
#include "aws/xml.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- XML ---- */

/* Whole elements <a>, with nothing but a declaration, comments and blanks around them. */
static const char *const documents[] = {
    "<a></a>",
    "<a/>",
    "<a />",
    "<a>text</a>",
    " \t\r\n<a></a>\n",
    "<a b='1' c=\"2\"/>",
    "<a b='>' c=\"</a>\" d='<'></a>",
    "<a\tb='1'></a\r\n>",
    "<a\nb='/'></a>",
    "<a><b/><c></c>text<b>x</b></a>",
    "<a><a><a/></a></a>",
    "<a><!-- </a><b> --></a>",
    "<!-- 1 --><?xml version='1.0'?>\n<!-- 2 --><a/><!-- 3 -->\n",
    "<?xml version=\"1.0\"?><a xmlns=\"x\"/>",
};

static const char *const no_documents[] = {
    "",
    " ",
    "x",
    "a",
    "<",
    "<a",
    "<a ",
    "<a b",
    "<a b='1",
    "<a b=\"1'>",
    "<a>",
    "<a>text",
    "<a><",
    "<a></",
    "<a></a",
    "<a></a ",
    "<a></a x>",
    "<a></b>",
    "<a></ab>",
    "<a></>",
    "<a><b></a></b>",
    "<a><b></a>",
    "<a><b/>",
    "<a <b/></a>",
    "<a>< b/></a>",
    "<a><></a>",
    "<a><!-- </a>",
    "<a><![CDATA[x]]></a>",
    "<a><?x?></a>",
    "<a><!x></a>",
    "< a/>",
    "</a>",
    "<b/>",
    "<ab/>",
    "x<a/>",
    "<a/>x",
    "<a/><a/>",
    "<a/><!x>",
    "<a/><?x?>",
    "<a/><!-- ",
    "<?xml version='1.0'",
    "<?php?><a/>",
    "<?xmlx?><a/>",
    "<!DOCTYPE a><a/>",
    "<!-- <a/>",
};

/* A text that ends where its memory ends. */
static bool is_document(const char *text, size_t n)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    bool is = sl_xml_is_document(sl_span(copy, n), "a");
    free(copy);
    return is;
}

/* Whole or not at all: what is cut anywhere before its last tag's end is none. */
static void only_whole_documents_are_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        const char *text = documents[i];
        size_t whole = strlen(text), end = (size_t)(strrchr(text, '>') - text) + 1;
        if (!is_document(text, whole))
            fail_msg("%s is one", text);
        bool ends_in_comment = sl_span_ends(sl_span(text, end), SL_LIT("-->"));
        for (size_t n = 0; n < end && !ends_in_comment; n++)
            if (is_document(text, n))
                fail_msg("%.*s is none", (int)n, text);
    }
    for (size_t i = 0; i < sizeof(no_documents) / sizeof(no_documents[0]); i++)
        if (is_document(no_documents[i], strlen(no_documents[i])))
            fail_msg("%s is none", no_documents[i]);
    assert_false(sl_xml_is_document(sl_span(NULL, 0), "a"));
}

static void documents_have_a_depth_and_no_more(void **state)
{
    (void)state;
    for (size_t depth = SL_XML_DEPTH - 2; depth <= SL_XML_DEPTH + 1; depth++)
        for (int is_empty = 0; is_empty < 2; is_empty++) { /* <a/> needs no place */
            char text[16 * SL_XML_DEPTH] = "", *end = text;
            for (size_t i = 0; i < depth; i++)
                end = stpcpy(end, "<a>");
            end = stpcpy(end, is_empty ? "<b/>" : "");
            for (size_t i = 0; i < depth; i++)
                end = stpcpy(end, "</a>");
            assert_int_equal(is_document(text, (size_t)(end - text)), depth <= SL_XML_DEPTH);
        }
}

static void elements_are_found_by_their_whole_name(void **state)
{
    (void)state;
    static const struct {
        const char *xml, *text; /* of <Key>; NULL: there is none */
    } cases[] = {
        {"<Key>a</Key>", "a"},
        {"<r><KeyCount>1</KeyCount><Key x='1'>b</Key></r>", "b"},
        {"<Key\t>c</Key>", "c"},
        {"<Key/>", ""},
        {"<Key />x", ""},
        {"<Key></Key>", ""},
        {"<aKey>a</aKey>", NULL},
        {"<Key>", NULL},
        {"<Key>a</key>", NULL},
        {"<Key>a</Ke", NULL},
        {"<Key", NULL},
        {"Key>", NULL},
        {"no mark at all", NULL},
        {"<", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_span text = sl_xml_tag(sl_span_str(cases[i].xml), "Key");
        if (cases[i].text)
            assert_span_is(text, cases[i].text);
        if ((text.ptr != NULL) != (cases[i].text != NULL))
            fail_msg("%s", cases[i].xml);
    }
    char name[100]; /* longer than any name of a service */
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const char *xml = json_printf("<%s>x</%s>", name, name);
    assert_null(sl_xml_tag(sl_span_str(xml), name).ptr);
}

/* ---- the shared files ---- */

static const char config[] = "before = any section\n"
                             "[default]\n"
                             "region = eu-west-1\n"
                             "[profile one]\r\n"
                             "region = us-east-1 # a comment\r\n"
                             "output=json\t; another\n"
                             "color = a#b;c\n"
                             "#region = none\n"
                             ";region = none\n"
                             "  ; nested = comment\n"
                             "no equals sign\n"
                             "= no name\n"
                             "empty =\n"
                             "s3 =\n"
                             "  region = nested\n"
                             "\tsecond = nested too\n"
                             "SERVICES = mine\n"
                             "[profile\ttabbed]\n"
                             "region = tab\n"
                             "[profiletwo]\nregion = wrong\n"
                             "[profile]\nregion = wrong\n"
                             "[profile open\nregion = wrong\n"
                             "[two]\nregion = wrong\n"
                             "[services mine]\n"
                             "dynamodb =\n"
                             "  endpoint_url = http://d:1\n"
                             "s3 = not empty\n"
                             "  endpoint_url = http://wrong\n"
                             "sqs =\n"
                             "sns =\n"
                             "\tendpoint_url = http://n:2\n"
                             "endpoint_url = http://top\n";

static void settings_are_found_in_their_section(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *key, *value; /* NULL: absent */
    } cases[] = {
        {"default", "region", "eu-west-1"},
        {"default", "before", NULL},
        {"one", "region", "us-east-1"},
        {"one", "REGION", "us-east-1"},
        {"one", "output", "json"},
        {"one", "color", "a#b;c"},
        {"one", "empty", ""},
        {"one", "second", NULL},
        {"one", "regio", NULL},
        {"one", "nested", NULL},
        {"tabbed", "region", "tab"},
        {"two", "region", NULL},
        {"", "region", NULL},
        {"open", "region", NULL},
        {"nobody", "region", NULL},
        {"one", "services", "mine"},
        {"one", "no equals sign", NULL},
    };
    const struct sl_profile profile = {.config = SL_LIT(config), .name = "one"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_span value = sl_profile_get(&profile, cases[i].profile, cases[i].key);
        if ((value.ptr != NULL) != (cases[i].value != NULL))
            fail_msg("%s of %s", cases[i].key, cases[i].profile);
        if (cases[i].value)
            assert_span_is(value, cases[i].value);
    }
    assert_true(sl_profile_has(&profile, "one") && !sl_profile_has(&profile, "two"));
    assert_span_is(sl_profile_endpoint(&profile, "dynamodb"), "http://d:1");
    assert_span_is(sl_profile_endpoint(&profile, "sns"), "http://n:2");
    assert_null(sl_profile_endpoint(&profile, "s3").ptr);
    assert_null(sl_profile_endpoint(&profile, "sqs").ptr);
    assert_null(sl_profile_endpoint(&profile, "sts").ptr);
    const struct sl_profile none = {.config = SL_LIT(config), .name = "default"};
    assert_null(sl_profile_endpoint(&none, "dynamodb").ptr);
}

static void a_section_of_services_has_a_name_of_127_bytes_at_most(void **state)
{
    (void)state;
    for (int n = 126; n <= 129; n++) {
        const char *text = json_printf(
            "[default]\nservices = %0*d\n[services %0*d]\ns3 =\n  endpoint_url = u\n", n, 1, n, 1);
        const struct sl_profile profile = {.config = sl_span_str(text), .name = "default"};
        assert_int_equal(sl_profile_endpoint(&profile, "s3").ptr != NULL, n <= 127);
    }
}

static void files_are_read_up_to_their_limit(void **state)
{
    (void)state;
    char *folder = test_folder(), text[10001];
    const char *path = json_printf("%s/config", folder);
    struct sl_arena *arena = sl_arena_new(1024);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = (char)('a' + i % 26);
    text[sizeof(text) - 1] = '\0';
    test_write(path, text);
    static const size_t limits[] = {1, 4095, 4096, 4097, 9999, 10000, 10001, 20000};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct sl_span got = sl_profile_read(path, limits[i], arena);
        assert_int_equal(got.len, limits[i] < 10000 ? limits[i] : 10000);
        assert_memory_equal(got.ptr, text, got.len);
    }
    assert_null(sl_profile_read(folder, 100, arena).ptr); /* it can be opened, and not read */
    assert_null(sl_profile_read(json_printf("%s/absent", folder), 100, arena).ptr);
    sl_arena_destroy(arena);
    test_folder_remove(folder);
}

/* ---- refusals ---- */

static void codes_are_letters_then_digits_and_dots(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        const char first[] = {(char)c, 'b', '\0'}, later[] = {'a', (char)c, '\0'};
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool is_more = is_letter || (c >= '0' && c <= '9') || c == '.';
        assert_int_equal(sl_refusal_is_code(sl_span_str(first)), is_letter);
        assert_int_equal(sl_refusal_is_code(sl_span_str(later)), is_more);
    }
    char text[SL_REFUSAL_CODE_BYTES + 1];
    memset(text, 'c', sizeof(text));
    assert_false(sl_refusal_is_code(sl_span(text, 0)));
    assert_true(sl_refusal_is_code(sl_span(text, SL_REFUSAL_CODE_BYTES - 1)));
    assert_false(sl_refusal_is_code(sl_span(text, SL_REFUSAL_CODE_BYTES)));
}

static void refusals_are_read_from_what_services_write(void **state)
{
    (void)state;
    static const struct {
        const char *body, *code, *message;
    } cases[] = {
        {"{'__type':'a.b#Code','message':'m'}", "Code", "m"},
        {"{'__type':'','code':'Second','Message':'m'}", "Second", "m"},
        {"{'__type':5,'Code':'Third:http://x','errorMessage':'\\u0000n'}", "Third", "\1n"},
        {"{'message':'m'}", "FromHeader", "m"},
        {"", "FromHeader", ""},
        {" \n", "FromHeader", ""},
        {"[]", "Http400", "the answer is JSON of 2 bytes, not a service's error"},
        {"<Error><Code>C</Code><Message>a &lt; b</Message></Error>", "C", "a < b"},
        {"<?xml version='1.0'?>\n <?x y?><ErrorResponse\n><Error><Code>D</Code></Error></ErrorResponse>", "D",
         ""},
        {"<Error/><Code>E</Code>", "Http400", "the answer is XML of 22 bytes, not a service's error"},
        {"<Errors><Code>C</Code></Errors>", "Http400",
         "the answer is XML of 31 bytes, not a service's error"},
        {"<Error", "Http400", "the answer is XML of 6 bytes, not a service's error"},
        {"<?xml", "Http400", "the answer is XML of 5 bytes, not a service's error"},
        {"<?xml?>\xC2\xA0<Error><Code>C</Code></Error>", "Http400", /* a blank that XML does not know */
         "the answer is XML of 38 bytes, not a service's error"},
        {"<?xml?>Error><Code>C</Code>", "Http400", "the answer is XML of 27 bytes, not a service's error"},
        {"<p><html>", "Http400", "the answer is HTML of 9 bytes, not a service's error"},
        {"<HTML>", "Http400", "the answer is HTML of 6 bytes, not a service's error"},
        {"<!DOCTYPE html>", "Http400", "the answer is HTML of 15 bytes, not a service's error"},
        {"<!doctype html>", "Http400", "the answer is HTML of 15 bytes, not a service's error"},
        {"words", "Http400", "the answer is text of 5 bytes, not a service's error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_http_exchange exchange;
        struct sl_refusal refusal;
        sl_http_exchange_init(&exchange);
        exchange.outcome = SL_HTTP_ANSWERED;
        exchange.status = 400;
        bool is_json = *cases[i].body == '{';
        sl_buffer_add_str(&exchange.head, "HTTP/1.1 400 No\r\nx-amzn-ErrorType: FromHeader:\r\n\r\n");
        sl_buffer_add_str(&exchange.body, is_json ? json(cases[i].body) : cases[i].body);
        sl_refusal_read(&exchange, &refusal);
        assert_string_equal(refusal.code, cases[i].code);
        if (cases[i].body[strspn(cases[i].body, " \n")])
            assert_string_equal(refusal.message, cases[i].message);
        assert_int_equal(refusal.is_ours, strncmp(cases[i].code, "Http", 4) == 0);
        sl_http_exchange_clean_up(&exchange);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_documents_are_documents),
        cmocka_unit_test(documents_have_a_depth_and_no_more),
        cmocka_unit_test(elements_are_found_by_their_whole_name),
        cmocka_unit_test(settings_are_found_in_their_section),
        cmocka_unit_test(a_section_of_services_has_a_name_of_127_bytes_at_most),
        cmocka_unit_test(files_are_read_up_to_their_limit),
        cmocka_unit_test(codes_are_letters_then_digits_and_dots),
        cmocka_unit_test(refusals_are_read_from_what_services_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
