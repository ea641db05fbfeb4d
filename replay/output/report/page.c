/* The report's page: what stands above its parts, and the files that every page carries. */
#include "replay/output/report/html.h"
#include "replay/output/report/picture_private.h"

#include "base/base64.h"
#include "base/embed.h"
#include "base/span.h"

#include <openssl/evp.h>

SL_EMBED(sl_text_page_css, "replay/output/report/page.css");
SL_EMBED(sl_text_page_js, "replay/output/report/page.js");
SL_EMBED(sl_text_page_svg, "replay/output/report/page.svg");

/* ---- what the browser may do ---- */

static void add_hash(struct sl_buffer *b, const char *text)
{
    unsigned char digest[32];
    char base64[48];
    EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
    size_t n = sl_base64_encode_to(sl_span((const char *)digest, sizeof(digest)), base64);
    sl_buffer_printf(b, "'sha256-%.*s'", (int)n, base64);
}

/* No network, and no script or style but the two of this page, whatever the text of others holds. */
static void add_policy(struct sl_buffer *b)
{
    sl_buffer_add_str(b,
                      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; img-src data:; "
                      "base-uri 'none'; form-action 'none'; script-src ");
    add_hash(b, sl_text_page_js);
    sl_buffer_add_str(b, "; style-src ");
    add_hash(b, sl_text_page_css);
    sl_buffer_add_str(b, "\">\n");
}

/* ---- the first sentence ---- */

static void add_verdict(struct sl_buffer *b, const struct sl_picture *p, const struct sl_summary *summary)
{
    const struct sl_esm_stats *m = &summary->mapping;
    size_t lost = (size_t)(m->discarded + m->trimmed), all = summary->recording->n;
    bool is_whole = m->done == all;
    if (p->parked) {
        sl_html_add_count(b, p->parked);
        sl_buffer_add_str(b, " parked, ");
    }
    sl_buffer_add_str(b, !is_whole ? "" : p->parked ? "all " : "All ");
    if (!is_whole) {
        sl_html_add_count(b, lost ? lost : (size_t)m->done);
        sl_buffer_add_str(b, " of ");
    }
    sl_html_add_count(b, all);
    sl_buffer_printf(b, " records %s %s", lost == 1 ? "was" : "were", lost ? "given up" : "handled");
}

static void add_tile(struct sl_buffer *b, const char *name, uint64_t value)
{
    sl_buffer_printf(b, "<div><dt>%s</dt><dd>", name);
    sl_html_add_count(b, (size_t)value);
    sl_buffer_add_str(b, "</dd></div>\n");
}

static void add_duration(struct sl_buffer *b, int64_t ms)
{
    sl_buffer_add_str(b, "<div><dt>virtual time</dt><dd>");
    if (ms < 120000)
        sl_buffer_printf(b, "%.1f s", (double)ms / 1000);
    else if (ms < 2 * 3600 * 1000)
        sl_buffer_printf(b, "%.1f min", (double)ms / 60000);
    else
        sl_buffer_printf(b, "%.1f h", (double)ms / 3600000);
    sl_buffer_add_str(b, "</dd></div>\n");
}

static void add_tiles(struct sl_buffer *b, const struct sl_picture *p, const struct sl_summary *summary)
{
    const struct sl_esm_stats *m = &summary->mapping;
    sl_buffer_add_str(b, "<dl class=tiles>\n");
    add_tile(b, "records in", summary->recording->n);
    add_tile(b, "handled", m->done);
    if (p->parked)
        add_tile(b, "parked", p->parked);
    add_tile(b, "filtered out", m->filtered);
    add_tile(b, "given up", (m->discarded + m->trimmed));
    if (m->beside)
        add_tile(b, "given up beside others", m->beside);
    add_tile(b, "invocations", m->invocations);
    add_tile(b, "retries", m->retries);
    add_tile(b, "splits", m->splits);
    add_tile(b, "throttled", m->throttles);
    add_duration(b, m->elapsed_ms);
    sl_buffer_add_str(b, "</dl>\n");
    if (m->ignored_answers)
        sl_buffer_printf(b,
                         "<p>Answers that named failures and were ignored, because ReportBatchItemFailures "
                         "is off: %llu.</p>\n",
                         (unsigned long long)m->ignored_answers);
}

static void add_head(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                     const struct sl_summary *summary)
{
    sl_buffer_add_str(b, "<!doctype html>\n<html lang=en>\n<head><meta charset=utf-8>\n");
    add_policy(b);
    sl_buffer_add_str(b, "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
                         "<link rel=icon href=\"data:,\"><title>");
    add_verdict(b, p, summary);
    sl_buffer_printf(b, " - sluice %s</title>\n<style>", run->verb);
    sl_buffer_add_str(b, sl_text_page_css);
    sl_buffer_add_str(b, "</style></head>\n<body>\n");
    sl_buffer_add_str(b, sl_text_page_svg);
    sl_buffer_printf(b, "<header><p class=quiet>sluice %s</p><h1>", run->verb);
    add_verdict(b, p, summary);
    sl_buffer_add_str(b, "</h1><p class=inputs>");
    for (size_t i = 0; i < run->n_inputs && i < 3; i++) {
        sl_buffer_add_str(b, i ? ", " : "");
        sl_html_add_foreign(b, sl_span_str(run->inputs[i]));
    }
    if (run->n_inputs > 3)
        sl_buffer_printf(b, " and %zu more", run->n_inputs - 3);
    sl_buffer_add_str(b, "</p></header>\n<main>\n");
}

/* ---- the picture ---- */

static void add_picture(struct sl_buffer *b, const struct sl_picture *p)
{
    static const struct {
        const char *name, *text;
    } key[] = {{"advance", "done"},
               {"checkpoint", "partly done: up to the failed record"},
               {"retry", "retry: delivered again"},
               {"bisect", "cut in two"},
               {"discard", "given up"},
               {"throttled", "throttled: the function did not run"},
               {"final", "final call of a window, without records"}};
    sl_buffer_add_str(b,
                      "<section aria-labelledby=h-picture><h2 id=h-picture>Invocations</h2>\n<ul class=key>");
    for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++)
        sl_buffer_printf(b,
                         "<li><svg class=\"glyph k-%s\" aria-hidden=true><use href=\"#g-%s\"/></svg>%s</li>",
                         key[i].name, key[i].name, key[i].text);
    sl_buffer_add_str(
        b,
        "</ul>\n<div id=picture><p>This part is drawn by a script, which this viewer does not run. Open the "
        "file in a browser.</p></div>\n");
    if (p->left_out)
        sl_buffer_printf(b, "<p>%zu later invocations are not drawn.</p>\n", p->left_out);
    sl_buffer_add_str(b, "</section>\n");
}

void sl_page_write(struct sl_buffer *b, const struct sl_picture *p, const struct sl_picture_run *run,
                   const struct sl_summary *summary)
{
    add_head(b, p, run, summary);
    add_tiles(b, p, summary);
    sl_page_add_losses(b, p, summary);
    add_picture(b, p);
    sl_page_add_facts(b, p, run, summary);
    sl_buffer_add_str(b, "</main>\n<script type=\"application/json\" id=data>");
    sl_page_add_data(b, p, summary);
    sl_buffer_add_str(b, "</script>\n<script>");
    sl_buffer_add_str(b, sl_text_page_js);
    sl_buffer_add_str(b, "</script>\n</body></html>\n");
}
