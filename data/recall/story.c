/* Changes are sorted on disk: by item, by order, by event. */
#include "data/recall/story.h"

#include "base/error.h"
#include "data/sorter.h"
#include "data/verify/archive/walk.h"
#include "streams/record.h"
#include "streams/value.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE_BYTES  ((size_t)1024 * 1024)
#define BODY_BYTES   (2 * SL_SOURCE_RECORD_BYTES)
#define SORT_AT_ONCE 20000

/* The parts of a sorter's key: of which item, its order in decimal digits, and which event it is. */
#define ORDER_DIGITS 40
#define ITEM_BYTES   4
#define ORDER_BYTES  (ORDER_DIGITS / 2)
#define EVENT_BYTES  (SL_SORTER_KEY_BYTES - ITEM_BYTES - ORDER_BYTES)

/* A change that was read from the sorter. */
struct change {
    struct sl_arena *arena;
    unsigned char key[SL_SORTER_KEY_BYTES];
    struct sl_batch batch;
    struct sl_span object;
    bool has, is_late;
};

struct sl_story {
    struct sl_recall *recall;
    struct sl_span ttl_attribute;
    struct sl_sorter *sorter;
    struct sl_arena *arena; /* of one piece */
    struct sl_sha256 sha;
    struct sl_buffer body;
    char table[SL_SOURCE_TABLE_BYTES];
    bool is_read, is_sorted;
    uint64_t entries, changes;
    struct change told[3]; /* the one before, this one, the next one */
    size_t at;
};

struct sl_story *sl_story_open(struct sl_recall *recall, const char *folder, struct sl_span ttl_attribute)
{
    struct sl_story *story = calloc(1, sizeof(*story));
    if (!story)
        sl_die("out of memory: a history");
    story->recall = recall;
    story->ttl_attribute = ttl_attribute;
    story->sorter = sl_sorter_open(folder, 0);
    story->arena = sl_arena_new(256 * 1024);
    for (size_t i = 0; i < 3; i++)
        story->told[i].arena = sl_arena_new(64 * 1024);
    sl_sha256_init(&story->sha);
    sl_buffer_init(&story->body, BODY_BYTES);
    return story;
}

void sl_story_close(struct sl_story *story)
{
    if (!story)
        return;
    sl_sorter_close(story->sorter);
    sl_sha256_clean_up(&story->sha);
    sl_buffer_clean_up(&story->body);
    for (size_t i = 0; i < 3; i++)
        sl_arena_destroy(story->told[i].arena);
    sl_arena_destroy(story->arena);
    free(story);
}

uint64_t sl_story_doubles(const struct sl_story *story)
{
    return story->entries - story->changes;
}

struct sl_span sl_story_table(const struct sl_story *story)
{
    return sl_span_str(story->table[0] ? story->table : NULL);
}

/* ---- reading ---- */

/* Two digits a byte, with zeros before them: bytes compare as the numbers do. */
static void put_order(struct sl_span digits, unsigned char out[ORDER_BYTES])
{
    memset(out, 0, ORDER_BYTES);
    if (digits.len > ORDER_DIGITS)
        digits = sl_span_from(digits, digits.len - ORDER_DIGITS);
    for (size_t i = 0; i < digits.len; i++) {
        size_t place = ORDER_DIGITS - digits.len + i;
        out[place / 2] |= (unsigned char)((digits.ptr[i] - '0') << (place % 2 ? 0 : 4));
    }
}

static void make_key(struct sl_story *story, const struct sl_record *r, size_t item,
                     unsigned char out[SL_SORTER_KEY_BYTES])
{
    unsigned char digest[SL_SHA256_BYTES];
    uint32_t number = htobe32((uint32_t)item);
    struct sl_span id = sl_record_text(r, SL_FIELD_EVENT_ID);
    if (!id.len)
        id = sl_record_text(r, SL_FIELD_RAW);
    memcpy(out, &number, ITEM_BYTES);
    put_order(sl_record_order(r, story->arena), out + ITEM_BYTES);
    sl_sha256_parts(&story->sha, &id, 1, digest);
    memcpy(out + ITEM_BYTES + ORDER_BYTES, digest, EVENT_BYTES);
}

static enum sl_status check_table(struct sl_story *story, const struct sl_record *r,
                                  const struct sl_recall_piece *piece, struct sl_error *error)
{
    if (sl_source_same_table(r, story->table))
        return SL_OK;
    return sl_fail(error, SL_REJECT, "TwoTables",
                   "%.*s: has changes of the table %.*s, and others are of %s: name the place of one "
                   "table's objects, below the archive's",
                   SL_ARG(piece->object.key), SL_ARG(sl_record_text(r, SL_FIELD_TABLE)), story->table);
}

static enum sl_status take(struct sl_story *story, const struct sl_recall_piece *piece, size_t i,
                           struct sl_error *error)
{
    const struct sl_record *r = sl_batch_record(&piece->piece.batch, i);
    struct sl_sorter_entry entry = {.order_bytes = 0, .flags = piece->is_late};
    if (check_table(story, r, piece, error) != SL_OK)
        return SL_REJECT;
    make_key(story, r, piece->item[i], entry.key);
    sl_buffer_reset(&story->body);
    sl_buffer_add_span(&story->body, piece->object.key);
    sl_buffer_add_char(&story->body, '\0');
    sl_buffer_add_span(&story->body, sl_record_text(r, SL_FIELD_RAW));
    story->entries++;
    return sl_sorter_add(story->sorter, &entry, sl_buffer_span(&story->body), error);
}

static enum sl_status read_piece(struct sl_story *story, int64_t deadline_ms, struct sl_error *error)
{
    struct sl_recall_piece piece;
    sl_arena_reset(story->arena);
    const struct sl_call call = {.arena = story->arena, .deadline_ms = deadline_ms};
    enum sl_status status = sl_recall_pull(story->recall, PIECE_BYTES, &call, &piece, error);
    for (size_t i = 0; status == SL_OK && i < piece.piece.batch.n; i++)
        if (piece.item[i] != SL_RECALL_NONE)
            status = take(story, &piece, i, error);
    if (status == SL_OK)
        story->is_read = piece.piece.is_last;
    return status;
}

enum sl_status sl_story_read(struct sl_story *story, int64_t deadline_ms, bool *is_read,
                             struct sl_error *error)
{
    enum sl_status status = story->is_read
                                ? sl_sorter_merge(story->sorter, SORT_AT_ONCE, &story->is_sorted, error)
                                : read_piece(story, deadline_ms, error);
    *is_read = story->is_sorted;
    return status;
}

/* ---- telling ---- */

static enum sl_status decode(const struct sl_story *story, struct change *change, struct sl_span body,
                             struct sl_error *error)
{
    const struct sl_decode_options options = {.any_shape = true, .ttl_attribute = story->ttl_attribute};
    char *copy = sl_arena_copy(change->arena, body);
    change->object = sl_span_str(copy);
    struct sl_span raw = sl_span(copy + change->object.len + 1, body.len - change->object.len - 1);
    return sl_batch_decode(raw, change->arena, &options, &change->batch, error);
}

static enum sl_status read_change(struct sl_story *story, struct change *change, struct sl_error *error)
{
    struct sl_sorter_entry entry;
    struct sl_span body = {NULL, 0};
    enum sl_status status;
    sl_arena_reset(change->arena);
    do {
        status = sl_sorter_next(story->sorter, &entry, &body, &change->has, error);
    } while (status == SL_OK && change->has && !body.ptr);
    if (status != SL_OK || !change->has)
        return status;
    story->changes++;
    memcpy(change->key, entry.key, sizeof(change->key));
    change->is_late = entry.flags != 0;
    return decode(story, change, body, error);
}

static const struct sl_record *record_of(const struct change *change)
{
    return sl_batch_record(&change->batch, 0);
}

static bool same_item(const struct change *a, const struct change *b)
{
    return a->has && b->has && memcmp(a->key, b->key, ITEM_BYTES) == 0;
}

/* Through Kinesis a change has no number, and its time is its order. */
static bool are_tied(const struct change *a, const struct change *b)
{
    return same_item(a, b) && memcmp(a->key, b->key, ITEM_BYTES + ORDER_BYTES) == 0 &&
           !sl_record_text(record_of(b), SL_FIELD_SEQUENCE_NUMBER).ptr;
}

static void judge(const struct change *before, const struct change *this, struct sl_story_change *out)
{
    const struct sl_record *r = out->record;
    struct sl_value old = sl_record_image(r, SL_OLD_IMAGE), left = {.type = SL_NONE};
    bool follows = same_item(before, this);
    enum sl_event event = sl_record_event(r);
    if (follows)
        left = sl_record_image(record_of(before), SL_NEW_IMAGE);
    bool is_known = event == SL_INSERT || old.type != SL_NONE || (follows && left.type != SL_NONE);
    out->before = event == SL_INSERT ? (struct sl_value){.type = SL_NONE} : old.type ? old : left;
    out->before_is_known = is_known;
    if (!follows || this->is_late || out->is_tied || are_tied(before, this))
        return;
    bool is_same = !old.type || !left.type || sl_value_equal(old, left);
    out->gap = sl_chain_gap(sl_record_event(record_of(before)), event, is_same);
}

enum sl_status sl_story_next(struct sl_story *story, struct sl_story_change *out, bool *has,
                             struct sl_error *error)
{
    struct change *before = &story->told[story->at % 3], *this = &story->told[(story->at + 1) % 3],
                  *next = &story->told[(story->at + 2) % 3];
    enum sl_status status = SL_OK;
    if (story->at == 0)
        status = read_change(story, this, error);
    if (status == SL_OK && this->has)
        status = read_change(story, next, error);
    *has = this->has;
    if (status != SL_OK || !*has)
        return status;
    uint32_t number;
    memcpy(&number, this->key, ITEM_BYTES);
    *out =
        (struct sl_story_change){.item = be32toh(number), .record = record_of(this), .object = this->object};
    out->is_tied = are_tied(before, this) || are_tied(this, next);
    judge(before, this, out);
    story->at++;
    return SL_OK;
}
