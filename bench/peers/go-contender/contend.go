// What "contend" measures: clients that want the same lock.

package contender

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

type contendFigures struct {
	Grants     []int64      `json:"grants"`
	Seconds    float64      `json:"seconds"`
	HandoverUS microseconds `json:"handover_us"`
	Failed     int64        `json:"failed"`
	Overlaps   int64        `json:"overlaps"`
	Error      string       `json:"error,omitempty"`
}

// contention is what the clients of the one resource tell each other.
type contention struct {
	start      time.Time
	deadline   time.Time
	hold       time.Duration
	stop       context.Context // done at the deadline
	holders    atomic.Int64
	overlaps   atomic.Int64
	failed     atomic.Int64
	releasedNS atomic.Int64 // when a release was last called, since start; 0 once a grant has answered it
	handed     atomic.Int64
	handovers  samples
	problem    firstError
}

func contend(locker Locker, clients int, duration, hold time.Duration) contendFigures {
	c := contention{hold: hold, handovers: newSamples(maxHandovers)}
	grants := make([]int64, clients)
	locks := make([]Lock, clients)
	for i := range locks {
		locks[i] = locker.NewLock("bench-contended")
	}
	var all sync.WaitGroup
	c.start = time.Now()
	c.deadline = c.start.Add(duration)
	var cancel context.CancelFunc
	c.stop, cancel = context.WithDeadline(context.Background(), c.deadline)
	defer cancel()
	for i := range locks {
		all.Go(func() { grants[i] = c.client(locks[i]) })
	}
	all.Wait()
	return contendFigures{
		Grants:     grants,
		Seconds:    time.Since(c.start).Seconds(),
		HandoverUS: c.handovers.first(c.handed.Load()),
		Failed:     c.failed.Load(),
		Overlaps:   c.overlaps.Load(),
		Error:      c.problem.text(),
	}
}

// client acquires, holds and releases until the deadline, and returns how often it was granted the lock.
func (c *contention) client(lock Lock) (grants int64) {
	for time.Now().Before(c.deadline) {
		err := lock.Acquire(c.stop)
		if errors.Is(err, ErrStopped) {
			return grants
		}
		if err != nil {
			c.failed.Add(1)
			c.problem.note("acquire", err)
			continue
		}
		now := time.Now()
		if c.holders.Add(1) > 1 {
			c.overlaps.Add(1)
		}
		if now.Before(c.deadline) {
			grants++
			c.granted(now)
			time.Sleep(c.hold)
		}
		c.holders.Add(-1)
		c.releasedNS.Store(int64(time.Since(c.start)))
		if err := lock.Release(); err != nil {
			c.failed.Add(1)
			c.problem.note("release", err)
		}
	}
	return grants
}

func (c *contention) granted(now time.Time) {
	released := c.releasedNS.Swap(0)
	if released == 0 || c.handed.Load() >= maxHandovers {
		return
	}
	c.handovers.set(c.handed.Add(1)-1, now.Sub(c.start)-time.Duration(released))
}
