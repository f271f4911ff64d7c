// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package encryption encrypts everything that the server stores, keeps the keys, and rotates them.
//
// # Keys
//
// An upstream EncryptionConfiguration names the keys that encrypt and decrypt. It is the user's own, in a file
// that is only read, or the server's ([Home]): created at the first start, with a key for secretbox, in a file next to the
// stores or in a Secret that all replicas share. The transformers are upstream's, too.
//
// Objects are encrypted as the resources that they are. Rows of the work store have no resource; they are encrypted as
// [WorkResource], so that one configuration applies to both, and "*.configbutler.ai" means everything.
//
// # Rotation
//
// A key is used for writing once every replica can have loaded it, and dropped once nothing needs it:
//
//  1. [Rotate] adds the new key, after the one that encrypts if there can be other replicas.
//  2. Every replica loads it (Encrypter.Reload), and can decrypt with it from then on.
//  3. The leader ([RotationController]) puts it first. Every replica loads that, and encrypts with it from then on.
//  4. The leader rewrites what is encrypted under another key, by compare-and-swap, until it finds nothing more.
//  5. Once no revision from before that can be read, the leader removes the old keys.
//
// A process that dies between two steps leaves a configuration that decrypts everything; the next leader continues.
// With the user's own keys the leader does the fourth step only.
package encryption
