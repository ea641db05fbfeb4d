/* Sources of small data, read in every way there is: whole, in pieces of every size, and from every place. */
#ifndef SL_TESTS_DATA_SOURCE_PIECES_H
#define SL_TESTS_DATA_SOURCE_PIECES_H

#include "tests/support/test.h"
#include "data/source/source.h"

/* What a source gave: its records' texts, one a line, and how it ended. */
struct gathered {
    char *text;
    size_t n, pieces;
    enum sl_status status;
    struct sl_error error;
};

/* How a test opens its source: `self` says which, `place` where it goes on (absent: at the beginning). */
typedef enum sl_status (*open_fn)(void *self, struct sl_span place, struct sl_source **out,
                                  struct sl_error *error);

extern struct sl_sinks test_sinks;
int sinks_set_up(void **state);
int sinks_clean_up(void **state);

/* With a folder in memory. */
extern char *folder;
int folder_set_up(void **state);
int folder_clean_up(void **state);

struct sl_call test_call(struct sl_arena *arena);

/* Reads to the end in pieces of `max_bytes`. With `is_resumed`, each piece is read by a source of its own. */
struct gathered gather(open_fn open, void *self, size_t max_bytes, bool is_resumed);
/* The same, and the deadline comes in the middle of each pull, a little later each time that one came to
 * nothing. For places on this machine. */
struct gathered gather_hurried(open_fn open, void *self, size_t max_bytes, bool is_resumed);
void gathered_clean_up(struct gathered *g);

/* In pieces of every size up to `most`, and resumed after each piece, the records and the failure are those
 * of the whole, also with deadlines that come in the middle of a pull. For places on this machine. */
void assert_pieces_agree(open_fn open, void *self, size_t most);

/* Copies the files below `path` to a prefix of its own in S3, and returns its URL, until the next call. NULL
 * when there is no S3 here (MOTO_ENDPOINT). */
const char *copy_to_s3(const char *path);

#endif
