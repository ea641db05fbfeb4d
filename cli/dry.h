/* How verbs that must not touch anything open a pipeline: every target's text is checked, nothing is created
 * or sent. No handler may be called that writes. */
#ifndef SL_CLI_DRY_H
#define SL_CLI_DRY_H

#include "handlers/pipeline/pipeline.h"

extern const struct sl_openers sl_dry_openers;

#endif
