// Package corpus holds inputs for tests and seeds for fuzzing: excerpts of real
// captures, a serial log with all usual defects, and named blobs. Only tests import it.
//
// The captures are allocations of programs of Debian 12 under the encoder of lws (gcc 12, main at 1e967537), as
// logs, as truth (size and addresses before encoding, written beside the log), and with the program's memory map at its
// end: perl, x86-64, SNIP 2/1, every 7th allocation; cc1, a C compiler at -O2, x86-64, SNIP 2/1; git00, x86-64, SNIP 0/0,
// every 10th; i386sql, sqlite3, i386, SNIP 2/1, every 3rd; the first 2,000 each. Encoders on x86-64 keep only the low 31
// bits of addresses over 32 bits (BT-LOSS-1). lws-dump-nopie.log and lws-dump-pie.log are the dumps that lws prints of a
// static program.
//
// serial.log is an ESP32's log with time stamps, colours, CRLF, NULs, several records per line, cut records, one written
// into the middle of another, two boots and a crash; serial.tsv lists its records. TestSerialLog writes both with -update.
// blobs.txt has blobs named by what is in them, and under rejected/ by the reason, put together bit by bit from SPEC.md;
// readme/stack-by-clang is from lws built by clang 14.
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
