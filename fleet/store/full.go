package store

import (
	"errors"
	"syscall"
)

// Full reports whether an error says that no space is left.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
