#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void assert_span_is(struct sl_span span, const char *text)
{
    if (!sl_span_is(span, text))
        fail_msg("got \"%.*s\", wanted \"%s\"", SL_ARG(span), text);
}

/* What json() returned, so that a leak checker finds it. */
struct text {
    struct text *next;
    char bytes[];
};
static struct text *texts;

void json_quote(char *text)
{
    char *out = text;
    for (; *text; text++) {
        if (*text == '\\' && text[1] == '\'')
            *out++ = *++text;
        else if (*text == '\\' && text[1])
            *out++ = *text, *out++ = *++text;
        else
            *out++ = *text == '\'' ? '"' : *text;
    }
    *out = '\0';
}

const char *json(const char *text)
{
    struct text *copy = malloc(sizeof(*copy) + strlen(text) + 1);
    assert_non_null(copy);
    copy->next = texts;
    texts = copy;
    memcpy(copy->bytes, text, strlen(text) + 1);
    json_quote(copy->bytes);
    return copy->bytes;
}

struct sl_span json_span(const char *text)
{
    return sl_span_str(json(text));
}

const char *json_printf(const char *format, ...)
{
    char *printed = NULL;
    va_list list;
    va_start(list, format);
    assert_true(vasprintf(&printed, format, list) >= 0);
    va_end(list);
    const char *text = json(printed);
    free(printed);
    return text;
}

static char *folder_in(const char *parent)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/sluice-test-XXXXXX", parent) > 0);
    assert_non_null(mkdtemp(path));
    return path;
}

char *test_folder(void)
{
    const char *parent = getenv("TMPDIR");
    return folder_in(parent ? parent : "/tmp");
}

char *test_folder_in_memory(void)
{
    return getenv("TMPDIR") || access("/dev/shm", W_OK) ? test_folder() : folder_in("/dev/shm");
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    (void)remove(path); /* what another has just removed is gone as well */
    return 0;
}

void test_folder_remove(char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

char *test_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *bytes = malloc(1 << 24);
    assert_non_null(bytes);
    size_t n = fread(bytes, 1, (1 << 24) - 1, file);
    bytes[n] = '\0';
    if (len)
        *len = n;
    fclose(file);
    return bytes;
}

void test_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

#ifdef SL_SANITIZED
void __sanitizer_set_report_fd(void *fd);
#else
static void __sanitizer_set_report_fd(void *fd)
{
    (void)fd;
}
#endif

static void point_stderr_at(int fd, int reports)
{
    fflush(stderr);
    assert_true(fd >= 0 && reports >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    __sanitizer_set_report_fd((void *)(intptr_t)reports);
    close(fd);
}

int test_stderr_into(const char *path)
{
    int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    point_stderr_at(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), before);
    return before;
}

void test_stderr_back(int before)
{
    point_stderr_at(before, STDERR_FILENO);
}

size_t test_open_files(void)
{
    size_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}
