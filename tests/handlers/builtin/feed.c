/* Feeds recorded changes to the handlers with the real targets of a configuration, for real_run.py.
 *
 *   feed CONFIG RECORDS SEED ONE_IN LATER_DAYS
 *
 * RECORDS has a stream record per line. Batches of random sizes come one to four times each; of the sinks'
 * operations one in ONE_IN fails (0: none), before it is carried out or after; LATER_DAYS is how far the
 * clock is ahead. */
#include "tests/support/history.h"
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

extern char **environ;

static char *read_text(const char *path)
{
    char *text = test_read(path, NULL);
    if (!text)
        sl_die("feed: cannot read %s", path);
    return text;
}

/* The next `n` lines as an event; steps over them. */
static char *next_event(char **at, size_t n)
{
    struct sl_buffer event;
    sl_buffer_init(&event, SIZE_MAX / 4);
    sl_buffer_add_str(&event, "{\"Records\":[");
    for (size_t i = 0; i < n && **at; i++) {
        char *end = strchr(*at, '\n');
        if (i > 0)
            sl_buffer_add_char(&event, ',');
        sl_buffer_add(&event, *at, (size_t)(end - *at));
        *at = end + 1;
    }
    sl_buffer_add(&event, "]}", 3);
    return event.ptr;
}

static void feed(struct stage *s, char *records, uint64_t seed)
{
    while (*records) {
        char *event = next_event(&records, 1 + history_draw(&seed, 80));
        for (size_t times = 1 + history_draw(&seed, 4); times > 0; times--)
            if (!stage_drive(s, event, 500))
                sl_die("feed: a batch is never done: %s", s->answer.error.text);
        free(event);
    }
}

int main(int argc, char **argv)
{
    const char *variables[12] = {NULL};
    size_t n = 0;
    if (argc != 6)
        sl_die("usage: feed CONFIG RECORDS SEED ONE_IN LATER_DAYS");
    for (char **name = environ; *name && n < 11; name++)
        if (strncmp(*name, "AWS_", 4) == 0)
            variables[n++] = *name;
    char *config = read_text(argv[1]), *records = read_text(argv[2]);
    struct stage *s = stage_new(config, variables);
    s->chance = strtoull(argv[3], NULL, 10);
    s->one_in = (unsigned)strtoul(argv[4], NULL, 10);
    s->clock.ms += strtol(argv[5], NULL, 10) * 86400 * 1000;
    feed(s, records, s->chance + 1);
    printf("%zu planned failures\n", s->failures);
    stage_destroy(s);
    free(config);
    free(records);
    return 0;
}
