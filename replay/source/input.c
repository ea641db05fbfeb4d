/* Reads inputs: the bytes of a file, what is in its gzip, and the records in that. */
#include "replay/source/input.h"

#include "base/gzip.h"
#include "base/json.h"

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

/* ---- what is wrong, and where ---- */

static struct sl_span line_at(struct sl_span text, size_t from)
{
    const char *end = memchr(text.ptr + from, '\n', text.len - from);
    return sl_span(text.ptr + from, end ? (size_t)(end - text.ptr) - from : text.len - from);
}

static bool is_json(struct sl_span line)
{
    struct sl_error unused = SL_NO_ERROR;
    return sl_json_check(line, &unused) == SL_OK;
}

static bool is_blank(struct sl_span line)
{
    return sl_json_space(line.ptr, line.ptr + line.len) == line.ptr + line.len;
}

/* Moves `*from` to the next line that is not blank, and counts it. False: there is none. */
static bool next_line(struct sl_span text, size_t *from, size_t *number, struct sl_span *line)
{
    do {
        *from = *number ? *from + line->len + 1 : 0;
        if (*from >= text.len)
            return false;
        *line = line_at(text, *from);
        (*number)++;
    } while (is_blank(*line));
    return true;
}

/* Text that is not JSON is mostly noticed after the line that was cut. In a file of one record a line, that
 * line is the first one that is not JSON by itself. `*from` becomes its first byte, `*number` its number.
 * False: there is none up to the byte `offset`, or no line beside it is JSON, so that records have several
 * lines. */
static bool find_bad_line(struct sl_span text, size_t offset, size_t *from, size_t *number)
{
    struct sl_span line = {NULL, 0};
    size_t n_good = 0;
    *from = *number = 0;
    while (next_line(text, from, number, &line) && *from <= offset) {
        if (is_json(line)) {
            n_good++;
            continue;
        }
        size_t after = *from, n = *number;
        return n_good || (next_line(text, &after, &n, &line) && is_json(line));
    }
    return false;
}

static size_t line_number(struct sl_span text, size_t offset)
{
    size_t number = 1;
    for (size_t i = 0; i < offset && i < text.len; i++)
        number += text.ptr[i] == '\n';
    return number;
}

enum sl_status sl_input_explain(const char *name, struct sl_span text, const struct sl_error *why,
                                struct sl_error *error)
{
    struct sl_error own = *why;
    bool is_syntax = strcmp(why->code, "InvalidJson") == 0;
    char line[32] = "", where[64] = "";
    size_t from, number;
    struct sl_error of_line = SL_NO_ERROR;
    if (is_syntax && find_bad_line(text, why->offset, &from, &number) &&
        sl_json_check(line_at(text, from), &of_line) != SL_OK) {
        own = of_line;
        own.offset += from;
    } else {
        number = line_number(text, why->offset);
    }
    bool has_lines = line_at(text, 0).len + 1 < text.len;
    if (has_lines)
        snprintf(line, sizeof(line), "line %zu: ", number);
    if (is_syntax)
        snprintf(where, sizeof(where), "invalid JSON at byte %zu: ", own.offset);
    else if (strcmp(why->code, "NotAStreamEvent") == 0)
        snprintf(where, sizeof(where), "not a stream event: ");
    return sl_fail_at(error, SL_REJECT, why->code, own.offset, "%s: %s%s%s", name, line, where, own.text);
}

enum sl_status sl_input_decode(struct sl_input *input, const struct sl_decode_options *options,
                               struct sl_arena *arena, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    input->batch = (struct sl_batch){0};
    if (sl_batch_decode(input->text, arena, options, &input->batch, &why) != SL_OK)
        return sl_input_explain(input->name, input->text, &why, error);
    return SL_OK;
}

enum sl_status sl_input_read(const char *name, const struct sl_decode_options *options,
                             struct sl_arena *arena, struct sl_input *out, struct sl_error *error)
{
    *out = (struct sl_input){.name = name};
    enum sl_status status = sl_input_load(name, arena, &out->text, error);
    return status == SL_OK ? sl_input_decode(out, options, arena, error) : status;
}
