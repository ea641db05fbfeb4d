/* URLs: percent-encoding as AWS signs it, and the parts of a URL as libcurl sees them. */
#ifndef SL_NET_URI_H
#define SL_NET_URI_H

#include "base/buffer.h"

/* Everything but RFC 3986's unreserved set (A-Z a-z 0-9 - . _ ~) becomes %XX in capitals. `keep` is one more
 * byte that stays as it is: '/' in paths, '\0' for none. */
void sl_uri_encode(struct sl_buffer *out, struct sl_span text, char keep);

#define SL_URI_HOST_BYTES 256

struct sl_uri {
    bool is_https;
    char host[SL_URI_HOST_BYTES]; /* without user and port; an IPv6 address with its brackets */
};

/* Whether `text` is an absolute URL of http or https with a host and without a user. Libcurl's own parser:
 * what is decided about a host here is decided about the host that a request goes to. */
bool sl_uri_parse(const char *text, struct sl_uri *out) SL_MUST_USE;

/* Whether the host is this machine (localhost, 127.0.0.0/8, ::1) or a link-local place that hands out
 * credentials (169.254.0.0/16, fd00:ec2::254, fd00:ec2::23), however it is spelt: no proxy can reach what is
 * meant. */
bool sl_uri_is_local(const struct sl_uri *uri);

/* Whether a list as NO_PROXY has it names the host: names, which count for what is below them, too; addresses
 * and networks (10.0.0.0/8); "*" for all; divided by commas or blanks. */
bool sl_uri_is_named(const struct sl_uri *uri, const char *list);

#endif
