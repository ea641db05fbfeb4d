/* One object of an archive, whole, in memory. */
#ifndef SL_DATA_SOURCE_WHOLE_H
#define SL_DATA_SOURCE_WHOLE_H

#include "base/arena.h"
#include "base/clock.h"
#include "sinks/port.h"

/* An object is made of one slice: an event of 6 MB and what its gzip hides. More is refused. */
#define SL_WHOLE_BYTES ((size_t)256 * 1024 * 1024)

struct sl_whole {
    struct sl_span text; /* unpacked, in the arena */
    struct sl_span etag;
    bool was_packed;
};

/* SL_REJECT: it is not there, is too large, or is damaged gzip. */
enum sl_status sl_whole_read(struct sl_object_port *port, struct sl_clock *clock, struct sl_span key,
                             struct sl_arena *arena, struct sl_whole *out,
                             struct sl_error *error) SL_MUST_USE;
/* The same of bytes that were read. */
enum sl_status sl_whole_unpack(struct sl_span bytes, struct sl_arena *arena, struct sl_whole *out,
                               struct sl_error *error) SL_MUST_USE;

#endif
