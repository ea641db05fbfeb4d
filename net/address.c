/* What an address is, and whether a request may go there: see net/address.h. */
#include "net/address.h"

#include "base/array.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define V4_BYTES 4
#define V6_BYTES 16

/* A range: its first address, how many of its bits count, and what it is. The first that fits decides. */
struct range {
    unsigned char first[V6_BYTES];
    unsigned bits;
    enum sl_address_kind kind;
    const char *what;
};

static const struct range v4_ranges[] = {
    {{0}, 8, SL_ADDRESS_FORBIDDEN, "an address of \"this network\""},
    {{127}, 8, SL_ADDRESS_LOOPBACK, "a loopback address"},
    {{169, 254, 169, 254}, 32, SL_ADDRESS_FORBIDDEN, "a machine's metadata service"},
    {{169, 254, 170, 2}, 32, SL_ADDRESS_FORBIDDEN, "a container's credentials endpoint"},
    {{169, 254, 170, 23}, 32, SL_ADDRESS_FORBIDDEN, "a container's credentials endpoint"},
    {{169, 254}, 16, SL_ADDRESS_FORBIDDEN, "a link-local address"},
    {{100, 100, 100, 200}, 32, SL_ADDRESS_FORBIDDEN, "a machine's metadata service"}, /* Alibaba Cloud */
    {{168, 63, 129, 16}, 32, SL_ADDRESS_FORBIDDEN, "a machine's metadata service"},   /* Azure */
    {{192, 0, 0}, 24, SL_ADDRESS_FORBIDDEN, "a reserved address"}, /* Oracle's metadata service is in it */
    {{10}, 8, SL_ADDRESS_PRIVATE, "a private address"},
    {{172, 16}, 12, SL_ADDRESS_PRIVATE, "a private address"},
    {{192, 168}, 16, SL_ADDRESS_PRIVATE, "a private address"},
    {{100, 64}, 10, SL_ADDRESS_PRIVATE, "an address of a provider's own network"},
    {{198, 18}, 15, SL_ADDRESS_PRIVATE, "an address for benchmarks"},
    {{192, 0, 2}, 24, SL_ADDRESS_FORBIDDEN, "an address for documentation"},
    {{198, 51, 100}, 24, SL_ADDRESS_FORBIDDEN, "an address for documentation"},
    {{203, 0, 113}, 24, SL_ADDRESS_FORBIDDEN, "an address for documentation"},
    {{192, 88, 99}, 24, SL_ADDRESS_FORBIDDEN, "a reserved address"}, /* relays of 6to4, given up */
    {{224}, 4, SL_ADDRESS_FORBIDDEN, "a multicast address"},
    {{240}, 4, SL_ADDRESS_FORBIDDEN, "a reserved address"},
    {{0}, 0, SL_ADDRESS_PUBLIC, "a public address"},
};

static const struct range v6_ranges[] = {
    {{[15] = 1}, 128, SL_ADDRESS_LOOPBACK, "a loopback address"},
    {{0xFD, 0, 0x0E, 0xC2}, 32, SL_ADDRESS_FORBIDDEN, "a machine's metadata service"},
    {{0xFD, 0x20, 0, 0xCE, [15] = 0}, 64, SL_ADDRESS_FORBIDDEN, "a machine's metadata service"}, /* Google */
    {{0xFC}, 7, SL_ADDRESS_PRIVATE, "a private address"},
    {{0xFE, 0x80}, 10, SL_ADDRESS_FORBIDDEN, "a link-local address"},
    {{0xFF}, 8, SL_ADDRESS_FORBIDDEN, "a multicast address"},
    {{0x20, 0x01, 0x0D, 0xB8}, 32, SL_ADDRESS_FORBIDDEN, "an address for documentation"},
    {{0x3F, 0xFF}, 20, SL_ADDRESS_FORBIDDEN, "an address for documentation"},
    {{0x20, 0x01}, 23, SL_ADDRESS_FORBIDDEN, "a reserved address"}, /* Teredo, ORCHID and others */
    {{0x20}, 3, SL_ADDRESS_PUBLIC, "a public address"},
    {{0}, 0, SL_ADDRESS_FORBIDDEN, "a reserved address"},
};

/* IPv6 addresses with an IPv4 address in them: the range, and the byte at which it begins. */
static const struct carrier {
    unsigned char first[V6_BYTES];
    unsigned bits, at;
} carriers[] = {
    {{[10] = 0xFF, [11] = 0xFF}, 96, 12}, /* mapped: ::ffff:a.b.c.d */
    {{[8] = 0xFF, [9] = 0xFF}, 96, 12},   /* translated: ::ffff:0:a.b.c.d */
    {{0, 0x64, 0xFF, 0x9B}, 96, 12},      /* NAT64: 64:ff9b::a.b.c.d */
    {{0x20, 0x02}, 16, 2},                /* 6to4: 2002:ab:cd:: */
};

bool sl_address_has_prefix(const unsigned char *bytes, const unsigned char *first, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    unsigned char mask = (unsigned char)(0xFF00u >> rest);
    return memcmp(bytes, first, whole) == 0 && (!rest || (bytes[whole] & mask) == (first[whole] & mask));
}

/* The table's last range holds everything. */
static const struct range *find(const struct range *ranges, const unsigned char *bytes)
{
    while (!sl_address_has_prefix(bytes, ranges->first, ranges->bits))
        ranges++;
    return ranges;
}

/* ISATAP names its IPv4 address in the second half, whichever network the first half is. */
static bool is_isatap(const unsigned char *bytes)
{
    return (bytes[8] & 0xFD) == 0 && bytes[9] == 0 && bytes[10] == 0x5E && bytes[11] == 0xFE;
}

static const unsigned char *carried_v4(const unsigned char *bytes)
{
    for (size_t i = 0; i < SL_COUNT(carriers); i++)
        if (sl_address_has_prefix(bytes, carriers[i].first, carriers[i].bits))
            return bytes + carriers[i].at;
    return is_isatap(bytes) ? bytes + 12 : NULL;
}

static const unsigned char *bytes_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return (const unsigned char *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (address->sa_family == AF_INET6)
        return (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return NULL;
}

/* The range of ISATAP's own network counts too: in a private one it is private. */
static const struct range *range_of(const unsigned char *bytes, bool is_v4)
{
    const unsigned char *carried = is_v4 ? NULL : carried_v4(bytes);
    const struct range *own = is_v4 ? find(v4_ranges, bytes) : find(v6_ranges, bytes);
    const struct range *inner = carried ? find(v4_ranges, carried) : NULL;
    bool is_worse = inner && is_isatap(bytes) && own->kind > inner->kind;
    return inner && !is_worse ? inner : own;
}

enum sl_address_kind sl_address_kind(const struct sockaddr *address, const char **what)
{
    static const struct range unknown = {{0}, 0, SL_ADDRESS_FORBIDDEN, "no address of the Internet"};
    const unsigned char *bytes = bytes_of(address);
    const struct range *range = bytes ? range_of(bytes, address->sa_family == AF_INET) : &unknown;
    if (what)
        *what = range->what;
    return range->kind;
}

static unsigned port_of(const struct sockaddr *address)
{
    return ntohs(address->sa_family == AF_INET
                     ? ((const struct sockaddr_in *)(const void *)address)->sin_port
                     : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
}

bool sl_address_parse(const char *text, unsigned port, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
        return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    return true;
}

/* That port at any address of this machine's surroundings, however the service's own host is written; and at
 * the very address. */
static bool is_never(const char *never, const struct sockaddr *address, enum sl_address_kind kind)
{
    const char *colon = never ? strrchr(never, ':') : NULL;
    struct sockaddr_storage named;
    char host[64];
    if (!colon || !bytes_of(address) || strtoul(colon + 1, NULL, 10) != port_of(address))
        return false;
    size_t bracket = *never == '['; /* of IPv6 */
    snprintf(host, sizeof(host), "%.*s", (int)(colon - never - (bracket ? 2 : 0)), never + bracket);
    bool is_same = sl_address_parse(host, 0, &named) && named.ss_family == address->sa_family &&
                   memcmp(bytes_of((const struct sockaddr *)&named), bytes_of(address),
                          named.ss_family == AF_INET ? V4_BYTES : V6_BYTES) == 0;
    return is_same || kind != SL_ADDRESS_PUBLIC;
}

static bool is_kind_allowed(const struct sl_address_rules *rules, enum sl_address_kind kind)
{
    if (rules->is_loopback)
        return kind == SL_ADDRESS_LOOPBACK;
    return kind == SL_ADDRESS_PUBLIC || (kind == SL_ADDRESS_PRIVATE && rules->is_private_allowed);
}

bool sl_address_is_allowed(const struct sl_address_rules *rules, const struct sockaddr *address,
                           const char **what)
{
    enum sl_address_kind kind = sl_address_kind(address, what);
    if (!is_never(rules->never, address, kind))
        return is_kind_allowed(rules, kind);
    *what = "the Runtime API";
    return false;
}
