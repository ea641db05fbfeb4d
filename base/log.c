/* Log lines and metrics. */
#include "base/log.h"

#include "base/array.h"
#include "base/clean.h"
#include "base/json_write.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

static const char *const level_names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"};

void sl_log_init(struct sl_log *log, int fd, enum sl_level level, enum sl_log_format format,
                 struct sl_clock *clock)
{
    *log = (struct sl_log){.level = level, .format = format, .fd = fd, .clock = clock};
    sl_buffer_init(&log->line, SL_LOG_LINE_BYTES);
    sl_buffer_init(&log->text, SL_LOG_LINE_BYTES);
}

void sl_log_clean_up(struct sl_log *log)
{
    if (!log)
        return;
    sl_buffer_clean_up(&log->line);
    sl_buffer_clean_up(&log->text);
}

enum sl_level sl_log_level(const char *name, enum sl_level otherwise)
{
    if (!name)
        return otherwise;
    for (size_t i = 0; i < SL_COUNT(level_names); i++)
        if (strcasecmp(name, level_names[i]) == 0)
            return (enum sl_level)i;
    return strcasecmp(name, "FATAL") == 0 ? SL_ERROR : otherwise;
}

/* A frozen or full pipe may take part of a line; what is left follows, so a line stays whole. */
static bool put(const struct sl_log *log, const char *text, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(log->fd, text + done, bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* So much of the text as goes out in one piece: whole lines that fit into what a pipe takes at once, so that
 * lines of several processes do not mix; or one line that does not. */
static size_t piece_of(struct sl_span text)
{
    if (text.len <= PIPE_BUF)
        return text.len;
    const char *end = memrchr(text.ptr, '\n', PIPE_BUF);
    end = end ? end : memchr(text.ptr, '\n', text.len);
    return end ? (size_t)(end - text.ptr) + 1 : text.len;
}

/* Writes out the lines in log->line. */
static void put_lines(struct sl_log *log)
{
    struct sl_span rest = sl_buffer_span(&log->line);
    while (log->fd >= 0 && rest.len) {
        size_t n = piece_of(rest);
        if (!put(log, rest.ptr, n))
            break;
        rest = sl_span_from(rest, n);
    }
}

/* A line that is cut still ends, so that the next one is whole. */
static void put_line(struct sl_log *log)
{
    struct sl_buffer *line = &log->line;
    line->len = line->len < line->max ? line->len : line->max - 1;
    line->failed = false;
    sl_buffer_add_char(line, '\n');
    put_lines(log);
}

/* What must not be shown becomes an escape: \n, \x1b, \u202e. A value's newline must not begin a line of its
 * own, and what is not UTF-8 is shown byte by byte. */
static void add_escape(struct sl_buffer *line, const char *p, const char *next)
{
    const unsigned char *c = (const unsigned char *)p;
    if (next - p == 3)
        sl_buffer_printf(line, "\\u%04x", (c[0] & 0xFu) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu));
    else if (next - p == 2)
        sl_buffer_printf(line, "\\u%04x", (c[0] & 0x1Fu) << 6 | (c[1] & 0x3Fu));
    else if (*p == '\n')
        sl_buffer_add_str(line, "\\n");
    else
        sl_buffer_printf(line, "\\x%02x", *c);
}

/* `kept`: characters that the line's own form escapes. */
static void add_text(struct sl_buffer *line, struct sl_span text, const char *kept)
{
    for (const char *p = text.ptr, *end = sl_span_end(text); p < end;) {
        bool shown;
        const char *next = sl_clean_next(p, end, &shown);
        if (shown || (*p && strchr(kept, *p)))
            sl_buffer_add(line, p, (size_t)(next - p));
        else
            add_escape(line, p, next);
        p = next;
    }
}

/* JSON has its own escapes for a text's layout (a plugin's stack trace); all else is made clean first. */
static void add_member(struct sl_log *log, const char *name, struct sl_span text)
{
    sl_buffer_reset(&log->text);
    add_text(&log->text, text, "\n\t");
    sl_json_add_member(&log->line, name, sl_buffer_span(&log->text));
}

static void begin_json(struct sl_log *log, enum sl_level level)
{
    char time[SL_TIME_BYTES];
    sl_time_text(log->clock->wall_ns(log->clock), time);
    sl_buffer_add_char(&log->line, '{');
    sl_json_add_member(&log->line, "timestamp", sl_span_str(time));
    sl_json_add_member(&log->line, "level", sl_span_str(level_names[level]));
    if (log->request_id[0])
        add_member(log, "requestId", sl_span_str(log->request_id));
    if (log->route)
        add_member(log, "route", sl_span_str(log->route));
}

static void begin_text(struct sl_log *log, enum sl_level level)
{
    sl_buffer_printf(&log->line, "%s", level_names[level]);
    if (log->request_id[0]) {
        sl_buffer_add_char(&log->line, ' ');
        add_text(&log->line, sl_span_str(log->request_id), "");
    }
    if (log->route) {
        sl_buffer_add_str(&log->line, " [");
        add_text(&log->line, sl_span_str(log->route), "");
        sl_buffer_add_char(&log->line, ']');
    }
    sl_buffer_add_char(&log->line, ' ');
}

/* `members`: of the JSON form, each with a comma before it. */
static void write_line(struct sl_log *log, enum sl_level level, struct sl_span message,
                       struct sl_span members)
{
    sl_buffer_reset(&log->line);
    if (log->format == SL_LOG_JSON) {
        begin_json(log, level);
        add_member(log, "message", message);
        sl_buffer_add_span(&log->line, members);
        sl_buffer_add_char(&log->line, '}');
    } else {
        begin_text(log, level);
        add_text(&log->line, message, "");
    }
    put_line(log);
}

void sl_log_facts(struct sl_log *log, enum sl_level level, struct sl_span message, struct sl_span members)
{
    if (level >= log->level)
        write_line(log, level, message, members);
}

void sl_log_write(struct sl_log *log, enum sl_level level, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n >= 0 && level < SL_OFF)
        write_line(log, level, sl_span_str(text), SL_LIT(""));
}

struct sl_buffer *sl_log_metrics_begin(struct sl_log *log)
{
    sl_buffer_reset(&log->line);
    return log->no_metrics ? NULL : &log->line;
}

void sl_log_metrics_end(struct sl_log *log)
{
    put_lines(log);
}

const char *sl_log_metrics_level(const struct sl_log *log)
{
    if (log->format != SL_LOG_JSON || log->level <= SL_INFO)
        return NULL;
    return log->level == SL_ERROR ? "FATAL" : level_names[log->level];
}

void sl_log_metric(struct sl_log *log, const char *function, const char *name, double value, const char *unit)
{
    const struct sl_emf_metric metric = {name, unit, value};
    struct sl_buffer *line = sl_log_metrics_begin(log);
    if (!line)
        return;
    sl_emf_add(line, &(struct sl_emf){.epoch_ms = log->clock->wall_ns(log->clock) / 1000000,
                                      .function = function,
                                      .route = log->route,
                                      .level = sl_log_metrics_level(log),
                                      .metrics = &metric,
                                      .n = 1});
    sl_log_metrics_end(log);
}
