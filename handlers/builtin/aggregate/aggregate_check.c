/* Options that do not go together. */
#include "handlers/builtin/aggregate/aggregate_private.h"

#define BAD(a, error, ...) (a)->host->fail(error, SL_FATAL, "InvalidConfiguration", __VA_ARGS__)

bool aggregate_counts_items(const struct aggregate *a, struct sl_span name)
{
    bool any = false;
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_amounts; k++) {
            const struct aggregate_amount *amount = &a->counters[i].amounts[k];
            if (!sl_span_eq(amount->name, name))
                continue;
            if (amount->verb != SL_ADD || !sl_span_is(amount->constant, "1"))
                return false;
            any = true;
        }
    return any;
}

bool aggregate_has_sums(const struct aggregate *a)
{
    if (a->has_distinct || a->has_members)
        return true;
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_amounts; k++)
            if (a->counters[i].amounts[k].verb == SL_ADD)
                return true;
    return false;
}

/* ---- names ---- */

static bool adds_to(const struct aggregate *a, struct sl_span name)
{
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_amounts; k++)
            if (sl_span_eq(a->counters[i].amounts[k].name, name))
                return true;
    return false;
}

/* Nothing else may add to a count of values: nobody could tell the two apart. */
static enum sl_status check_distinct_names(const struct aggregate *a, struct sl_error *error)
{
    for (size_t i = 0; i < a->n_counters; i++)
        for (size_t k = 0; k < a->counters[i].n_distinct; k++) {
            struct sl_span name = a->counters[i].distinct[k].name;
            if (adds_to(a, name))
                return BAD(
                    a, error,
                    "counters[%zu].distinct.%.*s: an amount of the route has this name too: a count of "
                    "different values needs a name of its own",
                    i, SL_ARG(name));
        }
    return SL_OK;
}

static enum sl_status check_key_names(const struct aggregate *a, const char *option,
                                      const struct sl_span *keys, size_t n_keys, const char *const *taken,
                                      struct sl_error *error)
{
    for (size_t i = 0; i < n_keys; i++)
        for (size_t k = 0; taken[k]; k++)
            if (sl_span_is(keys[i], taken[k]))
                return BAD(a, error,
                           "%s: its rows have an attribute %s of their own, so it cannot be their key too: "
                           "use a table with another key",
                           option, taken[k]);
    return SL_OK;
}

static enum sl_status check_names(const struct aggregate *a, struct sl_error *error)
{
    static const char *const of_values[] = {AGGREGATE_VALUE_COUNT, AGGREGATE_VALUE_GROUP,
                                            AGGREGATE_VALUE_ATTRIBUTE, AGGREGATE_VALUE_VALUE, NULL};
    static const char *const of_members[] = {AGGREGATE_MEMBER_BY, AGGREGATE_MEMBER_ITEM, NULL};
    enum sl_status status = check_distinct_names(a, error);
    if (status == SL_OK && a->has_distinct)
        status = check_key_names(a, "counters.distinct", a->ledger_keys, a->n_ledger_keys, of_values, error);
    if (status == SL_OK && a->has_members)
        status = check_key_names(a, "counters.members", a->key_names, a->n_key_names, of_members, error);
    return status;
}

/* ---- what needs what ---- */

static enum sl_status check_mode(const struct aggregate *a, struct sl_error *error)
{
    const char *what = a->has_distinct ? "distinct" : a->has_members ? "members" : NULL;
    if (what && !a->has_ledger)
        return BAD(
            a, error,
            "counters.%s: only with \"mode\": \"exact\": without a ledger nobody knows when a value or "
            "an item leaves its group",
            what);
    if (a->has_members && a->per_event)
        return BAD(a, error, "counters.members: only with \"per\": \"item\": a member is an item");
    if (a->has_members && a->expired != SL_EXPIRED_APPLY)
        return BAD(a, error,
                   "counters.members: not with \"expired\": \"keep\": a member's row is of an item that is "
                   "there");
    return SL_OK;
}

static enum sl_status check_empty_counter(const struct aggregate *a, size_t i, struct sl_error *error)
{
    const struct aggregate_counter *c = &a->counters[i];
    bool counts = false;
    for (size_t k = 0; k < c->n_amounts; k++) {
        counts = counts || aggregate_counts_items(a, c->amounts[k].name);
        if (c->amounts[k].verb != SL_ADD)
            return BAD(a, error,
                       "empty: not with counters[%zu].running_max or running_min: they are of all that the "
                       "items have ever been, and would be deleted with the row",
                       i);
    }
    if (!counts)
        return BAD(a, error,
                   "empty: counters[%zu].add has no amount that is 1 in every counter that has it, so a row "
                   "does not say whether any item is left in its group: add one, for example \"items\": 1",
                   i);
    return SL_OK;
}

static enum sl_status check_empty(const struct aggregate *a, struct sl_error *error)
{
    enum sl_status status = SL_OK;
    if (!a->deletes_empty)
        return SL_OK;
    if (a->shards > 0)
        return BAD(a, error,
                   "empty: not with \"shards\": an item is added to one row and taken from another, so a row "
                   "that is 0 says nothing");
    if (!a->has_ledger)
        return BAD(a, error, "empty: only with \"mode\": \"exact\": other counts may be 0 by a repeat");
    if (a->per_event || a->expired != SL_EXPIRED_APPLY)
        return BAD(a, error,
                   "empty: only with \"per\": \"item\" and \"expired\": \"subtract\": other counts "
                   "are kept when their items are gone");
    for (size_t i = 0; i < a->n_counters && status == SL_OK; i++)
        status = check_empty_counter(a, i, error);
    return status;
}

/* A change may leave all rows of an item and enter as many others, in one transaction. */
static enum sl_status check_rows(const struct aggregate *a, struct sl_error *error)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_counters; i++)
        n += 1 + a->counters[i].n_distinct + a->counters[i].has_members;
    if (a->has_ledger && 2 * n + 1 > SL_TABLE_GROUP_MAX)
        return BAD(
            a, error,
            "counters: with their values and members a change may write %zu rows, and a transaction has "
            "%d at most: spread the counters over several routes",
            2 * n + 1, SL_TABLE_GROUP_MAX);
    return SL_OK;
}

enum sl_status aggregate_check(const struct aggregate *a, struct sl_error *error)
{
    enum sl_status status = check_names(a, error);
    if (status == SL_OK)
        status = check_mode(a, error);
    if (status == SL_OK)
        status = check_empty(a, error);
    return status == SL_OK ? check_rows(a, error) : status;
}
