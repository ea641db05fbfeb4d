/* Replicas with tombstones in a side table, when several processes write one item at once: each request of
 * each process is a point at which another may come in, and at which a process may be killed. */
#include "base/array.h"
#include "tests/support/events.h"
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define CONFIG                                                                                               \
    "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r','handler':'replicate',"  \
    "'to':'sqlite:%s/db?table=replica','tombstones':{'table':'marks'}}]}"

#define A                PK("a")
#define INSERT(seq)      EVENT(RECORD("INSERT", seq, KEYS(A) NEW(A ",'v':" N(seq))))
#define MODIFY(seq)      EVENT(RECORD("MODIFY", seq, KEYS(A) NEW(A ",'v':" N(seq)) OLD(A)))
#define REMOVE(seq)      EVENT(RECORD("REMOVE", seq, KEYS(A) OLD(A)))
#define CHANGES          6
#define ACTORS           3
#define DELIVERIES       3
#define REQUESTS_AT_MOST 400

/* The history of the item. */
static const char *const history[CHANGES] = {INSERT("1"), MODIFY("2"), REMOVE("3"),
                                             INSERT("4"), MODIFY("5"), REMOVE("6")};

static bool removes(int change)
{
    return change % 3 == 2;
}

/* ---- the tables ---- */

struct world;

/* A process that delivers some of the changes, one after the other. */
struct actor {
    struct world *world;
    struct stage *stage;
    pthread_t thread;
    sem_t turn;
    int changes[DELIVERIES], n;
    bool is_waiting, is_over;
    enum stage_fate fate; /* of its next request */
};

struct world {
    char *folder;
    sqlite3 *db;
    const char *events[CHANGES]; /* of the history */
    struct actor actors[ACTORS];
    sem_t stopped; /* an actor waits for its turn, or is over */
    uint64_t state;
    uint64_t seed;
};

static void run_sql(struct world *w, const char *sql)
{
    if (sqlite3_exec(w->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(w->db));
}

/* The row of a table that has one at most; NULL when it has none. */
static char *row_of(struct world *w, const char *table)
{
    char sql[64], *text = NULL;
    sqlite3_stmt *statement;
    snprintf(sql, sizeof(sql), "SELECT item FROM %s", table);
    assert_int_equal(sqlite3_prepare_v2(w->db, sql, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW)
        text = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return text;
}

/* The order in the text of a guard, 0 when there is none. */
static int order_in(const char *row)
{
    const char *guard = row ? strstr(row, "\"000000:") : NULL;
    return guard ? (int)strtol(guard + strlen("\"000000:") + 38, NULL, 10) : 0;
}

struct seen {
    int guard, mark;
    bool is_there, is_tombstone;
    int value;
};

static struct seen look(struct world *w)
{
    char *item = row_of(w, "replica"), *mark = row_of(w, "marks");
    const char *value = item ? strstr(item, "\"v\":{\"N\":\"") : NULL;
    struct seen seen = {.guard = order_in(item),
                        .mark = order_in(mark),
                        .is_there = item != NULL,
                        .is_tombstone = item && strstr(item, "sluice_deleted"),
                        .value = value ? (int)strtol(value + strlen("\"v\":{\"N\":\""), NULL, 10) : 0};
    free(item);
    free(mark);
    return seen;
}

/* ---- turns ---- */

static enum stage_fate wait_for_turn(struct stage *s)
{
    struct actor *a = s->context;
    a->is_waiting = true;
    sem_post(&a->world->stopped);
    sem_wait(&a->turn);
    return a->fate;
}

/* A change that failed is delivered again, as its event source does. */
static void *act(void *context)
{
    struct actor *a = context;
    for (int i = 0; i < a->n; i++)
        if (!stage_drive(a->stage, a->world->events[a->changes[i]], 20))
            sl_die("seed %llu: a change is never done: %s", (unsigned long long)a->world->seed,
                   a->stage->answer.error.text);
    a->is_over = true;
    sem_post(&a->world->stopped);
    return NULL;
}

/* One of the actors that wait for a turn. */
static struct actor *draw_actor(struct world *w)
{
    struct actor *waiting[ACTORS];
    size_t n = 0;
    for (int i = 0; i < ACTORS; i++)
        if (!w->actors[i].is_over && w->actors[i].is_waiting)
            waiting[n++] = &w->actors[i];
    return n ? waiting[history_draw(&w->state, n)] : NULL;
}

static void check_step(struct world *w, const struct seen *before, const struct seen *now)
{
    int reached = before->guard > before->mark ? before->guard : before->mark;
    if (now->guard < reached && now->mark < reached)
        fail_msg("seed %llu: order %d is forgotten: guard %d, mark %d", (unsigned long long)w->seed, reached,
                 now->guard, now->mark);
    if (now->is_there && now->guard && now->mark > now->guard)
        fail_msg("seed %llu: an item of order %d stands beside the mark of %d", (unsigned long long)w->seed,
                 now->guard, now->mark);
}

typedef void (*user_fn)(struct world *w, int request);

/* Lets the actors run, one request at a time. */
static void run(struct world *w, user_fn user, unsigned kill_one_in)
{
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &w->actors[i];
        a->is_over = a->is_waiting = false;
        pthread_create(&a->thread, NULL, act, a);
        sem_wait(&w->stopped);
    }
    struct seen before = look(w), now;
    int requests = 0;
    for (struct actor *a; (a = draw_actor(w)); before = now) {
        a->fate = history_draw(&w->state, kill_one_in) ? STAGE_WELL
                  : history_draw(&w->state, 2)         ? STAGE_FAILS_AFTER
                                                       : STAGE_FAILS_BEFORE;
        a->is_waiting = false;
        sem_post(&a->turn);
        sem_wait(&w->stopped);
        now = look(w);
        if (!user)
            check_step(w, &before, &now);
        else
            user(w, requests);
        assert_true(++requests < REQUESTS_AT_MOST);
    }
    for (int i = 0; i < ACTORS; i++)
        pthread_join(w->actors[i].thread, NULL);
}

/* ---- worlds ---- */

static void open_stage(struct world *w, int i)
{
    char config[600];
    snprintf(config, sizeof(config), CONFIG, i ? w->folder : "${DIR}");
    w->actors[i] = (struct actor){.world = w, .stage = stage_new(config, NULL)};
    if (i == 0)
        w->folder = w->actors[0].stage->folder;
    sem_init(&w->actors[i].turn, 0, 0);
}

static void open_world(struct world *w)
{
    char path[300];
    *w = (struct world){.seed = 0};
    for (int i = 0; i < CHANGES; i++)
        w->events[i] = json(history[i]);
    sem_init(&w->stopped, 0, 0);
    for (int i = 0; i < ACTORS; i++)
        open_stage(w, i);
    /* The side table is made at its first use. */
    stage_deliver_all(w->actors[0].stage, REMOVE("1"));
    for (int i = 0; i < ACTORS; i++) {
        w->actors[i].stage->at_table = wait_for_turn;
        w->actors[i].stage->context = &w->actors[i];
    }
    snprintf(path, sizeof(path), "%s/db", w->folder);
    assert_int_equal(sqlite3_open(path, &w->db), SQLITE_OK);
    sqlite3_busy_timeout(w->db, 5000);
}

static void close_world(struct world *w)
{
    sqlite3_close(w->db);
    for (int i = ACTORS - 1; i >= 0; i--) {
        w->actors[i].stage->at_table = NULL;
        stage_destroy(w->actors[i].stage);
        sem_destroy(&w->actors[i].turn);
    }
    sem_destroy(&w->stopped);
}

static void begin(struct world *w, uint64_t seed)
{
    w->seed = seed;
    w->state = seed * 7919 + 1;
    run_sql(w, "DELETE FROM replica; DELETE FROM marks");
}

static int draw_changes(struct world *w)
{
    int newest = -1;
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &w->actors[i];
        a->n = 1 + (int)history_draw(&w->state, DELIVERIES);
        for (int k = 0; k < a->n; k++) {
            a->changes[k] = (int)history_draw(&w->state, CHANGES);
            newest = a->changes[k] > newest ? a->changes[k] : newest;
        }
    }
    return newest;
}

static uint64_t worlds(void)
{
    const char *n = getenv("WORLDS");
    return n ? strtoull(n, NULL, 10) : 1500;
}

/* ---- tests ---- */

/* Whatever is delivered, late, twice, at once, and with processes that are killed: the newest stands. */
static void the_newest_change_stands_after_every_interleaving(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    for (uint64_t seed = 1; seed <= worlds(); seed++) {
        begin(&w, seed);
        int newest = draw_changes(&w);
        run(&w, NULL, seed % 3 ? 6 : 1000);
        struct seen end = look(&w);
        bool is_right = removes(newest) ? !end.is_there && end.mark == newest + 1
                                        : end.is_there && !end.is_tombstone && end.value == newest + 1;
        if (!is_right)
            fail_msg("seed %llu: after change %d: there %d, tombstone %d, value %d, guard %d, mark %d",
                     (unsigned long long)seed, newest + 1, end.is_there, end.is_tombstone, end.value,
                     end.guard, end.mark);
    }
    close_world(&w);
}

#define INLINE_TOMBSTONE(time)                                                                               \
    "INSERT INTO replica(key,item) SELECT '{\"PK\":{\"S\":\"a\"}}', '{\"PK\":{\"S\":\"a\"},"                 \
    "\"sluice_order\":{\"S\":\"000000:0000000000000000000000000000000000000003:" time "\"},"                 \
    "\"sluice_deleted\":{\"BOOL\":true},\"sluice_expires\":{\"N\":\"1\"}}'"
#define TIME "0001767265199000" /* of the removal itself, which is delivered again */

/* The inline tombstones of before the switch are as good as marks, and become marks when their removals are
 * delivered again. */
static void inline_tombstones_stay_valid(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    for (uint64_t seed = 1; seed <= worlds() / 5; seed++) {
        begin(&w, seed);
        run_sql(&w, seed % 2 ? INLINE_TOMBSTONE("0000000000000000") : INLINE_TOMBSTONE(TIME));
        int newest = draw_changes(&w);
        run(&w, NULL, 6);
        struct seen end = look(&w);
        if (newest < 2        ? !end.is_tombstone || end.guard != 3
            : removes(newest) ? end.is_there || end.mark != newest + 1
                              : end.value != newest + 1)
            fail_msg("seed %llu: after change %d: there %d, tombstone %d, value %d, guard %d, mark %d",
                     (unsigned long long)seed, newest + 1, end.is_there, end.is_tombstone, end.value,
                     end.guard, end.mark);
    }
    close_world(&w);
}

/* The application puts the item anew, which erases the guard, while old changes are redelivered. */
static void put_item_once(struct world *w, int request)
{
    if (request == 2 + (int)(w->seed % 5))
        run_sql(w, "INSERT OR REPLACE INTO replica(key,item) VALUES('{\"PK\":{\"S\":\"a\"}}',"
                   "'{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"77\"}}')");
}

static void what_the_application_put_is_safe_from_old_changes(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    for (uint64_t seed = 1; seed <= worlds() / 3; seed++) {
        begin(&w, seed);
        /* All was delivered once; the last change may have been cut short after its first request. */
        for (int i = 0; i < ACTORS; i++)
            w.actors[i].n = 0;
        w.actors[0].n = 1;
        w.actors[0].changes[0] = CHANGES - 1;
        run(&w, NULL, 1000);
        draw_changes(&w);
        run(&w, put_item_once, 6);
        struct seen end = look(&w);
        if (end.mark != CHANGES || (end.is_there && end.value != 77))
            fail_msg("seed %llu: value %d, mark %d", (unsigned long long)seed, end.value, end.mark);
    }
    close_world(&w);
}

/* ---- a removal that was cut short ---- */

static bool no_delete(struct stage *s, const struct sl_table_op *ops, size_t n, struct sl_result *results)
{
    (void)s;
    for (size_t i = 0; i < n && ops[0].verb == SL_TABLE_DELETE; i++)
        results[i] = (struct sl_result){.status = SL_RETRY, .code = "Throttled", .text = "not now"};
    return ops[0].verb == SL_TABLE_DELETE;
}

/* A killed process left the tombstone in the item's place. The removal, when it is redelivered, takes it away,
 * but not what the application has made of it, or has put in its place. */
static void a_removal_that_comes_again_leaves_what_was_written_since(void **state)
{
    (void)state;
    static const struct {
        const char *written; /* what the application does */
        const char *row;     /* afterwards: the values v and x */
    } cases[] = {
        {"SELECT 1", ""},
        {"UPDATE replica SET item = json_set(item, '$.x', json('{\"N\":\"7\"}'))", "(null)|7\n"},
        {"UPDATE replica SET item = json_set(item, '$.sluice_expires.N', '9')", "(null)|(null)\n"},
        {"UPDATE replica SET item = '{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"5\"}}'", "5|(null)\n"},
        {"DELETE FROM replica", ""},
    };
    const char *removal = EVENT(RECORD("REMOVE", "3", KEYS(PK("a")) OLD(PK("a") ",'v':" N("1"))));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *s = stage_new("{'on_failure':'report','report_batch_item_failures':true,'routes':["
                                    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica',"
                                    "'tombstones':{'table':'marks'}}]}",
                                    NULL);
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a") ",'v':" N("1")))));
        s->for_table = no_delete;
        stage_deliver(s, json_span(removal));
        s->for_table = NULL;
        assert_int_equal(stage_checkpoint(s), 0);
        stage_change(s, "db", cases[i].written);
        stage_reopen(s, NULL);
        stage_deliver_all(s, removal);
        char *row = stage_query(s, "db",
                                "SELECT json_extract(item,'$.v.N'), json_extract(item,'$.x.N') FROM replica");
        if (strcmp(row, cases[i].row) != 0)
            fail_msg("%s: %s", cases[i].written, row);
        free(row);
        stage_destroy(s);
    }
}

/* In slices: one ends before record i + 1 where bit i is set. */
static void deliver_cut(struct stage *s, const char *const *records, unsigned n, unsigned cuts, bool is_done)
{
    for (unsigned from = 0, to; from < n; from = to) {
        char text[4096];
        int at = snprintf(text, sizeof(text), "{'Records':[%s", records[from]);
        for (to = from + 1; to < n && !(cuts & 1U << (to - 1)); to++)
            at += snprintf(text + at, sizeof(text) - (size_t)at, ",%s", records[to]);
        const char *event = json_printf("%s]}", text);
        if (is_done)
            stage_deliver_all(s, event);
        else
            stage_deliver(s, sl_span_str(event));
    }
}

/* Records are folded as they are delivered together, and a killed process leaves the tombstone of one fold.
 * However they are delivered again, nothing of it stays. */
static void a_tombstone_of_a_fold_goes_however_its_records_are_delivered_again(void **state)
{
    (void)state;
#define V(n) PK("a") ",'v':" N(#n)
    static const char *const records[] = {
        RECORD("INSERT", "1", KEYS(PK("a")) NEW(V(9))),           /* inside */
        RECORD("MODIFY", "2", KEYS(PK("a")) NEW(V(1)) OLD(V(9))), /* leaves */
        RECORD("MODIFY", "3", KEYS(PK("a")) NEW(V(2)) OLD(V(1))), /* was not there, is not there */
        RECORD("REMOVE", "4", KEYS(PK("a")) OLD(V(2))),
    };
    const char *config =
        "{'on_failure':'report','report_batch_item_failures':true,'routes':[{'name':'r',"
        "'handler':'replicate','to':'sqlite:${DIR}/db?table=replica','tombstones':{'table':'marks'},"
        "'where':{'v':[{'numeric':['>=',5]}]}}]}";
    for (unsigned n = 2; n <= SL_COUNT(records); n++)
        for (unsigned cuts = 0; cuts < 1U << (n - 1); cuts++)
            for (unsigned again = 0; again < 1U << (n - 1); again++) {
                struct stage *s = stage_new(config, NULL);
                s->for_table = no_delete;
                deliver_cut(s, records, n, cuts, false);
                s->for_table = NULL;
                deliver_cut(s, records, n, again, true);
                char *row = stage_query(s, "db", "SELECT item FROM replica");
                if (row[0])
                    fail_msg("%u records, cut %u, then %u: %s", n, cuts, again, row);
                free(row);
                stage_destroy(s);
            }
#undef V
}

/* The mark that refuses an old removal is older than the tombstone, which it does not stand for. */
static void a_later_tombstone_goes_only_with_its_own_mark(void **state)
{
    (void)state;
#define GUARD(n)    "000000:000000000000000000000000000000000000000" #n ":0001767265199000"
#define SET_MARK(n) "UPDATE marks SET item = json_set(item, '$.order.S', '" GUARD(n) "')"
    static const char *const beforehand[] = {"DELETE FROM marks", SET_MARK(2), SET_MARK(5)};
    for (size_t i = 0; i < SL_COUNT(beforehand); i++) {
        struct stage *s = stage_new("{'on_failure':'report','report_batch_item_failures':true,'routes':["
                                    "{'name':'r','handler':'replicate','to':'sqlite:${DIR}/db?table=replica',"
                                    "'tombstones':{'table':'marks'}}]}",
                                    NULL);
        stage_deliver_all(s, EVENT(RECORD("INSERT", "1", KEYS(PK("a")) NEW(PK("a")))));
        s->for_table = no_delete;
        stage_deliver(s, json_span(EVENT(RECORD("REMOVE", "5", KEYS(PK("a")) OLD(PK("a"))))));
        s->for_table = NULL;
        stage_change(s, "db", beforehand[i]);
        stage_deliver_all(s, EVENT(RECORD("REMOVE", "2", KEYS(PK("a")) OLD(PK("a")))));
        char *rows = stage_query(s, "db", "SELECT count(*) FROM replica");
        char *mark = stage_query(s, "db", "SELECT json_extract(item, '$.order.S') FROM marks");
        assert_string_equal(rows, "0\n");
        assert_string_equal(mark, GUARD(5) "\n");
        free(rows);
        free(mark);
        stage_destroy(s);
    }
#undef GUARD
#undef SET_MARK
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_change_stands_after_every_interleaving),
        cmocka_unit_test(inline_tombstones_stay_valid),
        cmocka_unit_test(what_the_application_put_is_safe_from_old_changes),
        cmocka_unit_test(a_removal_that_comes_again_leaves_what_was_written_since),
        cmocka_unit_test(a_tombstone_of_a_fold_goes_however_its_records_are_delivered_again),
        cmocka_unit_test(a_later_tombstone_goes_only_with_its_own_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
