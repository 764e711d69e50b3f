package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// lease is the content of leases/WHAT/NUMBER.json. The one with the highest number counts, and only
// its owner changes it. A number is written under the condition that it is new.
type lease struct {
	Owner   string
	Expires time.Time
}

// Lease acquires the right to do something, which only one process has at a time. ok is false if
// another process has it. If a process ends without calling release, it loses the right after
// length.
func (s *Store) Lease(ctx context.Context, what, owner string, length time.Duration) (release func(), ok bool, err error) {
	dir := "leases/" + what + "/"
	list, err := s.names(ctx, dir)
	if err != nil {
		return nil, false, err
	}
	last := 0
	if len(list) > 0 {
		name := list[len(list)-1].Name
		if _, err := fmt.Sscanf(path.Base(name), "%d.json", &last); err != nil {
			return nil, false, fmt.Errorf("store: %s: expected a number", name)
		}
		var l lease
		old, err := s.bucket.read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) { // another process has just got the next number
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("store: %s: %w", name, err)
		}
		if json.Unmarshal(old, &l) == nil && time.Now().Before(l.Expires) {
			return nil, false, nil
		}
	}
	name := fmt.Sprintf("%s%012d.json", dir, last+1)
	write := func(ctx context.Context, once bool, expires time.Time) error {
		data, err := json.Marshal(lease{owner, expires})
		if err != nil {
			return err
		}
		return s.put(ctx, name, once, data)
	}
	err = write(ctx, true, time.Now().Add(length))
	if errors.Is(err, ErrExists) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	// If this process was slow, the number may have been taken and deleted before: a higher one exists then.
	now, err := s.names(ctx, dir)
	if err != nil {
		return nil, false, err
	}
	ok = len(now) > 0 && now[len(now)-1].Name == name
	if !ok {
		list = []Object{{Name: name}}
	}
	for _, o := range list {
		if err := s.delete(ctx, o.Name); err != nil {
			return nil, false, fmt.Errorf("store: %w", err)
		}
	}
	return func() { write(context.WithoutCancel(ctx), false, time.Time{}) }, ok, nil
}
