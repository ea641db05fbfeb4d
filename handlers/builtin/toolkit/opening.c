/* Opening a built-in handler: reading the options that are JSON. */
#include "handlers/builtin/toolkit/opening.h"

#define NAME_BYTES 255

/* What has a blank before its first colon is a sentence, not a path. */
enum sl_status sl_opening_bad_inside(const struct sl_opening *o, const char *path, const struct sl_error *why)
{
    bool is_sentence = why->text[strcspn(why->text, ": ")] == ' ';
    return SL_OPENING_BAD(o, "%s%s%s", path, is_sentence ? ": " : ".", why->text);
}

bool sl_opening_is(const struct sl_opening *o, const char *option, const char *text)
{
    return sl_span_is(o->host->option_text(o->route, option), text);
}

json_t *sl_opening_json(const struct sl_opening *o, const char *option)
{
    struct sl_span text = o->host->option_text(o->route, option);
    return text.len ? json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL) : NULL;
}

struct sl_span sl_opening_written(struct sl_span json, size_t n)
{
    size_t depth = 0, begin = 0;
    bool is_text = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        bool opens = !is_text && (c == '{' || c == '['), closes = !is_text && (c == '}' || c == ']');
        bool ends = closes || (!is_text && c == ',');
        if (ends && depth == 1 && n-- == 0)
            return (struct sl_span){json.ptr + begin, i - begin};
        depth = depth + opens - closes;
        if (depth == 1 && !is_text && (opens || c == ',' || c == ':'))
            begin = i + 1;
        i += is_text && c == '\\';
        is_text = c == '"' ? !is_text : is_text;
    }
    return (struct sl_span){NULL, 0};
}

struct sl_span sl_opening_keep(const struct sl_opening *o, struct sl_span text)
{
    return o->host->join(o->arena, &text, 1);
}

struct sl_span sl_opening_text(const json_t *string)
{
    return (struct sl_span){json_string_value(string), json_string_length(string)};
}

bool sl_opening_is_name(struct sl_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == '"' || name.ptr[i] == '\\')
            return false;
    return name.len > 0 && name.len <= NAME_BYTES;
}

enum sl_status sl_opening_template(const struct sl_opening *o, const char *where, struct sl_span text,
                                   struct sl_render_template *out)
{
    struct sl_error why = SL_NO_ERROR;
    if (sl_render_compile(o->host, o->arena, text, out, &why) == SL_OK)
        return SL_OK;
    return SL_OPENING_BAD(o, "%s: %s (byte %zu)", where, why.text, why.offset);
}

enum sl_status sl_opening_where(const struct sl_opening *o, const struct sl_when **out)
{
    struct sl_span text = o->host->option_text(o->route, "where");
    struct sl_when *compiled = NULL;
    struct sl_error why = SL_NO_ERROR;
    if (text.len && o->host->where_compile(o->arena, text, &compiled, &why) != SL_OK)
        return sl_opening_bad_inside(o, "where", &why);
    *out = compiled;
    return SL_OK;
}
