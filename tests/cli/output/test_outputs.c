/* What `sluice replay` writes, and how it ends when something cannot be written: a full disk, a folder in the
 * way, a signal, an input that changes. This program is the bootstrap that it starts, by a link beside it. */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/base64.h"
#include "base/buffer.h"
#include "runtime/start.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define N_RECORDS 6
#define N_ODD     2 /* of them lack "word" */

#define ALL                                                                                                  \
    "replay --quiet --batch-size 3 --max-retries 0 --bisect --overwrite --on-failure given.jsonl --trace "   \
    "trace.jsonl --trace-records --report page.html --log log.txt --shards 2 "

static const char *event(size_t odd)
{
    const char *text = "";
    for (size_t i = 1; i <= N_RECORDS; i++)
        text = json_printf(
            "%s%s{'eventID':'e%zu','eventName':'INSERT','eventSourceARN':'arn:aws:dynamodb:us-east-1:"
            "123456789012:table/orders/stream/2026','dynamodb':{'ApproximateCreationDateTime':%zu,'Keys':{"
            "'PK':{'S':'k%zu'}},'NewImage':{'PK':{'S':'k%zu'}%s},'SequenceNumber':'%zu'}}",
            text, i > 1 ? "," : "", i, 1573689197 + i, i, i, i % odd ? ",'word':{'S':'w'}" : "", 100 + i);
    return json_printf("{'Records':[%s]}", text);
}

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'routes':[{'name':'say','handler':'notify','to':"
               "'jsonl:said.jsonl','message':'{PK} {word}','on_failure':'report'}]}");
    verb_write(v, "in.json", event(100));
    verb_write(v, "odd.json", event(N_RECORDS / N_ODD));
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

/* Until the fourth after it. */
static const char *content(struct verbs *v, const char *name)
{
    static char *texts[4];
    static size_t n;
    char path[600], **text = &texts[n++ % 4];
    snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), name);
    free(*text);
    *text = test_read(path, NULL);
    return *text ? *text : "";
}

static void forget(struct verbs *v)
{
    static const char *const names[] = {"said.jsonl", "given.jsonl", "trace.jsonl", "page.html", "log.txt"};
    char path[600];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", verbs_folder(v), names[i]);
        unlink(path);
    }
}

static size_t lines(struct verbs *v, const char *name)
{
    size_t n = 0;
    for (const char *at = content(v, name); *at; at++)
        n += *at == '\n';
    return n;
}

/* Bisection may send a good record again. */
static bool has_good_records(struct verbs *v, size_t n_odd)
{
    const char *said = content(v, "said.jsonl");
    for (size_t i = 1; i <= N_RECORDS; i++)
        if ((strstr(said, json_printf("k%zu w", i)) == NULL) != (n_odd && i % (N_RECORDS / N_ODD) == 0))
            return false;
    return n_odd || lines(v, "said.jsonl") == N_RECORDS;
}

/* Whether all is there that a run of the input writes. */
static bool is_whole(struct verbs *v, size_t n_odd)
{
    size_t records = 0;
    for (const char *at = content(v, "trace.jsonl"); (at = strstr(at, "\"decision\":\"")); at++)
        records++;
    return has_good_records(v, n_odd) && lines(v, "given.jsonl") == n_odd && records > 0 &&
           records == lines(v, "trace.jsonl") && strstr(content(v, "page.html"), "</html>") &&
           strstr(verb_out(v), "records in             6") && strstr(verb_out(v), "\nsay    notify ") &&
           (n_odd == 0 || strstr(content(v, "log.txt"), "MissingAttribute"));
}

/* ---- a system that fails ---- */

/* One operation after the other fails, until there are no more. Either all is written, and the exit status is
 * that of a run without a fault; or an error says why; and the same command afterwards writes all. The
 * function's process is another program, which the faults do not reach. */
static void sweep(struct verbs *v, const char *only, int err, size_t n_odd)
{
    const char *input = n_odd ? "odd.json" : "in.json";
    for (int n = 1;; n++) {
        forget(v);
        verb_fault(v, n, err, only);
        int status = verb(v, ALL "%s", input);
        if (!disk_fault_came()) {
            assert_true(n > 1);
            return;
        }
        bool is_told = strstr(verb_err(v), "sluice") && strstr(verb_err(v), strerror(err));
        if (status == (n_odd > 0) && is_whole(v, n_odd))
            continue;
        if (status <= 0 || status > 2 || !is_told)
            fail_msg("%s %d: status %d\n%s%s", only, n, status, verb_out(v), verb_err(v));
        forget(v);
        if (verb(v, ALL "%s", input) != (n_odd > 0) || !is_whole(v, n_odd))
            fail_msg("after %s %d:\n%s%s", only, n, verb_out(v), verb_err(v));
    }
}

static void each_operation_fails_once(void **state)
{
    sweep(*state, "fopen", EMFILE, 0);
    sweep(*state, "open", EACCES, 0);
    sweep(*state, "fclose", ENOSPC, 0);
    sweep(*state, "fclose", ENOSPC, N_ODD);
    sweep(*state, "fflush", ENOSPC, 0);
    sweep(*state, "memfd_create", EMFILE, 0);
    sweep(*state, "mkdtemp", ENOSPC, 0);
    sweep(*state, "pipe2", EMFILE, 0);
    sweep(*state, "fork", EAGAIN, 0);
}

static void a_full_disk_is_told_of_each_output(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *flags;
        int status;
        const char *text;
    } cases[] = {
        {"--trace /dev/full in.json", 1,
         "sluice replay: --trace /dev/full is incomplete: No space left on device"},
        {"--log /dev/full odd.json", 1, "sluice: --log /dev/full is incomplete: No space left on device"},
        {"--report /dev/full in.json", 1,
         "sluice replay: --report /dev/full: cannot be written: No space left on device"},
        {"--on-failure /dev/full odd.json", 1,
         "sluice: --on-failure /dev/full is incomplete: No space left on device"},
        {"--report . in.json", 2, "--report .: cannot be written: Is a directory"},
        {"--trace . in.json", 2, "--trace .: cannot be written: Is a directory"},
        {"--log . in.json", 2, "--log .: cannot be written: Is a directory"},
        {"--on-failure . in.json", 2, "--on-failure .: cannot be written: Is a directory"},
        {"--trace /dev/null --log /dev/null --report /dev/null --on-failure /dev/null in.json", 0,
         "handled                6"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "replay --max-retries 0 %s", cases[i].flags), cases[i].status, cases[i].text);
}

/* ---- failure records ---- */

static void a_folder_gets_an_object_for_each_batch(void **state)
{
    struct verbs *v = *state;
    char path[600];
    snprintf(path, sizeof(path), "%s/bucket", verbs_folder(v));
    assert_int_equal(mkdir(path, 0777), 0);
    verb_assert(v, verb(v, "replay --max-retries 0 --bisect --on-failure bucket/ odd.json"), 1,
                "discarded              2");
    verb_assert(v, verb(v, "replay --max-retries 0 --bisect --on-failure bucket/ odd.json"), 2,
                "--on-failure bucket/: has failure records already: name another folder, or write over it "
                "with --overwrite");
    verb_assert(v, verb(v, "replay --max-retries 0 --bisect --overwrite --on-failure bucket/ odd.json"), 1,
                "discarded              2");
    verb_assert(v, verb(v, "replay --max-retries 0 --on-failure in.json/ odd.json"), 1,
                "sluice: --on-failure: in.json/aws/");
    assert_non_null(strstr(verb_err(v), " cannot be written: Not a directory\n"));
    bool is_told = false;
    for (int n = 1; n < 10; n++) {
        verb_fault(v, n, ENOSPC, "fclose");
        verb_assert(v, verb(v, "replay --max-retries 0 --overwrite --on-failure bucket/ odd.json"), 1,
                    "discarded ");
        const char *line = strstr(verb_err(v), "sluice: --on-failure: bucket/aws/");
        is_told = is_told || (line && strstr(line, " cannot be written: No space left on device\n"));
    }
    assert_true(is_told);
}

/* ---- what ends it ---- */

/* So many that they are read page by page. */
static void write_lines(struct verbs *v, const char *name, int n)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 8 * 1024 * 1024);
    for (int i = 0; i < n; i++)
        sl_buffer_printf(
            &text,
            "{'eventID':'e%d','eventName':'INSERT','eventVersion':'1.1','eventSource':'aws:dynamodb',"
            "'awsRegion':'us-east-1','dynamodb':{'ApproximateCreationDateTime':1573689197,'Keys':{'PK':"
            "{'S':'k%d'}},'SequenceNumber':'%d','SizeBytes':10,'StreamViewType':'KEYS_ONLY'},"
            "'eventSourceARN':'arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026'}\n",
            i, i, 1000 + i);
    sl_buffer_add_char(&text, '\0');
    verb_write(v, name, text.ptr);
    sl_buffer_clean_up(&text);
}

/* The function appends to the file that is being replayed. */
static void the_trace_is_whole_when_the_input_changes(void **state)
{
    struct verbs *v = *state;
    verb_write(v, "sluice.json",
               "{'report_batch_item_failures':true,'on_failure':'report','routes':[{'name':'say','handler':'"
               "notify','to':"
               "'jsonl:lines.jsonl','message':'x'}]}");
    write_lines(v, "lines.jsonl", 16000);
    int status = verb(v, "replay --quiet --batch-size 1000 --trace trace.jsonl lines.jsonl");
    verb_assert(v, status, -SIGABRT, "sluice: lines.jsonl: has changed since the replay began");
    assert_true(lines(v, "trace.jsonl") >= 1);
    const char *trace = content(v, "trace.jsonl");
    assert_true(sl_span_ends(sl_span_str(trace), SL_LIT("}\n")));
}

static size_t entries(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *one; (one = readdir(dir));)
        n += one->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A process that nobody has waited for has no command line any more. */
static bool is_running(int pid)
{
    char path[64];
    size_t len = 0;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    free(test_read(path, &len));
    return len > 0;
}

static void a_signal_leaves_no_folder_and_no_process(void **state)
{
    struct verbs *v = *state;
    char path[600];
    snprintf(path, sizeof(path), "TMPDIR=%s/temp", verbs_folder(v));
    assert_int_equal(mkdir(path + 7, 0777), 0);
    verb_set(v, path);
    verb_assert(v, verb(v, "replay in.json"), 0, "handled                6");
    assert_int_equal(entries(path + 7), 0);
    verb_assert(v, verb_stop(v, 150, "replay --bootstrap 'echo $$ >pid; sleep 600' in.json"), -SIGTERM, "");
    assert_int_equal(entries(path + 7), 0);
    int pid = (int)strtol(content(v, "pid"), NULL, 10);
    bool is_over = pid <= 0; /* it had not begun */
    for (int i = 0; i < 1000 && !is_over; i++) {
        is_over = !is_running(pid);
        usleep(is_over ? 0 : 5000);
    }
    assert_true(is_over);
}

/* ---- while it runs ---- */

/* Eight shards that fail: by a clock that runs fifty times as fast it takes more than the five seconds after
 * which something is said, on any machine. */
#define EIGHT "--shard-per-file odd.json odd.json odd.json odd.json odd.json odd.json odd.json odd.json"

/* Whoever waits is told how far it is, and once why it takes long and what ends it. */
static void retries_without_end_are_explained_once(void **state)
{
    struct verbs *v = *state;
    verb_haste(v, 50);
    verb_assert(v, verb(v, "replay --timeout 900 --log log.txt " EIGHT), 1,
                "gone from the stream, without a failure record");
    const char *hint = strstr(verb_err(v), " records wait for batches that fail again and again (");
    assert_non_null(hint);
    assert_non_null(strstr(hint, "after 24 hours of virtual time. --max-retries N gives them up after N\n"));
    assert_null(strstr(hint + 10, "records wait for batches"));
    assert_non_null(strstr(verb_err(v), "of 48 records, "));
    verb_assert(v, verb(v, "replay --quiet --timeout 900 --log log.txt " EIGHT), 1, "gone from the stream");
    assert_string_equal(verb_err(v), "");
    verb_assert(v, verb(v, "replay --timeout 900 --max-retries 3000 --log log.txt " EIGHT), 1, "discarded ");
    assert_null(strstr(verb_err(v), "records wait for batches"));
}

/* ---- the command line ---- */

static void what_contradicts_itself_is_refused(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *flags;
        int status;
        const char *text;
    } cases[] = {
        {"--shards 2 --shard-per-file in.json", 2,
         "--shards and --shard-per-file exclude each other; keep one"},
        {"--max-age 30 in.json", 2, "sluice replay: --max-age: "},
        {"--max-age 60 in.json", 0, "handled                6"},
        {"--function 'a b' in.json", 2, "\"a b\" is neither the name of a function"},
        {"--function arn:aws:lambda:eu-west-1:123456789012:function:f in.json", 0,
         "handled                6"},
        {"--no-report-failures in.json", 0, "handled                6"},
        {"--max-retries 0 --no-report-failures odd.json", 1, "discarded              6"},
        {"-- in.json", 0, "handled                6"},
        {"-- --report-failures", 2, "--report-failures: cannot be opened"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "replay %s", cases[i].flags), cases[i].status, cases[i].text);
    char filters[600] = "";
    for (int i = 0; i < 6; i++)
        snprintf(filters + strlen(filters), sizeof(filters) - strlen(filters), " --filter '%s'",
                 json("{'eventName':['INSERT']}"));
    verb_assert(v, verb(v, "replay%s in.json", filters), 0,
                "note: 6 filters: AWS takes 5 for a mapping, and up to 10 when the quota was raised");
    verb_assert(v, verb(v, "replay --filter '%s' in.json", json("{'eventName':['insert']}")), 0,
                "note: --filter: ");
    char text[4200] = "";
    memset(text, 'x', 4097);
    verb_assert(v, verb(v, "replay --filter %s in.json", text), 2, "a pattern has more than 4096 characters");
}

/* It is where its stream is, unless the environment says where AWS is. */
static void a_function_has_a_region_and_its_plugins(void **state)
{
    struct verbs *v = *state;
    static const char command[] =
        "replay --bootstrap 'echo [$AWS_REGION,$AWS_LAMBDA_FUNCTION_NAME,$SLUICE_HANDLER_PATH]'";
    verb_set(v, "SLUICE_HANDLER_PATH=/outer");
    verb_set(v, "AWS_REGION");
    verb_assert(v, verb(v, "%s in.json", command), 2, "[us-east-1,sluice,/outer]");
    verb_assert(v, verb(v, "%s --handler-path /own --function f in.json", command), 2, "[us-east-1,f,/own]");
    verb_set(v, "AWS_DEFAULT_REGION=eu-west-1");
    verb_set(v, "AWS_LAMBDA_FUNCTION_NAME=named");
    verb_assert(v, verb(v, "%s in.json", command), 2, "[eu-west-1,named,/outer]");
    verb_set(v, "AWS_REGION=ap-south-1");
    verb_assert(v, verb(v, "%s in.json", command), 2, "[ap-south-1,named,/outer]");
}

/* ---- Kinesis ---- */

static void a_stream_of_kinesis_has_filters_of_its_data(void **state)
{
    struct verbs *v = *state;
    static const char change[] =
        "{\"awsRegion\":\"us-east-1\",\"eventID\":\"e1\",\"eventName\":\"INSERT\",\"userIdentity\":null,"
        "\"recordFormat\":\"application/json\",\"tableName\":\"orders\",\"dynamodb\":{"
        "\"ApproximateCreationDateTime\":1573689197000,\"Keys\":{\"PK\":{\"S\":\"k1\"}},\"NewImage\":{\"PK\":"
        "{"
        "\"S\":\"k1\"},\"word\":{\"S\":\"w\"}},\"SizeBytes\":10},\"eventSource\":\"aws:dynamodb\"}";
    char data[2 * sizeof(change)];
    data[sl_base64_encode_to(sl_span_str(change), data)] = '\0';
    verb_write(
        v, "kinesis.json",
        json_printf(
            "{'Records':[{'kinesis':{'kinesisSchemaVersion':'1.0','partitionKey':'p','sequenceNumber':'1',"
            "'data':'%s','approximateArrivalTimestamp':1573689197},'eventSource':'aws:kinesis',"
            "'eventVersion':'1.0','eventID':'shardId-000000000000:1','eventName':'aws:kinesis:record',"
            "'awsRegion':'us-east-1','eventSourceARN':'arn:aws:kinesis:us-east-1:123456789012:stream/s'}]}",
            data));
    static const struct {
        const char *filter;
        int status;
        const char *text;
    } cases[] = {
        {"{'data':{'eventName':['INSERT']}}", 0, "handled                1"},
        {"{'data':{'eventName':['REMOVE']}}", 0, "filtered out 1"},
        {"{'eventName':['INSERT']}", 2, "a mapping of a Kinesis stream filters on \"data\" alone"},
        {"{'data':{'eventName':['INSERT']},'partitionKey':['p']}", 2, "filters on \"data\" alone"},
        {"{'data':['x']}", 2, "filters on \"data\" alone"},
        {"{'data':{'eventName':['insert']}}", 0, "note: --filter: "},
        {"{'data'", 2, "--filter: Invalid filter pattern definition"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        verb_assert(v, verb(v, "replay --filter '%s' kinesis.json", json(cases[i].filter)), cases[i].status,
                    cases[i].text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (verbs_is_bootstrap(argc, argv))
        return sl_start(argv[0], environ);
    verbs_link_bootstrap();
    const struct CMUnitTest tests[] = {
        TEST(each_operation_fails_once),
        TEST(a_full_disk_is_told_of_each_output),
        TEST(a_folder_gets_an_object_for_each_batch),
        TEST(the_trace_is_whole_when_the_input_changes),
        TEST(a_signal_leaves_no_folder_and_no_process),
        TEST(retries_without_end_are_explained_once),
        TEST(what_contradicts_itself_is_refused),
        TEST(a_function_has_a_region_and_its_plugins),
        TEST(a_stream_of_kinesis_has_filters_of_its_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
