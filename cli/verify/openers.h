/* Targets of a verification: they are read, and never created. */
#ifndef SL_CLI_VERIFY_OPENERS_H
#define SL_CLI_VERIFY_OPENERS_H

#include "handlers/pipeline/pipeline.h"

/* A local table that is not there is refused. A folder of objects that is not there opens as a port that can
 * neither read nor list. Queues are not opened. */
extern const struct sl_openers sl_verify_openers;

#endif
