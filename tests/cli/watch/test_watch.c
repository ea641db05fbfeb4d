/* What a watch says of snapshots that are made here: metrics, lines, health, notices to systemd. With
 * WATCH_DUMP=FOLDER the metrics are written there, and check_watch.py parses them with another's parser. */
#include "tests/support/haste.h"
#include "tests/support/test.h"

#include "net/http.h"
#include "cli/watch/watch_private.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HOSTILE "a\"b\\c\nd\xff\xe2\x80\xae{}=,#"

static struct sl_vitals_shard shards[100];
static char ids[100][64];
static const char *const no_vars[] = {NULL};
static const struct sl_vars vars = {.list = no_vars};

static struct sl_vitals snapshot(size_t n)
{
    static struct sl_vitals_route routes[] = {
        {.name = "replica",
         .handler = "replicate",
         .target = "dynamodb://copy",
         .matched = 10,
         .applied = 8,
         .parked = 1,
         .failed = 1,
         .calls = 3,
         .bytes = 12345678901234},
        {.name = HOSTILE, .handler = HOSTILE, .target = HOSTILE},
    };
    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof(ids[i]), "shardId-%08zu", i);
        shards[i] = (struct sl_vitals_shard){
            .id = ids[i], .state = SL_VITALS_OPEN, .is_ours = true, .lag_ms = 1500, .memory_bytes = 77};
    }
    return (struct sl_vitals){.started_ms = 1795208640000,
                              .now_ms = 1795208700250,
                              .stream_arn = "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/" HOSTILE,
                              .read = 1000,
                              .handled = 900,
                              .retries = 7,
                              .leases_lost = 0,
                              .lag_ms = 1500,
                              .through_ms = 1795208698000,
                              .memory_bytes = 4096,
                              .memory_limit_bytes = 67108864,
                              .workers = 4,
                              .busy_workers = 2,
                              .shards = shards,
                              .n_shards = n,
                              .routes = routes,
                              .n_routes = 2};
}

static const char *metrics(const struct sl_vitals *v, bool is_per_shard)
{
    static struct sl_buffer text;
    sl_buffer_clean_up(&text);
    sl_buffer_init(&text, SL_WATCH_TEXT_BYTES);
    sl_watch_metrics(v, is_per_shard, &text);
    sl_buffer_add_char(&text, '\0');
    return text.ptr;
}

static void dump(const char *name, const char *text)
{
    char path[400];
    if (!getenv("WATCH_DUMP"))
        return;
    snprintf(path, sizeof(path), "%s/%s", getenv("WATCH_DUMP"), name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void metrics_say_what_the_snapshot_says(void **state)
{
    (void)state;
    struct sl_vitals v = snapshot(3);
    shards[1].blocked_since_ms = v.now_ms - 60250;
    shards[1].blocked_at = "123";
    shards[2].state = SL_VITALS_WAITING;
    v.n_blocked = 1;
    const char *text = metrics(&v, false);
    dump("three.txt", text);
    static const char *const lines[] = {
        "\nsluice_tail_records_handled_total 900\n",
        "\n# UNIT sluice_tail_lag_seconds seconds\n",
        "\nsluice_tail_lag_seconds 1.500\n",
        "\nsluice_tail_start_timestamp_seconds 1795208640.000\n",
        "\nsluice_tail_shards{state=\"open\"} 2\n",
        "\nsluice_tail_shards{state=\"waiting\"} 1\n",
        "\nsluice_tail_shards_owned 3\n",
        "\nsluice_tail_shards_blocked 1\n",
        "\nsluice_tail_shard_blocked_seconds{shard=\"shardId-00000001\"} 60.250\n",
        "\nsluice_tail_shard_lag_seconds{shard=\"shardId-00000000\"} 1.500\n",
        "\nsluice_tail_route_records_matched_total{route=\"replica\",handler=\"replicate\"} 10\n",
        "\nsluice_tail_route_bytes_total{route=\"replica\",handler=\"replicate\"} 12345678901234\n",
        "\nsluice_tail_through_timestamp_seconds 1795208698.000\n",
        "\nsluice_tail_workers_busy 2\n",
        "\nsluice_tail_shard_memory_bytes{shard=\"shardId-00000000\"} 77\n",
        "\nsluice_tail_route_calls_total{route=\"a\\\"b\\\\c?d",
        "\n# EOF\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(text, lines[i]))
            fail_msg("%s is not in\n%s", lines[i] + 1, text);
    assert_null(strstr(text, "shard_lag_seconds{shard=\"shardId-00000002\"")); /* it waits */
}

static void many_shards_are_shown_only_when_asked_for(void **state)
{
    (void)state;
    struct sl_vitals v = snapshot(SL_WATCH_SHARDS + 1);
    assert_null(strstr(metrics(&v, false), "sluice_tail_shard_lag"));
    dump("many.txt", metrics(&v, true));
    assert_non_null(strstr(metrics(&v, true), "sluice_tail_shard_lag_seconds{shard=\"shardId-00000064\"}"));
    shards[0].state = SL_VITALS_DONE; /* 64 are open */
    assert_non_null(strstr(metrics(&v, false), "sluice_tail_shard_lag_seconds{shard=\"shardId-00000064\"}"));
    struct sl_vitals none = {.stream_arn = ""};
    dump("none.txt", metrics(&none, true));
}

/* ---- lines ---- */

static const char *line(const struct sl_vitals *v, const struct sl_watch_rate *rate, size_t columns)
{
    static struct sl_buffer text;
    sl_buffer_clean_up(&text);
    sl_buffer_init(&text, 8192);
    sl_watch_line(v, rate, columns, &text);
    sl_buffer_add_char(&text, '\0');
    return text.ptr;
}

static void the_live_line_fits(void **state)
{
    (void)state;
    struct sl_vitals v = snapshot(2);
    struct sl_watch_rate rate = {0};
    sl_watch_rate_take(&rate, &v);
    v.now_ms += 2000;
    v.handled += 5000;
    sl_watch_rate_take(&rate, &v);
    assert_string_equal(line(&v, &rate, 200), "lag 1.5 s, 2500 records/s, 2 of 2 shards open, 7 retries");
    shards[1].blocked_since_ms = v.now_ms - 3 * 3600 * 1000;
    v.n_blocked = 1;
    v.trouble = "cannot read\n\x1b[2J";
    v.is_ending = true;
    assert_string_equal(
        line(&v, &rate, 400),
        "lag 1.5 s, 2500 records/s, 2 of 2 shards open, 7 retries, 1 blocked: shardId-00000001 since "
        "18:05:02Z (3 h), cannot read??[2J, ending");
    for (size_t columns = 1; columns < 120; columns++)
        assert_true(strlen(line(&v, &rate, columns)) <= columns);
}

static void a_lag_has_its_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "lag 0 ms,"},         {999, "lag 999 ms,"},   {1000, "lag 1.0 s,"},
                 {119999, "lag 119.9 s,"}, {120000, "lag 2 min,"}, {120 * 60000 - 1, "lag 119 min,"},
                 {120 * 60000, "lag 2 h,"}};
    struct sl_vitals v = snapshot(3);
    const struct sl_watch_rate slow = {.per_second = 3.26};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        v.lag_ms = cases[i].ms;
        if (strncmp(line(&v, &slow, 200), cases[i].text, strlen(cases[i].text)) != 0)
            fail_msg("%s", line(&v, &slow, 200));
    }
    /* The shard that has been blocked the longest is named. */
    v.discarded = 4;
    v.n_blocked = 2;
    shards[0].blocked_since_ms = v.now_ms - 1000;
    shards[1].blocked_since_ms = v.now_ms - 5000;
    shards[2].blocked_since_ms = v.now_ms - 3000;
    assert_string_equal(line(&v, &slow, 400),
                        "lag 2 h, 3.3 records/s, 3 of 3 shards open, 7 retries, 2 blocked: "
                        "shardId-00000001 since 21:04:55Z (5.0 s), 4 discarded");
}

/* Two snapshots of one moment say nothing; nor does a count that began anew. */
static void a_rate_is_of_two_moments(void **state)
{
    (void)state;
    struct sl_watch_rate rate = {0};
    struct sl_vitals v = {.now_ms = 1000, .handled = 10};
    sl_watch_rate_take(&rate, &v);
    v.now_ms = 3000, v.handled = 30;
    sl_watch_rate_take(&rate, &v);
    assert_true(rate.per_second == 10);
    v.handled = 90;
    sl_watch_rate_take(&rate, &v);
    assert_true(rate.per_second == 10);
    v.now_ms = 4000, v.handled = 5;
    sl_watch_rate_take(&rate, &v);
    assert_true(rate.per_second == 10);
    v.now_ms = 5000, v.handled = 6;
    sl_watch_rate_take(&rate, &v);
    assert_true(rate.per_second == 1);
}

/* What is written to the terminal until it has the text. */
static void read_until(int master, char *out, size_t room, const char *text)
{
    size_t n = strlen(out);
    while (!strstr(out, text)) {
        struct pollfd p = {master, POLLIN, 0};
        assert_int_equal(poll(&p, 1, 600000), 1);
        ssize_t got = read(master, out + n, room - n - 1);
        assert_true(got > 0);
        n += (size_t)got;
        out[n] = '\0';
    }
}

/* One line that is drawn anew, no wider than the terminal, and gone at the end. */
static void a_terminal_has_a_live_line(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    struct sl_vitals_board *board = sl_vitals_board_new();
    static const struct {
        unsigned short columns;
        const char *line;
    } cases[] = {{20, "\r\x1b[Klag 1.5 s, 0.0 reco\r"},
                 {0, "\r\x1b[Klag 1.5 s, 0.0 records/s, 1 of 1 shards open, 7 retries\r"}};
    for (size_t i = 0; i < 2; i++) {
        const struct winsize size = {.ws_row = 24, .ws_col = cases[i].columns};
        assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
        char text[4096] = "";
        struct sl_watch *watch;
        struct sl_error error = SL_NO_ERROR;
        const struct sl_watch_options options = {.board = board, .vars = &vars, .fd = terminal};
        struct sl_vitals v = snapshot(1);
        sl_vitals_publish(board, &v);
        assert_int_equal(sl_watch_start(&options, &watch, &error), SL_OK);
        assert_int_equal(sl_watch_port(watch), 0);
        read_until(master, text, sizeof(text), cases[i].line);
        sl_watch_stop(watch);
        text[0] = '\0';
        read_until(master, text, sizeof(text), "\r\x1b[K");
    }
    sl_watch_stop(NULL);
    sl_vitals_board_destroy(board);
    close(terminal);
    close(master);
}

static void the_json_line_is_one(void **state)
{
    (void)state;
    struct sl_vitals v = snapshot(12);
    struct sl_watch_rate rate = {.per_second = 12.34};
    struct sl_buffer text;
    for (size_t i = 0; i < 12; i++)
        shards[i].blocked_since_ms = v.now_ms - 1000;
    shards[0].blocked_at = "100000000000000000001";
    v.n_blocked = 12;
    v.trouble = HOSTILE;
    sl_buffer_init(&text, SL_WATCH_TEXT_BYTES);
    sl_watch_json(&v, &rate, &text);
    assert_ptr_equal(memchr(text.ptr, '\n', text.len), text.ptr + text.len - 1);
    json_error_t error;
    json_t *root = json_loadb(text.ptr, text.len, 0, &error);
    if (!root)
        fail_msg("%s: %.*s", error.text, (int)text.len, text.ptr);
    assert_int_equal(json_integer_value(json_object_get(root, "lag_ms")), 1500);
    assert_true(json_real_value(json_object_get(root, "records_per_second")) > 12.2);
    assert_string_equal(json_string_value(json_object_get(root, "time")), "2026-11-20T21:05:00.250Z");
    assert_int_equal(json_array_size(json_object_get(root, "blocked")), 8);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "shards"), "blocked")), 12);
    json_decref(root);
    sl_buffer_clean_up(&text);
}

/* ---- the server ---- */

struct stage {
    struct sl_vitals_board *board;
    struct sl_watch *watch;
    struct sl_http *http;
    int pipe[2];
};

static void open_stage(struct stage *s, const char *listen, const struct sl_vars *its_vars)
{
    struct sl_error error = SL_NO_ERROR;
    assert_int_equal(pipe(s->pipe), 0);
    s->board = sl_vitals_board_new();
    s->http = sl_http_new(&(struct sl_http_options){.clock = sl_clock_system(), .vars = &vars});
    const struct sl_watch_options options = {
        .board = s->board, .vars = its_vars, .listen = listen, .fd = s->pipe[1]};
    if (sl_watch_start(&options, &s->watch, &error) != SL_OK)
        fail_msg("%s", error.text);
}

static void close_stage(struct stage *s)
{
    sl_watch_stop(s->watch);
    sl_http_destroy(s->http);
    sl_vitals_board_destroy(s->board);
    close(s->pipe[0]);
    close(s->pipe[1]);
}

/* The answer's status; its body in `body`, when that is wanted. */
static int ask(struct stage *s, const char *method, const char *path, const char *host, char body[100])
{
    struct sl_http_exchange e;
    char url[200], line[200];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", sl_watch_port(s->watch), path);
    snprintf(line, sizeof(line), "Host: %s", host);
    sl_http_exchange_init(&e);
    e.method = method;
    e.url = url;
    e.timeout_ms = 60000;
    e.is_private = true;
    if (host)
        e.headers[e.n_headers++] = line;
    sl_http_start(s->http, &e);
    while (e.outcome == SL_HTTP_RUNNING)
        sl_http_wait(s->http, 1000);
    int status = e.status;
    if (body)
        snprintf(body, 100, "%.*s", (int)e.body.len, e.body.ptr ? e.body.ptr : "");
    if (strcmp(path, "/metrics") == 0 && status == 200)
        assert_true(sl_span_is(sl_http_header(&e, "content-type"),
                               "application/openmetrics-text; version=1.0.0; charset=utf-8"));
    sl_http_exchange_clean_up(&e);
    return status;
}

static void the_server_answers_what_is_asked_for(void **state)
{
    (void)state;
    struct stage s;
    char body[100];
    open_stage(&s, "127.0.0.1:0", &vars);
    assert_int_equal(ask(&s, "GET", "/metrics", NULL, NULL), 503); /* nothing is there yet */
    assert_int_equal(ask(&s, "GET", "/ready", NULL, NULL), 503);
    assert_int_equal(ask(&s, "GET", "/health", NULL, NULL), 200);
    struct sl_vitals v = snapshot(1);
    v.trouble = "the target is down";
    sl_vitals_publish(s.board, &v);
    assert_int_equal(ask(&s, "GET", "/metrics", NULL, body), 200);
    assert_true(strncmp(body, "# TYPE sluice_tail_stream info\n", 31) == 0);
    assert_int_equal(ask(&s, "GET", "/ready", NULL, NULL), 200);
    assert_int_equal(ask(&s, "GET", "/health", NULL, NULL), 200);
    assert_int_equal(ask(&s, "GET", "/", NULL, NULL), 404);
    assert_int_equal(ask(&s, "GET", "/metrics/", NULL, NULL), 404);
    assert_int_equal(ask(&s, "POST", "/metrics", NULL, NULL), 405);
    assert_int_equal(ask(&s, "DELETE", "/metrics", NULL, NULL), 405);
    v.leases_lost = 1;
    sl_vitals_publish(s.board, &v);
    assert_int_equal(ask(&s, "GET", "/ready", NULL, body), 503);
    assert_non_null(strstr(body, "lease"));
    assert_int_equal(ask(&s, "GET", "/health", NULL, NULL), 200);
    v.is_ending = true;
    sl_vitals_publish(s.board, &v);
    assert_int_equal(ask(&s, "GET", "/ready", NULL, body), 503);
    assert_non_null(strstr(body, "end"));
    close_stage(&s);
}

/* Forty seconds, in which connections have ended. */
static void pass_time(struct stage *s)
{
    sl_http_destroy(s->http);
    haste(2000);
    usleep(20000);
    haste(1);
    s->http = sl_http_new(&(struct sl_http_options){.clock = sl_clock_system(), .vars = &vars});
}

/* An engine that does not move any more is not well, and a lost lease is forgotten after a minute. */
static void what_does_not_move_is_not_well(void **state)
{
    (void)state;
    struct stage s;
    char body[100];
    open_stage(&s, "127.0.0.1:0", &vars);
    struct sl_vitals v = snapshot(1);
    sl_vitals_publish(s.board, &v);
    assert_int_equal(ask(&s, "GET", "/ready", NULL, NULL), 200);
    v.leases_lost = 1;
    sl_vitals_publish(s.board, &v);
    assert_int_equal(ask(&s, "GET", "/ready", NULL, NULL), 503);
    pass_time(&s);
    static const char *const paths[] = {"/health", "/ready"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ask(&s, "GET", paths[i], NULL, body), 503);
        assert_string_equal(body, "the engine has not moved for 30 s\n");
    }
    pass_time(&s);
    v.now_ms++;
    sl_vitals_publish(s.board, &v);
    assert_int_equal(ask(&s, "GET", "/ready", NULL, NULL), 200);
    close_stage(&s);
    haste_forget();
}

static void other_hosts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool is_taken;
    } hosts[] = {
        {"127.0.0.1", true},
        {"127.0.0.1:9464", true},
        {"localhost", true},
        {"LOCALHOST:1", true},
        {"[::1]:9464", true},
        {"[::1]", true},
        {"10.1.2.3:9464", true},
        {"tail.internal:9464", true},
        {"Tail.Internal", true},
        {"evil.example", false},
        {"localhost.evil.example", false},
        {"", false},
        {":9464", false},
        {"::1", false},
        {"[::1", false},
        {"localhost:x", false},
        {"localhost:9464:1", false},
        {"tail.internal.", false},
        {"127.0.0.1.evil", false},
        {"127.1", false},
        {"[localhost]x", false},
    };
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        if (sl_watch_server_takes_host(hosts[i].host, "tail.internal") != hosts[i].is_taken)
            fail_msg("%s", hosts[i].host);
    assert_false(sl_watch_server_takes_host(NULL, "tail.internal"));
    struct stage s;
    open_stage(&s, "127.0.0.1:0", &vars);
    assert_int_equal(ask(&s, "GET", "/health", "evil.example", NULL), 421);
    assert_int_equal(ask(&s, "POST", "/health", "evil.example", NULL), 421);
    assert_int_equal(ask(&s, "GET", "/health", "localhost", NULL), 200);
    close_stage(&s);
}

static void a_wrong_place_to_listen_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "9464",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:x",
                                        "127.0.0.1:99999",
                                        ":9464",
                                        "::1:9464x",
                                        "[::1:9464",
                                        "127.0.0.1:9464/metrics"};
    struct sl_vitals_board *board = sl_vitals_board_new();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct sl_error error = SL_NO_ERROR;
        struct sl_watch *watch = NULL;
        const struct sl_watch_options options = {.board = board, .vars = &vars, .listen = wrong[i], .fd = 1};
        if (sl_watch_start(&options, &watch, &error) != SL_REJECT || !strstr(error.text, "--listen"))
            fail_msg("%s: %s", wrong[i], error.text);
    }
    struct stage s;
    char taken[64];
    struct sl_error error = SL_NO_ERROR;
    struct sl_watch *watch = NULL;
    open_stage(&s, "127.0.0.1:0", &vars);
    snprintf(taken, sizeof(taken), "127.0.0.1:%u", sl_watch_port(s.watch));
    const struct sl_watch_options options = {.board = board, .vars = &vars, .listen = taken, .fd = 1};
    assert_int_equal(sl_watch_start(&options, &watch, &error), SL_REJECT);
    close_stage(&s);
    sl_vitals_board_destroy(board);
}

/* ---- systemd ---- */

static bool receive(int fd, char text[4096])
{
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, 600000) != 1)
        return false;
    ssize_t n = recv(fd, text, 4095, 0);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void systemd_hears_what_it_waits_for(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "@"};
    for (size_t i = 0; i < 2; i++) {
        struct stage s;
        char text[4096], variable[200], pid[64];
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        char *folder = test_folder();
        snprintf(at.sun_path, sizeof(at.sun_path), "%s%s/notify", prefixes[i], folder);
        snprintf(variable, sizeof(variable), "NOTIFY_SOCKET=%s", at.sun_path);
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(at.sun_path));
        if (*prefixes[i])
            at.sun_path[0] = '\0';
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
        snprintf(pid, sizeof(pid), "WATCHDOG_PID=%d", (int)getpid());
        const char *const list[] = {variable, "WATCHDOG_USEC=600000", pid, NULL};
        const struct sl_vars its_vars = {.list = list};
        open_stage(&s, NULL, &its_vars);
        struct sl_vitals v = snapshot(1);
        sl_vitals_publish(s.board, &v);
        assert_true(receive(fd, text));
        assert_true(strncmp(text, "READY=1\nSTATUS=lag 1.5 s, ", 26) == 0);
        for (int k = 0; k < 2; k++) {
            assert_true(receive(fd, text));
            assert_string_equal(text, "WATCHDOG=1");
        }
        v.is_ending = true;
        v.now_ms++;
        sl_vitals_publish(s.board, &v);
        do
            assert_true(receive(fd, text));
        while (strcmp(text, "STOPPING=1") != 0);
        close_stage(&s);
        close(fd);
        test_folder_remove(folder);
    }
}

/* Without systemd, or with a socket that is none, tail runs as well. */
static void nobody_need_listen(void **state)
{
    (void)state;
    static const char *const sockets[] = {"NOTIFY_SOCKET=", "NOTIFY_SOCKET=/", "NOTIFY_SOCKET=relative/path",
                                          "NOTIFY_SOCKET=/nowhere/at/all"};
    struct sl_watch_notify notify;
    for (size_t i = 0; i < 4; i++) {
        const char *const list[] = {sockets[i], "WATCHDOG_USEC=600000", NULL};
        sl_watch_notify_open(&notify, &(struct sl_vars){.list = list});
        assert_int_equal(notify.fd, -1);
        sl_watch_notify_say(&notify, "READY=1");
        sl_watch_notify_close(&notify);
    }
    char longest[300] = "NOTIFY_SOCKET=/";
    memset(longest + strlen(longest), 'x', 200);
    const char *const list[] = {longest, NULL};
    sl_watch_notify_open(&notify, &(struct sl_vars){.list = list});
    assert_int_equal(notify.fd, -1);
}

/* The watchdog's time is for the process that it names. */
static void a_watchdog_of_others_is_not_fed(void **state)
{
    (void)state;
    static const struct {
        const char *usec, *pid;
        int64_t ms;
    } cases[] = {{"WATCHDOG_USEC=600000", "X=", 300},
                 {"WATCHDOG_USEC=600000", "WATCHDOG_PID=1", 0},
                 {"WATCHDOG_USEC=-5000", "X=", 0},
                 {"Y=", "X=", 0}};
    char *folder = test_folder(), variable[200];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", folder);
    snprintf(variable, sizeof(variable), "NOTIFY_SOCKET=%s", at.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    for (size_t i = 0; i < 4; i++) {
        const char *const list[] = {variable, cases[i].usec, cases[i].pid, NULL};
        struct sl_watch_notify notify;
        sl_watch_notify_open(&notify, &(struct sl_vars){.list = list});
        assert_true(notify.fd >= 0);
        assert_int_equal(notify.watchdog_ms, cases[i].ms);
        sl_watch_notify_close(&notify);
    }
    close(fd);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_say_what_the_snapshot_says),
        cmocka_unit_test(many_shards_are_shown_only_when_asked_for),
        cmocka_unit_test(the_live_line_fits),
        cmocka_unit_test(a_lag_has_its_unit),
        cmocka_unit_test(a_rate_is_of_two_moments),
        cmocka_unit_test(a_terminal_has_a_live_line),
        cmocka_unit_test(the_json_line_is_one),
        cmocka_unit_test(the_server_answers_what_is_asked_for),
        cmocka_unit_test(what_does_not_move_is_not_well),
        cmocka_unit_test(other_hosts_are_refused),
        cmocka_unit_test(a_wrong_place_to_listen_is_refused),
        cmocka_unit_test(nobody_need_listen),
        cmocka_unit_test(a_watchdog_of_others_is_not_fed),
        cmocka_unit_test(systemd_hears_what_it_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
