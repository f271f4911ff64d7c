// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ingresshost_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/environment/ingresshost"
)

func TestHost(t *testing.T) {
	tests := []struct{ template, source, want, says string }{
		{template: "{label}.{environment}.dev.example.com", source: "shop.example.com", want: "shop.alice.dev.example.com"},
		{template: "{host}.{namespace}.dev", source: "shop.example.com", want: "shop.example.com.team-a.dev"},
		{template: "{environment}-{label}.dev.example.com", source: "shop.example.com", want: "alice-shop.dev.example.com"},
		{template: "{label}.{environment}.dev", source: "*.example.com", want: "*.alice.dev"},
		{template: "{label}.dev", source: "localhost", want: "localhost.dev"},
		{template: "shop.dev.example.com", source: "shop.example.com", want: "shop.dev.example.com"},
		{template: "{environment}-{label}.dev", source: "*.example.com", says: "alice-*.dev is no host name"},
		{template: "x{label}.dev", source: strings.Repeat("a", 63), says: "more than 63 characters"},
	}
	for _, test := range tests {
		t.Run(test.template+" of "+test.source, func(t *testing.T) {
			template, err := ingresshost.Parse(test.template)
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Host(test.source, ingresshost.Place{Environment: "alice", Namespace: "team-a"})
			if got != test.want || (err == nil) != (test.says == "") {
				t.Errorf("host = %[2]q, %[3]v, want %[1]q", test.want, got, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error = %v, want %q", err, test.says)
			}
		})
	}
}

func TestParseSaysWhatIsAllowed(t *testing.T) {
	for text, says := range map[string]string{
		"":                        "such as {label}.{environment}.dev.example.com",
		"{name}.dev":              "no other variables than {host}, {label}, {environment}, {namespace}, not {name}",
		"{}.dev":                  "not {}",
		"{label.dev":              "a host name with variables",
		"{{label}}.dev":           "a host name with variables",
		"https://{label}.dev":     "a host name with variables",
		"{label}.Dev.example.com": "lower case",
		"{label}..dev":            "a host name with variables",
	} {
		if _, err := ingresshost.Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%[1]q: error = %[3]v, want %[2]q", text, says, err)
		}
	}
}
