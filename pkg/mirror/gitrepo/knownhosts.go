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
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts are the entries of a known_hosts file. The library reads only files, and the content comes from a Secret,
// which must not be written to disk.
type knownHosts struct {
	entries []knownHost
	// now is the clock by which certificates of hosts are valid.
	now func() time.Time
}

type knownHost struct {
	// patterns are names, names with wildcards, negated names, or one hashed name.
	patterns []string
	key      ssh.PublicKey
	// authority is set if the key signs the certificates of hosts (@cert-authority).
	authority bool
	revoked   bool
}

// certificateAlgorithms are those of host certificates. An authority signs keys of any type.
var certificateAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01,
	ssh.CertAlgoRSASHA256v01,
}

// parseKnownHosts parses OpenSSH's file format.
func parseKnownHosts(content []byte, now func() time.Time) (knownHosts, error) {
	hosts := knownHosts{now: now}
	if len(bytes.TrimSpace(content)) == 0 {
		return hosts, refuse(Invalid, "SSH needs known_hosts, and none are given")
	}
	for {
		marker, patterns, key, _, rest, err := ssh.ParseKnownHosts(content)
		if errors.Is(err, io.EOF) {
			return hosts, nil
		}
		if err != nil {
			return hosts, refuse(Invalid, "known_hosts cannot be read: %v", err)
		}
		hosts.entries = append(hosts.entries, knownHost{
			patterns: patterns, key: key, authority: marker == "cert-authority", revoked: marker == "revoked",
		})
		content = rest
	}
}

// check is an ssh.HostKeyCallback: the key, or the authority of its certificate, must be listed for the address, and neither
// must be revoked.
func (h knownHosts) check(address string, remote net.Addr, key ssh.PublicKey) error {
	certificate, ok := key.(*ssh.Certificate)
	if !ok {
		return h.checkKey(address, key)
	}
	if h.revoked(certificate.Key) || h.revoked(certificate.SignatureKey) {
		return refuse(Unauthorized, "the host certificate of %s is of a key or an authority that is revoked", address)
	}
	if !h.lists(address, certificate.SignatureKey, true) {
		return h.checkKey(address, certificate.Key) // As OpenSSH does.
	}
	checker := ssh.CertChecker{IsHostAuthority: func(ssh.PublicKey, string) bool { return true }, Clock: h.now}
	if err := checker.CheckHostKey(address, remote, key); err != nil {
		return refuse(Unauthorized, "the host certificate of %s is not valid for it by known_hosts: %v", address, err)
	}
	return nil
}

func (h knownHosts) checkKey(address string, key ssh.PublicKey) error {
	switch {
	case h.revoked(key):
		return refuse(Unauthorized, "the host key of %s is revoked", address)
	case !h.lists(address, key, false):
		return refuse(Unauthorized, "the host key of %s is not the one in known_hosts: %s %s",
			address, key.Type(), ssh.FingerprintSHA256(key))
	}
	return nil
}

// revoked reports whether a key is revoked. As the library of the Go project does, it counts for all hosts.
func (h knownHosts) revoked(key ssh.PublicKey) bool {
	return slices.ContainsFunc(h.entries, func(host knownHost) bool { return host.revoked && sameKey(host.key, key) })
}

// lists reports whether a key is listed for an address, as an authority or as the key of the host.
func (h knownHosts) lists(address string, key ssh.PublicKey, authority bool) bool {
	return slices.ContainsFunc(h.entries, func(host knownHost) bool {
		return !host.revoked && host.authority == authority && sameKey(host.key, key) && host.matches(address)
	})
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// algorithms returns the host key algorithms to offer: those of certificates if an authority is listed for the address, and
// those of its known keys. By default the library would prefer others, and a server that has such a key would fail the check.
func (h knownHosts) algorithms(address string) []string {
	var algorithms []string
	if slices.ContainsFunc(h.entries, func(host knownHost) bool { return host.authority && host.matches(address) }) {
		algorithms = slices.Clone(certificateAlgorithms)
	}
	for _, host := range h.entries {
		if host.revoked || host.authority || !host.matches(address) {
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
