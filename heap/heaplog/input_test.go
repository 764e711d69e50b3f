package heaplog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
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
		for name, option := range map[string]heaplog.Option{
			"file": heaplog.Files(path), "pipe": heaplog.Stream(io.MultiReader(bytes.NewReader(c.data)), "stdin"),
			"memory": heaplog.Stream(bytes.NewReader(c.data), "memory"),
		} {
			r, err := heaplog.Open(t.Context(), option)
			if err != nil {
				t.Errorf("%s as %s: %v", c.name, name, err)
				continue
			}
			got, err := texts(r)
			sum := r.Summary()
			if err != nil || got != string(c.want) || sum.Stored != int64(len(c.data)) || sum.Bytes != int64(len(c.want)) {
				t.Errorf("%s as %s: %d bytes, %d stored, error %v", c.name, name, len(got), sum.Stored, err)
			}
			if want := int64(len(c.data)); name == "file" && sum.Size != want || name == "pipe" && sum.Size != -1 {
				t.Errorf("%s as %s: size %d", c.name, name, sum.Size)
			}
			if again, err := texts(r); name != "pipe" && (err != nil || again != got) || name == "pipe" && err == nil {
				t.Errorf("%s as %s: the second pass read %d bytes, error %v", c.name, name, len(again), err)
			}
			if err := r.Close(); err != nil {
				t.Errorf("%s as %s: closing: %v", c.name, name, err)
			}
		}
	}
}

// texts returns all that Items yields, and the error, but for a log without records.
func texts(r *heaplog.Reader) (string, error) {
	var b strings.Builder
	for it, err := range r.Items() {
		if err != nil && !errors.Is(err, heaplog.ErrNoRecord) {
			return b.String(), err
		}
		if err == nil {
			b.Write(it.Text)
		}
	}
	return b.String(), nil
}

// What was in a damaged log before the damage is read, and then there is an error.
func TestDamagedInput(t *testing.T) {
	log := []byte(strings.Repeat("x "+readme+"\n", 50000))
	for name, data := range map[string][]byte{
		"gzip: ": gzipped(t, log)[:3000],
		"zstd: ": zstded(t, log)[:150],
	} {
		r, err := heaplog.Open(t.Context(), heaplog.Stream(bytes.NewReader(data), "cut.log"))
		if err != nil {
			t.Fatal(err)
		}
		var read *heaplog.ReadError
		if _, err := texts(r); !errors.As(err, &read) || !strings.HasPrefix(err.Error(), "cut.log: "+name) {
			t.Errorf("%s cut: error %v", name, err)
		}
		if n := r.Summary().Records[recording.KindBlob]; name == "gzip: " && n < 1000 {
			t.Errorf("%s cut: %d records read before the cut", name, n)
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
		r, err := heaplog.Open(t.Context(), heaplog.Stream(bytes.NewReader(whole[:n]), "cut.log"))
		if err != nil {
			t.Fatalf("cut at %d: %v, expected it when the log is read", n, err)
		}
		got, err := texts(r)
		if err == nil || !strings.HasPrefix(err.Error(), "cut.log: gzip: the data ends early") {
			t.Errorf("cut at %d: error %v", n, err)
		}
		if got != string(plain) {
			t.Errorf("cut at %d: %d bytes of %d that could be decompressed", n, len(got), len(plain))
		}
	}
	if _, err := texts(open(t, strings.NewReader("\x1f\x8bnot gzip at all"))); err == nil {
		t.Error("a gzip header that is none: no error")
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := heaplog.Open(t.Context(), heaplog.Files(path)); err == nil || !strings.Contains(err.Error(), path) {
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
	r, err := heaplog.Open(ctx, heaplog.Follow(path))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := make(chan string)
	go func() {
		defer close(found)
		for it, err := range r.Items() {
			if err != nil {
				found <- err.Error()
			} else if it.Kind != recording.KindText && it.Kind != recording.KindIdle {
				found <- says(it)
			}
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
	expect("the end", context.Canceled.Error())
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
	for _, path := range []string{dir, packed, filepath.Join(dir, "missing")} {
		if r, err := heaplog.Open(t.Context(), heaplog.Follow(path)); err == nil {
			r.Close()
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
		name, compression string
		data              []byte
		most              int // bytes that may be missing at the end
		says              string
	}{
		{"xz", "xz", piped(t, log, "xz"), 0, ""},
		{"zstd behind a skippable frame", "zstd", skippable, 0, ""},
		{"UTF-16LE", "", append([]byte{0xff, 0xfe}, utf16("UTF-16LE")...), 0, ""},
		{"UTF-16BE", "", append([]byte{0xfe, 0xff}, utf16("UTF-16BE")...), 0, ""},
		{"UTF-16 in gzip", "gzip", piped(t, append([]byte{0xff, 0xfe}, utf16("UTF-16LE")...), "gzip"), 0, ""},
		{"gzip cut", "gzip", gz[:len(gz)*2/3], len(log), "the data ends early"},
		{"gzip with a bad checksum", "gzip", flipped, 0, "checksum is wrong"},
		{"gzip and zeros", "gzip", append(bytes.Clone(gz), make([]byte, 100)...), 0, "not gzip"},
		{"zstd cut", "zstd", skippable[:len(skippable)-7], len(log), "the data ends early"},
	} {
		got, err := texts(open(t, bytes.NewReader(c.data)))
		if !strings.HasPrefix(string(log), got) || len(log)-len(got) > c.most {
			t.Errorf("%s: %d bytes of %d", c.name, len(got), len(log))
		}
		var read *heaplog.ReadError
		if (c.says == "") != (err == nil) || err != nil && (!errors.As(err, &read) || !strings.Contains(err.Error(), c.says) || read.Compression != c.compression) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
		if c.name == "gzip cut" && len(got) < len(log)/2 {
			t.Errorf("%s: only %d bytes", c.name, len(got))
		}
	}
}

// A first line that is short is there at once: no format is waited for.
func TestInputDoesNotWait(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte("a\n"))
	for it, err := range open(t, in).Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Kind != recording.KindIdle {
			if string(it.Text) != "a\n" {
				t.Errorf("%q", it.Text)
			}
			break
		}
	}
}
