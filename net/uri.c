/* Percent-encoding, and the parts of a URL. */
#include "net/uri.h"

#include "base/array.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void sl_uri_encode(struct sl_buffer *out, struct sl_span text, char keep)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *p = text.ptr, *end = sl_span_end(text);
    while (p < end) {
        const char *run = p;
        while (run < end && (is_unreserved((unsigned char)*run) || (keep && *run == keep)))
            run++;
        sl_buffer_add(out, p, (size_t)(run - p));
        if (run == end)
            return;
        unsigned char c = (unsigned char)*run;
        sl_buffer_add(out, (const char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
        p = run + 1;
    }
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return has;
}

static bool copy_part(CURLU *url, CURLUPart part, char *out, size_t room)
{
    char *text = NULL;
    bool fits = curl_url_get(url, part, &text, 0) == CURLUE_OK && strlen(text) < room;
    snprintf(out, room, "%s", fits ? text : "");
    curl_free(text);
    return fits && out[0];
}

/* No server listens there. */
static bool has_port_0(CURLU *url)
{
    char port[8];
    return copy_part(url, CURLUPART_PORT, port, sizeof(port)) && strcmp(port, "0") == 0;
}

bool sl_uri_parse(const char *text, struct sl_uri *out)
{
    char scheme[8];
    CURLU *url = curl_url();
    if (!url)
        sl_die("out of memory: a URL");
    bool good = curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                copy_part(url, CURLUPART_SCHEME, scheme, sizeof(scheme)) &&
                copy_part(url, CURLUPART_HOST, out->host, sizeof(out->host)) &&
                !has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD) && !has_port_0(url);
    out->is_https = good && strcmp(scheme, "https") == 0;
    good = good && (out->is_https || strcmp(scheme, "http") == 0);
    /* libcurl takes one slash or three for two. */
    size_t n = good ? strlen(scheme) : 0;
    good = good && strncmp(text + n, "://", 3) == 0 && text[n + 3] != '/';
    curl_url_cleanup(url);
    return good;
}

static bool is_local_v4(const unsigned char *ip)
{
    return ip[0] == 127 || (ip[0] == 169 && ip[1] == 254);
}

static bool is_local_v6(const char *host, size_t len)
{
    static const char *const places[] = {"::1", "fd00:ec2::254", "fd00:ec2::23"};
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    char text[SL_URI_HOST_BYTES];
    unsigned char ip[16], place[16];
    snprintf(text, sizeof(text), "%.*s", (int)len, host);
    text[strcspn(text, "%")] = '\0'; /* a zone */
    if (inet_pton(AF_INET6, text, ip) != 1)
        return false;
    for (size_t i = 0; i < SL_COUNT(places); i++)
        if (inet_pton(AF_INET6, places[i], place) == 1 && memcmp(ip, place, sizeof(ip)) == 0)
            return true;
    return memcmp(ip, mapped, sizeof(mapped)) == 0 && is_local_v4(ip + 12);
}

/* Is it the name, or one below it? */
static bool is_below(const char *host, size_t len, const char *name)
{
    size_t n = strlen(name);
    return n && len >= n && strncasecmp(host + len - n, name, n) == 0 &&
           (len == n || host[len - n - 1] == '.');
}

/* libcurl itself resolves "localhost" and what ends in ".localhost" to this machine. */
static bool is_localhost(const char *host, size_t len)
{
    if (len && host[len - 1] == '.')
        len--;
    return is_below(host, len, "localhost");
}

bool sl_uri_is_local(const struct sl_uri *uri)
{
    unsigned char ip[4];
    size_t len = strlen(uri->host);
    if (uri->host[0] == '[')
        return len > 2 && is_local_v6(uri->host + 1, len - 2);
    return is_localhost(uri->host, len) || (inet_pton(AF_INET, uri->host, ip) == 1 && is_local_v4(ip));
}

/* 10.0.0.0/8, fd00::/8, or an address alone. */
static bool is_in_network(const char *host, const char *network)
{
    unsigned char a[16], b[16];
    char address[64];
    size_t n = strcspn(network, "/");
    int family = strchr(host, ':') ? AF_INET6 : AF_INET;
    unsigned long most = family == AF_INET6 ? 128 : 32, bits = most;
    if (n >= sizeof(address))
        return false;
    snprintf(address, sizeof(address), "%.*s", (int)n, network);
    if (network[n]) {
        char *end;
        bits = network[n + 1] >= '0' && network[n + 1] <= '9' ? strtoul(network + n + 1, &end, 10) : most + 1;
        if (bits > most || *end)
            return false;
    }
    return inet_pton(family, host, a) == 1 && inet_pton(family, address, b) == 1 &&
           sl_address_has_prefix(a, b, (unsigned)bits);
}

bool sl_uri_is_named(const struct sl_uri *uri, const char *list)
{
    char host[SL_URI_HOST_BYTES], one[SL_URI_HOST_BYTES];
    bool is_bare = uri->host[0] == '[';
    snprintf(host, sizeof(host), "%s", uri->host + is_bare);
    host[strcspn(host, is_bare ? "]%" : "")] = '\0';
    size_t end = strlen(host);
    if (end && host[end - 1] == '.')
        host[--end] = '\0';
    while (*(list += strspn(list, ", \t"))) {
        size_t n = strcspn(list, ", \t");
        snprintf(one, sizeof(one), "%.*s", n < sizeof(one) ? (int)n : 0, list);
        list += n;
        char *name = one + (one[0] == '[');
        name[strcspn(name, "]")] = '\0';
        if (strcmp(name, "*") == 0 || is_below(host, end, name + (*name == '.')) || is_in_network(host, name))
            return true;
    }
    return false;
}
