/* Files and standard input, one after the other. */
#include "base/json_write.h"
#include "data/source/ahead.h"
#include "data/source/source_private.h"

struct files {
    struct sl_source source;
    struct sl_source_files what;
    size_t at; /* the file that is being read, or the next one */
    bool is_open;
    struct sl_text text;
    struct sl_text_from skip; /* of the first file that is opened */
};

static const char *name_of(const struct files *f)
{
    return f->what.names[f->at];
}

static enum sl_status open_next(struct files *f, struct sl_error *error)
{
    struct sl_reader *reader;
    const struct sl_text_options options = {
        .name = name_of(f),
        .clock = f->source.options.sinks->clock,
        .ttl_attribute = f->source.options.ttl_attribute,
        .document_bytes = f->what.document_bytes ? f->what.document_bytes : SL_SOURCE_DOCUMENT_BYTES,
        .skip = f->skip};
    enum sl_status status = SL_OK;
    int fd = f->what.open_files ? f->what.open_files[f->at] : -1;
    if (f->what.texts && f->what.texts[f->at].ptr)
        reader = sl_reader_of_text(f->what.texts[f->at], NULL);
    else if (fd >= 0)
        status = sl_reader_open_again(fd, name_of(f), &reader, error);
    else
        status = sl_reader_open(name_of(f), &reader, error);
    if (status != SL_OK)
        return status;
    if (f->what.reads_ahead)
        reader = sl_reader_ahead(reader);
    sl_text_open(&f->text, &options, reader);
    f->skip = (struct sl_text_from){.byte = 0};
    f->is_open = true;
    return SL_OK;
}

static void add_place(const struct files *f, const struct sl_call *call, struct sl_source_piece *out)
{
    struct sl_buffer place;
    sl_source_place_begin(&place, call, "files", sl_span_str(f->what.names[0]));
    sl_json_add_integer(&place, "file", (int64_t)f->at);
    sl_source_place_add_from(&place, f->is_open ? &f->text.from : &f->skip);
    out->place = sl_source_place_end(&place);
}

static enum sl_status pull(struct sl_source *source, size_t max_bytes, const struct sl_call *call,
                           struct sl_source_piece *out, struct sl_error *error)
{
    struct files *f = (struct files *)source;
    enum sl_status status = SL_OK;
    if (f->at < f->what.n) {
        if (!f->is_open)
            status = open_next(f, error);
        if (status == SL_OK)
            status = sl_source_pull_text(source, &f->text, max_bytes, call, out, error);
        out->file = f->at;
    }
    if (status == SL_OK && f->is_open && f->text.is_at_end) {
        sl_text_close(&f->text);
        f->is_open = false;
        f->at++;
    }
    if (status != SL_OK)
        return status;
    out->is_last = f->at == f->what.n;
    add_place(f, call, out);
    return SL_OK;
}

static enum sl_status skip_bad(struct sl_source *source, const struct sl_call *call, bool *goes_on,
                               struct sl_error *error)
{
    struct files *f = (struct files *)source;
    return f->is_open ? sl_text_skip_bad(&f->text, call, goes_on, error) : SL_OK;
}

static void close_files(struct sl_source *source)
{
    sl_text_close(&((struct files *)source)->text);
}

static enum sl_status go_on(struct files *f, struct sl_error *error)
{
    bool is_there;
    uint64_t at = 0;
    enum sl_status status =
        sl_source_place_check(&f->source, "files", sl_span_str(f->what.names[0]), &is_there, error);
    if (status != SL_OK || !is_there)
        return status;
    bool is_whole =
        sl_source_place_number(&f->source, "file", &at) && sl_source_place_from(&f->source, &f->skip);
    if (!is_whole || at > f->what.n)
        return sl_source_place_bad(&f->source, error);
    f->at = (size_t)at;
    return SL_OK;
}

enum sl_status sl_source_open_files(const struct sl_source_options *options,
                                    const struct sl_source_files *what, const struct sl_call *call,
                                    struct sl_source **out, struct sl_error *error)
{
    (void)call;
    struct files *f = sl_source_new(options, sizeof(*f));
    f->source.pull = pull;
    f->source.skip_bad = skip_bad;
    f->source.close = close_files;
    f->what = *what;
    f->source.facts.name = what->n == 1 ? what->names[0] : "files";
    enum sl_status status = go_on(f, error);
    if (status != SL_OK)
        sl_source_close(&f->source);
    else
        *out = &f->source;
    return status;
}
