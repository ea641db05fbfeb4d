/* Documents in CloudWatch's embedded metric format, within its limits. */
#include "base/emf.h"

#include "base/json_write.h"

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
    for (size_t i = 0; name && i < sizeof(units) / sizeof(units[0]); i++)
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
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
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

static void add_value(struct sl_buffer *out, const struct sl_emf_metric *metric)
{
    char name[TEXT_BYTES];
    sl_buffer_add_char(out, ',');
    sl_json_add_string(out, sl_span_str(metric_name(metric->name, name)));
    sl_buffer_printf(out, ":%.15g", value_of(metric->value));
}

static void add_document(struct sl_buffer *out, const struct sl_emf *emf)
{
    char text[TEXT_BYTES];
    sl_buffer_printf(out, "{\"_aws\":{\"Timestamp\":%lld,\"CloudWatchMetrics\":[{\"Namespace\":\"Sluice\",",
                     (long long)emf->epoch_ms);
    sl_buffer_printf(out, "\"Dimensions\":[[\"Function\"%s]],\"Metrics\":[", emf->route ? ",\"Route\"" : "");
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
        add_value(out, &emf->metrics[i]);
    for (size_t i = 0; i < emf->n_facts; i++)
        add_value(out, &emf->facts[i]);
    sl_buffer_add_str(out, "}\n");
}

void sl_emf_add(struct sl_buffer *out, const struct sl_emf *emf)
{
    struct sl_emf part = *emf;
    for (size_t done = 0; done < emf->n; done += part.n) {
        part.metrics = emf->metrics + done;
        part.n = emf->n - done < SL_EMF_METRICS ? emf->n - done : SL_EMF_METRICS;
        add_document(out, &part);
    }
}
