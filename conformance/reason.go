package conformance

import "github.com/lwsbt/lwsbt/codec"

// reasons returns the names of all reasons for rejections and refusals. (BT-REJ-1, BT-REJ-2)
func reasons() []string {
	var names []string
	for _, list := range [][]codec.Reason{codec.Reasons(), codec.RecordingReasons(), codec.PathReasons(), codec.RefusalReasons()} {
		for _, r := range list {
			names = append(names, string(r))
		}
	}
	return names
}
