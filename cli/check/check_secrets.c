/* The lines of secrets in what `sluice check` prints. */
#include "cli/check/check_secrets.h"

#include "aws/secrets.h"
#include "base/span.h"
#include "handlers/pipeline/config.h"

#include <jansson.h>
#include <stdio.h>

/* In the form in which IAM's policies take it. A secret's ARN ends with six characters that nobody chose. */
static const char *resource(const struct sl_secret_name *name, const struct sl_vars *vars,
                            struct sl_arena *arena)
{
    const char *region = sl_vars_or(vars, "AWS_REGION", sl_vars_or(vars, "AWS_DEFAULT_REGION", "REGION"));
    struct sl_span bare = name->name;
    if (name->region.ptr)
        return sl_arena_printf(arena, "%.*s", SL_ARG(bare));
    if (!name->is_parameter)
        return sl_arena_printf(arena,
                               "arn:aws:secretsmanager:%s:ACCOUNT:secret:%.*s-?"
                               "?????",
                               region, SL_ARG(bare));
    if (sl_span_starts(bare, SL_LIT("/")))
        bare = sl_span_from(bare, 1);
    return sl_arena_printf(arena, "arn:aws:ssm:%s:ACCOUNT:parameter/%.*s", region, SL_ARG(bare));
}

static enum sl_status print_object(const json_t *object, const char *path, const struct sl_vars *vars,
                                   struct sl_arena *arena, size_t *n, struct sl_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        struct sl_secret_name secret;
        struct sl_span reference, text = sl_span(json_string_value(value), json_string_length(value));
        if (!sl_config_is_secret(text, &reference) || sl_vars_get(vars, name))
            continue;
        if (sl_secret_parse(reference, &secret, error) != SL_OK) {
            sl_error_context(error, "%s.%s", path, name);
            return SL_FATAL;
        }
        printf("%s  %-18s %-29s %s\n", (*n)++ ? "" : "\nread at start, so that the function's role needs:\n",
               name, secret.is_parameter ? "ssm:GetParameter" : "secretsmanager:GetSecretValue",
               resource(&secret, vars, arena));
    }
    return SL_OK;
}

enum sl_status sl_check_secrets(struct sl_span config, const struct sl_vars *vars, struct sl_arena *arena,
                                struct sl_error *error)
{
    json_t *root = json_loadb(config.ptr, config.len, 0, NULL);
    json_t *more = json_loads(sl_vars_or(vars, "SLUICE_VARIABLES", "{}"), 0, NULL);
    size_t n = 0;
    enum sl_status status = print_object(more, "SLUICE_VARIABLES", vars, arena, &n, error);
    if (status == SL_OK)
        status = print_object(json_object_get(root, "variables"), "$.variables", vars, arena, &n, error);
    json_decref(root);
    json_decref(more);
    return status;
}
