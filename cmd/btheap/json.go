package main

import heap "github.com/lwsbt/lwsbt/profile"

func (l *leaks) document(p *heap.Profile, found, functions *heap.Leaks) any { return nil }
