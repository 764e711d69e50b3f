package conformance

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/lwsbt/lwsbt/internal/bitstring"
)

// variant is a setting of the spill bits of a vector. It must make no difference. (BT-FIELD-2)
type variant struct {
	kind variantKind
	n    int // flipped: position of the bit; random: number of the setting
}

type variantKind uint8

const (
	asWritten variantKind = iota
	allClear
	allSet
	flipped
	random
)

// randomVariants is the number of random settings of the spill bits for each vector.
const randomVariants = 4

func (v variant) String() string {
	switch v.kind {
	case allClear:
		return "all spill bits 0"
	case allSet:
		return "all spill bits 1"
	case flipped:
		return fmt.Sprintf("spill bit %d flipped", v.n)
	case random:
		return fmt.Sprintf("random spill bits %d", v.n+1)
	}
	return "as written"
}

// variants returns the settings of the spill bits to ask.
func (c *check) variants() []variant {
	all := []variant{{kind: asWritten}}
	if len(c.spills) == 0 {
		return all
	}
	all = append(all, variant{kind: allClear}, variant{kind: allSet})
	for _, at := range c.spills {
		all = append(all, variant{flipped, at})
	}
	for n := range randomVariants {
		all = append(all, variant{random, n})
	}
	return all
}

// spill returns the blob with other spill bits.
func (c *check) spill(how variant, seed uint64) []byte {
	data := append([]byte{}, c.asked.Data...)
	var rng *rand.Rand
	if how.kind == random {
		h := fnv.New64a()
		h.Write([]byte(c.v.ID))
		rng = rand.New(rand.NewPCG(seed, h.Sum64()+uint64(how.n)))
	}
	for _, at := range c.spills {
		switch how.kind {
		case allClear:
			bitstring.SetBit(data, at, 0)
		case allSet:
			bitstring.SetBit(data, at, 1)
		case flipped:
			if at == how.n {
				bitstring.SetBit(data, at, 1-bitstring.Bit(data, at))
			}
		case random:
			bitstring.SetBit(data, at, byte(rng.Uint32()>>31))
		}
	}
	return data
}
