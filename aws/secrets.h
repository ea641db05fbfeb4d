/* Secrets that a configuration names: of Secrets Manager and of Systems Manager's Parameter Store.
 *
 *   secretsmanager:NAME        the secret's text; NAME may be the secret's ARN
 *   secretsmanager:NAME:KEY    of a secret that is a JSON object, what its member KEY holds: text or a number
 *   ssm:NAME                   a parameter's value, decrypted; NAME may be the parameter's ARN
 *
 * An ARN says the Region; a name is of the process's. Each is read once a process, with the process's keys.
 * What was read is in memory that is wiped at the end (aws->lasting), and in no error, log or report. */
#ifndef SL_AWS_SECRETS_H
#define SL_AWS_SECRETS_H

#include "aws/aws.h"

/* A target that refuses our login has the secrets read again when they are so old. */
#define SL_SECRETS_MS (5 * 60 * 1000)

struct sl_secret_name {
    bool is_parameter;
    struct sl_span name, key; /* `key` absent: the whole */
    struct sl_span region;    /* of an ARN; absent: a name */
};

/* SL_FATAL, code "InvalidSecret", when it is not one of the three forms. All in `out` are parts of
 * `reference`.
 */
enum sl_status sl_secret_parse(struct sl_span reference, struct sl_secret_name *out,
                               struct sl_error *error) SL_MUST_USE;

/* SL_RETRY when the service did not answer in time, SL_FATAL when the secret is not there, may not be read,
 * or is not text. `out` lives as long as `aws`. */
enum sl_status sl_secret_read(struct sl_aws *aws, struct sl_span reference, const char **out,
                              struct sl_error *error) SL_MUST_USE;

/* If a login was refused, and SL_SECRETS_MS have passed: reads all of them again, and returns whether one has
 * another value. One that cannot be read keeps its value, which is logged. */
bool sl_secrets_changed(struct sl_aws *aws);

/* Each part of `text` that is what a secret holds becomes "...". */
void sl_secrets_hide(const struct sl_aws *aws, char *text);

#endif
