/* Whether an item's plain values meet a condition. Nothing is built: a step looks for its member in the map's
 * text, and what is not asked for is skipped. */
#include "base/map.h"
#include "streams/when/when_private.h"

#include "streams/record_layout.h"

/* By value: something that is there made it hold. */
struct verdict {
    bool holds, by_value;
};

/* A map: the text of one, or a whole image, which may have an index. */
struct map {
    struct sl_span text;
    const struct sl_record *record; /* NULL: the text alone */
    enum sl_image image;
};

static struct verdict judge(const struct sl_plain *c, struct sl_value v, struct sl_arena *scratch);

/* ---- one value ---- */

static struct sl_when_value scalar(struct sl_value v, enum sl_type type)
{
    static const enum sl_when_kind kinds[] = {[SL_S] = SL_WHEN_STRING,
                                              [SL_N] = SL_WHEN_NUMBER,
                                              [SL_B] = SL_WHEN_BINARY,
                                              [SL_BOOL] = SL_WHEN_WORD,
                                              [SL_NULL] = SL_WHEN_WORD};
    if (v.type > SL_NULL)
        return (struct sl_when_value){.kind = SL_WHEN_WHOLE, .type = type};
    struct sl_span text = v.type == SL_NULL ? SL_LIT("null") : v.raw; /* {"NULL":true} */
    return (struct sl_when_value){kinds[v.type], v.escaped, text, type};
}

/* A list and a set pass as a whole, or by an element; a list's elements that are lists, sets or maps are not
 * single values. */
static bool passes(const struct sl_plain *c, struct sl_value v, struct sl_arena *scratch)
{
    if (sl_when_test_value(c->tests, c->n, scalar(v, v.type), scratch))
        return true;
    if (v.type < SL_SS || v.type == SL_M)
        return false;
    struct sl_iter iter = sl_value_iter(v);
    struct sl_value element;
    while (sl_value_next(&iter, NULL, &element))
        if (element.type <= SL_NULL && sl_when_test_value(c->tests, c->n, scalar(element, SL_NONE), scratch))
            return true;
    return false;
}

/* ---- the steps from a map ---- */

static struct verdict judge_members(const struct sl_plain *c, const struct map *map,
                                    struct sl_arena *scratch);

static struct verdict judge_any(const struct sl_plain_or *either, const struct map *map,
                                struct sl_arena *scratch)
{
    struct verdict all = {false, false};
    for (const struct sl_plain *one = either->any; one && !all.by_value; one = one->next) {
        struct verdict v = judge_members(one, map, scratch);
        all.holds = all.holds || v.holds;
        all.by_value = v.holds && v.by_value;
    }
    return all;
}

static struct sl_value look_up(const struct map *map, struct sl_span name)
{
    return map->record ? sl_record_scan(map->record, map->image, name) : sl_map_scan(map->text, name);
}

static struct verdict judge_members(const struct sl_plain *c, const struct map *map, struct sl_arena *scratch)
{
    struct verdict all = {true, false};
    for (const struct sl_plain *child = c->child; child; child = child->next) {
        struct verdict v = judge(child, look_up(map, child->name), scratch);
        if (!v.holds)
            return v;
        all.by_value = all.by_value || v.by_value;
    }
    for (const struct sl_plain_or *either = c->ors; either; either = either->next) {
        struct verdict v = judge_any(either, map, scratch);
        if (!v.holds)
            return v;
        all.by_value = all.by_value || v.by_value;
    }
    return all;
}

/* One element has to satisfy all; or nothing is found in any of them, where nothing is asked for. */
static struct verdict judge_elements(const struct sl_plain *c, struct sl_value list, struct sl_arena *scratch)
{
    struct verdict all = {c->steps_may_lack, false};
    struct sl_iter iter = sl_value_iter(list);
    struct sl_value element;
    while (sl_value_next(&iter, NULL, &element)) {
        if (element.type != SL_M)
            continue;
        const struct map map = {.text = element.raw};
        struct verdict v = judge_members(c, &map, scratch);
        if (v.holds && v.by_value)
            return v;
        all.holds = all.holds && v.holds;
    }
    return all;
}

static struct verdict judge(const struct sl_plain *c, struct sl_value v, struct sl_arena *scratch)
{
    const struct map map = {.text = v.raw};
    if (v.type == SL_NONE)
        return (struct verdict){c->may_lack, false};
    if (c->has_tests && !passes(c, v, scratch))
        return (struct verdict){false, false};
    if (!c->child && !c->ors)
        return (struct verdict){true, true};
    struct verdict all = {c->steps_may_lack, false};
    if (v.type == SL_M)
        all = judge_members(c, &map, scratch);
    else if (v.type == SL_L)
        all = judge_elements(c, v, scratch);
    all.by_value = all.by_value || c->has_tests;
    return all;
}

/* ---- items ---- */

/* A look at the bytes is enough where a text that is asked for is nowhere in them. */
static bool may_match(const struct sl_plain *c, struct sl_span item)
{
    for (const struct sl_plain *child = c->child; child; child = child->next)
        if (child->needle.ptr && !sl_record_may_hold(item, child->needle))
            return false;
    return true;
}

bool sl_plain_match(const struct sl_plain *condition, struct sl_value item, struct sl_arena *scratch)
{
    const struct map map = {.text = item.raw};
    if (item.type == SL_NONE)
        return condition->may_lack;
    return may_match(condition, item.raw) && judge_members(condition, &map, scratch).holds;
}

bool sl_plain_match_image(const struct sl_plain *condition, const struct sl_record *r, enum sl_image image,
                          struct sl_arena *scratch)
{
    const struct map map = {sl_record_image(r, image).raw, r, image};
    if (!map.text.ptr)
        return condition->may_lack;
    return may_match(condition, map.text) && judge_members(condition, &map, scratch).holds;
}
