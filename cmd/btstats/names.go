package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/stats"
	"github.com/lwsbt/lwsbt/symbol"
)

// nameFlags holds the flags for names of addresses, as in btdecode.
type nameFlags struct {
	exes      []string
	maps      []string
	debugDirs []string
	hide      string

	specs  []symbol.FileSpec
	hidden *regexp.Regexp
}

func (n *nameFlags) add(f *pflag.FlagSet) {
	f.StringArrayVarP(&n.exes, "exe", "e", nil, "ELF `FILE`; FILE@0xADDR if loaded at 0xADDR (repeatable)")
	f.StringArrayVarP(&n.maps, "maps", "m", nil, "copy `FILE` of /proc/PID/maps (repeatable)")
	f.StringArrayVar(&n.debugDirs, "debug-dir", symbol.DebugDirs(), "look for debug files, by build-id or path, below `DIR`")
	f.StringVar(&n.hide, "hide", "", "let the advice leave out frames of functions that match `REGEX`, too")
}

func (n *nameFlags) given() bool { return len(n.exes)+len(n.maps) > 0 }

// check reads the values.
func (n *nameFlags) check() error {
	for _, exe := range n.exes {
		spec, err := symbol.ParseFileSpec(exe)
		if err != nil {
			return fmt.Errorf("-e %w", err)
		}
		n.specs = append(n.specs, spec)
	}
	if n.hide == "" {
		return nil
	}
	re, err := regexp.Compile(n.hide)
	if err != nil {
		return fmt.Errorf("--hide %q: %w", n.hide, err)
	}
	n.hidden = re
	return nil
}

// namer finds the functions of return addresses in a dump.
type namer struct {
	process *symbol.Process
	addrs   []symbol.Addr
}

// open opens the files that the flags name. If their load bases are not given, it infers
// them from the addresses of the dump. word is the number of bits of an address, 0 if
// unknown.
func (n *nameFlags) open(dump *stats.Collector, word int, by string) (*namer, error) {
	process, err := symbol.NewProcess(symbol.Config{Files: n.specs, DebugDirs: n.debugDirs, Word: word, WordBy: by})
	if err != nil {
		return nil, fmt.Errorf("-e %w", err)
	}
	out := &namer{process: process}
	for _, path := range n.maps {
		if err := out.readMaps(path); err != nil {
			out.close()
			return nil, fmt.Errorf("--maps: %w", err)
		}
	}
	if files := process.Unplaced(); len(files) > 0 && len(n.maps) == 0 {
		seen := map[symbol.ReturnAddr]bool{}
		dump.EachAddress(func(pc uint64, lossy bool) { seen[symbol.ReturnAddr{PC: pc, Lossy: lossy}] = true })
		process.SetBases(symbol.InferBases(files, slices.Collect(maps.Keys(seen))))
	}
	return out, nil
}

func (n *namer) readMaps(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := symbol.ReadMaps(f, path)
	if err == nil {
		n.process.Map(list)
	}
	return err
}

func (n *namer) close() { n.process.Close() }

// name returns the function of a return address, "" if unknown. For inlined calls it is
// the outermost function, which has the frame.
func (n *namer) name(pc uint64, lossy bool) string {
	s := codec.Stack{PCs: []uint64{pc}}
	if lossy {
		s.Marks = codec.Marks{Wide: 1, Wrap: 1, Lossy: 1}
	}
	n.addrs = n.process.Resolve(n.addrs[:0], &s, nil)
	frames := n.addrs[0].Frames()
	if len(frames) == 0 {
		return ""
	}
	return frames[len(frames)-1].Name
}
