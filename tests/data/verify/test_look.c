/* The rule of suspects, over every schedule: the source changes, the consumer handles changes or waits,
 * before each read of two looks. A row that is right or on its way is never a difference; one that is wrong
 * is found. Real handlers, dispatch and SQLite tables; the clock is virtual. */
#include "handlers/pipeline/pipeline.h"
#include "sinks/target.h"
#include "tests/support/events.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"
#include "data/repair/repair.h"
#include "data/verify/look.h"
#include "data/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the world: a source, its stream, a consumer, a replica ---- */

enum action {
    NOTHING,
    CHANGE,
    HANDLE,
    HANDLE_ALL,
    REMOVE_OR_ADD,
    ACTIONS,
    /* Two at once, for schedules of few calls. */
    CHANGE_AND_HANDLE = ACTIONS,
    REMOVE_AND_HANDLE,
    ALL_ACTIONS
};

#define CHANGES_MAX 64

struct world {
    struct stage *stage;
    struct sl_table_port real, *source; /* `real`: what the verification reads through */
    struct sl_table_port *inner;
    bool is_there;
    unsigned value; /* of the item: 0 or 1 */
    int64_t made_ms[CHANGES_MAX];
    char *events[CHANGES_MAX];
    size_t n_changes, handled;
    const enum action *schedule;
    size_t n_actions, at;
    bool is_busy; /* an action runs: the calls are not the verification's */

    /* What the verification says. */
    size_t found;
    enum sl_finding_result result;
    enum sl_verdict verdict;

    /* What is found is repaired at once. */
    struct sl_repairs *repairs;
    size_t written, moved;
    bool guards_beside;
};

static struct world the;

static int64_t wall_ms(void)
{
    return the.stage->clock.clock.wall_ns(&the.stage->clock.clock) / 1000000;
}

static void write_source(void)
{
    char item[128];
    snprintf(item, sizeof(item), "{\"PK\":{\"S\":\"a\"},\"n\":{\"N\":\"%u\"}}", the.value);
    struct sl_table_op op = {.verb = the.is_there ? SL_TABLE_PUT : SL_TABLE_DELETE,
                             .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                             .item = sl_span_str(item)};
    struct sl_result result = {.status = SL_OK};
    const struct sl_call call = {.arena = the.stage->arena, .deadline_ms = INT64_MAX / 2};
    the.inner->apply(the.inner, &op, 1, &result, &call);
    assert_int_equal(result.status, SL_OK);
}

static void image(char *out, size_t room, bool is_there, unsigned value, const char *name)
{
    out[0] = '\0';
    if (is_there)
        snprintf(out, room, ",'%s':{'PK':{'S':'a'},'n':{'N':'%u'}}", name, value);
}

/* One change of the source, and its record. */
static void change(bool is_there, unsigned value)
{
    char old[96], new[96], text[600];
    image(old, sizeof(old), the.is_there, the.value, "OldImage");
    image(new, sizeof(new), is_there, value, "NewImage");
    const char *event = !the.is_there ? "INSERT" : is_there ? "MODIFY" : "REMOVE";
    snprintf(text, sizeof(text),
             "{'Records':[{'eventID':'e%zu','eventName':'%s','eventSource':'aws:dynamodb','awsRegion':"
             "'eu-west-1','dynamodb':{'ApproximateCreationDateTime':%lld,'Keys':{'PK':{'S':'a'}}%s%s,"
             "'SequenceNumber':'%zu00000000000000000000%02zu','StreamViewType':'NEW_AND_OLD_IMAGES'},"
             "'eventSourceARN':'arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/x'}]}",
             the.n_changes, event, (long long)(wall_ms() / 1000), new, old, the.n_changes + 1, the.n_changes);
    assert_true(the.n_changes < CHANGES_MAX);
    the.made_ms[the.n_changes] = wall_ms();
    the.events[the.n_changes++] = strdup(text);
    the.is_there = is_there;
    the.value = value;
    write_source();
}

static void handle_next(void)
{
    if (the.handled < the.n_changes)
        stage_deliver_all(the.stage, the.events[the.handled++]);
}

static void act(enum action action)
{
    the.is_busy = true;
    the.stage->clock.ms += 10;
    switch (action) {
    case CHANGE:
        change(true, !the.value);
        break;
    case REMOVE_OR_ADD:
        change(!the.is_there, the.value);
        break;
    case HANDLE:
        handle_next();
        break;
    case HANDLE_ALL:
        while (the.handled < the.n_changes)
            handle_next();
        break;
    case CHANGE_AND_HANDLE:
    case REMOVE_AND_HANDLE:
        change(action == CHANGE_AND_HANDLE || !the.is_there, !the.value);
        while (the.handled < the.n_changes)
            handle_next();
        break;
    default:
        break;
    }
    the.is_busy = false;
}

/* Before each read of the verification: the next action. After the schedule the consumer catches up. */
static void before_read(void)
{
    if (the.is_busy)
        return;
    act(the.at < the.n_actions ? the.schedule[the.at] : HANDLE_ALL);
    the.at++;
}

static enum stage_fate at_table(struct stage *s)
{
    (void)s;
    before_read();
    return STAGE_WELL;
}

static void read_source(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    (void)port;
    before_read();
    the.inner->apply(the.inner, ops, n, results, call);
}

/* The first change that is not handled yet was made then; without one, now. */
static int64_t through(void *arg)
{
    (void)arg;
    return the.handled < the.n_changes ? the.made_ms[the.handled] : wall_ms();
}

static void repair(const struct sl_finding *f)
{
    struct sl_repair_outcome out;
    struct sl_arena *arena = sl_arena_new(4096);
    const struct sl_repair_row row = {.route = &the.stage->p->routes[0],
                                      .record = f->judge->record,
                                      .row = f->judge->row,
                                      .side = f->judge->side,
                                      .deadline_ms = INT64_MAX / 2};
    sl_repair_row(the.repairs, &row, arena, &out);
    the.written += out.outcome == SL_REPAIRED_WRITTEN || out.outcome == SL_REPAIRED_REMOVED;
    the.moved += out.outcome == SL_REPAIRED_MOVED;
    sl_arena_destroy(arena);
}

static void found(void *arg, const struct sl_finding *f, struct sl_span line)
{
    (void)arg;
    (void)line;
    if (the.repairs && f->result == SL_FINDING_DIFFERENT)
        repair(f);
    the.found++;
    the.result = f->result;
    the.verdict = f->judge ? f->judge->verdict : SL_VERDICT_EQUAL;
}

/* ---- runs ---- */

#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'replica','handler':"        \
    "'replicate','to':'sqlite:${DIR}/replica.db?table=r'%s}]}"

static void world_open(const char *options)
{
    char config[600], url[300];
    struct sl_error error = SL_NO_ERROR;
    the = (struct world){.value = 0, .guards_beside = strstr(options, "guard") != NULL};
    snprintf(config, sizeof(config), CONFIG, options);
    the.stage = stage_new(config, NULL);
    snprintf(url, sizeof(url), "sqlite:%s/source.db?table=s", the.stage->folder);
    assert_int_equal(sl_target_table(&the.stage->sinks, sl_span_str(url), &the.inner, &error), SL_OK);
    the.real = (struct sl_table_port){.size = sizeof(the.real), .apply = read_source};
    the.stage->at_table = at_table;
    the.is_busy = true;
}

static void world_close(void)
{
    the.inner->close(the.inner);
    for (size_t i = 0; i < the.n_changes; i++)
        free(the.events[i]);
    stage_destroy(the.stage);
}

/* A new item, and all of it handled but the last `behind` changes. */
static void world_begin(size_t behind, size_t n_changes)
{
    for (size_t i = 0; i < the.n_changes; i++)
        free(the.events[i]);
    the.n_changes = the.handled = the.at = the.found = the.written = the.moved = 0;
    the.is_there = false;
    the.value = 0;
    the.is_busy = true;
    stage_change(the.stage, "replica.db", "DROP TABLE IF EXISTS r; DROP TABLE IF EXISTS marks");
    stage_reopen(the.stage, NULL);
    the.stage->at_table = at_table;
    write_source();
    for (size_t i = 0; i < n_changes; i++) {
        the.stage->clock.ms += 10;
        change(true, i % 2);
    }
    while (the.handled + behind < the.n_changes)
        handle_next();
    the.is_busy = false;
}

static void verify(const enum action *schedule, size_t n)
{
    struct sl_verify *v = NULL;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_verify_options options = {.pipeline = the.stage->p,
                                              .sinks = &the.stage->sinks,
                                              .source = &the.real,
                                              .keys = {{SL_LIT("PK")}, 1},
                                              .arn = SL_LIT("arn"),
                                              .segments = 1,
                                              .n = 1,
                                              .only_items = true,
                                              .wait_ms = 1000000,
                                              .through_ms = through,
                                              .found = found};
    the.schedule = schedule;
    the.n_actions = n;
    assert_int_equal(sl_verify_open(&options, sl_span(NULL, 0), &v, &error), SL_OK);
    assert_int_equal(sl_verify_item(v, NULL, SL_LIT("{\"PK\":{\"S\":\"a\"}}"), &error), SL_OK);
    for (size_t steps = 0; !sl_verify_progress(v).is_done; steps++) {
        assert_int_equal(sl_verify_step(v, INT64_MAX / 2, &error), SL_OK);
        assert_true(steps < 10000);
    }
    sl_verify_close(v);
}

/* ---- what is right ---- */

/* The next schedule that differs in one of the first `used` actions: what a run did not come to does not
 * matter. */
static bool next_of(enum action *schedule, size_t used, enum action actions)
{
    for (size_t i = used; i > 0; i--) {
        if (++schedule[i - 1] < actions)
            return true;
        schedule[i - 1] = NOTHING;
    }
    return false;
}

/* How many actions tell that this schedule is another one's double, as there is nothing to handle; 0: none
 * does. */
static size_t double_at(const enum action *schedule, size_t n, size_t behind)
{
    for (size_t i = 0; i < n; i++) {
        if ((schedule[i] == HANDLE && behind == 0) || (schedule[i] == HANDLE_ALL && behind <= 1))
            return i + 1;
        behind += schedule[i] == CHANGE || schedule[i] == REMOVE_OR_ADD;
        behind -= schedule[i] == HANDLE;
        if (schedule[i] == HANDLE_ALL || schedule[i] >= ACTIONS)
            behind = 0;
    }
    return 0;
}

static bool next_schedule(enum action *schedule, size_t n, size_t used, size_t behind, enum action actions)
{
    used = used < n ? used : n;
    do {
        if (!next_of(schedule, used, actions))
            return false;
        used = double_at(schedule, n, behind);
    } while (used);
    return true;
}

static void no_false_alarm(const char *options, size_t n, size_t behind)
{
    enum action schedule[16] = {NOTHING};
    size_t runs = 0;
    world_open(options);
    do {
        world_begin(behind, 3);
        verify(schedule, n);
        if (the.found && the.result == SL_FINDING_DIFFERENT)
            fail_msg("schedule %zu: %s", runs, sl_finding_kind(the.verdict));
        runs++;
    } while (next_schedule(schedule, n, the.at, behind, ACTIONS));
    world_close();
    assert_true(runs > 50);
}

static void right_rows_are_never_differences(void **state)
{
    (void)state;
    no_false_alarm("", 4, 0);
    no_false_alarm("", 5, 2);
}

static void nor_are_they_with_marks_and_guards_beside(void **state)
{
    (void)state;
    no_false_alarm(",'tombstones':{'table':'marks'}", 3, 1);
    no_false_alarm(",'guard':{'table':'marks'}", 3, 1);
}

/* Longer schedules, drawn: the source changes to and fro while the consumer is slow. */
static void nor_in_long_schedules(void **state)
{
    (void)state;
    uint64_t seed = 7;
    world_open("");
    for (int run = 0; run < 250; run++) {
        enum action schedule[16];
        for (size_t i = 0; i < 16; i++)
            schedule[i] = (enum action)(sl_random_step(&seed) % ACTIONS);
        world_begin(sl_random_step(&seed) % 3, 3);
        verify(schedule, 16);
        if (the.found && the.result == SL_FINDING_DIFFERENT)
            fail_msg("drawn schedule %d: %s", run, sl_finding_kind(the.verdict));
    }
    world_close();
}

/* ---- what is wrong ---- */

/* The same item as the replica would be after all changes. */
static bool is_row_right(void)
{
    while (the.handled < the.n_changes)
        handle_next();
    char *row = stage_query(the.stage, "replica.db", "SELECT item FROM r"), wanted[40];
    snprintf(wanted, sizeof(wanted), "\"n\":{\"N\":\"%u\"}", the.value);
    bool is_live = strlen(row) > 1 && !strstr(row, "sluice_deleted");
    bool is_guarded = the.guards_beside || strstr(row, "sluice_order");
    bool right = the.is_there ? is_live && strstr(row, wanted) && is_guarded : !is_live;
    free(row);
    return right;
}

/* What lasts to the end is found, by every schedule whose changes end. */
static void nothing_is_missed(const char *breakage)
{
    enum action schedule[16] = {NOTHING};
    size_t missed = 0, lasting = 0, used;
    world_open("");
    do {
        world_begin(0, 3);
        the.is_busy = true;
        stage_change(the.stage, "replica.db", breakage);
        the.is_busy = false;
        verify(schedule, 4);
        used = the.at;
        the.is_busy = true;
        bool lasts = !is_row_right();
        lasting += lasts;
        missed += lasts && !(the.found && the.result == SL_FINDING_DIFFERENT);
    } while (next_schedule(schedule, 4, used, 0, ACTIONS));
    world_close();
    assert_true(lasting > 0);
    assert_int_equal(missed, 0);
}

static void edited_rows_are_found(void **state)
{
    (void)state;
    nothing_is_missed("UPDATE r SET item = replace(item, '\"n\":{\"N\":\"0\"}', '\"n\":{\"N\":\"7\"}')");
}

static void lost_rows_are_found(void **state)
{
    (void)state;
    nothing_is_missed("DELETE FROM r");
}

/* ---- what is repaired ---- */

/* The source changes, and the consumer is late or not, after the second look and between the repair's steps.
 * Whatever the repair wrote, in the end the row is right.
 */
static void repaired_in_every_schedule(const char *options, const char *breakage)
{
    enum action schedule[9] = {NOTHING};
    struct sl_repairs repairs = {.may_remove = true, .max_removals = UINT64_MAX};
    size_t written = 0, moved = 0, used;
    world_open(options);
    the.repairs = &repairs;
    do {
        world_begin(0, 3);
        the.is_busy = true;
        stage_change(the.stage, "replica.db", breakage);
        the.is_busy = false;
        verify(schedule, 9);
        used = the.at;
        the.is_busy = true;
        written += the.written;
        moved += the.moved;
        if (the.written && !is_row_right())
            fail_msg("%s, %s: %d %d %d", options, breakage, schedule[6], schedule[7], schedule[8]);
        assert_true(used > 6);
    } while (next_schedule(schedule + 6, 3, used - 6, 0, ALL_ACTIONS));
    world_close();
    assert_true(written > 0);
    assert_true(moved > 0);
}

static void a_repair_beside_the_stream_ends_right(void **state)
{
    (void)state;
    static const char *const modes[] = {"", ",'tombstones':{'table':'marks'}", ",'guard':{'table':'marks'}"};
    static const char *const breakages[] = {
        "UPDATE r SET item = replace(item, '\"n\":{\"N\":\"0\"}', '\"n\":{\"N\":\"7\"}')", "DELETE FROM r",
        "UPDATE r SET item = '{\"PK\":{\"S\":\"a\"}}'"};
    for (size_t m = 0; m < 3; m++)
        for (size_t b = 0; b < 3; b++)
            repaired_in_every_schedule(modes[m], breakages[b]);
}

/* ---- the rule by itself ---- */

static struct sl_look look_at(int64_t ms, int64_t through_ms, unsigned char seen)
{
    return (struct sl_look){
        .is_still = true, .began_ms = ms, .ended_ms = ms + 1, .through_ms = through_ms, .seen = {seen}};
}

static void rule_confirms_only_what_stood_still_and_was_passed(void **state)
{
    (void)state;
    struct sl_looks looks = {.n = 0};
    struct sl_look one = look_at(100, 50, 1), two = look_at(200, 101, 1);
    assert_int_equal(sl_looks_take(&looks, &one), SL_LOOKS_AGAIN);
    assert_false(sl_looks_is_due(&looks, 10000000, 101)); /* a change of that very moment may be on its way */
    assert_true(sl_looks_is_due(&looks, 0, 102));
    assert_int_equal(sl_looks_take(&looks, &two), SL_LOOKS_AGAIN);
    two.through_ms = 102;
    assert_int_equal(sl_looks_take(&looks, &two), SL_LOOKS_DIFFERENT);
}

static void rule_begins_anew_when_something_moved(void **state)
{
    (void)state;
    struct sl_looks looks = {.n = 0};
    struct sl_look one = look_at(100, 50, 1), two = look_at(200, 150, 2), three = look_at(300, 201, 2);
    assert_int_equal(sl_looks_take(&looks, &one), SL_LOOKS_AGAIN);
    assert_int_equal(sl_looks_take(&looks, &two), SL_LOOKS_AGAIN);
    assert_int_equal(sl_looks_take(&looks, &three), SL_LOOKS_AGAIN); /* past the first look, not the second */
    three.through_ms = 202;
    assert_int_equal(sl_looks_take(&looks, &three), SL_LOOKS_DIFFERENT);
    /* A look in which the source moved is no beginning, and no end. */
    looks = (struct sl_looks){.n = 0};
    one.is_still = false;
    assert_int_equal(sl_looks_take(&looks, &one), SL_LOOKS_AGAIN);
    one = look_at(200, 150, 1);
    assert_int_equal(sl_looks_take(&looks, &one), SL_LOOKS_AGAIN);
    one = look_at(300, 250, 1);
    one.is_still = false;
    assert_int_equal(sl_looks_take(&looks, &one), SL_LOOKS_AGAIN);
}

static void rule_ends_after_five_looks(void **state)
{
    (void)state;
    struct sl_looks moving = {.n = 0}, unknown = {.n = 0};
    for (unsigned char i = 1; i <= SL_LOOKS_MAX; i++) {
        struct sl_look one = look_at(100 * i, 100 * i, i), two = look_at(100 * i, 0, 1);
        bool is_last = i == SL_LOOKS_MAX;
        assert_int_equal(sl_looks_take(&moving, &one), is_last ? SL_LOOKS_UNSETTLED : SL_LOOKS_AGAIN);
        assert_int_equal(sl_looks_take(&unknown, &two), is_last ? SL_LOOKS_PENDING : SL_LOOKS_AGAIN);
        assert_false(sl_looks_is_due(&unknown, two.ended_ms, 0)); /* twice the last wait */
        assert_true(sl_looks_is_due(&unknown, two.ended_ms + (SL_LOOKS_WAIT_MS << (i - 1)), 0));
    }
    struct sl_look right = look_at(900, 0, 1);
    right.is_right = true;
    assert_int_equal(sl_looks_take(&unknown, &right), SL_LOOKS_RIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_rows_are_never_differences),
        cmocka_unit_test(nor_are_they_with_marks_and_guards_beside),
        cmocka_unit_test(nor_in_long_schedules),
        cmocka_unit_test(edited_rows_are_found),
        cmocka_unit_test(a_repair_beside_the_stream_ends_right),
        cmocka_unit_test(lost_rows_are_found),
        cmocka_unit_test(rule_confirms_only_what_stood_still_and_was_passed),
        cmocka_unit_test(rule_begins_anew_when_something_moved),
        cmocka_unit_test(rule_ends_after_five_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
