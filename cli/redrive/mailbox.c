/* Chooses the mailbox by the operand's form. */
#include "cli/redrive/mailbox.h"

#include "base/array.h"
#include "base/span.h"

#include <string.h>
#include <sys/stat.h>

struct sl_mail *sl_mailbox_add(struct sl_mail_page *page, struct sl_arena *arena)
{
    struct sl_mail *mail = &SL_PUSH_IN(arena, page->list, page->n, page->room);
    *mail = (struct sl_mail){0};
    return mail;
}

void sl_mailbox_keep_nothing(struct sl_mailbox *box)
{
    (void)box;
}

enum sl_status sl_mailbox_finish_nothing(struct sl_mailbox *box, struct sl_error *error)
{
    (void)box;
    (void)error;
    return SL_OK;
}

enum sl_status sl_mailbox_open(const struct sl_mailbox_options *options, const char *name,
                               struct sl_mailbox **out, struct sl_error *error)
{
    struct sl_span text = sl_span_str(name);
    struct stat st;
    if (sl_span_starts(text, SL_LIT("sqs:")))
        return sl_mailbox_queue(options, name, out, error);
    if (sl_span_starts(text, SL_LIT("s3://")) || sl_span_starts(text, SL_LIT("file:")))
        return sl_mailbox_objects(options, name, out, error);
    if (strstr(name, "://"))
        return sl_fail(error, SL_REJECT, "Usage",
                       "%s: is none of sqs://QUEUE, s3://BUCKET/PREFIX, a folder, a file or -", name);
    bool is_folder = stat(name, &st) == 0 && S_ISDIR(st.st_mode);
    return is_folder ? sl_mailbox_objects(options, name, out, error)
                     : sl_mailbox_text(options, name, out, error);
}
