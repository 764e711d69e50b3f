package heaplog

const bufSize = 256 << 10

type input struct{}

type snapshot struct{}

func fileInput(path string) (*input, error)       { panic("to do") }
func streamInput(r any, name string) *input       { panic("to do") }
func followInput(path string) (*input, error)     { panic("to do") }
func parseSnapshot(spec string) (snapshot, error) { panic("to do") }
