/* Reads a plan of faults, and decides which one happens when. */
#include "live/sandbox/faults.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/span.h"

#include <stdlib.h>

static const char *const kinds[] = {
    [SL_FAULTS_THROTTLE] = "throttle", [SL_FAULTS_CRASH] = "crash",     [SL_FAULTS_DIE] = "die",
    [SL_FAULTS_LOST] = "lost",         [SL_FAULTS_TIMEOUT] = "timeout", [SL_FAULTS_SINK] = "sink",
    [SL_FAULTS_CONNECT] = "connect",
};

static bool read_kind(struct sl_span name, struct sl_faults_rule *rule)
{
    for (size_t k = 1; k < SL_COUNT(kinds); k++)
        if (sl_span_is(name, kinds[k])) {
            rule->fault = (enum sl_faults_kind)k;
            return true;
        }
    return false;
}

/* Reads the digits at the beginning of `s`, and moves `s` after them. */
static bool read_number(struct sl_span *s, uint64_t *out)
{
    size_t n = 0;
    *out = 0;
    for (; n < s->len && n < 9 && s->ptr[n] >= '0' && s->ptr[n] <= '9'; n++)
        *out = *out * 10 + (uint64_t)(s->ptr[n] - '0');
    *s = sl_span_from(*s, n);
    return n > 0;
}

static bool read_when(struct sl_span when, struct sl_faults_rule *rule)
{
    if (sl_span_is(when, "*")) {
        rule->percent = 100;
        return true;
    }
    if (!read_number(&when, &rule->first))
        return false;
    rule->last = rule->first;
    if (sl_span_is(when, "%")) {
        rule->percent = (unsigned)rule->first;
        rule->first = rule->last = 0;
        return rule->percent <= 100;
    }
    if (sl_span_starts(when, SL_LIT("-"))) {
        when = sl_span_from(when, 1);
        if (!read_number(&when, &rule->last))
            return false;
    }
    return when.len == 0 && rule->first >= 1 && rule->last >= rule->first;
}

static enum sl_status add_rule(struct sl_faults *f, struct sl_span text, struct sl_error *error)
{
    struct sl_faults_rule rule = {0};
    const char *at = text.len ? memchr(text.ptr, '@', text.len) : NULL;
    size_t n = at ? (size_t)(at - text.ptr) : 0;
    if (!at || !read_kind(sl_span(text.ptr, n), &rule) || !read_when(sl_span_from(text, n + 1), &rule))
        return sl_fail(
            error, SL_REJECT, "InvalidFault",
            "--fault: \"%.*s\" is not KIND@WHEN: KIND is throttle, crash, die, lost, timeout, sink or "
            "connect; WHEN is a number (3), a range (3-5), a share (10%%) or *",
            SL_ARG(text));
    if (f->n == SL_FAULTS_MOST)
        return sl_fail(error, SL_REJECT, "InvalidFault", "--fault: there are more than %d faults",
                       SL_FAULTS_MOST);
    f->rules[f->n++] = rule;
    return SL_OK;
}

enum sl_status sl_faults_add(struct sl_faults *f, const char *spec, struct sl_error *error)
{
    struct sl_span rest = sl_span_str(spec);
    enum sl_status status = SL_OK;
    do {
        const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
        struct sl_span one = sl_span(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        status = add_rule(f, one, error);
        rest = sl_span_from(rest, one.len + (comma ? 1 : 0));
    } while (status == SL_OK && rest.len);
    return status;
}

static bool applies(struct sl_faults *f, const struct sl_faults_rule *rule, uint64_t invocation)
{
    if (rule->first)
        return invocation >= rule->first && invocation <= rule->last;
    return sl_random_step(&f->random) % 100 < rule->percent;
}

static bool counts_calls(const struct sl_faults_rule *rule)
{
    return rule->fault == SL_FAULTS_SINK || rule->fault == SL_FAULTS_CONNECT;
}

enum sl_faults_kind sl_faults_draw(struct sl_faults *f, uint64_t invocation)
{
    enum sl_faults_kind found = SL_FAULTS_NONE;
    for (size_t i = 0; i < f->n; i++)
        if (!counts_calls(&f->rules[i]) && applies(f, &f->rules[i], invocation) && found == SL_FAULTS_NONE)
            found = f->rules[i].fault;
    return found;
}

bool sl_faults_fails_call(struct sl_faults *f, enum sl_faults_kind kind, uint64_t call)
{
    bool found = false;
    for (size_t i = 0; i < f->n; i++)
        found |= f->rules[i].fault == kind && applies(f, &f->rules[i], call);
    return found;
}

bool sl_faults_counts_calls(const struct sl_faults *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (counts_calls(&f->rules[i]))
            return true;
    return false;
}
