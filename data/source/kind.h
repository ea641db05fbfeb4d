/* What a text is that holds no stream records, by how it begins: so that an error can say so. */
#ifndef SL_DATA_SOURCE_KIND_H
#define SL_DATA_SOURCE_KIND_H

#include "base/span.h"

/* Of the beginning of a text (some KB, or all of it) that was refused at the byte `offset`: "is CSV: ...",
 * with what to do about it. NULL: it is nothing that we know, or an object comes before that byte, so that it
 * is a text of lines of which a later one is bad. */
const char *sl_text_kind(struct sl_span begin, size_t offset);

#endif
