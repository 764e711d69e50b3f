package dwarf

import "errors"

// Budget bounds what reading the debug information of one file may cost, so that
// a small file cannot take all of a machine. It is in proportion to the file's
// size, with a floor; programs as compilers write them need a fraction of it.
type Budget struct {
	steps int64 // entries, rows and the like that may still be read
	bytes int64 // of memory that may still be taken
}

// The budget of a file: a minimum, and an amount for each byte of its size.
const (
	FloorBytes   = 64 << 20
	BytesPerByte = 16
	FloorSteps   = 1 << 25 // a step takes some 10 ns
	StepsPerByte = 8

	stepsPerLookup = 1 << 12 // what an address may cost beside that
	bytesPerStep   = 64      // of a string that is skipped
)

// ErrBudget is the error for a file that exceeds its budget.
var ErrBudget = errors.New("its debug information takes more memory or time to read than a file of its size should")

// NewBudget returns the budget of a file of size bytes.
func NewBudget(size int64) *Budget {
	return &Budget{steps: FloorSteps + StepsPerByte*size, bytes: FloorBytes + BytesPerByte*size}
}

// Step uses n steps, and reports whether the budget had n steps left.
func (b *Budget) Step(n int) bool {
	b.steps -= int64(n)
	return b.steps >= 0
}

// Alloc uses n bytes, and reports whether the budget had n bytes left.
func (b *Budget) Alloc(n int64) bool {
	if n < 0 || n > b.bytes {
		b.bytes = -1
		return false
	}
	b.bytes -= n
	return true
}

// Left returns the number of bytes left.
func (b *Budget) Left() int64 { return max(b.bytes, 0) }

// exceeded reports whether the budget is exceeded.
func (b *Budget) exceeded() bool { return b.steps < 0 || b.bytes < 0 }
