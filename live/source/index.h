/* The records of a recording on disk: where each one's text is, and what the simulator needs to know of it.
 * A text that an input has just as Lambda delivers it stays there; others are in a spool (spool.h). */
#ifndef SL_LIVE_SOURCE_INDEX_H
#define SL_LIVE_SOURCE_INDEX_H

#include "esm/esm.h"
#include "live/source/inputs.h"
#include "live/source/spool.h"

struct sl_index;

/* All in `arena`; `inputs` is borrowed as long as that. */
struct sl_index *sl_index_new(const struct sl_inputs *inputs, struct sl_arena *arena);

/* Whether texts of this input can stay where they are: it is a file, and not packed. It is looked at again
 * when they are read: a file that has changed ends the process (sl_die). */
bool sl_index_may_refer(struct sl_index *index, size_t input);

struct sl_index_record {
    struct sl_span text;     /* as it is delivered */
    struct sl_span id;       /* copied, as is the key */
    struct sl_span item_key; /* may be absent */
    int64_t created_ms;
    uint32_t shard;
    bool is_in_input; /* the text is in the input `input`, at the byte `at` */
    uint32_t input;
    uint64_t at;
};

void sl_index_add(struct sl_index *index, const struct sl_index_record *record);

/* All were added: they can be read. SL_FATAL: there is no room on the disk. */
enum sl_status sl_index_done(struct sl_index *index, struct sl_error *error) SL_MUST_USE;

/* Record `i`, whose text is in the spool: text, id, key and creation time of `out`, borrowed as long as the
 * arena. Returns its shard. */
uint32_t sl_index_get(const struct sl_index *index, size_t i, struct sl_esm_record *out);

/* The records from `from` on, `to` at most: as many as make a lot (SL_INDEX_PAGE_BYTES). They and their texts
 * are borrowed until sl_index_free_page. Returns the first that is not in it. */
struct sl_index_page {
    struct sl_esm_record *records;
    size_t n;
    char *texts;      /* what was read from an input */
    size_t text_room; /* private */
};
#define SL_INDEX_PAGE_RECORDS 4096
#define SL_INDEX_PAGE_BYTES   ((size_t)1024 * 1024)
size_t sl_index_read_page(struct sl_index *index, size_t from, size_t to, struct sl_index_page *out);
void sl_index_free_page(struct sl_index *index, struct sl_index_page *page);

/* What was looked at no longer counts as this process's memory. */
void sl_index_release(const struct sl_index *index);

#endif
