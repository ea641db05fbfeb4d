/* Linked into the library that `make mutate` measures with, which is compiled with -finstrument-functions:
 * notes in the file named by SL_REACH which functions a test's processes enter, a byte at each function's
 * offset in the library. The file is a shared mapping, so that what a killed process did is in it, too. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNSEEN __attribute__((no_instrument_function))

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static unsigned char *reached;
static size_t size;

void __cyg_profile_func_enter(void *function, void *site) UNSEEN;
void __cyg_profile_func_exit(void *function, void *site) UNSEEN;

UNSEEN __attribute__((constructor(101))) static void open_map(void)
{
    const char *path = getenv("SL_REACH");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    struct stat about;
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0) {
        void *map = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED)
            reached = map, size = (size_t)about.st_size;
    }
    close(fd);
}

void __cyg_profile_func_enter(void *function, void *site)
{
    size_t offset = (size_t)((const char *)function - __ehdr_start);
    (void)site;
    if (reached && offset < size)
        reached[offset] = 1;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function, (void)site;
}
