/* JSONTestSuite: y_ texts are accepted, n_ texts refused, i_ texts as docs/RECORDS.md decides.
 *
 *   json CORPUS     reads CORPUS/json/\*.json */
#include "tests/support/test.h"

#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* What the grammar leaves to the parser. Numbers of any size are accepted, for they are kept as text; bytes
 * that are not UTF-8 and halves of surrogate pairs are refused. */
static bool is_left_open_and_accepted(const char *name)
{
    return strncmp(name, "i_number_", 9) == 0 || strcmp(name, "i_structure_500_nested_arrays.json") == 0 ||
           strcmp(name, "i_structure_UTF-8_BOM_empty_object.json") == 0;
}

static bool is_wanted(const char *name)
{
    return name[0] == 'y' || (name[0] == 'i' && is_left_open_and_accepted(name));
}

/* In memory of exactly the text's size. */
static bool is_accepted(const char *path)
{
    size_t len;
    char *text = test_read(path, &len);
    if (!text)
        sl_die("%s cannot be read", path);
    char *exact = malloc(len ? len : 1);
    if (!exact)
        sl_die("out of memory");
    memcpy(exact, text, len);
    enum sl_status status = sl_json_check(sl_span(exact, len), NULL);
    free(exact);
    free(text);
    return status == SL_OK;
}

static bool run_kind(const char *corpus, char kind)
{
    char path[4096];
    struct dirent **files;
    snprintf(path, sizeof(path), "%s/json", corpus);
    int n = scandir(path, &files, NULL, alphasort), passed = 0, total = 0;
    for (int i = 0; i < n; i++) {
        const char *name = files[i]->d_name;
        if (name[0] == kind && name[1] == '_') {
            snprintf(path, sizeof(path), "%s/json/%s", corpus, name);
            bool good = is_accepted(path) == is_wanted(name);
            total++;
            passed += good;
            if (!good)
                printf("  %s\n", name);
        }
        free(files[i]);
    }
    if (n >= 0)
        free(files);
    printf("json %c_: %d/%d\n", kind, passed, total);
    return total > 0 && passed == total;
}

int main(int argc, char **argv)
{
    const char *corpus = argc > 1 ? argv[1] : "../shared/conformance";
    bool y = run_kind(corpus, 'y'), n = run_kind(corpus, 'n'), i = run_kind(corpus, 'i');
    return y && n && i ? 0 : 1;
}
