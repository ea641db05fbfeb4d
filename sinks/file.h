/* Objects as files below a folder: `file:folder`.
 *
 * An object is written to folder/.partial, synced, and renamed into place: a reader sees the whole object or
 * none, and a killed writer leaves nothing under the object's name. Any number of processes, containers and
 * machines may write to one folder. What killed writers left in .partial is removed when the folder is opened
 * again, an hour after their last write. */
#ifndef SL_SINKS_FILE_H
#define SL_SINKS_FILE_H

#include "sinks/target.h"

enum sl_status sl_file_open(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                            struct sl_error *error) SL_MUST_USE;

/* The folder at `path` as it is, for reading alone: nothing is created in it, and whatever is written is
 * refused. SL_REJECT: it is not there, or it is no folder. */
enum sl_status sl_file_open_to_read(const char *path, struct sl_object_port **out,
                                    struct sl_error *error) SL_MUST_USE;

/* For sinks/rewrite.h: whether it is a folder that may be written to; and another content for a file. */
bool sl_file_is(const struct sl_object_port *port);
struct sl_object_rewrite;
void sl_file_replace(struct sl_object_port *port, const struct sl_object_rewrite *rewrite,
                     struct sl_result *result, const struct sl_call *call);

/* The text of the target alone; nothing is opened or created. */
enum sl_status sl_file_check(struct sl_span url, struct sl_error *error) SL_MUST_USE;

#endif
