/* The SDKs' shared tests of ~/.aws files: each profile and setting as given, or the file refused.
 *
 *   profiles CORPUS     reads CORPUS/profiles/profile-parser-tests.json */
#include "tests/support/test.h"

#include "aws/profile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct sl_span text_of(const json_t *input, const char *name)
{
    const char *text = json_string_value(json_object_get(input, name));
    return sl_span_str(text ? text : "");
}

/* A value that goes on in further lines, as the cases have it: each line without the blanks around it. */
static bool is_value(struct sl_span value, const char *wanted)
{
    char *made = calloc(1, value.len + 2), *at = made;
    bool begins = true;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        bool is_blank = c == ' ' || c == '\t' || c == '\r';
        if (c == '\n') {
            while (at > made && (at[-1] == ' ' || at[-1] == '\t' || at[-1] == '\r'))
                at--;
            if (!begins || at == made)
                *at++ = '\n';
            begins = true;
        } else if (!is_blank || !begins) {
            *at++ = c;
            begins = false;
        }
    }
    *at = '\0';
    bool is_same = strcmp(made, wanted) == 0;
    free(made);
    return value.ptr && is_same;
}

static bool is_good(const json_t *input, const json_t *output)
{
    const struct sl_profile profile = {.config = text_of(input, "configFile"),
                                       .credentials = text_of(input, "credentialsFile"),
                                       .name = "default"};
    const char *name, *key;
    json_t *settings, *value;
    bool fails = sl_profile_check(profile.config, "config", NULL) != SL_OK ||
                 sl_profile_check(profile.credentials, "credentials", NULL) != SL_OK;
    if (json_object_get(output, "errorContaining"))
        return fails;
    const json_t *profiles = json_object_get(json_object_get(output, "config"), "profiles");
    static const char *const others[] = {"foo",        "bar",       "in valid", "foo!bar", "sso-sesion foo",
                                         "profilefoo", "in valid 2"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (sl_profile_has(&profile, others[i]) && !json_object_get(profiles, others[i]))
            return false;
    json_object_foreach((json_t *)profiles, name, settings)
    {
        fails = fails || !sl_profile_has(&profile, name);
        json_object_foreach(settings, key, value)
        {
            fails = fails || !is_value(sl_profile_get(&profile, name, key), json_string_value(value));
        }
        static const char *const keys[] = {"name", "name2", "name3", "in valid", "x"};
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            fails =
                fails || (sl_profile_get(&profile, name, keys[i]).ptr && !json_object_get(settings, keys[i]));
    }
    return !fails;
}

int main(int argc, char **argv)
{
    char path[4096];
    int passed = 0, total = 0;
    size_t i;
    json_t *one;
    snprintf(path, sizeof(path), "%s/profiles/profile-parser-tests.json",
             argc > 1 ? argv[1] : "../shared/conformance");
    json_t *cases = json_load_file(path, 0, NULL);
    json_array_foreach(json_object_get(cases, "tests"), i, one)
    {
        bool good = is_good(json_object_get(one, "input"), json_object_get(one, "output"));
        total++;
        passed += good;
        if (!good)
            printf("  %s\n", json_string_value(json_object_get(one, "name")));
    }
    json_decref(cases);
    printf("profiles: %d/%d\n", passed, total);
    return passed != total || total < 50;
}
