/* Conditions on an item's plain values, read into a tree of steps. A name is a path: a dot is a step, as an
 * object is, so that {"a.b": [1]} and {"a": {"b": [1]}} are the same. */
#include "streams/when/when_private.h"

#include "base/json.h"
#include "streams/value.h"

/* Steps of one condition. People write them; this is far more than any of them has. */
#define MAX_STEPS 1000

struct reading {
    struct sl_when_parse *parse;
    size_t n_steps;
};

/* ---- names ---- */

/* The next step of the path, up to a dot or in backquotes. False: there is none, or it is not well formed. */
static bool next_step(struct sl_span *path, struct sl_span *step, bool *is_quoted)
{
    const char *p = path->ptr, *end = p + path->len, *from = p;
    *is_quoted = p < end && *p == '`';
    if (*is_quoted) {
        from = p + 1;
        p = memchr(from, '`', (size_t)(end - from));
    }
    while (!*is_quoted && p < end && *p != '.' && *p != '[' && *p != '`')
        p++;
    if (!p || p == from)
        return false;
    *step = sl_span(from, (size_t)(p - from));
    p += *is_quoted;
    if (p < end && (*p != '.' || p + 1 == end))
        return false;
    *path = p < end ? sl_span_from(sl_span(p, (size_t)(end - p)), 1) : sl_span(NULL, 0);
    return true;
}

static enum sl_status no_path(struct sl_when_parse *parse, struct sl_span name)
{
    return sl_when_fail(parse, name,
                        "not a path: a dot leads from an attribute into a map or into the maps of a "
                        "list; a name that holds '.', '[' or a backquote is written in "
                        "backquotes");
}

/* What would be a pattern's type is refused: nothing would match it, and a replica would lose its items. */
static enum sl_status add_step(struct reading *r, struct sl_plain **at, struct sl_span step, bool is_bare)
{
    struct sl_when_parse *parse = r->parse;
    struct sl_plain **link = &(*at)->child;
    if (is_bare && sl_value_tag(step.ptr, step.len) != SL_NONE)
        return sl_when_fail(
            parse, parse->place->name,
            "%.*s looks like a type, which conditions on plain values do not have: write the list "
            "beside the attribute's name, as in {\"status\": [\"PAID\"]}. The member of a map that "
            "is called so is written in backquotes",
            SL_ARG(step));
    while (*link && !sl_span_eq((*link)->name, step))
        link = &(*link)->next;
    if (!*link) {
        if (r->n_steps++ == MAX_STEPS)
            return sl_when_fail(parse, parse->place->name, "more than %d names in one condition", MAX_STEPS);
        *link = sl_arena_zalloc(parse->arena, sizeof(**link));
        (*link)->name = step;
    }
    *at = *link;
    return SL_OK;
}

/* ---- objects ---- */

/* An object of the configuration: where its steps begin. */
struct level {
    struct sl_plain *node;
    unsigned depth;
    bool is_inside; /* below the item itself: a step may not look like a type */
};

static enum sl_status read_object(struct reading *r, const struct level *level, struct sl_span object);

static enum sl_status read_alternative(struct reading *r, const struct level *level, struct sl_span object,
                                       struct sl_plain ***end)
{
    if (object.ptr[0] != '{')
        return sl_when_fail(r->parse, object, "an object is expected, as in {\"status\": [\"PAID\"]}");
    struct sl_plain *one = **end = sl_arena_zalloc(r->parse->arena, sizeof(*one));
    *end = &one->next;
    return read_object(r, &(struct level){one, level->depth + 1, level->is_inside}, object);
}

static enum sl_status read_or(struct reading *r, const struct level *level, struct sl_span list)
{
    struct sl_when_parse *parse = r->parse;
    struct sl_plain_or *either = sl_arena_zalloc(parse->arena, sizeof(*either));
    struct sl_plain **end = &either->any;
    struct sl_json_walk c = sl_json_walk(list);
    struct sl_span object;
    size_t i = 0;
    for (; list.ptr[0] == '[' && sl_json_walk_next(&c, NULL, &object); i++) {
        struct sl_when_place place = {parse->place, {0}, i};
        parse->place = &place;
        enum sl_status status = read_alternative(r, level, object, &end);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    either->next = level->node->ors;
    level->node->ors = either;
    return i >= 2
               ? SL_OK
               : sl_when_fail(parse, list,
                              "a list of two or more objects is expected; an attribute that is called $or is "
                              "written in backquotes");
}

static enum sl_status read_tests(struct reading *r, struct sl_plain *node, struct sl_span list)
{
    if (node->has_tests)
        return sl_when_fail(r->parse, list, "given twice; put all values into one list");
    node->has_tests = true;
    return sl_when_compile_tests(r->parse, list, &node->tests, &node->n, &node->absent_ok);
}

static enum sl_status read_member(struct reading *r, const struct level *level, struct sl_span name,
                                  struct sl_span value)
{
    struct sl_when_parse *parse = r->parse;
    struct level below = {level->node, level->depth + 1, level->is_inside};
    bool is_quoted;
    if (sl_json_text_is(name, SL_LIT("$or")))
        return read_or(r, level, value);
    struct sl_span path =
        sl_json_unescape(sl_span(sl_arena_copy(parse->arena, name), name.len), parse->arena);
    do {
        struct sl_span step;
        if (!next_step(&path, &step, &is_quoted))
            return no_path(parse, name);
        enum sl_status status = add_step(r, &below.node, step, below.is_inside && !is_quoted);
        if (status != SL_OK)
            return status;
        below.is_inside = true;
    } while (path.ptr);
    if (value.ptr[0] == '[')
        return read_tests(r, below.node, value);
    if (value.ptr[0] != '{')
        return sl_when_fail(parse, value, "a list of values is expected, as in [\"PAID\"]");
    return read_object(r, &below, value);
}

static enum sl_status read_object(struct reading *r, const struct level *level, struct sl_span object)
{
    struct sl_when_parse *parse = r->parse;
    struct sl_json_walk c = sl_json_walk(object);
    struct sl_span name, value;
    size_t n = 0;
    if (level->depth == SL_WHEN_MAX_DEPTH)
        return sl_when_fail(parse, object, "nested deeper than %d", SL_WHEN_MAX_DEPTH);
    for (; sl_json_walk_next(&c, &name, &value); n++) {
        struct sl_when_place place = {parse->place, name, 0};
        parse->place = &place;
        enum sl_status status = read_member(r, level, name, value);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    return n ? SL_OK : sl_when_fail(parse, object, "an empty object; leave it out, or name an attribute");
}

/* ---- what is known of the whole tree ---- */

static void finish(struct sl_plain *c, struct sl_arena *arena);

static bool finish_or(const struct sl_plain_or *either, struct sl_arena *arena)
{
    bool may_lack = false;
    for (struct sl_plain *one = either->any; one; one = one->next) {
        finish(one, arena);
        may_lack = may_lack || one->may_lack;
    }
    return may_lack;
}

/* A needle of what is below is in the attribute's text too. */
static void finish(struct sl_plain *c, struct sl_arena *arena)
{
    c->steps_may_lack = true;
    if (c->has_tests && !c->absent_ok)
        c->needle = sl_when_needle(arena, c->tests, c->n);
    for (struct sl_plain *child = c->child; child; child = child->next) {
        finish(child, arena);
        c->steps_may_lack = c->steps_may_lack && child->may_lack;
        c->needle = c->needle.ptr ? c->needle : child->needle;
    }
    for (const struct sl_plain_or *either = c->ors; either; either = either->next)
        c->steps_may_lack = finish_or(either, arena) && c->steps_may_lack;
    c->may_lack = c->steps_may_lack && (!c->has_tests || c->absent_ok);
}

enum sl_status sl_plain_compile(struct sl_when_parse *parse, struct sl_span json, struct sl_plain **out)
{
    struct reading r = {parse, 0};
    if (json.ptr[0] != '{')
        return sl_when_fail(parse, json, "an object is expected, as in {\"status\": [\"PAID\"]}");
    parse->is_plain = true;
    parse->or_is_field = false;
    *out = sl_arena_zalloc(parse->arena, sizeof(**out));
    enum sl_status status = read_object(&r, &(struct level){*out, 0, false}, json);
    parse->is_plain = false;
    finish(*out, parse->arena);
    return status;
}
