// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"time"

	"golang.org/x/crypto/ssh"
)

// SSHCertificateEnd returns when a user certificate ends, zero if it never does.
func SSHCertificateEnd(certificate []byte) (time.Time, error) {
	parsed, err := parseCertificate(certificate)
	if err != nil || parsed.ValidBefore == ssh.CertTimeInfinity {
		return time.Time{}, err
	}
	return certificateTime(parsed.ValidBefore), nil
}

// certified returns a signer that presents a user certificate of its key. It returns an error for a certificate that no server would
// accept, because servers do not say why.
func certified(signer ssh.Signer, content []byte, now time.Time) (ssh.Signer, error) {
	certificate, err := parseCertificate(content)
	if err != nil {
		return nil, err
	}
	after, before := certificateTime(certificate.ValidAfter), certificateTime(certificate.ValidBefore)
	switch {
	case !bytes.Equal(certificate.Key.Marshal(), signer.PublicKey().Marshal()):
		return nil, refuse(Invalid, "the SSH certificate is for another key, %s; the private key is %s",
			ssh.FingerprintSHA256(certificate.Key), ssh.FingerprintSHA256(signer.PublicKey()))
	case now.Before(after):
		return nil, refuse(Invalid, "the SSH certificate is not valid before %s", timeText(after))
	case certificate.ValidBefore != ssh.CertTimeInfinity && !now.Before(before):
		return nil, refuse(Invalid, "the SSH certificate expired at %s", timeText(before))
	}
	with, err := ssh.NewCertSigner(certificate, signer)
	if err != nil {
		return nil, refuse(Invalid, "the SSH certificate cannot be used: %v", err)
	}
	return with, nil
}

// maxCertificate bounds a certificate in bytes. Those of authorities and keys with 16384 bits of RSA have 8 KiB.
const maxCertificate = 32 << 10

func parseCertificate(content []byte) (*ssh.Certificate, error) {
	if len(content) > maxCertificate {
		return nil, refuse(Invalid, "the SSH certificate is larger than %s", sizeText(maxCertificate))
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(content) //nolint:dogsled // The others are options of authorized_keys.
	if err != nil {
		return nil, refuse(Invalid, "the SSH certificate is not in the form of OpenSSH (ssh-keygen -s)")
	}
	certificate, ok := key.(*ssh.Certificate)
	switch {
	case !ok:
		return nil, refuse(Invalid, "the SSH certificate is a public key without the signature of an authority")
	case certificate.CertType != ssh.UserCert:
		return nil, refuse(Invalid, "the SSH certificate is one for hosts, not for users")
	}
	return certificate, nil
}

// certificateTime returns a time of a certificate. The largest one, which means never, is no time.
func certificateTime(seconds uint64) time.Time {
	const year9999 = 253402300799
	return time.Unix(int64(min(seconds, year9999)), 0)
}

func timeText(at time.Time) string { return at.UTC().Format(time.RFC3339) }
