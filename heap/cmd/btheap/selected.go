package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/heap/internal/logflags"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// This file selects the dumps that a command reports on:
//
//	top, export   the last steady dump, the moment of --at, or the sum of those of --dump
//	diff          complete dumps: the first and last of the last boot with two
//	leaks, html   all dumps; of a recording with events and few dumps, moments of the events

// leaveOut returns the last dumps of a log, to which another will be added, without those that
// latest does not need: it needs the last two, and the last steady one before these.
func leaveOut(list []*profile.Dump) []*profile.Dump {
	n := len(list)
	if n < 2 {
		return list
	}
	part := n > 2 && list[n-2].Part() != "" && list[n-3].Part() == ""
	if _, reason := growth.Steady(list[n-2]); reason != "" || part {
		return slices.Delete(list, n-2, n-1)
	}
	return list[n-2:]
}

// one reads all input and returns the profile of the chosen dump.
func (s *session) one() (*profile.Profile, error) {
	if err := s.read(lastDumps); err != nil {
		return nil, err
	}
	return s.profile(s.chosen())
}

// chosen returns the dump to report on: the latest, or the sum of the dumps of --dump.
func (s *session) chosen() *profile.Dump {
	list := s.dumps
	if s.Dump == "" {
		list = []*profile.Dump{s.latest()}
	}
	d := profile.Sum(list...)
	if d.Loss.Saturated && !slices.ContainsFunc(list, func(d *profile.Dump) bool { return d.Loss.Saturated }) {
		s.note("sums over 2^64-1 are reported as 2^64-1")
	}
	return d
}

// latest returns the last steady dump, and prints which dump that is. If the recording has only
// events and dumps at exits, it returns the live blocks at the peak.
func (s *session) latest() *profile.Dump {
	last := s.dumps[len(s.dumps)-1]
	if s.moment != nil {
		return last
	}
	n := s.reader.Summary().Dumps
	i, reason := growth.Steady(s.dumps...)
	events := s.dumps[i].Line == 0 // the blocks that are live after the last event
	switch d := s.dumps[i]; {
	case s.replay != nil && (events || d == last && reason != ""):
		s.note("this is what was live at the peak; --at end or a time selects another moment")
		return s.replay.Peak()
	case d != last:
		s.note("%d dumps; this is %s; %s is left out (%s); --dump N, A..B or all selects others", n, d.Name, last.Name, reason)
		return d
	case n > 1:
		s.note("%d dumps, of which this is the last; --dump N, A..B or all selects others, btheap leaks finds leaks in all of them", n)
	}
	return last
}

// undecided returns an error if the log may hold several dumps that were added up as one.
func (s *session) undecided() error {
	text := s.reader.Summary().Undecided
	switch {
	case text == "":
		return nil
	case s.Quiet:
		return fmt.Errorf("%s; %s", text, logflags.SplitHint)
	}
	if len(s.files) == 0 || slices.Contains(s.files, cli.Stdio) {
		return errors.New("the dumps cannot be told apart: give the log as a file, which can be read twice, or --split REGEX")
	}
	return errors.New("the dumps cannot be told apart: give --split REGEX") // a note has said why
}

// readMoment reads the events of the logs. The only dump is what was live at the moment of --at.
func (s *session) readMoment() error {
	var bad []recording.Place // of the first free of a block that is not live
	s.replay = replay.NewReplay()
	err := each(s.reader.Events(), s.out.Add, func(e *replay.Event) {
		if s.dumps == nil && e.Time > s.time {
			s.dumps = []*profile.Dump{s.moment(s.replay)}
		}
		if !s.replay.Add(*e) && bad == nil {
			bad = []recording.Place{s.reader.Summary().At}
		}
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return err
	case s.replay.Totals().Events == 0:
		return fmt.Errorf("--at: the log has no events (~e# or ~v# lines)")
	}
	s.noteBadFrees(bad)
	if s.dumps == nil {
		s.dumps = []*profile.Dump{s.moment(s.replay)}
	}
	return nil
}

// pair reads all input and returns the two dumps to compare.
func (s *session) pair() ([]*profile.Dump, error) {
	if err := s.read(allDumps); err != nil {
		return nil, err
	}
	if len(s.files) != 2 {
		list, err := s.complete(s.lastBoot())
		if err != nil {
			return nil, err
		}
		return []*profile.Dump{list[0], list[len(list)-1]}, nil
	}
	var pair []*profile.Dump
	for _, f := range s.files {
		d, err := s.lastOf(f)
		if err != nil {
			return nil, err
		}
		pair = append(pair, d)
	}
	switch {
	case s.Dump != "":
		return nil, cli.BadArgsf("--dump is for one log: of two, the last dumps are compared")
	case s.files[0] == s.files[1]:
		return nil, cli.BadArgsf("%s: compared with itself", s.files[0])
	}
	return pair, nil
}

// lastOf returns the last complete dump of a log.
func (s *session) lastOf(file string) (*profile.Dump, error) {
	name := file
	if file == cli.Stdio {
		name = logflags.Stdin
	}
	var last *profile.Dump
	for _, d := range s.dumps {
		if d.File == name && (d.Complete() || last == nil || !last.Complete()) {
			last = d
		}
	}
	switch {
	case last == nil && s.outcome != nil: // a note has reported the damage
		return nil, cli.Exit(cli.Usage)
	case last == nil:
		return nil, fmt.Errorf("%s: no dump", file)
	case !last.Complete():
		return nil, fmt.Errorf("%s: no dump in it is complete: %s", file, last.Incomplete())
	}
	return last, nil
}

// lastBoot returns the dumps of the last boot that has two or more complete dumps: a
// restart empties the heap, and sums across it would hide growth. With --dump, of several
// logs, or if no boot has two complete dumps, it returns all dumps.
func (s *session) lastBoot() []*profile.Dump {
	list, boots := s.bootOf(s.dumps)
	if len(list) < len(s.dumps) {
		s.note("%d boots; these are the dumps of boot %d; --dump all selects those of all boots", boots, list[0].Boot)
	}
	return list
}

// bootOf returns those of the dumps that lastBoot returns, and the number of boots.
func (s *session) bootOf(all []*profile.Dump) (list []*profile.Dump, boots int) {
	dumps, complete, last := map[int][]*profile.Dump{}, map[int]int{}, 0
	for _, d := range all {
		if s.Dump != "" || d.File != all[0].File {
			return all, 0
		}
		dumps[d.Boot] = append(dumps[d.Boot], d)
		if d.Complete() {
			complete[d.Boot]++
		}
		if complete[d.Boot] >= 2 {
			last = d.Boot
		}
	}
	if complete[last] < 2 {
		return all, len(dumps)
	}
	return dumps[last], len(dumps)
}

// complete returns the complete dumps, two or more, and notes the others. An incomplete dump
// cannot be compared, because its missing part is unknown.
func (s *session) complete(all []*profile.Dump) (list []*profile.Dump, err error) {
	var left []string
	for _, d := range all {
		if d.Complete() {
			list = append(list, d)
		} else {
			left = append(left, fmt.Sprintf("%s (%s)", d.Name, d.Incomplete()))
		}
	}
	if n := len(left) - 5; n > 0 {
		left = append(left[:5], fmt.Sprintf("%d more", n))
	}
	switch {
	case len(list) >= 2 && len(left) > 0:
		s.note("incomplete dumps are left out: %s", strings.Join(left, ", "))
	case len(list) >= 2:
	case len(left) > 0:
		return nil, fmt.Errorf("%s: %d of %s complete, expected two or more; not complete: %s",
			all[0].File, len(list), cli.Count(len(all), "dump"), strings.Join(left, ", "))
	default:
		return nil, s.onlyOne(list[0])
	}
	return list, nil
}

// onlyOne returns the error for input with a single dump. The message explains how to
// get more dumps.
func (s *session) onlyOne(d *profile.Dump) error {
	advice := "--split REGEX says at which line a dump begins"
	switch {
	case s.reader.Summary().Dumps > 1:
		advice = fmt.Sprintf("the input has %d: give another --dump", s.reader.Summary().Dumps)
	case d.Announced.HasRecords || s.reader.Summary().Records[recording.KindEvent] > 0:
		advice = "the device has to log its heap again, later; for a Linux program, btrecord --interval 10s does"
	}
	return fmt.Errorf("%s: one dump, expected two or more; %s", cmp.Or(d.File, title(d)), advice)
}

// samples is the least number of compared moments of a recording with events; twice as many is the most.
const samples = 40

// readSeries reads all dumps. A recording with fewer than four dumps in each boot and with
// events is sampled.
func (s *session) readSeries() error {
	s.moments = samples
	if err := s.read(allDumps); err != nil {
		return err
	}
	dumps := map[int]int{} // by boot
	for _, d := range s.dumps {
		dumps[d.Boot]++
		if dumps[d.Boot] == 4 {
			return nil
		}
	}
	if s.replay == nil || s.Dump != "" || s.moment != nil {
		return nil
	}
	s.dumps = s.replay.Moments()
	return nil
}
