/* A recording page by page: what the mapping reads next, and no more. */
#include "live/source/recording_private.h"

#include "streams/decode/batch.h"

#include <stdlib.h>

/* Memory for a page's decoded records begins with so much. */
#define ARENA_BYTES ((size_t)64 * 1024)

struct page {
    struct sl_index_page own;
    struct sl_arena *arena; /* of the decoded records; NULL: they are not decoded */
    struct page *next;
};

/* A shard's records are `next` to `end` - 1; the pages that were given, the oldest first. */
struct shard {
    size_t next, end;
    struct page *first, *last;
};

struct sl_pages {
    const struct sl_recording *recording;
    const struct sl_recording_options *options;
    struct shard *shards;
};

static void drop_first(struct sl_index *index, struct shard *shard)
{
    struct page *page = shard->first;
    shard->first = page->next;
    shard->last = shard->first ? shard->last : NULL;
    sl_index_free_page(index, &page->own);
    sl_arena_destroy(page->arena);
    free(page);
}

static void clean_up(void *arg)
{
    struct sl_pages *pages = arg;
    for (size_t k = 0; k < pages->recording->n_shards; k++)
        while (pages->shards[k].first)
            drop_first(pages->recording->index, &pages->shards[k]);
}

struct sl_pages *sl_pages_new(const struct sl_recording *recording,
                              const struct sl_recording_options *options, const size_t *n_in_shard,
                              struct sl_arena *arena)
{
    struct sl_pages *pages = sl_arena_zalloc(arena, sizeof(*pages));
    size_t at = 0;
    pages->recording = recording;
    pages->options = options;
    pages->shards = sl_arena_zalloc(arena, (recording->n_shards + 1) * sizeof(*pages->shards));
    for (size_t k = 0; k < recording->n_shards; k++) {
        pages->shards[k] = (struct shard){.next = at, .end = at + n_in_shard[k]};
        at += n_in_shard[k];
    }
    sl_arena_defer(arena, clean_up, pages);
    return pages;
}

/* The texts of a page follow each other in the spool, one a line. */
static void decode_page(const struct sl_pages *pages, struct page *page)
{
    struct sl_batch batch;
    struct sl_error why = SL_NO_ERROR;
    const struct sl_decode_options options = {
        .any_shape = true, .ttl_attribute = sl_span_str(pages->options->ttl_attribute), .lines_before = 1};
    const struct sl_esm_record *last = &page->own.records[page->own.n - 1];
    const char *begin = page->own.records[0].text.ptr, *end = sl_span_end(last->text);
    page->arena = sl_arena_new(ARENA_BYTES);
    if (sl_batch_decode(sl_span(begin, (size_t)(end - begin)), page->arena, &options, &batch, &why) !=
            SL_OK ||
        batch.n != page->own.n)
        sl_die("the temporary file of records has changed while they were replayed: %s", why.text);
    for (size_t i = 0; i < page->own.n; i++)
        page->own.records[i].record = sl_batch_record(&batch, i);
}

size_t sl_recording_more(const struct sl_recording *recording, size_t k, const struct sl_esm_record **records)
{
    struct sl_pages *pages = recording->pages;
    struct shard *shard = &pages->shards[k];
    if (shard->next == shard->end)
        return 0;
    struct page *page = calloc(1, sizeof(*page));
    if (!page)
        sl_die("out of memory: a page of records");
    shard->next = sl_index_read_page(recording->index, shard->next, shard->end, &page->own);
    for (size_t i = 0; i < page->own.n; i++) {
        struct sl_esm_record *r = &page->own.records[i];
        r->created_ms = r->created_ms ? r->created_ms : recording->start_ms;
        r->available_ms = recording->start_ms;
    }
    if (pages->options->needs_records)
        decode_page(pages, page);
    if (shard->last)
        shard->last->next = page;
    else
        shard->first = page;
    shard->last = page;
    *records = page->own.records;
    return page->own.n;
}

void sl_recording_forget(const struct sl_recording *recording, size_t k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        drop_first(recording->index, &recording->pages->shards[k]);
}
