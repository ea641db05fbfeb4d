/* Every object below a place, page by page. */
#ifndef SL_DATA_SOURCE_LISTING_H
#define SL_DATA_SOURCE_LISTING_H

#include "base/clock.h"
#include "sinks/port.h"

/* What is done with an object, which lives until it returns. Anything but SL_OK ends the listing; with the
 * code SL_LISTING_ENOUGH, which is no failure. */
#define SL_LISTING_ENOUGH "Enough"
typedef enum sl_status sl_listing_fn(void *arg, const struct sl_object_entry *entry, struct sl_error *error);

/* The objects whose keys begin with `prefix` (absent: all) and are greater than `after` (absent: all), in the
 * bytewise order of their keys. */
enum sl_status sl_listing_each(struct sl_object_port *port, struct sl_clock *clock, struct sl_span prefix,
                               struct sl_span after, sl_listing_fn *each, void *arg,
                               struct sl_error *error) SL_MUST_USE;

#endif
