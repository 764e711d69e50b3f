package store

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/parquet-go/parquet-go"
)

// ByDevice returns the facts of builds in files of facts, which are on this machine, device by device, in the order
// of their names; the build "" is all builds of a file, in its order. The facts of a device are in the order of the files, those of a file sorted by path, boot
// and dump; only Device, Path, Boot, Dump, Count and Bytes are set. The slice is valid until the next device.
func ByDevice(builds, files []string) iter.Seq2[[]Fact, error] {
	return func(yield func([]Fact, error) bool) {
		var readers []*factReader
		defer func() {
			for _, r := range readers {
				r.close()
			}
		}()
		for _, name := range files {
			for _, build := range builds { // a file is sorted by build, then by device
				r, err := openFacts(name, build)
				if err != nil {
					yield(nil, err)
					return
				}
				readers = append(readers, r)
			}
		}
		var facts []Fact
		for {
			device, more := firstDevice(readers)
			if !more {
				return
			}
			facts = facts[:0]
			for _, r := range readers {
				var err error
				if facts, err = r.of(device, facts); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(facts, nil) {
				return
			}
		}
	}
}

// firstDevice returns the first device that has facts left.
func firstDevice(readers []*factReader) (device string, more bool) {
	for _, r := range readers {
		if r.more && (!more || r.device < device) {
			device, more = r.device, true
		}
	}
	return device, more
}

// factReader reads the facts of a file in their order.
type factReader struct {
	file   *os.File
	build  string
	groups []parquet.RowGroup // that are not read yet
	rows   int64              // of the build in the present group that are not read yet
	names  column             // of devices
	values [5]column          // path, boot, dump, count, bytes
	device string             // of the next fact
	more   bool               // there is a next fact
}

// factColumns are the columns that a factReader reads.
var factColumns = [...]string{"device", "path", "boot", "dump", "count", "bytes"}

// named completes an error of a file.
func named(name string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("store: %s: %w", name, *err)
	}
}

func openFacts(name, build string) (*factReader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r := &factReader{file: file, build: build}
	if err := r.open(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *factReader) open() (err error) {
	defer named(r.file.Name(), &err)
	defer noPanic(&err)
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	f, err := parquet.OpenFile(r.file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	r.groups = f.RowGroups()
	return r.next()
}

func (r *factReader) close() {
	r.names.close()
	for i := range r.values {
		r.values[i].close()
	}
	r.file.Close()
}

// of appends the facts of a device, if they are the next ones.
func (r *factReader) of(device string, facts []Fact) (_ []Fact, err error) {
	defer named(r.file.Name(), &err)
	defer noPanic(&err)
	for r.more && r.device == device {
		f := Fact{Device: device}
		for i, to := range [...]*int64{&f.Path, &f.Boot, &f.Dump, &f.Count, &f.Bytes} {
			if *to, err = r.values[i].next(); err != nil {
				return nil, err
			}
		}
		facts = append(facts, f)
		if err := r.next(); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

// next sets the device of the next fact.
func (r *factReader) next() error {
	for r.rows == 0 {
		if r.more = len(r.groups) > 0; !r.more {
			return nil
		}
		g := r.groups[0]
		r.groups = r.groups[1:]
		begin, end, err := r.find(g)
		if err != nil {
			return err
		}
		if r.rows = end - begin; r.rows == 0 {
			continue
		}
		for i, name := range factColumns {
			c := &r.names
			if i > 0 {
				c = &r.values[i-1]
			}
			if err := c.open(g, name); err != nil {
				return err
			}
			if err := c.skip(begin); err != nil {
				return err
			}
		}
	}
	r.rows--
	r.more = true
	i, err := r.names.next()
	if err != nil {
		return err
	}
	r.device = r.names.texts[i]
	return nil
}

// find returns the rows of the build in a row group, which are one after the other.
func (r *factReader) find(g parquet.RowGroup) (begin, end int64, err error) {
	if r.build == "" {
		return 0, g.NumRows(), nil
	}
	var c column
	defer c.close()
	if err := c.open(g, "build"); err != nil {
		return 0, 0, err
	}
	for row := range g.NumRows() {
		i, err := c.next()
		if err != nil {
			return 0, 0, err
		}
		switch of := c.texts[i]; {
		case of < r.build:
			begin, end = row+1, row+1
		case of == r.build:
			end = row + 1
		default:
			return begin, end, nil
		}
	}
	return begin, end, nil
}

// column reads the values of a column of a row group. If they are texts, the values are their numbers.
type column struct {
	pages  parquet.Pages
	values []int64 // of the page
	at     int     // the next one
	texts  []string
}

func (c *column) close() {
	if c.pages != nil {
		c.pages.Close()
		c.pages = nil
	}
}

// open begins to read the column of a row group with a name.
func (c *column) open(g parquet.RowGroup, name string) error {
	leaf, ok := g.Schema().Lookup(name)
	if !ok {
		return errors.New("no column " + name)
	}
	c.close()
	chunk := g.ColumnChunks()[leaf.ColumnIndex]
	if chunk.NumValues() != g.NumRows() {
		return fmt.Errorf("%d rows, but %d values in column %s", g.NumRows(), chunk.NumValues(), name)
	}
	*c = column{pages: chunk.Pages(), values: c.values[:0]}
	return nil
}

func (c *column) next() (int64, error) {
	for c.at == len(c.values) {
		if err := c.read(); err != nil {
			return 0, err
		}
	}
	c.at++
	return c.values[c.at-1], nil
}

// skip skips n values. (SeekToRow of the library checks no checksums of pages.)
func (c *column) skip(n int64) error {
	for n > 0 {
		if c.at == len(c.values) {
			if err := c.read(); err != nil {
				return err
			}
		}
		some := min(n, int64(len(c.values)-c.at))
		c.at, n = c.at+int(some), n-some
	}
	return nil
}

// read reads a page.
func (c *column) read() error {
	p, err := c.pages.ReadPage()
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	defer parquet.Release(p)
	c.at, c.values = 0, c.values[:0]
	content := p
	if d := p.Dictionary(); d != nil {
		content = d.Page()
		data := p.Data()
		for _, i := range data.Int32() {
			c.values = append(c.values, int64(i))
		}
	}
	data := content.Data()
	if content.Type().Kind() == parquet.ByteArray {
		if p.Dictionary() == nil {
			for i := range p.NumValues() {
				c.values = append(c.values, i)
			}
		} else if c.texts != nil {
			return nil // of the same dictionary
		}
		text, offsets := data.ByteArray()
		c.texts = nil
		for i := 1; i < len(offsets); i++ {
			c.texts = append(c.texts, string(text[offsets[i-1]:offsets[i]]))
		}
		return nil
	}
	numbers := data.Int64()
	if p.Dictionary() == nil {
		c.values = append(c.values, numbers...)
		return nil
	}
	for i, n := range c.values {
		c.values[i] = numbers[n]
	}
	return nil
}
