package heaplog

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/symbol"
)

// Option is an option of [Open]. The zero Option does nothing.
type Option struct {
	name string
	set  func(*config) error
}

// OptionError is an error in the value of an option, or in a file that the option names.
type OptionError struct {
	Option string // the name of the function, such as "Exe"
	Err    error
}

// Error returns the message with the name of the option.
func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// config holds the values of the options.
type config struct {
	inputs    []*input.Input
	split     *regexp.Regexp
	heapLine  *regexp.Regexp
	selected  bool
	from, to  int // numbers of the selected dumps, from 1; -1 is the last
	maxPaths  int
	refresh   time.Duration
	symbols   symbol.Config
	maps      []string // copies of /proc/PID/maps
	mappings  []symbol.Mapping
	machine   codec.Machine
	machineBy string // how machine is known; "" if it is not
	label     Label
	moments   int
}

// Files adds log files. A log may be compressed by gzip, zstd or xz. It may be UTF-16 with
// a byte order mark. A file that is not regular, such as a FIFO, is read as a [Stream].
func Files(paths ...string) Option {
	return Option{"Files", func(c *config) error {
		for _, path := range paths {
			in, err := input.File(path)
			if err != nil {
				return err
			}
			c.inputs = append(c.inputs, in)
		}
		return nil
	}}
}

// KeepMoments has the [Reader.Replay] of Dumps keep n to 2n moments, as [replay.Replay.Keep] does.
func KeepMoments(n int) Option {
	return Option{"KeepMoments", func(c *config) error {
		if n < 0 {
			return fmt.Errorf("%d, expected 0 or more", n)
		}
		c.moments = n
		return nil
	}}
}

// Force takes names from ELF files that do not match the addresses in the log.
func Force(force bool) Option {
	return Option{"Force", func(c *config) error {
		c.symbols.Check = !force
		return nil
	}}
}

// Stream adds the log that r reads, such as standard input, a serial port, or memory. name
// is the name of the log in each recording.Place. When the context is done, a pass does not wait
// for a blocked Read. If r is an *os.File of a regular file, or has another type with a
// Seek method, each pass begins at the offset that r has when Open is called. Any
// other r can be read by one pass only.
func Stream(r io.Reader, name string) Option {
	return Option{"Stream", func(c *config) error {
		if r == nil {
			return fmt.Errorf("%q: the reader is nil", name)
		}
		c.inputs = append(c.inputs, input.FromReader(r, name))
		return nil
	}}
}

// Follow adds a log that another program still writes. The log is read until the context is
// done, even after it is renamed or truncated by log rotation. It must not be compressed,
// except for a recording, which btrecord compresses by zstd and never rotates.
func Follow(path string) Option {
	return Option{"Follow", func(c *config) error {
		in, err := input.Follow(path)
		if err == nil {
			c.inputs = append(c.inputs, in)
		}
		return err
	}}
}

// Split begins a dump at each line that matches.
func Split(match *regexp.Regexp) Option {
	return Option{"Split", func(c *config) error { c.split = match; return nil }}
}

// HeapLine makes each line that matches a report on a heap. The groups free, largest, min, size and
// used have numbers of bytes, unless a unit is in the group, or in its name, as in free_KB; heap has the
// name of the heap, and time the time since the boot in seconds. Only free or used is needed.
func HeapLine(match *regexp.Regexp) Option {
	return Option{"HeapLine", func(c *config) error {
		if match != nil {
			if err := forms.CheckHeapLine(match); err != nil {
				return err
			}
		}
		c.heapLine = match
		return nil
	}}
}

// Select selects the dumps first to last, counted from 1; -1 is the last dump of the log. It does not change Items.
func Select(first, last int) Option {
	return Option{"Select", func(c *config) error {
		if first == 0 || last == 0 || first < -1 || last < -1 || last != -1 && (first == -1 || last < first) {
			return fmt.Errorf("%d to %d, expected numbers from 1 in order, or -1 for the last dump", first, last)
		}
		c.selected, c.from, c.to = true, first, last
		return nil
	}}
}

// MaxPaths limits the number of distinct call paths in all dumps together. The records of
// other call paths are added up as one path. The default is that of profile.NewBuilder.
func MaxPaths(n int) Option {
	return Option{"MaxPaths", func(c *config) error {
		if n < 0 {
			return fmt.Errorf("%d, expected a number of call paths", n)
		}
		c.maxPaths = n
		return nil
	}}
}

// Refresh sets an interval. While a pass waits for more input, it yields at this interval:
// Items an item of [KindIdle], Dumps the unfinished dump.
func Refresh(every time.Duration) Option {
	return Option{"Refresh", func(c *config) error {
		if every < 0 {
			return fmt.Errorf("%v, expected a duration from 0", every)
		}
		c.refresh = every
		return nil
	}}
}

// Exe adds an ELF file. spec is PATH, PATH@0xADDR if the first segment was loaded at
// 0xADDR, or PATH@+0xBIAS if the file was loaded 0xBIAS above its own addresses.
func Exe(spec string) Option {
	return Option{"Exe", func(c *config) error {
		s, err := symbol.ParseFileSpec(spec)
		if err != nil {
			return err
		}
		c.symbols.Files = append(c.symbols.Files, s)
		return nil
	}}
}

// Maps adds a copy of /proc/PID/maps.
func Maps(path string) Option {
	return Option{"Maps", func(c *config) error { c.maps = append(c.maps, path); return nil }}
}

// Sysroot adds a directory under which the files of modules are searched. A directory that
// does not exist is treated as empty.
func Sysroot(dir string) Option {
	return Option{"Sysroot", func(c *config) error {
		c.symbols.Sysroots = append(c.symbols.Sysroots, dir)
		return nil
	}}
}

// DebugDirs sets the directories of separate debug files. The default is symbol.DebugDirs.
func DebugDirs(dirs ...string) Option {
	return Option{"DebugDirs", func(c *config) error { c.symbols.DebugDirs = dirs; return nil }}
}

// Machine sets the machine that encoded the log. If it is not set,
// it is not known whether the encoder dropped bits: an address whose bits it may have dropped
// counts as lossy.
func Machine(m codec.Machine) Option {
	return Option{"Machine", func(c *config) error {
		if !slices.Contains(codec.Machines(), m) {
			return fmt.Errorf("%d, expected one of codec.Machines", m)
		}
		c.machine, c.machineBy = m, "machine "+m.String()
		c.symbols.Lossless = !m.Lossy()
		c.symbols.Word, c.symbols.WordBy = m.Word(), c.machineBy
		return nil
	}}
}

// Unnamed opens no ELF file: addresses have modules and offsets, and no functions.
func Unnamed() Option {
	return Option{"Unnamed", func(c *config) error { c.symbols.NoFiles = true; return nil }}
}

// check returns an error for options that are missing.
func (c *config) check() error {
	if len(c.inputs) == 0 {
		return errors.New("no input: expected Files, Stream or Follow")
	}
	return nil
}
