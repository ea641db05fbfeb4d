/* Contrast: a success vouches for refusals of its own operation in its own place, and for no others. */
#include "tests/support/test.h"

#include "aws/contrast.h"

static void a_success_vouches_in_its_own_place_only(void **state)
{
    (void)state;
    struct sl_contrast contrast = {.n = 0};
    sl_contrast_begin(&contrast);
    sl_contrast_succeeded(&contrast, "PutItem", 1, 1000);
    assert_true(sl_contrast_vouches(&contrast, "PutItem", 1, 1000, 1000));
    assert_false(sl_contrast_vouches(&contrast, "PutItem", 2, 1, 1000));
    assert_false(sl_contrast_vouches(&contrast, "DeleteItem", 1, 1, 1000));
}

static void an_earlier_success_vouches_for_few_and_not_for_long(void **state)
{
    (void)state;
    struct sl_contrast contrast = {.n = 0};
    sl_contrast_begin(&contrast);
    sl_contrast_succeeded(&contrast, "PutItem", 1, 1000);
    sl_contrast_begin(&contrast);
    assert_false(sl_contrast_vouches(&contrast, "PutItem", 1, SL_CONTRAST_REFUSALS + 1, 1000));
    assert_false(sl_contrast_vouches(&contrast, "PutItem", 1, 1, 1001 + SL_CONTRAST_MS));
    assert_true(sl_contrast_vouches(&contrast, "PutItem", 1, SL_CONTRAST_REFUSALS, 1000 + SL_CONTRAST_MS));
    assert_false(sl_contrast_vouches(&contrast, "PutItem", 1, 1, 1000));
}

static void of_too_many_places_the_oldest_success_is_forgotten(void **state)
{
    (void)state;
    struct sl_contrast contrast = {.n = 0};
    sl_contrast_begin(&contrast);
    for (uint64_t place = 0; place <= SL_CONTRAST_ROWS; place++)
        sl_contrast_succeeded(&contrast, "PutItem", place, (int64_t)place);
    assert_false(sl_contrast_vouches(&contrast, "PutItem", 0, 1, 100));
    for (uint64_t place = 1; place <= SL_CONTRAST_ROWS; place++)
        assert_true(sl_contrast_vouches(&contrast, "PutItem", place, 1, 100));
}

/* Wherever the oldest stands among them. */
static void the_oldest_is_found_in_any_order(void **state)
{
    (void)state;
    for (uint64_t oldest = 0; oldest < SL_CONTRAST_ROWS; oldest++) {
        struct sl_contrast contrast = {.n = 0};
        sl_contrast_begin(&contrast);
        for (uint64_t place = 0; place < SL_CONTRAST_ROWS; place++)
            sl_contrast_succeeded(&contrast, "PutItem", place, place == oldest ? 1 : 50 - (int64_t)place);
        sl_contrast_succeeded(&contrast, "PutItem", 1000, 100);
        for (uint64_t place = 0; place < SL_CONTRAST_ROWS; place++)
            assert_int_equal(sl_contrast_vouches(&contrast, "PutItem", place, 1, 100), place != oldest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_vouches_in_its_own_place_only),
        cmocka_unit_test(an_earlier_success_vouches_for_few_and_not_for_long),
        cmocka_unit_test(of_too_many_places_the_oldest_success_is_forgotten),
        cmocka_unit_test(the_oldest_is_found_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
