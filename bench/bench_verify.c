/* `sluice verify` of a table and its replica against a local endpoint: items a second, forward and backward,
 * and the most memory that the process held, of tables that differ tenfold in size. bench_verify [ITEMS...]
 */
#include "base/error.h"
#include "bench/support/events.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE_ITEMS    2000 /* of about 500 bytes */
#define REQUEST_BYTES (64 * 1024)
#define ANSWER_BYTES  ((size_t)2 * 1024 * 1024)

static unsigned long table_items;

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the endpoint: items are made of their numbers ---- */

static char guard[400];

static void make_guard(void)
{
    snprintf(guard, sizeof(guard),
             "\"sluice_order\":{\"S\":\"000000:0000000000000000000000000000000000000111:0001480642020000\"},"
             "\"sluice_write\":{\"S\":\"1:0123456789abcdef:0123456789abcdef0123456789abcdef\"},");
}

#define BODY                                                                                                 \
    "\"},\"status\":{\"S\":\"shipped\"},\"paid\":{\"BOOL\":true},\"address\":{\"M\":{\"street\":{\"S\":"     \
    "\"Long Street 17, second floor on the left\"},\"city\":{\"S\":\"Springfield\"}}},\"lines\":{\"L\":"     \
    "[{\"M\":{\"sku\":{\"S\":\"A-1000\"},\"n\":{\"N\":\"2\"}}},{\"M\":{\"sku\":{\"S\":\"B-2000\"},\"n\":"    \
    "{\"N\":\"1\"}}}]},\"note\":{\"S\":\"leave it with the neighbours, please\"}}"

static char *put(char *at, const char *text, size_t n)
{
    memcpy(at, text, n);
    return at + n;
}

#define PUT(at, text) put(at, text, sizeof(text) - 1)

static char *put_number(char *at, unsigned long n)
{
    for (int i = 8; i > 0; n /= 10)
        at[--i] = (char)('0' + n % 10);
    return at + 8;
}

static char *put_item(char *at, unsigned long n, int is_replica)
{
    at = PUT(at, "{");
    if (is_replica)
        at = put(at, guard, strlen(guard));
    at = PUT(at, "\"PK\":{\"S\":\"k");
    at = put_number(at, n);
    at = PUT(at, "\"},\"total\":{\"N\":\"");
    at = put_number(at, n + 10000000);
    return put(at, BODY, sizeof(BODY) - 1);
}

static unsigned long number_after(const char *body, const char *name, unsigned long otherwise)
{
    const char *found = strstr(body, name);
    return found ? strtoul(found + strlen(name), NULL, 10) : otherwise;
}

static char *answer_scan(const char *body, char *at)
{
    unsigned long of = number_after(body, "\"TotalSegments\":", 1), s = number_after(body, "\"Segment\":", 0);
    unsigned long end = table_items * (s + 1) / of, from = table_items * s / of;
    const char *start = strstr(body, "\"ExclusiveStartKey\"");
    from = start ? number_after(start, "{\"S\":\"k", 0) + 1 : from;
    int is_replica = strstr(body, "\"replica\"") != NULL;
    unsigned long n = end - from < PAGE_ITEMS ? end - from : PAGE_ITEMS;
    at += snprintf(at, 64, "{\"Count\":%lu,\"ScannedCount\":%lu,\"Items\":[", n, n);
    for (unsigned long i = 0; i < n; i++) {
        at = put(at, i ? "," : "", i ? 1 : 0);
        at = put_item(at, from + i, is_replica);
    }
    at = PUT(at, "]");
    if (from + n < end) {
        at = PUT(at, ",\"LastEvaluatedKey\":{\"PK\":{\"S\":\"k");
        at = put_number(at, from + n - 1);
        at = PUT(at, "\"}}");
    }
    return PUT(at, "}");
}

/* An item for each key in the request. */
static char *answer_gets(const char *body, char *at)
{
    const char *name = strstr(body, "\"replica\"") ? "replica" : "orders", *key = body;
    int is_first = 1;
    at += snprintf(at, 64, "{\"UnprocessedKeys\":{},\"Responses\":{\"%s\":[", name);
    while ((key = strstr(key, "{\"PK\":{\"S\":\"k")) != NULL) {
        key += 13;
        at = put(at, ",", is_first ? 0 : 1);
        at = put_item(at, strtoul(key, NULL, 10), *name == 'r');
        is_first = 0;
    }
    return PUT(at, "]}}");
}

static char *answer_describe(const char *body, char *at)
{
    const char *name = strstr(body, "\"replica\"") ? "replica" : "orders";
    return at +
           snprintf(at, 1024,
                    "{\"Table\":{\"TableName\":\"%s\",\"TableStatus\":\"ACTIVE\",\"TableArn\":"
                    "\"arn:aws:dynamodb:us-east-1:123456789012:table/%s\",\"KeySchema\":[{\"AttributeName\":"
                    "\"PK\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{\"AttributeName\":\"PK\","
                    "\"AttributeType\":\"S\"}],\"ItemCount\":%lu,\"TableSizeBytes\":%lu,"
                    "\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\"}}}",
                    name, name, table_items, table_items * 400);
}

/* Reads one request; its head and body are in the buffer, followed by a NUL. */
static int read_request(int fd, char *buffer)
{
    size_t have = 0, whole = SIZE_MAX;
    while (have < whole) {
        ssize_t n = recv(fd, buffer + have, REQUEST_BYTES - 1 - have, 0);
        if (n <= 0)
            return 0;
        have += (size_t)n;
        buffer[have] = '\0';
        char *end = strstr(buffer, "\r\n\r\n");
        const char *length = end ? strcasestr(buffer, "\r\ncontent-length:") : NULL;
        if (end)
            whole = (size_t)(end - buffer) + 4 + (length ? strtoul(length + 17, NULL, 10) : 0);
    }
    return 1;
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char *request = malloc(REQUEST_BYTES), *answer = malloc(ANSWER_BYTES + 256);
    while (request && answer && read_request(fd, request)) {
        const char *body = strstr(request, "\r\n\r\n") + 4;
        char *begin = answer + 256, *end, head[256];
        if (strcasestr(request, "DynamoDB_20120810.Scan"))
            end = answer_scan(body, begin);
        else if (strcasestr(request, "DynamoDB_20120810.BatchGetItem"))
            end = answer_gets(body, begin);
        else
            end = answer_describe(body, begin);
        int n = snprintf(
            head, sizeof(head),
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: %zu\r\n\r\n",
            (size_t)(end - begin));
        memcpy(begin - n, head, (size_t)n);
        if (send(fd, begin - n, (size_t)(end - begin + n), MSG_NOSIGNAL) < 0)
            break;
    }
    free(request);
    free(answer);
    close(fd);
    return NULL;
}

static void serve_all(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = accept(listener, NULL, NULL), one = 1;
        pthread_t thread;
        if (fd < 0)
            _exit(0);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

static pid_t start_endpoint(char *url, size_t room)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0)
        sl_die("the local server cannot listen");
    snprintf(url, room, "http://127.0.0.1:%d", ntohs(at.sin_port));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        serve_all(listener);
    close(listener);
    return pid;
}

/* ---- the command ---- */

static void run_verify(const char *folder)
{
    const char *build = getenv("BUILD");
    char path[400], config[400];
    snprintf(config, sizeof(config), "%s/sluice.json", folder);
    snprintf(path, sizeof(path), "%s/sluice", build ? build : "build");
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(1);
    execl(path, path, "verify", "--config", config, "--table", "orders", "--max-lag", "0", "--quiet",
          (char *)NULL);
    _exit(127);
}

static void say(const char *name, unsigned long items, double value, const char *unit)
{
    printf("{\"figure\":\"verify %s, %lu items\",\"value\":%.1f,\"unit\":\"%s\"}\n", name, items, value,
           unit);
    fflush(stdout);
}

static void measure(const char *folder, unsigned long items)
{
    char url[64];
    struct rusage use;
    int status = 0;
    table_items = items;
    pid_t endpoint = start_endpoint(url, sizeof(url));
    setenv("AWS_ENDPOINT_URL_DYNAMODB", url, 1);
    double began = wall();
    pid_t pid = fork();
    if (pid == 0)
        run_verify(folder);
    if (wait4(pid, &status, 0, &use) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        sl_die("bench_verify: sluice verify ended with status %d", WEXITSTATUS(status));
    double took = wall() - began;
    double cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
    kill(endpoint, SIGKILL);
    waitpid(endpoint, NULL, 0);
    /* Each item is verified from the source, and its row from the replica. */
    say("forward and backward", items, (double)items / took, "items/s");
    say("one direction", items, 2 * (double)items / took, "items/s");
    say("processor time", items, cpu / (double)items * 1e6, "us/item");
    say("peak memory", items, (double)use.ru_maxrss / 1024, "MB");
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/bench-verify-XXXXXX", path[64];
    make_guard();
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_REGION", "us-east-1", 1);
    if (!mkdtemp(folder))
        sl_die("%s: cannot be made", folder);
    snprintf(path, sizeof(path), "%s/sluice.json", folder);
    FILE *config = fopen(path, "w");
    if (!config)
        sl_die("%s: cannot be written", path);
    fputs("{\"on_failure\":\"report\",\"routes\":[{\"name\":\"replica\",\"handler\":\"replicate\",\"to\":"
          "\"dynamodb://replica\"}]}",
          config);
    fclose(config);
    if (argc < 2) {
        measure(folder, bench_size(200000, 2000));
        measure(folder, bench_size(2000000, 4000));
    }
    for (int i = 1; i < argc; i++)
        measure(folder, strtoul(argv[i], NULL, 10));
    (void)unlink(path);
    (void)rmdir(folder);
    return 0;
}
