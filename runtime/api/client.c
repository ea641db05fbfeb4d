/* The Runtime API on libcurl: one connection, requests that may be sent once more, and what each answer
 * means. */
#include "runtime/api/client.h"

#include "base/json_write.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* An event with a longer header value is refused. The longest, the client context, has 3583 bytes. */
#define HEADER_BYTES (64 * 1024)

/* Replies to a POST are {"status":"OK"} or an error object; what is longer is cut. */
#define REPLY_BYTES 4096

/* What one receive may take, larger than curl's own 16 KB. Measured with 5.3 MB on loopback: from 128 KB on
 * it takes 1 to 4 ms; with 10 MB, curl's largest, 5 MB more stay resident. */
#define RECEIVE_BYTES (512 * 1024L)

/* The endpoint's part of a URL, and a whole URL: request ids are UUIDs. */
#define BASE_BYTES 512
#define URL_BYTES  1024

/* A function error's message is cut to this: the Runtime API keeps 1 MiB of an error, and nobody reads so
 * much. */
#define MESSAGE_BYTES (64 * 1024)

enum header {
    REQUEST_ID,
    DEADLINE,
    FUNCTION_ARN,
    TRACE_ID,
    CLIENT_CONTEXT,
    COGNITO_IDENTITY,
    TENANT_ID,
    CONTENT_TYPE,
    HEADERS
};

static const char *const header_names[HEADERS] = {
    [REQUEST_ID] = "Lambda-Runtime-Aws-Request-Id",
    [DEADLINE] = "Lambda-Runtime-Deadline-Ms",
    [FUNCTION_ARN] = "Lambda-Runtime-Invoked-Function-Arn",
    [TRACE_ID] = "Lambda-Runtime-Trace-Id",
    [CLIENT_CONTEXT] = "Lambda-Runtime-Client-Context",
    [COGNITO_IDENTITY] = "Lambda-Runtime-Cognito-Identity",
    [TENANT_ID] = "Lambda-Runtime-Aws-Tenant-Id",
    [CONTENT_TYPE] = "Content-Type",
};

struct sl_runtime {
    CURL *easy;
    CURLM *multi; /* drives the one handle, so that a descriptor can end the wait */
    char base[BASE_BYTES];
    char user_agent[128];
    int stop_fd;              /* -1: none */
    curl_socket_t connection; /* of the last request; CURL_SOCKET_BAD (-1): not known */
    const struct sl_runtime_beside *beside;
    struct sl_buffer headers[HEADERS];
    struct sl_buffer payload; /* of the event; reused */
    struct sl_buffer reply;   /* to a POST */
    bool is_cut;              /* the event did not fit */
    bool has_head;            /* the empty line after the headers has arrived */
    unsigned sendings;        /* of the request: curl sends again by itself when a kept connection is dead */
};

/* ---- one request ---- */

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct sl_runtime *rt = arg;
    sl_buffer_add(&rt->payload, bytes, size * n);
    rt->is_cut |= rt->payload.failed;
    return size * n; /* a body that is too long is read to its end, so that the connection stays usable */
}

static size_t on_reply(char *bytes, size_t size, size_t n, void *arg)
{
    struct sl_runtime *rt = arg;
    size_t room = rt->reply.max - rt->reply.len;
    sl_buffer_add(&rt->reply, bytes, size * n < room ? size * n : room);
    return size * n;
}

static struct sl_span trim(struct sl_span s)
{
    while (s.len && strchr(" \t\r\n", s.ptr[s.len - 1]))
        s.len--;
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    return s;
}

static void reset_event(struct sl_runtime *rt)
{
    for (int i = 0; i < HEADERS; i++)
        sl_buffer_reset(&rt->headers[i]);
    sl_buffer_reset(&rt->payload);
    rt->is_cut = rt->has_head = false;
}

static bool name_is(struct sl_span name, const char *expected)
{
    return name.len == strlen(expected) && strncasecmp(name.ptr, expected, name.len) == 0;
}

/* Content-Length is only a hint for the size of the buffer; curl itself checks that as much arrives. */
static void expect_length(struct sl_runtime *rt, struct sl_span value)
{
    size_t n = 0;
    for (size_t i = 0; i < value.len && value.ptr[i] >= '0' && value.ptr[i] <= '9' && n < SIZE_MAX / 20; i++)
        n = n * 10 + (size_t)(value.ptr[i] - '0');
    if (n < rt->payload.max)
        (void)sl_buffer_reserve(&rt->payload, n + 1);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct sl_runtime *rt = arg;
    struct sl_span line = {bytes, size * n};
    if (sl_span_starts(line, SL_LIT("HTTP/")))
        reset_event(rt); /* curl sends a request again when a kept connection turns out to be dead */
    rt->has_head |= strchr("\r\n", line.ptr[0]) != NULL; /* (no line is without its end) */
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon)
        return line.len;
    struct sl_span name = {line.ptr, (size_t)(colon - line.ptr)};
    struct sl_span value = trim(sl_span_from(line, name.len + 1));
    if (name_is(name, "Content-Length"))
        expect_length(rt, value);
    for (int i = 0; i < HEADERS; i++) {
        if (!name_is(name, header_names[i]))
            continue;
        sl_buffer_reset(&rt->headers[i]);
        sl_buffer_add_span(&rt->headers[i], value);
        sl_buffer_add_char(&rt->headers[i], '\0');
        rt->is_cut |= rt->headers[i].failed;
    }
    return line.len;
}

static int on_begun(void *arg, char *address, char *local, int port, int local_port)
{
    struct sl_runtime *rt = arg;
    (void)address, (void)local, (void)port, (void)local_port;
    rt->sendings++;
    return CURL_PREREQFUNC_OK;
}

/* What every request has. `next` has no time limit: the sandbox may be frozen between request and answer, and
 * the clock jumps when it thaws. So neither a total time nor a minimum speed may be set. */
static void prepare(struct sl_runtime *rt, const char *url, bool is_retry)
{
    CURL *easy = rt->easy;
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY,
                     ""); /* http_proxy in the environment must not apply to the loopback */
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, rt->user_agent);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, is_retry ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_begun);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, rt);
}

#define WAIT_MS 60000

/* Waits until the transfer can go on, or has to stop. False: libcurl cannot wait. */
static bool wait_for_more(struct sl_runtime *rt, bool may_stop, bool *stops)
{
    struct curl_waitfd more[2] = {{.fd = -1}};
    unsigned n = 0;
    int wait_ms = WAIT_MS;
    const bool is_watched = may_stop && rt->stop_fd >= 0;
    if (is_watched)
        more[n++] = (struct curl_waitfd){.fd = rt->stop_fd, .events = CURL_WAIT_POLLIN};
    if (may_stop && rt->beside) {
        const struct sl_runtime_beside *beside = rt->beside;
        beside->turn(beside->self);
        int fd = beside->fd(beside->self), due_ms = beside->wait_ms(beside->self);
        wait_ms = due_ms < wait_ms ? due_ms : wait_ms;
        if (fd >= 0)
            more[n++] = (struct curl_waitfd){.fd = fd, .events = CURL_WAIT_POLLIN};
    }
    if (curl_multi_poll(rt->multi, more, n, wait_ms, NULL) != CURLM_OK)
        return false;
    *stops = is_watched && more[0].revents;
    return true;
}

/* Runs the prepared request to its end. SL_FATAL: it has to stop (see sl_runtime_stop_on). */
static enum sl_status perform(struct sl_runtime *rt, bool may_stop, CURLcode *result)
{
    curl_multi_add_handle(rt->multi, rt->easy);
    enum sl_status status = SL_OK;
    int running = 1;
    *result = CURLE_RECV_ERROR;
    for (bool stops = false; curl_multi_perform(rt->multi, &running) == CURLM_OK && running;) {
        if (!wait_for_more(rt, may_stop, &stops))
            break;
        if (stops) {
            status = SL_FATAL;
            break;
        }
    }
    int left;
    for (CURLMsg *m = curl_multi_info_read(rt->multi, &left); m; m = curl_multi_info_read(rt->multi, &left))
        if (m->msg == CURLMSG_DONE)
            *result = m->data.result;
    rt->connection = CURL_SOCKET_BAD; /* (it is found only while the handle is in the multi) */
    (void)curl_easy_getinfo(rt->easy, CURLINFO_ACTIVESOCKET, &rt->connection);
    curl_multi_remove_handle(rt->multi, rt->easy);
    return status;
}

static long response_code(struct sl_runtime *rt)
{
    long code = 0;
    curl_easy_getinfo(rt->easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

/* ---- opening ---- */

static enum sl_status set_base(struct sl_runtime *rt, const char *endpoint, struct sl_error *error)
{
    struct sl_span at = sl_span_str(endpoint);
    while (sl_span_ends(at, SL_LIT("/")))
        at.len--;
    bool has_scheme = at.ptr && strstr(at.ptr, "://");
    int n =
        snprintf(rt->base, sizeof(rt->base), "%s%.*s/2018-06-01", has_scheme ? "" : "http://", SL_ARG(at));
    if (at.len == 0 || (size_t)n >= sizeof(rt->base))
        return sl_fail(error, SL_FATAL, "InvalidEndpoint",
                       "the Runtime API's address \"%.100s\" is not host:port", endpoint ? endpoint : "");
    return SL_OK;
}

enum sl_status sl_runtime_open(const char *endpoint, const char *user_agent, struct sl_runtime **out,
                               struct sl_error *error)
{
    struct sl_runtime *rt = calloc(1, sizeof(*rt));
    if (!rt)
        sl_die("out of memory: the Runtime API client");
    rt->stop_fd = -1;
    rt->connection = CURL_SOCKET_BAD;
    snprintf(rt->user_agent, sizeof(rt->user_agent), "%s", user_agent);
    for (int i = 0; i < HEADERS; i++)
        sl_buffer_init(&rt->headers[i], HEADER_BYTES);
    sl_buffer_init(&rt->payload, SL_RUNTIME_PAYLOAD_BYTES + 1); /* and a NUL */
    sl_buffer_init(&rt->reply, REPLY_BYTES);
    enum sl_status status = set_base(rt, endpoint, error);
    if (status == SL_OK) {
        rt->easy = curl_easy_init();
        rt->multi = curl_multi_init();
        if (!rt->easy || !rt->multi)
            sl_die("out of memory: libcurl");
        *out = rt;
    } else {
        sl_runtime_close(rt);
    }
    return status;
}

void sl_runtime_close(struct sl_runtime *rt)
{
    if (!rt)
        return;
    curl_easy_cleanup(rt->easy);
    curl_multi_cleanup(rt->multi);
    for (int i = 0; i < HEADERS; i++)
        sl_buffer_clean_up(&rt->headers[i]);
    sl_buffer_clean_up(&rt->payload);
    sl_buffer_clean_up(&rt->reply);
    free(rt);
}

int sl_runtime_connection(const struct sl_runtime *rt)
{
    return rt->connection;
}

void sl_runtime_beside(struct sl_runtime *rt, const struct sl_runtime_beside *beside)
{
    rt->beside = beside;
}

void sl_runtime_stop_on(struct sl_runtime *rt, int fd)
{
    rt->stop_fd = fd;
}

/* ---- next ---- */

static const char *header_text(const struct sl_runtime *rt, enum header h)
{
    return rt->headers[h].len && !rt->headers[h].failed ? rt->headers[h].ptr : "";
}

/* 0, as for an absent deadline, when the text is not a number or too large. */
static int64_t epoch_ms(const char *text)
{
    int64_t ms = 0;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' || ms > INT64_MAX / 10 - 1)
            return 0;
        ms = ms * 10 + (*p - '0');
    }
    return ms;
}

static void fill_event(struct sl_runtime *rt, struct sl_runtime_event *out)
{
    sl_buffer_add_char(&rt->payload, '\0'); /* no part of it */
    rt->payload.len -= !rt->payload.failed;
    *out = (struct sl_runtime_event){
        .payload = sl_buffer_span(&rt->payload),
        .request_id = header_text(rt, REQUEST_ID),
        .function_arn = header_text(rt, FUNCTION_ARN),
        .trace_id = header_text(rt, TRACE_ID),
        .client_context = header_text(rt, CLIENT_CONTEXT),
        .cognito_identity = header_text(rt, COGNITO_IDENTITY),
        .tenant_id = header_text(rt, TENANT_ID),
        .content_type = header_text(rt, CONTENT_TYPE),
        .deadline_epoch_ms = epoch_ms(header_text(rt, DEADLINE)),
    };
}

static enum sl_status judge_next(struct sl_runtime *rt, struct sl_runtime_event *out, struct sl_error *error)
{
    long code = response_code(rt);
    if (code == 204)
        return sl_fail(error, SL_RETRY, "NoEvent", "the Runtime API has no event yet (204)");
    if (code == 500)
        return sl_fail(error, SL_FATAL, "InternalServerError",
                       "the Runtime API answered 500 to next: this environment cannot go on");
    if (code != 200)
        return sl_fail(error, SL_RETRY, "UnexpectedAnswer", "the Runtime API answered %ld to next", code);
    rt->is_cut |= rt->payload.len > SL_RUNTIME_PAYLOAD_BYTES;
    fill_event(rt, out);
    if (!out->request_id[0])
        return sl_fail(error, SL_RETRY, "NoRequestId",
                       "the Runtime API served an event without the header %s, so it cannot be answered",
                       header_names[REQUEST_ID]);
    if (rt->is_cut)
        return sl_fail(error, SL_REJECT, "EventTooLarge", "the event has more than %d bytes",
                       SL_RUNTIME_PAYLOAD_BYTES);
    return SL_OK;
}

/* One place for all of them: setenv() keeps every value that it was ever given, and each invocation has
 * another. */
void sl_runtime_export_trace_id(const char *trace_id)
{
    static const char name[] = "_X_AMZN_TRACE_ID";
    static char variable[HEADER_BYTES];
    unsetenv(name);
    int n = snprintf(variable, sizeof(variable), "%s=%s", name, trace_id);
    if (trace_id[0] && (size_t)n < sizeof(variable))
        putenv(variable);
}

/* A connection that cannot be made because this process has no descriptor left says nothing of the Runtime
 * API. */
static bool lacks_descriptors(void)
{
    int fd = dup(STDERR_FILENO);
    bool lacks = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (fd >= 0)
        close(fd);
    return lacks;
}

static enum sl_status fail_broken(const struct sl_runtime *rt, const char *what, CURLcode result,
                                  struct sl_error *error)
{
    if (lacks_descriptors())
        return sl_fail(error, SL_RETRY, SL_RUNTIME_NO_DESCRIPTORS, "%s at %s: %s", what, rt->base,
                       strerror(EMFILE));
    return sl_fail(error, SL_RETRY, "ConnectionBroken", "%s at %s: %s", what, rt->base,
                   result == CURLE_OK ? "its answer was cut off" : curl_easy_strerror(result));
}

/* A broken transfer is repeated at once, on a new connection: until an event is answered, the Runtime API
 * serves the same event. */
enum sl_status sl_runtime_next(struct sl_runtime *rt, struct sl_runtime_event *out, struct sl_error *error)
{
    char url[URL_BYTES];
    snprintf(url, sizeof(url), "%s/runtime/invocation/next", rt->base);
    CURLcode result = CURLE_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        prepare(rt, url, attempt > 0);
        reset_event(rt);
        curl_easy_setopt(rt->easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(rt->easy, CURLOPT_HEADERDATA, rt);
        curl_easy_setopt(rt->easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(rt->easy, CURLOPT_WRITEDATA, rt);
        if (perform(rt, true, &result) != SL_OK)
            return sl_fail(error, SL_FATAL, "Stopped", "asked to stop while waiting for the next event");
        if (result == CURLE_OK && rt->has_head)
            return judge_next(rt, out, error);
    }
    return fail_broken(rt, "no event from the Runtime API", result, error);
}

/* ---- answers ---- */

static enum sl_status judge_post(struct sl_runtime *rt, const char *what, struct sl_error *error)
{
    long code = response_code(rt);
    if (code >= 200 && code < 300)
        return SL_OK;
    if (code >= 500)
        return sl_fail(error, SL_FATAL, "InternalServerError",
                       "the Runtime API answered %ld to %s: this environment cannot go on", code, what);
    /* Sent twice: the reply to the first got lost, and the second is refused because the first arrived. Had
     * it not arrived, the event is delivered again. */
    if (rt->sendings > 1 && (code == 400 || code == 403))
        return SL_OK;
    sl_fail(error, SL_REJECT, "AnswerRefused",
            "the Runtime API refused %s with %ld%s; its reply: %.*s. Going on with the next event", what,
            code, code == 410 ? " (the invocation had timed out)" : "",
            (int)(rt->reply.len < 200 ? rt->reply.len : 200), rt->reply.len ? rt->reply.ptr : "");
    return SL_OK;
}

/* What is sent. */
struct outgoing {
    const char *url;
    const char *what; /* for messages: "the answer" */
    struct sl_span body;
    struct curl_slist *headers;
};

static enum sl_status post(struct sl_runtime *rt, const struct outgoing *out, struct sl_error *error)
{
    CURLcode result = CURLE_OK;
    rt->sendings = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        prepare(rt, out->url, attempt > 0);
        sl_buffer_reset(&rt->reply);
        curl_easy_setopt(rt->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(rt->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)out->body.len);
        curl_easy_setopt(rt->easy, CURLOPT_POSTFIELDS, out->body.len ? out->body.ptr : "");
        curl_easy_setopt(rt->easy, CURLOPT_HTTPHEADER, out->headers);
        curl_easy_setopt(rt->easy, CURLOPT_WRITEFUNCTION, on_reply);
        curl_easy_setopt(rt->easy, CURLOPT_WRITEDATA, rt);
        (void)perform(rt, false, &result);
        if (result == CURLE_OK)
            return judge_post(rt, out->what, error);
    }
    char what[128];
    snprintf(what, sizeof(what), "%s did not reach the Runtime API", out->what);
    return fail_broken(rt, what, result, error);
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
    char line[512];
    snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(list, line);
    if (!longer)
        sl_die("out of memory: headers of a request");
    return longer;
}

/* "Expect:" without a value keeps curl from waiting a second for "100 Continue" before a large body. */
static struct curl_slist *post_headers(const char *content_type)
{
    return add_header(curl_slist_append(NULL, "Expect:"), "Content-Type", content_type);
}

/* A request id is a UUID. Any other byte in it is percent-encoded, so that it cannot change the rest of the
 * URL. */
static bool invocation_url(struct sl_runtime *rt, const char *request_id, const char *verb,
                           char url[URL_BYTES])
{
    char *escaped = curl_easy_escape(rt->easy, request_id, 0);
    if (!escaped)
        sl_die("out of memory: a request's URL");
    int n = snprintf(url, URL_BYTES, "%s/runtime/invocation/%s/%s", rt->base, escaped, verb);
    curl_free(escaped);
    return (size_t)n < URL_BYTES;
}

enum sl_status sl_runtime_respond(struct sl_runtime *rt, const char *request_id, struct sl_span body,
                                  const char *content_type, struct sl_error *error)
{
    if (body.len > SL_RUNTIME_PAYLOAD_BYTES) {
        char why[128];
        snprintf(why, sizeof(why), "the answer has %zu bytes; Lambda takes %d at most", body.len,
                 SL_RUNTIME_PAYLOAD_BYTES);
        return sl_runtime_fail(rt, request_id, "Function.ResponseSizeTooLarge", sl_span_str(why), error);
    }
    char url[URL_BYTES];
    if (!invocation_url(rt, request_id, "response", url))
        return sl_fail(error, SL_RETRY, "InvalidRequestId", "the request id is too long for a URL");
    const struct outgoing out = {url, "the answer", body, post_headers(content_type)};
    enum sl_status status = post(rt, &out, error);
    curl_slist_free_all(out.headers);
    return status;
}

/* The header may hold ASCII letters, digits and dots; a code from elsewhere may hold anything. */
static void clean_type(const char *type, char out[128])
{
    size_t n = 0;
    for (; type[n] && n < 127; n++) {
        char c = type[n];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
        out[n] = plain ? c : '_';
    }
    out[n] = '\0';
}

/* Fills in the body and the headers. */
static enum sl_status post_error(struct sl_runtime *rt, struct outgoing out, const char *type,
                                 struct sl_span message, struct sl_error *error)
{
    struct sl_buffer body;
    sl_buffer_init(&body, SL_RUNTIME_PAYLOAD_BYTES);
    message.len = message.len < MESSAGE_BYTES ? message.len : MESSAGE_BYTES;
    char clean[128];
    clean_type(type, clean);
    sl_buffer_add_char(&body, '{');
    sl_json_add_member(&body, "errorMessage", message);
    sl_json_add_member(&body, "errorType", sl_span_str(clean));
    sl_buffer_add_str(&body, ",\"stackTrace\":[]}");
    out.body = sl_buffer_span(&body);
    out.headers = add_header(post_headers("application/json"), "Lambda-Runtime-Function-Error-Type", clean);
    enum sl_status status = post(rt, &out, error);
    curl_slist_free_all(out.headers);
    sl_buffer_clean_up(&body);
    return status;
}

enum sl_status sl_runtime_fail(struct sl_runtime *rt, const char *request_id, const char *type,
                               struct sl_span message, struct sl_error *error)
{
    char url[URL_BYTES];
    if (!invocation_url(rt, request_id, "error", url))
        return sl_fail(error, SL_RETRY, "InvalidRequestId", "the request id is too long for a URL");
    return post_error(rt, (struct outgoing){.url = url, .what = "the function error"}, type, message, error);
}

enum sl_status sl_runtime_init_error(struct sl_runtime *rt, const char *type, struct sl_span message,
                                     struct sl_error *error)
{
    char url[URL_BYTES];
    snprintf(url, sizeof(url), "%s/runtime/init/error", rt->base);
    return post_error(rt, (struct outgoing){.url = url, .what = "the init error"}, type, message, error);
}
