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
	"slices"
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

// artifactNames are the names of what a release pushes, as they are signed.
var artifactNames = []string{"slipstream", "slipstream-dashboard", "charts/slipstream"}

// tag returns the tag of an artifact. Charts have versions without the v.
func (b *built) tag(name string) string {
	return strings.TrimPrefix(b.version, map[bool]string{true: "v"}[strings.HasPrefix(name, "charts/")])
}

// artifact returns what the release has pushed, by repository and digest.
func (b *built) artifact(t *testing.T, name string) string {
	t.Helper()
	repository := b.registry + "/team/" + name
	return repository + "@" + strings.TrimSpace(do(t, b.folder, b.crane, "digest", repository+":"+b.tag(name)))
}

// verifyAs verifies that an artifact was signed with a name and a version, which no attestation has.
func (b *built) verifyAs(t *testing.T, name, version, reference string) error {
	t.Helper()
	return b.verify(t, "verify", "-a", "name="+name, "-a", "version="+version, reference)
}

// testRegistry verifies the signatures in the registry, and that none is valid for an artifact with another bit.
func (b *built) testRegistry(t *testing.T) {
	for _, name := range artifactNames {
		artifact := b.artifact(t, name)
		repository, _, _ := strings.Cut(artifact, "@")
		for _, digest := range b.digests(t, name) {
			if err := b.verifyAs(t, name, b.version, repository+"@"+digest); err != nil {
				t.Errorf("%s of %s: %v", digest, name, err)
			}
		}
		if err := b.verify(t, "verify-attestation", "--type", "slsaprovenance1", artifact); err != nil {
			t.Errorf("provenance of %s: %v", artifact, err)
		}
		flipped := b.pushFlipped(t, artifact, repository+":flipped")
		isRefused(t, artifact, b.verify(t, "verify", flipped))
		isRefused(t, "the provenance of "+artifact, b.verify(t, "verify-attestation", "--type", "slsaprovenance1", flipped))
	}
}

// digests returns the digests of everything that an artifact consists of: the chart's own, or those of the index, of the images for each
// architecture, and of their bills of materials.
func (b *built) digests(t *testing.T, name string) []string {
	t.Helper()
	artifact := b.artifact(t, name)
	_, own, _ := strings.Cut(artifact, "@")
	archive := filepath.Join(b.dist, name+".oci.tar")
	if _, err := os.Stat(archive); err != nil {
		return []string{own} // The chart.
	}
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	found := digest.FindAllString(do(t, b.folder, "tar", "-xOf", archive, "index.json"), -1)
	found = append(found, digest.FindAllString(do(t, b.folder, b.crane, "manifest", artifact), -1)...)
	if len(found) != 3 || found[0] != own {
		t.Fatalf("%s has %v, want an index, a bill of materials and an image", artifact, found)
	}
	return found
}

// another returns the name of another artifact.
func another(name string) string {
	return artifactNames[(slices.Index(artifactNames, name)+1)%len(artifactNames)]
}

// testReplays copies artifacts with their signatures to where others belong: they are refused by name and by version.
func (b *built) testReplays(t *testing.T) {
	for _, name := range artifactNames {
		other := another(name)
		artifact := b.artifact(t, name)
		repository, digest, _ := strings.Cut(artifact, "@")
		replayed := b.registry + "/replays/" + other
		do(t, b.folder, b.crane, "copy", artifact, replayed+":v9.9.9")
		bundles := ":" + strings.Replace(digest, ":", "-", 1)
		do(t, b.folder, b.crane, "copy", repository+bundles, replayed+bundles)
		if err := b.verifyAs(t, name, b.version, replayed+":v9.9.9"); err != nil {
			t.Errorf("the copy of %s does not have its signature: %v", name, err)
		}
		for _, as := range [][2]string{{other, b.version}, {name, "v9.9.9"}} {
			if err := b.verifyAs(t, as[0], as[1], replayed+":v9.9.9"); err == nil || !strings.Contains(err.Error(), "missing or incorrect annotation") {
				t.Errorf("%s %s as %s %s: %v", name, b.version, as[0], as[1], err)
			}
		}
	}
}

// testOthers refuses to push a release if the registry has something else as one of its artifacts, and pushes nothing then.
func (b *built) testOthers(t *testing.T) {
	for at, name := range artifactNames {
		team := fmt.Sprintf("%s/others-%d/", b.registry, at)
		other := team + name + ":" + b.tag(name)
		do(t, b.folder, b.crane, "copy", b.artifact(t, another(name)), other)
		output, err := attempt(t, b.clone, "make", "release-publish", "VERSION="+b.version, "RELEASE_PUSH="+team+"slipstream", "RELEASE_UNSIGNED=1")
		if err == nil || !strings.Contains(output, "error: "+other+" is already in the registry, and is another") {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
		for _, each := range artifactNames {
			if printed, err := attempt(t, b.folder, b.crane, "ls", team+each); each != name && err == nil {
				t.Errorf("%s was pushed beside another %s: %s", each, name, printed)
			}
		}
	}
}

// pushFlipped copies an artifact, with another bit in an annotation, and returns the reference of the copy.
func (b *built) pushFlipped(t *testing.T, artifact, to string) string {
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
	do(t, b.folder, b.crane, "copy", artifact, to) // The registry wants what a manifest refers to.
	repository, tag, _ := strings.Cut(strings.TrimPrefix(to, b.registry+"/"), ":")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+b.registry+"/v2/"+repository+"/manifests/"+tag, bytes.NewReader(manifest))
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
	return to
}
