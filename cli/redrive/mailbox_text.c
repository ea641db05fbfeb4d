/* Mail of a file or of standard input: each JSON value is a message. The text may have any length; a value is
 * held whole. */
#include "base/buffer.h"
#include "base/gzip.h"
#include "base/json.h"
#include "cli/redrive/mailbox.h"
#include "data/source/reader.h"

#include <stdlib.h>
#include <string.h>

/* An array or an answer of the AWS CLI is one value; it takes about twice as much memory. */
#define VALUE_BYTES ((size_t)256 * 1024 * 1024)
#define PIECE_BYTES ((size_t)256 * 1024)

struct text {
    struct sl_mailbox box;
    const struct sl_mailbox_options *options;
    struct sl_reader *reader;
    struct sl_inflater *inflater; /* NULL: plain */
    struct sl_span raw;           /* read, not yet unpacked */
    bool is_begun, is_read;       /* all was read, and is in the window */
    struct sl_buffer window;      /* from `at` on: not yet handed out */
    size_t at;
    uint64_t line; /* of `at`, from 1 */
};

/* ---- bytes ---- */

static enum sl_status fill_raw(struct text *t, struct sl_error *error)
{
    const struct sl_call call = {.deadline_ms = INT64_MAX};
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = t->reader->next(t->reader, &call, &t->raw, &why);
    if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s: %s", t->box.name, why.text);
    t->is_read = t->raw.len == 0;
    if (!t->is_begun && sl_gzip_is(t->raw))
        t->inflater = sl_inflater_new();
    t->is_begun = true;
    return SL_OK;
}

/* More of the text, behind what is in the window. */
static enum sl_status fill(struct text *t, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = SL_OK;
    memmove(t->window.ptr ? t->window.ptr : "", t->window.ptr ? t->window.ptr + t->at : "",
            t->window.len - t->at);
    t->window.len -= t->at;
    t->at = 0;
    size_t before = t->window.len;
    while (status == SL_OK && !t->is_read && t->window.len - before < PIECE_BYTES && !t->window.failed) {
        if (!t->raw.len && (status = fill_raw(t, error)) != SL_OK)
            return status;
        if (t->inflater && t->is_read)
            status = sl_inflater_end(t->inflater, &why);
        else if (t->inflater)
            status = sl_inflater_add(t->inflater, &t->raw, PIECE_BYTES, &t->window, &why);
        else
            sl_buffer_add_span(&t->window, t->raw), t->raw.len = 0;
    }
    if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s: bad gzip: %s", t->box.name, why.text);
    if (t->window.failed)
        return sl_fail(error, SL_REJECT, "TooLarge", "%s: one JSON value has more than %zu bytes; split it",
                       t->box.name, VALUE_BYTES);
    return SL_OK;
}

/* ---- values ---- */

static void skip_space(struct text *t)
{
    for (; t->at < t->window.len; t->at++) {
        char c = t->window.ptr[t->at];
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return;
        t->line += c == '\n';
    }
}

/* Where the value at `at` ends; 0: it goes on behind the window, or is not JSON. Then `*bad` is where. */
static size_t end_of_value(const struct text *t, size_t *bad)
{
    struct sl_json_scan scan = {.end = t->window.ptr + t->window.len};
    const char *end = sl_json_value(&scan, t->window.ptr + t->at);
    *bad = end ? 0 : (size_t)(scan.at - t->window.ptr);
    return end ? (size_t)(end - t->window.ptr) : 0;
}

/* What is not JSON: its line, when the fault is in it; else all that is left, because a value of several
 * lines cannot be told from what follows it. */
static size_t end_of_bad(const struct text *t, size_t bad)
{
    const char *newline = memchr(t->window.ptr + t->at, '\n', t->window.len - t->at);
    size_t line = newline ? (size_t)(newline - t->window.ptr) : t->window.len;
    return bad <= line ? line : t->window.len;
}

/* The end of the next value, good or bad; 0: there is none. A value that reaches the window's end may go on.
 */
static enum sl_status find_value(struct text *t, size_t *end, struct sl_error *error)
{
    size_t bad;
    enum sl_status status = SL_OK;
    for (*end = 0; status == SL_OK && *end == 0;) {
        skip_space(t);
        bool is_empty = t->at == t->window.len;
        if (is_empty && t->is_read)
            return SL_OK;
        size_t good = is_empty ? 0 : end_of_value(t, &bad);
        if (good && (good < t->window.len || t->is_read))
            *end = good;
        else if (!is_empty && !good && (bad < t->window.len || t->is_read))
            *end = end_of_bad(t, bad);
        else
            status = fill(t, error);
    }
    return status;
}

static enum sl_status next(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *out,
                           struct sl_error *error)
{
    struct text *t = (struct text *)box;
    enum sl_status status = SL_OK;
    size_t end, bytes = 0;
    while (!*t->options->stop && out->n < SL_MAIL_PAGE && bytes < SL_MAIL_PAGE_BYTES) {
        status = find_value(t, &end, error);
        out->is_last = status == SL_OK && end == 0;
        if (status != SL_OK || end == 0)
            break;
        struct sl_span value = sl_span(t->window.ptr + t->at, end - t->at);
        struct sl_mail *mail = sl_mailbox_add(out, arena);
        mail->id = sl_arena_printf(arena, "%s:%llu", box->name, (unsigned long long)t->line);
        mail->is_line = true;
        mail->body = sl_span(sl_arena_copy(arena, value), value.len);
        for (const char *p = value.ptr; (p = memchr(p, '\n', (size_t)(value.ptr + value.len - p))); p++)
            t->line++;
        t->at = end;
        bytes += value.len;
    }
    return status;
}

/* ---- the box ---- */

static void settle(struct sl_mailbox *box, struct sl_arena *arena, struct sl_mail_page *page, bool removes)
{
    (void)box;
    (void)arena;
    (void)page;
    (void)removes;
}

static void close_box(struct sl_mailbox *box)
{
    struct text *t = (struct text *)box;
    sl_reader_close(t->reader);
    sl_inflater_destroy(t->inflater);
    sl_buffer_clean_up(&t->window);
    free(t);
}

enum sl_status sl_mailbox_text(const struct sl_mailbox_options *options, const char *name,
                               struct sl_mailbox **out, struct sl_error *error)
{
    struct text *t = calloc(1, sizeof(*t));
    if (!t)
        sl_die("out of memory: a file of messages");
    *t = (struct text){.options = options,
                       .line = 1,
                       .box = {.name = name,
                               .next = next,
                               .settle = settle,
                               .keep = sl_mailbox_keep_nothing,
                               .finish = sl_mailbox_finish_nothing,
                               .close = close_box}};
    sl_buffer_init(&t->window, VALUE_BYTES);
    if (sl_reader_open(name, &t->reader, error) != SL_OK) {
        t->reader = NULL;
        close_box(&t->box);
        return SL_REJECT;
    }
    *out = &t->box;
    return SL_OK;
}
