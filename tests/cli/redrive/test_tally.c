/* Which messages redrive takes, what it calls them, and what it prints of them. */
#include "cli/redrive/letter.h"
#include "cli/redrive/names.h"
#include "cli/redrive/picker.h"
#include "cli/redrive/tally.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
/* 2026-11-20T21:04:00Z */
#define FAILED_MS INT64_C(1795208640000)
#define MINUTE    INT64_C(60000)

static struct sl_arena *arena;

/* A mail of a queue, opened. */
static struct sl_mail mail_of(const char *id, const char *group, int64_t sent_ms, const char *body)
{
    return (struct sl_mail){.id = id, .group = group, .sent_ms = sent_ms, .body = sl_span_str(json(body))};
}

#define RECORD(keys)                                                                                         \
    "{'eventID':'1','eventName':'INSERT','eventSource':'aws:dynamodb','dynamodb':{'SequenceNumber':'7'" keys \
    "}}"
#define KEYS ",'Keys':{'PK':{'S':'k'}}"
#define PARKED                                                                                               \
    "{'sluiceParked':1,'time':'2026-11-20T21:04:00Z','route':'say','handler':'notify','code':'TooLarge',"    \
    "'streamArn':'" STREAM "','record':" RECORD(KEYS) "}"

/* ---- names ---- */

static void a_set_of_names_grows(void **state)
{
    (void)state;
    struct sl_names names = {0};
    char name[32];
    assert_false(sl_names_has(&names, SL_LIT("n0")));
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        assert_false(sl_names_has(&names, sl_span_str(name)));
        sl_names_add(&names, sl_span_str(name), arena);
        sl_names_add(&names, sl_span_str(name), arena);
        assert_int_equal(names.n, i + 1);
    }
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        assert_true(sl_names_has(&names, sl_span_str(name)));
    }
    assert_true(2 * names.n <= names.room);
}

/* ---- choosing ---- */

static bool is_taken(const char *match, const char *more, const char *route, const char *since,
                     const struct sl_mail *like)
{
    const struct sl_flag_list matches = {.values = {match, more}, .n = (match != NULL) + (more != NULL)};
    struct sl_picker picker = {.matches = &matches, .route = route, .limit = -1};
    struct sl_error error = SL_NO_ERROR;
    struct sl_mail mail = *like;
    if (sl_picker_init(&picker, since, FAILED_MS + 90 * MINUTE, &error) != SL_OK)
        fail_msg("%s", error.text);
    sl_letter_open(&mail, arena);
    sl_picker_pick(&picker, &mail);
    assert_int_equal(picker.taken, mail.letters[0].outcome == SL_MAIL_WAITING);
    return mail.letters[0].outcome == SL_MAIL_WAITING;
}

static void only_what_matches_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *match, *more, *route, *since;
        bool takes;
    } cases[] = {
        {NULL, NULL, NULL, NULL, true},
        {"code=TooLarge", NULL, NULL, NULL, true},
        {"code=Too*", "handler=notify", NULL, NULL, true},
        {"code=Too", NULL, NULL, NULL, false},
        {"code=*", NULL, NULL, NULL, true},
        {"code!=TooLarge", NULL, NULL, NULL, false},
        {"code!=Too*", NULL, NULL, NULL, false},
        {"code!=Missing*", "code=TooLarge", NULL, NULL, true},
        {"code=TooLarge", "table=other", NULL, NULL, false},
        {"table=orders", "route=say", NULL, NULL, true},
        {"route!=say", NULL, NULL, NULL, false},
        {"id=m-1", "kind=parked", NULL, NULL, true},
        {"kind=event", NULL, NULL, NULL, false},
        {"group=g", NULL, NULL, NULL, true},
        {"group=", NULL, NULL, NULL, false},
        {NULL, NULL, "say", NULL, true},
        {NULL, NULL, "all", NULL, false},
        {NULL, NULL, NULL, "2026-11-20T21:04:00Z", true},
        {NULL, NULL, NULL, "2026-11-20T21:04:01Z", false},
        {NULL, NULL, NULL, "90m", true},
        {NULL, NULL, NULL, "89m", false},
        {NULL, NULL, NULL, "5400s", true},
        {NULL, NULL, NULL, "5399s", false},
        {NULL, NULL, NULL, "2h", true},
        {NULL, NULL, NULL, "1h", false},
        {NULL, NULL, NULL, "1d", true},
    };
    const struct sl_mail mail = mail_of("m-1", "g", FAILED_MS + 100 * MINUTE, PARKED);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (is_taken(cases[i].match, cases[i].more, cases[i].route, cases[i].since, &mail) != cases[i].takes)
            fail_msg("case %zu: %s", i, cases[i].takes ? "not taken" : "taken");
}

/* A letter that says no time is as old as its message; when nobody knows, it is not what is asked for by
 * time. Events have neither a route nor a handler. */
static void an_event_is_chosen_by_its_message(void **state)
{
    (void)state;
    struct sl_mail mail = mail_of("m-1", NULL, FAILED_MS, "{'Records':[" RECORD(KEYS) "]}");
    assert_true(is_taken("kind=event", "group=", "say", "90m", &mail));
    assert_false(is_taken(NULL, NULL, NULL, "89m", &mail));
    assert_false(is_taken("route=say", NULL, NULL, NULL, &mail));
    assert_true(is_taken("code=", "handler=", NULL, NULL, &mail));
    mail.sent_ms = 0;
    assert_true(is_taken(NULL, NULL, NULL, NULL, &mail));
    assert_false(is_taken(NULL, NULL, NULL, "9999d", &mail));
}

static void a_wrong_choice_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *match, *since, *told;
    } cases[] = {
        {"code", NULL, "--match \"code\": write FIELD=VALUE"},
        {"=x", NULL, "--match \"=x\""},
        {"!=x", NULL, "--match \"!=x\""},
        {"color=red", NULL, SL_PICKER_FIELDS},
        {NULL, "noon", "--since: expected a time like"},
        {NULL, "90", "not \"90\""},
        {NULL, "m", "not \"m\""},
        {NULL, "90mm", "not \"90mm\""},
        {NULL, "0m", "not \"0m\""},
        {NULL, "-5m", "not \"-5m\""},
        {NULL, "1000000m", "not \"1000000m\""},
        {NULL, "5w", "not \"5w\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sl_flag_list matches = {.values = {cases[i].match}, .n = cases[i].match != NULL};
        struct sl_picker picker = {.matches = &matches, .limit = -1};
        struct sl_error error = SL_NO_ERROR;
        assert_int_equal(sl_picker_init(&picker, cases[i].since, FAILED_MS, &error), SL_REJECT);
        if (!strstr(error.text, cases[i].told))
            fail_msg("%s: %s", cases[i].told, error.text);
    }
}

/* A message is taken whole or not at all; what cannot be read counts as no message. */
static void a_message_is_taken_whole(void **state)
{
    (void)state;
    const struct sl_flag_list matches = {.values = {"code=TooLarge"}, .n = 1};
    struct sl_picker picker = {.matches = &matches, .limit = 2};
    static const struct {
        const char *body;
        enum sl_mail_outcome outcomes[2];
        int64_t taken;
    } cases[] = {
        {"[" PARKED ",{'sluiceParked':1,'route':'say','code':'Other','record':" RECORD(KEYS) "}]",
         {SL_MAIL_UNMATCHED, SL_MAIL_UNMATCHED},
         0},
        {"[" PARKED ",{}]", {SL_MAIL_WAITING, SL_MAIL_UNREADABLE}, 1},
        {"[{},5]", {SL_MAIL_UNREADABLE, SL_MAIL_UNREADABLE}, 1},
        {"[" PARKED "," PARKED "]", {SL_MAIL_WAITING, SL_MAIL_WAITING}, 2},
        {"[" PARKED ",{}]", {SL_MAIL_UNMATCHED, SL_MAIL_UNREADABLE}, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_mail mail = mail_of("m", NULL, 0, cases[i].body);
        sl_letter_open(&mail, arena);
        assert_int_equal(mail.n, 2);
        assert_int_equal(sl_picker_is_full(&picker), picker.taken == 2);
        sl_picker_pick(&picker, &mail);
        for (size_t k = 0; k < 2; k++)
            if (mail.letters[k].outcome != cases[i].outcomes[k])
                fail_msg("case %zu, letter %zu: %d", i, k, (int)mail.letters[k].outcome);
        assert_int_equal(picker.taken, cases[i].taken);
    }
}

/* ---- letters ---- */

static void a_letter_says_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool is_line;
        const char *id, *key, *table, *arn;
    } cases[] = {
        {PARKED, false, "m", "{\"PK\":{\"S\":\"k\"}}", "orders", STREAM},
        {"{'MessageId':'other','Body':'{\\\\'sluiceParked\\\\':1}'}", false, "m", "-", "-", ""},
        {"{'MessageId':'inner','Body':'5'}", true, "inner", "-", "-", ""},
        {"{'sluiceParked':1,'route':'r','record':{'eventName':'INSERT','eventSource':'aws:dynamodb','eventID'"
         ":"
         "'1','eventSourceARN':'" STREAM "','dynamodb':{'SequenceNumber':'7'" KEYS "}}}",
         true, "m", "{\"PK\":{\"S\":\"k\"}}", "orders", STREAM},
        /* An ARN that cannot be one decides nothing. */
        {"{'sluiceParked':1,'route':'r','record':{'eventName':'INSERT','eventSource':'aws:dynamodb','eventID'"
         ":"
         "'1','eventSourceARN':'arn:aws:dynamodb:../../x:1:table/t','dynamodb':{'SequenceNumber':'7'" KEYS
         "}}}",
         true, "m", "{\"PK\":{\"S\":\"k\"}}", NULL, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_mail mail = mail_of("m", NULL, 0, cases[i].body);
        mail.is_line = cases[i].is_line;
        sl_letter_open(&mail, arena);
        assert_int_equal(mail.n, 1);
        assert_string_equal(mail.letters[0].id, cases[i].id);
        assert_string_equal(mail.letters[0].key, cases[i].key);
        if (cases[i].table)
            assert_string_equal(mail.letters[0].table, cases[i].table);
        assert_string_equal(mail.letters[0].dead.stream_arn, cases[i].arn);
    }
}

/* A key of any length; a line of some. */
static void a_key_that_is_too_long_is_not_shown(void **state)
{
    (void)state;
    char *text = NULL;
    assert_true(asprintf(&text, "{'Records':[" RECORD(",'Keys':{'PK':{'S':'%040000d'}}") "]}", 0) > 0);
    struct sl_mail mail = mail_of("m", NULL, 0, text);
    sl_letter_open(&mail, arena);
    assert_int_equal(mail.letters[0].outcome, SL_MAIL_WAITING);
    assert_string_equal(mail.letters[0].key, "-");
    free(text);
}

/* ---- what is printed ---- */

/* What was written to a descriptor since capture(); the caller frees it. */
static struct {
    FILE *file;
    int saved, fd;
} captured;

static void capture(int fd)
{
    fflush(NULL);
    captured.file = tmpfile();
    captured.fd = fd;
    captured.saved = dup(fd);
    assert_true(captured.file && captured.saved >= 0);
    dup2(fileno(captured.file), fd);
}

static char *release(void)
{
    fflush(NULL);
    dup2(captured.saved, captured.fd);
    close(captured.saved);
    long n = lseek(fileno(captured.file), 0, SEEK_END);
    char *text = calloc(1, (size_t)n + 1);
    assert_int_equal(pread(fileno(captured.file), text, (size_t)n, 0), n);
    fclose(captured.file);
    return text;
}

static void assert_printed(char *text, const char *const *wanted)
{
    for (; *wanted; wanted++)
        if (!strstr(text, *wanted))
            fail_msg("no \"%s\" in:\n%s", *wanted, text);
    free(text);
}

static void a_line_says_how_old_it_is(void **state)
{
    (void)state;
    static const struct {
        int64_t minutes;
        const char *age;
    } cases[] = {{-5, "  age=-  "},
                 {0, "  age=0m  "},
                 {59, "  age=59m  "},
                 {60, "  age=1h  "},
                 {2 * 24 * 60 - 1, "  age=47h  "},
                 {2 * 24 * 60, "  age=2d  "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_mail mail = mail_of("m", NULL, 0, PARKED);
        struct sl_mail_page page = {.list = &mail, .n = 1};
        struct sl_redrive_tally tally = {.is_dry = true};
        sl_letter_open(&mail, arena);
        mail.letters[0].outcome = SL_MAIL_LISTED;
        capture(STDOUT_FILENO);
        sl_redrive_tally_add(&tally, &page, FAILED_MS + cases[i].minutes * MINUTE);
        assert_printed(release(),
                       (const char *const[]){"listed      m  route=say  code=TooLarge", cases[i].age, NULL});
    }
    struct sl_mail mail = mail_of("m", NULL, 0, "{'Records':[" RECORD(KEYS) "," RECORD(KEYS) "]}");
    struct sl_mail_page page = {.list = &mail, .n = 1};
    struct sl_redrive_tally tally = {.is_dry = true};
    sl_letter_open(&mail, arena);
    mail.letters[0].outcome = SL_MAIL_LISTED;
    capture(STDOUT_FILENO);
    sl_redrive_tally_add(&tally, &page, FAILED_MS);
    assert_printed(release(), (const char *const[]){
                                  "m  route=event  age=-  key={\"PK\":{\"S\":\"k\"}}  records=2\n", NULL});
}

/* 70 codes, the more the higher: 64 are named, most first, those of one number by their names. */
static void the_sum_names_what_failed_most(void **state)
{
    (void)state;
    struct sl_redrive_tally tally = {0};
    const struct sl_redrive_tally_next next = {
        .config = "it's.json", .operand = "sqs://q", .could_remove = true};
    char code[16];
    capture(STDOUT_FILENO);
    for (unsigned i = 0; i < 70; i++)
        for (unsigned k = 0; k < 1 + i / 2; k++) {
            struct sl_mail mail = mail_of("m", NULL, 0, PARKED);
            struct sl_mail_page page = {.list = &mail, .n = 1};
            sl_letter_open(&mail, arena);
            snprintf(code, sizeof(code), "C%02u", i);
            sl_letter_end(&mail.letters[0], i ? SL_MAIL_FAILED : SL_MAIL_UNREADABLE, i == 1 ? "" : code, "");
            sl_redrive_tally_add(&tally, &page, FAILED_MS);
        }
    sl_redrive_tally_print(&tally, &next);
    assert_printed(
        release(),
        (const char *const[]){
            "code             32   C62\ncode             32   C63\ncode             31   C60\n",
            "code              1   C00\ncode              1   Unknown\ncode            204   others\n",
            "failed         1259\nunreadable        1\n0 of 1260 messages are done\n",
            "next: correct what the log says of the first code, then: sluice redrive "
            "--config 'it'\\''s.json' --delete-done --match code='TooLarge' 'sqs://q'\n",
            NULL});
}

static void the_sum_says_what_to_do_next(void **state)
{
    (void)state;
    static const struct {
        struct sl_redrive_tally tally;
        bool could_remove;
        const char *printed;
    } cases[] = {
        {{.messages = {[SL_MAIL_UNMATCHED] = 2}},
         true,
         "unmatched         2   not asked for\nthere is no message that matches\n"},
        {{.removed = 0}, true, "there is no message\n"},
        {{.messages = {[SL_MAIL_DONE] = 2}},
         false,
         "done              2\n2 of 2 messages are done: they can be deleted\n"},
        {{.messages = {[SL_MAIL_DONE] = 2}},
         true,
         "deleted\nnext: the same command with --delete-done handles them once more"},
        {{.messages = {[SL_MAIL_DONE] = 2}, .removed = 2},
         false,
         "removed           2\n2 of 2 messages are done\n"},
        {{.messages = {[SL_MAIL_DONE] = 2}, .removed = 1, .not_removed = 1},
         false,
         "left              1   done, and still there: they will be"},
        {{.messages = {[SL_MAIL_DONE] = 2, [SL_MAIL_HELD_BACK] = 1}},
         true,
         "2 of 3 messages are done\nnext: run the same command again\n"},
        {{.messages = {[SL_MAIL_WAITING] = 1}},
         true,
         "0 of 1 messages are done\nnext: run the same command again\n"},
        {{.is_dry = true, .messages = {[SL_MAIL_LISTED] = 1}},
         false,
         "listed            1\nnext: correct the cause of one code, then: sluice redrive --config 'c' 'p'\n"},
        {{.is_dry = true, .messages = {[SL_MAIL_UNREADABLE] = 1}}, false, "unreadable        1\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_redrive_tally tally = cases[i].tally;
        capture(STDOUT_FILENO);
        sl_redrive_tally_print(&tally, &(struct sl_redrive_tally_next){"c", "p", cases[i].could_remove});
        char *text = release();
        const char *at = strstr(text, cases[i].printed);
        if (!at || (!strstr(cases[i].printed, "next:") && strstr(text, "next:")))
            fail_msg("case %zu:\n%s", i, text);
        free(text);
    }
}

/* On a terminal one line is drawn anew, and the messages' lines are not behind it. */
static void progress_is_one_line(void **state)
{
    (void)state;
    struct sl_mail mail[3] = {mail_of("a", NULL, 0, PARKED), mail_of("b", NULL, 0, PARKED),
                              mail_of("c", NULL, 0, PARKED)};
    struct sl_mail_page page = {.list = mail, .n = 3};
    struct sl_redrive_tally tally = {.shows_progress = true};
    for (size_t i = 0; i < 3; i++)
        sl_letter_open(&mail[i], arena);
    mail[0].letters[0].outcome = mail[1].letters[0].outcome = SL_MAIL_DONE;
    sl_letter_end(&mail[2].letters[0], SL_MAIL_FAILED, "X", "why");
    mail[1].removal = SL_MAIL_NOT_REMOVED;
    capture(STDERR_FILENO);
    sl_redrive_tally_add(&tally, &page, FAILED_MS);
    sl_redrive_tally_print(&tally, &(struct sl_redrive_tally_next){"c", "p", false});
    char *text = release();
    assert_string_equal(text, "\r\x1b[K\r\x1b[K3 messages: 2 done, 1 failed\r\x1b[K");
    free(text);
    capture(STDOUT_FILENO);
    sl_redrive_tally_add(&tally, &page, FAILED_MS);
    assert_printed(release(),
                   (const char *const[]){
                       "\ndone        b  route=say  key={\"PK\":{\"S\":\"k\"}}  not removed: Unknown\n",
                       "failed      c  route=say  code=X  key={\"PK\":{\"S\":\"k\"}}  why\n", NULL});
}

static int open_arena(void **state)
{
    (void)state;
    arena = sl_arena_new(4096);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    sl_arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_of_names_grows),
        cmocka_unit_test(only_what_matches_is_taken),
        cmocka_unit_test(an_event_is_chosen_by_its_message),
        cmocka_unit_test(a_wrong_choice_is_refused),
        cmocka_unit_test(a_message_is_taken_whole),
        cmocka_unit_test(a_letter_says_whose_it_is),
        cmocka_unit_test(a_key_that_is_too_long_is_not_shown),
        cmocka_unit_test(a_line_says_how_old_it_is),
        cmocka_unit_test(the_sum_names_what_failed_most),
        cmocka_unit_test(the_sum_says_what_to_do_next),
        cmocka_unit_test(progress_is_one_line),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
