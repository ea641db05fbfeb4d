/* The loader: every kind of refusal, on shared objects made here by the compiler, and none of them has run.
 */
#include "tests/support/disk_fault.h"
#include "tests/support/test.h"

#include "base/error.h"
#include "handlers/pipeline/loader.h"
#include "handlers/pipeline/loader_private.h"
#include "handlers/pipeline/pipeline.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sl_handler builtin = {.abi = SL_HANDLER_ABI, .name = "archive"};

struct folder {
    char *path;
    struct sl_arena *arena;
    struct sl_error error;
    struct sl_loaded loaded;
};

static void name_file(const struct folder *f, const char *name, char out[300])
{
    snprintf(out, 300, "%s/%s", f->path, name);
}

static int set_up(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    f->path = test_folder();
    f->arena = sl_arena_new(4096);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct folder *f = *state;
    sl_loader_unload(&f->loaded);
    sl_arena_destroy(f->arena);
    test_folder_remove(f->path);
    free(f);
    return 0;
}

/* Compiles NAME.so from the source; a constructor in it leaves the file "ran". */
static void compile(const struct folder *f, const char *name, const char *source)
{
    static const char constructor[] =
        "#include \"handlers/handler.h\"\n#include <fcntl.h>\n#include <unistd.h>\n"
        "__attribute__((constructor)) static void start(void) { close(open(MARK, O_CREAT | O_WRONLY, 0600)); "
        "}\n";
    char from[300], to[300], mark[400], text[4000];
    name_file(f, "source.c", from);
    name_file(f, name, to);
    snprintf(mark, sizeof(mark), "-DMARK=\"%s/ran\"", f->path);
    snprintf(text, sizeof(text), "%s%s\n", constructor, source);
    test_write(from, text);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("cc", "cc", "-std=c11", "-D_GNU_SOURCE", "-I.", mark, "-fvisibility=hidden", "-fPIC",
               "-shared", "-o", to, from, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static bool has_run(const struct folder *f)
{
    char mark[300];
    name_file(f, "ran", mark);
    return access(mark, F_OK) == 0;
}

static enum sl_status load(struct folder *f, const char *name)
{
    const char *const path[] = {f->path, NULL};
    struct sl_loader loader = {(const struct sl_handler *const[]){&builtin, NULL}, path};
    sl_error_clear(&f->error);
    return sl_loader_load(&loader, name, f->arena, &f->loaded, &f->error);
}

#define HANDLE                                                                                               \
    "static enum sl_status handle(void *s, struct sl_slice *c, struct sl_error *e) { (void)s; (void)c; "     \
    "(void)e; return SL_OK; }\n"
#define HANDLER "SL_EXPORT const struct sl_handler SL_HANDLER = "

static const struct refusal {
    const char *source, *code, *text; /* text: a part of it that names what is wrong */
    bool runs;                        /* what can only be seen once the linker has it */
} refusals[] = {
    {"int nothing;", "HandlerNoSymbol", "does not export the symbol sluice_handler", false},
    {HANDLE "const struct sl_handler SL_HANDLER = {SL_HANDLER_ABI, \"x\", .handle = handle};",
     "HandlerNoSymbol", "define `SL_EXPORT", false},
    {HANDLE HANDLER "{{2, 0, sizeof(struct sl_handler)}, \"x\", .handle = handle};", "HandlerMajor",
     "built for ABI 2.0, but this host has 1.7", false},
    {HANDLE HANDLER "{{0, 9, sizeof(struct sl_handler)}, \"x\", .handle = handle};", "HandlerMajor",
     "built for ABI 0.9, but this host has 1.7", false},
    {HANDLE HANDLER "{{1, 8, sizeof(struct sl_handler)}, \"x\", .handle = handle};", "HandlerMinor",
     "built for ABI 1.8, newer than this host's 1.7", false},
    {HANDLE HANDLER "{{1, 0, 40}, \"x\", .handle = handle};", "HandlerSize", "has 40 bytes", false},
    {HANDLE HANDLER "{{1, 0, 1u << 20}, \"x\", .handle = handle};", "HandlerSize", "has 1048576 bytes",
     false},
    {HANDLER "{SL_HANDLER_ABI, \"x\"};", "HandlerIncomplete", "has no `handle`", true},
    {HANDLE HANDLER "{SL_HANDLER_ABI, .handle = handle};", "HandlerIncomplete", "has no `name`", true},
    {HANDLE "static const struct sl_option rows[] = {{.name = \"a\", .type = 77}, {.type = "
            "SL_OPTION_END}};\n" HANDLER "{SL_HANDLER_ABI, \"x\", .handle = handle, .options = rows};",
     "HandlerOptions", "row 0 (\"a\") of its option table: its type is not known", true},
    {"extern void nowhere(void);\nvoid (*call)(void) = nowhere;\n" HANDLE HANDLER
     "{SL_HANDLER_ABI, \"x\", .handle = handle};",
     "HandlerNotLoadable", "nowhere", false},
};

static void every_wrong_kind_has_its_refusal(void **state)
{
    struct folder *f = *state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        char name[32], mark[300];
        snprintf(name, sizeof(name), "wrong_%zu.so", i);
        compile(f, name, refusals[i].source);
        name[strlen(name) - 3] = '\0';
        assert_int_equal(load(f, name), SL_FATAL);
        assert_string_equal(f->error.code, refusals[i].code);
        assert_non_null(strstr(f->error.text, refusals[i].text));
        assert_non_null(strstr(f->error.text, name)); /* on what */
        assert_null(f->loaded.library);
        assert_int_equal(has_run(f), refusals[i].runs);
        name_file(f, "ran", mark);
        unlink(mark);
    }
}

#define GOOD HANDLE HANDLER "{SL_HANDLER_ABI, \"good\", .handle = handle, .max_records = 7};"

static void good_one_is_loaded(void **state)
{
    struct folder *f = *state;
    compile(f, "good.so", GOOD);
    assert_int_equal(load(f, "good"), SL_OK);
    assert_string_equal(f->loaded.handler.name, "good");
    assert_int_equal(f->loaded.handler.max_records, 7);
    assert_true(has_run(f));
}

/* A plugin that is unloaded, or was refused, is gone: a new file of its name can be loaded. */
static void nothing_of_a_plugin_stays(void **state)
{
    struct folder *f = *state;
    char path[300];
    compile(f, "good.so", GOOD);
    compile(f, "wrong.so", HANDLER "{SL_HANDLER_ABI, \"x\"};");
    size_t before = test_open_files();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(load(f, "wrong"), SL_FATAL);
        assert_int_equal(load(f, "good"), SL_OK);
        sl_loader_unload(&f->loaded);
    }
    assert_int_equal(test_open_files(), before);
    name_file(f, "good.so", path);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    name_file(f, "wrong.so", path);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

/* And a pipeline that is closed gives back the plugins of its routes. */
static void a_closed_pipeline_holds_no_plugin(void **state)
{
    struct folder *f = *state;
    const char *const folders[] = {f->path, NULL};
    const struct sl_vars vars = {.list = NULL};
    char config[300], path[300];
    struct sl_clock_virtual clock;
    struct sl_log log;
    struct sl_pipeline *p;
    struct sl_sinks sinks;
    sl_clock_virtual_init(&clock, 0, 1);
    sl_log_init(&log, -1, SL_OFF, SL_LOG_TEXT, &clock.clock);
    sl_sinks_init(&sinks, &clock.clock, &log, &vars);
    compile(f, "good.so", GOOD);
    name_file(f, "sluice.json", config);
    test_write(config, json("{'on_failure':'report','routes':[{'name':'a','handler':'good'}]}"));
    const struct sl_pipeline_options options = {.config_path = config,
                                                .vars = &vars,
                                                .clock = &clock.clock,
                                                .log = &log,
                                                .handler_path = folders,
                                                .sinks = &sinks,
                                                .function_name = ""};
    assert_int_equal(sl_pipeline_open(&options, &p, &f->error), SL_OK);
    name_file(f, "good.so", path);
    void *held = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(held);
    dlclose(held);
    assert_ptr_not_equal(sinks.named, &vars); /* the configuration's own are among them */
    sl_pipeline_close(p);
    assert_ptr_equal(sinks.named, &vars);
    sl_sinks_clean_up(&sinks);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    sl_log_clean_up(&log);
}

/* Symbols are found by the whole name, whatever stands beside it: the ABI of another one is none. */
#define OTHER(name) "SL_EXPORT const unsigned char " name "[64] = {9, 9, 9, 9, 9, 9, 9, 9};\n"
#define OTHERS                                                                                               \
    OTHER("a")                                                                                               \
    OTHER("handler")                                                                                         \
    OTHER("sluice")                                                                                          \
    OTHER("sluice_handle")                                                                                   \
    OTHER("sluice_handler_2")                                                                                \
    OTHER("my_sluice_handler") OTHER("sluice_handlers") OTHER("z_z_z_z_z_z_z_z_z_z_z_z")

static void other_exports_are_passed_over(void **state)
{
    struct folder *f = *state;
    compile(f, "more.so", OTHERS GOOD);
    assert_int_equal(load(f, "more"), SL_OK);
    assert_string_equal(f->loaded.handler.name, "good");
    sl_loader_unload(&f->loaded);
    char mark[300];
    name_file(f, "ran", mark);
    unlink(mark);
    compile(f, "none.so", OTHERS);
    assert_int_equal(load(f, "none"), SL_FATAL);
    assert_string_equal(f->error.code, "HandlerNoSymbol");
    assert_false(has_run(f));
}

/* From the struct of ABI 1.0 to one that has grown a long way: what is smaller has lost a part of itself, and
 * what is larger is no struct. */
static void sizes_have_limits(void **state)
{
    struct folder *f = *state;
    const size_t least = offsetof(struct sl_handler, accepts) + sizeof(void *), most = 4096;
    const size_t sizes[] = {least - 1, least, most, most + 1};
    for (size_t i = 0; i < 4; i++) {
        char source[600], wanted[40];
        snprintf(
            source, sizeof(source),
            HANDLE
            "struct large { struct sl_handler it; char rest[5000]; };\n"
            "SL_EXPORT const struct large sluice_handler = {{{1, 0, %zu}, \"sized\", .handle = handle}};",
            sizes[i]);
        snprintf(wanted, sizeof(wanted), "has %zu bytes, not %zu to 4096", sizes[i], least);
        compile(f, "sized.so", source);
        bool fits = i == 1 || i == 2;
        assert_int_equal(load(f, "sized"), fits ? SL_OK : SL_FATAL);
        assert_string_equal(f->error.code, fits ? "" : "HandlerSize");
        assert_true(fits || strstr(f->error.text, wanted));
        sl_loader_unload(&f->loaded);
    }
}

/* SL_HANDLER_ABI says 1.4; a plugin that was built before says less. */
static void plugins_of_every_older_minor_are_loaded(void **state)
{
    struct folder *f = *state;
    for (unsigned minor = 0; minor <= SL_ABI_MINOR; minor++) {
        char source[600], name[32];
        snprintf(source, sizeof(source),
                 HANDLE HANDLER "{{1, %u, sizeof(struct sl_handler)}, \"old\", .handle = handle};", minor);
        snprintf(name, sizeof(name), "old_%u.so", minor);
        compile(f, name, source);
        name[strlen(name) - 3] = '\0';
        assert_int_equal(load(f, name), SL_OK);
        assert_string_equal(f->loaded.handler.name, "old");
        sl_loader_unload(&f->loaded);
    }
}

/* A host that knows more fields than the plugin had sees zero in them, one that knows fewer takes no more. */
static void larger_struct_of_a_known_minor_is_cut(void **state)
{
    struct folder *f = *state;
    compile(
        f, "large.so",
        HANDLE
        "SL_EXPORT const struct { struct sl_handler handler; void *more; } SL_HANDLER = "
        "{{{1, 0, sizeof(struct sl_handler) + sizeof(void *)}, \"large\", .handle = handle}, (void *)1};");
    assert_int_equal(load(f, "large"), SL_OK);
    assert_string_equal(f->loaded.handler.name, "large");
}

static void builtin_goes_first_and_near_names_are_offered(void **state)
{
    struct folder *f = *state;
    assert_int_equal(load(f, "archive"), SL_FATAL); /* this one has no handle */
    assert_string_equal(f->error.code, "HandlerIncomplete");
    assert_int_equal(load(f, "archvie"), SL_FATAL);
    assert_string_equal(f->error.code, "UnknownHandler");
    char wanted[500];
    snprintf(wanted, sizeof(wanted),
             "\"archvie\" is not a built-in handler (archive), and archvie.so is not on the handler path "
             "(%s); did you "
             "mean \"archive\"?",
             f->path);
    assert_string_equal(f->error.text, wanted);
    const struct sl_loader nowhere = {(const struct sl_handler *const[]){NULL}, NULL};
    sl_error_clear(&f->error);
    assert_int_equal(sl_loader_load(&nowhere, "x", f->arena, &f->loaded, &f->error), SL_FATAL);
    assert_string_equal(f->error.text,
                        "\"x\" is not a built-in handler, and x.so is not on the handler path (empty); "
                        "where messages or items go is the route's \"to\"");
}

static void files_that_are_no_plugins_are_refused(void **state)
{
    struct folder *f = *state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *code;
    } files[] = {
        {"", 0, "HandlerNotElf"},
        {"#!/bin/sh\necho\n", 15, "HandlerNotElf"},
        {"\x7f"
         "ELF",
         4, "HandlerNotElf"},
        {"\x7f"
         "ELF\x02\x01\x01\0\0\0\0\0\0\0\0",
         15, "HandlerNotElf"},
        {"\x7f"
         "ELF\x01\x01\x01\0\0\0\0\0\0\0\0\0",
         16, "HandlerWrongMachine"},
        {"\x7f"
         "ELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x28\0",
         20, "HandlerWrongMachine"},
        {"\x7f"
         "ELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\x03\0\x28\0",
         20, "HandlerWrongMachine"},
        {"\x7f"
         "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
         20, "HandlerNotElf"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[300];
        name_file(f, "file.so", path);
        FILE *file = fopen(path, "wb");
        assert_int_equal(fwrite(files[i].bytes, 1, files[i].n, file), files[i].n);
        fclose(file);
        assert_int_equal(load(f, "file"), SL_FATAL);
        assert_string_equal(f->error.code, files[i].code);
    }
    char path[300];
    name_file(f, "dir.so", path);
    mkdir(path, 0755);
    assert_int_equal(load(f, "dir"), SL_FATAL);
    assert_string_equal(f->error.code, "HandlerNotElf");
    rmdir(path);
}

static char *good_bytes(struct folder *f, size_t *n)
{
    char path[300];
    compile(f, "good.so", GOOD);
    name_file(f, "good.so", path);
    return test_read(path, n);
}

static void another_machine_is_named(void **state)
{
    struct folder *f = *state;
    size_t n;
    char *bytes = good_bytes(f, &n);
    struct sl_loader_facts facts;
    Elf64_Ehdr head;
    memcpy(&head, bytes, sizeof(head));
    head.e_machine = head.e_machine == EM_X86_64 ? EM_AARCH64 : EM_X86_64;
    memcpy(bytes, &head, sizeof(head));
    assert_int_equal(sl_loader_inspect("p.so", sl_span(bytes, n), &facts, &f->error), SL_FATAL);
    assert_string_equal(f->error.code, "HandlerWrongMachine");
    assert_non_null(strstr(f->error.text, head.e_machine == EM_AARCH64
                                              ? "p.so: is for arm64; build it for x86-64"
                                              : "p.so: is for x86-64; build it for arm64"));
    head.e_machine = head.e_machine == EM_X86_64 ? EM_AARCH64 : EM_X86_64;
    head.e_type = ET_EXEC;
    memcpy(bytes, &head, sizeof(head));
    sl_error_clear(&f->error);
    assert_int_equal(sl_loader_inspect("p.so", sl_span(bytes, n), &facts, &f->error), SL_FATAL);
    assert_string_equal(f->error.text, "p.so: is not a shared object; link it with -shared");
    free(bytes);
}

/* A file that lies about itself is refused or has nothing to say; it is never read beyond its end. */
static void cut_and_damaged_files_are_survived(void **state)
{
    struct folder *f = *state;
    size_t n;
    char *bytes = good_bytes(f, &n);
    struct sl_loader_facts facts;
    uint64_t seed = 1;
    for (size_t cut = 0; cut < n; cut += cut < 2048 ? 1 : 97) {
        char *part = malloc(cut ? cut : 1); /* so that a sanitizer sees a read beyond it */
        memcpy(part, bytes, cut);
        sl_error_clear(&f->error);
        enum sl_status status = sl_loader_inspect("p.so", sl_span(part, cut), &facts, &f->error);
        assert_true(status == SL_FATAL || !facts.has_abi || facts.abi.major == SL_ABI_MAJOR);
        free(part);
    }
    for (int i = 0; i < 3000; i++) {
        char *part = malloc(n);
        memcpy(part, bytes, n);
        for (int k = 0; k < 8; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t tables = n - 4096 < n ? n - 4096 : 0;
            size_t at = k % 2 ? (seed >> 33) % 1024 : tables + (seed >> 33) % (n - tables);
            part[at] = (char)(seed >> 20);
        }
        sl_error_clear(&f->error);
        enum sl_status status = sl_loader_inspect("p.so", sl_span(part, n), &facts, &f->error);
        assert_true(status == SL_OK || f->error.code[0]);
        free(part);
    }
    free(bytes);
}

static char *section_at(char *bytes, size_t i, Elf64_Shdr *out)
{
    Elf64_Ehdr head;
    memcpy(&head, bytes, sizeof(head));
    char *at = bytes + head.e_shoff + i * sizeof(*out);
    memcpy(out, at, sizeof(*out));
    return at;
}

/* Where the table of symbols is described. */
static char *symbols_at(char *bytes, Elf64_Shdr *out)
{
    size_t i = 0;
    char *at;
    do
        at = section_at(bytes, i++, out);
    while (out->sh_type != SHT_DYNSYM);
    return at;
}

static size_t index_of_handler(char *bytes)
{
    Elf64_Shdr symbols, names;
    Elf64_Sym symbol;
    symbols_at(bytes, &symbols);
    section_at(bytes, symbols.sh_link, &names);
    for (size_t i = 0;; i++) {
        memcpy(&symbol, bytes + symbols.sh_offset + i * sizeof(symbol), sizeof(symbol));
        if (strcmp(bytes + names.sh_offset + symbol.st_name, SL_HANDLER_SYMBOL) == 0)
            return i;
    }
}

/* A symbol is one of the table's; what stands behind the table is none. */
static void a_symbol_is_found_within_its_table(void **state)
{
    struct folder *f = *state;
    size_t n;
    char *bytes = good_bytes(f, &n);
    struct sl_loader_facts facts;
    Elf64_Shdr symbols;
    size_t index = index_of_handler(bytes);
    char *at = symbols_at(bytes, &symbols);
    for (size_t k = 0; k <= index + 1; k++) {
        symbols.sh_size = k * sizeof(Elf64_Sym);
        memcpy(at, &symbols, sizeof(symbols));
        sl_error_clear(&f->error);
        enum sl_status status = sl_loader_inspect("p.so", sl_span(bytes, n), &facts, &f->error);
        assert_int_equal(status, k > index ? SL_OK : SL_FATAL);
        assert_int_equal(facts.has_abi, k > index);
        assert_string_equal(f->error.code, k > index ? "" : "HandlerNoSymbol");
    }
    free(bytes);
}

/* The ABI is read where it ends with its segment, and not beyond. */
static void an_abi_is_read_within_its_segment(void **state)
{
    struct folder *f = *state;
    size_t n;
    char *bytes = good_bytes(f, &n);
    struct sl_loader_facts facts;
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    Elf64_Shdr symbols;
    Elf64_Sym symbol;
    symbols_at(bytes, &symbols);
    memcpy(&symbol, bytes + symbols.sh_offset + index_of_handler(bytes) * sizeof(symbol), sizeof(symbol));
    memcpy(&head, bytes, sizeof(head));
    char *at = bytes + head.e_phoff;
    for (;; at += sizeof(segment)) {
        memcpy(&segment, at, sizeof(segment));
        if (segment.p_type == PT_LOAD && symbol.st_value - segment.p_vaddr < segment.p_filesz)
            break;
    }
    for (int less = 0; less < 2; less++) {
        segment.p_filesz = symbol.st_value - segment.p_vaddr + sizeof(struct sl_abi) - (size_t)less;
        memcpy(at, &segment, sizeof(segment));
        assert_int_equal(sl_loader_inspect("p.so", sl_span(bytes, n), &facts, &f->error), SL_OK);
        assert_int_equal(facts.has_abi, !less);
        assert_true(less || facts.abi.major == SL_ABI_MAJOR);
    }
    free(bytes);
}

/* The first segment that is loaded, in another place. */
static void move_segment(char *bytes, uint64_t offset, uint64_t size)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    memcpy(&head, bytes, sizeof(head));
    char *at = bytes + head.e_phoff;
    do {
        memcpy(&segment, at, sizeof(segment));
        at += sizeof(segment);
    } while (segment.p_type != PT_LOAD);
    segment.p_offset = offset;
    segment.p_filesz = size;
    memcpy(at - sizeof(segment), &segment, sizeof(segment));
}

/* A segment may end where the file does, and one that takes nothing from the file may begin there. */
static void a_segment_beyond_the_end_is_named(void **state)
{
    struct folder *f = *state;
    size_t n;
    char *bytes = good_bytes(f, &n);
    struct sl_loader_facts facts;
    const struct {
        uint64_t offset, size;
        bool is_cut;
    } cases[] = {{n - 64, 64, false},   {n - 64, 65, true},   {n, 0, false},    {n, 1, true},
                 {n + 1, 0, false},     {0, n, false},        {0, n + 1, true}, {n - 1, 2, true},
                 {UINT64_MAX, 1, true}, {1, UINT64_MAX, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        move_segment(bytes, cases[i].offset, cases[i].size);
        sl_error_clear(&f->error);
        enum sl_status status = sl_loader_inspect("p.so", sl_span(bytes, n), &facts, &f->error);
        if ((strstr(f->error.text, "is cut off") != NULL) != cases[i].is_cut)
            fail_msg("case %zu: %s", i, f->error.text);
        assert_true(status == SL_FATAL || !cases[i].is_cut);
    }
    free(bytes);
}

/* What is loaded is loaded from the file: a part that is missing would be a SIGBUS, here or in the handler.
 */
static void every_length_of_a_plugin_is_refused_or_loads(void **state)
{
    struct folder *f = *state;
    size_t n, loaded = 0;
    char path[300];
    free(good_bytes(f, &n));
    name_file(f, "good.so", path);
    for (size_t length = n; length-- > 0;) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        if (load(f, "good") == SL_OK) {
            assert_string_equal(f->loaded.handler.name, "good");
            assert_int_equal(f->loaded.handler.handle(NULL, NULL, NULL), SL_OK);
            sl_loader_unload(&f->loaded);
            loaded++;
        } else {
            assert_non_null(strstr(f->error.text, path));
            if (!strstr(f->error.text, "is cut off") && length >= sizeof(Elf64_Ehdr))
                fail_msg("%zu of %zu bytes: %s", length, n, f->error.text);
        }
        sl_arena_reset(f->arena);
    }
    assert_true(loaded > 0 && loaded < n / 2); /* without the tables after the last segment */
}

static void files_that_others_may_write_are_refused(void **state)
{
    struct folder *f = *state;
    char path[300];
    compile(f, "good.so", GOOD);
    name_file(f, "good.so", path);
    chmod(path, 0757);
    assert_int_equal(load(f, "good"), SL_FATAL);
    assert_string_equal(f->error.code, "HandlerWritable");
    chmod(path, 0755);
    chmod(f->path, 01777);
    assert_int_equal(load(f, "good"), SL_FATAL);
    assert_string_equal(f->error.code, "HandlerWritable");
    chmod(f->path, 0700);
    assert_false(has_run(f));
    assert_int_equal(load(f, "good"), SL_OK);
}

static void links_stay_inside_the_folder(void **state)
{
    struct folder *f = *state;
    char target[300], link[300], *elsewhere = test_folder();
    compile(f, "good.so", GOOD);
    name_file(f, "good.so", target);
    name_file(f, "inside.so", link);
    assert_int_equal(symlink("good.so", link), 0);
    assert_int_equal(load(f, "inside"), SL_OK);
    sl_loader_unload(&f->loaded);

    char outside[300];
    snprintf(outside, sizeof(outside), "%s/good.so", elsewhere);
    assert_int_equal(rename(target, outside), 0);
    name_file(f, "outside.so", link);
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(load(f, "outside"), SL_FATAL);
    assert_string_equal(f->error.code, "HandlerOutsidePath");
    assert_non_null(strstr(f->error.text, outside));
    assert_int_equal(load(f, "inside"), SL_FATAL); /* dangling now */
    assert_string_equal(f->error.code, "HandlerNotLoadable");
    test_folder_remove(elsewhere);
}

/* Any operation on the folder or the file fails: the plugin is not loaded, the error names it, and the next
 * process loads it. */
static void errors_of_the_system_are_named(void **state)
{
    struct folder *f = *state;
    static const int errors[] = {EIO, EMFILE, EACCES};
    compile(f, "good.so", GOOD);
    size_t failed = 0;
    for (size_t i = 0; i < 3; i++)
        for (int n = 1;; n++) {
            disk_fault_begin(n, errors[i], NULL);
            enum sl_status status = load(f, "good");
            bool came = disk_fault_came();
            disk_fault_end();
            if (!came)
                break;
            if (status == SL_OK) {
                sl_loader_unload(&f->loaded);
                continue;
            }
            failed++;
            assert_int_equal(status, SL_FATAL);
            assert_int_equal(f->error.status, SL_FATAL);
            assert_string_equal(f->error.code, "HandlerNotLoadable");
            assert_non_null(strstr(f->error.text, f->path));
            assert_non_null(strstr(f->error.text, strerror(errors[i])));
        }
    assert_true(failed > 0);
    assert_int_equal(load(f, "good"), SL_OK);
    sl_loader_unload(&f->loaded);
}

static void handler_path_is_absolute(void **state)
{
    struct folder *f = *state;
    compile(f, "good.so", GOOD);
    char climbing[300];
    snprintf(climbing, sizeof(climbing), "%s/../%s", f->path, strrchr(f->path, '/') + 1);
    const char *const folders[] = {climbing, "handlers", "."};
    char old[4096];
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(f->path), 0);
    assert_int_equal(mkdir("handlers", 0700), 0);
    assert_int_equal(link("good.so", "handlers/good.so"), 0);
    for (size_t i = 0; i < 3; i++) {
        const struct sl_loader loader = {(const struct sl_handler *const[]){NULL},
                                         (const char *const[]){folders[i], NULL}};
        sl_error_clear(&f->error);
        assert_int_equal(sl_loader_load(&loader, "good", f->arena, &f->loaded, &f->error), SL_FATAL);
        assert_string_equal(f->error.code, "HandlerPath");
    }
    assert_int_equal(chdir(old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_wrong_kind_has_its_refusal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(good_one_is_loaded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_of_a_plugin_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_pipeline_holds_no_plugin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_symbol_is_found_within_its_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_abi_is_read_within_its_segment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_exports_are_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sizes_have_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plugins_of_every_older_minor_are_loaded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(larger_struct_of_a_known_minor_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(builtin_goes_first_and_near_names_are_offered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_are_no_plugins_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_machine_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_and_damaged_files_are_survived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_segment_beyond_the_end_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_length_of_a_plugin_is_refused_or_loads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_others_may_write_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_stay_inside_the_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_of_the_system_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(handler_path_is_absolute, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
