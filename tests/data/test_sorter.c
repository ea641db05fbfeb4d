/* The external sort against a plain one in memory: any number of runs, every level of merging, bodies that
 * are dropped, and a disk that fails. */
#include "data/sorter.h"

#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 6000

struct item {
    struct sl_sorter_entry entry;
    char body[200];
    size_t body_bytes;
    size_t place;
};

static struct item items[MOST];

static uint64_t draw(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static int compare(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = memcmp(a->entry.key, b->entry.key, sizeof(a->entry.key));
    if (!order)
        order = (int)a->entry.order_bytes - (int)b->entry.order_bytes;
    return order ? order : memcmp(a->entry.order, b->entry.order, a->entry.order_bytes);
}

/* A body follows from key and order, so equal entries have equal bodies. */
static void fill(size_t n, size_t keys, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        struct item *item = &items[i];
        *item = (struct item){.place = i};
        uint64_t key = draw(&seed, keys), order = draw(&seed, n);
        snprintf((char *)item->entry.key, sizeof(item->entry.key), "%c%llu", (char)('a' + key % 7),
                 (unsigned long long)key);
        char digits[SL_SORTER_ORDER_BYTES];
        int len = order ? snprintf(digits, sizeof(digits), "%llu", (unsigned long long)order) : 0;
        item->entry.order_bytes = (uint32_t)len;
        memcpy(item->entry.order, digits, (size_t)len);
        item->entry.before = key;
        item->entry.after = order;
        item->body_bytes = (key + order) % 3 ? (size_t)((key * 31 + order) % sizeof(item->body)) : 0;
        memset(item->body, (int)(key + order), item->body_bytes);
    }
}

static size_t files_in(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t n = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void assert_sorted(struct sl_sorter *s, size_t n)
{
    struct sl_sorter_entry entry;
    struct sl_span body;
    struct sl_error error = SL_NO_ERROR;
    bool has;
    qsort(items, n, sizeof(items[0]), compare);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(sl_sorter_next(s, &entry, &body, &has, &error), SL_OK);
        assert_true(has);
        assert_memory_equal(entry.key, items[i].entry.key, sizeof(entry.key));
        assert_int_equal(entry.after, items[i].entry.after);
        assert_int_equal(entry.before, items[i].entry.before);
        bool is_last = i + 1 == n || !sl_sorter_same_key(&items[i + 1].entry, &entry);
        assert_int_equal(body.len, is_last ? items[i].body_bytes : 0);
        if (body.len)
            assert_memory_equal(body.ptr, items[i].body, body.len);
    }
    assert_int_equal(sl_sorter_next(s, &entry, &body, &has, &error), SL_OK);
    assert_false(has);
}

static void sort(size_t n, size_t keys, size_t chunk_bytes)
{
    char *folder = test_folder_in_memory();
    struct sl_sorter *s = sl_sorter_open(folder, chunk_bytes);
    struct sl_error error = SL_NO_ERROR;
    bool is_ready = false;
    fill(n, keys, n + keys + chunk_bytes);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            sl_sorter_add(s, &items[i].entry, sl_span(items[i].body, items[i].body_bytes), &error), SL_OK);
    for (size_t steps = 0; !is_ready; steps++) {
        assert_int_equal(sl_sorter_merge(s, 100, &is_ready, &error), SL_OK);
        assert_true(steps < 100000);
    }
    assert_sorted(s, n);
    sl_sorter_close(s);
    assert_int_equal(files_in(folder), 0);
    test_folder_remove(folder);
}

/* From one run to more than SL_SORTER_FAN squared. */
static void everything_comes_out_in_order(void **state)
{
    (void)state;
    static const size_t numbers[] = {0, 1, 2, 50, 1000, MOST}, keys[] = {1, 10, 100000};
    static const size_t chunks[] = {600, 5000, 60000, 0};
    for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
        for (size_t k = 0; k < 3; k++)
            for (size_t c = 0; c < 4; c++)
                sort(numbers[n], keys[k], chunks[c]);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory(), body[1000] = "";
    struct sl_sorter *s = sl_sorter_open(folder, 600);
    struct sl_error error = SL_NO_ERROR;
    const struct sl_sorter_entry entry = {.key = "a"};
    assert_int_equal(sl_sorter_add(s, &entry, sl_span(body, sizeof(body)), &error), SL_REJECT);
    assert_string_equal(error.code, "TooLarge");
    sl_sorter_close(s);
    test_folder_remove(folder);
}

/* The folder goes away while runs are written, and while they are merged. */
static void a_disk_that_fails_is_said(void **state)
{
    (void)state;
    for (int merges = 0; merges < 2; merges++) {
        char *folder = test_folder_in_memory(), path[300];
        snprintf(path, sizeof(path), "%s", folder);
        struct sl_sorter *s = sl_sorter_open(path, 5000);
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = SL_OK;
        bool is_ready = false;
        fill(MOST, 500, 3);
        if (!merges)
            test_folder_remove(folder);
        for (size_t i = 0; i < MOST && status == SL_OK; i++)
            status = sl_sorter_add(s, &items[i].entry, sl_span(items[i].body, items[i].body_bytes), &error);
        assert_int_equal(status, merges ? SL_OK : SL_FATAL);
        if (merges)
            test_folder_remove(folder);
        while (merges && status == SL_OK && !is_ready)
            status = sl_sorter_merge(s, 1000, &is_ready, &error);
        assert_int_equal(status, SL_FATAL);
        assert_non_null(strstr(error.text, "temporary file"));
        sl_sorter_close(s);
    }
}

/* Runs that lost their ends, or their middle, were not written by us: nothing is left out without a word. */
static void a_run_that_is_cut_is_said(void **state)
{
    (void)state;
    size_t n_refused = 0;
    for (long cut = 1; cut < 400; cut += 37) {
        char *folder = test_folder_in_memory();
        struct sl_sorter *s = sl_sorter_open(folder, 5000);
        struct sl_error error = SL_NO_ERROR;
        struct sl_sorter_entry entry;
        struct sl_span body;
        struct stat info;
        bool is_ready = false, has = true;
        fill(200, 500, 3);
        for (size_t i = 0; i < 200; i++)
            assert_int_equal(
                sl_sorter_add(s, &items[i].entry, sl_span(items[i].body, items[i].body_bytes), &error),
                SL_OK);
        const char *path = json_printf("%s/run-1", folder);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(truncate(path, info.st_size - cut), 0);
        enum sl_status status = sl_sorter_merge(s, 1000, &is_ready, &error);
        size_t n = 0;
        for (; status == SL_OK && has; n += has && status == SL_OK)
            status = sl_sorter_next(s, &entry, &body, &has, &error);
        if (status != SL_OK) {
            n_refused++;
            assert_non_null(strstr(error.text, "cannot read a temporary file"));
        } else {
            assert_true(n < 200); /* between two entries: nothing shows it */
        }
        sl_sorter_close(s);
        test_folder_remove(folder);
    }
    assert_true(n_refused >= 9);
}

/* Each operation of the disk fails once, over two levels of merges: it is said which, and no file is left. */
static void every_fault_of_the_disk_is_said(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EMFILE};
    bool came = true;
    for (int n = 1; came; n += n < 20 ? 1 : 7) {
        char *folder = test_folder_in_memory();
        struct sl_sorter *s = sl_sorter_open(folder, 800);
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = SL_OK;
        bool is_ready = false;
        fill(200, 500, 3);
        disk_fault_begin(n, errors[n % 3], NULL);
        for (size_t i = 0; i < 200 && status == SL_OK; i++)
            status = sl_sorter_add(s, &items[i].entry, sl_span(items[i].body, items[i].body_bytes), &error);
        while (status == SL_OK && !is_ready)
            status = sl_sorter_merge(s, 50, &is_ready, &error);
        came = disk_fault_came();
        disk_fault_end();
        if (status == SL_OK)
            assert_sorted(s, 200);
        else if (!strstr(error.text, "temporary file") || !strstr(error.text, strerror(errors[n % 3])))
            fail_msg("%s: %s", disk_fault->came, error.text);
        assert_true(came || status == SL_OK);
        sl_sorter_close(s);
        if (!came || strcmp(disk_fault->came, "unlink") != 0)
            assert_int_equal(files_in(folder), 0);
        test_folder_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_out_in_order),   cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(a_disk_that_fails_is_said),       cmocka_unit_test(a_run_that_is_cut_is_said),
        cmocka_unit_test(every_fault_of_the_disk_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
