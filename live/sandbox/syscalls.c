/* Watches system calls through seccomp. */
#include "live/sandbox/syscalls.h"

#include "base/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* System call numbers depend on the architecture; a process of another one (32 bit) is not watched. */
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ASK_IF(number)                                                                                       \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

bool sl_syscalls_install(int fd)
{
    struct sock_filter rules[] = {LOAD(nr), ASK_IF(SYS_fsync), ASK_IF(SYS_fdatasync), ASK_IF(SYS_connect),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {SL_COUNT(rules), rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int watch =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    char taken;
    return write(fd, &watch, sizeof(watch)) == sizeof(watch) && watch >= 0 && read(fd, &taken, 1) == 1;
}

int sl_syscalls_take(int fd, int pid_fd)
{
    int theirs = -1;
    if (read(fd, &theirs, sizeof(theirs)) != sizeof(theirs) || theirs < 0)
        return -1;
    int watch = pidfd_getfd(pid_fd, theirs, 0);
    (void)!write(fd, "t", 1);
    return watch;
}

static bool is_own(const struct seccomp_notif *call, unsigned own_port)
{
    struct sockaddr_in to = {0};
    struct iovec here = {&to, sizeof(to)}, there = {(void *)(uintptr_t)call->data.args[1], sizeof(to)};
    if (process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(to))
        return true; /* not an internet address */
    return to.sin_family != AF_INET ||
           (to.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && ntohs(to.sin_port) == own_port);
}

void sl_syscalls_answer(int watch_fd, unsigned own_port, bool (*fails)(void *arg, enum sl_syscalls_kind call),
                        void *arg)
{
    struct seccomp_notif call;
    memset(&call, 0, sizeof(call)); /* the kernel requires zeros */
    if (ioctl(watch_fd, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return;
    bool is_connect = call.data.nr == SYS_connect;
    bool is_failed = !(is_connect && is_own(&call, own_port)) &&
                     fails(arg, is_connect ? SL_SYSCALLS_CONNECT : SL_SYSCALLS_SYNC);
    struct seccomp_notif_resp answer = {
        .id = call.id,
        .error = is_failed ? -(is_connect ? ECONNREFUSED : EIO) : 0,
        .flags = is_failed ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE,
    };
    ioctl(watch_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
