/* `sluice leases`: the places of an application of KCL 3 are carried over to a lease table of ours, or back.
 */
#include "base/arn.h"
#include "base/clock.h"
#include "base/vars.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "live/lease/handover.h"
#include "live/lease/lease_table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_S 12 /* longer than the failover time that both have unless another is set, 10 s */

struct carrying {
    const char *from, *from_kcl3, *to, *to_kcl3, *stream;
    bool is_many, writes;
    int64_t wait_s;
    struct sl_log log;
    struct sl_sinks sinks;
    struct sl_handover_options options;
    struct sl_handover_counts counts;
    struct sl_error error;
};

static void say(void *arg, const struct sl_handover_step *step)
{
    static const char *const words[] = {"same", "new", "moved", "removed"};
    (void)arg;
    printf("%-8s %s  %s%s%s\n", words[step->act], step->shard, step->before ? step->before : "",
           step->act == SL_HANDOVER_MOVED ? " -> " : "",
           step->act == SL_HANDOVER_MOVED || !step->before ? step->after : "");
}

static enum sl_status make_table(void *arg, struct sl_error *error)
{
    struct carrying *c = arg;
    const char *name = c->options.to_name;
    bool is_created = false;
    enum sl_status status =
        sl_lease_table_prepare(&c->sinks, sl_span_str(name), c->options.is_given, &is_created, error);
    if (is_created)
        fprintf(stderr, "sluice leases: %s did not exist: it was created, paid by request\n", name);
    return status;
}

static enum sl_status bad(struct carrying *c, const char *text)
{
    return sl_fail(&c->error, SL_REJECT, "Usage", "%s", text);
}

static enum sl_status check(struct carrying *c)
{
    bool takes = c->from_kcl3 && c->to && !c->from && !c->to_kcl3,
         gives = c->from && c->to_kcl3 && !c->from_kcl3 && !c->to;
    struct sl_span arn = sl_span_str(c->stream ? c->stream : "");
    if (!takes && !gives)
        return bad(c, "write --from-kcl3 TABLE --to TABLE, or --from TABLE --to-kcl3 TABLE");
    if (!c->stream)
        return bad(c, "--stream is missing: the ARN of the stream that the leases are of");
    if (!sl_span_is(sl_arn_part(arn, 2), "dynamodb") || !strstr(c->stream, "/stream/"))
        return bad(c, "--stream: is not the ARN of a stream of DynamoDB, "
                      "arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL");
    if (c->is_many && !gives)
        return bad(c, "--several-streams is for --to-kcl3");
    c->options = (struct sl_handover_options){.from_name = takes ? c->from_kcl3 : c->from,
                                              .to_name = takes ? c->to : c->to_kcl3,
                                              .clock = sl_clock_system(),
                                              .stream_arn = c->stream,
                                              .is_given = gives,
                                              .is_many = c->is_many,
                                              .wait_ms = c->wait_s * 1000,
                                              .writes = c->writes,
                                              .prepare = make_table,
                                              .say = say,
                                              .arg = c};
    return SL_OK;
}

static enum sl_status open_tables(struct carrying *c)
{
    struct sl_handover_options *o = &c->options;
    enum sl_status status =
        sl_target_table_to_read(&c->sinks, sl_span_str(o->from_name), &o->from, &c->error);
    if (status == SL_OK)
        status = sl_target_table(&c->sinks, sl_span_str(o->to_name), &o->to, &c->error);
    return status == SL_OK ? SL_OK : SL_REJECT; /* what was written is wrong: nothing was asked yet */
}

static void summarize(const struct carrying *c)
{
    const struct sl_handover_counts *n = &c->counts;
    printf("%zu leases: %zu new, %zu moved, %zu the same; %zu removed%s\n", n->leases,
           n->acts[SL_HANDOVER_NEW], n->acts[SL_HANDOVER_MOVED], n->acts[SL_HANDOVER_SAME],
           n->acts[SL_HANDOVER_REMOVED], c->writes ? "" : "; nothing was written: --write does it");
    if (n->others)
        printf("%zu rows of %s are of other streams, or no leases: left alone\n", n->others,
               c->options.from_name);
    if (n->from_start)
        printf("%zu leases have handled nothing since LATEST: KCL begins them with the oldest record\n",
               n->from_start);
}

static enum sl_status run(struct carrying *c)
{
    enum sl_status status = check(c);
    if (status == SL_OK)
        status = open_tables(c);
    if (status == SL_OK)
        status = sl_handover_run(&c->options, &c->counts, &c->error);
    if (status == SL_OK)
        summarize(c);
    return status;
}

int sl_verb_leases(int argc, char **argv)
{
    struct carrying c = {.wait_s = WAIT_S, .error = SL_NO_ERROR};
    const struct sl_flag flags[] = {
        {"from-kcl3", SL_FLAG_TEXT, &c.from_kcl3, "TABLE",
         "the lease table of an application of KCL 3 that has stopped: dynamodb://NAME"},
        {"to", SL_FLAG_TEXT, &c.to, "TABLE",
         "the lease table for `sluice tail --leases`; it is made if it is not there"},
        {"from", SL_FLAG_TEXT, &c.from, "TABLE",
         "the lease table of `sluice tail --leases`, which has stopped"},
        {"to-kcl3", SL_FLAG_TEXT, &c.to_kcl3, "TABLE",
         "the lease table for an application of KCL 3: its name is the application's; it is made if it is "
         "not there"},
        {"stream", SL_FLAG_TEXT, &c.stream, "ARN", "the stream that the leases are of"},
        {"several-streams", SL_FLAG_BOOL, &c.is_many, NULL,
         "a new table is for a scheduler of several streams (MultiStreamTracker)"},
        {"wait-seconds", SL_FLAG_INTEGER, &c.wait_s, "N",
         "between two looks at the tables, which show that nobody works on them (12): more than the failover "
         "time"},
        {"write", SL_FLAG_BOOL, &c.writes, NULL, "do it; without it, what would be done is printed"},
        {.type = SL_FLAG_END},
    };
    static const struct sl_flag_range ranges[] = {{"wait-seconds", 0, 3600}, {.name = NULL}};
    const struct sl_usage usage = {
        .line = "leases [flags]",
        .summary =
            "Carries the places of an application of KCL 3 (DynamoDB Streams Kinesis Adapter 2) over to "
            "`sluice tail --leases`, or back: once, and while neither runs. (With KCL 1 both use one "
            "table, and need no carrying over.) The source stays as it is; a place never goes back.",
        .example = "sluice leases --from-kcl3 dynamodb://app --to dynamodb://leases --stream ARN",
        .flags = flags,
        .ranges = ranges,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    const struct sl_vars vars = sl_command_environment();
    sl_log_init(&c.log, STDERR_FILENO, SL_WARN, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&c.sinks, sl_clock_system(), &c.log, &vars);
    enum sl_status status = run(&c);
    if (status != SL_OK)
        (void)sl_flags_complain("leases", &c.error);
    if (c.options.from)
        c.options.from->close(c.options.from);
    if (c.options.to)
        c.options.to->close(c.options.to);
    sl_sinks_clean_up(&c.sinks);
    sl_log_clean_up(&c.log);
    return status == SL_OK ? SL_EXIT_OK : status == SL_REJECT ? SL_EXIT_BAD : SL_EXIT_FAILED;
}
