/*
 * Alluvium: a key-value store for very many small items
 * =====================================================
 *
 * Compile with `cc program.c $(pkg-config --cflags --libs alluvium)`. The shortest program:
 *
 *     alluvium_db *db; alluvium_keyspace *things; void *value; size_t len;
 *     if (alluvium_open("data", NULL, &db, NULL) != ALLUVIUM_OK) return 1;
 *     if (alluvium_keyspace_open(db, "things", NULL, &things, NULL) != ALLUVIUM_OK) return 1;
 *     alluvium_put(things, "key", 3, "value", 5, NULL);
 *     if (alluvium_get(things, "key", 3, &value, &len, NULL) == ALLUVIUM_OK) alluvium_free(value);
 *     alluvium_keyspace_free(things);
 *     alluvium_db_free(db);
 *
 * Rules that hold for all functions:
 *
 * Handles. A function that returns a handle by address stores NULL there if it fails. Each handle is freed once, by the
 * function of its type, in any order. No other call may use the handle during or after that. NULL instead of a handle is
 * an error of the call (ALLUVIUM_ARGUMENT), never a crash.
 *
 * Bytes. Keys and values are an address and a length, and may have any bytes, zeros included. With length 0 the address
 * may be NULL. They are read, or copied, before the call returns. Paths, names and other texts end with a zero.
 *
 * Threads. A handle that is passed as a pointer to const may be used by many threads at once. One that is passed as a
 * pointer to non-const is used by one thread at a time.
 *
 * Errors. See below. No function unwinds or ends the process: a mistake in the library is ALLUVIUM_PANIC.
 *
 * Forks. Threads and locks do not survive fork(). In a child, handles from before the fork are refused with
 * ALLUVIUM_FORKED, and freeing them does nothing; open in the child instead, or call exec.
 *
 * Signals and exits. What the durability of the settings promises holds at any end of the process, also without
 * alluvium_close.
 */

#ifndef ALLUVIUM_H
#define ALLUVIUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Versions and limits
 * ===================
 *
 * A program that was compiled with this header runs with every library of the same major version that is not older.
 * The library's symbols have the version ALLUVIUM_0.
 */

/**
 * Major version of this header.
 */
#define ALLUVIUM_VERSION_MAJOR 0

/**
 * Minor version of this header.
 */
#define ALLUVIUM_VERSION_MINOR 1

/**
 * Patch version of this header.
 */
#define ALLUVIUM_VERSION_PATCH 0

/**
 * Maximum bytes of a key. The empty key is a key.
 */
#define ALLUVIUM_KEY_BYTES_MAX 65536

/**
 * Maximum bytes of a value.
 */
#define ALLUVIUM_VALUE_BYTES_MAX 67108864

/**
 * The version of the library, as "0.1.0". It is valid as long as the library is loaded.
 */
const char *alluvium_version(void);

/*
 * Errors
 * ======
 *
 * A function that can fail returns a status, and takes the address of a pointer to an error as its last argument. If
 * it fails, it stores a new error there, which the caller frees; else it stores NULL. The address may be NULL if the
 * status is enough.
 */

/**
 * The outcome of a call. ALLUVIUM_OK, ALLUVIUM_ABSENT and ALLUVIUM_SMALL come without an error object. Later versions
 * may add statuses.
 */
typedef enum {
    /**
     * The call did what it should.
     */
    ALLUVIUM_OK = 0,
    /**
     * There is no such item, or the iterator is at its end.
     */
    ALLUVIUM_ABSENT = 1,
    /**
     * The buffer is too small. Nothing was copied, and the length that is needed was stored.
     */
    ALLUVIUM_SMALL = 2,
    /**
     * An argument is wrong: a pointer is NULL, a length is impossible, a text is no UTF-8, or two handles belong to
     * different databases.
     */
    ALLUVIUM_ARGUMENT = 10,
    /**
     * A setting does not exist or cannot be used.
     */
    ALLUVIUM_SETTINGS = 11,
    /**
     * The database, or the ingest, was closed.
     */
    ALLUVIUM_CLOSED = 12,
    /**
     * The process was forked after the handle was made. Open in one process only, after the fork.
     */
    ALLUVIUM_FORKED = 13,
    /**
     * The system gave no memory for the result.
     */
    ALLUVIUM_MEMORY = 14,
    /**
     * The library has a mistake, which was stopped here. Close the database and report the message.
     */
    ALLUVIUM_PANIC = 15,
    /**
     * The system refused an operation on a file: alluvium_error_system returns its number.
     */
    ALLUVIUM_IO = 20,
    /**
     * Stored bytes fail their check. Restore the file from a backup.
     */
    ALLUVIUM_CORRUPTION = 21,
    /**
     * The database is damaged and was not opened; nothing was changed. alluvium_repair keeps what is sound.
     */
    ALLUVIUM_DAMAGED = 22,
    /**
     * A file of the database is missing.
     */
    ALLUVIUM_MISSING_FILE = 23,
    /**
     * A file has a format of another version.
     */
    ALLUVIUM_FORMAT = 24,
    /**
     * The directory has files, but no database.
     */
    ALLUVIUM_NOT_A_DATABASE = 25,
    /**
     * Another process, or another handle in this one, has the database or the cache open.
     */
    ALLUVIUM_LOCKED = 26,
    /**
     * Writes are refused since an earlier failure. Reads work. Fix the cause and reopen.
     */
    ALLUVIUM_FAILED = 30,
    /**
     * The disk is full. Reads and removals work.
     */
    ALLUVIUM_DISK_FULL = 31,
    /**
     * The write would exceed disk_bytes_max. Removals work.
     */
    ALLUVIUM_DISK_QUOTA = 32,
    /**
     * The log is full, and the background work that makes room in it fails. It is tried again, so write again later.
     */
    ALLUVIUM_STALLED = 33,
    /**
     * The database was opened for reading only, or the keyspace is of a snapshot.
     */
    ALLUVIUM_READ_ONLY = 34,
    /**
     * Open iterators take all memory that they may take. Free some.
     */
    ALLUVIUM_MEMORY_BUSY = 35,
    /**
     * A key, a value, an item or a batch is too large.
     */
    ALLUVIUM_TOO_LARGE = 40,
    /**
     * The keyspace does not fit the request: another order, no prefixes, or it was dropped.
     */
    ALLUVIUM_KEYSPACE = 41,
    /**
     * The keyspace stores items by prefixes, and the key has none.
     */
    ALLUVIUM_KEY_WITHOUT_PREFIX = 42,
    /**
     * A condition of a batch does not hold; nothing was written. alluvium_error_condition returns its number.
     */
    ALLUVIUM_CONDITION = 43,
    /**
     * The value to be incremented is no number.
     */
    ALLUVIUM_NOT_A_NUMBER = 44,
    /**
     * The sum does not fit in 64 bits.
     */
    ALLUVIUM_NUMBER_OVERFLOW = 45,
    /**
     * The directory of backups does not fit the request.
     */
    ALLUVIUM_BACKUP = 46,
    /**
     * Another failure: read its message.
     */
    ALLUVIUM_OTHER = 99,
} alluvium_status;

/**
 * Why a call failed. It does not change, and may be read by many threads. Its texts are valid until it is freed.
 */
typedef struct alluvium_error alluvium_error;

/**
 * The status that the failed call returned; ALLUVIUM_OK for NULL.
 */
alluvium_status alluvium_error_status(const alluvium_error *error);

/**
 * What failed, why, and what to do, in English; an empty text for NULL.
 */
const char *alluvium_error_message(const alluvium_error *error);

/**
 * The file that is damaged, missing or of another format; NULL if the error names none.
 */
const char *alluvium_error_file(const alluvium_error *error);

/**
 * The position of the damage in its file, in bytes; 0 if the error names none.
 */
uint64_t alluvium_error_offset(const alluvium_error *error);

/**
 * What sound bytes would have there; NULL if the error does not say it.
 */
const char *alluvium_error_expected(const alluvium_error *error);

/**
 * What was found instead; NULL if the error does not say it.
 */
const char *alluvium_error_found(const alluvium_error *error);

/**
 * The system's number of the failure, as in errno; 0 if it was none of the system.
 */
int alluvium_error_system(const alluvium_error *error);

/**
 * The number of the condition that failed, counted from 0 in the order of the batch; -1 if none did.
 */
int64_t alluvium_error_condition(const alluvium_error *error);

/**
 * The key whose condition failed, and its length; NULL and 0 if none did.
 */
const void *alluvium_error_key(const alluvium_error *error, size_t *key_len);

/**
 * Frees an error. NULL is allowed.
 */
void alluvium_error_free(alluvium_error *error);

/*
 * Memory of results
 * =================
 *
 * Values, texts and reports that a call returns by address belong to the caller, who frees them.
 */

/**
 * Frees a value, a text or a report. NULL is allowed.
 */
void alluvium_free(void *memory);

/*
 * Settings of a database
 * ======================
 *
 * Settings are a handle of their own. alluvium_open takes it, and it can be used again or freed afterwards.
 */

/**
 * Settings of a database. One thread uses it at a time.
 */
typedef struct alluvium_options alluvium_options;

/**
 * Settings, all with their defaults. The caller frees them.
 */
alluvium_options *alluvium_options_create(void);

/**
 * Frees settings. NULL is allowed.
 */
void alluvium_options_free(alluvium_options *options);

/**
 * Sets any setting by its name and a text: a number, "true" or "false", or a word. Names and texts can come from a
 * configuration file; what cannot be used is refused at once with ALLUVIUM_SETTINGS.
 *
 *     expected_items             number of items that the database will have, for its plan; default 0: unknown
 *     plan                       "auto" (default), a name such as "silt", or the JSON of `alluvium plan --json`
 *     durability                 when a write returns: "sync" (default), when it is on the device; "process", when the
 *                                system has it; "buffered", when it is in memory; or a number, the seconds between
 *                                two syncs in the background
 *     create                     whether to create the database if there is none; default true
 *     read_only                  whether to open for reading only, also what a bulk build committed; default false
 *     memory_bytes_max           maximum bytes of memory of the database; default: no limit
 *     process_memory_bytes_max   maximum bytes of memory of the process, the database included; default: no limit
 *     row_cache_bytes_max        maximum bytes of items that gets leave in memory; default 64 MiB
 *     compress_rows              "lz4" or "zstd": keep more of them, compressed; default: as they are
 *     disk_bytes_max             maximum bytes of disk; default: no limit
 *     drop_oldest                whether the oldest items go when the disk is full, as in a cache; default false
 *     index_bytes_per_item       bytes of memory per item that an automatic plan may use; default 0.5
 *     inline_bytes_max           maximum bytes of an item that is not stored in a file for large ones; default 2039
 *     ingest_sort_bytes_max      memory of a bulk load
 *     background_bytes_per_s_max maximum bytes per second of background work; default: no limit
 *     open_files_max             maximum number of open files
 *     log_retention_bytes        bytes of log that are kept after they are needed; default 0
 *     read_wait                  what a thread does while it waits for a read: "adapt" (default), "sleep", "poll"
 *     young_levels_dir           a second directory, for tables that are rewritten often
 *     young_levels               number of levels whose tables are there; default 1
 *     workload.gets              shares of requests, for an automatic plan: also workload.absent_gets, workload.puts,
 *                                workload.removals; workload.skew, workload.key_bytes, workload.value_bytes
 */
alluvium_status alluvium_options_set(alluvium_options *options,
                                     const char *name,
                                     const char *value,
                                     alluvium_error **error);

/**
 * Sets expected_items. The settings may be NULL, here and below; then nothing happens.
 */
void alluvium_options_set_expected_items(alluvium_options *options, uint64_t items);

/**
 * Sets create.
 */
void alluvium_options_set_create(alluvium_options *options, bool create);

/**
 * Sets read_only.
 */
void alluvium_options_set_read_only(alluvium_options *options, bool read_only);

/**
 * Sets memory_bytes_max.
 */
void alluvium_options_set_memory_bytes_max(alluvium_options *options, uint64_t bytes);

/**
 * Sets row_cache_bytes_max.
 */
void alluvium_options_set_row_cache_bytes_max(alluvium_options *options, uint64_t bytes);

/**
 * Sets disk_bytes_max.
 */
void alluvium_options_set_disk_bytes_max(alluvium_options *options, uint64_t bytes);

/**
 * Sets durability to an interval in milliseconds; 0 means "buffered".
 */
void alluvium_options_set_sync_interval_ms(alluvium_options *options, uint32_t milliseconds);

/*
 * Databases
 * =========
 *
 * A database is a directory, which one handle in one process has open at a time.
 */

/**
 * An open database. Many threads may use it.
 */
typedef struct alluvium_db alluvium_db;

/**
 * Opens the database in the directory `path`, and creates it if there is none. `options` may be NULL for defaults.
 * The caller closes `*db` and frees it. Opening takes as long as reading the log does.
 *
 * Errors: ALLUVIUM_LOCKED, ALLUVIUM_DAMAGED, ALLUVIUM_NOT_A_DATABASE, ALLUVIUM_FORMAT, ALLUVIUM_SETTINGS, ALLUVIUM_IO.
 */
alluvium_status alluvium_open(const char *path,
                              const alluvium_options *options,
                              alluvium_db **db,
                              alluvium_error **error);

/**
 * Closes the database: makes all writes durable and releases the directory. The handle, and all that was made from
 * it, stay until they are freed; calls with them return ALLUVIUM_CLOSED. Closing again does nothing.
 */
alluvium_status alluvium_close(const alluvium_db *db,
                               alluvium_error **error);

/**
 * Closes the database if it is open, ignoring errors, and frees the handle. NULL is allowed. In a forked process it
 * closes nothing.
 */
void alluvium_db_free(alluvium_db *db);

/**
 * Makes all writes so far survive a power cut, whatever the durability.
 */
alluvium_status alluvium_persist(const alluvium_db *db, alluvium_error **error);

/**
 * Moves the items of the log to tables.
 */
alluvium_status alluvium_flush(const alluvium_db *db, alluvium_error **error);

/**
 * Merges everything into the last levels, and drops what no read can return. Rewrites the whole database.
 */
alluvium_status alluvium_compact(const alluvium_db *db, alluvium_error **error);

/**
 * Waits until background work has nothing to do.
 */
alluvium_status alluvium_wait_idle(const alluvium_db *db, alluvium_error **error);

/**
 * Accepts writes again at once, if there is room after the disk was full.
 */
alluvium_status alluvium_resume(const alluvium_db *db, alluvium_error **error);

/**
 * The names of all keyspaces, each followed by a line feed, in a text that the caller frees by alluvium_free. Names
 * have no control characters.
 */
alluvium_status alluvium_keyspace_names(const alluvium_db *db,
                                        char **names,
                                        alluvium_error **error);

/**
 * Removes a keyspace with all its items. `existed`, which may be NULL, says whether there was one.
 */
alluvium_status alluvium_drop_keyspace(const alluvium_db *db,
                                       const char *name,
                                       bool *existed,
                                       alluvium_error **error);

/*
 * Keyspaces
 * =========
 *
 * A keyspace is a named set of items. Its items are in the order of hashes of their keys, so there are no scans of
 * ranges of keys. With a rule by which keys have prefixes, items of one prefix are stored together, and can be listed
 * and removed together.
 */

/**
 * A keyspace of a database, or of a snapshot. Many threads may use it.
 */
typedef struct alluvium_keyspace alluvium_keyspace;

/**
 * Settings of a new keyspace. One thread uses it at a time.
 */
typedef struct alluvium_keyspace_options alluvium_keyspace_options;

/**
 * Settings of a keyspace, all with their defaults: no prefixes, and the plan of the database. The caller frees them.
 */
alluvium_keyspace_options *alluvium_keyspace_options_create(void);

/**
 * Frees settings of a keyspace. NULL is allowed.
 */
void alluvium_keyspace_options_free(alluvium_keyspace_options *options);

/**
 * The prefix of a key ends before the first byte `delimiter`. The settings may be NULL, here and below; then nothing
 * happens.
 */
void alluvium_keyspace_options_set_delimiter(alluvium_keyspace_options *options,
                                             uint8_t delimiter);

/**
 * The prefix of a key is its first `bytes` bytes.
 */
void alluvium_keyspace_options_set_prefix_bytes(alluvium_keyspace_options *options, uint16_t bytes);

/**
 * Whether alluvium_iterator_over_prefixes can list the prefixes.
 */
void alluvium_keyspace_options_set_listed_prefixes(alluvium_keyspace_options *options, bool listed);

/**
 * Sets the plan: a name such as "silt", or a plan as `alluvium plan --json` prints it.
 */
alluvium_status alluvium_keyspace_options_set_plan(alluvium_keyspace_options *options,
                                                   const char *plan,
                                                   alluvium_error **error);

/**
 * The keyspace of this name, which is created if there is none. With `options` NULL, an existing one is opened as it
 * is; else its order must be that of the options. The caller frees `*keyspace`. "default" is the keyspace of the
 * command `alluvium` and of Python's mappings.
 *
 * Errors: ALLUVIUM_KEYSPACE if it exists with another order, ALLUVIUM_SETTINGS for a name that is empty, longer than
 * 255 bytes or has control characters.
 */
alluvium_status alluvium_keyspace_open(const alluvium_db *db,
                                       const char *name,
                                       const alluvium_keyspace_options *options,
                                       alluvium_keyspace **keyspace,
                                       alluvium_error **error);

/**
 * Frees the handle of a keyspace; the keyspace stays. NULL is allowed.
 */
void alluvium_keyspace_free(alluvium_keyspace *keyspace);

/**
 * The name of a keyspace, valid until its handle is freed; an empty text for NULL.
 */
const char *alluvium_keyspace_name(const alluvium_keyspace *keyspace);

/**
 * The number of items, estimated from above. Costs nothing. Not for keyspaces of snapshots.
 */
alluvium_status alluvium_approximate_count(const alluvium_keyspace *keyspace,
                                           uint64_t *count,
                                           alluvium_error **error);

/**
 * The exact number of items. Reads all of them.
 */
alluvium_status alluvium_count(const alluvium_keyspace *keyspace, uint64_t *count, alluvium_error **error);

/**
 * Removes all items of a keyspace, and frees their space at once.
 */
alluvium_status alluvium_clear(const alluvium_keyspace *keyspace, alluvium_error **error);

/*
 * Single items
 * ============
 *
 * A get costs at most one read of a page, and none of a fresh item or one that was read recently. A put waits until
 * it is as durable as the settings demand; where that takes long, alluvium_put_many waits once for many. An item can
 * expire: `expires_at_ms` is a time in milliseconds since 1970, or 0 for never. Flags mean nothing to the library.
 */

/**
 * Stores an item for good.
 */
alluvium_status alluvium_put(const alluvium_keyspace *keyspace,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             alluvium_error **error);

/**
 * Stores an item with flags and an expiry. Each costs a few bytes if it is not 0.
 */
alluvium_status alluvium_put_with(const alluvium_keyspace *keyspace,
                                  const void *key,
                                  size_t key_len,
                                  const void *value,
                                  size_t value_len,
                                  uint32_t flags,
                                  uint64_t expires_at_ms,
                                  alluvium_error **error);

/**
 * The value of a key, in memory that the caller frees by alluvium_free, and its length; ALLUVIUM_ABSENT and NULL if
 * there is none. An empty value is not NULL.
 */
alluvium_status alluvium_get(const alluvium_keyspace *keyspace,
                             const void *key,
                             size_t key_len,
                             void **value,
                             size_t *value_len,
                             alluvium_error **error);

/**
 * Copies the value of a key into a buffer, without an allocation. `*value_len` becomes the length of the value;
 * ALLUVIUM_SMALL and no copy if that is more than `capacity`. The buffer may be NULL if its capacity is 0: to ask for
 * the length.
 */
alluvium_status alluvium_get_into(const alluvium_keyspace *keyspace,
                                  const void *key,
                                  size_t key_len,
                                  void *buffer,
                                  size_t capacity,
                                  size_t *value_len,
                                  alluvium_error **error);

/**
 * The value of a key as by alluvium_get, its flags and its expiry (0 for never). Both addresses may be NULL.
 */
alluvium_status alluvium_get_with(const alluvium_keyspace *keyspace,
                                  const void *key,
                                  size_t key_len,
                                  void **value,
                                  size_t *value_len,
                                  uint32_t *flags,
                                  uint64_t *expires_at_ms,
                                  alluvium_error **error);

/**
 * The value of a key as by alluvium_get, and its version: 32 bytes that stand for value, flags and expiry, or for the
 * absence of the item. They are stored at `version` in both cases, for alluvium_batch_require_unchanged. Not for
 * keyspaces of snapshots.
 */
alluvium_status alluvium_get_version(const alluvium_keyspace *keyspace,
                                     const void *key,
                                     size_t key_len,
                                     void **value,
                                     size_t *value_len,
                                     uint8_t *version,
                                     alluvium_error **error);

/**
 * ALLUVIUM_OK if there is an item of this key, ALLUVIUM_ABSENT if there is none.
 */
alluvium_status alluvium_contains(const alluvium_keyspace *keyspace,
                                  const void *key,
                                  size_t key_len,
                                  alluvium_error **error);

/**
 * Removes a key, whether or not it is present. Reads nothing.
 */
alluvium_status alluvium_remove(const alluvium_keyspace *keyspace,
                                const void *key,
                                size_t key_len,
                                alluvium_error **error);

/**
 * Removes a key and returns the value that it had as by alluvium_get; ALLUVIUM_ABSENT if there was none. Atomic.
 */
alluvium_status alluvium_take(const alluvium_keyspace *keyspace,
                              const void *key,
                              size_t key_len,
                              void **value,
                              size_t *value_len,
                              alluvium_error **error);

/**
 * Stores `value` if the key has the value `expected`, and says whether it did. A NULL of length 0 stands for no item:
 * as `expected`, that there must be none; as `value`, that the key is removed. Atomic.
 */
alluvium_status alluvium_compare_and_swap(const alluvium_keyspace *keyspace,
                                          const void *key,
                                          size_t key_len,
                                          const void *expected,
                                          size_t expected_len,
                                          const void *value,
                                          size_t value_len,
                                          bool *swapped,
                                          alluvium_error **error);

/**
 * Adds `by` to the number under a key, 8 bytes with the lowest first, and returns the sum, for which the address may
 * be NULL. An absent key counts as 0. Atomic.
 */
alluvium_status alluvium_increment(const alluvium_keyspace *keyspace,
                                   const void *key,
                                   size_t key_len,
                                   int64_t by,
                                   int64_t *sum,
                                   alluvium_error **error);

/**
 * Appends bytes to the value of a key and returns its new length, for which the address may be NULL. An absent key
 * counts as empty. Atomic.
 */
alluvium_status alluvium_append(const alluvium_keyspace *keyspace,
                                const void *key,
                                size_t key_len,
                                const void *bytes,
                                size_t len,
                                size_t *value_len,
                                alluvium_error **error);

/**
 * Gives an item another expiry, or none for 0; ALLUVIUM_ABSENT if there is no item. Atomic.
 */
alluvium_status alluvium_touch(const alluvium_keyspace *keyspace,
                               const void *key,
                               size_t key_len,
                               uint64_t expires_at_ms,
                               alluvium_error **error);

/*
 * Many items in one call
 * ======================
 *
 * The reads of a call are in flight together, and its writes wait once. So one thread that asks for a hundred items
 * at a time is as fast as many threads that ask for one. A call from Go costs as much as some gets of fresh items,
 * which batches make cheap, too.
 *
 * Keys and values are given in one of two forms: by addresses and lengths, or flat. Flat means all bytes one after
 * the other, and `count` + 1 offsets: part number i is from offsets[i] to offsets[i + 1]. A flat argument contains no
 * pointers, as cgo demands. It is also how Arrow stores columns.
 */

/**
 * The values of many keys, in the order of the keys, in one block of memory that alluvium_values_free frees.
 */
typedef struct {
    /**
     * Number of keys that were asked for.
     */
    size_t count;
    /**
     * `count` + 1 positions in `bytes`: value number i is from offsets[i] to offsets[i + 1].
     */
    const uint64_t *offsets;
    /**
     * `count` bytes: 1 for a key that has a value, which may be empty, 0 for one that has none.
     */
    const uint8_t *presence;
    /**
     * The values.
     */
    const void *bytes;
} alluvium_values;

/**
 * Frees the memory of values and empties the struct, so that it may be freed again. NULL is allowed.
 */
void alluvium_values_free(alluvium_values *values);

/**
 * The values of `count` keys, given by addresses and lengths. `*values` is filled; the caller frees its memory.
 */
alluvium_status alluvium_get_many(const alluvium_keyspace *keyspace,
                                  size_t count,
                                  const void *const *keys,
                                  const size_t *key_lens,
                                  alluvium_values *values,
                                  alluvium_error **error);

/**
 * The values of `count` keys, given flat.
 */
alluvium_status alluvium_get_many_flat(const alluvium_keyspace *keyspace,
                                       size_t count,
                                       const void *keys,
                                       const uint64_t *key_offsets,
                                       alluvium_values *values,
                                       alluvium_error **error);

/**
 * Whether each of `count` keys, given flat, is present: 1 or 0 in each of `count` bytes at `presence`. Not for
 * keyspaces of snapshots.
 */
alluvium_status alluvium_contains_many_flat(const alluvium_keyspace *keyspace,
                                            size_t count,
                                            const void *keys,
                                            const uint64_t *key_offsets,
                                            uint8_t *presence,
                                            alluvium_error **error);

/**
 * Stores `count` items, given by addresses and lengths. With `atomic`, all of them take effect together or none does;
 * else an error or a crash may leave some of them stored.
 */
alluvium_status alluvium_put_many(const alluvium_keyspace *keyspace,
                                  size_t count,
                                  const void *const *keys,
                                  const size_t *key_lens,
                                  const void *const *values,
                                  const size_t *value_lens,
                                  bool atomic,
                                  alluvium_error **error);

/**
 * Stores `count` items, given flat, with the same flags and expiry, which may be 0. `atomic` as above.
 */
alluvium_status alluvium_put_many_flat(const alluvium_keyspace *keyspace,
                                       size_t count,
                                       const void *keys,
                                       const uint64_t *key_offsets,
                                       const void *values,
                                       const uint64_t *value_offsets,
                                       uint32_t flags,
                                       uint64_t expires_at_ms,
                                       bool atomic,
                                       alluvium_error **error);

/**
 * Removes `count` keys, given flat, whether or not they are present. `atomic` as above.
 */
alluvium_status alluvium_remove_many_flat(const alluvium_keyspace *keyspace,
                                          size_t count,
                                          const void *keys,
                                          const uint64_t *key_offsets,
                                          bool atomic,
                                          alluvium_error **error);

/*
 * Batches of writes under conditions
 * ==================================
 *
 * The writes of a batch, also of several keyspaces, take effect together or not at all. Conditions are checked against
 * the state before the batch: with the version that alluvium_get_version returned, a batch is a transaction.
 */

/**
 * Writes of one database. One thread uses it at a time.
 */
typedef struct alluvium_batch alluvium_batch;

/**
 * An empty batch. The caller frees it.
 */
alluvium_status alluvium_batch_create(const alluvium_db *db, alluvium_batch **batch, alluvium_error **error);

/**
 * Frees a batch. What was not committed is forgotten. NULL is allowed.
 */
void alluvium_batch_free(alluvium_batch *batch);

/**
 * Adds an item to store, with flags and an expiry that may be 0. The batch has a copy.
 */
alluvium_status alluvium_batch_put(alluvium_batch *batch,
                                   const alluvium_keyspace *keyspace,
                                   const void *key,
                                   size_t key_len,
                                   const void *value,
                                   size_t value_len,
                                   uint32_t flags,
                                   uint64_t expires_at_ms,
                                   alluvium_error **error);

/**
 * Adds a key to remove, whether or not it is present.
 */
alluvium_status alluvium_batch_remove(alluvium_batch *batch,
                                      const alluvium_keyspace *keyspace,
                                      const void *key,
                                      size_t key_len,
                                      alluvium_error **error);

/**
 * Demands that the key has no item.
 */
alluvium_status alluvium_batch_require_absent(alluvium_batch *batch,
                                              const alluvium_keyspace *keyspace,
                                              const void *key,
                                              size_t key_len,
                                              alluvium_error **error);

/**
 * Demands that the key has an item.
 */
alluvium_status alluvium_batch_require_present(alluvium_batch *batch,
                                               const alluvium_keyspace *keyspace,
                                               const void *key,
                                               size_t key_len,
                                               alluvium_error **error);

/**
 * Demands that the key has this value.
 */
alluvium_status alluvium_batch_require_value(alluvium_batch *batch,
                                             const alluvium_keyspace *keyspace,
                                             const void *key,
                                             size_t key_len,
                                             const void *value,
                                             size_t value_len,
                                             alluvium_error **error);

/**
 * Demands that the item of the key, or its absence, is as when alluvium_get_version returned this version of 32 bytes.
 */
alluvium_status alluvium_batch_require_unchanged(alluvium_batch *batch,
                                                 const alluvium_keyspace *keyspace,
                                                 const void *key,
                                                 size_t key_len,
                                                 const uint8_t *version,
                                                 alluvium_error **error);

/**
 * Number of writes in a batch; 0 for NULL.
 */
size_t alluvium_batch_count(const alluvium_batch *batch);

/**
 * Performs the writes if all conditions hold; else writes nothing and returns ALLUVIUM_CONDITION. In both cases, and
 * after any other error, the batch is empty afterwards and can be used again.
 */
alluvium_status alluvium_batch_commit(alluvium_batch *batch,
                                      alluvium_error **error);

/*
 * Iterating
 * =========
 *
 * An iterator shows all items of a keyspace, in no order that means anything, as they were when it began. It keeps the
 * tables that it reads until its end, or until it is freed.
 *
 * Calls to a function of the caller hold no lock of the library; it may use the keyspace. It must return: neither
 * longjmp nor an exception may leave it.
 */

/**
 * An iterator. One thread uses it at a time.
 */
typedef struct alluvium_iterator alluvium_iterator;

/**
 * A function that gets an item, and what its caller passed as `context`. The item is valid until it returns. It
 * returns 0 to continue and anything else to stop.
 */
typedef int (*alluvium_visit)(void *context,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len);

/**
 * Some items, flat, in one block of memory that alluvium_items_free frees.
 */
typedef struct {
    /**
     * Number of items.
     */
    size_t count;
    /**
     * `count` + 1 positions in `keys`.
     */
    const uint64_t *key_offsets;
    /**
     * `count` + 1 positions in `values`.
     */
    const uint64_t *value_offsets;
    /**
     * The keys.
     */
    const void *keys;
    /**
     * The values.
     */
    const void *values;
} alluvium_items;

/**
 * Calls `visit` with all items until it returns something else than 0.
 */
alluvium_status alluvium_iterate(const alluvium_keyspace *keyspace,
                                 alluvium_visit visit,
                                 void *context,
                                 alluvium_error **error);

/**
 * Calls `visit` with the items of one prefix: what the rule of the keyspace says is the prefix of their keys.
 */
alluvium_status alluvium_iterate_prefix(const alluvium_keyspace *keyspace,
                                        const void *prefix,
                                        size_t prefix_len,
                                        alluvium_visit visit,
                                        void *context,
                                        alluvium_error **error);

/**
 * An iterator over all items. The caller frees it.
 */
alluvium_status alluvium_iterator_create(const alluvium_keyspace *keyspace,
                                         alluvium_iterator **iterator,
                                         alluvium_error **error);

/**
 * An iterator over the items of one prefix. The caller frees it.
 */
alluvium_status alluvium_iterator_over_prefix(const alluvium_keyspace *keyspace,
                                              const void *prefix,
                                              size_t prefix_len,
                                              alluvium_iterator **iterator,
                                              alluvium_error **error);

/**
 * An iterator over the prefixes that have items, from `start` on, in the order of their bytes. A prefix is shown as a
 * key with an empty value. The keyspace must list its prefixes. The caller frees the iterator.
 */
alluvium_status alluvium_iterator_over_prefixes(const alluvium_keyspace *keyspace,
                                                const void *start,
                                                size_t start_len,
                                                alluvium_iterator **iterator,
                                                alluvium_error **error);

/**
 * Frees an iterator, also before its end. NULL is allowed.
 */
void alluvium_iterator_free(alluvium_iterator *iterator);

/**
 * The next item; ALLUVIUM_ABSENT at the end. Key and value are valid until the next call with this iterator; the
 * addresses of what is not wanted may be NULL.
 */
alluvium_status alluvium_iterator_next(alluvium_iterator *iterator,
                                       const void **key,
                                       size_t *key_len,
                                       const void **value,
                                       size_t *value_len,
                                       alluvium_error **error);

/**
 * Frees the memory of items and empties the struct, so that it may be freed again. NULL is allowed.
 */
void alluvium_items_free(alluvium_items *items);

/**
 * The next items, at most `count_max` of them, and fewer if they have more than some 4 MiB; ALLUVIUM_ABSENT at the
 * end. `*items` is filled; the caller frees its memory.
 */
alluvium_status alluvium_iterator_next_many(alluvium_iterator *iterator,
                                            size_t count_max,
                                            alluvium_items *items,
                                            alluvium_error **error);

/**
 * Removes all items of one prefix, atomically.
 */
alluvium_status alluvium_remove_prefix(const alluvium_keyspace *keyspace,
                                       const void *prefix,
                                       size_t prefix_len,
                                       alluvium_error **error);

/*
 * Snapshots
 * =========
 *
 * A snapshot shows all keyspaces as they were at one moment. It keeps the tables of that moment until it is freed.
 */

/**
 * A snapshot. Many threads may use it.
 */
typedef struct alluvium_snapshot alluvium_snapshot;

/**
 * A snapshot of all keyspaces as they are now. The caller frees it.
 */
alluvium_status alluvium_snapshot_create(const alluvium_db *db,
                                         alluvium_snapshot **snapshot,
                                         alluvium_error **error);

/**
 * Frees a snapshot. Keyspaces of it that are in use stay. NULL is allowed.
 */
void alluvium_snapshot_free(alluvium_snapshot *snapshot);

/**
 * A keyspace of a snapshot, for all functions that read one; those that write return ALLUVIUM_READ_ONLY.
 * ALLUVIUM_ABSENT if there was none of this name. The caller frees it by alluvium_keyspace_free.
 */
alluvium_status alluvium_snapshot_keyspace(const alluvium_snapshot *snapshot,
                                           const char *name,
                                           alluvium_keyspace **keyspace,
                                           alluvium_error **error);

/**
 * When a snapshot was taken, in milliseconds since 1970; 0 for NULL.
 */
uint64_t alluvium_snapshot_taken_at_ms(const alluvium_snapshot *snapshot);

/*
 * Bulk loads
 * ==========
 *
 * Items that are added to a bulk load, in any order, go straight to tables, at a fraction of the cost of puts. They
 * are visible when the load is finished.
 */

/**
 * A bulk load into a keyspace. One thread uses it at a time.
 */
typedef struct alluvium_ingest alluvium_ingest;

/**
 * Begins a bulk load. The caller frees it.
 */
alluvium_status alluvium_ingest_create(const alluvium_keyspace *keyspace,
                                       alluvium_ingest **ingest,
                                       alluvium_error **error);

/**
 * Frees a bulk load. One that was not finished is given up, and nothing of it is stored. NULL is allowed.
 */
void alluvium_ingest_free(alluvium_ingest *ingest);

/**
 * Adds an item, with flags and an expiry that may be 0. It replaces one that was added under the same key.
 */
alluvium_status alluvium_ingest_put(alluvium_ingest *ingest,
                                    const void *key,
                                    size_t key_len,
                                    const void *value,
                                    size_t value_len,
                                    uint32_t flags,
                                    uint64_t expires_at_ms,
                                    alluvium_error **error);

/**
 * Adds `count` items, given flat as in alluvium_put_many_flat.
 */
alluvium_status alluvium_ingest_put_many_flat(alluvium_ingest *ingest,
                                              size_t count,
                                              const void *keys,
                                              const uint64_t *key_offsets,
                                              const void *values,
                                              const uint64_t *value_offsets,
                                              alluvium_error **error);

/**
 * Makes the items visible, durably. The number of items that were added is stored at `items`, which may be NULL.
 * After an error some items are visible and others are not: loading the same again completes it.
 */
alluvium_status alluvium_ingest_finish(alluvium_ingest *ingest,
                                       uint64_t *items,
                                       alluvium_error **error);

/*
 * Statistics, verification, repair and backups
 * ============================================
 *
 * Reports are JSON, in texts that the caller frees by alluvium_free. They have the fields of the command `alluvium`
 * and of the Rust documentation; later versions may add fields.
 */

/**
 * Figures of a database: items, bytes of memory and disk, traffic, background work.
 */
alluvium_status alluvium_stats(const alluvium_db *db, char **report, alluvium_error **error);

/**
 * Whether writes are accepted, and if not, why.
 */
alluvium_status alluvium_health(const alluvium_db *db, char **report, alluvium_error **error);

/**
 * Reads and checks everything that is stored. Damage is no error of the call: the report lists it as "problems".
 */
alluvium_status alluvium_verify(const alluvium_db *db,
                                char **report,
                                alluvium_error **error);

/**
 * Makes a damaged database, which must not be open, usable again, with everything that can still be read. With
 * `dry_run` it only reports. Damaged files stay under names that begin with "lost-", unless `discard` is set.
 */
alluvium_status alluvium_repair(const char *path,
                                bool dry_run,
                                bool discard,
                                char **report,
                                alluvium_error **error);

/**
 * Makes the directory `path`, empty or absent, a database with the same content, by links where possible.
 */
alluvium_status alluvium_checkpoint(const alluvium_db *db, const char *path, alluvium_error **error);

/**
 * Makes a backup in a new directory below `root`, and removes the oldest ones until `keep` are left; 0 removes none.
 */
alluvium_status alluvium_backup(const alluvium_db *db,
                                const char *root,
                                size_t keep,
                                char **report,
                                alluvium_error **error);

/**
 * The backups below `root`, old to young.
 */
alluvium_status alluvium_backups(const char *root, char **report, alluvium_error **error);

/**
 * Copies a backup, or the youngest of a directory of backups, to `target`, and checks the copy.
 */
alluvium_status alluvium_restore(const char *source,
                                 const char *target,
                                 char **report,
                                 alluvium_error **error);

/*
 * Settings of a cache
 * ===================
 */

/**
 * Settings of a cache. One thread uses it at a time.
 */
typedef struct alluvium_cache_options alluvium_cache_options;

/**
 * Settings of a cache, all with their defaults: 64 MiB of memory. The caller frees them.
 */
alluvium_cache_options *alluvium_cache_options_create(void);

/**
 * Frees settings of a cache. NULL is allowed.
 */
void alluvium_cache_options_free(alluvium_cache_options *options);

/**
 * Sets any setting of a cache by its name and a text; what cannot be used is refused at once with ALLUVIUM_SETTINGS.
 *
 *     memory_bytes    bytes of memory, or of the file; default 64 MiB
 *     item_bytes      mean bytes of key and value, by which memory is divided; default 200
 *     item_bytes_max  maximum bytes of an item; default 1 MiB
 *     partitions      parts with a lock of their own; default one for 4 MiB, at most 16
 *     compress        "lz4" or "zstd": items that would be forgotten stay in compressed blocks
 *     survive         path of a file in which the cache is, and where the next process finds its content again
 *     survive_loss    what it survives: "process" (default), the end of the process; "power", also that of the system;
 *                     "pmem", the same in persistent memory
 *     reset           whether to empty a file that has other settings; default false
 */
alluvium_status alluvium_cache_options_set(alluvium_cache_options *options,
                                           const char *name,
                                           const char *value,
                                           alluvium_error **error);

/**
 * Sets memory_bytes. The settings may be NULL; then nothing happens.
 */
void alluvium_cache_options_set_memory_bytes(alluvium_cache_options *options, uint64_t bytes);

/*
 * Caches
 * ======
 *
 * A cache has items in memory, or in a file that survives, and forgets items when it is full. Its calls take a
 * fraction of a microsecond. `ttl_ms` is the time in milliseconds after which an item is absent, or 0 for none.
 */

/**
 * A cache. Many threads may use it.
 */
typedef struct alluvium_cache alluvium_cache;

/**
 * A cache. `options` may be NULL for defaults. The caller frees it.
 *
 * Errors: ALLUVIUM_SETTINGS; for a file also ALLUVIUM_LOCKED, ALLUVIUM_CORRUPTION, ALLUVIUM_IO.
 */
alluvium_status alluvium_cache_create(const alluvium_cache_options *options,
                                      alluvium_cache **cache,
                                      alluvium_error **error);

/**
 * Frees a cache. What is in a file stays there. NULL is allowed.
 */
void alluvium_cache_free(alluvium_cache *cache);

/**
 * The value of a key, in memory that the caller frees by alluvium_free; ALLUVIUM_ABSENT and NULL if there is none.
 */
alluvium_status alluvium_cache_get(const alluvium_cache *cache,
                                   const void *key,
                                   size_t key_len,
                                   void **value,
                                   size_t *value_len,
                                   alluvium_error **error);

/**
 * Copies the value of a key into a buffer, as alluvium_get_into does. Its flags and the time that is left in
 * milliseconds (0 for no limit) are stored at addresses that may be NULL.
 */
alluvium_status alluvium_cache_get_into(const alluvium_cache *cache,
                                        const void *key,
                                        size_t key_len,
                                        void *buffer,
                                        size_t capacity,
                                        size_t *value_len,
                                        uint32_t *flags,
                                        uint64_t *ttl_ms,
                                        alluvium_error **error);

/**
 * The values of `count` keys, given flat as in alluvium_get_many_flat.
 */
alluvium_status alluvium_cache_get_many_flat(const alluvium_cache *cache,
                                             size_t count,
                                             const void *keys,
                                             const uint64_t *key_offsets,
                                             alluvium_values *values,
                                             alluvium_error **error);

/**
 * Stores an item.
 */
alluvium_status alluvium_cache_set(const alluvium_cache *cache,
                                   const void *key,
                                   size_t key_len,
                                   const void *value,
                                   size_t value_len,
                                   uint32_t flags,
                                   uint64_t ttl_ms,
                                   alluvium_error **error);

/**
 * Stores `count` items, given flat as in alluvium_put_many_flat.
 */
alluvium_status alluvium_cache_set_many_flat(const alluvium_cache *cache,
                                             size_t count,
                                             const void *keys,
                                             const uint64_t *key_offsets,
                                             const void *values,
                                             const uint64_t *value_offsets,
                                             uint32_t flags,
                                             uint64_t ttl_ms,
                                             alluvium_error **error);

/**
 * Removes an item; ALLUVIUM_ABSENT if there was none.
 */
alluvium_status alluvium_cache_remove(const alluvium_cache *cache,
                                      const void *key,
                                      size_t key_len,
                                      alluvium_error **error);

/**
 * ALLUVIUM_OK if there is an item of this key, ALLUVIUM_ABSENT if there is none. Counts as a use of the item.
 */
alluvium_status alluvium_cache_contains(const alluvium_cache *cache,
                                        const void *key,
                                        size_t key_len,
                                        alluvium_error **error);

/**
 * Removes all items of a cache.
 */
alluvium_status alluvium_cache_clear(const alluvium_cache *cache, alluvium_error **error);

/**
 * Waits until all that was stored in a file is on the device; does nothing for a cache in memory.
 */
alluvium_status alluvium_cache_sync(const alluvium_cache *cache, alluvium_error **error);

/**
 * Figures of a cache as JSON: items (of a file, an estimate), hits, misses, evictions, bytes. The caller frees the
 * text by alluvium_free.
 */
alluvium_status alluvium_cache_stats(const alluvium_cache *cache,
                                     char **report,
                                     alluvium_error **error);

/*
 * Updates of caches
 * =================
 *
 * Each looks at the item of a key and writes it with no other write in between.
 */

/**
 * Stores an item unless the key has one; then it returns ALLUVIUM_ABSENT and stores nothing.
 */
alluvium_status alluvium_cache_add(const alluvium_cache *cache,
                                   const void *key,
                                   size_t key_len,
                                   const void *value,
                                   size_t value_len,
                                   uint32_t flags,
                                   uint64_t ttl_ms,
                                   alluvium_error **error);

/**
 * Stores an item if the key has one; else it returns ALLUVIUM_ABSENT.
 */
alluvium_status alluvium_cache_replace(const alluvium_cache *cache,
                                       const void *key,
                                       size_t key_len,
                                       const void *value,
                                       size_t value_len,
                                       uint32_t flags,
                                       uint64_t ttl_ms,
                                       alluvium_error **error);

/**
 * Stores `value` if the key has the value `expected`; else it returns ALLUVIUM_ABSENT.
 */
alluvium_status alluvium_cache_compare_and_swap(const alluvium_cache *cache,
                                                const void *key,
                                                size_t key_len,
                                                const void *expected,
                                                size_t expected_len,
                                                const void *value,
                                                size_t value_len,
                                                uint32_t flags,
                                                uint64_t ttl_ms,
                                                alluvium_error **error);

/**
 * Adds `by` to the decimal number under a key, and returns the sum, for which the address may be NULL. An absent key
 * counts as 0.
 */
alluvium_status alluvium_cache_increment(const alluvium_cache *cache,
                                         const void *key,
                                         size_t key_len,
                                         int64_t by,
                                         int64_t *sum,
                                         alluvium_error **error);

/**
 * Lets an item expire after `ttl_ms`, or never for 0; ALLUVIUM_ABSENT if there is no item.
 */
alluvium_status alluvium_cache_touch(const alluvium_cache *cache,
                                     const void *key,
                                     size_t key_len,
                                     uint64_t ttl_ms,
                                     alluvium_error **error);

#ifdef __cplusplus
}
#endif

#endif
