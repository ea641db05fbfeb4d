/* Items in an answer that nobody has checked: found and checked in one pass. */
#ifndef SL_SINKS_ITEM_SCAN_H
#define SL_SINKS_ITEM_SCAN_H

#include "base/json.h"

/* From the '{' of an item to the byte after it: each attribute has one known tag with content of its kind,
 * numbers and base64 are valid, no set is empty, nothing is nested too deep. NULL when it is none; `s` says
 * where and why. A loose scan takes what DynamoDB stores as strings: see sl_json_check_loose. */
const char *sl_item_scan(struct sl_json_scan *s, const char *p);

#endif
