// Checks that `alluvium serve` is linearizable, and that no acknowledged write is lost when it is killed.
//
// Clients send random commands, scripts and transactions on a few keys. The server is killed (`kill -9`) at a random
// moment and restarted on the same directory, sometimes twice. Porcupine then searches an order in which the
// operations can have taken effect: each at one moment between request and reply, those without a reply at any moment
// until the server has recovered, or never. What the keys hold after a crash ends one history and begins the next.
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	kills   = flag.Int("kills", 5, "how often the server is killed: 5 is the short form, 100 the long one")
	clients = flag.Int("clients", 24, "number of clients")
	depth   = flag.Int("depth", 4, "most requests of a client that are sent together")
	longest = flag.Duration("longest", 600*time.Millisecond, "longest time between two kills")
	seed    = flag.Int64("seed", time.Now().UnixNano(), "seed of the operations")
	limit   = flag.Duration("limit", time.Minute, "time for the check of one history")
	watch   = flag.Bool("watch", true, "transactions with WATCH, too")
	options = flag.String("options", "", "further options of `serve`, separated by blanks")
)

func groups() []*Group {
	fields := []string{"a", "b", "c"}
	return []*Group{
		NewGroup("string 1", Key{name: "s1"}),
		NewGroup("string 2", Key{name: "s2"}),
		NewGroup("hash 1", Key{"h1", fields}),
		NewGroup("hash 2", Key{"h2", fields}),
		NewGroup("several 1", Key{name: "m1"}, Key{name: "n1"}, Key{"o1", fields}),
		NewGroup("several 2", Key{name: "m2"}, Key{name: "n2"}, Key{"o2", fields}),
	}
}

// observe reads all keys of a group while nothing else is in flight.
func observe(connection *Connection, history *History) (State, error) {
	group := history.group
	state := State{}
	for position, key := range group.keys {
		verb, texts := "GET", []string{}
		if len(key.fields) > 0 {
			verb = "HMGET"
		}
		command := Command{verb: verb, key: position, other: position}
		called := now()
		reply, err := connection.Call(group.Words(command)...)
		if err != nil {
			return nil, err
		}
		items, several := reply.([]any)
		if !several {
			items = []any{reply}
		}
		for _, item := range items {
			texts = append(texts, Text(item))
			if item == nil {
				state = append(state, "")
			} else {
				state = append(state, Text(item))
			}
		}
		history.Add(*clients, called, now(), Operation{command}, []string{Text(reply)})
	}
	return state, nil
}

// Totals of all histories that were checked.
type totals struct {
	lock                           sync.Mutex
	histories, operations, unknown int
	violations                     []string
	slowest                        time.Duration
}

func (t *totals) check(round int, history *History, directory string) {
	began := time.Now()
	result, information, model := history.Check(*limit)
	t.lock.Lock()
	defer t.lock.Unlock()
	t.slowest = max(t.slowest, time.Since(began))
	t.histories++
	t.operations += len(history.operations)
	if result == porcupine.Ok {
		return
	}
	word := "is not linearizable"
	if result == porcupine.Unknown {
		word = "cannot be checked in the time"
	}
	name := filepath.Join(directory, strings.ReplaceAll(fmt.Sprintf("round %d %s", round, history.group.name), " ", "-"))
	porcupine.VisualizePath(model, information, name+".html")
	lines := []string{"initially " + strings.Join(history.initial, " | ")}
	lines = append(lines, "the longest order of operations that explains their replies ends so:")
	order := []int{}
	for _, partial := range information.PartialLinearizations()[0] {
		if len(partial) > len(order) {
			order = partial
		}
	}
	for _, i := range order[max(0, len(order)-40):] {
		lines = append(lines, history.line(i))
	}
	lines = append(lines, "all operations, with the times of request and reply, and the client:")
	slices.SortFunc(history.operations, func(one, other porcupine.Operation) int { return int(one.Call - other.Call) })
	for i := range history.operations {
		lines = append(lines, history.line(i))
	}
	os.WriteFile(name+".txt", []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	t.violations = append(t.violations, fmt.Sprintf("round %d: %s %s, see %s.txt", round, history.group.name, word, name))
}

func run(program, directory string, random *rand.Rand, total *totals) error {
	server := NewServer(program, filepath.Join(directory, "data"), filepath.Join(directory, "log"),
		strings.Fields(*options))
	all := groups()
	states := make([]State, len(all))
	for i, group := range all {
		states[i] = make(State, group.size)
	}
	journal := NewJournal(rand.New(rand.NewSource(random.Int63())))
	var checks sync.WaitGroup
	defer checks.Wait()
	if err := server.Start(); err != nil {
		return err
	}
	connection, err := server.Ready()
	if err != nil {
		return err
	}
	for killed, round := 0, 0; killed < *kills; round++ {
		connection.Close()
		histories := make([]*History, len(all))
		for i, group := range all {
			histories[i] = &History{group: group, initial: states[i]}
		}
		var stop atomic.Bool
		faults := make(chan error, *clients+1)
		var running sync.WaitGroup
		for number := range *clients {
			client := &Client{number, rand.New(rand.NewSource(random.Int63())), histories, 1, map[string]string{}}
			if number%3 == 0 {
				client.depth = *depth
			}
			running.Add(1)
			go func() {
				defer running.Done()
				faults <- client.Run(server.port, &stop)
			}()
		}
		running.Add(1)
		go func() {
			defer running.Done()
			faults <- journal.Run(server.port, &stop)
		}()
		time.Sleep(time.Duration(20+random.Int63n(longest.Milliseconds())) * time.Millisecond)
		if err := server.Kill(); err != nil {
			return err
		}
		killed++
		running.Wait()
		close(faults)
		for fault := range faults {
			if fault != nil {
				return fault
			}
		}
		if err := server.Start(); err != nil {
			return err
		}
		for killed < *kills && random.Intn(4) == 0 {
			time.Sleep(time.Duration(random.Int63n(30_000)) * time.Microsecond)
			if err := server.Kill(); err != nil {
				return err
			}
			killed++
			if err := server.Start(); err != nil {
				return err
			}
		}
		if connection, err = server.Ready(); err != nil {
			return err
		}
		recovered := now()
		for i, history := range histories {
			total.unknown += history.Close(recovered)
			if states[i], err = observe(connection, history); err != nil {
				return err
			}
			checks.Add(1)
			go func() {
				defer checks.Done()
				total.check(round, history, directory)
			}()
		}
		if err := journal.Check(connection); err != nil {
			total.lock.Lock()
			total.violations = append(total.violations, fmt.Sprintf("round %d: %v", round, err))
			total.lock.Unlock()
		}
	}
	connection.Close()
	return server.Stop()
}

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run . [OPTIONS] PROGRAM")
		flag.PrintDefaults()
		os.Exit(2)
	}
	directory, err := os.MkdirTemp("", "linearizability-")
	if err != nil {
		panic(err)
	}
	program, _ := filepath.Abs(flag.Arg(0))
	fmt.Printf("seed %d\n", *seed)
	total := &totals{}
	err = run(program, directory, rand.New(rand.NewSource(*seed)), total)
	fmt.Printf("%d kills, %d histories of %d operations, %d of unknown outcome, %d transactions with WATCH executed and"+
		" %d aborted, %d journal writes; slowest check %v\n", *kills, total.histories, total.operations, total.unknown,
		executed.Load(), aborted.Load(), journalWrites.Load(), total.slowest.Round(time.Millisecond))
	if err != nil {
		total.violations = append(total.violations, err.Error())
	}
	if len(total.violations) > 0 {
		fmt.Println("FAILED")
		for _, violation := range total.violations {
			fmt.Println(" ", violation)
		}
		os.Exit(1)
	}
	os.RemoveAll(directory)
	fmt.Println("linearizable, and nothing acknowledged was lost")
}
