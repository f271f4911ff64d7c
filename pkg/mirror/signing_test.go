// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// putSecret writes a Secret of namespace shop.
func (s *fixture) putSecret(name string, data map[string][]byte) {
	s.t.Helper()
	secrets := s.secrets.CoreV1().Secrets("shop")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
	_, err := secrets.Update(context.Background(), secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(context.Background(), secret, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// signing configures signatures with the key in the Secret signing.
func signing(format v1alpha1.SigningFormat, data map[string][]byte) func(*fixture) {
	return func(s *fixture) {
		s.in.repositories[0].Spec.Commit = &v1alpha1.CommitPolicy{
			Committer: &v1alpha1.CommitIdentity{Name: "bot", Email: "bot@example.com"},
			Signing:   &v1alpha1.CommitSigning{SecretRef: v1alpha1.SecretReference{Name: "signing"}, Format: format},
		}
		if data != nil {
			s.putSecret("signing", data)
		}
	}
}

func newSSHKey(t *testing.T, passphrase string) (private []byte, public string) {
	t.Helper()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// verified fails unless git verifies every commit of main by one of the keys.
func (s *fixture) verified(keys ...string) {
	s.t.Helper()
	signers := filepath.Join(s.t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte("bot@example.com "+strings.Join(keys, "bot@example.com ")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(s.mustRun("-c", "gpg.ssh.allowedSignersFile="+signers, "log", "--format=%G? %s", "main")) {
		if !strings.HasPrefix(line, "G ") {
			s.t.Errorf("invalid signature of %s", line)
		}
	}
}

func TestCommitsAreSigned(t *testing.T) {
	first, firstPublic := newSSHKey(t, "open sesame")
	second, secondPublic := newSSHKey(t, "")
	s := newFixture(t, perChange, pollOften, signing(v1alpha1.SigningFormatSSH, map[string][]byte{
		"ssh-privatekey": first, "passphrase": []byte("open sesame"),
	}), func(s *fixture) { s.cluster.put(configMap("compared"), "1") })
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.verified(firstPublic)

	// The key changes while the server runs.
	s.putSecret("signing", map[string][]byte{"identity": second})
	changes := 0
	testkit.Eventually(t, "the new key is used", func() error {
		changes++
		s.cluster.put(configMap("a"), fmt.Sprint("after ", changes))
		s.mirrored()
		return s.signedBy(secondPublic)
	})
	s.verified(firstPublic, secondPublic)
}

// signedBy returns an error unless the newest commit is signed by the key.
func (s *fixture) signedBy(key string) error {
	signers := filepath.Join(s.t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte("bot@example.com "+key), 0o600); err != nil {
		s.t.Fatal(err)
	}
	_, err := s.run("-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", "main")
	return err
}

// newOpenPGPKey returns a key that is valid from a time for a lifetime.
func newOpenPGPKey(t *testing.T, from time.Time, lifetime time.Duration) []byte {
	t.Helper()
	configuration := &packet.Config{
		Time: func() time.Time { return from }, KeyLifetimeSecs: uint32(lifetime.Seconds()), Algorithm: packet.PubKeyAlgoEdDSA,
	}
	entity, err := openpgp.NewEntity("bot", "", "bot@example.com", configuration)
	if err != nil {
		t.Fatal(err)
	}
	var armored strings.Builder
	out, err := armor.Encode(&armored, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.SerializePrivate(out, configuration); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(armored.String())
}

func TestNothingIsPushedUnsigned(t *testing.T) {
	locked, _ := newSSHKey(t, "open sesame")
	valid := newOpenPGPKey(t, time.Now().Add(-time.Hour), 0)
	for name, test := range map[string]struct {
		format v1alpha1.SigningFormat
		broken map[string][]byte
		mended map[string][]byte
		reason string
		says   string
	}{
		"no Secret": {
			v1alpha1.SigningFormatOpenPGP, nil, map[string][]byte{"git.asc": valid},
			v1alpha1.ReasonSecretNotFound, "there is no Secret shop/signing (spec.commit.signing.secretRef)",
		},
		"key of the other format": {
			v1alpha1.SigningFormatOpenPGP, map[string][]byte{"ssh-privatekey": locked}, map[string][]byte{"git.asc": valid},
			v1alpha1.ReasonSecretInvalid,
			"Secret shop/signing needs the key git.asc to sign in the format OpenPGP (spec.commit.signing); it has ssh-privatekey",
		},
		"wrong passphrase": {
			v1alpha1.SigningFormatSSH, map[string][]byte{"identity": locked, "passphrase": []byte("gue55")},
			map[string][]byte{"identity": locked, "passphrase": []byte("open sesame")},
			v1alpha1.ReasonSigningKeyUnusable,
			"key identity of Secret shop/signing cannot sign (spec.commit.signing): the passphrase does not open the key",
		},
		"no key": {
			v1alpha1.SigningFormatSSH, map[string][]byte{"ssh-privatekey": []byte("s3cret")},
			map[string][]byte{"ssh-privatekey": locked, "passphrase": []byte("open sesame")},
			v1alpha1.ReasonSigningKeyUnusable, "it is not a private key",
		},
		"expired": {
			v1alpha1.SigningFormatOpenPGP, map[string][]byte{"git.asc": newOpenPGPKey(t, time.Now().Add(-48*time.Hour), 24*time.Hour)},
			map[string][]byte{"git.asc": valid}, v1alpha1.ReasonSigningKeyUnusable, "key git.asc of Secret shop/signing cannot sign",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, signing(test.format, test.broken))
			s.cluster.put(configMap("a"), "1")
			ready := s.waitReady("main", test.reason)
			if !strings.Contains(ready.Message, test.says) || strings.Contains(ready.Message, "gue55") || strings.Contains(ready.Message, "s3cret") {
				t.Errorf("message = %q, want %q", ready.Message, test.says)
			}
			if _, err := os.Stat(filepath.Join(s.git.root, "shop.git")); !os.IsNotExist(err) {
				t.Errorf("remote was written: %v", err) // The Git server creates a repository on the first push.
			}
			s.putSecret("signing", test.mended)
			s.mirrored()
			if !s.allSigned() {
				t.Error("commit without a signature")
			}
		})
	}
}

// allSigned reports whether every commit of main has a signature, by whichever key.
func (s *fixture) allSigned() bool {
	for hash := range strings.FieldsSeq(s.mustRun("rev-list", "main")) {
		if !strings.Contains(s.mustRun("cat-file", "commit", hash), "\ngpgsig -----BEGIN ") {
			return false
		}
	}
	return true
}

// TestKeyExpiresWhileTheServerRuns reads a key while it is valid, and lets it expire.
func TestKeyExpiresWhileTheServerRuns(t *testing.T) {
	s := newFixture(t, signing(v1alpha1.SigningFormatOpenPGP, map[string][]byte{
		"git.asc": newOpenPGPKey(t, time.Now().Add(-time.Hour), 2*time.Hour),
	}))
	s.cluster.put(configMap("a"), "0")
	s.mirrored()
	s.ahead.Store(int64(2 * time.Hour))
	s.cluster.put(configMap("a"), "1")
	if ready := s.waitReady("main", v1alpha1.ReasonSigningKeyUnusable); !strings.Contains(ready.Message, "expired at") {
		t.Errorf("message = %q", ready.Message)
	}
	s.putSecret("signing", map[string][]byte{"git.asc": newOpenPGPKey(t, time.Now().Add(-time.Hour), 0)})
	s.mirrored()
	if !s.allSigned() {
		t.Error("commit without a signature")
	}
}
