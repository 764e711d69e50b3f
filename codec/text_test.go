package codec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

func TestParseLine(t *testing.T) {
	const spoilt = "BT-B64-2"
	tests := []struct {
		name, line string
		want       string // bytes; "" if rejected
		reason     codec.Reason
		off        int
		clause     string
	}{
		{"README", readmeLine, string(unhex(t, readmeHex)), "", 0, ""},
		{"one character of padding", "~m#AAE=", "\x00\x01", "", 0, ""},
		{"two characters of padding", "~m#AQ==", "\x01", "", 0, ""},
		{"both last characters of the alphabet", "~m#+/+/", "\xfb\xff\xbf", "", 0, ""},
		{"no lead-in", "AAE=", "", "lead-in", 0, "BT-TEXT-1"},
		{"the other lead-in", "~b#AAE=", "", "lead-in", 0, "BT-TEXT-1"},
		{"a blank before", " ~m#AAE=", "", "lead-in", 0, "BT-TEXT-1"},
		{"half a lead-in", "~m", "", "lead-in", 0, "BT-TEXT-1"},
		{"URL alphabet", "~m#-_-_", "", "base64", 3, spoilt},
		{"padding missing", "~m#AAE", "", "base64", 6, spoilt},
		{"half the padding", "~m#AQ=", "", "base64", 5, spoilt},
		{"padding too long", "~m#AAE==", "", "base64", 6, spoilt},
		{"padding after whole groups", "~m#AAAA====", "", "base64", 7, spoilt},
		{"padding inside", "~m#AA=A", "", "base64", 5, spoilt},
		{"one character over", "~m#AAAAA", "", "base64", 8, spoilt},
		{"unused bits set", "~m#AAF=", "", "base64", 5, spoilt},
		{"unused bits set, two of padding", "~m#AB==", "", "base64", 4, spoilt},
		{"blank inside", "~m#AA E=", "", "base64", 5, spoilt},
		{"line end after", "~m#AAE=\n", "", "base64", 6, spoilt},
		{"line ends that fill a group", "~m#AAE=\r\n\r\n", "", "base64", 6, spoilt},
		{"line end inside", "~m#AA\nE=", "", "base64", 5, spoilt},
		{"NUL", "~m#AA\x00=", "", "base64", 5, spoilt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := codec.Decoder{}.ParseLine([]byte("before"), []byte(tt.line))
			if tt.reason != "" {
				wantError(t, err, tt.reason, tt.off, tt.clause)
				if string(got) != "before" {
					t.Errorf("%q beside the error", got)
				}
				return
			}
			if err != nil || string(got) != "before"+tt.want {
				t.Errorf("got %x, %v; want %x", got, err, "before"+tt.want)
			}
			if back := codec.AppendLine(nil, []byte(tt.want)); string(back) != tt.line {
				t.Errorf("written back as %s", back)
			}
		})
	}
}

func TestParseLineLenient(t *testing.T) {
	tests := []struct {
		name, line, want string
		off              int // of the fault, -1 for none
	}{
		{"as strict", "~m#AAE=", "\x00\x01", -1},
		{"no lead-in", "AAE=", "\x00\x01", -1},
		{"URL alphabet", "~m#-_+/", "\xfb\xff\xbf", -1},
		{"padding missing", "~m#AAE", "\x00\x01", -1},
		{"two of padding missing", "~m#AQ", "\x01", -1},
		{"half the padding", "~m#AQ=", "\x01", -1},
		{"spaces and line ends", " ~m# A\tA\rE\n= \r\n", "", 1}, // a space before is not a lead-in
		{"spaces and line ends after it", "~m# A\tA\rE\n= \r\n", "\x00\x01", -1},
		{"nothing at all", "", "", -1},
		{"padding alone", "~m#=", "", 3},
		{"padding too long", "~m#AAE==", "", 7},
		{"text after padding", "~m#AAE=A", "", 7},
		{"one character over", "~m#AAAAA", "", 8},
		{"unused bits set", "~m#AAF", "", 6},
		{"unused bits set, one byte", "~m#AB", "", 5},
		{"other character", "~m#AA.E", "", 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := codec.Decoder{Lenient: true}.ParseLine([]byte("before"), []byte(tt.line))
			if tt.off >= 0 {
				wantError(t, err, "base64", tt.off, "BT-B64-3")
				tt.want = ""
			} else if err != nil {
				t.Fatal(err)
			}
			if string(got) != "before"+tt.want {
				t.Errorf("got %q, want %q", got, "before"+tt.want)
			}
		})
	}
}

// Blobs of every length up to three groups, with every last character, round-trip.
func TestLineRoundTrip(t *testing.T) {
	for n := range 10 {
		for b := range 256 {
			blob := bytes.Repeat([]byte{byte(b)}, n)
			line := codec.AppendLine(nil, blob)
			got, err := codec.Decoder{}.ParseLine(nil, line)
			if err != nil || !bytes.Equal(got, blob) {
				t.Fatalf("%x is written %s and read %x, %v", blob, line, got, err)
			}
			loose := strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(string(line)), "=")
			if got, err := (codec.Decoder{Lenient: true}).ParseLine(nil, []byte(loose)); err != nil || !bytes.Equal(got, blob) {
				t.Fatalf("%x from %s is read %x, %v", blob, loose, got, err)
			}
		}
	}
}

func TestParseDecoded(t *testing.T) {
	full := "~b#size: 1," + strings.Repeat(" 0x1", 32)
	tests := []struct {
		name, line string
		want       *codec.Stack
		reason     codec.Reason
		off        int
	}{
		{"README", "~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294", readmeStack(), "", 0},
		{"a blank after, as lws's tool leaves one", "~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294 \r\n", readmeStack(), "", 0},
		{"empty", "~b#size: 0,", stackOf(0), "", 0},
		{"empty, from lws's tool", "~b#size: 0, ", stackOf(0), "", 0},
		{"largest numbers", "~b#size: 18446744073709551615, 0xffffffffffffffff", stackOf(1<<64-1, 1<<64-1), "", 0},
		{"upper case, leading zeros", "~b#size: 007, 0x00000000000000000AB", stackOf(7, 0xab), "", 0},
		{"32 frames", full, stackOf(1, ones(32)...), "", 0},
		{"33 frames", full + " 0x1", nil, "decoded-line", len(full)},
		{"no lead-in", "size: 1, 0x1", nil, "lead-in", 0},
		{"the other lead-in", "~m#size: 1, 0x1", nil, "lead-in", 0},
		{"no size", "~b#0x1", nil, "decoded-line", 3},
		{"size in hexadecimal", "~b#size: 0x10, 0x1", nil, "decoded-line", 10},
		{"size missing", "~b#size: , 0x1", nil, "decoded-line", 9},
		{"size of 2^64", "~b#size: 18446744073709551616,", nil, "decoded-line", 28},
		{"comma missing", "~b#size: 1 0x1", nil, "decoded-line", 10},
		{"nothing after the size", "~b#size: 1", nil, "decoded-line", 10},
		{"two blanks", "~b#size: 1,  0x1", nil, "decoded-line", 11},
		{"no 0x", "~b#size: 1, 12", nil, "decoded-line", 11},
		{"no digits", "~b#size: 1, 0x", nil, "decoded-line", 14},
		{"address of 2^64", "~b#size: 1, 0x10000000000000000", nil, "decoded-line", 30},
		{"comma between addresses", "~b#size: 1, 0x1, 0x2", nil, "decoded-line", 15},
		{"text after", "~b#size: 1, 0x1 done", nil, "decoded-line", 15},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := readmeStack()
			err := codec.ParseDecoded(s, []byte(tt.line))
			if tt.reason != "" {
				wantError(t, err, tt.reason, tt.off, "BT-TEXT-2")
				tt.want = stackOf(0)
			} else if err != nil {
				t.Fatal(err)
			}
			wantStack(t, s, tt.want)
		})
	}
}

// Addresses of every length, and every digit in every place.
func TestAppendDecodedDigits(t *testing.T) {
	for length := range 17 {
		for digit := range uint64(16) {
			pc := digit << (4 * max(0, length-1))
			for _, pc := range []uint64{pc, pc | 1, 0xfedcba9876543210 >> (4 * (16 - length)), pc ^ 0x123456789abcdef} {
				got := codec.AppendDecoded(nil, stackOf(1, pc))
				if want := fmt.Sprintf("~b#size: 1, %#x", pc); string(got) != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		}
	}
}
