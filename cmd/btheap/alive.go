package main

import "io"

func (l *leaks) writeAlive(w io.Writer) error { return nil }
