/* The shared files of the AWS tools: lines, sections and settings.
 *
 * They are read as the SDKs read them (by the cases of smithy-rs): what is there twice is merged, and the
 * last one counts; [profile default] takes the place of [default]; a section or a setting whose name cannot
 * be one is passed over. Any other line is a mistake, and the file is refused (sl_profile_check). */
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

/* ---- lines ---- */

enum kind { SECTION, SETTING, CONTINUED };

struct line {
    enum kind kind;
    struct sl_span
        name; /* of the section, as far as it is one's: absent otherwise. Of a setting, and of one below it */
    struct sl_span value; /* of a setting; a continued line's whole text */
    struct sl_span below; /* the value of a setting below another */
    struct sl_span type;  /* of a section: "profile" of [profile a], "" of [a] */
};

struct lines {
    struct sl_span rest;
    unsigned number; /* of the line, from 1 */
    bool in_section, in_setting;
    bool is_group;       /* the setting has no value: the lines below it are settings of their own */
    const char *problem; /* of this line; NULL: none */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_comment(char c)
{
    return c == '#' || c == ';';
}

static bool is_name(struct sl_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_plain && (c == '\0' || !strchr("-_/.%@:+", c)))
            return false;
    }
    return text.len > 0;
}

/* [profile a] # comment */
static void read_section(struct lines *l, struct sl_span text, struct line *out)
{
    const char *end = memchr(text.ptr, ']', text.len);
    struct sl_span inside = trim(sl_span(text.ptr + 1, end ? (size_t)(end - text.ptr) - 1 : text.len - 1));
    struct sl_span after = end ? trim(sl_span_from(text, (size_t)(end - text.ptr) + 1)) : sl_span("", 0);
    size_t word = 0;
    *out = (struct line){.kind = SECTION, .type = SL_LIT("")};
    l->in_section = true;
    l->in_setting = false;
    if (!end || (after.len && !is_comment(*after.ptr)))
        l->problem = "a section's name must end with ']'";
    while (word < inside.len && !is_blank(inside.ptr[word]))
        word++;
    if (word < inside.len) {
        out->type = sl_span(inside.ptr, word);
        inside = trim(sl_span_from(inside, word));
    }
    if (!l->problem && is_name(inside))
        out->name = inside;
}

/* A blank goes before a comment after a value. */
static struct sl_span value_of(struct sl_span text)
{
    for (size_t i = 1; i < text.len; i++)
        if (is_comment(text.ptr[i]) && is_blank(text.ptr[i - 1]))
            text.len = i;
    return trim(text);
}

static void read_setting(struct lines *l, struct sl_span text, struct line *out)
{
    const char *equals = memchr(text.ptr, '=', text.len);
    struct sl_span key = trim(sl_span(text.ptr, equals ? (size_t)(equals - text.ptr) : 0));
    *out = (struct line){.kind = SETTING};
    if (!l->in_section)
        l->problem = "a setting must stand below a section, such as [default]";
    else if (!equals)
        l->problem = "a '=' is missing";
    else if (!key.len)
        l->problem = "a name is missing before the '='";
    l->in_setting = !l->problem;
    if (l->problem)
        return;
    out->name = is_name(key) ? key : sl_span("", 0);
    out->value = value_of(sl_span_from(text, (size_t)(equals - text.ptr) + 1));
    l->is_group = out->value.len == 0;
}

static void read_continued(struct lines *l, struct sl_span text, struct line *out)
{
    const char *equals = memchr(text.ptr, '=', text.len);
    *out = (struct line){.kind = CONTINUED, .value = text};
    if (!l->in_section)
        l->problem = "a setting must stand below a section, such as [default]";
    else if (!l->in_setting)
        l->problem = "a line that begins with a blank belongs to the setting above it, and there is none";
    else if (l->is_group && !equals)
        l->problem = "a '=' is missing in a setting below another";
    else if (l->is_group && !trim(sl_span(text.ptr, (size_t)(equals - text.ptr))).len)
        l->problem = "a name is missing before the '='";
    if (l->problem || !l->is_group)
        return;
    out->name = trim(sl_span(text.ptr, (size_t)(equals - text.ptr)));
    out->below = value_of(sl_span_from(text, (size_t)(equals - text.ptr) + 1));
}

/* The next line that says something; false at the end. */
static bool next(struct lines *l, struct line *out)
{
    l->problem = NULL;
    while (l->rest.len) {
        struct sl_span line = next_line(&l->rest), text = trim(line);
        l->number++;
        if (!text.len || is_comment(*text.ptr))
            continue;
        if (is_blank(*line.ptr))
            read_continued(l, text, out);
        else if (*text.ptr == '[')
            read_section(l, text, out);
        else
            read_setting(l, text, out);
        return true;
    }
    return false;
}

static struct lines lines_of(struct sl_span text)
{
    return (struct lines){.rest = text};
}

/* ---- looking up ---- */

static bool is_of(const struct line *section, const char *type, const char *name)
{
    return sl_span_is(section->type, type) && section->name.ptr && sl_span_is(section->name, name);
}

static bool has_section(struct sl_span text, const char *type, const char *name)
{
    struct lines l = lines_of(text);
    struct line line;
    while (next(&l, &line))
        if (line.kind == SECTION && is_of(&line, type, name))
            return true;
    return false;
}

static bool is_key(struct sl_span key, const char *name)
{
    return key.len == strlen(name) && strncasecmp(key.ptr, name, key.len) == 0;
}

/* The last setting of that name in the sections. With a group: of the settings below it. A value that goes on
 * in the next lines ends where the last of them does. */
static struct sl_span find(struct sl_span text, const char *type, const char *name, const char *group,
                           const char *key)
{
    struct lines l = lines_of(text);
    struct sl_span value = {NULL, 0};
    struct line line;
    bool is_inside = false, is_below = false, is_it = false;
    while (next(&l, &line)) {
        if (line.kind == SECTION) {
            is_inside = is_of(&line, type, name);
            is_below = is_it = false;
        }
        if (l.problem || !is_inside)
            continue;
        if (line.kind == SETTING) {
            is_below = group && is_key(line.name, group) && l.is_group;
            is_it = !group && is_key(line.name, key);
            value = is_it ? line.value : value;
        } else if (line.kind == CONTINUED && is_below && is_key(line.name, key)) {
            value = line.below;
        } else if (line.kind == CONTINUED && is_it) {
            value.len = (size_t)(line.value.ptr + line.value.len - value.ptr);
        }
    }
    return value;
}

/* In the file `config` a section of a profile is [profile NAME]; the default one may be [default], which
 * does not count beside [profile default]. */
static const char *type_in_config(const struct sl_profile *profile, const char *name)
{
    return strcmp(name, "default") == 0 && !has_section(profile->config, "profile", name) ? "" : "profile";
}

bool sl_profile_has(const struct sl_profile *profile, const char *name)
{
    return has_section(profile->credentials, "", name) ||
           has_section(profile->config, type_in_config(profile, name), name);
}

struct sl_span sl_profile_get(const struct sl_profile *profile, const char *name, const char *key)
{
    struct sl_span value = find(profile->credentials, "", name, NULL, key);
    return value.ptr ? value : find(profile->config, type_in_config(profile, name), name, NULL, key);
}

bool sl_profile_is_in_credentials(const struct sl_profile *profile, const char *name, const char *key)
{
    return find(profile->credentials, "", name, NULL, key).ptr;
}

struct sl_span sl_profile_endpoint(const struct sl_profile *profile, const char *service)
{
    char name[128];
    struct sl_span services = sl_profile_get(profile, profile->name, "services");
    if (!services.len || services.len >= sizeof(name))
        return sl_span(NULL, 0);
    snprintf(name, sizeof(name), "%.*s", SL_ARG(services));
    return find(profile->config, "services", name, service, "endpoint_url");
}

struct sl_span sl_profile_setting(const struct sl_profile *profile, const struct sl_vars *vars,
                                  const char *variable, const char *key)
{
    const char *set = sl_vars_or(vars, variable, NULL);
    return set || !profile ? sl_span_str(set) : sl_profile_get(profile, profile->name, key);
}

/* ---- loading ---- */

enum sl_status sl_profile_check(struct sl_span text, const char *path, struct sl_error *error)
{
    struct lines l = lines_of(text);
    struct line line;
    while (next(&l, &line))
        if (l.problem)
            return sl_fail(error, SL_FATAL, "InvalidProfile", "%s, line %u: %s", path, l.number, l.problem);
    return SL_OK;
}

static const char *path_of(const struct sl_vars *vars, struct sl_arena *arena, const char *var,
                           const char *name)
{
    const char *path = sl_vars_or(vars, var, NULL), *home = sl_vars_or(vars, "HOME", NULL);
    return path ? path : home ? sl_arena_printf(arena, "%s/.aws/%s", home, name) : NULL;
}

static struct sl_span load_one(struct sl_profile *profile, const char *path, struct sl_arena *arena)
{
    struct sl_error error = SL_NO_ERROR;
    struct sl_span text = path ? sl_profile_read(path, SL_PROFILE_FILE_BYTES, arena) : sl_span(NULL, 0);
    if (!profile->problem && text.len && sl_profile_check(text, path, &error) != SL_OK)
        profile->problem = sl_arena_copy(arena, sl_span_str(error.text));
    return text;
}

void sl_profile_load(struct sl_profile *profile, const struct sl_vars *vars, struct sl_arena *arena)
{
    *profile = (struct sl_profile){
        .name = sl_vars_or(vars, "AWS_PROFILE", sl_vars_or(vars, "AWS_DEFAULT_PROFILE", "default"))};
    profile->config = load_one(profile, path_of(vars, arena, "AWS_CONFIG_FILE", "config"), arena);
    profile->credentials =
        load_one(profile, path_of(vars, arena, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), arena);
}
