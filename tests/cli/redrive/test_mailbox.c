/* A queue as redrive's mailbox, on a virtual clock: what it holds stays hidden until it is let go of, each
 * message is given out once, and what fails is told. */
#include "cli/redrive/hold.h"
#include "cli/redrive/letter.h"
#include "cli/redrive/mailbox.h"
#include "tests/support/disk_fault.h"
#include "tests/support/fake_inbox.h"
#include "tests/support/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIDDEN_S 300

static struct world {
    struct fault fault;
    struct fake_inbox queue;
    struct sl_mailbox_options options;
    struct sl_mailbox *box;
    struct sl_arena *arena; /* of the pages */
    volatile int stop;
    const char *liar; /* this operation fails, so many times more */
    unsigned lies;
    int status;          /* with which it fails */
    const char *refuses; /* an entry of this operation is refused: the first message's */
} w;

static bool instead(void *arg, struct sl_span operation, struct scripted_reply *reply)
{
    (void)arg;
    if (!w.liar || !sl_span_is(operation, w.liar) || !w.lies)
        return false;
    w.lies--;
    reply->status = w.status;
    reply->body = w.status == 403 ? json_span("{'__type':'AccessDeniedException','message':'by script'}")
                                  : json_span("{'Messages':[{'MessageId':'x'}]}");
    return true;
}

static const char *judge(void *arg, struct sl_span operation, const struct fake_message *message)
{
    (void)arg;
    bool is_refused = w.refuses && sl_span_is(operation, w.refuses) && message == w.queue.list;
    return is_refused ? "ReceiptHandleIsInvalid" : NULL;
}

static int set_up(void **state)
{
    struct sl_error error = SL_NO_ERROR;
    (void)state;
    memset(&w, 0, sizeof(w));
    fault_open(&w.fault, fake_inbox_answer, &w.queue);
    fake_inbox_init(&w.queue, &w.fault.clock.clock);
    w.queue.instead = instead;
    w.queue.judge = judge;
    fault_set(&w.fault, "AWS_MAX_ATTEMPTS", "1");
    w.arena = sl_arena_new(64 * 1024);
    w.options = (struct sl_mailbox_options){
        .sinks = &w.fault.sinks, .stop = &w.stop, .hidden_s = HIDDEN_S, .wait_s = 5};
    if (sl_mailbox_open(&w.options, "sqs://failed", &w.box, &error) != SL_OK)
        fail_msg("%s", error.text);
    w.box->wants = INT64_MAX;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    w.box->close(w.box);
    sl_arena_destroy(w.arena);
    fault_close(&w.fault);
    fake_inbox_clean_up(&w.queue);
    return 0;
}

static void fill(size_t n)
{
    for (size_t i = 0; i < n; i++)
        fake_inbox_add(&w.queue, NULL, "{}");
}

/* The next page; what it returns is expected to be `status`. */
static struct sl_mail_page next(enum sl_status status)
{
    struct sl_mail_page page = {0};
    struct sl_error error = SL_NO_ERROR;
    enum sl_status is = w.box->next(w.box, w.arena, &page, &error);
    if (is != status)
        fail_msg("%d %s", (int)is, error.text);
    return page;
}

/* Each of the page is done, and is removed if asked for. */
static void settle(struct sl_mail_page *page, bool removes)
{
    for (size_t i = 0; i < page->n; i++) {
        sl_letter_open(&page->list[i], w.arena);
        page->list[i].letters[0].outcome = SL_MAIL_DONE;
    }
    w.box->settle(w.box, w.arena, page, removes);
}

static void assert_finishes(enum sl_status status, const char *code)
{
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(w.box->finish(w.box, &error), status);
    if (code)
        assert_string_equal(error.code, code);
}

static void pass(int64_t s)
{
    w.fault.clock.ms += s * 1000;
}

/* ---- holding ---- */

static void what_is_held_is_hidden_anew(void **state)
{
    (void)state;
    fill(25);
    struct sl_mail_page page = next(SL_OK);
    assert_int_equal(page.n, 25);
    settle(&page, false);
    pass(HIDDEN_S / 3 - 1);
    w.box->keep(w.box);
    assert_int_equal(w.queue.list[0].hidden, 0);
    pass(1);
    w.box->keep(w.box);
    w.box->keep(w.box);
    for (size_t i = 0; i < 25; i++)
        assert_int_equal(w.queue.list[i].hidden, 1);
    /* It fails once: there is time to try again. */
    pass(HIDDEN_S / 3);
    w.liar = "ChangeMessageVisibilityBatch", w.status = 500, w.lies = 3;
    w.box->keep(w.box);
    pass(HIDDEN_S / 3);
    w.box->keep(w.box);
    pass(HIDDEN_S / 3 + 1);
    assert_int_equal(fake_inbox_in_flight(&w.queue), 25);
    w.box->keep(w.box);
    page = next(SL_OK);
    assert_true(page.n == 0 && page.is_last);
    assert_finishes(SL_OK, NULL);
    assert_int_equal(fake_inbox_in_flight(&w.queue), 0);
}

/* SQS hides a message for twelve hours in all: nothing is asked of it that it refuses, and the run ends in
 * time. */
static void twelve_hours_are_the_end(void **state)
{
    (void)state;
    bool is_told = false;
    fill(2);
    struct sl_mail_page page = next(SL_OK);
    settle(&page, false);
    for (int64_t s = 0; s < SL_INBOX_HIDDEN_MAX_S - 100; s += 100) {
        pass(100);
        w.box->keep(w.box);
        assert_int_equal(fake_inbox_in_flight(&w.queue), 2);
        if (!is_told && s + 100 > SL_INBOX_HIDDEN_MAX_S - 1800) {
            fake_inbox_add(&w.queue, NULL, "{}");
            page = next(SL_OK);
            assert_true(page.is_last && page.n == 0);
            w.queue.list[2].is_removed = true;
            is_told = true;
        }
    }
    assert_true(is_told);
    assert_finishes(SL_RETRY, "TooLong");
    assert_int_equal(fake_inbox_in_flight(&w.queue), 0);
    /* Afterwards they are not ours: SQS refuses, and nothing is wrong with that. */
    pass(200);
    w.box->keep(w.box);
    assert_int_equal(fake_inbox_in_flight(&w.queue), 0);
    assert_finishes(SL_RETRY, "TooLong");
}

static void what_is_no_longer_ours_is_forgotten(void **state)
{
    (void)state;
    fill(3);
    struct sl_mail_page page = next(SL_OK);
    settle(&page, false);
    w.refuses = "ChangeMessageVisibilityBatch";
    pass(HIDDEN_S / 3);
    w.box->keep(w.box);
    w.refuses = NULL;
    pass(HIDDEN_S / 3);
    w.box->keep(w.box);
    assert_int_equal(w.queue.list[0].hidden, 0);
    assert_int_equal(w.queue.list[1].hidden, 2);
    assert_finishes(SL_OK, NULL);
    assert_true(w.queue.list[0].until_ms > 0 && w.queue.list[1].until_ms == 0);
}

static void what_cannot_be_let_go_of_is_counted(void **state)
{
    (void)state;
    static const int statuses[] = {500, 403};
    fill(12);
    struct sl_mail_page page = next(SL_OK);
    settle(&page, false);
    for (size_t i = 0; i < 2; i++) {
        struct sl_error error = SL_NO_ERROR;
        w.liar = "ChangeMessageVisibilityBatch", w.status = statuses[i], w.lies = 1;
        assert_int_equal(w.box->finish(w.box, &error), SL_RETRY);
        const char *told = json_printf("sqs://failed: %zu messages could not be released; they come back "
                                       "within 300 s",
                                       fake_inbox_in_flight(&w.queue));
        assert_string_equal(error.text, told);
        assert_true(fake_inbox_in_flight(&w.queue) > 0);
        for (size_t k = 0; k < 12; k++)
            w.queue.list[k].until_ms = w.queue.clock->now_ms(w.queue.clock) + 1000;
    }
}

/* Receipts of megabytes: the file's beginning is given back, and what is behind it is still known. */
static void a_hold_of_many_messages_is_let_go_of(void **state)
{
    (void)state;
    struct sl_inbox *inbox;
    struct sl_error error = SL_NO_ERROR;
    static char receipt[4001];
    uint64_t places[1300];
    fill(2);
    assert_int_equal(sl_inbox_open(&w.fault.sinks, SL_LIT("sqs://failed"), &inbox, &error), SL_OK);
    struct sl_hold *hold = sl_hold_new(inbox, &w.fault.clock.clock, HIDDEN_S);
    assert_false(sl_hold_is_old(hold));
    assert_int_equal(sl_hold_release(hold), 0);
    memset(receipt, 'r', sizeof(receipt) - 1);
    for (size_t i = 0; i < 1300; i++) {
        assert_int_equal(sl_hold_add(hold,
                                     i < 1298    ? receipt
                                     : i == 1298 ? "0#1"
                                                 : "1#1",
                                     &places[i], &error),
                         SL_OK);
        assert_int_equal(sl_hold_count(hold), i + 1);
    }
    for (size_t i = 0; i < 1298; i++)
        sl_hold_drop(hold, places[i]);
    assert_int_equal(sl_hold_count(hold), 2);
    for (size_t i = 0; i < 2; i++) {
        w.queue.list[i].receives = 1;
        w.queue.list[i].first_ms = w.queue.clock->now_ms(w.queue.clock);
        w.queue.list[i].until_ms = w.queue.list[i].first_ms + 1000;
    }
    assert_int_equal(sl_hold_release(hold), 0);
    assert_int_equal(fake_inbox_in_flight(&w.queue), 0);
    sl_hold_drop(hold, places[1298]);
    sl_hold_drop(hold, places[1299]);
    assert_int_equal(sl_hold_count(hold), 0);
    assert_int_equal(sl_hold_add(hold, receipt, &places[0], &error), SL_OK);
    assert_int_equal(sl_hold_count(hold), 1);
    sl_hold_destroy(hold);
    sl_hold_destroy(NULL);
    sl_inbox_close(inbox);
}

/* The file of receipts cannot be read: what is in it was not let go of. */
static void receipts_that_are_lost_are_told(void **state)
{
    (void)state;
    fill(3);
    struct sl_mail_page page = next(SL_OK);
    settle(&page, false);
    disk_fault->times = 100;
    disk_fault_begin(1, EIO, "pread");
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(w.box->finish(w.box, &error), SL_RETRY);
    disk_fault_end();
    disk_fault->times = 0;
    assert_non_null(strstr(error.text, ": 3 messages could not be released"));
    assert_int_equal(fake_inbox_in_flight(&w.queue), 3);
    /* Nor written: the messages are not lost, and nothing is handed out that is not held. */
    for (size_t i = 0; i < 3; i++)
        w.queue.list[i].is_removed = true;
    fill(1);
    disk_fault_begin(1, ENOSPC, "write");
    page = next(SL_FATAL);
    disk_fault_end();
    assert_int_equal(page.n, 0);
}

/* ---- receiving ---- */

static void every_message_is_given_out_once(void **state)
{
    (void)state;
    bool given[450] = {false};
    size_t n = 0, pages = 0;
    fill(450);
    for (bool is_last = false; !is_last; pages++) {
        struct sl_mail_page page = next(SL_OK);
        assert_true(page.n <= SL_MAIL_PAGE + 80);
        for (size_t i = 0; i < page.n; i++, n++) {
            size_t k = strtoul(page.list[i].id + 2, NULL, 10);
            assert_false(given[k]);
            given[k] = true;
        }
        is_last = page.is_last;
        settle(&page, false);
        if (pages == 0) { /* it took so long that the first ones are visible again */
            for (size_t k = 0; k < 20; k++)
                w.queue.list[k].until_ms = 0;
        }
    }
    assert_int_equal(n, 450);
    assert_true(w.queue.list[0].receives > 1);
    assert_finishes(SL_OK, NULL);
    /* As long as they come back full, several are asked for at a time. */
    assert_true(scripted_server_requests(w.fault.server) < 110);
}

static void no_more_is_fetched_than_is_wanted(void **state)
{
    (void)state;
    fill(50);
    w.box->wants = 11;
    struct sl_mail_page page = next(SL_OK);
    assert_in_range(page.n, 11, 30);
    settle(&page, false);
    w.stop = 1;
    page = next(SL_OK);
    assert_true(page.n == 0 && !page.is_last);
}

/* What is done and could not be removed is removed at the next delivery; it is not done twice. */
static void what_could_not_be_removed_is_removed_later(void **state)
{
    (void)state;
    fill(3);
    w.refuses = "DeleteMessageBatch";
    struct sl_mail_page page = next(SL_OK);
    settle(&page, true);
    assert_int_equal(page.list[0].removal, SL_MAIL_NOT_REMOVED);
    assert_string_equal(page.list[0].removal_code, "ReceiptHandleIsInvalid");
    assert_int_equal(page.list[1].removal, SL_MAIL_REMOVED);
    w.queue.list[0].until_ms = 0;
    fake_inbox_add(&w.queue, NULL, "{}");
    page = next(SL_OK);
    assert_int_equal(page.n, 1);
    assert_string_equal(page.list[0].id, "m-3");
    assert_false(w.queue.list[0].is_removed);
    w.refuses = NULL;
    w.queue.list[0].until_ms = 0;
    page = next(SL_OK);
    assert_int_equal(page.n, 0);
    assert_true(w.queue.list[0].is_removed);
    assert_finishes(SL_OK, NULL);
}

static void a_receive_that_fails_is_tried_again(void **state)
{
    (void)state;
    fill(5);
    w.liar = "ReceiveMessage", w.status = 500, w.lies = 2;
    struct sl_mail_page page = next(SL_OK);
    assert_int_equal(page.n, 5);
    settle(&page, true);
    w.lies = 3;
    page = next(SL_RETRY);
    assert_int_equal(page.n, 0);
    w.status = 200, w.lies = 3; /* an answer that is none */
    page = next(SL_RETRY);
    w.status = 403, w.lies = 1; /* it does not get better by itself */
    page = next(SL_FATAL);
    assert_int_equal(w.lies, 0);
    assert_finishes(SL_OK, NULL);
}

/* The queue gives no more while so many are out; when some are removed, the others come. */
static void a_full_queue_goes_on_after_removals(void **state)
{
    (void)state;
    size_t n = 0;
    w.queue.most_in_flight = 20;
    fill(50);
    for (bool is_last = false; !is_last;) {
        struct sl_mail_page page = next(SL_OK);
        is_last = page.is_last;
        n += page.n;
        settle(&page, true);
    }
    assert_int_equal(n, 50);
    assert_int_equal(fake_inbox_count(&w.queue), 0);
    assert_finishes(SL_OK, NULL);
}

/* Pages of a bounded size, whatever there is; a box that is told to stop has no last page. */
static void pages_have_a_bound(void **state)
{
    (void)state;
    static const struct {
        size_t n, bytes;
        size_t most; /* of a page */
    } cases[] = {{450, 10, SL_MAIL_PAGE}, {5, 5 * 1024 * 1024, 2}};
    for (size_t i = 0; i < 2; i++)
        for (int is_folder = 0; is_folder < 2; is_folder++) {
            char *folder = test_folder_in_memory(), *value = calloc(1, cases[i].bytes + 1), name[300];
            struct sl_mailbox *box = NULL;
            struct sl_error error = SL_NO_ERROR;
            memset(value, 'a', cases[i].bytes);
            value[0] = value[cases[i].bytes - 1] = '"';
            for (size_t k = 0; k < cases[i].n; k++) {
                snprintf(name, sizeof(name), is_folder ? "%s/%03zu" : "%s/all", folder, k);
                FILE *out = fopen(name, "a");
                fwrite(value, 1, cases[i].bytes, out);
                fclose(out);
            }
            assert_int_equal(sl_mailbox_open(&w.options, is_folder ? folder : name, &box, &error), SL_OK);
            /* Of a folder so many more as are read at a time. */
            size_t n = 0, most = cases[i].most + (is_folder && i == 0 ? 15 : 0);
            for (bool is_last = false; !is_last;) {
                struct sl_mail_page page = {0};
                assert_int_equal(box->next(box, w.arena, &page, &error), SL_OK);
                assert_true(page.n <= most && (page.n >= cases[i].most || page.is_last));
                n += page.n;
                is_last = page.is_last;
                sl_arena_reset(w.arena);
            }
            assert_int_equal(n, cases[i].n);
            w.stop = 1;
            struct sl_mail_page page = {0};
            assert_int_equal(box->next(box, w.arena, &page, &error), SL_OK);
            assert_true(page.n == 0 && !page.is_last);
            w.stop = 0;
            box->close(box);
            free(value);
            test_folder_remove(folder);
        }
}

static void an_object_above_the_limit_is_not_read(void **state)
{
    (void)state;
    char *folder = test_folder_in_memory(), name[300];
    struct sl_mailbox *box = NULL;
    struct sl_error error = SL_NO_ERROR;
    struct sl_mail_page page = {0};
    snprintf(name, sizeof(name), "%s/large", folder);
    test_write(name, "");
    assert_int_equal(truncate(name, (off_t)SL_MAIL_BYTES + 1), 0);
    snprintf(name, sizeof(name), "%s/small", folder);
    test_write(name, "{}");
    assert_int_equal(sl_mailbox_open(&w.options, folder, &box, &error), SL_OK);
    assert_int_equal(box->next(box, w.arena, &page, &error), SL_OK);
    assert_int_equal(page.n, 2);
    assert_string_equal(page.list[0].unreadable,
                        "the object has 67108865 bytes; a message has 67108864 at most");
    assert_null(page.list[1].unreadable);
    box->close(box);
    test_folder_remove(folder);
}

static void a_place_is_found_by_its_form(void **state)
{
    (void)state;
    static const struct {
        const char *name, *told;
    } cases[] = {
        {"https://sqs.us-east-1.amazonaws.com/1/q", "is none of sqs://QUEUE, s3://BUCKET/PREFIX, a folder"},
        {"sqs://a/b/c!", "queue name"},
        {"s3://", "bucket"},
        {"file:/nowhere/at/all", "/nowhere/at/all"},
        {"/nowhere/at/all", "/nowhere/at/all"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_mailbox *box = NULL;
        struct sl_error error = SL_NO_ERROR;
        assert_true(sl_mailbox_open(&w.options, cases[i].name, &box, &error) != SL_OK);
        assert_null(box);
        if (!strstr(error.text, cases[i].told))
            fail_msg("%s: %s", cases[i].name, error.text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_held_is_hidden_anew),
        TEST(twelve_hours_are_the_end),
        TEST(what_is_no_longer_ours_is_forgotten),
        TEST(what_cannot_be_let_go_of_is_counted),
        TEST(a_hold_of_many_messages_is_let_go_of),
        TEST(receipts_that_are_lost_are_told),
        TEST(every_message_is_given_out_once),
        TEST(no_more_is_fetched_than_is_wanted),
        TEST(what_could_not_be_removed_is_removed_later),
        TEST(a_receive_that_fails_is_tried_again),
        TEST(a_full_queue_goes_on_after_removals),
        TEST(pages_have_a_bound),
        TEST(an_object_above_the_limit_is_not_read),
        TEST(a_place_is_found_by_its_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
