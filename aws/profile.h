/* The shared files of the AWS tools, ~/.aws/config and ~/.aws/credentials, as far as they are used here. They
 * are read at the first question; a file that cannot be read counts as empty. */
#ifndef SL_AWS_PROFILE_H
#define SL_AWS_PROFILE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vars.h"

struct sl_profile {
    struct sl_span config, credentials; /* the files' text */
    const char *name;                   /* AWS_PROFILE, or "default" */
    const char *problem; /* a mistake in a file: file, line and what is wrong; NULL: none. Nobody may use the
                            settings then: which keys are meant is not known */
};

/* A file larger than this is not one of them. */
#define SL_PROFILE_FILE_BYTES (1024 * 1024)

/* The first `max` bytes of a file that may hold secrets, in `arena` and nowhere else; absent when it cannot
 * be read. The arena keeps them secret (sl_arena_keep_secret). */
struct sl_span sl_profile_read(const char *path, size_t max, struct sl_arena *arena);

/* SL_FATAL: a line is neither a section, a setting, nor part of one; the error names it. */
enum sl_status sl_profile_check(struct sl_span text, const char *path, struct sl_error *error) SL_MUST_USE;

/* The text lives in `arena`. */
void sl_profile_load(struct sl_profile *profile, const struct sl_vars *vars, struct sl_arena *arena);

/* Whether either file has the section. */
bool sl_profile_has(const struct sl_profile *profile, const char *name);

/* A setting of the named profile, from the credentials file first; absent when there is none. One that goes
 * on in further lines has their line breaks and blanks in it. */
struct sl_span sl_profile_get(const struct sl_profile *profile, const char *name, const char *key);

/* Whether the credentials file has the setting. */
bool sl_profile_is_in_credentials(const struct sl_profile *profile, const char *name, const char *key);

/* What every SDK lets one say by a variable or in the chosen profile: the variable first. Absent:
 * neither. `profile` may be NULL. */
struct sl_span sl_profile_setting(const struct sl_profile *profile, const struct sl_vars *vars,
                                  const char *variable, const char *key);

/* services -> service -> endpoint_url of the profile's `services` section; else absent. `service` is the
 * service's id in lower case: "dynamodb". */
struct sl_span sl_profile_endpoint(const struct sl_profile *profile, const char *service);

#endif
