/* Queues as lines of JSON: a file, or standard output. */
#include "sinks/lines.h"

#include "base/buffer.h"
#include "base/disk.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/url.h"
#include "sinks/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* All lines of one call are written at once; a call holds an invocation's messages at most. */
#define CALL_BYTES ((size_t)1 << 30)

struct lines_port {
    struct sl_queue_port port;
    int fd;
    bool is_file;
    char *path; /* for messages */
    struct sl_buffer lines;
};

static void add_line(struct sl_buffer *lines, struct sl_span body)
{
    if (body.len && (body.ptr[0] == '{' || body.ptr[0] == '[') && sl_json_check(body, NULL) == SL_OK) {
        size_t start = lines->len;
        sl_buffer_add_span(lines, body);
        /* In JSON a raw line break is never inside a string, so these are between tokens. */
        for (size_t i = start; i < lines->len; i++)
            if (lines->ptr[i] == '\n' || lines->ptr[i] == '\r')
                lines->ptr[i] = ' ';
    } else {
        sl_json_add_string(lines, body);
    }
    sl_buffer_add_char(lines, '\n');
}

/* Where the last whole line ends; -1 and errno when the file cannot be read. */
static off_t whole_end(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char block[4096];
    while (end > 0) {
        size_t n = end < (off_t)sizeof(block) ? (size_t)end : sizeof(block);
        ssize_t got = pread(fd, block, n, end - (off_t)n);
        if (got != (ssize_t)n) {
            errno = got < 0 ? errno : EIO;
            return -1;
        }
        for (size_t i = n; i > 0; i--)
            if (block[i - 1] == '\n')
                return end - (off_t)(n - i);
        end -= (off_t)n;
    }
    return end;
}

static int append(struct lines_port *lines)
{
    while (flock(lines->fd, LOCK_EX) != 0)
        if (errno != EINTR)
            return errno;
    int err = 0;
    off_t end = whole_end(lines->fd);
    if (end < 0 || ftruncate(lines->fd, end) != 0)
        err = errno;
    if (!err)
        err = sl_disk_write(lines->fd, sl_buffer_span(&lines->lines));
    if (!err && fdatasync(lines->fd) != 0)
        err = errno;
    if (err && end >= 0 && ftruncate(lines->fd, end) != 0)
        err = errno; /* the unfinished line stays; the next append cuts it off */
    flock(lines->fd, LOCK_UN);
    return err;
}

static void lines_apply(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    struct lines_port *lines = (struct lines_port *)port;
    sl_buffer_reset(&lines->lines);
    for (size_t i = 0; i < n; i++)
        add_line(&lines->lines, messages[i].body);
    int err = lines->lines.failed ? EFBIG : 0;
    if (!err)
        err = lines->is_file ? append(lines) : sl_disk_write(lines->fd, sl_buffer_span(&lines->lines));
    for (size_t i = 0; i < n; i++) {
        results[i] = (struct sl_result){.status = SL_OK};
        if (err)
            sl_result_fail(&results[i], call->arena, sl_disk_status(err), sl_disk_code(err),
                           "cannot append to %s: %s", lines->path, strerror(err));
    }
}

static void lines_close(struct sl_queue_port *port)
{
    struct lines_port *lines = (struct lines_port *)port;
    if (!lines)
        return;
    if (lines->is_file && lines->fd >= 0)
        close(lines->fd);
    sl_buffer_clean_up(&lines->lines);
    free(lines->path);
    free(lines);
}

static struct lines_port *lines_new(int fd, bool is_file, struct sl_span path)
{
    struct lines_port *lines = calloc(1, sizeof(*lines));
    if (!lines)
        sl_die("out of memory");
    *lines = (struct lines_port){
        .port = {.size = sizeof(lines->port),
                 .max_message_bytes = SIZE_MAX,
                 .apply = lines_apply,
                 .close = lines_close},
        .fd = fd,
        .is_file = is_file,
        .path = strndup(path.ptr, path.len),
    };
    sl_buffer_init(&lines->lines, CALL_BYTES);
    return lines;
}

static enum sl_status parse(struct sl_span text, struct sl_arena *arena, struct sl_url *url,
                            struct sl_error *error)
{
    if (sl_url_parse(text, arena, url, error) != SL_OK)
        return SL_FATAL;
    if (url->has_slashes)
        return sl_fail(error, SL_FATAL, "InvalidTarget",
                       "target %.*s: write it as jsonl:file or stdout:", SL_ARG(text));
    return sl_url_done(url, "none", error);
}

static enum sl_status parse_file(struct sl_span text, struct sl_arena *arena, struct sl_url *url,
                                 struct sl_error *error)
{
    enum sl_status status = parse(text, arena, url, error);
    if (status == SL_OK && url->rest.len == 0)
        status = sl_fail(error, SL_FATAL, "InvalidTarget",
                         "target %.*s: it names no file; write it as jsonl:file", SL_ARG(text));
    return status;
}

static enum sl_status parse_stdout(struct sl_span text, struct sl_arena *arena, struct sl_url *url,
                                   struct sl_error *error)
{
    enum sl_status status = parse(text, arena, url, error);
    if (status == SL_OK && url->rest.len)
        status = sl_fail(error, SL_FATAL, "InvalidTarget",
                         "target %.*s: nothing may follow stdout:", SL_ARG(text));
    return status;
}

enum sl_status sl_jsonl_check(struct sl_span text, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse_file(text, arena, &url, error);
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_stdout_check(struct sl_span text, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse_stdout(text, arena, &url, error);
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_jsonl_open(struct sl_sinks *sinks, struct sl_span text, struct sl_queue_port **out,
                             struct sl_error *error)
{
    (void)sinks;
    struct sl_arena *arena = sl_arena_new(1024);
    struct sl_url url;
    enum sl_status status = parse_file(text, arena, &url, error);
    const char *path = sl_arena_copy(arena, url.rest);
    if (status == SL_OK)
        status = sl_disk_make_parent(path, error);
    if (status == SL_OK) {
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0)
            status =
                sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot open %s: %s", path, strerror(errno));
        else
            *out = &lines_new(fd, true, sl_span_str(path))->port;
    }
    sl_arena_destroy(arena);
    return status;
}

enum sl_status sl_stdout_open(struct sl_sinks *sinks, struct sl_span text, struct sl_queue_port **out,
                              struct sl_error *error)
{
    (void)sinks;
    enum sl_status status = sl_stdout_check(text, error);
    if (status == SL_OK)
        *out = &lines_new(STDOUT_FILENO, false, SL_LIT("standard output"))->port;
    return status;
}
