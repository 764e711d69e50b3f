//go:build race

package symbol

// raceFactor is how much longer the race detector may let a test take.
const raceFactor = 15
