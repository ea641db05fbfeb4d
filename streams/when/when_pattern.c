/* Patterns: flattened into leaves as the text is read, so that a name may come twice ("dynamodb" in AWS's own
 * examples); of the same path given twice the last one counts. "$or" copies the sets made so far, one copy
 * for each alternative. */
#include "base/array.h"
#include "streams/when/when_private.h"

#include "base/json.h"

#include <stdlib.h>

/* One set while it is read. */
struct draft {
    const struct sl_when_leaf **leaves; /* room for SL_WHEN_MAX_LEAVES */
    size_t n;
};

struct drafts {
    struct draft *list;
    size_t n;
};

/* ---- drafts ---- */

static void put_leaf(struct draft *draft, const struct sl_when_leaf *leaf)
{
    for (size_t i = 0; i < draft->n; i++)
        if (sl_span_eq(draft->leaves[i]->path, leaf->path)) {
            draft->leaves[i] = leaf;
            return;
        }
    draft->leaves[draft->n++] = leaf;
}

static struct draft copy_draft(struct sl_arena *arena, const struct draft *from)
{
    struct draft copy = {sl_arena_alloc(arena, SL_WHEN_MAX_LEAVES * sizeof(copy.leaves[0])),
                         from ? from->n : 0};
    if (copy.n)
        memcpy(copy.leaves, from->leaves, copy.n * sizeof(copy.leaves[0]));
    return copy;
}

static struct sl_span join_path(const struct sl_when_parse *parse, struct sl_span path, struct sl_span name)
{
    char *out = sl_arena_alloc(parse->arena, path.len + 1 + name.len), *at = out;
    if (path.ptr) {
        if (path.len)
            memcpy(at, path.ptr, path.len);
        at += path.len;
        *at++ = '.';
    }
    at += sl_json_unescape_to(name, at);
    return sl_span(out, (size_t)(at - out));
}

static enum sl_status add_leaf(struct sl_when_parse *parse, struct sl_span path, struct sl_span list,
                               struct drafts *drafts)
{
    struct sl_when_leaf *leaf = sl_arena_zalloc(parse->arena, sizeof(*leaf));
    leaf->path = path;
    enum sl_status status = sl_when_compile_tests(parse, list, &leaf->tests, &leaf->n, &leaf->absent_ok);
    if (status == SL_OK && parse->is_judged)
        status = sl_when_judge(parse, leaf, list);
    for (size_t i = 0; status == SL_OK && i < drafts->n; i++) {
        if (drafts->list[i].n == SL_WHEN_MAX_LEAVES)
            return sl_when_fail(parse, list, "more than %d fields in one pattern", SL_WHEN_MAX_LEAVES);
        put_leaf(&drafts->list[i], leaf);
    }
    return status;
}

/* Where in the pattern something is read, and the sets that it becomes a part of. */
struct level {
    struct sl_span path;
    unsigned depth;
    struct drafts *drafts;
};

static enum sl_status read_object(struct sl_when_parse *parse, const struct level *level,
                                  struct sl_span object);

/* ---- "$or": operator or field ---- */

static bool is_or(struct sl_span name)
{
    return sl_json_text_is(name, SL_LIT("$or"));
}

static bool are_ors_operators(struct sl_span object, unsigned depth, bool is_inside);

static bool are_alternatives(struct sl_span list, unsigned depth)
{
    struct sl_json_walk c = sl_json_walk(list);
    struct sl_span element;
    size_t n = 0;
    if (list.ptr[0] != '[')
        return false;
    for (; sl_json_walk_next(&c, NULL, &element); n++)
        if (element.ptr[0] != '{' || !are_ors_operators(element, depth + 1, true))
            return false;
    return n >= 2;
}

/* EventBridge's engine reads the whole pattern with "$or" as an operator. If that fails at any place, it
 * reads all of it again with "$or" as the name of a field. */
static bool are_ors_operators(struct sl_span object, unsigned depth, bool is_inside)
{
    struct sl_json_walk c = sl_json_walk(object);
    struct sl_span name, value;
    while (depth < SL_WHEN_MAX_DEPTH && sl_json_walk_next(&c, &name, &value))
        if (is_or(name) ? !are_alternatives(value, depth)
                        : (is_inside && sl_when_is_reserved(name)) ||
                              (value.ptr[0] == '{' && !are_ors_operators(value, depth + 1, is_inside)))
            return false;
    return true;
}

/* ---- reading ---- */

static enum sl_status read_alternative(struct sl_when_parse *parse, const struct level *level,
                                       struct sl_span object, struct drafts *all)
{
    const struct drafts *before = level->drafts;
    struct drafts own = {sl_arena_alloc(parse->scratch, before->n * sizeof(own.list[0])), before->n};
    for (size_t i = 0; i < before->n; i++)
        own.list[i] = copy_draft(parse->scratch, &before->list[i]);
    const struct level inside = {level->path, level->depth + 1, &own};
    enum sl_status status = read_object(parse, &inside, object);
    if (status != SL_OK)
        return status;
    if (all->n + own.n > SL_WHEN_MAX_SETS)
        return sl_when_fail(parse, object, "more than %d combinations of \"$or\"", SL_WHEN_MAX_SETS);
    memcpy(all->list + all->n, own.list, own.n * sizeof(own.list[0]));
    all->n += own.n;
    return SL_OK;
}

static enum sl_status read_or(struct sl_when_parse *parse, const struct level *level, struct sl_span list)
{
    struct drafts all = {sl_arena_alloc(parse->scratch, SL_WHEN_MAX_SETS * sizeof(all.list[0])), 0};
    struct sl_json_walk c = sl_json_walk(list);
    struct sl_span object;
    for (size_t i = 0; sl_json_walk_next(&c, NULL, &object); i++) {
        struct sl_when_place place = {parse->place, {0}, i};
        parse->place = &place;
        enum sl_status status = read_alternative(parse, level, object, &all);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    *level->drafts = all;
    return SL_OK;
}

static enum sl_status read_member(struct sl_when_parse *parse, const struct level *level, struct sl_span name,
                                  struct sl_span value)
{
    if (is_or(name) && !parse->or_is_field)
        return read_or(parse, level, value);
    if (value.ptr[0] != '[' && value.ptr[0] != '{')
        return sl_when_fail(parse, value, "a list of values is expected, as in [\"INSERT\"]");
    const struct level below = {join_path(parse, level->path, name), level->depth + 1, level->drafts};
    if (value.ptr[0] == '[')
        return add_leaf(parse, below.path, value, below.drafts);
    return read_object(parse, &below, value);
}

static enum sl_status read_object(struct sl_when_parse *parse, const struct level *level,
                                  struct sl_span object)
{
    struct sl_json_walk c = sl_json_walk(object);
    struct sl_span name, value;
    size_t n = 0;
    if (level->depth == SL_WHEN_MAX_DEPTH)
        return sl_when_fail(parse, object, "nested deeper than %d", SL_WHEN_MAX_DEPTH);
    for (; sl_json_walk_next(&c, &name, &value); n++) {
        struct sl_when_place place = {parse->place, name, 0};
        parse->place = &place;
        enum sl_status status = read_member(parse, level, name, value);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    return n ? SL_OK : sl_when_fail(parse, object, "an empty object; leave it out, or name a field");
}

/* ---- from leaves to the way they are looked up ---- */

/* Takes the first name off `path`. */
static struct sl_span take_name(struct sl_span *path)
{
    const char *dot = memchr(path->ptr, '.', path->len);
    size_t n = dot ? (size_t)(dot - path->ptr) : path->len;
    struct sl_span name = sl_span(path->ptr, n);
    *path = dot ? sl_span(dot + 1, path->len - n - 1) : sl_span(NULL, 0);
    return name;
}

static struct sl_when_node *find_or_add(struct sl_arena *arena, struct sl_when_node *parent,
                                        struct sl_span name)
{
    struct sl_when_node **at = &parent->child;
    while (*at && !sl_span_eq((*at)->name, name))
        at = &(*at)->next;
    if (!*at) {
        *at = sl_arena_zalloc(arena, sizeof(**at));
        (*at)->name = name;
    }
    return *at;
}

static void add_to_tree(struct sl_arena *arena, struct sl_when_tree *tree, struct sl_span path,
                        const struct sl_when_leaf *leaf, uint64_t bit)
{
    if (!tree->root)
        tree->root = sl_arena_zalloc(arena, sizeof(*tree->root));
    struct sl_when_node *node = tree->root;
    node->below |= bit;
    while (path.ptr) {
        node = find_or_add(arena, node, take_name(&path));
        node->below |= bit;
    }
    node->leaf = leaf;
    node->bit = bit;
    tree->absent_ok |= leaf->absent_ok ? bit : 0;
}

static bool find_known(struct sl_span path, enum sl_when_known *out)
{
    static const char *const paths[] = {
        [SL_WHEN_EVENT_NAME] = "eventName",
        [SL_WHEN_EVENT_ID] = "eventID",
        [SL_WHEN_REGION] = "awsRegion",
        [SL_WHEN_SOURCE_ARN] = "eventSourceARN",
        [SL_WHEN_SEQUENCE_NUMBER] = "dynamodb.SequenceNumber",
        [SL_WHEN_VIEW] = "dynamodb.StreamViewType",
        [SL_WHEN_IDENTITY_TYPE] = "userIdentity.type",
        [SL_WHEN_IDENTITY_PRINCIPAL] = "userIdentity.principalId",
    };
    for (size_t i = 0; i < SL_COUNT(paths); i++)
        if (sl_span_is(path, paths[i])) {
            *out = (enum sl_when_known)i;
            return true;
        }
    return false;
}

/* The type of an attribute that is looked up as one value. L and M are walked instead. */
static enum sl_type find_type(struct sl_span tag)
{
    enum sl_type type = sl_value_tag(tag.ptr, tag.len);
    return type < SL_L ? type : SL_NONE;
}

/* The rest of the path after "dynamodb.IMAGE."; false when it does not begin so. */
static bool split_image(struct sl_span path, enum sl_image *image, struct sl_span *rest)
{
    static const char *const names[] = {
        [SL_KEYS] = "Keys", [SL_NEW_IMAGE] = "NewImage", [SL_OLD_IMAGE] = "OldImage"};
    if (!sl_span_is(take_name(&path), "dynamodb") || !path.ptr)
        return false;
    struct sl_span name = take_name(&path);
    for (size_t i = 0; i < 3 && path.ptr; i++)
        if (sl_span_is(name, names[i])) {
            *image = (enum sl_image)i;
            *rest = path;
            return true;
        }
    return false;
}

/* A set that is being filled. */
struct filling {
    struct sl_arena *arena;
    struct sl_when_set set;
    struct sl_when_text *texts;
    struct sl_when_attribute *attributes;
    unsigned images; /* bits 1 << enum sl_image that its leaves look into */
};

static void place_leaf(struct filling *f, const struct sl_when_leaf *leaf, uint64_t bit)
{
    enum sl_when_known known;
    enum sl_image image;
    struct sl_span rest;
    if (find_known(leaf->path, &known)) {
        f->texts[f->set.n_texts++] = (struct sl_when_text){known, leaf};
        return;
    }
    if (!split_image(leaf->path, &image, &rest)) {
        add_to_tree(f->arena, &f->set.record, leaf->path, leaf, bit);
        return;
    }
    f->images |= 1u << image;
    struct sl_span tag = rest, name = take_name(&tag);
    enum sl_type type = tag.ptr ? find_type(tag) : SL_NONE;
    if (type == SL_NONE) {
        add_to_tree(f->arena, &f->set.images[image], rest, leaf, bit);
        return;
    }
    struct sl_when_attribute *a = &f->attributes[f->set.n_attributes++];
    *a = (struct sl_when_attribute){.image = image, .type = type, .name = name, .leaf = leaf};
    if (!leaf->absent_ok)
        a->needle = sl_when_needle(f->arena, leaf->tests, leaf->n);
}

static struct sl_when_set finish_set(struct sl_arena *arena, const struct draft *draft, unsigned *images)
{
    struct filling f = {
        .arena = arena,
        .texts = sl_arena_alloc(arena, draft->n * sizeof(*f.texts)),
        .attributes = sl_arena_alloc(arena, draft->n * sizeof(*f.attributes)),
    };
    for (size_t i = 0; i < draft->n; i++)
        place_leaf(&f, draft->leaves[i], (uint64_t)1 << i);
    f.set.texts = f.texts;
    f.set.attributes = f.attributes;
    *images |= f.images;
    return f.set;
}

/* ---- the engine's order, and its measure ---- */

static int by_path(const void *a, const void *b)
{
    const struct sl_when_leaf *const *x = a, *const *y = b;
    return sl_span_compare((*x)->path, (*y)->path);
}

static bool is_same_test(const struct sl_when_test *a, const struct sl_when_test *b)
{
    return a->op == b->op && a->kind == b->kind && a->text.ptr && sl_span_eq(a->text, b->text);
}

/* Whether a value could take both leaves to the same state. */
static bool do_meet(const struct sl_when_leaf *a, const struct sl_when_leaf *b)
{
    if (a == b || (a->absent_ok && b->absent_ok))
        return true;
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            if (is_same_test(&a->tests[i], &b->tests[k]))
                return true;
    return false;
}

/* Whether the engine keeps the tests of leaf `k` of both sets in one machine: all before it lead there. */
static bool share_machine(const struct draft *a, const struct draft *b, size_t k)
{
    if (k >= a->n || k >= b->n || !sl_span_eq(a->leaves[k]->path, b->leaves[k]->path))
        return false;
    for (size_t i = 0; i < k; i++)
        if (!sl_span_eq(a->leaves[i]->path, b->leaves[i]->path) || !do_meet(a->leaves[i], b->leaves[i]))
            return false;
    return true;
}

/* `leaves` has room for one of each set. */
static bool is_machine_too_complex(const struct drafts *drafts, size_t first, size_t k,
                                   const struct sl_when_leaf **leaves)
{
    size_t n = 0;
    for (size_t i = 0; i < drafts->n; i++)
        if (share_machine(&drafts->list[first], &drafts->list[i], k)) {
            if (i < first && sl_when_has_wildcard(drafts->list[i].leaves[k]))
                return false; /* looked at with that one */
            leaves[n++] = drafts->list[i].leaves[k];
        }
    return sl_when_complexity(leaves, n) > SL_WHEN_MAX_COMPLEXITY;
}

static bool is_too_complex(struct sl_when_parse *parse, const struct drafts *drafts)
{
    const struct sl_when_leaf **leaves = sl_arena_alloc(parse->scratch, drafts->n * sizeof(leaves[0]));
    for (size_t i = 0; i < drafts->n; i++)
        for (size_t k = 0; k < drafts->list[i].n; k++)
            if (sl_when_has_wildcard(drafts->list[i].leaves[k]) &&
                is_machine_too_complex(drafts, i, k, leaves))
                return true;
    return false;
}

static void make_room(struct sl_arena *arena, struct sl_when_sets *sets, size_t n)
{
    if (sets->n + n <= sets->room)
        return;
    sets->room = 2 * sets->room + n;
    struct sl_when_set *larger = sl_arena_alloc(arena, sets->room * sizeof(*larger));
    if (sets->n)
        memcpy(larger, sets->sets, sets->n * sizeof(*larger));
    sets->sets = larger;
}

/* Of patterns whose leaves could match by themselves. */
static enum sl_status judge_sets(struct sl_when_parse *parse, struct sl_span json,
                                 const struct sl_when_sets *sets, size_t from)
{
    for (size_t i = from; i < sets->n; i++) {
        unsigned events = sl_when_set_events(&sets->sets[i], parse->scratch);
        if (events && !sl_when_set_possible(&sets->sets[i], events))
            return sl_when_never(parse, json, "a REMOVE has no NewImage, and an INSERT no OldImage");
    }
    return SL_OK;
}

enum sl_status sl_when_compile_pattern(struct sl_when_parse *parse, struct sl_span json,
                                       struct sl_when_sets *sets)
{
    if (json.ptr[0] != '{')
        return sl_when_fail(parse, json, "an object is expected, as in {\"eventName\": [\"INSERT\"]}");
    struct draft first = copy_draft(parse->scratch, NULL);
    struct drafts drafts = {&first, 1};
    parse->or_is_field = !are_ors_operators(json, 0, false);
    parse->top = parse->place;
    enum sl_status status = read_object(parse, &(struct level){.drafts = &drafts}, json);
    if (status != SL_OK)
        return status;
    for (size_t i = 0; i < drafts.n; i++)
        qsort(drafts.list[i].leaves, drafts.list[i].n, sizeof(drafts.list[i].leaves[0]), by_path);
    if (is_too_complex(parse, &drafts))
        return sl_when_fail(
            parse, json,
            "the wildcards of one field are too complex, as AWS measures it; use fewer stars, "
            "fewer repetitions after a star, or prefix and suffix");
    if (sets->n + drafts.n > SL_WHEN_MAX_SETS)
        return sl_when_fail(parse, json, "more than %d combinations of patterns and \"$or\"",
                            SL_WHEN_MAX_SETS);
    make_room(parse->arena, sets, drafts.n);
    size_t n_before = sets->n;
    for (size_t i = 0; i < drafts.n; i++)
        sets->sets[sets->n++] = finish_set(parse->arena, &drafts.list[i], &sets->images);
    return parse->is_judged ? judge_sets(parse, json, sets, n_before) : SL_OK;
}
