/* A verification's counts. */
#include "data/verify/summary.h"

#include "base/json_write.h"
#include "data/verify/finding.h"

static void add_up(struct sl_verify_route *sum, const struct sl_verify_route *r)
{
    sum->equal += r->equal;
    sum->different += r->different;
    sum->pending += r->pending;
    sum->unsettled += r->unsettled;
    sum->not_comparable += r->not_comparable;
    for (int k = SL_VERDICT_MISSING; k < SL_VERDICT_NOT_JUDGED; k++)
        sum->kinds[k] += r->kinds[k];
}

void sl_verify_sum(const struct sl_verify *work, struct sl_verify_route *sum)
{
    for (size_t i = 0; i < sl_verify_routes(work); i++)
        add_up(sum, sl_verify_route(work, i));
}

void sl_verify_add_counts(struct sl_buffer *b, const struct sl_verify_route *r)
{
    sl_json_add_integer(b, "equal", (int64_t)r->equal);
    sl_json_add_integer(b, "different", (int64_t)r->different);
    sl_json_add_integer(b, "pending", (int64_t)r->pending);
    sl_json_add_integer(b, "unsettled", (int64_t)r->unsettled);
    sl_json_add_integer(b, "not_comparable", (int64_t)r->not_comparable);
}

static void add_kinds(struct sl_buffer *b, const struct sl_verify_route *r, enum sl_verdict but)
{
    for (int k = SL_VERDICT_MISSING; k < SL_VERDICT_NOT_JUDGED; k++)
        if (r->kinds[k] && k != (int)but)
            sl_json_add_integer(b, sl_finding_kind((enum sl_verdict)k), (int64_t)r->kinds[k]);
}

static void add_route(struct sl_buffer *b, const struct sl_verify_route *r)
{
    sl_json_add_string(b, sl_span_str(r->name));
    sl_buffer_add_str(b, ":{");
    if (r->reason)
        sl_json_add_member(b, "not_comparable_because", sl_span_str(r->reason));
    sl_verify_add_counts(b, r);
    sl_json_add_integer(b, "left_out", (int64_t)r->left_out);
    add_kinds(b, r, SL_VERDICT_DIFFERENT); /* as before "kinds": that kind's name is a count's, too */
    sl_json_add_raw(b, "kinds", SL_LIT("{"));
    add_kinds(b, r, SL_VERDICT_NOT_JUDGED);
    sl_buffer_add_str(b, "}}");
}

void sl_verify_add_routes(struct sl_buffer *b, const struct sl_verify *work)
{
    sl_json_add_raw(b, "routes", SL_LIT("{"));
    for (size_t i = 0; i < sl_verify_routes(work); i++) {
        sl_buffer_add_str(b, i ? "," : "");
        add_route(b, sl_verify_route(work, i));
    }
    sl_buffer_add_char(b, '}');
}
