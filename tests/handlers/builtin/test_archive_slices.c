/* Archives of random slices: every record that matches is in the one object where it belongs, once, in stream
 * order, whatever the partitions and the holes between them are. */
#include "tests/support/stage.h"
#include "tests/support/test.h"

#include "base/buffer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define SLICES 400
#define MOST   40

static const char *const events[] = {"INSERT", "MODIFY", "REMOVE"};

/* A record as the test knows it. */
struct fact {
    unsigned event, hour, table, partition; /* partition 0: the item has no attribute "p" */
    unsigned seq;
};

struct slice {
    uint64_t random;
    struct fact facts[MOST];
    unsigned n, partitions;
    bool removals_match; /* else they are the holes */
    bool by_time;        /* the prefix is the table and the hour, else the partition */
    bool is_plain;       /* not compressed */
};

static unsigned roll(struct slice *s, unsigned below)
{
    return (unsigned)(sl_random_step(&s->random) % below);
}

/* Sequence numbers rise with holes; hours and tables come in runs, and some come back. */
static void invent(struct slice *s, uint64_t seed)
{
    *s = (struct slice){.random = seed};
    s->n = 1 + roll(s, MOST);
    s->partitions = 1 + roll(s, 7);
    s->removals_match = roll(s, 2);
    s->by_time = roll(s, 2);
    s->is_plain = roll(s, 2);
    unsigned seq = 1 + roll(s, 50), hour = 0, table = 0;
    for (unsigned i = 0; i < s->n; i++) {
        hour = roll(s, 3) ? hour : roll(s, 5);
        table = roll(s, 4) ? table : roll(s, 2);
        s->facts[i] = (struct fact){roll(s, 3), hour, table, roll(s, s->partitions + 1), seq};
        seq += 1 + (roll(s, 3) ? 0 : roll(s, 100));
    }
}

static const char *event_of(const struct slice *s)
{
    struct sl_buffer text;
    sl_buffer_init(&text, 1 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (unsigned i = 0; i < s->n; i++) {
        const struct fact *f = &s->facts[i];
        char p[32] = "";
        if (f->partition)
            snprintf(p, sizeof(p), ",'p':{'N':'%u'}", f->partition);
        sl_buffer_printf(
            &text,
            "%s{'eventID':'e%u','eventName':'%s','eventSource':'aws:dynamodb','awsRegion':'eu-west-1','"
            "dynamodb':{"
            "'ApproximateCreationDateTime':%u,'Keys':{'PK':{'S':'k%u'}},'%s':{'PK':{'S':'k%u'}%s},"
            "'SequenceNumber':'%u','StreamViewType':'NEW_AND_OLD_IMAGES'},'eventSourceARN':"
            "'arn:aws:dynamodb:eu-west-1:123456789012:table/t%u/stream/2026-01-01T00:00:00.000'}",
            i ? "," : "", f->seq, events[f->event], 1767225600 + 3600 * f->hour + i % 3600, i,
            f->event == 2 ? "OldImage" : "NewImage", i, p, f->seq, f->table);
    }
    sl_buffer_add_str(&text, "]}");
    const char *result = json_printf("%.*s", (int)text.len, text.ptr);
    sl_buffer_clean_up(&text);
    return result;
}

static const char *config_of(const struct slice *s)
{
    return json_printf("{'on_failure':'jsonl:${DIR}/failed.jsonl','routes':[{'name':'a','handler':'archive',"
                       "'to':'file:${DIR}/out','missing':'skip','compression':'%s','key':'%s'%s}]}",
                       s->is_plain ? "none" : "gzip", s->by_time ? "{table}/{hh}/" : "x/p={p}/",
                       s->removals_match ? "" : ",'when':{'events':['INSERT','MODIFY']}");
}

static bool is_wanted(const struct slice *s, const struct fact *f)
{
    return (s->removals_match || f->event != 2) && (s->by_time || f->partition);
}

static void prefix_of(const struct slice *s, const struct fact *f, char out[32])
{
    if (s->by_time)
        snprintf(out, 32, "t%u/%02u/", f->table, f->hour);
    else
        snprintf(out, 32, "x/p=%u/", f->partition);
}

/* The wanted object that the name and the lines at `*lines` must be: those records of the slice whose prefix
 * it has. */
static void object_is_right(const struct slice *s, const char *name, const char **lines, bool *seen)
{
    char first[96] = "";
    unsigned n = 0;
    for (unsigned i = 0; i < s->n; i++) {
        char prefix[32];
        const struct fact *f = &s->facts[i];
        prefix_of(s, f, prefix);
        if (!is_wanted(s, f) || strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        if (n++ == 0)
            snprintf(first, sizeof(first), "%s%040u-", prefix, f->seq);
        assert_false(seen[i]);
        seen[i] = true;
        char wanted[32];
        const char *end = strchr(*lines, '\n');
        assert_non_null(end);
        snprintf(wanted, sizeof(wanted), "\"SequenceNumber\":\"%u\"", f->seq);
        assert_non_null(memmem(*lines, (size_t)(end - *lines), wanted, strlen(wanted)));
        *lines = end + 1;
    }
    assert_true(n > 0);
    snprintf(first + strlen(first), sizeof(first) - strlen(first), "%u-", n);
    if (strncmp(name, first, strlen(first)) != 0)
        fail_msg("%s does not begin with %s", name, first);
}

static void archive_is_right(const struct slice *s, const char *text, char *names)
{
    bool seen[MOST] = {false};
    const char *lines = text;
    for (char *name = names, *end; *name; name = end + 1) {
        end = strchr(name, '\n');
        *end = '\0';
        object_is_right(s, name, &lines, seen);
    }
    assert_string_equal(lines, "");
    for (unsigned i = 0; i < s->n; i++)
        assert_int_equal(seen[i], is_wanted(s, &s->facts[i]));
}

static void each_record_is_in_its_object_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SLICES; seed++) {
        struct slice s;
        char *names, *text;
        invent(&s, seed);
        struct stage *stage = stage_new(config_of(&s), NULL);
        stage_deliver_all(stage, event_of(&s));
        text = stage_objects(stage, "out", &names);
        archive_is_right(&s, text, names);
        free(text);
        free(names);
        stage_destroy(stage);
    }
}

/* Where half of the writes fail, some after they took effect, redelivery completes the archive: it may hold a
 * record twice, in objects of other names, and lacks none. */
static void nothing_is_missing_after_failures(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SLICES / 4; seed++) {
        struct slice s;
        invent(&s, seed);
        struct stage *stage = stage_new(config_of(&s), NULL);
        stage->chance = seed;
        stage->one_in = 2;
        assert_true(stage_drive(stage, event_of(&s), 200));
        char *text = stage_objects(stage, "out", NULL);
        for (unsigned i = 0; i < s.n; i++) {
            char wanted[32];
            snprintf(wanted, sizeof(wanted), "\"SequenceNumber\":\"%u\"", s.facts[i].seq);
            assert_int_equal(strstr(text, wanted) != NULL, is_wanted(&s, &s.facts[i]));
        }
        free(text);
        stage_destroy(stage);
    }
}

/* The largest batch that Lambda delivers. */
static void ten_thousand_records_are_one_object(void **state)
{
    (void)state;
    struct sl_buffer text;
    sl_buffer_init(&text, 8 << 20);
    sl_buffer_add_str(&text, "{'Records':[");
    for (size_t i = 0; i < 10000; i++)
        sl_buffer_printf(
            &text,
            "%s{'eventID':'%0100zu','eventName':'REMOVE','eventSource':'aws:dynamodb','dynamodb':{"
            "'Keys':{'PK':{'S':'k'}},'SequenceNumber':'%zu'}}",
            i ? "," : "", i, 100 + i);
    sl_buffer_add_str(&text, "]}");
    sl_buffer_add_char(&text, '\0');
    struct stage *s = stage_new("{'on_failure':'report','routes':[{'name':'a','handler':'archive',"
                                "'to':'file:${DIR}/out','key':'x/'}]}",
                                NULL);
    stage_deliver_all(s, text.ptr);
    char *names, *lines = stage_objects(s, "out", &names);
    size_t n = 0;
    for (const char *at = lines; (at = strchr(at, '\n')); at++)
        n++;
    assert_int_equal(n, 10000);
    assert_non_null(strstr(names, "100-10000-"));
    assert_null(strchr(strchr(names, '\n') + 1, '\n'));
    free(lines);
    free(names);
    sl_buffer_clean_up(&text);
    stage_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_record_is_in_its_object_once),
        cmocka_unit_test(nothing_is_missing_after_failures),
        cmocka_unit_test(ten_thousand_records_are_one_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
