package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Server is a process of `alluvium serve` on a directory that outlives it.
type Server struct {
	words   []string
	port    int
	log     string
	process *exec.Cmd
	exited  chan error
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func NewServer(program, directory, log string, options []string) *Server {
	port := freePort()
	words := []string{program, "serve", "--dir", directory, "--port", fmt.Sprint(port)}
	return &Server{words: append(words, options...), port: port, log: log}
}

// Start starts the process and does not wait until it serves.
func (s *Server) Start() error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(s.words[0], s.words[1:]...)
	s.process.Stdout, s.process.Stderr = log, log
	// The server does not outlive this program.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	process := s.process
	go func() { exited <- process.Wait() }()
	s.exited = exited
	return nil
}

// Ready waits until the server answers, and returns a connection.
func (s *Server) Ready() (*Connection, error) {
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case err := <-s.exited:
			return nil, fmt.Errorf("the server does not start: %v, see %s", err, s.log)
		default:
		}
		if connection, err := Connect(s.port); err == nil {
			if reply, err := connection.Call("PING"); err == nil && reply == "PONG" {
				return connection, nil
			}
			connection.Close()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil, fmt.Errorf("the server does not answer within a minute")
}

// Kill ends the process by SIGKILL. An error says that it had ended before.
func (s *Server) Kill() error {
	s.process.Process.Kill()
	return s.ended("signal: killed")
}

// Stop ends the process by SIGTERM.
func (s *Server) Stop() error {
	s.process.Process.Signal(syscall.SIGTERM)
	return s.ended("<nil>")
}

func (s *Server) ended(expected string) error {
	select {
	case err := <-s.exited:
		if found := fmt.Sprint(err); !strings.Contains(found, expected) {
			return fmt.Errorf("the server ended by itself: %s, see %s", found, s.log)
		}
		return nil
	case <-time.After(60 * time.Second):
		return fmt.Errorf("the server does not end within a minute")
	}
}
