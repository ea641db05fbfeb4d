/* The story of some items: what is said of each change, whatever the objects' order, and what is late. */
#include "data/recall/story.h"

#include "base/disk.h"
#include "tests/support/events.h"
#include "tests/support/records.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static struct sl_sinks sinks;
static char *folder;

#define INSERTED(seq, id, v) RECORD("INSERT", seq, KEYS(PK(id)) NEW(PK(id) ",'v':" N(v))) "\n"
#define MODIFIED(seq, id, v, w)                                                                              \
    RECORD("MODIFY", seq, KEYS(PK(id)) OLD(PK(id) ",'v':" N(v)) NEW(PK(id) ",'v':" N(w))) "\n"
#define REMOVED(seq, id, v) RECORD("REMOVE", seq, KEYS(PK(id)) OLD(PK(id) ",'v':" N(v))) "\n"

static void put(const char *name, int age_s, const char *lines)
{
    const char *path = json_printf("%s/archive/%s", folder, name);
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    assert_int_equal(sl_disk_make_parent(path, NULL), SL_OK);
    test_write(path, json(lines));
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void digest_of(const char *id, unsigned char out[SL_SHA256_BYTES])
{
    struct test_batch t;
    const struct sl_record *r = test_record(&t, "INSERT", json_printf("'Keys':{'PK':{'S':'%s'}}", id), "");
    sl_recall_digest(sl_record_item_key(r, t.arena), out);
    test_batch_clean_up(&t);
}

/* What is said of the items a and b, a change a line: item, SequenceNumber, what was before, and why one is
 * missing. */
static char *story(uint64_t *doubles)
{
    unsigned char items[2][SL_SHA256_BYTES];
    struct sl_error error = SL_NO_ERROR;
    struct sl_recall *recall;
    struct sl_story_change change;
    struct sl_buffer out;
    bool is_read = false, has = true;
    digest_of("a", items[0]);
    digest_of("b", items[1]);
    const struct sl_recall_options options = {.sinks = &sinks,
                                              .place = json_printf("%s/archive", folder),
                                              .items = (const unsigned char(*)[SL_SHA256_BYTES])items,
                                              .n = 2,
                                              .writes_no_index = true};
    sl_buffer_init(&out, 1 << 20);
    if (sl_recall_open(&options, &recall, &error) != SL_OK)
        fail_msg("%s", error.text);
    struct sl_story *s = sl_story_open(recall, folder, sl_span(NULL, 0));
    while (!is_read)
        if (sl_story_read(s, INT64_MAX, &is_read, &error) != SL_OK)
            fail_msg("%s", error.text);
    while (sl_story_next(s, &change, &has, &error) == SL_OK && has) {
        struct sl_span number = sl_record_text(change.record, SL_FIELD_SEQUENCE_NUMBER);
        struct sl_value v =
            change.before.type == SL_M ? sl_value_member(change.before, SL_LIT("v")) : change.before;
        sl_buffer_printf(&out, "%c %.*s %.*s%s\n", "ab"[change.item], (int)number.len, number.ptr,
                         v.type ? (int)v.raw.len : 1,
                         v.type                   ? v.raw.ptr
                         : change.before_is_known ? "-"
                                                  : "?",
                         change.gap ? " gap" : "");
    }
    assert_int_equal(error.status, SL_OK);
    *doubles = sl_story_doubles(s);
    sl_story_close(s);
    sl_recall_close(recall);
    char *text = strndup(out.ptr ? out.ptr : "", out.len);
    sl_buffer_clean_up(&out);
    return text;
}

static void assert_story(const char *wanted, uint64_t doubles)
{
    uint64_t have;
    char *text = story(&have);
    assert_string_equal(text, wanted);
    assert_int_equal(have, doubles);
    free(text);
}

static void changes_are_told_in_order_whatever_their_objects(void **state)
{
    (void)state;
    put("01/late.jsonl", 100, MODIFIED("100", "a", "2", "3") INSERTED("7", "c", "1"));
    put("02/x.jsonl", 100,
        MODIFIED("10", "a", "1", "2") INSERTED("9", "a", "1") MODIFIED("12", "b", "4", "5"));
    put("03/double.jsonl", 100, MODIFIED("10", "a", "1", "2") REMOVED("101", "a", "3"));
    put("04/y.jsonl", 100,
        INSERTED("20000000000000000000000000000000000000", "a", "6") REMOVED("13", "b", "5"));
    assert_story(
        "a 9 -\na 10 1\na 100 2\na 101 3\na 20000000000000000000000000000000000000 -\nb 12 4\nb 13 5\n", 1);
}

/* Before a change that came while the archive was listed, none is missing: it may be where the listing was
 * past. */
static void what_is_late_has_no_gap(void **state)
{
    (void)state;
    put("01/x.jsonl", 100, INSERTED("1", "a", "1") INSERTED("2", "b", "1"));
    put("02/y.jsonl", 1, MODIFIED("11", "a", "2", "3") MODIFIED("12", "b", "2", "3"));
    put("03/z.jsonl", -60, MODIFIED("21", "a", "4", "5"));
    assert_story("a 1 -\na 11 2 gap\na 21 4\nb 2 -\nb 12 2 gap\n", 0);
    put("03/z.jsonl", 1, MODIFIED("21", "a", "4", "5"));
    put("02/y.jsonl", -60, MODIFIED("11", "a", "2", "3") MODIFIED("12", "b", "2", "3"));
    assert_story("a 1 -\na 11 2\na 21 4 gap\nb 2 -\nb 12 2\n", 0);
}

static int begin(void **state)
{
    static struct sl_vars none;
    (void)state;
    folder = test_folder_in_memory();
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &none);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sl_sinks_clean_up(&sinks);
    test_folder_remove(folder);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_are_told_in_order_whatever_their_objects),
        TEST(what_is_late_has_no_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
