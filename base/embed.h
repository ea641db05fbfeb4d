/* A file of this repository as text in the program: `SL_EMBED(sl_text_x, "cli/x.html")` declares
 * `const char sl_text_x[]`, which ends with a NUL. Paths are written from the top. The Makefile has to name
 * the file as a prerequisite of the object: the compiler's list of dependencies does not. (Aligned: lld makes
 * loads of the address of what it takes to be data.) */
#ifndef SL_BASE_EMBED_H
#define SL_BASE_EMBED_H

#define SL_EMBED(name, file)                                                                                 \
    __asm__(".pushsection .rodata\n.balign 16\n" #name ":\n.incbin \"" file "\"\n.byte 0\n.popsection\n");   \
    extern const char name[]

#endif
