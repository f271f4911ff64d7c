// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signature signs commits as git does, with a private key in memory: by an SSH key in the format of ssh-keygen
// (SSHSIG), or by an OpenPGP key as an armored detached signature.
//
// Keys stay in memory: no program is run, no agent is used, no file is written, and no error quotes a key.
package signature

// Signer returns the armored signature of a commit object. It is safe for concurrent use, and no formatting verb prints
// its key.
type Signer func(commit []byte) (string, error)
