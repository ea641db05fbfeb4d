#include "replay/live.h"

#include "base/json_write.h"
#include "sinks/aws/job.h"
#include "sinks/url.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_MS    30000
#define REQUEST_BYTES (16 * 1024)

struct sl_live {
    struct sl_sinks *sinks;
    struct sl_client streams, tables;
};

/* ---- requests ---- */

static enum sl_job_next keep_answer(struct sl_job *job)
{
    struct sl_buffer *out = job->context;
    sl_buffer_reset(out);
    sl_buffer_add_span(out, sl_buffer_span(&job->answer->body));
    return SL_JOB_DONE;
}

/* Asks, and parses what is answered: a new reference, or NULL. */
static json_t *ask(struct sl_live *live, struct sl_client *client, const char *operation,
                   struct sl_buffer *body, struct sl_buffer *answer, struct sl_error *error)
{
    static const struct sl_job_kind kind = {.answered = keep_answer};
    struct sl_clock *clock = live->sinks->clock;
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_span part = sl_buffer_span(body);
    const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + TIMEOUT_MS};
    struct sl_job job = {
        .kind = &kind, .context = answer, .operation = operation, .parts = &part, .n_parts = 1};
    sl_job_run(client, &job, 1, &call);
    json_t *root = NULL;
    if (job.status != SL_OK)
        sl_fail(error, job.status, job.code ? job.code : "Failed", "%s", job.text ? job.text : operation);
    else if (!(root = json_loadb(answer->ptr ? answer->ptr : "", answer->len, 0, NULL)))
        sl_fail(error, SL_RETRY, "BadAnswer", "%s: the answer is no JSON", operation);
    sl_arena_destroy(arena);
    return root;
}

static void begin(struct sl_buffer *body, struct sl_buffer *answer)
{
    sl_buffer_init(body, REQUEST_BYTES);
    sl_buffer_init(answer, SL_HTTP_ANSWER_BYTES);
    sl_buffer_add_char(body, '{');
}

static const char *keep(const json_t *object, const char *name, struct sl_arena *arena)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? sl_arena_copy(arena, sl_span_str(text)) : NULL;
}

/* ---- opening ---- */

static enum sl_status open_client(struct sl_live *live, struct sl_client *client,
                                  const struct sl_service *service, const char *name, const char *region,
                                  const char *endpoint, struct sl_error *error)
{
    struct sl_url url;
    struct sl_arena *arena = sl_aws_of(live->sinks)->lasting;
    const char *text =
        sl_arena_printf(arena, "dynamodb:%s?%s%s%s%s", name, region ? "region=" : "", region ? region : "",
                        endpoint ? "&endpoint=" : "", endpoint ? endpoint : "");
    enum sl_status status = sl_url_parse(sl_span_str(text), arena, &url, error);
    return status == SL_OK ? sl_client_init(client, live->sinks, service, &url, sl_span(NULL, 0), error)
                           : status;
}

enum sl_status sl_live_open(struct sl_sinks *sinks, const char *region, const char *endpoint,
                            struct sl_live **out, struct sl_error *error)
{
    struct sl_live *live = calloc(1, sizeof(*live));
    if (!live)
        sl_die("out of memory: a reader of streams");
    live->sinks = sinks;
    *out = live;
    enum sl_status status =
        open_client(live, &live->streams, &sl_service_streams, "streams", region, endpoint, error);
    if (status == SL_OK)
        status = open_client(live, &live->tables, &sl_service_dynamodb, "tables", region, endpoint, error);
    return status;
}

void sl_live_close(struct sl_live *live)
{
    if (!live)
        return;
    sl_client_clean_up(&live->streams);
    sl_client_clean_up(&live->tables);
    free(live);
}

/* ---- the four ---- */

enum sl_status sl_live_stream_of(struct sl_live *live, const char *table, struct sl_arena *arena,
                                 const char **arn, struct sl_error *error)
{
    struct sl_buffer body, answer;
    begin(&body, &answer);
    sl_json_add_member(&body, "TableName", sl_span_str(table));
    sl_buffer_add_char(&body, '}');
    json_t *root = ask(live, &live->tables, "DescribeTable", &body, &answer, error);
    *arn = keep(json_object_get(root, "Table"), "LatestStreamArn", arena);
    if (root && !*arn)
        sl_fail(error, SL_REJECT, "NoStream", "the table %s has no stream: enable one (StreamSpecification)",
                table);
    else if (!root)
        sl_error_context(error, "the table %s", table);
    json_decref(root);
    sl_buffer_clean_up(&body);
    sl_buffer_clean_up(&answer);
    return *arn ? SL_OK : error->status;
}

struct shards {
    struct sl_live_shard *all;
    size_t n, room;
};

static void add_shards(struct shards *s, const json_t *list, struct sl_arena *arena)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (s->n == s->room) {
            struct sl_live_shard *old = s->all;
            s->room = s->room ? s->room * 2 : 16;
            s->all = sl_arena_alloc(arena, s->room * sizeof(*s->all));
            if (s->n)
                memcpy(s->all, old, s->n * sizeof(*old));
        }
        const json_t *range = json_object_get(one, "SequenceNumberRange");
        const char *parent = keep(one, "ParentShardId", arena);
        s->all[s->n++] = (struct sl_live_shard){
            .id = keep(one, "ShardId", arena),
            .parent = parent ? parent : "",
            .is_closed = json_object_get(range, "EndingSequenceNumber") != NULL,
        };
    }
}

static size_t index_of(const struct shards *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->all[i].id, id) == 0)
            return i;
    return SIZE_MAX;
}

/* A parent that is not told of is gone. */
static void sort_parents_first(struct shards *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t parent = index_of(s, s->all[i].parent); parent != SIZE_MAX && parent > i;
             parent = index_of(s, s->all[i].parent)) {
            struct sl_live_shard moved = s->all[parent];
            memmove(&s->all[i + 1], &s->all[i], (parent - i) * sizeof(moved));
            s->all[i] = moved;
        }
}

enum sl_status sl_live_shards(struct sl_live *live, const char *arn, struct sl_arena *arena,
                              struct sl_live_shard **shards, size_t *n, struct sl_error *error)
{
    struct shards all = {0};
    const char *last = NULL;
    enum sl_status status = SL_OK;
    do {
        struct sl_buffer body, answer;
        begin(&body, &answer);
        sl_json_add_member(&body, "StreamArn", sl_span_str(arn));
        if (last)
            sl_json_add_member(&body, "ExclusiveStartShardId", sl_span_str(last));
        sl_buffer_add_char(&body, '}');
        json_t *root = ask(live, &live->streams, "DescribeStream", &body, &answer, error);
        const json_t *description = json_object_get(root, "StreamDescription");
        add_shards(&all, json_object_get(description, "Shards"), arena);
        last = keep(description, "LastEvaluatedShardId", arena);
        status = root ? SL_OK : error->status;
        json_decref(root);
        sl_buffer_clean_up(&body);
        sl_buffer_clean_up(&answer);
    } while (status == SL_OK && last);
    sort_parents_first(&all);
    *shards = all.all;
    *n = all.n;
    return status;
}

enum sl_status sl_live_iterator(struct sl_live *live, const char *arn, const char *shard, const char *type,
                                const char *sequence, struct sl_arena *arena, const char **iterator,
                                struct sl_error *error)
{
    struct sl_buffer body, answer;
    begin(&body, &answer);
    sl_json_add_member(&body, "StreamArn", sl_span_str(arn));
    sl_json_add_member(&body, "ShardId", sl_span_str(shard));
    sl_json_add_member(&body, "ShardIteratorType", sl_span_str(type));
    if (sequence)
        sl_json_add_member(&body, "SequenceNumber", sl_span_str(sequence));
    sl_buffer_add_char(&body, '}');
    json_t *root = ask(live, &live->streams, "GetShardIterator", &body, &answer, error);
    *iterator = keep(root, "ShardIterator", arena);
    if (root && !*iterator)
        sl_fail(error, SL_RETRY, "BadAnswer", "GetShardIterator: the answer has no iterator");
    json_decref(root);
    sl_buffer_clean_up(&body);
    sl_buffer_clean_up(&answer);
    return *iterator ? SL_OK : error->status;
}

enum sl_status sl_live_records(struct sl_live *live, const char *iterator, struct sl_arena *arena,
                               struct sl_span *answer, const char **next, struct sl_error *error)
{
    struct sl_buffer body, text;
    begin(&body, &text);
    sl_json_add_member(&body, "ShardIterator", sl_span_str(iterator));
    sl_json_add_integer(&body, "Limit", 1000);
    sl_buffer_add_char(&body, '}');
    json_t *root = ask(live, &live->streams, "GetRecords", &body, &text, error);
    *next = keep(root, "NextShardIterator", arena);
    *answer = sl_span(sl_arena_copy(arena, sl_buffer_span(&text)), text.len);
    json_decref(root);
    sl_buffer_clean_up(&body);
    sl_buffer_clean_up(&text);
    return root ? SL_OK : error->status;
}
