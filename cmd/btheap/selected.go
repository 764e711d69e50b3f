package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/profile"
)

// This file selects the dumps that a command reports on:
//
//	top, tree, peek, export, events  the last steady dump, the moment of --at, or the sum of those of --dump
//	diff, growth                     complete dumps: the first and last, or all, of the last boot with two
//	leaks, html                      all dumps; of a recording with events and few dumps, moments of the events

// latest keeps the dumps of a log from which choose selects.
type latest struct {
	steady, before, last *profile.Dump // the last steady dump before these two, and the last two; nil if there is none
	reason               string        // why the chosen dump is not the last one
}

// add takes the next dump.
func (l *latest) add(d *profile.Dump) {
	if l.before != nil {
		if _, reason := profile.Steady(l.before); reason == "" {
			l.steady = l.before
		}
	}
	l.before, l.last = l.last, d
}

// choose returns the last steady dump. If the recording has only events and
// dumps at exits, it returns the live blocks at the peak.
func (l *latest) choose(replay *profile.Replay) []*profile.Dump {
	list := slices.DeleteFunc([]*profile.Dump{l.steady, l.before, l.last}, func(d *profile.Dump) bool { return d == nil })
	if len(list) == 0 {
		return nil
	}
	i, reason := profile.Steady(list...)
	l.reason = reason
	events := replay != nil && list[i].Line == 0 // the blocks that are live after the last event
	if replay != nil && (events || i == len(list)-1 && reason != "") {
		l.reason = "peak"
		return []*profile.Dump{replay.Peak()}
	}
	return list[i : i+1]
}

// one returns the profile of the dump to report on: the last dump, or the sum of the dumps
// of --dump.
func (s *session) one() (*profile.Profile, error) {
	list, n := s.dumps, len(s.dumps)
	if s.reader != nil {
		n = s.reader.Summary().Dumps
	}
	if s.Dump == "" {
		list = list[len(list)-1:]
		s.noteDump(list[0], n)
	}
	d := profile.Sum(list...)
	if d.Loss.Saturated && (s.reader == nil || !slices.ContainsFunc(list, func(d *profile.Dump) bool { return d.Loss.Saturated })) {
		s.note("sums over 2^64-1 are reported as 2^64-1")
	}
	return s.profile([]*profile.Dump{d})
}

// noteDump prints which of n dumps the report is on.
func (s *session) noteDump(d *profile.Dump, n int) {
	switch {
	case s.latest.reason == "peak":
		s.note("this is what was live at the peak; --at end or a time selects another moment")
	case s.moment != nil || n < 2:
	case s.latest.reason != "" && d != s.latest.last:
		s.note("%d dumps; this is %s; %s is left out (%s); --dump N, A..B or all selects others", n, d.Name, s.latest.last.Name, s.latest.reason)
	default:
		s.note("%d dumps, of which this is the last; --dump N, A..B or all selects others, btheap leaks finds leaks in all of them", n)
	}
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

// parseMoment reads "peak", "end", or a time such as "2.5s".
func parseMoment(s string) (*instant, error) {
	at := atEnd
	switch s {
	case "end":
	case "peak":
		at = atPeak
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("%q, expected peak, end, or a time such as 2.5s", s)
		}
		at = instant(d)
	}
	return &at, nil
}

// instant is a moment of a recording: a time since the boot, or atPeak or atEnd.
type instant time.Duration

const (
	atPeak instant = -1 - iota // when the most bytes were live
	atEnd                      // after the last event
)

// readMoment reads the events of the logs. The only dump is what was live at the moment of --at.
func (s *session) readMoment() error {
	s.replay = profile.NewReplay()
	at := time.Duration(*s.moment)
	for e, err := range s.reader.Events() {
		if err != nil {
			if err := s.out.Add(err); err != nil {
				return err
			}
			continue
		}
		if s.dumps == nil && at >= 0 && e.Time > at {
			s.dumps = []*profile.Dump{s.replay.Live(at)}
		}
		if !s.replay.Add(*e) && s.badFree.Line == 0 {
			s.badFree = s.reader.Summary().At
		}
	}
	s.outcome = s.out.End()
	switch {
	case s.outcome != nil && cli.Code(s.outcome) != cli.Short:
		return s.outcome
	case s.replay.Totals().Events == 0:
		return fmt.Errorf("--at: the log has no events (~e# or ~v# lines)")
	}
	switch {
	case *s.moment == atPeak:
		s.dumps = []*profile.Dump{s.replay.Peak()}
	case *s.moment == atEnd:
		s.dumps = []*profile.Dump{s.replay.End()}
	case s.dumps == nil:
		s.dumps = []*profile.Dump{s.replay.Live(at)}
	}
	return nil
}

// pair returns the two dumps to compare.
func (s *session) pair() ([]*profile.Dump, error) {
	if len(s.files) == 2 {
		var last [2]*profile.Dump
		for _, d := range s.dumps {
			for i, f := range s.files {
				if f == cli.Stdio {
					f = logflags.Stdin
				}
				if d.File == f && (d.Complete() || last[i] == nil || !last[i].Complete()) {
					last[i] = d
				}
			}
		}
		for i, d := range last {
			switch {
			case d == nil && s.outcome != nil: // a note has reported the damage
				return nil, cli.Exit(cli.Usage)
			case d == nil:
				return nil, fmt.Errorf("%s: no dump", s.files[i])
			case !d.Complete():
				return nil, fmt.Errorf("%s: no dump in it is complete: %s", s.files[i], d.Incomplete())
			}
		}
		if s.Dump != "" {
			return nil, cli.BadArgsf("--dump is for one log: of two, the last dumps are compared")
		}
		if s.files[0] == s.files[1] {
			return nil, cli.BadArgsf("%s: compared with itself", s.files[0])
		}
		return last[:], nil
	}
	list, err := s.complete(s.lastBoot(s.dumps))
	if err != nil {
		return nil, err
	}
	return []*profile.Dump{list[0], list[len(list)-1]}, nil
}

// lastBoot returns the dumps of the last boot that has two or more complete dumps: a
// restart empties the heap, and sums across it would hide growth. With --dump, or if
// no boot has two complete dumps, it returns all dumps.
func (s *session) lastBoot(all []*profile.Dump) []*profile.Dump {
	list, boots := s.bootOf(all)
	if len(list) < len(all) {
		s.note("%d boots; these are the dumps of boot %d; --dump all selects those of all boots", boots, list[0].Boot)
	}
	return list
}

// bootOf returns the dumps that lastBoot returns, and the number of boots.
func (s *session) bootOf(all []*profile.Dump) ([]*profile.Dump, int) {
	boots, complete := map[int]bool{}, map[int]int{}
	for _, d := range all {
		if d.File != all[0].File {
			return all, 0 // the dumps are from several logs
		}
		boots[d.Boot] = true
		if d.Complete() {
			complete[d.Boot]++
		}
	}
	if s.Dump != "" || len(boots) < 2 {
		return all, len(boots)
	}
	for last := len(all) - 1; last >= 0; last-- {
		boot := all[last].Boot
		if complete[boot] < 2 {
			continue
		}
		return slices.DeleteFunc(slices.Clone(all), func(d *profile.Dump) bool { return d.Boot != boot }), len(boots)
	}
	return all, len(boots)
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
	case s.reader == nil:
		advice = "give the profile of another time, too"
	case s.reader.Summary().Dumps > 1:
		advice = fmt.Sprintf("the input has %d: give another --dump", s.reader.Summary().Dumps)
	case d.Announced.HasRecords || s.reader.Summary().Records[heaplog.KindEvent] > 0:
		advice = "btrecord --interval 10s writes one every 10 s; a device has to write more of them"
	}
	return fmt.Errorf("%s: one dump, expected two or more; %s", cmp.Or(d.File, title(d)), advice)
}

// samples is the number of compared moments of a recording with events.
const samples = 40

// readSeries reads all dumps. A recording with fewer than four dumps in each boot and with
// events is sampled.
func (s *session) readSeries() error {
	if err := s.read(); err != nil {
		return err
	}
	if s.replay != nil && s.Dump == "" && s.moment == nil && mostOfBoot(s.dumps) < 4 {
		return s.sampleEvents()
	}
	return nil
}

// mostOfBoot returns the largest number of dumps that a boot has.
func mostOfBoot(dumps []*profile.Dump) (most int) {
	n := map[int]int{}
	for _, d := range dumps {
		n[d.Boot]++
		most = max(most, n[d.Boot])
	}
	return most
}

// sampleEvents replaces the dumps by moments of the events.
func (s *session) sampleEvents() error {
	s.dumps = nil
	for d, err := range s.reader.Moments(samples) {
		if err == nil {
			s.dumps = append(s.dumps, d.Dump)
		} else if err := s.out.Add(err); err != nil {
			return fmt.Errorf("%w (the events are read twice)", err)
		}
	}
	return nil
}
