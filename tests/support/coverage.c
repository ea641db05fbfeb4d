/* For `make cover`: a process that ends without exit() writes no counts, so in an instrumented build the ends
 * that this tree uses write them first. A process that is killed by another one of the same test gets SIGUSR2
 * first, and a moment for it. What raises the signal it dies of, as our own handlers of crashes do, writes
 * them before; what becomes another program, too; and who ignores every signal still hears that one. In any
 * other build this does nothing. */
#include "tests/support/disk_fault.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(SL_SANITIZED)

#define MOMENT_MS 300

/* libgcov's, when it is linked. (Not hidden: gold gives a hidden symbol that is not there the program's first
 * address.) */
extern void __gcov_exit(void) __attribute__((weak));

static void write_counts(void)
{
    if (!__gcov_exit)
        return;
    /* Whoever ends us in the middle of it would leave a file that nobody can read. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    disk_fault_leave();
    __gcov_exit();
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void write_and_end(int number)
{
    (void)number;
    write_counts();
    syscall(SYS_kill, getpid(), SIGKILL);
}

__attribute__((constructor)) static void watch(void)
{
    if (__gcov_exit)
        signal(SIGUSR2, write_and_end);
}

void _exit(int status)
{
    write_counts();
    for (;;)
        syscall(SYS_exit_group, status);
}

int raise(int number)
{
    write_counts();
    return (int)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESTART}, old;
    if (__gcov_exit && number == SIGUSR2)
        action.sa_handler = write_and_end;
    return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* Who dies with its parent, which writes its own at that moment, gets SIGUSR2 as well. */
int prctl(int option, ...)
{
    va_list list;
    va_start(list, option);
    unsigned long first = va_arg(list, unsigned long);
    va_end(list);
    if (__gcov_exit && option == PR_SET_PDEATHSIG && (int)first == SIGKILL)
        first = SIGUSR2;
    return (int)syscall(SYS_prctl, option, first, 0, 0, 0);
}

int execle(const char *path, const char *first, ...)
{
    char *words[8] = {(char *)(unsigned long)first};
    size_t n = 1;
    va_list list;
    va_start(list, first);
    while (n < sizeof(words) / sizeof(words[0]) && (words[n] = va_arg(list, char *)))
        n++;
    char **environment = va_arg(list, char **);
    va_end(list);
    if (access(path, X_OK) == 0)
        write_counts();
    return (int)syscall(SYS_execve, path, words, environment);
}

/* A fork of ours, and not another program. */
static int is_like_us(pid_t pid)
{
    char path[64], ours[512], theirs[512];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink("/proc/self/exe", ours, sizeof(ours));
    return n > 0 && readlink(path, theirs, sizeof(theirs)) == n && memcmp(ours, theirs, (size_t)n) == 0;
}

int kill(pid_t pid, int number)
{
    if (__gcov_exit && number == SIGKILL && pid > 0 && is_like_us(pid)) {
        struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
        int ended =
            end.fd >= 0 && syscall(SYS_kill, pid, SIGUSR2) == 0 && syscall(SYS_poll, &end, 1, MOMENT_MS) == 1;
        if (end.fd >= 0)
            close(end.fd);
        if (ended)
            return 0;
    }
    return (int)syscall(SYS_kill, pid, number);
}

#endif
