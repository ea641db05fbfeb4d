/* Reads files and standard input in blocks. */
#include "data/source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_reader {
    struct sl_reader reader;
    int fd;
    char block[SL_READER_BYTES];
};

/* A pipe gives less at a time than a block has; only its end gives nothing. */
static enum sl_status next(struct sl_reader *r, const struct sl_call *call, struct sl_span *out,
                           struct sl_error *error)
{
    (void)call;
    struct file_reader *file = (struct file_reader *)r;
    size_t len = 0;
    while (len < SL_READER_BYTES) {
        ssize_t n = read(file->fd, file->block + len, SL_READER_BYTES - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sl_fail(error, SL_REJECT, "CannotRead", "cannot be read: %s", strerror(errno));
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *out = sl_span(file->block, len);
    return SL_OK;
}

static void close_file(struct sl_reader *r)
{
    struct file_reader *file = (struct file_reader *)r;
    if (file->fd != STDIN_FILENO)
        close(file->fd);
    free(file);
}

/* Takes ownership of the descriptor, unless it is standard input's. */
static struct sl_reader *reader_of(int fd)
{
    struct file_reader *file = malloc(sizeof(*file));
    struct stat st;
    if (!file)
        sl_die("out of memory: a block of a file");
    file->reader = (struct sl_reader){.next = next, .close = close_file};
    file->fd = fd;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        file->reader.bytes = (uint64_t)st.st_size;
    return &file->reader;
}

enum sl_status sl_reader_open(const char *name, struct sl_reader **out, struct sl_error *error)
{
    struct stat st;
    int fd = strcmp(name, "-") == 0 ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be opened: %s", name, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (fd != STDIN_FILENO)
            close(fd);
        return sl_fail(error, SL_REJECT, "NotAFile", "%s: is a folder; name the files in it", name);
    }
    *out = reader_of(fd);
    return SL_OK;
}

enum sl_status sl_reader_open_again(int fd, const char *name, struct sl_reader **out, struct sl_error *error)
{
    int own = lseek(fd, 0, SEEK_SET) == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (own < 0)
        return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be read again: %s", name, strerror(errno));
    *out = reader_of(own);
    return SL_OK;
}

/* ---- texts ---- */

struct text_reader {
    struct sl_reader reader;
    char *owned;
    struct sl_span rest;
};

static enum sl_status next_of_text(struct sl_reader *r, const struct sl_call *call, struct sl_span *out,
                                   struct sl_error *error)
{
    struct text_reader *t = (struct text_reader *)r;
    (void)call;
    (void)error;
    size_t n = t->rest.len < SL_READER_BYTES ? t->rest.len : SL_READER_BYTES;
    *out = sl_span(t->rest.ptr, n);
    t->rest = sl_span_from(t->rest, n);
    return SL_OK;
}

static void close_text(struct sl_reader *r)
{
    free(((struct text_reader *)r)->owned);
    free(r);
}

struct sl_reader *sl_reader_of_text(struct sl_span text, char *owned)
{
    struct text_reader *t = calloc(1, sizeof(*t));
    if (!t)
        sl_die("out of memory: a text's reader");
    t->reader = (struct sl_reader){.next = next_of_text, .close = close_text, .bytes = text.len};
    t->owned = owned;
    t->rest = text;
    return &t->reader;
}

void sl_reader_close(struct sl_reader *r)
{
    if (r)
        r->close(r);
}
