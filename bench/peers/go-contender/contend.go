// What "line" and "loop" measure: clients that want the same lock.

package contender

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

// wait is a client's wish for the lock: client, began, granted and released, in µs of
// CLOCK_MONOTONIC; 0 for what never came.
type wait [4]int64

type contestFigures struct {
	Waits  []wait `json:"waits"`
	Failed int64  `json:"failed"`
	Error  string `json:"error,omitempty"`
}

// contest is what the clients of one resource share. The command's arguments come first.
type contest struct {
	clients                          int64
	hold, begin, space, end, freedAt int64
	again                            bool
	counter                          string // a file that each holder reads and writes back
	locker                           Locker
	stop                             context.Context // done at the end
	mutex                            sync.Mutex
	waits                            []wait
	failed                           atomic.Int64
	problem                          firstError
}

// nowUS is CLOCK_MONOTONIC, which Go's own times keep to themselves.
func nowUS() int64 {
	var now syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		fatal("clock_gettime: %v", errno)
	}
	return now.Nano() / 1000
}

func sleepUntil(us int64) {
	time.Sleep(time.Duration(us-nowUS()) * time.Microsecond)
}

// newContest reads "CLIENTS HOLD_US BEGIN_US SPACE_US END_US" and then FREE_US of a line, or
// COUNTER of a loop.
func newContest(locker Locker, again bool, words []string) (*contest, error) {
	c := &contest{locker: locker, again: again}
	if len(words) != 6 {
		return nil, errors.New("six arguments are needed")
	}
	members := []*int64{&c.clients, &c.hold, &c.begin, &c.space, &c.end, &c.freedAt}
	if again {
		members = members[:5]
		if words[5] != "-" {
			c.counter = words[5]
		}
	}
	for i, member := range members {
		value, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || value < 0 {
			return nil, fmt.Errorf("%q is no number", words[i])
		}
		*member = value
	}
	if c.clients > maxClients {
		return nil, fmt.Errorf("at most %d clients", maxClients)
	}
	return c, nil
}

func (c *contest) run() contestFigures {
	stop, cancel := context.WithTimeout(context.Background(), time.Duration(c.end-nowUS())*time.Microsecond)
	defer cancel()
	c.stop = stop
	c.waits = []wait{}
	var all sync.WaitGroup
	for i := range c.clients {
		all.Go(func() { c.client(i, c.begin+i*c.space) })
	}
	if c.freedAt > 0 {
		all.Go(func() { c.client(c.clients, 0) })
	}
	all.Wait()
	return contestFigures{Waits: c.waits, Failed: c.failed.Load(), Error: c.problem.text()}
}

func (c *contest) client(number, begin int64) {
	lock := c.locker.NewLock("bench-contended")
	sleepUntil(begin)
	for again := true; again && nowUS() < c.end; again = c.again {
		one := wait{number, nowUS()}
		if err := lock.Acquire(c.stop); err == nil {
			c.held(&one)
			if err := lock.Release(); err != nil {
				c.fail("release", err)
			}
		} else if !errors.Is(err, ErrStopped) {
			c.fail("acquire", err)
		}
		c.mutex.Lock()
		c.waits = append(c.waits, one)
		c.mutex.Unlock()
	}
}

// held lets the time pass for which the lock is held; none after the end.
func (c *contest) held(one *wait) {
	granted := nowUS()
	if granted >= c.end {
		return
	}
	value := c.read()
	if one[0] == c.clients {
		sleepUntil(c.freedAt)
	} else {
		sleepUntil(granted + c.hold)
	}
	if c.counter != "" {
		if err := os.WriteFile(c.counter, strconv.AppendInt(nil, value+1, 10), 0o600); err != nil {
			fatal("%v", err)
		}
	}
	one[2], one[3] = granted, nowUS()
}

func (c *contest) read() int64 {
	if c.counter == "" {
		return 0
	}
	text, err := os.ReadFile(c.counter)
	if err != nil {
		fatal("%v", err)
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		fatal("%v", err)
	}
	return value
}

func (c *contest) fail(what string, err error) {
	c.failed.Add(1)
	c.problem.note(what, err)
}
