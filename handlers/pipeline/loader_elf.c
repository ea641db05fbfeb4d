/* Reads a plugin's ELF file without running any of it: its machine, its symbol, its ABI. */
#include "handlers/pipeline/loader_private.h"

#include "base/span.h"

#include <elf.h>

#if defined(__x86_64__)
#define THIS_MACHINE EM_X86_64
#define THIS_NAME    "x86-64"
#elif defined(__aarch64__)
#define THIS_MACHINE EM_AARCH64
#define THIS_NAME    "arm64"
#else
#error "Lambda has x86-64 and arm64 only"
#endif

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "arm64";
    case EM_386:
        return "32-bit x86";
    case EM_ARM:
        return "32-bit arm";
    default:
        return "another machine";
    }
}

/* `n` objects of `size` bytes at `offset`, NULL when the file does not hold them. The file may lie: nothing
 * in it is trusted, not even its alignment. */
static const char *part(struct sl_span file, uint64_t offset, uint64_t n, uint64_t size)
{
    if (offset > file.len || (n && size > (file.len - offset) / n))
        return NULL;
    return file.ptr + offset;
}

static enum sl_status check_head(const char *path, struct sl_span file, Elf64_Ehdr *head,
                                 struct sl_error *error)
{
    const unsigned char *ident = (const unsigned char *)file.ptr;
    if (file.len < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return sl_fail(error, SL_FATAL, "HandlerNotElf", "%s: is not an ELF shared object", path);
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
        return sl_fail(error, SL_FATAL, "HandlerWrongMachine",
                       "%s: is not 64-bit little-endian; build it for %s", path, THIS_NAME);
    if (file.len < sizeof(*head))
        return sl_fail(error, SL_FATAL, "HandlerNotElf", "%s: is cut off inside its ELF header", path);
    memcpy(head, file.ptr, sizeof(*head));
    if (head->e_machine != THIS_MACHINE)
        return sl_fail(error, SL_FATAL, "HandlerWrongMachine", "%s: is for %s; build it for %s", path,
                       machine_name(head->e_machine), THIS_NAME);
    if (head->e_type != ET_DYN)
        return sl_fail(error, SL_FATAL, "HandlerNotElf", "%s: is not a shared object; link it with -shared",
                       path);
    return SL_OK;
}

/* Segment i of the program's table; false: there is none, or the file does not hold the table. */
static bool segment_at(struct sl_span file, const Elf64_Ehdr *head, unsigned i, Elf64_Phdr *out)
{
    const char *at = head->e_phentsize == sizeof(*out) && i < head->e_phnum
                         ? part(file, head->e_phoff, head->e_phnum, sizeof(*out))
                         : NULL;
    if (at)
        memcpy(out, at + i * sizeof(*out), sizeof(*out));
    return at != NULL;
}

/* The dynamic linker maps what the segments say, without a look at the file's length: the first access beyond
 * its end is a SIGBUS. */
static enum sl_status check_segments(const char *path, struct sl_span file, const Elf64_Ehdr *head,
                                     struct sl_error *error)
{
    Elf64_Phdr segment;
    bool loads = false;
    for (unsigned i = 0; segment_at(file, head, i, &segment); i++) {
        if (segment.p_filesz && !part(file, segment.p_offset, 1, segment.p_filesz))
            return sl_fail(
                error, SL_FATAL, "HandlerCutOff",
                "%s: is cut off: it has %zu bytes, but its segment %u ends at byte %llu; copy the file "
                "again, or build it again",
                path, file.len, i, (unsigned long long)(segment.p_offset + segment.p_filesz));
        loads |= segment.p_type == PT_LOAD;
    }
    if (!loads)
        return sl_fail(
            error, SL_FATAL, "HandlerCutOff",
            "%s: is cut off: it has %zu bytes, and no table of the segments to load; copy the file "
            "again, or build it again",
            path, file.len);
    return SL_OK;
}

struct symbols {
    const char *list;
    size_t n;
    struct sl_span names;
};

static bool section_at(struct sl_span file, const Elf64_Ehdr *head, uint64_t i, Elf64_Shdr *out)
{
    const char *at = head->e_shentsize == sizeof(*out) && i < head->e_shnum
                         ? part(file, head->e_shoff, head->e_shnum, sizeof(*out))
                         : NULL;
    if (at)
        memcpy(out, at + i * sizeof(*out), sizeof(*out));
    return at != NULL;
}

static bool find_symbols(struct sl_span file, const Elf64_Ehdr *head, struct symbols *out)
{
    Elf64_Shdr section, names;
    for (uint64_t i = 0; section_at(file, head, i, &section); i++) {
        if (section.sh_type != SHT_DYNSYM)
            continue;
        out->n = section.sh_size / sizeof(Elf64_Sym);
        out->list = part(file, section.sh_offset, out->n, sizeof(Elf64_Sym));
        if (!out->list || !section_at(file, head, section.sh_link, &names))
            return false;
        const char *text = part(file, names.sh_offset, names.sh_size, 1);
        out->names = sl_span(text, text ? names.sh_size : 0);
        return text != NULL;
    }
    return false;
}

static bool symbol_is(const struct symbols *symbols, size_t i, const char *wanted, Elf64_Sym *out)
{
    memcpy(out, symbols->list + i * sizeof(*out), sizeof(*out));
    struct sl_span name = sl_span_from(symbols->names, out->st_name);
    size_t n = strlen(wanted) + 1; /* with its NUL */
    return out->st_shndx != SHN_UNDEF && name.len >= n && memcmp(name.ptr, wanted, n) == 0;
}

/* The bytes at a virtual address, NULL when the file does not hold them. */
static const char *bytes_at(struct sl_span file, const Elf64_Ehdr *head, uint64_t address, size_t n)
{
    Elf64_Phdr segment;
    for (unsigned i = 0; segment_at(file, head, i, &segment); i++) {
        uint64_t inside = address - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && inside < segment.p_filesz &&
            n <= segment.p_filesz - inside)
            return part(file, segment.p_offset + inside, 1, n);
    }
    return NULL;
}

enum sl_status sl_loader_inspect(const char *path, struct sl_span bytes, struct sl_loader_facts *out,
                                 struct sl_error *error)
{
    Elf64_Ehdr head;
    Elf64_Sym symbol;
    struct symbols symbols;
    *out = (struct sl_loader_facts){0};
    enum sl_status status = check_head(path, bytes, &head, error);
    if (status == SL_OK)
        status = check_segments(path, bytes, &head, error);
    if (status != SL_OK || !find_symbols(bytes, &head, &symbols))
        return status;
    for (size_t i = 0; i < symbols.n; i++) {
        if (!symbol_is(&symbols, i, SL_HANDLER_SYMBOL, &symbol))
            continue;
        const char *at = bytes_at(bytes, &head, symbol.st_value, sizeof(out->abi));
        out->has_abi = at != NULL;
        if (at)
            memcpy(&out->abi, at, sizeof(out->abi));
        return SL_OK;
    }
    return sl_fail(
        error, SL_FATAL, "HandlerNoSymbol",
        "%s: does not export the symbol %s; define `SL_EXPORT const struct sl_handler SL_HANDLER = {...}`",
        path, SL_HANDLER_SYMBOL);
}
