/* What glibc knows of processes since 2.32 and 2.36 only; the command runs with 2.26
 * (scripts/package/README.md). */
#ifndef SL_BASE_PROCESS_H
#define SL_BASE_PROCESS_H

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* pidfd_open(2): a descriptor that is readable when the process has ended, or -1 with errno. */
static inline int sl_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* pidfd_getfd(2): a duplicate of the other process's descriptor, or -1 with errno. */
static inline int sl_pidfd_getfd(int pid_fd, int theirs)
{
    return (int)syscall(SYS_pidfd_getfd, pid_fd, theirs, 0);
}

/* "SEGV" of SIGSEGV: a static string, also of what has no name. */
static inline const char *sl_signal_name(int number)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",     [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",   [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1",   [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",   [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
        [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",   [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",   [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGPROF] = "PROF",   [SIGPWR] = "PWR",   [SIGVTALRM] = "VTALRM",
        [SIGPOLL] = "POLL", [SIGWINCH] = "WINCH", [SIGSYS] = "SYS"};
    size_t count = sizeof(names) / sizeof(*names);
    return number > 0 && (size_t)number < count && names[number] ? names[number] : "RT or unknown";
}

#endif
