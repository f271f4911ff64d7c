// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package encryption answers how what we store is sealed: under which keys, where they are kept, and how everything comes
// to be sealed under a new one.
//
// # Keys
//
// An EncryptionConfiguration of upstream's says which keys seal and which ones open. It is the user's own, in a file
// that is only read, or the server's ([Home]): made at the first start, with a key for secretbox, in a file beside the
// stores or in a Secret that all replicas share. The transformers are upstream's too.
//
// Objects are sealed as the resources that they are. Rows of the work store have no resource; they are sealed as
// [WorkResource], so that one configuration rules both, and "*.configbutler.ai" means everything.
//
// # Rotation
//
// A key is used for writing once every replica can have loaded it, and dropped once nothing needs it:
//
//  1. [Rotate] adds the new key, behind the one that seals when there can be other replicas.
//  2. Every replica loads it (Sealer.Reload), and opens what is sealed under it from then on.
//  3. The leader ([Keeper]) puts it first. Every replica loads that, and seals under it from then on.
//  4. The leader rewrites what is sealed under another key, by compare-and-swap, until it finds nothing more.
//  5. Once nobody can ask for a revision from before that, the leader takes the old keys out.
//
// Dying between two steps leaves a configuration with which everything can be opened; whoever leads next goes on.
// With keys of the user's own the leader does the fourth step only.
package encryption
