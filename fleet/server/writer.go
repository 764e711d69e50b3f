package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Writer writes the uploads of a spool to a store.
type Writer struct {
	Spool *Spool
	Store store.Putter
	// DeleteDevice deletes a device from the store.
	DeleteDevice func(ctx context.Context, device string) error
	Log          *slog.Logger
	// MaxUploads and MaxFacts limit a batch, and so the memory of the writer.
	MaxUploads, MaxFacts int
	Metrics              *Metrics

	writing sync.Mutex
}

// Delete writes all waiting uploads to the store, and deletes a device from the spool and the store.
func (w *Writer) Delete(ctx context.Context, device string) error {
	if err := w.Flush(ctx); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.Spool.forget(device); err != nil {
		return err
	}
	return w.DeleteDevice(ctx, device)
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
		start := time.Now()
		more, err := w.Write(ctx)
		next := interval
		switch {
		case err != nil && ctx.Err() == nil:
			w.Log.Error("writing to the store failed; it is tried again", "err", err)
			w.Metrics.Failures.Inc()
			w.Spool.failing.CompareAndSwap(nil, &start)
		case err == nil:
			w.Spool.failing.Store(nil)
			if more {
				next = 0
			}
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
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := os.MkdirAll(w.Spool.path("batch"), 0o700); err != nil {
		return false, err
	}
	names, err := w.Spool.list("batch") // of a server that was killed, or a store that failed
	if err != nil {
		return false, err
	}
	waiting, err := w.Spool.Waiting()
	if err != nil {
		return false, err
	}
	if len(names) == 0 {
		if names = w.plan(waiting); len(names) == 0 {
			return false, nil
		}
		if err := w.Spool.begin(names); err != nil {
			return false, err
		}
		waiting = waiting[len(names):]
	}
	rows, devices, bad := w.rows(names)
	rows.Day = timeOf(names[0])
	rows.Name = strings.Replace(names[0], "-", fmt.Sprintf("-%d-", len(names)), 1)
	if err := w.Store.Put(ctx, rows); err != nil {
		return false, err
	}
	if err := w.Spool.end(names, devices, bad); err != nil {
		return false, err
	}
	w.Metrics.Dumps.Add(float64(len(rows.Dumps)))
	w.Metrics.Rows.Add(float64(len(rows.Facts)))
	w.Log.Info("batch written", "name", rows.Name, "uploads", len(names), "dumps", len(rows.Dumps), "facts", len(rows.Facts))
	return len(waiting) > 0, nil
}

// plan chooses the uploads of a batch. They are of one day, since a file belongs to one day.
func (w *Writer) plan(waiting []string) []string {
	first, total := "", 0
	for i, name := range waiting {
		day, facts := timeOf(name).Format(time.DateOnly), costOf(name)
		if i == 0 {
			first = day
		}
		if total += facts; i > 0 && (i == w.MaxUploads || day != first || total > w.MaxFacts) {
			return waiting[:i]
		}
	}
	return waiting
}

// rows reads uploads of a batch, and returns their devices. bad are those that cannot be read, such as after a fault of the disk.
func (w *Writer) rows(names []string) (rows *store.Batch, devices, bad []string) {
	rows = &store.Batch{}
	for _, name := range names {
		e, err := w.Spool.read("batch", name, rows)
		if err != nil {
			w.Log.Error("upload set aside in the directory bad of the spool", "upload", name, "err", err)
			w.Metrics.LeftOut.Inc()
			bad = append(bad, name)
			continue
		}
		devices = append(devices, e.Device)
	}
	return rows, devices, bad
}
