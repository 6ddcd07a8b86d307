package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Key is a string, or a hash with these fields.
type Key struct {
	name   string
	fields []string
}

// Group is a set of keys that operations use together. The history of each group is checked alone.
type Group struct {
	name string
	keys []Key
	// Position in the state of each key's value, or of its first field.
	slots []int
	size  int
}

// State holds the value of each string and each field; "" is absence.
type State []string

func NewGroup(name string, keys ...Key) *Group {
	group := &Group{name: name, keys: keys}
	for _, key := range keys {
		group.slots = append(group.slots, group.size)
		group.size += max(1, len(key.fields))
	}
	return group
}

// Command is one command, or one script, on keys of a group.
type Command struct {
	verb  string
	key   int
	field int
	// Second key of scripts and of MSETNX.
	other    int
	value    string
	expected string
}

// Large values take another path through the store than small ones. In histories they stand without their padding.
const padding = 20_000

func pad(value string) string {
	if strings.HasPrefix(value, "large") {
		return value + strings.Repeat(".", padding)
	}
	return value
}

func unpad(value string) string {
	if strings.HasPrefix(value, "large") {
		cut := strings.TrimSuffix(value, strings.Repeat(".", padding))
		if len(value) != len(cut)+padding || strings.HasSuffix(cut, ".") {
			return fmt.Sprintf("%s of %d bytes", cut[:min(len(cut), 20)], len(value))
		}
		return cut
	}
	return value
}

var scripts = map[string]string{
	"swap": `local a, b = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
		if b then redis.call('SET', KEYS[1], b) else redis.call('DEL', KEYS[1]) end
		if a then redis.call('SET', KEYS[2], a) else redis.call('DEL', KEYS[2]) end
		return {a, b}`,
	"replace": `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) return 1 end return 0`,
	"move": `local value = redis.call('HGET', KEYS[1], ARGV[1])
		if not value then return 0 end
		redis.call('SET', KEYS[2], value) redis.call('HDEL', KEYS[1], ARGV[1]) return 1`,
}

// Words are the request that executes the command.
func (g *Group) Words(c Command) []string {
	key := g.keys[c.key]
	switch c.verb {
	case "SET", "SETNX", "GETSET":
		return []string{c.verb, key.name, pad(c.value)}
	case "HSET", "HSETNX":
		return []string{c.verb, key.name, key.fields[c.field], pad(c.value)}
	case "HGET", "HDEL":
		return []string{c.verb, key.name, key.fields[c.field]}
	case "HMGET":
		return append([]string{c.verb, key.name}, key.fields...)
	case "HINCRBY":
		return []string{c.verb, key.name, key.fields[c.field], "1"}
	case "MSET", "MSETNX":
		return []string{c.verb, key.name, pad(c.value), g.keys[c.other].name, pad(c.value)}
	case "MGET":
		return []string{c.verb, key.name, g.keys[c.other].name}
	case "swap":
		return []string{"EVAL", scripts[c.verb], "2", key.name, g.keys[c.other].name}
	case "move":
		return []string{"EVAL", scripts[c.verb], "2", key.name, g.keys[c.other].name, key.fields[c.field]}
	case "replace":
		return []string{"EVAL", scripts[c.verb], "1", key.name, pad(c.expected), pad(c.value)}
	default:
		return []string{c.verb, key.name}
	}
}

// Text is a reply as histories have it.
func Text(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "nil"
	case int64:
		return strconv.FormatInt(reply, 10)
	case string:
		return unpad(reply)
	case Fault:
		return "error " + string(reply)
	case []any:
		items := make([]string, len(reply))
		for i, item := range reply {
			items[i] = Text(item)
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	panic("not a reply")
}

func orNil(value string) string {
	if value == "" {
		return "nil"
	}
	return value
}

func digit(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// Apply changes the state as the command does and returns the text of its reply.
func (g *Group) Apply(state State, c Command) string {
	first := g.slots[c.key]
	slot := &state[first+c.field]
	other := &state[g.slots[c.other]]
	fields := state[first : first+max(1, len(g.keys[c.key].fields))]
	had := *slot != ""
	switch c.verb {
	case "GET", "HGET":
		return orNil(*slot)
	case "SET":
		*slot = c.value
		return "OK"
	case "GETSET":
		old := orNil(*slot)
		*slot = c.value
		return old
	case "GETDEL":
		old := orNil(*slot)
		*slot = ""
		return old
	case "SETNX", "HSETNX":
		if !had {
			*slot = c.value
		}
		return digit(!had)
	case "HSET":
		*slot = c.value
		return digit(!had)
	case "HDEL":
		*slot = ""
		return digit(had)
	case "INCR", "HINCRBY":
		number := int64(0)
		if had {
			var err error
			if number, err = strconv.ParseInt(*slot, 10, 64); err != nil {
				if c.verb == "INCR" {
					return "error ERR value is not an integer or out of range"
				}
				return "error ERR hash value is not an integer"
			}
		}
		*slot = strconv.FormatInt(number+1, 10)
		return *slot
	case "DEL", "EXISTS":
		any := false
		for i := range fields {
			any = any || fields[i] != ""
			if c.verb == "DEL" {
				fields[i] = ""
			}
		}
		return digit(any)
	case "HMGET":
		texts := make([]string, len(fields))
		for i := range fields {
			texts[i] = orNil(fields[i])
		}
		return "[" + strings.Join(texts, " ") + "]"
	case "HLEN":
		count := 0
		for i := range fields {
			if fields[i] != "" {
				count++
			}
		}
		return strconv.Itoa(count)
	case "MGET":
		return "[" + orNil(*slot) + " " + orNil(*other) + "]"
	case "MSET":
		*slot, *other = c.value, c.value
		return "OK"
	case "MSETNX":
		if had || *other != "" {
			return "0"
		}
		*slot, *other = c.value, c.value
		return "1"
	case "swap":
		reply := "[" + orNil(*slot) + " " + orNil(*other) + "]"
		*slot, *other = *other, *slot
		return reply
	case "replace":
		same := *slot == c.expected
		if same {
			*slot = c.value
		}
		return digit(same)
	case "move":
		if had {
			*other, *slot = *slot, ""
		}
		return digit(had)
	case "unchanged":
		return digit(*slot == c.expected)
	}
	panic("no command " + c.verb)
}
