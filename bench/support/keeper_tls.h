/* The keeper (bench/support/keeper.h) over TLS: it answers every request with `{}` and status 200 at once,
 * and counts its handshakes. */
#ifndef SL_BENCH_SUPPORT_KEEPER_TLS_H
#define SL_BENCH_SUPPORT_KEEPER_TLS_H

#include <stdint.h>

struct keeper_tls_shared {
    uint32_t full, resumed;
};

struct keeper_tls {
    int pid;
    char url[64]; /* https://localhost:port */
    struct keeper_tls_shared *shared;
};

/* `folder` has ca.pem, a certificate of localhost, and key.pem. */
void keeper_tls_start(struct keeper_tls *keeper, const char *folder);
void keeper_tls_stop(struct keeper_tls *keeper);

#endif
