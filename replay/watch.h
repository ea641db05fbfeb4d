/* Watching a function's system calls from outside, so that a sink's call can fail on demand: the kernel asks
 * us before each (seccomp user notification), and the function's code knows nothing of it. Linux 5.6 or
 * later.
 */
#ifndef SL_REPLAY_WATCH_H
#define SL_REPLAY_WATCH_H

#include "base/error.h"

enum sl_watch_call {
    SL_WATCH_SYNC,   /* fsync, fdatasync: something is to be durable now */
    SL_WATCH_CONNECT /* to an address that is not the Runtime API's */
};

/* In the child, before exec: puts the watch in place and hands it over through `fd`, one end of a socket
 * pair. False: the kernel refuses. */
bool sl_watch_install(int fd);

/* In the parent: takes it over through the other end. -1: it did not come. The descriptor is readable when a
 * call waits, and hangs up when the last watched process is gone. */
int sl_watch_take(int fd, int pid_fd);

/* Answers the call that waits: `fails(arg, call)` says whether it fails (EIO, ECONNREFUSED) or goes on.
 * Connections to 127.0.0.1:`own_port` go on unasked. */
void sl_watch_answer(int watch_fd, unsigned own_port, bool (*fails)(void *arg, enum sl_watch_call call),
                     void *arg);

#endif
