/* The replicate handler: the table ends equal to the source.
 *
 * A slice is folded: of each item only its newest change is written, guarded so that it only takes effect
 * when it is newer than what is there. A write that the guard refuses has been overtaken, which is success.
 * So slices may come again, in part, late and in any order. */
#include "handlers/replicate.h"

#include "handlers/keymap.h"
#include "handlers/outcome.h"

#include <inttypes.h>
#include <stdio.h>

#define NONE UINT32_MAX

/* One item of the slice. */
struct change {
    uint32_t newest; /* its record that is written */
    struct sl_span order, guard, key;
    struct replicate_image image;
    bool is_out;   /* nothing is written for it: failed before, or nothing to do */
    uint32_t op;   /* its first operation */
    uint32_t last; /* its last record in the slice; `before` leads to the others */
};

struct fold {
    const struct replicate *p;
    struct sl_slice *slice;
    struct sl_outcome outcome;
    struct sl_keymap items;
    struct change *changes;
    uint32_t *before;           /* record -> the record before it of the same change, NONE */
    struct sl_test (*tests)[2]; /* of the changes */
    size_t n_read_back;
    size_t refused_newer;
    struct sl_span example; /* the sequence number of one of them */
};

/* ---- folding ---- */

/* Removals that the replica is to survive. */
static bool is_kept(const struct replicate *p, const struct sl_record *r)
{
    enum sl_ttl ttl = p->host->record_ttl(r);
    if (p->expired == REPLICATE_DELETE)
        return false;
    return ttl == SL_TTL_EXPIRED || (ttl == SL_TTL_INFERRED && p->expired == REPLICATE_KEEP_ANY);
}

static void record_fold(struct fold *f, size_t i, struct sl_span order, struct sl_span item_key,
                        bool may_carry)
{
    uint32_t known = f->items.n;
    uint32_t c = sl_keymap_index(&f->items, item_key);
    struct change *change = &f->changes[c];
    if (c == known)
        *change = (struct change){.order = order, .last = NONE};
    if (replicate_order_compare(order, change->order) >= 0) {
        change->newest = (uint32_t)i;
        change->order = order;
        change->image.may_carry = may_carry;
    }
    f->before[i] = change->last;
    change->last = (uint32_t)i;
}

/* Items are told apart by the replica's key where a template makes it. */
static enum sl_status record_take(struct fold *f, size_t i, struct sl_error *error)
{
    const struct replicate *p = f->p;
    const struct sl_record *r = f->slice->records[i];
    bool is_echo, may_carry;
    if (p->host->record_image(r, SL_KEYS).type == SL_NONE)
        return p->host->fail(error, SL_REJECT, "NoKeys", "the record does not say what its item's key is");
    enum sl_status status = replicate_is_echo(p, r, &is_echo, &may_carry, error);
    if (status != SL_OK || is_echo || is_kept(p, r))
        return status;
    struct sl_span key;
    if (p->n_keys == 0)
        key = p->host->record_item_key(r, f->slice->arena);
    else
        status = replicate_key(p, r, f->slice->arena, &key, error);
    if (status == SL_OK)
        record_fold(f, i, p->host->record_order(r, f->slice->arena), key, may_carry);
    return status;
}

static enum sl_status fold_slice(struct fold *f, struct sl_error *error)
{
    const struct sl_host *host = f->p->host;
    struct sl_arena *arena = f->slice->arena;
    size_t n = f->slice->n;
    sl_outcome_init(&f->outcome, host, f->slice);
    sl_keymap_init(&f->items, host, arena, n);
    f->changes = host->alloc(arena, n * sizeof(*f->changes));
    f->tests = host->alloc(arena, n * sizeof(*f->tests));
    f->before = host->alloc(arena, n * sizeof(*f->before));
    for (size_t i = 0; i < n; i++) {
        struct sl_error why = {.offset = SIZE_MAX};
        enum sl_status status = record_take(f, i, &why);
        if (status == SL_FATAL)
            return host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            sl_outcome_fail(&f->outcome, i, &why);
    }
    return SL_OK;
}

/* ---- what became of a change ---- */

/* A refusal is the newest record's; whether the older ones that it was folded with could be written is not
 * known. Everything else is true of all of them. */
static void change_fail(struct fold *f, uint32_t c, const struct sl_error *error)
{
    struct change *change = &f->changes[c];
    change->is_out = true;
    for (uint32_t i = change->last; i != NONE; i = f->before[i]) {
        if (error->status == SL_REJECT && i != change->newest)
            sl_outcome_unknown(&f->outcome, i, error);
        else
            sl_outcome_fail(&f->outcome, i, error);
    }
}

/* ---- reading back ---- */

/* A change that came without its image gets it from the source: what is there now, or nothing. */
static enum sl_status image_find(struct fold *f, struct change *change, struct sl_error *error)
{
    const struct replicate *p = f->p;
    const struct sl_record *r = f->slice->records[change->newest];
    if (p->host->record_event(r) == SL_REMOVE)
        return SL_OK;
    change->image.value = p->host->record_image(r, SL_NEW_IMAGE);
    if (change->image.value.type != SL_NONE)
        return SL_OK;
    if (!p->source)
        return p->host->fail(
            error, p->host->record_view(r) == SL_VIEW_UNKNOWN ? SL_REJECT : SL_FATAL, "ViewType",
            "the record has no NewImage: name the source table in \"source\" so that items are "
            "read back, or enable the stream with NEW_IMAGE or NEW_AND_OLD_IMAGES");
    change->image.is_read_back = true;
    f->n_read_back++;
    return SL_OK;
}

static enum sl_status read_back_take(struct fold *f, struct change *change, const struct sl_result *result,
                                     struct sl_error *error)
{
    const struct replicate *p = f->p;
    if (result->status != SL_OK) {
        sl_outcome_error(p->host, result, error);
        return error->status;
    }
    if (!result->item.ptr) {
        /* Removed since. Its own removal will tell whether the replica keeps it. */
        change->is_out = p->expired != REPLICATE_DELETE;
        return SL_OK;
    }
    change->image.value = (struct sl_value){.type = SL_M, .raw = result->item};
    if (p->guard == REPLICATE_INLINE && !p->copies_replicated &&
        replicate_find(p, change->image.value, p->guard_attribute).type != SL_NONE)
        return p->host->fail(
            error, SL_FATAL, "ViewType",
            "the source's item carries %.*s, and a stream without both images cannot tell whether "
            "a replicate made the change: enable it with NEW_AND_OLD_IMAGES, or set "
            "\"replicated\": \"copy\"",
            SL_TEXT_ARG(p->guard_attribute));
    return SL_OK;
}

static void read_back(struct fold *f)
{
    const struct replicate *p = f->p;
    struct sl_arena *arena = f->slice->arena;
    struct sl_table_op *ops = p->host->alloc(arena, f->n_read_back * sizeof(*ops));
    struct sl_result *results = p->host->alloc(arena, f->n_read_back * sizeof(*results));
    uint32_t *change_of = p->host->alloc(arena, f->n_read_back * sizeof(*change_of));
    size_t n = 0;
    for (uint32_t c = 0; c < f->items.n; c++) {
        if (!f->changes[c].image.is_read_back)
            continue;
        const struct sl_record *r = f->slice->records[f->changes[c].newest];
        ops[n] = (struct sl_table_op){.verb = SL_TABLE_GET, .key = p->host->record_image(r, SL_KEYS).raw};
        change_of[n++] = c;
    }
    memset(results, 0, n * sizeof(*results));
    struct sl_call call = {.arena = arena, .deadline_ms = f->slice->deadline_ms};
    p->source->apply(p->source, ops, n, results, &call);
    for (size_t k = 0; k < n; k++) {
        struct sl_error error = {.offset = SIZE_MAX};
        if (read_back_take(f, &f->changes[change_of[k]], &results[k], &error) != SL_OK)
            change_fail(f, change_of[k], &error);
    }
}

/* ---- writing ---- */

static void guard_tests(struct fold *f, uint32_t c, struct sl_span name, struct sl_table_op *op)
{
    struct sl_test *tests = f->tests[c];
    tests[0] = (struct sl_test){.verb = SL_ABSENT, .name = name};
    tests[1] =
        (struct sl_test){.verb = SL_LT, .name = name, .value = replicate_guard_value(f->changes[c].guard)};
    op->tests = tests;
    op->n_tests = 2;
    op->any_test = true;
    op->want_item = true;
}

/* The replica's item, or its removal. */
static enum sl_status item_op(struct fold *f, uint32_t c, struct sl_table_op *op, struct sl_error *error)
{
    const struct replicate *p = f->p;
    struct change *change = &f->changes[c];
    const struct sl_record *r = f->slice->records[change->newest];
    *op = (struct sl_table_op){.verb = SL_TABLE_PUT, .key = change->key};
    if (p->guard == REPLICATE_INLINE)
        guard_tests(f, c, p->guard_attribute, op);
    if (change->image.value.type != SL_NONE)
        return replicate_item(p, r, change->image, change->key, change->guard, f->slice->arena, &op->item,
                              error);
    if (p->guard == REPLICATE_INLINE)
        op->item = replicate_tombstone(p, change->key, change->guard, f->slice->arena);
    else
        op->verb = SL_TABLE_DELETE;
    return SL_OK;
}

/* The side table's row stands for the item as long as the item lives, and as long as a tombstone after. */
static void guard_op(struct fold *f, uint32_t c, struct sl_table_op *op)
{
    const struct replicate *p = f->p;
    const struct change *change = &f->changes[c];
    struct sl_arena *arena = f->slice->arena;
    char digest[SL_TEXT_DIGEST_BYTES + 1], expires[64] = "";
    struct sl_span item = f->items.entries[c].text;
    if (item.len > 1024) {
        sl_text_digest(p->host, item, digest);
        item = p->host->join(arena, (struct sl_span[]){{digest, SL_TEXT_DIGEST_BYTES}}, 1);
    }
    struct sl_span name[] = {p->target.table, SL_TEXT(" "), item};
    struct sl_span value = sl_text_string_value(p->host, p->host->join(arena, name, 3), arena);
    struct sl_span key[] = {SL_TEXT("{\""), p->guard_key, SL_TEXT("\":"), value, SL_TEXT("}")};
    *op = (struct sl_table_op){
        .verb = SL_TABLE_PUT, .table = p->guard_table, .key = p->host->join(arena, key, 5)};
    if (change->image.value.type == SL_NONE)
        snprintf(expires, sizeof(expires), "\":{\"N\":\"%" PRId64 "\"}",
                 p->host->wall_ns(p->route) / 1000000000 + p->tombstone_s);
    struct sl_span row[] = {key[0],
                            key[1],
                            key[2],
                            value,
                            SL_TEXT(",\"order\":{\"S\":\""),
                            change->guard,
                            SL_TEXT("\"}"),
                            expires[0] ? SL_TEXT(",\"") : SL_TEXT(""),
                            expires[0] ? p->ttl_attribute : SL_TEXT(""),
                            sl_text_of(expires),
                            SL_TEXT("}")};
    op->item = p->host->join(arena, row, sizeof(row) / sizeof(*row));
    guard_tests(f, c, SL_TEXT("order"), op);
}

static size_t change_ops(struct fold *f, uint32_t c, struct sl_table_op *ops, size_t n)
{
    const struct replicate *p = f->p;
    struct change *change = &f->changes[c];
    const struct sl_record *r = f->slice->records[change->newest];
    struct sl_error error = {.offset = SIZE_MAX};
    change->op = (uint32_t)n;
    enum sl_status status = replicate_key(p, r, f->slice->arena, &change->key, &error);
    if (status == SL_OK)
        status = replicate_order(p, r, change->order, f->slice->arena, &change->guard, &error);
    if (status == SL_OK)
        status = item_op(f, c, &ops[n], &error);
    if (status != SL_OK) {
        change_fail(f, c, &error);
        return n;
    }
    n++;
    if (p->guard == REPLICATE_SIDE) {
        guard_op(f, c, &ops[n]);
        ops[n].group = ops[n - 1].group = c + 1;
        n++;
    }
    return n;
}

/* ---- results ---- */

/* Of the results of a transaction the one that says why. */
static const struct sl_result *telling(const struct sl_result *results, size_t n)
{
    const struct sl_result *worst = &results[0];
    for (size_t i = 1; i < n; i++) {
        bool says_more = worst->status == SL_REJECT && worst->code &&
                         sl_text_eq(sl_text_of(worst->code), SL_TEXT("TransactionCanceled"));
        if (results[i].status != SL_OK && (worst->status == SL_OK || says_more))
            worst = &results[i];
    }
    return worst;
}

static void change_result(struct fold *f, uint32_t c, const struct sl_result *results)
{
    const struct replicate *p = f->p;
    const struct change *change = &f->changes[c];
    const struct sl_result *of_guard = &results[p->guard == REPLICATE_SIDE ? 1 : 0];
    if (of_guard->condition_failed) {
        if (replicate_is_refused_newer(p, change->guard, of_guard->item)) {
            f->refused_newer++;
            f->example = p->host->record_text(f->slice->records[change->newest], SL_FIELD_IDENTIFIER);
        }
        return;
    }
    const struct sl_result *result = telling(results, p->guard == REPLICATE_SIDE ? 2 : 1);
    if (result->status == SL_OK)
        return;
    struct sl_error error;
    sl_outcome_error(p->host, result, &error);
    change_fail(f, c, &error);
}

static void warn_refused(const struct fold *f)
{
    const struct replicate *p = f->p;
    p->host->metric(p->route, "RefusedNewer", (double)f->refused_newer, "Count");
    p->host->log(
        p->route, SL_WARN,
        "%zu changes were refused by their guards although they are newer by time (one is %.*s): the "
        "source was restored, or is another table or Region's; raise \"epoch\" above %" PRId64
        " if it is the one to follow",
        f->refused_newer, SL_TEXT_ARG(f->example), p->epoch);
}

static void write_changes(struct fold *f)
{
    const struct replicate *p = f->p;
    struct sl_arena *arena = f->slice->arena;
    size_t most = (size_t)f->items.n * (p->guard == REPLICATE_SIDE ? 2 : 1), n = 0;
    struct sl_table_op *ops = p->host->alloc(arena, most * sizeof(*ops));
    struct sl_result *results = p->host->alloc(arena, most * sizeof(*results));
    for (uint32_t c = 0; c < f->items.n; c++)
        if (!f->changes[c].is_out)
            n = change_ops(f, c, ops, n);
    if (n == 0)
        return;
    memset(results, 0, n * sizeof(*results));
    struct sl_call call = {.arena = arena, .deadline_ms = f->slice->deadline_ms};
    p->table->apply(p->table, ops, n, results, &call);
    for (uint32_t c = 0; c < f->items.n; c++)
        if (!f->changes[c].is_out)
            change_result(f, c, &results[f->changes[c].op]);
    if (f->refused_newer > 0)
        warn_refused(f);
}

/* ---- the slice ---- */

static enum sl_status check_target(const struct replicate *p, const struct sl_record *r,
                                   struct sl_error *error)
{
    if (!sl_loop_closes(&p->target, p->host, r))
        return SL_OK;
    return p->host->fail(error, SL_FATAL, "TargetIsSource",
                         "the target is the table that the records come from, %.*s",
                         SL_TEXT_ARG(p->target.table));
}

static enum sl_status handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    struct fold f = {.p = self, .slice = slice};
    enum sl_status status = slice->n ? check_target(f.p, slice->records[0], error) : SL_OK;
    if (status == SL_OK)
        status = fold_slice(&f, error);
    if (status != SL_OK)
        return status;
    for (uint32_t c = 0; c < f.items.n; c++) {
        struct sl_error why = {.offset = SIZE_MAX};
        status = image_find(&f, &f.changes[c], &why);
        if (status == SL_FATAL)
            return f.p->host->fail(error, status, why.code, "%s", why.text);
        if (status != SL_OK)
            change_fail(&f, c, &why);
    }
    if (f.n_read_back > 0)
        read_back(&f);
    write_changes(&f);
    return sl_outcome_end(&f.outcome, error);
}

/* Removals need no image, and where the source may be read, nothing does. */
static enum sl_status accepts(void *self, enum sl_view view, struct sl_error *error)
{
    const struct replicate *p = self;
    bool only_removals = (p->events & ~(1u << SL_REMOVE)) == 0;
    if (p->source || only_removals || (view != SL_VIEW_KEYS_ONLY && view != SL_VIEW_OLD_IMAGE))
        return SL_OK;
    return p->host->fail(
        error, SL_FATAL, "ViewType",
        "a stream of view type %s does not carry the items: name the source table in \"source\" so "
        "that they are read back, or enable the stream with NEW_IMAGE or NEW_AND_OLD_IMAGES",
        view == SL_VIEW_KEYS_ONLY ? "KEYS_ONLY" : "OLD_IMAGE");
}

const struct sl_handler sl_replicate_handler = {
    .abi = SL_HANDLER_ABI,
    .name = "replicate",
    .summary = "a table that ends equal to the source",
    .options = replicate_options,
    .open = replicate_open,
    .handle = handle,
    .accepts = accepts,
};
