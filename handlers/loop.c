#include "handlers/loop.h"

#include "handlers/text.h"

static struct sl_span parameter(struct sl_span url, const char *name)
{
    size_t n = strlen(name);
    const char *end = url.ptr + url.len;
    for (const char *at = memchr(url.ptr, '?', url.len); at && at + 1 + n <= end;) {
        const char *value = at + 1 + n, *next = memchr(at + 1, '&', (size_t)(end - at - 1));
        if (memcmp(at + 1, name, n) == 0)
            return (struct sl_span){value, (size_t)((next ? next : end) - value)};
        at = next;
    }
    return (struct sl_span){NULL, 0};
}

void sl_loop_init(struct sl_loop *loop, struct sl_span url)
{
    const char *slashes = memmem(url.ptr, url.len, "://", 3);
    *loop = (struct sl_loop){.is_local = !slashes};
    if (loop->is_local) {
        loop->table = parameter(url, "table=");
        return;
    }
    loop->table = (struct sl_span){slashes + 3, strcspn(slashes + 3, "/?")};
    loop->region = parameter(url, "region=");
}

bool sl_loop_closes(const struct sl_loop *loop, const struct sl_host *host, const struct sl_record *r)
{
    if (loop->is_local || !sl_text_eq(loop->table, host->record_text(r, SL_FIELD_TABLE)))
        return false;
    return loop->region.len == 0 || sl_text_eq(loop->region, host->record_text(r, SL_FIELD_REGION));
}
