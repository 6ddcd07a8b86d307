// Stores items in batches, reads them in batches from several goroutines, and verifies every one. The argument is a
// directory, in which the database "data" is made.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"example.com/alluvium-example/alluvium"
)

const (
	items = 6000
	batch = 500
)

func key(number int) []byte   { return fmt.Appendf(nil, "user:%d", number) }
func value(number int) []byte { return bytes.Repeat([]byte{byte(number)}, number%100) }

func main() {
	directory := "."
	if len(os.Args) > 1 {
		directory = os.Args[1]
	}
	db, err := alluvium.Open(filepath.Join(directory, "data"), map[string]string{"durability": "buffered"})
	check(err)
	users, err := db.Keyspace("users")
	check(err)

	var keys, values alluvium.Columns
	for first := 0; first < items; first += batch {
		keys.Reset()
		values.Reset()
		for number := first; number < first+batch; number++ {
			keys.Append(key(number))
			values.Append(value(number))
		}
		check(users.PutMany(&keys, &values, first%(2*batch) == 0))
	}

	// Every other key that is asked for is absent.
	var readers sync.WaitGroup
	for reader := 0; reader < 4; reader++ {
		readers.Add(1)
		go func(reader int) {
			defer readers.Done()
			for first := reader * batch; first < items; first += 4 * batch {
				verify(users, first)
			}
		}(reader)
	}
	readers.Wait()

	found := 0
	check(users.Each(func(key, value []byte) bool {
		if bytes.HasPrefix(key, []byte("user:")) {
			found++
		}
		return true
	}))
	if found != items {
		log.Fatalf("the iterator returned %d items", found)
	}
	check(users.Put([]byte("one"), []byte("1")))
	one, err := users.Get([]byte("one"))
	check(err)
	if string(one) != "1" {
		log.Fatalf("one is %q", one)
	}
	if _, err := users.Get([]byte("two")); err != alluvium.ErrAbsent {
		log.Fatalf("a get of an absent key: %v", err)
	}
	var failure *alluvium.Error
	if _, err := alluvium.Open(filepath.Join(directory, "data"), nil); !errors.As(err, &failure) {
		log.Fatalf("a second opening: %v", err)
	}
	stats, err := db.Stats()
	check(err)
	check(db.Close())
	users.Free()
	fmt.Printf("%d items stored, read and verified; statistics of %d bytes\n", items, len(stats))
}

func verify(users *alluvium.Keyspace, first int) {
	var keys alluvium.Columns
	for number := first; number < first+batch; number++ {
		keys.Append(key(number))
		keys.Append(key(-1 - number))
	}
	values, err := users.GetMany(&keys)
	check(err)
	for i := 0; i < batch; i++ {
		got, isPresent := values.Find(2 * i)
		_, isOther := values.Find(2*i + 1)
		if !isPresent || isOther || !bytes.Equal(got, value(first+i)) {
			log.Fatalf("user %d: %q, %v, %v", first+i, got, isPresent, isOther)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
