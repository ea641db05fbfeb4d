/* Gathers what a job's texts must not say: what it carried, and every secret that it may have been sent with.
 */
#include "aws/shown.h"

#include "base/array.h"

#include <stdio.h>
#include <strings.h>

/* The lines of the request itself: keys may have been renewed since it was signed. */
static void add_sent(struct sl_mask *mask, const struct sl_http_exchange *exchange)
{
    static const char *const names[] = {"authorization:", "x-amz-security-token:"};
    for (size_t i = 0; exchange && i < exchange->n_headers; i++)
        for (size_t k = 0; k < SL_COUNT(names); k++)
            if (strncasecmp(exchange->headers[i], names[k], strlen(names[k])) == 0)
                sl_mask_secret(mask, sl_span_from(sl_span_str(exchange->headers[i]), strlen(names[k]) + 1));
}

static void add_keys(struct sl_mask *mask, const struct sl_keys *keys)
{
    sl_mask_secret(mask, sl_span_str(keys->access));
    sl_mask_secret(mask, sl_span_str(keys->secret));
    sl_mask_secret(mask, sl_span_str(keys->token));
}

/* A listing's prefix is in the query. */
static struct sl_span carried_path(const struct sl_job *job)
{
    const char *path = job->path ? job->path : "";
    return sl_span_str(job->query ? sl_arena_printf(job->call->arena, "%s?%s", path, job->query) : path);
}

static void fill(struct sl_mask *mask, struct sl_job *job)
{
    const struct sl_client *client = job->client;
    *mask = (struct sl_mask){
        .carried = job->parts,
        .n_carried = job->n_parts,
        .path = carried_path(job),
    };
    for (size_t i = 0; i < job->n_parts; i++)
        job->searched += job->parts[i].len;
    mask->is_closed = job->searched > SL_SHOWN_SEARCH_BYTES;
    add_sent(mask, job->answer);
    if (client->credentials) {
        add_keys(mask, &client->credentials->keys);
        add_keys(mask, &client->credentials->before);
    }
    for (const struct sl_credentials *c = client->aws->credentials; c; c = c->next)
        if (c != client->credentials)
            add_keys(mask, &c->keys);
    sl_mask_secret(mask, sl_span_str(client->login));
    sl_mask_secret(mask, sl_span_str(client->password));
    sl_mask_own(mask, sl_span_str(client->name));
    sl_mask_own(mask, sl_span_str(job->operation));
    sl_mask_own(mask, sl_span_str(client->region));
    sl_mask_own(mask, sl_endpoint_host(&client->endpoint));
}

void sl_shown_part(struct sl_job *job, struct sl_span code, struct sl_span message, struct sl_shown *out)
{
    struct sl_mask mask;
    fill(&mask, job);
    bool good = sl_refusal_is_code(code) && sl_mask_allows(&mask, code);
    snprintf(out->code, sizeof(out->code), "%.*s", SL_ARG(good ? code : SL_LIT("Refused")));
    /* A message may hold a value in any form: OpenSearch writes the bytes of a long term as decimals. So what
     * is not known to be harmless is not shown, whether or not the request has it. */
    mask.is_closed = true;
    sl_mask_show(&mask, message, out->text, sizeof(out->text));
}

void sl_shown_refusal(struct sl_job *job, const struct sl_refusal *refusal, struct sl_shown *out)
{
    if (refusal->is_ours) {
        snprintf(out->code, sizeof(out->code), "%s", refusal->code);
        snprintf(out->text, sizeof(out->text), "%.*s", (int)sizeof(out->text) - 1, refusal->message);
        return;
    }
    sl_shown_part(job, sl_span_str(refusal->code), sl_span_str(refusal->message), out);
    if (strcmp(out->code, refusal->code) != 0)
        snprintf(out->code, sizeof(out->code), "Http%d", job->answer->status);
}

void sl_shown_text(struct sl_job *job, struct sl_span text, char out[SL_MASK_SHOWN_BYTES])
{
    struct sl_mask mask;
    fill(&mask, job);
    sl_mask_show(&mask, text, out, SL_MASK_SHOWN_BYTES);
}
