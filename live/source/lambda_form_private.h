/* What the files of Lambda's form share. */
#ifndef SL_LIVE_SOURCE_LAMBDA_FORM_PRIVATE_H
#define SL_LIVE_SOURCE_LAMBDA_FORM_PRIVATE_H

#include "base/json.h"
#include "live/source/lambda_form.h"

/* lambda_form_quick.c: the record, whose text is compact, has exactly the members that nearly all have, in
 * the order in which Lambda writes them. False: it is to be taken apart. */
bool sl_lambda_form_quick(const struct sl_record *r);

#endif
