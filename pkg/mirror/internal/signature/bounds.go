// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"
)

// These bound the cost of an OpenPGP key. Its owner chooses the size of its numbers, the number of signatures on it, which
// are all verified, and the memory of the key derivation from the passphrase: Argon2 allows 2 TiB.
const (
	maxArmored = 64 << 10
	maxPackets = 100
	// maxKeyPacket holds the private part of an RSA key of 8192 bits, 3.6 KB.
	maxKeyPacket = 4 << 10
	// maxMemoryExponent stands for 64 MiB (2^16 KiB), which RFC 9580 recommends if memory is short, with three passes.
	maxMemoryExponent = 16
	maxPasses         = 16
)

var errArmor = errors.New("it is not an armored OpenPGP private key")

// armorBegin is what each exported key begins with.
var armorBegin = []byte("-----BEGIN PGP ")

// exports returns the armored blocks of a text, which has several if exports were appended to each other.
func exports(text []byte) [][]byte {
	parts := bytes.Split(text, armorBegin)
	var blocks [][]byte
	for _, part := range parts[1:] {
		blocks = append(blocks, append(bytes.Clone(armorBegin), part...))
	}
	return blocks
}

// checkSize returns an error for keys that would take long to read. It checks only the sizes of packets.
func checkSize(text []byte) error {
	if len(text) > maxArmored {
		return fmt.Errorf("it has more than %d KiB; export the key with --export-options export-minimal", maxArmored>>10)
	}
	left := maxPackets
	for _, key := range exports(text) {
		if err := checkPackets(key, &left); err != nil {
			return err
		}
	}
	if left == maxPackets {
		return errArmor
	}
	return nil
}

// checkPackets checks the packets of one block, of which left may be read.
func checkPackets(key []byte, left *int) error {
	block, err := armor.Decode(bytes.NewReader(key))
	if err != nil {
		return errArmor
	}
	packets := packet.NewOpaqueReader(block.Body)
	for ; *left > 0; *left-- {
		next, err := packets.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errArmor
		case isKey(next.Tag) && len(next.Contents) > maxKeyPacket:
			return errors.New("its numbers are too large; use ed25519, or RSA with 8192 bits at most")
		}
	}
	return fmt.Errorf("it has more than %d packets; export the key with --export-options export-minimal", maxPackets)
}

// isKey reports whether packets with the tag have a key (RFC 9580, section 5).
func isKey(tag uint8) bool {
	switch tag {
	case 5, 6, 7, 14: // Secret key, public key, secret subkey, public subkey.
		return true
	}
	return false
}

// checkDerivation returns an error for a key derivation by Argon2 that takes too much memory or time. All others hash at
// most 62 MiB.
func checkDerivation(key *packet.PrivateKey) error {
	whole, err := contents(key.Serialize)
	if err != nil {
		return err
	}
	public, err := contents(key.PublicKey.Serialize)
	if err != nil {
		return err
	}
	// Section 5.5.3: the protection of the key, the cipher, its mode, and the key derivation. Version 6 has lengths before
	// the second and the last.
	const modes, lengths = 3, 2
	rest, found := bytes.CutPrefix(whole, public)
	if !found || len(rest) == 0 {
		return errArmor
	}
	at := modes
	if key.Version == 6 {
		at += lengths
	}
	if packet.S2KType(rest[0]) != packet.S2KAEAD {
		return nil // Argon2 requires AEAD.
	}
	// Mode, salt, passes, parallelism and memory exponent.
	const size = 1 + s2k.Argon2SaltSize + 3
	if len(rest) < at+size || s2k.Mode(rest[at]) != s2k.Argon2S2K {
		return nil
	}
	if parameters := rest[at+1+s2k.Argon2SaltSize:]; parameters[0] > maxPasses || parameters[2] > maxMemoryExponent {
		return fmt.Errorf("it is locked by Argon2 with more than %d MiB or %d passes; lock it with less", 1<<maxMemoryExponent>>10, maxPasses)
	}
	return nil
}

// contents returns the contents of a packet without its header.
func contents(serialize func(io.Writer) error) ([]byte, error) {
	var written bytes.Buffer
	if err := serialize(&written); err != nil {
		return nil, fmt.Errorf("read the OpenPGP key: %w", err)
	}
	read, err := packet.NewOpaqueReader(&written).Next()
	if err != nil {
		return nil, fmt.Errorf("read the OpenPGP key: %w", err)
	}
	return read.Contents, nil
}
