/* The shared files of the AWS tools, ~/.aws/config and ~/.aws/credentials, as far as they are used here. They
 * are read at the first question; a file that cannot be read counts as empty. */
#ifndef SL_AWS_PROFILE_H
#define SL_AWS_PROFILE_H

#include "base/arena.h"
#include "base/vars.h"

struct sl_profile {
    struct sl_span config, credentials; /* the files' text */
    const char *name;                   /* AWS_PROFILE, or "default" */
};

/* A file larger than this is not one of them. */
#define SL_PROFILE_FILE_BYTES (1024 * 1024)

/* The first `max` bytes of a file that may hold secrets, in `arena` and nowhere else; absent when it cannot
 * be read. The arena keeps them secret (sl_arena_keep_secret). */
struct sl_span sl_profile_read(const char *path, size_t max, struct sl_arena *arena);

/* The text lives in `arena`. */
void sl_profile_load(struct sl_profile *profile, const struct sl_vars *vars, struct sl_arena *arena);

/* Whether either file has the section. */
bool sl_profile_has(const struct sl_profile *profile, const char *name);

/* A setting of the named profile, from the credentials file first; absent when there is none. */
struct sl_span sl_profile_get(const struct sl_profile *profile, const char *name, const char *key);

/* services -> service -> endpoint_url of the profile's `services` section; else absent. `service` is the
 * service's id in lower case: "dynamodb". */
struct sl_span sl_profile_endpoint(const struct sl_profile *profile, const char *service);

#endif
