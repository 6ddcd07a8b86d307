/* Caches. */
#include "check.h"

static void use(const alluvium_cache *cache) {
    alluvium_error *error = NULL;
    void *value;
    size_t len;
    uint32_t flags;
    uint64_t ttl_ms;
    char buffer[16];
    char *report;
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_get(cache, "a\0", 2, &value, &len, &error));
    OK(alluvium_cache_set(cache, "a\0", 2, "1\0", 2, 5, 60000, &error));
    OK(alluvium_cache_get(cache, "a\0", 2, &value, &len, &error));
    CHECK(len == 2 && memcmp(value, "1\0", 2) == 0);
    alluvium_free(value);
    OK(alluvium_cache_get_into(cache, "a\0", 2, buffer, sizeof buffer, &len, &flags, &ttl_ms, &error));
    CHECK(len == 2 && flags == 5 && ttl_ms > 1000 && ttl_ms <= 60000);
    EXPECT(ALLUVIUM_SMALL, alluvium_cache_get_into(cache, "a\0", 2, buffer, 1, &len, NULL, NULL, &error));
    CHECK(len == 2);
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_get_into(cache, "b", 1, buffer, 1, &len, NULL, NULL, &error));
    OK(alluvium_cache_touch(cache, "a\0", 2, 0, &error));
    OK(alluvium_cache_get_into(cache, "a\0", 2, buffer, sizeof buffer, &len, &flags, &ttl_ms, &error));
    CHECK(ttl_ms == 0);
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_touch(cache, "b", 1, 0, &error));

    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_replace(cache, "b", 1, "x", 1, 0, 0, &error));
    OK(alluvium_cache_add(cache, "b", 1, "y", 1, 0, 0, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_add(cache, "b", 1, "z", 1, 0, 0, &error));
    OK(alluvium_cache_replace(cache, "b", 1, "w", 1, 0, 0, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_compare_and_swap(cache, "b", 1, "y", 1, "v", 1, 0, 0, &error));
    OK(alluvium_cache_compare_and_swap(cache, "b", 1, "w", 1, "v", 1, 0, 0, &error));
    int64_t sum;
    OK(alluvium_cache_increment(cache, "n", 1, 40, &sum, &error));
    OK(alluvium_cache_increment(cache, "n", 1, 2, &sum, &error));
    CHECK(sum == 42);
    OK(alluvium_cache_increment(cache, "n", 1, INT64_MAX - 42, NULL, &error));
    EXPECT(ALLUVIUM_NUMBER_OVERFLOW, alluvium_cache_increment(cache, "n", 1, 1, &sum, &error));
    EXPECT(ALLUVIUM_NOT_A_NUMBER, alluvium_cache_increment(cache, "b", 1, 1, &sum, &error));

    uint64_t offsets[] = {0, 1, 2, 2};
    OK(alluvium_cache_set_many_flat(cache, 3, "xy", offsets, "XY", offsets, 0, 0, &error));
    OK(alluvium_cache_set_many_flat(cache, 2, "xy", offsets, "XY", offsets, 1, 60000, &error));
    alluvium_values values;
    uint64_t asked[] = {0, 1, 2, 2, 3};
    OK(alluvium_cache_get_many_flat(cache, 4, "xyq", asked, &values, &error));
    CHECK(values.count == 4 && memcmp(values.presence, "\1\1\1\0", 4) == 0 && memcmp(values.bytes, "XY", 2) == 0);
    alluvium_values_free(&values);

    OK(alluvium_cache_contains(cache, "x", 1, &error));
    OK(alluvium_cache_remove(cache, "x", 1, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_remove(cache, "x", 1, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_contains(cache, "x", 1, &error));
    static char large[8 << 20];
    EXPECT(ALLUVIUM_TOO_LARGE, alluvium_cache_set(cache, "l", 1, large, sizeof large, 0, 0, &error));
    OK(alluvium_cache_sync(cache, &error));
    OK(alluvium_cache_stats(cache, &report, &error));
    CHECK(strstr(report, "\"hits\":"));
    alluvium_free(report);
}

void test_caches(void) {
    alluvium_error *error = NULL;
    alluvium_cache *cache, *other;
    alluvium_cache_options *options = alluvium_cache_options_create();
    EXPECT(ALLUVIUM_SETTINGS, alluvium_cache_options_set(options, "no_such", "1", &error));
    EXPECT(ALLUVIUM_SETTINGS, alluvium_cache_options_set(options, "memory_bytes", "x", &error));
    EXPECT(ALLUVIUM_SETTINGS, alluvium_cache_options_set(options, "compress", "x", &error));
    EXPECT(ALLUVIUM_SETTINGS, alluvium_cache_options_set(options, "survive_loss", "x", &error));
    alluvium_cache_options_set_memory_bytes(options, 1);
    EXPECT(ALLUVIUM_SETTINGS, alluvium_cache_create(options, &cache, &error));
    CHECK(cache == NULL);
    alluvium_cache_options_set_memory_bytes(options, 8 << 20);
    OK(alluvium_cache_options_set(options, "item_bytes", "100", &error));
    OK(alluvium_cache_options_set(options, "item_bytes_max", "100000", &error));
    OK(alluvium_cache_options_set(options, "partitions", "2", &error));
    OK(alluvium_cache_create(options, &cache, &error));
    use(cache);
    OK(alluvium_cache_clear(cache, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_cache_contains(cache, "b", 1, &error));
    alluvium_cache_free(cache);

    OK(alluvium_cache_options_set(options, "compress", "lz4", &error));
    OK(alluvium_cache_create(options, &cache, &error));
    use(cache);
    alluvium_cache_free(cache);

    /* In a file, it is there again. */
    OK(alluvium_cache_options_set(options, "survive", below("cache-file"), &error));
    OK(alluvium_cache_options_set(options, "survive_loss", "process", &error));
    OK(alluvium_cache_options_set(options, "reset", "true", &error));
    OK(alluvium_cache_create(options, &cache, &error));
    use(cache);
    EXPECT(ALLUVIUM_LOCKED, alluvium_cache_create(options, &other, &error));
    alluvium_cache_free(cache);
    OK(alluvium_cache_options_set(options, "reset", "false", &error));
    OK(alluvium_cache_create(options, &cache, &error));
    OK(alluvium_cache_contains(cache, "b", 1, &error));
    alluvium_cache_free(cache);
    alluvium_cache_options_free(options);

    OK(alluvium_cache_create(NULL, &cache, &error));
    OK(alluvium_cache_set(cache, NULL, 0, NULL, 0, 0, 0, &error));
    OK(alluvium_cache_contains(cache, NULL, 0, &error));
    alluvium_cache_free(cache);
    alluvium_cache_free(NULL);
    alluvium_cache_options_free(NULL);
}
