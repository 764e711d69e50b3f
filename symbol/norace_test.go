//go:build !race

package symbol

const raceFactor = 1
