/* The changes in one object of an archive, as digests that can be sorted: by item, and in it by order. */
#ifndef SL_DATA_VERIFY_ARCHIVE_CHANGES_H
#define SL_DATA_VERIFY_ARCHIVE_CHANGES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "data/sorter.h"
#include "sinks/port.h"

/* What is sorted of a change: its item is the entry's key; its number with zeros before it, and then its
 * event, are the order; `before` and `after` are what it found and left. */
#define SL_CHANGE_NUMBER_BYTES 40

/* An entry's flags. */
enum {
    SL_CHANGE_EVENT = 3,       /* enum sl_event */
    SL_CHANGE_TIMED = 4,       /* the number is a time, and others may have the same */
    SL_CHANGE_LATE = 8,        /* its object came while the archive was read */
    SL_CHANGE_OBJECT_SHIFT = 4 /* above: which object it is in, as its reader counts them */
};

struct sl_chain_counts {
    uint64_t objects, records, items;
    uint64_t erased; /* records that were erased on purpose (data/erase/erase.h) */
    uint64_t gaps;
    uint64_t damaged;    /* objects that are not what their names say */
    uint64_t unreadable; /* objects that cannot be read */
    uint64_t doubles, unknown_before;
    uint64_t without_images; /* records that lack an image that the proof needs */
};

#define SL_CHAIN_COUNTS (sizeof(struct sl_chain_counts) / sizeof(uint64_t))

/* Their names in JSON, in the order of the struct; one of them; and all as members of an object. */
extern const char *const sl_chain_count_names[SL_CHAIN_COUNTS];
uint64_t *sl_chain_count(struct sl_chain_counts *counts, size_t i);
void sl_chain_add_counts(const struct sl_chain_counts *counts, struct sl_buffer *out);

struct sl_changes {
    struct sl_object_port *port;
    struct sl_clock *clock;
    const char *route;
    struct sl_arena *arena; /* of one object: it is emptied for each */
    struct sl_buffer *line; /* made; for findings */
    struct sl_chain_counts *counts;

    /* A JSON line, with its newline; borrowed. */
    void (*found)(void *arg, struct sl_span line);
    void *arg;

    enum sl_status (*take)(void *take_arg, const struct sl_sorter_entry *change, struct sl_error *error);
    void *take_arg;
};

/* Whether archives name their objects so, and not other programs. */
bool sl_changes_are_in(struct sl_span key);

/* Reads an object whole, compares it with its name, and hands on its changes, with these flags in addition.
 * What is wrong with the object is found and counted, and SL_OK. SL_RETRY, SL_FATAL: it could not be read
 * now, and nothing is counted; or `take` failed. */
enum sl_status sl_changes_read(const struct sl_changes *changes, struct sl_span key, uint64_t flags,
                               struct sl_error *error) SL_MUST_USE;

/* {"result":"different","kind":KIND,"route":ROUTE,"handler":"archive" */
void sl_archive_begin_line(struct sl_buffer *line, const char *kind, const char *route);

#endif
