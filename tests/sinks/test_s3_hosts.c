/* Where a bucket's requests go, and which buckets are refused. */
#include "tests/support/fault.h"

#include <stdio.h>

static struct fault f;

/* A bucket at an endpoint of one's own: in the path, and with style=virtual in the host. */
static void take(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    (void)arg;
    (void)request;
    reply->status = 200;
}

static void a_bucket_goes_where_style_says(void **state)
{
    (void)state;
    static const struct {
        const char *params, *host, *path;
    } cases[] = {{"", "localhost", "/bucket/"},
                 {"&style=path", "localhost", "/bucket/"},
                 {"&style=virtual", "bucket.localhost", "/"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char url[200], host[100], path[100];
        fault_open(&f, take, NULL);
        const char *port = strrchr(scripted_server_url(f.server), ':') + 1;
        snprintf(url, sizeof(url), "s3://bucket/?endpoint=http://localhost:%s%s", port, cases[i].params);
        snprintf(host, sizeof(host), "%s:%s", cases[i].host, port);
        struct sl_object_port *objects = fault_objects(&f, url);
        (void)fault_put_object(&f, objects, "name", "body", false);
        assert_true(scripted_server_requests(f.server) > 0);
        const struct scripted_request *request = scripted_server_request(f.server, 0);
        snprintf(path, sizeof(path), "%sname", cases[i].path);
        assert_string_equal(request->path, path);
        assert_true(sl_span_is(scripted_header(request, "host"), host));
        objects->close(objects);
        fault_close(&f);
    }
}

/* They have hosts and signatures of their own. */
static void other_kinds_of_buckets_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url, *says; /* NULL: it is taken */
    } cases[] = {{"s3://bucket--use1-az4--x-s3/p", "a directory bucket"},
                 {"s3://point--use1-az4--xa-s3/p", "a directory bucket"},
                 {"s3://point-0123456789abc--op-s3/p", "Outposts"},
                 {"s3://mfzwi23gnjvgw.mrap/p", "multi-region"},
                 {"s3://point-abcdef-s3alias/p", NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_object_port *objects = NULL;
        struct sl_error error = SL_NO_ERROR;
        fault_open(&f, take, NULL);
        enum sl_status status = sl_target_objects(&f.sinks, sl_span_str(cases[i].url), &objects, &error);
        assert_int_equal(status, cases[i].says ? SL_FATAL : SL_OK);
        if (cases[i].says)
            assert_non_null(strstr(error.text, cases[i].says));
        if (objects)
            objects->close(objects);
        fault_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_bucket_goes_where_style_says),
                                       cmocka_unit_test(other_kinds_of_buckets_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
