/* Iterators, snapshots, bulk loads, reports. */
#include "check.h"

struct seen {
    int items;
    int items_max;
    size_t bytes;
};

static int see(void *context, const void *key, size_t key_len, const void *value, size_t value_len) {
    struct seen *seen = context;
    CHECK(key != NULL && value != NULL);
    seen->items++;
    seen->bytes += key_len + value_len;
    return seen->items == seen->items_max;
}

/* A visitor that writes to the keyspace that it visits. */
static int change(void *context, const void *key, size_t key_len, const void *value, size_t value_len) {
    (void)value;
    (void)value_len;
    return alluvium_put(context, key, key_len, "changed", 7, NULL) != ALLUVIUM_OK;
}

void test_iterators(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("iterators");
    alluvium_keyspace *files;
    alluvium_keyspace_options *rule = alluvium_keyspace_options_create();
    alluvium_keyspace_options_set_delimiter(rule, '/');
    alluvium_keyspace_options_set_listed_prefixes(rule, true);
    OK(alluvium_keyspace_open(db, "files", rule, &files, &error));
    alluvium_keyspace_options_free(rule);
    char key[32];
    for (int i = 0; i < 300; i++) {
        int len = snprintf(key, sizeof key, "folder-%d/file-%d", i % 3, i);
        OK(alluvium_put(files, key, (size_t)len, "content", 7, &error));
        if (i == 150) OK(alluvium_flush(db, &error));
    }

    struct seen seen = {0, 0, 0};
    OK(alluvium_iterate(files, see, &seen, &error));
    CHECK(seen.items == 300);
    seen = (struct seen){0, 10, 0};
    OK(alluvium_iterate(files, see, &seen, &error));
    CHECK(seen.items == 10);
    seen = (struct seen){0, 0, 0};
    OK(alluvium_iterate_prefix(files, "folder-1", 8, see, &seen, &error));
    CHECK(seen.items == 100);
    seen = (struct seen){0, 0, 0};
    OK(alluvium_iterate_prefix(files, "folder-9", 8, see, &seen, &error));
    CHECK(seen.items == 0);

    alluvium_iterator *iterator;
    const void *found, *value;
    size_t len, value_len;
    int items = 0;
    OK(alluvium_iterator_create(files, &iterator, &error));
    alluvium_status status;
    while ((status = alluvium_iterator_next(iterator, &found, &len, &value, &value_len, &error)) == ALLUVIUM_OK) {
        CHECK(memcmp(found, "folder-", 7) == 0 && value_len == 7 && memcmp(value, "content", 7) == 0);
        items++;
    }
    EXPECT(ALLUVIUM_ABSENT, status);
    CHECK(items == 300);
    EXPECT(ALLUVIUM_ABSENT, alluvium_iterator_next(iterator, &found, &len, &value, &value_len, &error));
    alluvium_iterator_free(iterator);

    OK(alluvium_iterator_over_prefix(files, "folder-2", 8, &iterator, &error));
    OK(alluvium_iterator_next(iterator, NULL, NULL, NULL, NULL, &error));
    alluvium_items many;
    size_t sizes[] = {1, 60, 100};
    for (size_t i = 0, wanted[] = {1, 60, 38}; i < 3; i++) {
        OK(alluvium_iterator_next_many(iterator, sizes[i], &many, &error));
        CHECK(many.count == wanted[i] && many.value_offsets[many.count] == 7 * many.count);
        for (size_t n = 0; n < many.count; n++) {
            CHECK(memcmp((const char *)many.keys + many.key_offsets[n], "folder-2/file-", 14) == 0);
            CHECK(memcmp((const char *)many.values + many.value_offsets[n], "content", 7) == 0);
        }
        alluvium_items_free(&many);
        CHECK(many.count == 0 && many.keys == NULL);
        alluvium_items_free(&many);
    }
    EXPECT(ALLUVIUM_ABSENT, alluvium_iterator_next_many(iterator, 1, &many, &error));
    CHECK(many.count == 0 && many.key_offsets == NULL);
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_iterator_next_many(iterator, 0, &many, &error));
    alluvium_iterator_free(iterator);

    OK(alluvium_iterator_over_prefixes(files, "folder-1", 8, &iterator, &error));
    for (int i = 1; i < 3; i++) {
        OK(alluvium_iterator_next(iterator, &found, &len, &value, &value_len, &error));
        CHECK(len == 8 && ((const char *)found)[7] == '0' + i && value_len == 0);
    }
    EXPECT(ALLUVIUM_ABSENT, alluvium_iterator_next(iterator, &found, &len, NULL, NULL, &error));
    alluvium_iterator_free(iterator);

    OK(alluvium_remove_prefix(files, "folder-0", 8, &error));
    uint64_t count;
    OK(alluvium_count(files, &count, &error));
    CHECK(count == 200);
    /* The iterator shows what was there when it began, and is freed before its end. */
    OK(alluvium_iterator_create(files, &iterator, &error));
    OK(alluvium_iterate(files, change, files, &error));
    OK(alluvium_iterator_next(iterator, NULL, NULL, &value, &value_len, &error));
    CHECK(memcmp(value, "content", 7) == 0);
    alluvium_iterator_free(iterator);
    CHECK(has(files, "folder-1/file-1", "changed"));

    alluvium_keyspace *plain = keyspace_of(db, "plain");
    EXPECT(ALLUVIUM_KEYSPACE, alluvium_iterate_prefix(plain, "a", 1, see, &seen, &error));
    EXPECT(ALLUVIUM_KEYSPACE, alluvium_iterator_over_prefix(plain, "a", 1, &iterator, &error));
    EXPECT(ALLUVIUM_KEYSPACE, alluvium_iterator_over_prefixes(plain, "a", 1, &iterator, &error));
    EXPECT(ALLUVIUM_KEYSPACE, alluvium_remove_prefix(plain, "a", 1, &error));
    alluvium_keyspace_free(plain);
    alluvium_iterator_free(NULL);
    alluvium_items_free(NULL);
    alluvium_keyspace_free(files);
    alluvium_db_free(db);
}

void test_snapshots_and_loads(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("snapshots");
    alluvium_keyspace *keyspace = keyspace_of(db, "default"), *then;
    alluvium_snapshot *snapshot;
    OK(alluvium_put(keyspace, "a", 1, "before", 6, &error));
    OK(alluvium_snapshot_create(db, &snapshot, &error));
    CHECK(alluvium_snapshot_taken_at_ms(snapshot) > 1600000000000 && alluvium_snapshot_taken_at_ms(NULL) == 0);
    OK(alluvium_put(keyspace, "a", 1, "after", 5, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_snapshot_keyspace(snapshot, "no such", &then, &error));
    CHECK(then == NULL);
    OK(alluvium_snapshot_keyspace(snapshot, "default", &then, &error));
    alluvium_snapshot_free(snapshot);
    alluvium_snapshot_free(NULL);

    /* It is read as any keyspace is. */
    CHECK(strcmp(alluvium_keyspace_name(then), "default") == 0);
    CHECK(has(then, "a", "before") && has(keyspace, "a", "after"));
    char buffer[16];
    size_t len;
    uint64_t count;
    void *value;
    uint32_t flags;
    OK(alluvium_get_into(then, "a", 1, buffer, sizeof buffer, &len, &error));
    CHECK(len == 6);
    OK(alluvium_get_with(then, "a", 1, &value, &len, &flags, NULL, &error));
    alluvium_free(value);
    OK(alluvium_contains(then, "a", 1, &error));
    OK(alluvium_count(then, &count, &error));
    CHECK(count == 1);
    alluvium_values values;
    const void *keys[] = {"a", "b"};
    const size_t lens[] = {1, 1};
    OK(alluvium_get_many(then, 2, keys, lens, &values, &error));
    CHECK(values.presence[0] == 1 && values.presence[1] == 0);
    alluvium_values_free(&values);
    struct seen seen = {0, 0, 0};
    OK(alluvium_iterate(then, see, &seen, &error));
    CHECK(seen.items == 1 && seen.bytes == 7);

    /* It does not change. */
    bool swapped;
    uint8_t version[32];
    alluvium_ingest *ingest;
    alluvium_batch *batch;
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_put(then, "a", 1, "x", 1, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_remove(then, "a", 1, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_clear(then, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_compare_and_swap(then, "a", 1, "", 0, "", 0, &swapped, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_get_version(then, "a", 1, &value, &len, version, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_put_many(then, 2, keys, lens, keys, lens, false, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_ingest_create(then, &ingest, &error));
    OK(alluvium_batch_create(db, &batch, &error));
    EXPECT(ALLUVIUM_READ_ONLY, alluvium_batch_put(batch, then, "a", 1, "", 0, 0, 0, &error));
    alluvium_batch_free(batch);
    alluvium_keyspace_free(then);

    uint64_t offsets[] = {0, 1, 2}, items;
    OK(alluvium_ingest_create(keyspace, &ingest, &error));
    OK(alluvium_ingest_put(ingest, "loaded", 6, "value", 5, 4, 0, &error));
    OK(alluvium_ingest_put_many_flat(ingest, 2, "xy", offsets, "XY", offsets, &error));
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(keyspace, "loaded", 6, &error));
    OK(alluvium_ingest_finish(ingest, &items, &error));
    CHECK(items == 3 && has(keyspace, "loaded", "value") && has(keyspace, "y", "Y"));
    EXPECT(ALLUVIUM_CLOSED, alluvium_ingest_put(ingest, "a", 1, "", 0, 0, 0, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_ingest_finish(ingest, NULL, &error));
    alluvium_ingest_free(ingest);
    OK(alluvium_ingest_create(keyspace, &ingest, &error));
    OK(alluvium_ingest_put(ingest, "given up", 8, "", 0, 0, 0, &error));
    alluvium_ingest_free(ingest);
    alluvium_ingest_free(NULL);
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(keyspace, "given up", 8, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}

void test_reports(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("reports");
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    char *report;
    OK(alluvium_put(keyspace, "a", 1, "b", 1, &error));
    alluvium_keyspace_free(keyspace);
    OK(alluvium_stats(db, &report, &error));
    CHECK(report[0] == '{' && strstr(report, "memory"));
    alluvium_free(report);
    OK(alluvium_health(db, &report, &error));
    CHECK(report[0] != 0);
    alluvium_free(report);
    OK(alluvium_persist(db, &error));
    OK(alluvium_resume(db, &error));
    OK(alluvium_verify(db, &report, &error));
    CHECK(strstr(report, "\"problems\":[]"));
    alluvium_free(report);
    OK(alluvium_checkpoint(db, below("checkpoint"), &error));
    for (int i = 0; i < 3; i++) {
        OK(alluvium_backup(db, below("backups"), 2, &report, &error));
        alluvium_free(report);
    }
    OK(alluvium_backups(below("backups"), &report, &error));
    CHECK(report[0] == '[' && strstr(report, "},{") && !strstr(strstr(report, "},{") + 1, "},{"));
    alluvium_free(report);
    OK(alluvium_restore(below("backups"), below("restored"), &report, &error));
    alluvium_free(report);
    EXPECT(ALLUVIUM_BACKUP, alluvium_restore(below("no such"), below("restored-2"), &report, &error));
    CHECK(report == NULL);
    alluvium_db_free(db);
    static const char *const copies[] = {"checkpoint", "restored"};
    for (int i = 0; i < 2; i++) {
        db = opened(copies[i]);
        keyspace = keyspace_of(db, "default");
        CHECK(has(keyspace, "a", "b"));
        alluvium_keyspace_free(keyspace);
        alluvium_db_free(db);
    }
}
