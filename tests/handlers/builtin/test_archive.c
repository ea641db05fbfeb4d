/* The archive handler over real dispatch and the real file sink. */
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUTE(members)                                                                                       \
    "{'on_failure':'jsonl:${DIR}/failed.jsonl','report_batch_item_failures':true,'routes':["                 \
    "{'name':'a','handler':'archive','to':'file:${DIR}/out'" members "}]}"

#define RECORD_AT(time, event, seq, images) RECORD_WITH("NEW_AND_OLD_IMAGES", time, event, seq, images, "")
#define ITEM(id, v)                         PK(id) ",'v':" N(v)
#define INSERT(seq, time, id, v)            RECORD_AT(time, "INSERT", seq, KEYS(PK(id)) NEW(ITEM(id, v)))
#define MODIFY(seq, time, id, v, old)                                                                        \
    RECORD_AT(time, "MODIFY", seq, KEYS(PK(id)) NEW(ITEM(id, v)) OLD(ITEM(id, old)))
#define REMOVE(seq, time, id, old) RECORD_AT(time, "REMOVE", seq, KEYS(PK(id)) OLD(ITEM(id, old)))

/* 2026-01-01T10:59:59Z and one second later. */
#define BEFORE "1767265199"
#define AFTER  "1767265200"

#define THREE                                                                                                \
    EVENT(INSERT("101", BEFORE, "a", "1"), MODIFY("102", AFTER, "a", "2", "1"),                              \
          REMOVE("103", AFTER, "a", "2"))

/* The text of all objects, with ' for ". */
static void expect_objects(struct stage *s, const char *wanted)
{
    char *got = stage_objects(s, "out", NULL);
    assert_string_equal(got, json(wanted));
    free(got);
}

static void records_are_kept_byte_for_byte(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    char *names, *got;
    stage_deliver_all(s, THREE);
    got = stage_objects(s, "out", &names);
    assert_string_equal(got, json(INSERT("101", BEFORE, "a", "1") "\n" MODIFY(
                                 "102", AFTER, "a", "2", "1") "\n" REMOVE("103", AFTER, "a", "2") "\n"));
    assert_string_equal(
        names, "orders/dt=2026-01-01/hour=10/"
               "0000000000000000000000000000000000000101-1-30695f3aec6189ac32b324c2e7f25a47.jsonl.gz\n"
               "orders/dt=2026-01-01/hour=11/"
               "0000000000000000000000000000000000000102-2-9be7b4c657bf1d18a319aebfebf343e9.jsonl.gz\n");
    free(got);
    free(names);
    stage_destroy(s);
}

static void redelivery_writes_the_same_objects(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    char *once, *again, *first, *second;
    stage_deliver_all(s, THREE);
    once = stage_objects(s, "out", &first);
    stage_deliver_all(s, THREE);
    again = stage_objects(s, "out", &second);
    assert_string_equal(once, again);
    assert_string_equal(first, second);
    free(once);
    free(again);
    free(first);
    free(second);
    stage_destroy(s);
}

/* Slices can have holes: the first record and the count do not tell what is between. */
static void objects_of_other_records_have_other_names(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    char *names;
    stage_deliver_all(s, EVENT(INSERT("1", BEFORE, "a", "1"), INSERT("2", BEFORE, "b", "1")));
    stage_deliver_all(s, EVENT(INSERT("1", BEFORE, "a", "1"), INSERT("3", BEFORE, "c", "1")));
    free(stage_objects(s, "out", &names));
    char *second = strchr(names, '\n') + 1;
    assert_int_equal(strncmp(names, second, strlen("orders/dt=2026-01-01/hour=10/") + 43), 0);
    assert_int_equal(strchr(second, '\n') - second, second - names - 1);
    assert_string_equal(strchr(second, '\n'), "\n");
    free(names);
    stage_destroy(s);
}

#define EXPORTED(micros, seq, images)                                                                        \
    "{'Metadata':{'WriteTimestampMicros':" N(micros) ",'SequenceNumber':" S(seq) "}," KEYS(PK("a")) images   \
        "}\n"

static void the_other_formats_keep_what_they_promise(void **state)
{
    (void)state;
    static const struct {
        const char *config, *lines;
    } cases[] = {
        {ROUTE(",'format':'item'"), "{'Item':{'PK':{'S':'a'},'v':{'N':'1'}}}\n"
                                    "{'Item':{'PK':{'S':'a'},'v':{'N':'2'}}}\n"
                                    "{'Item':{'PK':{'S':'a'},'v':{'N':'2'}}}\n"},
        {ROUTE(",'format':'json'"), "{'PK':'a','v':1}\n{'PK':'a','v':2}\n{'PK':'a','v':2}\n"},
        {ROUTE(",'format':'export','compression':'none'"),
         EXPORTED(BEFORE "000101", "101", NEW(ITEM("a", "1")))
             EXPORTED(AFTER "000102", "102", NEW(ITEM("a", "2")) OLD(ITEM("a", "1")))
                 EXPORTED(AFTER "000103", "103", OLD(ITEM("a", "2")))},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        stage_deliver_all(s, THREE);
        expect_objects(s, cases[i].lines);
        stage_destroy(s);
    }
}

static void plain_json_keeps_digits_and_marks_binary(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'format':'json'"), NULL);
    stage_deliver_all(
        s, EVENT(RECORD("INSERT", "1",
                        KEYS(PK("a"))
                            NEW("'n':{'N':'12345678901234567890123456789012345678'},"
                                "'b':{'B':'AAE='},'s':{'BS':['AA==']},"
                                "'l':{'L':[{'NULL':true},{'BOOL':false},{'M':{'\\u00e9':{'S':'\\n'}}}]},"
                                "'z':{'NS':['1','2.5']}"))));
    expect_objects(s, "{'n':12345678901234567890123456789012345678,'b':{'base64':'AAE='},"
                      "'s':[{'base64':'AA=='}],'l':[null,false,{'\\u00e9':'\\n'}],'z':[1,2.5]}\n");
    stage_destroy(s);
}

static void text_over_several_lines_becomes_one(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'format':'item'"), NULL);
    stage_deliver_all(
        s, EVENT(RECORD("INSERT", "1",
                        KEYS(PK("a")) NEW("\n  'PK': { 'S' : 'a' },\r\n 't': {'S': 'x \\\\\\\" \\n y'}\n"))));
    expect_objects(s, "{'Item':{'PK':{'S':'a'},'t':{'S':'x \\\\\\\" \\n y'}}}\n");
    stage_destroy(s);
}

/* A reader of lines takes a carriage return for an end of line, too: wherever one stands, a record is one
 * line. */
static void a_record_is_one_line(void **state)
{
    (void)state;
    static const char *const formats[] = {"record", "item", "export", "json"};
    static const char *const blanks[] = {" ", "\n", "\r", "\r\n"};
    for (size_t i = 0; i < 16; i++)
        for (int place = 0; place < 3; place++) {
            struct stage *s =
                stage_new(json_printf(ROUTE(",'key':'x/','format':'%s'"), formats[i / 4]), NULL);
            const char *blank = blanks[i % 4];
            stage_deliver_all(
                s, json_printf(
                       EVENT(RECORD("MODIFY", "1", KEYS("%s" PK("a")) NEW("%s" PK("a")) OLD("%s" PK("a")))),
                       place == 0 ? blank : "", place == 1 ? blank : "", place == 2 ? blank : ""));
            char *got = stage_objects(s, "out", NULL);
            assert_int_equal(strcspn(got, "\r\n"), strlen(got) - 1);
            free(got);
            stage_destroy(s);
        }
}

/* ---- keys ---- */

static void names_of(const char *config, const char *event, char **names)
{
    struct stage *s = stage_new(config, NULL);
    stage_deliver_all(s, event);
    free(stage_objects(s, "out", names));
    stage_destroy(s);
}

static void a_key_groups_by_what_it_names(void **state)
{
    (void)state;
    char *names;
    names_of(
        ROUTE(",'key':'v={v}/{event}'"),
        EVENT(INSERT("1", BEFORE, "a", "1"), INSERT("2", BEFORE, "b", "2"), INSERT("3", BEFORE, "c", "1")),
        &names);
    assert_non_null(strstr(names, "v=1/INSERT/0000000000000000000000000000000000000001-2-"));
    assert_non_null(strstr(names, "v=2/INSERT/0000000000000000000000000000000000000002-1-"));
    free(names);
}

static void hostile_values_stay_inside_the_prefix(void **state)
{
    (void)state;
    char *names;
    names_of(ROUTE(",'key':'{PK}/x'"),
             EVENT(INSERT("1", BEFORE, "../../etc/passwd", "1"), INSERT("2", BEFORE, "..", "1"),
                   INSERT("3", BEFORE, "/", "1"), INSERT("4", BEFORE, "a\\u0000\\n%2E", "1")),
             &names);
    assert_non_null(strstr(names, "%2E.%2F..%2Fetc%2Fpasswd/x/"));
    assert_non_null(strstr(names, "%2E./x/"));
    assert_non_null(strstr(names, "%2F/x/"));
    assert_non_null(strstr(names, "a%00%0A%252E/x/"));
    free(names);
}

/* A segment may have 255 bytes in a file system, a key 1,024 in S3. */
static void long_values_are_cut_and_stay_apart(void **state)
{
    (void)state;
    char a[2048], b[2048], event[16384], *names;
    memset(a, '#', sizeof(a));
    a[sizeof(a) - 1] = '\0';
    memcpy(b, a, sizeof(b));
    b[sizeof(b) - 2] = 'b';
    snprintf(
        event, sizeof(event),
        EVENT(RECORD("INSERT", "1", KEYS(PK("%s")) NEW("")), RECORD("INSERT", "2", KEYS(PK("%s")) NEW(""))),
        a, b);
    names_of(ROUTE(",'key':'{PK}/{PK}/{PK}/{PK}/{PK}/{PK}/'"), event, &names);
    char *second = strchr(names, '\n');
    *second++ = '\0';
    *strchr(second, '\n') = '\0';
    assert_true(strlen(names) < 740 && strlen(second) < 740);
    char *x = strrchr(names, '/'), *y = strrchr(second, '/');
    *x = *y = '\0';
    assert_string_not_equal(names, second);
    free(names);
}

/* The prefixes of two records whose keys differ in their last character. */
static void prefixes_of(const char *letter, size_t n, char first[1024], char second[1024])
{
    char key[1024], event[8192], *names;
    for (size_t i = 0; i < n; i++)
        snprintf(key + i * strlen(letter), sizeof(key) - i * strlen(letter), "%s", letter);
    snprintf(
        event, sizeof(event),
        EVENT(RECORD("INSERT", "1", KEYS(PK("%sy")) NEW("")), RECORD("INSERT", "2", KEYS(PK("%sz")) NEW(""))),
        key, key);
    names_of(ROUTE(",'key':'{PK}'"), event, &names);
    char *line = strchr(names, '\n') + 1;
    snprintf(first, 1024, "%.*s", (int)strcspn(names, "/"), names);
    snprintf(second, 1024, "%.*s", (int)strcspn(line, "/"), line);
    free(names);
}

/* One segment of 200 bytes is whole; a longer one is cut, and its digest tells it from
 * others that begin alike, always in the same way. */
static void a_segment_is_cut_where_it_is_too_long(void **state)
{
    (void)state;
    static const struct {
        const char *letter;
        size_t from, to, bytes; /* of a letter, as %XX */
    } cases[] = {{"k", 197, 203, 1}, {"\xc3\xa4", 31, 36, 6}, {"\xe2\x82\xac", 20, 25, 9}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        for (size_t n = cases[c].from; n <= cases[c].to; n++) {
            char first[1024], second[1024], again[1024];
            prefixes_of(cases[c].letter, n, first, second);
            prefixes_of(cases[c].letter, n, again, second);
            bool is_whole = n * cases[c].bytes + 1 <= 200;
            const char *mark = strstr(first, "%~");
            assert_string_equal(first, again);
            assert_string_not_equal(first, second);
            assert_int_equal(mark == NULL, is_whole);
            assert_int_equal(strlen(first), is_whole ? n * cases[c].bytes + 1 : strlen(second));
            assert_true(strlen(first) <= 200);
            assert_true(is_whole || mark - first == 120); /* what it begins with is kept */
        }
}

/* The template's own text is not escaped: no character of it is cut in two. */
static void a_character_is_not_cut_in_two(void **state)
{
    (void)state;
    static const char *const letters[] = {"k", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
        for (size_t before = 0; before < 4; before++) {
            size_t bytes = strlen(letters[i]), n = before;
            char text[256], config[1024], *names;
            memset(text, 'x', before);
            for (; n <= 200; n += bytes)
                memcpy(text + n, letters[i], bytes);
            snprintf(config, sizeof(config), ROUTE(",'key':'%.*s/'"), (int)n, text);
            names_of(config, EVENT(INSERT("1", BEFORE, "a", "1")), &names);
            size_t kept = before + (120 - before) / bytes * bytes;
            assert_int_equal(strncmp(names, text, kept), 0);
            assert_int_equal(strncmp(names + kept, "%~", 2), 0);
            free(names);
        }
}

/* Only "." and ".." are no names. */
static void dots_may_stand_in_segments(void **state)
{
    (void)state;
    static const char *const keys[] = {"a.b/", ".a/",      "a./",         "..a/", "a../",
                                       ".../", "ab/c./d/", "ab/.c/...d/", "a"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct stage *s = stage_new(json_printf(ROUTE(",'key':'%s'"), keys[i]), NULL);
        stage_deliver_all(s, EVENT(INSERT("1", BEFORE, "a", "1")));
        assert_int_equal(sl_pipeline_stats(s->p, 0).applied, 1);
        stage_destroy(s);
    }
}

static void bad_templates_are_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"/x",  "a//b",      "a/../b",     "..",
                                       "./a", "a\\u0007b", "{table}//x", "{table}/.."};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char config[512];
        snprintf(config, sizeof(config), ROUTE(",'key':'%s'"), keys[i]);
        stage_refused(config, "key: ");
    }
}

/* A brace in an argument ends no place, and a slash in one no segment. */
static void functions_stand_in_keys(void **state)
{
    (void)state;
    char *names;
    names_of(ROUTE(",'key':'{PK|default:`}/..`}/{v|date:yyyy-mm|default:`a//b`}/{PK|upper}/'"),
             EVENT(INSERT("1", "1", "x/y", "1")), &names);
    if (strncmp(names, "x%2Fy/1970-01/X%2FY/", 20) != 0)
        fail_msg("%s", names);
    free(names);
}

/* What is between backquotes is an argument, wherever it begins: a segment that is bad there is none, and one
 * behind it is. */
static void an_argument_ends_where_its_quote_does(void **state)
{
    (void)state;
    for (size_t n = 0; n < 4; n++) {
        const char *before = &"abcd"[4 - n];
        char *names;
        names_of(json_printf(ROUTE(",'key':'{PK|default:`%s}/../x`}/y/'"), before),
                 EVENT(INSERT("1", "1", "k", "1")), &names);
        assert_int_equal(strncmp(names, "k/y/", 4), 0);
        free(names);
        stage_refused(json_printf(ROUTE(",'key':'{PK|default:`%s`}/../y/'"), before), "segment ends at byte");
        stage_refused(json_printf(ROUTE(",'key':'{PK|default:`%s}`}//y/'"), before), "segment ends at byte");
        stage_refused(json_printf(ROUTE(",'key':'%s{{/../{PK}'"), before), "segment ends at byte");
    }
    stage_refused(ROUTE(",'key':'a\\u007fb'"), "key: byte 1 is a control character");
}

/* ---- what is missing ---- */

#define LACKS EVENT(INSERT("1", BEFORE, "a", "1"), RECORD("INSERT", "2", KEYS(PK("b")) NEW(PK("b"))))

static void what_a_key_lacks_has_a_stated_result(void **state)
{
    (void)state;
    char *names, *failed, *got;
    struct stage *s = stage_new(ROUTE(",'key':'v={v}'"), NULL);
    stage_deliver_all(s, LACKS);
    assert_int_equal(s->answer.parked, 1);
    failed = stage_file(s, "failed.jsonl");
    assert_non_null(strstr(failed, "MissingAttribute"));
    free(failed);
    stage_destroy(s);

    s = stage_new(ROUTE(",'key':'v={v}','missing':'skip'"), NULL);
    stage_deliver_all(s, LACKS);
    got = stage_objects(s, "out", NULL);
    assert_null(strstr(got, "\"b\""));
    assert_int_equal(s->answer.parked, 0);
    free(got);
    stage_destroy(s);

    names_of(ROUTE(",'key':'v={v}','missing':'empty'"), LACKS, &names);
    assert_non_null(strstr(names, "v=%/"));
    free(names);
}

static void a_view_type_that_cannot_serve_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *config, *event, *view;
    } cases[] = {
        {ROUTE(",'format':'item','when':{'events':['REMOVE']}"),
         EVENT(RECORD_OF("NEW_IMAGE", "REMOVE", "1", KEYS(PK("a")))), "NEW_IMAGE"},
        {ROUTE(",'format':'item'"), EVENT(RECORD_OF("KEYS_ONLY", "INSERT", "1", KEYS(PK("a")))), "KEYS_ONLY"},
        {ROUTE(",'format':'json'"),
         EVENT(RECORD_OF("OLD_IMAGE", "MODIFY", "1", KEYS(PK("a")) OLD(ITEM("a", "1")))), "OLD_IMAGE"},
        {ROUTE(",'format':'export'"), EVENT(RECORD_OF("KEYS_ONLY", "INSERT", "1", KEYS(PK("a")))),
         "KEYS_ONLY"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(cases[i].config, NULL);
        stage_deliver(s, json_span(cases[i].event));
        assert_int_equal(s->answer.error.status, SL_FATAL);
        if (!strstr(s->answer.error.text, cases[i].view) || !strstr(s->answer.error.text, "does not carry"))
            fail_msg("%s", s->answer.error.text);
        expect_objects(s, "");
        stage_destroy(s);
    }
}

/* Of a stream whose view type nobody knows, the record alone is to blame. The others of its object stay
 * together, and an object of which nothing is left is not written. */
static void a_record_without_its_image_is_parked_alone(void **state)
{
    (void)state;
    static const struct {
        const char *format, *removal, *insert; /* what is said of each; NULL: it has a line */
    } cases[] = {
        {"item", "format item: the REMOVE has no OldImage", "format item: the INSERT has no NewImage"},
        {"json", "format json: the REMOVE has no OldImage", "format json: the INSERT has no NewImage"},
        {"export", NULL, "format export: the INSERT has no NewImage"},
        {"record", NULL, NULL},
    };
    static const char record[] =
        "{'eventID':'e%d','eventName':'%s','eventSource':'aws:dynamodb','dynamodb':{'Keys':{" PK(
            "%c") "}%s,"
                  "'ApproximateCreationDateTime':" BEFORE ",'SequenceNumber':'%d'}}";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s =
            stage_new(json_printf(ROUTE(",'format':'%s','key':'{PK}/'"), cases[i].format), NULL);
        const char *image = ",'NewImage':{" PK("x") "}";
        const char *first = json_printf(record, 1, "INSERT", 'a', image, 101),
                   *removal = json_printf(record, 2, "REMOVE", 'a', "", 102),
                   *insert = json_printf(record, 3, "INSERT", 'b', "", 103),
                   *last = json_printf(record, 4, "INSERT", 'a', image, 104);
        const char *event = json_printf("{'Records':[%s,%s,%s,%s]}", first, removal, insert, last);
        stage_deliver(s, sl_span_str(event));
        assert_int_equal(stage_checkpoint(s), 4);
        assert_int_equal(s->answer.parked, (cases[i].removal != NULL) + (cases[i].insert != NULL));
        char *parked = stage_file(s, "failed.jsonl"), *names;
        assert_true(!cases[i].removal || strstr(parked, cases[i].removal));
        assert_true(!cases[i].insert || strstr(parked, cases[i].insert));
        free(stage_objects(s, "out", &names));
        assert_non_null(strstr(names, cases[i].removal ? "101-2-" : "101-3-"));
        assert_int_equal(strstr(names, "b/") != NULL, cases[i].insert == NULL);
        free(parked);
        free(names);
        stage_destroy(s);
    }
}

static void an_export_needs_the_time_of_a_change(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'format':'export','key':'x/'"), NULL);
    stage_deliver_all(s, EVENT(INSERT("101", "0", "a", "1"), INSERT("102", BEFORE, "a", "1")));
    assert_int_equal(s->answer.parked, 1);
    char *parked = stage_file(s, "failed.jsonl"), *names;
    assert_non_null(strstr(parked, "format export: the record has no ApproximateCreationDateTime"));
    assert_non_null(strstr(parked, json("'SequenceNumber':'101'")));
    free(stage_objects(s, "out", &names));
    assert_non_null(strstr(names, "102-1-"));
    free(parked);
    free(names);
    stage_destroy(s);
}

/* Records that lack what the key names follow each other: each of them is parked. */
static void records_without_a_time_are_each_parked(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(",'key':'{yyyy}/'"), NULL);
    static const char record[] =
        "{'eventID':'e%d','eventName':'INSERT','eventSource':'aws:dynamodb','dynamodb':{"
        "'Keys':{" PK("a") "},'NewImage':{" PK("a") "}%s,'SequenceNumber':'%d'}}";
    const char *timed = ",'ApproximateCreationDateTime':" BEFORE;
    const char *list[] = {json_printf(record, 1, "", 101), json_printf(record, 2, "", 102),
                          json_printf(record, 3, timed, 103), json_printf(record, 4, "", 104)};
    const char *event = json_printf("{'Records':[%s,%s,%s,%s]}", list[0], list[1], list[2], list[3]);
    stage_deliver_all(s, event);
    assert_int_equal(s->answer.parked, 3);
    assert_int_equal(sl_pipeline_stats(s->p, 0).applied, 1);
    stage_destroy(s);
}

/* Whole seconds get the last six digits of the sequence number as microseconds; a finer time stays. */
static void an_exports_time_is_the_changes(void **state)
{
    (void)state;
    static const struct {
        const char *time, *sequence, *micros;
    } cases[] = {
        {BEFORE, "7", BEFORE "000007"},
        {BEFORE, "123456", BEFORE "123456"},
        {BEFORE, "9123456", BEFORE "123456"},
        {BEFORE ".25", "9123456", BEFORE "250000"},
        {BEFORE ".000001", "9123456", BEFORE "000001"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new(ROUTE(",'format':'export','key':'x/'"), NULL);
        stage_deliver_all(
            s, json_printf(
                   "{'Records':[{'eventID':'e','eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':"
                   "{'ApproximateCreationDateTime':%s,'Keys':{" PK("a") "},'SequenceNumber':'%s'}}]}",
                   cases[i].time, cases[i].sequence));
        char wanted[64], *got = stage_objects(s, "out", NULL);
        snprintf(wanted, sizeof(wanted), "\"WriteTimestampMicros\":{\"N\":\"%s\"}", cases[i].micros);
        if (!strstr(got, wanted))
            fail_msg("%s of %s: %s", cases[i].time, cases[i].sequence, got);
        free(got);
        stage_destroy(s);
    }
}

#define BARE_AT(time, v)                                                                                     \
    "{'eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':{" time                                   \
    "'Keys':{" PK("a") "},'OldImage':{" PK("a") ",'v':" N(v) "}}}"

/* A line of an export has neither number nor id: its own text tells one object from another. */
static void records_without_a_number_are_told_apart(void **state)
{
    (void)state;
    static const char *const formats[] = {"record", "item", "export", "json"};
    for (size_t i = 0; i < 4; i++) {
        struct stage *s = stage_new(json_printf(ROUTE(",'key':'x/','format':'%s'"), formats[i]), NULL);
        char *names, *lines;
        for (int times = 0; times < 2; times++) {
            stage_deliver_all(s,
                              "{'Records':[" BARE_AT("'ApproximateCreationDateTime':1767265199,", "1") "]}");
            stage_deliver_all(s,
                              "{'Records':[" BARE_AT("'ApproximateCreationDateTime':1767265199,", "2") "]}");
        }
        assert_int_equal(s->answer.parked, 0);
        lines = stage_objects(s, "out", &names);
        char *second = strchr(names, '\n') + 1;
        assert_string_equal(strchr(second, '\n'), "\n"); /* two objects, however often they came */
        assert_int_equal(strncmp(names, "x/0000000000000000000000000000000000000000-1-", 45), 0);
        assert_null(strstr(lines, "\"SequenceNumber\""));
        assert_int_equal(
            strstr(lines, json("{'Metadata':{'WriteTimestampMicros':{'N':'1767265199000000'}},'Keys'")) !=
                NULL,
            i == 2);
        free(names);
        free(lines);
        stage_destroy(s);
    }
}

/* What is longer than any sequence number is none. */
static void a_name_begins_with_the_first_sequence_number(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 66; len += len < 38 ? 37 : 1) {
        struct stage *s = stage_new(ROUTE(",'key':'x/'"), NULL);
        char digits[70], wanted[160], *names;
        memset(digits, '7', sizeof(digits));
        digits[len] = '\0';
        size_t zeros = len < 40 ? 40 - len : len > 64 ? 40 : 0;
        memset(wanted, '0', zeros);
        snprintf(wanted + zeros, sizeof(wanted) - zeros, "%s-1-", len > 64 ? "" : digits);
        stage_deliver_all(
            s, json_printf(
                   "{'Records':[{'eventID':'e','eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':"
                   "{'ApproximateCreationDateTime':" BEFORE ",'Keys':{" PK("a") "},'SequenceNumber':'%s'}}]}",
                   digits));
        free(stage_objects(s, "out", &names));
        assert_int_equal(strncmp(names, "x/", 2), 0);
        if (strncmp(names + 2, wanted, strlen(wanted)) != 0)
            fail_msg("%zu digits: %s, not %s", len, names, wanted);
        free(names);
        stage_destroy(s);
    }
}

static void a_refused_key_leaves_nothing(void **state)
{
    (void)state;
    struct stage *s = stage_new(ROUTE(""), NULL);
    s->chance = 7;
    s->one_in = 2;
    for (int i = 0; i < 20; i++)
        assert_true(stage_drive(s, json(THREE), 100));
    char *got = stage_objects(s, "out", NULL);
    size_t lines = 0;
    for (const char *at = got; *at; at++)
        lines += *at == '\n';
    assert_true(s->failures > 0 && lines >= 3);
    assert_non_null(strstr(got, "e103"));
    free(got);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_kept_byte_for_byte),
        cmocka_unit_test(redelivery_writes_the_same_objects),
        cmocka_unit_test(objects_of_other_records_have_other_names),
        cmocka_unit_test(the_other_formats_keep_what_they_promise),
        cmocka_unit_test(plain_json_keeps_digits_and_marks_binary),
        cmocka_unit_test(text_over_several_lines_becomes_one),
        cmocka_unit_test(a_record_is_one_line),
        cmocka_unit_test(a_key_groups_by_what_it_names),
        cmocka_unit_test(hostile_values_stay_inside_the_prefix),
        cmocka_unit_test(long_values_are_cut_and_stay_apart),
        cmocka_unit_test(a_segment_is_cut_where_it_is_too_long),
        cmocka_unit_test(a_character_is_not_cut_in_two),
        cmocka_unit_test(dots_may_stand_in_segments),
        cmocka_unit_test(bad_templates_are_refused),
        cmocka_unit_test(functions_stand_in_keys),
        cmocka_unit_test(an_argument_ends_where_its_quote_does),
        cmocka_unit_test(what_a_key_lacks_has_a_stated_result),
        cmocka_unit_test(a_view_type_that_cannot_serve_is_refused_by_name),
        cmocka_unit_test(a_record_without_its_image_is_parked_alone),
        cmocka_unit_test(an_export_needs_the_time_of_a_change),
        cmocka_unit_test(records_without_a_time_are_each_parked),
        cmocka_unit_test(an_exports_time_is_the_changes),
        cmocka_unit_test(records_without_a_number_are_told_apart),
        cmocka_unit_test(a_name_begins_with_the_first_sequence_number),
        cmocka_unit_test(a_refused_key_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
