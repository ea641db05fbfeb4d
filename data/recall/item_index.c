/* The format of an index object. */
#include "data/recall/item_index.h"

#include "base/array.h"
#include "base/hash.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARE       256 /* one name of so many ends a run */
#define DIGEST_HEX  16
#define VERSION     ".v1"
#define ENTRY_SHIFT 24

uint64_t sl_item_index_key(const unsigned char digest[SL_SHA256_BYTES])
{
    uint64_t item = 0;
    for (size_t i = 0; i < 5; i++)
        item = item << 8 | digest[i];
    return item << ENTRY_SHIFT;
}

/* ---- runs ---- */

/* Lengths stand before texts, so no two lists of objects look alike. */
void sl_item_index_seal_add(struct sl_item_index_seal *seal, struct sl_span key, uint64_t bytes,
                            struct sl_span etag)
{
    const uint64_t head[] = {htole64(key.len), htole64(bytes), htole64(etag.len)};
    const struct sl_span parts[] = {sl_span((const char *)seal->digest, sizeof(seal->digest)),
                                    sl_span((const char *)head, sizeof(head)), key,
                                    sl_span(etag.len ? etag.ptr : "", etag.len)};
    sl_sha256_parts(seal->sha, parts, SL_COUNT(parts), seal->digest);
}

static size_t folder_bytes(struct sl_span key)
{
    const char *slash = memrchr(key.ptr, '/', key.len);
    return slash ? (size_t)(slash - key.ptr) + 1 : 0;
}

bool sl_item_index_parts(struct sl_span key, struct sl_span next)
{
    size_t n = folder_bytes(key);
    return sl_hash(key) % SHARE == 0 || n != folder_bytes(next) || memcmp(key.ptr, next.ptr, n) != 0;
}

/* ---- writing ---- */

void sl_item_index_add(struct sl_item_index_build *build, uint64_t item, uint64_t object)
{
    uint64_t entry = item | (build->objects + object);
    /* The changes of one item often follow each other. */
    if (build->n == build->ended || build->entries[build->n - 1] != entry)
        SL_PUSH(build->entries, build->n, build->room, "an index") = entry;
}

void sl_item_index_end_run(struct sl_item_index_build *build, const struct sl_item_index_run *run)
{
    SL_PUSH(build->runs, build->n_runs, build->runs_room, "an index's runs") = *run;
    build->objects += run->objects;
    build->ended = build->n;
}

void sl_item_index_drop_run(struct sl_item_index_build *build)
{
    build->n = build->ended;
}

bool sl_item_index_is_full(const struct sl_item_index_build *build, uint64_t objects)
{
    return build->ended >= SL_ITEM_INDEX_ENTRIES || build->objects + objects > SL_ITEM_INDEX_OBJECTS;
}

int sl_item_index_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void add_number(struct sl_buffer *out, uint64_t number)
{
    number = htole64(number);
    sl_buffer_add(out, &number, sizeof(number));
}

static size_t add_entries(struct sl_item_index_build *build, struct sl_buffer *out)
{
    size_t n = 0;
    if (build->ended)
        qsort(build->entries, build->ended, sizeof(*build->entries), sl_item_index_order);
    for (size_t i = 0; i < build->ended; i++)
        if (i == 0 || build->entries[i] != build->entries[i - 1]) {
            add_number(out, build->entries[i]);
            n++;
        }
    return n;
}

void sl_item_index_make(struct sl_item_index_build *build, struct sl_sha256 *sha, struct sl_buffer *content,
                        char name[SL_ITEM_INDEX_NAME_BYTES])
{
    unsigned char digest[SL_SHA256_BYTES];
    char hex[SL_SHA256_HEX];
    sl_buffer_reset(content);
    size_t n = add_entries(build, content);
    for (size_t i = 0; i < build->n_runs; i++) {
        const struct sl_item_index_run *run = &build->runs[i];
        sl_buffer_add(content, run->seal, sizeof(run->seal));
        add_number(content, run->objects);
        add_number(content, (uint64_t)run->first_s);
        add_number(content, (uint64_t)run->last_s);
    }
    struct sl_span text = sl_buffer_span(content);
    sl_sha256_parts(sha, &text, 1, digest);
    sl_sha256_hex(digest, hex);
    snprintf(name, SL_ITEM_INDEX_NAME_BYTES, "%zu-%zu-%.*s" VERSION, n, build->n_runs, DIGEST_HEX, hex);
    build->n = build->n_runs = build->ended = 0;
    build->objects = 0;
}

void sl_item_index_clean_up(struct sl_item_index_build *build)
{
    free(build->entries);
    free(build->runs);
    *build = (struct sl_item_index_build){.n = 0};
}

/* ---- reading ---- */

static bool read_number(struct sl_span *text, uint64_t *out)
{
    size_t n = 0;
    for (*out = 0; n < text->len && n < 12 && text->ptr[n] >= '0' && text->ptr[n] <= '9'; n++)
        *out = *out * 10 + (uint64_t)(text->ptr[n] - '0');
    bool is_good = n > 0 && n < text->len && text->ptr[n] == '-';
    *text = sl_span_from(*text, n + 1);
    return is_good;
}

bool sl_item_index_read_name(struct sl_span name, uint64_t bytes, uint64_t *entries, uint64_t *runs)
{
    return read_number(&name, entries) && read_number(&name, runs) &&
           name.len == DIGEST_HEX + strlen(VERSION) && sl_span_ends(name, SL_LIT(VERSION)) &&
           bytes == *entries * SL_ITEM_INDEX_ENTRY_BYTES + *runs * SL_ITEM_INDEX_RUN_BYTES;
}

uint64_t sl_item_index_entry(const char *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof(number));
    return le64toh(number);
}

struct sl_item_index_run sl_item_index_run(const char *at)
{
    struct sl_item_index_run run;
    memcpy(run.seal, at, sizeof(run.seal));
    at += sizeof(run.seal);
    run.objects = sl_item_index_entry(at);
    run.first_s = (int64_t)sl_item_index_entry(at + 8);
    run.last_s = (int64_t)sl_item_index_entry(at + 16);
    return run;
}
