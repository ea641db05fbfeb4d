/* Stream events captured on AWS and published with its libraries: each is decoded, compared with what jansson
 * reads, its images with its view type, its recomputed size with the recorded one.
 *
 *   events CORPUS     reads CORPUS/stream-events/{captured,published}/\*.json */
#include "tests/support/test.h"

#include "base/error.h"
#include "tests/support/oracle.h"
#include "tests/support/records.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* Which image an event of a view carries. */
static bool has_right_images(const struct sl_record *r)
{
    enum sl_view view = sl_record_view(r);
    if (view == SL_VIEW_UNKNOWN)
        return true;
    bool news = view == SL_VIEW_NEW_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES;
    bool olds = view == SL_VIEW_OLD_IMAGE || view == SL_VIEW_NEW_AND_OLD_IMAGES;
    bool has_new = sl_record_image(r, SL_NEW_IMAGE).type == SL_M;
    bool has_old = sl_record_image(r, SL_OLD_IMAGE).type == SL_M;
    return has_new == (news && sl_record_event(r) != SL_REMOVE) &&
           has_old == (olds && sl_record_event(r) != SL_INSERT);
}

/* Those who published made up some sizes. */
static bool has_right_size(const struct sl_record *r, bool is_captured)
{
    if (!is_captured && sl_record_stated_bytes(r) != sl_record_computed_bytes(r))
        printf("  (states %llu bytes, has %llu)\n", (unsigned long long)sl_record_stated_bytes(r),
               (unsigned long long)sl_record_computed_bytes(r));
    return !is_captured || sl_record_stated_bytes(r) == sl_record_computed_bytes(r);
}

static const char *record_fault(const struct sl_record *r, json_t *record, bool is_captured)
{
    if (!has_right_images(r))
        return "images that the view type does not have";
    if (!has_right_size(r, is_captured))
        return "SizeBytes";
    return test_record_differs(r, record);
}

static const char *fault(struct test_batch *t, struct sl_span text, bool is_captured)
{
    if (t->status != SL_OK)
        return t->error.text;
    json_t *event = json_loadb(text.ptr, text.len, 0, NULL);
    json_t *records = json_object_get(event, "Records");
    const char *why = records && json_array_size(records) != t->batch.n ? "the number of records" : NULL;
    for (size_t i = 0; i < t->batch.n && !why; i++)
        why = record_fault(sl_batch_record(&t->batch, i), records ? json_array_get(records, i) : event,
                           is_captured);
    json_decref(event);
    return why;
}

/* One file is cut; it is refused where it ends. */
static const char *truncated_fault(struct test_batch *t, struct sl_span text)
{
    if (t->status != SL_REJECT || strcmp(t->error.code, "InvalidJson") != 0)
        return "it is accepted";
    return t->error.offset == text.len ? NULL : "the byte of the cut";
}

static bool passes(const char *path, const char *name, bool is_captured)
{
    size_t len;
    char *text = test_read(path, &len);
    if (!text)
        sl_die("%s cannot be read", path);
    struct test_batch t;
    test_decode(&t, sl_span(text, len), NULL);
    const char *why = strstr(name, "truncated") ? truncated_fault(&t, sl_span(text, len))
                                                : fault(&t, sl_span(text, len), is_captured);
    if (why)
        printf("  %s: %s\n", name, why);
    test_batch_clean_up(&t);
    free(text);
    return !why;
}

static bool run_folder(const char *corpus, const char *folder)
{
    char path[4096];
    struct dirent **files;
    snprintf(path, sizeof(path), "%s/stream-events/%s", corpus, folder);
    int n = scandir(path, &files, NULL, alphasort), passed = 0, total = 0;
    for (int i = 0; i < n; i++) {
        if (files[i]->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/stream-events/%s/%s", corpus, folder, files[i]->d_name);
            total++;
            passed += passes(path, files[i]->d_name, strcmp(folder, "captured") == 0);
        }
        free(files[i]);
    }
    if (n >= 0)
        free(files);
    printf("stream-events/%s: %d/%d\n", folder, passed, total);
    return total > 0 && passed == total;
}

int main(int argc, char **argv)
{
    const char *corpus = argc > 1 ? argv[1] : "../shared/conformance";
    bool captured = run_folder(corpus, "captured"), published = run_folder(corpus, "published");
    return captured && published ? 0 : 1;
}
