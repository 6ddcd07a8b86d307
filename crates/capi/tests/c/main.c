/* Tests of the C interface: every function, and what a program does wrong. The argument is a directory for files. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

long checks;

static const char *directory;

void check(bool holds, const char *text, const char *file, int line) {
    checks++;
    if (!holds) {
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
        exit(1);
    }
}

void expect(alluvium_status wanted, alluvium_status got, alluvium_error **error, const char *text, const char *file,
            int line) {
    bool is_error = got != ALLUVIUM_OK && got != ALLUVIUM_ABSENT && got != ALLUVIUM_SMALL;
    bool is_right = wanted == got && (*error != NULL) == is_error && alluvium_error_status(*error) == (is_error ? got : 0);
    if (!is_right) {
        fprintf(stderr, "%s:%d: %s: status %d instead of %d: %s\n", file, line, text, got, wanted,
                alluvium_error_message(*error));
        exit(1);
    }
    check(!is_error || strlen(alluvium_error_message(*error)) > 0, "there is a message", file, line);
    alluvium_error_free(*error);
    *error = NULL;
}

const char *below(const char *name) {
    static char paths[64][512];
    static int next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

alluvium_db *opened(const char *name) {
    alluvium_error *error = NULL;
    alluvium_db *db;
    alluvium_options *options = alluvium_options_create();
    alluvium_options_set_sync_interval_ms(options, 0);
    OK(alluvium_open(below(name), options, &db, &error));
    alluvium_options_free(options);
    return db;
}

alluvium_keyspace *keyspace_of(alluvium_db *db, const char *name) {
    alluvium_error *error = NULL;
    alluvium_keyspace *keyspace;
    OK(alluvium_keyspace_open(db, name, NULL, &keyspace, &error));
    CHECK(strcmp(alluvium_keyspace_name(keyspace), name) == 0);
    return keyspace;
}

bool has(const alluvium_keyspace *keyspace, const char *key, const char *value) {
    void *found;
    size_t len;
    if (alluvium_get(keyspace, key, strlen(key), &found, &len, NULL) != ALLUVIUM_OK) return false;
    bool is_equal = len == strlen(value) && memcmp(found, value, len) == 0;
    alluvium_free(found);
    return is_equal;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", arguments[0]);
        return 2;
    }
    directory = arguments[1];
    test_errors();
    test_settings();
    test_items();
    test_many();
    test_batches();
    test_iterators();
    test_snapshots_and_loads();
    test_reports();
    test_caches();
    test_nulls();
    test_lengths();
    test_after_close();
    test_damage();
    test_threads();
    test_forks();
    printf("%ld checks held\n", checks);
    return 0;
}
