/* `sluice erase`: items are forgotten, wherever the configuration's routes keep them. */
#include "base/array.h"
#include "base/disk.h"
#include "base/json_write.h"
#include "base/time.h"
#include "cli/erase/routes.h"
#include "cli/verbs.h"
#include "data/erase/erase.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define SECRET_BYTES 32
#define REPORT_BYTES ((size_t)64 * 1024 * 1024)
#define RUN_BYTES    64
#define SECRET       "SLUICE_ERASE_KEY"

struct erase {
    struct sl_command command;
    struct sl_flag_list key, consumers;
    const char *keys_file, *match, *report;
    int64_t max_lag_s;
    bool is_plan;

    struct sl_named_keys keys;
    char run[RUN_BYTES];
    char secret[SECRET_BYTES];
    struct sl_erase_job job;
};

/* ---- before ---- */

/* Digests of keys that can be guessed prove nothing without a secret, and with it they can be checked later.
 */
static enum sl_status choose_secret(struct erase *e, struct sl_error *error)
{
    const char *given = sl_vars_get(&e->command.vars, SECRET);
    unsigned char random[4];
    if (getrandom(e->secret, sizeof(e->secret), 0) != (ssize_t)sizeof(e->secret) ||
        getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return sl_fail(error, SL_FATAL, "NoRandom", "there are no random numbers to be had");
    e->job.secret = given ? sl_span_str(given) : sl_span(e->secret, sizeof(e->secret));
    char time[SL_TIME_BYTES];
    sl_time_text(e->command.clock->wall_ns(e->command.clock), time);
    snprintf(e->run, sizeof(e->run), "%.4s%.2s%.2sT%.2s%.2s%.2sZ-%02x%02x%02x%02x", time, time + 5, time + 8,
             time + 11, time + 14, time + 17, random[0], random[1], random[2], random[3]);
    return SL_OK;
}

/* What is still in the table would be written again by the next change. */
static enum sl_status check_table(struct erase *e, struct sl_error *error)
{
    struct sl_table_port *port = NULL;
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    enum sl_status status =
        sl_target_table_to_read(&e->command.sinks, sl_span_str(sl_command_table(&e->command)), &port, error);
    size_t n_there = 0, first = 0;
    for (size_t i = 0; status == SL_OK && i < e->keys.n; i += SL_ERASE_ROWS) {
        size_t n = e->keys.n - i < SL_ERASE_ROWS ? e->keys.n - i : SL_ERASE_ROWS;
        struct sl_table_op ops[SL_ERASE_ROWS];
        struct sl_result *results;
        for (size_t k = 0; k < n; k++)
            ops[k] = (struct sl_table_op){.verb = SL_TABLE_GET, .key = e->keys.texts[i + k]};
        sl_arena_reset(arena);
        status = sl_erase_get(port, e->command.clock, ops, n, arena, &results, error);
        for (size_t k = 0; k < n && status == SL_OK; k++)
            if (results[k].item.ptr && !n_there++)
                first = i + k;
    }
    if (status == SL_OK && n_there)
        status = sl_fail(
            error, SL_REJECT, "StillThere",
            "%s still has %zu of the %zu items, among them %.*s: delete them there, wait until the consumer "
            "has handled that, and run this again",
            e->command.table, n_there, e->keys.n, SL_ARG(e->keys.texts[first]));
    if (port)
        port->close(port);
    sl_arena_destroy(arena);
    return status;
}

static enum sl_status find_items(struct erase *e, struct sl_error *error)
{
    struct sl_buffer matched;
    enum sl_status status = SL_OK;
    sl_buffer_init_in(&matched, e->command.arena, REPORT_BYTES);
    if (e->match)
        status = sl_erase_match(&e->command, e->match, &matched, error);
    if (status == SL_OK)
        status =
            sl_keys_read(&e->key, e->keys_file, sl_buffer_span(&matched), e->command.arena, &e->keys, error);
    return status;
}

/* ---- afterwards ---- */

static void add_items(struct erase *e, struct sl_buffer *out)
{
    struct sl_sha256 sha;
    struct sl_sha256_key secret = {NULL, NULL};
    sl_sha256_init(&sha);
    sl_sha256_key_set(&sha, &secret, e->job.secret);
    sl_buffer_add_str(out, ",\"items\":[");
    for (size_t i = 0; i < e->keys.n; i++) {
        char hex[SL_SHA256_HEX];
        sl_erase_pseudonym(&sha, &secret, e->keys.digests[i], hex);
        sl_buffer_printf(out, "%s\"%s\"", i ? "," : "", hex);
    }
    sl_buffer_add_char(out, ']');
    sl_sha256_key_clean_up(&secret);
    sl_sha256_clean_up(&sha);
}

/* Digests, counts and what is to be done: nothing of the items. */
static enum sl_status write_report(struct erase *e, bool is_whole, struct sl_error *error)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 2 * REPORT_BYTES);
    sl_buffer_add_char(&text, '{');
    sl_json_add_member(&text, "erasure", sl_span_str(e->run));
    sl_json_add_raw(&text, "plan", e->is_plan ? SL_LIT("true") : SL_LIT("false"));
    sl_json_add_raw(&text, "complete",
                    is_whole && !e->is_plan && !e->job.n_person ? SL_LIT("true") : SL_LIT("false"));
    add_items(e, &text);
    sl_buffer_add_str(&text, ",\"routes\":[");
    sl_buffer_add_span(&text, sl_buffer_span(&e->job.routes));
    sl_buffer_add_str(&text, "],\"to_do\":[");
    sl_buffer_add_span(&text, sl_buffer_span(&e->job.person));
    sl_buffer_add_str(&text, "]}\n");
    int err = sl_disk_replace_path(e->report, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    return err ? sl_fail(error, SL_FATAL, sl_disk_code(err), "%s: cannot be written: %s", e->report,
                         strerror(err))
               : SL_OK;
}

static void say_end(const struct erase *e, enum sl_status status)
{
    const char *s = e->keys.n == 1 ? "" : "s";
    if (status != SL_OK)
        return;
    if (e->is_plan)
        printf("%zu item%s: nothing was written; run it without --plan\n", e->keys.n, s);
    else if (e->job.n_person)
        printf("%zu item%s: %zu thing%s left for a person (to do)\n", e->keys.n, s, e->job.n_person,
               e->job.n_person == 1 ? " is" : "s are");
    else
        printf("%zu item%s: erased, and nothing is left in what these routes keep\n", e->keys.n, s);
}

static enum sl_status run(struct erase *e, struct sl_error *error)
{
    enum sl_status status = choose_secret(e, error);
    if (status == SL_OK)
        status = sl_command_open(&e->command, "erase", NULL, error);
    if (status == SL_OK)
        status = find_items(e, error);
    if (status == SL_OK && e->command.table)
        status = check_table(e, error);
    if (status != SL_OK)
        return status;
    e->job.command = &e->command;
    e->job.keys = &e->keys;
    e->job.run = e->run;
    e->job.consumers = &e->consumers;
    e->job.max_lag_s = e->max_lag_s;
    e->job.is_plan = e->is_plan;
    if (!e->command.table)
        sl_erase_ask(&e->job, "the table",
                     "nobody asked whether the items are deleted there, and that is handled: give --table");
    status = sl_erase_routes(&e->job, error);
    struct sl_error why = SL_NO_ERROR;
    if (e->report && write_report(e, status == SL_OK, &why) != SL_OK && status == SL_OK)
        status = sl_fail(error, SL_FATAL, why.code, "%s", why.text);
    say_end(e, status);
    return status;
}

int sl_verb_erase(int argc, char **argv)
{
    struct erase e = {.command = {.verb = "erase", .config = "sluice.json"}, .max_lag_s = -1};
    struct sl_error error = SL_NO_ERROR;
    const struct sl_flag flags[] = {
        {"Which items", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"key", SL_FLAG_LIST, &e.key, "KEY", "an item's whole key, as {\"PK\":\"a\"}; may be repeated"},
        {"keys", SL_FLAG_TEXT, &e.keys_file, "FILE", "a file of such keys, one a line; - is standard input"},
        {"match", SL_FLAG_TEXT, &e.match, "PATTERN",
         "those of which an archived image matches: {\"email\":{\"S\":[\"a@example.com\"]}}"},
        {"Where", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"config", SL_FLAG_TEXT, &e.command.config, "FILE", "the configuration (./sluice.json)"},
        {"table", SL_FLAG_TEXT, &e.command.table, "NAME",
         "the table that the routes follow: the items have to be deleted there"},
        {"region", SL_FLAG_REGION, &e.command.region, "REGION", "region of the table (AWS_REGION)"},
        {"endpoint-url", SL_FLAG_URL, &e.command.endpoint, "URL", "where DynamoDB is, for the table"},
        {"handler-path", SL_FLAG_TEXT, &e.command.handler_path, "FOLDERS",
         "where plugins are, as for replay"},
        {"consumer", SL_FLAG_LIST, &e.consumers, "FILE",
         "how far the consumer is, as for repair; may be repeated"},
        {"max-lag", SL_FLAG_INTEGER, &e.max_lag_s, "S",
         "or: it is so many seconds behind at most, as for repair"},
        {"How", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"plan", SL_FLAG_BOOL, &e.is_plan, NULL, "say what is held where, and write nothing"},
        {"report", SL_FLAG_TEXT, &e.report, "FILE", "write what was done, with digests and no values"},
        {.type = SL_FLAG_END},
    };
    static const struct sl_flag_range ranges[] = {{"max-lag", 0, 1000000000}, {NULL, 0, 0}};
    const struct sl_usage usage = {
        .line = "erase [flags]",
        .summary = "Erases items that were deleted from what the routes of a configuration keep of them: "
                   "archives are "
                   "rewritten, with their older versions, rows are removed, parked copies go; what a person "
                   "has to do is "
                   "said. Then all is read again for proof. It may be ended and run again at any time. Exit "
                   "status: 0 "
                   "nothing is left, 1 failed, 2 bad usage, 3 a person has something to do.",
        .example = "sluice erase --plan --table orders --keys people.jsonl",
        .flags = flags,
        .ranges = ranges,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    sl_command_begin(&e.command);
    sl_command_heed_signals(-1, NULL);
    sl_buffer_init(&e.job.routes, REPORT_BYTES);
    sl_buffer_init(&e.job.person, REPORT_BYTES);
    enum sl_status status = run(&e, &error);
    if (status != SL_OK)
        (void)sl_flags_complain("erase", &error);
    result = status == SL_REJECT ? SL_EXIT_BAD
             : status != SL_OK   ? SL_EXIT_FAILED
             : e.job.n_person    ? SL_EXIT_UNPROVEN
                                 : SL_EXIT_OK;
    sl_buffer_clean_up(&e.job.routes);
    sl_buffer_clean_up(&e.job.person);
    sl_command_end(&e.command);
    return sl_flags_end("erase", result);
}
