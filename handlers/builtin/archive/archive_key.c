/* Keys of archive objects: a prefix from the route's template, and a name made of what the object holds. */
#include "handlers/builtin/archive/archive_private.h"

#include "handlers/builtin/toolkit/order.h"

#include <stdio.h>
#include <string.h>

/* S3 takes keys of 1,024 bytes, file systems names of 255. A longer segment keeps its beginning and gets a
 * digest; so does a longer prefix, which leaves the target's own prefix some 280 bytes. */
#define SEGMENT_BYTES      200
#define SEGMENT_KEPT_BYTES 120
#define PREFIX_BYTES       640
#define PREFIX_KEPT_BYTES  500
/* In escaped text '%' is always followed by two hexadecimal digits, so a cut text never equals a whole one.
 */
#define CUT_MARK "%%~" /* as a format */

/* ---- the template ---- */

static const struct {
    const char *name;
    int64_t unit_ns;
} constant_places[] = {{"table", 86400000000000}, {"region", 86400000000000}, {"yyyy", 86400000000000},
                       {"mm", 86400000000000},    {"dd", 86400000000000},     {"hh", 3600000000000},
                       {"mi", 60000000000},       {"ss", 1000000000}};

static int64_t place_unit(struct sl_span name)
{
    for (size_t i = 0; i < sizeof(constant_places) / sizeof(*constant_places); i++)
        if (sl_span_is(name, constant_places[i].name))
            return constant_places[i].unit_ns;
    return 0;
}

/* The brace that closes the place at byte `i`: none within backquotes. The template was compiled, so there is
 * one. */
static size_t place_end(struct sl_span text, size_t i)
{
    bool is_quoted = false;
    for (; i < text.len && (is_quoted || text.ptr[i] != '}'); i++)
        is_quoted ^= text.ptr[i] == '`';
    return i;
}

/* Walks over the template's text. Each place counts as one 'x', and "{{" and "}}" as a brace. */
static size_t template_step(struct sl_span text, size_t i, char *c, struct sl_span *place)
{
    *place = (struct sl_span){NULL, 0};
    *c = text.ptr[i];
    bool doubled = i + 1 < text.len && text.ptr[i + 1] == *c;
    if ((*c == '{' || *c == '}') && doubled)
        return i + 2;
    if (*c != '{')
        return i + 1;
    size_t to = place_end(text, i);
    *place = (struct sl_span){text.ptr + i + 1, to - i - 1};
    *c = 'x';
    return to < text.len ? to + 1 : to;
}

static bool is_bad_segment(const char *segment, size_t len)
{
    return len == 0 || (len == 1 && segment[0] == '.') ||
           (len == 2 && segment[0] == '.' && segment[1] == '.');
}

enum sl_status archive_key_check(struct archive *a, struct sl_span text, struct sl_error *error)
{
    char segment[2];
    size_t len = 0;
    a->key_unit_ns = 86400000000000;
    for (size_t i = 0; i < text.len;) {
        char c;
        struct sl_span place;
        i = template_step(text, i, &c, &place);
        if (place.ptr) {
            int64_t unit = place_unit(place);
            a->key_unit_ns = unit < a->key_unit_ns ? unit : a->key_unit_ns;
        } else if ((unsigned char)c < 0x20 || c == 0x7f) {
            return a->host->fail(error, SL_FATAL, "BadKey", "key: byte %zu is a control character", i - 1);
        }
        if (c != '/') {
            if (len < 2)
                segment[len] = c;
            len++;
        } else if (is_bad_segment(segment, len)) {
            return a->host->fail(error, SL_FATAL, "BadKey",
                                 "key: an empty, \".\" or \"..\" segment ends at byte %zu", i - 1);
        } else {
            len = 0;
        }
    }
    if (len > 0 && is_bad_segment(segment, len))
        return a->host->fail(error, SL_FATAL, "BadKey", "key: the last segment is \".\" or \"..\"");
    return SL_OK;
}

/* ---- the prefix ---- */

/* Where to cut so that no UTF-8 character is cut. */
static size_t whole_characters(const char *text, size_t n)
{
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* Appends the segment, its tail replaced by a digest when it is too long. */
static size_t segment_add(const struct archive *a, struct sl_span segment, char *out)
{
    if (segment.len <= SEGMENT_BYTES) {
        memcpy(out, segment.ptr, segment.len);
        return segment.len;
    }
    size_t kept = whole_characters(segment.ptr, SEGMENT_KEPT_BYTES);
    char digest[SL_TEXT_DIGEST_BYTES + 1];
    sl_text_digest(a->host, segment, digest);
    memcpy(out, segment.ptr, kept);
    return kept + (size_t)snprintf(out + kept, SEGMENT_BYTES - kept, CUT_MARK "%s", digest);
}

/* Shortens what is too long, and ends it with '/'. */
static struct sl_span prefix_fit(const struct archive *a, struct sl_span whole, struct sl_arena *arena)
{
    char *out = a->host->alloc(arena, whole.len + 2);
    size_t n = 0, last_end = 0;
    for (size_t i = 0; i < whole.len;) {
        const char *slash = memchr(whole.ptr + i, '/', whole.len - i);
        size_t to = slash ? (size_t)(slash - whole.ptr) : whole.len;
        n += segment_add(a, (struct sl_span){whole.ptr + i, to - i}, out + n);
        out[n++] = '/';
        if (n <= PREFIX_KEPT_BYTES)
            last_end = n;
        i = to + 1;
    }
    if (n > PREFIX_BYTES) {
        char digest[SL_TEXT_DIGEST_BYTES + 1];
        sl_text_digest(a->host, whole, digest);
        n = last_end + (size_t)snprintf(out + last_end, PREFIX_BYTES - last_end, CUT_MARK "%s/", digest);
    }
    return (struct sl_span){out, n};
}

enum sl_status archive_key_prefix(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                                  struct sl_span *out, struct sl_error *error)
{
    struct sl_render in = {.host = a->host,
                           .arena = arena,
                           .record = r,
                           .image = SL_ANY_IMAGE,
                           .missing = a->missing,
                           .escape = SL_ESCAPE_PATH};
    struct sl_span whole;
    enum sl_status status = sl_render_text(&in, a->key, &whole, error);
    if (status != SL_OK)
        return status;
    *out = prefix_fit(a, whole, arena);
    return SL_OK;
}

/* ---- the name ---- */

/* A longer identifier is not a sequence number. */
#define IDENTIFIER_BYTES (SL_ORDER_DIGITS + 24)

/* Objects of one prefix sort by the first sequence number they hold, where there is one. */
static void padded_sequence(const struct archive *a, const struct sl_record *r,
                            char out[IDENTIFIER_BYTES + 1])
{
    struct sl_span text = a->host->record_text(r, SL_FIELD_IDENTIFIER);
    if (!sl_text_is_digits(text) || text.len > IDENTIFIER_BYTES)
        text.len = 0;
    *sl_order_put(out, text) = '\0';
}

/* What identifies a record: where it comes from, its identifier there, and its event id. A line of an export
 * has neither identifier nor event id; its own text identifies it. */
static size_t identity(const struct archive *a, const struct sl_record *r, struct sl_span parts[3])
{
    parts[0] = a->host->record_text(r, SL_FIELD_SOURCE_ARN);
    parts[1] = a->host->record_text(r, SL_FIELD_IDENTIFIER);
    parts[2] = a->host->record_text(r, SL_FIELD_EVENT_ID);
    if (parts[1].len == 0 && parts[2].len == 0)
        parts[2] = a->host->record_text(r, SL_FIELD_RAW);
    return parts[0].len + parts[1].len + parts[2].len + 3;
}

/* The digest of the format's name and of every record's identity, each part closed with a newline. */
static void content_digest(const struct archive *a, const struct sl_record *const *records, size_t n,
                           struct sl_arena *arena, char out[SL_TEXT_DIGEST_BYTES + 1])
{
    struct sl_span parts[3], last_arn = {NULL, 0};
    size_t total = 1;
    for (size_t i = 0; i < n; i++)
        total += identity(a, records[i], parts);
    char *text = a->host->alloc(arena, total), *at = text;
    *at++ = (char)('0' + a->format);
    for (size_t i = 0; i < n; i++) {
        identity(a, records[i], parts);
        /* The source is written only where it changes. It is the same for nearly all records. */
        bool same = i > 0 && sl_span_eq(parts[0], last_arn);
        last_arn = parts[0];
        for (size_t k = same ? 1 : 0; k < 3; k++) {
            at = sl_text_put(at, parts[k]);
            *at++ = '\n';
        }
    }
    sl_text_digest(a->host, (struct sl_span){text, (size_t)(at - text)}, out);
}

struct sl_span archive_key_name(const struct archive *a, struct sl_span prefix,
                                const struct sl_record *const *records, size_t n, struct sl_arena *arena)
{
    char sequence[IDENTIFIER_BYTES + 1], digest[SL_TEXT_DIGEST_BYTES + 1];
    padded_sequence(a, records[0], sequence);
    content_digest(a, records, n, arena, digest);
    size_t room = prefix.len + sizeof(sequence) + sizeof(digest) + 48;
    char *key = a->host->alloc(arena, room);
    sl_text_put(key, prefix);
    int len = snprintf(key + prefix.len, room - prefix.len, "%s-%zu-%s.%s%s", sequence, n, digest,
                       a->format == ARCHIVE_EXPORT ? "json" : "jsonl", a->level ? ".gz" : "");
    return (struct sl_span){key, prefix.len + (size_t)len};
}
