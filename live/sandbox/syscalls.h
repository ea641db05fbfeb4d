/* Watches a function's system calls from outside, so that a call of a sink can be made to fail: the kernel
 * asks us before each call (seccomp user notification). The function's code is unchanged. Linux 5.6 or later.
 */
#ifndef SL_LIVE_SANDBOX_SYSCALLS_H
#define SL_LIVE_SANDBOX_SYSCALLS_H

#include "base/error.h"

enum sl_syscalls_kind {
    SL_SYSCALLS_SYNC,   /* fsync, fdatasync */
    SL_SYSCALLS_CONNECT /* to any address except the Runtime API's */
};

/* In the child, before exec: installs the watch, and sends it through `fd`, one end of a socket pair. False:
 * the kernel refuses. */
bool sl_syscalls_install(int fd);

/* In the parent: receives the watch through the other end; -1 on failure. The descriptor is readable when a
 * call waits, and hangs up when the last watched process has ended. */
int sl_syscalls_take(int fd, int pid_fd);

/* Answers the waiting call: it fails (EIO, ECONNREFUSED) if `fails(arg, call)` returns true. Connections to
 * 127.0.0.1:`own_port` never fail. */
void sl_syscalls_answer(int watch_fd, unsigned own_port, bool (*fails)(void *arg, enum sl_syscalls_kind call),
                        void *arg);

#endif
