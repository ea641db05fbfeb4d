/* Tests of single values: what the operators of a pattern mean. */
#include "streams/when/when_private.h"

#include "base/fold.h"
#include "base/json.h"

#include <arpa/inet.h>

/* '*' is any run of characters; a backslash takes the next character for itself. Going back to the last
 * star is enough: it can take whatever an earlier one could. */
static bool is_wildcard_match(struct sl_span text, struct sl_span pattern)
{
    size_t t = 0, p = 0, star = SIZE_MAX, star_text = 0;
    while (t < text.len || p < pattern.len) {
        size_t literal = p + (p < pattern.len && pattern.ptr[p] == '\\');
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            star_text = t;
        } else if (t < text.len && literal < pattern.len && pattern.ptr[literal] == text.ptr[t]) {
            p = literal + 1;
            t++;
        } else if (star != SIZE_MAX && star_text < text.len) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    return true;
}

static bool is_in_network(struct sl_span text, const struct sl_when_network *network)
{
    char name[INET6_ADDRSTRLEN + 1];
    unsigned char address[16];
    if (text.len >= sizeof(name) || memchr(text.ptr ? text.ptr : "", 0, text.len))
        return false;
    memcpy(name, text.ptr ? text.ptr : "", text.len);
    name[text.len] = '\0';
    if (inet_pton(network->family, name, address) != 1)
        return false;
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    if (memcmp(address, network->address, whole) != 0)
        return false;
    return rest == 0 || ((address[whole] ^ network->address[whole]) >> (8 - rest)) == 0;
}

static bool is_in_bounds(struct sl_span text, const struct sl_when_bounds *bounds)
{
    struct sl_number number;
    if (sl_number_parse(text, &number))
        return false;
    int low = bounds->low ? sl_number_compare(&number, bounds->low) : 1;
    int high = bounds->high ? sl_number_compare(&number, bounds->high) : -1;
    return (bounds->low_open ? low > 0 : low >= 0) && (bounds->high_open ? high < 0 : high <= 0);
}

static size_t skip_digits(struct sl_span text, size_t i)
{
    while (i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9')
        i++;
    return i;
}

/* Nearly all numbers are in normal form, in which equal ones have equal texts. (That of zero has no sign.) */
static bool is_normal(struct sl_span text)
{
    size_t first = text.len && text.ptr[0] == '-', i = skip_digits(text, first);
    bool has_zero = i > first && text.ptr[first] == '0', is_whole = i == text.len;
    if (i == first || (has_zero && i - first > 1) || (is_whole && has_zero && first))
        return false;
    if (is_whole)
        return true;
    return text.ptr[i] == '.' && i + 1 < text.len && skip_digits(text, i + 1) == text.len &&
           text.ptr[text.len - 1] != '0';
}

static bool is_number(struct sl_span text, const struct sl_when_bounds *bounds)
{
    return is_normal(text) ? sl_span_eq(text, bounds->normal) : is_in_bounds(text, bounds);
}

static bool is_equal(const struct sl_when_test *test, struct sl_span text)
{
    return sl_span_eq(text, test->text) || (test->bounds && is_number(text, test->bounds)) ||
           (test->network && is_in_network(text, test->network));
}

/* The operators for which only strings count. */
static bool is_text_match(const struct sl_when_test *test, struct sl_span text)
{
    switch (test->op) {
    case SL_WHEN_EQUALS_FOLD:
        return sl_fold_eq(text, test->text);
    case SL_WHEN_PREFIX:
        return sl_span_starts(text, test->text);
    case SL_WHEN_PREFIX_FOLD:
        return sl_fold_starts(text, test->text);
    case SL_WHEN_SUFFIX:
        return sl_span_ends(text, test->text);
    case SL_WHEN_SUFFIX_FOLD:
        return sl_fold_ends(text, test->text);
    case SL_WHEN_WILDCARD:
        return is_wildcard_match(text, test->text);
    default:
        return is_in_network(text, test->network);
    }
}

/* `value` is unescaped. A string is never equal to a number here: {"N":"101"} is a string. */
static bool is_match(const struct sl_when_test *test, struct sl_when_value value, struct sl_arena *scratch)
{
    switch (test->op) {
    case SL_WHEN_EXISTS:
        return true;
    case SL_WHEN_TYPE:
        return value.type == test->type;
    case SL_WHEN_ANYTHING_BUT:
        return value.kind != SL_WHEN_WHOLE && !sl_when_test_value(test->inner, test->n_inner, value, scratch);
    case SL_WHEN_NUMERIC:
        return value.kind == SL_WHEN_NUMBER && is_in_bounds(value.text, test->bounds);
    case SL_WHEN_EQUALS:
        return value.kind == test->kind && is_equal(test, value.text);
    default:
        return value.kind == SL_WHEN_STRING && is_text_match(test, value.text);
    }
}

bool sl_when_test_value(const struct sl_when_test *tests, size_t n, struct sl_when_value value,
                        struct sl_arena *scratch)
{
    if (value.escaped) {
        value.text = sl_json_unescape(value.text, scratch);
        value.escaped = false;
    }
    for (size_t i = 0; i < n; i++)
        if (is_match(&tests[i], value, scratch))
            return true;
    return false;
}
