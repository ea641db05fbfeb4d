/* Reads a row of a lease table, and what its checkpoint says. */
#include "live/lease/lease.h"

#include "base/arn.h"
#include "base/array.h"
#include "base/json.h"
#include "base/json_walk.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const sentinels[] = {[SL_LEASE_TRIM_HORIZON] = "TRIM_HORIZON",
                                        [SL_LEASE_LATEST] = "LATEST",
                                        [SL_LEASE_AT_TIMESTAMP] = "AT_TIMESTAMP",
                                        [SL_LEASE_AFTER] = NULL,
                                        [SL_LEASE_SHARD_END] = "SHARD_END"};

/* Attributes that only newer versions write: KCL 2 the first, KCL 3 the others (Lease, LeaseSerializer,
 * "single table format"). */
static const char *const newer[] = {"pendingCheckpointState",
                                    "throughputKBps",
                                    "checkpointOwner",
                                    "checkpointOwnerTimeoutTimestampMillis",
                                    "streamName",
                                    "entityType"};

/* ---- places ---- */

enum sl_lease_place sl_lease_place(const char *checkpoint)
{
    for (size_t i = 0; i < SL_COUNT(sentinels); i++)
        if (sentinels[i] && strcmp(checkpoint, sentinels[i]) == 0)
            return (enum sl_lease_place)i;
    return SL_LEASE_AFTER;
}

const char *sl_lease_checkpoint(enum sl_lease_place place, const char *sequence)
{
    return place == SL_LEASE_AFTER ? sequence : sentinels[place];
}

/* Sequence numbers are compared as integers: 9 is before 10. */
static int compare_digits(const char *a, const char *b)
{
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t n = strlen(a), m = strlen(b);
    return n != m ? (n < m ? -1 : 1) : strcmp(a, b);
}

static int rank(const char *checkpoint)
{
    enum sl_lease_place place = sl_lease_place(checkpoint);
    return place == SL_LEASE_SHARD_END ? 2 : place == SL_LEASE_AFTER ? 1 : 0;
}

bool sl_lease_is_before(const char *a, const char *b)
{
    int x = rank(a), y = rank(b);
    return x != y ? x < y : x == 1 && compare_digits(a, b) < 0;
}

int64_t sl_lease_born_ms(const char *key)
{
    static const char prefix[] = "shardId-";
    if (strncmp(key, prefix, strlen(prefix)) != 0)
        return 0;
    const char *digits = key + strlen(prefix);
    size_t n = strspn(digits, "0123456789");
    return n == 20 && digits[n] == '-' && digits[0] == '0' ? strtoll(digits, NULL, 10) : 0;
}

/* ---- one attribute ---- */

static struct sl_span attribute(struct sl_span item, const char *name)
{
    return sl_json_walk_member(item, sl_span_str(name));
}

/* The value of the type "S", "N" or "SS", as it is written; absent when it has another type. */
static struct sl_span value_of(struct sl_span item, const char *name, const char *type)
{
    return sl_json_walk_member(attribute(item, name), sl_span_str(type));
}

static bool is_printable(const char *text, size_t len, size_t max)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] > '~')
            return false;
    return len > 0 && len <= max;
}

/* The unescaped text of a JSON string; NULL when it is not a string of printable ASCII, of `max` bytes at
 * most. */
static const char *text_of(struct sl_span string, size_t max, struct sl_arena *arena)
{
    if (string.len < 2 || *string.ptr != '"')
        return NULL;
    struct sl_span text = sl_json_unescape(sl_span(string.ptr + 1, string.len - 2), arena);
    return is_printable(text.ptr, text.len, max) ? sl_arena_copy(arena, text) : NULL;
}

/* A whole number from 0 on, one below the greatest at most: one more can be written. */
static bool read_number(struct sl_span item, const char *name, int64_t *out)
{
    struct sl_span number = value_of(item, name, "N");
    char digits[24];
    if (number.len < 3 || number.len - 2 > 18 || *number.ptr != '"')
        return false;
    memcpy(digits, number.ptr + 1, number.len - 2);
    digits[number.len - 2] = '\0';
    *out = strtoll(digits, NULL, 10);
    return strspn(digits, "0123456789") == number.len - 2;
}

static bool is_checkpoint(const char *text)
{
    return sl_lease_place(text) != SL_LEASE_AFTER || strspn(text, "0123456789") == strlen(text);
}

static bool read_parents(struct sl_span item, struct sl_arena *arena, struct sl_lease *out)
{
    struct sl_span list = value_of(item, "parentShardId", "SS"), one;
    if (!attribute(item, "parentShardId").ptr)
        return true;
    struct sl_json_walk walk = sl_json_walk(list);
    size_t n = 0;
    while (sl_json_walk_next(&walk, NULL, &one))
        n++;
    out->parents = sl_arena_alloc(arena, (n + 1) * sizeof(*out->parents));
    walk = sl_json_walk(list);
    while (sl_json_walk_next(&walk, NULL, &one)) {
        out->parents[out->n_parents] = text_of(one, SL_LEASE_KEY_BYTES, arena);
        if (!out->parents[out->n_parents++])
            return false;
    }
    return n > 0;
}

/* ---- one row ---- */

static enum sl_status refuse(struct sl_error *error, const char *key, const char *what)
{
    return sl_fail(error, SL_REJECT, "NotALease",
                   "the row %s is not a lease: %s. If nothing else uses the table, delete the row", key,
                   what);
}

/* Kinesis' shards have a number of twelve digits and nothing after it. */
static bool is_of_kinesis(const char *key)
{
    const char *digits = key + strlen("shardId-");
    return strncmp(key, "shardId-", strlen("shardId-")) == 0 && strlen(digits) == 12 &&
           strspn(digits, "0123456789") == 12;
}

static enum sl_status refuse_kinesis(const char *key, struct sl_error *error)
{
    return sl_fail(error, SL_REJECT, "KinesisLeases",
                   "the row %s is of a Kinesis stream, not of a stream of DynamoDB. Name another table", key);
}

static enum sl_status check_kind(struct sl_span item, const char *key, struct sl_error *error)
{
    for (size_t i = 0; i < SL_COUNT(newer); i++)
        if (attribute(item, newer[i]).ptr)
            return sl_fail(error, SL_REJECT, "NewerLeases",
                           "the row %s has the attribute %s: the table is one of KCL 2 or 3, whose protocol "
                           "is another. Name another table; `sluice leases` carries its places over",
                           key, newer[i]);
    return is_of_kinesis(key) ? refuse_kinesis(key, error) : SL_OK;
}

static enum sl_status read_rest(struct sl_span item, struct sl_arena *arena, struct sl_lease *out,
                                struct sl_error *error)
{
    int64_t sub = 0;
    if (!read_number(item, "leaseCounter", &out->counter))
        return refuse(error, out->key, "its leaseCounter is not a whole number");
    out->owner = text_of(value_of(item, "leaseOwner", "S"), SL_LEASE_OWNER_BYTES, arena);
    if (!out->owner && attribute(item, "leaseOwner").ptr)
        return refuse(error, out->key, "its leaseOwner is not a worker's name");
    out->checkpoint = text_of(value_of(item, "checkpoint", "S"), SL_LEASE_CHECKPOINT_BYTES, arena);
    if (!out->checkpoint || !is_checkpoint(out->checkpoint))
        return refuse(error, out->key,
                      "its checkpoint is neither a sequence number nor TRIM_HORIZON, LATEST, AT_TIMESTAMP or "
                      "SHARD_END");
    if (attribute(item, "checkpointSubSequenceNumber").ptr &&
        (!read_number(item, "checkpointSubSequenceNumber", &sub) || sub != 0))
        return refuse(error, out->key, "its checkpointSubSequenceNumber is not 0");
    if (!read_parents(item, arena, out))
        return refuse(error, out->key, "its parentShardId is not a set of shards' ids");
    struct sl_span stream = value_of(item, "sluiceStream", "S");
    out->stream = text_of(stream, 1024, arena);
    if (!out->stream && attribute(item, "sluiceStream").ptr)
        return refuse(error, out->key, "its sluiceStream is not an ARN");
    if (attribute(item, "sluiceSince").ptr && !read_number(item, "sluiceSince", &out->since_ms))
        return refuse(error, out->key, "its sluiceSince is not a time");
    return SL_OK;
}

enum sl_status sl_lease_read(struct sl_span item, struct sl_arena *arena, struct sl_lease *out,
                             struct sl_error *error)
{
    *out = (struct sl_lease){.key = text_of(value_of(item, "leaseKey", "S"), SL_LEASE_KEY_BYTES, arena)};
    if (!out->key)
        return sl_fail(
            error, SL_REJECT, "NotALease",
            "a row has no leaseKey with a shard's id: the table is not a lease table. Name another");
    enum sl_status status = check_kind(item, out->key, error);
    return status == SL_OK ? read_rest(item, arena, out, error) : status;
}

/* ---- rows of KCL 3 ---- */

const char *sl_lease_stream_name(const char *stream_arn, struct sl_arena *arena)
{
    static const char before_table[] = ":table/", before_label[] = "/stream/";
    struct sl_span arn = sl_span_str(stream_arn), region = sl_arn_part(arn, 3), account = sl_arn_part(arn, 4);
    const char *table = strstr(stream_arn, before_table), *label = table ? strstr(table, before_label) : NULL;
    if (!label)
        return "";
    table += strlen(before_table);
    char *name = sl_arena_printf(arena, "%.*s:%.*s$%.*s$%.*s$%s:1", SL_ARG(account), SL_ARG(region),
                                 SL_ARG(account), (int)(label - table), table, label + strlen(before_label));
    for (char *c = strrchr(name, '$'); c < name + strlen(name) - 2; c++)
        *c = *c == ':' ? '_' : *c;
    return name;
}

enum sl_status sl_lease_read_newer(struct sl_span item, const char *stream_arn, struct sl_arena *arena,
                                   struct sl_lease *out, bool *is_one, struct sl_error *error)
{
    const char *stream = text_of(value_of(item, "streamName", "S"), SL_LEASE_KEY_BYTES, arena),
               *type = text_of(value_of(item, "entityType", "S"), SL_LEASE_KEY_BYTES, arena),
               *key = text_of(value_of(item, "leaseKey", "S"), 2 * SL_LEASE_KEY_BYTES, arena);
    *is_one = key && attribute(item, "checkpoint").ptr && (!type || strcasecmp(type, "LEASE") == 0) &&
              (!stream || strcmp(stream, sl_lease_stream_name(stream_arn, arena)) == 0);
    if (!*is_one)
        return SL_OK;
    *out = (struct sl_lease){
        .key = stream ? text_of(value_of(item, "shardId", "S"), SL_LEASE_KEY_BYTES, arena) : key};
    if (!out->key)
        return refuse(error, key, "its shardId is not a shard's id");
    if (is_of_kinesis(out->key))
        return refuse_kinesis(out->key, error);
    return read_rest(item, arena, out, error);
}
