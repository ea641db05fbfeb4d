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

static void write_config(const struct place *place)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/sluice.json", place->folder);
    FILE *file = fopen(path, "w");
    if (!file)
        sl_die("bench_stream: %s cannot be written", path);
    fprintf(file,
            "{\"on_failure\":\"jsonl:%s/parked\",\"routes\":[{\"name\":\"none\",\"handler\":\"archive\","
            "\"when\":{\"pattern\":[{\"eventID\":[\"NONE\"]}]},\"to\":\"file:%s/archive\"}]}",
            place->folder, place->folder);
    fclose(file);
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

static struct spent decode(const struct place *place, const char *name)
{
    const char *const args[] = {place->sluice, "decode", name, NULL};
    return better(run(place, args), run(place, args));
}

static struct spent replay(const struct place *place, const char *name)
{
    const char *const args[] = {place->sluice,  "replay", "--quiet", "--config", "sluice.json",
                                "--batch-size", "1000",   name,      NULL};
    return better(run(place, args), run(place, args));
}

static void figure(const char *what, size_t records, double value, const char *unit)
{
    char name[128];
    snprintf(name, sizeof(name), "%s, %zu records", what, records);
    bench_figure(name, value, unit);
}

static void measure(const struct place *place, size_t records)
{
    size_t bytes;
    make_file(place, "lines", records);
    struct spent decoded = decode(place, "lines"), replayed = replay(place, "lines");
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
    write_config(&place);
    measure(&place, 1000);
    measure(&place, bench_size(30000, 2000));
    measure(&place, bench_size(1000000, 4000));
    const char *const remove[] = {"/bin/rm", "-rf", place.folder, NULL};
    (void)run(&(struct place){.folder = "/"}, remove);
    return 0;
}
