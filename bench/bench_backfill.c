/* `sluice backfill` of an export through replicate and aggregate into a local endpoint: items a second, and
 * the most memory that the process held, of exports that differ tenfold in size. bench_backfill [MB...] */
#include "base/base64.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/gzip.h"
#include "bench/support/events.h"
#include "bench/support/keeper.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES ((size_t)8 << 20) /* of one data file, before it is compressed */
#define ID         "01693685827463-2d8752fd"
#define ARN        "arn:aws:dynamodb:us-east-1:123456789012:table/orders"

struct export
{
    char folder[128];
    struct sl_buffer text, files;
    struct sl_arena *arena;
    uint64_t items, n_files;
};

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void say(const char *name, const char *size, double value, const char *unit)
{
    printf("{\"figure\":\"backfill %s, %s MB\",\"value\":%.2f,\"unit\":\"%s\"}\n", name, size, value, unit);
    fflush(stdout);
}

/* ---- the export ---- */

static void write_file(const struct export *e, const char *name, struct sl_span bytes)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/AWSDynamoDB/" ID "/%s", e->folder, name);
    FILE *out = fopen(path, "w");
    if (!out || fwrite(bytes.ptr, 1, bytes.len, out) != bytes.len || fclose(out) != 0)
        sl_die("%s cannot be written", path);
}

static struct sl_span md5(struct sl_span bytes, struct sl_arena *arena)
{
    unsigned char digest[16];
    EVP_Digest(bytes.ptr, bytes.len, digest, NULL, EVP_md5(), NULL);
    return sl_base64_encode(sl_span((const char *)digest, 16), arena);
}

/* An item of about 1,000 bytes. */
static void add_item(struct export *e)
{
    static const char *const states[] = {"OPEN", "PAID", "SHIPPED"};
    sl_buffer_printf(&e->text,
                     "{\"Item\":{\"PK\":{\"S\":\"order#%012" PRIu64 "\"},\"SK\":{\"N\":\"%" PRIu64
                     "\"},\"status\":{\"S\":\"%s\"},\"total\":{\"N\":\"%" PRIu64 ".25\"},\"note\":{\"S\":\"",
                     e->items, e->items % 7, states[e->items % 3], e->items % 1000);
    for (unsigned i = 0; i < 26; i++)
        sl_buffer_printf(&e->text, "%016" PRIx64 " and some more words ", e->items * 0x9E3779B97F4A7C15u + i);
    sl_buffer_add_str(&e->text, "\"}}}\n");
    e->items++;
}

static void write_data(struct export *e)
{
    char name[64];
    struct sl_buffer gz;
    uint64_t first = e->items;
    sl_buffer_reset(&e->text);
    while (e->text.len < FILE_BYTES)
        add_item(e);
    sl_buffer_init(&gz, 2 * FILE_BYTES);
    struct sl_span text = sl_buffer_span(&e->text);
    sl_gzip_add(&gz, &text, 1, 1);
    snprintf(name, sizeof(name), "data/%013" PRIu64 ".json.gz", e->n_files++);
    write_file(e, name, sl_buffer_span(&gz));
    sl_buffer_printf(&e->files,
                     "{\"itemCount\":%" PRIu64 ",\"md5Checksum\":\"%.*s\",\"etag\":\"x-1\",\"dataFileS3Key\":"
                     "\"AWSDynamoDB/" ID "/%s\"}\n",
                     e->items - first, SL_ARG(md5(sl_buffer_span(&gz), e->arena)), name);
    sl_buffer_clean_up(&gz);
}

static void write_manifests(struct export *e)
{
    char time_text[32], summary[1200];
    time_t now = time(NULL) - 60;
    struct tm tm;
    strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&now, &tm));
    snprintf(
        summary, sizeof(summary),
        "{\"version\":\"2020-06-30\",\"exportArn\":\"" ARN "/export/" ID
        "\",\"startTime\":\"%s\",\"endTime\":"
        "\"%s\",\"tableArn\":\"" ARN
        "\",\"tableId\":\"x\",\"exportTime\":\"%s\",\"s3Bucket\":\"b\",\"s3Prefix\":"
        "null,\"s3SseAlgorithm\":\"AES256\",\"s3SseKmsKeyId\":null,\"manifestFilesS3Key\":\"AWSDynamoDB/" ID
        "/manifest-files.json\",\"billedSizeBytes\":0,\"itemCount\":%" PRIu64
        ",\"outputFormat\":\"DYNAMODB_JSON\",\"exportType\":\"FULL_EXPORT\"}",
        time_text, time_text, time_text, e->items);
    write_file(e, "manifest-files.json", sl_buffer_span(&e->files));
    write_file(e, "manifest-files.md5", md5(sl_buffer_span(&e->files), e->arena));
    write_file(e, "manifest-summary.json", sl_span_str(summary));
    write_file(e, "manifest-summary.md5", md5(sl_span_str(summary), e->arena));
    write_file(e, "_started", sl_span("", 0));
}

static void write_export(struct export *e, size_t mb)
{
    struct sl_error error = SL_NO_ERROR;
    char path[300];
    snprintf(e->folder, sizeof(e->folder), "/tmp/bench_backfill.XXXXXX");
    if (!mkdtemp(e->folder))
        sl_die("no folder for the export");
    snprintf(path, sizeof(path), "%s/AWSDynamoDB/" ID "/data", e->folder);
    if (sl_disk_make_folder(path, &error) != SL_OK)
        sl_die("%s", error.text);
    e->arena = sl_arena_new(4096);
    sl_buffer_init(&e->text, 2 * FILE_BYTES);
    sl_buffer_init(&e->files, 64 << 20);
    for (uint64_t bytes = 0; bytes < (uint64_t)mb << 20; bytes += e->text.len)
        write_data(e);
    write_manifests(e);
}

static void remove_export(struct export *e)
{
    char command[300];
    snprintf(command, sizeof(command), "%s", e->folder);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", command, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
    sl_buffer_clean_up(&e->text);
    sl_buffer_clean_up(&e->files);
    sl_arena_destroy(e->arena);
}

/* ---- the run ---- */

static void write_config(const struct export *e, const char *url)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/sluice.json", e->folder);
    FILE *out = fopen(path, "w");
    if (!out)
        sl_die("%s cannot be written", path);
    fprintf(out,
            "{\"on_failure\":\"report\",\"report_batch_item_failures\":true,\"routes\":["
            "{\"name\":\"replica\",\"handler\":\"replicate\",\"to\":\"dynamodb://"
            "replica?endpoint=%s&in_flight=32\"},"
            "{\"name\":\"totals\",\"handler\":\"aggregate\",\"to\":\"dynamodb://"
            "totals?endpoint=%s&in_flight=32\","
            "\"counters\":[{\"key\":{\"PK\":\"{status}\"},\"add\":{\"n\":1,\"sum\":\"{total}\"}}]}]}",
            url, url);
    fclose(out);
}

static void run(const struct export *e, const char *sluice, const char *mb)
{
    char place[300];
    struct rusage usage;
    int status;
    snprintf(place, sizeof(place), "AWSDynamoDB/" ID);
    double began = wall();
    pid_t pid = fork();
    if (pid == 0) {
        static char *const environment[] = {"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret",
                                            "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true", NULL};
        if (chdir(e->folder) != 0 || !freopen("/dev/null", "w", stdout))
            _exit(126);
        execle(sluice, "sluice", "backfill", "--quiet", "--export", place, "--keys", "PK,SK",
               "--consumer-since", "2026-01-01T00:00:00Z", (char *)NULL, environment);
        _exit(127);
    }
    if (wait4(pid, &status, 0, &usage) != pid || status != 0)
        sl_die("sluice backfill failed: status %d", status);
    double seconds = wall() - began;
    double cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
                 (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
    say("items", mb, (double)e->items / seconds, "items/s");
    say("processor time an item", mb, cpu / (double)e->items * 1e6, "us");
    say("peak memory", mb, (double)usage.ru_maxrss / 1024, "MB");
}

int main(int argc, char **argv)
{
    const char *const usual[] = {bench_size(10, 1) == 10 ? "10" : "1",
                                 bench_size(100, 2) == 100 ? "100" : "2"};
    size_t n = argc > 1 ? (size_t)argc - 1 : 2;
    char sluice[4096];
    char *own = realpath(argv[0], NULL);
    if (!own)
        return 1;
    snprintf(sluice, sizeof(sluice), "%.*s/../sluice", (int)(strrchr(own, '/') - own), own);
    free(own);
    for (size_t i = 0; i < n; i++) {
        const char *mb = argc > 1 ? argv[i + 1] : usual[i];
        struct export e = {.items = 0};
        struct keeper keeper;
        write_export(&e, strtoull(mb, NULL, 10));
        keeper_start(&keeper, "{}", 0);
        write_config(&e, keeper.url);
        run(&e, sluice, mb);
        keeper_stop(&keeper);
        remove_export(&e);
    }
    return 0;
}
