// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package signature_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/signature"
)

const passphrase = "open s3same"

// command runs a program without the configuration of the machine and its user.
type command struct {
	t         *testing.T
	directory string
	input     []byte
	// home is the folder of gpg's keys.
	home string
}

func (c command) try(name string, arguments ...string) (string, error) {
	program := exec.CommandContext(c.t.Context(), name, arguments...)
	program.Dir, program.Stdin = c.directory, bytes.NewReader(c.input)
	program.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GNUPGHOME="+c.home)
	var stderr strings.Builder
	program.Stderr = &stderr
	output, err := program.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, stderr.String())
	}
	return string(output), err
}

func (c command) run(name string, arguments ...string) string {
	c.t.Helper()
	output, err := c.try(name, arguments...)
	if err != nil {
		c.t.Fatal(err)
	}
	return output
}

// signedRepository pushes a signed commit and returns the repository.
func signedRepository(t *testing.T, sign signature.Signer) command {
	t.Helper()
	git := command{t: t, directory: t.TempDir()}
	git.run("git", "init", "--quiet", "--bare", "--initial-branch=main")
	remote := &gitrepo.Remote{URL: git.directory}
	t.Cleanup(remote.Close)
	branch, err := gitrepo.Load(t.Context(), remote, "main", gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bot := gitrepo.Signature{Name: "bot", Email: "bot@example.com", When: time.Now()}
	_, _, err = branch.Stage(gitrepo.Commit{
		Author: bot, Committer: bot, Sign: sign, Message: "change\n\nwith a body\n\nX-Trailer: 1\n",
		Changes: []gitrepo.Change{{Path: "a", Content: []byte("a\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := branch.Push(t.Context()); err != nil {
		t.Fatal(err)
	}
	git.run("git", "fsck", "--strict")
	return git
}

func sshKey(t *testing.T, arguments ...string) (private []byte, public string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	command{t: t}.run("ssh-keygen", append([]string{"-q", "-C", "", "-f", file}, arguments...)...)
	return read(t, file), string(read(t, file+".pub"))
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestSSHIsVerifiedByGit(t *testing.T) {
	_, stranger := sshKey(t, "-t", "ed25519", "-N", "")
	for name, test := range map[string]struct {
		arguments  []string
		passphrase string
	}{
		"ed25519":        {arguments: []string{"-t", "ed25519", "-N", ""}},
		"ed25519 locked": {[]string{"-t", "ed25519", "-N", passphrase}, passphrase},
		"rsa":            {arguments: []string{"-t", "rsa", "-b", "2048", "-N", ""}},
		"rsa in PEM":     {[]string{"-t", "rsa", "-b", "2048", "-m", "PEM", "-N", passphrase}, passphrase},
		"ecdsa":          {arguments: []string{"-t", "ecdsa", "-b", "256", "-N", ""}},
		"ecdsa 521":      {arguments: []string{"-t", "ecdsa", "-b", "521", "-N", ""}},
		"ecdsa in PKCS8": {arguments: []string{"-t", "ecdsa", "-b", "384", "-m", "PKCS8", "-N", ""}},
		"not locked":     {[]string{"-t", "ed25519", "-N", ""}, passphrase},
	} {
		t.Run(name, func(t *testing.T) {
			private, public := sshKey(t, test.arguments...)
			sign, err := signature.SSH(private, []byte(test.passphrase))
			if err != nil {
				t.Fatal(err)
			}
			git := signedRepository(t, sign)
			verify := func(key string) error {
				signers := filepath.Join(t.TempDir(), "signers")
				if err := os.WriteFile(signers, []byte("bot@example.com "+key), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := git.try("git", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", "main")
				return err
			}
			if err := verify(public); err != nil {
				t.Error(err)
			}
			if verify(stranger) == nil {
				t.Error("signature was verified with another key")
			}
		})
	}
}

// gnupg returns a folder for gpg's keys.
func gnupg(t *testing.T) command {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	home, err := os.MkdirTemp("", "gpg") // The path of a socket is limited to 108 bytes.
	if err != nil {
		t.Fatal(err)
	}
	// Otherwise the agent measures for seconds how many iterations it can use for a passphrase.
	if err := os.WriteFile(filepath.Join(home, "gpg-agent.conf"), []byte("s2k-count 65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gpg := command{t: t, home: home}
	t.Cleanup(func() {
		end := exec.Command("gpgconf", "--homedir", home, "--kill", "all") // The context of the test has ended already.
		if output, err := end.CombinedOutput(); err != nil {
			t.Errorf("failed to stop gpg-agent: %v: %s", err, output)
		}
		_ = os.RemoveAll(home)
	})
	return gpg
}

func (c command) gpg(arguments ...string) string {
	c.t.Helper()
	return c.run("gpg", append([]string{
		"--batch", "--quiet", "--no-tty", "--pinentry-mode=loopback", "--passphrase", string(c.input),
	}, arguments...)...)
}

// generate creates a key for a user and returns its fingerprint.
func (c command) generate(algorithm, usage, expires string) string {
	c.t.Helper()
	c.gpg("--quick-generate-key", "bot <bot@example.com>", algorithm, usage, expires)
	for line := range strings.Lines(c.gpg("--with-colons", "--list-secret-keys")) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			return fields[9]
		}
	}
	c.t.Fatal("gpg has created no key")
	return ""
}

func TestOpenPGPIsVerifiedByGit(t *testing.T) {
	for name, test := range map[string]struct {
		algorithm, usage, passphrase string
		subkey, export               string
	}{
		"ed25519":        {algorithm: "ed25519", usage: "sign"},
		"ed25519 locked": {algorithm: "ed25519", usage: "sign", passphrase: passphrase},
		"rsa":            {algorithm: "rsa3072", usage: "default", passphrase: passphrase},
		"nistp256":       {algorithm: "nistp256", usage: "sign"},
		"signing subkey": {algorithm: "ed25519", usage: "cert", subkey: "ed25519"},
		"signing subkey alone": {
			algorithm: "ed25519", usage: "cert", subkey: "rsa2048", passphrase: passphrase, export: "--export-secret-subkeys",
		},
	} {
		t.Run(name, func(t *testing.T) {
			gpg := gnupg(t)
			gpg.input = []byte(test.passphrase)
			fingerprint := gpg.generate(test.algorithm, test.usage, "never")
			if test.subkey != "" {
				gpg.gpg("--quick-add-key", fingerprint, test.subkey, "sign", "never")
			}
			if test.export == "" {
				test.export = "--export-secret-keys"
			}
			key := gpg.gpg("--armor", test.export, fingerprint)
			sign, err := signature.OpenPGP([]byte(key), []byte(test.passphrase), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			git := signedRepository(t, sign)
			git.home = gpg.home
			git.run("git", "verify-commit", "main")
			git.home = gnupg(t).home
			if _, err := git.try("git", "verify-commit", "main"); err == nil {
				t.Error("signature was verified without the key")
			}
		})
	}
}

func TestOpenPGPKeyExpires(t *testing.T) {
	gpg := gnupg(t)
	fingerprint := gpg.generate("ed25519", "sign", "2d")
	key := []byte(gpg.gpg("--armor", "--export-secret-keys", fingerprint))
	now := time.Now()
	sign, err := signature.OpenPGP(key, nil, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sign([]byte("commit")); err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{3: " expired at 20", -3: "is dated in the future"} {
		now = time.Now().AddDate(0, 0, days)
		_, loading := signature.OpenPGP(key, nil, func() time.Time { return now })
		_, signing := sign([]byte("commit"))
		for _, err := range []error{loading, signing} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fingerprint[24:]) {
				t.Errorf("error after %d days: %v", days, err)
			}
		}
	}
}

func TestKeysThatCannotSign(t *testing.T) {
	ssh, public := sshKey(t, "-t", "ed25519", "-N", passphrase)
	gpg := gnupg(t)
	gpg.input = []byte(passphrase)
	fingerprint := gpg.generate("ed25519", "sign", "never")
	locked := gpg.gpg("--armor", "--export-secret-keys", fingerprint)
	open := func(key, passphrase []byte) (signature.Signer, error) {
		return signature.OpenPGP(key, passphrase, time.Now)
	}
	for name, test := range map[string]struct {
		read            func(key, passphrase []byte) (signature.Signer, error)
		key, passphrase string
		says            string
	}{
		"SSH, no passphrase":        {signature.SSH, string(ssh), "", "there is no passphrase"},
		"SSH, wrong passphrase":     {signature.SSH, string(ssh), "guessed", "the passphrase does not open the key"},
		"SSH, public key":           {signature.SSH, public, "", "not a private key in PEM or OpenSSH form"},
		"SSH, OpenPGP key":          {signature.SSH, locked, "", "not a private key in PEM or OpenSSH form"},
		"SSH, empty":                {signature.SSH, "", "", "not a private key"},
		"OpenPGP, no passphrase":    {open, locked, "", "there is no passphrase"},
		"OpenPGP, wrong passphrase": {open, locked, "guessed", "the passphrase does not open the key"},
		"OpenPGP, public key":       {open, gpg.gpg("--armor", "--export", fingerprint), "", "is a public key"},
		"OpenPGP, SSH key":          {open, string(ssh), "", "not an armored OpenPGP private key"},
		"OpenPGP, cut short":        {open, locked[:len(locked)/2], "", "not an armored OpenPGP private key"},
		"OpenPGP, empty":            {open, "", "", "not an armored OpenPGP private key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.read([]byte(test.key), []byte(test.passphrase))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error = %v, want %q", err, test.says)
			}
		})
	}
}

func TestRevokedOpenPGPKey(t *testing.T) {
	gpg := gnupg(t)
	fingerprint := gpg.generate("ed25519", "sign", "never")
	certificate := read(t, filepath.Join(gpg.home, "openpgp-revocs.d", fingerprint+".rev"))
	file := filepath.Join(t.TempDir(), "revocation")
	armored := bytes.ReplaceAll(certificate, []byte(":-----"), []byte("-----"))
	if err := os.WriteFile(file, armored, 0o600); err != nil {
		t.Fatal(err)
	}
	gpg.gpg("--import", file)
	_, err := signature.OpenPGP([]byte(gpg.gpg("--armor", "--export-secret-keys", fingerprint)), nil, time.Now)
	if err == nil || !strings.Contains(err.Error(), "is revoked") {
		t.Errorf("error = %v", err)
	}
}
