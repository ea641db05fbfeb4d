/* Index objects, read by probes: ranges of them that are in flight together. */
#include "data/recall/shelf.h"

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "data/source/listing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_MS     60000
#define TOGETHER    16                           /* probes in flight */
#define FLIGHT_MOST ((uint64_t)64 * 1024 * 1024) /* their bytes, unless one alone has more */
#define WHOLE_BYTES ((uint64_t)1024 * 1024)      /* so much is read at once, whatever is wanted of it */
#define MANY        16                           /* small index objects that are left alone */
#define KEY_BYTES   (sizeof(SL_SHELF_FOLDER) + SL_ITEM_INDEX_NAME_BYTES)

/* An index object. */
struct volume {
    char key[KEY_BYTES];
    uint64_t entries, runs, objects;
    uint64_t *hits;
    size_t n_hits, hits_room;
    size_t n_live; /* runs that were asked for */
    bool is_bad;   /* it cannot be read, or is gone */
};

/* A run of a volume. */
struct place {
    struct sl_item_index_run run;
    size_t volume;
    uint64_t base;
    bool is_live;
};

enum probe_kind { WHOLE, RUNS, AROUND, BELOW, ABOVE };

/* A range of a volume that is to be read: entries, for one item; or the runs; or all. */
struct probe {
    enum probe_kind kind;
    size_t volume, item;
    uint64_t from, n;             /* entries */
    uint64_t low, high;           /* the item's are among these, */
    uint64_t low_item, high_item; /* and the items on both sides of them are these */
};

struct sl_shelf {
    struct sl_shelf_options options;
    struct sl_shelf_counts counts;
    struct sl_sha256 sha;
    struct sl_arena *arena, *scratch; /* as long as the shelf; of one call */
    struct volume *volumes;
    size_t n, room;
    struct place *places; /* in the order of `seals` */
    size_t n_places, places_room;
    struct sl_map seals;
    struct probe *probes;
    size_t n_probes, probes_room;
};

static struct sl_call begin_call(struct sl_shelf *shelf)
{
    struct sl_clock *clock = shelf->options.clock;
    sl_arena_reset(shelf->scratch);
    return (struct sl_call){.arena = shelf->scratch, .deadline_ms = clock->now_ms(clock) + CALL_MS};
}

static void note(struct sl_shelf *shelf, const char *what, enum sl_status status, const char *code,
                 const char *text)
{
    if (shelf->counts.trouble.status == SL_OK)
        (void)sl_fail(&shelf->counts.trouble, status, code, "the index cannot be %s: %s", what, text);
}

/* ---- listing ---- */

static enum sl_status take_volume(void *arg, const struct sl_object_entry *entry, struct sl_error *error)
{
    struct sl_shelf *shelf = arg;
    (void)error;
    struct volume volume = {.n_hits = 0};
    struct sl_span name = sl_span_from(entry->key, strlen(SL_SHELF_FOLDER));
    if (entry->key.len >= KEY_BYTES ||
        !sl_item_index_read_name(name, entry->bytes, &volume.entries, &volume.runs))
        return SL_OK;
    memcpy(volume.key, entry->key.ptr, entry->key.len);
    SL_PUSH(shelf->volumes, shelf->n, shelf->room, "the index objects") = volume;
    return SL_OK;
}

static void list_volumes(struct sl_shelf *shelf)
{
    struct sl_error why = SL_NO_ERROR;
    if (sl_listing_each(shelf->options.reads, shelf->options.clock, SL_LIT(SL_SHELF_FOLDER), sl_span(NULL, 0),
                        take_volume, shelf, &why) != SL_OK)
        note(shelf, "listed", why.status, why.code, why.text);
}

/* ---- probes ---- */

static void probe(struct sl_shelf *shelf, struct probe what)
{
    SL_PUSH(shelf->probes, shelf->n_probes, shelf->probes_room, "what is read of an index") = what;
}

/* Entries to both sides of where one should be: four standard deviations, if each item had one entry. Where
 * items with many of them move the others, a second look finds the place from what the first one saw. */
static uint64_t reach_of(uint64_t entries)
{
    uint64_t root = 1;
    while (root * root < entries)
        root *= 2;
    return 2 * root + 8;
}

static void plan_around(struct sl_shelf *shelf, struct probe p)
{
    uint64_t item = shelf->options.items[p.item], reach = reach_of(p.high - p.low), room = p.high - p.low;
    double share =
        p.high_item > p.low_item ? (double)(item - p.low_item) / (double)(p.high_item - p.low_item) : 0;
    uint64_t middle = (uint64_t)(share * (double)room);
    uint64_t from = middle > reach ? middle - reach : 0, to = middle + reach < room ? middle + reach : room;
    p.kind = AROUND;
    p.from = p.low + from;
    p.n = to - from;
    if (room)
        probe(shelf, p);
}

static void plan(struct sl_shelf *shelf, size_t at)
{
    const struct volume *volume = &shelf->volumes[at];
    uint64_t bytes = volume->entries * SL_ITEM_INDEX_ENTRY_BYTES;
    uint64_t wanted = 2 * reach_of(volume->entries) * SL_ITEM_INDEX_ENTRY_BYTES * shelf->options.n;
    if (shelf->options.n && (bytes <= WHOLE_BYTES || wanted >= bytes)) {
        probe(shelf, (struct probe){.kind = WHOLE, .volume = at, .n = volume->entries});
        return;
    }
    probe(shelf, (struct probe){.kind = RUNS, .volume = at, .from = volume->entries});
    for (size_t i = 0; i < shelf->options.n; i++)
        plan_around(
            shelf, (struct probe){.volume = at, .item = i, .high = volume->entries, .high_item = UINT64_MAX});
}

static void add_hit(struct volume *volume, uint64_t entry)
{
    SL_PUSH(volume->hits, volume->n_hits, volume->hits_room, "an index's hits") =
        entry % SL_ITEM_INDEX_OBJECTS;
}

static uint64_t item_of(uint64_t entry)
{
    return entry / SL_ITEM_INDEX_OBJECTS * SL_ITEM_INDEX_OBJECTS;
}

/* Both are in rising order. */
static void take_all(struct sl_shelf *shelf, struct volume *volume, const char *at)
{
    const uint64_t *items = shelf->options.items;
    size_t item = 0;
    for (uint64_t i = 0; i < volume->entries; i++, at += SL_ITEM_INDEX_ENTRY_BYTES) {
        uint64_t entry = sl_item_index_entry(at);
        while (item < shelf->options.n && items[item] < item_of(entry))
            item++;
        if (item < shelf->options.n && items[item] == item_of(entry))
            add_hit(volume, entry);
    }
}

/* What is next to a range that begins or ends with the item's entries may have more of them. */
static void plan_beside(struct sl_shelf *shelf, struct probe p, bool is_below)
{
    uint64_t end = p.from + p.n, left = is_below ? p.from - p.low : p.high - end,
             n = 2 * p.n < left ? 2 * p.n : left;
    p.kind = is_below ? BELOW : ABOVE;
    p.from = is_below ? p.from - n : end;
    p.n = n;
    if (n)
        probe(shelf, p);
}

static void take_range(struct sl_shelf *shelf, struct probe p, const char *at)
{
    struct volume *volume = &shelf->volumes[p.volume];
    uint64_t item = shelf->options.items[p.item];
    uint64_t first = item_of(sl_item_index_entry(at));
    uint64_t last = item_of(sl_item_index_entry(at + (p.n - 1) * SL_ITEM_INDEX_ENTRY_BYTES));
    for (uint64_t i = 0; i < p.n; i++) {
        uint64_t entry = sl_item_index_entry(at + i * SL_ITEM_INDEX_ENTRY_BYTES);
        if (item_of(entry) == item)
            add_hit(volume, entry);
    }
    if (p.kind == AROUND && last < item) {
        p.low = p.from + p.n;
        p.low_item = last;
        plan_around(shelf, p);
        return;
    }
    if (p.kind == AROUND && first > item) {
        p.high = p.from;
        p.high_item = first;
        plan_around(shelf, p);
        return;
    }
    if (p.kind != ABOVE && first == item)
        plan_beside(shelf, p, true);
    if (p.kind != BELOW && last == item)
        plan_beside(shelf, p, false);
}

static void take_runs(struct sl_shelf *shelf, size_t volume, const char *at)
{
    uint64_t base = 0;
    for (uint64_t i = 0; i < shelf->volumes[volume].runs; i++, at += SL_ITEM_INDEX_RUN_BYTES) {
        struct place place = {.run = sl_item_index_run(at), .volume = volume, .base = base};
        uint32_t n = shelf->seals.n;
        base += place.run.objects;
        if (sl_map_keep(&shelf->seals, sl_span((const char *)place.run.seal, SL_ITEM_INDEX_SEAL_BYTES)) == n)
            SL_PUSH(shelf->places, shelf->n_places, shelf->places_room, "an index's runs") = place;
    }
    shelf->volumes[volume].objects = base;
}

static uint64_t bytes_of(const struct sl_shelf *shelf, const struct probe *p)
{
    uint64_t runs = shelf->volumes[p->volume].runs * SL_ITEM_INDEX_RUN_BYTES;
    return p->n * SL_ITEM_INDEX_ENTRY_BYTES + (p->kind == WHOLE || p->kind == RUNS ? runs : 0);
}

static void take(struct sl_shelf *shelf, const struct probe *p, const struct sl_object_piece *piece)
{
    struct volume *volume = &shelf->volumes[p->volume];
    if (piece->result.status != SL_OK || piece->bytes.len != bytes_of(shelf, p)) {
        /* Another run may have put it together with others. */
        if (piece->result.status != SL_OK && strcmp(piece->result.code, "NoSuchKey") != 0)
            note(shelf, "read", piece->result.status, piece->result.code, piece->result.text);
        volume->is_bad = true;
        return;
    }
    shelf->counts.read++;
    shelf->counts.read_bytes += piece->bytes.len;
    if (p->kind == WHOLE)
        take_all(shelf, volume, piece->bytes.ptr);
    if (p->kind == WHOLE || p->kind == RUNS)
        take_runs(shelf, p->volume, piece->bytes.ptr + p->n * SL_ITEM_INDEX_ENTRY_BYTES);
    else
        take_range(shelf, *p, piece->bytes.ptr);
}

/* Reads the probes from `at` on that fit into one flight; returns how many. */
static size_t fly(struct sl_shelf *shelf, size_t at)
{
    struct sl_object_port *port = shelf->options.reads;
    struct sl_object_read reads[TOGETHER];
    struct sl_object_piece pieces[TOGETHER];
    struct probe probes[TOGETHER];
    uint64_t bytes = 0;
    size_t n = 0;
    for (; n < TOGETHER && at + n < shelf->n_probes; n++) {
        const struct probe *p = &shelf->probes[at + n];
        bytes += bytes_of(shelf, p);
        if (n && bytes > FLIGHT_MOST)
            break;
        probes[n] = *p;
        reads[n] = (struct sl_object_read){.key = sl_span_str(shelf->volumes[p->volume].key),
                                           .from = p->from * SL_ITEM_INDEX_ENTRY_BYTES,
                                           .max_bytes = bytes_of(shelf, p)};
    }
    const struct sl_call call = begin_call(shelf);
    port->read(port, reads, n, pieces, &call);
    for (size_t i = 0; i < n; i++)
        take(shelf, &probes[i], &pieces[i]);
    return n;
}

static void sort_hits(struct volume *volume)
{
    size_t n = 0;
    if (volume->n_hits)
        qsort(volume->hits, volume->n_hits, sizeof(*volume->hits), sl_item_index_order);
    for (size_t i = 0; i < volume->n_hits; i++)
        if (n == 0 || volume->hits[n - 1] != volume->hits[i])
            volume->hits[n++] = volume->hits[i];
    volume->n_hits = n;
}

struct sl_shelf *sl_shelf_open(const struct sl_shelf_options *options)
{
    struct sl_shelf *shelf = calloc(1, sizeof(*shelf));
    if (!shelf)
        sl_die("out of memory: an index");
    shelf->options = *options;
    shelf->counts.trouble = (struct sl_error)SL_NO_ERROR;
    shelf->arena = sl_arena_new(64 * 1024);
    shelf->scratch = sl_arena_new(64 * 1024);
    sl_sha256_init(&shelf->sha);
    sl_map_init(&shelf->seals, shelf->arena, 1024);
    list_volumes(shelf);
    for (size_t i = 0; i < shelf->n; i++)
        if (shelf->volumes[i].entries + shelf->volumes[i].runs)
            plan(shelf, i);
    for (size_t at = 0; at < shelf->n_probes;)
        at += fly(shelf, at);
    for (size_t i = 0; i < shelf->n; i++)
        sort_hits(&shelf->volumes[i]);
    return shelf;
}

void sl_shelf_close(struct sl_shelf *shelf)
{
    if (!shelf)
        return;
    for (size_t i = 0; i < shelf->n; i++)
        free(shelf->volumes[i].hits);
    free(shelf->volumes);
    free(shelf->places);
    free(shelf->probes);
    sl_sha256_clean_up(&shelf->sha);
    sl_arena_destroy(shelf->arena);
    sl_arena_destroy(shelf->scratch);
    free(shelf);
}

const struct sl_shelf_counts *sl_shelf_counts(const struct sl_shelf *shelf)
{
    return &shelf->counts;
}

/* ---- runs ---- */

static size_t first_hit(const struct volume *volume, uint64_t least)
{
    size_t low = 0, high = volume->n_hits;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (volume->hits[middle] < least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sl_shelf_find(struct sl_shelf *shelf, const unsigned char seal[SL_ITEM_INDEX_SEAL_BYTES],
                   struct sl_shelf_run *out)
{
    uint32_t at = sl_map_find(&shelf->seals, sl_span((const char *)seal, SL_ITEM_INDEX_SEAL_BYTES));
    if (at == SL_MAP_NONE || shelf->volumes[shelf->places[at].volume].is_bad)
        return false;
    struct place *place = &shelf->places[at];
    struct volume *volume = &shelf->volumes[place->volume];
    volume->n_live += !place->is_live;
    place->is_live = true;
    size_t first = first_hit(volume, place->base);
    *out = (struct sl_shelf_run){.run = place->run,
                                 .hits = volume->n_hits ? volume->hits + first : NULL,
                                 .n = first_hit(volume, place->base + place->run.objects) - first,
                                 .base = place->base};
    return true;
}

/* ---- writing ---- */

static bool write_volume(struct sl_shelf *shelf, struct sl_item_index_build *build, char key[KEY_BYTES])
{
    struct sl_object_port *port = shelf->options.writes;
    char name[SL_ITEM_INDEX_NAME_BYTES];
    struct sl_buffer content;
    struct sl_result result = {.status = SL_OK};
    sl_buffer_init(&content, SIZE_MAX / 4);
    sl_item_index_make(build, &shelf->sha, &content, name);
    snprintf(key, KEY_BYTES, SL_SHELF_FOLDER "%s", name);
    const struct sl_object object = {.key = sl_span_str(key), .body = sl_buffer_span(&content)};
    const struct sl_call call = begin_call(shelf);
    port->apply(port, &object, 1, &result, &call);
    sl_buffer_clean_up(&content);
    if (result.status != SL_OK)
        note(shelf, "written", result.status, result.code, result.text);
    shelf->counts.written += result.status == SL_OK;
    return result.status == SL_OK;
}

void sl_shelf_write(struct sl_shelf *shelf, struct sl_item_index_build *build)
{
    char key[KEY_BYTES];
    if (build->n_runs && shelf->options.writes)
        (void)write_volume(shelf, build, key);
}

/* ---- tidying ---- */

static bool is_small(const struct volume *volume)
{
    return volume->entries < SL_ITEM_INDEX_ENTRIES / 2 || volume->n_live < volume->runs / 2;
}

/* The place of a volume's run that holds the object, or of the first one. Places of a volume are together. */
static const struct place *place_of(const struct place *places, size_t n, uint64_t object)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (places[middle].base <= object)
            low = middle;
        else
            high = middle;
    }
    return &places[low];
}

struct move {
    uint64_t run, object, item;
};

static int by_run(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    return (x->run > y->run) - (x->run < y->run);
}

/* The entries of the runs that are still there, run by run. */
static void move_entries(const struct place *places, size_t n, const char *entries, uint64_t n_entries,
                         struct sl_item_index_build *build)
{
    struct move *moves = calloc(n_entries + 1, sizeof(*moves));
    size_t n_moves = 0, at = 0;
    if (!moves)
        sl_die("out of memory: an index");
    for (uint64_t i = 0; i < n_entries; i++) {
        uint64_t entry = sl_item_index_entry(entries + i * SL_ITEM_INDEX_ENTRY_BYTES),
                 object = entry % SL_ITEM_INDEX_OBJECTS;
        const struct place *place = place_of(places, n, object);
        if (place->is_live && object - place->base < place->run.objects)
            moves[n_moves++] =
                (struct move){(uint64_t)(place - places), object - place->base, item_of(entry)};
    }
    qsort(moves, n_moves, sizeof(*moves), by_run);
    for (size_t i = 0; i < n; i++) {
        for (; at < n_moves && moves[at].run == i; at++)
            sl_item_index_add(build, moves[at].item, moves[at].object);
        if (places[i].is_live)
            sl_item_index_end_run(build, &places[i].run);
    }
    free(moves);
}

static bool move_volume(struct sl_shelf *shelf, size_t at, struct sl_item_index_build *build)
{
    const struct volume *volume = &shelf->volumes[at];
    struct sl_object_port *port = shelf->options.reads;
    const struct sl_call call = begin_call(shelf);
    uint64_t bytes = volume->entries * SL_ITEM_INDEX_ENTRY_BYTES;
    size_t first = 0, n = 0;
    while (first < shelf->n_places && shelf->places[first].volume != at)
        first++;
    while (first + n < shelf->n_places && shelf->places[first + n].volume == at)
        n++;
    const struct sl_object_read read = {.key = sl_span_str(volume->key), .max_bytes = bytes + 1};
    struct sl_object_piece piece = {.bytes = {NULL, 0}};
    if (bytes)
        port->read(port, &read, 1, &piece, &call);
    if (bytes && (piece.result.status != SL_OK || piece.bytes.len < bytes))
        return false;
    if (n)
        move_entries(&shelf->places[first], n, piece.bytes.ptr, volume->entries, build);
    return true;
}

static void remove_volume(struct sl_shelf *shelf, size_t at)
{
    struct sl_object_port *port = shelf->options.writes;
    const struct sl_object_removal removal = {.key = sl_span_str(shelf->volumes[at].key)};
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = begin_call(shelf);
    if (port->remove)
        port->remove(port, &removal, 1, &result, &call);
    if (result.status != SL_OK)
        note(shelf, "tidied", result.status, result.code, result.text);
}

/* An index object goes when its runs are in another one, `key`. */
static void remove_small(struct sl_shelf *shelf, size_t from, size_t to, const char *key)
{
    for (size_t i = from; i < to; i++)
        if (!shelf->volumes[i].is_bad && is_small(&shelf->volumes[i]) &&
            strcmp(shelf->volumes[i].key, key) != 0)
            remove_volume(shelf, i);
}

static void put_together(struct sl_shelf *shelf)
{
    struct sl_item_index_build build = {.n = 0};
    char key[KEY_BYTES] = "";
    size_t begun = 0; /* the first volume whose runs are in `build` */
    bool is_good = true;
    for (size_t i = 0; i <= shelf->n && is_good; i++) {
        bool is_taken = i < shelf->n && !shelf->volumes[i].is_bad && is_small(&shelf->volumes[i]);
        if (i == shelf->n || (is_taken && sl_item_index_is_full(&build, shelf->volumes[i].objects))) {
            is_good = !build.n_runs || write_volume(shelf, &build, key);
            if (is_good)
                remove_small(shelf, begun, i, key);
            begun = i;
        }
        if (is_taken && is_good)
            is_good = move_volume(shelf, i, &build);
    }
    sl_item_index_clean_up(&build);
}

void sl_shelf_tidy(struct sl_shelf *shelf)
{
    size_t n_small = 0, n_dead = 0;
    if (!shelf->options.writes)
        return;
    for (size_t i = 0; i < shelf->n; i++) {
        const struct volume *volume = &shelf->volumes[i];
        n_small += !volume->is_bad && is_small(volume);
        n_dead += !volume->is_bad && volume->n_live == 0;
    }
    if (n_small > MANY)
        put_together(shelf);
    else
        for (size_t i = 0; n_dead && i < shelf->n; i++)
            if (!shelf->volumes[i].is_bad && shelf->volumes[i].n_live == 0)
                remove_volume(shelf, i);
}
