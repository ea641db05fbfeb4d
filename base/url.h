/* Targets as text: scheme, rest, and the parameters after '?'. Percent escapes in parameters are resolved; an
 * unknown parameter is refused by name, so that a misspelt one is noticed. */
#ifndef SL_BASE_URL_H
#define SL_BASE_URL_H

#include "base/arena.h"
#include "base/buffer.h"

#define SL_URL_PARAMS 16

struct sl_url {
    struct sl_span shown;  /* for messages: see sl_url_shown */
    struct sl_span scheme; /* "s3" of "s3://bucket", "sns" of "sns:arn:..." */
    struct sl_span rest;   /* after "scheme:" or "scheme://", without the parameters; as written */
    bool has_slashes;      /* "//" followed the scheme */
    struct {
        struct sl_span name, value;
        bool used;
    } params[SL_URL_PARAMS];
    size_t n_params;
};

/* What may be said of a URL, of whatever scheme: neither a name and a password before '@', nor what follows
 * the '?'. A part of `text`. */
struct sl_span sl_url_shown(struct sl_span text);

/* What it points to lives in `arena` and as long as `text`. On failure SL_FATAL, with the target in the text.
 * */
enum sl_status sl_url_parse(struct sl_span text, struct sl_arena *arena, struct sl_url *out,
                            struct sl_error *error) SL_MUST_USE;

/* The parameter's value (followed by a NUL); absent when it is not there. */
struct sl_span sl_url_param(struct sl_url *url, const char *name);

/* Refuses parameters that sl_url_param was never asked for. `known` is the list for the error's text:
 * "region, endpoint".
 * */
enum sl_status sl_url_done(const struct sl_url *url, const char *known, struct sl_error *error) SL_MUST_USE;

/* Appends the text with its percent escapes resolved; a '%' without two hexadecimal digits stays as it is. */
void sl_url_decode(struct sl_buffer *out, struct sl_span text);

#endif
