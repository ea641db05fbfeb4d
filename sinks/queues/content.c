/* What a service takes as the text of a message: see sinks/queues/content.h. */
#include "sinks/queues/content.h"

#include "base/utf8.h"
#include "sinks/name.h"

#include <string.h>

#define NAME_BYTES 256

/* Eight bytes of printable ASCII (and DEL), which every rule takes. A borrow makes it doubt more, never
 * less. */
static bool is_plain_block(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return ((word | (word - 0x2020202020202020u)) & 0x8080808080808080u) == 0;
}

static const char *control_problem(enum sl_content rule, char c)
{
    bool is_space = c == '\t' || c == '\n' || c == '\r';
    if (rule == SL_CONTENT_XML && !is_space)
        return c ? "holds a control character" : "holds a NUL";
    return rule == SL_CONTENT_UTF8 && !c ? "holds a NUL" : NULL;
}

/* U+FFFE and U+FFFF. */
static bool is_noncharacter(const char *p)
{
    return memcmp(p, "\xEF\xBF\xBE", 3) == 0 || memcmp(p, "\xEF\xBF\xBF", 3) == 0;
}

const char *sl_content_problem(enum sl_content rule, struct sl_span text)
{
    const char *p = text.ptr, *end = sl_span_end(text), *problem;
    while (p < end && rule != SL_CONTENT_BYTES) {
        if (end - p >= 8 && is_plain_block(p)) {
            p += 8;
            continue;
        }
        unsigned char c = (unsigned char)*p;
        const char *next = c < 0x80 ? p + 1 : sl_utf8_next(p, end);
        if (!next)
            return "is not UTF-8";
        if (c < ' ' && (problem = control_problem(rule, *p)) != NULL)
            return problem;
        if (rule == SL_CONTENT_XML && next - p == 3 && is_noncharacter(p))
            return "holds U+FFFE or U+FFFF";
        p = next;
    }
    return NULL;
}

const char *sl_content_name_problem(struct sl_span name)
{
    bool has_gap = sl_span_starts(name, SL_LIT(".")) || sl_span_ends(name, SL_LIT(".")) ||
                   (name.len && memmem(name.ptr, name.len, "..", 2));
    if (!sl_name_is_valid(name, "_-.", NAME_BYTES) || has_gap)
        return "is not 1 to 256 letters, digits, '_', '-' and single '.' between them";
    return NULL;
}

struct sl_span sl_content_attribute(const struct sl_message *message, const char *name)
{
    for (size_t i = 0; i < message->n_attributes; i++)
        if (sl_span_is(message->attributes[i].name, name))
            return message->attributes[i].value;
    return sl_span(NULL, 0);
}
