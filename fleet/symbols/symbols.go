package symbols

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/fleet/store"
	heaplog "github.com/lwsbt/lwsbt/heap/log"
	"github.com/lwsbt/lwsbt/symbol"
)

// maxELF is the size of the largest ELF file that is accepted, in bytes.
const maxELF = 1 << 30

// Store is a store with ELF files, call paths and frames.
type Store interface {
	PutELF(ctx context.Context, build string, file io.ReadSeeker) error
	ELF(ctx context.Context, build string) ([]byte, error)
	Builds(ctx context.Context) ([]string, error)
	// Unnamed returns the addresses of the call paths of a build for which there are no frames, sorted.
	Unnamed(ctx context.Context, build string) ([]string, error)
	PutFrames(ctx context.Context, build string, now time.Time, rows []store.Frame) error
}

// Add adds an ELF file to a store, under its build ID, and resolves the function names of the
// build's call paths (see [Update]).
func Add(ctx context.Context, s Store, path string) (build string, n Count, err error) {
	build, err = BuildID(path)
	if err != nil {
		return "", n, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", n, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxELF {
		return "", n, errors.Join(err, fmt.Errorf("%s: larger than %d bytes", path, maxELF))
	}
	if err := s.PutELF(ctx, build, f); err != nil {
		return "", n, err
	}
	n, err = Update(ctx, s, nil, build)
	return build, n, err
}

// Count is the number of addresses that were looked up, and of those that have a function name.
type Count struct {
	Asked, Named int
	Missing      string // reason why the first of the others has none
}

// String returns "3 of 5 addresses named", with the reason.
func (n Count) String() string {
	s := fmt.Sprintf("%d of %d addresses named", n.Named, n.Asked)
	if n.Missing != "" {
		s += ": " + n.Missing
	}
	return s
}

// Update resolves the function names of addresses in call paths that have no names yet. It
// processes the given builds, or all builds if none is given. If the store has no ELF file of a
// build, Update downloads one from the debuginfod servers, if there are any.
func Update(ctx context.Context, s Store, servers []string, builds ...string) (n Count, err error) {
	if len(builds) == 0 {
		if builds, err = s.Builds(ctx); err != nil {
			return n, err
		}
	}
	for _, b := range builds {
		if err := update(ctx, s, servers, b, &n); err != nil {
			return n, fmt.Errorf("build %s: %w", b, err)
		}
	}
	return n, nil
}

func update(ctx context.Context, s Store, servers []string, build string, n *Count) error {
	addresses, err := s.Unnamed(ctx, build)
	if err != nil || len(addresses) == 0 {
		return err
	}
	elf, err := s.ELF(ctx, build)
	if errors.Is(err, store.ErrNoELF) {
		elf, err = download(ctx, servers, build)
	}
	if errors.Is(err, store.ErrNoELF) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "elf")
	if err := os.WriteFile(file, elf, 0o600); err != nil {
		return err
	}
	rows, err := Frames(ctx, file, build, addresses)
	if err != nil {
		return err
	}
	n.Asked += len(addresses)
	for _, r := range rows {
		switch {
		case r.Index > 0: // inlined
		case r.Function != "":
			n.Named++
		case n.Missing == "":
			n.Missing = r.Missing
		}
	}
	return s.PutFrames(ctx, build, time.Now(), rows)
}

// Frames returns the rows for addresses (see [store.Path]) of a build, from its ELF file.
// Addresses in other modules have no function.
func Frames(ctx context.Context, file, build string, addresses []string) ([]store.Frame, error) {
	f, err := symbol.Open(file, nil)
	if err != nil {
		return nil, err
	}
	word := f.Word
	f.Close()
	var rows []store.Frame
	var log []byte
	log = fmt.Appendf(log, "~h#boot w=%d\n", word)
	var asked []string // addresses, in the order of the lines of the log
	writer := callpath.Writer{}
	for _, a := range addresses {
		switch kind, v := parse(a); kind {
		case "0x":
			log = fmt.Appendf(log, "~b#size: 1, %#x\n", v)
		case "code+":
			e := callpath.Entry{Live: 1, Bytes: 1}
			e.Frames = []callpath.Frame{{Value: v}}
			line, err := writer.Append(nil, &e)
			if err != nil {
				rows = append(rows, store.Frame{Build: build, Address: a, Missing: "no code offset"})
				continue
			}
			log = writer.Flush(append(log, line...))
		default:
			rows = append(rows, store.Frame{Build: build, Address: a, Missing: "in no known file"})
			continue
		}
		asked = append(asked, a)
	}
	if len(asked) == 0 {
		return rows, nil
	}
	r, err := heaplog.Open(ctx, heaplog.Stream(bytes.NewReader(log), "addresses"), heaplog.Exe(file))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	i := 0
	for it, err := range r.Items() {
		if err != nil {
			return nil, err
		}
		for _, a := range it.Allocs {
			if i == len(asked) || len(a.Stack) != 1 {
				return nil, fmt.Errorf("%s: address %d of %d was not read back", file, i, len(asked))
			}
			rows = append(rows, frames(build, asked[i], a.Stack[0])...)
			i++
		}
	}
	if i != len(asked) {
		return nil, fmt.Errorf("%s: %d of %d addresses were read back", file, i, len(asked))
	}
	return rows, nil
}

// frames returns the rows of one address.
func frames(build, address string, a symbol.Addr) (rows []store.Frame) {
	for i, f := range a.Frames() {
		rows = append(rows, store.Frame{Build: build, Address: address, Index: int32(i), Function: f.Name, File: f.File, Line: int32(f.Line), Missing: a.Missing()})
	}
	if len(rows) == 0 {
		rows = []store.Frame{{Build: build, Address: address, Missing: a.Missing()}}
	}
	return rows
}

// parse splits an address into the text before the number and the number.
func parse(address string) (kind string, v uint64) {
	at := strings.LastIndex(address, "0x")
	if at < 0 {
		return "", 0
	}
	v, err := strconv.ParseUint(address[at+2:], 16, 64)
	if err != nil {
		return "", 0
	}
	if at == 0 {
		return "0x", v
	}
	return address[:at], v
}

// Servers returns the debuginfod servers of the environment, DEBUGINFOD_URLS.
func Servers() []string { return strings.Fields(os.Getenv("DEBUGINFOD_URLS")) }

// download returns the ELF file with the debug information of a build, from the first
// debuginfod server that has it. The request is GET /buildid/ID/debuginfo, as in elfutils.
func download(ctx context.Context, servers []string, build string) ([]byte, error) {
	if _, err := hex.DecodeString(build); err != nil { // a device's own name, such as ../x
		return nil, store.ErrNoELF
	}
	var failed error
	client := http.Client{Timeout: 5 * time.Minute}
	for _, server := range servers {
		u, err := url.JoinPath(server, "buildid", build, "debuginfo")
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			failed = err
			continue
		}
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxELF))
		resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusNotFound:
		case resp.StatusCode != http.StatusOK:
			failed = fmt.Errorf("%s: %s", u, resp.Status)
		case err != nil:
			failed = err
		default:
			return data, nil
		}
	}
	if failed != nil {
		return nil, failed
	}
	return nil, store.ErrNoELF
}
