/* Being told of the end: SLUICE_SHUTDOWN=1 registers an internal extension (runtime/api/extension.h), so that
 * SIGTERM comes and handlers are closed. Never needed: a sandbox may always end without it. */
#ifndef SL_RUNTIME_SHUTDOWN_H
#define SL_RUNTIME_SHUTDOWN_H

#include "runtime/api/client.h"
#include "runtime/api/extension.h"
#include "runtime/settings.h"

struct sl_shutdown {
    struct sl_extension *extension; /* NULL: none */
    struct sl_log *log;
    struct sl_runtime_beside beside; /* keeps the extension waiting, for whoever waits */
};

/* Registers, if the settings say so. A failure is one warning in the log. Borrows `log`. */
void sl_shutdown_open(struct sl_shutdown *shutdown, const struct sl_settings *settings, struct sl_log *log);
/* Zeroed memory is fine. */
void sl_shutdown_close(struct sl_shutdown *shutdown);

#endif
