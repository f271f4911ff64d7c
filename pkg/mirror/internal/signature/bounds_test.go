// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package signature_test

import (
	"bytes"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"

	"github.com/configbutler/slipstream/pkg/mirror/internal/signature"
)

// argon2Key returns an OpenPGP key whose passphrase uses Argon2, and the position of the parameters in it.
func argon2Key(t *testing.T, v6 bool) (key []byte, passes, memory int) {
	t.Helper()
	config := &packet.Config{
		V6Keys: v6, DefaultCipher: packet.CipherAES256, Algorithm: packet.PubKeyAlgoEd25519,
		AEADConfig: &packet.AEADConfig{DefaultMode: packet.AEADModeOCB},
		S2KConfig: &s2k.Config{
			S2KMode: s2k.Argon2S2K, Argon2Config: &s2k.Argon2Config{NumberOfPasses: 1, DegreeOfParallelism: 1, Memory: 64},
		},
	}
	entity, err := openpgp.NewEntity("bot", "", "bot@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.EncryptPrivateKeys([]byte(passphrase), config); err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := entity.SerializePrivateWithoutSigning(&written, config); err != nil {
		t.Fatal(err)
	}
	before := []byte{byte(packet.S2KAEAD)}
	if v6 {
		// The lengths of the rest, with a nonce of 15 bytes, and of the parameters of Argon2, 20 bytes.
		before = append(before, 3+20+15, byte(packet.CipherAES256), byte(packet.AEADModeOCB), 20)
	} else {
		before = append(before, byte(packet.CipherAES256), byte(packet.AEADModeOCB))
	}
	before = append(before, byte(s2k.Argon2S2K))
	at := bytes.Index(written.Bytes(), before)
	if at < 0 {
		t.Fatal("key does not use Argon2")
	}
	at += len(before) + s2k.Argon2SaltSize
	return written.Bytes(), at, at + 2
}

func armored(t *testing.T, key []byte) []byte {
	t.Helper()
	var text bytes.Buffer
	writer, err := armor.Encode(&text, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(key); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestOpenPGPKeyLockedByArgon2 checks that a key whose passphrase requires too much memory or time is rejected before
// it is decrypted.
func TestOpenPGPKeyLockedByArgon2(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for name, test := range map[string]struct {
			passes, memory byte
			says           string
		}{
			"as it was made": {1, 6, ""},
			"much memory":    {1, 17, "by Argon2 with more than 64 MiB or 16 passes"},
			"all memory":     {1, 31, "by Argon2 with more than 64 MiB or 16 passes"},
			"many passes":    {17, 6, "by Argon2 with more than 64 MiB or 16 passes"},
			"all there is":   {255, 31, "by Argon2 with more than 64 MiB or 16 passes"},
			"another key":    {2, 6, "the passphrase does not open the key"},
		} {
			t.Run(fmt.Sprintf("%s, version 6 %t", name, v6), func(t *testing.T) {
				key, passes, memory := argon2Key(t, v6)
				key[passes], key[memory] = test.passes, test.memory
				sign, err := signature.OpenPGP(armored(t, key), []byte(passphrase), time.Now)
				switch {
				case test.says == "" && err != nil:
					t.Error(err)
				case test.says == "":
					if _, err := sign([]byte("commit")); err != nil {
						t.Error(err)
					}
				case err == nil || !strings.Contains(err.Error(), test.says):
					t.Errorf("error = %v, want %q", err, test.says)
				}
			})
		}
	}
}

// TestOpenPGPKeyOfManyParts checks that keys that would take long to parse are rejected because of their size.
func TestOpenPGPKeyOfManyParts(t *testing.T) {
	// packetOf returns a packet with an old-format header and a length of two bytes.
	packetOf := func(tag, size int) []byte {
		return append([]byte{byte(0x80 | tag<<2 | 1), byte(size >> 8), byte(size)}, make([]byte, size)...)
	}
	const secretKey, signatureTag, userID, publicSubkey = 5, 2, 13, 14
	for name, test := range map[string]struct {
		key  []byte
		says string
	}{
		"long":           {packetOf(userID, 60<<10), "more than 64 KiB"},
		"many packets":   {bytes.Repeat(packetOf(signatureTag, 40), 101), "more than 100 packets"},
		"a large number": {packetOf(secretKey, 4<<10+1), "numbers are too large"},
		"a large subkey": {append(packetOf(userID, 3), packetOf(publicSubkey, 8<<10)...), "numbers are too large"},
		"cut short":      {packetOf(secretKey, 100)[:50], "not an armored OpenPGP private key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signature.OpenPGP(armored(t, test.key), nil, time.Now)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error = %v, want %q", err, test.says)
			}
		})
	}
}

// TestLargeSSHKey checks that a key that would take minutes for a signature is rejected because of its size.
func TestLargeSSHKey(t *testing.T) {
	key, _ := sshKey(t, "-t", "ed25519", "-N", "")
	if _, err := signature.SSH(append(key, bytes.Repeat([]byte("\n"), 16<<10-len(key))...), nil); err != nil {
		t.Errorf("a key of 16 KiB: %v", err)
	}
	_, err := signature.SSH(append(key, bytes.Repeat([]byte("\n"), 16<<10)...), nil)
	if err == nil || !strings.Contains(err.Error(), "larger than 16384 bytes") {
		t.Errorf("error = %v, want one about the size", err)
	}
}

// TestSSHKeyOfManyRounds checks that a key whose passphrase requires too many rounds is rejected before it is
// decrypted.
func TestSSHKeyOfManyRounds(t *testing.T) {
	key, _ := sshKey(t, "-t", "ed25519", "-N", passphrase, "-a", "1")
	block, _ := pem.Decode(key)
	kdf := []byte("bcrypt")
	// The options follow as length-prefixed strings: a salt of 16 bytes, and the number of rounds.
	at := bytes.Index(block.Bytes, kdf) + len(kdf) + 4 + 4 + 16
	if rounds := binary.BigEndian.Uint32(block.Bytes[at:]); rounds != 1 {
		t.Fatalf("%d rounds, want 1", rounds)
	}
	binary.BigEndian.PutUint32(block.Bytes[at:], math.MaxUint32)
	_, err := signature.SSH(pem.EncodeToMemory(block), []byte(passphrase))
	if err == nil || !strings.Contains(err.Error(), "rounds") {
		t.Errorf("error = %v", err)
	}
}
