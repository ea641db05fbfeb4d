/* Whether a record matches: cheap looks first, then walks of the text.
 *
 * A walk follows text and tree of names together and notes the leaves of which one value passed. Within an
 * array the engine wants one element to satisfy all that lies below it, so each element is tried by itself.
 *
 * Absence ("exists": false) is a fact about the whole text, so a walk of its own finds it out first. Below an
 * array the engine is more subtle: it goes through the paths in their order, and as soon as one of them has
 * matched in an element, the paths after it have to be absent in that element only. */
#include "streams/when/when_private.h"

#include "base/json.h"
#include "streams/names.h"
#include "streams/record_layout.h"

struct walk {
    const char *end;
    struct sl_arena *scratch;
    uint64_t given;    /* leaves that hold by absence */
    uint64_t may_lack; /* leaves that may hold by absence in one element, see above; 0: none */
    bool look_only;    /* any value passes: to see what is there */
};

/* Leaves that hold, and those of them that hold because of a value. */
struct hits {
    uint64_t found, by_value;
};

static bool passes(const struct sl_when_leaf *leaf, struct sl_when_value value, struct sl_arena *scratch)
{
    return sl_when_test_value(leaf->tests, leaf->n, value, scratch);
}

/* The scalar from `begin` to `end`. */
static struct sl_when_value scalar(const char *begin, const char *end, bool escaped)
{
    if (*begin == '"')
        return (struct sl_when_value){.escaped = escaped,
                                      .text = sl_span(begin + 1, (size_t)(end - begin) - 2)};
    enum sl_when_kind kind =
        *begin == '-' || (*begin >= '0' && *begin <= '9') ? SL_WHEN_NUMBER : SL_WHEN_WORD;
    return (struct sl_when_value){.kind = kind, .text = sl_span(begin, (size_t)(end - begin))};
}

/* The node that `name` leads to: a name with dots is as many steps. NULL: no leaf is there. */
static const struct sl_when_node *find_node(const struct sl_when_node *from, struct sl_span name)
{
    for (const struct sl_when_node *n = from->child; n; n = n->next) {
        if (!sl_span_starts(name, n->name))
            continue;
        if (name.len == n->name.len)
            return n;
        if (name.ptr[n->name.len] == '.')
            return find_node(n, sl_span_from(name, n->name.len + 1));
    }
    return NULL;
}

static const char *walk_value(const struct walk *w, const struct sl_when_node *node, const char *p,
                              struct hits *hits);

static const char *walk_member(const struct walk *w, const struct sl_when_node *node, const char *p,
                               struct hits *hits)
{
    bool escaped;
    const char *close = sl_json_string_end(p + 1, w->end, &escaped);
    struct sl_span name = sl_span(p + 1, (size_t)(close - p - 1));
    if (escaped)
        name = sl_json_unescape(name, w->scratch);
    p = sl_json_space(sl_json_space(close + 1, w->end) + 1, w->end);
    const struct sl_when_node *child = find_node(node, name);
    return child ? walk_value(w, child, p, hits) : sl_json_value_end(p, w->end);
}

static const char *walk_object(const struct walk *w, const struct sl_when_node *node, const char *p,
                               struct hits *hits)
{
    p = sl_json_space(p + 1, w->end);
    while (*p != '}') {
        p = sl_json_space(walk_member(w, node, p, hits), w->end);
        if (*p == ',')
            p = sl_json_space(p + 1, w->end);
    }
    return p + 1;
}

/* The leaves after the first one that matched a value. */
static uint64_t after_first(uint64_t by_value)
{
    return by_value ? ~(by_value ^ (by_value - 1)) : 0;
}

static bool is_container(const char *p)
{
    return *p == '{' || *p == '[';
}

/* Walks one element, which has to satisfy all leaves below the node, but for those in `before`. What may be
 * absent in it depends on what matches in it, so it may be walked again. Returns the byte after it. */
static const char *walk_element(const struct walk *w, const struct sl_when_node *node, const char *p,
                                uint64_t before, struct hits *own)
{
    struct hits there = {0, 0};
    struct walk again = *w, look = {w->end, w->scratch, 0, 0, true};
    *own = (struct hits){(w->given | before) & node->below, 0};
    const char *end = walk_value(w, node, p, own);
    if (own->found == node->below || !(w->may_lack & node->below) || !own->by_value)
        return end;
    (void)walk_value(&look, node, p, &there);
    for (;;) {
        uint64_t more = w->may_lack & node->below & ~there.found & after_first(own->by_value) & ~again.given;
        if (!more)
            return end;
        again.given |= more;
        *own = (struct hits){(again.given | before) & node->below, 0};
        (void)walk_value(&again, node, p, own);
    }
}

/* Returns the byte after the element. */
static const char *walk_one(const struct walk *w, const struct sl_when_node *node, const char *p,
                            struct hits *hits)
{
    struct hits own = {0, 0};
    if (w->look_only || !is_container(p))
        return walk_value(w, node, p, hits);
    p = walk_element(w, node, p, hits->found & node->bit, &own);
    if (own.found == node->below) {
        hits->found |= own.found;
        hits->by_value |= own.by_value;
    }
    return p;
}

/* A plain value in an array is in no element of it: it matches for all of them. Where a path ends and also
 * goes on, the plain values come first. */
static const char *walk_array(const struct walk *w, const struct sl_when_node *node, const char *p,
                              struct hits *hits)
{
    const char *begin = sl_json_space(p + 1, w->end);
    unsigned last = node->bit && node->child && !w->look_only ? 1 : 0;
    for (unsigned pass = 0; pass <= last; pass++) {
        p = begin;
        while (*p != ']') {
            bool is_turn = last == 0 || is_container(p) == (pass == 1);
            p = is_turn ? walk_one(w, node, p, hits) : sl_json_value_end(p, w->end);
            p = sl_json_space(p, w->end);
            if (*p == ',')
                p = sl_json_space(p + 1, w->end);
        }
    }
    return p + 1;
}

/* Returns the byte after the value. */
static const char *walk_value(const struct walk *w, const struct sl_when_node *node, const char *p,
                              struct hits *hits)
{
    bool escaped = false;
    if (*p == '{')
        return node->child ? walk_object(w, node, p, hits) : sl_json_value_end(p, w->end);
    if (*p == '[')
        return walk_array(w, node, p, hits);
    const char *end =
        *p == '"' ? sl_json_string_end(p + 1, w->end, &escaped) + 1 : sl_json_value_end(p, w->end);
    if (node->bit && (w->look_only || passes(node->leaf, scalar(p, end, escaped), w->scratch))) {
        hits->found |= node->bit;
        hits->by_value |= node->bit;
    }
    return end;
}

/* The leaves that hold in the text. */
static uint64_t walk_text(const struct sl_when_tree *tree, struct sl_span text, struct walk w)
{
    struct hits hits = {w.given, 0};
    w.end = sl_span_end(text);
    if (text.ptr)
        walk_value(&w, tree->root, text.ptr, &hits);
    return hits.found;
}

static bool tree_matches(const struct sl_when_tree *tree, struct sl_span text, struct sl_arena *scratch)
{
    uint64_t there = 0;
    if (tree->absent_ok)
        there = tree->absent_ok & walk_text(tree, text, (struct walk){.scratch = scratch, .look_only = true});
    const struct walk w = {.scratch = scratch, .given = tree->absent_ok & ~there, .may_lack = there};
    return walk_text(tree, text, w) == tree->root->below;
}

/* ---- single looks ---- */

static bool set_passes(const struct sl_when_leaf *leaf, struct sl_span array, struct sl_arena *scratch)
{
    struct sl_json_walk c = sl_json_walk(array);
    struct sl_span element;
    bool is_empty = true;
    for (; sl_json_walk_next(&c, NULL, &element); is_empty = false)
        if (passes(leaf, scalar(element.ptr, sl_span_end(element), true), scratch))
            return true;
    return is_empty && leaf->absent_ok;
}

static bool attribute_passes(const struct sl_when_attribute *a, const struct sl_record *r,
                             struct sl_arena *scratch)
{
    if (a->needle.ptr && !sl_record_may_hold(sl_record_image(r, a->image).raw, a->needle))
        return false;
    struct sl_value v = sl_record_scan(r, a->image, a->name);
    if (v.type != a->type)
        return a->leaf->absent_ok;
    switch (v.type) {
    case SL_S:
    case SL_N:
    case SL_B:
        return passes(a->leaf, (struct sl_when_value){.escaped = v.escaped, .text = v.raw}, scratch);
    case SL_BOOL:
    case SL_NULL:
        return passes(a->leaf, (struct sl_when_value){.kind = SL_WHEN_WORD, .text = v.raw}, scratch);
    default:
        return set_passes(a->leaf, v.raw, scratch);
    }
}

/* The TTL's mark is known from decoding; anybody else's name has to be looked up. Dumps of GetRecords spell
 * it `upper`. */
static struct sl_span identity_text(const struct sl_record *r, const char *lower, const char *upper,
                                    struct sl_span mark, struct sl_arena *scratch)
{
    if (r->identity == SL_IDENTITY_NONE)
        return sl_span(NULL, 0);
    if (r->identity == SL_IDENTITY_DYNAMODB)
        return mark;
    struct sl_span raw = sl_record_text(r, SL_FIELD_RAW), found = sl_json_find(raw, lower);
    if (!found.ptr)
        found = sl_json_find(raw, upper);
    if (!found.ptr || found.ptr[0] != '"')
        return sl_span(NULL, 0);
    return sl_json_unescape(sl_span(found.ptr + 1, found.len - 2), scratch);
}

static struct sl_span known_text(const struct sl_record *r, enum sl_when_known known,
                                 struct sl_arena *scratch)
{
    switch (known) {
    case SL_WHEN_EVENT_NAME:
        return sl_span_str(sl_event_name(sl_record_event(r)));
    case SL_WHEN_EVENT_ID:
        return sl_record_text(r, SL_FIELD_EVENT_ID);
    case SL_WHEN_REGION:
        return sl_record_text(r, SL_FIELD_REGION);
    case SL_WHEN_SOURCE_ARN:
        return sl_record_text(r, SL_FIELD_SOURCE_ARN);
    case SL_WHEN_SEQUENCE_NUMBER:
        return sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER);
    case SL_WHEN_VIEW:
        return sl_record_view(r) ? sl_span_str(sl_view_name(sl_record_view(r))) : sl_span(NULL, 0);
    case SL_WHEN_IDENTITY_TYPE:
        return identity_text(r, "userIdentity.type", "userIdentity.Type", SL_LIT("Service"), scratch);
    default:
        return identity_text(r, "userIdentity.principalId", "userIdentity.PrincipalId",
                             SL_LIT("dynamodb.amazonaws.com"), scratch);
    }
}

static bool text_passes(const struct sl_when_text *t, const struct sl_record *r, struct sl_arena *scratch)
{
    struct sl_span text = known_text(r, t->known, scratch);
    if (!text.ptr)
        return t->leaf->absent_ok;
    return passes(t->leaf, (struct sl_when_value){.text = text}, scratch);
}

bool sl_when_match_set(const struct sl_when_set *set, const struct sl_record *r, struct sl_arena *scratch)
{
    for (size_t i = 0; i < set->n_texts; i++)
        if (!text_passes(&set->texts[i], r, scratch))
            return false;
    for (size_t i = 0; i < set->n_attributes; i++)
        if (!attribute_passes(&set->attributes[i], r, scratch))
            return false;
    for (unsigned i = 0; i < 3; i++)
        if (set->images[i].root &&
            !tree_matches(&set->images[i], sl_record_image(r, (enum sl_image)i).raw, scratch))
            return false;
    return !set->record.root || tree_matches(&set->record, sl_record_text(r, SL_FIELD_RAW), scratch);
}

unsigned sl_when_set_events(const struct sl_when_set *set, struct sl_arena *scratch)
{
    unsigned events = 0;
    for (unsigned event = SL_INSERT; event <= SL_REMOVE; event++) {
        bool may = true;
        for (size_t i = 0; i < set->n_texts; i++)
            may = may &&
                  (set->texts[i].known != SL_WHEN_EVENT_NAME ||
                   passes(set->texts[i].leaf,
                          (struct sl_when_value){.text = sl_span_str(sl_event_name((enum sl_event)event))},
                          scratch));
        events |= may ? 1u << event : 0;
    }
    return events;
}

static bool needs_image(const struct sl_when_set *set, enum sl_image image)
{
    const struct sl_when_tree *tree = &set->images[image];
    for (size_t i = 0; i < set->n_attributes; i++)
        if (set->attributes[i].image == image && !set->attributes[i].leaf->absent_ok)
            return true;
    return tree->root && (tree->root->below & ~tree->absent_ok);
}

unsigned sl_when_set_possible(const struct sl_when_set *set, unsigned events)
{
    if (needs_image(set, SL_NEW_IMAGE))
        events &= ~(1u << SL_REMOVE);
    if (needs_image(set, SL_OLD_IMAGE))
        events &= ~(1u << SL_INSERT);
    return events;
}

/* What is looked up in a record's own index is not there in another object: these paths have another form
 * in an item, where a type follows every name. */
bool sl_when_match_json(const struct sl_when_set *set, struct sl_span json, struct sl_arena *scratch)
{
    for (size_t i = 0; i < set->n_texts; i++)
        if (!set->texts[i].leaf->absent_ok)
            return false;
    for (size_t i = 0; i < set->n_attributes; i++)
        if (!set->attributes[i].leaf->absent_ok)
            return false;
    for (unsigned i = 0; i < 3; i++)
        if (set->images[i].root && !tree_matches(&set->images[i], SL_LIT("{}"), scratch))
            return false;
    return !set->record.root || tree_matches(&set->record, json, scratch);
}
