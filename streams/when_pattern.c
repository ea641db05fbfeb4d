/* Patterns: flattened into leaves as the text is read, so that a name may come twice ("dynamodb" in AWS's own
 * examples); of the same path given twice the last one counts. "$or" copies the sets made so far, one copy
 * for each alternative. */
#include "streams/when_private.h"

#include "base/json.h"

/* One set while it is read. */
struct draft {
    const struct sl_when_leaf **leaves; /* room for SL_WHEN_MAX_LEAVES */
    size_t n;
};

struct drafts {
    struct draft *list;
    size_t n;
};

/* ---- reading checked JSON ---- */

static bool enter_next(struct sl_when_cursor *c)
{
    const char *p = sl_json_space(c->at, c->end);
    if (*p == ',')
        p = sl_json_space(p + 1, c->end);
    c->at = p;
    return *p != '}' && *p != ']';
}

static struct sl_span take_value(struct sl_when_cursor *c)
{
    const char *begin = c->at;
    c->at = sl_json_value_end(begin, c->end);
    return sl_span(begin, (size_t)(c->at - begin));
}

bool sl_when_member(struct sl_when_cursor *c, struct sl_span *name, struct sl_span *value)
{
    if (!enter_next(c))
        return false;
    struct sl_span quoted = take_value(c);
    *name = sl_span(quoted.ptr + 1, quoted.len - 2);
    c->at = sl_json_space(sl_json_space(c->at, c->end) + 1, c->end);
    *value = take_value(c);
    return true;
}

bool sl_when_element(struct sl_when_cursor *c, struct sl_span *value)
{
    if (!enter_next(c))
        return false;
    *value = take_value(c);
    return true;
}

struct sl_span sl_when_string(const struct sl_when_parse *parse, struct sl_span string)
{
    char *out = sl_arena_alloc(parse->arena, string.len);
    return sl_span(out, sl_json_unescape_to(sl_span(string.ptr + 1, string.len - 2), out));
}

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
    for (size_t i = 0; status == SL_OK && i < drafts->n; i++) {
        if (drafts->list[i].n == SL_WHEN_MAX_LEAVES)
            return sl_when_fail(parse, list, "more than %d fields in one pattern", SL_WHEN_MAX_LEAVES);
        put_leaf(&drafts->list[i], leaf);
    }
    return status;
}

static enum sl_status read_object(struct sl_when_parse *parse, struct sl_span path, struct sl_span object,
                                  unsigned depth, struct drafts *drafts);

/* EventBridge takes "$or" for an operator only where it cannot be a field of that name. */
static bool is_or(struct sl_span name, struct sl_span value)
{
    if (!sl_json_text_is(name, SL_LIT("$or")) || value.ptr[0] != '[')
        return false;
    struct sl_when_cursor c = sl_when_enter(value);
    struct sl_span element, member, ignored;
    size_t n = 0;
    for (; sl_when_element(&c, &element); n++) {
        if (element.ptr[0] != '{')
            return false;
        struct sl_when_cursor inside = sl_when_enter(element);
        while (sl_when_member(&inside, &member, &ignored))
            if (sl_when_is_operator(member))
                return false;
    }
    return n >= 2;
}

static enum sl_status read_alternative(struct sl_when_parse *parse, struct sl_span path,
                                       struct sl_span object, unsigned depth, const struct drafts *before,
                                       struct drafts *all)
{
    struct drafts own = {sl_arena_alloc(parse->scratch, before->n * sizeof(own.list[0])), before->n};
    for (size_t i = 0; i < before->n; i++)
        own.list[i] = copy_draft(parse->scratch, &before->list[i]);
    enum sl_status status = read_object(parse, path, object, depth, &own);
    if (status != SL_OK)
        return status;
    if (all->n + own.n > SL_WHEN_MAX_SETS)
        return sl_when_fail(parse, object, "more than %d combinations of \"$or\"", SL_WHEN_MAX_SETS);
    memcpy(all->list + all->n, own.list, own.n * sizeof(own.list[0]));
    all->n += own.n;
    return SL_OK;
}

static enum sl_status read_or(struct sl_when_parse *parse, struct sl_span path, struct sl_span list,
                              unsigned depth, struct drafts *drafts)
{
    struct drafts all = {sl_arena_alloc(parse->scratch, SL_WHEN_MAX_SETS * sizeof(all.list[0])), 0};
    struct sl_when_cursor c = sl_when_enter(list);
    struct sl_span object;
    for (size_t i = 0; sl_when_element(&c, &object); i++) {
        struct sl_when_place place = {parse->place, {0}, i};
        parse->place = &place;
        enum sl_status status = read_alternative(parse, path, object, depth, drafts, &all);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
    }
    *drafts = all;
    return SL_OK;
}

static enum sl_status read_member(struct sl_when_parse *parse, struct sl_span path, struct sl_span name,
                                  struct sl_span value, unsigned depth, struct drafts *drafts)
{
    if (is_or(name, value))
        return read_or(parse, path, value, depth, drafts);
    if (value.ptr[0] == '[')
        return add_leaf(parse, join_path(parse, path, name), value, drafts);
    if (value.ptr[0] == '{')
        return read_object(parse, join_path(parse, path, name), value, depth, drafts);
    return sl_when_fail(parse, value, "a list of values is expected, as in [\"INSERT\"]");
}

static enum sl_status read_object(struct sl_when_parse *parse, struct sl_span path, struct sl_span object,
                                  unsigned depth, struct drafts *drafts)
{
    struct sl_when_cursor c = sl_when_enter(object);
    struct sl_span name, value;
    size_t n = 0;
    if (depth == SL_WHEN_MAX_DEPTH)
        return sl_when_fail(parse, object, "nested deeper than %d", SL_WHEN_MAX_DEPTH);
    for (; sl_when_member(&c, &name, &value); n++) {
        struct sl_when_place place = {parse->place, name, 0};
        parse->place = &place;
        enum sl_status status = read_member(parse, path, name, value, depth + 1, drafts);
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
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (sl_span_is(path, paths[i])) {
            *out = (enum sl_when_known)i;
            return true;
        }
    return false;
}

static enum sl_type find_type(struct sl_span tag)
{
    static const struct {
        const char *tag;
        enum sl_type type;
    } types[] = {{"S", SL_S},   {"N", SL_N},   {"B", SL_B},       {"BOOL", SL_BOOL},
                 {"SS", SL_SS}, {"NS", SL_NS}, {"NULL", SL_NULL}, {"BS", SL_BS}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (sl_span_is(tag, types[i].tag))
            return types[i].type;
    return SL_NONE;
}

/* What is behind "dynamodb.IMAGE." of the path; false when it does not begin so. */
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

/* For a single test: the bytes that a string which passes is written with, unless it is escaped, and with the
 * quotes that are known. Looking for several costs more than reading the image up to the attribute. */
static struct sl_span find_needle(struct sl_arena *arena, const struct sl_when_leaf *leaf)
{
    const struct sl_when_test *test = leaf->tests;
    bool is_equal = test->op == SL_WHEN_EQUALS && test->kind == SL_WHEN_STRING;
    if (leaf->absent_ok || leaf->n != 1 ||
        (!is_equal && test->op != SL_WHEN_PREFIX && test->op != SL_WHEN_SUFFIX))
        return sl_span(NULL, 0);
    char *needle = sl_arena_alloc(arena, test->text.len + 2), *end = needle;
    if (test->op != SL_WHEN_SUFFIX)
        *end++ = '"';
    if (test->text.len)
        memcpy(end, test->text.ptr, test->text.len);
    end += test->text.len;
    if (test->op != SL_WHEN_PREFIX)
        *end++ = '"';
    return sl_span(needle, (size_t)(end - needle));
}

static void place_leaf(struct sl_arena *arena, const struct sl_when_leaf *leaf, uint64_t bit,
                       struct sl_when_set *set, struct sl_when_text *texts,
                       struct sl_when_attribute *attributes, unsigned *images)
{
    enum sl_when_known known;
    enum sl_image image;
    struct sl_span rest;
    if (find_known(leaf->path, &known)) {
        texts[set->n_texts++] = (struct sl_when_text){known, leaf};
        return;
    }
    if (!split_image(leaf->path, &image, &rest)) {
        add_to_tree(arena, &set->record, leaf->path, leaf, bit);
        return;
    }
    *images |= 1u << image;
    struct sl_span tag = rest, name = take_name(&tag);
    enum sl_type type = tag.ptr ? find_type(tag) : SL_NONE;
    if (type == SL_NONE)
        add_to_tree(arena, &set->images[image], rest, leaf, bit);
    else
        attributes[set->n_attributes++] =
            (struct sl_when_attribute){image, type, name, find_needle(arena, leaf), leaf};
}

static struct sl_when_set finish_set(struct sl_arena *arena, const struct draft *draft, unsigned *images)
{
    struct sl_when_text *texts = sl_arena_alloc(arena, draft->n * sizeof(*texts));
    struct sl_when_attribute *attributes = sl_arena_alloc(arena, draft->n * sizeof(*attributes));
    struct sl_when_set set = {.texts = texts, .attributes = attributes};
    for (size_t i = 0; i < draft->n; i++)
        place_leaf(arena, draft->leaves[i], (uint64_t)1 << i, &set, texts, attributes, images);
    return set;
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

enum sl_status sl_when_compile_pattern(struct sl_when_parse *parse, struct sl_span json,
                                       struct sl_when_sets *sets)
{
    if (json.ptr[0] != '{')
        return sl_when_fail(parse, json, "an object is expected, as in {\"eventName\": [\"INSERT\"]}");
    struct draft first = copy_draft(parse->scratch, NULL);
    struct drafts drafts = {&first, 1};
    enum sl_status status = read_object(parse, sl_span(NULL, 0), json, 0, &drafts);
    if (status != SL_OK)
        return status;
    if (sets->n + drafts.n > SL_WHEN_MAX_SETS)
        return sl_when_fail(parse, json, "more than %d combinations of patterns and \"$or\"",
                            SL_WHEN_MAX_SETS);
    make_room(parse->arena, sets, drafts.n);
    for (size_t i = 0; i < drafts.n; i++)
        sets->sets[sets->n++] = finish_set(parse->arena, &drafts.list[i], &sets->images);
    return SL_OK;
}
