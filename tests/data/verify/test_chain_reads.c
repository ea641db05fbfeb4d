/* Reading an archive: in pages and pieces, from a store that fails, onto a disk that is full; and what each
 * record must have to prove anything. */
#include "base/clock.h"
#include "base/time.h"
#include "handlers/pipeline/host.h"
#include "sinks/port.h"
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "data/verify/archive/chain.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define ARN      "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"
#define BODY_MAX ((size_t)24 * 1024 * 1024)

/* ---- an archive in memory ---- */

struct object {
    const char *name;
    struct sl_span body;
    size_t since; /* it is there from this call on */
};

static struct sl_object_port port;
static struct object objects[300];
static size_t n_objects;
static size_t page_size;           /* of a list */
static size_t calls, failing_call; /* the call that fails, counted from 1; 0: none */
static struct sl_result failure;
static bool has_etags;

static void list(struct sl_object_port *self, const struct sl_object_list *asked, struct sl_object_page *page,
                 const struct sl_call *call)
{
    (void)self;
    size_t at = 0, n = 0;
    *page = (struct sl_object_page){.result = {.status = SL_OK}};
    if (++calls == failing_call) {
        page->result = failure;
        return;
    }
    while (asked->after.ptr && at < n_objects && !sl_span_is(asked->after, objects[at].name))
        at++;
    at += asked->after.ptr != NULL;
    page->entries = sl_arena_zalloc(call->arena, page_size * sizeof(*page->entries));
    for (; at < n_objects && n < page_size; at++)
        if (objects[at].since <= calls)
            page->entries[n++] =
                (struct sl_object_entry){.key = sl_span_str(objects[at].name), .bytes = objects[at].body.len};
    page->n = n;
    if (at < n_objects)
        page->next = sl_span_str(sl_arena_copy(call->arena, sl_span_str(objects[at - 1].name)));
}

/* The second piece has to be of the same object as the first. */
static void read_piece(struct sl_object_port *self, const struct sl_object_read *reads, size_t n,
                       struct sl_object_piece *pieces, const struct sl_call *call)
{
    (void)self;
    (void)call;
    assert_int_equal(n, 1);
    *pieces = (struct sl_object_piece){.result = {.status = SL_OK}};
    if (++calls == failing_call) {
        pieces->result = failure;
        return;
    }
    for (size_t i = 0; i < n_objects; i++) {
        struct sl_span body = objects[i].body;
        if (!sl_span_is(reads->key, objects[i].name))
            continue;
        assert_true(reads->from <= body.len);
        assert_true(!has_etags || reads->from == 0 || sl_span_is(reads->etag, "tag"));
        size_t left = body.len - (size_t)reads->from;
        pieces->bytes = sl_span(body.ptr + reads->from, left < reads->max_bytes ? left : reads->max_bytes);
        pieces->etag = has_etags ? SL_LIT("tag") : sl_span(NULL, 0);
    }
}

static int set_up(void **state)
{
    (void)state;
    port = (struct sl_object_port){.size = sizeof(port), .read = read_piece, .list = list};
    n_objects = failing_call = 0;
    page_size = 1000;
    has_etags = true;
    return 0;
}

/* ---- objects as the handler names them: FIRST-COUNT-DIGEST.jsonl (docs/HANDLERS.md) ---- */

static const char *name_of(const char *first, size_t n, struct sl_span identifiers)
{
    unsigned char bytes[32];
    char digits[33];
    sl_host_table.sha256(identifiers, bytes);
    for (size_t i = 0; i < 16; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    return json_printf("2026/%s-%zu-%s.jsonl", first, n, digits);
}

static void add_object(const char *name, const char *body)
{
    assert_true(n_objects < sizeof(objects) / sizeof(objects[0]));
    objects[n_objects++] = (struct object){name, sl_span_str(body), 0};
}

/* An object of one change of an item: `members` are those of "dynamodb" after its keys. */
static void add_change(unsigned sequence, const char *event, const char *id, const char *members)
{
    const char *identifiers = json_printf("0%s\n%u\ne%u\n", ARN, sequence, sequence);
    add_object(
        name_of(json_printf("%u", sequence), 1, sl_span_str(identifiers)),
        json_printf("{'eventID':'e%u','eventName':'%s','eventSource':'aws:dynamodb','eventSourceARN':'" ARN
                    "','dynamodb':{'Keys':{'PK':{'S':'%s'}},'SequenceNumber':'%u'%s}}\n",
                    sequence, event, id, sequence, members));
}

/* ---- what is found ---- */

static char lines[20000];
static struct sl_chain_counts counts;
static struct sl_error error;
static size_t questions, stops_at;
static char *own;        /* a folder */
static const char *temp; /* that, or what a test wants */

static void found(void *arg, struct sl_span line)
{
    (void)arg;
    size_t n = strlen(lines);
    snprintf(lines + n, sizeof(lines) - n, "%.*s", SL_ARG(line));
}

static bool is_stopped(void *arg)
{
    (void)arg;
    questions++;
    return stops_at && questions >= stops_at;
}

static enum sl_status verify(void)
{
    const struct sl_chain_options options = {.port = &port,
                                             .clock = sl_clock_system(),
                                             .route = "keep",
                                             .temp = temp,
                                             .found = found,
                                             .is_stopped = is_stopped};
    counts = (struct sl_chain_counts){.gaps = 0};
    calls = questions = 0;
    lines[0] = '\0';
    sl_error_clear(&error);
    return sl_chain_verify(&options, &counts, &error);
}

static void assert_whole(uint64_t n, uint64_t gaps)
{
    if (verify() != SL_OK)
        fail_msg("%s", error.text);
    if (counts.records != n || counts.objects != n || counts.gaps != gaps ||
        counts.damaged + counts.unreadable + counts.without_images + counts.doubles > 0)
        fail_msg("%llu records, %llu gaps: %s", (unsigned long long)counts.records,
                 (unsigned long long)counts.gaps, lines);
}

/* An item that is set to 1, 2, 3, ..., of which the second last change is missing. */
static void add_history(unsigned n)
{
    for (unsigned i = 1; i <= n; i++)
        if (i != n - 1)
            add_change(
                1000 + i, i > 1 ? "MODIFY" : "INSERT", "a",
                json_printf("%s,'NewImage':{'PK':{'S':'a'},'n':{'N':'%u'}}",
                            i > 1 ? json_printf(",'OldImage':{'PK':{'S':'a'},'n':{'N':'%u'}}", i - 1) : "",
                            i));
}

/* ---- pages and pieces ---- */

static void every_page_is_read(void **state)
{
    (void)state;
    add_history(9);
    for (page_size = 1; page_size < 10; page_size++) {
        assert_whole(8, 1);
        assert_non_null(strstr(lines, "\"sequence_number\":\"1009\",\"object\":\"2026/1009-1-"));
        assert_non_null(strstr(lines, "\"after_sequence_number\":\"1007\",\"after_object\":\"2026/1007-1-"));
    }
}

/* Objects come while the archive is read, an item's in order, and anywhere among the others' names: what was
 * lost is told, and not what had yet to come. */
#define GROWING_ITEMS 5
static void an_archive_may_grow_while_it_is_read(void **state)
{
    (void)state;
    uint64_t told = 0, lost = 0;
    for (uint64_t world = 1; world <= 200; world++) {
        uint64_t seed = world;
        unsigned n[GROWING_ITEMS] = {0};
        size_t since[GROWING_ITEMS] = {0};
        bool has_lost = world % 4 == 0, is_lost = false;
        n_objects = 0;
        page_size = 1 + world % 3;
        for (unsigned i = 0; i < 40; i++) {
            unsigned item = (unsigned)(sl_random_step(&seed) % GROWING_ITEMS), v = ++n[item];
            if (has_lost && i > 5 && v > 1 && !is_lost) {
                is_lost = true; /* its successor follows, as all of them are written until the end */
                continue;
            }
            add_change(1000 + i, v > 1 ? "MODIFY" : "INSERT", json_printf("%u", item),
                       json_printf("%s,'NewImage':{'n':{'N':'%u'}}",
                                   v > 1 ? json_printf(",'OldImage':{'n':{'N':'%u'}}", v - 1) : "", v));
            since[item] += sl_random_step(&seed) % 3 ? 0 : sl_random_step(&seed) % 40;
            objects[n_objects - 1].since = since[item];
        }
        assert_int_equal(verify(), SL_OK);
        assert_int_equal(counts.damaged + counts.unreadable + counts.doubles, 0);
        assert_in_range(counts.gaps, 0, is_lost);
        lost += is_lost;
        told += counts.gaps;
        for (size_t i = 0; i < n_objects; i++)
            objects[i].since = 0;
        assert_int_equal(verify(), SL_OK);
        assert_int_equal(counts.records, n_objects);
        assert_in_range(counts.gaps, 0, is_lost);
    }
    assert_true(told * 3 > lost);
}

/* Eight megabytes at a time. */
static void a_large_object_is_read_in_pieces(void **state)
{
    (void)state;
    char *text = malloc(BODY_MAX + 1);
    assert_non_null(text);
    memset(text, 'x', BODY_MAX);
    text[BODY_MAX] = '\0';
    /* One byte more than two pieces, exactly two, and one less. */
    for (int more = -1; more <= 1; more++) {
        n_objects = 0;
        add_change(1001, "INSERT", "a", ",'NewImage':{'PK':{'S':'a'},'n':{'S':'x'}}");
        struct sl_span body = objects[0].body;
        const char *tail = strstr(body.ptr, "x\"}}}}\n");
        size_t before = (size_t)(tail - body.ptr), after = body.len - before;
        size_t whole = (size_t)16 * 1024 * 1024 + (size_t)(more + 1) - 1;
        memcpy(text, body.ptr, before);
        memset(text + before, 'x', whole - before);
        memcpy(text + whole - after, tail, after);
        objects[0].body = sl_span(text, whole);
        for (int etags = 0; etags < 2; etags++) {
            has_etags = etags;
            assert_whole(1, 0);
        }
    }
    free(text);
}

static void what_is_no_archive_of_ours_is_passed_over_or_told(void **state)
{
    (void)state;
    static const struct {
        const char *name, *why; /* NULL: passed over */
    } cases[] = {
        {"notes.txt", NULL},
        {".jsonl", NULL},
        {"a/b.json", NULL},
        {"x.jsonl.gz.tmp", NULL},
        {"plain.jsonl", "its name is not one that archive gives"},
        {"a-b/plain.jsonl", "its name is not one that archive gives"},
        {"5-x.jsonl", "its name is not one that archive gives"},
        {"5-1-0123456789abcdef0123456789abcde", NULL},
        {"5-1-0.jsonl", "its name is not one that archive gives"},
        {"5-1-00000000000000000000000000000000.jsonl", "it has other records than its name says"},
        {"5-2-00000000000000000000000000000000.jsonl", "its name says 2 records, and it has 1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        n_objects = 0;
        add_change(5, "INSERT", "a", ",'NewImage':{'PK':{'S':'a'}}");
        objects[0].name = cases[i].name;
        assert_int_equal(verify(), SL_OK);
        assert_int_equal(counts.objects, cases[i].why != NULL);
        assert_int_equal(counts.damaged, cases[i].why != NULL);
        if (cases[i].why && !strstr(lines, json_printf("'kind':'damaged','route':'keep','handler':'archive',"
                                                       "'object':'%s','why':'%s'",
                                                       cases[i].name, cases[i].why)))
            fail_msg("%s: %s", cases[i].name, lines);
    }
}

/* ---- records ---- */

/* What proves nothing is counted; the first two and the last are whole. */
static void a_record_needs_what_the_proof_needs(void **state)
{
    (void)state;
#define IMAGES ",'OldImage':{'n':{'N':'1'}},'NewImage':{'n':{'N':'2'}}"
    static const struct {
        const char *record;
        bool is_whole;
    } cases[] = {
        {"'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7','NewImage':{}}",
         true},
        {"'eventName':'REMOVE','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7','OldImage':{}}",
         true},
        {"'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7'" IMAGES "}", true},
        {"'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7'}", false},
        {"'eventName':'REMOVE','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7'}", false},
        {"'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7','NewImage':{}}",
         false},
        {"'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7','OldImage':{}}",
         false},
        {"'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}}" IMAGES "}", false},
        {"'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':"
         "'1234567890123456789012345678901234567890'" IMAGES "}",
         true},
        {"'eventName':'MODIFY','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':"
         "'12345678901234567890123456789012345678901'" IMAGES "}",
         false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        n_objects = 0;
        add_object("5-1-00000000000000000000000000000000.jsonl", json_printf("{%s}\n", cases[i].record));
        assert_int_equal(verify(), SL_OK);
        if (counts.without_images != !cases[i].is_whole || counts.items != cases[i].is_whole)
            fail_msg("%s: %llu without", cases[i].record, (unsigned long long)counts.without_images);
    }
}

/* Items of two tables are two, whatever their keys; a table's new stream is the same table. */
static void items_are_told_apart_by_their_table(void **state)
{
    (void)state;
    static const struct {
        const char *one, *two;
        bool are_same;
    } cases[] = {
        {"'eventSourceARN':'" ARN "/stream/1'", "'eventSourceARN':'" ARN "/stream/2'", true},
        {"'eventSourceARN':'" ARN "'", "'eventSourceARN':'" ARN "/stream/2'", true},
        {"'eventSourceARN':'" ARN "'", "'eventSourceARN':'" ARN "2'", false},
        {"'tableName':'a'", "'tableName':'b'", false},
        {"'tableName':'a'", "'tableName':'a'", true},
        {"'x':1", "'x':2", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        n_objects = 0;
        add_object(
            "5-2-00000000000000000000000000000000.jsonl",
            json_printf("{'eventName':'INSERT',%s,'dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber':'7',"
                        "'NewImage':{'n':{'N':'1'}}}}\n{'eventName':'INSERT',%s,'dynamodb':{'Keys':{'PK':{"
                        "'S':'a'}},'SequenceNumber':'8','NewImage':{'n':{'N':'1'}}}}\n",
                        cases[i].one, cases[i].two));
        assert_int_equal(verify(), SL_OK);
        if (counts.items != 2 - (uint64_t)cases[i].are_same || counts.gaps != cases[i].are_same)
            fail_msg("%s, %s: %s", cases[i].one, cases[i].two, lines);
        if (cases[i].are_same)
            assert_non_null(strstr(lines, "\"sequence_number\":\"8\""));
    }
}

/* The same change twice is one; two changes of one order are two. */
static void doubles_are_told_by_their_event(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        n_objects = 0;
        const char *line =
            "{'eventID':'%s','eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}},'SequenceNumber'"
            ":'7','NewImage':{'n':{'N':'1'}}}}\n";
        char one[400], two[400];
        snprintf(one, sizeof(one), "%s", line);
        char *at = strstr(one, "%s");
        snprintf(two, sizeof(two), "%.*s%s%s", (int)(at - one), one, same ? "1" : "2", at + 2);
        snprintf(one, sizeof(one), "%.*s1%s", (int)(at - one), line, strstr(line, "%s") + 2);
        add_object("5-2-00000000000000000000000000000000.jsonl", json_printf("%s%s", one, two));
        assert_int_equal(verify(), SL_OK);
        assert_int_equal(counts.doubles, same);
        assert_int_equal(counts.gaps, !same);
        assert_int_equal(counts.records, 2);
    }
}

/* ---- failures ---- */

static void a_store_that_fails_is_told(void **state)
{
    (void)state;
    static const struct {
        struct sl_result failure;
        enum sl_status of_list, of_read;
        const char *code, *text;
    } cases[] = {
        {{.status = SL_RETRY, .code = "Later", .text = "not now"}, SL_RETRY, SL_RETRY, "Later", "not now"},
        {{.status = SL_FATAL, .code = "Gone", .text = "no bucket"}, SL_FATAL, SL_FATAL, "Gone", "no bucket"},
        {{.status = SL_REJECT, .code = "Gone", .text = "no object"}, SL_REJECT, SL_OK, "Gone", "no object"},
    };
    page_size = 2;
    add_history(5);
    assert_whole(4, 1);
    size_t whole = calls;
    assert_int_equal(whole, 8); /* the names twice, in two pages */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (failing_call = 1; failing_call <= whole; failing_call++) {
            bool is_list = failing_call == 1 || failing_call == 4 || failing_call > 6;
            failure = cases[i].failure;
            assert_int_equal(verify(), is_list ? cases[i].of_list : cases[i].of_read);
            if (!is_list && cases[i].of_read == SL_OK) { /* the others are looked at all the same */
                assert_int_equal(counts.unreadable, 1);
                assert_int_equal(counts.records, 3);
                assert_non_null(strstr(lines, "\"kind\":\"unreadable\""));
                assert_non_null(strstr(lines, "\"why\":\"no object\""));
            } else {
                assert_string_equal(error.code, cases[i].code);
                assert_non_null(strstr(error.text, cases[i].text));
                assert_string_equal(lines, "");
            }
        }
    port.list = NULL;
    assert_int_equal(verify(), SL_FATAL);
    assert_string_equal(error.code, "NoList");
    port.list = list;
    port.read = NULL;
    assert_int_equal(verify(), SL_FATAL);
}

/* Each operation on the temporary files; nothing stays behind. */
static void a_disk_that_fails_is_told(void **state)
{
    (void)state;
    static const char *const only[] = {"mkdtemp", "fopen", "fflush", "fclose"};
    add_history(3);
    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++)
        for (int n = 1;; n++) {
            disk_fault_begin(n, ENOSPC, only[i]);
            enum sl_status status = verify();
            disk_fault_end();
            if (!disk_fault_came())
                break;
            if (status != SL_OK) {
                assert_int_equal(status, SL_FATAL);
                assert_string_equal(error.code, "NoSpace");
                assert_non_null(strstr(error.text, temp));
            } else {
                assert_string_equal(only[i], "fclose"); /* of what was read */
            }
            DIR *folder = opendir(temp);
            assert_non_null(folder);
            for (struct dirent *e; (e = readdir(folder));)
                assert_null(strstr(e->d_name, "sluice-verify-"));
            closedir(folder);
        }
    temp = json_printf("%s/nowhere", own);
    assert_int_equal(verify(), SL_FATAL);
    assert_non_null(
        strstr(error.text, json_printf("%s: a temporary folder cannot be made: No such file", temp)));
    temp = own;
}

/* Files may have no byte: the changes of one item, then the names of many objects. */
static void a_full_disk_is_told_while_it_is_written(void **state)
{
    (void)state;
    struct rlimit was, none;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    none = (struct rlimit){0, was.rlim_max};
    for (int names = 0; names < 2; names++) {
        n_objects = 0;
        add_history(names ? 1 : 60);
        for (int i = 0; names && i < 200; i++)
            add_object(json_printf("%040d-0-00000000000000000000000000000000.jsonl", i), "");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        enum sl_status status = verify();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        assert_int_equal(status, SL_FATAL);
        assert_string_equal(error.code, "FileTooLarge");
        assert_true(strstr(error.text, "a temporary file cannot be written") ||
                    strstr(error.text, "cannot write a temporary file"));
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void it_may_be_stopped_at_any_object(void **state)
{
    (void)state;
    page_size = 2;
    add_history(5);
    assert_whole(4, 1);
    size_t whole = questions;
    for (stops_at = 1; stops_at <= whole; stops_at++) {
        assert_int_equal(verify(), SL_OK);
        assert_true(counts.objects <= 4);
        assert_true(counts.gaps <= (counts.objects == 4)); /* a half archive has gaps of its own */
    }
    stops_at = 0;
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_page_is_read),
        TEST(an_archive_may_grow_while_it_is_read),
        TEST(a_large_object_is_read_in_pieces),
        TEST(what_is_no_archive_of_ours_is_passed_over_or_told),
        TEST(a_record_needs_what_the_proof_needs),
        TEST(items_are_told_apart_by_their_table),
        TEST(doubles_are_told_by_their_event),
        TEST(a_store_that_fails_is_told),
        TEST(a_disk_that_fails_is_told),
        TEST(a_full_disk_is_told_while_it_is_written),
        TEST(it_may_be_stopped_at_any_object),
    };
    temp = own = test_folder_in_memory();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove(own);
    return failed;
}
