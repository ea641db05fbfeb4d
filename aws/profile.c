/* The shared files of the AWS tools: sections and settings. */
#include "aws/profile.h"

#include "base/buffer.h"

#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define READ_BYTES 4096

struct sl_span sl_profile_read(const char *path, size_t max, struct sl_arena *arena)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* no stdio: its buffers would keep what was read */
    struct sl_buffer text;
    ssize_t n = 1;
    if (fd < 0)
        return sl_span(NULL, 0);
    sl_buffer_init(&text, max);
    text.is_secret = true;
    while (n > 0 && text.len < max) {
        size_t room = max - text.len < READ_BYTES ? max - text.len : READ_BYTES;
        n = read(fd, sl_buffer_reserve(&text, room), room);
        text.len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    struct sl_span out = sl_span(sl_arena_copy(arena, sl_buffer_span(&text)), text.len);
    sl_buffer_clean_up(&text);
    return n < 0 ? sl_span(NULL, 0) : out;
}

static struct sl_span load_one(const struct sl_vars *vars, struct sl_arena *arena, const char *var,
                               const char *name)
{
    const char *path = sl_vars_or(vars, var, NULL);
    const char *home = sl_vars_or(vars, "HOME", NULL);
    if (!path && !home)
        return sl_span(NULL, 0);
    return sl_profile_read(path ? path : sl_arena_printf(arena, "%s/.aws/%s", home, name),
                           SL_PROFILE_FILE_BYTES, arena);
}

void sl_profile_load(struct sl_profile *profile, const struct sl_vars *vars, struct sl_arena *arena)
{
    profile->config = load_one(vars, arena, "AWS_CONFIG_FILE", "config");
    profile->credentials = load_one(vars, arena, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    profile->name = sl_vars_or(vars, "AWS_PROFILE", sl_vars_or(vars, "AWS_DEFAULT_PROFILE", "default"));
}

static struct sl_span trim(struct sl_span text)
{
    while (text.len && (unsigned char)*text.ptr <= ' ')
        text = sl_span_from(text, 1);
    while (text.len && (unsigned char)text.ptr[text.len - 1] <= ' ')
        text.len--;
    return text;
}

static struct sl_span next_line(struct sl_span *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    struct sl_span line = sl_span(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = sl_span_from(*rest, end ? line.len + 1 : line.len);
    return line;
}

static bool is_section(struct sl_span line, const char *kind, const char *name)
{
    line = trim(line);
    if (line.len < 2 || line.ptr[0] != '[')
        return false;
    const char *end = memchr(line.ptr, ']', line.len);
    if (!end)
        return false;
    struct sl_span inside = trim(sl_span(line.ptr + 1, (size_t)(end - line.ptr - 1)));
    if (*kind) {
        if (!sl_span_starts(inside, sl_span_str(kind)))
            return false;
        struct sl_span rest = sl_span_from(inside, strlen(kind));
        if (rest.len == 0 || (*rest.ptr != ' ' && *rest.ptr != '\t'))
            return false;
        inside = trim(rest);
    }
    return sl_span_is(inside, name);
}

/* The text between the section's line and the next section; absent when there is no such section. */
static struct sl_span find_section(struct sl_span text, const char *kind, const char *name)
{
    struct sl_span rest = text;
    while (rest.len) {
        struct sl_span line = next_line(&rest);
        if (!is_section(line, kind, name))
            continue;
        struct sl_span body = rest;
        while (rest.len) {
            const char *begin = rest.ptr;
            if (trim(next_line(&rest)).len && *begin == '[')
                return sl_span(body.ptr, (size_t)(begin - body.ptr));
        }
        return body;
    }
    return sl_span(NULL, 0);
}

/* Splits "key = value"; a comment or an empty line has no key. */
static struct sl_span split(struct sl_span line, struct sl_span *value)
{
    line = trim(line);
    const char *equals = line.len ? memchr(line.ptr, '=', line.len) : NULL;
    if (!equals || *line.ptr == '#' || *line.ptr == ';')
        return sl_span(NULL, 0);
    struct sl_span key = sl_span(line.ptr, (size_t)(equals - line.ptr));
    struct sl_span text = sl_span_from(line, key.len + 1);
    for (size_t i = 1; i < text.len; i++) /* a blank comes before a comment after the value */
        if ((text.ptr[i] == '#' || text.ptr[i] == ';') && (text.ptr[i - 1] == ' ' || text.ptr[i - 1] == '\t'))
            text.len = i;
    *value = trim(text);
    return trim(key);
}

static bool is_key(struct sl_span key, const char *name)
{
    return key.len == strlen(name) && strncasecmp(key.ptr, name, key.len) == 0;
}

/* Lines that begin with a blank belong to the setting above them, which `group` names ("" for none). */
static struct sl_span find_key(struct sl_span section, const char *group, const char *name)
{
    bool inside = !*group;
    struct sl_span rest = section, value = {NULL, 0};
    while (rest.len) {
        struct sl_span line = next_line(&rest);
        bool nested = line.len && (*line.ptr == ' ' || *line.ptr == '\t');
        struct sl_span key = split(line, &value);
        if (!key.len)
            continue;
        if (!nested && *group)
            inside = is_key(key, group) && value.len == 0;
        else if (inside && nested == (*group != '\0') && is_key(key, name))
            return value;
    }
    return sl_span(NULL, 0);
}

static struct sl_span config_section(const struct sl_profile *profile, const char *name)
{
    struct sl_span section = find_section(profile->config, "profile", name);
    if (!section.ptr && strcmp(name, "default") == 0)
        section = find_section(profile->config, "", name);
    return section;
}

bool sl_profile_has(const struct sl_profile *profile, const char *name)
{
    return find_section(profile->credentials, "", name).ptr || config_section(profile, name).ptr;
}

struct sl_span sl_profile_get(const struct sl_profile *profile, const char *name, const char *key)
{
    struct sl_span value = find_key(find_section(profile->credentials, "", name), "", key);
    return value.ptr ? value : find_key(config_section(profile, name), "", key);
}

struct sl_span sl_profile_endpoint(const struct sl_profile *profile, const char *service)
{
    char name[128];
    struct sl_span services = sl_profile_get(profile, profile->name, "services");
    if (!services.len || services.len >= sizeof(name))
        return sl_span(NULL, 0);
    snprintf(name, sizeof(name), "%.*s", SL_ARG(services));
    return find_key(find_section(profile->config, "services", name), service, "endpoint_url");
}
