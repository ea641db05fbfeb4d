/* The functions of templates, on their edges. tests/streams/check_template.py holds them against a model. */
#include "streams/decode/batch.h"
#include "streams/template/template.h"
#include "tests/support/test.h"

#include <stdio.h>

static struct sl_arena *arena;
static const char *const variables[] = {"KEY=Jefe", "EMPTY=", "aZ_09Az=Jefe", NULL};
static const struct sl_vars vars = {.list = variables};

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

/* A record whose item has the attribute `a`, of DynamoDB's JSON with ' for ". */
static const struct sl_record *record_of(const char *value)
{
    struct sl_decode_options options = {.any_shape = true};
    struct sl_batch batch;
    struct sl_error error = SL_NO_ERROR;
    char *text =
        sl_arena_printf(arena,
                        "{'eventName':'INSERT','dynamodb':{'Keys':{'k':{'S':'K'}},"
                        "'ApproximateCreationDateTime':1700003045,'NewImage':{'k':{'S':'K'},'a':%s}}}",
                        value);
    if (sl_batch_decode(sl_span_str(json(text)), arena, &options, &batch, &error) != SL_OK)
        fail_msg("%s: %s", value, error.text);
    return sl_batch_record(&batch, 0);
}

static struct sl_template *compile(const char *text)
{
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    if (sl_template_compile(sl_span_str(text), &vars, arena, &t, &error) != SL_OK)
        fail_msg("%s: %s", text, error.text);
    return t;
}

/* What the template makes of the value; "(missing)". */
static struct sl_span made(const char *value, const char *template, enum sl_escape escape)
{
    struct sl_buffer out;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_rendering how = {
        .record = record_of(value), .image = SL_ANY_IMAGE, .escape = escape, .scratch = arena};
    sl_buffer_init_in(&out, arena, 1 << 20);
    sl_buffer_reserve(&out, 1);
    if (sl_template_render(compile(template), &how, &out, &error) == SL_OK)
        return sl_buffer_span(&out);
    assert_string_equal(error.code, "MissingAttribute");
    return SL_LIT("(missing)");
}

struct row {
    const char *value, *template, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sl_span got = made(rows[i].value, rows[i].template, SL_ESCAPE_NONE);
        if (!sl_span_is(got, rows[i].want))
            fail_msg("%s of %s: %.*s, expected %s", rows[i].template, rows[i].value, SL_ARG(got),
                     rows[i].want);
    }
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

static void pieces_are_counted_from_both_ends(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'S':'ORDER#2026-11-20#17'}", "{a|split:#:1}", "2026-11-20"},
        {"{'S':'ORDER#2026-11-20#17'}", "{a|split:#:0}", "ORDER"},
        {"{'S':'ORDER#2026-11-20#17'}", "{a|split:#:3}", "(missing)"},
        {"{'S':'ORDER#2026-11-20#17'}", "{a|split:#:-1}", "17"},
        {"{'S':'ORDER#2026-11-20#17'}", "{a|split:#:-3}", "ORDER"},
        {"{'S':'ORDER#2026-11-20#17'}", "{a|split:#:-4}", "(missing)"},
        {"{'S':'a##b'}", "<{a|split:#:1}>", "<>"},
        {"{'S':'#'}", "<{a|split:#:-1}>", "<>"},
        {"{'S':'#'}", "{a|split:#:2}", "(missing)"},
        {"{'S':''}", "<{a|split:#:0}>", "<>"},
        {"{'S':''}", "{a|split:#:1}", "(missing)"},
        {"{'S':'aaa'}", "{a|split:aa:1}", "a"},
        {"{'S':'x'}", "{a|split:xy:0}", "x"},
        {"{'S':'a:b|c}d'}", "{a|split:`:`:1|split:`|`:1|split:`}`:0}", "c"},
        {"{'S':'a`b'}", "{a|split:````:1}", "b"},
        {"{'S':'a{b'}", "{a|split:`{`:1}", "b"},
        {"{'S':'\\u00e4-\\u00f6'}", "{a|split:-:1}", "\xC3\xB6"},
        {"{'S':'a\\u0000b\\u0000c'}", "{a|split:c:0|slice:2:3}{a|split:b:0|slice:0:1}", "ba"},
        {"{'N':'12.50'}", "{a|split:.:1}", "50"},
        {"{'BOOL':true}", "{a|split:r:1}", "ue"},
        {"{'M':{}}", "{a|split:r:1}", "(missing)"},
        {"{'NULL':true}", "{a|split:r:0}", "(missing)"},
        {"{'S':'USER#ann'}", "{a|after:USER#}", "ann"},
        {"{'S':'USER#'}", "<{a|after:USER#}>", "<>"},
        {"{'S':'USER'}", "{a|after:USER#}", "(missing)"},
        {"{'S':'a#b#c'}", "{a|after:#}", "b#c"},
        {"{'S':'a::b'}", "{a|after:::}", "b"},
        {"{'S':''}", "{a|after:#}", "(missing)"},
    };
    CHECK(rows);
}

static void slices_are_of_code_points(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'S':'2026-11-20T21:04'}", "{a|slice:0:10}", "2026-11-20"},
        {"{'S':'abc'}", "{a|slice:1}", "bc"},
        {"{'S':'abc'}", "{a|slice:0:99}", "abc"},
        {"{'S':'abc'}", "<{a|slice:3}>", "<>"},
        {"{'S':'abc'}", "<{a|slice:2:1}>", "<>"},
        {"{'S':'abc'}", "{a|slice:-2}", "bc"},
        {"{'S':'abc'}", "{a|slice:-99:2}", "ab"},
        {"{'S':'abc'}", "{a|slice:0:-1}", "ab"},
        {"{'S':'abc'}", "<{a|slice:0:0}>", "<>"},
        {"{'S':''}", "<{a|slice:0:1}>", "<>"},
        {"{'S':'x\\ud834\\udd1ey\\u00fc'}", "{a|slice:1:2}", "\xF0\x9D\x84\x9E"},
        {"{'S':'x\\ud834\\udd1ey\\u00fc'}", "{a|slice:-1}", "\xC3\xBC"},
        {"{'S':'x\\ud834\\udd1ey\\u00fc'}", "{a|slice:0:-3}", "x"},
        {"{'S':'a\\u0301b'}", "{a|slice:1:2}", "\xCC\x81"},
        {"{'M':{}}", "{a|slice:0:1}", "(missing)"},
    };
    CHECK(rows);
}

static void letters_and_blanks_are_those_of_ascii(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'S':'@AZ[`az{\\u00c4\\u00df'}", "{a|lower}", "@az[`az{\xC3\x84\xC3\x9F"},
        {"{'S':'@AZ[`az{\\u00e4\\u00df'}", "{a|upper}", "@AZ[`AZ{\xC3\xA4\xC3\x9F"},
        {"{'S':' \\t\\r\\n\\u000b\\u000ca b\\u00a0 '}", "<{a|trim}>", "<a b\xC2\xA0>"},
        {"{'S':'  '}", "<{a|trim}>", "<>"},
        {"{'S':''}", "<{a|trim}{a|lower}{a|upper}>", "<>"},
        {"{'B':'YWJj'}", "{a|lower}", "ywjj"},
        {"{'BOOL':false}", "{a|upper}", "FALSE"},
        {"{'SS':['a']}", "{a|upper}", "(missing)"},
    };
    CHECK(rows);
}

static void a_default_takes_the_place_of_what_has_no_text(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'S':'x'}", "{b|default:none}", "none"},
        {"{'S':'x'}", "{a|default:none}", "x"},
        {"{'S':''}", "<{a|default:none}>", "<>"},
        {"{'NULL':true}", "{a|default:none}", "none"},
        {"{'M':{}}", "{a|default:none}", "none"},
        {"{'S':'x'}", "<{b|default:``}>", "<>"},
        {"{'S':'x'}", "<{b|default:}>", "<>"},
        {"{'S':'x'}", "{b|default:a:b}", "a:b"},
        {"{'S':'x'}", "{b|default:`}|:```}", "}|:`"},
        {"{'S':'x'}", "{b|default:ab|upper|slice:1}", "B"},
        {"{'S':'x'}", "{a|after:y|default:no}", "no"},
        {"{'S':'x'}", "{ttl|upper} {region|default:here} {event|lower}", "USER here insert"},
        {"{'S':'x'}", "{yyyy|slice:2}{sequence|default:-}", "23-"},
        {"{'M':{}}", "{a|json|default:none}{b|json|default:null}", "{}null"},
    };
    CHECK(rows);
}

static void numbers_have_one_form(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'S':'007.50'}", "{a|number}", "7.5"},
        {"{'S':'1e3'}", "{a|number}", "1000"},
        {"{'S':'-0'}", "{a|number}", "0"},
        {"{'N':'12345678901234567890123456789012345678'}", "{a|number}",
         "12345678901234567890123456789012345678"},
        {"{'S':'123456789012345678901234567890123456789'}", "{a|number}", "(missing)"},
        {"{'S':'9e125'}", "{a|number|slice:0:3}", "900"},
        {"{'S':'1e126'}", "{a|number}", "(missing)"},
        {"{'S':'1e-130'}", "{a|number|slice:0:3}", "0.0"},
        {"{'S':' 7'}", "{a|number}", "(missing)"},
        {"{'S':' 7'}", "{a|trim|number}", "7"},
        {"{'S':''}", "{a|number}", "(missing)"},
        {"{'S':'abc'}", "{a|number|default:0}", "0"},
        {"{'BOOL':true}", "{a|number}", "(missing)"},
        {"{'B':'1234'}", "{a|number}", "(missing)"},
        {"{'NS':['1']}", "{a|number}", "(missing)"},
        {"{'S':'1'}", "{b|number|default:007}", "7"},
        {"{'S':'1'}", "{b|default:007|number}", "7"},
    };
    CHECK(rows);
}

static void dates_are_read_and_written(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'N':'1763672640'}", "{a|date:yyyy-mm-dd}", "2025-11-20"},
        {"{'N':'1763672640'}", "{a|date:`yyyy-mm-ddThh:mi:ssZ`}", "2025-11-20T21:04:00Z"},
        {"{'N':'1763672640'}", "{a|date:yyyy-mm-dd:+09:00}", "2025-11-21"},
        {"{'N':'1763672640'}", "{a|date:yyyy-mm-dd hh.mi:-0930}", "2025-11-20 11.34"},
        {"{'N':'1763672640'}", "{a|date:dd/mm/yyyy:Z}", "20/11/2025"},
        {"{'S':'1763672640'}", "{a|date:yyyymmdd}", "20251120"},
        {"{'N':'1763672640999'}", "{a|date:ss}", "00"},
        {"{'N':'99999999999'}", "{a|date:yyyy-mm-dd}", "5138-11-16"},
        {"{'N':'99999999999.9'}", "{a|date:yyyy}", "5138"},
        {"{'N':'100000000000'}", "{a|date:yyyy-mm-dd}", "1973-03-03"},
        {"{'N':'-100000000000'}", "{a|date:yyyy-mm-dd}", "1966-10-31"},
        {"{'N':'-99999999999.5'}", "{a|date:yyyy}", "(missing)"},
        {"{'N':'0'}", "{a|date:yyyy-mm-ddThh}", "1970-01-01T00"},
        {"{'N':'-0.5'}", "{a|date:yyyy-mm-dd ss}", "1969-12-31 59"},
        {"{'N':'253402300799999'}", "{a|date:yyyy-mm-dd}", "9999-12-31"},
        {"{'N':'253402300800000'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'N':'253402300799999'}", "{a|date:yyyy-mm-dd:+00:01}", "(missing)"},
        {"{'N':'253402300799999'}", "{a|date:hh:-00:01}", "23"},
        {"{'N':'-62135596800000'}", "{a|date:yyyy-mm-dd}", "0001-01-01"},
        {"{'N':'-62135596800001'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'N':'12345678901234567890123456789012345678'}", "{a|date:yyyy}", "(missing)"},
        {"{'N':'9e125'}", "{a|date:yyyy}", "(missing)"},
        {"{'N':'20261120'}", "{a|date:yyyy}", "1970"},
        {"{'S':'20261120'}", "{a|date:yyyy-mm-dd}", "2026-11-20"},
        {"{'S':'20261120'}", "{a|number|date:yyyy}", "1970"},
        {"{'S':'20261332'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'2024-02-29'}", "{a|date:yyyy-mm-dd}", "2024-02-29"},
        {"{'S':'2023-02-29'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'2000-02-29'}", "{a|date:yyyy-mm-dd}", "2000-02-29"},
        {"{'S':'1900-02-29'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'2026-04-31'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'2026-12-31'}", "{a|date:yyyy-mm-dd}", "2026-12-31"},
        {"{'S':'2026-00-10'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'2026-01-00'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'0000-01-01'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'0001-01-01'}", "{a|date:yyyy-mm-dd}", "0001-01-01"},
        {"{'S':'0001-01-01T00:00+00:01'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'9999-12-31T23:59:59-01:00'}", "{a|date:yyyy-mm-dd}", "(missing)"},
        {"{'S':'9999-12-31T23:59:59-01:00'}", "{a|date:hh:-01:00}", "23"},
        {"{'S':'2026-11-20T23:30:00Z'}", "{a|date:yyyy-mm-dd:+01:00}", "2026-11-21"},
        {"{'S':'2026-11-20T23:30:00.123456789+09:00'}", "{a|date:yyyymmddThhmissZ}", "20261120T143000Z"},
        {"{'S':'2026-11-20 23:30:00,5'}", "{a|date:hh}", "23"},
        {"{'S':'2026-11-20t23:30z'}", "{a|date:mi}", "30"},
        {"{'S':'2026-11-20T23:30-05'}", "{a|date:dd hh}", "21 04"},
        {"{'S':'20261120T233000Z'}", "{a|date:hh}", "23"},
        {"{'S':'20261120T2330'}", "{a|date:hhmiss}", "233000"},
        {"{'S':'20261120T233000.5+0100'}", "{a|date:hh}", "22"},
        {"{'S':'2026-11-20T24:00:00Z'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:60:00Z'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59:60Z'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59:59.Z'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59:'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59:5'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20Z'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59+'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59+24:00'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59+01:60'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11-20T23:59+01:00x'}", "{a|date:hh}", "(missing)"},
        {"{'S':'2026-11'}", "{a|date:yyyy}", "(missing)"},
        {"{'S':'2026-1120'}", "{a|date:yyyy}", "(missing)"},
        {"{'S':'tomorrow'}", "{a|date:yyyy}", "(missing)"},
        {"{'S':''}", "{a|date:yyyy}", "(missing)"},
        {"{'BOOL':true}", "{a|date:yyyy}", "(missing)"},
        {"{'B':'1234'}", "{a|date:yyyy}", "(missing)"},
        {"{'L':[]}", "{a|date:yyyy|default:-}", "-"},
        {"{'S':'ORDER#2026-11-20#17'}", "DAY#{a|split:#:1|date:yyyy-mm}", "DAY#2026-11"},
    };
    CHECK(rows);
}

/* The day after, as a calendar on the wall has it. */
static void turn(int *y, int *m, int *d)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (*y % 4 == 0 && *y % 100 != 0) || *y % 400 == 0;
    if (++*d <= days[*m - 1] + (*m == 2 && is_leap))
        return;
    *d = 1;
    if (++*m <= 12)
        return;
    *m = 1;
    ++*y;
}

static void make_date(struct sl_arena *scratch, const struct sl_template *t, const char *item,
                      const char *want)
{
    static const struct sl_record *any;
    struct sl_value out;
    any = any ? any : record_of("{'N':'0'}");
    const struct sl_rendering how = {.record = any,
                                     .image = SL_NEW_IMAGE,
                                     .scratch = scratch,
                                     .item = {.type = SL_M, .raw = sl_span_str(item)}};
    assert_int_equal(sl_template_make(t, &how, 64, &out, NULL), SL_OK);
    if (!sl_span_is(out.raw, want))
        fail_msg("%s: %.*s, expected %s", item, SL_ARG(out.raw), want);
}

#define MS_LIMIT INT64_C(100000000000) /* from here on a number is milliseconds */

/* The days that there are, from number to name, in seconds and milliseconds, and from name to name. */
static void every_day_has_its_name(void **state)
{
    (void)state;
    struct sl_template *t = compile("{a|date:yyyy-mm-dd}"), *back = compile("{a|date:yyyymmdd}");
    struct sl_arena *scratch = sl_arena_new(4096);
    char item[128], want[32], name[32];
    int y = 1, m = 1, d = 1;
    for (int64_t day = -719162; y < 10000; day++, turn(&y, &m, &d)) {
        bool is_near = y >= 1890 && y <= 2110, is_edge = d <= 1 || d >= 28;
        if (!is_near && !is_edge && day % 7 != 0)
            continue;
        snprintf(want, sizeof(want), "%04d-%02d-%02d", y, m, d);
        int64_t s = day * 86400 + (day % 2 ? 86399 : 0);
        bool is_ms = s >= MS_LIMIT / 1000 || s <= -MS_LIMIT / 1000, is_s = s < MS_LIMIT && s > -MS_LIMIT;
        snprintf(item, sizeof(item), "{\"a\":{\"N\":\"%lld%s\"}}", (long long)s,
                 is_ms && (!is_s || day % 3) ? "000" : "");
        make_date(scratch, t, item, want);
        snprintf(item, sizeof(item), "{\"a\":{\"S\":\"%s\"}}", want);
        snprintf(name, sizeof(name), "%04d%02d%02d", y, m, d);
        make_date(scratch, back, item, name);
        sl_arena_reset(scratch);
    }
    sl_arena_destroy(scratch);
}

static void digests_are_the_known_ones(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* FIPS 180-4, RFC 4231 case 2 */
        {"{'S':'abc'}", "{a|sha256}", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"{'S':''}", "{a|sha256}", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"{'S':'what do ya want for nothing?'}", "{a|hmac:KEY}",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"{'S':''}", "{a|hmac:KEY|slice:0:8}", "923598ca"},
        {"{'S':''}", "{a|hmac:aZ_09Az|slice:0:8}", "923598ca"},
        {"{'S':'a'}", "{b|sha256}{b|hmac:KEY}", "(missing)"},
        {"{'S':' Ann@Example.ORG '}", "{a|trim|lower|sha256|slice:0:8}", "438c4c7a"},
    };
    CHECK(rows);
}

static void json_is_the_same_for_equal_values(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'M':{'b':{'N':'1.50'},'a':{'S':'x\\\"'},'c':{'NULL':true},'d':{'BOOL':false}}}", "{a|json}",
         "{\"a\":\"x\\\"\",\"b\":1.5,\"c\":null,\"d\":false}"},
        {"{'L':[{'N':'1'},{'SS':['b','a']},{'M':{}}]}", "{a|json}", "[1,[\"a\",\"b\"],{}]"},
        {"{'NS':['12','1','2']}", "{a|json}", "[1,12,2]"},
        {"{'BS':['YQ==']}", "{a|json}", "[{\"base64\":\"YQ==\"}]"},
        {"{'B':'YQ=='}", "{a|json}", "{\"base64\":\"YQ==\"}"},
        {"{'NULL':true}", "{a|json}", "null"},
        {"{'BOOL':true}", "{a|json}", "true"},
        {"{'N':'1e2'}", "{a|json}", "100"},
        {"{'S':'a\\u0000\\ud834\\udd1e'}", "{a|json}", "\"a\\u0000\xF0\x9D\x84\x9E\""},
        {"{'S':'1'}", "{a|number|json}", "1"},
        {"{'S':'A'}", "{a|lower|json}", "\"a\""},
        {"{'S':'A'}", "{NewImage|json}", "{\"a\":\"A\",\"k\":\"K\"}"},
        {"{'S':'A'}", "{Keys|json}{OldImage|json|default:null}", "{\"k\":\"K\"}null"},
        {"{'S':'A'}", "{b|json}", "(missing)"},
        {"{'M':{'b':{'N':'1'}}}", "{a.b|json}", "1"},
    };
    CHECK(rows);
}

/* Outside of a string it is JSON; within one, text. */
static void json_is_not_escaped_where_json_is_written(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'M':{'b':{'S':'x'}}}", "{{\"a\":{a|json},\"t\":\"{a|json}\"}}",
         "{\"a\":{\"b\":\"x\"},\"t\":\"{\\\"b\\\":\\\"x\\\"}\"}"},
        {"{'S':'say \\\"hi\\\"'}", "{{\"\\\"\":{a|json}}}", "{\"\\\"\":\"say \\\"hi\\\"\"}"},
        {"{'S':'x'}", "{{\"a\":{b|json|default:null}}}", "{\"a\":null}"},
        {"{'S':'\\\"'}", "{{\"a\":{a|json|default:none}}}", "{\"a\":\\\"\\\\\\\"\\\"}"},
        {"{'S':'\\\"'}", "{a|json|lower}", "\\\"\\\\\\\"\\\""},
        {"{'S':'\\\"'}", "{a}", "\\\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_span_is(made(rows[i].value, rows[i].template, SL_ESCAPE_JSON), rows[i].want);
    assert_span_is(made("{'M':{}}", "{a|json}", SL_ESCAPE_PATH), "%7B%7D");
}

static void names_and_arguments_stand_in_backquotes(void **state)
{
    (void)state;
    assert_span_is(made("{'S':'x'},'b|c':{'S':'y'}", "{`b|c`}{NewImage.`b|c`|upper}{a}", SL_ESCAPE_NONE),
                   "yYx");
    assert_span_is(made("{'S':'x'},'b:c':{'S':'y'}", "{b:c}{b:c|upper}", SL_ESCAPE_NONE), "yY");
    assert_span_is(made("{'S':'x'},'':{'S':'y'}", "{a}", SL_ESCAPE_NONE), "x");
}

/* ---- types ---- */

static void makes(const char *value, const char *template, enum sl_type type, const char *raw)
{
    struct sl_value out = {.type = SL_NONE};
    struct sl_error error = SL_NO_ERROR;
    const struct sl_record *r = record_of(value);
    const struct sl_value item = sl_record_image(r, SL_NEW_IMAGE);
    struct sl_template *t = compile(template);
    for (int is_item = 0; is_item < 2; is_item++) {
        struct sl_rendering how = {.record = r, .image = SL_NEW_IMAGE, .scratch = arena};
        if (is_item)
            how.item = item;
        enum sl_status status = sl_template_make(t, &how, 4096, &out, &error);
        assert_int_equal(status, type == SL_NONE ? SL_REJECT : SL_OK);
        if (status != SL_OK)
            continue;
        assert_int_equal(out.type, type);
        assert_span_is(out.raw, raw);
    }
}

static void a_template_makes_a_value_of_its_type(void **state)
{
    (void)state;
    makes("{'N':'1.50'}", "{a}", SL_N, "1.50");
    makes("{'M':{'b':{'S':'x'}}}", "{a}", SL_M, "{\"b\":{\"S\":\"x\"}}");
    makes("{'M':{'b':{'S':'x'}}}", "{NewImage.a.b}{k}{Keys.k}", SL_S, "xKK");
    makes("{'S':'7.0'}", "{a|number}", SL_N, "7");
    makes("{'S':'x'}", "{a|number|default:0}", SL_N, "0");
    makes("{'S':'x'}", "{a|number|default:none}", SL_S, "none");
    makes("{'S':'7'}", "{a|number|default:none}", SL_S, "7");
    makes("{'S':'7'}", "{a|number|slice:0:1}", SL_S, "7");
    makes("{'N':'7'}", "{a|default:0}", SL_S, "7");
    makes("{'N':'7'}", "n{a|number}", SL_S, "n7");
    makes("{'S':'a\\\"\\n'}", "{a|trim}", SL_S, "a\\\"");
    makes("{'S':''}", "{a|trim}", SL_S, "");
    makes("{'S':'x'}", "{b}", SL_NONE, NULL);
    makes("{'S':'x'}", "{b|lower}", SL_NONE, NULL);
    makes("{'M':{}}", "{a|lower}", SL_NONE, NULL);
    assert_int_equal(sl_template_type(compile("{table}")), SL_S);
    assert_int_equal(sl_template_type(compile("")), SL_S);
    assert_int_equal(sl_template_type(compile("x")), SL_S);
    assert_int_equal(sl_template_type(compile("{NewImage|json}")), SL_S);
    assert_int_equal(sl_template_value(compile("{a|number}"), record_of("{'N':'1'}"), SL_NEW_IMAGE).type,
                     SL_NONE);
}

static void a_text_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    struct sl_value out;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_rendering how = {
        .record = record_of("{'S':'12345678'}"), .image = SL_NEW_IMAGE, .scratch = arena};
    assert_int_equal(sl_template_make(compile("{a}."), &how, 9, &out, &error), SL_OK);
    assert_int_equal(sl_template_make(compile("{a}."), &how, 8, &out, &error), SL_REJECT);
    assert_string_equal(error.code, "TooLarge");
}

static void places_say_what_they_look_at(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned uses;
    } rows[] = {{"x", 0},
                {"{a|lower}", SL_TEMPLATE_ITEM},
                {"{NewImage|json}", SL_TEMPLATE_ITEM},
                {"{NewImage.a|lower}", SL_TEMPLATE_ITEM},
                {"{OldImage|json}", SL_TEMPLATE_OLD},
                {"{OldImage.a|lower}", SL_TEMPLATE_OLD},
                {"{Keys|json}", SL_TEMPLATE_KEYS},
                {"{yyyy|slice:2}", SL_TEMPLATE_TIME},
                {"{sequence|sha256}", SL_TEMPLATE_EVENT},
                {"{ttl|upper}{table|lower}", SL_TEMPLATE_EVENT | SL_TEMPLATE_TABLE},
                {"{a|default:`{yyyy}`}", SL_TEMPLATE_ITEM}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(sl_template_uses(compile(rows[i].text)), rows[i].uses);
}

/* ---- refusals ---- */

static void refused(const char *text, size_t offset, const char *why)
{
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    if (sl_template_compile(sl_span_str(text), &vars, arena, &t, &error) != SL_REJECT)
        fail_msg("%.60s was not refused", text);
    if (error.offset != offset || !strstr(error.text, why))
        fail_msg("%.60s: byte %zu: %s", text, error.offset, error.text);
    assert_string_equal(error.code, "InvalidTemplate");
}

static void mistakes_are_refused_at_their_byte(void **state)
{
    (void)state;
    refused("{a|b}", 3,
            "\"b\" is not a function; there are after, date, default, hmac, json, key, lower, number, sha256, "
            "slice, split, trim, "
            "upper; write an attribute's name that holds '|' in backquotes");
    refused("x{a|lowr}", 4, "\"lowr\" is not a function; did you mean \"lower\"?");
    refused("{a|lower|sha265}", 9, "did you mean \"sha256\"?");
    refused("{a| lower}", 3, "did you mean \"lower\"?");
    refused("{a|}", 3, "\"\" is not a function");
    refused("{a||lower}", 3, "\"\" is not a function");
    refused("{a|lower|}", 9, "\"\" is not a function");
    refused("{|lower}", 1, "a path such as");
    refused("{a..b|lower}", 2, "a path such as");
    refused("{NewImage|lower}", 10, "expected json after it");
    refused("{NewImage}", 1, "{NewImage|json}");
    refused("{a|lower:x}", 8, "lower: too many arguments; expected lower");
    refused("{a|slice:1:2:3}", 3, "slice: expected the numbers");
    refused("{a|slice:`1`:`2`:3}", 16, "slice: too many arguments");
    refused("{a|slice}", 3, "slice: too few arguments; expected slice:FROM or slice:FROM:TO");
    refused("{a|split:#}", 3, "split: too few arguments");
    refused("{a|split::1}", 3, "split: expected a separator");
    refused("{a|split:#:x}", 3, "split: expected the number of a piece");
    refused("{a|split:#:}", 3, "split: expected the number of a piece");
    refused("{a|split:#:-}", 3, "split: expected the number of a piece");
    refused("{a|split:#:1234567}", 3, "split: expected the number of a piece");
    refused("{a|after}", 3, "after: too few arguments");
    refused("{a|after:}", 3, "after: expected a text");
    refused("{a|date}", 3, "date: too few arguments");
    refused("{a|date:YYYY-MM-DD}", 3, "date: expected a form such as yyyy-mm-dd");
    refused("{a|date:}", 3, "date: expected a form");
    refused("{a|date:yyyyA}", 3, "date: expected a form");
    refused("{a|date:yyyya}", 3, "date: expected a form");
    refused("{a|date:yyyyz}", 3, "date: expected a form");
    refused("{a|date:--}", 3, "date: expected a form");
    refused("{a|date:hh:mi}", 3, "a form with ':' in it is written in backquotes");
    refused("{a|date:hh:+25:00}", 3, "date: expected an offset such as +09:00");
    refused("{a|date:hh:}", 3, "date: expected an offset");
    refused("{a|json|json}", 8, "json: a place can have it once");
    refused("{a|default:x|json}", 13, "json: write default after it");
    refused("{a|hmac:NONE}", 3, "hmac: the environment variable NONE is not set");
    refused("{a|hmac:EMPTY}", 3, "hmac: the environment variable EMPTY is empty");
    refused("{a|hmac:}", 3, "hmac: expected the name of the environment variable");
    refused("{a|hmac:1A}", 3, "hmac: expected the name");
    refused("{a|hmac:@A}", 3, "hmac: expected the name");
    refused("{a|hmac:A{}", 0, "'{' is not closed");
    refused("{a|hmac:A/}", 3, "hmac: expected the name");
    refused("{a|hmac:A;}", 3, "hmac: expected the name");
    refused("{a|hmac:kj3+fh/2}", 3, "that holds the key, and not the key");
    refused("{a|after:x`y`}", 9, "a backquote in it");
    refused("{a|after:`x`y}", 9, "a backquote in it");
    refused("{a|after:`x}", 0, "'{' is not closed");
    refused("{a|after:{}", 0, "an argument with braces in backquotes");
}

/* A key that stands where its name should is in no error. */
static void a_key_is_never_quoted(void **state)
{
    (void)state;
    struct sl_template *t;
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(sl_template_compile(SL_LIT("{a|hmac:s3cr3t/s3cr3t}"), &vars, arena, &t, &error),
                     SL_REJECT);
    assert_null(strstr(error.text, "s3cr3t"));
    error = (struct sl_error)SL_NO_ERROR;
    assert_int_equal(sl_template_compile(SL_LIT("{a|hmac:KEY}"), NULL, arena, &t, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "KEY is not set"));
    /* A name is shown when it is short or of several words, and has no small letter: else it may be a key. */
    static const struct {
        const char *name;
        bool is_shown;
    } names[] = {{"A", true},         {"ABCDEFGH", true}, {"ABCDEFGHI", false}, {"A_BCDEFGHI", true},
                 {"ABCDEFGa", false}, {"aBC", false},     {"ABCzEF", false},    {"A_BCDEFGHz", false},
                 {"Z9_", true},       {"ABCDEFG1", true}, {"ABCDEFG12", false}, {"_", true}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        error = (struct sl_error)SL_NO_ERROR;
        const char *text = sl_arena_printf(arena, "{a|hmac:%s}", names[i].name);
        assert_int_equal(sl_template_compile(sl_span_str(text), &vars, arena, &t, &error), SL_REJECT);
        const char *wanted = sl_arena_printf(arena, "variable %s is not set",
                                             names[i].is_shown ? names[i].name : "that is named here");
        if (!strstr(error.text, wanted) ||
            (!names[i].is_shown && strlen(names[i].name) > 3 && strstr(error.text, names[i].name)))
            fail_msg("%s: %s", names[i].name, error.text);
    }
}

static void hostile_templates_are_refused(void **state)
{
    (void)state;
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 20);
    sl_buffer_add_str(&text, "{a|default:");
    for (size_t i = 0; i < 65536; i++)
        sl_buffer_add_char(&text, 'x');
    sl_buffer_add(&text, "}", 2);
    refused(text.ptr, 11, "the argument has 65536 bytes; an argument has 256 at most");
    sl_buffer_reset(&text);
    sl_buffer_add_str(&text, "{a");
    for (int i = 0; i < 1000; i++)
        sl_buffer_add_str(&text, "|lower");
    sl_buffer_add(&text, "}", 2);
    refused(text.ptr, 3 + 16 * 6, "a place has 16 functions at most");
    sl_buffer_reset(&text);
    sl_buffer_add_str(&text, "{a|");
    for (int i = 0; i < 65536; i++)
        sl_buffer_add_char(&text, 'y');
    sl_buffer_add(&text, "}", 2);
    refused(text.ptr, 3, "\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\" is not a function;");
    sl_buffer_clean_up(&text);
}

static void limits_hold_their_last_value(void **state)
{
    (void)state;
    struct sl_buffer text;
    sl_buffer_init(&text, 4096);
    sl_buffer_add_str(&text, "{b|default:");
    for (size_t i = 0; i < SL_TEMPLATE_ARGUMENT_BYTES; i++)
        sl_buffer_add_char(&text, 'x');
    for (int i = 1; i < SL_TEMPLATE_FUNCTIONS; i++)
        sl_buffer_add_str(&text, "|upper");
    sl_buffer_add(&text, "}", 2);
    struct sl_span out = made("{'S':'x'}", text.ptr, SL_ESCAPE_NONE);
    assert_int_equal(out.len, SL_TEMPLATE_ARGUMENT_BYTES);
    assert_int_equal(out.ptr[SL_TEMPLATE_ARGUMENT_BYTES - 1], 'X');
    sl_buffer_clean_up(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_counted_from_both_ends),
        cmocka_unit_test(slices_are_of_code_points),
        cmocka_unit_test(letters_and_blanks_are_those_of_ascii),
        cmocka_unit_test(a_default_takes_the_place_of_what_has_no_text),
        cmocka_unit_test(numbers_have_one_form),
        cmocka_unit_test(dates_are_read_and_written),
        cmocka_unit_test(every_day_has_its_name),
        cmocka_unit_test(digests_are_the_known_ones),
        cmocka_unit_test(json_is_the_same_for_equal_values),
        cmocka_unit_test(json_is_not_escaped_where_json_is_written),
        cmocka_unit_test(names_and_arguments_stand_in_backquotes),
        cmocka_unit_test(a_template_makes_a_value_of_its_type),
        cmocka_unit_test(a_text_beyond_the_limit_is_refused),
        cmocka_unit_test(places_say_what_they_look_at),
        cmocka_unit_test(mistakes_are_refused_at_their_byte),
        cmocka_unit_test(a_key_is_never_quoted),
        cmocka_unit_test(hostile_templates_are_refused),
        cmocka_unit_test(limits_hold_their_last_value),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
