// simdjson beside our decoder: the one C++ file, built by `make bench` alone.
#include <simdjson.h>

extern "C" {
void *bench_simdjson_new();
void bench_simdjson_destroy(void *parser);
bool bench_simdjson_dom(void *parser, const char *text, size_t n);
const char *bench_simdjson_kind();
}

void *bench_simdjson_new() { return new simdjson::dom::parser; }

void bench_simdjson_destroy(void *parser) { delete static_cast<simdjson::dom::parser *>(parser); }

// SIMDJSON_PADDING bytes follow `text`, so that simdjson need not copy it.
bool bench_simdjson_dom(void *parser, const char *text, size_t n)
{
    simdjson::dom::element element;
    return static_cast<simdjson::dom::parser *>(parser)->parse(text, n, false).get(element) == simdjson::SUCCESS;
}

const char *bench_simdjson_kind()
{
    static std::string name(simdjson::get_active_implementation()->name());
    return name.c_str();
}
