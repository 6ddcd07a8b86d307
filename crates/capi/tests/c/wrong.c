/* What a program does wrong, and what happens to it. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* NULL for each handle and each address that must be given. */
void test_nulls(void) {
    alluvium_error *error = NULL;
    alluvium_db *db;
    alluvium_keyspace *keyspace;
    alluvium_batch *batch;
    alluvium_iterator *iterator;
    alluvium_snapshot *snapshot;
    alluvium_ingest *ingest;
    alluvium_cache *cache;
    alluvium_values values;
    alluvium_items items;
    void *value;
    char *text;
    size_t len;
    uint64_t number, offsets[] = {0, 1};
    uint8_t bytes[32];
    bool yes;
#define REFUSED(call) EXPECT(ALLUVIUM_ARGUMENT, call)
    REFUSED(alluvium_open(NULL, NULL, &db, &error));
    REFUSED(alluvium_open("x", NULL, NULL, &error));
    REFUSED(alluvium_options_set(NULL, "plan", "silt", &error));
    alluvium_options_set_expected_items(NULL, 1);
    alluvium_options_set_create(NULL, true);
    alluvium_options_set_read_only(NULL, true);
    alluvium_options_set_memory_bytes_max(NULL, 1);
    alluvium_options_set_row_cache_bytes_max(NULL, 1);
    alluvium_options_set_disk_bytes_max(NULL, 1);
    alluvium_options_set_sync_interval_ms(NULL, 1);
    alluvium_options_free(NULL);
    alluvium_options *options = alluvium_options_create();
    REFUSED(alluvium_options_set(options, NULL, "silt", &error));
    REFUSED(alluvium_options_set(options, "plan", NULL, &error));
    alluvium_options_free(options);
    REFUSED(alluvium_close(NULL, &error));
    alluvium_db_free(NULL);
    REFUSED(alluvium_persist(NULL, &error));
    REFUSED(alluvium_flush(NULL, &error));
    REFUSED(alluvium_compact(NULL, &error));
    REFUSED(alluvium_wait_idle(NULL, &error));
    REFUSED(alluvium_resume(NULL, &error));
    REFUSED(alluvium_keyspace_names(NULL, &text, &error));
    CHECK(text == NULL);
    REFUSED(alluvium_drop_keyspace(NULL, "x", NULL, &error));
    REFUSED(alluvium_keyspace_open(NULL, "x", NULL, &keyspace, &error));
    CHECK(keyspace == NULL && alluvium_keyspace_name(NULL)[0] == 0);
    alluvium_keyspace_free(NULL);
    alluvium_keyspace_options_free(NULL);
    alluvium_keyspace_options_set_delimiter(NULL, '/');
    alluvium_keyspace_options_set_prefix_bytes(NULL, 1);
    alluvium_keyspace_options_set_listed_prefixes(NULL, true);
    REFUSED(alluvium_keyspace_options_set_plan(NULL, "silt", &error));
    REFUSED(alluvium_approximate_count(NULL, &number, &error));
    REFUSED(alluvium_count(NULL, &number, &error));
    REFUSED(alluvium_clear(NULL, &error));
    REFUSED(alluvium_put(NULL, "x", 1, "", 0, &error));
    REFUSED(alluvium_put_with(NULL, "x", 1, "", 0, 0, 0, &error));
    REFUSED(alluvium_get(NULL, "x", 1, &value, &len, &error));
    REFUSED(alluvium_get_into(NULL, "x", 1, bytes, 1, &len, &error));
    REFUSED(alluvium_get_with(NULL, "x", 1, &value, &len, NULL, NULL, &error));
    REFUSED(alluvium_get_version(NULL, "x", 1, &value, &len, bytes, &error));
    REFUSED(alluvium_contains(NULL, "x", 1, &error));
    REFUSED(alluvium_remove(NULL, "x", 1, &error));
    REFUSED(alluvium_take(NULL, "x", 1, &value, &len, &error));
    REFUSED(alluvium_compare_and_swap(NULL, "x", 1, "", 0, "", 0, &yes, &error));
    REFUSED(alluvium_increment(NULL, "x", 1, 1, NULL, &error));
    REFUSED(alluvium_append(NULL, "x", 1, "", 0, NULL, &error));
    REFUSED(alluvium_touch(NULL, "x", 1, 0, &error));
    REFUSED(alluvium_get_many(NULL, 0, NULL, NULL, &values, &error));
    REFUSED(alluvium_get_many_flat(NULL, 0, NULL, NULL, &values, &error));
    REFUSED(alluvium_contains_many_flat(NULL, 0, NULL, NULL, NULL, &error));
    REFUSED(alluvium_put_many(NULL, 0, NULL, NULL, NULL, NULL, false, &error));
    REFUSED(alluvium_put_many_flat(NULL, 0, NULL, NULL, NULL, NULL, 0, 0, false, &error));
    REFUSED(alluvium_remove_many_flat(NULL, 0, NULL, NULL, false, &error));
    REFUSED(alluvium_batch_create(NULL, &batch, &error));
    REFUSED(alluvium_batch_put(NULL, NULL, "x", 1, "", 0, 0, 0, &error));
    REFUSED(alluvium_batch_remove(NULL, NULL, "x", 1, &error));
    REFUSED(alluvium_batch_require_absent(NULL, NULL, "x", 1, &error));
    REFUSED(alluvium_batch_require_present(NULL, NULL, "x", 1, &error));
    REFUSED(alluvium_batch_require_value(NULL, NULL, "x", 1, "", 0, &error));
    REFUSED(alluvium_batch_require_unchanged(NULL, NULL, "x", 1, bytes, &error));
    REFUSED(alluvium_batch_commit(NULL, &error));
    REFUSED(alluvium_iterate(NULL, NULL, NULL, &error));
    REFUSED(alluvium_iterate_prefix(NULL, "x", 1, NULL, NULL, &error));
    REFUSED(alluvium_iterator_create(NULL, &iterator, &error));
    REFUSED(alluvium_iterator_over_prefix(NULL, "x", 1, &iterator, &error));
    REFUSED(alluvium_iterator_over_prefixes(NULL, "x", 1, &iterator, &error));
    REFUSED(alluvium_iterator_next(NULL, NULL, NULL, NULL, NULL, &error));
    REFUSED(alluvium_iterator_next_many(NULL, 1, &items, &error));
    REFUSED(alluvium_remove_prefix(NULL, "x", 1, &error));
    REFUSED(alluvium_snapshot_create(NULL, &snapshot, &error));
    REFUSED(alluvium_snapshot_keyspace(NULL, "x", &keyspace, &error));
    REFUSED(alluvium_ingest_create(NULL, &ingest, &error));
    REFUSED(alluvium_ingest_put(NULL, "x", 1, "", 0, 0, 0, &error));
    REFUSED(alluvium_ingest_put_many_flat(NULL, 0, NULL, NULL, NULL, NULL, &error));
    REFUSED(alluvium_ingest_finish(NULL, NULL, &error));
    REFUSED(alluvium_stats(NULL, &text, &error));
    REFUSED(alluvium_health(NULL, &text, &error));
    REFUSED(alluvium_verify(NULL, &text, &error));
    REFUSED(alluvium_repair(NULL, true, false, &text, &error));
    REFUSED(alluvium_checkpoint(NULL, "x", &error));
    REFUSED(alluvium_backup(NULL, "x", 0, &text, &error));
    REFUSED(alluvium_backups(NULL, &text, &error));
    REFUSED(alluvium_restore(NULL, "x", &text, &error));
    REFUSED(alluvium_restore("x", NULL, &text, &error));
    REFUSED(alluvium_cache_create(NULL, NULL, &error));
    REFUSED(alluvium_cache_options_set(NULL, "compress", "lz4", &error));
    alluvium_cache_options_set_memory_bytes(NULL, 1);
    cache = NULL;
    REFUSED(alluvium_cache_get(cache, "x", 1, &value, &len, &error));
    REFUSED(alluvium_cache_get_into(cache, "x", 1, bytes, 1, &len, NULL, NULL, &error));
    REFUSED(alluvium_cache_get_many_flat(cache, 0, NULL, NULL, &values, &error));
    REFUSED(alluvium_cache_set(cache, "x", 1, "", 0, 0, 0, &error));
    REFUSED(alluvium_cache_set_many_flat(cache, 0, NULL, NULL, NULL, NULL, 0, 0, &error));
    REFUSED(alluvium_cache_add(cache, "x", 1, "", 0, 0, 0, &error));
    REFUSED(alluvium_cache_replace(cache, "x", 1, "", 0, 0, 0, &error));
    REFUSED(alluvium_cache_compare_and_swap(cache, "x", 1, "", 0, "", 0, 0, 0, &error));
    REFUSED(alluvium_cache_increment(cache, "x", 1, 1, NULL, &error));
    REFUSED(alluvium_cache_touch(cache, "x", 1, 0, &error));
    REFUSED(alluvium_cache_remove(cache, "x", 1, &error));
    REFUSED(alluvium_cache_contains(cache, "x", 1, &error));
    REFUSED(alluvium_cache_clear(cache, &error));
    REFUSED(alluvium_cache_sync(cache, &error));
    REFUSED(alluvium_cache_stats(cache, &text, &error));

    /* The same with a handle, and without what else must be given. */
    db = opened("nulls");
    keyspace = keyspace_of(db, "default");
    REFUSED(alluvium_put(keyspace, NULL, 1, "", 0, &error));
    REFUSED(alluvium_put(keyspace, "x", 1, NULL, 1, &error));
    REFUSED(alluvium_get(keyspace, "x", 1, NULL, &len, &error));
    REFUSED(alluvium_get(keyspace, "x", 1, &value, NULL, &error));
    REFUSED(alluvium_get_version(keyspace, "x", 1, &value, &len, NULL, &error));
    REFUSED(alluvium_compare_and_swap(keyspace, "x", 1, "", 0, "", 0, NULL, &error));
    REFUSED(alluvium_get_many_flat(keyspace, 1, NULL, offsets, &values, &error));
    REFUSED(alluvium_get_many_flat(keyspace, 1, "x", NULL, &values, &error));
    REFUSED(alluvium_get_many_flat(keyspace, 1, "x", offsets, NULL, &error));
    REFUSED(alluvium_get_many(keyspace, 1, NULL, &len, &values, &error));
    REFUSED(alluvium_contains_many_flat(keyspace, 1, "x", offsets, NULL, &error));
    REFUSED(alluvium_put_many_flat(keyspace, 1, "x", offsets, "x", NULL, 0, 0, true, &error));
    REFUSED(alluvium_iterate(keyspace, NULL, NULL, &error));
    REFUSED(alluvium_iterator_create(keyspace, NULL, &error));
    alluvium_keyspace_free(keyspace);
    REFUSED(alluvium_keyspace_open(db, NULL, NULL, &keyspace, &error));
    CHECK(keyspace == NULL);
    REFUSED(alluvium_stats(db, NULL, &error));
    REFUSED(alluvium_checkpoint(db, NULL, &error));
    alluvium_db_free(db);
}

void test_lengths(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("lengths");
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    static char bytes[ALLUVIUM_KEY_BYTES_MAX + 1];
    alluvium_values values;
    OK(alluvium_put(keyspace, bytes, ALLUVIUM_KEY_BYTES_MAX, "x", 1, &error));
    OK(alluvium_contains(keyspace, bytes, ALLUVIUM_KEY_BYTES_MAX, &error));
    /* Lengths that are too large are refused before anything is read. */
    static const size_t lens[] = {ALLUVIUM_KEY_BYTES_MAX + 1, ALLUVIUM_VALUE_BYTES_MAX + 1, SIZE_MAX / 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        EXPECT(ALLUVIUM_TOO_LARGE, alluvium_put(keyspace, bytes, lens[i], "x", 1, &error));
        EXPECT(ALLUVIUM_TOO_LARGE, alluvium_contains(keyspace, bytes, lens[i], &error));
        if (i > 0) EXPECT(ALLUVIUM_TOO_LARGE, alluvium_put(keyspace, "x", 1, bytes, lens[i], &error));
    }
    EXPECT(ALLUVIUM_ABSENT, alluvium_contains(keyspace, "x", 1, &error));

    /* Offsets that do not ascend, overflow, or ask for more than can be. */
    uint64_t descending[] = {0, 2, 1}, huge[] = {0, UINT64_MAX}, odd[] = {0, 1};
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many_flat(keyspace, 2, "abc", descending, &values, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many_flat(keyspace, 1, "abc", huge, &values, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many_flat(keyspace, SIZE_MAX, "abc", odd, &values, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many_flat(keyspace, SIZE_MAX / 8, "abc", odd, &values, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many_flat(keyspace, 1, "abc", (uint64_t *)((char *)odd + 1), &values, &error));
    const void *starts[] = {"x"};
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many(keyspace, SIZE_MAX, starts, lens, &values, &error));
    EXPECT(ALLUVIUM_ARGUMENT, alluvium_get_many(keyspace, 1, starts, lens + 3, &values, &error));
    CHECK(values.count == 0 && values.offsets == NULL);
    alluvium_values_free(&values);
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}

void test_after_close(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("closed"), *again;
    alluvium_keyspace *keyspace = keyspace_of(db, "default"), *other;
    alluvium_iterator *iterator;
    alluvium_batch *batch;
    alluvium_snapshot *snapshot;
    alluvium_ingest *ingest;
    void *value;
    char *text;
    size_t len;
    for (int i = 0; i < 100; i++) OK(alluvium_put(keyspace, &i, sizeof i, "value", 5, &error));
    OK(alluvium_iterator_create(keyspace, &iterator, &error));
    OK(alluvium_batch_create(db, &batch, &error));
    OK(alluvium_batch_put(batch, keyspace, "x", 1, "", 0, 0, 0, &error));
    OK(alluvium_snapshot_create(db, &snapshot, &error));
    OK(alluvium_ingest_create(keyspace, &ingest, &error));
    OK(alluvium_close(db, &error));
    OK(alluvium_close(db, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_put(keyspace, "x", 1, "", 0, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_get(keyspace, "x", 1, &value, &len, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_keyspace_open(db, "x", NULL, &other, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_batch_commit(batch, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_ingest_put(ingest, "x", 1, "", 0, 0, 0, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_flush(db, &error));
    EXPECT(ALLUVIUM_CLOSED, alluvium_persist(db, &error));
    OK(alluvium_health(db, &text, &error));
    alluvium_free(text);
    OK(alluvium_stats(db, &text, &error));
    alluvium_free(text);
    /* The directory is free, whatever handles there are. */
    again = opened("closed");
    alluvium_db_free(db);
    alluvium_db_free(again);
    /* A database is freed before what was made from it. */
    again = opened("closed");
    other = keyspace_of(again, "default");
    alluvium_db_free(again);
    EXPECT(ALLUVIUM_CLOSED, alluvium_put(other, "x", 1, "", 0, &error));
    again = opened("closed");
    alluvium_db_free(again);
    alluvium_keyspace_free(other);
    alluvium_ingest_free(ingest);
    alluvium_snapshot_free(snapshot);
    alluvium_batch_free(batch);
    alluvium_iterator_free(iterator);
    alluvium_keyspace_free(keyspace);
}

/* Changes a byte of each file of a directory. */
static int damage(const char *directory) {
    DIR *entries = opendir(directory);
    struct dirent *entry;
    int damaged = 0;
    while ((entry = readdir(entries))) {
        if (entry->d_name[0] == '.') continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        FILE *file = fopen(path, "r+b");
        CHECK(file && fseek(file, 100, SEEK_SET) == 0);
        int byte = fgetc(file);
        if (byte != EOF) {
            fseek(file, 100, SEEK_SET);
            fputc(byte ^ 0x55, file);
            damaged++;
        }
        fclose(file);
    }
    closedir(entries);
    return damaged;
}

void test_damage(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("damaged");
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    char *report;
    for (int i = 0; i < 1000; i++) OK(alluvium_put(keyspace, &i, sizeof i, "value", 5, &error));
    OK(alluvium_flush(db, &error));
    for (int i = 0; i < 1000; i += 2) OK(alluvium_put(keyspace, &i, sizeof i, "VALUE", 5, &error));
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);

    const char *path = below("damaged");
    CHECK(damage(path) > 0);
    alluvium_status status = alluvium_open(path, NULL, &db, &error);
    CHECK(status == ALLUVIUM_DAMAGED || status == ALLUVIUM_CORRUPTION);
    CHECK(db == NULL && alluvium_error_status(error) == status);
    CHECK(alluvium_error_file(error)[0] != 0 && alluvium_error_expected(error)[0] != 0);
    CHECK(alluvium_error_found(error)[0] != 0);
    alluvium_error_free(error);
    OK(alluvium_repair(path, true, false, &report, &error));
    CHECK(report[0] == '{');
    alluvium_free(report);
    OK(alluvium_repair(path, false, false, &report, &error));
    alluvium_free(report);
    OK(alluvium_open(path, NULL, &db, &error));
    OK(alluvium_verify(db, &report, &error));
    CHECK(strstr(report, "\"problems\":[]"));
    alluvium_free(report);
    OK(alluvium_close(db, &error));
    EXPECT(ALLUVIUM_NOT_A_DATABASE, alluvium_repair(below(""), true, false, &report, &error));
    alluvium_db_free(db);
}

enum { THREADS = 4, PER_THREAD = 300 };

struct work {
    const alluvium_db *db;
    const alluvium_keyspace *keyspace;
    const alluvium_cache *cache;
    int number;
    int failures;
};

static void *worker(void *argument) {
    struct work *work = argument;
    for (int i = 0; i < PER_THREAD; i++) {
        int key = work->number * PER_THREAD + i, found;
        size_t len;
        bool is_right = alluvium_put(work->keyspace, &key, sizeof key, &key, sizeof key, NULL) == ALLUVIUM_OK &&
            alluvium_get_into(work->keyspace, &key, sizeof key, &found, sizeof found, &len, NULL) == ALLUVIUM_OK &&
            len == sizeof found && found == key &&
            alluvium_increment(work->keyspace, "sum", 3, 1, NULL, NULL) == ALLUVIUM_OK &&
            alluvium_cache_set(work->cache, &key, sizeof key, &key, sizeof key, 0, 0, NULL) == ALLUVIUM_OK &&
            alluvium_cache_contains(work->cache, &key, sizeof key, NULL) == ALLUVIUM_OK;
        /* Errors of threads do not meet. */
        alluvium_error *error;
        is_right = is_right && alluvium_put(work->keyspace, &key, SIZE_MAX, NULL, 0, &error) == ALLUVIUM_TOO_LARGE &&
            alluvium_error_status(error) == ALLUVIUM_TOO_LARGE;
        alluvium_error_free(error);
        if (i % 100 == 50) {
            char *report;
            is_right = is_right && alluvium_flush(work->db, NULL) == ALLUVIUM_OK &&
                alluvium_stats(work->db, &report, NULL) == ALLUVIUM_OK;
            alluvium_free(report);
        }
        work->failures += !is_right;
    }
    return NULL;
}

void test_threads(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("threads");
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    alluvium_cache *cache;
    OK(alluvium_cache_create(NULL, &cache, &error));
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){db, keyspace, cache, i, 0};
        CHECK(pthread_create(&threads[i], NULL, worker, &work[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(work[i].failures == 0);
    }
    int64_t sum;
    uint64_t count;
    OK(alluvium_increment(keyspace, "sum", 3, 0, &sum, &error));
    CHECK(sum == THREADS * PER_THREAD);
    OK(alluvium_count(keyspace, &count, &error));
    CHECK(count == THREADS * PER_THREAD + 1);
    alluvium_cache_free(cache);
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}

void test_forks(void) {
    alluvium_error *error = NULL;
    alluvium_db *db = opened("forks");
    alluvium_keyspace *keyspace = keyspace_of(db, "default");
    alluvium_cache *cache;
    OK(alluvium_cache_create(NULL, &cache, &error));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *value;
        size_t len;
        EXPECT(ALLUVIUM_FORKED, alluvium_put(keyspace, "x", 1, "", 0, &error));
        EXPECT(ALLUVIUM_FORKED, alluvium_get(keyspace, "x", 1, &value, &len, &error));
        EXPECT(ALLUVIUM_FORKED, alluvium_cache_get(cache, "x", 1, &value, &len, &error));
        EXPECT(ALLUVIUM_FORKED, alluvium_close(db, &error));
        alluvium_cache_free(cache);
        alluvium_keyspace_free(keyspace);
        alluvium_db_free(db);
        db = opened("of the child");
        keyspace = keyspace_of(db, "default");
        OK(alluvium_put(keyspace, "x", 1, "y", 1, &error));
        CHECK(has(keyspace, "x", "y"));
        alluvium_keyspace_free(keyspace);
        OK(alluvium_close(db, &error));
        alluvium_db_free(db);
        /* What freeing leaked on purpose ends here, before valgrind looks for leaks. */
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    OK(alluvium_put(keyspace, "x", 1, "", 0, &error));
    alluvium_cache_free(cache);
    alluvium_keyspace_free(keyspace);
    alluvium_db_free(db);
}
