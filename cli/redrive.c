/* `sluice redrive`: runs the records in a failure queue, topic or bucket through the handlers again. */
#include "cli/command.h"
#include "cli/redrive/letter.h"
#include "cli/redrive/mailbox.h"
#include "cli/redrive/picker.h"
#include "cli/redrive/round.h"
#include "cli/redrive/tally.h"
#include "cli/verbs.h"
#include "sinks/queues/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a message is hidden from others at a time. Should this process be killed, its messages come back
 * after so long; and three invocations fit into it. */
#define HIDDEN_S       300
#define HIDDEN_TIMEOUT 3
#define FOLLOW_MS      5000

struct redrive {
    struct sl_command command;
    struct sl_crew_options crew_options;
    struct sl_pointer_options pointer_options;
    struct sl_mailbox_options box_options;
    const char *since;
    bool is_dry, removes, skips_unreadable, follows;
    int64_t hidden_s, wait_s;
    struct sl_flag_list matches;
    struct sl_picker picker;
    struct sl_round round;
    struct sl_redrive_tally tally;
    struct sl_mailbox *box; /* that is being emptied */
    bool has_broken_off;    /* what is left was not begun */
    bool has_left;          /* of one place not all was had, or let go of */
};

static void keep(void *arg)
{
    struct redrive *r = arg;
    r->box->keep(r->box);
}

static int64_t wall_ms(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->wall_ns(clock) / 1000000;
}

/* ---- a page ---- */

static void open_mail(struct redrive *r, struct sl_mail_page *page, struct sl_arena *arena)
{
    for (size_t i = 0; i < page->n; i++) {
        sl_letter_open(&page->list[i], arena);
        sl_picker_pick(&r->picker, &page->list[i]);
        for (size_t k = 0; k < page->list[i].n && r->is_dry; k++)
            if (page->list[i].letters[k].outcome == SL_MAIL_WAITING)
                page->list[i].letters[k].outcome = SL_MAIL_LISTED;
    }
}

static enum sl_status work_page(struct redrive *r, struct sl_arena *arena, bool *is_last,
                                struct sl_error *error)
{
    struct sl_mail_page page = {0};
    r->box->wants = r->picker.limit < 0 ? INT64_MAX : r->picker.limit - r->picker.taken;
    enum sl_status status = r->box->next(r->box, arena, &page, error);
    open_mail(r, &page, arena);
    r->box->keep(r->box);
    if (status == SL_OK && !r->is_dry)
        status = sl_round_run(&r->round, &page, arena, error);
    r->box->settle(r->box, arena, &page, r->removes && !r->is_dry);
    sl_redrive_tally_add(&r->tally, &page, wall_ms());
    *is_last = page.is_last || sl_picker_is_full(&r->picker);
    return status;
}

/* ---- a mailbox ---- */

static void empty(struct redrive *r)
{
    bool is_last = false;
    enum sl_status status = SL_OK;
    struct sl_error error = SL_NO_ERROR, release = SL_NO_ERROR;
    r->round.is_fifo = r->box->is_fifo;
    while (status == SL_OK && !is_last && !sl_command_stop) {
        struct sl_arena *arena = sl_arena_new(256 * 1024);
        status = work_page(r, arena, &is_last, &error);
        sl_arena_destroy(arena);
    }
    r->has_broken_off = status != SL_OK;
    if (r->has_broken_off)
        (void)sl_flags_complain("redrive", &error);
    if (r->box->finish(r->box, &release) == SL_OK)
        return;
    (void)sl_flags_complain("redrive", &release);
    r->has_left = true;
}

static void warn(const struct redrive *r, const struct sl_mailbox *box)
{
    if (box->is_queue && r->is_dry)
        fprintf(stderr,
                "sluice redrive: note: %s: SQS shows a message only by a receive, which it counts; all are "
                "released at the end\n",
                box->name);
    if (box->is_fifo && (r->is_dry || !r->removes))
        fprintf(stderr,
                "sluice redrive: note: %s: of each group of a FIFO queue SQS shows only the first messages "
                "until they are removed\n",
                box->name);
}

/* Between two rounds of --follow. */
static void pause_between(void)
{
    struct sl_clock *clock = sl_clock_system();
    for (int64_t left = FOLLOW_MS; left > 0 && !sl_command_stop; left -= 200)
        clock->sleep_ms(clock, 200);
}

/* All are opened before anything is taken: a wrong name is found first. */
static enum sl_status open_boxes(struct redrive *r, char **names, size_t n, struct sl_mailbox **boxes,
                                 struct sl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        enum sl_status status = sl_mailbox_open(&r->box_options, names[i], &boxes[i], error);
        if (status != SL_OK)
            return status;
        if (r->removes && !boxes[i]->can_remove)
            return sl_fail(
                error, SL_REJECT, "Usage",
                "%s: --delete-done removes messages of a queue, and objects of a bucket or folder. "
                "Remove lines and files yourself when all of them are done",
                names[i]);
    }
    return SL_OK;
}

/* ---- the run ---- */

static enum sl_status check_flags(struct redrive *r, struct sl_error *error)
{
    int64_t longest_s = r->crew_options.timeout_s > r->wait_s ? r->crew_options.timeout_s : r->wait_s;
    int64_t least_s = HIDDEN_TIMEOUT * longest_s;
    if (r->follows && (!r->removes || r->is_dry))
        return sl_fail(error, SL_REJECT, "Usage",
                       "--follow needs --delete-done: what is done would be done again and again");
    r->hidden_s = r->hidden_s ? r->hidden_s : HIDDEN_S > least_s ? HIDDEN_S : least_s;
    if (r->hidden_s < least_s)
        return sl_fail(error, SL_REJECT, "Usage",
                       "--visibility: must be %lld (three times --timeout, and --wait) to %d seconds",
                       (long long)least_s, SL_INBOX_HIDDEN_MAX_S);
    return sl_picker_init(&r->picker, r->since, wall_ms(), error);
}

static void set_up(struct redrive *r)
{
    /* (After a second signal the messages come back by themselves.) */
    sl_command_heed_signals(-1, (const int[]){SIGHUP, 0});
    sl_command_begin(&r->command);
    r->box_options = (struct sl_mailbox_options){
        .sinks = &r->command.sinks, .stop = &sl_command_stop, .hidden_s = r->hidden_s, .wait_s = r->wait_s};
    r->crew_options.config = r->command.config;
    r->crew_options.stop = r->pointer_options.stop = &sl_command_stop;
    r->crew_options.keep = keep;
    r->crew_options.keep_arg = r;
    r->pointer_options.vars = &r->command.vars;
    r->tally.is_dry = r->is_dry;
    r->tally.shows_progress = isatty(STDERR_FILENO);
    r->round = (struct sl_round){.crew = sl_crew_new(&r->crew_options),
                                 .pointer = sl_pointer_new(&r->pointer_options),
                                 .route = r->picker.route,
                                 .skips_unreadable = r->skips_unreadable,
                                 .stop = &sl_command_stop,
                                 .keep = keep,
                                 .keep_arg = r};
}

static int result_of(const struct redrive *r)
{
    const uint64_t *n = r->tally.messages;
    bool is_undone = n[SL_MAIL_FAILED] || n[SL_MAIL_HELD_BACK] || n[SL_MAIL_WAITING] || r->tally.not_removed;
    if (is_undone || r->has_broken_off || r->has_left || sl_command_stop)
        return SL_EXIT_FAILED;
    return n[SL_MAIL_UNREADABLE] ? SL_EXIT_UNREADABLE : SL_EXIT_OK;
}

static int run(struct redrive *r, char **names, size_t n)
{
    struct sl_mailbox **boxes = calloc(n, sizeof(*boxes));
    struct sl_error error = SL_NO_ERROR;
    int result = SL_EXIT_BAD;
    if (!boxes)
        sl_die("out of memory: %zu places of messages", n);
    enum sl_status status = r->is_dry ? SL_OK : sl_crew_check(r->round.crew, r->picker.route, &error);
    if (status == SL_OK)
        status = open_boxes(r, names, n, boxes, &error);
    for (bool more = status == SL_OK; more && !r->has_broken_off && !sl_command_stop;) {
        for (size_t i = 0; i < n && !r->has_broken_off && !sl_command_stop; i++) {
            r->box = boxes[i];
            warn(r, boxes[i]);
            empty(r);
        }
        if (r->follows)
            pause_between();
        more = r->follows && !sl_command_stop;
        for (size_t i = 0; i < n && more; i++) {
            boxes[i]->close(boxes[i]);
            boxes[i] = NULL;
        }
        if (more)
            status = open_boxes(r, names, n, boxes, &error);
        more = more && status == SL_OK;
    }
    if (status == SL_OK) {
        const struct sl_redrive_tally_next next = {r->command.config, names[0],
                                                   boxes[0]->can_remove && !r->removes};
        sl_redrive_tally_print(&r->tally, &next);
        result = result_of(r);
        if (sl_command_stop)
            fprintf(stderr, "sluice redrive: interrupted; what is not done stays where it is\n");
    } else {
        (void)sl_flags_complain("redrive", &error);
    }
    for (size_t i = 0; i < n; i++)
        if (boxes[i])
            boxes[i]->close(boxes[i]);
    free(boxes);
    return result;
}

static void clean_up(struct redrive *r)
{
    sl_crew_destroy(r->round.crew);
    sl_pointer_destroy(r->round.pointer);
    sl_command_end(&r->command);
}

/* ---- the verb ---- */

static struct redrive the = {.command = {.verb = "redrive", .config = "sluice.json"},
                             .wait_s = 5,
                             .crew_options = {.timeout_s = 60, .parallel = 1},
                             .picker = {.matches = &the.matches, .limit = -1}};

static const struct sl_flag flags[] = {
    {"config", SL_FLAG_TEXT, &the.command.config, "FILE", "the configuration (./sluice.json)"},
    {"dry-run", SL_FLAG_BOOL, &the.is_dry, NULL, "list the messages, and run nothing"},
    {"delete-done", SL_FLAG_BOOL, &the.removes, NULL,
     "remove each message or object whose records are all handled"},
    {"follow", SL_FLAG_BOOL, &the.follows, NULL, "go on: wait for more messages, until a signal comes"},
    {"Which messages", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"match", SL_FLAG_LIST, &the.matches, "FIELD=VALUE",
     "only these; FIELD: " SL_PICKER_FIELDS "; VALUE may end in *; != for others; may be repeated"},
    {"route", SL_FLAG_TEXT, &the.picker.route, "NAME",
     "only what this route parked; events and pointers go through it alone"},
    {"since", SL_FLAG_TEXT, &the.since, "TIME",
     "only what failed since 2026-11-20T10:00:00Z, or 90m, 24h, 7d ago"},
    {"limit", SL_FLAG_INTEGER, &the.picker.limit, "N", "end after so many messages that match"},
    {"How", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"parallel", SL_FLAG_INTEGER, &the.crew_options.parallel, "N",
     "invocations at a time, 1 to 10; an item's records stay in order (1)"},
    {"skip-unreadable", SL_FLAG_BOOL, &the.skips_unreadable, NULL,
     "FIFO: an unreadable message does not hold back those behind it in its group"},
    {"timeout", SL_FLAG_INTEGER, &the.crew_options.timeout_s, "S", "timeout of an invocation, 1 to 900 (60)"},
    {"visibility", SL_FLAG_INTEGER, &the.hidden_s, "S",
     "hide messages of a queue for so long at a time, 1 to 43200; extended while it works (300)"},
    {"wait", SL_FLAG_INTEGER, &the.wait_s, "S",
     "of a queue's long poll, 1 to 10; two empty ones end the run (5)"},
    {"trace", SL_FLAG_TEXT, &the.crew_options.trace, "FILE",
     "write one JSON line per invocation; further sandboxes write to FILE.2, ..."},
    {"handler-path", SL_FLAG_TEXT, &the.crew_options.handler_path, "FOLDERS",
     "folders of plugins, separated by ':'"},
    {"Where", SL_FLAG_HEADING, NULL, NULL, NULL},
    {"region", SL_FLAG_REGION, &the.pointer_options.region, "REGION", "region of the stream (as in its ARN)"},
    {"endpoint-url", SL_FLAG_URL, &the.pointer_options.endpoint, "URL", "endpoint of DynamoDB (AWS's)"},
    {0},
};

static const struct sl_flag_range ranges[] = {
    {"limit", 1, 1000000000},     {"parallel", 1, 10},
    {"timeout", 1, 900},          {"visibility", 1, SL_INBOX_HIDDEN_MAX_S},
    {"wait", 1, SL_INBOX_WAIT_S}, {0},
};

static const struct sl_usage usage = {
    .line = "redrive [flags] PLACE...",
    .summary =
        "Runs again what ended in a failure queue, topic or bucket: parked records, and letters that were "
        "set aside, each through its own route, and failure records of the event source mapping, whose "
        "records are read from the stream or from the payload. PLACE is sqs://QUEUE (also FIFO), "
        "s3://BUCKET/PREFIX, a folder, a file, or - for standard input: bodies of messages, one JSON value "
        "after the other, or what `aws sqs receive-message` printed. Nothing is parked a second time. One "
        "line for each message says its id, the item's key and the outcome. Handlers are repeatable: a "
        "message that was handled and not removed may be handled again, and does no harm; a once-only effect "
        "(notify) then happens again. Exit status: 0 all done, 1 something failed again or was not begun, 2 "
        "bad usage or nothing could be begun, 4 all else is done, but a message could not be read.",
    .example = "sluice redrive --dry-run sqs://orders-failed",
    .flags = flags,
    .ranges = ranges,
    .operand = "PLACE",
    .least = 1,
};

int sl_verb_redrive(int argc, char **argv)
{
    int n, result;
    struct sl_error error = SL_NO_ERROR;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    if (check_flags(&the, &error) != SL_OK)
        return sl_flags_complain("redrive", &error);
    set_up(&the);
    result = run(&the, argv + 1, (size_t)n);
    clean_up(&the);
    return result;
}
