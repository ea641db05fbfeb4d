/* Attributes by name and by path. Where an image's attributes are is noted by the decoder or by the first
 * look into it; small images are read through each time, which is as fast. */
#include "base/block.h"
#include "base/json.h"
#include "streams/record_layout.h"

static const struct sl_value none = {.type = SL_NONE};

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

struct sl_name_hash sl_name_hash(struct sl_span name)
{
    bool is_escaped = name.len && memchr(name.ptr, '\\', name.len);
    return (struct sl_name_hash){is_escaped ? hash_of_escaped(name) : hash_of(name), is_escaped};
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

struct sl_image_index *sl_image_index_new(struct sl_arena *arena, const struct sl_image_notes *notes)
{
    size_t n = notes->n;
    struct sl_image_index *index =
        sl_arena_alloc(arena, sizeof(*index) + n * sizeof(struct sl_image_entry) + blocks(n));
    index->n = (uint32_t)n;
    memset(hashes(index), 0, blocks(n));
    if (n <= notes->room) {
        memcpy(index->entries, notes->entries, n * sizeof(*notes->entries));
        memcpy(hashes(index), notes->hashes, n);
    }
    return index;
}

static void find_attributes(struct sl_image_notes *notes, struct sl_value image)
{
    struct sl_iter iter = sl_value_iter(image);
    struct sl_span name = {NULL, 0};
    struct sl_value value;
    notes->n = 0;
    while (sl_value_next(&iter, &name, &value))
        sl_image_note(notes, name.ptr, sl_name_hash(name), value);
}

/* An image with more attributes than are noted at first is read again. */
static const struct sl_image_index *build(const struct sl_record *r, struct sl_value image)
{
    struct sl_shared *shared = sl_record_chunk(r)->shared;
    struct sl_image_entry entries[SL_NOTED];
    uint8_t hash[SL_NOTED];
    struct sl_image_notes notes = {sl_record_origin(r)->base, entries, hash, SL_NOTED, 0};
    find_attributes(&notes, image);
    struct sl_image_index *index = sl_image_index_new(shared->arena, &notes);
    if (notes.n > SL_NOTED) {
        notes = (struct sl_image_notes){notes.base, index->entries, hashes(index), notes.n, 0};
        find_attributes(&notes, image);
    }
    shared->n_read_again++;
    return index;
}

const struct sl_image_index **sl_record_indexes(const struct sl_record *r)
{
    struct sl_record_chunk *chunk = sl_record_chunk(r);
    if (!chunk->indexes)
        chunk->indexes = sl_arena_zalloc(chunk->shared->arena, SL_CHUNK_RECORDS * sizeof(*chunk->indexes));
    return chunk->indexes[r->slot];
}

static const struct sl_image_index *index_of(const struct sl_record *r, enum sl_image image)
{
    const struct sl_image_index **index = &sl_record_indexes(r)[image];
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
    if (image > SL_OLD_IMAGE || r->image_len[image] < SL_INDEXED_BYTES)
        return sl_value_member(sl_record_image(r, image), name);
    return find(index_of(r, image), sl_record_origin(r), name);
}

struct sl_value sl_record_path(const struct sl_record *r, enum sl_image image, struct sl_span path)
{
    struct sl_span name;
    return sl_path_name(&path, &name) ? sl_value_walk(sl_record_attribute(r, image, name), path) : none;
}
