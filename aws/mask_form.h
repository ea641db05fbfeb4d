/* The forms in which a text may stand in another: as it is, with escapes resolved, without blanks, and what
 * its base64 says. See aws/mask.h. */
#ifndef SL_AWS_MASK_FORM_H
#define SL_AWS_MASK_FORM_H

#include "base/arena.h"

/* One form of a short text. Byte i of it comes from the bytes begin[i] to end[i] of the text. */
struct sl_mask_form {
    const char *text;
    size_t len;
    const uint16_t *begin, *end;
    bool is_squeezed; /* blanks and bytes beyond ASCII are left out */
    bool is_base64;   /* what it decodes to, which is noise where it is none: words in it mean nothing */
};

typedef void (*sl_mask_form_fn)(void *arg, const struct sl_mask_form *form);

/* Calls `fn` for each form of the text (of at most 65,535 bytes) that differs from those before it. Borrowed
 * during the call. */
void sl_mask_forms(struct sl_span text, struct sl_arena *arena, sl_mask_form_fn fn, void *arg);

typedef void (*sl_mask_piece_fn)(void *arg, struct sl_span piece);

/* Calls `fn` with everything that long texts say in their forms, piece by piece; pieces overlap. */
void sl_mask_forms_of(const struct sl_span *texts, size_t n, sl_mask_piece_fn fn, void *arg);

/* Whether it stands between words. */
static inline bool sl_mask_is_gap(char c)
{
    switch (c) {
    case ',':
    case ';':
    case ':':
    case '=':
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case '<':
    case '>':
    case '\'':
    case '"':
    case '\\':
        return true;
    default:
        return (unsigned char)c <= ' ';
    }
}

#endif
