// Asks Porcupine for its verdict, and for a picture of what is wrong.
package main

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// A verdict is about one object of one resource.
type verdict struct {
	object     object
	resource   int
	operations []porcupine.Operation
	result     porcupine.CheckResult
	info       porcupine.LinearizationInfo // where it is illegal
}

var fresh = []interface{}{state{}}

// judge asks about the whole, and where that is not well, about each of its parts, until the
// deadline; what is not known by then is unknown.
func (h *history) judge(deadline time.Time) []verdict {
	var verdicts []verdict
	for resource := 1; resource <= len(h.resources); resource++ {
		for _, o := range h.objects() {
			v := verdict{object: o, resource: resource, operations: h.operations(o, resource)}
			result, info := check(o.model(fresh), v.operations, deadline)
			if v.result = result; result == porcupine.Illegal {
				v.info = info
			}
			verdicts = append(verdicts, v)
			if o.name == "whole" && v.result == porcupine.Ok {
				break
			}
		}
	}
	return verdicts
}

func check(model porcupine.Model, operations []porcupine.Operation,
	deadline time.Time) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	if left := time.Until(deadline); left > 0 { // a timeout of 0 would be none
		return porcupine.CheckOperationsVerbose(model, operations, left)
	}
	return porcupine.Unknown, porcupine.LinearizationInfo{}
}

// How many operations before the one without a place are drawn, at first.
const shown = 6

// draw makes a page of what is wrong: the operations around the first that has no place in any
// order. Those of one order before them are left out, and the page begins in the state after them;
// more are drawn until what is drawn is wrong by itself. Without time for that, there is no page.
func (v verdict) draw(h *history, path string, deadline time.Time) error {
	model := v.object.model(fresh)
	var order []int
	for _, found := range v.info.PartialLinearizations()[0] {
		if len(found) > len(order) {
			order = found
		}
	}
	for keep := shown; ; keep *= 4 {
		begin, near := v.around(model, order, keep)
		part := v.object.model(begin)
		result, info := check(part, near, deadline)
		if result == porcupine.Illegal {
			info.AddAnnotations(v.notes(h, near, part.DescribeState(begin)))
			return porcupine.VisualizePath(part, info, path)
		}
		if keep >= len(order) {
			return nil
		}
	}
}

// around returns so many operations from the end of the order, and those without a place in it, up
// to the end of the first of these; and the states in which they begin, after the rest of the
// order. If the order is no longer, it returns all operations.
func (v verdict) around(model porcupine.Model, order []int, keep int) ([]interface{}, []porcupine.Operation) {
	states := model.Init()
	gone, placed := map[int]bool{}, map[int]bool{}
	for n, i := range order {
		if placed[i] = true; n < len(order)-keep {
			_, states = model.Step(states, v.operations[i].Input, v.operations[i].Output)
			gone[i] = true
		}
	}
	stuck := int64(math.MaxInt64)
	for i, o := range v.operations {
		if !placed[i] && len(gone) > 0 {
			stuck = least(stuck, o.Return)
		}
	}
	var near []porcupine.Operation
	rows := map[int]int{} // a row a client, and none for those who do nothing here
	for i, o := range v.operations {
		if !gone[i] && o.Call <= stuck {
			if _, has := rows[o.ClientId]; !has {
				rows[o.ClientId] = len(rows)
			}
			o.ClientId = rows[o.ClientId]
			near = append(near, o)
		}
	}
	return states.([]interface{}), near
}

// notes are what is drawn besides the operations: the state at the begin, until when leases were
// relied on, and the faults.
func (v verdict) notes(h *history, near []porcupine.Operation, begin string) []porcupine.Annotation {
	from, to := near[0].Call, near[0].Return
	for _, o := range near {
		from, to = least(from, o.Call), most(to, o.Return)
	}
	list := []porcupine.Annotation{{Tag: "before", Start: from, End: from, Description: begin}}
	add := func(tag, text string, since, until int64) {
		if since -= h.start; since <= to && until-h.start >= from {
			list = append(list, porcupine.Annotation{Tag: tag, Start: most(since, from), End: least(until-h.start, to),
				Description: text, BackgroundColor: "#fde9c8"})
		}
	}
	for _, l := range h.leases {
		if l.claimed && l.resource == v.resource {
			relies := "relies"
			if l.shared {
				relies = "reads"
			}
			add(fmt.Sprintf("client %d %s", l.client, relies), short(l.token), l.completed, l.relied)
		}
	}
	for _, f := range h.faults {
		until := f.to
		if until == never {
			until = f.from
		}
		add("faults", f.text, f.from, until)
	}
	return list
}

func least(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}
