#include "tests/support/verbs.h"

#include "base/error.h"
#include "cli/verbs.h"
#include "tests/support/disk_fault.h"
#include "tests/support/haste.h"
#include "tests/support/leaks.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS  96
#define TEXTS  1024
#define LAST_S 60 /* a verb that hangs ends then */

struct verbs {
    char *folder, *home;
    char *out, *err;
    const char *variables[16];
    size_t n_variables;
    char *texts[TEXTS]; /* that were read */
    size_t n_texts;
    int fault, fault_err;   /* the operation of the next one that fails; 0: none */
    const char *fault_only; /* its function */
    volatile pid_t running; /* 0: none */
    unsigned haste;         /* 0: none */
};

static char *path_in(const struct verbs *v, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", v->home, name) > 0);
    return path;
}

/* What the verb reads and writes by itself lies beside its folder. */
struct verbs *verbs_new(void)
{
    struct verbs *v = calloc(1, sizeof(*v));
    assert_non_null(v);
    v->home = test_folder_in_memory();
    v->folder = path_in(v, "folder");
    assert_int_equal(mkdir(v->folder, 0777), 0);
    verb_input(v, "");
    return v;
}

void verbs_destroy(struct verbs *v)
{
    for (size_t i = 0; i < v->n_texts; i++)
        free(v->texts[i]);
    test_folder_remove(v->home);
    free(v->folder);
    free(v->out);
    free(v->err);
    free(v);
}

const char *verbs_folder(const struct verbs *v)
{
    return v->folder;
}

/* Cuts the line in place. */
static int split(char *line, char *words[WORDS])
{
    static char name[] = "sluice";
    int n = 0;
    words[n++] = name;
    char *to = line;
    for (char *at = line; *at;) {
        while (*at == ' ')
            at++;
        if (!*at)
            break;
        assert_true(n < WORDS - 1);
        words[n++] = to;
        for (bool is_quoted = false; *at && (is_quoted || *at != ' '); at++)
            if (*at == '\'')
                is_quoted = !is_quoted;
            else
                *to++ = *at;
        at += *at == ' ';
        *to++ = '\0';
    }
    words[n] = NULL;
    return n;
}

static void redirect(const struct verbs *v, const char *name, int descriptor, int flags)
{
    char *path = path_in(v, name);
    int file = open(path, flags, 0666);
    if (file < 0 || dup2(file, descriptor) < 0)
        _exit(99);
    close(file);
    free(path);
}

static void set_environment(const struct verbs *v)
{
    extern char **environ;
    for (char **at = environ; *at;)
        if (strncmp(*at, "AWS_", 4) == 0 || strncmp(*at, "SLUICE_", 7) == 0) {
            char name[256];
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
            unsetenv(name);
            at = environ;
        } else {
            at++;
        }
    setenv("AWS_ACCESS_KEY_ID", "x", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
    setenv("AWS_REGION", "us-east-1", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < v->n_variables; i++)
        if (putenv((char *)(uintptr_t)v->variables[i]) != 0)
            _exit(99);
}

static void run_here(const struct verbs *v, int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    leaks_are_meant(); /* what a verb has at its end, the system takes back */
    alarm(LAST_S);
    redirect(v, "in", 0, O_RDONLY);
    redirect(v, "out", 1, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(v, "err", 2, O_WRONLY | O_CREAT | O_TRUNC);
    if (chdir(v->folder) != 0)
        _exit(99);
    set_environment(v);
    if (v->haste)
        haste(v->haste);
    disk_fault_begin(v->fault, v->fault_err, v->fault_only);
    int status = sl_sluice(argc, argv);
    disk_fault_end();
    exit(status);
}

static int wait_for(pid_t pid, unsigned ms, int number)
{
    int status = 0;
    if (ms) {
        usleep(ms * 1000);
        kill(pid, number);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int SL_PRINTF(4, 0) run(struct verbs *v, unsigned ms, int number, const char *format, va_list list)
{
    char *line = NULL, *words[WORDS];
    assert_true(vasprintf(&line, format, list) > 0);
    int n = split(line, words);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_here(v, n, words);
    v->running = pid;
    int status = wait_for(pid, ms, number);
    v->running = 0;
    disk_fault_end();
    v->fault = 0;
    free(line);
    free(v->out);
    free(v->err);
    char *out = path_in(v, "out"), *err = path_in(v, "err");
    v->out = test_read(out, NULL);
    v->err = test_read(err, NULL);
    free(out);
    free(err);
    assert_true(status != 99);
    return status;
}

int verb(struct verbs *v, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int status = run(v, 0, 0, format, list);
    va_end(list);
    return status;
}

int verb_cut(struct verbs *v, unsigned ms, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int status = run(v, ms, SIGKILL, format, list);
    va_end(list);
    return status;
}

int verb_stop(struct verbs *v, unsigned ms, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int status = run(v, ms, SIGTERM, format, list);
    va_end(list);
    return status;
}

void verb_signal(const struct verbs *v, int number)
{
    pid_t pid = v->running;
    if (pid > 0)
        kill(pid, number);
}

void verbs_link_bootstrap(void)
{
    char path[512], link[600];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    snprintf(link, sizeof(link), "%.*s/bootstrap", (int)(strrchr(path, '/') - path), path);
    unlink(link);
    assert_int_equal(symlink(path, link), 0);
}

bool verbs_is_bootstrap(int argc, char **argv)
{
    return argc > 0 && sl_span_ends(sl_span_str(argv[0]), SL_LIT("/bootstrap"));
}

const char *verb_out(const struct verbs *v)
{
    return v->out ? v->out : "";
}

const char *verb_err(const struct verbs *v)
{
    return v->err ? v->err : "";
}

void verb_fault(struct verbs *v, int n, int err, const char *only)
{
    v->fault = n;
    v->fault_err = err;
    v->fault_only = only;
}

void verb_haste(struct verbs *v, unsigned factor)
{
    v->haste = factor;
}

void verb_input(struct verbs *v, const char *text)
{
    char *path = path_in(v, "in");
    test_write(path, text);
    free(path);
}

void verb_set(struct verbs *v, const char *variable)
{
    assert_true(v->n_variables < sizeof(v->variables) / sizeof(v->variables[0]));
    v->variables[v->n_variables++] = variable;
}

void verb_write(struct verbs *v, const char *name, const char *text)
{
    char *path = NULL, *copy = strdup(text);
    assert_true(asprintf(&path, "%s/%s", v->folder, name) > 0 && copy);
    json_quote(copy);
    test_write(path, copy);
    free(path);
    free(copy);
}

const char *verb_read(struct verbs *v, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", v->folder, name) > 0 && v->n_texts < TEXTS);
    char *text = test_read(path, NULL);
    free(path);
    v->texts[v->n_texts++] = text;
    return text ? text : "";
}

void verb_assert(struct verbs *v, int status, int wanted, const char *text)
{
    if (status != wanted || (!strstr(verb_out(v), text) && !strstr(verb_err(v), text)))
        fail_msg("the exit status is %d, wanted %d with \"%s\"; out:\n%serr:\n%s", status, wanted, text,
                 verb_out(v), verb_err(v));
}
