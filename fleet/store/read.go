package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Damaged is the error for a file that is not what was written.
type Damaged struct {
	Name string // of the file
	Err  error  // what is wrong
}

func (d *Damaged) Error() string { return fmt.Sprintf("store: %s is damaged: %v", d.Name, d.Err) }
func (d *Damaged) Unwrap() error { return d.Err }

// Read returns the rows of a file. T is the row type of its table. The error is a [Damaged] if the content is not what was written.
func Read[T any](s *Store, name string) (rows []T, err error) {
	data, err := s.Read(name)
	if err != nil {
		return nil, err
	}
	if err = Check(data); err == nil {
		rows, err = parquet.Read[T](bytes.NewReader(data), int64(len(data)))
	}
	if errors.Is(err, ErrSchema) {
		err = fmt.Errorf("store: %s %w", name, err)
	} else if err != nil {
		err = &Damaged{name, err}
	}
	return rows, err
}

// Quarantined is the prefix of the files that were damaged.
const Quarantined = "quarantine/"

// Quarantine moves a damaged file, with the other files of its batch, from its table to quarantine/TABLE, if it is not there. Answers
// are without them.
func (s *Store) Quarantine(ctx context.Context, name string) error {
	table, rest, _ := strings.Cut(name, "/")
	if strings.HasPrefix(name, Quarantined) {
		return nil
	}
	tables := []string{Dumps, Facts, Paths} // without its dumps, no reader uses the other files of a batch
	switch table {
	case Frames:
		tables = []string{Frames}
	case JudgedDevices, JudgedPaths:
		tables = []string{JudgedDevices, JudgedPaths}
	}
	for _, t := range tables {
		data, err := s.Read(t + "/" + rest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = s.put(Quarantined+t+"/"+rest, data)
		}
		if err == nil {
			err = s.delete(t + "/" + rest)
		}
		if err != nil {
			return fmt.Errorf("store: %s: %w", name, err)
		}
	}
	return nil
}
