// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logintest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
)

// newKey returns an RSA key, and its form in a file, as GitHub generates it.
func newKey(t testing.TB) (*rsa.PrivateKey, []byte) {
	t.Helper()
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// NewAppKey returns a private key of an app, in the form in which GitHub generates it.
func NewAppKey(t testing.TB) []byte {
	t.Helper()
	_, private := newKey(t)
	return private
}

// claims are those of a JWT. Numbers are kept as they were written.
type claims map[string]any

// integer returns a claim that is an integer, as GitHub requires for times.
func (c claims) integer(name string) (int64, bool) {
	number, ok := c[name].(json.Number)
	if !ok {
		return 0, false
	}
	value, err := number.Int64()
	return value, err == nil
}

var errJWT = errors.New("it is not a JWT that the key has signed with RS256")

// verify returns the claims of a JWT that the key has signed with RS256.
func verify(token string, key *rsa.PublicKey) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 { //nolint:mnd // The header, the claims and the signature.
		return nil, errJWT
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	if decodePart(parts[0], &header) != nil || header.Algorithm != "RS256" {
		return nil, errJWT
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, errJWT
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) != nil {
		return nil, errJWT
	}
	var found claims
	if err := decodePart(parts[1], &found); err != nil {
		return nil, errJWT
	}
	return found, nil
}

func decodePart(part string, into any) error {
	content, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// sign returns a JWT with the claims.
func sign(t testing.TB, key *rsa.PrivateKey, content map[string]any) string {
	t.Helper()
	body, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
