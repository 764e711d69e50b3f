package core

import "syscall"

// release gives the pages of a mapped file back to the system, until they are read again.
func (s *source) release() { syscall.Madvise(s.data, syscall.MADV_DONTNEED) } // without effect on errors
