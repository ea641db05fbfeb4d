/* Descriptors that are ours. A handler that closes what it finds open leaves them to whatever is opened next,
 * and lines of the log in somebody's data. */
#ifndef SL_RUNTIME_OWNED_H
#define SL_RUNTIME_OWNED_H

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

/* Is it still what was noted? */
static inline bool sl_owned_is_whole(const struct sl_owned *owned)
{
    struct stat now;
    return owned->fd < 0 ||
           (fstat(owned->fd, &now) == 0 && now.st_dev == owned->device && now.st_ino == owned->inode);
}

#define SL_OWNED_CODE "HandlerClosedDescriptors"
#define SL_OWNED_TEXT                                                                                        \
    "a handler closed descriptors that are not its own; the batch comes again, to a new process"

#endif
