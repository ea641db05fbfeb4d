/* What our objects and Debian's archives ask of glibc, and 2.26 does not have: linked into the released
 * command alone. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

/* SQLite's. Of 64 bits, the two are one. */
int fcntl64(int fd, int command, ...);
int fcntl64(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fcntl(fd, command, argument);
}

/* System calls. (A kernel of that age may not know them either: callers look at what they return.) */
int close_range(unsigned first, unsigned last, int flags);
int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

int memfd_create(const char *name, unsigned flags);
int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

int pidfd_open(pid_t pid, unsigned flags);
int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

int pidfd_getfd(int pid_fd, int theirs, unsigned flags);
int pidfd_getfd(int pid_fd, int theirs, unsigned flags)
{
    return (int)syscall(SYS_pidfd_getfd, pid_fd, theirs, flags);
}

/* fork(2) without the handlers of pthread_atfork; nothing here has any but the C library's own, which fork
 * needs at that age. */
pid_t _Fork(void);
pid_t _Fork(void)
{
    return fork();
}

/* "SEGV" of SIGSEGV; NULL of what has no name. */
const char *sigabbrev_np(int number);
const char *sigabbrev_np(int number)
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
    return number > 0 && (size_t)number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}
