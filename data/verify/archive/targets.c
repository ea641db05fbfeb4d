/* Which routes archive, where to, and whether that can be verified. */
#include "data/verify/archive/targets.h"

#include "base/hash.h"
#include "base/span.h"
#include "handlers/pipeline/route.h"

static const char *reason_of(const struct sl_route *route)
{
    if (!sl_span_is(sl_options_text(&route->options, "format"), "record"))
        return "only format record keeps what a change was before";
    if (route->when)
        return "its \"when\" leaves out changes, so gaps are normal";
    return NULL;
}

size_t sl_archives_find(struct sl_pipeline *pipeline, const bool *is_chosen, struct sl_arena *arena,
                        struct sl_archive_target **out)
{
    size_t n = 0;
    *out = sl_arena_zalloc(arena, (pipeline->n + 1) * sizeof(**out));
    for (size_t i = 0; i < pipeline->n; i++) {
        struct sl_route *route = &pipeline->routes[i];
        if ((is_chosen && !is_chosen[i]) || sl_route_makes(route) != SL_MAKES_OBJECTS)
            continue;
        const struct sl_option_value *to = sl_options_get(&route->options, "to");
        (*out)[n++] = (struct sl_archive_target){.route = route->config->name,
                                                 .url = to->text,
                                                 .port = to->objects,
                                                 .why_not = reason_of(route),
                                                 .is_there = to->objects->list && to->objects->read};
    }
    return n;
}

uint64_t sl_archives_digest(const struct sl_archive_target *targets, size_t n)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < n; i++) {
        digest = sl_hash_mix(digest, sl_span_str(targets[i].route));
        digest = sl_hash_mix(digest, targets[i].url);
        digest = sl_hash_mix(digest, sl_span_str(targets[i].why_not ? "-" : "verified"));
    }
    return digest;
}
