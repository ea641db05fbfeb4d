/* Descriptors that are ours. When a handler closes every descriptor that it finds, the next file that is
 * opened takes their numbers, and lines of the log would end up in its data. */
#ifndef SL_RUNTIME_CONTAIN_OWNED_H
#define SL_RUNTIME_CONTAIN_OWNED_H

#include <stdbool.h>
#include <sys/stat.h>

struct sl_owned {
    int fd;
    dev_t device;
    ino_t inode;
};

static inline struct sl_owned sl_owned_note(int fd)
{
    struct stat facts;
    return fstat(fd, &facts) == 0 ? (struct sl_owned){fd, facts.st_dev, facts.st_ino}
                                  : (struct sl_owned){.fd = -1};
}

/* Is it still the file that was noted? */
static inline bool sl_owned_is_whole(const struct sl_owned *owned)
{
    struct stat now;
    return owned->fd < 0 ||
           (fstat(owned->fd, &now) == 0 && now.st_dev == owned->device && now.st_ino == owned->inode);
}

#endif
