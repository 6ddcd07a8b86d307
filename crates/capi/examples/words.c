/* Stores a few items, reads them back and verifies them. The argument is the directory of the database. */
#include <alluvium.h>
#include <stdio.h>
#include <string.h>

static int failed(alluvium_error *error) {
    fprintf(stderr, "%s\n", alluvium_error_message(error));
    alluvium_error_free(error);
    return 1;
}

int main(int count, char **arguments) {
    const char *words[] = {"ein", "zwei", "drei"}, *meanings[] = {"one", "two", "three"};
    alluvium_error *error;
    alluvium_db *db;
    alluvium_keyspace *dictionary;
    if (alluvium_open(count > 1 ? arguments[1] : "data", NULL, &db, &error)) return failed(error);
    if (alluvium_keyspace_open(db, "dictionary", NULL, &dictionary, &error)) return failed(error);
    for (int i = 0; i < 3; i++) {
        alluvium_status status = alluvium_put(dictionary, words[i], strlen(words[i]), meanings[i],
                                              strlen(meanings[i]), &error);
        if (status) return failed(error);
    }
    for (int i = 0; i < 3; i++) {
        char meaning[16];
        size_t len;
        alluvium_status status = alluvium_get_into(dictionary, words[i], strlen(words[i]), meaning,
                                                   sizeof meaning, &len, &error);
        if (status) return failed(error);
        printf("%s: %.*s\n", words[i], (int)len, meaning);
        if (len != strlen(meanings[i]) || memcmp(meaning, meanings[i], len) != 0) return 2;
    }
    alluvium_keyspace_free(dictionary);
    if (alluvium_close(db, &error)) return failed(error);
    alluvium_db_free(db);
    return 0;
}
