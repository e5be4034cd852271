// The sequential objects: what each operation needs, and what it changes.
package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

type kind int

const (
	acquire kind = iota
	end
	read
	write
	refused
	increment
	look
	total
)

// A step is an operation on one resource.
type step struct {
	kind                   kind
	client                 int
	shared                 bool
	token                  string
	fence, after           int64 // after: the next lower fencing token of those who had the lock alone
	count, number, highest int64
	again                  int64
	unseen, late           bool
	how                    string
}

type state struct {
	holder                        string // a token; "" for none
	readers                       string // the tokens of those who read, in order
	fence, count, highest, number int64
	wrote                         int64 // the highest token of those alone that the resource has seen
}

// An object says which operations it has, and by which rules. Each part of the whole leaves out
// what the others promise.
type object struct {
	name string
	has  []kind
	rules
}

// holds: one holder at a time, who alone reads and writes, or some who read. tokens: fencing tokens
// rise from lease to lease, but among those who read together, and the resource takes no old one.
// counts: what is read is what was written.
type rules struct{ holds, tokens, counts bool }

var objects = []object{
	{"whole", []kind{acquire, end, read, write, refused, total}, rules{holds: true, tokens: true, counts: true}},
	{"lock", []kind{acquire, end}, rules{holds: true}},
	{"tokens", []kind{acquire}, rules{tokens: true}},
	{"lock+tokens", []kind{acquire, end}, rules{holds: true, tokens: true}},
	{"counter", []kind{increment, look, total}, rules{counts: true}},
	{"resource", []kind{read, write, refused}, rules{tokens: true}},
}

// objects are those of this run: without fencing tokens, nothing that is about them.
func (h *history) objects() []object {
	var list []object
	for _, o := range objects {
		if !o.tokens || h.fencing || o.name == "whole" {
			o.tokens = o.tokens && h.fencing
			list = append(list, o)
		}
	}
	return list
}

func (o object) is(k kind) bool {
	for _, own := range o.has {
		if own == k {
			return true
		}
	}
	return false
}

// next returns the states that the operation may lead to; none: it is not possible.
func (r rules) next(s state, op *step) []state {
	switch op.kind {
	case acquire:
		free := s.holder == "" && (op.shared || s.readers == "")
		if r.holds && !free || r.tokens && (op.fence <= s.fence || op.after != s.fence) {
			return nil
		}
		switch {
		case r.holds && op.shared:
			s.readers = with(s.readers, op.token)
		case r.holds:
			s.holder = op.token
		}
		if r.tokens && !op.shared {
			s.fence = op.fence
		}
	case end:
		if !s.has(op) {
			return nil
		}
		if op.shared {
			s.readers = without(s.readers, op.token)
		} else {
			s.holder = ""
		}
	case read, write:
		return r.access(s, op)
	case refused:
		if highest := s.compared(op); op.fence >= highest || op.highest != highest {
			return nil
		}
	case increment:
		counted := s
		counted.count++
		switch {
		case op.count == s.count && op.unseen:
			return []state{s, counted}
		case op.count == s.count:
			return []state{counted}
		case !op.unseen:
			return nil
		}
	case look:
		if op.again != op.count || op.count != s.count {
			return nil
		}
	case total:
		if op.count != s.count {
			return nil
		}
	}
	return []state{s}
}

// has tells whether the operation's lease holds the lock.
func (s state) has(op *step) bool {
	if !op.shared {
		return s.holder == op.token
	}
	return with(s.readers, op.token) == s.readers
}

// compared is the token below which the resource refuses: of those who read, one of those who do
// not.
func (s state) compared(op *step) int64 {
	if op.shared {
		return s.wrote
	}
	return s.highest
}

func with(tokens, token string) string {
	list := strings.Fields(tokens)
	at := sort.SearchStrings(list, token)
	if at < len(list) && list[at] == token {
		return tokens
	}
	list = append(list[:at], append([]string{token}, list[at:]...)...)
	return strings.Join(list, " ")
}

func without(tokens, token string) string {
	list := strings.Fields(tokens)
	at := sort.SearchStrings(list, token)
	return strings.Join(append(list[:at], list[at+1:]...), " ")
}

// access reads or writes. One that nobody has seen may not have been; or it died in between, when
// the resource had taken its token. One that is late took place, whoever held the lock.
func (r rules) access(s state, op *step) []state {
	possible := !(r.holds && !op.late && !s.has(op)) && !(r.tokens && op.fence < s.compared(op))
	after := s
	if r.tokens {
		after.highest, after.number = most(op.fence, s.highest), s.number+1
		if !op.shared {
			after.wrote = op.fence
		}
	}
	taken := after
	if r.counts && op.kind == write {
		after.count = op.count
	}
	if op.unseen {
		if !possible {
			return []state{s}
		}
		return []state{s, taken, after}
	}
	wrong := r.counts && op.kind == read && !op.late && op.count != s.count
	if !possible || wrong || r.tokens && op.number != after.number {
		return nil
	}
	return []state{after}
}

// model is that of an object of one resource, which begins in a set of states.
func (r rules) model(begin []interface{}) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return begin },
		Step: func(s, input, _ interface{}) []interface{} {
			var states []interface{}
			for _, next := range r.next(s.(state), input.(*step)) {
				states = append(states, next)
			}
			return states
		},
		DescribeOperation: func(input, _ interface{}) string { return input.(*step).String() },
		DescribeState:     func(s interface{}) string { return r.describe(s.(state)) },
	}
	return nondeterministic.ToModel()
}

func (r rules) describe(s state) string {
	var words []string
	switch {
	case r.holds && s.holder != "":
		words = append(words, "held by "+short(s.holder))
	case r.holds && s.readers != "":
		var readers []string
		for _, token := range strings.Fields(s.readers) {
			readers = append(readers, short(token))
		}
		words = append(words, "read by "+strings.Join(readers, ", "))
	case r.holds:
		words = append(words, "free")
	}
	if r.tokens {
		words = append(words, fmt.Sprintf("token %d, highest seen %d, %d accesses", s.fence, s.highest, s.number))
	}
	if r.counts {
		words = append(words, fmt.Sprintf("counter %d", s.count))
	}
	return strings.Join(words, "; ")
}

func (op *step) String() string {
	of, token := "", short(op.token)
	if op.fence != 0 {
		of = fmt.Sprintf(" with token %d", op.fence)
	}
	text := ""
	switch op.kind {
	case acquire:
		text = "acquire → " + token + of
		if op.shared {
			text = "acquire to read → " + token + of
		}
	case end:
		text = op.how + " " + token
	case read:
		text = fmt.Sprintf("read%s → %d", of, op.count)
	case write:
		text = fmt.Sprintf("write %d%s", op.count, of)
	case refused:
		text = fmt.Sprintf("access%s → refused, %d was seen", of, op.highest)
	case increment:
		text = fmt.Sprintf("increment %d", op.count)
	case look:
		text = fmt.Sprintf("%s saw %d, and %d at last", token, op.count, op.again)
	case total:
		return fmt.Sprintf("at the end → %d", op.count)
	}
	if op.unseen {
		text += ", perhaps: its process died"
	}
	return fmt.Sprintf("client %d: %s", op.client, text)
}

// short is enough of a lease's name to tell it from its neighbours.
func short(token string) string {
	if len(token) > 6 {
		return token[len(token)-6:]
	}
	return token
}

// operations are those of one object and one resource, by their begin. Times count from the start.
func (h *history) operations(o object, resource int) []porcupine.Operation {
	var list []porcupine.Operation
	add := func(op *step, call, over int64) {
		if o.is(op.kind) {
			list = append(list, porcupine.Operation{ClientId: op.client - 1, Input: op, Call: call - h.start,
				Return: over - h.start})
		}
	}
	var fences []int64 // of those alone
	for _, l := range h.leases {
		if l.resource == resource && !l.shared {
			fences = append(fences, l.fence)
		}
	}
	sort.Slice(fences, func(i, j int) bool { return fences[i] < fences[j] })
	for _, l := range h.leases {
		if l.resource != resource {
			continue
		}
		begun := &step{kind: acquire, client: l.client, shared: l.shared, token: l.token, fence: l.fence}
		// Of one who reads, an equal one is wrong as well.
		lower := sort.Search(len(fences), func(i int) bool {
			return fences[i] > l.fence || fences[i] == l.fence && !l.shared
		})
		if lower > 0 {
			begun.after = fences[lower-1]
		}
		ended := &step{kind: end, client: l.client, shared: l.shared, token: l.token, how: l.how}
		if o.holds && l.shared && l.claimed {
			add(begun, l.completed, l.completed)
			add(ended, l.relied, l.relied)
		} else {
			add(begun, l.invoked, l.completed)
			add(ended, l.relied, l.over)
		}
	}
	for _, accesses := range [][]access{h.accesses, h.counted} {
		for _, a := range accesses {
			if a.lease.resource == resource {
				add(&step{kind: a.kind, client: a.lease.client, shared: a.lease.shared, token: a.lease.token,
					fence: a.fence, count: a.count, number: a.number, highest: a.highest, again: a.again,
					unseen: a.unseen, late: a.late}, a.call, a.end)
			}
		}
	}
	if h.counters != nil {
		add(&step{kind: total, client: len(h.clients), count: h.counters[resource-1]}, h.finish, h.finish)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Call < list[j].Call })
	return list
}
