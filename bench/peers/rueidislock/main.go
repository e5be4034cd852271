// rueidislock as a contender: set up as in its README, with one of its keys on each node.
package main

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	contender "libredlock/bench/contender"
)

const notes = "made for one Redis Cluster, whose slots spread a lock's keys (rueidis issue 414); " +
	"over independent nodes only by our ClientBuilder, which sends key i to node i (one node: " +
	"exactly its README); asks one node after the other up to the majority, the rest in the " +
	"background; the first refusal ends the attempt; SET and GET in a script, for client " +
	"tracking; ends at an absolute wall-clock time; no drift; renews at ttl/2; release waits for " +
	"all nodes, for a node that is down until the ttl ends; node timeout 20 ms (its default), " +
	"which fails acquires on slow links and in long queues"

type library struct{}

type locker struct {
	rueidislock rueidislock.Locker
}

type lock struct {
	locker   rueidislock.Locker
	resource string
	release  context.CancelFunc
}

func (library) Connect(nodes []string) (contender.Locker, error) {
	if len(nodes)%2 == 0 {
		return nil, fmt.Errorf("rueidislock has an odd number of keys, and there are %d nodes", len(nodes))
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: nodes},
		ClientBuilder:  connectNodes,
		KeyMajority:    int32(len(nodes)/2 + 1),
		KeyValidity:    contender.TTL,
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	return locker{l}, nil
}

func (l locker) NewLock(resource string) contender.Lock {
	return &lock{locker: l.rueidislock, resource: resource}
}

func (l locker) Close() {
	l.rueidislock.Close()
}

func (l *lock) TryAcquire() error {
	_, release, err := l.locker.TryWithContext(context.Background(), l.resource)
	l.release = release
	return err
}

// Acquire waits on a context of its own, since the lock is released when that one is cancelled.
func (l *lock) Acquire(stop context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	waiting := context.AfterFunc(stop, cancel)
	_, release, err := l.locker.WithContext(ctx, l.resource)
	if err != nil {
		cancel()
		if stop.Err() != nil {
			return contender.ErrStopped
		}
		return err
	}
	if !waiting() { // stopped meanwhile
		release()
		return contender.ErrStopped
	}
	l.release = func() {
		release()
		cancel()
	}
	return nil
}

// Release waits until every key is deleted.
func (l *lock) Release() error {
	l.release()
	return nil
}

func main() {
	version := contender.Version("github.com/redis/rueidis") + ", " + contender.GoVersion()
	contender.Run("rueidislock", version, notes, library{})
}
