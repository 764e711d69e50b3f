package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// alerts is the prefix of the alerts that were sent.
const alerts = "alerts"

// Sent reports whether an alert of a build was sent.
func (s *Store) Sent(ctx context.Context, build, alert string) (bool, error) {
	_, err := s.Read(path.Join(alerts, Escape(build), alert))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	return true, nil
}

// MarkSent stores that an alert of a build was sent.
func (s *Store) MarkSent(ctx context.Context, build, alert string) error {
	return s.put(path.Join(alerts, Escape(build), alert), []byte("sent\n"))
}
