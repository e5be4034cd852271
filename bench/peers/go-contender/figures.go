// The figures of an answer, and what becomes JSON.

package contender

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// samples are latencies that goroutines store side by side, each in a slot of its own.
type samples []time.Duration

// microseconds are samples as JSON wants them: with one decimal.
type microseconds []time.Duration

func newSamples(wanted int) samples {
	s := make(samples, wanted)
	for i := range s {
		s[i] = -1 // the pages are there before the clock starts
	}
	return s
}

func (s samples) set(slot int64, latency time.Duration) {
	if slot < int64(len(s)) {
		s[slot] = latency
	}
}

func (s samples) first(count int64) microseconds {
	return microseconds(s[:min(count, int64(len(s)))])
}

// MarshalJSON makes an array, also of none.
func (m microseconds) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, latency := range m {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendFloat(text, float64(latency)/float64(time.Microsecond), 'f', 1, 64)
	}
	return append(text, ']'), nil
}

// firstError keeps the first failure's message.
type firstError struct {
	once  sync.Once
	first string
}

func (f *firstError) note(what string, err error) {
	if err != nil {
		f.once.Do(func() { f.first = what + ": " + strings.ReplaceAll(err.Error(), "\n", "; ") })
	}
}

// text must wait until all goroutines have ended.
func (f *firstError) text() string {
	return f.first
}

// Version tells the version of a module as it was linked into this program.
func Version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return strings.TrimPrefix(dependency.Version, "v")
			}
		}
	}
	panic(fmt.Sprintf("%s is not part of this program", module))
}

// GoVersion is for the version line.
func GoVersion() string {
	return "Go " + strings.TrimPrefix(runtime.Version(), "go")
}
