/* The table that a record comes from: read from its ARN, or from what Kinesis' records say. */
#include "handlers/builtin/toolkit/source_table.h"

#include "base/array.h"

struct sl_span sl_source_table_arn_part(struct sl_span arn, unsigned number)
{
    if (arn.len < 4 || memcmp(arn.ptr, "arn:", 4) != 0)
        return (struct sl_span){NULL, 0};
    const char *at = arn.ptr, *end = arn.ptr + arn.len, *colon;
    for (; (colon = memchr(at, ':', (size_t)(end - at))); at = colon + 1)
        if (number-- == 0)
            return (struct sl_span){at, (size_t)(colon - at)};
    return (struct sl_span){NULL, 0};
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL */
struct sl_source_table sl_source_table_of(const struct sl_host *host, const struct sl_record *r)
{
    struct sl_source_table s = {.region = host->record_text(r, SL_FIELD_REGION),
                                .table = host->record_text(r, SL_FIELD_TABLE)};
    struct sl_span arn = host->record_text(r, SL_FIELD_SOURCE_ARN);
    if (sl_span_is(arn, SL_REPLAYED_ARN))
        return (struct sl_source_table){.table = {NULL, 0}};
    if (!sl_span_is(sl_source_table_arn_part(arn, 2), "dynamodb"))
        return s;
    struct sl_span region = sl_source_table_arn_part(arn, 3);
    s.region = region.len ? region : s.region;
    s.account = sl_source_table_arn_part(arn, 4);
    return s;
}

void sl_source_table_drop_local(struct sl_source_table *s)
{
    if (sl_span_is(s->region, "ddblocal"))
        *s = (struct sl_source_table){.table = s->table};
}

static bool part_fits(struct sl_span x, struct sl_span y)
{
    return x.len == 0 || y.len == 0 || sl_span_eq(x, y);
}

bool sl_source_table_fits(const struct sl_source_table *x, const struct sl_source_table *y)
{
    return part_fits(x->account, y->account) && part_fits(x->region, y->region) &&
           part_fits(x->table, y->table);
}

static bool part_covers(struct sl_span known, struct sl_span other)
{
    return other.len == 0 || sl_span_eq(known, other);
}

bool sl_source_table_covers(const struct sl_source_table *known, const struct sl_source_table *other)
{
    return part_covers(known->account, other->account) && part_covers(known->region, other->region) &&
           part_covers(known->table, other->table);
}

struct sl_source_table sl_source_table_join(const struct sl_source_table *x, const struct sl_source_table *y)
{
    return (struct sl_source_table){.account = x->account.len ? x->account : y->account,
                                    .region = x->region.len ? x->region : y->region,
                                    .table = x->table.len ? x->table : y->table};
}

struct sl_span sl_source_table_text(const struct sl_host *host, struct sl_arena *arena,
                                    const struct sl_source_table *s)
{
    bool has_more = s->region.len || s->account.len;
    struct sl_span parts[] = {s->table,
                              has_more ? SL_LIT(" (") : SL_LIT(""),
                              s->region,
                              s->region.len && s->account.len ? SL_LIT(", ") : SL_LIT(""),
                              s->account.len ? SL_LIT("account ") : SL_LIT(""),
                              s->account,
                              has_more ? SL_LIT(")") : SL_LIT("")};
    return host->join(arena, parts, SL_COUNT(parts));
}
