/* The names that services take. */
#include "sinks/name.h"

bool sl_name_is_valid(struct sl_span name, const char *more, size_t max)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_plain && (c == '\0' || !strchr(more, c)))
            return false;
    }
    return name.len >= 1 && name.len <= max;
}
