/* A snapshot of the environment that main took: everything below main reads this, never the environment. */
#ifndef SL_BASE_VARS_H
#define SL_BASE_VARS_H

#include "base/types.h"

/* Of a variable's name; it does not begin with a digit. */
#define SL_VARS_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

struct sl_vars {
    const char *const *list; /* "NAME=value" strings, NULL-terminated, borrowed; NULL is empty */

    /* Reads a secret that a configuration names, "ssm:/hook/key". `out` is borrowed. NULL: nobody may be
     * asked, and a stand-in takes its place. */
    enum sl_status (*secret)(void *arg, struct sl_span reference, const char **out, struct sl_error *error);
    void *arg;
};

/* The value, NULL when the name is absent. Borrowed as long as the list. */
const char *sl_vars_get(const struct sl_vars *vars, const char *name);

/* The value, or `otherwise` when the name is absent or its value empty. */
const char *sl_vars_or(const struct sl_vars *vars, const char *name, const char *otherwise);

#endif
