// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// provenance has no checksum, since it is about all files with one. Its signature is in an attestation.
const provenance = "provenance.intoto.json"

// isSignature reports whether a file is a signature or the key.
func isSignature(name string) bool {
	return strings.HasSuffix(name, ".sigstore.json") || name == "cosign.pub"
}

// sums returns the SHA-256 of all files in a folder.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		sum := sha256.Sum256([]byte(read(t, filepath.Join(folder, entry.Name()))))
		found[entry.Name()] = hex.EncodeToString(sum[:])
	}
	return found
}

// verify runs a command of cosign with the published key. The signatures are in no transparency log.
func (b *built) verify(t *testing.T, command string, arguments ...string) error {
	t.Helper()
	output, err := attempt(t, b.dist, b.cosign, append([]string{command, "--key", "cosign.pub", "--insecure-ignore-tlog=true"}, arguments...)...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// isRefused checks that cosign has found no valid signature, rather than failed for another reason.
func isRefused(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is valid after a bit was flipped", what)
		return
	}
	for _, refusal := range []string{"failed to verify signature:", "no signatures found", "no matching attestations"} {
		if strings.Contains(err.Error(), refusal) {
			return
		}
	}
	t.Errorf("%s is refused after a bit was flipped, but not for its signature: %v", what, err)
}

// testFiles verifies the checksum and the signature of every file, and that no signature is valid after a bit was flipped.
func (b *built) testFiles(t *testing.T) {
	listed := map[string]string{}
	for line := range strings.Lines(read(t, filepath.Join(b.dist, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	there := sums(t, b.dist)
	for name := range listed {
		if there[name] == "" {
			t.Errorf("SHA256SUMS has %s, which is not there", name)
		}
	}
	for _, name := range []string{"install.yaml", "slipstream.yaml", "release-notes.md", "slipstream.oci.tar", "slipstream-dashboard.oci.tar"} {
		if listed[name] == "" {
			t.Errorf("SHA256SUMS does not have %s", name)
		}
	}
	for name, sum := range there {
		if isSignature(name) || name == provenance {
			continue
		}
		if name != "SHA256SUMS" && listed[name] != sum {
			t.Errorf("SHA256SUMS has %q for %s, want %s", listed[name], name, sum)
		}
		bundle := name + ".sigstore.json"
		if err := b.verify(t, "verify-blob", "--bundle", bundle, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		isRefused(t, name, b.verify(t, "verify-blob", "--bundle", bundle, b.flipped(t, name)))
	}
}

// flipped returns a copy of a file of the release in which one bit differs.
func (b *built) flipped(t *testing.T, name string) string {
	t.Helper()
	content := []byte(read(t, filepath.Join(b.dist, name)))
	content[len(content)/2] ^= 1
	path := filepath.Join(t.TempDir(), name)
	write(t, path, string(content))
	return path
}

// artifacts returns what the release has pushed, by repository and digest.
func (b *built) artifacts(t *testing.T) []string {
	t.Helper()
	team := b.registry + "/team/"
	var found []string
	for _, tagged := range []string{
		team + "slipstream:" + b.version, team + "slipstream-dashboard:" + b.version, team + "charts/slipstream:" + strings.TrimPrefix(b.version, "v"),
	} {
		repository := tagged[:strings.LastIndex(tagged, ":")]
		found = append(found, repository+"@"+strings.TrimSpace(do(t, b.folder, b.crane, "digest", tagged)))
	}
	return found
}

// testRegistry verifies the signatures in the registry, and that none is valid for an artifact with another bit.
func (b *built) testRegistry(t *testing.T) {
	for _, artifact := range b.artifacts(t) {
		if err := b.verify(t, "verify", artifact); err != nil {
			t.Errorf("%s: %v", artifact, err)
		}
		if err := b.verify(t, "verify-attestation", "--type", "slsaprovenance1", artifact); err != nil {
			t.Errorf("provenance of %s: %v", artifact, err)
		}
		flipped := b.pushFlipped(t, artifact)
		isRefused(t, artifact, b.verify(t, "verify", flipped))
		isRefused(t, "the provenance of "+artifact, b.verify(t, "verify-attestation", "--type", "slsaprovenance1", flipped))
		manifest := do(t, b.folder, b.crane, "manifest", artifact)
		if !strings.Contains(manifest, "image.index") {
			continue // The chart has only layers.
		}
		images := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindAllString(manifest, -1)
		if len(images) == 0 {
			t.Errorf("%s has no image", artifact)
		}
		for _, digest := range images {
			repository, _, _ := strings.Cut(artifact, "@")
			if err := b.verify(t, "verify", repository+"@"+digest); err != nil {
				t.Errorf("the image for one architecture: %v", err)
			}
		}
	}
}

// pushFlipped pushes an artifact again, with another bit in an annotation, and returns its reference.
func (b *built) pushFlipped(t *testing.T, artifact string) string {
	t.Helper()
	manifest := []byte(do(t, b.folder, b.crane, "manifest", artifact))
	const title = `"org.opencontainers.image.title":"`
	at := bytes.Index(manifest, []byte(title))
	if at < 0 {
		t.Fatalf("%s has no title:\n%s", artifact, manifest)
	}
	manifest[at+len(title)] ^= 1
	mediaType := "application/vnd.oci.image.manifest.v1+json"
	if bytes.Contains(manifest, []byte("image.index")) {
		mediaType = "application/vnd.oci.image.index.v1+json"
	}
	repository, _, _ := strings.Cut(strings.TrimPrefix(artifact, b.registry+"/"), "@")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+b.registry+"/v2/"+repository+"/manifests/flipped", bytes.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	if message, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s (%v)", response.Status, message, err)
	}
	return b.registry + "/" + repository + ":flipped"
}
