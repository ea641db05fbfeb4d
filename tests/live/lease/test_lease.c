/* Rows of a lease table: those that KCL writes, and those that nobody should have written. */
#include "tests/support/test.h"

#include "live/lease/lease.h"

#include <stdio.h>

static struct sl_arena *arena;

static enum sl_status read_row(const char *row, struct sl_lease *lease, struct sl_error *error)
{
    *error = (struct sl_error)SL_NO_ERROR;
    return sl_lease_read(json_span(row), arena, lease, error);
}

static void rows_of_kcl_are_read(void **state)
{
    (void)state;
    struct sl_lease lease;
    struct sl_error error;
    assert_int_equal(
        read_row("{'leaseKey':{'S':'shardId-00000001795348545636-bd226ab8'},'leaseCounter':{'N':'27'},"
                 "'leaseOwner':{'S':'kcl-1'},'checkpoint':{'S':'000000000000000000060'},"
                 "'checkpointSubSequenceNumber':{'N':'0'},'ownerSwitchesSinceCheckpoint':{'N':'0'},"
                 "'parentShardId':{'SS':['shardId-00000001795348545000-aaaaaaaa']},"
                 "'childShardIds':{'SS':['x']},'pendingCheckpoint':{'S':'7'},'ours':{'M':{}}}",
                 &lease, &error),
        SL_OK);
    assert_string_equal(lease.key, "shardId-00000001795348545636-bd226ab8");
    assert_string_equal(lease.owner, "kcl-1");
    assert_int_equal(lease.counter, 27);
    assert_string_equal(lease.checkpoint, "000000000000000000060");
    assert_int_equal(lease.n_parents, 1);
    assert_string_equal(lease.parents[0], "shardId-00000001795348545000-aaaaaaaa");
    assert_null(lease.stream);
    assert_int_equal(sl_lease_born_ms(lease.key), 1795348545636);
    assert_int_equal(
        read_row("{'leaseKey':{'S':'a'},'leaseCounter':{'N':'0'},'checkpoint':{'S':'TRIM_HORIZON'}}", &lease,
                 &error),
        SL_OK);
    assert_null(lease.owner);
    assert_int_equal(sl_lease_born_ms(lease.key), 0);
}

#define ROW(more) "{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'5'}" more "}"

static void other_rows_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *row, *code, *text;
    } cases[] = {
        {"{}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'N':'1'}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':''}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':'a b'}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':'a\\u0000'}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':'a\\u007f'}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':5}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':55}}", "NotALease", "no leaseKey"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':''},'checkpoint':{'S':'5'}}", "NotALease",
         "leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':5555},'checkpoint':{'S':'5'}}", "NotALease",
         "leaseCounter"},
        {"{'leaseKey':{'S':'a'}}", "NotALease", "row a is not a lease: its leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'S':'1'},'checkpoint':{'S':'5'}}", "NotALease",
         "leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'-1'},'checkpoint':{'S':'5'}}", "NotALease",
         "leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1.5'},'checkpoint':{'S':'5'}}", "NotALease",
         "leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1E+30'},'checkpoint':{'S':'5'}}", "NotALease",
         "leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'9999999999999999999'},'checkpoint':{'S':'5'}}",
         "NotALease", "leaseCounter"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'}}", "NotALease", "checkpoint"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'},'checkpoint':{'N':'5'}}", "NotALease", "checkpoint"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'latest'}}", "NotALease",
         "checkpoint"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'"
         "12345678901234567890123456789012345678901'}}",
         "NotALease", "checkpoint"},
        {ROW(",'leaseOwner':{'NULL':true}"), "NotALease", "leaseOwner"},
        {ROW(",'leaseOwner':{'S':''}"), "NotALease", "leaseOwner"},
        {ROW(",'checkpointSubSequenceNumber':{'N':'3'}"), "NotALease", "checkpointSubSequenceNumber"},
        {ROW(",'checkpointSubSequenceNumber':{'S':'x'}"), "NotALease", "checkpointSubSequenceNumber"},
        {ROW(",'parentShardId':{'S':'a'}"), "NotALease", "parentShardId"},
        {ROW(",'parentShardId':{'SS':['b','c d']}"), "NotALease", "parentShardId"},
        {ROW(",'parentShardId':{'L':[{'S':'b'}]}"), "NotALease", "parentShardId"},
        {ROW(",'sluiceStream':{'N':'1'}"), "NotALease", "sluiceStream"},
        {ROW(",'sluiceSince':{'S':'now'}"), "NotALease", "sluiceSince"},
        {ROW(",'throughputKBps':{'N':'1'}"), "NewerLeases", "KCL 2 or 3"},
        {ROW(",'checkpointOwner':{'S':'w'}"), "NewerLeases", "checkpointOwner"},
        {ROW(",'pendingCheckpointState':{'B':''}"), "NewerLeases", "pendingCheckpointState"},
        {"{'leaseKey':{'S':'x'},'entityType':{'S':'WORKER_METRICS'}}", "NewerLeases", "entityType"},
        {"{'leaseKey':{'S':'shardId-000000000003'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'5'}}",
         "KinesisLeases", "Kinesis stream"},
    };
    struct sl_lease lease;
    struct sl_error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_row(cases[i].row, &lease, &error), SL_REJECT);
        if (strcmp(error.code, cases[i].code) != 0 || !strstr(error.text, cases[i].text))
            fail_msg("%s: %s: %s", cases[i].row, error.code, error.text);
    }
}

static void places_have_an_order(void **state)
{
    (void)state;
    /* Those of one line are equal. */
    static const char *const order[][3] = {{"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"},
                                           {"9", "0009", "9"},
                                           {"10", "010", "10"},
                                           {"000000000000000000060", "60", "060"},
                                           {"1234567890123456789012345678901234567890",
                                            "1234567890123456789012345678901234567890",
                                            "1234567890123456789012345678901234567890"},
                                           {"SHARD_END", "SHARD_END", "SHARD_END"}};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++)
            for (size_t a = 0; a < 9; a++)
                assert_int_equal(sl_lease_is_before(order[i][a / 3], order[k][a % 3]), i < k);
    for (int place = SL_LEASE_TRIM_HORIZON; place <= SL_LEASE_SHARD_END; place++)
        assert_int_equal(sl_lease_place(sl_lease_checkpoint((enum sl_lease_place)place, "5")), place);
}

/* A shard's id says when it was made; ids of another form say nothing, and are no reason to refuse a row. */
static void ids_tell_when_a_shard_was_made(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t ms;
    } cases[] = {{"shardId-00000001790000000000-0a1b2c3d", 1790000000000},
                 {"shardId-00000001790000000000", 0},
                 {"shardId-0000001790000000000-a", 0},
                 {"shardId-000000001790000000000-a", 0},
                 {"shardId-10000001790000000000-a", 0},
                 {"shardId-0000000179000000000x-a", 0},
                 {"shard-00000001790000000000-a", 0},
                 {"shardId-00000000000x", 0}};
    struct sl_lease lease;
    struct sl_error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (sl_lease_born_ms(cases[i].key) != cases[i].ms)
            fail_msg("%s: %lld", cases[i].key, (long long)sl_lease_born_ms(cases[i].key));
        const char *row = json_printf(
            "{'leaseKey':{'S':'%s'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'5'}}", cases[i].key);
        assert_int_equal(read_row(row, &lease, &error), SL_OK);
    }
}

static int set_up(void **state)
{
    (void)state;
    arena = sl_arena_new(4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_of_kcl_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_rows_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ids_tell_when_a_shard_was_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(places_have_an_order, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
