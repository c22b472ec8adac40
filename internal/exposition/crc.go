package exposition

import "hash/crc32"

// one is the polynomial x^0 of CRC-32, whose bits are reversed.
const one = uint32(1) << 31

// add continues the checksums and the size of a part with text of it.
//
// A CRC-32 is a remainder of polynomials. To append n bytes to a text multiplies its
// remainder by x^(8n), and adds by XOR what does not depend on it. So the same bytes after
// nothing and after a text with the remainder x^0 tell x^(8n). The inversions at begin and
// end of CRC-32 cancel out.
func (p *part) add(text []byte) {
	p.crc = crc32.Update(p.crc, crc32.IEEETable, text)
	p.crcAfterOne = crc32.Update(p.crcAfterOne, crc32.IEEETable, text)
	p.size += uint32(len(text)) //nolint:gosec // modulo 2^32
}

// crcAfter returns the CRC-32 of the part after a text with the CRC-32 before.
func (p *part) crcAfter(before uint32) uint32 {
	shift, product := p.crc^p.crcAfterOne, uint32(0)
	for bit := one; bit != 0; bit >>= 1 { // multiplies modulo the polynomial
		if before&bit != 0 {
			product ^= shift
		}
		odd := shift & 1
		shift >>= 1
		if odd != 0 {
			shift ^= crc32.IEEE
		}
	}
	return product ^ p.crc
}
