// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// lastPushTTL is how long after a push its advertisement can be reused.
const lastPushTTL = time.Minute

// lastPush is the state of the server after a push over HTTP. HTTP sessions are stateless, so a push that starts at the
// tip of the last one can reuse its advertisement, which saves a round trip and two processes of the server. The server
// checks the old value of the reference anyway.
type lastPush struct {
	// base is the repository's URL, after redirects.
	base      string
	offered   *capability.List
	reference plumbing.ReferenceName
	tip       Hash
	at        time.Time
}

// reuseAdvertisement returns the capabilities of the last push if the update starts at its tip, and prepares the session.
// The next push reads an advertisement again unless saveLastPush is called.
func (r *Remote) reuseAdvertisement(s session, u update) (*capability.List, bool) {
	last := r.lastPush.Swap(nil)
	conversation, ok := s.(*httpSession)
	if !ok || last == nil || last.reference != u.reference || last.tip != u.old || time.Since(last.at) > lastPushTTL {
		return nil, false
	}
	conversation.base = last.base
	return last.offered, true
}

// saveLastPush records a successful update.
func (r *Remote) saveLastPush(s session, offered *capability.List, u update) {
	if conversation, ok := s.(*httpSession); ok {
		r.lastPush.Store(&lastPush{base: conversation.base, offered: offered, reference: u.reference, tip: u.new, at: time.Now()})
	}
}
