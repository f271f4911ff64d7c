// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// testProvenance verifies that the signed provenance is that in the release, for each file, and for none after a bit was flipped.
func (b *built) testProvenance(t *testing.T) {
	content := read(t, filepath.Join(b.dist, provenance))
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Predicate     struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					Digest map[string]string `json:"digest"`
				} `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
		} `json:"predicate"`
	}
	decode(t, content, &statement)
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("the statement is %s about %s", statement.Type, statement.PredicateType)
	}
	head := strings.TrimSpace(do(t, b.clone, "git", "rev-parse", "HEAD"))
	if sources := statement.Predicate.BuildDefinition.ResolvedDependencies; len(sources) < 2 || sources[0].Digest["gitCommit"] != head {
		t.Errorf("the sources are %v, want the commit %s and others", sources, head)
	}
	var bundle struct {
		Envelope struct {
			Payload string `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	decode(t, read(t, filepath.Join(b.dist, "provenance.sigstore.json")), &bundle)
	if signed, err := base64.StdEncoding.DecodeString(bundle.Envelope.Payload); err != nil || string(signed) != content {
		t.Errorf("the signed statement is another (%v):\n%s", err, signed)
	}
	for name := range sums(t, b.dist) {
		if isSignature(name) || name == provenance {
			continue
		}
		if err := b.verifyProvenance(t, "provenance.sigstore.json", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		isRefused(t, name, b.verifyProvenance(t, "provenance.sigstore.json", b.flipped(t, name)))
	}
	isRefused(t, "the provenance", b.verifyProvenance(t, b.flippedPayload(t, bundle.Envelope.Payload), "SHA256SUMS"))
}

func (b *built) verifyProvenance(t *testing.T, bundle, file string) error {
	t.Helper()
	return b.verify(t, "verify-blob-attestation", "--type", "slsaprovenance1", "--bundle", bundle, file)
}

// flippedPayload returns the bundle of the provenance with another bit in the last letter of the statement.
func (b *built) flippedPayload(t *testing.T, payload string) string {
	t.Helper()
	statement, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndexAny(string(statement), "abcdefghijklmnopqrstuvwxyz")
	statement[at] ^= 1
	path := filepath.Join(t.TempDir(), "provenance.sigstore.json")
	content := read(t, filepath.Join(b.dist, "provenance.sigstore.json"))
	write(t, path, strings.Replace(content, payload, base64.StdEncoding.EncodeToString(statement), 1))
	return path
}

func decode(t *testing.T, content string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(content), into); err != nil {
		t.Fatalf("%v:\n%s", err, content)
	}
}
