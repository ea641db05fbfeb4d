/* Which table a target is: see cli/check/check_place.h. */
#include "cli/check/check_place.h"

#include "base/arn.h"
#include "base/span.h"
#include "base/url.h"

#define DYNAMODB SL_LIT("dynamodb")

static struct sl_span after_slash(struct sl_span text)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    return slash ? sl_span_from(text, (size_t)(slash - text.ptr) + 1) : text;
}

static struct sl_span until_slash(struct sl_span text)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    return slash ? sl_span(text.ptr, (size_t)(slash - text.ptr)) : text;
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME, also with more behind the name. */
static struct sl_check_place of_arn(struct sl_span arn)
{
    return (struct sl_check_place){.store = DYNAMODB,
                                   .region = sl_arn_part(arn, 3),
                                   .account = sl_arn_part(arn, 4),
                                   .table = until_slash(after_slash(sl_arn_part(arn, 5)))};
}

struct sl_check_place sl_check_place_of(struct sl_span url, const struct sl_vars *vars,
                                        struct sl_arena *arena)
{
    struct sl_url parsed;
    if (sl_url_parse(url, arena, &parsed, NULL) != SL_OK)
        return (struct sl_check_place){.table = {NULL, 0}};
    if (!sl_span_is(parsed.scheme, "dynamodb")) {
        struct sl_span table = sl_url_param(&parsed, "table");
        struct sl_span own = sl_span_is(parsed.scheme, "opensearch") ? after_slash(parsed.rest) : table;
        return (struct sl_check_place){
            .store = sl_span(url.ptr, (size_t)(sl_span_end(parsed.rest) - url.ptr)), .table = own};
    }
    struct sl_span arn = parsed.rest, region = sl_url_param(&parsed, "region"),
                   role = sl_url_param(&parsed, "role");
    if (sl_arn_part(arn, 0).ptr)
        return of_arn(arn);
    const char *own = sl_vars_or(vars, "AWS_REGION", sl_vars_or(vars, "AWS_DEFAULT_REGION", NULL));
    return (struct sl_check_place){.store = DYNAMODB,
                                   .region = region.len ? region : sl_span_str(own),
                                   .account = sl_arn_part(role, 4),
                                   .table = parsed.rest};
}

struct sl_check_place sl_check_place_beside(struct sl_check_place place, struct sl_span table)
{
    place.table = table;
    return place;
}

struct sl_check_place sl_check_place_of_stream(const char *arn)
{
    struct sl_span text = sl_span_str(arn);
    bool is_dynamodb = sl_span_is(sl_arn_part(text, 2), "dynamodb");
    return is_dynamodb ? of_arn(text) : (struct sl_check_place){.table = {NULL, 0}};
}

static bool fits(struct sl_span a, struct sl_span b)
{
    return !a.len || !b.len || sl_span_eq(a, b);
}

bool sl_check_place_is(const struct sl_check_place *a, const struct sl_check_place *b)
{
    return a->table.len && sl_span_eq(a->store, b->store) && sl_span_eq(a->table, b->table) &&
           fits(a->region, b->region) && fits(a->account, b->account);
}
