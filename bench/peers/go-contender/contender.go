// Package contender is what the contenders in Go share: commands in, figures out, as
// bench/README.md says.
package contender

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// TTL of every lock.
const TTL = 10 * time.Second

const (
	maxWorkers     = 4096
	maxClients     = 1024
	maxSamples     = 200_000
	namesPerWorker = 8
	connectTimeout = 10 * time.Second
)

// ErrStopped says that Acquire ended because stop was done.
var ErrStopped = errors.New("stopped")

// Library is the lock library that is measured.
type Library interface {
	// Connect makes connections to the nodes, each "host:port".
	Connect(nodes []string) (Locker, error)
}

// Locker makes locks over one set of connections.
type Locker interface {
	NewLock(resource string) Lock
	Close()
}

// Lock is one user's lock of one resource; only one goroutine uses it at a time.
type Lock interface {
	// TryAcquire tries once, without waiting for another holder.
	TryAcquire() error
	// Acquire waits as the library waits, and returns ErrStopped if stop was done first. Once it
	// has returned nil, stop ends nothing.
	Acquire(stop context.Context) error
	Release() error
}

// About is what the contender says of itself.
type About struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Language string `json:"language"`
	Notes    string `json:"notes"`
}

var errUnsupported = errors.New("unsupported")

// session is the state between commands.
type session struct {
	library Library
	locker  Locker
	out     *bufio.Writer
}

// Run reads commands until the end of input.
func Run(name, version, notes string, library Library) {
	s := session{library: library, out: bufio.NewWriter(os.Stdout)}
	in := bufio.NewReader(os.Stdin)
	s.write(About{Name: name, Version: version, Language: "Go", Notes: notes})
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			s.answer(strings.Fields(line))
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			fatal("cannot read commands: %v", err)
		}
	}
}

// answer says done first and then the figures: the driver reads the processor clock at done, before
// we format JSON.
func (s *session) answer(words []string) {
	figures, err := s.do(words)
	s.done()
	if err != nil {
		figures = map[string]string{"error": err.Error()}
	}
	s.write(figures)
}

func (s *session) do(words []string) (any, error) {
	if len(words) == 0 {
		return nil, errUnsupported
	}
	command, arguments := words[0], words[1:]
	switch command {
	case "connect":
		return struct{}{}, s.connect(arguments)
	case "cycles":
		n, ok := numbers(arguments)
		if !ok || len(n) != 3 || n[0] < 1 || n[0] > maxWorkers || n[2] > maxSamples {
			return nil, errors.New("cycles needs WORKERS MS SAMPLES")
		}
		if s.locker == nil {
			return nil, errors.New("cycles before connect")
		}
		return cycles(s.locker, n[0], time.Duration(n[1])*time.Millisecond, n[2]), nil
	case "line", "loop":
		if s.locker == nil {
			return nil, errors.New(command + " before connect")
		}
		c, err := newContest(s.locker, command == "loop", arguments)
		if err != nil {
			return nil, err
		}
		return c.run(), nil
	}
	return nil, errUnsupported
}

func numbers(words []string) ([]int, bool) {
	n := make([]int, len(words))
	for i, word := range words {
		value, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, false
		}
		n[i] = int(value)
	}
	return n, true
}

// connect replaces the locker by one that has taken and released a lock. Where it fails there is
// none: no figures of the old nodes by mistake.
func (s *session) connect(nodes []string) error {
	if len(nodes) == 0 {
		return errors.New("connect needs HOST:PORT …")
	}
	if s.locker != nil {
		s.locker.Close()
		s.locker = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	type outcome struct {
		locker Locker
		err    error
	}
	// A library may block for longer than we may: then it is left behind, to close by itself.
	connected := make(chan outcome, 1)
	go func() {
		locker, err := s.library.Connect(nodes)
		if err == nil {
			if err = probe(ctx, locker); err == nil {
				err = ctx.Err()
			}
			if err != nil {
				locker.Close()
			}
		}
		connected <- outcome{locker, err}
	}()
	select {
	case o := <-connected:
		if o.err == nil {
			s.locker = o.locker
		}
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("no lock could be taken and released within %v", connectTimeout)
	}
}

func probe(ctx context.Context, locker Locker) error {
	lock := locker.NewLock(fmt.Sprintf("bench-connect-%d", os.Getpid()))
	for {
		err := lock.TryAcquire()
		if err == nil {
			return lock.Release()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *session) done() {
	_, _ = s.out.WriteString("done\n")
	s.flush()
}

func (s *session) write(value any) {
	encoder := json.NewEncoder(s.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fatal("cannot answer: %v", err)
	}
	s.flush()
}

func (s *session) flush() {
	if err := s.out.Flush(); err != nil {
		fatal("cannot answer: %v", err)
	}
}

func fatal(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}
