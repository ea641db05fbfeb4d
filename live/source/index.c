/* Writes the places of records, and reads pages of records by them. */
#include "live/source/index.h"

#include "base/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* One record, on disk for as long as this process runs. */
struct entry {
    uint64_t at; /* of its text: in the spool, or in an input */
    int64_t created_ms;
    uint32_t len, id_len, key_len;
    uint32_t shard : 30;
    uint32_t is_in_input : 1, has_id : 1;
    uint64_t id_at; /* of its id, which its key follows */
    uint64_t input;
};

/* As many as the largest event has: the next one's pages come when its own go. */
#define SPARE_PAGES 7

enum { UNKNOWN, REFERS, COPIES };

/* An input whose texts stay in it. */
struct origin {
    int state;
    struct stat st;
};

struct sl_index {
    const struct sl_inputs *inputs;
    struct origin *origins;
    struct sl_spool *entry_spool, *text_spool, *other_spool;
    struct sl_span entries, texts, others; /* when it is done */
    int fd;                                /* of the input that is being read; -1: none */
    size_t input;
    struct sl_index_page spare[SPARE_PAGES]; /* memory of pages that were given back: fresh memory costs */
    size_t n_spare;
};

/* ---- writing ---- */

static void free_page(struct sl_index_page *page)
{
    free(page->records);
    free(page->texts);
}

static void clean_up(void *arg)
{
    struct sl_index *index = arg;
    if (index->fd >= 0)
        close(index->fd);
    while (index->n_spare)
        free_page(&index->spare[--index->n_spare]);
}

struct sl_index *sl_index_new(const struct sl_inputs *inputs, struct sl_arena *arena)
{
    struct sl_index *index = sl_arena_zalloc(arena, sizeof(*index));
    index->inputs = inputs;
    index->origins = sl_arena_zalloc(arena, (inputs->n + 1) * sizeof(*index->origins));
    index->entry_spool = sl_spool_new(arena);
    index->text_spool = sl_spool_new(arena);
    index->other_spool = sl_spool_new(arena);
    index->fd = -1;
    sl_arena_defer(arena, clean_up, index);
    return index;
}

static int open_input(const struct sl_inputs *inputs, size_t i)
{
    int kept = inputs->kept ? inputs->kept[i] : -1;
    return kept >= 0 ? fcntl(kept, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                     : open(inputs->names[i], O_RDONLY | O_CLOEXEC);
}

bool sl_index_may_refer(struct sl_index *index, size_t input)
{
    struct origin *origin = &index->origins[input];
    bool is_text = index->inputs->texts && index->inputs->texts[input].ptr;
    char begin[2];
    if (origin->state != UNKNOWN)
        return origin->state == REFERS;
    int fd = is_text ? -1 : open_input(index->inputs, input);
    bool is_file = fd >= 0 && fstat(fd, &origin->st) == 0 && S_ISREG(origin->st.st_mode);
    bool is_plain = is_file && pread(fd, begin, 2, 0) == 2 && !sl_gzip_is(sl_span(begin, 2));
    if (fd >= 0)
        close(fd);
    origin->state = is_plain ? REFERS : COPIES;
    return is_plain;
}

void sl_index_add(struct sl_index *index, const struct sl_index_record *r)
{
    struct entry entry = {.at = r->is_in_input ? r->at : sl_spool_bytes(index->text_spool),
                          .created_ms = r->created_ms,
                          .len = (uint32_t)r->text.len,
                          .id_len = (uint32_t)r->id.len,
                          .key_len = (uint32_t)r->item_key.len,
                          .shard = r->shard & 0x3FFFFFFF,
                          .is_in_input = r->is_in_input,
                          .has_id = r->id.ptr != NULL,
                          .id_at = sl_spool_bytes(index->other_spool),
                          .input = r->input};
    sl_spool_add(index->entry_spool, sl_span((const char *)&entry, sizeof(entry)));
    if (!r->is_in_input) {
        sl_spool_add(index->text_spool, r->text);
        sl_spool_add(index->text_spool, SL_LIT("\n"));
    }
    sl_spool_add(index->other_spool, r->id);
    sl_spool_add(index->other_spool, r->item_key);
}

enum sl_status sl_index_done(struct sl_index *index, struct sl_error *error)
{
    enum sl_status status = sl_spool_done(index->entry_spool, &index->entries, error);
    if (status == SL_OK)
        status = sl_spool_done(index->text_spool, &index->texts, error);
    return status == SL_OK ? sl_spool_done(index->other_spool, &index->others, error) : status;
}

/* ---- reading ---- */

static const struct entry *entry_at(const struct sl_index *index, size_t i)
{
    return (const struct entry *)(const void *)index->entries.ptr + i;
}

static void fill(const struct sl_index *index, const struct entry *entry, struct sl_esm_record *out)
{
    const char *id = index->others.ptr + entry->id_at;
    *out = (struct sl_esm_record){.created_ms = entry->created_ms};
    if (!entry->is_in_input)
        out->text = sl_span(index->texts.ptr + entry->at, entry->len);
    if (entry->has_id)
        out->id = sl_span(id, entry->id_len);
    if (entry->key_len)
        out->item_key = sl_span(id + entry->id_len, entry->key_len);
}

uint32_t sl_index_get(const struct sl_index *index, size_t i, struct sl_esm_record *out)
{
    const struct entry *entry = entry_at(index, i);
    fill(index, entry, out);
    return entry->shard;
}

/* So many records from `from` on are a page: they have one origin, and follow each other there. */
static size_t page_end(const struct sl_index *index, size_t from, size_t to)
{
    const struct entry *first = entry_at(index, from);
    size_t i = from + 1;
    for (; i < to && i < from + SL_INDEX_PAGE_RECORDS; i++) {
        const struct entry *entry = entry_at(index, i);
        bool is_same = entry->is_in_input == first->is_in_input && entry->input == first->input;
        if (!is_same || entry->at < first->at || entry->at + entry->len - first->at > SL_INDEX_PAGE_BYTES)
            break;
    }
    return i;
}

static void changed(const struct sl_index *index, size_t input)
{
    sl_die("%s: has changed since the replay began; give it a copy that nothing writes to",
           index->inputs->names[input]);
}

static void open_origin(struct sl_index *index, size_t input)
{
    struct stat st;
    if (index->fd < 0 || index->input != input) {
        if (index->fd >= 0)
            close(index->fd);
        index->fd = open_input(index->inputs, input);
        index->input = input;
    }
    const struct stat *before = &index->origins[input].st;
    if (index->fd < 0 || fstat(index->fd, &st) != 0 || st.st_ino != before->st_ino ||
        st.st_dev != before->st_dev || st.st_size != before->st_size ||
        memcmp(&st.st_mtim, &before->st_mtim, sizeof(st.st_mtim)) != 0)
        changed(index, input);
}

/* A page's memory, with room for `n` bytes of text. One record may have more text than a page should. */
static void get_memory(struct sl_index *index, size_t n, struct sl_index_page *out)
{
    *out = index->n_spare ? index->spare[--index->n_spare] : (struct sl_index_page){.n = 0};
    if (!out->records)
        out->records = malloc(SL_INDEX_PAGE_RECORDS * sizeof(*out->records));
    if (n > out->text_room) {
        free(out->texts);
        out->text_room = n > SL_INDEX_PAGE_BYTES ? n : SL_INDEX_PAGE_BYTES;
        out->texts = malloc(out->text_room);
    }
    if (!out->records || (n && !out->texts))
        sl_die("out of memory: %zu bytes of records", n);
}

static void read_texts(struct sl_index *index, const struct entry *first, size_t n, char *texts)
{
    size_t had = 0;
    open_origin(index, first->input);
    while (had < n) {
        ssize_t got = pread(index->fd, texts + had, n - had, (off_t)(first->at + had));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            changed(index, first->input);
        had += (size_t)got;
    }
}

size_t sl_index_read_page(struct sl_index *index, size_t from, size_t to, struct sl_index_page *out)
{
    size_t end = page_end(index, from, to);
    const struct entry *first = entry_at(index, from), *last = entry_at(index, end - 1);
    size_t text_bytes = first->is_in_input ? (size_t)(last->at + last->len - first->at) : 0;
    get_memory(index, text_bytes, out);
    out->n = end - from;
    if (first->is_in_input)
        read_texts(index, first, text_bytes, out->texts);
    for (size_t i = 0; i < out->n; i++) {
        const struct entry *entry = first + i;
        fill(index, entry, &out->records[i]);
        if (entry->is_in_input)
            out->records[i].text = sl_span(out->texts + (entry->at - first->at), entry->len);
    }
    return end;
}

void sl_index_free_page(struct sl_index *index, struct sl_index_page *page)
{
    if (index->n_spare < SPARE_PAGES && page->text_room <= SL_INDEX_PAGE_BYTES)
        index->spare[index->n_spare++] = *page;
    else
        free_page(page);
    *page = (struct sl_index_page){.n = 0};
}

void sl_index_release(const struct sl_index *index)
{
    sl_spool_release(index->entry_spool);
    sl_spool_release(index->text_spool);
    sl_spool_release(index->other_spool);
}
