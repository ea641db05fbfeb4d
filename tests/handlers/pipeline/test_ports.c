/* Ports that handlers call: while one is at work the log says so, its time is counted, and what it answers
 * and can do is the inner one's. */
#include "tests/support/test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "handlers/pipeline/ports.h"

#define TAKES_MS 7

struct stand {
    struct sl_object_port objects;
    struct sl_table_port table;
    struct sl_queue_port queue;
    struct sl_clock_virtual clock;
    struct sl_log log;
    struct sl_port_meter meter;
    struct sl_arena *arena;
    size_t calls, closed;
    struct sl_table_facts facts; /* what `describe` says */
    struct sl_table_units units;
};

static struct stand *the;

/* What every function does: it takes its time, and looks at the log. */
static void work(size_t n)
{
    assert_int_equal(n, 3);
    assert_true(the->log.is_in_port);
    the->clock.ms += TAKES_MS;
    the->calls++;
}

static void apply_objects(struct sl_object_port *port, const struct sl_object *objects, size_t n,
                          struct sl_result *results, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->objects);
    assert_true(objects && results && call);
    work(n);
}

static void read_objects(struct sl_object_port *port, const struct sl_object_read *reads, size_t n,
                         struct sl_object_piece *pieces, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->objects);
    assert_true(reads && pieces && call);
    work(n);
}

static void list_objects(struct sl_object_port *port, const struct sl_object_list *list,
                         struct sl_object_page *page, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->objects);
    assert_true(list && page && call);
    work(3);
}

static void remove_objects(struct sl_object_port *port, const struct sl_object_removal *removals, size_t n,
                           struct sl_result *results, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->objects);
    assert_true(removals && results && call);
    work(n);
}

static void close_objects(struct sl_object_port *port)
{
    assert_ptr_equal(port, &the->objects);
    the->closed++;
}

static void apply_table(struct sl_table_port *port, const struct sl_table_op *ops, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->table);
    assert_true(ops && results && call);
    assert_true(!port->units || port->units == &the->units);
    work(n);
}

static void scan_table(struct sl_table_port *port, const struct sl_table_scan *scans, size_t n,
                       struct sl_table_page *pages, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->table);
    assert_true(scans && pages && call);
    assert_ptr_equal(port->units, the->calls < 1 ? NULL : &the->units);
    work(n);
}

static void describe_table(struct sl_table_port *port, struct sl_span table, struct sl_table_facts *facts,
                           const struct sl_call *call)
{
    assert_ptr_equal(port, &the->table);
    assert_true(!table.ptr || sl_span_is(table, "t"));
    assert_true(facts && call);
    *facts = the->facts;
    work(3);
}

static void close_table(struct sl_table_port *port)
{
    assert_ptr_equal(port, &the->table);
    the->closed++;
}

static void apply_queue(struct sl_queue_port *port, const struct sl_message *messages, size_t n,
                        struct sl_result *results, const struct sl_call *call)
{
    assert_ptr_equal(port, &the->queue);
    assert_true(messages && results && call);
    work(n);
}

static void close_queue(struct sl_queue_port *port)
{
    assert_ptr_equal(port, &the->queue);
    the->closed++;
}

static int set_up(void **state)
{
    static struct stand stand;
    the = *state = &stand;
    stand = (struct stand){.objects = {sizeof(stand.objects), 11, apply_objects, close_objects, read_objects,
                                       list_objects, remove_objects},
                           .table = {.size = sizeof(stand.table),
                                     .max_item_bytes = 12,
                                     .apply = apply_table,
                                     .close = close_table,
                                     .scan = scan_table,
                                     .describe = describe_table,
                                     .can = SL_TABLE_GROUPS},
                           .queue = {sizeof(stand.queue), 13, apply_queue, close_queue},
                           .arena = sl_arena_new(4096)};
    sl_clock_virtual_init(&stand.clock, 0, 1);
    sl_log_init(&stand.log, -1, SL_OFF, SL_LOG_TEXT, &stand.clock.clock);
    stand.meter = (struct sl_port_meter){.log = &stand.log, .clock = &stand.clock.clock};
    return 0;
}

static int tear_down(void **state)
{
    struct stand *s = *state;
    sl_log_clean_up(&s->log);
    sl_arena_destroy(s->arena);
    return 0;
}

/* After each of so many calls. */
static void counted(struct stand *s, size_t calls)
{
    assert_int_equal(s->calls, calls);
    assert_false(s->log.is_in_port);
    assert_int_equal(s->meter.ns, calls * TAKES_MS * 1000000);
    s->clock.ms += 1000; /* between calls, time is nobody's */
}

static void objects_are_marked(void **state)
{
    struct stand *s = *state;
    struct sl_object_port *port = sl_ports_mark_objects(&s->objects, &s->meter, s->arena);
    struct sl_object objects[3] = {{.body = {NULL, 0}}};
    struct sl_object_read reads[3] = {{.key = {NULL, 0}}};
    struct sl_object_removal removals[3] = {{.key = {NULL, 0}}};
    struct sl_object_piece pieces[3];
    struct sl_object_list list = {.prefix = {NULL, 0}};
    struct sl_object_page page;
    struct sl_result results[3];
    const struct sl_call call = {.arena = s->arena};
    assert_int_equal(port->max_body_bytes, 11);
    port->apply(port, objects, 3, results, &call);
    counted(s, 1);
    port->read(port, reads, 3, pieces, &call);
    counted(s, 2);
    port->list(port, &list, &page, &call);
    counted(s, 3);
    port->remove(port, removals, 3, results, &call);
    counted(s, 4);
    port->close(port);
    assert_int_equal(s->closed, 1);
}

static void tables_are_marked(void **state)
{
    struct stand *s = *state;
    struct sl_table_port *port = sl_ports_mark_table(&s->table, &s->meter, s->arena);
    struct sl_table_op ops[3] = {{.verb = SL_TABLE_GET}};
    struct sl_table_scan scans[3] = {{.table = {NULL, 0}}};
    struct sl_table_page pages[3];
    struct sl_table_facts facts;
    struct sl_result results[3];
    const struct sl_call call = {.arena = s->arena};
    assert_int_equal(port->max_item_bytes, 12);
    assert_int_equal(port->can, SL_TABLE_GROUPS);
    port->scan(port, scans, 3, pages, &call);
    counted(s, 1);
    port->units = &s->units; /* whoever holds to a budget gives it to the mark */
    port->scan(port, scans, 3, pages, &call);
    counted(s, 2);
    port->apply(port, ops, 3, results, &call); /* the first asks for the table's key */
    counted(s, 4);
    port->apply(port, ops, 3, results, &call);
    counted(s, 5);
    port->describe(port, SL_LIT("t"), &facts, &call);
    counted(s, 6);
    port->close(port);
    assert_int_equal(s->closed, 1);
}

/* Each table's key is compared with what is written, once: names, and of a side table the type. What cannot
 * be compared is written. */
static void a_key_that_differs_is_refused(void **state)
{
    struct stand *s = *state;
    static const struct {
        const char *key, *table, *names; /* names: of the table's key, with types */
        enum sl_status described;
        const char *refused;
        size_t calls; /* of two writes, and their description */
    } cases[] = {
        {"{\"PK\":{\"S\":\"a\"}}", NULL, "PK:S", SL_OK, NULL, 3},
        {"{\"SK\":{\"N\":\"1\"},\"PK\":{\"S\":\"a\"}}", NULL, "PK:S SK:S", SL_OK, NULL, 3},
        {"{\"PK\":{\"S\":\"a\"},\"SK\":{\"S\":\"b\"}}", NULL, "PK:S", SL_OK,
         "the key that is written is PK (S) and SK (S), and that of table arn is PK (S): every write would "
         "replace another item's row; make the table anew, or name its key in the configuration",
         1},
        {"{\"PK\":{\"S\":\"a\"}}", NULL, "PK:S SK:N", SL_OK,
         "the key that is written is PK (S), and that of table arn is PK (S) and SK (N): every write would "
         "be "
         "refused; make the table anew, or name its key in the configuration",
         1},
        {"{\"id\":{\"S\":\"a\"}}", "t", "PK:S", SL_OK, "the key that is written is id (S)", 1},
        {"{\"PK\":{\"S\":\"a\"}}", "t", "PK:N", SL_OK, "the key that is written is PK (S)", 1},
        {"{\"PK\":{\"S\":\"a\"}}", "t", "PK:S", SL_OK, NULL, 3},
        {"{\"PK\":{\"S\":\"a\"}}", NULL, "", SL_OK, NULL, 3},
        {"{\"id\":{\"S\":\"a\"}}", NULL, "PK:S", SL_FATAL, NULL, 3},
        {"{\"id\":{\"S\":\"a\"}}", NULL, "PK:S", SL_RETRY, NULL, 4}, /* asked again */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_table_port *port = sl_ports_mark_table(&s->table, &s->meter, s->arena);
        const struct sl_table_op op = {
            .verb = SL_TABLE_PUT, .key = sl_span_str(cases[i].key), .table = sl_span_str(cases[i].table)};
        const struct sl_table_op ops[3] = {op, op, op};
        struct sl_result results[3];
        const struct sl_call call = {.arena = s->arena, .deadline_ms = INT64_MAX};
        s->facts = (struct sl_table_facts){
            .arn = SL_LIT("arn"),
            .result = {.status = cases[i].described, .code = "AccessDenied", .text = "no"}};
        for (const char *at = cases[i].names; *at; at += at[4] ? 5 : 4)
            s->facts.keys[s->facts.n_keys++] = (struct sl_table_key){.name = {at, 2}, .type = at[3]};
        s->calls = 0;
        for (int k = 0; k < 2; k++) {
            memset(results, 0, sizeof(results));
            port->apply(port, ops, 3, results, &call);
            assert_int_equal(results[2].status, cases[i].refused ? SL_FATAL : SL_OK);
            if (cases[i].refused) {
                assert_string_equal(results[0].code, "KeySchema");
                assert_non_null(strstr(results[1].text, cases[i].refused));
            }
        }
        assert_int_equal(s->calls, cases[i].calls);
    }
}

static void queues_are_marked(void **state)
{
    struct stand *s = *state;
    struct sl_queue_port *port = sl_ports_mark_queue(&s->queue, &s->meter, s->arena);
    struct sl_message messages[3] = {{.body = {NULL, 0}}};
    struct sl_result results[3];
    const struct sl_call call = {.arena = s->arena};
    assert_int_equal(port->max_message_bytes, 13);
    port->apply(port, messages, 3, results, &call);
    counted(s, 1);
    port->close(port);
    assert_int_equal(s->closed, 1);
}

/* A handler asks for a function before it calls it. */
static void what_a_port_cannot_do_its_mark_cannot(void **state)
{
    struct stand *s = *state;
    s->objects.read = NULL;
    s->objects.list = NULL;
    s->objects.remove = NULL;
    s->table.scan = NULL;
    s->table.describe = NULL;
    const struct sl_object_port *objects = sl_ports_mark_objects(&s->objects, &s->meter, s->arena);
    const struct sl_table_port *table = sl_ports_mark_table(&s->table, &s->meter, s->arena);
    assert_true(objects->apply && !objects->read && !objects->list && !objects->remove);
    assert_true(table->apply && !table->scan && !table->describe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_are_marked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_are_marked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_differs_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queues_are_marked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_port_cannot_do_its_mark_cannot, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
