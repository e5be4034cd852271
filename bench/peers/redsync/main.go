// redsync with go-redis as a contender: one client a node, as its README sets it up.
package main

import (
	"context"
	"math/rand"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	contender "libredlock/bench/contender"
)

const notes = "go-redis with its defaults (a pool of 10 connections a core and node); waits for " +
	"all nodes, also on release (WithFailFast is off by default); checks validity with 1 % " +
	"drift; node timeout of an acquire 5 % of the ttl, none for a release; go-redis heeds it " +
	"only while it waits for a connection (ContextTimeoutEnabled is off by default), so a hung " +
	"node costs 5 s each; no logging"

type library struct{}

type locker struct {
	clients []*goredislib.Client
	redsync *redsync.Redsync
}

type lock struct {
	locker   *locker
	resource string
	mutex    *redsync.Mutex
}

func (library) Connect(nodes []string) (contender.Locker, error) {
	l := &locker{}
	var pools []redsyncredis.Pool
	for _, node := range nodes {
		client := goredislib.NewClient(&goredislib.Options{Addr: node})
		l.clients = append(l.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	l.redsync = redsync.New(pools...)
	return l, nil
}

func (l *locker) NewLock(resource string) contender.Lock {
	return &lock{l, resource, l.redsync.NewMutex(resource, redsync.WithExpiry(contender.TTL))}
}

func (l *locker) Close() {
	for _, client := range l.clients {
		_ = client.Close()
	}
}

func (l *lock) TryAcquire() error {
	return l.mutex.TryLock()
}

// Acquire repeats redsync's 32 tries, with its default delay between them, until one wins. The wait
// can end at a delay only: a try that is cancelled leaves its keys until the ttl, since redsync
// releases on the same context.
func (l *lock) Acquire(stop context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	delay := func(int) time.Duration {
		if stop.Err() != nil {
			cancel()
		}
		return time.Duration(rand.Intn(200)+50) * time.Millisecond
	}
	mutex := l.locker.redsync.NewMutex(l.resource, redsync.WithExpiry(contender.TTL), redsync.WithRetryDelayFunc(delay))
	for stop.Err() == nil {
		if err := mutex.LockContext(ctx); err == nil {
			l.mutex = mutex
			return nil
		}
	}
	return contender.ErrStopped
}

func (l *lock) Release() error {
	_, err := l.mutex.Unlock()
	return err
}

func main() {
	logging.Disable()
	version := contender.Version("github.com/go-redsync/redsync/v4") +
		", go-redis " + contender.Version("github.com/redis/go-redis/v9") + ", " + contender.GoVersion()
	contender.Run("redsync", version, notes, library{})
}
