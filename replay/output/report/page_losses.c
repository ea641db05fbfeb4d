/* The table of the records that were given up or parked. */
#include "replay/output/report/html.h"
#include "replay/output/report/picture_private.h"

#include "base/span.h"
#include "streams/record.h"

#define KEY_BYTES 200 /* of one attribute: keys have 2,048 bytes at most */

static void add_value(struct sl_buffer *b, struct sl_value value, struct sl_arena *arena)
{
    struct sl_span text = sl_value_text(value, arena);
    bool is_cut = text.len > KEY_BYTES;
    sl_html_add_foreign(b, sl_html_shorten(text, KEY_BYTES));
    sl_buffer_add_str(b, is_cut ? "&hellip;" : "");
}

static void add_key(struct sl_buffer *b, const struct sl_record *record, struct sl_arena *arena)
{
    struct sl_value keys = record ? sl_record_image(record, SL_KEYS) : (struct sl_value){0}, value;
    struct sl_iter iter = sl_value_iter(keys);
    struct sl_span name;
    bool is_first = true;
    while (keys.type == SL_M && sl_value_next(&iter, &name, &value)) {
        /* (The name is a string without its quotes, as S is.) */
        struct sl_value text = {.type = SL_S, .escaped = true, .raw = name};
        sl_buffer_add_str(b, is_first ? "" : "<br>");
        sl_buffer_add_str(b, "<span class=quiet>");
        add_value(b, text, arena);
        sl_buffer_add_str(b, " =</span> ");
        add_value(b, value, arena);
        is_first = false;
    }
    if (is_first)
        sl_buffer_add_str(b, "<span class=quiet>none</span>");
}

static const char *condition_text(enum sl_esm_condition condition)
{
    return condition == SL_ESM_RETRIES_EXHAUSTED ? "Out of attempts"
           : condition == SL_ESM_AGE_EXCEEDED    ? "Too old"
                                                 : "Gone from the stream";
}

static void add_times(struct sl_buffer *b, const struct sl_picture_loss *loss)
{
    if (loss->is_parked && loss->times > 1)
        sl_buffer_printf(b, "Parked %lld times. ", (long long)loss->times);
    if (loss->is_parked)
        return;
    sl_buffer_add_str(b, condition_text(loss->condition));
    if (loss->row == SL_PICTURE_NO_ROW && loss->reason == 0)
        sl_buffer_add_str(b, " before it was delivered");
    else
        sl_buffer_printf(b, " after %lld deliver%s", (long long)loss->times, loss->times == 1 ? "y" : "ies");
    if (loss->beside)
        sl_buffer_printf(b, ", with %zu other%s of its batch", loss->beside, loss->beside == 1 ? "" : "s");
    sl_buffer_add_str(b, ". ");
}

static size_t shard_place(const struct sl_picture *p, const struct sl_picture_loss *loss)
{
    size_t place = 0;
    for (size_t i = 0; i < loss->row; i++)
        place += p->rows[i].shard == loss->shard;
    return place;
}

static void add_link(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_loss *loss,
                     const struct sl_esm_shard *first)
{
    if (loss->row == SL_PICTURE_NO_ROW) {
        sl_buffer_add_str(b, "<span class=quiet>not drawn</span>");
        return;
    }
    size_t place = shard_place(p, loss);
    sl_buffer_printf(b, "<a href=\"#i-%zu-%zu\">invocation&nbsp;%zu<span class=hidden> of sequence number ",
                     (size_t)(loss->shard - first), place, place + 1);
    sl_html_add(b, loss->record->id);
    sl_buffer_add_str(b, "</span></a>");
}

static void add_loss(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_loss *loss,
                     const struct sl_esm_shard *first, struct sl_arena *arena)
{
    sl_buffer_printf(b,
                     "<tr role=row><td role=cell data-name=What class=what><svg class=\"glyph k-%s\" "
                     "aria-hidden=true><use href=\"#g-%s\"/></svg>%s</td>"
                     "<th role=rowheader scope=row data-name=\"Sequence number\">",
                     loss->is_parked ? "parked" : "discard", loss->is_parked ? "parked" : "discard",
                     loss->is_parked ? "parked" : "given up");
    sl_html_add_foreign(b, loss->record->id);
    sl_buffer_add_str(b, "</th><td role=cell data-name=Key>");
    add_key(b, loss->record->record, arena);
    sl_buffer_add_str(b, "</td><td role=cell data-name=Reason>");
    add_times(b, loss);
    if (loss->culprit) {
        sl_buffer_add_str(b, "Record ");
        sl_html_add_foreign(b, p->texts.list[loss->culprit]);
        sl_buffer_add_str(b, " failed first: ");
    }
    if (loss->reason)
        sl_html_add_foreign(b, p->texts.list[loss->reason]);
    sl_buffer_add_str(b, "</td><td role=cell data-name=Route>");
    if (loss->route)
        sl_html_add_foreign(b, p->texts.list[loss->route]);
    else
        sl_buffer_add_str(b, "<span class=quiet>not known</span>");
    sl_buffer_add_str(b, "</td><td role=cell data-name=Picture>");
    add_link(b, p, loss, first);
    sl_buffer_add_str(b, "</td></tr>\n");
}

void sl_page_add_losses(struct sl_buffer *b, const struct sl_picture *p, const struct sl_summary *summary)
{
    static const char *const heads[] = {"What", "Sequence number", "Key", "Reason", "Route", "Picture"};
    size_t all = p->given_up + p->parked;
    if (all == 0)
        return;
    sl_buffer_add_str(b, "<section aria-labelledby=h-lost><h2 id=h-lost>Given up or parked</h2>"
                         "<table role=table aria-labelledby=h-lost><thead role=rowgroup><tr role=row>");
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        sl_buffer_printf(b, "<th role=columnheader scope=col>%s</th>", heads[i]);
    sl_buffer_add_str(b, "</tr></thead><tbody role=rowgroup>\n");
    struct sl_arena *arena = sl_arena_new(16 * 1024);
    for (size_t i = 0; i < p->n_losses; i++) {
        add_loss(b, p, &p->losses[i], summary->recording->shards, arena);
        sl_arena_reset(arena);
    }
    sl_arena_destroy(arena);
    sl_buffer_add_str(b, "</tbody></table>\n");
    if (all > p->n_losses)
        sl_buffer_printf(b,
                         "<p>%zu more are not listed. <code>--on-failure</code> writes every record that is "
                         "given up.</p>\n",
                         all - p->n_losses);
    sl_buffer_add_str(b, "</section>\n");
}
