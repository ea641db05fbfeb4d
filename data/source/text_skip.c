/* Goes on after text that was refused: behind a record that is JSON, or behind a line. */
#include "base/json.h"
#include "data/source/text_private.h"

/* Looked at and decoded at a time after a failure, so that many bad lines cost no more than good ones. */
#define AFTER_BYTES ((size_t)64 * 1024)

/* The first `n` bytes of the window are gone. */
static void drop(struct sl_text *t, size_t n)
{
    t->from.line += sl_text_count_newlines(sl_span(t->window.ptr, n));
    t->from.byte += n;
    memmove(t->window.ptr, t->window.ptr + n, t->window.len - n);
    t->window.len -= n;
}

/* The window keeps so much as is looked at; the rest is read again. */
static void shorten(struct sl_text *t, size_t from)
{
    struct sl_buffer kept;
    size_t to = from + AFTER_BYTES;
    if (t->window.len <= to)
        return;
    sl_buffer_init(&kept, t->window.max);
    sl_buffer_add(&kept, t->window.ptr + to, t->window.len - to);
    if (t->kept.len)
        sl_buffer_add(&kept, t->kept.ptr + t->kept_from, t->kept.len - t->kept_from);
    sl_buffer_clean_up(&t->kept);
    t->kept = kept;
    t->kept_from = 0;
    t->window.len = to;
    t->is_drained = false;
}

static size_t spaces(struct sl_span text)
{
    return text.len ? (size_t)(sl_json_space(text.ptr, sl_span_end(text)) - text.ptr) : 0;
}

/* The good records before the bad one, and the whitespace. */
static void drop_good(struct sl_text *t)
{
    struct sl_span rest = sl_buffer_span(&t->window);
    rest = sl_span_from(rest, spaces(rest));
    for (size_t i = 0; i < t->n_before; i++) {
        rest = sl_span_from(rest, (size_t)(sl_json_value_end(rest.ptr, sl_span_end(rest)) - rest.ptr));
        rest = sl_span_from(rest, spaces(rest));
    }
    t->from.record += t->n_before;
    drop(t, t->window.len - rest.len);
}

/* The bytes of the object or array at the beginning of the window; 0: there is none that is JSON. */
static size_t json_bytes(const struct sl_text *t)
{
    struct sl_json_scan scan = {.end = t->window.ptr + t->window.len};
    bool is_container = t->window.len && (t->window.ptr[0] == '{' || t->window.ptr[0] == '[');
    const char *next = is_container ? sl_json_value(&scan, t->window.ptr) : NULL;
    return next ? (size_t)(next - t->window.ptr) : 0;
}

/* A line, of whatever length, with its newline. */
static enum sl_status drop_line(struct sl_text *t, const struct sl_call *call, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    for (;;) {
        const char *newline = t->window.len ? memchr(t->window.ptr, '\n', t->window.len) : NULL;
        drop(t, newline ? (size_t)(newline + 1 - t->window.ptr) : t->window.len);
        if (newline || t->is_drained || status != SL_OK)
            return status;
        status = sl_text_fill(t, SL_READER_BYTES, call, error);
    }
}

/* Whether it is an object, or the beginning of one that the window cuts. */
static bool may_be_record(struct sl_span line, bool is_cut)
{
    struct sl_error why = SL_NO_ERROR;
    return *line.ptr == '{' && (sl_json_check(line, &why) == SL_OK || (is_cut && why.offset == line.len));
}

/* Whether the line at the beginning of the window belongs to the bad one before it: it is indented, or begins
 * with a closing bracket, and is no record by itself. */
static bool is_continued(const struct sl_text *t)
{
    struct sl_span text = sl_buffer_span(&t->window);
    if (!text.len || !memchr(" \t}]", text.ptr[0], 4))
        return false;
    const char *newline = memchr(text.ptr, '\n', text.len);
    struct sl_span line = newline ? sl_span(text.ptr, (size_t)(newline - text.ptr)) : text;
    line = sl_span_from(line, spaces(line));
    return line.len && !may_be_record(line, !newline && !t->is_drained);
}

static enum sl_status drop_lines(struct sl_text *t, const struct sl_call *call, struct sl_error *error)
{
    enum sl_status status = drop_line(t, call, error);
    for (;;) {
        if (status == SL_OK && t->window.len < AFTER_BYTES)
            status = sl_text_fill(t, AFTER_BYTES, call, error);
        if (status != SL_OK || !is_continued(t))
            return status;
        status = drop_line(t, call, error);
    }
}

enum sl_status sl_text_skip_bad(struct sl_text *t, const struct sl_call *call, bool *goes_on,
                                struct sl_error *error)
{
    *goes_on = t->may_skip;
    if (!t->may_skip)
        return SL_OK;
    drop_good(t);
    size_t n = json_bytes(t);
    shorten(t, n);
    t->hint = AFTER_BYTES;
    t->may_skip = false;
    t->from.record++;
    if (n == 0)
        return drop_lines(t, call, error);
    drop(t, n);
    return SL_OK;
}
