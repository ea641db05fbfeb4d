/* JSON made wrong at one place: every value of a text can be left out, doubled or replaced. */
#ifndef SL_TESTS_SUPPORT_MUTATE_H
#define SL_TESTS_SUPPORT_MUTATE_H

#include <jansson.h>
#include <stdbool.h>

enum json_change { JSON_REPLACED, JSON_LEFT_OUT, JSON_DOUBLED };

struct json_mutation {
    int node; /* counted down while the tree is walked */
    enum json_change change;
    json_t *with;
    char path[200]; /* of the node that was changed */
    const json_t *was;
};

/* A new value; NULL when the whole was left out. */
json_t *json_mutate(const json_t *value, struct json_mutation *m);

/* How many nodes a mutation can name. */
int json_count(const json_t *value);

#endif
