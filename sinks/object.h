/* The object port's rule for keys, in one place for S3 and for folders. */
#ifndef SL_SINKS_OBJECT_H
#define SL_SINKS_OBJECT_H

#include "base/span.h"

/* S3's limit on a key ("Naming Amazon S3 objects"); folders have it too, so that what works there works in
 * S3. */
#define SL_OBJECT_KEY_BYTES 1024

/* Why the key is refused, as a clause ("holds a control byte"); NULL when it is fine. A key is segments with
 * a
 * '/' between them; none of them is empty, "." or "..", so that no key leads out of its folder or prefix. */
const char *sl_object_key_problem(struct sl_span key);

#endif
