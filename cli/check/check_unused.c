/* Options that change nothing: each handler says when its options do (handlers/builtin.h). */
#include "cli/check/check_unused.h"

#include "base/array.h"
#include "base/span.h"

#define ALL_QUEUES                                                                                           \
    (SL_TO_SQS | SL_TO_SNS | SL_TO_FIFO | SL_TO_EVENTS | SL_TO_KINESIS | SL_TO_FIREHOSE | SL_TO_WEBHOOK |    \
     SL_TO_LINES)

static unsigned target_of(struct sl_span to)
{
    static const struct {
        const char *scheme;
        unsigned bit;
    } schemes[] = {{"sqs:", SL_TO_SQS},           {"sns:", SL_TO_SNS},       {"events:", SL_TO_EVENTS},
                   {"kinesis:", SL_TO_KINESIS},   {"https:", SL_TO_WEBHOOK}, {"http:", SL_TO_WEBHOOK},
                   {"firehose:", SL_TO_FIREHOSE}, {"jsonl:", SL_TO_LINES},   {"stdout:", SL_TO_LINES}};
    size_t end = 0;
    while (end < to.len && to.ptr[end] != '?')
        end++;
    bool is_fifo = sl_span_ends(sl_span(to.ptr, end), SL_LIT(".fifo"));
    for (size_t i = 0; i < SL_COUNT(schemes); i++)
        if (sl_span_starts(to, sl_span_str(schemes[i].scheme)))
            return is_fifo && (schemes[i].bit & (SL_TO_SQS | SL_TO_SNS)) ? schemes[i].bit | SL_TO_FIFO
                                                                         : schemes[i].bit;
    return ALL_QUEUES;
}

static bool is_given(const struct sl_option_value *value)
{
    return value && value->is_set && value->path && value->path[0] == '$';
}

static bool has_effect(const struct sl_route *route, const struct sl_option_use *use)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to"),
                                 *other = use->other ? sl_options_get(&route->options, use->other) : NULL;
    if (use->targets && !(target_of(to->text) & use->targets))
        return false;
    if (!use->other)
        return true;
    bool is = use->value ? sl_span_is(other->text, use->value) : is_given(other);
    return is != use->is_not;
}

void sl_check_unused(const struct sl_route *route, struct sl_arena *arena, sl_lint_fn find, void *arg)
{
    const struct sl_option_use *use = sl_builtin_named(route->config->handler)->uses;
    for (; use && use->option; use++) {
        const struct sl_option_value *option = sl_options_get(&route->options, use->option);
        if (is_given(option) && !has_effect(route, use))
            find(arg, SL_FINDING_OPTION_UNUSED,
                 sl_arena_printf(arena, "%s: has no effect: %s; remove it", option->path, use->why));
    }
}
