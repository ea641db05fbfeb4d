/* The file that names the records a handler holds: mapped, locked, one for each process. */
#include "runtime/contain/holds.h"

#include "base/span.h"
#include "streams/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC      "sluheld2" /* of the layout below; a file with another is not read */
#define MAX_FILES  256        /* more than the processes of one user on one machine */
#define PATH_BYTES 4096

struct page {
    char magic[8];
    uint64_t n; /* 0: nothing is held. Written last when entering, first when leaving */
    char route[72];
    struct sl_hold_name names[SL_HOLDS_MAX];
    uint64_t n_bad; /* ever added: a ring */
    struct sl_hold_bad bad[SL_HOLDS_BAD];
};

struct sl_holds {
    struct page *page;
    char path[PATH_BYTES];
};

/* ---- names ---- */

static void put(char *out, size_t room, struct sl_span text)
{
    size_t n = text.len < room ? text.len : room;
    if (n)
        memcpy(out, text.ptr, n);
    memset(out + n, 0, room - n);
}

void sl_holds_name(const struct sl_record *record, struct sl_hold_name *out)
{
    put(out->identifier, sizeof(out->identifier), sl_record_text(record, SL_FIELD_IDENTIFIER));
    put(out->event_id, sizeof(out->event_id), sl_record_text(record, SL_FIELD_EVENT_ID));
}

/* ---- the file ---- */

/* Is it ours, and not a link to something else? In a folder where all may write, others may have created it.
 */
static bool is_own_file(int fd, struct stat *facts)
{
    return fstat(fd, facts) == 0 && S_ISREG(facts->st_mode) && facts->st_uid == geteuid() &&
           facts->st_nlink == 1;
}

static bool is_readable_page(const struct page *page)
{
    return memcmp(page->magic, MAGIC, sizeof(page->magic)) == 0 && page->n <= SL_HOLDS_MAX &&
           memchr(page->route, '\0', sizeof(page->route));
}

/* The descriptor is closed at once, so that a handler that closes every descriptor does no harm. The mapping
 * keeps the file open, and with it the lock. Forked children inherit neither, so the file is free as soon as
 * this process is gone. */
static enum sl_status map(struct sl_holds *holds, int fd, struct sl_error *error)
{
    struct stat facts;
    if (!is_own_file(fd, &facts))
        return sl_fail(error, SL_FATAL, "NoHoldsFile", "%s: is not this user's own file", holds->path);
    /* Allocate all of it now: if the disk were full later, a store to a page would raise a signal. */
    int failure = posix_fallocate(fd, 0, sizeof(struct page));
    if (failure)
        return sl_fail(error, SL_FATAL, "NoHoldsFile", "%s: %s", holds->path, strerror(failure));
    struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return sl_fail(error, SL_FATAL, "NoHoldsFile", "%s: %s", holds->path, strerror(errno));
    madvise(page, sizeof(*page), MADV_DONTFORK);
    holds->page = page;
    if ((size_t)facts.st_size != sizeof(*page) || !is_readable_page(page)) {
        page->n = page->n_bad = 0;
        memcpy(page->magic, MAGIC, sizeof(page->magic));
    }
    return SL_OK;
}

/* Opens the first file that no living process has. */
static int open_free_file(struct sl_holds *holds, const char *folder, struct sl_error *error)
{
    for (int i = 0; i < MAX_FILES; i++) {
        snprintf(holds->path, sizeof(holds->path), "%s/sluice-%u-held-%d", folder, (unsigned)geteuid(), i);
        int fd = open(holds->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0) {
            sl_fail(error, SL_FATAL, "NoHoldsFile", "%s: %s", holds->path, strerror(errno));
            return -1;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        close(fd);
    }
    sl_fail(error, SL_FATAL, "NoHoldsFile", "%s: %d files are in use", folder, MAX_FILES);
    return -1;
}

enum sl_status sl_holds_open(const char *folder, struct sl_holds **out, struct sl_error *error)
{
    struct sl_holds *holds = calloc(1, sizeof(*holds));
    if (!holds)
        sl_die("out of memory: %zu bytes", sizeof(*holds));
    int fd = open_free_file(holds, folder, error);
    enum sl_status status = fd < 0 ? SL_FATAL : map(holds, fd, error);
    if (fd >= 0)
        close(fd);
    if (status != SL_OK) {
        free(holds);
        holds = NULL;
    }
    *out = holds;
    return status;
}

void sl_holds_close(struct sl_holds *holds)
{
    if (!holds)
        return;
    if (!holds->page->n)
        unlink(holds->path);
    munmap(holds->page, sizeof(*holds->page));
    free(holds);
}

/* ---- what it holds ---- */

size_t sl_holds_left(const struct sl_holds *holds, const char **route, const struct sl_hold_name **names)
{
    *route = holds->page->route;
    *names = holds->page->names;
    return holds->page->n;
}

/* Atomic, so that the compiler keeps the order of stores that nothing in this process reads. */
static void say(struct sl_holds *holds, uint64_t n)
{
    __atomic_store_n(&holds->page->n, n, __ATOMIC_SEQ_CST);
}

void sl_holds_enter(struct sl_holds *holds, const char *route, const struct sl_record *const *records,
                    size_t n)
{
    if (!holds)
        return;
    struct page *page = holds->page;
    size_t named = n < SL_HOLDS_MAX ? n : SL_HOLDS_MAX;
    say(holds, 0);
    put(page->route, sizeof(page->route) - 1, sl_span_str(route));
    for (size_t i = 0; i < named; i++)
        sl_holds_name(records[i], &page->names[i]);
    say(holds, named);
}

void sl_holds_leave(struct sl_holds *holds)
{
    if (holds)
        say(holds, 0);
}

/* ---- what handlers did not return from ---- */

void sl_holds_bad_name(const char *route, const struct sl_record *record, struct sl_hold_bad *out)
{
    put(out->route, sizeof(out->route) - 1, sl_span_str(route));
    out->route[sizeof(out->route) - 1] = '\0';
    sl_holds_name(record, &out->name);
}

size_t sl_holds_all_bad(const struct sl_holds *holds, const struct sl_hold_bad **all)
{
    *all = holds->page->bad;
    return holds->page->n_bad < SL_HOLDS_BAD ? holds->page->n_bad : SL_HOLDS_BAD;
}

void sl_holds_add_bad(struct sl_holds *holds, const struct sl_hold_bad *bad)
{
    const struct sl_hold_bad *all;
    size_t n = holds ? sl_holds_all_bad(holds, &all) : 0;
    for (size_t i = 0; i < n; i++)
        if (memcmp(&all[i], bad, sizeof(*bad)) == 0)
            return;
    if (holds)
        holds->page->bad[holds->page->n_bad++ % SL_HOLDS_BAD] = *bad;
}
