/* AWS's signing suite, header form: each case byte-equal at each of the three steps.
 *
 *   sigv4 CORPUS     reads CORPUS/sigv4/CASE/{request.txt,context.json,header-*.txt} */
#include "tests/support/test.h"

#include "base/error.h"
#include "aws/sigv4.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

struct request {
    struct sl_span method, path, query, body;
    struct sl_sigv4_field fields[SL_SIGV4_FIELDS];
    size_t n_fields;
};

static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        sl_die("out of memory");
    return path;
}

static char *slurp(const char *folder, const char *name, struct sl_span *out)
{
    size_t len = 0;
    char *path = join(folder, name);
    char *text = test_read(path, &len);
    if (!text)
        sl_die("%s cannot be read", path);
    free(path);
    *out = sl_span(text, len);
    return text;
}

static struct sl_span next_line(struct sl_span *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct sl_span line = sl_span(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = sl_span_from(*rest, line.len + 1);
    return line;
}

/* "GET /a b?x=y HTTP/1.1": the target may hold spaces, so the last one ends it. */
static void read_request_line(struct sl_span line, struct request *out)
{
    const char *first = memchr(line.ptr, ' ', line.len);
    const char *last = memrchr(line.ptr, ' ', line.len);
    out->method = sl_span(line.ptr, (size_t)(first - line.ptr));
    struct sl_span target = sl_span(first + 1, (size_t)(last - first - 1));
    const char *mark = memchr(target.ptr, '?', target.len);
    out->path = mark ? sl_span(target.ptr, (size_t)(mark - target.ptr)) : target;
    out->query = mark ? sl_span_from(target, out->path.len + 1) : SL_LIT("");
}

static void read_request(struct sl_span text, struct request *out)
{
    read_request_line(next_line(&text), out);
    while (text.len) {
        struct sl_span line = next_line(&text);
        if (line.len == 0)
            break;
        struct sl_sigv4_field *last = &out->fields[out->n_fields ? out->n_fields - 1 : 0];
        if (line.ptr[0] == ' ' || line.ptr[0] == '\t') { /* folded: goes on with the value before */
            last->value.len = (size_t)(line.ptr + line.len - last->value.ptr);
            continue;
        }
        const char *colon = memchr(line.ptr, ':', line.len);
        size_t n = colon ? (size_t)(colon - line.ptr) : line.len;
        out->fields[out->n_fields++] =
            (struct sl_sigv4_field){sl_span(line.ptr, n), sl_span_from(line, n + 1)};
    }
    out->body = text;
}

static void add_field(struct request *request, const char *name, const char *value)
{
    request->fields[request->n_fields++] = (struct sl_sigv4_field){sl_span_str(name), sl_span_str(value)};
}

static bool same(const char *name, const char *step, struct sl_span got, struct sl_span wanted)
{
    while (sl_span_ends(wanted, SL_LIT("\n")))
        wanted.len--;
    if (sl_span_eq(got, wanted))
        return true;
    printf("%s: %s differs\n-- wanted\n%.*s\n-- got\n%.*s\n", name, step, SL_ARG(wanted), SL_ARG(got));
    return false;
}

static bool steps_agree(struct sl_sigv4 *signer, const struct sl_sigv4_request *signable,
                        const struct sl_sigv4_identity *who, const char *name, const char *folder)
{
    struct sl_span wanted[3];
    char *files[3] = {slurp(folder, "header-canonical-request.txt", &wanted[0]),
                      slurp(folder, "header-string-to-sign.txt", &wanted[1]),
                      slurp(folder, "header-signature.txt", &wanted[2])};
    char signature[SL_SHA256_HEX];
    const char *date = "20150830T123600Z";
    sl_sigv4_canonical(signer, signable);
    sl_sigv4_to_sign(signer, who, date);
    sl_sigv4_signature(signer, who, date, signature);
    bool good = same(name, "canonical request", sl_buffer_span(&signer->canonical), wanted[0]);
    good = same(name, "string to sign", sl_buffer_span(&signer->to_sign), wanted[1]) && good;
    good = same(name, "signature", sl_span_str(signature), wanted[2]) && good;
    for (int i = 0; i < 3; i++)
        free(files[i]);
    return good;
}

static bool passes(struct sl_sigv4 *signer, const char *name, const char *folder)
{
    struct sl_span text, context_text;
    struct request request = {.n_fields = 0};
    char *file = slurp(folder, "request.txt", &text);
    char *context_file = slurp(folder, "context.json", &context_text);
    json_t *context = json_loadb(context_text.ptr, context_text.len, 0, NULL);
    json_t *keys = json_object_get(context, "credentials");
    if (!context || !keys)
        sl_die("%s/context.json is not what it should be", folder);
    read_request(text, &request);
    unsigned char digest[SL_SHA256_BYTES];
    char hex[SL_SHA256_HEX];
    sl_sha256_parts(signer->sha, &request.body, 1, digest);
    sl_sha256_hex(digest, hex);
    const char *token = json_string_value(json_object_get(keys, "token"));
    add_field(&request, "X-Amz-Date", "20150830T123600Z");
    if (token && !json_is_true(json_object_get(context, "omit_session_token")))
        add_field(&request, "X-Amz-Security-Token", token);
    if (json_is_true(json_object_get(context, "sign_body")))
        add_field(&request, "x-amz-content-sha256", hex);
    struct sl_sigv4_request signable = {
        .method = request.method,
        .path = request.path,
        .query = request.query,
        .fields = request.fields,
        .n_fields = request.n_fields,
        .payload_hash = hex,
        .encode_path = true,
        .normalize_path = json_is_true(json_object_get(context, "normalize")),
    };
    const struct sl_sigv4_identity who = {
        .access_key = json_string_value(json_object_get(keys, "access_key_id")),
        .secret_key = json_string_value(json_object_get(keys, "secret_access_key")),
        .region = json_string_value(json_object_get(context, "region")),
        .service = json_string_value(json_object_get(context, "service")),
        .serial = 1,
    };
    bool good = steps_agree(signer, &signable, &who, name, folder);
    json_decref(context);
    free(context_file);
    free(file);
    return good;
}

static int run_all(const char *folder, int *passed)
{
    struct sl_sha256 sha;
    struct sl_sigv4 signer;
    sl_sha256_init(&sha);
    sl_sigv4_init(&signer, &sha);
    struct dirent **cases;
    int found = scandir(folder, &cases, NULL, alphasort), total = 0;
    for (int i = 0; i < found; i++) {
        char *path = join(folder, cases[i]->d_name);
        if (cases[i]->d_name[0] != '.') {
            total++;
            *passed += passes(&signer, cases[i]->d_name, path);
        }
        free(path);
        free(cases[i]);
    }
    if (found >= 0)
        free(cases);
    sl_sigv4_clean_up(&signer);
    sl_sha256_clean_up(&sha);
    return total;
}

int main(int argc, char **argv)
{
    int passed = 0;
    char *folder = join(argc > 1 ? argv[1] : "../shared/conformance", "sigv4");
    int total = run_all(folder, &passed);
    free(folder);
    printf("sigv4: %d/%d\n", passed, total);
    return total > 0 && passed == total ? 0 : 1;
}
