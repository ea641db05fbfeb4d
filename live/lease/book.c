/* A worker's book of leases: what it holds, what it gives up, and what is due when. */
#include "base/array.h"
#include "live/lease/book_private.h"

#include <stdlib.h>
#include <string.h>

#define WAITING_LOOK_MS                                                                                      \
    1000 /* how often the table is read while a shard of ours waits for another's parent */

struct sl_book *sl_book_new(const struct sl_book_options *options)
{
    struct sl_book *book = calloc(1, sizeof(*book));
    if (!book)
        sl_die("out of memory: a book of leases");
    book->options = *options;
    book->deadline_ms = INT64_MAX;
    return book;
}

void sl_book_destroy(struct sl_book *book)
{
    if (!book)
        return;
    for (size_t i = 0; i < book->n; i++)
        sl_book_clean_up_entry(&book->list[i]);
    free(book->list);
    free(book->trouble);
    free(book);
}

int64_t sl_book_now(const struct sl_book *book)
{
    return book->options.clock->now_ms(book->options.clock);
}

struct sl_call sl_book_call(const struct sl_book *book, struct sl_arena *arena)
{
    int64_t deadline_ms = sl_book_now(book) + book->options.failover_ms / (2 * SL_BOOK_RENEW_PART);
    return (struct sl_call){.arena = arena,
                            .deadline_ms = deadline_ms < book->deadline_ms ? deadline_ms : book->deadline_ms};
}

void sl_book_hurry(struct sl_book *book, int64_t deadline_ms)
{
    book->deadline_ms = deadline_ms;
}

/* ---- entries ---- */

static char *copy(const char *text)
{
    char *made = text ? strdup(text) : NULL;
    if (text && !made)
        sl_die("out of memory: a lease");
    return made;
}

static void free_lease(struct sl_lease *lease)
{
    for (size_t i = 0; i < lease->n_parents; i++)
        free((void *)lease->parents[i]);
    free(lease->parents);
    free((void *)lease->key);
    free((void *)lease->owner);
    free((void *)lease->checkpoint);
    free((void *)lease->stream);
}

void sl_book_take_over(struct sl_book_entry *entry, const struct sl_lease *lease)
{
    struct sl_lease made = *lease;
    made.key = copy(lease->key);
    made.owner = copy(lease->owner);
    made.checkpoint = copy(lease->checkpoint);
    made.stream = copy(lease->stream);
    made.parents = calloc(lease->n_parents + 1, sizeof(*made.parents));
    if (!made.parents)
        sl_die("out of memory: a lease");
    for (size_t i = 0; i < lease->n_parents; i++)
        made.parents[i] = copy(lease->parents[i]);
    free_lease(&entry->lease);
    entry->lease = made;
}

void sl_book_clean_up_entry(struct sl_book_entry *entry)
{
    free_lease(&entry->lease);
    free(entry->pending);
    *entry = (struct sl_book_entry){.hold = 0};
}

/* Where the key is, or belongs. */
static size_t place_of(const struct sl_book *book, const char *key)
{
    size_t low = 0, high = book->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(book->list[middle].lease.key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sl_book_entry *sl_book_find(const struct sl_book *book, const char *key)
{
    size_t i = place_of(book, key);
    return i < book->n && strcmp(book->list[i].lease.key, key) == 0 ? &book->list[i] : NULL;
}

struct sl_book_entry *sl_book_add(struct sl_book *book, const struct sl_lease *lease)
{
    size_t i = place_of(book, lease->key);
    book->list = sl_array_fit(book->list, book->n + 1, &book->room, sizeof(*book->list), "leases");
    memmove(&book->list[i + 1], &book->list[i], (book->n - i) * sizeof(*book->list));
    book->n++;
    book->list[i] = (struct sl_book_entry){.moved_ms = sl_book_now(book)};
    sl_book_take_over(&book->list[i], lease);
    return &book->list[i];
}

void sl_book_lose(struct sl_book *book, struct sl_book_entry *entry)
{
    book->lost += entry->hold && !entry->is_dropped;
    entry->hold = 0;
    entry->is_dropped = false;
    free(entry->pending);
    entry->pending = NULL;
}

/* "arn:aws:dynamodb:eu-west-1:123456789012:table/orders" of a stream's ARN: what it shares with the stream
 * that follows it when the stream is switched off and on. */
static size_t table_bytes(const char *arn)
{
    const char *label = strstr(arn, "/stream/");
    return label ? (size_t)(label - arn) : strlen(arn);
}

enum sl_status sl_book_check_stream(const struct sl_book *book, const struct sl_lease *lease, bool *is_ours,
                                    struct sl_error *error)
{
    const char *ours = book->options.stream_arn;
    size_t n = table_bytes(ours);
    *is_ours = !lease->stream || strcmp(lease->stream, ours) == 0;
    if (*is_ours || (table_bytes(lease->stream) == n && memcmp(lease->stream, ours, n) == 0))
        return SL_OK;
    return sl_fail(error, SL_REJECT, "AnotherStream",
                   "%s has leases of the stream %s (row %s), not of %s. Each stream needs a lease table of "
                   "its own",
                   book->options.table, lease->stream, lease->key, ours);
}

/* ---- what is due ---- */

/* What was not renewed in time is lost, whatever the table says. */
static void give_up_what_is_over(struct sl_book *book)
{
    int64_t now = sl_book_now(book);
    for (size_t i = 0; i < book->n; i++)
        if (book->list[i].hold && now >= book->list[i].until_ms)
            sl_book_lose(book, &book->list[i]);
}

/* A shard of ours waits for a parent that another worker has. */
static bool waits_for_another(const struct sl_book *book)
{
    for (size_t i = 0; i < book->n; i++) {
        const struct sl_book_entry *entry = &book->list[i];
        for (size_t k = 0; entry->hold && k < entry->lease.n_parents; k++) {
            const struct sl_book_entry *parent = sl_book_find(book, entry->lease.parents[k]);
            if (parent && !parent->hold && !sl_lease_is_done(&parent->lease))
                return true;
        }
    }
    return false;
}

static int64_t look_every_ms(const struct sl_book *book)
{
    int64_t ms = book->options.failover_ms / SL_BOOK_LOOK_PART;
    return ms > WAITING_LOOK_MS && (book->has_made || waits_for_another(book)) ? WAITING_LOOK_MS : ms;
}

static int64_t next_turn_ms(const struct sl_book *book)
{
    int64_t next = book->looked_ms + look_every_ms(book);
    for (size_t i = 0; i < book->n; i++) {
        const struct sl_book_entry *entry = &book->list[i];
        if (!entry->hold)
            continue;
        int64_t due = sl_book_due(book, entry);
        next = due < next ? due : next;
        next = entry->until_ms < next ? entry->until_ms : next;
        if (entry->handed_ms > sl_book_now(book) && entry->handed_ms < next)
            next = entry->handed_ms;
    }
    return next;
}

enum sl_status sl_book_open(struct sl_book *book, struct sl_error *error)
{
    enum sl_status status = sl_book_look(book, true, error);
    book->looked_ms =
        sl_book_now(book) - book->options.failover_ms; /* the first turn looks again, and takes */
    return status;
}

void sl_book_follow(struct sl_book *book, const char *stream_arn)
{
    for (size_t i = 0; i < book->n; i++)
        sl_book_clean_up_entry(&book->list[i]);
    book->n = 0;
    book->options.stream_arn = stream_arn;
    book->looked_ms = sl_book_now(book) - book->options.failover_ms;
}

static enum sl_status look_and_take(struct sl_book *book, struct sl_error *error)
{
    enum sl_status status = sl_book_look(book, false, error);
    if (status == SL_OK)
        status = sl_book_take(book, error);
    give_up_what_is_over(book);
    book->looked_ms = sl_book_now(book);
    return status;
}

enum sl_status sl_book_turn(struct sl_book *book, int64_t *next_ms, struct sl_error *error)
{
    give_up_what_is_over(book);
    enum sl_status status = sl_book_write(book, false, error);
    give_up_what_is_over(book);
    if (status <= SL_RETRY && sl_book_now(book) >= book->looked_ms + look_every_ms(book)) {
        enum sl_status second = look_and_take(book, error);
        status = second > status ? second : status;
    }
    *next_ms = next_turn_ms(book);
    return status;
}

bool sl_book_flush(struct sl_book *book, struct sl_error *error)
{
    give_up_what_is_over(book);
    if (sl_book_write(book, true, error) != SL_OK)
        return false;
    for (size_t i = 0; i < book->n; i++)
        if (book->list[i].pending || book->list[i].is_dropped)
            return false;
    return true;
}

/* ---- for the caller ---- */

size_t sl_book_count(const struct sl_book *book)
{
    return book->n;
}

bool sl_book_is_done(const struct sl_book *book, const char *shard)
{
    const struct sl_book_entry *entry = sl_book_find(book, shard);
    return !entry || (!entry->is_bad && sl_lease_is_done(&entry->lease));
}

static bool are_parents_done(const struct sl_book *book, const struct sl_lease *lease)
{
    for (size_t i = 0; i < lease->n_parents; i++)
        if (!sl_book_is_done(book, lease->parents[i]))
            return false;
    return true;
}

struct sl_book_lease sl_book_at(const struct sl_book *book, size_t i)
{
    const struct sl_book_entry *entry = &book->list[i];
    bool is_ours = entry->hold && !entry->is_dropped;
    return (struct sl_book_lease){
        .lease = &entry->lease,
        .hold = is_ours ? entry->hold : 0,
        .until_ms = is_ours ? entry->until_ms : 0,
        .handed_ms = entry->handed_ms,
        .is_handed_out =
            is_ours && sl_book_now(book) >= entry->handed_ms && are_parents_done(book, &entry->lease),
        .pending = entry->pending,
    };
}

void sl_book_save(struct sl_book *book, const char *shard, uint64_t hold, const char *checkpoint)
{
    struct sl_book_entry *entry = sl_book_find(book, shard);
    if (!entry || !hold || entry->hold != hold)
        return;
    const char *last = entry->pending ? entry->pending : entry->lease.checkpoint;
    if (!sl_lease_is_before(last, checkpoint))
        return;
    free(entry->pending);
    entry->pending = copy(checkpoint);
}

void sl_book_drop(struct sl_book *book, const char *shard, uint64_t hold)
{
    struct sl_book_entry *entry = sl_book_find(book, shard);
    if (!entry || !hold || entry->hold != hold)
        return;
    entry->is_dropped = true;
    /* Stolen a moment ago: who had it may still read. A row without an owner would be taken at once; this one
     * keeps our name, and expires. */
    if (sl_book_now(book) < entry->handed_ms)
        sl_book_lose(book, entry);
}

const char *sl_book_trouble(const struct sl_book *book)
{
    return book->trouble;
}

uint64_t sl_book_lost(const struct sl_book *book)
{
    return book->lost;
}
