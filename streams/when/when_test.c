/* From a leaf's list, ["SHIPPED", {"prefix": "RE"}], to its tests: of a pattern, and of a condition on an
 * item's plain values, whose operators are nearly the same. */
#include "base/array.h"
#include "streams/when/when_private.h"

#include "base/base64.h"
#include "base/fold.h"
#include "base/json.h"
#include "base/nearest.h"
#include "streams/value.h"

#include <arpa/inet.h>

typedef enum sl_status (*operand_fn)(struct sl_when_parse *parse, struct sl_span operand,
                                     struct sl_when_test *out);

static enum sl_status affix_inside(struct sl_when_parse *parse, struct sl_span operand,
                                   struct sl_when_test *out);
static enum sl_status anything_but(struct sl_when_parse *parse, struct sl_span operand,
                                   struct sl_when_test *out);
static enum sl_status base64(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status cidr(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status equals_ignore_case(struct sl_when_parse *parse, struct sl_span operand,
                                         struct sl_when_test *out);
static enum sl_status exactly(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status exists(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status numeric(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status prefix(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status suffix(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status type(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);
static enum sl_status wildcard(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out);

/* Where an operator is one. */
enum where { IN_BOTH, IN_PATTERNS, IN_PLAIN };

static const struct {
    const char *name;
    operand_fn compile;
    operand_fn inside;  /* of {"anything-but": {"prefix": ...}}; NULL: not allowed there */
    enum sl_when_op op; /* what `inside` makes */
    enum where where;
} operators[] = {
    {"anything-but", anything_but, NULL, SL_WHEN_ANYTHING_BUT, IN_BOTH},
    {"base64", base64, base64, SL_WHEN_EQUALS, IN_PLAIN},
    {"cidr", cidr, NULL, SL_WHEN_CIDR, IN_BOTH},
    {"equals-ignore-case", equals_ignore_case, equals_ignore_case, SL_WHEN_EQUALS_FOLD, IN_BOTH},
    {"exactly", exactly, NULL, SL_WHEN_EQUALS, IN_PATTERNS},
    {"exists", exists, NULL, SL_WHEN_EXISTS, IN_BOTH},
    {"numeric", numeric, NULL, SL_WHEN_NUMERIC, IN_BOTH},
    {"prefix", prefix, affix_inside, SL_WHEN_PREFIX, IN_BOTH},
    {"suffix", suffix, affix_inside, SL_WHEN_SUFFIX, IN_BOTH},
    {"type", type, NULL, SL_WHEN_TYPE, IN_PLAIN},
    {"wildcard", wildcard, wildcard, SL_WHEN_WILDCARD, IN_BOTH},
};

#define N_OPERATORS SL_COUNT(operators)

static bool is_operator(size_t i, bool is_plain)
{
    return operators[i].where == IN_BOTH || (operators[i].where == IN_PLAIN) == is_plain;
}

/* Its place in the table; N_OPERATORS: it is not an operator. */
static size_t find_operator(struct sl_span name, bool is_plain)
{
    size_t i = 0;
    while (i < N_OPERATORS &&
           !(is_operator(i, is_plain) && sl_json_text_is(name, sl_span_str(operators[i].name))))
        i++;
    return i;
}

/* The list of event-ruler 2.1. */
bool sl_when_is_reserved(struct sl_span name)
{
    static const char *const others[] = {"=",
                                         "<",
                                         "<=",
                                         ">",
                                         ">=",
                                         "regex",
                                         "not-wildcard",
                                         "not-equals-ignore-case",
                                         "date-after",
                                         "date-on-or-after",
                                         "date-before",
                                         "date-on-or-before",
                                         "in-date-range",
                                         "ip-address-in-range",
                                         "ip-address-not-in-range"};
    for (size_t i = 0; i < SL_COUNT(others); i++)
        if (sl_json_text_is(name, sl_span_str(others[i])))
            return true;
    return find_operator(name, false) < N_OPERATORS;
}

/* ---- literals ---- */

static enum sl_when_kind kind_of(struct sl_span json)
{
    if (json.ptr[0] == '"')
        return SL_WHEN_STRING;
    return json.ptr[0] == '-' || (json.ptr[0] >= '0' && json.ptr[0] <= '9') ? SL_WHEN_NUMBER : SL_WHEN_WORD;
}

static bool is_container(struct sl_span json)
{
    return json.ptr[0] == '{' || json.ptr[0] == '[';
}

/* The text of a whole address; NULL: it is something else. */
static const struct sl_when_network *read_address(struct sl_arena *arena, struct sl_span text)
{
    char name[INET6_ADDRSTRLEN + 1];
    struct sl_when_network network = {.family = AF_INET, .bits = 32};
    if (text.len == 0 || text.len >= sizeof(name) || memchr(text.ptr, 0, text.len))
        return NULL;
    memcpy(name, text.ptr, text.len);
    name[text.len] = '\0';
    if (strchr(name, ':'))
        network = (struct sl_when_network){.family = AF_INET6, .bits = 128};
    if (inet_pton(network.family, name, network.address) != 1)
        return NULL;
    return memcpy(sl_arena_alloc(arena, sizeof(network)), &network, sizeof(network));
}

/* Both bounds of an interval are this number. NULL: its size is beyond what is compared by value. */
static const struct sl_when_bounds *read_number(struct sl_arena *arena, struct sl_span number)
{
    struct sl_number *value = sl_arena_alloc(arena, sizeof(*value));
    if (sl_number_parse(number, value))
        return NULL;
    struct sl_when_bounds *bounds = sl_arena_zalloc(arena, sizeof(*bounds));
    bounds->low = bounds->high = value;
    char *normal = sl_arena_alloc(arena, SL_NUMBER_TEXT);
    bounds->normal = sl_span(normal, sl_number_text(value, normal));
    return bounds;
}

static enum sl_status literal(const struct sl_when_parse *parse, struct sl_span json,
                              struct sl_when_test *out)
{
    *out = (struct sl_when_test){.op = SL_WHEN_EQUALS, .kind = kind_of(json)};
    if (out->kind == SL_WHEN_STRING) {
        out->text = sl_when_string(parse, json);
        return SL_OK;
    }
    out->text = sl_span(sl_arena_copy(parse->arena, json), json.len);
    if (out->kind != SL_WHEN_NUMBER)
        return SL_OK;
    out->bounds = read_number(parse->arena, out->text);
    return out->bounds || !parse->is_plain
               ? SL_OK
               : sl_when_fail(parse, json,
                              "not a DynamoDB number: it has at most 38 digits, and is zero or "
                              "from 1E-130 to below 1E+126");
}

static enum sl_status text_operand(struct sl_when_parse *parse, struct sl_span operand, enum sl_when_op op,
                                   struct sl_when_test *out)
{
    if (operand.ptr[0] != '"')
        return sl_when_fail(parse, operand, "a string is expected");
    *out = (struct sl_when_test){.op = op, .text = sl_when_string(parse, operand)};
    return SL_OK;
}

static enum sl_status fold_operand(struct sl_when_parse *parse, struct sl_span operand, enum sl_when_op op,
                                   struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, op, out);
    if (status != SL_OK)
        return status;
    char *folded = sl_arena_alloc(parse->arena, SL_FOLD_ROOM(out->text.len));
    out->text = sl_span(folded, sl_fold_text(out->text, folded));
    return SL_OK;
}

static enum sl_status exactly(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, SL_WHEN_EQUALS, out);
    out->kind = SL_WHEN_STRING;
    return status;
}

static enum sl_status equals_ignore_case(struct sl_when_parse *parse, struct sl_span operand,
                                         struct sl_when_test *out)
{
    return fold_operand(parse, operand, SL_WHEN_EQUALS_FOLD, out);
}

/* {"prefix": "a"} or {"prefix": {"equals-ignore-case": "a"}}. */
static enum sl_status affix(struct sl_when_parse *parse, struct sl_span operand, enum sl_when_op op,
                            enum sl_when_op folded, struct sl_when_test *out)
{
    if (operand.ptr[0] != '{')
        return text_operand(parse, operand, op, out);
    struct sl_json_walk c = sl_json_walk(operand);
    struct sl_span name, value, more;
    if (!sl_json_walk_next(&c, &name, &value) || !sl_json_text_is(name, SL_LIT("equals-ignore-case")) ||
        sl_json_walk_next(&c, &name, &more))
        return sl_when_fail(parse, operand, "a string or {\"equals-ignore-case\": string} is expected");
    return fold_operand(parse, value, folded, out);
}

static enum sl_status prefix(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    return affix(parse, operand, SL_WHEN_PREFIX, SL_WHEN_PREFIX_FOLD, out);
}

static enum sl_status suffix(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    return affix(parse, operand, SL_WHEN_SUFFIX, SL_WHEN_SUFFIX_FOLD, out);
}

/* Within anything-but: the operator's table says which of the two it is. */
static enum sl_status affix_inside(struct sl_when_parse *parse, struct sl_span operand,
                                   struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, SL_WHEN_PREFIX, out);
    if (status == SL_OK && out->text.len == 0)
        return sl_when_fail(parse, operand,
                            "an empty string is refused here; every text begins and ends with it");
    return status;
}

static enum sl_status wildcard(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, SL_WHEN_WILDCARD, out);
    for (size_t i = 0; status == SL_OK && i < out->text.len; i++) {
        char c = out->text.ptr[i], next = i + 1 < out->text.len ? out->text.ptr[i + 1] : '\0';
        if (c == '*' && next == '*')
            return sl_when_fail(parse, operand, "two '*' in a row; one is enough");
        if (c == '\\' && next != '*' && next != '\\')
            return sl_when_fail(parse, operand, "only '*' or a backslash may follow a backslash");
        i += c == '\\';
    }
    return status;
}

/* A B's text is base64 in its one form, so equal bytes are equal texts. */
static enum sl_status base64(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, SL_WHEN_EQUALS, out);
    if (status == SL_OK && !sl_base64_is_valid(out->text))
        return sl_when_fail(parse, operand, "padded base64 is expected, as in \"AAEC\"");
    out->kind = SL_WHEN_BINARY;
    return status;
}

static enum sl_status type(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, SL_WHEN_TYPE, out);
    if (status != SL_OK)
        return status;
    out->type = sl_value_tag(out->text.ptr, out->text.len);
    return out->type != SL_NONE
               ? SL_OK
               : sl_when_fail(parse, operand,
                              "not a type; use \"S\", \"N\", \"B\", \"BOOL\", \"NULL\", \"SS\", \"NS\", "
                              "\"BS\", \"L\" or \"M\"");
}

static enum sl_status exists(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    if (!sl_span_is(operand, "true") && !sl_span_is(operand, "false"))
        return sl_when_fail(parse, operand, "true or false is expected");
    *out = (struct sl_when_test){.op = SL_WHEN_EXISTS};
    return SL_OK;
}

/* ---- networks ---- */

static bool read_bits(const char *text, unsigned most, unsigned *bits)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 3 || text[n])
        return false;
    for (*bits = 0; *text; text++)
        *bits = *bits * 10 + (unsigned)(*text - '0');
    return *bits < most;
}

static enum sl_status cidr(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    enum sl_status status = text_operand(parse, operand, SL_WHEN_CIDR, out);
    if (status != SL_OK)
        return status;
    struct sl_when_network *network = sl_arena_zalloc(parse->arena, sizeof(*network));
    char *text = sl_arena_copy(parse->arena, out->text), *slash = strchr(text, '/');
    network->family = strchr(text, ':') ? AF_INET6 : AF_INET;
    unsigned most = network->family == AF_INET6 ? 128 : 32;
    if (slash)
        *slash = '\0';
    if (!slash || strlen(text) + strlen(slash + 1) + 1 != out->text.len ||
        !read_bits(slash + 1, most, &network->bits) ||
        inet_pton(network->family, text, network->address) != 1)
        return sl_when_fail(
            parse, operand,
            "a network such as 10.0.0.0/24 or 2001:db8::/32 is expected, with less than 32 or "
            "128 bits; a single address is written as a string, without the operator");
    out->network = network;
    return SL_OK;
}

/* ---- numeric ---- */

static enum sl_status numeric_shape(const struct sl_when_parse *parse, struct sl_span at)
{
    return sl_when_fail(parse, at,
                        "comparisons such as [\"=\", 5], [\">\", 0] or [\">=\", 0, \"<\", 100] are expected");
}

/* One comparison, `["<", 5` of the list. */
static enum sl_status comparison(struct sl_when_parse *parse, struct sl_json_walk *c, struct sl_span list,
                                 struct sl_when_bounds *bounds)
{
    struct sl_span op, number;
    if (!sl_json_walk_next(c, NULL, &op) || !sl_json_walk_next(c, NULL, &number) || op.ptr[0] != '"')
        return numeric_shape(parse, list);
    struct sl_number *value = sl_arena_alloc(parse->arena, sizeof(*value));
    if (kind_of(number) != SL_WHEN_NUMBER || sl_number_parse(number, value))
        return sl_when_fail(parse, number, "a number of at most 38 digits is expected");
    op = sl_when_string(parse, op);
    bool is_equal = sl_span_is(op, "="), is_open = op.len == 1 && !is_equal;
    bool is_low = op.len && op.ptr[0] == '>', is_high = op.len && op.ptr[0] == '<';
    if (!is_equal && !is_low && !is_high)
        return numeric_shape(parse, list);
    if (op.len > 2 || (op.len == 2 && (is_equal || op.ptr[1] != '=')))
        return numeric_shape(parse, list);
    /* A lower bound comes first, an upper one last, as EventBridge wants it. */
    if (bounds->high || (bounds->low && !is_high))
        return numeric_shape(parse, list);
    if (!is_high) {
        bounds->low = value;
        bounds->low_open = is_open;
    }
    if (!is_low) {
        bounds->high = value;
        bounds->high_open = is_open;
    }
    return SL_OK;
}

static enum sl_status numeric(struct sl_when_parse *parse, struct sl_span operand, struct sl_when_test *out)
{
    if (operand.ptr[0] != '[')
        return numeric_shape(parse, operand);
    struct sl_when_bounds *bounds = sl_arena_zalloc(parse->arena, sizeof(*bounds));
    struct sl_json_walk c = sl_json_walk(operand), rest;
    struct sl_span more;
    do {
        enum sl_status status = comparison(parse, &c, operand, bounds);
        if (status != SL_OK)
            return status;
        rest = c;
    } while (sl_json_walk_next(&rest, NULL, &more));
    if (bounds->low && bounds->high && bounds->low != bounds->high &&
        sl_number_compare(bounds->low, bounds->high) >= 0)
        return sl_when_fail(parse, operand, "the lower bound is not below the upper one");
    *out = (struct sl_when_test){.op = SL_WHEN_NUMERIC, .bounds = bounds};
    return SL_OK;
}

/* ---- anything-but ---- */

static enum sl_status plain_value(struct sl_when_parse *parse, struct sl_span operand,
                                  struct sl_when_test *out)
{
    if (is_container(operand) || kind_of(operand) == SL_WHEN_WORD)
        return sl_when_fail(parse, operand, "strings or numbers are expected");
    return literal(parse, operand, out);
}

static enum sl_status inner_test(struct sl_when_parse *parse, struct sl_span operand, size_t operator_index,
                                 struct sl_when_test *out)
{
    if (operator_index == N_OPERATORS)
        return plain_value(parse, operand, out);
    enum sl_status status = operators[operator_index].inside(parse, operand, out);
    out->op = operators[operator_index].op;
    return status;
}

/* The operand as tests, none of which may pass: one or a list, of plain values or for the operator. */
static enum sl_status none_of(struct sl_when_parse *parse, struct sl_span operand, size_t operator_index,
                              struct sl_when_test *out)
{
    struct sl_json_walk c = sl_json_walk(operand), counted = c;
    struct sl_span element = operand;
    size_t n = operand.ptr[0] != '[';
    while (operand.ptr[0] == '[' && sl_json_walk_next(&counted, NULL, &element))
        n++;
    if (n == 0)
        return sl_when_fail(parse, operand, "the list is empty");
    struct sl_when_test *inner = sl_arena_zalloc(parse->arena, n * sizeof(*inner));
    element = operand;
    for (size_t i = 0; i < n; i++) {
        if (operand.ptr[0] == '[')
            sl_json_walk_next(&c, NULL, &element);
        enum sl_status status = inner_test(parse, element, operator_index, &inner[i]);
        if (status != SL_OK)
            return status;
        if (inner[i].kind != inner[0].kind)
            return sl_when_fail(parse, element, "a list holds strings or numbers, not both");
    }
    *out = (struct sl_when_test){.op = SL_WHEN_ANYTHING_BUT, .inner = inner, .n_inner = n};
    return SL_OK;
}

static enum sl_status anything_but(struct sl_when_parse *parse, struct sl_span operand,
                                   struct sl_when_test *out)
{
    if (operand.ptr[0] != '{')
        return none_of(parse, operand, N_OPERATORS, out);
    struct sl_json_walk c = sl_json_walk(operand);
    struct sl_span name, value, more;
    size_t i = sl_json_walk_next(&c, &name, &value) ? find_operator(name, parse->is_plain) : N_OPERATORS;
    if (i == N_OPERATORS || !operators[i].inside || sl_json_walk_next(&c, &name, &more))
        return sl_when_fail(parse, operand,
                            "one of prefix, suffix, equals-ignore-case, wildcard%s is expected",
                            parse->is_plain ? ", base64" : "");
    return none_of(parse, value, i, out);
}

/* ---- the list ---- */

/* What other languages call it: DynamoDB's expressions, SQL, GraphQL filters. */
static const char *translated(struct sl_span name)
{
    static const char *const others[][2] = {
        {"begins_with", "prefix"},
        {"beginsWith", "prefix"},
        {"starts_with", "prefix"},
        {"startsWith", "prefix"},
        {"ends_with", "suffix"},
        {"endsWith", "suffix"},
        {"contains", "wildcard"},
        {"like", "wildcard"},
        {"matches", "wildcard"},
        {"between", "numeric"},
        {"gt", "numeric"},
        {"ge", "numeric"},
        {"gte", "numeric"},
        {"lt", "numeric"},
        {"le", "numeric"},
        {"lte", "numeric"},
        {">", "numeric"},
        {"<", "numeric"},
        {">=", "numeric"},
        {"<=", "numeric"},
        {"not", "anything-but"},
        {"ne", "anything-but"},
        {"neq", "anything-but"},
        {"<>", "anything-but"},
        {"!=", "anything-but"},
        {"not_in", "anything-but"},
        {"attribute_exists", "exists"},
        {"attribute_not_exists", "exists"},
        {"attribute_type", "type"},
    };
    for (size_t i = 0; i < SL_COUNT(others); i++)
        if (sl_json_text_is(name, sl_span_str(others[i][0])))
            return others[i][1];
    return NULL;
}

static enum sl_status not_an_operator(const struct sl_when_parse *parse, struct sl_span object,
                                      struct sl_span name)
{
    struct sl_nearest near = sl_nearest_begin(name);
    for (size_t i = 0; i < N_OPERATORS; i++)
        if (is_operator(i, parse->is_plain))
            sl_nearest_consider(&near, operators[i].name);
    if (translated(name))
        near.best = translated(name);
    if (parse->or_is_field)
        return sl_when_fail(
            parse, object,
            "not an operator. Here, \"$or\" is the name of a field: it is an operator only if each one in "
            "the "
            "pattern is a list of two or more objects in which no field has the name of an operator");
    return sl_when_fail(parse, object,
                        "not an operator%s%s%s; use anything-but,%s cidr, equals-ignore-case,%s "
                        "exists, numeric, prefix, suffix%s or wildcard",
                        near.best ? " (did you mean \"" : "", near.best ? near.best : "",
                        near.best ? "\"?)" : "", parse->is_plain ? " base64," : "",
                        parse->is_plain ? "" : " exactly,", parse->is_plain ? ", type" : "");
}

static enum sl_status operator_test(struct sl_when_parse *parse, struct sl_span object,
                                    struct sl_when_test *out, bool *absent_ok)
{
    struct sl_json_walk c = sl_json_walk(object);
    struct sl_span name, value, more;
    if (!sl_json_walk_next(&c, &name, &value) || sl_json_walk_next(&c, &more, &more))
        return sl_when_fail(parse, object,
                            "an operator must be alone in its braces, as in {\"prefix\": \"a\"}");
    size_t i = find_operator(name, parse->is_plain);
    if (i == N_OPERATORS)
        return not_an_operator(parse, object, name);
    struct sl_when_place place = {parse->place, name, 0};
    parse->place = &place;
    enum sl_status status = operators[i].compile(parse, value, out);
    parse->place = place.parent;
    *absent_ok = out->op == SL_WHEN_EXISTS && sl_span_is(value, "false");
    return status;
}

/* In a pattern's list itself, a text that is an address stands for it in every spelling. (Within anything-but
 * it does not: the engine compares texts there.) */
static enum sl_status list_literal(const struct sl_when_parse *parse, struct sl_span json,
                                   struct sl_when_test *out)
{
    enum sl_status status = literal(parse, json, out);
    if (out->kind == SL_WHEN_STRING && !parse->is_plain)
        out->network = read_address(parse->arena, out->text);
    return status;
}

enum sl_status sl_when_compile_tests(struct sl_when_parse *parse, struct sl_span list,
                                     const struct sl_when_test **tests, size_t *n, bool *absent_ok)
{
    struct sl_json_walk c = sl_json_walk(list), counted = c;
    struct sl_span element;
    size_t most = 0, made = 0;
    while (sl_json_walk_next(&counted, NULL, &element))
        most++;
    if (most == 0)
        return sl_when_fail(parse, list, "the list is empty and would match nothing");
    struct sl_when_test *out = sl_arena_zalloc(parse->arena, most * sizeof(*out));
    *absent_ok = false;
    for (size_t i = 0; sl_json_walk_next(&c, NULL, &element); i++) {
        struct sl_when_place place = {parse->place, {0}, i};
        enum sl_status status = SL_OK;
        bool is_absent = false;
        parse->place = &place;
        if (element.ptr[0] == '[')
            status = sl_when_fail(parse, element, "a list inside a list");
        else if (element.ptr[0] == '{')
            status = operator_test(parse, element, &out[made], &is_absent);
        else
            status = list_literal(parse, element, &out[made]);
        parse->place = place.parent;
        if (status != SL_OK)
            return status;
        made += !is_absent;
        *absent_ok |= is_absent;
    }
    *tests = out;
    *n = made;
    return SL_OK;
}
