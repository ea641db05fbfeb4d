#include "tests/support/operations.h"

#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text of the source that is the name of an operation, where a request is made: `.operation = "X"`, or the
 * last argument of sl_dynamodb_job. Scan has no second word: the table of operations has it anyway. */
static void check_source(const char *path, const char *const *names)
{
    static const char *const verbs[] = {"Put",   "Get",      "Update",  "Delete", "Batch",   "Send",
                                        "Query", "Transact", "Publish", "List",   "Describe"};
    static const char *const members[] = {"PutRequest",          "DeleteRequest",  "UpdateExpression",
                                          "BatchRequestTooLong", "PublishBatchRe", "ListBucketResult",
                                          "ListVersionsResult",  "DeleteMarker"};
    size_t len;
    char *text = test_read(path, &len);
    assert_non_null(text);
    for (char *p = strchr(text, '"'); p; p = strchr(p, '"')) {
        size_t n = strspn(++p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        bool is_verb = false, found = false;
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
            size_t v = strlen(verbs[i]);
            is_verb = is_verb || (n > v && strncmp(p, verbs[i], v) == 0 && p[v] >= 'A' && p[v] <= 'Z');
        }
        for (size_t i = 0; names[i]; i++)
            found = found || (strlen(names[i]) == n && strncmp(p, names[i], n) == 0);
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            found = found || strncmp(p, members[i], strlen(members[i])) == 0;
        if (is_verb && p[n] == '"' && !found)
            fail_msg("%s: the operation %.*s is not in this test's table: add it", path, (int)n, p);
    }
    free(text);
}

void operations_are_known(const char *folder, const char *const *names)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        check_source(folder, names);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[400];
        size_t n = strlen(entry->d_name);
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            operations_are_known(path, names);
        else if (n > 2 && strcmp(entry->d_name + n - 2, ".c") == 0)
            check_source(path, names);
    }
    closedir(dir);
}
