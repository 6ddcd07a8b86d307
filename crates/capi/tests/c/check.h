/* What the tests of the C interface share. */
#ifndef CHECK_H
#define CHECK_H

#include <alluvium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of checks so far. */
extern long checks;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
/* The call, whose last argument is &error, returns this status; where that is an error, there is an object. */
#define EXPECT(status, call) expect((status), (call), &error, #call, __FILE__, __LINE__)
#define OK(call) EXPECT(ALLUVIUM_OK, call)

void check(bool holds, const char *text, const char *file, int line);
void expect(alluvium_status wanted, alluvium_status got, alluvium_error **error, const char *text, const char *file,
            int line);

/* A path below the directory of the tests. The result is valid until the process ends. */
const char *below(const char *name);
/* Opens a new database with buffered writes. */
alluvium_db *opened(const char *name);
alluvium_keyspace *keyspace_of(alluvium_db *db, const char *name);
/* A value of a keyspace is this text. */
bool has(const alluvium_keyspace *keyspace, const char *key, const char *value);

void test_errors(void);
void test_settings(void);
void test_items(void);
void test_many(void);
void test_batches(void);
void test_iterators(void);
void test_snapshots_and_loads(void);
void test_reports(void);
void test_caches(void);
void test_nulls(void);
void test_lengths(void);
void test_after_close(void);
void test_damage(void);
void test_threads(void);
void test_forks(void);

#endif
