/* What all kinds of sources are made of. */
#ifndef SL_DATA_SOURCE_SOURCE_PRIVATE_H
#define SL_DATA_SOURCE_SOURCE_PRIVATE_H

#include "base/arena.h"
#include "data/source/item.h"
#include "data/source/source.h"
#include "data/source/text.h"

/* Each kind's own struct begins with this one. */
struct sl_source {
    enum sl_status (*pull)(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                           struct sl_source_piece *out, struct sl_error *error);
    struct sl_source_file (*file)(const struct sl_source *source, size_t i); /* NULL: no export */
    enum sl_status (*skip_bad)(struct sl_source *source, const struct sl_call *call, bool *goes_on,
                               struct sl_error *error); /* NULL: it never goes on */
    void (*close)(struct sl_source *source);            /* what is the kind's own */
    struct sl_source_options options;
    struct sl_source_facts facts;
    struct sl_arena *arena; /* as long as the source */
};

/* Zeroed memory of `bytes` bytes with the options and an arena in it. */
void *sl_source_new(const struct sl_source_options *options, size_t bytes);

/* Pulls from one text, and makes records of its items. */
enum sl_status sl_source_pull_text(struct sl_source *source, struct sl_text *text, size_t max_bytes,
                                   const struct sl_call *call, struct sl_source_piece *out,
                                   struct sl_error *error) SL_MUST_USE;

/* ---- places: {"KIND":ID,...}. Numbers are below 2^53 ---- */

/* A place's beginning, in call->arena. */
void sl_source_place_begin(struct sl_buffer *place, const struct sl_call *call, const char *kind,
                           struct sl_span id);
struct sl_span sl_source_place_end(struct sl_buffer *place);

/* Checks that options.place is one of this kind and id. Without a place: SL_OK, and *is_there is false. */
enum sl_status sl_source_place_check(const struct sl_source *source, const char *kind, struct sl_span id,
                                     bool *is_there, struct sl_error *error) SL_MUST_USE;
/* A member of the checked place; false: it has none that is a whole number. */
bool sl_source_place_number(const struct sl_source *source, const char *path, uint64_t *out);
/* Where a text goes on: members "byte", "record" and "line". */
bool sl_source_place_from(const struct sl_source *source, struct sl_text_from *out);
void sl_source_place_add_from(struct sl_buffer *place, const struct sl_text_from *from);
struct sl_span sl_source_place_text(struct sl_source *source, const char *path);

/* Fails: the place is damaged. */
enum sl_status sl_source_place_bad(const struct sl_source *source, struct sl_error *error) SL_MUST_USE;

#endif
