package record

import "fmt"

// Error says why a program was not recorded.
type Error struct {
	Reason Reason
	Err    error
}

// Reason is the kind of an [Error].
type Reason int

// Reasons.
const (
	NotRecorded Reason = iota // or not completely
	NotRunnable               // the program cannot be executed
	NotFound                  // there is no such program or process
	BadArgument               // of the caller
	Unusable                  // a file that the caller names
	Failed                    // something else, such as the C compiler
)

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func fail(r Reason, format string, args ...any) error {
	return &Error{r, fmt.Errorf(format, args...)}
}
