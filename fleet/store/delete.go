package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DeleteDevice deletes what the store has of a device. No file has its name afterwards; the files in quarantine, which cannot be
// searched, are deleted, too. Questions that are being answered begin again.
func (s *Store) DeleteDevice(ctx context.Context, device string) error {
	if err := s.Compact(ctx, 0); err != nil { // which finds damaged files
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	err = s.deleteDumps("", "9999", func(d *Dump) bool { return d.Device == device })
	if err == nil {
		err = s.mergeJudged(0, func(d *JudgedDevice) bool { return d.Device != device })
	}
	if err != nil {
		return err
	}
	bad, err := s.names(Quarantined)
	for _, o := range bad {
		if err == nil {
			err = s.delete(o.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// deleteDumps deletes dumps, with their facts, of the days from one to another, and then all replaced files of these days.
func (s *Store) deleteDumps(from, to part, dropped func(*Dump) bool) error {
	parts, err := s.parts(Dumps)
	if err != nil {
		return err
	}
	for _, c := range parts {
		if c.part < from || c.part >= to {
			continue
		}
		for _, base := range slices.Clone(c.live) {
			dumps, err := Read[Dump](s, c.name(Dumps, base))
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(dumps, func(d Dump) bool { return dropped(&d) }) {
				continue
			}
			batch, _, err := s.merge(c.part, []string{base}, 1, dropped)
			if err != nil {
				return err
			}
			if err := s.replace(&c, batch, []string{base}); err != nil {
				return err
			}
		}
		if err := s.clean(&c, batchTables, 0); err != nil {
			return err
		}
	}
	return nil
}

// dropLabels deletes the dumps with a label on days that ended longer ago than its age. It searches a day once per process.
func (s *Store) dropLabels(ages map[string]time.Duration, now time.Time) error {
	for label, age := range ages {
		name, value, _ := strings.Cut(label, "=")
		to := dayPart(now.Add(-age))
		if err := s.deleteDumps(s.dropped[label], to, func(d *Dump) bool { return d.Labels[name] == value }); err != nil {
			return err
		}
		s.dropped[label] = to
	}
	return nil
}
