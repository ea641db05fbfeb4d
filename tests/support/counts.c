/* The sums that every dispatch has to keep. */
#include "tests/support/counts.h"

struct counts counts_of(const struct sl_pipeline *p)
{
    struct counts sum = {0};
    for (size_t i = 0; i < sl_pipeline_routes(p); i++) {
        const struct sl_route_stats s = sl_pipeline_stats(p, i);
        sum.matched += s.matched;
        sum.applied += s.applied;
        sum.parked += s.parked;
        sum.failed += s.failed;
        sum.skipped += s.skipped;
        sum.set_aside += s.set_aside;
    }
    return sum;
}

static bool adds_up(const struct sl_route_stats *s)
{
    return s->matched == s->applied + s->parked + s->failed + s->skipped + s->set_aside;
}

const char *counts_wrong(const struct sl_pipeline *p, const struct counts *before,
                         const struct sl_answer *answer, const struct sl_batch *batch, bool remembers)
{
    const struct counts now = counts_of(p);
    for (size_t i = 0; i < sl_pipeline_routes(p); i++) {
        const struct sl_route_stats s = sl_pipeline_stats(p, i);
        if (!adds_up(&s))
            return "matched is not applied + parked + failed + skipped + set aside";
        uint64_t effects = 0;
        for (size_t k = 0; k < sizeof(s.effects) / sizeof(s.effects[0]); k++)
            effects += s.effects[k];
        if (effects != s.applied)
            return "the effects are not as many as what was applied";
    }
    if (now.parked - before->parked != answer->parked)
        return "the routes parked more or less than the answer says";
    if (now.set_aside - before->set_aside != answer->set_aside)
        return "the routes set aside more or less than the answer says";
    if (answer->error.status != SL_OK || answer->is_error) {
        bool is_a_records = batch->n && !batch->is_window && !answer->is_ruined;
        return is_a_records && now.failed == before->failed ? "a record failed, and no route counts it"
                                                            : NULL;
    }
    if (now.failed != before->failed)
        return "all is well, and a route counts a failure";
    if (now.skipped != before->skipped && !remembers)
        return "all is well, and a route skipped something";
    return NULL;
}
