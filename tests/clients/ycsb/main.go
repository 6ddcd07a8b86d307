// Runs go-ycsb's workloads A, B, C, D and F against `alluvium serve`, with its client for Redis, and samples the
// resident bytes of the server meanwhile.
//
//	go run . -records 6500000 -options "--memory 256MiB" ../../../target/release/alluvium
//
// A record has ten fields of 100 bytes: as one string in JSON, as go-ycsb stores it, 1.5 KB. The load is pipelined by
// this program, since go-ycsb's client does not.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	redis "github.com/go-redis/redis/v9"
	"github.com/magiconair/properties"
	_ "github.com/pingcap/go-ycsb/db/redis"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

var (
	records    = flag.Int("records", 100_000, "records to load")
	operations = flag.Int("operations", 200_000, "operations of each workload")
	threads    = flag.Int("threads", 64, "connections")
	options    = flag.String("options", "", "further options of `serve`, separated by blanks")
	directory  = flag.String("dir", "", "directory of the database, kept; otherwise a temporary one")
	loaded     = flag.Bool("loaded", false, "the directory has the records already")
	names      = flag.String("workloads", "abcdf", "letters of the workloads")
)

// Proportions of reads, updates, inserts and reads before writes, and the distribution of requests.
var workloads = map[byte][5]string{
	'a': {"0.5", "0.5", "0", "0", "zipfian"},
	'b': {"0.95", "0.05", "0", "0", "zipfian"},
	'c': {"1", "0", "0", "0", "zipfian"},
	'd': {"0.95", "0", "0.05", "0", "latest"},
	'f': {"0.5", "0", "0", "0.5", "zipfian"},
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func settings(port int, workload byte) *properties.Properties {
	made := properties.NewProperties()
	set := func(name string, value any) { made.Set(name, fmt.Sprint(value)) }
	set("workload", "core")
	set("table", "usertable")
	set("recordcount", *records)
	set("threadcount", *threads)
	set("readallfields", "true")
	set("redis.addr", fmt.Sprintf("127.0.0.1:%d", port))
	set("redis.datatype", "string")
	set("measurement.interval", 3600)
	if workload == 0 {
		set("dotransactions", "false")
		set("command", "load")
		set("operationcount", *records)
		set("batch.size", 100)
		return made
	}
	mix := workloads[workload]
	set("dotransactions", "true")
	set("command", "run")
	set("operationcount", *operations)
	set("readproportion", mix[0])
	set("updateproportion", mix[1])
	set("insertproportion", mix[2])
	set("readmodifywriteproportion", mix[3])
	set("scanproportion", 0)
	set("requestdistribution", mix[4])
	return made
}

// Loader inserts several records at once.
type Loader struct {
	ycsb.DB
	client *redis.Client
}

func (l Loader) BatchInsert(ctx context.Context, table string, keys []string, values []map[string][]byte) error {
	_, err := l.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			text, err := json.Marshal(values[i])
			if err != nil {
				return err
			}
			pipe.Set(ctx, table+"/"+key, text, 0)
		}
		return nil
	})
	return err
}

func (l Loader) BatchRead(context.Context, string, []string, []string) ([]map[string][]byte, error) {
	panic("only inserts")
}

func (l Loader) BatchUpdate(context.Context, string, []string, []map[string][]byte) error {
	panic("only inserts")
}

func (l Loader) BatchDelete(context.Context, string, []string) error { panic("only inserts") }

// resident returns the resident bytes of a process now and at most, in MiB.
func resident(process int) (now, most float64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	for _, line := range strings.Split(string(status), "\n") {
		fmt.Sscanf(line, "VmRSS: %f", &now)
		fmt.Sscanf(line, "VmHWM: %f", &most)
	}
	return now / 1024, most / 1024
}

func run(title string, port, process int, workload byte) {
	made := settings(port, workload)
	measurement.InitMeasure(made)
	core, err := ycsb.GetWorkloadCreator("core").Create(made)
	must(err)
	db, err := ycsb.GetDBCreator("redis").Create(made)
	must(err)
	if workload == 0 {
		options := &redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), PoolSize: *threads, ReadTimeout: time.Minute}
		db = Loader{db, redis.NewClient(options)}
	}
	done := make(chan struct{})
	sampled := make(chan float64)
	go func() {
		most := 0.0
		for {
			now, _ := resident(process)
			most = max(most, now)
			select {
			case <-done:
				sampled <- most
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	began := time.Now()
	client.NewClient(made, core, client.DbWrapper{DB: db}).Run(context.Background())
	took := time.Since(began).Seconds()
	close(done)
	_, most := resident(process)
	fmt.Printf("\n%s: %.1f s; resident at most %.1f MiB in samples, %.1f MiB since the start\n",
		title, took, <-sampled, most)
	measurement.Output()
	db.Close()
}

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run . [OPTIONS] PROGRAM")
		flag.PrintDefaults()
		os.Exit(2)
	}
	path := *directory
	if path == "" {
		temporary, err := os.MkdirTemp("", "ycsb-")
		must(err)
		defer os.RemoveAll(temporary)
		path = filepath.Join(temporary, "data")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	words := append([]string{"serve", "--dir", path, "--port", fmt.Sprint(port)}, strings.Fields(*options)...)
	server := exec.Command(flag.Arg(0), words...)
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(server.Start())
	for {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			connection.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	process := server.Process.Pid
	if !*loaded {
		run("load", port, process, 0)
	}
	for _, letter := range []byte(*names) {
		run("workload "+strings.ToUpper(string(letter)), port, process, letter)
	}
	server.Process.Signal(syscall.SIGTERM)
	must(server.Wait())
	bytes := int64(0)
	filepath.Walk(path, func(_ string, found os.FileInfo, err error) error {
		if err == nil && !found.IsDir() {
			bytes += found.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	fmt.Printf("\n%.2f GB on disk\n", float64(bytes)/1e9)
}
