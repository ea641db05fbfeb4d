/* HTTP exchanges on one libcurl multi handle. */
#include "base/array.h"
#include "net/http_private.h"

#include "net/session.h"
#include "net/uri.h"

#include <assert.h>
#include <malloc.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* The SDKs' standard mode connects within 3.1 s. */
#define CONNECT_TIMEOUT_MS 3100
/* Without a byte in either direction for so long, an exchange is given up. */
#define NO_PROGRESS_S 15
/* AWS closes idle connections after 20 to 60 s, and a thawed sandbox may not know. */
#define IDLE_MS 50000
/* libcurl allocates what it reads into for each exchange. The larger one takes an answer of 1 MB in 2 system
 * calls; most answers are small, and 64 of them are under way at once. It is wiped for each exchange, too:
 * the smallest one saves a thirtieth of a write's processor time. */
#define RECEIVE_SMALL_BYTES (4L * 1024)
#define RECEIVE_BYTES       (16L * 1024)
#define RECEIVE_LARGE_BYTES (512L * 1024)
#define RECEIVE_LARGE_MOST  8u
#define KEPT_CONNECTIONS    64L
#define URL_BYTES           (16u * 1024)

struct sl_http *sl_http_new(const struct sl_http_options *options)
{
    struct sl_http *http = calloc(1, sizeof(*http));
    if (!http)
        sl_die("out of memory: an HTTP pool");
    http->options = *options;
    http->hold.most = options->held_bytes ? options->held_bytes : SL_HTTP_HELD_BYTES;
    return http;
}

static void free_transfer(struct sl_http_transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_url_cleanup(t->place);
    sl_buffer_clean_up(&t->url);
    sl_buffer_clean_up(&t->line);
    sl_buffer_clean_up(&t->body);
    free(t);
}

static void drop_spares(struct sl_http *http)
{
    for (struct sl_http_transfer *t = http->spare, *next; t; t = next) {
        next = t->next;
        free_transfer(t);
    }
    http->spare = NULL;
}

void sl_http_destroy(struct sl_http *http)
{
    if (!http)
        return;
    assert(http->running == 0 && http->hold.held == 0);
    drop_spares(http);
    if (http->multi) {
        curl_multi_cleanup(http->multi);
        curl_share_cleanup(http->share);
        curl_global_cleanup();
    }
    sl_roots_clean_up(&http->roots);
    sl_idle_clean_up(&http->idle);
    free(http);
}

void sl_http_exchange_init(struct sl_http_exchange *exchange)
{
    *exchange = (struct sl_http_exchange){.outcome = SL_HTTP_IDLE};
    sl_buffer_init(&exchange->head, SL_HTTP_HEAD_BYTES);
    sl_buffer_init(&exchange->body, SL_HTTP_ANSWER_BYTES);
}

void sl_http_exchange_clean_up(struct sl_http_exchange *exchange)
{
    assert(!exchange->transfer);
    sl_http_give_back(exchange);
    sl_buffer_clean_up(&exchange->head);
    sl_buffer_clean_up(&exchange->body);
}

/* The memory of a small body is used again. */
static void free_large_body(struct sl_http_exchange *exchange)
{
    sl_http_give_back(exchange);
    if (exchange->body.room > SL_HTTP_SMALL_BYTES)
        sl_buffer_clean_up(&exchange->body);
}

void sl_http_exchange_forget(struct sl_http_exchange *exchange)
{
    free_large_body(exchange);
    if (!exchange->body.is_secret)
        return;
    sl_buffer_reset(&exchange->head);
    sl_buffer_reset(&exchange->body);
    exchange->head.is_secret = exchange->body.is_secret = false;
}

/* ---- libcurl's memory ---- */

/* libcurl's own buffers hold header lines and answers, and it frees them as they are. Here they are wiped
 * first: as much of each as a header or an answer with credentials can fill. */

#define WIPED_BYTES (32u * 1024)

static void wipe_and_free(void *p)
{
    size_t n = p ? malloc_usable_size(p) : 0;
    if (n)
        explicit_bzero(p, n < WIPED_BYTES ? n : WIPED_BYTES);
    free(p);
}

static void *move(void *p, size_t n)
{
    size_t had = p ? malloc_usable_size(p) : 0;
    void *moved = malloc(n);
    if (!moved)
        return NULL;
    memcpy(moved, p ? p : "", had < n ? had : n);
    wipe_and_free(p);
    return moved;
}

/* ---- set-up ---- */

/* Of Debian, of Amazon Linux, and of Alpine. */
static const char *find_roots(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/cert.pem",
    };
    for (size_t i = 0; i < SL_COUNT(places); i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

static void open_multi(struct sl_http *http)
{
    http->multi = curl_multi_init();
    if (!http->multi)
        sl_die("libcurl cannot make a multi handle; check the installed libcurl");
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

/* Until libcurl 8.12 a session belongs to the easy handle that made it, unless it is shared. All that share
 * are of one thread, so nothing is locked. */
static void open_share(struct sl_http *http)
{
    http->share = curl_share_init();
    if (!http->share ||
        curl_share_setopt(http->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) != CURLSHE_OK)
        sl_die("libcurl cannot share TLS sessions; check the installed libcurl");
}

const char *sl_http_bundle(const struct sl_http *http)
{
    const char *named = http->options.ca_bundle ? http->options.ca_bundle
                                                : sl_vars_or(http->options.vars, "AWS_CA_BUNDLE", NULL);
    return named ? named : find_roots();
}

static void make_ready(struct sl_http *http)
{
    int64_t now = http->options.clock->now_ms(http->options.clock);
    if (!http->multi) {
        if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wipe_and_free, move, strdup, calloc) !=
            CURLE_OK)
            sl_die("libcurl cannot be initialized; check the installed libcurl");
        http->ca_bundle = sl_http_bundle(http);
        open_share(http);
        open_multi(http);
    } else if (http->running == 0 && now - http->last_used_ms > IDLE_MS) {
        curl_multi_cleanup(http->multi); /* the only way to close its idle connections */
        open_multi(http);
    } else if (http->running == 0 && now - http->last_used_ms >= SL_IDLE_PAUSE_MS) {
        sl_idle_rest(&http->idle);
    }
    http->last_used_ms = now;
}

void sl_http_prepare(struct sl_http *http)
{
    make_ready(http);
    if (http->ca_bundle)
        (void)!sl_roots_read(&http->roots, http->ca_bundle);
}

/* ---- callbacks ---- */

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct sl_http_transfer *t = arg;
    if (!sl_http_hold(t, size * n))
        return CURL_WRITEFUNC_PAUSE;
    sl_buffer_add(&t->exchange->body, bytes, size * n);
    return t->exchange->body.failed ? 0 : size * n;
}

static size_t on_head(char *bytes, size_t size, size_t n, void *arg)
{
    struct sl_http_transfer *t = arg;
    struct sl_span line = sl_span(bytes, size * n);
    if (sl_span_starts(line, SL_LIT("HTTP/"))) { /* the final answer, after a 100 */
        sl_buffer_reset(&t->exchange->head);
        t->head_complete = false;
    }
    if (line.ptr[0] == '\r' || line.ptr[0] == '\n') /* by the same rule as libcurl */
        t->head_complete = true;
    sl_buffer_add_span(&t->exchange->head, line);
    return t->exchange->head.failed ? 0 : line.len;
}

static bool is_allowed(struct sl_http_transfer *t, const struct sockaddr *address)
{
    const char *what;
    if (!t->rules || sl_address_is_allowed(t->rules, address, &what))
        return true;
    t->forbidden = what;
    t->exchange->is_private_place = sl_address_kind(address, NULL) == SL_ADDRESS_PRIVATE;
    return false;
}

/* libcurl calls it for each address that it is about to connect to. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct sl_http_transfer *t = arg;
    (void)purpose;
    if (!is_allowed(t, &address->addr))
        return CURL_SOCKET_BAD;
    t->is_allowed = true;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd >= 0)
        sl_idle_add(&t->http->idle, fd);
    return fd;
}

/* libcurl calls it when a connection stands, before a byte of the request is sent. A kept one may have been
 * opened for an exchange without rules. */
static int on_begun(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct sl_http_transfer *t = arg;
    struct sockaddr_storage remote;
    char ip[64];
    (void)local_ip;
    (void)local_port;
    snprintf(ip, sizeof(ip), "%.*s", (int)strcspn(remote_ip, "%"), remote_ip); /* without a zone */
    if (t->rules &&
        (!sl_address_parse(ip, (unsigned)remote_port, &remote) || !is_allowed(t, (struct sockaddr *)&remote)))
        return CURL_PREREQFUNC_ABORT;
    t->is_begun = true;
    return CURL_PREREQFUNC_OK;
}

/* libcurl calls it for each TLS connection: the roots are ours. Without them nothing would be verified, so
 * nothing is connected. */
static CURLcode on_tls(CURL *easy, void *context, void *arg)
{
    struct sl_http_transfer *t = arg;
    const char *path = t->http->ca_bundle;
    const char *problem =
        path ? sl_roots_read(&t->http->roots, path) : "no file of root certificates was found";
    (void)easy;
    if (problem) {
        snprintf(t->roots_problem, sizeof(t->roots_problem), "%.100s%s%s", path ? path : "", path ? ": " : "",
                 problem);
        return CURLE_SSL_CACERT_BADFILE;
    }
    /* not the context's own store: libcurl replaces that later by one that it has kept */
    if (!SSL_CTX_set1_verify_cert_store(context, t->http->roots.store))
        return CURLE_OUT_OF_MEMORY;
    sl_session_share(context);
    return CURLE_OK;
}

static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    struct sl_http *http = arg;
    (void)fd;
    (void)purpose;
    http->connections++;
    return CURL_SOCKOPT_OK;
}

static int on_close(void *arg, curl_socket_t fd)
{
    struct sl_http *http = arg;
    sl_idle_forget(&http->idle, fd);
    return close(fd);
}

/* ---- one exchange ---- */

static void set_fixed_options(struct sl_http_transfer *t)
{
    struct sl_http *http = t->http;
    CURL *easy = t->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)NO_PROGRESS_S);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, sl_http_on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, t);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, sl_http_on_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, t);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_begun);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, http);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->problem);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* proxy_for decides: what goes directly is checked */
    curl_easy_setopt(easy, CURLOPT_SHARE, http->share);
    /* libcurl's own roots, which it would read for each multi handle (with a CAPATH: for each connection) */
    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, NULL);
    curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_tls);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, t);
}

static struct sl_http_transfer *take_transfer(struct sl_http *http)
{
    struct sl_http_transfer *t = http->spare;
    if (t) {
        http->spare = t->next;
        return t;
    }
    t = calloc(1, sizeof(*t));
    if (!t || !(t->easy = curl_easy_init()) || !(t->place = curl_url()))
        sl_die("out of memory: an HTTP transfer");
    t->http = http;
    sl_buffer_init(&t->url, URL_BYTES);
    sl_buffer_init(&t->line, SL_HTTP_LINES_BYTES);
    sl_buffer_init(&t->body, SL_HTTP_JOINED_BYTES);
    t->line.is_secret = true; /* a session token */
    t->url.is_secret = true;  /* a webhook's */
    set_fixed_options(t);
    return t;
}

/* libcurl would read the environment by itself; here the snapshot is the only source. */
static const char *proxy_for(const struct sl_http *http, const struct sl_http_exchange *exchange)
{
    const struct sl_vars *vars = http->options.vars;
    bool is_https = strncmp(exchange->url, "https:", 6) == 0;
    const char *proxy = is_https ? sl_vars_or(vars, "HTTPS_PROXY", sl_vars_or(vars, "https_proxy", ""))
                                 : sl_vars_or(vars, "http_proxy", "");
    struct sl_uri uri;
    const char *never = sl_vars_or(vars, "NO_PROXY", sl_vars_or(vars, "no_proxy", ""));
    if (!*proxy || exchange->is_private || !sl_uri_parse(exchange->url, &uri) || sl_uri_is_local(&uri) ||
        sl_uri_is_named(&uri, never))
        return "";
    return proxy;
}

static void set_url(struct sl_http_transfer *t, const char *url)
{
    if (t->url.len && !t->url.failed && sl_span_is(sl_buffer_span(&t->url), url))
        return;
    sl_buffer_reset(&t->url);
    sl_buffer_add_str(&t->url, url);
    bool is_read = curl_url_set(t->place, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
    curl_easy_setopt(t->easy, CURLOPT_CURLU, is_read ? t->place : NULL); /* NULL: it says itself why not */
    curl_easy_setopt(t->easy, CURLOPT_URL, url);
}

static void drop_answer(struct sl_http_exchange *exchange)
{
    exchange->timed_out = false;
    exchange->status = 0;
    exchange->problem[0] = '\0';
    sl_buffer_reset(&exchange->head);
    sl_buffer_reset(&exchange->body);
    free_large_body(exchange);
    exchange->head.is_secret = exchange->body.is_secret = exchange->is_secret;
    exchange->body.max = exchange->answer_bytes ? exchange->answer_bytes : SL_HTTP_ANSWER_BYTES;
}

void sl_http_start(struct sl_http *http, struct sl_http_exchange *exchange)
{
    assert(!exchange->transfer && exchange->timeout_ms > 0);
    assert(exchange->n_headers <= SL_HTTP_HEADERS);
    drop_answer(exchange);
    if (!sl_http_is_sendable(exchange))
        return;
    make_ready(http);
    struct sl_http_transfer *t = take_transfer(http);
    t->exchange = exchange;
    t->part = t->offset = 0;
    t->head_complete = t->is_begun = false;
    t->forbidden = NULL;
    t->is_allowed = false;
    t->problem[0] = t->roots_problem[0] = '\0';
    exchange->transfer = t;
    exchange->outcome = SL_HTTP_RUNNING;
    long connect_ms = exchange->connect_timeout_ms ? (long)exchange->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    set_url(t, exchange->url);
    const char *proxy = proxy_for(http, exchange);
    t->rules = *proxy ? NULL : exchange->rules; /* a proxy resolves the name itself */
    exchange->is_private_place = false;
    curl_easy_setopt(t->easy, CURLOPT_PROXY, proxy);
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS,
                     (long)(exchange->timeout_ms < INT32_MAX ? exchange->timeout_ms : INT32_MAX));
    bool is_large = exchange->expected_bytes > SL_HTTP_SMALL_BYTES && http->running < RECEIVE_LARGE_MOST;
    bool is_small = exchange->expected_bytes <= RECEIVE_SMALL_BYTES / 2;
    curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE,
                     is_large   ? RECEIVE_LARGE_BYTES
                     : is_small ? RECEIVE_SMALL_BYTES
                                : RECEIVE_BYTES);
    sl_http_write_request(t);
    if (curl_multi_add_handle(http->multi, t->easy) != CURLM_OK)
        sl_die("libcurl cannot start a transfer");
    http->running++;
}

static void release(struct sl_http_transfer *t)
{
    struct sl_http *http = t->http;
    sl_http_hold_end(t);
    curl_multi_remove_handle(http->multi, t->easy);
    bool is_secret = t->exchange->is_secret;
    t->exchange->transfer = NULL;
    t->exchange = NULL;
    if (is_secret) { /* the handle's buffers hold the answer */
        free_transfer(t);
    } else {
        sl_buffer_reset(&t->line);
        t->next = http->spare;
        http->spare = t;
    }
    http->running--;
    http->last_used_ms = http->options.clock->now_ms(http->options.clock);
}

static enum sl_http_outcome outcome_of(struct sl_http_transfer *t, CURLcode code)
{
    long sent = 0;
    switch (code) {
    case CURLE_OK:
        return t->head_complete ? SL_HTTP_ANSWERED : SL_HTTP_BROKEN;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return SL_HTTP_UNTRUSTED;
    default:
        if (t->forbidden && !t->is_allowed)
            return SL_HTTP_FORBIDDEN;
        /* what a proxy was sent for a tunnel is counted too, but is no part of the request */
        curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
        return sent && t->is_begun ? SL_HTTP_BROKEN : SL_HTTP_NOT_SENT;
    }
}

static void finish(struct sl_http_transfer *t, CURLcode code)
{
    struct sl_http_exchange *exchange = t->exchange;
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    exchange->outcome = outcome_of(t, code);
    exchange->status = exchange->outcome == SL_HTTP_ANSWERED ? (int)status : 0;
    exchange->timed_out = code == CURLE_OPERATION_TIMEDOUT;
    exchange->problem[0] = '\0';
    if (exchange->outcome != SL_HTTP_ANSWERED)
        snprintf(exchange->problem, sizeof(exchange->problem), "%.150s",
                 exchange->body.failed ? "the answer is longer than this operation's answers are"
                 : code == CURLE_OK    ? "the answer ended inside its headers"
                 : exchange->outcome == SL_HTTP_FORBIDDEN ? t->forbidden
                 : t->roots_problem[0]                    ? t->roots_problem
                 : t->problem[0]                          ? t->problem
                                                          : curl_easy_strerror(code));
    release(t);
}

static size_t collect(struct sl_http *http)
{
    size_t done = 0;
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(http->multi, &left)) != NULL;) {
        struct sl_http_transfer *t = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        finish(t, code);
        done++;
    }
    return done;
}

/* libcurl hands over what it has kept for the paused, and that may be too much of an answer. */
static size_t resume(struct sl_http *http)
{
    size_t done = 0;
    for (struct sl_http_transfer *t; (t = sl_http_next_to_resume(http)) != NULL;) {
        CURLcode code = curl_easy_pause(t->easy, CURLPAUSE_CONT);
        if (code != CURLE_OK) {
            finish(t, code);
            done++;
        }
    }
    return done;
}

/* True: the bell can be read. */
static bool wait_once(struct sl_http *http, int64_t left_ms, int bell)
{
    struct curl_waitfd extra = {.fd = bell, .events = CURL_WAIT_POLLIN};
    int ms = left_ms < 1000 ? (int)left_ms : 1000;
    if (http->running) {
        curl_multi_poll(http->multi, &extra, bell >= 0, ms, NULL);
        return bell >= 0 && extra.revents;
    }
    struct pollfd fd = {.fd = bell, .events = POLLIN};
    return poll(&fd, 1, ms) > 0;
}

static size_t drive(struct sl_http *http, int64_t timeout_ms, int bell)
{
    struct sl_clock *real = sl_clock_system();
    int64_t until = real->now_ms(real) + timeout_ms;
    bool is_rung = false;
    while (http->running || bell >= 0) {
        int running = 0;
        if (http->running)
            curl_multi_perform(http->multi, &running);
        if (http->running && (collect(http) || resume(http)))
            break;
        int64_t now = real->now_ms(real), left = until - now;
        sl_idle_check(&http->idle, now);
        if (left <= 0 || is_rung)
            break;
        is_rung = wait_once(http, left, bell);
    }
    return http->running;
}

size_t sl_http_wait(struct sl_http *http, int64_t timeout_ms)
{
    return drive(http, timeout_ms, -1);
}

size_t sl_http_wait_or(struct sl_http *http, int64_t timeout_ms, int bell)
{
    return drive(http, timeout_ms, bell);
}

void sl_http_abandon(struct sl_http *http, struct sl_http_exchange *exchange)
{
    (void)http;
    if (exchange->transfer)
        finish(exchange->transfer, CURLE_ABORTED_BY_CALLBACK);
}

struct sl_span sl_http_header(const struct sl_http_exchange *exchange, const char *name)
{
    size_t n = strlen(name);
    struct sl_span rest = sl_buffer_span(&exchange->head);
    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        if (len > n && rest.ptr[n] == ':' && strncasecmp(rest.ptr, name, n) == 0) {
            struct sl_span value = sl_span(rest.ptr + n + 1, len - n - 1);
            while (value.len && (*value.ptr == ' ' || *value.ptr == '\t'))
                value = sl_span_from(value, 1);
            while (value.len && (unsigned char)value.ptr[value.len - 1] <= ' ')
                value.len--;
            return value;
        }
        rest = sl_span_from(rest, len + 1);
    }
    return sl_span(NULL, 0);
}

int64_t sl_http_date(struct sl_span text)
{
    char copy[40];
    if (text.len >= sizeof(copy))
        return -1;
    snprintf(copy, sizeof(copy), "%.*s", SL_ARG(text));
    return (int64_t)curl_getdate(copy, NULL);
}

uint64_t sl_http_connections(const struct sl_http *http)
{
    return http->connections;
}
