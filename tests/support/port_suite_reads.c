/* What every store and table must do that can be read: ranges, lists, pages of segments. */
#include "tests/support/port_suite.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- objects ---- */

static void put_object(struct port_suite *suite, const char *key, struct sl_span body)
{
    const struct sl_object object = {.key = sl_span_str(key), .body = body};
    struct sl_result result;
    suite->objects->apply(suite->objects, &object, 1, &result, &suite->call);
    if (result.status != SL_OK)
        fail_msg("%s: %s: %s", key, result.code, result.text);
}

static struct sl_object_piece read_piece(struct port_suite *suite, const char *key, uint64_t from,
                                         size_t most)
{
    const struct sl_object_read read = {.key = sl_span_str(key), .from = from, .max_bytes = most};
    struct sl_object_piece piece;
    suite->objects->read(suite->objects, &read, 1, &piece, &suite->call);
    if (piece.result.status != SL_OK)
        fail_msg("%s from %llu: %s: %s", key, (unsigned long long)from, piece.result.code, piece.result.text);
    return piece;
}

static void assert_span(struct sl_span have, struct sl_span wanted)
{
    if (!sl_span_eq(have, wanted))
        fail_msg("\"%.*s\" instead of \"%.*s\"", SL_ARG(have), SL_ARG(wanted));
}

static void objects_are_read_in_ranges(struct port_suite *suite)
{
    const struct sl_span body = SL_LIT("0123456789");
    put_object(suite, "range/a b+c%20.txt", body);
    for (uint64_t from = 0; from <= 11; from++)
        for (size_t most = 1; most <= 12; most++) {
            struct sl_object_piece piece = read_piece(suite, "range/a b+c%20.txt", from, most);
            struct sl_span rest = sl_span_from(body, (size_t)from);
            assert_span(piece.bytes, sl_span(rest.ptr, rest.len < most ? rest.len : most));
            assert_int_equal(piece.object_bytes, 10);
            assert_true(from >= 10 || piece.etag.len > 0);
        }
    put_object(suite, "range/empty", SL_LIT(""));
    struct sl_object_piece piece = read_piece(suite, "range/empty", 0, 100);
    assert_int_equal(piece.bytes.len, 0);
    assert_int_equal(piece.object_bytes, 0);
}

static void large_objects_are_read_piece_by_piece(struct port_suite *suite)
{
    enum { BYTES = 3 * 1024 * 1024 + 7, PIECE = 1024 * 1024 };
    char *body = malloc(BYTES);
    assert_non_null(body);
    for (size_t i = 0; i < BYTES; i++)
        body[i] = (char)(i * 31 + i / 4096);
    put_object(suite, "range/large", sl_span(body, BYTES));
    struct sl_object_read reads[4];
    struct sl_object_piece pieces[4];
    for (size_t i = 0; i < 4; i++)
        reads[i] =
            (struct sl_object_read){.key = SL_LIT("range/large"), .from = i * PIECE, .max_bytes = PIECE};
    suite->objects->read(suite->objects, reads, 4, pieces, &suite->call);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pieces[i].result.status, SL_OK);
        assert_int_equal(pieces[i].object_bytes, BYTES);
        assert_span(pieces[i].etag, pieces[0].etag);
        assert_int_equal(pieces[i].bytes.len, i < 3 ? PIECE : 7);
        assert_memory_equal(pieces[i].bytes.ptr, body + i * PIECE, pieces[i].bytes.len);
    }
    free(body);
}

static struct sl_result refused_read(struct port_suite *suite, struct sl_object_read read)
{
    struct sl_object_piece piece;
    suite->objects->read(suite->objects, &read, 1, &piece, &suite->call);
    if (piece.result.status != SL_REJECT || !piece.result.text)
        fail_msg("status %d, %s: %s", (int)piece.result.status, piece.result.code, piece.result.text);
    assert_null(piece.bytes.ptr);
    return piece.result;
}

static void what_is_not_there_is_said(struct port_suite *suite)
{
    struct sl_result result =
        refused_read(suite, (struct sl_object_read){.key = SL_LIT("range/nothing"), .max_bytes = 10});
    assert_string_equal(result.code, "NoSuchKey");
    put_object(suite, "range/folder/x", SL_LIT("x"));
    result = refused_read(suite, (struct sl_object_read){.key = SL_LIT("range/folder"), .max_bytes = 10});
    assert_string_equal(result.code, "NoSuchKey");
    result = refused_read(suite, (struct sl_object_read){.key = SL_LIT("range/folder/x/y"), .max_bytes = 10});
    assert_string_equal(result.code, "NoSuchKey");
    result = refused_read(suite, (struct sl_object_read){.key = SL_LIT("../x"), .max_bytes = 10});
    assert_string_equal(result.code, "InvalidKey");
    result = refused_read(suite, (struct sl_object_read){.key = SL_LIT("range/folder/x")});
    assert_string_equal(result.code, "InvalidArgument");
    result = refused_read(
        suite, (struct sl_object_read){.key = SL_LIT("range/folder/x"), .from = UINT64_MAX, .max_bytes = 2});
    assert_string_equal(result.code, "InvalidArgument");
}

static void one_that_is_absent_spoils_no_other(struct port_suite *suite)
{
    const struct sl_object_read reads[] = {{.key = SL_LIT("range/1"), .max_bytes = 9},
                                           {.key = SL_LIT("range/none"), .max_bytes = 9},
                                           {.key = SL_LIT("range/2"), .max_bytes = 9}};
    struct sl_object_piece pieces[3];
    put_object(suite, "range/1", SL_LIT("one"));
    put_object(suite, "range/2", SL_LIT("two"));
    suite->objects->read(suite->objects, reads, 3, pieces, &suite->call);
    assert_span(pieces[0].bytes, SL_LIT("one"));
    assert_int_equal(pieces[1].result.status, SL_REJECT);
    assert_span(pieces[2].bytes, SL_LIT("two"));
}

static void an_object_that_was_replaced_is_noticed(struct port_suite *suite)
{
    put_object(suite, "range/etag", SL_LIT("first one"));
    struct sl_object_piece piece = read_piece(suite, "range/etag", 0, 5);
    struct sl_object_read next = {.key = SL_LIT("range/etag"), .from = 5, .max_bytes = 5, .etag = piece.etag};
    suite->objects->read(suite->objects, &next, 1, &piece, &suite->call);
    assert_span(piece.bytes, SL_LIT(" one"));
    assert_span(piece.etag, next.etag);
    put_object(suite, "range/etag", SL_LIT("other one"));
    struct sl_result result = refused_read(suite, next);
    assert_string_equal(result.code, "PreconditionFailed");
}

/* ---- lists ---- */

static const char *const listed[] = {
    "list/a",       "list/a b",    "list/a-b", "list/a/1",  "list/a/2/x",    "list/a/2/y", "list/a0",
    "list/a0/deep", "list/b%2B+c", "list/e&f", "list/z<>'", "list/\xc3\xa4", "list2",
};
#define N_LISTED (sizeof(listed) / sizeof(listed[0]))

/* A folder cannot also be a file. */
static bool is_listed(struct port_suite *suite, size_t i)
{
    return strcmp(suite->name, "file") != 0 ||
           (strcmp(listed[i], "list/a") != 0 && strcmp(listed[i], "list/a0") != 0);
}

static void put_listed(struct port_suite *suite)
{
    for (size_t i = 0; i < N_LISTED; i++)
        if (is_listed(suite, i))
            put_object(suite, listed[i], sl_span_str(listed[i]));
}

static size_t list_all(struct port_suite *suite, struct sl_object_list list, struct sl_object_entry *out,
                       size_t room)
{
    struct sl_object_page page;
    size_t n = 0, pages = 0;
    do {
        suite->objects->list(suite->objects, &list, &page, &suite->call);
        if (page.result.status != SL_OK)
            fail_msg("%s: %s", page.result.code, page.result.text);
        assert_true(!list.limit || page.n <= list.limit);
        for (size_t i = 0; i < page.n && n < room; i++)
            out[n++] = page.entries[i];
        list.after = page.next;
        assert_true(pages++ < 3000);
    } while (page.next.ptr);
    return n;
}

static void assert_listed(struct port_suite *suite, const char *prefix, const char *after, size_t limit)
{
    struct sl_object_entry found[2 * N_LISTED];
    size_t n = list_all(suite, (struct sl_object_list){sl_span_str(prefix), sl_span_str(after), limit}, found,
                        2 * N_LISTED);
    size_t k = 0;
    for (size_t i = 0; i < N_LISTED; i++) {
        if (!is_listed(suite, i) || strncmp(listed[i], prefix, strlen(prefix)) != 0 ||
            (after && strcmp(listed[i], after) <= 0))
            continue;
        if (k == n || !sl_span_is(found[k].key, listed[i]))
            fail_msg("prefix %s after %s limit %zu: %.*s instead of %s", prefix, after, limit,
                     k == n ? 3 : (int)found[k].key.len, k == n ? "end" : found[k].key.ptr, listed[i]);
        assert_int_equal(found[k].bytes, strlen(listed[i]));
        assert_span(found[k].etag, read_piece(suite, listed[i], 0, 1).etag);
        assert_in_range(found[k].modified_s, time(NULL) - 600, time(NULL) + 1);
        k++;
    }
    assert_int_equal(k, n);
}

static void keys_are_listed_in_order(struct port_suite *suite)
{
    static const char *const prefixes[] = {"list",     "list/",         "list/a",   "list/a/",
                                           "list/a/2", "list/\xc3\xa4", "list/none"};
    put_listed(suite);
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        for (size_t limit = 0; limit < 5; limit++)
            assert_listed(suite, prefixes[i], NULL, limit);
}

static void a_list_goes_on_after_any_key(struct port_suite *suite)
{
    static const char *const afters[] = {"a",          "list",        "list/a",      "list/a/2", "list/a/2/",
                                         "list/a/2/x", "list/a/2/xx", "list/b%2B+c", "list/zz",  "list2",
                                         "m"};
    put_listed(suite);
    for (size_t i = 0; i < sizeof(afters) / sizeof(afters[0]); i++)
        for (size_t limit = 0; limit < 3; limit++)
            assert_listed(suite, "list", afters[i], limit);
}

static void a_long_list_has_pages(struct port_suite *suite)
{
    enum { KEYS = 1300 };
    struct sl_object_entry found[KEYS + 1];
    for (int i = 0; i < KEYS; i++)
        put_object(suite, sl_arena_printf(suite->call.arena, "long/%05d", (i * 7) % KEYS), SL_LIT("x"));
    size_t n = list_all(suite, (struct sl_object_list){.prefix = SL_LIT("long/")}, found, KEYS + 1);
    assert_int_equal(n, KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_span(found[i].key, sl_span_str(sl_arena_printf(suite->call.arena, "long/%05d", i)));
}

const struct port_case port_read_cases[] = {
    {"objects_are_read_in_ranges", objects_are_read_in_ranges},
    {"large_objects_are_read_piece_by_piece", large_objects_are_read_piece_by_piece},
    {"what_is_not_there_is_said", what_is_not_there_is_said},
    {"one_that_is_absent_spoils_no_other", one_that_is_absent_spoils_no_other},
    {"an_object_that_was_replaced_is_noticed", an_object_that_was_replaced_is_noticed},
    {"keys_are_listed_in_order", keys_are_listed_in_order},
    {"a_list_goes_on_after_any_key", a_list_goes_on_after_any_key},
    {"a_long_list_has_pages", a_long_list_has_pages},
    {NULL, NULL},
};

/* ---- tables ---- */

#define ITEMS 240

static void put_items(struct port_suite *suite)
{
    struct sl_table_op ops[ITEMS];
    struct sl_result results[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        const char *key =
            sl_arena_printf(suite->call.arena, "\"PK\":{\"S\":\"scan-%d\"},\"SK\":{\"S\":\"%d\"}", i / 3, i);
        ops[i] = (struct sl_table_op){
            .verb = SL_TABLE_PUT,
            .key = sl_span_str(sl_arena_printf(suite->call.arena, "{%s}", key)),
            .item = sl_span_str(sl_arena_printf(
                suite->call.arena,
                "{%s,\"n\":{\"N\":\"%d\"},\"status\":{\"S\":\"new\"},\"a.b\":{\"L\":[{\"NULL\":true}]}}", key,
                i))};
    }
    suite->table->apply(suite->table, ops, ITEMS, results, &suite->call);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(results[i].status, SL_OK);
}

static struct sl_table_page scan_page(struct port_suite *suite, struct sl_table_scan scan)
{
    struct sl_table_page page;
    suite->table->scan(suite->table, &scan, 1, &page, &suite->call);
    if (page.result.status != SL_OK)
        fail_msg("%s: %s", page.result.code, page.result.text);
    return page;
}

/* Counts the items of put_items in `seen`; returns the pages. */
static size_t scan_all(struct port_suite *suite, struct sl_table_scan scan, int *seen)
{
    size_t pages = 0;
    struct sl_table_page page;
    do {
        page = scan_page(suite, scan);
        assert_true(!scan.limit || page.n <= scan.limit);
        for (size_t i = 0; i < page.n; i++) {
            json_t *item = json_loadb(page.items[i].ptr, page.items[i].len, JSON_ALLOW_NUL, NULL);
            const char *pk = json_string_value(json_object_get(json_object_get(item, "PK"), "S"));
            const char *sk = json_string_value(json_object_get(json_object_get(item, "SK"), "S"));
            if (pk && strncmp(pk, "scan-", 5) == 0)
                seen[strtol(sk, NULL, 10)]++;
            json_decref(item);
        }
        scan.after = page.next;
        assert_true(pages++ < 5000);
    } while (page.next.ptr);
    return pages;
}

static void assert_each_once(const int *seen)
{
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(seen[i], 1);
}

static void a_scan_finds_each_item_once(struct port_suite *suite)
{
    static const uint32_t ofs[] = {0, 1, 2, 7};
    static const size_t limits[] = {0, 1, 13};
    put_items(suite);
    for (size_t k = 0; k < 4; k++)
        for (size_t l = 0; l < 3; l++) {
            int seen[ITEMS] = {0};
            for (uint32_t i = 0; i < (ofs[k] ? ofs[k] : 1); i++)
                scan_all(suite,
                         (struct sl_table_scan){
                             .segment = i, .of = ofs[k], .limit = limits[l], .is_consistent = l != 1},
                         seen);
            assert_each_once(seen);
        }
}

static void an_item_stays_in_its_segment(struct port_suite *suite)
{
    int first[ITEMS] = {0}, second[ITEMS] = {0};
    put_items(suite);
    const struct sl_table_scan scan = {.segment = 2, .of = 5, .is_consistent = true};
    scan_all(suite, scan, first);
    struct sl_table_scan slow = scan;
    slow.limit = 3;
    scan_all(suite, slow, second);
    assert_memory_equal(first, second, sizeof(first));
}

static void several_pages_fly_together(struct port_suite *suite)
{
    struct sl_table_scan scans[4];
    struct sl_table_page pages[4];
    size_t n = 0;
    put_items(suite);
    for (uint32_t i = 0; i < 4; i++)
        scans[i] = (struct sl_table_scan){.segment = i, .of = 4, .limit = 5, .is_consistent = true};
    suite->table->scan(suite->table, scans, 4, pages, &suite->call);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pages[i].result.status, SL_OK);
        n += pages[i].n;
    }
    assert_int_equal(n, 20);
}

static void a_page_holds_a_megabyte(struct port_suite *suite)
{
    enum { BYTES = 300 * 1024 };
    char *text = malloc(BYTES + 1);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    text[BYTES] = '\0';
    for (int i = 0; i < 5; i++) {
        const char *key = sl_arena_printf(suite->call.arena, "{\"PK\":{\"S\":\"big-%d\"}}", i);
        struct sl_table_op op = {
            .verb = SL_TABLE_PUT,
            .table = sl_span_str(suite->side_table),
            .key = sl_span_str(key),
            .item = sl_span_str(sl_arena_printf(suite->call.arena, "%.*s,\"t\":{\"S\":\"%s\"}}",
                                                (int)strlen(key) - 1, key, text))};
        struct sl_result result;
        suite->table->apply(suite->table, &op, 1, &result, &suite->call);
        assert_int_equal(result.status, SL_OK);
    }
    struct sl_table_scan scan = {.table = sl_span_str(suite->side_table), .is_consistent = true};
    struct sl_table_page page;
    size_t found = 0, most = 0;
    do {
        page = scan_page(suite, scan);
        size_t big = 0;
        for (size_t i = 0; i < page.n; i++)
            big += page.items[i].len > BYTES;
        found += big;
        most = big > most ? big : most;
        scan.after = page.next;
    } while (page.next.ptr);
    assert_int_equal(found, 5);
    assert_in_range(most, 3, 4);
    free(text);
}

static void a_scan_may_want_some_attributes(struct port_suite *suite)
{
    const struct sl_span names[] = {SL_LIT("status"), SL_LIT("a.b"), SL_LIT("none")};
    put_items(suite);
    struct sl_table_scan scan = {.names = names, .n_names = 3, .is_consistent = true};
    struct sl_table_page page = scan_page(suite, scan);
    size_t full = 0;
    for (size_t i = 0; i < page.n; i++) {
        json_t *item = json_loadb(page.items[i].ptr, page.items[i].len, JSON_ALLOW_NUL, NULL);
        assert_non_null(item);
        assert_null(json_object_get(item, "PK"));
        full += json_object_size(item) == 2;
        json_decref(item);
    }
    assert_true(full > 0);
}

static void a_scan_of_nothing_is_refused(struct port_suite *suite)
{
    const struct sl_span empty = SL_LIT(""), broken = SL_LIT("\xff");
    const struct sl_table_scan wrong[] = {
        {.segment = 3, .of = 3},
        {.segment = 1},
        {.segment = 0, .of = SL_TABLE_SEGMENTS_MAX + 1},
        {.after = SL_LIT("")},
        {.after = SL_LIT("[]")},
        {.after = SL_LIT("{}")},
        {.after = SL_LIT("{\"PK\":{\"BOOL\":true}}")},
        {.after = SL_LIT("{\"PK\":{\"S\":\"a\"}},\"x\":{")},
        {.names = &empty, .n_names = 1},
        {.names = &broken, .n_names = 1},
        {.table = SL_LIT("a b")},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct sl_table_page page;
        suite->table->scan(suite->table, &wrong[i], 1, &page, &suite->call);
        if ((page.result.status != SL_REJECT && page.result.status != SL_FATAL) || !page.result.text ||
            !page.result.not_sent)
            fail_msg("scan %zu was not refused", i);
    }
    (void)scan_page(
        suite, (struct sl_table_scan){.segment = SL_TABLE_SEGMENTS_MAX - 1, .of = SL_TABLE_SEGMENTS_MAX});
}

static void a_peek_reads_as_a_get(struct port_suite *suite)
{
    struct sl_table_op ops[6];
    struct sl_result results[6];
    put_items(suite);
    for (int i = 0; i < 6; i++)
        ops[i] =
            (struct sl_table_op){.verb = i % 3 == 1 ? SL_TABLE_GET : SL_TABLE_PEEK,
                                 .key = sl_span_str(sl_arena_printf(
                                     suite->call.arena, "{\"PK\":{\"S\":\"scan-%d\"},\"SK\":{\"S\":\"%d\"}}",
                                     i / 6, i == 5 ? 999 : i / 2))};
    suite->table->apply(suite->table, ops, 6, results, &suite->call);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(results[i].status, SL_OK);
        assert_int_equal(results[i].item.ptr != NULL, i != 5);
    }
    ops[0].group = 1;
    suite->table->apply(suite->table, ops, 1, results, &suite->call);
    assert_int_equal(results[0].status, SL_REJECT);
}

static void a_table_is_described(struct port_suite *suite)
{
    struct sl_table_facts facts;
    put_items(suite);
    scan_page(suite, (struct sl_table_scan){.is_consistent = true}); /* an index counts what was refreshed */
    /* A node of OpenSearch counts an index's bytes every ten seconds (index.store.stats_refresh_interval). */
    for (int i = 0; i < 600; i++) {
        suite->table->describe(suite->table, sl_span(NULL, 0), &facts, &suite->call);
        if (facts.result.status != SL_OK)
            fail_msg("%s: %s", facts.result.code, facts.result.text);
        if (facts.bytes > ITEMS * 10)
            break;
        sl_clock_system()->sleep_ms(sl_clock_system(), 100);
    }
    if (suite->has_keys) {
        assert_int_equal(facts.n_keys, 2);
        assert_span(facts.keys[0].name, SL_LIT("PK"));
        assert_span(facts.keys[1].name, SL_LIT("SK"));
        assert_int_equal(facts.keys[0].type, 'S');
    }
    assert_true(facts.is_on_demand);
    assert_true(facts.items >= ITEMS);
    assert_true(facts.bytes > ITEMS * 10);
    suite->table->describe(suite->table, SL_LIT("a b"), &facts, &suite->call);
    assert_true(facts.result.status != SL_OK && facts.result.not_sent);
}

/* The embedded table has no units; the service says what it consumed when it is asked. */
static void units_are_counted(struct port_suite *suite)
{
    struct sl_table_units units = {0, 0};
    bool has_units = strcmp(suite->name, "dynamodb") == 0;
    suite->table->units = &units;
    put_items(suite);
    const double written = units.write;
    a_peek_reads_as_a_get(suite);
    const double read = units.read;
    scan_page(suite, (struct sl_table_scan){.is_consistent = true});
    const struct sl_test never = {.verb = SL_ABSENT, .name = SL_LIT("PK")};
    const struct sl_table_op op = {.verb = SL_TABLE_PUT,
                                   .key = SL_LIT("{\"PK\":{\"S\":\"scan-0\"},\"SK\":{\"S\":\"0\"}}"),
                                   .item = SL_LIT("{\"PK\":{\"S\":\"scan-0\"},\"SK\":{\"S\":\"0\"}}"),
                                   .tests = &never,
                                   .n_tests = 1};
    struct sl_result result;
    double before = units.write;
    suite->table->apply(suite->table, &op, 1, &result, &suite->call);
    suite->table->units = NULL;
    assert_true(result.condition_failed);
    if (!has_units)
        return;
    assert_true(written >= ITEMS);
    assert_true(read > 0);
    assert_true(units.read > read);
    assert_true(units.write == before + 1);
}

const struct port_case port_scan_cases[] = {
    {"a_scan_finds_each_item_once", a_scan_finds_each_item_once},
    {"an_item_stays_in_its_segment", an_item_stays_in_its_segment},
    {"several_pages_fly_together", several_pages_fly_together},
    {"a_page_holds_a_megabyte", a_page_holds_a_megabyte},
    {"a_scan_may_want_some_attributes", a_scan_may_want_some_attributes},
    {"a_scan_of_nothing_is_refused", a_scan_of_nothing_is_refused},
    {"a_peek_reads_as_a_get", a_peek_reads_as_a_get},
    {"a_table_is_described", a_table_is_described},
    {"units_are_counted", units_are_counted},
    {NULL, NULL},
};
