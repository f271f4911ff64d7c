// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestOpenPGPKeyExpiresInMidBurst has the next key in the Secret, once in the same export and once appended. No push may fail, and Git
// verifies the commits by both keys.
func TestOpenPGPKeyExpiresInMidBurst(t *testing.T) {
	expiring := newOpenPGPKey(t, time.Now().Add(-time.Hour), 2*time.Hour)
	next := newOpenPGPKey(t, time.Now().Add(-time.Hour), 0)
	s := newFixture(t, perChange, signing(v1alpha1.SigningFormatOpenPGP, map[string][]byte{
		"git.asc": []byte(string(expiring) + "\n" + string(next) + "\n"),
	}))
	for i := range 10 {
		if i == 5 {
			s.mirrored()
			s.ahead.Store(int64(2 * time.Hour))
		}
		s.cluster.put(configMap("a"), fmt.Sprint(i))
	}
	s.mirrored()
	s.idle()
	if retries := s.record("main").PushRetries; retries != 0 {
		t.Errorf("%d pushes failed", retries)
	}
	signers := s.verifiedByGPG(expiring, next)
	first, last := keyID(t, expiring), keyID(t, next)
	if signers[0] != last || signers[len(signers)-1] != first {
		t.Errorf("commits signed by %v, newest first; want %s, then %s", signers, last, first)
	}
}

// keyID returns the ID of an armored key as gpg prints it.
func keyID(t *testing.T, armored []byte) string {
	t.Helper()
	entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(string(armored)))
	if err != nil {
		t.Fatal(err)
	}
	return entities[0].PrimaryKey.KeyIdString()
}

// verifiedByGPG fails unless git verify-commit verifies every commit of main by one of the keys: at the time of the fixture, or, if the key
// has expired until then, now. It returns the IDs of the signing keys, the newest commit first.
func (s *fixture) verifiedByGPG(keys ...[]byte) []string {
	s.t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		s.t.Skip("gpg is not installed")
	}
	home, err := os.MkdirTemp("", "gpg") // The path of a socket is limited to 108 bytes.
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	early, program := gpgAt(s.t, home, time.Now()), gpgAt(s.t, home, s.now())
	for _, key := range keys {
		load := exec.CommandContext(s.t.Context(), program, "--import")
		load.Stdin = strings.NewReader(string(key))
		if out, err := load.CombinedOutput(); err != nil {
			s.t.Fatalf("gpg --import: %v: %s", err, out)
		}
	}
	var signers []string
	for line := range strings.Lines(s.mustRun("-c", "gpg.program="+program, "log", "--format=%G? %GK %H", "main")) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			s.t.Fatalf("no signature: %s", line)
		}
		signers = append(signers, fields[1])
		at := program
		if fields[0] == "Y" { // By a key that has expired since.
			at = early
		}
		s.mustRun("-c", "gpg.program="+at, "verify-commit", fields[2])
	}
	return signers
}

// gpgAt returns a program that runs gpg at a time.
func gpgAt(t *testing.T, home string, at time.Time) string {
	t.Helper()
	program := filepath.Join(home, fmt.Sprint("gpg-", at.Unix()))
	script := fmt.Sprintf("#!/bin/sh\nexec gpg --homedir %s --batch --quiet --no-tty --faked-system-time %d \"$@\"\n", home, at.Unix())
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// TestSSHKeyIsReplacedInMidBurst replaces the key while objects change. Git verifies the commits with a file in which each key has its time.
func TestSSHKeyIsReplacedInMidBurst(t *testing.T) {
	first, firstPublic := newSSHKey(t, "")
	second, secondPublic := newSSHKey(t, "")
	s := newFixture(t, perChange, pollOften, signing(v1alpha1.SigningFormatSSH, map[string][]byte{"ssh-privatekey": first}))
	for i := range 10 {
		s.cluster.put(configMap("a"), fmt.Sprint(i))
	}
	s.mirrored()
	s.putSecret("signing", map[string][]byte{"ssh-privatekey": second})
	changes := 0
	testkit.Eventually(t, "the next key is used", func() error {
		changes++
		s.cluster.put(configMap("a"), fmt.Sprint("after ", changes))
		s.mirrored()
		return s.signedBy(secondPublic)
	})
	if retries := s.record("main").PushRetries; retries != 0 {
		t.Errorf("%d pushes failed", retries)
	}
	const form = "20060102150405"
	now := time.Now()
	signers := filepath.Join(t.TempDir(), "allowed_signers")
	content := fmt.Sprintf("bot@example.com valid-before=\"%s\" %sbot@example.com valid-after=\"%s\" %s",
		now.Add(time.Hour).Format(form), firstPublic, now.Add(-time.Hour).Format(form), secondPublic)
	if err := os.WriteFile(signers, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for hash := range strings.FieldsSeq(s.mustRun("rev-list", "main")) {
		s.mustRun("-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", hash)
	}
}
