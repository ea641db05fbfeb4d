/* `sluice redrive` of files, folders and buckets: every message has one outcome, each record goes through its
 * route once, what failed is named with its place; and records that are read from the stream. */
#include "tests/support/disk_fault.h"
#include "tests/support/fake_s3.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include "base/gzip.h"
#include "runtime/api/client.h"
#include "runtime/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define ARN(region) "arn:aws:dynamodb:" region ":123456789012:table/orders/stream/2026-01-01T00:00:00.000"
#define STREAM      ARN("us-east-1")
#define CONFIG                                                                                               \
    "{'report_batch_item_failures':true,'routes':[{'name':'say','handler':'notify','to':'jsonl:said.jsonl'," \
    "'message':'{PK}%s'},{'name':'all','handler':'notify','to':'jsonl:all.jsonl','message':'{PK}'}]}"

static int set_up(void **state)
{
    struct verbs *v = verbs_new();
    *state = v;
    verb_set(v, "AWS_MAX_ATTEMPTS=1");
    verb_write(v, "sluice.json", json_printf(CONFIG, "{word}"));
    return 0;
}

static int tear_down(void **state)
{
    verbs_destroy(*state);
    return 0;
}

/* ---- messages ---- */

/* A change of item `item` with the sequence number n. */
static const char *change(const char *item, unsigned long n, const char *members)
{
    return json_printf(
        "{'eventID':'%lu','eventName':'INSERT','eventVersion':'1.1','eventSource':'aws:dynamodb',"
        "'awsRegion':'us-east-1','dynamodb':{'ApproximateCreationDateTime':1795208640,"
        "'Keys':{'PK':{'S':'%s'}},'NewImage':{'PK':{'S':'%s'}%s},'SequenceNumber':'%lu',"
        "'SizeBytes':9,'StreamViewType':'NEW_IMAGE'}}",
        n, item, item, members, n);
}

#define GOOD ",'word':{'S':'w'}"

static const char *parked(const char *route, const char *arn, const char *record)
{
    return json_printf(
        "{'sluiceParked':1,'route':'%s','code':'MissingAttribute','streamArn':'%s','record':%s}", route, arn,
        record);
}

static const char *said(struct verbs *v)
{
    static char text[8192];
    size_t n = 0;
    for (const char *at = verb_read(v, "said.jsonl"); *at; at += strcspn(at, "\n") + 1)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s ", (int)strcspn(at + 1, "\""), at + 1);
    text[n] = '\0';
    return text;
}

static void assert_told(struct verbs *v, const char *text)
{
    if (!strstr(verb_err(v), text) && !strstr(verb_out(v), text))
        fail_msg("no \"%s\":\n%s%s", text, verb_out(v), verb_err(v));
}

/* ---- pointers ---- */

/* A shard of records 1001 to 1009, three a page, with an empty page before each. */
struct shard {
    const char *refusal;   /* of GetRecords */
    bool is_endless;       /* pages without a record, and no last one */
    unsigned asked;        /* iterators that were asked for */
    struct verbs *stopped; /* told to end by the second read; NULL: nobody is */
    char body[8192];
};

static void read_stream(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct shard *s = arg;
    const char *at = strstr(request->body.ptr, "\"ShardIterator\":\"");
    unsigned page = at ? (unsigned)strtoul(at + 17, NULL, 10) : 0;
    reply->status = 200;
    if (!at) {
        s->asked++;
        snprintf(s->body, sizeof(s->body), "{\"ShardIterator\":\"0\"}");
    } else if (s->refusal) {
        reply->status = 400;
        snprintf(s->body, sizeof(s->body),
                 "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"message\":\"by script\"}",
                 s->refusal);
    } else {
        size_t n = (size_t)snprintf(s->body, sizeof(s->body), "{\"Records\":[");
        page = s->is_endless ? 0 : page;
        for (unsigned i = 0; i < 3 && page % 2; i++)
            n += (size_t)snprintf(s->body + n, sizeof(s->body) - n, "%s%s", i ? "," : "",
                                  change("p", 1001 + page / 2 * 3 + i, GOOD));
        n += (size_t)snprintf(s->body + n, sizeof(s->body) - n, "]");
        if (page < 5)
            n +=
                (size_t)snprintf(s->body + n, sizeof(s->body) - n, ",\"NextShardIterator\":\"%u\"", page + 1);
        snprintf(s->body + n, sizeof(s->body) - n, "}");
        if (page == 2 && s->stopped)
            verb_signal(s->stopped, SIGTERM);
    }
    reply->body = sl_span_str(s->body);
}

static const char *pointer(const char *arn, const char *first, const char *last, const char *records)
{
    return json_printf("{'requestContext':{'condition':'RetryAttemptsExhausted'},'timestamp':"
                       "'2026-11-20T21:05:00.000Z','DDBStreamBatchInfo':{'shardId':'shardId-1',"
                       "'startSequenceNumber':'%s','endSequenceNumber':'%s','streamArn':'%s'%s%s}}",
                       first, last, arn, records[0] ? ",'batchSize':" : "", records);
}

static void records_that_are_in_the_stream_are_read_from_it(void **state)
{
    struct verbs *v = *state;
    static const struct {
        const char *first, *last, *records;
        const char *refusal;
        int exits;
        const char *told;
    } cases[] = {
        {"1001", "1002", "2", NULL, 0, "records=2"},
        {"1003", "1009", "7", NULL, 0, "records=7"},
        {"1002", "1004", "", NULL, 0, "records=3"},
        {"1004", "1004", "1", NULL, 0, "done"},
        {"1003", "1005", "2", NULL, 1,
         "names 2 records, and the stream has 3 from 1003 to 1005: the mapping's"},
        {"1003", "1005", "4", NULL, 1, "the stream has 3 of the 4 records from 1003 to 1005"},
        {"999", "1002", "3", NULL, 1, "the stream has 2 of the 3 records from 999 to 1002"},
        {"1009", "1010", "1", NULL, 1, "the stream has 1 of the 1 records from 1009 to 1010"},
        {"1000", "1000", "1", NULL, 1, "the stream has 0 of the 1 records from 1000 to 1000"},
        {"1001", "1002", "2", "TrimmedDataAccessException", 1,
         "are gone from the stream, which keeps them 24"},
        {"1001", "1002", "2", "ResourceNotFoundException", 1, "code=ResourceNotFoundException"},
        {"1001", "1002", "2", "AccessDeniedException", 1, "code=AccessDeniedException"},
    };
    struct shard shard = {.asked = 0};
    struct scripted_server *server = scripted_server_start(read_stream, &shard);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        shard.refusal = cases[i].refusal;
        /* Another message beside it is not held up. */
        verb_input(v, json_printf("%s %s", pointer(STREAM, cases[i].first, cases[i].last, cases[i].records),
                                  parked("all", STREAM, change("q", 1, ""))));
        verb_assert(v, verb(v, "redrive --endpoint-url %s -", scripted_server_url(server)), cases[i].exits,
                    cases[i].told);
        assert_told(v, cases[i].exits ? "1 of 2 messages are done" : "2 of 2 messages are done");
    }
    assert_string_equal(said(v), "pw pw pw pw pw pw pw pw pw pw pw pw pw ");
    scripted_server_stop(server);
}

static void streams_of_several_regions_are_read(void **state)
{
    struct verbs *v = *state;
    struct shard shard = {.asked = 0};
    struct scripted_server *server = scripted_server_start(read_stream, &shard);
    const char *mail =
        json_printf("%s%s%s", pointer(STREAM, "1001", "1001", "1"), pointer(STREAM, "1002", "1002", "1"),
                    pointer(ARN("eu-west-1"), "1003", "1003", "1"));
    verb_input(v, mail);
    verb_assert(v, verb(v, "redrive --endpoint-url %s -", scripted_server_url(server)), 0, "3 of 3");
    assert_non_null(strstr(scripted_server_request(server, 0)->head, "/us-east-1/dynamodb/"));
    size_t n = scripted_server_requests(server);
    assert_non_null(strstr(scripted_server_request(server, n - 1)->head, "/eu-west-1/dynamodb/"));
    verb_assert(v, verb(v, "redrive --region eu-central-1 --endpoint-url %s -", scripted_server_url(server)),
                0, "3 of 3");
    for (size_t i = n; i < scripted_server_requests(server); i++)
        assert_non_null(strstr(scripted_server_request(server, i)->head, "/eu-central-1/dynamodb/"));
    /* A shard without an end: it is given up at some time. */
    shard.is_endless = true;
    verb_input(v, pointer(STREAM, "1003", "1003", "1"));
    verb_assert(v, verb(v, "redrive --endpoint-url %s -", scripted_server_url(server)), 1,
                "the stream has 0 of the 1 records");
    shard.is_endless = false;
    shard.stopped = v;
    verb_input(v, pointer(STREAM, "1001", "1009", "9"));
    verb_assert(v, verb(v, "redrive --endpoint-url %s -", scripted_server_url(server)), 1, "interrupted");
    assert_told(v, "not begun");
    verb_set(v, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=ftp://nowhere");
    verb_assert(v, verb(v, "redrive -"), 1, "0 of 1 messages are done");
    assert_told(v, "ftp://nowhere");
    scripted_server_stop(server);
}

/* ---- routes ---- */

/* More sandboxes than there are at a time; and the route of a letter decides, whatever is beside it. */
static void each_record_goes_through_its_route(void **state)
{
    struct verbs *v = *state;
    char *config = NULL, *mail = NULL;
    size_t len;
    FILE *c = open_memstream(&config, &len), *m = open_memstream(&mail, &len);
    fprintf(c, "{'report_batch_item_failures':true,'routes':[");
    for (int i = 0; i < 18; i++) {
        fprintf(c, "%s{'name':'r%d','handler':'notify','to':'jsonl:said.jsonl','message':'r%d{PK}'}",
                i ? "," : "", i, i);
        fprintf(m, "%s\n", parked(json_printf("r%d", i), STREAM, change("a", 10 + (unsigned)i, "")));
    }
    fprintf(c, "]}");
    for (int i = 0; i < 2; i++)
        fprintf(m, "%s\n%s\n", parked("r17", i ? ARN("eu-west-1") : "", change("b", 40, "")),
                parked("gone", STREAM, change("c", 50, "")));
    fclose(c);
    fclose(m);
    verb_write(v, "sluice.json", config);
    verb_input(v, mail);
    verb_assert(v, verb(v, "redrive --trace trace.jsonl -"), 1, "20 of 22 messages are done");
    assert_told(v, "sluice.json has no route \"gone\", which parked this record");
    assert_told(v, "code              2   NoRoute");
    assert_string_equal(said(v), "r0a r1a r2a r3a r4a r5a r6a r7a r8a r9a r10a r11a r12a r13a r14a r15a r16a "
                                 "r17a r17b r17b ");
    /* One file for each sandbox. */
    assert_true(verb_read(v, "trace.jsonl")[0] && verb_read(v, "trace.jsonl.19")[0]);
    free(config);
    free(mail);
}

/* What is parked without a sequence number (a backfill's item), with an ARN that cannot be one, of Kinesis.
 */
static void records_of_all_kinds_are_run(void **state)
{
    struct verbs *v = *state;
    const char *strange = parked("all", "arn:aws:dynamodb:../../x:1:table/t", change("y", 5, ""));
    /* A change of the item k, in base64. */
    const char *kinesis =
        json_printf("{'Records':[{'kinesis':{'sequenceNumber':'1','partitionKey':'p','data':'%s',"
                    "'approximateArrivalTimestamp':1},'eventSource':'aws:kinesis','eventID':'shardId-0:1',"
                    "'eventSourceARN':'arn:aws:kinesis:us-east-1:123456789012:stream/s'}]}",
                    "eyJldmVudElEIjoiMSIsImV2ZW50TmFtZSI6IklOU0VSVCIsInRhYmxlTmFtZSI6InR0IiwiZHluYW1vZGIiOnsi"
                    "S2V5cyI6eyJQSyI6"
                    "eyJTIjoiayJ9fSwiQXBwcm94aW1hdGVDcmVhdGlvbkRhdGVUaW1lIjoxNzk1MjA4NjQwMTIzfX0=");
    verb_input(v, json_printf("[%s,%s]{'Records':[%s,%s]}%s", strange, parked("all", "", change("x", 5, "")),
                              change("z", 6, ""), change("z", 6, ""), kinesis));
    verb_assert(v, verb(v, "redrive --route all -"), 0, "3 of 3 messages are done");
    size_t n = 0;
    for (const char *at = verb_read(v, "all.jsonl"); *at; at += strcspn(at, "\n") + 1)
        n++;
    assert_int_equal(n, 5);
}

static void an_items_records_keep_their_order(void **state)
{
    struct verbs *v = *state;
    char *mail = NULL;
    size_t len;
    FILE *m = open_memstream(&mail, &len);
    for (unsigned i = 30; i > 0; i--)
        fprintf(
            m, "%s\n",
            parked("say", STREAM, change(i % 2 ? "a" : "b", 5 * i, json_printf(",'word':{'S':'%u'}", i))));
    for (unsigned i = 0; i < 2; i++) /* the same record twice more, each message by itself */
        fprintf(m, "%s\n", parked("say", STREAM, change("a", 500, ",'word':{'S':'99'}")));
    fclose(m);
    verb_input(v, mail);
    verb_assert(v, verb(v, "redrive --parallel 3 -"), 0, "32 of 32");
    unsigned last[2] = {0, 0}, n = 0;
    for (const char *at = said(v); *at; at = strchr(at, ' ') + 1, n++) {
        unsigned word = (unsigned)strtoul(at + 1, NULL, 10);
        assert_true(word >= last[*at == 'b']);
        last[*at == 'b'] = word;
    }
    assert_int_equal(n, 32);
    free(mail);
}

/* A function that dies of the item "x", and fails all else. */
static int answer_badly(void)
{
    struct sl_runtime *rt;
    struct sl_runtime_event event;
    if (sl_runtime_open(getenv("AWS_LAMBDA_RUNTIME_API"), "bad", &rt, NULL) != SL_OK)
        return 1;
    while (sl_runtime_next(rt, &event, NULL) == SL_OK) {
        if (strstr(event.payload.ptr, "\"S\":\"x\""))
            _exit(3);
        if (sl_runtime_fail(rt, event.request_id, "Test.Bad", SL_LIT("by script"), NULL) != SL_OK)
            return 1;
    }
    return 0;
}

static void a_function_that_fails_is_named(void **state)
{
    struct verbs *v = *state;
    verb_input(v, json_printf("%s%s%s", parked("say", STREAM, change("a", 1, GOOD)),
                              parked("say", STREAM, change("x", 2, GOOD)),
                              parked("say", STREAM, change("c", 3, GOOD))));
    verb_write(v, "bad", "");
    verb_assert(v, verb(v, "redrive -"), 1, "0 of 3 messages are done");
    assert_told(v, "failed      -:1  route=say  code=Test.Bad  key={\"PK\":{\"S\":\"a\"}}\n");
    assert_told(v, "failed      -:1  route=say  code=Runtime.ExitError  key={\"PK\":{\"S\":\"x\"}}\n");
    unlink(json_printf("%s/bad", verbs_folder(v)));
    verb_input(v, json_printf("%s%s%s%s", parked("say", STREAM, change("a", 1, "")),
                              parked("say", STREAM, change("b", 2, "")),
                              parked("say", STREAM, change("c", 3, GOOD)),
                              parked("say", STREAM, change("d", 4, ""))));
    verb_assert(v, verb(v, "redrive --parallel 10 -"), 1, "code              3   MissingAttribute\n");
    assert_string_equal(said(v), "cw ");
}

/* An event's letter is done when all of its records are. */
static void what_failed_again_is_named(void **state)
{
    struct verbs *v = *state;
    verb_input(v, json_printf("{'Records':[%s,%s,%s]}{'Records':[%s]}", change("a", 1, GOOD),
                              change("b", 2, ""), change("c", 3, GOOD), change("d", 4, GOOD)));
    verb_assert(v, verb(v, "redrive --trace trace.jsonl --route say -"), 1, "1 of 2 messages are done");
    assert_told(v,
                "failed      -:1  route=event  code=MissingAttribute  key={\"PK\":{\"S\":\"a\"}}  records=3");
    assert_string_equal(said(v), "aw cw dw ");
    assert_non_null(strstr(verb_read(v, "trace.jsonl"), "\"records\":4"));
    /* The configuration is at fault, not the messages. */
    verb_write(v, "sluice.json", json_printf(CONFIG, "{a|b}"));
    verb_assert(v, verb(v, "redrive --route say -"), 1,
                "sluice redrive: sluice.json (its route \"say\" alone): $.routes[0].message");
    assert_told(v, "not begun         2");
    verb_assert(v, verb(v, "redrive -"), 1, "sluice redrive: sluice.json: $.routes[0].message");
    verb_write(v, "sluice.json", "{'routes':[{'name':'say'}]}");
    verb_assert(v, verb(v, "redrive --route say -"), 2, "sluice.json (its route \"say\" alone)");
    verb_assert(v, verb(v, "redrive --route none -"), 2, "sluice.json has no route \"none\"");
}

/* ---- files ---- */

static void a_text_is_read_value_by_value(void **state)
{
    struct verbs *v = *state;
    const char *good = parked("say", STREAM, change("a", 1, GOOD));
    char *text = NULL;
    size_t len, at;
    FILE *f = open_memstream(&text, &len);
    /* Values of several pieces of what is read at a time. */
    fprintf(f, "\t%s\r\n{broken\n\n%s\n{\"a\":\n1}\n", good, good);
    fprintf(f, "%s\n", parked("say", STREAM, change("b", 2, json_printf(GOOD ",'x':{'S':'%0600000d'}", 0))));
    fprintf(f, "%s", good);
    fclose(f);
    verb_write(v, "mixed.jsonl", text);
    const char *lines[] = {"done        mixed.jsonl:1 ", "unreadable  mixed.jsonl:2 ",
                           "done        mixed.jsonl:4 ", "unreadable  mixed.jsonl:5 ",
                           "done        mixed.jsonl:7 ", "done        mixed.jsonl:8 "};
    verb_assert(v, verb(v, "redrive mixed.jsonl"), 4, "4 of 6 messages are done");
    for (at = 0; at < 6; at++)
        assert_told(v, lines[at]);
    struct sl_buffer packed;
    sl_buffer_init(&packed, 1 << 24);
    struct sl_span plain = sl_span_str(verb_read(v, "mixed.jsonl"));
    sl_gzip_add(&packed, &plain, 1, 6);
    char *path = NULL;
    assert_true(asprintf(&path, "%s/mixed.gz", verbs_folder(v)) > 0);
    static const struct {
        int cut, exits;
        const char *told;
    } cases[] = {{0, 4, "4 of 6 messages are done"}, {1, 1, "sluice redrive: mixed.gz: bad gzip"}};
    for (size_t i = 0; i < 2; i++) {
        FILE *out = fopen(path, "w");
        assert_int_equal(fwrite(packed.ptr, 1, packed.len - (size_t)cases[i].cut, out),
                         packed.len - (size_t)cases[i].cut);
        fclose(out);
        verb_assert(v, verb(v, "redrive mixed.gz"), cases[i].exits, cases[i].told);
    }
    /* A value that never ends is one bad message, whatever is behind it. */
    verb_input(v, "[{\"a\":1},\n{\"b\":2},\n");
    verb_assert(v, verb(v, "redrive -"), 4, "unreadable  -:1 ");
    free(path);
    free(text);
    sl_buffer_clean_up(&packed);
}

/* ---- folders and buckets ---- */

static void put(struct verbs *v, const char *name, struct sl_span bytes)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", verbs_folder(v), name) > 0);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.ptr ? bytes.ptr : "", 1, bytes.len, out), bytes.len);
    fclose(out);
    free(path);
}

static void make_folder(struct verbs *v, const char *name)
{
    assert_int_equal(mkdir(json_printf("%s/%s", verbs_folder(v), name), 0777), 0);
}

static void objects_that_are_done_are_removed(void **state)
{
    struct verbs *v = *state;
    struct sl_buffer packed;
    sl_buffer_init(&packed, 1 << 20);
    make_folder(v, "mail");
    struct sl_span plain = sl_span_str(parked("say", STREAM, change("z", 9, GOOD)));
    sl_gzip_add(&packed, &plain, 1, 6);
    put(v, "mail/1.gz", sl_buffer_span(&packed));
    packed.len -= 9;
    put(v, "mail/2.gz", sl_buffer_span(&packed));
    put(v, "mail/3.json", sl_span_str(""));
    for (unsigned i = 0; i < 230; i++)
        put(v, json_printf("mail/m%u", i), sl_span_str(parked("say", STREAM, change("i", i + 10, GOOD))));
    put(v, "mail/x.json", sl_span_str(parked("say", STREAM, change("x", 5, ""))));
    verb_assert(v, verb(v, "redrive --limit 1 mail"), 4, "1 of 3 messages are done");
    assert_true(verb_read(v, "mail/1.gz")[0]);
    unlink(json_printf("%s/said.jsonl", verbs_folder(v)));
    verb_assert(v, verb(v, "redrive --delete-done mail"), 1, "removed         231\n");
    assert_told(v, "unreadable  2.gz  code=CannotRead  bad gzip at byte ");
    assert_told(v, "unreadable  3.json  code=");
    assert_told(v, "failed      x.json  route=say  code=MissingAttribute");
    verb_write(v, "sluice.json", json_printf(CONFIG, ""));
    verb_assert(v, verb(v, "redrive --delete-done file:mail"), 4, "1 of 3 messages are done");
    unsigned n = 0;
    for (const char *at = said(v); *at; at = strchr(at, ' ') + 1)
        n++;
    assert_int_equal(n, 232);
    verb_assert(v, verb(v, "redrive file:nowhere mail"), 2, "nowhere: cannot be opened as a folder");
    sl_buffer_clean_up(&packed);
}

struct bucket {
    struct fake_s3 *s3;
    const char *replaced; /* by somebody else after it was read */
    const char *refused;  /* GETs of this one fail for now */
    bool is_down;
};

static void answer_bucket(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct bucket *b = arg;
    bool is_get = strcmp(request->method, "GET") == 0 && !strchr(request->path, '?');
    if (b->is_down || (is_get && b->refused && strstr(request->path, b->refused))) {
        reply->status = b->is_down ? 403 : 503;
        reply->body = SL_LIT("<Error><Code>Refused</Code><Message>by script</Message></Error>");
        return;
    }
    fake_s3_answer(b->s3, request, reply);
    if (is_get && b->replaced && strstr(request->path, b->replaced)) {
        static char body[4096];
        snprintf(body, sizeof(body), "%.*s", SL_ARG(reply->body));
        reply->body = sl_span_str(body);
        fake_s3_put(b->s3, json_printf("bucket/%s", b->replaced), SL_LIT("of somebody else"));
    }
}

static void a_bucket_is_emptied_of_what_is_done(void **state)
{
    struct verbs *v = *state;
    struct bucket b = {.s3 = fake_s3_open()};
    struct scripted_server *server = scripted_server_start(answer_bucket, &b);
    verb_set(v, json_printf("AWS_ENDPOINT_URL=%s", scripted_server_url(server)));
    for (unsigned i = 0; i < 5; i++)
        fake_s3_put(b.s3, json_printf("bucket/parked/%u", i),
                    sl_span_str(parked("say", STREAM, change("i", i + 1, GOOD))));
    fake_s3_put(b.s3, "bucket/parked/empty", SL_LIT(""));
    fake_s3_put(b.s3, "bucket/other", SL_LIT("not asked for"));
    b.is_down = true;
    verb_assert(v, verb(v, "redrive --delete-done s3://bucket/parked"), 1, "Refused");
    b.is_down = false;
    b.refused = "parked/3";
    verb_assert(v, verb(v, "redrive --delete-done s3://bucket/parked"), 1, "Refused");
    assert_string_equal(said(v), "");
    b.refused = NULL;
    b.replaced = "parked/2";
    verb_assert(v, verb(v, "redrive --delete-done s3://bucket/parked"), 1, "removed           4\n");
    assert_told(v, "2  route=say  key={\"PK\":{\"S\":\"i\"}}  not removed: PreconditionFailed");
    assert_string_equal(said(v), "iw iw iw iw iw ");
    assert_true(sl_span_is(fake_s3_object(b.s3, "bucket/parked/2"), "of somebody else"));
    assert_non_null(fake_s3_object(b.s3, "bucket/other").ptr);
    assert_null(fake_s3_object(b.s3, "bucket/parked/4").ptr);
    assert_null(fake_s3_fault(b.s3));
    scripted_server_stop(server);
    fake_s3_close(b.s3);
}

/* Whatever fails on this machine: what was not done is still there, and the next run does it. */
static void every_fault_of_the_system_loses_nothing(void **state)
{
    struct verbs *v = *state;
    static const int errors[] = {EIO, EMFILE, ENOSPC};
    const char *mail = parked("say", STREAM, change("a", 3, GOOD));
    bool came = true;
    make_folder(v, "mail");
    for (int n = 1; came; n++) {
        unlink(json_printf("%s/said.jsonl", verbs_folder(v)));
        put(v, "mail/0", sl_span_str(mail));
        verb_fault(v, n, errors[n % 3], NULL);
        int status = verb(v, "redrive --delete-done mail");
        came = disk_fault_came();
        bool is_left = verb_read(v, "mail/0")[0];
        bool is_told =
            verb_err(v)[0] || strstr(verb_out(v), "not removed") || strstr(verb_out(v), "failed  ");
        if (status < 0 || (status == 0 && is_left) || (status && !is_told))
            fail_msg("%s fails: %d, %s\n%s%s", disk_fault->came, status, is_left ? "left" : "removed",
                     verb_out(v), verb_err(v));
        if (is_left)
            verb_assert(v, verb(v, "redrive --delete-done mail"), 0, "");
        if (strncmp(said(v), "aw ", 3) != 0)
            fail_msg("%s fails, and a message is lost", disk_fault->came);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (verbs_is_bootstrap(argc, argv))
        return access("bad", F_OK) == 0 ? answer_badly() : sl_start(argv[0], environ);
    verbs_link_bootstrap();
    const struct CMUnitTest tests[] = {
        TEST(records_that_are_in_the_stream_are_read_from_it),
        TEST(streams_of_several_regions_are_read),
        TEST(each_record_goes_through_its_route),
        TEST(records_of_all_kinds_are_run),
        TEST(a_function_that_fails_is_named),
        TEST(an_items_records_keep_their_order),
        TEST(what_failed_again_is_named),
        TEST(a_text_is_read_value_by_value),
        TEST(objects_that_are_done_are_removed),
        TEST(a_bucket_is_emptied_of_what_is_done),
        TEST(every_fault_of_the_system_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
