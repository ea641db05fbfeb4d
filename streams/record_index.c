/* Attributes by name and by path. The first look into an image notes where its attributes are; small images
 * are read through each time, which is as fast. */
#include "base/block.h"
#include "base/json.h"
#include "streams/record_layout.h"

static const struct sl_value none = {.type = SL_NONE};

/* An image shorter than this holds three or four attributes. */
#define INDEXED_BYTES 96

/* ---- hashes ---- */

static uint8_t hash_of(struct sl_span name)
{
    if (name.len == 0)
        return 0;
    const unsigned char *c = (const unsigned char *)name.ptr;
    return (uint8_t)(name.len + c[0] * 5u + c[name.len / 2] * 17u + c[name.len - 1] * 59u);
}

static uint8_t hash_of_escaped(struct sl_span inner)
{
    struct sl_buffer text;
    sl_buffer_init(&text, SIZE_MAX / 2);
    uint8_t hash = hash_of(sl_json_unescape_in(inner, &text));
    sl_buffer_clean_up(&text);
    return hash;
}

/* ---- building ---- */

static size_t blocks(size_t n)
{
    return (n + SL_BLOCK - 1) / SL_BLOCK * SL_BLOCK;
}

static uint8_t *hashes(const struct sl_image_index *index)
{
    return (uint8_t *)(uintptr_t)(index->entries + index->n);
}

/* Attributes found in the first pass; an image with more is counted to its end and read again. */
#define FIRST_PASS 64

struct finding {
    const char *base;
    struct sl_image_entry *entries;
    uint8_t *hash;
    size_t room, n;
};

static void find_attributes(struct finding *f, struct sl_value image)
{
    struct sl_iter iter = sl_value_iter(image);
    struct sl_span name = {NULL, 0};
    struct sl_value value;
    for (f->n = 0; sl_value_next(&iter, &name, &value); f->n++) {
        if (f->n >= f->room)
            continue;
        bool is_escaped = name.len && memchr(name.ptr, '\\', name.len);
        f->entries[f->n] = (struct sl_image_entry){
            .name = (uint32_t)(name.ptr - f->base),
            .value = (uint32_t)(value.raw.ptr - f->base),
            .len = value.raw.len < SL_ENTRY_LONG ? (unsigned)value.raw.len & SL_ENTRY_LONG : SL_ENTRY_LONG,
            .type = (unsigned)value.type & 15,
            .is_escaped = value.escaped,
            .is_name_escaped = is_escaped,
        };
        f->hash[f->n] = is_escaped ? hash_of_escaped(name) : hash_of(name);
    }
}

static const struct sl_image_index *build(const struct sl_record *r, struct sl_value image)
{
    struct sl_image_entry entries[FIRST_PASS];
    uint8_t hash[FIRST_PASS];
    struct finding f = {sl_record_origin(r)->base, entries, hash, FIRST_PASS, 0};
    find_attributes(&f, image);
    size_t n = f.n;
    struct sl_image_index *index = sl_arena_alloc(
        sl_record_chunk(r)->shared->arena, sizeof(*index) + n * sizeof(struct sl_image_entry) + blocks(n));
    index->n = (uint32_t)n;
    memset(hashes(index), 0, blocks(n));
    if (n <= FIRST_PASS) {
        memcpy(index->entries, entries, n * sizeof(*entries));
        memcpy(hashes(index), hash, n);
    } else {
        f = (struct finding){f.base, index->entries, hashes(index), n, 0};
        find_attributes(&f, image);
    }
    return index;
}

static const struct sl_image_index *index_of(const struct sl_record *r, enum sl_image image)
{
    struct sl_record_chunk *chunk = sl_record_chunk(r);
    if (!chunk->indexes)
        chunk->indexes = sl_arena_zalloc(chunk->shared->arena, SL_CHUNK_RECORDS * sizeof(*chunk->indexes));
    const struct sl_image_index **index = &chunk->indexes[r->slot][image];
    if (!*index)
        *index = build(r, sl_record_image(r, image));
    return *index;
}

/* ---- looking ---- */

static bool entry_is(const struct sl_image_entry *e, const struct sl_origin *o, struct sl_span name)
{
    const char *p = o->base + e->name;
    bool escaped;
    if (e->is_name_escaped)
        return sl_json_text_is(sl_span(p, (size_t)(sl_json_string_end(p, o->end, &escaped) - p)), name);
    return (size_t)(o->end - p) > name.len && p[name.len] == '"' && memcmp(p, name.ptr, name.len) == 0;
}

static struct sl_value entry_value(const struct sl_image_entry *e, const struct sl_origin *o)
{
    const char *p = o->base + e->value;
    struct sl_value v = {(enum sl_type)e->type, e->is_escaped, {p, e->len}};
    bool escaped;
    if (e->len < SL_ENTRY_LONG)
        return v;
    const char *end = v.type <= SL_B ? sl_json_string_end(p, o->end, &escaped) : sl_json_value_end(p, o->end);
    v.raw.len = (size_t)(end - p);
    return v;
}

/* The last of equal names counts, so the search goes backwards. */
static struct sl_value find(const struct sl_image_index *index, const struct sl_origin *o,
                            struct sl_span name)
{
    const uint8_t *hash = hashes(index);
    uint8_t wanted = hash_of(name);
    for (size_t at = blocks(index->n); at > 0; at -= SL_BLOCK) {
        uint64_t mask = sl_block_eq(hash + at - SL_BLOCK, wanted);
        while (mask) {
            unsigned bit = 63 - (unsigned)__builtin_clzll(mask);
            size_t i = at - SL_BLOCK + bit / SL_MASK_BITS;
            if (i < index->n && entry_is(&index->entries[i], o, name))
                return entry_value(&index->entries[i], o);
            mask &= (uint64_t)((1ull << (bit / SL_MASK_BITS * SL_MASK_BITS)) - 1);
        }
    }
    return none;
}

struct sl_value sl_record_attribute(const struct sl_record *r, enum sl_image image, struct sl_span name)
{
    if (image > SL_OLD_IMAGE || r->image_len[image] < INDEXED_BYTES)
        return sl_value_member(sl_record_image(r, image), name);
    return find(index_of(r, image), sl_record_origin(r), name);
}

struct sl_value sl_record_path(const struct sl_record *r, enum sl_image image, struct sl_span path)
{
    struct sl_span name;
    return sl_path_name(&path, &name) ? sl_value_walk(sl_record_attribute(r, image, name), path) : none;
}
