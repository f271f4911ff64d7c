// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
)

const (
	// The constant parts of SSHSIG (PROTOCOL.sshsig of OpenSSH). The namespace prevents that a signature for one purpose is
	// used for another.
	sshMagic     = "SSHSIG"
	sshVersion   = 1
	sshNamespace = "git"
	sshHash      = "sha512"
	sshArmor     = "SSH SIGNATURE"
)

// sshAlgorithms are the key types whose signatures OpenSSH accepts; DSA is not among them.
var sshAlgorithms = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521}

// SSH returns a signer with an SSH private key in PEM or OpenSSH form. The passphrase decrypts it if it is encrypted.
func SSH(key, passphrase []byte) (Signer, error) {
	signer, err := sshKey(key, passphrase)
	if err != nil {
		return nil, err
	}
	algorithm := signer.PublicKey().Type()
	by, ok := signer.(ssh.AlgorithmSigner)
	switch {
	case !ok || !slices.Contains(sshAlgorithms, algorithm):
		return nil, fmt.Errorf("signatures by a key of type %s are not accepted; use ed25519", algorithm)
	case algorithm == ssh.KeyAlgoRSA:
		algorithm = ssh.KeyAlgoRSASHA512 // OpenSSH does not accept RSA with SHA-1.
	}
	return func(commit []byte) (string, error) { return signSSH(by, algorithm, commit) }, nil
}

// maxSSHKey bounds a private key, in bytes: RSA with 16384 bits takes 12 KiB, and a second for a signature.
const maxSSHKey = 16 << 10

func sshKey(key, passphrase []byte) (ssh.Signer, error) {
	if len(key) > maxSSHKey {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSSHKey)
	}
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return signer, nil
	case !errors.As(err, &locked):
		return nil, errors.New("it is not a private key in PEM or OpenSSH form")
	case len(passphrase) == 0:
		return nil, errLocked
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(key, passphrase)
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, errPassphrase
	}
	return signer, err
}

// Errors of both kinds of key.
var (
	errLocked     = errors.New("the key is locked and there is no passphrase")
	errPassphrase = errors.New("the passphrase does not open the key")
)

// signSSH signs the digest in a frame with its namespace, and returns the signature with the public key, so that it can be
// verified on its own.
func signSSH(by ssh.AlgorithmSigner, algorithm string, commit []byte) (string, error) {
	digest := sha512.Sum512(commit)
	framed := append([]byte(sshMagic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{
		Namespace: sshNamespace, Hash: sshHash, Digest: string(digest[:]),
	})...)
	made, err := by.SignWithAlgorithm(rand.Reader, framed, algorithm)
	if err != nil {
		return "", fmt.Errorf("sign by SSH key: %w", err)
	}
	wrapped := append([]byte(sshMagic), ssh.Marshal(struct {
		Version                                         uint32
		PublicKey, Namespace, Reserved, Hash, Signature string
	}{
		Version: sshVersion, PublicKey: string(by.PublicKey().Marshal()), Namespace: sshNamespace, Hash: sshHash,
		Signature: string(ssh.Marshal(made)),
	})...)
	return string(pem.EncodeToMemory(&pem.Block{Type: sshArmor, Bytes: wrapped})), nil
}
