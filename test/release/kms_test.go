// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// transitToken is what the transit server requires.
const transitToken = "a token"

// transit is a server with the requests of the transit engine of Vault and OpenBao that cosign sends. Its key never leaves it.
type transit struct {
	*httptest.Server
	key *ecdsa.PrivateKey
	// signed counts the signatures.
	signed atomic.Int64
}

func newTransit(t *testing.T) *transit {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &transit{key: key}
	requests := http.NewServeMux()
	requests.HandleFunc("GET /v1/transit/keys/slipstream", s.readKey)
	requests.HandleFunc("PUT /v1/transit/sign/slipstream/sha2-256", s.sign)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Vault-Token") != transitToken {
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
			return
		}
		requests.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *transit) readKey(w http.ResponseWriter, _ *http.Request) {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	respond(w, map[string]any{"latest_version": 1, "keys": map[string]any{"1": map[string]any{"name": "P-256", "public_key": public}}})
}

func (s *transit) sign(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input     []byte `json:"input"`
		Prehashed bool   `json:"prehashed"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || !request.Prehashed {
		http.Error(w, `{"errors":["not a digest"]}`, http.StatusBadRequest)
		return
	}
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, request.Input)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.signed.Add(1)
	respond(w, map[string]any{"signature": "vault:v1:" + base64.StdEncoding.EncodeToString(signature)})
}

func respond(w http.ResponseWriter, data map[string]any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // The client has gone otherwise.
}

// testKMS signs the files with a key that only a KMS has, after the KMS has refused to.
func (b *built) testKMS(t *testing.T) {
	kms := newTransit(t)
	t.Setenv("VAULT_ADDR", kms.URL)
	files := filepath.Join(t.TempDir(), "dist")
	if err := os.CopyFS(files, unsigned{os.DirFS(b.dist)}); err != nil {
		t.Fatal(err)
	}
	before := sums(t, files)
	publish := []string{"release-publish", "VERSION=" + b.version, "RELEASE_OUTPUT=" + files, "RELEASE_KEY=hashivault://slipstream"}
	t.Setenv("VAULT_TOKEN", "another")
	if output, err := attempt(t, b.clone, "make", publish...); err == nil || !strings.Contains(output, "permission denied") {
		t.Errorf("with a token that the KMS refuses: %v\n%s", err, output)
	}
	if after := sums(t, files); len(after) != len(before) {
		t.Errorf("a refused signature left %d files, want %d", len(after), len(before))
	}
	t.Setenv("VAULT_TOKEN", transitToken)
	do(t, b.clone, "make", publish...)
	of := *b
	of.dist = files
	for name := range before {
		if name == provenance {
			continue
		}
		bundle := name + ".sigstore.json"
		if err := of.verify(t, "verify-blob", "--bundle", bundle, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.verify(t, "verify-blob", "--bundle", filepath.Join(files, bundle), name); err == nil || !strings.Contains(err.Error(), "failed to verify signature") {
			t.Errorf("%s with the public key of another: %v", name, err)
		}
	}
	if err := of.verifyProvenance(t, "provenance.sigstore.json", "install.yaml"); err != nil {
		t.Errorf("provenance: %v", err)
	}
	if got, want := int(kms.signed.Load()), len(before); got != want {
		t.Errorf("the KMS has signed %d times, want %d", got, want)
	}
}

// unsigned is a release without its signatures and their key.
type unsigned struct{ fs.FS }

func (u unsigned) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(u.FS, name)
	kept := entries[:0]
	for _, entry := range entries {
		if !isSignature(entry.Name()) {
			kept = append(kept, entry)
		}
	}
	return kept, err
}
