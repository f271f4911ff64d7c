// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

const password = "hush-hush"

// secret returns the data of a Secret.
func secret(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

func TestFromSecret(t *testing.T) {
	for name, tt := range map[string]struct {
		data map[string][]byte
		// want is the description or the error.
		want string
	}{
		"HTTP":                   {secret("address", "http://proxy.example.com:3128"), "http://proxy.example.com:3128 (Secret shop/proxy)"},
		"with a newline":         {secret("address", "http://proxy.example.com:3128\n", "username", "a\n", "password", "b\n"), "http://proxy.example.com:3128 (Secret shop/proxy)"},
		"the usual port":         {secret("address", "http://proxy.example.com/"), "http://proxy.example.com:80 (Secret shop/proxy)"},
		"HTTPS":                  {secret("address", "https://proxy.example.com"), "https://proxy.example.com:443 (Secret shop/proxy)"},
		"SOCKS5":                 {secret("address", "socks5://[2001:db8::1]"), "socks5://[2001:db8::1]:1080 (Secret shop/proxy)"},
		"SOCKS5, as curl has it": {secret("address", "socks5h://proxy"), "socks5://proxy:1080 (Secret shop/proxy)"},
		"no address":             {secret("username", "a"), "it has no key address; add it: http://, https:// or socks5:// and a host"},
		"an empty address":       {secret("address", "\n"), "it has no key address"},
		"no scheme":              {secret("address", "proxy.example.com:3128"), "its address has to be http://, https:// or socks5://"},
		"another scheme":         {secret("address", "ftp://proxy.example.com"), "its address has to be http://, https:// or socks5://"},
		"no host":                {secret("address", "http://:3128"), "its address has to be http://, https:// or socks5://"},
		"no URL":                 {secret("address", "http://["+password), "its address has to be http://, https:// or socks5://"},
		"a port that is none":    {secret("address", "http://proxy:0"), "its address has a port that is not from 1 to 65535"},
		"a user":                 {secret("address", "http://a:"+password+"@proxy"), "its address has a user; put credentials into the keys username and password"},
		"a path":                 {secret("address", "http://proxy/"+password), "its address has more than a host"},
		"an endless address":     {secret("address", "http://"+strings.Repeat("a", 3000)), "its address has to be"},
		"no username":            {secret("address", "http://proxy", "password", password), "it has a password and no username; add it"},
		"a line break":           {secret("address", "http://proxy", "username", "a", "password", password+"\nX: y"), "characters that no proxy accepts"},
		"a colon":                {secret("address", "http://proxy", "username", password+":a"), "its username has a colon"},
		"a long password":        {secret("address", "socks5://proxy", "username", "a", "password", strings.Repeat(password, 30)), "is longer than 255 bytes"},
		"no certificate":         {secret("address", "https://proxy", "caBundle", password), "its caBundle holds no certificate in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := proxy.FromSecret("shop/proxy", tt.data)
			text := fmt.Sprint(got)
			if err != nil {
				text = err.Error()
			}
			if !strings.HasPrefix(text, tt.want) && !(err != nil && strings.Contains(text, tt.want)) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if strings.Contains(text, password) {
				t.Errorf("%q shows a value", text)
			}
		})
	}
}

// No way of printing a proxy shows its credentials.
func TestProxyIsPrintedWithoutCredentials(t *testing.T) {
	p, err := proxy.FromSecret("shop/proxy", secret("address", "http://proxy", "username", "slip", "password", password))
	if err != nil {
		t.Fatal(err)
	}
	basic := base64.StdEncoding.EncodeToString([]byte("slip:" + password))
	for _, text := range []string{
		fmt.Sprint(p), fmt.Sprintf("%v %+v %#v %s %q %x", p, p, p, p, p, p), fmt.Sprintf("%+v", struct{ P *proxy.Proxy }{p}),
	} {
		if strings.Contains(text, password) || strings.Contains(text, basic) || strings.Contains(text, fmt.Sprintf("%x", password)) {
			t.Errorf("%s shows the password", text)
		}
	}
}

func TestEqual(t *testing.T) {
	read := func(pairs ...string) *proxy.Proxy {
		p, err := proxy.FromSecret("shop/proxy", secret(pairs...))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := read("address", "http://proxy", "username", "a", "password", "b")
	if !base.Equal(read("address", "http://proxy:80", "username", "a", "password", "b")) || !(*proxy.Proxy)(nil).Equal(nil) {
		t.Error("equal proxies differ")
	}
	for _, other := range []*proxy.Proxy{
		nil, read("address", "http://other", "username", "a", "password", "b"), read("address", "http://proxy"),
		read("address", "http://proxy", "username", "a", "password", "c"), read("address", "socks5://proxy:80", "username", "a", "password", "b"),
	} {
		if base.Equal(other) || other.Equal(base) {
			t.Errorf("%v is equal", other)
		}
	}
}
