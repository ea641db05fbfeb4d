/* The filter of a mapping that is nearest to a `when`: one that lets through every record that `when` does,
 * and as few others as a pattern can say.
 *
 * A plain value may be an S, in an SS, or an S in a list: a pattern asks for each, within an "$or" in the
 * attribute's own object. What a pattern cannot say is left out, which lets more through. */
#include "base/array.h"
#include "streams/when/when_private.h"

#include "base/json_write.h"
#include "streams/names.h"

#include <stdio.h>

/* Attributes of one filter: each makes up to some eight combinations for "$or", of which AWS takes 1,000.
 * Steps of one: each is written twice. */
#define MAX_ATTRIBUTES 3
#define MAX_STEPS      3

struct filter {
    struct sl_buffer *out;
    enum sl_image image;
    bool is_exact;
    unsigned n_attributes;
};

/* ---- the tests of a value ---- */

/* The types of single values, and the set and the place of one in a list. */
static const struct {
    const char *name, *set; /* NULL: there is no such set */
    enum sl_type type;
} kinds[] = {{"S", "SS", SL_S},
             {"N", "NS", SL_N},
             {"B", "BS", SL_B},
             {"BOOL", NULL, SL_BOOL},
             {"NULL", NULL, SL_NULL}};

#define N_KINDS SL_COUNT(kinds)

static const char *const type_names[] = {
    [SL_S] = "S",   [SL_N] = "N",   [SL_B] = "B",   [SL_BOOL] = "BOOL", [SL_NULL] = "NULL",
    [SL_SS] = "SS", [SL_NS] = "NS", [SL_BS] = "BS", [SL_L] = "L",       [SL_M] = "M"};

/* The type of single values that the test is about; SL_NONE: several, or it is not about single values. */
static enum sl_type type_of(const struct sl_when_test *test)
{
    if (test->op == SL_WHEN_NUMERIC)
        return SL_N;
    if (test->op == SL_WHEN_EXISTS || test->op == SL_WHEN_TYPE || test->op == SL_WHEN_ANYTHING_BUT)
        return SL_NONE;
    if (test->op != SL_WHEN_EQUALS || test->kind == SL_WHEN_STRING)
        return SL_S;
    if (test->kind == SL_WHEN_WORD)
        return sl_span_is(test->text, "null") ? SL_NULL : SL_BOOL;
    return test->kind == SL_WHEN_NUMBER ? SL_N : SL_B;
}

static bool is_wide(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] >= 0xF0)
            return true;
    return false;
}

static bool is_like_address(struct sl_span text)
{
    return text.len && strspn(text.ptr, "0123456789abcdefABCDEF:.") >= text.len;
}

static void add_operator(struct sl_buffer *out, const char *name, struct sl_span text)
{
    sl_buffer_printf(out, "{\"%s\":", name);
    sl_json_add_string(out, text);
    sl_buffer_add_char(out, '}');
}

/* The test as Lambda publishes it, or one that lets more through. True: it is the test itself. */
static bool add_test(struct sl_buffer *out, const struct sl_when_test *test)
{
    bool is_text =
        test->op == SL_WHEN_EQUALS && (test->kind == SL_WHEN_STRING || test->kind == SL_WHEN_BINARY);
    if (is_text)
        sl_json_add_string(out, test->text);
    else if (test->op == SL_WHEN_PREFIX || test->op == SL_WHEN_SUFFIX)
        add_operator(out, test->op == SL_WHEN_PREFIX ? "prefix" : "suffix", test->text);
    else if (test->op == SL_WHEN_EQUALS_FOLD && !is_wide(test->text))
        add_operator(out, "equals-ignore-case", test->text);
    else if (test->op == SL_WHEN_EQUALS && test->kind == SL_WHEN_WORD)
        sl_buffer_add_str(out, sl_span_is(test->text, "false") ? "false" : "true");
    else {
        sl_buffer_add_str(out, "{\"exists\":true}");
        return false;
    }
    return !is_text || !is_like_address(test->text);
}

static bool can_say_test(const struct sl_when_test *test, bool is_key)
{
    enum sl_type type = test->op == SL_WHEN_TYPE ? test->type : type_of(test);
    return type != SL_NONE && type < SL_L && (!is_key || type <= SL_B);
}

/* Can a pattern ask for all that the leaf lets through? */
static bool can_say(const struct sl_plain *c, bool is_key)
{
    bool can = c->n > 0 && !c->absent_ok;
    for (size_t i = 0; i < c->n; i++)
        can = can && can_say_test(&c->tests[i], is_key);
    return can;
}

/* [...]: the tests of this type. False: there are none. */
static bool add_tests(struct filter *f, const struct sl_plain *c, enum sl_type type)
{
    bool is_any = false;
    for (size_t i = 0; i < c->n; i++) {
        if (type_of(&c->tests[i]) != type)
            continue;
        sl_buffer_add_char(f->out, is_any ? ',' : '[');
        f->is_exact = add_test(f->out, &c->tests[i]) && f->is_exact;
        is_any = true;
    }
    sl_buffer_add_str(f->out, is_any ? "]" : "");
    return is_any;
}

/* ---- an attribute ---- */

static bool has_tests_of(const struct sl_plain *c, enum sl_type type)
{
    for (size_t i = 0; i < c->n; i++)
        if (type_of(&c->tests[i]) == type)
            return true;
    return false;
}

static void add_alternative(struct filter *f, const struct sl_plain *c, enum sl_type type, const char *before,
                            unsigned *n)
{
    sl_buffer_printf(f->out, "%s{%s:", (*n)++ ? "," : "", before);
    add_tests(f, c, type);
    sl_buffer_add_str(f->out, before[0] == '"' && strchr(before, '{') ? "}}" : "}");
}

/* {"$or":[{"S":[...]},{"SS":[...]},{"L":{"S":[...]}}]} */
static void add_leaf(struct filter *f, const struct sl_plain *c)
{
    char before[32];
    unsigned n = 0;
    size_t begin = f->out->len;
    sl_buffer_add_str(f->out, "{\"$or\":[");
    for (size_t i = 0; i < N_KINDS; i++) {
        if (!has_tests_of(c, kinds[i].type))
            continue;
        snprintf(before, sizeof(before), "\"%s\"", kinds[i].name);
        add_alternative(f, c, kinds[i].type, before, &n);
        if (f->image == SL_KEYS)
            continue;
        snprintf(before, sizeof(before), "\"%s\"", kinds[i].set ? kinds[i].set : "");
        if (kinds[i].set)
            add_alternative(f, c, kinds[i].type, before, &n);
        snprintf(before, sizeof(before), "\"L\":{\"%s\"", kinds[i].name);
        add_alternative(f, c, kinds[i].type, before, &n);
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->tests[i].op == SL_WHEN_TYPE)
            sl_buffer_printf(f->out, "%s{\"%s\":[{\"exists\":true}]}", n++ ? "," : "",
                             type_names[c->tests[i].type]);
    sl_buffer_add_str(f->out, "]}");
    if (n > 1)
        return;
    /* An "$or" needs two. */
    size_t inner = begin + strlen("{\"$or\":["), len = f->out->len - inner - 2;
    memmove(f->out->ptr + begin, f->out->ptr + inner, len);
    f->out->len = begin + len;
}

static bool add_members(struct filter *f, const struct sl_plain *c, unsigned depth);

/* {"$or":[{"M":{...}},{"L":{"M":{...}}}]} */
static bool add_steps(struct filter *f, const struct sl_plain *c, unsigned depth)
{
    size_t begin = f->out->len;
    unsigned n = f->n_attributes;
    sl_buffer_add_str(f->out, "{\"$or\":[{\"M\":");
    bool is_any = add_members(f, c, depth + 1);
    sl_buffer_add_str(f->out, "},{\"L\":{\"M\":");
    f->n_attributes = n;
    is_any = is_any && add_members(f, c, depth + 1);
    sl_buffer_add_str(f->out, "}}]}");
    if (!is_any)
        f->out->len = begin;
    return is_any;
}

/* A name that would be an operator's within "$or", or none. */
static bool can_name(struct sl_span name, bool is_inside)
{
    return !sl_span_is(name, "$or") && !(is_inside && sl_when_is_reserved(name));
}

static bool add_value(struct filter *f, const struct sl_plain *c, unsigned depth)
{
    if (!c->has_tests)
        return depth < MAX_STEPS && f->image != SL_KEYS && add_steps(f, c, depth);
    f->is_exact = f->is_exact && !c->child && !c->ors;
    if (!can_say(c, f->image == SL_KEYS) || f->n_attributes == MAX_ATTRIBUTES)
        return false;
    f->n_attributes++;
    add_leaf(f, c);
    return true;
}

/* {...}. False, and nothing is written: no member can be said. */
static bool add_members(struct filter *f, const struct sl_plain *c, unsigned depth)
{
    size_t begin = f->out->len;
    bool is_any = false;
    f->is_exact = f->is_exact && !c->ors;
    for (const struct sl_plain *child = c->child; child; child = child->next) {
        size_t before = f->out->len;
        sl_buffer_add_char(f->out, is_any ? ',' : '{');
        sl_json_add_string(f->out, child->name);
        sl_buffer_add_char(f->out, ':');
        if (can_name(child->name, depth > 0) && add_value(f, child, depth)) {
            is_any = true;
        } else {
            f->out->len = before;
            f->is_exact = false;
        }
    }
    sl_buffer_add_str(f->out, is_any ? "}" : "");
    if (!is_any)
        f->out->len = begin;
    return is_any;
}

/* ---- the record ---- */

static void begin_member(struct sl_buffer *out, bool *is_any)
{
    sl_buffer_add_char(out, *is_any ? ',' : '{');
    *is_any = true;
}

static void add_events(struct sl_buffer *out, unsigned events)
{
    const char *separator = "";
    sl_buffer_add_str(out, "\"eventName\":[");
    for (unsigned event = SL_INSERT; event <= SL_REMOVE; event++)
        if (events & 1u << event) {
            sl_buffer_printf(out, "%s\"%s\"", separator, sl_event_name((enum sl_event)event));
            separator = ",";
        }
    sl_buffer_add_char(out, ']');
}

static void add_images(struct filter *f, const struct sl_when *when, bool *is_any)
{
    static const char *const names[] = {
        [SL_KEYS] = "Keys", [SL_NEW_IMAGE] = "NewImage", [SL_OLD_IMAGE] = "OldImage"};
    bool is_first = true;
    for (unsigned i = SL_KEYS; i <= SL_OLD_IMAGE; i++) {
        size_t before = f->out->len;
        bool had_any = *is_any;
        if (!when->plain[i])
            continue;
        f->image = (enum sl_image)i;
        if (is_first)
            begin_member(f->out, is_any);
        sl_buffer_printf(f->out, "%s\"%s\":", is_first ? "\"dynamodb\":{" : ",", names[i]);
        if (add_members(f, when->plain[i], 0)) {
            is_first = false;
        } else {
            f->out->len = before;
            *is_any = had_any;
        }
    }
    sl_buffer_add_str(f->out, is_first ? "" : "}");
}

enum sl_when_nearest sl_when_filter(const struct sl_when *when, struct sl_buffer *out)
{
    struct filter f = {.out = out, .is_exact = !when->changed && !when->sets && !when->or_inferred};
    bool is_any = false;
    if (when->events || when->expired) {
        begin_member(out, &is_any);
        add_events(out, when->possible);
    }
    if (when->expired && !when->or_inferred) {
        begin_member(out, &is_any);
        sl_buffer_add_str(
            out, "\"userIdentity\":{\"type\":[\"Service\"],\"principalId\":[\"dynamodb.amazonaws.com\"]}");
    }
    add_images(&f, when, &is_any);
    sl_buffer_add_str(out, is_any ? "}" : "");
    return !is_any ? SL_WHEN_NO_FILTER : f.is_exact ? SL_WHEN_FILTER_EXACT : SL_WHEN_FILTER_WIDER;
}
