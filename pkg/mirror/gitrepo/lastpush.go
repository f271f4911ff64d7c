// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"errors"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// lastPushTTL is how long after a push its advertisement can be reused.
const lastPushTTL = time.Minute

// lastPush is the state of the server after a push over HTTP. HTTP sessions are stateless, so a push that starts at the
// tip of the last one can reuse its advertisement, which saves a round trip and two processes of the server; and so can one
// that follows another writer, and reads the tip elsewhere. The server checks the old value of the reference anyway.
type lastPush struct {
	// base is the repository's URL, after redirects.
	base    string
	offered *capability.List
	// reference is empty if the push has failed: tip is not that of the server then.
	reference plumbing.ReferenceName
	tip       Hash
	at        time.Time
}

// reuseAdvertisement returns the capabilities of the last push if the update starts at its tip or is going to be replaced, and prepares
// the session. The next push reads an advertisement again unless saveLastPush is called.
func (r *Remote) reuseAdvertisement(s session, u update, replaced bool) (*capability.List, bool) {
	last := r.lastPush.Swap(nil)
	conversation, ok := s.(*httpSession)
	if !ok || last == nil || time.Since(last.at) > lastPushTTL {
		return nil, false
	}
	if !replaced && (last.reference != u.reference || last.tip != u.old) {
		return nil, false
	}
	conversation.base = last.base
	return last.offered, true
}

// saveLastPush records an update with its result.
func (r *Remote) saveLastPush(s session, offered *capability.List, u update, result error) {
	conversation, ok := s.(*httpSession)
	last := &lastPush{offered: offered, at: time.Now()}
	switch {
	case !ok || offered == nil:
		return
	case result == nil:
		last.reference, last.tip = u.reference, u.new
	case !errors.Is(result, ErrMoved) && kindOf(result) != Rejected:
		return
	}
	last.base = conversation.base
	r.lastPush.Store(last)
}
