/* Cuts a text between records, and decodes what was cut off. */
#include "data/source/text_private.h"

#include "base/json.h"
#include "streams/record.h"
#include "data/source/kind.h"
#include "data/source/source.h"

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
    sl_buffer_init(&t->kept, SIZE_MAX / 4);
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
    sl_buffer_clean_up(&t->kept);
    *t = (struct sl_text){.is_at_end = true};
}

void sl_text_md5(struct sl_text *t, unsigned char out[SL_MD5_BYTES])
{
    EVP_DigestFinal_ex(t->md5, out, NULL);
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
    return sl_fail_at(
        error, SL_REJECT, "TooLarge", 0,
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

uint64_t sl_text_count_newlines(struct sl_span text)
{
    uint64_t n = 0;
    const char *p = text.ptr, *end = sl_span_end(text);
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
    t->from.line += sl_text_count_newlines(sl_span(t->window.ptr, n));
    sl_buffer_init(&rest, t->window.max);
    if (!t->is_drained)
        (void)sl_buffer_reserve(&rest, t->window.len); /* the next window is as large */
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
        (void)!sl_text_fill(t, t->window.len + AFTER_BYTES, call, &unused);
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
    bool is_other = t->from.byte == 0 && sl_text_kind(sl_buffer_span(&t->window), why.offset);
    t->may_skip = !is_other && (is_lines || out->n == 0);
    t->n_before = out->n;
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

/* Whether all of the text may be one document, which is held whole: it begins as one. */
static bool may_be_document(const struct sl_text *t)
{
    struct sl_span begin = sl_buffer_span(&t->window);
    if (t->from.record || !t->options.document_bytes)
        return false;
    if (begin.len && sl_span_starts(begin, SL_LIT("\xEF\xBB\xBF")))
        begin = sl_span_from(begin, 3);
    const char *p = begin.len ? sl_json_space(begin.ptr, sl_span_end(begin)) : NULL;
    return begin.len == 0 || (p < sl_span_end(begin) && (*p == '{' || *p == '['));
}

enum sl_status sl_text_pull(struct sl_text *t, size_t max_bytes, const struct sl_call *call,
                            struct sl_batch *out, struct sl_error *error)
{
    size_t most = 0;
    t->may_skip = false;
    for (size_t want = first_want(t, max_bytes);; want = want <= most / 2 ? 2 * want : most + 1) {
        /* The look before may have left records of half a document: views of a window that moves now. */
        *out = (struct sl_batch){.arena = call->arena, .shape = SL_SHAPE_LINES};
        struct sl_error why = SL_NO_ERROR;
        enum sl_status status = sl_text_fill(t, want, call, &why);
        bool is_late = status == SL_OK && !t->is_drained && t->window.len < want;
        if (is_late)
            return SL_OK;
        /* What came before the text broke off is good. */
        size_t cut = status == SL_OK || status == SL_REJECT ? cut_of(t) : 0;
        bool is_whole = may_be_document(t);
        bool is_empty = t->is_drained && t->from.byte + cut == 0 && is_whole; /* which is no JSON */
        most = is_whole ? t->options.document_bytes : SL_SOURCE_RECORD_BYTES;
        enum look look = cut || is_empty ? decode(t, cut, call, out, error) : LOOK_MORE;
        if (look == LOOK_DONE)
            return SL_OK;
        if (look == LOOK_FAILED)
            return SL_REJECT;
        if (status != SL_OK)
            return sl_fail_at(error, status, why.code, why.offset, "%s", why.text);
        if (t->is_drained) {
            t->is_at_end = true;
            return SL_OK;
        }
        if (want > most) {
            t->may_skip = true;
            t->n_before = 0;
            return too_long(t, !is_whole, most, error);
        }
    }
}

/* Lines that are not empty; `last` is the byte before the text. */
static uint64_t count_lines(struct sl_span text, char last)
{
    uint64_t n = 0;
    const char *p = text.ptr, *end = sl_span_end(text);
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
    while (status == SL_OK && !t->is_at_end && t->from.byte < most && !sl_text_is_late(t, call)) {
        status = sl_text_fill(t, SCAN_BYTES, call, error);
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
    while (!t->is_read && !sl_text_is_late(t, call) && sl_text_read_raw(t, call, NULL) == SL_OK)
        ;
    return t->is_read;
}
