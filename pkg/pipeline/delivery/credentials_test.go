// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
)

func TestCredentials(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("jane:pa:ss"))
	for name, tt := range map[string]struct {
		data map[string]string
		want string
	}{
		"token":                         {map[string]string{"token": "abc"}, "Bearer abc"},
		"token with the end of a line":  {map[string]string{"token": "abc\n"}, "Bearer abc"},
		"user":                          {map[string]string{"username": "jane", "password": "pa:ss\r\n"}, basic},
		"token beside a user":           {map[string]string{"token": "abc", "username": "jane", "password": "pa:ss"}, "Bearer abc"},
		"other keys, which are ignored": {map[string]string{"token": "abc", "ca.crt": "x"}, "Bearer abc"},
		"none":                          {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			got := "not asked"
			s.receiver(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })
			if tt.data != nil {
				s.secret(tt.data)
			}
			if result := s.deliver(s.sink()); result.Outcome != format.Delivered || got != tt.want {
				t.Errorf("sent %q, want %q: %+v", got, tt.want, result)
			}
		})
	}
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	const neither = "the Secret ops/receiver has neither token nor username and password; add one of the two"
	for name, tt := range map[string]struct {
		data map[string]string
		want string
	}{
		"empty":       {map[string]string{}, neither},
		"empty token": {map[string]string{"token": "\n"}, neither},
		"no password": {map[string]string{"username": "jane"}, neither},
		"no username": {map[string]string{"password": "abc"}, neither},
		"two lines": {
			map[string]string{"token": "abc\ndef"},
			"the token in the Secret ops/receiver has characters that no header can have, such as a line break; write it again",
		},
		"a file": {
			map[string]string{"token": strings.Repeat("x", 20_000)},
			"what the Secret ops/receiver holds is longer than 16384 characters, which no header can be",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.receiver(func(http.ResponseWriter, *http.Request) { t.Error("unexpected request") })
			s.secret(tt.data)
			if got := s.deliver(s.sink()); got.Outcome != format.Retry || got.Message != tt.want {
				t.Errorf("got %+v, want %q", got, tt.want)
			}
		})
	}
}

func TestSecretsThatCannotBeRead(t *testing.T) {
	s := newFixture(t)
	s.receiver(func(http.ResponseWriter, *http.Request) { t.Error("unexpected request") })
	s.spec.SecretRef = &v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "receiver"}
	sink := s.sink()
	want := "there is no Secret ops/receiver, which secretRef names; create it"
	if got := s.deliver(sink); got.Outcome != format.Retry || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	s.cluster.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("etcd is unavailable")
	})
	want = "read the Secret ops/receiver: etcd is unavailable"
	if got := s.deliver(sink); got.Outcome != format.Retry || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// A replaced token is used for the next batch, on the same connection. A wrong one is reported without its value.
func TestRotation(t *testing.T) {
	s := newFixture(t)
	s.receiver(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer second" {
			http.Error(w, "not "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		}
	})
	s.secret(map[string]string{"token": "first"})
	sink := s.sink()
	want := "the receiver refuses the credentials in the Secret ops/receiver: 401 Unauthorized: not Bearer [REDACTED]"
	if got := s.deliver(sink); got.Outcome != format.Rejected || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	s.secret(map[string]string{"token": "second"})
	if got := s.deliver(sink); got.Outcome != format.Delivered {
		t.Errorf("with the new token: %+v", got)
	}
}

// Credentials are redacted in whatever form a receiver quotes them.
func TestQuotedCredentials(t *testing.T) {
	percent := regexp.MustCompile("%..")
	quote := func(text string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(quoted)
	}
	const token, password = `to/k+e<n>"s3cret"%=`, "p ä&ss/w\"örd?>"
	for kind, data := range map[string]map[string]string{
		"token":    {"token": token},
		"password": {"username": "jane", "password": password},
	} {
		secret := data[kind]
		pair := data["username"] + ":" + secret
		for name, said := range map[string]string{
			"plain":                 secret,
			"in a URL's query":      url.QueryEscape(secret),
			"in a URL's path":       url.PathEscape(secret),
			"escaped in lower case": percent.ReplaceAllStringFunc(url.QueryEscape(secret), strings.ToLower),
			"in JSON":               quote(secret),
			"in JSON, less escaped": strings.ReplaceAll(secret, `"`, `\"`),
			"in base 64":            base64.StdEncoding.EncodeToString([]byte(secret)),
			"in base 64 of URLs":    base64.RawURLEncoding.EncodeToString([]byte(secret)),
			"the header":            "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)),
			"the header, escaped":   url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(pair))),
			"where the text is cut": strings.Repeat("x", 160) + secret + " " + secret,
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				s := newFixture(t)
				s.receiver(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, said)
				})
				s.secret(data)
				got := s.deliver(s.sink()).Message
				if !strings.Contains(got, "[REDA") && !strings.HasSuffix(got, "...") {
					t.Errorf("%q was not redacted", got)
				}
				for _, part := range []string{"s3cret", "ss/w", "%26ss", "äss", "_w", said[len(said)-6:]} {
					if strings.Contains(got, part) {
						t.Errorf("%q contains %q", got, part)
					}
				}
			})
		}
	}
}

// Credentials are found, or cut off, in a response with many partial matches.
func TestQuotedCredentialsThatAreLong(t *testing.T) {
	const most = 16 << 10
	for name, tt := range map[string]struct{ token, said, want string }{
		"found":             {strings.Repeat("a", most), strings.Repeat("a", 40<<10), "500 Internal Server Error: [REDACTED]"},
		"almost":            {strings.Repeat(" ", most-1) + "b", strings.Repeat(" ", 40<<10) + "c", "500 Internal Server Error:"},
		"almost, escaped":   {strings.Repeat(`\`, most-1) + "b", strings.Repeat(`\`, 40<<10), strings.Repeat(`\`, 100)},
		"surrogates":        {"😀xxx", `\ud83D\uDe00xxx %f0%9F%98%80x\u0078x`, "[REDACTED] [REDACTED]"},
		"escapes as it has": {`a\\\u0020`, `a\\\u0020 a%5c%5C%5cu0020 a\\\\\\u0020`, "[REDACTED] [REDACTED] [REDACTED]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.receiver(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, tt.said)
			})
			s.secret(map[string]string{"token": tt.token})
			if got := s.deliver(s.sink()).Message; !strings.Contains(got, tt.want) || len(got) > 200 {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
