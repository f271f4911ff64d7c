// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyring manages the keys with which the server encrypts Secrets: a seed, and a key pair for destinations that
// name no recipients. Both are in Secrets of the server's namespace, so that all replicas share them and they do not
// depend on the server's store.
//
//   - slipstream-age has the private key under age.agekey, in the format of age-keygen, which Flux and SOPS read. It is
//     created when it is first needed and never changed. A user can replace the key pair by writing another key there.
//   - slipstream-age-seed has the seed, from which pkg/mirror/sops derives keys, and recipient, the public key that files
//     are encrypted for.
//
// They are separate because the private key is meant to be handed to the readers of the files, and the seed is not.
//
// # Invariants
//
// A key pair is created only if there has never been one. If slipstream-age is deleted or cannot be read, that is reported
// and no other key pair is created: it would make later files unreadable to the owner of the old private key. Meanwhile
// files are encrypted for the public key in slipstream-age-seed, which is recorded there before it is first used.
//
// If slipstream-age-seed is deleted, a server that knows its content restores it. Otherwise a new seed is created, and every
// file is encrypted once more for the same recipients.
package keyring
