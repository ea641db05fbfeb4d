#include "tests/support/lies.h"

#include <stdlib.h>
#include <string.h>

#define TAKEN(id)  "{'Id':'" id "','MessageId':'m'}"
#define FAILED(id) "{'Id':'" id "','Code':'InternalError','Message':'x','SenderFault':false}"
#define MEMBER(id) "<member><Id>" id "</Id><MessageId>m</MessageId></member>"
#define XML(taken, failed)                                                                                   \
    "<PublishBatchResponse><PublishBatchResult><Successful>" taken "</Successful><Failed>" failed            \
    "</Failed></PublishBatchResult></PublishBatchResponse>"
#define XML_FAILED(id)                                                                                       \
    "<member><Id>" id "</Id><Code>InternalError</Code><SenderFault>false</SenderFault></member>"
#define WRITE(key) "{'PutRequest':{'Item':{'PK':{'S':'" key "'}}}}"
#define ITEM(key)  "{'PK':{'S':'" key "'}}"
#define CANCELLED(reasons)                                                                                   \
    "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException','message':'x',"               \
    "'CancellationReasons':" reasons "}"
#define REFUSED(rest)                                                                                        \
    "{'__type':'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException','message':'x'" rest "}"
#define FAILED_ITEM(item) "{'Code':'ConditionalCheckFailed','Message':'x','Item':" item "}"
#define NONE              "{'Code':'None'}"

#define ENTRY(key, size) "<Contents><Key>" key "</Key><ETag>x</ETag><Size>" size "</Size></Contents>"
#define LIST(count, more, rest)                                                                              \
    "<ListBucketResult><KeyCount>" count "</KeyCount><EncodingType>url</EncodingType><IsTruncated>" more     \
    "</IsTruncated>" rest "</ListBucketResult>"
#define VERSION(key, id, latest, size)                                                                       \
    "<Version><Key>" key "</Key><VersionId>" id "</VersionId><IsLatest>" latest "</IsLatest><Size>" size     \
    "</Size></Version>"
#define VERSIONS(more, rest)                                                                                 \
    "<ListVersionsResult><IsTruncated>" more "</IsTruncated>" rest "</ListVersionsResult>"
#define DID(id, status, rest)                                                                                \
    "{'index':{'_id':'" id "','status':" status ",'_seq_no':1,'_primary_term':1," rest "}}"
#define DONE(id)          DID(id, "201", "'result':'created'")
#define BULK(a, b, c)     "{'items':[" a "," b "," c "]}"
#define GONE(id)          "{'_id':'" id "','found':false}"
#define FOUND(id, rest)   "{'_id':'" id "','found':true" rest "}"
#define PAGE(items, rest) "{'Items':[" items "],'Count':1,'ScannedCount':1" rest "}"
#define SAID(code)        "<Error><Code>" code "</Code><Message>x</Message></Error>"

const struct lies_special lies_specials[] = {
    {"SendMessageBatch", 200, "{'Successful':[" TAKEN("0") "],'Failed':[]}", {true}, false},
    {"SendMessageBatch",
     200,
     "{'Successful':[" TAKEN("0") "," TAKEN("1") "," TAKEN("7") "]}",
     {true, true},
     false},
    {"SendMessageBatch", 200, "{'Successful':[" TAKEN("2") "," TAKEN("2") "," TAKEN("0") "]}", {true}, false},
    {"SendMessageBatch",
     200,
     "{'Successful':[" TAKEN("a") "," TAKEN("00") "," TAKEN("-1") "]}",
     {false},
     false},
    {"SendMessageBatch", 200, "{'Successful':[" TAKEN("18446744073709551616") "]}", {false}, false},
    {"SendMessageBatch",
     200,
     "{'Successful':[" TAKEN("0") "," TAKEN("1") "," TAKEN("2") "],'Failed':[" FAILED("1") "]}",
     {true, false, true},
     false},
    {"SendMessageBatch", 200, "{'Successful':[],'Failed':[" FAILED("0") "," FAILED("0") "]}", {false}, false},
    {"SendMessageBatch", 200, "{'Failed':[{'Id':'0','SenderFault':true}]}", {false}, false},
    {"SendMessageBatch", 200, "{'Failed':[{'Id':'9','Code':'x','SenderFault':true}]}", {false}, false},
    {"PublishBatch", 200, XML(MEMBER("0"), ""), {true}, false},
    {"PublishBatch", 200, XML(MEMBER("0") MEMBER("1") MEMBER("7"), ""), {true, true}, false},
    {"PublishBatch", 200, XML(MEMBER("1") MEMBER("1") MEMBER("2"), ""), {false, false, true}, false},
    {"PublishBatch",
     200,
     XML(MEMBER("0") MEMBER("1") MEMBER("2"), XML_FAILED("1")),
     {true, false, true},
     false},
    {"PublishBatch", 200, XML("<member><Id>0</Id></member>", ""), {false}, false},
    {"PublishBatch",
     200,
     "<PublishBatchResponse>" XML(MEMBER("0") MEMBER("1") MEMBER("2"), ""),
     {false},
     false},
    {"PublishBatch", 200, "<html>" XML(MEMBER("0") MEMBER("1") MEMBER("2"), "") "</html>", {false}, false},
    {"PublishBatch", 200, XML(MEMBER("0") MEMBER("1") MEMBER("2"), "") "<x>", {false}, false},
    {"PublishBatch",
     200,
     "<PublishBatchResponse><![CDATA[" XML(MEMBER("0"), "") "]]></PublishBatchResponse>",
     {false},
     false},
    {"PutEvents",
     200,
     "{'FailedEntryCount':1,'Entries':[{'EventId':'e'},{'EventId':'e'},{'EventId':'e'}]}",
     {false},
     false},
    {"PutEvents",
     200,
     "{'FailedEntryCount':0,'Entries':[{'EventId':'e','ErrorCode':'MalformedDetail'},{'EventId':'e'},"
     "{'EventId':'e'}]}",
     {false},
     false},
    {"PutEvents",
     200,
     "{'FailedEntryCount':0,'Entries':[{'ErrorCode':'MalformedDetail'},{'EventId':'e'},{'EventId':'e'}]}",
     {false},
     false},
    {"PutRecords",
     200,
     "{'FailedRecordCount':3,'Records':[{'SequenceNumber':'1'},{'SequenceNumber':'1'},"
     "{'SequenceNumber':'1'}]}",
     {false},
     false},
    {"PutRecords",
     200,
     "{'FailedRecordCount':0,'Records':[{'SequenceNumber':'1'},{'SequenceNumber':'1'}]}",
     {false},
     false},
    {"PutRecordBatch",
     200,
     "{'FailedPutCount':2,'RequestResponses':[{'RecordId':'1'},{'RecordId':'1'},{'RecordId':'1'}]}",
     {false},
     false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DONE("1")), {false}, false},
    {"Bulk", 200, BULK(DONE("1"), DONE("0"), DONE("2")), {false}, false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DONE("2") "," DONE("2")), {false}, false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DID("2", "201", "'result':'noop'")), {false}, false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DID("2", "200", "'result':'created'")), {false}, false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DID("2", "404", "'result':'not_found'")), {false}, false},
    {"Bulk",
     200,
     BULK(DONE("0"), DONE("1"), DID("2", "201", "'result':'created','error':{}")),
     {false},
     false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DID("2", "429", "'error':{'type':'x'}")), {true, true}, false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), DID("2", "503", "'error':{}")), {true, true}, false},
    {"Bulk", 200, BULK(DONE("0"), DONE("1"), "{'create':{'_id':'2','status':201}}"), {false}, false},
    {"MultiGet", 200, "{'docs':[" GONE("0") "," GONE("1") "," GONE("1") "]}", {false}, false},
    {"MultiGet", 200, "{'docs':[" GONE("0") "," GONE("1") "," FOUND("2", "") "]}", {false}, false},
    {"MultiGet",
     200,
     "{'docs':[" GONE("0") "," GONE("1") "," FOUND("2", ",'_seq_no':1,'_primary_term':1") "]}",
     {false},
     false},
    {"MultiGet",
     200,
     "{'docs':[" GONE("0") "," GONE("1") "," FOUND("2", ",'_seq_no':-1,'_primary_term':1,'_source':{}") "]}",
     {false},
     false},
    {"MultiGet",
     200,
     "{'docs':[" GONE("0") "," GONE("1") ",{'_id':'2','error':{'type':'x'}}]}",
     {false},
     false},
    {"GetAlias", 200, "{'other':{'aliases':{}}}", {false}, false},
    {"GetAlias", 200, "{'other':{'aliases':{'alias':{}}}}", {false}, false},
    {"GetQueueUrl", 200, "{'QueueUrl':'ftp://x/queue'}", {false}, false},
    {"GetQueueUrl", 200, "{'QueueUrl':'https://sqs/a b'}", {false}, false},
    {"GetQueueUrl", 200, "{'QueueUrl':'https://sqs/\\u0000'}", {false}, false},
    {"GetQueueUrl", 200, "{'QueueUrl':'https://sqs/\\r\\nx: y'}", {false}, false},
    {"BatchWriteItem", 200, "{'UnprocessedItems':{'foreign':[" WRITE("0") "]}}", {false}, false},
    {"BatchWriteItem", 200, "{'UnprocessedItems':{'tbl':[" WRITE("9") "]}}", {false}, false},
    {"BatchWriteItem", 200, "{'UnprocessedItems':{'tbl':[" WRITE("0") "," WRITE("0") "]}}", {false}, false},
    {"BatchWriteItem",
     200,
     "{'UnprocessedItems':{'tbl':[{'DeleteRequest':{'Key':" ITEM("0") "}}]}}",
     {false},
     false},
    {"BatchWriteItem", 200, "{'UnprocessedItems':{'tbl':[5]}}", {false}, false},
    {"BatchWriteItem", 200, "{'UnprocessedItems':{'tbl':{}}}", {false}, false},
    {"BatchGetItem", 200, "{'Responses':{'tbl':[" ITEM("9") "]},'UnprocessedKeys':{}}", {false}, false},
    {"BatchGetItem", 200, "{'Responses':{'other':[" ITEM("0") "]},'UnprocessedKeys':{}}", {false}, false},
    {"BatchGetItem",
     200,
     "{'Responses':{'tbl':[" ITEM("0") "," ITEM("0") "]},'UnprocessedKeys':{}}",
     {false},
     false},
    {"BatchGetItem",
     200,
     "{'Responses':{'tbl':[" ITEM("0") "]},'UnprocessedKeys':{'tbl':{'Keys':[" ITEM("0") "]}}}",
     {false},
     false},
    {"BatchGetItem",
     200,
     "{'Responses':{'tbl':[]},'UnprocessedKeys':{'tbl':{'Keys':[" ITEM("9") "]}}}",
     {false},
     false},
    {"BatchGetItem",
     200,
     "{'Responses':{'tbl':[]},'UnprocessedKeys':{'tbl':[" ITEM("0") "]}}",
     {false},
     false},
    {"ListObjectsV2", 200, LIST("2", "false", ENTRY("p/b", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("p/b", "1") ENTRY("p/c", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("0", "true", ""), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "maybe", ENTRY("p/b", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "", ENTRY("p/b", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("q/b", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("p/a", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("2", "false", ENTRY("p/c", "1") ENTRY("p/b", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("2", "false", ENTRY("p/b", "1") ENTRY("p/b", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("p/b", "")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("p/b", "-1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("", "1")), {false}, false},
    {"ListObjectsV2", 200, LIST("1", "false", ENTRY("p/b", "1")) "x", {false}, false},
    {"ListObjectsV2", 200, "<x>" LIST("1", "false", ENTRY("p/b", "1")) "</x>", {false}, false},
    {"ListObjectsV2", 200, LIST("99999", "false", ENTRY("p/b", "1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("maybe", VERSION("k", "v", "true", "1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("true", VERSION("k", "v", "true", "1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("false", VERSION("", "v", "true", "1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("false", VERSION("k", "", "true", "1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("false", VERSION("k", "v", "", "1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("false", VERSION("k", "v", "true", "-1")), {false}, false},
    {"ListObjectVersions", 200, VERSIONS("false", VERSION("k", "v", "true", "1")) "x", {false}, false},
    {"ListObjectVersions", 200, "<x>" VERSIONS("false", "") "</x>", {false}, false},
    {"ListObjectVersions", 200, VERSIONS("false", "<Name>other</Name>"), {false}, false},
    {"ListObjectVersions",
     200,
     VERSIONS("false", "<DeleteMarker><Key>k</Key></DeleteMarker>"),
     {false},
     false},
    {"ListObjectVersions", 200, LIST("1", "false", ENTRY("k", "1")), {false}, false},
    {"GetObject", 412, SAID("PreconditionFailed"), {false}, false},
    {"GetObject", 416, SAID("InvalidRange"), {false}, false},
    {"GetObject",
     416,
     "<Error><Code>InvalidRange</Code><ActualObjectSize>1</ActualObjectSize></Error>",
     {false},
     false},
    {"Scan", 200, PAGE(ITEM("0"), ",'Items':[]"), {false}, false},
    {"Scan", 200, PAGE(ITEM("0"), ",'Count':1"), {false}, false},
    {"Scan", 200, PAGE(ITEM("0"), ",'LastEvaluatedKey':null"), {false}, false},
    {"Scan",
     200,
     PAGE(ITEM("0"), ",'LastEvaluatedKey':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'1'}}"),
     {false},
     false},
    {"Scan", 200, PAGE(ITEM("0"), ",'LastEvaluatedKey':{'a':{'BOOL':true}}"), {false}, false},
    {"Scan", 200, PAGE(ITEM("0"), ",'ConsumedCapacity':5"), {false}, false},
    {"Scan", 200, PAGE(ITEM("0"), ",'message':'x'"), {false}, false},
    {"Scan", 200, PAGE(ITEM("0"), ",'X':1}"), {false}, false},
    {"Scan", 200, PAGE("{}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{'S':'x','N':'1'}}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{'X':'x'}}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{}}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{'NULL':false}}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{'N':'1e999'}}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{'SS':[]}}", ""), {false}, false},
    {"Scan", 200, PAGE("{'a':{'SS':[ ]}}", ""), {false}, false},
    {"Scan", 200, PAGE(ITEM("0") ",", ""), {false}, false},
    {"Scan", 200, "{'Items':[" ITEM("0") "],'Count':1.0,'ScannedCount':1}", {false}, false},
    {"Scan", 200, "{'Items':[],'Count':0,'ScannedCount':7}", {false}, false},
    {"DescribeTable", 200, "{'Table':{'TableName':'other'}}", {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[]"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("5"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[5,5,5]"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[{},{},{}]"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[" NONE "," NONE "," NONE "]"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[" NONE "," FAILED_ITEM(ITEM("1")) "]"), {false}, false},
    {"TransactWriteItems",
     400,
     CANCELLED("[" FAILED_ITEM(ITEM("0")) "," NONE "," NONE "," NONE "]"),
     {false},
     false},
    {"TransactWriteItems", 400, CANCELLED("[" NONE "," FAILED_ITEM(ITEM("9")) "," NONE "]"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[" NONE "," FAILED_ITEM("5") "," NONE "]"), {false}, false},
    {"TransactWriteItems", 400, CANCELLED("[" NONE "," NONE ",{'Code':'Novel'}]"), {false}, false},
    {"PutItem", 400, REFUSED(",'Item':" ITEM("9")), {false}, false},
    {"PutItem", 400, REFUSED(",'Item':5"), {false}, false},
    {"PutItem", 400, REFUSED(",'Item':{}"), {false}, false},
    {"UpdateItem", 400, REFUSED(""), {false}, false},
    {"UpdateItem", 400, REFUSED(",'Item':" ITEM("0")), {false}, true},
    {NULL, 0, NULL, {false}, false},
};

/* ---- ranges ---- */

#define RANGE(text) "etag: \"e1\"\r\ncontent-range: " text "\r\n"
const char *const lies_ranges[] = {
    "content-range: bytes 0-9/10\r\n",
    "etag: \"\"\r\ncontent-range: bytes 0-9/10\r\n",
    "etag: \"e1\"\r\n",
    RANGE("bytes 1-10/11"),
    RANGE("bytes 0-9/11"),
    RANGE("bytes 0-9/9"),
    RANGE("bytes 0-8/9"),
    RANGE("bytes 0-10/11"),
    RANGE("bytes 0-9/*"),
    RANGE("bytes */10"),
    RANGE("bytes 0-9"),
    RANGE("bytes 9-0/10"),
    RANGE("items 0-9/10"),
    RANGE("bytes 0-9/10x"),
    RANGE("bytes -9/10"),
    RANGE("bytes 0-9/99999999999999999999"),
    RANGE("bytes 0-9/10\r\nx-amz-checksum-crc32: AAAAAA=="),
    NULL,
};

/* ---- a page ---- */

static bool is_value(const json_t *value);

static bool is_number(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    return text && *text && strtod(text, &end) == strtod(text, NULL) && !*end;
}

static bool is_binary(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) % 4 == 0;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool are_all(const json_t *list, bool (*is_good)(const json_t *), size_t least)
{
    size_t i;
    json_t *element;
    if (!json_is_array(list) || json_array_size(list) < least)
        return false;
    json_array_foreach(list, i, element) if (!is_good(element)) return false;
    return true;
}

static bool are_values(const json_t *map)
{
    const char *name;
    json_t *value;
    if (!json_is_object(map))
        return false;
    json_object_foreach((json_t *)map, name, value) if (!is_value(value)) return false;
    return true;
}

static bool is_value(const json_t *value)
{
    if (json_object_size(value) != 1)
        return false;
    const char *tag = json_object_iter_key(json_object_iter((json_t *)value));
    const json_t *inner = json_object_get(value, tag);
    return strcmp(tag, "S") == 0      ? is_text(inner)
           : strcmp(tag, "N") == 0    ? is_number(inner)
           : strcmp(tag, "B") == 0    ? is_binary(inner)
           : strcmp(tag, "BOOL") == 0 ? json_is_boolean(inner)
           : strcmp(tag, "NULL") == 0 ? json_is_true(inner)
           : strcmp(tag, "SS") == 0   ? are_all(inner, is_text, 1)
           : strcmp(tag, "NS") == 0   ? are_all(inner, is_number, 1)
           : strcmp(tag, "BS") == 0   ? are_all(inner, is_binary, 1)
           : strcmp(tag, "L") == 0    ? are_all(inner, is_value, 0)
           : strcmp(tag, "M") == 0    ? are_values(inner)
                                      : false;
}

static bool is_key_value(const json_t *value)
{
    const char *tag = is_value(value) ? json_object_iter_key(json_object_iter((json_t *)value)) : "";
    return strchr("SNB", *tag) && strlen(tag) == 1 && json_string_length(json_object_get(value, tag)) > 0;
}

static bool is_item(const json_t *item)
{
    return are_values(item) && json_object_size(item) > 0;
}

bool lies_is_page(const json_t *answer)
{
    const json_t *items = json_object_get(answer, "Items"),
                 *next = json_object_get(answer, "LastEvaluatedKey");
    const json_t *consumed = json_object_get(answer, "ConsumedCapacity");
    static const char *const counts[] = {"Count", "ScannedCount"};
    const char *name;
    json_t *value;
    for (int i = 0; i < 2; i++)
        if (!json_is_integer(json_object_get(answer, counts[i])) ||
            json_integer_value(json_object_get(answer, counts[i])) != (json_int_t)json_array_size(items))
            return false;
    if (next && (!json_is_object(next) || json_object_size(next) < 1 || json_object_size(next) > 2))
        return false;
    if (next)
        json_object_foreach((json_t *)next, name, value) if (!is_key_value(value)) return false;
    return are_all(items, is_item, 0) &&
           (!consumed || json_is_number(json_object_get(consumed, "CapacityUnits")));
}

static bool is_place(const char *text, const char *before)
{
    return text && strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32 && strcmp(text, before) >= 0;
}

bool lies_is_search(const json_t *answer)
{
    const json_t *shards = json_object_get(answer, "_shards"), *failed = json_object_get(shards, "failed");
    const json_t *total = json_object_get(shards, "total");
    const json_t *hits = json_object_get(json_object_get(answer, "hits"), "hits");
    const char *before = "c";
    size_t i;
    json_t *hit;
    if (!json_is_false(json_object_get(answer, "timed_out")) || !json_is_integer(failed) ||
        json_integer_value(failed) != 0 || !json_is_array(hits) || !json_is_integer(total) ||
        json_integer_value(total) < 0 || !json_equal(total, json_object_get(shards, "successful")))
        return false;
    json_array_foreach(hits, i, hit)
    {
        const json_t *sort = json_object_get(hit, "sort");
        const char *place = json_string_value(json_array_get(sort, 0));
        if (!json_is_object(json_object_get(hit, "_source")) || json_array_size(sort) != 1 ||
            !is_place(place, before))
            return false;
        before = place;
    }
    return true;
}

/* ---- what SQS took ---- */

static size_t count_id(const json_t *list, int id, bool with_proof)
{
    char text[8];
    size_t n = 0, i;
    json_t *entry;
    snprintf(text, sizeof(text), "%d", id);
    json_array_foreach(list, i, entry)
    {
        const char *have = json_string_value(json_object_get(entry, "Id"));
        const json_t *md5 = json_object_get(entry, "MD5OfMessageBody");
        bool is_other =
            json_is_string(md5) && json_string_length(md5) != 32; /* no mutation makes another digest */
        n += have && strcmp(have, text) == 0 && !(with_proof && is_other) &&
             (!with_proof || json_string_length(json_object_get(entry, "MessageId")) > 0);
    }
    return n;
}

void lies_find_sent(const json_t *answer, bool *proven)
{
    const json_t *taken = json_object_get(answer, "Successful"), *failed = json_object_get(answer, "Failed");
    bool is_answer = json_is_object(answer) && (!taken || json_is_array(taken) || json_is_null(taken)) &&
                     (!failed || json_is_array(failed) || json_is_null(failed));
    for (int i = 0; i < LIES_ENTRIES; i++)
        proven[i] = is_answer && count_id(taken, i, true) == 1 && count_id(failed, i, false) == 0;
}

/* ---- members that are there twice ---- */

struct lies_twins lies_twins_of(struct sl_span truth)
{
    json_t *json = json_loadb(truth.ptr, truth.len, 0, NULL);
    struct lies_twins twins = {.truth = json ? json_dumps(json, JSON_COMPACT) : strdup("")};
    twins.at = twins.truth;
    sl_buffer_init(&twins.lie, 1 << 20);
    json_decref(json);
    return twins;
}

bool lies_twins_next(struct lies_twins *t)
{
    static const char *const others[] = {"5", "null", "\"x\"", "[]", "{}"};
    for (char *end; (t->at = strchr(t->at, '"')); t->at = end + 1) {
        for (end = t->at + 1; *end != '"'; end++)
            end += *end == '\\';
        if (end[1] == ':' && t->other < sizeof(others) / sizeof(others[0])) {
            sl_buffer_reset(&t->lie);
            sl_buffer_printf(&t->lie, "%.*s%.*s:%s,%s", (int)(t->at - t->truth), t->truth,
                             (int)(end + 1 - t->at), t->at, others[t->other++], t->at);
            return true;
        }
        t->other = 0;
    }
    sl_buffer_clean_up(&t->lie);
    free(t->truth);
    return false;
}
