package dwarf

import "errors"

// Budget limits the memory and time to read the debug information of one file. The limits
// grow with the size of the file. The output of compilers needs a fraction of them.
type Budget struct {
	steps int64 // remaining steps: entries, rows and the like
	bytes int64 // remaining memory
	most  int64 // steps that remain after a lookup, at most
}

// The budget of a file is a floor plus an amount per byte of the file.
const (
	FloorBytes   = 64 << 20
	BytesPerByte = 16
	FloorSteps   = 1 << 25 // a step takes about 10 to 40 ns
	StepsPerByte = 8

	stepsPerLookup = 1 << 12 // additional steps for each address
)

// ErrBudget is the error for a file that exceeds its budget.
var ErrBudget = errors.New("its debug information takes more memory or time to read than a file of its size should")

// NewBudget returns the budget of a file of size bytes.
func NewBudget(size int64) *Budget {
	return &Budget{steps: FloorSteps + StepsPerByte*size, bytes: FloorBytes + BytesPerByte*size}
}

// Grow adds what another file of size bytes may take, without a floor.
func (b *Budget) Grow(size int64) {
	if !b.exceeded() {
		b.steps, b.most, b.bytes = b.steps+StepsPerByte*size, b.most+StepsPerByte*size, b.bytes+BytesPerByte*size
	}
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
