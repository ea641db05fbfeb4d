/* The engine of tail and its stream: shards that come and go, lists that fail or are not whole, places that
 * are gone, answers that are not understood, and the stream that takes the place of this one. */
#include "tests/live/tail/engine_world.h"

static int phase;
static bool was_early;
static int64_t since_ms;

static void use(const struct shard *shards, size_t n)
{
    memcpy(w.shards, shards, n * sizeof(*shards));
    phase = 0;
    was_early = false;
}

static int64_t now_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->now_ms(clock);
}

static const struct shard one[] = {{"a", NULL, false, 1, 6, 0, false}};
static const struct shard family[] = {{"root", NULL, true, 1, 3, 0, false},
                                      {"b", NULL, false, 29, 30, 0, false},
                                      {"left", "root", false, 11, 12, 0, false},
                                      {"right", "root", false, 21, 22, 0, false}};

/* ---- many ---- */

/* A list of many pages is whole, every shard is handled once, and not more is asked for at a time than there
 * are connections, or memory. */
static void many_shards_are_handled_once(void **state)
{
    (void)state;
    static char names[100][8];
    static const struct {
        size_t memory_bytes, most; /* connections */
    } cases[] = {{(size_t)1024 * 1024 * 1024, 80}, {1, 3}};
    for (size_t k = 0; k < 2; k++) {
        void *own = NULL;
        if (k)
            engine_set_up(&own);
        for (unsigned i = 0; i < 100; i++) {
            snprintf(names[i], sizeof(names[i]), "s%u", i);
            w.shards[i] = (struct shard){
                names[i], i % 3 == 1 ? names[i - 1] : NULL, true, 1000 + i, 1000 + i, 0, false};
        }
        e.options.is_once = true;
        e.options.memory_bytes = cases[k].memory_bytes;
        run_engine(WORKERS);
        assert_int_equal(e.least_listed, 100);
        assert_int_equal(e.result.records, 100);
        assert_int_equal(times(e.handled, " ") - 1, 100);
        for (unsigned i = 0; i < 100; i++)
            assert_true(has_handled(1000 + i) && has_saved(names[i], json_printf("%u.", 1000 + i)));
        assert_in_range(scripted_server_connections(e.server), 1, cases[k].most);
        if (!k)
            engine_tear_down(&own);
    }
}

/* ---- shards that come ---- */

static void add_children(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("root", "3.")) {
        since_ms = now_ms();
        phase = 1;
    } else if (phase == 1 && now_ms() - since_ms > 20000) {
        was_early |= e.through_ms > LONG_AGO_S * 1000LL;
        w.shards[2] = family[2];
        phase = 2;
    } else if (phase == 2 && has_handled(12)) {
        w.shards[3] = family[3];
        phase = 3;
    } else if (phase == 3 && has_saved("right", "22") && e.through_ms > LONG_AGO_S * 1000LL) {
        stop();
    }
}

/* What a shard was split into is listed late, one after the other. Until then nobody says that all changes
 * are handled. */
static void children_that_are_listed_late_are_awaited(void **state)
{
    (void)state;
    use(family, 2);
    e.step = add_children;
    run_engine(1);
    assert_false(was_early);
    assert_false(e.has_gone_back);
    assert_string_equal(all_handled(), " 1 2 3 11 12 21 22 29 30 ");
}

/* ---- children that are asked for by themselves ---- */

static void wait_for_children(const char *operation)
{
    (void)operation;
    if (w.refuses_filter && w.child_asks)
        w.shards[1].is_unlisted = w.shards[3].is_unlisted = false; /* so the list has to show them */
    if (has_saved("left", "12") && (has_saved("right", "22") || !w.shards[2].name))
        stop();
}

/* Where the list has several pages, whoever ends asks for its children alone: they are handled although no
 * list shows them. A service that ignores the filter tells the same; one that refuses it is asked once; and
 * of a list of one page, or by a keeper that waits for lists, nobody asks. */
static void children_are_asked_for_where_the_list_is_long(void **state)
{
    static const struct {
        bool refuses, ignores, is_short, has_no_op, is_handled;
        unsigned least, most;
    } cases[] = {{.is_handled = true, .least = 1, .most = 12},
                 {.ignores = true, .is_handled = true, .least = 1, .most = 12},
                 {.refuses = true, .least = 1, .most = 1},
                 {.is_short = true},
                 {.has_no_op = true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *own = NULL;
        if (i)
            engine_set_up(&own);
        /* Two that no list has, each beside one that it has, and two that fill the pages. */
        struct shard shards[] = {family[1],
                                 family[2],
                                 family[0],
                                 family[3],
                                 {"c", NULL, false, 70, 70, 0, false},
                                 {"d", NULL, false, 80, 80, 0, false},
                                 {"f", NULL, false, 90, 90, 0, false},
                                 {"unknown", NULL, false, 95, 95, 0, true}};
        shards[1].is_unlisted = shards[3].is_unlisted = cases[i].is_handled || cases[i].refuses;
        if (cases[i].is_short)
            shards[0] = family[0];
        use(shards, cases[i].is_short ? 2 : 8);
        w.refuses_filter = cases[i].refuses;
        w.ignores_filter = cases[i].ignores;
        e.ops.found = cases[i].has_no_op ? NULL : keeper_found;
        e.step = wait_for_children;
        run_engine(1);
        assert_in_range(w.child_asks, cases[i].least, cases[i].most);
        assert_int_equal(e.n_found, cases[i].is_handled ? 2 : 0);
        assert_true(has_handled(11) && has_handled(12));
        assert_int_equal(has_handled(21) && has_handled(22), !cases[i].is_short);
        assert_false(has_handled(95)); /* it is nobody's child, and in no list */
        assert_false(e.has_gone_back);
        if (i + 1 < sizeof(cases) / sizeof(cases[0]))
            engine_tear_down(&own);
    }
    (void)state;
}

static void wait_for_through(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("root", "3.")) {
        since_ms = now_ms();
        phase = 1;
    } else if (phase == 1 && e.through_ms > LONG_AGO_S * 1000LL) {
        since_ms = now_ms() - since_ms;
        stop();
    }
}

/* A shard without children is certain after a minute. */
static void no_children_are_certain_after_a_minute(void **state)
{
    (void)state;
    use(family, 2);
    e.step = wait_for_through;
    run_engine(1);
    assert_in_range(since_ms, 59000, 600000);
}

static void take_root_away(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("root", "3.")) {
        w.shards[0] = family[1];
        w.shards[1].name = NULL;
        since_ms = (int64_t)e.n_listings;
        phase = 1;
    } else if (phase == 1 && (int64_t)e.n_listings >= since_ms + 4) {
        w.shards[0].last = 32;
        phase = 2;
    } else if (phase == 2 && has_saved("b", "32")) {
        stop();
    }
}

/* One that is done and listed no more is forgotten; one that is not is handled to its end. */
static void shards_that_are_listed_no_more(void **state)
{
    (void)state;
    use(family, 2);
    e.step = take_root_away;
    run_engine(1);
    assert_string_equal(all_handled(), " 1 2 3 29 30 31 32 ");
    assert_int_equal(e.n_listed, 1);
    assert_int_equal(e.result.gaps, 0);
}

/* Each list begins with another shard; after some, one shard is lost, given back, and gets more records. */
static void turn_the_list(const char *operation)
{
    if (strcmp(operation, "DescribeStream") == 0 && e.n_listings > 0) {
        struct shard first = w.shards[0];
        memmove(w.shards, w.shards + 1, 3 * sizeof(first));
        w.shards[3] = first;
    }
    if (phase == 0 && e.n_listings >= 4 && has_saved("left", "12") && has_saved("b", "30")) {
        tell(SL_KEEPER_LOST, "b");
        phase = 1;
    } else if (phase == 1 && vitals()->leases_lost) {
        tell(SL_KEEPER_GAINED, "b");
        for (size_t i = 0; i < 4; i++)
            w.shards[i].last += strcmp(w.shards[i].name, "b") == 0;
        since_ms = (int64_t)e.n_listings;
        phase = 2;
    } else if (phase == 2 && has_saved("b", "31") && has_saved("right", "22") &&
               (int64_t)e.n_listings > since_ms) {
        was_early = vitals()->n_shards != 4;
        stop();
    }
}

static void the_order_of_a_list_does_not_matter(void **state)
{
    (void)state;
    use(family, 4);
    e.step = turn_the_list;
    run_engine(1);
    assert_false(was_early);
    assert_string_equal(all_handled(), " 1 2 3 11 12 21 22 29 30 31 ");
    assert_int_equal(e.least_listed, 4);
    assert_int_equal(e.n_listed, 4);
    assert_int_equal(e.result.leases_lost, 1);
}

static void take_a_away(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("root", "3.") && has_saved("a", "6")) {
        w.shards[1].is_unlisted = true;
        since_ms = (int64_t)e.n_listings;
        phase = 1;
    } else if (phase == 1 && (int64_t)e.n_listings >= since_ms + 4) {
        w.shards[1].last = 8;
        phase = 2;
    } else if (phase == 2 && has_saved("a", "8")) {
        stop();
    }
}

static void an_open_shard_that_no_list_shows_is_read_on(void **state)
{
    (void)state;
    use(family, 1);
    w.shards[1] = one[0];
    w.shards[1].first = 4;
    e.step = take_a_away;
    run_engine(1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 7 8 ");
    assert_int_equal(e.n_listed, 1 + 1); /* the keeper still hears of it */
}

/* ---- requests that fail ---- */

/* A list of three pages of which the second fails: what the keeper hears of is whole. */
static void a_list_that_fails_in_the_middle_is_begun_again(void **state)
{
    (void)state;
    static char names[5][4];
    for (unsigned i = 0; i < 5; i++) {
        snprintf(names[i], sizeof(names[i]), "s%u", i);
        w.shards[i] = (struct shard){names[i], NULL, true, 10 + i, 10 + i, 0, false};
    }
    w.denied = "DescribeStream", w.code = "ThrottlingException", w.after = 1, w.times = 3;
    e.options.is_once = true;
    run_engine(1);
    assert_int_equal(e.least_listed, 5);
    assert_string_equal(all_handled(), " 10 11 12 13 14 ");
    assert_said("Throttling", 1);
}

static void stop_when_well(const char *operation)
{
    const struct sl_vitals *now = vitals();
    if (strcmp(operation, "GetRecords") == 0 && has_saved("a", "6") && now->failed_reads && !now->trouble)
        stop();
    was_early |= now && now->trouble && strstr(now->trouble, "ThrottlingException");
}

/* The pauses become longer, and the same reason is said every ten seconds; it is shown for a while. */
static void reads_that_fail_are_repeated_less_and_less(void **state)
{
    (void)state;
    use(one, 1);
    e.step = stop_when_well;
    w.denied = "GetRecords", w.code = "ThrottlingException", w.after = 1, w.times = 6;
    run_engine(1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 ");
    assert_true(e.took_ms >= 500 + 1000 + 2000 + 4000 + 8000 + 10000);
    size_t n = times(e.said, "ThrottlingException");
    assert_in_range(n, 2, 1 + (size_t)e.took_ms / 10000);
    assert_in_range(vitals()->failed_reads, 6, 20);
    assert_true(was_early);
}

static unsigned lies;

static void tell_the_truth(const char *operation)
{
    if (w.liar && strcmp(operation, w.liar) == 0 && lies-- == 0)
        w.liar = NULL;
}

/* Four answers in a row that are not understood are nothing, the fifth ends it. */
static void five_lies_in_a_row_end_it(void **state)
{
    (void)state;
    static const char *const liars[][2] = {
        {"GetRecords", "{\"Records\":[{\"dynamodb\":{}}]}"},
        {"GetShardIterator", "{}"},
        {"DescribeStream", "{\"StreamDescription\":{\"Shards\":[{\"ShardId\":\"\"}]}}"}};
    for (size_t i = 0; i < 6; i++) {
        void *own = NULL;
        if (i)
            engine_set_up(&own);
        use(one, 1);
        w.liar = liars[i / 2][0], w.lie = liars[i / 2][1];
        lies = 4 + i % 2;
        e.step = tell_the_truth;
        e.options.is_once = true;
        run_engine(1);
        if (e.result.has_failed != (i % 2 == 1) || !strstr(e.said, liars[i / 2][0]))
            fail_msg("%s: %d\n%s", liars[i / 2][0], (int)e.result.has_failed, e.said);
        assert_string_equal(all_handled(), i % 2 ? " " : " 1 2 3 4 5 6 ");
        if (i < 5)
            engine_tear_down(&own);
    }
}

/* ---- places that are gone ---- */

static void trim_after_a_page(const char *operation)
{
    if (phase == 0 && w.n_reads == 1 && strcmp(operation, "GetRecords") == 0) {
        w.shards[0].first = w.shards[0].first == 1 ? 5 : w.shards[0].first;
        phase = 1;
    }
}

/* A read is refused: what a stream may answer is told or mended, and what is left is handled once.
 */
static void a_place_that_is_gone_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        bool is_closed, is_trimmed;
        unsigned gaps;
        const char *said, *handled;
    } cases[] = {
        {"TrimmedDataAccessException", false, true, 1, "a: the records after 3 are gone", " 1 2 3 5 6 "},
        {"TrimmedDataAccessException", false, false, 1, "a: the records after its beginning are gone",
         " 1 2 3 4 5 6 "},
        {"ExpiredIteratorException", false, false, 0, "", " 1 2 3 4 5 6 "},
        {"ResourceNotFoundException", false, false, 0, "ResourceNotFoundException", " 1 2 3 4 5 6 "},
        {"ResourceNotFoundException", true, false, 1, "before they were read to their end: a, after 3",
         " 1 2 3 11 12 "},
        {"InternalServerError", true, false, 0, "InternalServerError", " 1 2 3 4 5 6 11 12 "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *own = NULL;
        if (i)
            engine_set_up(&own);
        use(one, 1);
        w.shards[0].is_closed = cases[i].is_closed;
        if (cases[i].is_closed)
            w.shards[1] = (struct shard){"child", "a", false, 11, 12, 0, false};
        w.denied = "GetRecords", w.code = cases[i].code, w.times = 1;
        w.after = i != 1; /* the second one's first */
        e.step = cases[i].is_trimmed ? trim_after_a_page : NULL;
        e.options.is_once = true;
        run_engine(1);
        assert_string_equal(all_handled(), cases[i].handled);
        assert_int_equal(e.result.gaps, cases[i].gaps);
        assert_false(e.result.has_failed);
        if (!strstr(e.said, cases[i].said))
            fail_msg("no \"%s\": %s", cases[i].said, e.said);
        if (i + 1 < sizeof(cases) / sizeof(cases[0]))
            engine_tear_down(&own);
    }
}

/* It is named with its shard: the operator has to write both into the checkpoint. */
static void an_unreadable_record_is_named_with_its_shard(void **state)
{
    (void)state;
    use(one, 1);
    w.broken = 5;
    run_engine(1);
    assert_true(e.result.has_failed);
    assert_said("a: the record \"5\" cannot be read", 1);
    assert_string_equal(all_handled(), " 1 2 3 4 ");
}

/* What the second answer of GetRecords is; the others are true. */
static const char *second;
static unsigned answers;

static void lie_once(const char *operation)
{
    if (strcmp(operation, "GetRecords") != 0)
        return;
    answers++;
    w.liar = answers == 2 && second ? "GetRecords" : NULL;
    w.lie = second;
    if (!second && answers > 2)
        w.broken = 0;
}

/* A page that is older than the last, one out of order, one that names a member twice, a record that is
 * damaged on its way: each is asked for again, and nothing is handled twice or out of order. */
static void a_page_that_does_not_go_on_is_asked_for_again(void **state)
{
    (void)state;
#define R(n)                                                                                                 \
    "{\"eventID\":\"" n "\",\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"PK\":{\"S\":\"k\"}},"         \
    "\"SequenceNumber\":\"" n "\"}}"
    static const char *const lies_told[] = {
        "{\"Records\":[" R("1") "],\"NextShardIterator\":\"a:7\"}",
        "{\"Records\":[" R("3") "],\"NextShardIterator\":\"a:7\"}",
        "{\"Records\":[" R("5") "," R("4") "],\"NextShardIterator\":\"a:7\"}",
        "{\"Records\":[],\"Records\":[" R("4") "],\"NextShardIterator\":\"a:7\"}",
        "{\"Records\":[],\"NextShardIterator\":\"a:7\",\"NextShardIterator\":null}",
        NULL,
    };
    for (size_t i = 0; i < sizeof(lies_told) / sizeof(lies_told[0]); i++) {
        void *own = NULL;
        if (i)
            engine_set_up(&own);
        use(one, 1);
        second = lies_told[i];
        answers = 0;
        w.page = 3;
        w.broken = second ? 0 : 4;
        e.step = lie_once;
        e.options.is_once = true;
        run_engine(1);
        if (e.result.has_failed || strcmp(all_handled(), " 1 2 3 4 5 6 ") != 0)
            fail_msg("lie %zu: %s: %s", i, all_handled(), e.said);
        assert_non_null(strstr(e.said, "GetRecords"));
        if (i + 1 < sizeof(lies_told) / sizeof(lies_told[0]))
            engine_tear_down(&own);
    }
}

/* A child that was begun before is read on, whatever its parent is, which no list shows. */
static void a_kept_place_needs_no_parent(void **state)
{
    (void)state;
    w.shards[0] = (struct shard){"c", "p", false, 11, 13, 0, false};
    snprintf(place_of("c")->after, sizeof(e.places[0].after), "11");
    e.options.is_once = true;
    run_engine(1);
    assert_string_equal(all_handled(), " 12 13 ");
}

static void begin_anew(const char *operation)
{
    struct sl_clock *clock = sl_clock_system();
    (void)operation;
    if (phase == 0 && w.n_reads >= 3) {
        w.shards[0].last = 9;
        w.made_s = clock->wall_ns(clock) / 1000000000 + 120;
        phase = 1;
    } else if (phase == 1 && has_saved("a", "9")) {
        stop();
    }
}

/* From the latest: what was there before does not come, also when the first iterator expires, or when the
 * moment was kept by a run before this one. */
static void the_latest_is_a_moment(void **state)
{
    (void)state;
    enum { FIRST, EXPIRED, KEPT, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        void *own = NULL;
        struct sl_clock *clock = sl_clock_system();
        if (i)
            engine_set_up(&own);
        use(one, 1);
        w.made_from = 7;
        w.expire = i == EXPIRED;
        e.options.is_from_latest = i != KEPT;
        if (i == KEPT)
            place_of("a")->since_ms = clock->wall_ns(clock) / 1000000 - 60000;
        e.step = begin_anew;
        run_engine(1);
        assert_string_equal(all_handled(), " 7 8 9 ");
        if (i + 1 < CASES)
            engine_tear_down(&own);
    }
}

static int64_t first_ms, last_ms, least_gap_ms, n_gaps;

static void note_gap(const char *operation)
{
    if (strcmp(operation, "GetRecords") != 0)
        return;
    int64_t gap_ms = now_ms() - last_ms;
    last_ms = now_ms();
    first_ms = w.n_reads > 0 ? first_ms : last_ms;
    n_gaps = (int64_t)w.n_reads;
    if (w.n_reads > 0 && gap_ms < least_gap_ms)
        least_gap_ms = gap_ms;
    if (w.n_reads > 0 && (w.page ? has_saved("a", "6000") : has_saved("a", "15")))
        stop();
}

/* New records are waited for, so that batches fill. A full page is followed by another at once. */
static void a_busy_shard_is_read_in_full_pages(void **state)
{
    (void)state;
    struct sl_clock *clock = sl_clock_system();
    for (int is_full = 0; is_full < 2; is_full++) {
        void *own = NULL;
        if (is_full)
            engine_set_up(&own);
        haste(is_full ? 2 : 20);
        use(one, 1);
        least_gap_ms = INT64_MAX;
        w.shards[0].last = is_full ? 6000 : 15;
        w.page = is_full ? 1000 : 0;
        w.made_s = clock->wall_ns(clock) / 1000000000;
        e.handled[0] = '\0';
        e.settings.batch_size = 1000;
        e.step = note_gap;
        run_engine(1);
        haste(50);
        assert_int_equal(e.result.records, is_full ? 6000 : 15);
        /* (One request may come late on a busy machine, and the next one soon after it.) */
        int64_t gap_ms = is_full ? least_gap_ms : (last_ms - first_ms) / n_gaps;
        if (is_full ? gap_ms >= 100 : gap_ms < 80)
            fail_msg("%s pages: %lld ms", is_full ? "full" : "small", (long long)gap_ms);
        if (!is_full)
            engine_tear_down(&own);
    }
}

static void stop_after_30_s(const char *operation)
{
    (void)operation;
    if (now_ms() - e.began_ms > 30000)
        stop();
}

/* Ten reads a second for ten seconds, then less and less, down to one. */
static void an_idle_shard_is_read_less(void **state)
{
    (void)state;
    use(one, 1);
    w.shards[0].first = 0;
    e.step = stop_after_30_s;
    run_engine(1);
    assert_in_range(w.n_reads, 5, 200);
    assert_in_range(vitals()->reads, 5, 200);
}

/* ---- the next stream ---- */

static char followed[200];

static void note_followed(void *self, const char *stream_arn)
{
    (void)self;
    snprintf(followed, sizeof(followed), "%s", stream_arn);
}

static void replace_stream(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("a", "6.") && e.n_listings >= 3) {
        w.latest = NEWER;
        phase = 1;
    } else if (phase == 1 && has_saved("new", "202")) {
        stop();
    }
}

/* A stream that is disabled waits for the next one; a keeper may refuse it, and says what to do. */
static void the_next_stream_is_followed_or_refused(void **state)
{
    (void)state;
    static const struct {
        bool can_follow;
        const char *keeper;
        const char *said, *handled;
    } cases[] = {
        {true, NEWER, "is handled to its end; follows " NEWER, " 1 2 3 4 5 6 201 202 "},
        {true, NULL,
         "the keeper: cannot be used for the table's new stream, " NEWER ": it is another's: name another",
         " 1 2 3 4 5 6 "},
        {false, NULL, "the keeper: cannot be used for the table's new stream, " NEWER ": name another",
         " 1 2 3 4 5 6 "},
    };
    for (size_t i = 0; i < 3; i++) {
        void *own = NULL;
        if (i)
            engine_set_up(&own);
        use(one, 1);
        followed[0] = '\0';
        w.shards[0].is_closed = true;
        w.newer[0] = (struct shard){"new", NULL, false, 201, 202, 0, false};
        w.status = "DISABLED";
        e.options.table = "t";
        e.options.follows = true;
        e.options.followed = note_followed;
        e.followed = cases[i].keeper;
        e.ops.follow = cases[i].can_follow ? keeper_follow : NULL;
        e.options.is_once = true; /* it waits for the next one */
        e.step = replace_stream;
        run_engine(1);
        assert_said("gets no more changes: it is disabled", 1);
        assert_said(cases[i].said, 1);
        assert_string_equal(all_handled(), cases[i].handled);
        assert_string_equal(followed, i == 0 ? NEWER : "");
        assert_int_equal(e.result.gaps, i == 0);
        assert_int_equal(e.result.has_failed, i != 0);
        if (i < 2)
            engine_tear_down(&own);
    }
}

static int slow_set_up(void **state)
{
    haste(200); /* what takes a minute */
    return engine_set_up(state);
}

static int slow_tear_down(void **state)
{
    haste(50);
    return engine_tear_down(state);
}

static void delete_stream(const char *operation)
{
    (void)operation;
    if (phase == 0 && has_saved("a", "6")) {
        w.denied = "DescribeStream", w.code = "ResourceNotFoundException", w.times = 1000;
        phase = 1;
    } else if (phase == 1 && w.times < 998) {
        w.times = 0;
        w.latest = NEWER;
        phase = 2;
    } else if (phase == 2 && has_saved("new", "202")) {
        stop();
    }
}

/* A stream that is deleted is told once, and the next one is waited for. */
static void a_deleted_stream_is_told_once(void **state)
{
    (void)state;
    use(one, 1);
    w.newer[0] = (struct shard){"new", NULL, false, 201, 202, 0, false};
    e.options.table = "t";
    e.options.follows = true;
    e.followed = NEWER;
    e.step = delete_stream;
    run_engine(1);
    assert_said("is deleted, and what it held and was not handled is gone", 1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 201 202 ");
    assert_int_equal(e.result.gaps, 1);
}

static void take_stream_away(const char *operation)
{
    (void)operation;
    if (has_saved("a", "6"))
        w.latest = NULL;
}

static void a_table_without_a_stream_ends_it(void **state)
{
    (void)state;
    use(one, 1);
    e.options.table = "t";
    e.step = take_stream_away;
    run_engine(1);
    assert_true(e.result.has_failed);
    assert_said("gets no more changes: it is disabled. Handled are all changes up to", 1);
    assert_string_equal(all_handled(), " 1 2 3 4 5 6 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, engine_set_up, engine_tear_down)
#define SLOW(name) cmocka_unit_test_setup_teardown(name, slow_set_up, slow_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_shards_are_handled_once),
        TEST(children_are_asked_for_where_the_list_is_long),
        SLOW(children_that_are_listed_late_are_awaited),
        SLOW(no_children_are_certain_after_a_minute),
        SLOW(shards_that_are_listed_no_more),
        TEST(the_order_of_a_list_does_not_matter),
        TEST(an_open_shard_that_no_list_shows_is_read_on),
        TEST(a_list_that_fails_in_the_middle_is_begun_again),
        SLOW(reads_that_fail_are_repeated_less_and_less),
        TEST(five_lies_in_a_row_end_it),
        TEST(a_place_that_is_gone_is_told),
        TEST(an_unreadable_record_is_named_with_its_shard),
        TEST(the_latest_is_a_moment),
        SLOW(an_idle_shard_is_read_less),
        TEST(a_kept_place_needs_no_parent),
        TEST(a_page_that_does_not_go_on_is_asked_for_again),
        TEST(a_busy_shard_is_read_in_full_pages),
        SLOW(a_deleted_stream_is_told_once),
        SLOW(a_table_without_a_stream_ends_it),
        SLOW(the_next_stream_is_followed_or_refused),
    };
    haste(50);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
