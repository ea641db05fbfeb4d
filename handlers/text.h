/* What the built-in handlers share for composing text: spans, JSON of attribute values, rendering with a
 * stated result for what is missing. Like them it sees handler.h only. */
#ifndef SL_HANDLERS_TEXT_H
#define SL_HANDLERS_TEXT_H

#include "handlers/handler.h"

#include <string.h>

#define SL_TEXT(s)     ((struct sl_span){(s), sizeof(s) - 1})
#define SL_TEXT_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct sl_span sl_text_of(const char *text)
{
    return (struct sl_span){text, text ? strlen(text) : 0};
}

static inline bool sl_text_eq(struct sl_span a, struct sl_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Copies the text to `at`, where the caller has made room, and returns where it ends. */
static inline char *sl_text_put(char *at, struct sl_span text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

/* Index of the text in a NULL-terminated list; the list's length when it is not there. */
size_t sl_text_index(struct sl_span text, const char *const *list);

/* Digits and nothing else, at least one. */
bool sl_text_is_digits(struct sl_span text);

/* At most so many bytes around an attribute value's content: {"BOOL":"…"}. */
#define SL_TEXT_VALUE_BYTES 11

/* Writes the value as DynamoDB's JSON, {"N":"1"}, at `at`: its raw length and SL_TEXT_VALUE_BYTES at most. */
char *sl_text_put_value(char *at, struct sl_value value);

/* The same, in `arena`. */
struct sl_span sl_text_value(const struct sl_host *host, struct sl_value value, struct sl_arena *arena);

/* {"S":"text"}, in `arena`. */
struct sl_span sl_text_string_value(const struct sl_host *host, struct sl_span text, struct sl_arena *arena);

/* 32 hexadecimal digits of the text's SHA-256, and a NUL. */
#define SL_TEXT_DIGEST_BYTES 32
void sl_text_digest(const struct sl_host *host, struct sl_span text, char out[SL_TEXT_DIGEST_BYTES + 1]);

/* ---- templates ---- */

/* What becomes of a record that lacks what a template names. */
enum sl_missing { SL_MISSING_REJECT, SL_MISSING_SKIP, SL_MISSING_EMPTY };
#define SL_MISSING_VALUES "reject|skip|empty"

enum sl_missing sl_text_missing(const struct sl_host *host, struct sl_route *route);

/* Is the template one place and nothing else, "{total}", so that it stands for the attribute itself? */
bool sl_text_is_place(struct sl_span template_text);

/* Does the template name an image, "{NewImage.a}" or "{OldImage.a}"? */
bool sl_text_names_image(struct sl_span template_text);

struct sl_text_template {
    struct sl_template *compiled;
    bool is_place;
};

enum sl_status sl_text_compile(const struct sl_host *host, struct sl_arena *arena, struct sl_span text,
                               struct sl_text_template *out, struct sl_error *error);

/* The template's text, in `arena`; SL_MISSING_EMPTY: a place without a value is empty. */
enum sl_status sl_text_render(const struct sl_host *host, const struct sl_text_template *t,
                              const struct sl_record *r, enum sl_image image, enum sl_missing missing,
                              struct sl_arena *arena, struct sl_span *out, struct sl_error *error);

/* The attribute that a template of one place alone stands for; SL_NONE for others. */
struct sl_value sl_text_place_value(const struct sl_host *host, const struct sl_text_template *t,
                                    const struct sl_record *r, enum sl_image image);

/* The template's value as an attribute value for a key, {"S":"STATUS#OPEN"}: a place alone keeps the
 * attribute's type, if that may stand in a key; everything else is a string. Equal values are equal texts. */
enum sl_status sl_text_key_value(const struct sl_host *host, const struct sl_text_template *t,
                                 const struct sl_record *r, enum sl_image image, enum sl_missing missing,
                                 struct sl_arena *arena, struct sl_span *out, struct sl_error *error);

/* The value, S, N or B, written so that equal values are equal texts. */
struct sl_span sl_text_canonical(const struct sl_host *host, struct sl_value value, struct sl_arena *arena);

#endif
