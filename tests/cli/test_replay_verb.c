/* `sluice replay`, `redrive`, `decode`, `manifest` and `new-handler` with real sandboxes: this program is the
 * bootstrap that they start, by a link beside it. */
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "runtime/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define STREAM "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'on_failure':'jsonl:parked.jsonl','routes':["                        \
    "{'name':'say','handler':'notify','to':'jsonl:said.jsonl','message':'%s'},"                              \
    "{'name':'all','handler':'notify','to':'jsonl:all.jsonl','message':'{PK}'}]}"

/* Records `first` to `last`; those whose number divides by `odd` lack the attribute "word". */
static const char *records(size_t first, size_t last, size_t odd, const char *between)
{
    const char *text = "";
    for (size_t i = first; i <= last; i++)
        text = json_printf("%s%s{'eventID':'e%zu','eventName':'%s','eventVersion':'1.1','eventSource':'aws:"
                           "dynamodb','awsRegion':'us-east-1',"
                           "'eventSourceARN':'" STREAM
                           "','dynamodb':{'ApproximateCreationDateTime':%zu,'Keys':{'PK':{'S':'k%zu'}},"
                           "'NewImage':{'PK':{'S':'k%zu'}%s},'SequenceNumber':'%zu','SizeBytes':10,'"
                           "StreamViewType':'NEW_IMAGE'}}",
                           text, *text ? between : "", i, i % 2 ? "INSERT" : "MODIFY", 1573689197 + i, i % 5,
                           i % 5, i % odd ? ",'word':{'S':'w'}" : "", 100 + i);
    return text;
}

static const char *event(size_t first, size_t last, size_t odd)
{
    return json_printf("{'Records':[%s]}", records(first, last, odd, ","));
}

static size_t lines(struct verbs *v, const char *name)
{
    size_t n = 0;
    for (const char *at = verb_read(v, name); *at; at++)
        n += *at == '\n';
    return n;
}

static void forget(struct verbs *v)
{
    static const char *const names[] = {"said.jsonl", "all.jsonl", "parked.jsonl", "trace.jsonl"};
    char path[600];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), names[i]);
        unlink(path);
    }
}

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_write(v, "sluice.json", json_printf(CONFIG, "{word}"));
    verb_write(v, "in.json", event(1, 12, 100));
    verb_write(v, "odd.json", event(1, 12, 4));
    verb_write(v, "lines.jsonl", json_printf("%s\n", records(1, 12, 100, "\n")));
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

/* ---- replay ---- */

static void every_record_is_handled_whatever_the_mapping(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *flags;
        size_t calls;
    } cases[] = {
        {"in.json", 1},
        {"lines.jsonl", 1},
        {"--batch-size 5 in.json", 3},
        {"--batch-size 5 --parallelization 3 in.json", 0},
        {"--shards 3 in.json", 0},
        {"--live --window 5 in.json", 0},
        {"--live --start 1573689190 in.json", 12},
        {"--batch-size 6 --fault crash@1 in.json", 3},
        {"--batch-size 6 --fault throttle@1-2 in.json", 0},
        {"--batch-size 6 --fault die@2 in.json", 3},
        {"--batch-size 6 --fault lost@1 in.json", 3},
        {"--batch-size 3 --fault crash@50% --seed 7 in.json", 0},
        {"--batch-size 3 --fault sink@2 --fault connect@1 in.json", 0},
        {"--concurrency 1 --parallelization 4 --batch-size 2 in.json", 0},
        {"--shard-per-file in.json", 1},
        {"--function other --quiet in.json", 1},
        {"--filter '{\"eventName\":[\"INSERT\",\"MODIFY\"]}' in.json", 1},
        {"--bisect --max-retries 2 --max-age 604800 --report-failures --invocation-ms 7 in.json", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        forget(v);
        verb_assert(v, verb(v, "replay --trace trace.jsonl %s", cases[i].flags), 0, "12");
        size_t n = lines(v, "trace.jsonl");
        if (cases[i].calls && n != cases[i].calls)
            fail_msg("%s: %zu calls\n%s", cases[i].flags, n, verb_read(v, "trace.jsonl"));
        assert_true(lines(v, "all.jsonl") >= 12);
        assert_true(lines(v, "said.jsonl") >= 12);
    }
    forget(v);
    verb_assert(v, verb(v, "replay --filter '{\"eventName\":[\"INSERT\"]}' in.json"), 0, "filtered");
    assert_int_equal(lines(v, "all.jsonl"), 6);
    forget(v);
    verb_input(v, verb_read(v, "in.json"));
    verb_assert(v, verb(v, "replay --report page.html --log log.txt -"), 0, "12");
    assert_non_null(strstr(verb_read(v, "page.html"), "</html>"));
}

static void what_is_given_up_is_written_and_counted(void **state)
{
    struct verbs *v = *state;
    static const char *const report =
        "{'report_batch_item_failures':%s,'routes':[{'name':'say','handler':'notify','to':'jsonl:said.jsonl',"
        "'message':'{word}','on_failure':'report'}]}";
    verb_write(v, "sluice.json", json_printf(report, "true"));
    verb_assert(v,
                verb(v, "replay --bisect --max-retries 1 --on-failure given.jsonl --trace trace.jsonl "
                        "--trace-records --report page.html odd.json"),
                1, "discarded");
    assert_int_equal(lines(v, "given.jsonl"), 3);
    assert_int_equal(lines(v, "said.jsonl"), 9);
    assert_non_null(strstr(verb_read(v, "given.jsonl"), "\"batchSize\":1,"));
    verb_assert(v, verb(v, "replay --bisect --max-retries 0 --on-failure given.jsonl odd.json"), 2,
                "--overwrite");
    verb_assert(v, verb(v, "replay --bisect --max-retries 0 --overwrite --on-failure given.jsonl odd.json"),
                1, "discarded");
    assert_int_equal(lines(v, "given.jsonl"), 3);
    verb_assert(v, verb(v, "replay --bisect --max-retries 0 --on-failure bucket/ odd.json"), 1, "discarded");
    verb_write(v, "sluice.json", json_printf(report, "false"));
    verb_assert(v, verb(v, "replay --max-retries 0 --on-failure whole.jsonl odd.json"), 1, "discarded");
    assert_int_equal(lines(v, "whole.jsonl"), 1);
    verb_assert(v, verb(v, "replay --max-age 60 --on-failure old.jsonl --start 1573690000 odd.json"), 1,
                "discarded");
    assert_non_null(strstr(verb_read(v, "old.jsonl"), "RecordAgeExceeded"));
}

static void another_function_may_do_anything(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *command;
        int status;
        const char *text;
    } cases[] = {
        {"exit 7", 2, "exit status 7"},
        {"kill -9 $$", 2, "signal"},
        {"/nowhere/function", 2, "127"},
        {"true", 2, "exit status 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "replay --bootstrap '%s' in.json", cases[i].command), cases[i].status,
                    cases[i].text);
}

static void wrong_input_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"replay nowhere.json", "nowhere.json: cannot be opened"},
        {"replay wrong.json", "wrong.json"},
        {"replay other.json", "other.json"},
        {"replay empty.json", "empty.json"},
        {"replay --config nowhere.json in.json", "nowhere.json"},
        {"replay --config wrong.json in.json", "wrong.json"},
        {"replay --filter '{}' in.json", "--filter"},
        {"replay --filter nonsense in.json", "--filter"},
        {"replay --fault nothing@1 in.json", "--fault"},
        {"replay --fault crash in.json", "--fault"},
        {"replay --fault crash@0 in.json", "--fault"},
        {"replay --fault crash@200% in.json", "--fault"},
        {"replay --trace nowhere/trace.jsonl in.json", "nowhere/trace.jsonl"},
        {"replay --report nowhere/page.html in.json", "nowhere/page.html"},
        {"replay --log nowhere/log in.json", "nowhere/log"},
        {"replay --on-failure nowhere/x in.json", "nowhere/x"},
        {"replay --tumbling 30 --parallelization 2 in.json", "ParallelizationFactor"},
        {"replay --max-age 59 in.json", "MaximumRecordAgeInSeconds"},
    };
    verb_write(v, "wrong.json", "{'Records':[");
    verb_write(v, "other.json", "{'foo':1}");
    verb_write(v, "empty.json", "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "%s", cases[i].line), 2, cases[i].text);
    assert_int_equal(lines(v, "all.jsonl"), 0);
}

/* ---- redrive ---- */

static void what_was_parked_goes_through_its_route_alone(void **state)
{
    struct verbs *v = *state;
    verb_assert(v, verb(v, "replay odd.json"), 0, "parked");
    assert_int_equal(lines(v, "parked.jsonl"), 3);
    verb_assert(v, verb(v, "redrive --dry-run parked.jsonl"), 0, "listed");
    verb_assert(v, verb(v, "redrive parked.jsonl"), 1, "0 of 3 messages are done");
    verb_write(v, "sluice.json", json_printf(CONFIG, "mended {PK}"));
    size_t said = lines(v, "said.jsonl");
    verb_assert(v, verb(v, "redrive --limit 1 parked.jsonl"), 0, "done");
    assert_int_equal(lines(v, "said.jsonl"), said + 1);
    verb_assert(v, verb(v, "redrive --match route=all parked.jsonl"), 0, "there is no message that matches");
    verb_assert(
        v,
        verb(
            v,
            "redrive --match code=Missing* --match route!=all --parallel 2 --trace trace.jsonl parked.jsonl"),
        0, "3 of 3");
    assert_int_equal(lines(v, "said.jsonl"), said + 4);
    assert_int_equal(lines(v, "all.jsonl"), 12);
    verb_assert(v, verb(v, "redrive in.json"), 0, "done");
    assert_int_equal(lines(v, "all.jsonl"), 24);
    verb_assert(v, verb(v, "redrive --route say in.json"), 0, "done");
    assert_int_equal(lines(v, "all.jsonl"), 24);
    verb_assert(v, verb(v, "replay --bootstrap 'exit 3' --config sluice.json in.json"), 2, "3");
    char path[600];
    snprintf(path, sizeof(path), "%s/mail", verbs_folder(v));
    assert_int_equal(mkdir(path, 0777), 0);
    verb_write(v, "mail/one.json", verb_read(v, "parked.jsonl"));
    verb_assert(v, verb(v, "redrive --delete-done mail"), 0, "removed");
    assert_string_equal(verb_read(v, "mail/one.json"), "");
}

static void messages_come_in_many_forms(void **state)
{
    struct verbs *v = *state;
    static const char parked[] =
        "{'sluiceParked':1,'route':'say','code':'MissingAttribute','streamArn':'" STREAM "','record':%s}";
    const char *one = json_printf(parked, records(1, 1, 100, ","));
    static const struct {
        const char *form;
        bool is_text;
    } forms[] = {
        {"%s", false},
        {"[%s]", false},
        {"{'Body':%s,'ReceiptHandle':'x'}", true},
        {"{'Messages':[{'Body':%s}]}", true},
        {"{'Records':[{'body':%s,'eventSource':'aws:sqs'}]}", true},
        {"{'Type':'Notification','Message':%s}", true},
    };
    char text[4096];
    size_t n = 0;
    text[n++] = '"';
    for (const char *at = one; *at; at++) {
        if (*at == '"')
            text[n++] = '\\';
        text[n++] = *at;
    }
    text[n++] = '"';
    text[n] = '\0';
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char *input = NULL, *form = strdup(json(forms[i].form)), *at = strstr(form, "%s");
        *at = '\0';
        assert_true(asprintf(&input, "%s%s%s", form, forms[i].is_text ? text : one, at + 2) > 0);
        verb_input(v, input);
        verb_assert(v, verb(v, "redrive -"), 0, "done");
        assert_int_equal(lines(v, "said.jsonl"), i + 1);
        free(input);
        free(form);
    }
    static const char *const bad[][2] = {
        {"{}", "not a failure message"},
        {"{'Body':'hello'}", "not JSON"},
        {"{'sluiceParked':1}", "without its record"},
        {"{'sluiceParked':2,'record':{},'route':'say'}", "newer"},
        {"{'DDBStreamBatchInfo':{}}", "without a stream"},
        {"{'a'", "byte 4"},
        {"{'Records':[]}", "is empty"},
        {"[]", "is empty"},
        {"{'sluiceParked':1,'route':'say','record':{'Records':[]}}", "no records"},
        {"{'DDBStreamBatchInfo':{},'payload':'[]'}", "no records"},
        {"{'KinesisBatchInfo':{'shardId':'s','startSequenceNumber':'1','endSequenceNumber':'2','streamArn':'"
         "arn:aws:kinesis:r:1:stream/s'}}",
         "Kinesis stream"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        verb_input(v, json(bad[i][0]));
        verb_assert(v, verb(v, "redrive -"), 4, bad[i][1]);
    }
    static const char *const refused[][2] = {
        {"nowhere.json", "nowhere.json"},
        {"--match color=red -", "color=red"},
        {"--since noon -", "noon"},
        {"--limit 0 -", "--limit"},
        {"--delete-done -", "--delete-done"},
        {"ftp://x", "ftp://x"},
        {"'sqs://no/such/queue!'", "queue name"},
        {"--config none.json -", "none.json"},
        {"--visibility 10 -", "180 "},
    };
    verb_input(v, "");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        verb_assert(v, verb(v, "redrive %s", refused[i][0]), 2, refused[i][1]);
    verb_assert(v, verb(v, "redrive -"), 0, "there is no message");
}

/* ---- decode, manifest, new-handler ---- */

static void decode_prints_what_it_read(void **state)
{
    struct verbs *v = *state;
    verb_assert(v, verb(v, "decode in.json lines.jsonl"), 0, "\"index\":11,\"ttl\":\"user\",\"bytes\":");
    size_t n = 0;
    for (const char *at = verb_out(v); *at; at++)
        n += *at == '\n';
    assert_int_equal(n, 24);
    char *text = strdup(verb_out(v));
    verb_input(v, text);
    verb_assert(v, verb(v, "decode -"), 0, "\"index\":23,");
    free(text);
    verb_write(
        v, "bad.jsonl",
        json_printf(
            "%s\n{'eventName':'INSERT','dynamodb':{'Keys':{'PK':{'S':'a'}},'NewImage':{'n':{'N':'x'}}}}\n",
            records(1, 1, 9, "")));
    verb_assert(v, verb(v, "decode bad.jsonl"), 2,
                "bad.jsonl: line 2: record 1: dynamodb.NewImage.n.N: not a number");
    verb_assert(v, verb(v, "decode --keep-going bad.jsonl in.json"), 2,
                "sluice decode: 1 bad record was left out");
    assert_non_null(strstr(verb_out(v), "\"file\":\"in.json\",\"index\":11"));
    verb_assert(v, verb(v, "decode missing.json"), 2, "missing.json: cannot be opened");
    verb_write(v, "ttl.jsonl",
               "{'eventName':'REMOVE','dynamodb':{'ApproximateCreationDateTime':1000,'Keys':{'PK':{'S':'a'}},"
               "'OldImage':{'t':{'N':'900'}}}}\n");
    verb_assert(v, verb(v, "decode --ttl-attribute t ttl.jsonl"), 0, "\"ttl\":\"inferred\"");
    verb_assert(v, verb(v, "decode ttl.jsonl"), 0, "\"ttl\":\"unknown\"");
}

static void an_archive_becomes_an_export(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "archive.json",
               "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'a','handler':'"
               "archive','to':'file:kept','format':'export'}]}");
    verb_assert(v, verb(v, "replay --config archive.json --batch-size 5 in.json"), 0, "12");
    verb_assert(v,
                verb(v, "manifest --bucket b --s3-prefix a/b --table-arn "
                        "arn:aws:dynamodb:eu-west-1:123456789012:table/orders kept"),
                0, "");
    verb_assert(v, verb(v, "manifest kept"), 0, "does not name the table and the bucket");
    verb_assert(v, verb(v, "manifest --table-arn orders kept"), 2,
                "--table-arn orders: is not a table's ARN");
    verb_assert(v, verb(v, "manifest nowhere"), 2, "nowhere");
    char path[600];
    snprintf(path, sizeof(path), "%s/empty", verbs_folder(v));
    assert_int_equal(mkdir(path, 0777), 0);
    verb_assert(v, verb(v, "manifest empty"), 2, "no object of format export");
    verb_write(v, "empty/x.json", "{'Item':{'PK':{'S':'a'}}}\n");
    verb_assert(v, verb(v, "manifest empty"), 2, "line 1 is not a line of an incremental export");
}

/* Records with new images alone prove nothing of what is missing between them, and that is not called proven.
 */
static void an_archive_is_verified_beside_a_replica(void **state)
{
    struct verbs *v = *state;
    static const char both[] =
        "{'report_batch_item_failures':true,'on_failure':'report','routes':["
        "{'name':'keep','handler':'archive','to':'file:kept'},"
        "{'name':'replica','handler':'replicate','to':'sqlite:out.db?table=replica'}]}";
    verb_write(v, "sluice.json", both);
    verb_write(v, "source.json",
               "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'r',"
               "'handler':'replicate','to':'sqlite:src.db?table=orders','guard':'none'}]}");
    verb_write(v, "four.json", event(1, 4, 100));
    verb_assert(v, verb(v, "replay four.json"), 0, "handled");
    verb_assert(v, verb(v, "replay --config source.json in.json"), 0, "12");
    verb_assert(v, verb(v, "replay in.json --config both.json"), 2, "both.json");
    verb_assert(
        v, verb(v, "verify --max-lag 0 --archives --temp . --routes keep --table sqlite:src.db?table=orders"),
        3,
        "in 1 objects: 0 gaps, 0 damaged, 0 unreadable; 0 doubles, 0 unknown before, 2 without the images");
    /* The same item is inserted twice. */
    verb_assert(v, verb(v, "replay in.json"), 0, "12");
    verb_assert(v, verb(v, "verify --max-lag 0 --table sqlite:src.db?table=orders"), 0,
                "replica: 5 equal, 0 different");
    verb_assert(v, verb(v, "verify --max-lag 0 --archives --temp . --table sqlite:src.db?table=orders"), 1,
                ": 1 gaps, 0 damaged");
    verb_assert(v,
                verb(v, "verify --max-lag 0 --archives --json --temp . --table sqlite:src.db?table=orders"),
                1, "\"kind\":\"gap\"");
    assert_true(verb(v, "verify --max-lag 0 --archives --temp nowhere --table sqlite:src.db?table=orders") >
                1);
    assert_non_null(strstr(verb_err(v), "nowhere"));
}

static void a_handler_to_start_from(void **state)
{
    struct verbs *v = *state;
    verb_assert(v, verb(v, "new-handler mine"), 0, "mine");
    assert_non_null(strstr(verb_read(v, "mine/mine.c"), "mine"));
    assert_non_null(strstr(verb_read(v, "mine/Makefile"), "all:"));
    assert_non_null(strstr(verb_read(v, "mine/sluice.json"), "mine"));
    verb_assert(v, verb(v, "new-handler mine"), 2, "mine");
    verb_assert(v, verb(v, "new-handler 'not a name'"), 2, "not a name");
    verb_assert(v, verb(v, "new-handler nowhere/x"), 2, "nowhere/x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (verbs_is_bootstrap(argc, argv))
        return sl_start(argv[0], environ);
    verbs_link_bootstrap();
    const struct CMUnitTest tests[] = {
        TEST(every_record_is_handled_whatever_the_mapping),
        TEST(what_is_given_up_is_written_and_counted),
        TEST(another_function_may_do_anything),
        TEST(wrong_input_is_refused),
        TEST(what_was_parked_goes_through_its_route_alone),
        TEST(messages_come_in_many_forms),
        TEST(decode_prints_what_it_read),
        TEST(an_archive_becomes_an_export),
        TEST(an_archive_is_verified_beside_a_replica),
        TEST(a_handler_to_start_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
