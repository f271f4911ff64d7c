// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // The hashed form of known_hosts is an HMAC of SHA-1.
	"encoding/base64"
	"errors"
	"io"
	"net"
	"path"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts are the entries of a known_hosts file. The library reads only files, and the content comes from a Secret,
// which must not be written to disk.
type knownHosts []knownHost

type knownHost struct {
	// patterns are names, names with wildcards, negated names, or one hashed name.
	patterns []string
	key      ssh.PublicKey
	revoked  bool
}

// parseKnownHosts parses OpenSSH's file format. It ignores lines for certificate authorities.
func parseKnownHosts(content []byte) (knownHosts, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, refuse(Invalid, "SSH needs known_hosts, and none are given")
	}
	var hosts knownHosts
	for {
		marker, patterns, key, _, rest, err := ssh.ParseKnownHosts(content)
		if errors.Is(err, io.EOF) {
			return hosts, nil
		}
		if err != nil {
			return nil, refuse(Invalid, "known_hosts cannot be read: %v", err)
		}
		if marker != "cert-authority" {
			hosts = append(hosts, knownHost{patterns: patterns, key: key, revoked: marker == "revoked"})
		}
		content = rest
	}
}

// check is an ssh.HostKeyCallback: the key must be listed for the address, and must not be revoked.
func (h knownHosts) check(address string, _ net.Addr, key ssh.PublicKey) error {
	encoded := key.Marshal()
	known := false
	for _, host := range h {
		if !bytes.Equal(host.key.Marshal(), encoded) {
			continue
		}
		if host.revoked {
			return refuse(Unauthorized, "the host key of %s is revoked", address)
		}
		known = known || host.matches(address)
	}
	if !known {
		return refuse(Unauthorized, "the host key of %s is not the one in known_hosts: %s %s",
			address, key.Type(), ssh.FingerprintSHA256(key))
	}
	return nil
}

// algorithms returns the host key algorithms to offer: those of the known keys of the address. By default the library
// would prefer others, and a server that has such a key would fail the check.
func (h knownHosts) algorithms(address string) []string {
	var algorithms []string
	for _, host := range h {
		if host.revoked || !host.matches(address) {
			continue
		}
		ofKey := []string{host.key.Type()}
		if host.key.Type() == ssh.KeyAlgoRSA {
			ofKey = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, algorithm := range ofKey {
			if !slices.Contains(algorithms, algorithm) {
				algorithms = append(algorithms, algorithm)
			}
		}
	}
	return algorithms
}

// matches reports whether the entry is for the address, given as host:port.
func (k knownHost) matches(address string) bool {
	name := strings.ToLower(knownhosts.Normalize(address))
	matched := false
	for _, pattern := range k.patterns {
		negated := strings.HasPrefix(pattern, "!")
		if !matchesHost(strings.TrimPrefix(pattern, "!"), name) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

func matchesHost(pattern, name string) bool {
	if hashed, found := strings.CutPrefix(pattern, "|1|"); found {
		return matchesHashedHost(hashed, name)
	}
	pattern = strings.ToLower(pattern)
	// In these patterns only * and ? are special, and brackets surround a name with a port.
	matched, err := path.Match(strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(pattern), name)
	return err == nil && matched
}

func matchesHashedHost(hashed, name string) bool {
	saltText, sumText, _ := strings.Cut(hashed, "|")
	salt, saltErr := base64.StdEncoding.DecodeString(saltText)
	sum, sumErr := base64.StdEncoding.DecodeString(sumText)
	if saltErr != nil || sumErr != nil {
		return false
	}
	digest := hmac.New(sha1.New, salt)
	digest.Write([]byte(name))
	return hmac.Equal(digest.Sum(nil), sum)
}
