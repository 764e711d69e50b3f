package main

import (
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// Flags that most commands read, by the groups in which help lists them: first those of the question, and
// last those that few logs need.
var (
	symbolFlags = []string{"exe", "maps"}
	noteFlags   = []string{"quiet", "verbose"}
	frameFlags  = []string{"basenames", "hide", "ignore", "focus"}

	rareInput   = []string{"split"}
	rareSymbols = []string{"force", "sysroot", "debug-dir", "machine"}
)

// Flags of commands that report on one dump, which --at can select.
var (
	oneFrames  = append([]string{"at"}, compareFrames...)
	oneOutput  = []string{"weight", "output"}
	jsonOutput = []string{"weight", "json"}
)

// compareFrames are the flags of commands that compare dumps.
var compareFrames = append([]string{"by", "no-fold"}, frameFlags...)

// own returns the flags that only btheap has.
func (s *session) own() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&s.by, "by", "", "group by `WHAT`: the line, function or module of the call site, or the thread (task), size or heap of the block")
	f.BoolVarP(&s.view.Basenames, "basenames", "s", false, "strip directories from file names")
	f.BoolVar(&s.noFold, "no-fold", false, "show the allocators and their wrappers at the inner end of call paths, and the start of the program at the outer end")
	f.StringVar(&s.at, "at", "", "for a recording with events, report the blocks that were live at `WHEN`: peak, end, or a time such as 2.5s")
	f.StringVar(&s.weight, "weight", "bytes", "order by `WHAT`: bytes or count")
	f.BoolVar(&s.json, "json", false, "write JSON (heap/docs/btheap.schema.json)")
	f.StringVarP(&s.output, "output", "o", "", "write to `FILE`")
	return f
}

// add adds flags to a command, as a group in its help.
func (s *session) add(c *cobra.Command, group string, names ...string) {
	own := s.own()
	for _, name := range names {
		flag := own.Lookup(name)
		if flag == nil {
			s.Add(c, group, name)
			continue
		}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.AddFlag(flag)
		cli.AddFlags(c, group, f)
	}
}

// addAll adds the flags of a report on call paths: these, and those on symbols and input. The flags
// that the command has already are the first group.
func (s *session) addAll(c *cobra.Command, first string, frames, output []string, rare ...string) {
	cli.AddFlags(c, first, c.Flags())
	s.add(c, first, output...)
	s.add(c, "Symbols", symbolFlags...)
	s.add(c, "Input", append([]string{"dump"}, noteFlags...)...)
	s.add(c, "Frames", frames...)
	s.addRare(c, rare...)
}

// addRare adds the flags that few logs need: more, and those on symbols and input.
func (s *session) addRare(c *cobra.Command, more ...string) {
	s.add(c, "Logs of an unusual form", slices.Concat(rareInput, more)...)
	s.add(c, "Symbols that are not found, or are wrong", rareSymbols...)
}

// check reads the values of the flags.
func (s *session) check() (err error) {
	if err := s.Flags.Check(s.files); err != nil {
		return err
	}
	s.view.Filter, s.view.Fold = s.Filter, s.c.Flags().Lookup("no-fold") != nil && !s.noFold
	switch s.by {
	case "":
	case "heap":
		s.label, s.view.By = heaplog.ByHeap, profile.ByFunction
	case "thread", "task":
		s.label, s.view.By = heaplog.ByThread, profile.ByFunction
	case "size":
		s.label, s.view.By = heaplog.BySize, profile.ByFunction
	case "line":
		s.view.By = profile.ByLine
	case "function":
		s.view.By = profile.ByFunction
	case "module":
		s.view.By = profile.ByModule
	default:
		return cli.BadArgsf("--by %q, expected line, function, module, thread, size or heap", s.by)
	}
	switch s.weight {
	case "", "bytes":
	case "count":
		s.w = profile.Count
	default:
		return cli.BadArgsf("--weight %q, expected bytes or count", s.weight)
	}
	s.time = math.MaxInt64
	switch s.at {
	case "":
	case "peak":
		s.moment = (*replay.Replay).Peak
	case "end":
		s.moment = (*replay.Replay).End
	default:
		s.moment = func(r *replay.Replay) *profile.Dump { return r.Live(s.time) }
		if s.time, err = time.ParseDuration(s.at); err != nil || s.time < 0 {
			return cli.BadArgsf("--at %q, expected peak, end, or a time such as 2.5s", s.at)
		}
	}
	return nil
}
