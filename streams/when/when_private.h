/* What the files of `when` share: compiled patterns, and their tests of single values.
 *
 * A pattern, flattened as EventBridge's engine does it, is a set of leaves: a dotted path and the tests of
 * which one has to hold. "$or" makes several such sets, and several patterns make more: a record matches when
 * all leaves of one set do. A set is looked up the cheapest way each of its leaves allows: by the record's
 * own index, by walking one image's text, or by walking the record's. */
#ifndef SL_STREAMS_WHEN_WHEN_PRIVATE_H
#define SL_STREAMS_WHEN_WHEN_PRIVATE_H

#include "base/error.h"
#include "base/json_walk.h"
#include "base/number.h"
#include "streams/record.h"
#include "streams/when/when.h"

/* More sets than this are refused, as EventBridge does: each "$or" multiplies them. */
#define SL_WHEN_MAX_SETS 1000
/* Leaves of one set: a bit each. */
#define SL_WHEN_MAX_LEAVES 64
/* Objects within objects in a pattern. An item nests 32 levels, each of them two in the text. */
#define SL_WHEN_MAX_DEPTH 80

/* ---- values ---- */

/* A leaf of a record: a string (between its quotes), or a number, true, false or null as written. Of an item
 * also a B, in base64, and what is no single value: a map, a list or a set as a whole. */
enum sl_when_kind { SL_WHEN_STRING, SL_WHEN_NUMBER, SL_WHEN_WORD, SL_WHEN_BINARY, SL_WHEN_WHOLE };

struct sl_when_value {
    enum sl_when_kind kind;
    bool escaped;
    struct sl_span text;
    enum sl_type type; /* of an attribute; SL_NONE for all else, also for the elements of one */
};

enum sl_when_op {
    SL_WHEN_EQUALS,      /* the same kind, and the same text, number (`bounds`) or address (`network`) */
    SL_WHEN_EQUALS_FOLD, /* "equals-ignore-case"; `text` is folded, as in the next four */
    SL_WHEN_PREFIX,
    SL_WHEN_PREFIX_FOLD,
    SL_WHEN_SUFFIX,
    SL_WHEN_SUFFIX_FOLD,
    SL_WHEN_WILDCARD, /* `text` as written, with its backslashes */
    SL_WHEN_NUMERIC,
    SL_WHEN_CIDR,
    SL_WHEN_EXISTS,
    SL_WHEN_TYPE,        /* the attribute's is `type` */
    SL_WHEN_ANYTHING_BUT /* none of `inner` */
};

/* Bounds of "numeric"; NULL: none. "=" is both, inclusive. */
struct sl_when_bounds {
    const struct sl_number *low, *high;
    bool low_open, high_open; /* the bound itself is outside */
    struct sl_span normal;    /* of a literal: its normal form */
};

struct sl_when_network {
    unsigned char address[16];
    int family;
    unsigned bits;
};

struct sl_when_test {
    enum sl_when_op op;
    enum sl_when_kind kind; /* of an EQUALS */
    enum sl_type type;      /* of a TYPE */
    struct sl_span text;
    const struct sl_when_bounds *bounds;
    const struct sl_when_network *network;
    const struct sl_when_test *inner;
    size_t n_inner;
};

bool sl_when_test_value(const struct sl_when_test *tests, size_t n, struct sl_when_value value,
                        struct sl_arena *scratch);

/* The bytes that a string which passes is written with, unless it is escaped, and with the quotes that are
 * known; absent where several are possible. */
struct sl_span sl_when_needle(struct sl_arena *arena, const struct sl_when_test *tests, size_t n);

/* Compiles the elements of a leaf's list; `absent_ok` when {"exists":false} is among them. */
struct sl_when_parse;
enum sl_status sl_when_compile_tests(struct sl_when_parse *parse, struct sl_span list,
                                     const struct sl_when_test **tests, size_t *n,
                                     bool *absent_ok) SL_MUST_USE;

/* Names that no field may have within "$or": those of operators, and what EventBridge keeps for later. */
bool sl_when_is_reserved(struct sl_span name);

/* ---- wildcards ---- */

/* EventBridge refuses patterns whose wildcards are too complex. The measure is that of its engine
 * (event-ruler's MachineComplexityEvaluator): how many beginnings of a field's wildcards one text can match
 * at a time. The limit is not documented. On AWS, 11 was refused (recorded), 12 and 16 too, and 9 was
 * accepted (users' rules). */
#define SL_WHEN_MAX_COMPLEXITY 10

/* The complexity of the wildcards among the tests of one field's leaves; more than the limit stands for all
 * that is above it. */
struct sl_when_leaf;
unsigned sl_when_complexity(const struct sl_when_leaf *const *leaves, size_t n);

/* ---- leaves, sets ---- */

struct sl_when_leaf {
    struct sl_span path; /* names joined by '.' */
    const struct sl_when_test *tests;
    size_t n;
    bool absent_ok; /* the test also passes when no leaf is at this path */
};

bool sl_when_has_wildcard(const struct sl_when_leaf *leaf);

/* Names of a set's leaves as a tree, for walking text: a path's next name leads to the next node. */
struct sl_when_node {
    struct sl_span name;
    struct sl_when_node *child, *next;
    const struct sl_when_leaf *leaf; /* NULL: only others are below */
    uint64_t bit;                    /* of its leaf, in the order of their paths; 0: none */
    uint64_t below;                  /* its bit and those of all nodes below */
};

/* The tree's leaves, in the record's text or in that of one image. */
struct sl_when_tree {
    struct sl_when_node *root; /* NULL: none */
    uint64_t absent_ok;        /* bits of the leaves that may be absent */
};

/* dynamodb.IMAGE.NAME.TYPE */
struct sl_when_attribute {
    enum sl_image image;
    enum sl_type type;
    struct sl_span name;
    struct sl_span
        needle; /* every value that passes has these bytes, unless it is escaped; absent: not known */
    const struct sl_when_leaf *leaf;
};

/* Texts of a record that need no walk. */
enum sl_when_known {
    SL_WHEN_EVENT_NAME,
    SL_WHEN_EVENT_ID,
    SL_WHEN_REGION,
    SL_WHEN_SOURCE_ARN,
    SL_WHEN_SEQUENCE_NUMBER,
    SL_WHEN_VIEW,
    SL_WHEN_IDENTITY_TYPE,
    SL_WHEN_IDENTITY_PRINCIPAL
};

struct sl_when_text {
    enum sl_when_known known;
    const struct sl_when_leaf *leaf;
};

/* ---- plain values ---- */

/* A condition on an item's plain values: a tree of steps. What is in one object of the configuration, or
 * below it by steps, is one tree; the objects of an "$or" are trees of their own, at their place.
 *
 * On a list, the steps below are taken in one element. Where there is nothing, what asks for absence alone
 * holds; so it does on a list in none of whose elements anything is found. */
struct sl_plain_or;

struct sl_plain {
    struct sl_span name;              /* of the step that leads here, unescaped */
    const struct sl_when_test *tests; /* of the value here; none: only steps */
    size_t n;
    bool has_tests, absent_ok; /* there is a list; it holds an {"exists":false} */
    bool steps_may_lack;       /* all that is below holds where there is nothing */
    bool may_lack;             /* and so does the list */
    struct sl_span needle;     /* of a step from the item itself: as in struct sl_when_attribute */
    struct sl_plain *child, *next;
    struct sl_plain_or *ors; /* each has to hold */
};

struct sl_plain_or {
    struct sl_plain *any; /* one of these, by `next` */
    struct sl_plain_or *next;
};

enum sl_status sl_plain_compile(struct sl_when_parse *parse, struct sl_span json,
                                struct sl_plain **out) SL_MUST_USE;

/* `item` is an M, or absent. */
bool sl_plain_match(const struct sl_plain *condition, struct sl_value item, struct sl_arena *scratch);

/* The same for an image of a record, whose index is used where there is one. */
bool sl_plain_match_image(const struct sl_plain *condition, const struct sl_record *r, enum sl_image image,
                          struct sl_arena *scratch);

/* ---- leaves ---- */

/* Leaves that share an array stand in one tree, so that one element has to satisfy them all; the others are
 * apart. */
struct sl_when_set {
    size_t n_texts, n_attributes;
    const struct sl_when_text *texts;
    const struct sl_when_attribute *attributes;
    struct sl_when_tree images[3]; /* by enum sl_image */
    struct sl_when_tree record;
};

struct sl_when {
    unsigned events;   /* bits 1 << enum sl_event; 0: not a condition */
    unsigned possible; /* the same: what all conditions together may let through */
    bool expired, or_inferred;
    size_t n_changed, n_sets;
    const struct sl_span *changed;
    const struct sl_when_set *sets;  /* NULL: no pattern */
    const struct sl_plain *plain[3]; /* by enum sl_image; NULL: none */
    unsigned images;
    unsigned needs; /* of `images`, those whose absence is an error */
};

/* Takes the pattern apart and adds its sets to `sets`. */
struct sl_when_sets {
    struct sl_when_set *sets;
    size_t n, room;
    unsigned images;
};
enum sl_status sl_when_compile_pattern(struct sl_when_parse *parse, struct sl_span json,
                                       struct sl_when_sets *sets) SL_MUST_USE;

bool sl_when_match_set(const struct sl_when_set *set, const struct sl_record *r, struct sl_arena *scratch);
bool sl_when_match_json(const struct sl_when_set *set, struct sl_span json, struct sl_arena *scratch);
/* Bits 1 << enum sl_event whose names the set's tests of eventName let through. */
unsigned sl_when_set_events(const struct sl_when_set *set, struct sl_arena *scratch);
/* Of these events, those that have the images in which the set asks for a value. */
unsigned sl_when_set_possible(const struct sl_when_set *set, unsigned events);

/* ---- reading checked JSON ---- */

/* The place of something in the configuration, for errors: a chain on the stack. */
struct sl_when_place {
    const struct sl_when_place *parent;
    struct sl_span name; /* as written; absent: an element, `index` says which */
    size_t index;
};

struct sl_when_parse {
    struct sl_span json;      /* the whole text, for offsets */
    struct sl_arena *arena;   /* of what is compiled */
    struct sl_arena *scratch; /* of the compiling */
    struct sl_error *error;
    const struct sl_when_place *place; /* innermost */
    bool or_is_field;                  /* in this pattern, "$or" is the name of a field */
    bool is_plain;                     /* a condition on an item's plain values is read, not a pattern */
    bool is_judged;                    /* a pattern that can match no record is a finding */
    const struct sl_when_place *top;   /* then: of the pattern as a whole */
    sl_when_found_fn found;            /* receives the findings; NULL: the first one is an error */
    void *found_arg;
};

/* SL_REJECT, code "InvalidPattern", the byte of `at`, "path: why". */
enum sl_status sl_when_fail(const struct sl_when_parse *parse, struct sl_span at, const char *format,
                            ...) SL_MUST_USE SL_PRINTF(3, 4);

/* A finding: "path: can never match: why". SL_OK if it was only reported. */
enum sl_status sl_when_never(const struct sl_when_parse *parse, struct sl_span at, const char *format,
                             ...) SL_MUST_USE SL_PRINTF(3, 4);

/* Finds out whether any record of DynamoDB could match the leaf that was read at `parse->place`. */
enum sl_status sl_when_judge(struct sl_when_parse *parse, const struct sl_when_leaf *leaf,
                             struct sl_span list) SL_MUST_USE;

/* A string's text, copied into the compiled condition's arena. `string` has its quotes. */
struct sl_span sl_when_string(const struct sl_when_parse *parse, struct sl_span string);

#endif
