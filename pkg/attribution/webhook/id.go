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

// setID sets the ID of a fact. The ID is the same each time a request is reported, and differs between requests: a client
// may choose the audit ID of its request (the header Audit-ID), so the user and the time are part of it. It must be called
// after all other fields are set.
func setID(fact *attribution.Fact, request string) {
	sum := sha256.New()
	for _, part := range []string{
		string(fact.Signal), request, fact.Actor.Username, fact.Actor.ImpersonatedBy, string(fact.Operation),
		fact.Group, fact.Resource, fact.Namespace, fact.Name, string(fact.UID), fact.After, fact.Ended.UTC().Format(time.RFC3339Nano),
	} {
		// Writing to a hash does not fail.
		_, _ = io.WriteString(sum, part+"\x00")
	}
	fact.ID = hex.EncodeToString(sum.Sum(nil)[:idSize])
}

// idSize is the length of an ID in bytes. A collision is as unlikely as one of random UUIDs.
const idSize = 16
