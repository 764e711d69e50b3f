package report_test

import (
	"bytes"
	"context"
	"image/png"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func emulatePrint(ctx context.Context, target *chromedp.Target) error {
	_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	return err
}

// cornerBrightness returns the mean of red, green and blue in the lower left corner.
func cornerBrightness(t *testing.T, data []byte) int {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b := img.Bounds()
	red, green, blue, _ := img.At(b.Min.X+2, b.Max.Y-2).RGBA()
	return int((red + green + blue) / 3 >> 8)
}
