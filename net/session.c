/* A copy of the session for each handshake: see net/session.h. */
#include "net/session.h"

#include <openssl/ssl.h>
#include <stdint.h>

/* OpenSSL calls it before the first message is made. */
static void on_info(const SSL *ssl, int where, int result)
{
    SSL_SESSION *session = SSL_get_session(ssl);
    (void)result;
    if (!(where & SSL_CB_HANDSHAKE_START) || !session || !SSL_SESSION_is_resumable(session))
        return;
    SSL_SESSION *copy = SSL_SESSION_dup(session);
    if (copy) /* else the session itself is resumed */
        SSL_set_session((SSL *)(uintptr_t)ssl, copy);
    SSL_SESSION_free(copy);
}

void sl_session_share(SSL_CTX *context)
{
    SSL_CTX_set_info_callback(context, on_info);
}
