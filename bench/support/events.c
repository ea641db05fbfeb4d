/* Seeded events: orders of a shop, written as DynamoDB Streams delivers them. */
#include "bench/support/events.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct order {
    unsigned customer, number, cents, pieces, status, name, city, note;
    unsigned long long due;
    bool paid, gift, has_coupon;
};

static unsigned draw(uint64_t *seed, unsigned n)
{
    return (unsigned)(sl_random_step(seed) >> 33) % n;
}

static struct order new_order(uint64_t *seed)
{
    return (struct order){
        .customer = draw(seed, 500),
        .number = draw(seed, 1000000),
        .cents = draw(seed, 50000),
        .pieces = 1 + draw(seed, 20),
        .status = draw(seed, 5),
        .name = draw(seed, 8),
        .city = draw(seed, 8),
        .note = draw(seed, 100),
        .due = 1790000000ull + draw(seed, 10000000),
        .paid = draw(seed, 2),
        .gift = draw(seed, 8) == 0,
        .has_coupon = draw(seed, 4) == 0,
    };
}

/* One in twelve notes has escapes, one name in four is not ASCII: more than most tables have. */
static const char *note(unsigned i)
{
    static const char *const plain[] = {"", "ring twice", "leave it with the neighbours", "fragile",
                                        "by noon"};
    return i < 8 ? "say \\\"hello\\\"\\nand \\u201cplease\\u201d" : plain[i % 5];
}

static void add_order(struct sl_buffer *b, const struct order *o)
{
    static const char *const status[] = {"NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED"};
    static const char *const names[] = {
        "Ada Palmer", "Jo Park",   "Max Weber",       "Eve Stone",
        "Liu Yang",   "Omar Said", "Zo\xC3\xAB Roux", "J\xC3\xBCrgen Kr\xC3\xBCger"};
    static const char *const cities[] = {"Lyon",  "Oslo", "Porto",  "Ghent",
                                         "Turin", "Graz", "Bergen", "Leipzig"};
    sl_buffer_printf(
        b,
        "{\"PK\":{\"S\":\"CUSTOMER#%04u\"},\"SK\":{\"S\":\"ORDER#%06u\"},\"status\":{\"S\":\"%s\"},"
        "\"total\":{\"N\":\"%u.%02u\"},\"pieces\":{\"N\":\"%u\"},\"ttl\":{\"N\":\"%llu\"},"
        "\"customer\":{\"S\":\"%s\"},\"paid\":{\"BOOL\":%s},\"note\":{\"S\":\"%s\"},",
        o->customer, o->number, status[o->status], o->cents / 100, o->cents % 100, o->pieces, o->due,
        names[o->name], o->paid ? "true" : "false", note(o->note));
    if (o->has_coupon)
        sl_buffer_printf(b, "\"coupon\":{\"S\":\"SPRING%u\"},", o->number % 100);
    sl_buffer_printf(b,
                     "\"tags\":{\"SS\":[\"web\"%s]},\"address\":{\"M\":{\"city\":{\"S\":\"%s\"},\"zip\":{"
                     "\"S\":\"%05u\"}}}}",
                     o->gift ? ",\"gift\"" : "", cities[o->city], o->number % 90000 + 10000);
}

static void add_images(struct sl_buffer *b, struct order *o, unsigned kind, uint64_t *seed)
{
    if (kind != 2) {
        struct order changed = *o;
        changed.status = (o->status + 1 + draw(seed, 4)) % 5;
        sl_buffer_add_str(b, ",\"NewImage\":");
        add_order(b, &changed);
    }
    if (kind != 0) {
        sl_buffer_add_str(b, ",\"OldImage\":");
        add_order(b, o);
    }
}

static void add_record(struct sl_buffer *b, size_t i, uint64_t *seed)
{
    static const char *const events[] = {"INSERT", "MODIFY", "REMOVE"};
    struct order o = new_order(seed);
    /* Of twenty changes eighteen are MODIFY. */
    unsigned die = draw(seed, 20), kind = die == 0 ? 0 : die == 1 ? 2 : 1;
    unsigned long long a = sl_random_step(seed), c = sl_random_step(seed);
    sl_buffer_printf(
        b,
        "%s{\"eventID\":\"%016llx%016llx\",\"eventName\":\"%s\",\"eventVersion\":\"1.1\","
        "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"eu-west-1\",\"dynamodb\":{"
        "\"ApproximateCreationDateTime\":%zu,\"Keys\":{\"SK\":{\"S\":\"ORDER#%06u\"},\"PK\":{\"S\":"
        "\"CUSTOMER#%04u\"}}",
        i ? "," : "", a, c, events[kind], 1789000000 + i / 50, o.number, o.customer);
    add_images(b, &o, kind, seed);
    sl_buffer_printf(
        b,
        ",\"SequenceNumber\":\"%021zu\",\"SizeBytes\":%u,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},"
        "\"eventSourceARN\":\"arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/"
        "2026-01-01T00:00:00.000\"}",
        i * 7 + 400000000, 200 + draw(seed, 300));
}

void bench_event(struct sl_buffer *out, size_t n, uint64_t seed)
{
    sl_buffer_add_str(out, "{\"Records\":[");
    for (size_t i = 0; i < n; i++)
        add_record(out, i, &seed);
    sl_buffer_add_str(out, "]}");
}

size_t bench_size(size_t usual, size_t least)
{
    const char *is_short = getenv("BENCH_SHORT");
    return is_short && is_short[0] ? least : usual;
}

double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void bench_figure(const char *name, double value, const char *unit)
{
    printf("{\"figure\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"}\n", name, value, unit);
}
