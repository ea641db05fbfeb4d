/* Names that an object holds twice. RFC 8259 leaves open which of them counts, so a text that has one means
 * one thing to us and another to whoever wrote it.
 *
 * One pass. The names of the objects that are open lie on a stack, those of the innermost last. A small
 * object's are compared one by one; of a large one each has its place in a table, so that a hostile text
 * costs no more time than an honest one. */
#include "base/array.h"
#include "base/json.h"

#include "base/error.h"
#include "base/hash.h"

#include <stdlib.h>

#define SMALL 32 /* names that are compared one by one */

struct open {
    size_t first;    /* of its names */
    unsigned serial; /* no two objects have the same */
    bool is_object;
};

struct cell {
    struct sl_span name;
    unsigned serial; /* 0: the cell is free */
};

struct unique {
    struct open *open; /* SL_JSON_DEPTH + 1 */
    size_t depth;
    struct sl_span *names;
    size_t n, room;
    unsigned serial;
    bool has_escapes;   /* a name so far has an escape: names of other bytes may be equal */
    struct cell *cells; /* names of large objects */
    size_t n_cells, room_cells;
};

/* Equal names have equal hashes, however they are escaped. */
static uint64_t hash_of(struct sl_span name, unsigned serial)
{
    char plain[256];
    size_t n = name.len;
    if (name.len && memchr(name.ptr, '\\', name.len))
        n = name.len <= sizeof(plain) ? sl_json_unescape_to(name, plain) : 0;
    return sl_hash(n == name.len ? name : sl_span(plain, n)) ^ (serial * 0x9E3779B97F4A7C15u);
}

static struct cell *find(const struct unique *u, struct sl_span name, unsigned serial)
{
    size_t i = (size_t)hash_of(name, serial) & (u->room_cells - 1);
    while (u->cells[i].serial && !(u->cells[i].serial == serial && sl_json_same(u->cells[i].name, name)))
        i = (i + 1) & (u->room_cells - 1);
    return &u->cells[i];
}

static void widen(struct unique *u)
{
    struct cell *old = u->cells;
    size_t n = u->room_cells;
    u->room_cells = n ? 2 * n : 256;
    u->cells = calloc(u->room_cells, sizeof(*u->cells));
    if (!u->cells)
        sl_die("out of memory: the names of a JSON text");
    for (size_t i = 0; i < n; i++)
        if (old[i].serial)
            *find(u, old[i].name, old[i].serial) = old[i];
    free(old);
}

/* False: it is there. */
static bool put(struct unique *u, struct sl_span name, unsigned serial)
{
    if (2 * u->n_cells >= u->room_cells)
        widen(u);
    struct cell *cell = find(u, name, serial);
    if (cell->serial)
        return false;
    *cell = (struct cell){name, serial};
    u->n_cells++;
    return true;
}

static bool same(const struct unique *u, struct sl_span a, struct sl_span b)
{
    return u->has_escapes ? sl_json_same(a, b) : sl_span_eq(a, b);
}

static bool add(struct unique *u, struct sl_span name)
{
    const struct open *object = &u->open[u->depth - 1];
    size_t n = u->n - object->first;
    for (size_t i = object->first; n < SMALL && i < u->n; i++)
        if (same(u, u->names[i], name))
            return false;
    for (size_t i = object->first; n == SMALL && i < u->n; i++)
        (void)put(u, u->names[i], object->serial);
    if (n >= SMALL && !put(u, name, object->serial))
        return false;
    SL_PUSH(u->names, u->n, u->room, "names of a JSON text") = name;
    return true;
}

/* NULL: no name is there twice. */
static const char *scan(struct unique *u, struct sl_span text)
{
    const char *end = sl_span_end(text);
    for (const char *p = text.ptr; p < end; p++) {
        if (*p == '{' || *p == '[') {
            u->open[u->depth++] = (struct open){u->n, ++u->serial, *p == '{'};
        } else if (*p == '}' || *p == ']') {
            u->n = u->open[--u->depth].first;
        } else if (*p == '"') {
            bool escaped;
            const char *close = sl_json_string_end(p + 1, end, &escaped);
            const char *after = sl_json_space(close + 1, end);
            bool is_name = u->depth && u->open[u->depth - 1].is_object && after < end && *after == ':';
            u->has_escapes = u->has_escapes || (is_name && escaped);
            if (is_name && !add(u, sl_span(p + 1, (size_t)(close - p - 1))))
                return p;
            p = is_name ? after : close;
        }
    }
    return NULL;
}

bool sl_json_is_unique(struct sl_span text)
{
    struct open open[SL_JSON_DEPTH + 1]; /* (24 KB that nobody clears) */
    struct unique u = {.open = open};
    const char *twice = text.len ? scan(&u, text) : NULL;
    free(u.names);
    free(u.cells);
    return !twice;
}
