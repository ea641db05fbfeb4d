/* Is a route's table the source itself, or another source's? And has it rows at all? */
#include "data/verify/source.h"

#include "base/array.h"
#include "base/json_write.h"
#include "data/verify/rows.h"
#include "streams/value.h"

#include <jansson.h>
#include <sys/stat.h>

#define KEY_BYTES ((size_t)8 * 1024)

/* So many of the source's items without one equal row are no repair's work. */
#define DOUBTFUL_ITEMS 10

/* ---- which table is it? ---- */

/* sqlite:FILE?table=NAME */
static bool is_sqlite(struct sl_span url)
{
    return sl_span_starts(url, SL_LIT("sqlite:"));
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Both are of SQLite; `name` absent: the target's own table. */
static bool is_same_sqlite(struct sl_span source, struct sl_span target, struct sl_span name,
                           struct sl_arena *arena)
{
    char *a = sl_arena_copy(arena, source), *b = sl_arena_copy(arena, target);
    char *a_name = strstr(a, "?table="), *b_name = strstr(b, "?table=");
    *a_name = *b_name = '\0';
    const char *wanted = a_name + strlen("?table=");
    struct sl_span own = name.ptr ? name : sl_span_str(b_name + strlen("?table="));
    return sl_span_is(own, wanted) && same_file(a + strlen("sqlite:"), b + strlen("sqlite:"));
}

bool sl_verify_is_same_table(const char *a, const char *b)
{
    struct sl_span table[2];
    const char *urls[2] = {a, b};
    size_t n = strcspn(a, "?");
    for (size_t i = 0; i < 2; i++) {
        const char *name = strstr(urls[i], "table=");
        table[i] = name ? sl_span(name, strcspn(name, "&")) : sl_span("", 0);
    }
    return strcspn(b, "?") == n && strncmp(a, b, n) == 0 && sl_span_eq(table[0], table[1]);
}

/* Both are of PostgreSQL; `name` absent: the target's own table. */
static bool is_same_postgres(struct sl_span source, struct sl_span target, struct sl_span name,
                             struct sl_arena *arena)
{
    const char *a = sl_arena_copy(arena, source), *b = sl_arena_copy(arena, target);
    if (name.ptr)
        b = sl_arena_printf(arena, "%.*s?table=%.*s", (int)strcspn(b, "?"), b, SL_ARG(name));
    return sl_verify_is_same_table(a, b);
}

static bool is_source(const struct sl_verify_source *source, const struct sl_option_value *to,
                      struct sl_span name, const struct sl_call *call)
{
    struct sl_table_facts facts = {.n_keys = 0};
    if (is_sqlite(source->url) || is_sqlite(to->text))
        return is_sqlite(source->url) && is_sqlite(to->text) &&
               is_same_sqlite(source->url, to->text, name, call->arena);
    if (sl_span_starts(source->url, SL_LIT("postgres:")) && sl_span_starts(to->text, SL_LIT("postgres:")))
        return is_same_postgres(source->url, to->text, name, call->arena);
    if (!source->facts->arn.ptr)
        return false;
    to->table->describe(to->table, name, &facts, call);
    return facts.result.status == SL_OK && sl_span_eq(facts.arn, source->facts->arn);
}

/* ---- the tables of a route ---- */

/* {"table":NAME}, for example, of an option; absent: it says none. */
static struct sl_span member_of(const struct sl_route *route, const char *option, const char *member,
                                struct sl_arena *arena)
{
    struct sl_span value = sl_options_text(&route->options, option);
    json_t *json = value.ptr ? json_loadb(value.ptr, value.len, 0, NULL) : NULL;
    const char *text = json_string_value(json_object_get(json, member));
    struct sl_span out = text ? sl_span_str(sl_arena_copy(arena, sl_span_str(text))) : sl_span(NULL, 0);
    json_decref(json);
    return out;
}

static bool marks_own(const struct sl_route *route)
{
    return sl_span_is(sl_options_text(&route->options, "own_rows"), "mark");
}

static enum sl_status refuse(const struct sl_verify_source *source, const struct sl_route *route,
                             const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "TargetIsSource",
                   "%s is the table that the route %s writes (its %s): give the table that it reads",
                   source->what, route->config->name, what);
}

static enum sl_status check_route(const struct sl_verify_source *source, const struct sl_route *route,
                                  const struct sl_call *call, struct sl_error *error)
{
    static const char *const further[] = {"ledger", "guard", "tombstones"};
    for (size_t i = 0; i < route->options.n; i++) {
        const struct sl_option_value *to = &route->options.values[i];
        if (!to->is_set || !to->table)
            continue;
        if (!marks_own(route) && is_source(source, to, sl_span(NULL, 0), call))
            return refuse(source, route, "target", error);
        for (size_t k = 0; k < SL_COUNT(further); k++) {
            struct sl_span name = member_of(route, further[k], "table", call->arena);
            if (name.ptr && is_source(source, to, name, call))
                return refuse(source, route, further[k], error);
        }
    }
    return SL_OK;
}

enum sl_status sl_verify_check_source(const struct sl_verify_source *source, struct sl_pipeline *pipeline,
                                      const struct sl_call *call, struct sl_error *error)
{
    for (size_t i = 0; i < pipeline->n; i++) {
        if (source->is_chosen && !source->is_chosen[i])
            continue;
        enum sl_status status = check_route(source, &pipeline->routes[i], call, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

/* True when nobody can tell. */
static bool has_rows(struct sl_route *route, const struct sl_call *call)
{
    struct sl_table_page page = {.n = 0};
    const struct sl_expected *rows = sl_rows_table(route, call->arena);
    if (!rows)
        return true;
    const struct sl_table_scan scan = {.table = rows->table, .limit = 1};
    rows->port->scan(rows->port, &scan, 1, &page, call);
    return page.result.status != SL_OK || page.n > 0;
}

bool sl_verify_is_doubtful(struct sl_route *route, uint64_t items, uint64_t equal, const struct sl_call *call)
{
    return equal == 0 && items >= DOUBTFUL_ITEMS && has_rows(route, call);
}

/* ---- whose items a ledger counts ---- */

/* The ledger's row "sluice:source:NAME"; absent: there is none, or it cannot be read. */
static struct sl_span source_row(struct sl_route *route, const struct sl_call *call)
{
    const struct sl_span none = {NULL, 0};
    struct sl_table_facts facts = {.n_keys = 0};
    struct sl_result result = {.status = SL_OK};
    struct sl_buffer key;
    const struct sl_expected *rows = sl_rows_table(route, call->arena);
    if (!rows)
        return none;
    rows->port->describe(rows->port, rows->table, &facts, call);
    struct sl_totals_facts totals;
    sl_route_read_totals(route, call->arena, &totals);
    sl_buffer_init_in(&key, call->arena, KEY_BYTES);
    sl_buffer_add_char(&key, '{');
    for (size_t i = 0; i < facts.n_keys; i++)
        sl_json_add_raw(&key, sl_arena_copy(call->arena, facts.keys[i].name),
                        sl_span_str(sl_arena_printf(call->arena, "{\"S\":\"sluice:source:%.*s\"}",
                                                    SL_ARG(totals.ledger))));
    sl_buffer_add_char(&key, '}');
    if (facts.result.status != SL_OK || facts.n_keys == 0)
        return none;
    const struct sl_table_op op = {.verb = SL_TABLE_GET, .table = rows->table, .key = sl_buffer_span(&key)};
    rows->port->apply(rows->port, &op, 1, &result, call);
    return result.status == SL_OK ? result.item : none;
}

static struct sl_span text_of(struct sl_value map, const char *name, struct sl_arena *arena)
{
    struct sl_value value = sl_value_member(map, sl_span_str(name));
    return value.type == SL_S ? sl_value_text(value, arena) : sl_span(NULL, 0);
}

/* Does the ARN's text have it at this place? What the row does not say fits. */
static bool fits(struct sl_span said, struct sl_span arn, unsigned part)
{
    const char *at = arn.ptr, *end = sl_span_end(arn);
    for (unsigned i = 0; at && i < part; i++) {
        at = memchr(at, ':', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    const char *stop = at ? memchr(at, ':', (size_t)(end - at)) : NULL;
    return !said.ptr || !stop || sl_span_eq(said, sl_span(at, (size_t)(stop - at)));
}

static bool is_other(struct sl_value said, struct sl_span arn, struct sl_arena *arena)
{
    struct sl_span table = text_of(said, "table", arena);
    const char *slash = memchr(arn.ptr, '/', arn.len);
    if (!table.ptr || !slash)
        return false;
    if (!sl_span_eq(table, sl_span(slash + 1, (size_t)(arn.ptr + arn.len - slash - 1))))
        return true;
    /* DynamoDB Local says "ddblocal" for every Region and account, or what its client says. */
    bool is_local = memmem(arn.ptr, arn.len, ":ddblocal:", 10) != NULL;
    return !is_local &&
           (!fits(text_of(said, "region", arena), arn, 3) || !fits(text_of(said, "account", arena), arn, 4));
}

enum sl_status sl_verify_check_ledgers(const struct sl_verify_source *source, struct sl_pipeline *pipeline,
                                       const struct sl_call *call, struct sl_error *error)
{
    for (size_t i = 0; i < pipeline->n && source->facts->arn.ptr; i++) {
        struct sl_route *route = &pipeline->routes[i];
        if ((source->is_chosen && !source->is_chosen[i]) || sl_route_makes(route) != SL_MAKES_TOTALS)
            continue;
        struct sl_span row = source_row(route, call);
        if (!row.ptr)
            continue;
        struct sl_value said =
            sl_value_member((struct sl_value){.type = SL_M, .raw = row}, SL_LIT("sluice_source"));
        if (said.type == SL_M && is_other(said, source->facts->arn, call->arena))
            return sl_fail(error, SL_REJECT, "OtherSource",
                           "the ledger of the route %s counts the items of the table %.*s, and %s is "
                           "another one (%.*s): give the table that the route follows",
                           route->config->name, SL_ARG(text_of(said, "table", call->arena)), source->what,
                           SL_ARG(source->facts->arn));
    }
    return SL_OK;
}
