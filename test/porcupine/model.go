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
	total
)

// A step is an operation on one resource.
type step struct {
	kind                   kind
	client                 int
	token                  string
	fence, after           int64 // after: the next lower fencing token of the resource
	count, number, highest int64
	unseen                 bool
	how                    string
}

type state struct {
	holder                        string // a token; "" for none
	fence, count, highest, number int64
}

// An object says which operations it has, and by which rules. Each part of the whole leaves out
// what the others promise.
type object struct {
	name string
	has  []kind
	rules
}

// holds: one holder at a time, who alone reads and writes. tokens: fencing tokens rise, and the
// resource takes no old one. counts: what is read is what was written.
type rules struct{ holds, tokens, counts bool }

var objects = []object{
	{"whole", []kind{acquire, end, read, write, refused, total}, rules{holds: true, tokens: true, counts: true}},
	{"lock", []kind{acquire, end}, rules{holds: true}},
	{"tokens", []kind{acquire}, rules{tokens: true}},
	{"lock+tokens", []kind{acquire, end}, rules{holds: true, tokens: true}},
	{"counter", []kind{increment, total}, rules{counts: true}},
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
		if r.holds && s.holder != "" || r.tokens && (op.fence <= s.fence || op.after != s.fence) {
			return nil
		}
		if r.holds {
			s.holder = op.token
		}
		if r.tokens {
			s.fence = op.fence
		}
	case end:
		if s.holder != op.token {
			return nil
		}
		s.holder = ""
	case read, write:
		return r.access(s, op)
	case refused:
		if op.fence >= s.highest || op.highest != s.highest {
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
	case total:
		if op.count != s.count {
			return nil
		}
	}
	return []state{s}
}

// access reads or writes. One that nobody has seen may not have been; or it died in between, when
// the resource had taken its token.
func (r rules) access(s state, op *step) []state {
	possible := !(r.holds && s.holder != op.token) && !(r.tokens && op.fence < s.highest)
	after := s
	if r.tokens {
		after.highest, after.number = op.fence, s.number+1
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
	wrong := r.counts && op.kind == read && op.count != s.count
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
	if r.holds && s.holder == "" {
		words = append(words, "free")
	} else if r.holds {
		words = append(words, "held by "+short(s.holder))
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
	var fences []int64
	for _, l := range h.leases {
		if l.resource == resource {
			fences = append(fences, l.fence)
		}
	}
	sort.Slice(fences, func(i, j int) bool { return fences[i] < fences[j] })
	for _, l := range h.leases {
		if l.resource != resource {
			continue
		}
		begun := &step{kind: acquire, client: l.client, token: l.token, fence: l.fence}
		if lower := sort.Search(len(fences), func(i int) bool { return fences[i] >= l.fence }); lower > 0 {
			begun.after = fences[lower-1]
		}
		add(begun, l.invoked, l.completed)
		add(&step{kind: end, client: l.client, token: l.token, how: l.how}, l.relied, l.over)
	}
	for _, accesses := range [][]access{h.accesses, h.increments} {
		for _, a := range accesses {
			if a.lease.resource == resource {
				add(&step{kind: a.kind, client: a.lease.client, token: a.lease.token, fence: a.fence, count: a.count,
					number: a.number, highest: a.highest, unseen: a.unseen}, a.call, a.end)
			}
		}
	}
	if h.counters != nil {
		add(&step{kind: total, client: len(h.clients), count: h.counters[resource-1]}, h.finish, h.finish)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Call < list[j].Call })
	return list
}
