/* Requests to a table, as ratios in one run: the first event over TLS beside a plain one; what a request
 * costs beside a client that was written for it alone, and beside AWS's SDK in Node where that is installed;
 * and what the pace of requests is worth against a fixed number in flight, 0 and 5 ms away. One JSON line a
 * figure. */
#include "base/error.h"
#include "bench/support/events.h"
#include "bench/support/keeper.h"
#include "bench/support/keeper_tls.h"
#include "sinks/target.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPS bench_size(5000, 100)

struct spent {
    double wall, cpu; /* seconds */
};

static struct spent now(void)
{
    struct timespec t;
    struct rusage use;
    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(RUSAGE_SELF, &use);
    return (struct spent){(double)t.tv_sec + (double)t.tv_nsec * 1e-9,
                          (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                              (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6};
}

static void fill_ops(struct sl_table_op *ops, size_t n, struct sl_arena *arena)
{
    static const struct sl_test absent = {SL_ABSENT, SL_LIT("PK"), {NULL, 0}};
    for (int i = 0; i < (int)n; i++) {
        const char *key =
            sl_arena_printf(arena, "{\"PK\":{\"S\":\"customer#%06d\"},\"SK\":{\"S\":\"order#%d\"}}", i, i);
        const char *item = sl_arena_printf(
            arena, "%.*s,\"status\":{\"S\":\"SHIPPED\"},\"note\":{\"S\":\"as orders are: %0150d\"}}",
            (int)strlen(key) - 1, key, i);
        ops[i] = (struct sl_table_op){.verb = SL_TABLE_PUT,
                                      .key = sl_span_str(key),
                                      .item = sl_span_str(item),
                                      .tests = &absent,
                                      .n_tests = 1};
    }
}

/* `n` conditional writes in one apply. `whole` (NULL: not wanted) begins before the target is opened. */
static struct spent write_to(const char *server, const char *bundle, const char *target, size_t n,
                             struct spent *whole)
{
    char endpoint[100], roots[100];
    const char *list[] = {"AWS_ACCESS_KEY_ID=AKIDEXAMPLE",
                          "AWS_SECRET_ACCESS_KEY=secret",
                          "AWS_REGION=us-east-1",
                          endpoint,
                          roots,
                          NULL};
    snprintf(endpoint, sizeof(endpoint), "AWS_ENDPOINT_URL=%s", server);
    snprintf(roots, sizeof(roots), "AWS_CA_BUNDLE=%s", bundle);
    struct sl_vars vars = {.list = list};
    struct sl_sinks sinks;
    struct sl_error error = {.status = SL_OK};
    struct sl_table_port *table = NULL;
    struct sl_call call = {sl_arena_new(64 * 1024), INT64_MAX};
    struct sl_arena *arena = sl_arena_new(64 * 1024);
    struct sl_table_op *ops = sl_arena_alloc(arena, n * sizeof(*ops));
    struct sl_result *results = sl_arena_alloc(arena, n * sizeof(*results));
    fill_ops(ops, n, arena);
    struct spent opened = now();
    sl_sinks_init(&sinks, sl_clock_system(), NULL, &vars);
    if (sl_target_table(&sinks, sl_span_str(target), &table, &error) != SL_OK)
        sl_die("bench_requests: %s", error.text);
    sl_sinks_prepare(&sinks);
    struct spent began = now();
    table->apply(table, ops, n, results, &call);
    struct spent ended = now();
    for (size_t i = 0; i < n; i++)
        if (results[i].status != SL_OK)
            sl_die("bench_requests: %s", results[i].text);
    table->close(table);
    sl_sinks_clean_up(&sinks);
    sl_arena_destroy(arena);
    sl_arena_destroy(call.arena);
    if (whole)
        *whole = (struct spent){ended.wall - opened.wall, ended.cpu - opened.cpu};
    return (struct spent){ended.wall - began.wall, ended.cpu - began.cpu};
}

/* One slice of OPS conditional writes on connections of its own, as the first of a process. */
static struct spent write_slice(const char *target, unsigned delay_us)
{
    struct keeper keeper;
    keeper_start(&keeper, "{}", delay_us);
    struct spent spent = write_to(keeper.url, "", target, OPS, NULL);
    keeper_stop(&keeper);
    return spent;
}

#define MOST_PAIRS 9
#define PAIRS      bench_size(MOST_PAIRS, 1)

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of, size_t n)
{
    qsort(of, n, sizeof(*of), compare);
    return of[n / 2];
}

/* In turn, so that both meet the same machine. */
static void bench_pace(unsigned delay_ms)
{
    double fixed[MOST_PAIRS], paced[MOST_PAIRS], faster[MOST_PAIRS], cpu[MOST_PAIRS];
    char text[128];
    for (size_t i = 0; i < PAIRS; i++) {
        struct spent before = write_slice("dynamodb://tbl?in_flight=16", delay_ms * 1000);
        struct spent after = write_slice("dynamodb://tbl", delay_ms * 1000);
        fixed[i] = before.wall * 1e3;
        paced[i] = after.wall * 1e3;
        faster[i] = before.wall / after.wall;
        cpu[i] = after.cpu / before.cpu;
    }
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, 16 in flight", delay_ms);
    bench_figure(text, median(fixed, PAIRS), "ms");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, as many as the target takes",
             delay_ms);
    bench_figure(text, median(paced, PAIRS), "ms");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, 16 to adapted", delay_ms);
    bench_figure(text, median(faster, PAIRS), "x faster");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, processor time, adapted to 16",
             delay_ms);
    bench_figure(text, median(cpu, PAIRS), "x");
}

/* ---- what a request costs, beside a client that was written for this alone ---- */

#define LANES 16

/* Sends the same bytes and reads an answer, OPS times on LANES connections: nothing is made, signed or
 * understood. */
static double floor_cpu(void)
{
    struct keeper keeper;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct pollfd lanes[LANES];
    char request[1200], answer[512];
    keeper_start(&keeper, "{}", 0);
    at.sin_port = htons((uint16_t)strtoul(strrchr(keeper.url, ':') + 1, NULL, 10));
    int len = snprintf(
        request, sizeof(request),
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-of: %0400d\r\ncontent-length: 560\r\n\r\n%0560d", 1, 1);
    size_t started = 0, done = 0;
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
        if (connect(lanes[i].fd, (struct sockaddr *)&at, sizeof(at)) != 0)
            sl_die("bench_requests: the local server takes no connection");
    }
    struct spent began = now();
    for (; started < LANES; started++)
        (void)!write(lanes[started].fd, request, (size_t)len);
    while (done < OPS && poll(lanes, LANES, 10000) > 0)
        for (int i = 0; i < LANES; i++) {
            if (!lanes[i].revents)
                continue;
            if (read(lanes[i].fd, answer, sizeof(answer)) <= 0)
                sl_die("bench_requests: the local server closed a connection");
            done++;
            if (started++ < OPS)
                (void)!write(lanes[i].fd, request, (size_t)len);
        }
    struct spent ended = now();
    for (int i = 0; i < LANES; i++)
        close(lanes[i].fd);
    keeper_stop(&keeper);
    return ended.cpu - began.cpu;
}

static void bench_cost(void)
{
    double ours[MOST_PAIRS], least[MOST_PAIRS], ratio[MOST_PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        ours[i] = write_slice("dynamodb://tbl?in_flight=16", 0).cpu / (double)OPS * 1e6;
        least[i] = floor_cpu() / (double)OPS * 1e6;
        ratio[i] = ours[i] / least[i];
    }
    bench_figure("a conditional PutItem, processor time", median(ours, PAIRS), "us");
    bench_figure("a client that only sends and reads the same, processor time", median(least, PAIRS), "us");
    bench_figure("a conditional PutItem, to a client that only sends and reads", median(ratio, PAIRS), "x");
}

/* ---- AWS's SDK in Node ---- */

#define NODE_FOLDER "bench/aws_sdk"
#define NODE_PAIRS  bench_size(3, 1)

/* The line that the command prints. False: it fails. */
static bool line_of(const char *command, char *line, size_t room)
{
    FILE *pipe = popen(command, "re");
    bool is_there = pipe && fgets(line, (int)room, pipe);
    bool is_good = pipe && pclose(pipe) == 0;
    line[is_there ? strcspn(line, "\n") : 0] = '\0';
    return is_there && is_good;
}

/* OPS conditional writes, after as many that are not counted. False: it cannot run here. */
static bool node_slice(const char *modules, const char *sockets, unsigned delay_us, struct spent *out)
{
    struct keeper keeper;
    char command[600], line[100];
    keeper_start(&keeper, "{}", delay_us);
    snprintf(command, sizeof(command),
             "NODE_PATH='%.400s/node_modules' node --no-warnings " NODE_FOLDER "/put_items.js %s %zu %s",
             modules, keeper.url, OPS, sockets);
    bool is_good =
        line_of(command, line, sizeof(line)) && sscanf(line, "%lf %lf", &out->wall, &out->cpu) == 2;
    keeper_stop(&keeper);
    out->wall /= 1e3;
    out->cpu /= 1e6;
    return is_good;
}

/* In turn with ours, whose slice includes its connections and the first requests of its process. */
static bool bench_node_at(const char *modules, unsigned delay_ms, const char *sockets)
{
    double took[MOST_PAIRS], cpu[MOST_PAIRS], slower[MOST_PAIRS], dearer[MOST_PAIRS];
    char text[160];
    for (size_t i = 0; i < NODE_PAIRS; i++) {
        struct spent ours = write_slice("dynamodb://tbl", delay_ms * 1000), theirs;
        if (!node_slice(modules, sockets, delay_ms * 1000, &theirs))
            return false;
        took[i] = theirs.wall * 1e3;
        cpu[i] = theirs.cpu / (double)OPS * 1e6;
        slower[i] = theirs.wall / ours.wall;
        dearer[i] = theirs.cpu / ours.cpu;
    }
    const char *agent = *sockets ? "64 sockets" : "its default agent";
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, AWS's SDK in Node, %s", delay_ms,
             agent);
    bench_figure(text, median(took, NODE_PAIRS), "ms");
    snprintf(text, sizeof(text), "5000 conditional writes, %u ms away, AWS's SDK in Node to ours, %s",
             delay_ms, agent);
    bench_figure(text, median(slower, NODE_PAIRS), "x");
    snprintf(text, sizeof(text), "a conditional PutItem, %u ms away, AWS's SDK in Node, %s, processor time",
             delay_ms, agent);
    bench_figure(text, median(cpu, NODE_PAIRS), "us");
    snprintf(text, sizeof(text),
             "a conditional PutItem, %u ms away, AWS's SDK in Node to ours, %s, processor time", delay_ms,
             agent);
    bench_figure(text, median(dearer, NODE_PAIRS), "x");
    return true;
}

static void bench_node(void)
{
    char modules[400];
    if (!line_of(NODE_FOLDER "/install.sh --installed", modules, sizeof(modules)))
        return; /* it says why */
    for (unsigned delay_ms = 0; delay_ms <= 5; delay_ms += 5)
        if (!bench_node_at(modules, delay_ms, "") || !bench_node_at(modules, delay_ms, "64")) {
            fprintf(stderr, "bench_requests: node cannot run " NODE_FOLDER
                            "/put_items.js: no figures of AWS's SDK\n");
            return;
        }
}

/* ---- the first event ---- */

#define FIRST      100
#define TLS_FOLDER "tests/net/tls"

/* In a process of its own, as after a cold start: from the sinks' opening to the answer of FIRST writes. */
static double first_event_ms(const char *url, const char *bundle)
{
    int ends[2];
    double took = 0;
    if (pipe(ends) != 0)
        sl_die("bench_requests: no pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct spent whole;
        write_to(url, bundle, "dynamodb://tbl", FIRST, &whole);
        took = whole.wall * 1e3;
        _exit(write(ends[1], &took, sizeof(took)) != sizeof(took));
    }
    close(ends[1]);
    if (read(ends[0], &took, sizeof(took)) != sizeof(took))
        sl_die("bench_requests: the first event failed");
    close(ends[0]);
    waitpid(child, NULL, 0);
    return took;
}

/* The system's roots and the server's. */
static void write_bundle(const char *path)
{
    static const char *const from[] = {"/etc/ssl/certs/ca-certificates.crt", TLS_FOLDER "/ca.pem"};
    char buffer[8192];
    FILE *out = fopen(path, "w");
    for (int i = 0; i < 2; i++) {
        FILE *in = fopen(from[i], "r");
        for (size_t n; in && out && (n = fread(buffer, 1, sizeof(buffer), in)) > 0;)
            fwrite(buffer, 1, n, out);
        if (in)
            fclose(in);
    }
    if (out)
        fclose(out);
}

static void bench_first_event(void)
{
    char bundle[] = "/tmp/bench-roots-XXXXXX";
    struct keeper keeper;
    struct keeper_tls tls;
    double plain[MOST_PAIRS], over_tls[MOST_PAIRS];
    close(mkstemp(bundle));
    write_bundle(bundle);
    keeper_start(&keeper, "{}", 0);
    keeper_tls_start(&tls, TLS_FOLDER);
    for (size_t i = 0; i < PAIRS; i++) {
        plain[i] = first_event_ms(keeper.url, bundle);
        over_tls[i] = first_event_ms(tls.url, bundle);
    }
    /* the least: a start has no work that varies, and the machine only adds to it */
    qsort(plain, PAIRS, sizeof(*plain), compare);
    qsort(over_tls, PAIRS, sizeof(*over_tls), compare);
    bench_figure("100 writes after a cold start, plain", plain[0], "ms");
    bench_figure("100 writes after a cold start, over TLS", over_tls[0], "ms");
    bench_figure("100 writes after a cold start, TLS beyond plain", over_tls[0] - plain[0], "ms");
    bench_figure("100 writes after a cold start, handshakes in full",
                 (double)tls.shared->full / (double)PAIRS, "handshakes");
    bench_figure("100 writes after a cold start, sessions resumed",
                 (double)tls.shared->resumed / (double)PAIRS, "handshakes");
    keeper_tls_stop(&tls);
    keeper_stop(&keeper);
    unlink(bundle);
}

int main(void)
{
    bench_first_event();
    bench_cost();
    bench_node();
    bench_pace(0);
    bench_pace(5);
    return 0;
}
