#include "tests/support/runtime_api.h"

#include "tests/support/test.h"

#include "base/buffer.h"
#include "runtime/start.h"
#include "tests/support/leaks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS   600000
#define CONNECTIONS   64
#define VARIABLES     40
#define FILES         8
#define REQUEST_BYTES (8u << 20)

extern char **environ;

/* A connection, and the request on it. */
struct api_request {
    int fd; /* -1: free */
    struct sl_buffer in;
    size_t number; /* the order of arrival; 0: not whole yet */
    bool is_taken;
    char *line, *head;
    size_t body;
};

struct api {
    char *folder;
    int listener;
    char address[32];
    struct api_request requests[CONNECTIONS];
    size_t n_requests, n_events;
    pid_t pid;
    int pid_fd;
    char *variables[VARIABLES];
    size_t n_variables;
    struct {
        const char *name;
        char *text;
    } files[FILES];
    char *posted; /* the last body */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the server ---- */

static void end_request(struct api_request *r)
{
    sl_buffer_reset(&r->in);
    r->number = r->body = 0;
    r->is_taken = false;
}

static void close_connection(struct api_request *r)
{
    close(r->fd);
    r->fd = -1;
    end_request(r);
}

static void take_connection(struct api *a)
{
    int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; i < CONNECTIONS && fd >= 0; i++)
        if (a->requests[i].fd < 0) {
            a->requests[i].fd = fd;
            return;
        }
    fail_msg("too many connections");
}

static size_t body_bytes(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");
    return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* Is the request whole? Then it is parsed. */
static void look_at(struct api *a, struct api_request *r)
{
    r->in.ptr[r->in.len] = '\0';
    char *end = strstr(r->in.ptr, "\r\n\r\n");
    if (!end || r->in.len < (size_t)(end - r->in.ptr) + 4 + body_bytes(r->in.ptr))
        return;
    r->body = (size_t)(end - r->in.ptr) + 4;
    r->line = r->in.ptr;
    r->head = strstr(r->in.ptr, "\r\n");
    r->head[0] = end[2] = '\0';
    r->head += 2;
    r->number = ++a->n_requests;
}

static void receive(struct api *a, struct api_request *r)
{
    char *room = sl_buffer_reserve(&r->in, 65536 + 1);
    ssize_t n = recv(r->fd, room, 65536, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        close_connection(r);
        return;
    }
    r->in.len += (size_t)n;
    look_at(a, r);
}

/* Whole, and still there when its sender is gone: an answer, not a question. */
static bool is_settled(const struct api_request *r)
{
    return r->number && (r->is_taken || strncmp(r->line, "GET", 3) != 0);
}

/* Does what there is to do, after waiting for it. False: nothing has happened. */
static bool turn(struct api *a, int wait_ms)
{
    struct pollfd fds[CONNECTIONS + 2] = {{.fd = a->listener, .events = POLLIN},
                                          {.fd = a->pid_fd, .events = POLLIN}};
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct api_request *r = &a->requests[i];
        fds[i + 2] = (struct pollfd){.fd = is_settled(r) ? -1 : r->fd, .events = POLLIN};
    }
    if (poll(fds, CONNECTIONS + 2, wait_ms) <= 0)
        return false;
    bool is_busy = false;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (fds[i + 2].revents) {
            if (a->requests[i].number)
                close_connection(&a->requests[i]);
            else
                receive(a, &a->requests[i]);
            is_busy = true;
        }
    if (fds[0].revents)
        take_connection(a);
    if (fds[1].revents && !fds[0].revents && !is_busy) { /* all that it sent was read */
        close(a->pid_fd);
        a->pid_fd = -1;
    }
    return true;
}

static bool has_hung_up(const struct api_request *r)
{
    char byte;
    return recv(r->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool begins(const struct api_request *r, const char *begin)
{
    return r->number && !r->is_taken && strncmp(r->line, begin, strlen(begin)) == 0 &&
           (is_settled(r) || !has_hung_up(r));
}

static struct api_request *find(struct api *a, const char *begin)
{
    struct api_request *found = NULL;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (begins(&a->requests[i], begin) && (!found || a->requests[i].number < found->number))
            found = &a->requests[i];
    return found;
}

struct api_request *api_take(struct api *a, const char *begin)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    struct api_request *r;
    while (!(r = find(a, begin))) {
        if (a->pid_fd < 0 && a->pid > 0)
            fail_msg("the process ended before it sent \"%s\"; it wrote: %s", begin, api_file(a, "err"));
        if (now_ms() > end_ms)
            fail_msg("there was no \"%s\"; the process wrote: %s", begin, api_file(a, "err"));
        turn(a, 100);
    }
    r->is_taken = true;
    return r;
}

static size_t count(const struct api *a, const char *begin)
{
    size_t n = 0;
    for (size_t i = 0; i < CONNECTIONS; i++)
        n += begins(&a->requests[i], begin);
    return n;
}

size_t api_count(struct api *a, const char *begin, int wait_ms)
{
    const int64_t end_ms = now_ms() + wait_ms;
    do
        turn(a, end_ms > now_ms() ? (int)(end_ms - now_ms()) : 0);
    while (now_ms() < end_ms);
    return count(a, begin);
}

void api_await(struct api *a, const char *begin, size_t n)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    while (count(a, begin) < n) {
        if (now_ms() > end_ms)
            fail_msg("%zu and not %zu \"%s\"; the process wrote: %s", count(a, begin), n, begin,
                     api_file(a, "err"));
        turn(a, 100);
    }
}

const char *api_line(const struct api_request *r)
{
    return r->line;
}

const char *api_head(const struct api_request *r)
{
    return r->head;
}

const char *api_body(const struct api_request *r)
{
    return r->in.ptr + r->body;
}

bool api_is_open(const struct api_request *r)
{
    return !has_hung_up(r);
}

static void send_bytes(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the process may be gone */
        bytes += sent;
        n -= (size_t)sent;
    }
}

void api_reply(struct api *a, struct api_request *r, const char *text)
{
    (void)a;
    send_bytes(r->fd, text, strlen(text));
    end_request(r);
}

void api_hang_up(struct api *a, struct api_request *r, const char *text, size_t cut)
{
    (void)a;
    size_t n = text ? strlen(text) : 0;
    send_bytes(r->fd, text, cut && cut < n ? cut : n);
    close_connection(r);
}

/* ---- events ---- */

void api_offer(struct api *a, struct sl_span payload, const char *id, const char *headers)
{
    struct api_request *r = api_take(a, API_NEXT);
    struct sl_buffer out;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    sl_buffer_init(&out, REQUEST_BYTES);
    sl_buffer_printf(&out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nLambda-Runtime-Aws-Request-Id: %s\r\n",
                     payload.len, id);
    if (!headers || headers[0] != '!')
        sl_buffer_printf(&out,
                         "Lambda-Runtime-Deadline-Ms: %lld\r\nLambda-Runtime-Invoked-Function-Arn: "
                         "arn:aws:lambda:us-east-1:123456789012:function:f\r\n",
                         (long long)now.tv_sec * 1000 + 30000);
    sl_buffer_add_str(&out, headers ? headers + (headers[0] == '!') : "");
    sl_buffer_add_str(&out, "\r\n");
    sl_buffer_add_span(&out, payload);
    send_bytes(r->fd, out.ptr, out.len);
    sl_buffer_clean_up(&out);
    end_request(r);
}

static struct api_post accept_post(struct api *a, struct api_request *r)
{
    static const char type[] = "Lambda-Runtime-Function-Error-Type: ";
    struct api_post post = {.is_error = strstr(r->line, "/error ") != NULL};
    const char *id = strstr(r->line, "/invocation/"), *kind = strcasestr(r->head, type);
    if (id)
        snprintf(post.id, sizeof(post.id), "%.*s", (int)strcspn(id + 12, "/ "), id + 12);
    if (kind)
        snprintf(post.type, sizeof(post.type), "%.*s", (int)strcspn(kind + sizeof(type) - 1, "\r"),
                 kind + sizeof(type) - 1);
    free(a->posted);
    a->posted = strdup(api_body(r));
    post.body = a->posted;
    api_reply(a, r, API_ACCEPTED);
    return post;
}

struct api_post api_posted(struct api *a)
{
    return accept_post(a, api_take(a, API_INVOCATION));
}

struct api_post api_init_error(struct api *a)
{
    return accept_post(a, api_take(a, API_INIT_ERROR));
}

struct api_post api_deliver(struct api *a, struct sl_span payload)
{
    char id[32];
    snprintf(id, sizeof(id), "%zu", ++a->n_events);
    api_offer(a, payload, id, NULL);
    struct api_post post = api_posted(a);
    assert_string_equal(post.id, id);
    return post;
}

void api_deliver_all(struct api *a, struct sl_span payload)
{
    struct api_post post = api_deliver(a, payload);
    if (post.is_error || strcmp(post.body, "{\"batchItemFailures\":[]}") != 0)
        fail_msg("not all is done: %s %s; the process wrote: %s", post.type, post.body, api_file(a, "err"));
}

struct sl_span api_event(size_t first, size_t n)
{
    struct sl_buffer out;
    sl_buffer_init(&out, REQUEST_BYTES);
    sl_buffer_add_str(&out, "{'Records':[");
    for (size_t i = first; i < first + n; i++)
        sl_buffer_printf(
            &out,
            "%s{'eventID':'e%zu','eventName':'INSERT','eventVersion':'1.1','eventSource':'aws:dynamodb',"
            "'awsRegion':'us-east-1','dynamodb':{'ApproximateCreationDateTime':%lld,'Keys':{'PK':{'S':'k%zu'}"
            "},'NewImage':{'PK':{'S':'k%zu'}%s},'SequenceNumber':'%zu','SizeBytes':10,'StreamViewType':"
            "'NEW_AND_OLD_IMAGES'},'eventSourceARN':'arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/"
            "2019-11-14T00:04:06.388'}",
            i > first ? "," : "", i, (long long)time(NULL), i, i, i % 2 ? "" : ",'even':{'S':'x'}", i);
    sl_buffer_add_str(&out, "]}");
    sl_buffer_add_char(&out, '\0');
    struct sl_span event = json_span(out.ptr);
    sl_buffer_clean_up(&out);
    return event;
}

/* ---- the process ---- */

void api_set(struct api *a, const char *variable)
{
    size_t n = strcspn(variable, "=");
    for (size_t i = 0; i < a->n_variables; i++)
        if (strncmp(a->variables[i], variable, n + 1) == 0) {
            free(a->variables[i]);
            a->variables[i] = a->variables[--a->n_variables];
            a->variables[a->n_variables] = NULL;
            break;
        }
    assert_true(a->n_variables < VARIABLES - 1);
    if (variable[n + 1])
        a->variables[a->n_variables++] = strdup(variable);
}

static void set_printed(struct api *a, const char *name, const char *value)
{
    char *text = NULL;
    assert_true(asprintf(&text, "%s=%s", name, value) > 0);
    api_set(a, text);
    free(text);
}

static void redirect(const char *name, int fd)
{
    int file = open(name, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(99);
}

void api_start_this(struct api *a, int (*run)(void *), void *arg)
{
    assert_int_equal(a->pid, 0);
    fflush(NULL);
    a->pid = fork();
    if (a->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        leaks_are_meant();
        for (int number = 1; number < NSIG; number++) /* as after exec: cmocka has some of its own */
            if (number != SIGUSR2)                    /* (coverage.c) */
                signal(number, SIG_DFL);
        if (chdir(a->folder) != 0)
            _exit(99);
        redirect("/dev/null", 0);
        redirect("out", 1);
        redirect("err", 2);
        close_range(3, ~0u, 0);
        environ = a->variables;
        exit(run(arg));
    }
    assert_true(a->pid > 0);
    a->pid_fd = pidfd_open(a->pid, 0);
}

static int start(void *arg)
{
    (void)arg;
    return sl_start("bootstrap", environ);
}

void api_start(struct api *a, const char *config)
{
    if (config) {
        char path[300];
        snprintf(path, sizeof(path), "%s/sluice.json", a->folder);
        test_write(path, json(config));
    }
    api_start_this(a, start, NULL);
}

pid_t api_process(const struct api *a)
{
    assert_true(a->pid > 0);
    return a->pid;
}

static int reap(struct api *a)
{
    int status = 0;
    while (waitpid(a->pid, &status, 0) < 0 && errno == EINTR) {
    }
    a->pid = 0;
    if (a->pid_fd >= 0)
        close(a->pid_fd);
    a->pid_fd = -1;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (a->requests[i].fd >= 0)
            close_connection(&a->requests[i]);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int api_wait(struct api *a)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    while (a->pid_fd >= 0) {
        if (now_ms() > end_ms)
            fail_msg("the process does not end; it wrote: %s", api_file(a, "err"));
        turn(a, 100);
    }
    return reap(a);
}

int api_stop(struct api *a)
{
    kill(api_process(a), SIGTERM);
    return api_wait(a);
}

const char *api_file(struct api *a, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", a->folder, name);
    for (size_t i = 0; i < FILES; i++)
        if (!a->files[i].name || strcmp(a->files[i].name, name) == 0) {
            free(a->files[i].text);
            a->files[i].name = name;
            a->files[i].text = test_read(path, NULL);
            return a->files[i].text ? a->files[i].text : "";
        }
    fail_msg("too many files");
    return "";
}

size_t api_times(struct api *a, const char *name, const char *words)
{
    size_t n = 0;
    for (const char *at = api_file(a, name); (at = strstr(at, words)); at += strlen(words))
        n++;
    return n;
}

void api_await_words(struct api *a, const char *name, const char *words, size_t times)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    while (api_times(a, name, words) < times) {
        if (now_ms() > end_ms)
            fail_msg("%s does not say \"%s\" %zu times: %s", name, words, times, api_file(a, name));
        turn(a, 10);
    }
}

/* ---- all of it ---- */

/* build/tests/runtime/plugins, for every test in a folder below tests. */
static void set_handler_path(struct api *a)
{
    char path[512], folders[600];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    char *tests = strstr(path, "/tests/");
    for (char *next; tests && (next = strstr(tests + 1, "/tests/"));)
        tests = next;
    assert_non_null(tests);
    snprintf(folders, sizeof(folders), "%.*s/tests/runtime/plugins", (int)(tests - path), path);
    set_printed(a, "SLUICE_HANDLER_PATH", folders);
}

struct api *api_new(void)
{
    struct api *a = calloc(1, sizeof(*a));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    assert_non_null(a);
    a->folder = test_folder_in_memory();
    a->pid_fd = -1;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        a->requests[i].fd = -1;
        sl_buffer_init(&a->requests[i].in, REQUEST_BYTES);
    }
    a->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(a->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(a->listener, 64), 0);
    assert_int_equal(getsockname(a->listener, (struct sockaddr *)&at, &size), 0);
    snprintf(a->address, sizeof(a->address), "127.0.0.1:%d", ntohs(at.sin_port));
    set_printed(a, "AWS_LAMBDA_RUNTIME_API", a->address);
    set_printed(a, "TMPDIR", a->folder);
    set_printed(a, "DIR", a->folder);
    char config[300];
    snprintf(config, sizeof(config), "%s/sluice.json", a->folder);
    set_printed(a, "SLUICE_CONFIG", config);
    set_handler_path(a);
    return a;
}

void api_destroy(struct api *a)
{
    if (a->pid > 0) {
        kill(a->pid, SIGKILL);
        reap(a);
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (a->requests[i].fd >= 0)
            close(a->requests[i].fd);
        sl_buffer_clean_up(&a->requests[i].in);
    }
    close(a->listener);
    for (size_t i = 0; i < a->n_variables; i++)
        free(a->variables[i]);
    for (size_t i = 0; i < FILES; i++)
        free(a->files[i].text);
    free(a->posted);
    test_folder_remove(a->folder);
    free(a);
}

const char *api_folder(const struct api *a)
{
    return a->folder;
}

const char *api_address(const struct api *a)
{
    return a->address;
}
