// Package alluvium is a thin layer over the C interface of Alluvium.
//
// A call from Go to C costs some fifty nanoseconds, and cgo lets no Go pointer to Go pointers pass. So items travel in
// Columns: all bytes in one slice, and the offsets of the parts in another.
//
// Compile with CGO_CFLAGS and CGO_LDFLAGS as pkg-config prints them for alluvium.
package alluvium

// #cgo LDFLAGS: -lalluvium
// #include <alluvium.h>
// #include <string.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Error is a failure of the library.
type Error struct {
	// Status is one of the constants of alluvium_status.
	Status int
	// Message says what failed, why, and what to do.
	Message string
	// File is the damaged or missing file, if there is one.
	File string
	// Offset is the position of the damage in it.
	Offset uint64
}

func (failure *Error) Error() string { return failure.Message }

// ErrAbsent says that a key has no item.
var ErrAbsent = errors.New("there is no such item")

// failed makes an error of Go from a status and an error of C, which it frees.
func failed(status C.alluvium_status, failure *C.alluvium_error) error {
	switch status {
	case C.ALLUVIUM_OK:
		return nil
	case C.ALLUVIUM_ABSENT:
		return ErrAbsent
	}
	defer C.alluvium_error_free(failure)
	return &Error{
		Status:  int(status),
		Message: text(C.alluvium_error_message(failure)),
		File:    text(C.alluvium_error_file(failure)),
		Offset:  uint64(C.alluvium_error_offset(failure)),
	}
}

// text copies a text of C. C.GoString looks for its end in whole words, and so reads beyond it, which valgrind reports.
func text(characters *C.char) string {
	if characters == nil {
		return ""
	}
	return C.GoStringN(characters, C.int(C.strlen(characters)))
}

// Columns are byte strings, one after the other. The zero value is empty.
type Columns struct {
	bytes   []byte
	offsets []uint64
}

// Append adds a byte string.
func (columns *Columns) Append(part []byte) {
	if len(columns.offsets) == 0 {
		columns.offsets = append(columns.offsets, 0)
	}
	columns.bytes = append(columns.bytes, part...)
	columns.offsets = append(columns.offsets, uint64(len(columns.bytes)))
}

// Len is the number of byte strings.
func (columns *Columns) Len() int { return max(len(columns.offsets)-1, 0) }

// At returns a byte string, which is valid as long as the columns do not change.
func (columns *Columns) At(number int) []byte {
	return columns.bytes[columns.offsets[number]:columns.offsets[number+1]]
}

// Reset empties the columns, and keeps their memory.
func (columns *Columns) Reset() {
	columns.bytes, columns.offsets = columns.bytes[:0], columns.offsets[:0]
}

func (columns *Columns) pointers() (unsafe.Pointer, *C.uint64_t) {
	return unsafe.Pointer(unsafe.SliceData(columns.bytes)), (*C.uint64_t)(unsafe.SliceData(columns.offsets))
}

// DB is an open database. Goroutines may share it.
type DB struct{ handle *C.alluvium_db }

// Open opens the database in a directory, and creates it if there is none. Settings have the names of
// alluvium_options_set.
func Open(path string, settings map[string]string) (*DB, error) {
	var failure *C.alluvium_error
	options := C.alluvium_options_create()
	defer C.alluvium_options_free(options)
	for name, value := range settings {
		status := setOption(options, name, value, &failure)
		if err := failed(status, failure); err != nil {
			return nil, err
		}
	}
	pathText := cString(path)
	db := &DB{}
	status := C.alluvium_open((*C.char)(unsafe.Pointer(&pathText[0])), options, &db.handle, &failure)
	if err := failed(status, failure); err != nil {
		return nil, err
	}
	return db, nil
}

func setOption(options *C.alluvium_options, name, value string, failure **C.alluvium_error) C.alluvium_status {
	nameText, valueText := cString(name), cString(value)
	return C.alluvium_options_set(options, (*C.char)(unsafe.Pointer(&nameText[0])),
		(*C.char)(unsafe.Pointer(&valueText[0])), failure)
}

// cString is a text that ends with a zero, in memory of Go: the library reads it before it returns.
func cString(text string) []byte { return append([]byte(text), 0) }

// Close makes all writes durable and frees the database. Keyspaces of it are refused from then on.
func (db *DB) Close() error {
	var failure *C.alluvium_error
	err := failed(C.alluvium_close(db.handle, &failure), failure)
	C.alluvium_db_free(db.handle)
	db.handle = nil
	return err
}

// Stats returns figures of the database as JSON.
func (db *DB) Stats() (string, error) {
	var failure *C.alluvium_error
	var report *C.char
	if err := failed(C.alluvium_stats(db.handle, &report, &failure), failure); err != nil {
		return "", err
	}
	defer C.alluvium_free(unsafe.Pointer(report))
	return text(report), nil
}

// Keyspace is a named set of items. Goroutines may share it.
type Keyspace struct{ handle *C.alluvium_keyspace }

// Keyspace opens a keyspace, and creates it if there is none.
func (db *DB) Keyspace(name string) (*Keyspace, error) {
	var failure *C.alluvium_error
	nameText := cString(name)
	keyspace := &Keyspace{}
	status := C.alluvium_keyspace_open(db.handle, (*C.char)(unsafe.Pointer(&nameText[0])), nil, &keyspace.handle, &failure)
	if err := failed(status, failure); err != nil {
		return nil, err
	}
	return keyspace, nil
}

// Free frees the handle of a keyspace.
func (keyspace *Keyspace) Free() {
	C.alluvium_keyspace_free(keyspace.handle)
	keyspace.handle = nil
}

// Put stores one item. PutMany is faster for several.
func (keyspace *Keyspace) Put(key, value []byte) error {
	var failure *C.alluvium_error
	status := C.alluvium_put(keyspace.handle, unsafe.Pointer(unsafe.SliceData(key)), C.size_t(len(key)),
		unsafe.Pointer(unsafe.SliceData(value)), C.size_t(len(value)), &failure)
	return failed(status, failure)
}

// Get returns the value of one key, or ErrAbsent. GetMany is faster for several.
func (keyspace *Keyspace) Get(key []byte) ([]byte, error) {
	var failure *C.alluvium_error
	var length C.size_t
	value := make([]byte, 256)
	for {
		status := C.alluvium_get_into(keyspace.handle, unsafe.Pointer(unsafe.SliceData(key)), C.size_t(len(key)),
			unsafe.Pointer(unsafe.SliceData(value)), C.size_t(len(value)), &length, &failure)
		if status != C.ALLUVIUM_SMALL {
			if err := failed(status, failure); err != nil {
				return nil, err
			}
			return value[:length], nil
		}
		value = make([]byte, length)
	}
}

// PutMany stores items and waits once until all are as durable as the settings demand. With atomic, all of them take
// effect together or none does.
func (keyspace *Keyspace) PutMany(keys, values *Columns, atomic bool) error {
	if keys.Len() != values.Len() {
		return fmt.Errorf("%d keys and %d values", keys.Len(), values.Len())
	}
	var failure *C.alluvium_error
	keyBytes, keyOffsets := keys.pointers()
	valueBytes, valueOffsets := values.pointers()
	status := C.alluvium_put_many_flat(keyspace.handle, C.size_t(keys.Len()), keyBytes, keyOffsets, valueBytes,
		valueOffsets, 0, 0, C.bool(atomic), &failure)
	return failed(status, failure)
}

// Values are the values of many keys, in memory of Go.
type Values struct {
	Columns
	presence []byte
}

// Find returns the value of a key by its number, and whether it has one.
func (values *Values) Find(number int) ([]byte, bool) {
	return values.At(number), values.presence[number] != 0
}

// GetMany returns the values of many keys, in their order. All reads are in flight together.
func (keyspace *Keyspace) GetMany(keys *Columns) (*Values, error) {
	var failure *C.alluvium_error
	var found C.alluvium_values
	keyBytes, keyOffsets := keys.pointers()
	status := C.alluvium_get_many_flat(keyspace.handle, C.size_t(keys.Len()), keyBytes, keyOffsets, &found, &failure)
	if err := failed(status, failure); err != nil {
		return nil, err
	}
	defer C.alluvium_values_free(&found)
	count := int(found.count)
	offsets := unsafe.Slice((*uint64)(found.offsets), count+1)
	values := &Values{}
	values.offsets = append(values.offsets, offsets...)
	values.presence = append(values.presence, unsafe.Slice((*byte)(found.presence), count)...)
	values.bytes = append(values.bytes, unsafe.Slice((*byte)(found.bytes), int(offsets[count]))...)
	return values, nil
}

// Each calls visit with all items, which it fetches a thousand at a time, until visit returns false. What visit gets is
// valid until it returns.
func (keyspace *Keyspace) Each(visit func(key, value []byte) bool) error {
	var failure *C.alluvium_error
	var iterator *C.alluvium_iterator
	if err := failed(C.alluvium_iterator_create(keyspace.handle, &iterator, &failure), failure); err != nil {
		return err
	}
	defer C.alluvium_iterator_free(iterator)
	var items C.alluvium_items
	for {
		err := failed(C.alluvium_iterator_next_many(iterator, 1000, &items, &failure), failure)
		if err == ErrAbsent {
			return nil
		}
		if err != nil {
			return err
		}
		continues := eachOf(&items, visit)
		C.alluvium_items_free(&items)
		if !continues {
			return nil
		}
	}
}

func eachOf(items *C.alluvium_items, visit func(key, value []byte) bool) bool {
	count := int(items.count)
	keyOffsets := unsafe.Slice((*uint64)(items.key_offsets), count+1)
	valueOffsets := unsafe.Slice((*uint64)(items.value_offsets), count+1)
	keys := unsafe.Slice((*byte)(items.keys), int(keyOffsets[count]))
	values := unsafe.Slice((*byte)(items.values), int(valueOffsets[count]))
	for i := 0; i < count; i++ {
		key, value := keys[keyOffsets[i]:keyOffsets[i+1]], values[valueOffsets[i]:valueOffsets[i+1]]
		if !visit(key, value) {
			return false
		}
	}
	return true
}
