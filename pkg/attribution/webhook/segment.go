// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// minSegment is the fewest characters of a segment: 128 random bits in hexadecimal digits.
	minSegment = 32
	// segmentInterval is how often the file is read. It takes a few microseconds.
	segmentInterval = time.Second
	// segmentCharacters need no escape in a path.
	segmentCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
)

// segments are the secrets of which one has to end the webhook's path. Only their hashes are kept.
type segments struct {
	file string
	sums atomic.Pointer[[][sha256.Size]byte]
}

func newSegments(file string) (*segments, error) {
	s := &segments{file: file}
	return s, s.load()
}

// CheckSegmentFile says what is wrong with a file of segments.
func CheckSegmentFile(file string) error {
	_, err := readSegments(file)
	return err
}

// readSegments reads one segment from each line, so that an old one can stay until no webhook uses it any more. Errors do
// not repeat what is in the file.
func readSegments(file string) ([][sha256.Size]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the segments: %w", err)
	}
	var sums [][sha256.Size]byte
	for number, line := range strings.Split(string(content), "\n") {
		segment := strings.TrimSpace(line)
		switch {
		case segment == "":
			continue
		case len(segment) < minSegment:
			return nil, fmt.Errorf("the segment in line %d of %s has %d characters, want at least %d", number+1, file, len(segment), minSegment)
		case strings.Trim(segment, segmentCharacters) != "":
			return nil, fmt.Errorf("the segment in line %d of %s may have letters, digits and -._~ only", number+1, file)
		}
		sums = append(sums, sha256.Sum256([]byte(segment)))
	}
	if len(sums) == 0 {
		return nil, errors.New("there is no segment in " + file)
	}
	return sums, nil
}

func (s *segments) load() error {
	sums, err := readSegments(s.file)
	if err != nil {
		return err
	}
	s.sums.Store(&sums)
	return nil
}

// Run follows the file until ctx is done. While it cannot be read, the segments stay as they are.
func (s *segments) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.load(); err != nil {
			klog.FromContext(ctx).Error(err, "The segments of the admission webhook's path stay as they are")
		}
	}, segmentInterval)
}

// match takes the same time whatever it is given: hashes are compared, and all of them.
func (s *segments) match(segment string) bool {
	sum, found := sha256.Sum256([]byte(segment)), 0
	for _, known := range *s.sums.Load() {
		found |= subtle.ConstantTimeCompare(sum[:], known[:])
	}
	return found == 1
}
