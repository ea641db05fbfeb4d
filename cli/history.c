/* `sluice history`: what an archive holds of some items, change by change, or as they were at a time. */
#include "base/error.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/keys.h"
#include "cli/moment.h"
#include "cli/verbs.h"
#include "data/recall/diff.h"
#include "data/recall/story.h"
#include "live/sandbox/paths.h"
#include "streams/names.h"
#include "streams/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_MS     30000
#define SAY_MS      10000
#define RETRY_MS    1000
#define STUCK_MS    600000
#define LINE_BYTES  ((size_t)64 * 1024 * 1024)
#define SHOWN_BYTES 160 /* of a value, for people */

struct history {
    struct sl_command command;
    struct sl_flag_list key;
    const char *place; /* of the archive */
    const char *keys_file, *since, *until, *at, *ttl_attribute;
    bool is_json, is_quiet, with_index;

    int64_t since_ms, until_ms, at_ms; /* 0: not given */
    struct sl_named_keys keys;
    struct sl_recall *recall;
    struct sl_story *story;
    char *temp;
    struct sl_arena *arena; /* of one change */
    struct sl_buffer line;
    size_t told; /* the item of the change that was told last */
    size_t n_changes;
    size_t n_gaps;

    /* With --at, of the item: */
    struct sl_buffer then; /* its image, DynamoDB's JSON; empty: it was not there */
    bool is_known;         /* how it was then */
    bool is_after;         /* a later change was seen */
    const char *doubt;     /* why it may have been otherwise */
};

/* ---- values ---- */

static void add_plain(struct history *h, struct sl_value value)
{
    size_t from = h->line.len;
    sl_value_plain(value, &h->line);
    size_t len = h->line.len - from;
    if (len <= SHOWN_BYTES)
        return;
    size_t kept = SHOWN_BYTES;
    while (kept && ((unsigned char)h->line.ptr[from + kept] & 0xC0) == 0x80)
        kept--;
    h->line.len = from + kept;
    sl_buffer_printf(&h->line, "... (%zu bytes)", len);
}

/* The key's own attributes stand above, and never change. */
static bool is_of_key(const struct history *h, struct sl_span path)
{
    struct sl_value key = {.type = SL_M, .raw = h->keys.texts[h->told]};
    if (path.len > 1 && path.ptr[0] == '`' && path.ptr[path.len - 1] == '`')
        path = sl_span(path.ptr + 1, path.len - 2);
    return sl_value_member(key, path).type != SL_NONE;
}

static void add_difference(void *arg, struct sl_span path, struct sl_value before, struct sl_value after)
{
    struct history *h = arg;
    if (is_of_key(h, path))
        return;
    sl_buffer_printf(&h->line, "  %c ", before.type == SL_NONE ? '+' : after.type == SL_NONE ? '-' : '~');
    sl_json_add_escaped(&h->line, path);
    sl_buffer_add_str(&h->line, "  ");
    if (before.type != SL_NONE)
        add_plain(h, before);
    if (before.type != SL_NONE && after.type != SL_NONE)
        sl_buffer_add_str(&h->line, " -> ");
    if (after.type != SL_NONE)
        add_plain(h, after);
    sl_buffer_add_char(&h->line, '\n');
}

static void add_difference_json(void *arg, struct sl_span path, struct sl_value before, struct sl_value after)
{
    struct history *h = arg;
    if (is_of_key(h, path))
        return;
    sl_buffer_add_str(&h->line, h->line.ptr[h->line.len - 1] == '[' ? "{" : ",{");
    sl_json_add_member(&h->line, "path", path);
    if (before.type != SL_NONE)
        sl_json_add_raw(&h->line, "before", sl_value_json(before, h->arena));
    if (after.type != SL_NONE)
        sl_json_add_raw(&h->line, "after", sl_value_json(after, h->arena));
    sl_buffer_add_char(&h->line, '}');
}

/* Whether the change says what the item became. */
static bool has_after(const struct sl_record *r)
{
    return sl_record_event(r) == SL_REMOVE || sl_record_image(r, SL_NEW_IMAGE).type != SL_NONE;
}

static struct sl_value after_of(const struct sl_record *r)
{
    return sl_record_event(r) == SL_REMOVE ? (struct sl_value){.type = SL_NONE}
                                           : sl_record_image(r, SL_NEW_IMAGE);
}

/* ---- a change ---- */

static const char *who(const struct sl_record *r)
{
    static const char *const names[] = {[SL_TTL_UNKNOWN] = "a user, or by TTL",
                                        [SL_TTL_USER] = "a user",
                                        [SL_TTL_INFERRED] = "TTL, as its time had passed",
                                        [SL_TTL_EXPIRED] = "TTL"};
    return names[sl_record_ttl(r)];
}

static const char *time_of(const struct sl_record *r, char out[SL_TIME_BYTES])
{
    int64_t ns = sl_record_created_ns(r);
    sl_time_text(ns, out);
    if (ns % 1000000000 == 0)
        memcpy(out + strlen("2026-11-20T21:04:00"), "Z", 2);
    return ns ? out : "at no known time";
}

static void add_change(struct history *h, const struct sl_story_change *change)
{
    const struct sl_record *r = change->record;
    char time[SL_TIME_BYTES];
    if (change->gap)
        sl_buffer_printf(&h->line, "  ! %s\n", change->gap);
    if (change->is_tied)
        sl_buffer_add_str(&h->line,
                          "  ! another change has the same time, and nothing says which came first\n");
    sl_buffer_printf(&h->line, "%s  %s", time_of(r, time), sl_event_name(sl_record_event(r)));
    if (sl_record_event(r) == SL_REMOVE)
        sl_buffer_printf(&h->line, "  by %s", who(r));
    sl_buffer_add_char(&h->line, '\n');
    if (change->before_is_known && has_after(r))
        sl_diff(change->before, after_of(r), h->arena, add_difference, h);
    else if (sl_record_image(r, SL_NEW_IMAGE).type != SL_NONE)
        sl_diff((struct sl_value){.type = SL_NONE}, after_of(r), h->arena, add_difference, h);
    else
        sl_buffer_add_str(&h->line, "  (the archive has no image of it)\n");
}

static void add_change_json(struct history *h, const struct sl_story_change *change)
{
    const struct sl_record *r = change->record;
    char time[SL_TIME_BYTES];
    struct sl_span number = sl_record_text(r, SL_FIELD_SEQUENCE_NUMBER);
    sl_buffer_add_char(&h->line, '{');
    sl_json_add_raw(&h->line, "key", h->keys.texts[change->item]);
    if (sl_record_created_ns(r))
        sl_json_add_member(&h->line, "time", sl_span_str(time_of(r, time)));
    sl_json_add_member(&h->line, "event", sl_span_str(sl_event_name(sl_record_event(r))));
    if (sl_record_event(r) == SL_REMOVE)
        sl_json_add_member(&h->line, "by", sl_span_str(sl_ttl_name(sl_record_ttl(r))));
    if (number.ptr)
        sl_json_add_member(&h->line, "sequence_number", number);
    sl_json_add_member(&h->line, "event_id", sl_record_text(r, SL_FIELD_EVENT_ID));
    sl_json_add_member(&h->line, "object", change->object);
    if (change->gap)
        sl_json_add_member(&h->line, "gap", sl_span_str(change->gap));
    if (change->is_tied)
        sl_json_add_raw(&h->line, "tied", SL_LIT("true"));
    if (change->before_is_known && has_after(r)) {
        sl_buffer_add_str(&h->line, ",\"changes\":[");
        sl_diff(change->before, after_of(r), h->arena, add_difference_json, h);
        sl_buffer_add_char(&h->line, ']');
    } else if (after_of(r).type != SL_NONE) {
        sl_json_add_raw(&h->line, "item", after_of(r).raw);
    }
    sl_buffer_add_str(&h->line, "}\n");
}

static enum sl_status print_line(struct history *h, struct sl_error *error)
{
    if (h->line.failed)
        return sl_fail(error, SL_FATAL, "TooLarge", "a change has more than %zu bytes of text", LINE_BYTES);
    fwrite(h->line.ptr, 1, h->line.len, stdout);
    sl_buffer_reset(&h->line);
    return SL_OK;
}

/* ---- every change ---- */

static bool is_wanted(const struct history *h, const struct sl_record *r)
{
    int64_t ms = sl_record_created_ns(r) / 1000000;
    return (!h->since_ms || ms >= h->since_ms) && (!h->until_ms || ms < h->until_ms);
}

static void begin_item(struct history *h, size_t item)
{
    if (h->n_changes)
        sl_buffer_add_char(&h->line, '\n');
    sl_buffer_add_span(&h->line, h->keys.texts[item]);
    struct sl_span table = sl_story_table(h->story);
    if (table.ptr)
        sl_buffer_printf(&h->line, "  in %.*s", SL_ARG(table));
    sl_buffer_add_char(&h->line, '\n');
}

static enum sl_status tell(struct history *h, const struct sl_story_change *change, struct sl_error *error)
{
    bool is_first = h->n_changes == 0 || h->told != change->item;
    if (!is_wanted(h, change->record))
        return SL_OK;
    h->told = change->item;
    if (is_first && !h->is_json)
        begin_item(h, change->item);
    if (is_first && !h->is_json && sl_record_event(change->record) != SL_INSERT && !h->since_ms)
        sl_buffer_add_str(&h->line, "  (what was before is not in the archive)\n");
    (h->is_json ? add_change_json : add_change)(h, change);
    h->n_changes++;
    h->n_gaps += change->gap != NULL;
    return print_line(h, error);
}

/* ---- as it was ---- */

static void begin_then(struct history *h)
{
    sl_buffer_reset(&h->then);
    h->is_known = h->is_after = false;
    h->doubt = NULL;
}

static void keep(struct history *h, struct sl_value image)
{
    sl_buffer_reset(&h->then);
    if (image.type != SL_NONE)
        sl_buffer_add_span(&h->then, image.raw);
}

static void take_change(struct history *h, const struct sl_story_change *change)
{
    const struct sl_record *r = change->record;
    int64_t ms = sl_record_created_ns(r) / 1000000;
    h->n_changes++;
    if (ms < h->at_ms) {
        h->is_known = has_after(r);
        h->doubt = change->is_tied ? "another change has the time of its last one" : NULL;
        keep(h, after_of(r));
    } else if (!h->is_after) {
        h->is_after = true;
        if (h->is_known && change->gap)
            h->doubt = change->gap;
        if (!h->is_known && change->before_is_known) {
            h->is_known = true;
            keep(h, change->before);
        }
    }
}

/* True: it is as sure as the archive is. */
static bool print_then(struct history *h, size_t item)
{
    struct sl_span key = h->keys.texts[item], image = sl_buffer_span(&h->then);
    if (h->is_json) {
        struct sl_buffer *b = &h->line;
        sl_buffer_add_char(b, '{');
        sl_json_add_raw(b, "key", key);
        sl_json_add_raw(b, "known", h->is_known ? SL_LIT("true") : SL_LIT("false"));
        if (h->is_known && image.len)
            sl_json_add_raw(b, "item", image);
        if (h->doubt)
            sl_json_add_member(b, "doubt", sl_span_str(h->doubt));
        sl_buffer_add_str(b, "}\n");
    } else if (!h->is_known) {
        fprintf(stderr, "sluice history: %.*s: the archive does not say how it was at %s\n", SL_ARG(key),
                h->at);
    } else if (!image.len) {
        fprintf(stderr, "sluice history: %.*s: was not there at %s\n", SL_ARG(key), h->at);
    } else {
        sl_buffer_add_span(&h->line, image);
        sl_buffer_add_char(&h->line, '\n');
    }
    if (h->doubt && !h->is_json)
        fprintf(stderr, "sluice history: %.*s: may have been otherwise: %s\n", SL_ARG(key), h->doubt);
    return h->is_known && !h->doubt;
}

/* ---- telling ---- */

static enum sl_status tell_all(struct history *h, bool *is_sure, struct sl_error *error)
{
    struct sl_story_change change;
    bool has = true;
    size_t item = 0; /* with --at: which is being looked at */
    *is_sure = true;
    begin_then(h);
    while (has && !sl_command_stop) {
        sl_arena_reset(h->arena);
        enum sl_status status = sl_story_next(h->story, &change, &has, error);
        size_t to = has ? change.item : h->keys.n;
        for (; status == SL_OK && h->at_ms && item < to; item++) {
            *is_sure &= print_then(h, item);
            status = print_line(h, error);
            begin_then(h);
        }
        if (status == SL_OK && has && h->at_ms)
            take_change(h, &change);
        else if (status == SL_OK && has)
            status = tell(h, &change, error);
        if (status != SL_OK)
            return status;
    }
    return SL_OK;
}

/* ---- reading ---- */

static void say_progress(struct history *h, int64_t *said_ms)
{
    int64_t now = h->command.clock->now_ms(h->command.clock);
    const struct sl_recall_report n = sl_recall_report(h->recall);
    if (h->is_quiet || now - *said_ms < SAY_MS)
        return;
    *said_ms = now;
    fprintf(stderr,
            "sluice history: %" PRIu64 " of %" PRIu64 " objects listed so far are read, %" PRIu64 " MB\n",
            n.read, n.objects, n.read_bytes / 1000000);
}

static enum sl_status read_all(struct history *h, struct sl_error *error)
{
    struct sl_clock *clock = h->command.clock;
    int64_t said_ms = clock->now_ms(clock), moved_ms = said_ms;
    bool is_read = false;
    while (!is_read && !sl_command_stop) {
        struct sl_error why = SL_NO_ERROR;
        int64_t now = clock->now_ms(clock);
        enum sl_status status = sl_story_read(h->story, now + STEP_MS, &is_read, &why);
        if (status == SL_OK)
            moved_ms = now;
        else if (status != SL_RETRY || now - moved_ms > STUCK_MS)
            return sl_fail(error, status, why.code, "%s", why.text);
        else
            sl_command_wait(RETRY_MS);
        say_progress(h, &said_ms);
    }
    return is_read ? SL_OK : sl_fail(error, SL_FATAL, "Stopped", "stopped before all was read");
}

static enum sl_status open_all(struct history *h, struct sl_error *error)
{
    const char *folder = sl_vars_or(&h->command.vars, "TMPDIR", "/tmp");
    const struct sl_span ttl = sl_span_str(h->ttl_attribute);
    const struct sl_recall_options options = {.sinks = &h->command.sinks,
                                              .place = h->place,
                                              .ttl_attribute = ttl,
                                              .items =
                                                  (const unsigned char(*)[SL_SHA256_BYTES])h->keys.digests,
                                              .n = h->keys.n,
                                              .since_s = h->since_ms / 1000,
                                              .until_s = h->until_ms / 1000,
                                              .reads_all = !h->with_index};
    enum sl_status status = sl_recall_open(&options, &h->recall, error);
    if (status != SL_OK)
        return status;
    h->temp = sl_paths_make_temp(folder);
    if (!h->temp)
        return sl_fail(error, SL_FATAL, "File", "%s: cannot make a folder for temporary files: %s", folder,
                       strerror(errno));
    h->story = sl_story_open(h->recall, h->temp, ttl);
    return SL_OK;
}

/* The key's attributes are not those of the archive's items: most likely one was forgotten. */
static void say_other_names(struct history *h)
{
    struct sl_source *source = NULL;
    struct sl_source_piece piece = {.is_last = false};
    struct sl_source_keys names = {.n = 0};
    struct sl_error why = SL_NO_ERROR;
    const struct sl_source_options options = {.sinks = &h->command.sinks};
    const struct sl_source_archive what = {.place = h->place};
    struct sl_clock *clock = h->command.clock;
    const struct sl_call call = {.arena = h->command.arena, .deadline_ms = clock->now_ms(clock) + STEP_MS};
    if (sl_source_open_archive(&options, &what, &call, &source, &why) != SL_OK)
        return;
    if (sl_source_pull(source, 1, &call, &piece, &why) == SL_OK && piece.batch.n)
        sl_source_keys_of(sl_batch_record(&piece.batch, 0), h->command.arena, &names);
    size_t n = 0, n_same = 0;
    struct sl_json_walk walk = sl_json_walk(h->keys.texts[0]);
    struct sl_span name, value;
    for (; sl_json_walk_next(&walk, &name, &value); n++)
        for (size_t i = 0; i < names.n; i++)
            n_same += sl_json_text_is(name, names.names[i]);
    if (names.n && (n != names.n || n_same != n))
        fprintf(stderr, "sluice history: the archive's items have the key %.*s%s%.*s, not that of %.*s\n",
                SL_ARG(names.names[0]), names.n > 1 ? ", " : "", names.n > 1 ? (int)names.names[1].len : 0,
                names.n > 1 ? names.names[1].ptr : "", SL_ARG(h->keys.texts[0]));
    sl_source_close(source);
}

static void say_end(struct history *h)
{
    const struct sl_recall_report n = sl_recall_report(h->recall);
    if (n.trouble.status != SL_OK)
        fprintf(stderr, "sluice history: %s\n", n.trouble.text);
    if (h->n_changes == 0) {
        fprintf(stderr, "sluice history: %s holds no change of %s\n", h->place,
                h->keys.n > 1 ? "these items" : "this item");
        say_other_names(h);
    }
    if (h->is_quiet)
        return;
    fprintf(stderr,
            "sluice history: %" PRIu64 " of %" PRIu64 " objects read (%" PRIu64 " KB), %" PRIu64
            " reads of the index (%" PRIu64 " KB)%s\n",
            n.read, n.objects, n.read_bytes / 1000, n.index_reads, n.index_bytes / 1000,
            n.index_written ? "; the index was brought up to date" : "");
    if (h->n_gaps)
        fprintf(stderr, "sluice history: %zu time%s a change is missing: see `!`\n", h->n_gaps,
                h->n_gaps > 1 ? "s" : "");
}

static enum sl_status run(struct history *h, bool *is_sure, struct sl_error *error)
{
    struct sl_clock *clock = h->command.clock;
    enum sl_status status = sl_moment_read("since", h->since, clock, &h->since_ms, error);
    if (status == SL_OK)
        status = sl_moment_read("until", h->until, clock, &h->until_ms, error);
    if (status == SL_OK)
        status = sl_moment_read("at", h->at, clock, &h->at_ms, error);
    if (status == SL_OK && h->at && (h->since || h->until))
        status = sl_fail(error, SL_REJECT, "Usage",
                         "--at shows the items as they were, so --since and --until cannot be given");
    if (status == SL_OK)
        status = sl_keys_read(&h->key, h->keys_file, sl_span(NULL, 0), h->command.arena, &h->keys, error);
    if (status == SL_OK)
        status = open_all(h, error);
    if (status == SL_OK)
        status = read_all(h, error);
    if (status == SL_OK)
        status = tell_all(h, is_sure, error);
    if (status == SL_OK)
        say_end(h);
    return status;
}

static int end(struct history *h, enum sl_status status, bool is_sure)
{
    sl_story_close(h->story);
    sl_recall_close(h->recall);
    if (h->temp)
        sl_paths_remove_temp(h->temp);
    free(h->temp);
    sl_buffer_clean_up(&h->line);
    sl_buffer_clean_up(&h->then);
    sl_arena_destroy(h->arena);
    sl_command_end(&h->command);
    int result = status == SL_OK       ? is_sure ? SL_EXIT_OK : SL_EXIT_UNPROVEN
                 : status == SL_REJECT ? SL_EXIT_BAD
                                       : SL_EXIT_FAILED;
    return sl_flags_end("history", result);
}

int sl_verb_history(int argc, char **argv)
{
    struct history h = {.command = {.verb = "history"}, .with_index = true};
    struct sl_error error = SL_NO_ERROR;
    const struct sl_flag flags[] = {
        {"key", SL_FLAG_LIST, &h.key, "KEY",
         "an item's whole key, as {\"PK\":\"a\"} or {\"PK\":{\"S\":\"a\"}}; may be repeated"},
        {"keys", SL_FLAG_TEXT, &h.keys_file, "FILE", "a file of such keys, one a line; - is standard input"},
        {"since", SL_FLAG_TEXT, &h.since, "TIME",
         "changes from this time on: 2026-11-20T10:00:00Z, 2026-11-20, or 7d (ago)"},
        {"until", SL_FLAG_TEXT, &h.until, "TIME", "changes before this time"},
        {"at", SL_FLAG_TEXT, &h.at, "TIME",
         "print the items as they were at this time, before the changes of that second"},
        {"ttl-attribute", SL_FLAG_TEXT, &h.ttl_attribute, "NAME",
         "the table's TTL attribute: lets removals without a userIdentity be inferred"},
        {"json", SL_FLAG_BOOL, &h.is_json, NULL, "one JSON line a change, or an item with --at"},
        {"index", SL_FLAG_BOOL, &h.with_index, NULL,
         "read and write the archive's index; --no-index reads every object"},
        {"quiet", SL_FLAG_BOOL, &h.is_quiet, NULL, "no progress, and no line about what was read"},
        {.type = SL_FLAG_END},
    };
    const struct sl_usage usage = {
        .line = "history [flags] PLACE",
        .summary =
            "Prints what happened to an item, change by change, from an archive of format record: when, "
            "what, "
            "who removed it, and what differs. PLACE is a folder or s3://bucket/prefix/. Values are shown. "
            "The "
            "first run reads the whole archive and writes an index below PLACE/_sluice, so that later ones "
            "read "
            "a few objects. Exit status: 0; 3 when with --at the archive does not say it, or not for sure.",
        .example = "sluice history --key '{\"PK\":\"ORDER#7\",\"SK\":\"META\"}' s3://bucket/records/",
        .flags = flags,
        .operand = "PLACE",
        .least = 1,
        .most = 1,
    };
    int n, result;
    bool is_sure = true;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    h.place = argv[1];
    sl_command_begin(&h.command);
    sl_command_heed_signals(-1, NULL);
    h.arena = sl_arena_new(256 * 1024);
    sl_buffer_init(&h.line, LINE_BYTES);
    sl_buffer_init(&h.then, LINE_BYTES);
    enum sl_status status = run(&h, &is_sure, &error);
    if (status != SL_OK)
        (void)sl_flags_complain("history", &error);
    return end(&h, status, is_sure);
}
