/* Checks and compiles the filters of a mapping. */
#include "cli/config/filters.h"

#include "base/json.h"
#include "base/json_walk.h"

#include <string.h>

bool sl_filters_is_too_long(struct sl_span pattern)
{
    size_t characters = 0;
    for (size_t i = 0; i < pattern.len; i++)
        characters += (pattern.ptr[i] & 0xC0) != 0x80;
    return characters > SL_FILTERS_CHARACTERS;
}

/* What stands below "data" is the pattern for the change, which a recording has as the record. */
enum sl_status sl_filters_data(struct sl_span *pattern, struct sl_error *error)
{
    struct sl_span data = {NULL, 0}, name, value;
    struct sl_json_walk walk = sl_json_walk(*pattern);
    size_t n = 0;
    for (; sl_json_walk_next(&walk, &name, &value); n++)
        data = sl_json_text_is(name, SL_LIT("data")) ? value : data;
    if (n != 1 || !data.len || *data.ptr != '{')
        return sl_fail(error, SL_REJECT, "InvalidParameterValueException",
                       "--filter: a mapping of a Kinesis stream filters on \"data\" alone, as in "
                       "{\"data\": {\"eventName\": [\"INSERT\"]}}");
    *pattern = data;
    return SL_OK;
}

static enum sl_status compile(struct sl_span pattern, bool is_kinesis, struct sl_arena *arena,
                              struct sl_when **out, struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR, unused = SL_NO_ERROR;
    if (sl_filters_is_too_long(pattern))
        return sl_fail(error, SL_REJECT, "ValidationException",
                       "--filter: a pattern has more than %d characters: AWS refuses it",
                       SL_FILTERS_CHARACTERS);
    if (is_kinesis && sl_json_check(pattern, &unused) == SL_OK && sl_filters_data(&pattern, error) != SL_OK)
        return SL_REJECT;
    if (sl_pattern_compile(pattern, arena, out, &why) == SL_OK)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "InvalidParameterValueException",
                   "--filter: Invalid filter pattern definition: %s", why.text);
}

enum sl_status sl_filters_compile(const char *const *patterns, size_t n, bool is_kinesis,
                                  struct sl_arena *arena, const struct sl_when *const **out,
                                  struct sl_error *error)
{
    const struct sl_when **all = sl_arena_alloc(arena, (n + 1) * sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        struct sl_when *one;
        if (compile(sl_span_str(patterns[i]), is_kinesis, arena, &one, error) != SL_OK)
            return SL_REJECT;
        all[i] = one;
    }
    *out = all;
    return SL_OK;
}

void sl_filters_judge(const char *const *patterns, size_t n, bool is_kinesis, sl_when_found_fn found,
                      void *arg)
{
    for (size_t i = 0; i < n; i++) {
        struct sl_span pattern = sl_span_str(patterns[i]);
        if (!is_kinesis || sl_filters_data(&pattern, NULL) == SL_OK)
            (void)!sl_pattern_judge(pattern, found, arg, NULL);
    }
}
