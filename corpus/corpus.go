// Package corpus holds inputs for tests and seeds for fuzzing: excerpts of real
// captures, a serial log with all usual defects, and named blobs. README.md lists their
// origins. Only tests import it.
package corpus

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

//go:embed captures serial.log serial.tsv blobs.txt
var files embed.FS

// Captures returns the names of the captures.
func Captures() []string { return []string{"perl", "cc1", "git00", "i386sql"} }

// Capture returns the log of a capture, one ~m# line per allocation.
func Capture(name string) []byte { return unzip("captures/" + name + ".log.gz") }

// File returns the content of a file.
func File(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic("corpus: " + err.Error())
	}
	return b
}

func unzip(name string) []byte {
	z, err := gzip.NewReader(bytes.NewReader(File(name)))
	if err == nil {
		var b []byte
		if b, err = io.ReadAll(z); err == nil {
			return b
		}
	}
	panic(fmt.Sprintf("corpus: %s: %v", name, err))
}

// Allocation is an allocation before encoding.
type Allocation struct {
	Size uint64
	PCs  []uint64
}

// Truth returns the allocations of a capture before encoding, one for each line.
func Truth(name string) []Allocation {
	var all []Allocation
	lines := bufio.NewScanner(bytes.NewReader(unzip("captures/" + name + ".truth.gz")))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		var a Allocation
		for i, w := range words {
			v, err := strconv.ParseUint(w, 0, 64)
			if err != nil {
				panic(fmt.Sprintf("corpus: %s.truth, line %d: %v", name, len(all)+1, err))
			}
			if i == 0 {
				a.Size = v
			} else {
				a.PCs = append(a.PCs, v)
			}
		}
		all = append(all, a)
	}
	return all
}

// Blob is a blob and its name, which describes it.
type Blob struct {
	Name string
	Blob []byte
}

// Blobs returns the named blobs.
func Blobs() []Blob {
	var all []Blob
	for i, line := range strings.Split(strings.TrimSpace(string(File("blobs.txt"))), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		b, err := hex.DecodeString(words[len(words)-1])
		if err != nil || len(words) != 2 {
			panic(fmt.Sprintf("corpus: blobs.txt, line %d: expected a name and hex", i+1))
		}
		all = append(all, Blob{words[0], b})
	}
	return all
}
