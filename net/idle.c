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

/* How many bytes the peer has acknowledged, and whether that is all. False where the kernel does not say it
 * (before Linux 4.6). */
static bool look(int fd, uint64_t *acked, bool *is_all)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof(info.tcpi_notsent_bytes))
        return false;
    *acked = info.tcpi_bytes_acked;
    *is_all = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0;
    return true;
}

static bool set_timeout(int fd, unsigned ms)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)) == 0;
}

void sl_idle_add(struct sl_idle *idle, int fd)
{
    SL_PUSH(idle->sockets, idle->n, idle->room, "sockets") =
        (struct sl_idle_socket){.fd = fd, .acked = UINT64_MAX};
}

void sl_idle_forget(struct sl_idle *idle, int fd)
{
    struct sl_idle_socket *socket = find(idle, fd);
    if (socket)
        *socket = idle->sockets[--idle->n];
}

static void check_one(struct sl_idle_socket *socket, bool is_idle)
{
    uint64_t acked;
    bool is_all;
    if (!look(socket->fd, &acked, &is_all))
        return;
    if (socket->is_armed && !is_idle) {
        if (acked > socket->acked)
            socket->is_armed = !set_timeout(socket->fd, 0);
        return;
    }
    if (is_all && (is_idle || acked == socket->acked))
        socket->is_armed = socket->is_armed || set_timeout(socket->fd, SL_IDLE_DEAD_MS);
    socket->acked = acked;
}

void sl_idle_check(struct sl_idle *idle, int64_t now_ms)
{
    if (now_ms - idle->checked_ms < SL_IDLE_CHECK_MS)
        return;
    idle->checked_ms = now_ms;
    for (size_t i = 0; i < idle->n; i++)
        check_one(&idle->sockets[i], false);
}

void sl_idle_rest(struct sl_idle *idle)
{
    for (size_t i = 0; i < idle->n; i++)
        check_one(&idle->sockets[i], true);
}
