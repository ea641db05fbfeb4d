/* Verifying archives as work items: turns, what came meanwhile, and what is refused.
 * tests/steps/check_archives.py plays whole executions beside `sluice verify --archives`, with kills. */
#include "tests/runtime/work_function.h"

#include "data/verify/archive/part.h"
#include "handlers/pipeline/host.h"

#define ARN "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"

#define ARCHIVES                                                                                             \
    "{'report_batch_item_failures':true,'routes':[{'name':'keep','handler':'archive','format':'record',"     \
    "'to':'file:${DIR}/archive','on_failure':'report'},{'name':'plain','handler':'replicate',"               \
    "'to':'sqlite:${DIR}/r.db?table=orders','on_failure':'report'}]}"

/* ---- an archive ---- */

/* Below the folder: an object of one change of an item, which had the value `from` (0: none) and has `to`, as
 * the handler names it (docs/HANDLERS.md). Its name begins with the letters. */
static void add_object(struct api *a, const char *letters, unsigned sequence, const char *item, int from,
                       int to)
{
    unsigned char bytes[32];
    char digits[33], path[500];
    const char *identifiers = json_printf("0%s\n%u\ne%u\n", ARN, sequence, sequence);
    sl_host_table.sha256(sl_span_str(identifiers), bytes);
    for (size_t i = 0; i < 16; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    snprintf(path, sizeof(path), "%s/archive/%s%u-1-%s.jsonl", api_folder(a), letters, sequence, digits);
    test_write(path,
               json_printf("{'eventID':'e%u','eventName':'%s','eventSource':'aws:dynamodb',"
                           "'eventSourceARN':'" ARN "','dynamodb':{'Keys':{'PK':{'S':'%s'}},%s"
                           "'NewImage':{'n':{'N':'%d'}},'SequenceNumber':'%u'}}\n",
                           sequence, from ? "MODIFY" : "INSERT", item,
                           from ? json_printf("'OldImage':{'n':{'N':'%d'}},", from) : "", to, sequence));
}

static void begin_with(struct api *a, const char *config)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/archive", api_folder(a));
    assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    snprintf(path, sizeof(path), "%s/place/verify/v", api_folder(a));
    assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    api_start(a, config);
}

static void begin(struct api *a)
{
    begin_with(a, ARCHIVES);
}

static void end(struct api *a)
{
    assert_int_equal(api_stop(a), 0);
}

/* Does a piece in turns that have time for one object each, and writes the index of its step. Returns the
 * last answer. */
static json_t *do_turns(struct api *a, const char *step, unsigned *turns)
{
    json_t *piece = json_pack("{s:s,s:s,s:i,s:s,s:i}", "do", "archives", "step", step, "piece", 0, "run", "v",
                              "target", 0);
    for (*turns = 1;; ++*turns) {
        char *text = json_dumps(piece, JSON_COMPACT);
        json_t *answer = ask_late(a, "piece", text);
        free(text);
        json_decref(piece);
        if (json_is_true(json_object_get(answer, "done"))) {
            char name[100];
            snprintf(name, sizeof(name), "verify/v/archives/%s.json", step);
            write_place(a, name, json_printf("['%s']", json_string_value(json_object_get(answer, "last"))));
            return answer;
        }
        piece = json_incref(json_object_get(answer, "next"));
        json_decref(answer);
    }
}

static char *found(struct api *a, const char *name)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/place/verify/v/%s", api_folder(a), name);
    return test_read(path, NULL);
}

/* ---- turns ---- */

static void what_turns_read_is_walked(void **state)
{
    struct api *a = *state;
    unsigned turns;
    begin(a);
    for (unsigned i = 0; i < 5; i++) {
        add_object(a, "m", 100 + i, "a", (int)i, (int)i + 1);
        if (i != 2)
            add_object(a, "m", 200 + i, "b", (int)i, (int)i + 1);
    }
    json_t *answer = do_turns(a, "read", &turns);
    assert_int_equal(turns, 9);
    assert_int_equal(number(answer, "objects"), 9);
    json_decref(answer);

    /* Meanwhile: one that is between two that were read; one before which one is missing that has yet to
     * come; and one of another program, which is told. */
    add_object(a, "m", 202, "b", 2, 3);
    add_object(a, "a", 107, "a", 7, 8);
    add_object(a, "z", 1, "c", 0, 1);
    char path[400];
    snprintf(path, sizeof(path), "%s/archive/n.jsonl", api_folder(a));
    test_write(path, "");
    answer = do_turns(a, "again", &turns);
    assert_int_equal(turns, 4);
    assert_int_equal(number(answer, "objects"), 4);
    assert_int_equal(number(answer, "damaged"), 1);
    json_decref(answer);
    char *line = found(a, "000000-0007-0000.jsonl");
    assert_non_null(strstr(line, json("'kind':'damaged','route':'keep','handler':'archive','object':"
                                      "'n.jsonl','why':'its name is not one that archive gives'")));
    free(line);

    static const char *const walk =
        "{'do':'archives','step':'walk','piece':0,'run':'v','target':0,'from':0,'until':256}";
    answer = ask(a, "piece", walk);
    assert_int_equal(number(answer, "items"), 3);
    assert_int_equal(number(answer, "gaps") + number(answer, "doubles") + number(answer, "unknown_before"),
                     0);
    json_decref(answer);

    /* Without what came meanwhile there is a gap, and it is told where. */
    write_place(a, "verify/v/archives/again.json", "[]");
    answer = ask(a, "piece", walk);
    assert_int_equal(number(answer, "gaps"), 1);
    json_decref(answer);
    line = found(a, "000000-0002-0000.jsonl");
    assert_non_null(strstr(line, json("'sequence_number':'203','object':'m203-1-")));
    assert_non_null(strstr(line, json("'after_sequence_number':'201','after_object':'m201-1-")));
    free(line);
    end(a);
}

/* More gaps than are told at a time, over shares. */
static void every_gap_is_told(void **state)
{
    struct api *a = *state;
    unsigned turns;
    json_int_t gaps = 0;
    begin(a);
    for (unsigned i = 0; i < 40; i++)
        for (unsigned k = 0; k < 3; k++)
            if (k != 1)
                add_object(a, "", 1000 + i * 10 + k, json_printf("i%u", i), (int)k, (int)k + 1);
    json_decref(do_turns(a, "read", &turns));
    json_decref(do_turns(a, "again", &turns));
    assert_int_equal(turns, 1);
    for (unsigned i = 0; i < 2; i++) {
        json_t *answer = ask(a, "piece",
                             json_printf("{'do':'archives','step':'walk','piece':%u,'run':'v','target':0,"
                                         "'from':%u,'until':%u}",
                                         i, i ? 40 : 0, i ? 256 : 40));
        char *lines = found(a, i ? "000001-0002-0000.jsonl" : "000000-0002-0000.jsonl");
        json_int_t n = 0;
        for (const char *p = lines; p && (p = strstr(p, "\"after_object\":\"1")); p++)
            n++;
        assert_int_equal(number(answer, "gaps"), n);
        gaps += n;
        free(lines);
        json_decref(answer);
    }
    assert_int_equal(gaps, 40);
    end(a);
}

/* ---- an execution ---- */

static void assert_outcome(json_t *sum, const char *outcome, int objects, int gaps, int damaged,
                           int not_judged)
{
    if (strcmp(json_string_value(json_object_get(sum, "outcome")), outcome) != 0 ||
        number(sum, "objects") != objects || number(sum, "records") != objects - damaged ||
        number(sum, "gaps") != gaps || number(sum, "damaged") != damaged ||
        number(sum, "not_judged") != not_judged)
        fail_msg("%s", json_dumps(sum, 0));
    json_decref(sum);
}

/* Two archives, and one that proves nothing. */
static void all_archives_are_verified_step_by_step(void **state)
{
    struct api *a = *state;
    char path[400];
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof(path), "%s/archive/%d", api_folder(a), i);
        assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    }
#define KEEP(name, more)                                                                                     \
    "{'name':'" name "','handler':'archive','format':'record','on_failure':'report'," more                   \
    "'to':'file:${DIR}/archive/" name "'}"
    begin_with(a, "{'report_batch_item_failures':true,'routes':[" KEEP("1", "") "," KEEP("2", "") "," KEEP(
                      "3", "'when':{'events':['INSERT']},") "]}");
    assert_outcome(execute(a, "v", "{'do':'archives','routes':'1,2'}"), "unproven", 0, 0, 0, 2);
    for (unsigned i = 0; i < 5; i++) {
        add_object(a, "1/", 100 + i, "a", (int)i, (int)i + 1);
        add_object(a, "2/", 100 + i, "a", (int)i, (int)i + 1);
    }
    assert_outcome(execute(a, "v", "{'do':'archives','piece_objects':2}"), "unproven", 10, 0, 0, 1);
    assert_outcome(execute(a, "v", "{'do':'archives','piece_objects':2,'routes':'1,2'}"), "equal", 10, 0, 0,
                   0);
    assert_int_equal(steps, 2);
    refused(a, "{'sluice':{'piece':{'do':'archives','step':'read','piece':0,'run':'v','target':2}}}",
            "Function.BadWorkItem", "not verified");
    add_object(a, "2/", 107, "a", 6, 7);
    assert_outcome(execute(a, "v", "{'do':'archives','piece_objects':2}"), "different", 11, 1, 0, 1);
    snprintf(path, sizeof(path), "%s/archive/1/x.jsonl", api_folder(a));
    test_write(path, "");
    assert_outcome(execute(a, "v", "{'do':'archives','piece_objects':1,'routes':'1'}"), "different", 6, 0, 1,
                   0);
    end(a);
}

/* ---- more names than a plan can list ---- */

#define ROUNDS                                                                                               \
    7u /* 8 names, one a plan; the plan that lists the first archive's last goes on with the other */

/* In the second round of what is read again: an item's next changes, first below a name that the first round
 * has read again, then behind all names, where a later round finds it. */
static void write_late(struct api *a, unsigned step)
{
    if (step != ROUNDS + 2)
        return;
    add_object(a, "1/b", 104, "a", 4, 5);
    add_object(a, "1/z", 105, "a", 5, 6);
}

static json_t *execute_late(struct api *a, const char *run)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/place/verify/%s", api_folder(a), run);
    assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    plans_are_late = true;
    json_t *sum = execute(a, run, "{'do':'archives'}");
    plans_are_late = false;
    return sum;
}

static void what_one_plan_cannot_list_the_next_one_does(void **state)
{
    struct api *a = *state;
    char path[400];
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof(path), "%s/archive/%d", api_folder(a), i);
        assert_int_equal(sl_disk_make_folder(path, NULL), SL_OK);
    }
    begin_with(a, "{'report_batch_item_failures':true,'routes':[" KEEP("1", "") "," KEEP("2", "") "]}");
    for (unsigned i = 0; i < 4; i++) {
        if (i != 2)
            add_object(a, "1/m", 100 + i, "a", (int)i, (int)i + 1);
        add_object(a, "2/m", 100 + i, "a", (int)i, (int)i + 1);
    }
    add_object(a, "1/m", 109, "c", 0, 1);

    assert_outcome(execute_late(a, "v"), "different", 8, 1, 0, 0);
    assert_int_equal(steps, 2 * ROUNDS);
    json_t *plan = plan_of(a, "v.read-6"), *piece = json_array_get(plan, 0);
    assert_int_equal(json_array_size(plan), 1);
    assert_int_equal(number(piece, "round"), ROUNDS - 1);
    assert_int_equal(number(piece, "piece"), 0);
    assert_int_equal(number(piece, "first"), ROUNDS); /* (the end of the first archive's is one of its own) */
    assert_int_equal(number(piece, "target"), 1);
    assert_non_null(json_object_get(piece, "after"));
    assert_null(json_object_get(piece, "to"));
    json_decref(plan);

    add_object(a, "1/m", 102, "a", 2, 3);
    before_step = write_late;
    assert_outcome(execute_late(a, "late"), "equal", 10, 0, 0, 0);
    before_step = NULL;
    end(a);
}

/* ---- the plan ---- */

static void a_plan_cuts_ranges_of_names(void **state)
{
    struct api *a = *state;
    begin(a);
    for (unsigned i = 0; i < 5; i++)
        add_object(a, "", 100 + i, "a", (int)i, (int)i + 1);
    char path[400];
    snprintf(path, sizeof(path), "%s/archive/0-notes.txt", api_folder(a));
    test_write(path, "passed over");
    json_t *answer = ask(a, "plan", "{'run':'v','given':{'do':'archives','piece_objects':2}}");
    assert_int_equal(number(answer, "pieces"), 3);
    json_decref(answer);
    json_t *plan = plan_of(a, "v.read");
    const char *to = NULL;
    for (size_t i = 0; i < 3; i++) {
        const json_t *piece = json_array_get(plan, i);
        const char *after = json_string_value(json_object_get(piece, "after"));
        assert_int_equal(number(piece, "piece"), i);
        assert_true(i ? strcmp(after, to) == 0 : !after);
        to = json_string_value(json_object_get(piece, "to"));
        assert_int_equal(to != NULL, i < 2); /* the archive grows */
    }
    json_decref(plan);
    static const struct {
        int records, pieces;
    } walks[] = {{999999, 1}, {1000000, 2}, {255999999, SL_PART_SHARES}, {1000000000, SL_PART_SHARES}};
    for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
        answer = ask(a, "plan",
                     json_printf("{'run':'v','given':{'do':'archives','step':'walk','records':%d}}",
                                 walks[i].records));
        assert_int_equal(number(answer, "pieces"), walks[i].pieces);
        json_decref(answer);
    }
    end(a);
}

/* ---- what is refused ---- */

#define READ(more) "'piece':{'do':'archives','step':'read','piece':0,'run':'v','target':0" more "}"
#define WALK(more) "'piece':{'do':'archives','step':'walk','piece':0,'run':'v','target':0," more "}"

static void wrong_items_are_refused(void **state)
{
    struct api *a = *state;
    begin(a);
    static const struct {
        const char *item, *words;
    } cases[] = {
        {"'plan':{'run':'v','given':{'do':'archives','routes':'nosuch'}}", "nosuch"},
        {"'plan':{'run':'v','given':{'do':'archives','routes':'plain'}}", "none of the routes archives"},
        {"'plan':{'run':'v','given':{'do':'archives','piece_objects':0}}", "piece_objects"},
        {"'plan':{'run':'v','given':{'do':'archives','step':'x'}}", "step"},
        {"'plan':{'run':'v','given':{'do':'archives','max_lag':3}}", "max_lag"},
        {"'plan':{'run':'v','given':{'do':'archives','archives':'0123456789abcdef'}}", "start another one"},
        {READ(",'archives':'0123456789abcdef'"), "start another one"},
        {READ(",'before':'../x','turn':1"), "before"},
        {"'piece':{'do':'archives','step':'read','piece':0,'run':'v','target':1}", "target"},
        {"'piece':{'do':'archives','step':'read','piece':0,'run':'v/w','target':0}", "run"},
        {"'piece':{'do':'archives','step':'read','piece':0,'run':'v'}", "target"},
        {WALK("'from':1,'until':1"), "shares"},
        {WALK("'from':0,'until':257"), "shares"},
        {WALK("'from':0,'until':1"), "does not exist"},
        {"'sum':{'results':'results/manifest.json','pieces':0,'what':{'do':'archives','run':'../v'}}", "run"},
        {"'sum':{'results':'results/manifest.json','pieces':0,'what':{'do':'archives','run':'v'}}",
         "no objects"},
    };
    write_results(a, NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_post post = api_deliver(a, json_span(json_printf("{'sluice':{%s}}", cases[i].item)));
        if (!post.is_error || !strstr(post.body, cases[i].words))
            fail_msg("%s: %s", cases[i].item, post.body);
    }
    end(a);
}

/* An object of a turn whose shares are no changes, or not all there. */
static void damaged_objects_are_told(void **state)
{
    struct api *a = *state;
    unsigned turns;
    begin(a);
    add_object(a, "", 1, "a", 0, 1);
    json_decref(do_turns(a, "read", &turns));
    json_decref(do_turns(a, "again", &turns));
    static const size_t ends[] = {sizeof(struct sl_sorter_entry), 10, 500};
    char text[SL_PART_HEAD_BYTES + 400], head[SL_PART_HEAD_BYTES];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t n = (size_t)snprintf(head, sizeof(head), "{\"digest\":\"0\",\"ends\":[");
        for (int k = 0; k < SL_PART_SHARES; k++)
            n += (size_t)snprintf(head + n, sizeof(head) - n, k ? ",%zu" : "%zu", ends[i]);
        snprintf(text, sizeof(text), "%s]}%*s\n%0200d", head, (int)(SL_PART_HEAD_BYTES - n - 3), "", 7);
        write_place(a, "verify/v/archives/read-t0-x", text);
        write_place(a, "verify/v/archives/read.json", json("['read-t0-x']"));
        refused(a, json_printf("{'sluice':{%s}}", WALK("'from':0,'until':256")), "Function.BadPart",
                "read-t0-x");
    }
    end(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_turns_read_is_walked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_gap_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_archives_are_verified_step_by_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_one_plan_cannot_list_the_next_one_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plan_cuts_ranges_of_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_items_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_objects_are_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
