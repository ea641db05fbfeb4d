/* How complex the wildcards of one field are, as EventBridge's engine measures it: the largest number of
 * places within the wildcards at which one text can stand at a time. The wildcards become a nondeterministic
 * automaton over bytes; the search goes through the sets of its states that some text leads to. It ends as
 * soon as one is over the limit, so the sets are small. */
#include "streams/when/when_private.h"

#include "base/hash.h"

/* More sets than any pattern of a mapping (4,096 characters) had in tests; what has more is too complex to be
 * measured, and refused. */
#define MAX_SETS  (1u << 15)
#define MAX_NODES (1u << 16)
#define MAX_TESTS SL_WHEN_MAX_COMPLEXITY /* each counts at least once */
#define TOO_MUCH  (SL_WHEN_MAX_COMPLEXITY + 1)

/* A place in a wildcard: after a character or a star. */
struct node {
    uint32_t star;  /* the place after the star that follows; 0: none follows */
    uint32_t edges; /* first of the characters that may follow; 0: none */
    bool is_star;   /* any character leads back to it */
};

struct edge {
    unsigned char byte;
    uint32_t to, next;
};

struct states {
    uint32_t n, ids[SL_WHEN_MAX_COMPLEXITY];
};

/* One wildcard, or those within an anything-but. */
struct test {
    const struct sl_when_test *texts;
    size_t n;
    bool is_negated;
    uint32_t begin, end;
};

struct search {
    struct test tests[MAX_TESTS];
    size_t n_tests;
    struct node *nodes; /* [0] and edges[0] stand for none */
    struct edge *edges;
    uint32_t n_nodes, n_edges;
    struct states *sets;
    uint32_t n_sets;
    uint32_t *slots; /* of the hash table: 1 + index of a set */
    unsigned most;
};

/* ---- the automaton ---- */

static uint32_t new_node(struct search *s, bool is_star)
{
    s->nodes[s->n_nodes] = (struct node){.is_star = is_star};
    return s->n_nodes++;
}

static uint32_t find_edge(const struct search *s, uint32_t from, unsigned char byte)
{
    uint32_t e = s->nodes[from].edges;
    while (e && s->edges[e].byte != byte)
        e = s->edges[e].next;
    return e ? s->edges[e].to : 0;
}

static void add_edge(struct search *s, uint32_t from, unsigned char byte, uint32_t to)
{
    s->edges[s->n_edges] = (struct edge){byte, to, s->nodes[from].edges};
    s->nodes[from].edges = s->n_edges++;
}

/* A letter, or a part of a character that may be one. */
static bool may_have_case(unsigned char byte)
{
    return byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Equal tests share an end, and their beginnings: up to the first letter after a star, where the engine makes
 * a path of its own for each. Different tests count one by one. */
static void add_wildcard(struct search *s, uint32_t begin, uint32_t end, struct sl_span text)
{
    uint32_t at = begin;
    bool is_shared = true, is_after_star = false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_star = text.ptr[i] == '*';
        i += text.ptr[i] == '\\';
        unsigned char byte = (unsigned char)text.ptr[i];
        is_shared = is_shared && (is_star || !is_after_star || !may_have_case(byte));
        is_after_star = is_after_star || is_star;
        uint32_t next = !is_shared ? 0 : is_star ? s->nodes[at].star : find_edge(s, at, byte);
        if (!next) {
            next = new_node(s, is_star);
            if (is_star)
                s->nodes[at].star = next;
            else
                add_edge(s, at, byte, next);
        }
        at = next;
    }
    if (!find_edge(s, at, '"'))
        add_edge(s, at, '"', end);
}

static const struct sl_when_test *wildcards_of(const struct sl_when_test *test, size_t *n)
{
    const struct sl_when_test *list = test->op == SL_WHEN_ANYTHING_BUT ? test->inner : test;
    *n = test->op == SL_WHEN_ANYTHING_BUT ? test->n_inner : 1;
    return list->op == SL_WHEN_WILDCARD ? list : NULL;
}

bool sl_when_has_wildcard(const struct sl_when_leaf *leaf)
{
    size_t n;
    for (size_t i = 0; i < leaf->n; i++)
        if (wildcards_of(&leaf->tests[i], &n))
            return true;
    return false;
}

/* ---- the sets of states ---- */

static bool has(const uint32_t *ids, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Adds a state in order. False: the set is over the limit. */
static bool put(struct states *set, uint32_t id)
{
    if (has(set->ids, set->n, id))
        return true;
    if (set->n == SL_WHEN_MAX_COMPLEXITY)
        return false;
    uint32_t i = set->n++;
    for (; i && set->ids[i - 1] > id; i--)
        set->ids[i] = set->ids[i - 1];
    set->ids[i] = id;
    return true;
}

/* A star may stand for nothing, so the place after it is reached as well. */
static bool put_with_star(const struct search *s, struct states *set, uint32_t id)
{
    uint32_t star = s->nodes[id].star;
    return put(set, id) && (!star || put(set, star));
}

/* Remembers the set, unless it is known. */
static void visit(struct search *s, const struct states *set)
{
    uint64_t hash = sl_hash(sl_span((const char *)set->ids, set->n * sizeof(set->ids[0])));
    uint32_t slot = (uint32_t)hash % (2 * MAX_SETS);
    s->most = set->n > s->most ? set->n : s->most;
    for (; s->slots[slot]; slot = (slot + 1) % (2 * MAX_SETS)) {
        const struct states *known = &s->sets[s->slots[slot] - 1];
        if (known->n == set->n && memcmp(known->ids, set->ids, set->n * sizeof(set->ids[0])) == 0)
            return;
    }
    if (s->n_sets == MAX_SETS) {
        s->most = TOO_MUCH;
        return;
    }
    s->sets[s->n_sets++] = *set;
    s->slots[slot] = s->n_sets;
}

/* The set that follows on a byte; -1: one that is in no wildcard. */
static void step(struct search *s, const struct states *from, int byte)
{
    struct states next = {0};
    bool fits = true;
    for (uint32_t i = 0; i < from->n; i++) {
        const struct node *node = &s->nodes[from->ids[i]];
        if (node->is_star)
            fits = fits && put_with_star(s, &next, from->ids[i]);
        for (uint32_t e = node->edges; e; e = s->edges[e].next)
            if (s->edges[e].byte == byte)
                fits = fits && put_with_star(s, &next, s->edges[e].to);
    }
    if (!fits)
        s->most = TOO_MUCH;
    else if (next.n)
        visit(s, &next);
}

static void step_on_all(struct search *s, struct states from)
{
    bool is_seen[256] = {false};
    step(s, &from, -1);
    for (uint32_t i = 0; i < from.n; i++)
        for (uint32_t e = s->nodes[from.ids[i]].edges; e; e = s->edges[e].next)
            if (!is_seen[s->edges[e].byte]) {
                is_seen[s->edges[e].byte] = true;
                step(s, &from, s->edges[e].byte);
            }
}

/* ---- all of it ---- */

static bool has_room(const struct search *s, size_t n)
{
    return s->n_nodes + n <= MAX_NODES && s->n_edges + n <= MAX_NODES;
}

static bool is_equal(const struct test *a, const struct test *b)
{
    bool is_same = a->is_negated == b->is_negated && a->n == b->n;
    for (size_t i = 0; is_same && i < a->n; i++)
        is_same = sl_span_eq(a->texts[i].text, b->texts[i].text);
    return is_same;
}

/* Adds a test; an equal one may be there already. False: they are too many. */
static bool add_test(struct search *s, struct test test, struct states *first)
{
    size_t i = 0;
    while (i < s->n_tests && !is_equal(&s->tests[i], &test))
        i++;
    if (i == s->n_tests) {
        if (!has_room(s, 2) || i == MAX_TESTS)
            return false;
        test.begin = new_node(s, false);
        test.end = new_node(s, false);
        s->tests[s->n_tests++] = test;
    }
    for (size_t k = 0; k < test.n; k++) {
        if (!has_room(s, test.texts[k].text.len + 1))
            return false;
        add_wildcard(s, s->tests[i].begin, s->tests[i].end, test.texts[k].text);
    }
    return put_with_star(s, first, s->tests[i].begin);
}

/* Adds the leaves' wildcards; `first` receives the states before any character. */
static bool add_leaves(struct search *s, const struct sl_when_leaf *const *leaves, size_t n,
                       struct states *first)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < leaves[i]->n; k++) {
            struct test test = {.is_negated = leaves[i]->tests[k].op == SL_WHEN_ANYTHING_BUT};
            test.texts = wildcards_of(&leaves[i]->tests[k], &test.n);
            if (test.texts && !add_test(s, test, first))
                return false;
        }
    return true;
}

unsigned sl_when_complexity(const struct sl_when_leaf *const *leaves, size_t n)
{
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    struct search s = {.n_nodes = 1, .n_edges = 1};
    struct states first = {0};
    s.nodes = sl_arena_alloc(arena, MAX_NODES * sizeof(s.nodes[0]));
    s.edges = sl_arena_alloc(arena, MAX_NODES * sizeof(s.edges[0]));
    s.sets = sl_arena_alloc(arena, MAX_SETS * sizeof(s.sets[0]));
    s.slots = sl_arena_zalloc(arena, 2 * MAX_SETS * sizeof(s.slots[0]));
    if (!add_leaves(&s, leaves, n, &first))
        s.most = TOO_MUCH;
    else if (first.n)
        visit(&s, &first);
    for (uint32_t i = 0; i < s.n_sets && s.most <= SL_WHEN_MAX_COMPLEXITY; i++)
        step_on_all(&s, s.sets[i]);
    unsigned most = s.most;
    sl_arena_destroy(arena);
    return most;
}
