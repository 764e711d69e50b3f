package conformance

import "github.com/lwsbt/lwsbt/codec"

// reasons are the names a rejection can have. (BT-REJ-1)
func reasons() []string {
	var names []string
	for _, r := range codec.Reasons() {
		names = append(names, string(r))
	}
	return names
}

func isReason(name string) bool {
	for _, r := range codec.Reasons() {
		if string(r) == name {
			return true
		}
	}
	return false
}
