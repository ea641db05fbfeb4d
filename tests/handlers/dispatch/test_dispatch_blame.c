/* Which record is to blame: where a handler breaks the rules of marking, where it names one record and
 * returns for all, and where an once-only route's rejections are counted. */
#include "tests/support/rig.h"
#include "tests/support/test.h"

#include "handlers/pipeline/host.h"
#include "handlers/pipeline/route.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARKING "'on_failure':'mem:dlq','report_batch_item_failures':true,"
#define REPORT  "'on_failure':'report','report_batch_item_failures':true,"
#define ROUTE   "'routes':[{'name':'r1','handler':'%s'}]}"
#define N       12

static const struct {
    const char *handler;
    size_t which;
} kinds[] = {{"one", RIG_ONE}, {"once", RIG_ONCE}};

/* ---- reasons ---- */

/* What a handler marks a record with, without a reason, and what it returns. */
static enum sl_status says_mark, says_call;

static enum sl_status mark_without_a_reason(void *self, struct sl_slice *slice, struct sl_error *error)
{
    (void)self;
    for (size_t i = 0; i < slice->n; i++)
        sl_host_table.mark(slice, i, says_mark, NULL);
    return says_call == SL_OK ? SL_OK : (sl_host_table.fail)(error, says_call, "Call", "the call failed");
}

/* The call's reason is a record's only if the record failed in the same way. */
static void a_mark_without_a_reason_has_the_calls_only_of_its_own_status(void **state)
{
    (void)state;
    for (says_mark = SL_RETRY; says_mark <= SL_FATAL; says_mark++)
        for (says_call = SL_OK; says_call <= SL_FATAL; says_call++) {
            struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'r1','handler':'one'}]}");
            rig->p->routes[0].loaded.handler.handle = mark_without_a_reason;
            rig_event(rig, 1, NULL);
            rig_run(rig, 1000);
            bool is_same = says_mark == says_call;
            assert_int_equal(rig->answer.error.status, says_mark);
            assert_string_equal(rig->answer.error.code, is_same ? "Call" : "Unspecified");
            assert_non_null(strstr(rig->answer.error.text,
                                   is_same ? ": the call failed" : ": the handler gave no reason"));
            rig_destroy(rig);
        }
}

/* ---- misuse ---- */

static void expect_parked(struct rig *rig, size_t at, bool marks)
{
    const struct rig_port *dlq = rig_port(rig, "dlq");
    assert_int_equal(dlq->n, 1);
    assert_non_null(strstr(dlq->bodies[0], json("'code':'HandlerMisuse'")));
    const char *said =
        json_printf("%s, which is not a status (use SL_OK, SL_RETRY, SL_REJECT or SL_FATAL); "
                    "the record has sequence number %zu",
                    marks ? "the handler marked record 0 with 4" : "the handler returned 4", 1000 + at);
    if (!strstr(dlq->bodies[0], said))
        fail_msg("%s: not \"%s\"", dlq->bodies[0], said);
}

/* One record makes the handler return, or mark, what is no status. Nothing that such a call said is believed:
 * the records of it are given again, and this one alone is rejected, if another passes. After the last record
 * of a once-only route there is no other, and none before it may be repeated: it waits for the next batch. */
static void the_record_of_a_misuse_is_parked_alone(void **state)
{
    (void)state;
    for (size_t at = 0; at < N; at++)
        for (int way = 0; way < 4; way++) {
            bool marks = way & 1, has_control = way < 2 || at < N - 1;
            struct rig *rig = rig_new(json_printf("{" PARKING ROUTE, kinds[way / 2].handler));
            struct rig_handler *s = &rig->handlers[kinds[way / 2].which];
            s->marks = marks;
            s->plan[at] = RIG_MISUSE;
            rig_event(rig, N, NULL);
            rig_run(rig, 60000);
            assert_int_equal(rig->answer.checkpoint, has_control ? N : N - 1);
            assert_int_equal(rig->answer.parked, has_control);
            if (has_control)
                expect_parked(rig, at, marks);
            for (size_t i = 0; i < N; i++)
                assert_true(i == at ? s->times[i] == 0 : s->times[i] >= 1);
            assert_int_equal(sl_pipeline_stats(rig->p, 0).applied, N - 1);
            rig_destroy(rig);
        }
}

/* Every record does: then the handler is broken. Nothing is parked, and a function error has the batch
 * halved. */
static void where_every_record_is_misused_the_handler_is_to_blame(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct rig *rig = rig_new(json_printf("{" PARKING ROUTE, kinds[way / 2].handler));
        struct rig_handler *s = &rig->handlers[kinds[way / 2].which];
        s->marks = way & 1;
        memset(s->plan, RIG_MISUSE, N);
        rig_event(rig, N, NULL);
        rig_run(rig, 60000);
        assert_true(rig->answer.is_error);
        assert_int_equal(rig->answer.error.status, SL_FATAL);
        assert_string_equal(rig->answer.error.code, "HandlerMisuse");
        assert_non_null(
            strstr(rig->answer.error.text, "no other record of the route has passed the same trial"));
        assert_int_equal(rig_port(rig, "dlq")->n, 0);
        assert_int_equal(s->n_applied, 0);
        rig_destroy(rig);
    }
}

/* Alone, the record gets a status after all: what the handler then says counts. */
static void a_trial_may_have_any_outcome(void **state)
{
    (void)state;
    static const struct {
        enum rig_plan plan;
        size_t checkpoint, parked;
    } cases[] = {{RIG_POISON, N, 1}, {RIG_OUTAGE, 4, 0}, {RIG_BROKEN, 4, 0}};
    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new(json_printf("{" PARKING ROUTE, "one"));
        struct rig_handler *s = &rig->handlers[RIG_ONE];
        s->marks = true;
        s->misuses_together = true;
        s->plan[4] = (unsigned char)cases[i].plan;
        rig_event(rig, N, NULL);
        rig_run(rig, 10000);
        assert_int_equal(rig->answer.checkpoint, cases[i].checkpoint);
        assert_int_equal(rig_port(rig, "dlq")->n, cases[i].parked);
        assert_int_equal(rig->answer.error.status, cases[i].checkpoint == N ? SL_OK : (int)cases[i].plan);
        assert_string_equal(rig->answer.error.code, cases[i].checkpoint == N ? "" : "Planned");
        rig_destroy(rig);
    }
}

/* ---- one record is named, and the call rejected ---- */

/* The handler blames record 2 and applies nothing of the call. The records before it were not tried: that is
 * no rejection of theirs, and the batch is not halved for it. */
static void records_before_the_blamed_one_are_tried_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new("{" REPORT "'routes':[{'name':'r1','handler':'once'}]}");
    rig->handlers[RIG_ONCE].blames = true;
    rig->handlers[RIG_ONCE].plan[2] = RIG_POISON;
    rig_event(rig, 5, NULL);
    rig_run(rig, 10000);
    assert_false(rig->answer.is_error);
    assert_int_equal(rig->answer.error.status, SL_RETRY);
    assert_string_equal(rig->answer.error.code, "NotTried");
    rig_answers(rig, "{'batchItemFailures':[{'itemIdentifier':'1000'}]}");
    rig_destroy(rig);
}

/* ---- exit() ---- */

/* A process of its own: its pipeline's handler exits, in it or in a process that it has forked. */
static void run_and_exit(int exits, const char *request_id, bool in_a_fork, int fd, const char *folder)
{
    setenv("TMPDIR", folder, 1); /* what it leaves there goes with the folder */
    struct rig *rig = rig_new("{" PARKING "'routes':[{'name':'r1','handler':'one'}]}");
    rig->log.fd = fd;
    rig->log.level = SL_INFO;
    snprintf(rig->log.request_id, sizeof(rig->log.request_id), "%s", request_id);
    rig->handlers[RIG_ONE].exits = exits;
    rig_event(rig, 3, NULL);
    int status;
    if (in_a_fork && fork() > 0)
        _exit(wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    rig_run(rig, 5000);
    _exit(99);
}

/* A handler that ends the process says so in the log, and Lambda sees a failure. What a process does that it
 * has forked is its own affair. */
static void a_handler_that_exits_is_named(void **state)
{
    (void)state;
    static const struct {
        int exits;
        const char *request_id;
        bool in_a_fork;
        int status;
        const char *log;
    } cases[] = {
        {-1, "", false, 1,
         "ERROR [r1] the handler of route r1 called exit(0); it must return a status instead\n"},
        {7, "", false, 7,
         "ERROR [r1] the handler of route r1 called exit(7); it must return a status instead\n"},
        {7, "id", false, 7,
         "ERROR id [r1] the handler of route r1 called exit(7); it must return a status instead; the batch "
         "will be "
         "delivered again\n"},
        {7, "", true, 7, ""},
        {-1, "", true, 0, ""},
    };
    char *folder = test_folder();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[200], *log;
        snprintf(path, sizeof(path), "%s/log", folder);
        int status, fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
        pid_t pid = fork();
        if (pid == 0)
            run_and_exit(cases[i].exits, cases[i].request_id, cases[i].in_a_fork, fd, folder);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
        log = test_read(path, NULL);
        assert_string_equal(log, cases[i].log);
        close(fd);
        free(log);
    }
    test_folder_remove(folder);
}

/* ---- counts of a once-only route ---- */

/* What a call marks is counted before the first of it is parked; it counts once. */
static void a_once_only_route_may_park_up_to_the_limit(void **state)
{
    (void)state;
    static const struct {
        size_t records; /* of a call; 0: all */
        size_t poison;
        size_t parked;
    } cases[] = {{0, 4, 4}, {0, 5, 0}, {2, 4, 4}, {3, 4, 4}, {3, 5, 3}, {3, 6, 3}, {1, 4, 4}, {1, 5, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char limit[40] = "";
        if (cases[i].records)
            snprintf(limit, sizeof(limit), ",'max_records':%zu", cases[i].records);
        struct rig *rig = rig_new(
            json_printf("{'max_parked':4," PARKING "'routes':[{'name':'r1','handler':'once'%s}]}", limit));
        rig->handlers[RIG_ONCE].marks = true;
        memset(rig->handlers[RIG_ONCE].plan, RIG_POISON, cases[i].poison);
        rig_event(rig, 20, NULL);
        rig_run(rig, 10000);
        assert_int_equal(rig_port(rig, "dlq")->n, cases[i].parked);
        assert_int_equal(rig->answer.error.status, cases[i].parked == cases[i].poison ? SL_OK : SL_FATAL);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_without_a_reason_has_the_calls_only_of_its_own_status),
        cmocka_unit_test(the_record_of_a_misuse_is_parked_alone),
        cmocka_unit_test(where_every_record_is_misused_the_handler_is_to_blame),
        cmocka_unit_test(a_trial_may_have_any_outcome),
        cmocka_unit_test(records_before_the_blamed_one_are_tried_again),
        cmocka_unit_test(a_handler_that_exits_is_named),
        cmocka_unit_test(a_once_only_route_may_park_up_to_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
