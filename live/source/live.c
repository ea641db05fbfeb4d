/* Reads DynamoDB Streams: DescribeTable, DescribeStream, GetShardIterator and GetRecords. */
#include "live/source/live.h"

#include "aws/answer.h"
#include "aws/sources.h"
#include "base/array.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT_MS    30000
#define REQUEST_BYTES (16 * 1024)
#define SHARDS        100000 /* more are not a stream's: it keeps them 24 hours */
/* GetRecords returns 1 MB of records, which escapes make up to 6 times as long; DynamoDB Local has no limit.
 */
#define ANSWER_BYTES (64u * 1024 * 1024)

struct sl_live {
    struct sl_vars vars;
    struct sl_log log;
    struct sl_aws *aws;
    struct sl_client streams, tables;
};

/* ---- requests ---- */

/* Whether an answer is what its operation answers when it succeeds. */
typedef bool (*check_fn)(struct sl_span answer);

struct request {
    struct sl_client *client;
    const char *operation;
    check_fn is_good;
    struct sl_buffer body, answer;
};

static void begin(struct request *r, struct sl_client *client, const char *operation, check_fn is_good)
{
    *r = (struct request){.client = client, .operation = operation, .is_good = is_good};
    sl_buffer_init(&r->body, REQUEST_BYTES);
    sl_buffer_init(&r->answer, ANSWER_BYTES);
    sl_buffer_add_char(&r->body, '{');
}

static void add(struct request *r, const char *name, const char *value)
{
    if (value)
        sl_json_add_member(&r->body, name, sl_span_str(value));
}

static void end(struct request *r)
{
    sl_buffer_clean_up(&r->body);
    sl_buffer_clean_up(&r->answer);
}

static enum sl_job_next keep_answer(struct sl_job *job)
{
    struct request *r = job->context;
    struct sl_span answer;
    if (!sl_answer_object(job, &answer) || !r->is_good(answer))
        return SL_JOB_BROKEN;
    sl_buffer_reset(&r->answer);
    sl_buffer_add_span(&r->answer, answer);
    return SL_JOB_DONE;
}

static const struct sl_job_kind kind = {.answered = keep_answer};

static struct sl_job job_of(struct request *r, struct sl_span *part)
{
    sl_buffer_add_char(&r->body, '}');
    *part = sl_buffer_span(&r->body);
    return (struct sl_job){.kind = &kind,
                           .context = r,
                           .operation = r->operation,
                           .parts = part,
                           .n_parts = 1,
                           .of_no_record = true,
                           .answer_bytes = ANSWER_BYTES};
}

static void tell_failure(const struct sl_job *job, struct sl_error *error)
{
    sl_fail(error, job->status, job->code, "%s", job->text);
}

/* Sends the request. Its answer, a JSON object, is then in r->answer; absent on failure. */
static struct sl_span ask(struct request *r, struct sl_error *error)
{
    struct sl_clock *clock = r->client->aws->clock;
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    struct sl_span part;
    struct sl_job job = job_of(r, &part);
    const struct sl_call call = {.arena = arena, .deadline_ms = clock->now_ms(clock) + TIMEOUT_MS};
    sl_job_run(r->client, &job, 1, &call);
    if (job.status != SL_OK)
        tell_failure(&job, error);
    sl_arena_destroy(arena);
    return job.status == SL_OK ? sl_buffer_span(&r->answer) : sl_span(NULL, 0);
}

/* A text that is_text has seen; NULL when the member is missing. */
static const char *keep(struct sl_span object, const char *name, struct sl_arena *arena)
{
    struct sl_span text = sl_json_unescape(sl_answer_text(object, name), arena);
    return text.len ? sl_arena_copy(arena, text) : NULL;
}

/* Whether the member is a text with something in it and without a NUL; or missing, if `may_lack`. */
static bool is_text(struct sl_span object, const char *name, bool may_lack)
{
    struct sl_span value = sl_json_walk_member(object, sl_span_str(name)),
                   text = sl_answer_text(object, name);
    if (!value.ptr || sl_span_is(value, "null"))
        return may_lack;
    return text.len && !memmem(text.ptr, text.len, "\\u0000", strlen("\\u0000"));
}

/* ---- opening ---- */

static enum sl_status open_client(struct sl_live *live, struct sl_client *client,
                                  const struct sl_service *service, const struct sl_live_options *options,
                                  struct sl_error *error)
{
    struct sl_url url;
    struct sl_arena *arena = live->aws->lasting;
    const char *name = service == &sl_service_streams ? "streams" : "tables";
    const char *text = sl_endpoint_target(arena, "dynamodb:", name, options->region, options->endpoint);
    enum sl_status status = sl_url_parse(sl_span_str(text), arena, &url, error);
    return status == SL_OK
               ? sl_client_init(client, live->aws,
                                &(struct sl_client_options){.service = service, .url = &url}, error)
               : status;
}

enum sl_status sl_live_open(const struct sl_live_options *options, struct sl_live **out,
                            struct sl_error *error)
{
    struct sl_live *live = calloc(1, sizeof(*live));
    if (!live)
        sl_die("out of memory: a reader of streams");
    live->vars = *options->vars;
    sl_log_init(&live->log, STDERR_FILENO, SL_WARN, SL_LOG_TEXT, sl_clock_system());
    live->aws = sl_aws_new(sl_clock_system(), &live->log, &live->vars, sl_sources_find);
    *out = live;
    enum sl_status status = open_client(live, &live->streams, &sl_service_streams, options, error);
    if (status == SL_OK)
        status = open_client(live, &live->tables, &sl_service_dynamodb, options, error);
    return status;
}

void sl_live_close(struct sl_live *live)
{
    if (!live)
        return;
    sl_client_clean_up(&live->streams);
    sl_client_clean_up(&live->tables);
    sl_aws_destroy(live->aws);
    sl_log_clean_up(&live->log);
    free(live);
}

/* ---- the four requests ---- */

static bool is_table(struct sl_span answer)
{
    struct sl_span table = sl_answer_container(answer, "Table", '{');
    return table.ptr && is_text(table, "LatestStreamArn", true);
}

enum sl_status sl_live_find_stream(struct sl_live *live, const char *table, struct sl_arena *arena,
                                   const char **arn, struct sl_error *error)
{
    struct request r;
    begin(&r, &live->tables, "DescribeTable", is_table);
    add(&r, "TableName", table);
    struct sl_span answer = ask(&r, error);
    *arn = keep(sl_answer_container(answer, "Table", '{'), "LatestStreamArn", arena);
    if (answer.ptr && !*arn)
        sl_fail(error, SL_REJECT, "NoStream", "the table %s has no stream: enable one (StreamSpecification)",
                table);
    else if (!answer.ptr)
        sl_error_context(error, "the table %s", table);
    end(&r);
    return *arn ? SL_OK : error->status;
}

static bool is_shard(struct sl_span shard)
{
    struct sl_span range = sl_answer_container(shard, "SequenceNumberRange", '{');
    return is_text(shard, "ShardId", false) && is_text(shard, "ParentShardId", true) && range.ptr &&
           is_text(range, "EndingSequenceNumber", true);
}

/* An empty list of shards is a stream that has just been made. */
static bool is_stream(struct sl_span answer)
{
    struct sl_span stream = sl_answer_container(answer, "StreamDescription", '{'), shard;
    struct sl_span list = sl_answer_container(stream, "Shards", '[');
    struct sl_json_walk walk = sl_json_walk(list);
    while (sl_json_walk_next(&walk, NULL, &shard))
        if (!is_shard(shard))
            return false;
    return list.ptr && is_text(stream, "LastEvaluatedShardId", true);
}

static void add_shards(struct sl_live_shards *s, struct sl_span list, struct sl_arena *arena)
{
    struct sl_json_walk walk = sl_json_walk(list);
    struct sl_span one;
    while (sl_json_walk_next(&walk, NULL, &one)) {
        struct sl_span range = sl_answer_container(one, "SequenceNumberRange", '{');
        const char *parent = keep(one, "ParentShardId", arena);
        SL_PUSH_IN(arena, s->list, s->n, s->room) = (struct sl_live_shard){
            .id = keep(one, "ShardId", arena),
            .parent = parent ? parent : "",
            .is_closed = sl_answer_text(range, "EndingSequenceNumber").len > 0,
        };
    }
}

/* A list that changes while its pages are read may name a shard twice: what was said last holds. */
static void drop_doubles(struct sl_live_shards *s, struct sl_map *ids)
{
    size_t n = s->n;
    s->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct sl_live_shard one = s->list[i];
        uint32_t at = sl_map_index(ids, sl_span_str(one.id));
        if (at == s->n)
            s->n++;
        else
            one.is_closed |= s->list[at].is_closed; /* none opens again */
        s->list[at] = one;
    }
}

/* Each shard after its parent, else in the list's order. A parent that the stream does not list is gone.
 * False when shards are each other's parents, or their own. */
static bool sort_parents_first(struct sl_live_shards *s, const struct sl_map *ids, struct sl_arena *arena)
{
    enum { NEW = 0, BEGUN, PLACED };
    struct sl_live_shard *sorted = sl_arena_alloc(arena, (s->n + 1) * sizeof(*sorted));
    uint32_t *line = sl_arena_alloc(arena, (s->n + 1) * sizeof(*line)); /* a shard, its parent, and so on */
    unsigned char *states = sl_arena_zalloc(arena, s->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t depth = 0;
        for (uint32_t at = (uint32_t)i; at != SL_MAP_NONE && states[at] != PLACED;
             at = sl_map_find(ids, sl_span_str(s->list[at].parent))) {
            if (states[at] == BEGUN)
                return false;
            states[at] = BEGUN;
            line[depth++] = at;
        }
        while (depth > 0) {
            states[line[--depth]] = PLACED;
            sorted[n++] = s->list[line[depth]];
        }
    }
    if (n)
        memcpy(s->list, sorted, n * sizeof(*sorted));
    return true;
}

static bool put_in_order(struct sl_live_shards *s, struct sl_arena *arena)
{
    struct sl_map ids;
    sl_map_init(&ids, arena, s->n);
    drop_doubles(s, &ids);
    return sort_parents_first(s, &ids, arena);
}

/* One page of the list. `*after` as in sl_live_told_shards. */
static enum sl_status take_shards(struct sl_span answer, struct sl_arena *arena, struct sl_live_shards *out,
                                  const char **after, struct sl_error *error)
{
    size_t before = out->n;
    struct sl_span stream = sl_answer_container(answer, "StreamDescription", '{'),
                   state = sl_answer_text(stream, "StreamStatus");
    add_shards(out, sl_answer_container(stream, "Shards", '['), arena);
    out->is_disabled = sl_span_is(state, "DISABLED") || sl_span_is(state, "DISABLING");
    *after = keep(stream, "LastEvaluatedShardId", arena);
    if (*after && out->n == before)
        return sl_fail(error, SL_RETRY, "BrokenAnswer",
                       "DescribeStream: a page without shards says that another follows");
    if (out->n > SHARDS)
        return sl_fail(error, SL_REJECT, "BrokenAnswer", "DescribeStream: the list of shards has no end");
    if (!*after && !put_in_order(out, arena))
        return sl_fail(error, SL_REJECT, "BrokenAnswer",
                       "DescribeStream: the answer was not understood: its shards are each other's parents");
    return SL_OK;
}

static void write_shards(struct request *r, const char *arn, const char *after)
{
    add(r, "StreamArn", arn);
    add(r, "ExclusiveStartShardId", after);
}

enum sl_status sl_live_list_shards(struct sl_live *live, const char *arn, struct sl_arena *arena,
                                   struct sl_live_shards *out, struct sl_error *error)
{
    const char *after = NULL;
    enum sl_status status;
    *out = (struct sl_live_shards){0};
    do {
        struct request r;
        begin(&r, &live->streams, "DescribeStream", is_stream);
        write_shards(&r, arn, after);
        struct sl_span answer = ask(&r, error);
        status = answer.ptr ? take_shards(answer, arena, out, &after, error) : error->status;
        end(&r);
    } while (status == SL_OK && after);
    return status;
}

static bool is_iterator(struct sl_span answer)
{
    return is_text(answer, "ShardIterator", false);
}

static void write_position(struct request *r, const struct sl_live_position *position)
{
    add(r, "StreamArn", position->stream_arn);
    add(r, "ShardId", position->shard);
    add(r, "ShardIteratorType", position->type);
    add(r, "SequenceNumber", position->sequence);
}

enum sl_status sl_live_get_iterator(struct sl_live *live, const struct sl_live_position *position,
                                    struct sl_arena *arena, const char **iterator, struct sl_error *error)
{
    struct request r;
    begin(&r, &live->streams, "GetShardIterator", is_iterator);
    write_position(&r, position);
    *iterator = keep(ask(&r, error), "ShardIterator", arena);
    end(&r);
    return *iterator ? SL_OK : error->status;
}

/* The two members of a page, found in one walk over it. */
static void find_page(struct sl_span answer, struct sl_span *records, struct sl_span *next)
{
    struct sl_json_walk walk = sl_json_walk(answer);
    struct sl_span name, value;
    *records = *next = (struct sl_span){NULL, 0};
    while (sl_json_walk_next(&walk, &name, &value)) {
        if (sl_json_text_is(name, SL_LIT("Records")) && value.ptr[0] == '[')
            *records = value;
        else if (sl_json_text_is(name, SL_LIT("NextShardIterator")))
            *next = value;
    }
}

/* Whether the value, as it is written, is a text with something in it and without a NUL. */
static bool is_good_text(struct sl_span value)
{
    return value.len > 2 && value.ptr[0] == '"' &&
           !memmem(value.ptr, value.len, "\\u0000", strlen("\\u0000"));
}

/* A page without a list of records is not an empty page. */
static bool has_records(struct sl_span answer)
{
    struct sl_span list, next;
    find_page(answer, &list, &next);
    return list.ptr && (!next.ptr || sl_span_is(next, "null") || is_good_text(next));
}

/* A record without a place in the stream is not a record: what follows it could not be found again. */
bool sl_live_is_page(struct sl_span answer)
{
    struct sl_span list, next, record;
    find_page(answer, &list, &next);
    struct sl_json_walk walk = sl_json_walk(list);
    while (sl_json_walk_next(&walk, NULL, &record))
        if (!is_text(sl_answer_container(record, "dynamodb", '{'), "SequenceNumber", false))
            return false;
    return has_records(answer);
}

static void write_records(struct request *r, const char *iterator)
{
    add(r, "ShardIterator", iterator);
    sl_json_add_integer(&r->body, "Limit", 1000);
}

enum sl_status sl_live_get_records(struct sl_live *live, const char *iterator, struct sl_arena *arena,
                                   struct sl_live_page *page, struct sl_error *error)
{
    struct request r;
    begin(&r, &live->streams, "GetRecords", sl_live_is_page);
    write_records(&r, iterator);
    struct sl_span answer = ask(&r, error);
    page->next_iterator = keep(answer, "NextShardIterator", arena);
    page->text = sl_span(sl_arena_copy(arena, answer), answer.len);
    end(&r);
    return answer.ptr ? SL_OK : error->status;
}

/* ---- requests that fly together ---- */

struct sl_live_ask {
    struct sl_live *live;
    struct request r;
    struct sl_arena *arena; /* the call's */
    struct sl_span part;
    struct sl_job job;
    struct sl_call call;
    struct sl_job_flight *flight; /* NULL: none flies */
    bool is_begun;                /* `r` has buffers */
};

struct sl_live_ask *sl_live_ask_new(struct sl_live *live)
{
    struct sl_live_ask *ask = calloc(1, sizeof(*ask));
    if (!ask)
        sl_die("out of memory: a request");
    ask->live = live;
    ask->arena = sl_arena_new(2 * 1024);
    return ask;
}

void sl_live_forget(struct sl_live_ask *a)
{
    if (a->is_begun)
        end(&a->r);
    a->is_begun = false;
}

void sl_live_ask_destroy(struct sl_live_ask *a)
{
    if (!a)
        return;
    if (a->flight)
        sl_job_abandon(a->flight);
    sl_live_forget(a);
    sl_arena_destroy(a->arena);
    free(a);
}

static void prepare(struct sl_live_ask *a, struct sl_client *client, const char *operation, check_fn is_good)
{
    sl_live_forget(a);
    sl_arena_reset(a->arena);
    begin(&a->r, client, operation, is_good);
    a->is_begun = true;
}

static void begin_flight(struct sl_live_ask *a)
{
    struct sl_clock *clock = a->r.client->aws->clock;
    a->job = job_of(&a->r, &a->part);
    a->call = (struct sl_call){.arena = a->arena, .deadline_ms = clock->now_ms(clock) + TIMEOUT_MS};
    a->flight = sl_job_begin(a->r.client, &a->job, &a->call);
}

void sl_live_ask_iterator(struct sl_live_ask *a, const struct sl_live_position *position)
{
    prepare(a, &a->live->streams, "GetShardIterator", is_iterator);
    write_position(&a->r, position);
    begin_flight(a);
}

void sl_live_ask_records(struct sl_live_ask *a, const char *iterator)
{
    prepare(a, &a->live->streams, "GetRecords", has_records);
    write_records(&a->r, iterator);
    begin_flight(a);
}

void sl_live_ask_shards(struct sl_live_ask *a, const char *arn, const char *after)
{
    prepare(a, &a->live->streams, "DescribeStream", is_stream);
    write_shards(&a->r, arn, after);
    begin_flight(a);
}

void sl_live_ask_children(struct sl_live_ask *a, const char *arn, const char *shard)
{
    prepare(a, &a->live->streams, "DescribeStream", is_stream);
    write_shards(&a->r, arn, NULL);
    sl_buffer_add_str(&a->r.body, ",\"ShardFilter\":{\"Type\":\"CHILD_SHARDS\"");
    add(&a->r, "ShardId", shard);
    sl_buffer_add_char(&a->r.body, '}');
    begin_flight(a);
}

void sl_live_ask_table(struct sl_live_ask *a, const char *table)
{
    prepare(a, &a->live->tables, "DescribeTable", is_table);
    add(&a->r, "TableName", table);
    begin_flight(a);
}

void sl_live_wait(struct sl_live *live, int64_t timeout_ms, int bell)
{
    (void)sl_http_wait_or(sl_aws_http(live->aws), timeout_ms, bell);
}

bool sl_live_is_over(struct sl_live_ask *a)
{
    if (!a->flight || !sl_job_turn(a->flight))
        return false;
    a->flight = NULL;
    return true;
}

bool sl_live_is_flying(const struct sl_live_ask *a)
{
    return a->flight;
}

int64_t sl_live_due_ms(const struct sl_live_ask *a)
{
    return a->flight ? sl_job_due_ms(a->flight) : INT64_MAX;
}

enum sl_status sl_live_outcome(const struct sl_live_ask *a, struct sl_error *error)
{
    if (a->job.status != SL_OK)
        tell_failure(&a->job, error);
    return a->job.status;
}

const char *sl_live_told_iterator(const struct sl_live_ask *a, struct sl_arena *arena)
{
    return keep(sl_buffer_span(&a->r.answer), "ShardIterator", arena);
}

struct sl_live_page sl_live_told_records(const struct sl_live_ask *a, struct sl_arena *arena)
{
    struct sl_span answer = sl_buffer_span(&a->r.answer), records, next;
    find_page(answer, &records, &next);
    if (!is_good_text(next))
        return (struct sl_live_page){.text = answer};
    struct sl_span text = sl_json_unescape(sl_span(next.ptr + 1, next.len - 2), arena);
    return (struct sl_live_page){.text = answer, .next_iterator = sl_arena_copy(arena, text)};
}

const char *sl_live_told_stream(const struct sl_live_ask *a, struct sl_arena *arena)
{
    return keep(sl_answer_container(sl_buffer_span(&a->r.answer), "Table", '{'), "LatestStreamArn", arena);
}

enum sl_status sl_live_told_shards(const struct sl_live_ask *a, struct sl_arena *arena,
                                   struct sl_live_shards *shards, const char **after, struct sl_error *error)
{
    return take_shards(sl_buffer_span(&a->r.answer), arena, shards, after, error);
}
