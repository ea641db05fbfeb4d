/* No secret stays in memory: after the keys were renewed, and after everything was closed, the process's
 * memory is searched for what each source handed out. The server and the files are another process's, and the
 * search never holds the texts that it looks for. */
#include "tests/support/test.h"

#include "base/clock.h"
#include "sinks/target.h"
#include "tests/support/scripted_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is handed out; a letter of each is computed when it is needed. */
enum canary {
    CONTAINER_TOKEN,
    METADATA_TOKEN,
    WEB_TOKEN,
    FILE_SECRET,
    FILE_TOKEN,
    SECRET,
    TOKEN,
    N_CANARIES
};
static const char *const names[] = {"the container's token", "the metadata's token", "the web identity token",
                                    "a profile's secret",    "a profile's token",    "the secret key",
                                    "the session token"};
#define GENERATIONS 4
#define WINDOW      14 /* bytes in a row that are looked for, at some places of each */

static size_t length_of(enum canary c)
{
    return c == TOKEN || c == FILE_TOKEN || c == WEB_TOKEN ? 700 : 40;
}

static char letter(enum canary c, size_t generation, size_t i)
{
    uint64_t x = ((uint64_t)c << 40) + ((uint64_t)generation << 32) + i + 1;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[(x >> 32) % 62];
}

/* ---- the other process ---- */

static char *write_out(char *out, enum canary c, size_t generation)
{
    for (size_t i = 0; i < length_of(c); i++)
        *out++ = letter(c, generation, i);
    *out = '\0';
    return out;
}

struct world {
    size_t generation;
    char body[8192];
};

static void answer(void *arg, const struct scripted_request *request, struct scripted_reply *reply)
{
    struct world *w = arg;
    char secret[64], token[1024];
    bool is_sts = request->body.len && memmem(request->body.ptr, request->body.len, "Action=AssumeRole", 17);
    bool has_web = is_sts && memmem(request->body.ptr, request->body.len, "WithWebIdentity", 15);
    *reply = (struct scripted_reply){.status = 200, .body = SL_LIT("{}"), .with_crc = true};
    if (strcmp(request->path, "/latest/api/token") == 0) {
        write_out(w->body, METADATA_TOKEN, 0);
    } else if (strcmp(request->path, "/latest/meta-data/iam/security-credentials/") == 0) {
        snprintf(w->body, sizeof(w->body), "my-role");
    } else if (is_sts || strcmp(request->path, "/keys") == 0 || strstr(request->path, "my-role")) {
        w->generation++;
        write_out(secret, SECRET, w->generation);
        write_out(token, TOKEN, w->generation);
        char time[64]; /* an hour later each time */
        size_t hour = 21 + w->generation;
        snprintf(time, sizeof(time), "2026-11-%zuT%02zu:04:00Z", 20 + hour / 24, hour % 24);
        if (is_sts)
            snprintf(
                w->body, sizeof(w->body),
                "<AssumeRole%sResponse><Credentials><AccessKeyId>ASIAX</AccessKeyId><SecretAccessKey>%s"
                "</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>"
                "</AssumeRole%sResponse>",
                has_web ? "WithWebIdentity" : "", secret, token, time, has_web ? "WithWebIdentity" : "");
        else
            snprintf(w->body, sizeof(w->body),
                     "{\"AccessKeyId\":\"ASIAX\",\"SecretAccessKey\":\"%s\",\"Token\":\"%s\",\"Expiration\":"
                     "\"%s\"}",
                     secret, token, time);
    } else {
        return;
    }
    reply->with_crc = false;
    reply->body = sl_span_str(w->body);
}

static void write_files(const char *folder)
{
    char path[600], text[4096], *end;
    snprintf(path, sizeof(path), "%s/token", folder);
    write_out(text, CONTAINER_TOKEN, 0);
    test_write(path, text);
    snprintf(path, sizeof(path), "%s/web", folder);
    write_out(text, WEB_TOKEN, 0);
    test_write(path, text);
    snprintf(path, sizeof(path), "%s/credentials", folder);
    end = stpcpy(text, "[base]\naws_access_key_id = AKIAX\naws_secret_access_key = ");
    end = stpcpy(write_out(end, FILE_SECRET, 0), "\naws_session_token = ");
    end = stpcpy(write_out(end, FILE_TOKEN, 0), "\n[role]\nrole_arn = arn:aws:iam::123456789012:role/r\n"
                                                "source_profile = base\n");
    test_write(path, text);
}

/* The server's process and its URL. */
static pid_t start(const char *folder, char *url, size_t room)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
        dup2(STDOUT_FILENO, STDERR_FILENO);
        static struct world world;
        struct scripted_server *server = scripted_server_start(answer, &world);
        const char *text = scripted_server_url(server);
        write_files(folder);
        if (write(fds[1], text, strlen(text) + 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0 && read(fds[0], url, room) > 0);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

/* ---- the search ---- */

static bool is_at(const char *p, enum canary c, size_t generation, size_t from)
{
    for (size_t i = 0; i < WINDOW; i++)
        if (p[i] != letter(c, generation, from + i))
            return false;
    return true;
}

struct wanted {
    enum canary canary;
    size_t generation, from;
};

/* The pairs of letters with which they begin. */
static bool begins[256][256];

static size_t find_wanted(struct wanted *list, size_t least, size_t most)
{
    size_t n = 0;
    memset(begins, 0, sizeof(begins));
    for (enum canary c = 0; c < N_CANARIES; c++)
        for (size_t g = c >= SECRET ? least : 0; g <= (c >= SECRET ? most : 0); g++)
            for (size_t from = 0; from + WINDOW <= length_of(c); from += length_of(c) / 3)
                list[n++] = (struct wanted){c, g, from};
    return n;
}

/* Where in a piece of memory; NULL: nowhere. */
static const struct wanted *look(const char *p, size_t len, const struct wanted *list, size_t n)
{
    for (size_t i = 0; i + WINDOW <= len; i++)
        for (size_t k = 0; k < n && begins[(unsigned char)p[i]][(unsigned char)p[i + 1]]; k++)
            if (is_at(p + i, list[k].canary, list[k].generation, list[k].from))
                return &list[k];
    return NULL;
}

/* Looks for keys of the generations from `least` to `most`, and for all other secrets when `least` is 1. */
static const struct wanted *search(size_t least, size_t most, const char *of)
{
    enum { PIECE = 256 * 1024 };
    static struct wanted list[200];
    static char piece[PIECE];
    size_t n = find_wanted(list, least, most);
    for (size_t i = 0; i < n; i++) {
        const struct wanted *w = &list[i];
        char first = letter(w->canary, w->generation, w->from);
        begins[(unsigned char)first][(unsigned char)letter(w->canary, w->generation, w->from + 1)] = true;
    }
    FILE *maps = fopen("/proc/self/maps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    const struct wanted *found = NULL;
    char line[600], rights[8];
    unsigned long begin, end;
    assert_true(maps && memory >= 0);
    while (!found && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || rights[1] != 'w')
            continue;
        for (unsigned long at = begin; !found && at < end; at += PIECE - WINDOW) {
            ssize_t got = pread(memory, piece, end - at < PIECE ? end - at : PIECE, (off_t)at);
            bool is_own = at < (uintptr_t)(piece + PIECE) && at + PIECE > (uintptr_t)piece;
            if (got > 0 && !is_own)
                found = look(piece, (size_t)got, list, n);
            if (found)
                print_message("%s: %s, generation %zu, is in %s", of, names[found->canary], found->generation,
                              line);
            explicit_bzero(piece, sizeof(piece));
        }
    }
    fclose(maps);
    close(memory);
    return found;
}

/* ---- sources ---- */

static const struct setting {
    const char *name, *vars[8]; /* "@" stands for the server, "~" for the folder */
} settings[] = {
    {"container",
     {"AWS_CONTAINER_CREDENTIALS_FULL_URI=@/keys", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=~/token"}},
    {"instance", {"AWS_EC2_METADATA_SERVICE_ENDPOINT=@"}},
    {"web identity", {"AWS_WEB_IDENTITY_TOKEN_FILE=~/web", "AWS_ROLE_ARN=arn:aws:iam::123456789012:role/r"}},
    {"a profile's role", {"AWS_SHARED_CREDENTIALS_FILE=~/credentials", "AWS_PROFILE=role"}},
};

struct client {
    struct sl_clock_virtual clock;
    struct sl_vars vars;
    char text[12][700];
    const char *list[13];
    struct sl_sinks sinks;
    struct sl_call call;
};

static void open_client(struct client *c, const struct setting *setting, const char *url, const char *folder)
{
    size_t n = 0;
    memset(c, 0, sizeof(*c));
    sl_clock_virtual_init(&c->clock, (int64_t)1795208640 * 1000000000, 42); /* 2026-11-20T21:04:00Z */
    for (; setting->vars[n]; n++) {
        const char *v = setting->vars[n], *mark = strpbrk(v, "@~");
        snprintf(c->text[n], sizeof(c->text[n]), "%.*s%s%s", (int)(mark ? mark - v : (ptrdiff_t)strlen(v)), v,
                 !mark          ? ""
                 : *mark == '@' ? url
                                : folder,
                 mark ? mark + 1 : "");
    }
    snprintf(c->text[n++], sizeof(c->text[0]), "AWS_ENDPOINT_URL=%s", url);
    snprintf(c->text[n++], sizeof(c->text[0]), "AWS_REGION=us-east-1");
    snprintf(c->text[n++], sizeof(c->text[0]), "HOME=/nowhere");
    for (size_t i = 0; i < n; i++)
        c->list[i] = c->text[i];
    c->vars.list = c->list;
    sl_sinks_init(&c->sinks, &c->clock.clock, NULL, &c->vars);
    c->call = (struct sl_call){sl_arena_new(4096), INT64_MAX};
}

static void put(struct client *c)
{
    const struct sl_table_op op = {.verb = SL_TABLE_PUT,
                                   .key = SL_LIT("{\"PK\":{\"S\":\"a\"}}"),
                                   .item = SL_LIT("{\"PK\":{\"S\":\"a\"}}")};
    struct sl_table_port *table = NULL;
    struct sl_error error = SL_NO_ERROR;
    struct sl_result result;
    assert_int_equal(sl_target_table(&c->sinks, SL_LIT("dynamodb://tbl"), &table, &error), SL_OK);
    table->apply(table, &op, 1, &result, &c->call);
    if (result.status != SL_OK)
        fail_msg("%s: %s", result.code, result.text ? result.text : "");
    table->close(table);
    sl_arena_reset(c->call.arena);
}

static void check(const struct setting *setting)
{
    char url[128], *folder = test_folder();
    static struct client c;
    pid_t pid = start(folder, url, sizeof(url));
    open_client(&c, setting, url, folder);
    put(&c);
    assert_non_null(search(1, 1, "(as it should be)")); /* the keys in use: the search finds what is there */
    for (size_t generation = 2; generation <= GENERATIONS; generation++) {
        c.clock.ms += 3600 * 1000; /* the keys end */
        put(&c);
    }
    /* The keys before the present ones are kept: what they signed may be under way. */
    bool stays = search(1, GENERATIONS - 2, setting->name) != NULL &&
                 strcmp(setting->name, "a profile's role") != 0; /* the profiles' text is kept */
    sl_sinks_clean_up(&c.sinks);
    sl_arena_destroy(c.call.arena);
    bool is_left = search(1, GENERATIONS, setting->name) != NULL;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    test_folder_remove(folder);
    assert_false(stays);
    assert_false(is_left);
}

static void no_secret_stays_in_memory(void **state)
{
    (void)state;
#ifdef SL_SANITIZED
    skip(); /* its shadow has no end */
#endif
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        check(&settings[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_secret_stays_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
