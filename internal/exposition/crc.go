package exposition

import "hash/crc32"

// power returns x^n modulo the polynomial of CRC-32; bit 31 is x^0.
//
// A CRC-32 is a remainder of polynomials. To append n zero bytes to a text multiplies its
// remainder by x^(8n), and the remainders of texts of the same length add up by XOR. The
// inversions at begin and end of CRC-32 cancel out.
func power(n int64) uint32 {
	result, square := uint32(1)<<31, uint32(1)<<30
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = multiply(square, result)
		}
		square = multiply(square, square)
	}
	return result
}

// multiply returns a times b modulo the polynomial.
func multiply(a, b uint32) uint32 {
	var product uint32
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		odd := b & 1
		b >>= 1
		if odd != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
