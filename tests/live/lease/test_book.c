/* A book of leases, rule by rule: what is written, what survives, what is taken when, and what is refused. */
#include "tests/live/lease/lease_world.h"

static struct world *world;

static struct world_worker *start(size_t n)
{
    struct world_worker *w = world_worker(world, n);
    struct sl_error error = SL_NO_ERROR;
    if (sl_book_open(w->book, &error) != SL_OK)
        fail_msg("%s", error.text);
    return w;
}

static enum sl_status turn(struct world_worker *w)
{
    int64_t next_ms;
    struct sl_error error = SL_NO_ERROR;
    return sl_book_turn(w->book, &next_ms, &error);
}

static void list(struct world_worker *w, const struct sl_book_shard *shards, size_t n, bool is_from_latest)
{
    struct sl_error error = SL_NO_ERROR;
    const struct sl_book_listing listing = {
        .shards = shards, .n = n, .now_ms = WALL_MS + world->ms, .is_from_latest = is_from_latest};
    if (sl_book_list(w->book, &listing, &error) != SL_OK)
        fail_msg("%s", error.text);
}

static struct sl_book_lease lease_of(struct world_worker *w, const char *key)
{
    for (size_t i = 0; i < sl_book_count(w->book); i++)
        if (strcmp(sl_book_at(w->book, i).lease->key, key) == 0)
            return sl_book_at(w->book, i);
    fail_msg("no lease %s", key);
    return (struct sl_book_lease){.hold = 0};
}

static bool row_has(const char *key, const char *text)
{
    struct sl_span row = world_row(world, key), wanted = json_span(text);
    return row.ptr && memmem(row.ptr, row.len, wanted.ptr, wanted.len);
}

/* Turns of all these workers, a second apart. */
static void pass(struct world_worker *a, struct world_worker *b, int64_t ms)
{
    for (int64_t end = world->ms + ms; world->ms < end; world->ms += 1000) {
        assert_int_equal(turn(a), SL_OK);
        if (b)
            assert_int_equal(turn(b), SL_OK);
    }
}

static const struct sl_book_shard one[] = {{"a", "", false}};

static void a_lease_is_made_taken_renewed_and_given_back(void **state)
{
    (void)state;
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    struct sl_lease row = world_lease(world, "a");
    assert_null(row.owner);
    assert_int_equal(row.counter, 0);
    assert_string_equal(row.checkpoint, "TRIM_HORIZON");
    assert_true(row_has("a", "'checkpointSubSequenceNumber':{'N':'0'}"));
    assert_true(row_has("a", "'ownerSwitchesSinceCheckpoint':{'N':'0'}"));
    assert_int_equal(turn(w), SL_OK);
    struct sl_book_lease lease = lease_of(w, "a");
    assert_true(lease.hold && lease.is_handed_out);
    assert_int_equal(lease.until_ms, FAILOVER_MS - FAILOVER_MS / 5);
    world->ms += FAILOVER_MS / 3;
    assert_int_equal(turn(w), SL_OK);
    assert_int_equal(lease_of(w, "a").until_ms, FAILOVER_MS / 3 + FAILOVER_MS - FAILOVER_MS / 5);
    assert_int_equal(world_lease(world, "a").counter, 2);
    sl_book_save(w->book, "a", lease.hold, "17");
    sl_book_save(w->book, "a", lease.hold, "16"); /* not back */
    sl_book_drop(w->book, "a", lease.hold);
    assert_true(sl_book_flush(w->book, NULL));
    row = world_lease(world, "a");
    assert_null(row.owner);
    assert_string_equal(row.checkpoint, "17");
    assert_string_equal(row.stream, STREAM);
    assert_int_equal(sl_book_lost(w->book), 0);
}

static void what_others_wrote_survives(void **state)
{
    (void)state;
    world_put(
        world,
        "{'leaseKey':{'S':'a'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'5'},'leaseOwner':{'S':'kcl'},"
        "'ownerSwitchesSinceCheckpoint':{'N':'2'},'checkpointSubSequenceNumber':{'N':'0'},"
        "'childShardIds':{'SS':['x']},'pendingCheckpoint':{'S':'6'},'mine':{'M':{'deep':{'L':[{'N':'1'}]}}}"
        "}");
    struct world_worker *w = start(0);
    assert_int_equal(turn(w), SL_OK);
    assert_int_equal(lease_of(w, "a").hold, 0); /* seen for the first time: as if just renewed */
    pass(w, NULL, FAILOVER_MS + 6000);
    struct sl_book_lease lease = lease_of(w, "a");
    assert_true(lease.is_handed_out); /* it had expired: nobody has it */
    assert_true(row_has("a", "'ownerSwitchesSinceCheckpoint':{'N':'3'}"));
    assert_true(row_has("a", "'pendingCheckpoint':{'S':'6'}"));
    sl_book_save(w->book, "a", lease.hold, "9");
    world->ms += 1000;
    assert_int_equal(turn(w), SL_OK);
    assert_true(row_has("a", "'mine':{'M':{'deep':{'L':[{'N':'1'}]}}}"));
    assert_true(row_has("a", "'childShardIds':{'SS':['x']}"));
    assert_true(row_has("a", "'checkpoint':{'S':'9'}"));
    assert_true(row_has("a", "'ownerSwitchesSinceCheckpoint':{'N':'0'}"));
    assert_false(row_has("a", "'pendingCheckpoint'"));
}

static void a_live_lease_is_not_taken_and_a_dead_one_is(void **state)
{
    (void)state;
    struct world_worker *dead = start(0), *w = start(1);
    list(dead, one, 1, false);
    assert_int_equal(turn(dead), SL_OK);
    pass(w, dead, 4 * FAILOVER_MS);
    assert_int_equal(lease_of(w, "a").hold, 0);
    int64_t died_ms = world->ms;
    while (!lease_of(w, "a").hold && world->ms < died_ms + 10 * FAILOVER_MS) {
        world->ms += 100;
        assert_int_equal(turn(w), SL_OK);
    }
    assert_true(lease_of(w, "a").is_handed_out);
    assert_in_range((uint64_t)(world->ms - died_ms), FAILOVER_MS - 1000, 2 * FAILOVER_MS);
    /* The dead one rises: it has lost the lease before it asks the table, and does not get it back. */
    assert_true(lease_of(dead, "a").until_ms < world->ms);
    assert_int_equal(turn(dead), SL_OK);
    assert_int_equal(lease_of(dead, "a").hold, 0);
    assert_int_equal(sl_book_lost(dead->book), 1);
    assert_true(lease_of(w, "a").hold);
}

static void a_place_of_a_lost_lease_is_not_written(void **state)
{
    (void)state;
    struct world_worker *first = start(0), *second = start(1);
    list(first, one, 1, false);
    assert_int_equal(turn(first), SL_OK);
    uint64_t hold = lease_of(first, "a").hold;
    assert_int_equal(turn(second), SL_OK);
    pass(second, NULL, 2 * FAILOVER_MS);
    sl_book_save(second->book, "a", lease_of(second, "a").hold, "50");
    world->ms += 1000;
    assert_int_equal(turn(second), SL_OK);
    sl_book_save(first->book, "a", hold, "99");
    assert_int_equal(turn(first), SL_OK);
    sl_book_save(first->book, "a", hold, "99");
    (void)sl_book_flush(first->book, NULL);
    assert_string_equal(world_lease(world, "a").checkpoint, "50");
}

static void a_stolen_lease_is_handed_out_when_its_last_holder_has_stopped(void **state)
{
    (void)state;
    static const struct sl_book_shard two[] = {{"a", "", false}, {"b", "", false}};
    struct world_worker *rich = start(0), *poor = start(1);
    list(rich, two, 2, false);
    assert_int_equal(turn(rich), SL_OK);
    assert_int_equal(turn(poor), SL_OK); /* it sees, and steals one */
    const char *stolen = lease_of(poor, "a").hold ? "a" : "b";
    struct sl_book_lease lease = lease_of(poor, stolen);
    assert_true(lease.hold);
    assert_false(lease.is_handed_out);
    assert_true(lease.handed_ms > lease_of(rich, stolen).until_ms);
    /* If it ends now, nobody may begin at once: the row keeps its name. */
    sl_book_drop(poor->book, stolen, lease.hold);
    assert_true(sl_book_flush(poor->book, NULL));
    assert_string_equal(world_lease(world, stolen).owner, poor->name);
    assert_int_equal(turn(rich), SL_OK); /* it learns it with its next renewal, at the latest */
    pass(rich, NULL, FAILOVER_MS / 3 + 1000);
    assert_int_equal(lease_of(rich, stolen).hold, 0);
}

static void children_wait_for_parents_wherever_they_are(void **state)
{
    (void)state;
    static const struct sl_book_shard family[] = {{"a", "", true}, {"b", "a", false}, {"c", "b0", false}};
    struct world_worker *w = start(0);
    list(w, family, 3, false);
    assert_true(row_has("b", "'parentShardId':{'SS':['a']}"));
    assert_int_equal(turn(w), SL_OK);
    assert_true(lease_of(w, "a").is_handed_out);
    assert_false(lease_of(w, "b").is_handed_out);
    assert_true(lease_of(w, "c").is_handed_out); /* its parent has no lease */
    sl_book_save(w->book, "a", lease_of(w, "a").hold, "SHARD_END");
    assert_false(lease_of(w, "b").is_handed_out); /* it is not written yet */
    assert_int_equal(turn(w), SL_OK);
    assert_true(lease_of(w, "b").is_handed_out);
    struct sl_lease done = world_lease(world, "a");
    assert_string_equal(done.checkpoint, "SHARD_END");
    assert_null(done.owner);
    pass(w, NULL, 5 * FAILOVER_MS); /* nobody takes it again */
    assert_int_equal(world_lease(world, "a").counter, done.counter);
}

static void found(struct world_worker *w, const struct sl_book_shard *shards, size_t n)
{
    struct sl_error error = SL_NO_ERROR;
    if (sl_book_found(w->book, shards, n, &error) != SL_OK)
        fail_msg("%s", error.text);
}

static void children_that_are_found_need_no_listing(void **state)
{
    (void)state;
    static const struct sl_book_shard listed[] = {{"a", "", true}, {"d", "", false}};
    static const struct sl_book_shard children[] = {
        {"b", "a", false}, {"c", "a", false}, {"x", "none", false}, {"y", "", false}};
    struct world_worker *w = start(0);
    list(w, listed, 2, true);
    assert_null(world_row(world, "a").ptr); /* it was closed: from the latest on, nothing of it is wanted */
    found(w, children, 4);
    assert_int_equal(sl_book_count(w->book), 1);
    list(w, listed, 2, false);
    assert_int_equal(turn(w), SL_OK);
    sl_book_save(w->book, "a", lease_of(w, "a").hold, "SHARD_END");
    assert_int_equal(turn(w), SL_OK);
    found(w, children, 4);
    assert_int_equal(sl_book_count(w->book), 4);
    world->ms += 1000; /* a moment, not half of the failover time */
    assert_int_equal(turn(w), SL_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(lease_of(w, children[i].id).is_handed_out);
        assert_string_equal(world_lease(world, children[i].id).checkpoint, "TRIM_HORIZON");
        assert_true(row_has(children[i].id, "'parentShardId':{'SS':['a']}"));
    }
    /* A list that is older than they are, one that has them, and finding them again change nothing. */
    uint64_t hold = lease_of(w, "b").hold;
    sl_book_save(w->book, "b", hold, "17");
    assert_int_equal(turn(w), SL_OK);
    list(w, listed, 2, false);
    found(w, children, 4);
    list(w, children, 2, false);
    pass(w, NULL, FAILOVER_MS);
    assert_int_equal(lease_of(w, "b").hold, hold);
    assert_string_equal(world_lease(world, "b").checkpoint, "17");
    assert_int_equal(sl_book_count(w->book), 4);
}

/* Two workers find them, or one does and its answer is lost: one lease each, and one holder. */
static void children_are_found_by_several_workers(void **state)
{
    (void)state;
    static const struct sl_book_shard listed[] = {{"a", "", true}};
    static const struct sl_book_shard children[] = {{"b", "a", true}, {"c", "b", false}};
    struct world_worker *first = start(0), *second = start(1);
    struct sl_error error = SL_NO_ERROR;
    list(first, listed, 1, false);
    pass(first, second, FAILOVER_MS);
    first->port.lose_percent = 100;
    assert_int_equal(sl_book_found(first->book, children, 1, &error), SL_RETRY);
    assert_non_null(strstr(error.text, "cannot be written"));
    first->port.lose_percent = 0;
    found(second, children, 1);
    assert_int_equal(world_lease(world, "b").n_parents, 1);
    found(second, &children[1], 1); /* it does not know of b yet */
    assert_null(world_row(world, "c").ptr);
    pass(first, second, FAILOVER_MS);
    found(second, &children[1], 1);
    found(first, children, 2);
    pass(first, second, 2 * FAILOVER_MS);
    assert_int_equal(sl_book_count(first->book), 3);
    for (int i = 0; i < 2; i++) {
        int holders =
            (lease_of(first, children[i].id).hold != 0) + (lease_of(second, children[i].id).hold != 0);
        assert_int_equal(holders, 1);
    }
    /* b was finished and its lease deleted: c tells so. */
    world_put(world, "{'leaseKey':{'S':'e'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'5'},"
                     "'parentShardId':{'SS':['d']}}");
    static const struct sl_book_shard gone[] = {{"d", "a", true}};
    pass(first, second, FAILOVER_MS);
    found(first, gone, 1);
    assert_null(world_row(world, "d").ptr);
}

static void only_shards_that_need_one_get_a_lease(void **state)
{
    (void)state;
    static const struct sl_book_shard family[] = {
        {"a", "", true}, {"b", "a", true}, {"c", "b", false}, {"d", "", false}};
    struct world_worker *w;
    /* The lease of b was finished and deleted: c tells so. */
    world_put(world, "{'leaseKey':{'S':'c'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'5'}}");
    w = start(0);
    list(w, family, 4, false);
    assert_null(world_row(world, "a").ptr);
    assert_null(world_row(world, "b").ptr);
    assert_string_equal(world_lease(world, "d").checkpoint, "TRIM_HORIZON");
}

static void latest_is_for_open_shards_that_follow_nothing(void **state)
{
    (void)state;
    static const struct sl_book_shard before[] = {{"a", "", true}, {"b", "a", false}};
    static const struct sl_book_shard after[] = {{"a", "", true}, {"b", "a", true}, {"c", "b", false}};
    struct world_worker *w = start(0);
    list(w, before, 2, true);
    assert_null(world_row(world, "a").ptr);
    assert_string_equal(world_lease(world, "b").checkpoint, "LATEST");
    assert_int_equal(world_lease(world, "b").since_ms, WALL_MS);
    /* Another worker, another day: what follows a lease begins with its oldest record. */
    world->ms += 1000;
    w = start(1);
    list(w, after, 3, true);
    assert_string_equal(world_lease(world, "c").checkpoint, "TRIM_HORIZON");
    assert_int_equal(world_lease(world, "b").since_ms, WALL_MS);
}

static void a_finished_lease_goes_late(void **state)
{
    (void)state;
    char row[512], key[64];
    const char *const ages[] = {"1", "47", "49"};
    for (size_t i = 0; i < 3; i++) {
        int64_t born = WALL_MS - (int64_t)strtoll(ages[i], NULL, 10) * 3600000;
        snprintf(row, sizeof(row),
                 "{'leaseKey':{'S':'shardId-%020lld-aaaaaaaa'},'leaseCounter':{'N':'7'},"
                 "'checkpoint':{'S':'SHARD_END'},'sluiceStream':{'S':'" STREAM "'}}",
                 (long long)born);
        world_put(world, row);
    }
    snprintf(key, sizeof(key), "shardId-%020lld-aaaaaaaa", (long long)(WALL_MS - (int64_t)49 * 3600000));
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    assert_non_null(world_row(world, key).ptr); /* one listing is not enough */
    list(w, one, 1, false);
    assert_null(world_row(world, key).ptr);
    assert_int_equal(turn(w), SL_OK);
    assert_int_equal(sl_book_count(w->book), 3);
}

static void tables_of_others_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *row, *code;
    } cases[] = {
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'5'},'sluiceStream':"
         "{'S':'arn:aws:dynamodb:eu-west-1:123456789012:table/order/stream/2026-01-01T00:00:00.000'}}",
         "AnotherStream"},
        {"{'leaseKey':{'S':'a'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'5'},'throughputKBps':{'N':'0'}}",
         "NewerLeases"},
        {"{'leaseKey':{'S':'a'},'checkpoint':{'S':'5'}}", "NotALease"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        world_put(world, cases[i].row);
        struct world_worker *w = world_worker(world, i);
        assert_int_equal(sl_book_open(w->book, &error), SL_REJECT);
        assert_string_equal(error.code, cases[i].code);
    }
}

#define OLD "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2025-01-01T00:00:00.000"

/* The table's stream was switched off and on. */
static void what_is_left_of_the_last_stream_comes_first(void **state)
{
    (void)state;
    struct sl_error error = SL_NO_ERROR;
    static const char row[] = "{'leaseKey':{'S':'o'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'%s'},"
                              "'sluiceStream':{'S':'" OLD "'}}";
    world_put(world, json_printf(row, "5"));
    assert_int_equal(sl_book_open(world_worker(world, 0)->book, &error), SL_REJECT);
    assert_non_null(strstr(error.text, "not read to its end"));
    world_put(world, json_printf(row, "SHARD_END"));
    struct world_worker *w = start(1);
    assert_int_equal(sl_book_count(w->book), 0);
    /* Later it is another worker's, which still reads the last stream. */
    world_put(world, json_printf(row, "5"));
    pass(w, NULL, 2 * FAILOVER_MS);
    assert_int_equal(sl_book_count(w->book), 0);
    assert_null(sl_book_trouble(w->book));
    world_put(world, json_printf(row, "SHARD_END"));
    list(w, one, 1, false);
    assert_int_equal(turn(w), SL_OK);
    sl_book_save(w->book, "a", lease_of(w, "a").hold, "SHARD_END");
    assert_int_equal(turn(w), SL_OK);
    /* And the next one: its shards are new ones. */
    sl_book_follow(w->book, STREAM "1");
    list(w, (const struct sl_book_shard[]){{"z", "", false}}, 1, false);
    assert_int_equal(turn(w), SL_OK);
    assert_int_equal(sl_book_count(w->book), 1);
    assert_true(lease_of(w, "z").is_handed_out);
    assert_string_equal(world_lease(world, "z").stream, STREAM "1");
}

static void a_shard_that_should_be_listed_betrays_another_stream(void **state)
{
    (void)state;
    static const struct {
        int hours;
        enum sl_status status;
    } cases[] = {{0, SL_OK}, {2, SL_REJECT}, {22, SL_REJECT}, {24, SL_OK}, {100, SL_OK}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[256];
        struct sl_error error = SL_NO_ERROR;
        const struct sl_book_listing listing = {.shards = one, .n = 1, .now_ms = WALL_MS};
        snprintf(
            row, sizeof(row),
            "{'leaseKey':{'S':'shardId-%020lld-aaaaaaaa'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'5'}}",
            (long long)(WALL_MS - (int64_t)cases[i].hours * 3600000));
        world_destroy(world);
        world = world_new(1);
        world_put(world, row);
        assert_int_equal(sl_book_list(start(0)->book, &listing, &error), cases[i].status);
        assert_string_equal(error.code, cases[i].status == SL_OK ? "" : "AnotherStream");
    }
}

/* Somebody writes nonsense into the table while workers run. */
static void a_row_that_breaks_stops_its_shard_alone(void **state)
{
    (void)state;
    static const struct sl_book_shard family[] = {{"a", "", true}, {"b", "a", false}, {"c", "", false}};
    static const char *const rows[] = {
        "{'leaseKey':{'S':'a'},'leaseCounter':{'S':'1'},'checkpoint':{'S':'5'}}",
        "{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'?'}}",
        "{'leaseKey':{'S':'a'},'leaseOwner':{'L':[]},'leaseCounter':{'N':'1'},'checkpoint':{'S':'5'}}",
        "{'leaseKey':{'S':'a'}}",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_destroy(world);
        world = world_new(i);
        struct world_worker *w = start(0);
        list(w, family, 3, false);
        assert_int_equal(turn(w), SL_OK);
        assert_true(lease_of(w, "a").hold);
        world_put(world, rows[i]);
        pass(w, NULL, 2 * FAILOVER_MS);
        assert_int_equal(lease_of(w, "a").hold, 0);
        assert_false(lease_of(w, "b").is_handed_out);
        assert_true(lease_of(w, "c").is_handed_out);
        assert_non_null(sl_book_trouble(w->book));
        assert_false(sl_book_is_done(w->book, "a"));
        /* Mended: it goes on. */
        world_put(world, "{'leaseKey':{'S':'a'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'5'}}");
        pass(w, NULL, 2 * FAILOVER_MS);
        assert_true(lease_of(w, "a").is_handed_out);
        assert_null(sl_book_trouble(w->book));
    }
}

static void a_counter_that_goes_back_ends_a_holding(void **state)
{
    (void)state;
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    pass(w, NULL, 3 * FAILOVER_MS);
    world_put(
        world,
        "{'leaseKey':{'S':'a'},'leaseOwner':{'S':'other'},'leaseCounter':{'N':'1'},'checkpoint':{'S':'5'}}");
    pass(w, NULL, FAILOVER_MS);
    assert_int_equal(lease_of(w, "a").hold, 0);
    assert_string_equal(world_lease(world, "a").owner, "other");
    assert_int_equal(world_lease(world, "a").counter, 1);
    /* Also when the row keeps our name (a table that was restored). */
    pass(w, NULL, 2 * FAILOVER_MS);
    assert_true(lease_of(w, "a").hold);
    world_put(world, json_printf("{'leaseKey':{'S':'a'},'leaseOwner':{'S':'%s'},'leaseCounter':{'N':'1'},"
                                 "'checkpoint':{'S':'5'}}",
                                 w->name));
    uint64_t hold = lease_of(w, "a").hold;
    pass(w, NULL, FAILOVER_MS / 2);
    assert_true(lease_of(w, "a").hold != hold);
}

static void a_row_that_is_gone_is_lost(void **state)
{
    (void)state;
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    assert_int_equal(turn(w), SL_OK);
    const struct sl_call call = {.arena = world->arena, .deadline_ms = INT64_MAX};
    struct sl_result result;
    struct sl_table_op op = {.verb = SL_TABLE_DELETE, .key = json_span("{'leaseKey':{'S':'a'}}")};
    world->table->apply(world->table, &op, 1, &result, &call);
    pass(w, NULL, FAILOVER_MS);
    assert_int_equal(sl_book_count(w->book), 0);
    assert_null(world_row(world, "a").ptr); /* a renewal does not make it again */
}

static void a_table_out_of_reach_ends_a_holding_in_time(void **state)
{
    (void)state;
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    assert_int_equal(turn(w), SL_OK);
    int64_t until = lease_of(w, "a").until_ms;
    w->port.is_down = 1;
    while (world->ms < until - 100) {
        world->ms += 100;
        (void)turn(w);
        assert_int_equal(lease_of(w, "a").until_ms, until);
    }
    world->ms = until;
    (void)turn(w);
    assert_int_equal(lease_of(w, "a").hold, 0);
    w->port.is_down = 0;
    pass(w, NULL, 2 * FAILOVER_MS);
    assert_true(lease_of(w, "a").is_handed_out);
}

/* Each write is carried out, and each answer lost: the next attempt finds its own work. */
static void lost_answers_lose_nothing(void **state)
{
    (void)state;
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    assert_int_equal(turn(w), SL_OK);
    uint64_t hold = lease_of(w, "a").hold;
    for (int i = 1; i <= 20; i++) {
        char number[8];
        snprintf(number, sizeof(number), "%d", i);
        sl_book_save(w->book, "a", hold, number);
        world->ms += 1000;
        w->port.lose_percent = 100;
        assert_int_equal(turn(w), SL_RETRY);
        w->port.lose_percent = 0;
        assert_int_equal(turn(w), SL_OK); /* finds it, */
        assert_int_equal(turn(w), SL_OK); /* and renews */
        assert_int_equal(lease_of(w, "a").hold, hold);
        assert_string_equal(world_lease(world, "a").checkpoint, number);
    }
    sl_book_save(w->book, "a", hold, "SHARD_END");
    w->port.lose_percent = 100;
    assert_int_equal(turn(w), SL_RETRY);
    w->port.lose_percent = 0;
    assert_int_equal(turn(w), SL_OK);
    assert_true(sl_book_is_done(w->book, "a"));
    assert_int_equal(sl_book_lost(w->book), 0);
}

/* A lease that was given back, and the answer was lost: it is found so, whoever has it meanwhile. */
static void a_lost_answer_of_giving_back_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool has_place = i % 2, is_taken = i / 2;
        world_destroy(world);
        world = world_new(1);
        struct world_worker *w = start(0);
        list(w, one, 1, false);
        assert_int_equal(turn(w), SL_OK);
        uint64_t hold = lease_of(w, "a").hold;
        if (has_place)
            sl_book_save(w->book, "a", hold, "17");
        sl_book_drop(w->book, "a", hold);
        w->port.lose_percent = 100;
        assert_false(sl_book_flush(w->book, NULL));
        w->port.lose_percent = 0;
        struct world_worker *other = is_taken ? start(1) : NULL;
        if (other)
            assert_int_equal(turn(other), SL_OK);
        assert_true(sl_book_flush(w->book, NULL));
        struct sl_lease row = world_lease(world, "a");
        assert_string_equal(row.checkpoint, has_place ? "17" : "TRIM_HORIZON");
        assert_true(is_taken ? strcmp(row.owner, other->name) == 0 : !row.owner);
        assert_int_equal(lease_of(w, "a").hold, 0);
        assert_null(lease_of(w, "a").pending);
    }
}

/* Of a lease that is not held, or was lost and gained since, no place is taken. */
static void only_the_holder_may_write(void **state)
{
    (void)state;
    struct world_worker *w = start(0);
    list(w, one, 1, false);
    assert_int_equal(turn(w), SL_OK);
    uint64_t hold = lease_of(w, "a").hold;
    sl_book_save(w->book, "unknown", hold, "5");
    sl_book_save(w->book, "a", 0, "5");
    sl_book_save(w->book, "a", hold + 1, "5");
    sl_book_drop(w->book, "unknown", hold);
    sl_book_drop(w->book, "a", 0);
    sl_book_drop(w->book, "a", hold + 1);
    pass(w, NULL, FAILOVER_MS);
    assert_string_equal(world_lease(world, "a").checkpoint, "TRIM_HORIZON");
    assert_int_equal(lease_of(w, "a").hold, hold);
    assert_null(world_row(world, "unknown").ptr);
}

/* A row that begins at the latest gets its moment from the first who takes it, and keeps it. */
static void the_latest_gets_its_moment(void **state)
{
    (void)state;
    world_put(world, "{'leaseKey':{'S':'a'},'leaseCounter':{'N':'7'},'checkpoint':{'S':'LATEST'}}");
    struct world_worker *w = start(0);
    pass(w, NULL, 2 * FAILOVER_MS);
    struct sl_book_lease lease = lease_of(w, "a");
    int64_t since_ms = lease.lease->since_ms;
    assert_true(lease.is_handed_out);
    assert_true(since_ms >= WALL_MS && since_ms <= WALL_MS + world->ms);
    assert_int_equal(world_lease(world, "a").since_ms, since_ms);
    sl_book_drop(w->book, "a", lease.hold);
    assert_true(sl_book_flush(w->book, NULL));
    struct world_worker *next = start(1);
    assert_int_equal(turn(next), SL_OK);
    assert_int_equal(lease_of(next, "a").lease->since_ms, since_ms);
    assert_int_equal(world_lease(world, "a").since_ms, since_ms);
}

/* Leases that cannot be made now are made with the next listing; what was made before is not made again. */
static void a_listing_that_fails_is_repeated(void **state)
{
    (void)state;
    static char names[150][8];
    struct sl_book_shard shards[150];
    for (unsigned i = 0; i < 150; i++) {
        snprintf(names[i], sizeof(names[i]), "s%03u", i);
        shards[i] = (struct sl_book_shard){names[i], i % 10 ? names[i - 1] : "", false};
    }
    const struct sl_book_listing listing = {.shards = shards, .n = 150, .now_ms = WALL_MS};
    struct world_worker *w = start(0);
    struct sl_error error = SL_NO_ERROR;
    w->port.is_down = 1;
    assert_int_equal(sl_book_list(w->book, &listing, &error), SL_RETRY);
    assert_non_null(strstr(error.text, "the lease table cannot be written: the answer did not come"));
    w->port.is_down = 0;
    w->port.lose_percent = 10;
    for (int i = 0; sl_book_list(w->book, &listing, &error) != SL_OK; i++, world->ms += FAILOVER_MS / 2) {
        assert_true(i < 199);
        (void)turn(w); /* the table is read again */
    }
    w->port.lose_percent = 0;
    pass(w, NULL, 2 * FAILOVER_MS);
    assert_int_equal(sl_book_count(w->book), 150);
    for (unsigned i = 0; i < 150; i++) {
        assert_string_equal(world_lease(world, names[i]).checkpoint, "TRIM_HORIZON");
        assert_int_equal(lease_of(w, names[i]).is_handed_out, i % 10 == 0);
    }
}

static int set_up(void **state)
{
    (void)state;
    world = world_new(1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_destroy(world);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_made_taken_renewed_and_given_back),
        TEST(what_others_wrote_survives),
        TEST(a_live_lease_is_not_taken_and_a_dead_one_is),
        TEST(a_place_of_a_lost_lease_is_not_written),
        TEST(a_stolen_lease_is_handed_out_when_its_last_holder_has_stopped),
        TEST(children_wait_for_parents_wherever_they_are),
        TEST(children_that_are_found_need_no_listing),
        TEST(children_are_found_by_several_workers),
        TEST(only_shards_that_need_one_get_a_lease),
        TEST(latest_is_for_open_shards_that_follow_nothing),
        TEST(a_finished_lease_goes_late),
        TEST(tables_of_others_are_refused),
        TEST(what_is_left_of_the_last_stream_comes_first),
        TEST(a_shard_that_should_be_listed_betrays_another_stream),
        TEST(a_row_that_breaks_stops_its_shard_alone),
        TEST(a_counter_that_goes_back_ends_a_holding),
        TEST(a_row_that_is_gone_is_lost),
        TEST(a_table_out_of_reach_ends_a_holding_in_time),
        TEST(lost_answers_lose_nothing),
        TEST(a_lost_answer_of_giving_back_is_found),
        TEST(only_the_holder_may_write),
        TEST(the_latest_gets_its_moment),
        TEST(a_listing_that_fails_is_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
