package query

import (
	"slices"
	"testing"
)

// The texts are those that DuckDB and ClickHouse write of lists. Others, such as a number that the sums cannot have, are an error.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]numbers{"[]": {}, "[7]": {7}, "[1, 20, 9223372036854775807]": {1, 20, 1<<63 - 1}, "[1,0]": {1, 0}} {
		var n numbers
		if err := n.Scan(text); err != nil || !slices.Equal(n, want) {
			t.Errorf("%s: %v, %v", text, n, err)
		}
	}
	for _, v := range []any{nil, int64(1), "[-1]", "[1, NULL]", "[1.5]"} {
		if err := new(numbers).Scan(v); err == nil {
			t.Errorf("%v is accepted", v)
		}
	}
}
