/* The table that a ledger belongs to.
 *
 * The ledger's rows name items by their keys alone. So a row "sluice:source:NAME" says whose items they are:
 * account, Region and table, with the epoch and the number of sub-counters. It is written with a condition
 * and is no part of the transactions, which would conflict on it. One write per process both makes it and
 * reads it: when the condition does not hold, the answer brings the row. */
#include "base/array.h"
#include "handlers/builtin/aggregate/aggregate_run_private.h"

#include "handlers/builtin/toolkit/apply.h"

#include <inttypes.h>
#include <stdio.h>

/* Each round needs another process that wrote the row in between. */
#define ROUNDS 8

/* All of the row's own is in one attribute: no key attribute of the totals is called so. */
#define ATTRIBUTE "sluice_source"

struct row {
    struct sl_span text; /* the attribute as it is in the table, {"M":{...}}; absent: there is none */
    struct sl_source_table is;
    int64_t epoch, shards;
};

void aggregate_source_init(struct aggregate *a, struct sl_arena *arena)
{
    a->owner = a->host->alloc(arena, sizeof(*a->owner));
    *a->owner = (struct sl_source_table){.table = {NULL, 0}};
}

/* ---- records ---- */

/* Does the record come from where the last one came from? Then its texts are at the same places. */
static bool is_like_last(struct aggregate_run *run, const struct sl_record *r)
{
    static const enum sl_field fields[] = {SL_FIELD_SOURCE_ARN, SL_FIELD_REGION, SL_FIELD_TABLE};
    bool same = true;
    for (size_t i = 0; i < 3; i++) {
        struct sl_span text = run->a->host->record_text(r, fields[i]);
        same = same && text.ptr && text.ptr == run->last[i].ptr && text.len == run->last[i].len;
        run->last[i] = text;
    }
    return same;
}

/* The ledger tells items apart by their keys, so that a backfill finds the rows that the stream made. It
 * would take the items of two tables for each other. */
enum sl_status aggregate_source_take(struct aggregate_run *run, const struct sl_record *r,
                                     struct sl_error *error)
{
    const struct sl_host *host = run->a->host;
    if (is_like_last(run, r))
        return SL_OK;
    struct sl_source_table source = sl_source_table_of(host, r);
    if (sl_source_table_covers(&run->source, &source))
        return SL_OK;
    if (!sl_source_table_fits(&run->source, &source))
        return host->fail(error, SL_FATAL, "TwoTables",
                          "records come from %.*s and from %.*s, and a route counts the items of one table: "
                          "make two routes, each with its own \"when\" and its own ledger name",
                          SL_ARG(sl_source_table_text(host, run->slice->arena, &run->source)),
                          SL_ARG(sl_source_table_text(host, run->slice->arena, &source)));
    run->source = sl_source_table_join(&run->source, &source);
    return SL_OK;
}

/* ---- the row ---- */

static struct sl_span text_of(const struct aggregate_run *run, struct sl_value map, const char *name)
{
    const struct sl_host *host = run->a->host;
    struct sl_value value = host->value_member(map, sl_span_str(name));
    return value.type == SL_S ? host->value_text(value, run->slice->arena) : (struct sl_span){NULL, 0};
}

static int64_t number_of(const struct aggregate_run *run, struct sl_value map, const char *name)
{
    int64_t n = 0;
    bool good = run->a->host->value_int64(run->a->host->value_member(map, sl_span_str(name)), &n);
    return good ? n : 0;
}

static enum sl_status row_read(const struct aggregate_run *run, struct sl_span item, struct row *out,
                               struct sl_error *error)
{
    const struct sl_host *host = run->a->host;
    *out = (struct row){.epoch = run->a->epoch};
    if (!item.ptr)
        return SL_OK;
    struct sl_value row = {.type = SL_M, .raw = item};
    struct sl_value map = host->value_member(row, SL_LIT(ATTRIBUTE));
    if (map.type != SL_M)
        return host->fail(error, SL_FATAL, "LedgerRow",
                          "the row sluice:source:%.*s of the ledger was not written by aggregate: give the "
                          "ledger its own table with \"ledger\": {\"table\": ...}",
                          SL_ARG(run->a->name));
    *out = (struct row){.text = host->value_json(map, run->slice->arena),
                        .is = {.account = text_of(run, map, "account"),
                               .region = text_of(run, map, "region"),
                               .table = text_of(run, map, "table")},
                        .epoch = number_of(run, map, "epoch"),
                        .shards = number_of(run, map, "shards")};
    return SL_OK;
}

/* A member with its comma, or nothing. */
static struct sl_span text_member(const struct aggregate_run *run, const char *name, struct sl_span text)
{
    const struct sl_host *host = run->a->host;
    struct sl_arena *arena = run->slice->arena;
    struct sl_span parts[] = {SL_LIT("\""), sl_span_str(name), SL_LIT("\":"),
                              sl_text_string_value(host, text, arena), SL_LIT(",")};
    return text.len ? host->join(arena, parts, 5) : SL_LIT("");
}

/* The attribute. `table` and `shards` are always there. */
static struct sl_span row_text(const struct aggregate_run *run, const struct row *row)
{
    char numbers[96];
    snprintf(numbers, sizeof(numbers),
             "\"epoch\":{\"N\":\"%" PRId64 "\"},\"shards\":{\"N\":\"%" PRId64 "\"}}}", row->epoch,
             row->shards);
    struct sl_span parts[] = {SL_LIT("{\"M\":{"), text_member(run, "account", row->is.account),
                              text_member(run, "region", row->is.region),
                              text_member(run, "table", row->is.table), sl_span_str(numbers)};
    return run->a->host->join(run->slice->arena, parts, 5);
}

static struct sl_span row_key(const struct aggregate_run *run)
{
    const struct aggregate *a = run->a;
    struct sl_span parts[] = {SL_LIT("{\"S\":\"sluice:source:"), a->name, SL_LIT("\"}")};
    struct sl_span value = a->host->join(run->slice->arena, parts, 3);
    struct sl_span values[SL_TEXT_KEY_ATTRIBUTES] = {value, value};
    return sl_text_key(a->host, run->slice->arena, a->ledger_keys, values, a->n_ledger_keys);
}

/* Writes `next` if the row is still `seen`. */
static struct sl_result row_write(const struct aggregate_run *run, const struct row *seen,
                                  const struct row *next)
{
    const struct aggregate *a = run->a;
    struct sl_test test = {
        .verb = seen->text.ptr ? SL_EQ : SL_ABSENT, .name = SL_LIT(ATTRIBUTE), .value = seen->text};
    struct sl_table_op op = {.verb = SL_TABLE_PUT,
                             .table = a->ledger_table,
                             .key = row_key(run),
                             .tests = &test,
                             .n_tests = 1,
                             .want_item = true};
    struct sl_span parts[] = {sl_text_open_object(op.key),
                              SL_LIT(",\"" ATTRIBUTE "\":"),
                              row_text(run, next),
                              a->marks_own ? SL_LIT(",\"" AGGREGATE_OWN "\":{\"S\":\"") : SL_LIT(""),
                              a->marks_own ? a->name : SL_LIT(""),
                              a->marks_own ? SL_LIT("\"}") : SL_LIT(""),
                              SL_LIT("}")};
    op.item = a->host->join(run->slice->arena, parts, SL_COUNT(parts));
    return sl_apply_table(run->slice, a->table, &op, 1)[0];
}

/* ---- what comes after a row ---- */

static enum sl_status another_table(const struct aggregate_run *run, const struct row *row,
                                    struct sl_error *error)
{
    const struct sl_host *host = run->a->host;
    return host->fail(error, SL_FATAL, "TwoTables",
                      "the ledger %.*s counts the items of %.*s, and these records come from %.*s: make a "
                      "route for each table, with its own \"when\" and its own ledger name (\"ledger\": "
                      "{\"name\": ...}); if the second table replaces the first one, raise \"epoch\" above "
                      "%" PRId64 " and backfill it",
                      SL_ARG(run->a->name), SL_ARG(sl_source_table_text(host, run->slice->arena, &row->is)),
                      SL_ARG(sl_source_table_text(host, run->slice->arena, &run->source)), row->epoch);
}

/* The row as this route wants it, which is the same one if it has nothing to add. */
static enum sl_status row_after(const struct aggregate_run *run, const struct row *row, struct row *next,
                                struct sl_error *error)
{
    const struct aggregate *a = run->a;
    if (row->epoch > a->epoch)
        return a->host->fail(error, SL_FATAL, "LedgerEpoch",
                             "the ledger %.*s is in epoch %" PRId64 ", and this route has epoch %" PRId64
                             ": its changes would all be refused as older; an epoch is never lowered, so "
                             "set \"epoch\" to %" PRId64 " again",
                             SL_ARG(a->name), row->epoch, a->epoch, row->epoch);
    bool is_same_epoch = row->epoch == a->epoch;
    if (is_same_epoch && !sl_source_table_fits(&row->is, &run->source))
        return another_table(run, row, error);
    *next = (struct row){.is = is_same_epoch ? sl_source_table_join(&row->is, &run->source) : run->source,
                         .epoch = a->epoch,
                         .shards = a->shards};
    return SL_OK;
}

static bool is_same(const struct row *row, const struct row *next)
{
    return row->text.ptr && row->epoch == next->epoch && row->shards == next->shards &&
           sl_source_table_covers(&row->is, &next->is);
}

/* Tells of what a new row changes for those who read the totals. */
static void tell(const struct aggregate_run *run, const struct row *row, const struct row *next)
{
    const struct aggregate *a = run->a;
    if (row->text.ptr && row->shards != next->shards)
        a->host->log(a->route, SL_WARN,
                     "shards was %" PRId64 " and is %" PRId64
                     ": the rows that were written before still count; readers add up the row without a "
                     "number and all rows with one",
                     row->shards, next->shards);
    if (!row->text.ptr || row->epoch == next->epoch)
        return;
    struct sl_span was = sl_source_table_text(a->host, run->slice->arena, &row->is);
    struct sl_span is = sl_source_table_text(a->host, run->slice->arena, &next->is);
    if (was.len == is.len && memcmp(was.ptr, is.ptr, is.len) == 0)
        a->host->log(a->route, SL_INFO,
                     "the ledger %.*s begins epoch %" PRId64
                     ": items are counted anew when they change or a backfill brings them",
                     SL_ARG(a->name), next->epoch);
    else
        a->host->log(a->route, SL_WARN,
                     "the ledger %.*s belonged to %.*s, and belongs to %.*s from epoch %" PRId64 " on",
                     SL_ARG(a->name), SL_ARG(was), SL_ARG(is), next->epoch);
}

/* ---- the slice ---- */

static struct sl_span keep(const struct aggregate *a, struct sl_span text)
{
    return text.len ? a->host->join(a->host->route_arena(a->route), &text, 1) : text;
}

static void remember(const struct aggregate *a, const struct sl_source_table *is)
{
    *a->owner = (struct sl_source_table){
        .account = keep(a, is->account), .region = keep(a, is->region), .table = keep(a, is->table)};
}

/* No record is to blame for a row that cannot be written. */
static enum sl_status failed(const struct aggregate_run *run, const struct sl_result *result,
                             struct sl_error *error)
{
    struct sl_error why;
    sl_outcome_error(run->a->host, result, &why);
    return run->a->host->fail(error, result->status == SL_REJECT ? SL_FATAL : result->status, why.code,
                              "the ledger's row sluice:source:%.*s: %s", SL_ARG(run->a->name), why.text);
}

enum sl_status aggregate_source_check(struct aggregate_run *run, struct sl_error *error)
{
    const struct aggregate *a = run->a;
    struct row row = {.epoch = a->epoch}, next;
    if (a->per_event || !a->has_ledger || run->source.table.len == 0)
        return SL_OK;
    if (sl_source_table_covers(a->owner, &run->source))
        return SL_OK;
    for (int round = 0; round < ROUNDS; round++) {
        enum sl_status status = row_after(run, &row, &next, error);
        if (status != SL_OK)
            return status;
        struct sl_result result = {.status = SL_OK};
        if (!is_same(&row, &next)) {
            result = row_write(run, &row, &next);
            if (result.status == SL_OK)
                tell(run, &row, &next);
        }
        if (result.status == SL_OK) {
            remember(a, &next.is);
            return SL_OK;
        }
        if (!result.condition_failed)
            return failed(run, &result, error);
        status = row_read(run, result.item, &row, error);
        if (status != SL_OK)
            return status;
    }
    return a->host->fail(error, SL_RETRY, "LedgerBusy",
                         "other processes kept changing the ledger's row sluice:source:%.*s",
                         SL_ARG(a->name));
}
