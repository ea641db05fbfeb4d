/* The object port's rule for keys. */
#include "sinks/object.h"

const char *sl_object_key_problem(struct sl_span key)
{
    size_t begin = 0;
    for (size_t i = 0; i <= key.len; i++) {
        if (i < key.len && ((unsigned char)key.ptr[i] < ' ' || key.ptr[i] == 0x7F))
            return "holds a control byte";
        if (i < key.len && key.ptr[i] != '/')
            continue;
        struct sl_span segment = sl_span(key.ptr + begin, i - begin);
        if (segment.len == 0 || sl_span_is(segment, ".") || sl_span_is(segment, ".."))
            return "has an empty, \".\" or \"..\" segment";
        begin = i + 1;
    }
    return key.len > SL_OBJECT_KEY_BYTES ? "is longer than 1,024 bytes" : NULL;
}
