/* JSON text, scanned in place: RFC 8259, nothing built, nothing copied.
 *
 * Two kinds of functions. The checked ones read text that was not checked yet: they apply every rule of the
 * grammar, UTF-8 and surrogate pairs, never read at or beyond the end, and say at which byte and why a text
 * is refused. The others read text that was checked before.
 * Depth is limited to SL_JSON_DEPTH containers and costs no stack. What RFC 8259 leaves open is decided in
 * docs/RECORDS.md: numbers of any size are accepted, lone surrogates and bytes that are not UTF-8 refused. */
#ifndef SL_BASE_JSON_H
#define SL_BASE_JSON_H

#include "base/arena.h"
#include "base/buffer.h"

/* Deeper text is refused. jansson, which reads the configuration, stops at 2048. */
#define SL_JSON_DEPTH 1024

/* ---- whole texts ---- */

/* Whether `text` is one JSON value with nothing but whitespace around it (a byte order mark is skipped). On
 * failure: SL_REJECT, code "InvalidJson", the byte, and why. */
enum sl_status sl_json_check(struct sl_span text, struct sl_error *error) SL_MUST_USE;

/* The same, but halves of surrogate pairs may stand alone and strings may hold bytes that are not UTF-8:
 * DynamoDB stores and returns both in names. */
enum sl_status sl_json_check_loose(struct sl_span text, struct sl_error *error) SL_MUST_USE;

/* Whether no object of a checked text holds a name twice, however it is written. */
bool sl_json_is_unique(struct sl_span text);

/* The raw text of what `path` names in a checked text: "routes[1].when". Members' names are compared
 * unescaped; the last of equal ones counts. Absent when the path leads nowhere. "" is the whole value. */
struct sl_span sl_json_find(struct sl_span text, const char *path);

/* The path of the value at the byte `at` of a checked text, as sl_json_find takes it, with a NUL; cut when it
 * does not fit. Names keep their escapes. "" is the whole value. */
void sl_json_path_of(struct sl_span text, const char *at, char *out, size_t room);

/* The text of a string without its quotes, escapes resolved: `inner` itself when it has none, else in
 * `arena`. */
struct sl_span sl_json_unescape(struct sl_span inner, struct sl_arena *arena);

/* The text that `path` names, as sl_json_unescape gives it; absent when no string is there. */
struct sl_span sl_json_text(struct sl_span text, const char *path, struct sl_arena *arena);

/* The same into `out`, which has room for inner.len bytes; returns the bytes written. */
size_t sl_json_unescape_to(struct sl_span inner, char *out);

/* The same in a buffer, which is emptied first. */
struct sl_span sl_json_unescape_in(struct sl_span inner, struct sl_buffer *buffer);

/* Whether `inner`, unescaped, is `text`. */
bool sl_json_text_is(struct sl_span inner, struct sl_span text);

/* Whether both are the same text, unescaped. */
bool sl_json_same(struct sl_span inner_a, struct sl_span inner_b);

/* Bytes of the text, unescaped. */
size_t sl_json_unescaped_bytes(struct sl_span inner);

/* ---- checked scanning ---- */

/* Where the text ends, and after a failure where and why. `why` is a constant phrase. */
struct sl_json_scan {
    const char *end;
    const char *at;
    const char *why;
    int kind;      /* 0; a caller may note its own faults in text that is JSON */
    bool is_loose; /* strings need not be text: see sl_json_check_loose */
};

/* Each takes the byte to begin at (p <= end) and returns the byte after what it read, NULL on failure. */

/* A string, from its opening quote. `escaped` says whether a backslash is in it. */
const char *sl_json_string(struct sl_json_scan *s, const char *p, bool *escaped);
const char *sl_json_number(struct sl_json_scan *s, const char *p);
/* true, false or null: `word` with its length. */
const char *sl_json_word(struct sl_json_scan *s, const char *p, const char *word, size_t n);
/* Any value. */
const char *sl_json_value(struct sl_json_scan *s, const char *p);

/* Notes a failure and returns NULL. */
const char *sl_json_fault(struct sl_json_scan *s, const char *at, const char *why);

/* Notes that the text at `p` is not what was `expected` ("a value is expected"); at the end of the text,
 * that it ends too early. Returns NULL. */
const char *sl_json_unexpected(struct sl_json_scan *s, const char *p, const char *expected);

const char *sl_json_space_slow(const char *p, const char *end);

/* The byte after the whitespace; mostly there is none. */
static inline const char *sl_json_space(const char *p, const char *end)
{
    return p < end && (unsigned char)*p <= ' ' ? sl_json_space_slow(p, end) : p;
}

/* Exactly this byte. */
static inline const char *sl_json_byte(struct sl_json_scan *s, const char *p, char c, const char *expected)
{
    return p < s->end && *p == c ? p + 1 : sl_json_unexpected(s, p, expected);
}

/* ---- text that was checked ---- */

/* These rely on the grammar. In text that is not JSON they find nothing useful, but they do not read
 * beyond `end`. */

/* From the byte after an opening quote to the closing one. */
const char *sl_json_string_end(const char *p, const char *end, bool *escaped);

/* The byte after the value that begins at `p`. */
const char *sl_json_value_end(const char *p, const char *end);

#endif
