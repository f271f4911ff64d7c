// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyring answers with which keys the server encrypts Secrets: a seed, and a key pair of its own for whoever
// names no recipients. Both are in Secrets of the server's namespace, so that every replica has the same ones and no
// store of the server's can lose them.
//
//   - slipstream-age holds the private key under age.agekey, in the shape that age-keygen writes and that Flux and SOPS
//     read. It is made when it is first needed, and never changed: who puts another key there changes the key pair.
//   - slipstream-age-seed holds the seed, from which pkg/mirror/sops draws, and recipient, the public key that files are
//     encrypted for.
//
// They are apart because the private key is there to be handed on, to whoever is to read the files, and the seed is
// not.
//
// # What must hold
//
// A key pair is made only if there has never been one. That slipstream-age is gone, or cannot be read, is told and
// makes no other key pair, since files that nobody can read any more must not be followed by files that only somebody
// else can read. The public key is known from slipstream-age-seed meanwhile, and is written there before the first
// file is encrypted for it.
//
// If slipstream-age-seed is gone it is put back as it was by a server that knows it, and otherwise made anew: then
// every file is encrypted once more, for the same recipients as before.
package keyring
