// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"
	"time"

	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	// maxGone bounds how many contents are known to be gone, of about 300 bytes each.
	maxGone = 10_000
	// goneTime is how long it is known. The commit may be pushed again.
	goneTime = 5 * time.Minute
)

// gone remembers which contents cannot be had from a repository. To find that out, a server that serves no single blobs sends all history.
type gone struct{ known *expiring.LRUExpireCache }

func newGone(clock clock.PassiveClock) *gone {
	return &gone{known: expiring.NewLRUExpireCacheWithClock(maxGone, clock)}
}

// get returns the error of the contents of a commit; nil if they may be there. The path has their hashes.
func (g *gone) get(at folder) error {
	err, _ := g.known.Get(at)
	known, _ := err.(error)
	return known
}

// put remembers an error that trying again does not change soon.
func (g *gone) put(at folder, err error) {
	var lost *goneError
	var git *gitrepo.Error
	if errors.As(err, &lost) || errors.As(err, &git) && git.Kind == gitrepo.TooLarge {
		g.known.Add(at, err, goneTime)
	}
}
