/* What the compiling of a condition needs everywhere: its strings, and errors that name the place. */
#include "streams/when/when_private.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

struct sl_span sl_when_string(const struct sl_when_parse *parse, struct sl_span string)
{
    char *out = sl_arena_alloc(parse->arena, string.len);
    return sl_span(out, sl_json_unescape_to(sl_span(string.ptr + 1, string.len - 2), out));
}

/* For a single test alone: looking for several texts costs more than reading the image up to the
 * attribute. */
struct sl_span sl_when_needle(struct sl_arena *arena, const struct sl_when_test *tests, size_t n)
{
    bool is_equal = n == 1 && tests->op == SL_WHEN_EQUALS && tests->kind == SL_WHEN_STRING && !tests->network;
    if (n != 1 || (!is_equal && tests->op != SL_WHEN_PREFIX && tests->op != SL_WHEN_SUFFIX))
        return sl_span(NULL, 0);
    char *needle = sl_arena_alloc(arena, tests->text.len + 2), *end = needle;
    if (tests->op != SL_WHEN_SUFFIX)
        *end++ = '"';
    if (tests->text.len)
        memcpy(end, tests->text.ptr, tests->text.len);
    end += tests->text.len;
    if (tests->op != SL_WHEN_PREFIX)
        *end++ = '"';
    return sl_span(needle, (size_t)(end - needle));
}

/* A JSON path's text: longer ones are cut from the front by what does not fit. */
#define PATH_BYTES 200

static size_t write_place(const struct sl_when_place *place, char *out, size_t room)
{
    if (!place)
        return 0;
    size_t at = write_place(place->parent, out, room);
    int n;
    if (place->name.ptr)
        n = snprintf(out + at, room - at, "%s%.*s", at ? "." : "", SL_ARG(place->name));
    else
        n = snprintf(out + at, room - at, "[%zu]", place->index);
    return n > 0 && (size_t)n < room - at ? at + (size_t)n : room - 1;
}

enum sl_status sl_when_fail(const struct sl_when_parse *parse, struct sl_span at, const char *format, ...)
{
    char path[PATH_BYTES], why[SL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    path[write_place(parse->place, path, sizeof(path))] = '\0';
    return sl_fail_at(parse->error, SL_REJECT, "InvalidPattern", (size_t)(at.ptr - parse->json.ptr), "%s%s%s",
                      path, path[0] ? ": " : "", why);
}
