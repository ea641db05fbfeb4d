/* Addresses: what each is, by a table; and that a request to a forbidden one never leaves, however the host
 * is written and whatever a DNS server says. The names are answered by this file's own getaddrinfo, which
 * stands in front of the system's for libcurl too. */
#include "tests/support/test.h"

#include "net/http.h"
#include "net/uri.h"
#include "tests/support/scripted_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- kinds ---- */

static const struct {
    const char *ip;
    enum sl_address_kind kind;
} kinds[] = {
    {"8.8.8.8", SL_ADDRESS_PUBLIC},
    {"1.0.0.0", SL_ADDRESS_PUBLIC},
    {"9.255.255.255", SL_ADDRESS_PUBLIC},
    {"10.0.0.0", SL_ADDRESS_PRIVATE},
    {"10.255.255.255", SL_ADDRESS_PRIVATE},
    {"11.0.0.0", SL_ADDRESS_PUBLIC},
    {"0.0.0.0", SL_ADDRESS_FORBIDDEN},
    {"0.255.255.255", SL_ADDRESS_FORBIDDEN},
    {"100.63.255.255", SL_ADDRESS_PUBLIC},
    {"100.64.0.0", SL_ADDRESS_PRIVATE},
    {"100.100.100.200", SL_ADDRESS_FORBIDDEN},
    {"100.127.255.255", SL_ADDRESS_PRIVATE},
    {"100.128.0.0", SL_ADDRESS_PUBLIC},
    {"126.255.255.255", SL_ADDRESS_PUBLIC},
    {"127.0.0.0", SL_ADDRESS_LOOPBACK},
    {"127.255.255.255", SL_ADDRESS_LOOPBACK},
    {"128.0.0.0", SL_ADDRESS_PUBLIC},
    {"168.63.129.16", SL_ADDRESS_FORBIDDEN},
    {"168.63.129.17", SL_ADDRESS_PUBLIC},
    {"169.253.255.255", SL_ADDRESS_PUBLIC},
    {"169.254.0.0", SL_ADDRESS_FORBIDDEN},
    {"169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"169.254.170.2", SL_ADDRESS_FORBIDDEN},
    {"169.254.170.23", SL_ADDRESS_FORBIDDEN},
    {"169.254.100.1", SL_ADDRESS_FORBIDDEN},
    {"169.255.0.0", SL_ADDRESS_PUBLIC},
    {"172.15.255.255", SL_ADDRESS_PUBLIC},
    {"172.16.0.0", SL_ADDRESS_PRIVATE},
    {"172.31.255.255", SL_ADDRESS_PRIVATE},
    {"172.32.0.0", SL_ADDRESS_PUBLIC},
    {"192.0.0.192", SL_ADDRESS_FORBIDDEN},
    {"192.0.1.0", SL_ADDRESS_PUBLIC},
    {"192.0.2.1", SL_ADDRESS_FORBIDDEN},
    {"192.88.99.1", SL_ADDRESS_FORBIDDEN},
    {"192.167.255.255", SL_ADDRESS_PUBLIC},
    {"192.168.0.1", SL_ADDRESS_PRIVATE},
    {"192.169.0.0", SL_ADDRESS_PUBLIC},
    {"198.17.255.255", SL_ADDRESS_PUBLIC},
    {"198.18.0.0", SL_ADDRESS_PRIVATE},
    {"198.19.255.255", SL_ADDRESS_PRIVATE},
    {"198.20.0.0", SL_ADDRESS_PUBLIC},
    {"198.51.100.7", SL_ADDRESS_FORBIDDEN},
    {"203.0.113.7", SL_ADDRESS_FORBIDDEN},
    {"223.255.255.255", SL_ADDRESS_PUBLIC},
    {"224.0.0.1", SL_ADDRESS_FORBIDDEN},
    {"239.255.255.255", SL_ADDRESS_FORBIDDEN},
    {"240.0.0.0", SL_ADDRESS_FORBIDDEN},
    {"255.255.255.255", SL_ADDRESS_FORBIDDEN},
    {"2606:4700::1111", SL_ADDRESS_PUBLIC},
    {"2000::1", SL_ADDRESS_PUBLIC},
    {"3fff:1000::1", SL_ADDRESS_PUBLIC},
    {"3fff::1", SL_ADDRESS_FORBIDDEN},
    {"3fff:fff:ffff::1", SL_ADDRESS_FORBIDDEN},
    {"4000::1", SL_ADDRESS_FORBIDDEN},
    {"1fff::1", SL_ADDRESS_FORBIDDEN},
    {"::", SL_ADDRESS_FORBIDDEN},
    {"::1", SL_ADDRESS_LOOPBACK},
    {"::2", SL_ADDRESS_FORBIDDEN},
    {"::169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"::8.8.8.8", SL_ADDRESS_FORBIDDEN},
    {"::ffff:8.8.8.8", SL_ADDRESS_PUBLIC},
    {"::ffff:10.0.0.1", SL_ADDRESS_PRIVATE},
    {"::ffff:127.0.0.1", SL_ADDRESS_LOOPBACK},
    {"::ffff:169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"::ffff:0.0.0.0", SL_ADDRESS_FORBIDDEN},
    {"::ffff:0:169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"::ffff:0:8.8.8.8", SL_ADDRESS_PUBLIC},
    {"64:ff9b::8.8.8.8", SL_ADDRESS_PUBLIC},
    {"64:ff9b::169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"64:ff9b::10.1.2.3", SL_ADDRESS_PRIVATE},
    {"64:ff9b::127.0.0.1", SL_ADDRESS_LOOPBACK},
    {"64:ff9b:1::169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"64:ff9b:1::8.8.8.8", SL_ADDRESS_FORBIDDEN},
    {"2002:a9fe:a9fe::1", SL_ADDRESS_FORBIDDEN},
    {"2002:808:808::1", SL_ADDRESS_PUBLIC},
    {"2002:c0a8:1::1", SL_ADDRESS_PRIVATE},
    {"2001::1", SL_ADDRESS_FORBIDDEN},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", SL_ADDRESS_FORBIDDEN},
    {"2001:1ff::1", SL_ADDRESS_FORBIDDEN},
    {"2001:200::1", SL_ADDRESS_PUBLIC},
    {"2001:db8::1", SL_ADDRESS_FORBIDDEN},
    {"2001:db9::1", SL_ADDRESS_PUBLIC},
    {"2606:4700::5efe:169.254.169.254", SL_ADDRESS_FORBIDDEN},
    {"2606:4700::200:5efe:10.0.0.1", SL_ADDRESS_PRIVATE},
    {"2606:4700::200:5efe:8.8.8.8", SL_ADDRESS_PUBLIC},
    {"fe80::5efe:8.8.8.8", SL_ADDRESS_FORBIDDEN},
    {"2606:4700::100:5efe:10.0.0.1", SL_ADDRESS_PUBLIC}, /* a byte of it is another: nothing is carried */
    {"2606:4700::1:5efe:10.0.0.1", SL_ADDRESS_PUBLIC},
    {"2606:4700::5ffe:10.0.0.1", SL_ADDRESS_PUBLIC},
    {"2606:4700::5eff:10.0.0.1", SL_ADDRESS_PUBLIC},
    {"fbff::1", SL_ADDRESS_FORBIDDEN},
    {"fc00::1", SL_ADDRESS_PRIVATE},
    {"fdff::1", SL_ADDRESS_PRIVATE},
    {"fd00:ec2::254", SL_ADDRESS_FORBIDDEN},
    {"fd00:ec2::23", SL_ADDRESS_FORBIDDEN},
    {"fd20:ce::254", SL_ADDRESS_FORBIDDEN},
    {"fd00:ec3::1", SL_ADDRESS_PRIVATE},
    {"fe00::1", SL_ADDRESS_FORBIDDEN},
    {"fe80::1", SL_ADDRESS_FORBIDDEN},
    {"febf::1", SL_ADDRESS_FORBIDDEN},
    {"fec0::1", SL_ADDRESS_FORBIDDEN},
    {"ff02::1", SL_ADDRESS_FORBIDDEN},
    {"100::1", SL_ADDRESS_FORBIDDEN},
};

static struct sockaddr_storage address(const char *ip, unsigned port)
{
    struct sockaddr_storage out;
    if (!sl_address_parse(ip, port, &out))
        fail_msg("%s is not an address", ip);
    return out;
}

static void every_address_has_its_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct sockaddr_storage at = address(kinds[i].ip, 443);
        const char *what = NULL;
        enum sl_address_kind kind = sl_address_kind((struct sockaddr *)&at, &what);
        if (kind != kinds[i].kind || !what)
            fail_msg("%s is %s: kind %d, and should be %d", kinds[i].ip, what, (int)kind, (int)kinds[i].kind);
    }
    struct sockaddr other = {.sa_family = AF_UNIX};
    assert_int_equal(sl_address_kind(&other, NULL), SL_ADDRESS_FORBIDDEN);
    static const char *const none[] = {"", "1.2.3", "01.2.3.4x", "2130706433", "0x7f.1", "::1%lo", "[::1]"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct sockaddr_storage out;
        assert_false(sl_address_parse(none[i], 1, &out));
    }
}

static bool allows(struct sl_address_rules rules, const char *ip, unsigned port)
{
    struct sockaddr_storage at = address(ip, port);
    const char *what = NULL;
    bool is = sl_address_is_allowed(&rules, (struct sockaddr *)&at, &what);
    assert_non_null(what);
    return is;
}

static void rules_allow_what_they_say(void **state)
{
    (void)state;
    const struct sl_address_rules plain = {0}, inside = {.is_private_allowed = true},
                                  here = {.is_loopback = true, .is_private_allowed = true};
    assert_true(allows(plain, "8.8.8.8", 443));
    assert_false(allows(plain, "10.0.0.1", 443));
    assert_false(allows(plain, "127.0.0.1", 443));
    assert_false(allows(plain, "169.254.169.254", 80));
    assert_true(allows(inside, "8.8.8.8", 443));
    assert_true(allows(inside, "10.0.0.1", 443));
    assert_false(allows(inside, "127.0.0.1", 443));
    assert_false(allows(inside, "169.254.169.254", 80));
    assert_true(allows(here, "127.0.0.1", 80) && allows(here, "::1", 80));
    assert_false(allows(here, "8.8.8.8", 443));
    assert_false(allows(here, "10.0.0.1", 443));
}

static void the_runtime_api_is_never_meant(void **state)
{
    (void)state;
    struct sl_address_rules here = {.is_loopback = true, .never = "127.0.0.1:9001"},
                            out = {.is_private_allowed = true, .never = "10.0.0.9:9001"};
    assert_false(allows(here, "127.0.0.1", 9001));
    assert_false(allows(here, "127.0.0.2", 9001)); /* what listens on all addresses is there too */
    assert_false(allows(here, "::1", 9001));
    assert_true(allows(here, "127.0.0.1", 9002));
    assert_false(allows(out, "10.0.0.9", 9001));
    assert_false(allows(out, "::ffff:10.0.0.9", 9001));
    assert_true(allows(out, "10.0.0.9", 9002));
    assert_true(allows(out, "8.8.8.8", 9001));
    out.never = "8.8.8.8:9001";
    assert_false(allows(out, "8.8.8.8", 9001));
    here.never = "localhost:9001";
    assert_false(allows(here, "127.0.0.1", 9001));
    here.never = "[::1]:9001";
    assert_false(allows(here, "::1", 9001));
    out.never = "[2606:4700::1]:9001"; /* the very address, and no other of the Internet */
    assert_false(allows(out, "2606:4700::1", 9001));
    assert_true(allows(out, "2606:4700::1", 9002));
    assert_true(allows(out, "2606:4700::2", 9001));
    assert_true(allows(out, "8.8.8.8", 9001));
    out.never = "9001"; /* without a host there is no address */
    assert_true(allows(out, "8.8.8.8", 9001));
    const struct sockaddr other = {.sa_family = AF_UNIX};
    const char *what = NULL;
    assert_false(sl_address_is_allowed(&here, &other, &what));
    assert_string_equal(what, "no address of the Internet");
}

/* ---- names ---- */

static const struct {
    const char *name;
    const char *ips[3];
} names[] = {
    {"metadata.test", {"169.254.169.254"}},
    {"metadata6.test", {"fd00:ec2::254"}},
    {"mapped.test", {"::ffff:169.254.169.254"}},
    {"nat64.test", {"64:ff9b::a9fe:a9fe"}},
    {"loop.test", {"127.0.0.1"}},
    {"loop6.test", {"::1"}},
    {"inside.test", {"10.0.0.1", "10.0.0.2"}},
    {"zero.test", {"0.0.0.0"}},
    {"mixed.test", {"169.254.169.254", "127.0.0.1"}},
};

static struct addrinfo *info_of(const char *ip, const char *service, struct addrinfo *next)
{
    struct addrinfo *info = calloc(1, sizeof(*info));
    struct sockaddr_storage *at = calloc(1, sizeof(*at));
    *at = address(ip, service ? (unsigned)strtoul(service, NULL, 10) : 0);
    *info = (struct addrinfo){.ai_family = at->ss_family,
                              .ai_socktype = SOCK_STREAM,
                              .ai_protocol = IPPROTO_TCP,
                              .ai_addrlen = at->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                                     : sizeof(struct sockaddr_in6),
                              .ai_addr = (struct sockaddr *)at,
                              .ai_next = next};
    return info;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *restrict node,
                                                       const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict out)
{
    (void)hints;
    *out = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (size_t k = 3; k > 0 && strcmp(names[i].name, node) == 0; k--)
            if (names[i].ips[k - 1])
                *out = info_of(names[i].ips[k - 1], service, *out);
    return *out ? 0 : EAI_NONAME;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *info)
{
    for (struct addrinfo *next; info; info = next) {
        next = info->ai_next;
        free(info->ai_addr);
        free(info);
    }
}

/* ---- requests ---- */

static const char *const no_vars[] = {NULL};
static const struct sl_vars vars = {.list = no_vars};

static enum sl_http_outcome ask(struct sl_http *http, const char *url, const struct sl_address_rules *rules)
{
    struct sl_http_exchange e;
    sl_http_exchange_init(&e);
    e.method = "GET";
    e.url = url;
    e.timeout_ms = 20000;
    e.is_private = true;
    e.rules = rules;
    sl_http_start(http, &e);
    while (e.outcome == SL_HTTP_RUNNING)
        sl_http_wait(http, 1000);
    enum sl_http_outcome outcome = e.outcome;
    if (outcome == SL_HTTP_FORBIDDEN && !e.problem[0])
        fail_msg("%s: no word of why", url);
    sl_http_exchange_clean_up(&e);
    return outcome;
}

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    reply->status = 200;
}

static struct sl_http *new_http(void)
{
    return sl_http_new(&(struct sl_http_options){.clock = sl_clock_system(), .vars = &vars});
}

static void a_forbidden_host_is_not_connected_to(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "https://169.254.169.254/latest/meta-data/",
        "https://2852039166/",          /* decimal */
        "https://0xA9FEA9FE/",          /* hexadecimal */
        "https://0251.0376.0251.0376/", /* octal */
        "https://169.254.43518/",       /* three parts */
        "https://0xa9.254.0251.254/",
        "https://[fd00:ec2::254]/",
        "https://[::ffff:169.254.169.254]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[0:0:0:0:0:ffff:169.254.169.254]/",
        "https://[64:ff9b::169.254.169.254]/",
        "https://[fe80::1%25lo]/",
        "https://[fe80::1%251]/",
        "https://[::]/",
        "https://0/",
        "https://0.0.0.0/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://017700000001/",
        "https://[::1]/",
        "https://[::1%25lo]/",
        "https://localhost/",
        "https://a.localhost/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://10.0.0.1/",
        "https://metadata.test/",
        "https://METADATA.TEST/",
        "https://metadata6.test/",
        "https://mapped.test/",
        "https://nat64.test/",
        "https://loop.test/",
        "https://loop6.test/",
        "https://inside.test/",
        "https://zero.test/",
        "https://mixed.test/",
    };
    const struct sl_address_rules rules = {0};
    struct sl_http *http = new_http();
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        if (ask(http, urls[i], &rules) != SL_HTTP_FORBIDDEN)
            fail_msg("%s is not forbidden", urls[i]);
    assert_int_equal(sl_http_connections(http), 0);
    sl_http_destroy(http);
}

/* A kept connection of an exchange without rules does not serve one with rules. */
static void a_kept_connection_is_checked_too(void **state)
{
    (void)state;
    struct scripted_server *server = scripted_server_start(answer, NULL);
    const char *url = scripted_server_url(server);
    unsigned port = (unsigned)strtoul(strrchr(url, ':') + 1, NULL, 10);
    char never[64];
    snprintf(never, sizeof(never), "127.0.0.1:%u", port);
    const struct sl_address_rules outside = {0}, here = {.is_loopback = true},
                                  runtime = {.is_loopback = true, .never = never};
    struct sl_http *http = new_http();
    assert_int_equal(ask(http, url, NULL), SL_HTTP_ANSWERED);
    assert_int_equal(ask(http, url, &outside), SL_HTTP_FORBIDDEN);
    assert_int_equal(ask(http, url, &runtime), SL_HTTP_FORBIDDEN);
    assert_int_equal(ask(http, url, NULL), SL_HTTP_ANSWERED);
    assert_int_equal(ask(http, url, &here), SL_HTTP_ANSWERED);
    assert_int_equal(ask(http, url, NULL), SL_HTTP_ANSWERED);
    assert_int_equal(scripted_server_requests(server), 4);
    /* A name with a forbidden address and an allowed one goes to the allowed one. */
    char mixed[64];
    snprintf(mixed, sizeof(mixed), "http://mixed.test:%u/", port);
    assert_int_equal(ask(http, mixed, &here), SL_HTTP_ANSWERED);
    assert_int_equal(ask(http, "http://mixed.test:1/", &here), SL_HTTP_NOT_SENT); /* it was tried */
    sl_http_destroy(http);
    scripted_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_has_its_kind),
        cmocka_unit_test(rules_allow_what_they_say),
        cmocka_unit_test(the_runtime_api_is_never_meant),
        cmocka_unit_test(a_forbidden_host_is_not_connected_to),
        cmocka_unit_test(a_kept_connection_is_checked_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
