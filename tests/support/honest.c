#include "tests/support/honest.h"

#include <openssl/evp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* By what follows the index in the path. */
static const char *search_operation(const char *path)
{
    static const char *const names[][2] = {
        {"_alias", "GetAlias"}, {"_mapping", "GetMapping"}, {"_mget", "MultiGet"}, {"_bulk", "Bulk"},
        {"_search", "Search"},  {"_refresh", "Refresh"},    {"_stats", "Stats"}};
    size_t i = 0;
    while (i < 6 && strncmp(path, names[i][0], strlen(names[i][0])) != 0)
        i++;
    return names[i][1];
}

void honest_operation(const struct scripted_request *request, char *out, size_t room)
{
    struct sl_span target = scripted_header(request, "x-amz-target");
    const char *dot = target.len ? memrchr(target.ptr, '.', target.len) : NULL;
    bool is_form = sl_span_starts(request->body, SL_LIT("Action=")) && strcmp(request->method, "POST") == 0;
    const char *action = request->body.ptr;
    bool is_get = strcmp(request->method, "GET") == 0;
    if (strncmp(request->path, "/idx/_", 6) == 0) {
        snprintf(out, room, "%s", search_operation(request->path + 5));
        return;
    }
    if (is_get && strstr(request->path, "list-type=2"))
        snprintf(out, room, "ListObjectsV2");
    else if (is_get && strstr(request->path, "versions="))
        snprintf(out, room, "ListObjectVersions");
    else if (is_get && scripted_header(request, "range").len)
        snprintf(out, room, "GetObject");
    else if (dot)
        snprintf(out, room, "%.*s", (int)(target.ptr + target.len - dot - 1), dot + 1);
    else if (is_form)
        snprintf(out, room, "%.*s", (int)strcspn(action + 7, "&"), action + 7);
    else
        snprintf(out, room, "%s",
                 strcmp(request->method, "PUT") == 0      ? "PutObject"
                 : strcmp(request->method, "DELETE") == 0 ? "DeleteObject"
                                                          : request->method);
}

/* ---- what each operation answers ---- */

static void nothing(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{}");
}

static void batch_write(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{\"UnprocessedItems\":{}}");
}

/* No item is there. */
static void batch_get(const json_t *asked, struct sl_buffer *out)
{
    const char *table;
    json_t *ignored, *tables = json_object_get(asked, "RequestItems");
    size_t n = 0;
    sl_buffer_add_str(out, "{\"Responses\":{");
    json_object_foreach(tables, table, ignored) sl_buffer_printf(out, "%s\"%s\":[]", n++ ? "," : "", table);
    sl_buffer_add_str(out, "},\"UnprocessedKeys\":{}}");
}

static void scan(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(
        out,
        "{\"Items\":[{\"PK\":{\"S\":\"0\"},\"b\":{\"B\":\"AA==\"},\"m\":{\"M\":{\"l\":{\"L\":[{\"N\":\"-1."
        "5\"},"
        "{\"BOOL\":true},{\"NULL\":true}]},\"e\":{\"M\":{}}}}},{\"PK\":{\"S\":\"1\"},\"ss\":{\"SS\":[\"a\"]},"
        "\"ns\":{\"NS\":[\"1\",\"2\"]},\"bs\":{\"BS\":[\"AA==\"]}}],\"Count\":2,\"ScannedCount\":2,"
        "\"LastEvaluatedKey\":{\"PK\":{\"S\":\"1\"}},"
        "\"ConsumedCapacity\":{\"TableName\":\"tbl\",\"CapacityUnits\":0.5}}");
}

static void describe(const json_t *asked, struct sl_buffer *out)
{
    sl_buffer_printf(
        out,
        "{\"Table\":{\"TableName\":\"%s\",\"TableArn\":\"arn:aws:dynamodb:us-east-1:123456789012:table/tbl\","
        "\"KeySchema\":[{\"AttributeName\":\"PK\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"SK\","
        "\"KeyType\":"
        "\"RANGE\"}],\"AttributeDefinitions\":[{\"AttributeName\":\"PK\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"SK\",\"AttributeType\":\"N\"}],\"ItemCount\":7,\"TableSizeBytes\":700,"
        "\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\"},"
        "\"LatestStreamArn\":\"arn:aws:dynamodb:us-east-1:123456789012:table/tbl/stream/1\"}}",
        json_string_value(json_object_get(asked, "TableName")));
}

static void send_batch(const json_t *asked, struct sl_buffer *out)
{
    size_t i;
    json_t *entry;
    sl_buffer_add_str(out, "{\"Successful\":[");
    json_array_foreach(json_object_get(asked, "Entries"), i, entry)
    {
        const json_t *body = json_object_get(entry, "MessageBody");
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_Digest(json_string_value(body), json_string_length(body), digest, NULL, EVP_md5(), NULL);
        sl_buffer_printf(out, "%s{\"Id\":\"%s\",\"MessageId\":\"m-%zu\",\"MD5OfMessageBody\":\"",
                         i ? "," : "", json_string_value(json_object_get(entry, "Id")), i);
        for (int k = 0; k < 16; k++)
            sl_buffer_printf(out, "%02x", digest[k]);
        sl_buffer_add_str(out, "\"}");
    }
    sl_buffer_add_str(out, "],\"Failed\":[]}");
}

static void queue_url(const json_t *asked, struct sl_buffer *out)
{
    sl_buffer_printf(out, "{\"QueueUrl\":\"https://sqs.us-east-1.amazonaws.com/123456789012/%s\"}",
                     json_string_value(json_object_get(asked, "QueueName")));
}

/* Every receive has two messages, whose bodies are "one" and "two". */
static void receive(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{\"Messages\":[{\"MessageId\":\"m-1\",\"ReceiptHandle\":\"r-1\",\"Body\":\"one\","
                           "\"MD5OfBody\":\"f97c5d29941bfb1b2fdab0874906ab82\",\"Attributes\":{"
                           "\"ApproximateReceiveCount\":\"1\","
                           "\"SentTimestamp\":\"1795208640123\",\"MessageGroupId\":\"g\"}},"
                           "{\"MessageId\":\"m-2\",\"ReceiptHandle\":\"r-2\",\"Body\":\"two\","
                           "\"MD5OfBody\":\"b8a9f715dbb64fd5c56e7783c6820a61\",\"Attributes\":{"
                           "\"ApproximateReceiveCount\":\"3\","
                           "\"SentTimestamp\":\"1795208640124\",\"MessageGroupId\":\"g\"}}]}");
}

static void entries_done(const json_t *asked, struct sl_buffer *out)
{
    size_t i;
    json_t *entry;
    sl_buffer_add_str(out, "{\"Successful\":[");
    json_array_foreach(json_object_get(asked, "Entries"), i, entry) sl_buffer_printf(
        out, "%s{\"Id\":\"%s\"}", i ? "," : "", json_string_value(json_object_get(entry, "Id")));
    sl_buffer_add_str(out, "],\"Failed\":[]}");
}

static void queue_attributes(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out,
                      "{\"Attributes\":{\"QueueArn\":\"arn:aws:sqs:us-east-1:123456789012:queue\","
                      "\"ApproximateNumberOfMessages\":\"7\",\"ApproximateNumberOfMessagesNotVisible\":\"2\","
                      "\"ApproximateNumberOfMessagesDelayed\":\"1\","
                      "\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":\\\"arn:aws:sqs:us-east-1:1:d\\\","
                      "\\\"maxReceiveCount\\\":5}\"}}");
}

static void entries(size_t n, const char *count, const char *list, const char *entry, struct sl_buffer *out)
{
    sl_buffer_printf(out, "{\"%s\":0,\"%s\":[", count, list);
    for (size_t i = 0; i < n; i++)
        sl_buffer_printf(out, "%s{%s}", i ? "," : "", entry);
    sl_buffer_add_str(out, "]}");
}

static void put_events(const json_t *asked, struct sl_buffer *out)
{
    entries(json_array_size(json_object_get(asked, "Entries")), "FailedEntryCount", "Entries",
            "\"EventId\":\"e\"", out);
}

static void put_records(const json_t *asked, struct sl_buffer *out)
{
    entries(json_array_size(json_object_get(asked, "Records")), "FailedRecordCount", "Records",
            "\"SequenceNumber\":\"1\",\"ShardId\":\"s\"", out);
}

static void put_record_batch(const json_t *asked, struct sl_buffer *out)
{
    entries(json_array_size(json_object_get(asked, "Records")), "FailedPutCount", "RequestResponses",
            "\"RecordId\":\"r\"", out);
}

/* ---- OpenSearch ---- */

static void get_alias(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{\"idx\":{\"aliases\":{}}}");
}

static void get_mapping(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{\"idx\":{\"mappings\":{\"sluice_hash\":{\"mapping\":{\"sluice_hash\":{\"type\":"
                           "\"keyword\"}}}}}}");
}

/* No document is there. */
static void multi_get(const json_t *asked, struct sl_buffer *out)
{
    size_t i;
    json_t *doc;
    sl_buffer_add_str(out, "{\"docs\":[");
    json_array_foreach(json_object_get(asked, "docs"), i, doc)
    {
        char *id = json_dumps(json_object_get(doc, "_id"), JSON_ENCODE_ANY);
        sl_buffer_printf(out, "%s{\"_id\":%s,\"found\":false}", i ? "," : "", id);
        free(id);
    }
    sl_buffer_add_str(out, "]}");
}

/* Lines: an action, and mostly a document. */
static void bulk(struct sl_span body, struct sl_buffer *out)
{
    size_t n = 0;
    sl_buffer_add_str(out, "{\"items\":[");
    while (body.len) {
        const char *end = memchr(body.ptr, '\n', body.len), *name;
        json_t *line = json_loadb(body.ptr, (size_t)(end - body.ptr), JSON_ALLOW_NUL, NULL), *value;
        json_object_foreach(line, name, value)
        {
            char *id = json_dumps(json_object_get(value, "_id"), JSON_ENCODE_ANY);
            if (id && (strcmp(name, "index") == 0 || strcmp(name, "create") == 0))
                sl_buffer_printf(out,
                                 "%s{\"%s\":{\"_id\":%s,\"status\":201,\"result\":\"created\",\"_seq_no\":1,"
                                 "\"_primary_term\":1}}",
                                 n++ ? "," : "", name, id);
            free(id);
        }
        json_decref(line);
        body = sl_span_from(body, (size_t)(end - body.ptr) + 1);
    }
    sl_buffer_add_str(out, "]}");
}

/* Of the last of four segments. */
static void search(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(
        out,
        "{\"timed_out\":false,\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},\"hits\":{\"hits\":["
        "{\"_id\":\"a\",\"_source\":{\"PK\":\"a\",\"l\":[1,null]},\"sort\":["
        "\"c0000000000000000000000000000000\"]},"
        "{\"_id\":\"b\",\"_source\":{},\"sort\":[\"d0000000000000000000000000000000\"]}]}}");
}

static void refresh(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{\"_shards\":{\"failed\":0}}");
}

static void stats(const json_t *asked, struct sl_buffer *out)
{
    (void)asked;
    sl_buffer_add_str(out, "{\"_shards\":{\"failed\":0},\"_all\":{\"primaries\":{\"docs\":{\"count\":7},"
                           "\"store\":{\"size_in_bytes\":700}}}}");
}

static const struct {
    const char *operation;
    void (*write)(const json_t *asked, struct sl_buffer *out);
} operations[] = {
    {"GetAlias", get_alias},
    {"GetMapping", get_mapping},
    {"MultiGet", multi_get},
    {"Search", search},
    {"Refresh", refresh},
    {"Stats", stats},
    {"PutItem", nothing},
    {"UpdateItem", nothing},
    {"DeleteItem", nothing},
    {"TransactWriteItems", nothing},
    {"BatchWriteItem", batch_write},
    {"BatchGetItem", batch_get},
    {"Scan", scan},
    {"DescribeTable", describe},
    {"SendMessageBatch", send_batch},
    {"GetQueueUrl", queue_url},
    {"ReceiveMessage", receive},
    {"DeleteMessageBatch", entries_done},
    {"ChangeMessageVisibilityBatch", entries_done},
    {"GetQueueAttributes", queue_attributes},
    {"PutEvents", put_events},
    {"PutRecords", put_records},
    {"PutRecordBatch", put_record_batch},
    {"POST", nothing}, /* a webhook */
};

static void publish_batch(struct sl_span form, struct sl_buffer *out)
{
    size_t n = 0;
    sl_buffer_add_str(out, "<PublishBatchResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\">"
                           "<PublishBatchResult><Failed/><Successful>");
    for (const char *p = form.ptr, *end = p + form.len; (p = memmem(p, (size_t)(end - p), ".Id=", 4)) != NULL;
         p += 4)
        sl_buffer_printf(out, "<member><MessageId>m-%zu</MessageId><Id>%zu</Id></member>", n, n), n++;
    sl_buffer_add_str(out, "</Successful></PublishBatchResult><ResponseMetadata><RequestId>r</RequestId>"
                           "</ResponseMetadata></PublishBatchResponse>");
}

/* Two keys, of those that may follow. */
static void list_objects(struct sl_buffer *out)
{
    sl_buffer_add_str(
        out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name>"
             "<KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>"
             "<IsTruncated>true</IsTruncated>"
             "<Contents><Key>p/a+b%2Bc</Key><ETag>&quot;e1&quot;</ETag><Size>1</Size></Contents>"
             "<Contents><Key>p/z</Key><ETag>&quot;e2&quot;</ETag><Size>2</Size></Contents>"
             "</ListBucketResult>");
}

static void list_versions(struct sl_buffer *out)
{
    sl_buffer_add_str(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<ListVersionsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name>"
        "<MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
        "<NextKeyMarker>a+b%2Bc</NextKeyMarker><NextVersionIdMarker>v2</NextVersionIdMarker>"
        "<Version><Key>a+b%2Bc</Key><VersionId>v1</VersionId><IsLatest>false</IsLatest><Size>7</Size></"
        "Version>"
        "<DeleteMarker><Key>a+b%2Bc</Key><VersionId>v2</VersionId><IsLatest>true</IsLatest></DeleteMarker>"
        "</ListVersionsResult>");
}

void honest_answer(const struct scripted_request *request, struct scripted_reply *reply,
                   struct sl_buffer *body)
{
    char operation[64];
    honest_operation(request, operation, sizeof(operation));
    sl_buffer_reset(body);
    reply->status = 200;
    if (strcmp(operation, "PutObject") == 0)
        reply->headers = "etag: \"9b2cf535f27731c974343645a3985328\"\r\n";
    else if (strcmp(operation, "DeleteObject") == 0)
        reply->status = 204;
    else if (strcmp(operation, "Bulk") == 0)
        bulk(request->body, body);
    else if (strcmp(operation, "PublishBatch") == 0)
        publish_batch(request->body, body);
    else if (strcmp(operation, "ListObjectsV2") == 0)
        list_objects(body);
    else if (strcmp(operation, "ListObjectVersions") == 0)
        list_versions(body);
    else if (strcmp(operation, "GetObject") == 0) {
        reply->status = 206;
        reply->headers = "etag: \"e1\"\r\ncontent-range: bytes 0-9/10\r\nx-amz-checksum-crc32: poTHxg==\r\n";
        sl_buffer_add_str(body, "0123456789");
    } else {
        size_t i = 0, n = sizeof(operations) / sizeof(operations[0]);
        while (i < n && strcmp(operation, operations[i].operation) != 0)
            i++;
        if (i == n)
            sl_die("tests/support/honest.c does not know the operation %s", operation);
        json_t *asked = json_loadb(request->body.ptr, request->body.len, JSON_ALLOW_NUL, NULL);
        operations[i].write(asked, body);
        json_decref(asked);
    }
    reply->body = sl_buffer_span(body);
}
