/* Keeps the places of a live stream's shards, in memory and in the checkpoint file. */
#include "replay/source/places.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/json_write.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_BYTES (16 * 1024 * 1024)

void sl_places_set(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        sl_die("out of memory: a place in a shard");
    free(*text);
    *text = copy;
}

static struct sl_place *find(const struct sl_places *places, const char *id)
{
    for (size_t i = 0; i < places->n; i++)
        if (strcmp(places->list[i].id, id) == 0)
            return &places->list[i];
    return NULL;
}

static struct sl_place *add(struct sl_places *places, const char *id)
{
    places->list = realloc(places->list, (places->n + 1) * sizeof(*places->list));
    if (!places->list)
        sl_die("out of memory: places in shards");
    struct sl_place *place = &places->list[places->n++];
    *place = (struct sl_place){0};
    sl_places_set(&place->id, id);
    sl_places_set(&place->parent, "");
    return place;
}

/* ---- the file:
 * {"stream":"arn","through":"2026-...","shards":{"shardId-...":{"after":"..."},"shardId-...":{"done":true}}}
 * ----
 */

static enum sl_status take_file(struct sl_places *places, const json_t *root, struct sl_error *error)
{
    const char *stream = json_string_value(json_object_get(root, "stream"));
    json_t *shards = json_object_get(root, "shards");
    if (!stream || !json_is_object(shards))
        return sl_fail(error, SL_REJECT, "BadCheckpoint", "%s: is not a checkpoint file", places->path);
    if (strcmp(stream, places->stream_arn) != 0)
        return sl_fail(error, SL_REJECT, "OtherStream",
                       "%s: is the checkpoint of another stream, %s; this stream is %s. Name another file",
                       places->path, stream, places->stream_arn);
    struct sl_clock *clock = sl_clock_system();
    int64_t ns, step_ns, now_ms = clock->wall_ns(clock) / 1000000;
    const char *id, *through = json_string_value(json_object_get(root, "through"));
    json_t *shard;
    if (through && sl_time_parse(sl_span_str(through), &ns, &step_ns))
        places->through_ms = ns / 1000000;
    json_object_foreach(shards, id, shard)
    {
        struct sl_place *place = add(places, id);
        sl_places_set(&place->after, json_string_value(json_object_get(shard, "after")));
        place->is_done = json_is_true(json_object_get(shard, "done"));
        place->ended_ms = place->is_done ? now_ms : 0;
    }
    return SL_OK;
}

enum sl_status sl_places_open(struct sl_places *places, const char *path, const char *stream_arn,
                              struct sl_error *error)
{
    *places = (struct sl_places){.path = path};
    sl_places_set(&places->stream_arn, stream_arn);
    if (path)
        sl_disk_sweep_path(path);
    if (!path || access(path, F_OK) != 0)
        return SL_OK;
    json_error_t why;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    enum sl_status status =
        root ? take_file(places, root, error)
             : sl_fail(error, SL_REJECT, "BadCheckpoint", "%s: %s (byte %d)", path, why.text, why.position);
    json_decref(root);
    return status;
}

void sl_places_clean_up(struct sl_places *places)
{
    for (size_t i = 0; i < places->n; i++) {
        free(places->list[i].id);
        free(places->list[i].parent);
        free(places->list[i].after);
        free(places->list[i].iterator);
    }
    free(places->list);
    free(places->stream_arn);
    *places = (struct sl_places){0};
}

static void add_shard(struct sl_buffer *b, const struct sl_place *place, bool is_first)
{
    if (!is_first)
        sl_buffer_add_char(b, ',');
    sl_json_add_string(b, sl_span_str(place->id));
    sl_buffer_add_str(b, ":{");
    if (place->after)
        sl_json_add_member(b, "after", sl_span_str(place->after));
    if (place->is_done)
        sl_json_add_raw(b, "done", SL_LIT("true"));
    sl_buffer_add_char(b, '}');
}

/* Leaves out the shards that the stream no longer lists, so that the file does not grow for ever. */
enum sl_status sl_places_save(const struct sl_places *places, struct sl_error *error)
{
    struct sl_buffer b;
    if (!places->path)
        return SL_OK;
    sl_buffer_init(&b, FILE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, "stream", sl_span_str(places->stream_arn));
    if (places->through_ms) {
        char through[SL_TIME_BYTES];
        sl_time_text(places->through_ms * 1000000, through);
        sl_json_add_member(&b, "through", sl_span_str(through));
    }
    sl_buffer_add_str(&b, ",\"shards\":{");
    bool is_first = true;
    for (size_t i = 0; i < places->n; i++) {
        const struct sl_place *place = &places->list[i];
        if (!place->is_listed || (!place->after && !place->is_done))
            continue;
        add_shard(&b, place, is_first);
        is_first = false;
    }
    sl_buffer_add_str(&b, "}}\n");
    int err = b.failed ? EFBIG : sl_disk_replace_path(places->path, sl_buffer_span(&b));
    sl_buffer_clean_up(&b);
    return err ? sl_fail(error, SL_FATAL, "CannotWrite", "--checkpoint %s: cannot be written: %s",
                         places->path, strerror(err))
               : SL_OK;
}

/* ---- the stream ---- */

static void take_over(struct sl_place *place, const struct sl_place *old)
{
    sl_places_set(&place->after, old->after);
    sl_places_set(&place->iterator, old->iterator);
    place->is_done = old->is_done;
    place->is_skipped_to_latest = old->is_skipped_to_latest;
    place->through_ms = old->through_ms;
    place->empty_reads = old->empty_reads;
    place->empty_since_ms = old->empty_since_ms;
    place->ended_ms = old->ended_ms;
}

static size_t count_lost(const struct sl_places *old, const struct sl_places *fresh)
{
    size_t n = 0;
    for (size_t i = 0; i < old->n; i++)
        n += !old->list[i].is_done && !find(fresh, old->list[i].id);
    return n;
}

size_t sl_places_update(struct sl_places *places, const struct sl_live_shards *shards, bool from_latest)
{
    struct sl_places fresh = {
        .path = places->path, .stream_arn = places->stream_arn, .through_ms = places->through_ms};
    for (size_t i = 0; i < shards->n; i++) {
        const struct sl_live_shard *shard = &shards->list[i];
        struct sl_place *old = find(places, shard->id), *place = add(&fresh, shard->id);
        sl_places_set(&place->parent, shard->parent);
        place->is_closed = shard->is_closed;
        place->is_listed = true;
        if (old) {
            take_over(place, old);
        } else if (from_latest && places->n == 0) {
            place->is_skipped_to_latest = true;
            place->is_done = shard->is_closed;
        }
    }
    size_t lost = count_lost(places, &fresh);
    places->stream_arn = NULL;
    sl_places_clean_up(places);
    *places = fresh;
    return lost;
}

bool sl_places_is_ready(const struct sl_places *places, const struct sl_place *place)
{
    const struct sl_place *parent = place->parent[0] ? find(places, place->parent) : NULL;
    return !place->is_done && (!parent || parent->is_done);
}

/* ---- how far the table's changes are handled ---- */

/* A read may be empty although more records follow: "it might take multiple calls to get to a portion of the
 * shard that contains stream records" (API reference of GetRecords). After so many in a row, for so long,
 * there are none. */
#define EMPTY_READS 4
#define EMPTY_MS    3000

/* A change is in its stream a moment after it was made, and most within a second. */
#define LATE_MS 2000

/* The stream's list may lack a shard's children for about so long. */
#define CHILDREN_MS 60000

/* A closed shard has no later changes, but those who wait for it may have: it is at its end when the service
 * says so, and not before. */
void sl_places_handled(struct sl_place *place, int64_t read_ms, int64_t last_ms)
{
    if (last_ms) {
        place->through_ms = last_ms;
        place->empty_reads = 0;
        return;
    }
    if (place->empty_reads++ == 0)
        place->empty_since_ms = read_ms;
    bool is_at_end =
        !place->is_closed && place->empty_reads >= EMPTY_READS && read_ms - place->empty_since_ms >= EMPTY_MS;
    if (is_at_end && read_ms - LATE_MS > place->through_ms)
        place->through_ms = read_ms - LATE_MS;
}

/* A shard that waits for its parent has later changes than that. A shard that has ended counts until all of
 * its children are listed for certain: of two that it was split into, one may be listed before the other. */
bool sl_places_through(struct sl_places *places, int64_t now_ms)
{
    int64_t through_ms = INT64_MAX;
    for (size_t i = 0; i < places->n; i++) {
        const struct sl_place *place = &places->list[i];
        bool may_have_children = place->is_done && place->ended_ms && now_ms - place->ended_ms < CHILDREN_MS;
        if (!may_have_children && !sl_places_is_ready(places, place))
            continue;
        through_ms = place->through_ms < through_ms ? place->through_ms : through_ms;
    }
    if (through_ms == INT64_MAX || through_ms <= places->through_ms)
        return false;
    places->through_ms = through_ms;
    return true;
}
