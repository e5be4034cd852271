// What "cycles" measures: locks that nobody else wants.

package contender

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

type cyclesFigures struct {
	Cycles    int64        `json:"cycles"`
	Failed    int64        `json:"failed"`
	Seconds   float64      `json:"seconds"`
	AcquireUS microseconds `json:"acquire_us"`
	ReleaseUS microseconds `json:"release_us"`
	Error     string       `json:"error,omitempty"`
}

// cycles runs the workers, each a goroutine that acquires and releases its own resources in turn.
func cycles(locker Locker, workers int, duration time.Duration, wanted int) cyclesFigures {
	locks := make([][namesPerWorker]Lock, workers)
	for w := range locks {
		for i := range locks[w] {
			locks[w][i] = locker.NewLock(fmt.Sprintf("bench-%d-%d", w, i))
		}
	}
	acquires, releases := newSamples(wanted), newSamples(wanted)
	var succeeded, failed, sampled atomic.Int64
	var problem firstError
	var start, deadline time.Time
	var all sync.WaitGroup
	begin := make(chan struct{})

	cycle := func(lock Lock) bool {
		called := time.Now()
		if err := lock.TryAcquire(); err != nil {
			problem.note("acquire", err)
			return false
		}
		held := time.Now()
		err := lock.Release()
		released := time.Now()
		if sampled.Load() < int64(wanted) {
			slot := sampled.Add(1) - 1
			acquires.set(slot, held.Sub(called))
			releases.set(slot, released.Sub(held))
		}
		problem.note("release", err)
		return err == nil
	}
	for w := range locks {
		all.Go(func() {
			var won, lost int64
			<-begin
			for i := 0; time.Now().Before(deadline); i = (i + 1) % namesPerWorker {
				if cycle(locks[w][i]) {
					won++
				} else {
					lost++
				}
			}
			succeeded.Add(won)
			failed.Add(lost)
		})
	}
	start = time.Now()
	deadline = start.Add(duration)
	close(begin)
	all.Wait()
	return cyclesFigures{
		Cycles:    succeeded.Load(),
		Failed:    failed.Load(),
		Seconds:   time.Since(start).Seconds(),
		AcquireUS: acquires.first(sampled.Load()),
		ReleaseUS: releases.first(sampled.Load()),
		Error:     problem.text(),
	}
}
