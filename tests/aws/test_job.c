/* One job's way: what a kind says of an answer, how often it is sent, on a virtual clock; jobs that come and
 * go; what a client is told by its variables. */
#include "tests/support/test.h"

#include "aws/job.h"
#include "tests/support/scripted_server.h"

#include <stdio.h>

#define JOBS 6

/* ---- a world ---- */

/* What is answered and what the kind says of it, one for each attempt; the last one for all further ones. */
struct script {
    int status[12];
    const char *code[12]; /* of a refusal; NULL: "{}" */
    const char *headers;  /* of each answer; NULL: none */
    enum sl_job_next said[12];
    size_t n;
};

struct world {
    struct sl_clock_virtual clock;
    struct scripted_server *server;
    const struct script *script;
    size_t answers, asked; /* of the server, of the kind */
    char body[100];
    const char *list[4];
    char attempts[40];
    struct sl_vars vars;
    struct sl_aws *aws;
    struct sl_arena *arena;
    struct sl_client client;
    struct sl_call call;
    struct sl_job jobs[JOBS];
};

static size_t step_of(const struct world *w, size_t i)
{
    return i < w->script->n ? i : w->script->n - 1;
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct world *w = arg;
    size_t i = step_of(w, w->answers++);
    (void)request;
    reply->status = w->script->status[i] ? w->script->status[i] : 200;
    snprintf(w->body, sizeof(w->body), w->script->code[i] ? "{\"__type\":\"x#%s\"}" : "{}",
             w->script->code[i]);
    reply->body = sl_span_str(w->body);
    reply->headers = w->script->headers;
}

/* Which of the requests for keys fails; 0: none. */
static unsigned find_calls, find_fails;

static enum sl_status find(struct sl_aws *aws, const char *role, int64_t deadline_ms, struct sl_keys *out,
                           struct sl_error *error)
{
    (void)aws;
    (void)role;
    (void)deadline_ms;
    if (++find_calls == find_fails)
        return sl_fail(error, SL_RETRY, "NoKeys", "the source is silent");
    *out = (struct sl_keys){.access = "AKID", .secret = "secret", .origin = "the test"};
    return SL_OK;
}

/* `attempts`: of AWS_MAX_ATTEMPTS, NULL: not set. */
static void open_world(struct world *w, const struct script *script, const char *attempts)
{
    struct sl_url url;
    struct sl_error error = SL_NO_ERROR;
    char target[200];
    *w = (struct world){.script = script};
    sl_clock_virtual_init(&w->clock, (int64_t)1700000000 * 1000000000, 7);
    w->server = scripted_server_start(answer, w);
    snprintf(w->attempts, sizeof(w->attempts), "AWS_MAX_ATTEMPTS=%s", attempts ? attempts : "");
    w->list[0] = attempts ? w->attempts : NULL;
    w->vars.list = w->list;
    w->aws = sl_aws_new(&w->clock.clock, NULL, &w->vars, find);
    w->arena = sl_arena_new(8192);
    w->call = (struct sl_call){w->arena, 3600 * 1000};
    snprintf(target, sizeof(target), "test:?region=us-east-1&endpoint=%s", scripted_server_url(w->server));
    const struct sl_client_options options = {.service = &sl_service_dynamodb, .url = &url};
    assert_int_equal(
        sl_url_parse(sl_span_str(sl_arena_copy(w->arena, sl_span_str(target))), w->arena, &url, &error),
        SL_OK);
    assert_int_equal(sl_client_init(&w->client, w->aws, &options, &error), SL_OK);
}

static void close_world(struct world *w)
{
    sl_client_clean_up(&w->client);
    sl_aws_destroy(w->aws);
    sl_arena_destroy(w->arena);
    scripted_server_stop(w->server);
}

static enum sl_job_next say(struct sl_job *job)
{
    struct world *w = job->context;
    size_t i = step_of(w, w->asked++);
    enum sl_job_next next = w->script->said[i];
    if (next != SL_JOB_DONE) {
        job->code = "Said";
        job->text = "the kind said so";
    }
    return next;
}

static const struct sl_job_kind kind = {say, NULL};

static struct sl_job *add_jobs(struct world *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        w->jobs[i] = (struct sl_job){.kind = &kind, .context = w, .operation = "PutItem"};
    return w->jobs;
}

/* ---- what a kind says ---- */

static void a_kind_decides_how_often_it_is_sent(void **state)
{
    (void)state;
    static const struct {
        struct script script;
        size_t sends;
        enum sl_status status;
        const char *code;
    } cases[] = {
        {{.said = {SL_JOB_DONE}, .n = 1}, 1, SL_OK, NULL},
        {{.said = {SL_JOB_AGAIN, SL_JOB_DONE}, .n = 2}, 2, SL_OK, NULL},
        {{.said = {SL_JOB_AGAIN, SL_JOB_AGAIN, SL_JOB_AGAIN, SL_JOB_DONE}, .n = 4}, 4, SL_OK, NULL},
        {{.said = {SL_JOB_AGAIN}, .n = 1}, 4, SL_RETRY, "Said"},
        {{.said = {SL_JOB_THROTTLED}, .n = 1}, 4, SL_RETRY, "Said"},
        {{.said = {SL_JOB_BROKEN}, .n = 1}, 4, SL_RETRY, "BrokenAnswer"},
        {{.said = {SL_JOB_BROKEN, SL_JOB_DONE}, .n = 2}, 2, SL_OK, NULL},
        {{.said = {SL_JOB_FATAL}, .n = 1}, 1, SL_FATAL, "Said"},
        {{.said = {SL_JOB_DOUBT}, .n = 1}, 1, SL_FATAL, "Said"},
        {{.said = {SL_JOB_AT_ONCE, SL_JOB_AT_ONCE, SL_JOB_DONE}, .n = 3}, 3, SL_OK, NULL},
        /* it has learned all it can: 8 times, and no more */
        {{.said = {SL_JOB_AT_ONCE}, .n = 1}, 9, SL_FATAL, "Http200"},
        {{.said = {SL_JOB_AGAIN, SL_JOB_AT_ONCE, SL_JOB_AGAIN, SL_JOB_AT_ONCE, SL_JOB_AGAIN, SL_JOB_DONE},
          .n = 6},
         6,
         SL_OK,
         NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        open_world(&w, &cases[i].script, NULL);
        struct sl_job *job = add_jobs(&w, 1);
        sl_job_run(&w.client, job, 1, &w.call);
        assert_int_equal(job->state, SL_JOB_OVER);
        assert_int_equal(job->status, cases[i].status);
        assert_int_equal(scripted_server_requests(w.server), cases[i].sends);
        assert_false(job->not_sent);
        if (!cases[i].code)
            assert_null(job->code);
        else if (strcmp(job->code, cases[i].code) != 0)
            fail_msg("%zu: %s, not %s", i, job->code, cases[i].code);
        close_world(&w);
    }
}

/* A part was taken each time: none of the rounds counts. */
static enum sl_job_next progress(struct sl_job *job)
{
    struct world *w = job->context;
    job->progressed = w->asked < 19;
    return say(job);
}

static void progress_is_not_counted(void **state)
{
    (void)state;
    static const struct script again = {.said = {SL_JOB_AGAIN}, .n = 1};
    static const struct sl_job_kind progressing = {progress, NULL};
    struct world w;
    open_world(&w, &again, NULL);
    struct sl_job *job = add_jobs(&w, 1);
    job->kind = &progressing;
    sl_job_run(&w.client, job, 1, &w.call);
    assert_int_equal(scripted_server_requests(w.server),
                     19 + 3); /* the last one with progress is the first of four */
    close_world(&w);
}

/* ---- refusals ---- */

static void refusals_are_judged(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *code;
        size_t sends;
        enum sl_status status;
        bool is_too_much; /* the pace hears of it */
    } cases[] = {
        {400, "ThrottlingException", 4, SL_RETRY, true},
        {400, "ProvisionedThroughputExceededException", 4, SL_RETRY, true},
        {500, "InternalServerError", 4, SL_RETRY, false},
        {503, "ServiceUnavailable", 4, SL_RETRY, true},
        {400, "TransactionConflictException", 4, SL_RETRY, false},
        {400, "AccessDeniedException", 1, SL_FATAL, false},
        {400, "ExpiredTokenException", 1, SL_FATAL, false},
        {400, "NeverHeardOfException", 1, SL_FATAL, false},
        {201, NULL, 4, SL_RETRY, false},
        {299, NULL, 4, SL_RETRY, false},
        {300, NULL, 1, SL_FATAL, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.status = {cases[i].http}, .code = {cases[i].code}, .n = 1};
        struct world w;
        open_world(&w, &script, NULL);
        struct sl_job *job = add_jobs(&w, 1);
        sl_job_run(&w.client, job, 1, &w.call);
        size_t sends = scripted_server_requests(w.server);
        if (job->status != cases[i].status || sends != cases[i].sends)
            fail_msg("%d %s: %d after %zu requests: %s", cases[i].http, cases[i].code, (int)job->status,
                     sends, job->text);
        bool said = w.client.pace.refused_share > 0 || w.client.pace.limit < SL_PACE_BEGIN;
        if (said != cases[i].is_too_much)
            fail_msg("%d %s: the pace %s of it", cases[i].http, cases[i].code,
                     said ? "hears" : "does not hear");
        close_world(&w);
    }
}

static void run_one(struct world *w, struct sl_job *job)
{
    sl_job_run(&w->client, job, 1, &w->call);
    assert_int_equal(job->state, SL_JOB_OVER);
}

/* Keys that are refused as expired are fetched again; where that fails, the refusal is what is said, and the
 * next job tries again. */
static void expired_keys_that_cannot_be_renewed_are_a_refusal(void **state)
{
    (void)state;
    static const struct script script = {
        .status = {400, 200}, .code = {"ExpiredTokenException", NULL}, .said = {SL_JOB_DONE}, .n = 2};
    for (find_fails = 0; find_fails <= 2; find_fails += 2) {
        struct world w;
        find_calls = 0;
        open_world(&w, &script, NULL);
        struct sl_job *jobs = add_jobs(&w, 2);
        w.client.credentials->keys.expires_s = 0;
        run_one(&w, &jobs[0]);
        assert_int_equal(find_calls, 2);
        if (find_fails) {
            assert_int_equal(jobs[0].status, SL_FATAL);
            assert_string_equal(jobs[0].code, "ExpiredTokenException");
            assert_non_null(strstr(jobs[0].text, "the credentials have expired"));
        }
        run_one(&w, &jobs[1]);
        assert_int_equal(jobs[1].status, SL_OK);
        close_world(&w);
    }
    find_fails = 0;
}

/* Each is judged by what was said of the same operation in the same place. */
static void doubts_are_judged_by_their_like(void **state)
{
    (void)state;
    static const struct script script = {.said = {SL_JOB_DONE, SL_JOB_DOUBT}, .n = 2};
    struct world w;
    open_world(&w, &script, NULL);
    w.client.pace.limit = w.client.pace.cap = 1; /* one after the other */
    struct sl_job *jobs = add_jobs(&w, 5);
    jobs[2].operation = "UpdateItem";
    jobs[3].place = 9;
    sl_job_run(&w.client, jobs, 5, &w.call);
    static const enum sl_status wanted[] = {SL_OK, SL_REJECT, SL_FATAL, SL_FATAL, SL_REJECT};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(jobs[i].status, wanted[i]);
    close_world(&w);
}

static void a_checksum_is_a_number_and_the_answer_s(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool is_good;
    } cases[] = {{NULL, true},      {"2745614147", true},   {"02745614147", true}, {"2745614146", false},
                 {"0", false},      {"-2745614147", false}, {"27456141a7", false}, {"2745614147x", false},
                 {"27456/", false}, {"27456:", false},      {"7040581443", false}}; /* 2^32 more */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[64];
        struct script script = {.said = {SL_JOB_DONE}, .n = 1, .headers = cases[i].header ? line : NULL};
        struct world w;
        snprintf(line, sizeof(line), "x-amz-crc32: %s\r\n", cases[i].header ? cases[i].header : "");
        open_world(&w, &script, "2");
        struct sl_job *job = add_jobs(&w, 1);
        run_one(&w, job);
        if (job->status != (cases[i].is_good ? SL_OK : SL_RETRY))
            fail_msg("%s: %d", line, (int)job->status);
        if (!cases[i].is_good)
            assert_string_equal(job->code, "ChecksumMismatch");
        assert_int_equal(scripted_server_requests(w.server), cases[i].is_good ? 1 : 2);
        close_world(&w);
    }
}

/* What would meet all others too ends those that were not begun: they are not sent. */
static void one_failure_may_end_all(void **state)
{
    (void)state;
    static const struct script fatal = {.said = {SL_JOB_FATAL}, .n = 1};
    struct world w;
    open_world(&w, &fatal, NULL);
    w.client.pace.limit = w.client.pace.cap = 1;
    struct sl_job *jobs = add_jobs(&w, JOBS);
    sl_job_run(&w.client, jobs, JOBS, &w.call);
    for (size_t i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].state, SL_JOB_OVER);
        assert_int_equal(jobs[i].status, SL_FATAL);
        assert_string_equal(jobs[i].code, "Said");
        assert_int_equal(jobs[i].not_sent, i > 0);
    }
    assert_int_equal(scripted_server_requests(w.server), 1);
    close_world(&w);
}

static void nothing_is_begun_at_the_deadline(void **state)
{
    (void)state;
    static const struct script again = {.said = {SL_JOB_AGAIN}, .n = 1};
    for (int64_t left = 0; left <= 1; left++) {
        struct world w;
        open_world(&w, &again, NULL);
        w.clock.ms = 1000;
        w.call.deadline_ms = 1000 + left;
        struct sl_job *jobs = add_jobs(&w, 2);
        w.client.pace.limit = w.client.pace.cap = 1;
        sl_job_run(&w.client, jobs, 2, &w.call);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(jobs[i].status, SL_RETRY);
            if (!left) {
                assert_string_equal(jobs[i].code, "DeadlineExceeded");
                assert_true(jobs[i].not_sent);
            }
        }
        assert_in_range(scripted_server_requests(w.server), 0, left ? 2 : 0);
        close_world(&w);
    }
}

static void oversleep(struct sl_clock *clock, int64_t ms)
{
    ((struct sl_clock_virtual *)(void *)clock)->ms += ms + 3600 * 1000;
}

/* A machine that slept past the deadline: nothing more is sent, and the last refusal is what is said. */
static void a_sleep_past_the_deadline_ends_with_what_was_said(void **state)
{
    (void)state;
    static const struct script script = {.status = {400}, .code = {"ThrottlingException"}, .n = 1};
    struct world w;
    open_world(&w, &script, NULL);
    w.clock.clock.sleep_ms = oversleep;
    struct sl_job *job = add_jobs(&w, 1);
    run_one(&w, job);
    assert_int_equal(job->status, SL_RETRY);
    assert_string_equal(job->code, "ThrottlingException");
    assert_false(job->not_sent);
    assert_int_equal(scripted_server_requests(w.server), 1);
    close_world(&w);
}

/* ---- jobs that come and go ---- */

static void drive(struct world *w, struct sl_job_flight **flights, size_t n)
{
    for (size_t left = n; left;) {
        sl_http_wait(sl_aws_http(w->aws), 100);
        int64_t due = INT64_MAX;
        for (size_t i = 0; i < n; i++) {
            if (!flights[i])
                continue;
            if (sl_job_turn(flights[i])) {
                flights[i] = NULL;
                left--;
            } else if (sl_job_due_ms(flights[i]) < due) {
                due = sl_job_due_ms(flights[i]);
            }
        }
        if (due != INT64_MAX && due > w->clock.ms)
            w->clock.ms = due;
    }
}

static void flights_end_each_for_itself(void **state)
{
    (void)state;
    static const struct script script = {
        .status = {500, 200}, .code = {"InternalServerError"}, .said = {SL_JOB_DONE}, .n = 2};
    struct world w;
    struct sl_job_flight *flights[JOBS];
    open_world(&w, &script, NULL);
    struct sl_job *jobs = add_jobs(&w, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        flights[i] = sl_job_begin(&w.client, &jobs[i], &w.call);
        assert_int_equal(sl_job_due_ms(flights[i]), INT64_MAX); /* on the wire */
        assert_false(sl_job_turn(flights[i]));
    }
    drive(&w, flights, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].state, SL_JOB_OVER);
        assert_int_equal(jobs[i].status, SL_OK);
    }
    assert_int_equal(scripted_server_requests(w.server), JOBS + 1);
    close_world(&w);
}

static void a_flight_begun_too_late_is_over_at_once(void **state)
{
    (void)state;
    static const struct script done = {.said = {SL_JOB_DONE}, .n = 1};
    struct world w;
    open_world(&w, &done, NULL);
    w.call.deadline_ms = w.clock.ms;
    struct sl_job *job = add_jobs(&w, 1);
    struct sl_job_flight *flight = sl_job_begin(&w.client, job, &w.call);
    assert_true(sl_job_turn(flight));
    assert_int_equal(job->status, SL_RETRY);
    assert_string_equal(job->code, "DeadlineExceeded");
    assert_int_equal(scripted_server_requests(w.server), 0);
    close_world(&w);
}

/* On the wire, or while it waits for its next attempt; the others go on. */
static void an_abandoned_flight_leaves_nothing(void **state)
{
    (void)state;
    static const struct script script = {
        .status = {500, 200}, .code = {"InternalServerError"}, .said = {SL_JOB_DONE}, .n = 2};
    struct world w;
    struct sl_job_flight *flights[JOBS];
    open_world(&w, &script, NULL);
    struct sl_job *jobs = add_jobs(&w, JOBS);
    flights[0] = sl_job_begin(&w.client, &jobs[0], &w.call);
    while (jobs[0].state == SL_JOB_FLYING) {
        sl_http_wait(sl_aws_http(w.aws), 100);
        assert_false(sl_job_turn(flights[0]));
    }
    assert_int_equal(jobs[0].state, SL_JOB_WAITING);
    assert_in_range(sl_job_due_ms(flights[0]), 0, 1000);
    sl_job_abandon(flights[0]);
    for (size_t i = 1; i < JOBS; i++)
        flights[i] = sl_job_begin(&w.client, &jobs[i], &w.call);
    sl_job_abandon(flights[1]);
    drive(&w, flights + 2, JOBS - 2);
    for (size_t i = 2; i < JOBS; i++)
        assert_int_equal(jobs[i].status, SL_OK);
    assert_int_not_equal(jobs[0].state, SL_JOB_OVER);
    assert_int_not_equal(jobs[1].state, SL_JOB_OVER);
    assert_int_equal(sl_http_wait(sl_aws_http(w.aws), 0), 0);
    close_world(&w);
}

/* ---- variables ---- */

static void attempts_are_a_number_or_the_services(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned attempts;
    } cases[] = {{NULL, 4},      {"", 4},  {"1", 1},    {"3", 3},  {"99", 99}, {"999", 999},
                 {"1000", 1000}, {"0", 0}, {"1001", 0}, {"5x", 0}, {"x", 0},   {"-1", 0},
                 {"/", 0},       {":", 0}, {"9", 9},    {"1e2", 0}};
    static const struct script done = {.said = {SL_JOB_DONE}, .n = 1};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        open_world(&w, &done, cases[i].text);
        struct sl_error error = SL_NO_ERROR;
        enum sl_status status = sl_client_ready(&w.client, &error);
        assert_int_equal(status, cases[i].attempts ? SL_OK : SL_FATAL);
        if (status == SL_OK)
            assert_int_equal(sl_client_attempts(&w.client), cases[i].attempts);
        else
            assert_non_null(strstr(error.text, "AWS_MAX_ATTEMPTS"));
        close_world(&w);
    }
}

static void the_trace_is_sent_as_it_is_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *id, *sent;
    } cases[] = {
        {NULL, ""},
        {"", ""},
        {"Root=1-5f84c7a1-0123456789abcdef01234567;Parent=azAZ09;Sampled=1",
         "Root=1-5f84c7a1-0123456789abcdef01234567;Parent=azAZ09;Sampled=1"},
        {"_.~-=;:+&[]{}\"',", "_.~-=;:+&[]{}\"',"},
        {"a b\x7f\xc3\xa9/@`^%", "a%20b%7F%C3%A9%2F%40%60%5E%25"},
    };
    static const struct script done = {.said = {SL_JOB_DONE}, .n = 1};
    struct world w;
    open_world(&w, &done, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sl_aws_trace(w.aws, cases[i].id);
        assert_string_equal(w.aws->trace_id, cases[i].sent);
        struct sl_job *job = add_jobs(&w, 1);
        sl_job_run(&w.client, job, 1, &w.call);
        struct sl_span sent = scripted_header(scripted_server_request(w.server, i), "x-amzn-trace-id");
        assert_span_is(sent, cases[i].sent);
        assert_int_equal(sent.ptr != NULL, cases[i].sent[0] != '\0');
    }
    char text[SL_AWS_TRACE_BYTES + 1];
    memset(text, 'a', sizeof(text));
    for (size_t len = SL_AWS_TRACE_BYTES; len >= SL_AWS_TRACE_BYTES - 1; len--) { /* one too long, and not */
        text[len] = '\0';
        sl_aws_trace(w.aws, text);
        assert_int_equal(strlen(w.aws->trace_id), len < SL_AWS_TRACE_BYTES ? len : 0);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_decides_how_often_it_is_sent),
        cmocka_unit_test(progress_is_not_counted),
        cmocka_unit_test(refusals_are_judged),
        cmocka_unit_test(expired_keys_that_cannot_be_renewed_are_a_refusal),
        cmocka_unit_test(doubts_are_judged_by_their_like),
        cmocka_unit_test(a_checksum_is_a_number_and_the_answer_s),
        cmocka_unit_test(one_failure_may_end_all),
        cmocka_unit_test(nothing_is_begun_at_the_deadline),
        cmocka_unit_test(a_sleep_past_the_deadline_ends_with_what_was_said),
        cmocka_unit_test(flights_end_each_for_itself),
        cmocka_unit_test(a_flight_begun_too_late_is_over_at_once),
        cmocka_unit_test(an_abandoned_flight_leaves_nothing),
        cmocka_unit_test(attempts_are_a_number_or_the_services),
        cmocka_unit_test(the_trace_is_sent_as_it_is_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
