/* Text of the built-in handlers: pieces put together, and JSON of attribute values and keys. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_TEXT_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_TEXT_H

#include "handlers/handler.h"

/* Copies the text to `at`, where the caller has made room, and returns where it ends. */
static inline char *sl_text_put(char *at, struct sl_span text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

/* Index of the text in a NULL-terminated list; the list's length when it is not there. */
size_t sl_text_index(struct sl_span text, const char *const *list);

/* {"S":"text"}, in `arena`. */
struct sl_span sl_text_string_value(const struct sl_host *host, struct sl_span text, struct sl_arena *arena);

/* The value, S, N or B, as JSON in which equal values are equal texts. */
struct sl_span sl_text_canonical(const struct sl_host *host, struct sl_value value, struct sl_arena *arena);

/* A primary key has so many attributes at most. */
#define SL_TEXT_KEY_ATTRIBUTES 2

/* {"PK":value,"SK":value}, in `arena`: `n` names that need no escapes, and their values' JSON. */
struct sl_span sl_text_key(const struct sl_host *host, struct sl_arena *arena, const struct sl_span *names,
                           const struct sl_span *values, size_t n);

/* The key of a row of the handler's own, beside those of users: each of its attributes (`names`, `n`) is the
 * text "sluice:KIND:NAME:TEXT". `name` needs no escapes; of a long `text` stands its digest. */
struct sl_span sl_text_own_key(const struct sl_host *host, struct sl_arena *arena, const char *kind,
                               struct sl_span name, struct sl_span text, const struct sl_span *names,
                               size_t n);

/* The object's JSON without its closing brace, so that members can follow. It ends in '}'. */
struct sl_span sl_text_open_object(struct sl_span json);

/* An object's JSON while it is written, in memory that was made large enough. A member takes its name, its
 * value's JSON and so much more: quotes, a colon, a comma, and a tag with its own. */
#define SL_TEXT_MEMBER_BYTES (6 + SL_VALUE_JSON_BYTES)
struct sl_text_object {
    char *begin, *at;
};
struct sl_text_object sl_text_object_begin(const struct sl_host *host, struct sl_arena *arena, size_t room);

/* A name that needs no escapes, or is written as it came; its value follows. */
void sl_text_object_name(struct sl_text_object *o, struct sl_span name);
void sl_text_object_value(struct sl_text_object *o, const struct sl_host *host, struct sl_span name,
                          struct sl_value value);
void sl_text_object_text(struct sl_text_object *o, struct sl_span name, struct sl_span json);

/* The members of an object, as they are written there, with nothing around its braces. */
void sl_text_object_members(struct sl_text_object *o, struct sl_span json);

struct sl_span sl_text_object_end(struct sl_text_object *o);

/* The name of an attribute, as an iterator returned it, without escapes. */
struct sl_span sl_text_plain_name(const struct sl_host *host, struct sl_span name, struct sl_arena *arena);

/* 32 hexadecimal digits of the text's SHA-256, followed by a NUL. */
#define SL_TEXT_DIGEST_BYTES 32
void sl_text_digest(const struct sl_host *host, struct sl_span text, char out[SL_TEXT_DIGEST_BYTES + 1]);

#endif
