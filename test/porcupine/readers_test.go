// Histories made by hand of those who read beside those who write.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func (s *script) acquireShared(client int, token string, fence, from, to int) {
	s.op++
	s.add(from, `"event":"invoke","client":%d,"op":%d,"what":"acquire","resource":1,"mode":"shared"`, client, s.op)
	s.add(to, `"event":"complete","client":%d,"op":%d,"result":"OK","token":"%s","fence":%d`, client, s.op, token, fence)
}

func (s *script) holdShared(client int, token string, fence, from, to int) {
	s.acquireShared(client, token, fence, from, from+1)
	s.claim(client, token, from+1, from+100)
	s.release(client, token, to, to+1, "OK")
}

// saw reads the count. A lease's claim is known to end at until.
func (s *script) saw(at, client int, token string, count, until, fence, number int) {
	s.of(at, client, token, "read", fmt.Sprintf(`,"read":%d,"until":%d,"fence":%d,"number":%d`, count, until*1000, fence,
		number))
}

// reads is a lease under which two counts were read.
func (s *script) reads(client int, token string, from, first, to, last int) {
	s.acquireShared(client, token, 0, from, from+1)
	s.claim(client, token, from+1, from+100)
	s.saw(from+2, client, token, first, from+100, 0, 0)
	s.saw(to-1, client, token, last, from+100, 0, 0)
	s.release(client, token, to, to+1, "OK")
}

// counts is a lease under which the successor of the count was written.
func (s *script) counts(client int, token string, from, count, to int) {
	s.acquire(client, token, 0, from, from+1)
	s.claim(client, token, from+1, from+100)
	s.read(from+2, client, token, count, 0, 0)
	s.write(to-1, client, token, count, 0)
	s.release(client, token, to, to+1, "OK")
}

var readersHistories = []struct {
	name    string
	fencing bool
	wrong   string
	write   func(s *script)
}{
	{"readers have it together", false, "", func(s *script) {
		s.hold(1, "w", 0, 5, 9)
		s.holdShared(2, "a", 0, 10, 20)
		s.holdShared(3, "b", 0, 12, 30)
		s.holdShared(4, "c", 0, 14, 16)
		s.hold(1, "x", 0, 31, 40)
	}},
	{"a writer beside a reader", false, "whole lock", func(s *script) {
		s.holdShared(2, "a", 0, 10, 20)
		s.holdShared(3, "b", 0, 12, 14)
		s.hold(1, "x", 0, 15, 40)
	}},
	{"a reader beside a writer", false, "whole lock", func(s *script) {
		s.hold(1, "x", 0, 10, 30)
		s.holdShared(2, "a", 0, 20, 40)
	}},
	{"a writer waits for the last reader", false, "", func(s *script) {
		s.holdShared(2, "a", 0, 10, 20)
		s.holdShared(3, "b", 0, 12, 30)
		s.acquire(1, "x", 0, 11, 31)
		s.claim(1, "x", 31, 110)
		s.release(1, "x", 40, 41, "OK")
	}},
	{"a reader whose process died", false, "", func(s *script) {
		s.acquireShared(2, "a", 0, 10, 11)
		s.claim(2, "a", 11, 100)
		s.exit(20, 2)
		s.hold(1, "x", 0, 21, 30)
	}},
	{"a reader's lease was over when its owner looked", false, "", func(s *script) {
		s.acquireShared(2, "a", 0, 10, 150)
		s.hold(1, "x", 0, 100, 130)
	}},
	{"a reader looked too late, but a writer had it all the time", false, "whole lock", func(s *script) {
		s.acquire(1, "x", 0, 5, 6)
		s.claim(1, "x", 6, 90)
		s.acquireShared(2, "a", 0, 10, 80)
		s.release(1, "x", 85, 86, "OK")
	}},
	{"what is read stays", false, "", func(s *script) {
		s.counts(1, "x", 10, 0, 20)
		s.reads(2, "a", 21, 1, 30, 1)
		s.reads(3, "b", 22, 1, 40, 1)
		s.counts(1, "y", 41, 1, 50)
		s.finish(90, 2)
	}},
	{"what is read changes", false, "whole lock counter", func(s *script) {
		s.reads(2, "a", 10, 0, 40, 1)
		s.counts(1, "x", 15, 0, 20)
		s.finish(90, 1)
	}},
	{"an old count is read", false, "whole counter", func(s *script) {
		s.counts(1, "x", 10, 0, 20)
		s.reads(2, "a", 21, 0, 30, 0)
		s.finish(90, 1)
	}},
	{"what is read after the lease counts for nothing", false, "", func(s *script) {
		s.acquireShared(2, "a", 0, 10, 11)
		s.claim(2, "a", 11, 50)
		s.saw(12, 2, "a", 0, 50, 0, 0)
		s.counts(1, "x", 51, 0, 60)
		s.saw(61, 2, "a", 1, 50, 0, 0)
		s.finish(90, 1)
	}},
	{"readers have one token", true, "", func(s *script) {
		s.hold(1, "w", 7, 5, 9)
		s.holdShared(2, "a", 999, 10, 20)
		s.holdShared(3, "b", 999, 12, 30)
		s.holdShared(4, "c", 99, 14, 16)
		s.hold(1, "x", 1000, 31, 40)
	}},
	{"a reader's token is that of a writer before", true, "whole tokens lock+tokens", func(s *script) {
		s.hold(1, "w", 999, 5, 9)
		s.holdShared(2, "a", 999, 10, 20)
	}},
	{"a reader's token is that of a writer behind", true, "whole tokens lock+tokens", func(s *script) {
		s.holdShared(2, "a", 999, 10, 20)
		s.hold(1, "w", 999, 21, 30)
	}},
	{"a reader's token is below that of a writer before", true, "whole tokens lock+tokens", func(s *script) {
		s.hold(1, "w", 1000, 5, 9)
		s.holdShared(2, "a", 999, 10, 20)
	}},
	{"a writer's token is below that of a reader before", true, "whole tokens lock+tokens", func(s *script) {
		s.holdShared(2, "a", 1999, 10, 20)
		s.holdShared(3, "b", 999, 21, 30)
		s.hold(1, "w", 1001, 31, 40)
	}},
	{"a writer that waited has a token below that of a reader", true, "whole lock+tokens", func(s *script) {
		s.holdShared(2, "a", 999, 10, 20)
		s.acquire(1, "w", 7, 5, 21)
		s.claim(1, "w", 21, 110)
		s.release(1, "w", 30, 31, "OK")
	}},
	{"readers come to the resource in any order", true, "", func(s *script) {
		s.reader(2, "a", 29, 20, 1)
		s.reader(3, "b", 19, 22, 2)
	}},
	{"a reader is refused by another one's token", true, "whole resource", func(s *script) {
		s.reader(2, "a", 29, 20, 1)
		s.acquireShared(3, "b", 19, 22, 23)
		s.claim(3, "b", 23, 120)
		s.refused(24, 3, "b", "read", 19, 29)
	}},
	{"a writer comes to the resource after a reader", true, "", func(s *script) {
		s.acquire(1, "x", 9, 10, 11)
		s.claim(1, "x", 11, 15)
		s.reader(2, "a", 19, 20, 1)
		s.refused(23, 1, "x", "read", 9, 19)
	}},
	{"a writer comes after a reader, and is served", true, "whole resource", func(s *script) {
		s.acquire(1, "x", 9, 10, 11)
		s.claim(1, "x", 11, 15)
		s.reader(2, "a", 19, 20, 1)
		s.read(23, 1, "x", 0, 9, 2)
	}},
	{"a reader comes after its lease, and is served", true, "", func(s *script) {
		s.reader(2, "a", 19, 20, 1)
		s.reader(3, "b", 29, 22, 2)
		s.saw(121, 2, "a", 0, 120, 19, 3)
	}},
	{"a reader comes after a writer, and is served", true, "whole resource", func(s *script) {
		s.acquireShared(3, "b", 19, 20, 21)
		s.claim(3, "b", 21, 24)
		s.acquire(1, "x", 20, 26, 27)
		s.claim(1, "x", 27, 120)
		s.read(28, 1, "x", 0, 20, 1)
		s.saw(29, 3, "b", 0, 24, 19, 2)
	}},
	{"a reader died, and may have read", true, "", func(s *script) { diesAgain(s, 3) }},
	{"a reader died, and may have read nothing more", true, "", func(s *script) { diesAgain(s, 2) }},
	{"a reader died, and cannot have read twice more", true, "whole resource", func(s *script) { diesAgain(s, 4) }},
}

// reader is a lease that has read 0, with this token and number.
func (s *script) reader(client int, token string, fence, from, number int) {
	s.acquireShared(client, token, fence, from, from+1)
	s.claim(client, token, from+1, from+100)
	s.saw(from+2, client, token, 0, from+100, fence, number)
}

// Client 1 dies after its first read. The first access that is told after it has such a number.
func diesAgain(s *script, number int) {
	s.acquireShared(1, "a", 999, 10, 11)
	s.claim(1, "a", 11, 50)
	s.saw(12, 1, "a", 0, 50, 999, 1)
	s.exit(20, 1)
	s.acquire(2, "y", 1008, 51, 52)
	s.claim(2, "y", 52, 150)
	s.read(53, 2, "y", 0, 1008, number)
	s.write(54, 2, "y", 0, number+1)
	s.release(2, "y", 60, 61, "OK")
	s.finish(90, 1)
}

func TestReaders(t *testing.T) {
	for _, test := range readersHistories {
		t.Run(test.name, func(t *testing.T) {
			s := begin(test.fencing)
			test.write(s)
			if wrong := s.judge(t); wrong != test.wrong {
				t.Errorf("%q is illegal, not %q", wrong, test.wrong)
			}
		})
	}
}

// A crowd of readers, whose ends come in any order, and one who writes beside them at the end.
func TestManyReadersAreJudgedSoon(t *testing.T) {
	s := begin(false)
	for i := 0; i < 60; i++ {
		s.holdShared(i+1, fmt.Sprintf("r%02d", i), 0, 10+i, 200+(i*37)%60)
	}
	s.hold(99, "w", 0, 150, 160)
	begun := time.Now()
	if wrong := s.judge(t); wrong != "whole lock" {
		t.Errorf("%q is illegal", wrong)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestReadsThatFitNowhere(t *testing.T) {
	s := begin(false)
	s.acquire(1, "x", 0, 10, 11)
	s.claim(1, "x", 12, 100)
	s.saw(13, 1, "x", 0, 100, 0, 0)
	_, err := readHistory(strings.NewReader(strings.Join(s.lines, "\n") + "\n"))
	if err == nil || !strings.Contains(err.Error(), "is not shared") {
		t.Errorf("%v", err)
	}
}

// The page tells who read.
func TestDrawingReaders(t *testing.T) {
	s := begin(false)
	s.holdShared(2, "a", 0, 10, 30)
	s.holdShared(3, "b", 0, 10, 30)
	s.hold(1, "x", 0, 20, 40)
	directory := t.TempDir()
	history := filepath.Join(directory, "history.jsonl")
	if err := os.WriteFile(history, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(history, directory, time.Minute); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(directory, "porcupine-lock.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"acquire to read → a", "client 2 reads", "client 1 relies", "read by a, b"} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page is without %q", part)
		}
	}
}
