/* TLS sessions that several connections resume at the same time.
 *
 * OpenSSL lets a TLS 1.3 session be resumed once: after the handshake it is marked as used up, until the
 * server's next ticket comes with the first answer. Connections that are opened meanwhile would go through a
 * handshake in full. Here each resumes a copy. RFC 8446 (C.4) advises against it because an observer could
 * tell that two connections are of one client; ours have one address anyway. A server that takes a ticket
 * once only goes through a handshake in full. */
#ifndef SL_NET_SESSION_H
#define SL_NET_SESSION_H

#include <openssl/types.h>

/* For all connections of the context; takes its info callback. */
void sl_session_share(SSL_CTX *context);

#endif
