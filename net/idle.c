/* TCP_USER_TIMEOUT for the first bytes on a connection that was idle. */
#include "net/idle.h"

#include "base/array.h"
#include "base/error.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

void sl_idle_clean_up(struct sl_idle *idle)
{
    free(idle->sockets);
    *idle = (struct sl_idle){.sockets = NULL};
}

static struct sl_idle_socket *find(const struct sl_idle *idle, int fd)
{
    for (size_t i = 0; i < idle->n; i++)
        if (idle->sockets[i].fd == fd)
            return &idle->sockets[i];
    return NULL;
}

/* How many bytes the peer has acknowledged; false where the kernel does not say it (before Linux 4.1). */
static bool read_acked(int fd, uint64_t *acked)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked))
        return false;
    *acked = info.tcpi_bytes_acked;
    return true;
}

static bool set_timeout(int fd, unsigned ms)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)) == 0;
}

static struct sl_idle_socket *add(struct sl_idle *idle, int fd)
{
    struct sl_idle_socket *socket = &SL_PUSH(idle->sockets, idle->n, idle->room, "sockets");
    *socket = (struct sl_idle_socket){.fd = fd};
    return socket;
}

void sl_idle_arm(struct sl_idle *idle, int fd)
{
    uint64_t acked;
    if (!read_acked(fd, &acked))
        return;
    struct sl_idle_socket *socket = find(idle, fd);
    if (!socket)
        socket = add(idle, fd);
    socket->acked = acked;
    socket->is_armed = socket->is_armed || set_timeout(fd, SL_IDLE_DEAD_MS);
}

void sl_idle_forget(struct sl_idle *idle, int fd)
{
    struct sl_idle_socket *socket = find(idle, fd);
    if (socket)
        *socket = idle->sockets[--idle->n];
}

void sl_idle_check(struct sl_idle *idle, int64_t now_ms)
{
    if (now_ms - idle->checked_ms < SL_IDLE_CHECK_MS)
        return;
    idle->checked_ms = now_ms;
    for (size_t i = 0; i < idle->n; i++) {
        struct sl_idle_socket *socket = &idle->sockets[i];
        uint64_t acked;
        if (socket->is_armed && read_acked(socket->fd, &acked) && acked > socket->acked)
            socket->is_armed = !set_timeout(socket->fd, 0);
    }
}
