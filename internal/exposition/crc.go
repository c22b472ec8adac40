package exposition

import "hash/crc32"

// polynomialOne is the polynomial x^0 of CRC-32, whose bits are reversed.
const polynomialOne = uint32(1) << 31

// add continues the checksums and the size of a part with more of its text.
//
// A CRC-32 is a remainder of polynomials. n appended bytes multiply it by x^(8n), and add a
// constant by XOR. So the checksums after nothing and after the remainder x^0 give x^(8n).
func (p *part) add(text []byte) {
	p.crc = crc32.Update(p.crc, crc32.IEEETable, text)
	p.crcAfterOne = crc32.Update(p.crcAfterOne, crc32.IEEETable, text)
	p.size += uint32(len(text)) //nolint:gosec // modulo 2^32
}

// crcAfter returns the CRC-32 of the part after a text with the CRC-32 before.
func (p *part) crcAfter(before uint32) uint32 {
	shift, product := p.crc^p.crcAfterOne, uint32(0)
	for bit := polynomialOne; bit != 0; bit >>= 1 { // multiplies modulo the polynomial
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
