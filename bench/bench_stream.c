/* `sluice decode` and `sluice replay` of large files, beside the decoder alone on the same bytes: speed as a
 * ratio, and memory as the number of records grows. The files are written to $TMPDIR, else /var/tmp (a
 * gigabyte), and read from the page cache. One JSON line a figure. */
#include "base/disk.h"
#include "bench/support/events.h"
#include "streams/decode/batch.h"
#include "streams/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_RECORDS ((size_t)5000)
#define PIECE_BYTES   ((size_t)4 << 20) /* as the command reads */

struct place {
    char sluice[PATH_MAX], folder[PATH_MAX];
};

struct spent {
    double wall, cpu; /* seconds */
    double mb;        /* at most resident */
};

/* ---- files ---- */

static void write_all(int fd, struct sl_span bytes)
{
    int err = sl_disk_write(fd, bytes);
    if (err)
        sl_die("bench_stream: a file of records cannot be written: %s", strerror(err));
}

/* Records of an event, one a line. */
static void write_lines(int fd, size_t n, uint64_t seed)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    struct sl_buffer event, lines;
    struct sl_batch batch;
    sl_buffer_init(&event, 1 << 28);
    sl_buffer_init(&lines, 1 << 28);
    bench_event(&event, n, seed);
    if (sl_batch_decode(sl_buffer_span(&event), arena, &(struct sl_decode_options){.any_shape = false},
                        &batch, NULL) != SL_OK)
        sl_die("bench_stream: the event is not one");
    for (size_t i = 0; i < batch.n; i++) {
        sl_buffer_add_span(&lines, sl_record_text(sl_batch_record(&batch, i), SL_FIELD_RAW));
        sl_buffer_add_char(&lines, '\n');
    }
    write_all(fd, sl_buffer_span(&lines));
    sl_buffer_clean_up(&event);
    sl_buffer_clean_up(&lines);
    sl_arena_destroy(arena);
}

static void make_file(const struct place *place, const char *name, size_t records)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s", place->folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        sl_die("bench_stream: %s cannot be written: %s", path, strerror(errno));
    for (size_t i = 0; i < records; i += CHUNK_RECORDS)
        write_lines(fd, records - i < CHUNK_RECORDS ? records - i : CHUNK_RECORDS, i + 1);
    close(fd);
}

static void write_config(const struct place *place, const char *name, const char *route)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s", place->folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        sl_die("bench_stream: %s cannot be written", path);
    fprintf(file, "{\"on_failure\":\"jsonl:%s/parked\",\"routes\":[{\"name\":\"one\",%s}]}", place->folder,
            route);
    fclose(file);
}

/* The paths are of the folder in which the command runs. */
static void write_configs(const struct place *place)
{
    write_config(place, "none.json",
                 "\"handler\":\"archive\",\"to\":\"file:archive\","
                 "\"when\":{\"pattern\":[{\"eventID\":[\"NONE\"]}]}");
    write_config(place, "archive.json", "\"handler\":\"archive\",\"to\":\"file:archive\"");
    write_config(place, "sqlite.json", "\"handler\":\"replicate\",\"to\":\"sqlite:db?table=copy\"");
}

/* ---- the decoder alone ---- */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The file is mapped and was looked at: the bytes are there. */
static struct spent decoder_alone(struct sl_span text)
{
    struct sl_arena *arena = sl_arena_new(1 << 20);
    double began = bench_seconds(), cpu_before = cpu_seconds();
    size_t records = 0;
    while (text.len) {
        struct sl_batch batch;
        size_t n = text.len < PIECE_BYTES ? text.len : PIECE_BYTES;
        n = (size_t)((const char *)memrchr(text.ptr, '\n', n) + 1 - text.ptr);
        sl_arena_reset(arena);
        if (sl_batch_decode(sl_span(text.ptr, n), arena,
                            &(struct sl_decode_options){.any_shape = true, .lines_before = 1}, &batch,
                            NULL) != SL_OK)
            sl_die("bench_stream: the decoder refuses its text");
        records += batch.n;
        text = sl_span_from(text, n);
    }
    struct spent spent = {bench_seconds() - began, cpu_seconds() - cpu_before, 0};
    sl_arena_destroy(arena);
    if (!records)
        sl_die("bench_stream: the decoder finds no records");
    return spent;
}

static struct spent better(struct spent a, struct spent b)
{
    return a.wall < b.wall ? a : b;
}

static struct spent floor_of(const struct place *place, const char *name, size_t *bytes)
{
    char path[PATH_MAX + 32];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", place->folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        sl_die("bench_stream: %s cannot be read", path);
    *bytes = (size_t)st.st_size;
    char *text = mmap(NULL, *bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (text == MAP_FAILED)
        sl_die("bench_stream: %s cannot be mapped", path);
    struct spent best = better(decoder_alone(sl_span(text, *bytes)), decoder_alone(sl_span(text, *bytes)));
    munmap(text, *bytes);
    close(fd);
    return best;
}

/* ---- the command ---- */

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static struct spent run(const struct place *place, const char *const *args)
{
    struct rusage use;
    int status;
    double began = bench_seconds();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        if (chdir(place->folder) != 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
            _exit(126);
        execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    if (wait4(pid, &status, 0, &use) != pid || status != 0)
        sl_die("bench_stream: %s %s failed: status %d", args[0], args[1], status);
    return (struct spent){bench_seconds() - began, seconds_of(use.ru_utime) + seconds_of(use.ru_stime),
                          (double)use.ru_maxrss / 1024};
}

static void remove_all(const struct place *place, const char *what)
{
    const char *const args[] = {"/bin/rm", "-rf", what, NULL};
    (void)run(place, args);
}

/* Short runs are taken more often: the machine only adds to them. */
static struct spent best_of(const struct place *place, const char *const *args, size_t records)
{
    struct spent best = run(place, args);
    for (size_t i = 1; i < bench_size(records > 100000 ? 2 : 9, 2); i++)
        best = better(best, run(place, args));
    return best;
}

static struct spent decode(const struct place *place, size_t records)
{
    const char *const args[] = {place->sluice, "decode", "lines", NULL};
    return best_of(place, args, records);
}

static struct spent replay(const struct place *place, size_t records)
{
    const char *const args[] = {place->sluice,  "replay", "--quiet", "--config", "none.json",
                                "--batch-size", "1000",   "lines",   NULL};
    return best_of(place, args, records);
}

static void figure(const char *what, size_t records, double value, const char *unit)
{
    char name[128];
    snprintf(name, sizeof(name), "%s, %zu records", what, records);
    bench_figure(name, value, unit);
}

struct size {
    size_t records;
    struct spent decoded, replayed;
};

static void measure(const struct place *place, struct size *size)
{
    size_t bytes, records = size->records;
    make_file(place, "lines", records);
    struct spent decoded = size->decoded = decode(place, records);
    struct spent replayed = size->replayed = replay(place, records);
    /* After them: a child counts with the memory that its parent has when it begins. */
    struct spent alone = floor_of(place, "lines", &bytes);
    figure("the decoder alone", records, (double)bytes / alone.wall / 1e9, "GB/s");
    figure("sluice decode", records, (double)bytes / decoded.wall / 1e9, "GB/s");
    figure("sluice decode", records, decoded.wall / alone.wall, "times the decoder alone");
    figure("sluice decode, processor time", records, decoded.cpu / alone.cpu, "times the decoder alone");
    figure("sluice decode, most resident", records, decoded.mb, "MB");
    figure("sluice replay, a route that takes none", records, replayed.wall, "s");
    figure("sluice replay, a route that takes none", records, replayed.wall / alone.wall,
           "times the decoder alone");
    figure("sluice replay, processor time", records, replayed.cpu / alone.cpu, "times the decoder alone");
    figure("sluice replay, most resident", records, replayed.mb, "MB");
}

/* What one more record takes: without the start, which the smallest size shows. */
static double more_of_one(double small, size_t n_small, double large, size_t n_large)
{
    return (large - small) / (double)(n_large - n_small);
}

static void compare_growth(const char *what, const size_t records[3], const double seconds[3])
{
    char name[128];
    snprintf(name, sizeof(name), "%s of one more record, %zu to %zu records", what, records[2], records[1]);
    bench_figure(name,
                 more_of_one(seconds[0], records[0], seconds[2], records[2]) /
                     more_of_one(seconds[0], records[0], seconds[1], records[1]),
                 "x");
}

/* Near 1, time is linear. */
static void measure_growth(const struct size s[3])
{
    const size_t n[] = {s[0].records, s[1].records, s[2].records};
    const double decoded[] = {s[0].decoded.wall, s[1].decoded.wall, s[2].decoded.wall};
    const double decoded_cpu[] = {s[0].decoded.cpu, s[1].decoded.cpu, s[2].decoded.cpu};
    const double replayed[] = {s[0].replayed.wall, s[1].replayed.wall, s[2].replayed.wall};
    const double replayed_cpu[] = {s[0].replayed.cpu, s[1].replayed.cpu, s[2].replayed.cpu};
    compare_growth("sluice decode, time", n, decoded);
    compare_growth("sluice decode, processor time", n, decoded_cpu);
    compare_growth("sluice replay, time", n, replayed);
    compare_growth("sluice replay, processor time", n, replayed_cpu);
}

/* A replay that writes, beside the same that writes nothing. */
static void measure_writing(const struct place *place, size_t records)
{
    static const char *const configs[] = {"archive.json", "sqlite.json"};
    static const char *const names[] = {"sluice replay, an archive in files",
                                        "sluice replay, replicated to SQLite"};
    make_file(place, "lines", records);
    struct spent none = replay(place, records);
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {place->sluice,  "replay", "--quiet", "--config", configs[i],
                                    "--batch-size", "1000",   "lines",   NULL};
        struct spent least = {.wall = 1e9};
        for (size_t k = 0; k < bench_size(3, 1); k++) {
            remove_all(place, i ? "db" : "archive");
            least = better(least, run(place, args));
        }
        figure(names[i], records, least.wall, "s");
        figure(names[i], records, (double)records / least.wall / 1e3, "thousand records/s");
        figure(names[i], records, least.wall / none.wall, "times one that writes nothing");
        figure(names[i], records, least.cpu / none.cpu, "times its processor time");
        figure(names[i], records, least.mb, "MB most resident");
    }
}

int main(int argc, char **argv)
{
    struct place place;
    const char *temporary = getenv("TMPDIR");
    (void)argc;
    if (!realpath(argv[0], place.folder))
        return 1;
    int n = snprintf(place.sluice, sizeof(place.sluice), "%.*s/../sluice",
                     (int)(strrchr(place.folder, '/') - place.folder), place.folder);
    snprintf(place.folder, sizeof(place.folder), "%s/bench-stream-XXXXXX",
             temporary ? temporary : "/var/tmp");
    if (n >= PATH_MAX || !mkdtemp(place.folder))
        sl_die("bench_stream: %s cannot be made", place.folder);
    write_configs(&place);
    struct size sizes[3] = {
        {.records = 1000}, {.records = bench_size(30000, 2000)}, {.records = bench_size(1000000, 4000)}};
    for (int i = 0; i < 3; i++)
        measure(&place, &sizes[i]);
    measure_growth(sizes);
    measure_writing(&place, bench_size(100000, 2000));
    remove_all(&(struct place){.folder = "/"}, place.folder);
    return 0;
}
