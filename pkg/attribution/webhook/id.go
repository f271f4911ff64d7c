// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// identify gives a fact the ID that it has whenever its request is reported, and that no other request's has: a client may
// choose the audit ID of its request (the header Audit-ID), so who made it and when are part of it. It is the last thing
// that happens to a fact.
func identify(fact *attribution.Fact, request string) {
	sum := sha256.New()
	for _, part := range []string{
		string(fact.Signal), request, fact.Actor.Username, fact.Actor.ImpersonatedBy, string(fact.Operation),
		fact.Group, fact.Resource, fact.Namespace, fact.Name, string(fact.UID), fact.After, fact.Ended.UTC().Format(time.RFC3339Nano),
	} {
		// A hash takes everything.
		_, _ = io.WriteString(sum, part+"\x00")
	}
	fact.ID = hex.EncodeToString(sum.Sum(nil)[:idSize])
}

// idSize makes it as unlikely that two requests have one ID as that two random UUIDs are the same.
const idSize = 16
