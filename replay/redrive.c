/* `sluice redrive`: runs the records in a failure queue, topic or bucket through the handlers again. */
#include "base/json.h"
#include "base/json_walk.h"
#include "replay/config/restrict.h"
#include "replay/sandbox/paths.h"
#include "replay/session.h"
#include "replay/source/dead_letters.h"
#include "replay/source/input.h"
#include "replay/source/live.h"
#include "replay/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct redrive {
    const char *config, *handler_path, *region, *endpoint, *trace;
    bool is_dry;
    int64_t timeout_s;
    struct sl_arena *arena;
    struct sl_dead_letters messages;
    struct sl_live *live; /* opened for the first pointer */
};

/* ---- pointers: their records are read from the stream ---- */

static enum sl_status open_live(struct redrive *r, const char *arn, struct sl_error *error)
{
    if (r->live)
        return SL_OK;
    /* arn:aws:dynamodb:REGION:... */
    const char *p = arn;
    for (int i = 0; i < 3 && p; i++)
        p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL;
    struct sl_live_options options = {.environment = environ, .region = r->region, .endpoint = r->endpoint};
    if (!options.region && p)
        options.region = sl_arena_copy(r->arena, sl_span(p, strcspn(p, ":")));
    return sl_live_open(&options, &r->live, error);
}

static bool is_after(struct sl_span a, const char *b)
{
    size_t n = strlen(b);
    return a.len != n ? a.len > n : memcmp(a.ptr, b, n) > 0;
}

/* Adds the records of a GetRecords answer, up to the last one of the message. True: that one was reached. */
static bool add_records(struct sl_span answer, const char *last, struct sl_buffer *out, size_t *n)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_find(answer, "Records"));
    struct sl_span record;
    while (sl_json_walk_next(&walk, NULL, &record)) {
        struct sl_span id = sl_json_find(record, "dynamodb.SequenceNumber");
        id = id.len >= 2 ? sl_span(id.ptr + 1, id.len - 2) : id;
        if (is_after(id, last))
            return true;
        sl_buffer_add_str(out, *n ? "," : "");
        sl_buffer_add_span(out, record);
        ++*n;
        if (sl_span_is(id, last))
            return true;
    }
    return false;
}

static enum sl_status explain_gone(const struct sl_dead_letter *m, struct sl_error *why,
                                   struct sl_error *error)
{
    bool is_gone = strcmp(why->code, "TrimmedDataAccessException") == 0 ||
                   strcmp(why->code, "ResourceNotFoundException") == 0;
    if (is_gone)
        return sl_fail(
            error, SL_REJECT, why->code,
            "the records %s to %s are gone from the stream, which keeps them 24 hours; take their items from "
            "the table (%s)",
            m->first, m->last, why->code);
    return sl_fail(error, why->status, why->code, "%s", why->text);
}

/* Reads the records that the message points to: {"Records":[...]}. */
static enum sl_status fetch(struct redrive *r, const struct sl_dead_letter *m, struct sl_span *event,
                            struct sl_error *error)
{
    struct sl_error why = SL_NO_ERROR;
    const char *iterator = NULL;
    struct sl_buffer text;
    size_t n = 0;
    bool is_whole = false;
    enum sl_status status = open_live(r, m->stream_arn, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init(&text, SL_INPUT_BYTES);
    sl_buffer_add_str(&text, "{\"Records\":[");
    const struct sl_live_position first = {m->stream_arn, m->shard, "AT_SEQUENCE_NUMBER", m->first};
    status = sl_live_get_iterator(r->live, &first, r->arena, &iterator, &why);
    while (status == SL_OK && iterator && !is_whole) {
        struct sl_live_page page;
        status = sl_live_get_records(r->live, iterator, r->arena, &page, &why);
        if (status != SL_OK)
            break;
        is_whole = add_records(page.text, m->last, &text, &n);
        iterator = page.next_iterator;
    }
    sl_buffer_add_str(&text, "]}");
    *event = sl_span(sl_arena_copy(r->arena, sl_buffer_span(&text)), text.len);
    sl_buffer_clean_up(&text);
    if (status != SL_OK)
        return explain_gone(m, &why, error);
    if (m->records && n != m->records)
        fprintf(stderr, "sluice redrive: the message names %zu records, the stream has %zu from %s to %s\n",
                m->records, n, m->first, m->last);
    return SL_OK;
}

/* ---- running ---- */

static enum sl_status text_of(struct redrive *r, struct sl_dead_letter *m, struct sl_error *error)
{
    return m->kind == SL_DEAD_LETTER_POINTER ? fetch(r, m, &m->text, error) : SL_OK;
}

static void print_plan(const struct sl_dead_letter *m, size_t i)
{
    if (m->kind == SL_DEAD_LETTER_PARKED)
        printf("message %zu: one record, through the route %s\n", i + 1, m->route);
    else if (m->kind == SL_DEAD_LETTER_EVENT)
        printf("message %zu: a whole event, through every route\n", i + 1);
    else
        printf("message %zu: records %s to %s of %s, through every route\n", i + 1, m->first, m->last,
               m->shard);
}

/* Runs one message, in a session of its own, because its route may be another. Failed batches are bisected,
 * to find the records that fail. */
static int run_one(struct redrive *r, struct sl_dead_letter *m, size_t i)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_restricted config = {.fd = -1};
    struct sl_session session = {.verb = "redrive",
                                 .trace = r->trace,
                                 .handler_path = r->handler_path,
                                 .timeout_s = r->timeout_s,
                                 .is_quiet = true,
                                 .has_no_summary = true,
                                 .sets_report_failures = true,
                                 .arena = sl_arena_new(64 * 1024)};
    session.handler_path = sl_paths_handlers(session.arena, r->handler_path, r->config, NULL);
    sl_esm_settings_init(&session.settings);
    session.settings.max_retries = 0;
    session.settings.bisect = session.settings.report_failures = true;
    enum sl_status status = sl_restrict_config(r->config, m->kind == SL_DEAD_LETTER_PARKED ? m->route : NULL,
                                               session.arena, &config, &error);
    session.config = config.path;
    if (status == SL_OK)
        status = text_of(r, m, &error);
    const char *name = sl_arena_printf(session.arena, "message %zu", i + 1);
    struct sl_inputs input = {.names = &name, .texts = &m->text, .n = 1};
    int result = status == SL_OK ? sl_session_run(&session, &input) : sl_flags_complain("redrive", &error);
    sl_session_clean_up(&session);
    if (config.fd >= 0)
        close(config.fd);
    return result;
}

static int run_all(struct redrive *r)
{
    int worst = SL_EXIT_OK;
    size_t done = 0;
    for (size_t i = 0; i < r->messages.n; i++) {
        print_plan(&r->messages.list[i], i);
        fflush(stdout);
        if (r->is_dry)
            continue;
        int result = run_one(r, &r->messages.list[i], i);
        worst = result > worst ? result : worst;
        printf("message %zu: %s\n", i + 1, result == SL_EXIT_OK ? "done" : "failed again");
        done += result == SL_EXIT_OK;
    }
    if (!r->is_dry)
        printf("%zu of %zu messages are done%s\n", done, r->messages.n,
               done == r->messages.n ? ": they can be deleted" : "");
    return worst;
}

static enum sl_status read_messages(struct redrive *r, char **names, size_t n, struct sl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        struct sl_span text;
        enum sl_status status = sl_input_load(names[i], r->arena, &text, error);
        if (status == SL_OK)
            status = sl_dead_letters_add(&r->messages, names[i], text, r->arena, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

int sl_verb_redrive(int argc, char **argv)
{
    struct redrive r = {.config = "sluice.json", .timeout_s = 60};
    const struct sl_flag flags[] = {
        {"config", SL_FLAG_TEXT, &r.config, "FILE", "the configuration (./sluice.json)"},
        {"dry-run", SL_FLAG_BOOL, &r.is_dry, NULL, "print what would be done"},
        {"timeout", SL_FLAG_INTEGER, &r.timeout_s, "S", "timeout of an invocation, 1 to 900 (60)"},
        {"trace", SL_FLAG_TEXT, &r.trace, "FILE", "write one JSON line per invocation, of the last message"},
        {"handler-path", SL_FLAG_TEXT, &r.handler_path, "FOLDERS", "folders of plugins, separated by ':'"},
        {"region", SL_FLAG_TEXT, &r.region, "REGION", "region of the stream (as in its ARN)"},
        {"endpoint-url", SL_FLAG_TEXT, &r.endpoint, "URL", "endpoint of DynamoDB (AWS's)"},
        {0},
    };
    const struct sl_usage usage = {
        .line = "redrive [flags] MESSAGE...",
        .summary =
            "Runs again what ended in a failure queue, topic or bucket: parked records, each through the "
            "route\n"
            "that parked it, and failure records of the event source mapping, whose records are read from "
            "the\n"
            "stream or from the payload. MESSAGE is a file, or - for standard input: the body of a message, "
            "one\n"
            "body a line, or what `aws sqs receive-message` printed. Nothing is parked a second time. Exit\n"
            "status: 0 all done, 1 something failed again, 2 bad input.",
        .flags = flags,
        .operand = "MESSAGE",
        .least = 1,
    };
    int n, result;
    struct sl_error error = SL_NO_ERROR;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    r.arena = sl_arena_new(64 * 1024);
    result = read_messages(&r, argv + 1, (size_t)n, &error) == SL_OK ? run_all(&r)
                                                                     : sl_flags_complain("redrive", &error);
    sl_live_close(r.live);
    sl_arena_destroy(r.arena);
    return result;
}
