package dump_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

func gzipped(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t *testing.T, data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// A log is the same log however it is stored and whatever its file is called.
func TestInput(t *testing.T) {
	log := []byte(strings.Repeat("x "+readme+"\n", 5000))
	twice := append(gzipped(t, log[:40000]), gzipped(t, log[40000:])...)
	for _, c := range []struct {
		name, compression string
		data, want        []byte
	}{
		{"plain.log", "", log, log},
		{"a gzip.log", "gzip", gzipped(t, log), log},
		{"two gzips after each other", "gzip", twice, log},
		{"a zstd.gz", "zstd", zstded(t, log), log},
		{"empty", "", nil, nil},
		{"one byte", "", []byte{0x1f}, []byte{0x1f}},
		{"three bytes", "", []byte{0x28, 0xb5, 0x2f}, []byte{0x28, 0xb5, 0x2f}},
		{"empty gzip", "gzip", gzipped(t, nil), nil},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := dump.Open(path, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		stdin, err := dump.Open(dump.Stdin, bytes.NewReader(c.data))
		if err != nil {
			t.Errorf("%s from stdin: %v", c.name, err)
			continue
		}
		if file.Size != int64(len(c.data)) || stdin.Size != -1 || file.Name != path || stdin.Name != "<stdin>" {
			t.Errorf("%s: sizes %d and %d, names %q and %q", c.name, file.Size, stdin.Size, file.Name, stdin.Name)
		}
		for _, in := range []*dump.Input{file, stdin} {
			got, err := io.ReadAll(in)
			if err != nil || !bytes.Equal(got, c.want) || in.Compression != c.compression || in.Stored() != int64(len(c.data)) {
				t.Errorf("%s as %s: %d bytes, compression %q, %d stored, error %v",
					c.name, in.Name, len(got), in.Compression, in.Stored(), err)
			}
			if err := in.Close(); err != nil {
				t.Errorf("%s as %s: closing: %v", c.name, in.Name, err)
			}
		}
	}
}

// What was in a damaged log before the damage is read, and then there is an error.
func TestDamagedInput(t *testing.T) {
	log := []byte(strings.Repeat("x "+readme+"\n", 50000))
	for name, data := range map[string][]byte{
		"gzip: ": gzipped(t, log)[:3000],
		"zstd: ": zstded(t, log)[:150],
	} {
		in, err := dump.NewInput(bytes.NewReader(data), "cut.log")
		if err != nil {
			t.Fatal(err)
		}
		sc := dump.NewScanner(in, in.Name)
		for sc.Next() {
		}
		if err := sc.Err(); err == nil || !strings.HasPrefix(err.Error(), "cut.log: "+name) {
			t.Errorf("%s cut: error %v", name, err)
		}
		if name == "gzip: " && sc.Tally().Read < 1000 {
			t.Errorf("%s cut: %d records read before the cut", name, sc.Tally().Read)
		}
	}
	// Wherever it is cut, behind gzip's header of 10 bytes: what can be decompressed is
	// read, and then the error comes.
	whole := gzipped(t, log[:64<<10])
	for n := 10; n < len(whole); n++ {
		z, err := gzip.NewReader(bytes.NewReader(whole[:n]))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: gzip says %v", n, err)
		}
		in, err := dump.NewInput(bytes.NewReader(whole[:n]), "cut.log")
		if err != nil {
			t.Fatalf("cut at %d: %v, expected it when the log is read", n, err)
		}
		got, err := io.ReadAll(in)
		if err == nil || !strings.HasPrefix(err.Error(), "cut.log: gzip: the data ends early") {
			t.Errorf("cut at %d: error %v", n, err)
		}
		if !bytes.Equal(got, plain) {
			t.Errorf("cut at %d: %d bytes of %d that could be decompressed", n, len(got), len(plain))
		}
	}
	if _, err := dump.NewInput(strings.NewReader("\x1f\x8bnot gzip at all"), "bad.log"); err == nil {
		t.Error("a gzip header that is none: no error")
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := dump.Open(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// A follower sees what is written while it reads, a file cut short, and one that has
// taken the name.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(flag int, text string) {
		f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(os.O_CREATE, "first "+readme[:9])
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in, err := dump.Follow(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	found := make(chan string)
	go func() {
		defer close(found)
		sc := dump.NewScanner(in, in.Name)
		for sc.Next() {
			found <- says(sc.Record())
		}
		if err := sc.Err(); err != nil {
			found <- err.Error()
		}
	}()
	expect := func(what, want string) {
		t.Helper()
		select {
		case got := <-found:
			if got != want {
				t.Fatalf("%s: got %q, want %q", what, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing came", what)
		}
	}
	select {
	case got := <-found:
		t.Fatalf("half a record was taken for one: %q", got)
	case <-time.After(250 * time.Millisecond):
	}
	write(os.O_APPEND, readme[9:]+"\n")
	expect("the other half", readmeSays)
	write(os.O_TRUNC, twoPads+"\n")
	expect("cut short and written anew", "size=9 pcs=10")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(os.O_CREATE, readme+"\n")
	expect("another file by this name", readmeSays)
	write(os.O_APPEND, readme[:20])
	cancel()
	expect("what stood there at the end", "cut 2 of 4 pcs=406651,406852")
	if got, more := <-found; more {
		t.Errorf("after the end: %q", got)
	}
}

func TestFollowRefuses(t *testing.T) {
	dir := t.TempDir()
	packed := filepath.Join(dir, "packed")
	if err := os.WriteFile(packed, gzipped(t, []byte(readme)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, packed, dump.Stdin, filepath.Join(dir, "missing")} {
		if in, err := dump.Follow(context.Background(), path); err == nil {
			in.Close()
			t.Errorf("%s: no error", path)
		}
	}
}

// piped runs a program on data.
func piped(t *testing.T, data []byte, program ...string) []byte {
	t.Helper()
	cmdtest.Need(t, program[0])
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Files of programs that write these formats, damaged and not: what they hold up to
// the damage is read, and the damage is said.
func TestFormatsOfPrograms(t *testing.T) {
	log := []byte(strings.Repeat("x "+readme+"\n", 5000))
	utf16 := func(name string) []byte { return piped(t, log, "iconv", "-f", "UTF-8", "-t", name) }
	skippable := append([]byte{0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'}, piped(t, log, "zstd")...)
	gz := piped(t, log, "gzip")
	flipped := bytes.Clone(gz)
	flipped[len(flipped)-6]++ // of the CRC
	for _, c := range []struct {
		name, compression, encoding string
		data                        []byte
		most                        int // bytes that may be missing at the end
		says                        string
	}{
		{"xz", "xz", "", piped(t, log, "xz"), 0, ""},
		{"zstd behind a skippable frame", "zstd", "", skippable, 0, ""},
		{"UTF-16LE", "", "UTF-16LE", append([]byte{0xff, 0xfe}, utf16("UTF-16LE")...), 0, ""},
		{"UTF-16BE", "", "UTF-16BE", append([]byte{0xfe, 0xff}, utf16("UTF-16BE")...), 0, ""},
		{"UTF-16 in gzip", "gzip", "UTF-16LE", piped(t, append([]byte{0xff, 0xfe}, utf16("UTF-16LE")...), "gzip"), 0, ""},
		{"gzip cut", "gzip", "", gz[:len(gz)*2/3], len(log), "the data ends early"},
		{"gzip with a bad checksum", "gzip", "", flipped, 0, "checksum is wrong"},
		{"gzip and zeros", "gzip", "", append(bytes.Clone(gz), make([]byte, 100)...), 0, "not gzip"},
		{"zstd cut", "zstd", "", skippable[:len(skippable)-7], len(log), "the data ends early"},
	} {
		in, err := dump.NewInput(bytes.NewReader(c.data), "x")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := io.ReadAll(in)
		if !bytes.HasPrefix(log, got) || len(log)-len(got) > c.most || in.Compression != c.compression || in.Encoding != c.encoding {
			t.Errorf("%s: %d bytes of %d, compression %q, encoding %q", c.name, len(got), len(log), in.Compression, in.Encoding)
		}
		var read *dump.ReadError
		if (c.says == "") != (err == nil) || err != nil && (!errors.As(err, &read) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
		if c.name == "gzip cut" && len(got) < len(log)/2 {
			t.Errorf("%s: only %d bytes", c.name, len(got))
		}
	}
}

// A first line that is short is there at once: no format is waited for.
func TestInputDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	go w.Write([]byte("a\n"))
	in, err := dump.NewInput(r, "pipe")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := in.Read(b); n == 0 || err != nil || b[0] != 'a' {
		t.Errorf("%q, %v", b[:n], err)
	}
}

func TestOnly(t *testing.T) {
	long := strings.Repeat("y", 300_000)
	log := "dev1: a\ndev2: b\r\n\ndev1: " + long + "\nx " + long + "dev1:\ndev1: end"
	for drop, want := range map[bool]string{
		true:  "dev1: a\ndev1: " + long + "\ndev1: end",
		false: "dev1: a\n\n\ndev1: " + long + "\n\ndev1: end",
	} {
		got, err := io.ReadAll(dump.Only(strings.NewReader(log), regexp.MustCompile("^dev1:"), drop))
		if err != nil || string(got) != want {
			t.Errorf("drop %v: %.60q (%d bytes), want %d bytes; %v", drop, got, len(got), len(want), err)
		}
	}
}
