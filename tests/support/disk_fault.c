#include "tests/support/disk_fault.h"

#include "tests/support/haste.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct disk_fault before_main;
struct disk_fault *disk_fault = &before_main;

__attribute__((constructor)) static void share(void)
{
    void *page = mmap(NULL, sizeof(*disk_fault), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED)
        disk_fault = page;
}

void disk_fault_begin(int n, int err, const char *only)
{
    disk_fault->err = err;
    disk_fault->only = only;
    disk_fault->came[0] = '\0';
    disk_fault->left = n;
}

void disk_fault_end(void)
{
    disk_fault->left = 0;
}

static bool has_left;

void disk_fault_leave(void)
{
    has_left = true;
}

bool disk_fault_came(void)
{
    return disk_fault->came[0] != '\0';
}

static bool fails(const char *name)
{
    struct disk_fault *fault = disk_fault;
    if (has_left || fault->left == 0 || (fault->only && strcmp(fault->only, name) != 0))
        return false;
    if (fault->spared && fault->spared == getpid())
        return false;
    if (fault->left > 1) {
        fault->left--;
        return false;
    }
    if (fault->times-- <= 1)
        fault->left = 0;
    if (!fault->came[0])
        snprintf(fault->came, sizeof(fault->came), "%s", name);
    errno = fault->err;
    return true;
}

/* The function that this one takes the place of: the sanitizer's, which checks the memory, or libc's. */
#define REAL(function)                                                                                       \
    extern __typeof__(function) __interceptor_##function __attribute__((weak));                              \
    static __typeof__(&(function)) real;                                                                     \
    if (!real && !(real = __interceptor_##function)) {                                                       \
        void *symbol = dlsym(RTLD_NEXT, #function);                                                          \
        memcpy(&real, &symbol, sizeof(real));                                                                \
    }

#define INSTEAD __attribute__((visibility("default")))

#define PASS(function, ...)                                                                                  \
    do {                                                                                                     \
        REAL(function)                                                                                       \
        return fails(#function) ? -(disk_fault->err != 0) : real(__VA_ARGS__);                               \
    } while (0)

/* One that counts only where the test names it: libraries ask so often that it would be most of a sweep. */
#define PASS_NAMED(function, ...)                                                                            \
    do {                                                                                                     \
        REAL(function)                                                                                       \
        return disk_fault->only && fails(#function) ? -1 : real(__VA_ARGS__);                                \
    } while (0)

#define PASS_OR(failure, function, ...)                                                                      \
    do {                                                                                                     \
        REAL(function)                                                                                       \
        return fails(#function) ? (failure) : real(__VA_ARGS__);                                             \
    } while (0)

/* ---- descriptors ---- */

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

INSTEAD int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    PASS(open, path, flags, mode);
}

INSTEAD int openat(int folder, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    PASS(openat, folder, path, flags, mode);
}

INSTEAD int dup(int fd)
{
    PASS(dup, fd);
}

INSTEAD int pipe2(int ends[2], int flags)
{
    PASS(pipe2, ends, flags);
}

INSTEAD int socketpair(int domain, int type, int protocol, int ends[2])
{
    PASS(socketpair, domain, type, protocol, ends);
}

INSTEAD int memfd_create(const char *name, unsigned flags)
{
    PASS(memfd_create, name, flags);
}

INSTEAD int signalfd(int fd, const sigset_t *set, int flags)
{
    PASS(signalfd, fd, set, flags);
}

INSTEAD off_t lseek(int fd, off_t at, int from)
{
    PASS(lseek, fd, at, from);
}

INSTEAD ssize_t read(int fd, void *to, size_t n)
{
    PASS(read, fd, to, disk_fault->short_reads && n ? (size_t)1 : n);
}

INSTEAD ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    PASS(pread, fd, to, disk_fault->short_reads && n ? (size_t)1 : n, at);
}

INSTEAD ssize_t write(int fd, const void *from, size_t n)
{
    PASS(write, fd, from, disk_fault->short_writes && n ? (size_t)1 : n);
}

INSTEAD ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    PASS(pwrite, fd, from, disk_fault->short_writes && n ? (size_t)1 : n, at);
}

INSTEAD int ftruncate(int fd, off_t n)
{
    PASS(ftruncate, fd, n);
}

INSTEAD int fsync(int fd)
{
    PASS(fsync, fd);
}

INSTEAD int fdatasync(int fd)
{
    PASS(fdatasync, fd);
}

INSTEAD int flock(int fd, int operation)
{
    PASS(flock, fd, operation);
}

INSTEAD void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t from)
{
    PASS_OR(MAP_FAILED, mmap, at, n, protection, flags, fd, from);
}

INSTEAD pid_t fork(void)
{
    PASS(fork);
}

INSTEAD int posix_fallocate(int fd, off_t from, off_t n)
{
    REAL(posix_fallocate)
    return disk_fault->only && fails("posix_fallocate") ? disk_fault->err : real(fd, from, n);
}

/* ---- sockets, and other processes ---- */

INSTEAD int socket(int domain, int type, int protocol)
{
    PASS_NAMED(socket, domain, type, protocol);
}

INSTEAD ssize_t send(int fd, const void *from, size_t n, int flags)
{
    PASS_NAMED(send, fd, from, n, flags);
}

/* (A signal ends what waits, and nothing else.) */
INSTEAD ssize_t recv(int fd, void *to, size_t n, int flags)
{
    REAL(recv)
    bool counts = disk_fault->only && !(disk_fault->err == EINTR && (flags & MSG_DONTWAIT));
    return counts && fails("recv") ? -1 : real(fd, to, n, flags);
}

INSTEAD pid_t waitpid(pid_t pid, int *status, int options)
{
    PASS_NAMED(waitpid, pid, status, options);
}

INSTEAD int pidfd_open(pid_t pid, unsigned flags)
{
    PASS_NAMED(pidfd_open, pid, flags);
}

/* (Where it fails, the parent is another one.) */
INSTEAD pid_t getppid(void)
{
    REAL(getppid)
    return disk_fault->only && fails("getppid") ? -1 : real();
}

/* ---- names ---- */

INSTEAD int mkdir(const char *path, mode_t mode)
{
    PASS(mkdir, path, mode);
}

INSTEAD int mkdirat(int folder, const char *path, mode_t mode)
{
    PASS(mkdirat, folder, path, mode);
}

INSTEAD char *mkdtemp(char *pattern)
{
    PASS_OR(NULL, mkdtemp, pattern);
}

INSTEAD int stat(const char *restrict path, struct stat *restrict info)
{
    PASS(stat, path, info);
}

INSTEAD int fstat(int fd, struct stat *info)
{
    PASS(fstat, fd, info);
}

INSTEAD int fstatat(int folder, const char *restrict path, struct stat *restrict info, int flags)
{
    PASS(fstatat, folder, path, info, flags);
}

INSTEAD int faccessat(int folder, const char *path, int mode, int flags)
{
    PASS(faccessat, folder, path, mode, flags);
}

INSTEAD int access(const char *path, int mode)
{
    PASS_NAMED(access, path, mode);
}

INSTEAD ssize_t readlink(const char *restrict path, char *restrict to, size_t room)
{
    PASS_NAMED(readlink, path, to, room);
}

INSTEAD int rename(const char *old, const char *new)
{
    PASS(rename, old, new);
}

INSTEAD int renameat(int from, const char *old, int to, const char *new)
{
    PASS(renameat, from, old, to, new);
}

INSTEAD int unlink(const char *path)
{
    PASS(unlink, path);
}

INSTEAD int unlinkat(int folder, const char *path, int flags)
{
    PASS(unlinkat, folder, path, flags);
}

INSTEAD DIR *opendir(const char *path)
{
    PASS_OR(NULL, opendir, path);
}

INSTEAD DIR *fdopendir(int fd)
{
    PASS_OR(NULL, fdopendir, fd);
}

INSTEAD struct dirent *readdir(DIR *dir)
{
    PASS_OR(NULL, readdir, dir);
}

/* ---- time ---- */

/* (A test may have its own.) */
__attribute__((weak)) /* (Weak: a test may have its own.) */
INSTEAD __attribute__((weak)) int
nanosleep(const struct timespec *wanted, struct timespec *left)
{
    REAL(nanosleep)
    const struct timespec wait = haste_shortened(wanted);
    if (!disk_fault->skips_sleep)
        return real(&wait, left);
    __atomic_add_fetch(&disk_fault->skipped_ns, wanted->tv_sec * 1000000000LL + wanted->tv_nsec,
                       __ATOMIC_RELAXED);
    return 0;
}

/* Of nothing, it is a sleep. */
INSTEAD int poll(struct pollfd *fds, nfds_t n, int ms)
{
    REAL(poll)
    if (disk_fault->only && fails("poll"))
        return -1;
    if (!disk_fault->skips_sleep || n || ms < 0)
        return real(fds, n, haste_shortened_ms(ms));
    __atomic_add_fetch(&disk_fault->skipped_ns, ms * 1000000LL, __ATOMIC_RELAXED);
    return 0;
}

INSTEAD int clock_gettime(clockid_t id, struct timespec *now)
{
    REAL(clock_gettime)
    int failed = real(id, now);
    long long skipped_ns = __atomic_load_n(&disk_fault->skipped_ns, __ATOMIC_RELAXED) + haste_ahead_ns();
    if (failed || skipped_ns == 0 || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME && id != CLOCK_BOOTTIME))
        return failed;
    skipped_ns += now->tv_nsec;
    now->tv_sec += skipped_ns / 1000000000;
    now->tv_nsec = skipped_ns % 1000000000;
    return 0;
}

/* ---- streams of stdio ---- */

INSTEAD FILE *fopen(const char *restrict path, const char *restrict mode)
{
    PASS_OR(NULL, fopen, path, mode);
}

INSTEAD FILE *fdopen(int fd, const char *mode)
{
    PASS_OR(NULL, fdopen, fd, mode);
}

/* What the stream still holds is lost, as on a full disk; what was written before is there. */
static int lose(FILE *file)
{
    int err = errno;
    __fpurge(file);
    errno = err;
    return EOF;
}

INSTEAD int fflush(FILE *file)
{
    REAL(fflush)
    return file && fails("fflush") ? lose(file) : real(file);
}

INSTEAD int fclose(FILE *file)
{
    REAL(fclose)
    if (!fails("fclose"))
        return real(file);
    int err = errno;
    lose(file);
    real(file);
    errno = err;
    return EOF;
}
