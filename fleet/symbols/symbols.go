package symbols

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/fleet/store"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/symbol"
)

// maxELF is the size of the largest ELF file that is accepted, in bytes.
const maxELF = 1 << 30

// DB has the call paths and frames of a store.
type DB interface {
	// Unnamed returns, for each build, the addresses of its call paths for which there are no frames, sorted.
	Unnamed(ctx context.Context) (map[string][]string, error)
	PutFrames(ctx context.Context, now time.Time, rows []store.Frame) error
}

// Add adds an ELF file to a store, and resolves the function names of the call paths of its build (see [Update]). The
// build is that of the linker's note if id is "".
func Add(ctx context.Context, files *store.Store, db DB, path, id string) (build string, n Count, err error) {
	f, err := symbol.Open(path, nil)
	if err != nil {
		return "", n, err
	}
	build = cmp.Or(id, f.BuildID)
	f.Close()
	if build == "" {
		return "", n, fmt.Errorf("%s has no build ID: link it with -Wl,--build-id, or name the build that its logs have (--build)", path)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxELF {
		return "", n, errors.Join(err, fmt.Errorf("%s: larger than %d bytes", path, maxELF))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", n, err
	}
	if err := files.PutELF(ctx, build, data); err != nil {
		return "", n, err
	}
	n, err = Update(ctx, files, db, build)
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
// processes the given builds, or all builds if none is given, if the store has their ELF files. It continues with the
// other builds if one fails.
func Update(ctx context.Context, files *store.Store, db DB, builds ...string) (n Count, err error) {
	unnamed, err := db.Unnamed(ctx)
	if err != nil {
		return n, err
	}
	if len(builds) == 0 {
		builds = slices.Sorted(maps.Keys(unnamed))
	}
	var failed []error
	for _, b := range builds {
		if err := update(ctx, files, db, b, unnamed[b], &n); err != nil {
			failed = append(failed, fmt.Errorf("build %q: %w", b, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return n, errors.Join(failed...)
}

func update(ctx context.Context, files *store.Store, db DB, build string, addresses []string, n *Count) error {
	if len(addresses) == 0 {
		return nil
	}
	rows, err := Frames(ctx, files.ELF(build), build, addresses)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
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
	return db.PutFrames(ctx, time.Now(), rows)
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
