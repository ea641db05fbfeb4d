/* Unpacks a text, cuts it between records, and decodes what was cut off. */
#include "work/source/text.h"

#include "streams/record.h"
#include "work/source/source.h"

#include <stdio.h>
#include <stdlib.h>

/* Unpacked at a time while a text is only scanned. */
#define SCAN_BYTES ((size_t)256 * 1024)
/* Read after text that was refused. */
#define AFTER_BYTES ((size_t)64 * 1024)

void sl_text_open(struct sl_text *t, const struct sl_text_options *options, struct sl_reader *reader)
{
    *t = (struct sl_text){.options = *options, .reader = reader, .last = '\n', .from = options->skip};
    sl_buffer_init(&t->window, SIZE_MAX / 4);
    if (!options->wants_md5)
        return;
    t->md5 = EVP_MD_CTX_new();
    if (!t->md5 || EVP_DigestInit_ex(t->md5, EVP_md5(), NULL) != 1)
        sl_die("OpenSSL has no MD5 here, which the manifests of exports need");
}

void sl_text_close(struct sl_text *t)
{
    sl_reader_close(t->reader);
    sl_inflater_destroy(t->inflater);
    EVP_MD_CTX_free(t->md5);
    sl_buffer_clean_up(&t->window);
    *t = (struct sl_text){.is_at_end = true};
}

void sl_text_md5(struct sl_text *t, unsigned char out[SL_MD5_BYTES])
{
    EVP_DigestFinal_ex(t->md5, out, NULL);
}

/* ---- unpacking ---- */

static bool is_late(const struct sl_text *t, const struct sl_call *call)
{
    return t->options.clock->now_ms(t->options.clock) >= call->deadline_ms;
}

static enum sl_status read_raw(struct sl_text *t, const struct sl_call *call, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = t->reader->next(t->reader, call, &t->raw, &why);
    if (status == SL_RETRY && is_late(t, call)) {
        t->raw = sl_span(NULL, 0); /* what did not come in time is asked for again */
        return SL_OK;
    }
    if (status != SL_OK)
        return sl_fail(error, status, why.code, "%s: %s", t->options.name, why.text);
    t->is_read = t->raw.len == 0;
    t->stored_bytes += t->raw.len;
    if (t->md5 && t->raw.len)
        EVP_DigestUpdate(t->md5, t->raw.ptr, t->raw.len);
    if (!t->is_begun && sl_gzip_is(t->raw))
        t->inflater = sl_inflater_new();
    t->is_begun = true;
    return SL_OK;
}

static enum sl_status bad_gzip(struct sl_text *t, const struct sl_error *why, struct sl_error *error)
{
    return sl_fail_at(error, SL_REJECT, why->code, why->offset, "%s: bad gzip at byte %zu: %s",
                      t->options.name, why->offset, why->text);
}

/* Text that was handed out before the text was opened again is dropped. */
static void skip(struct sl_text *t)
{
    uint64_t left = t->options.skip.byte - t->n_skipped;
    size_t n = left < t->window.len ? (size_t)left : t->window.len;
    if (n == 0)
        return;
    memmove(t->window.ptr, t->window.ptr + n, t->window.len - n);
    t->window.len -= n;
    t->n_skipped += n;
}

/* Moves some of what was read into the window, which then has at most `want` bytes. */
static enum sl_status unpack(struct sl_text *t, size_t want, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    size_t room = want - t->window.len;
    if (!t->inflater) {
        size_t n = t->raw.len < room ? t->raw.len : room;
        sl_buffer_add(&t->window, t->raw.ptr, n);
        t->raw = sl_span_from(t->raw, n);
    } else if (sl_inflater_add(t->inflater, &t->raw, room, &t->window, &why) != SL_OK) {
        return bad_gzip(t, &why, error);
    }
    skip(t);
    return SL_OK;
}

static enum sl_status end_of_text(struct sl_text *t, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    t->is_drained = true;
    if (t->inflater && sl_inflater_end(t->inflater, &why) != SL_OK)
        return bad_gzip(t, &why, error);
    if (t->n_skipped < t->options.skip.byte)
        return sl_fail(
            error, SL_REJECT, "WrongPlace",
            "%s: ends before the place at which it is to go on; it is another text than the one that "
            "was begun",
            t->options.name);
    return SL_OK;
}

/* Until the window has `want` bytes, all is in it (is_drained), or the deadline comes. */
static enum sl_status fill(struct sl_text *t, size_t want, const struct sl_call *call, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    while (status == SL_OK && t->window.len < want && !t->is_drained && !is_late(t, call)) {
        size_t raw = t->raw.len;
        uint64_t unpacked = t->n_skipped + t->window.len;
        status = unpack(t, want, error);
        if (status != SL_OK || t->raw.len < raw || t->n_skipped + t->window.len > unpacked)
            continue;
        status = t->is_read ? end_of_text(t, error) : read_raw(t, call, error);
    }
    return status;
}

/* ---- cutting and decoding ---- */

static enum sl_status too_long(const struct sl_text *t, bool is_line, size_t most, struct sl_error *error)
{
    if (is_line)
        return sl_fail_at(
            error, SL_REJECT, "TooLarge", t->from.byte,
            "%s: record %llu, at byte %llu, has more than %zu MB of text; no record of DynamoDB "
            "is so long",
            t->options.name, (unsigned long long)t->from.record, (unsigned long long)t->from.byte,
            most >> 20);
    return sl_fail(error, SL_REJECT, "TooLarge",
                   "%s: is one JSON text of more than %zu MB; write one record a line (jq -c '.Records[]')",
                   t->options.name, most >> 20);
}

/* The byte of the payload after record `i`; 0: not known, because it is a view of something else. */
static size_t end_of(const struct sl_batch *batch, size_t i)
{
    struct sl_span raw = sl_record_text(sl_batch_record(batch, i), SL_FIELD_RAW), all = batch->payload;
    bool is_within = raw.ptr >= all.ptr && raw.ptr < sl_span_end(all);
    return is_within ? (size_t)(raw.ptr + raw.len - all.ptr) : 0;
}

/* A piece of very many small records is cut short, and the next ones are made smaller. */
static size_t limit_records(struct sl_text *t, struct sl_batch *batch, size_t cut)
{
    size_t end = batch->shape == SL_SHAPE_LINES && batch->n > SL_TEXT_PIECE_RECORDS
                     ? end_of(batch, SL_TEXT_PIECE_RECORDS - 1)
                     : 0;
    t->hint = end ? end + end / 8 : t->hint < SIZE_MAX / 4 ? 2 * t->hint : t->hint;
    if (!end)
        return cut;
    batch->n = SL_TEXT_PIECE_RECORDS;
    return end;
}

static uint64_t count_newlines(struct sl_span text)
{
    uint64_t n = 0;
    const char *p = text.ptr, *end = p + text.len;
    while (p && (p = memchr(p, '\n', (size_t)(end - p)))) {
        n++;
        p++;
    }
    return n;
}

/* The window's first `n` bytes, which a batch is a view of, become the arena's; the rest is copied. */
static void hand_out(struct sl_text *t, size_t n, const struct sl_batch *batch, struct sl_arena *arena)
{
    struct sl_buffer rest;
    t->from.line += count_newlines(sl_span(t->window.ptr, n));
    sl_buffer_init(&rest, t->window.max);
    sl_buffer_add(&rest, t->window.ptr + n, t->window.len - n);
    sl_arena_defer(arena, free, t->window.ptr);
    t->window = rest;
    t->from.byte += n;
    t->from.record += batch->n;
    t->is_at_end = t->is_drained && rest.len == 0;
}

/* What a look at the window's first `cut` bytes led to. */
enum look { LOOK_DONE, LOOK_FAILED, LOOK_MORE };

/* What follows helps to tell which line is wrong. Without `call` nothing is read: the window stays where it
 * is, because records are views of it. */
static void explain(struct sl_text *t, const struct sl_call *call, const struct sl_error *why,
                    struct sl_error *error)
{
    struct sl_error unused = SL_NO_ERROR;
    if (call)
        (void)!fill(t, t->window.len + AFTER_BYTES, call, &unused);
    sl_text_explain(t->options.name, sl_span(t->window.len ? t->window.ptr : "", t->window.len), &t->from,
                    why, error);
}

static enum look decode(struct sl_text *t, size_t cut, const struct sl_call *call, struct sl_batch *out,
                        struct sl_error *error)
{
    struct sl_arena *arena = call->arena;
    const struct sl_decode_options options = {
        .ttl_attribute = t->options.ttl_attribute, .any_shape = true, .lines_before = t->from.record};
    struct sl_error why = SL_NO_ERROR;
    struct sl_span text = sl_span(cut ? t->window.ptr : "", cut);
    enum sl_status status = sl_batch_decode(text, arena, &options, out, &why);
    bool is_lines = out->shape == SL_SHAPE_LINES;
    if (status == SL_OK && (is_lines || t->is_drained)) {
        hand_out(t, limit_records(t, out, cut), out, arena);
        return LOOK_DONE;
    }
    /* Good records go first: what is wrong then stands at the beginning of the next piece. */
    size_t end = is_lines && out->n ? end_of(out, out->n - 1) : 0;
    if (end) {
        out->source_arn = sl_record_text(sl_batch_record(out, 0), SL_FIELD_SOURCE_ARN);
        hand_out(t, end, out, arena);
        return LOOK_DONE;
    }
    bool is_short = status == SL_OK || (strcmp(why.code, "InvalidJson") == 0 && why.offset == cut);
    if (!t->is_drained && is_short)
        return LOOK_MORE;
    explain(t, out->n ? NULL : call, &why, error);
    return LOOK_FAILED;
}

/* Where the window is cut: after its last line; 0: there is none. */
static size_t cut_of(const struct sl_text *t)
{
    if (t->is_drained)
        return t->window.len;
    const char *last = t->window.len ? memrchr(t->window.ptr, '\n', t->window.len) : NULL;
    return last ? (size_t)(last + 1 - t->window.ptr) : 0;
}

static size_t first_want(const struct sl_text *t, size_t max_bytes)
{
    size_t want = max_bytes ? max_bytes : 1;
    return t->hint && t->hint < want ? t->hint : want;
}

enum sl_status sl_text_pull(struct sl_text *t, size_t max_bytes, const struct sl_call *call,
                            struct sl_batch *out, struct sl_error *error)
{
    bool may_be_document = t->from.record == 0 && t->options.document_bytes;
    size_t most = may_be_document ? t->options.document_bytes : SL_SOURCE_RECORD_BYTES;
    for (size_t want = first_want(t, max_bytes);; want = want <= most / 2 ? 2 * want : most + 1) {
        /* The look before may have left records of half a document: views of a window that moves now. */
        *out = (struct sl_batch){.arena = call->arena, .shape = SL_SHAPE_LINES};
        enum sl_status status = fill(t, want, call, error);
        bool is_late = !t->is_drained && t->window.len < want;
        if (status != SL_OK || is_late)
            return status;
        size_t cut = cut_of(t);
        bool is_empty = t->is_drained && t->from.byte + cut == 0 && may_be_document; /* which is no JSON */
        enum look look = cut || is_empty ? decode(t, cut, call, out, error) : LOOK_MORE;
        if (look == LOOK_DONE)
            return SL_OK;
        if (look == LOOK_FAILED)
            return SL_REJECT;
        if (t->is_drained) {
            t->is_at_end = true;
            return SL_OK;
        }
        if (want > most)
            return too_long(t, !may_be_document, most, error);
    }
}

/* Lines that are not empty; `last` is the byte before the text. */
static uint64_t count_lines(struct sl_span text, char last)
{
    uint64_t n = 0;
    const char *p = text.ptr, *end = p + text.len;
    while (p && (p = memchr(p, '\n', (size_t)(end - p)))) {
        n += (p > text.ptr ? p[-1] : last) != '\n';
        p++;
    }
    return n;
}

enum sl_status sl_text_scan(struct sl_text *t, size_t max_bytes, const struct sl_call *call,
                            struct sl_error *error)
{
    enum sl_status status = SL_OK;
    uint64_t most = t->from.byte + max_bytes;
    while (status == SL_OK && !t->is_at_end && t->from.byte < most && !is_late(t, call)) {
        status = fill(t, SCAN_BYTES, call, error);
        t->from.record += count_lines(sl_buffer_span(&t->window), t->last);
        if (t->window.len)
            t->last = t->window.ptr[t->window.len - 1];
        t->from.byte += t->window.len;
        t->window.len = 0;
        t->is_at_end = t->is_drained;
    }
    if (status == SL_OK && t->is_at_end && t->last != '\n') {
        t->from.record++;
        t->last = '\n';
    }
    return status;
}

bool sl_text_drain(struct sl_text *t, const struct sl_call *call)
{
    while (!t->is_read && !is_late(t, call) && read_raw(t, call, NULL) == SL_OK)
        ;
    return t->is_read;
}
