// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"math"
	"strconv"
)

// appendFloat appends a finite number such that every YAML parser reads the same number. A whole number that fits an
// int64 is written as an integer, since JSON does not distinguish the two. Negative zero keeps its sign. An exponent
// gets a dot before it: without the dot, YAML 1.1 reads a string.
func appendFloat(out []byte, number float64) []byte {
	if number == 0 && math.Signbit(number) {
		return append(out, "-0.0"...)
	}
	if number == math.Trunc(number) && number >= math.MinInt64 && number < math.MaxInt64 {
		return strconv.AppendInt(out, int64(number), 10)
	}
	const smallestWithoutExponent = 1e-6
	if size := math.Abs(number); size >= smallestWithoutExponent && size < math.MaxInt64 {
		return strconv.AppendFloat(out, number, 'f', -1, 64)
	}
	start := len(out)
	out = strconv.AppendFloat(out, number, 'e', -1, 64)
	if bytes.IndexByte(out[start:], '.') >= 0 {
		return out
	}
	mantissa, exponent, _ := bytes.Cut(out[start:], []byte("e"))
	tail := string(exponent)
	return append(append(out[:start+len(mantissa)], ".0e"...), tail...)
}
