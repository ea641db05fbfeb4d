/* Reads both tables twice, plans what the target lacks, and writes it: see handover.h. */
#include "live/lease/handover.h"

#include "base/array.h"
#include "base/json_walk.h"
#include "base/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS     60000
#define VALUE_BYTES (64 * 1024) /* of a row: the longest are the ids of its parents and children */
#define WRITES      100

struct row {
    struct sl_lease lease;
    bool is_many; /* of a scheduler of several streams */
};

struct table {
    struct row *rows; /* by shard */
    size_t n, room, others;
};

struct pair {
    const char *parent, *child;
};

struct handover {
    const struct sl_handover_options *options;
    struct sl_handover_counts *counts;
    struct sl_arena *arena;
    struct table from, to;
    bool is_many; /* as the target's rows are written */
    struct pair *pairs;
    size_t n_pairs;
    struct sl_table_op *ops;
    struct sl_test *tests;
    size_t n_ops;
};

/* ---- reading ---- */

static int by_shard(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return strcmp(x->lease.key, y->lease.key);
}

static enum sl_status take_row(struct handover *h, struct sl_span item, bool is_newer, struct table *table,
                               struct sl_error *error)
{
    struct row row = {.is_many = false};
    bool is_one = true;
    enum sl_status status =
        is_newer ? sl_lease_read_newer(item, h->options->stream_arn, h->arena, &row.lease, &is_one, error)
                 : sl_lease_read(item, h->arena, &row.lease, error);
    if (status != SL_OK)
        return status;
    if (!is_newer && row.lease.stream && strcmp(row.lease.stream, h->options->stream_arn) != 0)
        return sl_fail(error, SL_REJECT, "AnotherStream", "the row %s is of the stream %s", row.lease.key,
                       row.lease.stream);
    row.is_many = is_newer && sl_json_walk_member(item, SL_LIT("streamName")).ptr;
    if (is_one)
        SL_PUSH_IN(h->arena, table->rows, table->n, table->room) = row;
    else
        table->others++;
    return SL_OK;
}

static enum sl_status read_table(struct handover *h, bool is_source, struct table *table, bool may_be_absent,
                                 struct sl_error *error)
{
    const struct sl_handover_options *o = h->options;
    struct sl_table_port *port = is_source ? o->from : o->to;
    const char *name = is_source ? o->from_name : o->to_name;
    struct sl_table_scan scan = {.is_consistent = true};
    const struct sl_call call = {.arena = h->arena, .deadline_ms = o->clock->now_ms(o->clock) + CALL_MS};
    enum sl_status status = SL_OK;
    *table = (struct table){.n = 0};
    do {
        struct sl_table_page page;
        port->scan(port, &scan, 1, &page, &call);
        if (page.result.status != SL_OK && may_be_absent &&
            strcmp(page.result.code, "ResourceNotFoundException") == 0)
            return SL_OK;
        if (page.result.status != SL_OK)
            return sl_fail(error, page.result.status, page.result.code, "%s", page.result.text);
        for (size_t i = 0; i < page.n && status == SL_OK; i++)
            status = take_row(h, page.items[i], is_source != o->is_given, table, error);
        scan.after = page.next;
    } while (status == SL_OK && scan.after.ptr);
    if (status != SL_OK)
        sl_error_context(error, "%s", name);
    else if (table->n)
        qsort(table->rows, table->n, sizeof(*table->rows), by_shard);
    return status;
}

static const struct row *find(const struct table *table, const char *shard)
{
    const struct row row = {.lease = {.key = shard}};
    return table->n ? bsearch(&row, table->rows, table->n, sizeof(row), by_shard) : NULL;
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What a worker that runs changes at least every third of its failover time. */
static bool has_moved(const struct row *a, const struct row *b)
{
    return !b || a->lease.counter != b->lease.counter || !is_same_text(a->lease.owner, b->lease.owner) ||
           strcmp(a->lease.checkpoint, b->lease.checkpoint) != 0;
}

static enum sl_status check_still(const char *name, const struct table *before, const struct table *after,
                                  struct sl_error *error)
{
    for (size_t i = 0; i < after->n; i++) {
        const struct row *row = &after->rows[i];
        if (has_moved(row, find(before, row->lease.key)))
            return sl_fail(error, SL_REJECT, "Running",
                           "%s: the lease of %s was written meanwhile, by %s: stop all workers of both, and "
                           "try again",
                           name, row->lease.key, row->lease.owner ? row->lease.owner : "a worker");
    }
    return before->n == after->n ? SL_OK
                                 : sl_fail(error, SL_REJECT, "Running",
                                           "%s: a lease was deleted meanwhile: stop all workers of both, and "
                                           "try again",
                                           name);
}

static enum sl_status read_both(struct handover *h, struct sl_error *error)
{
    const struct sl_handover_options *o = h->options;
    struct table from, to;
    enum sl_status status = read_table(h, true, &from, false, error);
    if (status == SL_OK)
        status = read_table(h, false, &to, true, error);
    if (status != SL_OK)
        return status;
    o->clock->sleep_ms(o->clock, o->wait_ms);
    status = read_table(h, true, &h->from, false, error);
    if (status == SL_OK)
        status = read_table(h, false, &h->to, true, error);
    if (status == SL_OK)
        status = check_still(o->from_name, &from, &h->from, error);
    if (status == SL_OK)
        status = check_still(o->to_name, &to, &h->to, error);
    if (status == SL_OK && h->from.n == 0)
        status = sl_fail(error, SL_REJECT, "NoLeases", "%s: has no lease of the stream %s", o->from_name,
                         o->stream_arn);
    return status;
}

/* ---- writing a row ---- */

static void add_text(struct sl_buffer *out, const char *name, const char *type, const char *text)
{
    sl_buffer_printf(out, "%s\"%s\":{", out->len > 1 ? "," : "", name);
    sl_json_add_member(out, type, sl_span_str(text));
    sl_buffer_add_char(out, '}');
}

static void add_number(struct sl_buffer *out, const char *name, int64_t number)
{
    sl_buffer_printf(out, ",\"%s\":{\"N\":\"%" PRId64 "\"}", name, number);
}

/* The shards that name this one as a parent, or its parents. */
static void add_set(struct sl_buffer *out, const char *name, const char *const *list, size_t n)
{
    if (!n)
        return;
    sl_buffer_printf(out, ",\"%s\":{\"SS\":[", name);
    for (size_t i = 0; i < n; i++) {
        sl_buffer_add_str(out, i ? "," : "");
        sl_json_add_string(out, sl_span_str(list[i]));
    }
    sl_buffer_add_str(out, "]}");
}

/* Of the pairs, which are in the parents' order. */
static void add_children(const struct handover *h, struct sl_buffer *out, const char *shard)
{
    size_t low = 0, high = h->n_pairs, n = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(h->pairs[middle].parent, shard) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < h->n_pairs && strcmp(h->pairs[low + n].parent, shard) == 0)
        n++;
    const char **list = sl_arena_alloc(h->arena, (n + 1) * sizeof(*list));
    for (size_t i = 0; i < n; i++)
        list[i] = h->pairs[low + i].child;
    add_set(out, "childShardIds", list, n);
}

static int by_parent(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = strcmp(x->parent, y->parent);
    return order ? order : strcmp(x->child, y->child);
}

static void find_pairs(struct handover *h)
{
    size_t room = 0;
    for (size_t i = 0; i < h->from.n; i++) {
        const struct sl_lease *lease = &h->from.rows[i].lease;
        for (size_t k = 0; k < lease->n_parents; k++)
            SL_PUSH_IN(h->arena, h->pairs, h->n_pairs, room) = (struct pair){lease->parents[k], lease->key};
    }
    if (h->n_pairs)
        qsort(h->pairs, h->n_pairs, sizeof(*h->pairs), by_parent);
}

/* What was written to `out`, in the arena. */
static struct sl_span kept(const struct handover *h, struct sl_buffer *out)
{
    struct sl_span text = sl_buffer_span(out);
    text = sl_span(sl_arena_copy(h->arena, text), text.len);
    sl_buffer_clean_up(out);
    return text;
}

static struct sl_span key_of(const struct handover *h, const char *shard)
{
    const char *key = h->is_many
                          ? sl_arena_printf(h->arena, "%s:%s",
                                            sl_lease_stream_name(h->options->stream_arn, h->arena), shard)
                          : shard;
    struct sl_buffer out;
    sl_buffer_init(&out, VALUE_BYTES);
    sl_buffer_add_char(&out, '{');
    add_text(&out, "leaseKey", "S", key);
    sl_buffer_add_char(&out, '}');
    return kept(h, &out);
}

static const char *checkpoint_of(const struct handover *h, const struct sl_lease *lease)
{
    enum sl_lease_place place = sl_lease_place(lease->checkpoint);
    bool is_a_time = place == SL_LEASE_LATEST || place == SL_LEASE_AT_TIMESTAMP;
    return h->options->is_given && is_a_time ? sl_lease_checkpoint(SL_LEASE_TRIM_HORIZON, NULL)
                                             : lease->checkpoint;
}

static struct sl_span item_of(struct handover *h, const struct sl_lease *lease, int64_t counter)
{
    const struct sl_handover_options *o = h->options;
    struct sl_buffer out;
    sl_buffer_init(&out, VALUE_BYTES);
    struct sl_span key = key_of(h, lease->key);
    sl_buffer_add(&out, key.ptr, key.len - 1);
    add_number(&out, "leaseCounter", counter);
    add_number(&out, "checkpointSubSequenceNumber", 0);
    add_number(&out, "ownerSwitchesSinceCheckpoint", 0);
    add_text(&out, "checkpoint", "S", checkpoint_of(h, lease));
    add_set(&out, "parentShardId", lease->parents, lease->n_parents);
    if (!o->is_given) {
        add_text(&out, "sluiceStream", "S", o->stream_arn);
        if (sl_lease_place(lease->checkpoint) == SL_LEASE_LATEST)
            add_number(&out, "sluiceSince", o->clock->wall_ns(o->clock) / 1000000);
    } else {
        add_text(&out, "startingHashKey", "S", "0");
        add_text(&out, "endingHashKey", "S", "1");
        add_children(h, &out, lease->key);
        if (h->is_many) {
            add_text(&out, "streamName", "S", sl_lease_stream_name(o->stream_arn, h->arena));
            add_text(&out, "shardId", "S", lease->key);
        }
    }
    sl_buffer_add_char(&out, '}');
    return kept(h, &out);
}

/* ---- the plan ---- */

static void add_op(struct handover *h, const struct row *seen, const char *shard,
                   const struct sl_lease *lease)
{
    struct sl_test *test = &h->tests[h->n_ops];
    struct sl_table_op *op = &h->ops[h->n_ops++];
    int64_t counter = seen ? seen->lease.counter : lease->counter;
    const char *number = seen ? sl_arena_printf(h->arena, "{\"N\":\"%" PRId64 "\"}", counter) : NULL;
    *test = seen ? (struct sl_test){SL_EQ, SL_LIT("leaseCounter"), sl_span_str(number)}
                 : (struct sl_test){.verb = SL_ABSENT, .name = SL_LIT("leaseKey")};
    *op = (struct sl_table_op){
        .verb = lease ? SL_TABLE_PUT : SL_TABLE_DELETE, .key = key_of(h, shard), .tests = test, .n_tests = 1};
    if (lease)
        op->item = item_of(h, lease, counter + 1);
}

static void step(struct handover *h, enum sl_handover_act act, const struct row *seen,
                 const struct sl_lease *lease)
{
    const struct sl_handover_step what = {.act = act,
                                          .shard = lease ? lease->key : seen->lease.key,
                                          .before = seen ? seen->lease.checkpoint : NULL,
                                          .after = lease ? checkpoint_of(h, lease) : NULL};
    h->counts->acts[act]++;
    if (h->options->say)
        h->options->say(h->options->arg, &what);
    if (act != SL_HANDOVER_SAME)
        add_op(h, seen, what.shard, lease);
}

static enum sl_status check_direction(const struct handover *h, struct sl_error *error)
{
    for (size_t i = 0; i < h->from.n; i++) {
        const struct sl_lease *lease = &h->from.rows[i].lease;
        const struct row *seen = find(&h->to, lease->key);
        if (seen && sl_lease_is_before(lease->checkpoint, seen->lease.checkpoint))
            return sl_fail(
                error, SL_REJECT, "Backwards",
                "%s: is further than %s: the shard %s is at %s there, and at %s here. Is it the other "
                "direction? If not, delete the target's rows",
                h->options->to_name, h->options->from_name, lease->key, seen->lease.checkpoint,
                lease->checkpoint);
    }
    return SL_OK;
}

static void plan(struct handover *h)
{
    size_t i = 0, k = 0;
    h->ops = sl_arena_zalloc(h->arena, (h->from.n + h->to.n) * sizeof(*h->ops));
    h->tests = sl_arena_zalloc(h->arena, (h->from.n + h->to.n) * sizeof(*h->tests));
    find_pairs(h);
    while (i < h->from.n || k < h->to.n) {
        const struct row *row = i < h->from.n ? &h->from.rows[i] : NULL,
                         *seen = k < h->to.n ? &h->to.rows[k] : NULL;
        int order = !row ? 1 : !seen ? -1 : by_shard(row, seen);
        if (order > 0) {
            step(h, SL_HANDOVER_REMOVED, seen, NULL);
        } else {
            const char *checkpoint = checkpoint_of(h, &row->lease);
            bool is_same = order == 0 && strcmp(checkpoint, seen->lease.checkpoint) == 0;
            h->counts->from_start += strcmp(checkpoint, row->lease.checkpoint) != 0;
            step(h,
                 is_same ? SL_HANDOVER_SAME
                 : order ? SL_HANDOVER_NEW
                         : SL_HANDOVER_MOVED,
                 order ? NULL : seen, &row->lease);
        }
        i += order <= 0;
        k += order >= 0;
    }
}

static enum sl_status carry_out(struct handover *h, struct sl_error *error)
{
    const struct sl_handover_options *o = h->options;
    for (size_t at = 0; at < h->n_ops; at += WRITES) {
        struct sl_result results[WRITES];
        size_t n = h->n_ops - at < WRITES ? h->n_ops - at : WRITES;
        const struct sl_call call = {.arena = h->arena, .deadline_ms = o->clock->now_ms(o->clock) + CALL_MS};
        o->to->apply(o->to, h->ops + at, n, results, &call);
        for (size_t i = 0; i < n; i++)
            if (results[i].status != SL_OK)
                return sl_fail(error, results[i].status, results[i].code,
                               "%s: the leases are not all written: run it again: %s", o->to_name,
                               results[i].text);
    }
    return SL_OK;
}

enum sl_status sl_handover_run(const struct sl_handover_options *options, struct sl_handover_counts *counts,
                               struct sl_error *error)
{
    struct handover h = {.options = options, .counts = counts, .arena = sl_arena_new(64 * 1024)};
    *counts = (struct sl_handover_counts){.leases = 0};
    enum sl_status status = read_both(&h, error);
    if (status == SL_OK)
        status = check_direction(&h, error);
    if (status == SL_OK) {
        h.is_many = options->is_given && (h.to.n ? h.to.rows[0].is_many : options->is_many);
        counts->leases = h.from.n;
        counts->others = h.from.others;
        plan(&h);
        if (options->writes && options->prepare)
            status = options->prepare(options->arg, error);
        if (options->writes && status == SL_OK)
            status = carry_out(&h, error);
    }
    sl_arena_destroy(h.arena);
    return status;
}
