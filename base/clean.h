/* Texts of others (servers, plugins, items' names), made safe to show: valid UTF-8 without characters that
 * end a line, drive a terminal or turn the direction of reading. */
#ifndef SL_BASE_CLEAN_H
#define SL_BASE_CLEAN_H

#include "base/span.h"

/* Where the character at `p` (p < end) ends. `*shown` becomes false when it must not be shown: a byte that is
 * not UTF-8 (then one byte), a control character (C0, DEL, C1), a line or paragraph separator (U+2028,
 * U+2029), a mark of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) or U+FEFF. */
const char *sl_clean_next(const char *p, const char *end, bool *shown);

/* Copies the text, with a '?' for each character that must not be shown, cut at a whole character so that it
 * fits into `room` with its NUL. Returns its bytes. `out` may be where the text is. */
size_t sl_clean(struct sl_span text, char *out, size_t room);

#endif
