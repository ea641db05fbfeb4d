/* Templates of the built-in handlers, rendered as text, as an attribute value or as a key. */
#include "handlers/builtin/toolkit/render.h"

#include "handlers/builtin/toolkit/text.h"

enum sl_missing sl_render_missing(const struct sl_host *host, struct sl_route *route)
{
    static const char *const names[] = {"reject", "skip", "empty", NULL};
    return (enum sl_missing)sl_text_index(host->option_text(route, "missing"), names);
}

bool sl_render_is_skipped(enum sl_missing missing, const struct sl_error *error)
{
    return missing == SL_MISSING_SKIP && error->status == SL_REJECT &&
           strcmp(error->code, "MissingAttribute") == 0;
}

bool sl_render_names_image(struct sl_span t)
{
    static const char *const names[] = {"{NewImage.", "{NewImage|", "{OldImage.", "{OldImage|"};
    bool names_one = false;
    for (size_t i = 0; i < 4; i++)
        names_one = names_one || memmem(t.ptr, t.len, names[i], strlen(names[i]));
    return names_one;
}

bool sl_render_is_of_item(const struct sl_host *host, const struct sl_template *t, struct sl_per_item *facts)
{
    unsigned uses = t ? host->template_uses(t) : 0;
    facts->needs_table = facts->needs_table || (uses & SL_USES_TABLE);
    return !(uses & (SL_USES_OLD | SL_USES_EVENT | SL_USES_TIME));
}

enum sl_status sl_render_compile(const struct sl_host *host, struct sl_arena *arena, struct sl_span text,
                                 struct sl_render_template *out, struct sl_error *error)
{
    enum sl_status status = host->template_compile(arena, text, &out->compiled, error);
    if (status == SL_OK)
        out->type = host->template_type(out->compiled);
    return status;
}

enum sl_status sl_render_text(const struct sl_render *in, const struct sl_template *t, struct sl_span *out,
                              struct sl_error *error)
{
    if (in->missing != SL_MISSING_EMPTY)
        return in->host->template_render_image(t, in->record, in->image, in->escape, in->arena, out, error);
    *out = in->host->template_render_or(t, in->record, in->image, in->escape, in->arena, SL_LIT(""));
    return out->ptr ? SL_OK
                    : in->host->fail(error, SL_REJECT, "TooLarge",
                                     "the text of a template is longer than its limit of 8 MB");
}

/* The text of a template that makes a number. */
static struct sl_value number_of(const struct sl_render *in, const struct sl_render_template *t)
{
    struct sl_value number = {.type = SL_NONE};
    if (in->host->template_render_image(t->compiled, in->record, in->image, SL_ESCAPE_NONE, in->arena,
                                        &number.raw, NULL) == SL_OK)
        number.type = SL_N;
    return number;
}

struct sl_value sl_render_value(const struct sl_render *in, const struct sl_render_template *t)
{
    if (t->type == SL_NONE)
        return in->host->template_value(t->compiled, in->record, in->image);
    return t->type == SL_N ? number_of(in, t) : (struct sl_value){.type = SL_NONE};
}

bool sl_render_is_key(struct sl_value value)
{
    return value.type == SL_S || value.type == SL_N || value.type == SL_B;
}

enum sl_status sl_render_key(const struct sl_render *in, const struct sl_render_template *t,
                             struct sl_span *out, struct sl_error *error)
{
    struct sl_value value = sl_render_value(in, t);
    if (sl_render_is_key(value)) {
        *out = sl_text_canonical(in->host, value, in->arena);
        return SL_OK;
    }
    struct sl_span text;
    enum sl_status status = sl_render_text(in, t->compiled, &text, error);
    if (status == SL_OK)
        *out = sl_text_string_value(in->host, text, in->arena);
    return status;
}
