package heaplog

// banners are texts that devices print when they boot.
var banners = [...]string{
	"*** Booting ",              // Zephyr, Zephyr's MCUboot
	"rst:0x",                    // ESP32's boot ROM
	"rst cause:",                // ESP8266's
	"MPY: soft reboot",          // MicroPython
	"Linux version ",            //
	"Booting Linux on physical", //
	"NuttShell (NSH)",           // NuttX
	"U-Boot 2",                  // U-Boot 2024.01
	"OpenWrt SDK boot",          //
}

// bannerStart marks the first bytes of all banners.
var bannerStart = func() (t [256]bool) {
	for _, b := range banners {
		t[b[0]] = true
	}
	return t
}()

// isBanner reports whether a line is a boot banner.
func isBanner(line []byte) bool {
	for i, c := range line {
		if !bannerStart[c] {
			continue
		}
		for _, b := range banners {
			if c == b[0] && len(line)-i >= len(b) && string(line[i:i+len(b)]) == b {
				return true
			}
		}
	}
	return false
}
