package store

import (
	"errors"
	"syscall"
)

// Full reports whether a full disk caused an error.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
