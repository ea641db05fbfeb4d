/* Values without some of what they hold: paths to leave out, "card.number", "lines[*].card".
 *
 * A path is names with dots between them; a name that holds '.' or '[' stands in backquotes; [*]
 * is every element of a list. What a path does not find stays as it is. */
#ifndef SL_HANDLERS_BUILTIN_TOOLKIT_PRUNE_H
#define SL_HANDLERS_BUILTIN_TOOLKIT_PRUNE_H

#include "handlers/handler.h"

/* A step of one path or several: a tree. */
struct sl_prune {
    struct sl_span name; /* absent: every element of a list */
    bool is_left_out;    /* a path ends here */
    struct sl_prune *below, *next;
};

/* Adds a path to the tree, of which `root` stands for the item; all of it lives in `arena`. NULL, or why it
 * is not a path: a clause. */
const char *sl_prune_add(const struct sl_host *host, struct sl_arena *arena, struct sl_prune *root,
                         struct sl_span path);

/* Writes the value's JSON, {"M":{...}}, without what the paths below `step` name, and returns where it ends.
 * There has to be room for as much as value_put writes. */
char *sl_prune_put(const struct sl_host *host, struct sl_arena *arena, const struct sl_prune *step,
                   struct sl_value v, char *at);

#endif
