/* The plain words that AWS's own error messages are made of: see aws/mask.h. */
#ifndef SL_AWS_MASK_WORDS_H
#define SL_AWS_MASK_WORDS_H

#include "base/span.h"

/* Whether it is one of them, in any case. */
bool sl_mask_is_plain(struct sl_span word);

#endif
