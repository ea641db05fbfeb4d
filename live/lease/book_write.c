/* Writes leases: renewals with their checkpoints, drops, and taking. Each write is conditional on the counter
 * that was last seen. */
#include "live/lease/book_private.h"

#include "base/json_write.h"

#include <stdlib.h>
#include <string.h>

#define SETS_MAX    10
#define VALUE_BYTES 8192 /* of an attribute: the longest is an ARN, each byte escaped */

/* One write, with what it needs while it is under way. */
struct write {
    size_t at; /* of the book's list */
    struct sl_set sets[SETS_MAX];
    struct sl_test tests[2];
    size_t n_sets, n_tests;
    char *checkpoint; /* that it writes; NULL: none. Of malloc's: the list may change meanwhile */
};

struct writing {
    struct sl_book *book;
    struct sl_arena *arena;
    struct write *writes;
    struct sl_table_op *ops;
    struct sl_result *results;
    size_t n;
    int64_t begun_ms;
};

/* ---- attributes ---- */

/* {"S":"text"}: an attribute's value, or a key. */
static struct sl_span text_member(struct sl_arena *arena, const char *name, const char *text)
{
    struct sl_buffer b;
    sl_buffer_init_in(&b, arena, VALUE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_member(&b, name, sl_span_str(text));
    sl_buffer_add_char(&b, '}');
    return sl_buffer_span(&b);
}

static struct sl_span text_value(struct sl_arena *arena, const char *text)
{
    return text_member(arena, "S", text);
}

static struct sl_span number_value(struct sl_arena *arena, int64_t number)
{
    return sl_span_str(sl_arena_printf(arena, "{\"N\":\"%lld\"}", (long long)number));
}

static void set(struct write *w, enum sl_set_verb verb, const char *name, struct sl_span value)
{
    w->sets[w->n_sets++] = (struct sl_set){verb, sl_span_str(name), value};
}

static struct sl_span key_value(struct sl_arena *arena, const char *key)
{
    return sl_span_str(sl_arena_printf(arena, "{\"leaseKey\":%.*s}", SL_ARG(text_value(arena, key))));
}

static void begin(struct writing *all, size_t at)
{
    const struct sl_book *book = all->book;
    const struct sl_lease *lease = &book->list[at].lease;
    struct write *w = &all->writes[all->n];
    *w = (struct write){.at = at};
    w->tests[w->n_tests++] =
        (struct sl_test){SL_EQ, SL_LIT("leaseCounter"), number_value(all->arena, lease->counter)};
    w->tests[w->n_tests++] =
        lease->owner ? (struct sl_test){SL_EQ, SL_LIT("leaseOwner"), text_value(all->arena, lease->owner)}
                     : (struct sl_test){.verb = SL_ABSENT, .name = SL_LIT("leaseOwner")};
    set(w, SL_SET, "leaseCounter", number_value(all->arena, lease->counter + 1));
}

static void end(struct writing *all)
{
    struct write *w = &all->writes[all->n];
    all->ops[all->n++] = (struct sl_table_op){
        .verb = SL_TABLE_UPDATE,
        .key = key_value(all->arena, all->book->list[w->at].lease.key),
        .sets = w->sets,
        .n_sets = w->n_sets,
        .tests = w->tests,
        .n_tests = w->n_tests,
        .want_item = true,
    };
}

static struct writing begin_all(struct sl_book *book, struct sl_arena *arena)
{
    return (struct writing){
        .book = book,
        .arena = arena,
        .writes = sl_arena_alloc(arena, (book->n + 1) * sizeof(struct write)),
        .ops = sl_arena_alloc(arena, (book->n + 1) * sizeof(struct sl_table_op)),
        .results = sl_arena_zalloc(arena, (book->n + 1) * sizeof(struct sl_result)),
    };
}

static void send(struct writing *all)
{
    struct sl_table_port *port = all->book->options.port;
    const struct sl_call call = sl_book_call(all->book, all->arena);
    all->begun_ms = sl_book_now(all->book);
    if (all->n)
        port->apply(port, all->ops, all->n, all->results, &call);
}

static int64_t until_ms(const struct writing *all)
{
    int64_t failover = all->book->options.failover_ms;
    return all->begun_ms + failover - failover / SL_BOOK_MARGIN_PART;
}

/* ---- what came of a write ---- */

/* The row as a refusal shows it; false: there is none that can be read. */
static bool read_refusal(struct writing *all, size_t i, struct sl_lease *row)
{
    return all->results[i].item.ptr && sl_lease_read(all->results[i].item, all->arena, row, NULL) == SL_OK;
}

/* What the table has of a lease that is not ours, or no more. */
static void see(struct writing *all, struct sl_book_entry *entry, size_t i)
{
    struct sl_lease row;
    sl_book_lose(all->book, entry);
    if (read_refusal(all, i, &row) && strcmp(row.key, entry->lease.key) == 0)
        sl_book_take_over(entry, &row);
    entry->moved_ms = sl_book_now(all->book);
}

/* A request whose answer was lost had been carried out, and its repetition was refused. */
static bool was_carried_out(struct writing *all, size_t i, const struct sl_lease *before,
                            struct sl_lease *row)
{
    const char *worker = all->book->options.worker;
    return read_refusal(all, i, row) && row->counter == before->counter + 1 && row->owner &&
           strcmp(row->owner, worker) == 0;
}

/* The same of a write that gave the lease back with its checkpoint. */
static bool was_given_back(struct writing *all, size_t i, const struct sl_lease *before)
{
    struct sl_lease row;
    const char *checkpoint = all->writes[i].checkpoint;
    return read_refusal(all, i, &row) && row.counter == before->counter + 1 && !row.owner &&
           strcmp(row.checkpoint, checkpoint ? checkpoint : before->checkpoint) == 0;
}

static void keep_checkpoint(struct sl_book_entry *entry, const char *checkpoint)
{
    struct sl_lease lease = entry->lease;
    lease.checkpoint = checkpoint;
    sl_book_take_over(entry, &lease);
    if (entry->pending && !sl_lease_is_before(checkpoint, entry->pending)) {
        free(entry->pending);
        entry->pending = NULL;
    }
}

static void note_failure(const struct writing *all, size_t i, enum sl_status *status, struct sl_error *error)
{
    const struct sl_result *result = &all->results[i];
    if (result->status <= *status)
        return;
    *status = result->status;
    sl_error_clear(error);
    sl_fail(error, result->status, result->code, "%s cannot be written: %s", all->book->options.table,
            result->text);
}

/* ---- renewals, checkpoints, drops ---- */

int64_t sl_book_due(const struct sl_book *book, const struct sl_book_entry *entry)
{
    int64_t renew = entry->written_ms + book->options.failover_ms / SL_BOOK_RENEW_PART;
    if (entry->is_dropped || (entry->pending && sl_lease_place(entry->pending) == SL_LEASE_SHARD_END))
        return 0;
    int64_t save = entry->written_ms + SL_BOOK_SAVE_MS;
    return entry->pending && save < renew ? save : renew;
}

static void add_checkpoint(struct writing *all, const struct sl_book_entry *entry)
{
    struct write *w = &all->writes[all->n];
    if (!entry->pending)
        return;
    w->checkpoint = sl_arena_copy(all->arena, sl_span_str(entry->pending));
    set(w, SL_SET, "checkpoint", text_value(all->arena, entry->pending));
    set(w, SL_SET, "checkpointSubSequenceNumber", number_value(all->arena, 0));
    set(w, SL_SET, "ownerSwitchesSinceCheckpoint", number_value(all->arena, 0));
    set(w, SL_SET, "sluiceStream", text_value(all->arena, all->book->options.stream_arn));
    set(w, SL_UNSET, "sluiceSince", sl_span(NULL, 0));
    set(w, SL_UNSET, "pendingCheckpoint", sl_span(NULL, 0));
    set(w, SL_UNSET, "pendingCheckpointSubSequenceNumber", sl_span(NULL, 0));
}

/* Who has read a shard to its end needs its lease no more. */
static bool gives_back(const struct sl_book_entry *entry)
{
    return entry->is_dropped || (entry->pending && sl_lease_place(entry->pending) == SL_LEASE_SHARD_END);
}

static void written(struct writing *all, size_t i, bool is_back)
{
    struct sl_book_entry *entry = &all->book->list[all->writes[i].at];
    entry->lease.counter++;
    entry->written_ms = all->begun_ms;
    entry->until_ms = until_ms(all);
    if (all->writes[i].checkpoint)
        keep_checkpoint(entry, all->writes[i].checkpoint);
    if (!is_back)
        return;
    struct sl_lease lease = entry->lease;
    lease.owner = NULL;
    entry->is_dropped = true; /* not lost */
    sl_book_lose(all->book, entry);
    sl_book_take_over(entry, &lease);
    entry->moved_ms = sl_book_now(all->book);
}

static void judge_write(struct writing *all, size_t i, enum sl_status *status, struct sl_error *error)
{
    struct sl_book_entry *entry = &all->book->list[all->writes[i].at];
    bool is_back = gives_back(entry);
    struct sl_lease row;
    if (all->results[i].status == SL_OK ||
        (is_back && all->results[i].condition_failed && was_given_back(all, i, &entry->lease))) {
        written(all, i, is_back);
    } else if (!all->results[i].condition_failed) {
        note_failure(all, i, status, error);
    } else if (was_carried_out(all, i, &entry->lease, &row)) {
        /* An earlier attempt, perhaps with an earlier checkpoint. */
        entry->lease.counter = row.counter;
        keep_checkpoint(entry, row.checkpoint);
    } else {
        see(all, entry, i);
    }
}

enum sl_status sl_book_write(struct sl_book *book, bool is_all, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct writing all = begin_all(book, arena);
    enum sl_status status = SL_OK;
    int64_t now = sl_book_now(book);
    for (size_t i = 0; i < book->n; i++) {
        const struct sl_book_entry *entry = &book->list[i];
        if (!entry->hold || (now < sl_book_due(book, entry) && !(is_all && entry->pending)))
            continue;
        begin(&all, i);
        add_checkpoint(&all, entry);
        if (gives_back(entry))
            set(&all.writes[all.n], SL_UNSET, "leaseOwner", sl_span(NULL, 0));
        end(&all);
    }
    send(&all);
    for (size_t i = 0; i < all.n; i++)
        judge_write(&all, i, &status, error);
    sl_arena_destroy(arena);
    return status;
}

/* ---- taking ---- */

/* Whether another worker may still believe that the lease is its own. */
static bool is_live(const struct sl_book *book, const struct sl_book_entry *entry)
{
    return entry->lease.owner && sl_book_now(book) - entry->moved_ms < book->options.failover_ms;
}

static bool is_own_name(const struct sl_book *book, const struct sl_book_entry *entry)
{
    return entry->lease.owner && strcmp(entry->lease.owner, book->options.worker) == 0;
}

/* What the decision needs. `at[i]` is where the i-th of them is in the book. */
static size_t describe(const struct sl_book *book, struct sl_share_lease *out, size_t *at)
{
    size_t n = 0;
    for (size_t i = 0; i < book->n; i++) {
        const struct sl_book_entry *entry = &book->list[i];
        if (entry->is_bad)
            continue;
        at[n] = i;
        out[n++] = (struct sl_share_lease){
            .owner = entry->lease.owner,
            .is_mine = entry->hold != 0,
            .is_expired = !entry->hold && (!is_live(book, entry) || is_own_name(book, entry)),
            .is_done = sl_lease_is_done(&entry->lease),
        };
    }
    return n;
}

static void add_take(struct writing *all, size_t at)
{
    const struct sl_book *book = all->book;
    const struct sl_lease *lease = &book->list[at].lease;
    struct sl_clock *clock = book->options.clock;
    begin(all, at);
    struct write *w = &all->writes[all->n];
    set(w, SL_SET, "leaseOwner", text_value(all->arena, book->options.worker));
    set(w, SL_SET, "sluiceStream", text_value(all->arena, book->options.stream_arn));
    if (lease->owner && !is_own_name(book, &book->list[at]))
        set(w, SL_ADD, "ownerSwitchesSinceCheckpoint", number_value(all->arena, 1));
    if (sl_lease_place(lease->checkpoint) == SL_LEASE_LATEST && !lease->since_ms)
        set(w, SL_SET, "sluiceSince", number_value(all->arena, clock->wall_ns(clock) / 1000000));
    end(all);
}

static void taken(struct writing *all, size_t i)
{
    struct sl_book *book = all->book;
    struct sl_book_entry *entry = &book->list[all->writes[i].at];
    struct sl_lease lease = entry->lease;
    struct sl_clock *clock = book->options.clock;
    bool was_live = is_live(book, entry);
    lease.owner = book->options.worker;
    lease.counter++;
    lease.stream = book->options.stream_arn;
    if (sl_lease_place(lease.checkpoint) == SL_LEASE_LATEST && !lease.since_ms)
        lease.since_ms = clock->wall_ns(clock) / 1000000;
    sl_book_take_over(entry, &lease);
    entry->hold = ++book->holds;
    entry->written_ms = all->begun_ms;
    entry->until_ms = until_ms(all);
    entry->moved_ms = sl_book_now(book);
    entry->handed_ms = was_live ? entry->moved_ms + book->options.failover_ms : 0;
}

static void judge_take(struct writing *all, size_t i, enum sl_status *status, struct sl_error *error)
{
    if (all->results[i].status == SL_OK)
        taken(all, i);
    else if (all->results[i].condition_failed)
        see(all, &all->book->list[all->writes[i].at], i);
    else
        note_failure(all, i, status, error);
}

enum sl_status sl_book_take(struct sl_book *book, struct sl_error *error)
{
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_share_lease *leases = sl_arena_alloc(arena, (book->n + 1) * sizeof(*leases));
    size_t *at = sl_arena_alloc(arena, (book->n + 1) * sizeof(*at));
    size_t *chosen = sl_arena_alloc(arena, (book->n + 1) * sizeof(*chosen));
    struct sl_clock *clock = book->options.clock;
    struct sl_share share = {
        .leases = leases, .worker = book->options.worker, .random = clock->random(clock)};
    share.n = describe(book, leases, at);
    size_t n = sl_share_choose(&share, arena, chosen);
    struct writing all = begin_all(book, arena);
    enum sl_status status = SL_OK;
    for (size_t i = 0; i < n; i++)
        add_take(&all, at[chosen[i]]);
    send(&all);
    for (size_t i = 0; i < all.n; i++)
        judge_take(&all, i, &status, error);
    sl_arena_destroy(arena);
    return status;
}
