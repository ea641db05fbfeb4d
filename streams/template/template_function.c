/* Functions of templates: their table, and chains of them, read and run. */
#include "base/array.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/nearest.h"
#include "base/number.h"
#include "streams/template/template_private.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- functions that look at types ---- */

struct sl_span template_datum_text(const struct template_datum *d, struct sl_arena *scratch)
{
    if (d->text.ptr || d->type == SL_NONE)
        return d->text;
    return d->type == SL_BOOL ? d->value.raw : sl_value_text(d->value, scratch);
}

static bool is_number(struct sl_span text)
{
    struct sl_number number;
    return !sl_number_parse(text, &number);
}

static struct sl_span normal_number(const struct sl_number *number, struct sl_arena *scratch)
{
    char *text = sl_arena_alloc(scratch, SL_NUMBER_TEXT);
    return sl_span(text, sl_number_text(number, text));
}

static enum sl_status number_read(const struct template_reader *r, struct template_call *call,
                                  const struct template_call *before)
{
    (void)r;
    (void)before;
    call->makes = SL_N;
    return SL_OK;
}

static void number_of(const struct template_call *call, struct template_datum *d, struct sl_arena *scratch)
{
    struct sl_number number;
    bool may_be = d->type == SL_S || d->type == SL_N;
    struct sl_span text = may_be ? template_datum_text(d, scratch) : sl_span(NULL, 0);
    (void)call;
    *d = (struct template_datum){.type = SL_NONE};
    if (text.ptr && !sl_number_parse(text, &number))
        *d = (struct template_datum){.type = SL_N, .text = normal_number(&number, scratch)};
}

/* After a number, a number stands in for one that is missing. */
static enum sl_status default_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before)
{
    struct sl_number number;
    if (!before || before->makes != SL_N || !is_number(call->args[0]))
        return SL_OK;
    call->makes = SL_N;
    if (!sl_number_parse(call->args[0], &number))
        call->args[0] = normal_number(&number, r->arena);
    return SL_OK;
}

static void default_of(const struct template_call *call, struct template_datum *d, struct sl_arena *scratch)
{
    if (!template_datum_text(d, scratch).ptr)
        *d = (struct template_datum){.type = call->makes, .text = call->args[0]};
}

static bool is_json(const struct template_call *call);

static enum sl_status json_read(const struct template_reader *r, struct template_call *call,
                                const struct template_call *before)
{
    if (before && before->function->of_datum == default_of)
        return template_fail(r, call->at, "json: write default after it, {a|json|default:null}");
    return SL_OK;
}

static void json_of(const struct template_call *call, struct template_datum *d, struct sl_arena *scratch)
{
    struct sl_buffer out;
    struct sl_value value = d->value;
    (void)call;
    if (d->type == SL_NONE)
        return;
    sl_buffer_init_in(&out, scratch, SIZE_MAX / 4);
    if (!d->text.ptr)
        sl_value_plain(value, &out);
    else if (d->type == SL_N)
        sl_buffer_add_span(&out, d->text);
    else
        sl_json_add_string(&out, d->text);
    *d = (struct template_datum){.type = SL_S, .text = sl_buffer_span(&out)};
}

/* ---- the table: docs/WHEN.md says what each of them makes ---- */

static const struct template_function functions[] = {
    {"after", "after:TEXT", 1, 1, template_after_read, template_after, NULL},
    {"date", "date:FORM or date:FORM:OFFSET", 1, 2, template_date_read, NULL, template_date},
    {"default", "default:TEXT", 1, 1, default_read, NULL, default_of},
    {"hmac", "hmac:NAME", 1, 1, template_hmac_read, template_hmac, NULL},
    {"json", "json", 0, 0, json_read, NULL, json_of},
    {"key", "key", 0, 0, NULL, template_key, NULL},
    {"lower", "lower", 0, 0, NULL, template_lower, NULL},
    {"number", "number", 0, 0, number_read, NULL, number_of},
    {"sha256", "sha256", 0, 0, template_sha256_read, template_sha256, NULL},
    {"slice", "slice:FROM or slice:FROM:TO", 1, 2, template_slice_read, template_slice, NULL},
    {"split", "split:SEPARATOR:N", 2, 2, template_split_read, template_split, NULL},
    {"trim", "trim", 0, 0, NULL, template_trim, NULL},
    {"upper", "upper", 0, 0, NULL, template_upper, NULL},
};
#define N_FUNCTIONS SL_COUNT(functions)

static bool is_json(const struct template_call *call)
{
    return call->function->of_datum == json_of;
}

bool template_chain_ends_with_key(const struct template_chain *chain)
{
    return chain->n > 0 && chain->calls[chain->n - 1].function->of_text == template_key;
}

/* ---- reading ---- */

enum sl_status template_fail(const struct template_reader *r, const char *at, const char *format, ...)
{
    char text[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return sl_fail_at(r->error, SL_REJECT, "InvalidTemplate", (size_t)(at - r->text.ptr), "%s", text);
}

bool template_integer(struct sl_span text, int64_t *out)
{
    bool is_negative = text.len > 1 && text.ptr[0] == '-';
    struct sl_span digits = sl_span_from(text, is_negative);
    *out = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return false;
        *out = *out * 10 + (digits.ptr[i] - '0');
        if (i == 6)
            return false;
    }
    *out = is_negative ? -*out : *out;
    return digits.len > 0;
}

/* Of a name in an error so much is shown. */
#define SHOWN_BYTES 40

static enum sl_status unknown(const struct template_reader *r, struct sl_span name)
{
    struct sl_nearest search = sl_nearest_begin(name);
    struct sl_span shown = sl_span(name.ptr, name.len < SHOWN_BYTES ? name.len : SHOWN_BYTES);
    char known[160] = "";
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        sl_nearest_consider(&search, functions[i].name);
        sl_nearest_list(known, sizeof(known), functions[i].name);
    }
    return template_fail(r, name.ptr,
                         "\"%.*s\" is not a function%s%s%s; there are %s; write an attribute's name that "
                         "holds '|' in backquotes, {`a|b`}",
                         SL_ARG(shown), search.best ? "; did you mean \"" : "",
                         search.best ? search.best : "", search.best ? "\"?" : "", known);
}

static const struct template_function *function_named(struct sl_span name)
{
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        if (sl_span_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

/* An argument in backquotes, from the first one on; a doubled one within is one. NULL: it does not end there.
 */
static const char *read_quoted(const struct template_reader *r, const char *p, const char *end,
                               struct sl_span *out)
{
    char *text = sl_arena_alloc(r->arena, (size_t)(end - p));
    size_t n = 0;
    for (p++; p < end; p++) {
        if (*p == '`' && (++p == end || *p != '`')) {
            *out = sl_span(text, n);
            return p;
        }
        text[n++] = *p;
    }
    return NULL;
}

/* The argument from the byte after its ':' on. The last one that a function takes may hold ':'. */
static const char *read_argument(const struct template_reader *r, struct template_call *call, const char *p,
                                 const char *end)
{
    struct sl_span *out = &call->args[call->n_args++];
    const char *begin = p;
    if (p < end && *p == '`') {
        p = read_quoted(r, p, end, out);
    } else {
        bool is_last = call->n_args == call->function->most;
        while (p < end && *p != '|' && *p != '`' && (*p != ':' || is_last))
            p++;
        *out = sl_span(begin, (size_t)(p - begin));
    }
    if (!p || (p < end && *p != '|' && *p != ':')) {
        (void)template_fail(r, begin,
                            "an argument with a backquote in it is written in backquotes, and the "
                            "backquote doubled");
        return NULL;
    }
    if (out->len <= SL_TEMPLATE_ARGUMENT_BYTES)
        return p;
    (void)template_fail(r, begin, "the argument has %zu bytes; an argument has %d at most", out->len,
                        SL_TEMPLATE_ARGUMENT_BYTES);
    return NULL;
}

static enum sl_status check_call(const struct template_reader *r, struct template_call *call,
                                 const struct template_call *before)
{
    const struct template_function *f = call->function;
    call->makes = SL_S;
    if (call->n_args < f->least)
        return template_fail(r, call->at, "%s: too few arguments; expected %s", f->name, f->usage);
    return f->read ? f->read(r, call, before) : SL_OK;
}

/* One function from `*p` on, which moves to the '|' after it or to the end. */
static enum sl_status read_call(const struct template_reader *r, const char **p, const char *end,
                                struct template_call *call, const struct template_call *before)
{
    const char *begin = *p, *at = begin;
    while (at < end && *at != ':' && *at != '|')
        at++;
    struct sl_span name = sl_span(begin, (size_t)(at - begin));
    *call = (struct template_call){.function = function_named(name), .at = begin};
    if (!call->function)
        return unknown(r, name);
    while (at < end && *at == ':') {
        if (call->n_args == call->function->most)
            return template_fail(r, at, "%s: too many arguments; expected %s", call->function->name,
                                 call->function->usage);
        at = read_argument(r, call, at + 1, end);
        if (!at)
            return SL_REJECT;
    }
    *p = at;
    return check_call(r, call, before);
}

/* More of them would double their quotes each time. */
static bool has_two_json(const struct template_chain *chain)
{
    size_t n = 0;
    for (size_t i = 0; i < chain->n; i++)
        n += is_json(&chain->calls[i]);
    return n > 1;
}

enum sl_status template_chain_read(const struct template_reader *r, struct sl_span text,
                                   struct template_chain **out)
{
    struct template_chain *chain = sl_arena_zalloc(r->arena, sizeof(*chain));
    const char *p = text.ptr, *end = sl_span_end(text);
    *out = chain;
    for (;; p++) {
        if (chain->n == SL_TEMPLATE_FUNCTIONS)
            return template_fail(r, p, "a place has %d functions at most", SL_TEMPLATE_FUNCTIONS);
        struct template_call *call = &chain->calls[chain->n++];
        const char *at = p;
        enum sl_status status = read_call(r, &p, end, call, chain->n > 1 ? call - 1 : NULL);
        if (status != SL_OK)
            return status;
        if (has_two_json(chain))
            return template_fail(r, at, "json: a place can have it once");
        if (p == end)
            return SL_OK;
    }
}

bool template_chain_makes_json(const struct template_chain *chain)
{
    size_t n = chain->n;
    for (; n > 0 && chain->calls[n - 1].function->of_datum == default_of; n--)
        if (sl_json_check(chain->calls[n - 1].args[0], NULL) != SL_OK)
            return false;
    return n > 0 && is_json(&chain->calls[n - 1]);
}

/* ---- running ---- */

void template_chain_run(const struct template_chain *chain, struct template_datum *d,
                        struct sl_arena *scratch)
{
    for (size_t i = 0; i < chain->n; i++) {
        const struct template_call *call = &chain->calls[i];
        if (call->function->of_datum) {
            call->function->of_datum(call, d, scratch);
            continue;
        }
        struct sl_span text = template_datum_text(d, scratch);
        if (text.ptr)
            text = call->function->of_text(call, text, scratch);
        *d = (struct template_datum){.type = text.ptr ? SL_S : SL_NONE, .text = text};
    }
}
