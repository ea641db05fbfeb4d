/* What is known of an index: how many documents, and how many bytes they take. */
#include "sinks/opensearch/opensearch_private.h"

#include "aws/answer.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "sinks/result.h"

static bool take_number(struct sl_span of, const char *group, const char *name, uint64_t *out)
{
    struct sl_span digits = sl_opensearch_digits(sl_json_walk_member(of, sl_span_str(group)), name);
    *out = 0;
    for (size_t i = 0; i < digits.len; i++)
        *out = *out * 10 + (uint64_t)(digits.ptr[i] - '0');
    return digits.len > 0;
}

/* {"_shards":{..},"_all":{"primaries":{"docs":{"count":2},"store":{"size_in_bytes":29676}},..}} */
static enum sl_job_next answered(struct sl_job *job)
{
    struct sl_table_facts *facts = job->context;
    struct sl_span body = sl_buffer_span(&job->answer->body);
    if (!sl_answer_is_json(body))
        return SL_JOB_BROKEN;
    struct sl_span of = sl_json_walk_member(sl_json_walk_member(body, SL_LIT("_all")), SL_LIT("primaries"));
    bool is_whole =
        sl_span_is(sl_opensearch_digits(sl_json_walk_member(body, SL_LIT("_shards")), "failed"), "0");
    return is_whole && take_number(of, "docs", "count", &facts->items) &&
                   take_number(of, "store", "size_in_bytes", &facts->bytes)
               ? SL_JOB_DONE
               : SL_JOB_BROKEN;
}

static const struct sl_job_kind kind = {answered, sl_opensearch_refused};

void sl_opensearch_describe(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                            const struct sl_call *call)
{
    struct sl_opensearch *index = (struct sl_opensearch *)port;
    struct sl_error error = SL_NO_ERROR;
    *facts = (struct sl_table_facts){.is_on_demand = true};
    if (table.ptr) {
        (void)sl_fail(&error, SL_FATAL, "InvalidTarget",
                      "%.*s: an OpenSearch target is one index, without tables beside it", SL_ARG(table));
        sl_result_refuse(&facts->result, call->arena, &error);
    } else if (sl_opensearch_resolve(index, call, &facts->result) == SL_OK) {
        struct sl_job job = sl_opensearch_job(index, &kind, "Stats", "/_stats/docs,store");
        job.method = "GET";
        job.context = facts;
        job.of_no_record = true;
        sl_job_run(&index->client, &job, 1, call);
        sl_result_job(&facts->result, &job);
    }
    sl_arena_reset(index->client.aws->scratch);
}
