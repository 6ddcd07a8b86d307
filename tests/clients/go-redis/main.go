// What applications do with go-redis, by both versions of the protocol. Usage: go run . PORT
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var background = context.Background()

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %v, expected %v", found, expected))
	}
}

func good(err error) {
	if err != nil {
		panic(err)
	}
}

func pipelines(client *redis.Client) {
	commands, err := client.Pipelined(background, func(pipe redis.Pipeliner) error {
		for number := range 1_000 {
			pipe.Set(background, fmt.Sprintf("key:%d", number), number, 0)
			pipe.Incr(background, fmt.Sprintf("key:%d", number))
		}
		return nil
	})
	good(err)
	equal(len(commands), 2_000)
	equal(commands[1_999].(*redis.IntCmd).Val(), int64(1_000))
	equal(client.MGet(background, "key:1", "none").Val(), []any{"2", nil})
}

func transactions(client *redis.Client) {
	_, err := client.TxPipelined(background, func(pipe redis.Pipeliner) error {
		pipe.Set(background, "a", "1", 0)
		pipe.Incr(background, "a")
		return nil
	})
	good(err)
	err = client.Watch(background, func(tx *redis.Tx) error {
		equal(tx.Get(background, "a").Val(), "2")
		good(client.Set(background, "a", "changed", 0).Err())
		_, err := tx.TxPipelined(background, func(pipe redis.Pipeliner) error {
			return pipe.Set(background, "a", "lost", 0).Err()
		})
		return err
	}, "a")
	equal(err, redis.TxFailedErr)
	equal(client.Get(background, "a").Val(), "changed")

	// Increments with WATCH, as in go-redis' documentation.
	var running sync.WaitGroup
	for range 8 {
		running.Add(1)
		go func() {
			defer running.Done()
			for done := 0; done < 20; {
				err := client.Watch(background, func(tx *redis.Tx) error {
					number, err := tx.Get(background, "counter").Int()
					if err != nil && err != redis.Nil {
						return err
					}
					_, err = tx.TxPipelined(background, func(pipe redis.Pipeliner) error {
						return pipe.Set(background, "counter", number+1, 0).Err()
					})
					return err
				}, "counter")
				if err == nil {
					done++
				} else if err != redis.TxFailedErr {
					panic(err)
				}
			}
		}()
	}
	running.Wait()
	equal(client.Get(background, "counter").Val(), "160")
}

func scripts(client *redis.Client) {
	double := redis.NewScript(
		"local value = redis.call('GET', KEYS[1]) * 2 redis.call('SET', KEYS[1], value) return {value, ARGV[1]}")
	good(client.Set(background, "n", 21, 0).Err())
	for _, expected := range []int64{42, 84} {
		equal(double.Run(background, client, []string{"n"}, "argument").Val(), []any{expected, "argument"})
	}
	equal(double.Exists(background, client).Val(), []bool{true})
	err := client.EvalSha(background, strings.Repeat("0", 40), nil).Err()
	equal(redis.HasErrorPrefix(err, "NOSCRIPT"), true)
}

func messages(client *redis.Client) {
	subscriber := client.PSubscribe(background, "n*")
	defer subscriber.Close()
	good(subscriber.Subscribe(background, "news"))
	for range 2 {
		_, err := subscriber.ReceiveTimeout(background, 5*time.Second)
		good(err)
	}
	equal(client.Publish(background, "news", "hello").Val(), int64(2))
	for range 2 {
		select {
		case message := <-subscriber.Channel():
			equal([]string{message.Channel, message.Payload}, []string{"news", "hello"})
		case <-time.After(5 * time.Second):
			panic("a message is missing")
		}
	}
}

func scans(client *redis.Client) {
	keys := map[string]bool{}
	scan := client.Scan(background, 0, "key:*", 100).Iterator()
	for scan.Next(background) {
		keys[scan.Val()] = true
	}
	good(scan.Err())
	equal(len(keys), 1_000)
	fields := map[string]string{}
	for number := range 700 {
		fields["f"+strconv.Itoa(number)] = "v" + strconv.Itoa(number)
	}
	good(client.HSet(background, "fields", fields).Err())
	equal(client.HGetAll(background, "fields").Val(), fields)
	found := map[string]string{}
	scan = client.HScan(background, "fields", 0, "", 100).Iterator()
	for scan.Next(background) {
		field := scan.Val()
		equal(scan.Next(background), true)
		found[field] = scan.Val()
	}
	good(scan.Err())
	equal(found, fields)
}

func values(client *redis.Client) {
	good(client.Set(background, "text", "\x00\xff\r\n", 100*time.Second).Err())
	equal(client.Get(background, "text").Val(), "\x00\xff\r\n")
	equal(client.TTL(background, "text").Val() > 90*time.Second, true)
	equal(client.SetNX(background, "text", "x", 0).Val(), false)
	equal(client.Get(background, "none").Err(), redis.Nil)
	equal(redis.HasErrorPrefix(client.HGet(background, "text", "f").Err(), "WRONGTYPE"), true)
	var user struct {
		Name   string `redis:"name"`
		Visits int    `redis:"visits"`
	}
	good(client.HSet(background, "user", "name", "ada", "visits", 41).Err())
	good(client.HIncrBy(background, "user", "visits", 1).Err())
	good(client.HGetAll(background, "user").Scan(&user))
	equal(user.Name == "ada" && user.Visits == 42, true)
	// A request that its client gives up spoils no other.
	brief, cancel := context.WithCancel(background)
	cancel()
	equal(client.Get(brief, "text").Err(), context.Canceled)
	equal(client.Get(background, "n").Val(), "84")
	equal(client.Ping(background).Val(), "PONG")
}

func main() {
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		good(client.FlushAll(background).Err())
		for _, part := range []func(*redis.Client){pipelines, transactions, scripts, messages, scans, values} {
			part(client)
		}
		good(client.Close())
	}
}
