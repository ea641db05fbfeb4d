/* A piece of a verification or a repair as JSON. */
#include "runtime/work/verify_piece.h"

#include "base/array.h"
#include "base/json_write.h"
#include "runtime/work/fields.h"
#include "runtime/work/item.h"

#include <ctype.h>
#include <inttypes.h>

/* A turn has 15 minutes, and each one waits anew. */
#define WAIT_MOST_S 600

bool sl_work_is_run(struct sl_span run)
{
    for (size_t i = 0; i < run.len; i++)
        if (!isalnum((unsigned char)run.ptr[i]) && run.ptr[i] != '-' && run.ptr[i] != '_')
            return false;
    return run.len <= SL_WORK_RUN_BYTES; /* (no text that is read is empty) */
}

struct sl_span sl_work_sum_key(struct sl_span run, struct sl_arena *arena)
{
    return sl_span_str(sl_arena_printf(arena, SL_WORK_FINDINGS "%.*s/sum.json", SL_ARG(run)));
}

enum sl_status sl_work_verify_piece_check(const struct sl_work_verify_piece *p,
                                          const struct sl_work_config *config, struct sl_error *error)
{
    if (!config->is_scan)
        return sl_fail(error, SL_REJECT, "OutsideSource",
                       "SLUICE_WORK_SOURCE is an export: a table is verified against itself (SeedFrom=scan)");
    if (!sl_work_is_run(p->run))
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM, "\"run\" is no execution's name");
    if (p->wait_s > WAIT_MOST_S)
        return sl_fail(error, SL_REJECT, SL_WORK_BAD_ITEM,
                       "\"wait\" is %" PRIu64 ": a turn cannot wait longer than %d s", p->wait_s,
                       WAIT_MOST_S);
    if (!p->is_repair)
        return p->of && p->of <= SL_WORK_PIECES_MAX && p->segment < p->of
                   ? SL_OK
                   : sl_fail(error, SL_REJECT, "OutsideSource",
                             "the piece is no segment: \"segment\" is below \"of\"");
    return sl_span_starts(p->findings, SL_LIT(SL_WORK_FINDINGS)) && sl_work_is_plain(p->findings)
               ? SL_OK
               : sl_fail(error, SL_REJECT, "OutsideSource",
                         "\"findings\" is no object below " SL_WORK_FINDINGS " of SLUICE_WORK_PLACE");
}

static enum sl_status read_outcomes(struct sl_span text, struct sl_arena *arena, uint64_t *outcomes,
                                    struct sl_error *error)
{
    struct sl_work_field fields[SL_REPAIRED_FAILED + 1];
    if (!text.ptr)
        return SL_OK;
    for (int i = 0; i <= SL_REPAIRED_FAILED; i++)
        fields[i] =
            (struct sl_work_field){sl_repaired_name((enum sl_repaired)i), SL_WORK_COUNT, false, &outcomes[i]};
    return sl_work_fields_read(text, "sluice.piece.counts", fields, SL_COUNT(fields), arena, error);
}

enum sl_status sl_work_verify_piece_read(struct sl_span text, const struct sl_work_config *config,
                                         struct sl_arena *arena, struct sl_work_verify_piece *out,
                                         struct sl_error *error)
{
    struct sl_span what = {0}, counts = {0};
    *out = (struct sl_work_verify_piece){0};
    const struct sl_work_field fields[] = {
        {"do", SL_WORK_TEXT, true, &what},
        {"piece", SL_WORK_COUNT, true, &out->piece},
        {"segment", SL_WORK_COUNT, false, &out->segment},
        {"of", SL_WORK_COUNT, false, &out->of},
        {"findings", SL_WORK_TEXT, false, &out->findings},
        {"run", SL_WORK_TEXT, true, &out->run},
        {"routes", SL_WORK_TEXT, false, &out->routes},
        {"max_lag", SL_WORK_COUNT, true, &out->max_lag_s},
        {"wait", SL_WORK_COUNT, true, &out->wait_s},
        {"read_units", SL_WORK_NUMBER, false, &out->read_units},
        {"write_units", SL_WORK_NUMBER, false, &out->write_units},
        {"delete", SL_WORK_BOOL, false, &out->may_delete},
        {"save", SL_WORK_BOOL, false, &out->saves},
        {"turn", SL_WORK_COUNT, false, &out->turn},
        {"counts", SL_WORK_OBJECT, false, &counts},
    };
    enum sl_status status = sl_work_fields_read(text, "sluice.piece", fields, SL_COUNT(fields), arena, error);
    out->is_repair = sl_span_is(what, "repair");
    out->read_units = sl_work_share(out->read_units, config->read_units, config->concurrency);
    out->write_units = sl_work_share(out->write_units, config->write_units, config->concurrency);
    if (status == SL_OK)
        status = sl_work_verify_piece_check(out, config, error);
    return status == SL_OK ? read_outcomes(counts, arena, out->outcomes, error) : status;
}

void sl_work_add_outcomes(struct sl_buffer *out, const char *name, const uint64_t *outcomes)
{
    sl_json_add_raw(out, name, SL_LIT("{"));
    for (int i = 0; i <= SL_REPAIRED_FAILED; i++)
        sl_json_add_integer(out, sl_repaired_name((enum sl_repaired)i), (int64_t)outcomes[i]);
    sl_buffer_add_char(out, '}');
}

void sl_work_verify_piece_write(const struct sl_work_verify_piece *p, struct sl_buffer *out)
{
    sl_buffer_add_str(out, p->is_repair ? "{\"do\":\"repair\"" : "{\"do\":\"verify\"");
    sl_json_add_integer(out, "piece", (int64_t)p->piece);
    if (p->is_repair) {
        sl_json_add_member(out, "findings", p->findings);
    } else {
        sl_json_add_integer(out, "segment", (int64_t)p->segment);
        sl_json_add_integer(out, "of", (int64_t)p->of);
    }
    sl_json_add_member(out, "run", p->run);
    sl_work_add_text(out, "routes", p->routes);
    sl_json_add_integer(out, "max_lag", (int64_t)p->max_lag_s);
    sl_json_add_integer(out, "wait", (int64_t)p->wait_s);
    sl_work_add_units(out, "read_units", p->read_units);
    sl_work_add_units(out, "write_units", p->write_units);
    if (p->may_delete)
        sl_json_add_raw(out, "delete", SL_LIT("true"));
    if (p->saves)
        sl_json_add_raw(out, "save", SL_LIT("true"));
    if (p->turn) {
        sl_json_add_integer(out, "turn", (int64_t)p->turn);
        sl_work_add_outcomes(out, "counts", p->outcomes);
    }
    sl_buffer_add_char(out, '}');
}
