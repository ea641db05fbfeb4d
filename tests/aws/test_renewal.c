/* When keys are fetched: before they end, again after a failure, and not each time, on a virtual clock with a
 * source of the test's. */
#include "tests/support/test.h"

#include "aws/credentials.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define START_S 1700000000

struct world {
    struct sl_clock_virtual clock;
    struct sl_log log;
    int lines;
    struct sl_aws *aws;
    struct sl_credentials *credentials;
    struct sl_error error;
};

/* What the source does; one, as a function of a source has no context. */
static struct {
    enum sl_status status;
    int64_t lasts_s; /* from now on; 0: for ever */
    unsigned asked;
    const char *access, *secret, *token;
} source;

static enum sl_status find(struct sl_aws *aws, const char *role, int64_t deadline_ms, struct sl_keys *out,
                           struct sl_error *error)
{
    (void)role;
    (void)deadline_ms;
    source.asked++;
    if (source.status != SL_OK)
        return sl_fail(error, source.status, "NoAnswer", "the source is silent");
    snprintf(out->access, sizeof(out->access), "%s", source.access);
    snprintf(out->secret, sizeof(out->secret), "%s", source.secret);
    snprintf(out->token, sizeof(out->token), "%s", source.token);
    out->expires_s = source.lasts_s ? sl_aws_now_s(aws) + source.lasts_s : 0;
    out->origin = "the test";
    return SL_OK;
}

static void open_world(struct world *w, int64_t lasts_s)
{
    static const struct sl_vars none = {.list = NULL};
    *w = (struct world){.error = SL_NO_ERROR};
    sl_clock_virtual_init(&w->clock, (int64_t)START_S * 1000000000, 1);
    w->lines = memfd_create("log", MFD_CLOEXEC);
    sl_log_init(&w->log, w->lines, SL_DEBUG, SL_LOG_TEXT, &w->clock.clock);
    w->aws = sl_aws_new(&w->clock.clock, &w->log, &none, find);
    w->credentials = sl_credentials_for(w->aws, SL_LIT(""));
    source.status = SL_OK;
    source.lasts_s = lasts_s;
    source.asked = 0;
    source.access = source.secret = source.token = "1";
}

static void close_world(struct world *w)
{
    sl_aws_destroy(w->aws);
    sl_log_clean_up(&w->log);
    close(w->lines);
}

static void later(struct world *w, int64_t s)
{
    w->clock.ms += s * 1000;
}

/* Asks for keys; returns how often the source was asked for them. */
static unsigned get(struct world *w, enum sl_status wanted)
{
    unsigned before = source.asked;
    w->error = (struct sl_error)SL_NO_ERROR;
    assert_int_equal(sl_credentials_get(w->aws, w->credentials, INT64_MAX, &w->error), wanted);
    assert_int_equal(w->error.status, wanted);
    return source.asked - before;
}

static size_t warnings(struct world *w, const char *of)
{
    char text[16 * 1024] = "";
    size_t n = 0;
    assert_in_range(pread(w->lines, text, sizeof(text) - 1, 0), 0, sizeof(text) - 2);
    for (const char *at = text; (at = strstr(at, of)) != NULL; at++)
        n++;
    return n;
}

static void keys_for_ever_are_fetched_once(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 0);
    assert_int_equal(get(&w, SL_OK), 1);
    for (int day = 0; day < 100; day++, later(&w, 86400))
        assert_int_equal(get(&w, SL_OK), 0);
    assert_int_equal(w.credentials->serial, 1);
    assert_ptr_equal(sl_credentials_for(w.aws, SL_LIT("")), w.credentials);
    assert_ptr_not_equal(sl_credentials_for(w.aws, SL_LIT("arn:x")), w.credentials);
    close_world(&w);
}

static void keys_are_renewed_15_minutes_before_their_end(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 3600);
    assert_int_equal(get(&w, SL_OK), 1);
    later(&w, 3600 - 15 * 60 - 1);
    assert_int_equal(get(&w, SL_OK), 0);
    later(&w, 1);
    source.access = "2";
    assert_int_equal(get(&w, SL_OK), 1);
    assert_string_equal(w.credentials->keys.access, "2");
    assert_string_equal(w.credentials->before.access, "1");
    assert_int_equal(w.credentials->serial, 2);
    assert_int_equal(get(&w, SL_OK), 0);
    close_world(&w);
}

/* While they last, a source that fails is asked once a minute, and its failure is logged from 10 minutes
 * before the end on. After the end, it is an error. */
static void a_source_that_fails_is_asked_once_a_minute(void **state)
{
    (void)state;
    for (int is_fatal = 0; is_fatal < 2; is_fatal++) {
        struct world w;
        open_world(&w, 3600);
        get(&w, SL_OK);
        source.status = is_fatal ? SL_REJECT : SL_RETRY;
        later(&w, 3600 - 15 * 60);
        size_t logged = 0;
        for (int left = 15 * 60; left > 0; left -= 30, later(&w, 30)) {
            assert_int_equal(get(&w, SL_OK), left % 60 == 0);
            logged += left % 60 == 0 && left <= 10 * 60;
            assert_int_equal(warnings(&w, "could not be renewed: the source is silent"), logged);
        }
        assert_int_equal(logged, 10);
        assert_int_equal(get(&w, is_fatal ? SL_FATAL : SL_RETRY), 1);
        assert_int_equal(get(&w, is_fatal ? SL_FATAL : SL_RETRY), 1);
        assert_string_equal(w.error.code, "NoAnswer");
        source.status = SL_OK;
        assert_int_equal(get(&w, SL_OK), 1);
        close_world(&w);
    }
}

static void no_keys_at_all_are_an_error_each_time(void **state)
{
    (void)state;
    static const enum sl_status answers[][2] = {
        {SL_RETRY, SL_RETRY}, {SL_FATAL, SL_FATAL}, {SL_REJECT, SL_FATAL}};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct world w;
        open_world(&w, 0);
        source.status = answers[i][0];
        assert_int_equal(get(&w, answers[i][1]), 1);
        assert_int_equal(get(&w, answers[i][1]), 1);
        close_world(&w);
    }
}

/* A part of the keys that differs makes them new; the same ones after a refusal are used for a minute. */
static void spent_keys_are_fetched_again(void **state)
{
    (void)state;
    for (int part = 0; part <= 3; part++) {
        struct world w;
        open_world(&w, 0);
        get(&w, SL_OK);
        sl_credentials_spent(w.credentials, w.credentials->serial + 1); /* others were refused */
        assert_int_equal(get(&w, SL_OK), 0);
        sl_credentials_spent(w.credentials, w.credentials->serial);
        source.access = part == 1 ? "2" : "1";
        source.secret = part == 2 ? "2" : "1";
        source.token = part == 3 ? "2" : "1";
        assert_int_equal(get(&w, SL_OK), 1);
        assert_int_equal(w.credentials->serial, part ? 2 : 1);
        assert_int_equal(get(&w, SL_OK), 0);
        sl_credentials_spent(w.credentials, w.credentials->serial);
        assert_int_equal(get(&w, SL_OK), part ? 1 : 0); /* the same again: not before a minute is over */
        later(&w, 59);
        if (!part)
            assert_int_equal(get(&w, SL_OK), 0);
        later(&w, 1);
        if (!part)
            assert_int_equal(get(&w, SL_OK), 1);
        close_world(&w);
    }
}

static void keys_that_come_expired_are_used_and_fetched_each_minute(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, -100);
    for (int minute = 0; minute < 5; minute++) {
        assert_int_equal(get(&w, SL_OK), 1);
        assert_int_equal(get(&w, SL_OK), 0);
        later(&w, 59);
        assert_int_equal(get(&w, SL_OK), 0);
        later(&w, 1);
        assert_int_equal(warnings(&w, "had expired 100 s before they came"), 1);
    }
    source.lasts_s = 3600;
    assert_int_equal(get(&w, SL_OK), 1);
    assert_int_equal(get(&w, SL_OK), 0);
    sl_credentials_spent(w.credentials, w.credentials->serial);
    source.lasts_s = -100;
    source.access = "2";
    assert_int_equal(get(&w, SL_OK), 1);
    assert_int_equal(warnings(&w, "had expired 100 s before they came"), 2); /* good ones came between */
    close_world(&w);
}

static void fixed_keys_are_never_fetched(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 0);
    w.credentials->is_fixed = true;
    assert_int_equal(get(&w, SL_OK), 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_for_ever_are_fetched_once),
        cmocka_unit_test(keys_are_renewed_15_minutes_before_their_end),
        cmocka_unit_test(a_source_that_fails_is_asked_once_a_minute),
        cmocka_unit_test(no_keys_at_all_are_an_error_each_time),
        cmocka_unit_test(spent_keys_are_fetched_again),
        cmocka_unit_test(keys_that_come_expired_are_used_and_fetched_each_minute),
        cmocka_unit_test(fixed_keys_are_never_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
