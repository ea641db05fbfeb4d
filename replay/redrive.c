/* `sluice redrive`: what ended in a failure queue or bucket, through the same handlers again, here. */
#include "base/json.h"
#include "replay/live.h"
#include "replay/note.h"
#include "replay/paths.h"
#include "replay/restrict.h"
#include "replay/session.h"
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
    struct sl_notes messages;
    struct sl_live *live; /* opened for the first pointer */
    struct sl_log log;
    struct sl_vars vars;
    struct sl_sinks sinks;
};

/* ---- pointers: the records are fetched from the stream ---- */

static enum sl_status open_live(struct redrive *r, const char *arn, struct sl_error *error)
{
    if (r->live)
        return SL_OK;
    /* arn:aws:dynamodb:REGION:... */
    const char *p = arn;
    for (int i = 0; i < 3 && p; i++)
        p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL;
    const char *region = r->region ? r->region
                         : p       ? sl_arena_copy(r->arena, sl_span(p, strcspn(p, ":")))
                                   : NULL;
    sl_log_init(&r->log, STDERR_FILENO, SL_WARN, SL_LOG_TEXT, sl_clock_system());
    sl_sinks_init(&r->sinks, sl_clock_system(), &r->log, &r->vars);
    return sl_live_open(&r->sinks, region, r->endpoint, &r->live, error);
}

static bool is_after(struct sl_span a, const char *b)
{
    size_t n = strlen(b);
    return a.len != n ? a.len > n : memcmp(a.ptr, b, n) > 0;
}

/* Adds the records of a GetRecords answer up to the message's last. True: that one is there. */
static bool add_records(struct sl_span answer, const char *last, struct sl_buffer *out, size_t *n)
{
    for (size_t i = 0;; i++) {
        char path[48];
        snprintf(path, sizeof(path), "Records[%zu]", i);
        struct sl_span record = sl_json_find(answer, path);
        if (!record.ptr)
            return false;
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
}

static enum sl_status explain_gone(const struct sl_note *m, struct sl_error *why, struct sl_error *error)
{
    bool is_gone = strcmp(why->code, "TrimmedDataAccessException") == 0 ||
                   strcmp(why->code, "ResourceNotFoundException") == 0;
    if (is_gone)
        return sl_fail(
            error, SL_REJECT, why->code,
            "the records %s to %s are gone from the stream, which keeps them 24 hours: only the table "
            "knows more (%s)",
            m->first, m->last, why->code);
    return sl_fail(error, why->status, why->code, "%s", why->text);
}

/* {"Records":[...]} of what the message points to. */
static enum sl_status fetch(struct redrive *r, const struct sl_note *m, struct sl_span *event,
                            struct sl_error *error)
{
    struct sl_error why = {.offset = SL_NO_OFFSET};
    const char *iterator = NULL;
    struct sl_buffer text;
    size_t n = 0;
    bool is_whole = false;
    enum sl_status status = open_live(r, m->stream_arn, error);
    if (status != SL_OK)
        return status;
    sl_buffer_init(&text, SL_INPUT_BYTES);
    sl_buffer_add_str(&text, "{\"Records\":[");
    status = sl_live_iterator(r->live, m->stream_arn, m->shard, "AT_SEQUENCE_NUMBER", m->first, r->arena,
                              &iterator, &why);
    while (status == SL_OK && iterator && !is_whole) {
        struct sl_span answer;
        status = sl_live_records(r->live, iterator, r->arena, &answer, &iterator, &why);
        if (status == SL_OK)
            is_whole = add_records(answer, m->last, &text, &n);
    }
    sl_buffer_add_str(&text, "]}");
    *event = sl_span(sl_arena_copy(r->arena, sl_buffer_span(&text)), text.len);
    sl_buffer_clean_up(&text);
    if (status != SL_OK)
        return explain_gone(m, &why, error);
    if (m->records && n != m->records)
        fprintf(stderr,
                "sluice redrive: the message speaks of %zu records, the stream has %zu from %s to %s\n",
                m->records, n, m->first, m->last);
    return SL_OK;
}

/* ---- running ---- */

static enum sl_status text_of(struct redrive *r, struct sl_note *m, struct sl_error *error)
{
    return m->kind == SL_NOTE_POINTER ? fetch(r, m, &m->text, error) : SL_OK;
}

static void print_plan(const struct sl_note *m, size_t i)
{
    if (m->kind == SL_NOTE_PARKED)
        printf("message %zu: one record, through the route %s\n", i + 1, m->route);
    else if (m->kind == SL_NOTE_EVENT)
        printf("message %zu: a whole event, through every route\n", i + 1);
    else
        printf("message %zu: records %s to %s of %s, through every route\n", i + 1, m->first, m->last,
               m->shard);
}

/* One message, in a session of its own: its route may be another. Rejections are bisected, so that a batch
 * says which of its records it was. */
static int run_one(struct redrive *r, struct sl_note *m, size_t i)
{
    struct sl_error error = {.offset = SL_NO_OFFSET};
    int fd = -1;
    struct sl_session session = {.verb = "redrive",
                                 .trace = r->trace,
                                 .handler_path = r->handler_path,
                                 .timeout_s = r->timeout_s,
                                 .is_quiet = true,
                                 .has_no_summary = true,
                                 .is_mapping_said = true,
                                 .arena = sl_arena_new(64 * 1024)};
    session.handler_path = sl_handler_path(session.arena, r->handler_path, r->config, NULL);
    sl_esm_settings_init(&session.settings);
    session.settings.max_retries = 0;
    session.settings.bisect = session.settings.report_failures = true;
    int result = SL_EXIT_BAD;
    if (sl_restrict_config(r->config, m->kind == SL_NOTE_PARKED ? m->route : NULL, session.arena,
                           &session.config, &fd, &error) == SL_OK &&
        text_of(r, m, &error) == SL_OK) {
        const struct sl_text_input input = {sl_arena_printf(session.arena, "message %zu", i + 1), m->text};
        result = sl_session_run(&session, &input, 1);
    } else {
        fprintf(stderr, "sluice redrive: %s\n", error.text);
    }
    sl_session_clean_up(&session);
    if (fd >= 0)
        close(fd);
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
            status = sl_notes_add(&r->messages, names[i], text, r->arena, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

static void clean_up(struct redrive *r)
{
    sl_live_close(r->live);
    sl_sinks_clean_up(&r->sinks);
    sl_log_clean_up(&r->log);
    sl_arena_destroy(r->arena);
}

int sl_verb_redrive(int argc, char **argv)
{
    struct redrive r = {.config = "sluice.json", .timeout_s = 60, .vars = {(const char *const *)environ}};
    const struct sl_flag flags[] = {
        {"config", SL_FLAG_TEXT, &r.config, "FILE", "the configuration (./sluice.json)"},
        {"dry-run", SL_FLAG_BOOL, &r.is_dry, NULL, "say what would be done"},
        {"timeout", SL_FLAG_INTEGER, &r.timeout_s, "S", "of an invocation (60)"},
        {"trace", SL_FLAG_TEXT, &r.trace, "FILE", "one JSON line per invocation, of the last message"},
        {"handler-path", SL_FLAG_TEXT, &r.handler_path, "FOLDERS", "where plugins are, separated by ':'"},
        {"region", SL_FLAG_TEXT, &r.region, "REGION", "of the stream (as its ARN says)"},
        {"endpoint-url", SL_FLAG_TEXT, &r.endpoint, "URL", "of DynamoDB (AWS's)"},
        {0},
    };
    const struct sl_usage usage = {
        "redrive [flags] MESSAGE...",
        "Runs again what ended in a failure queue, topic or bucket: parked records (each through the route "
        "that\n"
        "parked it) and the event source mapping's own failure records (fetched from the stream, or from "
        "the\n"
        "payload). MESSAGE is a file or -: a message's body, lines of them, or what `aws sqs "
        "receive-message`\n"
        "printed. Nothing is parked again. Exit status: 0 all done, 1 something failed again, 2 bad input.",
        flags};
    int n = 0, result = SL_EXIT_BAD;
    struct sl_error error = {.offset = SL_NO_OFFSET};
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    r.arena = sl_arena_new(64 * 1024);
    if (n == 0)
        sl_fail(&error, SL_REJECT, "Usage", "wants a MESSAGE (see sluice redrive --help)");
    if (error.status == SL_OK && read_messages(&r, argv + 1, (size_t)n, &error) == SL_OK)
        result = run_all(&r);
    else
        fprintf(stderr, "sluice redrive: %s\n", error.text);
    clean_up(&r);
    return result;
}
