/* `sluice test`: runs cases, each in a process of its own, and shows how what left differs from what was
 * expected. */
#include "base/array.h"
#include "base/disk.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "cli/command.h"
#include "cli/output/report/html.h"
#include "cli/test/case.h"
#include "cli/test/same.h"
#include "cli/verbs.h"
#include "live/sandbox/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULT_MOST ((size_t)512 * 1024 * 1024)
#define LIMIT_S     120 /* a handler that hangs; dispatch ends half as late */
#define DIFF_MOST   2000

/* A route of a configuration, and how many records all cases gave it. */
struct used {
    const char *config, *route;
    uint64_t n;
};

struct testing {
    struct sl_case_options options;
    bool is_blessing;
    const char *junit;
    struct sl_arena *arena;
    const char **paths;
    size_t n, room;
    struct used *used;
    size_t n_used, room_used;
    size_t failed, blessed;
    struct sl_buffer xml;
    struct sl_buffer told; /* of the case at hand: why it failed */
};

/* ---- which cases ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum sl_status add_folder(struct testing *t, const char *folder, struct sl_error *error)
{
    DIR *dir = opendir(folder);
    size_t first = t->n, len = strlen(folder);
    if (!dir)
        return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be read: %s", folder, strerror(errno));
    while (len > 1 && folder[len - 1] == '/')
        len--;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && sl_span_ends(sl_span_str(entry->d_name), SL_LIT(".json")) &&
            strcmp(entry->d_name, "sluice.json") != 0)
            SL_PUSH_IN(t->arena, t->paths, t->n, t->room) =
                sl_arena_printf(t->arena, "%.*s/%s", (int)len, folder, entry->d_name);
    closedir(dir);
    if (t->n == first)
        return sl_fail(error, SL_REJECT, "NoCases",
                       "%s: has no case, which is a file NAME.json: `sluice new-test %s/NAME.json RECORDING` "
                       "writes a first one",
                       folder, folder);
    qsort(t->paths + first, t->n - first, sizeof(*t->paths), by_text);
    return SL_OK;
}

static enum sl_status add_operand(struct testing *t, const char *name, struct sl_error *error)
{
    struct stat info;
    if (stat(name, &info) != 0)
        return sl_fail(error, SL_REJECT, "CannotRead", "%s: cannot be read: %s", name, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_folder(t, name, error);
    SL_PUSH_IN(t->arena, t->paths, t->n, t->room) = name;
    return SL_OK;
}

/* ---- one case, in a process of its own ---- */

static _Noreturn void run_here(const struct testing *t, const struct sl_case *c, const char *folder, int fd,
                               const sigset_t *signals)
{
    struct sl_buffer result;
    struct sl_error error = SL_NO_ERROR;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    alarm(LIMIT_S);
    sl_buffer_init(&result, RESULT_MOST);
    if (sl_case_run(c, &t->options, folder, &result, &error) != SL_OK) {
        sl_buffer_reset(&result);
        sl_buffer_printf(&result, "%s: %s", error.code, error.text);
    }
    int err = sl_disk_write(fd, sl_buffer_span(&result));
    sl_buffer_clean_up(&result);
    fflush(stdout);
    _exit(err != 0);
}

/* Until the child has closed its end. Signals are blocked but for the waits, so none of them comes unseen: a
 * child that hangs is ended as soon as we are. */
static void read_all(int fd, pid_t child, const sigset_t *signals, struct sl_buffer *out)
{
    char *room;
    ssize_t n = 1;
    while (n > 0 && (room = sl_buffer_reserve(out, 65536))) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (sl_command_stop)
            (void)kill(child, SIGKILL);
        if (ppoll(&wait, 1, NULL, signals) < 0 && errno == EINTR)
            continue;
        n = read(fd, room, 65536);
        out->len += n > 0 ? (size_t)n : 0;
    }
}

static enum sl_status judge_end(int status, const struct sl_buffer *result, struct sl_error *error)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return sl_fail(error, SL_REJECT, "TimedOut", "did not end within %d s: a handler hangs", LIMIT_S);
    if (WIFSIGNALED(status))
        return sl_fail(error, SL_REJECT, "Crashed", "a handler crashed: %s (signal %d)",
                       strsignal(WTERMSIG(status)), WTERMSIG(status));
    if (WEXITSTATUS(status) || !result->len)
        return sl_fail(error, SL_REJECT, "Crashed", "a handler ended the process with status %d",
                       WEXITSTATUS(status));
    if (result->ptr[0] != '{')
        return sl_fail(error, SL_REJECT, "CannotRun", "%.*s", SL_ARG(sl_buffer_span(result)));
    return SL_OK;
}

static enum sl_status run_apart(const struct testing *t, const struct sl_case *c, struct sl_buffer *result,
                                struct sl_error *error)
{
    int ends[2], status = 0;
    char *folder = sl_paths_make_temp(getenv("TMPDIR"));
    if (!folder || pipe(ends) != 0) {
        free(folder);
        return sl_fail(error, SL_REJECT, "CannotRun", "no temporary folder or pipe: %s", strerror(errno));
    }
    fflush(stdout);
    sigset_t stops, signals;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &signals);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_here(t, c, folder, ends[1], &signals);
    }
    close(ends[1]);
    if (child > 0)
        read_all(ends[0], child, &signals, result);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    sl_paths_remove_temp(folder);
    free(folder);
    if (child < 0)
        return sl_fail(error, SL_REJECT, "CannotRun", "no process could be started: %s", strerror(errno));
    return judge_end(status, result, error);
}

/* ---- how it differs ---- */

struct lines {
    struct sl_span *list;
    size_t n, room;
};

static struct lines lines_of(struct sl_span array, struct sl_arena *arena)
{
    struct lines out = {0};
    struct sl_json_walk walk = sl_json_walk(array);
    struct sl_span line;
    while (array.ptr && sl_json_walk_next(&walk, NULL, &line))
        SL_PUSH_IN(arena, out.list, out.n, out.room) = line;
    return out;
}

static void tell(struct testing *t, const char *mark, struct sl_span line)
{
    sl_buffer_printf(&t->told, "      %s%.*s\n", mark, SL_ARG(line));
}

/* The longest common part stays, as in diff(1): rests[i * (b->n + 1) + k] is its length from a[i] and b[k]
 * on. */
static size_t *common(const struct lines *a, const struct lines *b)
{
    size_t wide = b->n + 1, *rests = calloc((a->n + 1) * wide, sizeof(*rests));
    if (!rests)
        sl_die("out of memory: lines of a case");
    for (size_t i = a->n; i-- > 0;)
        for (size_t k = b->n; k-- > 0;) {
            size_t down = rests[(i + 1) * wide + k], right = rests[i * wide + k + 1];
            rests[i * wide + k] = sl_json_says_same(a->list[i], b->list[k])
                                      ? rests[(i + 1) * wide + k + 1] + 1
                                  : down > right ? down
                                                 : right;
        }
    return rests;
}

/* Leaves what is between the lines that both begin with and those that both end with. */
static void trim(struct lines *a, struct lines *b)
{
    for (; a->n && b->n && sl_json_says_same(*a->list, *b->list); a->n--, b->n--)
        a->list++, b->list++;
    for (; a->n && b->n && sl_json_says_same(a->list[a->n - 1], b->list[b->n - 1]); a->n--)
        b->n--;
}

/* False: they are the same. */
static bool differ(struct testing *t, struct lines *want, struct lines *have)
{
    trim(want, have);
    size_t i = 0, k = 0, wide = have->n + 1;
    bool is_different = false;
    if (want->n > DIFF_MOST || have->n > DIFF_MOST) {
        sl_buffer_printf(&t->told, "      has %zu lines where %zu are expected: more than are compared (%d)\n",
                         have->n, want->n, DIFF_MOST);
        return true;
    }
    size_t *rests = common(want, have);
    while (i < want->n || k < have->n) {
        bool is_same = i < want->n && k < have->n && sl_json_says_same(want->list[i], have->list[k]);
        bool is_gone = i < want->n && (k == have->n || rests[(i + 1) * wide + k] >= rests[i * wide + k + 1]);
        is_different |= !is_same;
        if (!is_same && is_gone)
            tell(t, "- ", want->list[i]);
        else if (!is_same)
            tell(t, "+ ", have->list[k]);
        i += is_same || is_gone;
        k += is_same || !is_gone;
    }
    free(rests);
    return is_different;
}

static void tell_notes(struct testing *t, struct sl_span result)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_walk_member(result, SL_LIT("notes")));
    struct sl_span note;
    while (sl_json_walk_next(&walk, NULL, &note))
        tell(t, "  ", sl_json_unescape(sl_span(note.ptr + 1, note.len - 2), t->arena));
}

/* ---- routes that no case uses ---- */

static void count_routes(struct testing *t, const struct sl_case *c, struct sl_span result)
{
    struct sl_json_walk walk = sl_json_walk(sl_json_walk_member(result, SL_LIT("routes")));
    struct sl_span pair, name, n;
    while (sl_json_walk_next(&walk, NULL, &pair)) {
        struct sl_json_walk parts = sl_json_walk(pair);
        size_t i = 0;
        if (!sl_json_walk_next(&parts, NULL, &name) || !sl_json_walk_next(&parts, NULL, &n))
            continue;
        const char *route =
            sl_arena_copy(t->arena, sl_json_unescape(sl_span(name.ptr + 1, name.len - 2), t->arena));
        while (i < t->n_used && (strcmp(t->used[i].config, c->config) || strcmp(t->used[i].route, route)))
            i++;
        if (i == t->n_used)
            SL_PUSH_IN(t->arena, t->used, t->n_used, t->room_used) =
                (struct used){.config = sl_arena_copy(t->arena, sl_span_str(c->config)), .route = route};
        t->used[i].n += strtoull(n.ptr, NULL, 10);
    }
}

static void print_unused(const struct testing *t)
{
    for (size_t i = 0; i < t->n_used; i++)
        if (!t->used[i].n)
            printf("note: no case gives a record to the route %s of %s\n", t->used[i].route,
                   t->used[i].config);
}

/* ---- a case ---- */

static enum sl_status bless(struct testing *t, const struct sl_case *c, struct sl_span lines,
                            struct sl_error *error)
{
    struct sl_buffer text;
    sl_buffer_init(&text, RESULT_MOST);
    sl_case_bless(c, lines, &text);
    int err = sl_disk_replace_path(c->path, sl_buffer_span(&text));
    sl_buffer_clean_up(&text);
    t->blessed += !err;
    return err ? sl_fail(error, SL_REJECT, "CannotWrite", "cannot be written: %s", strerror(err)) : SL_OK;
}

/* SL_OK: all is as expected. */
static enum sl_status compare(struct testing *t, const struct sl_case *c, struct sl_span result,
                              struct sl_error *error)
{
    struct sl_span lines = sl_json_walk_member(result, SL_LIT("lines"));
    struct lines want = lines_of(c->expect, t->arena), have = lines_of(lines, t->arena);
    bool is_different = differ(t, &want, &have);
    if (t->is_blessing && (is_different || !c->expect.ptr)) {
        sl_buffer_reset(&t->told);
        return bless(t, c, lines, error);
    }
    if (!c->expect.ptr)
        return sl_fail(error, SL_REJECT, "NotExpected",
                       "has no \"expect\": if what left is right, write it with --bless");
    if (is_different)
        return sl_fail(error, SL_REJECT, "Different", "- is expected, and did not leave; + left");
    return SL_OK;
}

static void add_xml(struct testing *t, const char *path, const char *about, const struct sl_error *why)
{
    struct sl_buffer *b = &t->xml;
    sl_buffer_add_str(b, "  <testcase classname=\"sluice\" name=\"");
    sl_html_add(b, sl_span_str(path));
    if (*about) {
        sl_buffer_add_str(b, ": ");
        sl_html_add(b, sl_span_str(about));
    }
    sl_buffer_add_str(b, "\"");
    if (!why->code[0]) {
        sl_buffer_add_str(b, "/>\n");
        return;
    }
    sl_buffer_add_str(b, ">\n    <failure message=\"");
    sl_html_add(b, sl_span_str(why->text));
    sl_buffer_add_str(b, "\">");
    sl_html_add(b, sl_buffer_span(&t->told));
    sl_buffer_add_str(b, "</failure>\n  </testcase>\n");
}

static void print_case(struct testing *t, const char *path, const char *about, const struct sl_error *why,
                       bool was_blessed)
{
    bool is_good = !why->code[0];
    printf("%s %s%s%s\n",
           was_blessed ? "wrote"
           : is_good   ? "ok   "
                       : "FAIL ",
           path, *about ? ": " : "", about);
    if (!is_good)
        printf("      %s\n", why->text);
    fwrite(t->told.ptr ? t->told.ptr : "", 1, t->told.len, stdout);
    t->failed += !is_good;
    add_xml(t, path, about, why);
}

static void test_case(struct testing *t, const char *path)
{
    struct sl_error why = SL_NO_ERROR;
    struct sl_case c = {.about = ""};
    struct sl_buffer result;
    size_t blessed = t->blessed;
    sl_buffer_init(&result, RESULT_MOST);
    sl_buffer_reset(&t->told);
    enum sl_status status = sl_case_read(path, &t->options, t->arena, &c, &why);
    if (status == SL_OK)
        status = run_apart(t, &c, &result, &why);
    if (status == SL_OK) {
        count_routes(t, &c, sl_buffer_span(&result));
        status = compare(t, &c, sl_buffer_span(&result), &why);
        if (status != SL_OK)
            tell_notes(t, sl_buffer_span(&result));
    }
    print_case(t, path, c.about ? c.about : "", &why, t->blessed > blessed);
    sl_buffer_clean_up(&result);
}

/* ---- all of them ---- */

static enum sl_status write_junit(struct testing *t, struct sl_error *error)
{
    struct sl_buffer whole;
    sl_buffer_init(&whole, RESULT_MOST);
    sl_buffer_printf(
        &whole,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"sluice test\" tests=\"%zu\" "
        "failures=\"%zu\" errors=\"0\">\n",
        t->n, t->failed);
    sl_buffer_add_span(&whole, sl_buffer_span(&t->xml));
    sl_buffer_add_str(&whole, "</testsuite>\n");
    int fd = open(t->junit, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int err = fd < 0 ? errno : sl_disk_write(fd, sl_buffer_span(&whole));
    if (fd >= 0 && close(fd) != 0 && !err)
        err = errno;
    sl_buffer_clean_up(&whole);
    return err ? sl_fail(error, SL_REJECT, "CannotWrite", "--junit %s: cannot be written: %s", t->junit,
                         strerror(err))
               : SL_OK;
}

static int test_all(struct testing *t, struct sl_error *error)
{
    sl_command_heed_signals(-1, NULL); /* what a case has in $TMPDIR is removed first */
    for (size_t i = 0; i < t->n && !sl_command_stop; i++)
        test_case(t, t->paths[i]);
    if (sl_command_stop) {
        fputs("sluice test: stopped by a signal\n", stderr);
        return SL_EXIT_FAILED;
    }
    printf("%zu case%s: %zu passed, %zu failed", t->n, t->n == 1 ? "" : "s", t->n - t->failed, t->failed);
    printf(t->blessed ? ", %zu written: read the difference before you commit it\n" : "\n", t->blessed);
    print_unused(t);
    if (t->junit && write_junit(t, error) != SL_OK)
        return sl_flags_complain("test", error);
    return sl_flags_end("test", t->failed ? SL_EXIT_FAILED : SL_EXIT_OK);
}

int sl_verb_test(int argc, char **argv)
{
    struct testing t = {.is_blessing = false};
    struct sl_flag_list set = {.n = 0};
    const struct sl_flag flags[] = {
        {"config", SL_FLAG_TEXT, &t.options.config, "FILE",
         "of cases that name none (default: the first sluice.json beside the case, above it, or here)"},
        {"keys", SL_FLAG_TEXT, &t.options.keys, "PK,SK", "key attributes, of cases that name none"},
        {"set", SL_FLAG_LIST, &set, "NAME=VALUE", "a variable; those that are not set get a value that fits"},
        {"handler-path", SL_FLAG_TEXT, &t.options.handler_path, "FOLDERS",
         "where plugins are (default: handlers/ beside the configuration)"},
        {"bless", SL_FLAG_BOOL, &t.is_blessing, NULL, "write what left into the cases, as expected"},
        {"junit", SL_FLAG_TEXT, &t.junit, "FILE", "write the result as JUnit's XML, too, for CI"},
        {0}};
    const struct sl_usage usage = {
        .line = "test [flags] [CASE...]",
        .summary = "Runs cases through the real pipeline, without touching a target. A case is a JSON file "
                   "with records and what has to leave for them; a folder stands for the cases in it "
                   "(default: tests). Exit status: 0 all is as expected, 1 a case failed, 2 bad usage.",
        .example = "sluice test --junit junit.xml tests",
        .flags = flags,
        .operand = "CASE"};
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = SL_OK;
    t.options.set = &set;
    t.arena = sl_arena_new(64 * 1024);
    sl_buffer_init(&t.xml, RESULT_MOST);
    sl_buffer_init(&t.told, RESULT_MOST);
    for (int i = 1; i <= n && status == SL_OK; i++)
        status = add_operand(&t, argv[i], &error);
    if (n == 0)
        status = add_operand(&t, "tests", &error);
    int exit_status = status == SL_OK ? test_all(&t, &error) : sl_flags_complain("test", &error);
    sl_buffer_clean_up(&t.xml);
    sl_buffer_clean_up(&t.told);
    sl_arena_destroy(t.arena);
    return exit_status;
}
