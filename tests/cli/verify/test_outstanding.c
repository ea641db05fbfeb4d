/* `sluice verify` and `repair` while letters of a route wait: nothing is proven, nothing is a false alarm,
 * and nothing is repaired, until the queue was empty in three looks over two minutes. */
#include "tests/support/disk_fault.h"
#include "tests/support/fake_inbox.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "--table sqlite:src.db?table=orders --max-lag 0"

static const char config[] =
    "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["
    "{'name':'late','handler':'replicate','to':'sqlite:out.db?table=late','set_aside':'sqs://later'},"
    "{'name':'plain','handler':'replicate','to':'sqlite:out.db?table=plain'}]}";

struct world {
    struct verbs *v;
    struct fake_inbox queue;
    struct scripted_server *server;
    char variable[80];
    size_t looks;
    size_t appears_at; /* the look at which a letter appears; 0: none does */
    bool is_broken;
};

static bool instead(void *arg, struct sl_span operation, struct scripted_reply *reply)
{
    struct world *w = arg;
    if (!sl_span_is(operation, "GetQueueAttributes"))
        return false;
    if (++w->looks == w->appears_at)
        fake_inbox_add(&w->queue, NULL, "a letter");
    if (!w->is_broken)
        return false;
    reply->status = 403;
    reply->body = json_span("{'__type':'AccessDeniedException','message':'no'}");
    return true;
}

static void forget_letters(struct world *w)
{
    while (w->queue.n)
        free(w->queue.list[--w->queue.n].body);
}

static void sql(const struct verbs *v, const char *name, const char *text)
{
    char path[512], *error = NULL;
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", text, error);
    sqlite3_close(db);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->v = verbs_new();
    fake_inbox_init(&w->queue, sl_clock_system());
    w->queue.arg = w;
    w->queue.instead = instead;
    w->server = scripted_server_start(fake_inbox_answer, &w->queue);
    snprintf(w->variable, sizeof(w->variable), "AWS_ENDPOINT_URL=%s", scripted_server_url(w->server));
    verb_set(w->v, w->variable);
    verb_set(w->v, "AWS_MAX_ATTEMPTS=1");
    verb_write(w->v, "sluice.json", config);
    sql(w->v, "src.db", "CREATE TABLE orders (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID");
    for (int i = 0; i < 12; i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "INSERT INTO orders VALUES ('{\"PK\":{\"S\":\"i%d\"}}', "
                 "'{\"PK\":{\"S\":\"i%d\"},\"n\":{\"N\":\"1\"}}')",
                 i, i);
        sql(w->v, "src.db", text);
    }
    disk_fault->skips_sleep = true;
    verb_assert(w->v, verb(w->v, "backfill --keys PK --unsafe-order --table sqlite:src.db?table=orders"), 0,
                "items");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    disk_fault->skips_sleep = false;
    scripted_server_stop(w->server);
    fake_inbox_clean_up(&w->queue);
    verbs_destroy(w->v);
    free(w);
    return 0;
}

static void an_empty_queue_is_looked_at_three_times(void **state)
{
    struct world *w = *state;
    verb_assert(w->v, verb(w->v, "verify " SOURCE), 0, "late: 12 equal, 0 different");
    assert_int_equal(w->looks, 3);
    w->looks = 0;
    verb_assert(w->v, verb(w->v, "verify --routes plain " SOURCE), 0, "plain: 12 equal");
    assert_int_equal(w->looks, 0);
}

/* Also when it appears at the second or third look only. */
static void equal_is_no_proof_while_a_letter_waits(void **state)
{
    struct world *w = *state;
    for (w->appears_at = 1; w->appears_at <= 3; w->appears_at++) {
        w->looks = 0;
        verb_assert(w->v, verb(w->v, "verify " SOURCE), 3, "late: pending (set aside): ");
        forget_letters(w);
    }
    w->appears_at = 0;
    fake_inbox_add(&w->queue, NULL, "a letter");
    verb_assert(w->v, verb(w->v, "verify --json " SOURCE), 3,
                "{\"result\":\"set_aside\",\"route\":\"late\",\"letters\":1}");
    verb_assert(w->v, verb(w->v, "verify --verified when.json " SOURCE), 3, "late: 12 equal");
    assert_null(strstr(verb_read(w->v, "when.json"), "late"));
}

static void a_difference_that_a_letter_may_explain_is_pending(void **state)
{
    struct world *w = *state;
    sql(w->v, "out.db", "DELETE FROM late WHERE key LIKE '%i3%'");
    fake_inbox_add(&w->queue, NULL, "a letter");
    verb_assert(w->v, verb(w->v, "verify --wait 200 " SOURCE), 3, "late: 11 equal, 0 different, 1 pending");
    /* The other route's are told all the same. */
    sql(w->v, "out.db", "DELETE FROM plain WHERE key LIKE '%i4%'");
    verb_assert(w->v, verb(w->v, "verify --wait 200 " SOURCE), 1, "plain: 11 equal, 1 different (1 missing)");
    assert_non_null(strstr(verb_out(w->v), "late: 11 equal, 0 different, 1 pending"));
    /* Drained: it is one. */
    forget_letters(w);
    verb_assert(w->v, verb(w->v, "verify " SOURCE), 1, "late: 11 equal, 1 different (1 missing)");
}

static void nothing_is_repaired_while_a_letter_waits(void **state)
{
    struct world *w = *state;
    sql(w->v, "out.db", "DELETE FROM late WHERE key LIKE '%i3%'");
    fake_inbox_add(&w->queue, NULL, "a letter");
    verb_assert(w->v, verb(w->v, "repair " SOURCE), 2,
                "late: 1 letters wait in its queue, or are dead: drain or discard them");
    verb_assert(w->v, verb(w->v, "repair --routes plain " SOURCE), 0, "repaired: 0 written");
    forget_letters(w);
    verb_assert(w->v, verb(w->v, "repair " SOURCE), 0, "repaired: 1 written");
    verb_assert(w->v, verb(w->v, "verify " SOURCE), 0, "late: 12 equal");
}

/* Dead letters count; and what cannot be asked is not known. */
static void nobody_knows_is_no_proof(void **state)
{
    struct world *w = *state;
    w->queue.max_receives = 1000;
    verb_assert(w->v, verb(w->v, "verify " SOURCE), 0, "late: 12 equal");
    assert_int_equal(w->looks, 6); /* of two queues */
    w->is_broken = true;
    verb_assert(w->v, verb(w->v, "verify " SOURCE), 3, "late: pending (set aside): nobody can say");
    verb_assert(w->v, verb(w->v, "repair " SOURCE), 2, "nobody can say whether letters wait");
}

/* On a laptop the letters are lines of a file. */
static void a_file_of_letters_is_a_queue(void **state)
{
    struct world *w = *state;
    char *text = strdup(config);
    assert_non_null(text);
    const char *const places[] = {"", "", "a letter\n"};
    for (size_t i = 0; i < 3; i++) {
        char *at = strstr(text, i ? "jsonl:late" : "sqs://later");
        assert_non_null(at);
        memcpy(at, "jsonl:late1", 11);
        verb_write(w->v, "sluice.json", text);
        if (i)
            verb_write(w->v, "late1", places[i]);
        verb_assert(w->v, verb(w->v, "verify " SOURCE), i == 2 ? 3 : 0,
                    i == 2 ? "late: pending (set aside): " : "late: 12 equal");
    }
    assert_int_equal(w->looks, 0);
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_queue_is_looked_at_three_times),
        TEST(equal_is_no_proof_while_a_letter_waits),
        TEST(a_difference_that_a_letter_may_explain_is_pending),
        TEST(nothing_is_repaired_while_a_letter_waits),
        TEST(nobody_knows_is_no_proof),
        TEST(a_file_of_letters_is_a_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
