package store

import (
	"errors"
	"syscall"
)

// Full reports whether the cause of an error is that no space is left.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
