package main

import (
	"fmt"
	"math/rand"
	"strings"
	"sync/atomic"
)

// Journal is a client that overwrites many keys in turn, so that crashes also meet tables and compactions. It alone
// writes them, so after a crash each must have its acknowledged value or the one that was on its way.
type Journal struct {
	random       *rand.Rand
	acknowledged []int
	// Values that were sent after the acknowledged ones, if any.
	sent []int
	last []int
}

var journalWrites atomic.Int64

const journalKeys = 30_000

func NewJournal(random *rand.Rand) *Journal {
	return &Journal{random: random, acknowledged: make([]int, journalKeys), sent: make([]int, journalKeys)}
}

func journalKey(key int) string { return fmt.Sprintf("journal:%d", key) }

func journalValue(number int) string { return fmt.Sprintf("%d:", number) + strings.Repeat("j", 1_000) }

func (j *Journal) Run(port int, stop *atomic.Bool) error {
	connection, err := Connect(port)
	if err != nil {
		return nil
	}
	defer connection.Close()
	j.last = nil
	for !stop.Load() {
		// Neighbours, so that no key is twice in a batch.
		batch := make([]int, 16)
		first := j.random.Intn(journalKeys - len(batch))
		for i := range batch {
			batch[i] = first + i
			j.sent[batch[i]] = int(values.Add(1))
			j.last = append(j.last, batch[i])
			connection.Write("SET", journalKey(batch[i]), journalValue(j.sent[batch[i]]))
		}
		connection.Flush()
		for _, key := range batch {
			reply, err := connection.Read()
			if err != nil {
				return nil
			}
			if reply != "OK" {
				return fmt.Errorf("SET of the journal got the reply %q", Text(reply))
			}
			j.acknowledged[key] = j.sent[key]
			journalWrites.Add(1)
		}
	}
	return nil
}

// Check reads the keys that were written last, and others at random.
func (j *Journal) Check(connection *Connection) error {
	keys := j.last[max(0, len(j.last)-500):]
	for range 500 {
		keys = append(keys, j.random.Intn(journalKeys))
	}
	for _, key := range keys {
		reply, err := connection.Call("GET", journalKey(key))
		if err != nil {
			return err
		}
		found := 0
		if text, good := reply.(string); good {
			if _, err := fmt.Sscanf(text, "%d:", &found); err != nil || text != journalValue(found) {
				return fmt.Errorf("%s is damaged", journalKey(key))
			}
		}
		if found != j.acknowledged[key] && found != j.sent[key] {
			return fmt.Errorf("%s is %d, acknowledged was %d, and %d on its way",
				journalKey(key), found, j.acknowledged[key], j.sent[key])
		}
		j.acknowledged[key], j.sent[key] = found, found
	}
	return nil
}
