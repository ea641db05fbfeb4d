/* Reads what is stored, and unpacks it into the window. */
#include "data/source/text_private.h"

#include <stdio.h>

bool sl_text_is_late(const struct sl_text *t, const struct sl_call *call)
{
    return t->options.clock->now_ms(t->options.clock) >= call->deadline_ms;
}

enum sl_status sl_text_read_raw(struct sl_text *t, const struct sl_call *call, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = t->reader->next(t->reader, call, &t->raw, &why);
    if (status == SL_RETRY && sl_text_is_late(t, call)) {
        t->raw = sl_span(NULL, 0); /* what did not come in time is asked for again */
        return SL_OK;
    }
    if (status != SL_OK)
        return sl_fail_at(error, status, why.code, why.offset, "%s: %s", t->options.name, why.text);
    t->is_read = t->raw.len == 0;
    t->stored_bytes += t->raw.len;
    if (t->md5 && t->raw.len)
        EVP_DigestUpdate(t->md5, t->raw.ptr, t->raw.len);
    if (!t->is_begun && !t->reader->unpacks && sl_gzip_is(t->raw))
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

/* Text that was in the window before comes first. */
static void take_kept(struct sl_text *t, size_t room)
{
    size_t left = t->kept.len - t->kept_from, n = left < room ? left : room;
    sl_buffer_add(&t->window, t->kept.ptr + t->kept_from, n);
    t->kept_from += n;
    if (t->kept_from < t->kept.len)
        return;
    sl_buffer_clean_up(&t->kept);
    t->kept_from = 0;
}

/* Moves some of what was read into the window, which then has at most `want` bytes. */
static enum sl_status unpack(struct sl_text *t, size_t want, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    size_t room = want - t->window.len;
    if (t->kept.len) {
        take_kept(t, room);
        return SL_OK;
    }
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
    if (t->inflater && sl_inflater_end(t->inflater, &why) != SL_OK)
        return bad_gzip(t, &why, error);
    if (t->n_skipped < t->options.skip.byte)
        return sl_fail(
            error, SL_REJECT, "WrongPlace",
            "%s: ends before the place at which it is to go on; it is another text than the one that "
            "was begun; begin anew, without the checkpoint",
            t->options.name);
    t->is_drained = true;
    return SL_OK;
}

static enum sl_status fill(struct sl_text *t, size_t want, const struct sl_call *call, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    while (status == SL_OK && t->window.len < want && !t->is_drained && !sl_text_is_late(t, call)) {
        size_t raw = t->raw.len;
        uint64_t unpacked = t->n_skipped + t->window.len;
        status = unpack(t, want, error);
        if (status != SL_OK || t->raw.len < raw || t->n_skipped + t->window.len > unpacked)
            continue;
        status = t->is_read ? end_of_text(t, error) : sl_text_read_raw(t, call, error);
    }
    return status;
}

enum sl_status sl_text_fill(struct sl_text *t, size_t want, const struct sl_call *call,
                            struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (t->broken.status == SL_OK) {
        struct sl_error why = SL_NO_ERROR;
        status = fill(t, want, call, &why);
        if (status == SL_OK)
            return SL_OK;
        if (status != SL_REJECT)
            return sl_fail_at(error, status, why.code, why.offset, "%s", why.text);
        t->broken = why;
    }
    return sl_fail_at(error, SL_REJECT, t->broken.code, t->broken.offset, "%s", t->broken.text);
}
