/* Files and folders of this machine. */
#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum sl_status sl_disk_make_folder(const char *path, struct sl_error *error)
{
    char *work = strdup(path);
    if (!work)
        sl_die("out of memory: the path of a folder");
    enum sl_status status = SL_OK;
    for (char *p = work + 1; status == SL_OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(work, 0777) != 0 && errno != EEXIST)
            status = sl_fail(error, SL_FATAL, sl_disk_code(errno), "cannot create the folder %s: %s", work,
                             strerror(errno));
        *p = kept;
        if (kept == '\0')
            break;
    }
    free(work);
    return status;
}

enum sl_status sl_disk_make_parent(const char *path, struct sl_error *error)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
    enum sl_status status = folder ? sl_disk_make_folder(folder, error) : SL_OK;
    free(folder);
    return status;
}

/* Else the next file that is opened would be standard error, and log lines would be written into it. */
void sl_disk_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* takes the lowest number */
}

int sl_disk_write(int fd, struct sl_span bytes)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t n = write(fd, bytes.ptr + done, bytes.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        done += (size_t)n;
    }
    return 0;
}

/* ---- replacing a file ---- */

#define ASIDE_BYTES (sizeof(SL_DISK_ASIDE) + 16)

/* Creates a file that no other process has, in this or any other PID namespace or machine. */
static int create_aside(int folder, char name[ASIDE_BYTES])
{
    uint64_t random;
    int fd;
    do {
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return -1;
        snprintf(name, ASIDE_BYTES, SL_DISK_ASIDE "%016" PRIx64, random);
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST);
    return fd;
}

/* What a sweeper removed is written again under another name: the caller tries again. */
static int unless_swept(int fd, int err)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink == 0 ? EAGAIN : err;
}

static int fill_and_rename(int fd, int aside, const char *temporary, int folder, const char *name,
                           struct sl_span bytes)
{
    (void)flock(fd, LOCK_EX); /* not every file system has locks */
    int err = sl_disk_write(fd, bytes);
    if (!err && fsync(fd) != 0)
        err = errno;
    if (!err && renameat(aside, temporary, folder, name) != 0)
        err = unless_swept(fd, errno);
    return err;
}

int sl_disk_replace(int aside, int folder, const char *name, struct sl_span bytes)
{
    char temporary[ASIDE_BYTES];
    int fd = create_aside(aside, temporary);
    if (fd < 0)
        return errno;
    int err = fill_and_rename(fd, aside, temporary, folder, name, bytes);
    if (err)
        unlinkat(aside, temporary, 0);
    close(fd); /* the lock is held until here */
    if (!err && fsync(folder) != 0)
        err = errno;
    return err;
}

/* The folder that the file at `path` is in, opened; -1 and errno. */
static int open_parent(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!parent)
        sl_die("out of memory: the path of a folder");
    int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(parent);
    *name = slash ? slash + 1 : path;
    return folder;
}

int sl_disk_replace_path(const char *path, struct sl_span bytes)
{
    const char *name;
    int folder = open_parent(path, &name);
    if (folder < 0)
        return errno;
    int err = sl_disk_replace(folder, folder, name, bytes);
    close(folder);
    return err;
}

static void sweep_file(int aside, const char *name, time_t before)
{
    struct stat st;
    /* Open for writing: NFS turns this lock into one that needs it. */
    int fd = openat(aside, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtime < before &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(aside, name, 0);
    close(fd);
}

void sl_disk_sweep(int aside, const char *prefix)
{
    int fd = dup(aside);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    rewinddir(dir);
    time_t before = time(NULL) - SL_DISK_SWEEP_S;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            sweep_file(aside, entry->d_name, before);
    closedir(dir);
}

void sl_disk_sweep_path(const char *path)
{
    const char *name;
    int folder = open_parent(path, &name);
    if (folder < 0)
        return;
    sl_disk_sweep(folder, SL_DISK_ASIDE);
    close(folder);
}

/* ---- errors ---- */

enum sl_status sl_disk_status(int err)
{
    switch (err) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ENOENT:
    case ELOOP:
    case EFBIG: /* a limit of the process or of the file system: no record's fault */
        return SL_FATAL;
    case ENAMETOOLONG:
        return SL_REJECT;
    default:
        return SL_RETRY;
    }
}

const char *sl_disk_code(int err)
{
    switch (err) {
    case EACCES:
    case EPERM:
        return "AccessDenied";
    case EROFS:
        return "ReadOnly";
    case ENOSPC:
    case EDQUOT:
        return "NoSpace";
    case EFBIG:
        return "FileTooLarge";
    case ENAMETOOLONG:
        return "NameTooLong";
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
        return "NotFound";
    default:
        return "IoError";
    }
}
