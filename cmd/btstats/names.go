package main

import (
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/stats"
	"github.com/lwsbt/lwsbt/symbol"
)

// nameFlags say how addresses get names, as in btdecode.
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
	process symbol.Process
	addrs   []symbol.FrameAddr
}

// open opens the files that the flags name, and infers where they were loaded from the
// addresses of the dump where nothing else says so.
// word is the bits of an address, 0 if that is not known.
func (n *nameFlags) open(dump *stats.Collector, word int, by string) (*namer, error) {
	out := &namer{}
	out.process.Files.SetWord(word, by)
	out.process.Files.DebugDirs = n.debugDirs
	for _, spec := range n.specs {
		if err := out.process.Files.AddFile(spec); err != nil {
			out.close()
			return nil, fmt.Errorf("-e %w", err)
		}
	}
	for _, path := range n.maps {
		if err := out.readMaps(path); err != nil {
			out.close()
			return nil, fmt.Errorf("--maps: %w", err)
		}
	}
	if files := out.process.Files.FilesWithoutBase(); len(files) > 0 && len(n.maps) == 0 {
		seen := map[symbol.ReturnAddr]bool{}
		var list []symbol.ReturnAddr
		dump.EachAddress(func(pc uint64, lossy bool) {
			if a := (symbol.ReturnAddr{PC: pc, Lossy: lossy}); !seen[a] {
				seen[a] = true
				list = append(list, a)
			}
		})
		out.process.Files.SetBases(symbol.InferBases(files, list))
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
		n.process.Maps.Set(list)
	}
	return err
}

func (n *namer) close() { n.process.Close() }

// name returns the function that a return address is in, "" if it is not known. Of
// inlined ones it is the outermost, which is the one that has a frame.
func (n *namer) name(pc uint64, lossy bool) string {
	s := codec.Stack{PCs: []uint64{pc}}
	if lossy {
		s.Marks = codec.Marks{Wide: 1, Wrap: 1, Lossy: 1}
	}
	n.addrs, _ = n.process.Resolve(n.addrs[:0], &s, nil)
	frames := n.addrs[0].Frames
	if len(frames) == 0 {
		return ""
	}
	return frames[len(frames)-1].Name
}
