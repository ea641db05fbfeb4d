/* `sluice repair`: verifies, and sets right what is different, as it goes. */
#include "base/array.h"
#include "base/disk.h"
#include "base/json.h"
#include "base/json_write.h"
#include "handlers/pipeline/route.h"
#include "live/source/input.h"
#include "cli/verbs.h"
#include "cli/verify_session.h"
#include "data/repair/audit.h"
#include "data/repair/findings.h"
#include "data/repair/sum.h"
#include "data/repair/undo.h"
#include "data/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROW_MS      30000
#define ARENA_BYTES (256 * 1024)
#define LINE_BYTES  ((size_t)16 * 1024 * 1024) /* two rows of 400 KB, each byte escaped to six at worst */

struct repair {
    struct sl_verify_session session; /* first: its callbacks get it */
    const char *const *names;         /* of the files of findings */
    size_t n_names;
    const char *audit, *save, *undo;
    int64_t max_deletes;
    bool may_delete, may_total;
    struct sl_finding_repairs findings;
    struct sl_arena *arena; /* of one row */
    struct sl_buffer line;
    int audit_fd, save_fd;
    uint64_t others; /* differences among the findings that are of no item */
};

/* ---- the files that keep what was done ---- */

/* The disk was full, or the process was killed: what was cut must not spoil the next line. */
static bool end_last_line(int fd)
{
    char last = '\n';
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return errno == ESPIPE;
    if (end > 0 && pread(fd, &last, 1, end - 1) != 1)
        return false;
    return last == '\n' || write(fd, "\n", 1) == 1;
}

static enum sl_status open_file(const char *flag, const char *name, int *fd, struct sl_error *error)
{
    if (!name)
        return SL_OK;
    *fd = open(name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0 || !end_last_line(*fd))
        return sl_fail(error, SL_REJECT, "CannotWrite", "%s %s: cannot be written: %s", flag, name,
                       strerror(errno));
    return SL_OK;
}

/* Whole rows are saved, and a file that is there may be open to others. */
static enum sl_status close_to_others(struct repair *r, struct sl_error *error)
{
    struct stat facts;
    if (r->save_fd < 0 || fstat(r->save_fd, &facts) != 0 || !S_ISREG(facts.st_mode) ||
        !(facts.st_mode & 077) || fchmod(r->save_fd, 0600) == 0)
        return SL_OK;
    return sl_fail(error, SL_REJECT, "CannotWrite",
                   "--save %s: others can read it, and that cannot be changed: %s; name another file",
                   r->save, strerror(errno));
}

/* The line is on disk before what it tells is done, or the row is left alone. */
static bool keep_line(struct repair *r, int fd, const char *name)
{
    struct sl_span text = sl_buffer_span(&r->line);
    size_t at = 0;
    while (fd >= 0 && at < text.len) {
        ssize_t n = write(fd, text.ptr + at, text.len - at);
        if (n <= 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || (at == text.len && !r->line.failed && fdatasync(fd) == 0))
        return true;
    fprintf(stderr, "sluice repair: %s: cannot be written: %s; nothing more is repaired\n", name,
            strerror(errno));
    r->findings.is_full = true;
    return false;
}

/* ---- one row ---- */

static struct sl_route *route_of(const struct repair *r, struct sl_span name)
{
    return sl_route_find(r->session.command.pipeline, name);
}

static int64_t deadline(void)
{
    struct sl_clock *clock = sl_clock_system();
    return clock->now_ms(clock) + ROW_MS;
}

static bool keep(void *arg, const struct sl_finding *finding, struct sl_span after)
{
    struct repair *r = arg;
    sl_buffer_reset(&r->line);
    sl_audit_saved(finding, after, &r->line);
    return keep_line(r, r->save_fd, r->save);
}

static void print_line(const struct repair *r)
{
    fwrite(r->line.ptr, 1, r->line.len, stdout);
    fflush(stdout);
}

static void print_row(const struct repair *r, const struct sl_finding *finding,
                      const struct sl_repair_outcome *out)
{
    printf("%s: %s %.*s: %s%s", finding->route, sl_finding_kind(finding->judge->verdict),
           SL_ARG(finding->source_key), r->findings.rows.is_plan ? "would be " : "",
           sl_repaired_name(out->outcome));
    if (out->why)
        printf(" (%s: %s)", out->code, out->why);
    putchar('\n');
    fflush(stdout);
}

static void on_found(struct sl_verify_session *session, const struct sl_finding *finding)
{
    struct repair *r = (struct repair *)session;
    struct sl_repair_outcome out;
    struct sl_clock *clock = sl_clock_system();
    if (finding->result != SL_FINDING_DIFFERENT)
        return;
    sl_repair_finding(&r->findings, finding, deadline(), r->arena, &out);
    sl_buffer_reset(&r->line);
    int64_t now_ms = clock->wall_ns(clock) / 1000000;
    sl_audit_line(finding, &out, now_ms, false, &r->line);
    if (!r->findings.rows.is_plan && !r->findings.is_full)
        (void)keep_line(r, r->audit_fd, r->audit);
    if (session->is_json) {
        sl_buffer_reset(&r->line);
        sl_audit_line(finding, &out, now_ms, true, &r->line);
        print_line(r);
    } else {
        print_row(r, finding, &out);
    }
    sl_arena_reset(r->arena);
}

/* ---- totals ---- */

static void print_sum(const struct repair *r, const struct sl_audit_sum *sum, struct sl_span added,
                      const struct sl_repair_outcome *out)
{
    printf("%.*s: %.*s %.*s%s%.*s: %s%s", SL_ARG(sum->target), SL_ARG(sum->kind), SL_ARG(sum->key),
           sum->attribute.ptr ? " " : "", SL_ARG(sum->attribute), r->findings.rows.is_plan ? "would be " : "",
           sl_repaired_name(out->outcome));
    if (added.ptr)
        printf(", %.*s added", SL_ARG(added));
    if (out->why)
        printf(" (%s: %s)", out->code, out->why);
    putchar('\n');
    fflush(stdout);
}

static void repair_sum(struct repair *r, const struct sl_audit_sum *sum, struct sl_span *added,
                       struct sl_repair_outcome *out)
{
    *added = sl_span(NULL, 0);
    if (!r->may_total && sl_span_is(sum->kind, "sum"))
        sl_repair_leave(&r->findings.rows, out, "NoTotals", "only --totals sets it right");
    else if (r->findings.is_full)
        sl_repair_leave(&r->findings.rows, out, "NotKept", "what has to be kept of the write could not be");
    else
        sl_repair_audit_sum(&r->findings.rows, r->session.command.pipeline, sum, deadline(), r->arena, added,
                            out);
}

static void on_total(struct sl_verify_session *session, struct sl_span line)
{
    struct repair *r = (struct repair *)session;
    struct sl_clock *clock = sl_clock_system();
    struct sl_audit_sum sum;
    struct sl_repair_outcome out;
    struct sl_span added;
    if (!sl_audit_sum_read(line, r->arena, &sum))
        return;
    repair_sum(r, &sum, &added, &out);
    sl_buffer_reset(&r->line);
    int64_t now_ms = clock->wall_ns(clock) / 1000000;
    sl_audit_sum_line(&sum, added, &out, now_ms, false, &r->line);
    if (!r->findings.rows.is_plan && !r->findings.is_full)
        (void)keep_line(r, r->audit_fd, r->audit);
    if (session->is_json) {
        sl_buffer_reset(&r->line);
        sl_audit_sum_line(&sum, added, &out, now_ms, true, &r->line);
        print_line(r);
    } else {
        print_sum(r, &sum, added, &out);
    }
    sl_arena_reset(r->arena);
}

/* ---- findings ---- */

static enum sl_status take_finding(struct repair *r, struct sl_span line, struct sl_error *error)
{
    enum sl_finding_line what;
    enum sl_status status = sl_repair_take_line(r->session.work, r->session.command.pipeline, line,
                                                r->session.command.arena, &what, error);
    if (what == SL_FINDING_OTHER && r->may_total && sl_finding_line_is_of_totals(line))
        on_total(&r->session, line);
    else
        r->others += what == SL_FINDING_OTHER;
    return status;
}

static enum sl_status each_line(struct repair *r, const char *name,
                                enum sl_status (*take)(struct repair *r, struct sl_span line,
                                                       struct sl_error *error),
                                struct sl_error *error)
{
    struct sl_span text;
    size_t number = 0;
    enum sl_status status = sl_input_load(name, r->session.command.arena, &text, error);
    while (status == SL_OK && text.len) {
        const struct sl_span line = sl_span_cut(&text, '\n');
        number++;
        if (!line.len)
            continue;
        status = take(r, line, error);
        sl_error_context(error, "%s: line %zu", name, number);
    }
    return status;
}

static enum sl_status on_begun(struct sl_verify_session *session, struct sl_error *error)
{
    struct repair *r = (struct repair *)session;
    r->findings.pipeline = session->command.pipeline;
    /* A signal ends the wait, and the repair. */
    enum sl_status status = sl_outstanding_refuse(session->outstanding, &sl_command_stop, "--routes", error);
    for (size_t i = 0; i < r->n_names && status == SL_OK; i++)
        status = each_line(r, r->names[i], take_finding, error);
    if (status == SL_OK && r->others)
        fprintf(stderr,
                "sluice repair: %" PRIu64
                " %s of totals or archives, and left alone: totals are repaired with "
                "--totals\n",
                r->others, r->others == 1 ? "finding is" : "findings are");
    return status;
}

/* ---- the end ---- */

static void print_counts(struct repair *r)
{
    const char *what = r->findings.rows.is_plan ? "would be" : r->undo ? "undone" : "repaired";
    const uint64_t *n = r->findings.rows.outcomes;
    if (!r->session.is_json) {
        printf("%s: ", what);
        for (int i = 0; i <= SL_REPAIRED_FAILED; i++)
            printf("%s%" PRIu64 " %s", i ? ", " : "", n[i], sl_repaired_name((enum sl_repaired)i));
        putchar('\n');
        return;
    }
    sl_buffer_reset(&r->line);
    sl_buffer_printf(&r->line, "{\"result\":\"%s\"", what);
    for (int i = 0; i <= SL_REPAIRED_FAILED; i++)
        sl_json_add_integer(&r->line, sl_repaired_name((enum sl_repaired)i), (int64_t)n[i]);
    sl_buffer_add_str(&r->line, "}\n");
    print_line(r);
}

static int tell(struct repair *r, bool is_whole, uint64_t unproven)
{
    const uint64_t *n = r->findings.rows.outcomes;
    uint64_t wrong = n[SL_REPAIRED_MOVED] + n[SL_REPAIRED_LEFT] + n[SL_REPAIRED_FAILED];
    print_counts(r);
    if (r->findings.rows.is_plan)
        wrong += n[SL_REPAIRED_WRITTEN] + n[SL_REPAIRED_REMOVED];
    return wrong || r->findings.is_full ? SL_EXIT_FAILED
           : unproven || !is_whole      ? SL_EXIT_UNPROVEN
                                        : SL_EXIT_OK;
}

static int on_end(struct sl_verify_session *session, bool is_whole)
{
    uint64_t unproven = ((struct repair *)session)->others;
    for (size_t i = 0; i < sl_verify_routes(session->work); i++) {
        const struct sl_verify_route *route = sl_verify_route(session->work, i);
        unproven += route->pending + route->unsettled + route->not_comparable;
    }
    unproven += session->report.totals.unsettled;
    return tell((struct repair *)session, is_whole, unproven);
}

/* ---- taking back ---- */

static bool is_whole_line(struct sl_span line)
{
    return sl_json_check_loose(line, NULL) == SL_OK;
}

/* Every line is checked before the first row is written: another configuration may have a route of the same
 * name, and rows that a backfill made are alike in all replicas. */
static enum sl_status check_saved(struct repair *r, struct sl_span line, struct sl_error *error)
{
    struct sl_audit_undo saved;
    if (!is_whole_line(line))
        return SL_OK;
    enum sl_status status = sl_audit_read(line, r->arena, &saved, error);
    const struct sl_route *route = status == SL_OK ? route_of(r, saved.route) : NULL;
    if (status == SL_OK && !route)
        status = sl_fail(error, SL_REJECT, "NoRoute", "%s has no route \"%.*s\"", r->session.command.config,
                         SL_ARG(saved.route));
    else if (status == SL_OK && !sl_span_is(saved.target, route->stats.target))
        status = sl_fail(error, SL_REJECT, "OtherTarget",
                         "the row was saved from %.*s, and in %s the route %s writes to %s: give the "
                         "configuration of the repair with --config",
                         SL_ARG(saved.target), r->session.command.config, route->config->name,
                         route->stats.target);
    sl_arena_reset(r->arena);
    return status;
}

static void print_undone(struct repair *r, const struct sl_audit_undo *saved,
                         const struct sl_repair_outcome *out)
{
    printf("%.*s: %.*s: %s%s%s%s%s\n", SL_ARG(saved->route), SL_ARG(saved->source_key),
           r->findings.rows.is_plan ? "would be " : "", sl_repaired_name(out->outcome), out->why ? " (" : "",
           out->why ? out->why : "", out->why ? ")" : "");
}

static enum sl_status undo_line(struct repair *r, struct sl_span line, struct sl_error *error)
{
    struct sl_audit_undo saved;
    struct sl_repair_outcome out;
    if (!is_whole_line(line)) { /* it is on disk before its write, so there was none */
        fprintf(stderr, "sluice repair: a line that was cut is left: its row was not repaired\n");
        r->findings.rows.outcomes[SL_REPAIRED_LEFT]++;
        return SL_OK;
    }
    enum sl_status status = sl_audit_read(line, r->arena, &saved, error);
    if (status != SL_OK)
        return status;
    const struct sl_undo undo = {.route = route_of(r, saved.route),
                                 .source_key = saved.source_key,
                                 .before = saved.before,
                                 .after = saved.after,
                                 .deadline_ms = deadline()};
    sl_undo_row(&r->findings.rows, &undo, r->arena, &out);
    if (!r->session.is_json)
        print_undone(r, &saved, &out);
    sl_arena_reset(r->arena);
    return SL_OK;
}

/* A row that came by the repair goes again: --delete is not asked for. */
static int undo(struct repair *r)
{
    struct sl_error error = SL_NO_ERROR;
    r->findings.rows.may_remove = true;
    r->findings.rows.max_removals = UINT64_MAX;
    if (sl_verify_session_pipeline(&r->session, &error) != SL_OK ||
        each_line(r, r->undo, check_saved, &error) != SL_OK ||
        each_line(r, r->undo, undo_line, &error) != SL_OK)
        return sl_flags_complain("repair", &error);
    return tell(r, true, 0);
}

/* ---- the verb ---- */

static enum sl_status check_usage(const struct repair *r, struct sl_error *error)
{
    if (r->undo && r->n_names)
        return sl_fail(error, SL_REJECT, "Usage", "--undo takes no findings");
    return SL_OK;
}

static int repair(struct repair *r)
{
    struct sl_error error = SL_NO_ERROR;
    if (check_usage(r, &error) != SL_OK || open_file("--audit", r->audit, &r->audit_fd, &error) != SL_OK ||
        open_file("--save", r->save, &r->save_fd, &error) != SL_OK || close_to_others(r, &error) != SL_OK)
        return sl_flags_complain("repair", &error);
    r->arena = sl_arena_new(ARENA_BYTES);
    sl_buffer_init(&r->line, LINE_BYTES);
    sl_finding_repairs_init(&r->findings);
    r->findings.keep = r->save_fd >= 0 ? keep : NULL;
    r->findings.arg = r;
    r->findings.rows.may_remove = r->may_delete;
    r->findings.rows.max_removals = (uint64_t)r->max_deletes;
    r->session.only_items = r->n_names > 0;
    int result = r->undo ? undo(r) : sl_verify_session_run(&r->session);
    sl_verify_session_clean_up(&r->session);
    sl_buffer_clean_up(&r->line);
    sl_finding_repairs_clean_up(&r->findings);
    sl_arena_destroy(r->arena);
    return result;
}

int sl_verb_repair(int argc, char **argv)
{
    struct repair r = {.session = {.command = {.verb = "repair"},
                                   .found = on_found,
                                   .total = on_total,
                                   .with_totals = true,
                                   .begun = on_begun,
                                   .end = on_end},
                       .max_deletes = SL_REPAIR_MAX_REMOVALS,
                       .audit_fd = -1,
                       .save_fd = -1};
    struct sl_flag flags[SL_VERIFY_SESSION_FLAGS + 8];
    const struct sl_flag own[] = {
        {"What may be written, and what is kept of it", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"delete", SL_FLAG_BOOL, &r.may_delete, NULL,
         "remove rows whose item the source does not have, if the route made them"},
        {"max-deletes", SL_FLAG_INTEGER, &r.max_deletes, "N", "with --delete: so many at most (100)"},
        {"totals", SL_FLAG_BOOL, &r.may_total, NULL,
         "add to totals what they differ by from the sums of their ledgers"},
        {"dry-run", SL_FLAG_BOOL, &r.findings.rows.is_plan, NULL,
         "print what would be written, and write nothing"},
        {"audit", SL_FLAG_TEXT, &r.audit, "FILE", "append a line for each row, with digests and no values"},
        {"save", SL_FLAG_TEXT, &r.save, "FILE", "append the rows as they were, for --undo"},
        {"undo", SL_FLAG_TEXT, &r.undo, "FILE",
         "put the rows of a file of --save back, where they are as the repair left them"},
    };
    size_t n_flags = sl_verify_session_flags(&r.session, flags);
    memcpy(flags + n_flags, own, sizeof(own));
    flags[n_flags + SL_COUNT(own)] = (struct sl_flag){.type = SL_FLAG_END};
    const struct sl_usage usage = {
        .line = "repair [flags] --table NAME [FINDINGS...]",
        .summary =
            "Verifies, as sluice verify does, and sets right what is different through the routes' own "
            "guarded writes, beside the stream. FINDINGS are files that sluice verify --json has printed: "
            "only their differences are looked at, once more. Exit status: 0 all is right now, 1 something "
            "is not, 2 bad usage, 3 nothing wrong but not all proven, 4 something could not be read.",
        .example = "sluice repair --table orders --consumer place.json --dry-run",
        .flags = flags,
        .ranges = sl_verify_session_ranges,
        .operand = "FINDINGS",
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    r.names = (const char *const *)argv + 1;
    r.n_names = (size_t)n;
    return repair(&r);
}
