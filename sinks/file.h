/* Objects as files below a folder: `file:folder`.
 *
 * An object is written aside (in folder/.partial), synced, and renamed into place: a reader sees the whole
 * object or none, and a killed writer leaves nothing under the object's name. What killed writers left aside
 * is removed when the folder is opened again. */
#ifndef SL_SINKS_FILE_H
#define SL_SINKS_FILE_H

#include "sinks/target.h"

enum sl_status sl_file_open(struct sl_sinks *sinks, struct sl_span url, struct sl_object_port **out,
                            struct sl_error *error) SL_MUST_USE;

/* The text of the target alone; nothing is opened or made. */
enum sl_status sl_file_check(struct sl_span url, struct sl_error *error) SL_MUST_USE;

/* Makes the folder and those above it. SL_FATAL with the reason when it cannot be. */
enum sl_status sl_file_make_folder(const char *path, struct sl_error *error) SL_MUST_USE;

/* Writes everything; 0 or an errno. */
int sl_write_all(int fd, struct sl_span bytes) SL_MUST_USE;

#endif
