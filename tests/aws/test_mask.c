/* What texts from outside may say: secrets and values in every place, cut and encoded in every way, and the
 * messages that must stay readable. */
#include "tests/support/test.h"

#include "aws/mask.h"
#include "aws/mask_words.h"
#include "base/base64.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *show(const struct sl_mask *mask, const char *text)
{
    static char out[SL_MASK_SHOWN_BYTES];
    size_t n = sl_mask_show(mask, sl_span_str(text), out, sizeof(out));
    assert_int_equal(n, strlen(out));
    return out;
}

static void assert_shown(const char *text, const char *carried, const char *wanted)
{
    struct sl_span part = sl_span_str(carried);
    struct sl_mask mask = {.carried = &part, .n_carried = 1};
    sl_mask_own(&mask, SL_LIT("dynamodb://totals"));
    assert_string_equal(show(&mask, text), wanted);
}

static const char item[] = "{\"TableName\":\"totals\",\"Item\":{\"PK\":{\"S\":\"customer 7781\"},"
                           "\"status\":{\"S\":\"secret-thing\"},\"n\":{\"N\":\"42\"},"
                           "\"says\":{\"S\":\"is not authorized to perform; type mismatch\"}}}";

/* ---- what stays readable ---- */

static void plain_words_are_shown_although_an_item_has_them(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "User is not authorized to perform: dynamodb:PutItem on resource: table/totals because no "
        "identity-based policy allows the dynamodb:PutItem action",
        "One or more parameter values were invalid: Type mismatch for key",
        "The provided key element does not match the schema",
        "The conditional request failed",
        "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
        "provisioning level with the UpdateTable API.",
        "Rate exceeded",
        "Item size has exceeded the maximum allowed size",
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        "The request signature we calculated does not match the signature you provided.",
        "SSL certificate problem: self signed certificate",
        "Received HTTP code from proxy after CONNECT",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sl_span part = sl_span_str(texts[i]); /* the worst item: the message itself */
        struct sl_mask mask = {.carried = &part, .n_carried = 1};
        sl_mask_own(&mask, SL_LIT("dynamodb://totals"));
        assert_string_equal(show(&mask, texts[i]), texts[i]);
    }
}

static void what_the_request_did_not_carry_is_shown(void **state)
{
    (void)state;
    assert_shown("role arn:aws:sts::123456789012:assumed-role/blue/fn", item,
                 "role arn:aws:sts::123456789012:assumed-role/blue/fn");
    assert_shown("Value 9 at 'Table.member' failed: \xC3\xA9t\xC3\xA9", item,
                 "Value 9 at 'Table.member' failed: \xC3\xA9t\xC3\xA9");
}

static void words_are_known_in_any_case(void **state)
{
    (void)state;
    static const char *const plain[] = {"a", "Action", "AUTHORIZED", "zone", "zones", "sha256", "mismatch"};
    static const char *const others[] = {"", "customer", "zzz", "actio", "canary", "averyverylongwordindeed"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        assert_true(sl_mask_is_plain(sl_span_str(plain[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(sl_mask_is_plain(sl_span_str(others[i])));
}

/* ---- values ---- */

static void values_are_masked(void **state)
{
    (void)state;
    assert_shown("bad value: secret-thing", item, "bad value: ...");
    assert_shown("bad value 'secret-thing'.", item, "bad value '...'.");
    assert_shown("of customer 7781 and secret-th", item, "of ... and ...");
    assert_shown("cut at its front: ret-thing", item, "cut at its front: ...");
    assert_shown("the number 42, and 42.", item, "the number ..., and ....");
    assert_shown("joined: xxcustomerxx", item, "joined: ...");
    assert_shown("secret%2Dthing", item, "...");
    assert_shown("\\u0073ecret-th\\x69ng \\\"customer\\\"", item, "... ...\\\"");
    assert_shown("&#115;ecret-th&#x69;ng", item, "...");
    assert_shown("c2VjcmV0LXRoaW5n", item, "...");
    assert_shown("", item, "");
}

static void values_are_found_in_every_form_of_a_body(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "Action=PublishBatch&Message=%7B%22v%22%3A%22caf%C3%A9%20secret%2Dthing%22%7D",
        "{\"MessageBody\":\"{\\\"v\\\":\\\"caf\\u00e9 secret\\u002dthing\\\"}\"}",
        "{\"Detail\":\"{\\\"v\\\":\\\"{\\\\\\\"w\\\\\\\":\\\\\\\"caf\\\\u00e9 secret-thing\\\\\\\"}\\\"}\"}",
        "{\"Records\":[{\"Data\":\"eyJ2IjoiY2Fmw6kgc2VjcmV0LXRoaW5nIn0=\"}]}",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_shown("not valid: secret-thing!", bodies[i], "not valid: ...");
        assert_shown("not valid: 'caf\xC3\xA9'", bodies[i], "not valid: '...'");
    }
}

#define FACES "\xF0\x9F\x98\x80\xF0\x9F\x98\x81" /* U+1F600 and U+1F601 */

/* Characters of two, three and four bytes, in every form in which a body or a message may write them. */
static void characters_of_every_length_are_found(void **state)
{
    (void)state;
    static const char *const faces[] = {
        FACES,
        "\\ud83d\\ude00\\ud83d\\ude01",
        "\\uD83D\\uDE00\\uD83D\\uDE01",
        "&#128512;&#128513;",
        "&#x1F600;&#X1f601;",
        "%F0%9F%98%80%f0%9f%98%81",
    };
    static const char *const money[] = {"\xC2\xA2\xE2\x82\xAC\xC2\xA2", "\\u00a2\\u20ac\\u00A2",
                                        "&#162;&#8364;&#xA2;", "%C2%A2%E2%82%AC%C2%A2"};
    static const struct {
        const char *const *forms;
        size_t n;
    } all[] = {{faces, sizeof(faces) / sizeof(faces[0])}, {money, sizeof(money) / sizeof(money[0])}};
    for (size_t v = 0; v < 2; v++)
        for (size_t i = 0; i < all[v].n; i++)
            for (size_t k = 0; k < all[v].n; k++) {
                char body[200], text[200];
                snprintf(body, sizeof(body), "{\"v\":\"%s\"}", all[v].forms[i]);
                snprintf(text, sizeof(text), "bad: %s", all[v].forms[k]);
                struct sl_span part = sl_span_str(body);
                struct sl_mask mask = {.carried = &part, .n_carried = 1};
                if (strcmp(show(&mask, text), "bad: ...") != 0)
                    fail_msg("%s in %s: %s", text, body, show(&mask, text));
            }
}

/* What only begins like an escape, at its end or in front of more: it stays as it is, and the value beside it
 * is found. */
static void what_is_no_escape_stays(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "\\",
        "\\q",
        "\\u",
        "\\u12",
        "\\u12g4",
        "\\x",
        "\\x4",
        "%",
        "%4",
        "%g4",
        "&",
        "&amp",
        "&unknown;",
        "&#",
        "&#;",
        "&#x;",
        "&#12",
        "&#1a;",
        "&#xg;",
        "&#1114112;",
        "&#x110000;",
        "&#99999999;",
        "&#000000065;",
        "\\ud83d",
        "\\ud83d\\u",
        "\\ud83d\\u0041",
        "\\ud83dxude00",
        "\\ude00",
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        for (int is_last = 0; is_last < 2; is_last++) {
            char text[200];
            snprintf(text, sizeof(text), is_last ? "secret-thing %s" : "%s secret-thing", odd[i]);
            assert_shown(odd[i], "{}", odd[i]);
            struct sl_span part = sl_span_str(item), odd_part = sl_span_str(text);
            struct sl_mask mask = {.carried = &part, .n_carried = 1},
                           of_odd = {.carried = &odd_part, .n_carried = 1};
            if (strstr(show(&mask, text), "secret"))
                fail_msg("%s", text);
            assert_string_equal(show(&of_odd, "secret-thing"), "..."); /* in the body itself */
        }
}

/* Escaped up to three times over it is found; however much deeper, the work ends. */
static void escapes_of_escapes_are_resolved(void **state)
{
    (void)state;
    char text[2000] = "secret-thing";
    for (int depth = 1; depth <= 6; depth++) {
        char deeper[2000];
        size_t n = 0;
        for (const char *p = text; *p; p++) /* all of it at first, then what begins an escape */
            n += (size_t)snprintf(deeper + n, sizeof(deeper) - n, depth == 1 || *p == '%' ? "%%%02X" : "%c",
                                  *p);
        memcpy(text, deeper, sizeof(text));
        struct sl_span part = sl_span_str(text), plain = sl_span_str(item);
        struct sl_mask of_body = {.carried = &part, .n_carried = 1},
                       of_text = {.carried = &plain, .n_carried = 1};
        const char *shown = show(&of_body, "secret-thing");
        if (depth <= 3)
            assert_string_equal(shown, "...");
        shown = show(&of_text, text);
        if (depth <= 3)
            assert_null(strpbrk(shown, "%0123456789"));
    }
}

/* Padding alone, line breaks and control bytes among base64, and a body beyond one piece of the search. */
static void base64_is_found_among_other_bytes(void **state)
{
    (void)state;
    assert_shown("x: ====== ok", "{\"d\":\"========\"}", "x: ... ok");
    static const char secret[] = "0123456789abcdefghij";
    struct sl_mask mask = {.n_secrets = 0};
    sl_mask_secret(&mask, SL_LIT(secret));
    static const char *const texts[] = {
        "MDEyMzQ1Njc4\nOWFiY2RlZmdoaWo=", "MDEyMzQ1Njc4\x7FOWFiY2RlZmdoaWo=",
        "MDEyMzQ1Njc4\x1\r\nOWFiY2RlZmdoaWo=", "MDEyMzQ1Njc4\xC3\xA9OWFiY2RlZmdoaWo="};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strstr(show(&mask, texts[i]), "MDEyMzQ1"))
            fail_msg("%s", texts[i]);
    static char body[40000];
    for (size_t at = 16 * 1024 - 40; at < 16 * 1024 + 40; at += 4) { /* across the end of the first piece */
        memset(body, 'A', sizeof(body));
        memcpy(body + at, "c2VjcmV0LXRoaW5n", 16);
        struct sl_span part = sl_span(body, sizeof(body));
        struct sl_mask of_body = {.carried = &part, .n_carried = 1};
        assert_string_equal(show(&of_body, "bad: secret-thing"), "bad: ...");
    }
}

/* ---- what may be given to it ---- */

/* More than it has places for: the ones before count, and nothing is written beyond. */
static void more_than_its_places_are_left_out(void **state)
{
    (void)state;
    char texts[SL_MASK_SECRETS + 2][16];
    struct sl_mask mask = {.n_secrets = 0};
    for (size_t i = 0; i < SL_MASK_SECRETS + 2; i++) {
        snprintf(texts[i], sizeof(texts[i]), "secret-%02zu-xyz", i);
        sl_mask_secret(&mask, sl_span_str(texts[i]));
        sl_mask_own(&mask, sl_span_str(texts[i]));
    }
    sl_mask_own(&mask, sl_span(NULL, 0));
    assert_int_equal(mask.n_secrets, SL_MASK_SECRETS);
    assert_int_equal(mask.n_own, SL_MASK_OWN);
    assert_string_equal(show(&mask, texts[SL_MASK_SECRETS - 1]), "...");
}

static void a_closed_mask_shows_plain_words_and_our_names(void **state)
{
    (void)state;
    struct sl_span part = SL_LIT("{}");
    struct sl_mask mask = {.carried = &part, .n_carried = 1, .is_closed = true};
    sl_mask_own(&mask, SL_LIT("seldomly"));
    assert_string_equal(show(&mask, "the table seldomly is not customer"), "the table seldomly is not ...");
    assert_false(sl_mask_allows(&mask, SL_LIT("customer")));
    assert_true(sl_mask_allows(&mask, SL_LIT("")));
}

/* What is too long to be looked at as a whole is not allowed as a whole. */
static void a_code_beyond_what_is_looked_at_is_not_allowed(void **state)
{
    (void)state;
    static char text[SL_MASK_TEXT_BYTES + 1];
    struct sl_mask mask = {.n_secrets = 0};
    memset(text, 'a', sizeof(text));
    assert_true(sl_mask_allows(&mask, sl_span(text, SL_MASK_TEXT_BYTES)));
    assert_false(sl_mask_allows(&mask, sl_span(text, SL_MASK_TEXT_BYTES + 1)));
}

static void an_object_key_is_masked_as_it_was_sent_and_as_it_was(void **state)
{
    (void)state;
    struct sl_mask mask = {.path = SL_LIT("/bucket/tenant%3Dalice/2026%2D11/part.gz")};
    assert_string_equal(show(&mask, "The key tenant=alice/2026-11 is too long"), "The key ... is too long");
    assert_string_equal(show(&mask, "Key tenant%3Dalice"), "Key ...");
}

static void a_body_too_long_to_search_shows_plain_words_only(void **state)
{
    (void)state;
    char *body = calloc(1, SL_MASK_CARRIED_BYTES + 1);
    struct sl_span part = sl_span(body, SL_MASK_CARRIED_BYTES + 1);
    struct sl_mask mask = {.carried = &part, .n_carried = 1};
    assert_string_equal(show(&mask, "invalid value: seldom"), "invalid value: ...");
    free(body);
}

/* A code is shown whole or not at all, and noise (what a word means as base64) hides none. */
static void codes_are_allowed_unless_they_say_what_was_carried(void **state)
{
    (void)state;
    static const char body[] =
        "{\"Item\":{\"PK\":{\"S\":\"a\"},\"b\":{\"S\":\"c d e f g h i j k l m n o p q r s t u v w x y z\"},"
        "\"v\":{\"S\":\"canary-item-value\"}},\"TableName\":\"tbl\","
        "\"ConditionExpression\":\"x\",\"ReturnValuesOnConditionCheckFailure\":\"NONE\"}";
    struct sl_span part = sl_span_str(body);
    struct sl_mask mask = {.carried = &part, .n_carried = 1};
    static const char *const good[] = {"BrandNewRefusalException", "QzXjUnheardOf.Thing",
                                       "ValidationException", "AWS.SimpleQueueService.NonExistentQueue",
                                       "Http400"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(sl_mask_allows(&mask, sl_span_str(good[i])));
    assert_false(sl_mask_allows(&mask, SL_LIT("TheCanary.canaryThing")));
}

/* ---- secrets ---- */

static void secrets_are_masked_from_six_bytes_on(void **state)
{
    (void)state;
    struct sl_mask mask = {.n_secrets = 0};
    sl_mask_secret(&mask, SL_LIT("tiny5"));
    sl_mask_secret(&mask, SL_LIT("token6"));
    sl_mask_secret(&mask, SL_LIT("0123456789abcdefghijklmnopqrstuvwxyz"));
    assert_int_equal(mask.n_secrets, 2);
    assert_string_equal(show(&mask, "a tiny5 b token6 c xtoken6x"), "a tiny5 b ... c ...");
    assert_string_equal(show(&mask, "456789abcdefghij klmnopqrstuvwxy"), "...");
    assert_string_equal(show(&mask, "456789abcdefghi"), "456789abcdefghi");
    assert_string_equal(show(&mask, "0123456789ab\n cdefghij"), "...");
    assert_false(sl_mask_allows(&mask, SL_LIT("xtoken6")));
    assert_true(sl_mask_allows(&mask, SL_LIT("token5")));
}

/* A secret that consists of plain words is masked all the same. */
static void plain_words_do_not_show_a_secret(void **state)
{
    (void)state;
    struct sl_mask mask = {.n_secrets = 0};
    sl_mask_secret(&mask, SL_LIT("AccessDeniedTable"));
    sl_mask_own(&mask, SL_LIT("AccessDeniedTable"));
    assert_string_equal(show(&mask, "it is AccessDeniedTable"), "it is ...");
}

static void a_text_is_cut_after_it_was_masked(void **state)
{
    (void)state;
    static const char secret[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static char text[2 * SL_MASK_TEXT_BYTES];
    struct sl_mask mask = {.n_secrets = 0};
    sl_mask_secret(&mask, sl_span_str(secret));
    for (size_t at = 0; at < SL_MASK_TEXT_BYTES + 8; at++) {
        memset(text, '.', sizeof(text) - 1);
        memcpy(text + at, secret, sizeof(secret) - 1);
        const char *shown = show(&mask, text);
        assert_true(strlen(shown) < SL_MASK_SHOWN_BYTES);
        for (size_t i = 0; i + 4 < sizeof(secret); i++)
            if (memmem(shown, strlen(shown), secret + i, 4))
                fail_msg("at %zu: %s", at, shown);
    }
}

static void what_is_shown_is_one_clean_line(void **state)
{
    (void)state;
    struct sl_mask mask = {.n_secrets = 0};
    assert_string_equal(show(&mask, "a\nb\xC2\x85"
                                    "c\xE2\x80\xA8"
                                    "d\xE2\x80\xAE"
                                    "e\xFF"),
                        "a?b?c?d?e?");
}

/* ---- at random ---- */

static struct sl_clock *dice;

static size_t roll(size_t sides)
{
    return (size_t)(dice->random(dice) % sides);
}

/* A text, and where in it each byte of what it says begins. */
struct coded {
    char text[6000];
    size_t len, n;
    size_t at[400];
};

static void code_plain(struct coded *out, const char *text, size_t n)
{
    memcpy(out->text, text, n);
    out->len = out->n = n;
    for (size_t i = 0; i <= n; i++)
        out->at[i] = i;
}

static size_t put_escape(char *out, int sort, unsigned char c)
{
    int n = sort == 0   ? snprintf(out, 12, "%%%02X", c)
            : sort == 1 ? snprintf(out, 12, "\\u%04x", c)
            : sort == 2 ? snprintf(out, 12, "&#%u;", c)
            : sort == 3 ? snprintf(out, 12, "&#x%x;", c)
            : sort == 4 ? snprintf(out, 12, "%%%02x", c)
                        : snprintf(out, 12, "\\x%02x", c);
    return (size_t)n;
}

/* Some or all of the bytes as an escape of one sort; what begins escapes is always one. */
static void code_escaped(struct coded *c, int sort, size_t one_in)
{
    struct coded old = *c;
    size_t k = 0;
    c->len = 0;
    for (size_t i = 0; i <= old.len; i++) {
        for (; k <= old.n && old.at[k] == i; k++)
            c->at[k] = c->len;
        if (i == old.len)
            break;
        if (roll(one_in) == 0 || strchr("\\%&", old.text[i]))
            c->len += put_escape(c->text + c->len, sort, (unsigned char)old.text[i]);
        else
            c->text[c->len++] = old.text[i];
    }
}

static void code_base64(struct coded *c)
{
    char raw[512];
    struct coded old = *c;
    size_t shift = roll(3);
    memset(raw, 'x', shift);
    memcpy(raw + shift, old.text, old.len);
    c->len = sl_base64_encode_to(sl_span(raw, shift + old.len), c->text);
    bool is_url = roll(2);
    for (size_t i = 0; i < c->len && is_url; i++)
        c->text[i] = c->text[i] == '+' ? '-' : c->text[i] == '/' ? '_' : c->text[i];
    for (size_t k = 0; k <= old.n; k++)
        c->at[k] = (old.at[k] + shift) * 4 / 3 + (k < old.n && (old.at[k] + shift) % 3 != 0);
}

static void code_wrapped(struct coded *c)
{
    struct coded old = *c;
    size_t width = 8 + roll(60), k = 0;
    c->len = 0;
    for (size_t i = 0; i <= old.len; i++) {
        for (; k <= old.n && old.at[k] == i; k++)
            c->at[k] = c->len;
        if (i == old.len)
            break;
        if (i && i % width == 0)
            c->text[c->len++] = '\n';
        c->text[c->len++] = old.text[i];
    }
}

static void code_at_random(struct coded *out, const char *text, size_t n, bool wraps)
{
    code_plain(out, text, n);
    if (roll(3) == 0)
        code_base64(out);
    for (size_t times = roll(3); times; times--)
        code_escaped(out, (int)roll(6), 1 + roll(4));
    if (wraps && roll(4) == 0)
        code_wrapped(out);
}

static void random_text(char *out, size_t n, const char *alphabet)
{
    for (size_t i = 0; i < n; i++)
        out[i] = alphabet[roll(strlen(alphabet))];
    out[n] = '\0';
}

#define BASE64_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/* A message with the coded text in it, among words, at a random place. */
static void wrap_in_words(char *out, const struct coded *coded)
{
    static const char *const words[] = {
        "the request ", "is not valid: ", "value '", "token=", "failed (", "\"", "<b>", " "};
    char *end = out;
    for (size_t n = roll(20); n; n--)
        end = stpcpy(end, words[roll(8)]);
    memcpy(end, coded->text, coded->len);
    end += coded->len;
    *end++ = ' ';
    for (size_t n = roll(20); n; n--)
        end = stpcpy(end, words[roll(8)]);
    *end = '\0';
}

/* Whether what says any `run` bytes in a row of the text is in `shown`. */
static void assert_says_nothing(const char *shown, const struct coded *coded, size_t run)
{
    for (size_t k = 0; k + run <= coded->n; k++) {
        size_t begin = coded->at[k], n = coded->at[k + run] - begin;
        if (n >= run && memmem(shown, strlen(shown), coded->text + begin, n))
            fail_msg("shown: %s\nof: %.*s", shown, (int)coded->len, coded->text);
    }
}

static void secrets_are_never_shown_wherever_and_however_they_stand(void **state)
{
    (void)state;
    static char secret[300], text[12000];
    static struct coded coded;
    for (size_t round = 0; round < 1500; round++) {
        size_t n = 16 + roll(60);
        random_text(secret, n, BASE64_LETTERS);
        struct sl_mask mask = {.n_secrets = 0};
        sl_mask_secret(&mask, SL_LIT("another-secret"));
        sl_mask_secret(&mask, sl_span(secret, n));
        size_t from = roll(n - 15), len = 16 + roll(n - from - 15);
        code_at_random(&coded, secret + from, len, true);
        wrap_in_words(text, &coded);
        assert_says_nothing(show(&mask, text), &coded, 16);
    }
}

static void short_secrets_are_never_shown_whole(void **state)
{
    (void)state;
    static char secret[300], text[12000];
    static struct coded coded;
    for (size_t round = 0; round < 1500; round++) {
        size_t n = 6 + roll(10);
        random_text(secret, n, BASE64_LETTERS);
        struct sl_mask mask = {.n_secrets = 0};
        sl_mask_secret(&mask, sl_span(secret, n));
        code_at_random(&coded, secret, n, true);
        wrap_in_words(text, &coded);
        assert_says_nothing(show(&mask, text), &coded, n);
    }
}

/* The value's body in one of the forms in which sinks send it. */
static void send_value(struct coded *body, const char *value, size_t n)
{
    char json[600];
    int len = snprintf(json, sizeof(json), "{\"PK\":{\"S\":\"a\"},\"v\":{\"S\":\"%.*s\"}}", (int)n, value);
    code_plain(body, json, (size_t)len);
    switch (roll(4)) {
    case 0:
        return;
    case 1:
        code_escaped(body, 0, 1 + roll(3)); /* a form */
        return;
    case 2:
        code_escaped(body, 1, 1 + roll(3)); /* JSON text in JSON text */
        return;
    default:
        body->len = sl_base64_encode_to(sl_span(json, (size_t)len), body->text);
    }
}

static void values_are_never_shown_wherever_and_however_they_stand(void **state)
{
    (void)state;
    static char value[300], text[12000];
    static struct coded body, coded;
    for (size_t round = 0; round < 1500; round++) {
        size_t n = 4 + roll(60);
        random_text(value, n, "0123456789QXZJqxzj-_@#");
        send_value(&body, value, n);
        struct sl_span parts[2] = {SL_LIT("{\"more\":1}"), sl_span(body.text, body.len)};
        struct sl_mask mask = {.carried = parts, .n_carried = 2};
        size_t from = roll(n - 3), len = 4 + roll(n - from - 3);
        code_at_random(&coded, value + from, len, false);
        wrap_in_words(text, &coded);
        assert_says_nothing(show(&mask, text), &coded, 4);
    }
}

/* Twice as much takes twice as long: 16 MB in well under a second of the processor's, also of the worst kind. */
static void the_time_is_linear_in_what_was_carried(void **state)
{
    (void)state;
    enum { BYTES = 16 * 1024 * 1024 };
    static char text[SL_MASK_TEXT_BYTES + 1];
    char *body = malloc(BYTES);
    struct sl_span part = sl_span(body, BYTES);
    struct sl_mask mask = {.carried = &part, .n_carried = 1};
    for (size_t i = 0; i < BYTES; i++)
        body[i] = "aaaaaaa\\"[i % 8];
    memset(text, 'a', SL_MASK_TEXT_BYTES);
    clock_t began = clock();
    assert_string_equal(show(&mask, text), "...");
    assert_in_range((clock() - began) / (CLOCKS_PER_SEC / 1000), 0, 8000);
    free(body);
}

static int set_up(void **state)
{
    (void)state;
    static struct sl_clock_virtual clock;
    const char *seed = getenv("SEED");
    sl_clock_virtual_init(&clock, 0, seed ? strtoull(seed, NULL, 10) : 42);
    dice = &clock.clock;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words_are_shown_although_an_item_has_them),
        cmocka_unit_test(what_the_request_did_not_carry_is_shown),
        cmocka_unit_test(words_are_known_in_any_case),
        cmocka_unit_test(values_are_masked),
        cmocka_unit_test(values_are_found_in_every_form_of_a_body),
        cmocka_unit_test(characters_of_every_length_are_found),
        cmocka_unit_test(what_is_no_escape_stays),
        cmocka_unit_test(escapes_of_escapes_are_resolved),
        cmocka_unit_test(base64_is_found_among_other_bytes),
        cmocka_unit_test(more_than_its_places_are_left_out),
        cmocka_unit_test(a_closed_mask_shows_plain_words_and_our_names),
        cmocka_unit_test(a_code_beyond_what_is_looked_at_is_not_allowed),
        cmocka_unit_test(an_object_key_is_masked_as_it_was_sent_and_as_it_was),
        cmocka_unit_test(a_body_too_long_to_search_shows_plain_words_only),
        cmocka_unit_test(codes_are_allowed_unless_they_say_what_was_carried),
        cmocka_unit_test(secrets_are_masked_from_six_bytes_on),
        cmocka_unit_test(plain_words_do_not_show_a_secret),
        cmocka_unit_test(a_text_is_cut_after_it_was_masked),
        cmocka_unit_test(what_is_shown_is_one_clean_line),
        cmocka_unit_test(secrets_are_never_shown_wherever_and_however_they_stand),
        cmocka_unit_test(short_secrets_are_never_shown_whole),
        cmocka_unit_test(values_are_never_shown_wherever_and_however_they_stand),
        cmocka_unit_test(the_time_is_linear_in_what_was_carried),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
