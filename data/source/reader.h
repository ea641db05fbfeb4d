/* The bytes of one stored text, from the first to the last: a file, standard input, an object of a bucket. */
#ifndef SL_DATA_SOURCE_READER_H
#define SL_DATA_SOURCE_READER_H

#include "base/error.h"
#include "base/span.h"

/* One block of a file, one range of an object; and what `next` gives at most. */
#define SL_READER_BYTES      ((size_t)1024 * 1024)
#define SL_READER_MOST_BYTES (4 * SL_READER_BYTES)

struct sl_reader {
    /* The next bytes, borrowed until the next call; none at the end. SL_RETRY: the same call may be tried
     * again. Errors do not name the text: the caller does. */
    enum sl_status (*next)(struct sl_reader *r, const struct sl_call *call, struct sl_span *out,
                           struct sl_error *error);
    void (*close)(struct sl_reader *r);
    uint64_t bytes; /* of all of it; 0: not known */
    bool unpacks;   /* what it gives was gzip, or is to be taken as it is */
};

/* Of a text in memory. `owned` is freed with the reader; NULL: the text is borrowed. */
struct sl_reader *sl_reader_of_text(struct sl_span text, char *owned);

/* Opens the file; "-" is standard input. A folder is refused. Errors name it. */
enum sl_status sl_reader_open(const char *name, struct sl_reader **out, struct sl_error *error) SL_MUST_USE;

/* Of a file that is open and stays so, from its beginning; one reader of it at a time. What has no beginning
 * to go back to is refused. */
enum sl_status sl_reader_open_again(int fd, const char *name, struct sl_reader **out,
                                    struct sl_error *error) SL_MUST_USE;

void sl_reader_close(struct sl_reader *r); /* NULL is fine */

#endif
