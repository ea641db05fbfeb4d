/* Reads ahead: a thread of its own reads a text and unpacks its gzip, while what it gave is worked on. */
#ifndef SL_DATA_SOURCE_AHEAD_H
#define SL_DATA_SOURCE_AHEAD_H

#include "data/source/reader.h"

/* What is read ahead at most: blocks of SL_READER_BYTES. */
#define SL_AHEAD_BLOCKS 4

/* Takes ownership of the reader, whose texts come unpacked: `next` gives SL_READER_BYTES at most. What was
 * good before a failure comes before it. The text of bad gzip is refused with its byte. Closing it does not
 * wait for a pipe in which nothing comes. */
struct sl_reader *sl_reader_ahead(struct sl_reader *reader);

#endif
