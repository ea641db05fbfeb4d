/* Keeps the notes of invocations until somebody has read them. */
#include "live/sandbox/notes.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static char *copy(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    char *copied = strdup(text ? text : "");
    if (!copied)
        sl_die("out of memory: a note of an invocation");
    return copied;
}

static void destroy(struct sl_note *note)
{
    free(note->request_id);
    free(note->route);
    free(note->id);
    free(note->code);
    free(note->text);
}

static struct sl_note *append(struct sl_notes *notes)
{
    return &SL_PUSH(notes->list, notes->n, notes->room, "notes of invocations");
}

void sl_notes_add(struct sl_notes *notes, const json_t *report)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(report, "notes"), i, one)
    {
        *append(notes) = (struct sl_note){
            .is_parked = json_is_true(json_object_get(one, "parked")),
            .request_id = copy(report, "requestId"),
            .route = copy(one, "route"),
            .id = copy(one, "id"),
            .code = copy(one, "code"),
            .text = copy(one, "message"),
        };
    }
}

void sl_notes_forget(struct sl_notes *notes, const char *request_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < notes->n; i++) {
        if (strcmp(notes->list[i].request_id, request_id) == 0)
            destroy(&notes->list[i]);
        else
            notes->list[kept++] = notes->list[i];
    }
    notes->n = kept;
}

void sl_notes_clean_up(struct sl_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        destroy(&notes->list[i]);
    free(notes->list);
    *notes = (struct sl_notes){0};
}
