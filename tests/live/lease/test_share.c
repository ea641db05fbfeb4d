/* Who takes which leases: case by case, and that workers who decide for themselves reach equal shares. */
#include "tests/support/test.h"

#include "base/clock.h"
#include "live/lease/share.h"

#include <stdlib.h>

#define LEASES_MAX  300
#define WORKERS_MAX 9

static struct sl_arena *arena;

/* One character a lease: a lower case letter is its owner ('m' is this worker), upper case: it has expired;
 * '.': nobody's; '!': done, and held by x. */
static struct sl_share from_text(const char *text, struct sl_share_lease *leases)
{
    struct sl_share s = {.leases = leases, .worker = "m", .random = 1};
    for (; text[s.n]; s.n++) {
        char c = text[s.n], name[2] = {(char)(c | 0x20), '\0'};
        bool is_expired = c == '.' || (c >= 'A' && c <= 'Z');
        leases[s.n] = (struct sl_share_lease){.owner = c == '.'   ? NULL
                                                       : c == '!' ? "x"
                                                                  : sl_arena_copy(arena, sl_span_str(name)),
                                              .is_mine = c == 'm',
                                              .is_expired = is_expired,
                                              .is_done = c == '!'};
    }
    return s;
}

static void each_case_is_as_kcl_decides(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        size_t workers, target, taken;
        const char *from; /* whose may be taken */
    } cases[] = {
        {"", 1, 1, 0, ""},
        {".", 1, 1, 1, "."},
        {"........", 1, 8, 8, "."},
        {"aaaa....", 2, 4, 4, "."},
        {"aaaaAAAA", 2, 4, 4, "A"}, /* an expired lease is nobody's */
        {"mmmmAAAA", 1, 8, 4, "A"}, /* its owner is no worker any more */
        {"aaaaaaaa", 2, 4, 2, "a"}, /* half of what is lacking */
        {"aaaaaaam", 2, 4, 2, "a"},
        {"aaaaammm", 2, 4, 1, "a"},
        {"aaaammmm", 2, 4, 0, ""},
        {"aaabbb", 3, 2, 1, "ab"},
        {"aabbccm", 4, 2, 0, ""},           /* lacks one, and nobody has more than the share */
        {"aabbcc", 4, 2, 1, "abc"},         /* lacks two: one from somebody who has the share */
        {"aaabbbccc!!!!!", 5, 2, 1, "abc"}, /* x is a worker; done leases are nobody's share */
        {"a", 2, 1, 0, ""},
        {"ab", 3, 1, 0, ""},
        {"aaa.", 2, 2, 2, ".a"},
        {"!!!!", 2, 1, 0, ""},
        {"m", 1, 1, 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_share_lease leases[LEASES_MAX];
        size_t out[LEASES_MAX];
        struct sl_share s = from_text(cases[i].before, leases);
        size_t n = sl_share_choose(&s, arena, out);
        if (n != cases[i].taken || s.workers != cases[i].workers || s.target != cases[i].target)
            fail_msg("%s: takes %zu; %zu workers, a share is %zu", cases[i].before, n, s.workers, s.target);
        for (size_t k = 0; k < n; k++)
            if (!strchr(cases[i].from, cases[i].before[out[k]]))
                fail_msg("%s: takes %zu", cases[i].before, out[k]);
    }
}

/* Everybody in turn, until nobody takes anything; at most `turns` rounds. */
static unsigned balance(struct sl_share_lease *leases, size_t n, size_t workers, uint64_t seed)
{
    static const char *const names[WORKERS_MAX] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    unsigned rounds = 0;
    for (size_t taken = 1; taken && rounds < 100; rounds++) {
        taken = 0;
        for (size_t w = 0; w < workers; w++) {
            size_t out[LEASES_MAX];
            struct sl_share s = {.leases = leases, .n = n, .worker = names[w], .random = seed += 17};
            for (size_t i = 0; i < n; i++)
                leases[i].is_mine = leases[i].owner && strcmp(leases[i].owner, names[w]) == 0;
            size_t chosen = sl_share_choose(&s, arena, out);
            for (size_t i = 0; i < chosen; i++)
                leases[out[i]] = (struct sl_share_lease){.owner = names[w]};
            taken += chosen;
        }
    }
    return rounds;
}

static void workers_reach_equal_shares_and_then_rest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t random = seed;
        struct sl_share_lease leases[LEASES_MAX];
        size_t n = 1 + (size_t)(sl_random_step(&random) % (LEASES_MAX - 1)),
               workers = 1 + (size_t)(sl_random_step(&random) % (WORKERS_MAX - 1)), count[WORKERS_MAX] = {0};
        for (size_t i = 0; i < n; i++) /* at first some are one worker's */
            leases[i] = (struct sl_share_lease){.owner = seed % 2 ? "0" : NULL, .is_expired = seed % 2 == 0};
        unsigned rounds = balance(leases, n, workers, seed);
        for (size_t i = 0; i < n; i++)
            count[leases[i].owner[0] - '0']++;
        for (size_t w = 0; w < workers; w++)
            if (rounds >= 30 || count[w] > (n + workers - 1) / workers || count[w] + 1 < n / workers)
                fail_msg("seed %llu: %zu leases, %zu workers, %u rounds: one has %zu",
                         (unsigned long long)seed, n, workers, rounds, count[w]);
        sl_arena_reset(arena);
    }
}

static int set_up(void **state)
{
    (void)state;
    arena = sl_arena_new(4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sl_arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_case_is_as_kcl_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(workers_reach_equal_shares_and_then_rest, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
