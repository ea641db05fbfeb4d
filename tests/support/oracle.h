/* jansson beside the decoder: the same values by two ways. */
#ifndef SL_TESTS_SUPPORT_ORACLE_H
#define SL_TESTS_SUPPORT_ORACLE_H

#include "streams/record.h"

#include <jansson.h>

/* What the value's views say, as jansson would have read it: {"S": "text"}, for an M (an image) its members
 * alone when `is_image`. A new reference. */
json_t *test_value_json(struct sl_value v, bool is_image);

/* The record's text as jansson reads it equals `record`, and so does what the record's views say of its
 * images, texts and time. A text for what differs, NULL when nothing does. */
const char *test_record_differs(const struct sl_record *r, json_t *record);

/* By the rules of docs/RECORDS.md, judged on jansson's tree alone: NULL when the event is a good one, else
 * what is wrong. Times and sizes are looked at for their JSON type only. */
const char *test_event_fault(const json_t *event);

#endif
