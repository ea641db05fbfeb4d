/* A table's two streams, scripted: shards with parents and children, records that are gone, iterators that
 * expire, operations that are refused or answered by a lie. */
#ifndef SL_TESTS_LIVE_TAIL_STREAM_WORLD_H
#define SL_TESTS_LIVE_TAIL_STREAM_WORLD_H

#include "tests/support/scripted_server.h"
#include "tests/support/test.h"
#include "tests/support/verbs.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE  "arn:aws:dynamodb:us-east-1:123456789012:table/t"
#define ARN    TABLE "/stream/2026-01-01T00:00:00.000"
#define NEWER  TABLE "/stream/2026-02-02T00:00:00.000"
#define SHARDS 128
#define PAGE   3

#define LONG_AGO_S 1767225600 /* 2026-01-01 */

struct shard {
    const char *name, *parent; /* NULL: none; a name of NULL ends the list */
    bool is_closed;
    unsigned first, last; /* sequence numbers; first 0: no records */
    unsigned trimmed;     /* those below are gone */
    bool is_unlisted;     /* it can be read all the same */
};

static struct world {
    struct shard shards[SHARDS], newer[SHARDS]; /* of ARN, of NEWER */
    const char *status, *latest;                /* the stream that DescribeTable names; NULL: none */
    bool doubles;                               /* shards are listed twice */
    bool refuses_filter, ignores_filter;        /* CHILD_SHARDS */
    unsigned child_asks;                        /* requests with it */
    unsigned poison;                            /* this record has no word */
    unsigned broken;                            /* this one has no key, and cannot be read */
    bool is_mixed;    /* every third record is a change, every third a removal by TTL */
    long long made_s; /* when the records from `made_from` on were made; 0: long ago */
    unsigned made_from;
    unsigned page;      /* records of an answer; 0: PAGE */
    unsigned expire;    /* so many reads find their iterator expired */
    const char *liar;   /* this operation */
    const char *lie;    /* answers that */
    const char *denied; /* this operation is refused */
    const char *code;   /* with that, */
    unsigned after;     /* after so many good answers, */
    unsigned times;     /* so often */
    unsigned byte_ms;   /* what each byte of DescribeTable's answer takes */
    char body[1 << 20];
    size_t n_reads;
    struct verbs *ends;       /* is told to end (NULL: nobody is) */
    unsigned reads_until_end; /* after so many reads */
} w;

static const struct shard *shard_named(const char *name)
{
    for (size_t i = 0; i < 2 * (size_t)SHARDS; i++) {
        const struct shard *s = i < SHARDS ? &w.shards[i] : &w.newer[i - SHARDS];
        if (s->name && strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

static void refuse(struct scripted_reply *reply, const char *code)
{
    reply->status = 400;
    snprintf(w.body, sizeof(w.body),
             "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"message\":\"by script\"}", code);
}

static size_t describe_shard(const struct shard *s, bool is_first, size_t n)
{
    return (size_t)snprintf(
        w.body + n, sizeof(w.body) - n,
        "%s{\"ShardId\":\"%s\"%s%s%s,\"SequenceNumberRange\":{\"StartingSequenceNumber\":\"1\"%s}}",
        is_first ? "" : ",", s->name, s->parent ? ",\"ParentShardId\":\"" : "", s->parent ? s->parent : "",
        s->parent ? "\"" : "", s->is_closed ? ",\"EndingSequenceNumber\":\"9\"" : "");
}

static void describe_table(struct scripted_reply *reply)
{
    reply->byte_ms = w.byte_ms;
    snprintf(w.body, sizeof(w.body), "{\"Table\":{\"TableName\":\"t\"%s%s%s}}",
             w.latest ? ",\"LatestStreamArn\":\"" : "", w.latest ? w.latest : "", w.latest ? "\"" : "");
}

/* Children that no list may show. */
static void describe_children(const char *parent, struct scripted_reply *reply)
{
    size_t n = (size_t)snprintf(w.body, sizeof(w.body),
                                "{\"StreamDescription\":{\"StreamStatus\":\"ENABLED\",\"Shards\":[");
    bool is_first = true;
    w.child_asks++;
    if (w.refuses_filter) {
        refuse(reply, "ValidationException");
        return;
    }
    for (size_t i = 0; w.shards[i].name; i++)
        if ((w.shards[i].parent && strcmp(w.shards[i].parent, parent) == 0) || w.ignores_filter) {
            n += describe_shard(&w.shards[i], is_first, n);
            is_first = false;
        }
    snprintf(w.body + n, sizeof(w.body) - n, "]}}");
}

/* Two shards a page. */
static void describe(const json_t *ask)
{
    const char *after = json_string_value(json_object_get(ask, "ExclusiveStartShardId"));
    bool is_newer = strcmp(json_string_value(json_object_get(ask, "StreamArn")), NEWER) == 0, is_first = true;
    const struct shard *shards = is_newer ? w.newer : w.shards;
    size_t n = 0, from = 0, end;
    for (size_t i = 0; shards[i].name; i++)
        if (after && strcmp(shards[i].name, after) == 0)
            from = i + 1;
    n = (size_t)snprintf(w.body, sizeof(w.body),
                         "{\"StreamDescription\":{\"StreamStatus\":\"%s\",\"Shards\":[",
                         is_newer ? "ENABLED" : w.status);
    for (int copy = 0; copy <= (int)w.doubles; copy++)
        for (end = from; shards[end].name && end < from + 2 + SHARDS * (size_t)w.doubles; end++)
            if (!shards[end].is_unlisted) {
                n += describe_shard(&shards[end], is_first, n);
                is_first = false;
            }
    n += (size_t)snprintf(w.body + n, sizeof(w.body) - n, "]");
    if (shards[end].name)
        n += (size_t)snprintf(w.body + n, sizeof(w.body) - n, ",\"LastEvaluatedShardId\":\"%s\"",
                              shards[end - 1].name);
    snprintf(w.body + n, sizeof(w.body) - n, "}}");
}

static void iterator(const json_t *ask, struct scripted_reply *reply)
{
    const struct shard *s = shard_named(json_string_value(json_object_get(ask, "ShardId")));
    const char *type = json_string_value(json_object_get(ask, "ShardIteratorType"));
    const char *sequence = json_string_value(json_object_get(ask, "SequenceNumber"));
    unsigned at = s ? s->first : 0, after = sequence ? (unsigned)strtoul(sequence, NULL, 10) : 0;
    if (!s) {
        refuse(reply, "ResourceNotFoundException");
        return;
    }
    if (sequence && after < s->trimmed) {
        refuse(reply, "TrimmedDataAccessException");
        return;
    }
    if (strcmp(type, "LATEST") == 0)
        at = s->last + 1;
    else if (sequence && after >= at)
        at = after + (strncmp(type, "AFTER", 5) == 0);
    snprintf(w.body, sizeof(w.body), "{\"ShardIterator\":\"%s:%u\"}", s->name, at);
}

static size_t record(unsigned at, bool is_first, size_t n)
{
    static const char *const names[] = {"INSERT", "MODIFY", "REMOVE"};
    unsigned kind = w.is_mixed ? at % 3 : 0;
    return (size_t)snprintf(
        w.body + n, sizeof(w.body) - n,
        "%s{\"eventID\":\"%u\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\","
        "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"us-east-1\",%s"
        "\"dynamodb\":{\"ApproximateCreationDateTime\":%lld,\"%s\":{\"PK\":{"
        "\"S\":\"k%u\"}},\"%sImage\":{\"PK\":{\"S\":\"k%u\"}%s},"
        "\"SequenceNumber\":\"%u\",\"SizeBytes\":9,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}",
        is_first ? "" : ",", at, names[kind],
        kind == 2 ? "\"userIdentity\":{\"type\":\"Service\",\"principalId\":\"dynamodb.amazonaws.com\"},"
                  : "",
        w.made_s && at >= w.made_from ? w.made_s : LONG_AGO_S, at == w.broken ? "NoKeys" : "Keys", at,
        kind == 2 ? "Old" : "New", at, at == w.poison ? "" : ",\"word\":{\"S\":\"w\"}", at);
}

static void records(const json_t *ask, struct scripted_reply *reply)
{
    char name[64];
    unsigned at, n = 0;
    assert_int_equal(
        sscanf(json_string_value(json_object_get(ask, "ShardIterator")), "%63[^:]:%u", name, &at), 2);
    const struct shard *s = shard_named(name);
    w.n_reads++;
    if (w.ends && w.reads_until_end && --w.reads_until_end == 0)
        verb_signal(w.ends, SIGTERM);
    if (!s || w.expire) {
        w.expire -= w.expire > 0;
        refuse(reply, s ? "ExpiredIteratorException" : "ResourceNotFoundException");
        return;
    }
    size_t len = (size_t)snprintf(w.body, sizeof(w.body), "{\"Records\":[");
    for (; n < (w.page ? w.page : PAGE) && s->first && at <= s->last; n++, at++)
        len += record(at, n == 0, len);
    len += (size_t)snprintf(w.body + len, sizeof(w.body) - len, "]");
    if (!s->is_closed || at <= s->last)
        len += (size_t)snprintf(w.body + len, sizeof(w.body) - len, ",\"NextShardIterator\":\"%s:%u\"", name,
                                at);
    snprintf(w.body + len, sizeof(w.body) - len, "}");
}

static bool is_denied(struct sl_span operation)
{
    if (!w.denied || !sl_span_is(operation, w.denied) || (w.after && w.after--))
        return false;
    return w.times && w.times--;
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    struct sl_span target = scripted_header(request, "x-amz-target");
    const char *dot = memchr(target.ptr, '.', target.len);
    struct sl_span operation = sl_span(dot + 1, target.len - (size_t)(dot + 1 - target.ptr));
    json_t *ask = json_loadb(request->body.ptr, request->body.len, 0, NULL);
    reply->status = 200;
    if (is_denied(operation))
        refuse(reply, w.code);
    else if (w.liar && sl_span_is(operation, w.liar))
        snprintf(w.body, sizeof(w.body), "%s", w.lie);
    else if (sl_span_is(operation, "DescribeTable"))
        describe_table(reply);
    else if (sl_span_is(operation, "DescribeStream"))
        json_object_get(ask, "ShardFilter")
            ? describe_children(
                  json_string_value(json_object_get(json_object_get(ask, "ShardFilter"), "ShardId")), reply)
            : describe(ask);
    else if (sl_span_is(operation, "GetShardIterator"))
        iterator(ask, reply);
    else if (sl_span_is(operation, "GetRecords"))
        records(ask, reply);
    else
        refuse(reply, "ResourceNotFoundException");
    json_decref(ask);
    reply->body = sl_span_str(w.body);
}

#endif
