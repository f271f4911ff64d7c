// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// callGo and callPython call the functions of the page with the secret, the ID, the time, the signatures and the body.
const (
	callGo = `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	header := http.Header{"Webhook-Id": {os.Args[2]}, "Webhook-Timestamp": {os.Args[3]}, "Webhook-Signature": {os.Args[4]}}
	if err := verify(os.Args[1], header, []byte(os.Args[5])); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

`
	callPython = `
import sys
_, secret, id, timestamp, signature, body = sys.argv
verify(secret, {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}, body.encode())
`
)

// TestSignature runs the functions of the page that verify signatures.
func TestSignature(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	programs := map[string][]string{}
	for _, b := range fencedBlocks(t, moduleRoot(t), notificationsPage) {
		code := strings.Join(b.lines, "\n")
		switch b.language {
		case languageGo:
			source := filepath.Join(folder, "main.go")
			program := filepath.Join(folder, "verify")
			writeCode(t, source, callGo+code+"\n")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			programs["Go"] = []string{program}
		case languagePython:
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Log("the Python code is not run: there is no python3")
				continue
			}
			source := filepath.Join(folder, "verify.py")
			writeCode(t, source, code+callPython)
			programs["Python"] = []string{python, source}
		}
	}
	if programs["Go"] == nil {
		t.Error("the page has no Go code")
	}
	for language, program := range programs {
		t.Run(language, func(t *testing.T) { expectVerified(t, program) })
	}
}

func writeCode(t *testing.T, path, code string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expectVerified expects a program to accept a signed request, also one with several signatures, and to refuse others.
func expectVerified(t *testing.T, program []string) {
	secretOf := func(key string) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(key, 32)))
	}
	const body = `{"headline":"grün"}`
	now := time.Now()
	for name, test := range map[string]struct {
		secret, body string
		at           time.Time
		accepted     bool
	}{
		"signed":           {secretOf("a"), body, now, true},
		"another key":      {secretOf("c"), body, now, false},
		"another body":     {secretOf("a"), body + " ", now, false},
		"an old request":   {secretOf("a"), body, now.Add(-time.Hour), false},
		"the second key":   {secretOf("b"), body, now, true},
		"a future request": {secretOf("a"), body, now.Add(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			var signatures []string
			for _, key := range []string{"a", "b"} {
				signer, err := standardwebhooks.NewWebhook(secretOf(key))
				if err != nil {
					t.Fatal(err)
				}
				signature, err := signer.Sign("message-1", test.at, []byte(body))
				if err != nil {
					t.Fatal(err)
				}
				signatures = append(signatures, signature)
			}
			arguments := slices.Concat(program[1:], []string{
				test.secret, "message-1", strconv.FormatInt(test.at.Unix(), 10), strings.Join(signatures, " "), test.body,
			})
			out, err := exec.CommandContext(t.Context(), program[0], arguments...).CombinedOutput()
			if accepted := err == nil; accepted != test.accepted {
				t.Errorf("accepted: %v, want %v: %s", accepted, test.accepted, out)
			}
		})
	}
}
