// Histories made by hand: those that are as they must be, and one for each way in which they are
// not.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A script writes the events of a history. Times are in ms; a lease is named by its token.
type script struct {
	lines []string
	op    int
	start string
}

func (s *script) add(ms int, format string, values ...interface{}) {
	s.lines = append(s.lines, fmt.Sprintf(`{"t":%d,`, ms*1000)+fmt.Sprintf(format, values...)+"}")
}

func begin(fencing bool) *script {
	s := &script{}
	s.add(0, `"event":"start","ttl_ms":100,"fencing":%v,"resources":["a","b"],"unknown":[1]`, fencing)
	s.add(0, `"event":"keys","resource":1,"nodes":[null]`)
	return s
}

func (s *script) acquire(client int, token string, fence, from, to int) {
	s.op++
	s.add(from, `"event":"invoke","client":%d,"op":%d,"what":"acquire","resource":1`, client, s.op)
	s.add(to, `"event":"complete","client":%d,"op":%d,"result":"OK","token":"%s","fence":%d`, client, s.op, token, fence)
}

func (s *script) of(ms, client int, token, event, rest string) {
	s.add(ms, `"event":"%s","client":%d,"resource":1,"token":"%s"%s`, event, client, token, rest)
}

func (s *script) claim(client int, token string, at, until int) {
	s.of(at, client, token, "claim", fmt.Sprintf(`,"until":%d`, until*1000))
}

// release ends the claim first. A result of "" is that of a release without an answer.
func (s *script) release(client int, token string, from, to int, result string) {
	s.of(from, client, token, "end", `,"how":"release"`)
	s.op++
	s.add(from, `"event":"invoke","client":%d,"op":%d,"what":"release","resource":1`, client, s.op)
	if result != "" {
		s.add(to, `"event":"complete","client":%d,"op":%d,"result":"%s","token":""`, client, s.op, result)
	}
}

func (s *script) hold(client int, token string, fence, from, to int) {
	s.acquire(client, token, fence, from, from+1)
	s.claim(client, token, from+1, from+100)
	s.release(client, token, to, to+1, "OK")
}

func (s *script) read(at, client int, token string, count, fence, number int) {
	s.of(at, client, token, "intent", fmt.Sprintf(`,"read":%d,"fence":%d,"number":%d`, count, fence, number))
}

func (s *script) write(at, client int, token string, count, number int) {
	s.of(at, client, token, "done", fmt.Sprintf(`,"read":%d,"number":%d,"until":0`, count, number))
}

func (s *script) refused(at, client int, token, what string, fence, highest int) {
	s.of(at, client, token, "refused", fmt.Sprintf(`,"what":"%s","read":0,"fence":%d,"highest":%d`, what, fence, highest))
}

func (s *script) exit(at, client int) {
	s.add(at, `"event":"exit","client":%d,"status":-1`, client)
}

func (s *script) finish(at, count int) {
	s.add(at, `"event":"finish","counters":[%d,0]`, count)
}

func (s *script) history(t *testing.T) *history {
	t.Helper()
	h, err := readHistory(strings.NewReader(strings.Join(s.lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// judge returns what is not ok of the first resource; the second has no operation but its total.
func (s *script) judge(t *testing.T) string {
	t.Helper()
	var wrong []string
	for _, v := range s.history(t).judge(time.Now().Add(time.Minute)) {
		switch {
		case v.result == porcupine.Unknown || v.resource == 2 && v.result != porcupine.Ok:
			t.Errorf("%s of %d is %s", v.object.name, v.resource, v.result)
		case v.result == porcupine.Illegal:
			wrong = append(wrong, v.object.name)
		}
	}
	return strings.Join(wrong, " ")
}

// What is illegal of each.
var histories = []struct {
	name    string
	fencing bool
	wrong   string
	write   func(s *script)
}{
	{"one after the other", true, "", func(s *script) {
		s.hold(1, "x", 7, 10, 20)
		s.hold(2, "y", 8, 21, 30)
	}},
	{"two at once", false, "whole lock", func(s *script) {
		s.hold(1, "x", 0, 10, 20)
		s.hold(2, "y", 0, 15, 30)
	}},
	{"two at once, under fencing tokens", true, "whole lock lock+tokens", func(s *script) {
		s.hold(1, "x", 7, 10, 20)
		s.hold(2, "y", 8, 15, 30)
	}},
	{"the answer comes while another relies on it", false, "whole lock", func(s *script) {
		s.hold(1, "x", 0, 10, 20)
		s.acquire(2, "y", 0, 5, 19)
		s.claim(2, "y", 21, 110)
		s.release(2, "y", 30, 31, "OK")
	}},
	{"waited meanwhile", false, "", func(s *script) {
		s.hold(1, "x", 0, 10, 20)
		s.acquire(2, "y", 0, 5, 21)
		s.claim(2, "y", 21, 110)
		s.release(2, "y", 30, 31, "OK")
	}},
	{"a release takes effect before its answer", false, "", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.release(1, "x", 20, 40, "OK")
		s.hold(2, "y", 0, 21, 30)
	}},
	{"a release without an answer", false, "", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.release(1, "x", 20, 0, "")
		s.hold(2, "y", 0, 21, 30)
	}},
	{"it ran out", false, "", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.hold(2, "y", 0, 100, 130)
		s.of(140, 1, "x", "end", `,"how":"lost"`)
	}},
	{"taken right before it ran out", false, "whole lock", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.hold(2, "y", 0, 98, 130)
		s.of(140, 1, "x", "end", `,"how":"lost"`)
	}},
	{"a renewal counts", false, "whole lock", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.claim(1, "x", 60, 150)
		s.hold(2, "y", 0, 110, 130)
		s.of(140, 1, "x", "end", `,"how":"lost"`)
	}},
	{"lost before its end, and seen in time", false, "", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.of(20, 1, "x", "end", `,"how":"lost"`)
		s.hold(2, "y", 0, 20, 30)
	}},
	{"lost before its end, and seen late", false, "whole lock", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.hold(2, "y", 0, 18, 30)
		s.of(20, 1, "x", "end", `,"how":"lost"`)
	}},
	{"its owner died", false, "", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.exit(20, 1)
		s.hold(2, "y", 0, 20, 30)
	}},
	{"taken before its owner died", false, "whole lock", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.hold(2, "y", 0, 15, 30)
		s.exit(20, 1)
	}},
	{"over when its owner looked", false, "", func(s *script) {
		s.acquire(1, "x", 0, 10, 150)
		s.hold(2, "y", 0, 100, 130)
	}},
	{"over when its owner looked, but another had it all the time", false, "whole lock", func(s *script) {
		s.acquire(2, "y", 0, 5, 6)
		s.claim(2, "y", 6, 90)
		s.acquire(1, "x", 0, 10, 80)
		s.release(2, "y", 85, 86, "OK")
	}},
	{"an acquire without an answer", false, "", func(s *script) {
		s.add(10, `"event":"invoke","client":1,"op":99,"what":"acquire","resource":1`)
		s.hold(2, "y", 0, 21, 30)
		s.exit(40, 1)
	}},
	{"one that failed", true, "", func(s *script) {
		s.add(10, `"event":"invoke","client":1,"op":99,"what":"acquire","resource":1`)
		s.add(50, `"event":"complete","client":1,"op":99,"result":"CONTENDED","token":"","fence":0`)
		s.hold(2, "y", 1, 21, 30)
	}},
	{"a lower token", true, "whole tokens lock+tokens", func(s *script) {
		s.hold(1, "x", 8, 10, 20)
		s.hold(2, "y", 7, 21, 30)
	}},
	{"one token twice", true, "whole tokens lock+tokens", func(s *script) {
		s.hold(1, "x", 8, 10, 20)
		s.hold(2, "y", 8, 21, 30)
	}},
	{"no token", true, "whole tokens lock+tokens", func(s *script) {
		s.hold(1, "x", 0, 10, 20)
	}},
	{"a lower token of one that waited: only the order of the leases tells", true, "whole lock+tokens",
		func(s *script) {
			s.hold(1, "x", 8, 10, 20)
			s.acquire(2, "y", 7, 5, 21)
			s.claim(2, "y", 21, 110)
			s.release(2, "y", 30, 31, "OK")
		}},
	{"counted", false, "", func(s *script) {
		for i, token := range []string{"x", "y", "z"} {
			s.acquire(i+1, token, 0, 10*i+10, 10*i+11)
			s.claim(i+1, token, 10*i+11, 100)
			s.read(10*i+12, i+1, token, i, 0, 0)
			s.write(10*i+13, i+1, token, i, 0)
			s.release(i+1, token, 10*i+14, 10*i+15, "OK")
		}
		s.finish(90, 3)
	}},
	{"a wrong total", false, "whole counter", func(s *script) {
		s.hold(1, "x", 0, 10, 20)
		s.finish(90, 1)
	}},
	{"both wrote the same successor", false, "whole lock counter", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.acquire(2, "y", 0, 10, 11)
		s.claim(1, "x", 11, 100)
		s.claim(2, "y", 11, 100)
		s.read(12, 1, "x", 0, 0, 0)
		s.read(12, 2, "y", 0, 0, 0)
		s.write(13, 1, "x", 0, 0)
		s.write(14, 2, "y", 0, 0)
		s.finish(90, 1)
	}},
	{"one wrote after its lease had run out", false, "whole counter", func(s *script) {
		s.acquire(1, "x", 0, 10, 11)
		s.claim(1, "x", 11, 50)
		s.read(12, 1, "x", 0, 0, 0)
		s.acquire(2, "y", 0, 51, 52)
		s.claim(2, "y", 52, 150)
		s.read(53, 2, "y", 0, 0, 0)
		s.write(54, 2, "y", 0, 0)
		s.write(60, 1, "x", 0, 0)
	}},
	{"a process died between read and write, and had written", false, "", func(s *script) { dies(s, 1) }},
	{"a process died between read and write, and had not", false, "", func(s *script) { dies(s, 0) }},
	{"a process died, and cannot have written so much", false, "whole counter", func(s *script) { dies(s, 2) }},
	{"the resource refused an old token", true, "", func(s *script) { stale(s, 8, false) }},
	{"the resource refused by a token that nobody showed", true, "whole resource",
		func(s *script) { stale(s, 9, false) }},
	{"the resource granted an old token", true, "whole resource", func(s *script) { stale(s, 0, true) }},
	{"an access without a number", true, "whole resource", func(s *script) {
		s.acquire(1, "x", 7, 10, 11)
		s.claim(1, "x", 11, 100)
		s.read(12, 1, "x", 0, 7, 2)
		s.release(1, "x", 20, 21, "OK")
	}},
	{"a process died before it told of its read", true, "", func(s *script) { diesReading(s, 2) }},
	{"a process died before it read", true, "", func(s *script) { diesReading(s, 1) }},
	{"a process died, and cannot have read twice", true, "whole resource", func(s *script) { diesReading(s, 3) }},
}

func TestHistories(t *testing.T) {
	for _, test := range histories {
		t.Run(test.name, func(t *testing.T) {
			s := begin(test.fencing)
			test.write(s)
			if wrong := s.judge(t); wrong != test.wrong {
				t.Errorf("%q is illegal, not %q", wrong, test.wrong)
			}
		})
	}
}

// Client 1 dies after its read. The counter ends at so much.
func dies(s *script, total int) {
	s.acquire(1, "x", 0, 10, 11)
	s.claim(1, "x", 11, 50)
	s.read(12, 1, "x", 0, 0, 0)
	s.exit(20, 1)
	s.finish(90, total)
}

// Client 1 writes with its old token, after its lease: refused because of a higher one, or granted.
func stale(s *script, highest int, granted bool) {
	s.acquire(1, "x", 7, 10, 11)
	s.claim(1, "x", 11, 50)
	s.read(12, 1, "x", 0, 7, 1)
	s.acquire(2, "y", 8, 51, 52)
	s.claim(2, "y", 52, 150)
	s.read(53, 2, "y", 0, 8, 2)
	if granted {
		s.write(54, 1, "x", 0, 3)
		return
	}
	s.refused(54, 1, "x", "write", 7, highest)
	s.write(55, 2, "y", 0, 3)
	s.finish(90, 1)
}

// Client 1 dies with a lease. The first access that is told has such a number.
func diesReading(s *script, number int) {
	s.acquire(1, "x", 7, 10, 11)
	s.claim(1, "x", 11, 50)
	s.exit(20, 1)
	s.acquire(2, "y", 8, 51, 52)
	s.claim(2, "y", 52, 150)
	s.read(53, 2, "y", 0, 8, number)
	s.write(54, 2, "y", 0, number+1)
	s.release(2, "y", 60, 61, "OK")
	s.finish(90, 1)
}

func TestTimes(t *testing.T) {
	s := begin(true)
	s.acquire(1, "x", 7, 10, 11)
	s.claim(1, "x", 12, 100)
	s.read(20, 1, "x", 0, 7, 1)
	s.claim(1, "x", 30, 130)
	s.write(40, 1, "x", 0, 2)
	s.release(1, "x", 50, 60, "LOST")
	h := s.history(t)
	var told []string
	for _, o := range h.objects() {
		if o.name == "whole" || o.name == "counter" {
			for _, one := range h.operations(o, 1) {
				told = append(told, fmt.Sprintf("%d-%d %v", one.Call/1000, one.Return/1000, one.Input))
			}
		}
	}
	want := []string{"10-11 client 1: acquire → x with token 7", "12-20 client 1: read with token 7 → 0",
		"30-40 client 1: write 1 with token 7", "50-130 client 1: release x", "12-40 client 1: increment 0"}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("the operations are\n%s\nnot\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

func TestNoVerdictInTimeIsUnknown(t *testing.T) {
	s := begin(false)
	s.hold(1, "x", 0, 10, 20)
	for _, v := range s.history(t).judge(time.Now()) {
		if v.result != porcupine.Unknown {
			t.Errorf("%s is %s", v.object.name, v.result)
		}
	}
}

func TestHistoriesThatFitNowhere(t *testing.T) {
	for text, write := range map[string]func(s *script){
		"there is no `start`": func(s *script) { s.lines = s.lines[1:] },
		"there is no resource 3": func(s *script) {
			s.add(1, `"event":"invoke","client":1,"op":1,"what":"acquire","resource":3`)
		},
		"was not invoked right before": func(s *script) { s.add(1, `"event":"complete","client":1,"op":1,"result":"OK"`) },
		"is not of the last acquire":   func(s *script) { s.claim(1, "x", 1, 2) },
		"there is no `intent`": func(s *script) {
			s.acquire(1, "x", 0, 10, 11)
			s.claim(1, "x", 12, 100)
			s.write(13, 1, "x", 0, 1)
		},
		"1 counters of 2 resources": func(s *script) { s.add(1, `"event":"finish","counters":[1]`) },
		"line 3":                    func(s *script) { s.lines = append(s.lines, "{") },
	} {
		s := begin(false)
		write(s)
		_, err := readHistory(strings.NewReader(strings.Join(s.lines, "\n") + "\n"))
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v is no error with %q", err, text)
		}
	}
	// A process was killed while it wrote.
	s := begin(false)
	if _, err := readHistory(strings.NewReader(strings.Join(s.lines, "\n") + "\n{\"t\":1,\"ev")); err != nil {
		t.Error(err)
	}
}

// The page has what is wrong, and not what was long before it.
func TestDrawing(t *testing.T) {
	s := begin(false)
	for i := 0; i < 40; i++ {
		s.hold(1, fmt.Sprintf("old%d", i), 0, 10*i, 10*i+5)
	}
	s.hold(2, "x", 0, 1000, 1020)
	s.hold(3, "y", 0, 1010, 1030)
	s.hold(1, "then99", 0, 1100, 1110)
	s.add(1005, `"event":"fault","id":1,"text":"something happened"`)
	directory := t.TempDir()
	history := filepath.Join(directory, "history.jsonl")
	if err := os.WriteFile(history, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(history, directory, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"whole", "lock"} {
		page, err := os.ReadFile(filepath.Join(directory, "porcupine-"+name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"acquire → x", "acquire → y", "something happened", "old39", "{free"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("the page of the %s is without %q", name, part)
			}
		}
		for _, part := range []string{"old3 ", "then99"} {
			if strings.Contains(string(page), part) {
				t.Errorf("the page of the %s has %q", name, part)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(directory, "porcupine-counter.html")); err == nil {
		t.Error("there is a page of the counter, which is ok")
	}
}
