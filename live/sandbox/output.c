/* Takes the lines that functions write, and counts those that are repeated. */
#include "live/sandbox/output.h"

#include "base/error.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_BYTES 512 /* of a repeated line, beside its count */

struct seen {
    uint64_t hash; /* of the masked line */
    uint64_t n;
    char *shown; /* the beginning of the first one */
};

struct sl_output {
    const char *path;
    FILE *file;  /* NULL: standard error */
    int failure; /* of the file: the first write's error */
    struct seen seen[SL_OUTPUT_LINES];
    size_t n;
};

/* ---- what differs at every invocation ---- */

/* '0' stands for a decimal digit, 'x' for a hexadecimal one, 'T' for a T or a space. */
static bool has_form(const char *p, size_t left, const char *form)
{
    for (size_t i = 0; form[i]; i++) {
        if (i == left)
            return false;
        char c = p[i];
        bool is_digit = c >= '0' && c <= '9', is_hex = is_digit || ((c | 32) >= 'a' && (c | 32) <= 'f');
        bool fits = form[i] == '0'   ? is_digit
                    : form[i] == 'x' ? is_hex
                    : form[i] == 'T' ? c == 'T' || c == ' '
                                     : c == form[i];
        if (!fits)
            return false;
    }
    return true;
}

/* The length of the request id, or of the time with its fraction, that begins here; 0: none does. */
static size_t changing(const char *p, size_t left)
{
    static const char id[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", time[] = "0000-00-00T00:00:00";
    if (has_form(p, left, id))
        return sizeof(id) - 1;
    if (!has_form(p, left, time))
        return 0;
    size_t n = sizeof(time) - 1;
    if (n < left && (p[n] == '.' || p[n] == ','))
        for (n++; n < left && p[n] >= '0' && p[n] <= '9'; n++) {
        }
    return n;
}

uint64_t sl_output_hash(struct sl_span line)
{
    uint64_t parts[2] = {0, 0}; /* of what came before, and of the next piece */
    for (size_t i = 0, from = 0; i <= line.len; i++) {
        size_t skipped = i < line.len ? changing(line.ptr + i, line.len - i) : 0;
        if (!skipped && i < line.len)
            continue;
        parts[1] = sl_hash(sl_span(line.ptr + from, i - from));
        parts[0] = sl_hash(sl_span((const char *)parts, sizeof(parts)));
        from = i + skipped;
        i = skipped ? from - 1 : i;
    }
    return parts[0];
}

/* ---- lines ---- */

/* NULL: there is no room to remember it. */
static struct seen *find(struct sl_output *o, struct sl_span line)
{
    uint64_t hash = sl_output_hash(line);
    for (size_t i = 0; i < o->n; i++)
        if (o->seen[i].hash == hash)
            return &o->seen[i];
    if (o->n == SL_OUTPUT_LINES)
        return NULL;
    struct seen *one = &o->seen[o->n++];
    size_t len = line.len < SHOWN_BYTES ? line.len : SHOWN_BYTES;
    while (len < line.len && len && (line.ptr[len] & 0xC0) == 0x80)
        len--; /* not within a character */
    *one = (struct seen){.hash = hash, .shown = strndup(line.ptr, len)};
    if (!one->shown)
        sl_die("out of memory: a line of the function's log");
    return one;
}

static bool write_line(FILE *file, struct sl_span line)
{
    return fwrite(line.ptr, 1, line.len, file) == line.len && fputc('\n', file) != EOF;
}

void sl_output_line(struct sl_output *o, struct sl_span line)
{
    if (o->file) {
        if (!write_line(o->file, line) && !o->failure)
            o->failure = errno;
        return;
    }
    struct seen *one = find(o, line);
    if (!one || one->n++ == 0)
        (void)write_line(stderr, line);
}

/* "1,445" */
static void write_count(uint64_t n, FILE *file)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            fputc(',', file);
        fputc(digits[i], file);
    }
}

static void write_counts(const struct sl_output *o)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->seen[i].n < 2)
            continue;
        fputs("\xC3\x97 ", stderr);
        write_count(o->seen[i].n, stderr);
        fprintf(stderr, "  %s\n", o->seen[i].shown);
    }
}

enum sl_status sl_output_open(const char *path, struct sl_output **out, struct sl_error *error)
{
    struct sl_output *o = calloc(1, sizeof(*o));
    if (!o)
        sl_die("out of memory: the function's log");
    o->path = path;
    o->file = path ? fopen(path, "we") : NULL;
    *out = o;
    if (path && !o->file)
        return sl_fail(error, SL_REJECT, "CannotWrite", "--log %s: cannot be written: %s", path,
                       strerror(errno));
    return SL_OK;
}

bool sl_output_settle(struct sl_output *o)
{
    if (!o)
        return true;
    write_counts(o);
    for (size_t i = 0; i < o->n; i++)
        free(o->seen[i].shown);
    o->n = 0;
    if (o->file && fflush(o->file) != 0 && !o->failure)
        o->failure = errno;
    if (o->failure)
        fprintf(stderr, "sluice: --log %s is incomplete: %s\n", o->path, strerror(o->failure));
    return !o->failure;
}

bool sl_output_close(struct sl_output *o)
{
    bool is_written = sl_output_settle(o);
    if (o && o->file)
        fclose(o->file); /* flushed */
    free(o);
    return is_written;
}

/* ---- the stream of a process ---- */

bool sl_output_pipe_open(struct sl_output_pipe *p, int *write_fd)
{
    int ends[2];
    *p = (struct sl_output_pipe){.fd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    p->fd = ends[0];
    *write_fd = ends[1];
    p->line = malloc(SL_OUTPUT_LINE_BYTES);
    if (!p->line)
        sl_die("out of memory: a line of the function's log");
    return true;
}

static void take_lines(struct sl_output_pipe *p, struct sl_output *output)
{
    char *from = p->line, *end = p->line + p->len, *newline;
    for (; (newline = memchr(from, '\n', (size_t)(end - from))); from = newline + 1)
        sl_output_line(output, sl_span(from, (size_t)(newline - from)));
    p->len = (size_t)(end - from);
    memmove(p->line, from, p->len);
    if (p->len == SL_OUTPUT_LINE_BYTES) {
        sl_output_line(output, sl_span(p->line, p->len));
        p->len = 0;
    }
}

void sl_output_pipe_read(struct sl_output_pipe *p, struct sl_output *output)
{
    while (p->fd >= 0) {
        ssize_t n = read(p->fd, p->line + p->len, SL_OUTPUT_LINE_BYTES - p->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        if (n == 0) { /* nobody can write to it any more */
            close(p->fd);
            p->fd = -1;
            return;
        }
        p->len += (size_t)n;
        take_lines(p, output);
    }
}

void sl_output_pipe_close(struct sl_output_pipe *p, struct sl_output *output)
{
    sl_output_pipe_read(p, output);
    if (p->fd >= 0)
        close(p->fd);
    if (p->len)
        sl_output_line(output, sl_span(p->line, p->len));
    free(p->line);
    *p = (struct sl_output_pipe){.fd = -1};
}
