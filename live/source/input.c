/* Reads inputs: the bytes of a file, what is in its gzip, and the records in that. */
#include "live/source/input.h"

#include "base/gzip.h"
#include "data/source/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)

static void free_buffer(void *arg)
{
    sl_buffer_clean_up(arg);
}

/* A buffer that lives as long as the arena. */
static struct sl_buffer *buffer_in(struct sl_arena *arena)
{
    struct sl_buffer *b = sl_arena_alloc(arena, sizeof(*b));
    sl_buffer_init(b, SL_INPUT_BYTES);
    sl_arena_defer(arena, free_buffer, b);
    return b;
}

static enum sl_status read_all(const char *name, int fd, struct sl_buffer *out, struct sl_error *error)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return sl_fail(error, SL_REJECT, "NotAFile", "%s: is a folder; name the files in it", name);
    if (S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size < SL_INPUT_BYTES)
        (void)sl_buffer_reserve(out, (size_t)st.st_size + READ_BYTES);
    for (;;) {
        char *at = sl_buffer_reserve(out, READ_BYTES);
        if (!at)
            return sl_fail(error, SL_REJECT, "TooLarge", "%s: has 4 GiB or more; split it", name);
        ssize_t n = read(fd, at, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be read: %s", name, strerror(errno));
        if (n == 0)
            return SL_OK;
        out->len += (size_t)n;
    }
}

enum sl_status sl_input_load(const char *name, struct sl_arena *arena, struct sl_span *out,
                             struct sl_error *error)
{
    bool is_stdin = strcmp(name, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be opened: %s", name, strerror(errno));
    struct sl_buffer *raw = buffer_in(arena);
    enum sl_status status = read_all(name, fd, raw, error);
    if (!is_stdin)
        close(fd);
    if (status != SL_OK)
        return status;
    *out = sl_buffer_span(raw);
    if (!sl_gzip_is(*out))
        return SL_OK;
    struct sl_buffer *expanded = buffer_in(arena);
    struct sl_error why = SL_NO_ERROR;
    if (sl_gzip_expand(*out, expanded, &why) != SL_OK)
        return sl_fail_at(error, SL_REJECT, why.code, why.offset, "%s: bad gzip at byte %zu: %s", name,
                          why.offset, why.text);
    sl_buffer_clean_up(raw);
    *out = sl_buffer_span(expanded);
    return SL_OK;
}

/* ---- decoding ---- */

/* Decodes input->text into input->batch; the caller has set `name` and `text`. On failure: a line with the
 * name, the byte and the reason ("orders.json: invalid JSON at byte 812: ..."); the batch then holds the good
 * records before the bad one. */
static enum sl_status decode(struct sl_input *input, const struct sl_decode_options *options,
                             struct sl_arena *arena, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    input->batch = (struct sl_batch){0};
    const struct sl_text_from from = {.byte = 0};
    if (sl_batch_decode(input->text, arena, options, &input->batch, &why) != SL_OK)
        return sl_text_explain(input->name, input->text, &from, &why, error);
    return SL_OK;
}

enum sl_status sl_input_read(const char *name, const struct sl_decode_options *options,
                             struct sl_arena *arena, struct sl_input *out, struct sl_error *error)
{
    *out = (struct sl_input){.name = name};
    enum sl_status status = sl_input_load(name, arena, &out->text, error);
    return status == SL_OK ? decode(out, options, arena, error) : status;
}
