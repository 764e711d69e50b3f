package symbols

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/fleet/store"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/symbol"
)

// maxELF is the size of the largest ELF file that is accepted, in bytes.
const maxELF = 1 << 30

// Store is a store with ELF files, call paths and frames.
type Store interface {
	PutELF(ctx context.Context, build string, data []byte) error
	ELF(ctx context.Context, build string) ([]byte, error)
	// Unnamed returns, for each build, the addresses of its call paths for which there are no frames, sorted.
	Unnamed(ctx context.Context) (map[string][]string, error)
	PutFrames(ctx context.Context, now time.Time, rows []store.Frame) error
}

// Add adds an ELF file to a store, under its build ID, and resolves the function names of the
// build's call paths (see [Update]).
func Add(ctx context.Context, s Store, path string) (build string, n Count, err error) {
	build, err = BuildID(path)
	if err != nil {
		return "", n, err
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxELF {
		return "", n, errors.Join(err, fmt.Errorf("%s: larger than %d bytes", path, maxELF))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", n, err
	}
	if err := s.PutELF(ctx, build, data); err != nil {
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
	if n.Asked == 0 {
		return "nothing to name in the dumps of builds with an ELF file"
	}
	s := fmt.Sprintf("%d of %d addresses named", n.Named, n.Asked)
	if n.Missing != "" {
		s += ": " + n.Missing
	}
	return s
}

// Update resolves the function names of addresses in call paths that have no names yet. It
// processes the given builds, or all builds if none is given. If the store has no ELF file of a
// build, Update downloads one from the debuginfod servers. It continues with the other builds if one fails.
func Update(ctx context.Context, s Store, servers *Debuginfod, builds ...string) (n Count, err error) {
	unnamed, err := s.Unnamed(ctx)
	if err != nil {
		return n, err
	}
	if len(builds) == 0 {
		builds = slices.Sorted(maps.Keys(unnamed))
	}
	var failed []error
	for _, b := range builds {
		if err := update(ctx, s, servers, b, unnamed[b], &n); err != nil {
			failed = append(failed, fmt.Errorf("build %q: %w", b, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return n, errors.Join(failed...)
}

func update(ctx context.Context, s Store, servers *Debuginfod, build string, addresses []string, n *Count) error {
	if len(addresses) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "btfleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "elf")
	elf, err := s.ELF(ctx, build)
	switch {
	case err == nil:
		err = os.WriteFile(file, elf, 0o600)
	case errors.Is(err, store.ErrNoELF) && servers != nil:
		err = servers.download(ctx, build, file)
	}
	if errors.Is(err, store.ErrNoELF) {
		return nil
	}
	if err != nil {
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
	return s.PutFrames(ctx, time.Now(), rows)
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

// Debuginfod is a list of debuginfod servers. Each is asked for a build once per hour, whether it has the
// build or not, because devices name the builds.
type Debuginfod struct {
	servers []string
	asked   *expirable.LRU[string, struct{}]
}

// NewDebuginfod returns a list of servers, separated by spaces as in DEBUGINFOD_URLS.
func NewDebuginfod(servers string) *Debuginfod {
	return &Debuginfod{strings.Fields(servers), expirable.NewLRU[string, struct{}](100_000, nil, time.Hour)}
}

// download writes the ELF file with the debug information of a build to a file, from the first server that
// has it. The request is GET /buildid/ID/debuginfo, as in elfutils. The error is [store.ErrNoELF] if no server
// has the file, or if they were asked less than an hour ago.
func (d *Debuginfod) download(ctx context.Context, build, file string) error {
	if _, err := hex.DecodeString(build); err != nil || d.asked.Contains(build) { // a device's own name, such as ../x
		return store.ErrNoELF
	}
	d.asked.Add(build, struct{}{})
	failed := store.ErrNoELF
	for _, server := range d.servers {
		err := get(ctx, server, build, file)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrNoELF) {
			failed = err
		}
	}
	return failed
}

func get(ctx context.Context, server, build, file string) error {
	u, err := url.JoinPath(server, "buildid", build, "debuginfo")
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return store.ErrNoELF
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", u, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(resp.Body, maxELF+1))
	if n > maxELF {
		err = fmt.Errorf("%s: larger than %d bytes", u, maxELF)
	}
	return errors.Join(err, f.Close())
}
