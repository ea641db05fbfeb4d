/* Does a handler write into the table that it reads? */
#include "handlers/builtin/toolkit/loop.h"

static struct sl_span parameter(struct sl_span url, const char *name)
{
    size_t n = strlen(name);
    const char *end = url.ptr + url.len;
    for (const char *at = memchr(url.ptr, '?', url.len); at && at + 1 + n <= end;) {
        const char *value = at + 1 + n, *next = memchr(at + 1, '&', (size_t)(end - at - 1));
        if (memcmp(at + 1, name, n) == 0)
            return (struct sl_span){value, (size_t)((next ? next : end) - value)};
        at = next;
    }
    return (struct sl_span){NULL, 0};
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME */
static void take_arn(struct sl_loop *loop, struct sl_span arn)
{
    const char *slash = memchr(arn.ptr, '/', arn.len);
    loop->target.table = slash ? (struct sl_span){slash + 1, (size_t)(arn.ptr + arn.len - slash - 1)} : arn;
    loop->target.region = sl_source_table_arn_part(arn, 3);
    loop->target.account = sl_source_table_arn_part(arn, 4);
}

void sl_loop_init(struct sl_loop *loop, struct sl_span url)
{
    const char *slashes = memmem(url.ptr, url.len, "://", 3);
    *loop = (struct sl_loop){.is_local = !slashes};
    if (loop->is_local) {
        loop->target.table = parameter(url, "table=");
        return;
    }
    struct sl_span rest = {slashes + 3, (size_t)(url.ptr + url.len - slashes - 3)};
    const char *query = memchr(rest.ptr, '?', rest.len);
    rest.len = query ? (size_t)(query - rest.ptr) : rest.len;
    if (sl_source_table_arn_part(rest, 0).ptr) {
        take_arn(loop, rest);
        return;
    }
    loop->target.table = rest;
    loop->target.region = parameter(url, "region=");
    loop->target.account = sl_source_table_arn_part(parameter(url, "role="), 4);
}

bool sl_loop_closes(const struct sl_loop *loop, const struct sl_host *host, const struct sl_slice *slice)
{
    if (loop->is_local || slice->n == 0)
        return false;
    const struct sl_record *r = slice->records[0];
    struct sl_source_table from = {.account =
                                       sl_source_table_arn_part(host->record_text(r, SL_FIELD_SOURCE_ARN), 4),
                                   .region = host->record_text(r, SL_FIELD_REGION),
                                   .table = host->record_text(r, SL_FIELD_TABLE)};
    if (!sl_span_eq(loop->target.table, from.table))
        return false;
    sl_source_table_drop_local(&from);
    return sl_source_table_fits(&loop->target, &from);
}

enum sl_status sl_loop_refuse(const struct sl_loop *loop, const struct sl_host *host, const char *advice,
                              struct sl_error *error)
{
    return host->fail(
        error, SL_FATAL, "TargetIsSource",
        "to: %.*s is the table that the records come from: name another table%s (a table of the same "
        "name in another account is named by its ARN)",
        SL_ARG(loop->target.table), advice);
}
