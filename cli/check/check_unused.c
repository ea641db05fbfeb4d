/* Options that change nothing: a table of when each of them does. */
#include "cli/check/check_unused.h"

#include "base/array.h"
#include "base/span.h"

/* Where the route sends: what its target can do with a message. */
enum {
    TO_SQS = 1,
    TO_SNS = 2,
    TO_FIFO = 4, /* of SQS or SNS */
    TO_EVENTS = 8,
    TO_KINESIS = 16,
    TO_FIREHOSE = 32,
    TO_WEBHOOK = 64,
    TO_LINES = 128
};

#define ALL_QUEUES (TO_SQS | TO_SNS | TO_FIFO | TO_EVENTS | TO_KINESIS | TO_FIREHOSE | TO_WEBHOOK | TO_LINES)

/* The option has an effect if the target is one of `targets` (0: any), and if `other` is (or is not) `value`.
 * A value of NULL: if `other` is given. */
struct rule {
    const char *handler, *option;
    unsigned targets;
    const char *other, *value;
    bool is_not;
    const char *why;
};

static const struct rule rules[] = {
    {"notify", "subject", TO_SNS | TO_EVENTS, NULL, NULL, false,
     "only messages of sns: and events: have a subject"},
    {"notify", "attributes", TO_SQS | TO_SNS | TO_FIFO, NULL, NULL, false,
     "only messages of sqs: and sns: have attributes"},
    {"notify", "group", TO_FIFO | TO_KINESIS | TO_WEBHOOK | TO_LINES, NULL, NULL, false,
     "the target has no groups: only a FIFO queue or topic (its name ends with .fifo), kinesis: and https: "
     "have them"},
    {"notify", "dedupe", TO_FIFO | TO_WEBHOOK, NULL, NULL, false,
     "the target does not know repeats: only a FIFO queue or topic (its name ends with .fifo) and https: do"},
    {"notify", "escape", 0, "message", NULL, false,
     "it is about the values in a \"message\", and there is none"},
    {"notify", "body", 0, "message", NULL, true, "the \"message\" is the body"},
    {"archive", "level", 0, "compression", "none", true, "\"compression\" is \"none\""},
    {"replicate", "guard_attribute", 0, "guard", "\"inline\"", false, "\"guard\" is not \"inline\""},
    {"replicate", "write_attribute", 0, "guard", "\"inline\"", false, "\"guard\" is not \"inline\""},
    {"replicate", "deleted_attribute", 0, "guard", "\"inline\"", false, "\"guard\" is not \"inline\""},
    {"replicate", "expires_attribute", 0, "guard", "\"none\"", true,
     "\"guard\" is \"none\": nothing is remembered"},
    {"replicate", "tombstone_days", 0, "guard", "\"none\"", true,
     "\"guard\" is \"none\": nothing is remembered"},
    {"replicate", "epoch", 0, "guard", "\"none\"", true, "\"guard\" is \"none\": no order is compared"},
    {"aggregate", "ledger", 0, "mode", "exact", false, "\"mode\" is not \"exact\": there is no ledger"},
    {"aggregate", "forget_after_days", 0, "mode", "exact", false,
     "\"mode\" is not \"exact\": there is no ledger"},
    {"aggregate", "expires_attribute", 0, "mode", "exact", false,
     "\"mode\" is not \"exact\": there is no ledger"},
};

static unsigned target_of(struct sl_span to)
{
    static const struct {
        const char *scheme;
        unsigned bit;
    } schemes[] = {{"sqs:", TO_SQS},           {"sns:", TO_SNS},       {"events:", TO_EVENTS},
                   {"kinesis:", TO_KINESIS},   {"https:", TO_WEBHOOK}, {"http:", TO_WEBHOOK},
                   {"firehose:", TO_FIREHOSE}, {"jsonl:", TO_LINES},   {"stdout:", TO_LINES}};
    size_t end = 0;
    while (end < to.len && to.ptr[end] != '?')
        end++;
    bool is_fifo = sl_span_ends(sl_span(to.ptr, end), SL_LIT(".fifo"));
    for (size_t i = 0; i < SL_COUNT(schemes); i++)
        if (sl_span_starts(to, sl_span_str(schemes[i].scheme)))
            return is_fifo && (schemes[i].bit & (TO_SQS | TO_SNS)) ? schemes[i].bit | TO_FIFO
                                                                   : schemes[i].bit;
    return ALL_QUEUES;
}

static bool is_given(const struct sl_option_value *value)
{
    return value && value->is_set && value->path && value->path[0] == '$';
}

static bool has_effect(const struct sl_route *route, const struct rule *rule)
{
    const struct sl_option_value *to = sl_options_get(&route->options, "to"),
                                 *other = rule->other ? sl_options_get(&route->options, rule->other) : NULL;
    if (rule->targets && !(target_of(to->text) & rule->targets))
        return false;
    if (!rule->other)
        return true;
    bool is = rule->value ? sl_span_is(other->text, rule->value) : is_given(other);
    return is != rule->is_not;
}

void sl_check_unused(const struct sl_route *route, struct sl_arena *arena, sl_lint_fn find, void *arg)
{
    for (size_t i = 0; i < SL_COUNT(rules); i++) {
        const struct rule *rule = &rules[i];
        if (strcmp(route->config->handler, rule->handler) != 0)
            continue;
        const struct sl_option_value *option = sl_options_get(&route->options, rule->option);
        if (is_given(option) && !has_effect(route, rule))
            find(arg, SL_FINDING_OPTION_UNUSED,
                 sl_arena_printf(arena, "%s: has no effect: %s; remove it", option->path, rule->why));
    }
}
