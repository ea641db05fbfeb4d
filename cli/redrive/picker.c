/* Compares messages with what the operator asked for. */
#include "cli/redrive/picker.h"

#include "base/array.h"
#include "base/span.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

const char *sl_picker_kind(const struct sl_letter *letter)
{
    static const char *const names[] = {"parked", "set-aside", "event", "pointer", "unreadable"};
    return names[letter->dead.kind];
}

/* The field's text; NULL: there is no such field. */
static const char *field_of(const struct sl_letter *letter, struct sl_span name)
{
    const struct {
        const char *name, *value;
    } fields[] = {
        {"code", letter->dead.code},
        {"route", letter->dead.route},
        {"table", letter->table},
        {"handler", letter->dead.handler},
        {"id", letter->id},
        {"kind", sl_picker_kind(letter)},
        {"group", letter->mail->group ? letter->mail->group : ""},
    };
    for (size_t i = 0; i < SL_COUNT(fields); i++)
        if (sl_span_is(name, fields[i].name))
            return fields[i].value ? fields[i].value : "";
    return NULL;
}

/* "code=Missing*", "table!=orders" */
struct wish {
    struct sl_span name, value;
    bool is_negated, is_prefix;
};

static bool read_wish(const char *text, struct wish *out)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    out->is_negated = equals[-1] == '!';
    out->name = sl_span(text, (size_t)(equals - text) - out->is_negated);
    out->value = sl_span_str(equals + 1);
    out->is_prefix = sl_span_ends(out->value, SL_LIT("*"));
    out->value.len -= out->is_prefix;
    return true;
}

/* In milliseconds; 0: it is not one. */
static int64_t span_ms(const char *text)
{
    int64_t n, unit_s;
    return sl_flags_span(text, &n, &unit_s) && n > 0 && n < 1000000 ? n * unit_s * 1000 : 0;
}

enum sl_status sl_picker_init(struct sl_picker *picker, const char *since, int64_t now_ms,
                              struct sl_error *error)
{
    struct sl_mail mail = {0};
    const struct sl_letter letter = {.mail = &mail};
    struct wish wish;
    int64_t ns = 0, step_ns;
    for (size_t i = 0; i < picker->matches->n; i++)
        if (!read_wish(picker->matches->values[i], &wish) || !field_of(&letter, wish.name))
            return sl_fail(error, SL_REJECT, "Usage",
                           "--match \"%s\": write FIELD=VALUE, FIELD!=VALUE or FIELD=BEGINNING*; FIELD is "
                           "one of " SL_PICKER_FIELDS,
                           picker->matches->values[i]);
    if (!since)
        return SL_OK;
    int64_t before = span_ms(since);
    if (!before && !sl_time_parse(sl_span_str(since), &ns, &step_ns))
        return sl_fail(error, SL_REJECT, "Usage",
                       "--since: expected a time like 2026-11-20T10:00:00Z, or a span like 90m, 24h or 7d, "
                       "not \"%s\"",
                       since);
    picker->since_ms = before ? now_ms - before : ns / 1000000;
    return SL_OK;
}

static bool is_wished(const struct wish *wish, const char *value)
{
    struct sl_span text = sl_span_str(value);
    bool is_same = wish->is_prefix ? sl_span_starts(text, wish->value) : sl_span_eq(text, wish->value);
    return is_same != wish->is_negated;
}

/* When it failed; else when it was sent. 0: nobody knows, and nothing that is asked for by time. */
static int64_t time_of(const struct sl_letter *letter)
{
    return letter->dead.time_ms ? letter->dead.time_ms : letter->mail->sent_ms;
}

static bool matches(const struct sl_picker *picker, const struct sl_letter *letter)
{
    struct wish wish = {.is_prefix = false};
    for (size_t i = 0; i < picker->matches->n; i++) {
        (void)read_wish(picker->matches->values[i], &wish); /* sl_picker_init has seen that it can be read */
        if (!is_wished(&wish, field_of(letter, wish.name)))
            return false;
    }
    bool is_others = picker->route && letter->dead.route[0] && strcmp(letter->dead.route, picker->route) != 0;
    return !is_others && (!picker->since_ms || time_of(letter) >= picker->since_ms);
}

bool sl_picker_is_full(const struct sl_picker *picker)
{
    return picker->limit >= 0 && picker->taken >= picker->limit;
}

void sl_picker_pick(struct sl_picker *picker, struct sl_mail *mail)
{
    bool is_taken = !sl_picker_is_full(picker), is_readable = false;
    for (size_t i = 0; i < mail->n; i++) {
        bool is_bad = mail->letters[i].outcome == SL_MAIL_UNREADABLE;
        is_readable |= !is_bad;
        is_taken = is_taken && (is_bad || matches(picker, &mail->letters[i]));
    }
    for (size_t i = 0; i < mail->n && !is_taken; i++)
        if (mail->letters[i].outcome == SL_MAIL_WAITING)
            mail->letters[i].outcome = SL_MAIL_UNMATCHED;
    picker->taken += is_taken && is_readable;
}
