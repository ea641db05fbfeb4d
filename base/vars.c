/* Names looked up in a list of "NAME=value". */
#include "base/vars.h"

#include <string.h>

const char *sl_vars_get(const struct sl_vars *vars, const char *name)
{
    size_t n = strlen(name);
    for (const char *const *v = vars->list; v && *v; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
            return *v + n + 1;
    return NULL;
}

const char *sl_vars_or(const struct sl_vars *vars, const char *name, const char *otherwise)
{
    const char *value = sl_vars_get(vars, name);
    return value && *value ? value : otherwise;
}
