// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// made returns a folder with a generated configuration.
func made(t *testing.T) encryption.Folder {
	t.Helper()
	folder := encryption.Folder{Path: t.TempDir()}
	if err := encryption.Ensure(t.Context(), folder, func(context.Context) (string, error) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	return folder
}

func read(t *testing.T, home encryption.Home) string {
	t.Helper()
	content, err := home.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestCopy copies a configuration to an empty home and back. It must never be overwritten by one that cannot decrypt its
// data.
func TestCopy(t *testing.T) {
	folder := made(t)
	secret := encryption.ClusterSecret{Client: fake.NewClientset().CoreV1().Secrets("slipstream"), Namespace: "slipstream"}
	move := func(from, to encryption.Home) error { return encryption.Copy(t.Context(), []byte(read(t, from)), to) }
	for range 2 {
		if err := move(folder, secret); err != nil {
			t.Fatal(err)
		}
		if read(t, secret) != read(t, folder) {
			t.Errorf("the copy is %s", read(t, secret))
		}
	}
	if _, err := encryption.Rotate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	rotated := read(t, secret)
	if err := move(folder, secret); err != nil || read(t, secret) != rotated {
		t.Errorf("one that has the key and another: %v, and then %s", err, read(t, secret))
	}
	before := read(t, folder)
	for name, from := range map[string]encryption.Home{"one more key": secret, "another key": made(t)} {
		if err := move(from, folder); !errors.Is(err, encryption.ErrOtherKeys) || !strings.Contains(err.Error(), folder.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if read(t, folder) != before {
		t.Errorf("what was refused has left %s", read(t, folder))
	}
}

func TestOpens(t *testing.T) {
	own := read(t, made(t))
	edited := strings.Replace(own, "  - identity: {}",
		"  - aesgcm:\n      keys:\n      - name: mine\n        secret: c2VjcmV0IGlzIHNlY3VyZQ==\n  - identity: {}", 1)
	if edited == own {
		t.Fatalf("this has no identity to put a provider before:\n%s", own)
	}
	for name, test := range map[string]struct {
		content, other string
		want           bool
	}{
		"the same":                       {own, own, true},
		"the same, edited":               {edited, edited, true},
		"more than a server makes":       {edited, own, true},
		"less than what was edited":      {own, edited, false},
		"something else":                 {"{}", own, false},
		"something else for what is own": {own, "{}", false},
		"nothing":                        {"", own, false},
	} {
		if got := encryption.Opens([]byte(test.content), []byte(test.other)); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
