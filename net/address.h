/* Where a request may go whose host an operator or a DNS server names: the check of an address, made when the
 * socket is opened, after all names and spellings are resolved.
 *
 * Without it, a receiver's name could lead to a place that trusts whoever can reach it: the metadata service
 * of a machine hands out credentials, the Runtime API takes answers of the function.
 *
 * The kinds follow IANA's registries of special-purpose addresses (IPv4 and IPv6, RFC 6890 and its
 * successors) and the addresses of clouds' own services. Of IPv6 only what is known to be public is public.
 * Forms that carry an IPv4 address (mapped, translated, NAT64, 6to4, ISATAP) are as that address is. */
#ifndef SL_NET_ADDRESS_H
#define SL_NET_ADDRESS_H

#include "base/types.h"

#include <sys/socket.h>

enum sl_address_kind {
    SL_ADDRESS_PUBLIC,
    SL_ADDRESS_LOOPBACK,  /* 127.0.0.0/8, ::1 */
    SL_ADDRESS_PRIVATE,   /* RFC 1918, 100.64.0.0/10, 198.18.0.0/15, fc00::/7 */
    SL_ADDRESS_FORBIDDEN, /* link-local, metadata, multicast, "this network", reserved: nobody's receiver */
};

/* `what` (may be NULL) becomes what the address is, in a few words: "a link-local address". */
enum sl_address_kind sl_address_kind(const struct sockaddr *address, const char **what);

struct sl_address_rules {
    bool is_loopback; /* the target names this machine: loopback alone is allowed. Else loopback never is */
    bool is_private_allowed;
    const char *never; /* "host:port": AWS_LAMBDA_RUNTIME_API, which is never meant; NULL: none */
};

/* `what` becomes what the address is, as above, or "the Runtime API". */
bool sl_address_is_allowed(const struct sl_address_rules *rules, const struct sockaddr *address,
                           const char **what) SL_MUST_USE;

/* Do two addresses of one family begin with the same bits? */
bool sl_address_has_prefix(const unsigned char *address, const unsigned char *network, unsigned bits);

/* The address that the text spells, without brackets and zone; false when it is not one. */
bool sl_address_parse(const char *text, unsigned port, struct sockaddr_storage *out) SL_MUST_USE;

#endif
