/* Prints the handlers that the routes of a configuration name, for plugins.sh: routes FILE. A line for each
 * route: its number, a tab, its handler. A file without routes has no line. What is not JSON is refused with
 * the line of the file. It runs on the machine that builds. */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#define FILE_BYTES (16u << 20) /* far above any configuration: all of them are in a zip of 50 MB at most */

static struct sl_span read_file(const char *path, char *bytes)
{
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(bytes, 1, FILE_BYTES, file) : 0;
    if (!file || ferror(file) || n == FILE_BYTES) {
        fprintf(stderr, "package: %s cannot be read, or has more than %u bytes\n", path, FILE_BYTES);
        exit(1);
    }
    fclose(file);
    return sl_span(bytes, n);
}

static size_t line_of(struct sl_span text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < text.len; i++)
        line += text.ptr[i] == '\n';
    return line;
}

/* Prints the route's handler; false if there is no such route. A route without a handler is bootstrap's to
 * refuse. */
static bool print_route(struct sl_span text, unsigned i)
{
    char path[40];
    snprintf(path, sizeof(path), "routes[%u]", i);
    if (!sl_json_find(text, path).ptr)
        return false;
    snprintf(path, sizeof(path), "routes[%u].handler", i);
    struct sl_span handler = sl_json_find(text, path);
    if (handler.ptr && handler.len > 2 && handler.ptr[0] == '"')
        printf("%u\t%.*s\n", i, (int)handler.len - 2, handler.ptr + 1);
    return true;
}

int main(int argc, char **argv)
{
    static char bytes[FILE_BYTES];
    if (argc != 2)
        return 2;
    struct sl_span text = read_file(argv[1], bytes);
    struct sl_error error = {0};
    if (sl_json_check(text, &error) != SL_OK) {
        fprintf(stderr, "package: %s: line %zu: %s\n", argv[1], line_of(text, error.offset), error.text);
        return 1;
    }
    for (unsigned i = 0; print_route(text, i); i++)
        ;
    return 0;
}
