/* Routes that are set aside. DynamoDB Streams allows two readers a shard, so all routes of a table are in one
 * function, and a target that is down would hold the checkpoint for all of them. A route with "set_aside"
 * lets go instead: what it could not apply waits in a queue, in letters (handlers/dispatch/letter.h), which
 * are durable before the answer. Only routes whose end state does not depend on when their records come may
 * do that; the pipeline refuses the others at start.
 *
 * The breaker, of each such route in each process:
 *
 *     CLOSED -- a letter was written --> OPEN           a batch is one probe of FIRST records, in little time
 *     OPEN, the probe failed ---------> OPEN            all that is left of the batch is set aside uncalled
 *     OPEN, the probe was applied ----> OPEN, and SECOND records may come, in this batch or the next
 *     OPEN, these too ----------------> CLOSED
 *
 * So a target that is down costs the other routes one probe a batch. A restart forgets that the breaker was
 * open, and the route's whole share of the time is lost once more. */
#include "base/array.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/span.h"
#include "handlers/dispatch/dispatch_private.h"
#include "handlers/dispatch/letter.h"
#include "streams/record.h"

#define FIRST    10
#define SECOND   100
#define LEAST_MS 5000 /* of a probe; twice what the last good call took, if that is more */
/* SQS takes a message of 1 MiB. What holds one record alone may be as long as the queue takes. */
#define MESSAGE_BYTES ((size_t)8 * 1024 * 1024)

/* ---- whose fault it is ---- */

/* Codes with which a target refuses everything: permissions, keys, and what is not there. (A FATAL for want
 * of contrast may be poison; what Sluice itself finds wrong, such as KeySchema or TwoTables, is for people.)
 */
static const char *const environment[] = {
    "AccessDenied", "AccessDeniedException", "NotAuthorized", "NotAuthorizedException", "AuthorizationError",
    "AuthorizationErrorException", "UnauthorizedAccess", "OptInRequired", "InvalidSecurity",
    "InvalidSecurityException", "NotAuthorizedForSourceException", "NotAuthorizedForDetailTypeException",
    "AccountProblem", "AllAccessDisabled", "NotSignedUp",
    /* Keys, and the clock that they are dated by. */
    "NoCredentials", "InvalidCredentials", "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
    "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "InvalidToken",
    "MissingAuthenticationToken", "MissingAuthenticationTokenException", "IncompleteSignature",
    "IncompleteSignatureException", "InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure",
    "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "UntrustedCertificate",
    /* What is not there, or is switched off. */
    "ResourceNotFoundException", "TableNotFoundException", "QueueDoesNotExist", "NonExistentQueue",
    "QueueDeletedRecently", "NotFound", "NotFoundException", "EndpointDisabled",
    "PlatformApplicationDisabled", "OperationDisabledException", "NoSuchBucket", "NoSuchAccessPoint",
    "InvalidBucketState", "NoSuchIndex", "index_not_found_exception", "security_exception",
    "cluster_block_exception", SL_OUTAGE, "Http401", "Http403", "Http404", "Http407", "Http410"};

bool sl_aside_is_environment(const char *code)
{
    if (strncmp(code, "KMS", 3) == 0 || strncmp(code, "Kms", 3) == 0)
        return true;
    for (size_t i = 0; i < SL_COUNT(environment); i++)
        if (strcmp(environment[i], code) == 0)
            return true;
    return false;
}

/* The records of Kinesis have no sequence number of DynamoDB: late ones could not be told from those that tie
 * with them. */
static bool has_orders(struct sl_dispatch *d, struct sl_route *route)
{
    if (!d->n || sl_record_text(sl_batch_record(d->batch, 0), SL_FIELD_SEQUENCE_NUMBER).ptr)
        return true;
    if (!route->aside.has_warned)
        sl_log(d->p->options.log, SL_WARN,
               "route %s: records of a Kinesis stream cannot be set aside: their orders tie",
               route->config->name);
    route->aside.has_warned = true;
    return false;
}

/* A record that is tried alone, because a process may have died of it, is not let out of sight. */
bool sl_aside_takes(const struct sl_run *run, const struct sl_why *why)
{
    struct sl_dispatch *d = run->d;
    if (!run->route->aside.queue || d->late || d->is_ruined || run->share_ms || why->is_unproven ||
        !has_orders(d, run->route))
        return false;
    return (why->status == SL_RETRY && run->n_calls) ||
           (why->status == SL_FATAL && sl_aside_is_environment(why->code));
}

/* ---- the breaker ---- */

static int64_t probe_end(const struct sl_run *run)
{
    const struct sl_aside *aside = &run->route->aside;
    int64_t ms = 2 * aside->good_ms > LEAST_MS ? 2 * aside->good_ms : LEAST_MS;
    int64_t end = sl_dispatch_now(run->d) + ms;
    return end < run->deadline_ms ? end : run->deadline_ms;
}

static void pause_all(struct sl_run *run, size_t from, size_t to)
{
    const struct sl_why *why = sl_dispatch_why(run->d, SL_RETRY, "Paused", "the route is paused");
    for (; from < to; from++)
        if (run->entries[from].state == SL_ENTRY_PENDING) {
            run->entries[from].state = SL_ENTRY_ASIDE;
            run->entries[from].why = why;
        }
}

static size_t count_applied(const struct sl_run *run, size_t from, size_t to)
{
    size_t n = 0;
    for (; from < to; from++)
        n += run->entries[from].state == SL_ENTRY_APPLIED && !run->entries[from].is_left_out &&
             !run->entries[from].is_remembered;
    return n;
}

/* Returns where it ended. */
static size_t probe(struct sl_run *run, size_t from, size_t to)
{
    struct sl_aside *aside = &run->route->aside;
    const int64_t share = run->deadline_ms;
    size_t most = aside->passed < FIRST ? FIRST : SECOND;
    size_t end = to - from < most ? to : from + most;
    run->deadline_ms = probe_end(run);
    run->route->stats.probes++;
    sl_run_entries(run, from, end);
    run->deadline_ms = share;
    if (run->is_stopped)
        return end;
    aside->passed += count_applied(run, from, end);
    aside->is_open = aside->passed < FIRST + SECOND;
    return end;
}

void sl_aside_run(struct sl_run *run, size_t from, size_t to)
{
    const struct sl_aside *aside = &run->route->aside;
    bool may = aside->queue && !run->d->late && has_orders(run->d, run->route);
    if (may && run->route->config->is_paused) {
        pause_all(run, from, to);
        return;
    }
    while (may && aside->is_open && from < to && !run->is_stopped)
        from = probe(run, from, to);
    sl_run_entries(run, from, to);
}

void sl_aside_note(const struct sl_run *run)
{
    struct sl_dispatch *d = run->d;
    for (size_t i = 0; i < run->n; i++)
        if (run->entries[i].state == SL_ENTRY_ASIDE)
            SL_PUSH_IN(d->arena, d->asides, d->n_asides, d->room_asides) = (struct sl_parked){
                .index = run->entries[i].index, .route = run->route, .why = run->entries[i].why};
}

/* ---- letters ---- */

struct letter {
    struct sl_parked *list;
    size_t n;
    struct sl_span body;      /* absent: it is too long to be made */
    const struct sl_why *why; /* why it was not written; NULL: it is durable, or open */
    bool is_durable;
};

static struct sl_span raw_of(const struct sl_dispatch *d, const struct sl_parked *aside)
{
    return sl_record_text(sl_batch_record(d->batch, aside->index), SL_FIELD_RAW);
}

static void write_letter(const struct sl_dispatch *d, struct letter *letter)
{
    const struct sl_route *route = letter->list[0].route;
    const struct sl_why *why = letter->list[0].why;
    const struct sl_letter_origin origin =
        sl_letter_origin_of(sl_batch_record(d->batch, letter->list[0].index));
    char time[SL_TIME_BYTES];
    struct sl_buffer b;
    sl_time_text(d->clock->wall_ns(d->clock), time);
    sl_buffer_init(&b, MESSAGE_BYTES);
    sl_buffer_add_char(&b, '{');
    sl_json_add_integer(&b, "sluiceSetAside", SL_LETTER_FORMAT);
    sl_json_add_member(&b, "time", sl_span_str(time));
    sl_json_add_member(&b, "account", origin.account);
    sl_json_add_member(&b, "region", origin.region);
    sl_json_add_member(&b, "table", origin.table);
    sl_json_add_member(&b, "route", sl_span_str(route->config->name));
    sl_json_add_member(&b, "handler", sl_span_str(route->config->handler));
    sl_json_add_member(&b, "target", sl_span_str(route->stats.target));
    sl_json_add_integer(&b, "epoch", route->aside.epoch);
    sl_json_add_member(&b, "requestId", sl_span_str(d->request_id));
    sl_json_add_member(&b, "functionArn", sl_span_str(d->function_arn));
    sl_json_add_member(&b, "code", sl_span_str(why->code));
    sl_json_add_member(&b, "message", sl_span_str(why->text));
    sl_json_add_raw(&b, "records", SL_LIT("["));
    for (size_t i = 0; i < letter->n; i++) {
        sl_buffer_add_str(&b, i ? "," : "");
        sl_json_add_compact(&b, raw_of(d, &letter->list[i]));
    }
    sl_buffer_add_str(&b, "]}");
    if (!b.failed)
        letter->body = sl_span(sl_arena_copy(d->arena, sl_buffer_span(&b)), b.len);
    sl_buffer_clean_up(&b);
}

/* How many of the list go into the next letter. A message that cannot be repeated has a letter of its own. */
static size_t letter_of(const struct sl_dispatch *d, const struct sl_parked *list, size_t n)
{
    size_t i = 1, bytes = raw_of(d, list).len;
    if (sl_route_is_once_only(list->route))
        return 1;
    while (i < n && bytes + raw_of(d, &list[i]).len <= SL_LETTER_BYTES)
        bytes += raw_of(d, &list[i++]).len;
    return i;
}

static const struct sl_why *not_written(struct sl_dispatch *d, const struct letter *letter,
                                        enum sl_status status, const char *code, const char *text)
{
    const struct sl_why *why = letter->list[0].why;
    return sl_dispatch_why(
        d, status == SL_REJECT ? SL_FATAL : status, code,
        sl_arena_printf(d->arena, "cannot be set aside: %s; it failed: %s: %s", text, why->code, why->text));
}

/* One request to the queue for all that are open. False: none was left open for now. */
static bool send_open(struct sl_dispatch *d, struct sl_route *route, struct letter *letters, size_t n)
{
    struct sl_queue_port *queue = route->aside.queue;
    struct sl_message *messages = sl_arena_zalloc(d->arena, n * sizeof(*messages));
    struct sl_result *results = sl_arena_zalloc(d->arena, n * sizeof(*results));
    size_t *which = sl_arena_alloc(d->arena, n * sizeof(*which)), open = 0;
    struct sl_log *log = d->p->options.log;
    bool retries = false;
    for (size_t i = 0; i < n; i++)
        if (!letters[i].is_durable && (!letters[i].why || letters[i].why->status == SL_RETRY)) {
            messages[open].body = letters[i].body;
            which[open++] = i;
        }
    sl_route_enter(route);
    log->is_in_port = true;
    const int64_t began_ns = d->clock->now_ns(d->clock);
    queue->apply(queue, messages, open, results, &(struct sl_call){d->arena, d->end_ms});
    route->stats.sink_ns += (uint64_t)(d->clock->now_ns(d->clock) - began_ns);
    log->is_in_port = false;
    sl_route_leave(route);
    for (size_t i = 0; i < open; i++) {
        struct letter *letter = &letters[which[i]];
        letter->is_durable = results[i].status == SL_OK;
        letter->why =
            letter->is_durable
                ? NULL
                : not_written(d, letter, results[i].status, results[i].code ? results[i].code : "Unspecified",
                              results[i].text ? results[i].text : "no reason was given");
        retries = retries || results[i].status == SL_RETRY;
    }
    return retries;
}

static void send_letters(struct sl_dispatch *d, struct sl_route *route, struct letter *letters, size_t n)
{
    size_t most = route->aside.queue->max_message_bytes;
    for (size_t i = 0; i < n; i++)
        if (!letters[i].body.ptr || (most && letters[i].body.len > most))
            letters[i].why = not_written(
                d, &letters[i], SL_FATAL, "TooLarge",
                sl_arena_printf(d->arena, "the letter has more than the queue takes (%zu)", most));
    unsigned tries = 0;
    while (sl_dispatch_now(d) < d->end_ms && send_open(d, route, letters, n) &&
           sl_dispatch_back_off(d, tries++, d->end_ms)) {
    }
    for (size_t i = 0; i < n; i++)
        if (!letters[i].is_durable && !letters[i].why)
            letters[i].why = not_written(d, &letters[i], SL_RETRY, "DeadlineReached",
                                         "the time ended before its letter was written");
}

/* The asides of one route, in order. */
static void write_route(struct sl_dispatch *d, struct sl_parked *list, size_t n)
{
    struct sl_route *route = list[0].route;
    struct letter *letters = sl_arena_zalloc(d->arena, n * sizeof(*letters));
    size_t n_letters = 0, written = 0;
    const struct letter *failed = NULL;
    for (size_t i = 0; i < n; i += letters[n_letters - 1].n) {
        letters[n_letters++] = (struct letter){.list = &list[i], .n = letter_of(d, &list[i], n - i)};
        write_letter(d, &letters[n_letters - 1]);
    }
    send_letters(d, route, letters, n_letters);
    for (size_t i = 0; i < n_letters; i++) {
        written += letters[i].is_durable ? letters[i].n : 0;
        failed = failed || letters[i].is_durable ? failed : &letters[i];
        for (size_t k = 0; k < letters[i].n; k++) {
            letters[i].list[k].is_tried = true;
            letters[i].list[k].is_durable = letters[i].is_durable;
            if (!letters[i].is_durable)
                sl_dispatch_fail(d, letters[i].list[k].index, route, letters[i].why);
        }
    }
    d->n_letters += written;
    if (written && !route->config->is_paused) {
        route->aside.is_open = true;
        route->aside.passed = 0;
    }
    sl_route_enter(route);
    if (written)
        sl_log(d->p->options.log, SL_WARN, "%zu records set aside in %.*s: %s: %s", written,
               SL_ARG(route->aside.name), list[0].why->code, list[0].why->text);
    if (failed)
        sl_log(d->p->options.log, SL_ERROR, "%zu records could not be set aside: %s: %s", n - written,
               failed->why->code, failed->why->text);
    sl_route_leave(route);
}

void sl_aside_write(struct sl_dispatch *d, size_t from)
{
    while (from < d->n_asides) {
        size_t n = 0, below = 0;
        while (from + n < d->n_asides && d->asides[from + n].route == d->asides[from].route) {
            below += d->asides[from + n].index < d->k;
            n++;
        }
        if (below)
            write_route(d, &d->asides[from], below);
        from += n;
    }
}
