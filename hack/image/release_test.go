// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestPushAndPull(t *testing.T) {
	for kind, referrers := range map[string]bool{"ReferrersAPI": true, "NoReferrersAPI": false} {
		t.Run(kind, func(t *testing.T) {
			silent := log.New(io.Discard, "", 0)
			server := httptest.NewServer(registry.New(registry.Logger(silent), registry.WithReferrersSupport(referrers)))
			defer server.Close()
			reference := strings.TrimPrefix(server.URL, "http://") + "/team/slipstream:v1"
			output := t.TempDir()
			err := run(t.Context(), settings{source: newSource(t), output: output, images: allNames(), arches: "amd64,arm64", push: reference})
			if err != nil {
				t.Fatal(err)
			}
			checkPushed(t, reference, output, "slipstream")
			checkPushed(t, strings.Replace(reference, ":v1", "-dashboard:v1", 1), filepath.Join(output, "dashboard"), "slipstream-dashboard")
		})
	}
}

// TestPushBuilt pushes what an earlier run has written, without the source.
func TestPushBuilt(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/slipstream:v1"
	output := t.TempDir()
	if err := run(t.Context(), settings{source: newSource(t), output: output, images: allNames(), arches: "amd64,arm64"}); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), settings{built: output, images: allNames(), push: reference, untagged: true}); err != nil {
		t.Fatal(err)
	}
	repository, err := name.NewRepository(strings.TrimSuffix(reference, ":v1"))
	if err != nil {
		t.Fatal(err)
	}
	if tags, err := remote.List(repository); err != nil || slices.Contains(tags, "v1") {
		t.Errorf("before the tag is written: %v, %v", tags, err)
	}
	for _, image := range imagesOf(t, output) {
		if _, err := remote.Get(repository.Digest(digestOf(t, image).String())); err != nil {
			t.Errorf("pushed without a tag: %v", err)
		}
	}
	if err := run(t.Context(), settings{built: output, images: allNames(), push: reference}); err != nil {
		t.Fatal(err)
	}
	checkPushed(t, reference, output, "slipstream")
	checkPushed(t, strings.Replace(reference, ":v1", "-dashboard:v1", 1), filepath.Join(output, "dashboard"), "slipstream-dashboard")
	for _, s := range []settings{
		{built: t.TempDir(), images: "slipstream", push: reference}, {built: output, images: "slipstream"},
	} {
		if err := run(t.Context(), s); err == nil {
			t.Errorf("%+v was pushed", s)
		}
	}
}

// checkPushed compares an image in the registry with that in a folder of the output.
func checkPushed(t *testing.T, reference, folder, image string) {
	t.Helper()
	tagged, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		pulled, err := remote.Image(tagged, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := digestOf(t, pulled), digestOf(t, imagesOf(t, folder)[arch]); got != want {
			t.Errorf("got image %s for %s, want %s", got, arch, want)
		}
		want, err := os.ReadFile(filepath.Join(folder, image+"-linux-"+arch+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := attached(t, tagged.Digest(digestOf(t, pulled).String())); !bytes.Equal(got, want) {
			t.Errorf("bill of materials for %s: got\n%s\nwant\n%s", arch, got, want)
		}
	}
}

// attached pulls the bill of materials that refers to an image.
func attached(t *testing.T, image name.Digest) []byte {
	t.Helper()
	referrers, err := remote.Referrers(image)
	if err != nil {
		t.Fatal(err)
	}
	index, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 {
		t.Fatalf("got referrers %+v, want one", index.Manifests)
	}
	bom, err := remote.Image(image.Digest(index.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := bom.Manifest()
	if err != nil || manifest.ArtifactType != bomMediaType || manifest.Subject.Digest.String() != image.DigestStr() {
		t.Errorf("got referrer %+v (%v), want a bill of materials of the image", manifest, err)
	}
	layers, err := bom.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d files (%v), want one", len(layers), err)
	}
	file, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func digestOf(t *testing.T, image v1.Image) v1.Hash {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestPlainHTTPRejected checks that an attacker who blocks TLS does not receive the credentials.
func TestPlainHTTPRejected(t *testing.T) {
	errSent := errors.New("this was sent")
	transport := encrypted{roundTripper(func(*http.Request) (*http.Response, error) { return nil, errSent })}
	for url, sent := range map[string]bool{
		"https://registry.example.org/v2/": true, "https://10.1.2.3/v2/": true,
		"http://localhost:5000/v2/": true, "http://127.0.0.1:5000/v2/": true, "http://[::1]:5000/v2/": true,
		"http://registry.example.org/v2/": false, "http://registry.local/v2/": false, "http://10.1.2.3:5000/v2/": false,
		"http://localhost.example.org/v2/": false,
	} {
		_, err := (&http.Client{Transport: transport}).Post(url, "text/plain", strings.NewReader("token")) //nolint:bodyclose // there is none
		if errors.Is(err, errSent) != sent {
			t.Errorf("%s: got error %v, want a sent request: %v", url, err, sent)
		}
	}
}

// TestNoFallbackToPlainHTTP checks that nothing is sent to a registry in a private network, for which the registry
// client would fall back to plain HTTP.
func TestNoFallbackToPlainHTTP(t *testing.T) {
	requested := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requested <- r.URL.Path }))
	defer server.Close()
	before := remote.DefaultTransport
	defer func() { remote.DefaultTransport = before }()
	remote.DefaultTransport = &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	err := run(t.Context(), settings{source: newSource(t), output: t.TempDir(), images: "slipstream", arches: "amd64", push: "10.1.2.3:5000/team/slipstream:v1"})
	if err == nil || !strings.Contains(err.Error(), "is not encrypted") {
		t.Errorf("got error %v, want an error about encryption", err)
	}
	if len(requested) > 0 {
		t.Errorf("unexpected request for %s", <-requested)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
