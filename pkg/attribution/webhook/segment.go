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
	// minSegment is the minimum length of a segment: 128 random bits in hexadecimal digits.
	minSegment = 32
	// segmentInterval is the interval at which the file is read, which takes a few microseconds.
	segmentInterval = time.Second
	// segmentCharacters are the characters that need no escape in a path.
	segmentCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
)

// segments holds the hashes of the secrets of which one must end the webhook's path.
type segments struct {
	file string
	sums atomic.Pointer[[][sha256.Size]byte]
}

func newSegments(file string) (*segments, error) {
	s := &segments{file: file}
	return s, s.load()
}

// CheckSegmentFile returns an error if a segment file is invalid.
func CheckSegmentFile(file string) error {
	_, err := readSegments(file)
	return err
}

// readSegments reads one segment from each line, so that an old one can remain until no webhook uses it any more. Errors
// do not contain the content of the file.
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

// Run reloads the file at each interval until ctx is done. While the file is invalid, the last valid segments remain.
func (s *segments) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.load(); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to reload admission webhook path segments, keeping the previous ones")
		}
	}, segmentInterval)
}

// match reports whether a segment is valid, in constant time: it compares hashes, and all of them.
func (s *segments) match(segment string) bool {
	sum, found := sha256.Sum256([]byte(segment)), 0
	for _, known := range *s.sums.Load() {
		found |= subtle.ConstantTimeCompare(sum[:], known[:])
	}
	return found == 1
}
