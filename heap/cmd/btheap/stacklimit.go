package main

import (
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// stackLimit limits the call sites of a list of stacks: a few bytes of a log may add a stack that
// shares a thousand outer call sites with others. The first maxStackSites call sites are listed; stacks
// from there on have only those that they share with no other row, and the last one says so.
type stackLimit struct {
	cut   int // stacks that lack outer call sites
	sites int
}

const maxStackSites = 1 << 18

// outerLeftOut is the outermost call site of a stack that lacks others.
var outerLeftOut = profile.Site{Func: "(outer frames left out)"}

// stack returns the call sites of a row, innermost first, as far as the limit allows.
func (l *stackLimit) stack(r profile.Row) []profile.Site {
	if l.sites < maxStackSites {
		stack := r.Stack()
		l.sites += len(stack)
		return stack
	}
	node, inner := r.Place()
	if node == 0 {
		return inner
	}
	l.cut++
	if site, ok := r.Site(); ok && len(inner) == 0 {
		inner = []profile.Site{site}
	}
	return append(inner, outerLeftOut)
}

// leak returns the call sites of a leak, as far as the limit allows.
func (l *stackLimit) leak(k *growth.Leak) []profile.Site {
	if row, ok := k.Row(); ok {
		return l.stack(row)
	}
	return k.Stack()
}
