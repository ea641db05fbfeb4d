/* `sluice verify`: is what the routes made what they should have made? */
#include "base/array.h"
#include "cli/verbs.h"
#include "cli/verify_session.h"

int sl_verb_verify(int argc, char **argv)
{
    struct sl_verify_session v = {.command = {.verb = "verify"}, .with_totals = true, .temp = "/tmp"};
    struct sl_flag flags[SL_VERIFY_SESSION_FLAGS];
    const struct sl_flag own[] = {
        {"What more is compared and kept", SL_FLAG_HEADING, NULL, NULL, NULL},
        {"totals", SL_FLAG_BOOL, &v.with_totals, NULL,
         "compare totals with the sums of their ledgers, after all items (on; --no-totals)"},
        {"archives", SL_FLAG_BOOL, &v.with_archives, NULL,
         "read the archives, too, and look for gaps in them"},
        {"temp", SL_FLAG_TEXT, &v.temp, "FOLDER", "with --archives: where the changes are sorted (/tmp)"},
        {"show-values", SL_FLAG_BOOL, &v.shows_values, NULL, "with --json: the items themselves, too"},
        {"verified", SL_FLAG_TEXT, &v.verified, "FILE",
         "keep there when each route was last proven; prints the metric SecondsSinceVerified"},
        {"plan", SL_FLAG_BOOL, &v.is_plan, NULL, "print what it would cost, and end"},
    };
    size_t n_flags = sl_verify_session_flags(&v, flags);
    memcpy(flags + n_flags, own, sizeof(own));
    flags[n_flags + SL_COUNT(own)] = (struct sl_flag){.type = SL_FLAG_END};
    const struct sl_usage usage = {
        .line = "verify [flags] --table NAME",
        .summary =
            "Compares what the routes have made with what they should have made, on live tables, while the "
            "stream runs. Nothing is written. Without --consumer or --max-lag no difference can be "
            "confirmed. Exit status: 0 equal, 1 differences, 2 bad usage, 3 nothing wrong but not all "
            "proven, 4 something could not be read. docs/VERIFY.md says what is compared and how.",
        .example = "sluice verify --table orders --consumer place.json",
        .flags = flags,
        .ranges = sl_verify_session_ranges,
    };
    int n, result;
    if (sl_flags_read(&usage, argc, argv, &n, &result) != SL_OK)
        return result;
    result = sl_verify_session_run(&v);
    sl_verify_session_clean_up(&v);
    return result;
}
