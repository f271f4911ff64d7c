// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sops encrypts objects as files that SOPS decrypts with an age private key.
//
// # The file
//
// It is the object's canonical YAML (pkg/kube/manifest) with every value encrypted that is not known to be harmless,
// followed by the block sops: the data key, encrypted for each recipient; the rule for what is encrypted; and a message
// authentication code over all values in order, encrypted or not. The apiVersion, the kind, the type, immutable, the names,
// the labels and a few annotations (pkg/kube/annotation) stay readable. Other annotations are encrypted like the data,
// because tools copy the data into them. SOPS, Flux and KSOPS decrypt the file without a configuration file.
//
// The rule of SOPS is a regular expression for keys: a value is encrypted if any key on its path matches. So the rule lists
// the keys of the annotations of this object, and a label with a listed key is encrypted as well.
//
// # Deterministic encryption
//
// Encryption is usually random: the file of an unchanged object would differ each time, and a comparison would need a
// record of what was written. Here all keys and nonces are derived from a seed that only the server has and from the whole
// content of the file:
//
//	HMAC-SHA256(seed, recipients, rule and canonical YAML)  expanded by HKDF, with a name for each use
//
// So an object gives the same bytes for the same recipients, and comparing hashes of files is enough. Objects that differ
// in anything share no keys and no nonces. A reader of the repository can see that a file returned to an earlier content,
// and nothing else. With the seed alone no file can be decrypted, because the keys depend on the content as well, but a
// guess of a whole file can be verified.
//
// Decrypting uses this, too: Opener refuses a file whose key is not the one that is derived from what it has decrypted. So it opens only
// what an Encrypter with the same seed has encrypted, as a whole and for the same namespace and name. SOPS itself does not check that: its
// code is over the values without their keys, and a value is bound to nothing but its path.
//
// The file has no time of its own, because Git records it: lastmodified is constant.
package sops
