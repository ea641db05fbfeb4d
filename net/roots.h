/* The certificates that TLS trusts, from a file in PEM (a "CA bundle").
 *
 * OpenSSL takes 18 ms to parse the 144 of Debian's file, because it decodes each public key. Here only the
 * subjects are read (1.5 ms), and a certificate is parsed when a chain asks for its subject: mostly one. What
 * is verified, and how, stays OpenSSL's: the store gets a lookup by subject, as its own for folders is one.
 *
 * One store serves all connections of a process. When the file has changed, it is read again; where that
 * fails, what was read before stays. One thread. */
#ifndef SL_NET_ROOTS_H
#define SL_NET_ROOTS_H

#include "base/types.h"

#include <openssl/types.h>
#include <sys/stat.h>

/* Zeroed memory is empty. */
struct sl_roots {
    X509_STORE *store;
    struct stat file; /* that was read */
};

void sl_roots_clean_up(struct sl_roots *roots);

/* Reads the file unless this was done, and it is the same. NULL: the store stands; else why it does not, a
 * clause without the file's name: it cannot be read, is a folder, is no PEM, or has no certificate. */
const char *sl_roots_read(struct sl_roots *roots, const char *path) SL_MUST_USE;

#endif
