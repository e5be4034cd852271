// A history of redlock-chaos, read: the leases, and what was done to the guarded resource, each
// with the times between which it took effect. README.md says why these times.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
)

// An event has the members, of all kinds of events, that the judge needs (tools/chaos/README.md).
type event struct {
	T         int64    `json:"t"`
	Event     string   `json:"event"`
	Client    int      `json:"client"`
	Resource  int      `json:"resource"`
	Op        int64    `json:"op"`
	What      string   `json:"what"`
	Result    string   `json:"result"`
	Mode      string   `json:"mode"`
	Token     string   `json:"token"`
	Fence     int64    `json:"fence"`
	Until     int64    `json:"until"`
	How       string   `json:"how"`
	Read      int64    `json:"read"`
	Number    int64    `json:"number"`
	Highest   int64    `json:"highest"`
	ID        int64    `json:"id"`
	Text      string   `json:"text"`
	TTL       int64    `json:"ttl_ms"`
	Fencing   bool     `json:"fencing"`
	Resources []string `json:"resources"`
	Counters  []int64  `json:"counters"`
}

const never = int64(-1)

// A lease is what one acquire got. relied says until when its owner relied on it, over when it was
// over at the latest.
type lease struct {
	client, resource    int
	shared              bool // for reading, together with others
	token               string
	fence, told         int64 // told: to the resource
	invoked, completed  int64
	claimed             bool
	until, ended, died  int64
	lost, freed         bool
	answered            int64 // of its release; never: there was no answer
	relied, over        int64
	how                 string
	accessed, increment bool // it has asked for the counter; it has read it, and not yet written
	read, readCall      int64
	look                *access // of one that is shared: what it has read
}

// An access of the counter: of whoever had the token, between two times.
type access struct {
	lease                         *lease
	kind                          kind
	call, end                     int64
	count, fence, number, highest int64
	again                         int64 // of a look: the last count
	unseen                        bool  // the process died in it, or before: it may never have been
	late                          bool  // it ended after its lease, so what it read need not be true
}

type fault struct {
	from, to int64
	text     string
}

type history struct {
	start, finish int64
	ttl           int64
	fencing       bool
	resources     []string
	counters      []int64 // nil: not told
	leases        []*lease
	accesses      []access
	counted       []access // increments, and what those saw who read
	faults        map[int64]*fault
	clients       map[int]*client
}

// A client does one thing at a time, so what it tells began after what it told before.
type client struct {
	before int64 // when it told something last
	invoke event
	lease  *lease // the one that it got last, until its release is answered
}

// Of one time, what ends a process comes last.
func (e event) rank() int {
	if e.Event == "exit" {
		return 1
	}
	return 0
}

// readEvents reads JSON lines in order of time. Those of one time stay in their order: in it each
// process wrote its own. A last line without its newline was never finished, and is left out.
func readEvents(in io.Reader) ([]event, error) {
	var events []event
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		// Some members have another type in events that are not for us.
		var kind struct{ Event string }
		if err := json.Unmarshal(line, &kind); err != nil {
			return nil, fmt.Errorf("line %d: %v", number, err)
		}
		if takers[kind.Event] == nil {
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %v", number, err)
		}
		events = append(events, e)
	}
	sort.SliceStable(events, func(i, j int) bool {
		a, b := events[i], events[j]
		return a.T < b.T || (a.T == b.T && a.rank() < b.rank())
	})
	return events, nil
}

func readHistory(in io.Reader) (*history, error) {
	events, err := readEvents(in)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || events[0].Event != "start" {
		return nil, fmt.Errorf("there is no `start`: this is no history of a run")
	}
	h := &history{finish: never, faults: map[int64]*fault{}, clients: map[int]*client{}}
	for _, e := range events {
		c := h.clients[e.Client]
		if c == nil {
			c = &client{before: h.start}
			h.clients[e.Client] = c
		}
		if err := takers[e.Event](h, c, e); err != nil {
			return nil, fmt.Errorf("%s of client %d at %d: %v", e.Event, e.Client, e.T, err)
		}
		c.before = e.T
	}
	// Of a run that was broken off.
	for _, c := range h.clients {
		die(h, c, events[len(events)-1].T)
	}
	for _, l := range h.leases {
		l.close(h.ttl * 1000)
		if l.look != nil {
			h.counted = append(h.counted, *l.look)
		}
	}
	return h, nil
}

// What each event adds to the history.
var takers map[string]func(*history, *client, event) error

func init() {
	takers = map[string]func(*history, *client, event) error{
		"start": takeStart, "invoke": takeInvoke, "complete": takeComplete, "claim": takeClaim,
		"end": takeEnd, "intent": takeAccess, "done": takeAccess, "refused": takeAccess, "read": takeRead,
		"exit": takeExit, "fault": takeFault, "heal": takeHeal, "finish": takeFinish,
	}
}

func takeStart(h *history, _ *client, e event) error {
	h.start, h.ttl, h.fencing, h.resources = e.T, e.TTL, e.Fencing, e.Resources
	return nil
}

func takeInvoke(h *history, c *client, e event) error {
	if e.Resource < 1 || e.Resource > len(h.resources) {
		return fmt.Errorf("there is no resource %d", e.Resource)
	}
	c.invoke = e
	return nil
}

func takeComplete(h *history, c *client, e event) error {
	if c.invoke.Event == "" || c.invoke.Op != e.Op {
		return fmt.Errorf("operation %d was not invoked right before it", e.Op)
	}
	switch {
	case c.invoke.What == "acquire" && e.Result == "OK":
		c.lease = &lease{client: e.Client, resource: c.invoke.Resource, shared: c.invoke.Mode == "shared",
			token: e.Token, fence: e.Fence,
			invoked: c.invoke.T, completed: e.T, until: never, ended: never, died: never, answered: never}
		h.leases = append(h.leases, c.lease)
	case c.invoke.What == "release" && c.lease != nil:
		c.lease.answered, c.lease.freed = e.T, e.Result == "OK"
		c.lease = nil
	}
	c.invoke = event{}
	return nil
}

// of returns the lease that the event is about.
func (c *client) of(e event) (*lease, error) {
	if c.lease == nil || c.lease.token != e.Token || c.lease.resource != e.Resource {
		return nil, fmt.Errorf("token %s of resource %d is not of the last acquire that was OK", e.Token, e.Resource)
	}
	return c.lease, nil
}

func takeClaim(_ *history, c *client, e event) error {
	l, err := c.of(e)
	if err == nil {
		l.claimed = true
		l.until = most(l.until, e.Until)
	}
	return err
}

func takeEnd(_ *history, c *client, e event) error {
	l, err := c.of(e)
	if err == nil {
		l.ended, l.lost = e.T, e.How == "lost"
	}
	return err
}

func takeAccess(h *history, c *client, e event) error {
	l, err := c.of(e)
	if err != nil {
		return err
	}
	if e.Event == "done" && (!l.increment || l.read != e.Read) {
		return fmt.Errorf("there is no `intent` to write the successor of %d", e.Read)
	}
	if e.Event != "done" {
		l.told = e.Fence
	}
	a := access{lease: l, call: c.before, end: e.T, count: e.Read, fence: l.told, number: e.Number}
	l.accessed = true
	switch e.Event {
	case "intent":
		a.kind = read
		l.increment, l.read, l.readCall = true, e.Read, c.before
	case "done":
		a.kind, a.count = write, e.Read+1
		h.counted = append(h.counted, access{lease: l, kind: increment, call: l.readCall, end: e.T, count: l.read})
		l.increment = false
	case "refused":
		a.kind, a.highest = refused, e.Highest
		l.increment = false
	}
	h.accesses = append(h.accesses, a)
	return nil
}

// One who reads sees one count from its first read to its last.
func takeRead(h *history, c *client, e event) error {
	l, err := c.of(e)
	if err != nil {
		return err
	}
	if !l.shared {
		return fmt.Errorf("token %s is of a lease that is not shared", e.Token)
	}
	a := access{lease: l, kind: read, call: c.before, end: e.T, count: e.Read, fence: e.Fence, number: e.Number,
		late: e.T > e.Until}
	h.accesses = append(h.accesses, a)
	switch {
	case a.late:
	case l.look == nil:
		a.kind, a.again = look, a.count
		l.look = &a
	default:
		l.look.end, l.look.again = a.end, a.count
	}
	return nil
}

func takeExit(h *history, c *client, e event) error {
	die(h, c, e.T)
	return nil
}

// die ends the process. What it did last, before it could tell, may have taken effect.
func die(h *history, c *client, at int64) {
	if l := c.lease; l != nil && l.ended == never {
		l.died = at
		a := access{lease: l, call: c.before, end: at, fence: l.fence, unseen: true}
		if l.increment {
			a.kind, a.count = write, l.read+1
			h.accesses = append(h.accesses, a)
			h.counted = append(h.counted,
				access{lease: l, kind: increment, call: l.readCall, end: at, count: l.read, unseen: true})
		} else if l.claimed && (l.shared || !l.accessed) {
			a.kind = read
			h.accesses = append(h.accesses, a)
		}
	}
	c.lease, c.invoke = nil, event{}
}

func takeFault(h *history, _ *client, e event) error {
	h.faults[e.ID] = &fault{from: e.T, to: never, text: e.Text}
	return nil
}

func takeHeal(h *history, _ *client, e event) error {
	if f := h.faults[e.ID]; f != nil {
		f.to = e.T
	}
	return nil
}

func takeFinish(h *history, _ *client, e event) error {
	if len(e.Counters) != len(h.resources) {
		return fmt.Errorf("%d counters of %d resources", len(e.Counters), len(h.resources))
	}
	h.finish, h.counters = e.T, e.Counters
	return nil
}

// close says when the lease ended: not before its owner stopped relying on it, and at the latest
// when its release was answered, or at its deadline.
func (l *lease) close(ttl int64) {
	l.relied, l.over, l.how = l.until, most(most(l.until, l.ended), l.answered), "end of"
	switch {
	case !l.claimed:
		// Its owner never relied on it: it had ended before that, or that was not told.
		l.relied, l.over, l.how = l.invoked, most(l.completed+ttl, l.answered), "end of unused"
	case l.ended != never && l.ended <= l.until:
		l.relied, l.how = l.ended, "release"
		if l.lost {
			l.how = "loss of"
		}
	case l.died != never && l.died <= l.until:
		l.relied, l.how = l.died, "death of"
	}
	if l.freed && l.answered >= l.relied {
		l.over = l.answered
	}
}

func most(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}
