/* A handler that closes descriptors of its host ("what": "sockets", "all", "none", a number), in each call,
 * or when it is opened ("in": "open"); and says on standard output and in the file "told" when it is closed
 * itself. */
#include <sluice/handler.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct closes {
    const struct sl_host *host;
    const char *what, *in, *told;
};

static const struct sl_option options[] = {
    {.name = "what", .type = SL_OPTION_TEXT, .fallback = "none", .help = "sockets, all, none, a number"},
    {.name = "in", .type = SL_OPTION_TEXT, .fallback = "handle", .help = "open, handle"},
    {.name = "told", .type = SL_OPTION_TEXT, .flags = SL_OPTION_REQUIRED, .help = "a file"},
    {.type = SL_OPTION_END},
};

static void close_some(const struct closes *c)
{
    struct stat facts;
    for (int fd = 2; fd < 1024; fd++)
        if ((strcmp(c->what, "all") == 0 && fd > 2) || strtol(c->what, NULL, 10) == fd ||
            (strcmp(c->what, "sockets") == 0 && fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode)))
            close(fd);
}

static enum sl_status closes_open(const struct sl_host *host, struct sl_route *route, void **self,
                                  struct sl_error *error)
{
    struct closes *c = host->alloc(host->route_arena(route), sizeof(*c));
    (void)error;
    *c = (struct closes){host, host->option_text(route, "what").ptr, host->option_text(route, "in").ptr,
                         host->option_text(route, "told").ptr};
    *self = c;
    if (strcmp(c->in, "open") == 0)
        close_some(c);
    return SL_OK;
}

static enum sl_status closes_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct closes *c = self;
    (void)slice;
    (void)error;
    if (strcmp(c->in, "handle") == 0)
        close_some(c);
    return SL_OK;
}

static void closes_close(void *self)
{
    const struct closes *c = self;
    FILE *told = fopen(c->told, "a");
    if (told) {
        fprintf(told, "closed %ld\n", (long)getpid());
        fclose(told);
    }
    printf("a plugin's line\n");
    fflush(stdout);
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    .abi = SL_HANDLER_ABI,
    .name = "closes",
    .options = options,
    .open = closes_open,
    .handle = closes_handle,
    .close = closes_close,
};
