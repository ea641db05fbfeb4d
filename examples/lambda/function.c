/* A Lambda function in C: answers with how often each letter is in the event's payload, and fails on request.
 *
 *   cc -o bootstrap function.c $(pkg-config --cflags --libs sluice-runtime)
 *
 * `sluice replay --bootstrap ./bootstrap events.json` runs it here; for Lambda, zip `bootstrap` with the
 * libraries that `ldd` names. */
#include <sluice/lambda.h>
#include <stdio.h>
#include <string.h>

static void handler(const struct sl_lambda_event *event, struct sl_lambda_answer *answer, void *arg)
{
    unsigned long counts[26] = {0};
    char text[1024] = "{", *end = text + 1;
    (void)arg;
    if (strstr(event->payload, "please fail")) {
        sl_lambda_fail(answer, "Function.AsAsked", "the event asked for it");
        return;
    }
    for (size_t i = 0; i < event->payload_bytes; i++)
        if (event->payload[i] >= 'a' && event->payload[i] <= 'z')
            counts[event->payload[i] - 'a']++;
    for (int i = 0; i < 26; i++)
        if (counts[i])
            end += snprintf(end, (size_t)(text + sizeof(text) - end), "%s\"%c\":%lu",
                            end == text + 1 ? "" : ",", 'a' + i, counts[i]);
    end += snprintf(end, (size_t)(text + sizeof(text) - end), "}");
    sl_lambda_succeed(answer, text, (size_t)(end - text), "application/json");
}

int main(void)
{
    return sl_lambda_run(handler, NULL);
}
