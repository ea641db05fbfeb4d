/* bootstrap's whole life, from its main on: reads the environment, then serves, alone or with workers. */
#ifndef SL_RUNTIME_START_H
#define SL_RUNTIME_START_H

/* `program` is where this executable is if /proc is not mounted. `environment` ends with NULL and is copied.
 * Returns the status to exit with: 0 after SIGTERM, 1 when it could not start or go on. */
int sl_start(const char *program, char *const *environment);

#endif
