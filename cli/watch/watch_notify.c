/* systemd's notices: one datagram to the socket that NOTIFY_SOCKET names (sd_notify(3),
 * sd_watchdog_enabled(3)).
 */
#include "cli/watch/watch_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Half of the time after which systemd gives up, as its manual says. */
static int64_t watchdog_ms(const struct sl_vars *vars)
{
    const char *usec = sl_vars_get(vars, "WATCHDOG_USEC"), *pid = sl_vars_get(vars, "WATCHDOG_PID");
    if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    int64_t ms = strtoll(usec, NULL, 10) / 2000;
    return ms > 0 ? ms : 0;
}

void sl_watch_notify_open(struct sl_watch_notify *notify, const struct sl_vars *vars)
{
    const char *path = sl_vars_get(vars, "NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *notify = (struct sl_watch_notify){.fd = -1};
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof(at.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(at.sun_path, path, len);
    if (path[0] == '@') /* an abstract one */
        at.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0) {
        *notify = (struct sl_watch_notify){fd, watchdog_ms(vars)};
        return;
    }
    if (fd >= 0)
        close(fd);
}

void sl_watch_notify_close(struct sl_watch_notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

void sl_watch_notify_say(const struct sl_watch_notify *notify, const char *text)
{
    if (notify->fd >= 0)
        (void)!send(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}
