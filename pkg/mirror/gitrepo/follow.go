// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// followFor is how long after a push the next one relies on what the server said before it.
const followFor = time.Minute

// lastPush is how a push over HTTP has left the server. HTTP has no conversations: a push that begins where the last one
// ended needs no advertisement of its own, which would cost the server two processes and us a round trip. Whether the
// reference is still there is for the server to judge anyway.
type lastPush struct {
	// base is the repository's URL, after redirects.
	base      string
	offered   *capability.List
	reference plumbing.ReferenceName
	tip       Hash
	at        time.Time
}

// follow returns what the server offers if the update goes on from the last push, and lets the session do so. Whatever
// becomes of this push, the next one asks again unless remember is called.
func (r *Remote) follow(s session, u update) (*capability.List, bool) {
	last := r.lastPush.Swap(nil)
	conversation, ok := s.(*httpSession)
	if !ok || last == nil || last.reference != u.reference || last.tip != u.old || time.Since(last.at) > followFor {
		return nil, false
	}
	conversation.base = last.base
	return last.offered, true
}

// remember notes an update that the server has made.
func (r *Remote) remember(s session, offered *capability.List, u update) {
	if conversation, ok := s.(*httpSession); ok {
		r.lastPush.Store(&lastPush{base: conversation.base, offered: offered, reference: u.reference, tip: u.new, at: time.Now()})
	}
}
