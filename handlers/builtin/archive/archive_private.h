/* Inside the archive handler: what its files share. docs/HANDLERS.md says what it promises. */
#ifndef SL_HANDLERS_BUILTIN_ARCHIVE_ARCHIVE_PRIVATE_H
#define SL_HANDLERS_BUILTIN_ARCHIVE_ARCHIVE_PRIVATE_H

#include "handlers/builtin/toolkit/render.h"
#include "handlers/builtin/toolkit/text.h"

enum archive_format { ARCHIVE_RECORD, ARCHIVE_ITEM, ARCHIVE_EXPORT, ARCHIVE_JSON };

struct archive {
    const struct sl_host *host;
    struct sl_route *route;
    struct sl_object_port *port;
    const struct sl_template *key;
    enum archive_format format;
    enum sl_missing missing;
    int level;           /* of gzip; 0: none */
    unsigned events;     /* that the route lets through, as bits 1 << SL_INSERT, ... */
    int64_t key_unit_ns; /* within one such unit of time the key of one table's records is the same; 0: the
                            key looks at items */
};

/* ---- archive_line.c ---- */

/* A line has at most so many parts. */
#define ARCHIVE_LINE_PARTS 9

/* A record's line, newline included, in parts that borrow the record or are in the arena. */
struct archive_line {
    struct sl_span *parts; /* room for ARCHIVE_LINE_PARTS, the caller's */
    size_t n;
};

/* Adds the record's parts to the line. SL_REJECT when the record lacks what the format needs. */
enum sl_status archive_line(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                            struct archive_line *line, struct sl_error *error) SL_MUST_USE;

/* Has a stream of that view type what the lines of all the route's events need? */
enum sl_status archive_accepts(const struct archive *a, enum sl_view view,
                               struct sl_error *error) SL_MUST_USE;

/* ---- archive_key.c ---- */

/* What all keys of a route have in common: refuses a template whose own text would leave the prefix or make
 * empty segments, and finds `key_unit_ns`. */
enum sl_status archive_key_check(struct archive *a, struct sl_span text, struct sl_error *error) SL_MUST_USE;

/* The part of the object's key before its name: empty, or ending in '/'. In `arena`. */
enum sl_status archive_key_prefix(const struct archive *a, const struct sl_record *r, struct sl_arena *arena,
                                  struct sl_span *out, struct sl_error *error) SL_MUST_USE;

/* The object's whole key: the prefix, and a name made of what the object holds. In `arena`. */
struct sl_span archive_key_name(const struct archive *a, struct sl_span prefix,
                                const struct sl_record *const *records, size_t n, struct sl_arena *arena);

#endif
