// Package heapfile reads files of other heap profilers: those of pprof, the text of
// gperftools, Go and jemalloc, and the kernel's page_owner, which has no viewer. It returns
// each as a profile of pprof.
package heapfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/internal/decompress"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// format is a kind of file.
type format struct {
	name string
	// begins reports whether a file whose decompressed data begins with head may have the
	// format.
	begins func(head []byte) bool
	read   func(io.Reader) (*profile.Profile, error)
	// certain reports whether head proves the format. If not, a file that cannot be read
	// may be a log.
	certain func(head []byte) bool
}

func always([]byte) bool { return true }

// heaptrackFile matches the start of a heaptrack file: its version, and the program.
var heaptrackFile = regexp.MustCompile(`^v [0-9a-f]+ [0-9a-f]+\nX `)

// readHeaptrack reads none: heaptrack has viewers of its own.
func readHeaptrack(io.Reader) (*profile.Profile, error) {
	return nil, errors.New("heaptrack_gui shows it; btrecord records what btheap reads")
}

var formats = []format{
	{"profile of pprof", isPprof, readPprof, isCertainlyPprof},
	{"heap profile of gperftools, Go or jemalloc", isHeapText, readHeapText, always},
	{"a file of heaptrack", heaptrackFile.Match, readHeaptrack, always},
	{"page_owner", isPageOwner, readPageOwner, always},
}

// Limits of a file, decompressed.
const (
	maxFile  = 4 << 30   // bytes, of a format that is read line by line
	maxWhole = 128 << 20 // bytes, of a format that is read at once
	maxLine  = 1 << 20   // bytes
	headSize = 512
)

// errTooLarge is the error for a file that exceeds a limit.
var errTooLarge = errors.New("too large")

// readLines calls line with each line of a file. An error names the line.
func readLines(r io.Reader, line func(text []byte) error) error {
	limited := &io.LimitedReader{R: r, N: maxFile}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if err := line(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	err := lines.Err()
	if limited.N == 0 {
		err = errTooLarge
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return nil
}

// Read reads a file. It returns nil if the file has none of the formats, or is not a regular
// file. Names in the profile are safe to print.
func Read(path string) (*profile.Profile, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil // reading it as a log returns the error
	}
	defer f.Close()
	var magic [6]byte
	n, _ := f.ReadAt(magic[:], 0)
	in := decompress.NewReader(decompress.FormatOf(magic[:n]), f)
	defer in.Close()
	buffered := bufio.NewReaderSize(in, 64<<10)
	peeked, _ := buffered.Peek(headSize)
	head := bytes.Clone(peeked)
	for i := range formats {
		k := &formats[i]
		if !k.begins(head) {
			continue
		}
		p, err := k.read(buffered)
		switch {
		case err != nil && k.certain(head):
			return nil, fmt.Errorf("%s: %s: %w", path, k.name, decompress.Reason(err))
		case err != nil:
			return nil, nil
		}
		clean(p)
		return p, nil
	}
	return nil, nil
}

// clean makes the names of a profile, which are untrusted, safe to print.
func clean(p *profile.Profile) {
	for _, f := range p.Function {
		f.Name, f.SystemName, f.Filename = printable.Text(f.Name), printable.Text(f.SystemName), printable.Text(f.Filename)
	}
	for _, m := range p.Mapping {
		m.File, m.BuildID = printable.Text(m.File), printable.Text(m.BuildID)
	}
}
