/* Documents in CloudWatch's embedded metric format, within its limits. */
#include "base/emf.h"

#include "base/array.h"
#include "base/json_write.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define TEXT_BYTES 1025 /* 1024 and a NUL */

static const double least = 8.515920e-109, most = 1.174271e+108;

static const char *unit_of(const char *name)
{
    static const char *const units[] = {
        "Seconds",
        "Microseconds",
        "Milliseconds",
        "Bytes",
        "Kilobytes",
        "Megabytes",
        "Gigabytes",
        "Terabytes",
        "Bits",
        "Kilobits",
        "Megabits",
        "Gigabits",
        "Terabits",
        "Percent",
        "Count",
        "Bytes/Second",
        "Kilobytes/Second",
        "Megabytes/Second",
        "Gigabytes/Second",
        "Terabytes/Second",
        "Bits/Second",
        "Kilobits/Second",
        "Megabits/Second",
        "Gigabits/Second",
        "Terabits/Second",
        "Count/Second",
    };
    for (size_t i = 0; name && i < SL_COUNT(units); i++)
        if (strcmp(units[i], name) == 0)
            return units[i];
    return "None";
}

/* Printable ASCII: all else becomes '?'. A text that is empty or all blank is refused, so it becomes "-". */
static const char *clean(const char *text, char out[TEXT_BYTES])
{
    size_t n = 0;
    bool is_blank = true;
    for (const char *c = text ? text : ""; *c && n < TEXT_BYTES - 1; c++) {
        out[n++] = *c < 0x20 || *c > 0x7e ? '?' : *c;
        is_blank = is_blank && *c == ' ';
    }
    out[n] = '\0';
    return is_blank ? "-" : out;
}

/* A metric is a member of the document beside the dimensions: one that has the name of another member gets an
 * underscore. */
static const char *metric_name(const char *name, char out[TEXT_BYTES])
{
    static const char *const taken[] = {"_aws", "Function", "Route", "level"};
    const char *text = clean(name, out);
    for (size_t i = 0; i < SL_COUNT(taken); i++)
        if (strcmp(text, taken[i]) == 0)
            snprintf(out, TEXT_BYTES, "%s_", taken[i]);
    return text;
}

static double value_of(double value)
{
    double size = fabs(value);
    if (!isfinite(value) || size < least)
        return 0;
    return size > most ? copysign(most, value) : value;
}

static void add_definition(struct sl_buffer *out, const struct sl_emf_metric *metric)
{
    char name[TEXT_BYTES];
    sl_buffer_add_char(out, '{');
    sl_json_add_member(out, "Name", sl_span_str(metric_name(metric->name, name)));
    sl_json_add_member(out, "Unit", sl_span_str(unit_of(metric->unit)));
    sl_buffer_add_char(out, '}');
}

/* The texts of a document, with its numbers or, for a plan, with the places where they go. */
struct writing {
    struct sl_buffer *out;
    struct sl_emf_plan *plan; /* NULL: numbers are written */
};

static void add_number(const struct writing *w, double value)
{
    const double clean = value_of(value), thousandths = rint(clean * 1000);
    if (w->plan) {
        assert(w->plan->n < SL_EMF_PLAN_NUMBERS);
        w->plan->cuts[w->plan->n++] = w->out->len;
    } else if (clean >= 0 && clean < 1e12 && thousandths / 1000 == clean) {
        sl_buffer_add_thousandths(w->out, (uint64_t)thousandths);
    } else {
        sl_buffer_printf(w->out, "%.15g", clean);
    }
}

static void add_value(const struct writing *w, const struct sl_emf_metric *metric)
{
    char name[TEXT_BYTES];
    sl_buffer_add_char(w->out, ',');
    sl_json_add_string(w->out, sl_span_str(metric_name(metric->name, name)));
    sl_buffer_add_char(w->out, ':');
    add_number(w, metric->value);
}

static void add_document(const struct writing *w, const struct sl_emf *emf)
{
    char text[TEXT_BYTES];
    struct sl_buffer *out = w->out;
    sl_buffer_add_str(out, "{\"_aws\":{\"Timestamp\":");
    add_number(w, (double)emf->epoch_ms);
    sl_buffer_add_str(out, ",\"CloudWatchMetrics\":[{\"Namespace\":\"Sluice\",\"Dimensions\":[[\"Function\"");
    sl_buffer_add_str(out, emf->route ? ",\"Route\"]]" : "]]");
    sl_buffer_add_str(out, ",\"Metrics\":[");
    for (size_t i = 0; i < emf->n; i++) {
        if (i)
            sl_buffer_add_char(out, ',');
        add_definition(out, &emf->metrics[i]);
    }
    sl_buffer_add_str(out, "]}]}");
    if (emf->level)
        sl_json_add_member(out, "level", sl_span_str(emf->level));
    sl_json_add_member(out, "Function", sl_span_str(clean(emf->function, text)));
    if (emf->route)
        sl_json_add_member(out, "Route", sl_span_str(clean(emf->route, text)));
    for (size_t i = 0; i < emf->n; i++)
        add_value(w, &emf->metrics[i]);
    for (size_t i = 0; i < emf->n_facts; i++)
        add_value(w, &emf->facts[i]);
    sl_buffer_add_str(out, "}\n");
}

void sl_emf_add(struct sl_buffer *out, const struct sl_emf *emf)
{
    const struct writing w = {out, NULL};
    struct sl_emf part = *emf;
    for (size_t done = 0; done < emf->n; done += part.n) {
        part.metrics = emf->metrics + done;
        part.n = emf->n - done < SL_EMF_METRICS ? emf->n - done : SL_EMF_METRICS;
        add_document(&w, &part);
    }
}

/* ---- plans ---- */

/* Sixteen names of 1 KB twice, and what stands between them. */
#define PLAN_BYTES (64 * 1024)

void sl_emf_plan_init(struct sl_emf_plan *plan, const struct sl_emf *emf)
{
    *plan = (struct sl_emf_plan){.n = 0};
    sl_buffer_init(&plan->text, PLAN_BYTES);
    add_document(&(struct writing){&plan->text, plan}, emf);
}

void sl_emf_plan_clean_up(struct sl_emf_plan *plan)
{
    sl_buffer_clean_up(&plan->text);
}

void sl_emf_plan_add(const struct sl_emf_plan *plan, int64_t epoch_ms, const double *values,
                     struct sl_buffer *out)
{
    const struct writing w = {out, NULL};
    const struct sl_span text = sl_buffer_span(&plan->text);
    size_t from = 0;
    for (size_t i = 0; i < plan->n; i++) {
        sl_buffer_add(out, text.ptr + from, plan->cuts[i] - from);
        add_number(&w, i ? values[i - 1] : (double)epoch_ms);
        from = plan->cuts[i];
    }
    sl_buffer_add_span(out, sl_span_from(text, from));
}
