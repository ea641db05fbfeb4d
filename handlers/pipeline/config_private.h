/* Inside the configuration: work on its text. */
#ifndef SL_HANDLERS_PIPELINE_CONFIG_PRIVATE_H
#define SL_HANDLERS_PIPELINE_CONFIG_PRIVATE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/vars.h"
#include "handlers/pipeline/config.h"

struct json_t;

/* Is every ${NAME} of the text well formed, and its variable set? */
enum sl_status sl_config_check_string(struct sl_span text, const char *path, const struct sl_vars *vars,
                                      struct sl_error *error) SL_MUST_USE;

/* Is every ${NAME} below `value` well formed, and its variable set? `path` is the value's. */
enum sl_status sl_config_check_variables(const struct json_t *value, const char *path,
                                         const struct sl_vars *vars, struct sl_arena *arena,
                                         struct sl_error *error) SL_MUST_USE;

/* The checked text with its variables' values. In JSON they are escaped. */
void sl_config_expand(struct sl_span text, const struct sl_vars *vars, bool is_json, struct sl_buffer *out);

/* `out`: the configuration's variables, in front of `vars`. Of those that `vars` has, its value counts.
 * (config_vars.c) */
enum sl_status sl_config_read_variables(const struct json_t *root, const struct sl_vars *vars,
                                        struct sl_arena *arena, struct sl_vars *out,
                                        struct sl_error *error) SL_MUST_USE;

/* Refuses an object, as checked JSON text, in which a name is there twice. Any other value is fine. */
enum sl_status sl_config_check_object(struct sl_span object, const char *path,
                                      struct sl_error *error) SL_MUST_USE;

#endif
