/* Lambda's event source mappings: asked for by function, or one by its id. Source: AWS Lambda API Reference,
 * ListEventSourceMappings, GetEventSourceMapping. */
#ifndef SL_AWS_MAPPINGS_H
#define SL_AWS_MAPPINGS_H

#include "aws/aws.h"
#include "base/error.h"

#include <jansson.h>

struct sl_mappings;

/* `region`, `endpoint`: NULL: the environment's. Lives in aws->lasting, but for what close gives back. */
enum sl_status sl_mappings_open(struct sl_aws *aws, const char *region, const char *endpoint,
                                struct sl_mappings **out, struct sl_error *error) SL_MUST_USE;
void sl_mappings_close(struct sl_mappings *mappings); /* NULL is fine */

/* Each mapping as Lambda describes it, borrowed. Not SL_OK: the reading ends with that. */
typedef enum sl_status (*sl_mapping_fn)(void *arg, const json_t *mapping, struct sl_error *error);

/* All mappings of the function (a name or ARN) that read `source` (an ARN; NULL: any source). */
enum sl_status sl_mappings_list(struct sl_mappings *mappings, const char *function, const char *source,
                                const struct sl_call *call, sl_mapping_fn take, void *arg,
                                struct sl_error *error) SL_MUST_USE;

/* The one with this id. */
enum sl_status sl_mappings_get(struct sl_mappings *mappings, const char *uuid, const struct sl_call *call,
                               sl_mapping_fn take, void *arg, struct sl_error *error) SL_MUST_USE;

/* The text of a member; "" when it has none. */
const char *sl_mapping_text(const json_t *mapping, const char *name);

#endif
