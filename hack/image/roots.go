// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsModule is the module with the certificates of the authorities that Mozilla trusts.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// roots returns the certificates as a PEM file. It omits authorities that are trusted only for certificates issued before
// some date, since a file cannot express that.
func roots() ([]byte, error) {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("encode the certificate of an authority: %w", err)
		}
	}
	return file.Bytes(), nil
}
