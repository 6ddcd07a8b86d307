package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Fault is an error that the server replied, as opposed to one of the connection.
type Fault string

// Connection speaks RESP2 and reads replies as nil, int64, string, Fault or []any.
type Connection struct {
	socket net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
}

func Connect(port int) (*Connection, error) {
	socket, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return nil, err
	}
	return &Connection{socket, bufio.NewReaderSize(socket, 64<<10), bufio.NewWriterSize(socket, 64<<10)}, nil
}

func (c *Connection) Close() { c.socket.Close() }

// Write appends a request to what Flush sends.
func (c *Connection) Write(words ...string) {
	fmt.Fprintf(c.writer, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(c.writer, "$%d\r\n%s\r\n", len(word), word)
	}
}

func (c *Connection) Flush() error {
	c.socket.SetDeadline(time.Now().Add(30 * time.Second))
	return c.writer.Flush()
}

func (c *Connection) Read() (any, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("an empty line instead of a reply")
	}
	switch rest := line[1:]; line[0] {
	case '+':
		return rest, nil
	case '-':
		return Fault(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$':
		length, err := strconv.Atoi(rest)
		if err != nil || length < 0 {
			return nil, err
		}
		value := make([]byte, length+2)
		_, err = io.ReadFull(c.reader, value)
		return string(value[:length]), err
	case '*':
		length, err := strconv.Atoi(rest)
		if err != nil || length < 0 {
			return nil, err
		}
		items := make([]any, length)
		for i := range items {
			if items[i], err = c.Read(); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("not a reply: %q", line)
}

// Call sends one request and reads its reply.
func (c *Connection) Call(words ...string) (any, error) {
	c.Write(words...)
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.Read()
}
