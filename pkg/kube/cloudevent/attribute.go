// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloudevent writes the attributes of CloudEvents 1.0 into HTTP headers (binary mode).
package cloudevent

import (
	"fmt"
	"net/http"
	"strings"
)

// SetAttributes sets the headers of attributes. Those with an empty value are left out.
func SetAttributes(header http.Header, attributes map[string]string) {
	for name, value := range attributes {
		if value != "" {
			header.Set("ce-"+name, escape(value))
		}
	}
}

// escape encodes the value of an attribute for a header: each byte of UTF-8 that is a space, a double quote, a percent sign or
// not printable ASCII becomes a percent sign and two hexadecimal digits.
func escape(value string) string {
	var escaped strings.Builder
	for _, b := range []byte(value) {
		if b <= ' ' || b > '~' || b == '"' || b == '%' {
			fmt.Fprintf(&escaped, "%%%02X", b)
			continue
		}
		escaped.WriteByte(b)
	}
	return escaped.String()
}
