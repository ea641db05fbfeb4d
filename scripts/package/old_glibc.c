/* What Debian's archives ask of glibc and 2.26 does not have. */
#include <fcntl.h>
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

/* Our own. A kernel of Lambda's age may not know close_range either: its callers look at what it returns. */
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

/* fork(2) without the handlers of pthread_atfork; nothing here has any but the C library's own, which fork
 * needs at that age. */
pid_t _Fork(void);
pid_t _Fork(void)
{
    return fork();
}
