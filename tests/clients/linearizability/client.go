package main

import (
	"fmt"
	"math/rand"
	"strings"
	"sync/atomic"
	"time"
)

var started = time.Now()

func now() time.Duration { return time.Since(started) }

// Values are unique, so that a value that is read shows which operation wrote it.
var values atomic.Int64

// Client sends random operations on all groups until its connection ends.
type Client struct {
	number    int
	random    *rand.Rand
	histories []*History
	// Requests in flight; more than one are sent together.
	depth int
	// Values it has read, by group and key, for operations that expect one.
	seen map[string]string
}

func (c *Client) value() string {
	number := values.Add(1)
	switch c.random.Intn(20) {
	case 0:
		return fmt.Sprintf("large%d", number)
	case 1, 2, 3:
		return fmt.Sprintf("text%d", number)
	default:
		return fmt.Sprint(number * 1_000)
	}
}

func (c *Client) choose(words ...string) string { return words[c.random.Intn(len(words))] }

// command is a random command on a random key of the group.
func (c *Client) command(group *Group, inTransaction bool) Command {
	made := Command{key: c.random.Intn(len(group.keys)), value: ""}
	key := group.keys[made.key]
	made.other = made.key
	if len(key.fields) > 0 {
		made.field = c.random.Intn(len(key.fields))
		made.verb = c.choose("HGET", "HGET", "HSET", "HSET", "HDEL", "HSETNX", "HINCRBY", "HMGET", "HLEN", "HMGET", "DEL")
		if len(group.keys) > 1 && !inTransaction && c.random.Intn(4) == 0 {
			made.verb, made.other = "move", 0
		}
		if made.verb == "DEL" || made.verb == "HMGET" || made.verb == "HLEN" {
			made.field = 0
		}
	} else {
		made.verb = c.choose("GET", "GET", "GET", "SET", "SET", "INCR", "INCR", "SETNX", "DEL", "GETSET", "GETDEL", "EXISTS")
		if !inTransaction && c.random.Intn(8) == 0 {
			made.verb, made.expected = "replace", c.seen[key.name]
			if made.expected == "" {
				made.expected = "absent"
			}
		}
		if len(group.keys) > 2 && c.random.Intn(3) == 0 {
			made.other = 1 - min(made.key, 1)
			made.verb = c.choose("MGET", "MSET", "MSETNX", "swap")
			if made.verb == "swap" && inTransaction {
				made.verb = "MGET"
			}
		}
	}
	switch made.verb {
	case "SET", "SETNX", "GETSET", "HSET", "HSETNX", "MSET", "MSETNX", "replace":
		made.value = c.value()
	}
	return made
}

type sent struct {
	history   *History
	operation Operation
	called    time.Duration
	// Replies before that of the operation itself, all OK or QUEUED.
	before int
	multi  bool
}

// Run returns nil when the connection ends, and an error when the server has replied what it must not.
func (c *Client) Run(port int, stop *atomic.Bool) error {
	connection, err := Connect(port)
	if err != nil {
		return nil
	}
	defer connection.Close()
	for !stop.Load() {
		if *watch && c.random.Intn(12) == 0 {
			if ended, err := c.watched(connection); ended || err != nil {
				return err
			}
			continue
		}
		batch := make([]sent, 1+c.random.Intn(c.depth))
		for i := range batch {
			batch[i] = c.write(connection)
		}
		connection.Flush()
		for i := range batch {
			replies, err := batch[i].read(connection)
			if err != nil {
				return err
			}
			if replies == nil {
				for _, lost := range batch[i:] {
					lost.history.Add(c.number, lost.called, 0, lost.operation, Unknown)
				}
				return nil
			}
			batch[i].history.Add(c.number, batch[i].called, now(), batch[i].operation, replies)
			if first := batch[i].operation[0]; first.verb == "GET" {
				c.seen[batch[i].history.group.keys[first.key].name] = replies[0]
			}
		}
	}
	return nil
}

func (c *Client) write(connection *Connection) sent {
	history := c.histories[c.random.Intn(len(c.histories))]
	group := history.group
	made := sent{history: history, called: now()}
	if c.random.Intn(4) == 0 {
		made.multi = true
		for range 1 + c.random.Intn(4) {
			made.operation = append(made.operation, c.command(group, true))
		}
		made.before = 1 + len(made.operation)
		connection.Write("MULTI")
		for _, command := range made.operation {
			connection.Write(group.Words(command)...)
		}
		connection.Write("EXEC")
	} else {
		made.operation = Operation{c.command(group, false)}
		connection.Write(group.Words(made.operation[0])...)
	}
	return made
}

// read returns the texts of the replies, or nil if the connection has ended.
func (s *sent) read(connection *Connection) ([]string, error) {
	for range s.before {
		reply, err := connection.Read()
		if err != nil {
			return nil, nil
		}
		if text := Text(reply); text != "OK" && text != "QUEUED" {
			return nil, fmt.Errorf("a transaction got the reply %q", text)
		}
	}
	reply, err := connection.Read()
	if err != nil {
		return nil, nil
	}
	replies := []any{reply}
	if s.multi {
		var good bool
		if replies, good = reply.([]any); !good || len(replies) != len(s.operation) {
			return nil, fmt.Errorf("EXEC of %d commands got the reply %q", len(s.operation), Text(reply))
		}
	}
	texts := make([]string, len(replies))
	for i := range replies {
		texts[i] = Text(replies[i])
		if strings.HasPrefix(texts[i], "error") && !strings.Contains(texts[i], "not an integer") {
			return nil, fmt.Errorf("%s got the reply %q", Describe(s.operation, nil), texts[i])
		}
	}
	return texts, nil
}

var executed, aborted atomic.Int64

// watched reads a watched key, then executes a transaction that must find it unchanged.
func (c *Client) watched(connection *Connection) (ended bool, err error) {
	history := c.histories[c.random.Intn(len(c.histories))]
	group := history.group
	position := c.random.Intn(len(group.keys))
	if len(group.keys[position].fields) > 0 {
		return false, nil
	}
	read := sent{history: history, operation: Operation{{verb: "GET", key: position, other: position}}, called: now(), before: 1}
	connection.Write("WATCH", group.keys[position].name)
	connection.Write("GET", group.keys[position].name)
	connection.Flush()
	found, err := read.read(connection)
	if found == nil || err != nil {
		return true, err
	}
	history.Add(c.number, read.called, now(), read.operation, found)

	expected := found[0]
	if expected == "nil" {
		expected = ""
	}
	operation := Operation{{verb: "unchanged", key: position, other: position, expected: expected}}
	commands := 1 + c.random.Intn(3)
	called := now()
	connection.Write("MULTI")
	for range commands {
		command := c.command(group, true)
		operation = append(operation, command)
		connection.Write(group.Words(command)...)
	}
	connection.Write("EXEC")
	connection.Flush()
	var reply any
	for range 2 + commands {
		if reply, err = connection.Read(); err != nil {
			history.Add(c.number, called, 0, operation, Unknown)
			return true, nil
		}
	}
	if reply == nil {
		aborted.Add(1)
		return false, nil
	}
	replies, good := reply.([]any)
	if !good || len(replies) != commands {
		return true, fmt.Errorf("EXEC of %d commands got the reply %q", commands, Text(reply))
	}
	texts := []string{"1"}
	for _, reply := range replies {
		texts = append(texts, Text(reply))
	}
	executed.Add(1)
	history.Add(c.number, called, now(), operation, texts)
	return false, nil
}
