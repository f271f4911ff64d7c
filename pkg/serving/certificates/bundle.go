// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// maxOthers limits the authorities in a bundle that the writer does not need.
const maxOthers = 8

// parseBundle returns the certificates in a text, which can contain anything else.
func parseBundle(text []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return found
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && block.Type == certutil.CertificateBlockType && !contains(found, certificate) {
			found = append(found, certificate)
		}
	}
}

// encodeBundle encodes certificates in PEM.
func encodeBundle(certificates []*x509.Certificate) []byte {
	var text []byte
	for _, each := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: each.Raw})...)
	}
	return text
}

func contains(certificates []*x509.Certificate, certificate *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, certificate.Equal)
}

// sameCertificates compares certificates regardless of their order.
func sameCertificates(some, others []*x509.Certificate) bool {
	return containsAll(some, others) && containsAll(others, some)
}

func containsAll(certificates, wanted []*x509.Certificate) bool {
	return !slices.ContainsFunc(wanted, func(each *x509.Certificate) bool { return !contains(certificates, each) })
}

// withAuthorities puts the wanted authorities first in a bundle, and drops expired ones and excess ones at the end. A
// bundle that has all of them is unchanged.
func withAuthorities(held, wanted []*x509.Certificate, now time.Time) []*x509.Certificate {
	if containsAll(held, wanted) {
		return held
	}
	others := slices.DeleteFunc(slices.Clone(held), func(each *x509.Certificate) bool {
		return contains(wanted, each) || now.After(each.NotAfter)
	})
	return slices.Concat(wanted, others[:min(len(others), maxOthers)])
}
