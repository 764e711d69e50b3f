package heaplog

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

// Option is an option of [Open].
type Option func(*config) error

// Instant is a moment of a recording with events, for [Moment]: a time since the boot
// as a time.Duration, or [Peak] or [End].
type Instant time.Duration

const (
	Peak Instant = -1 - iota // when the most bytes were live
	End                      // after the last event
)

// config is what the options say.
type config struct {
	inputs    []*input
	only      *regexp.Regexp
	split     *regexp.Regexp
	bare      bool
	selected  bool
	from, to  int // dumps from 1, -1 is the last
	moment    *Instant
	maxPaths  int
	refresh   time.Duration
	symbols   symbol.Config
	maps      []snapshot
	section   string
	machine   codec.Machine
	machineBy string // "" if machine is not known
}

// Files adds log files. They may be compressed by gzip, zstd or xz, and they may be UTF-16
// with a byte order mark. A file that is not a regular one, such as a FIFO, is read as a
// [Stream].
func Files(paths ...string) Option {
	return func(c *config) error {
		for _, path := range paths {
			in, err := fileInput(path)
			if err != nil {
				return err
			}
			c.inputs = append(c.inputs, in)
		}
		return nil
	}
}

// Stream adds a log that r holds, such as standard input, a serial port, or memory. name is
// the name of the log in places. A pass does not wait for r when the context is done. A
// regular file, and what has the method Seek and is no *os.File, is read from where it is.
func Stream(r io.Reader, name string) Option {
	return func(c *config) error {
		if r == nil {
			return fmt.Errorf("Stream(nil, %q): expected a reader", name)
		}
		c.inputs = append(c.inputs, streamInput(r, name))
		return nil
	}
}

// Follow adds a log that is still written. It is read until the context is done, also
// after it was renamed or truncated, as log rotation does it. It must not be compressed.
func Follow(path string) Option {
	return func(c *config) error {
		in, err := followInput(path)
		if err == nil {
			c.inputs = append(c.inputs, in)
		}
		return err
	}
}

// Only leaves out lines that do not match, for logs of several devices. A line is matched by
// its first 256 KiB.
func Only(match *regexp.Regexp) Option {
	return func(c *config) error { c.only = match; return nil }
}

// Split begins a dump at each line that matches.
func Split(match *regexp.Regexp) Option {
	return func(c *config) error { c.split = match; return nil }
}

// Bare reads lines of base64 without a lead-in as records, too.
func Bare() Option { return func(c *config) error { c.bare = true; return nil } }

// Select selects dumps by number, from 1: those from from to to. -1 is the last one.
func Select(from, to int) Option {
	return func(c *config) error {
		if from == 0 || to == 0 || from < -1 || to < -1 || to != -1 && (from == -1 || to < from) {
			return fmt.Errorf("Select(%d, %d): expected numbers from 1 in order, or -1 for the last dump", from, to)
		}
		c.selected, c.from, c.to = true, from, to
		return nil
	}
}

// Moment makes [Reader.Dumps] yield one dump: what was live at a moment of a recording with
// events.
func Moment(at Instant) Option {
	return func(c *config) error {
		if at < End {
			return fmt.Errorf("Moment(%v): expected a time since the boot", time.Duration(at))
		}
		c.moment = &at
		return nil
	}
}

// MaxPaths limits how many distinct call paths are kept, in all dumps together; the records of
// others are added up as one path. By default, the limit is that of profile.NewBuilder.
func MaxPaths(n int) Option {
	return func(c *config) error {
		if n < 0 {
			return fmt.Errorf("MaxPaths(%d): expected a number of call paths", n)
		}
		c.maxPaths = n
		return nil
	}
}

// Refresh makes a pass over a log that is still written yield what there is whenever it has
// waited that long: Items yields another [Idle], Dumps the dump that is not yet whole.
func Refresh(every time.Duration) Option {
	return func(c *config) error {
		if every < 0 {
			return fmt.Errorf("Refresh(%v): expected a duration from 0", every)
		}
		c.refresh = every
		return nil
	}
}

// Exe adds an ELF file: PATH; PATH@0xADDR if its first segment was loaded at 0xADDR; or
// PATH@+0xBIAS if it was loaded 0xBIAS above the addresses in it.
func Exe(spec string) Option {
	return func(c *config) error {
		s, err := symbol.ParseFileSpec(spec)
		if err != nil {
			return fmt.Errorf("-e %w", err)
		}
		c.symbols.Files = append(c.symbols.Files, s)
		return nil
	}
}

// Maps adds a copy of /proc/PID/maps: PATH, or PATH@LINE if it applies from that line of
// the log on.
func Maps(spec string) Option {
	return func(c *config) error {
		s, err := parseSnapshot(spec)
		c.maps = append(c.maps, s)
		return err
	}
}

// Sysroot adds a directory below which the files of modules are looked for.
func Sysroot(dir string) Option {
	return func(c *config) error { c.symbols.Sysroots = append(c.symbols.Sysroots, dir); return nil }
}

// DebugDirs sets the directories of separate debug files; by default, symbol.DebugDirs.
func DebugDirs(dirs ...string) Option {
	return func(c *config) error { c.symbols.DebugDirs = dirs; return nil }
}

// Adjust sets at which address a return address is looked up; by default, symbol.AdjustAuto.
func Adjust(a symbol.Adjust) Option {
	return func(c *config) error { c.symbols.Adjust = a; return nil }
}

// Section makes addresses relative to a section of the ELF file.
func Section(name string) Option {
	return func(c *config) error { c.section = name; return nil }
}

// Machine sets which machine encoded the log. Without it, an address that may have lost bits
// is taken for lossy.
func Machine(m codec.Machine) Option {
	return func(c *config) error {
		c.machine, c.machineBy = m, "--machine "+m.String()
		c.symbols.Lossless = !m.Lossy()
		c.symbols.Word, c.symbols.WordBy = m.Word(), c.machineBy
		return nil
	}
}

// Unnamed opens no ELF file: addresses get modules and offsets only.
func Unnamed() Option { return func(c *config) error { c.symbols.NoFiles = true; return nil } }

// check reports options that exclude each other.
func (c *config) check() error {
	switch {
	case len(c.inputs) == 0:
		return errors.New("no input: expected Files, Stream or Follow")
	case c.section != "" && len(c.symbols.Files) != 1:
		return errors.New("Section needs one ELF file that has the section")
	case c.section != "" && len(c.maps) > 0:
		return errors.New("Section and Maps exclude each other: both give the addresses of the code")
	}
	return nil
}
