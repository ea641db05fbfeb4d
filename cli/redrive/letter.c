/* From messages to records. */
#include "cli/redrive/letter.h"

#include "base/json_write.h"
#include "base/span.h"
#include "live/source/lambda_batch.h"
#include "streams/record.h"

#include <string.h>
#include <time.h>

/* A key has 3 KB at most, which escapes make up to six times as long. */
#define KEY_BYTES ((size_t)32 * 1024)

void sl_letter_end(struct sl_letter *letter, enum sl_mail_outcome outcome, const char *code, const char *text)
{
    letter->outcome = outcome;
    letter->code = code[0] ? code : "Unknown";
    letter->text = text;
}

/* "arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL" */
static const char *table_of_arn(const char *arn, struct sl_arena *arena)
{
    const char *at = strstr(arn, ":table/");
    return at ? sl_arena_copy(arena, sl_span(at + 7, strcspn(at + 7, "/"))) : "-";
}

static const char *key_of(const struct sl_record *record, struct sl_arena *arena)
{
    struct sl_value keys = sl_record_image(record, SL_KEYS);
    struct sl_buffer text;
    sl_buffer_init_in(&text, arena, KEY_BYTES);
    sl_json_add_compact(&text, keys.raw);
    return text.failed ? "-" : sl_arena_copy(arena, sl_buffer_span(&text));
}

static void take_records(struct sl_letter *letter, const struct sl_lambda_batch *batch,
                         struct sl_arena *arena)
{
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    letter->is_kinesis = batch->is_kinesis;
    letter->n = batch->batch.n;
    letter->records = sl_arena_zalloc(arena, (letter->n + 1) * sizeof(*letter->records));
    for (size_t i = 0; i < letter->n; i++) {
        const struct sl_record *r = sl_batch_record(&batch->batch, i);
        int64_t created_ms = sl_record_created_ns(r) / 1000000;
        letter->records[i] = (struct sl_esm_record){.text = sl_lambda_batch_text(batch, i),
                                                    .id = sl_record_text(r, SL_FIELD_IDENTIFIER),
                                                    .item_key = sl_record_item_key(r, arena),
                                                    .created_ms = created_ms ? created_ms : now_ms,
                                                    .record = r,
                                                    .tag = letter};
    }
    const struct sl_record *first = sl_batch_record(&batch->batch, 0);
    struct sl_span table = sl_record_text(first, SL_FIELD_TABLE);
    struct sl_span arn = sl_record_text(first, SL_FIELD_SOURCE_ARN);
    letter->key = key_of(first, arena);
    letter->table = table.len ? sl_arena_copy(arena, table) : letter->table;
    const char *own = sl_arena_copy(arena, arn);
    if (!letter->dead.stream_arn[0] && sl_dead_letter_is_arn(own))
        letter->dead.stream_arn = own;
}

void sl_letter_decode(struct sl_letter *letter, struct sl_span event, struct sl_arena *arena)
{
    const char *arn = letter->dead.stream_arn;
    const struct sl_decode_options options = {.any_shape = true};
    const struct sl_lambda_form form = {.stream_arn = arn[0] ? arn : SL_REPLAYED_ARN,
                                        .is_arn_certain = arn[0] != '\0',
                                        .created_s = (int64_t)time(NULL)};
    struct sl_lambda_batch batch;
    struct sl_batch raw;
    struct sl_error why = SL_NO_ERROR;
    enum sl_status status = sl_batch_decode(event, arena, &options, &raw, &why);
    if (status == SL_OK && raw.n == 0) /* nothing to handle is not the same as handled */
        status = sl_fail(&why, SL_REJECT, "NoRecords", "its event has no records");
    if (status == SL_OK)
        status = sl_lambda_batch_make(&raw, &form, 0, arena, &batch, &why);
    if (status == SL_OK)
        take_records(letter, &batch, arena);
    else
        sl_letter_end(letter, SL_MAIL_UNREADABLE, sl_arena_printf(arena, "%s", why.code),
                      sl_arena_printf(arena, "%s", why.text));
}

static const char *id_of(const struct sl_mail *mail, const struct sl_dead_letter *dead, size_t i, size_t n,
                         struct sl_arena *arena)
{
    if (mail->is_line && dead->id[0])
        return dead->id;
    return n > 1 ? sl_arena_printf(arena, "%s#%zu", mail->id, i + 1) : mail->id;
}

static void open_letter(struct sl_letter *letter, struct sl_arena *arena)
{
    const struct sl_dead_letter *dead = &letter->dead;
    letter->code = letter->text = "";
    letter->key = "-";
    letter->table = dead->kind == SL_DEAD_LETTER_ASIDE && dead->table[0]
                        ? dead->table
                        : table_of_arn(dead->stream_arn, arena);
    if (dead->kind == SL_DEAD_LETTER_UNREADABLE)
        sl_letter_end(letter, SL_MAIL_UNREADABLE, dead->code, dead->why);
    else if (dead->kind != SL_DEAD_LETTER_POINTER && dead->kind != SL_DEAD_LETTER_ASIDE)
        sl_letter_decode(letter, dead->text, arena);
}

static void open_unreadable(struct sl_mail *mail, struct sl_arena *arena)
{
    mail->n = 1;
    mail->letters = sl_arena_zalloc(arena, sizeof(*mail->letters));
    mail->letters[0] = (struct sl_letter){
        .mail = mail,
        .id = mail->id,
        .dead = {.kind = SL_DEAD_LETTER_UNREADABLE, .id = "", .route = "", .handler = "", .stream_arn = ""}};
    mail->letters[0].dead.code = "CannotRead";
    mail->letters[0].dead.why = mail->unreadable;
    open_letter(&mail->letters[0], arena);
}

void sl_letter_open(struct sl_mail *mail, struct sl_arena *arena)
{
    struct sl_dead_letters found = {0};
    if (mail->unreadable) {
        open_unreadable(mail, arena);
        return;
    }
    sl_dead_letters_add(&found, mail->body, arena);
    mail->n = found.n;
    mail->letters = sl_arena_zalloc(arena, found.n * sizeof(*mail->letters));
    for (size_t i = 0; i < found.n; i++) {
        struct sl_letter *letter = &mail->letters[i];
        *letter = (struct sl_letter){.dead = found.list[i], .mail = mail};
        letter->id = id_of(mail, &found.list[i], i, found.n, arena);
        open_letter(letter, arena);
    }
}
