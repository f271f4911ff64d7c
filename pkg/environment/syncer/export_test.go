// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import "context"

// The limits of what is shared.
const (
	SharedFor      = sharedFor
	MaxSharedBytes = maxSharedBytes
)

// SharedReads shares reads of texts.
type SharedReads struct{ reads sharedReads }

// Now returns a moment after all reads that have begun.
func (s *SharedReads) Now() Moment { return s.reads.now() }

// Read returns what read returns, or has returned after a moment.
func (s *SharedReads) Read(
	ctx context.Context, after Moment, key string, read func(ctx context.Context) (string, error),
) (string, error) {
	return shared(ctx, &s.reads, after, key, read)
}

// Keep has a text kept as what a read has returned.
func (s *SharedReads) Keep(ctx context.Context, key string, text *string) error {
	_, err := shared(ctx, &s.reads, s.Now(), key, func(context.Context) (*string, error) { return text, nil })
	return err
}

// Kept returns the number and the size of the reads that are kept.
func (s *SharedReads) Kept() (number int, size int64) {
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	return s.reads.reads.Len(), s.reads.size
}
