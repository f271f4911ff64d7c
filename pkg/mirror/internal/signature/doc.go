// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signature answers how content is signed as git signs commits, with a private key that is held in memory:
// in the form of ssh-keygen (SSHSIG) by an SSH key, as an armored detached signature by an OpenPGP key.
//
// Keys come from memory and go nowhere: no program is run, no agent asked, no file written, and no error quotes one.
package signature

// Signer returns the armored signature of a commit object. It may be used by several goroutines, and does not print
// its key whatever the format.
type Signer func(commit []byte) (string, error)
