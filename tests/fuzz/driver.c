/* Replays a fuzz entry's corpus without libFuzzer: tests/fuzz/corpus/NAME for the program fuzz_NAME, or the
 * files named on the command line. Each input runs whole, and cut at every byte unless it is long. Each
 * ends where memory ends: a read beyond it ends the process, in every build. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUT_BYTES 2048

#ifdef SL_SANITIZED /* they see a read before the beginning, too */
static void run(const char *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    if (n)
        memcpy(copy, bytes, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}
#else
static void run(const char *bytes, size_t n)
{
    static uint8_t *end;
    static size_t room;
    if (!end || n > room) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        if (end)
            munmap(end - room, room + page);
        room = (n / page + 1) * page;
        uint8_t *all = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FUZZ_CHECK(all != MAP_FAILED && mprotect(all + room, page, PROT_NONE) == 0);
        end = all + room;
    }
    if (n)
        memcpy(end - n, bytes, n);
    LLVMFuzzerTestOneInput(end - n, n);
}
#endif

static void run_file(const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file && fstat(fileno(file), &st) == 0);
    size_t n = (size_t)st.st_size;
    char *bytes = malloc(n + 1);
    FUZZ_CHECK(bytes && fread(bytes, 1, n, file) == n);
    fclose(file);
    run(bytes, n);
    for (size_t cut = 0; cut < n && n <= CUT_BYTES; cut++)
        run(bytes, cut);
    free(bytes);
}

static size_t run_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort), files = 0;
    for (int i = 0; i < n; i++) {
        char file[2048];
        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            run_file(file);
            files++;
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return (size_t)files;
}

int main(int argc, char **argv)
{
    char folder[1024];
    size_t files = 0;
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s",
             strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name);
    for (int i = 1; i < argc; i++, files++)
        run_file(argv[i]);
    if (argc < 2)
        files = run_folder(folder);
    if (files == 0)
        fprintf(stderr, "%s: no inputs in %s; run it from the top directory\n", name, folder);
    printf("%zu passed\n", files);
    return files ? 0 : 1;
}
