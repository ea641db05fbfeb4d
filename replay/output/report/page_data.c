/* The data that page.js draws: one array per invocation, in shards, and their texts. */
#include "replay/output/report/html.h"
#include "replay/output/report/picture_private.h"

#include "base/span.h"

/* Numbers of texts that only the page needs: sequence numbers go through the same list. */
static void add_id(struct sl_buffer *b, const struct sl_picture_row *row, size_t position)
{
    if (row->n)
        sl_html_add_json(b, row->shard->records[position].id);
    else
        sl_buffer_add_str(b, "\"\"");
}

/* [time, lane, first, last, records, cut, attempt, kind, final, answer, route, reason, first id, last id] */
static void add_row(struct sl_buffer *b, const struct sl_picture_row *row)
{
    sl_buffer_printf(b, "[%lld,%u,%zu,%zu,%zu,%zu,%lld,%u,%d,%u,%u,%u,", (long long)row->time_ms, row->lane,
                     row->first, row->last, row->n, row->cut, (long long)row->attempt, row->kind,
                     row->is_final, row->answer, row->route, row->reason);
    add_id(b, row, row->first);
    sl_buffer_add_char(b, ',');
    add_id(b, row, row->last);
    sl_buffer_add_char(b, ']');
}

static void add_shard(struct sl_buffer *b, const struct sl_picture *p, const struct sl_esm_shard *shard)
{
    bool is_first = true;
    sl_buffer_add_str(b, "{\"id\":");
    sl_html_add_json(b, sl_span_str(shard->id));
    sl_buffer_printf(b, ",\"n\":%zu,\"rows\":[", shard->n);
    for (size_t i = 0; i < p->n; i++) {
        if (p->rows[i].shard != shard)
            continue;
        sl_buffer_add_str(b, is_first ? "\n" : ",\n");
        add_row(b, &p->rows[i]);
        is_first = false;
    }
    sl_buffer_add_str(b, "]}");
}

void sl_page_add_data(struct sl_buffer *b, const struct sl_picture *p, const struct sl_summary *summary)
{
    sl_buffer_printf(b, "{\"lanes\":%lld,\"shards\":[", (long long)p->settings->parallelization);
    for (size_t i = 0; i < summary->recording->n_shards; i++) {
        if (i)
            sl_buffer_add_char(b, ',');
        add_shard(b, p, &summary->recording->shards[i]);
    }
    sl_buffer_add_str(b, "],\"texts\":[");
    for (size_t i = 0; i < p->texts.n; i++) {
        if (i)
            sl_buffer_add_char(b, ',');
        sl_html_add_json(b, p->texts.list[i]);
    }
    sl_buffer_add_str(b, "]}");
}
