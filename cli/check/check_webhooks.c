/* Webhooks in a configuration: see cli/check_webhooks.h. The targets are well formed: they were opened. */
#include "cli/check/check_webhooks.h"

#include "base/url.h"
#include "handlers/pipeline/pipeline.h"
#include "sinks/target.h"

struct finder {
    struct sl_arena *arena;
    sl_lint_fn find;
    void *arg;
};

/* What makes a message's webhook-id, and where it goes. */
struct hook {
    const struct sl_route *route;
    struct sl_span url, dedupe;
    struct sl_url options;
};

static bool read_hook(const struct finder *f, const struct sl_route *route, struct hook *out)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to"),
                                 *dedupe = sl_options_get(&route->options, "dedupe");
    struct sl_span text = to && to->is_set ? to->text : sl_span(NULL, 0);
    if (!sl_span_starts(text, SL_LIT("https:")) && !sl_span_starts(text, SL_LIT("http:")))
        return false;
    const char *mark = memchr(text.ptr, '#', text.len);
    size_t n = mark ? (size_t)(mark - text.ptr) : text.len;
    const char *options = sl_arena_printf(f->arena, "webhook:?%.*s", SL_ARG(sl_span_from(text, n + 1)));
    *out = (struct hook){.route = route, .url = sl_span(text.ptr, n)};
    if (dedupe)
        out->dedupe = dedupe->text;
    return sl_url_parse(sl_span_str(options), f->arena, &out->options, NULL) == SL_OK;
}

/* ---- ids ---- */

static void check_ids(const struct finder *f, struct hook *one, struct hook *other)
{
    if (!sl_span_eq(one->url, other->url) || !sl_span_eq(one->dedupe, other->dedupe) ||
        !sl_span_eq(sl_url_param(&one->options, "id"), sl_url_param(&other->options, "id")))
        return;
    f->find(f->arg, SL_FINDING_WEBHOOK_IDS_SHARED,
            sl_arena_printf(
                f->arena,
                "the routes %s and %s send one record's messages to %.*s with the same webhook-id: a "
                "receiver that drops repeats drops the second; write another #id= into one of the "
                "targets",
                other->route->config->name, one->route->config->name, SL_ARG(sl_target_shown(one->url))));
}

void sl_check_webhooks(struct sl_pipeline *pipeline, struct sl_arena *arena, sl_lint_fn find, void *arg)
{
    const struct finder f = {arena, find, arg};
    struct hook *hooks = sl_arena_alloc(arena, (pipeline->n + 1) * sizeof(*hooks));
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n; i++) {
        if (!read_hook(&f, &pipeline->routes[i], &hooks[n]))
            continue;
        for (size_t k = 0; k < n; k++)
            check_ids(&f, &hooks[n], &hooks[k]);
        n++;
    }
}
