/* What the kinds of sources share: keys, places, pulling from a text. */
#include "data/source/source.h"

#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/scan.h"
#include "streams/record.h"
#include "streams/value.h"
#include "data/source/source_private.h"

#include <stdio.h>
#include <stdlib.h>

#define ARENA_BYTES ((size_t)16 * 1024)

/* ---- opening and closing ---- */

void *sl_source_new(const struct sl_source_options *options, size_t bytes)
{
    struct sl_source *source = calloc(1, bytes);
    if (!source)
        sl_die("out of memory: a source");
    source->options = *options;
    source->arena = sl_arena_new(ARENA_BYTES);
    return source;
}

void sl_source_close(struct sl_source *source)
{
    if (!source)
        return;
    source->close(source);
    sl_arena_destroy(source->arena);
    free(source);
}

const struct sl_source_facts *sl_source_facts(const struct sl_source *source)
{
    return &source->facts;
}

struct sl_source_file sl_source_file(const struct sl_source *source, size_t i)
{
    return source->file(source, i);
}

/* ---- keys ---- */

enum sl_status sl_source_keys_read(const char *text, struct sl_source_keys *out, struct sl_error *error)
{
    struct sl_span rest = sl_span_str(text);
    *out = (struct sl_source_keys){.n = 0};
    for (bool is_last = false; !is_last;) {
        const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
        struct sl_span name = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        if (out->n == 2 || name.len == 0 || name.len > 255)
            return sl_fail(error, SL_REJECT, "InvalidKeys",
                           "--keys %s: write the table's key attributes as PK or PK,SK", text);
        out->names[out->n++] = name;
        rest = sl_span_from(rest, name.len + 1);
        is_last = !comma;
    }
    if (out->n == 2 && sl_span_eq(out->names[0], out->names[1]))
        return sl_fail(error, SL_REJECT, "InvalidKeys", "--keys %s: names one attribute twice", text);
    return SL_OK;
}

void sl_source_keys_of(const struct sl_record *r, struct sl_arena *arena, struct sl_source_keys *out)
{
    struct sl_iter iter = sl_value_iter(sl_record_image(r, SL_KEYS));
    struct sl_span name;
    struct sl_value value;
    *out = (struct sl_source_keys){.n = 0};
    while (out->n < SL_COUNT(out->names) && sl_value_next(&iter, &name, &value)) {
        out->types[out->n] = value.type == SL_N ? 'N' : value.type == SL_B ? 'B' : 'S';
        out->names[out->n++] = sl_span(sl_arena_copy(arena, name), name.len);
    }
}

/* ---- pulling ---- */

enum sl_status sl_source_pull(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                              struct sl_source_piece *out, struct sl_error *error)
{
    *out = (struct sl_source_piece){.batch = {.arena = call->arena, .shape = SL_SHAPE_LINES}};
    return source->pull(source, max_bytes, call, out, error);
}

enum sl_status sl_source_skip_bad(struct sl_source *source, const struct sl_call *call, bool *goes_on,
                                  struct sl_error *error)
{
    *goes_on = false;
    return source->skip_bad ? source->skip_bad(source, call, goes_on, error) : SL_OK;
}

static bool has_only_items(const struct sl_batch *batch)
{
    bool are_items = batch->shape == SL_SHAPE_LINES;
    for (size_t i = 0; i < batch->n && are_items; i++) {
        const struct sl_record *r = sl_batch_record(batch, i);
        are_items = !sl_record_text(r, SL_FIELD_IDENTIFIER).ptr &&
                    sl_record_image(r, SL_KEYS).type == SL_NONE && sl_record_event(r) == SL_INSERT;
    }
    return are_items;
}

enum sl_status sl_source_pull_text(struct sl_source *source, struct sl_text *text, size_t max_bytes,
                                   const struct sl_call *call, struct sl_source_piece *out,
                                   struct sl_error *error)
{
    const struct sl_source_options *options = &source->options;
    const struct sl_item_options items = {.name = text->options.name,
                                          .keys = options->keys,
                                          .arn = options->arn.ptr ? options->arn : source->facts.table_arn,
                                          .ttl_attribute = options->ttl_attribute,
                                          .first = text->from.record};
    uint64_t before = text->stored_bytes;
    out->from = text->from;
    enum sl_status status = sl_text_pull(text, max_bytes, call, &out->batch, error);
    out->stored_bytes += text->stored_bytes - before;
    if (status == SL_OK && source->facts.is_items && !has_only_items(&out->batch))
        return sl_fail(
            error, SL_REJECT, "NotItems",
            "%s: is no file of a full export: it has more than {\"Item\":...} lines after record %llu",
            text->options.name, (unsigned long long)items.first);
    if (status == SL_OK && !options->as_received && out->batch.n)
        status = sl_item_convert(&items, &out->batch, error);
    return status;
}

/* ---- places ---- */

void sl_source_place_begin(struct sl_buffer *place, const struct sl_call *call, const char *kind,
                           struct sl_span id)
{
    sl_buffer_init_in(place, call->arena, SIZE_MAX / 4);
    sl_buffer_add_char(place, '{');
    sl_json_add_member(place, kind, id);
}

struct sl_span sl_source_place_end(struct sl_buffer *place)
{
    sl_buffer_add_char(place, '}');
    return sl_buffer_span(place);
}

enum sl_status sl_source_place_bad(const struct sl_source *source, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "WrongPlace",
                   "%s: the place to go on at is damaged: %.*s; begin anew, without the checkpoint",
                   source->facts.name, SL_ARG(source->options.place));
}

struct sl_span sl_source_place_text(struct sl_source *source, const char *path)
{
    return sl_json_text(source->options.place, path, source->arena);
}

bool sl_source_place_number(const struct sl_source *source, const char *path, uint64_t *out)
{
    struct sl_span raw = sl_json_find(source->options.place, path);
    uint64_t number = 0;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.ptr[i] < '0' || raw.ptr[i] > '9' || i == 16)
            return false;
        number = 10 * number + (uint64_t)(raw.ptr[i] - '0');
    }
    *out = number;
    return raw.len > 0;
}

bool sl_source_place_from(const struct sl_source *source, struct sl_text_from *out)
{
    return sl_source_place_number(source, "byte", &out->byte) &&
           sl_source_place_number(source, "record", &out->record) &&
           sl_source_place_number(source, "line", &out->line);
}

void sl_source_place_add_from(struct sl_buffer *place, const struct sl_text_from *from)
{
    sl_json_add_integer(place, "byte", (int64_t)from->byte);
    sl_json_add_integer(place, "record", (int64_t)from->record);
    sl_json_add_integer(place, "line", (int64_t)from->line);
}

enum sl_status sl_source_place_check(const struct sl_source *source, const char *kind, struct sl_span id,
                                     bool *is_there, struct sl_error *error)
{
    struct sl_span place = source->options.place;
    *is_there = place.ptr != NULL;
    if (!place.ptr)
        return SL_OK;
    if (sl_json_check(place, NULL) != SL_OK)
        return sl_source_place_bad(source, error);
    struct sl_span raw = sl_json_find(place, kind);
    bool is_same = raw.len >= 2 && sl_json_text_is(sl_span(raw.ptr + 1, raw.len - 2), id);
    if (is_same)
        return SL_OK;
    return sl_fail(
        error, SL_REJECT, "WrongPlace",
        "%s: the place to go on at belongs to another source; use its checkpoint with that source, "
        "and begin anew here",
        source->facts.name);
}

/* ---- rows that may be no items ---- */

uint32_t sl_source_marks(const struct sl_record *r, const struct sl_span *names, size_t n)
{
    struct sl_value image = sl_record_image(r, SL_NEW_IMAGE), value;
    struct sl_span name;
    bool may_be_there = false;
    uint32_t marks = 0;
    if (image.type == SL_NONE)
        image = sl_record_image(r, SL_OLD_IMAGE);
    for (size_t i = 0; i < n && !may_be_there; i++)
        may_be_there = image.raw.len && (memmem(image.raw.ptr, image.raw.len, names[i].ptr, names[i].len) ||
                                         memchr(image.raw.ptr, '\\', image.raw.len));
    if (!may_be_there)
        return 0;
    for (struct sl_iter iter = sl_value_iter(image); sl_value_next(&iter, &name, &value);)
        for (size_t i = 0; i < n; i++)
            if (sl_json_text_is(name, names[i]))
                marks |= UINT32_C(1) << i;
    return marks;
}

bool sl_source_same_table(const struct sl_record *r, char table[SL_SOURCE_TABLE_BYTES])
{
    struct sl_span name = sl_record_text(r, SL_FIELD_TABLE);
    if (name.len && !table[0])
        snprintf(table, SL_SOURCE_TABLE_BYTES, "%.*s", SL_ARG(name));
    return !name.len || sl_span_is(name, table);
}
