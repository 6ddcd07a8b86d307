/* Errors, settings, items, many items, batches. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <errno.h>
#include <time.h>

void test_errors(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = (alluvium_db *)&error;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ALLUVIUM_VERSION_MAJOR, ALLUVIUM_VERSION_MINOR,
             ALLUVIUM_VERSION_PATCH);
    CHECK(strcmp(alluvium_version(), version) == 0);

    CHECK(alluvium_open("/proc/alluvium", NULL, &db, &error) == ALLUVIUM_IO);
    CHECK(db == NULL);
    CHECK(alluvium_error_system(error) == ENOENT || alluvium_error_system(error) == EACCES);
    CHECK(alluvium_error_file(error) == NULL && alluvium_error_offset(error) == 0);
    CHECK(alluvium_error_expected(error) == NULL && alluvium_error_found(error) == NULL);
    CHECK(alluvium_error_condition(error) == -1);
    size_t len = 1;
    CHECK(alluvium_error_key(error, &len) == NULL && len == 0);
    CHECK(alluvium_error_key(error, NULL) == NULL);
    alluvium_error_free(error);
    /* The details may be not wanted. */
    CHECK(alluvium_open("/proc/alluvium", NULL, &db, NULL) == ALLUVIUM_IO);

    CHECK(alluvium_error_status(NULL) == ALLUVIUM_OK && strcmp(alluvium_error_message(NULL), "") == 0);
    CHECK(alluvium_error_file(NULL) == NULL && alluvium_error_offset(NULL) == 0);
    CHECK(alluvium_error_expected(NULL) == NULL && alluvium_error_found(NULL) == NULL);
    CHECK(alluvium_error_system(NULL) == 0 && alluvium_error_condition(NULL) == -1);
    CHECK(alluvium_error_key(NULL, &len) == NULL);
    alluvium_error_free(NULL);
    alluvium_free(NULL);
}

void test_settings(void) {
    alluvium_error *error = NULL;
    alluvium_db *db, *other;
    alluvium_options *options = alluvium_options_create();
    static const char *const settings[][2] = {
        {"expected_items", "5000"},        {"plan", "silt"},
        {"durability", "buffered"},        {"durability", "process"},
        {"durability", "sync"},            {"durability", "0.25"},
        {"create", "true"},                {"read_only", "false"},
        {"memory_bytes_max", "100000000"}, {"process_memory_bytes_max", "4000000000"},
        {"row_cache_bytes_max", "100000"}, {"compress_rows", "lz4"},
        {"disk_bytes_max", "1000000000"},  {"drop_oldest", "false"},
        {"index_bytes_per_item", "0.75"},  {"inline_bytes_max", "1000"},
        {"ingest_sort_bytes_max", "8000000"}, {"background_bytes_per_s_max", "1000000000"},
        {"open_files_max", "100"},         {"log_retention_bytes", "1000"},
        {"read_wait", "sleep"},            {"young_levels", "1"},
        {"workload.gets", "0.5"},          {"workload.absent_gets", "0.5"},
        {"workload.puts", "1"},            {"workload.removals", "0"},
        {"workload.skew", "0"},            {"workload.key_bytes", "12"},
        {"workload.value_bytes", "100"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        OK(alluvium_options_set(options, settings[i][0], settings[i][1], &error));
    }
    static const char *const wrong[][2] = {
        {"no_such", "1"},       {"expected_items", "many"}, {"expected_items", "-1"}, {"plan", "no such plan"},
        {"plan", "{\"a\": 1}"}, {"durability", "never"},    {"durability", "-1"},     {"create", "yes"},
        {"compress_rows", "x"}, {"read_wait", "x"},         {"workload.x", "1"},      {"workload.puts", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        EXPECT(ALLUVIUM_SETTINGS, alluvium_options_set(options, wrong[i][0], wrong[i][1], &error));
    }
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_options_set(options, "plan", "\xff", &error));
    alluvium_options_set_expected_items(options, 10000);
    alluvium_options_set_memory_bytes_max(options, 64 << 20);
    alluvium_options_set_row_cache_bytes_max(options, 1 << 20);
    alluvium_options_set_disk_bytes_max(options, 1 << 30);
    alluvium_options_set_sync_interval_ms(options, 100);
    alluvium_options_set_create(options, false);
    EXPECT(ALLUVIUM_IO, alluvium_open(below("settings"), options, &db, &error));
    alluvium_options_set_create(options, true);
    OK(alluvium_open(below("settings"), options, &db, &error));
    EXPECT(ALLUVIUM_LOCKED, alluvium_open(below("settings"), NULL, &other, &error));
    CHECK(other == NULL);
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    OK(alluvium_put(keyspace, "key", 3, "value", 5, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);

    alluvium_options_set_memory_bytes_max(options, 1);
    EXPECT(ALLUVIUM_SETTINGS, alluvium_open(below("settings"), options, &db, &error));
    alluvium_options_set_memory_bytes_max(options, 64 << 20);
    alluvium_options_set_read_only(options, true);
    OK(alluvium_open(below("settings"), options, &db, &error));
    keyspace = keyspace_of(db, "default");
    CHECK(has(keyspace, "key", "value"));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_put(keyspace, "key", 3, "other", 5, &error));
    alluvium_keyspace_free(keyspace);
    OK(alluvium_close(db, &error));
    alluvium_db_free(db);
    alluvium_options_free(options);

    db = opened("keyspaces");
    alluvium_keyspace_options *rule = alluvium_keyspace_options_create();
    OK(alluvium_keyspace_options_set_plan(rule, "silt", &error));
    EXPECT(ALLUVIUM_SETTINGS, alluvium_keyspace_options_set_plan(rule, "no such plan", &error));
    OK(alluvium_keyspace_open(db, "planned", rule, &keyspace, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_keyspace_options_free(rule);

    rule = alluvium_keyspace_options_create();
    alluvium_keyspace_options_set_listed_prefixes(rule, true);
    EXPECT(ALLUVIUM_SETTINGS, alluvium_keyspace_open(db, "prefixes", rule, &keyspace, &error));
    alluvium_keyspace_options_set_prefix_bytes(rule, 4);
    OK(alluvium_keyspace_open(db, "prefixes", rule, &keyspace, &error));
    EXPECT(ALLUVIUM_KEY_WITHOUT_PREFIX, alluvium_put(keyspace, "abc", 3, "", 0, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_keyspace_options_set_delimiter(rule, '/');
    EXPECT(ALLUVIUM_KEYSPACE, alluvium_keyspace_open(db, "prefixes", rule, &keyspace, &error));
    EXPECT(ALLUVIUM_SETTINGS, alluvium_keyspace_open(db, "", NULL, &keyspace, &error));
    EXPECT(ALLUVIUM_SETTINGS, alluvium_keyspace_open(db, "a\nb", NULL, &keyspace, &error));
    CHECK(keyspace == NULL);
    alluvium_keyspace_options_free(rule);

    char *names;
    OK(alluvium_keyspace_names(db, &names, &error));
    CHECK(strstr(names, "planned\n") && strstr(names, "prefixes\n"));
    alluvium_free(names);
    bool existed = false;
    OK(alluvium_keyspace_open(db, "planned", NULL, &keyspace, &error));
    OK(alluvium_drop_keyspace(db, "planned", &existed, &error));
    CHECK(existed);
    OK(alluvium_drop_keyspace(db, "planned", &existed, &error));
    CHECK(!existed);
    OK(alluvium_drop_keyspace(db, "planned", NULL, &error));
    EXPECT(ALLUVIUM_KEYSPACE, alluvium_put(keyspace, "key", 3, "", 0, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}

void test_items(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("items");
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    void *value = &error;
    size_t len;

    EXPECT(ALLUVIUM_ABSENT, alluvium_get(keyspace, "key", 3, &value, &len, &error));
    CHECK(value == NULL);
    OK(alluvium_put(keyspace, "key", 3, "value", 5, &error));
    OK(alluvium_get(keyspace, "key", 3, &value, &len, &error));
    CHECK(len == 5 && memcmp(value, "value", 5) == 0);
    alluvium_free(value);
    OK(alluvium_contains(keyspace, "key", 3, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(keyspace, "kex", 3, &error));

    /* Zeros, and nothing, in keys and values. */
    OK(alluvium_put(keyspace, "a\0b", 3, "\0\0", 2, &error));
    OK(alluvium_put(keyspace, "a", 1, NULL, 0, &error));
    OK(alluvium_put(keyspace, NULL, 0, "of the empty key", 16, &error));
    OK(alluvium_get(keyspace, "a\0b", 3, &value, &len, &error));
    CHECK(len == 2 && memcmp(value, "\0\0", 2) == 0);
    alluvium_free(value);
    OK(alluvium_get(keyspace, "a", 1, &value, &len, &error));
    CHECK(len == 0 && value != NULL);
    alluvium_free(value);
    CHECK(has(keyspace, "", "of the empty key"));

    /* Into a buffer of the caller, whose other bytes stay. */
    char buffer[8] = "........";
    OK(alluvium_get_into(keyspace, "key", 3, buffer, 5, &len, &error));
    CHECK(len == 5 && memcmp(buffer, "value...", 8) == 0);
    memset(buffer, '.', sizeof buffer);
    EXPECT(ALLUVIUM_SMALL, alluvium_get_into(keyspace, "key", 3, buffer, 4, &len, &error));
    CHECK(len == 5 && memcmp(buffer, "........", 8) == 0);
    EXPECT(ALLUVIUM_SMALL, alluvium_get_into(keyspace, "key", 3, NULL, 0, &len, &error));
    CHECK(len == 5);
    OK(alluvium_get_into(keyspace, "a", 1, NULL, 0, &len, &error));
    CHECK(len == 0);
    EXPECT(ALLUVIUM_ABSENT, alluvium_get_into(keyspace, "kex", 3, buffer, 8, &len, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_into(keyspace, "key", 3, NULL, 8, &len, &error));

    /* A value that is stored in a file of its own. */
    size_t large_len = 3000000;
    char *large = malloc(large_len), *copy = malloc(large_len);
    for (size_t i = 0; i < large_len; i++) large[i] = (char)(i * 31 >> 3);
    OK(alluvium_put(keyspace, "large", 5, large, large_len, &error));
    OK(alluvium_get_into(keyspace, "large", 5, copy, large_len, &len, &error));
    CHECK(len == large_len && memcmp(large, copy, len) == 0);
    free(large);
    free(copy);

    /* Flags and expiry. */
    uint64_t now_ms = (uint64_t)time(NULL) * 1000, expires_at_ms;
    uint32_t flags;
    OK(alluvium_put_with(keyspace, "until", 5, "x", 1, 7, now_ms + 3600000, &error));
    OK(alluvium_get_with(keyspace, "until", 5, &value, &len, &flags, &expires_at_ms, &error));
    CHECK(flags == 7 && expires_at_ms == now_ms + 3600000 && len == 1);
    alluvium_free(value);
    OK(alluvium_touch(keyspace, "until", 5, 0, &error));
    OK(alluvium_get_with(keyspace, "until", 5, &value, &len, &flags, &expires_at_ms, &error));
    CHECK(flags == 7 && expires_at_ms == 0);
    alluvium_free(value);
    OK(alluvium_get_with(keyspace, "until", 5, &value, &len, NULL, NULL, &error));
    alluvium_free(value);
    OK(alluvium_touch(keyspace, "until", 5, 1000, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_get_with(keyspace, "until", 5, &value, &len, &flags, NULL, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_touch(keyspace, "until", 5, 0, &error));

    bool swapped;
    OK(alluvium_compare_and_swap(keyspace, "cas", 3, NULL, 0, "1", 1, &swapped, &error));
    CHECK(swapped);
    OK(alluvium_compare_and_swap(keyspace, "cas", 3, NULL, 0, "2", 1, &swapped, &error));
    CHECK(!swapped);
    OK(alluvium_compare_and_swap(keyspace, "cas", 3, "1", 1, "", 0, &swapped, &error));
    CHECK(swapped && has(keyspace, "cas", ""));
    OK(alluvium_compare_and_swap(keyspace, "cas", 3, "", 0, NULL, 0, &swapped, &error));
    CHECK(swapped);
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(keyspace, "cas", 3, &error));

    int64_t sum;
    OK(alluvium_increment(keyspace, "n", 1, 5, &sum, &error));
    CHECK(sum == 5);
    OK(alluvium_increment(keyspace, "n", 1, -7, &sum, &error));
    CHECK(sum == -2);
    OK(alluvium_increment(keyspace, "n", 1, INT64_MIN + 2, NULL, &error));
    EXPECT(ALLUVIUM_NUMBER_OVERFLOW, alluvium_increment(keyspace, "n", 1, -1, &sum, &error));
    EXPECT(ALLUVIUM_NOT_A_NUMBER, alluvium_increment(keyspace, "key", 3, 1, &sum, &error));
    OK(alluvium_append(keyspace, "key", 3, " and more", 9, &len, &error));
    CHECK(len == 14 && has(keyspace, "key", "value and more"));
    OK(alluvium_append(keyspace, "new", 3, "x", 1, NULL, &error));

    OK(alluvium_take(keyspace, "key", 3, &value, &len, &error));
    CHECK(len == 14);
    alluvium_free(value);
    EXPECT(ALLUVIUM_ABSENT, alluvium_take(keyspace, "key", 3, &value, &len, &error));
    OK(alluvium_remove(keyspace, "new", 3, &error));
    OK(alluvium_remove(keyspace, "new", 3, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(keyspace, "new", 3, &error));

    uint64_t count;
    OK(alluvium_count(keyspace, &count, &error));
    CHECK(count == 5);
    OK(alluvium_approximate_count(keyspace, &count, &error));
    CHECK(count >= 5);
    OK(alluvium_clear(keyspace, &error));
    OK(alluvium_count(keyspace, &count, &error));
    CHECK(count == 0);
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}

/* Keys or values number 0 to `count`, flat. */
struct flat {
    char bytes[64000];
    uint64_t offsets[2001];
};

static void fill(struct flat *flat, const char *form, size_t count) {
    flat->offsets[0] = 0;
    for (size_t i = 0; i < count; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, form, (int)i);
        memcpy(flat->bytes + flat->offsets[i], text, (size_t)len);
        flat->offsets[i + 1] = flat->offsets[i] + (uint64_t)len;
    }
}

void test_many(void) {
    enum { COUNT = 2000 };
    static struct flat keys, values;
    static uint8_t presence[COUNT];
    alluvium_error *error = NULL;
    alluvium_db *db = opened("many");
    alluvium_keyspace *keyspace = keyspace_of(db, "many");
    alluvium_values found;

    /* Every other key is stored. */
    fill(&keys, "key %d", COUNT);
    fill(&values, "value %d", COUNT);
    for (size_t i = 0; i < COUNT; i += 2) {
        OK(alluvium_put_many_flat(keyspace, 1, keys.bytes, keys.offsets + i, values.bytes, values.offsets + i, 0, 0,
                                  i % 4 == 0, &error));
    }
    for (int round = 0; round < 2; round++) {
        OK(alluvium_get_many_flat(keyspace, COUNT, keys.bytes, keys.offsets, &found, &error));
        CHECK(found.count == COUNT && found.offsets[0] == 0);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t len = found.offsets[i + 1] - found.offsets[i];
            uint64_t wanted = i % 2 == 0 ? values.offsets[i + 1] - values.offsets[i] : 0;
            CHECK(found.presence[i] == (i % 2 == 0) && len == wanted);
            CHECK(memcmp((const char *)found.bytes + found.offsets[i], values.bytes + values.offsets[i], len) == 0);
        }
        alluvium_values_free(&found);
        CHECK(found.count == 0 && found.offsets == NULL && found.bytes == NULL);
        alluvium_values_free(&found);
        OK(alluvium_contains_many_flat(keyspace, COUNT, keys.bytes, keys.offsets, presence, &error));
        for (size_t i = 0; i < COUNT; i++) CHECK(presence[i] == (i % 2 == 0));
        /* From the log first, then from tables. */
        OK(alluvium_flush(db, &error));
        OK(alluvium_wait_idle(db, &error));
    }

    OK(alluvium_put_many_flat(keyspace, COUNT, keys.bytes, keys.offsets, values.bytes, values.offsets, 9, 0, true,
                              &error));
    OK(alluvium_put_many_flat(keyspace, COUNT, keys.bytes, keys.offsets, values.bytes, values.offsets, 9, 0, false,
                              &error));
    uint64_t count;
    OK(alluvium_count(keyspace, &count, &error));
    CHECK(count == COUNT);
    OK(alluvium_remove_many_flat(keyspace, COUNT / 2, keys.bytes, keys.offsets, true, &error));
    OK(alluvium_remove_many_flat(keyspace, COUNT / 2, keys.bytes, keys.offsets + COUNT / 2, false, &error));
    OK(alluvium_count(keyspace, &count, &error));
    CHECK(count == 0);

    const void *some_keys[] = {"a", "", "bc"}, *some_values[] = {"A", "of the empty key", ""};
    const size_t key_lens[] = {1, 0, 2}, value_lens[] = {1, 16, 0};
    for (int atomic = 0; atomic < 2; atomic++) {
        OK(alluvium_put_many(keyspace, 3, some_keys, key_lens, some_values, value_lens, atomic != 0, &error));
    }
    OK(alluvium_get_many(keyspace, 3, some_keys, key_lens, &found, &error));
    CHECK(found.count == 3 && memcmp(found.presence, "\1\1\1", 3) == 0 && found.offsets[3] == 17);
    CHECK(memcmp(found.bytes, "Aof the empty key", 17) == 0);
    alluvium_values_free(&found);

    /* No items. */
    OK(alluvium_get_many(keyspace, 0, NULL, NULL, &found, &error));
    CHECK(found.count == 0 && found.offsets[0] == 0);
    alluvium_values_free(&found);
    OK(alluvium_get_many_flat(keyspace, 0, NULL, NULL, &found, &error));
    alluvium_values_free(&found);
    OK(alluvium_put_many(keyspace, 0, NULL, NULL, NULL, NULL, true, &error));
    OK(alluvium_put_many_flat(keyspace, 0, NULL, NULL, NULL, NULL, 0, 0, false, &error));
    OK(alluvium_remove_many_flat(keyspace, 0, NULL, NULL, true, &error));
    OK(alluvium_contains_many_flat(keyspace, 0, NULL, NULL, NULL, &error));
    alluvium_values_free(NULL);
    OK(alluvium_compact(db, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}

void test_batches(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("batches"), *other_db = opened("other");
    alluvium_keyspace *users = keyspace_of(db, "users"), *mails = keyspace_of(db, "mails");
    alluvium_keyspace *foreign = keyspace_of(other_db, "users");
    alluvium_batch *batch;
    OK(alluvium_batch_create(db, &batch, &error));
    OK(alluvium_batch_put(batch, users, "1", 1, "ann", 3, 0, 0, &error));
    OK(alluvium_batch_put(batch, mails, "ann@a", 5, "1", 1, 3, 0, &error));
    OK(alluvium_batch_put(batch, mails, "old", 3, "1", 1, 3, 1, &error));
    OK(alluvium_batch_remove(batch, users, "2", 1, &error));
    OK(alluvium_batch_require_absent(batch, users, "1", 1, &error));
    CHECK(alluvium_batch_count(batch) == 4 && alluvium_batch_count(NULL) == 0);
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(users, "1", 1, &error));
    OK(alluvium_batch_commit(batch, &error));
    CHECK(has(users, "1", "ann") && has(mails, "ann@a", "1") && !has(mails, "old", "1"));

    /* The batch is empty, and used again. Its second condition fails. */
    CHECK(alluvium_batch_count(batch) == 0);
    OK(alluvium_batch_commit(batch, &error));
    OK(alluvium_batch_put(batch, users, "1", 1, "bob", 3, 0, 0, &error));
    OK(alluvium_batch_require_present(batch, users, "1", 1, &error));
    OK(alluvium_batch_require_value(batch, users, "1", 1, "eve", 3, &error));
    CHECK(alluvium_batch_commit(batch, &error) == ALLUVIUM_CONDITION);
    size_t len;
    CHECK(alluvium_error_condition(error) == 1);
    CHECK(memcmp(alluvium_error_key(error, &len), "1", 1) == 0 && len == 1);
    alluvium_error_free(error);
    CHECK(has(users, "1", "ann") && alluvium_batch_count(batch) == 0);

    /* A transaction: read, decide, write unless somebody else wrote. */
    uint8_t version[32];
    void *value;
    OK(alluvium_get_version(users, "1", 1, &value, &len, version, &error));
    CHECK(len == 3);
    alluvium_free(value);
    OK(alluvium_batch_put(batch, users, "1", 1, "ann b", 5, 0, 0, &error));
    OK(alluvium_batch_require_unchanged(batch, users, "1", 1, version, &error));
    OK(alluvium_batch_commit(batch, &error));
    OK(alluvium_batch_put(batch, users, "1", 1, "ann c", 5, 0, 0, &error));
    OK(alluvium_batch_require_unchanged(batch, users, "1", 1, version, &error));
    EXPECT(ALLUVIUM_CONDITION, alluvium_batch_commit(batch, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_get_version(users, "9", 1, &value, &len, version, &error));
    OK(alluvium_batch_require_unchanged(batch, users, "9", 1, version, &error));
    OK(alluvium_batch_put(batch, users, "9", 1, "", 0, 0, 0, &error));
    OK(alluvium_batch_commit(batch, &error));
    CHECK(has(users, "1", "ann b") && has(users, "9", ""));

    EXPECT(ALLUVIUM_ARGUMENT, alluvium_batch_put(batch, foreign, "1", 1, "", 0, 0, 0, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_batch_remove(batch, foreign, "1", 1, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_batch_require_absent(batch, foreign, "1", 1, &error));
    OK(alluvium_batch_put(batch, users, "forgotten", 9, "", 0, 0, 0, &error));
    alluvium_batch_free(batch);
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(users, "forgotten", 9, &error));
    alluvium_batch_free(NULL);
    alluvium_keyspace_free(foreign);
    alluvium_keyspace_free(users);
    alluvium_keyspace_free(mails);
    alluvium_db_free(db);
    alluvium_db_free(other_db);
}
