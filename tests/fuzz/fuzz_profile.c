/* Any bytes as the AWS tools' shared files, and as the small texts that come with them: settings are found
 * within them or not at all. */
#include "aws/endpoint.h"
#include "aws/profile.h"
#include "base/url.h"
#include "net/uri.h"
#include "tests/fuzz/fuzz.h"

static bool is_within(struct sl_span part, struct sl_span whole)
{
    return !part.ptr || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {"aws_access_key_id", "role_arn", "endpoint_url", "services", ""};
    struct sl_span text = sl_span((const char *)data, size);
    struct sl_profile profile = {.config = text, .credentials = text, .name = "default"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        FUZZ_CHECK(is_within(sl_profile_get(&profile, "default", keys[i]), text));
        FUZZ_CHECK(is_within(sl_profile_get(&profile, "other", keys[i]), text));
    }
    FUZZ_CHECK(is_within(sl_profile_endpoint(&profile, "DYNAMODB"), text));
    FUZZ_CHECK(sl_profile_has(&profile, "default") || !sl_profile_get(&profile, "default", "role_arn").ptr);

    const struct sl_vars vars = {.list = NULL};
    struct sl_endpoint endpoint;
    struct sl_error error = SL_NO_ERROR;
    const struct sl_endpoint_request request = {
        .service = &sl_service_sqs, .region = "us-east-1", .configured = text, .vars = &vars};
    if (sl_endpoint_resolve(&request, &endpoint, &error) == SL_OK)
        FUZZ_CHECK(sl_endpoint_host(&endpoint).len > 0);

    struct sl_buffer encoded, decoded;
    sl_buffer_init(&encoded, 3 * size + 1);
    sl_buffer_init(&decoded, size + 1);
    sl_uri_encode(&encoded, text, '\0');
    sl_url_decode(&decoded, sl_buffer_span(&encoded));
    FUZZ_CHECK(sl_span_eq(sl_buffer_span(&decoded), text));
    sl_buffer_clean_up(&encoded);
    sl_buffer_clean_up(&decoded);
    return 0;
}
