/* The places of a live stream's shards, and the text of the checkpoint file. */
#include "live/source/places.h"

#include "base/array.h"
#include "base/json_write.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define UNLISTED_MS (48LL * 3600 * 1000)
#define MISSES      2

void sl_places_set(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        sl_die("out of memory: a place in a shard");
    free(*text);
    *text = copy;
}

struct sl_place *sl_places_find(const struct sl_places *places, const char *id)
{
    uint32_t i = places->arena ? sl_map_find(&places->index, sl_span_str(id)) : SL_MAP_NONE;
    return i == SL_MAP_NONE ? NULL : &places->list[i];
}

static void index_all(struct sl_places *places)
{
    if (!places->arena)
        places->arena = sl_arena_new(4096);
    sl_arena_reset(places->arena);
    sl_map_init(&places->index, places->arena, places->n);
    for (size_t i = 0; i < places->n; i++)
        sl_map_index(&places->index, sl_span_str(places->list[i].id));
}

struct sl_place *sl_places_add(struct sl_places *places, const char *id)
{
    struct sl_place *place = &SL_PUSH(places->list, places->n, places->room, "places in shards");
    *place = (struct sl_place){0};
    sl_places_set(&place->id, id);
    if (!places->arena)
        index_all(places);
    else
        sl_map_index(&places->index, sl_span_str(place->id));
    return place;
}

static void free_place(struct sl_place *place)
{
    free(place->id);
    free(place->after);
}

void sl_places_drop_old(struct sl_places *places, int64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < places->n; i++) {
        struct sl_place *place = &places->list[i];
        bool is_old = place->is_done || now_ms - place->unlisted_ms >= UNLISTED_MS;
        if (place->unlisted_ms && place->misses >= MISSES && is_old)
            free_place(place);
        else
            places->list[kept++] = *place;
    }
    if (kept == places->n)
        return;
    places->n = kept;
    index_all(places);
}

void sl_places_clean_up(struct sl_places *places)
{
    for (size_t i = 0; i < places->n; i++)
        free_place(&places->list[i]);
    free(places->list);
    free(places->stream_arn);
    sl_arena_destroy(places->arena);
    *places = (struct sl_places){0};
}

/* ---- the file ---- */

static int64_t time_of(const json_t *object, const char *name)
{
    int64_t ns, step_ns;
    const char *text = json_string_value(json_object_get(object, name));
    return text && sl_time_parse(sl_span_str(text), &ns, &step_ns) ? ns / 1000000 : 0;
}

static enum sl_status take_file(struct sl_places *places, const char *path, const char *stream_arn,
                                const json_t *root, struct sl_error *error)
{
    const char *stream = json_string_value(json_object_get(root, "stream"));
    json_t *shards = json_object_get(root, "shards");
    if (!stream || !json_is_object(shards))
        return sl_fail(error, SL_REJECT, "BadCheckpoint", "%s: is not a checkpoint file", path);
    if (stream_arn && strcmp(stream, stream_arn) != 0)
        return sl_fail(
            error, SL_REJECT, "OtherStream",
            "%s: is the checkpoint of another stream, %s; this stream is %s. Name another file, or "
            "say --follow-new-stream: then the shards of the file's stream come first",
            path, stream, stream_arn);
    const char *id;
    json_t *shard;
    sl_places_set(&places->stream_arn, stream);
    places->through_ms = time_of(root, "through");
    places->complete_since_ms = time_of(root, "complete_since");
    json_object_foreach(shards, id, shard)
    {
        struct sl_place *place = sl_places_add(places, id);
        sl_places_set(&place->after, json_string_value(json_object_get(shard, "after")));
        place->is_done = json_is_true(json_object_get(shard, "done"));
        place->since_ms = time_of(shard, "since");
        place->unlisted_ms = time_of(shard, "unlisted");
    }
    return SL_OK;
}

enum sl_status sl_places_read(struct sl_places *places, const char *path, const char *stream_arn,
                              struct sl_error *error)
{
    *places = (struct sl_places){0};
    sl_places_set(&places->stream_arn, stream_arn);
    if (!path || access(path, F_OK) != 0)
        return SL_OK;
    json_error_t why;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    enum sl_status status =
        root
            ? take_file(places, path, stream_arn, root, error)
            : sl_fail(error, SL_REJECT, "BadCheckpoint",
                      "%s is not a checkpoint of sluice tail: %s (byte %d). Name another file, or remove it: "
                      "tail then begins where --from says",
                      path, why.text, why.position);
    json_decref(root);
    return status;
}

static void add_time(struct sl_buffer *b, const char *name, int64_t ms)
{
    char text[SL_TIME_BYTES];
    if (!ms)
        return;
    sl_time_text(ms * 1000000, text);
    sl_json_add_member(b, name, sl_span_str(text));
}

static void add_shard(struct sl_buffer *b, const struct sl_place *place)
{
    sl_json_add_string(b, sl_span_str(place->id));
    sl_buffer_add_str(b, ":{");
    if (place->after)
        sl_json_add_member(b, "after", sl_span_str(place->after));
    else if (!place->is_done)
        add_time(b, "since", place->since_ms);
    if (place->is_done)
        sl_json_add_raw(b, "done", SL_LIT("true"));
    add_time(b, "unlisted", place->unlisted_ms);
    sl_buffer_add_char(b, '}');
}

void sl_places_write(const struct sl_places *places, struct sl_buffer *b)
{
    bool is_first = true;
    sl_buffer_add_char(b, '{');
    sl_json_add_member(b, "stream", sl_span_str(places->stream_arn));
    add_time(b, "through", places->through_ms);
    add_time(b, "complete_since", places->complete_since_ms);
    sl_buffer_add_str(b, ",\"shards\":{");
    for (size_t i = 0; i < places->n; i++) {
        const struct sl_place *place = &places->list[i];
        if (!place->after && !place->is_done && !place->since_ms)
            continue;
        if (!is_first)
            sl_buffer_add_char(b, ',');
        add_shard(b, place);
        is_first = false;
    }
    sl_buffer_add_str(b, "}}\n");
}
