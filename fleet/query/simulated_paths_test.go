package query

import "math"

// source describes a call path, which all builds share, and the number of its blocks.
type source struct {
	pathKind pathKind
	level    float64 // typical number of blocks
	size     int64   // bytes per block
	a, b     float64 // from 0 to 1: parameters whose meaning depends on the pathKind
	frames   []uint64
}

// pathKind is the way in which the blocks of a path change over time. No pathKind is a leak.
type pathKind int

const (
	constant  pathKind = iota
	noise              // independent at each dump
	slowNoise          // correlated over some dumps
	cycle              // by the time of day
	flushed            // fills, then is emptied
	logarithm          // grows with the logarithm of the uptime
	warmUp             // fills within hours of the boot
	stepOnce           // grows once, at some time after the boot
	buffer             // one block, whose size varies
	walk               // a random walk between two limits
	rare               // on one device in ten
	pathKinds

	fill // fleet.Caches
	refill
	root
)

// kindOf maps a number from 0 to 1 to a pathKind; 30 % of the range are constant.
func kindOf(u float64) pathKind {
	if u < 0.3 {
		return constant
	}
	return noise + pathKind((u-0.3)/0.7*float64(pathKinds-noise))
}

// sources returns the call paths. They are the same in each build.
func (f *fleet) sources() []source {
	list := make([]source, f.Paths)
	for i := range list {
		u := func(n uint64) float64 { return float64(hash(f.Seed, 8, uint64(i), n)>>11) / (1 << 53) }
		list[i] = source{pathKind: kindOf(u(0)), level: math.Exp(math.Log(2) + u(1)*math.Log(60)), size: 16 << int(u(2)*5), a: u(3), b: u(4)}
		if i == f.Leak.Path {
			list[i].pathKind = noise
			list[i].size = 16 << int(u(2)*3)
		}
		if f.Caches != NoCaches && i%3 == 0 && i != f.Leak.Path {
			list[i].pathKind = fill + pathKind(f.Caches-Fill)
			list[i].level *= 4
		}
		list[i].frames = f.stack(i)
	}
	return list
}

// gauss returns a number with mean 0 and variance 1, approximately normally distributed.
func gauss(h uint64) float64 {
	sum := float64(h&0xffff) + float64(h>>16&0xffff) + float64(h>>32&0xffff) + float64(h>>48)
	return (sum/65536 - 2) * math.Sqrt(3)
}

// blocks returns the number of live blocks of a path, without the leak, and their mean size.
func (f *fleet) blocks(s *source, device, path int, m *simMoment) (count, size int64) {
	own := hash(f.Seed, 9, uint64(device), uint64(path))
	level := s.level * math.Exp(f.Spread*gauss(own))
	noiseAt := func(n int) float64 { return gauss(hash(own, uint64(n))) }
	hours := m.uptime.Hours()
	size = s.size
	days := float64(f.Days) * 24
	now := m.received.Sub(f.Start).Hours() / days // 0 to 1
	if s.pathKind > constant && s.pathKind != buffer {
		level *= 1 + f.Load*now
	}
	switch s.pathKind {
	case noise:
		level *= 1 + 0.25*noiseAt(m.n)
	case slowNoise:
		level *= 1 + 0.2*f.correlated(own, m.n)
	case cycle:
		level *= 1 + 0.3*math.Sin(2*math.Pi*(float64(m.received.Unix()%86400)/86400+s.a)) + 0.05*noiseAt(m.n)
	case flushed:
		period := 2 + 60*s.a
		if f.Every > 0 {
			period = (0.2 + 0.6*s.a) * f.Every.Hours()
		}
		level *= math.Mod(hours+period*float64(own%997)/997, period) / period
	case logarithm:
		level *= math.Log(1+hours)/5 + 0.05*noiseAt(m.n)
	case warmUp:
		level *= 1 - math.Exp(-hours/(1+12*s.a)) + 0.05*noiseAt(m.n)
	case stepOnce:
		if hours > 150*float64(own%991)/991 {
			level *= 1.5
		}
	case buffer:
		return 1, int64(s.level * float64(s.size) * math.Exp(0.3*noiseAt(m.n)))
	case walk:
		level *= 1 + 0.4*f.walked(own, m.n)
	case fill:
		level *= min(1, now/0.9) + 0.02*noiseAt(m.n)
	case refill:
		level *= 1 - math.Exp(-hours/(0.5+4*s.a)) + 0.02*noiseAt(m.n)
	case root:
		level *= math.Sqrt(hours/days) + 0.02*noiseAt(m.n)
	case rare:
		if own%10 != 0 {
			return 0, 0
		}
		level *= 1 + 0.5*noiseAt(m.n)
	}
	return int64(math.Round(math.Max(0, level))), size
}

// correlated returns noise in which consecutive values have a correlation of 0.7.
func (f *fleet) correlated(own uint64, n int) (x float64) {
	weight := math.Sqrt(1 - 0.7*0.7)
	for i := range 12 {
		x += weight * gauss(hash(own, uint64(n-i)+1<<32))
		weight *= 0.7
	}
	return x
}

// walked returns a random walk from −1 to 1, reflected at these limits.
func (f *fleet) walked(own uint64, n int) float64 {
	x := 4 * float64(own%983) / 983 // begins anywhere
	for i := range n {
		x += 0.4 * gauss(hash(own, uint64(i)))
	}
	x = math.Mod(math.Mod(x, 4)+4, 4) // 0 to 4: up and down
	return math.Abs(x-2) - 1
}

// stack returns the code offsets of a path, innermost first. Paths share outer frames, as in a
// real program.
func (f *fleet) stack(path int) []uint64 {
	list := []uint64{uint64(path)*37 + 0x4000}
	for n := path; n > 0; n /= 5 {
		list = append(list, uint64(n/5)*53+0x1000)
	}
	return append(list, 0x142)
}

// PathID returns the identifier of the path that leaks, in a build.
func (f *fleet) PathID(build int) int64 {
	return f.path(build, &f.sources()[f.Leak.Path], &simMoment{}).Path
}
