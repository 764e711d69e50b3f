package fuzz

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/corpus"
)

// seed adds seeds to a target, and fails if there are none: such a target would pass
// without any input.
func seed(f *testing.F, seeds [][]byte) {
	f.Helper()
	if len(seeds) == 0 {
		f.Fatal("no seeds: expected some from corpus/ and the vectors")
	}
	for _, s := range seeds {
		f.Add(s)
	}
}

// everyNth returns every nth seed. Fuzzing runs all seeds before it begins, so there should
// not be too many.
func everyNth(n int, all [][]byte) [][]byte {
	var some [][]byte
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// vectorFiles returns the contents of the handwritten and the recorded .btv files.
func vectorFiles(t testing.TB) [][]byte {
	t.Helper()
	var files [][]byte
	for _, dir := range []string{"../conformance/vectors", "../ref-c/vectors"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.btv"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no .btv files (%v)", dir, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, b)
		}
	}
	return files
}

// vectorBlobs returns the bytes in the hex: lines of the vectors.
func vectorBlobs(t testing.TB) [][]byte {
	t.Helper()
	seen := map[string]bool{}
	var blobs [][]byte
	for _, text := range vectorFiles(t) {
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			digits, ok := strings.CutPrefix(lines.Text(), "hex:")
			if !ok {
				continue
			}
			digits, _, _ = strings.Cut(digits, "#")
			b, err := hex.DecodeString(strings.TrimSpace(digits))
			if err == nil && !seen[string(b)] {
				seen[string(b)] = true
				blobs = append(blobs, b)
			}
		}
	}
	if len(blobs) == 0 {
		t.Fatal("no hex: line in any vector")
	}
	return blobs
}

// blobSeeds returns blobs: named blobs, blobs of captures and of vectors, among them those to reject.
func blobSeeds(t testing.TB) [][]byte {
	var blobs [][]byte
	for _, b := range corpus.Blobs() {
		blobs = append(blobs, b.Blob)
	}
	for _, name := range corpus.Captures() {
		lines := bytes.Fields(corpus.Capture(name))
		for i := 0; i < len(lines); i += 100 {
			blob, err := codec.Decoder{}.ParseLine(nil, lines[i])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			blobs = append(blobs, blob)
		}
	}
	return append(blobs, everyNth(7, vectorBlobs(t))...)
}

// lineSeeds returns ~m# and ~b# lines.
func lineSeeds(t testing.TB) [][]byte {
	var lines [][]byte
	for _, b := range corpus.Blobs() {
		lines = append(lines, codec.AppendLine(nil, b.Blob))
		var s codec.Stack
		if (codec.Decoder{}).Decode(&s, nil, b.Blob) == nil {
			lines = append(lines, codec.AppendDecoded(nil, &s))
		}
	}
	for _, name := range corpus.Captures() {
		lines = append(lines, everyNth(200, bytes.Fields(corpus.Capture(name)))...)
	}
	return append(lines, vectorTexts(t, "mline", "bline")...)
}

// vectorTexts returns the lines of the vectors of operations.
func vectorTexts(t testing.TB, ops ...conformance.Op) (texts [][]byte) {
	t.Helper()
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range set.Vectors {
		if v.Text != nil && slices.ContainsFunc(ops, v.Has) {
			texts = append(texts, []byte(*v.Text))
		}
	}
	return texts
}

// logSeeds returns short pieces of logs; a fuzzer is slow with long inputs.
func logSeeds() [][]byte {
	serial := corpus.File("serial.log")
	logs := [][]byte{corpus.File("captures/lws-dump-pie.log")[:200]}
	for i := 0; i < len(serial); i += 500 {
		logs = append(logs, serial[i:min(i+400, len(serial))])
	}
	for _, name := range corpus.Captures() {
		log := corpus.Capture(name)
		logs = append(logs, log[:300], log[1000:1400])
	}
	return logs
}
