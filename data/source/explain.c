/* Says what is wrong in a text, and where. */
#include "data/source/explain.h"

#include "base/json.h"
#include "data/source/kind.h"

#include <stdio.h>

static struct sl_span line_at(struct sl_span text, size_t from)
{
    const char *end = memchr(text.ptr + from, '\n', text.len - from);
    return sl_span(text.ptr + from, end ? (size_t)(end - text.ptr) - from : text.len - from);
}

static bool is_json(struct sl_span line)
{
    struct sl_error unused = SL_NO_ERROR;
    return sl_json_check(line, &unused) == SL_OK;
}

static bool is_blank(struct sl_span line)
{
    return sl_json_space(line.ptr, sl_span_end(line)) == sl_span_end(line);
}

/* Moves `*from` to the next line that is not blank, and counts it. False: there is none. */
static bool next_line(struct sl_span text, size_t *from, size_t *number, struct sl_span *line)
{
    do {
        *from = *number ? *from + line->len + 1 : 0;
        if (*from >= text.len)
            return false;
        *line = line_at(text, *from);
        (*number)++;
    } while (is_blank(*line));
    return true;
}

/* Text that is not JSON is mostly noticed after the line that was cut. In a file of one record a line, that
 * line is the first one that is not JSON by itself; `n_good` lines before the text are. `*from` becomes its
 * first byte, `*number` its number. False: there is none up to the byte `offset`, or no line beside it is
 * JSON, so that records have several lines. */
static bool find_bad_line(struct sl_span text, size_t offset, size_t n_good, size_t *from, size_t *number)
{
    struct sl_span line = {NULL, 0};
    *from = *number = 0;
    while (next_line(text, from, number, &line) && *from <= offset) {
        if (is_json(line)) {
            n_good++;
            continue;
        }
        size_t after = *from, n = *number;
        return n_good || (next_line(text, &after, &n, &line) && is_json(line));
    }
    return false;
}

static size_t line_number(struct sl_span text, size_t offset)
{
    size_t number = 1;
    for (size_t i = 0; i < offset && i < text.len; i++)
        number += text.ptr[i] == '\n';
    return number;
}

enum sl_status sl_text_explain(const char *name, struct sl_span piece, const struct sl_text_from *from,
                               const struct sl_error *why, struct sl_error *error)
{
    struct sl_error own = *why, of_line = SL_NO_ERROR;
    const char *kind = from->byte == 0 ? sl_text_kind(piece, why->offset) : NULL;
    if (kind)
        return sl_fail_at(error, SL_REJECT, why->code, why->offset, "%s: %s", name, kind);
    bool is_syntax = strcmp(why->code, "InvalidJson") == 0;
    /* As many lines as records: one record a line. */
    size_t n_good = from->record && from->line == from->record ? (size_t)from->record : 0, begin, number;
    char line[32] = "", where[64] = "";
    if (is_syntax && find_bad_line(piece, why->offset, n_good, &begin, &number) &&
        sl_json_check(line_at(piece, begin), &of_line) != SL_OK) {
        own = of_line;
        own.offset += begin;
    } else {
        number = line_number(piece, why->offset);
    }
    uint64_t at = from->byte + own.offset;
    if (from->line || line_at(piece, 0).len + 1 < piece.len)
        snprintf(line, sizeof(line), "line %llu: ", (unsigned long long)(from->line + number));
    if (is_syntax)
        snprintf(where, sizeof(where), "invalid JSON at byte %llu: ", (unsigned long long)at);
    else if (strcmp(why->code, "NotAStreamEvent") == 0)
        snprintf(where, sizeof(where), "not a stream event: ");
    return sl_fail_at(error, SL_REJECT, why->code, at, "%s: %s%s%s", name, line, where, own.text);
}
