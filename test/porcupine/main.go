// Judges a history of redlock-chaos with Porcupine, a checker of linearizability. README.md says
// how its events become operations.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

func main() {
	limit := flag.Duration("timeout", time.Minute, "what is not known by then is unknown")
	draw := flag.String("draw", "", "the `directory` for pages of what is wrong")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: redlock-porcupine [OPTION]... HISTORY\n\n"+
			"Prints a line for each object and resource that it judged: OBJECT RESOURCE ok|illegal|unknown\n"+
			"OPERATIONS. The status is 0 whatever the verdict, and 2 if there is none.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *draw, *limit); err != nil {
		fmt.Fprintf(os.Stderr, "redlock-porcupine: %v\n", err)
		os.Exit(2)
	}
}

func run(path, directory string, limit time.Duration) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h, err := readHistory(file)
	if err != nil {
		return fmt.Errorf("%s: %v", path, err)
	}
	page := func(name string) string { return filepath.Join(directory, "porcupine-"+name+".html") }
	for _, o := range objects {
		if directory != "" {
			os.Remove(page(o.name)) // of an earlier verdict
		}
	}
	drawn := map[string]bool{}
	verdicts := h.judge(time.Now().Add(limit))
	deadline := time.Now().Add(limit / 2)
	for _, v := range verdicts {
		fmt.Println(v.object.name, v.resource, strings.ToLower(string(v.result)), len(v.operations))
		if directory == "" || v.result != porcupine.Illegal || drawn[v.object.name] {
			continue
		}
		// One resource of each object is enough to see what happens.
		drawn[v.object.name] = true
		if err := v.draw(h, page(v.object.name), deadline); err != nil {
			return fmt.Errorf("%s: %v", page(v.object.name), err)
		}
	}
	return nil
}
