/* What stands behind a text's end is no part of it: every reader says the same of a text, whatever follows it
 * in memory. Texts are cut at each byte, in place, so that what follows is what would have continued them. */
#include "base/base64.h"
#include "base/json.h"
#include "base/number.h"
#include "base/time.h"
#include "base/url.h"
#include "base/utf8.h"
#include "streams/decode/batch.h"
#include "streams/template/template.h"
#include "streams/value.h"
#include "streams/when/when.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

/* What a reader says, as text. */
typedef void (*reader_fn)(struct sl_span text, struct sl_arena *arena, struct sl_buffer *said);

static void say(struct sl_buffer *said, enum sl_status status, const struct sl_error *error)
{
    sl_buffer_printf(said, "%d %s %zu %s;", (int)status, error->code, error->offset, error->text);
}

static void decode_events(struct sl_span text, struct sl_arena *arena, struct sl_buffer *said)
{
    for (int any = 0; any < 2; any++) {
        struct sl_decode_options options = {.any_shape = any, .ttl_attribute = SL_LIT("n")};
        struct sl_error error = SL_NO_ERROR;
        struct sl_batch batch;
        say(said, sl_batch_decode(text, arena, &options, &batch, &error), &error);
        for (size_t i = 0; i < batch.n; i++) {
            const struct sl_record *r = sl_batch_record(&batch, i);
            sl_buffer_printf(said, "%lld %llu ", (long long)sl_record_created_ns(r),
                             (unsigned long long)sl_record_computed_bytes(r));
            for (int image = 0; image < 3; image++)
                sl_buffer_printf(said, "%zu ", sl_record_image(r, (enum sl_image)image).raw.len);
        }
    }
}

static void compile_conditions(struct sl_span text, struct sl_arena *arena, struct sl_buffer *said)
{
    struct sl_when *out;
    struct sl_error a = SL_NO_ERROR, b = SL_NO_ERROR, c = SL_NO_ERROR;
    say(said, sl_when_compile(text, arena, &out, &a), &a);
    say(said, sl_pattern_compile(text, arena, &out, &b), &b);
    say(said, sl_where_compile(text, arena, &out, &c), &c);
}

static void compile_template(struct sl_span text, struct sl_arena *arena, struct sl_buffer *said)
{
    struct sl_template *out;
    struct sl_error error = SL_NO_ERROR;
    enum sl_status status = sl_template_compile(text, NULL, arena, &out, &error);
    say(said, status, &error);
    if (status == SL_OK)
        sl_buffer_printf(said, "%d %u", (int)sl_template_type(out), sl_template_uses(out));
}

static void read_path(struct sl_span text, struct sl_arena *arena, struct sl_buffer *said)
{
    struct sl_span path = text, name;
    (void)arena;
    if (sl_path_name(&path, &name))
        sl_buffer_printf(said, "%.*s, then %zu", SL_ARG(name), path.len);
    const struct sl_value map = {.type = SL_M,
                                 .raw = SL_LIT("{\"a\":{\"L\":[{\"N\":\"1\"},{\"N\":\"2\"}]}}")};
    sl_buffer_printf(said, " %d", (int)sl_value_walk(sl_value_member(map, SL_LIT("a")), path).type);
}

static void read_scalars(struct sl_span text, struct sl_arena *arena, struct sl_buffer *said)
{
    struct sl_number number;
    int64_t ns = 0, step_ns = 0;
    const char *why = sl_number_parse(text, &number);
    char digits[SL_NUMBER_TEXT];
    (void)arena;
    sl_buffer_printf(said, "%s ", why ? why : "");
    if (!why)
        sl_buffer_add(said, digits, sl_number_text(&number, digits));
    sl_buffer_printf(said, " %d", sl_time_parse(text, &ns, &step_ns));
    sl_buffer_printf(said, " %d %d", sl_base64_is_valid(text), sl_utf8_is_valid(text));
    sl_url_decode(said, text);
}

static const struct {
    reader_fn read;
    const char *text;
} cases[] = {
    {decode_events,
     "{ 'Records' : [ { 'eventID' : 'a\\u00e4' , 'eventName' : 'MODIFY', 'awsRegion':'eu-west-1', 'x' : [ "
     "1.5e3 , "
     "true , null , { } ] , 'userIdentity' : { 'type' : 'Service' , 'principalId' : 'x' } , 'dynamodb' : { "
     "'ApproximateCreationDateTime' : 1594935882.25 , 'Keys' : { 'PK' : { 'S' : 'a' } } , 'NewImage' : { "
     "'PK' "
     ": { 'S' : 'a' } , 'n' : { 'N' : '-1.50' } , 'l' : { 'L' : [ { 'BOOL' : true } , { 'NULL' : true } , { "
     "'M' : { 'b' : { 'B' : 'AAE=' } } } ] } , 's' : { 'SS' : [ 'x' , 'y' ] } } , 'SequenceNumber' : '4' , "
     "'SizeBytes' : 6 , 'StreamViewType' : 'NEW_IMAGE' } } ] }"},
    {decode_events,
     "[{'eventID':'a','eventName':'REMOVE','dynamodb':{'ApproximateCreationDateTime':1594935882,'Keys':{'PK':"
     "{"
     "'N':'12'}},'OldImage':{'PK':{'N':'12'},'ns':{'NS':['1','2.5']},'bs':{'BS':['AA==']},'n':{'N':'7'}},"
     "'SequenceNumber':'400000000008367680596','SizeBytes':6},'eventSourceARN':'arn:aws:dynamodb:e:1:table/"
     "t'}]"},
    {decode_events,
     "{'Item':{'PK':{'S':'a'},'n':{'N':'1'}}}\n{'Item':{'PK':{'S':'b'},'flag':{'BOOL':false}}}\r\n\n"
     "{'Metadata':{'WriteTimestampMicros':{'N':'1680109764000000'}},'Keys':{'PK':{'S':'c'}},'NewImage':{'PK':"
     "{'"
     "S':'c'}}}\n"},
    {decode_events,
     "{'Records':[{'kinesis':{'sequenceNumber':'49','approximateArrivalTimestamp':1607497475.000,'data':"
     "'eyJldmVudE5hbWUiOiJJTlNFUlQiLCJkeW5hbW9kYiI6eyJLZXlzIjp7ImsiOnsiUyI6IngifX19fQ=='},'eventSource':"
     "'aws:kinesis','eventID':'shardId-0:49'}]}"},
    {compile_conditions, "{'events':['INSERT'],'changed':['a','b'],'item':{'a.`b.c`':[1,'x',{'prefix':'y'},{'"
                         "numeric':['>',0,'<=',5]}]"
                         "},'pattern':[{'dynamodb':{'NewImage':{'a':{'S':[{'anything-but':{'wildcard':['a*','"
                         "b\\u002a']}}]}}}}]}"},
    {compile_conditions, "{ 'a' : [ { 'cidr' : '10.0.0.0/8' } , { 'exists' : false } , -1.5e2 , null , true "
                         "] , '$or' : [ { 'b' : [ "
                         "'x' ] } , { 'c' : [ 'y' ] } ] }"},
    {compile_template, "a{{b}}{NewImage.a[12].`b "
                       "c`|split:#:-1|default:`}`}{Keys.k}{yyyy}-{a|date:yyyy-mm-dd:+09:00}{a|slice:0:1}"},
    {read_path, "a[12].`b c`.d"},
    {read_path, "`a`[1].b"},
    {read_scalars, "-123.4500e+12345"},
    {read_scalars, "12345678901234567890123456789012345678"},
    {read_scalars, "2026-11-20T21:04:00.123456789+01:00"},
    {read_scalars, "2026-11-20 21:04:00Z9"},
    {read_scalars, "AAECAwQ=+%4a%4B%zz%"},
    {read_scalars, "a\xC3\xA4\xE4\xB8\xAD\xF0\x9F\xA6\x8A"},
};

static void what_follows_a_text_is_not_read(void **state)
{
    (void)state;
    static const char behind[] = "\"]},: 0e'`|.\n\\";
    struct sl_buffer wanted, said;
    struct sl_arena *arena = sl_arena_new(65536);
    sl_buffer_init(&wanted, 1 << 20);
    sl_buffer_init(&said, 1 << 20);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *whole = json(cases[i].text);
        char *room = malloc(strlen(whole) + 130);
        for (size_t n = 0; n <= strlen(whole); n++) {
            char *alone = malloc(n ? n : 1);
            memcpy(alone, whole, n);
            sl_buffer_reset(&wanted);
            cases[i].read(sl_span(alone, n), arena, &wanted);
            for (size_t k = 0; k < sizeof(behind); k++) {
                memcpy(room, whole, n);
                memset(room + n, behind[k], 128); /* the last of them is a NUL */
                if (k == 0)
                    memcpy(room + n, whole + n, strlen(whole + n) + 1);
                sl_buffer_reset(&said);
                cases[i].read(sl_span(room, n), arena, &said);
                if (!sl_span_eq(sl_buffer_span(&said), sl_buffer_span(&wanted)))
                    fail_msg("%.*s: %.*s, and with %c behind it: %.*s", (int)n, room,
                             SL_ARG(sl_buffer_span(&wanted)), behind[k], SL_ARG(sl_buffer_span(&said)));
            }
            free(alone);
            sl_arena_reset(arena);
        }
        free(room);
    }
    sl_arena_destroy(arena);
    sl_buffer_clean_up(&wanted);
    sl_buffer_clean_up(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_follows_a_text_is_not_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
