package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// Writer writes the uploads of a spool to a store.
type Writer struct {
	Spool *Spool
	Store interface {
		Put(ctx context.Context, b *store.Batch) error
	}
	Limits ingest.Limits
	Log    *slog.Logger
	// MaxUploads and MaxFacts limit a batch, and so the memory of the writer.
	MaxUploads, MaxFacts int
	Metrics              *Metrics
}

// Run writes the waiting uploads every interval, or sooner if there are many, until ctx is done.
func (w *Writer) Run(ctx context.Context, interval time.Duration) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		more, err := w.Write(ctx)
		next := interval
		switch {
		case err != nil && ctx.Err() == nil:
			w.Log.Error("writing to the store failed; it is tried again", "err", err)
			w.Metrics.Failures.Inc()
		case more:
			next = 0
		}
		wait.Reset(next)
	}
}

// Flush writes all waiting uploads.
func (w *Writer) Flush(ctx context.Context) error {
	for {
		more, err := w.Write(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// Write writes one batch. more reports whether more uploads are waiting.
func (w *Writer) Write(ctx context.Context) (more bool, err error) {
	b, err := w.Spool.unfinished()
	if err != nil {
		return false, err
	}
	waiting, err := w.Spool.Waiting()
	if err != nil || b == nil && len(waiting) == 0 {
		return false, err
	}
	if b == nil {
		if b, err = w.plan(waiting); err != nil || b == nil {
			return false, err
		}
		if err := w.Spool.begin(b); err != nil {
			return false, err
		}
	}
	if w.Spool.removed(b) {
		return true, w.Spool.end(b, nil, nil)
	}
	rows, entries, bad, err := w.rows(ctx, b)
	if err != nil {
		return false, err
	}
	if err := w.Store.Put(ctx, rows); err != nil {
		return false, err
	}
	if err := w.Spool.end(b, entries, bad); err != nil {
		return false, err
	}
	w.Metrics.Dumps.Add(float64(len(rows.Dumps)))
	w.Metrics.Rows.Add(float64(len(rows.Facts)))
	w.Log.Info("batch written", "name", b.Name, "uploads", len(b.Uploads), "dumps", len(rows.Dumps), "facts", len(rows.Facts))
	return len(waiting) > len(b.Uploads), nil
}

// plan chooses the uploads of a batch, nil if none can be read. They are of one day, since a
// file belongs to one day.
func (w *Writer) plan(waiting []string) (*batch, error) {
	b := &batch{States: map[string]ingest.State{}}
	day := ""
	facts := 0
	for _, name := range waiting {
		if len(b.Uploads) >= w.MaxUploads {
			break
		}
		u, n, err := w.Spool.read(name)
		if err != nil {
			if aside := w.Spool.setAside(name); aside != nil {
				return nil, errors.Join(err, aside)
			}
			w.setAside(err)
			continue
		}
		if d := u.Received.UTC().Format(time.DateOnly); day == "" {
			day = d
		} else if d != day {
			break
		}
		if facts += n; facts > w.MaxFacts && len(b.Uploads) > 0 {
			break
		}
		b.States[u.Device] = w.Spool.state(u.Device)
		b.Uploads = append(b.Uploads, name)
	}
	if len(b.Uploads) == 0 {
		return nil, nil
	}
	b.Name = strings.Replace(b.Uploads[0], "-", "-"+fmt.Sprint(len(b.Uploads))+"-", 1)
	return b, nil
}

// rows reads the uploads of a batch. It leaves out unreadable uploads; there should be none,
// since the server has checked them before. bad are those whose file cannot be read.
func (w *Writer) rows(ctx context.Context, b *batch) (rows *store.Batch, entries []entry, bad []string, err error) {
	states := maps.Clone(b.States)
	rows = &store.Batch{Name: b.Name}
	for _, name := range b.Uploads {
		u, _, err := w.Spool.read(name)
		if err != nil {
			w.setAside(err)
			bad = append(bad, name)
			continue
		}
		rows.Day = u.Received
		state := states[u.Device]
		_, err = u.Read(ctx, rows, &state, w.Limits)
		if ctx.Err() != nil {
			return nil, nil, nil, ctx.Err()
		}
		if err != nil {
			w.Log.Warn("upload left out", "device", u.Device, "upload", name, "err", err)
			w.Metrics.LeftOut.Inc()
		}
		states[u.Device] = state
		entries = append(entries, entry{Sum: u.Sum(), Device: u.Device, State: state})
	}
	return rows, entries, bad, nil
}

// setAside reports that an upload is moved to the directory bad, because of err.
func (w *Writer) setAside(err error) {
	w.Log.Error("upload set aside in the directory bad of the spool", "err", err)
	w.Metrics.LeftOut.Inc()
}
