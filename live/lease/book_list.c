/* Which shards get a lease, and when a lease may go.
 *
 * KCL's rules (DynamoDBStreamsShardSyncer): a shard without a lease gets none when a descendant of it has one
 * (its own was there, was finished and was deleted). A shard that follows one with a lease begins with its
 * oldest record. A lease goes when its shard is finished and no longer listed; KCL waits for more, and so do
 * we: two listings, and 48 hours since the shard was made, so that no worker takes the shard for one that
 * nobody has read. */
#include "live/lease/book_private.h"

#include "base/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS        ((int64_t)3600 * 1000)
#define YOUNG_FROM_MS  (1 * HOUR_MS)  /* a listing may lack the newest shards for a while */
#define YOUNG_TO_MS    (23 * HOUR_MS) /* a stream lists a shard for 24 hours at least */
#define UNLISTED_LEAST 2
#define DELETES_MAX    100 /* in one listing */
#define VALUE_BYTES    8192

enum need { NOT_KNOWN, HAS_ONE, NEEDS_NONE, NEEDS_OLDEST, NEEDS_LATEST };

struct plan {
    struct sl_book *book;
    const struct sl_book_listing *listing;
    struct sl_arena *arena;
    const struct sl_book_shard **sorted; /* by id */
    enum need *needs;                    /* by place in the listing */
    bool *is_made;
};

/* ---- finding shards ---- */

static int by_id(const void *a, const void *b)
{
    const struct sl_book_shard *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

static size_t index_of(const struct plan *p, const char *id)
{
    const struct sl_book_shard key = {.id = id}, *wanted = &key;
    const struct sl_book_shard **found =
        *id ? bsearch(&wanted, p->sorted, p->listing->n, sizeof(*p->sorted), by_id) : NULL;
    return found ? (size_t)(*found - p->listing->shards) : SIZE_MAX;
}

static struct plan begin(struct sl_book *book, const struct sl_book_listing *listing, struct sl_arena *arena)
{
    struct plan p = {.book = book, .listing = listing, .arena = arena};
    p.sorted = sl_arena_alloc(arena, (listing->n + 1) * sizeof(*p.sorted));
    p.needs = sl_arena_zalloc(arena, (listing->n + 1) * sizeof(*p.needs));
    p.is_made = sl_arena_zalloc(arena, (listing->n + 1) * sizeof(*p.is_made));
    for (size_t i = 0; i < listing->n; i++)
        p.sorted[i] = &listing->shards[i];
    qsort(p.sorted, listing->n, sizeof(*p.sorted), by_id);
    return p;
}

/* ---- what each shard needs ---- */

/* Children come after their parents: from the end, each tells its parent. */
static void mark_those_that_have(struct plan *p)
{
    for (size_t i = p->listing->n; i-- > 0;) {
        size_t parent = index_of(p, p->listing->shards[i].parent);
        if (sl_book_find(p->book, p->listing->shards[i].id))
            p->needs[i] = HAS_ONE;
        if (parent != SIZE_MAX && p->needs[i] != NOT_KNOWN)
            p->needs[parent] = NEEDS_NONE; /* unless it is found to have one */
    }
}

/* Whether --from latest counts: nothing of this stream has been handled yet. Another worker that begins now
 * may have made some leases already. */
static bool is_new_table(const struct sl_book *book)
{
    for (size_t i = 0; i < book->n; i++)
        if (sl_lease_place(book->list[i].lease.checkpoint) != SL_LEASE_LATEST)
            return false;
    return true;
}

static bool follows_a_lease(const struct plan *p, const struct sl_book_shard *shard)
{
    size_t parent = index_of(p, shard->parent);
    return parent != SIZE_MAX ? p->needs[parent] == HAS_ONE || p->needs[parent] == NEEDS_OLDEST
                              : *shard->parent && sl_book_find(p->book, shard->parent);
}

static void decide(struct plan *p)
{
    bool is_from_latest = p->listing->is_from_latest && is_new_table(p->book);
    mark_those_that_have(p);
    for (size_t i = 0; i < p->listing->n; i++) {
        const struct sl_book_shard *shard = &p->listing->shards[i];
        if (p->needs[i] != NOT_KNOWN)
            continue;
        if (!is_from_latest || follows_a_lease(p, shard))
            p->needs[i] = NEEDS_OLDEST;
        else
            p->needs[i] = shard->is_closed ? NEEDS_NONE : NEEDS_LATEST;
    }
}

/* ---- making leases ---- */

static struct sl_lease new_lease(const struct plan *p, size_t i)
{
    const struct sl_book_shard *shard = &p->listing->shards[i];
    bool is_latest = p->needs[i] == NEEDS_LATEST;
    struct sl_lease lease = {
        .key = shard->id,
        .checkpoint = sl_lease_checkpoint(is_latest ? SL_LEASE_LATEST : SL_LEASE_TRIM_HORIZON, NULL),
        .stream = p->book->options.stream_arn,
        .since_ms = is_latest ? p->listing->now_ms : 0,
        .parents = sl_arena_alloc(p->arena, sizeof(*lease.parents)),
        .n_parents = *shard->parent != '\0',
    };
    lease.parents[0] = shard->parent;
    return lease;
}

static struct sl_span value(struct sl_arena *arena, const char *before, const char *text, const char *after)
{
    struct sl_buffer b;
    sl_buffer_init_in(&b, arena, VALUE_BYTES);
    sl_buffer_add_str(&b, before);
    sl_json_add_string(&b, sl_span_str(text));
    sl_buffer_add_str(&b, after);
    return sl_buffer_span(&b);
}

static struct sl_span key_of(struct sl_arena *arena, const char *id)
{
    return value(arena, "{\"leaseKey\":{\"S\":", id, "}}");
}

static struct sl_table_op make_op(const struct plan *p, const struct sl_lease *lease)
{
    static const struct sl_test is_absent = {.verb = SL_ABSENT, .name = {"leaseKey", 8}};
    struct sl_set *sets = sl_arena_zalloc(p->arena, 7 * sizeof(*sets));
    size_t n = 0;
    sets[n++] = (struct sl_set){SL_SET, SL_LIT("leaseCounter"), SL_LIT("{\"N\":\"0\"}")};
    sets[n++] =
        (struct sl_set){SL_SET, SL_LIT("checkpoint"), value(p->arena, "{\"S\":", lease->checkpoint, "}")};
    sets[n++] = (struct sl_set){SL_SET, SL_LIT("checkpointSubSequenceNumber"), SL_LIT("{\"N\":\"0\"}")};
    sets[n++] = (struct sl_set){SL_SET, SL_LIT("ownerSwitchesSinceCheckpoint"), SL_LIT("{\"N\":\"0\"}")};
    sets[n++] =
        (struct sl_set){SL_SET, SL_LIT("sluiceStream"), value(p->arena, "{\"S\":", lease->stream, "}")};
    if (lease->n_parents)
        sets[n++] = (struct sl_set){SL_SET, SL_LIT("parentShardId"),
                                    value(p->arena, "{\"SS\":[", lease->parents[0], "]}")};
    if (lease->since_ms)
        sets[n++] = (struct sl_set){
            SL_SET, SL_LIT("sluiceSince"),
            sl_span_str(sl_arena_printf(p->arena, "{\"N\":\"%lld\"}", (long long)lease->since_ms))};
    return (struct sl_table_op){.verb = SL_TABLE_UPDATE,
                                .key = key_of(p->arena, lease->key),
                                .sets = sets,
                                .n_sets = n,
                                .tests = &is_absent,
                                .n_tests = 1,
                                .want_item = true};
}

/* Made now: its parent's lease is there, or none is needed. */
static bool is_next(const struct plan *p, size_t i)
{
    size_t parent = index_of(p, p->listing->shards[i].parent);
    bool is_wanted = p->needs[i] == NEEDS_OLDEST || p->needs[i] == NEEDS_LATEST;
    return is_wanted && !p->is_made[i] &&
           (parent == SIZE_MAX || p->needs[parent] == HAS_ONE || p->needs[parent] == NEEDS_NONE ||
            p->is_made[parent]);
}

static enum sl_status note_made(struct plan *p, const struct sl_lease *lease, const struct sl_result *result,
                                struct sl_error *error)
{
    struct sl_lease row = *lease;
    if (result->status != SL_OK && !result->condition_failed)
        return sl_fail(error, result->status, result->code, "%s cannot be written: %s",
                       p->book->options.table, result->text);
    /* Another worker has made it: the next reading of the table shows how it is. */
    if (result->status == SL_OK && !sl_book_find(p->book, lease->key))
        (void)sl_book_add(p->book, &row);
    return SL_OK;
}

/* One generation of shards: all that may be made now. `*n`: how many those were. */
static enum sl_status make_generation(struct plan *p, size_t *n, struct sl_error *error)
{
    size_t room = p->listing->n + 1;
    struct sl_lease *leases = sl_arena_alloc(p->arena, room * sizeof(*leases));
    struct sl_table_op *ops = sl_arena_alloc(p->arena, room * sizeof(*ops));
    struct sl_result *results = sl_arena_zalloc(p->arena, room * sizeof(*results));
    size_t *at = sl_arena_alloc(p->arena, room * sizeof(*at));
    enum sl_status status = SL_OK;
    *n = 0;
    for (size_t i = 0; i < p->listing->n; i++)
        if (is_next(p, i)) {
            leases[*n] = new_lease(p, i);
            ops[*n] = make_op(p, &leases[*n]);
            at[(*n)++] = i;
        }
    if (*n == 0)
        return SL_OK;
    const struct sl_call call = sl_book_call(p->book, p->arena);
    p->book->options.port->apply(p->book->options.port, ops, *n, results, &call);
    for (size_t i = 0; i < *n; i++) {
        enum sl_status one = note_made(p, &leases[i], &results[i], error);
        status = one > status ? one : status;
    }
    for (size_t i = 0; i < *n; i++)
        p->is_made[at[i]] = true;
    return status;
}

static enum sl_status make_all(struct plan *p, struct sl_error *error)
{
    enum sl_status status;
    size_t n;
    do {
        status = make_generation(p, &n, error);
        p->book->has_made |= n > 0;
    } while (status == SL_OK && n > 0);
    return status;
}

/* ---- leases of shards that are not listed ---- */

static int64_t age_ms(const struct plan *p, const struct sl_lease *lease)
{
    int64_t born = sl_lease_born_ms(lease->key);
    return born ? p->listing->now_ms - born : 0;
}

static enum sl_status count_unlisted(struct plan *p, struct sl_error *error)
{
    for (size_t i = 0; i < p->book->n; i++) {
        struct sl_book_entry *entry = &p->book->list[i];
        bool is_listed = index_of(p, entry->lease.key) != SIZE_MAX;
        int64_t age = age_ms(p, &entry->lease);
        entry->unlisted = is_listed ? 0 : entry->unlisted + 1;
        if (!is_listed && !entry->is_bad && !entry->lease.stream && age > YOUNG_FROM_MS && age < YOUNG_TO_MS)
            return sl_fail(error, SL_REJECT, "AnotherStream",
                           "%s has a lease of %s, a shard of the last day, which %s does not list: it is the "
                           "table of another stream, or the stream was switched off and on since. Name the "
                           "right table; or delete the rows of the old stream",
                           p->book->options.table, entry->lease.key, p->book->options.stream_arn);
    }
    return SL_OK;
}

static bool may_go(const struct plan *p, const struct sl_book_entry *entry)
{
    return entry->unlisted >= UNLISTED_LEAST && !entry->hold && !entry->is_bad &&
           sl_lease_is_done(&entry->lease) && age_ms(p, &entry->lease) >= SL_BOOK_KEEP_MS;
}

/* A failure is no harm: the lease goes another time. */
static void delete_old(struct plan *p)
{
    struct sl_table_op ops[DELETES_MAX];
    struct sl_result results[DELETES_MAX] = {{.status = SL_OK}};
    struct sl_test *tests = sl_arena_zalloc(p->arena, 2 * DELETES_MAX * sizeof(*tests));
    size_t n = 0;
    for (size_t i = 0; i < p->book->n && n < DELETES_MAX; i++) {
        const struct sl_lease *lease = &p->book->list[i].lease;
        if (!may_go(p, &p->book->list[i]))
            continue;
        tests[2 * n] =
            (struct sl_test){SL_EQ, SL_LIT("checkpoint"), value(p->arena, "{\"S\":", "SHARD_END", "}")};
        tests[2 * n + 1] = (struct sl_test){
            SL_EQ, SL_LIT("leaseCounter"),
            sl_span_str(sl_arena_printf(p->arena, "{\"N\":\"%lld\"}", (long long)lease->counter))};
        ops[n] = (struct sl_table_op){.verb = SL_TABLE_DELETE,
                                      .key = key_of(p->arena, lease->key),
                                      .tests = &tests[2 * n],
                                      .n_tests = 2};
        n++;
    }
    if (n == 0)
        return;
    const struct sl_call call = sl_book_call(p->book, p->arena);
    p->book->options.port->apply(p->book->options.port, ops, n, results, &call);
}

enum sl_status sl_book_list(struct sl_book *book, const struct sl_book_listing *listing,
                            struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    struct plan p = begin(book, listing, arena);
    enum sl_status status = count_unlisted(&p, error);
    if (status == SL_OK) {
        decide(&p);
        status = make_all(&p, error);
    }
    if (status == SL_OK)
        delete_old(&p);
    sl_arena_destroy(arena);
    return status;
}

/* ---- shards that are not listed yet ---- */

static bool has_child(const struct sl_book *book, const char *id)
{
    for (size_t i = 0; i < book->n; i++)
        for (size_t k = 0; k < book->list[i].lease.n_parents; k++)
            if (strcmp(book->list[i].lease.parents[k], id) == 0)
                return true;
    return false;
}

enum sl_status sl_book_found(struct sl_book *book, const struct sl_book_shard *shards, size_t n,
                             struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_book_shard *children = sl_arena_alloc(arena, (n + 1) * sizeof(*children));
    struct sl_book_listing listing = {.shards = children};
    for (size_t i = 0; i < n; i++)
        if (*shards[i].parent && sl_book_find(book, shards[i].parent) && !has_child(book, shards[i].id))
            children[listing.n++] = shards[i];
    struct plan p = begin(book, &listing, arena);
    decide(&p);
    enum sl_status status = make_all(&p, error);
    sl_arena_destroy(arena);
    return status;
}
