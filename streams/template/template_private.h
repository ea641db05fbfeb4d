/* Inside templates: parts, and the functions of a place. */
#ifndef SL_STREAMS_TEMPLATE_TEMPLATE_PRIVATE_H
#define SL_STREAMS_TEMPLATE_TEMPLATE_PRIVATE_H

#include "base/sha256.h"
#include "streams/template/template.h"

/* ---- what flows through the functions of a place ---- */

/* `type` SL_NONE: missing. `text` present: an S or N as text. Else the attribute's value. */
struct template_datum {
    enum sl_type type;
    struct sl_span text;
    struct sl_value value;
};

/* Its text; absent when it has none: maps, lists, sets and NULL. */
struct sl_span template_datum_text(const struct template_datum *d, struct sl_arena *scratch);

/* ---- functions ---- */

struct template_digest {
    struct sl_sha256 sha;
    struct sl_sha256_key key; /* of hmac */
};

#define TEMPLATE_ARGUMENTS 2

/* One function with its arguments. */
struct template_call {
    const struct template_function *function;
    const char *at; /* its name in the template: for errors, while it is compiled */
    struct sl_span args[TEMPLATE_ARGUMENTS];
    size_t n_args;
    int64_t numbers[TEMPLATE_ARGUMENTS]; /* arguments that are numbers; of date the offset in seconds */
    struct template_digest *digest;
    enum sl_type makes; /* SL_S or SL_N */
};

struct template_chain {
    size_t n;
    struct template_call calls[SL_TEMPLATE_FUNCTIONS];
};

/* A template that is being compiled. */
struct template_reader {
    struct sl_span text; /* the whole template */
    const struct sl_vars *vars;
    struct sl_arena *arena;
    struct sl_error *error;
};

/* One row of the functions' table. Either `of_text` or `of_datum` is there. */
struct template_function {
    const char *name, *usage;
    size_t least, most; /* arguments */
    /* Checks the arguments, and prepares what they say; NULL: any text will do. `before` is what comes in:
     * the call before, NULL for the first. */
    enum sl_status (*read)(const struct template_reader *r, struct template_call *call,
                           const struct template_call *before);
    /* Text to text; absent: missing. */
    struct sl_span (*of_text)(const struct template_call *call, struct sl_span text,
                              struct sl_arena *scratch);
    void (*of_datum)(const struct template_call *call, struct template_datum *d, struct sl_arena *scratch);
};

/* "InvalidTemplate" at a byte of the template. */
enum sl_status template_fail(const struct template_reader *r, const char *at, const char *format, ...)
    SL_PRINTF(3, 4);

/* Reads "split:#:1|lower", what comes after a place's first '|'. */
enum sl_status template_chain_read(const struct template_reader *r, struct sl_span text,
                                   struct template_chain **out);

void template_chain_run(const struct template_chain *chain, struct template_datum *d,
                        struct sl_arena *scratch);

/* Is |key the last function? */
bool template_chain_ends_with_key(const struct template_chain *chain);

/* Is what the chain makes JSON? */
bool template_chain_makes_json(const struct template_chain *chain);

/* The integer of an argument: a sign and six digits at most. */
bool template_integer(struct sl_span text, int64_t *out);

/* ---- the functions, by what they need ---- */

/* template_text.c */
enum sl_status template_split_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before);
enum sl_status template_after_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before);
enum sl_status template_slice_read(const struct template_reader *r, struct template_call *call,
                                   const struct template_call *before);
struct sl_span template_split(const struct template_call *call, struct sl_span text,
                              struct sl_arena *scratch);
struct sl_span template_after(const struct template_call *call, struct sl_span text,
                              struct sl_arena *scratch);
struct sl_span template_slice(const struct template_call *call, struct sl_span text,
                              struct sl_arena *scratch);
struct sl_span template_lower(const struct template_call *call, struct sl_span text,
                              struct sl_arena *scratch);
struct sl_span template_upper(const struct template_call *call, struct sl_span text,
                              struct sl_arena *scratch);
struct sl_span template_key(const struct template_call *call, struct sl_span text, struct sl_arena *scratch);
struct sl_span template_trim(const struct template_call *call, struct sl_span text, struct sl_arena *scratch);

/* template_date.c */
enum sl_status template_date_read(const struct template_reader *r, struct template_call *call,
                                  const struct template_call *before);
void template_date(const struct template_call *call, struct template_datum *d, struct sl_arena *scratch);

/* template_digest.c */
enum sl_status template_sha256_read(const struct template_reader *r, struct template_call *call,
                                    const struct template_call *before);
enum sl_status template_hmac_read(const struct template_reader *r, struct template_call *call,
                                  const struct template_call *before);
struct sl_span template_sha256(const struct template_call *call, struct sl_span text,
                               struct sl_arena *scratch);
struct sl_span template_hmac(const struct template_call *call, struct sl_span text, struct sl_arena *scratch);

/* ---- parts ---- */

enum place {
    LITERAL,
    ATTRIBUTE, /* of one image */
    BARE,      /* of Keys, else of an image */
    IMAGE,     /* a whole one, for |json */
    TABLE,
    REGION,
    EVENT,
    EVENT_ID,
    SEQUENCE,
    TTL,
    TIME
};

struct part {
    enum place place;
    enum sl_image image;          /* of an ATTRIBUTE, an IMAGE */
    bool is_path;                 /* ATTRIBUTE, BARE: more than a plain name */
    bool is_json;                 /* where JSON is written, it is not escaped */
    struct sl_span text;          /* the literal, or the attribute's name or path */
    struct sl_span whole;         /* as written between the braces: for errors */
    unsigned at, n;               /* of a TIME: where in sl_time_text's form */
    struct template_chain *chain; /* NULL: no functions */
};

struct sl_template {
    enum sl_type type; /* see sl_template_type */
    size_t n;
    struct part parts[];
};

#endif
