// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import "hash/maphash"

// pathSet is a set of paths, of which it holds only hashes: a comparison may list a million objects. A path that was not added is in it if
// it has the hash of another one: with a million paths, one in 10^13. The next set has other hashes.
type pathSet struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newPathSet() pathSet {
	return pathSet{seed: maphash.MakeSeed(), hashes: map[uint64]struct{}{}}
}

func (s pathSet) add(path string) { s.hashes[maphash.String(s.seed, path)] = struct{}{} }

func (s pathSet) has(path string) bool {
	_, found := s.hashes[maphash.String(s.seed, path)]
	return found
}

func (s pathSet) len() int { return len(s.hashes) }
