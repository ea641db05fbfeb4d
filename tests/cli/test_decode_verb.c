/* `sluice decode`: each good record of any input is printed once, in order, as it came; what is bad is said,
 * and with --keep-going left out alone; and a standard output that fails is told. */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/gzip.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    return sl_random_step(&seed) % n;
}

static int set_up(void **state)
{
    *state = verbs_new();
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

static char *path_of(struct verbs *v, const char *name)
{
    static char path[2000];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    return path;
}

/* ---- good and bad records, mixed ---- */

struct text {
    struct sl_buffer all;
    size_t n_good, n_bad, n_lines;
    bool is_good[1000]; /* of the records in their order */
    size_t numbers[1000];
};

/* More than is looked at after a failure (text_skip.c). */
#define LONG_BYTES (80 * 1000)

static void add_long(struct text *t, char c)
{
    memset(sl_buffer_reserve(&t->all, LONG_BYTES), c, LONG_BYTES);
    t->all.len += LONG_BYTES;
}

static void add_good(struct text *t)
{
    /* Some have a member of an earlier decode, space, or one inside a string that looks like it. */
    static const char *const more[] = {"", ", 'sluice':{'file':'old'}", ",'eventID':'a sluice b'",
                                       ",'eventID':'c', 'awsRegion' : 'eu-west-1'"};
    /* Some are indented, which a line that goes on with a bad record is, too. */
    sl_buffer_add_str(&t->all, t->n_lines && draw(6) == 0 ? " \t" : "");
    sl_buffer_add_str(&t->all, json_printf("{'eventName':'INSERT','dynamodb':{'Keys':{'k':{'N':'%zu'}},"
                                           "'SequenceNumber':'%zu'}%s",
                                           t->n_lines, t->n_lines + 100, more[draw(4)]));
    if (draw(12) == 0) {
        sl_buffer_add_str(&t->all, ",\"long\":\"");
        add_long(t, 'x');
        sl_buffer_add_char(&t->all, '"');
    }
    sl_buffer_add_str(&t->all, draw(8) ? "}\n" : "}\n\n");
    t->numbers[t->n_good++] = t->n_lines + 100;
    t->n_lines++;
}

/* A line that is no JSON, a record that is JSON and wrong, or one over several lines that is broken. */
static void add_bad(struct text *t)
{
    static const char *const lines[] = {"{'eventName':'INSERT','dynamodb':{'Keys':{'k':{'N':'x'}}}}\n",
                                        "{'eventName':\n",
                                        "nonsense\n",
                                        "{'eventName':'MODIFY'}\n",
                                        "{\n  'eventName':'INSERT',,\n\t'dynamodb':{}\n}\n",
                                        "{'eventName':,\n}\n]\n  ],\n"};
    if (draw(8) == 0)
        add_long(t, 'n');
    sl_buffer_add_str(&t->all, json(lines[draw(6)]));
    t->n_bad++;
    t->n_lines++;
}

static void assert_printed(struct verbs *v, const struct text *t)
{
    char *out = strdup(verb_out(v)), *rest = out, *one;
    size_t n = 0;
    while ((one = strsep(&rest, "\n")) && *one) {
        const char *number = NULL;
        json_t *line = json_loads(one, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(line);
        assert_int_equal(json_unpack(line, "{s:{s:s},s:{s:s}}", "dynamodb", "SequenceNumber", &number,
                                     "sluice", "ttl", &(const char *){NULL}),
                         0);
        assert_int_equal(strtoul(number, NULL, 10), t->numbers[n++]);
        json_decref(line);
    }
    free(out);
    assert_int_equal(n, t->n_good);
}

static void write_text(struct verbs *v, const struct text *t, const char *name, bool is_packed)
{
    struct sl_buffer packed;
    struct sl_span part = sl_buffer_span(&t->all);
    sl_buffer_init(&packed, 1 << 24);
    if (is_packed)
        sl_gzip_add(&packed, &part, 1, 1);
    assert_int_equal(sl_disk_replace_path(path_of(v, name), is_packed ? sl_buffer_span(&packed) : part), 0);
    sl_buffer_clean_up(&packed);
}

static void what_is_bad_is_left_out_alone(void **state)
{
    struct verbs *v = *state;
    for (uint64_t i = 1; i <= 40; i++) {
        struct text t = {.n_good = 0};
        seed = i;
        sl_buffer_init(&t.all, 1 << 24);
        add_good(&t); /* the first record says what the text is */
        for (size_t n = draw(40); n > 0; n--)
            if (draw(3))
                add_good(&t);
            else
                add_bad(&t);
        add_good(&t);
        write_text(v, &t, "in.jsonl", draw(2));
        int status = verb(v, "decode --keep-going in.jsonl");
        if (t.n_bad)
            verb_assert(v, status, 2,
                        json_printf("sluice decode: %zu bad record%s left out\n", t.n_bad,
                                    t.n_bad == 1 ? " was" : "s were"));
        else
            verb_assert(v, status, 0, "");
        assert_printed(v, &t);
        sl_buffer_clean_up(&t.all);
    }
}

/* What is printed is an input again, and its verdicts take the place of the first ones. */
static void what_is_printed_can_be_read(void **state)
{
    struct verbs *v = *state;
    struct text t = {.n_good = 0};
    seed = 4;
    sl_buffer_init(&t.all, 1 << 24);
    for (size_t i = 0; i < 300; i++)
        add_good(&t);
    write_text(v, &t, "a.jsonl", false);
    verb_assert(v, verb(v, "decode a.jsonl"), 0, "");
    assert_printed(v, &t);
    char *first = strdup(verb_out(v));
    verb_input(v, first);
    verb_assert(v, verb(v, "decode -"), 0, json("'sluice':{'file':'-','index':299,'ttl':'user',"));
    assert_printed(v, &t);
    assert_int_equal(strlen(verb_out(v)), strlen(first) - 300 * strlen("a.jsonl") + 300 * strlen("-"));
    free(first);
    sl_buffer_clean_up(&t.all);
}

static void an_input_is_named_with_what_is_wrong(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"nowhere.json", "nowhere.json: cannot be opened: No such file or directory"},
        {"good.jsonl folder", "folder: is a folder; name the files in it"},
        {"--keep-going nowhere.json", "nowhere.json: cannot be opened: No such file or directory"},
        {"--keep-going folder", "folder: is a folder; name the files in it"},
        {"empty", "empty: is empty: it holds no record"},
        {"page.html", "page.html: "},
        {"table.csv", "table.csv: "},
        {"a.tar", "a.tar: "},
        {"cut.gz", "cut.gz: bad gzip at byte 12"},
        {"--keep-going cut.gz", "cut.gz: bad gzip at byte 12"},
        {"document.json", "document.json: record 1: dynamodb.Keys.k.N: not a number"},
        {"--keep-going document.json", "record 1: dynamodb.Keys.k.N: not a number"},
    };
    assert_int_equal(mkdir(path_of(v, "folder"), 0777), 0);
    verb_write(v, "good.jsonl", "{'eventName':'REMOVE','dynamodb':{'Keys':{'k':{'N':'1'}}}}\n");
    verb_write(v, "empty", "");
    verb_write(v, "page.html", "<html><body>403</body></html>");
    verb_write(v, "table.csv", "PK,SK,v\na,b,1\nc,d,2\n");
    verb_write(v, "document.json",
               "{'Records':[{'eventName':'REMOVE','dynamodb':{'Keys':{'k':{'N':'1'}}}},"
               "{'eventName':'REMOVE','dynamodb':{'Keys':{'k':{'N':'x'}}}}]}");
    char tar[600] = "name";
    memcpy(tar + 257, "ustar", 5);
    assert_int_equal(sl_disk_replace_path(path_of(v, "a.tar"), sl_span(tar, 512)), 0);
    assert_int_equal(
        sl_disk_replace_path(path_of(v, "cut.gz"), sl_span("\x1f\x8b\x08\0\0\0\0\0\0\xff\x05\xc0", 12)), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "decode %s", cases[i].line), 2, cases[i].text);
    /* A good input before it is printed; after it, only with --keep-going. */
    verb_assert(v, verb(v, "decode good.jsonl document.json"), 2, json("'file':'good.jsonl','index':0,"));
    verb_assert(v, verb(v, "decode document.json good.jsonl"), 2, "");
    assert_null(strstr(verb_out(v), "good.jsonl"));
    verb_assert(v, verb(v, "decode --keep-going document.json nowhere good.jsonl"), 2, "good.jsonl");
    assert_non_null(strstr(verb_out(v), json("'file':'document.json','index':0,")));
    assert_non_null(strstr(verb_out(v), json("'file':'good.jsonl','index':0,")));
}

/* More than is written at a time. */
static void write_large(struct verbs *v)
{
    struct text t = {.n_good = 0};
    sl_buffer_init(&t.all, 1 << 24);
    for (size_t i = 0; i < 700; i++) {
        sl_buffer_printf(&t.all, "{\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"k\":{\"N\":\"%zu\"}}},",
                         i);
        sl_buffer_printf(&t.all, "\"more\":\"%04000d\"}\n", 0);
    }
    write_text(v, &t, "large.jsonl", false);
    sl_buffer_clean_up(&t.all);
}

/* All lines and 0, or a line that says why, and only whole lines' worth of what came before. */
static void what_fails_is_said(void **state)
{
    struct verbs *v = *state;
    write_large(v);
    verb_assert(v, verb(v, "decode large.jsonl"), 0, "");
    char *whole = strdup(verb_out(v));
    for (int n = 1;; n++) {
        verb_fault(v, n, n % 2 ? ENOSPC : EIO, NULL);
        int status = verb(v, "decode large.jsonl");
        if (status == 0) {
            assert_string_equal(verb_out(v), whole);
        } else {
            verb_assert(v, status, status, strerror(n % 2 ? ENOSPC : EIO));
            verb_assert(v, status, status,
                        status == 1 ? "standard output cannot be written" : "large.jsonl: cannot");
            assert_memory_equal(verb_out(v), whole, strlen(verb_out(v)));
        }
        if (!disk_fault_came())
            break;
    }
    /* A reader that went away is told nothing. */
    for (int n = 1; n < 3; n++) {
        verb_fault(v, n, EPIPE, "write");
        verb_assert(v, verb(v, "decode large.jsonl"), 1, "");
        assert_string_equal(verb_err(v), "");
    }
    free(whole);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_bad_is_left_out_alone),
        TEST(what_is_printed_can_be_read),
        TEST(an_input_is_named_with_what_is_wrong),
        TEST(what_fails_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
